//! One queue pair, and what is posted to it.

use std::collections::VecDeque;

use crate::identity::{Psn, Qpn};

use super::{CardId, FabricError, RemoteKey};

/// The states that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueuePairState {
    /// New: nothing is accepted (RESET and INIT of verbs).
    New,
    /// It receives and acknowledges (RTR).
    Receive,
    /// It also sends (RTS).
    Send,
    /// Of no use any more (ERR).
    Error,
}

/// Where in a peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteAddress {
    /// The region.
    pub key: RemoteKey,
    /// Bytes from its start.
    pub offset: u64,
}

/// What a work request does. Without bytes it touches no memory and shows that the path works.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Puts these bytes there.
    Write {
        /// The bytes.
        data: Vec<u8>,
        /// Where to.
        to: RemoteAddress,
    },
    /// Brings so many bytes from there.
    Read {
        /// How many.
        length: u64,
        /// Where from.
        from: RemoteAddress,
    },
}

impl Operation {
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Write { data, .. } => data.len() as u64,
            Self::Read { length, .. } => *length,
        }
    }

    /// Bytes that the requester sends.
    pub(super) fn outgoing(&self) -> u64 {
        match self {
            Self::Write { data, .. } => data.len() as u64,
            Self::Read { .. } => 0,
        }
    }

    pub(super) fn remote(&self) -> RemoteAddress {
        match self {
            Self::Write { to: address, .. } | Self::Read { from: address, .. } => *address,
        }
    }
}

/// A work request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Comes back in its completion.
    pub id: u64,
    /// What to do.
    pub operation: Operation,
}

/// How a work request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Done at the far end.
    Done,
    /// "Transport retry counter exceeded": nobody answered. Whether it was done is not known.
    RetryExceeded,
    /// The far end refused it.
    RemoteAccess,
    /// The queue pair failed before its turn was over. Whether it was done is not known.
    Flushed,
}

/// The end of a work request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The queue pair it was posted to.
    pub qpn: Qpn,
    /// Its [`Work::id`].
    pub id: u64,
    /// How it ended.
    pub status: Status,
    /// What was read.
    pub data: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) work: Work,
    pub(super) psn: Psn,
    pub(super) packets: u32,
}

#[derive(Debug)]
pub(super) struct QueuePairCore {
    pub(super) state: QueuePairState,
    pub(super) counterpart: Option<(CardId, Qpn)>,
    pub(super) send_psn: Psn,
    pub(super) expect_psn: Psn,
    first_psn: Psn,
    pub(super) pending: VecDeque<Pending>,
    pub(super) retries: u32,
    /// Grows whenever the timer is set anew: earlier timers are void.
    pub(super) epoch: u64,
}

impl QueuePairCore {
    pub(super) fn new(psn: Psn) -> Self {
        Self {
            state: QueuePairState::New,
            counterpart: None,
            send_psn: psn,
            expect_psn: Psn::new(0),
            first_psn: Psn::new(0),
            pending: VecDeque::new(),
            retries: 0,
            epoch: 0,
        }
    }

    pub(super) fn receive_from(&mut self, counterpart: (CardId, Qpn), psn: Psn) -> Result<(), FabricError> {
        if self.state != QueuePairState::New {
            return Err(FabricError::WrongState { state: self.state });
        }
        self.state = QueuePairState::Receive;
        self.counterpart = Some(counterpart);
        (self.expect_psn, self.first_psn) = (psn, psn);
        Ok(())
    }

    pub(super) fn start_sending(&mut self) -> Result<(), FabricError> {
        if self.state != QueuePairState::Receive {
            return Err(FabricError::WrongState { state: self.state });
        }
        self.state = QueuePairState::Send;
        Ok(())
    }

    pub(super) fn may_receive(&self) -> bool {
        matches!(self.state, QueuePairState::Receive | QueuePairState::Send)
    }

    /// Whether the number lies between the first and the next expected one, within half of all numbers.
    pub(super) fn was_received(&self, psn: Psn) -> bool {
        let distance = |from: Psn, to: Psn| to.get().wrapping_sub(from.get()) % Psn::MODULUS;
        let received = distance(self.first_psn, self.expect_psn).min(Psn::MODULUS / 2);
        let back = distance(psn, self.expect_psn);
        back > 0 && back <= received
    }

    /// Which pending request an acknowledgement is for.
    pub(super) fn position_of(&self, psn: Psn) -> Option<usize> {
        if self.state != QueuePairState::Send {
            return None;
        }
        self.pending.iter().position(|pending| pending.psn == psn)
    }
}
