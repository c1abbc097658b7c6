//! What a client of a primary with replicas can be told.
//!
//! Owns [`SentinelOptions`], for a primary that sentinels watch, and [`ReplicatedOptions`], for one that nobody watches. Does not
//! own the options of the connections to the servers themselves ([`crate::ConnectOptions`]).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use towline_client_proto::Credentials;

use crate::credentials::CredentialsProvider;
use crate::transport::{Target, TlsOptions};

/// How to find a primary that sentinels watch; see [`ConnectOptions::sentinel`](crate::ConnectOptions::sentinel).
///
/// ```
/// use towline_client::{ConnectOptions, Credentials, SentinelOptions, transport::Target};
///
/// let options = ConnectOptions::new(Target::tcp("sentinel-1.example", 26379))
///     .credentials(Credentials::password("of the servers"))
///     .sentinel(
///         SentinelOptions::new("cache")
///             .sentinel(Target::tcp("sentinel-2.example", 26379))
///             .credentials(Credentials::password("of the sentinels")),
///     );
/// let same: ConnectOptions = "redis-sentinel://sentinel-1.example,sentinel-2.example/cache".parse()?;
/// assert_eq!(same.target(), options.target());
/// # Ok::<(), towline_client::UrlError>(())
/// ```
#[derive(Clone)]
pub struct SentinelOptions {
    name: Box<str>,
    sentinels: Vec<Target>,
    credentials: Option<Arc<dyn CredentialsProvider>>,
    tls: SentinelTls,
    refresh_interval: Duration,
}

/// How TLS is spoken with sentinels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SentinelTls {
    /// As with the servers.
    AsServers,
    /// Not at all.
    Plain,
    Own(Box<TlsOptions>),
}

impl SentinelOptions {
    /// The defaults for the primary that the sentinels know by this name (`sentinel monitor <name> ...`). What each is, and why,
    /// stands at its setter.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into().into(),
            sentinels: Vec::new(),
            credentials: None,
            tls: SentinelTls::AsServers,
            refresh_interval: Duration::from_secs(60),
        }
    }

    /// Another sentinel beside the target of the options. The rest of them are learnt from those that answer, but the configured ones are
    /// asked each time, and their names resolved anew: they are the way back when all others have new addresses.
    pub fn sentinel(mut self, sentinel: Target) -> Self {
        self.sentinels.push(sentinel);
        self
    }

    /// Authenticates with these at sentinels (`sentinel sentinel-pass`, or an access control list). Default: not at all. The servers'
    /// credentials are never told to sentinels, which are other processes with other users.
    pub fn credentials(self, credentials: Credentials) -> Self {
        self.credentials_provider(credentials)
    }

    /// Authenticates at sentinels with what this provides.
    pub fn credentials_provider(mut self, provider: impl CredentialsProvider) -> Self {
        self.credentials = Some(Arc::new(provider));
        self
    }

    /// Speaks TLS with sentinels, with options of their own. Default: as with the servers
    /// ([`ConnectOptions::tls`](crate::ConnectOptions::tls)).
    pub fn tls(mut self, tls: TlsOptions) -> Self {
        self.tls = SentinelTls::Own(Box::new(tls));
        self
    }

    /// Speaks no TLS with sentinels, whatever is spoken with the servers.
    pub fn plain(mut self) -> Self {
        self.tls = SentinelTls::Plain;
        self
    }

    /// All sentinels are asked after this time in any case; losses, refusals and the sentinels' own messages ask at once. Default
    /// 60 s: a replica that came or went while no message got through is noticed within a minute. `Duration::MAX`: never without a
    /// reason.
    pub const fn refresh_interval(mut self, interval: Duration) -> Self {
        self.refresh_interval = interval;
        self
    }

    /// The name of the primary.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn further_sentinels(&self) -> &[Target] {
        &self.sentinels
    }

    #[cfg(feature = "redis-compat")]
    pub(crate) fn with_provider(mut self, provider: Option<Arc<dyn CredentialsProvider>>) -> Self {
        self.credentials = provider;
        self
    }

    pub(crate) const fn provider(&self) -> Option<&Arc<dyn CredentialsProvider>> {
        self.credentials.as_ref()
    }

    pub(crate) const fn tls_choice(&self) -> &SentinelTls {
        &self.tls
    }

    pub(crate) const fn refresh_time(&self) -> Duration {
        self.refresh_interval
    }
}

/// Shows no secret.
impl fmt::Debug for SentinelOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentinelOptions")
            .field("name", &self.name)
            .field("sentinels", &self.sentinels)
            .field("has_credentials", &self.credentials.is_some())
            .field("tls", &self.tls)
            .field("refresh_interval", &self.refresh_interval)
            .finish()
    }
}

/// How to find the primary among servers that no sentinel watches; see
/// [`ConnectOptions::replicated`](crate::ConnectOptions::replicated).
///
/// All addresses are asked for their `ROLE`. Of several that call themselves primary it is the one with more replicas, because
/// one that came back after another took its place has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicatedOptions {
    servers: Vec<Target>,
    refresh_interval: Duration,
}

impl ReplicatedOptions {
    /// The defaults. What each is, and why, stands at its setter.
    pub const fn new() -> Self {
        Self { servers: Vec::new(), refresh_interval: Duration::from_secs(10) }
    }

    /// Another server beside the target of the options.
    pub fn server(mut self, server: Target) -> Self {
        self.servers.push(server);
        self
    }

    /// The servers are asked after this time in any case; losses and refusals ask at once. Default 10 s: nobody tells the client
    /// of a change, and a primary that was demoted may go on answering reads.
    pub const fn refresh_interval(mut self, interval: Duration) -> Self {
        self.refresh_interval = interval;
        self
    }

    pub(crate) fn further_servers(&self) -> &[Target] {
        &self.servers
    }

    pub(crate) const fn refresh_time(&self) -> Duration {
        self.refresh_interval
    }
}

impl Default for ReplicatedOptions {
    fn default() -> Self {
        Self::new()
    }
}
