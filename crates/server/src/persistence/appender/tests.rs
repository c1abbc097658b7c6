//! The appender as a machine: commands are executed by a server without sockets, files are in memory, time is given.

use super::*;
use crate::persistence::disk::Disk;
use crate::persistence::memory_disk::{MemoryDisk, SharedDisk};
use crate::testing::{START_MS, Server};
use e2e::diff;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use towline_persist::aof::{LogEvent, LogLimits, LogReader};
use towline_persist::directory::RewriteKind;
use towline_store::stream::{Image, Waiting};

mod faults;
mod holding;

/// What a log holds: units, each a list of command lines, without `SELECT`.
fn units(bytes: &[u8]) -> Vec<Vec<String>> {
    let mut reader = LogReader::new(LogLimits::default());
    reader.feed(bytes);
    reader.end();
    let (mut units, mut open) = (Vec::new(), None::<Vec<String>>);
    loop {
        match reader.next_event().expect("the log is sound") {
            LogEvent::Command(command) => {
                let words: Vec<Vec<u8>> = command.args.iter().map(<[u8]>::to_vec).collect();
                let line = diff::command_line(&words);
                match line.as_str() {
                    "MULTI" => open = Some(Vec::new()),
                    "EXEC" => units.extend(open.take()),
                    line if line.starts_with("SELECT ") => {}
                    _ => match &mut open {
                        Some(open) => open.push(line),
                        None => units.push(vec![line]),
                    },
                }
            }
            LogEvent::End(_) => return units,
            _ => {}
        }
    }
}

/// A server, its log, and the disk.
struct Bench {
    server: Server,
    core: Appender,
    disk: Arc<MemoryDisk>,
    now: Now,
    wakes: Arc<AtomicU64>,
    files: u32,
}

impl Bench {
    fn new(fsync: AppendFsync) -> Self {
        let wakes = Arc::new(AtomicU64::new(0));
        let wake: Wake = {
            let wakes = Arc::clone(&wakes);
            Arc::new(move |_: Waiting| _ = wakes.fetch_add(1, Ordering::Relaxed))
        };
        let server = Server::new();
        server.local.shared.persistence.gate.set_always(fsync == AppendFsync::Always);
        Self {
            server,
            core: Appender::new(Policy { fsync, ..Policy::default() }, wake),
            disk: MemoryDisk::new(),
            now: Now { instant: Instant::ZERO, unix_ms: START_MS },
            wakes,
            files: 0,
        }
    }

    /// As [`Bench::new`], with a log that has begun.
    fn begun(fsync: AppendFsync) -> Self {
        let mut bench = Self::new(fsync);
        bench.begin();
        bench
    }

    fn begin(&mut self) {
        let (file, name) = self.create();
        let shared = Arc::clone(&self.server.local.shared);
        let (store, gate) = (&shared.store, &shared.persistence.gate);
        self.core.begin(file, name, 0, store, gate, self.now).expect("it is off");
    }

    fn create(&mut self) -> (Box<dyn DiskFile>, String) {
        self.files += 1;
        let name = self.files.to_string();
        let file = SharedDisk(Arc::clone(&self.disk)).create(Path::new(&name)).expect("this does not fail");
        (file, name)
    }

    fn gate(&self) -> &Gate {
        &self.server.local.shared.persistence.gate
    }

    /// Executes a command and says what its reply tells of.
    fn run(&mut self, line: &str) -> (String, u64) {
        self.server.local.forget_position();
        let reply = self.server.line(line);
        (reply, self.server.local.take_position())
    }

    /// A turn, and the sync that it asks for.
    fn turn(&mut self) -> Turn {
        let shared = Arc::clone(&self.server.local.shared);
        let mut turn = self.core.turn(&shared.store, &shared.persistence.gate, self.now);
        if let Some(job) = turn.sync.take() {
            self.core.synced(job.run(), &shared.persistence.gate, self.now);
        }
        turn
    }

    fn advance(&mut self, by: Duration) {
        self.now.instant = self.now.instant + by;
        self.now.unix_ms += by.as_millis() as u64;
    }

    /// Switches to a new file, and takes the base's keys.
    fn switch(&mut self, kind: RewriteKind) -> Result<Vec<String>, AppendError> {
        let (file, name) = self.create();
        let shared = Arc::clone(&self.server.local.shared);
        let (store, gate) = (&shared.store, &shared.persistence.gate);
        let base = stream::Config { follows: false, ..stream::Config::default() };
        let mut snapshot = self.core.switch(kind, file, name, &base, store, gate, self.now)?;
        let (mut batch, mut keys) = (Batch::default(), Vec::new());
        loop {
            let progress = snapshot.next(store, &mut batch).expect("nothing is written meanwhile");
            for image in batch.images() {
                if let Image::Key { head, .. } | Image::Begin { head, .. } = image {
                    keys.push(String::from_utf8_lossy(head.key).into_owned());
                }
            }
            if progress.is_snapshot_done && batch.is_empty() {
                snapshot.close(store);
                keys.sort();
                return Ok(keys);
            }
        }
    }

    fn committed(&mut self) {
        let shared = Arc::clone(&self.server.local.shared);
        self.core.committed(&shared.persistence.gate, self.now);
    }

    fn given_up(&mut self) {
        let shared = Arc::clone(&self.server.local.shared);
        self.core.given_up(&shared.store, &shared.persistence.gate, self.now);
    }

    fn units(&self, file: u32) -> Vec<String> {
        let units = units(&self.disk.content(&file.to_string()).bytes);
        units.into_iter().map(|unit| unit.join(" | ")).collect()
    }
}

#[test]
fn commands_become_units_in_order_with_their_databases() {
    let mut bench = Bench::begun(AppendFsync::Always);
    for line in
        ["SET a 1", "SELECT 3", "RPUSH l x y", "MULTI", "INCR n", "INCR n", "SELECT 0", "DEL a", "EXEC"]
    {
        bench.run(line);
    }
    bench.run("SET b 2");
    assert!(bench.turn().is_busy);
    assert!(!bench.turn().is_busy);
    assert_eq!(bench.units(1), ["SET a 1", "RPUSH l x y", "SET n 1 | SET n 2 | DEL a", "SET b 2"]);
    let text = String::from_utf8(bench.disk.content("1").bytes).expect("these are");
    let selects: Vec<&str> = text.split("SELECT").skip(1).map(|rest| &rest[6..7]).collect();
    assert_eq!(selects, ["0", "3", "0"]);
    assert_eq!((bench.gate().durable(), bench.disk.syncs()), (4, 1));
}

#[test]
fn a_reply_tells_of_its_write_and_of_what_its_slot_has_seen() {
    let mut bench = Bench::begun(AppendFsync::Always);
    assert_eq!(bench.run("GET a"), ("$-1".into(), 0));
    assert_eq!(bench.run("SET a 1"), ("+OK".into(), 1));
    assert_eq!(bench.run("SET b 1"), ("+OK".into(), 2));
    assert_eq!(bench.run("GET a").1, 1, "whoever reads it tells of it");
    assert_eq!(bench.run("GET c").1, 0, "another slot");
    assert_eq!(bench.run("MGET a b c").1, 2);
    assert_eq!(bench.run("PING").1, 0);
    assert_eq!(bench.run("FLUSHALL").1, 3);
    assert_eq!(bench.run("GET c").1, 3, "it was flushed as well");
    assert!(bench.gate().holds(1));
    bench.turn();
    assert!(!bench.gate().holds(3));
}

#[test]
fn reads_are_not_held_while_the_log_has_failed() {
    let mut bench = Bench::begun(AppendFsync::Always);
    bench.run("SET a 1");
    bench.disk.fail_all(true);
    bench.turn();
    assert_eq!(bench.run("GET a"), ("$1 1".into(), 0));
    let (reply, position) = bench.run("SET a 2");
    assert!(reply.starts_with("-MISCONF Errors writing to the AOF file: operation"), "{reply}");
    assert_eq!(position, 0);
    bench.disk.fail_all(false);
    bench.advance(RETRY_MAX);
    bench.turn();
    assert_eq!(bench.run("GET a"), ("$1 1".into(), 1));
    assert!(!bench.gate().holds(1));
}

#[test]
fn everysec_syncs_once_a_second_and_counts_what_is_late() {
    let mut bench = Bench::begun(AppendFsync::EverySec);
    bench.run("SET a 1");
    bench.turn();
    assert_eq!(bench.disk.syncs(), 1);
    assert!(!bench.gate().holds(1), "nothing is held under this policy");
    bench.run("SET a 2");
    let turn = bench.turn();
    assert_eq!((turn.at, bench.disk.syncs()), (Some(Instant::ZERO + SYNC_EVERY), 1));
    bench.advance(SYNC_EVERY);
    let shared = Arc::clone(&bench.server.local.shared);
    let job = bench.core.turn(&shared.store, &shared.persistence.gate, bench.now).sync.expect("one is due");
    bench.run("SET a 3");
    bench.advance(SYNC_EVERY);
    assert!(bench.turn().sync.is_none());
    assert_eq!(bench.core.status().delayed_fsyncs, 1);
    bench.core.synced(job.run(), &shared.persistence.gate, bench.now);
    assert_eq!((bench.gate().durable(), bench.core.status().is_sync_running), (2, false));
    assert_eq!(bench.units(1).len(), 3, "writing did not wait for it");
}

#[test]
fn a_switch_splits_the_units_at_its_instant() {
    let mut bench = Bench::begun(AppendFsync::Always);
    bench.run("SET a 1");
    assert_eq!(bench.switch(RewriteKind::Replace).expect("it is on"), ["a"]);
    assert_eq!(bench.gate().durable(), 1);
    bench.run("SET b 1");
    bench.turn();
    bench.committed();
    assert_eq!((bench.units(1), bench.units(2)), (vec!["SET a 1".to_owned()], vec!["SET b 1".to_owned()]));
    assert_eq!(bench.gate().durable(), 2);
    assert!(bench.gate().is_open());
}

#[test]
fn a_log_whose_files_were_adopted_promises_at_once() {
    let mut bench = Bench::new(AppendFsync::Always);
    bench.run("SET a 1");
    assert_eq!(bench.switch(RewriteKind::Replace).expect("it is off"), ["a"]);
    assert_eq!(bench.run("SET b 1").1, 1);
    assert!(bench.gate().holds(1));
    bench.turn();
    assert!(!bench.gate().holds(1));
    bench.given_up();
    assert_eq!((bench.run("SET c 1").1, bench.units(1)), (2, vec!["SET b 1".to_owned()]));
}

#[test]
fn a_log_that_is_being_enabled_promises_nothing_before_its_base_is_in_force() {
    let mut bench = Bench::new(AppendFsync::Always);
    assert_eq!(bench.run("SET a 1").1, 0);
    assert_eq!(bench.switch(RewriteKind::Enable).expect("it is off"), ["a"]);
    assert!(matches!(bench.switch(RewriteKind::Replace), Err(AppendError::State(_))));
    assert_eq!(bench.run("SET b 1").1, 1);
    bench.turn();
    assert_eq!((bench.gate().durable(), bench.gate().holds(1)), (0, false));
    bench.given_up();
    assert_eq!(bench.run("SET c 1").1, 0, "it is off again");
    assert!(!bench.core.status().is_on);
    assert_eq!(bench.switch(RewriteKind::Enable).expect("it is off"), ["a", "b", "c"]);
    assert_eq!(bench.run("SET d 1").1, 2, "positions go on");
    bench.committed();
    assert!(bench.gate().holds(2));
    bench.turn();
    assert!(!bench.gate().holds(2));
    assert_eq!(bench.units(bench.files), ["SET d 1"]);
}

#[test]
fn after_an_overrun_every_write_waits_for_the_next_base() {
    let mut bench = Bench::new(AppendFsync::Always);
    bench.core.tail_bytes_max = 1000;
    bench.begin();
    let big = "x".repeat(501);
    assert_eq!(bench.run(&format!("SET a {big}")).1, 1);
    assert_eq!(bench.run(&format!("SET b {big}")).1, 2);
    assert_eq!(bench.run("SET c 1").1, 3, "this one is lost, and its reply waits nevertheless");
    assert_eq!(bench.run("SET d 1").1, 4);
    let turn = bench.turn();
    assert!(bench.gate().is_log_failed());
    assert!(turn.wants_recovery || bench.turn().wants_recovery);
    assert_eq!(bench.run("GET d").0, "$1 1");
    assert!(bench.run("SET e 1").0.starts_with("-MISCONF"));
    assert!(matches!(bench.switch(RewriteKind::Replace), Err(AppendError::State(_))));
    assert_eq!(bench.switch(RewriteKind::Enable).expect("it has failed"), ["a", "b", "c", "d"]);
    assert!(bench.gate().holds(1) && bench.gate().is_log_failed());
    bench.committed();
    assert!(!bench.gate().holds(4) && bench.gate().is_open());
    assert_eq!(bench.run("SET e 1").1, 5);
    bench.turn();
    assert_eq!((bench.units(bench.files), bench.gate().durable()), (vec!["SET e 1".to_owned()], 5));
}

#[test]
fn a_recovery_that_is_given_up_is_asked_for_again() {
    let mut bench = Bench::begun(AppendFsync::Always);
    bench.run("SET a 1");
    let next = bench.disk.operations();
    bench.disk.fail(next + 1..next + 2);
    assert!(bench.turn().wants_recovery && !bench.turn().wants_recovery);
    bench.switch(RewriteKind::Enable).expect("it has failed");
    bench.given_up();
    assert!(!bench.turn().wants_recovery);
    bench.advance(RECOVER_REST);
    assert!(bench.turn().wants_recovery);
    assert_eq!(bench.switch(RewriteKind::Enable).expect("it has failed"), ["a"]);
    bench.committed();
    assert!(bench.gate().is_open() && !bench.gate().holds(1));
}

#[test]
fn stopping_writes_all_and_lets_everything_go() {
    let mut bench = Bench::begun(AppendFsync::Always);
    bench.run("SET a 1");
    let shared = Arc::clone(&bench.server.local.shared);
    bench.core.stop(&shared.store, &shared.persistence.gate, bench.now).expect("the disk works");
    assert_eq!(bench.disk.content("1").synced, bench.disk.content("1").bytes);
    assert_eq!(bench.units(1), ["SET a 1"]);
    assert_eq!(bench.run("SET b 1").1, 0);
    assert!(!bench.gate().holds(u64::MAX));
}

#[test]
fn much_that_waits_holds_writes_back_and_calls_the_appender_now_and_then() {
    let mut bench = Bench::begun(AppendFsync::EverySec);
    let value = "x".repeat(WAKE_BYTES / 4);
    for _ in 0..16 {
        bench.run(&format!("SET a {value}"));
    }
    let wakes = bench.wakes.load(Ordering::Relaxed);
    assert!((4..=6).contains(&wakes), "the first of all and one for each MiB: {wakes}");
    bench.gate().set_crowded(true);
    assert_eq!(bench.server.line("SET a 1"), "(crowded)");
    assert_eq!(bench.server.line("GET b"), "$-1");
    bench.turn();
    assert_eq!(bench.server.line("SET a 1"), "+OK");
}

#[test]
fn timestamps_stand_between_units() {
    let mut bench = Bench::begun(AppendFsync::No);
    let shared = Arc::clone(&bench.server.local.shared);
    let policy = Policy { fsync: AppendFsync::No, timestamps: true, pause_sync: false };
    bench.core.set_policy(policy, &shared.store, &shared.persistence.gate, bench.now);
    bench.run("SET a 1");
    bench.run("SET a 2");
    bench.turn();
    let text = String::from_utf8(bench.disk.content("1").bytes).expect("it is");
    assert!(text.starts_with("#TS:1700000000\r\n*2\r\n"), "{text}");
    assert_eq!((text.matches("#TS:").count(), bench.units(1).len()), (1, 2));
}
