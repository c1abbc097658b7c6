//! A simulated fabric of reliable connections (RC), with the habits of the hardware that make connecting hard.
//!
//! Owns: cards, queue pairs with their states, packet numbers, acknowledgements and retry timers, registered memory, links
//! with a delay, a speed and losses. Does **not** own handshakes: whoever uses it tells each queue pair whom to talk to, as
//! with verbs. It serves two masters, the drills of this crate and an engine's transport without hardware.
//!
//! What it keeps of the hardware (InfiniBand Architecture Specification, volume 1, chapter 9.7; the numbers are the usual
//! ones of verbs programs):
//!
//! * A queue pair accepts a request if it may receive and the packet number is the one it expects. **It does not check who
//!   sent it.** The acknowledgement goes to the queue pair that it was told to be connected to, whoever sent the request.
//! * What is sent to a queue pair that is not there, or not ready, vanishes without a word.
//! * A requester waits 67 ms for an acknowledgement and repeats 7 times; then the head of its queue ends with "transport
//!   retry counter exceeded", the rest is flushed, and the queue pair is in the error state for good.
//! * Queue pair numbers come back, if [`FabricConfig::reuses_numbers`] says so.
//!
//! Simplified: a work request is one packet that takes as many packet numbers as it has packets of 4 KiB; a sender's link is
//! first come, first served; there are no receive queues.

mod queue_pair;
#[cfg(test)]
mod tests;

pub use queue_pair::{Completion, Operation, QueuePairState, RemoteAddress, Status, Work};

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use towline_sansio::{Instant, Prng};

use crate::identity::{Psn, Qpn, QueuePair};

use queue_pair::{Pending, QueuePairCore};

/// The hardware.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FabricConfig {
    /// The acknowledgement timer. 67.1 ms is `timeout` 14 of verbs: 4.096 us times 2^14.
    pub ack_timeout: Duration,
    /// By how much a card may stretch it, in percent: each expiry takes `ack_timeout` to this more, drawn anew. The
    /// specification allows 300.
    pub ack_stretch_percent: u32,
    /// Repetitions before a request is given up: 7, the most that verbs allow.
    pub retry_count: u32,
    /// From sending to arriving.
    pub delay: Duration,
    /// How fast a card sends.
    pub bytes_per_second: u64,
    /// A new queue pair may have the number of one that is gone.
    pub reuses_numbers: bool,
    /// Packets that vanish, in a million.
    pub losses_per_million: u32,
}

impl FabricConfig {
    /// A card of 200 Gb/s, 25 us from its peers, without losses.
    pub const USUAL: Self = Self {
        ack_timeout: Duration::from_nanos(4_096 << 14),
        ack_stretch_percent: 0,
        retry_count: 7,
        delay: Duration::from_micros(25),
        bytes_per_second: 25_000_000_000,
        reuses_numbers: false,
        losses_per_million: 0,
    };

    /// From the first sending of a request that nobody answers to its failure: what connecting has to fit into if anybody
    /// posts before the other end is ready. 537 ms with the usual numbers.
    pub fn window(&self) -> Duration {
        self.ack_timeout * (self.retry_count + 1)
    }
}

impl Default for FabricConfig {
    fn default() -> Self {
        Self::USUAL
    }
}

/// A network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardId(pub u32);

impl CardId {
    /// As a global identifier, which is how queue pairs name their counterpart's card.
    pub fn gid(self) -> [u8; 16] {
        u128::from(self.0).to_be_bytes()
    }

    fn from_gid(gid: [u8; 16]) -> Option<Self> {
        u32::try_from(u128::from_be_bytes(gid)).ok().map(Self)
    }
}

/// Names registered memory to peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteKey(pub u32);

/// What peers may do with registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read it.
    Read,
    /// Read and write it.
    ReadWrite,
}

/// A call that the hardware would refuse at once. The caller's mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// No such queue pair on this card.
    #[error("no such queue pair")]
    UnknownQueuePair,
    /// Not possible in the state in which the queue pair is.
    #[error("the queue pair is in the wrong state: {state:?}")]
    WrongState {
        /// The state.
        state: QueuePairState,
    },
    /// [`Fabric::WORK_MAX`] work requests are posted already. Retryable after a completion.
    #[error("the send queue is full")]
    QueueFull,
}

/// What happened so far, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FabricCounters {
    /// Requests that changed or read memory.
    pub applied: u64,
    /// Acknowledgements that went to a queue pair that had not asked: the sender of the request was another.
    pub ghost_acks: u64,
    /// Requests that vanished: nobody there, not ready, an unexpected packet number, a path that is down, or loss.
    pub dropped: u64,
    /// Requests that ended with "transport retry counter exceeded".
    pub retry_exceeded: u64,
    /// Bytes that arrived in memory.
    pub bytes: u64,
}

#[derive(Debug)]
struct Region {
    bytes: Vec<u8>,
    access: Access,
}

#[derive(Debug, Default)]
struct Card {
    is_down: bool,
    queue_pairs: BTreeMap<Qpn, QueuePairCore>,
    free_numbers: Vec<Qpn>,
    regions: BTreeMap<RemoteKey, Region>,
    completions: VecDeque<Completion>,
    sends_until: Instant,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Request(Box<Request>),
    Reply(Box<Reply>),
    Timer { card: CardId, qpn: Qpn, epoch: u64 },
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    from: (CardId, Qpn),
    to: (CardId, Qpn),
    psn: u32,
    packets: u32,
    operation: Operation,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reply {
    from: CardId,
    to: (CardId, Qpn),
    /// Who really asked: for counting only, the wire does not say it.
    asked_by: (CardId, Qpn),
    psn: u32,
    is_refused: bool,
    data: Vec<u8>,
}

/// The fabric. Virtual time: inputs carry it, [`Fabric::next_timeout`] says when something happens next.
#[derive(Debug)]
pub struct Fabric {
    config: FabricConfig,
    prng: Prng,
    cards: Vec<Card>,
    next_number: u32,
    next_key: u32,
    cut: BTreeSet<(CardId, CardId)>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    next_event: u64,
    with_completions: BTreeSet<CardId>,
    counters: FabricCounters,
}

impl Fabric {
    /// Work requests of one queue pair at a time.
    pub const WORK_MAX: usize = 256;
    const PACKET: u64 = 4096;

    /// A fabric without cards.
    pub fn new(config: FabricConfig, prng: Prng) -> Self {
        Self {
            config,
            prng,
            cards: Vec::new(),
            next_number: 0,
            next_key: 0,
            cut: BTreeSet::new(),
            events: BinaryHeap::new(),
            next_event: 0,
            with_completions: BTreeSet::new(),
            counters: FabricCounters::default(),
        }
    }

    /// One more card.
    pub fn add_card(&mut self) -> CardId {
        self.cards.push(Card::default());
        CardId(u32::try_from(self.cards.len() - 1).unwrap_or(u32::MAX))
    }

    /// Lets peers reach `bytes`. The key is never given out again.
    pub fn register(&mut self, card: CardId, bytes: Vec<u8>, access: Access) -> RemoteKey {
        self.next_key += 1;
        let key = RemoteKey(self.next_key);
        self.card(card).regions.insert(key, Region { bytes, access });
        key
    }

    /// Ends it and gives the bytes back. What arrives for it later is refused.
    pub fn deregister(&mut self, card: CardId, key: RemoteKey) -> Option<Vec<u8>> {
        self.card(card).regions.remove(&key).map(|region| region.bytes)
    }

    /// The bytes of a region.
    pub fn memory(&self, card: CardId, key: RemoteKey) -> Option<&[u8]> {
        self.cards.get(card.0 as usize)?.regions.get(&key).map(|region| region.bytes.as_slice())
    }

    /// The bytes of a region, for the process that has it: it needs nobody's leave.
    pub fn memory_mut(&mut self, card: CardId, key: RemoteKey) -> Option<&mut [u8]> {
        self.cards.get_mut(card.0 as usize)?.regions.get_mut(&key).map(|region| region.bytes.as_mut_slice())
    }

    /// A queue pair that will begin to send at `psn`. What to tell the peer, for `rail`.
    pub fn create(&mut self, card: CardId, rail: u16, psn: Psn) -> QueuePair {
        let reused = if self.config.reuses_numbers { self.card(card).free_numbers.pop() } else { None };
        let qpn = reused.unwrap_or_else(|| {
            self.next_number += 1;
            Qpn(self.next_number % Psn::MODULUS)
        });
        self.card(card).queue_pairs.insert(qpn, QueuePairCore::new(psn));
        QueuePair { rail, qpn, psn, lid: 0, gid: card.gid() }
    }

    /// Connects it to a counterpart: it receives from now on, and acknowledges to that counterpart.
    ///
    /// # Errors
    /// Unknown, or connected before.
    pub fn receive_from(&mut self, card: CardId, qpn: Qpn, remote: &QueuePair) -> Result<(), FabricError> {
        let far = CardId::from_gid(remote.gid).unwrap_or(CardId(u32::MAX));
        self.queue_pair(card, qpn)?.receive_from((far, remote.qpn), remote.psn)
    }

    /// Lets it send.
    ///
    /// # Errors
    /// Unknown, or not ready to receive.
    pub fn start_sending(&mut self, card: CardId, qpn: Qpn) -> Result<(), FabricError> {
        self.queue_pair(card, qpn)?.start_sending()
    }

    /// The state of a queue pair.
    ///
    /// # Errors
    /// Unknown.
    pub fn state(&mut self, card: CardId, qpn: Qpn) -> Result<QueuePairState, FabricError> {
        Ok(self.queue_pair(card, qpn)?.state)
    }

    /// Posts work.
    ///
    /// # Errors
    /// Unknown, not ready to send, or full. Nothing was posted.
    pub fn post(&mut self, now: Instant, card: CardId, qpn: Qpn, work: Work) -> Result<(), FabricError> {
        let packets =
            u32::try_from(work.operation.length().div_ceil(Self::PACKET).max(1)).unwrap_or(u32::MAX);
        let queue_pair = self.queue_pair(card, qpn)?;
        if queue_pair.state != QueuePairState::Send {
            return Err(FabricError::WrongState { state: queue_pair.state });
        }
        if queue_pair.pending.len() >= Self::WORK_MAX {
            return Err(FabricError::QueueFull);
        }
        let psn = queue_pair.send_psn;
        queue_pair.send_psn = psn.after(packets);
        queue_pair.pending.push_back(Pending { work, psn, packets });
        let is_first = queue_pair.pending.len() == 1;
        self.send(now, card, qpn, queue_pair_last(&self.cards, card, qpn));
        if is_first {
            self.arm(now, card, qpn);
        }
        Ok(())
    }

    /// Takes a queue pair out of use: its work is flushed.
    ///
    /// # Errors
    /// Unknown.
    pub fn fail(&mut self, card: CardId, qpn: Qpn) -> Result<(), FabricError> {
        self.queue_pair(card, qpn)?;
        self.enter_error(card, qpn, None);
        Ok(())
    }

    /// Destroys a queue pair: its work is flushed, and what comes for it vanishes.
    ///
    /// # Errors
    /// Unknown.
    pub fn destroy(&mut self, card: CardId, qpn: Qpn) -> Result<(), FabricError> {
        self.fail(card, qpn)?;
        let card = self.card(card);
        card.queue_pairs.remove(&qpn);
        card.free_numbers.push(qpn);
        Ok(())
    }

    /// The process of a card is gone: its queue pairs and its memory with it. What is under way to it vanishes.
    pub fn reset(&mut self, card: CardId) {
        self.with_completions.remove(&card);
        let card = self.card(card);
        let numbers: Vec<Qpn> = card.queue_pairs.keys().copied().collect();
        card.queue_pairs.clear();
        card.free_numbers.extend(numbers);
        card.regions.clear();
        card.completions.clear();
    }

    /// Whether a card is reachable at all.
    pub fn set_down(&mut self, card: CardId, is_down: bool) {
        self.card(card).is_down = is_down;
    }

    /// Cuts or mends the path in one direction.
    pub fn set_cut(&mut self, from: CardId, to: CardId, is_cut: bool) {
        if is_cut {
            self.cut.insert((from, to));
        } else {
            self.cut.remove(&(from, to));
        }
    }

    /// The next card with completions, and the oldest of them.
    pub fn poll(&mut self) -> Option<(CardId, Completion)> {
        let card = *self.with_completions.first()?;
        let completions = &mut self.card(card).completions;
        let completion = completions.pop_front()?;
        if completions.is_empty() {
            self.with_completions.remove(&card);
        }
        Some((card, completion))
    }

    /// When something happens next.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets everything happen that is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(Reverse((at, ..))) = self.events.peek()
            && *at <= now
        {
            let Some(Reverse((at, _, event))) = self.events.pop() else { return };
            match event {
                Event::Request(request) => self.on_request(at, *request),
                Event::Reply(reply) => self.on_reply(at, *reply),
                Event::Timer { card, qpn, epoch } => self.on_timer(at, card, qpn, epoch),
            }
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> FabricCounters {
        self.counters
    }

    fn on_request(&mut self, now: Instant, request: Request) {
        let Request { from, to, psn, packets, operation } = request;
        if self.is_lost(from.0, to.0) {
            self.counters.dropped += 1;
            return;
        }
        let Ok(queue_pair) = self.queue_pair(to.0, to.1) else {
            self.counters.dropped += 1;
            return;
        };
        // Who sent it is not looked at: the hardware has no way to know.
        let (Some(counterpart), true) = (queue_pair.counterpart, queue_pair.may_receive()) else {
            self.counters.dropped += 1;
            return;
        };
        let is_repeated = queue_pair.was_received(Psn::new(psn));
        if !is_repeated {
            if queue_pair.expect_psn.get() != psn {
                self.counters.dropped += 1;
                return;
            }
            queue_pair.expect_psn = queue_pair.expect_psn.after(packets);
        }
        let outcome = self.apply(to.0, &operation, is_repeated);
        let is_refused = outcome.is_none();
        let data = outcome.unwrap_or_default();
        let at = self.leaves_at(now, to.0, data.len() as u64) + self.config.delay;
        let reply = Reply { from: to.0, to: counterpart, asked_by: from, psn, is_refused, data };
        self.schedule(at, Event::Reply(Box::new(reply)));
    }

    /// The effect of a request on memory: what it reads, or `None` if it is refused. A write that comes again is not done
    /// again, a read is.
    fn apply(&mut self, card: CardId, operation: &Operation, is_repeated: bool) -> Option<Vec<u8>> {
        let length = operation.length();
        if length == 0 {
            self.counters.applied += u64::from(!is_repeated);
            return Some(Vec::new());
        }
        let address = operation.remote();
        let region = self.cards.get_mut(card.0 as usize)?.regions.get_mut(&address.key)?;
        let start = usize::try_from(address.offset).ok()?;
        let end = usize::try_from(address.offset.checked_add(length)?).ok()?;
        let bytes = region.bytes.get_mut(start..end)?;
        let read = match operation {
            Operation::Read { .. } => bytes.to_vec(),
            Operation::Write { .. } if region.access == Access::Read => return None,
            Operation::Write { data, .. } => {
                if !is_repeated {
                    bytes.copy_from_slice(data);
                }
                Vec::new()
            }
        };
        if !is_repeated {
            self.counters.applied += 1;
            self.counters.bytes += length;
        }
        Some(read)
    }

    fn on_reply(&mut self, now: Instant, reply: Reply) {
        if self.is_lost(reply.from, reply.to.0) {
            self.counters.dropped += 1;
            return;
        }
        let (card, qpn) = reply.to;
        if reply.to != reply.asked_by {
            self.counters.ghost_acks += 1;
        }
        let Ok(queue_pair) = self.queue_pair(card, qpn) else { return };
        let Some(position) = queue_pair.position_of(Psn::new(reply.psn)) else { return };
        if reply.is_refused {
            self.enter_error(card, qpn, Some(Status::RemoteAccess));
            return;
        }
        // An acknowledgement covers what came before it, but a read needs its data: those before stay for the repetition.
        let is_read = |pending: &Pending| matches!(pending.work.operation, Operation::Read { .. });
        if queue_pair.pending.iter().take(position).any(is_read) {
            return;
        }
        queue_pair.retries = 0;
        let mut done: Vec<Pending> = queue_pair.pending.drain(..=position).collect();
        let is_idle = queue_pair.pending.is_empty();
        if is_idle {
            // Most queue pairs of a large fabric are idle at any time.
            queue_pair.pending = VecDeque::new();
        }
        let last = done.pop().map(|pending| (pending.work.id, reply.data));
        for (id, data) in done.into_iter().map(|pending| (pending.work.id, Vec::new())).chain(last) {
            self.complete(card, Completion { qpn, id, status: Status::Done, data });
        }
        if is_idle {
            self.disarm(card, qpn);
        } else {
            self.arm(now, card, qpn);
        }
    }

    fn on_timer(&mut self, now: Instant, card: CardId, qpn: Qpn, epoch: u64) {
        let retry_count = self.config.retry_count;
        let Ok(queue_pair) = self.queue_pair(card, qpn) else { return };
        if queue_pair.epoch != epoch || queue_pair.pending.is_empty() {
            return;
        }
        if queue_pair.retries >= retry_count {
            self.counters.retry_exceeded += 1;
            self.enter_error(card, qpn, Some(Status::RetryExceeded));
            return;
        }
        queue_pair.retries += 1;
        for position in 0..queue_pair.pending.len() {
            self.send(now, card, qpn, position);
        }
        self.arm(now, card, qpn);
    }

    /// The head ends as given, everything behind it is flushed.
    fn enter_error(&mut self, card: CardId, qpn: Qpn, head: Option<Status>) {
        let Ok(queue_pair) = self.queue_pair(card, qpn) else { return };
        queue_pair.state = QueuePairState::Error;
        queue_pair.epoch += 1;
        let pending = std::mem::take(&mut queue_pair.pending);
        for (index, pending) in pending.into_iter().enumerate() {
            let status = head.filter(|_| index == 0).unwrap_or(Status::Flushed);
            self.complete(card, Completion { qpn, id: pending.work.id, status, data: Vec::new() });
        }
    }

    fn complete(&mut self, card: CardId, completion: Completion) {
        self.card(card).completions.push_back(completion);
        self.with_completions.insert(card);
    }

    /// Puts a pending work request on the wire.
    fn send(&mut self, now: Instant, card: CardId, qpn: Qpn, position: usize) {
        let Ok(queue_pair) = self.queue_pair(card, qpn) else { return };
        let (Some(pending), Some(to)) = (queue_pair.pending.get(position), queue_pair.counterpart) else {
            return;
        };
        let (psn, packets, operation) = (pending.psn.get(), pending.packets, pending.work.operation.clone());
        let bytes = operation.outgoing();
        let at = self.leaves_at(now, card, bytes) + self.config.delay;
        self.schedule(
            at,
            Event::Request(Box::new(Request { from: (card, qpn), to, psn, packets, operation })),
        );
    }

    /// When the last of so many bytes has left a card.
    fn leaves_at(&mut self, now: Instant, card: CardId, bytes: u64) -> Instant {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.config.bytes_per_second.max(1));
        let took = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let card = self.card(card);
        card.sends_until = card.sends_until.max(now) + took;
        card.sends_until
    }

    fn arm(&mut self, now: Instant, card: CardId, qpn: Qpn) {
        let nanos = u64::try_from(self.config.ack_timeout.as_nanos()).unwrap_or(u64::MAX);
        let stretch = nanos / 100 * u64::from(self.config.ack_stretch_percent);
        let extra = if stretch == 0 { 0 } else { self.prng.below(stretch + 1) };
        let at = now + Duration::from_nanos(nanos.saturating_add(extra));
        self.disarm(card, qpn);
        let Ok(queue_pair) = self.queue_pair(card, qpn) else { return };
        let epoch = queue_pair.epoch;
        self.schedule(at, Event::Timer { card, qpn, epoch });
    }

    fn disarm(&mut self, card: CardId, qpn: Qpn) {
        if let Ok(queue_pair) = self.queue_pair(card, qpn) {
            queue_pair.epoch += 1;
        }
    }

    fn is_lost(&mut self, from: CardId, to: CardId) -> bool {
        let is_up = |card: CardId| self.cards.get(card.0 as usize).is_some_and(|card| !card.is_down);
        if !is_up(from) || !is_up(to) || self.cut.contains(&(from, to)) {
            return true;
        }
        let losses = u64::from(self.config.losses_per_million);
        losses > 0 && self.prng.below(1_000_000) < losses
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.next_event += 1;
        self.events.push(Reverse((at, self.next_event, event)));
    }

    fn card(&mut self, card: CardId) -> &mut Card {
        self.cards
            .get_mut(card.0 as usize)
            .expect("invariant: cards are given out by this fabric and never taken away")
    }

    fn queue_pair(&mut self, card: CardId, qpn: Qpn) -> Result<&mut QueuePairCore, FabricError> {
        let card = self.cards.get_mut(card.0 as usize).ok_or(FabricError::UnknownQueuePair)?;
        card.queue_pairs.get_mut(&qpn).ok_or(FabricError::UnknownQueuePair)
    }
}

/// The position of what was posted last.
fn queue_pair_last(cards: &[Card], card: CardId, qpn: Qpn) -> usize {
    let queue_pair = cards.get(card.0 as usize).and_then(|card| card.queue_pairs.get(&qpn));
    queue_pair.map_or(0, |queue_pair| queue_pair.pending.len().saturating_sub(1))
}
