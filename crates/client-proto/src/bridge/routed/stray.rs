//! Commands on their way from one bridge to another.
//!
//! Owns what becomes of a command that its server refused because it is not the right one, or not now; and the hand-over
//! of a command with everything that is known about it. Does not own where it goes.
//!
//! A command keeps its deadline, its class and its past on the way. Its caller goes on waiting for the ticket of the first
//! bridge, and is told by [`Bridge::take_forwarded`] to ask the second one.

use std::time::Duration;

use towline_cluster::{Redirect, Slot};
use towline_resp::frame::Frame;
use towline_sansio::Instant;
use towline_spec::SideEffect;

use super::{Held, MapTrouble, NO_SLOT, News, Tag};
use crate::bridge::{Attempts, Bridge, Millis, Pending, Place, State};
use crate::command::{Flags, Reply};
use crate::error::Error;
use crate::routing::{Cure, REDIRECTS_AT_ONCE, ReadFrom, Refusal, cure};
use crate::server_error::{ServerClass, ServerError};
use crate::slab::Ticket;

const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// A command without a bridge.
#[derive(Debug)]
pub struct Stray {
    /// The ticket that its caller has, at the bridge that it comes from.
    pub origin: Ticket,
    /// The slot of its keys.
    pub slot: Option<Slot>,
    /// Why it left.
    pub reason: StrayReason,
    /// Who may answer it: [`ReadFrom::Primary`] unless it comes from a bridge for reads.
    pub read: ReadFrom,
    effect: SideEffect,
    flags: Flags,
    attempts: Attempts,
    submitted: Millis,
    deadline: Millis,
    replies: u32,
    redirects: u8,
    waits: u8,
    number: u64,
    bytes: Vec<u8>,
}

/// Why a command leaves its bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrayReason {
    /// The server said where to go; not before this time has passed, if there is one.
    Redirected(Redirect, Option<Duration>),
    /// Its slot has moved, and it was sent and came back.
    Returned,
    /// Its slot has moved, and it waited: in the queue, or for its slot.
    Shed,
}

/// How a bridge takes a command from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopt {
    /// It was sent and came back: before what was not sent.
    First,
    /// As [`Adopt::First`], after `ASKING`: the slot belongs to another bridge.
    Asking,
    /// It waited when its slot moved.
    Unsent,
}

impl<W> Bridge<W> {
    /// All replies to a unit, or to `ASKING` and what follows it.
    pub(in crate::bridge) fn answer_unit(
        &mut self,
        now: Instant,
        index: u32,
        mut frames: Vec<Frame>,
        len: usize,
    ) -> usize {
        let is_asking = self.routed.as_ref().is_some_and(|routed| routed.tag(index).is_asking);
        let mut is_unit = false;
        if let Some(slot) = self.slots.at_mut(index) {
            is_unit = slot.flags.contains(Flags::TRANSACTION);
            if let State::Pending(pending) = &mut slot.state {
                // If it is sent again, all of it is answered again.
                pending.replies = u32::try_from(frames.len()).unwrap_or(u32::MAX);
            }
        }
        if is_asking && !frames.is_empty() {
            frames.remove(0);
        }
        if is_unit {
            if let Some(error) = refusal_of_unit(&frames)
                && self.send_elsewhere(now, index, &error)
            {
                return len;
            }
            self.complete(now, index, Reply::Many(frames));
            return len;
        }
        match (frames.pop(), frames.is_empty()) {
            (Some(Frame::Error(text) | Frame::BlobError(text)), true) => {
                self.refused(now, index, ServerError::from_bytes(&text), len)
            }
            (Some(frame), true) => {
                self.complete(now, index, Reply::One(frame));
                len
            }
            (last, _) => {
                frames.extend(last);
                self.complete(now, index, Reply::Many(frames));
                len
            }
        }
    }

    /// Whether a refused command is sent again, to whomever. Otherwise the refusal is its answer, or goes by the rules of
    /// a single endpoint.
    pub(in crate::bridge) fn send_elsewhere(
        &mut self,
        now: Instant,
        index: u32,
        error: &ServerError,
    ) -> bool {
        let (Some(routed), Some((ticket, slot))) = (&self.routed, self.slots.entry_at_mut(index)) else {
            return false;
        };
        let tag = routed.tag(index);
        let is_unwanted = slot.is_orphan() && !slot.flags.contains(Flags::FIRE_AND_FORGET);
        if tag.slot == NO_SLOT || is_unwanted || !error.class().is_not_executed() {
            return false;
        }
        let cure = if routed.is_reader {
            cure_read(tag.redirects)
        } else {
            cure(&Refusal {
                class: error.class(),
                redirects: tag.redirects,
                no_retry: slot.flags.contains(Flags::NO_RETRY),
            })
        };
        let State::Pending(pending) = &slot.state else { return false };
        if cure == Cure::Fail {
            return false;
        }
        let range = pending.end - u64::from(pending.len)..pending.end;
        let mut bytes = Vec::new();
        // One that has to wait for its bytes is followed by all that come after it.
        if !self.postponed.is_empty() || !self.log.copy(range, &mut bytes) {
            if !self.log.is_out() {
                return false;
            }
            slot.place = Place::Strayed;
            self.postponed.push((ticket, error.clone()));
            return true;
        }
        slot.place = Place::Held;
        self.unsent_bytes += pending.len as usize;
        self.partial.remove(&index);
        self.report.counters.refused_retried += 1;
        let held = Held { index, number: tag.number, is_returned: true, bytes };
        self.send_on(now, held, tag, error, cure);
        true
    }

    fn send_on(&mut self, now: Instant, held: Held, tag: Tag, error: &ServerError, cure: Cure) {
        let index = held.index;
        match cure {
            Cure::Follow { .. } if self.is_reader() => {
                let is_redirect = matches!(error.class(), ServerClass::Moved | ServerClass::Ask);
                self.note_trouble(if is_redirect { MapTrouble::Redirected } else { MapTrouble::Refused });
                self.retag(index, Tag { redirects: tag.redirects.saturating_add(1), ..tag });
                self.stray(held, StrayReason::Returned);
            }
            Cure::Follow { is_at_once } => {
                let redirects = tag.redirects.saturating_add(1);
                let pause = (!is_at_once).then(|| self.refused_wait(redirects));
                self.retag(index, Tag { redirects, ..tag });
                self.note_trouble(MapTrouble::Redirected);
                match Redirect::parse(error.text()) {
                    Some(redirect) => self.stray(held, StrayReason::Redirected(redirect, pause)),
                    None => self.wait(now, held, tag),
                }
            }
            Cure::Wait | Cure::Fail => {
                self.note_trouble(MapTrouble::Refused);
                self.wait(now, held, tag);
            }
        }
    }

    /// Keeps a refused command, and with it its slot; or lets it go, if the slot is another bridge's.
    fn wait(&mut self, now: Instant, held: Held, tag: Tag) {
        let waits = tag.waits.saturating_add(1);
        let wait = self.refused_wait(waits);
        self.retag(held.index, Tag { waits, ..tag });
        // The bridge that has the slot now waits for this one to be answered or to come.
        let is_elsewhere =
            self.routed.as_ref().is_some_and(|it| it.is_leaving || it.closed.contains(tag.slot));
        if is_elsewhere && !tag.is_asking {
            return self.stray(held, StrayReason::Returned);
        }
        if let Some(hold) = self.hold_for(now, tag.slot, wait) {
            hold.keep(held);
        }
    }

    fn retag(&mut self, index: u32, tag: Tag) {
        if let Some(routed) = &mut self.routed {
            routed.set_tag(index, tag);
        }
    }

    pub(in crate::bridge) fn note_trouble(&mut self, trouble: MapTrouble) {
        if let Some(routed) = &mut self.routed {
            routed.trouble(trouble);
        }
    }

    /// Makes a stray of a command whose bytes were taken out of the log.
    pub(super) fn stray(&mut self, held: Held, reason: StrayReason) {
        let Held { index, mut bytes, .. } = held;
        let (Some(routed), Some((origin, slot))) = (&mut self.routed, self.slots.entry_at_mut(index)) else {
            return;
        };
        let State::Pending(pending) = &mut slot.state else { return };
        self.unsent_bytes -= pending.len as usize;
        let mut tag = routed.tag(index);
        if std::mem::take(&mut tag.is_asking) {
            bytes.drain(..ASKING.len().min(bytes.len()));
            pending.replies = pending.replies.saturating_sub(1).max(1);
        }
        slot.place = Place::Strayed;
        routed.away.push(origin);
        routed.news.strays.push(Stray {
            origin,
            slot: (tag.slot != NO_SLOT).then_some(tag.slot),
            reason,
            read: tag.read,
            effect: slot.effect,
            flags: slot.flags,
            attempts: slot.attempts,
            submitted: slot.submitted,
            deadline: slot.deadline,
            replies: pending.replies,
            redirects: tag.redirects,
            waits: tag.waits,
            number: tag.number,
            bytes,
        });
    }

    /// Refused commands without keys that wait leave as well.
    pub(super) fn shed_delayed(&mut self, news: &mut News) {
        let earlier = self.routed.as_mut().map(|routed| std::mem::take(&mut routed.news));
        for delayed in std::mem::take(&mut self.delayed) {
            if let Some(State::Pending(pending)) = self.slots.at(delayed.index).map(|slot| &slot.state) {
                self.unsent_bytes += pending.len as usize;
            }
            let (index, bytes) = (delayed.index, delayed.bytes);
            let number = self.routed.as_ref().map_or(0, |routed| routed.tag(index).number);
            self.stray(Held { index, number, is_returned: false, bytes }, StrayReason::Shed);
        }
        if let (Some(routed), Some(earlier)) = (&mut self.routed, earlier) {
            let mut shed = std::mem::replace(&mut routed.news, earlier);
            news.strays.append(&mut shed.strays);
        }
    }

    /// Takes a command from another bridge; `None` if nothing is taken here any more.
    pub fn adopt(&mut self, now: Instant, stray: &Stray, how: Adopt) -> Option<Ticket> {
        if self.routed.as_ref().is_none_or(|routed| routed.is_leaving) || self.is_closed {
            return None;
        }
        let is_asking = how == Adopt::Asking;
        let mut bytes = if is_asking { ASKING.to_vec() } else { Vec::new() };
        bytes.extend_from_slice(&stray.bytes);
        let len = u32::try_from(bytes.len()).ok()?;
        let slot = stray.slot.unwrap_or(NO_SLOT);
        let pending = Pending { end: 0, waiter: None, len, replies: stray.replies + u32::from(is_asking) };
        let ticket = self.slots.insert(super::super::Slot {
            effect: stray.effect,
            flags: stray.flags,
            place: Place::Held,
            attempts: stray.attempts,
            generation: 0,
            submitted: stray.submitted,
            deadline: stray.deadline,
            state: State::Pending(pending),
        });
        self.unsent_bytes += len as usize;
        if !stray.flags.contains(Flags::ENDLESS) {
            let left = stray.deadline.wrapping_sub(self.clock.millis(now)).cast_signed().max(0);
            self.clock.arm(now + Duration::from_millis(u64::from(left.cast_unsigned())));
        }
        let (redirects, waits, number) = (stray.redirects, stray.waits, stray.number);
        self.retag(ticket.index(), Tag { slot, redirects, waits, is_asking, read: stray.read, number });
        let is_returned = how != Adopt::Unsent;
        self.take_in(now, Held { index: ticket.index(), number, is_returned, bytes }, stray, how);
        self.advance(now);
        Some(ticket)
    }

    /// Lets an adopted command wait for its slot, or go.
    fn take_in(&mut self, now: Instant, held: Held, stray: &Stray, how: Adopt) {
        let Some(slot) = stray.slot else { return self.enqueue(now, held) };
        let pause = match stray.reason {
            StrayReason::Redirected(_, pause) => pause,
            StrayReason::Returned | StrayReason::Shed => None,
        };
        // Nobody promises an order between what was sent to two servers, nor between reads of replicas.
        let is_free = how == Adopt::Asking || stray.read != ReadFrom::Primary;
        let wait = match (pause, self.hold_of(slot)) {
            (Some(pause), _) => pause,
            (None, Some(hold)) if held.is_returned && hold.lets_pass(held.number) => {
                return self.enqueue(now, held);
            }
            (None, Some(hold)) => return hold.keep(held),
            (None, None) if is_free => return self.enqueue(now, held),
            // It comes back to a bridge that did not wait for it, and what lies in the queue there may be younger.
            (None, None) => Duration::ZERO,
        };
        if let Some(hold) = self.hold_for(now, slot, wait) {
            hold.keep(held);
        }
    }

    pub(super) fn hold_of(&mut self, slot: Slot) -> Option<&mut super::Hold> {
        self.routed.as_mut()?.holds.get_mut(&slot)
    }

    /// Another bridge has the command that `origin` was for. False if its caller has given it up meanwhile: then the
    /// other bridge should do so, too.
    pub fn forwarded(&mut self, now: Instant, origin: Ticket) -> bool {
        self.is_back(origin);
        let Some(slot) = self.slots.get_mut(origin) else { return false };
        let is_watched = !slot.is_orphan();
        let is_wanted = is_watched || slot.flags.contains(Flags::FIRE_AND_FORGET);
        if is_watched {
            let state = std::mem::replace(&mut slot.state, State::Forwarded);
            if let State::Pending(Pending { waiter: Some(waiter), .. }) = state {
                self.wakes.push(waiter);
            }
        } else {
            self.slots.remove(origin.index());
        }
        self.advance(now);
        is_wanted
    }

    /// Nobody can be found for the command that `origin` was for: it fails.
    pub fn fail_stray(&mut self, now: Instant, origin: Ticket, error: Error) {
        self.is_back(origin);
        if self.slots.ticket(origin.index()) == Some(origin) {
            self.finish(origin.index(), Err(error));
        }
        self.advance(now);
    }

    fn is_back(&mut self, origin: Ticket) {
        if let Some(routed) = &mut self.routed
            && let Some(at) = routed.away.iter().position(|away| *away == origin)
        {
            routed.away.swap_remove(at);
        }
    }
}

impl Stray {
    /// Whether it may have run before, so that an error must not say that it did not.
    pub fn sent(&self) -> crate::error::Sent {
        self.attempts.sent()
    }

    /// Whether a server has refused it.
    pub const fn is_refused(&self) -> bool {
        self.redirects > 0
    }
}

/// A replica that cannot answer is no reason to wait: somebody else can. Who is sent to replicas only comes to an end after a
/// few of them.
const fn cure_read(redirects: u8) -> Cure {
    if redirects < REDIRECTS_AT_ONCE { Cure::Follow { is_at_once: true } } else { Cure::Fail }
}

/// Why a `MULTI` … `EXEC` unit was refused as a whole, so that nothing of it ran; `None` if anything did, or may have.
fn refusal_of_unit(frames: &[Frame]) -> Option<ServerError> {
    let last = frames.last()?;
    let is_begun = frames.first().is_some_and(|frame| ServerError::from_frame(frame).is_none());
    ServerError::from_frame(last)?;
    if !is_begun && !frames.iter().all(|frame| ServerError::from_frame(frame).is_some()) {
        return None;
    }
    let first = frames.iter().find_map(ServerError::from_frame)?;
    (first.class() != ServerClass::Answer).then_some(first)
}
