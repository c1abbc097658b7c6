//! The slot gate: whether this node runs a command, or sends its client elsewhere.
//!
//! Owns the decision, [`decide`], and the texts of its refusals. Does **not** own keys (it asks for them when they matter), nor
//! the connection's flags, nor where a node is: the server writes `MOVED slot host:port` with the endpoint that it prefers.
//!
//! The order of the questions is Redis's (`getNodeByQuery`), for clients see it: an unassigned slot comes before keys in several
//! slots, that before a cluster that is down, and that before everything about open slots.
//!
//! ```text
//! no keys ------------------------------------------> Serve
//! first key's slot has no owner --------------------> Down(Unassigned)
//! keys in several slots ----------------------------> CrossSlot
//! cluster down, and no switch allows it ------------> Down(State | OnlyReads)
//! mine, parked -------------------------------------> Park
//! MIGRATE, open slot -------------------------------> Serve
//! mine, migrating: some keys here / none -----------> TryAgain / Ask
//! mine ---------------------------------------------> Serve
//! importing, ASKING: several keys, some missing ----> TryAgain, else Serve
//! replica of the owner, READONLY, no write ---------> Serve
//! else ---------------------------------------------> Moved
//! ```
//!
//! Source of the rules: Redis Cluster specification, "MOVED Redirection", "ASK redirection", "Multiple keys operations".

use crate::id::NodeId;
use crate::metadata::{Marker, Metadata};
use towline_cluster::Slot;

/// The reply to [`Verdict::TryAgain`].
pub const TRY_AGAIN: &str = "TRYAGAIN Multiple keys request during rehashing of slot";
/// The reply to [`Verdict::CrossSlot`].
pub const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";

/// Whose a slot is, as this node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// No node's.
    Nobody,
    /// This node's.
    Me,
    /// That node's.
    Other(NodeId),
}

/// All that the gate must know of a slot: of the slot of the request's first key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotState {
    /// Who owns it.
    pub owner: Owner,
    /// A tool moves its keys from here to that node.
    pub migrating_to: Option<NodeId>,
    /// A tool moves its keys from that node to here.
    pub importing_from: Option<NodeId>,
    /// It is changing hands as a whole, and until it is known which node owns it nothing on it runs, reads included. Means something only
    /// while this node is the owner: at the source before the hand-over is decided, at the target until what came is in place.
    pub is_parked: bool,
}

impl SlotState {
    /// The slot as node `me` has it by the metadata. Whether it is parked no metadata says.
    pub fn of(metadata: &Metadata, me: NodeId, slot: Slot, is_parked: bool) -> Self {
        let owner = match metadata.owner(slot) {
            None => Owner::Nobody,
            Some(owner) if owner == me => Owner::Me,
            Some(owner) => Owner::Other(owner),
        };
        let (migrating_to, importing_from) = match metadata.marker(me, slot) {
            None => (None, None),
            Some(Marker::MigratingTo(to)) => (Some(to), None),
            Some(Marker::ImportingFrom(from)) => (None, Some(from)),
        };
        Self { owner, migrating_to, importing_from, is_parked }
    }

    /// Whether every command on the slot runs here without another question, while the cluster is up.
    pub fn is_plain(&self) -> bool {
        self.owner == Owner::Me && self.migrating_to.is_none() && !self.is_parked
    }
}

/// The keys of a request, or its shard channels; of `EXEC`, those of all queued commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// It has none.
    None,
    /// All are in one slot.
    Slot {
        /// That slot.
        slot: Slot,
        /// Whether there are at least two that differ. The same key twice is one key.
        are_several: bool,
    },
    /// They are in several slots.
    CrossSlot {
        /// The slot of the first one.
        first: Slot,
    },
}

impl Keys {
    /// The slot whose state [`decide`] wants: the first key's.
    pub fn slot(self) -> Option<Slot> {
        match self {
            Self::None => None,
            Self::Slot { slot, .. } | Self::CrossSlot { first: slot } => Some(slot),
        }
    }
}

/// A command, or all commands of a transaction, and what matters of the client that sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Its keys.
    pub keys: Keys,
    /// `ASKING` was said right before, or the command implies it (`RESTORE-ASKING`).
    pub is_asking: bool,
    /// It is `MIGRATE`.
    pub is_migrate: bool,
    /// The client said `READONLY`.
    pub is_readonly_client: bool,
    /// It, or one of the transaction, may write.
    pub writes: bool,
    /// `keys` are shard channels: they have no values, so it never matters whether they exist.
    pub is_shard_channel: bool,
}

/// What matters of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeState {
    /// The cluster serves: a quorum was heard of, and all slots are covered if they must be.
    pub is_cluster_ok: bool,
    /// `cluster-allow-reads-when-down`.
    pub allows_reads_when_down: bool,
    /// `cluster-allow-pubsubshard-when-down`.
    pub allows_shard_pubsub_when_down: bool,
    /// The node whose data this node has and keeps current. `None` for a replica that has none: it sends all clients to the owner.
    pub replicates: Option<NodeId>,
}

/// How many of a request's keys this node holds. A key that is logically expired is missing; one that is named twice counts twice, which
/// changes nothing. Looking must not touch statistics or access times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Present {
    /// Keys that exist here.
    pub existing: usize,
    /// Keys that do not.
    pub missing: usize,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs here.
    Serve,
    /// `MOVED`: that node owns the slot.
    Moved(Slot, NodeId),
    /// `ASK`: the keys are at that node already.
    Ask(Slot, NodeId),
    /// [`TRY_AGAIN`]: some of the keys are here, others at the other node.
    TryAgain,
    /// [`CROSS_SLOT`].
    CrossSlot,
    /// `CLUSTERDOWN`.
    Down(Down),
    /// It waits until the slot is no longer parked, and then the gate is asked again.
    Park,
}

/// Why nobody serves a request. `Display` is the reply, with its code. The environment's fault; retryable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Down {
    /// The slot has no owner.
    #[error("CLUSTERDOWN Hash slot not served")]
    Unassigned,
    /// The cluster is down.
    #[error("CLUSTERDOWN The cluster is down")]
    State,
    /// The cluster is down, and the configuration lets only readers in.
    #[error("CLUSTERDOWN The cluster is down and only accepts read commands")]
    OnlyReads,
}

/// Whether this node runs the request. `slot` is the state of the first key's slot ([`Keys::slot`]); it is not looked at if there are no
/// keys. `present` is called at most once, and only if the answer depends on it; the caller holds the slot's lock from before the call
/// until the command has run, or the answer is worth nothing.
pub fn decide(
    request: &Request,
    slot: &SlotState,
    node: &NodeState,
    present: impl FnOnce() -> Present,
) -> Verdict {
    let Some(first) = request.keys.slot() else { return Verdict::Serve };
    if slot.owner == Owner::Nobody {
        return Verdict::Down(Down::Unassigned);
    }
    let Keys::Slot { are_several, .. } = request.keys else { return Verdict::CrossSlot };
    if let Some(down) = down(request, node) {
        return Verdict::Down(down);
    }
    if slot.owner == Owner::Me && slot.is_parked {
        return Verdict::Park;
    }
    let is_open = slot.importing_from.is_some() || (slot.owner == Owner::Me && slot.migrating_to.is_some());
    if request.is_migrate && is_open && node.replicates.is_none() {
        return Verdict::Serve;
    }
    let owner = match slot.owner {
        Owner::Other(owner) => owner,
        Owner::Me | Owner::Nobody => return decide_mine(request, first, slot.migrating_to, present),
    };
    if slot.importing_from.is_some() && request.is_asking {
        // With one key the client may create it here; with several it cannot know where the missing ones are.
        let needs_all = are_several && !request.is_shard_channel;
        return if needs_all && present().missing > 0 { Verdict::TryAgain } else { Verdict::Serve };
    }
    let may_read = request.is_readonly_client || request.is_shard_channel;
    if node.replicates == Some(owner) && may_read && !request.writes {
        return Verdict::Serve;
    }
    Verdict::Moved(first, owner)
}

fn decide_mine(
    request: &Request,
    slot: Slot,
    migrating_to: Option<NodeId>,
    present: impl FnOnce() -> Present,
) -> Verdict {
    let Some(to) = migrating_to.filter(|_| !request.is_shard_channel) else { return Verdict::Serve };
    match present() {
        Present { missing: 0, .. } => Verdict::Serve,
        Present { existing: 0, .. } => Verdict::Ask(slot, to),
        Present { .. } => Verdict::TryAgain,
    }
}

fn down(request: &Request, node: &NodeState) -> Option<Down> {
    if node.is_cluster_ok {
        return None;
    }
    if request.is_shard_channel {
        return (!node.allows_shard_pubsub_when_down).then_some(Down::State);
    }
    match (node.allows_reads_when_down, request.writes) {
        (false, _) => Some(Down::State),
        (true, true) => Some(Down::OnlyReads),
        (true, false) => None,
    }
}

#[cfg(test)]
mod tests;
