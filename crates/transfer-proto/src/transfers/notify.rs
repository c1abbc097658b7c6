//! Notifications: small messages that follow the bytes.
//!
//! Owns: the sender's queue for one peer ([`Outbox`]) and the receiver's ([`Inbox`]). Does **not** own the decision when
//! one is sent: a batch has one, which leaves when its last byte is applied ([`super::Event::Notify`]).
//!
//! * **At least once, delivered once.** What is not acknowledged is sent again on the next link; the receiver knows each
//!   sender's last number and drops what it has.
//! * **In order** for each pair of processes: a receiver takes only the next number.
//! * **Bounded on both ends.** A sender that finds no room is told so before its batch begins; a receiver without room
//!   acknowledges nothing, and the sender's queue fills up.
//! * A number counts for two lives: when the receiver restarts, what it has not acknowledged is numbered anew from 1, for
//!   the new life knows nothing of the old one's.

use std::collections::{BTreeMap, VecDeque};

use crate::guards::Guards;
use crate::identity::{Incarnation, NodeId, Process};

/// The bounds of an [`Outbox`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboxConfig {
    /// Notifications that are reserved or not acknowledged. Default 1,024.
    pub count_max: usize,
    /// Their bytes. Default 1 MiB.
    pub bytes_max: usize,
}

impl Default for OutboxConfig {
    fn default() -> Self {
        Self { count_max: 1_024, bytes_max: 1 << 20 }
    }
}

/// No room for one more notification to this peer. Retryable when some are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{count} notifications to this peer are not acknowledged")]
pub struct OutboxFull {
    /// How many.
    pub count: usize,
}

/// A notification on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Its number, from 1, for this sender's life and this receiver's.
    pub number: u64,
    /// What it says.
    pub payload: Vec<u8>,
}

/// The notifications to one peer.
#[derive(Debug)]
pub struct Outbox {
    config: OutboxConfig,
    receiver: Option<Incarnation>,
    /// The number of the front of `waiting`.
    first: u64,
    waiting: VecDeque<Vec<u8>>,
    /// How many of `waiting` went out on the present link.
    sent: usize,
    reserved: usize,
    bytes: usize,
}

impl Outbox {
    /// Nothing to say yet.
    pub fn new(config: OutboxConfig) -> Self {
        Self { config, receiver: None, first: 1, waiting: VecDeque::new(), sent: 0, reserved: 0, bytes: 0 }
    }

    /// Holds room for a notification of so many bytes, before its batch begins.
    ///
    /// # Errors
    /// There is none.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), OutboxFull> {
        let count = self.waiting.len() + self.reserved;
        let fits = count < self.config.count_max
            && self.bytes.checked_add(bytes).is_some_and(|bytes| bytes <= self.config.bytes_max);
        if !fits {
            return Err(OutboxFull { count });
        }
        self.reserved += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Its batch failed: the room is free again.
    pub fn release(&mut self, bytes: usize) {
        self.reserved = self.reserved.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Its batch is complete: a notification for which room is held.
    pub fn push(&mut self, payload: Vec<u8>) {
        self.reserved = self.reserved.saturating_sub(1);
        self.waiting.push_back(payload);
    }

    /// There is a link to the receiver in this life. What is not acknowledged goes out again.
    pub fn link_up(&mut self, receiver: Incarnation) {
        self.sent = 0;
        if self.receiver != Some(receiver) {
            self.receiver = Some(receiver);
            self.first = 1;
        }
    }

    /// The next one to send on the present link.
    pub fn poll(&mut self) -> Option<Notification> {
        let payload = self.waiting.get(self.sent)?.clone();
        let number = self.first + self.sent as u64;
        self.sent += 1;
        Some(Notification { number, payload })
    }

    /// The receiver has everything up to this number. Numbers that were not sent are ignored.
    pub fn acknowledged(&mut self, number: u64) {
        while self.sent > 0 && self.first <= number {
            let Some(payload) = self.waiting.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(payload.len());
            self.first += 1;
            self.sent -= 1;
        }
    }

    /// Notifications that are not acknowledged.
    pub fn count(&self) -> usize {
        self.waiting.len()
    }
}

/// The bounds of an [`Inbox`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxConfig {
    /// Notifications that nobody has taken. Default 4,096.
    pub count_max: usize,
    /// Their bytes. Default 4 MiB.
    pub bytes_max: usize,
    /// Senders that are remembered; beyond, notifications of others are not taken. Default 65,536.
    pub senders_max: usize,
}

impl Default for InboxConfig {
    fn default() -> Self {
        Self { count_max: 4_096, bytes_max: 4 << 20, senders_max: 65_536 }
    }
}

/// What became of a notification that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Delivery {
    /// It is the next one: acknowledge its number.
    Taken,
    /// It was taken before: acknowledge this number.
    Repeated {
        /// The last number that was taken.
        last: u64,
    },
    /// One before it is missing, or it is of an earlier life. Say nothing: the sender sends again in order.
    OutOfOrder,
    /// No room. Say nothing: the sender keeps it.
    Full,
}

/// The notifications of all peers.
#[derive(Debug)]
pub struct Inbox {
    config: InboxConfig,
    guards: Guards,
    last: BTreeMap<NodeId, (Incarnation, u64)>,
    waiting: VecDeque<(Process, Vec<u8>)>,
    bytes: usize,
}

impl Inbox {
    /// Nothing came yet.
    pub fn new(config: InboxConfig) -> Self {
        Self { config, guards: Guards::ALL, last: BTreeMap::new(), waiting: VecDeque::new(), bytes: 0 }
    }

    /// Switches rules off. For tests that must fail without them.
    #[must_use]
    pub fn with_guards(mut self, guards: Guards) -> Self {
        self.guards = guards;
        self
    }

    /// One came.
    pub fn received(&mut self, from: Process, notification: Notification) -> Delivery {
        let Notification { number, payload } = notification;
        let (life, last) = self.last.get(&from.node).copied().unwrap_or((from.incarnation, 0));
        let last = match life.cmp(&from.incarnation) {
            std::cmp::Ordering::Greater => return Delivery::OutOfOrder,
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => last,
        };
        if number <= last && self.guards.dedupe {
            return Delivery::Repeated { last };
        }
        if number > last + 1 {
            return Delivery::OutOfOrder;
        }
        let has_room = self.waiting.len() < self.config.count_max
            && self.bytes.saturating_add(payload.len()) <= self.config.bytes_max
            && (self.last.len() < self.config.senders_max || self.last.contains_key(&from.node));
        if !has_room {
            return Delivery::Full;
        }
        self.last.insert(from.node, (from.incarnation, number));
        self.bytes += payload.len();
        self.waiting.push_back((from, payload));
        Delivery::Taken
    }

    /// Takes the oldest.
    pub fn take(&mut self) -> Option<(Process, Vec<u8>)> {
        let (from, payload) = self.waiting.pop_front()?;
        self.bytes -= payload.len();
        Some((from, payload))
    }
}
