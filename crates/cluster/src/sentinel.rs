//! What sentinels say about a primary and its replicas.
//!
//! Owns the reading of their replies and messages, the agreement between several of them, and the reading of `ROLE`. Does not
//! own whom to ask, nor when.
//!
//! A primary with replicas is described as a cluster in which one slot, [`ONLY_SLOT`], stands for all keys: whoever routes by slots
//! keeps one order for all commands that way.
//!
//! # Agreement
//!
//! Sentinels give a failover an epoch, and a majority of all of them has to vote before one may use it: of two addresses the one
//! with the higher epoch is right, even if a single sentinel names it, because the others hear of it a moment later. Of answers
//! with the same epoch, or where one of those that answered does not tell it, the address that more of them name is taken; of
//! equals the first.
//!
//! Sources: "Guidelines for Redis clients with support for Redis Sentinel" and "High availability with Redis Sentinel", section "Pub/Sub
//! messages", in the Redis documentation.

use std::collections::BTreeSet;

use towline_resp::frame::Frame;

use crate::address::Address;
use crate::reply::{bytes, field, list, number, text};
use crate::slot::{Slot, SlotRange};
use crate::topology::{Asked, Health, NodeInfo, Role, View, ViewBuilder, ViewError};

/// The slot of every key where there is one primary.
pub const ONLY_SLOT: Slot = 0;

/// Most replicas, and most other sentinels, that are taken from one reply. A primary that feeds more replicas than this does
/// nothing else.
pub const LISTED_MAX: usize = 256;

/// The channels on which a sentinel tells what changes what it would answer.
pub const EVENT_CHANNELS: [&str; 11] = [
    "+switch-master",
    "+promoted-slave",
    "+reset-master",
    "+slave",
    "+slave-reconf-done",
    "+convert-to-slave",
    "+sdown",
    "-sdown",
    "+reboot",
    "+sentinel",
    "+monitor",
];

/// What one sentinel says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SentinelView {
    /// Its name among sentinels (`SENTINEL MYID`), where it tells: one that is asked under two addresses has one voice.
    pub id: Option<Box<str>>,
    /// The primary; `None` if it knows none of that name.
    pub primary: Option<Address>,
    /// The epoch of the failover that made it the primary.
    pub epoch: Option<u64>,
    /// Its replicas.
    pub replicas: Vec<NodeInfo>,
    /// The other sentinels that watch it.
    pub sentinels: Vec<Address>,
}

impl SentinelView {
    /// Takes the reply to `SENTINEL GET-MASTER-ADDR-BY-NAME`: an address, or null for a name that it does not watch.
    ///
    /// # Errors
    /// [`ViewError::Shape`]: the sentinel's fault; another one may be asked.
    pub fn take_primary(&mut self, reply: &Frame) -> Result<(), ViewError> {
        self.primary = match list(reply) {
            Some([host, port]) => {
                let address =
                    bytes(host).zip(bytes(port)).and_then(|(host, port)| Address::from_parts(host, port));
                Some(address.ok_or(ViewError::Shape)?)
            }
            Some([]) => None,
            _ if reply.is_null() => None,
            _ => return Err(ViewError::Shape),
        };
        Ok(())
    }

    /// Takes the reply to `SENTINEL MASTER`, for its epoch. What cannot be read changes nothing.
    pub fn take_details(&mut self, reply: &Frame) {
        let epoch = field(reply, "config-epoch").and_then(number);
        self.epoch = epoch.and_then(|epoch| u64::try_from(epoch).ok());
    }

    /// Takes the reply to `SENTINEL REPLICAS` (`SLAVES` before Redis 5). Replicas that cannot be read, and those that do not want
    /// to be known (`replica-announced no`), are left out.
    pub fn take_replicas(&mut self, reply: &Frame) {
        let replicas = list(reply).unwrap_or_default().iter().filter_map(replica);
        self.replicas = replicas.take(LISTED_MAX).collect();
    }

    /// Takes the reply to `SENTINEL SENTINELS`.
    pub fn take_sentinels(&mut self, reply: &Frame) {
        let others = list(reply).unwrap_or_default().iter().filter_map(address);
        self.sentinels = others.take(LISTED_MAX).collect();
    }
}

/// `ip` and `port` of a set of fields.
fn address(fields: &Frame) -> Option<Address> {
    let (host, port) = (field(fields, "ip")?, field(fields, "port")?);
    Address::from_parts(bytes(host)?, bytes(port)?)
}

fn replica(fields: &Frame) -> Option<NodeInfo> {
    let is = |name, value: &str| {
        let found = field(fields, name).and_then(text);
        found.is_some_and(|found| found.eq_ignore_ascii_case(value))
    };
    let flags = field(fields, "flags").and_then(text).unwrap_or_default();
    let has = |flag: &str| flags.split(',').any(|found| found == flag);
    if is("replica-announced", "0") {
        return None;
    }
    let health = if has("s_down") || has("o_down") || has("disconnected") {
        Health::Failed
    } else if is("master-link-status", "err") {
        // It copies the data set, or cannot: what it has may be old.
        Health::Loading
    } else {
        Health::Online
    };
    Some(NodeInfo { address: Some(address(fields)?), role: Role::Replica, health, ..NodeInfo::default() })
}

/// What the sentinels come to, with the epoch if it is known; `None` if none of them knows a primary. See the module for the
/// rule.
pub fn agree_on_primary(answers: &[SentinelView]) -> Option<(View, Option<u64>)> {
    struct Candidate<'a> {
        primary: &'a Address,
        votes: usize,
        epoch: Option<u64>,
    }
    let mut voices = BTreeSet::new();
    let has_voice = |answer: &&SentinelView| answer.id.as_ref().is_none_or(|id| voices.insert(id.clone()));
    let answers: Vec<&SentinelView> = answers.iter().filter(has_voice).collect();
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    for (primary, epoch) in answers.iter().filter_map(|answer| Some((answer.primary.as_ref()?, answer.epoch)))
    {
        match candidates.iter_mut().find(|candidate| candidate.primary == primary) {
            Some(candidate) => {
                candidate.votes += 1;
                candidate.epoch = candidate.epoch.max(epoch);
            }
            None => candidates.push(Candidate { primary, votes: 1, epoch }),
        }
    }
    let has_epochs = answers.iter().all(|answer| answer.primary.is_none() || answer.epoch.is_some());
    let rank = |candidate: &Candidate<'_>| {
        let decisive = if has_epochs { candidate.epoch } else { None };
        (decisive, candidate.votes, candidate.epoch)
    };
    // `max_by_key` takes the last of equals: the first named is looked at last.
    let chosen = candidates.iter().rev().max_by_key(|candidate| rank(candidate))?;
    let followers = answers.iter().filter(|answer| answer.primary.as_ref() == Some(chosen.primary));
    let view = one_primary(chosen.primary, followers.flat_map(|answer| &answer.replicas)).ok()?;
    Some((view, chosen.epoch))
}

/// The view of a primary and its replicas, each of them once.
fn one_primary<'a>(
    primary: &Address,
    replicas: impl Iterator<Item = &'a NodeInfo>,
) -> Result<View, ViewError> {
    let mut builder = ViewBuilder::default();
    let asked = Asked { address: primary.clone(), is_tls: false };
    let at = builder.node(NodeInfo { address: Some(primary.clone()), ..NodeInfo::default() })?;
    builder.owns(SlotRange { first: ONLY_SLOT, last: ONLY_SLOT }, at);
    for replica in replicas {
        let replica = builder.node(replica.clone())?;
        builder.follows(replica, at);
    }
    builder.finish(&asked)
}

/// The name of the primary that a message of one of [`EVENT_CHANNELS`] is about; `None` if it is about none.
///
/// ```
/// use towline_cluster::sentinel::primary_of_event;
///
/// let payload = b"cache 10.0.0.1 6379 10.0.0.2 6379";
/// assert_eq!(primary_of_event(b"+switch-master", payload), Some("cache"));
/// ```
pub fn primary_of_event<'p>(channel: &[u8], payload: &'p [u8]) -> Option<&'p str> {
    /// No message has more words.
    const WORDS_MAX: usize = 16;
    let words = std::str::from_utf8(payload).ok()?.split_ascii_whitespace();
    let words: Vec<&str> = words.take(WORDS_MAX).collect();
    if channel == b"+switch-master" {
        let [name, _, _, _, _] = words[..] else { return None };
        return Some(name);
    }
    if !EVENT_CHANNELS.iter().any(|known| known.as_bytes() == channel) {
        return None;
    }
    // `<kind> <name> <ip> <port> @ <primary> <ip> <port>`, without the second half if it is about the primary itself.
    match words.iter().position(|word| *word == "@") {
        Some(at) => words.get(at + 1).copied(),
        None if words.first() == Some(&"master") => words.get(1).copied(),
        None => None,
    }
}

/// What a server says that it is (`ROLE`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleReply {
    /// A primary.
    Primary {
        /// How far its stream of changes is.
        offset: u64,
        /// Who follows it.
        replicas: Vec<Address>,
    },
    /// A replica.
    Replica {
        /// Whom it follows.
        primary: Option<Address>,
        /// Whether it is in line with it.
        is_linked: bool,
    },
    /// No server but a sentinel.
    Sentinel,
}

impl RoleReply {
    /// Reads the reply to `ROLE`.
    ///
    /// # Errors
    /// [`ViewError::Shape`]: the server's fault; another one may be asked.
    pub fn parse(reply: &Frame) -> Result<Self, ViewError> {
        let parts = list(reply).ok_or(ViewError::Shape)?;
        match (parts.first().and_then(text).ok_or(ViewError::Shape)?, parts) {
            ("master", [_, offset, replicas, ..]) => {
                let offset = number(offset).and_then(|offset| u64::try_from(offset).ok()).unwrap_or_default();
                let replica = |entry: &Frame| match list(entry)? {
                    [host, port, ..] => Address::from_parts(bytes(host)?, bytes(port)?),
                    _ => None,
                };
                let replicas = list(replicas).unwrap_or_default().iter().filter_map(replica);
                Ok(Self::Primary { offset, replicas: replicas.take(LISTED_MAX).collect() })
            }
            ("slave" | "replica", [_, host, port, state, ..]) => {
                let port = number(port).and_then(|port| u16::try_from(port).ok());
                let primary = text(host).zip(port).and_then(|(host, port)| Address::new(host, port));
                Ok(Self::Replica { primary, is_linked: text(state) == Some("connected") })
            }
            ("sentinel", _) => Ok(Self::Sentinel),
            _ => Err(ViewError::Shape),
        }
    }
}

/// The view that follows from what servers say of themselves, without sentinels; `None` if no primary is among them.
///
/// Of several that call themselves primary it is the one with more replicas, because a primary that came back after a failover
/// has none; of equals the one whose stream is further, then the first. Replicas are those that were asked and follow it, and
/// those that it knows.
pub fn view_of_roles(answers: &[(Address, RoleReply)]) -> Option<View> {
    let mut best: Option<(&Address, u64, &[Address])> = None;
    for (address, role) in answers {
        let RoleReply::Primary { offset, replicas } = role else { continue };
        if best.is_none_or(|(_, known, followers)| (replicas.len(), *offset) > (followers.len(), known)) {
            best = Some((address, *offset, replicas));
        }
    }
    let (primary, _, followers) = best?;
    let info = |address: &Address, health| NodeInfo {
        address: Some(address.clone()),
        role: Role::Replica,
        health,
        ..NodeInfo::default()
    };
    let asked = answers.iter().filter_map(|(address, role)| match role {
        RoleReply::Replica { is_linked: true, .. } => Some(info(address, Health::Online)),
        RoleReply::Replica { is_linked: false, .. } => Some(info(address, Health::Loading)),
        RoleReply::Primary { .. } | RoleReply::Sentinel => None,
    });
    // A replica that was asked is known under the address that was configured, which works from here.
    let has_asked = asked.clone().next().is_some();
    let told = followers.iter().filter(|_| !has_asked).map(|address| info(address, Health::Online));
    let replicas: Vec<NodeInfo> = asked.chain(told).collect();
    one_primary(primary, replicas.iter()).ok()
}

#[cfg(test)]
mod tests;
