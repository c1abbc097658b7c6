//! What is subscribed, and what should be.
//!
//! Owns, for one connection of an endpoint, the desired subscriptions (who wants which channel), the actual ones (what
//! the server has confirmed on this connection), the commands that make the latter equal to the former, and the
//! meaning of pushes. [`Outbox`] is one subscriber's bounded queue. Does not own streams, wakers, the routing of shard
//! channels to nodes, nor other kinds of pushes, which it hands back.
//!
//! ```text
//!             command sent              confirmed
//!    Absent ---------------> Subscribing ---------> Active --+ command sent
//!      ^  ^                      | refused            |      v
//!      |  +--- next connection --+-- Refused          |  Unsubscribing
//!      |                                              |      |
//!      +----------- taken away by the server ---------+      |
//!      +----------------------- confirmed -------------------+
//! ```
//!
//! Every name has at most one command under way; what its subscribers do meanwhile is looked at when that is settled.
//! So any history ends with the actual equal to the desired state.
//!
//! `SUBSCRIBE` of N names has no reply but N pushes, or one error. Replies are therefore never matched by taking
//! commands off the in-flight queue: each command is one *batch* with a `PING` behind it as a fence. Confirmations
//! count by name; whatever the fence finds unconfirmed was refused. Without the fence the error of an `SUNSUBSCRIBE`
//! that crosses a removal by the server (a slot has moved) could be taken for the next command's.
//!
//! While the endpoint moves there is one of it for each of two connections: [`Subscriptions::mirror`] is the second, which
//! at the end [`Subscriptions::inherit`]s who wants what.

mod mirror;
mod outbox;
mod push;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{BufMut, Bytes};
use towline_resp::frame::{Frame, encode_command};

use crate::generation::Generation;
use crate::server_error::{ServerClass, ServerError};

pub use mirror::Inherited;
pub use outbox::{ITEM_OVERHEAD_BYTES, Item, Lagged, Outbox, Overflow, Overlap};
pub use push::{Kind, Message, take_push};
use push::{PubSub, parse};

/// Most names in one command: keeps the time that a server spends in one below a millisecond.
pub const NAMES_PER_COMMAND_MAX: usize = 512;

/// Bytes of names after which a command takes no further one, so that it fits a read buffer of the server.
pub const NAME_BYTES_PER_COMMAND_MAX: usize = 16 * 1024;

/// Most names that are subscribed at a time, by default: some 200 MiB of bookkeeping, and more than a server likes.
pub const NAMES_MAX: usize = 1 << 20;

/// The first part of the names of channels that this client publishes to on its own account, when its subscriptions move
/// to another connection. What is published to such a channel is never shown to a subscriber, whatever pattern it came by.
pub const MARKER_PREFIX: &str = "__towline:handoff:";

/// Who subscribes; unique within a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriberId(pub u64);

/// Desired and actual subscriptions of one endpoint.
#[derive(Debug)]
pub struct Subscriptions {
    names_max: usize,
    entries: BTreeMap<(Kind, Bytes), Entry>,
    by_subscriber: BTreeMap<SubscriberId, BTreeSet<(Kind, Bytes)>>,
    /// The connection, while there is one.
    generation: Option<Generation>,
    /// Names whose state may differ from what is desired.
    queue: VecDeque<(Kind, Bytes)>,
    /// Batches without their fence's reply, oldest first.
    batches: VecDeque<Batch>,
    batch_count: u64,
    unknown_count: u64,
}

#[derive(Debug, Default)]
struct Entry {
    /// The value says whether the subscription was confirmed to this subscriber, on this connection or an earlier one.
    subscribers: BTreeMap<SubscriberId, bool>,
    state: State,
    /// The connection on which it was last active.
    active_in: Generation,
    is_queued: bool,
    /// The batch that last had this name. An older one's fence says nothing about it.
    batch: u64,
    /// It gets a command of its own: one with other names was refused, perhaps because of one of those.
    is_alone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Absent,
    Subscribing,
    Active,
    Unsubscribing,
    Refused,
}

/// One command and its fence.
#[derive(Debug)]
struct Batch {
    number: u64,
    kind: Kind,
    /// `Subscribing` or `Unsubscribing`.
    state: State,
    names: Vec<Bytes>,
    token: Bytes,
    refusal: Option<ServerError>,
}

/// How a new subscription stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subscribed {
    /// The server has confirmed it already, to another subscriber or to this one.
    Active,
    /// A confirmation follows, see [`PushEvent::Confirmed`].
    Pending,
}

/// There are as many names as there may be. The caller's mistake, or its load; not retryable until some are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {max} names subscribed")]
pub struct TooManyNames {
    /// The bound.
    pub max: usize,
}

/// What a push means.
#[derive(Debug, Clone, PartialEq)]
pub enum PushEvent {
    /// For [`Subscriptions::subscribers`] of the message's subscription.
    Message(Message),
    /// The server has confirmed a subscription.
    Confirmed(Confirmed),
    /// The server has ended a subscription.
    Removed {
        /// What kind of name.
        kind: Kind,
        /// The name.
        name: Bytes,
        /// Whether this client asked for it. If not (a slot has moved) it subscribes again.
        is_asked_for: bool,
    },
    /// Nobody wants it; dropped and counted.
    Unknown,
    /// Not a matter of subscriptions: the push itself.
    Other(Vec<Frame>),
}

/// A confirmation, and whom it concerns how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed {
    /// What kind of name.
    pub kind: Kind,
    /// The name.
    pub name: Bytes,
    /// Subscribers whose first confirmation this is.
    pub new: Vec<SubscriberId>,
    /// Subscribers that had been confirmed before and may have missed messages: each gets this marker, once, before any
    /// further message.
    pub gaps: Vec<SubscriberId>,
    /// The marker for those.
    pub gap: Gap,
}

/// Messages of one subscription may have been lost here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// What kind of name.
    pub kind: Kind,
    /// The name.
    pub name: Bytes,
    /// The connection that the messages before the gap came from.
    pub from: Generation,
    /// The one that those after it come from. The same as `from` if the server ended the subscription for a while.
    pub to: Generation,
}

/// A subscription that the server refused, or would not end for now (no subscribers then). It is tried again on the
/// next connection, or on [`Subscriptions::retry_refused`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What kind of name.
    pub kind: Kind,
    /// The name.
    pub name: Bytes,
    /// Why. `MOVED` asks for another node, `NOPERM` for a permission.
    pub error: ServerError,
    /// Its subscribers.
    pub subscribers: Vec<SubscriberId>,
}

/// What a reply to a batch means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchReply {
    /// Another reply to the same batch follows.
    NeedMore,
    /// The batch is over: take it off the in-flight queue. What it could not subscribe is listed.
    Done(Vec<Refused>),
    /// The reply cannot belong to a batch; close the connection.
    Misaligned,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self::new(NAMES_MAX)
    }
}

impl Subscriptions {
    /// Nothing subscribed, not connected, at most `names_max` names.
    pub const fn new(names_max: usize) -> Self {
        Self {
            names_max,
            entries: BTreeMap::new(),
            by_subscriber: BTreeMap::new(),
            generation: None,
            queue: VecDeque::new(),
            batches: VecDeque::new(),
            batch_count: 0,
            unknown_count: 0,
        }
    }

    /// Adds a subscriber to a name. Again with the same arguments changes nothing.
    ///
    /// # Errors
    /// [`TooManyNames`] if the name is new and the bound is reached.
    pub fn subscribe(
        &mut self,
        subscriber: SubscriberId,
        kind: Kind,
        name: &[u8],
    ) -> Result<Subscribed, TooManyNames> {
        let key = (kind, Bytes::copy_from_slice(name));
        if self.entries.len() >= self.names_max && !self.entries.contains_key(&key) {
            return Err(TooManyNames { max: self.names_max });
        }
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.state == State::Refused {
            // A new subscriber deserves an answer of its own.
            entry.state = State::Absent;
        }
        let is_active = entry.state == State::Active;
        entry.subscribers.entry(subscriber).or_insert(is_active);
        self.by_subscriber.entry(subscriber).or_default().insert(key.clone());
        self.review(&key);
        Ok(if is_active { Subscribed::Active } else { Subscribed::Pending })
    }

    /// Removes a subscriber from a name; false if it was none. From now on it gets no message of it.
    pub fn unsubscribe(&mut self, subscriber: SubscriberId, kind: Kind, name: &[u8]) -> bool {
        let key = (kind, Bytes::copy_from_slice(name));
        let Some(names) = self.by_subscriber.get_mut(&subscriber) else { return false };
        if !names.remove(&key) {
            return false;
        }
        if names.is_empty() {
            self.by_subscriber.remove(&subscriber);
        }
        self.leave(subscriber, &key);
        true
    }

    /// Removes a subscriber from all its names.
    pub fn remove(&mut self, subscriber: SubscriberId) {
        for key in self.by_subscriber.remove(&subscriber).unwrap_or_default() {
            self.leave(subscriber, &key);
        }
    }

    /// A connection is ready, and nothing is subscribed on it.
    pub fn on_connected(&mut self, generation: Generation) {
        self.forget_actual();
        self.generation = Some(generation);
        for (key, entry) in &mut self.entries {
            entry.is_queued = true;
            self.queue.push_back(key.clone());
        }
    }

    /// The connection is gone. A late word about an earlier one changes nothing.
    pub fn on_lost(&mut self, generation: Generation) {
        if self.generation == Some(generation) {
            self.forget_actual();
        }
    }

    /// Appends the next batch, two commands, to `out`; false, and nothing appended, if there is none for now. The batch
    /// takes one place in the in-flight queue. To be called until it says false, after every other call.
    pub fn poll_command(&mut self, out: &mut impl BufMut) -> bool {
        if self.generation.is_none() {
            return false;
        }
        let Some((kind, state, names)) = self.take_names() else { return false };
        let number = self.batch_count;
        let token = Bytes::from(format!("towline-fence-{number}"));
        let mut args: Vec<&[u8]> = Vec::with_capacity(names.len() + 1);
        args.push(if state == State::Subscribing { kind.subscribe() } else { kind.unsubscribe() }.as_bytes());
        args.extend(names.iter().map(|name| &name[..]));
        encode_command(&args, out);
        encode_command(&[b"PING", &token[..]], out);
        self.batches.push_back(Batch { number, kind, state, names, token, refusal: None });
        true
    }

    /// Takes a reply whose turn in the in-flight queue is a batch's.
    pub fn on_reply(&mut self, frame: &Frame) -> BatchReply {
        let Some(batch) = self.batches.front_mut() else { return BatchReply::Misaligned };
        let is_fence = match ServerError::from_frame(frame) {
            None if batch.is_fence(frame) => true,
            None => return BatchReply::Misaligned,
            // The second error is the fence's in any case; the first one only if no subscription can get it.
            Some(error) if batch.refusal.is_some() || is_of_ping(&error) => true,
            Some(error) => {
                batch.refusal = Some(error);
                false
            }
        };
        if !is_fence {
            return BatchReply::NeedMore;
        }
        match self.batches.pop_front() {
            Some(batch) => self.settle(batch),
            None => BatchReply::Misaligned,
        }
    }

    /// Takes a push (see [`take_push`]) of the connection `generation`. What comes late is dropped.
    pub fn on_push(&mut self, generation: Generation, push: Vec<Frame>) -> PushEvent {
        let event = match parse(&push) {
            None => return PushEvent::Other(push),
            Some(_) if self.generation != Some(generation) => None,
            Some(PubSub::Message(message)) => self.on_message(message),
            Some(PubSub::Subscribed(kind, name)) => self.on_confirmed(generation, kind, name),
            Some(PubSub::Unsubscribed(kind, name)) => self.on_removed(kind, name),
            Some(PubSub::Malformed) => None,
        };
        event.unwrap_or_else(|| {
            self.unknown_count += 1;
            PushEvent::Unknown
        })
    }

    /// Tries again, on the same connection, what the server refused. For a driver whose backoff has passed, where the
    /// refusal's class says that time helps.
    pub fn retry_refused(&mut self) {
        let mut waiting = Vec::new();
        for (key, entry) in &mut self.entries {
            if entry.state == State::Refused {
                entry.state = State::Absent;
            }
            if entry.next().is_some() {
                waiting.push(key.clone());
            }
        }
        for key in waiting {
            self.review(&key);
        }
    }

    /// Whether the subscriber has the name, confirmed or not.
    pub fn has(&self, subscriber: SubscriberId, kind: Kind, name: &[u8]) -> bool {
        let names = self.by_subscriber.get(&subscriber);
        names.is_some_and(|names| names.contains(&(kind, Bytes::copy_from_slice(name))))
    }

    /// The subscribers of a name to whom it was confirmed, so who get its messages.
    pub fn subscribers(&self, kind: Kind, name: &Bytes) -> impl Iterator<Item = SubscriberId> + '_ {
        self.entries
            .get(&(kind, name.clone()))
            .into_iter()
            .flat_map(|entry| &entry.subscribers)
            .filter_map(|(subscriber, is_confirmed)| is_confirmed.then_some(*subscriber))
    }

    /// Whether the server's subscriptions are the desired ones, nothing is under way, and nothing was refused.
    pub fn is_settled(&self) -> bool {
        self.batches.is_empty()
            && self.entries.values().all(|entry| entry.state == State::Active && entry.is_desired())
    }

    /// Whether nobody has subscribed to anything.
    pub fn is_empty(&self) -> bool {
        self.by_subscriber.is_empty()
    }

    /// Names that are subscribed or under way.
    pub fn name_count(&self) -> usize {
        self.entries.len()
    }

    /// Pushes that nobody wanted, since the start.
    pub const fn unknown_count(&self) -> u64 {
        self.unknown_count
    }

    fn leave(&mut self, subscriber: SubscriberId, key: &(Kind, Bytes)) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.subscribers.remove(&subscriber);
        }
        self.review(key);
    }

    /// Queues a name if it needs a command, forgets it if nobody needs it.
    fn review(&mut self, key: &(Kind, Bytes)) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_gone = matches!(entry.state, State::Absent | State::Refused) && !entry.is_desired();
        if is_gone {
            self.entries.remove(key);
        } else if self.generation.is_some() && !entry.is_queued && entry.next().is_some() {
            entry.is_queued = true;
            self.queue.push_back(key.clone());
        }
    }

    fn forget_actual(&mut self) {
        self.generation = None;
        self.queue.clear();
        self.batches.clear();
        self.entries.retain(|_, entry| {
            entry.state = State::Absent;
            entry.is_desired()
        });
    }

    /// Takes names off the queue that fit into one command, and marks them as under way.
    fn take_names(&mut self) -> Option<(Kind, State, Vec<Bytes>)> {
        let mut batch: Option<(Kind, State, Vec<Bytes>)> = None;
        let mut bytes = 0;
        while let Some(key) = self.queue.front() {
            let entry = self.entries.get_mut(key);
            let Some((entry, state)) = entry.and_then(|entry| entry.next().map(|state| (entry, state)))
            else {
                // Settled or gone since it was queued.
                if let Some(entry) = self.entries.get_mut(key) {
                    entry.is_queued = false;
                }
                self.queue.pop_front();
                continue;
            };
            // Shard channels of one command must share a slot, which is not known here.
            let is_alone = entry.is_alone || key.0 == Kind::Shard;
            if let Some((kind, batch_state, names)) = &batch {
                let is_full = names.len() >= NAMES_PER_COMMAND_MAX || bytes >= NAME_BYTES_PER_COMMAND_MAX;
                if is_full || is_alone || (*kind, *batch_state) != (key.0, state) {
                    break;
                }
            }
            entry.is_queued = false;
            entry.state = state;
            entry.batch = self.batch_count + 1;
            let Some((kind, name)) = self.queue.pop_front() else { break };
            bytes += name.len();
            batch.get_or_insert_with(|| (kind, state, Vec::new())).2.push(name);
            if is_alone {
                break;
            }
        }
        self.batch_count += u64::from(batch.is_some());
        batch
    }

    /// Settles the names of a batch that were not confirmed by now.
    fn settle(&mut self, batch: Batch) -> BatchReply {
        let mut refused = Vec::new();
        let class = batch.refusal.as_ref().map_or(ServerClass::Answer, ServerError::class);
        let is_transient = class.is_not_executed() && !matches!(class, ServerClass::Moved | ServerClass::Ask);
        // One name may have spoilt the command for all (a permission, a slot): then each gets its own.
        let is_split = batch.names.len() > 1 && !is_transient;
        let is_subscribing = batch.state == State::Subscribing;
        for name in batch.names {
            let key = (batch.kind, name);
            let is_open = |entry: &&mut Entry| entry.batch == batch.number && entry.state == batch.state;
            let Some(entry) = self.entries.get_mut(&key).filter(is_open) else { continue };
            let Some(error) = &batch.refusal else { return BatchReply::Misaligned };
            entry.is_alone |= is_split;
            entry.state = match (is_subscribing, is_split) {
                (true, true) => State::Absent,
                (true, false) => State::Refused,
                (false, true) => State::Active,
                (false, false) if is_transient => State::Active,
                // Nothing left to try; messages that still come find no subscriber.
                (false, false) => State::Absent,
            };
            let is_waiting = is_transient && !is_subscribing;
            if is_waiting || (entry.state == State::Refused && entry.is_desired()) {
                let subscribers = entry.subscribers.keys().copied().collect();
                refused.push(Refused { kind: key.0, name: key.1.clone(), error: error.clone(), subscribers });
            }
            if !is_waiting {
                self.review(&key);
            }
        }
        BatchReply::Done(refused)
    }

    fn on_message(&mut self, message: Message) -> Option<PushEvent> {
        let key = (message.kind, message.subscription().clone());
        let (key, entry) = self.entries.get_key_value(&key)?;
        let is_wanted = entry.subscribers.values().any(|is_confirmed| *is_confirmed);
        is_wanted.then(|| PushEvent::Message(message.compact(&key.1)))
    }

    fn on_confirmed(&mut self, generation: Generation, kind: Kind, name: Bytes) -> Option<PushEvent> {
        let key = self.own_key(kind, name)?;
        let entry = self.entries.get_mut(&key).filter(|entry| entry.state == State::Subscribing)?;
        entry.state = State::Active;
        let gap = Gap { kind, name: key.1.clone(), from: entry.active_in, to: generation };
        entry.active_in = generation;
        let confirmed = entry.confirm(gap, false);
        self.review(&key);
        Some(PushEvent::Confirmed(confirmed))
    }

    fn on_removed(&mut self, kind: Kind, name: Bytes) -> Option<PushEvent> {
        let key = self.own_key(kind, name)?;
        let entry = self.entries.get_mut(&key)?;
        let is_asked_for = match entry.state {
            State::Unsubscribing => true,
            State::Active => false,
            // The answer to a command that the server's own removal has overtaken.
            State::Absent | State::Subscribing | State::Refused => return None,
        };
        entry.state = State::Absent;
        self.review(&key);
        Some(PushEvent::Removed { kind, name: key.1, is_asked_for })
    }

    /// The key with a name that is not a slice of the read buffer.
    fn own_key(&self, kind: Kind, name: Bytes) -> Option<(Kind, Bytes)> {
        self.entries.get_key_value(&(kind, name)).map(|(key, _)| key.clone())
    }
}

impl Entry {
    fn is_desired(&self) -> bool {
        !self.subscribers.is_empty()
    }

    /// The state that a command would bring about on the way to what is desired.
    fn next(&self) -> Option<State> {
        match self.state {
            State::Absent if self.is_desired() => Some(State::Subscribing),
            State::Active if !self.is_desired() => Some(State::Unsubscribing),
            _ => None,
        }
    }
}

impl Batch {
    /// `token`, or `[pong, token]` from a RESP2 connection with subscriptions.
    fn is_fence(&self, frame: &Frame) -> bool {
        match frame {
            Frame::Bulk(text) => *text == self.token,
            Frame::Array(values) => match &values[..] {
                [Frame::Bulk(pong), Frame::Bulk(text)] => **pong == *b"pong" && *text == self.token,
                _ => false,
            },
            Frame::Attributed { frame, .. } => self.is_fence(frame),
            _ => false,
        }
    }
}

/// Whether an error can only be the fence's: a server that loads, or lacks its primary, refuses `PING` and accepts
/// subscriptions; a missing permission names its command.
fn is_of_ping(error: &ServerError) -> bool {
    match error.class() {
        ServerClass::Loading | ServerClass::MasterDown => true,
        _ => error.code() == "NOPERM" && error.message().contains("'ping'"),
    }
}
