//! `LCS`: the longest common subsequence of two strings.
//!
//! Owns: the algorithm and its memory bound. Of several longest subsequences the one is answered that Redis's walk back
//! through the table of lengths finds; here the table keeps one bit per cell, which way that walk turns.

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_resp::writer::Writer;

#[derive(Debug, Default)]
struct Options {
    is_len: bool,
    is_idx: bool,
    with_len: bool,
    len_min: usize,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut index = 3;
        while index < args.len() {
            if args.is(index, "IDX") {
                options.is_idx = true;
            } else if args.is(index, "LEN") {
                options.is_len = true;
            } else if args.is(index, "WITHMATCHLEN") {
                options.with_len = true;
            } else if args.is(index, "MINMATCHLEN") && index + 1 < args.len() {
                index += 1;
                options.len_min = usize::try_from(args.int(index)?).unwrap_or(0);
            } else {
                return Err(CommandError::Syntax);
            }
            index += 1;
        }
        if options.is_idx && options.is_len {
            return Err(CommandError::Text(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]`
fn lcs(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (a, b) = (operand(ctx, args.get(1))?, operand(ctx, args.get(2))?);
    let options = Options::parse(args)?;
    let lengths_bytes = (a.len() as u64 + 1).saturating_mul(b.len() as u64 + 1).saturating_mul(4);
    if lengths_bytes > ctx.server.config().proto_max_bulk_len {
        return Err(CommandError::Text(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    if options.is_len {
        ctx.out.int(Turns::new(&a, &b, false).len as i64);
        return Ok(());
    }
    let turns = Turns::new(&a, &b, true);
    let ranges = turns.matches(&a, &b);
    if options.is_idx {
        reply_ranges(ctx.out, &ranges, turns.len, &options);
    } else {
        let text: Vec<u8> =
            ranges.iter().rev().flat_map(|range| &a[range.a..range.a + range.len]).copied().collect();
        ctx.out.bulk(&text);
    }
    Ok(())
}

fn operand(ctx: &mut Ctx<'_>, key: &[u8]) -> Result<Vec<u8>, CommandError> {
    match ctx.ks.string(key) {
        Ok(text) => Ok(text.map(|text| text.to_vec()).unwrap_or_default()),
        Err(_) => Err(CommandError::Text("ERR The specified keys must contain string values")),
    }
}

fn reply_ranges(out: &mut Writer, ranges: &[Match], len: usize, options: &Options) {
    let shown = ranges.iter().filter(|range| range.len >= options.len_min);
    out.map(2);
    out.bulk(b"matches");
    out.array(shown.clone().count());
    for range in shown {
        out.array(if options.with_len { 3 } else { 2 });
        for start in [range.a, range.b] {
            out.array(2);
            out.int(start as i64);
            out.int((start + range.len - 1) as i64);
        }
        if options.with_len {
            out.int(range.len as i64);
        }
    }
    out.bulk(b"len");
    out.int(len as i64);
}

/// A stretch that both strings have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Match {
    /// Where it begins in the first string.
    a: usize,
    /// Where it begins in the second string.
    b: usize,
    len: usize,
}

/// Which way the walk back from a pair of prefixes turns, and the length of the whole.
struct Turns {
    /// Bit `(i - 1) * width + j - 1` is set when the first string's prefix gets shorter.
    bits: Vec<u64>,
    width: usize,
    len: usize,
}

impl Turns {
    /// Fills the table; without `keeps` only the length.
    fn new(a: &[u8], b: &[u8], keeps: bool) -> Self {
        let width = b.len();
        let mut bits = vec![0; if keeps { (a.len() * width).div_ceil(64) } else { 0 }];
        // Lengths for the prefix of `a` before, overwritten from the left with those of the current one.
        let mut lengths = vec![0_u32; width + 1];
        for (i, &left) in a.iter().enumerate() {
            let mut diagonal = 0;
            for (j, &right) in b.iter().enumerate() {
                let (above, beside) = (lengths[j + 1], lengths[j]);
                if left == right {
                    lengths[j + 1] = diagonal + 1;
                } else {
                    lengths[j + 1] = above.max(beside);
                    if keeps && above > beside {
                        let at = i * width + j;
                        bits[at / 64] |= 1 << (at % 64);
                    }
                }
                diagonal = above;
            }
        }
        Self { bits, width, len: lengths[width] as usize }
    }

    fn shortens_a(&self, i: usize, j: usize) -> bool {
        let at = (i - 1) * self.width + j - 1;
        self.bits[at / 64] >> (at % 64) & 1 == 1
    }

    /// The stretches of the subsequence, from the end of the strings to their beginning.
    fn matches(&self, a: &[u8], b: &[u8]) -> Vec<Match> {
        let mut found: Vec<Match> = Vec::new();
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                match found.last_mut() {
                    Some(last) if last.a == i + 1 && last.b == j + 1 => {
                        *last = Match { a: i, b: j, len: last.len + 1 };
                    }
                    _ => found.push(Match { a: i, b: j, len: 1 }),
                }
            } else if self.shortens_a(i, j) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        found
    }
}

pub(super) const ROWS: &[Row] = &[keys("lcs", lcs)];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    fn server() -> Server {
        let mut server = Server::new();
        server.line("MSET {k}1 ohmytext {k}2 mynewtext");
        server
    }

    #[test]
    fn text_and_length() {
        let mut server = server();
        assert_eq!(server.line("LCS {k}1 {k}2"), "$6 mytext");
        assert_eq!(server.line("LCS {k}1 {k}2 LEN"), ":6");
        assert_eq!(server.line("LCS {k}1 none"), "$0");
        assert_eq!(server.line("LCS none none LEN"), ":0");
    }

    #[test]
    fn ranges() {
        let mut server = server();
        assert_eq!(
            server.line("LCS {k}1 {k}2 IDX"),
            "*4 $7 matches *2 *2 *2 :4 :7 *2 :5 :8 *2 *2 :2 :3 *2 :0 :1 $3 len :6"
        );
        assert_eq!(
            server.line("LCS {k}1 {k}2 IDX MINMATCHLEN 4 WITHMATCHLEN"),
            "*4 $7 matches *1 *3 *2 :4 :7 *2 :5 :8 :4 $3 len :6"
        );
        let mut server = server.resp3();
        assert_eq!(server.line("LCS {k}1 none IDX"), "%2 $7 matches *0 $3 len :0");
    }

    #[test]
    fn arguments_that_do_not_fit() {
        let mut server = server();
        server.line("RPUSH l 1");
        assert_eq!(server.line("LCS {k}1 l"), "-ERR The specified keys must contain string values");
        assert_eq!(server.line("LCS {k}1 {k}2 FOO"), "-ERR syntax error");
        assert_eq!(server.line("LCS {k}1 {k}2 MINMATCHLEN"), "-ERR syntax error");
        assert_eq!(
            server.line("LCS {k}1 {k}2 MINMATCHLEN x"),
            "-ERR value is not an integer or out of range"
        );
        assert_eq!(
            server.line("LCS {k}1 {k}2 IDX LEN"),
            "-ERR If you want both the length and indexes, please just use IDX."
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut server = Server::new();
        server.run(&["SET", "a", &"x".repeat(20_000)]);
        assert_eq!(
            server.line("LCS a a"),
            "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
        );
    }
}
