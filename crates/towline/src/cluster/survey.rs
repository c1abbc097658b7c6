//! A cluster as all of its nodes see it.
//!
//! Owns the round of questions and who is who. Does not own what is wrong with the answers (`findings`).

use std::collections::BTreeSet;

use bytes::Bytes;
use towline_cluster::{SLOT_COUNT, Slot};
use towline_cluster_proto::NodeId;
use towline_cluster_proto::plan::{self, Share};
use towline_resp::frame::Frame;

use super::address::Address;
use super::error::ClusterError;
use super::member::Member;
use super::peer::{Access, Peer, words};
use crate::cli::Credentials;

/// What one node says of itself and of the others.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Itself.
    pub(super) own: Member,
    /// All that it knows, itself included.
    pub(super) view: Vec<Member>,
}

/// A node that answers.
#[derive(Debug)]
pub(super) struct Node {
    /// What it says.
    pub(super) seen: Seen,
    /// The connection to it.
    pub(super) peer: Peer,
}

impl Node {
    /// Asks a node what it knows.
    ///
    /// # Errors
    /// The node's, and [`ClusterError::Refusal`] if it is in no cluster mode.
    pub(super) fn open(address: Address, access: &Access) -> Result<Self, ClusterError> {
        let mut peer = Peer::open(address, access)?;
        let seen = ask(&mut peer)?;
        Ok(Self { seen, peer })
    }

    pub(super) fn id(&self) -> NodeId {
        self.seen.own.id
    }

    pub(super) fn label(&self) -> String {
        self.seen.own.label()
    }
}

fn ask(peer: &mut Peer) -> Result<Seen, ClusterError> {
    let text = match peer.text("CLUSTER NODES") {
        Err(ClusterError::Refused { node, text, .. }) if text.contains("cluster support disabled") => {
            return Err(ClusterError::Refusal(format!(
                "{node} is not in cluster mode: it needs cluster-enabled yes"
            )));
        }
        other => other?,
    };
    let host = peer.address.host.clone();
    let view: Vec<Member> = text.lines().filter_map(|line| Member::parse(line.trim_end(), &host)).collect();
    let own = view.iter().find(|member| member.has("myself")).cloned();
    let mut own = own.ok_or_else(|| peer.unexpected(&words("CLUSTER NODES")))?;
    // By this address it can be reached for certain.
    own.address = peer.address.clone();
    Ok(Seen { own, view })
}

/// A node that others know and that does not answer.
#[derive(Debug, Clone)]
pub(super) struct Lost {
    /// As others see it.
    pub(super) member: Member,
    /// Why it was not asked.
    pub(super) reason: String,
}

/// All nodes of a cluster.
#[derive(Debug)]
pub(super) struct Survey {
    /// Those that answer; the one that was asked first is the first.
    pub(super) nodes: Vec<Node>,
    /// Those that do not.
    pub(super) lost: Vec<Lost>,
    access: Access,
}

impl Survey {
    /// Asks a node, and all that it knows, and all that those know.
    ///
    /// # Errors
    /// Those of the first node; others that do not answer are [`Self::lost`].
    pub(super) fn of(first: &Address, access: &Access) -> Result<Self, ClusterError> {
        let first = Node::open(first.clone(), access)?;
        let mut survey = Self { nodes: vec![first], lost: Vec::new(), access: access.clone() };
        survey.spread();
        Ok(survey)
    }

    /// Asks everybody again. Those that do not answer now are lost.
    ///
    /// # Errors
    /// Nobody answers.
    pub(super) fn refresh(&mut self) -> Result<(), ClusterError> {
        self.lost.clear();
        let mut last = None;
        let mut kept = Vec::with_capacity(self.nodes.len());
        for mut node in std::mem::take(&mut self.nodes) {
            match ask(&mut node.peer) {
                Ok(seen) => kept.push(Node { seen, ..node }),
                Err(error) => {
                    self.lost.push(Lost { member: node.seen.own, reason: error.to_string() });
                    last = Some(error);
                }
            }
        }
        self.nodes = kept;
        match last {
            Some(error) if self.nodes.is_empty() => Err(error),
            _ => {
                self.spread();
                Ok(())
            }
        }
    }

    /// Asks those that were heard of and not asked yet.
    fn spread(&mut self) {
        let mut known: BTreeSet<NodeId> = self.nodes.iter().map(Node::id).collect();
        known.extend(self.lost.iter().map(|lost| lost.member.id));
        let mut at = 0;
        while at < self.nodes.len() {
            for member in self.nodes[at].seen.view.clone() {
                // Who shakes hands still has a name that nobody keeps.
                if member.has("handshake") || !known.insert(member.id) {
                    continue;
                }
                let opened = if member.has("noaddr") {
                    Err("its address is not known".to_owned())
                } else {
                    Node::open(member.address.clone(), &self.access).map_err(|error| error.to_string())
                };
                match opened {
                    Ok(node) if node.id() == member.id => self.nodes.push(node),
                    Ok(_) => {
                        let reason = "another node answers at its address".to_owned();
                        self.lost.push(Lost { member, reason });
                    }
                    Err(reason) => self.lost.push(Lost { member, reason }),
                }
            }
            at += 1;
        }
    }

    /// What everybody says.
    pub(super) fn seen(&self) -> Vec<&Seen> {
        self.nodes.iter().map(|node| &node.seen).collect()
    }

    /// The node with that name.
    pub(super) fn at(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id() == id)
    }

    /// The node with that name, to be spoken to.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn node(&mut self, id: NodeId) -> Result<&mut Node, ClusterError> {
        let found = self.nodes.iter_mut().find(|node| node.id() == id);
        found.ok_or_else(|| ClusterError::Refusal(format!("node {id} is needed and does not answer")))
    }

    /// How messages name a node.
    pub(super) fn label(&self, id: NodeId) -> String {
        self.at(id).map_or_else(|| id.to_string(), |at| self.nodes[at].label())
    }

    /// The node that a user means: an address, a name, or the beginning of one that fits only one node.
    ///
    /// # Errors
    /// [`ClusterError::Usage`]: none, or several.
    pub(super) fn find(&self, text: &str) -> Result<NodeId, ClusterError> {
        let address: Option<Address> = text.parse().ok();
        let fits = |node: &&Node| {
            Some(&node.seen.own.address) == address.as_ref()
                || node.id().to_string().starts_with(&text.to_ascii_lowercase())
        };
        let mut found = self.nodes.iter().filter(fits).map(Node::id);
        match (found.next(), found.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => {
                Err(ClusterError::Usage(format!("'{text}' is the beginning of several nodes' names")))
            }
            (None, _) => {
                let known: Vec<String> = self.nodes.iter().map(Node::label).collect();
                let known = known.join(", ");
                Err(ClusterError::Usage(format!("no node is called '{text}'; there are {known}")))
            }
        }
    }

    /// The primaries that answer.
    pub(super) fn primaries(&self) -> Vec<NodeId> {
        self.nodes.iter().filter(|node| node.seen.own.is_primary()).map(Node::id).collect()
    }

    /// Who owns each slot: of several that claim one, who has the highest epoch.
    pub(super) fn owners(&self) -> Vec<Option<NodeId>> {
        owners(&self.seen())
    }

    /// The primaries and what they own, for plans.
    pub(super) fn shares(&self) -> Vec<Share> {
        let owners = self.owners();
        let share = |id: NodeId| {
            let owned = owners.iter().zip(0..).filter(|(owner, _)| **owner == Some(id));
            Share { node: id, slots: plan::ranges_of(owned.map(|(_, slot)| slot)), weight: None }
        };
        self.primaries().into_iter().map(share).collect()
    }

    /// Who asks, for MIGRATE.
    pub(super) fn credentials(&self) -> Option<&Credentials> {
        self.access.credentials.as_ref()
    }

    /// Keys that each node has in each of the slots asked of it, in their order.
    ///
    /// # Errors
    /// The nodes'.
    pub(super) fn count_keys(&mut self, id: NodeId, slots: &[Slot]) -> Result<Vec<u64>, ClusterError> {
        let commands: Vec<Vec<Bytes>> =
            slots.iter().map(|slot| words(&format!("CLUSTER COUNTKEYSINSLOT {slot}"))).collect();
        let peer = &mut self.node(id)?.peer;
        let replies = peer.ask_all(&commands)?;
        let number = |(frame, command): (&Frame, &Vec<Bytes>)| match frame {
            Frame::Integer(count) if *count >= 0 => Ok(count.unsigned_abs()),
            frame => Err(match frame.as_error() {
                Some(text) => peer.refused(command, text),
                None => peer.unexpected(command),
            }),
        };
        replies.iter().zip(&commands).map(number).collect()
    }
}

/// Who owns each slot, by what nodes say of themselves.
pub(super) fn owners(seen: &[&Seen]) -> Vec<Option<NodeId>> {
    let mut owners: Vec<Option<(u64, NodeId)>> = vec![None; SLOT_COUNT];
    for member in seen.iter().map(|seen| &seen.own).filter(|member| member.is_primary()) {
        for slot in plan::each(&member.slots) {
            let claim = Some((member.epoch, member.id));
            let owner = &mut owners[usize::from(slot)];
            *owner = (*owner).max(claim);
        }
    }
    owners.into_iter().map(|owner| owner.map(|(_, id)| id)).collect()
}
