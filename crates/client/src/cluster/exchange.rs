//! One command on its way through a cluster.
//!
//! Owns the futures that submit a command to whom its slot belongs and wait for it wherever it goes. Does not own redirects,
//! which the bridges' owners and the router deal with while the caller waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, ready};

use towline_client_proto::routing::ReadFrom;
use towline_client_proto::{
    Encoder, Error, ErrorKind, Order, Polled, Reply, RoomTicket, Sent, SubmitError, Submitted, Ticket,
};
use towline_cluster::Slot;
use towline_resp::frame::Frame;
use towline_sansio::Instant;

use super::Cluster;
use super::node::Node;
use super::read::{Way, no_replica};
use crate::clock;
use crate::engine::{Engine, State};

/// How often the map is looked at again for one command because it has changed in the meantime. Each look waits for the change
/// to be over, so more than two need more changes than there is time for.
const LOOKS_MAX: u32 = 64;

/// Who was asked for room, and the place in its line.
type Room = (Arc<Engine>, Option<RoomTicket>);

/// A command on its way, from its submission to its outcome. Dropping it gives the command up, wherever it is.
#[must_use = "a future does nothing unless polled"]
pub(crate) struct Routed<'a, E> {
    cluster: &'a Cluster,
    slot: Option<Slot>,
    read: ReadFrom,
    order: Order,
    encode: E,
    looks: u32,
    room: Option<Room>,
    state: Routing<'a>,
}

enum Routing<'a> {
    New,
    /// Waits for the first map, or for a replica's lag: rare, hence the box.
    Map(Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>),
    /// Waits for room in a node's backlog: rare as well.
    Room(Pin<Box<dyn Future<Output = Result<Room, Error>> + Send>>),
    Sent(RoutedOutcome),
}

impl Cluster {
    /// Sends one command to the owner of `slot`, or to any node, and waits for its outcome.
    pub(crate) const fn exchange<E: FnMut(&mut Encoder<'_>)>(
        &self,
        slot: Option<Slot>,
        order: Order,
        encode: E,
    ) -> Routed<'_, E> {
        self.exchange_read(slot, ReadFrom::Primary, order, encode)
    }

    /// The same for a command that whoever `read` names may answer: one that only reads, unless that is the primary.
    pub(crate) const fn exchange_read<E: FnMut(&mut Encoder<'_>)>(
        &self,
        slot: Option<Slot>,
        read: ReadFrom,
        order: Order,
        encode: E,
    ) -> Routed<'_, E> {
        Routed { cluster: self, slot, read, order, encode, looks: 0, room: None, state: Routing::New }
    }

    /// Waits for the first map, for as long as a command may.
    pub(super) async fn map_before(&self, order: &Order) -> Result<(), Error> {
        let until = clock::wall(order.deadline);
        match tokio::time::timeout_at(until.into(), self.ready()).await {
            Ok(ready) => ready,
            Err(_) => Err(self.no_map()),
        }
    }

    /// Waits until a change of the map that is under way is over.
    pub(super) fn look_again(&self, looks: &mut u32) -> Result<(), Error> {
        *looks += 1;
        if *looks > LOOKS_MAX {
            return Err(Error::new(ErrorKind::Unavailable, Sent::No));
        }
        if self.lock().is_closed {
            return Err(Error::new(ErrorKind::Closed, Sent::No));
        }
        Ok(())
    }
}

/// Why a look at the map did not end with the command on its way.
enum Look {
    Outcome(Result<Reply, Error>),
    NoMap,
    /// A replica's lag has to be known first.
    NoLag,
    Again,
    NoRoom(Arc<Engine>),
}

impl<E: FnMut(&mut Encoder<'_>)> Routed<'_, E> {
    /// Looks at the map and submits the command. `Ok`: it is on its way.
    #[inline]
    fn look(&mut self, cx: &Context<'_>) -> Result<(), Look> {
        let routes = self.cluster.routes.load();
        if self.read != ReadFrom::Primary
            && let Some(slot) = self.slot
        {
            match self.cluster.way_of_read(&routes, slot, self.read) {
                Way::Owner => {}
                Way::Replica(node) => return self.look_at_replica(cx, &node, slot),
                Way::Later => return Err(Look::NoLag),
                Way::Nobody => return Err(Look::Outcome(Err(no_replica(self.read)))),
            }
        }
        let owner = self.slot.and_then(|slot| routes.owner(slot));
        let Some(node) = owner.or_else(|| self.cluster.any(&routes)) else { return Err(Look::NoMap) };
        let engine = node.engine_of(self.cluster, self.slot);
        if self.room.is_some() {
            self.claim_room(engine);
        }
        let now = clock::now();
        let mut state = engine.lock();
        let waiter = Some(cx.waker().clone());
        let taken = state.bridge.submit_routed(now, self.slot, &self.order, waiter, &mut self.encode);
        self.taken(engine, now, state, taken)
    }

    fn look_at_replica(&mut self, cx: &Context<'_>, node: &Node, slot: Slot) -> Result<(), Look> {
        let engine = self.cluster.reader_of(node);
        if self.room.is_some() {
            self.claim_room(&engine);
        }
        let now = clock::now();
        let mut state = engine.lock();
        let waiter = Some(cx.waker().clone());
        let read = (slot, self.read);
        let taken = state.bridge.submit_read(now, read, &self.order, waiter, &mut self.encode);
        self.taken(&engine, now, state, taken)
    }

    #[inline]
    fn taken(
        &mut self,
        engine: &Arc<Engine>,
        now: Instant,
        state: MutexGuard<'_, State>,
        taken: Result<Submitted, SubmitError>,
    ) -> Result<(), Look> {
        match taken {
            Ok(submitted) => {
                engine.see_to(submitted.flush, now, state);
                let Some(ticket) = submitted.ticket else {
                    return Err(Look::Outcome(Ok(Reply::One(Frame::Null))));
                };
                self.state = Routing::Sent(RoutedOutcome::new(Arc::clone(engine), ticket));
                Ok(())
            }
            Err(error) => {
                crate::engine::wake_finished(state);
                Err(self.refused(engine, error))
            }
        }
    }

    /// What follows when an engine did not take the command.
    #[cold]
    fn refused(&mut self, engine: &Arc<Engine>, error: SubmitError) -> Look {
        let room = self.order.room.take();
        let had_room = room.is_some();
        match error {
            SubmitError::Elsewhere => {
                // The room was not used.
                room.into_iter().for_each(|ticket| give_room_back(engine, ticket));
                Look::Again
            }
            SubmitError::Failed(error) => {
                let is_full = matches!(error.kind(), ErrorKind::BacklogFull { .. });
                if is_full && !had_room {
                    Look::NoRoom(Arc::clone(engine))
                } else {
                    Look::Outcome(Err(error))
                }
            }
        }
    }

    /// Uses the place in the line of whoever was waited for, if the command still goes there.
    #[cold]
    fn claim_room(&mut self, engine: &Arc<Engine>) {
        let Some((from, Some(ticket))) = self.room.take() else { return };
        if Arc::ptr_eq(&from, engine) {
            self.order.room = Some(ticket);
        } else {
            give_room_back(&from, ticket);
        }
    }

    /// Everything before the command is on its way, if that takes more than one look.
    #[cold]
    fn poll_unsent(&mut self, cx: &mut Context<'_>, mut look: Look) -> Poll<Result<Reply, Error>> {
        loop {
            match look {
                Look::Outcome(outcome) => return Poll::Ready(outcome),
                Look::Again => self.cluster.look_again(&mut self.looks)?,
                Look::NoMap => {
                    self.cluster.look_again(&mut self.looks)?;
                    let (cluster, order) = (self.cluster, self.order);
                    self.state = Routing::Map(Box::pin(async move { cluster.map_before(&order).await }));
                }
                Look::NoLag => {
                    let (cluster, order) = (self.cluster, self.order);
                    self.state = Routing::Map(Box::pin(async move { cluster.measured_before(&order).await }));
                }
                Look::NoRoom(engine) => {
                    let order = self.order;
                    self.state = Routing::Room(Box::pin(async move {
                        let ticket = engine.room(&order).await?;
                        Ok((engine, ticket))
                    }));
                }
            }
            ready!(self.poll_wait(cx))?;
            look = match self.look(cx) {
                Ok(()) => return Poll::Pending,
                Err(look) => look,
            };
        }
    }

    /// Waits for the map or for room, if that is what the command waits for.
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match &mut self.state {
            Routing::Map(ready) => ready!(ready.as_mut().poll(cx))?,
            Routing::Room(room) => self.room = Some(ready!(room.as_mut().poll(cx))?),
            Routing::New | Routing::Sent(_) => return Poll::Ready(Ok(())),
        }
        self.state = Routing::New;
        Poll::Ready(Ok(()))
    }
}

fn give_room_back(engine: &Engine, ticket: RoomTicket) {
    let mut state = engine.lock();
    state.bridge.leave_room(ticket);
    crate::engine::wake_finished(state);
}

impl<E: FnMut(&mut Encoder<'_>) + Unpin> Future for Routed<'_, E> {
    type Output = Result<Reply, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match &mut this.state {
            Routing::Sent(outcome) => return Pin::new(outcome).poll(cx),
            Routing::New => {}
            Routing::Map(_) | Routing::Room(_) => ready!(this.poll_wait(cx))?,
        }
        match this.look(cx) {
            Ok(()) => Poll::Pending,
            Err(look) => this.poll_unsent(cx, look),
        }
    }
}

impl<E> Routed<'_, E> {
    /// Who has the command, or had it when it was answered; `None` if it was submitted to nobody.
    pub(crate) fn answered_by(&self) -> Option<&Arc<Engine>> {
        match &self.state {
            Routing::Sent(outcome) => Some(&outcome.engine),
            Routing::New | Routing::Map(_) | Routing::Room(_) => None,
        }
    }
}

impl<E> Drop for Routed<'_, E> {
    fn drop(&mut self) {
        if let Some((engine, Some(ticket))) = self.room.take() {
            give_room_back(&engine, ticket);
        }
    }
}

/// Waits for one command's outcome, and follows the command when it goes to another node.
#[must_use = "a future does nothing unless polled"]
pub(crate) struct RoutedOutcome {
    engine: Arc<Engine>,
    ticket: Option<Ticket>,
}

impl RoutedOutcome {
    pub(super) const fn new(engine: Arc<Engine>, ticket: Ticket) -> Self {
        Self { engine, ticket: Some(ticket) }
    }

    /// Whether the command has gone elsewhere: then this asks there from now on.
    fn has_moved(&mut self, ticket: Ticket) -> bool {
        let mut state = self.engine.lock();
        if !state.bridge.take_forwarded(ticket) {
            return false;
        }
        let Some((engine, ticket)) = state.forwards.remove(&ticket) else { return false };
        drop(state);
        self.engine = engine;
        self.ticket = Some(ticket);
        true
    }
}

impl Future for RoutedOutcome {
    type Output = Result<Reply, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let Some(ticket) = self.ticket else {
                return Poll::Ready(Err(Error::misuse("a command was awaited twice")));
            };
            match self.engine.poll_routed(ticket, cx) {
                Polled::Pending => return Poll::Pending,
                Polled::Ended(outcome) => {
                    self.ticket = None;
                    return Poll::Ready(outcome);
                }
                Polled::Elsewhere if self.has_moved(ticket) => {}
                Polled::Elsewhere => {
                    self.ticket = None;
                    return Poll::Ready(Err(Error::misuse("the outcome of this command was taken already")));
                }
            }
        }
    }
}

impl Drop for RoutedOutcome {
    fn drop(&mut self) {
        while let Some(ticket) = self.ticket.take() {
            if self.has_moved(ticket) {
                continue;
            }
            let mut state = self.engine.lock();
            state.bridge.abandon(ticket);
            crate::engine::wake_finished(state);
        }
    }
}
