//! The differences between servers that are right as they are.
//!
//! Owns: one row for each, with its reason. A row is as narrow as it can be: it names the commands, and often what the
//! replies have to look like. Towline follows Redis 7.2, so rows about Redis 7.0 and about later servers apply to it as
//! they apply between those; docs/compatibility.md explains what a user notices.

use crate::process::ServerKind;
use crate::value::Value;

/// A command on which two servers disagree.
struct Case<'a> {
    kinds: [ServerKind; 2],
    /// The command's name in upper case.
    name: String,
    arguments: &'a [Vec<u8>],
    replies: [&'a Value; 2],
}

/// One allowed difference.
#[derive(Debug)]
pub struct KnownDifference {
    /// A short name for summaries.
    pub name: &'static str,
    /// Why it is right.
    pub reason: &'static str,
    /// Whether the two servers hold different data afterwards, so that there is nothing left to compare.
    pub diverges: bool,
    applies: fn(&Case<'_>) -> bool,
}

/// Every allowed difference.
pub const KNOWN: &[KnownDifference] = &[
    KnownDifference {
        name: "double-format",
        reason: "Redis 7.0 prints doubles with 17 digits, later servers with the fewest that are exact",
        diverges: false,
        applies: |case| case.one_is(ServerKind::Redis70) && case.are_close_numbers(),
    },
    KnownDifference {
        name: "double-format-in-scan",
        reason: "ZSCAN of a large sorted set prints scores with 17 digits in every C server, of a small one with the \
                 fewest that are exact; Towline does the latter always",
        diverges: false,
        applies: |case| {
            let has_odd_pair = case.one_is(ServerKind::Redis70) || case.one_is(ServerKind::Towline);
            case.is_one_of(&["ZSCAN"]) && has_odd_pair && case.are_scans_of_close_numbers()
        },
    },
    KnownDifference {
        name: "options-before-key",
        reason: "Redis 7.0 looks at the key before it checks the numbers and options of these commands, later servers at \
                 different points after",
        diverges: true,
        applies: |case| {
            let is_one_odd = case.one_is(ServerKind::Redis70) || case.one_is(ServerKind::Valkey91);
            is_one_odd && case.is_one_of(&["GETEX", "BITCOUNT", "BITPOS"]) && case.has_error("")
        },
    },
    KnownDifference {
        name: "scan-cursor",
        reason: "servers disagree on what a malformed cursor is, and on whether the cursor or the other options come first",
        diverges: false,
        applies: |case| case.is_one_of(&["SCAN", "HSCAN", "SSCAN", "ZSCAN"]) && case.has_odd_cursor(),
    },
    KnownDifference {
        name: "scan-type-name",
        reason: "newer servers refuse an unknown type name in SCAN TYPE, Redis 7 finds nothing",
        diverges: false,
        applies: |case| case.is_one_of(&["SCAN"]) && case.has_error("unknown type name"),
    },
    KnownDifference {
        name: "timeout-range",
        reason: "Redis 7.0 calls an infinite timeout negative, later servers out of range",
        diverges: false,
        applies: |case| case.one_is(ServerKind::Redis70) && case.has_error("timeout is"),
    },
    KnownDifference {
        name: "zrank-withscore",
        reason: "Redis 7.0 has no WITHSCORE for ZRANK and ZREVRANK and calls a third argument one too many",
        diverges: false,
        applies: |case| {
            case.is_one_of(&["ZRANK", "ZREVRANK"]) && case.one_is(ServerKind::Redis70) && case.has_error("")
        },
    },
    KnownDifference {
        name: "geo-member-missing",
        reason: "Redis 7.0 names a missing member undecodable, later servers name the member",
        diverges: false,
        applies: |case| {
            case.name.starts_with("GEO") && case.has_error("could not decode requested zset member")
        },
    },
    KnownDifference {
        name: "sort-blank-number",
        reason: "newer number parsers do not skip leading blanks",
        diverges: true,
        applies: |case| {
            case.is_one_of(&["SORT", "SORT_RO"]) && case.has_error("can't be converted into double")
        },
    },
    KnownDifference {
        name: "not-in-multi-text",
        reason: "Valkey 9 words the refusal of MULTI and WATCH inside a transaction differently",
        diverges: false,
        applies: |case| {
            case.is_one_of(&["MULTI", "WATCH"])
                && case.one_is(ServerKind::Valkey91)
                && case.has_error("not allowed inside a transaction")
        },
    },
    KnownDifference {
        name: "readonly-standalone",
        reason: "Valkey 9 accepts READONLY and READWRITE outside cluster mode",
        diverges: false,
        applies: |case| {
            case.is_one_of(&["READONLY", "READWRITE"]) && case.has_error("cluster support disabled")
        },
    },
    KnownDifference {
        name: "getkeys-arity",
        reason: "Redis 7.0 wants an argument after the command that COMMAND GETKEYS takes apart",
        diverges: false,
        applies: |case| {
            case.is_one_of(&["COMMAND"])
                && case.one_is(ServerKind::Redis70)
                && case.has_error("command|getkeys")
        },
    },
    KnownDifference {
        name: "client-kill-id",
        reason: "the text for an id that is no number changed",
        diverges: false,
        applies: |case| case.is_one_of(&["CLIENT"]) && case.has_error("client-id should be greater than 0"),
    },
    KnownDifference {
        name: "extreme-index",
        reason: "the smallest and largest 64-bit numbers as an index or count are refused by later servers, or wrap in them",
        diverges: true,
        applies: |case| {
            let extremes = [&b"-9223372036854775808"[..], b"9223372036854775807"];
            let is_extreme = case.arguments.iter().any(|argument| extremes.contains(&argument.as_slice()));
            is_extreme && case.is_one_of(&["LSET", "LREM", "LPOS", "LINDEX", "LINSERT"])
        },
    },
    KnownDifference {
        name: "list-encoding",
        reason: "Redis 7.0 has no listpack encoding for short lists and small sets",
        diverges: false,
        applies: |case| {
            case.is_one_of(&["OBJECT"]) && case.one_is(ServerKind::Redis70) && !case.has_error("")
        },
    },
    KnownDifference {
        name: "string-encoding",
        reason: "the length up to which a string is embedded, and what turns it raw, differ with the size of the header; \
                 an integer that came out of INCRBYFLOAT is an int in Towline",
        diverges: false,
        applies: |case| case.are_encodings(&["raw", "embstr", "int"], &["raw", "embstr"]),
    },
    KnownDifference {
        name: "compact-for-longer",
        reason: "Redis leaves the compact encoding earlier than it has to in SORT of a sorted set and in stored unions",
        diverges: false,
        applies: |case| {
            case.one_is(ServerKind::Towline)
                && case.are_encodings(&["listpack", "intset"], &["skiplist", "hashtable"])
        },
    },
    KnownDifference {
        name: "field-ttl-encoding",
        reason: "Redis 8 has encodings of their own for hashes whose fields expire",
        diverges: false,
        applies: |case| case.are_encodings(&["listpack", "hashtable"], &["listpackex"]),
    },
    KnownDifference {
        name: "sort-collation",
        reason: "SORT ALPHA compares with the C library's collation, for which a string ends at its first zero byte",
        diverges: true,
        applies: |case| {
            let has_zero = |value: &Value| value.bytes().is_some_and(|bytes| bytes.contains(&0));
            let is_affected = |reply: &&Value| reply.items().is_some_and(|items| items.iter().any(has_zero));
            case.is_one_of(&["SORT", "SORT_RO"]) && case.replies.iter().any(is_affected)
        },
    },
    KnownDifference {
        name: "hyperloglog-error-order",
        reason: "of several unusable sources Redis names the first, Towline the one with the graver fault",
        diverges: false,
        applies: |case| case.is_one_of(&["PFCOUNT", "PFMERGE"]) && case.are_errors(),
    },
    KnownDifference {
        name: "hyperloglog-debug-of-garbage",
        reason: "Redis prints the registers of a sparse value with garbage behind it, Towline refuses it",
        diverges: false,
        applies: |case| case.is_one_of(&["PFDEBUG"]) && case.has_error("Corrupted HLL object"),
    },
    KnownDifference {
        name: "hexadecimal-number",
        reason: "C's strtold reads hexadecimal numbers, so INCRBYFLOAT takes a stored 0x10 for 16; Towline refuses it",
        diverges: true,
        applies: |case| {
            case.is_one_of(&["INCRBYFLOAT", "HINCRBYFLOAT"])
                && case.one_is(ServerKind::Towline)
                && case.has_error("not a")
                && case.has_error("float")
        },
    },
    KnownDifference {
        name: "zero-byte-in-number",
        reason: "for C's strtod a score bound ends at its first zero byte, Towline refuses it",
        diverges: true,
        applies: |case| {
            let has_zero = case.arguments.iter().any(|argument| argument.contains(&0));
            has_zero && case.one_is(ServerKind::Towline) && case.has_error("min or max is not a float")
        },
    },
    KnownDifference {
        name: "negative-zero",
        reason: "only the large encoding of sorted sets keeps a zero's sign, and Redis leaves the compact one earlier than it \
                 has to in SORT of a sorted set",
        diverges: false,
        applies: |case| {
            case.one_is(ServerKind::Towline) && case.are_close_numbers() && case.has_negative_zero()
        },
    },
    KnownDifference {
        name: "geo-ties",
        reason: "of members at the same place, which come first and which COUNT leaves out is open",
        diverges: true,
        applies: |case| {
            let has_count = case.arguments.iter().any(|argument| argument.eq_ignore_ascii_case(b"COUNT"));
            case.name.starts_with("GEO") && has_count && case.swaps_members()
        },
    },
    KnownDifference {
        name: "same-millisecond",
        reason: "whether a relative time to live is greater or less than the same one a moment ago depends on whether a \
                 millisecond has passed in between",
        diverges: false,
        applies: |case| {
            let has = |word: &[u8]| case.arguments.iter().any(|argument| argument.eq_ignore_ascii_case(word));
            let is_relative = case.is_one_of(&["EXPIRE", "PEXPIRE"]) && (has(b"GT") || has(b"LT"));
            is_relative && case.replies.iter().all(|reply| reply.int().is_some())
        },
    },
    KnownDifference {
        name: "field-ttl-arity",
        reason: "Redis 8 counts the arguments of its newest commands in the middle of their options",
        diverges: false,
        applies: |case| {
            let is_new = case.is_one_of(&["HGETEX", "HSETEX", "HGETDEL"]) && case.one_is(ServerKind::Redis82);
            is_new && case.are_errors() && case.has_error("wrong number of arguments")
        },
    },
    KnownDifference {
        name: "zero-byte-in-error",
        reason: "error texts of C servers end at a zero byte that a name has, Towline's have it all",
        diverges: false,
        applies: |case| {
            let has_zero = case.arguments.iter().any(|argument| argument.contains(&0));
            case.one_is(ServerKind::Towline) && has_zero && case.are_errors()
        },
    },
    KnownDifference {
        name: "geo-coordinate-format",
        reason: "Valkey prints coordinates with 17 decimals, Redis 8 with the fewest digits that are exact",
        diverges: false,
        applies: |case| case.name.starts_with("GEO") && case.are_near_numbers(),
    },
    KnownDifference {
        name: "client-name-check",
        reason: "later servers check a client's name only up to its first zero byte",
        diverges: true,
        applies: |case| {
            let has_zero = case.arguments.iter().any(|argument| argument.contains(&0));
            case.is_one_of(&["CLIENT"]) && has_zero && case.has_error("cannot contain")
        },
    },
    KnownDifference {
        name: "negative-limit",
        reason: "a negative offset in LIMIT finds nothing in Redis and counts from the start in Valkey",
        diverges: true,
        applies: |case| {
            let names = [
                "ZRANGE",
                "ZRANGESTORE",
                "ZRANGEBYLEX",
                "ZREVRANGEBYLEX",
                "ZRANGEBYSCORE",
                "ZREVRANGEBYSCORE",
            ];
            case.is_one_of(&names) && case.one_is(ServerKind::Valkey91) && !case.has_error("")
        },
    },
    KnownDifference {
        name: "geo-polygon",
        reason: "where no area is given, Valkey 9 mentions BYPOLYGON",
        diverges: false,
        applies: |case| case.name.starts_with("GEO") && case.has_error("BYRADIUS, BYBOX and BYPOLYGON"),
    },
    KnownDifference {
        name: "exec-after-nested-multi",
        reason: "in Valkey 9 a refused MULTI or WATCH aborts the transaction, in Redis it does not",
        diverges: true,
        applies: |case| {
            case.is_one_of(&["EXEC"]) && case.one_is(ServerKind::Valkey91) && case.has_error("EXECABORT")
        },
    },
    KnownDifference {
        name: "field-ttl-texts",
        reason: "Redis 8 and Valkey 9 added field expiry independently, with different checks and error texts",
        diverges: true,
        applies: |case| {
            let names = [
                "HEXPIRE",
                "HPEXPIRE",
                "HEXPIREAT",
                "HPEXPIREAT",
                "HTTL",
                "HPTTL",
                "HEXPIRETIME",
                "HPEXPIRETIME",
                "HPERSIST",
                "HGETEX",
                "HSETEX",
            ];
            case.is_one_of(&names) && case.one_is(ServerKind::Valkey91) && case.has_error("")
        },
    },
];

/// The row that explains the two replies, if there is one.
pub fn find(
    kinds: [ServerKind; 2],
    command: &[Vec<u8>],
    replies: [&Value; 2],
) -> Option<&'static KnownDifference> {
    let name = command.first().map(|name| String::from_utf8_lossy(name).to_uppercase()).unwrap_or_default();
    let case = Case { kinds, name, arguments: command, replies };
    KNOWN.iter().find(|known| (known.applies)(&case))
}

impl Case<'_> {
    /// Whether one side is `kind` and the other is not.
    fn one_is(&self, kind: ServerKind) -> bool {
        (self.kinds[0] == kind) != (self.kinds[1] == kind)
    }

    /// Whether the command is one of `names`.
    fn is_one_of(&self, names: &[&str]) -> bool {
        names.contains(&self.name.as_str())
    }

    /// Whether a reply is an error that contains `text`.
    fn has_error(&self, text: &str) -> bool {
        self.replies.iter().any(|reply| reply.error().is_some_and(|error| error.contains(text)))
    }

    /// Whether the cursor is anything but plain digits, or larger than one that a server gives out.
    fn has_odd_cursor(&self) -> bool {
        const CURSOR_DIGITS_MAX: usize = 18;
        let cursor = self.arguments.get(if self.name == "SCAN" { 1 } else { 2 });
        cursor.is_some_and(|cursor| {
            cursor.is_empty() || cursor.len() > CURSOR_DIGITS_MAX || !cursor.iter().all(u8::is_ascii_digit)
        })
    }

    /// Whether both replies are errors.
    fn are_errors(&self) -> bool {
        self.replies.iter().all(|reply| reply.error().is_some())
    }

    /// Whether this asks for encodings and the answers are one of `compact` and one of `full`, in any order.
    fn are_encodings(&self, compact: &[&str], full: &[&str]) -> bool {
        let is = |reply: &Value, names: &[&str]| {
            reply.bytes().is_some_and(|bytes| names.iter().any(|name| name.as_bytes() == bytes))
        };
        let [a, b] = self.replies;
        self.is_one_of(&["OBJECT"]) && ((is(a, compact) && is(b, full)) || (is(a, full) && is(b, compact)))
    }

    /// Whether the replies are equal once every number in them is read as one.
    fn are_close_numbers(&self) -> bool {
        same_but_for_numbers(self.replies[0], self.replies[1], 0.0)
    }

    /// Whether both are a scan's replies that are equal once put in order and once every number in them is read as one.
    fn are_scans_of_close_numbers(&self) -> bool {
        let pairs = |reply: &Value| {
            let mut pairs: Vec<Vec<Value>> =
                reply.items()?.get(1)?.items()?.chunks(2).map(<[Value]>::to_vec).collect();
            pairs.sort();
            Some(Value::Array(pairs.into_iter().map(Value::Array).collect()))
        };
        let [a, b] = self.replies.map(pairs);
        a.zip(b).is_some_and(|(a, b)| same_but_for_numbers(&a, &b, 0.0))
    }

    /// Whether a reply is, or has somewhere, a negative zero.
    fn has_negative_zero(&self) -> bool {
        fn has(value: &Value) -> bool {
            match value.items() {
                Some(items) => items.iter().any(has),
                None => value.number().is_some_and(|number| number == 0.0 && number.is_sign_negative()),
            }
        }
        self.replies.iter().any(|reply| has(reply))
    }

    /// Whether the replies differ in at most two members, or in the order of at most four, and not in what is said about
    /// them.
    fn swaps_members(&self) -> bool {
        let [Some(a), Some(b)] = self.replies.map(Value::items) else { return false };
        let is_same_place = |(a, b): &(&Value, &Value)| match (a.items(), b.items()) {
            (Some([_, a @ ..]), Some([_, b @ ..])) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_but_for_numbers(a, b, 1e-16))
            }
            (None, None) => true,
            _ => false,
        };
        let is_near = |(a, b): &(&Value, &Value)| same_but_for_numbers(a, b, 1e-16);
        let members = |items: &[Value]| {
            let mut members: Vec<Value> = items
                .iter()
                .map(|item| item.items().and_then(<[Value]>::first).unwrap_or(item).clone())
                .collect();
            members.sort();
            members
        };
        let moved_max = if members(a) == members(b) { 4 } else { 2 };
        a.len() == b.len()
            && a.iter().zip(b).all(|pair| is_same_place(&pair))
            && a.iter().zip(b).filter(|pair| !is_near(pair)).count() <= moved_max
    }

    /// Whether the replies are equal once numbers are equal that differ by less than seventeen decimals show.
    fn are_near_numbers(&self) -> bool {
        same_but_for_numbers(self.replies[0], self.replies[1], 1e-16)
    }
}

fn same_but_for_numbers(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a.items(), b.items()) {
        (Some(x), Some(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_but_for_numbers(x, y, tolerance))
        }
        _ => {
            a == b
                || matches!((a.number(), b.number()), (Some(x), Some(y)) if (x - y).abs() <= tolerance || x == y)
        }
    }
}
