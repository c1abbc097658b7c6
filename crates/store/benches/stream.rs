//! Writes while a stream walks a large data set: `cargo bench -p towline-store --bench stream`.
//!
//! One thread writes to random keys, one follows the stream. Printed for the time without a stream, with a snapshot alone,
//! and with a snapshot and its tail: the writer's percentiles, the stream's largest holding, and its speed.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use towline_cluster::{SLOT_COUNT, Slot, key_slot};
use towline_sansio::Prng;
use towline_store::changes::{Changes, Settings};
use towline_store::keyspace::{Expiry, Keyspace};
use towline_store::notify::Class;
use towline_store::store::Store;
use towline_store::stream::{Batch, Config, SlotStream};

const KEYS: u64 = 1_000_000;
const VALUE: [u8; 100] = [b'x'; 100];
const QUIET: Duration = Duration::from_secs(3);

fn key(n: u64) -> Vec<u8> {
    format!("key:{n:012}").into_bytes()
}

fn set(store: &Store, settings: &Settings, changes: &mut Changes, key: &[u8]) {
    let mut ks = Keyspace::hold(store, [key_slot(key)], settings, changes, 0, 1);
    ks.set_string(key, &VALUE, Expiry::Clear);
    ks.changed(key, Class::String, "set");
}

/// Writes until `stop`; the time that each write took, in nanoseconds, in order of size.
fn write_until(store: &Store, stop: &AtomicBool) -> Vec<u32> {
    let (settings, mut changes, mut rng) = (Settings::default(), Changes::new(1), Prng::new(7));
    let mut times = Vec::with_capacity(8 << 20);
    while !stop.load(Ordering::Relaxed) {
        let key = key(rng.below(KEYS));
        let started = Instant::now();
        set(store, &settings, &mut changes, &key);
        times.push(started.elapsed().as_nanos() as u32);
    }
    times.sort_unstable();
    times
}

fn show(name: &str, times: &[u32], elapsed: Duration) {
    let at = |share: f64| f64::from(times[((times.len() - 1) as f64 * share) as usize]) / 1000.0;
    println!(
        "{name:<24} {:>8.0} writes/s  p50 {:.2} us  p99 {:.2} us  p99.9 {:.2} us  max {:.0} us",
        times.len() as f64 / elapsed.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

/// Runs `reader` beside the writer.
fn beside(store: &Store, name: &str, reader: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(store, &stop));
        let started = Instant::now();
        reader();
        let elapsed = started.elapsed();
        stop.store(true, Ordering::Relaxed);
        if let Ok(times) = writer.join() {
            show(name, &times, elapsed);
        }
    });
}

fn follow(store: &Store, name: &str, config: &Config) {
    let mut figures = String::new();
    beside(store, name, || {
        let opened = Instant::now();
        let mut stream = SlotStream::open(store, 0..SLOT_COUNT as Slot, 1, config);
        let open_us = opened.elapsed().as_micros();
        let (mut batch, mut bytes, mut held_max) = (Batch::default(), 0, 0);
        let started = Instant::now();
        loop {
            held_max = held_max.max(stream.held_bytes());
            let Ok(progress) = stream.next(store, &mut batch) else {
                println!("the stream was overrun");
                return;
            };
            bytes += batch.bytes();
            if progress.is_snapshot_done {
                break;
            }
        }
        let elapsed = started.elapsed();
        figures = format!(
            "    opened in {open_us} us, {} MB in {:.0} ms: {:.0} MB/s; held at most {:.2} MB, {:.1} bytes per key",
            bytes >> 20,
            elapsed.as_secs_f64() * 1000.0,
            bytes as f64 / 1e6 / elapsed.as_secs_f64(),
            held_max as f64 / 1e6,
            held_max as f64 / KEYS as f64,
        );
        stream.close(store);
    });
    println!("{figures}");
}

fn main() {
    let (store, settings, mut changes) = (Store::new(), Settings::default(), Changes::new(1));
    (0..KEYS).for_each(|n| set(&store, &settings, &mut changes, &key(n)));
    for round in 0..3 {
        println!("round {round}");
        beside(&store, "no stream", || {
            let started = Instant::now();
            while started.elapsed() < QUIET {
                std::hint::spin_loop();
            }
        });
        let alone = Config { follows: false, ..Config::default() };
        follow(&store, "snapshot", &alone);
        follow(&store, "snapshot and tail", &Config::default());
    }
}
