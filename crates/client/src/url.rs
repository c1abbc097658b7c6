//! Connection URLs, as users of Redis write them.
//!
//! Owns the grammar and its errors. Does **not** own what the options mean ([`ConnectOptions`]).
//!
//! ```text
//! redis://[[user]:password@]host[:port][/database][?option=value&...]
//! rediss://...[#insecure]                                              with TLS
//! valkey://..., valkeys://...                                          the same
//! redis+unix://path[?option=value&...], valkey+unix://..., unix://...  a Unix socket
//! redis://host[:port],host[:port]/?cluster=true                        a cluster, from one or more of its nodes
//! redis-cluster://..., rediss-cluster://..., valkey-cluster://...      the same, also with a `+` for the `-`
//! redis-sentinel://host[:port],host[:port]/name[/database]             a primary that these sentinels watch
//! redis-sentinel://host[:port][/database]?sentinelServiceName=name[&node=host:port...]   the same, as fred writes it
//! redis://host[:port],host[:port]/?replicated=true                     the primary among these servers
//! ```
//!
//! Characters with a meaning (`@ : / ? # % &`) are written as `%XX` inside of a part; a `+` is a `+`. No error shows a
//! part's content: a password with such a character may end up in any of them.

use crate::cluster::ClusterOptions;
use crate::options::ConnectOptions;
use crate::primary_options::{ReplicatedOptions, SentinelOptions};
use crate::transport::{Target, TlsOptions};
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::time::Duration;
use towline_client_proto::maintenance::MaintenanceMode;
use towline_client_proto::routing::{Lanes, ReadFrom};
use towline_client_proto::{Credentials, Policy, ProtocolChoice};

mod sentinel;

/// Port of a server when nothing else is said.
const PORT_DEFAULT: u16 = 6379;

/// The options that a URL may have, for the error about one that it may not.
const OPTIONS: &str = "cluster, split, read_from, zone, replica_lag_max, protocol, db, user, pass, client_name, \
    command_timeout, connect_timeout, backlog, maintenance, lanes, server_name, ca_file, cert_file, key_file, replicated, and \
    with sentinels sentinelServiceName, node, sentinel_username, sentinel_password, sentinel_tls";

/// What is wrong with a URL; the caller's to mend. Shows no part of it but the name of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It does not begin with a scheme that is known.
    #[error(
        "the URL does not begin with redis://, rediss://, valkey://, valkeys://, one of these with -cluster or -sentinel, \
         redis+unix://, valkey+unix:// or unix://"
    )]
    Scheme,
    /// There is no host.
    #[error("the URL has no host")]
    NoHost,
    /// The host has an opening bracket and no IPv6 address up to the closing one.
    #[error("the URL's host has a bracket, but is no IPv6 address such as [::1]")]
    Ipv6,
    /// The host has colons: an IPv6 address without brackets, or a part of a password.
    #[error("the URL's host has a colon too many; an IPv6 address needs brackets: [::1]")]
    Colons,
    /// The port is not from 1 to 65535.
    #[error("the URL's port is not a number from 1 to 65535")]
    Port,
    /// The database is not a number.
    #[error("the URL's database is not a number from 0 to 4294967295")]
    Database,
    /// The path and the option `db` name different databases.
    #[error("the URL's path and its option `db` name different databases")]
    TwoDatabases,
    /// An `@` behind the host: most likely the password has a `/`, `?` or `#`.
    #[error(
        "the URL has an '@' behind the host; write '/', '?', '#', '@' and '%' in a user or password as %XX"
    )]
    StrayAt,
    /// A user without a password; which of the two it is cannot be told.
    #[error(
        "the URL has a user without a password; write user:password@, or :password@ for the default user"
    )]
    UserOnly,
    /// User and password are given twice, or the option `user` without `pass`.
    #[error("the URL's options `user` and `pass` go together, and not with user:password@")]
    Credentials,
    /// The option `sentinel_username` without `sentinel_password`.
    #[error("the URL's option `sentinel_username` needs `sentinel_password`")]
    SentinelCredentials,
    /// A `%` that is not followed by two hexadecimal digits, or bytes that are no UTF-8.
    #[error("the URL's {part} has a '%' without two hexadecimal digits, or is not UTF-8")]
    Encoding {
        /// The part of the URL.
        part: &'static str,
    },
    /// Something else than `#insecure`, or that without TLS.
    #[error("the URL may have #insecure at its end, with TLS, and nothing else after a '#'")]
    Fragment,
    /// Several hosts, or an option of clusters, without a cluster.
    #[error(
        "the URL has what only a cluster has: several hosts, or one of the options `split`, `read_from`, `zone` and \
         `replica_lag_max`; add cluster=true, or begin it with redis-sentinel:// if the hosts are sentinels"
    )]
    NoCluster,
    /// An option about sentinels in a URL that is not about them.
    #[error(
        "the URL's option `{name}` is about sentinels; begin the URL with redis-sentinel:// or rediss-sentinel://"
    )]
    NoSentinel {
        /// The option.
        name: &'static str,
    },
    /// The name of the primary is missing.
    #[error(
        "the URL does not say which primary the sentinels shall be asked for; write redis-sentinel://host:26379/name"
    )]
    NoPrimaryName,
    /// The servers are found in more than one way.
    #[error(
        "the URL says in more than one way where the servers are: by sentinels, `cluster` or `replicated`"
    )]
    TwoTopologies,
    /// There is no path to a socket.
    #[error("the URL has no path to a socket")]
    NoPath,
    /// An option that is not known.
    #[error("the URL has an option{} that is not known; there are {OPTIONS}", shown(.name.as_deref()))]
    UnknownOption {
        /// Its name, unless it looks like something else.
        name: Option<Box<str>>,
    },
    /// An option is given twice.
    #[error("the URL has the option `{name}` twice")]
    Twice {
        /// Its name.
        name: &'static str,
    },
    /// An option's value is none that it takes.
    #[error("the URL's option `{name}` is not {expected}")]
    Value {
        /// The option.
        name: &'static str,
        /// What it takes.
        expected: &'static str,
    },
    /// An option about TLS in a URL without TLS.
    #[error("the URL's option `{name}` is about TLS, which rediss:// or valkeys:// has")]
    TlsOption {
        /// The option.
        name: &'static str,
    },
    /// One of `cert_file` and `key_file` without the other.
    #[error("the URL's options `cert_file` and `key_file` go together")]
    HalfIdentity,
}

fn shown(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" `{name}`"))
}

impl FromStr for ConnectOptions {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = url.split_once("://").ok_or(UrlError::Scheme)?;
        let scheme = scheme.to_ascii_lowercase();
        let (scheme, kind) = match scheme.rsplit_once(['-', '+']) {
            Some((plain, "cluster")) => (plain, Kind::Cluster),
            Some((plain, "sentinel")) => (plain, Kind::Sentinel),
            _ => (&*scheme, Kind::Server),
        };
        match scheme {
            "redis" | "valkey" => tcp(rest, false, kind),
            "rediss" | "valkeys" => tcp(rest, true, kind),
            _ if kind != Kind::Server => Err(UrlError::Scheme),
            "redis+unix" | "valkey+unix" | "unix" => unix(rest),
            _ => Err(UrlError::Scheme),
        }
    }
}

/// What the scheme says about the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Server,
    Cluster,
    Sentinel,
}

fn tcp(rest: &str, is_tls: bool, kind: Kind) -> Result<ConnectOptions, UrlError> {
    let authority_len = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(authority_len);
    if behind.contains('@') {
        return Err(UrlError::StrayAt);
    }
    let (behind, fragment) = split(behind, '#');
    let (path, query) = split(behind, '?');
    let is_insecure = match fragment {
        None => false,
        Some("insecure") if is_tls => true,
        Some(_) => return Err(UrlError::Fragment),
    };
    let (user_info, address) = match authority.rsplit_once('@') {
        Some((user_info, address)) => (Some(user_info), address),
        None => (None, authority),
    };
    let query = Query::parse(query)?;
    let port_default = if kind == Kind::Sentinel { sentinel::PORT_DEFAULT } else { PORT_DEFAULT };
    let mut targets = Vec::new();
    for address in address.split(',').chain(query.sentinel.nodes.iter().copied()) {
        let (host, port) = host_and_port(address, port_default)?;
        targets.push(Target::tcp(host, port));
    }
    let mut targets = targets.into_iter();
    let mut options = ConnectOptions::new(targets.next().ok_or(UrlError::NoHost)?);
    let path = path.strip_prefix('/').filter(|path| !path.is_empty());
    let database = if kind == Kind::Sentinel {
        let (sentinel, database) = query.sentinel.options(path, is_tls)?;
        if query.cluster.or(query.replicated).is_some() || query.is_of_cluster() {
            return Err(UrlError::TwoTopologies);
        }
        options = options.sentinel(targets.fold(sentinel, SentinelOptions::sentinel));
        database
    } else {
        query.sentinel.none()?;
        options = query.several(options, kind == Kind::Cluster, targets)?;
        path
    };
    options = query.credentials(options, user_info.map(credentials).transpose()?.flatten())?;
    options = query.database(options, database.map(number).transpose()?)?;
    if is_tls {
        let tls = TlsOptions::new().danger_accept_any_certificate(is_insecure);
        options = options.tls(query.tls(tls)?);
    } else {
        query.no_tls()?;
    }
    query.rest(options)
}

fn unix(rest: &str) -> Result<ConnectOptions, UrlError> {
    let (path, query) = split(rest, '?');
    let path = text("path", path)?;
    if path.is_empty() {
        return Err(UrlError::NoPath);
    }
    let query = Query::parse(query)?;
    query.no_tls()?;
    query.sentinel.none()?;
    let options = query.several(ConnectOptions::new(Target::unix(path)), false, std::iter::empty())?;
    let options = query.credentials(options, None)?;
    query.rest(query.database(options, None)?)
}

/// What is before the mark, and what is behind it if it is there.
fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

fn host_and_port(address: &str, port_default: u16) -> Result<(String, u16), UrlError> {
    let (host, port) = if let Some(inner) = address.strip_prefix('[') {
        let (inner, behind) = inner.split_once(']').ok_or(UrlError::Ipv6)?;
        // A zone (fe80::1%eth0) is for the resolver.
        let plain = inner.split_once('%').map_or(inner, |(plain, _)| plain);
        plain.parse::<Ipv6Addr>().map_err(|_| UrlError::Ipv6)?;
        let port = match behind {
            "" => None,
            behind => Some(behind.strip_prefix(':').ok_or(UrlError::Ipv6)?),
        };
        (inner.to_owned(), port)
    } else {
        let (host, port) = split(address, ':');
        if port.is_some_and(|port| port.contains(':')) {
            return Err(UrlError::Colons);
        }
        (text("host", host)?, port)
    };
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    let port = match port {
        None | Some("") => port_default,
        Some(digits) => {
            // `parse` takes a sign, which is no digit.
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|port| is_plain && *port != 0).ok_or(UrlError::Port)?
        }
    };
    Ok((host, port))
}

fn credentials(user_info: &str) -> Result<Option<Credentials>, UrlError> {
    match user_info.split_once(':') {
        None if user_info.is_empty() => Ok(None),
        None => Err(UrlError::UserOnly),
        Some(("", "")) => Ok(None),
        Some((user, password)) => Ok(Some(authenticated(&text("user", user)?, bytes("password", password)?))),
    }
}

fn authenticated(user: &str, password: Vec<u8>) -> Credentials {
    if user.is_empty() { Credentials::password(password) } else { Credentials::user(user, password) }
}

fn number(digits: &str) -> Result<u32, UrlError> {
    // `parse` takes a sign, which is no digit.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain).ok_or(UrlError::Database)
}

/// Undoes percent-encoding.
fn bytes(part: &'static str, encoded: &str) -> Result<Vec<u8>, UrlError> {
    let mut out = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'%' => match (rest.next().and_then(hex), rest.next().and_then(hex)) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return Err(UrlError::Encoding { part }),
            },
            byte => byte,
        });
    }
    Ok(out)
}

fn text(part: &'static str, encoded: &str) -> Result<String, UrlError> {
    String::from_utf8(bytes(part, encoded)?).map_err(|_| UrlError::Encoding { part })
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// The options after the `?`, each at most once, still encoded.
#[derive(Default)]
struct Query<'a> {
    cluster: Option<&'a str>,
    split: Option<&'a str>,
    read_from: Option<&'a str>,
    zone: Option<&'a str>,
    replica_lag_max: Option<&'a str>,
    protocol: Option<&'a str>,
    db: Option<&'a str>,
    user: Option<&'a str>,
    pass: Option<&'a str>,
    client_name: Option<&'a str>,
    command_timeout: Option<&'a str>,
    connect_timeout: Option<&'a str>,
    backlog: Option<&'a str>,
    maintenance: Option<&'a str>,
    lanes: Option<&'a str>,
    server_name: Option<&'a str>,
    ca_file: Option<&'a str>,
    cert_file: Option<&'a str>,
    key_file: Option<&'a str>,
    replicated: Option<&'a str>,
    sentinel: sentinel::Part<'a>,
}

impl<'a> Query<'a> {
    fn parse(query: Option<&'a str>) -> Result<Self, UrlError> {
        let mut out = Self::default();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = split(pair, '=');
            let (name, place) = match key {
                "cluster" => ("cluster", &mut out.cluster),
                "split" => ("split", &mut out.split),
                "read_from" => ("read_from", &mut out.read_from),
                "zone" => ("zone", &mut out.zone),
                "replica_lag_max" => ("replica_lag_max", &mut out.replica_lag_max),
                "protocol" => ("protocol", &mut out.protocol),
                "db" => ("db", &mut out.db),
                "user" => ("user", &mut out.user),
                "pass" => ("pass", &mut out.pass),
                "client_name" => ("client_name", &mut out.client_name),
                "command_timeout" => ("command_timeout", &mut out.command_timeout),
                "connect_timeout" => ("connect_timeout", &mut out.connect_timeout),
                "backlog" => ("backlog", &mut out.backlog),
                "maintenance" => ("maintenance", &mut out.maintenance),
                "lanes" => ("lanes", &mut out.lanes),
                "server_name" => ("server_name", &mut out.server_name),
                "ca_file" => ("ca_file", &mut out.ca_file),
                "cert_file" => ("cert_file", &mut out.cert_file),
                "key_file" => ("key_file", &mut out.key_file),
                "replicated" => ("replicated", &mut out.replicated),
                "node" => {
                    out.sentinel.nodes.push(value.unwrap_or_default());
                    continue;
                }
                "sentinelServiceName" => ("sentinelServiceName", &mut out.sentinel.service),
                "sentinel_username" | "sentinelUsername" => ("sentinel_username", &mut out.sentinel.username),
                "sentinel_password" | "sentinelPassword" => ("sentinel_password", &mut out.sentinel.password),
                "sentinel_tls" => ("sentinel_tls", &mut out.sentinel.tls),
                other => {
                    // A password's tail is not a word before an equals sign.
                    let is_word = other.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                    let name = (is_word && value.is_some()).then(|| other.into());
                    return Err(UrlError::UnknownOption { name });
                }
            };
            if place.replace(value.unwrap_or_default()).is_some() {
                return Err(UrlError::Twice { name });
            }
        }
        Ok(out)
    }

    fn credentials(
        &self,
        options: ConnectOptions,
        of_authority: Option<Credentials>,
    ) -> Result<ConnectOptions, UrlError> {
        let of_query = match (self.user, self.pass) {
            (None, None) => None,
            (Some(_), None) => return Err(UrlError::Credentials),
            (user, Some(pass)) => {
                Some(authenticated(&text("user", user.unwrap_or_default())?, bytes("password", pass)?))
            }
        };
        match (of_authority, of_query) {
            (Some(_), Some(_)) => Err(UrlError::Credentials),
            (Some(credentials), None) | (None, Some(credentials)) => Ok(options.credentials(credentials)),
            (None, None) => Ok(options),
        }
    }

    fn database(&self, options: ConnectOptions, path: Option<u32>) -> Result<ConnectOptions, UrlError> {
        let of_query = self.db.map(number).transpose()?;
        match (path, of_query) {
            (Some(path), Some(query)) if path != query => Err(UrlError::TwoDatabases),
            (path, query) => Ok(options.database(path.or(query).unwrap_or_default())),
        }
    }

    fn several(
        &self,
        options: ConnectOptions,
        is_cluster: bool,
        further: impl ExactSizeIterator<Item = Target>,
    ) -> Result<ConnectOptions, UrlError> {
        let is_cluster = flag("cluster", self.cluster, is_cluster)?;
        let is_replicated = flag("replicated", self.replicated, false)?;
        let is_split = flag("split", self.split, true)?;
        if is_replicated && (is_cluster || self.is_of_cluster()) {
            return Err(UrlError::TwoTopologies);
        }
        if is_replicated {
            return Ok(options.replicated(further.fold(ReplicatedOptions::new(), ReplicatedOptions::server)));
        }
        if !is_cluster {
            let is_plain = further.len() == 0 && !self.is_of_cluster();
            return if is_plain { Ok(options) } else { Err(UrlError::NoCluster) };
        }
        let cluster = further.fold(ClusterOptions::new(), ClusterOptions::seed);
        Ok(options.cluster(self.reads(cluster.split_by_slot(is_split))?))
    }

    /// Whether it has an option that only clusters have.
    fn is_of_cluster(&self) -> bool {
        [self.split, self.read_from, self.zone, self.replica_lag_max].iter().any(Option::is_some)
    }

    /// Who answers reads.
    fn reads(&self, mut cluster: ClusterOptions) -> Result<ClusterOptions, UrlError> {
        if let Some(value) = self.read_from {
            let policy = ReadFrom::named(value).ok_or(UrlError::Value {
                name: "read_from",
                expected: "primary, prefer-replica, replica, any, nearest or in-zone",
            })?;
            cluster = cluster.read_from(policy);
        }
        if let Some(zone) = self.zone {
            cluster = cluster.zone(text("option `zone`", zone)?);
        }
        if let Some(value) = self.replica_lag_max {
            let bad = |_| UrlError::Value { name: "replica_lag_max", expected: "a number of bytes" };
            cluster = cluster.replica_lag_max(value.parse::<u64>().map_err(bad)?);
        }
        Ok(cluster)
    }

    fn tls(&self, mut tls: TlsOptions) -> Result<TlsOptions, UrlError> {
        if let Some(name) = self.server_name {
            tls = tls.server_name(text("option `server_name`", name)?);
        }
        if let Some(path) = self.ca_file {
            tls = tls.ca_file(text("option `ca_file`", path)?);
        }
        match (self.cert_file, self.key_file) {
            (None, None) => Ok(tls),
            (Some(chain), Some(key)) => {
                Ok(tls.client_files(text("option `cert_file`", chain)?, text("option `key_file`", key)?))
            }
            _ => Err(UrlError::HalfIdentity),
        }
    }

    fn no_tls(&self) -> Result<(), UrlError> {
        let options = [
            ("server_name", self.server_name),
            ("ca_file", self.ca_file),
            ("cert_file", self.cert_file),
            ("key_file", self.key_file),
        ];
        match options.into_iter().find(|(_, value)| value.is_some()) {
            Some((name, _)) => Err(UrlError::TlsOption { name }),
            None => Ok(()),
        }
    }

    fn rest(&self, mut options: ConnectOptions) -> Result<ConnectOptions, UrlError> {
        if let Some(name) = self.client_name {
            options = options.client_name(text("option `client_name`", name)?);
        }
        if let Some(value) = self.protocol {
            options = options.protocol(match value.to_ascii_lowercase().as_str() {
                "resp3" | "3" => ProtocolChoice::Resp3,
                "resp2" | "2" => ProtocolChoice::Resp2,
                "auto" => ProtocolChoice::Resp3OrResp2,
                _ => return Err(UrlError::Value { name: "protocol", expected: "resp3, resp2 or auto" }),
            });
        }
        if let Some(value) = self.backlog {
            options = options.backlog(match value {
                "queue" => Policy::Queue,
                "fail-fast" => Policy::FailFast,
                _ => return Err(UrlError::Value { name: "backlog", expected: "queue or fail-fast" }),
            });
        }
        if let Some(value) = self.lanes {
            let refused = UrlError::Value { name: "lanes", expected: "a number from 1 to 32" };
            // `parse` takes a sign, which is no digit.
            let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
            let lanes = value.parse().ok().filter(|lanes| is_plain && Lanes::new(*lanes).is_some());
            options = options.lanes(lanes.ok_or(refused)?);
        }
        if let Some(value) = self.maintenance {
            options = options.maintenance(match value {
                "disabled" => MaintenanceMode::Disabled,
                "auto" => MaintenanceMode::Auto,
                "required" => MaintenanceMode::Required,
                _ => {
                    return Err(UrlError::Value {
                        name: "maintenance",
                        expected: "disabled, auto or required",
                    });
                }
            });
        }
        if let Some(value) = self.command_timeout {
            options = options.command_timeout(duration("command_timeout", value)?);
        }
        if let Some(value) = self.connect_timeout {
            options = options.connect_timeout(duration("connect_timeout", value)?);
        }
        Ok(options)
    }
}

fn flag(name: &'static str, value: Option<&str>, default: bool) -> Result<bool, UrlError> {
    match value {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(_) => Err(UrlError::Value { name, expected: "true or false" }),
    }
}

/// A time with its unit. Without one it could be seconds, as in some clients, or milliseconds, as in others.
fn duration(name: &'static str, value: &str) -> Result<Duration, UrlError> {
    let bad =
        || UrlError::Value { name, expected: "a whole number with a unit, such as 500ms, 5s or 1m, or none" };
    if value == "none" {
        return Ok(Duration::MAX);
    }
    let digits_len = value.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = value.split_at(digits_len);
    let number: u64 = digits.parse().map_err(|_| bad())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs).ok_or_else(bad),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests;
