//! What every step uses: lanes and nodes by name, timers, connections, generations.

use std::collections::{BTreeMap, BTreeSet};

use towline_admission::{Backoff, BackoffConfig, Breaker, LossCause};
use towline_sansio::Instant;

use crate::identity::{Attempt, ConnId, LinkId, LinkKey, NodeId, Psn};
use crate::wire::Message;

use super::Connections;
use super::line::{Line, Peer, Phase};
use super::output::Output;

impl Connections {
    pub(super) fn retire(&mut self, link: LinkId) {
        if self.owners.remove(&link).is_some() {
            self.outputs.push_back(Output::Retire { link });
        }
    }

    pub(super) fn send(&mut self, conn: ConnId, message: Message) {
        self.outputs.push_back(Output::Send { conn, message });
    }

    /// Closes a connection that is still known; the driver hears of each once.
    pub(super) fn close(&mut self, conn: ConnId) {
        if self.conns.remove(&conn).is_some() {
            self.outputs.push_back(Output::Close { conn });
        }
    }

    pub(super) fn wait_until(&mut self, key: LinkKey, at: Instant) {
        self.line(key).phase = Phase::Waiting;
        self.set_timer(key, Some(at));
    }

    pub(super) fn set_timer(&mut self, key: LinkKey, at: Option<Instant>) {
        let before = std::mem::replace(&mut self.line(key).timer, at);
        if let Some(before) = before {
            self.timers.remove(&(before, key));
        }
        if let Some(at) = at {
            self.timers.insert((at, key));
        }
    }

    /// When to try a node again after an attempt that failed.
    pub(super) fn after_failure(&mut self, now: Instant, node: NodeId) -> Instant {
        let peer = self.peers.get_mut(&node).expect("invariant: a node is met before it is used");
        peer.backoff.failed(now, &mut self.prng)
    }

    /// When to make a lane anew after its link was lost. Others may have lost theirs for the same reason.
    pub(super) fn after_loss(&mut self, now: Instant, key: LinkKey) -> Instant {
        let line = self.peers.get_mut(&key.node).and_then(|peer| peer.lines.get_mut(&key.lane));
        let line = line.expect("invariant: a lane is met before it is used");
        line.backoff.lost(now, LossCause::Shared, &mut self.prng)
    }

    /// Makes room for a lane. False if there is none.
    pub(super) fn meet(&mut self, key: LinkKey) -> bool {
        if !self.peers.contains_key(&key.node) {
            if count(self.peers.len()) >= self.config.peers_max && !self.forget_one() {
                return false;
            }
            let breaker =
                Breaker::new(self.config.breaker).expect("invariant: the breaker's numbers were checked");
            let peer = Peer {
                incarnation: None,
                breaker,
                backoff: fresh(self.config.backoff),
                blocked: BTreeSet::new(),
                lines: BTreeMap::new(),
            };
            self.peers.insert(key.node, peer);
        }
        let backoff = self.config.backoff;
        self.peer(key.node).lines.entry(key.lane).or_insert_with(|| Line {
            phase: Phase::Idle,
            is_wanted: false,
            queue_pairs: 1,
            attempt: Attempt::default(),
            seen: Attempt::default(),
            is_insisting: false,
            ticket: None,
            backoff: fresh(backoff),
            timer: None,
        });
        true
    }

    /// Forgets a node without any work. Its earlier lives could come back then, as they could after a restart of ours.
    pub(super) fn forget_one(&mut self) -> bool {
        let is_idle =
            |peer: &Peer| peer.lines.values().all(|line| !line.phase.is_at_work() && !line.is_wanted);
        let idle = self.peers.iter().find(|(_, peer)| is_idle(peer)).map(|(node, _)| *node);
        idle.is_some_and(|node| self.peers.remove(&node).is_some())
    }

    pub(super) fn peer(&mut self, node: NodeId) -> &mut Peer {
        self.peers.get_mut(&node).expect("invariant: a node is met before it is used")
    }

    pub(super) fn line(&mut self, key: LinkKey) -> &mut Line {
        self.find(key).expect("invariant: a lane is met before it is used")
    }

    pub(super) fn find(&mut self, key: LinkKey) -> Option<&mut Line> {
        self.peers.get_mut(&key.node)?.lines.get_mut(&key.lane)
    }

    pub(super) fn conn_id(&mut self) -> ConnId {
        self.next_conn += 1;
        ConnId(self.next_conn)
    }

    pub(super) fn new_link(&mut self, key: LinkKey) -> LinkId {
        self.next_link += 1;
        let link = LinkId(self.next_link);
        self.owners.insert(link, key);
        link
    }

    pub(super) fn psns(&mut self, queue_pairs: usize) -> Vec<Psn> {
        let mut psn =
            || if self.guards.random_psn { Psn::new(self.prng.next_u64() as u32) } else { Psn::new(0) };
        (0..queue_pairs).map(|_| psn()).collect()
    }
}

/// A backoff that has seen nothing.
pub(super) fn fresh(config: BackoffConfig) -> Backoff {
    Backoff::new(config).expect("invariant: the backoff's numbers were checked")
}

/// Numbers of things in memory are far below 2^32.
pub(super) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
