//! What is asked of the server to get announcements.
//!
//! Owns the choices and the resolution of "auto". Does not own the handshake that sends them.
//!
//! ```text
//! CLIENT MAINT_NOTIFICATIONS ON [moving-endpoint-type internal-ip|internal-fqdn|external-ip|external-fqdn|none]
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whether a connection asks its server to announce maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MaintenanceMode {
    /// It does not ask.
    Disabled,
    /// It asks, and goes on without if the server refuses. The default: a server that does not know the command
    /// answers one error, and nothing else is different.
    #[default]
    Auto,
    /// It asks, and a server that refuses, or that does not speak RESP3, is not used.
    Required,
}

/// In which form the server names a successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EndpointType {
    /// Worked out from the connection, see [`EndpointType::resolve`]. Never sent.
    #[default]
    Auto,
    /// An address inside the server's network.
    InternalIp,
    /// A name inside the server's network.
    InternalFqdn,
    /// A public address.
    ExternalIp,
    /// A public name.
    ExternalFqdn,
    /// Not at all: the configured address is dialled again, half of the window after the announcement.
    None,
    /// What the server chooses: the option is not sent.
    ServerDefault,
}

/// How the user gave the server's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfiguredHost {
    /// As an IP address.
    Ip,
    /// As a name to look up.
    Name,
    /// As a path of a unix socket, or anything else that no successor's address can replace.
    Path,
}

impl EndpointType {
    /// The value of `moving-endpoint-type`; `None` if the option is not sent, or if this is still
    /// [`EndpointType::Auto`], which [`EndpointType::resolve`] turns into one of the others.
    pub const fn wire(self) -> Option<&'static str> {
        match self {
            Self::Auto | Self::ServerDefault => None,
            Self::InternalIp => Some("internal-ip"),
            Self::InternalFqdn => Some("internal-fqdn"),
            Self::ExternalIp => Some("external-ip"),
            Self::ExternalFqdn => Some("external-fqdn"),
            Self::None => Some("none"),
        }
    }

    /// The choice itself, or for [`EndpointType::Auto`] what fits the connection; never `Auto`.
    ///
    /// * Without an IP peer (unix socket, tunnel) no address that the server knows can be dialled:
    ///   [`EndpointType::None`].
    /// * With TLS a name, since certificates carry names. Without TLS an address, which needs no lookup that may
    ///   lag behind the move; most clients do so, also when the server was configured by name.
    /// * Internal if the peer's address is private ([`is_private`]), external otherwise.
    ///
    /// The host's form decides only that a path is never replaced by an address.
    pub fn resolve(self, peer: Option<SocketAddr>, is_tls: bool, host: ConfiguredHost) -> Self {
        if self != Self::Auto {
            return self;
        }
        let Some(peer) = peer.filter(|_| host != ConfiguredHost::Path) else { return Self::None };
        match (is_private(peer.ip()), is_tls) {
            (true, false) => Self::InternalIp,
            (true, true) => Self::InternalFqdn,
            (false, false) => Self::ExternalIp,
            (false, true) => Self::ExternalFqdn,
        }
    }
}

/// Whether an address is not routed on the public internet: private (RFC 1918), shared by carriers (RFC 6598), unique
/// local (RFC 4193), loopback or link-local, also when it is IPv4 mapped into IPv6.
pub fn is_private(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_private_v4(ip),
        IpAddr::V6(ip) => is_private_v6(ip),
    }
}

fn is_private_v4(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    let is_shared = first == 100 && second & 0b1100_0000 == 0b0100_0000;
    ip.is_private() || ip.is_loopback() || ip.is_link_local() || is_shared
}

fn is_private_v6(ip: Ipv6Addr) -> bool {
    ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
}

#[cfg(test)]
mod tests {
    use super::*;
    use EndpointType::{Auto, ExternalFqdn, ExternalIp, InternalFqdn, InternalIp, ServerDefault};

    #[test]
    fn private_ranges_are_internal_and_their_neighbours_are_not() {
        for (ip, expected) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("9.255.255.255", false),
            ("11.0.0.0", false),
            ("172.15.255.255", false),
            ("172.16.0.0", true),
            ("172.31.255.255", true),
            ("172.32.0.0", false),
            ("192.168.0.1", true),
            ("192.169.0.0", false),
            ("100.63.255.255", false),
            ("100.64.0.0", true),
            ("100.127.255.255", true),
            ("100.128.0.0", false),
            ("127.0.0.1", true),
            ("169.254.1.1", true),
            ("203.0.113.7", false),
            ("8.8.8.8", false),
            ("::1", true),
            ("fc00::1", true),
            ("fdff:ffff::1", true),
            ("fe00::1", false),
            ("fe80::1", true),
            ("febf::1", true),
            ("fec0::1", false),
            ("2001:db8::1", false),
            ("::ffff:10.1.2.3", true),
            ("::ffff:8.8.8.8", false),
        ] {
            assert_eq!(is_private(ip.parse().unwrap()), expected, "{ip}");
        }
    }

    #[test]
    fn auto_follows_the_peer_and_tls() {
        let resolve = |peer: &str, is_tls, host| Auto.resolve(peer.parse().ok(), is_tls, host);
        for host in [ConfiguredHost::Ip, ConfiguredHost::Name] {
            assert_eq!(resolve("10.0.0.1:1", false, host), InternalIp);
            assert_eq!(resolve("10.0.0.1:1", true, host), InternalFqdn);
            assert_eq!(resolve("203.0.113.7:1", false, host), ExternalIp);
            assert_eq!(resolve("[2001:db8::1]:1", true, host), ExternalFqdn);
            assert_eq!(resolve("no peer", false, host), EndpointType::None);
            assert_eq!(resolve("no peer", true, host), EndpointType::None);
        }
        assert_eq!(resolve("10.0.0.1:1", false, ConfiguredHost::Path), EndpointType::None);
    }

    #[test]
    fn a_choice_of_the_user_stands() {
        for choice in [InternalIp, InternalFqdn, ExternalIp, ExternalFqdn, EndpointType::None, ServerDefault]
        {
            assert_eq!(choice.resolve(None, true, ConfiguredHost::Path), choice);
        }
    }

    #[test]
    fn the_wire_has_five_values_and_auto_is_none_of_them() {
        let wire =
            [Auto, ServerDefault, InternalIp, InternalFqdn, ExternalIp, ExternalFqdn, EndpointType::None]
                .map(EndpointType::wire);
        let expected = ["internal-ip", "internal-fqdn", "external-ip", "external-fqdn", "none"];
        assert_eq!(wire[..2], [None, None]);
        assert_eq!(wire[2..].iter().flatten().copied().collect::<Vec<_>>(), expected);
    }
}
