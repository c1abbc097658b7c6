//! Who says where commands go: a cluster's nodes, sentinels, or the servers themselves.
//!
//! Owns what follows from that for a client with one primary: one slot ([`ONLY_SLOT`]) stands for all keys, so that all commands
//! keep one order, nothing is split, and every command goes to the primary as to a single server. Does not own the asking
//! ([`super::refresh`], [`super::sentinel`]).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use towline_client_proto::routing::Plan;
use towline_client_proto::{Error, ErrorKind};
use towline_cluster::sentinel::ONLY_SLOT;
use towline_cluster::{Address, Slot, key_slot};

use super::node::Node;
use super::sentinel::Sentinels;
use super::{Cluster, ClusterOptions};
use crate::client::Client;
use crate::cmd::Cmd;
use crate::options::{ConnectOptions, OptionsError};
use crate::primary_options::{ReplicatedOptions, SentinelOptions};
use crate::transport::Target;

/// How the servers are found, as it was configured.
pub(crate) enum Topology {
    Cluster(ClusterOptions),
    Sentinel(SentinelOptions),
    Replicated(ReplicatedOptions),
}

/// Who is asked.
pub(super) enum Source {
    /// Nodes of the cluster.
    Cluster,
    /// Sentinels, about one primary and its replicas.
    Sentinel(Box<Sentinels>),
    /// Servers, each of them about itself.
    Replicated,
}

impl Source {
    /// Whether it knows one primary with its replicas, and not a cluster.
    pub(super) const fn has_one_primary(&self) -> bool {
        !matches!(self, Self::Cluster)
    }
}

/// What a [`Topology`] amounts to.
pub(super) struct Parts {
    pub(super) source: Source,
    /// Those of a connection to a server.
    pub(super) options: ConnectOptions,
    pub(super) cluster_options: ClusterOptions,
    pub(super) refresh_interval: Duration,
}

impl Topology {
    /// # Errors
    /// The options do not go together.
    pub(super) fn into_parts(self, options: ConnectOptions) -> Result<Parts, OptionsError> {
        Ok(match self {
            Self::Cluster(cluster_options) => {
                let refresh_interval = cluster_options.refresh_time();
                Parts { source: Source::Cluster, options, cluster_options, refresh_interval }
            }
            Self::Sentinel(sentinel) => Parts {
                source: Source::Sentinel(Box::new(Sentinels::new(&sentinel, &options)?)),
                options: options.primary_only(true),
                cluster_options: ClusterOptions::new(),
                refresh_interval: sentinel.refresh_time(),
            },
            Self::Replicated(replicated) => {
                let further = replicated.further_servers().iter().cloned();
                Parts {
                    source: Source::Replicated,
                    options: options.primary_only(true),
                    cluster_options: further.fold(ClusterOptions::new(), ClusterOptions::seed),
                    refresh_interval: replicated.refresh_time(),
                }
            }
        })
    }
}

impl Cluster {
    /// Whether there is one primary, to which all commands go in one order.
    pub(crate) const fn has_one_primary(&self) -> bool {
        self.source.has_one_primary()
    }

    /// Where a command goes, in this client's way. `may_split`: in parts, if its keys are in several slots.
    pub(super) fn plan_of(&self, cmd: &Cmd, may_split: bool) -> Plan {
        if self.has_one_primary() { Plan::Slot(ONLY_SLOT) } else { cmd.plan(may_split) }
    }

    /// The one slot of a command's keys; `None` if it has none, or several.
    pub(super) fn slot_of(&self, cmd: &Cmd) -> Option<Slot> {
        match self.plan_of(cmd, false) {
            Plan::Slot(slot) => Some(slot),
            Plan::Anywhere | Plan::Spread(..) | Plan::Split { .. } | Plan::Refused(_) => None,
        }
    }

    /// The slot of a key.
    pub(crate) fn slot_of_key(&self, key: &[u8]) -> Slot {
        if self.has_one_primary() { ONLY_SLOT } else { key_slot(key) }
    }

    /// The options of the connections to a node. Of those that are not the primary nothing is required.
    pub(super) fn node_options(&self, address: &Address, is_primary: bool) -> ConnectOptions {
        let Address { host, port } = self.options.reached(address);
        let options = self.options.clone().with_target(Target::tcp(&*host, port));
        options.primary_only(self.has_one_primary() && is_primary)
    }

    /// The client of the one primary.
    ///
    /// # Errors
    /// Nobody has named one within `timeout`.
    pub(crate) async fn primary(&self, timeout: Duration) -> Result<Client, Error> {
        Ok(self.primary_node(timeout).await?.client_in(self).clone())
    }

    async fn primary_node(&self, timeout: Duration) -> Result<Arc<Node>, Error> {
        self.node_for(Some(ONLY_SLOT), timeout).await
    }

    /// Waits until there is a map and, if there is one primary, until it serves.
    ///
    /// # Errors
    /// As [`Client::open`](crate::Client::open).
    pub(crate) async fn connected_within(&self, timeout: Duration) -> Result<(), Error> {
        let end = Instant::now().checked_add(timeout);
        let ready = tokio::time::timeout(timeout, self.ready()).await;
        ready.unwrap_or_else(|_| Err(self.no_map()))?;
        if !self.has_one_primary() {
            return Ok(());
        }
        let mut last: Option<Arc<Node>> = None;
        loop {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            let node = self.primary_node(left).await?;
            let outcome = Box::pin(node.client_in(self).connected_within(left)).await;
            match outcome {
                // It is no primary any more: its heir is waited for instead.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Closed)
                        && !self.is_closed()
                        && last.as_ref().is_none_or(|last| last.id != node.id) =>
                {
                    last = Some(node);
                }
                outcome => return outcome,
            }
        }
    }

    /// As [`Cluster::connected_within`], without end.
    ///
    /// # Errors
    /// As [`Client::ready`](crate::Client::ready).
    pub(crate) async fn served(&self) -> Result<(), Error> {
        loop {
            self.ready().await?;
            if !self.has_one_primary() {
                return Ok(());
            }
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let Some(node) = self.node(Some(ONLY_SLOT)) else { continue };
            tokio::select! {
                ready = Box::pin(node.client_in(self).ready()) => match ready {
                    Err(error) if matches!(error.kind(), ErrorKind::Closed) && !self.is_closed() => {}
                    outcome => return outcome,
                },
                () = &mut changed => continue,
            }
            changed.await;
        }
    }

    /// Where subscriptions lead is known once there is a map.
    ///
    /// # Errors
    /// There is none within `timeout`.
    pub(crate) async fn ready_to_follow(&self, timeout: Duration) -> Result<(), Error> {
        if !self.has_one_primary() || self.routes.load().has_map() {
            return Ok(());
        }
        tokio::time::timeout(timeout, self.ready()).await.unwrap_or_else(|_| Err(self.no_map()))
    }

    /// Why there is no map, where nobody has said.
    pub(super) const fn nobody_answered(&self) -> &'static str {
        match self.source {
            Source::Cluster => "no node of the cluster answered within the time",
            Source::Sentinel(_) => "no sentinel answered within the time",
            Source::Replicated => "no server answered within the time",
        }
    }
}
