//! Parts of strings: `APPEND`, `GETRANGE`, `SETRANGE`, `STRLEN`.
//!
//! Owns: offsets and the limit on a string's length. Does **not** own bits (see [`super::bitmaps`]).

use super::strings::put;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_store::keyspace::Expiry;
use towline_store::notify::Class;
use towline_store::value::Value;

/// Refuses a string of `len` bytes if it would be longer than a client could send.
pub(super) fn check_len(ctx: &Ctx<'_>, len: u64) -> CommandResult {
    if len > ctx.server.config().proto_max_bulk_len {
        return Err(CommandError::Text("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
    }
    Ok(())
}

/// `APPEND key value`
fn append(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, value) = (args.get(1), args.get(2));
    let old_len = ctx.ks.string_mut(key)?.map(|entry| entry.as_str().map_or(0, |text| text.len()));
    let len = match old_len {
        None => {
            put(ctx, key, args, 2, Expiry::Clear);
            value.len()
        }
        Some(old_len) => {
            let len = old_len + value.len();
            check_len(ctx, len as u64)?;
            if let Some(mut entry) = ctx.ks.string_mut(key)? {
                entry.append(value);
            }
            len
        }
    };
    ctx.ks.changed(key, Class::String, "append");
    ctx.out.int(len as i64);
    Ok(())
}

/// `STRLEN key`
fn strlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let len = ctx.ks.string(args.get(1))?.map_or(0, |text| text.len());
    ctx.out.int(len as i64);
    Ok(())
}

/// `GETRANGE key start end`, by its old name `SUBSTR`.
fn getrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (start, end) = (args.int(2)?, args.int(3)?);
    let mut scratch = [0; 20];
    let text = match ctx.ks.string(args.get(1))? {
        Some(text) => text.bytes(&mut scratch),
        None => &[],
    };
    ctx.out.bulk(part(text, start, end));
    Ok(())
}

/// The bytes from `start` to `end`, both inclusive, negative ones counted from the end.
fn part(text: &[u8], start: i64, end: i64) -> &[u8] {
    let len = text.len() as i64;
    if len == 0 || (start < 0 && end < 0 && start > end) {
        return &[];
    }
    let absolute = |index: i64| if index < 0 { len.saturating_add(index).max(0) } else { index };
    let (start, end) = (absolute(start), absolute(end).min(len - 1));
    if start > end { &[] } else { &text[start as usize..=end as usize] }
}

/// `SETRANGE key offset value`
fn setrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, value) = (args.get(1), args.get(3));
    let offset = u64::try_from(args.int(2)?).map_err(|_| CommandError::Text("ERR offset is out of range"))?;
    let old_len = ctx.ks.string_mut(key)?.map(|entry| entry.as_str().map_or(0, |text| text.len()));
    if value.is_empty() {
        ctx.out.int(old_len.unwrap_or(0) as i64);
        return Ok(());
    }
    let end = offset.saturating_add(value.len() as u64);
    check_len(ctx, end)?;
    let (from, to) = (offset as usize, end as usize);
    let len = to.max(old_len.unwrap_or(0));
    if old_len.is_none() {
        let mut text = vec![0; len];
        text[from..].copy_from_slice(value);
        ctx.ks.set_value(key, Value::Shared(text.into()), Expiry::Clear);
    } else if let Some(mut entry) = ctx.ks.string_mut(key)? {
        entry.change_bytes(len, from..to, |text| text[from..to].copy_from_slice(value));
    }
    ctx.ks.changed(key, Class::String, "setrange");
    ctx.out.int(len as i64);
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("append", append),
    keys("getrange", getrange),
    keys("setrange", setrange),
    keys("strlen", strlen),
    keys("substr", getrange),
];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

    #[test]
    fn append_and_strlen() {
        let mut server = Server::new();
        assert_eq!(server.line("APPEND k 12"), ":2");
        assert_eq!(server.line("OBJECT ENCODING k"), "$3 int");
        assert_eq!(server.line("APPEND k 3"), ":3");
        assert_eq!(server.line("GET k"), "$3 123");
        assert_eq!(server.line("OBJECT ENCODING k"), "$3 raw");
        assert_eq!(server.line("STRLEN k"), ":3");
        assert_eq!(server.line("STRLEN none"), ":0");
        server.line("RPUSH l 1");
        assert_eq!(server.line("APPEND l 1"), WRONG_TYPE);
        assert_eq!(server.line("STRLEN l"), WRONG_TYPE);
    }

    #[test]
    fn append_keeps_the_expiry() {
        let mut server = Server::new();
        server.line("SET k v PX 9");
        server.line("APPEND k w");
        server.line("SETRANGE k 5 z");
        assert_eq!(server.line("PTTL k"), ":9");
    }

    #[test]
    fn ranges_are_read() {
        let mut server = Server::new();
        server.run(&["SET", "k", "This is a string"]);
        for (range, part) in [
            ("0 3", "$4 This"),
            ("-3 -1", "$3 ing"),
            ("0 -1", "$16 This is a string"),
            ("10 100", "$6 string"),
            ("5 3", "$0"),
            ("-1 -5", "$0"),
            ("100 200", "$0"),
            ("0 -100", "$1 T"),
            ("-100 1", "$2 Th"),
            ("-9223372036854775808 9223372036854775807", "$16 This is a string"),
        ] {
            assert_eq!(server.line(&format!("GETRANGE k {range}")), part, "{range}");
            assert_eq!(server.line(&format!("SUBSTR k {range}")), part, "{range}");
        }
        server.line("SET n 12345");
        assert_eq!(server.line("GETRANGE n 1 2"), "$2 23");
        assert_eq!(server.line("GETRANGE none 0 -1"), "$0");
        assert_eq!(server.line("GETRANGE k a 1"), "-ERR value is not an integer or out of range");
        server.line("RPUSH l 1");
        assert_eq!(server.line("GETRANGE l 0 1"), WRONG_TYPE);
    }

    #[test]
    fn ranges_are_written() {
        let mut server = Server::new();
        assert_eq!(server.run(&["SETRANGE", "k", "5", ""]), ":0");
        assert_eq!(server.line("EXISTS k"), ":0");
        assert_eq!(server.line("SETRANGE k 2 abc"), ":5");
        assert_eq!(server.line("GET k"), "$5 \0\0abc");
        assert_eq!(server.line("SETRANGE k 0 xy"), ":5");
        assert_eq!(server.line("SETRANGE k 4 zz"), ":6");
        assert_eq!(server.line("GET k"), "$6 xyabzz");
        assert_eq!(server.run(&["SETRANGE", "k", "50", ""]), ":6");
        server.line("SET n 12345");
        assert_eq!(server.line("SETRANGE n 1 0"), ":5");
        assert_eq!(server.line("GET n"), "$5 10345");
        assert_eq!(server.line("INCR n"), ":10346");
    }

    #[test]
    fn the_length_is_bounded() {
        let mut server = Server::new();
        let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
        assert_eq!(server.line("SETRANGE k 536870912 a"), too_long);
        assert_eq!(server.line("SETRANGE k 9223372036854775807 a"), too_long);
        assert_eq!(server.line("SETRANGE k -1 a"), "-ERR offset is out of range");
        assert_eq!(server.line("SETRANGE k x a"), "-ERR value is not an integer or out of range");
        assert_eq!(server.line("EXISTS k"), ":0");
        server.line("RPUSH l 1");
        assert_eq!(server.line("SETRANGE l 0 a"), WRONG_TYPE);
        assert_eq!(server.run(&["SETRANGE", "l", "0", ""]), WRONG_TYPE);
    }
}
