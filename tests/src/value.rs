//! A reply, exactly as it came over the wire.
//!
//! Owns: the value type, how it is shown to a person, and its parser. Numbers keep their text where the text matters
//! (doubles, big numbers), and the three spellings of null stay apart, because a difference in them is a difference.

use std::fmt;

/// Deeper nesting than any reply of a command has; a guard against a server gone wrong.
const DEPTH_MAX: usize = 32;

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// `+`
    Simple(Vec<u8>),
    /// `-`, or RESP3's `!`
    Error(Vec<u8>),
    /// `:`
    Int(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    /// `_`
    Null,
    /// `*`
    Array(Vec<Self>),
    /// `%`, as keys and values in turn
    Map(Vec<Self>),
    /// `~`
    Set(Vec<Self>),
    /// `>`
    Push(Vec<Self>),
    /// `,` with the text of the number
    Double(Vec<u8>),
    /// `#`
    Bool(bool),
    /// `(` with the text of the number
    BigNumber(Vec<u8>),
    /// `=` with the format's three letters and the text
    Verbatim(Vec<u8>),
}

impl Value {
    /// The bytes of a string, simple or bulk.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Simple(bytes) | Self::Bulk(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text of an error.
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Error(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    /// The number of an integer reply.
    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The items of any aggregate.
    pub fn items(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) | Self::Map(items) | Self::Set(items) | Self::Push(items) => Some(items),
            _ => None,
        }
    }

    /// Whether this is a null, in any spelling.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::NullBulk | Self::NullArray | Self::Null)
    }

    /// The number in a string, integer or double reply.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Simple(text) | Self::Bulk(text) | Self::Double(text) => {
                std::str::from_utf8(text).ok()?.parse().ok()
            }
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, open: &str, items: &[Self], close: &str| {
            f.write_str(open)?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    f.write_str(", ")?;
                }
                write!(f, "{item}")?;
            }
            f.write_str(close)
        };
        match self {
            Self::Simple(text) => write!(f, "+{}", text.escape_ascii()),
            Self::Error(text) => write!(f, "-{}", text.escape_ascii()),
            Self::Int(number) => write!(f, ":{number}"),
            Self::Bulk(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::NullBulk => f.write_str("$-1"),
            Self::NullArray => f.write_str("*-1"),
            Self::Null => f.write_str("_"),
            Self::Array(items) => list(f, "[", items, "]"),
            Self::Map(items) => list(f, "%[", items, "]"),
            Self::Set(items) => list(f, "~[", items, "]"),
            Self::Push(items) => list(f, ">[", items, "]"),
            Self::Double(text) => write!(f, ",{}", text.escape_ascii()),
            Self::Bool(value) => write!(f, "#{value}"),
            Self::BigNumber(text) => write!(f, "({}", text.escape_ascii()),
            Self::Verbatim(text) => write!(f, "={}", text.escape_ascii()),
        }
    }
}

/// What is wrong with bytes that are no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoReply(pub String);

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server sent no RESP: {}", self.0)
    }
}

impl std::error::Error for NoReply {}

/// Parses one reply from the start of `bytes`: the value and how many bytes it took, or `None` when more are needed.
///
/// # Errors
/// [`NoReply`] when the bytes are no RESP.
pub fn parse(bytes: &[u8]) -> Result<Option<(Value, usize)>, NoReply> {
    let mut at = 0;
    Ok(parse_at(bytes, &mut at, 0)?.map(|value| (value, at)))
}

fn parse_at(bytes: &[u8], at: &mut usize, depth: usize) -> Result<Option<Value>, NoReply> {
    if depth > DEPTH_MAX {
        return Err(NoReply("nested too deeply".into()));
    }
    let rest = &bytes[*at..];
    let Some(end) = memchr::memchr(b'\n', rest) else { return Ok(None) };
    if end < 2 || rest[end - 1] != b'\r' {
        return Err(NoReply(format!("a line without CR LF: {:?}", rest[..end].escape_ascii().to_string())));
    }
    let (kind, line) = (rest[0], &rest[1..end - 1]);
    let after_line = *at + end + 1;
    let number = || {
        let text = std::str::from_utf8(line).ok();
        text.and_then(|text| text.parse::<i64>().ok())
            .ok_or_else(|| NoReply(format!("no number: {:?}", line.escape_ascii().to_string())))
    };
    let value = match kind {
        b'+' => Value::Simple(line.to_vec()),
        b'-' => Value::Error(line.to_vec()),
        b':' => Value::Int(number()?),
        b',' => Value::Double(line.to_vec()),
        b'(' => Value::BigNumber(line.to_vec()),
        b'_' => Value::Null,
        b'#' => Value::Bool(line == b"t"),
        b'$' if line == b"-1" => Value::NullBulk,
        b'*' if line == b"-1" => Value::NullArray,
        b'$' | b'=' | b'!' => {
            let length = usize::try_from(number()?).map_err(|_| NoReply("a negative length".into()))?;
            let Some(body) = bytes.get(after_line..after_line + length + 2) else { return Ok(None) };
            if !body.ends_with(b"\r\n") {
                return Err(NoReply("a bulk string without CR LF at its end".into()));
            }
            *at = after_line + length + 2;
            let body = body[..length].to_vec();
            return Ok(Some(match kind {
                b'$' => Value::Bulk(body),
                b'=' => Value::Verbatim(body),
                _ => Value::Error(body),
            }));
        }
        b'*' | b'%' | b'~' | b'>' | b'|' => {
            let count = usize::try_from(number()?).map_err(|_| NoReply("a negative count".into()))?;
            let count = if matches!(kind, b'%' | b'|') { count * 2 } else { count };
            *at = after_line;
            let mut items = Vec::new();
            for _ in 0..count {
                let Some(item) = parse_at(bytes, at, depth + 1)? else { return Ok(None) };
                items.push(item);
            }
            return match kind {
                b'*' => Ok(Some(Value::Array(items))),
                b'%' => Ok(Some(Value::Map(items))),
                b'~' => Ok(Some(Value::Set(items))),
                b'>' => Ok(Some(Value::Push(items))),
                // An attribute stands before the value that it describes.
                _ => parse_at(bytes, at, depth + 1),
            };
        }
        _ => return Err(NoReply(format!("unknown type {:?}", char::from(kind)))),
    };
    *at = after_line;
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::{Value, parse};

    #[test]
    fn every_prefix_of_a_reply_asks_for_more() {
        let whole = b"%2\r\n+a\r\n*2\r\n:1\r\n$-1\r\n$1\r\nb\r\n~2\r\n,1.5\r\n#t\r\n";
        let (value, used) = parse(whole).unwrap().unwrap();
        assert_eq!(used, whole.len());
        assert_eq!(value.to_string(), "%[+a, [:1, $-1], \"b\", ~[,1.5, #true]]");
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]).unwrap(), None, "cut at {cut}");
        }
    }

    #[test]
    fn garbage_is_no_reply() {
        for garbage in [&b"x\r\n"[..], b":x\r\n", b"$3\r\nabcd\r\n", b"+a\n"] {
            assert!(parse(garbage).is_err(), "{}", garbage.escape_ascii());
        }
        assert_eq!(parse(b"*-1\r\n").unwrap().unwrap().0, Value::NullArray);
    }
}
