//! Commands on the bits of strings.
//!
//! Owns: arguments and replies of `SETBIT`, `BITCOUNT`, `BITOP`, `BITFIELD` and their kin. Does **not** own the bit
//! operations (see `towline_store::bits`).

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use std::ops::Range;
use std::sync::Arc;
use towline_store::bits::{self, BitOp, BitRange, FieldType, Overflow, Unit};
use towline_store::keyspace::Expiry;
use towline_store::notify::Class;
use towline_store::value::Value;

const OFFSET: CommandError = CommandError::Text("ERR bit offset is not an integer or out of range");

/// A bit's offset, which lies within the longest string.
fn offset(ctx: &Ctx<'_>, text: &[u8], field: Option<FieldType>) -> Result<u64, CommandError> {
    bits::parse_field_offset(text, field, ctx.server.config().proto_max_bulk_len).ok_or(OFFSET)
}

/// Lets `change` at the bytes of the string at `key`, padded with zeros to at least `len`; says also whether it grew. Only
/// bits in `bits` change.
fn change_bytes<R>(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    len: u64,
    bits: Range<u64>,
    change: impl FnOnce(&mut [u8]) -> R,
) -> Result<(R, bool), CommandError> {
    let len = usize::try_from(len).map_err(|_| OFFSET)?;
    if let Some(mut entry) = ctx.ks.string_mut(key)? {
        let grows = entry.as_str().is_some_and(|text| text.len() < len);
        let range = (bits.start / 8) as usize..bits.end.div_ceil(8) as usize;
        let changed = entry.change_bytes(len, range, change);
        return Ok((changed.expect("invariant: the entry is a string"), grows));
    }
    let mut bytes = vec![0; len];
    let result = change(&mut bytes);
    ctx.ks.set_value(key, Value::Shared(Arc::new(bytes)), Expiry::Clear);
    Ok((result, true))
}

/// `SETBIT key offset value`
fn setbit(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let at = offset(ctx, args.get(2), None)?;
    let value = match args.get(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(CommandError::Text("ERR bit is not an integer or out of range")),
    };
    let len = bits::bytes_needed(at, 1);
    let (old, has_grown) = change_bytes(ctx, key, len, at..at + 1, |bytes| bits::set_bit(bytes, at, value))?;
    if has_grown || old != value {
        ctx.ks.changed(key, Class::String, "setbit");
    }
    ctx.out.int(old.into());
    Ok(())
}

/// `GETBIT key offset`
fn getbit(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let at = offset(ctx, args.get(2), None)?;
    let bit = ctx.ks.string(args.get(1))?.is_some_and(|text| bits::bit(text.bytes(&mut [0; 20]), at));
    ctx.out.int(bit.into());
    Ok(())
}

fn unit(args: Args<'_>, index: usize) -> Result<Unit, CommandError> {
    if args.len() <= index || args.is(index, "BYTE") {
        Ok(Unit::Byte)
    } else if args.is(index, "BIT") {
        Ok(Unit::Bit)
    } else {
        Err(CommandError::Syntax)
    }
}

/// `BITCOUNT key [start end [BYTE | BIT]]`
fn bitcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let range = match args.len() {
        2 => BitRange::default(),
        4 | 5 => BitRange { start: args.int(2)?, end: args.int(3)?, unit: unit(args, 4)? },
        _ => return Err(CommandError::Syntax),
    };
    let text = ctx.ks.string(args.get(1))?;
    let count = text.map_or(0, |text| bits::count(text.bytes(&mut [0; 20]), range));
    ctx.out.int(count as i64);
    Ok(())
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
fn bitpos(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let wanted = match args.int(2)? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::Text("ERR The bit argument must be 1 or 0.")),
    };
    let (len, mut range) = (args.len(), BitRange::default());
    if len > 6 {
        return Err(CommandError::Syntax);
    }
    if len > 3 {
        range.start = args.int(3)?;
    }
    if len > 4 {
        range.unit = unit(args, 5)?;
        range.end = args.int(4)?;
    }
    let position = match ctx.ks.string(args.get(1))? {
        Some(text) => bits::position(text.bytes(&mut [0; 20]), wanted, range, len > 4),
        None if wanted => -1,
        None => 0,
    };
    ctx.out.int(position);
    Ok(())
}

/// `BITOP operation destkey key [key ...]`
fn bitop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let op = BitOp::parse(args.get(1)).ok_or(CommandError::Syntax)?;
    let sources = args.from(3);
    let (fewest, most) = op.source_count();
    if sources.len() > most {
        return Err(CommandError::Text("ERR BITOP NOT must be called with a single source key."));
    }
    if sources.len() < fewest {
        let name = String::from_utf8_lossy(args.get(1)).to_uppercase();
        return Err(CommandError::message(format!(
            "ERR BITOP {name} must be called with at least two source keys."
        )));
    }
    let mut texts = Vec::with_capacity(sources.len());
    for key in sources.iter() {
        texts.push(ctx.ks.string(key)?.map(|text| text.to_vec()).unwrap_or_default());
    }
    let combined = bits::combine(op, &texts.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let (to, len) = (args.get(2), combined.len());
    if len > 0 {
        ctx.ks.set_value(to, Value::Shared(Arc::new(combined)), Expiry::Clear);
        ctx.ks.changed(to, Class::String, "set");
    } else if ctx.ks.delete(to) {
        ctx.ks.changed(to, Class::Generic, "del");
    }
    ctx.out.int(len as i64);
    Ok(())
}

/// What a step of `BITFIELD` does with its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

/// One operation of `BITFIELD`.
#[derive(Debug, Clone, Copy)]
struct Step {
    action: Action,
    field: FieldType,
    at: u64,
    overflow: Overflow,
}

impl Step {
    /// Applies the step; `None` when its overflow rule refuses it.
    fn apply(self, bytes: &mut [u8]) -> Option<i64> {
        match self.action {
            Action::Get => Some(bits::field(bytes, self.at, self.field)),
            Action::Set(value) => bits::set_field(bytes, self.at, self.field, value, self.overflow),
            Action::Add(increment) => {
                bits::add_to_field(bytes, self.at, self.field, increment, self.overflow)
            }
        }
    }
}

const FIELD_TYPE: CommandError = CommandError::Text(
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
);

fn steps(ctx: &Ctx<'_>, args: Args<'_>) -> Result<Vec<Step>, CommandError> {
    let (mut steps, mut overflow, mut index) = (Vec::new(), Overflow::default(), 2);
    while index < args.len() {
        if args.is(index, "OVERFLOW") && index + 1 < args.len() {
            overflow = Overflow::parse(args.get(index + 1))
                .ok_or(CommandError::Text("ERR Invalid OVERFLOW type specified"))?;
            index += 2;
            continue;
        }
        let (is_get, is_set) = (args.is(index, "GET"), args.is(index, "SET"));
        let values = if is_get { 2 } else { 3 };
        if !(is_get || is_set || args.is(index, "INCRBY")) || index + values >= args.len() {
            return Err(CommandError::Syntax);
        }
        let field = FieldType::parse(args.get(index + 1)).ok_or(FIELD_TYPE)?;
        let at = offset(ctx, args.get(index + 2), Some(field))?;
        let action = match (is_get, is_set) {
            (true, _) => Action::Get,
            (false, true) => Action::Set(args.int(index + 3)?),
            (false, false) => Action::Add(args.int(index + 3)?),
        };
        steps.push(Step { action, field, at, overflow });
        index += values + 1;
    }
    Ok(steps)
}

/// `BITFIELD key [GET …] [OVERFLOW …] [SET …] [INCRBY …] …`
fn bitfield(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let steps = steps(ctx, args)?;
    let writes = || steps.iter().filter(|step| step.action != Action::Get);
    let Some(len) = writes().map(|step| bits::bytes_needed(step.at, step.field.bits())).max() else {
        return read_fields(ctx, key, &steps);
    };
    let bits = writes().map(|step| step.at).min().unwrap_or(0)..len * 8;
    let mut results = Vec::with_capacity(steps.len());
    let (has_written, has_grown) = change_bytes(ctx, key, len, bits, |bytes| {
        let mut has_written = false;
        for step in &steps {
            let before = bits::field(bytes, step.at, step.field);
            results.push(step.apply(bytes));
            has_written |= bits::field(bytes, step.at, step.field) != before;
        }
        has_written
    })?;
    if has_grown || has_written {
        ctx.ks.changed(key, Class::String, "setbit");
    }
    ctx.out.array(results.len());
    for result in results {
        match result {
            Some(number) => ctx.out.int(number),
            None => ctx.out.null(),
        }
    }
    Ok(())
}

/// `BITFIELD_RO key [GET encoding offset …]`
fn bitfield_ro(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let steps = steps(ctx, args)?;
    if steps.iter().any(|step| step.action != Action::Get) {
        return Err(CommandError::Text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read_fields(ctx, args.get(1), &steps)
}

fn read_fields(ctx: &mut Ctx<'_>, key: &[u8], steps: &[Step]) -> CommandResult {
    let mut scratch = [0; 20];
    let bytes = match ctx.ks.string(key)? {
        Some(text) => text.bytes(&mut scratch),
        None => &[],
    };
    ctx.out.array(steps.len());
    for step in steps {
        ctx.out.int(bits::field(bytes, step.at, step.field));
    }
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("bitcount", bitcount),
    keys("bitfield", bitfield),
    keys("bitfield_ro", bitfield_ro),
    keys("bitop", bitop),
    keys("bitpos", bitpos),
    keys("getbit", getbit),
    keys("setbit", setbit),
];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    const OFFSET: &str = "-ERR bit offset is not an integer or out of range";

    #[test]
    fn single_bits() {
        let mut server = Server::new();
        assert_eq!(server.line("SETBIT k 7 1"), ":0");
        assert_eq!(server.line("SETBIT k 7 0"), ":1");
        assert_eq!(server.line("SETBIT k 7 1"), ":0");
        assert_eq!(server.line("GETBIT k 7"), ":1");
        assert_eq!(server.line("GETBIT k 6"), ":0");
        assert_eq!(server.line("GETBIT k 100"), ":0");
        assert_eq!(server.line("GETBIT none 0"), ":0");
        assert_eq!(server.line("GET k"), "$1 \u{1}");
        server.line("SET n 1");
        assert_eq!(server.line("SETBIT n 6 1"), ":0");
        assert_eq!(server.line("GET n"), "$1 3");
        for offset in ["-1", "4294967296", "x", "#1"] {
            assert_eq!(server.line(&format!("SETBIT k {offset} 1")), OFFSET, "{offset}");
            assert_eq!(server.line(&format!("GETBIT k {offset}")), OFFSET, "{offset}");
        }
        assert_eq!(server.line("SETBIT k 0 2"), "-ERR bit is not an integer or out of range");
        server.line("RPUSH l 1");
        assert_eq!(server.line("SETBIT l 0 1"), WRONG_TYPE);
        assert_eq!(server.line("GETBIT l 0"), WRONG_TYPE);
    }

    #[test]
    fn only_a_bit_that_changes_is_a_change() {
        let mut server = Server::new();
        server.line("SETBIT k 7 1");
        let before = server.dirty();
        server.line("SETBIT k 7 1");
        server.line("SETBIT k 3 0");
        server.line("BITFIELD k SET u8 0 1 INCRBY u4 0 16");
        assert_eq!(server.dirty(), before);
        server.line("SETBIT k 8 0");
        assert_eq!(server.dirty(), before + 1);
    }

    #[test]
    fn bits_are_counted() {
        let mut server = Server::new();
        server.line("SET k foobar");
        assert_eq!(server.line("BITCOUNT k"), ":26");
        assert_eq!(server.line("BITCOUNT k 0 0"), ":4");
        assert_eq!(server.line("BITCOUNT k 1 1 BYTE"), ":6");
        assert_eq!(server.line("BITCOUNT k 5 30 BIT"), ":17");
        assert_eq!(server.line("BITCOUNT k -2 -1"), ":7");
        assert_eq!(server.line("BITCOUNT none"), ":0");
        for line in ["BITCOUNT k 0", "BITCOUNT k 0 1 FOO", "BITCOUNT none 0", "BITCOUNT k 0 1 BIT x"] {
            assert_eq!(server.line(line), "-ERR syntax error", "{line}");
        }
        assert_eq!(server.line("BITCOUNT none a b"), "-ERR value is not an integer or out of range");
        server.line("RPUSH l 1");
        assert_eq!(server.line("BITCOUNT l"), WRONG_TYPE);
    }

    #[test]
    fn bits_are_found() {
        let mut server = Server::new();
        server.run_bytes(&[b"SET", b"k", b"\xff\xf0\x00"]);
        assert_eq!(server.line("BITPOS k 0"), ":12");
        assert_eq!(server.line("BITPOS k 1 2"), ":-1");
        assert_eq!(server.line("BITPOS k 1 2 -1 BYTE"), ":-1");
        assert_eq!(server.line("BITPOS k 0 7 15 BIT"), ":12");
        server.run_bytes(&[b"SET", b"ones", b"\xff\xff"]);
        assert_eq!(server.line("BITPOS ones 0"), ":16");
        assert_eq!(server.line("BITPOS ones 0 0 -1"), ":-1");
        assert_eq!(server.line("BITPOS none 0"), ":0");
        assert_eq!(server.line("BITPOS none 1"), ":-1");
        assert_eq!(server.line("BITPOS k 2"), "-ERR The bit argument must be 1 or 0.");
        assert_eq!(server.line("BITPOS k 1 0 1 FOO"), "-ERR syntax error");
        assert_eq!(server.line("BITPOS k 1 0 1 BIT x"), "-ERR syntax error");
    }

    #[test]
    fn values_are_combined() {
        let mut server = Server::new();
        server.line("SET a abc");
        server.line("SET b ab");
        assert_eq!(server.line("BITOP AND d a b"), ":3");
        assert_eq!(server.line("GET d"), "$3 ab\0");
        assert_eq!(server.line("BITOP xor d a b none"), ":3");
        assert_eq!(server.line("GET d"), "$3 \0\0c");
        assert_eq!(server.line("BITOP DIFF d a b"), ":3");
        assert_eq!(server.line("GET d"), "$3 \0\0c");
        assert_eq!(server.line("BITOP OR d none other"), ":0");
        assert_eq!(server.line("EXISTS d"), ":0");
        assert_eq!(server.line("BITOP FOO d a"), "-ERR syntax error");
        let one = "-ERR BITOP NOT must be called with a single source key.";
        assert_eq!(server.line("BITOP NOT d a b"), one);
        let two = "-ERR BITOP ANDOR must be called with at least two source keys.";
        assert_eq!(server.line("BITOP andor d a"), two);
        server.line("RPUSH l 1");
        assert_eq!(server.line("BITOP OR d a l"), WRONG_TYPE);
        assert_eq!(server.line("BITOP OR l a b"), ":3");
    }

    #[test]
    fn fields() {
        let mut server = Server::new();
        assert_eq!(server.line("BITFIELD k SET u8 0 255 GET u4 4"), "*2 :0 :15");
        assert_eq!(server.line("BITFIELD k INCRBY u8 0 10"), "*1 :9");
        assert_eq!(server.line("BITFIELD k OVERFLOW SAT INCRBY u8 0 250"), "*1 :255");
        assert_eq!(server.line("BITFIELD k OVERFLOW FAIL INCRBY u8 0 1 GET u8 0"), "*2 $-1 :255");
        assert_eq!(server.line("BITFIELD k SET i8 #1 -5 GET i8 #1"), "*2 :0 :-5");
        assert_eq!(server.line("STRLEN k"), ":2");
        assert_eq!(server.line("BITFIELD none GET u8 0"), "*1 :0");
        assert_eq!(server.line("EXISTS none"), ":0");
        assert_eq!(server.line("BITFIELD k"), "*0");
        assert_eq!(server.line("BITFIELD_RO k GET u8 0 GET i8 #1"), "*2 :255 :-5");
        let mut server = server.resp3();
        assert_eq!(server.line("BITFIELD k OVERFLOW FAIL INCRBY u8 0 1"), "*1 _");
    }

    #[test]
    fn fields_that_do_not_fit() {
        let mut server = Server::new();
        let field_type = "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but \
                          i64 is.";
        assert_eq!(server.line("BITFIELD k GET u64 0"), field_type);
        assert_eq!(server.line("BITFIELD k SET u8 x 1"), OFFSET);
        assert_eq!(server.line("BITFIELD k SET u8 0 x"), "-ERR value is not an integer or out of range");
        assert_eq!(server.line("BITFIELD k OVERFLOW FOO"), "-ERR Invalid OVERFLOW type specified");
        for line in ["BITFIELD k SET u8 0", "BITFIELD k GET u8", "BITFIELD k FOO", "BITFIELD k OVERFLOW"] {
            assert_eq!(server.line(line), "-ERR syntax error", "{line}");
        }
        let read_only = "-ERR BITFIELD_RO only supports the GET subcommand";
        assert_eq!(server.line("BITFIELD_RO k SET u8 0 1"), read_only);
        assert_eq!(server.line("EXISTS k"), ":0");
        server.line("RPUSH l 1");
        assert_eq!(server.line("BITFIELD l GET u8 0"), WRONG_TYPE);
        assert_eq!(server.line("BITFIELD l SET u8 0 1"), WRONG_TYPE);
    }
}
