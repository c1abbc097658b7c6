//! The state that a Raft group's entries are applied to.
//!
//! Owns: the metadata as of the last entry applied, who hears of it, and its snapshots. Does **not** own what an entry does to it
//! (`towline-cluster-proto` does).

use super::format::snapshot_file;
use super::store::Store;
use super::types::{Entry, LogId, Membership, SnapshotMeta, StorageError, Types};
use crate::failpoint;
use openraft::storage::RaftStateMachine;
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot, StorageIOError};
use std::sync::Arc;
use tokio::sync::watch;
use towline_cluster_proto::{Metadata, Outcome};

/// The metadata of a group as of an entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Applied {
    /// The entry; `None` before the first.
    pub(crate) last: Option<LogId>,
    /// The state after it.
    pub(crate) metadata: Arc<Metadata>,
}

impl Applied {
    /// The number of the entry; 0 before the first, which openraft has as number 0 as well, and which says nothing of ours.
    pub(crate) fn index(&self) -> u64 {
        self.last.map_or(0, |last| last.index)
    }
}

/// The state machine of a group.
#[derive(Debug)]
pub(crate) struct Machine {
    store: Store,
    applied: Applied,
    membership: Membership,
    heard: watch::Sender<Applied>,
}

impl Machine {
    /// A machine as of a snapshot, or with nothing applied; all that it applies is heard of through the second value.
    pub(crate) fn new(store: Store) -> (Self, watch::Receiver<Applied>) {
        let (mut applied, mut membership) = (Applied::default(), Membership::default());
        if let Some((meta, metadata)) = store.kept() {
            applied = Applied { last: meta.last_log_id, metadata };
            membership = meta.last_membership;
        }
        let (heard, hearing) = watch::channel(applied.clone());
        (Self { store, applied, membership, heard }, hearing)
    }
}

async fn keep(store: &Store, meta: SnapshotMeta, metadata: Arc<Metadata>) -> Result<(), StorageError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        let error = std::io::Error::other(error.to_string());
        StorageError::from(StorageIOError::write_snapshot(Some(meta.signature()), &error))
    };
    let file = snapshot_file(&meta, &metadata).map_err(|error| failed(&error))?;
    store.write_snapshot(file).await.map_err(|error| failed(&error))?;
    store.set_kept(meta, metadata);
    Ok(())
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), StorageError> {
        Ok((self.applied.last, self.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Outcome>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut outcomes = Vec::new();
        for entry in entries {
            self.applied.last = Some(entry.log_id);
            outcomes.push(match entry.payload {
                EntryPayload::Blank => Outcome::Done,
                EntryPayload::Normal(change) => {
                    failpoint::change("apply", &change);
                    let outcome = Arc::make_mut(&mut self.applied.metadata).apply(&change);
                    failpoint::change("applied", &change);
                    outcome
                }
                EntryPayload::Membership(membership) => {
                    self.membership = Membership::new(Some(entry.log_id), membership);
                    Outcome::Done
                }
            });
        }
        self.heard.send_replace(self.applied.clone());
        Ok(outcomes)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder {
            store: self.store.clone(),
            applied: self.applied.clone(),
            membership: self.membership.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Metadata>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<Metadata>,
    ) -> Result<(), StorageError> {
        // On the disk first: after this, entries that it stands for are purged.
        let metadata = Arc::new(*snapshot);
        keep(&self.store, meta.clone(), Arc::clone(&metadata)).await?;
        self.applied = Applied { last: meta.last_log_id, metadata };
        self.membership = meta.last_membership.clone();
        self.heard.send_replace(self.applied.clone());
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        let kept = self.store.kept();
        Ok(kept.map(|(meta, metadata)| Snapshot { meta, snapshot: Box::new((*metadata).clone()) }))
    }
}

/// Makes a snapshot of the state as it was when this was made.
#[derive(Debug)]
pub(crate) struct Builder {
    store: Store,
    applied: Applied,
    membership: Membership,
}

impl RaftSnapshotBuilder<Types> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let last = self.applied.last;
        let snapshot_id =
            last.map_or_else(|| "0-0".into(), |last| format!("{}-{}", last.leader_id.term, last.index));
        let meta = SnapshotMeta { last_log_id: last, last_membership: self.membership.clone(), snapshot_id };
        let metadata = Arc::clone(&self.applied.metadata);
        keep(&self.store, meta.clone(), Arc::clone(&metadata)).await?;
        Ok(Snapshot { meta, snapshot: Box::new((*metadata).clone()) })
    }
}
