//! Planned moves: `CLIENT MAINT_NOTIFICATIONS` and `TOWLINE DRAIN`.
//!
//! Owns: their arguments and replies. Does **not** own what is announced and closed (see [`crate::maintenance`]).

use super::config::help;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::maintenance::{self, DRAIN_WINDOW_DEFAULT, DRAIN_WINDOW_MAX, DrainError, DrainStatus};
use crate::maintenance::{EndpointType, Scope, Successor};
use crate::session::ReplyMode;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use towline_resp::Proto;
use towline_resp::writer::Writer;
use towline_store::number::parse_f64;

/// Letters of a host name; the longest that DNS knows.
const HOST_BYTES_MAX: usize = 253;

/// Addresses that an error lists: enough for a server of today, and still one line.
const ADDRESSES_SHOWN_MAX: usize = 16;

/// `CLIENT MAINT_NOTIFICATIONS <ON [moving-endpoint-type type] | OFF>`. What is going on already is told right behind the
/// reply.
fn maint_notifications(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let wanted = match args.len() {
        3 => None,
        5 if args.is(2, "on") && args.is(3, "moving-endpoint-type") => {
            Some(EndpointType::parse(args.get(4)).ok_or(CommandError::Syntax)?)
        }
        _ => return Err(CommandError::Syntax),
    };
    let on = super::client::switch(args, 2)?;
    if !ctx.server.config().maint_notifications {
        return Err(CommandError::Text(
            "ERR notifications about maintenance are turned off: see the parameter 'maint-notifications'",
        ));
    }
    let server = ctx.server;
    let session = ctx.session();
    if !on {
        server.maintenance.opt_out(&session.client);
        ctx.out.ok();
        return Ok(());
    }
    if session.proto != Proto::Resp3 {
        return Err(CommandError::Text("ERR CLIENT MAINT_NOTIFICATIONS needs RESP3: send HELLO 3 first"));
    }
    let client = Arc::clone(&session.client);
    // Inside the reply of EXEC, or in place of a reply that is left out, there is no room for a push.
    let is_inline = session.reply == ReplyMode::On && !session.is_in_exec;
    let frames = server.maintenance.opt_in(&client, wanted, Instant::now());
    ctx.out.ok();
    for frame in frames {
        if is_inline {
            ctx.out.raw(&frame);
        } else {
            client.push(frame);
        }
    }
    Ok(())
}

/// `TOWLINE DRAIN [WINDOW seconds] [TO host:port] [ON local-ip:port]`, `TOWLINE DRAIN STATUS`, `TOWLINE DRAIN CANCEL [seq]`
fn drain(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.is(2, "status") && args.len() == 3 {
        return status(ctx);
    }
    if args.is(2, "cancel") && args.len() <= 4 {
        return cancel(ctx, args);
    }
    let (mut window, mut successor, mut local) = (None, None, None);
    let mut at = 2;
    while at < args.len() {
        let value = args.at(at + 1).ok_or(CommandError::Syntax)?;
        // Each option once: of two values none is known to be meant.
        if args.is(at, "window") && window.is_none() {
            window = Some(parse_window(value)?);
        } else if args.is(at, "to") && successor.is_none() {
            successor = Some(parse_successor(value)?);
        } else if args.is(at, "on") && local.is_none() {
            local = Some(parse_local(value)?);
        } else {
            return Err(CommandError::Syntax);
        }
        at += 2;
    }
    let (window, scope) = (window.unwrap_or(DRAIN_WINDOW_DEFAULT), local.map_or(Scope::All, Scope::Local));
    if !maintenance::is_reachable(ctx.server, scope) {
        return Err(not_listened_on(scope, &ctx.server.endpoints.addresses()));
    }
    let begun = maintenance::drain(ctx.server, scope, window, successor, Instant::now());
    let seq = begun.map_err(|error| CommandError::message(format!("ERR {error}")))?;
    ctx.out.int(seq as i64);
    Ok(())
}

fn parse_window(value: &[u8]) -> Result<Duration, CommandError> {
    let seconds = parse_f64(value).ok_or(CommandError::Text("ERR the window is not a number of seconds"))?;
    // Bounded before it becomes a duration, which has no room for every number.
    let is_possible = (0.0..=DRAIN_WINDOW_MAX.as_secs_f64()).contains(&seconds);
    is_possible
        .then(|| Duration::from_secs_f64(seconds))
        .ok_or_else(|| CommandError::message(format!("ERR {}", DrainError::Window)))
}

fn parse_successor(value: &[u8]) -> Result<Successor, CommandError> {
    const WRONG: CommandError =
        CommandError::Text("ERR TO takes host:port, with an IPv6 address in brackets: [::1]:6379");
    let text = std::str::from_utf8(value).map_err(|_| WRONG)?;
    let (host, port) = text.rsplit_once(':').ok_or(WRONG)?;
    let port = port.parse::<u16>().ok().filter(|&port| port > 0).ok_or(WRONG)?;
    let successor = Successor::new(host, port);
    // What is no address is taken for a name, so it has to look like one.
    let is_name = |name: &String| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        !name.is_empty() && name.len() <= HOST_BYTES_MAX && name.bytes().all(fits)
    };
    let has_brackets = host.starts_with('[');
    let is_right = match &successor.ip {
        Some(ip) => ip.contains(':') == has_brackets,
        None => successor.fqdn.as_ref().is_some_and(is_name),
    };
    is_right.then_some(successor).ok_or(WRONG)
}

fn parse_local(value: &[u8]) -> Result<SocketAddr, CommandError> {
    let text = std::str::from_utf8(value).ok();
    let address = text.and_then(|text| text.parse::<SocketAddr>().ok()).filter(|address| address.port() > 0);
    address
        .ok_or(CommandError::Text("ERR ON takes a local IP address and port: 127.0.0.1:6379 or [::1]:6379"))
}

fn not_listened_on(scope: Scope, addresses: &[SocketAddr]) -> CommandError {
    if addresses.is_empty() {
        return CommandError::message(format!("ERR nothing listens on {scope}, nor on another TCP address"));
    }
    let shown: Vec<_> = addresses.iter().take(ADDRESSES_SHOWN_MAX).map(SocketAddr::to_string).collect();
    let more = match addresses.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    CommandError::message(format!("ERR nothing listens on {scope}; listened on: {}{more}", shown.join(", ")))
}

fn cancel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let seq = match args.at(3) {
        Some(_) => Some(u64::try_from(args.int(3)?).map_err(|_| CommandError::NotInteger)?),
        None => None,
    };
    let count = ctx.server.maintenance.cancel(seq, &ctx.server.clients, Instant::now());
    ctx.out.int(count as i64);
    Ok(())
}

fn status(ctx: &mut Ctx<'_>) -> CommandResult {
    let statuses = ctx.server.maintenance.statuses(&ctx.server.clients, Instant::now());
    ctx.out.array(statuses.len());
    statuses.iter().for_each(|status| describe(ctx.out, status));
    Ok(())
}

fn describe(out: &mut Writer, status: &DrainStatus) {
    out.map(10);
    out.bulk(b"seq");
    out.int(status.seq as i64);
    out.bulk(b"scope");
    out.bulk_display(status.scope);
    out.bulk(b"state");
    out.bulk(status.state.name().as_bytes());
    out.bulk(b"window");
    out.double(status.window.as_secs_f64());
    out.bulk(b"remaining");
    out.double(status.remaining.as_secs_f64());
    out.bulk(b"successor");
    match status.successor.as_ref().and_then(|successor| successor.named(None)) {
        Some(successor) => out.bulk(successor.as_bytes()),
        None => out.null(),
    }
    for (name, count) in [
        ("connections", status.connections),
        ("told", status.told),
        ("left", status.left),
        ("closed", status.closed),
    ] {
        out.bulk(name.as_bytes());
        out.int(count as i64);
    }
}

fn towline_help(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    help(
        ctx,
        "TOWLINE",
        &[
            "DRAIN [WINDOW <seconds>] [TO <host:port>] [ON <local-ip:port>]",
            "    Tell the connections that exist now to move, and close them when the window (default: 15",
            "    seconds) is over. New connections are accepted all along. Returns the drain's number.",
            "    ON 0.0.0.0:<port> or [::]:<port> means every address of that family with this port.",
            "DRAIN STATUS",
            "    Show the drains that run and the last ones that are over.",
            "DRAIN CANCEL [<seq>]",
            "    Close nobody after all: end this drain, or all whose window is open. Returns how many.",
        ],
    )
}

pub(super) const ROWS: &[Row] = &[
    no_keys("client|maint_notifications", maint_notifications),
    no_keys("towline|drain", drain),
    no_keys("towline|help", towline_help),
];

#[cfg(test)]
mod tests;
