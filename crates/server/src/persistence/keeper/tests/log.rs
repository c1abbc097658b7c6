//! Rewrites of the log, and turning it on and off.

use super::*;
use towline_persist::aof::Manifest;

const DIRECTORY: &str = "/data/appendonlydir";

impl World {
    fn log(&self) -> &appender::LogHandle {
        &self.server.local.shared.persistence.log
    }

    /// Everything that was executed is in the file.
    pub(super) fn flush(&self) {
        let _ = self.log().finish();
    }

    /// What a start on this disk loads, as a digest.
    pub(super) fn digest_after_restart(&self) -> String {
        let mut copy = Self::with_log(&self.disk.copy(), |_| ());
        let digest = copy.line("DEBUG DIGEST");
        copy.end();
        digest
    }

    /// Ends the threads.
    pub(super) fn end(&self) {
        self.log().end();
    }

    /// Lets the appender ask for the recovery that it needs, and time pass, until the log is right again.
    pub(super) fn recover(&mut self) {
        for _ in 0..1000 {
            self.advance(Duration::from_secs(61));
            self.drive();
            if !self.server.local.shared.persistence.gate.is_log_failed() {
                return;
            }
            // It may also be right again without being asked for: a write that failed is tried again.
            if let Ok(request) = self.requests.recv_timeout(Duration::from_millis(50)) {
                self.core.handle(request, self.now());
            }
        }
        panic!("the log does not recover");
    }

    /// Exactly the files of the manifest are there, and perhaps an empty one that it was about to name.
    fn check_files(&self) {
        let manifest = self.disk.content(format!("{DIRECTORY}/appendonly.aof.manifest")).unwrap();
        let manifest = Manifest::parse(&manifest).unwrap();
        assert_eq!(manifest.history.len(), 0);
        let mut expected: Vec<_> = manifest.names().map(|name| PathBuf::from(DIRECTORY).join(name)).collect();
        expected.push(PathBuf::from(DIRECTORY).join("appendonly.aof.manifest"));
        expected.sort();
        let mut found: Vec<_> =
            self.disk.paths().into_iter().filter(|path| path.starts_with(DIRECTORY)).collect();
        found.retain(|path| {
            expected.contains(path) || self.disk.content(path).is_none_or(|bytes| !bytes.is_empty())
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn whichever_operation_of_a_rewrite_fails_a_restart_has_all_data() {
    for fault in [Fault::At, Fault::From] {
        let mut failures = 0;
        for at in 1.. {
            let disk = FaultyDisk::default();
            let mut world = World::with_log(&disk, |_| ());
            world.line("DEBUG POPULATE 100 k 2000");
            world.line("SET before 1");
            world.flush();
            disk.set_fault(fault(at));
            assert_eq!(world.line("BGREWRITEAOF"), "+Background append only file rewriting started");
            world.drive();
            let is_last = disk.operations() < at;
            world.line("INCR during");
            disk.set_fault(Fault::None);
            failures += u32::from(world.info("aof_last_bgrewrite_status") == "err");
            world.recover();
            assert_eq!(world.info("aof_rewrite_in_progress"), "0", "operation {at}");
            assert_eq!(world.line("INCR after"), ":1", "operation {at}");
            world.flush();
            if fault(0) == Fault::At(0) {
                world.check_files();
            }
            let digest = world.line("DEBUG DIGEST");
            world.end();
            assert_eq!(world.digest_after_restart(), digest, "operation {at}");
            if is_last {
                break;
            }
        }
        assert!(failures > 10, "{failures}");
    }
}

#[test]
fn the_words_of_a_rewrite() {
    let disk = FaultyDisk::default();
    let mut world = World::with_log(&disk, |_| ());
    world.fill();
    assert_eq!(world.line("BGREWRITEAOF"), "+Background append only file rewriting started");
    for _ in 0..2 {
        let error = "-ERR Background append only file rewriting already in progress";
        assert_eq!(world.line("BGREWRITEAOF"), error);
        assert!(
            world
                .line("BGSAVE")
                .starts_with("-ERR Another child process is active (AOF?): can't BGSAVE right now.")
        );
        assert_eq!(world.info("aof_rewrite_in_progress"), "1");
        assert_eq!(world.turn(), When::AtOnce);
    }
    assert_eq!(world.line("BGSAVE SCHEDULE"), "+Background saving scheduled");
    // A client's snapshot does not wait for it.
    assert_eq!(world.ask("SAVE"), "+OK");
    world.drive();
    world.advance(Duration::from_secs(1));
    world.drive();
    assert_eq!(world.info("rdb_saves"), "2");
    world.line("BGSAVE");
    let scheduled = "+Background append only file rewriting scheduled";
    assert_eq!(world.line("BGREWRITEAOF"), scheduled);
    assert_eq!(world.line("BGREWRITEAOF"), scheduled);
    world.drive();
    assert_eq!(world.info("aof_rewrites"), "3");
    world.line("MULTI");
    world.line("BGREWRITEAOF");
    assert_eq!(world.line("EXEC"), format!("*1 {scheduled}"));
    world.drive();
    assert_eq!(world.info("aof_rewrites"), "4");
    world.check_files();
    world.end();
}

#[test]
fn the_log_is_turned_on_and_off_and_what_is_stale_is_not_loaded() {
    let disk = FaultyDisk::default();
    let mut world = World::with_log(&disk, |config| config.persistence.appendonly = false);
    world.fill();
    assert!(world.line("BGREWRITEAOF").starts_with("-ERR There is no log to rewrite"));
    assert_eq!(world.line("CONFIG SET appendonly yes"), "+OK");
    world.turn();
    assert_eq!(world.info("aof_enabled"), "1");
    assert_eq!(world.info("aof_rewrite_in_progress"), "1");
    world.line("SET during 1");
    // Nothing is promised before the first base is there, so it is no time to stop.
    assert_eq!(world.ask("SHUTDOWN"), "-ERR Errors trying to SHUTDOWN. Check logs.");
    world.drive();
    assert_eq!(world.info("aof_rewrite_in_progress"), "0");
    world.line("SET after 1");
    let refused = world.line("CONFIG SET dir /");
    assert!(refused.contains("protected config"), "{refused}");
    world.flush();
    world.check_files();
    let digest = world.line("DEBUG DIGEST");
    assert_eq!(world.digest_after_restart(), digest);

    assert_eq!(world.line("CONFIG SET appendonly no"), "+OK");
    world.drive();
    world.line("SET unlogged 1");
    let paths: Vec<_> = disk.paths().iter().map(|path| path.display().to_string()).collect();
    let aside = format!("{DIRECTORY}.off-{}/", START_MS / 1000);
    assert!(paths.iter().all(|path| path.starts_with(&aside)), "{paths:?}");
    // Turned on again, it begins with what is there now.
    world.advance(Duration::from_secs(5));
    world.line("CONFIG SET appendonly yes");
    world.drive();
    world.flush();
    let digest = world.line("DEBUG DIGEST");
    assert_eq!(world.digest_after_restart(), digest);
    world.end();
}

#[test]
fn a_log_that_cannot_be_turned_on_is_tried_again() {
    let disk = FaultyDisk::default();
    let mut world = World::with_log(&disk, |config| config.persistence.appendonly = false);
    world.line("SET k v");
    disk.set_fault(Fault::From(1));
    world.line("CONFIG SET appendonly yes");
    world.drive();
    assert_eq!(world.line("SET k w"), "+OK");
    assert_eq!(world.info("aof_rewrite_scheduled"), "1", "the log does not keep promises yet");
    disk.set_fault(Fault::None);
    world.advance(Duration::from_millis(999));
    world.drive();
    assert!(disk.paths().is_empty());
    world.advance(Duration::from_millis(1));
    world.drive();
    world.flush();
    world.check_files();
    let digest = world.line("DEBUG DIGEST");
    assert_eq!(world.digest_after_restart(), digest);
    world.end();
}

#[test]
fn always_holds_from_the_reply_to_config_set_on() {
    let disk = FaultyDisk::default();
    let mut world = World::with_log(&disk, |_| ());
    let gate = |world: &World| world.server.local.shared.persistence.gate.holds(u64::MAX);
    assert!(!gate(&world));
    // Nobody has told the appender yet.
    assert_eq!(world.line("CONFIG SET appendfsync always"), "+OK");
    assert!(gate(&world));
    world.line("CONFIG SET appendfsync no");
    assert!(!gate(&world));
    world.end();
}

#[test]
fn a_log_that_is_turned_off_twice_a_second_leaves_nothing_that_a_start_would_load() {
    let disk = FaultyDisk::default();
    let mut world = World::with_log(&disk, |_| ());
    world.line("SET k old");
    for set in ["no", "yes", "no", "yes", "no"] {
        world.line(&format!("CONFIG SET appendonly {set}"));
        world.drive();
        assert_eq!(disk.paths().iter().any(|path| path.starts_with(DIRECTORY)), set == "yes");
    }
    world.end();
}

#[test]
fn the_log_is_rewritten_when_it_has_grown() {
    let disk = FaultyDisk::default();
    let mut world = World::with_log(&disk, |config| {
        config.persistence.auto_aof_rewrite_min_size = 10_000;
        config.persistence.auto_aof_rewrite_percentage = 100;
    });
    let write = |world: &mut World, bytes: usize| {
        world.line(&format!("SET k {}", "x".repeat(bytes)));
        world.flush();
        world.advance(Duration::from_secs(1));
        world.drive();
        world.info("aof_rewrites").parse::<u64>().unwrap() - 1
    };
    assert_eq!(write(&mut world, 9_000), 0);
    assert_eq!(write(&mut world, 9_000), 1);
    // The new base has one value, and the log grows to twice that.
    assert_eq!(write(&mut world, 8_000), 1);
    assert_eq!(write(&mut world, 8_000), 2);
    world.line("CONFIG SET auto-aof-rewrite-percentage 0");
    assert_eq!(write(&mut world, 100_000), 2);
    world.line("CONFIG SET auto-aof-rewrite-percentage 100");
    // The first tries that fail follow one another, the next ones wait longer and longer.
    let tried = |world: &mut World, seconds: u64| {
        world.disk.set_fault(Fault::From(1));
        world.advance(Duration::from_secs(seconds));
        world.drive();
        world.disk.set_fault(Fault::None);
        world.info("aof_rewrites_consecutive_failures").parse::<u64>().unwrap()
    };
    assert_eq!(tried(&mut world, 1), 3);
    assert_eq!(tried(&mut world, 59), 3);
    assert_eq!(tried(&mut world, 1), 4);
    assert_eq!(tried(&mut world, 119), 4);
    assert_eq!(tried(&mut world, 1), 5);
    assert_eq!(tried(&mut world, 240), 6);
    world.advance(Duration::from_secs(480));
    world.drive();
    assert_eq!(world.info("aof_rewrites_consecutive_failures"), "0");
    world.end();
}

#[test]
fn a_sync_that_fails_is_mended_by_writing_the_data_anew() {
    let disk = FaultyDisk::default();
    let mut world = World::with_log(&disk, |config| config.persistence.appendfsync = AppendFsync::Always);
    world.fill();
    world.flush();
    disk.set_fault(Fault::Syncs);
    world.line("SET lost 1");
    assert!(world.log().finish().is_err());
    assert!(world.line("SET k v").starts_with("-MISCONF"));
    assert_eq!(world.line("GET lost"), "$1 1");
    disk.set_fault(Fault::None);
    world.recover();
    assert_eq!(world.line("SET k v"), "+OK");
    world.flush();
    world.check_files();
    let digest = world.line("DEBUG DIGEST");
    assert_eq!(world.digest_after_restart(), digest);
    world.end();
}

#[test]
fn parameters_of_files_change_at_run_time() {
    let disk = FaultyDisk::default();
    let mut world =
        World::with_log(&disk, |config| config.enable_protected_configs = crate::config::Access::Yes);
    world.fill();
    for (name, value, reply) in [
        ("appendfsync", "always", "+OK"),
        ("appendfsync", "everysec", "+OK"),
        ("no-appendfsync-on-rewrite", "yes", "+OK"),
        ("aof-timestamp-enabled", "yes", "+OK"),
        ("aof-use-rdb-preamble", "no", "+OK"),
        ("rdbcompression", "yes", "+OK"),
        ("aof-load-truncated", "no", "+OK"),
        ("save", "60 1 10 5", "+OK"),
        ("dbfilename", "other.rdb", "+OK"),
        (
            "dir",
            "/",
            "-ERR CONFIG SET failed (possibly related to argument 'dir') - the log is in it: turn 'appendonly' off first",
        ),
        (
            "appenddirname",
            "x",
            "-ERR CONFIG SET failed (possibly related to argument 'appenddirname') - can't set immutable config",
        ),
    ] {
        assert_eq!(world.server.run(&["CONFIG", "SET", name, value]), reply, "{name}");
        world.drive();
    }
    world.line("SET k v");
    world.line("BGREWRITEAOF");
    world.drive();
    world.line("SET k w");
    world.flush();
    let base = disk.content(format!("{DIRECTORY}/appendonly.aof.2.base.aof")).unwrap();
    assert!(base.starts_with(b"*2\r\n$6\r\nSELECT\r\n"), "{}", base[..40].escape_ascii());
    let digest = world.line("DEBUG DIGEST");
    assert_eq!(world.digest_after_restart(), digest);
    assert_eq!(world.ask("SAVE"), "+OK");
    assert!(disk.content("/data/other.rdb").is_some());
    // Without the log, the directory may change: its lock goes along.
    world.line("CONFIG SET appendonly no");
    world.drive();
    assert_eq!(world.line("CONFIG SET dir /"), "+OK");
    assert_eq!(world.ask("SAVE"), "+OK");
    assert!(disk.content("/other.rdb").is_some());
    world.end();
}
