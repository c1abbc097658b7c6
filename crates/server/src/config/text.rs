//! The words of a line, and values as text.
//!
//! Owns: splitting and quoting as `redis.conf` has it, and the forms of numbers, sizes and choices. Does **not** own
//! which parameter takes which form.

use super::param::Reason;
use std::borrow::Cow;
use towline_store::number::parse_i64;

/// Splits a line into words. `"…"` takes the escapes `\n \r \t \b \a \xHH` and `\` before anything else, `'…'` takes `\'`.
/// `None` when a quote is not closed, or something other than a blank follows it.
pub(crate) fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(words);
        }
        let (word, after) = split_word(rest)?;
        words.push(word);
        rest = after;
    }
}

/// The first word of `rest`, which does not begin with a blank, and what follows it.
fn split_word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Some((word, rest)),
            [blank, ..] if blank.is_ascii_whitespace() => return Some((word, rest)),
            [b'"', after @ ..] => rest = end_of_quote(take_double_quoted(after, &mut word)?)?,
            [b'\'', after @ ..] => rest = end_of_quote(take_single_quoted(after, &mut word)?)?,
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn end_of_quote(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(u8::is_ascii_whitespace).then_some(rest)
}

fn take_double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
                word.push(digit(*high) << 4 | digit(*low));
                rest = after;
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn take_single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                rest = after;
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

/// A word as it can stand in a file: as it is if it is plain, else in quotes.
pub(crate) fn quote(word: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\' | b'#');
    if !word.is_empty() && word.iter().all(is_plain) {
        return String::from_utf8_lossy(word).into_owned();
    }
    let mut quoted = String::from("\"");
    for &byte in word {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'\t' => quoted.push_str("\\t"),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// `yes` or `no`.
pub(super) fn parse_bool(text: &[u8]) -> Result<bool, Reason> {
    match text.to_ascii_lowercase().as_slice() {
        b"yes" => Ok(true),
        b"no" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".into()),
    }
}

/// `yes` or `no`.
pub(super) fn bool_text(is_on: bool) -> Vec<u8> {
    if is_on { b"yes".to_vec() } else { b"no".to_vec() }
}

fn in_range<T: TryFrom<i64>>(number: i64, min: i64, max: i64) -> Result<T, Reason> {
    let fits = (min..=max).contains(&number);
    let number = if fits { T::try_from(number).ok() } else { None };
    number.ok_or_else(|| Cow::Owned(format!("argument must be between {min} and {max} inclusive")))
}

/// A whole number in `min..=max`.
pub(super) fn parse_int<T: TryFrom<i64>>(text: &[u8], min: i64, max: i64) -> Result<T, Reason> {
    let number = parse_i64(text).ok_or("argument couldn't be parsed into an integer")?;
    in_range(number, min, max)
}

/// A file mode in octal, up to 777.
pub(super) fn parse_octal(text: &[u8]) -> Result<u32, Reason> {
    let text = std::str::from_utf8(text).ok();
    let mode = text.and_then(|text| u32::from_str_radix(text, 8).ok());
    mode.filter(|mode| *mode <= 0o777).ok_or_else(|| "argument couldn't be parsed as an octal number".into())
}

/// A size with an optional unit: `k m g` are powers of 1000, `kb mb gb` of 1024. Without digits it is 0.
pub(super) fn size(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unit: u64 = match text[digits..].to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    let number =
        if digits == 0 { 0 } else { std::str::from_utf8(&text[..digits]).ok()?.parse::<u64>().ok()? };
    number.checked_mul(unit)
}

/// A size in `min..=max` bytes.
pub(super) fn parse_size<T: TryFrom<u64>>(text: &[u8], min: u64, max: u64) -> Result<T, Reason> {
    let bytes = size(text).ok_or("argument must be a memory value")?;
    let bytes = if (min..=max).contains(&bytes) { T::try_from(bytes).ok() } else { None };
    bytes.ok_or_else(|| Cow::Owned(format!("argument must be between {min} and {max} inclusive")))
}

/// One of the words of `choices`.
pub(super) fn parse_choice<T: Copy>(text: &[u8], choices: &[(&str, T)]) -> Result<T, Reason> {
    let found = choices.iter().find(|(word, _)| text.eq_ignore_ascii_case(word.as_bytes()));
    found.map(|&(_, value)| value).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|&(word, _)| word).collect();
        Cow::Owned(format!("argument(s) must be one of the following: {}", words.join(", ")))
    })
}

/// The word of `choices` that stands for `value`.
pub(super) fn choice_text<T: PartialEq>(value: &T, choices: &[(&'static str, T)]) -> Vec<u8> {
    let found = choices.iter().find(|(_, known)| known == value);
    found.map_or("", |&(word, _)| word).into()
}

/// Text that must be UTF-8, such as a path or an address; empty is none.
pub(super) fn parse_text(text: &[u8]) -> Result<Option<String>, Reason> {
    let text = std::str::from_utf8(text).map_err(|_| "argument is no valid UTF-8")?;
    if text.contains('\0') {
        return Err("argument must not contain a NUL character".into());
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}
