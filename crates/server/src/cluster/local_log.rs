//! A log of changes for one node, in memory.
//!
//! Owns: applying changes in the order of their coming. Does **not** own files or other nodes: it is for tests of the server without
//! either.

use super::log::{Answer, Link, MeetError, MetadataLog, Peer, ProposeError, Standing};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use towline_cluster_proto::{Announced, Change, Metadata, NodeId, Outcome};

/// See the module's description.
#[derive(Debug)]
pub(crate) struct LocalLog {
    order: Mutex<()>,
    metadata: watch::Sender<Arc<Metadata>>,
    standing: watch::Sender<Standing>,
}

impl LocalLog {
    /// The log of a node that founds its cluster.
    pub(crate) fn new(cluster: NodeId, node: NodeId, shard: NodeId, at: Announced) -> Self {
        let standing = Standing { node, is_fresh: true, leader: Some(node), term: 1 };
        let log = Self {
            order: Mutex::default(),
            metadata: watch::Sender::new(Arc::default()),
            standing: watch::Sender::new(standing),
        };
        log.apply(&Change::Found { cluster, node, shard, at });
        log
    }

    /// Makes a change, here and now.
    pub(crate) fn apply(&self, change: &Change) -> Outcome {
        let _one_at_a_time = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let mut metadata = Metadata::clone(&self.metadata.borrow());
        let outcome = metadata.apply(change);
        self.metadata.send_replace(Arc::new(metadata));
        outcome
    }

    /// From now on a quorum is heard of, or is not.
    pub(crate) fn set_fresh(&self, is_fresh: bool) {
        self.standing.send_modify(|standing| standing.is_fresh = is_fresh);
    }
}

fn ready<T: Send + 'static>(value: T) -> Answer<T> {
    Box::pin(std::future::ready(value))
}

impl MetadataLog for LocalLog {
    fn propose(&self, change: Change) -> Answer<Result<Outcome, ProposeError>> {
        ready(Ok(self.apply(&change)))
    }

    fn metadata(&self) -> watch::Receiver<Arc<Metadata>> {
        self.metadata.subscribe()
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    fn meet(&self, peer: Peer) -> Answer<Result<(), MeetError>> {
        let address = (peer.ip, peer.bus_port).into();
        ready(Err(MeetError::Unreachable { address, reason: "this node has no links to others".into() }))
    }

    fn reset(&self, node: NodeId) -> Answer<Result<(), ProposeError>> {
        let old = self.standing.borrow().node;
        let metadata = self.metadata.borrow().clone();
        let Some(known) = metadata.node(old) else { return ready(Err(ProposeError::Closed)) };
        let mut fresh = Metadata::default();
        let found = Change::Found { cluster: node, node, shard: known.shard, at: known.at.clone() };
        fresh.apply(&found);
        self.metadata.send_replace(Arc::new(fresh));
        self.standing.send_modify(|standing| (standing.node, standing.leader) = (node, Some(node)));
        ready(Ok(()))
    }

    fn announce(&self, at: Announced) {
        let node = self.standing.borrow().node;
        self.apply(&Change::Announce { node, at });
    }

    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
