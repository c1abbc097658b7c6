//! Logs: order, time, and what is not a write of ours.

use super::{Files, log};
use crate::config::LoadUnsupported;
use crate::connection::unix_ms;
use std::sync::atomic::Ordering;

#[test]
fn commands_are_applied_in_order_by_any_number_of_threads() {
    let mut lines = String::new();
    for number in 0..5000 {
        lines += &format!("RPUSH list:{} {number}\nINCR counter:{}\n", number % 50, number % 7);
        if number % 100 == 0 {
            lines += &format!("RENAME list:{} list:{}\n", number % 50, (number + 1) % 50);
        }
        if number == 2500 {
            lines += "SELECT 5\nFLUSHALL\nSET five 1\nSWAPDB 0 5\nSELECT 0\n";
        }
    }
    let mut files = Files::with_log(&log(&lines));
    let mut all = Vec::new();
    for workers in [1, 2, 4] {
        files.config.workers = workers;
        let outcome = files.load().unwrap();
        all.push(outcome.contents());
        assert_eq!(outcome.get("five").as_deref(), Some("None string 1"));
        assert_eq!(outcome.get("counter:1").as_deref(), Some("None string 357"));
        let commands = outcome.shared.persistence.loading.commands.load(Ordering::Relaxed);
        assert_eq!(commands, 2 * 5000 + 50 + 3);
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn nothing_expires_by_the_clock_while_a_log_is_applied() {
    // At the time of INCR the key was alive; by now its time has come.
    let outcome = Files::with_log(&log(
        "SET k 5\nPEXPIREAT k 1000\nINCR k\nHSET h f v\nHPEXPIREAT h 1000 FIELDS 1 f\nHSET h g w\nSET s v PXAT 1000\n\
         APPEND s w",
    ))
    .load()
    .unwrap();
    assert_eq!(outcome.get("k").as_deref(), Some("Some(1000) string 6"));
    assert_eq!(outcome.get("s").as_deref(), Some("Some(1000) string vw"));
    assert_eq!(outcome.get("h").as_deref(), Some(r#"None hash {"f": ("v", Some(1000)), "g": ("w", None)}"#));
}

#[test]
fn relative_times_count_from_the_annotation_or_from_now() {
    let outcome =
        Files::with_log(&log("#TS:1000\nSET a v EX 10\nSETEX b 10 v\n#TS:2000\nSET c v\nEXPIRE c 10"))
            .load()
            .unwrap();
    assert_eq!(outcome.get("a").as_deref(), Some("Some(1010000) string v"));
    assert_eq!(outcome.get("b").as_deref(), Some("Some(1010000) string v"));
    assert_eq!(outcome.get("c").as_deref(), Some("Some(2010000) string v"));
    let before = unix_ms();
    let outcome = Files::with_log(&log("SET a v PX 50000")).load().unwrap();
    let at = outcome.shared.store.next_due_ms().unwrap();
    assert!((before + 50_000..=unix_ms() + 50_000).contains(&at));
}

#[test]
fn keys_of_a_log_count_as_used_now() {
    let mut files = Files::with_log(&log("SET k v"));
    files.config.maxmemory_policy = towline_store::evict::Policy::AllKeysLru;
    let outcome = files.load().unwrap();
    let mut server = crate::testing::Server::with(files.config.clone());
    server.local.shared = outcome.shared;
    server.now_ms = unix_ms() + 5000;
    let idle = server.line("OBJECT IDLETIME k");
    assert!([":5", ":6"].contains(&idle.as_str()), "{idle}");
}

#[test]
fn a_command_that_fails_is_an_error() {
    for (lines, part) in [
        ("SET k v\nLPUSH k x", "WRONGTYPE"),
        ("SET k", "wrong number of arguments"),
        ("SELECT x", "it selects no database"),
        ("SELECT 99", "database 99"),
        ("BLPOP k 0", "it would wait"),
        ("SETRANGE k -1 v", "offset is out of range"),
    ] {
        let files = Files::with_log(&log(&format!("SET first 1\n{lines}\nSET last 1")));
        let text = files.refusal();
        assert!(text.contains(part) && text.contains("at byte "), "{text}");
    }
}

#[test]
fn what_changes_nothing_is_passed_over() {
    let outcome =
        Files::with_log(&log("PING\nGET k\nSET k v\nMULTI\nEXEC\n# a comment\nPUBLISH c m")).load().unwrap();
    assert_eq!(outcome.contents().len(), 1);
}

#[test]
fn commands_that_are_not_there_are_listed_or_left_out_when_asked() {
    let lines = "SET a 1\nXADD s 1-1 f v\nXADD s 1-2 f v\nRENAME s t\nJSON.SET j $ 1\nSET b 2\nDEL s";
    let mut files = Files::with_log(&log(lines));
    let text = files.refusal();
    for part in
        ["command XADD, 2 times (first at byte 27)", "command JSON.SET (at byte ", "'load-unsupported skip'"]
    {
        assert!(text.contains(part), "{text}");
    }
    files.config.persistence.load_unsupported = LoadUnsupported::Skip;
    let keys: Vec<_> = files.load().unwrap().contents().into_keys().map(|(_, key)| key).collect();
    assert_eq!(keys, [b"a".to_vec(), b"b".to_vec()]);
    let mut files = Files::with_log(&log("SET a 1\nEVAL script 1 a"));
    files.config.persistence.load_unsupported = LoadUnsupported::Skip;
    assert!(files.refusal().contains("what it did to other data is not known"));
}
