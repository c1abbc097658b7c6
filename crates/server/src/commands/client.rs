//! `CLIENT`: what a client says of itself, and power over others.
//!
//! Owns: names, reply mode, pausing and unblocking. Does **not** own listing and killing (see
//! [`super::client_list`]) nor tracking (see [`super::client_tracking`]).

use crate::client::flag;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::session::ReplyMode;
use bytes::Bytes;
use towline_resp::writer::Writer;
use towline_store::number::parse_i64;

/// Names are shown on one line of fields, so they have neither spaces nor line ends; `what` begins the error.
pub(super) fn check_name(name: &[u8], what: &[u8]) -> Result<(), CommandError> {
    if name.iter().all(u8::is_ascii_graphic) {
        return Ok(());
    }
    Err(CommandError::quoting("ERR ", what, " cannot contain spaces, newlines or special characters."))
}

/// `ON` or `OFF`.
pub(super) fn switch(args: Args<'_>, index: usize) -> Result<bool, CommandError> {
    match (args.is(index, "on"), args.is(index, "off")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        (false, false) => Err(CommandError::Syntax),
    }
}

/// `CLIENT ID`
fn id(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let id = ctx.session().client.id;
    ctx.out.int(id as i64);
    Ok(())
}

/// `CLIENT GETNAME`
fn getname(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let name = ctx.session().client.names().name.clone();
    if name.is_empty() {
        ctx.out.null();
    } else {
        ctx.out.bulk(&name);
    }
    Ok(())
}

/// `CLIENT SETNAME connection-name`; an empty name takes it away.
fn setname(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    check_name(args.get(2), b"Client names")?;
    ctx.session().client.names().name = args.get(2).to_vec();
    ctx.out.ok();
    Ok(())
}

/// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`
fn setinfo(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let value = args.get(3);
    if args.is(2, "lib-name") {
        check_name(value, args.get(2))?;
        ctx.session().client.names().lib_name = value.to_vec();
    } else if args.is(2, "lib-ver") {
        check_name(value, args.get(2))?;
        ctx.session().client.names().lib_version = value.to_vec();
    } else {
        return Err(CommandError::quoting("ERR Unrecognized option '", args.get(2), "'"));
    }
    ctx.out.ok();
    Ok(())
}

/// `CLIENT REPLY <ON | OFF | SKIP>`; only `ON` is answered.
fn reply(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let session = ctx.session();
    if args.is(2, "on") {
        session.reply = ReplyMode::On;
        ctx.out.ok();
    } else if args.is(2, "off") {
        session.reply = ReplyMode::Off;
    } else if args.is(2, "skip") {
        if session.reply != ReplyMode::Off {
            session.reply = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(())
}

/// `CLIENT NO-EVICT <ON | OFF>`
fn no_evict(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let on = switch(args, 2)?;
    ctx.session().client.set_flag(flag::NO_EVICT, on);
    ctx.out.ok();
    Ok(())
}

/// `CLIENT NO-TOUCH <ON | OFF>`
fn no_touch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let on = switch(args, 2)?;
    let session = ctx.session();
    session.is_no_touch = on;
    session.client.set_flag(flag::NO_TOUCH, on);
    ctx.out.ok();
    Ok(())
}

/// `CLIENT PAUSE timeout [WRITE | ALL]`, in milliseconds.
fn pause(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let all = match args.len() {
        3 => true,
        4 if args.is(3, "all") => true,
        4 if args.is(3, "write") => false,
        4 => return Err(CommandError::Text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(CommandError::Syntax),
    };
    let timeout = parse_i64(args.get(2));
    let timeout = timeout.ok_or(CommandError::Text("ERR timeout is not an integer or out of range"))?;
    let timeout = u64::try_from(timeout).map_err(|_| CommandError::Text("ERR timeout is negative"))?;
    let until_ms = ctx.ks.now_ms().checked_add(timeout).filter(|&at| i64::try_from(at).is_ok());
    let until_ms = until_ms.ok_or(CommandError::Text("ERR timeout is out of range"))?;
    ctx.server.pause.begin(until_ms, all);
    ctx.out.ok();
    Ok(())
}

/// `CLIENT UNPAUSE`
fn unpause(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.server.unpause();
    ctx.out.ok();
    Ok(())
}

/// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
fn unblock(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let is_error = match args.len() {
        3 => false,
        4 if args.is(3, "timeout") => false,
        4 if args.is(3, "error") => true,
        _ => return Err(CommandError::Text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let client = u64::try_from(args.int(2)?).ok();
    let waiter = client.and_then(|client| ctx.server.blocked.of_client(client));
    let is_ended = waiter.is_some_and(|waiter| {
        if !is_error {
            return waiter.time_out();
        }
        let mut out = Writer::new(waiter.proto());
        out.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
        waiter.end_with(Bytes::from(out.take().0))
    });
    ctx.out.int(i64::from(is_ended));
    Ok(())
}

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CACHING (YES|NO)",
    "    Say whether the next command's keys are tracked, in mode OPTIN or OPTOUT.",
    "GETNAME",
    "    Show this connection's name.",
    "GETREDIR",
    "    Show the id of the client that gets this one's invalidations.",
    "ID",
    "    Show this connection's id.",
    "INFO",
    "    Describe this connection.",
    "KILL <ip:port>",
    "    Close the connection from this address.",
    "KILL <filter> <value> [<filter> <value> ...]",
    "    Close the connections that match all filters, and count them. Filters are:",
    "    * ID <client-id> [<client-id> ...]",
    "    * ADDR <ip:port>, LADDR <ip:port>: the address it comes from, or goes to",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "    * USER <username>",
    "    * SKIPME (YES|NO): leave out this connection (default: yes)",
    "    * MAXAGE <seconds>: at least this old",
    "LIST [<filter> <value> ...]",
    "    Describe the connections that match all filters of KILL, one a line.",
    "MAINT_NOTIFICATIONS (ON [MOVING-ENDPOINT-TYPE <type>]|OFF)",
    "    Say whether this connection is told of planned moves. Endpoint types are:",
    "    * INTERNAL-IP, INTERNAL-FQDN, EXTERNAL-IP, EXTERNAL-FQDN, NONE",
    "NO-EVICT (ON|OFF)",
    "    Exempt this connection from the eviction of clients, or end that.",
    "NO-TOUCH (ON|OFF)",
    "    Say that this connection's reads do not count as use of a key, or end that.",
    "PAUSE <milliseconds> [WRITE|ALL]",
    "    Hold back all commands, or those that write.",
    "REPLY (ON|OFF|SKIP)",
    "    Say whether this connection gets replies.",
    "SETINFO (LIB-NAME|LIB-VER) <value>",
    "    Record the name or version of the client library.",
    "SETNAME <name>",
    "    Name this connection.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]",
    "    Say whether this connection is told when keys that it read change.",
    "TRACKINGINFO",
    "    Show how this connection tracks keys.",
    "UNBLOCK <client-id> [TIMEOUT|ERROR]",
    "    End another connection's wait.",
    "UNPAUSE",
    "    End the pause.",
    "HELP",
    "    Print this help.",
];

fn help(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.out.array(HELP.len());
    HELP.iter().for_each(|line| ctx.out.simple(line));
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    no_keys("client|getname", getname),
    no_keys("client|help", help),
    no_keys("client|id", id),
    no_keys("client|no-evict", no_evict),
    no_keys("client|no-touch", no_touch),
    no_keys("client|pause", pause),
    no_keys("client|reply", reply),
    no_keys("client|setinfo", setinfo),
    no_keys("client|setname", setname),
    no_keys("client|unblock", unblock),
    no_keys("client|unpause", unpause),
];

#[cfg(test)]
mod tests;
