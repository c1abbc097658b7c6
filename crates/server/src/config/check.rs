//! Checks of values that are accepted without effect: a mistake in them is found here as it would be in Redis.
//!
//! Owns: the forms that only such values have. Does **not** own numbers, sizes and choices (see `text`).

use super::SavePoint;
use super::param::Reason;
use super::text::parse_choice;
use towline_store::number::{parse_f64, parse_i64};

/// One of `words`, as it is written there.
pub(super) fn one_of(text: &[u8], words: &[&'static str]) -> Result<Vec<u8>, Reason> {
    let choices: Vec<_> = words.iter().map(|&word| (word, word)).collect();
    parse_choice(text, &choices).map(|word| word.into())
}

/// Words of what the server does when a signal ends it; the first stands for none of the others.
const STOP_WORDS: &[&str] = &["default", "save", "nosave", "now", "force"];

/// Any of [`STOP_WORDS`], in their order.
pub(super) fn stop_words(text: &[u8]) -> Result<Vec<u8>, Reason> {
    let words = text.split(|&byte| byte == b' ').map(|word| one_of(word, STOP_WORDS));
    let words = words.collect::<Result<Vec<_>, _>>()?;
    let has = |name: &str| words.iter().any(|word| word == name.as_bytes());
    if has("save") && has("nosave") {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
    }
    let said: Vec<&str> = STOP_WORDS[1..].iter().copied().filter(|name| has(name)).collect();
    Ok(if said.is_empty() { STOP_WORDS[0].into() } else { said.join(" ").into() })
}

/// A host's name.
pub(super) fn hostname(text: &[u8]) -> Result<String, Reason> {
    const BYTES_MAX: usize = 256;
    if text.len() >= BYTES_MAX {
        return Err("Hostnames must be less than 256 characters".into());
    }
    if !text.iter().all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
        return Err("Hostnames may only contain alphanumeric characters, hyphens or dots".into());
    }
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// A word that a node announces; it stands in lines of fields, so it has none of their separators.
pub(super) fn announced_word(text: &[u8], parameter: &str) -> Result<String, Reason> {
    const BYTES_MAX: usize = 256;
    if text.len() >= BYTES_MAX {
        return Err(format!("{parameter} must be less than {BYTES_MAX} characters").into());
    }
    let is_allowed =
        |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'@' | b'=' | b'"' | b'\'');
    if !text.iter().all(is_allowed) {
        return Err(format!("{parameter} may not contain spaces, line ends or separators").into());
    }
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The form of a process's title: text with names in braces, where two opening braces stand for one.
pub(super) fn title_template(text: &[u8]) -> Result<Vec<u8>, Reason> {
    const NAMES: [&[u8]; 7] =
        [b"title", b"listen-addr", b"server-mode", b"port", b"tls-port", b"unixsocket", b"config-file"];
    let refused = || Reason::from("template format is invalid or contains unknown variables");
    let mut rest = text;
    while let Some(open) = rest.iter().position(|&byte| byte == b'{') {
        rest = &rest[open + 1..];
        if let Some(literal) = rest.strip_prefix(b"{") {
            rest = literal;
            continue;
        }
        let close = rest.iter().position(|&byte| byte == b'}').ok_or_else(refused)?;
        if !NAMES.iter().any(|name| name.eq_ignore_ascii_case(&rest[..close])) {
            return Err(refused());
        }
        rest = &rest[close + 1..];
    }
    if text.is_empty() { Err(refused()) } else { Ok(text.to_vec()) }
}

/// Pairs of seconds and changes after which data is saved.
pub(super) fn save_points(words: &[Vec<u8>]) -> Result<Vec<SavePoint>, Reason> {
    let at_least = |word: &[u8], min: u64| {
        parse_i64(word).and_then(|number| u64::try_from(number).ok()).filter(|&number| number >= min)
    };
    let point = |pair: &[Vec<u8>]| {
        let [seconds, changes] = pair else { return None };
        Some(SavePoint { seconds: at_least(seconds, 1)?, changes: at_least(changes, 0)? })
    };
    words.chunks(2).map(point).collect::<Option<_>>().ok_or_else(|| "Invalid save parameters".into())
}

/// Three adjustments of the kernel's choice of a victim.
pub(super) fn oom_scores(words: &[Vec<u8>]) -> Result<Vec<u8>, Reason> {
    const LIMIT: i64 = 2000;
    if words.len() != 3 {
        return Err("wrong number of arguments".into());
    }
    if words.iter().all(|word| parse_i64(word).is_some_and(|score| (-LIMIT..=LIMIT).contains(&score))) {
        Ok(words.join(&b' '))
    } else {
        Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".into())
    }
}

/// Percentiles that `INFO latencystats` shows at most.
const PERCENTILES_MAX: usize = 32;

/// Percentiles; one empty word is none.
pub(super) fn percentiles(words: &[Vec<u8>]) -> Result<Vec<f64>, Reason> {
    let words = if words == [b""] { &[] } else { words };
    if words.len() > PERCENTILES_MAX {
        return Err("Invalid latency-tracking-info-percentiles parameters".into());
    }
    let parse = |word: &Vec<u8>| match parse_f64(word) {
        None => Err("Invalid latency-tracking-info-percentiles parameters"),
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        Some(_) => Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"),
    };
    Ok(words.iter().map(parse).collect::<Result<_, _>>()?)
}
