//! The life of a blocking command.
//!
//! Owns its time, its repetition on another connection, its leaving of a connection whose server moves, and what happens
//! when its caller gives it up. Does not own the connections ([`super::pool`]), nor the way to a blocked command's
//! server ([`super::node`]).

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use towline_client_proto::{
    Encoder, Error, ErrorKind, Flags, Leaving, LivenessConfig, LostCause, Order, Reply, Sent, ServerClass,
    ServerError, Ticket,
};
use towline_resp::frame::Frame;
use towline_sansio::Instant as EngineInstant;
use towline_spec::SideEffect;

use super::Pool;
use super::admit::{Conduct, Taint};
use super::from_now::{from_last, reads_from_now};
use super::node::{Aside, Node};
use super::pool::{Taken, kill, within};
use crate::client::{Client, Role};
use crate::clock;
use crate::cmd::{BlockTime, Cmd, RetryChoice};
use crate::engine::Engine;

/// A command is sent this often at most, as on a shared connection.
const ATTEMPTS_MAX: u32 = 16;

/// A command leaves this many connections at most because their servers move. With the waits between them that is more
/// than half a minute of connections that are told to go as soon as they are there.
const MOVES_MAX: u32 = 64;

/// A connection that was left after less than this was of no use: the next one has to wait.
const STAY_MIN: Duration = Duration::from_secs(1);

/// The first and the longest wait before it is sent again, as on a shared connection.
const REPEAT_WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// How long a command that was given up may take to answer. More than a busy server takes, less than a caller would
/// wonder about the connections that are open.
const UNBLOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The first and the longest pause between two `CLIENT UNBLOCK` for one command.
const UNBLOCK_PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));

/// Lets one command through to a slot that is being imported.
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// When what must be over. `None` never comes.
#[derive(Debug, Clone, Copy)]
struct Terms {
    /// The caller has no more use for it.
    ends_at: Option<Instant>,
    /// The server's own time is over, as far as we know. `None`: it has none.
    block_ends_at: Option<Instant>,
    /// Time for getting a connection.
    take_time: Duration,
}

impl Terms {
    fn new(cmd: &Cmd, block: BlockTime, command_timeout: Duration) -> Self {
        let now = Instant::now();
        let block_ends_at = match block {
            BlockTime::AtMost(time) => now.checked_add(time),
            BlockTime::Forever => None,
        };
        let ends_at = match cmd.options().deadline {
            Some(after) => now.checked_add(after),
            None => block_ends_at.and_then(|at| at.checked_add(command_timeout)),
        };
        Self { ends_at, block_ends_at, take_time: cmd.options().deadline.unwrap_or(command_timeout) }
    }

    /// When to stop waiting for a connection: after `least` at the earliest, if there is no other end.
    fn take_until(&self, least: Duration) -> Option<Instant> {
        let limit = Instant::now().checked_add(self.take_time.max(least));
        match (self.ends_at, limit) {
            (Some(end), Some(limit)) => Some(end.min(limit)),
            (end, limit) => end.or(limit),
        }
    }

    /// The block time of a repetition.
    fn block_left(&self) -> Option<Duration> {
        self.block_ends_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether the server may have ended the command by its block time.
    fn is_block_over(&self) -> bool {
        self.block_left().is_some_and(|left| left.is_zero())
    }
}

impl Client {
    /// Sends a command that may block: on a connection of its own, or on the lease that this handle is.
    pub(crate) async fn send_blocking(
        &self,
        cmd: &Cmd,
        effect: SideEffect,
        block: BlockTime,
    ) -> Result<Frame, Error> {
        if cmd.options().is_fire_and_forget {
            return Err(Error::misuse(
                "a command that blocks cannot be fire-and-forget: its connection is taken until it is answered",
            ));
        }
        if let Some(cluster) = self.inner.cluster() {
            return Box::pin(cluster.send_blocking(cmd, effect, block, self.inner.command_timeout)).await;
        }
        let terms = Terms::new(cmd, block, self.inner.command_timeout);
        match &self.inner.role {
            Role::Shared(pool) => Run::new(pool, cmd, effect, block, terms).finish().await,
            Role::Clustered => Err(Error::misuse("a cluster's client has no connections of its own")),
            Role::Leased(conduct) => {
                let engine = Arc::clone(self.inner.endpoint());
                let place = Place::Lease(conduct);
                let blocked = Blocked::send(conduct.pool(), engine, place, cmd, effect, block)?;
                match blocked.outcome(terms).await? {
                    Answer::Reply(frame) => Ok(frame),
                    // There is no other connection for it, and null would say that nothing came in its time.
                    Answer::Released(_) => Err(released()),
                }
            }
        }
    }
}

/// It ran no further than to its wait, so the same call may be made again.
fn released() -> Error {
    Error::new(ErrorKind::Lost(LostCause::Planned), Sent::No)
}

/// A command on leased connections, until it is answered or must not be sent again.
struct Run<'a> {
    pool: &'a Arc<Pool>,
    /// As it was given, or with what has become known since.
    cmd: Cmd,
    effect: SideEffect,
    block: BlockTime,
    terms: Terms,
    /// The place of the connection that it has left.
    permit: Option<OwnedSemaphorePermit>,
    /// How often it was sent again after a fault.
    repeats: u32,
    /// How many connections it has left because their servers move.
    moves: u32,
}

impl<'a> Run<'a> {
    fn new(pool: &'a Arc<Pool>, cmd: &Cmd, effect: SideEffect, block: BlockTime, terms: Terms) -> Self {
        Self { pool, cmd: cmd.clone(), effect, block, terms, permit: None, repeats: 0, moves: 0 }
    }

    async fn finish(mut self) -> Result<Frame, Error> {
        let mut wait = REPEAT_WAIT.0;
        loop {
            let begun = Instant::now();
            let error = match self.attempt().await {
                Ok(Answer::Reply(frame)) => return Ok(frame),
                Ok(Answer::Released(permit)) => {
                    self.permit = permit;
                    self.moves += 1;
                    self.pool.note_released();
                    // The way to another server is known to whoever knows several.
                    if self.moves >= MOVES_MAX || reads_from_now(&self.cmd) || self.pool.is_left() {
                        return Err(released());
                    }
                    if begun.elapsed() >= STAY_MIN || self.moves == 1 {
                        wait = REPEAT_WAIT.0;
                        continue;
                    }
                    released()
                }
                Err(error) if self.may_repeat(&error) && self.repeats + 1 < ATTEMPTS_MAX => {
                    self.repeats += 1;
                    error
                }
                Err(error) => return Err(error),
            };
            if within(self.terms.ends_at, tokio::time::sleep(wait)).await.is_none() {
                return Err(error);
            }
            wait = (wait * 2).min(REPEAT_WAIT.1);
        }
    }

    /// Sends it once.
    async fn attempt(&mut self) -> Result<Answer, Error> {
        let is_first = self.repeats == 0 && self.moves == 0;
        let taken = match self.permit.take() {
            Some(permit) => {
                // A move may take longer than a dial.
                let relaxed = self.pool.options().engine_config().windows.relaxed;
                self.pool.connect(permit, self.terms.take_until(relaxed)).await?
            }
            None => self.pool.take(self.terms.take_until(Duration::ZERO)).await?,
        };
        let engine = Arc::clone(&taken.running().engine);
        self.settle_now(&engine).await;
        let left = if is_first { None } else { self.terms.block_left() };
        let blocked = match left {
            None => Blocked::send(self.pool, engine, Place::Own(taken), &self.cmd, self.effect, self.block)?,
            Some(left) => {
                let shorter = self.cmd.with_block_time(left);
                let block = BlockTime::AtMost(left);
                Blocked::send(self.pool, engine, Place::Own(taken), &shorter, self.effect, block)?
            }
        };
        blocked.outcome(self.terms).await
    }

    /// On a connection that may be told to move, a read of what comes after now begins at a known entry: it can be
    /// issued again then. If the server does not name one, it is sent as it is.
    async fn settle_now(&mut self, engine: &Engine) {
        if self.effect != SideEffect::ReadOnly || !reads_from_now(&self.cmd) {
            return;
        }
        let may_move = engine.lock().bridge.info().is_some_and(|info| info.has_maintenance);
        if !may_move {
            return;
        }
        let limit = clock::now() + self.pool.options().default_command_timeout();
        let settled = from_last(engine, &self.cmd, limit);
        if let Some(Ok(cmd)) = within(self.terms.ends_at, settled).await {
            self.cmd = cmd;
        }
    }

    /// Whether another attempt does no harm and may help.
    fn may_repeat(&self, error: &Error) -> bool {
        let is_allowed = self.cmd.options().retry != RetryChoice::Never;
        match (error.kind(), error.sent()) {
            // On connections that did not come about the policy, the dial's time or the handshake have the last word.
            (ErrorKind::Lost(_), Sent::No) => true,
            (ErrorKind::Lost(_) | ErrorKind::Protocol(_), Sent::Maybe) => {
                is_allowed && self.effect == SideEffect::ReadOnly && !reads_from_now(&self.cmd)
            }
            (ErrorKind::Server(answer), _) => {
                is_allowed
                    && matches!(
                        answer.class(),
                        ServerClass::Loading
                            | ServerClass::ScriptBusy
                            | ServerClass::ClusterDown
                            | ServerClass::TryAgain
                            | ServerClass::MasterDown
                            | ServerClass::NoReplicas
                    )
            }
            _ => false,
        }
    }
}

/// What came of a command on one connection.
enum Answer {
    /// The caller's reply.
    Reply(Frame),
    /// It was ended because the connection ends, and not by what it waited for: nothing came of it. With the place of
    /// the connection, if it was the command's own.
    Released(Option<OwnedSemaphorePermit>),
}

/// Where a command blocks.
enum Place<'p> {
    /// On a connection that it has for itself.
    Own(Taken),
    /// On a lease, whose holder may send more.
    Lease(&'p Conduct),
}

/// A command that may be blocked at the server. Dropped before its outcome, it is unblocked there.
struct Blocked<'p> {
    pool: &'p Arc<Pool>,
    engine: Arc<Engine>,
    /// Present until it is dropped.
    place: Option<Place<'p>>,
    ticket: Option<Ticket>,
    effect: SideEffect,
}

impl<'p> Blocked<'p> {
    fn send(
        pool: &'p Arc<Pool>,
        engine: Arc<Engine>,
        place: Place<'p>,
        cmd: &Cmd,
        effect: SideEffect,
        block: BlockTime,
    ) -> Result<Self, Error> {
        let asking_bytes = if cmd.is_asking() { ASKING } else { &[] };
        let order = Order {
            effect,
            replies: if cmd.is_asking() { 2 } else { 1 },
            // Its time is kept here, because its end has consequences.
            deadline: EngineInstant::FAR,
            flags: Flags::NO_RETRY,
            bytes: cmd.wire_len() + asking_bytes.len(),
            room: None,
        };
        set_patience(pool, &engine, Some(block));
        let encode = |out: &mut Encoder<'_>| {
            out.raw(asking_bytes);
            cmd.encode(out);
        };
        let ticket = engine.submit(clock::now(), &order, encode).map_err(lost)?;
        Ok(Self { pool, engine, place: Some(place), ticket, effect })
    }

    async fn outcome(mut self, terms: Terms) -> Result<Answer, Error> {
        let Some(ticket) = self.ticket else { return Ok(Answer::Reply(Frame::Null)) };
        let engine = Arc::clone(&self.engine);
        let mut told = None;
        let mut leave_at = None;
        let mut aside = None;
        let outcome = loop {
            let is_told = told.is_some();
            let news = std::future::poll_fn(|cx| poll_news(&engine, ticket, is_told, cx));
            match within(earliest(terms.ends_at, leave_at), news).await {
                Some(News::Outcome(outcome)) => break outcome,
                Some(News::Leaving(leaving)) => {
                    self.pool.guide().note(&leaving);
                    // The holder of a lease says when to go.
                    if matches!(self.place, Some(Place::Own(_))) {
                        leave_at = Some(clock::wall(leaving.leave_at).into());
                        // All that leave one server share it, so it lasts until the last of them has left.
                        let peer = engine.lock().bridge.peer();
                        aside = peer.map(|peer| self.pool.aside(peer));
                    }
                    told = Some(leaving);
                }
                None if terms.ends_at.is_some_and(|end| end <= Instant::now()) => {
                    let now = clock::now();
                    let error = engine.lock().bridge.explain(now, ticket, ErrorKind::Deadline);
                    if error.sent() != Sent::Answered {
                        // Dropping `self` ends the command at the server.
                        return Err(error);
                    }
                    // It came in this very moment.
                    break std::future::poll_fn(|cx| engine.poll_outcome(ticket, cx)).await;
                }
                None => {
                    let Some(Leaving { until, .. }) = told else { continue };
                    let released = self.leave(ticket, &mut aside, clock::wall(until).into());
                    if let Some(Some(outcome)) = within(terms.ends_at, released).await {
                        break outcome;
                    }
                    // The server has the next word, at the end of its window.
                    leave_at = None;
                }
            }
        };
        self.ticket = None;
        set_patience(self.pool, &self.engine, None);
        let frame = outcome.and_then(last).map_err(lost)?;
        let is_leaving = || told.is_some() || engine.lock().leaving().is_some();
        if !frame.is_null() || terms.is_block_over() || !is_leaving() {
            return Ok(Answer::Reply(frame));
        }
        Ok(Answer::Released(match self.place.take() {
            Some(Place::Own(taken)) => Some(taken.vacate()),
            _ => None,
        }))
    }

    /// Has the command ended at its server, until its outcome is there; `None` if that could not be said before `until`.
    async fn leave(
        &self,
        ticket: Ticket,
        aside: &mut Option<Arc<Aside>>,
        until: Instant,
    ) -> Option<Result<Reply, Error>> {
        let outcome = std::future::poll_fn(|cx| self.engine.poll_outcome(ticket, cx));
        let ended = async {
            end_block(self.pool, &self.engine, ticket, aside, until).await;
            tokio::time::sleep_until(until).await;
        };
        tokio::select! {
            biased;
            outcome = outcome => Some(outcome),
            () = ended => None,
        }
    }
}

/// What a blocked command waits for.
enum News {
    Outcome(Result<Reply, Error>),
    /// Its connection will end.
    Leaving(Leaving),
}

fn poll_news(engine: &Engine, ticket: Ticket, is_told: bool, cx: &Context<'_>) -> Poll<News> {
    // The waker is left before the look at the announcement, which wakes it.
    if let Poll::Ready(outcome) = engine.poll_outcome(ticket, cx) {
        return Poll::Ready(News::Outcome(outcome));
    }
    if is_told {
        return Poll::Pending;
    }
    match engine.lock().leaving() {
        Some(leaving) => Poll::Ready(News::Leaving(leaving.clone())),
        None => Poll::Pending,
    }
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Says `CLIENT UNBLOCK` for a command that leaves its connection, until the server has ended it or the time is over.
async fn end_block(
    pool: &Pool,
    engine: &Engine,
    ticket: Ticket,
    aside: &mut Option<Arc<Aside>>,
    until: Instant,
) {
    let mut pause = UNBLOCK_PAUSE.0;
    while Instant::now() < until {
        if let Some(node) = node_if_next(engine, ticket) {
            let Some(node) = node else { return };
            match pool.unblock(&node, aside, until).await {
                Ok(true) => return,
                // It has not arrived there yet, or is answered already.
                Ok(false) => {}
                Err(_) => pause = UNBLOCK_PAUSE.1,
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(UNBLOCK_PAUSE.1);
    }
}

/// A leased connection that ended before the command left refuses it like a client that does not wait.
fn lost(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Closed => {
            Error::new(ErrorKind::Lost(LostCause::Closed), error.sent())
        }
        _ => error,
    }
}

/// The reply to the command itself, which may have come after that to `ASKING`.
fn last(reply: Reply) -> Result<Frame, Error> {
    match reply {
        Reply::One(frame) => Ok(frame),
        Reply::Many(mut frames) => {
            let last = frames.pop().unwrap_or(Frame::Null);
            ServerError::from_frame(&last).map_or(Ok(last), |error| Err(Error::server(error)))
        }
    }
}

fn one(reply: Reply) -> Frame {
    match reply {
        Reply::One(frame) => frame,
        Reply::Many(frames) => Frame::Array(frames),
    }
}

/// Sets the silence that is allowed: for the time of a blocking command in addition to the usual; the usual again once
/// nothing is owed. Among others on a lease it may be one of them that blocks, so any silence is allowed then.
fn set_patience(pool: &Pool, engine: &Engine, block: Option<BlockTime>) {
    let usual = *pool.options().liveness_config();
    let mut state = engine.lock();
    let silence_max = match block {
        None if state.bridge.is_idle() => return state.bridge.set_liveness(usual),
        None => return,
        Some(BlockTime::AtMost(time)) if state.bridge.is_idle() => usual.silence_max.saturating_add(time),
        Some(_) => Duration::MAX,
    };
    // A silence that is wanted is no reason to ask others about it.
    state.bridge.set_liveness(LivenessConfig { silence_max, second_opinion: None, held_max: None, ..usual });
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let (pool, engine) = (Arc::clone(self.pool), Arc::clone(&self.engine));
        let taken = match self.place.take() {
            Some(Place::Own(taken)) => Some(taken),
            // A late `CLIENT UNBLOCK` must not meet the next holder's command.
            Some(Place::Lease(conduct)) => {
                conduct.note(Taint::Changed);
                None
            }
            None => None,
        };
        let effect = self.effect;
        self.pool.runtime().spawn(async move {
            match unblock(&pool, &engine, ticket).await {
                Ended::Answered(reply) => {
                    let has_data = effect == SideEffect::NonIdempotent
                        && reply.is_some_and(|reply| !one(reply).is_null());
                    pool.note_unblocked(has_data);
                    set_patience(&pool, &engine, None);
                }
                // What is ahead of it on a lease may still block.
                Ended::Withdrawn => {}
                Ended::No => kill(&engine),
            }
            drop(taken);
        });
    }
}

/// What became of a command that was given up.
enum Ended {
    /// It was answered: with an error if there is no reply.
    Answered(Option<Reply>),
    /// It stands behind others on a lease: its reply is dropped when it comes.
    Withdrawn,
    /// It may block on.
    No,
}

/// Ends a blocked command and waits for its reply.
///
/// `CLIENT UNBLOCK` goes over another connection, so it may arrive before the command does; it is said again until the
/// reply is there. Its own reply is awaited each time: one that came late would end the wait of the connection's next
/// user.
async fn unblock(pool: &Pool, engine: &Engine, ticket: Ticket) -> Ended {
    let mut outcome = std::pin::pin!(engine.outcome(ticket));
    let patience = pool.options().default_command_timeout().min(UNBLOCK_PATIENCE);
    let give_up = Instant::now() + patience;
    let mut pause = UNBLOCK_PAUSE.0;
    let mut ended = Ended::Withdrawn;
    let mut aside: Option<Arc<Aside>> = None;
    while Instant::now() < give_up {
        let mut next = (Instant::now() + pause).min(give_up);
        // On a lease another command may be ahead of it, and that one is wanted.
        if let Some(node) = node_if_next(engine, ticket) {
            ended = Ended::No;
            let Some(node) = node else { break };
            match pool.unblock(&node, &mut aside, give_up).await {
                // It was blocked and is no more: the reply is on its way.
                Ok(true) => next = give_up,
                // It has not arrived yet, or is answered already.
                Ok(false) => next = (Instant::now() + pause).min(give_up),
                Err(_) => break,
            }
        }
        if let Some(outcome) = within(Some(next), &mut outcome).await {
            return match outcome {
                Ok(reply) => Ended::Answered(Some(reply)),
                Err(error) if error.code().is_some() => Ended::Answered(None),
                Err(_) => Ended::No,
            };
        }
        pause = (pause * 2).min(UNBLOCK_PAUSE.1);
    }
    ended
}

/// If the command's reply is the next to come: where its connection is, if that is known.
fn node_if_next(engine: &Engine, ticket: Ticket) -> Option<Option<Node>> {
    let is_next = engine.lock().bridge.is_next(ticket);
    is_next.then(|| Node::of(engine))
}
