//! `MEMORY`: where memory goes.

use super::config::help;
use super::info::{Usage, ratio, usage};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys, no_keys, walk};
use crate::memory;
use std::fmt::Write as _;
use towline_resp::writer::Writer;
use towline_store::number::parse_i64;
use towline_store::store::DB_COUNT;

/// `MEMORY USAGE key [SAMPLES count]`: the exact number of bytes, so that no samples are needed.
fn usage_of_key(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut index = 3;
    while index < args.len() {
        if !args.is(index, "SAMPLES") {
            return Err(CommandError::Syntax);
        }
        let count = args.at(index + 1).ok_or(CommandError::Syntax)?;
        if parse_i64(count).ok_or(CommandError::NotInteger)? < 0 {
            return Err(CommandError::Syntax);
        }
        index += 2;
    }
    match ctx.ks.entry(args.get(2)).map(|entry| entry.mem_bytes()) {
        Some(bytes) => ctx.out.int(bytes as i64),
        None => ctx.out.null(),
    }
    Ok(())
}

/// Bytes of the tables of each database that is not empty.
fn table_bytes(ctx: &mut Ctx<'_>) -> Vec<(u8, usize)> {
    let (store, selected) = (ctx.ks.store(), ctx.ks.db());
    let mut all = Vec::new();
    for db in (0..DB_COUNT).filter(|&db| !store.is_empty(db)) {
        ctx.ks.select(db);
        let (mut bytes, mut from) = (0, 0);
        while let Some(slot) = store.next_occupied(db, from) {
            ctx.ks.hold_only(slot);
            bytes += ctx.ks.table_bytes(slot);
            from = usize::from(slot) + 1;
        }
        all.push((db, bytes));
    }
    ctx.ks.select(selected);
    all
}

enum Field {
    Bytes(u64),
    Signed(i64),
    Ratio(f64),
}

fn fields(usage: &Usage, keys: u64, tables: u64) -> [(&'static str, Field); 29] {
    use Field::{Bytes, Ratio, Signed};
    let allocator = usage.allocator;
    let overhead = usage.overhead + tables;
    let dataset = usage.used.saturating_sub(overhead);
    [
        ("peak.allocated", Bytes(usage.peak)),
        ("total.allocated", Bytes(usage.used)),
        ("startup.allocated", Bytes(usage.startup)),
        ("replication.backlog", Bytes(0)),
        ("clients.slaves", Bytes(0)),
        ("clients.normal", Bytes(usage.clients)),
        ("cluster.links", Bytes(0)),
        ("aof.buffer", Bytes(0)),
        ("lua.caches", Bytes(0)),
        ("functions.caches", Bytes(0)),
        ("overhead.db.hashtable.lut", Bytes(tables)),
        ("overhead.db.hashtable.rehashing", Bytes(0)),
        ("overhead.total", Bytes(overhead)),
        ("db.dict.rehashing.count", Bytes(0)),
        ("keys.count", Bytes(keys)),
        (
            "keys.bytes-per-key",
            Bytes(usage.used.saturating_sub(usage.startup).checked_div(keys).unwrap_or(0)),
        ),
        ("dataset.bytes", Bytes(dataset)),
        (
            "dataset.percentage",
            Ratio(ratio(dataset, usage.used.saturating_sub(usage.startup)).min(1.0) * 100.0),
        ),
        ("peak.percentage", Ratio(ratio(usage.used, usage.peak) * 100.0)),
        ("allocator.allocated", Bytes(allocator.allocated)),
        ("allocator.active", Bytes(allocator.active)),
        ("allocator.resident", Bytes(allocator.resident)),
        ("allocator-fragmentation.ratio", Ratio(ratio(allocator.active, allocator.allocated))),
        ("allocator-fragmentation.bytes", Bytes(allocator.active.saturating_sub(allocator.allocated))),
        ("allocator-rss.ratio", Ratio(ratio(allocator.resident, allocator.active))),
        ("allocator-rss.bytes", Signed(allocator.resident as i64 - allocator.active as i64)),
        ("rss-overhead.ratio", Ratio(ratio(usage.rss, allocator.resident))),
        ("rss-overhead.bytes", Signed(usage.rss as i64 - allocator.resident as i64)),
        ("fragmentation", Ratio(ratio(usage.rss, usage.used))),
    ]
}

fn write_field(out: &mut Writer, name: &str, field: &Field) {
    out.bulk(name.as_bytes());
    match *field {
        Field::Bytes(bytes) => out.int(bytes as i64),
        Field::Signed(bytes) => out.int(bytes),
        Field::Ratio(ratio) => out.double(ratio),
    }
}

fn stats(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let tables = table_bytes(ctx);
    let usage = usage(ctx.server, ctx.ks.now_ms());
    let keys = tables.iter().map(|&(db, _)| ctx.ks.store().len(db) as u64).sum();
    let fields = fields(&usage, keys, tables.iter().map(|&(_, bytes)| bytes as u64).sum());
    ctx.out.map(fields.len() + tables.len() + 1);
    for (name, field) in &fields {
        write_field(ctx.out, name, field);
    }
    write_field(ctx.out, "fragmentation.bytes", &Field::Signed(usage.rss as i64 - usage.used as i64));
    for (db, bytes) in tables {
        ctx.out.bulk(format!("db.{db}").as_bytes());
        ctx.out.map(2);
        write_field(ctx.out, "overhead.hashtable.main", &Field::Bytes(bytes as u64));
        // Keys that expire are found through the slots' own indices, which are part of no table.
        write_field(ctx.out, "overhead.hashtable.expires", &Field::Bytes(0));
    }
    Ok(())
}

fn doctor(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    /// Below this, ratios say nothing.
    const LITTLE_BYTES: u64 = 5 << 20;
    let (usage, config) = (usage(ctx.server, ctx.ks.now_ms()), ctx.server.config());
    let mut text = String::new();
    if usage.used < LITTLE_BYTES {
        text.push_str("Too little memory is used to tell: come back when there is data.\n");
        ctx.out.verbatim(b"txt", &text);
        return Ok(());
    }
    let mut problem = |is_there: bool, advice: String| {
        if is_there {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {advice}");
        }
    };
    let peak = ratio(usage.peak, usage.used);
    problem(
        peak > 1.5,
        format!("The peak was {peak:.1} times what is used now; resident memory may stay high for a while."),
    );
    let fragmentation = ratio(usage.rss, usage.used);
    problem(
        fragmentation > 1.4,
        format!(
            "Resident memory is {fragmentation:.2} times what is used: fragmentation, or memory just freed."
        ),
    );
    problem(
        config.maxmemory > 0 && usage.used > config.maxmemory / 10 * 9,
        "More than nine tenths of maxmemory are used.".to_owned(),
    );
    let per_client = usage.clients.checked_div(ctx.server.clients.len() as u64).unwrap_or(0);
    problem(
        per_client > 200 << 10,
        format!("Clients' buffers hold {per_client} bytes on average: some do not read."),
    );
    if text.is_empty() {
        text.push_str("Nothing stands out.\n");
    }
    ctx.out.verbatim(b"txt", &text);
    Ok(())
}

fn malloc_stats(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let mut text = Vec::new();
    let printed = tikv_jemalloc_ctl::stats_print::stats_print(
        &mut text,
        tikv_jemalloc_ctl::stats_print::Options::default(),
    );
    if printed.is_err() {
        return Err(CommandError::Text("ERR the allocator gives no statistics"));
    }
    ctx.out.verbatim(b"txt", &String::from_utf8_lossy(&text));
    Ok(())
}

/// `MEMORY PURGE`
fn purge(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    memory::purge();
    ctx.out.ok();
    Ok(())
}

fn help_lines(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    help(
        ctx,
        "MEMORY",
        &[
            "DOCTOR",
            "    Say what stands out in the use of memory.",
            "MALLOC-STATS",
            "    Show the allocator's own statistics.",
            "PURGE",
            "    Give unused pages back to the system now instead of within seconds.",
            "STATS",
            "    Show where memory goes, in numbers.",
            "USAGE <key> [SAMPLES <count>]",
            "    Count the bytes that a key and its value take.",
        ],
    )
}

pub(super) const ROWS: &[Row] = &[
    no_keys("memory|doctor", doctor),
    no_keys("memory|help", help_lines),
    no_keys("memory|malloc-stats", malloc_stats),
    no_keys("memory|purge", purge),
    walk("memory|stats", stats),
    keys("memory|usage", usage_of_key),
];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    #[test]
    fn usage_counts_key_and_value() {
        let mut server = Server::new();
        server.line("SET k v");
        server.line("SET big 12345678901234567890123456789012345678901234567890");
        let bytes = |reply: String| reply.trim_start_matches(':').parse::<usize>().unwrap();
        let (small, big) =
            (bytes(server.line("MEMORY USAGE k")), bytes(server.line("MEMORY USAGE big SAMPLES 0")));
        assert!((8..64).contains(&small) && big >= small + 32, "{small} {big}");
        assert_eq!(server.line("MEMORY USAGE none"), "$-1");
        assert_eq!(Server::new().resp3().line("MEMORY USAGE none"), "_");
        assert_eq!(server.line("MEMORY USAGE k SAMPLES"), "-ERR syntax error");
        assert_eq!(server.line("MEMORY USAGE k SAMPLES x"), "-ERR value is not an integer or out of range");
        assert_eq!(server.line("MEMORY USAGE k SAMPLES -1"), "-ERR syntax error");
        assert_eq!(server.line("MEMORY USAGE k FOO 1"), "-ERR syntax error");
    }

    #[test]
    fn stats_add_up_databases() {
        let mut server = Server::new();
        server.line("SET k v");
        server.session.db = 3;
        server.line("SET k v");
        let stats = server.line("MEMORY STATS");
        assert!(stats.starts_with("*64 $14 peak.allocated :"), "{stats}");
        assert!(
            stats.contains("$10 keys.count :2") && stats.contains("$4 db.3 *4 $23 overhead.hashtable.main :"),
            "{stats}"
        );
        assert_eq!(server.line("GET k"), "$1 v");
    }

    #[test]
    fn the_rest_answers() {
        let mut server = Server::new();
        assert_eq!(server.line("MEMORY PURGE"), "+OK");
        assert!(server.line("MEMORY DOCTOR").starts_with('$'));
        assert!(server.line("MEMORY MALLOC-STATS").contains("jemalloc"));
        assert!(server.line("MEMORY HELP").starts_with("*13 +MEMORY"));
        assert_eq!(server.line("MEMORY FOO"), "-ERR unknown subcommand 'FOO'. Try MEMORY HELP.");
    }
}
