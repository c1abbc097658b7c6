//! The configuration.
//!
//! Owns: every parameter in force, its default and the reason for it. Does **not** own how parameters are named, read
//! and shown (`table`), where they come from (`load`), nor writing them back to their file (`rewrite`).

mod check;
mod cluster;
mod load;
mod param;
mod persistence;
mod rewrite;
mod table;
mod text;

pub(crate) use cluster::BUS_PORT_OFFSET;
pub use cluster::{ClusterConfig, PreferredEndpoint, Secret};
pub use load::ConfigError;
pub(crate) use param::{Change, Param};
pub use persistence::{AppendFsync, LoadUnsupported, Persistence, SavePoint};
pub(crate) use rewrite::rewrite;
pub(crate) use table::{PARAMS, find};
pub(crate) use text::split_words;

use crate::client::{Client, flag};
use crate::limits::OutputLimit;
use std::collections::BTreeMap;
use std::path::PathBuf;
use towline_store::changes::Settings;
use towline_store::evict::Policy;
use towline_store::limits::EncodingLimits;

/// `client-output-buffer-limit`: one limit for each class of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Clients that are neither of the others. Default: none, since they read what they asked for.
    pub normal: OutputLimit,
    /// Replicas. Default as Redis: 256 MiB, or 64 MiB for a minute.
    pub replica: OutputLimit,
    /// Subscribers. Default as Redis: 32 MiB, or 8 MiB for a minute.
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> Self {
        let limit = |hard_mb: u64, soft_mb: u64, soft_seconds| OutputLimit {
            hard_bytes: hard_mb << 20,
            soft_bytes: soft_mb << 20,
            soft_seconds,
        };
        Self { normal: limit(0, 0, 0), replica: limit(256, 64, 60), pubsub: limit(32, 8, 60) }
    }
}

/// `tls-auth-clients`: whether clients must show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsAuthClients {
    /// They are not asked for one.
    No,
    /// They must. The default, as in Redis: whoever turns TLS on wants to know its peers.
    #[default]
    Yes,
    /// They may; what they show must be valid.
    Optional,
}

/// Who may use what is dangerous: `enable-debug-command`, `enable-protected-configs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nobody.
    No,
    /// Everybody.
    Yes,
    /// Clients on this machine.
    Local,
}

/// `loglevel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Much.
    Verbose,
    /// What an operator wants to know. The default.
    #[default]
    Notice,
    /// What an operator must know.
    Warning,
    /// Nothing.
    Nothing,
}

/// `maxmemory-clients`: what all clients' buffers together may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientMemory {
    /// Bytes; 0 is no limit.
    Bytes(u64),
    /// Percent of `maxmemory`.
    Percent(u8),
}

/// Parameters in force. Those that are accepted without effect are only known by name, see [`Config::notes`].
#[derive(Debug, Clone)]
pub struct Config {
    /// The file that was loaded, which `CONFIG REWRITE` replaces.
    pub file: Option<PathBuf>,
    /// `workers`: data workers, one thread each. Default: the number of cores.
    pub workers: usize,
    /// `bind`; a leading `-` means that the address may be missing on this machine.
    pub bind: Vec<String>,
    /// `port`; 0 turns TCP off.
    pub port: u16,
    /// `tls-port`; 0, the default, turns TLS off.
    pub tls_port: u16,
    /// `tls-cert-file`, PEM.
    pub tls_cert_file: Option<String>,
    /// `tls-key-file`, PEM.
    pub tls_key_file: Option<String>,
    /// `tls-ca-cert-file`, PEM: who may sign the certificates of clients.
    pub tls_ca_cert_file: Option<String>,
    /// `tls-auth-clients`.
    pub tls_auth_clients: TlsAuthClients,
    /// `tls-handshake-timeout-ms`: from accepting a connection to the end of its handshake. Default 10 s: an honest one takes
    /// three round trips, the rest is for a fleet that connects at once and waits for its turns.
    pub tls_handshake_timeout_ms: u64,
    /// `tcp-backlog`. Default 4096: with the 511 of Redis, ten thousand clients that connect at once lose SYNs and wait a second.
    pub tcp_backlog: u32,
    /// `unixsocket`.
    pub unixsocket: Option<String>,
    /// `unixsocketperm`, octal; 0 leaves it to the umask.
    pub unixsocketperm: u32,
    /// `maxclients`.
    pub maxclients: usize,
    /// `timeout`, seconds; 0 is never.
    pub timeout_s: u64,
    /// `tcp-keepalive`, seconds; 0 is off.
    pub tcp_keepalive_s: u64,
    /// `protected-mode`.
    pub protected_mode: bool,
    /// `requirepass`; empty is none.
    pub requirepass: Vec<u8>,
    /// `databases`.
    pub databases: u8,
    /// `maxmemory`, bytes; 0 is no limit.
    pub maxmemory: u64,
    /// `maxmemory-policy`.
    pub maxmemory_policy: Policy,
    /// `maxmemory-samples`.
    pub maxmemory_samples: usize,
    /// `maxmemory-clients`.
    pub maxmemory_clients: ClientMemory,
    /// `lfu-log-factor`.
    pub lfu_log_factor: u32,
    /// `lfu-decay-time`, minutes.
    pub lfu_decay_time: u32,
    /// `notify-keyspace-events`.
    pub notify_keyspace_events: u32,
    /// `proto-max-bulk-len`, bytes.
    pub proto_max_bulk_len: u64,
    /// `client-query-buffer-limit`, bytes.
    pub client_query_buffer_limit: u64,
    /// `client-output-buffer-limit`.
    pub client_output_buffer_limit: OutputLimits,
    /// `hash-max-listpack-entries` and its kin.
    pub encoding: EncodingLimits,
    /// `slowlog-log-slower-than`, microseconds; negative is never.
    pub slowlog_log_slower_than: i64,
    /// `slowlog-max-len`.
    pub slowlog_max_len: usize,
    /// `latency-monitor-threshold`, milliseconds; 0 is off.
    pub latency_monitor_threshold: u64,
    /// `latency-tracking`: whether commands' times are kept as histograms. Default yes: it costs nanoseconds.
    pub latency_tracking: bool,
    /// `latency-tracking-info-percentiles`, each in 0..=100.
    pub latency_tracking_info_percentiles: Vec<f64>,
    /// `maint-notifications`: whether clients may ask to be told of planned moves. Default yes: it costs nothing until one
    /// does.
    pub maint_notifications: bool,
    /// `hz`: rounds of background work per second, 1 to 500.
    pub hz: u32,
    /// `active-expire-effort`, 1 to 10.
    pub active_expire_effort: u32,
    /// `tracking-table-max-keys`; 0 is no limit.
    pub tracking_table_max_keys: usize,
    /// `enable-debug-command`. Default `local`, where Redis has `no`: test suites and operators on the machine need it,
    /// clients from elsewhere must not make the server sleep.
    pub enable_debug_command: Access,
    /// `enable-protected-configs`.
    pub enable_protected_configs: Access,
    /// `dir`: where files are looked for. Default: the current directory.
    pub dir: String,
    /// `dbfilename`.
    pub dbfilename: String,
    /// Snapshots and log. Default: none; a process has the save points of Redis.
    pub persistence: Persistence,
    /// The node as a part of a cluster. Default: it is none.
    pub cluster: ClusterConfig,
    /// `logfile`; none is standard error.
    pub logfile: Option<String>,
    /// `loglevel`.
    pub loglevel: LogLevel,
    /// `pidfile`.
    pub pidfile: Option<String>,
    /// `admin-port`: Prometheus metrics and health over HTTP; 0, the default, turns it off.
    pub admin_port: u16,
    /// `admin-bind`. Default loopback: metrics name keys' counts and clients.
    pub admin_bind: String,
    /// Parameters of Redis that are accepted without effect, where they differ from their defaults.
    pub(crate) kept: BTreeMap<&'static str, Vec<u8>>,
}

impl Default for Config {
    fn default() -> Self {
        let dir = std::env::current_dir().ok().and_then(|dir| dir.into_os_string().into_string().ok());
        Self {
            file: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            bind: vec!["127.0.0.1".into(), "-::1".into()],
            port: 6379,
            tls_port: 0,
            tls_cert_file: None,
            tls_key_file: None,
            tls_ca_cert_file: None,
            tls_auth_clients: TlsAuthClients::default(),
            tls_handshake_timeout_ms: 10_000,
            tcp_backlog: 4096,
            unixsocket: None,
            unixsocketperm: 0,
            maxclients: 10_000,
            timeout_s: 0,
            tcp_keepalive_s: 300,
            protected_mode: true,
            requirepass: Vec::new(),
            databases: 16,
            maxmemory: 0,
            maxmemory_policy: Policy::NoEviction,
            maxmemory_samples: 5,
            maxmemory_clients: ClientMemory::Bytes(0),
            lfu_log_factor: 10,
            lfu_decay_time: 1,
            notify_keyspace_events: 0,
            proto_max_bulk_len: 512 << 20,
            client_query_buffer_limit: 1 << 30,
            client_output_buffer_limit: OutputLimits::default(),
            encoding: EncodingLimits::default(),
            slowlog_log_slower_than: 10_000,
            slowlog_max_len: 128,
            latency_monitor_threshold: 0,
            latency_tracking: true,
            latency_tracking_info_percentiles: vec![50.0, 99.0, 99.9],
            maint_notifications: true,
            hz: 10,
            active_expire_effort: 1,
            tracking_table_max_keys: 1_000_000,
            enable_debug_command: Access::Local,
            enable_protected_configs: Access::No,
            dir: dir.unwrap_or_else(|| ".".into()),
            dbfilename: "dump.rdb".into(),
            persistence: Persistence::default(),
            cluster: ClusterConfig::default(),
            logfile: None,
            loglevel: LogLevel::default(),
            pidfile: None,
            admin_port: 0,
            admin_bind: "127.0.0.1".into(),
            kept: BTreeMap::new(),
        }
    }
}

impl Config {
    /// What the keyspace follows.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            limits: self.encoding,
            notify: self.notify_keyspace_events,
            policy: self.maxmemory_policy,
            lfu_log_factor: self.lfu_log_factor,
            lfu_decay_minutes: self.lfu_decay_time,
            access_from_ms: 0,
        }
    }

    /// How much a client may leave unread.
    pub(crate) fn output_limit(&self, client: &Client) -> OutputLimit {
        let limits = &self.client_output_buffer_limit;
        match () {
            () if client.has_flag(flag::REPLICA) => limits.replica,
            () if client.has_flag(flag::PUBSUB) => limits.pubsub,
            () => limits.normal,
        }
    }

    /// Bytes that all clients' buffers together may take, if that is limited.
    pub fn client_memory_bytes_max(&self) -> Option<u64> {
        let bytes = match self.maxmemory_clients {
            ClientMemory::Bytes(bytes) => bytes,
            ClientMemory::Percent(percent) => self.maxmemory / 100 * u64::from(percent),
        };
        (bytes > 0).then_some(bytes)
    }

    /// One line for each parameter that was set although it has no effect, to be logged at the start.
    pub fn notes(&self) -> Vec<String> {
        let note = |name: &&'static str| {
            let why = find(name.as_bytes()).map_or("", |param| param.note);
            format!("'{name}' is accepted without effect: {why}")
        };
        self.kept.keys().map(note).collect()
    }
}

#[cfg(test)]
mod tests;
