//! Strings that hold numbers: `INCR` and its kin.
//!
//! Owns: arithmetic on the stored text. Does **not** own the number formats (see `towline_resp::long_double` and
//! `towline_store::number`).

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_resp::long_double::LongDouble;
use towline_store::keyspace::Expiry;
use towline_store::notify::Class;
use towline_store::number::parse_i64;
use towline_store::value::{Str, Value};

/// `INCR key`
fn incr(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    add(ctx, args.get(1), 1)
}

/// `DECR key`
fn decr(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    add(ctx, args.get(1), -1)
}

/// `INCRBY key increment`
fn incrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    add(ctx, args.get(1), args.int(2)?)
}

/// `DECRBY key decrement`
fn decrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let decrement = args.int(2)?;
    let increment = decrement.checked_neg().ok_or(CommandError::Text("ERR decrement would overflow"))?;
    add(ctx, args.get(1), increment)
}

fn add(ctx: &mut Ctx<'_>, key: &[u8], increment: i64) -> CommandResult {
    let stored = match ctx.ks.string_mut(key)? {
        Some(mut entry) => {
            let old = match entry.as_str() {
                Some(Str::Int(number)) => Some(number),
                Some(Str::Bytes(text)) => parse_i64(text),
                // Longer than any integer.
                Some(Str::Shared(_)) | None => None,
            };
            let sum = sum(old.ok_or(CommandError::NotInteger)?, increment)?;
            entry.set_int(sum);
            Some(sum)
        }
        None => None,
    };
    let sum = stored.unwrap_or(increment);
    if stored.is_none() {
        ctx.ks.set_value(key, Value::Int(sum), Expiry::Clear);
    }
    ctx.ks.changed(key, Class::String, "incrby");
    ctx.out.int(sum);
    Ok(())
}

fn sum(old: i64, increment: i64) -> Result<i64, CommandError> {
    old.checked_add(increment).ok_or(CommandError::Text("ERR increment or decrement would overflow"))
}

/// `INCRBYFLOAT key increment`, with the 80-bit arithmetic of x86-64.
fn incrbyfloat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let old = match ctx.ks.string_mut(key)? {
        Some(entry) => entry.as_str().and_then(|text| LongDouble::parse(text.bytes(&mut [0; 20]))),
        None => LongDouble::parse(b"0"),
    };
    let (Some(old), Some(increment)) = (old, LongDouble::parse(args.get(2))) else {
        return Err(CommandError::NotFloat);
    };
    let sum = old + increment;
    if !sum.is_finite() {
        return Err(CommandError::Text("ERR increment would produce NaN or Infinity"));
    }
    let text = sum.to_string();
    ctx.ks.set_string(key, text.as_bytes(), Expiry::Keep);
    ctx.ks.changed(key, Class::String, "incrbyfloat");
    ctx.out.bulk(text.as_bytes());
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("decr", decr),
    keys("decrby", decrby),
    keys("incr", incr),
    keys("incrby", incrby),
    keys("incrbyfloat", incrbyfloat),
];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    #[test]
    fn integers_are_added_and_bounded() {
        let mut server = Server::new();
        assert_eq!(server.line("INCR n"), ":1");
        assert_eq!(server.line("INCRBY n 41"), ":42");
        assert_eq!(server.line("DECRBY n 2"), ":40");
        assert_eq!(server.line("DECR n"), ":39");
        assert_eq!(server.line("INCRBY n 9223372036854775807"), "-ERR increment or decrement would overflow");
        assert_eq!(server.line("DECRBY n -9223372036854775808"), "-ERR decrement would overflow");
        assert_eq!(server.line("INCRBY n x"), "-ERR value is not an integer or out of range");
        assert_eq!(server.line("GET n"), "$2 39");
    }

    #[test]
    fn only_canonical_integers_are_numbers() {
        let mut server = Server::new();
        for text in ["+1", "01", "1.0", "abc", "9223372036854775808"] {
            server.run(&["SET", "k", text]);
            assert_eq!(server.line("INCR k"), "-ERR value is not an integer or out of range", "{text}");
        }
        server.run(&["SET", "k", " 1"]);
        assert_eq!(server.line("INCR k"), "-ERR value is not an integer or out of range");
        // A text that was put together by APPEND is a number all the same.
        server.line("DEL k");
        server.line("APPEND k 1");
        server.line("APPEND k 2");
        assert_eq!(server.line("INCR k"), ":13");
    }

    #[test]
    fn the_expiry_stays() {
        let mut server = Server::new();
        server.line("SET k 1 PX 500");
        server.line("INCR k");
        server.line("INCRBYFLOAT k 0.5");
        assert_eq!(server.line("PTTL k"), ":500");
    }

    #[test]
    fn floats_have_eighty_bits() {
        let mut server = Server::new();
        server.line("SET f 10.50");
        assert_eq!(server.line("INCRBYFLOAT f 0.1"), "$4 10.6");
        assert_eq!(server.line("INCRBYFLOAT f -5.6"), "$1 5");
        server.line("SET f 5.0e3");
        assert_eq!(server.line("INCRBYFLOAT f 2.0e2"), "$4 5200");
        assert_eq!(server.line("INCRBYFLOAT new 3.0"), "$1 3");
        assert_eq!(server.line("INCRBYFLOAT f inf"), "-ERR increment would produce NaN or Infinity");
        assert_eq!(server.line("INCRBYFLOAT f x"), "-ERR value is not a valid float");
        server.line("SET f text");
        assert_eq!(server.line("INCRBYFLOAT f 1"), "-ERR value is not a valid float");
    }
}
