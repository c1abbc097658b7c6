//! What a server says about planned work, and the frames that say it.
//!
//! Owns: the public types of notices, their form on the wire, how they are replayed and what ends them. Does **not** own
//! who is told (see [`super::registry`]).
//!
//! Frames are RESP3 pushes with exactly the elements that the strictest client wants: bulk strings, integers, and a null for
//! an endpoint that is not named.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use towline_resp::Proto;
use towline_resp::writer::Writer;

/// The longest time that a notice can name; a longer one counts as this, so that instants never overflow.
pub(super) const AHEAD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Which connections a notice or a drain is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them, those that came in by a Unix socket included.
    All,
    /// Those that were accepted on this local address, IP and port. With an unspecified IP (`0.0.0.0`, `[::]`): on any
    /// address of that family with this port.
    Local(SocketAddr),
}

impl Scope {
    /// Whether a connection that was accepted on `local` belongs to it; one without belongs to [`Scope::All`] only.
    pub(super) fn includes(self, local: Option<SocketAddr>) -> bool {
        let Self::Local(wanted) = self else { return true };
        let Some(local) = local else { return false };
        if wanted.ip().is_unspecified() {
            wanted.is_ipv4() == local.is_ipv4() && wanted.port() == local.port()
        } else {
            (wanted.ip(), wanted.port()) == (local.ip(), local.port())
        }
    }

    /// Whether a connection to a socket that listens on `listened` may belong to it. A socket with an unspecified IP accepts
    /// on any address of its family.
    pub(super) fn overlaps(self, listened: SocketAddr) -> bool {
        let Self::Local(wanted) = self else { return true };
        self.includes(Some(listened)) || Self::Local(listened).includes(Some(wanted))
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Local(address) => address.fmt(f),
        }
    }
}

/// The form in which a client wants to read where to go, as `CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointType {
    /// `internal-ip`: an IP address for clients in the server's own network.
    InternalIp,
    /// `internal-fqdn`: a name for clients in the server's own network.
    InternalFqdn,
    /// `external-ip`: an IP address for clients elsewhere.
    ExternalIp,
    /// `external-fqdn`: a name for clients elsewhere.
    ExternalFqdn,
    /// `none`: the client goes back to the address that it was configured with, and is told none.
    None,
}

impl EndpointType {
    const NAMES: [(&'static str, Self); 5] = [
        ("internal-ip", Self::InternalIp),
        ("internal-fqdn", Self::InternalFqdn),
        ("external-ip", Self::ExternalIp),
        ("external-fqdn", Self::ExternalFqdn),
        ("none", Self::None),
    ];

    /// The type that `word` names, in any case.
    pub(crate) fn parse(word: &[u8]) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word));
        found.map(|&(_, endpoint_type)| endpoint_type)
    }
}

/// Where connections are to move to. A connection is told the form that it asked for; where that is missing, the other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Successor {
    /// The IP address, without brackets.
    pub ip: Option<String>,
    /// The name.
    pub fqdn: Option<String>,
    /// The port.
    pub port: u16,
}

impl Successor {
    /// A successor of which one form is known: an IP address, with or without the brackets of IPv6, or else a name.
    pub fn new(host: &str, port: u16) -> Self {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match bare.parse::<IpAddr>() {
            Ok(_) => Self { ip: Some(bare.to_owned()), fqdn: None, port },
            Err(_) => Self { ip: None, fqdn: Some(host.to_owned()), port },
        }
    }

    /// `host:port` as a client with this wish is told it; `None` for no address. `wanted` is `None` when the client left
    /// the choice to the server: then a name that is known is preferred, because it outlives its address.
    pub(crate) fn named(&self, wanted: Option<EndpointType>) -> Option<String> {
        use EndpointType::{ExternalFqdn, ExternalIp, InternalFqdn, InternalIp};
        let (ip, fqdn) = (self.ip.as_deref(), self.fqdn.as_deref());
        let host = match wanted {
            Some(EndpointType::None) => None,
            Some(InternalIp | ExternalIp) => ip.or(fqdn),
            Some(InternalFqdn | ExternalFqdn) | None => fqdn.or(ip),
        }?;
        // Only an IPv6 address has colons; a name cannot.
        Some(if host.contains(':') {
            format!("[{host}]:{}", self.port)
        } else {
            format!("{host}:{}", self.port)
        })
    }
}

/// Slots that moved from one node to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotMove {
    /// `host:port` of the node that had them.
    pub source: String,
    /// `host:port` of the node that has them now.
    pub destination: String,
    /// Slots and ranges of slots with commas in between: `123,456,5000-7000`.
    pub slots: String,
}

/// What connections are told. The opening ones are replayed to connections that opt in later, with the time that is left,
/// until a closing one ends them or, for [`Notice::Moving`], until their window is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// `MOVING`: the endpoint of this connection moves within the window, which is told in whole seconds, rounded up.
    Moving {
        /// The time until the connection is closed.
        window: Duration,
        /// Where to go; none for "the address you were configured with".
        successor: Option<Successor>,
    },
    /// `MIGRATING`: shards begin to move to another node.
    Migrating {
        /// The time until then.
        starts_in: Duration,
        /// Names of the shards.
        shards: Vec<String>,
    },
    /// `MIGRATED`: they have moved. Ends [`Notice::Migrating`].
    Migrated {
        /// Names of the shards.
        shards: Vec<String>,
    },
    /// `FAILING_OVER`: healthy shards begin to hand over to their replicas.
    FailingOver {
        /// The time until then.
        starts_in: Duration,
        /// Names of the shards.
        shards: Vec<String>,
    },
    /// `FAILED_OVER`: they have. Ends [`Notice::FailingOver`].
    FailedOver {
        /// Names of the shards.
        shards: Vec<String>,
    },
    /// `SMIGRATING`: slots of a cluster begin to move.
    Smigrating {
        /// Slots and ranges of slots with commas in between.
        slots: String,
    },
    /// `SMIGRATED`: they have moved. Ends [`Notice::Smigrating`].
    Smigrated {
        /// From where to where.
        moves: Vec<SlotMove>,
    },
}

/// The pieces of work that an opening notice announces, and a closing one reports as done. An opening notice is over when
/// none of its pieces is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pieces {
    kind: Kind,
    names: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Migration,
    Failover,
    Slots,
}

impl Pieces {
    /// Takes away what is done; `true` when nothing is left.
    pub(super) fn finish(&mut self, done: &Self) -> bool {
        if self.kind == done.kind {
            // A notice that names nothing is about everything of its kind.
            if done.names.is_empty() {
                self.names.clear();
            }
            self.names.retain(|name| !done.names.contains(name));
            return self.names.is_empty();
        }
        false
    }
}

/// Each slot of a list; what is no slot, or a range of more slots than there are, stands for itself.
fn slots_of(list: &str) -> impl Iterator<Item = String> + '_ {
    list.split(',').map(str::trim).filter(|part| !part.is_empty()).flat_map(|part| {
        let slot =
            |text: &str| text.parse::<u16>().ok().filter(|&slot| slot < towline_cluster::SLOT_COUNT as u16);
        let range = part.split_once('-').and_then(|(first, last)| Some(slot(first)?..=slot(last)?));
        match range {
            Some(range) => range.map(|slot| slot.to_string()).collect::<Vec<_>>(),
            None => vec![part.to_owned()],
        }
    })
}

impl Notice {
    /// What an opening notice with an end of its own announces; `None` for closing ones and for [`Notice::Moving`].
    pub(super) fn opens(&self) -> Option<Pieces> {
        let (kind, names) = match self {
            Self::Migrating { shards, .. } => (Kind::Migration, shards.iter().cloned().collect()),
            Self::FailingOver { shards, .. } => (Kind::Failover, shards.iter().cloned().collect()),
            Self::Smigrating { slots } => (Kind::Slots, slots_of(slots).collect()),
            Self::Moving { .. }
            | Self::Migrated { .. }
            | Self::FailedOver { .. }
            | Self::Smigrated { .. } => {
                return None;
            }
        };
        Some(Pieces { kind, names })
    }

    /// What a closing notice reports as done.
    pub(super) fn closes(&self) -> Option<Pieces> {
        let (kind, names) = match self {
            Self::Migrated { shards } => (Kind::Migration, shards.iter().cloned().collect()),
            Self::FailedOver { shards } => (Kind::Failover, shards.iter().cloned().collect()),
            Self::Smigrated { moves } => {
                (Kind::Slots, moves.iter().flat_map(|moved| slots_of(&moved.slots)).collect())
            }
            Self::Moving { .. }
            | Self::Migrating { .. }
            | Self::FailingOver { .. }
            | Self::Smigrating { .. } => {
                return None;
            }
        };
        Some(Pieces { kind, names })
    }

    /// The instant that the notice counts down to, seen from `now`.
    pub(super) fn due(&self, now: Instant) -> Instant {
        let ahead = match self {
            Self::Moving { window, .. } => *window,
            Self::Migrating { starts_in, .. } | Self::FailingOver { starts_in, .. } => *starts_in,
            Self::Migrated { .. }
            | Self::FailedOver { .. }
            | Self::Smigrating { .. }
            | Self::Smigrated { .. } => Duration::ZERO,
        };
        now + ahead.min(AHEAD_MAX)
    }

    /// Whether a connection that was accepted on `local` is where the notice tells others to go.
    pub(super) fn leads_to(&self, local: Option<SocketAddr>) -> bool {
        let Self::Moving { successor: Some(successor), .. } = self else { return false };
        let ip = successor.ip.as_ref().and_then(|ip| ip.parse::<IpAddr>().ok());
        local.is_some_and(|local| Some(local.ip()) == ip && local.port() == successor.port)
    }

    /// The frame for a connection with this wish, when `left` is the time until [`Notice::due`].
    pub(super) fn frame(&self, seq: u64, left: Duration, wanted: Option<EndpointType>) -> Vec<u8> {
        let mut out = Writer::new(Proto::Resp3);
        let mut head = |count: usize, token: &str| {
            out.push(count);
            out.bulk(token.as_bytes());
            out.int(seq as i64);
        };
        match self {
            Self::Moving { successor, .. } => {
                head(4, "MOVING");
                out.int(whole_seconds(left).max(1));
                match successor.as_ref().and_then(|successor| successor.named(wanted)) {
                    Some(address) => out.bulk(address.as_bytes()),
                    None => out.null(),
                }
            }
            Self::Migrating { shards, .. } => {
                head(4, "MIGRATING");
                out.int(whole_seconds(left));
                out.bulk(json(shards).as_bytes());
            }
            Self::FailingOver { shards, .. } => {
                head(4, "FAILING_OVER");
                out.int(whole_seconds(left));
                out.bulk(json(shards).as_bytes());
            }
            Self::Migrated { shards } => {
                head(3, "MIGRATED");
                out.bulk(json(shards).as_bytes());
            }
            Self::FailedOver { shards } => {
                head(3, "FAILED_OVER");
                out.bulk(json(shards).as_bytes());
            }
            Self::Smigrating { slots } => {
                head(3, "SMIGRATING");
                out.bulk(slots.as_bytes());
            }
            Self::Smigrated { moves } => {
                head(3, "SMIGRATED");
                out.array(moves.len());
                for moved in moves {
                    out.array(3);
                    for text in [&moved.source, &moved.destination, &moved.slots] {
                        out.bulk(text.as_bytes());
                    }
                }
            }
        }
        out.take().0
    }
}

/// Seconds, rounded up: the frames have no finer unit, and 0 would say that it is too late.
fn whole_seconds(time: Duration) -> i64 {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// A JSON array of strings, in the form that the clients' fixtures have: `["2", "4"]`.
fn json(names: &[String]) -> String {
    let mut text = String::from("[");
    for (index, name) in names.iter().enumerate() {
        text.push_str(if index == 0 { "\"" } else { ", \"" });
        for letter in name.chars() {
            match letter {
                '"' | '\\' => text.extend(['\\', letter]),
                letter if letter < ' ' => text.push_str(&format!("\\u{:04x}", u32::from(letter))),
                letter => text.push(letter),
            }
        }
        text.push('"');
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests;
