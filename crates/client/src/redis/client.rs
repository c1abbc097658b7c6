//! redis-rs's `Client`: where to connect, and the connections of each kind.

use std::time::Duration;

use ::redis::{
    ConnectionAddr, ConnectionInfo, ErrorKind as RedisKind, ProtocolVersion, RedisConnectionInfo, RedisError,
    RedisResult,
};
use towline_client_proto::{Credentials, ProtocolChoice};

use super::aio::{ConnectionManager, ConnectionManagerConfig, Monitor, MultiplexedConnection, PubSub};
use super::blocking::Connection;
use super::config::AsyncConnectionConfig;
use super::error::redis_error;
use crate::options::ConnectOptions;
use crate::transport::{Target, TlsOptions};

/// In the place of `redis::Client`: knows a server, and makes connections to it. Nothing is connected before that.
#[derive(Debug, Clone)]
pub struct Client {
    options: ConnectOptions,
    info: ConnectionInfo,
}

/// In the place of `redis::IntoConnectionInfo`: what [`Client::open`] takes.
pub trait IntoConnectionInfo: Sized {
    /// As this client's own options.
    ///
    /// # Errors
    /// `InvalidClientConfig`: it names no server that this client can reach.
    fn into_options(self) -> RedisResult<ConnectOptions>;

    /// As redis-rs's description of a connection, to be changed and given to [`Client::open`].
    ///
    /// # Errors
    /// `InvalidClientConfig`: it names no server that this client can reach.
    fn into_connection_info(self) -> RedisResult<ConnectionInfo> {
        described(&self.into_options()?)
    }
}

/// A URL, with the options of [`ConnectOptions`]. As with redis-rs it speaks RESP2 unless it says `protocol=resp3`,
/// because programs may depend on the shapes of replies; moves that a server announces need RESP3.
impl IntoConnectionInfo for &str {
    fn into_options(self) -> RedisResult<ConnectOptions> {
        // redis-rs takes the number too.
        let url =
            self.replacen("protocol=3", "protocol=resp3", 1).replacen("protocol=2", "protocol=resp2", 1);
        let options: ConnectOptions = url.parse().map_err(|error: crate::url::UrlError| {
            RedisError::from((RedisKind::InvalidClientConfig, "the URL makes no sense", error.to_string()))
        })?;
        let has_protocol = url.split_once('?').is_some_and(|(_, query)| query.contains("protocol="));
        Ok(if has_protocol { options } else { options.protocol(ProtocolChoice::Resp2) })
    }
}

impl IntoConnectionInfo for String {
    fn into_options(self) -> RedisResult<ConnectOptions> {
        self.as_str().into_options()
    }
}

impl IntoConnectionInfo for &String {
    fn into_options(self) -> RedisResult<ConnectOptions> {
        self.as_str().into_options()
    }
}

impl<H: Into<String>> IntoConnectionInfo for (H, u16) {
    fn into_options(self) -> RedisResult<ConnectOptions> {
        let target = Target::tcp(self.0.into(), self.1);
        Ok(ConnectOptions::new(target).protocol(ProtocolChoice::Resp2))
    }
}

/// Everything that only this client knows, with the protocol as it is there.
impl IntoConnectionInfo for ConnectOptions {
    fn into_options(self) -> RedisResult<ConnectOptions> {
        Ok(self)
    }
}

impl IntoConnectionInfo for ConnectionInfo {
    fn into_options(self) -> RedisResult<ConnectOptions> {
        let refuse = |why| Err((RedisKind::InvalidClientConfig, why).into());
        let options = match self.addr() {
            ConnectionAddr::Tcp(host, port) => ConnectOptions::new(Target::tcp(host, *port)),
            ConnectionAddr::TcpTls { tls_params: Some(_), .. } => {
                return refuse(
                    "redis-rs keeps its certificates to itself: give `ConnectOptions` with `TlsOptions`",
                );
            }
            ConnectionAddr::TcpTls { host, port, insecure, .. } => {
                let tls = TlsOptions::new().danger_accept_any_certificate(*insecure);
                ConnectOptions::new(Target::tcp(host, *port)).tls(tls)
            }
            ConnectionAddr::Unix(path) => ConnectOptions::new(Target::unix(path)),
            _ => return refuse("an address of a kind that this client does not know"),
        };
        let redis = self.redis_settings();
        let Ok(database) = u32::try_from(redis.db()) else {
            return refuse("the database is not a number from 0 to 4294967295");
        };
        let protocol = match redis.protocol() {
            ProtocolVersion::RESP3 => ProtocolChoice::Resp3,
            _ => ProtocolChoice::Resp2,
        };
        let options = options.database(database).protocol(protocol);
        let password = redis.password().map(|password| password.as_bytes().to_vec());
        Ok(match (redis.username().map(str::to_owned), password) {
            (Some(user), password) => {
                options.credentials(Credentials::user(user, password.unwrap_or_default()))
            }
            (None, Some(password)) => options.credentials(Credentials::password(password)),
            (None, None) => options,
        })
    }

    fn into_connection_info(self) -> RedisResult<ConnectionInfo> {
        Ok(self)
    }
}

/// What redis-rs can know of options: the address, the database and the protocol, no credentials.
fn described(options: &ConnectOptions) -> RedisResult<ConnectionInfo> {
    let addr = match (options.target(), options.tls_options()) {
        (Target::Unix(path), _) => ConnectionAddr::Unix(path.clone()),
        (Target::Tcp { host, port }, None) => ConnectionAddr::Tcp(host.clone(), *port),
        (Target::Tcp { host, port }, Some(_)) => {
            ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
        }
    };
    let protocol = match options.protocol_choice() {
        ProtocolChoice::Resp2 => ProtocolVersion::RESP2,
        _ => ProtocolVersion::RESP3,
    };
    let redis =
        RedisConnectionInfo::default().set_db(options.selected_database().into()).set_protocol(protocol);
    let anywhere = ::redis::IntoConnectionInfo::into_connection_info(("localhost", 6379))?;
    Ok(anywhere.set_addr(addr).set_redis_settings(redis))
}

impl Client {
    /// Takes a URL, a host with a port, redis-rs's `ConnectionInfo`, or [`ConnectOptions`]. Connects nothing.
    ///
    /// # Errors
    /// `InvalidClientConfig`: it names no server that this client can reach.
    pub fn open(params: impl IntoConnectionInfo) -> RedisResult<Self> {
        let options = params.into_options()?;
        options.validate().map_err(|error| {
            RedisError::from((
                RedisKind::InvalidClientConfig,
                "the options do not go together",
                error.to_string(),
            ))
        })?;
        let info = described(&options)?;
        Ok(Self { options, info })
    }

    /// Where it connects to. The password is not in it.
    pub const fn get_connection_info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// This client's own options, to which redis-rs has no counterpart.
    pub const fn options(&self) -> &ConnectOptions {
        &self.options
    }

    /// A connection that tasks share by cloning it, and that comes back by itself when it breaks.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn get_multiplexed_async_connection(&self) -> RedisResult<MultiplexedConnection> {
        self.get_multiplexed_async_connection_with_config(&AsyncConnectionConfig::new()).await
    }

    /// As [`get_multiplexed_async_connection`](Self::get_multiplexed_async_connection), with other times.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn get_multiplexed_async_connection_with_config(
        &self,
        config: &AsyncConnectionConfig,
    ) -> RedisResult<MultiplexedConnection> {
        let client = connect(config.apply(self.options.clone())).await?;
        Ok(MultiplexedConnection::new(client, config.push_sender.clone()))
    }

    /// As [`get_multiplexed_async_connection`](Self::get_multiplexed_async_connection): every connection of this client
    /// manages itself.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn get_connection_manager(&self) -> RedisResult<ConnectionManager> {
        self.get_connection_manager_with_config(ConnectionManagerConfig::new()).await
    }

    /// As [`get_connection_manager`](Self::get_connection_manager), with other times.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn get_connection_manager_with_config(
        &self,
        config: ConnectionManagerConfig,
    ) -> RedisResult<ConnectionManager> {
        ConnectionManager::new_with_config(self.clone(), config).await
    }

    /// A connection that is made in the background; commands wait for it.
    ///
    /// # Errors
    /// As [`crate::Client::lazy`].
    pub fn get_connection_manager_lazy(
        &self,
        config: ConnectionManagerConfig,
    ) -> RedisResult<ConnectionManager> {
        ConnectionManager::new_lazy_with_config(self.clone(), config)
    }

    /// Subscriptions.
    ///
    /// # Errors
    /// As [`crate::Client::open`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::open`].
    pub async fn get_async_pubsub(&self) -> RedisResult<PubSub> {
        PubSub::new(&connect(self.options.clone()).await?).await
    }

    /// The commands that the server is given.
    ///
    /// # Errors
    /// As [`crate::Client::monitor`].
    ///
    /// # Cancel safety
    /// As [`crate::Client::monitor`].
    pub async fn get_async_monitor(&self) -> RedisResult<Monitor> {
        Monitor::new(&connect(self.options.clone()).await?).await
    }

    /// A connection for programs without an async runtime.
    ///
    /// # Errors
    /// As [`crate::blocking::Client::open`].
    pub fn get_connection(&self) -> RedisResult<Connection> {
        Connection::open(self.options.clone())
    }

    /// As [`get_connection`](Self::get_connection), waiting for it so long at most.
    ///
    /// # Errors
    /// As [`crate::blocking::Client::open`].
    pub fn get_connection_with_timeout(&self, timeout: Duration) -> RedisResult<Connection> {
        Connection::open(self.options.clone().connect_timeout(timeout))
    }
}

/// Connects, and tells a refused connection as users of redis-rs test for it.
pub(super) async fn connect(options: ConnectOptions) -> RedisResult<crate::Client> {
    use crate::client::Way;
    use crate::transport::ConnectError;
    use std::io;

    let timeout = options.dial_timeout();
    let client = crate::Client::lazy(options).map_err(redis_error)?;
    let Err(error) = client.connected_within(timeout).await else { return Ok(client) };
    let last = match &client.inner.way {
        Way::Endpoint(engine) => engine.lock().last_dial_error.clone(),
        Way::Cluster(_) => None,
    };
    let io = match last.as_deref() {
        Some(ConnectError::Connect { failures, .. }) => failures.first().map(|(_, source)| source.kind()),
        Some(ConnectError::Unix { source, .. }) => Some(source.kind()),
        _ => None,
    };
    Err(match io {
        Some(kind @ (io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)) => {
            io::Error::new(kind, error).into()
        }
        _ => redis_error(error),
    })
}
