//! Where a successor or a node listens.
//!
//! Owns the text form `host:port` and what counts as "no address". Does not own names' resolution.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use towline_resp::number::parse_i64;

/// Words that servers and client libraries write where there is no address, in any case.
const PLACEHOLDERS: [&str; 6] = ["", "?", "null", "none", "nil", "<nil>"];

/// A host, by name or by number, and a port.
///
/// Names are in lower case and IP addresses in their canonical form, so that equal addresses compare equal however
/// they were written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// A DNS name or an IP address without brackets; 1 to [`Address::HOST_BYTES_MAX`] bytes.
    pub host: Box<str>,
    /// The port, never 0 if it was read from a server.
    pub port: u16,
}

impl Address {
    /// Longest host, in bytes: the longest DNS name in text form (RFC 1035, section 2.3.4).
    pub const HOST_BYTES_MAX: usize = 253;

    /// An address from its parts; `None` if there is no such address: a placeholder, an unspecified address, a
    /// character that no host has, or port 0.
    pub fn new(host: &str, port: u16) -> Option<Self> {
        let host = bare(host.trim_ascii());
        if port == 0 || host.len() > Self::HOST_BYTES_MAX || is_placeholder(host) {
            return None;
        }
        if let Ok(ip) = host.parse::<IpAddr>() {
            // Dialled, it would mean this machine: never what a server wants to say.
            return (!ip.is_unspecified()).then(|| Self { host: ip.to_string().into(), port });
        }
        is_host(host).then(|| Self { host: host.to_ascii_lowercase().into(), port })
    }

    /// Reads `host:port`, `[v6]:port` or `v6:port`, split at the last colon. Anything else, placeholders like `null`,
    /// an empty host and port 0 included, is no address: `None`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim_ascii();
        let (host, port) = text.rsplit_once(':')?;
        if port.len() > 5 || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Self::new(host, port.parse().ok()?)
    }

    /// Reads two values, a host and a port, as some servers nest them.
    pub fn from_parts(host: &[u8], port: &[u8]) -> Option<Self> {
        let port = u16::try_from(parse_i64(port)?).ok()?;
        Self::new(std::str::from_utf8(host).ok()?, port)
    }

    /// The address in numbers; `None` for a name, and for an IPv6 address with a zone.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl fmt::Display for Address {
    /// `host:port`, with brackets around an IPv6 address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

fn is_placeholder(host: &str) -> bool {
    PLACEHOLDERS.iter().any(|word| host.eq_ignore_ascii_case(word))
}

/// The host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

/// Whether a host that is no plain IP address may be looked up: a name, or an IPv6 address with a zone.
fn is_host(host: &str) -> bool {
    if let Some((ip, zone)) = host.split_once('%') {
        return ip.parse::<Ipv6Addr>().is_ok() && is_name(zone);
    }
    is_name(host)
}

/// Letters, digits, `-`, `.` and `_`, and not digits and dots alone: that would be a mistyped IPv4 address.
fn is_name(host: &str) -> bool {
    !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
        && !host.starts_with(['.', '-'])
        && host.bytes().any(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<String> {
        Address::parse(text.as_bytes()).map(|address| address.to_string())
    }

    #[test]
    fn every_form_of_an_address_is_read_and_written_in_one_form() {
        for (text, expected) in [
            ("203.0.113.7:12000", "203.0.113.7:12000"),
            (" node-1.Example.COM:6379 ", "node-1.example.com:6379"),
            ("redis_1:06379", "redis_1:6379"),
            ("[2001:DB8::1]:6379", "[2001:db8::1]:6379"),
            ("2001:db8::1:6379", "[2001:db8::1]:6379"),
            ("2001:db8:0:0:0:0:0:1:6379", "[2001:db8::1]:6379"),
            ("::1:6379", "[::1]:6379"),
            ("[fe80::1%eth0]:6379", "[fe80::1%eth0]:6379"),
            ("[203.0.113.7]:1", "203.0.113.7:1"),
            ("host:65535", "host:65535"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in [
            "",
            "?",
            "null",
            "NULL",
            "none",
            "<nil>",
            "nil",
            ":6379",
            "?:6379",
            "null:6379",
            "[]:6379",
            "host:0",
            "host:",
            "host",
            "host:65536",
            "host:-1",
            "host:+1",
            "host:1e3",
            "203.0.113.7",
            "2001:db8::1",
            "[::1]",
            "1.2.3:6379",
            "0.0.0.0:6379",
            "[::]:6379",
            "a b:1",
            "a/b:1",
            "user@host:1",
            "h\u{e9}:1",
            "-a:1",
            ".:1",
            "fe80::1%:6379",
            "a:b:c:1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(Address::parse(b"\xff\xfe:6379"), None);
        let long = format!("{}:1", "a".repeat(Address::HOST_BYTES_MAX + 1));
        assert_eq!(read(&long), None);
    }

    #[test]
    fn the_ip_is_known_of_numbers_only() {
        let ip = |text: &str| Address::parse(text.as_bytes()).unwrap().ip();
        assert_eq!(ip("203.0.113.7:1"), Some("203.0.113.7".parse().unwrap()));
        assert_eq!(ip("[2001:db8::1]:1"), Some("2001:db8::1".parse().unwrap()));
        assert_eq!(ip("name:1"), None);
        assert_eq!(ip("[fe80::1%eth0]:1"), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_read_again_the_same(text: Vec<u8>) {
            if let Some(address) = Address::parse(&text) {
                prop_assert_eq!(Address::parse(address.to_string().as_bytes()), Some(address));
            }
        }

        #[test]
        fn text_that_looks_like_an_address_never_panics(text in "[a-f0-9:.%\\[\\]?]{0,60}") {
            if let Some(address) = Address::parse(text.as_bytes()) {
                prop_assert_eq!(Address::parse(address.to_string().as_bytes()), Some(address));
            }
        }
    }
}
