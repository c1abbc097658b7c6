//! Keys on their way, without sockets.

use super::picture::{Begun, Fate, Found, Parcel, begin, finish};
use crate::batch::tests_support;
use crate::commands::decode_payload;
use crate::testing::Server;
use std::sync::Arc;
use towline_rdb::Limits;
use towline_store::limits::EncodingLimits;
use towline_store::stream::{Batch, Config, SlotStream};
use towline_store::value::{Value, ValueRef};

fn begun(server: &mut Server, key: &str) -> Begun {
    match begin(&mut server.local, 0, key.as_bytes()) {
        Found::Begun(begun) => begun,
        other => panic!("{key}: {other:?}"),
    }
}

fn parcel(server: &mut Server, key: &str) -> Parcel {
    begun(server, key).complete(&server.local.shared, &server.local.settings)
}

fn end(server: &mut Server, mut parcel: Parcel, fate: Fate) {
    parcel.fate = fate;
    finish(&mut server.local, 0, vec![parcel], false);
}

fn value(parcel: &Parcel) -> Value {
    decode_payload(&parcel.payload, Limits::default(), &EncodingLimits::default()).unwrap()
}

#[test]
fn a_key_on_its_way_is_read_and_not_written() {
    let mut server = Server::new();
    server.line("SET k 1");
    server.line("SET other 1");
    let parcel = parcel(&mut server, "k");
    assert!(matches!(begin(&mut server.local, 0, b"k"), Found::Elsewhere(_)));
    assert_eq!(server.line("GET k"), "$1 1");
    assert_eq!(server.line("INCR other"), ":2");
    for line in ["INCR k", "DEL other k", "RENAME other k", "MIGRATE h 1 k 0 10", "SWAPDB 0 1"] {
        assert_eq!(server.line(line), "(parked)", "{line}");
    }
    end(&mut server, parcel, Fate::Moved);
    assert_eq!(server.line("EXISTS k"), ":0");
    assert_eq!(server.line("INCR k"), ":1", "it is a new key");
    assert!(matches!(begin(&mut server.local, 0, b"none"), Found::Gone));
}

#[test]
fn what_the_target_does_not_have_stays() {
    let mut server = Server::new();
    server.line("SET k 1");
    let dirty = server.dirty();
    let parcel = parcel(&mut server, "k");
    end(&mut server, parcel, Fate::Stays);
    assert_eq!((server.line("INCR k"), server.dirty()), (":2".into(), dirty + 1));
}

#[test]
fn the_log_and_replicas_are_told_of_what_has_moved_and_of_nothing_else() {
    let mut server = Server::new();
    server.line("MSET moves 1 stays 1");
    let config = Config { has_snapshot: false, ..Config::default() };
    let shared = Arc::clone(&server.local.shared);
    let mut stream = SlotStream::open(&shared.store, 0..16384, server.now_ms, &config);
    let [moves, stays] = ["moves", "stays"].map(|key| parcel(&mut server, key));
    end(&mut server, moves, Fate::Moved);
    end(&mut server, stays, Fate::Stays);
    let mut batch = Batch::default();
    stream.next(&shared.store, &mut batch).unwrap();
    let effects: Vec<_> = batch.units().flat_map(|unit| unit.effects().collect::<Vec<_>>()).collect();
    let shown: Vec<_> =
        effects.iter().map(|effect| String::from_utf8_lossy(effect.command).replace("\r\n", " ")).collect();
    assert_eq!(shown, ["*2 $3 DEL $5 moves "]);
}

#[test]
fn what_was_flushed_on_its_way_is_not_deleted_twice() {
    let mut server = Server::new();
    server.line("SET k 1");
    let parcel = parcel(&mut server, "k");
    assert_eq!(server.line("FLUSHALL"), "+OK");
    assert_eq!(server.line("SET k 2"), "(parked)");
    let dirty = server.dirty();
    end(&mut server, parcel, Fate::Moved);
    assert_eq!(server.dirty(), dirty);
    assert_eq!(server.line("SET k 2"), "+OK");
}

#[test]
fn a_transaction_waits_as_a_whole_and_runs_once() {
    let mut server = Server::new();
    server.line("MSET k 1 other 1");
    let parcel = parcel(&mut server, "k");
    for line in ["WATCH other", "MULTI", "INCR other", "GET k", "INCR k"] {
        server.line(line);
    }
    assert_eq!(server.line("EXEC"), "(parked)");
    assert_eq!(server.line("EXEC"), "(parked)", "as its connection would try again");
    end(&mut server, parcel, Fate::Stays);
    assert_eq!(server.line("EXEC"), "*3 :2 $1 1 :2");
    assert_eq!(server.line("EXEC"), "-ERR EXEC without MULTI");
}

#[test]
fn a_batch_ends_in_front_of_what_has_to_wait() {
    let mut server = Server::new();
    server.line("SET k 1");
    let parcel = parcel(&mut server, "k");
    let Server { local, session, .. } = &mut server;
    assert_eq!(tests_support::run(local, session, &["SET a 1", "GET k", "INCR a"]), "+OK $1 1 :2");
    assert_eq!(tests_support::held_back_at(local, session, &["SET a 1", "GET k", "INCR k", "INCR a"]), 2);
    assert_eq!(server.line("GET a"), "$1 1");
    end(&mut server, parcel, Fate::Stays);
}

#[test]
fn who_waits_is_served_when_the_destination_is_back() {
    let mut server = Server::new();
    server.line("RPUSH k there");
    let waiter = server.wait("BLMOVE source k LEFT RIGHT 0");
    let parcel = parcel(&mut server, "k");
    assert_eq!(server.line("RPUSH source v"), ":1");
    assert_eq!(Server::served(&waiter), "", "its command would change a key that is on its way");
    end(&mut server, parcel, Fate::Moved);
    assert_eq!(Server::served(&waiter), "$1 v");
    assert_eq!(server.line("LRANGE k 0 -1"), "*1 $1 v");
}

#[test]
fn a_large_value_is_whole_though_fields_expire_while_it_is_read() {
    let mut server = Server::new();
    server.now_ms = crate::connection::unix_ms();
    for field in 0..2000 {
        server.line(&format!("HSET k field-{field} {}", "v".repeat(100)));
    }
    server.line("HPEXPIRE k 3600000 FIELDS 1 field-7");
    let begun = begun(&mut server, "k");
    assert!(!begun.is_small());
    // An hour later on the clock of the commands, while the picture is not complete.
    server.advance(3_600_001);
    assert_eq!(server.line("HLEN k"), ":1999");
    let parcel = begun.complete(&server.local.shared, &server.local.settings);
    let value = value(&parcel);
    let ValueRef::Hash(hash) = value.as_ref() else { panic!("{value:?}") };
    assert_eq!((hash.len(), hash.field(b"field-7").is_some()), (1999, false));
    end(&mut server, parcel, Fate::Moved);
    assert_eq!(server.line("EXISTS k"), ":0");
}

#[test]
fn pictures_of_all_kinds_are_the_values() {
    let mut server = Server::new();
    let mut fill = |verb: &str, element: &dyn Fn(usize) -> String| {
        (0..1500).for_each(|i| _ = server.line(&format!("{verb} {}", element(i))));
    };
    fill("RPUSH list", &|i| format!("element-{i}"));
    fill("SADD set", &|i| format!("member-{i}"));
    fill("SADD ints", &|i| format!("{}", i * 3));
    fill("ZADD zset", &|i| format!("{i}.5 member-{i}"));
    fill("HSET hash", &|i| format!("field-{i} value-{i}"));
    server.run(&["SET", "string", &"x".repeat(1 << 20)]);
    for key in ["list", "set", "ints", "zset", "hash", "string"] {
        let digest = server.line(&format!("DEBUG DIGEST-VALUE {key}"));
        let parcel = parcel(&mut server, key);
        let found = crate::commands::digest_of_payload(&parcel.payload, server.now_ms).unwrap();
        assert!(digest.ends_with(&found), "{key}: {digest} {found}");
        end(&mut server, parcel, Fate::Moved);
    }
    assert_eq!(server.line("DBSIZE"), ":0");
}

#[test]
fn a_command_that_is_parked_has_done_nothing() {
    let mut server = Server::new();
    server.line("SET k 1");
    let (parcel, dirty) = (parcel(&mut server, "k"), server.dirty());
    let calls = |server: &mut Server| server.line("INFO commandstats").contains("cmdstat_incr:");
    assert_eq!(server.line("INCR k"), "(parked)");
    assert!(!calls(&mut server), "it was not called");
    assert_eq!(server.dirty(), dirty);
    end(&mut server, parcel, Fate::Stays);
    assert_eq!(server.line("INCR k"), ":2");
    assert!(calls(&mut server));
}
