//! Where the server is and who asks: addresses and URIs.
//!
//! Owns the parsing of `redis://`-like URIs and the texts that name a server. Does not open sockets.

use std::fmt;
use std::path::PathBuf;

/// Port of a server when nothing else is said: Redis's.
pub(crate) const PORT_DEFAULT: u16 = 6379;

/// Host of a server when nothing else is said.
pub(crate) const HOST_DEFAULT: &str = "127.0.0.1";

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A name or an address, and a port.
    Tcp {
        /// Without brackets if it is an IPv6 address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix stream socket.
    Unix(PathBuf),
}

impl Target {
    /// The beginning of the prompt: `host:port`, or `redis /path`.
    pub(crate) fn prompt(&self) -> String {
        match self {
            Self::Tcp { .. } => self.to_string(),
            Self::Unix(path) => format!("redis {}", path.display()),
        }
    }

    /// The node that a redirection names as `host:port`; an empty host means the host that was asked.
    pub(crate) fn redirected(&self, node: &str) -> Option<Self> {
        let (host, port) = node.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = match (host, self) {
            ("" | "?", Self::Tcp { host, .. }) => host.clone(),
            ("" | "?", Self::Unix(_)) => HOST_DEFAULT.to_owned(),
            (host, _) => host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        };
        Some(Self::Tcp { host, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A user and a password; shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// `None` is the default user.
    pub(crate) user: Option<Vec<u8>>,
    /// The password.
    pub(crate) password: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// What a URI says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Uri {
    /// Where the server is.
    pub(crate) target: Target,
    /// Who asks, when the URI says it.
    pub(crate) credentials: Option<Credentials>,
    /// The database, when the URI says it.
    pub(crate) db: Option<u32>,
    /// Whether the scheme asks for TLS.
    pub(crate) is_tls: bool,
}

/// Why a URI cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum UriError {
    /// It does not begin with a known scheme.
    #[error("invalid URI scheme; use redis://, rediss://, valkey://, valkeys://, redis+unix:// or unix://")]
    Scheme,
    /// The port is no number below 65536.
    #[error("invalid port in the URI: {0}")]
    Port(String),
    /// The database is no number.
    #[error("invalid database number in the URI: {0}")]
    Db(String),
    /// A `%` without two hexadecimal digits behind it.
    #[error("invalid percent escape in the URI")]
    Escape,
    /// A Unix socket's URI has no path, or a host that is no text.
    #[error("the URI names no host and no socket")]
    Empty,
}

impl Uri {
    /// Parses `scheme://[[user]:password@]host[:port][/db]` and `redis+unix://[user:password@]/path[?db=n]`.
    ///
    /// # Errors
    /// [`UriError`]: the caller's mistake.
    pub(crate) fn parse(text: &str) -> Result<Self, UriError> {
        let (scheme, rest) = text.split_once("://").ok_or(UriError::Scheme)?;
        let scheme = scheme.to_ascii_lowercase();
        let (is_tls, is_unix) = match scheme.as_str() {
            "redis" | "valkey" => (false, false),
            "rediss" | "valkeys" => (true, false),
            "redis+unix" | "valkey+unix" | "unix" | "redis+socket" => (false, true),
            _ => return Err(UriError::Scheme),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may contain '/' only in escaped form, so the first one ends the authority.
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (user_info, host) = authority.rsplit_once('@').map_or((None, authority), |(a, b)| (Some(a), b));
        let credentials = user_info.map(parse_credentials).transpose()?.flatten();
        let mut db = query_db(query)?;
        let target = if is_unix {
            let path = unescape(&format!("{host}{path}"))?;
            if path.is_empty() {
                return Err(UriError::Empty);
            }
            Target::Unix(PathBuf::from(String::from_utf8(path).map_err(|_| UriError::Empty)?))
        } else {
            match path.trim_start_matches('/') {
                "" => {}
                number => db = Some(number.parse().map_err(|_| UriError::Db(number.to_owned()))?),
            }
            parse_address(host)?
        };
        Ok(Self { target, credentials, db, is_tls })
    }
}

fn parse_credentials(text: &str) -> Result<Option<Credentials>, UriError> {
    // Without a colon the whole is the password, as in redis-cli.
    let (user, password) = text.split_once(':').unwrap_or(("", text));
    let (user, password) = (unescape(user)?, unescape(password)?);
    if password.is_empty() {
        return Ok(None);
    }
    Ok(Some(Credentials { user: (!user.is_empty()).then_some(user), password }))
}

fn query_db(query: &str) -> Result<Option<u32>, UriError> {
    let mut values = query.split('&').filter_map(|pair| pair.strip_prefix("db="));
    values.next().map(|value| value.parse().map_err(|_| UriError::Db(value.to_owned()))).transpose()
}

fn parse_address(text: &str) -> Result<Target, UriError> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').unwrap_or("")),
        None => text.rsplit_once(':').unwrap_or((text, "")),
    };
    let port = match port {
        "" => PORT_DEFAULT,
        port => port.parse().map_err(|_| UriError::Port(port.to_owned()))?,
    };
    let host = String::from_utf8(unescape(host)?).map_err(|_| UriError::Empty)?;
    Ok(Target::Tcp { host: if host.is_empty() { HOST_DEFAULT.to_owned() } else { host }, port })
}

fn unescape(text: &str) -> Result<Vec<u8>, UriError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let [high, low, tail @ ..] = rest else { return Err(UriError::Escape) };
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(UriError::Escape) };
        bytes.push(high << 4 | low);
        rest = tail;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Target {
        Target::Tcp { host: host.to_owned(), port }
    }

    fn who(user: Option<&str>, password: &str) -> Option<Credentials> {
        Some(Credentials { user: user.map(Into::into), password: password.into() })
    }

    #[test]
    fn uris_name_target_user_and_database() {
        let unix = |path: &str| Target::Unix(PathBuf::from(path));
        let cases = [
            ("redis://", tcp("127.0.0.1", 6379), None, None, false),
            ("redis://db1", tcp("db1", 6379), None, None, false),
            ("valkey://db1:7000/3", tcp("db1", 7000), None, Some(3), false),
            ("REDISS://:pw@db1/", tcp("db1", 6379), who(None, "pw"), None, true),
            ("redis://pw@db1", tcp("db1", 6379), who(None, "pw"), None, false),
            (
                "redis://al%40ice:p%2Fw:x@[::1]:7/0",
                tcp("::1", 7),
                who(Some("al@ice"), "p/w:x"),
                Some(0),
                false,
            ),
            ("redis://db1/?db=4", tcp("db1", 6379), None, Some(4), false),
            ("redis+unix:///run/r.sock?db=2", unix("/run/r.sock"), None, Some(2), false),
            ("unix://u:p@/run/r.sock", unix("/run/r.sock"), who(Some("u"), "p"), None, false),
        ];
        for (text, target, credentials, db, is_tls) in cases {
            assert_eq!(Uri::parse(text), Ok(Uri { target, credentials, db, is_tls }), "{text}");
        }
    }

    #[test]
    fn bad_uris_are_refused() {
        let cases = [
            ("db1", UriError::Scheme),
            ("http://db1", UriError::Scheme),
            ("redis://db1:70000", UriError::Port("70000".into())),
            ("redis://db1/x", UriError::Db("x".into())),
            ("redis://%zz@db1", UriError::Escape),
            ("redis://%4", UriError::Escape),
            ("unix://", UriError::Empty),
        ];
        for (text, error) in cases {
            assert_eq!(Uri::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn redirections_keep_the_host_when_they_name_none() {
        let target = tcp("db1", 7000);
        assert_eq!(target.redirected("10.0.0.1:7001"), Some(tcp("10.0.0.1", 7001)));
        assert_eq!(target.redirected(":7001"), Some(tcp("db1", 7001)));
        assert_eq!(target.redirected("::1:7001"), Some(tcp("::1", 7001)));
        assert_eq!(target.redirected("nonsense"), None);
        assert_eq!(tcp("::1", 7001).to_string(), "[::1]:7001");
    }
}
