//! Subscriptions move to the successor, and nothing is lost or doubled on the way.
//!
//! Owns, from the acceptance of a successor to the cut: the second set of subscriptions, the marker that tells where the
//! streams of the two connections join, what was received beyond that place, and what is said to subscribers when there is
//! no marker. Does not own when a successor is wanted ([`super::maintenance`]), what is subscribed
//! ([`crate::subscriptions`]), nor subscribers' queues ([`super::pubsub`]).
//!
//! ```text
//!            old connection                                successor
//!   Copying    serves, changes go on                         SUBSCRIBE everything, the marker's channel as well
//!      | all confirmed on the successor
//!   Freezing   its open commands are answered
//!      |
//!   Following  no more changes                               what has changed meanwhile
//!      | confirmed
//!   Fencing    PING                                          messages are kept from now on
//!      | PONG: the old one has said all that was published before the successor had everything
//!   Marking    ... m3 m4 MARKER m5 m6                        PUBLISH marker;  ... m4 MARKER m5 m6
//!      |       to subscribers | kept                         dropped at the cut | kept
//!   Over       the cut: the successor's subscriptions are the subscriptions, what it kept is delivered
//! ```
//!
//! A server brings what is published to all subscribers in one order. So the marker parts both streams at the same place:
//! up to it the old connection's messages count, from it on the successor's. What the old connection brings behind its
//! marker is kept until the cut, for the case that the successor is lost before.
//!
//! | what happens | what subscribers get |
//! |---|---|
//! | both markers are seen | nothing but messages |
//! | no marker: not allowed, not in time, too much to keep, RESP2, a cluster (whose nodes have no common order) | an [`Item::Overlap`] each: nothing is lost, the last messages may come twice |
//! | the old connection is lost behind its marker | nothing but messages |
//! | it is lost between the fence and its marker | an [`Item::Overlap`] |
//! | the successor refuses a name for now, for a quarter of the window | an [`Item::Gap`] for that name, once it is confirmed |
//! | the old connection is lost before, or the time is over before the fence | an [`Item::Gap`] for each name, and an [`Item::Overlap`] |
//! | the successor is lost before the cut | nothing but messages, by the old connection |
//!
//! Names that subscribers add while the old connection takes no changes are sent for after the cut; that takes a few
//! round trips, and [`MARKER_WAIT`] and [`FREEZE_MAX`] at most.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use towline_resp::Proto;
use towline_resp::frame::{Frame, encode_command};
use towline_sansio::Instant;

use super::conn::{Conn, Role};
use super::pubsub::helps_time;
use super::{Bridge, Event, Flight, HandoffEvent};
use crate::generation::Generation;
use crate::handshake::ServerMode;
use crate::server_error::ServerError;
use crate::subscriptions::{
    ITEM_OVERHEAD_BYTES, Item, Kind, MARKER_PREFIX, Message, Overlap as OverlapItem, PushEvent, Refused,
    SubscriberId, Subscriptions,
};

/// How long the marker may take. A message takes half a round trip to each side; this is for a server that is busy.
pub(super) const MARKER_WAIT: Duration = Duration::from_secs(1);

/// How long changes of subscribers wait for the fence at most.
pub(super) const FREEZE_MAX: Duration = Duration::from_secs(2);

/// Most bytes of messages that are kept on each side, [`ITEM_OVERHEAD_BYTES`] for each included: what two readers with
/// buffers of the default size hold. At half of it the marker is not waited for any longer.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The subscriber in whose name the marker's channel is subscribed. Real ones are numbered from zero.
const MARKER_SUBSCRIBER: SubscriberId = SubscriberId(u64::MAX - 1);

/// What is known about the messages of names that were carried over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Continuity {
    /// Each came once, in order.
    Exact,
    /// None was lost; the last ones may come twice. Subscribers have an [`Item::Overlap`].
    MayRepeat,
    /// Some may be lost, and some may come twice. Subscribers have an [`Item::Gap`] and an [`Item::Overlap`].
    MayMiss,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Copying,
    Freezing,
    Following,
    Fencing,
    Marking {
        until: Instant,
    },
    /// The cut is due.
    Over,
}

/// Two connections that have the same subscriptions, or will have.
#[derive(Debug)]
pub(super) struct Overlap {
    old: Generation,
    new: Generation,
    began: Instant,
    stage: Stage,
    /// Until when names that the successor refuses for now are waited for.
    retry_until: Instant,
    /// When the fence must have been reached.
    fence_by: Instant,
    /// When the cut is made in any case.
    end_by: Instant,
    /// The successor's subscriptions.
    mirror: Subscriptions,
    /// Names that the successor refused.
    refused: BTreeMap<(Kind, Bytes), ServerError>,
    /// When to try again what it refused for now, and how often that was.
    retry_at: Option<Instant>,
    retries: u8,
    marker: Option<Marker>,
    is_fenced: bool,
    /// The successor has taken the place of the old connection, which is lost.
    is_promoted: bool,
    is_old_marked: bool,
    is_new_marked: bool,
    /// What the old connection brought behind its marker.
    kept_old: Kept,
    /// What the successor brought before its marker, from the fence on: needed if the old connection does not come to its
    /// own.
    kept_before: Kept,
    /// What it brought behind it.
    kept_new: Kept,
}

/// What is published to find the place at which the streams join.
#[derive(Debug)]
struct Marker {
    channel: Bytes,
    token: Bytes,
    is_refused: bool,
}

/// Messages in order, within a bound.
#[derive(Debug, Default)]
struct Kept {
    messages: VecDeque<Message>,
    bytes: usize,
    /// Some were too many.
    is_short: bool,
}

impl Kept {
    fn push(&mut self, message: Message) {
        self.bytes += cost(&message);
        self.messages.push_back(message);
        while self.bytes > KEPT_BYTES_MAX
            && let Some(oldest) = self.messages.pop_front()
        {
            self.bytes -= cost(&oldest);
            self.is_short = true;
        }
    }

    const fn is_half_full(&self) -> bool {
        self.bytes > KEPT_BYTES_MAX / 2
    }
}

fn cost(message: &Message) -> usize {
    let pattern = message.pattern.as_ref().map_or(0, Bytes::len);
    message.channel.len() + pattern + message.payload.len() + ITEM_OVERHEAD_BYTES
}

/// Whether a message is one that a client published on its own account.
pub(super) fn is_marker(message: &Message) -> bool {
    message.channel.starts_with(MARKER_PREFIX.as_bytes())
}

impl Marker {
    fn new(name: u64, token: u64) -> Self {
        Self {
            channel: format!("{MARKER_PREFIX}{name:016x}").into(),
            token: format!("{token:016x}").into(),
            is_refused: false,
        }
    }

    fn is(&self, message: &Message) -> bool {
        message.kind == Kind::Channel && message.channel == self.channel && message.payload == self.token
    }
}

impl Overlap {
    fn new(now: Instant, left: Duration, original: &Subscriptions, old: Generation, new: Generation) -> Self {
        Self {
            old,
            new,
            began: now,
            stage: Stage::Copying,
            retry_until: now + left / 4,
            fence_by: now + left / 2,
            end_by: now + left * 3 / 4,
            mirror: original.mirror(new),
            refused: BTreeMap::new(),
            retry_at: None,
            retries: 0,
            marker: None,
            is_fenced: false,
            is_promoted: false,
            is_old_marked: false,
            is_new_marked: false,
            kept_old: Kept::default(),
            kept_before: Kept::default(),
            kept_new: Kept::default(),
        }
    }

    pub(super) const fn old(&self) -> Generation {
        self.old
    }

    /// The subscriptions of connection `generation`, if it is the successor.
    pub(super) fn subscriptions(&mut self, generation: Generation) -> Option<&mut Subscriptions> {
        (generation == self.new).then_some(&mut self.mirror)
    }

    /// Whether changes may be sent on connection `generation`.
    pub(super) fn may_change(&self, generation: Generation) -> bool {
        let is_copied = !matches!(self.stage, Stage::Copying | Stage::Following);
        if generation == self.new { !is_copied } else { self.stage == Stage::Copying }
    }

    /// When it needs attention.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            // Only a writer, or new credentials, are waited for.
            Stage::Over => None,
            Stage::Marking { until } => Some(until),
            _ => Some(self.retry_at.map_or(self.fence_by, |at| at.min(self.fence_by))),
        }
    }

    /// Takes a push of the successor; false if it concerns nobody.
    pub(super) fn on_push(&mut self, push: Vec<Frame>) -> bool {
        match self.mirror.on_push(self.new, push) {
            PushEvent::Message(message) if is_marker(&message) => {
                self.is_new_marked |= self.marker.as_ref().is_some_and(|marker| marker.is(&message));
            }
            PushEvent::Message(message) => {
                if matches!(self.stage, Stage::Fencing | Stage::Marking { .. } | Stage::Over) {
                    let kept = if self.is_new_marked { &mut self.kept_new } else { &mut self.kept_before };
                    kept.push(message);
                }
            }
            PushEvent::Confirmed(_) => self.retries = 0,
            PushEvent::Removed { .. } => {}
            PushEvent::Unknown | PushEvent::Other(_) => return false,
        }
        true
    }

    /// The old connection's message for subscribers, if they are to have it now.
    pub(super) fn on_old_message(&mut self, message: Message) -> Option<Message> {
        if is_marker(&message) {
            self.is_old_marked |= self.marker.as_ref().is_some_and(|marker| marker.is(&message));
            return None;
        }
        if self.is_old_marked {
            self.kept_old.push(message);
            return None;
        }
        Some(message)
    }

    /// What is known if the cut is made now.
    const fn continuity(&self) -> Continuity {
        if self.kept_new.is_short || !self.is_fenced {
            Continuity::MayMiss
        } else if self.is_old_marked && self.is_new_marked {
            Continuity::Exact
        } else if self.kept_before.is_short {
            Continuity::MayMiss
        } else {
            Continuity::MayRepeat
        }
    }

    /// What the successor brought and subscribers do not have yet, as far as that is known.
    fn kept(self) -> impl Iterator<Item = Message> {
        let is_exact = self.continuity() == Continuity::Exact;
        let before = if is_exact { VecDeque::new() } else { self.kept_before.messages };
        before.into_iter().chain(self.kept_new.messages)
    }

    /// Whether the marker has been seen on both sides, or is not worth waiting for.
    fn is_marked(&self, now: Instant, until: Instant) -> bool {
        (self.is_old_marked && self.is_new_marked)
            || now >= until
            || [&self.kept_old, &self.kept_before, &self.kept_new].iter().any(|kept| kept.is_half_full())
            || self.marker.as_ref().is_none_or(|marker| marker.is_refused)
    }

    /// Whether the marker's channel is subscribed on both sides.
    fn has_marker(&self, original: &Subscriptions) -> bool {
        self.marker.as_ref().is_some_and(|marker| {
            let is_active = |it: &Subscriptions| it.is_active(Kind::Channel, &marker.channel);
            is_active(original) && is_active(&self.mirror)
        })
    }
}

/// Whether the server brings everything in one order, to this connection and to others of it.
fn has_order(conn: &Conn) -> bool {
    conn.info().is_some_and(|info| info.protocol == Proto::Resp3 && info.server.mode != ServerMode::Cluster)
}

impl<W> Bridge<W> {
    /// Whether subscriptions are on their way to another connection.
    #[inline]
    pub(super) fn has_overlap(&self) -> bool {
        self.pubsub.as_ref().is_some_and(|pubsub| pubsub.overlap.is_some())
    }

    /// Commands go to the successor from now on, and so do subscriptions.
    pub(super) fn cut_subscriptions(&mut self, now: Instant) {
        let Some(pubsub) = &mut self.pubsub else { return };
        match &pubsub.overlap {
            Some(_) => self.take_over(now),
            // There are none.
            None => {
                pubsub.on_connected(self.conn.generation);
                self.pump_subscriptions();
            }
        }
    }

    /// Whether the subscriptions are still on their way to the successor, so that the cut has to wait. Begins with them
    /// if that is not done yet; `left`: how long the old connection stands.
    pub(super) fn holds_cut(&mut self, now: Instant, left: Duration) -> bool {
        let Some(pubsub) = &mut self.pubsub else { return false };
        if let Some(overlap) = &pubsub.overlap {
            return !matches!(overlap.stage, Stage::Over);
        }
        let Some(successor) = &self.others.successor else { return false };
        let old = self.conn.generation;
        if pubsub.subscriptions.name_count() == 0 || pubsub.subscriptions.generation() != Some(old) {
            return false;
        }
        let new = successor.generation;
        let marker = Marker::new(self.prng.next_u64(), self.prng.next_u64());
        let has_marker = has_order(&self.conn)
            && has_order(successor)
            && pubsub
                .subscriptions
                .subscribe_alone(MARKER_SUBSCRIBER, Kind::Channel, &marker.channel)
                .is_ok();
        let mut overlap = Overlap::new(now, left, &pubsub.subscriptions, old, new);
        overlap.marker = has_marker.then_some(marker);
        pubsub.overlap = Some(Box::new(overlap));
        self.pump_subscriptions();
        self.pump_successor();
        true
    }

    fn pump_successor(&mut self) {
        let successor = self.pubsub.as_ref().and_then(|pubsub| pubsub.overlap.as_ref()).map(|it| it.new);
        if let Some(successor) = successor {
            self.on_conn(successor, Self::pump_subscriptions);
        }
    }

    /// Goes on with the subscriptions' way to the successor, one stage.
    pub(super) fn settle_overlap(&mut self, now: Instant) -> bool {
        let Some(pubsub) = &mut self.pubsub else { return false };
        let original = &pubsub.subscriptions;
        let Some(overlap) = &mut pubsub.overlap else { return false };
        let is_copied =
            overlap.mirror.is_quiet() && (overlap.retry_at.is_none() || now >= overlap.retry_until);
        let next = match overlap.stage {
            Stage::Over if overlap.is_promoted => {
                self.take_over(now);
                return true;
            }
            Stage::Over => return false,
            Stage::Marking { until } if overlap.is_marked(now, until) => Stage::Over,
            Stage::Marking { .. } => return false,
            Stage::Fencing if overlap.is_fenced => {
                if overlap.has_marker(original) {
                    Stage::Marking { until: (now + MARKER_WAIT).min(overlap.end_by) }
                } else {
                    Stage::Over
                }
            }
            _ if now >= overlap.fence_by => Stage::Over,
            Stage::Copying if is_copied => Stage::Freezing,
            Stage::Freezing if !original.has_batches() => {
                overlap.mirror.follow(original);
                Stage::Following
            }
            Stage::Following if is_copied => {
                overlap.retry_at = None;
                Stage::Fencing
            }
            _ if overlap.retry_at.is_some_and(|at| at <= now) => {
                overlap.retry_at = None;
                overlap.mirror.retry_refused();
                overlap.stage
            }
            _ => return false,
        };
        overlap.stage = next;
        match next {
            Stage::Freezing => overlap.fence_by = overlap.fence_by.min(now + FREEZE_MAX),
            Stage::Fencing => {
                self.conn.write.push_urgent(super::link::PING, [Flight::Fence { successor: overlap.new }])
            }
            Stage::Marking { .. } => self.publish_marker(),
            Stage::Copying | Stage::Following => self.pump_successor(),
            Stage::Over => {}
        }
        true
    }

    fn publish_marker(&mut self) {
        let overlap = self.pubsub.as_ref().and_then(|pubsub| pubsub.overlap.as_ref());
        let Some((overlap, marker)) = overlap.and_then(|it| Some((it, it.marker.as_ref()?))) else { return };
        let mut bytes = Vec::new();
        encode_command(&[b"PUBLISH", &marker.channel[..], &marker.token[..]], &mut bytes);
        self.on_conn(overlap.new, |bridge| bridge.conn.write.push_urgent(&bytes, [Flight::Marker]));
    }

    /// The old connection has answered the fence.
    pub(super) fn on_fence(&mut self, successor: Generation) {
        let overlap = self.pubsub.as_mut().and_then(|pubsub| pubsub.overlap.as_mut());
        if let Some(overlap) = overlap.filter(|overlap| overlap.new == successor) {
            overlap.is_fenced |= overlap.stage == Stage::Fencing;
        }
    }

    /// The successor has answered the publication of the marker.
    pub(super) fn on_marker_reply(&mut self, reply: &Frame) {
        let generation = self.conn.generation;
        let overlap = self.pubsub.as_mut().and_then(|pubsub| pubsub.overlap.as_mut());
        let overlap = overlap.filter(|overlap| overlap.new == generation);
        let marker = overlap.and_then(|overlap| overlap.marker.as_mut());
        if let Some(marker) = marker {
            marker.is_refused |= ServerError::from_frame(reply).is_some();
        }
    }

    /// The successor has refused a name.
    pub(super) fn on_mirror_refused(&mut self, now: Instant, refused: Refused) {
        let Some(pubsub) = &mut self.pubsub else { return };
        let is_active = pubsub.subscriptions.is_active(refused.kind, &refused.name);
        let Some(overlap) = &mut pubsub.overlap else { return };
        let is_for_now = helps_time(&refused.error);
        overlap.refused.insert((refused.kind, refused.name), refused.error);
        if is_for_now && is_active && overlap.retry_at.is_none() {
            overlap.retries = overlap.retries.saturating_add(1);
            let retries = overlap.retries;
            let at = now + self.refused_wait(retries);
            if let Some(overlap) = self.pubsub.as_mut().and_then(|pubsub| pubsub.overlap.as_mut()) {
                overlap.retry_at = Some(at);
            }
        }
    }

    /// A connection serves. Subscriptions are made anew on it, unless it is the successor of one that was lost before the
    /// cut, and has them.
    pub(super) fn connect_subscriptions(&mut self, now: Instant) {
        let generation = self.conn.generation;
        let Some(pubsub) = &mut self.pubsub else { return };
        let Some(overlap) = pubsub.overlap.as_mut().filter(|overlap| overlap.new == generation) else {
            return pubsub.on_connected(generation);
        };
        overlap.is_promoted = true;
        // Behind its marker the old connection had nothing more to say. The successor's place is still to be found.
        if !(overlap.is_old_marked && matches!(overlap.stage, Stage::Marking { .. })) {
            self.take_over(now);
        }
    }

    /// The serving connection is lost, and it was the successor whose marker was still awaited.
    pub(super) fn end_promoted(&mut self, now: Instant) {
        let overlap = self.pubsub.as_ref().and_then(|pubsub| pubsub.overlap.as_ref());
        if overlap.is_some_and(|it| it.is_promoted && it.new == self.conn.generation) {
            self.take_over(now);
        }
    }

    /// The successor's subscriptions are the subscriptions from now on.
    fn take_over(&mut self, now: Instant) {
        let Some(pubsub) = &mut self.pubsub else { return };
        let Some(mut overlap) = pubsub.overlap.take() else { return };
        if let Some(marker) = &overlap.marker {
            pubsub.subscriptions.unsubscribe(MARKER_SUBSCRIBER, Kind::Channel, &marker.channel);
        }
        let (from, to, continuity) = (overlap.old, overlap.new, overlap.continuity());
        let took = now.since(overlap.began);
        let mirror = std::mem::take(&mut overlap.mirror);
        let refused = std::mem::take(&mut overlap.refused);
        let wakes = &mut self.wakes;
        let inherited = pubsub.inherit(mirror, continuity != Continuity::MayMiss);
        for confirmed in inherited.confirmed {
            pubsub.on_confirmed(confirmed, wakes);
        }
        if continuity != Continuity::Exact {
            for id in inherited.carried {
                pubsub.push(id, Item::Overlap(OverlapItem { from, to }), wakes);
            }
        }
        for message in overlap.kept() {
            pubsub.on_message(&message, wakes);
        }
        for ((kind, name), error) in refused {
            let names = self.pubsub.as_ref().map(|pubsub| &pubsub.subscriptions);
            let wanted = names.and_then(|names| names.refused_to(kind, &name));
            if let Some(subscribers) = wanted.filter(|subscribers| !subscribers.is_empty()) {
                self.subscription_refused(now, &Refused { kind, name, error, subscribers });
            }
        }
        self.report.event(Event::Handoff(HandoffEvent::Subscriptions { from, to, continuity, took }));
        self.pump_subscriptions();
    }

    /// There is no successor any more: the old connection's subscriptions stay what they are.
    pub(super) fn abandon_overlap(&mut self) {
        let Some(pubsub) = &mut self.pubsub else { return };
        let Some(overlap) = pubsub.overlap.take_if(|overlap| !overlap.is_promoted) else { return };
        if let Some(marker) = overlap.marker {
            pubsub.subscriptions.unsubscribe(MARKER_SUBSCRIBER, Kind::Channel, &marker.channel);
        }
        let wakes = &mut self.wakes;
        if overlap.kept_old.is_short {
            for (id, gap) in pubsub.subscriptions.gaps() {
                pubsub.push(id, Item::Gap(gap), wakes);
            }
        }
        for message in overlap.kept_old.messages {
            pubsub.on_message(&message, wakes);
        }
        if self.conn.role == Role::Serving {
            self.pump_subscriptions();
        }
    }
}
