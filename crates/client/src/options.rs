// Long because: each option has a setter with the reason for its default, and a reader.

//! What a client can be told.
//!
//! Owns [`ConnectOptions`], its defaults with their reasons, and the check that they go together. Does **not** own their
//! form as a URL (`url`), nor what is done with them.

mod lanes;

use crate::cache::CacheOptions;
use crate::cluster::{ClusterOptions, Topology};
use crate::credentials::CredentialsProvider;
use crate::primary_options::{ReplicatedOptions, SentinelOptions, SentinelTls};
use crate::transport::{Connector, Target, TcpOptions, TlsConfigError, TlsOptions, Transport};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use towline_admission::{BackoffConfig, BackoffError};
use towline_client_proto::handoff::HandoffOrder;
use towline_client_proto::maintenance::{ConfiguredHost, EndpointType, MaintenanceMode, WindowConfig};
use towline_client_proto::{
    BacklogPolicy, Config, Credentials, Error, FlushOrder, HandshakeConfig, LivenessConfig,
    MaintenanceRequest, Peer, Policy, ProtocolChoice, RetryBudgetConfig,
};
use towline_cluster::Address;

/// Makes a policy for each endpoint.
type PolicyFactory = Arc<dyn Fn() -> Box<dyn BacklogPolicy> + Send + Sync>;

/// Is told of fire-and-forget commands that failed.
type UnwatchedHook = Arc<dyn Fn(u64, &Error) + Send + Sync>;

/// Where an announced address is reached from here.
type AddressMap = Arc<dyn Fn(&str, u16) -> Option<(String, u16)> + Send + Sync>;

/// More connections than a host has ports for one server.
const LEASED_MAX: usize = 65_536;

/// How to reach a server, and how to behave there.
///
/// Parsed from a URL ([`FromStr`](std::str::FromStr)) or built; setters may follow either way. `Debug` shows no secret.
///
/// ```
/// use std::time::Duration;
/// use towline_client::{ConnectOptions, Credentials, Policy, transport::Target};
///
/// let options = ConnectOptions::new(Target::tcp("db.example", 6379))
///     .credentials(Credentials::user("app", "secret"))
///     .command_timeout(Duration::from_secs(1))
///     .backlog(Policy::FailFast);
/// options.validate().expect("they go together");
///
/// let same: ConnectOptions = "redis://app:secret@db.example?command_timeout=1s&backlog=fail-fast".parse()?;
/// assert_eq!(same.target(), options.target());
/// # Ok::<(), towline_client::UrlError>(())
/// ```
#[derive(Clone)]
pub struct ConnectOptions {
    target: Target,
    tcp: TcpOptions,
    tls: Option<TlsOptions>,
    transport: Option<Arc<dyn Transport>>,
    credentials: Option<Arc<dyn CredentialsProvider>>,
    database: u32,
    protocol: ProtocolChoice,
    peer: Peer,
    client_name: Option<Box<str>>,
    is_read_only: bool,
    command_timeout: Duration,
    connect_timeout: Duration,
    backlog: Backlog,
    engine: Config,
    liveness: LivenessConfig,
    retry_budget: RetryBudgetConfig,
    is_idempotent_retried: bool,
    unwatched_hook: Option<UnwatchedHook>,
    leased_max: usize,
    leased_idle_max: Duration,
    lanes: u8,
    has_script_cache: bool,
    maintenance: MaintenanceMode,
    moving_endpoint_type: EndpointType,
    cluster: Option<Box<ClusterOptions>>,
    client_cache: Option<Box<CacheOptions>>,
    sentinel: Option<Box<SentinelOptions>>,
    replicated: Option<Box<ReplicatedOptions>>,
    address_map: Option<AddressMap>,
    is_primary_required: bool,
}

#[derive(Clone)]
enum Backlog {
    Preset(Policy),
    Custom(PolicyFactory),
}

impl ConnectOptions {
    /// The defaults for a server. What each is, and why, stands at its setter.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            tcp: TcpOptions::new(),
            tls: None,
            transport: None,
            credentials: None,
            database: 0,
            protocol: ProtocolChoice::default(),
            peer: Peer::default(),
            client_name: None,
            is_read_only: false,
            command_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            backlog: Backlog::Preset(Policy::default()),
            engine: Config::default(),
            liveness: LivenessConfig::default(),
            retry_budget: RetryBudgetConfig::default(),
            is_idempotent_retried: false,
            unwatched_hook: None,
            leased_max: 64,
            leased_idle_max: Duration::from_secs(30),
            lanes: 1,
            has_script_cache: true,
            maintenance: MaintenanceMode::default(),
            moving_endpoint_type: EndpointType::default(),
            cluster: None,
            client_cache: None,
            sentinel: None,
            replicated: None,
            address_map: None,
            is_primary_required: false,
        }
    }

    /// Another server, with all else as it is.
    pub fn with_target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// The target is a node of a cluster: the client finds the others, and sends each command to whom its keys belong.
    /// `None`, the default: it is the one server.
    ///
    /// All other options hold for the connection to each node. Nodes are dialled under the names that the cluster gives them; with
    /// TLS their certificates must name those, or [`TlsOptions::server_name`] what they do name.
    pub fn cluster(mut self, cluster: impl Into<Option<ClusterOptions>>) -> Self {
        self.cluster = cluster.into().map(Box::new);
        self
    }

    /// The target is a sentinel: the client asks it, and others, for a primary, and uses that as a client of one server uses its
    /// server, wherever it goes. `None`, the default: the target is the server.
    ///
    /// All other options hold for the connections to the servers; those that sentinels need are in [`SentinelOptions`]. With TLS
    /// the servers' certificates must name what sentinels call them (`sentinel resolve-hostnames`, `announce-hostnames`), or
    /// [`TlsOptions::server_name`] what they do name.
    pub fn sentinel(mut self, sentinel: impl Into<Option<SentinelOptions>>) -> Self {
        self.sentinel = sentinel.into().map(Box::new);
        self
    }

    /// The target is one of several servers, of which one is the primary and nobody tells which. `None`, the default: it is the
    /// one server.
    pub fn replicated(mut self, replicated: impl Into<Option<ReplicatedOptions>>) -> Self {
        self.replicated = replicated.into().map(Box::new);
        self
    }

    /// Where servers and sentinels are reached that announce an address which leads nowhere from here, behind NAT or in containers:
    /// `map` gets the host and port that a cluster or a sentinel names and gives those to dial, or `None` to dial what was named.
    /// Configured addresses and the successors of planned moves are dialled as they are. With TLS the certificate must be one for
    /// the host that `map` gives.
    ///
    /// Called under locks of the client, once for each dial: it must be quick.
    pub fn map_addresses(
        mut self,
        map: impl Fn(&str, u16) -> Option<(String, u16)> + Send + Sync + 'static,
    ) -> Self {
        self.address_map = Some(Arc::new(map));
        self
    }

    /// Where a server is dialled that calls itself so.
    pub(crate) fn reached(&self, named: &Address) -> Address {
        let mapped = self.address_map.as_ref().and_then(|map| map(&named.host, named.port));
        mapped.and_then(|(host, port)| Address::new(&host, port)).unwrap_or_else(|| named.clone())
    }

    /// Refuses servers that are no primary.
    pub(crate) const fn primary_only(mut self, is_primary_required: bool) -> Self {
        self.is_primary_required = is_primary_required;
        self
    }

    /// Takes out how several servers are found, which leaves the options of one of them.
    pub(crate) fn take_topology(&mut self) -> Option<Topology> {
        let cluster = self.cluster.take().map(|options| Topology::Cluster(*options));
        let sentinel = self.sentinel.take().map(|options| Topology::Sentinel(*options));
        let replicated = self.replicated.take().map(|options| Topology::Replicated(*options));
        sentinel.or(replicated).or(cluster)
    }

    /// The options of the connections to sentinels: what they have in common with those to the servers, and their own.
    pub(crate) fn for_sentinels(&self, sentinel: &SentinelOptions) -> Self {
        let mut options = Self::new(self.target.clone()).tcp(self.tcp.clone());
        options.transport.clone_from(&self.transport);
        options.address_map.clone_from(&self.address_map);
        options.client_name.clone_from(&self.client_name);
        options.connect_timeout = self.connect_timeout;
        options.engine.backoff = self.engine.backoff;
        options.credentials = sentinel.provider().cloned();
        options.tls = match sentinel.tls_choice() {
            SentinelTls::AsServers => self.tls.clone(),
            SentinelTls::Plain => None,
            SentinelTls::Own(tls) => Some((**tls).clone()),
        };
        options
    }

    /// Keeps what is read through [`Client::cache`](crate::Client::cache) on this side, and has the server announce what changes
    /// (`CLIENT TRACKING`). Default: no. Needs RESP3; with a server that does not know it, or does not allow it, everything is
    /// read from the server.
    pub fn client_cache(mut self, cache: impl Into<Option<CacheOptions>>) -> Self {
        self.client_cache = cache.into().map(Box::new);
        self
    }

    /// What is kept on this side, if anything is.
    pub fn client_cache_options(&self) -> Option<&CacheOptions> {
        self.client_cache.as_deref()
    }

    /// Takes the part about the cache out: it is for the connection that all share, and no other.
    pub(crate) fn take_client_cache(&mut self) -> Result<Option<CacheOptions>, OptionsError> {
        self.validate()?;
        Ok(self.client_cache.take().map(|cache| *cache))
    }

    /// Options of the TCP socket.
    pub fn tcp(mut self, tcp: TcpOptions) -> Self {
        self.tcp = tcp;
        self
    }

    /// Speaks TLS; `None`, the default, does not.
    pub fn tls(mut self, tls: impl Into<Option<TlsOptions>>) -> Self {
        self.tls = tls.into();
        self
    }

    /// Reaches the server by other means than a socket of this host.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// Authenticates with these. Default: not at all, so the server's default user.
    pub fn credentials(self, credentials: Credentials) -> Self {
        self.credentials_provider(credentials)
    }

    /// Authenticates with what this provides, anew whenever it changes.
    pub fn credentials_provider(mut self, provider: impl CredentialsProvider) -> Self {
        self.credentials = Some(Arc::new(provider));
        self
    }

    #[cfg(feature = "redis-compat")]
    pub(crate) const fn protocol_choice(&self) -> ProtocolChoice {
        self.protocol
    }

    #[cfg(feature = "redis-compat")]
    pub(crate) const fn selected_database(&self) -> u32 {
        self.database
    }

    /// The database. Default 0, which costs no command.
    pub const fn database(mut self, database: u32) -> Self {
        self.database = database;
        self
    }

    /// The protocol. Default: RESP3, or RESP2 with a server that does not know it.
    pub const fn protocol(mut self, protocol: ProtocolChoice) -> Self {
        self.protocol = protocol;
        self
    }

    /// What answers at the other end. Default: a server; some proxies need [`Peer::Proxy`].
    pub const fn peer(mut self, peer: Peer) -> Self {
        self.peer = peer;
        self
    }

    /// The connection's name in `CLIENT LIST`: visible ASCII without spaces. Default: none.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into().into());
        self
    }

    /// Lets a replica of a cluster answer reads itself (`READONLY`). Default: no.
    pub const fn read_only(mut self, is_read_only: bool) -> Self {
        self.is_read_only = is_read_only;
        self
    }

    /// The time of a command from submission to reply, waiting for a connection included; a command may have its own
    /// ([`Cmd::deadline`](crate::Cmd::deadline)). `Duration::MAX` is no limit.
    ///
    /// Default 5 s: an interruption that ends by itself (a failover, a restart) passes unnoticed, and a person or a
    /// health check still gets an answer before giving up.
    pub const fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// The time of one dial: name, socket, TLS and handshake together. It has nothing to do with how long to wait
    /// between dials. `Duration::MAX` is no limit.
    ///
    /// Default 5 s: two lost packets at the start of a connection cost 3 s.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// What becomes of commands while nothing is connected. Default [`Policy::Queue`].
    pub fn backlog(mut self, policy: Policy) -> Self {
        self.backlog = Backlog::Preset(policy);
        self
    }

    /// A policy of the application's own: `make` is called once for each endpoint, and for each lane of it.
    pub fn backlog_with(mut self, make: impl Fn() -> Box<dyn BacklogPolicy> + Send + Sync + 'static) -> Self {
        self.backlog = Backlog::Custom(Arc::new(make));
        self
    }

    /// Most bytes of commands that are not sent yet. Default 64 MiB: a second at half a million small commands a
    /// second.
    pub const fn backlog_bytes_max(mut self, bytes: usize) -> Self {
        self.engine.backlog_bytes_max = bytes;
        self
    }

    /// Whether new commands may overtake the backlog after a reconnect. Default: no, all goes in the order of submission.
    pub const fn flush_order(mut self, order: FlushOrder) -> Self {
        self.engine.flush_order = order;
        self
    }

    /// Waits between dials. Default [`BackoffConfig::CLIENT`].
    pub const fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.engine.backoff = backoff;
        self
    }

    /// All bounds and times of the engine at once; [`backlog_bytes_max`](Self::backlog_bytes_max) and
    /// [`backoff`](Self::backoff) are two of them.
    pub fn engine(mut self, engine: Config) -> Self {
        self.engine = engine;
        self
    }

    /// When a silent server is given up. Default: dead 1.8 s after something was due.
    pub const fn liveness(mut self, liveness: LivenessConfig) -> Self {
        self.liveness = liveness;
        self
    }

    /// How many repetitions the client allows itself. Default: a tenth of the traffic in the long run.
    pub const fn retry_budget(mut self, budget: RetryBudgetConfig) -> Self {
        self.retry_budget = budget;
        self
    }

    /// Whether idempotent commands, such as `SET`, are repeated when their first run may have happened, as if each had
    /// [`allow_retry`](crate::Cmd::allow_retry). Default: no. A second `SET` may overwrite what another client wrote
    /// between the two.
    pub const fn retry_idempotent(mut self, is_retried: bool) -> Self {
        self.is_idempotent_retried = is_retried;
        self
    }

    /// Calls `hook` when fire-and-forget commands have failed, with how many since the last call and the last one's
    /// error: nobody else hears of them, apart from the counter `unwatched_failed` and
    /// [`Event::UnwatchedFailed`](crate::Event). It runs on the connection's task, which waits for it: it must be quick.
    pub fn on_unwatched_failure(mut self, hook: impl Fn(u64, &Error) + Send + Sync + 'static) -> Self {
        self.unwatched_hook = Some(Arc::new(hook));
        self
    }

    /// Most connections besides the shared one, for blocking commands and [`Client::lease`](crate::Client::lease).
    /// They are opened when they are needed; a caller that finds all of them taken waits its turn, for as long as its
    /// deadline allows ([`ErrorKind::LeasesTaken`](crate::ErrorKind::LeasesTaken)).
    ///
    /// Default 64: a process seldom waits on more queues at once, and a hundred such processes stay below the 10,000
    /// connections that servers accept by default.
    pub const fn leased_max(mut self, connections: usize) -> Self {
        self.leased_max = connections;
        self
    }

    /// How long a leased connection is kept after its last use. Default 30 s: a loop of blocking commands keeps its
    /// connection, and what a burst has opened is gone half a minute after it.
    pub const fn leased_idle_max(mut self, idle: Duration) -> Self {
        self.leased_idle_max = idle;
        self
    }

    /// Whether scripts are called by their digest once the server has them. Default: yes. Otherwise each call sends
    /// the script's source, for proxies and servers without a script cache.
    pub const fn script_cache(mut self, has_script_cache: bool) -> Self {
        self.has_script_cache = has_script_cache;
        self
    }

    /// Whether the server is asked to announce its maintenance (`CLIENT MAINT_NOTIFICATIONS`), so that the client can
    /// move to another endpoint before the present one closes. Default [`MaintenanceMode::Auto`]: asked, and nothing
    /// is said if the server cannot.
    pub const fn maintenance(mut self, mode: MaintenanceMode) -> Self {
        self.maintenance = mode;
        self
    }

    /// The form in which the server is to name an endpoint's successor. Default [`EndpointType::Auto`].
    pub const fn moving_endpoint_type(mut self, form: EndpointType) -> Self {
        self.moving_endpoint_type = form;
        self
    }

    /// Which commands wait, while the client moves to another endpoint, for those that are not answered yet on the old
    /// one. Default [`HandoffOrder::Strict`]: all of them, for one round trip.
    pub const fn handoff_order(mut self, order: HandoffOrder) -> Self {
        self.engine.handoff_order = order;
        self
    }

    /// How long commands have at least, while the server has announced that it is busy with itself; a command's own
    /// hard deadline is not touched. Default 10 s, as long as most clients give. `Duration::ZERO` relaxes nothing.
    pub const fn relaxed_timeout(mut self, timeout: Duration) -> Self {
        self.engine.windows = WindowConfig::from_relaxed(timeout);
        self
    }
}

/// What the engine reads.
impl ConnectOptions {
    /// The server.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// How the cluster is found, if it is one.
    pub fn cluster_options(&self) -> Option<&ClusterOptions> {
        self.cluster.as_deref()
    }

    /// How the primary is found, if sentinels watch it.
    pub fn sentinel_options(&self) -> Option<&SentinelOptions> {
        self.sentinel.as_deref()
    }

    /// How the primary is found, if nobody watches it.
    pub fn replicated_options(&self) -> Option<&ReplicatedOptions> {
        self.replicated.as_deref()
    }

    /// How TLS is spoken, if it is.
    pub const fn tls_options(&self) -> Option<&TlsOptions> {
        self.tls.as_ref()
    }

    /// Who the client is, if it authenticates.
    pub const fn provider(&self) -> Option<&Arc<dyn CredentialsProvider>> {
        self.credentials.as_ref()
    }

    /// The time of a command that has none of its own.
    pub const fn default_command_timeout(&self) -> Duration {
        self.command_timeout
    }

    /// The time of one dial, all steps together.
    pub const fn dial_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// Whether a proxy answers, which carries no subscriptions.
    pub(crate) fn is_proxy(&self) -> bool {
        self.peer == Peer::Proxy
    }

    /// Bounds and times of the engine.
    pub const fn engine_config(&self) -> &Config {
        &self.engine
    }

    /// When a silent server is given up.
    pub const fn liveness_config(&self) -> &LivenessConfig {
        &self.liveness
    }

    /// How many repetitions are allowed.
    pub const fn retry_budget_config(&self) -> &RetryBudgetConfig {
        &self.retry_budget
    }

    /// Most leased connections.
    pub const fn leased_bound(&self) -> usize {
        self.leased_max
    }

    /// How long an unused leased connection is kept.
    pub const fn leased_idle_time(&self) -> Duration {
        self.leased_idle_max
    }

    /// Whether scripts are called by their digest.
    pub const fn is_script_cached(&self) -> bool {
        self.has_script_cache
    }

    /// Whether idempotent commands are repeated without being told.
    pub const fn is_idempotent_retried(&self) -> bool {
        self.is_idempotent_retried
    }

    /// Who is told of fire-and-forget commands that failed.
    pub(crate) const fn unwatched_hook(&self) -> Option<&UnwatchedHook> {
        self.unwatched_hook.as_ref()
    }

    /// The policy for one endpoint.
    pub fn policy(&self) -> Box<dyn BacklogPolicy> {
        match &self.backlog {
            Backlog::Preset(policy) => Box::new(*policy),
            Backlog::Custom(make) => make(),
        }
    }

    /// What to ask of the server at `peer` about its maintenance.
    fn maintenance_request(&self, peer: Option<SocketAddr>) -> Option<MaintenanceRequest> {
        let host = match &self.target {
            Target::Tcp { host, .. } if self.transport.is_none() => match host.parse::<IpAddr>() {
                Ok(_) => ConfiguredHost::Ip,
                Err(_) => ConfiguredHost::Name,
            },
            _ => ConfiguredHost::Path,
        };
        let is_required = match self.maintenance {
            MaintenanceMode::Disabled => return None,
            MaintenanceMode::Auto => false,
            MaintenanceMode::Required => true,
        };
        let form = self.moving_endpoint_type.resolve(peer, self.tls.is_some(), host);
        Some(MaintenanceRequest { moving_endpoint_type: form.wire(), is_required })
    }

    /// Whether the server is configured by a name, which may lead somewhere else by and by.
    pub(crate) fn is_target_named(&self) -> bool {
        matches!(&self.target, Target::Tcp { host, .. } if host.parse::<IpAddr>().is_err())
    }

    /// What to say at the start of a connection to `peer` that has `left` of its dial's time.
    pub fn handshake(
        &self,
        credentials: Option<Credentials>,
        left: Duration,
        peer: Option<SocketAddr>,
    ) -> HandshakeConfig {
        HandshakeConfig {
            protocol: self.protocol,
            peer: self.peer,
            credentials,
            database: self.database,
            is_read_only: self.is_read_only,
            is_primary_required: self.is_primary_required,
            client_name: self.client_name.clone(),
            timeout: left,
            maintenance: self.maintenance_request(peer),
            ..HandshakeConfig::default()
        }
    }

    /// What dials: checks the options and reads the certificates, which blocks for as long as the files take.
    ///
    /// # Errors
    /// [`OptionsError`]: the caller's configuration.
    pub fn connector(&self) -> Result<Connector, OptionsError> {
        self.validate()?;
        Ok(Connector::new(self.tcp.clone(), self.tls.clone(), self.transport.clone())?)
    }

    /// Says whether the options go together. Certificates are not looked at; [`connector`](Self::connector) does.
    ///
    /// # Errors
    /// [`OptionsError`]: the first that does not fit; the caller's configuration, never to be retried.
    pub fn validate(&self) -> Result<(), OptionsError> {
        for (timeout, option) in
            [(self.command_timeout, "command_timeout"), (self.connect_timeout, "connect_timeout")]
        {
            if timeout.is_zero() {
                return Err(OptionsError::ZeroTimeout { option });
            }
        }
        if let Some(name) = &self.client_name
            && !name.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(OptionsError::ClientName);
        }
        if self.maintenance == MaintenanceMode::Required && self.protocol == ProtocolChoice::Resp2 {
            return Err(OptionsError::MaintenanceProtocol);
        }
        if self.client_cache.is_some() && self.protocol == ProtocolChoice::Resp2 {
            return Err(OptionsError::CacheProtocol);
        }
        if self.engine.backlog_bytes_max == 0 {
            return Err(OptionsError::NoBacklog);
        }
        if self.leased_max == 0 || self.leased_max > LEASED_MAX {
            return Err(OptionsError::LeasedMax { leased_max: self.leased_max });
        }
        self.validate_lanes()?;
        self.engine.backoff.validate()?;
        self.validate_liveness()?;
        self.validate_target()
    }

    fn validate_liveness(&self) -> Result<(), OptionsError> {
        let LivenessConfig { silence_max, second_opinion, idle_ping_after, .. } = self.liveness;
        if silence_max.is_zero() {
            return Err(OptionsError::ZeroTimeout { option: "liveness.silence_max" });
        }
        if idle_ping_after == Some(Duration::ZERO) {
            return Err(OptionsError::ZeroTimeout { option: "liveness.idle_ping_after" });
        }
        match second_opinion {
            Some(second) if second.ask_after >= silence_max => {
                Err(OptionsError::LateOpinion { ask_after: second.ask_after, silence_max })
            }
            _ => Ok(()),
        }
    }

    fn validate_target(&self) -> Result<(), OptionsError> {
        let cluster = self.cluster.as_ref().map(|options| options.further_seeds());
        let sentinel = self.sentinel.as_ref().map(|options| options.further_sentinels());
        let replicated = self.replicated.as_ref().map(|options| options.further_servers());
        let mut found = [cluster, sentinel, replicated].into_iter().flatten();
        if let Some(further) = found.next() {
            if found.next().is_some() {
                return Err(OptionsError::TwoTopologies);
            }
            let is_socket = |target: &Target| matches!(target, Target::Unix(_));
            if is_socket(&self.target) || further.iter().any(is_socket) || self.peer == Peer::Proxy {
                return Err(OptionsError::ClusterTarget);
            }
        }
        if self.sentinel.as_ref().is_some_and(|sentinel| sentinel.name().is_empty()) {
            return Err(OptionsError::NoPrimaryName);
        }
        let is_tcp = match &self.target {
            Target::Tcp { host, port } => {
                if host.is_empty() {
                    return Err(OptionsError::NoHost);
                }
                if *port == 0 && self.transport.is_none() {
                    return Err(OptionsError::PortZero);
                }
                true
            }
            Target::Unix(_) => false,
        };
        if self.peer == Peer::Proxy {
            if self.protocol == ProtocolChoice::Resp3 {
                return Err(OptionsError::ProxyProtocol);
            }
            if self.database != 0 {
                return Err(OptionsError::ProxyDatabase { database: self.database });
            }
        }
        if !is_tcp && self.tls.as_ref().is_some_and(|tls| !tls.has_server_name()) {
            return Err(OptionsError::TlsWithoutName);
        }
        match self.tcp.bind_address() {
            Some(bind) if !is_tcp || self.transport.is_some() => Err(OptionsError::BindWithoutTcp { bind }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backlog: &dyn fmt::Debug = match &self.backlog {
            Backlog::Preset(policy) => policy,
            Backlog::Custom(_) => &"(custom)",
        };
        f.debug_struct("ConnectOptions")
            .field("target", &self.target)
            .field("tcp", &self.tcp)
            .field("tls", &self.tls)
            .field("has_transport", &self.transport.is_some())
            .field("has_credentials", &self.credentials.is_some())
            .field("database", &self.database)
            .field("protocol", &self.protocol)
            .field("peer", &self.peer)
            .field("client_name", &self.client_name)
            .field("is_read_only", &self.is_read_only)
            .field("command_timeout", &self.command_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("backlog", backlog)
            .field("engine", &self.engine)
            .field("liveness", &self.liveness)
            .field("retry_budget", &self.retry_budget)
            .field("is_idempotent_retried", &self.is_idempotent_retried)
            .field("has_unwatched_hook", &self.unwatched_hook.is_some())
            .field("leased_max", &self.leased_max)
            .field("leased_idle_max", &self.leased_idle_max)
            .field("lanes", &self.lanes)
            .field("has_script_cache", &self.has_script_cache)
            .field("maintenance", &self.maintenance)
            .field("moving_endpoint_type", &self.moving_endpoint_type)
            .field("cluster", &self.cluster)
            .field("sentinel", &self.sentinel)
            .field("replicated", &self.replicated)
            .field("has_address_map", &self.address_map.is_some())
            .finish()
    }
}

/// What is wrong with [`ConnectOptions`]; the caller's to mend, never to be retried.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A time that must not be zero is: everything would fail at once.
    #[error("`{option}` is zero, so everything would fail at once; `Duration::MAX` is no limit")]
    ZeroTimeout {
        /// The option.
        option: &'static str,
    },
    /// The target is TCP without a host.
    #[error("the target has no host")]
    NoHost,
    /// The target's port is 0, which nobody can listen on.
    #[error("the target's port is 0")]
    PortZero,
    /// The client's name has characters that servers refuse.
    #[error("`client_name` may have visible ASCII characters only, and no space")]
    ClientName,
    /// Nothing can be sent without a place to wait for the kernel.
    #[error("`backlog_bytes_max` is 0, so nothing could be sent")]
    NoBacklog,
    /// The bound on leased connections is zero, so that no blocking command could run, or no bound at all.
    #[error("`leased_max` is {leased_max}; it may be from 1 to 65,536")]
    LeasedMax {
        /// What was asked for.
        leased_max: usize,
    },
    /// There are no such numbers of lanes.
    #[error("`lanes` is {lanes}; it may be from 1 to 32")]
    Lanes {
        /// What was asked for.
        lanes: u8,
    },
    /// The numbers of the backoff do not go together.
    #[error("`backoff`: {0}")]
    Backoff(#[from] BackoffError),
    /// The second opinion comes after the verdict.
    #[error("liveness asks for a second opinion after {ask_after:?}, but gives up after {silence_max:?}")]
    LateOpinion {
        /// When it would be asked for.
        ask_after: Duration,
        /// When the connection is given up.
        silence_max: Duration,
    },
    /// Proxies without `HELLO` have no RESP3.
    #[error("RESP3 needs `HELLO`, which a `Peer::Proxy` does not know; use RESP2")]
    ProxyProtocol,
    /// A RESP2 connection has no room for announcements.
    #[error("`maintenance` is required, and announcements need RESP3")]
    MaintenanceProtocol,
    /// A RESP2 connection has no room for the server's announcements.
    #[error("`client_cache` needs RESP3")]
    CacheProtocol,
    /// Such proxies have one database.
    #[error("a `Peer::Proxy` has database 0 only, not {database}")]
    ProxyDatabase {
        /// What was asked for.
        database: u32,
    },
    /// A cluster, sentinels and several servers are found by host and port, and what is found are servers.
    #[error("a cluster, sentinels and replicated servers need TCP targets, and no `Peer::Proxy`")]
    ClusterTarget,
    /// The servers are found in more than one way.
    #[error("only one of `cluster`, `sentinel` and `replicated` can say where the servers are")]
    TwoTopologies,
    /// Sentinels know their primaries by name.
    #[error("the primary that sentinels shall be asked for has no name")]
    NoPrimaryName,
    /// TLS has to know whom the certificate must name.
    #[error("TLS over a Unix socket needs the TLS option `server_name`")]
    TlsWithoutName,
    /// There is no TCP socket that could be bound.
    #[error("the TCP option `bind` ({bind}) goes with a TCP target and no other transport")]
    BindWithoutTcp {
        /// The address.
        bind: IpAddr,
    },
    /// The TLS options cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_client_proto::SecondOpinion;

    fn options() -> ConnectOptions {
        ConnectOptions::new(Target::tcp("db", 6379))
    }

    #[track_caller]
    fn refused(options: ConnectOptions) -> OptionsError {
        options.validate().unwrap_err()
    }

    #[test]
    fn the_defaults_go_together() {
        options().validate().unwrap();
        ConnectOptions::new(Target::unix("/tmp/s")).validate().unwrap();
        options().connector().unwrap();
    }

    #[test]
    fn extreme_times_are_no_limit_or_an_error() {
        options().command_timeout(Duration::MAX).connect_timeout(Duration::MAX).validate().unwrap();
        options().command_timeout(Duration::from_nanos(1)).validate().unwrap();
        let zero = Duration::ZERO;
        assert_eq!(
            refused(options().command_timeout(zero)),
            OptionsError::ZeroTimeout { option: "command_timeout" }
        );
        assert_eq!(
            refused(options().connect_timeout(zero)),
            OptionsError::ZeroTimeout { option: "connect_timeout" }
        );
        let liveness = LivenessConfig { silence_max: zero, ..LivenessConfig::default() };
        assert!(refused(options().liveness(liveness)).to_string().contains("liveness.silence_max"));
        let liveness = LivenessConfig { idle_ping_after: Some(zero), ..LivenessConfig::default() };
        assert!(refused(options().liveness(liveness)).to_string().contains("liveness.idle_ping_after"));
        let liveness = LivenessConfig { silence_max: Duration::MAX, ..LivenessConfig::default() };
        options().liveness(liveness).validate().unwrap();
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        let unix = || ConnectOptions::new(Target::unix("/tmp/s"));
        let bind = TcpOptions::new().bind(Some(IpAddr::from([127, 0, 0, 1])));
        assert_eq!(refused(ConnectOptions::new(Target::tcp("", 1))), OptionsError::NoHost);
        assert_eq!(refused(ConnectOptions::new(Target::tcp("db", 0))), OptionsError::PortZero);
        assert_eq!(refused(options().client_name("two words")), OptionsError::ClientName);
        assert_eq!(refused(options().client_name("name\r\nFLUSHALL")), OptionsError::ClientName);
        assert_eq!(refused(options().backlog_bytes_max(0)), OptionsError::NoBacklog);
        for leased_max in [0, usize::MAX] {
            assert_eq!(refused(options().leased_max(leased_max)), OptionsError::LeasedMax { leased_max });
        }
        let backoff = BackoffConfig { base: Duration::ZERO, ..BackoffConfig::CLIENT };
        assert!(matches!(refused(options().backoff(backoff)), OptionsError::Backoff(_)));
        let second = SecondOpinion { ask_after: Duration::from_secs(9), ..SecondOpinion::default() };
        let liveness = LivenessConfig { second_opinion: Some(second), ..LivenessConfig::default() };
        assert!(matches!(refused(options().liveness(liveness)), OptionsError::LateOpinion { .. }));
        let proxy = || options().peer(Peer::Proxy);
        proxy().validate().unwrap();
        assert_eq!(refused(proxy().protocol(ProtocolChoice::Resp3)), OptionsError::ProxyProtocol);
        assert_eq!(refused(proxy().database(1)), OptionsError::ProxyDatabase { database: 1 });
        assert_eq!(refused(unix().tls(TlsOptions::new())), OptionsError::TlsWithoutName);
        unix().tls(TlsOptions::new().server_name("db")).validate().unwrap();
        assert!(matches!(refused(unix().tcp(bind.clone())), OptionsError::BindWithoutTcp { .. }));
        options().tcp(bind).validate().unwrap();
        let missing = options().tls(TlsOptions::new().ca_file("/nowhere/ca.pem"));
        assert!(matches!(missing.connector().unwrap_err(), OptionsError::Tls(_)));
    }

    #[test]
    fn the_handshake_says_what_was_asked_for() {
        let options =
            options().database(3).client_name("app").read_only(true).protocol(ProtocolChoice::Resp2);
        let credentials = Credentials::password("secret");
        let handshake = options.handshake(Some(credentials.clone()), Duration::from_secs(1), None);
        assert_eq!(handshake.credentials, Some(credentials));
        assert_eq!((handshake.database, handshake.is_read_only), (3, true));
        assert_eq!(handshake.client_name.as_deref(), Some("app"));
        assert_eq!((handshake.protocol, handshake.timeout), (ProtocolChoice::Resp2, Duration::from_secs(1)));
    }

    #[test]
    fn policies_are_made_for_each_endpoint() {
        let bounded = Policy::Bounded { bytes: 10, age: Duration::from_secs(3) };
        assert_eq!(options().backlog(bounded).policy().age_max(), Some(Duration::from_secs(3)));
        let custom = options().backlog_with(move || Box::new(bounded));
        assert_eq!(custom.policy().age_max(), Some(Duration::from_secs(3)));
        assert!(format!("{custom:?}").contains("custom"));
    }

    #[test]
    fn debug_shows_no_secret() {
        let tls = TlsOptions::new().client_pem("chain", "topsecret");
        let text = format!("{:?}", options().credentials(Credentials::user("app", "hunter2")).tls(tls));
        assert!(!text.contains("hunter2") && !text.contains("topsecret"), "{text}");
        assert!(text.contains("has_credentials: true"));
    }
}
