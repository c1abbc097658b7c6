//! Places where a test holds the process, to kill it there, or another one.
//!
//! Owns: finding out whether a place is wanted, and waiting there. Does **not** own what is done with who waits.
//!
//! Only builds with debug assertions have them, and only if `FAILPOINT_DIR` names a directory when the process starts. A thread
//! that comes to the place `name`, while there is a file of this name in the directory, renames it to `name.reached` and waits until that is
//! gone. So a place holds one thread once; whoever put the file there sees that it was reached, and removes the file, or kills the process.
//!
//! The names: `source-*` and `target-*` are steps of a migration as a whole, `migrate-*` of `MIGRATE`. A change of the cluster passes
//! `ask-*` before it is proposed, `append-*` before an entry with it is written to a node's log, `apply-*` and `applied-*` before and after
//! it is applied there; behind the dash stands what is changed (see [`what`]). At `answer` a client is told what came of its change, and at
//! `decided` a node has heard from the log what became of a migration.

#[cfg(debug_assertions)]
use std::{path::PathBuf, sync::OnceLock, time::Duration};
use towline_cluster_proto::Change;

/// How long the thread rests between two looks: the test's next step takes longer.
#[cfg(debug_assertions)]
const LOOK: Duration = Duration::from_millis(1);

/// The place `name` is reached.
#[cfg(debug_assertions)]
pub(crate) fn pass(name: &str) {
    static DIR: OnceLock<Option<PathBuf>> = OnceLock::new();
    let Some(dir) = DIR.get_or_init(|| std::env::var_os("FAILPOINT_DIR").map(PathBuf::from)) else {
        return;
    };
    let reached = dir.join(format!("{name}.reached"));
    if std::fs::rename(dir.join(name), &reached).is_ok() {
        while reached.exists() {
            std::thread::park_timeout(LOOK);
        }
    }
}

/// There are no such places in a build for use.
#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn pass(_name: &str) {}

/// The place `stage` of a change is reached. Changes that have to do with moving slots have places, and no others.
pub(crate) fn change(stage: &str, change: &Change) {
    if !cfg!(debug_assertions) {
        return;
    }
    match change {
        Change::Many(changes) => changes.iter().for_each(|part| self::change(stage, part)),
        one => {
            if let Some(what) = what(one) {
                pass(&format!("{stage}-{what}"));
            }
        }
    }
}

fn what(change: &Change) -> Option<&'static str> {
    Some(match change {
        Change::BeginMigration { .. } => "begin",
        Change::CommitMigration { .. } => "commit",
        Change::EndMigration { .. } => "end",
        Change::SetMigrating { .. } => "migrating",
        Change::SetImporting { .. } => "importing",
        Change::SetStable { .. } => "stable",
        Change::SetOwner { .. } => "owner",
        _ => return None,
    })
}
