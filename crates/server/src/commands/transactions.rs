//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.
//!
//! Owns: a transaction's end. Does **not** own queueing (see [`crate::execute`]) nor noticing that a watched key changed
//! (each slot knows its watchers).
//!
//! `EXEC` holds the slots of all queued commands and of all watched keys at once, looks whether a watched key changed,
//! and runs the commands: nobody sees a state in between, and nothing changes between the look and the commands.

use crate::client::flag;
use crate::cluster::errands::Errand;
use crate::cluster::gate::{self, Asker, Pass};
use crate::command::{Args, CommandError, CommandResult, Ctx, Locks, Row, keys, no_keys};
use crate::commands::cluster::changes;
use crate::config::Config;
use crate::execute::{call, slots_of};
use crate::parking::Parking;
use crate::session::{Multi, Queued, Watch};
use crate::{farewell, monitor};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// `MULTI`
fn multi(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let session = ctx.session();
    if session.multi.is_some() {
        return Err(CommandError::Text("ERR MULTI calls can not be nested"));
    }
    session.multi = Some(Box::new(Multi::default()));
    session.client.multi.store(0, Ordering::Relaxed);
    session.client.set_flag(flag::MULTI, true);
    ctx.out.ok();
    Ok(())
}

/// `DISCARD`
fn discard(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    if ctx.session().multi.is_none() {
        return Err(CommandError::Text("ERR DISCARD without MULTI"));
    }
    farewell::discard(ctx.session());
    forget_watched(ctx);
    ctx.out.ok();
    Ok(())
}

/// Forgets the watched keys, of a command that holds no slots that it needs.
fn forget_watched(ctx: &mut Ctx<'_>) {
    if let Some(watch) = farewell::take_watch(ctx.session()) {
        farewell::unwatch(&mut ctx.ks, &watch);
    }
}

/// `WATCH key [key ...]`
fn watch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if ctx.session().multi.is_some() {
        return Err(CommandError::Text("ERR WATCH inside MULTI is not allowed"));
    }
    let db = ctx.ks.db();
    let mut watch = ctx.session().watch.take().unwrap_or_default();
    for key in args.from(1).iter() {
        if !watch.keys.insert((db, key.to_vec())) {
            continue;
        }
        // A key that has expired by now is removed first: its removal is no change of what is watched.
        ctx.ks.exists(key);
        ctx.ks.watch(key, &watch.flag);
    }
    let session = ctx.session();
    session.client.watched.store(watch.keys.len() as u32, Ordering::Relaxed);
    session.watch = Some(watch);
    ctx.out.ok();
    Ok(())
}

/// `UNWATCH`; inside of a transaction it does nothing, because `EXEC` has forgotten the keys before.
fn unwatch(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    forget_watched(ctx);
    ctx.out.ok();
    Ok(())
}

/// `EXEC`
fn exec(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let Some(multi) = ctx.session().multi.take() else {
        return Err(CommandError::Text("ERR EXEC without MULTI"));
    };
    if multi.is_refused {
        farewell::discard(ctx.session());
        forget_watched(ctx);
        return Err(CommandError::Text("EXECABORT Transaction discarded because of previous errors."));
    }
    if multi.queue.iter().any(|queued| changes::is_change(queued.command)) {
        return exec_changes(ctx, &multi);
    }
    let watch = ctx.session().watch.take();
    hold(ctx, &multi, watch.as_deref());
    match pass(ctx, &multi) {
        Pass::Serve => {}
        Pass::Later => {
            (ctx.session().multi, ctx.session().watch) = (Some(multi), watch);
            ctx.is_held_back = true;
            return Ok(());
        }
        Pass::Refuse(error) => {
            farewell::discard(ctx.session());
            ctx.session().watch = watch;
            forget_watched(ctx);
            return Err(error);
        }
    }
    if let Some(parking) = parking_of(ctx, &multi) {
        (ctx.session().multi, ctx.session().watch) = (Some(multi), watch);
        ctx.park(parking);
        return Ok(());
    }
    farewell::discard(ctx.session());
    ctx.session().client.watched.store(0, Ordering::Relaxed);
    if let Some(watch) = &watch
        && is_spoiled(ctx, watch)
    {
        ctx.out.null_array();
        return Ok(());
    }
    ctx.out.array(multi.queue.len());
    let config = ctx.server.config();
    ctx.session().is_in_exec = true;
    ctx.ks.begin_unit();
    for queued in &multi.queue {
        run(ctx, &config, queued);
    }
    ctx.ks.end_unit();
    ctx.session().is_in_exec = false;
    Ok(())
}

/// Where the transaction waits because one of its commands would change a key that is on its way.
fn parking_of(ctx: &Ctx<'_>, multi: &Multi) -> Option<Arc<Parking>> {
    let marks = &ctx.server.moves.marks;
    let mut queue = multi.queue.iter().filter(|_| marks.any());
    queue.find_map(|queued| marks.holding(queued.command, queued.args.args()))
}

/// Whether this node serves the transaction, all of whose keys count as one command's.
fn pass(ctx: &mut Ctx<'_>, multi: &Multi) -> Pass {
    let server = ctx.server;
    let Some(cluster) = server.cluster.as_deref() else { return Pass::Serve };
    let asker = Asker::new(ctx.session(), server);
    cluster.pass(&server.config(), &ctx.ks, asker, gate::queued(&multi.queue))
}

/// A transaction of changes of the cluster: all are decided at once. Redis would run anything beside them; but what is decided by
/// several nodes cannot be one step with what this node does by itself.
fn exec_changes(ctx: &mut Ctx<'_>, multi: &Multi) -> CommandResult {
    farewell::discard(ctx.session());
    if let Some(watch) = farewell::take_watch(ctx.session()) {
        ctx.ks.hold_slots(farewell::slots_of(&watch));
        if is_spoiled(ctx, &watch) {
            ctx.out.null_array();
            return Ok(());
        }
    }
    if !multi.queue.iter().all(|queued| changes::is_change(queued.command)) {
        return Err(CommandError::Text(
            "EXECABORT Transaction discarded because of: commands that change the cluster can only be in a transaction with \
             each other",
        ));
    }
    ctx.session().is_in_exec = true;
    let parts = multi.queue.iter().map(|queued| changes::read(ctx, queued.command, queued.args.args()));
    let parts = parts.collect();
    ctx.session().is_in_exec = false;
    ctx.wait_for(Errand::Transaction(parts));
    Ok(())
}

/// Holds everything that the transaction needs.
fn hold(ctx: &mut Ctx<'_>, multi: &Multi, watch: Option<&Watch>) {
    let needs_all = |queued: &Queued| match queued.row.locks {
        Locks::All | Locks::Walk => true,
        Locks::AllIf(condition) => condition(queued.args.args()),
        Locks::Keys | Locks::None => false,
    };
    if multi.queue.iter().any(needs_all) {
        ctx.ks.hold_every();
        return;
    }
    let queued = multi.queue.iter().flat_map(|queued| slots_of(queued.command, queued.args.args()));
    ctx.ks.hold_slots(queued.chain(watch.into_iter().flat_map(farewell::slots_of)));
}

/// Forgets the watched keys; `true` if one of them has changed, or expired, since.
fn is_spoiled(ctx: &mut Ctx<'_>, watch: &Watch) -> bool {
    let db = ctx.ks.db();
    for (watched_db, key) in &watch.keys {
        ctx.ks.select(*watched_db);
        // A key whose time has come is removed by this, which sets the flag.
        ctx.ks.exists(key);
    }
    ctx.ks.select(db);
    farewell::forget_keys(&mut ctx.ks, watch);
    watch.flag.is_set()
}

/// Runs a queued command; its error is a reply like any other.
fn run(ctx: &mut Ctx<'_>, config: &Config, queued: &Queued) {
    let (command, args) = (queued.command, queued.args.args());
    let (now_ms, server, worker) = (ctx.ks.now_ms(), ctx.server, ctx.worker);
    let session = ctx.session();
    let touch = !session.is_no_touch || command.name == "touch";
    session.client.last_command.store(command.id.index() as u16 + 1, Ordering::Relaxed);
    let client = Arc::clone(&session.client);
    ctx.ks.begin(now_ms, touch);
    let started = Instant::now();
    let result = call(ctx, command, queued.row, args);
    let elapsed = started.elapsed();
    if let Some(block) = ctx.blocked.take()
        && result.is_ok()
    {
        block.nothing.write_at_once(ctx.out);
    }
    if let Err(error) = &result {
        server.stats.error_reply(&error.to_string());
        error.reply(ctx.out);
    }
    if server.monitors.any() {
        monitor::feed(ctx, command, args);
    }
    server.stats.worker(worker).called(command, elapsed, result.is_ok());
    server.slowlog.offer(config, command, args, elapsed, &client, now_ms);
}

pub(super) const ROWS: &[Row] = &[
    no_keys("discard", discard),
    no_keys("exec", exec),
    no_keys("multi", multi),
    no_keys("unwatch", unwatch),
    keys("watch", watch),
];

#[cfg(test)]
mod tests;
