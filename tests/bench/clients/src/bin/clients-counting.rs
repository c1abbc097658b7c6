//! Counts allocations; its times mean nothing.

use peakmem_alloc::{PeakMemAlloc, PeakMemAllocTrait};
use stats_alloc::StatsAlloc;
use std::alloc::System;
use towline_client_bench::allocations::{Counters, Snapshot};

static COUNTS: StatsAlloc<System> = StatsAlloc::system();

#[global_allocator]
static PEAK: PeakMemAlloc<&StatsAlloc<System>> = PeakMemAlloc::new(&COUNTS);

fn main() -> anyhow::Result<()> {
    towline_client_bench::main(Some(Counters {
        snapshot: || {
            let stats = COUNTS.stats();
            Snapshot {
                allocations: stats.allocations,
                reallocations: stats.reallocations,
                bytes: stats.bytes_allocated,
                bytes_freed: stats.bytes_deallocated,
            }
        },
        peak_reset: || PEAK.reset_peak_memory(),
        peak: || PEAK.get_peak_memory(),
    }))
}
