//! Commands on a database as a whole.
//!
//! Owns: walks over the keys (`SCAN`, `KEYS`, `RANDOMKEY`), emptying and swapping databases. Does **not** own the order of
//! a walk (see `Keyspace::scan`). `KEYS` and `SCAN` hold one slot at a time, so that nobody waits for a whole walk: what
//! they answer about a key was true at some instant during the command.

use super::collections::cursor_arg;
use super::keys::in_range;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, all, walk};
use towline_cluster::Slot;
use towline_resp::writer::Writer;
use towline_store::entry::Entry;
use towline_store::glob::{self, Case};

/// Keys that `SCAN` looks at unless told otherwise.
const COUNT_DEFAULT: usize = 10;

#[derive(Debug)]
struct Filter<'a> {
    count: usize,
    pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let mut filter = Self { count: COUNT_DEFAULT, pattern: None, kind: None };
        let mut index = 2;
        while index < args.len() {
            let value = args.at(index + 1).ok_or(CommandError::Syntax)?;
            if args.is(index, "COUNT") {
                let count = args.int(index + 1)?;
                filter.count =
                    usize::try_from(count).ok().filter(|&count| count > 0).ok_or(CommandError::Syntax)?;
            } else if args.is(index, "MATCH") {
                filter.pattern = Some(value).filter(|pattern| !glob::is_match_all(pattern));
            } else if args.is(index, "TYPE") {
                filter.kind = Some(value);
            } else {
                return Err(CommandError::Syntax);
            }
            index += 2;
        }
        Ok(filter)
    }

    fn admits(&self, entry: &Entry) -> bool {
        self.kind.is_none_or(|kind| kind.eq_ignore_ascii_case(entry.kind().name().as_bytes()))
            && self.pattern.is_none_or(|pattern| glob::matches(pattern, entry.key(), Case::Sensitive))
    }
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
fn scan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let cursor = cursor_arg(args, 1)?;
    let filter = Filter::parse(args)?;
    let mut found = Keys::new(ctx);
    let next = ctx.ks.scan(cursor, filter.count, &mut |entry| {
        if filter.admits(entry) {
            found.push(entry.key());
        }
    });
    ctx.out.array(2);
    ctx.out.bulk_display(next);
    found.reply(ctx);
    Ok(())
}

/// Keys on their way into a reply, in which their number comes first.
struct Keys {
    bulks: Writer,
    count: usize,
}

impl Keys {
    fn new(ctx: &Ctx<'_>) -> Self {
        Self { bulks: Writer::new(ctx.out.proto), count: 0 }
    }

    fn push(&mut self, key: &[u8]) {
        self.bulks.bulk(key);
        self.count += 1;
    }

    fn reply(self, ctx: &mut Ctx<'_>) {
        ctx.out.array(self.count);
        ctx.out.raw(self.bulks.buf());
    }
}

/// `KEYS pattern`
fn keys(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let pattern = Some(args.get(1)).filter(|pattern| !glob::is_match_all(pattern));
    let (db, now_ms, mut from) = (ctx.ks.db(), ctx.ks.now_ms(), 0);
    let mut found = Keys::new(ctx);
    while let Some(slot) = ctx.ks.store().next_occupied(db, from) {
        let slot: Slot = slot;
        from = usize::from(slot) + 1;
        ctx.ks.hold_only(slot);
        ctx.ks.for_each_in_slot(slot, |entry| {
            let is_alive = entry.expires_at_ms().is_none_or(|at| at > now_ms);
            if is_alive && pattern.is_none_or(|pattern| glob::matches(pattern, entry.key(), Case::Sensitive))
            {
                found.push(entry.key());
            }
        });
    }
    found.reply(ctx);
    Ok(())
}

/// `RANDOMKEY`
fn randomkey(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    match ctx.ks.random_key() {
        Some(key) => ctx.out.bulk(&key),
        None => ctx.out.null(),
    }
    Ok(())
}

/// `DBSIZE`: as in Redis, expired keys count until they are removed.
fn dbsize(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let len = ctx.ks.store().len(ctx.ks.db());
    ctx.out.int(len as i64);
    Ok(())
}

/// `ASYNC` and `SYNC` differ in nothing: the old tables are freed off the path in both cases.
fn check_mode(args: Args<'_>) -> CommandResult {
    match args.len() {
        1 => Ok(()),
        2 if args.is(1, "ASYNC") || args.is(1, "SYNC") => Ok(()),
        _ => Err(CommandError::Syntax),
    }
}

fn flush(ctx: &mut Ctx<'_>) {
    let len = ctx.ks.store().len(ctx.ks.db());
    ctx.ks.changes().dirty += len as u64;
    ctx.ks.flush();
}

/// `FLUSHDB [ASYNC | SYNC]`
fn flushdb(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    check_mode(args)?;
    flush(ctx);
    ctx.out.ok();
    Ok(())
}

/// `FLUSHALL [ASYNC | SYNC]`
fn flushall(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    check_mode(args)?;
    let selected = ctx.ks.db();
    for db in 0..ctx.server.config().databases {
        ctx.ks.select(db);
        flush(ctx);
    }
    ctx.ks.select(selected);
    ctx.ks.dirty();
    ctx.out.ok();
    Ok(())
}

/// `SWAPDB index1 index2`
fn swapdb(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if ctx.server.cluster.is_some() {
        return Err(CommandError::Text("ERR SWAPDB is not allowed in cluster mode"));
    }
    let first = args.int(1).map_err(|_| CommandError::Text("ERR invalid first DB index"))?;
    let second = args.int(2).map_err(|_| CommandError::Text("ERR invalid second DB index"))?;
    let (Some(first), Some(second)) = (in_range(ctx, first), in_range(ctx, second)) else {
        return Err(CommandError::Text("ERR DB index is out of range"));
    };
    ctx.ks.swap(first, second);
    ctx.ks.dirty();
    ctx.out.ok();
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    walk("dbsize", dbsize),
    all("flushall", flushall),
    all("flushdb", flushdb),
    walk("keys", keys),
    walk("randomkey", randomkey),
    walk("scan", scan),
    all("swapdb", swapdb),
];

#[cfg(test)]
mod tests {
    use crate::testing::Server;
    use std::collections::BTreeSet;

    fn filled(count: usize) -> Server {
        let mut server = Server::new();
        for number in 0..count {
            server.line(&format!("SET key:{number} v"));
        }
        server
    }

    /// All keys of a scan with these options.
    fn scan(server: &mut Server, options: &str) -> BTreeSet<String> {
        let (mut found, mut cursor) = (BTreeSet::new(), "0".to_owned());
        loop {
            let reply = server.line(&format!("SCAN {cursor} {options}"));
            let words: Vec<&str> = reply.split(' ').collect();
            cursor = words[2].to_owned();
            found.extend(words[4..].iter().skip(1).step_by(2).map(|key| (*key).to_owned()));
            if cursor == "0" {
                return found;
            }
        }
    }

    #[test]
    fn a_scan_visits_every_key() {
        let mut server = filled(1000);
        assert_eq!(scan(&mut server, "").len(), 1000);
        assert_eq!(scan(&mut server, "COUNT 100").len(), 1000);
        assert_eq!(scan(&mut server, "COUNT 9223372036854775807").len(), 1000);
        assert_eq!(scan(&mut server, "MATCH key:1* count 7").len(), 111);
        assert_eq!(scan(&mut server, "MATCH nothing").len(), 0);
        server.line("RPUSH l 1");
        assert_eq!(scan(&mut server, "TYPE LIST").into_iter().collect::<Vec<_>>(), ["l"]);
        assert_eq!(scan(&mut server, "TYPE stream").len(), 0);
    }

    #[test]
    fn expired_keys_are_left_out() {
        let mut server = filled(3);
        server.line("SET gone v PX 1");
        server.advance(1);
        assert_eq!(scan(&mut server, "").len(), 3);
        assert!(server.line("KEYS *").starts_with("*3 "));
    }

    #[test]
    fn scan_refuses_what_does_not_fit() {
        let mut server = Server::new();
        for cursor in ["x", "-1", "++1", "+", "99999999999999999999"] {
            assert_eq!(server.line(&format!("SCAN {cursor}")), "-ERR invalid cursor", "{cursor}");
        }
        for options in ["COUNT 0", "COUNT -1", "MATCH", "FOO x", "COUNT"] {
            assert_eq!(server.line(&format!("SCAN 0 {options}")), "-ERR syntax error", "{options}");
        }
        assert_eq!(server.line("SCAN 0 COUNT x"), "-ERR value is not an integer or out of range");
        assert_eq!(server.line("SCAN 0"), "*2 $1 0 *0");
        assert_eq!(server.line("SCAN 18446744073709551615"), "*2 $1 0 *0");
        assert_eq!(server.line("SCAN +18446744073709551615"), "*2 $1 0 *0");
    }

    #[test]
    fn keys_by_pattern() {
        let mut server = filled(12);
        assert!(server.line("KEYS *").starts_with("*12 "));
        assert!(server.line("KEYS key:1*").starts_with("*3 "));
        assert_eq!(server.line("KEYS key:[5]"), "*1 $5 key:5");
        assert_eq!(server.line("KEYS none"), "*0");
    }

    #[test]
    fn random_keys() {
        let mut server = Server::new();
        assert_eq!(server.line("RANDOMKEY"), "$-1");
        server.line("SET k v");
        assert_eq!(server.line("RANDOMKEY"), "$1 k");
    }

    #[test]
    fn flushing() {
        let mut server = filled(5);
        server.session.db = 1;
        server.line("SET other v");
        let before = server.dirty();
        assert_eq!(server.line("FLUSHDB foo"), "-ERR syntax error");
        assert_eq!(server.line("FLUSHALL ASYNC SYNC"), "-ERR syntax error");
        assert_eq!(server.line("FLUSHDB async"), "+OK");
        assert_eq!(server.line("DBSIZE"), ":0");
        assert_eq!(server.dirty(), before + 1);
        server.session.db = 0;
        assert_eq!(server.line("DBSIZE"), ":5");
        assert_eq!(server.line("FLUSHALL SYNC"), "+OK");
        assert_eq!(server.line("DBSIZE"), ":0");
        server.line("SET k v");
        assert_eq!(server.line("DBSIZE"), ":1");
    }

    #[test]
    fn swapping() {
        let mut server = filled(3);
        assert_eq!(server.line("SWAPDB 0 1"), "+OK");
        assert_eq!(server.line("DBSIZE"), ":0");
        server.session.db = 1;
        assert_eq!(server.line("GET key:1"), "$1 v");
        assert_eq!(server.line("SWAPDB 1 1"), "+OK");
        assert_eq!(server.line("DBSIZE"), ":3");
        assert_eq!(server.line("SWAPDB x 1"), "-ERR invalid first DB index");
        assert_eq!(server.line("SWAPDB 1 x"), "-ERR invalid second DB index");
        assert_eq!(server.line("SWAPDB 1 16"), "-ERR DB index is out of range");
    }
}
