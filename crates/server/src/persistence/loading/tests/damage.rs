//! Whatever was done to a file's bytes: a clear error, or the state after a whole number of units.

use super::snapshots::FIXTURES;
use super::{Contents, Files, log};
use crate::replay_tests::words;
use crate::testing::Server;
use e2e::diff::{self, TOPICS};
use towline_persist::aof::LogWriter;
use towline_store::stream::{Batch, Config, SlotStream};

#[test]
fn a_snapshot_that_is_damaged_or_cut_at_any_byte_is_refused() {
    let (_, rdb, _) = FIXTURES[1];
    for at in 0..rdb.len() {
        let mut bytes = rdb.to_vec();
        for mask in [0x01, 0x80, 0xff] {
            bytes[at] = rdb[at] ^ mask;
            let text = Files::with_snapshot(&bytes).refusal();
            assert!(text.contains("dump.rdb' cannot be loaded: "), "byte {at}: {text}");
        }
        let text = Files::with_snapshot(&rdb[..at]).refusal();
        assert!(text.contains("cut off, at byte") || text.contains("not an RDB file"), "cut at {at}: {text}");
    }
}

#[test]
fn damage_that_no_checksum_covers_is_an_error_or_other_data_but_no_panic() {
    for (name, rdb, _) in FIXTURES {
        let covered = rdb.len() - 8;
        for at in 9..covered {
            let mut bytes = rdb.to_vec();
            bytes[covered..].fill(0);
            bytes[at] ^= 0xff;
            if let Err(error) = Files::with_snapshot(&bytes).load() {
                assert!(error.to_string().contains("cannot be loaded"), "{name}, byte {at}: {error}");
            }
        }
    }
}

/// So many commands make a log of a thousand bytes or two; each byte of it is a load.
const COMMANDS: usize = 30;

/// The log of a random program, and where each of its units ends with the data after it.
fn program(topic: &str, seed: u64) -> (Vec<u8>, Vec<(usize, Contents)>) {
    let topic = TOPICS.iter().find(|known| known.name == topic).expect("there is such a topic");
    let (mut server, mut model) = (Server::new(), Server::new());
    model.now_ms = 0;
    let config = Config { has_snapshot: false, ..Config::default() };
    let store = &server.local.shared.clone().store;
    let mut stream = SlotStream::open(store, 0..16384, server.now_ms, &config);
    let (mut writer, mut bytes, mut batch) = (LogWriter::new(), Vec::new(), Batch::default());
    let mut states = vec![(0, Contents::new())];
    for command in diff::own_commands(topic, seed).into_iter().take(COMMANDS) {
        let name = String::from_utf8_lossy(&command[0]).to_lowercase();
        if matches!(name.as_str(), "debug" | "reset" | "config" | "client") {
            continue;
        }
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        server.run_bytes(&args);
        server.advance(seed % 7 * 100);
        stream.next(store, &mut batch).expect("the stream keeps up");
        for unit in batch.units() {
            let effects: Vec<_> = unit.effects().map(|effect| (effect.db, words(effect.command))).collect();
            if effects.len() > 1 {
                writer.multi(&mut bytes, effects[0].0.into());
            }
            for (db, words) in &effects {
                let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                writer.command(&mut bytes, (*db).into(), args.iter().copied());
                model.session.db = *db;
                assert_ne!(model.run_bytes(&args).first(), Some(&b'-'));
            }
            if effects.len() > 1 {
                writer.exec(&mut bytes);
            }
            states.push((bytes.len(), crate::replay_tests::contents(&model.local.shared.store, 0)));
        }
    }
    (bytes, states)
}

#[test]
fn a_log_cut_at_any_byte_is_the_state_after_so_many_whole_units() {
    for (index, topic) in TOPICS.iter().enumerate() {
        let (bytes, states) = program(topic.name, index as u64);
        // Every byte of one program, some of the others.
        let step = if index == 0 { 1 } else { 97 };
        for cut in (0..=bytes.len()).step_by(step) {
            let files = Files::with_log(&bytes[..cut]);
            let outcome = files.load().unwrap_or_else(|error| panic!("{} cut at {cut}: {error}", topic.name));
            let (_, state) = states.iter().rev().find(|(end, _)| *end <= cut).expect("the first is at 0");
            assert_eq!(&outcome.contents(), state, "{} cut at {cut}", topic.name);
            let whole = files.read("appendonlydir/appendonly.aof.1.incr.aof");
            assert!(bytes.starts_with(&whole) && whole.len() <= cut);
            let append_to = outcome.loaded.append_to.expect("the log goes on");
            assert_eq!(append_to, ("appendonly.aof.1.incr.aof".to_owned(), whole.len() as u64));
            // The next start finds nothing to cut.
            let mut strict = files;
            strict.config.persistence.aof_load_truncated = false;
            assert_eq!(&strict.load().unwrap().contents(), state);
        }
    }
}

#[test]
fn a_log_with_zeros_at_its_end_is_cut_as_well() {
    let whole = log("SET a 1\nSET b 2");
    let files = Files::with_log(&[&whole[..], &[0; 5000]].concat());
    assert_eq!(files.load().unwrap().contents().len(), 2);
    assert_eq!(files.read("appendonlydir/appendonly.aof.1.incr.aof"), whole);
}

#[test]
fn damage_in_the_middle_of_a_log_names_the_place_and_what_to_do() {
    let bytes = log("SET a 1\nSELECT 3\nMULTI\nSET b 2\nINCR b\nEXEC\nSET c 3");
    let mut refused = 0;
    for at in 0..bytes.len() {
        for mask in [0x01, 0x10, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            let files = Files::with_log(&damaged);
            // The format has no checksums: what is in an argument is not seen, unless the command fails for it, and a length
            // that became too large looks like a torn tail.
            if let Err(error) = files.load() {
                let text = error.to_string();
                assert!(text.contains("at byte "), "byte {at}: {text}");
                assert_eq!(files.read("appendonlydir/appendonly.aof.1.incr.aof"), damaged, "byte {at}");
                refused += 1;
            }
        }
    }
    assert!(refused > bytes.len());
    let mut damaged = bytes;
    damaged[27] = b'!';
    let text = Files::with_log(&damaged).refusal();
    for part in [
        "appendonly.aof.1.incr.aof' cannot be loaded",
        "at byte 27",
        "before byte 27",
        "redis-check-aof --fix",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
