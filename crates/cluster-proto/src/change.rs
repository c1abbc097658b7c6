//! What can happen to a cluster, and what comes of it.

use crate::id::NodeId;
use crate::node::Announced;
use serde::{Deserialize, Serialize};
use towline_cluster::Slot;

/// Inclusive ranges of slots, `(first, last)`, ascending and without overlap; changes with others are refused. As pairs, for they are
/// stored and sent.
pub type Ranges = Vec<(Slot, Slot)>;

/// Slots in any order, each as often as it likes, as ranges that do not touch each other.
pub fn ranges(slots: impl IntoIterator<Item = Slot>) -> Ranges {
    let mut slots: Vec<Slot> = slots.into_iter().collect();
    slots.sort_unstable();
    slots.dedup();
    let mut ranges = Ranges::new();
    for slot in slots {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(slot) => *last = slot,
            _ => ranges.push((slot, slot)),
        }
    }
    ranges
}

/// One entry of the log. Whatever was valid when it was proposed may no longer be when its turn comes: [`crate::Metadata::apply`]
/// decides then, on every node alike.
///
/// Entries are stored and sent with positions for names (postcard): new variants and fields go to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The first entry of each cluster: its name, and the node that founds it.
    Found {
        /// The cluster's name.
        cluster: NodeId,
        /// The founder.
        node: NodeId,
        /// Its shard.
        shard: NodeId,
        /// Where it is.
        at: Announced,
    },
    /// A node that was alone joins, with what it owned. A node that is known already only gets a new address.
    Join {
        /// Its name.
        node: NodeId,
        /// Its shard.
        shard: NodeId,
        /// Where it is.
        at: Announced,
        /// The slots that it owned by itself. Where another node owns one, the higher epoch wins, and with equal ones the other.
        slots: Ranges,
        /// The epoch of that claim.
        config_epoch: u64,
    },
    /// A node is somewhere else than before (restart with another port or address).
    Announce {
        /// Its name.
        node: NodeId,
        /// Where it is now.
        at: Announced,
    },
    /// `CLUSTER ADDSLOTS`, `ADDSLOTSRANGE`: all of them or none.
    AddSlots {
        /// The new owner.
        node: NodeId,
        /// The slots.
        slots: Ranges,
    },
    /// `CLUSTER DELSLOTS`, `DELSLOTSRANGE`: all of them or none, whoever owns them.
    DelSlots {
        /// The slots.
        slots: Ranges,
    },
    /// `CLUSTER FLUSHSLOTS` on a node that holds no keys: it owns nothing any more.
    FlushSlots {
        /// The node.
        node: NodeId,
    },
    /// `CLUSTER SETSLOT slot MIGRATING to`, said to `node`.
    SetMigrating {
        /// The source.
        node: NodeId,
        /// The slot.
        slot: Slot,
        /// The target.
        to: NodeId,
    },
    /// `CLUSTER SETSLOT slot IMPORTING from`, said to `node`.
    SetImporting {
        /// The target.
        node: NodeId,
        /// The slot.
        slot: Slot,
        /// The source.
        from: NodeId,
    },
    /// `CLUSTER SETSLOT slot STABLE`, said to `node`: its markers of the slot are gone.
    SetStable {
        /// The node.
        node: NodeId,
        /// The slot.
        slot: Slot,
    },
    /// `CLUSTER SETSLOT slot NODE owner`, said to `node`. If that is neither the slot's owner nor the new one, nobody becomes its
    /// owner by it unless nobody is.
    SetOwner {
        /// To whom it was said.
        node: NodeId,
        /// The slot.
        slot: Slot,
        /// The new owner.
        owner: NodeId,
        /// Whether `node` held keys of the slot when it was said.
        holds_keys: bool,
    },
    /// `CLUSTER SET-CONFIG-EPOCH`.
    SetConfigEpoch {
        /// The node.
        node: NodeId,
        /// Its epoch from now on.
        epoch: u64,
    },
    /// `CLUSTER BUMPEPOCH`: the node's epoch becomes the highest, if it is not.
    BumpEpoch {
        /// The node.
        node: NodeId,
    },
    /// `CLUSTER FORGET`, said to `by`.
    Forget {
        /// To whom it was said.
        by: NodeId,
        /// Who is to be forgotten.
        node: NodeId,
        /// When it was said, in unix milliseconds: it stays forgotten for a minute.
        now_ms: u64,
    },
    /// `CLUSTER REPLICATE primary`, said to `node`.
    Replicate {
        /// The node, which owns no slots.
        node: NodeId,
        /// Its primary from now on.
        primary: NodeId,
    },
    /// The leader's finding about a node.
    Answers {
        /// The node.
        node: NodeId,
        /// Whether it answers.
        answers: bool,
        /// When it was found, in unix milliseconds.
        now_ms: u64,
    },
    /// `CLUSTER MIGRATESLOTS`: these slots are to move from `source` to `target`. Nothing changes hands yet.
    BeginMigration {
        /// A name for it.
        id: NodeId,
        /// Owns all of the slots.
        source: NodeId,
        /// Another primary.
        target: NodeId,
        /// The slots.
        slots: Ranges,
        /// When, in unix milliseconds.
        now_ms: u64,
    },
    /// The target has everything, and the source has parked the slots: ownership changes. Of this and [`Change::EndMigration`] the first
    /// in the log decides.
    CommitMigration {
        /// Which one.
        id: NodeId,
        /// When, in unix milliseconds.
        now_ms: u64,
    },
    /// It ends without a change of ownership.
    EndMigration {
        /// Which one.
        id: NodeId,
        /// Why.
        end: MigrationEnd,
        /// What is shown to the operator.
        message: String,
        /// When, in unix milliseconds.
        now_ms: u64,
    },
    /// A transaction of the above: each is applied, whatever comes of the ones before; the outcome is [`Outcome::Many`]. One inside
    /// another is refused.
    #[serde(with = "parts")]
    Many(Vec<Self>),
    /// `CLUSTER RESET` on a node: it is no part of the cluster any more, and its slots have no owner. A node that is not known has left.
    Leave {
        /// The node.
        node: NodeId,
        /// When, in unix milliseconds: like one that was forgotten, it may be forgotten for a minute.
        now_ms: u64,
    },
}

/// How a migration ends without success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationEnd {
    /// One of the nodes could not go on.
    Failed,
    /// The operator did not want it any more.
    Cancelled,
}

/// What came of a [`Change`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It holds now, or held before.
    Done,
    /// `CLUSTER BUMPEPOCH`: the node's epoch, and whether it is new.
    Epoch {
        /// The node's epoch.
        epoch: u64,
        /// Whether it was raised.
        is_new: bool,
    },
    /// Nothing changed.
    Refused(Refused),
    /// Of each part of [`Change::Many`].
    #[serde(with = "parts")]
    Many(Vec<Self>),
}

/// Why a change was not made. `Display` is the reply that clients get, with its code. The client's fault, or somebody else was
/// faster; trying the same again is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refused {
    /// The slot has an owner.
    #[error("ERR Slot {0} is already busy")]
    SlotBusy(Slot),
    /// The slot has none.
    #[error("ERR Slot {0} is already unassigned")]
    SlotUnassigned(Slot),
    /// `MIGRATING` on a node that does not own the slot.
    #[error("ERR I'm not the owner of hash slot {0}")]
    NotOwner(Slot),
    /// `IMPORTING` on the node that owns the slot.
    #[error("ERR I'm already the owner of hash slot {0}")]
    AlreadyOwner(Slot),
    /// The node named is not of this cluster (`MIGRATING`, `IMPORTING`).
    #[error("ERR I don't know about node {0}")]
    DoNotKnow(NodeId),
    /// The node named is not of this cluster (everywhere else).
    #[error("ERR Unknown node {0}")]
    UnknownNode(NodeId),
    /// Only primaries own slots.
    #[error("ERR Target node is not a master")]
    NotPrimary,
    /// Said to a replica. Tools compare this text.
    #[error("ERR Please use SETSLOT only with masters.")]
    SaidToReplica,
    /// Giving away a slot that holds keys.
    #[error("ERR Can't assign hashslot {0} to a different node while I still hold keys for this hash slot.")]
    HoldsKeys(Slot),
    /// `SETSLOT` of a slot that a server-driven migration takes away.
    #[error("ERR Slot export in progress.")]
    Exporting,
    /// `SETSLOT` of a slot that a server-driven migration brings.
    #[error("ERR Slot import in progress.")]
    Importing,
    /// Anything else, with its code; said where it is refused.
    #[error("{0}")]
    Other(String),
}

/// A value that may be made of several of its kind, but not of such that are.
trait Compound: Sized {
    /// The number of the compound's variant, with which its encoding begins.
    const MANY: u32;
}

impl Compound for Change {
    const MANY: u32 = 18;
}

impl Compound for Outcome {
    const MANY: u32 = 3;
}

/// The parts of a compound, each encoded by itself. Read as what they are they could be nested as deep as a peer likes, and each level
/// would cost the reader stack.
mod parts {
    use super::Compound;
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(parts: &[T], to: S) -> Result<S::Ok, S::Error> {
        let parts: Result<Vec<Vec<u8>>, _> = parts.iter().map(postcard::to_stdvec).collect();
        parts.map_err(S::Error::custom)?.serialize(to)
    }

    pub(super) fn deserialize<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
    where
        T: Compound + DeserializeOwned,
        D: Deserializer<'de>,
    {
        let parts = Vec::<Vec<u8>>::deserialize(from)?;
        let read = |part: Vec<u8>| {
            // A number has several encodings.
            let (variant, _) = postcard::take_from_bytes::<u32>(&part).map_err(D::Error::custom)?;
            if variant == T::MANY {
                return Err(D::Error::custom("a transaction within another"));
            }
            postcard::from_bytes(&part).map_err(D::Error::custom)
        };
        parts.into_iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compound_within_another_is_not_read() {
        let deep = |levels: usize| {
            (0..levels).fold(Change::BumpEpoch { node: NodeId::from_bytes([1; 20]) }, |inner, _| {
                Change::Many(vec![inner])
            })
        };
        for levels in 0..2 {
            let bytes = postcard::to_stdvec(&deep(levels)).unwrap();
            assert_eq!(postcard::from_bytes::<Change>(&bytes), Ok(deep(levels)));
        }
        let bytes = postcard::to_stdvec(&deep(2)).unwrap();
        assert!(postcard::from_bytes::<Change>(&bytes).is_err());
        let outcome = Outcome::Many(vec![Outcome::Many(vec![Outcome::Done])]);
        let bytes = postcard::to_stdvec(&outcome).unwrap();
        assert!(postcard::from_bytes::<Outcome>(&bytes).is_err());
    }

    #[test]
    fn compounds_are_told_by_their_number_however_it_is_written() {
        let first = |bytes: &[u8]| postcard::take_from_bytes::<u32>(bytes).unwrap().0;
        assert_eq!(first(&postcard::to_stdvec(&Change::Many(vec![])).unwrap()), Change::MANY);
        assert_eq!(first(&postcard::to_stdvec(&Outcome::Many(vec![])).unwrap()), Outcome::MANY);
        // One change whose number is written with a byte more than it needs.
        let bytes = [Change::MANY as u8, 1, 3, Change::MANY as u8 | 0x80, 0, 0];
        assert!(postcard::from_bytes::<Change>(&bytes).is_err());
    }
}
