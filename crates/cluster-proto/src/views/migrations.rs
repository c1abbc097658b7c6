//! `CLUSTER GETSLOTMIGRATIONS`.

use super::Viewer;
use crate::change::MigrationEnd;
use crate::id::NodeId;
use crate::metadata::{Migration, MigrationState};
use towline_resp::writer::Writer;

/// How far this node has come with a migration that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Its state in Valkey's words (`snapshotting`, `replicating`, ...).
    pub state: &'a str,
    /// When the other node was last heard of, in unix milliseconds.
    pub heard_ms: u64,
    /// What is shown to the operator.
    pub message: &'a str,
    /// Bytes that the target does not have yet.
    pub remaining_bytes: u64,
}

impl Viewer<'_> {
    /// The reply to `CLUSTER GETSLOTMIGRATIONS`: what moves from or to this node, the newest first, and at most `kept`
    /// (`cluster-slot-migration-log-max-len`) that are over. `progress` of one that is under way is `None` before this node has begun.
    pub fn write_migrations<'p>(
        &self,
        kept: usize,
        progress: impl Fn(NodeId) -> Option<Progress<'p>>,
        out: &mut Writer,
    ) {
        let all = self.metadata.migrations().iter();
        let mut mine: Vec<(NodeId, &Migration)> = all
            .filter(|(_, migration)| [migration.source, migration.target].contains(&self.me))
            .map(|(&id, migration)| (id, migration))
            .collect();
        mine.sort_unstable_by_key(|(_, migration)| std::cmp::Reverse(migration.number));
        let mut over = 0;
        mine.retain(|(_, migration)| {
            over += usize::from(!migration.is_active());
            migration.is_active() || over <= kept
        });
        out.array(mine.len());
        for (id, migration) in mine {
            let progress = if migration.is_active() { progress(id) } else { None };
            self.write_migration(id, migration, progress, out);
        }
    }

    fn write_migration(
        &self,
        id: NodeId,
        migration: &Migration,
        progress: Option<Progress<'_>>,
        out: &mut Writer,
    ) {
        let is_export = migration.source == self.me;
        let (state, message) = match &migration.state {
            MigrationState::Done => ("success", ""),
            MigrationState::Ended { end: MigrationEnd::Failed, message } => ("failed", message.as_str()),
            MigrationState::Ended { end: MigrationEnd::Cancelled, message } => {
                ("cancelled", message.as_str())
            }
            MigrationState::Active => match (progress, is_export) {
                (Some(progress), _) => (progress.state, progress.message),
                (None, true) => ("connecting", ""),
                (None, false) => ("waiting-for-ack", ""),
            },
        };
        let ranges = migration.slots.iter().map(|(first, last)| format!("{first}-{last}"));
        let heard_ms = progress.map_or(migration.updated_ms, |progress| progress.heard_ms);
        // Valkey's times are in seconds.
        let seconds = |ms: u64| i64::try_from(ms / 1000).unwrap_or(i64::MAX);
        let bytes = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        out.map(12);
        for (name, text) in [
            ("name", id.to_string().as_str()),
            ("operation", if is_export { "EXPORT" } else { "IMPORT" }),
            ("slot_ranges", &ranges.collect::<Vec<_>>().join(" ")),
            ("target_node", &migration.target.to_string()),
            ("source_node", &migration.source.to_string()),
        ] {
            out.bulk(name.as_bytes());
            out.bulk(text.as_bytes());
        }
        for (name, time) in [
            ("create_time", migration.created_ms),
            ("last_update_time", migration.updated_ms.max(heard_ms)),
            ("last_ack_time", heard_ms),
        ] {
            out.bulk(name.as_bytes());
            out.int(seconds(time));
        }
        for (name, text) in [("state", state), ("message", message)] {
            out.bulk(name.as_bytes());
            out.bulk(text.as_bytes());
        }
        // Nothing is copied on write: a snapshot is a walk over live slots.
        for (name, count) in
            [("cow_size", 0), ("remaining_repl_size", progress.map_or(0, |it| it.remaining_bytes))]
        {
            out.bulk(name.as_bytes());
            out.int(bytes(count));
        }
    }
}
