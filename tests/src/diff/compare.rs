//! Whether two replies to the same command say the same.
//!
//! Owns: what Redis leaves open. Some replies have no order, some depend on chance or on the clock. Everything else has
//! to be equal byte for byte, error texts included.

use super::program::command_name;
use super::template::Arguments;
use crate::value::Value;

/// What is left open in a command's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freedom {
    /// Nothing.
    None,
    /// The order of the items.
    Order,
    /// The order of pairs of items.
    PairOrder,
    /// The order of the items behind a cursor.
    ScanOrder { is_pairs: bool },
    /// A number, by so much; negative numbers have a meaning and are exact.
    Number(i64),
    /// The items; their count and types are not.
    Choice,
    /// The items and their types; their count is not.
    Count,
    /// All but the type.
    Kind,
}

/// Whether the replies agree on everything that the command does not leave open.
pub(super) fn agree(command: &Arguments, a: &Value, b: &Value) -> bool {
    if a == b {
        return true;
    }
    match freedom(command, a) {
        Freedom::None => false,
        Freedom::Order => sorted(a) == sorted(b),
        Freedom::PairOrder => sorted_pairs(a) == sorted_pairs(b),
        Freedom::ScanOrder { is_pairs } => match (a, b) {
            (Value::Array(a), Value::Array(b)) if a.len() == 2 && b.len() == 2 => {
                let is_same = if is_pairs {
                    sorted_pairs(&a[1]) == sorted_pairs(&b[1])
                } else {
                    sorted(&a[1]) == sorted(&b[1])
                };
                let is_whole = a[0] == b[0] && is_same;
                is_whole || !is_whole_scan(command)
            }
            _ => false,
        },
        Freedom::Number(tolerance) => numbers_agree(a, b, tolerance),
        Freedom::Choice => same_shape(a, b),
        Freedom::Count => {
            kind(a) == kind(b) && a.items().map(<[Value]>::len) == b.items().map(<[Value]>::len)
        }
        Freedom::Kind => kind(a) == kind(b) && !matches!(a, Value::Error(_)),
    }
}

fn freedom(command: &Arguments, reply: &Value) -> Freedom {
    let has = |word: &str| command.iter().any(|argument| argument.eq_ignore_ascii_case(word.as_bytes()));
    let second = command.get(1).map(|word| String::from_utf8_lossy(word).to_uppercase()).unwrap_or_default();
    match (command_name(command).as_str(), second.as_str()) {
        ("SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" | "KEYS" | "HKEYS" | "HVALS", _) => Freedom::Order,
        ("HGETALL", _) | ("CONFIG", "GET") => Freedom::PairOrder,
        ("SCAN" | "SSCAN", _) => Freedom::ScanOrder { is_pairs: false },
        ("HSCAN", _) => Freedom::ScanOrder { is_pairs: !has("NOVALUES") },
        ("ZSCAN", _) => Freedom::ScanOrder { is_pairs: true },
        ("TTL" | "EXPIRETIME", _) => Freedom::Number(1),
        ("PTTL" | "PEXPIRETIME", _) => Freedom::Number(2_000),
        ("HTTL" | "HEXPIRETIME", _) => Freedom::Number(1),
        ("HPTTL" | "HPEXPIRETIME", _) => Freedom::Number(2_000),
        ("SPOP" | "SRANDMEMBER" | "HRANDFIELD" | "ZRANDMEMBER", _) => Freedom::Choice,
        ("RANDOMKEY" | "TIME" | "LASTSAVE" | "SLOWLOG" | "LATENCY", _) => Freedom::Kind,
        ("COMMAND", "" | "DOCS" | "LIST" | "COUNT" | "INFO") | ("OBJECT", "HELP") => Freedom::Kind,
        // The offset of replication, and what an object's address and stored length are.
        ("ROLE", _) if !matches!(reply, Value::Error(_)) => Freedom::Choice,
        ("DEBUG", "OBJECT") => Freedom::Kind,
        ("OBJECT", "IDLETIME" | "REFCOUNT") | ("MEMORY", "USAGE") => Freedom::Kind,
        ("DUMP", _) if !reply.is_null() => Freedom::Kind,
        ("HELLO", _) if !matches!(reply, Value::Error(_)) => Freedom::Kind,
        // The order in which a search without ASC or DESC finds its members is open.
        ("GEOSEARCH" | "GEORADIUS" | "GEORADIUS_RO" | "GEORADIUSBYMEMBER" | "GEORADIUSBYMEMBER_RO", _)
            if !has("ASC") && !has("DESC") =>
        {
            if has("COUNT") {
                Freedom::Choice
            } else {
                Freedom::Order
            }
        }
        // Unsorted elements of a set come in any order.
        ("SORT" | "SORT_RO", _) if is_unsorted(command) && !matches!(reply, Value::Error(_)) => {
            Freedom::Count
        }
        // Elements of equal or missing weight come in the order in which the sort happens to leave them.
        ("SORT" | "SORT_RO", _) if has("BY") && has("ALPHA") && !matches!(reply, Value::Error(_)) => {
            if has("LIMIT") { Freedom::Choice } else { Freedom::Order }
        }
        _ => Freedom::None,
    }
}

/// Whether a sort has a pattern without a star, which means: do not sort.
fn is_unsorted(command: &Arguments) -> bool {
    let is_by = |pair: &&[Vec<u8>]| pair[0].eq_ignore_ascii_case(b"BY");
    command.windows(2).filter(is_by).any(|pair| !pair[1].contains(&b'*'))
}

/// Whether a scan was asked for everything at once. Smaller steps, and those from the middle, are as the table's layout says.
fn is_whole_scan(command: &Arguments) -> bool {
    let is_key_first = command_name(command) != "SCAN";
    let is_from_start = command.get(1 + usize::from(is_key_first)).is_some_and(|cursor| cursor == b"0");
    is_from_start && command.iter().any(|argument| argument == b"100000")
}

/// Aggregates sorted; a nested one is left as it is.
fn sorted(value: &Value) -> Option<Vec<Value>> {
    let mut items = value.items()?.to_vec();
    items.sort();
    Some(items)
}

/// Flat pairs, or RESP3's nested ones, sorted.
fn sorted_pairs(value: &Value) -> Option<Vec<Vec<Value>>> {
    let mut pairs: Vec<Vec<Value>> = value.items()?.chunks(2).map(<[Value]>::to_vec).collect();
    pairs.sort();
    Some(pairs)
}

fn numbers_agree(a: &Value, b: &Value, tolerance: i64) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => *a >= 0 && *b >= 0 && a.abs_diff(*b) <= tolerance.unsigned_abs(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || numbers_agree(a, b, tolerance))
        }
        _ => false,
    }
}

fn same_shape(a: &Value, b: &Value) -> bool {
    match (a.items(), b.items()) {
        (Some(x), Some(y)) => {
            kind(a) == kind(b) && x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_shape(x, y))
        }
        (None, None) => kind(a) == kind(b) && !matches!(a, Value::Error(_)),
        _ => false,
    }
}

fn kind(value: &Value) -> std::mem::Discriminant<Value> {
    std::mem::discriminant(value)
}

#[cfg(test)]
mod tests {
    use super::agree;
    use crate::value::Value;

    fn command(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn bulks(words: &[&str]) -> Value {
        Value::Array(words.iter().map(|word| Value::Bulk(word.as_bytes().to_vec())).collect())
    }

    #[test]
    fn order_is_open_only_where_redis_leaves_it_open() {
        let (a, b) = (bulks(&["x", "1", "y", "2"]), bulks(&["y", "2", "x", "1"]));
        assert!(agree(&command("hgetall h"), &a, &b));
        assert!(agree(&command("SMEMBERS s"), &a, &b));
        assert!(!agree(&command("LRANGE l 0 -1"), &a, &b));
        assert!(!agree(&command("HGETALL h"), &a, &bulks(&["y", "1", "x", "2"])));
    }

    #[test]
    fn times_to_live_may_differ_a_little_and_their_special_values_may_not() {
        assert!(agree(&command("TTL k"), &Value::Int(99), &Value::Int(100)));
        assert!(!agree(&command("TTL k"), &Value::Int(-1), &Value::Int(0)));
        assert!(!agree(&command("TTL k"), &Value::Int(98), &Value::Int(100)));
    }
}
