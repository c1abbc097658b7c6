//! The life of a blocking command.
//!
//! Owns its time, its repetition on another connection, and what happens when its caller gives it up. Does not own
//! the connections ([`super::pool`]).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use towline_client_proto::{
    Error, ErrorKind, Flags, LivenessConfig, LostCause, Order, Reply, Sent, ServerClass, Ticket,
};
use towline_resp::frame::Frame;
use towline_sansio::Instant as EngineInstant;
use towline_spec::SideEffect;

use super::Pool;
use super::admit::{Conduct, Taint};
use super::pool::{Taken, kill, within};
use crate::client::{Client, Role};
use crate::clock;
use crate::cmd::{BlockTime, Cmd, RetryChoice};
use crate::engine::Engine;

/// A command is sent this often at most, as on a shared connection.
const ATTEMPTS_MAX: u32 = 16;

/// The first and the longest wait before it is sent again, as on a shared connection.
const REPEAT_WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// How long a command that was given up may take to answer. More than a busy server takes, less than a caller would
/// wonder about the connections that are open.
const UNBLOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The first and the longest pause between two `CLIENT UNBLOCK` for one command.
const UNBLOCK_PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));

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

    /// When to stop waiting for a connection.
    fn take_until(&self) -> Option<Instant> {
        let limit = Instant::now().checked_add(self.take_time);
        match (self.ends_at, limit) {
            (Some(end), Some(limit)) => Some(end.min(limit)),
            (end, limit) => end.or(limit),
        }
    }

    /// The block time of a repetition.
    fn block_left(&self) -> Option<Duration> {
        self.block_ends_at.map(|at| at.saturating_duration_since(Instant::now()))
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
        let terms = Terms::new(cmd, block, self.inner.command_timeout);
        match &self.inner.role {
            Role::Shared(pool) => run(pool, cmd, effect, block, terms).await,
            Role::Leased(conduct) => {
                let engine = Arc::clone(&self.inner.engine);
                let place = Place::Lease(conduct);
                Blocked::send(conduct.pool(), engine, place, cmd, effect, block)?.outcome(terms.ends_at).await
            }
        }
    }
}

/// Sends a command on leased connections until it is answered or must not be sent again.
async fn run(
    pool: &Arc<Pool>,
    cmd: &Cmd,
    effect: SideEffect,
    block: BlockTime,
    terms: Terms,
) -> Result<Frame, Error> {
    let mut attempt = 1;
    let mut wait = REPEAT_WAIT.0;
    loop {
        let outcome = async {
            let taken = pool.take(terms.take_until()).await?;
            let engine = Arc::clone(&taken.running().engine);
            let left = if attempt > 1 { terms.block_left() } else { None };
            let blocked = match left {
                None => Blocked::send(pool, engine, Place::Own(taken), cmd, effect, block)?,
                Some(left) => {
                    let shorter = cmd.with_block_time(left);
                    Blocked::send(pool, engine, Place::Own(taken), &shorter, effect, BlockTime::AtMost(left))?
                }
            };
            blocked.outcome(terms.ends_at).await
        };
        match outcome.await {
            Err(error) if attempt < ATTEMPTS_MAX && may_repeat(cmd, effect, &error) => {
                let pause = tokio::time::sleep(wait);
                if within(terms.ends_at, pause).await.is_none() {
                    return Err(error);
                }
                attempt += 1;
                wait = (wait * 2).min(REPEAT_WAIT.1);
            }
            outcome => return outcome,
        }
    }
}

/// Whether another attempt does no harm and may help.
fn may_repeat(cmd: &Cmd, effect: SideEffect, error: &Error) -> bool {
    let is_allowed = cmd.options().retry != RetryChoice::Never;
    match (error.kind(), error.sent()) {
        // On connections that did not come about the policy, the dial's time or the handshake have the last word.
        (ErrorKind::Lost(_), Sent::No) => true,
        (ErrorKind::Lost(_) | ErrorKind::Protocol(_), Sent::Maybe) => {
            is_allowed && effect == SideEffect::ReadOnly && !reads_from_now(cmd)
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

/// Whether a read asks for what comes after the moment at which it arrives: a second one would miss what came between.
fn reads_from_now(cmd: &Cmd) -> bool {
    let mut args = cmd.args();
    args.any(|arg| arg.eq_ignore_ascii_case(b"streams")) && args.any(|arg| arg == b"$")
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
        let order = Order {
            effect,
            replies: 1,
            // Its time is kept here, because its end has consequences.
            deadline: EngineInstant::FAR,
            flags: Flags::NO_RETRY,
            bytes: cmd.wire_len(),
            room: None,
        };
        set_patience(pool, &engine, Some(block));
        let ticket = engine.submit(clock::now(), &order, |out| cmd.encode(out)).map_err(lost)?;
        Ok(Self { pool, engine, place: Some(place), ticket, effect })
    }

    async fn outcome(mut self, ends_at: Option<Instant>) -> Result<Frame, Error> {
        let Some(ticket) = self.ticket else { return Ok(Frame::Null) };
        let engine = Arc::clone(&self.engine);
        let outcome = std::future::poll_fn(|cx| engine.poll_outcome(ticket, cx));
        let outcome = match within(ends_at, outcome).await {
            Some(outcome) => outcome,
            None => {
                let now = clock::now();
                let error = engine.lock().bridge.explain(now, ticket, ErrorKind::Deadline);
                if error.sent() != Sent::Answered {
                    // Dropping `self` ends the command at the server.
                    return Err(error);
                }
                // It came in this very moment.
                std::future::poll_fn(|cx| engine.poll_outcome(ticket, cx)).await
            }
        };
        self.ticket = None;
        set_patience(self.pool, &self.engine, None);
        outcome.map(one).map_err(lost)
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
    state.bridge.set_liveness(LivenessConfig { silence_max, second_opinion: None, ..usual });
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
    while Instant::now() < give_up {
        let mut next = (Instant::now() + pause).min(give_up);
        // On a lease another command may be ahead of it, and that one is wanted.
        if let Some(id) = id_if_next(engine, ticket) {
            ended = Ended::No;
            let Some(id) = id else { break };
            let id = id.to_string();
            let args: [&[u8]; 4] = [b"CLIENT", b"UNBLOCK", id.as_bytes(), b"TIMEOUT"];
            match pool.say(&args, give_up.duration_since(Instant::now())).await {
                // It was blocked and is no more: the reply is on its way.
                Ok(Reply::One(Frame::Integer(1))) => next = give_up,
                // It has not arrived yet, or is answered already.
                Ok(_) => next = (Instant::now() + pause).min(give_up),
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

/// If the command's reply is the next to come: the connection's number at the server, where it is known.
fn id_if_next(engine: &Engine, ticket: Ticket) -> Option<Option<i64>> {
    let state = engine.lock();
    state.bridge.is_next(ticket).then(|| state.bridge.info().and_then(|info| info.client_id))
}
