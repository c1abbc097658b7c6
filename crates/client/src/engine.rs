//! What callers and the owner of a connection share.
//!
//! Owns the lock around the bridge, the submitting of commands, and the futures that wait for outcomes. Does not own
//! the socket's reading half, dialling, or time ([`crate::driver`]), and makes no decision: those are the bridge's.
//!
//! The lock is held for the encoding of one command or for handing out one read's replies; never during a system
//! call, never while foreign code runs.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use towline_client_proto::handoff::Target as Whither;
use towline_client_proto::{
    Batch, Bridge, Encoder, Error, ErrorKind, Flush, Generation, Leaving, LostCause, Order, Polled, Reply,
    RoomTicket, Ticket,
};
use towline_resp::frame::Frame;
use towline_sansio::Instant;

use crate::cache::CacheLink;
use crate::clock;
use crate::cmd::Cmd;
use crate::script::KnownScripts;
use crate::transport::{ConnectError, WriteSide};

/// Pieces of one vectored write: batches of few large commands; more than these go with the next call.
const PIECES_MAX: usize = 16;

/// One endpoint's engine.
pub(crate) struct Engine {
    state: Mutex<State>,
    /// Which scripts the server of the present connection has.
    pub(crate) scripts: Mutex<KnownScripts>,
    /// The cache of what is read here, if there is one.
    pub(crate) cache: Option<CacheLink>,
}

pub(crate) struct State {
    pub(crate) bridge: Bridge<Waker>,
    /// Where callers may write themselves, and of which connection that is: present while a plain socket is open.
    pub(crate) writer: Option<(Generation, Arc<WriteSide>)>,
    /// The owner of the connection, if it sleeps.
    pub(crate) owner: Option<Waker>,
    /// When the owner wakes up by itself; `None`: never.
    pub(crate) sleeps_until: Option<Instant>,
    /// Where the connection that serves, or served last, leads.
    pub(crate) place: Option<Place>,
    /// Why the last dial failed, if it did.
    pub(crate) last_dial_error: Option<Arc<ConnectError>>,
    /// The owner has gone.
    pub(crate) is_ended: bool,
    /// Where commands went that are another endpoint's now, until their callers ask.
    pub(crate) forwards: BTreeMap<Ticket, (Arc<Engine>, Ticket)>,
}

impl State {
    /// The announced end of the connection, unless it leads to the successor already.
    pub(crate) fn leaving(&self) -> Option<&Leaving> {
        let is_there = |leaving: &Leaving| {
            leaving.target != Whither::Configured
                && self.place.as_ref().is_some_and(|place| place.whither == leaving.target)
        };
        self.bridge.leaving().filter(|leaving| !is_there(leaving))
    }
}

/// Where a connection leads, as far as this process knows.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) generation: Generation,
    /// As it was chosen.
    pub(crate) whither: Whither,
    /// This end's address.
    pub(crate) local: Option<SocketAddr>,
    /// How many moves the client had heard of when it was dialled.
    pub(crate) moves: u64,
    pub(crate) opened_at: Instant,
}

impl Engine {
    pub(crate) fn new(bridge: Bridge<Waker>, cache: Option<CacheLink>) -> Self {
        let state = State {
            bridge,
            writer: None,
            owner: None,
            sleeps_until: None,
            place: None,
            last_dial_error: None,
            is_ended: false,
            forwards: BTreeMap::new(),
        };
        Self { state: Mutex::new(state), scripts: Mutex::default(), cache }
    }

    /// A panic elsewhere leaves the bridge whole: every change of it ends before foreign code runs.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits one command and sees to it that somebody writes it.
    #[inline]
    pub(crate) fn submit(
        &self,
        now: Instant,
        order: &Order,
        encode: impl FnOnce(&mut Encoder<'_>),
    ) -> Result<Option<Ticket>, Error> {
        let mut state = self.lock();
        let submitted = match state.bridge.submit(now, order, encode) {
            Ok(submitted) => submitted,
            Err(error) => return refused(state, error),
        };
        self.see_to(submitted.flush, now, state);
        Ok(submitted.ticket)
    }

    /// Sees to it that what was submitted gets written.
    #[inline]
    pub(crate) fn see_to(&self, flush: Flush, now: Instant, state: MutexGuard<'_, State>) {
        match flush {
            Flush::Nobody => wake_in_time(state),
            Flush::Owner => wake_owner(state),
            Flush::Caller => self.write_here(now, state),
        }
    }

    /// Submits commands back to back: nobody else's come between. All of them, or none. `whole` describes them all,
    /// for the bounds.
    pub(crate) fn submit_all<'c>(
        &self,
        now: Instant,
        whole: &Order,
        commands: impl Iterator<Item = (Order, &'c Cmd)>,
        tickets: &mut Vec<Option<Ticket>>,
    ) -> Result<(), Error> {
        let mut state = self.lock();
        let mut flush = Flush::Nobody;
        for (at, (order, cmd)) in commands.enumerate() {
            let submitted = if at == 0 {
                let first = Order { bytes: whole.bytes, room: whole.room, ..order };
                match state.bridge.submit(now, &first, |out| cmd.encode(out)) {
                    Ok(submitted) => submitted,
                    Err(error) => return refused(state, error),
                }
            } else {
                state.bridge.submit_admitted(now, &order, |out| cmd.encode(out))
            };
            tickets.push(submitted.ticket);
            flush = submitted.flush;
        }
        self.see_to(flush, now, state);
        Ok(())
    }

    /// Writes from the caller's own context.
    fn write_here(&self, now: Instant, mut state: MutexGuard<'_, State>) {
        let serving = state.bridge.generation();
        let writer = state.writer.as_ref().filter(|(generation, _)| *generation == serving);
        let Some((_, writer)) = writer.cloned() else { return wake_owner(state) };
        let Some(batch) = state.bridge.take_write(now, serving) else { return wake_in_time(state) };
        state.bridge.counters_mut().writes_inline += 1;
        drop(state);
        let (batch, written) = write_batch(batch, |pieces| writer.try_write_vectored(pieces));
        let mut state = self.lock();
        let is_done = finish_write(&mut state, now, batch, &written);
        // A connection that was lost or left meanwhile is settled only now, and its owner waits for that.
        let is_over = state.bridge.generation() != serving || !state.bridge.is_wanted(serving);
        if state.is_ended {
            return wake_finished(state);
        }
        // The bytes that left made room for others, whom the owner calls.
        let has_more =
            state.bridge.has_wakes() || state.bridge.has_news() || state.bridge.has_tracking_news();
        if !is_done || is_over || state.bridge.wants_write(serving) || has_more {
            wake_owner(state);
        } else {
            wake_in_time(state);
        }
    }

    pub(crate) async fn room(&self, order: &Order) -> Result<Option<RoomTicket>, Error> {
        let place = RoomPlace { engine: self, bytes: order.bytes, ticket: None };
        let full = || {
            let bytes_max = self.lock().bridge.backlog_bytes_max();
            Error::new(ErrorKind::BacklogFull { bytes_max }, towline_client_proto::Sent::No)
        };
        tokio::time::timeout_at(clock::wall(order.deadline).into(), place).await.map_err(|_| full())
    }

    /// Submits one command and waits for its outcome: one visit to the lock for submitting, one for the outcome.
    pub(crate) fn exchange<E: FnMut(&mut Encoder<'_>)>(&self, order: Order, encode: E) -> Exchange<'_, E> {
        Exchange { order, encode, state: Exchanging::New(self) }
    }

    /// The outcome of a command, if it is there; otherwise the task is woken when it is.
    #[inline]
    pub(crate) fn poll_outcome(&self, ticket: Ticket, cx: &Context<'_>) -> Poll<Result<Reply, Error>> {
        let outcome = self.lock().bridge.poll_outcome(ticket, |left| match left {
            Some(waker) if waker.will_wake(cx.waker()) => waker,
            _ => cx.waker().clone(),
        });
        outcome.map_or(Poll::Pending, Poll::Ready)
    }

    /// Waits until there is room for a command, and leaves it to others: it is there for whoever comes next.
    pub(crate) async fn room_again(&self, order: &Order) -> Result<(), Error> {
        if let Some(ticket) = self.room(order).await? {
            let mut state = self.lock();
            state.bridge.leave_room(ticket);
            wake_finished(state);
        }
        Ok(())
    }

    /// As [`Engine::poll_outcome`], of a command that may go to another endpoint.
    #[inline]
    pub(crate) fn poll_routed(&self, ticket: Ticket, cx: &Context<'_>) -> Polled {
        self.lock().bridge.poll_routed(ticket, |left| match left {
            Some(waker) if waker.will_wake(cx.waker()) => waker,
            _ => cx.waker().clone(),
        })
    }

    /// The outcome of a command.
    pub(crate) fn outcome(&self, ticket: Ticket) -> Outcome<'_> {
        Outcome { engine: self, ticket: Some(ticket) }
    }
}

/// Wakes the owner if it sleeps, after the lock is gone.
#[inline]
pub(crate) fn wake_owner(mut state: MutexGuard<'_, State>) {
    if let Some(owner) = state.owner.take() {
        drop(state);
        owner.wake();
    }
}

/// Wakes the owner if it would sleep past what a command has made due: its deadline, or the verdict on a silent peer.
/// Rare, because the owner's timer stays where it is when the due time moves away from it.
#[inline]
fn wake_in_time(state: MutexGuard<'_, State>) {
    let Some(due) = state.bridge.poll_timeout() else { return };
    if state.sleeps_until.is_none_or(|until| due < until) {
        wake_owner(state);
    }
}

/// How a write ended.
pub(crate) struct Written {
    pub(crate) count: usize,
    /// The kernel takes no more now.
    pub(crate) is_blocked: bool,
    pub(crate) error: Option<io::Error>,
}

/// Hands a batch to `write` until it is gone, the kernel blocks, or the socket fails.
pub(crate) fn write_batch(
    batch: Batch,
    mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
) -> (Batch, Written) {
    let mut written = Written { count: 0, is_blocked: false, error: None };
    while written.count < batch.len() {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let mut used = 0;
        let mut skip = written.count;
        for slice in batch.slices() {
            if skip >= slice.len() {
                skip -= slice.len();
                continue;
            }
            if used == PIECES_MAX {
                break;
            }
            pieces[used] = IoSlice::new(&slice[skip..]);
            skip = 0;
            used += 1;
        }
        match write(&pieces[..used]) {
            Ok(0) => {
                written.error = Some(io::ErrorKind::WriteZero.into());
                break;
            }
            Ok(count) => written.count += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                written.is_blocked = true;
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                written.error = Some(error);
                break;
            }
        }
    }
    (batch, written)
}

/// Gives a batch back. False if there is more for the owner to do about it.
pub(crate) fn finish_write(state: &mut State, now: Instant, batch: Batch, written: &Written) -> bool {
    let generation = batch.generation();
    state.bridge.wrote(now, batch, written.count);
    if let Some(error) = &written.error {
        // After a write that failed half way nothing that follows would be understood.
        state.bridge.lost(now, generation, LostCause::from(error.kind()));
        return false;
    }
    !written.is_blocked
}

/// Waits for one command's outcome. Dropping it gives the command up: what was not handed to the socket is withdrawn,
/// the reply to what was is read and dropped.
#[must_use = "a future does nothing unless polled"]
pub(crate) struct Outcome<'a> {
    engine: &'a Engine,
    ticket: Option<Ticket>,
}

impl Future for Outcome<'_> {
    type Output = Result<Reply, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(ticket) = self.ticket else {
            return Poll::Ready(Err(Error::misuse("a command was awaited twice")));
        };
        let outcome = self.engine.poll_outcome(ticket, cx);
        if outcome.is_ready() {
            self.ticket = None;
        }
        outcome
    }
}

impl Drop for Outcome<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let mut state = self.engine.lock();
            state.bridge.abandon(ticket);
            wake_finished(state);
        }
    }
}

/// A command on its way, from its submission to its outcome. Dropping it gives the command up, as [`Outcome`] does.
#[must_use = "a future does nothing unless polled"]
pub(crate) struct Exchange<'a, E> {
    order: Order,
    encode: E,
    state: Exchanging<'a>,
}

enum Exchanging<'a> {
    New(&'a Engine),
    /// Waits for room in the backlog: rare, hence the box.
    Room(&'a Engine, Pin<Box<dyn Future<Output = Result<Option<RoomTicket>, Error>> + Send + 'a>>),
    Sent(Outcome<'a>),
}

impl<E: FnMut(&mut Encoder<'_>) + Unpin> Future for Exchange<'_, E> {
    type Output = Result<Reply, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match &mut this.state {
                Exchanging::Sent(outcome) => return Pin::new(outcome).poll(cx),
                Exchanging::New(engine) => {
                    let engine = *engine;
                    let now = clock::now();
                    let mut state = engine.lock();
                    let waiter = cx.waker().clone();
                    match state.bridge.submit_waiting(now, &this.order, waiter, &mut this.encode) {
                        Ok(submitted) => {
                            engine.see_to(submitted.flush, now, state);
                            let Some(ticket) = submitted.ticket else {
                                return Poll::Ready(Ok(Reply::One(Frame::Null)));
                            };
                            this.state = Exchanging::Sent(engine.outcome(ticket));
                            return Poll::Pending;
                        }
                        Err(error)
                            if matches!(error.kind(), ErrorKind::BacklogFull { .. })
                                && this.order.room.is_none() =>
                        {
                            drop(state);
                            let order = this.order;
                            let room = Box::pin(async move { engine.room(&order).await });
                            this.state = Exchanging::Room(engine, room);
                        }
                        Err(error) => return Poll::Ready(refused(state, error)),
                    }
                }
                Exchanging::Room(engine, room) => {
                    let engine = *engine;
                    this.order.room = ready!(room.as_mut().poll(cx))?;
                    this.state = Exchanging::New(engine);
                }
            }
        }
    }
}

/// A command that may not come in gives its promised room on.
#[cold]
fn refused<T>(state: MutexGuard<'_, State>, error: Error) -> Result<T, Error> {
    wake_finished(state);
    Err(error)
}

/// Wakes whoever was freed by a command that was given up.
pub(crate) fn wake_finished(mut state: MutexGuard<'_, State>) {
    let mut wakes = Vec::new();
    state.bridge.take_wakes(&mut wakes);
    drop(state);
    wakes.into_iter().for_each(Waker::wake);
}

/// A place in the line for room.
struct RoomPlace<'a> {
    engine: &'a Engine,
    bytes: usize,
    ticket: Option<RoomTicket>,
}

impl Future for RoomPlace<'_> {
    /// `None` when the bridge has ended: submitting will say so.
    type Output = Option<RoomTicket>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.engine.lock();
        let ticket = match self.ticket {
            Some(ticket) => ticket,
            None => {
                let ticket = state.bridge.wait_for_room(self.bytes, cx.waker().clone());
                self.ticket = Some(ticket);
                ticket
            }
        };
        if state.bridge.poll_room(ticket, || cx.waker().clone()) {
            self.ticket = None;
            return Poll::Ready(Some(ticket));
        }
        Poll::Pending
    }
}

impl Drop for RoomPlace<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let mut state = self.engine.lock();
            state.bridge.leave_room(ticket);
            wake_finished(state);
        }
    }
}
