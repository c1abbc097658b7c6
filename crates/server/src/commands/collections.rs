//! What the commands on lists, hashes and sets have in common.
//!
//! Owns: replies of single elements, arguments that several of these commands take, the bound on repeated random
//! replies. Does **not** own any command.

use crate::command::{Args, CommandError, CommandResult, Ctx};
use towline_resp::writer::Writer;
use towline_sansio::Prng;
use towline_store::glob::{self, Case};
use towline_store::number::parse_i64;
use towline_store::packed::{Elem, ElemBuf};

/// Bytes that a reply of random elements with repetitions may reach (`HRANDFIELD`, `SRANDMEMBER` with a negative count),
/// 1 GiB: the count is the client's word alone, so nothing else bounds such a reply.
const REPEATED_REPLY_BYTES_MAX: usize = 1 << 30;
/// Elements drawn between two looks at that bound.
const DRAWN_AT_ONCE: u64 = 64;
/// `COUNT` of a scan that does not give one, as in Redis.
const SCAN_COUNT: usize = 10;

/// The error for a count that is negative or no number.
pub(super) const NOT_POSITIVE: CommandError =
    CommandError::Text("ERR value is out of range, must be positive");
const NUMKEYS: CommandError = CommandError::Text("ERR numkeys should be greater than 0");

/// Writes an element as a bulk string.
#[inline]
pub(super) fn bulk_elem(out: &mut Writer, elem: Elem<'_>) {
    match elem {
        Elem::Bytes(bytes) => out.bulk(bytes),
        Elem::Int(number) => out.bulk_int(number),
    }
}

/// A generator of its own for one command, so that it can be used beside a borrowed value.
pub(super) fn fork_rng(ctx: &mut Ctx<'_>) -> Prng {
    Prng::new(ctx.ks.changes().rng.next_u64())
}

/// Argument `index` as a count of elements, 0 or more.
pub(super) fn count_arg(args: Args<'_>, index: usize) -> Result<usize, CommandError> {
    let count = parse_i64(args.get(index)).and_then(|count| usize::try_from(count).ok());
    count.ok_or(NOT_POSITIVE)
}

/// Argument `index` as a count whose sign has a meaning; the one number that has no counterpart is refused.
pub(super) fn signed_count_arg(args: Args<'_>, index: usize) -> Result<i64, CommandError> {
    match args.int(index)? {
        i64::MIN => Err(CommandError::Text(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        )),
        count => Ok(count),
    }
}

/// Argument `index` as the number of keys that follow it: at least 1.
pub(super) fn numkeys_arg(args: Args<'_>, index: usize) -> Result<usize, CommandError> {
    let count = parse_i64(args.get(index)).and_then(|count| usize::try_from(count).ok());
    count.filter(|&count| count > 0).ok_or(NUMKEYS)
}

/// The rest of a pop from several keys, `[COUNT count]`: how much to take at most, 1 unless told otherwise. A bad count is
/// noticed before what stands behind it.
pub(super) fn pop_count_option(options: Args<'_>) -> Result<usize, CommandError> {
    if options.len() == 0 {
        return Ok(1);
    }
    if options.len() == 1 || !options.is(0, "count") {
        return Err(CommandError::Syntax);
    }
    let count = parse_i64(options.get(1)).and_then(|count| usize::try_from(count).ok());
    let count =
        count.filter(|&count| count > 0).ok_or(CommandError::Text("ERR count should be greater than 0"))?;
    if options.len() == 2 { Ok(count) } else { Err(CommandError::Syntax) }
}

/// Draws `count` elements with repetitions by calling `draw` with small counts, which writes them.
///
/// # Errors
/// When the reply becomes larger than [`REPEATED_REPLY_BYTES_MAX`].
pub(super) fn draw_bounded(
    out: &mut Writer,
    count: u64,
    draw: impl FnMut(&mut Writer, usize),
) -> CommandResult {
    draw_within(REPEATED_REPLY_BYTES_MAX, out, count, draw)
}

fn draw_within(
    bytes_max: usize,
    out: &mut Writer,
    count: u64,
    mut draw: impl FnMut(&mut Writer, usize),
) -> CommandResult {
    let start = out.len_bytes();
    let mut left = count;
    while left > 0 {
        let now = left.min(DRAWN_AT_ONCE);
        draw(out, now as usize);
        left -= now;
        if out.len_bytes().saturating_sub(start) > bytes_max {
            return Err(CommandError::Text("ERR value is out of range"));
        }
    }
    Ok(())
}

/// The options of `HSCAN`, `SSCAN` and `ZSCAN`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    /// Elements to visit, about; at least 1.
    pub(super) count: usize,
    /// `NOVALUES`, `NOSCORES`.
    pub(super) is_names_only: bool,
}

impl<'a> ScanOptions<'a> {
    /// Reads the options from argument 3 on; `names_only` is the word that leaves out what belongs to a name, if anything
    /// does.
    pub(super) fn parse(args: Args<'a>, names_only: Option<&str>) -> Result<Self, CommandError> {
        let mut options = Self { pattern: None, count: SCAN_COUNT, is_names_only: false };
        let mut index = 3;
        while index < args.len() {
            let has_operand = index + 1 < args.len();
            if args.is(index, "count") && has_operand {
                let count = args.int(index + 1)?;
                options.count =
                    usize::try_from(count).ok().filter(|&count| count > 0).ok_or(CommandError::Syntax)?;
                index += 2;
            } else if args.is(index, "match") && has_operand {
                options.pattern = Some(args.get(index + 1)).filter(|pattern| !glob::is_match_all(pattern));
                index += 2;
            } else if names_only.is_some_and(|word| args.is(index, word)) {
                options.is_names_only = true;
                index += 1;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    /// Whether an element's name fits the pattern.
    pub(super) fn accepts(&self, name: Elem<'_>) -> bool {
        let Some(pattern) = self.pattern else { return true };
        glob::matches(pattern, name.render(&mut ElemBuf::new()), Case::Sensitive)
    }
}

/// Argument `index` as a scan's cursor: digits, with a plus sign in front if the client likes.
pub(super) fn cursor_arg(args: Args<'_>, index: usize) -> Result<u64, CommandError> {
    let cursor = std::str::from_utf8(args.get(index)).ok().and_then(|text| text.parse().ok());
    cursor.ok_or(CommandError::Text("ERR invalid cursor"))
}

/// The reply of a scan without elements, for a key that is not there.
pub(super) fn empty_scan(out: &mut Writer) {
    out.array(2);
    out.bulk(b"0");
    out.array(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_resp::Proto;

    #[test]
    fn a_reply_of_repeated_elements_is_bounded() {
        let mut out = Writer::new(Proto::Resp2);
        let mut draw = |out: &mut Writer, count| (0..count).for_each(|_| out.bulk(b"12345"));
        assert_eq!(draw_within(11 * 150, &mut out, 150, &mut draw), Ok(()));
        assert_eq!(out.len_bytes(), 11 * 150);
        let refused = draw_within(10_000, &mut out, u64::MAX, &mut draw);
        assert_eq!(refused, Err(CommandError::Text("ERR value is out of range")));
        assert!(out.len_bytes() < 20_000);
    }
}
