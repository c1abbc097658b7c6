//! `DEBUG`: what test suites use, and refusals for the rest.

mod digest;
mod protocol;

use super::acl::random_hex;
use super::config::{allows, help};
use super::dump;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, walk};
use crate::persistence::keeper::Errand;
use crate::persistence::loading::{ReloadFrom, ReloadOptions};
use digest::Digest;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;
use towline_cluster::key_slot;
use towline_rdb::Limits;
use towline_store::glob::{Case, matches};
use towline_store::keyspace::Expiry;
use towline_store::limits::EncodingLimits;
use towline_store::number::{parse_f64_lax, parse_i64};
use towline_store::store::DB_COUNT;
use towline_store::value::ValueRef;

const NOT_ALLOWED: CommandError = CommandError::Text(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local \
     connection, otherwise you need to set this option in the configuration file, and then restart the server.",
);
const NO_CRASH: CommandError = CommandError::Text(
    "ERR this DEBUG subcommand is not supported: the server does not crash or restart on request",
);

/// `DEBUG subcommand …`. Holds no slot at first, so that `SLEEP` stops this worker's thread alone.
fn debug(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let access = ctx.server.config().enable_debug_command;
    let word = args.get(1).to_ascii_uppercase();
    // Tools that move slots compare values by it when both nodes have a key, and give up if they may not. It changes nothing and
    // tells less than DUMP.
    let is_for_tools = word == b"DIGEST-VALUE" && ctx.server.cluster.is_some();
    if !is_for_tools && !allows(access, ctx) {
        return Err(NOT_ALLOWED);
    }
    if needs_data(&word) {
        // The command is allowed while files are loaded, for the sake of those that need none.
        ctx.server.persistence.gate.check_loaded()?;
    }
    match (word.as_slice(), args.len()) {
        (b"HELP", 2) => help_lines(ctx),
        (b"SLEEP", 3) => sleep(ctx, args),
        (b"OBJECT", 3) => object(ctx, args),
        (b"DIGEST", 2) => digest_all(ctx),
        (b"DIGEST-VALUE", 2..) => digest_values(ctx, args),
        (b"LISTPACK", 3) => listpack(ctx, args),
        (b"POPULATE", 3..=5) => populate(ctx, args),
        (b"SET-ACTIVE-EXPIRE", 3) => {
            ctx.server.active_expire.store(args.get(2) != b"0", Ordering::Relaxed);
            ok(ctx)
        }
        (b"STRINGMATCH-LEN", 4) => match_long(ctx, args),
        (b"HTSTATS", 3..=4) => table_stats(ctx, args),
        (b"HTSTATS-KEY", 3..=4) => table_stats_of_key(ctx, args),
        (b"CHANGE-REPL-ID", 2) => {
            ctx.server.set_replication_id(random_hex(40)?);
            ok(ctx)
        }
        (b"ERROR", 3) => Err(CommandError::quoting("", args.get(2), "")),
        (b"LOG", 3) => {
            tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(args.get(2)));
            ok(ctx)
        }
        (b"PROTOCOL", 3) => protocol::write(ctx.out, args.get(2)),
        // What these change in Redis does not exist here; nothing depends on them being refused.
        (
            b"QUICKLIST-PACKED-THRESHOLD" | b"DICT-RESIZING" | b"PAUSE-CRON" | b"SET-DISABLE-DENY-SCRIPTS",
            3,
        )
        | (b"REPLYBUFFER", 4) => ok(ctx),
        (b"RELOAD", _) => reload(ctx, args),
        (b"LOADAOF", 2) => ask_reload(ctx, ReloadFrom::Log, args),
        (b"SEGFAULT" | b"PANIC" | b"ASSERT" | b"OOM" | b"RESTART" | b"CRASH-AND-RECOVER" | b"LEAK", _) => {
            Err(NO_CRASH)
        }
        (b"JMAP", _) => Err(CommandError::Text("ERR DEBUG JMAP is not supported: there is no such heap")),
        _ => Err(CommandError::quoting(
            "ERR unknown subcommand or wrong number of arguments for '",
            args.get(1),
            "'. Try DEBUG HELP.",
        )),
    }
}

/// Whether the subcommand looks at keys or changes them.
fn needs_data(word: &[u8]) -> bool {
    const WITH_DATA: [&[u8]; 10] = [
        b"OBJECT",
        b"DIGEST",
        b"DIGEST-VALUE",
        b"LISTPACK",
        b"POPULATE",
        b"HTSTATS",
        b"HTSTATS-KEY",
        b"RELOAD",
        b"LOADAOF",
        b"CHANGE-REPL-ID",
    ];
    WITH_DATA.contains(&word)
}

/// `DEBUG RELOAD [NOSAVE] [NOFLUSH] [MERGE]`
fn reload(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    const USAGE: CommandError =
        CommandError::Text("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
    for index in 2..args.len() {
        if !["MERGE", "NOFLUSH", "NOSAVE"].iter().any(|word| args.is(index, word)) {
            return Err(USAGE);
        }
    }
    ask_reload(ctx, ReloadFrom::Snapshot, args)
}

/// The client waits until the data set is loaded again; the commands of all others are held back meanwhile.
fn ask_reload(ctx: &mut Ctx<'_>, from: ReloadFrom, args: Args<'_>) -> CommandResult {
    if ctx.session().is_in_exec {
        return Err(CommandError::Text("ERR The data set cannot be loaded again inside MULTI"));
    }
    let has = |word: &str| (2..args.len()).any(|index| args.is(index, word));
    let merges = has("MERGE");
    let saves = from == ReloadFrom::Snapshot && !has("NOSAVE");
    let options = ReloadOptions { from, saves, flushes: !has("NOFLUSH"), merges };
    ctx.wait_for(Errand::Reload(options));
    Ok(())
}

fn ok(ctx: &mut Ctx<'_>) -> CommandResult {
    ctx.out.ok();
    Ok(())
}

/// The number that a text begins with, as C's `strtod` finds it; 0 if there is none.
fn leading_number(text: &[u8]) -> f64 {
    /// Of longer texts, the rest changes nothing.
    const NUMBER_BYTES_MAX: usize = 64;
    let longest_first = (1..=text.len().min(NUMBER_BYTES_MAX)).rev();
    longest_first.filter_map(|len| parse_f64_lax(&text[..len])).next().unwrap_or(0.0)
}

/// The time that `DEBUG SLEEP` takes. In C, what exceeds 64 bits of microseconds becomes a negative number, and the call that
/// is to sleep refuses it.
fn sleep_time(text: &[u8]) -> Duration {
    /// Nobody waits longer for a test.
    const SECONDS_MAX: f64 = 3600.0;
    let seconds = leading_number(text);
    let fits = seconds > 0.0 && seconds * 1e6 < i64::MAX as f64;
    Duration::from_secs_f64(if fits { seconds.min(SECONDS_MAX) } else { 0.0 })
}

/// `DEBUG SLEEP seconds`
fn sleep(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    std::thread::sleep(sleep_time(args.get(2)));
    ok(ctx)
}

/// `DEBUG OBJECT key`
fn object(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, now_ms, settings) = (args.get(2), ctx.ks.now_ms(), ctx.ks.settings());
    ctx.ks.hold_only(key_slot(key));
    let entry = ctx.ks.entry(key).ok_or(CommandError::NoSuchKey)?;
    let idle_s = if settings.is_lfu() { 0 } else { settings.idle_s(entry.access(), now_ms) };
    // A dump ends in two bytes of version and eight of checksum, and begins with one for the kind.
    let serialized = dump::encode(entry.value_ref()).len().saturating_sub(11);
    let mut text = format!(
        "Value at:0x0 refcount:1 encoding:{} serializedlength:{serialized} lru:{} lru_seconds_idle:{idle_s}",
        entry.encoding(),
        entry.access()
    );
    if let ValueRef::List(list) = entry.value_ref()
        && entry.encoding() == "quicklist"
    {
        let (nodes, bytes) =
            list.nodes().fold((0, 0), |(count, bytes), node| (count + 1, bytes + node.listpack_bytes()));
        let average = list.len() as f64 / f64::max(nodes as f64, 1.0);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            " ql_nodes:{nodes} ql_avg_node:{average:.2} ql_listpack_max:{} ql_compressed:0 ql_uncompressed_size:{bytes}",
            settings.limits.list_max_listpack_size
        );
    }
    ctx.out.simple(&text);
    Ok(())
}

/// `DEBUG DIGEST`: equal for equal data sets, whatever their order in memory.
fn digest_all(ctx: &mut Ctx<'_>) -> CommandResult {
    ctx.ks.hold_every();
    let (store, selected, now_ms) = (ctx.ks.store(), ctx.ks.db(), ctx.ks.now_ms());
    let mut sum = Digest::default();
    for db in 0..DB_COUNT {
        ctx.ks.select(db);
        let mut from = 0;
        while let Some(slot) = store.next_occupied(db, from) {
            ctx.ks.for_each_in_slot(slot, |entry| {
                if entry.expires_at_ms().is_none_or(|at| at > now_ms) {
                    sum.add(Digest::of_key(db, entry, now_ms));
                }
            });
            from = usize::from(slot) + 1;
        }
    }
    ctx.ks.select(selected);
    ctx.out.simple(&sum.hex());
    Ok(())
}

/// `DEBUG DIGEST-VALUE [key …]`: of the values alone; zeros for a key that is not there.
fn digest_values(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (keys, now_ms) = (args.from(2), ctx.ks.now_ms());
    ctx.ks.hold_slots(keys.iter().map(key_slot));
    ctx.out.array(keys.len());
    for key in keys.iter() {
        let digest =
            ctx.ks.entry(key).map(|entry| Digest::of_value(entry.value_ref(), now_ms)).unwrap_or_default();
        ctx.out.simple(&digest.hex());
    }
    Ok(())
}

/// The digest of the value in a payload, as `DEBUG DIGEST-VALUE` tells it of a key; `None` if there is none to be read in it.
pub(crate) fn digest_of_payload(payload: &[u8], now_ms: u64) -> Option<String> {
    let value = dump::decode(payload, Limits::default(), &EncodingLimits::default()).ok()?;
    Some(Digest::of_value(value.as_ref(), now_ms).hex())
}

fn listpack(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(2);
    ctx.ks.hold_only(key_slot(key));
    let entry = ctx.ks.entry(key).ok_or(CommandError::NoSuchKey)?;
    if !entry.encoding().starts_with("listpack") {
        return Err(CommandError::Text("ERR Not a listpack encoded object."));
    }
    let text = format!(
        "{} with {} elements in {} bytes",
        entry.encoding(),
        entry.value_ref().elements(),
        entry.mem_bytes()
    );
    ctx.out.simple(&text);
    Ok(())
}

/// `DEBUG POPULATE count [prefix] [size]`: keys `prefix:N` with values `value:N`, cut or filled up with zero bytes to
/// `size`; keys that are there stay.
fn populate(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    const OUT_OF_RANGE: CommandError = CommandError::Text("ERR value is out of range, must be positive");
    let positive = |index: usize| match args.at(index) {
        None => Ok(None),
        Some(text) => {
            let number = parse_i64(text).ok_or(CommandError::NotInteger)?;
            usize::try_from(number).map(Some).map_err(|_| OUT_OF_RANGE)
        }
    };
    let count = positive(2)?.unwrap_or(0);
    let size = positive(4)?;
    if size.is_some_and(|size| size as u64 > ctx.server.config().proto_max_bulk_len) {
        return Err(CommandError::Text("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
    }
    let prefix = args.at(3).unwrap_or(b"key");
    for number in 0..count {
        let mut key = prefix.to_vec();
        key.extend_from_slice(format!(":{number}").as_bytes());
        ctx.ks.hold_only(key_slot(&key));
        if ctx.ks.exists(&key) {
            continue;
        }
        let mut value = format!("value:{number}").into_bytes();
        if let Some(size) = size.filter(|size| *size > 0) {
            value.resize(size, 0);
        }
        ctx.ks.set_string(&key, &value, Expiry::Clear);
        ctx.ks.modified(&key);
    }
    ok(ctx)
}

/// `DEBUG STRINGMATCH-LEN length pattern`: whether the pattern matches that many `a`.
fn match_long(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    /// Longer texts show nothing more.
    const LENGTH_MAX: i64 = 1 << 24;
    let length = args.int(2)?.clamp(0, LENGTH_MAX) as usize;
    let is_match = matches(args.get(3), &vec![b'a'; length], Case::Sensitive);
    ctx.out.int(is_match.into());
    Ok(())
}

fn table_stats(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let db = u8::try_from(args.int(2)?).ok().filter(|db| *db < DB_COUNT);
    let db = db.ok_or(CommandError::Text("ERR Out of range database"))?;
    let (store, selected) = (ctx.ks.store(), ctx.ks.db());
    ctx.ks.select(db);
    let (mut slots, mut bytes, mut from) = (0u32, 0, 0);
    while let Some(slot) = store.next_occupied(db, from) {
        ctx.ks.hold_only(slot);
        (slots, bytes) = (slots + 1, bytes + ctx.ks.table_bytes(slot));
        from = usize::from(slot) + 1;
    }
    ctx.ks.select(selected);
    let text = format!(
        "[Dictionary HT]\n number of elements: {}\n slots with elements: {slots}\n table bytes: {bytes}\n[Expires HT]\n \
         number of elements: {}\n",
        store.len(db),
        store.expires(db)
    );
    ctx.out.verbatim(b"txt", &text);
    Ok(())
}

fn table_stats_of_key(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(2);
    ctx.ks.hold_only(key_slot(key));
    let entry = ctx.ks.entry(key).ok_or(CommandError::NoSuchKey)?;
    if !matches!(entry.encoding(), "hashtable" | "skiplist") {
        let text = "ERR The value stored at the specified key is not represented using an hash table";
        return Err(CommandError::Text(text));
    }
    let (elements, bytes) = (entry.value_ref().elements(), entry.mem_bytes());
    ctx.out.verbatim(
        b"txt",
        &format!("[{}]\n number of elements: {elements}\n bytes: {bytes}\n", entry.encoding()),
    );
    Ok(())
}

fn help_lines(ctx: &mut Ctx<'_>) -> CommandResult {
    help(
        ctx,
        "DEBUG",
        &[
            "CHANGE-REPL-ID",
            "    Begin another replication history.",
            "DIGEST",
            "    Show a digest of all keys and values; equal data sets have equal digests.",
            "DIGEST-VALUE <key> [<key> ...]",
            "    Show digests of the keys' values.",
            "ERROR <text>",
            "    Answer with an error of this text.",
            "HTSTATS <database>",
            "    Show the sizes of a database's tables.",
            "HTSTATS-KEY <key>",
            "    Show the size of a value's table.",
            "LISTPACK <key>",
            "    Show the size of a value that is one packed sequence.",
            "LOADAOF",
            "    Load the log again.",
            "LOG <text>",
            "    Write a text to the log.",
            "OBJECT <key>",
            "    Show how a value is stored.",
            "POPULATE <count> [<prefix>] [<size>]",
            "    Make string keys.",
            "PROTOCOL <type>",
            "    Answer with a sample of a protocol type: string, integer, double, bignum, null, array, set,",
            "    map, attrib, push, verbatim, true, false.",
            "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
            "    Save a snapshot and load it again; MERGE replaces keys that are there, NOFLUSH does not empty the",
            "    databases before, NOSAVE loads the snapshot that is there.",
            "SET-ACTIVE-EXPIRE <0|1>",
            "    Turn the removal of expired keys that nobody reads off or on.",
            "SLEEP <seconds>",
            "    Stop the thread that serves this connection.",
            "STRINGMATCH-LEN <length> <pattern>",
            "    Match a pattern against so many times the letter a.",
        ],
    )
}

pub(super) const ROWS: &[Row] = &[walk("debug", debug)];

#[cfg(test)]
mod tests;
