//! Commands about the server as a whole: `TIME`, `WAIT`, `SHUTDOWN`, `LOLWUT`, `TOWLINE`.

use super::info::{REDIS_VERSION, TOWLINE_VERSION};
use crate::command::{Args, CommandError, CommandResult, Ctx, Nothing, Row, no_keys};
use crate::persistence::keeper::{Errand, StopOptions};
use crate::shared::Stop;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use towline_store::number::parse_i64;

/// `TIME`: unix seconds and microseconds.
fn time(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    // The command's own instant has milliseconds only.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ctx.out.array(2);
    ctx.out.bulk_int(now.as_secs() as i64);
    ctx.out.bulk_int(now.subsec_micros().into());
    Ok(())
}

/// `WAIT numreplicas timeout`: there are no replicas, so either none is wanted or the time runs out; 0 is for ever.
fn wait(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let replicas = args.int(1)?;
    let timeout_ms =
        parse_i64(args.get(2)).ok_or(CommandError::Text("ERR timeout is not an integer or out of range"))?;
    let timeout_ms = u64::try_from(timeout_ms).map_err(|_| CommandError::Text("ERR timeout is negative"))?;
    if replicas <= 0 {
        ctx.out.int(0);
        return Ok(());
    }
    let timeout = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms));
    ctx.block(std::iter::empty::<&[u8]>(), timeout, Nothing::Int(0));
    Ok(())
}

/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`: the client waits, and either its connection is closed or the server could
/// not keep what it should and says so.
fn shutdown(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut save, mut is_forced, mut options) = (None, false, 0);
    let mut is_abort = false;
    for index in 1..args.len() {
        options += 1;
        match () {
            () if args.is(index, "NOSAVE") && save != Some(true) => save = Some(false),
            () if args.is(index, "SAVE") && save != Some(false) => save = Some(true),
            // There are no replicas that would have to catch up.
            () if args.is(index, "NOW") => {}
            () if args.is(index, "FORCE") => is_forced = true,
            () if args.is(index, "ABORT") => is_abort = true,
            () => return Err(CommandError::Syntax),
        }
    }
    if is_abort {
        if options > 1 {
            return Err(CommandError::Syntax);
        }
        if !ctx.server.persistence.keeper.abort_stop() {
            return Err(CommandError::Text("ERR No shutdown in progress."));
        }
        ctx.out.ok();
        return Ok(());
    }
    if ctx.server.persistence.gate.is_loading() {
        // There is nothing to keep, and the keeper is busy.
        ctx.server.stop(Stop::Gracefully);
        ctx.session().is_closing = true;
        return Ok(());
    }
    ctx.wait_for(Errand::Stop(StopOptions { save, is_forced }));
    Ok(())
}

/// Columns of the picture, by default and at most.
const COLUMNS: usize = 60;
const COLUMNS_MAX: usize = 200;
/// Lines of the picture.
const SEA_LINES: usize = 5;

/// `LOLWUT [VERSION number] [columns …]`: a ship that is being towed over a sea that is never the same.
fn lolwut(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut numbers = args.from(1);
    if args.is(1, "VERSION") {
        args.at(2).ok_or(CommandError::Syntax)?;
        args.int(2)?;
        numbers = args.from(3);
    }
    let numbers = (0..numbers.len()).map(|index| numbers.int(index)).collect::<Result<Vec<_>, _>>()?;
    let columns = numbers.first().and_then(|&columns| usize::try_from(columns).ok()).unwrap_or(COLUMNS);
    let columns = columns.clamp(COLUMNS, COLUMNS_MAX);
    let text = picture(columns, |n| ctx.ks.changes().rng.below(n));
    ctx.out.verbatim(b"txt", &text);
    Ok(())
}

fn picture(columns: usize, mut below: impl FnMut(u64) -> u64) -> String {
    const TUG: [&str; 4] = ["     __    ", "   _|..|_  ", "__|______|_", "\\_________/"];
    const LOAD: [&str; 4] = ["               ", "  [=] [=] [=]  ", "_____________  ", "\\___________/  "];
    let mut text = String::new();
    let rope = columns - TUG[0].len() - LOAD[0].len();
    for (row, (tug, load)) in TUG.iter().zip(LOAD).enumerate() {
        let between = if row == 2 { "~" } else { " " };
        text.push_str(&format!("{load}{}{tug}\n", between.repeat(rope)));
    }
    for depth in 0..SEA_LINES {
        for _ in 0..columns {
            let calm = below(depth as u64 + 2);
            text.push(if calm == 0 { ['~', '-', '^', '.'][below(4) as usize] } else { ' ' });
        }
        text.push('\n');
    }
    text.push_str(&format!("\nRedis ver. {REDIS_VERSION} (Towline ver. {TOWLINE_VERSION})\n"));
    text
}

pub(super) const ROWS: &[Row] =
    &[no_keys("lolwut", lolwut), no_keys("shutdown", shutdown), no_keys("time", time), no_keys("wait", wait)];

#[cfg(test)]
mod tests {
    use crate::shared::Stop;
    use crate::testing::Server;

    #[test]
    fn time_and_role() {
        let mut server = Server::new();
        assert!(server.line("TIME").starts_with("*2 $10 1"));
        assert_eq!(server.line("ROLE"), "*3 $6 master :0 *0");
        assert_eq!(server.line("ROLE x"), "-ERR wrong number of arguments for 'role' command");
    }

    #[test]
    fn wait_answers_at_once_or_waits_for_nobody() {
        let mut server = Server::new();
        assert_eq!(server.line("WAIT 0 0"), ":0");
        assert_eq!(server.line("WAIT -1 0"), ":0");
        let waiter = server.wait("WAIT 1 50");
        assert_eq!(waiter.timeout(), Some(std::time::Duration::from_millis(50)));
        assert_eq!(server.wait("WAIT 1 0").timeout(), None);
        assert_eq!(server.line("WAIT x 1"), "-ERR value is not an integer or out of range");
        assert_eq!(server.line("WAIT 0 x"), "-ERR timeout is not an integer or out of range");
        assert_eq!(server.line("WAIT 0 -1"), "-ERR timeout is negative");
        server.line("MULTI");
        server.line("WAIT 1 0");
        assert_eq!(server.line("EXEC"), "*1 :0");
    }

    #[test]
    fn shutdown_waits_for_the_keeper() {
        let mut server = Server::new();
        for line in ["SHUTDOWN FOO", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT NOW"] {
            assert_eq!(server.line(line), "-ERR syntax error");
        }
        assert_eq!(server.line("SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
        assert_eq!(server.wait("SHUTDOWN NOSAVE NOW FORCE").timeout(), None);
        assert_eq!(*server.local.shared.stopping().borrow(), Stop::No);
        // While the data is being loaded, nothing is to be kept.
        server.local.shared.persistence.gate.set_loading(true);
        assert_eq!(server.line("SHUTDOWN"), "");
        assert!(server.session.is_closing);
        assert_eq!(*server.local.shared.stopping().borrow(), Stop::Gracefully);
    }

    #[test]
    fn lolwut_ends_in_the_versions() {
        let mut server = Server::new();
        for line in ["LOLWUT", "LOLWUT VERSION 5", "LOLWUT 5 6 7 8", "LOLWUT VERSION 1 100000"] {
            let text = server.line(line);
            assert!(text.starts_with('$') && text.contains("Redis ver. 7.2.4"), "{text}");
            assert!(text.len() < 4096);
        }
        assert_eq!(server.line("LOLWUT VERSION x"), "-ERR value is not an integer or out of range");
    }
}
