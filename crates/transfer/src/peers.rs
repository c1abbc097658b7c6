//! The peers that an engine knows.
//!
//! Owns: who there is and where. Does **not** own what is between us and them ([`crate::peer`]).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use sha2::{Digest, Sha256};
use towline_transfer_proto::{NodeId, OutboxConfig, TransferConfig};

use crate::error::OpenError;
use crate::peer::Peer;
use crate::shared::Shared;

/// The node of this name: everybody derives the same number from it.
pub fn node_id(name: &str) -> NodeId {
    let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
    let (first, _) = digest.split_first_chunk::<16>().expect("invariant: SHA-256 has 32 bytes");
    NodeId(u128::from_be_bytes(*first))
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Peers {
    shared: Arc<Shared>,
    transfer: TransferConfig,
    outbox: OutboxConfig,
    peers_max: usize,
    peers: RwLock<HashMap<NodeId, Arc<Peer>>>,
}

impl Peers {
    pub(crate) fn new(
        shared: Arc<Shared>,
        transfer: TransferConfig,
        outbox: OutboxConfig,
        peers_max: u32,
    ) -> Self {
        Self { shared, transfer, outbox, peers_max: peers_max as usize, peers: RwLock::default() }
    }

    pub(crate) fn find(&self, node: NodeId) -> Option<Arc<Peer>> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }

    /// The peer of this node, from now on if not before.
    ///
    /// # Errors
    /// As many are known as may be.
    pub(crate) fn meet(&self, node: NodeId) -> Result<Arc<Peer>, OpenError> {
        if let Some(peer) = self.find(node) {
            return Ok(peer);
        }
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = peers.get(&node) {
            return Ok(peer.clone());
        }
        if peers.len() >= self.peers_max {
            return Err(OpenError::TooManyPeers { peers: peers.len() });
        }
        let peer = Peer::new(node, self.shared.clone(), self.transfer, self.outbox);
        let peer = peer.expect("invariant: the configuration was checked when the engine began");
        peers.insert(node, peer.clone());
        Ok(peer)
    }

    /// Forgets a peer that nothing is left of and that was not named by the application.
    pub(crate) fn forget_unused(&self, node: NodeId) {
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        let is_unused =
            |peer: &Arc<Peer>| peer.address().is_none() && Arc::strong_count(peer) == 1 && peer.is_unused();
        if peers.get(&node).is_some_and(is_unused) {
            peers.remove(&node);
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Peer>> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
