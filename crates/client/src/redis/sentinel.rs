//! redis-rs's clients of sentinels.
//!
//! Owns the names. The handle behind them is [`crate::Client`], which follows the primary by itself: a connection from here stays
//! good over a failover, and asking for a new one is not wrong.

use ::redis::{
    ConnectionAddr, ConnectionInfo, ErrorKind as RedisKind, ProtocolVersion, RedisConnectionInfo, RedisError,
    RedisResult, TlsMode,
};

use super::aio::MultiplexedConnection;
use super::blocking::Connection;
use super::client::{Client, IntoConnectionInfo};
use super::config::AsyncConnectionConfig;
use crate::options::ConnectOptions;
use crate::primary_options::SentinelOptions;
use crate::transport::Target;

/// In the place of `redis::sentinel::SentinelNodeConnectionInfo`: how to connect to the servers that sentinels name.
#[derive(Clone, Debug, Default)]
pub struct SentinelNodeConnectionInfo {
    tls_mode: Option<TlsMode>,
    redis: Option<RedisConnectionInfo>,
}

impl SentinelNodeConnectionInfo {
    /// Speaks TLS with the servers. Default: not.
    #[must_use]
    pub const fn set_tls_mode(mut self, tls_mode: TlsMode) -> Self {
        self.tls_mode = Some(tls_mode);
        self
    }

    /// User, password, database and protocol.
    #[must_use]
    pub fn set_redis_connection_info(mut self, redis_connection_info: RedisConnectionInfo) -> Self {
        self.redis = Some(redis_connection_info);
        self
    }

    /// The options of the connections to the servers, whose target is still a sentinel.
    fn options(&self, sentinel: &Target) -> RedisResult<ConnectOptions> {
        let Target::Tcp { host, port } = sentinel else { return Err(no_socket()) };
        let addr = match self.tls_mode {
            None => ConnectionAddr::Tcp(host.clone(), *port),
            Some(mode) => ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: mode == TlsMode::Insecure,
                tls_params: None,
            },
        };
        let redis = self.redis.clone().unwrap_or_default();
        info(addr)?.set_redis_settings(redis).into_options()
    }
}

fn no_socket() -> RedisError {
    RedisError::from((RedisKind::InvalidClientConfig, "sentinels are reached by host and port"))
}

fn info(addr: ConnectionAddr) -> RedisResult<ConnectionInfo> {
    Ok(::redis::IntoConnectionInfo::into_connection_info(("localhost", 26379))?.set_addr(addr))
}

/// In the place of `redis::sentinel::SentinelServerType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SentinelServerType {
    /// The primary.
    Master,
    /// A replica. Not served by these types; this client's own options say how replicas are read.
    Replica,
}

/// In the place of `redis::sentinel::Sentinel`: knows some sentinels. Nothing is asked before a connection is made.
#[derive(Debug, Clone)]
pub struct Sentinel {
    sentinels: Vec<ConnectOptions>,
}

impl Sentinel {
    /// The sentinels to begin with; the others are found. Credentials and TLS of the first hold for all of them.
    ///
    /// # Errors
    /// `InvalidClientConfig`: there is none, or one makes no sense.
    pub fn build<T: IntoConnectionInfo>(params: Vec<T>) -> RedisResult<Self> {
        let sentinels: Vec<ConnectOptions> =
            params.into_iter().map(IntoConnectionInfo::into_options).collect::<RedisResult<_>>()?;
        if sentinels.is_empty() {
            return Err(RedisError::from((
                RedisKind::InvalidClientConfig,
                "at least one sentinel is required",
            )));
        }
        Ok(Self { sentinels })
    }

    /// A client of the primary of this name, wherever it goes.
    ///
    /// # Errors
    /// `InvalidClientConfig`: something makes no sense.
    pub fn master_for(
        &mut self,
        service_name: &str,
        node_connection_info: Option<&SentinelNodeConnectionInfo>,
    ) -> RedisResult<Client> {
        let mut sentinels = self.sentinels.iter();
        let Some(first) = sentinels.next() else { return Err(no_socket()) };
        let mut options = SentinelOptions::new(service_name).with_provider(first.provider().cloned());
        options = match first.tls_options() {
            Some(tls) => options.tls(tls.clone()),
            None => options.plain(),
        };
        options = sentinels.fold(options, |options, sentinel| options.sentinel(sentinel.target().clone()));
        let servers = node_connection_info.cloned().unwrap_or_default().options(first.target())?;
        Client::open(servers.sentinel(options))
    }

    /// As [`master_for`](Self::master_for).
    ///
    /// # Errors
    /// As [`master_for`](Self::master_for).
    ///
    /// # Cancel safety
    /// It waits for nothing.
    pub async fn async_master_for(
        &mut self,
        service_name: &str,
        node_connection_info: Option<&SentinelNodeConnectionInfo>,
    ) -> RedisResult<Client> {
        self.master_for(service_name, node_connection_info)
    }
}

/// In the place of `redis::sentinel::SentinelClient`: sentinels, and the name of a primary.
#[derive(Debug, Clone)]
pub struct SentinelClient {
    client: Client,
}

impl SentinelClient {
    /// As [`Sentinel::build`], for one name.
    ///
    /// # Errors
    /// `InvalidClientConfig`: there is no sentinel, something makes no sense, or replicas are asked for.
    pub fn build<T: IntoConnectionInfo>(
        params: Vec<T>,
        service_name: impl AsRef<str>,
        node_connection_info: Option<SentinelNodeConnectionInfo>,
        server_type: SentinelServerType,
    ) -> RedisResult<Self> {
        if server_type == SentinelServerType::Replica {
            return Err(RedisError::from((
                RedisKind::InvalidClientConfig,
                "connections to replicas are not made by this type",
            )));
        }
        let mut sentinel = Sentinel::build(params)?;
        let client = sentinel.master_for(service_name.as_ref(), node_connection_info.as_ref())?;
        Ok(Self { client })
    }

    /// The client of the primary.
    ///
    /// # Errors
    /// None.
    pub fn get_client(&mut self) -> RedisResult<Client> {
        Ok(self.client.clone())
    }

    /// As [`get_client`](Self::get_client).
    ///
    /// # Errors
    /// None.
    ///
    /// # Cancel safety
    /// It waits for nothing.
    pub async fn async_get_client(&mut self) -> RedisResult<Client> {
        self.get_client()
    }

    /// A connection that tasks share by cloning it.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn get_async_connection(&mut self) -> RedisResult<MultiplexedConnection> {
        self.client.get_multiplexed_async_connection().await
    }

    /// As [`get_async_connection`](Self::get_async_connection), with other times.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn get_async_connection_with_config(
        &mut self,
        config: &AsyncConnectionConfig,
    ) -> RedisResult<MultiplexedConnection> {
        self.client.get_multiplexed_async_connection_with_config(config).await
    }

    /// A connection for programs without an async runtime.
    ///
    /// # Errors
    /// As [`crate::blocking::Client::open`].
    pub fn get_connection(&mut self) -> RedisResult<Connection> {
        self.client.get_connection()
    }
}

/// In the place of `redis::sentinel::SentinelClientBuilder`. Certificates are not taken: give [`ConnectOptions`] with
/// [`SentinelOptions`] to [`Client::open`].
#[derive(Debug, Clone)]
pub struct SentinelClientBuilder {
    sentinels: Vec<ConnectionAddr>,
    service_name: String,
    server_type: SentinelServerType,
    redis: SentinelNodeConnectionInfo,
    of_sentinels: RedisConnectionInfo,
}

impl SentinelClientBuilder {
    /// The sentinels to begin with, the name of the primary, and which of its servers is meant.
    ///
    /// # Errors
    /// None.
    pub fn new<T: IntoIterator<Item = ConnectionAddr>>(
        sentinels: T,
        service_name: impl AsRef<str>,
        server_type: SentinelServerType,
    ) -> RedisResult<Self> {
        Ok(Self {
            sentinels: sentinels.into_iter().collect(),
            service_name: service_name.as_ref().to_owned(),
            server_type,
            redis: SentinelNodeConnectionInfo::default(),
            of_sentinels: RedisConnectionInfo::default(),
        })
    }

    fn change(mut self, change: impl FnOnce(RedisConnectionInfo) -> RedisConnectionInfo) -> Self {
        self.redis.redis = Some(change(self.redis.redis.take().unwrap_or_default()));
        self
    }

    /// Speaks TLS with the servers.
    #[must_use]
    pub const fn set_client_to_redis_tls_mode(mut self, tls_mode: TlsMode) -> Self {
        self.redis.tls_mode = Some(tls_mode);
        self
    }

    /// The database.
    #[must_use]
    pub fn set_client_to_redis_db(self, db: i64) -> Self {
        self.change(|info| info.set_db(db))
    }

    /// The user at the servers.
    #[must_use]
    pub fn set_client_to_redis_username(self, username: impl AsRef<str>) -> Self {
        self.change(|info| info.set_username(username.as_ref()))
    }

    /// The password at the servers.
    #[must_use]
    pub fn set_client_to_redis_password(self, password: impl AsRef<str>) -> Self {
        self.change(|info| info.set_password(password.as_ref()))
    }

    /// The protocol with the servers.
    #[must_use]
    pub fn set_client_to_redis_protocol(self, protocol: ProtocolVersion) -> Self {
        self.change(|info| info.set_protocol(protocol))
    }

    /// The user at the sentinels.
    #[must_use]
    pub fn set_client_to_sentinel_username(mut self, username: impl AsRef<str>) -> Self {
        self.of_sentinels = self.of_sentinels.set_username(username.as_ref());
        self
    }

    /// The password at the sentinels.
    #[must_use]
    pub fn set_client_to_sentinel_password(mut self, password: impl AsRef<str>) -> Self {
        self.of_sentinels = self.of_sentinels.set_password(password.as_ref());
        self
    }

    /// The client.
    ///
    /// # Errors
    /// As [`SentinelClient::build`].
    pub fn build(self) -> RedisResult<SentinelClient> {
        let of_sentinels = self.of_sentinels;
        let described = self.sentinels.into_iter().map(|addr| {
            let info = info(addr)?;
            Ok(info.set_redis_settings(of_sentinels.clone()))
        });
        let params = described.collect::<RedisResult<Vec<ConnectionInfo>>>()?;
        SentinelClient::build(params, self.service_name, Some(self.redis), self.server_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_sentinels_have_their_own_options() {
        let redis = RedisConnectionInfo::default().set_db(3).set_password("of the servers");
        let info = SentinelNodeConnectionInfo::default().set_tls_mode(TlsMode::Secure);
        let mut sentinel = Sentinel::build(vec!["redis://:secret@a:26379", "redis://b:26380"]).unwrap();
        let client = sentinel.master_for("cache", Some(&info.set_redis_connection_info(redis))).unwrap();
        let options = client.options();
        let sentinel = options.sentinel_options().unwrap();
        assert_eq!(
            (sentinel.name(), sentinel.further_sentinels()),
            ("cache", &[Target::tcp("b", 26380)][..])
        );
        assert_eq!(options.target(), &Target::tcp("a", 26379));
        assert!(sentinel.provider().is_some() && options.provider().is_some());
        assert!(options.tls_options().is_some(), "the servers");
        assert_eq!(*sentinel.tls_choice(), crate::primary_options::SentinelTls::Plain);
        assert_eq!(options.selected_database(), 3);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let kind = |built: RedisResult<SentinelClient>| built.unwrap_err().kind();
        let build =
            |params: Vec<&str>, server_type| SentinelClient::build(params, "cache", None, server_type);
        assert_eq!(kind(build(vec![], SentinelServerType::Master)), RedisKind::InvalidClientConfig);
        assert_eq!(
            kind(build(vec!["redis://a"], SentinelServerType::Replica)),
            RedisKind::InvalidClientConfig
        );
        assert_eq!(
            kind(build(vec!["unix:///a"], SentinelServerType::Master)),
            RedisKind::InvalidClientConfig
        );
        build(vec!["redis://a"], SentinelServerType::Master).unwrap();
        let builder = SentinelClientBuilder::new(
            [ConnectionAddr::Tcp("a".into(), 1)],
            "cache",
            SentinelServerType::Master,
        );
        builder.unwrap().set_client_to_redis_db(2).set_client_to_sentinel_password("x").build().unwrap();
    }
}
