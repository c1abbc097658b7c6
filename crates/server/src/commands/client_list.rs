//! `CLIENT LIST`, `INFO`, `KILL`; `MONITOR`.
//!
//! Owns: which clients are meant, and the line that describes one. Does **not** own closing: a client that is killed is
//! closed by its own connection.

use crate::client::{Client, flag};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::monitor;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use towline_spec::rows;
use towline_store::number::parse_i64;

/// Kinds of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    PubSub,
    Replica,
    Master,
}

impl Kind {
    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        const WORDS: [(&[u8], Kind); 5] = [
            (b"normal", Kind::Normal),
            (b"pubsub", Kind::PubSub),
            (b"replica", Kind::Replica),
            (b"slave", Kind::Replica),
            (b"master", Kind::Master),
        ];
        let found = WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        let unknown = || CommandError::quoting("ERR Unknown client type '", word, "'");
        found.map(|&(_, kind)| kind).ok_or_else(unknown)
    }

    fn of(client: &Client) -> Self {
        match () {
            () if client.has_flag(flag::REPLICA) => Self::Replica,
            () if client.has_flag(flag::PUBSUB) => Self::PubSub,
            () => Self::Normal,
        }
    }
}

/// Which clients are meant: those for which all of it holds.
#[derive(Debug, Default)]
struct Filter<'a> {
    ids: Vec<u64>,
    kind: Option<Kind>,
    peer: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    /// Seconds.
    age_min_s: Option<u64>,
    skips_me: bool,
}

const WRONG_ID: CommandError = CommandError::Text("ERR client-id should be greater than 0");

impl<'a> Filter<'a> {
    /// Reads filters from argument `at` on.
    fn parse(
        args: Args<'a>,
        mut at: usize,
        skips_me: bool,
        wrong_id: &CommandError,
    ) -> Result<Self, CommandError> {
        let mut filter = Self { skips_me, ..Self::default() };
        let id =
            |at: usize| parse_i64(args.at(at)?).and_then(|id| u64::try_from(id).ok()).filter(|&id| id > 0);
        while at < args.len() {
            let value = args.at(at + 1).ok_or(CommandError::Syntax)?;
            if args.is(at, "id") {
                filter.ids.push(id(at + 1).ok_or_else(|| wrong_id.clone())?);
                while let Some(another) = id(at + 2) {
                    filter.ids.push(another);
                    at += 1;
                }
            } else if args.is(at, "type") {
                filter.kind = Some(Kind::parse(value)?);
            } else if args.is(at, "addr") {
                filter.peer = Some(value);
            } else if args.is(at, "laddr") {
                filter.local = Some(value);
            } else if args.is(at, "user") {
                if value != b"default" {
                    return Err(CommandError::quoting("ERR No such user '", value, "'"));
                }
            } else if args.is(at, "skipme") {
                filter.skips_me = match (args.is(at + 1, "yes"), args.is(at + 1, "no")) {
                    (true, _) => true,
                    (_, true) => false,
                    (false, false) => return Err(CommandError::Syntax),
                };
            } else if args.is(at, "maxage") {
                filter.age_min_s = Some(parse_age(value)?);
            } else {
                return Err(CommandError::Syntax);
            }
            at += 2;
        }
        filter.ids.sort_unstable();
        Ok(filter)
    }

    fn fits(&self, client: &Client, me: u64, now_ms: u64) -> bool {
        (self.ids.is_empty() || self.ids.binary_search(&client.id).is_ok())
            && self.kind.is_none_or(|kind| kind == Kind::of(client))
            && self.peer.is_none_or(|peer| peer == client.addresses.peer.as_bytes())
            && self.local.is_none_or(|local| local == client.addresses.local.as_bytes())
            && self.age_min_s.is_none_or(|age| now_ms.saturating_sub(client.created_ms) / 1000 >= age)
            && !(self.skips_me && client.id == me)
    }

    /// The clients that are meant, oldest first.
    fn select(&self, ctx: &mut Ctx<'_>) -> Vec<Arc<Client>> {
        let (me, now_ms) = (ctx.session().client.id, ctx.ks.now_ms());
        let mut clients = ctx.server.clients.all();
        clients.retain(|client| self.fits(client, me, now_ms));
        clients
    }
}

fn parse_age(value: &[u8]) -> Result<u64, CommandError> {
    let age = parse_i64(value).ok_or(CommandError::Text("ERR maxage is not an integer or out of range"))?;
    let age = u64::try_from(age).ok().filter(|&age| age > 0);
    age.ok_or(CommandError::Text("ERR maxage should be greater than 0"))
}

const LETTERS: [(u32, char); 11] = [
    (flag::REPLICA, 'S'),
    (flag::MONITOR, 'O'),
    (flag::PUBSUB, 'P'),
    (flag::MULTI, 'x'),
    (flag::BLOCKED, 'b'),
    (flag::TRACKING, 't'),
    (flag::TRACKING_BROKEN, 'R'),
    (flag::TRACKING_BROADCAST, 'B'),
    (flag::READONLY, 'r'),
    (flag::NO_EVICT, 'e'),
    (flag::NO_TOUCH, 'T'),
];

fn letters(client: &Client) -> String {
    let mut text: String =
        LETTERS.iter().filter(|(bit, _)| client.has_flag(*bit)).map(|&(_, letter)| letter).collect();
    if client.is_killed() {
        text.push('A');
    }
    if client.addresses.is_unix {
        text.push('U');
    }
    if text.is_empty() {
        text.push('N');
    }
    text
}

/// Appends the line that describes a client.
fn describe(text: &mut String, client: &Client, now_ms: u64) {
    let age = |since_ms: u64| now_ms.saturating_sub(since_ms) / 1000;
    let now = Ordering::Relaxed;
    let names = client.names().clone();
    let lossy = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let tracks = client.has_flag(flag::TRACKING);
    let redirect = if tracks { client.redirect.load(now) as i64 } else { -1 };
    let command = usize::from(client.last_command.load(now)).checked_sub(1);
    let command = command.map_or("NULL", |index| rows()[index].name);
    let (query, reply) = (client.query_bytes.load(now), client.reply_bytes.load(now) + client.outbox_bytes());
    // Writing into memory does not fail.
    let _ = write!(
        text,
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} watch={} \
         qbuf={query} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem={reply} tot-mem={} events={} \
         cmd={command} user=default redir={redirect} resp={} lib-name={} lib-ver={} tot-net-in={} tot-net-out={}",
        client.id,
        client.addresses.peer,
        client.addresses.local,
        client.addresses.fd,
        lossy(&names.name),
        age(client.created_ms),
        age(client.last_ms.load(now)),
        letters(client),
        client.db.load(now),
        client.channels.load(now),
        client.patterns.load(now),
        client.shard_channels.load(now),
        client.multi.load(now) as i32,
        client.watched.load(now),
        client.memory_bytes(),
        if reply > 0 { "rw" } else { "r" },
        if client.has_flag(flag::RESP3) { 3 } else { 2 },
        lossy(&names.lib_name),
        lossy(&names.lib_version),
        client.bytes_in.load(now),
        client.bytes_out.load(now),
    );
    text.push('\n');
}

/// `CLIENT LIST [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]`, and the filters of `KILL`
fn list(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let filter = Filter::parse(args, 2, false, &CommandError::Text("ERR Invalid client ID"))?;
    let now_ms = ctx.ks.now_ms();
    let mut text = String::new();
    for client in filter.select(ctx) {
        describe(&mut text, &client, now_ms);
    }
    ctx.out.verbatim(b"txt", &text);
    Ok(())
}

/// `CLIENT INFO`
fn info(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let now_ms = ctx.ks.now_ms();
    let mut text = String::new();
    describe(&mut text, &Arc::clone(&ctx.session().client), now_ms);
    ctx.out.verbatim(b"txt", &text);
    Ok(())
}

/// `CLIENT KILL`, with an address alone or with filters.
fn kill(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let is_old_form = args.len() == 3;
    let filter = if is_old_form {
        Filter { peer: Some(args.get(2)), ..Filter::default() }
    } else {
        Filter::parse(args, 2, true, &WRONG_ID)?
    };
    let clients = filter.select(ctx);
    for client in &clients {
        let session = ctx.session();
        if client.id == session.client.id {
            // It gets its reply first.
            session.is_closing = true;
        } else {
            client.kill();
        }
    }
    match (is_old_form, clients.len()) {
        (true, 0) => return Err(CommandError::Text("ERR No such client")),
        (true, _) => ctx.out.ok(),
        (false, count) => ctx.out.int(count as i64),
    }
    Ok(())
}

/// `MONITOR`
fn monitor(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let server = ctx.server;
    let session = ctx.session();
    if session.is_in_exec {
        return Err(CommandError::Text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    monitor::add(server, session);
    ctx.out.ok();
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    no_keys("client|info", info),
    no_keys("client|kill", kill),
    no_keys("client|list", list),
    no_keys("monitor", monitor),
];

#[cfg(test)]
mod tests;
