//! From arguments to a reply: what every command passes through, whatever it does.
//!
//! Owns: the checks before a command, queueing for `MULTI`, locking, and working off what the command set off. Does
//! **not** own sockets, nor what a single command means.

mod unknown;

use crate::blocking::Waiter;
use crate::client::flag;
use crate::cluster::gate::{Asker, Pass};
use crate::command::{Args, Block, CommandError, CommandResult, Ctx, Errand, Locks, OwnedArgs, Row};
use crate::commands;
use crate::config::Config;
use crate::memory::Room;
use crate::parking::Parking;
use crate::persistence::held::Held;
use crate::persistence::keeper::Request;
use crate::session::{Multi, Queued, ReplyMode, Session};
use crate::shared::Shared;
use crate::{farewell, followups, memory, monitor, moving, pause, pubsub, replicas, tracking};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use towline_cluster::{Slot, key_slot};
use towline_resp::writer::Writer;
use towline_spec::{Command, Flags, Group, KeyFlags, ResolveError, State};
use towline_store::changes::{Changes, Settings};
use towline_store::evict::Evictor;
use towline_store::keyspace::Keyspace;
use unknown::{is_http, unknown_command, unknown_subcommand};

/// What one worker has to itself.
#[derive(Debug)]
pub(crate) struct Local {
    /// Index among the workers.
    pub(crate) worker: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) config: Arc<Config>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) changes: Changes,
    pub(crate) evictor: Evictor,
    /// Connections whose replies wait for the log.
    pub(crate) held: Held,
    /// Whether the log had failed when the turn began, or when replies were taken last.
    was_log_failed: bool,
    /// Time that commands took in this turn.
    pub(crate) spent: Duration,
    epoch: u64,
}

impl Local {
    /// The state of worker `worker`; `seed` starts its randomness.
    pub(crate) fn new(worker: usize, shared: Arc<Shared>, seed: u64) -> Self {
        let config = shared.config();
        let settings = Arc::new(config.settings());
        let epoch = shared.config_epoch();
        Self {
            worker,
            shared,
            config,
            settings,
            changes: Changes::new(seed),
            evictor: Evictor::default(),
            held: Held::default(),
            was_log_failed: false,
            spent: Duration::ZERO,
            epoch,
        }
    }

    /// Takes over a configuration that was changed. Called once per batch, because others may have changed it, and after
    /// each command that is not simple: what follows `CONFIG SET` on its connection has to see it.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        let epoch = self.shared.config_epoch();
        if epoch != self.epoch {
            self.epoch = epoch;
            self.config = self.shared.config();
            self.settings = Arc::new(self.config.settings());
        }
    }

    /// A connection's turn begins: what was executed before is no matter of its replies.
    #[inline]
    pub(crate) fn forget_position(&mut self) {
        (self.changes.position, self.changes.seen) = (0, 0);
        self.was_log_failed = self.shared.persistence.gate.is_log_failed();
    }

    /// Up to where what was executed since the last call tells of the log. While the log has failed, what was read is not
    /// held: reads go on, and what was written waits.
    #[inline]
    pub(crate) fn take_position(&mut self) -> u64 {
        let written = std::mem::take(&mut self.changes.position);
        let seen = std::mem::take(&mut self.changes.seen);
        let is_log_failed = self.shared.persistence.gate.is_log_failed();
        let was_log_failed = std::mem::replace(&mut self.was_log_failed, is_log_failed);
        if was_log_failed && is_log_failed { written } else { written.max(seen) }
    }
}

/// What the connection does after a command.
#[derive(Debug)]
pub(crate) enum Flow {
    /// The next command.
    Next,
    /// Send what is written, then close.
    Close,
    /// Wait until the waiter is served or its time is up.
    Blocked(Arc<Waiter>),
    /// `CLIENT PAUSE` holds this command back: run it again later.
    Paused,
    /// The command brings much while memory is above the limit, writes while the log is far behind, or may wait for a key
    /// while those who already do are about to be served: run it again after others had their turn.
    Crowded,
    /// The command would change a key that is on its way, or waits for something of its own: run it again once that is over.
    Parked(Arc<Parking>),
}

/// The row that executes the arguments, or the error reply.
#[inline]
pub(crate) fn resolve(args: Args<'_>) -> Result<(&'static Command, &'static Row), CommandError> {
    let command = match towline_spec::resolve(&args) {
        Ok(command) if command.state == State::Implemented => command,
        Ok(command) if command.parent().is_some() => return Err(unknown_subcommand(args)),
        Ok(_) | Err(ResolveError::UnknownCommand) => return Err(unknown_command(args)),
        Err(ResolveError::UnknownSubcommand(_)) => return Err(unknown_subcommand(args)),
    };
    if !command.accepts_arity(args.len()) {
        return Err(CommandError::Arity(command.name));
    }
    match commands::row(command) {
        Some(row) => Ok((command, row)),
        None => Err(unknown_command(args)),
    }
}

/// Runs one command of a connection, reply and consequences included.
pub(crate) fn run(
    local: &mut Local,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Writer,
    now_ms: u64,
) -> Flow {
    let mark = out.mark();
    let reply = session.reply;
    if session.subscriptions.is_some() {
        pubsub::forget_gone(&local.shared, session);
    }
    let flow = match resolve(args) {
        Ok((command, row)) => match check(local, session, command, args, now_ms) {
            Ok(Check::Run) => dispatch(local, session, command, row, args, out, now_ms),
            Ok(Check::Queue) => match check_queued(local, session, command, row, args, now_ms) {
                Ok(()) => {
                    queue(session, command, row, args);
                    out.simple("QUEUED");
                    Flow::Next
                }
                Err(error) => {
                    local.shared.stats.worker(local.worker).rejected(command);
                    refuse(local, session, args, out, error, now_ms)
                }
            },
            Ok(Check::Pause) => return Flow::Paused,
            Ok(Check::Wait) => return Flow::Crowded,
            Err(error) => {
                local.shared.stats.worker(local.worker).rejected(command);
                refuse(local, session, args, out, error, now_ms)
            }
        },
        Err(_) if is_http(args) => {
            tracing::warn!("an HTTP request came in on the client port; its connection is closed");
            session.is_closing = true;
            return Flow::Close;
        }
        Err(error) => refuse(local, session, args, out, error, now_ms),
    };
    if let Flow::Crowded | Flow::Parked(_) = flow {
        return flow;
    }
    if session.is_asking && session.multi.is_none() && !args.is(0, "asking") {
        session.is_asking = false;
    }
    if reply == ReplyMode::Skip || session.reply == ReplyMode::Off {
        out.truncate(mark);
        if let Flow::Blocked(waiter) = &flow {
            waiter.silence();
        }
    }
    session.reply = match session.reply {
        ReplyMode::SkipNext => ReplyMode::Skip,
        ReplyMode::Skip => ReplyMode::On,
        mode => mode,
    };
    local.refresh();
    if session.is_closing { Flow::Close } else { flow }
}

/// Answers with an error that kept the command from running, and spoils the transaction that is being put together.
/// A refused `EXEC` ends the transaction.
fn refuse(
    local: &mut Local,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Writer,
    mut error: CommandError,
    now_ms: u64,
) -> Flow {
    if let Some(multi) = &mut session.multi {
        multi.is_refused = true;
    }
    if args.is(0, "exec") {
        farewell::leave_transaction(local, session, now_ms);
        let reason = error.to_string();
        let reason = reason.strip_prefix("ERR ").unwrap_or(&reason);
        error = CommandError::message(format!("EXECABORT Transaction discarded because of: {reason}"));
    }
    answer_error(local, out, &error);
    Flow::Next
}

/// Writes an error reply and counts it.
pub(crate) fn answer_error(local: &Local, out: &mut Writer, error: &CommandError) {
    local.shared.stats.error_reply(&error.to_string());
    error.reply(out);
}

enum Check {
    Run,
    Queue,
    Pause,
    Wait,
}

/// What may keep a command from running now.
fn check(
    local: &mut Local,
    session: &mut Session,
    command: &'static Command,
    args: Args<'_>,
    now_ms: u64,
) -> Result<Check, CommandError> {
    let flags = command.flags;
    if command.group == Group::Cluster && local.shared.cluster.is_none() {
        return Err(CommandError::Text("ERR This instance has cluster support disabled"));
    }
    if !session.is_authenticated && !flags.contains(Flags::NO_AUTH) {
        return Err(CommandError::Text("NOAUTH Authentication required."));
    }
    if local.config.maxmemory > 0 {
        let multi = session.multi.as_deref();
        let queued = multi.filter(|_| command.name == "exec").map_or(0, |multi| multi.bytes);
        let brought = || queued + args.iter().map(<[u8]>::len).sum::<usize>();
        if memory::make_room(local, command, multi.is_some(), brought, now_ms)? == Room::Later {
            return Ok(Check::Wait);
        }
    }
    let gate = &local.shared.persistence.gate;
    if !gate.is_open() {
        let queued = session.multi.as_deref().filter(|_| command.name == "exec");
        let writes = |command: &Command| command.flags.contains(Flags::WRITE);
        let any_queued =
            || queued.is_some_and(|multi| multi.queue.iter().any(|queued| writes(queued.command)));
        let writes = writes(command) || any_queued();
        gate.check(command, writes)?;
        if writes && gate.is_crowded() {
            return Ok(Check::Wait);
        }
    }
    if session.is_monitor && flags.intersects(Flags::READONLY.union(Flags::WRITE).union(Flags::MAY_REPLICATE))
    {
        return Err(CommandError::Text("ERR Replica can't interact with the keyspace"));
    }
    if session.is_subscriber() && !is_allowed_while_subscribed(command) {
        return Err(CommandError::message(format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
             context",
            command.name
        )));
    }
    if session.multi.is_some() && !is_run_inside_multi(command) {
        if flags.contains(Flags::NO_MULTI) {
            return Err(CommandError::Text("ERR Command not allowed inside a transaction"));
        }
        if command.name == "migrate" {
            return Err(CommandError::Text(
                "ERR MIGRATE cannot be part of a transaction: its keys could not be used while the target is waited for",
            ));
        }
        return Ok(Check::Queue);
    }
    if pause::holds_back(local, session, command, args, now_ms) {
        return Ok(Check::Pause);
    }
    Ok(Check::Run)
}

fn is_allowed_while_subscribed(command: &Command) -> bool {
    matches!(
        command.name,
        "subscribe"
            | "unsubscribe"
            | "psubscribe"
            | "punsubscribe"
            | "ssubscribe"
            | "sunsubscribe"
            | "ping"
            | "quit"
            | "reset"
    )
}

fn is_run_inside_multi(command: &Command) -> bool {
    matches!(command.name, "exec" | "discard" | "multi" | "watch" | "quit" | "reset")
}

fn queue(session: &mut Session, command: &'static Command, row: &'static Row, args: Args<'_>) {
    let args = OwnedArgs::copy(args);
    let multi: &mut Multi = session.multi.as_mut().expect("invariant: commands are queued inside MULTI");
    multi.bytes += args.mem_bytes();
    multi.queue.push(Queued { command, row, args });
    session.client.multi.store(multi.queue.len() as u32, Ordering::Relaxed);
}

/// Whether this node serves a command that is about to be queued: in Redis, too, a transaction is refused as soon as one of its
/// commands would be.
fn check_queued(
    local: &mut Local,
    session: &Session,
    command: &'static Command,
    row: &'static Row,
    args: Args<'_>,
    now_ms: u64,
) -> Result<(), CommandError> {
    let Some(cluster) = local.shared.cluster.as_deref() else { return Ok(()) };
    let slots: smallvec::SmallVec<[Slot; 16]> = slots_of(command, args).collect();
    if slots.iter().all(|&slot| slot == slots[0] && cluster.table.word(slot) == 0) {
        return Ok(());
    }
    let (shared, settings) = (&*local.shared, &*local.settings);
    let ks = hold(row, command, args, shared, settings, &mut local.changes, session.db, now_ms);
    match cluster.pass(&local.config, &ks, Asker::new(session, shared), std::iter::once((command, args))) {
        Pass::Refuse(error) => Err(error),
        // EXEC waits.
        Pass::Serve | Pass::Later => Ok(()),
    }
}

/// Runs a command that nothing keeps from running.
fn dispatch(
    local: &mut Local,
    session: &mut Session,
    command: &'static Command,
    row: &'static Row,
    args: Args<'_>,
    out: &mut Writer,
    now_ms: u64,
) -> Flow {
    let shared = Arc::clone(&local.shared);
    session.client.last_command.store(command.id.index() as u16 + 1, Ordering::Relaxed);
    let settings = Arc::clone(&local.settings);
    let client = session.client.clone();
    let (db, touch) = (session.db, !session.is_no_touch || command.name == "touch");
    let mut ks = hold(row, command, args, &shared, &settings, &mut local.changes, db, now_ms);
    // Looked at under the slots: who began to track before it read a key hears of every change after that.
    ks.changes().tracks_prefixes = shared.tracking.any_broadcast();
    if let Some(cluster) = shared.cluster.as_deref()
        && !cluster.is_plain(ks.held_slots())
    {
        let asker = Asker::new(session, &shared);
        match cluster.pass(&local.config, &ks, asker, std::iter::once((command, args))) {
            Pass::Serve => {}
            Pass::Later => return Flow::Crowded,
            Pass::Refuse(error) => {
                drop(ks);
                local.shared.stats.worker(local.worker).rejected(command);
                answer_error(local, out, &error);
                return Flow::Next;
            }
        }
    }
    if command.flags.contains(Flags::BLOCKING) && is_serve_due(&ks, command, args) {
        return Flow::Crowded;
    }
    if shared.moves.marks.any()
        && let Some(parking) = shared.moves.marks.holding(command, args)
    {
        return Flow::Parked(parking);
    }
    ks.begin(now_ms, touch);
    let mut ctx = Ctx {
        ks,
        out,
        server: &shared,
        session: Some(session),
        blocked: None,
        is_held_back: false,
        parked: None,
        worker: local.worker,
    };
    let started = Instant::now();
    let result = call(&mut ctx, command, row, args);
    let elapsed = started.elapsed();
    if ctx.is_held_back {
        return Flow::Crowded;
    }
    if let Some(parking) = ctx.parked.take() {
        return Flow::Parked(parking);
    }
    if shared.monitors.any() {
        monitor::feed(&mut ctx, command, args);
    }
    let blocked = ctx.blocked.take();
    let flow = match blocked {
        Some(block) if result.is_ok() => Flow::Blocked(wait(&mut ctx, command, row, args, block)),
        _ => Flow::Next,
    };
    tracking::after_command(ctx.session(), command);
    let feed = std::mem::take(&mut ctx.session().is_feed_due).then(|| ctx.session().feed.clone()).flatten();
    drop(ctx);
    if let Some(feed) = feed {
        replicas::start(&shared, &feed);
    }
    local.spent += elapsed;
    let stats = shared.stats.worker(local.worker);
    stats.called(command, elapsed, result.is_ok());
    if let Err(error) = &result {
        answer_error(local, out, error);
    }
    shared.slowlog.offer(&local.config, command, args, elapsed, &client, now_ms);
    shared.latency.command(&local.config, command, elapsed, now_ms);
    followups::work_off(local, Some(&client), now_ms);
    if client.has_flag(flag::TRACKING) {
        tracking::enforce_limit(local, now_ms);
    }
    flow
}

/// Runs a command whose slots are held, and records the keys it read for a client that tracks.
pub(crate) fn call(
    ctx: &mut Ctx<'_>,
    command: &'static Command,
    row: &'static Row,
    args: Args<'_>,
) -> CommandResult {
    let mark = ctx.out.mark();
    let result = (row.run)(ctx, args);
    if result.is_err() {
        ctx.out.truncate(mark);
    }
    if ctx.session.as_ref().is_some_and(|session| session.tracking.is_some()) {
        tracking::record(ctx, command, args);
    }
    result
}

/// The slots of the command's keys, and of its shard channels.
pub(crate) fn slots_of<'a>(command: &Command, args: Args<'a>) -> impl Iterator<Item = Slot> + use<'a> {
    let mut slots = smallvec::SmallVec::<[Slot; 16]>::new();
    // Arguments from which no keys can be read are refused by the handler before it touches one.
    let found = towline_spec::for_each_key(command, &args, |index, _| {
        slots.push(key_slot(args.get(index)));
    });
    if found.is_err() {
        slots.clear();
    }
    slots.into_iter()
}

/// Whether those who already wait for one of the command's keys, whose slots are held, are still to be served.
fn is_serve_due(ks: &Keyspace<'_>, command: &'static Command, args: Args<'_>) -> bool {
    let mut is_due = false;
    // A command from whose arguments no keys can be read takes nothing.
    let found = towline_spec::for_each_key(command, &args, |index, flags| {
        is_due |= !flags.contains(KeyFlags::NOT_KEY) && ks.is_serve_due(args.get(index));
    });
    found.is_ok() && is_due
}

/// A keyspace that holds what the row asks for.
#[expect(
    clippy::too_many_arguments,
    reason = "one caller; a struct of these would be built for each command"
)]
pub(crate) fn hold<'a>(
    row: &Row,
    command: &'static Command,
    args: Args<'_>,
    shared: &'a Shared,
    settings: &'a Settings,
    changes: &'a mut Changes,
    db: u8,
    now_ms: u64,
) -> Keyspace<'a> {
    let needs_all = match row.locks {
        Locks::All => true,
        Locks::AllIf(condition) => condition(args),
        Locks::Keys | Locks::Walk | Locks::None => false,
    };
    if needs_all {
        return Keyspace::hold_all(&shared.store, settings, changes, db, now_ms);
    }
    match row.locks {
        // Who listens to a shard channel is registered under its slot's lock: who takes the slot away finds all of them.
        Locks::None if !command.keys.is_empty() && shared.cluster.is_some() => {
            Keyspace::hold(&shared.store, slots_of(command, args), settings, changes, db, now_ms)
        }
        Locks::Walk | Locks::None => Keyspace::hold(&shared.store, [], settings, changes, db, now_ms),
        _ => Keyspace::hold(&shared.store, slots_of(command, args), settings, changes, db, now_ms),
    }
}

/// Queues the client at the keys that its command waits for, while their slots are still held.
fn wait(
    ctx: &mut Ctx<'_>,
    command: &'static Command,
    row: &'static Row,
    args: Args<'_>,
    mut block: Block,
) -> Arc<Waiter> {
    let db = ctx.ks.db();
    let errand = block.errand.take();
    let session = ctx.session();
    let waiter = Waiter::new(
        Arc::clone(&session.client),
        session.proto,
        db,
        command,
        row,
        OwnedArgs::copy(args),
        block,
    );
    let waiter = ctx.server.blocked.add(waiter);
    for key in waiter.keys() {
        ctx.ks.wait(key, waiter.id());
    }
    match errand {
        None => {}
        Some(Errand::Keeper(errand)) => {
            ctx.server.persistence.keeper.send(Request::Errand(errand, Arc::clone(&waiter)));
        }
        Some(Errand::Move(order)) => {
            ctx.server.moves.send(moving::Errand::Move(order, Arc::clone(&waiter)));
        }
        Some(Errand::Cluster(errand)) => {
            if let Some(cluster) = ctx.server.cluster.as_deref() {
                cluster.send(errand, Some(Arc::clone(&waiter)));
            }
        }
    }
    waiter
}

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    #[test]
    fn an_unknown_command_is_repeated_byte_for_byte_up_to_a_bound() {
        let mut server = Server::new();
        assert_eq!(
            server.run_bytes(&[b"n\xff", b"\xfe\0", b"a\r\nb"]),
            b"-ERR unknown command 'n\xff', with args beginning with: '\xfe\0' 'a  b' \r\n"
        );
        assert_eq!(
            server.run_bytes(&[b"client", b"n\xff"]),
            b"-ERR unknown subcommand 'n\xff'. Try CLIENT HELP.\r\n"
        );
        let long = vec![b'x'; 1000];
        let shown = String::from_utf8(long[..128].to_vec()).expect("invariant: ASCII");
        assert_eq!(
            server.run_bytes(&[&long, &long, b"never shown"]),
            format!("-ERR unknown command '{shown}', with args beginning with: '{shown}' \r\n").into_bytes()
        );
    }

    #[test]
    fn commands_of_a_cluster_are_known_and_refused_without_one() {
        let mut server = Server::new();
        for line in ["READONLY", "READWRITE", "ASKING", "CLUSTER INFO", "cluster help"] {
            assert_eq!(server.line(line), "-ERR This instance has cluster support disabled", "{line}");
        }
        for (line, name) in
            [("READONLY 1", "readonly"), ("CLUSTER", "cluster"), ("CLUSTER INFO x", "cluster|info")]
        {
            assert_eq!(server.line(line), format!("-ERR wrong number of arguments for '{name}' command"));
        }
        assert_eq!(server.line("CLUSTER NOSUCH"), "-ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.");
    }
}
