//! Commands about snapshots and the log: `SAVE`, `BGSAVE`, `LASTSAVE`, `BGREWRITEAOF`.
//!
//! Owns: their arguments and answers. Does **not** own making snapshots (see [`crate::persistence::keeper`]).

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::persistence::keeper::Errand;

/// What this client has changed in this turn counts from now on, so that a snapshot that is made of it counts it as saved.
fn count_changes(ctx: &mut Ctx<'_>) {
    ctx.server.stats.worker(ctx.worker).absorb(ctx.ks.changes());
}

/// `SAVE`: the client waits until the snapshot is in its file. The others do not.
fn save(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.server.persistence.keeper.status().check_save()?;
    count_changes(ctx);
    ctx.wait_for(Errand::Save);
    Ok(())
}

/// `BGSAVE [SCHEDULE]`
fn bgsave(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let is_schedule = args.is(1, "SCHEDULE");
    if args.len() > 2 || (args.len() == 2 && !is_schedule) {
        return Err(CommandError::Syntax);
    }
    count_changes(ctx);
    let (in_exec, now_ms) = (ctx.session().is_in_exec, ctx.ks.now_ms());
    let reply = ctx.server.persistence.keeper.ask_save(is_schedule, in_exec, now_ms)?;
    ctx.out.simple(reply);
    Ok(())
}

/// `BGREWRITEAOF`
fn bgrewriteaof(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let (in_exec, now_ms) = (ctx.session().is_in_exec, ctx.ks.now_ms());
    let has_log = ctx.server.config().persistence.appendonly;
    let reply = ctx.server.persistence.keeper.ask_rewrite(has_log, in_exec, now_ms)?;
    ctx.out.simple(reply);
    Ok(())
}

/// `LASTSAVE`: when the data set was saved last, in unix seconds; until then, when the server started.
fn lastsave(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let saved_ms = ctx.server.persistence.keeper.status().saved_ms;
    ctx.out.int((saved_ms / 1000) as i64);
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    no_keys("bgrewriteaof", bgrewriteaof),
    no_keys("bgsave", bgsave),
    no_keys("lastsave", lastsave),
    no_keys("save", save),
];
