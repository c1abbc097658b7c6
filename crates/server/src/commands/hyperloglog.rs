//! Commands on HyperLogLogs.
//!
//! Owns: arguments and replies. Does **not** own the format or the estimate (see `towline_store::hll`).

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys, no_keys};
use std::sync::Arc;
use towline_store::hll::{self, HllError, SPARSE_BYTES_MAX_DEFAULT};
use towline_store::keyspace::Expiry;
use towline_store::keyspace::editing::StringChange;
use towline_store::notify::Class;
use towline_store::value::Value;

/// Their texts are replies as they are.
fn refused(error: HllError) -> CommandError {
    match error {
        HllError::NotHll => CommandError::Text("WRONGTYPE Key is not a valid HyperLogLog string value."),
        error => CommandError::message(error.to_string()),
    }
}

/// Lets `change`, which says whether it did, at the HyperLogLog at `key`, which is created when it is not there; says also
/// whether it was. `elements` are given when `change` adds them.
fn change(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    elements: Option<Args<'_>>,
    change: impl FnOnce(&mut Vec<u8>) -> Result<bool, HllError>,
) -> Result<(bool, bool), CommandError> {
    if let Some(mut entry) = ctx.ks.string_mut(key)? {
        let is_hll = entry.as_str().is_some_and(|text| hll::check(text.bytes(&mut [0; 20])).is_ok());
        if !is_hll {
            return Err(refused(HllError::NotHll));
        }
        // Adding elements is cheaper told than the whole it makes.
        let mut elements = elements.map(Args::iter);
        let effect = elements.as_mut().map(|elements| ("PFADD", elements as &mut dyn Iterator<Item = &[u8]>));
        let judge = |result: &Result<bool, HllError>| match result {
            Ok(true) => StringChange::Complete,
            Ok(false) => StringChange::Unchanged,
            Err(_) => StringChange::Partial,
        };
        let changed = entry.change_string(effect, judge, change).expect("invariant: the entry is a string");
        return Ok((changed.map_err(refused)?, false));
    }
    let mut value = hll::empty();
    let changed = change(&mut value).map_err(refused)?;
    ctx.ks.set_value(key, Value::Shared(Arc::new(value)), Expiry::Clear);
    Ok((changed, true))
}

/// A copy of the HyperLogLog at `key`.
fn copy(ctx: &mut Ctx<'_>, key: &[u8]) -> Result<Option<Vec<u8>>, CommandError> {
    let Some(text) = ctx.ks.string(key)? else { return Ok(None) };
    let value = text.to_vec();
    hll::check(&value).map_err(refused)?;
    Ok(Some(value))
}

/// `PFADD key [element [element ...]]`
fn pfadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let elements = args.from(2);
    let sparse_max = ctx.ks.settings().limits.hll_sparse_max_bytes;
    let (is_raised, is_new) =
        change(ctx, key, Some(elements), |value| hll::add(value, elements.iter(), sparse_max))?;
    if is_raised || is_new {
        ctx.ks.changed(key, Class::String, "pfadd");
    }
    ctx.out.int((is_raised || is_new).into());
    Ok(())
}

/// `PFCOUNT key [key ...]`: the estimate of a single key is kept in its value until that changes.
fn pfcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let count = if args.len() == 2 { count_one(ctx, args.get(1))? } else { count_union(ctx, args.from(1))? };
    ctx.out.int(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

fn count_one(ctx: &mut Ctx<'_>, key: &[u8]) -> Result<u64, CommandError> {
    let Some(text) = ctx.ks.string(key)? else { return Ok(0) };
    let mut scratch = [0; 20];
    let value = text.bytes(&mut scratch);
    if let Some(count) = hll::cached_count(value).map_err(refused)? {
        return Ok(count);
    }
    let count = hll::count(value).map_err(refused)?;
    if let Some(mut entry) = ctx.ks.string_mut(key)?
        && let Some(len) = entry.as_str().map(|text| text.len())
        && let Some(cached) =
            entry.change_bytes(len, hll::CACHE_BYTES, |bytes| hll::cache_count(bytes, count))
    {
        cached.map_err(refused)?;
    }
    ctx.ks.modified(key);
    Ok(count)
}

fn count_union(ctx: &mut Ctx<'_>, keys: Args<'_>) -> Result<u64, CommandError> {
    let mut values = Vec::with_capacity(keys.len());
    for key in keys.iter() {
        values.extend(copy(ctx, key)?);
    }
    hll::count_union(values.iter().map(Vec::as_slice)).map_err(refused)
}

/// `PFMERGE destkey [sourcekey [sourcekey ...]]`
fn pfmerge(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let to = args.get(1);
    if let Some(text) = ctx.ks.string(to)? {
        hll::check(text.bytes(&mut [0; 20])).map_err(refused)?;
    }
    let mut sources = Vec::with_capacity(args.len() - 1);
    for key in args.from(2).iter() {
        sources.extend(copy(ctx, key)?);
    }
    let sources = sources.iter().map(Vec::as_slice);
    let sparse_max = ctx.ks.settings().limits.hll_sparse_max_bytes;
    change(ctx, to, None, |value| hll::merge(value, sources, sparse_max).map(|()| true))?;
    ctx.ks.changed(to, Class::String, "pfadd");
    ctx.out.ok();
    Ok(())
}

/// `PFDEBUG <GETREG | DECODE | ENCODING | TODENSE> key`
fn pfdebug(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(2);
    let value = copy(ctx, key)?.ok_or(CommandError::Text("ERR The specified key does not exist"))?;
    if args.is(1, "GETREG") {
        let registers = hll::registers(&value).map_err(refused)?;
        ctx.out.array(registers.len());
        registers.into_iter().for_each(|register| ctx.out.int(register.into()));
    } else if args.is(1, "DECODE") {
        let text = hll::runs_text(&value).map_err(refused)?;
        ctx.out.bulk(text.ok_or(CommandError::Text("ERR HLL encoding is not sparse"))?.as_bytes());
    } else if args.is(1, "ENCODING") {
        ctx.out.simple(hll::encoding_name(&value).map_err(refused)?);
    } else if args.is(1, "TODENSE") {
        let (is_done, _) = change(ctx, key, None, hll::to_dense)?;
        if is_done {
            ctx.ks.modified(key);
        }
        ctx.out.int(is_done.into());
    } else {
        return Err(CommandError::quoting("ERR Unknown PFDEBUG subcommand '", args.get(1), "'"));
    }
    Ok(())
}

/// Elements that `PFSELFTEST` adds.
const SELF_TEST_ELEMENTS: u64 = 100_000;

/// `PFSELFTEST`: both encodings have the same registers, and the estimate's error is within six standard errors.
fn pfselftest(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    /// Six times 1.04 / sqrt(16384), in parts of a thousand: 1 in 500 million fails by chance, and these elements do not.
    const ERROR_PERMILLE_MAX: u64 = 49;
    let (mut sparse, mut dense) = (hll::empty(), hll::empty());
    let test = |sparse: &mut Vec<u8>, dense: &mut Vec<u8>| -> Result<bool, HllError> {
        hll::to_dense(dense)?;
        let mut holds = true;
        for number in 1..=SELF_TEST_ELEMENTS {
            let element = number.to_le_bytes();
            hll::add(sparse, [element.as_slice()], SPARSE_BYTES_MAX_DEFAULT)?;
            hll::add(dense, [element.as_slice()], SPARSE_BYTES_MAX_DEFAULT)?;
            if number % 10_000 == 0 {
                let count = hll::count(dense)?;
                holds &= count.abs_diff(number) * 1000 <= number * ERROR_PERMILLE_MAX;
                holds &= hll::registers(sparse)? == hll::registers(dense)?;
            }
        }
        Ok(holds)
    };
    if !test(&mut sparse, &mut dense).map_err(refused)? {
        return Err(CommandError::Text("ERR TESTFAILED the estimate or the encodings are wrong"));
    }
    ctx.out.ok();
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("pfadd", pfadd),
    keys("pfcount", pfcount),
    keys("pfdebug", pfdebug),
    keys("pfmerge", pfmerge),
    no_keys("pfselftest", pfselftest),
];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    #[test]
    fn the_sparse_form_has_the_configured_length() {
        let mut server = Server::new();
        server.line("CONFIG SET hll-sparse-max-bytes 30");
        server.line("PFADD h a");
        assert_eq!(server.line("PFDEBUG ENCODING h"), "+sparse");
        server.line("PFADD h b c d e f g h i j");
        assert_eq!(
            (server.line("PFDEBUG ENCODING h"), server.line("PFCOUNT h")),
            ("+dense".into(), ":10".into())
        );
        server.line("PFMERGE all h");
        assert_eq!(server.line("PFDEBUG ENCODING all"), "+dense");
    }

    #[test]
    fn elements_are_counted() {
        let mut server = Server::new();
        assert_eq!(server.line("PFADD h a b c d e f g"), ":1");
        assert_eq!(server.line("PFADD h a"), ":0");
        assert_eq!(server.line("PFCOUNT h"), ":7");
        assert_eq!(server.line("PFCOUNT h"), ":7");
        assert_eq!(server.line("PFADD empty"), ":1");
        assert_eq!(server.line("PFADD empty"), ":0");
        assert_eq!(server.line("PFCOUNT none"), ":0");
        assert_eq!(server.line("PFADD other f g h i"), ":1");
        assert_eq!(server.line("PFCOUNT h other none"), ":9");
        assert_eq!(server.line("PFMERGE all h other none"), "+OK");
        assert_eq!(server.line("PFCOUNT all"), ":9");
        assert_eq!(server.line("PFMERGE fresh"), "+OK");
        assert_eq!(server.line("PFCOUNT fresh"), ":0");
    }

    #[test]
    fn other_values_are_refused() {
        let mut server = Server::new();
        server.line("SET s text");
        server.line("RPUSH l 1");
        let not_hll = "-WRONGTYPE Key is not a valid HyperLogLog string value.";
        let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
        for line in
            ["PFADD s a", "PFCOUNT s", "PFCOUNT s none", "PFMERGE s", "PFMERGE new s", "PFDEBUG DECODE s"]
        {
            assert_eq!(server.line(line), not_hll, "{line}");
        }
        for line in ["PFADD l a", "PFCOUNT l", "PFMERGE l", "PFMERGE new l"] {
            assert_eq!(server.line(line), wrong_type, "{line}");
        }
        assert_eq!(server.line("PFMERGE s l"), not_hll);
        assert_eq!(server.line("PFMERGE l s"), wrong_type);
        assert_eq!(server.line("EXISTS new"), ":0");
        assert_eq!(server.line("GET s"), "$4 text");
    }

    #[test]
    fn damaged_registers_are_refused() {
        let mut server = Server::new();
        server.line("PFADD h a b");
        server.line("APPEND h zz");
        assert_eq!(server.line("PFCOUNT h"), "-INVALIDOBJ Corrupted HLL object detected");
    }

    #[test]
    fn the_inside_can_be_seen() {
        let mut server = Server::new();
        server.line("PFADD h");
        assert_eq!(server.line("PFDEBUG ENCODING h"), "+sparse");
        assert_eq!(server.line("PFDEBUG DECODE h"), "$7 Z:16384");
        assert_eq!(server.line("PFDEBUG TODENSE h"), ":1");
        assert_eq!(server.line("PFDEBUG TODENSE h"), ":0");
        assert_eq!(server.line("PFDEBUG ENCODING h"), "+dense");
        assert_eq!(server.line("PFDEBUG DECODE h"), "-ERR HLL encoding is not sparse");
        assert!(server.line("PFDEBUG GETREG h").starts_with("*16384 :0 :0"));
        assert_eq!(server.line("PFDEBUG FOO h"), "-ERR Unknown PFDEBUG subcommand 'FOO'");
        assert_eq!(server.line("PFDEBUG ENCODING none"), "-ERR The specified key does not exist");
        assert_eq!(server.line("PFSELFTEST"), "+OK");
    }
}
