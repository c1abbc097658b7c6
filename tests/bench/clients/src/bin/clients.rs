//! Takes the times, on the system's allocator.

fn main() -> anyhow::Result<()> {
    towline_client_bench::main(None)
}
