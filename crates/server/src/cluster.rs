//! This node as a part of a cluster.
//!
//! Owns: what workers look at of the cluster ([`Cluster`]), the thread that keeps it up to date, and the way from commands to that
//! thread. Does **not** own what is decided (`towline-cluster-proto` does) nor keys (`towline-store`).
//!
//! ```text
//! command --Errand--> cluster thread --Change--> log --applied here--> Follower --under each slot's lock--> Table
//!    ^                                                                    |                                   |
//!    +---------------- reply, once this node's workers see it ------------+     workers: one look per command +
//! ```

pub(crate) mod errands;
pub(crate) mod follower;
pub(crate) mod gate;
pub(crate) mod identity;
pub(crate) mod import;
pub(crate) mod links;
#[cfg(test)]
pub(crate) mod local_log;
pub(crate) mod log;
pub(crate) mod migrations;
pub(crate) mod node;
pub(crate) mod raft;
pub(crate) mod table;

use arc_swap::{ArcSwap, Guard};
use errands::{Errand, Request};
use follower::Follower;
use log::{MetadataLog, Standing};
use migrations::Migrations;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use table::{PARKED, Table};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use towline_cluster_proto::gate::{NodeState, SlotState};
use towline_cluster_proto::{Metadata, Migration, NodeId, Ranges, Role};
use towline_store::store::Store;

use crate::blocking::Waiter;
use crate::config::ClusterConfig;
use towline_cluster::Slot;

/// What this node knows of its cluster, as of one entry of the log.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// What was decided.
    pub(crate) metadata: Arc<Metadata>,
    /// This node's name.
    pub(crate) me: NodeId,
    /// How this node stands.
    pub(crate) standing: Standing,
    /// Whether the cluster serves.
    pub(crate) is_ok: bool,
}

impl Known {
    /// Nothing is known before the log is open.
    fn nothing() -> Self {
        let me = NodeId::from_bytes([0; NodeId::BYTES]);
        let standing = Standing { node: me, is_fresh: false, leader: None, term: 0 };
        Self { metadata: Arc::default(), me, standing, is_ok: false }
    }

    /// The slot, as this node has it.
    pub(crate) fn slot(&self, slot: Slot, is_parked: bool) -> SlotState {
        SlotState::of(&self.metadata, self.me, slot, is_parked)
    }

    /// Whether an earlier process of this node may have proposed that the migration hands its slots over.
    fn is_interrupted(&self, migrations: &Migrations, id: NodeId, migration: &Migration) -> bool {
        migration.is_active() && migration.source == self.me && migrations.is_interrupted(id)
    }

    /// The node, as the gate needs it.
    pub(crate) fn node_state(&self, config: &ClusterConfig) -> NodeState {
        NodeState {
            is_cluster_ok: self.is_ok,
            allows_reads_when_down: config.allow_reads_when_down,
            allows_shard_pubsub_when_down: config.allow_pubsubshard_when_down,
            // A replica has no data yet.
            replicates: None,
        }
    }

    /// The primary that this node is a replica of.
    pub(crate) fn my_primary(&self) -> Option<NodeId> {
        match self.metadata.node(self.me)?.role {
            Role::Primary => None,
            Role::Replica { of } => Some(of),
        }
    }
}

/// The cluster as workers see it. There is none outside of cluster mode.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// What every command looks at.
    pub(crate) table: Table,
    /// What this node works on.
    pub(crate) migrations: Migrations,
    known: ArcSwap<Known>,
    log: OnceLock<Arc<dyn MetadataLog>>,
    follower: Mutex<Follower>,
    /// Bounded by the number of clients: each waits for its errand.
    errands: UnboundedSender<Request>,
    /// Until the thread takes it.
    receiver: Mutex<Option<UnboundedReceiver<Request>>>,
}

impl Default for Cluster {
    fn default() -> Self {
        let (errands, receiver) = unbounded_channel();
        Self {
            table: Table::default(),
            migrations: Migrations::default(),
            known: ArcSwap::from_pointee(Known::nothing()),
            log: OnceLock::new(),
            follower: Mutex::default(),
            errands,
            receiver: Mutex::new(Some(receiver)),
        }
    }
}

impl Cluster {
    /// What is known now. For what is rare, and for commands that [`Table`] says need a closer look.
    pub(crate) fn known(&self) -> Guard<Arc<Known>> {
        self.known.load()
    }

    /// The log, once it is open.
    pub(crate) fn log(&self) -> Option<&Arc<dyn MetadataLog>> {
        self.log.get()
    }

    /// From now on this is the log; called once.
    pub(crate) fn open(&self, log: Arc<dyn MetadataLog>) {
        let _ = self.log.set(log);
    }

    /// Asks the cluster's thread for something that nobody waits for.
    pub(crate) fn ask(&self, errand: Errand) {
        self.send(errand, None);
    }

    /// Asks the cluster's thread for something whose reply ends the waiting. After the thread's end the server ends as well, and its
    /// clients are closed.
    pub(crate) fn send(&self, errand: Errand, waiter: Option<Arc<Waiter>>) {
        let _ = self.errands.send(Request { errand, waiter });
    }

    /// From now on nothing on these slots runs here.
    pub(crate) fn park(&self, store: &Store, slots: &Ranges) {
        for slot in each(slots) {
            store.with_locked(slot, |_| self.table.set(slot, PARKED, true));
        }
    }

    /// Slots that were parked go on, but for those that another migration takes away of which nobody knows what was proposed. What is known has
    /// to be up to date.
    pub(crate) fn unpark(&self, store: &Store, slots: &Ranges) {
        let known = self.known();
        for slot in each(slots) {
            let taken = known.metadata.migration_of(slot);
            if !taken.is_some_and(|(id, migration)| known.is_interrupted(&self.migrations, id, migration)) {
                store.with_locked(slot, |_| self.table.set(slot, PARKED, false));
            }
        }
    }

    /// The errands, once.
    fn receiver(&self) -> Option<UnboundedReceiver<Request>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The slots of ranges.
pub(crate) fn each(slots: &Ranges) -> impl Iterator<Item = Slot> + Clone + use<> {
    slots.clone().into_iter().flat_map(|(first, last)| first..=last)
}
