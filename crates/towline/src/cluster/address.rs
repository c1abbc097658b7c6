//! Where a node is, as people write it.
//!
//! Owns the forms `host:port`, `[v6]:port` and a port alone. Does not resolve names.

use std::fmt;
use std::str::FromStr;

use crate::cli::HOST_DEFAULT;

/// A host and a port for clients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Address {
    /// Without brackets.
    pub(super) host: String,
    /// The port.
    pub(super) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').unwrap_or((HOST_DEFAULT, text));
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().ok().filter(|port| *port > 0);
        match port {
            Some(port) if !host.is_empty() => Ok(Self { host: host.to_owned(), port }),
            _ => Err("a node is host:port, or the port of one on this machine".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, host, port, shown) in [
            ("127.0.0.1:7000", "127.0.0.1", 7000, "127.0.0.1:7000"),
            ("7000", "127.0.0.1", 7000, "127.0.0.1:7000"),
            ("node-1.lan:6379", "node-1.lan", 6379, "node-1.lan:6379"),
            ("[::1]:7000", "::1", 7000, "[::1]:7000"),
            ("::1:7000", "::1", 7000, "[::1]:7000"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(
                (address.host.as_str(), address.port, address.to_string().as_str()),
                (host, port, shown)
            );
        }
        for bad in ["", ":7000", "host", "host:", "host:0", "host:70000", "[]:1"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
