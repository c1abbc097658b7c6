//! Replies as text, in the layouts that redis-cli made customary.
//!
//! Owns the five styles. Does not own which style is used or where the text goes (`output`).
//! All of them recurse as deep as a frame is nested, which the decoder bounds.

use towline_resp::double::format_double;
use towline_resp::frame::Frame;

/// A layout of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// For people: types, quotes, numbered and indented members.
    Standard,
    /// For pipes: payloads only, one a line.
    Raw,
    /// Comma-separated values, one line.
    Csv,
    /// JSON, one line; strings keep their bytes.
    Json,
    /// JSON whose strings hold the quoted form of [`Style::Standard`], so that any bytes survive as ASCII.
    QuotedJson,
}

/// What stands between the members of a raw reply and behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delimiters {
    /// Between members.
    pub(crate) element: Vec<u8>,
    /// Behind a reply.
    pub(crate) reply: Vec<u8>,
}

impl Default for Delimiters {
    fn default() -> Self {
        Self { element: b"\n".to_vec(), reply: b"\n".to_vec() }
    }
}

/// Appends a reply, its line end included.
pub(crate) fn render(frame: &Frame, style: Style, delimiters: &Delimiters, out: &mut Vec<u8>) {
    match style {
        Style::Standard => standard(frame, 0, out),
        Style::Raw => {
            raw(frame, &delimiters.element, out);
            out.extend_from_slice(&delimiters.reply);
        }
        Style::Csv => {
            csv(frame, out);
            out.push(b'\n');
        }
        Style::Json => {
            json(frame, json_string, out);
            out.push(b'\n');
        }
        Style::QuotedJson => {
            json(frame, quoted_json_string, out);
            out.push(b'\n');
        }
    }
}

/// Appends `bytes` in double quotes, everything but printable ASCII escaped; the command line reads it back.
pub(crate) fn quoted(bytes: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(*byte),
            _ => out.extend_from_slice(&[
                b'\\',
                b'x',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
        }
    }
    out.push(b'"');
}

/// `value` in `width` columns, right-aligned.
fn number(value: usize, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{value:>width$}").as_bytes());
}

fn standard(frame: &Frame, indent: usize, out: &mut Vec<u8>) {
    match frame {
        Frame::Simple(text) => out.extend_from_slice(text),
        Frame::Verbatim { text, .. } => out.extend_from_slice(text),
        Frame::Error(text) | Frame::BlobError(text) => {
            out.extend_from_slice(b"(error) ");
            out.extend_from_slice(text);
        }
        Frame::Integer(value) => out.extend_from_slice(format!("(integer) {value}").as_bytes()),
        Frame::Double(value) => {
            out.extend_from_slice(b"(double) ");
            out.extend_from_slice(format_double(*value).as_bytes());
        }
        Frame::BigNumber(digits) => {
            out.extend_from_slice(b"(big number) ");
            out.extend_from_slice(digits);
        }
        Frame::Boolean(value) => out.extend_from_slice(boolean(*value)),
        Frame::Bulk(bytes) => quoted(bytes, out),
        Frame::Null | Frame::NullArray => out.extend_from_slice(b"(nil)"),
        Frame::Array(frames) => return standard_list(frames, b") ", "array", indent, out),
        Frame::Push(frames) => return standard_list(frames, b") ", "push", indent, out),
        Frame::Set(frames) => return standard_list(frames, b"~ ", "set", indent, out),
        Frame::Map(pairs) => return standard_map(pairs, b"# ", indent, out),
        Frame::Attributed { attributes, frame } => {
            standard_map(attributes, b"| ", indent, out);
            out.extend(std::iter::repeat_n(b' ', indent));
            return standard(frame, indent, out);
        }
    }
    out.push(b'\n');
}

fn standard_list(frames: &[Frame], mark: &[u8], name: &str, indent: usize, out: &mut Vec<u8>) {
    if frames.is_empty() {
        out.extend_from_slice(format!("(empty {name})\n").as_bytes());
        return;
    }
    let width = digits(frames.len());
    for (index, frame) in frames.iter().enumerate() {
        if index > 0 {
            out.extend(std::iter::repeat_n(b' ', indent));
        }
        number(index + 1, width, out);
        out.extend_from_slice(mark);
        standard(frame, indent + width + mark.len(), out);
    }
}

fn standard_map(pairs: &[(Frame, Frame)], mark: &[u8], indent: usize, out: &mut Vec<u8>) {
    if pairs.is_empty() {
        out.extend_from_slice(b"(empty hash)\n");
        return;
    }
    let width = digits(pairs.len());
    let inner = indent + width + mark.len();
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.extend(std::iter::repeat_n(b' ', indent));
        }
        number(index + 1, width, out);
        out.extend_from_slice(mark);
        standard(key, inner, out);
        out.truncate(out.len() - 1);
        out.extend_from_slice(b" => ");
        if begins_below(value) {
            out.push(b'\n');
            out.extend(std::iter::repeat_n(b' ', inner));
        }
        standard(value, inner, out);
    }
}

/// Whether a map's value begins on a line of its own; a map of one pair does not.
fn begins_below(frame: &Frame) -> bool {
    match frame {
        Frame::Array(frames) | Frame::Set(frames) | Frame::Push(frames) => !frames.is_empty(),
        Frame::Map(pairs) => pairs.len() > 1,
        Frame::Attributed { .. } => true,
        _ => false,
    }
}

fn digits(count: usize) -> usize {
    count.checked_ilog10().map_or(1, |log| log as usize + 1)
}

const fn boolean(value: bool) -> &'static [u8] {
    if value { b"(true)" } else { b"(false)" }
}

fn raw(frame: &Frame, delimiter: &[u8], out: &mut Vec<u8>) {
    match frame {
        Frame::Simple(text) | Frame::Bulk(text) | Frame::BigNumber(text) | Frame::Verbatim { text, .. } => {
            out.extend_from_slice(text);
        }
        Frame::Error(text) | Frame::BlobError(text) => {
            out.extend_from_slice(text);
            out.push(b'\n');
        }
        Frame::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Frame::Double(value) => out.extend_from_slice(format_double(*value).as_bytes()),
        Frame::Boolean(value) => out.extend_from_slice(boolean(*value)),
        Frame::Null | Frame::NullArray => {}
        Frame::Array(frames) | Frame::Set(frames) | Frame::Push(frames) => {
            separated(frames, delimiter, out, |frame, out| raw(frame, delimiter, out));
        }
        Frame::Map(pairs) => separated(pairs, delimiter, out, |(key, value), out| {
            raw(key, delimiter, out);
            out.push(b' ');
            raw(value, delimiter, out);
        }),
        Frame::Attributed { frame, .. } => raw(frame, delimiter, out),
    }
}

fn csv(frame: &Frame, out: &mut Vec<u8>) {
    match frame {
        Frame::Simple(text) | Frame::Bulk(text) | Frame::Verbatim { text, .. } => quoted(text, out),
        Frame::Error(text) | Frame::BlobError(text) => {
            out.extend_from_slice(b"ERROR,");
            quoted(text, out);
        }
        Frame::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Frame::Double(value) => out.extend_from_slice(format_double(*value).as_bytes()),
        Frame::BigNumber(digits) => out.extend_from_slice(digits),
        Frame::Boolean(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Frame::Null | Frame::NullArray => out.extend_from_slice(b"NULL"),
        Frame::Array(frames) | Frame::Set(frames) | Frame::Push(frames) => separated(frames, b",", out, csv),
        Frame::Map(pairs) => separated(pairs, b",", out, |(key, value), out| {
            csv(key, out);
            out.push(b',');
            csv(value, out);
        }),
        Frame::Attributed { frame, .. } => csv(frame, out),
    }
}

fn json(frame: &Frame, string: fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
    match frame {
        Frame::Simple(text) | Frame::Bulk(text) | Frame::Verbatim { text, .. } => string(text, out),
        // No JSON, on purpose, as in redis-cli: a consumer must not take an error for a value.
        Frame::Error(text) | Frame::BlobError(text) => {
            out.extend_from_slice(b"error:");
            quoted(text, out);
        }
        Frame::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
        // JSON has no infinities and no NaN.
        Frame::Double(value) if !value.is_finite() => string(format_double(*value).as_bytes(), out),
        Frame::Double(value) => out.extend_from_slice(format_double(*value).as_bytes()),
        Frame::BigNumber(digits) => {
            out.extend_from_slice(digits.strip_prefix(b"+").unwrap_or(digits));
        }
        Frame::Boolean(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Frame::Null | Frame::NullArray => out.extend_from_slice(b"null"),
        Frame::Array(frames) | Frame::Set(frames) | Frame::Push(frames) => {
            out.push(b'[');
            separated(frames, b",", out, |frame, out| json(frame, string, out));
            out.push(b']');
        }
        Frame::Map(pairs) => {
            out.push(b'{');
            separated(pairs, b",", out, |(key, value), out| {
                json_key(key, string, out);
                out.push(b':');
                json(value, string, out);
            });
            out.push(b'}');
        }
        Frame::Attributed { frame, .. } => json(frame, string, out),
    }
}

/// A map's key: strings as they are, anything else as the string of its JSON.
fn json_key(frame: &Frame, string: fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
    match frame {
        Frame::Simple(text) | Frame::Bulk(text) | Frame::Verbatim { text, .. } => string(text, out),
        other => {
            let mut text = Vec::new();
            json(other, string, &mut text);
            json_string(&text, out);
        }
    }
}

fn json_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// A JSON string with the quoted form of `bytes`, its outer quotes left out.
fn quoted_json_string(bytes: &[u8], out: &mut Vec<u8>) {
    let mut text = Vec::with_capacity(bytes.len() + 2);
    quoted(bytes, &mut text);
    json_string(&text[1..text.len() - 1], out);
}

fn separated<T>(items: &[T], separator: &[u8], out: &mut Vec<u8>, mut item: impl FnMut(&T, &mut Vec<u8>)) {
    for (index, value) in items.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(separator);
        }
        item(value, out);
    }
}

#[cfg(test)]
mod tests;
