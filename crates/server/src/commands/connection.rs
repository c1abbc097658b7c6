//! Commands about the connection itself.

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::commands::client::check_name;
use crate::commands::info::REDIS_VERSION;
use crate::farewell;
use crate::session::ReplyMode;
use std::sync::atomic::Ordering;
use towline_resp::Proto;
use towline_store::number::parse_i64;

/// `PING [message]`: in RESP2, a subscriber gets an array, so that it can be told from a message.
fn ping(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 2 {
        return Err(CommandError::Arity("ping"));
    }
    if ctx.session().is_subscriber() {
        ctx.out.array(2);
        ctx.out.bulk(b"pong");
        ctx.out.bulk(args.at(1).unwrap_or_default());
    } else {
        match args.at(1) {
            Some(message) => ctx.out.bulk(message),
            None => ctx.out.simple("PONG"),
        }
    }
    Ok(())
}

/// `ECHO message`
fn echo(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.out.bulk(args.get(1));
    Ok(())
}

/// Compares without telling by the time taken where the first difference is.
fn is_same_secret(given: &[u8], secret: &[u8]) -> bool {
    let mut differences = given.len() ^ secret.len();
    for (i, &byte) in given.iter().enumerate() {
        let other = if secret.is_empty() { 0 } else { secret[i % secret.len()] };
        differences |= usize::from(byte ^ other);
    }
    std::hint::black_box(differences) == 0
}

const WRONG_PASSWORD: CommandError =
    CommandError::Text("WRONGPASS invalid username-password pair or user is disabled.");

/// The only user is `default`; without a password it takes any.
fn log_in(ctx: &mut Ctx<'_>, user: &[u8], password: &[u8]) -> Result<(), CommandError> {
    let config = ctx.server.config();
    let is_right = config.requirepass.is_empty() || is_same_secret(password, &config.requirepass);
    if user != b"default" || !is_right {
        ctx.server.stats.auth_failures.fetch_add(1, Ordering::Relaxed);
        return Err(WRONG_PASSWORD);
    }
    ctx.session().is_authenticated = true;
    Ok(())
}

/// `AUTH [username] password`
fn auth(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let config = ctx.server.config();
    let (user, password) = match args.len() {
        2 if config.requirepass.is_empty() => {
            return Err(CommandError::Text(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        2 => (b"default".as_slice(), args.get(1)),
        3 => (args.get(1), args.get(2)),
        _ => return Err(CommandError::Syntax),
    };
    log_in(ctx, user, password)?;
    ctx.out.ok();
    Ok(())
}

/// What `HELLO` asks for.
#[derive(Debug, Default)]
struct Hello<'a> {
    proto: Option<Proto>,
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

fn parse_hello(args: Args<'_>) -> Result<Hello<'_>, CommandError> {
    let mut hello = Hello::default();
    let Some(version) = args.at(1) else { return Ok(hello) };
    hello.proto = Some(match parse_i64(version) {
        Some(2) => Proto::Resp2,
        Some(3) => Proto::Resp3,
        Some(_) => return Err(CommandError::Text("NOPROTO unsupported protocol version")),
        None => return Err(CommandError::Text("ERR Protocol version is not an integer or out of range")),
    });
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "auth") && left >= 2 {
            hello.login = Some((args.get(at + 1), args.get(at + 2)));
            at += 3;
        } else if args.is(at, "setname") && left >= 1 {
            let name = args.get(at + 1);
            check_name(name, b"Client names")?;
            hello.name = Some(name);
            at += 2;
        } else {
            return Err(CommandError::quoting("ERR Syntax error in HELLO option '", args.get(at), "'"));
        }
    }
    Ok(hello)
}

/// Ends what RESP2 has no form for. What was pushed in RESP3 goes out before the reply that RESP2 begins with.
fn leave_resp3(ctx: &mut Ctx<'_>) {
    let server = ctx.server;
    let session = ctx.session();
    server.maintenance.forget(&session.client);
    // A reply that is left out takes all that is written with it.
    if session.reply == ReplyMode::On && session.client.has_mail() {
        let pushed = session.client.take_outbox();
        pushed.iter().for_each(|bytes| ctx.out.raw(bytes));
    }
}

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
fn hello(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let hello = parse_hello(args)?;
    if let Some((user, password)) = hello.login {
        log_in(ctx, user, password)?;
    }
    let session = ctx.session();
    if !session.is_authenticated {
        return Err(CommandError::Text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = hello.name {
        session.client.names().name = name.to_vec();
    }
    if let Some(proto) = hello.proto {
        if proto == Proto::Resp2 {
            leave_resp3(ctx);
        }
        ctx.session().speak(proto);
        ctx.out.proto = proto;
    }
    let (id, proto) = (ctx.session().client.id, ctx.out.proto);
    ctx.out.map(7);
    ctx.out.bulk(b"server");
    ctx.out.bulk(b"redis");
    ctx.out.bulk(b"version");
    ctx.out.bulk(REDIS_VERSION.as_bytes());
    ctx.out.bulk(b"proto");
    ctx.out.int(if proto == Proto::Resp3 { 3 } else { 2 });
    ctx.out.bulk(b"id");
    ctx.out.int(id as i64);
    ctx.out.bulk(b"mode");
    ctx.out.bulk(if ctx.server.cluster.is_some() { b"cluster" } else { b"standalone" });
    ctx.out.bulk(b"role");
    ctx.out.bulk(b"master");
    ctx.out.bulk(b"modules");
    ctx.out.array(0);
    Ok(())
}

/// `SELECT index`
fn select(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let index = args.int(1)?;
    if i32::try_from(index).is_err() {
        return Err(CommandError::Text(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ));
    }
    if index != 0 && ctx.server.cluster.is_some() {
        return Err(CommandError::Text("ERR SELECT is not allowed in cluster mode"));
    }
    let db = u8::try_from(index).ok().filter(|&db| db < ctx.server.config().databases);
    let db = db.ok_or(CommandError::Text("ERR DB index is out of range"))?;
    let session = ctx.session();
    session.db = db;
    session.client.db.store(db, Ordering::Relaxed);
    ctx.ks.select(db);
    ctx.out.ok();
    Ok(())
}

/// `QUIT`
fn quit(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.session().is_closing = true;
    ctx.out.ok();
    Ok(())
}

/// `RESET`: as if the connection were new.
fn reset(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let server = ctx.server;
    let is_authenticated = server.config().requirepass.is_empty();
    // RESET is never queued, so nobody relies on the slots that are let go here.
    if let Some(watch) = farewell::take_watch(ctx.session()) {
        farewell::unwatch(&mut ctx.ks, &watch);
    }
    leave_resp3(ctx);
    let session = ctx.session();
    farewell::clear(server, session);
    session.db = 0;
    session.client.db.store(0, Ordering::Relaxed);
    session.speak(Proto::Resp2);
    session.is_authenticated = is_authenticated;
    session.is_readonly = false;
    session.is_asking = false;
    session.is_no_touch = false;
    session.reply = ReplyMode::On;
    let transient =
        crate::client::flag::NO_EVICT | crate::client::flag::NO_TOUCH | crate::client::flag::READONLY;
    session.client.set_flag(transient, false);
    session.client.names().name.clear();
    ctx.ks.select(0);
    ctx.out.proto = Proto::Resp2;
    ctx.out.simple("RESET");
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    no_keys("auth", auth),
    no_keys("echo", echo),
    no_keys("hello", hello),
    no_keys("ping", ping),
    no_keys("quit", quit),
    no_keys("reset", reset),
    no_keys("select", select),
];

#[cfg(test)]
mod tests;
