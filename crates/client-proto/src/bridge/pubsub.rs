//! Publish and subscribe on a connection of its own.
//!
//! Owns the subscribers: their queues, who waits for confirmations, when a refused subscription is tried again, and
//! when the connection is no longer needed. Does not own what is subscribed and what should be
//! ([`crate::subscriptions`]) nor how it is shown to applications.
//!
//! A bridge with this part may carry commands as well, but on RESP2 the server then refuses most of them.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use towline_resp::Proto;
use towline_resp::frame::Frame;
use towline_sansio::Instant;
use towline_spec::SideEffect;

use super::conn::Role;
use super::overlap::{Overlap, is_marker};
use super::{Bridge, Flight, MapTrouble};
use crate::command::{Flags, Order};
use crate::error::{Error, ErrorKind, LostCause, ProtocolError, Sent};
use crate::generation::Generation;
use crate::policy::{Outage, Verdict};
use crate::server_error::{ServerClass, ServerError};
use crate::subscriptions::{
    BatchReply, Confirmed, Inherited, Item, Kind, Lagged, Message, NAMES_MAX, Outbox, Overflow, PushEvent,
    Refused, Subscribed, SubscriberId, Subscriptions, take_push,
};

/// The choices of a bridge that subscribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PubSubConfig {
    /// Most names subscribed at a time. Default [`NAMES_MAX`].
    pub names_max: usize,
    /// How long the bridge goes on without a subscriber before it closes itself. Default 5 s: a program that
    /// subscribes for one answer at a time dials once and not every time.
    pub linger: Duration,
}

impl Default for PubSubConfig {
    fn default() -> Self {
        Self { names_max: NAMES_MAX, linger: Duration::from_secs(5) }
    }
}

#[derive(Debug)]
pub(super) struct PubSub<W> {
    pub(super) subscriptions: Subscriptions,
    /// What the successor of the connection is subscribed to, while it is made ready.
    pub(super) overlap: Option<Box<Overlap>>,
    /// Those of a connection that was left before it had answered everything.
    retired: Option<Subscriptions>,
    subscribers: BTreeMap<SubscriberId, Subscriber<W>>,
    next_id: u64,
    linger: Duration,
    /// Since when there has been no subscriber.
    empty_since: Option<Instant>,
    /// When to try again what the server refused for now.
    retry_at: Option<Instant>,
    /// Such refusals in a row.
    retries: u8,
}

/// Whose subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Present,
    /// Those of the successor.
    Mirror,
    /// Those of a connection that was left.
    Retired,
}

#[derive(Debug)]
struct Subscriber<W> {
    outbox: Outbox,
    /// Who waits for the next item.
    reader: Option<W>,
    request: Option<Request<W>>,
}

/// Names that a subscriber has asked for and the server has not confirmed yet. Granted together or not at all.
#[derive(Debug)]
struct Request<W> {
    kind: Kind,
    /// All of its names that were new.
    names: Vec<Bytes>,
    open: BTreeSet<Bytes>,
    failure: Option<Error>,
    waiter: Option<W>,
}

impl<W> Request<W> {
    fn fail(&mut self, error: Error, wakes: &mut Vec<W>) {
        self.failure.get_or_insert(error);
        wakes.extend(self.waiter.take());
    }
}

impl<W> Subscriber<W> {
    fn push(&mut self, item: Item, wakes: &mut Vec<W>) {
        self.outbox.push(item);
        wakes.extend(self.reader.take());
    }
}

impl<W> PubSub<W> {
    pub(super) fn new(config: PubSubConfig, now: Instant) -> Self {
        Self {
            subscriptions: Subscriptions::new(config.names_max),
            overlap: None,
            retired: None,
            subscribers: BTreeMap::new(),
            next_id: 0,
            linger: config.linger,
            empty_since: Some(now),
            retry_at: None,
            retries: 0,
        }
    }

    pub(super) fn on_connected(&mut self, generation: Generation) {
        self.retry_at = None;
        self.retries = 0;
        self.retired = None;
        self.subscriptions.on_connected(generation);
    }

    /// While the successor has them all, or nearly all, what is desired and what was confirmed is still needed.
    pub(super) fn on_lost(&mut self, generation: Generation) {
        if self.overlap.as_ref().is_some_and(|overlap| overlap.old() == generation) {
            return;
        }
        self.retry_at = None;
        self.subscriptions.on_lost(generation);
    }

    /// The subscriptions of another connection take the place of the present ones.
    pub(super) fn inherit(&mut self, mirror: Subscriptions, is_whole: bool) -> Inherited {
        self.retry_at = None;
        self.retries = 0;
        let mut old = std::mem::replace(&mut self.subscriptions, mirror);
        let inherited = self.subscriptions.inherit(&mut old, is_whole);
        self.retired = old.has_batches().then_some(old);
        inherited
    }

    /// The subscriptions of connection `generation`, and which ones those are.
    fn of(&mut self, generation: Generation) -> Option<(&mut Subscriptions, Part)> {
        if self.subscriptions.generation() == Some(generation) {
            return Some((&mut self.subscriptions, Part::Present));
        }
        if let Some(mirror) = self.overlap.as_mut().and_then(|overlap| overlap.subscriptions(generation)) {
            return Some((mirror, Part::Mirror));
        }
        let retired = self.retired.as_mut().filter(|retired| retired.generation() == Some(generation));
        retired.map(|retired| (retired, Part::Retired))
    }

    /// The subscriptions of connection `generation`, while it takes changes.
    fn changeable(&mut self, generation: Generation) -> Option<&mut Subscriptions> {
        match &mut self.overlap {
            Some(overlap) if !overlap.may_change(generation) => None,
            Some(overlap) if overlap.old() != generation => overlap.subscriptions(generation),
            _ => Some(&mut self.subscriptions),
        }
    }

    /// When [`Bridge::handle_timeout`] has something to do for it.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let linger = self.empty_since.map(|since| since + self.linger);
        let overlap = self.overlap.as_ref().and_then(|overlap| overlap.poll_timeout());
        [linger, self.retry_at, overlap].into_iter().flatten().min()
    }

    /// No connection comes for now: requests end, subscriptions stay.
    pub(super) fn fail_requests(&mut self, kind: &ErrorKind, wakes: &mut Vec<W>) {
        for request in self.subscribers.values_mut().filter_map(|subscriber| subscriber.request.as_mut()) {
            request.fail(Error::new(kind.clone(), Sent::No), wakes);
        }
    }

    /// The bridge has ended: whoever waits is woken to learn it.
    pub(super) fn close(&mut self, wakes: &mut Vec<W>) {
        self.empty_since = None;
        self.retry_at = None;
        self.fail_requests(&ErrorKind::Closed, wakes);
        wakes.extend(self.subscribers.values_mut().filter_map(|subscriber| subscriber.reader.take()));
    }

    /// Gives a push to those whom it concerns; false if it concerns nobody.
    fn on_push(&mut self, generation: Generation, push: Vec<Frame>, wakes: &mut Vec<W>) -> bool {
        if let Some(overlap) = &mut self.overlap
            && overlap.subscriptions(generation).is_some()
        {
            return overlap.on_push(push);
        }
        match self.subscriptions.on_push(generation, push) {
            PushEvent::Message(message) => {
                let message = match &mut self.overlap {
                    Some(overlap) => overlap.on_old_message(message),
                    None => Some(message),
                };
                if let Some(message) = message {
                    self.on_message(&message, wakes);
                }
            }
            PushEvent::Confirmed(confirmed) => {
                self.retries = 0;
                self.on_confirmed(confirmed, wakes);
            }
            // Subscribed again by the machine if anybody wants it; the confirmation then carries the gap.
            PushEvent::Removed { .. } => {}
            PushEvent::Unknown | PushEvent::Other(_) => return false,
        }
        true
    }

    /// Gives a message to all who want it.
    pub(super) fn on_message(&mut self, message: &Message, wakes: &mut Vec<W>) {
        if is_marker(message) {
            return;
        }
        for id in self.subscriptions.subscribers(message.kind, message.subscription()) {
            if let Some(subscriber) = self.subscribers.get_mut(&id) {
                subscriber.push(Item::Message(message.clone()), wakes);
            }
        }
    }

    /// Settles requests for a name that is confirmed now, and tells those who may have missed messages.
    pub(super) fn on_confirmed(&mut self, confirmed: Confirmed, wakes: &mut Vec<W>) {
        for id in confirmed.new {
            let subscriber = self.subscribers.get_mut(&id);
            let Some(request) = subscriber.and_then(|subscriber| subscriber.request.as_mut()) else {
                continue;
            };
            if request.kind == confirmed.kind
                && request.open.remove(&confirmed.name)
                && request.open.is_empty()
            {
                wakes.extend(request.waiter.take());
            }
        }
        for id in confirmed.gaps {
            self.push(id, Item::Gap(confirmed.gap.clone()), wakes);
        }
    }

    /// Gives an item to one subscriber, if there is such a one.
    pub(super) fn push(&mut self, id: SubscriberId, item: Item, wakes: &mut Vec<W>) {
        if let Some(subscriber) = self.subscribers.get_mut(&id) {
            subscriber.push(item, wakes);
        }
    }

    /// A refusal that time does not cure. Whoever has just asked for the name gets it as the answer, whoever had it
    /// before finds it among its items.
    fn on_refused(&mut self, refused: &Refused, wakes: &mut Vec<W>) {
        for id in &refused.subscribers {
            let Some(subscriber) = self.subscribers.get_mut(id) else { continue };
            match &mut subscriber.request {
                Some(request) if request.kind == refused.kind && request.open.contains(&refused.name) => {
                    request.fail(Error::server(refused.error.clone()), wakes);
                }
                _ => subscriber.push(Item::Refused(refused.clone()), wakes),
            }
        }
    }

    /// Takes back what a request asked for.
    fn revoke(&mut self, id: SubscriberId) -> Option<Error> {
        let request = self.subscribers.get_mut(&id)?.request.take()?;
        for name in &request.names {
            self.subscriptions.unsubscribe(id, request.kind, name);
        }
        request.failure
    }
}

impl<W> Bridge<W> {
    /// The same bridge, for subscriptions. It closes itself once nobody has subscribed for
    /// [`PubSubConfig::linger`].
    #[must_use]
    pub fn with_pubsub(mut self, config: PubSubConfig, now: Instant) -> Self {
        self.pubsub = Some(PubSub::new(config, now));
        self
    }

    /// A subscriber without a subscription, whose queue holds at most `bytes_max` bytes. Ends by
    /// [`Bridge::close_subscriber`].
    ///
    /// # Errors
    /// [`ErrorKind::Closed`]; [`ErrorKind::Misuse`] if the bridge is not one for subscriptions.
    pub fn open_subscriber(&mut self, bytes_max: usize, overflow: Overflow) -> Result<SubscriberId, Error> {
        if self.is_closed {
            return Err(Error::new(ErrorKind::Closed, Sent::No));
        }
        let Some(pubsub) = &mut self.pubsub else { return Err(not_subscribing()) };
        let id = SubscriberId(pubsub.next_id);
        pubsub.next_id += 1;
        pubsub.empty_since = None;
        let subscriber = Subscriber { outbox: Outbox::new(bytes_max, overflow), reader: None, request: None };
        pubsub.subscribers.insert(id, subscriber);
        Ok(id)
    }

    /// Asks for names, all of one kind. They are granted together or not at all; [`Bridge::poll_subscribed`] says
    /// when. Names that the subscriber has already are passed over.
    ///
    /// # Errors
    /// Nothing has changed in any of these cases. [`ErrorKind::Closed`]; [`ErrorKind::Unavailable`]: the connection was
    /// lost and the policy does not wait; [`ErrorKind::Misuse`]: the bridge is not one for subscriptions, the subscriber has gone, its last request is not settled, or there are too many names.
    pub fn subscribe<N: AsRef<[u8]>>(
        &mut self,
        now: Instant,
        id: SubscriberId,
        kind: Kind,
        names: impl IntoIterator<Item = N>,
    ) -> Result<(), Error> {
        if self.is_closed {
            return Err(Error::new(ErrorKind::Closed, Sent::No));
        }
        // The first dial is only made because somebody subscribes, so nobody is refused before it.
        if self.link.outage() != Outage::NeverConnected && !self.may_wait(now) {
            return Err(Error::new(ErrorKind::Unavailable, Sent::No));
        }
        let Some(pubsub) = &mut self.pubsub else { return Err(not_subscribing()) };
        let Some(subscriber) = pubsub.subscribers.get_mut(&id) else {
            return Err(Error::misuse("the subscriber has gone"));
        };
        if subscriber.request.is_some() {
            return Err(Error::misuse("the subscriber's last request is not settled"));
        }
        let mut request =
            Request { kind, names: Vec::new(), open: BTreeSet::new(), failure: None, waiter: None };
        let mut too_many = None;
        for name in names {
            let name = name.as_ref();
            if pubsub.subscriptions.has(id, kind, name) {
                continue;
            }
            match pubsub.subscriptions.subscribe(id, kind, name) {
                Ok(subscribed) => {
                    let name = Bytes::copy_from_slice(name);
                    if subscribed == Subscribed::Pending {
                        request.open.insert(name.clone());
                    }
                    request.names.push(name);
                }
                Err(error) => {
                    too_many = Some(error);
                    break;
                }
            }
        }
        subscriber.request = Some(request);
        if too_many.is_some() {
            pubsub.revoke(id);
        }
        self.pump_subscriptions();
        too_many.map_or(Ok(()), |error| Err(Error::misuse(error.to_string())))
    }

    /// Whether something is connected or the policy lets small work wait for it.
    pub fn may_wait(&self, now: Instant) -> bool {
        let order = Order {
            effect: SideEffect::Connection,
            replies: 1,
            deadline: Instant::FAR,
            flags: Flags::PINNED,
            bytes: 0,
            room: None,
        };
        self.conn.is_up() || self.policy.admit(&self.situation(now, &order)) != Verdict::Fail
    }

    /// Whether the subscriber's last request is settled, and how. If it failed, its names are no longer subscribed.
    /// Otherwise `waiter` is asked for what to leave behind; it is given what was left before.
    pub fn poll_subscribed(
        &mut self,
        id: SubscriberId,
        waiter: impl FnOnce(Option<W>) -> W,
    ) -> Poll<Result<(), Error>> {
        let subscriber = self.pubsub.as_mut().and_then(|pubsub| pubsub.subscribers.get_mut(&id));
        let Some(Subscriber { request: slot @ Some(_), .. }) = subscriber else {
            return Poll::Ready(Ok(()));
        };
        match slot {
            Some(request) if request.failure.is_some() => Poll::Ready(self.revoke(id).map_or(Ok(()), Err)),
            Some(request) if !request.open.is_empty() => {
                let left = request.waiter.take();
                request.waiter = Some(waiter(left));
                Poll::Pending
            }
            _ => {
                *slot = None;
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Takes the subscriber's request back, if it is not settled.
    pub fn cancel_subscribe(&mut self, id: SubscriberId) {
        self.revoke(id);
    }

    fn revoke(&mut self, id: SubscriberId) -> Option<Error> {
        let failure = self.pubsub.as_mut()?.revoke(id);
        self.pump_subscriptions();
        failure
    }

    /// Ends subscriptions. Items that are queued already stay; no further ones come.
    pub fn unsubscribe<N: AsRef<[u8]>>(
        &mut self,
        id: SubscriberId,
        kind: Kind,
        names: impl IntoIterator<Item = N>,
    ) {
        let Some(pubsub) = &mut self.pubsub else { return };
        for name in names {
            pubsub.subscriptions.unsubscribe(id, kind, name.as_ref());
        }
        self.pump_subscriptions();
    }

    /// Ends a subscriber with all that it has.
    pub fn close_subscriber(&mut self, now: Instant, id: SubscriberId) {
        let Some(pubsub) = &mut self.pubsub else { return };
        pubsub.subscribers.remove(&id);
        pubsub.subscriptions.remove(id);
        if pubsub.subscribers.is_empty() && !self.is_closed {
            pubsub.empty_since = Some(now);
        }
        self.pump_subscriptions();
    }

    /// The subscriber's next item; `None` when the bridge has ended and nothing is left. Otherwise `waiter` is asked
    /// for what to leave behind; it is given what was left before.
    pub fn poll_item(&mut self, id: SubscriberId, waiter: impl FnOnce(Option<W>) -> W) -> Poll<Option<Item>> {
        let subscriber = self.pubsub.as_mut().and_then(|pubsub| pubsub.subscribers.get_mut(&id));
        let Some(subscriber) = subscriber else { return Poll::Ready(None) };
        if let Some(item) = subscriber.outbox.pop() {
            return Poll::Ready(Some(item));
        }
        if self.is_closed {
            return Poll::Ready(None);
        }
        let left = subscriber.reader.take();
        subscriber.reader = Some(waiter(left));
        Poll::Pending
    }

    /// Bytes in the subscriber's queue, and everything that was dropped from it so far.
    pub fn subscriber_load(&self, id: SubscriberId) -> (usize, Lagged) {
        let subscriber = self.pubsub.as_ref().and_then(|pubsub| pubsub.subscribers.get(&id));
        subscriber.map_or_else(Default::default, |it| (it.outbox.bytes(), it.outbox.dropped()))
    }

    /// Ends the bridge as soon as nobody has subscribed, at once if nobody has: no further subscriber will come.
    pub fn close_when_unused(&mut self, now: Instant) {
        let Some(pubsub) = &mut self.pubsub else { return };
        pubsub.linger = Duration::ZERO;
        if pubsub.subscribers.is_empty() {
            self.close(now);
        }
    }

    /// Sends what makes the server's subscriptions those that are wanted, before anything else.
    pub(super) fn pump_subscriptions(&mut self) {
        let Some(pubsub) = &mut self.pubsub else { return };
        if self.conn.role == Role::Retiring || (self.conn.role == Role::Successor && pubsub.overlap.is_none())
        {
            return;
        }
        let Some(subscriptions) = pubsub.changeable(self.conn.generation) else { return };
        let mut bytes = Vec::new();
        while subscriptions.poll_command(&mut bytes) {
            self.conn.write.push_urgent(&bytes, [Flight::Subscriptions]);
            bytes.clear();
        }
    }

    /// Takes a frame that answers no command; gives back one that does.
    #[inline]
    pub(super) fn take_push(&mut self, now: Instant, frame: Frame) -> Option<Frame> {
        let push = match (&self.pubsub, frame) {
            (None, Frame::Push(push)) => Ok(push),
            (None, other) => return Some(other),
            (Some(_), frame) => take_push(frame, self.protocol()),
        };
        match push {
            Ok(push) => {
                if self.take_notification(now, &push) || self.take_invalidation(&push) {
                    return None;
                }
                let generation = self.conn.generation;
                let wakes = &mut self.wakes;
                let is_known =
                    self.pubsub.as_mut().is_some_and(|pubsub| pubsub.on_push(generation, push, wakes));
                // What a connection brings after the cut has come by its successor.
                if !is_known && self.conn.role != Role::Retiring {
                    self.report.counters.pushes_unknown += 1;
                }
                None
            }
            Err(reply) => Some(reply),
        }
    }

    fn protocol(&self) -> Proto {
        self.conn.info().map_or(Proto::Resp2, |info| info.protocol)
    }

    /// Whether this is a connection on which the server accepts little but subscriptions.
    pub(super) fn is_resp2_subscriber(&self) -> bool {
        self.pubsub.is_some() && self.protocol() == Proto::Resp2
    }

    /// One reply to a batch of subscriptions.
    pub(super) fn subscriptions_frame(&mut self, now: Instant, frame: &Frame) {
        let generation = self.conn.generation;
        let reply = match self.pubsub.as_mut().and_then(|pubsub| pubsub.of(generation)) {
            Some((subscriptions, _)) => subscriptions.on_reply(frame),
            None => BatchReply::Misaligned,
        };
        match reply {
            BatchReply::NeedMore => {}
            BatchReply::Misaligned => self.desync(now, ProtocolError::Misaligned),
            BatchReply::Done(refused) => {
                self.conn.in_flight.pop_front();
                for refused in refused {
                    match self.pubsub.as_mut().and_then(|pubsub| pubsub.of(generation)) {
                        Some((_, Part::Present)) => self.subscription_refused(now, &refused),
                        Some((_, Part::Mirror)) => self.on_mirror_refused(now, refused),
                        Some((_, Part::Retired)) | None => {}
                    }
                }
            }
        }
    }

    pub(super) fn subscription_refused(&mut self, now: Instant, refused: &Refused) {
        let is_moved = refused.error.class() == ServerClass::Moved && self.routed.is_some();
        if is_moved {
            // The router leads the next connection to the channel's owner.
            self.note_trouble(MapTrouble::Refused);
        }
        let Some(pubsub) = &mut self.pubsub else { return };
        if !is_moved && !helps_time(&refused.error) {
            pubsub.on_refused(refused, &mut self.wakes);
        } else if pubsub.retry_at.is_none() {
            pubsub.retries = pubsub.retries.saturating_add(1);
            let retries = pubsub.retries;
            let wait = self.refused_wait(retries);
            if let Some(pubsub) = &mut self.pubsub {
                pubsub.retry_at = Some(now + wait);
            }
        }
    }

    /// Tries again what was refused for now; ends a bridge that nobody needs.
    pub(super) fn handle_pubsub_timeout(&mut self, now: Instant) {
        let Some(pubsub) = &mut self.pubsub else { return };
        if pubsub.retry_at.is_some_and(|at| at <= now) {
            pubsub.retry_at = None;
            pubsub.subscriptions.retry_refused();
            self.pump_subscriptions();
        } else if pubsub.empty_since.is_some_and(|since| since + pubsub.linger <= now) {
            self.close(now);
        }
    }

    /// The end of a bridge that subscribes: nobody waits for a reply, so the connection goes at once.
    pub(super) fn close_pubsub(&mut self, now: Instant) {
        if let Some(pubsub) = &mut self.pubsub {
            pubsub.close(&mut self.wakes);
            self.lose(now, LostCause::Killed);
        }
    }
}

/// Whether the server will agree by and by. Another node's channel is another matter.
pub(super) fn helps_time(error: &ServerError) -> bool {
    let class = error.class();
    class.is_not_executed() && !matches!(class, ServerClass::Moved | ServerClass::Ask)
}

fn not_subscribing() -> Error {
    Error::misuse("this bridge is not one for subscriptions")
}
