//! Shared memory against plain copies: `cargo bench -p towline-transfer --bench shm`.
//!
//! In each round and for each size, one after the other: the C library's copy between two buffers that are 64 bytes apart modulo a
//! page and 0 bytes apart, ours between the same, and a write of a whole engine, submitted and waited for, into another engine's
//! shared region. Printed: medians in GB/s over all rounds, with the quartiles, and what the engine reaches of the best plain copy.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use towline_transfer::shm::ShmTransport;
use towline_transfer::{Access, Engine, EngineConfig, MemoryRegion, Request, Trust};

const SIZES: [usize; 6] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
const LEN_MAX: usize = 64 << 20;
const ROUNDS: usize = 21;

/// Bytes of one measurement: many copies of small ones.
const BYTES: usize = 64 << 20;

const PATIENCE: Duration = Duration::from_secs(30);

fn engine() -> Engine {
    let trust = Trust::key("the secret of a benchmark");
    let transport = ShmTransport::new(trust.clone()).expect("a socket");
    let config = EngineConfig::new(trust).listen(([127, 0, 0, 1], 0).into()).transport(transport);
    Engine::start(config).expect("an engine")
}

/// GB/s of so many bytes each time.
fn measure(len: usize, mut copy: impl FnMut()) -> f64 {
    let times = (BYTES / len).max(1);
    let began = Instant::now();
    (0..times).for_each(|_| copy());
    (times * len) as f64 / began.elapsed().as_secs_f64() / 1e9
}

/// Lower quartile, median, upper quartile.
fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn main() {
    let (here, there) = (engine(), engine());
    let shared = MemoryRegion::shared(LEN_MAX).expect("memory");
    shared.write(0, &vec![2; LEN_MAX]).expect("within");
    there.register("kv", &shared, Access::ReadWrite).expect("a name");
    let memory = MemoryRegion::allocate(LEN_MAX).expect("memory");
    memory.write(0, &vec![1; LEN_MAX]).expect("within");
    let local = here.register("scratch", &memory, Access::Local).expect("a name");
    let segment = here.open(there.name()).wait_for(PATIENCE).expect("a link");
    let kv = segment.region("kv").expect("the region");

    let (source, mut sink) = (vec![1_u8; LEN_MAX + 64], vec![2_u8; LEN_MAX + 64]);
    let (from, to) = (
        MemoryRegion::from_vec(source.clone()).expect("bytes"),
        MemoryRegion::from_vec(sink.clone()).expect("bytes"),
    );
    let names = ["libc +0", "libc +64", "ours +0", "ours +64", "engine"];
    println!("{:>8}  {}  engine/best plain", "KiB", names.map(|name| format!("{name:<18}")).join("  "));
    for len in SIZES {
        let mut all: [Vec<f64>; 5] = Default::default();
        // The first round warms up.
        for round in 0..=ROUNDS {
            let figures = [
                measure(len, || sink[..len].copy_from_slice(black_box(&source[..len]))),
                measure(len, || sink[64..64 + len].copy_from_slice(black_box(&source[..len]))),
                measure(len, || from.copy_to(0, &to, 0, len).expect("within")),
                measure(len, || from.copy_to(0, &to, 64, len).expect("within")),
                measure(len, || {
                    let batch =
                        segment.submit(&[Request::write(&local, 0, &kv, 0, len as u64)]).expect("room");
                    assert!(batch.wait().is_complete());
                }),
            ];
            black_box(&mut sink);
            if round > 0 {
                all.iter_mut().zip(figures).for_each(|(values, figure)| values.push(figure));
            }
        }
        let quartiles: Vec<_> = all.iter_mut().map(|values| quartiles(values)).collect();
        let cells: Vec<_> = quartiles
            .iter()
            .map(|[low, median, high]| format!("{:<18}", format!("{median:.1} ({low:.1}-{high:.1})")))
            .collect();
        let best = quartiles[..4].iter().map(|[_, median, _]| *median).fold(0.0, f64::max);
        println!("{:>8}  {}  {:.2}", len >> 10, cells.join("  "), quartiles[4][1] / best);
    }
    assert!(there.metrics().bytes_in == 0, "everything went through shared memory");
}
