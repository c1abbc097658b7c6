//! `CLUSTER NODES`.
//!
//! Owns its lines. Does not own what several nodes' replies come to.
//!
//! ```text
//! id ip:port@busport[,hostname[,key=value]...] flags primary ping pong epoch link slots... [slot->-id] [slot-<-id]
//! ```

use std::collections::BTreeMap;

use towline_resp::frame::Frame;

use crate::address::Address;
use crate::reply::{Host, text};
use crate::slot::{SLOT_COUNT, SlotRange};
use crate::topology::{Asked, Health, NodeInfo, OpenSlot, OpenState, Role, View, ViewBuilder, ViewError};

impl View {
    /// Reads the reply to `CLUSTER NODES`, the only one with epochs and open slots. Lines that cannot be read are left
    /// out.
    ///
    /// # Errors
    /// The server's fault: the reply is something else, or good for nothing; another node may be asked.
    pub fn from_nodes(reply: &Frame, asked: &Asked) -> Result<Self, ViewError> {
        let text = text(reply).ok_or(ViewError::Shape)?;
        let mut builder = ViewBuilder::default();
        let mut follows: Vec<(usize, &str)> = Vec::new();
        let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
        for line in text.lines() {
            let Some(line) = Line::read(line) else { continue };
            let at = builder.node(line.info(asked))?;
            ids.insert(line.id, at);
            if line.has_flag("myself") {
                builder.is_myself(at);
                line.open().for_each(|open| builder.open(open));
            }
            if line.primary != "-" {
                follows.push((at, line.primary));
            }
            line.ranges().for_each(|range| builder.owns(range, at));
        }
        for (replica, primary) in follows {
            if let Some(primary) = ids.get(primary) {
                builder.follows(replica, *primary);
            }
        }
        builder.finish(asked)
    }
}

struct Line<'a> {
    id: &'a str,
    address: &'a str,
    flags: &'a str,
    primary: &'a str,
    epoch: &'a str,
    slots: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (id, address, flags, primary) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let (_ping, _pong, epoch) = (words.next()?, words.next()?, words.next()?);
        let _link = words.next()?;
        let line = Self { id, address, flags, primary, epoch, slots: words.collect() };
        // Neither is known to be a member yet.
        (!line.has_flag("handshake")).then_some(line)
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.flags.split(',').any(|known| known == flag)
    }

    fn info(&self, asked: &Asked) -> NodeInfo {
        let (endpoint, hostname) = match self.address.split_once(',') {
            // What comes after the next comma are other fields.
            Some((endpoint, rest)) => (endpoint, rest.split(',').next().filter(|name| !name.contains('='))),
            None => (self.address, None),
        };
        let endpoint = endpoint.split_once('@').map_or(endpoint, |(endpoint, _bus)| endpoint);
        let (address, alias) = addresses(endpoint, hostname, asked);
        let has_failed = self.has_flag("fail") || self.has_flag("noaddr");
        NodeInfo {
            id: Some(self.id.into()),
            address: address.filter(|_| !self.has_flag("noaddr")),
            aliases: alias.into_iter().collect(),
            role: if self.has_flag("slave") || self.has_flag("replica") {
                Role::Replica
            } else {
                Role::Primary
            },
            primary: None,
            health: if has_failed { Health::Failed } else { Health::Online },
            zone: None,
            epoch: self.epoch.parse().ok(),
        }
    }

    fn ranges(&self) -> impl Iterator<Item = SlotRange> {
        self.slots.iter().filter(|word| !word.starts_with('[')).filter_map(|word| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            SlotRange::new(first.parse().ok()?, last.parse().ok()?)
        })
    }

    fn open(&self) -> impl Iterator<Item = OpenSlot> {
        self.slots.iter().filter_map(|word| {
            let inner = word.strip_prefix('[')?.strip_suffix(']')?;
            let migrating = inner.split_once("->-").map(|it| (it, OpenState::Migrating));
            let importing = || inner.split_once("-<-").map(|it| (it, OpenState::Importing));
            let ((slot, other), state) = migrating.or_else(importing)?;
            let slot = slot.parse().ok().filter(|slot| usize::from(*slot) < SLOT_COUNT)?;
            Some(OpenSlot { slot, state, other: other.into() })
        })
    }
}

/// Where a node is, and what else it is called.
fn addresses(endpoint: &str, hostname: Option<&str>, asked: &Asked) -> (Option<Address>, Option<Address>) {
    let Some((host, port)) = endpoint.rsplit_once(':') else { return (None, None) };
    let Ok(port) = port.parse::<u16>() else { return (None, None) };
    let alias = hostname.and_then(|name| Host::of(name).alias(port));
    // An empty host is the node itself, before anybody has told it its address.
    (Host::of(host).address(port, asked), alias)
}
