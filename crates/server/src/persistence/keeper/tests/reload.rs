//! `DEBUG RELOAD` and `DEBUG LOADAOF`.

use super::*;
use crate::persistence::disk::{Disk, write_all};

impl World {
    /// Puts other bytes into the snapshot's file.
    fn replace_dump(&self, bytes: &[u8]) {
        let mut file = self.disk.create(DUMP.as_ref()).unwrap();
        write_all(&mut *file, bytes).unwrap();
    }
}

#[test]
fn a_reload_saves_and_loads_the_same_data() {
    let mut world = World::new(|_| ());
    world.fill();
    world.line("SELECT 3");
    world.line("SET other database EX 100");
    let digest = world.line("DEBUG DIGEST");
    assert_eq!(world.ask("DEBUG RELOAD"), "+OK");
    assert_eq!(world.line("DEBUG DIGEST"), digest);
    assert_eq!(world.keys_in_file(), Some(301));
    world.line("SET more 1");
    world.line("DEL other");
    assert_eq!(world.ask("DEBUG RELOAD NOSAVE"), "+OK");
    assert_eq!(world.line("DEBUG DIGEST"), digest);
}

#[test]
fn commands_are_held_back_meanwhile() {
    let mut world = World::new(|_| ());
    world.fill();
    let until = world.server.now_ms + 7000;
    let waiter = world.server.wait("DEBUG RELOAD");
    assert_eq!(world.turn(), When::AtOnce);
    let (pause, mut other) = (world.server.local.shared.clone(), world.server.second());
    assert!(pause.pause.is_on());
    assert_eq!(world.server.line_as(&mut other, "GET k:1"), "(paused)");
    world.drive();
    assert_eq!(Server::served(&waiter), "+OK");
    assert_eq!(world.server.line_as(&mut other, "EXISTS k:1"), ":1");
    // A pause that was in force before stays.
    world.line("CLIENT PAUSE 7000 WRITE");
    let waiter = {
        let session = &mut other;
        assert_eq!(world.server.line_as(session, "GET none"), "$-1");
        world.server.wait("DEBUG RELOAD NOSAVE")
    };
    world.drive();
    assert_eq!(Server::served(&waiter), "+OK");
    assert_eq!(pause.pause.state(), (until, false));
    assert_eq!(world.line("SET k v"), "(paused)");
}

#[test]
fn what_cannot_be_loaded_is_an_error_and_changes_nothing() {
    let mut world = World::new(|_| ());
    world.line("SET k v");
    let digest = world.line("DEBUG DIGEST");
    let refused = |answer: String| {
        assert!(
            answer.starts_with("-ERR Error trying to load the data set, nothing was changed"),
            "{answer}"
        );
    };
    refused(world.ask("DEBUG RELOAD NOSAVE"));
    refused(world.ask("DEBUG LOADAOF"));
    world.replace_dump(b"REDIS0010\xfa");
    refused(world.ask("DEBUG RELOAD NOSAVE"));
    assert_eq!(world.line("DEBUG DIGEST"), digest);
    assert_eq!(world.ask("DEBUG RELOAD"), "+OK");
    world.line("SET k other");
    refused(world.ask("DEBUG RELOAD NOSAVE NOFLUSH"));
    assert_eq!(world.line("GET k"), "$5 other");
    assert_eq!(world.ask("DEBUG RELOAD NOSAVE NOFLUSH MERGE"), "+OK");
    assert_eq!(world.line("DEBUG DIGEST"), digest);
    world.disk.set_fault(Fault::From(1));
    assert!(world.ask("DEBUG RELOAD").starts_with("-ERR Saving failed"));
    assert_eq!(world.line("DEBUG DIGEST"), digest);
    assert!(!world.has_stopped());
}

#[test]
fn a_log_holds_what_was_loaded_again() {
    let disk = FaultyDisk::default();
    let mut world = World::with_log(&disk, |_| ());
    world.fill();
    world.line("RPUSH list a b c");
    let digest = world.line("DEBUG DIGEST");
    for line in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
        assert_eq!(world.ask(line), "+OK", "{line}");
        assert_eq!(world.line("DEBUG DIGEST"), digest, "{line}");
    }
    world.line("FLUSHALL");
    world.line("SET only this");
    assert_eq!(world.ask("DEBUG RELOAD NOSAVE"), "+OK");
    assert_eq!(world.line("DEBUG DIGEST"), digest);
    world.line("RPUSH list d");
    world.flush();
    let digest = world.line("DEBUG DIGEST");
    world.end();
    assert_eq!(world.digest_after_restart(), digest);
}

#[test]
fn whichever_operation_of_a_reload_fails_a_restart_has_the_data() {
    let mut failures = 0;
    for at in 1.. {
        let disk = FaultyDisk::default();
        let mut world = World::with_log(&disk, |_| ());
        world.line("DEBUG POPULATE 50 k 100");
        world.flush();
        let digest = world.line("DEBUG DIGEST");
        disk.set_fault(Fault::At(at));
        let answer = world.ask("DEBUG RELOAD");
        let is_last = disk.operations() < at;
        disk.set_fault(Fault::None);
        failures += u32::from(answer != "+OK");
        if world.has_stopped() {
            // Part of it may be gone from memory, and nothing from the files.
            world.end();
            assert_eq!(world.digest_after_restart(), digest, "operation {at}");
            continue;
        }
        assert_eq!(world.line("DEBUG DIGEST"), digest, "operation {at}: {answer}");
        world.recover();
        assert_eq!(world.line("INCR after"), ":1", "operation {at}");
        world.flush();
        let digest = world.line("DEBUG DIGEST");
        world.end();
        assert_eq!(world.digest_after_restart(), digest, "operation {at}: {answer}");
        if is_last {
            break;
        }
    }
    assert!(failures > 3, "{failures}");
}
