//! Memory: how much is used, and keeping it below the limit.
//!
//! Owns: measuring and deciding. Does **not** own the choice of victims (see `towline_store::evict`).
//!
//! The allocator's own statistics are exact, and cost microseconds to bring up to date. In between, each worker publishes
//! what its thread allocated and freed, so that the sum follows every command; threads that only free are seen at the
//! next update.

use crate::command::CommandError;
use crate::execute::Local;
use crate::{followups, shared::Shared};
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tikv_jemalloc_ctl::{epoch, stats, thread};
use towline_spec::{Command, Flags};
use towline_store::changes::Changes;
use towline_store::evict::Policy;
use towline_store::store::Store;
use towline_store::value::{Value, ValueRef};

/// The allocator's statistics are brought up to date no more often than this.
const REFRESH_MS: u64 = 5;
/// Keys that one command evicts at most; a limit that was lowered far is reached over many commands and rounds.
const EVICTIONS_PER_COMMAND_MAX: usize = 128;
/// Keys that one background round evicts at most.
const EVICTIONS_PER_ROUND_MAX: usize = 1024;
/// Time that one command or round evicts for at most: what Redis takes by default.
const EVICTION_TURN: Duration = Duration::from_micros(500);
/// Keys that are evicted between two looks at the clock.
const EVICTIONS_PER_LOOK: usize = 16;
/// Elements of a victim that are freed at once; larger ones are freed on a thread of their own.
const FREE_INLINE_ELEMENTS_MAX: usize = 4096;

/// Numbers of the allocator, in bytes; all 0 if it cannot tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AllocatorStats {
    /// Handed out to the program.
    pub(crate) allocated: u64,
    /// Pages with something in them.
    pub(crate) active: u64,
    /// Pages that are resident.
    pub(crate) resident: u64,
    /// Its own structures.
    pub(crate) metadata: u64,
    /// Address space that it holds.
    pub(crate) mapped: u64,
    /// Address space that it keeps for later.
    pub(crate) retained: u64,
}

/// The allocator's numbers, up to date.
pub(crate) fn allocator_stats() -> AllocatorStats {
    let number = |read: tikv_jemalloc_ctl::Result<usize>| read.map_or(0, |bytes| bytes as u64);
    if epoch::advance().is_err() {
        return AllocatorStats::default();
    }
    AllocatorStats {
        allocated: number(stats::allocated::read()),
        active: number(stats::active::read()),
        resident: number(stats::resident::read()),
        metadata: number(stats::metadata::read()),
        mapped: number(stats::mapped::read()),
        retained: number(stats::retained::read()),
    }
}

type ThreadCounters = (thread::ThreadLocal<u64>, thread::ThreadLocal<u64>);

/// What the calling thread allocated minus what it freed, in bytes.
fn thread_net_bytes() -> i64 {
    thread_local! {
        static COUNTERS: OnceCell<Option<ThreadCounters>> = const { OnceCell::new() };
    }
    COUNTERS.with(|counters| {
        let counters = counters
            .get_or_init(|| Some((thread::allocatedp::read().ok()?, thread::deallocatedp::read().ok()?)));
        counters.as_ref().map_or(0, |(allocated, freed)| allocated.get().wrapping_sub(freed.get()) as i64)
    })
}

/// Where the number of used bytes comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// The allocator.
    Allocator,
    /// A rule of a test.
    #[cfg(test)]
    Rule(fn(&Store) -> u64),
}

/// Measures how much memory is used.
#[derive(Debug)]
pub(crate) struct Meter {
    source: Source,
    /// Allocated bytes at the last update, less the workers' net bytes then.
    base: AtomicI64,
    refreshed_ms: AtomicU64,
    nets: Box<[AtomicI64]>,
    peak: AtomicU64,
    startup: u64,
    leaving: Arc<Leaving>,
    /// Microseconds that memory was, in all, above the limit; and since when it is.
    over_limit_us: AtomicU64,
    over_since_ms: AtomicU64,
}

impl Meter {
    /// A meter for this many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let meter = Self {
            source: Source::Allocator,
            base: AtomicI64::new(0),
            refreshed_ms: AtomicU64::new(0),
            nets: (0..workers.max(1)).map(|_| AtomicI64::new(0)).collect(),
            peak: AtomicU64::new(0),
            startup: allocator_stats().allocated,
            leaving: Arc::default(),
            over_limit_us: AtomicU64::new(0),
            over_since_ms: AtomicU64::new(0),
        };
        meter.refresh();
        meter
    }

    /// A meter that follows a rule.
    #[cfg(test)]
    pub(crate) fn with_rule(rule: fn(&Store) -> u64) -> Self {
        Self { source: Source::Rule(rule), ..Self::new(1) }
    }

    fn refresh(&self) {
        let nets: i64 = self.nets.iter().map(|net| net.load(Ordering::Relaxed)).sum();
        let allocated = allocator_stats().allocated as i64;
        self.base.store(allocated - nets, Ordering::Relaxed);
    }

    /// Bytes in use, as of now. `worker` is the calling worker, if it is one.
    pub(crate) fn used_bytes(&self, store: &Store, worker: Option<usize>, now_ms: u64) -> u64 {
        let used = match self.source {
            #[cfg(test)]
            Source::Rule(rule) => rule(store),
            Source::Allocator => {
                let _ = store;
                if let Some(worker) = worker {
                    self.nets[worker].store(thread_net_bytes(), Ordering::Relaxed);
                }
                let last = self.refreshed_ms.load(Ordering::Relaxed);
                // One thread updates, the others go on with what they have.
                if now_ms.abs_diff(last) >= REFRESH_MS
                    && self
                        .refreshed_ms
                        .compare_exchange(last, now_ms, Ordering::Relaxed, Ordering::Relaxed)
                        .is_ok()
                {
                    self.refresh();
                }
                let nets: i64 = self.nets.iter().map(|net| net.load(Ordering::Relaxed)).sum();
                u64::try_from(self.base.load(Ordering::Relaxed) + nets).unwrap_or(0)
            }
        };
        self.peak.fetch_max(used, Ordering::Relaxed);
        used
    }

    /// The most bytes that were seen in use.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Bytes that were in use when the server started.
    pub(crate) fn startup_bytes(&self) -> u64 {
        self.startup
    }

    /// Values that were freed on another thread, and those that still wait for it.
    pub(crate) fn lazily_freed(&self) -> (u64, u64) {
        (self.leaving.freed.load(Ordering::Relaxed), self.leaving.pending.load(Ordering::Relaxed))
    }

    /// Milliseconds that memory was above the limit: in all, and by now without a break.
    pub(crate) fn over_limit_ms(&self, now_ms: u64) -> (u64, u64) {
        let since = self.over_since_ms.load(Ordering::Relaxed);
        let current = if since == 0 { 0 } else { now_ms.saturating_sub(since) };
        (self.over_limit_us.load(Ordering::Relaxed) / 1000 + current, current)
    }

    fn note_over(&self, is_over: bool, now_ms: u64) {
        let since = self.over_since_ms.load(Ordering::Relaxed);
        if is_over && since == 0 {
            self.over_since_ms.store(now_ms, Ordering::Relaxed);
        } else if !is_over && since != 0 && self.over_since_ms.swap(0, Ordering::Relaxed) != 0 {
            self.over_limit_us.fetch_add(now_ms.saturating_sub(since) * 1000, Ordering::Relaxed);
        }
    }

    /// Frees victims: small ones here, so that the memory is there; large ones elsewhere, and their bytes count as gone.
    fn free(&self, changes: &mut Changes) {
        for value in std::mem::take(&mut changes.garbage) {
            if value.as_ref().elements() <= FREE_INLINE_ELEMENTS_MAX {
                drop(value);
                continue;
            }
            let victim = Victim::new(value, &self.leaving);
            // Without a thread to be had, the closure and the victim in it are dropped here: late but right.
            let _ = std::thread::Builder::new().name("free".into()).spawn(move || drop(victim));
        }
    }
}

/// Where large victims are counted until they are freed.
#[derive(Debug, Default)]
struct Leaving {
    bytes: AtomicU64,
    pending: AtomicU64,
    freed: AtomicU64,
}

/// A large value on its way out.
#[derive(Debug)]
struct Victim {
    value: Option<Value>,
    bytes: u64,
    leaving: Arc<Leaving>,
}

impl Victim {
    fn new(value: Value, leaving: &Arc<Leaving>) -> Self {
        let bytes = value_bytes(value.as_ref());
        leaving.bytes.fetch_add(bytes, Ordering::Relaxed);
        leaving.pending.fetch_add(1, Ordering::Relaxed);
        Self { value: Some(value), bytes, leaving: Arc::clone(leaving) }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.value = None;
        self.leaving.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.leaving.pending.fetch_sub(1, Ordering::Relaxed);
        self.leaving.freed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes of a value by its structure's own account.
fn value_bytes(value: ValueRef<'_>) -> u64 {
    let bytes = match value {
        ValueRef::String(text) => text.len(),
        ValueRef::List(list) => list.mem_bytes(),
        ValueRef::Hash(hash) => hash.mem_bytes(),
        ValueRef::Set(set) => set.mem_bytes(),
        ValueRef::Zset(zset) => zset.mem_bytes(),
    };
    bytes as u64
}

/// What an attempt to get below the limit led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Memory is below the limit.
    Below,
    /// It is not, and there is more to evict; the work of one attempt is bounded.
    Going,
    /// It is not, and nothing may be evicted.
    Stuck,
}

const OUT_OF_MEMORY: CommandError =
    CommandError::Text("OOM command not allowed when used memory > 'maxmemory'.");

/// Evicts until the limit holds, or refuses a command that needs memory. The caller holds no slot.
///
/// # Errors
/// `OOM` for a command that needs memory, or that would be queued inside `MULTI`, while nothing can be evicted.
pub(crate) fn make_room(
    local: &mut Local,
    command: &'static Command,
    in_multi: bool,
    now_ms: u64,
) -> Result<(), CommandError> {
    if evict(local, EVICTIONS_PER_COMMAND_MAX, now_ms) != Outcome::Stuck {
        return Ok(());
    }
    // A queue takes memory whatever is queued; what ends or drops it must go through.
    let ends_multi = matches!(command.name, "exec" | "discard" | "quit" | "reset");
    let needs_memory = command.flags.contains(Flags::DENYOOM) || (in_multi && !ends_multi);
    if needs_memory { Err(OUT_OF_MEMORY) } else { Ok(()) }
}

/// Goes on evicting while no command does; part of a worker's background round.
pub(crate) fn tick(local: &mut Local, now_ms: u64) {
    if local.config.maxmemory > 0 && local.config.maxmemory_policy != Policy::NoEviction {
        evict(local, EVICTIONS_PER_ROUND_MAX, now_ms);
    } else {
        local.shared.memory.used_bytes(&local.shared.store, Some(local.worker), now_ms);
    }
}

fn evict(local: &mut Local, count_max: usize, now_ms: u64) -> Outcome {
    let shared = Arc::clone(&local.shared);
    let limit = local.config.maxmemory;
    if !is_above(&shared, limit, local.worker, now_ms) {
        shared.memory.note_over(false, now_ms);
        return Outcome::Below;
    }
    let (started, settings) = (Instant::now(), Arc::clone(&local.settings));
    let (mut outcome, mut evicted) = (Outcome::Going, 0);
    while evicted < count_max {
        let samples = local.config.maxmemory_samples;
        if !local.evictor.evict_one(&shared.store, &settings, &mut local.changes, now_ms, samples) {
            outcome = Outcome::Stuck;
            break;
        }
        evicted += 1;
        shared.memory.free(&mut local.changes);
        if !is_above(&shared, limit, local.worker, now_ms) {
            outcome = Outcome::Below;
            break;
        }
        if evicted % EVICTIONS_PER_LOOK == 0 && started.elapsed() > EVICTION_TURN {
            break;
        }
    }
    shared.memory.note_over(outcome != Outcome::Below, now_ms);
    if evicted > 0 {
        shared.stats.worker(local.worker).evicted.add(evicted as u64);
        shared.latency.offer(&local.config, "eviction-cycle", started.elapsed(), now_ms);
        followups::work_off(local, None, now_ms);
    }
    outcome
}

fn is_above(shared: &Shared, limit: u64, worker: usize, now_ms: u64) -> bool {
    let used = shared.memory.used_bytes(&shared.store, Some(worker), now_ms);
    used.saturating_sub(shared.memory.leaving.bytes.load(Ordering::Relaxed)) > limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::{START_MS, Server};

    /// A server in which each key takes 100 bytes.
    fn server(maxmemory: u64, policy: Policy) -> Server {
        let config = Config { workers: 1, maxmemory, maxmemory_policy: policy, ..Config::default() };
        let mut shared = Shared::new(config, "0".repeat(40), START_MS);
        shared.memory = Meter::with_rule(|store| store.len(0) as u64 * 100);
        Server::with_shared(shared)
    }

    fn info(server: &mut Server, field: &str) -> u64 {
        let text = server.line("INFO everything");
        let line = text.split(' ').find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap();
        line.parse().unwrap()
    }

    #[test]
    fn keys_are_evicted_until_the_limit_holds() {
        let mut server = server(1000, Policy::AllKeysLru);
        for i in 0..50 {
            assert_eq!(server.run(&["SET", &format!("k{i}"), "v"]), "+OK");
        }
        assert!(server.local.shared.store.len(0) <= 11);
        assert_eq!(info(&mut server, "evicted_keys"), 40);
        assert_eq!(server.line("GET k49"), "$1 v");
    }

    #[test]
    fn without_a_policy_only_what_needs_memory_is_refused() {
        let oom = "-OOM command not allowed when used memory > 'maxmemory'.";
        let mut server = server(200, Policy::NoEviction);
        for key in ["a", "b", "c"] {
            assert_eq!(server.run(&["SET", key, "v"]), "+OK");
        }
        assert_eq!(server.line("SET d v"), oom);
        assert_eq!(server.line("GET a"), "$1 v");
        server.line("MULTI");
        assert_eq!(server.line("GET a"), oom, "a queue takes memory");
        assert!(server.line("EXEC").starts_with("-EXECABORT"));
        assert!(server.line("INFO errorstats").contains("errorstat_OOM:count=2"));
    }

    #[test]
    fn memory_that_is_freed_lets_commands_through_again() {
        let mut server = server(200, Policy::NoEviction);
        for key in ["a", "b", "c"] {
            server.run(&["SET", key, "v"]);
        }
        assert!(server.line("SET d v").starts_with("-OOM"));
        server.line("DEL a");
        assert_eq!(server.line("SET d v"), "+OK");
    }

    #[test]
    fn volatile_policies_take_only_keys_that_expire() {
        let mut server = server(300, Policy::VolatileTtl);
        for line in ["SET a v", "SET b v EX 50", "SET c v EX 10", "SET d v EX 100"] {
            assert_eq!(server.line(line), "+OK");
        }
        assert_eq!(server.line("SET e v"), "+OK");
        assert_eq!(server.line("EXISTS a d"), ":2");
        assert_eq!(server.line("EXISTS b c"), ":0", "the first to expire go first");
        for key in ["f", "g", "h", "i"] {
            server.run(&["SET", key, "v"]);
        }
        assert!(server.line("SET j v").starts_with("-OOM"), "nothing is left that may go");
        assert_eq!(server.line("EXISTS a"), ":1");
    }

    #[test]
    fn one_command_evicts_a_bounded_number_and_rounds_go_on() {
        let mut server = server(0, Policy::AllKeysRandom);
        server.line("DEBUG POPULATE 2000");
        server.line("CONFIG SET maxmemory 100");
        assert_eq!(server.line("PING"), "+PONG");
        let evicted = 2000 - server.local.shared.store.len(0);
        assert!((1..=EVICTIONS_PER_COMMAND_MAX).contains(&evicted), "{evicted}");
        while server.local.shared.store.len(0) > 1 {
            let before = server.local.shared.store.len(0);
            tick(&mut server.local, START_MS);
            assert!(server.local.shared.store.len(0) < before);
        }
    }

    #[test]
    fn evictions_are_notified() {
        let mut server = server(100, Policy::AllKeysRandom);
        server.line("CONFIG SET notify-keyspace-events KEe");
        server.line("SET a v");
        server.line("SET b v");
        server.line("PING");
        assert!(server.local.changes.notes.is_empty(), "published, not left behind");
        assert_eq!(server.local.shared.store.len(0), 1);
    }

    #[test]
    fn the_allocators_numbers_follow_what_is_allocated() {
        let (meter, store) = (Meter::new(1), Store::new());
        let before = meter.used_bytes(&store, Some(0), 1000);
        let block = vec![1u8; 256 << 20];
        let after = meter.used_bytes(&store, Some(0), 1000);
        assert!(after > before + (200 << 20), "{before} {after}: seen at once, without an update");
        assert!(meter.peak_bytes() >= after && meter.startup_bytes() > 0);
        drop(block);
        let freed = meter.used_bytes(&store, Some(0), 1000);
        assert!(freed < after - (200 << 20), "{freed} {after}");
    }

    #[test]
    fn large_victims_are_freed_elsewhere_and_count_as_gone() {
        let leaving = Arc::new(Leaving::default());
        let victim = Victim::new(Value::Bytes(vec![0; 1000]), &leaving);
        assert_eq!(
            (leaving.bytes.load(Ordering::Relaxed), leaving.pending.load(Ordering::Relaxed)),
            (1000, 1)
        );
        drop(victim);
        assert_eq!((leaving.bytes.load(Ordering::Relaxed), leaving.freed.load(Ordering::Relaxed)), (0, 1));
    }
}
