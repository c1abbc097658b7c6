// Long because: it is the table.
//! The table of parameters: from it follow files, flags, environment variables and the `CONFIG` commands.
//!
//! Owns: names, ranges and effects on [`Config`]. Does **not** own defaults, except of what has no effect.

use super::check;
use super::param::{Change, Param, Reason, Set};
use super::text::{
    bool_text, choice_text, parse_bool, parse_choice, parse_int, parse_octal, parse_size, parse_text, size,
};
use super::{
    Access, AppendFsync, ClientMemory, Config, LoadUnsupported, LogLevel, PreferredEndpoint, TlsAuthClients,
};
use crate::limits::OutputLimit;
use std::path::Path;
use towline_store::evict::Policy;
use towline_store::{notify, store};

const I32_MAX: i64 = i32::MAX as i64;
const U32_MAX: i64 = u32::MAX as i64;
/// Most sizes are signed in Redis.
const SIGNED_MAX: u64 = i64::MAX as u64;
const MIB: u64 = 1 << 20;

const TLS_AUTH: &[(&str, TlsAuthClients)] =
    &[("no", TlsAuthClients::No), ("yes", TlsAuthClients::Yes), ("optional", TlsAuthClients::Optional)];
const ACCESS: &[(&str, Access)] = &[("no", Access::No), ("yes", Access::Yes), ("local", Access::Local)];
const LOAD_UNSUPPORTED: &[(&str, LoadUnsupported)] =
    &[("refuse", LoadUnsupported::Refuse), ("skip", LoadUnsupported::Skip)];
const LOG_LEVELS: &[(&str, LogLevel)] = &[
    ("debug", LogLevel::Debug),
    ("verbose", LogLevel::Verbose),
    ("notice", LogLevel::Notice),
    ("warning", LogLevel::Warning),
    ("nothing", LogLevel::Nothing),
];
/// In the order in which the error for an unknown one lists them.
const POLICIES: &[(&str, Policy)] = &[
    ("volatile-lru", Policy::VolatileLru),
    ("volatile-lfu", Policy::VolatileLfu),
    ("volatile-random", Policy::VolatileRandom),
    ("volatile-ttl", Policy::VolatileTtl),
    ("allkeys-lru", Policy::AllKeysLru),
    ("allkeys-lfu", Policy::AllKeysLfu),
    ("allkeys-random", Policy::AllKeysRandom),
    ("noeviction", Policy::NoEviction),
];

const NO_IO_THREADS: &str = "each worker reads and writes its own connections; see 'workers'";
const ALWAYS_SYNCED: &str = "files are always written and synced in small steps";
const NO_REPLICATION: &str = "replication is not there yet";
const NO_CLUSTER_REPLICAS: &str = "replicas hold no data yet";
const CONSENSUS_DECIDES: &str = "the log of the cluster's changes decides that";
const NO_STREAMS: &str = "streams are not there yet";
const NO_SCRIPTS: &str = "scripting is not there yet";
const NO_ACL_USERS: &str = "ACL users are not there yet";
const ALWAYS_LAZY: &str = "large values are always freed off the path";
const NEVER_REHASHES: &str = "tables grow in small steps and need no background work";
const OWN_ALLOCATOR: &str = "the allocator is jemalloc with its own settings";
const OS_DOES: &str = "the service manager does it better";
const RUSTLS: &str = "rustls chooses";
const COSMETIC: &str = "nothing depends on it";

const fn row(name: &'static str, get: fn(&Config) -> Vec<u8>, set: Set) -> Param {
    Param { name, alias: None, change: Change::Anytime, get, set, words_per_line: 0, note: "" }
}

/// A whole number in a range.
macro_rules! int {
    ($name:literal, $($field:ident).+, $min:expr, $max:expr) => {
        row($name, |c| c.$($field).+.to_string().into(), Set::Word(|c, text| {
            c.$($field).+ = parse_int(text, $min, $max)?;
            Ok(())
        }))
    };
}

/// A number of bytes in a range.
macro_rules! bytes {
    ($name:literal, $($field:ident).+, $min:expr, $max:expr) => {
        row($name, |c| c.$($field).+.to_string().into(), Set::Word(|c, text| {
            c.$($field).+ = parse_size(text, $min, $max)?;
            Ok(())
        }))
    };
}

/// Yes or no.
macro_rules! flag {
    ($name:literal, $($field:ident).+) => {
        row(
            $name,
            |c| bool_text(c.$($field).+),
            Set::Word(|c, text| {
                c.$($field).+ = parse_bool(text)?;
                Ok(())
            }),
        )
    };
}

/// One of several words.
macro_rules! choice {
    ($name:literal, $($field:ident).+, $choices:expr) => {
        row(
            $name,
            |c| choice_text(&c.$($field).+, $choices),
            Set::Word(|c, text| {
                c.$($field).+ = parse_choice(text, $choices)?;
                Ok(())
            }),
        )
    };
}

/// Text; empty is none.
macro_rules! text {
    ($name:literal, $field:ident) => {
        row(
            $name,
            |c| c.$field.clone().unwrap_or_default().into(),
            Set::Word(|c, text| {
                c.$field = parse_text(text)?;
                Ok(())
            }),
        )
    };
}

/// The path of a file that must be readable; empty is none.
macro_rules! readable {
    ($name:literal, $field:ident) => {
        row(
            $name,
            |c| c.$field.clone().unwrap_or_default().into(),
            Set::Word(|c, text| {
                c.$field = readable(parse_text(text)?)?;
                Ok(())
            }),
        )
    };
}

/// Accepted without effect, for the given reason, if the value passes `$check`.
macro_rules! kept {
    ($name:literal, $default:expr, $note:expr, $check:expr) => {{
        let mut param = row(
            $name,
            |c| c.kept.get($name).cloned().unwrap_or_else(|| $default.as_bytes().to_vec()),
            Set::Word(|c, text| {
                let check: fn(&[u8]) -> Result<Vec<u8>, Reason> = $check;
                keep(c, $name, check(text)?, $default);
                Ok(())
            }),
        );
        param.note = $note;
        param
    }};
    (yes_no $name:literal, $default:expr, $note:expr) => {
        kept!($name, $default, $note, |text| parse_bool(text).map(bool_text))
    };
    (int $name:literal, $default:expr, $min:expr, $max:expr, $note:expr) => {
        kept!($name, $default, $note, |text| parse_int::<i64>(text, $min, $max).map(|n| n.to_string().into()))
    };
    (bytes $name:literal, $default:expr, $min:expr, $max:expr, $note:expr) => {
        kept!($name, $default, $note, |text| parse_size::<u64>(text, $min, $max)
            .map(|n| n.to_string().into()))
    };
    (text $name:literal, $default:expr, $note:expr) => {
        kept!($name, $default, $note, |text| Ok(text.to_vec()))
    };
    (one_of $name:literal, $default:expr, $words:expr, $note:expr) => {
        kept!($name, $default, $note, |text| check::one_of(text, $words))
    };
    (no $name:literal, $why:expr) => {
        kept!($name, "no", $why, |text| if parse_bool(text)? {
            Err($why.into())
        } else {
            Ok(bool_text(false))
        })
    };
    (only $name:literal, $value:expr, $why:expr) => {
        kept!($name, $value, $why, |text| {
            if text.eq_ignore_ascii_case($value.as_bytes()) { Ok(text.to_vec()) } else { Err($why.into()) }
        })
    };
}

/// A smaller backlog is taken as this one.
const BACKLOG_BYTES_MIN: u64 = 16 << 10;

fn keep(config: &mut Config, name: &'static str, value: Vec<u8>, default: &str) {
    if value.eq_ignore_ascii_case(default.as_bytes()) {
        config.kept.remove(name);
    } else {
        config.kept.insert(name, value);
    }
}

fn readable(path: Option<String>) -> Result<Option<String>, Reason> {
    if let Some(path) = &path
        && let Err(error) = std::fs::File::open(path)
    {
        return Err(format!("cannot read '{path}': {error}").into());
    }
    Ok(path)
}

/// All parameters. Those of Redis that have no effect are here too, so that its files load and tools find their names.
pub(crate) static PARAMS: &[Param] = &[
    // Network
    BIND.change(Change::AtStart),
    int!("port", port, 0, 65_535).change(Change::AtStart),
    int!("tls-port", tls_port, 0, 65_535).change(Change::AtStart),
    readable!("tls-cert-file", tls_cert_file),
    readable!("tls-key-file", tls_key_file),
    readable!("tls-ca-cert-file", tls_ca_cert_file),
    choice!("tls-auth-clients", tls_auth_clients, TLS_AUTH),
    int!("tls-handshake-timeout-ms", tls_handshake_timeout_ms, 1, I32_MAX),
    int!("workers", workers, 1, 1024).change(Change::AtStart),
    int!("tcp-backlog", tcp_backlog, 0, I32_MAX).change(Change::AtStart),
    text!("unixsocket", unixsocket).change(Change::AtStart),
    UNIXSOCKETPERM.change(Change::AtStart),
    int!("maxclients", maxclients, 1, U32_MAX),
    int!("timeout", timeout_s, 0, I32_MAX),
    int!("tcp-keepalive", tcp_keepalive_s, 0, I32_MAX),
    flag!("protected-mode", protected_mode),
    REQUIREPASS,
    bytes!("proto-max-bulk-len", proto_max_bulk_len, MIB, SIGNED_MAX),
    bytes!("client-query-buffer-limit", client_query_buffer_limit, MIB, SIGNED_MAX),
    OUTPUT_LIMITS,
    text!("logfile", logfile).change(Change::AtStart),
    choice!("loglevel", loglevel, LOG_LEVELS),
    text!("pidfile", pidfile).change(Change::AtStart),
    int!("admin-port", admin_port, 0, 65_535).change(Change::AtStart),
    ADMIN_BIND.change(Change::AtStart),
    int!("databases", databases, 1, store::DB_COUNT as i64).change(Change::AtStart),
    DIR.change(Change::Protected),
    DBFILENAME.change(Change::Protected),
    choice!("enable-debug-command", enable_debug_command, ACCESS).change(Change::AtStart),
    choice!("enable-protected-configs", enable_protected_configs, ACCESS).change(Change::AtStart),
    HZ,
    int!("active-expire-effort", active_expire_effort, 1, 10),
    // Memory
    bytes!("maxmemory", maxmemory, 0, u64::MAX),
    choice!("maxmemory-policy", maxmemory_policy, POLICIES),
    int!("maxmemory-samples", maxmemory_samples, 1, I32_MAX),
    MAXMEMORY_CLIENTS,
    int!("lfu-log-factor", lfu_log_factor, 0, I32_MAX),
    int!("lfu-decay-time", lfu_decay_time, 0, I32_MAX),
    int!("tracking-table-max-keys", tracking_table_max_keys, 0, i64::MAX),
    // Encodings
    int!("hash-max-listpack-entries", encoding.hash_max_listpack_entries, 0, i64::MAX)
        .alias("hash-max-ziplist-entries"),
    bytes!("hash-max-listpack-value", encoding.hash_max_listpack_value, 0, SIGNED_MAX)
        .alias("hash-max-ziplist-value"),
    int!("list-max-listpack-size", encoding.list_max_listpack_size, i32::MIN as i64, I32_MAX)
        .alias("list-max-ziplist-size"),
    int!("set-max-intset-entries", encoding.set_max_intset_entries, 0, i64::MAX),
    int!("set-max-listpack-entries", encoding.set_max_listpack_entries, 0, i64::MAX),
    bytes!("set-max-listpack-value", encoding.set_max_listpack_value, 0, SIGNED_MAX),
    int!("zset-max-listpack-entries", encoding.zset_max_listpack_entries, 0, i64::MAX)
        .alias("zset-max-ziplist-entries"),
    bytes!("zset-max-listpack-value", encoding.zset_max_listpack_value, 0, SIGNED_MAX)
        .alias("zset-max-ziplist-value"),
    bytes!("hll-sparse-max-bytes", encoding.hll_sparse_max_bytes, 0, SIGNED_MAX),
    // Observation
    NOTIFY,
    int!("slowlog-log-slower-than", slowlog_log_slower_than, -1, i64::MAX),
    int!("slowlog-max-len", slowlog_max_len, 0, i64::MAX),
    int!("latency-monitor-threshold", latency_monitor_threshold, 0, i64::MAX),
    flag!("latency-tracking", latency_tracking),
    flag!("maint-notifications", maint_notifications),
    PERCENTILES,
    // Files
    SAVE,
    flag!("stop-writes-on-bgsave-error", persistence.stop_writes_on_bgsave_error),
    flag!("rdbcompression", persistence.rdbcompression),
    flag!("rdbchecksum", persistence.rdbchecksum).change(Change::AtStart),
    flag!("appendonly", persistence.appendonly),
    APPENDFILENAME.change(Change::AtStart),
    APPENDDIRNAME.change(Change::AtStart),
    choice!("appendfsync", persistence.appendfsync, APPENDFSYNC),
    flag!("no-appendfsync-on-rewrite", persistence.no_appendfsync_on_rewrite),
    int!("auto-aof-rewrite-percentage", persistence.auto_aof_rewrite_percentage, 0, I32_MAX),
    bytes!("auto-aof-rewrite-min-size", persistence.auto_aof_rewrite_min_size, 0, SIGNED_MAX),
    flag!("aof-load-truncated", persistence.aof_load_truncated),
    flag!("aof-use-rdb-preamble", persistence.aof_use_rdb_preamble),
    flag!("aof-timestamp-enabled", persistence.aof_timestamp_enabled),
    choice!("load-unsupported", persistence.load_unsupported, LOAD_UNSUPPORTED),
    // Cluster
    flag!("cluster-enabled", cluster.is_enabled).change(Change::AtStart),
    CLUSTER_CONFIG_FILE.change(Change::AtStart),
    int!("cluster-port", cluster.port, 0, 65_535).change(Change::AtStart),
    int!("cluster-node-timeout", cluster.node_timeout_ms, 0, i64::MAX),
    flag!("cluster-require-full-coverage", cluster.require_full_coverage),
    flag!("cluster-allow-reads-when-down", cluster.allow_reads_when_down),
    flag!("cluster-allow-pubsubshard-when-down", cluster.allow_pubsubshard_when_down),
    CLUSTER_ANNOUNCE_IP,
    int!("cluster-announce-port", cluster.announce_port, 0, 65_535),
    int!("cluster-announce-tls-port", cluster.announce_tls_port, 0, 65_535),
    int!("cluster-announce-bus-port", cluster.announce_bus_port, 0, 65_535),
    CLUSTER_ANNOUNCE_HOSTNAME,
    CLUSTER_ANNOUNCE_HUMAN_NODENAME,
    choice!("cluster-preferred-endpoint-type", cluster.preferred_endpoint, PREFERRED_ENDPOINT),
    int!("cluster-slot-migration-log-max-len", cluster.slot_migration_log_max_len, 0, 1000),
    CLUSTER_SECRET.change(Change::AtStart),
    // Accepted with the one value that is supported
    kept!(no "daemonize", "running in the background is the service manager's job").change(Change::AtStart),
    kept!(no "activedefrag", "Active defragmentation cannot be enabled: this server does not have it"),
    // Accepted without effect
    kept!(int "io-threads", "1", 1, 128, NO_IO_THREADS).change(Change::AtStart),
    kept!(yes_no "io-threads-do-reads", "no", NO_IO_THREADS).change(Change::AtStart),
    kept!(int "maxmemory-eviction-tenacity", "10", 0, 100, "the work of eviction per command has a fixed bound"),
    kept!(yes_no "lazyfree-lazy-eviction", "no", ALWAYS_LAZY),
    kept!(yes_no "lazyfree-lazy-expire", "no", ALWAYS_LAZY),
    kept!(yes_no "lazyfree-lazy-server-del", "no", ALWAYS_LAZY),
    kept!(yes_no "lazyfree-lazy-user-del", "no", ALWAYS_LAZY),
    kept!(yes_no "lazyfree-lazy-user-flush", "no", ALWAYS_LAZY),
    kept!(yes_no "replica-lazy-flush", "no", NO_REPLICATION).alias("slave-lazy-flush"),
    kept!(yes_no "activerehashing", "yes", NEVER_REHASHES),
    kept!(yes_no "dynamic-hz", "yes", "background work follows what there is to do"),
    kept!(int "list-compress-depth", "0", 0, I32_MAX, "list nodes are never compressed"),
    kept!(bytes "active-defrag-ignore-bytes", "104857600", 1, SIGNED_MAX, "active defragmentation is not supported"),
    kept!(int "active-defrag-threshold-lower", "10", 0, 1000, "active defragmentation is not supported"),
    kept!(int "active-defrag-threshold-upper", "100", 0, 1000, "active defragmentation is not supported"),
    kept!(int "active-defrag-cycle-min", "1", 1, 99, "active defragmentation is not supported"),
    kept!(int "active-defrag-cycle-max", "25", 1, 99, "active defragmentation is not supported"),
    kept!(int "active-defrag-max-scan-fields", "1000", 1, i64::MAX, "active defragmentation is not supported"),
    kept!(yes_no "jemalloc-bg-thread", "yes", OWN_ALLOCATOR),
    kept!(one_of "sanitize-dump-payload", "no", &["no", "yes", "clients"], "payloads are always checked"),
    kept!(int "busy-reply-threshold", "5000", 0, i64::MAX, NO_SCRIPTS).alias("lua-time-limit"),
    kept!(yes_no "set-proc-title", "yes", COSMETIC).change(Change::AtStart),
    kept!("proc-title-template", "{title} {listen-addr} {server-mode}", COSMETIC, check::title_template),
    kept!(one_of "supervised", "no", &["no", "auto", "upstart", "systemd"], OS_DOES).change(Change::AtStart),
    kept!(yes_no "always-show-logo", "no", COSMETIC).change(Change::AtStart),
    kept!(yes_no "crash-log-enabled", "yes", OS_DOES),
    kept!(yes_no "crash-memcheck-enabled", "yes", OS_DOES),
    kept!(yes_no "disable-thp", "yes", OS_DOES).change(Change::AtStart),
    kept!(one_of "oom-score-adj", "no", &["no", "yes", "relative", "absolute"], OS_DOES),
    OOM_SCORE_ADJ_VALUES,
    kept!(text "server_cpulist", "", OS_DOES).change(Change::AtStart),
    kept!(text "bio_cpulist", "", OS_DOES).change(Change::AtStart),
    kept!(text "aof_rewrite_cpulist", "", OS_DOES).change(Change::AtStart),
    kept!(text "bgsave_cpulist", "", OS_DOES).change(Change::AtStart),
    kept!(text "ignore-warnings", "", COSMETIC),
    kept!(yes_no "syslog-enabled", "no", OS_DOES).change(Change::AtStart),
    kept!(text "syslog-ident", "redis", OS_DOES).change(Change::AtStart),
    kept!(text "syslog-facility", "local0", OS_DOES).change(Change::AtStart),
    kept!(text "locale-collate", "", "SORT ALPHA compares bytes"),
    kept!(text "bind-source-addr", "", NO_REPLICATION),
    kept!(int "socket-mark-id", "0", 0, U32_MAX, OS_DOES).change(Change::AtStart),
    kept!("shutdown-on-sigint", "default", ALWAYS_SYNCED, check::stop_words),
    kept!("shutdown-on-sigterm", "default", ALWAYS_SYNCED, check::stop_words),
    kept!(int "shutdown-timeout", "10", 0, I32_MAX, NO_REPLICATION),
    kept!(one_of "enable-module-command", "no", &["no", "yes", "local"], "modules are not supported")
        .change(Change::AtStart),
    kept!(text "tls-protocols", "", RUSTLS),
    kept!(text "tls-ciphers", "", RUSTLS),
    kept!(text "tls-ciphersuites", "", RUSTLS),
    kept!(yes_no "tls-prefer-server-ciphers", "no", RUSTLS),
    kept!(yes_no "tls-session-caching", "yes", RUSTLS),
    kept!(int "tls-session-cache-size", "20480", 0, I32_MAX, RUSTLS),
    kept!(int "tls-session-cache-timeout", "300", 0, I32_MAX, RUSTLS),
    kept!(text "tls-dh-params-file", "", RUSTLS),
    kept!(only "tls-ca-cert-dir", "", "use 'tls-ca-cert-file'"),
    kept!(only "tls-key-file-pass", "", "encrypted keys are not supported"),
    kept!(text "tls-client-cert-file", "", NO_REPLICATION),
    kept!(text "tls-client-key-file", "", NO_REPLICATION),
    kept!(only "tls-client-key-file-pass", "", "encrypted keys are not supported"),
    kept!(yes_no "tls-replication", "no", NO_REPLICATION),
    kept!(no "tls-cluster", "links between nodes are authenticated by 'cluster-secret', and have no TLS yet"),
    kept!(yes_no "rdb-del-sync-files", "no", NO_REPLICATION),
    kept!(yes_no "rdb-save-incremental-fsync", "yes", ALWAYS_SYNCED),
    kept!(yes_no "aof-rewrite-incremental-fsync", "yes", ALWAYS_SYNCED),
    kept!(yes_no "aof-disable-auto-gc", "no", "files of the log that are not needed any more are always removed"),
    kept!(text "masterauth", "", NO_REPLICATION),
    kept!(text "masteruser", "", NO_REPLICATION),
    kept!(only "replicaof", "", NO_REPLICATION).alias("slaveof").change(Change::AtStart),
    kept!(yes_no "replica-serve-stale-data", "yes", NO_REPLICATION).alias("slave-serve-stale-data"),
    kept!(yes_no "replica-read-only", "yes", NO_REPLICATION).alias("slave-read-only"),
    kept!(yes_no "replica-ignore-maxmemory", "yes", NO_REPLICATION).alias("slave-ignore-maxmemory"),
    kept!(yes_no "replica-ignore-disk-write-errors", "no", NO_REPLICATION),
    kept!(int "replica-priority", "100", 0, I32_MAX, NO_REPLICATION).alias("slave-priority"),
    kept!(yes_no "replica-announced", "yes", NO_REPLICATION),
    kept!(text "replica-announce-ip", "", NO_REPLICATION).alias("slave-announce-ip"),
    kept!(int "replica-announce-port", "0", 0, 65_535, NO_REPLICATION).alias("slave-announce-port"),
    kept!(int "min-replicas-to-write", "0", 0, I32_MAX, NO_REPLICATION).alias("min-slaves-to-write"),
    kept!(int "min-replicas-max-lag", "10", 0, I32_MAX, NO_REPLICATION).alias("min-slaves-max-lag"),
    kept!(yes_no "repl-diskless-sync", "yes", NO_REPLICATION),
    kept!(int "repl-diskless-sync-delay", "5", 0, I32_MAX, NO_REPLICATION),
    kept!(int "repl-diskless-sync-max-replicas", "0", 0, I32_MAX, NO_REPLICATION),
    kept!(one_of "repl-diskless-load", "disabled", &["disabled", "on-empty-db", "swapdb"], NO_REPLICATION),
    kept!(yes_no "repl-disable-tcp-nodelay", "no", NO_REPLICATION),
    kept!(int "repl-ping-replica-period", "10", 1, I32_MAX, NO_REPLICATION).alias("repl-ping-slave-period"),
    kept!(int "repl-timeout", "60", 1, I32_MAX, NO_REPLICATION),
    kept!("repl-backlog-size", "1048576", NO_REPLICATION, |text| {
        let bytes = parse_size::<u64>(text, 1, SIGNED_MAX)?;
        Ok(bytes.max(BACKLOG_BYTES_MIN).to_string().into())
    }),
    kept!(int "repl-backlog-ttl", "3600", 0, i64::MAX, NO_REPLICATION),
    kept!(one_of "propagation-error-behavior", "ignore", &["ignore", "panic", "panic-on-replicas"], NO_REPLICATION),
    kept!(yes_no "cluster-allow-replica-migration", "yes", NO_CLUSTER_REPLICAS),
    kept!(int "cluster-migration-barrier", "1", 0, I32_MAX, NO_CLUSTER_REPLICAS),
    kept!(int "cluster-replica-validity-factor", "10", 0, I32_MAX, NO_CLUSTER_REPLICAS)
        .alias("cluster-slave-validity-factor"),
    kept!(yes_no "cluster-replica-no-failover", "no", NO_CLUSTER_REPLICAS).alias("cluster-slave-no-failover"),
    kept!(int "cluster-manual-failover-timeout", "5000", 1, I32_MAX, NO_CLUSTER_REPLICAS),
    kept!(bytes "cluster-link-sendbuf-limit", "0", 0, u64::MAX, "what waits in a link has a fixed bound"),
    kept!(int "cluster-ping-interval", "1000", 1, I32_MAX, CONSENSUS_DECIDES),
    kept!(int "cluster-blacklist-ttl", "60", 0, I32_MAX, CONSENSUS_DECIDES),
    kept!(only "aclfile", "", NO_ACL_USERS).change(Change::AtStart),
    kept!(one_of "acl-pubsub-default", "resetchannels", &["allchannels", "resetchannels"], NO_ACL_USERS),
    kept!(int "acllog-max-len", "128", 0, i64::MAX, NO_ACL_USERS),
    kept!(bytes "stream-node-max-bytes", "4096", 0, SIGNED_MAX, NO_STREAMS),
    kept!(int "stream-node-max-entries", "100", 0, i64::MAX, NO_STREAMS),
];

/// Directives of Redis's files that are no parameters and have no counterpart yet, with what is missing.
pub(super) const UNSUPPORTED: &[(&str, &str)] = &[
    ("user", NO_ACL_USERS),
    ("rename-command", "renaming commands is not supported"),
    ("loadmodule", "modules are not supported"),
    ("sentinel", "sentinel mode is not supported"),
];

/// The parameter with this name or former name, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Param> {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    PARAMS.iter().find(|param| is(param.name) || param.alias.is_some_and(is))
}

/// Addresses to listen on that are accepted, as in Redis.
const BIND_MAX: usize = 16;

const BIND: Param = row(
    "bind",
    |c| c.bind.join(" ").into(),
    Set::Words(|c, words| {
        if words.len() > BIND_MAX {
            return Err("Too many bind addresses specified.".into());
        }
        let words = words.iter().map(|word| parse_text(word).map(Option::unwrap_or_default));
        let words = words.collect::<Result<Vec<_>, _>>()?;
        c.bind = words.into_iter().filter(|word| !word.is_empty()).collect();
        Ok(())
    }),
);

const PREFERRED_ENDPOINT: &[(&str, PreferredEndpoint)] = &[
    ("ip", PreferredEndpoint::Ip),
    ("hostname", PreferredEndpoint::Hostname),
    ("unknown-endpoint", PreferredEndpoint::Unknown),
];

const CLUSTER_CONFIG_FILE: Param = row(
    "cluster-config-file",
    |c| c.cluster.config_file.clone().into(),
    Set::Word(|c, text| {
        c.cluster.config_file = file_name(text, "cluster-config-file")?;
        Ok(())
    }),
);

const CLUSTER_ANNOUNCE_IP: Param = row(
    "cluster-announce-ip",
    |c| c.cluster.announce_ip.clone().into(),
    Set::Word(|c, text| {
        c.cluster.announce_ip = check::announced_word(text, "cluster-announce-ip")?;
        Ok(())
    }),
);

const CLUSTER_ANNOUNCE_HOSTNAME: Param = row(
    "cluster-announce-hostname",
    |c| c.cluster.announce_hostname.clone().into(),
    Set::Word(|c, text| {
        c.cluster.announce_hostname = check::hostname(text)?;
        Ok(())
    }),
);

const CLUSTER_ANNOUNCE_HUMAN_NODENAME: Param = row(
    "cluster-announce-human-nodename",
    |c| c.cluster.announce_human_nodename.clone().into(),
    Set::Word(|c, text| {
        c.cluster.announce_human_nodename = check::announced_word(text, "cluster-announce-human-nodename")?;
        Ok(())
    }),
);

const CLUSTER_SECRET: Param = row(
    "cluster-secret",
    |c| c.cluster.secret.0.clone(),
    Set::Word(|c, text| {
        c.cluster.secret.0 = text.to_vec();
        Ok(())
    }),
);

/// In the order in which the error for an unknown one lists them.
const APPENDFSYNC: &[(&str, AppendFsync)] =
    &[("everysec", AppendFsync::EverySec), ("always", AppendFsync::Always), ("no", AppendFsync::No)];

const SAVE: Param = {
    let mut param = row(
        "save",
        |c| {
            let points = c.persistence.save.iter();
            points
                .map(|point| format!("{} {}", point.seconds, point.changes))
                .collect::<Vec<_>>()
                .join(" ")
                .into()
        },
        Set::Words(|c, words| {
            let is_none = words.is_empty() || words == [b""];
            c.persistence.save = if is_none { Vec::new() } else { check::save_points(words)? };
            Ok(())
        }),
    );
    param.words_per_line = 2;
    param
};

const APPENDFILENAME: Param = row(
    "appendfilename",
    |c| c.persistence.appendfilename.clone().into(),
    Set::Word(|c, text| {
        c.persistence.appendfilename = file_name(text, "appendfilename")?;
        Ok(())
    }),
);

const APPENDDIRNAME: Param = row(
    "appenddirname",
    |c| c.persistence.appenddirname.clone().into(),
    Set::Word(|c, text| {
        c.persistence.appenddirname = file_name(text, "appenddirname")?;
        Ok(())
    }),
);

fn file_name(text: &[u8], parameter: &str) -> Result<String, Reason> {
    match parse_text(text)? {
        None => Err(format!("{parameter} can't be empty").into()),
        Some(name) if name.contains('/') => Err(format!("{parameter} can't be a path, just a name").into()),
        Some(name) => Ok(name),
    }
}

const OOM_SCORE_ADJ_VALUES: Param = {
    const DEFAULT: &str = "0 200 800";
    let mut param = row(
        "oom-score-adj-values",
        |c| c.kept.get("oom-score-adj-values").cloned().unwrap_or_else(|| DEFAULT.into()),
        Set::Words(|c, words| {
            keep(c, "oom-score-adj-values", check::oom_scores(words)?, DEFAULT);
            Ok(())
        }),
    );
    param.note = OS_DOES;
    param
};

const UNIXSOCKETPERM: Param = row(
    "unixsocketperm",
    |c| format!("{:o}", c.unixsocketperm).into(),
    Set::Word(|c, text| {
        c.unixsocketperm = parse_octal(text)?;
        Ok(())
    }),
);

const REQUIREPASS: Param = row(
    "requirepass",
    |c| c.requirepass.clone(),
    Set::Word(|c, text| {
        c.requirepass = text.to_vec();
        Ok(())
    }),
);

const ADMIN_BIND: Param = row(
    "admin-bind",
    |c| c.admin_bind.clone().into(),
    Set::Word(|c, text| {
        c.admin_bind = parse_text(text)?.ok_or("argument must be an address")?;
        Ok(())
    }),
);

const DIR: Param = row(
    "dir",
    |c| c.dir.clone().into(),
    Set::Word(|c, text| {
        let dir = parse_text(text)?.ok_or("argument must be a directory")?;
        if !Path::new(&dir).is_dir() {
            return Err("Changing directory: No such file or directory".into());
        }
        c.dir = dir;
        Ok(())
    }),
);

const DBFILENAME: Param = row(
    "dbfilename",
    |c| c.dbfilename.clone().into(),
    Set::Word(|c, text| {
        let name = parse_text(text)?.ok_or("argument must be a file name")?;
        if name.contains('/') {
            return Err("dbfilename can't be a path, just a filename".into());
        }
        c.dbfilename = name;
        Ok(())
    }),
);

/// Rounds of background work per second at most; a larger number is taken as this one, as in Redis.
const HZ_MAX: u32 = 500;

const HZ: Param = row(
    "hz",
    |c| c.hz.to_string().into(),
    Set::Word(|c, text| {
        c.hz = parse_int::<u32>(text, 0, I32_MAX)?.clamp(1, HZ_MAX);
        Ok(())
    }),
);

const MAXMEMORY_CLIENTS: Param = row(
    "maxmemory-clients",
    |c| match c.maxmemory_clients {
        ClientMemory::Bytes(bytes) => bytes.to_string().into(),
        ClientMemory::Percent(percent) => format!("{percent}%").into(),
    },
    Set::Word(|c, text| {
        c.maxmemory_clients = match text.strip_suffix(b"%") {
            Some(percent) => {
                let percent = size(percent).ok_or("argument must be a memory or percent value")?;
                let percent = u8::try_from(percent).ok().filter(|percent| *percent <= 100);
                ClientMemory::Percent(percent.ok_or("percentage argument must be less or equal to 100")?)
            }
            None => {
                let bytes = size(text).ok_or("argument must be a memory or percent value")?;
                // In Redis a percentage is a negative number of bytes, which so many are as well.
                let bytes = Some(bytes).filter(|bytes| *bytes <= SIGNED_MAX);
                ClientMemory::Bytes(bytes.ok_or("percentage argument must be less or equal to 100")?)
            }
        };
        Ok(())
    }),
);

const NOTIFY: Param = row(
    "notify-keyspace-events",
    |c| notify::render(c.notify_keyspace_events).into(),
    Set::Word(|c, text| {
        c.notify_keyspace_events =
            notify::parse(text).ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
        Ok(())
    }),
);

const PERCENTILES: Param = row(
    "latency-tracking-info-percentiles",
    |c| {
        let texts: Vec<_> = c.latency_tracking_info_percentiles.iter().map(f64::to_string).collect();
        texts.join(" ").into()
    },
    Set::Words(|c, words| {
        c.latency_tracking_info_percentiles = check::percentiles(words)?;
        Ok(())
    }),
);

const OUTPUT_LIMITS: Param = {
    let mut param = row(
        "client-output-buffer-limit",
        |c| {
            let limits = &c.client_output_buffer_limit;
            let classes = [("normal", limits.normal), ("slave", limits.replica), ("pubsub", limits.pubsub)];
            let texts = classes.map(|(class, limit)| {
                format!("{class} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
            });
            texts.join(" ").into()
        },
        Set::Words(|c, words| {
            if !words.len().is_multiple_of(4) {
                return Err("Wrong number of arguments in buffer limit configuration.".into());
            }
            for group in words.chunks_exact(4) {
                let limits = &mut c.client_output_buffer_limit;
                let limit = match group[0].to_ascii_lowercase().as_slice() {
                    b"normal" => &mut limits.normal,
                    b"slave" | b"replica" => &mut limits.replica,
                    b"pubsub" => &mut limits.pubsub,
                    _ => return Err("Invalid client class specified in buffer limit configuration.".into()),
                };
                *limit = output_limit(&group[1..])
                    .ok_or("Error in hard, soft or soft_seconds setting in buffer limit configuration.")?;
            }
            Ok(())
        }),
    );
    param.words_per_line = 4;
    param
};

fn output_limit(words: &[Vec<u8>]) -> Option<OutputLimit> {
    let [hard, soft, seconds] = words else { return None };
    let soft_seconds = u64::try_from(towline_store::number::parse_i64(seconds)?).ok()?;
    Some(OutputLimit { hard_bytes: size(hard)?, soft_bytes: size(soft)?, soft_seconds })
}
