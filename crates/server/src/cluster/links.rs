//! Connections between nodes.
//!
//! Owns: dialling and accepting on the bus port, the handshake, requests and answers in frames, and the list of links. Does **not**
//! own what is asked (`raft` does) nor what a migration sends on its connection.

pub(crate) mod dialing;
pub(crate) mod handshake;
pub(crate) mod incoming;
pub(crate) mod messages;
pub(crate) mod outgoing;

use crate::cluster::log::Link;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;
use towline_cluster_proto::NodeId;

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// Requests and answers within a cluster.
    Raft,
    /// Slots on their way; the connection is handed over after its handshake.
    Migration,
    /// Requests and answers between nodes that are not of one cluster yet.
    Meet,
}

/// How long a handshake may take, on either side. Three round trips.
pub(crate) const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(2);

/// A connection whose dialler wants to bring slots.
#[derive(Debug)]
pub(crate) struct MigrationStream {
    /// Who dialled.
    pub(crate) node: NodeId,
    /// The connection, after the handshake: nothing else was read from it.
    pub(crate) stream: TcpStream,
}

/// The links there are.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    links: Mutex<BTreeMap<u64, Arc<LinkState>>>,
    next: AtomicU64,
}

/// A link, for as long as it lives.
#[derive(Debug)]
pub(crate) struct LinkState {
    node: NodeId,
    is_outgoing: bool,
    since_ms: u64,
    /// Bytes that are queued to be sent.
    pub(crate) queued_bytes: AtomicU64,
}

/// Takes a link out of the list when it ends.
#[derive(Debug)]
pub(crate) struct Registered {
    registry: Arc<Registry>,
    number: u64,
    /// The link.
    pub(crate) state: Arc<LinkState>,
}

impl Registry {
    fn links(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<LinkState>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a link into the list until the value is dropped.
    pub(crate) fn register(self: &Arc<Self>, node: NodeId, is_outgoing: bool) -> Registered {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let state =
            Arc::new(LinkState { node, is_outgoing, since_ms: unix_ms(), queued_bytes: AtomicU64::new(0) });
        self.links().insert(number, Arc::clone(&state));
        Registered { registry: Arc::clone(self), number, state }
    }

    /// All links, the oldest first.
    pub(crate) fn list(&self) -> Vec<Link> {
        let links = self.links();
        let link = |link: &Arc<LinkState>| {
            let queued = link.queued_bytes.load(Ordering::Relaxed) as usize;
            Link {
                node: link.node,
                is_outgoing: link.is_outgoing,
                since_ms: link.since_ms,
                send_buffer_allocated: queued,
                send_buffer_used: queued,
            }
        };
        links.values().map(link).collect()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registry.links().remove(&self.number);
    }
}

/// The wall clock, in unix milliseconds: for what is shown and logged, never for what is decided on one node.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
