//! Writes to keys that are there, without anybody who listens: `cargo bench -p towline-store --bench writes -- set`, or
//! `incr`. Prints nanoseconds; instructions are counted from outside (`perf stat -e instructions:u`), as the difference of two
//! numbers of rounds.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures the clock and reads its arguments")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;
use towline_cluster::{Slot, key_slot};
use towline_store::changes::{Changes, Settings};
use towline_store::keyspace::{Expiry, Keyspace};
use towline_store::notify::Class;
use towline_store::store::Store;

const KEYS: usize = 100_000;

fn main() {
    let args: Vec<String> = std::env::args().filter(|arg| !arg.starts_with("--")).collect();
    let is_incr = args.iter().any(|arg| arg == "incr");
    let rounds: usize = args.last().and_then(|arg| arg.parse().ok()).unwrap_or(20);
    let (store, settings, mut changes) = (Store::new(), Settings::default(), Changes::new(1));
    let keys: Vec<(Slot, Vec<u8>)> =
        (0..KEYS).map(|n| format!("key:{n:012}").into_bytes()).map(|key| (key_slot(&key), key)).collect();
    let value: &[u8] = if is_incr { b"1" } else { &[b'x'; 64] };
    for (slot, key) in &keys {
        Keyspace::hold(&store, [*slot], &settings, &mut changes, 0, 1).set_string(key, value, Expiry::Clear);
    }
    let started = Instant::now();
    for round in 0..rounds {
        for (slot, key) in &keys {
            let mut ks = Keyspace::hold(&store, [*slot], &settings, &mut changes, 0, 1);
            ks.begin(1, true);
            if is_incr {
                if let Ok(Some(mut entry)) = ks.string_mut(key) {
                    entry.set_int(round as i64);
                }
            } else {
                ks.set_string(key, value, Expiry::Clear);
            }
            ks.changed(key, Class::String, "set");
        }
    }
    let per_write = started.elapsed().as_nanos() as f64 / (rounds * KEYS) as f64;
    println!("{} {per_write:.1} ns per write", if is_incr { "incr" } else { "set" });
}
