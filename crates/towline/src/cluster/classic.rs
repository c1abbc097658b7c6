//! Slots moved key by key: `SETSLOT`, `GETKEYSINSLOT` and `MIGRATE`.
//!
//! ```text
//! target IMPORTING -> source MIGRATING -> (GETKEYSINSLOT, MIGRATE)* -> COUNTKEYSINSLOT = 0 -> NODE: target, source, others
//! ```
//!
//! Owns the order of these steps, and the promise that a slot which still has a key at its source keeps its owner. Several slots
//! are open at once, so that their bookkeeping shares round trips and, at the servers, writes of their configuration. `MIGRATE`s go one by one: a
//! single-threaded server would run a pipeline of them without a look at anybody else.
//!
//! Whatever ends this tool, the cluster shows what is open, and every step may be repeated.

use bytes::Bytes;
use towline_cluster::Slot;
use towline_cluster_proto::plan::{self, Move};
use towline_cluster_proto::{NodeId, Ranges};
use towline_resp::frame::Frame;

use super::error::ClusterError;
use super::keys::{KeyMove, Replace};
use super::moving::{Moved, Moving, Pace, Stuck};
use super::peer::{Words, text_of, words};
use super::survey::Survey;
use crate::cli::one_line;

/// Slots that are open at once, unless said otherwise.
const BATCH_SLOTS: u16 = 32;

/// Slots that are open at once at most: each of them may cost clients a redirect.
const BATCH_SLOTS_MAX: u16 = 128;

/// Keys that are in the slots that are open at once, as far as more than one is: it bounds what an interruption waits for.
const BATCH_KEYS_MAX: u64 = 10_000;

/// What a replica says to SETSLOT. A source that gave its last slot away may have become one.
const IS_REPLICA: &str = "Please use SETSLOT only with masters";

/// Rounds without progress after which a slot is given up: its node names keys and does not have them.
const IDLE_ROUNDS_MAX: u32 = 3;

/// Carries the moves out; after Ctrl-C it ends with the slots that are open.
///
/// # Errors
/// The nodes'. What could not move is no error but part of the outcome.
pub(super) fn run(
    survey: &mut Survey,
    moves: &[Move],
    moving: &mut Moving<'_>,
) -> Result<Moved, ClusterError> {
    let mut moved = Moved::default();
    let mut pace = Pace::new(moving.how.rate);
    let slots_max = usize::from(moving.how.batch.unwrap_or(BATCH_SLOTS).min(BATCH_SLOTS_MAX));
    for step in moves {
        let slots: Vec<Slot> = plan::each(&step.slots).collect();
        let mut rest = slots.as_slice();
        while !rest.is_empty() {
            if moving.stop.is_asked() || !moved.stuck.is_empty() {
                moved.left.push(Move { slots: plan::ranges_of(rest.iter().copied()), ..step.clone() });
                break;
            }
            let length = batch_len(rest, slots_max, |slot| moving.keys_of(&[slot]));
            let (batch, after) = rest.split_at(length);
            let mut open = Opened { survey, from: step.from, to: step.to, moving, pace: &mut pace };
            open.run(batch, &mut moved)?;
            moving.progress.at(&moved);
            rest = after;
        }
    }
    moved.is_interrupted = moving.stop.is_asked() && !moved.left.is_empty();
    Ok(moved)
}

/// How many slots from the front are opened together: at least one.
fn batch_len(slots: &[Slot], slots_max: usize, keys_of: impl Fn(Slot) -> u64) -> usize {
    let mut keys = 0;
    let fits = |slot: &&Slot| {
        keys += keys_of(**slot);
        keys <= BATCH_KEYS_MAX
    };
    slots.iter().take(slots_max).take_while(fits).count().max(1).min(slots.len())
}

/// Slots between two nodes.
struct Opened<'a, 'b> {
    survey: &'a mut Survey,
    from: NodeId,
    to: NodeId,
    moving: &'a mut Moving<'b>,
    pace: &'a mut Pace,
}

impl Opened<'_, '_> {
    fn run(&mut self, slots: &[Slot], moved: &mut Moved) -> Result<(), ClusterError> {
        // Before anything is opened: what the target has of a slot that it does not import cannot be from this move.
        let had = self.survey.count_keys(self.to, slots)?;
        let was_empty: Vec<Slot> =
            slots.iter().zip(had).filter(|(_, keys)| *keys == 0).map(|(slot, _)| *slot).collect();
        let slots = self.open(slots, moved)?;
        let slots = self.drain(slots, &was_empty, moved)?;
        let slots = self.only_empty(slots, moved)?;
        self.close(&slots)?;
        moved.slots += slots.len();
        Ok(())
    }

    /// Opens the slots at both nodes; those that were refused are stuck.
    fn open(&mut self, slots: &[Slot], moved: &mut Moved) -> Result<Vec<Slot>, ClusterError> {
        let from = self.from;
        let importing = set_all(self.survey, self.to, slots, |slot| format!("{slot} IMPORTING {from}"))?;
        let slots = sort_out(slots, importing, moved);
        let to = self.to;
        let migrating = set_all(self.survey, self.from, &slots, |slot| format!("{slot} MIGRATING {to}"))?;
        let refused: Vec<Slot> = slots
            .iter()
            .zip(&migrating)
            .filter(|(_, error)| error.is_some())
            .map(|(slot, _)| *slot)
            .collect();
        set_all(self.survey, self.to, &refused, |slot| format!("{slot} STABLE"))?;
        Ok(sort_out(&slots, migrating, moved))
    }

    /// Moves keys until the source has none that can move; slots with one that cannot are stuck, and stay open.
    fn drain(
        &mut self,
        mut slots: Vec<Slot>,
        was_empty: &[Slot],
        moved: &mut Moved,
    ) -> Result<Vec<Slot>, ClusterError> {
        let mut drained = Vec::with_capacity(slots.len());
        let mut last: Vec<(Slot, Vec<Bytes>, u32)> = Vec::new();
        while !slots.is_empty() {
            let found = keys_in(self.survey, self.from, &slots, self.moving.how.pipeline)?;
            let mut again = Vec::new();
            for (slot, keys) in slots.into_iter().zip(found) {
                if keys.is_empty() {
                    drained.push(slot);
                    continue;
                }
                let before = last.iter().find(|(known, named, _)| *known == slot && *named == keys);
                let rounds = before.map_or(0, |(.., rounds)| rounds + 1);
                if rounds > IDLE_ROUNDS_MAX {
                    let reason = "its node names it again and again, and has nothing to move".to_owned();
                    moved.stuck.push(Stuck { slots: vec![(slot, slot)], key: keys.first().cloned(), reason });
                    continue;
                }
                let is_ours = self.moving.how.replace || was_empty.contains(&slot);
                let replace = if is_ours { Replace::Always } else { Replace::IfEqual };
                let keys_move = KeyMove { from: self.from, to: self.to, slot, replace };
                let stuck = keys_move.run(self.survey, &keys)?;
                let count = (keys.len() - stuck.len()) as u64;
                if rounds == 0 {
                    moved.keys += count;
                }
                self.pace.wait(count);
                self.moving.progress.at(moved);
                if stuck.is_empty() {
                    last.retain(|(known, ..)| *known != slot);
                    last.push((slot, keys, rounds));
                    again.push(slot);
                }
                moved.stuck.extend(stuck);
            }
            slots = again;
        }
        drained.sort_unstable();
        Ok(drained)
    }

    /// The slots of which the source has no key, by its own count: only those may change hands.
    fn only_empty(&mut self, slots: Vec<Slot>, moved: &mut Moved) -> Result<Vec<Slot>, ClusterError> {
        let counts = self.survey.count_keys(self.from, &slots)?;
        let mut empty = Vec::with_capacity(slots.len());
        for (slot, keys) in slots.into_iter().zip(counts) {
            if keys == 0 {
                empty.push(slot);
            } else {
                let reason = format!("the source still counts {keys} keys and names none of them");
                moved.stuck.push(Stuck { slots: vec![(slot, slot)], key: None, reason });
            }
        }
        Ok(empty)
    }

    /// Tells everybody about the new owner: first the target, which then serves, then the source, then the others.
    fn close(&mut self, slots: &[Slot]) -> Result<(), ClusterError> {
        let to = self.to;
        let told = |slot: Slot| format!("{slot} NODE {to}");
        let command = |slot: &Slot| set_slot(&told(*slot));
        for node in [self.to, self.from] {
            let errors = set_all(self.survey, node, slots, told)?;
            let matters = |error: &String| node == to || !error.contains(IS_REPLICA);
            let mut refused = slots.iter().zip(errors).filter_map(|(slot, error)| Some((slot, error?)));
            if let Some((slot, error)) = refused.find(|(_, error)| matters(error)) {
                let peer = &self.survey.node(node)?.peer;
                return Err(peer.refused(&command(slot), error.as_bytes()));
            }
        }
        let others: Vec<NodeId> =
            self.survey.primaries().into_iter().filter(|id| ![self.from, self.to].contains(id)).collect();
        for other in others {
            // It hears of it from the target as well; this is only sooner.
            let _ = set_all(self.survey, other, slots, told);
        }
        Ok(())
    }
}

fn set_slot(text: &str) -> Words {
    words(&format!("CLUSTER SETSLOT {text}"))
}

/// Says `CLUSTER SETSLOT` about each slot to one node; the error of each, where there is one.
///
/// # Errors
/// The node's.
pub(super) fn set_all(
    survey: &mut Survey,
    node: NodeId,
    slots: &[Slot],
    text: impl Fn(Slot) -> String,
) -> Result<Vec<Option<String>>, ClusterError> {
    let commands: Vec<Words> = slots.iter().map(|slot| set_slot(&text(*slot))).collect();
    let replies = survey.node(node)?.peer.ask_changes(&commands)?;
    Ok(replies.iter().map(|frame| frame.as_error().map(|text| one_line(text))).collect())
}

/// The slots without an error; the others are stuck.
fn sort_out(slots: &[Slot], errors: Vec<Option<String>>, moved: &mut Moved) -> Vec<Slot> {
    let mut accepted = Vec::with_capacity(slots.len());
    for (slot, error) in slots.iter().zip(errors) {
        match error {
            None => accepted.push(*slot),
            Some(reason) => {
                let slots: Ranges = vec![(*slot, *slot)];
                moved.stuck.push(Stuck { slots, key: None, reason });
            }
        }
    }
    accepted
}

/// Some keys of each slot, at most `count`.
///
/// # Errors
/// The node's.
pub(super) fn keys_in(
    survey: &mut Survey,
    node: NodeId,
    slots: &[Slot],
    count: u32,
) -> Result<Vec<Vec<Bytes>>, ClusterError> {
    let commands: Vec<Words> =
        slots.iter().map(|slot| words(&format!("CLUSTER GETKEYSINSLOT {slot} {count}"))).collect();
    let peer = &mut survey.node(node)?.peer;
    let replies = peer.ask_all(&commands)?;
    let keys = |(frame, command): (Frame, &Words)| match frame {
        Frame::Array(keys) => Ok(keys.iter().filter_map(|key| text_of(key).cloned()).collect()),
        frame => Err(match frame.as_error() {
            Some(text) => peer.refused(command, text),
            None => peer.unexpected(command),
        }),
    };
    replies.into_iter().zip(&commands).map(keys).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_are_open_at_once() {
        let slots: Vec<Slot> = (0..100).collect();
        assert_eq!(batch_len(&slots, 32, |_| 0), 32);
        assert_eq!(batch_len(&slots[..5], 32, |_| 0), 5);
        assert_eq!(batch_len(&slots, 32, |_| BATCH_KEYS_MAX / 4), 4);
        assert_eq!(batch_len(&slots, 32, |_| BATCH_KEYS_MAX * 4), 1);
    }
}
