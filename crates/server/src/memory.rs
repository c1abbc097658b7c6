//! Memory: how much is used, and keeping it below the limit.
//!
//! Owns: measuring and deciding. Does **not** own the choice of victims (see `towline_store::evict`).
//!
//! The allocator's own statistics are exact, and cost microseconds to bring up to date. In between, each worker publishes
//! what its thread allocated and freed, so that the sum follows every command; so do the threads that free what is large.
//!
//! The work of eviction comes in short turns. A command that needs memory and brings little runs after one turn, in which
//! more is evicted than it brings. One that brings much is held back, turn after turn, until the limit holds: so memory
//! exceeds the limit by what is on its way in, never by what came before, and no other client waits longer than a turn.

use crate::command::CommandError;
use crate::execute::Local;
use crate::leaving::Leaving;
use crate::{followups, shared::Shared};
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tikv_jemalloc_ctl::{Access, AsName, epoch, stats, thread};
use towline_spec::{Command, Flags};
use towline_store::evict::Policy;
use towline_store::store::Store;

/// The allocator's statistics are brought up to date no more often than this.
const REFRESH_MS: u64 = 5;
/// Keys that a command evicts at most; a limit that was lowered far is reached over many commands and rounds.
const EVICTIONS_PER_COMMAND_MAX: usize = 128;
/// A command that brings more bytes than this is held back while memory is above the limit. The smallest entries take more
/// than 32 bytes, so that what a command of fewer bytes evicts is more than what it brings.
const BROUGHT_BYTES_MAX: usize = 4096;
/// Time that one turn evicts for at most: what Redis takes by default.
const EVICTION_TURN: Duration = Duration::from_micros(500);
/// Keys that are evicted between two looks at the clock.
const EVICTIONS_PER_LOOK: usize = 16;
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

/// Gives the pages that hold nothing back to the system, as the allocator itself does some time after they were freed.
///
/// There is a call for it that takes no argument, which the bindings cannot make; but an arena whose waiting time is set to 0
/// gives everything back at once.
pub(crate) fn purge() {
    let count = tikv_jemalloc_ctl::arenas::narenas::read().unwrap_or(0);
    for (arena, kind) in (0..count).flat_map(|arena| [(arena, "dirty"), (arena, "muzzy")]) {
        let name = format!("arena.{arena}.{kind}_decay_ms\0");
        let name = name.as_bytes().name();
        // An arena that nobody has used yet cannot be read.
        let before: tikv_jemalloc_ctl::Result<isize> = name.read();
        if let Ok(before) = before {
            let _ = name.write(0isize).and_then(|()| name.write(before));
        }
    }
}

type ThreadCounters = (thread::ThreadLocal<u64>, thread::ThreadLocal<u64>);

/// What the calling thread allocated minus what it freed, in bytes.
pub(crate) fn thread_net_bytes() -> i64 {
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
    /// What is being freed on threads of its own.
    pub(crate) leaving: Arc<Leaving>,
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
        let nets = self.net_bytes();
        let allocated = allocator_stats().allocated as i64;
        self.base.store(allocated - nets, Ordering::Relaxed);
    }

    /// What all threads allocated minus what they freed, by their last word.
    fn net_bytes(&self) -> i64 {
        self.nets.iter().map(|net| net.load(Ordering::Relaxed)).sum::<i64>() + self.leaving.net_bytes()
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
                u64::try_from(self.base.load(Ordering::Relaxed) + self.net_bytes()).unwrap_or(0)
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

/// Whether a command may run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// It may.
    Here,
    /// It brings much, and the limit does not hold yet: ask again after others had their turn.
    Later,
}

/// Evicts for one turn, and says what becomes of the command: `brought` counts the bytes that it brings, and is asked only
/// if memory is above the limit. The caller holds no slot.
///
/// # Errors
/// `OOM` for a command that needs memory, or that would be queued inside `MULTI`, while nothing can be evicted.
pub(crate) fn make_room(
    local: &mut Local,
    command: &'static Command,
    in_multi: bool,
    brought: impl FnOnce() -> usize,
    now_ms: u64,
) -> Result<Room, CommandError> {
    let outcome = evict(local, EVICTIONS_PER_COMMAND_MAX, now_ms);
    if outcome == Outcome::Below {
        return Ok(Room::Here);
    }
    // A queue takes memory whatever is queued; what ends or drops it must go through.
    let ends_multi = matches!(command.name, "exec" | "discard" | "quit" | "reset");
    let needs_memory = command.flags.contains(Flags::DENYOOM) || (in_multi && !ends_multi);
    match outcome {
        Outcome::Stuck if needs_memory => Err(OUT_OF_MEMORY),
        Outcome::Going if (needs_memory || command.name == "exec") && brought() > BROUGHT_BYTES_MAX => {
            Ok(Room::Later)
        }
        _ => Ok(Room::Here),
    }
}

/// Whether `bytes` more fit below the limit for sure, so that nothing needs a look in between.
#[inline]
pub(crate) fn is_roomy(local: &Local, bytes: u64, now_ms: u64) -> bool {
    let limit = local.config.maxmemory;
    limit == 0
        || local
            .shared
            .memory
            .used_bytes(&local.shared.store, Some(local.worker), now_ms)
            .saturating_add(bytes)
            < limit
}

/// Goes on evicting for a turn while no command does; part of a worker's background round. `true` if there is more to do.
pub(crate) fn tick(local: &mut Local, now_ms: u64) -> bool {
    if local.config.maxmemory > 0 && local.config.maxmemory_policy != Policy::NoEviction {
        return evict(local, usize::MAX, now_ms) == Outcome::Going;
    }
    local.shared.memory.used_bytes(&local.shared.store, Some(local.worker), now_ms);
    false
}

/// One turn of eviction.
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
            // What is being freed may be enough.
            outcome = if shared.memory.leaving.is_any() { Outcome::Going } else { Outcome::Stuck };
            break;
        }
        evicted += 1;
        let garbage = std::mem::take(&mut local.changes.garbage);
        Leaving::free(&shared.memory.leaving, garbage, Vec::new());
        if !is_above(&shared, limit, local.worker, now_ms) {
            outcome = Outcome::Below;
            break;
        }
        if evicted % EVICTIONS_PER_LOOK == 0 && started.elapsed() > EVICTION_TURN {
            break;
        }
    }
    // Freed between the last look and the one at what is leaving.
    if outcome == Outcome::Stuck && !is_above(&shared, limit, local.worker, now_ms) {
        outcome = Outcome::Below;
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
    used.saturating_sub(shared.memory.leaving.bytes()) > limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::{START_MS, Server};

    /// A server in which each key takes 100 bytes.
    fn server(maxmemory: u64, policy: Policy) -> Server {
        let config = Config { workers: 1, maxmemory, maxmemory_policy: policy, ..Config::default() };
        let mut shared =
            Shared::new(config, Arc::new(crate::persistence::disk::RealDisk), "0".repeat(40), START_MS);
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

    /// Held by tests that compare the allocator's numbers before and after: each allocates much.
    static MUCH: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn a_purge_gives_free_pages_back() {
        let _alone = MUCH.lock();
        let blocks: Vec<_> = (0..64).map(|_| vec![1u8; 1 << 20]).collect();
        drop(blocks);
        // Other tests allocate meanwhile, but far less.
        let resident = || allocator_stats().resident;
        let before = resident();
        purge();
        assert!(resident() + (32 << 20) < before, "{before} {}", resident());
    }

    #[test]
    fn the_allocators_numbers_follow_what_is_allocated() {
        let _alone = MUCH.lock();
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
    fn a_command_that_brings_much_waits_until_the_limit_holds() {
        let mut server = server(0, Policy::AllKeysRandom);
        server.line("DEBUG POPULATE 2000");
        server.line("CONFIG SET maxmemory 1000");
        let big = "x".repeat(BROUGHT_BYTES_MAX + 1);
        let mut turns = 0;
        while server.run(&["SET", "big", &big]) == "(crowded)" {
            turns += 1;
            assert!(server.local.shared.store.len(0) > 10 && turns < 2000, "held back for nothing");
        }
        assert!(turns > 0 && server.local.shared.store.len(0) <= 11, "{turns}");
        assert_eq!(server.line("EXISTS big"), ":1");
    }

    #[test]
    fn a_transaction_that_brings_much_waits_as_well() {
        let mut server = server(0, Policy::AllKeysRandom);
        server.line("MULTI");
        let some = "x".repeat(BROUGHT_BYTES_MAX - 100);
        for key in ["a", "b"] {
            assert_eq!(server.run(&["SET", key, &some]), "+QUEUED");
        }
        let mut second = server.second();
        server.line_as(&mut second, "DEBUG POPULATE 2000");
        server.line_as(&mut second, "CONFIG SET maxmemory 1000");
        assert_eq!(server.line("EXEC"), "(crowded)");
        assert_eq!(server.line("DISCARD"), "+OK", "what needs no memory never waits");
    }

    #[test]
    fn nothing_is_refused_while_something_is_being_freed() {
        let mut server = server(100, Policy::NoEviction);
        server.line("SET a v");
        server.line("SET b v");
        let part = crate::leaving::hold_back(&server.local.shared.memory.leaving, 10);
        assert_eq!(server.line("SET c v"), "+OK");
        assert_eq!(server.run(&["SET", "d", &"x".repeat(BROUGHT_BYTES_MAX + 1)]), "(crowded)");
        drop(part);
        assert!(server.line("SET d v").starts_with("-OOM"));
    }
}
