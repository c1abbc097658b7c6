//! Counters.
//!
//! Owns: what `INFO` counts. Each worker writes its own numbers, readers add them up. Does **not** own rendering.

mod histogram;
mod rate;

pub(crate) use histogram::{Histogram, HistogramSum};
pub(crate) use rate::Rates;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use towline_spec::{COUNT, Command};
use towline_store::changes::Changes;

/// A counter that one thread writes and every thread reads; writing costs no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the thread that owns the counter may do so.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// The count.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// One command's numbers.
#[derive(Debug, Default)]
pub(crate) struct CommandStats {
    pub(crate) calls: Counter,
    pub(crate) nanos: Counter,
    pub(crate) rejected: Counter,
    pub(crate) failed: Counter,
    histogram: OnceLock<Box<Histogram>>,
}

impl CommandStats {
    fn clear(&self) {
        for counter in [&self.calls, &self.nanos, &self.rejected, &self.failed] {
            counter.clear();
        }
        if let Some(histogram) = self.histogram.get() {
            histogram.clear();
        }
    }
}

/// One worker's numbers, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct WorkerStats {
    pub(crate) commands: Box<[CommandStats]>,
    /// Commands executed.
    pub(crate) executed: Counter,
    /// Bytes read from, and written to, connections.
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    /// Read and write calls on connections that moved bytes.
    pub(crate) reads: Counter,
    pub(crate) writes: Counter,
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) expired: Counter,
    pub(crate) expired_fields: Counter,
    pub(crate) evicted: Counter,
    /// Changes to the data set; never reset.
    pub(crate) dirty: Counter,
    tracks_latency: AtomicBool,
    /// The reset that these numbers start from.
    epoch: AtomicU64,
}

impl WorkerStats {
    fn new() -> Self {
        Self {
            commands: (0..COUNT).map(|_| CommandStats::default()).collect(),
            executed: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            expired: Counter::default(),
            expired_fields: Counter::default(),
            evicted: Counter::default(),
            dirty: Counter::default(),
            tracks_latency: AtomicBool::new(true),
            epoch: AtomicU64::new(0),
        }
    }

    /// Sets everything to zero, except what describes the data set.
    fn clear(&self) {
        self.commands.iter().for_each(CommandStats::clear);
        let counters = [
            &self.executed,
            &self.bytes_in,
            &self.bytes_out,
            &self.reads,
            &self.writes,
            &self.hits,
            &self.misses,
            &self.expired,
            &self.expired_fields,
            &self.evicted,
        ];
        counters.iter().for_each(|counter| counter.clear());
    }

    /// A command ran for `elapsed`.
    #[inline]
    pub(crate) fn called(&self, command: &Command, elapsed: Duration, is_ok: bool) {
        let stats = &self.commands[command.id.index()];
        let nanos = elapsed.as_nanos() as u64;
        stats.calls.add(1);
        stats.nanos.add(nanos);
        if !is_ok {
            stats.failed.add(1);
        }
        self.executed.add(1);
        if self.tracks_latency.load(Ordering::Relaxed) {
            stats.histogram.get_or_init(Box::default).record(nanos);
        }
    }

    /// A command was refused before it ran.
    pub(crate) fn rejected(&self, command: &Command) {
        self.commands[command.id.index()].rejected.add(1);
    }

    /// Bytes came in.
    #[inline]
    pub(crate) fn received(&self, bytes: usize) {
        self.reads.add(1);
        self.bytes_in.add(bytes as u64);
    }

    /// Bytes went out.
    #[inline]
    pub(crate) fn sent(&self, bytes: usize) {
        self.writes.add(1);
        self.bytes_out.add(bytes as u64);
    }

    /// Takes over what commands counted. Called once per batch.
    #[inline]
    pub(crate) fn absorb(&self, changes: &mut Changes) {
        let take = |from: &mut u64, to: &Counter| {
            if *from != 0 {
                to.add(std::mem::take(from));
            }
        };
        take(&mut changes.hits, &self.hits);
        take(&mut changes.misses, &self.misses);
        take(&mut changes.expired, &self.expired);
        take(&mut changes.expired_fields, &self.expired_fields);
        take(&mut changes.dirty, &self.dirty);
    }
}

/// One command's numbers, added up over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CommandTotals {
    pub(crate) calls: u64,
    pub(crate) nanos: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
}

/// All numbers.
#[derive(Debug)]
pub(crate) struct Stats {
    workers: Box<[WorkerStats]>,
    /// Counts resets; see [`Stats::reset`].
    epoch: AtomicU64,
    errors: Mutex<BTreeMap<String, u64>>,
    rates: Mutex<Rates>,
    pub(crate) connections: AtomicU64,
    pub(crate) connections_rejected: AtomicU64,
    /// Clients that were cut off because all clients' buffers together took too much.
    pub(crate) clients_evicted: AtomicU64,
    /// Clients that were cut off because of their unsent output.
    pub(crate) output_limit_disconnects: AtomicU64,
    /// Clients that were cut off because of their unparsed input.
    pub(crate) query_limit_disconnects: AtomicU64,
    /// Passwords that were refused.
    pub(crate) auth_failures: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stats {
    /// Numbers of a server with this many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            workers: (0..workers.max(1)).map(|_| WorkerStats::new()).collect(),
            epoch: zero(),
            errors: Mutex::default(),
            rates: Mutex::default(),
            connections: zero(),
            connections_rejected: zero(),
            clients_evicted: zero(),
            output_limit_disconnects: zero(),
            query_limit_disconnects: zero(),
            auth_failures: zero(),
        }
    }

    /// The numbers of one worker, for that worker to write. Numbers from before a reset are cleared on the way.
    #[inline]
    pub(crate) fn worker(&self, worker: usize) -> &WorkerStats {
        let stats = &self.workers[worker];
        let epoch = self.epoch.load(Ordering::Acquire);
        if stats.epoch.load(Ordering::Relaxed) != epoch {
            stats.clear();
            stats.epoch.store(epoch, Ordering::Release);
        }
        stats
    }

    /// The numbers of all workers that counted anything since the last reset.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &WorkerStats> + Clone {
        let epoch = self.epoch.load(Ordering::Acquire);
        self.workers.iter().filter(move |stats| stats.epoch.load(Ordering::Acquire) == epoch)
    }

    /// Sets everything to zero: `CONFIG RESETSTAT`. Each worker clears its own numbers before it counts again; until
    /// then they are left out of all sums.
    pub(crate) fn reset(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        lock(&self.errors).clear();
        let counters = [
            &self.connections,
            &self.connections_rejected,
            &self.clients_evicted,
            &self.output_limit_disconnects,
            &self.query_limit_disconnects,
            &self.auth_failures,
        ];
        counters.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    /// Whether commands' times are kept as histograms: `latency-tracking`.
    pub(crate) fn track_latency(&self, is_on: bool) {
        self.workers.iter().for_each(|stats| stats.tracks_latency.store(is_on, Ordering::Relaxed));
    }

    /// The sum of one number over all workers since the last reset.
    pub(crate) fn sum(&self, number: impl Fn(&WorkerStats) -> &Counter) -> u64 {
        self.workers().map(|stats| number(stats).get()).fold(0, u64::wrapping_add)
    }

    /// Changes to the data set since the start.
    pub(crate) fn dirty(&self) -> u64 {
        self.workers.iter().map(|stats| stats.dirty.get()).sum()
    }

    /// One command's numbers.
    pub(crate) fn command(&self, command: &Command) -> CommandTotals {
        self.workers().map(|stats| &stats.commands[command.id.index()]).fold(
            CommandTotals::default(),
            |sum, stats| CommandTotals {
                calls: sum.calls + stats.calls.get(),
                nanos: sum.nanos + stats.nanos.get(),
                rejected: sum.rejected + stats.rejected.get(),
                failed: sum.failed + stats.failed.get(),
            },
        )
    }

    /// How long one command's calls took; none if none was recorded.
    pub(crate) fn histogram(&self, command: &Command) -> Option<HistogramSum> {
        let mut sum = HistogramSum::default();
        for stats in self.workers() {
            if let Some(histogram) = stats.commands[command.id.index()].histogram.get() {
                sum.add(histogram);
            }
        }
        (sum.count() > 0).then_some(sum)
    }

    /// Distinct error codes that are counted; a client can make up no more than these.
    const ERROR_CODES_MAX: usize = 128;

    /// An error was answered; counted by its first word.
    pub(crate) fn error_reply(&self, text: &str) {
        let code = text.split(' ').next().unwrap_or_default();
        let mut errors = lock(&self.errors);
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < Self::ERROR_CODES_MAX {
            errors.insert(code.to_owned(), 1);
        }
    }

    /// Errors by code.
    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        lock(&self.errors).clone()
    }

    /// Samples the rates. Called by the workers' background rounds; does nothing if the last sample is younger than
    /// [`rate::SAMPLE_MS`].
    pub(crate) fn tick(&self, now_ms: u64) {
        let mut rates = lock(&self.rates);
        if rates.is_due(now_ms) {
            let numbers = [self.sum(|s| &s.executed), self.sum(|s| &s.bytes_in), self.sum(|s| &s.bytes_out)];
            rates.sample(now_ms, numbers);
        }
    }

    /// Commands, bytes read and bytes written per second, over the last samples.
    pub(crate) fn rates(&self) -> [u64; 3] {
        lock(&self.rates).per_second()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get() -> &'static Command {
        towline_spec::lookup(b"get").unwrap()
    }

    #[test]
    fn workers_add_up_and_a_reset_leaves_nothing_but_changes() {
        let stats = Stats::new(2);
        for worker in 0..2 {
            stats.worker(worker).called(get(), Duration::from_micros(3), worker == 0);
            stats.worker(worker).rejected(get());
            stats.worker(worker).dirty.add(1);
        }
        let totals = CommandTotals { calls: 2, nanos: 6000, rejected: 2, failed: 1 };
        assert_eq!(stats.command(get()), totals);
        assert_eq!(stats.histogram(get()).unwrap().count(), 2);
        stats.error_reply("ERR no");
        stats.reset();
        assert_eq!((stats.command(get()), stats.sum(|s| &s.executed)), (CommandTotals::default(), 0));
        assert!(stats.histogram(get()).is_none() && stats.errors().is_empty());
        stats.worker(1).called(get(), Duration::from_nanos(1), true);
        assert_eq!(stats.command(get()).calls, 1);
        assert_eq!(stats.dirty(), 2);
    }

    #[test]
    fn error_codes_are_bounded() {
        let stats = Stats::new(1);
        for i in 0..10_000 {
            stats.error_reply(&format!("CODE{i} text"));
        }
        assert_eq!(stats.errors().len(), Stats::ERROR_CODES_MAX);
    }

    #[test]
    fn changes_are_absorbed_once() {
        let (stats, mut changes) = (Stats::new(1), Changes::new(1));
        (changes.hits, changes.misses, changes.dirty) = (3, 2, 1);
        stats.worker(0).absorb(&mut changes);
        stats.worker(0).absorb(&mut changes);
        assert_eq!((stats.sum(|s| &s.hits), stats.sum(|s| &s.misses), stats.dirty()), (3, 2, 1));
    }

    #[test]
    fn rates_follow_the_last_samples() {
        let stats = Stats::new(1);
        for i in 0..40u64 {
            stats.worker(0).executed.add(50);
            stats.tick(1000 + i * 100);
            stats.tick(1001 + i * 100);
        }
        assert_eq!(stats.rates()[0], 500);
    }
}
