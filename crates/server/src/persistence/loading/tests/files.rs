//! Which files are loaded, and what is done with them.

use super::snapshots::{FIXTURES, expected};
use super::{Files, log, prepare};
use crate::persistence::disk::RealDisk;
use towline_persist::directory::RewriteKind;

const MANIFEST: &str = "appendonlydir/appendonly.aof.manifest";

/// The log of a real server: a base, and what came after it.
fn with_base(files: &Files, base: &[u8], increments: &[&[u8]]) {
    files.write("appendonlydir/appendonly.aof.1.base.rdb", base);
    let mut manifest = "file appendonly.aof.1.base.rdb seq 1 type b\n".to_owned();
    for (number, increment) in (1..).zip(increments) {
        files.write(&format!("appendonlydir/appendonly.aof.{number}.incr.aof"), increment);
        manifest += &format!("file appendonly.aof.{number}.incr.aof seq {number} type i\n");
    }
    files.manifest(&manifest);
}

#[test]
fn base_and_increments_are_loaded_in_order() {
    let files = Files::new(true);
    with_base(&files, FIXTURES[0].1, &[&log("SET string other\nDEL list"), &log("APPEND string s"), b""]);
    files.write("dump.rdb", b"not looked at");
    let before = files.list();
    let outcome = files.load().unwrap();
    let mut expected = expected(false);
    expected.insert((0, b"string".to_vec()), "None string others".into());
    expected.remove(&(0, b"list".to_vec()));
    assert_eq!(outcome.contents(), expected);
    assert_eq!(outcome.loaded.append_to, Some(("appendonly.aof.3.incr.aof".into(), 0)));
    assert_eq!(outcome.loaded.base_bytes, FIXTURES[0].1.len() as u64);
    let sizes =
        before.iter().filter(|(name, _)| name.contains("appendonly.aof.") && !name.contains("manifest"));
    assert_eq!(outcome.loaded.log_bytes, sizes.map(|(_, bytes)| bytes).sum::<u64>());
    assert_eq!(files.list(), [before, vec![("towline.lock".into(), outcome_lock_bytes())]].concat());
}

fn outcome_lock_bytes() -> u64 {
    format!("{}\n", std::process::id()).len() as u64
}

#[test]
fn the_increments_of_real_servers_are_loaded() {
    let increments: [&[u8]; 3] = [
        include_bytes!("../../../../../persist/tests/fixtures/redis-7.0.incr.aof"),
        include_bytes!("../../../../../persist/tests/fixtures/redis-8.2.incr.aof"),
        include_bytes!("../../../../../persist/tests/fixtures/valkey-9.1.incr.aof"),
    ];
    for ((name, rdb, _), increment) in FIXTURES.into_iter().zip(increments) {
        let files = Files::new(true);
        with_base(&files, rdb, &[increment]);
        let mut expected = expected(name != "redis-7.0");
        expected.insert((0, b"after".to_vec()), "None string rewrite".into());
        expected.insert((3, b"x".to_vec()), "None string 2".into());
        assert_eq!(files.load().unwrap().contents(), expected, "{name}");
    }
}

#[test]
fn the_keys_of_a_base_expire_only_as_its_log_says() {
    use towline_persist::rdb_file::{RdbWriter, RdbWriterOptions, ValueKey};
    let mut writer = RdbWriter::new(RdbWriterOptions::default());
    writer.database(0, None);
    writer.string(ValueKey { key: b"k", expires_at_ms: Some(1000) }, b"5");
    let files = Files::new(true);
    with_base(&files, &writer.finish(), &[&log("INCR k\nPERSIST k")]);
    assert_eq!(files.load().unwrap().get("k").as_deref(), Some("None string 6"));
}

#[test]
fn a_log_that_knows_nothing_yet_begins_with_the_snapshot() {
    let files = Files::new(true);
    files.write("dump.rdb", FIXTURES[0].1);
    let outcome = files.load().unwrap();
    assert_eq!(outcome.contents(), expected(false));
    assert_eq!((outcome.loaded.append_to, outcome.loaded.rewrite), (None, Some(RewriteKind::Enable)));
    // A first rewrite that did not come to its end leaves this behind.
    files.manifest("# no files yet\n");
    files.write("appendonlydir/appendonly.aof.1.incr.aof", b"");
    files.write("appendonlydir/temp-appendonly.aof.base", b"half");
    let outcome = files.load().unwrap();
    assert_eq!(outcome.contents(), expected(false));
    assert_eq!(outcome.loaded.rewrite, Some(RewriteKind::Enable));
    let names: Vec<String> = files.list().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [MANIFEST, "dump.rdb", "towline.lock"]);
}

#[test]
fn the_log_of_an_old_redis_is_taken_over_once_it_is_loaded() {
    for old in [log("SET a 1\nSELECT 1\nSET b 2"), [FIXTURES[0].1, &log("SET a 1\nDEL list")[..]].concat()] {
        let files = Files::new(true);
        files.write("appendonly.aof", &[&old[..], b"*3\r\n$3\r\nSE"].concat());
        let outcome = files.load().unwrap();
        assert_eq!(outcome.get("a").as_deref(), Some("None string 1"));
        assert_eq!((&outcome.loaded.append_to, outcome.loaded.rewrite), (&None, Some(RewriteKind::Replace)));
        assert_eq!(files.read("appendonlydir/appendonly.aof"), old);
        assert!(!files.path("appendonly.aof").exists());
        assert_eq!(files.read(MANIFEST), b"file appendonly.aof seq 1 type b\n");
        let again = files.load().unwrap();
        assert_eq!(again.contents(), outcome.contents());
        assert_eq!(again.loaded.rewrite, Some(RewriteKind::Replace));
    }
    let files = Files::new(true);
    files.write("appendonly.aof", b"*1\r\n$4\r\nNOSU\r\n");
    let before = files.list();
    assert!(files.refusal().contains("command NOSU"));
    assert_eq!(files.list()[..1], before[..], "nothing is changed by what is refused");
}

#[test]
fn nothing_on_disk_changes_when_a_load_is_refused() {
    let files = Files::new(true);
    with_base(&files, FIXTURES[1].2, &[b"", b"*1\r\n"]);
    files.write("appendonlydir/appendonly.aof.9.incr.aof", b"orphan");
    files.write("appendonlydir/temp-appendonly.aof.base", b"half");
    let before = files.list();
    assert!(files.refusal().contains("a library of functions"));
    let mut after = files.list();
    after.retain(|(name, _)| name != "towline.lock");
    assert_eq!(after, before);
}

#[test]
fn what_is_missing_or_does_not_belong_together_is_named() {
    let files = Files::new(true);
    with_base(&files, FIXTURES[0].1, &[b""]);
    std::fs::remove_file(files.path("appendonlydir/appendonly.aof.1.base.rdb")).unwrap();
    let text = files.refusal();
    assert!(text.contains("names appendonly.aof.1.base.rdb, which is not there"), "{text}");

    let files = Files::new(true);
    files.write("appendonlydir/appendonly.aof.1.incr.aof", b"");
    assert!(files.refusal().contains("no manifest"));

    let files = Files::new(true);
    files.manifest("file x\n");
    let text = files.refusal();
    assert!(text.contains("appendonlydir' cannot be used: line 1 of the manifest"), "{text}");

    // A base that a crash emptied is not an empty base.
    let files = Files::new(true);
    with_base(&files, b"", &[&log("SET a 1")]);
    assert!(files.refusal().contains("appendonly.aof.1.base.rdb' cannot be loaded: not an RDB file"));
}

#[test]
fn a_tail_may_be_torn_only_where_nothing_follows() {
    let torn = [&log("SET a 1")[..], b"*3\r\n"].concat();
    let files = Files::new(true);
    with_base(&files, FIXTURES[0].1, &[&torn, &log("SET b 2")]);
    let text = files.refusal();
    assert!(
        text.contains("an incomplete command, 4 bytes from byte 27 on") && text.contains("later files"),
        "{text}"
    );
    let mut files = Files::new(true);
    with_base(&files, FIXTURES[0].1, &[&torn, b""]);
    files.config.persistence.aof_load_truncated = false;
    assert!(files.refusal().contains("Set 'aof-load-truncated yes'"));
    files.config.persistence.aof_load_truncated = true;
    assert_eq!(files.load().unwrap().get("a").as_deref(), Some("None string 1"));
    assert_eq!(files.read("appendonlydir/appendonly.aof.1.incr.aof"), &torn[..27]);
}

#[test]
fn a_second_server_is_told_who_has_the_directory() {
    let files = Files::new(true);
    let first = prepare(&files.config, &RealDisk).unwrap();
    let text = prepare(&files.config, &RealDisk).unwrap_err().to_string();
    let lock = files.path("towline.lock");
    for part in [format!("(process {})", std::process::id()), format!("'{}'", lock.display()), "--dir".into()]
    {
        assert!(text.contains(&part), "{text}");
    }
    drop(first);
    assert!(prepare(&files.config, &RealDisk).is_ok(), "the file may stay");
    // A server that writes nothing by itself needs no lock, and minds none.
    let _holder = prepare(&files.config, &RealDisk).unwrap();
    let mut reader = files.config.clone();
    reader.persistence.appendonly = false;
    assert!(prepare(&reader, &RealDisk).unwrap().lock.is_none());
}

#[test]
fn what_cannot_be_opened_is_named_with_what_to_look_at() {
    let files = Files::new(false);
    std::fs::create_dir(files.path("dump.rdb")).unwrap();
    let text = files.refusal();
    assert!(text.contains("cannot read") && text.contains("dump.rdb"), "{text}");
    let mut files = Files::new(true);
    files.config.dir = files.path("none").to_str().unwrap().into();
    let text = files.refusal();
    assert!(text.contains("cannot lock") && text.contains("does the directory of 'dir' exist?"), "{text}");
}
