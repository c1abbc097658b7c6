//! Loading again while the server runs.

use super::snapshots::FIXTURES;
use super::{Files, Outcome, ReloadError, ReloadFrom, ReloadOptions, log};
use crate::connection::unix_ms;
use crate::shared::Shared;
use crate::testing::Server;
use std::sync::Arc;
use towline_persist::rdb_file::{RdbWriter, RdbWriterOptions, ValueKey};

fn reload(shared: &Arc<Shared>, options: ReloadOptions) -> Result<(), ReloadError> {
    super::reload(shared, options, unix_ms())
}

const RELOAD: ReloadOptions =
    ReloadOptions { from: ReloadFrom::Snapshot, saves: false, flushes: true, merges: false };

fn snapshot(keys: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = RdbWriter::new(RdbWriterOptions::default());
    writer.database(0, None);
    for (key, value) in keys {
        writer.string(ValueKey { key: key.as_bytes(), expires_at_ms: None }, value.as_bytes());
    }
    writer.finish()
}

/// A server on loaded data.
fn server(files: &Files, outcome: &Outcome) -> Server {
    let mut server = Server::with(files.config.clone());
    server.local.shared = outcome.shared.clone();
    server
}

#[test]
fn the_data_is_that_of_the_file_again() {
    let files = Files::with_snapshot(FIXTURES[1].1);
    let outcome = files.load().unwrap();
    let before = outcome.contents();
    let mut server = server(&files, &outcome);
    server.line("SET string other");
    server.line("SET more 1");
    server.line("SELECT 7");
    server.line("SET seven 1");
    reload(&outcome.shared, RELOAD).unwrap();
    assert_eq!(outcome.contents(), before);
}

#[test]
fn what_cannot_be_loaded_changes_nothing() {
    let files = Files::with_snapshot(&snapshot(&[("a", "1")]));
    let outcome = files.load().unwrap();
    let before = outcome.contents();
    for bytes in [FIXTURES[0].2, &FIXTURES[0].1[..300]] {
        files.write("dump.rdb", bytes);
        assert!(matches!(reload(&outcome.shared, RELOAD), Err(ReloadError::Refused(_))));
        assert_eq!(outcome.contents(), before);
    }
    std::fs::remove_file(files.path("dump.rdb")).unwrap();
    assert!(matches!(reload(&outcome.shared, RELOAD), Err(ReloadError::Refused(_))));
    let from = ReloadFrom::Log;
    assert!(matches!(
        reload(&outcome.shared, ReloadOptions { from, ..RELOAD }),
        Err(ReloadError::Refused(_))
    ));
    assert_eq!(outcome.contents(), before);
}

#[test]
fn without_emptying_keys_that_are_there_are_refused_or_replaced() {
    let files = Files::with_snapshot(&snapshot(&[("a", "1"), ("b", "2")]));
    let outcome = files.load().unwrap();
    let mut server = server(&files, &outcome);
    server.line("SET a other");
    server.line("SET c 3");
    let before = outcome.contents();
    let keeps = ReloadOptions { flushes: false, ..RELOAD };
    assert!(matches!(reload(&outcome.shared, keeps), Err(ReloadError::Refused(_))));
    assert_eq!(outcome.contents(), before);
    reload(&outcome.shared, ReloadOptions { merges: true, ..keeps }).unwrap();
    let values: Vec<String> = outcome.contents().into_values().collect();
    assert_eq!(values, ["None string 1", "None string 2", "None string 3"]);
}

#[test]
fn a_log_is_loaded_again_and_serves_who_waits() {
    let files = Files::with_log(&log("SET a 1\nRPUSH list x\nSET b 2"));
    let outcome = files.load().unwrap();
    let mut server = server(&files, &outcome);
    server.line("DEL list b");
    server.line("SET a 7");
    let waiter = server.wait("BLPOP list 0");
    reload(&outcome.shared, ReloadOptions { from: ReloadFrom::Log, ..RELOAD }).unwrap();
    assert_eq!(Server::served(&waiter), "*2 $4 list $1 x");
    assert_eq!(outcome.get("a").as_deref(), Some("None string 1"));
    assert_eq!(outcome.get("b").as_deref(), Some("None string 2"));
    assert_eq!(outcome.get("list"), None);
}
