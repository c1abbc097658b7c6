//! The keeper without its thread, at a time that the test tells.

mod log;
mod reload;

use super::core::{Core, When};
use super::{Now, Request};
use crate::config::{AppendFsync, Config, SavePoint};
use crate::persistence::appender;
use crate::persistence::faulty_disk::{Fault, FaultyDisk};
use crate::persistence::loading;
use crate::shared::{Shared, Stop};
use crate::testing::{START_MS, Server};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use towline_persist::rdb_file::RdbChecker;
use towline_rdb::Limits;
use towline_sansio::Instant;

/// A server with one client and a keeper that takes steps when it is told to.
struct World {
    server: Server,
    disk: FaultyDisk,
    core: Core,
    requests: Receiver<Request>,
    at: Instant,
}

const DUMP: &str = "/data/dump.rdb";

impl World {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let disk = FaultyDisk::default();
        let mut config = Config { workers: 1, dir: "/data".into(), ..Config::default() };
        change(&mut config);
        let shared = Shared::new(config, Arc::new(disk.clone()), "0".repeat(40), START_MS);
        let server = Server::with_shared(shared);
        let shared = Arc::clone(&server.local.shared);
        let requests = shared.persistence.keeper.receiver().unwrap();
        let now = Now { at: Instant::ZERO, unix_ms: START_MS };
        Self { server, disk, core: Core::new(shared, now), requests, at: Instant::ZERO }
    }

    /// With the appender's thread, and a log that was begun or loaded.
    fn with_log(disk: &FaultyDisk, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config { workers: 1, dir: "/data".into(), ..Config::default() };
        config.persistence.appendonly = true;
        config.persistence.appendfsync = AppendFsync::No;
        change(&mut config);
        let prepared = loading::prepare(&config, disk).unwrap();
        let shared = Shared::new(config, Arc::new(disk.clone()), "0".repeat(40), START_MS);
        let server = Server::with_shared(shared);
        let shared = Arc::clone(&server.local.shared);
        appender::start(&shared).unwrap();
        let requests = shared.persistence.keeper.receiver().unwrap();
        let now = Now { at: Instant::ZERO, unix_ms: START_MS };
        let core = super::start(&shared, prepared, || now).unwrap();
        Self { server, disk: disk.clone(), core, requests, at: Instant::ZERO }
    }

    fn with_save_points(points: &[(u64, u64)]) -> Self {
        let point = |&(seconds, changes)| SavePoint { seconds, changes };
        Self::new(|config| config.persistence.save = points.iter().map(point).collect())
    }

    fn now(&self) -> Now {
        Now { at: self.at, unix_ms: self.server.now_ms }
    }

    /// One turn.
    fn turn(&mut self) -> When {
        // Changes are counted at the end of each batch of commands.
        self.server.dirty();
        while let Ok(request) = self.requests.try_recv() {
            self.core.handle(request, self.now());
        }
        self.core.turn(self.now())
    }

    /// Turns until there is nothing to do at present.
    fn drive(&mut self) {
        while self.turn() == When::AtOnce {}
    }

    fn advance(&mut self, duration: Duration) {
        self.at = self.at + duration;
        self.server.advance(duration.as_millis() as u64);
    }

    fn line(&mut self, line: &str) -> String {
        self.server.line(line)
    }

    /// Runs a command that waits for the keeper, and gives its answer.
    fn ask(&mut self, line: &str) -> String {
        let waiter = self.server.wait(line);
        self.drive();
        Server::served(&waiter)
    }

    fn info(&mut self, name: &str) -> String {
        let info = self.line("INFO persistence");
        let value = info.split(' ').find_map(|word| word.strip_prefix(&format!("{name}:")));
        value.unwrap_or_else(|| panic!("{name} is not in {info}")).to_owned()
    }

    /// Keys in the file, which is sound.
    fn keys_in_file(&self) -> Option<u64> {
        let file = self.disk.content(DUMP)?;
        let mut checker = RdbChecker::new(Limits::default(), false);
        checker.feed(&file).unwrap();
        Some(checker.finish().unwrap().keys)
    }

    fn has_stopped(&self) -> bool {
        *self.server.local.shared.stopping().borrow() == Stop::Gracefully
    }

    /// Enough data for several steps.
    fn fill(&mut self) {
        self.line("DEBUG POPULATE 300 k 2000");
    }
}

#[test]
fn save_waits_for_a_file_that_is_whole() {
    let mut world = World::new(|_| ());
    world.fill();
    world.line("SELECT 3");
    world.line("SET other database EX 100");
    assert_eq!(world.info("rdb_changes_since_last_save"), "301");
    world.advance(Duration::from_secs(7));
    let waiter = world.server.wait("SAVE");
    assert_eq!(world.turn(), When::AtOnce);
    assert_eq!(Server::served(&waiter), "");
    assert_eq!(world.keys_in_file(), None);
    assert_eq!(world.info("rdb_bgsave_in_progress"), "0");
    world.drive();
    assert_eq!(Server::served(&waiter), "+OK");
    assert_eq!(world.keys_in_file(), Some(301));
    assert_eq!(world.info("rdb_changes_since_last_save"), "0");
    assert_eq!(world.info("rdb_saves"), "1");
    assert_eq!(world.line("LASTSAVE"), format!(":{}", START_MS / 1000 + 7));
    assert_eq!(world.disk.paths(), [PathBuf::from(DUMP)]);
}

#[test]
fn the_words_of_a_snapshot_in_the_background() {
    let mut world = World::new(|_| ());
    world.fill();
    assert_eq!(world.line("BGSAVE x"), "-ERR syntax error");
    assert_eq!(world.line("BGSAVE SCHEDULE x"), "-ERR syntax error");
    assert_eq!(world.line("BGSAVE"), "+Background saving started");
    for _ in 0..2 {
        for line in ["BGSAVE", "BGSAVE SCHEDULE", "SAVE"] {
            assert_eq!(world.line(line), "-ERR Background save already in progress", "{line}");
        }
        assert_eq!(world.info("rdb_bgsave_in_progress"), "1");
        assert_eq!(world.turn(), When::AtOnce);
    }
    assert_ne!(world.info("current_save_keys_processed"), "0");
    assert_eq!(world.info("current_save_keys_total"), "300");
    world.advance(Duration::from_secs(2));
    assert_eq!(world.info("rdb_current_bgsave_time_sec"), "2");
    world.drive();
    assert_eq!(world.keys_in_file(), Some(300));
    assert_eq!(world.info("rdb_last_bgsave_time_sec"), "2");
    assert_eq!(world.info("rdb_current_bgsave_time_sec"), "-1");

    // Inside a transaction it is made behind it.
    world.line("MULTI");
    world.line("BGSAVE");
    assert_eq!(world.line("SAVE"), "-ERR Command not allowed inside a transaction");
    assert!(world.line("EXEC").starts_with("-EXECABORT"));
    world.line("MULTI");
    world.line("BGSAVE");
    world.line("SET new key");
    assert_eq!(world.line("EXEC"), "*2 +Background saving scheduled +OK");
    world.drive();
    assert_eq!(world.keys_in_file(), Some(301));
}

#[test]
fn a_snapshot_is_the_data_of_its_instant_whatever_is_written_meanwhile() {
    let mut world = World::new(|_| ());
    world.fill();
    world.line("BGSAVE");
    assert_eq!(world.turn(), When::AtOnce);
    world.line("FLUSHALL");
    world.line("SET only this");
    world.drive();
    assert_eq!(world.keys_in_file(), Some(300));
    // What came later is not saved: each key that was removed, the flush and the new key.
    assert_eq!(world.info("rdb_changes_since_last_save"), "302");
}

/// Whether what failed left nothing behind but the old file, or the new one as a whole.
fn check_after_failure(world: &World, old: &[u8]) {
    assert_eq!(world.disk.paths(), [PathBuf::from(DUMP)]);
    if world.disk.content(DUMP).unwrap() != old {
        assert_eq!(world.keys_in_file(), Some(301));
    }
}

#[test]
fn whichever_operation_of_a_save_fails_the_old_file_stays() {
    let mut failures = 0;
    for at in 1.. {
        let mut world = World::with_save_points(&[(60, 1)]);
        world.fill();
        assert_eq!(world.ask("SAVE"), "+OK");
        let old = world.disk.content(DUMP).unwrap();
        world.line("SET one more");
        world.disk.set_fault(Fault::At(at));
        let answer = world.ask("SAVE");
        if world.disk.operations() < at {
            assert_eq!(answer, "+OK");
            break;
        }
        if answer != "+OK" {
            failures += 1;
            assert!(answer.starts_with("-ERR Saving failed: "), "{answer}");
            check_after_failure(&world, &old);
            // As in Redis, only snapshots in the background decide about writes.
            assert_eq!(world.line("SET k v"), "+OK");
        }
        assert_eq!(world.ask("SAVE"), "+OK");
        assert_eq!(world.keys_in_file(), Some(301 + u64::from(answer != "+OK")));
    }
    assert!(failures > 10, "{failures}");
}

#[test]
fn whichever_operation_of_a_snapshot_in_the_background_fails_writes_are_refused_until_one_succeeds() {
    for fault in [Fault::At, Fault::From] {
        for at in 1.. {
            let mut world = World::with_save_points(&[(60, 1)]);
            world.fill();
            assert_eq!(world.ask("SAVE"), "+OK");
            let old = world.disk.content(DUMP).unwrap();
            world.line("SET one more");
            world.disk.set_fault(fault(at));
            assert_eq!(world.line("BGSAVE"), "+Background saving started");
            world.drive();
            let has_failed = world.info("rdb_last_bgsave_status") == "err";
            if world.disk.operations() < at {
                assert!(!has_failed);
                break;
            }
            world.disk.set_fault(Fault::None);
            if !has_failed {
                continue;
            }
            assert!(world.line("SET k v").starts_with("-MISCONF"));
            assert_eq!(world.line("GET k"), "$-1");
            if fault(0) == Fault::At(0) {
                check_after_failure(&world, &old);
            }
            // By itself, as the save point is still reached.
            world.advance(Duration::from_secs(61));
            world.drive();
            assert_eq!(world.info("rdb_last_bgsave_status"), "ok");
            check_after_failure(&world, &old);
            assert_eq!(world.line("SET k v"), "+OK");
        }
    }
}

#[test]
fn refusing_writes_follows_the_configuration() {
    let mut world = World::with_save_points(&[(60, 1)]);
    world.disk.set_fault(Fault::From(1));
    world.line("BGSAVE");
    world.drive();
    let mut is_refused = |line: &str| {
        assert_eq!(world.server.run(&line.split(' ').collect::<Vec<_>>()), "+OK");
        world.drive();
        world.line("SET k v").starts_with("-MISCONF")
    };
    assert!(is_refused("CONFIG SET maxmemory 0"));
    assert!(!is_refused("CONFIG SET stop-writes-on-bgsave-error no"));
    assert!(is_refused("CONFIG SET stop-writes-on-bgsave-error yes"));
    assert!(!is_refused("CONFIG SET save "));
}

#[test]
fn save_points_are_reached_by_time_and_changes_together() {
    let mut world = World::with_save_points(&[(60, 3), (300, 1)]);
    let second = Duration::from_secs(1);
    world.line("SET k 1");
    world.advance(299 * second);
    world.drive();
    assert_eq!(world.keys_in_file(), None);
    world.advance(second);
    world.drive();
    assert_eq!(world.keys_in_file(), Some(1));
    // Nothing has changed since.
    world.advance(3000 * second);
    world.drive();
    assert_eq!(world.info("rdb_saves"), "1");
    world.line("MSET a 1 b 2 c 3");
    world.drive();
    assert_eq!(world.info("rdb_saves"), "2");
    world.line("MSET a 1 b 2 c 3");
    world.advance(59 * second);
    world.drive();
    assert_eq!(world.info("rdb_saves"), "2");
    world.advance(second);
    assert!(matches!(world.turn(), When::At(_) | When::AtOnce));
    assert_eq!(world.info("rdb_saves"), "3");
}

#[test]
fn a_clock_that_is_set_moves_no_save_point_and_no_absolute_expiry() {
    const HOUR_MS: u64 = 3_600_000;
    for (to_ms, name) in [(START_MS - HOUR_MS, "back"), (START_MS + HOUR_MS, "on")] {
        let mut world = World::with_save_points(&[(60, 1)]);
        let expires_ms = START_MS + 10 * HOUR_MS;
        world.line(&format!("SET k v PXAT {expires_ms}"));
        world.advance(Duration::from_secs(30));
        world.server.now_ms = to_ms;
        world.drive();
        assert_eq!(world.keys_in_file(), None, "the clock was set {name}, and half a minute has passed");
        world.advance(Duration::from_secs(31));
        world.drive();
        assert_eq!(world.keys_in_file(), Some(1), "the clock was set {name}");
        assert_eq!(world.info("rdb_last_save_time"), (world.server.now_ms / 1000).to_string());
        assert_eq!(world.line("PEXPIRETIME k"), format!(":{expires_ms}"));
    }
}

#[test]
fn after_a_failure_the_next_try_waits() {
    let mut world = World::with_save_points(&[(60, 1)]);
    world.line("SET k 1");
    world.disk.set_fault(Fault::From(1));
    let mut tries = Vec::new();
    for _ in 0..75 {
        world.advance(Duration::from_secs(1));
        world.drive();
        tries.push(world.info("rdb_saves").parse::<u64>().unwrap());
    }
    assert_eq!(tries[58..=74], [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4]);
}

#[test]
fn shutdown_saves_as_it_is_told() {
    for (points, line, saves) in [
        (vec![], "SHUTDOWN", false),
        (vec![(60, 1)], "SHUTDOWN", true),
        (vec![(60, 1)], "SHUTDOWN NOSAVE", false),
        (vec![], "SHUTDOWN SAVE NOW", true),
    ] {
        let mut world = World::with_save_points(&points);
        world.line("SET k v");
        assert_eq!(world.ask(line), "");
        assert!(world.has_stopped(), "{line}");
        assert_eq!(world.keys_in_file(), saves.then_some(1), "{line}");
        assert_eq!(world.turn(), When::Over);
    }
}

#[test]
fn shutdown_that_cannot_save_goes_on_unless_it_is_forced() {
    let mut world = World::with_save_points(&[(60, 1)]);
    world.line("SET k v");
    world.disk.set_fault(Fault::From(1));
    let error = "-ERR Errors trying to SHUTDOWN. Check logs.";
    assert_eq!(world.ask("SHUTDOWN"), error);
    assert_eq!(world.ask("SHUTDOWN SAVE"), error);
    assert!(!world.has_stopped());
    assert_eq!(world.line("SET k v"), "+OK");
    assert_eq!(world.ask("SHUTDOWN FORCE"), "");
    assert!(world.has_stopped());
}

#[test]
fn nothing_is_written_while_the_last_snapshot_is_made_and_it_can_be_called_off() {
    let mut world = World::with_save_points(&[(60, 1)]);
    world.fill();
    world.line("BGSAVE");
    world.turn();
    let waiter = world.server.wait("SHUTDOWN");
    let second = world.server.wait("SHUTDOWN NOSAVE");
    assert_eq!(world.turn(), When::AtOnce);
    assert_eq!(world.turn(), When::AtOnce);
    assert_eq!(world.line("SET k v"), "(paused)");
    assert_eq!(world.line("GET k"), "$-1");
    assert_eq!(world.line("SHUTDOWN ABORT"), "+OK");
    assert_eq!(world.line("SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
    world.drive();
    for waiter in [waiter, second] {
        assert_eq!(Server::served(&waiter), "-ERR Errors trying to SHUTDOWN. Check logs.");
    }
    assert!(!world.has_stopped());
    assert!(world.disk.paths().is_empty());
    assert_eq!(world.line("SET k v"), "+OK");
    assert_eq!(world.line("SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
    assert_eq!(world.ask("SHUTDOWN"), "");
    assert_eq!(world.keys_in_file(), Some(301));
}

#[test]
fn a_write_that_was_under_way_when_the_server_began_to_stop_is_saved() {
    let mut world = World::with_save_points(&[(60, 1)]);
    world.fill();
    let _waiter = world.server.wait("SHUTDOWN");
    assert_eq!(world.turn(), When::AtOnce);
    // As one that was let through just before.
    world.server.events("SET late 1");
    world.drive();
    assert!(world.has_stopped());
    assert_eq!(world.keys_in_file(), Some(301));
}

#[test]
fn two_servers_on_one_directory_are_told_apart() {
    let mut world = World::new(|_| ());
    use crate::persistence::disk::Disk as _;
    let other = world.disk.lock("/data".as_ref(), "towline.lock").unwrap().unwrap();
    let refused = world.ask("SAVE");
    assert!(
        refused.starts_with("-ERR Saving failed: another server uses the directory '/data'"),
        "{refused}"
    );
    drop(other);
    assert_eq!(world.ask("SAVE"), "+OK");
    assert!(world.disk.lock("/data".as_ref(), "towline.lock").unwrap().is_none());
}

#[test]
fn what_a_dead_process_left_is_removed_and_nothing_else() {
    let disk = FaultyDisk::default();
    let dead = "temp-4000000.rdb";
    let alive = "temp-1.rdb";
    let fed = "temp-4000000-sync-7.rdb";
    let feeding = format!("temp-{}-sync-7.rdb", std::process::id());
    for name in [dead, fed, alive, &feeding, "temp-x.rdb", "temp-007.rdb", "dump.rdb", "temp-4000000.rdb.gz"]
    {
        disk.put(format!("/data/{name}"), b"x");
    }
    super::save::remove_leftovers(&disk, "/data".as_ref());
    let left = disk.paths();
    assert_eq!(left.len(), 6);
    assert!([dead, fed].iter().all(|name| !left.contains(&PathBuf::from("/data").join(name))));
}
