//! Slots that are open, or whose keys are where nobody finds them: what has to be done, and the doing.
//!
//! Owns the cases ([`steps`], a pure function) and their execution. Does not own the decision to do it, which is `fix`'s, or
//! `reshard`'s where only its own interrupted work is to be finished.

use std::collections::BTreeMap;

use bytes::Bytes;
use towline_cluster::{OpenState, Slot};
use towline_cluster_proto::NodeId;
use towline_cluster_proto::plan::Move;

use super::classic::{self, keys_in, set_all};
use super::error::ClusterError;
use super::keys::{KeyMove, Replace};
use super::moving::{Moved, Moving, Stuck};
use super::options::Conflict;
use super::peer::{Words, words};
use super::survey::{Seen, Survey, owners};

/// Keys of a slot that are asked for at a time.
const KEYS_AT_ONCE: u32 = 100;

/// A slot that is not at rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// Whose it is.
    pub(super) owner: Option<NodeId>,
    /// Who gives it away, and to whom.
    pub(super) migrating: Vec<(NodeId, NodeId)>,
    /// Who takes it over.
    pub(super) importing: Vec<NodeId>,
}

/// What brings a slot to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Bring the keys that a node has without owning the slot to who serves them.
    Cold {
        /// Has them.
        from: NodeId,
        /// Is to have them.
        to: NodeId,
    },
    /// Go on with a move.
    Finish {
        /// The owner.
        from: NodeId,
        /// The owner to be.
        to: NodeId,
    },
    /// Take the marks away.
    Stable {
        /// Where.
        node: NodeId,
    },
}

/// All open slots.
pub(super) fn marks(seen: &[&Seen]) -> BTreeMap<Slot, Marks> {
    let owners = owners(seen);
    let mut all: BTreeMap<Slot, Marks> = BTreeMap::new();
    for own in seen.iter().map(|seen| &seen.own) {
        for open in &own.open {
            let marks = all.entry(open.slot).or_default();
            marks.owner = owners[usize::from(open.slot)];
            match open.way {
                OpenState::Migrating => marks.migrating.push((own.id, open.other)),
                OpenState::Importing => marks.importing.push(own.id),
            }
        }
    }
    all
}

/// What to do about a slot; `keys` are those that each node has of it, `None` for nodes that do not answer. Nothing for a slot
/// without owner: it needs one first.
pub(super) fn steps(marks: &Marks, keys: impl Fn(NodeId) -> Option<u64>) -> Vec<Step> {
    let Some(owner) = marks.owner else { return Vec::new() };
    let has_keys = |node: NodeId| keys(node).is_some_and(|keys| keys > 0);
    let target = marks.migrating.iter().find(|(node, _)| *node == owner).map(|(_, to)| *to);
    // A move goes on if both sides know of it, or if it has begun; otherwise it is easier to let it be.
    let goes_on = |to: &NodeId| keys(*to).is_some() && (marks.importing.contains(to) || has_keys(*to));
    let target_alive = target.filter(goes_on);
    let serves = target_alive.unwrap_or(owner);
    let mut holders: Vec<NodeId> = marks.importing.clone();
    holders.extend(marks.migrating.iter().map(|(node, _)| *node));
    holders.sort_unstable();
    holders.dedup();
    let mut steps = Vec::new();
    let mut stable = Vec::new();
    for holder in holders {
        if Some(holder) == target_alive || (holder == owner && target_alive.is_some()) {
            continue;
        }
        if holder != owner && has_keys(holder) {
            steps.push(Step::Cold { from: holder, to: serves });
        }
        stable.push(Step::Stable { node: holder });
    }
    steps.extend(target_alive.map(|to| Step::Finish { from: owner, to }));
    steps.extend(stable);
    steps
}

/// Carries steps out.
#[derive(Debug)]
pub(super) struct Settling<'a, 'b> {
    pub(super) survey: &'a mut Survey,
    pub(super) conflict: Conflict,
    pub(super) moving: &'a mut Moving<'b>,
    /// What came of it.
    pub(super) moved: Moved,
}

impl Settling<'_, '_> {
    /// Keys of a slot at every primary.
    ///
    /// # Errors
    /// The nodes'.
    pub(super) fn keys_of(survey: &mut Survey, slot: Slot) -> Result<BTreeMap<NodeId, u64>, ClusterError> {
        let mut keys = BTreeMap::new();
        for id in survey.primaries() {
            keys.insert(id, survey.count_keys(id, &[slot])?.iter().sum());
        }
        Ok(keys)
    }

    /// Does all steps of a slot; a slot with a key that cannot move keeps its marks.
    ///
    /// # Errors
    /// The nodes'.
    pub(super) fn settle(&mut self, slot: Slot, owner: NodeId, steps: &[Step]) -> Result<(), ClusterError> {
        for step in steps {
            let stuck = self.moved.stuck.len();
            match *step {
                Step::Cold { from, to } => self.cold(slot, owner, from, to)?,
                Step::Finish { from, to } => {
                    let step = Move { from, to, slots: vec![(slot, slot)] };
                    let part = classic::run(self.survey, &[step], self.moving)?;
                    self.moved.slots += part.slots;
                    self.moved.keys += part.keys;
                    self.moved.stuck.extend(part.stuck);
                    self.moved.left.extend(part.left);
                }
                Step::Stable { node } => self.set(node, slot, "STABLE")?,
            }
            if self.moved.stuck.len() > stuck {
                break;
            }
        }
        Ok(())
    }

    fn set(&mut self, node: NodeId, slot: Slot, what: &str) -> Result<(), ClusterError> {
        let errors = set_all(self.survey, node, &[slot], |slot| format!("{slot} {what}"))?;
        if let Some(reason) = errors.into_iter().flatten().next() {
            self.moved.stuck.push(Stuck { slots: vec![(slot, slot)], key: None, reason });
        }
        Ok(())
    }

    /// Brings all keys of a slot from a node that does not own it to one that serves it.
    fn cold(&mut self, slot: Slot, owner: NodeId, from: NodeId, to: NodeId) -> Result<(), ClusterError> {
        // MIGRATE is served locally only where the slot is open, and RESTORE only by the owner or who imports.
        self.set(from, slot, &format!("IMPORTING {owner}"))?;
        if to != owner {
            self.set(to, slot, &format!("IMPORTING {owner}"))?;
        }
        let mut left: Vec<Bytes> = Vec::new();
        let mut last: Vec<Bytes> = Vec::new();
        loop {
            let count = KEYS_AT_ONCE.saturating_add(u32::try_from(left.len()).unwrap_or(u32::MAX));
            let found = keys_in(self.survey, from, &[slot], count)?;
            let keys: Vec<Bytes> = found.into_iter().flatten().filter(|key| !left.contains(key)).collect();
            if keys.is_empty() {
                return Ok(());
            }
            if keys == last {
                let reason = "its node names it again and again, and has nothing to move".to_owned();
                let key = keys.into_iter().next();
                self.moved.stuck.push(Stuck { slots: vec![(slot, slot)], key, reason });
                return Ok(());
            }
            let keys_move = KeyMove { from, to, slot, replace: Replace::IfEqual };
            let mut moved = keys.len();
            for stuck in keys_move.run(self.survey, &keys)? {
                for stuck in self.resolve(&keys_move, stuck)? {
                    moved -= 1;
                    left.extend(stuck.key.clone());
                    self.moved.stuck.push(stuck);
                }
            }
            self.moved.keys += moved as u64;
            last = keys;
        }
    }

    /// A key that both nodes have: what the operator wants; what remains is stuck.
    fn resolve(&mut self, keys_move: &KeyMove, stuck: Stuck) -> Result<Vec<Stuck>, ClusterError> {
        let Some(key) = stuck.key.clone() else { return Ok(vec![stuck]) };
        match self.conflict {
            Conflict::Stop => {
                let from = self.survey.label(keys_move.from);
                let to = self.survey.label(keys_move.to);
                let reason = format!(
                    "{} ({from} and {to}; --conflict owner keeps the one that clients see, --conflict other the other)",
                    stuck.reason
                );
                Ok(vec![Stuck { reason, ..stuck }])
            }
            Conflict::Other => {
                let over = KeyMove { replace: Replace::Always, ..*keys_move };
                over.run(self.survey, std::slice::from_ref(&key))
            }
            Conflict::Owner => {
                let unlink: Words = vec![Bytes::from_static(b"UNLINK"), key];
                let peer = &mut self.survey.node(keys_move.from)?.peer;
                let replies = peer.ask_all(&[words("ASKING"), unlink])?;
                let error = replies.iter().find_map(|frame| frame.as_error());
                Ok(error
                    .map(|text| Stuck { reason: crate::cli::one_line(text), ..stuck })
                    .into_iter()
                    .collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> NodeId {
        NodeId::from_bytes([number; NodeId::BYTES])
    }

    #[test]
    fn a_table_of_open_slots() {
        let (a, b, c) = (id(1), id(2), id(3));
        let stable = |node| Step::Stable { node };
        let cold = |from, to| Step::Cold { from, to };
        let finish = Step::Finish { from: a, to: b };
        type Row = (&'static str, Vec<(NodeId, NodeId)>, Vec<NodeId>, [u64; 3], Vec<Step>);
        // `a` owns the slot; the numbers are the keys of a, b and c.
        let rows: Vec<Row> = vec![
            ("both sides know: go on", vec![(a, b)], vec![b], [5, 0, 0], vec![finish]),
            ("go on, also with nothing to move", vec![(a, b)], vec![b], [0, 0, 0], vec![finish]),
            ("the target forgot and has nothing", vec![(a, b)], vec![], [5, 0, 0], vec![stable(a)]),
            ("the target forgot and has keys", vec![(a, b)], vec![], [5, 1, 0], vec![finish]),
            ("only the target knows, no key", vec![], vec![b], [5, 0, 0], vec![stable(b)]),
            ("only the target knows, and has keys", vec![], vec![b], [5, 2, 0], vec![cold(b, a), stable(b)]),
            ("a third one imports", vec![(a, b)], vec![b, c], [5, 1, 0], vec![finish, stable(c)]),
            (
                "a third one has keys",
                vec![(a, b)],
                vec![b, c],
                [5, 1, 1],
                vec![cold(c, b), finish, stable(c)],
            ),
            ("two import", vec![], vec![b, c], [5, 1, 1], vec![cold(b, a), cold(c, a), stable(b), stable(c)]),
            ("a former owner kept its mark", vec![(c, a)], vec![], [5, 0, 0], vec![stable(c)]),
            ("a former owner kept keys", vec![(c, a)], vec![], [5, 0, 3], vec![cold(c, a), stable(c)]),
            (
                "the owner still imports",
                vec![(c, a)],
                vec![a],
                [5, 0, 3],
                vec![cold(c, a), stable(a), stable(c)],
            ),
        ];
        for (name, migrating, importing, keys, wanted) in rows {
            let marks = Marks { owner: Some(a), migrating, importing };
            let keys = |node| (1..).zip(keys).find(|(number, _)| id(*number) == node).map(|(_, keys)| keys);
            assert_eq!(steps(&marks, keys), wanted, "{name}");
        }
        // The target is gone: nothing can have been acknowledged there that clients still reach.
        let marks = Marks { owner: Some(a), migrating: vec![(a, b)], importing: vec![] };
        assert_eq!(steps(&marks, |_| None), [stable(a)]);
        assert_eq!(steps(&Marks { owner: None, ..marks }, |_| Some(0)), []);
    }
}
