//! One bridge among those of a cluster: what it may take, what waits, what goes elsewhere.
//!
//! Owns the gate of each slot, the commands that wait for their slot, and the moment at which they may go on. Does not own
//! which endpoint has which slot ([`crate::routing`]), nor the way of a command from one bridge to another ([`stray`]).
//!
//! # Order
//!
//! Commands on one slot run in the order of their submission, wherever the slot goes. Three rules see to that:
//!
//! * **Closed.** A bridge whose slot belongs to another one takes no command on it ([`SubmitError::Elsewhere`]): the caller
//!   looks at the map again. What it had not sent leaves, in order.
//! * **Held.** The slot's new bridge keeps commands on it until the old one has answered, or handed over, everything that was
//!   sent (a *fence*). What comes back from there goes first.
//! * A server that refuses a command for now (`TRYAGAIN`, `CLUSTERDOWN`, ...) makes its slot wait: the refused command, then
//!   those that were sent behind it and refused as well, then those that were not sent. Other slots do not notice.
//!
//! The order in which commands come back is not the order of their submission: a bridge that had the slot earlier may be the
//! last to give up what it has, because a writer still had the bytes. So every command has a **number**, which it keeps on its
//! way, and what waits for a slot waits by number. A bridge counts on from the last number of every bridge that it gets a slot
//! from ([`Bridge::open_slot`]); so the numbers of one slot's commands ascend, whichever bridges they were submitted to.
//!
//! ```text
//!              open_slots             unfence (the old owner has answered)
//!   Closed ----------------> Held --------------------------------------> Open
//!      ^                      ^  |                                          |
//!      |      refused for now |  | due, and what was sent has been answered |
//!      |                      +--|------------------------------------------+
//!      +------ close_slots ------+------------------------------------------+
//! ```
//!
//! What a server executes although it has refused an earlier command of the same slot, because it changed its mind in
//! between, has overtaken that command: nobody can call it back.

mod gather;
mod hold;
mod stray;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use towline_cluster::{SLOT_COUNT, Slot};
use towline_sansio::Instant;

use super::{Bridge, Flush, Place, State, Submitted};
use crate::command::{Encoder, Flags, Order};
use crate::error::{Error, ErrorKind};
use crate::maintenance::SlotsMoved;
use crate::routing::ReadFrom;
use crate::slab::Ticket;
use hold::{Held, Hold};

pub use stray::{Adopt, Stray, StrayReason};

/// A command without keys.
const NO_SLOT: u16 = u16::MAX;

/// What a routed bridge knows of a command beside what every bridge knows. Kept apart, so that a command of a client without
/// a cluster does not pay for it.
#[derive(Debug, Clone, Copy)]
struct Tag {
    slot: u16,
    /// How often it was sent to another node.
    redirects: u8,
    /// How often it was refused for now.
    waits: u8,
    /// `ASKING` goes before it.
    is_asking: bool,
    /// Who may answer it. [`ReadFrom::Primary`] for all that is no read for replicas.
    read: ReadFrom,
    /// Its place in the order of submission among the commands of its slot. Without a slot, and for a read that replicas
    /// may answer, there is no such order and this is 0.
    number: u64,
}

const UNTAGGED: Tag =
    Tag { slot: NO_SLOT, redirects: 0, waits: 0, is_asking: false, read: ReadFrom::Primary, number: 0 };

/// A set of slots: 2 KiB, made when it is first needed.
#[derive(Debug, Default)]
struct SlotSet(Option<Box<[u64; SLOT_COUNT / 64]>>);

impl SlotSet {
    #[inline]
    fn contains(&self, slot: Slot) -> bool {
        let Some(words) = &self.0 else { return false };
        words.get(usize::from(slot) / 64).is_some_and(|word| word & (1 << (slot % 64)) != 0)
    }

    fn insert(&mut self, slot: Slot) {
        let words = self.0.get_or_insert_with(|| Box::new([0; SLOT_COUNT / 64]));
        if let Some(word) = words.get_mut(usize::from(slot) / 64) {
            *word |= 1 << (slot % 64);
        }
    }

    fn remove(&mut self, slot: Slot) {
        if let Some(words) = &mut self.0
            && let Some(word) = words.get_mut(usize::from(slot) / 64)
        {
            *word &= !(1 << (slot % 64));
        }
    }
}

/// What has to be answered before younger commands of a slot may be sent, here or elsewhere.
#[derive(Debug)]
struct Fence {
    slot: Slot,
    /// Commands that were in flight.
    tickets: Vec<Ticket>,
    /// Those that were not sent have been taken out of the queue.
    is_gathered: bool,
    /// The slot is this bridge's own.
    is_local: bool,
}

/// The routing side of a bridge.
#[derive(Debug)]
pub(super) struct Routed {
    /// By number of the completion slot.
    tags: Vec<Tag>,
    closed: SlotSet,
    /// The endpoint is none of the cluster's any more: everything goes elsewhere.
    is_leaving: bool,
    /// Everything is a read that others may answer as well: it never waits here, and never fences anything.
    is_reader: bool,
    holds: BTreeMap<Slot, Hold>,
    /// When the first of them is due.
    due: Option<Instant>,
    fences: Vec<Fence>,
    /// Slots whose unsent commands have to be taken out of the queue: with whether they stay here.
    gather: Vec<(Slot, bool)>,
    /// Everything has to be taken out of the queue, to go elsewhere.
    gather_all: bool,
    /// Commands that the router has, or will have with the next news.
    away: Vec<Ticket>,
    /// The last number of a command that was submitted here, or to a bridge that a slot came from. One a nanosecond would
    /// last for five centuries.
    last_number: u64,
    news: News,
}

/// What the router has to know.
#[derive(Debug, Default)]
pub struct News {
    /// Commands that go elsewhere, in order.
    pub strays: Vec<Stray>,
    /// Slots of other bridges for which everything that was sent here has been answered.
    pub passed: Vec<Slot>,
    /// What the slot map may be wrong about.
    pub trouble: Option<MapTrouble>,
    /// Slots that the server says have moved.
    pub moves: Vec<SlotsMoved>,
}

/// Why the slot map should be asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MapTrouble {
    /// A redirect: one slot is known to be elsewhere.
    Redirected,
    /// The server cannot serve a slot at present, or has another role.
    Refused,
    /// The endpoint cannot be reached.
    Down,
}

/// Why a command was not taken.
#[derive(Debug, Clone, PartialEq)]
pub enum SubmitError {
    /// Its slot belongs to another endpoint: look at the map again.
    Elsewhere,
    /// As [`Bridge::submit`] says.
    Failed(Error),
}

impl Routed {
    fn new() -> Self {
        Self {
            tags: Vec::new(),
            closed: SlotSet::default(),
            is_leaving: false,
            is_reader: false,
            holds: BTreeMap::new(),
            due: None,
            fences: Vec::new(),
            gather: Vec::new(),
            gather_all: false,
            away: Vec::new(),
            last_number: 0,
            news: News::default(),
        }
    }

    fn tag(&self, index: u32) -> Tag {
        self.tags.get(index as usize).copied().unwrap_or(UNTAGGED)
    }

    /// A new command has this number, and nothing is known of its slot.
    #[inline]
    pub(super) fn untag(&mut self, index: u32) {
        if let Some(tag) = self.tags.get_mut(index as usize) {
            *tag = UNTAGGED;
        }
    }

    fn set_tag(&mut self, index: u32, tag: Tag) {
        let at = index as usize;
        if at >= self.tags.len() {
            self.tags.resize(at + 1, UNTAGGED);
        }
        self.tags[at] = tag;
    }

    /// The tag of a command that was submitted just now.
    const fn number(&mut self, slot: Option<Slot>) -> Tag {
        let Some(slot) = slot else { return UNTAGGED };
        self.last_number += 1;
        Tag { slot, number: self.last_number, ..UNTAGGED }
    }

    /// The slot's hold, and the unsent commands on it in the queue are to be taken out: a younger one must not be sent before
    /// those that wait.
    fn hold(&mut self, slot: Slot) -> &mut Hold {
        let hold = self.holds.entry(slot).or_default();
        if !hold.is_gathering {
            hold.is_gathering = true;
            self.gather.push((slot, true));
        }
        hold
    }

    fn trouble(&mut self, trouble: MapTrouble) {
        self.news.trouble = self.news.trouble.max(Some(trouble));
    }

    const fn has_gathering(&self) -> bool {
        self.gather_all || !self.gather.is_empty()
    }
}

impl News {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.strays.is_empty() && self.passed.is_empty() && self.trouble.is_none() && self.moves.is_empty()
    }
}

impl<W> Bridge<W> {
    /// Makes this the bridge of one node of a cluster. To be called before anything else.
    #[must_use]
    pub fn with_routing(mut self) -> Self {
        self.routed = Some(Box::new(Routed::new()));
        self
    }

    /// Makes this the bridge for reads of one node of a cluster while it is a replica. To be called before anything else.
    ///
    /// It takes reads of any slot. What the node refuses, and what a lost connection leaves, goes back to the router at once.
    #[must_use]
    pub fn with_reads(self) -> Self {
        let mut bridge = self.with_routing();
        if let Some(routed) = &mut bridge.routed {
            routed.is_reader = true;
        }
        bridge
    }

    /// Whether this is a bridge for reads.
    pub(super) fn is_reader(&self) -> bool {
        self.routed.as_ref().is_some_and(|routed| routed.is_reader)
    }

    /// [`Bridge::submit`] for a read on `slot` that replicas may answer, by `policy`. The bridge is one of
    /// [`Bridge::with_reads`].
    ///
    /// # Errors
    /// [`SubmitError::Elsewhere`]: nothing was taken, and the map says where to go.
    pub fn submit_read(
        &mut self,
        now: Instant,
        (slot, policy): (Slot, ReadFrom),
        order: &Order,
        waiter: Option<W>,
        encode: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<Submitted, SubmitError> {
        let submitted = self.submit_routed(now, Some(slot), order, waiter, encode)?;
        if let (Some(routed), Some(&index)) = (&mut self.routed, self.queue.back()) {
            routed.set_tag(index, Tag { slot, read: policy, ..UNTAGGED });
        }
        Ok(submitted)
    }

    /// [`Bridge::submit`] for a command on `slot`, or without keys.
    ///
    /// # Errors
    /// [`SubmitError::Elsewhere`]: nothing was taken, and the map says where to go.
    #[inline]
    pub fn submit_routed(
        &mut self,
        now: Instant,
        slot: Option<Slot>,
        order: &Order,
        waiter: Option<W>,
        encode: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<Submitted, SubmitError> {
        let Some(routed) = &self.routed else {
            return Err(SubmitError::Failed(Error::misuse("this bridge is not one of a cluster's")));
        };
        if routed.is_leaving || self.is_closed || slot.is_some_and(|slot| routed.closed.contains(slot)) {
            return Err(SubmitError::Elsewhere);
        }
        let is_held = slot.is_some_and(|slot| !routed.holds.is_empty() && routed.holds.contains_key(&slot));
        self.admit(now, order).map_err(SubmitError::Failed)?;
        let mut submitted = self.accept(now, order, waiter, encode);
        let Some(&index) = self.queue.back() else { return Ok(submitted) };
        if let Some(routed) = &mut self.routed {
            let tag = routed.number(slot);
            routed.set_tag(index, tag);
        }
        if is_held && self.hold_back(index) {
            submitted.flush = Flush::Nobody;
        }
        Ok(submitted)
    }

    /// Takes the youngest command out of the queue again, to wait for its slot.
    fn hold_back(&mut self, index: u32) -> bool {
        let mut bytes = Vec::new();
        let Some(State::Pending(pending)) = self.slots.at(index).map(|slot| &slot.state) else {
            return false;
        };
        if !self.log.copy(pending.end - u64::from(pending.len)..pending.end, &mut bytes) {
            return false;
        }
        let Some(routed) = &mut self.routed else { return false };
        let tag = routed.tag(index);
        let Some(hold) = routed.holds.get_mut(&tag.slot) else { return false };
        hold.keep(Held { index, number: tag.number, is_returned: false, bytes });
        self.queue.pop_back();
        if let Some(slot) = self.slots.at_mut(index) {
            slot.place = Place::Held;
        }
        true
    }

    /// The slot is this endpoint's from now on, but commands on it wait until so many fences have passed
    /// ([`Bridge::unfence`]). `last_number` is [`Bridge::last_number`] of the bridge that had it, or 0: what is submitted here
    /// is younger.
    pub fn open_slot(&mut self, slot: Slot, awaits: u32, last_number: u64) {
        let Some(routed) = &mut self.routed else { return };
        routed.closed.remove(slot);
        routed.last_number = routed.last_number.max(last_number);
        if awaits > 0 {
            let is_new = !routed.holds.contains_key(&slot);
            let hold = routed.holds.entry(slot).or_default();
            hold.awaits += awaits;
            hold.is_stream = is_new && awaits == 1;
        }
    }

    /// The highest number of the commands on slots of this bridge: those that were submitted here, and those from bridges
    /// that had the slots before.
    pub fn last_number(&self) -> u64 {
        self.routed.as_ref().map_or(0, |routed| routed.last_number)
    }

    /// The slots are another endpoint's from now on. Gives up what was not sent, in order, and the fences that have passed
    /// already; the rest comes with [`Bridge::take_news`]. `awaits` is told of each slot how many fences the new owner has
    /// to wait for: this bridge's, and those of others that the slot waited for here.
    pub fn close_slots(&mut self, now: Instant, slots: &[Slot], mut awaits: impl FnMut(Slot, u32)) -> News {
        let Some(routed) = &mut self.routed else { return News::default() };
        for slot in slots {
            routed.closed.insert(*slot);
            awaits(*slot, 1 + routed.holds.get(slot).map_or(0, |hold| hold.awaits));
        }
        // The new fences are for all that is in flight.
        let gone: BTreeSet<Slot> = slots.iter().copied().collect();
        routed.fences.retain(|fence| !fence.is_local || !gone.contains(&fence.slot));
        self.raise_fences(slots, false);
        self.give_up(now, slots)
    }

    /// Gives up what waits for these slots, and what can be taken out of the queue.
    fn give_up(&mut self, now: Instant, slots: &[Slot]) -> News {
        let Some(routed) = &mut self.routed else { return News::default() };
        let earlier = std::mem::take(&mut routed.news);
        self.give_up_holds(slots);
        self.gather(now);
        let Some(routed) = &mut self.routed else { return News::default() };
        let mut shed = std::mem::replace(&mut routed.news, earlier);
        // Everything else is for whoever asks for news.
        routed.news.moves.append(&mut shed.moves);
        routed.news.trouble = routed.news.trouble.max(shed.trouble.take());
        shed
    }

    /// The endpoint is none of the cluster's any more: as [`Bridge::close_slots`] with all slots, and with what has no
    /// keys. What is in flight is still answered; then the bridge ends.
    pub fn retire(&mut self, now: Instant) -> News {
        let Some(routed) = &mut self.routed else { return News::default() };
        if routed.is_leaving {
            return News::default();
        }
        routed.is_leaving = true;
        routed.gather_all = true;
        // Only commands that a server has sent here wait still. No slot moves with them, so nobody waits for a fence.
        routed.fences.retain(|fence| !fence.is_local);
        let held: Vec<Slot> = routed.holds.keys().copied().collect();
        let mut news = self.give_up(now, &held);
        self.shed_delayed(&mut news);
        self.close(now);
        news
    }

    /// One more fence has passed for what waits for `slot`.
    pub fn unfence(&mut self, now: Instant, slot: Slot) {
        let Some(routed) = &mut self.routed else { return };
        let Some(hold) = routed.holds.get_mut(&slot) else { return };
        hold.awaits = hold.awaits.saturating_sub(1);
        self.pump_hold(now, slot);
    }

    /// A fence of this bridge's own has passed.
    fn unfence_own(&mut self, now: Instant, slot: Slot) {
        let Some(hold) = self.hold_of(slot) else { return };
        hold.own = hold.own.saturating_sub(1);
        self.pump_hold(now, slot);
    }

    /// Whether [`Bridge::take_news`] has something.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.routed.as_ref().is_some_and(|routed| !routed.news.is_empty())
    }

    /// What the router has to know, since the last call.
    pub fn take_news(&mut self) -> News {
        self.routed.as_mut().map_or_else(News::default, |routed| std::mem::take(&mut routed.news))
    }

    /// The server says that slots have moved.
    pub(super) fn note_slots_moved(&mut self, moved: &SlotsMoved) {
        /// Announcements that wait for the router; more say nothing that a new map would not.
        const MOVES_MAX: usize = 64;
        let Some(routed) = &mut self.routed else { return };
        if routed.news.moves.len() < MOVES_MAX {
            routed.news.moves.push(moved.clone());
        } else {
            routed.trouble(MapTrouble::Redirected);
        }
    }

    /// The endpoint cannot be reached, or could not be a moment ago.
    pub(super) fn note_down(&mut self) {
        if let Some(routed) = &mut self.routed {
            routed.trouble(MapTrouble::Down);
        }
        // A read need not wait here for the next dial.
        if self.is_reader() {
            self.shed_after_loss();
        }
    }

    /// When a slot's wait is over.
    pub(super) fn routed_timeout(&self) -> Option<Instant> {
        self.routed.as_ref().and_then(|routed| routed.due)
    }

    /// Everything that time, answers and returned bytes make possible.
    #[cold]
    pub(super) fn settle_routed(&mut self, now: Instant) {
        self.gather(now);
        self.check_fences(now);
        if self.routed_timeout().is_some_and(|due| due <= now) {
            let Some(routed) = &mut self.routed else { return };
            routed.due = None;
            let slots: Vec<Slot> = routed.holds.keys().copied().collect();
            slots.into_iter().for_each(|slot| self.pump_hold(now, slot));
        }
    }

    /// Whether [`Bridge::settle_routed`] has anything to look at.
    #[inline]
    pub(super) fn is_routing(&self) -> bool {
        self.routed
            .as_ref()
            .is_some_and(|routed| routed.has_gathering() || !routed.fences.is_empty() || routed.due.is_some())
    }

    /// Makes `slot` wait for about `wait`, in whole ticks: slots that wait together go on together.
    fn hold_for(&mut self, now: Instant, slot: Slot, wait: Duration) -> Option<&mut Hold> {
        let tick = u64::try_from(self.config.tick.as_nanos()).unwrap_or(u64::MAX).max(1);
        let due = Instant::from_nanos((now + wait).nanos().div_ceil(tick).saturating_mul(tick));
        let routed = self.routed.as_mut()?;
        routed.due = Some(routed.due.map_or(due, |known| known.min(due)));
        let hold = routed.hold(slot);
        hold.due = hold.due.max(Some(due));
        Some(hold)
    }

    /// A command that waits for its slot is given up by its caller.
    pub(super) fn abandon_held(&mut self, index: u32) {
        let Some(routed) = &mut self.routed else { return };
        let Tag { slot, number, .. } = routed.tag(index);
        if let Some(hold) = routed.holds.get_mut(&slot) {
            hold.waiting.remove(&(number, index));
        }
        if let Some(State::Pending(pending)) = self.slots.at(index).map(|slot| &slot.state) {
            self.unsent_bytes -= pending.len as usize;
        }
        self.slots.remove(index);
        self.grant_room();
    }

    /// Whether commands wait for their slots, or are on their way to another bridge.
    pub(super) fn has_wanderers(&self) -> bool {
        let Some(routed) = &self.routed else { return false };
        !routed.away.is_empty() || !routed.holds.values().all(|hold| hold.waiting.is_empty())
    }

    /// Commands that wait for their slots, for a look at their deadlines.
    pub(super) fn held_indices(&self) -> Vec<u32> {
        let Some(routed) = &self.routed else { return Vec::new() };
        routed.holds.values().flat_map(|hold| hold.waiting.values()).map(|held| held.index).collect()
    }

    /// The bytes of a command that waits for its slot.
    pub(super) fn held_bytes(&self, index: u32) -> Option<&[u8]> {
        let routed = self.routed.as_ref()?;
        let Tag { slot, number, .. } = routed.tag(index);
        let held = routed.holds.get(&slot)?.waiting.get(&(number, index))?;
        Some(&held.bytes)
    }

    /// Ends commands that wait for their slots.
    pub(super) fn fail_held(&mut self, now: Instant, ended: &[(u32, ErrorKind)]) {
        if ended.is_empty() {
            return;
        }
        // They leave their lists afterwards: their errors tell their names.
        for (index, kind) in ended {
            self.fail_queued(now, *index, kind.clone());
        }
        let ended: BTreeSet<u32> = ended.iter().map(|(index, _)| *index).collect();
        let Some(routed) = &mut self.routed else { return };
        for hold in routed.holds.values_mut() {
            hold.waiting.retain(|_, held| !ended.contains(&held.index));
        }
    }

    /// After a loss: what is in the queue and belongs to slots that are elsewhere follows them, what any endpoint may serve
    /// goes to another one, and what belongs to slots that wait waits with the rest.
    pub(super) fn shed_after_loss(&mut self) {
        let Some(routed) = &mut self.routed else { return };
        let waiting: Vec<Slot> = routed.holds.keys().copied().collect();
        waiting.into_iter().for_each(|slot| {
            routed.hold(slot);
        });
        let is_leaving = routed.is_leaving;
        let is_reader = routed.is_reader;
        // Taken out for the look, which needs the rest of the bridge.
        let closed = std::mem::take(&mut routed.closed);
        let held = self.extract(|tag, flags| match tag.slot {
            NO_SLOT => !is_reader && !flags.contains(Flags::PINNED),
            slot => is_leaving || is_reader || closed.contains(slot),
        });
        if let Some(routed) = &mut self.routed {
            routed.closed = closed;
        }
        held.into_iter().for_each(|held| self.stray(held, StrayReason::Returned));
    }

    /// Everything that waits is over: the bridge was closed without a connection.
    pub(super) fn fail_all_held(&mut self, now: Instant, kind: &ErrorKind) {
        let ended: Vec<_> = self.held_indices().into_iter().map(|index| (index, kind.clone())).collect();
        self.fail_held(now, &ended);
    }

    /// Whether the command of a ticket went to another bridge.
    #[inline]
    pub fn is_forwarded(&mut self, ticket: Ticket) -> bool {
        self.slots.get_mut(ticket).is_some_and(|slot| matches!(slot.state, State::Forwarded))
    }

    /// Whether what was not sent has to be taken out of the queue, as soon as no writer has bytes.
    pub(super) fn is_gathering(&self) -> bool {
        self.routed.as_ref().is_some_and(|routed| routed.has_gathering())
    }

    /// Why the outcome of a ticket is not here, if its command went to another bridge: its slot is free with that.
    pub fn take_forwarded(&mut self, ticket: Ticket) -> bool {
        let is_forwarded = self.is_forwarded(ticket);
        if is_forwarded {
            self.slots.remove(ticket.index());
        }
        is_forwarded
    }
}
