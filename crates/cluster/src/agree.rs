//! What several nodes' views come to.
//!
//! Owns the comparison. Does not own whom to ask, nor how long to wait for answers.
//!
//! Nodes learn of a change one after the other, and one that is cut off learns of none. So each slot goes to whom most of
//! the views name. Of candidates that are named equally often, the one that claims the slot itself goes first, then the one
//! with the newer epoch, then the one that was named first. Where views have epochs for every candidate (`CLUSTER NODES`), the
//! newest epoch decides before any count: that is the cluster's own rule.

use crate::address::Address;
use crate::slot::{SLOT_COUNT, Slot};
use crate::topology::{Health, NodeIndex, NodeInfo, Role, Topology, View};

/// What the views agree on; `None` if there is none.
///
/// ```
/// use towline_cluster::agree;
///
/// assert_eq!(agree(&[]), None);
/// ```
pub fn agree(views: &[View]) -> Option<Topology> {
    match views {
        [] => None,
        [view] => Some(view.topology.clone()),
        views => Some(merge(views)),
    }
}

fn merge(views: &[View]) -> Topology {
    let mut merged = Topology::default();
    // For each view: the number in the merged list of each of its nodes.
    let mut numbers: Vec<Vec<usize>> = Vec::with_capacity(views.len());
    let mut reports: Vec<Vec<&NodeInfo>> = Vec::new();
    let mut index = NodeIndex::default();
    for view in views {
        let mut own = Vec::with_capacity(view.topology.nodes.len());
        for node in &view.topology.nodes {
            let is_known = |known: &Vec<&NodeInfo>| known.iter().any(|other| other.is_same(node));
            let known = index.find(node, || reports.iter().position(is_known));
            let at = known.unwrap_or(reports.len());
            match known {
                Some(at) => reports[at].push(node),
                None => {
                    index.insert(node, at);
                    reports.push(vec![node]);
                }
            }
            own.push(at);
        }
        numbers.push(own);
    }
    merged.nodes = reports.iter().map(|reports| describe(reports)).collect();
    let myself: Vec<Option<usize>> =
        views.iter().zip(&numbers).map(|(view, own)| own.get(view.myself?).copied()).collect();
    for slot in 0..SLOT_COUNT as Slot {
        let votes = views.iter().zip(&numbers).zip(&myself).filter_map(|((view, own), myself)| {
            let owner = *own.get(view.topology.slots.owner(slot)?)?;
            Some((owner, *myself == Some(owner)))
        });
        merged.slots.set(slot, elect(votes, &merged.nodes));
    }
    assign_primaries(views, &numbers, &mut merged);
    merged
}

/// The owner of one slot. Each vote names a candidate, and says whether it is the candidate's own.
fn elect(votes: impl Iterator<Item = (usize, bool)>, nodes: &[NodeInfo]) -> Option<usize> {
    struct Candidate {
        node: usize,
        votes: usize,
        claims: bool,
    }
    // Views differ on few slots, and then there are two candidates.
    let mut candidates: Vec<Candidate> = Vec::new();
    for (node, claims) in votes {
        match candidates.iter_mut().find(|candidate| candidate.node == node) {
            Some(candidate) => {
                candidate.votes += 1;
                candidate.claims |= claims;
            }
            None => candidates.push(Candidate { node, votes: 1, claims }),
        }
    }
    if let [only] = candidates.as_slice() {
        return Some(only.node);
    }
    let epoch = |candidate: &Candidate| nodes.get(candidate.node).and_then(|node| node.epoch);
    let has_epochs = candidates.iter().all(|candidate| epoch(candidate).is_some());
    let rank = |candidate: &Candidate| {
        let epoch = epoch(candidate).unwrap_or_default();
        (if has_epochs { epoch } else { 0 }, candidate.votes, candidate.claims, epoch)
    };
    // `max_by_key` takes the last of equals: the first named is looked at last.
    candidates.iter().rev().max_by_key(|candidate| rank(candidate)).map(|candidate| candidate.node)
}

/// One node from what was said of it.
fn describe(reports: &[&NodeInfo]) -> NodeInfo {
    let address = most(reports.iter().filter_map(|node| node.address.as_ref()));
    let mut aliases: Vec<Address> = Vec::new();
    for alias in reports.iter().flat_map(|node| node.address.iter().chain(&node.aliases)) {
        if Some(alias) != address && !aliases.contains(alias) {
            aliases.push(alias.clone());
        }
    }
    let majority = |count: usize| count * 2 > reports.len();
    let replicas = reports.iter().filter(|node| node.role == Role::Replica).count();
    let health = |health| reports.iter().filter(|node| node.health == health).count();
    NodeInfo {
        id: reports.iter().find_map(|node| node.id.clone()),
        address: address.cloned(),
        aliases,
        role: if majority(replicas) { Role::Replica } else { Role::Primary },
        primary: None,
        health: if majority(health(Health::Failed)) {
            Health::Failed
        } else if health(Health::Loading) > 0 {
            Health::Loading
        } else {
            Health::Online
        },
        zone: reports.iter().find_map(|node| node.zone.clone()),
        epoch: reports.iter().filter_map(|node| node.epoch).max(),
    }
}

/// What is named most often; the first of equals.
fn most<'a>(named: impl Iterator<Item = &'a Address> + Clone) -> Option<&'a Address> {
    let count = |address: &Address| named.clone().filter(|other| *other == address).count();
    let mut best: Option<(&Address, usize)> = None;
    for address in named.clone() {
        let count = count(address);
        if best.is_none_or(|(_, most)| count > most) {
            best = Some((address, count));
        }
    }
    best.map(|(address, _)| address)
}

/// Who follows whom, as the first view has it that names a primary which is one.
fn assign_primaries(views: &[View], numbers: &[Vec<usize>], merged: &mut Topology) {
    for (view, own) in views.iter().zip(numbers) {
        for (at, node) in view.topology.nodes.iter().enumerate() {
            let (Some(at), Some(primary)) = (own.get(at), node.primary.and_then(|primary| own.get(primary)))
            else {
                continue;
            };
            let is_replica = |at: usize| merged.nodes[at].role == Role::Replica;
            if merged.nodes[*at].primary.is_none() && is_replica(*at) && !is_replica(*primary) {
                merged.nodes[*at].primary = Some(*primary);
            }
        }
    }
}
