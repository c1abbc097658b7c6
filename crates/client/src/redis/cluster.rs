//! redis-rs's clients of clusters.
//!
//! Owns the names. The handle behind them is [`crate::Client`], which finds its way through a cluster by itself.

use std::time::Duration;

use ::redis::{ErrorKind as RedisKind, ProtocolVersion, RedisError, RedisResult};
use towline_client_proto::routing::ReadFrom;
use towline_client_proto::{Credentials, ProtocolChoice};

use super::aio::MultiplexedConnection;
use super::blocking::Connection;
use super::client::{IntoConnectionInfo, connect};
use crate::cluster::ClusterOptions;
use crate::options::ConnectOptions;

/// In the place of `redis::cluster::ClusterConnection`, the one without a runtime.
pub use super::blocking::Connection as ClusterConnection;

/// In the place of `redis::cluster::ClusterClient`: knows some nodes of a cluster. Nothing is connected before
/// [`get_async_connection`](Self::get_async_connection).
#[derive(Debug, Clone)]
pub struct ClusterClient {
    options: ConnectOptions,
}

impl ClusterClient {
    /// The nodes to begin with; the others are found. The options of the first hold for all.
    ///
    /// # Errors
    /// `InvalidClientConfig`: there is none, or one makes no sense.
    pub fn new<T: IntoConnectionInfo>(initial_nodes: impl IntoIterator<Item = T>) -> RedisResult<Self> {
        Self::builder(initial_nodes).build()
    }

    /// As [`new`](Self::new), with other options.
    pub fn builder<T: IntoConnectionInfo>(
        initial_nodes: impl IntoIterator<Item = T>,
    ) -> ClusterClientBuilder {
        ClusterClientBuilder::new(initial_nodes)
    }

    /// A connection that tasks share by cloning it.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn get_async_connection(&self) -> RedisResult<MultiplexedConnection> {
        connect(self.options.clone()).await.map(MultiplexedConnection::from)
    }

    /// A connection for programs without an async runtime.
    ///
    /// # Errors
    /// As [`crate::blocking::Client::open`].
    pub fn get_connection(&self) -> RedisResult<Connection> {
        Connection::open(self.options.clone())
    }
}

/// In the place of `redis::cluster::ClusterClientBuilder`.
#[derive(Debug)]
pub struct ClusterClientBuilder {
    nodes: RedisResult<Vec<ConnectOptions>>,
    username: Option<String>,
    password: Option<String>,
    changes: Changes,
}

/// What was asked for.
#[derive(Debug, Default)]
struct Changes {
    protocol: Option<ProtocolVersion>,
    database: Option<i64>,
    connection_timeout: Option<Duration>,
    response_timeout: Option<Duration>,
    reads_from_replicas: bool,
}

impl ClusterClientBuilder {
    /// The nodes to begin with.
    pub fn new<T: IntoConnectionInfo>(initial_nodes: impl IntoIterator<Item = T>) -> Self {
        let nodes = initial_nodes.into_iter().map(IntoConnectionInfo::into_options).collect();
        Self { nodes, username: None, password: None, changes: Changes::default() }
    }

    /// The password.
    #[must_use]
    pub fn password(mut self, password: impl AsRef<str>) -> Self {
        self.password = Some(password.as_ref().to_owned());
        self
    }

    /// The user.
    #[must_use]
    pub fn username(mut self, username: impl AsRef<str>) -> Self {
        self.username = Some(username.as_ref().to_owned());
        self
    }

    /// The protocol.
    #[must_use]
    pub const fn use_protocol(mut self, protocol: ProtocolVersion) -> Self {
        self.changes.protocol = Some(protocol);
        self
    }

    /// The database, on clusters that have several.
    #[must_use]
    pub const fn database_id(mut self, database: i64) -> Self {
        self.changes.database = Some(database);
        self
    }

    /// The time of one dial.
    #[must_use]
    pub const fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.changes.connection_timeout = Some(timeout);
        self
    }

    /// The time of a command, redirects and waits included.
    #[must_use]
    pub const fn response_timeout(mut self, timeout: Duration) -> Self {
        self.changes.response_timeout = Some(timeout);
        self
    }

    /// Commands that only read go to replicas in turn, and to the primary if none can answer
    /// ([`ReadFrom::PreferReplica`]). Commands and handles may say something else in Towline's own way.
    #[must_use]
    pub const fn read_from_replicas(mut self) -> Self {
        self.changes.reads_from_replicas = true;
        self
    }

    /// Means nothing here: a command is tried until its time is over, and never twice if it may have run.
    #[must_use]
    pub const fn retries(self, _count: u32) -> Self {
        self
    }

    /// Means nothing here, as [`retries`](Self::retries).
    #[must_use]
    pub const fn min_retry_wait(self, _millis: u64) -> Self {
        self
    }

    /// Means nothing here, as [`retries`](Self::retries).
    #[must_use]
    pub const fn max_retry_wait(self, _millis: u64) -> Self {
        self
    }

    /// The client.
    ///
    /// # Errors
    /// `InvalidClientConfig`: there is no node, or something makes no sense.
    pub fn build(self) -> RedisResult<ClusterClient> {
        let refuse = |why, detail| RedisError::from((RedisKind::InvalidClientConfig, why, detail));
        let mut nodes = self.nodes?.into_iter();
        let Some(mut options) = nodes.next() else {
            return Err(refuse("a cluster without a node", "at least one has to be known".to_owned()));
        };
        let cluster = nodes.fold(ClusterOptions::new(), |cluster, node| cluster.seed(node.target().clone()));
        let reads = self.changes.reads_from_replicas;
        let policy = if reads { ReadFrom::PreferReplica } else { ReadFrom::Primary };
        options = options.cluster(cluster.read_from(policy));
        if let Some(password) = self.password {
            options = options.credentials(match self.username {
                Some(user) => Credentials::user(user, password),
                None => Credentials::password(password),
            });
        }
        if let Some(protocol) = self.changes.protocol {
            options = options.protocol(match protocol {
                ProtocolVersion::RESP3 => ProtocolChoice::Resp3,
                _ => ProtocolChoice::Resp2,
            });
        }
        if let Some(database) = self.changes.database {
            let number = u32::try_from(database);
            options = options.database(number.map_err(|_| refuse("no such database", database.to_string()))?);
        }
        if let Some(timeout) = self.changes.connection_timeout {
            options = options.connect_timeout(timeout);
        }
        if let Some(timeout) = self.changes.response_timeout {
            options = options.command_timeout(timeout);
        }
        options.validate().map_err(|error| refuse("the options do not go together", error.to_string()))?;
        Ok(ClusterClient { options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_is_the_target_and_the_others_are_seeds() {
        let nodes = ["redis://:secret@a:7000", "redis://b:7001"];
        let client = ClusterClient::builder(nodes).retries(3).use_protocol(ProtocolVersion::RESP3).build();
        let options = client.unwrap().options;
        assert_eq!(options.target(), &crate::transport::Target::tcp("a", 7000));
        let seeds = ClusterOptions::new().seed(crate::transport::Target::tcp("b", 7001));
        assert_eq!(options.cluster_options(), Some(&seeds));
    }

    #[test]
    fn reads_may_go_to_replicas() {
        let client = ClusterClient::builder(["redis://a"]).read_from_replicas().build().unwrap();
        let reads = ClusterOptions::new().read_from(ReadFrom::PreferReplica);
        assert_eq!(client.options.cluster_options(), Some(&reads));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let kind = |built: RedisResult<ClusterClient>| built.unwrap_err().kind();
        assert_eq!(kind(ClusterClient::new(Vec::<String>::new())), RedisKind::InvalidClientConfig);
        assert_eq!(kind(ClusterClient::new(["http://a"])), RedisKind::InvalidClientConfig);
        let database = ClusterClient::builder(["redis://a"]).database_id(-1).build();
        assert_eq!(kind(database), RedisKind::InvalidClientConfig);
    }
}
