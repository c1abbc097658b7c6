//! Commands about keys of any kind.
//!
//! Owns: deleting, renaming, copying and moving keys, and questions about them. Does **not** own expiry (see
//! [`super::expiry`]), serialized values (see [`super::dump`]) or walks over the keyspace (see [`super::scan`]).

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys, no_keys};
use towline_store::keyspace::{Expiry, Keyspace};
use towline_store::notify::Class;

/// Whether the key exists: counted as a hit or miss, but not as an access.
pub(super) fn look(ks: &mut Keyspace<'_>, key: &[u8]) -> bool {
    let is_there = ks.exists(key);
    if is_there {
        ks.changes().hits += 1;
    } else {
        ks.changes().misses += 1;
        ks.notify(Class::Miss, "keymiss", key);
    }
    is_there
}

/// The database that argument `index` names.
///
/// # Errors
/// It is no integer, or there is no such database.
pub(super) fn database(ctx: &Ctx<'_>, args: Args<'_>, index: usize) -> Result<u8, CommandError> {
    let number = args.int(index)?;
    in_range(ctx, number).ok_or(CommandError::Text("ERR DB index is out of range"))
}

/// The database with this number.
pub(super) fn in_range(ctx: &Ctx<'_>, number: i64) -> Option<u8> {
    u8::try_from(number).ok().filter(|&db| db < ctx.server.config().databases)
}

/// `DEL key [key ...]` and `UNLINK key [key ...]`: large values are freed off the path in both cases.
fn del(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut count = 0;
    for key in args.from(1).iter() {
        if ctx.ks.delete(key) {
            ctx.ks.changed(key, Class::Generic, "del");
            count += 1;
        }
    }
    ctx.out.int(count);
    Ok(())
}

/// `EXISTS key [key ...]`: a key that is named twice counts twice.
fn exists(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let count = args.from(1).iter().filter(|key| look(&mut ctx.ks, key)).count();
    ctx.out.int(count as i64);
    Ok(())
}

/// `TOUCH key [key ...]`
fn touch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let count = args.from(1).iter().filter(|key| ctx.ks.touch(key)).count();
    ctx.out.int(count as i64);
    Ok(())
}

/// `TYPE key`
fn kind(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let kind = if look(&mut ctx.ks, key) { ctx.ks.kind(key) } else { None };
    ctx.out.simple(kind.map_or("none", |kind| kind.name()));
    Ok(())
}

/// `RENAME key newkey`
fn rename(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    move_name(ctx, args, true)?;
    ctx.out.ok();
    Ok(())
}

/// `RENAMENX key newkey`
fn renamenx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let is_done = move_name(ctx, args, false)?;
    ctx.out.int(is_done.into());
    Ok(())
}

/// Moves a value from one name to another; says whether it did.
fn move_name(ctx: &mut Ctx<'_>, args: Args<'_>, replaces: bool) -> Result<bool, CommandError> {
    let (from, to) = (args.get(1), args.get(2));
    if !ctx.ks.exists(from) {
        return Err(CommandError::NoSuchKey);
    }
    if from == to || (!replaces && ctx.ks.exists(to)) {
        return Ok(false);
    }
    let access = ctx.ks.entry(from).map(|entry| entry.access());
    let Some((value, expiry)) = ctx.ks.take(from) else { return Err(CommandError::NoSuchKey) };
    ctx.ks.set_value(to, value, expiry.map_or(Expiry::Clear, Expiry::At));
    if let Some(access) = access {
        ctx.ks.set_access(to, access);
    }
    ctx.ks.changed(from, Class::Generic, "rename_from");
    ctx.ks.changed(to, Class::Generic, "rename_to");
    Ok(true)
}

const SAME_OBJECT: CommandError = CommandError::Text("ERR source and destination objects are the same");

/// `COPY source destination [DB destination-db] [REPLACE]`
fn copy(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (args.get(1), args.get(2));
    let from_db = ctx.ks.db();
    let (mut to_db, mut replaces) = (from_db, false);
    let mut index = 3;
    while index < args.len() {
        if args.is(index, "REPLACE") {
            replaces = true;
            index += 1;
        } else if args.is(index, "DB") && index + 1 < args.len() {
            to_db = database(ctx, args, index + 1)?;
            index += 2;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if to_db != from_db && ctx.server.cluster.is_some() {
        return Err(CommandError::Text("ERR Copying to another database is not allowed in cluster mode"));
    }
    if from == to && from_db == to_db {
        return Err(SAME_OBJECT);
    }
    let is_there = ctx.ks.touch(from);
    ctx.ks.select(to_db);
    let is_done = is_there && (replaces || !ctx.ks.exists(to));
    ctx.ks.select(from_db);
    let copied = if is_done { ctx.ks.entry(from) } else { None };
    if let Some((value, expiry)) = copied.map(|entry| (entry.to_value(), entry.expires_at_ms())) {
        ctx.ks.select(to_db);
        ctx.ks.set_value(to, value, expiry.map_or(Expiry::Clear, Expiry::At));
        ctx.ks.changed(to, Class::Generic, "copy_to");
        ctx.ks.select(from_db);
    }
    ctx.out.int(is_done.into());
    Ok(())
}

/// `MOVE key db`
fn move_key(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if ctx.server.cluster.is_some() {
        return Err(CommandError::Text("ERR MOVE is not allowed in cluster mode"));
    }
    let key = args.get(1);
    let (from_db, to_db) = (ctx.ks.db(), database(ctx, args, 2)?);
    if from_db == to_db {
        return Err(SAME_OBJECT);
    }
    ctx.ks.select(to_db);
    let is_taken = ctx.ks.exists(key);
    ctx.ks.select(from_db);
    let taken = if is_taken { None } else { ctx.ks.take(key) };
    let is_done = taken.is_some();
    if let Some((value, expiry)) = taken {
        ctx.ks.changed(key, Class::Generic, "move_from");
        ctx.ks.select(to_db);
        ctx.ks.set_value(key, value, expiry.map_or(Expiry::Clear, Expiry::At));
        ctx.ks.changed(key, Class::Generic, "move_to");
        ctx.ks.select(from_db);
    }
    ctx.out.int(is_done.into());
    Ok(())
}

/// `OBJECT ENCODING key`
fn object_encoding(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    match ctx.ks.entry(args.get(2)) {
        Some(entry) => ctx.out.bulk(entry.encoding().as_bytes()),
        None => ctx.out.null(),
    }
    Ok(())
}

/// `OBJECT REFCOUNT key`: values belong to one key each.
fn object_refcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if ctx.ks.exists(args.get(2)) {
        ctx.out.int(1);
    } else {
        ctx.out.null();
    }
    Ok(())
}

/// `OBJECT IDLETIME key`
fn object_idletime(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (settings, now_ms) = (ctx.ks.settings(), ctx.ks.now_ms());
    match ctx.ks.entry(args.get(2)) {
        None => ctx.out.null(),
        Some(_) if settings.is_lfu() => {
            return Err(CommandError::Text(
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching \
                 between policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
        Some(entry) => ctx.out.int(settings.idle_s(entry.access(), now_ms) as i64),
    }
    Ok(())
}

/// `OBJECT FREQ key`
fn object_freq(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (settings, now_ms) = (ctx.ks.settings(), ctx.ks.now_ms());
    match ctx.ks.entry(args.get(2)) {
        None => ctx.out.null(),
        Some(_) if !settings.is_lfu() => {
            return Err(CommandError::Text(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
                 switching between policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
        Some(entry) => ctx.out.int(settings.lfu_counter(entry.access(), now_ms).into()),
    }
    Ok(())
}

/// `OBJECT HELP`
fn object_help(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    const LINES: [&str; 11] = [
        "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "ENCODING <key>",
        "    How the value is stored.",
        "FREQ <key>",
        "    The access frequency counter, under an LFU policy.",
        "IDLETIME <key>",
        "    Seconds since the last access, under any other policy.",
        "REFCOUNT <key>",
        "    References to the value.",
        "HELP",
        "    Print this help.",
    ];
    ctx.out.array(LINES.len());
    LINES.iter().for_each(|line| ctx.out.simple(line));
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("copy", copy),
    keys("del", del),
    keys("exists", exists),
    keys("move", move_key),
    keys("object|encoding", object_encoding),
    keys("object|freq", object_freq),
    no_keys("object|help", object_help),
    keys("object|idletime", object_idletime),
    keys("object|refcount", object_refcount),
    keys("rename", rename),
    keys("renamenx", renamenx),
    keys("touch", touch),
    keys("type", kind),
    keys("unlink", del),
];

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::testing::Server;
    use towline_store::evict::Policy;
    use towline_store::notify;

    const OUT_OF_RANGE: &str = "-ERR DB index is out of range";
    const SAME: &str = "-ERR source and destination objects are the same";

    #[test]
    fn deleting_and_counting() {
        let mut server = Server::new();
        server.line("MSET a 1 b 2 c 3");
        assert_eq!(server.line("EXISTS a a none"), ":2");
        assert_eq!(server.line("TOUCH a b none"), ":2");
        assert_eq!(server.line("DEL a a none"), ":1");
        assert_eq!(server.line("UNLINK b c"), ":2");
        assert_eq!(server.line("DBSIZE"), ":0");
        server.line("SET e 1 PX 5");
        server.advance(5);
        assert_eq!(server.line("DEL e"), ":0");
    }

    #[test]
    fn kinds() {
        let mut server = Server::new();
        server.line("SET s 1");
        server.line("RPUSH l 1");
        server.line("SADD m 1");
        server.line("HSET h f 1");
        for (key, kind) in [("s", "string"), ("l", "list"), ("m", "set"), ("h", "hash"), ("x", "none")] {
            assert_eq!(server.line(&format!("TYPE {key}")), format!("+{kind}"));
        }
    }

    #[test]
    fn renaming_takes_the_expiry_along() {
        let mut server = Server::new();
        server.line("SET a 1 PX 100");
        server.line("SET b 2 PX 900");
        assert_eq!(server.line("RENAMENX a b"), ":0");
        assert_eq!(server.line("RENAME a b"), "+OK");
        assert_eq!(server.line("PTTL b"), ":100");
        assert_eq!(server.line("GET b"), "$1 1");
        assert_eq!(server.line("RENAMENX b c"), ":1");
        assert_eq!(server.line("RENAME c c"), "+OK");
        assert_eq!(server.line("RENAMENX c c"), ":0");
        assert_eq!(server.line("RENAME none c"), "-ERR no such key");
        assert_eq!(server.line("RENAMENX none none"), "-ERR no such key");
        server.line("SET d 1");
        server.line("RENAME d c");
        assert_eq!(server.line("PTTL c"), ":-1");
    }

    #[test]
    fn copies_are_independent() {
        let mut server = Server::new();
        server.line("RPUSH a 1 2");
        server.line("PEXPIRE a 100");
        assert_eq!(server.line("COPY a b"), ":1");
        server.line("RPUSH a 3");
        assert_eq!(server.line("LRANGE b 0 -1"), "*2 $1 1 $1 2");
        assert_eq!(server.line("PTTL b"), ":100");
        assert_eq!(server.line("COPY a b"), ":0");
        assert_eq!(server.line("COPY a b replace"), ":1");
        assert_eq!(server.line("LLEN b"), ":3");
        assert_eq!(server.line("COPY none b REPLACE"), ":0");
        assert_eq!(server.line("COPY a a"), SAME);
        assert_eq!(server.line("COPY a a DB 0 REPLACE"), SAME);
        assert_eq!(server.line("COPY a a DB 1"), ":1");
        assert_eq!(server.line("COPY a b DB 16"), OUT_OF_RANGE);
        assert_eq!(server.line("COPY a b DB x"), "-ERR value is not an integer or out of range");
        assert_eq!(server.line("COPY a b DB"), "-ERR syntax error");
        server.session.db = 1;
        assert_eq!(server.line("LLEN a"), ":3");
        assert_eq!(server.line("PTTL a"), ":100");
    }

    #[test]
    fn a_large_string_is_copied_on_write() {
        let mut server = Server::new();
        server.run(&["SET", "a", &"x".repeat(50_000)]);
        assert_eq!(server.line("COPY a b"), ":1");
        server.line("APPEND a y");
        assert_eq!(server.line("STRLEN a"), ":50001");
        assert_eq!(server.line("STRLEN b"), ":50000");
    }

    #[test]
    fn moving_to_another_database() {
        let mut server = Server::new();
        server.line("SET k v PX 70");
        assert_eq!(server.line("MOVE k 0"), SAME);
        assert_eq!(server.line("MOVE k 16"), OUT_OF_RANGE);
        assert_eq!(server.line("MOVE k -1"), OUT_OF_RANGE);
        assert_eq!(server.line("MOVE k x"), "-ERR value is not an integer or out of range");
        assert_eq!(server.line("MOVE none 1"), ":0");
        assert_eq!(server.line("MOVE k 1"), ":1");
        assert_eq!(server.line("EXISTS k"), ":0");
        server.line("SET k w");
        assert_eq!(server.line("MOVE k 1"), ":0");
        server.session.db = 1;
        assert_eq!(server.line("GET k"), "$1 v");
        assert_eq!(server.line("PTTL k"), ":70");
    }

    #[test]
    fn objects() {
        let mut server = Server::new();
        server.line("SET k text");
        assert_eq!(server.line("OBJECT ENCODING k"), "$6 embstr");
        assert_eq!(server.line("OBJECT REFCOUNT k"), ":1");
        server.advance(3000);
        assert_eq!(server.line("OBJECT IDLETIME k"), ":3");
        server.line("TOUCH k");
        assert_eq!(server.line("OBJECT IDLETIME k"), ":0");
        server.advance(2000);
        server.line("RENAME k n");
        assert_eq!(server.line("OBJECT IDLETIME n"), ":2");
        assert!(server.line("OBJECT FREQ n").starts_with("-ERR An LFU maxmemory policy is not selected"));
        for question in ["ENCODING", "REFCOUNT", "IDLETIME", "FREQ"] {
            assert_eq!(server.line(&format!("OBJECT {question} none")), "$-1");
        }
        assert!(server.line("OBJECT HELP").starts_with("*11 +OBJECT <subcommand>"));
        let mut server =
            Server::with(Config { workers: 1, maxmemory_policy: Policy::AllKeysLfu, ..Config::default() });
        server.line("SET k text");
        assert_eq!(server.line("OBJECT FREQ k"), ":5");
        assert!(server.line("OBJECT IDLETIME k").starts_with("-ERR An LFU maxmemory policy is selected"));
    }

    #[test]
    fn hits_and_misses_are_counted() {
        let notify_keyspace_events = notify::parse(b"KEA").expect("the letters are known");
        let mut server = Server::with(Config { workers: 1, notify_keyspace_events, ..Config::default() });
        server.line("SET k v");
        for line in ["EXISTS k none", "TTL k", "PTTL none", "TYPE k", "TOUCH none", "GET k"] {
            server.line(line);
        }
        assert_eq!(server.hits_and_misses(), (4, 3));
    }
}
