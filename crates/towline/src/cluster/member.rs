//! One line of `CLUSTER NODES`.
//!
//! Owns its reading, nodes that clients cannot use included: an operator needs them. (`towline-cluster` reads the same reply for
//! clients and leaves them out.) Does not own what follows from several nodes' replies (`survey`).

use towline_cluster::{OpenState, SLOT_COUNT, Slot};
use towline_cluster_proto::{NodeId, Ranges, plan};

use super::address::Address;

/// Port of the bus, above the port for clients, where nobody chose one.
const BUS_OFFSET: u16 = 10_000;

/// A slot between two nodes, as one of them has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    /// The slot.
    pub(super) slot: Slot,
    /// Which way its keys go.
    pub(super) way: OpenState,
    /// The other node.
    pub(super) other: NodeId,
}

/// A node as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name.
    pub(super) id: NodeId,
    /// Where clients reach it.
    pub(super) address: Address,
    /// Port of the bus.
    pub(super) bus_port: u16,
    /// `cluster-announce-hostname`; empty if there is none.
    pub(super) hostname: String,
    /// As written: `myself,master`.
    pub(super) flags: String,
    /// Whom it follows.
    pub(super) primary: Option<NodeId>,
    /// The epoch of its claim to its slots.
    pub(super) epoch: u64,
    /// Whether the node that was asked is connected with it.
    pub(super) is_connected: bool,
    /// What it owns.
    pub(super) slots: Ranges,
    /// Its open slots; nodes tell only their own.
    pub(super) open: Vec<Open>,
}

impl Member {
    /// Reads a line; `asked` is the host of the node that said it, which may not know its own address.
    pub(super) fn parse(line: &str, asked: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut word = || words.next();
        let id = word()?.parse().ok()?;
        let (address, bus_port, hostname) = endpoint(word()?, asked)?;
        let flags = word()?.to_owned();
        let primary = word()?.parse().ok();
        let (_ping, _pong) = (word()?, word()?);
        let epoch = word()?.parse().ok()?;
        let is_connected = word()? == "connected";
        let (mut slots, mut open) = (Vec::new(), Vec::new());
        for word in words {
            if let Some(marker) = word.strip_prefix('[') {
                open.extend(marker.strip_suffix(']').and_then(read_open));
            } else {
                let (first, last) = word.split_once('-').unwrap_or((word, word));
                slots.extend(range(first, last));
            }
        }
        let slots = plan::ranges_of(plan::each(&slots));
        Some(Self { id, address, bus_port, hostname, flags, primary, epoch, is_connected, slots, open })
    }

    /// Whether it has the flag.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|known| known == flag)
    }

    /// Whether it may own slots.
    pub(super) fn is_primary(&self) -> bool {
        self.has("master")
    }

    /// Whether others have given it up.
    pub(super) fn has_failed(&self) -> bool {
        self.has("fail") || self.has("noaddr")
    }

    /// Whether the port of its bus is not where everybody expects it.
    pub(super) fn has_own_bus_port(&self) -> bool {
        Some(self.bus_port) != self.address.port.checked_add(BUS_OFFSET)
    }

    /// How messages name it: its address and the beginning of its name.
    pub(super) fn label(&self) -> String {
        format!("{} ({})", self.address, short(self.id))
    }
}

/// The first 8 digits of a name: enough for people to tell nodes apart.
pub(super) fn short(id: NodeId) -> String {
    let mut text = id.to_string();
    text.truncate(8);
    text
}

/// `ip:port@bus,hostname,...`; the port of the bus and all behind it may be missing.
fn endpoint(text: &str, asked: &str) -> Option<(Address, u16, String)> {
    let (endpoint, rest) = text.split_once(',').unwrap_or((text, ""));
    let hostname = rest.split(',').next().filter(|name| !name.contains('=')).unwrap_or_default();
    let (endpoint, bus) = endpoint.split_once('@').unwrap_or((endpoint, ""));
    let (host, port) = endpoint.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    let bus_port = bus.parse().ok().or_else(|| port.checked_add(BUS_OFFSET)).unwrap_or_default();
    let host = if host.is_empty() { asked } else { host };
    Some((Address { host: host.to_owned(), port }, bus_port, hostname.to_owned()))
}

fn range(first: &str, last: &str) -> Option<(Slot, Slot)> {
    let (first, last) = (first.parse::<Slot>().ok()?, last.parse::<Slot>().ok()?);
    (first <= last && usize::from(last) < SLOT_COUNT).then_some((first, last))
}

fn read_open(marker: &str) -> Option<Open> {
    let migrating = marker.split_once("->-").map(|it| (it, OpenState::Migrating));
    let ((slot, other), way) =
        migrating.or_else(|| marker.split_once("-<-").map(|it| (it, OpenState::Importing)))?;
    let (slot, _) = range(slot, slot)?;
    Some(Open { slot, way, other: other.parse().ok()? })
}

/// Ranges as people write them: `0-99,200`.
pub(super) fn shown(ranges: &[(Slot, Slot)]) -> String {
    let one = |(first, last): &(Slot, Slot)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Reads ranges as people write them.
///
/// # Errors
/// A text for the user.
pub(super) fn read_ranges(text: &str) -> Result<Ranges, String> {
    let mut slots = Vec::new();
    for word in text.split(',') {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let read = range(first.trim(), last.trim());
        slots.push(read.ok_or_else(|| format!("'{word}' is no range of slots, such as 0-99 or 200"))?);
    }
    Ok(plan::ranges_of(plan::each(&slots)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "07c37dfeb235213a872192d90877d0cd55635b91";
    const B: &str = "67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1";

    #[test]
    fn lines_of_every_server_are_read() {
        let line = format!(
            "{A} 127.0.0.1:30001@31001,host-1,shard-id=x myself,master - 0 0 1 connected 0-5460 7000 [93->-{B}] [77-<-{B}]"
        );
        let member = Member::parse(&line, "x").unwrap();
        assert_eq!(member.address.to_string(), "127.0.0.1:30001");
        assert_eq!((member.bus_port, member.hostname.as_str(), member.epoch), (31001, "host-1", 1));
        assert!(member.is_primary() && member.has("myself") && !member.has_failed() && member.is_connected);
        assert!(member.has_own_bus_port());
        assert_eq!(member.slots, [(0, 5460), (7000, 7000)]);
        let other = B.parse().unwrap();
        assert_eq!(
            member.open,
            [
                Open { slot: 93, way: OpenState::Migrating, other },
                Open { slot: 77, way: OpenState::Importing, other },
            ]
        );
        // Redis 7 before MEET does not know its address.
        let lonely = Member::parse(&format!("{A} :7000@17000 myself,master - 0 0 0 connected"), "10.0.0.1");
        assert_eq!(lonely.unwrap().address.to_string(), "10.0.0.1:7000");
        let replica =
            Member::parse(&format!("{A} ::1:7000@17000,,shard-id=y slave,fail {B} 0 0 0 disconnected"), "x");
        let replica = replica.unwrap();
        assert_eq!(replica.address.to_string(), "[::1]:7000");
        assert!(
            !replica.is_primary()
                && replica.has_failed()
                && !replica.is_connected
                && replica.hostname.is_empty()
        );
        assert_eq!(replica.primary, Some(B.parse().unwrap()));
        for odd in ["", "x", A, &format!("{A} nowhere master - 0 0 0 connected")] {
            assert_eq!(Member::parse(odd, "x"), None, "{odd}");
        }
    }

    #[test]
    fn ranges_are_read_and_written() {
        assert_eq!(read_ranges("200, 0-99,100").unwrap(), [(0, 100), (200, 200)]);
        assert_eq!(shown(&[(0, 100), (200, 200)]), "0-100,200");
        for bad in ["", "x", "5-1", "0-16384", "-1", "1-2-3", "1,,2"] {
            assert!(read_ranges(bad).is_err(), "{bad}");
        }
    }
}
