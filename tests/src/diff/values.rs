//! What arguments are made of: small pools, so that commands meet, and the edges where servers go wrong.
//!
//! Owns: the random draw, every `$class` of the templates, and the damage done to well-formed commands. Pools leave out
//! what would make a server allocate hundreds of megabytes or depend on the moment of execution.

use super::dialect::Dialects;
use super::template::Arguments;
use std::collections::BTreeMap;
use towline_sansio::Prng;

/// Integers and what looks like them.
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "5",
    "10",
    "-5",
    "100",
    "-100",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "4294967296",
    "-0",
    "+1",
    "01",
    " 1",
    "1 ",
    "",
    "abc",
    "1.5",
    "1e3",
    "0x10",
    "inf",
    "nan",
    "12a",
    "--1",
    "-",
];
const FLOATS: &[&str] = &[
    "0",
    "1",
    "2",
    "-1",
    "1.5",
    "-1.5",
    "3.0",
    "3.00",
    "0.1",
    "0.2",
    "0.3",
    "10",
    "1e5",
    "1E5",
    "1e-5",
    "1e17",
    "1e21",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "5e-324",
    "1e400",
    "inf",
    "-inf",
    "+inf",
    "Inf",
    "infinity",
    "-Infinity",
    "nan",
    "NaN",
    "-nan",
    "",
    "abc",
    "1 ",
    "-0",
    "-0.0",
    ".5",
    "5.",
    "1,5",
    "+3",
    "1e",
    "e1",
    "--1",
    "123456789012345678",
    "3.14159265358979323846",
    "1.0000000000000002",
    "4503599627370496.5",
    "99999999999999999999",
    "0.000001",
    "1234567.125",
];
const BOUNDS: &[&str] = &[
    "-inf", "+inf", "inf", "0", "1", "2", "3", "-1", "(0", "(1", "(2", "(-1", "1.5", "(1.5", "(inf", "(-inf",
    "(", "", "abc", "nan", "(nan", "((1", "[1", "1e3", "10", "100", "-10", "(+inf",
];
/// Classes that are a small number most of the time: name, least, greatest, and the edges.
const RANGES: &[(&str, i64, i64, &[&str])] = &[
    ("index", -6, 6, &["abc", "", "9223372036854775807", "-9223372036854775808", "1.5"]),
    ("count", 1, 5, &["0", "-1", "abc", "", "9223372036854775807", "9223372036854775808", "1.5", "-2"]),
    ("offset", 0, 40, &["-1", "4294967296", "abc", "9223372036854775807", "600000000", ""]),
    ("bitoffset", 0, 130, &["-1", "4294967296", "abc", "", "9223372036854775808"]),
];
/// Classes that are one of a few texts.
const POOLS: &[(&str, &[&str])] = &[
    ("lexkey", &["lex1", "lex1", "lex2", "lex-none"]),
    (
        "lex",
        &[
            "-", "+", "[a", "(a", "[b", "(b", "[c", "[m1", "(m1", "[m3", "(m5", "[", "(", "a", "", "[zz",
            "(\u{ff}", "--", "[-", "+a",
        ],
    ),
    (
        "pattern",
        &[
            "*", "?*", "k*", "m*", "f*", "*1", "[a-m]*", "[^a]*", "h?llo", "k[12]", "\\*", "", "[", "k1",
            "*\\", "[z-a]", "**", "?", "[a-]",
        ],
    ),
    ("cursor", &["0", "0", "0", "0", "0", "abc", "-1", "", "18446744073709551616", "0x0", " 0"]),
    ("timeout", &["0.001", "0.001", "0.002", "-1", "abc", "inf", "nan", "1e400", ""]),
    ("bit", &["0", "1", "0", "1", "2", "-1", "abc", ""]),
    (
        "ttl",
        &[
            "100",
            "1000",
            "500",
            "100000",
            "0",
            "-1",
            "abc",
            "",
            "9223372036854775807",
            "1.5",
            "9223372036854775",
            "-9223372036854775808",
        ],
    ),
    ("pttl", &["100000", "1000000", "500000", "0", "-1", "abc", "9223372036854775807", "1.5", ""]),
    ("at", &["33177117420", "4102444800", "1", "0", "-1", "abc", "9223372036854775807", ""]),
    ("pat", &["33177117420000", "4102444800000", "1", "0", "-1", "abc", "9223372036854775807"]),
    ("db", &["0", "0", "1", "2", "15", "16", "-1", "abc", ""]),
    ("type", &["string", "list", "set", "zset", "hash", "stream", "nosuch", "STRING", ""]),
    ("unit", &["m", "km", "ft", "mi", "KM", "parsec", ""]),
    ("distance", &["100", "200", "1000", "5000", "0", "1", "0.5", "-1", "abc", "20000", "nan"]),
    (
        "bittype",
        &["u8", "i8", "u1", "i5", "u63", "i64", "u64", "i65", "u0", "i0", "x8", "u", "", "i16", "U8", "u 8"],
    ),
    ("bitat", &["0", "1", "7", "8", "100", "#0", "#1", "#3", "-1", "#-1", "abc", "#", "1000", "4294967296"]),
];
const STRINGS: &[&str] = &[
    "",
    "a",
    "b",
    "foo",
    "bar",
    "hello world",
    "0",
    "1",
    "-1",
    "10",
    "3.0",
    "1.5",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "007",
    " 5",
    "abcdefghijklmnopqrstuvwxyz0123456789abcdefgh",
    "abcdefghijklmnopqrstuvwxyz0123456789abcdefghi",
    "\u{e9}t\u{e9}",
    "(nil)",
    "OK",
    "*",
    "$-1",
    "\r\n",
    "a\r\nb",
    "'q'",
    "\"dq\"",
    "inf",
    "1e10",
];
const BINARY: &[&[u8]] =
    &[b"\0", b"\xff\xfe", b"a\0b", b"\x80\x00\x7f", b"\xc3(", b"\x00\x00\x00\x00\x00\x00\x00\x01"];
const COORDINATES: &[&str] = &[
    "13.361389 38.115556",
    "15.087269 37.502669",
    "0 0",
    "-180 -85.05112878",
    "180 85.05112878",
    "181 0",
    "0 86",
    "2.3522 48.8566",
    "-74.006 40.7128",
    "139.6917 35.6895",
    "abc 1",
    "1 abc",
    "nan 0",
    "2.35 48.85",
    "2.3522219 48.856614",
    "inf 0",
];
/// What a damaged command gets in place of, or in addition to, an argument.
const STRAY: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "abc",
    "NX",
    "XX",
    "GET",
    "LIMIT",
    "COUNT",
    "WITHSCORES",
    "STORE",
    "9223372036854775808",
    "k1",
    "*",
    "(",
    "nan",
    "EX",
    "KEEPTTL",
    "10",
];

/// The random source together with everything that an expansion remembers.
pub(super) struct Draw<'a> {
    prng: &'a mut Prng,
    dialects: Dialects,
    /// The letter that starts this topic's own keys.
    own: char,
    /// Values of numbered classes such as `$key1`, kept through one unit.
    named: BTreeMap<String, Arguments>,
}

impl<'a> Draw<'a> {
    pub(super) fn new(prng: &'a mut Prng, dialects: Dialects, own: char) -> Self {
        Self { prng, dialects, own, named: BTreeMap::new() }
    }

    pub(super) fn dialects(&self) -> Dialects {
        self.dialects
    }

    pub(super) fn forget_names(&mut self) {
        self.named.clear();
    }

    /// A number in `0..bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.prng.below(bound as u64)).expect("invariant: below a usize")
    }

    /// True in `percent` of all cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, pool: &[T]) -> T {
        pool[self.below(pool.len())]
    }

    fn text(&mut self, pool: &[&str]) -> Vec<u8> {
        self.pick(pool).as_bytes().to_vec()
    }

    /// A word of the template, in another case now and then.
    pub(super) fn word(&mut self, word: &str) -> Vec<u8> {
        match self.below(16) {
            0 => word.to_ascii_lowercase().into_bytes(),
            1 => {
                let flip =
                    |(index, c): (usize, char)| if index % 2 == 0 { c.to_ascii_lowercase() } else { c };
                word.chars().enumerate().map(flip).collect::<String>().into_bytes()
            }
            _ => word.as_bytes().to_vec(),
        }
    }

    /// One or more arguments of a class. An unknown class is a mistake in a table and panics.
    pub(super) fn class(&mut self, class: &str, out: &mut Arguments) {
        let base = class.trim_end_matches(|c: char| c.is_ascii_digit());
        if base.len() < class.len() {
            if let Some(known) = self.named.get(class) {
                out.extend(known.iter().cloned());
                return;
            }
            let mut drawn = Vec::new();
            self.class(base, &mut drawn);
            out.extend(drawn.iter().cloned());
            self.named.insert(class.to_owned(), drawn);
            return;
        }
        match base {
            "nkeys" => self.counted_keys(out),
            "fields" => self.counted_fields(out),
            "fieldvalues" => self.counted_field_values(out),
            "members" => {
                for _ in 0..=self.below(12) {
                    let member = self.member();
                    out.push(member);
                }
            }
            "lonlat" => out.extend(self.pick(COORDINATES).split(' ').map(|part| part.as_bytes().to_vec())),
            _ => {
                let argument = self.single(base);
                out.push(argument);
            }
        }
    }

    fn single(&mut self, class: &str) -> Vec<u8> {
        match class {
            "key" => self.key(),
            "value" => self.value(),
            "member" => self.member(),
            "field" => self.field(),
            "int" => self.mostly_small(INTEGERS, -3, 12),
            "delta" => self.mostly_small(INTEGERS, -20, 20),
            "float" => self.mostly_small(FLOATS, -5, 5),
            "score" => self.mostly_small(FLOATS, 0, 6),
            "bound" => self.mostly_small(BOUNDS, -1, 6),
            "stray" => self.text(STRAY),
            "empty" => Vec::new(),
            _ => match RANGES.iter().find(|(name, ..)| *name == class) {
                Some((_, low, high, edges)) => self.mostly_small(edges, *low, *high),
                None => {
                    let pool = POOLS.iter().find(|(name, _)| *name == class);
                    let (_, choices) = pool.unwrap_or_else(|| panic!("there is no class ${class}"));
                    self.text(choices)
                }
            },
        }
    }

    /// A small number four times out of five, else something of `edges`.
    fn mostly_small(&mut self, edges: &[&str], low: i64, high: i64) -> Vec<u8> {
        if self.chance(20) {
            return self.text(edges);
        }
        let span = usize::try_from(high - low + 1).expect("invariant: a non-empty range");
        let offset = i64::try_from(self.below(span)).expect("invariant: a small range");
        (low + offset).to_string().into_bytes()
    }

    /// One of the topic's few keys, sometimes a key of another topic, which often has another type.
    fn key(&mut self) -> Vec<u8> {
        match self.below(40) {
            0 => b"missing".to_vec(),
            1 => b"".to_vec(),
            2 => b"\x00\xff".to_vec(),
            3..=5 => format!("{}1", self.pick(&['s', 'l', 'h', 'e', 'z'])).into_bytes(),
            _ => {
                let number = 1 + self.below(4);
                format!("{}{number}", self.own).into_bytes()
            }
        }
    }

    fn value(&mut self) -> Vec<u8> {
        match self.below(20) {
            0 => self.pick(BINARY).to_vec(),
            1 => vec![b'x'; self.pick(&[63, 64, 65, 100, 1000, 5000])],
            2..=7 => self.below(50).to_string().into_bytes(),
            _ => self.text(STRINGS),
        }
    }

    fn member(&mut self) -> Vec<u8> {
        match self.below(12) {
            0 => self.value(),
            1..=4 => self.below(30).to_string().into_bytes(),
            5 => self.text(&["a", "b", "c", "", "zz", "-5", "70000", "-9000000000"]),
            _ => format!("m{}", 1 + self.below(24)).into_bytes(),
        }
    }

    fn field(&mut self) -> Vec<u8> {
        match self.below(16) {
            0 => self.value(),
            1 => self.text(&["", "10", "-1", "\u{e9}"]),
            _ => format!("f{}", 1 + self.below(14)).into_bytes(),
        }
    }

    /// `numkeys key...`, with a number that fits nine times out of ten.
    fn counted_keys(&mut self, out: &mut Arguments) {
        let count = 1 + self.below(3);
        let stated = if self.chance(10) { self.text(INTEGERS) } else { count.to_string().into_bytes() };
        out.push(stated);
        for _ in 0..count {
            let key = self.key();
            out.push(key);
        }
    }

    /// `numfields field...`
    fn counted_fields(&mut self, out: &mut Arguments) {
        let count = 1 + self.below(3);
        let stated = if self.chance(10) { self.text(INTEGERS) } else { count.to_string().into_bytes() };
        out.push(stated);
        for _ in 0..count {
            let field = self.field();
            out.push(field);
        }
    }

    /// `numfields field value...`
    fn counted_field_values(&mut self, out: &mut Arguments) {
        let count = 1 + self.below(3);
        let stated = if self.chance(10) { self.text(INTEGERS) } else { count.to_string().into_bytes() };
        out.push(stated);
        for _ in 0..count {
            let (field, value) = (self.field(), self.value());
            out.extend([field, value]);
        }
    }

    /// Damages a well-formed command: an argument too few, too many, out of place, or of the wrong kind.
    pub(super) fn damage(&mut self, command: &mut Arguments) {
        let last = command.len() - 1;
        let at = if last == 0 { 0 } else { 1 + self.below(last) };
        match self.below(5) {
            0 if last > 0 => {
                command.remove(at);
            }
            1 if last > 1 => command.swap(at, last),
            2 if last > 0 => command[at] = self.single("stray"),
            3 if last > 0 => command.truncate(at),
            _ => {
                let stray = self.single("stray");
                command.push(stray);
            }
        }
    }
}
