//! Reads from replicas: which node of a shard a read goes to.
//!
//! Owns the look at the candidates as they are now, and the waiting for what is not known of them. Does not own the decision
//! (`towline_client_proto::routing::choose`), nor the measuring of lag ([`super::lag`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use towline_client_proto::routing::{
    Candidate, Choice, EndpointId, Lag, Reach, ReadFrom, RefreshCause, choose, choose_again,
};
use towline_client_proto::{Error, ErrorKind, LinkState, Order, Sent, Stray};
use towline_cluster::{Health, Slot};

use super::Cluster;
use super::node::{Node, Routes, Shard};
use crate::client::{Client, Inner, Role};
use crate::clock;
use crate::cmd::Cmd;
use crate::engine::Engine;

/// Where one read goes.
pub(super) enum Way {
    /// To the slot's owner, as everything else.
    Owner,
    /// To this replica.
    Replica(Arc<Node>),
    /// To a replica, once it is known how far it is behind.
    Later,
    /// To nobody.
    Nobody,
}

impl Cluster {
    /// Where a read on `slot` goes; connects replicas that should be used and are not yet.
    pub(super) fn way_of_read(&self, routes: &Routes, slot: Slot, policy: ReadFrom) -> Way {
        let Some(shard) = routes.shard(slot) else { return Way::Owner };
        if !self.is_reading.load(Ordering::Relaxed) {
            self.is_reading.store(true, Ordering::Relaxed);
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let chosen = choose(
            policy,
            || primary(&shard),
            shard.count(),
            |at| replica(&shard, at),
            self.cluster_options.lag_max(),
            turn,
        );
        if let Some((node, _)) = chosen.connect.and_then(|at| shard.replica(at)) {
            node.reader_in(self);
        }
        match chosen.choice {
            Choice::Primary => Way::Owner,
            Choice::Replica(at) => match shard.replica(at) {
                Some((node, _)) => Way::Replica(Arc::clone(node)),
                None => Way::Owner,
            },
            Choice::Later => Way::Later,
            Choice::Nobody => {
                // The map may be older than a failover that is over.
                self.request_refresh(RefreshCause::Redirected);
                Way::Nobody
            }
        }
    }

    /// Where a read goes that reader `from` did not answer.
    pub(super) fn way_of_stray(
        &self,
        routes: &Routes,
        from: EndpointId,
        stray: &Stray,
    ) -> Option<EndpointId> {
        let shard = routes.shard(stray.slot?)?;
        let was =
            (0..shard.count()).find(|at| shard.replica(*at).is_some_and(|(node, _)| node.id == from.node()));
        let choice = choose_again(
            stray.read,
            || primary(&shard),
            shard.count(),
            |at| replica(&shard, at),
            self.cluster_options.lag_max(),
            (was, stray.is_refused()),
        );
        match choice {
            Choice::Primary => Some(shard.owner().id),
            Choice::Replica(at) => shard.replica(at).map(|(node, _)| node.id.reader()),
            Choice::Later | Choice::Nobody => None,
        }
    }

    /// Waits until lags have been measured once more, for as long as a command may.
    pub(super) async fn measured_before(&self, order: &Order) -> Result<(), Error> {
        let measured = self.lag.measured();
        let until = clock::wall(order.deadline);
        let waiting = tokio::time::timeout_at(until.into(), measured).await;
        waiting.map_err(|_| Error::new(ErrorKind::Deadline, Sent::No))
    }

    /// The reader's engine.
    pub(super) fn reader_of(&self, node: &Node) -> Arc<Engine> {
        Arc::clone(node.reader_in(self).inner.endpoint())
    }
}

impl Client {
    /// Which nodes of a cluster may answer a command: the primary alone unless it only reads keys, which the command
    /// table says, and somebody waits for the answer.
    pub(crate) fn read_policy(&self, cmd: &Cmd) -> ReadFrom {
        let policy = cmd.options().read_from.unwrap_or(self.inner.read_from);
        if policy == ReadFrom::Primary || cmd.options().is_fire_and_forget || !cmd.only_reads() {
            return ReadFrom::Primary;
        }
        // Where one slot stands for everything, it stands for cursors as well, which belong to one server.
        if cmd.first_key().is_none() {
            return ReadFrom::Primary;
        }
        policy
    }

    /// A handle to the same client whose reads go where `policy` says, unless a command says something else. It shares the
    /// connections with all other handles. Of a client of one server it is the same handle again.
    ///
    /// Reads from replicas are not ordered with writes, nor with each other; see `docs/cluster-client.md`.
    pub fn reading_from(&self, policy: ReadFrom) -> Self {
        let Some(cluster) = self.inner.cluster() else { return self.clone() };
        let inner = &self.inner;
        Self {
            inner: Arc::new(Inner {
                way: crate::client::Way::Cluster(Arc::clone(cluster)),
                command_timeout: inner.command_timeout,
                is_idempotent_retried: inner.is_idempotent_retried,
                has_script_cache: inner.has_script_cache,
                cache: inner.cache.clone(),
                read_from: policy,
                events: inner.events.clone(),
                pubsub: None,
                role: Role::Clustered,
                further: crate::lanes::Further::none(),
                _running: None,
            }),
        }
    }
}

/// The error of a read that nobody may answer.
pub(super) fn no_replica(policy: ReadFrom) -> Error {
    Error::new(ErrorKind::NoReplica { policy }, Sent::No)
}

fn primary(shard: &Shard<'_>) -> Candidate {
    let owner = shard.owner();
    let reach = if owner.is_connected() { Reach::Up } else { Reach::Down };
    Candidate { reach, health: Health::Online, is_near: shard.is_owner_near(), lag: Lag::Bytes(0) }
}

fn replica(shard: &Shard<'_>, at: usize) -> Candidate {
    let Some((node, facts)) = shard.replica(at) else {
        return Candidate { reach: Reach::Down, health: Health::Failed, is_near: false, lag: Lag::Lost };
    };
    let reach = match node.reader() {
        None => Reach::Unused,
        Some(reader) => match reader.inner.endpoint().lock().bridge.link_state() {
            LinkState::Up => Reach::Up,
            _ => Reach::Down,
        },
    };
    Candidate { reach, health: facts.health, is_near: facts.is_near, lag: node.lag() }
}
