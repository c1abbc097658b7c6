//! RDB files, those of real servers among them.

use super::{Contents, Files};
use crate::connection::unix_ms;
use std::sync::atomic::Ordering;
use towline_persist::rdb_file::{RdbWriter, RdbWriterOptions, ValueKey};
use towline_rdb::{HashField, Object};
use towline_store::evict::Policy;

/// The files of real servers, with all types in their packed and plain forms.
pub(super) const FIXTURES: [(&str, &[u8], &[u8]); 3] = [
    (
        "redis-7.0",
        include_bytes!("../../../../../persist/tests/fixtures/redis-7.0.rdb"),
        include_bytes!("../../../../../persist/tests/fixtures/redis-7.0-foreign.rdb"),
    ),
    (
        "redis-8.2",
        include_bytes!("../../../../../persist/tests/fixtures/redis-8.2.rdb"),
        include_bytes!("../../../../../persist/tests/fixtures/redis-8.2-foreign.rdb"),
    ),
    (
        "valkey-9.1",
        include_bytes!("../../../../../persist/tests/fixtures/valkey-9.1.rdb"),
        include_bytes!("../../../../../persist/tests/fixtures/valkey-9.1-foreign.rdb"),
    ),
];

/// What the fixtures hold, see their `generate.sh`.
pub(super) fn expected(has_field_expiry: bool) -> Contents {
    let list = r#"list ["1", "a", "-300", "70000", "b"]"#;
    let (ints, words) = (r#"set {"1", "2", "300"}"#, r#"set {"5", "a", "b"}"#);
    let bits = |score: f64| score.to_bits();
    let scores =
        format!(r#"zset {{"a": {}, "b": {}, "c": {}}}"#, bits(1.0), bits(2.5), bits(f64::NEG_INFINITY));
    let hash = r#"hash {"f": ("v", None), "n": ("7", None)}"#;
    let mut all = vec![
        ("string", "string hello".to_owned()),
        ("number", "string 12345".to_owned()),
        ("long", format!("string {}", "towline ".repeat(40))),
    ];
    for (plain, packed, shown) in [
        ("plain-list", "list", list),
        ("plain-ints", "ints", ints),
        ("plain-words", "words", words),
        ("plain-scores", "scores", &scores),
        ("plain-fields", "fields", hash),
    ] {
        all.extend([(plain, shown.to_owned()), (packed, shown.to_owned())]);
    }
    if has_field_expiry {
        let hash = r#"hash {"f": ("v", Some(4102444800000)), "g": ("w", None)}"#;
        all.extend([("field-ttl", hash.to_owned()), ("packed-field-ttl", hash.to_owned())]);
    }
    let mut all: Contents =
        all.into_iter().map(|(key, shown)| ((0, key.as_bytes().to_vec()), format!("None {shown}"))).collect();
    all.insert((0, b"expiring".to_vec()), "Some(4102444800000) string v".into());
    all.insert((3, b"other".to_vec()), "None string database".into());
    all
}

/// A file with these strings and times.
fn strings(keys: &[(&str, Option<u64>)]) -> Vec<u8> {
    let mut writer = RdbWriter::new(RdbWriterOptions::default());
    writer.database(0, None);
    for &(key, expires_at_ms) in keys {
        let key = ValueKey { key: key.as_bytes(), expires_at_ms };
        writer.string(key, b"v");
    }
    let mut bytes = writer.take_chunk();
    bytes.extend(writer.finish());
    bytes
}

#[test]
fn snapshots_of_real_servers_are_loaded() {
    for (name, rdb, _) in FIXTURES {
        let outcome = Files::with_snapshot(rdb).load().unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = expected(name != "redis-7.0");
        assert_eq!(outcome.contents(), expected, "{name}");
        let status = &outcome.shared.persistence.loading;
        assert_eq!(status.keys.load(Ordering::Relaxed), expected.len() as u64, "{name}");
        assert_eq!(status.total_bytes.load(Ordering::Relaxed), rdb.len() as u64);
        assert!(status.used_memory_bytes.load(Ordering::Relaxed) > 0);
        assert_eq!(outcome.loaded.keys, expected.len() as u64);
        assert_eq!((outcome.loaded.append_to, outcome.loaded.rewrite), (None, None));
    }
}

#[test]
fn everything_that_has_no_place_is_listed_or_left_out_when_asked() {
    for (name, _, foreign) in FIXTURES {
        let mut files = Files::with_snapshot(foreign);
        let text = files.refusal();
        for part in
            ["key \"stream\" in database 0", "a library of functions", "(at byte ", "load-unsupported"]
        {
            assert!(text.contains(part), "{name}: {text}");
        }
        files.config.persistence.load_unsupported = crate::config::LoadUnsupported::Skip;
        let outcome = files.load().unwrap_or_else(|error| panic!("{name}: {error}"));
        let keys: Vec<_> = outcome.contents().into_keys().map(|(_, key)| key).collect();
        assert_eq!(keys, [b"before".to_vec(), b"zzz".to_vec()], "{name}");
    }
}

#[test]
fn keys_that_have_expired_are_left_out_and_counted() {
    let now_ms = unix_ms();
    let files = Files::with_snapshot(&strings(&[
        ("gone", Some(now_ms - 1)),
        ("lives", Some(now_ms + 100_000)),
        ("stays", None),
    ]));
    let outcome = files.load().unwrap();
    let keys: Vec<_> = outcome.contents().into_keys().map(|(_, key)| key).collect();
    assert_eq!(keys, [b"lives".to_vec(), b"stays".to_vec()]);
    assert_eq!(outcome.shared.store.expires(0), 1);
    assert!(outcome.shared.store.next_due_ms().is_some());
    let status = &outcome.shared.persistence.loading;
    assert_eq!(status.keys_expired.load(Ordering::Relaxed), 1);
    assert_eq!(status.keys.load(Ordering::Relaxed), 2);
}

#[test]
fn what_is_loaded_is_not_evicted() {
    let keys: Vec<String> = (0..1000).map(|number| format!("key:{number}")).collect();
    let keys: Vec<_> = keys.iter().map(|key| (key.as_str(), None)).collect();
    let mut files = Files::with_snapshot(&strings(&keys));
    files.config.maxmemory = 1;
    files.config.maxmemory_policy = Policy::AllKeysLru;
    assert_eq!(files.load().unwrap().shared.store.len(0), 1000);
}

#[test]
fn a_database_that_is_not_there_is_an_error_that_says_what_to_set() {
    let (_, rdb, _) = FIXTURES[0];
    let mut files = Files::with_snapshot(rdb);
    files.config.databases = 3;
    let text = files.refusal();
    assert!(text.contains("keys in database 3") && text.contains("Set 'databases' to at least 4"), "{text}");
    files.config.databases = 4;
    assert_eq!(files.load().unwrap().contents(), expected(false));
    let mut writer = RdbWriter::new(RdbWriterOptions::default());
    writer.database(99, None);
    writer.string(ValueKey { key: b"k", expires_at_ms: None }, b"v");
    let text = Files::with_snapshot(&writer.finish()).refusal();
    assert!(text.contains("keys in database 99") && text.contains("16 at most"), "{text}");
}

#[test]
fn a_key_that_is_there_twice_is_damage() {
    let text = Files::with_snapshot(&strings(&[("a", None), ("b", None), ("a", None)])).refusal();
    assert!(text.contains("it has key \"a\" in database 0 twice, at byte "), "{text}");
}

/// Values that come in several parts, with others in between.
fn large() -> Vec<(&'static str, Object)> {
    let texts = |count: u32, mark: &str| -> Vec<Vec<u8>> {
        (0..count).map(|number| format!("{mark}{number}{}", "x".repeat(30)).into_bytes()).collect()
    };
    let field = |name: Vec<u8>| HashField { value: name.clone(), name, expires_at_ms: None };
    let scored = texts(30_000, "z").into_iter().enumerate().map(|(score, member)| (member, score as f64));
    vec![
        ("list", Object::List(texts(50_000, "l"))),
        ("small", Object::String(b"s".to_vec())),
        ("set", Object::Set(texts(30_000, "s"))),
        ("zset", Object::Zset(scored.collect())),
        ("hash", Object::Hash(texts(20_000, "h").into_iter().map(field).collect())),
        ("long", Object::String(vec![b'x'; 3 << 20])),
        ("last", Object::Set(texts(3, "t"))),
    ]
}

#[test]
fn large_values_are_put_together_by_any_number_of_threads() {
    let mut writer = RdbWriter::new(RdbWriterOptions::default());
    writer.database(0, None);
    for (key, object) in large() {
        writer.object(ValueKey { key: key.as_bytes(), expires_at_ms: Some(1 << 42) }, &object);
    }
    let mut bytes = writer.take_chunk();
    bytes.extend(writer.finish());
    assert!(bytes.len() > 5 << 20);
    let mut files = Files::with_snapshot(&bytes);
    let mut all = Vec::new();
    for workers in [1, 2, 5] {
        files.config.workers = workers;
        let outcome = files.load().unwrap();
        assert_eq!(outcome.shared.store.len(0), 7);
        assert_eq!(outcome.shared.store.expires(0), 7);
        all.push(outcome.contents());
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    let shown = &all[0][&(0, b"list".to_vec())];
    let first = format!("Some({}) list [\"l0{}\", ", 1u64 << 42, "x".repeat(30));
    assert!(shown.starts_with(&first), "{}", &shown[..100]);
    assert_eq!(shown.matches('l').count(), 50_001);
}

#[test]
fn no_files_are_no_data() {
    for appendonly in [false, true] {
        let files = Files::new(appendonly);
        let prepared = super::prepare(&files.config, &super::RealDisk).unwrap();
        assert_eq!(prepared.has_work(), appendonly);
        drop(prepared);
        assert!(files.load().unwrap().contents().is_empty());
    }
}
