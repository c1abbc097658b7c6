//! What a client of a cluster can be told besides what every client can.
//!
//! Owns [`ClusterOptions`]. Does not own the options of the connections to its nodes ([`crate::ConnectOptions`]).

use std::time::Duration;

use towline_client_proto::routing::ReadFrom;

use crate::transport::Target;

/// How to find a cluster and how to use it; see [`ConnectOptions::cluster`](crate::ConnectOptions::cluster).
///
/// ```
/// use towline_client::{ClusterOptions, ConnectOptions, transport::Target};
///
/// let options = ConnectOptions::new(Target::tcp("node-1.example", 7000))
///     .cluster(ClusterOptions::new().seed(Target::tcp("node-2.example", 7000)).split_by_slot(false));
/// let same: ConnectOptions = "redis://node-1.example:7000,node-2.example:7000/?cluster=true".parse()?;
/// assert_eq!(same.target(), options.target());
/// # Ok::<(), towline_client::UrlError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    seeds: Vec<Target>,
    is_split: bool,
    refresh_interval: Duration,
    read_from: ReadFrom,
    zone: Option<Box<str>>,
    replica_lag_max: Option<u64>,
}

impl ClusterOptions {
    /// The defaults. What each is, and why, stands at its setter.
    pub const fn new() -> Self {
        Self {
            seeds: Vec::new(),
            is_split: true,
            refresh_interval: Duration::from_secs(60),
            read_from: ReadFrom::Primary,
            zone: None,
            replica_lag_max: None,
        }
    }

    /// Another address under which the cluster is looked for. Names are resolved anew each time: they are the way back when
    /// all nodes have new addresses.
    pub fn seed(mut self, seed: Target) -> Self {
        self.seeds.push(seed);
        self
    }

    /// Whether `MGET`, `MSET`, `DEL`, `UNLINK`, `EXISTS` and `TOUCH` with keys of several slots are sent in parts, one for
    /// each slot, and their replies joined. Default: yes, as programs that were written for one server expect. The parts are
    /// not one atomic command: another client may see, or change, something between them, and if one part fails the others
    /// may have run. Without it the server refuses such commands (`CROSSSLOT`).
    pub const fn split_by_slot(mut self, is_split: bool) -> Self {
        self.is_split = is_split;
        self
    }

    /// The slot map is asked for after this time in any case; redirects, losses and refusals ask for it at once.
    /// Default 60 s: a node that came without slots, or a replica that has gone, is noticed within a minute.
    /// `Duration::MAX`: never without a reason.
    pub const fn refresh_interval(mut self, interval: Duration) -> Self {
        self.refresh_interval = interval;
        self
    }

    /// Which nodes answer commands that only read, unless a command ([`Cmd::read_from`](crate::Cmd::read_from)) or a handle
    /// ([`Client::reading_from`](crate::Client::reading_from)) says something else. Default: primaries, because a replica may
    /// not have a write yet that was acknowledged before.
    pub const fn read_from(mut self, policy: ReadFrom) -> Self {
        self.read_from = policy;
        self
    }

    /// The availability zone in which this process runs, as servers call it (`availability-zone` of Valkey 8 and later). Default:
    /// none, and then no node is near. Needed by [`ReadFrom::Nearest`] and [`ReadFrom::InZone`].
    pub fn zone(mut self, zone: impl Into<Box<str>>) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// A replica that is more than so many bytes of the replication stream behind its primary answers no reads. Default: no
    /// bound. With a bound all replicas that are read from, and their primaries, are asked for their offsets every second
    /// (`INFO replication`), and a replica that does not answer, or has lost its primary, answers no reads either.
    pub fn replica_lag_max(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.replica_lag_max = bytes.into();
        self
    }

    pub(crate) const fn reads(&self) -> ReadFrom {
        self.read_from
    }

    pub(super) fn own_zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    pub(super) const fn lag_max(&self) -> Option<u64> {
        self.replica_lag_max
    }

    pub(crate) fn further_seeds(&self) -> &[Target] {
        &self.seeds
    }

    pub(super) const fn is_split(&self) -> bool {
        self.is_split
    }

    pub(super) const fn refresh_time(&self) -> Duration {
        self.refresh_interval
    }
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self::new()
    }
}
