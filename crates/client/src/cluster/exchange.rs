//! One command on its way through a cluster.
//!
//! Owns the futures that submit a command to whom its slot belongs and wait for it wherever it goes. Does not own redirects,
//! which the bridges' owners and the router deal with while the caller waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use towline_client_proto::{Encoder, Error, ErrorKind, Order, Reply, RoomTicket, Sent, SubmitError, Ticket};
use towline_cluster::Slot;
use towline_resp::frame::Frame;

use super::Cluster;
use crate::clock;
use crate::engine::Engine;

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
    order: Order,
    encode: E,
    looks: u32,
    room: Option<Room>,
    state: Routing<'a>,
}

enum Routing<'a> {
    New,
    /// Waits for the first map: rare, hence the box.
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
        Routed { cluster: self, slot, order, encode, looks: 0, room: None, state: Routing::New }
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

/// What one look at the map came to.
enum Look {
    Outcome(Result<Reply, Error>),
    Sent(RoutedOutcome),
    NoMap,
    Again,
    NoRoom(Arc<Engine>),
}

impl<E: FnMut(&mut Encoder<'_>)> Routed<'_, E> {
    #[inline]
    fn look(&mut self, cx: &Context<'_>) -> Look {
        let routes = self.cluster.routes.load();
        let owner = self.slot.and_then(|slot| routes.owner(slot));
        let Some(node) = owner.or_else(|| self.cluster.any(&routes)) else { return Look::NoMap };
        let engine = node.engine_in(self.cluster);
        self.claim_room(engine);
        let now = clock::now();
        let mut state = engine.lock();
        let waiter = Some(cx.waker().clone());
        match state.bridge.submit_routed(now, self.slot, &self.order, waiter, &mut self.encode) {
            Ok(submitted) => {
                engine.see_to(submitted.flush, now, state);
                match submitted.ticket {
                    Some(ticket) => Look::Sent(RoutedOutcome::new(Arc::clone(engine), ticket)),
                    None => Look::Outcome(Ok(Reply::One(Frame::Null))),
                }
            }
            Err(SubmitError::Elsewhere) => Look::Again,
            Err(SubmitError::Failed(error)) => {
                crate::engine::wake_finished(state);
                let is_full = matches!(error.kind(), ErrorKind::BacklogFull { .. });
                if is_full && self.order.room.is_none() {
                    Look::NoRoom(Arc::clone(engine))
                } else {
                    Look::Outcome(Err(error))
                }
            }
        }
    }

    /// Uses the place in the line of whoever was waited for, if the command still goes there.
    fn claim_room(&mut self, engine: &Arc<Engine>) {
        self.order.room = None;
        let Some((from, Some(ticket))) = self.room.take() else { return };
        if Arc::ptr_eq(&from, engine) {
            self.order.room = Some(ticket);
        } else {
            give_room_back(&from, ticket);
        }
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
        loop {
            match &mut this.state {
                Routing::Sent(outcome) => return Pin::new(outcome).poll(cx),
                Routing::New => match this.look(cx) {
                    Look::Sent(outcome) => {
                        this.state = Routing::Sent(outcome);
                        return Poll::Pending;
                    }
                    Look::Outcome(outcome) => return Poll::Ready(outcome),
                    Look::Again => this.cluster.look_again(&mut this.looks)?,
                    Look::NoMap => {
                        this.cluster.look_again(&mut this.looks)?;
                        let (cluster, order) = (this.cluster, this.order);
                        this.state = Routing::Map(Box::pin(async move { cluster.map_before(&order).await }));
                    }
                    Look::NoRoom(engine) => {
                        let order = this.order;
                        this.state = Routing::Room(Box::pin(async move {
                            let ticket = engine.room(&order).await?;
                            Ok((engine, ticket))
                        }));
                    }
                },
                Routing::Map(ready) => {
                    ready!(ready.as_mut().poll(cx))?;
                    this.state = Routing::New;
                }
                Routing::Room(room) => {
                    this.room = Some(ready!(room.as_mut().poll(cx))?);
                    this.state = Routing::New;
                }
            }
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
                Poll::Ready(Some(outcome)) => {
                    self.ticket = None;
                    return Poll::Ready(outcome);
                }
                Poll::Ready(None) if self.has_moved(ticket) => {}
                Poll::Ready(None) => {
                    self.ticket = None;
                    return Poll::Ready(Err(Error::misuse("the outcome of this command was taken already")));
                }
                Poll::Pending => return Poll::Pending,
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
