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
//! ```
//!
//! Characters with a meaning (`@ : / ? # % &`) are written as `%XX` inside of a part; a `+` is a `+`. No error shows a
//! part's content: a password with such a character may end up in any of them.

use crate::cluster::ClusterOptions;
use crate::options::ConnectOptions;
use crate::transport::{Target, TlsOptions};
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::time::Duration;
use towline_client_proto::maintenance::MaintenanceMode;
use towline_client_proto::{Credentials, Policy, ProtocolChoice};

/// Port of a server when nothing else is said.
const PORT_DEFAULT: u16 = 6379;

/// The options that a URL may have, for the error about one that it may not.
const OPTIONS: &str = "cluster, split, protocol, db, user, pass, client_name, command_timeout, connect_timeout, backlog, \
    maintenance, server_name, ca_file, cert_file, key_file";

/// What is wrong with a URL; the caller's to mend. Shows no part of it but the name of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It does not begin with a scheme that is known.
    #[error(
        "the URL does not begin with redis://, rediss://, valkey://, valkeys://, one of these with -cluster, redis+unix://, \
         valkey+unix:// or unix://"
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
    /// A `%` that is not followed by two hexadecimal digits, or bytes that are no UTF-8.
    #[error("the URL's {part} has a '%' without two hexadecimal digits, or is not UTF-8")]
    Encoding {
        /// The part of the URL.
        part: &'static str,
    },
    /// Something else than `#insecure`, or that without TLS.
    #[error("the URL may have #insecure at its end, with TLS, and nothing else after a '#'")]
    Fragment,
    /// Several hosts, or the option `split`, without a cluster.
    #[error("the URL has what only a cluster has: several hosts, or the option `split`; add cluster=true")]
    NoCluster,
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
        let plain = ["-cluster", "+cluster"].iter().find_map(|end| scheme.strip_suffix(end));
        let is_cluster = plain.is_some();
        let scheme = plain.unwrap_or(&scheme);
        match scheme {
            "redis" | "valkey" => tcp(rest, false, is_cluster),
            "rediss" | "valkeys" => tcp(rest, true, is_cluster),
            _ if is_cluster => Err(UrlError::Scheme),
            "redis+unix" | "valkey+unix" | "unix" => unix(rest),
            _ => Err(UrlError::Scheme),
        }
    }
}

fn tcp(rest: &str, is_tls: bool, is_cluster: bool) -> Result<ConnectOptions, UrlError> {
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
    let mut targets = Vec::new();
    for address in address.split(',') {
        let (host, port) = host_and_port(address)?;
        targets.push(Target::tcp(host, port));
    }
    let query = Query::parse(query)?;
    let mut targets = targets.into_iter();
    let mut options = ConnectOptions::new(targets.next().ok_or(UrlError::NoHost)?);
    options = query.cluster(options, is_cluster, targets)?;
    options = query.credentials(options, user_info.map(credentials).transpose()?.flatten())?;
    let path = match path.strip_prefix('/') {
        None | Some("") => None,
        Some(digits) => Some(number(digits)?),
    };
    options = query.database(options, path)?;
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
    let options = query.cluster(ConnectOptions::new(Target::unix(path)), false, std::iter::empty())?;
    let options = query.credentials(options, None)?;
    query.rest(query.database(options, None)?)
}

/// What is before the mark, and what is behind it if it is there.
fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

fn host_and_port(address: &str) -> Result<(String, u16), UrlError> {
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
        None | Some("") => PORT_DEFAULT,
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
    protocol: Option<&'a str>,
    db: Option<&'a str>,
    user: Option<&'a str>,
    pass: Option<&'a str>,
    client_name: Option<&'a str>,
    command_timeout: Option<&'a str>,
    connect_timeout: Option<&'a str>,
    backlog: Option<&'a str>,
    maintenance: Option<&'a str>,
    server_name: Option<&'a str>,
    ca_file: Option<&'a str>,
    cert_file: Option<&'a str>,
    key_file: Option<&'a str>,
}

impl<'a> Query<'a> {
    fn parse(query: Option<&'a str>) -> Result<Self, UrlError> {
        let mut out = Self::default();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = split(pair, '=');
            let (name, place) = match key {
                "cluster" => ("cluster", &mut out.cluster),
                "split" => ("split", &mut out.split),
                "protocol" => ("protocol", &mut out.protocol),
                "db" => ("db", &mut out.db),
                "user" => ("user", &mut out.user),
                "pass" => ("pass", &mut out.pass),
                "client_name" => ("client_name", &mut out.client_name),
                "command_timeout" => ("command_timeout", &mut out.command_timeout),
                "connect_timeout" => ("connect_timeout", &mut out.connect_timeout),
                "backlog" => ("backlog", &mut out.backlog),
                "maintenance" => ("maintenance", &mut out.maintenance),
                "server_name" => ("server_name", &mut out.server_name),
                "ca_file" => ("ca_file", &mut out.ca_file),
                "cert_file" => ("cert_file", &mut out.cert_file),
                "key_file" => ("key_file", &mut out.key_file),
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

    fn cluster(
        &self,
        options: ConnectOptions,
        is_cluster: bool,
        seeds: impl ExactSizeIterator<Item = Target>,
    ) -> Result<ConnectOptions, UrlError> {
        let flag = |name, value: Option<&str>, default| match value {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(UrlError::Value { name, expected: "true or false" }),
        };
        let is_cluster = flag("cluster", self.cluster, is_cluster)?;
        let is_split = flag("split", self.split, true)?;
        if !is_cluster {
            let is_plain = seeds.len() == 0 && self.split.is_none();
            return if is_plain { Ok(options) } else { Err(UrlError::NoCluster) };
        }
        let cluster = seeds.fold(ClusterOptions::new(), ClusterOptions::seed);
        Ok(options.cluster(cluster.split_by_slot(is_split)))
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
