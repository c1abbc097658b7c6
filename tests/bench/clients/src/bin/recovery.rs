//! What an event in a cluster costs each client.

fn main() -> anyhow::Result<()> {
    towline_client_bench::recovery::main()
}
