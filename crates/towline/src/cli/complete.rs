//! Completion and hints at the prompt.
//!
//! Owns the candidates and the hint's look; the words come from the command table (`hints`, `help`).

use std::borrow::Cow;

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use towline_resp::inline::split_line;
use towline_spec::{all, lookup};

use super::help;
use super::hints::Remainder;

/// The client's own commands.
const OWN: [&str; 6] = ["help", "connect", "clear", "quit", "exit", ":set"];

/// Helps while a line is typed.
#[derive(Debug)]
pub(crate) struct Prompter {
    /// Whether hints are shown.
    pub(crate) has_hints: bool,
    /// Whether the terminal may be sent colours.
    has_colours: bool,
}

impl Prompter {
    /// With hints, and colours unless `NO_COLOR` is set (<https://no-color.org>).
    pub(crate) fn new() -> Self {
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { has_hints: true, has_colours }
    }
}

/// Missing arguments; nothing that a key would insert.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing(String);

impl Hint for Missing {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Helper for Prompter {}

impl Validator for Prompter {}

impl Highlighter for Prompter {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.has_colours { format!("\x1b[90m{hint}\x1b[0m").into() } else { hint.into() }
    }
}

impl Hinter for Prompter {
    type Hint = Missing;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Missing> {
        if self.has_hints && pos == line.len() { missing(line).map(Missing) } else { None }
    }
}

impl Completer for Prompter {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let (start, candidates) = candidates(&line[..pos]);
        Ok((start, candidates))
    }
}

/// The hint behind `line`.
fn missing(line: &str) -> Option<String> {
    let words = split_line(line.as_bytes()).ok()?;
    let (first, rest) = words.split_first()?;
    let is_count = !rest.is_empty() && first.iter().all(u8::is_ascii_digit);
    let notation = match first.to_ascii_lowercase().as_slice() {
        b"connect" => ["host port", "port", ""].get(rest.len())?.to_string(),
        _ => Remainder::after(if is_count { rest } else { &words })?.notation(),
    };
    if notation.is_empty() {
        return None;
    }
    Some(if line.ends_with(' ') { notation } else { format!(" {notation}") })
}

/// Where the last word of `line` begins, and what it may become.
fn candidates(line: &str) -> (usize, Vec<String>) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let prefix = &line[start..];
    let Ok(mut before) = split_line(&line.as_bytes()[..start]) else { return (start, Vec::new()) };
    if before.first().is_some_and(|word| word.iter().all(u8::is_ascii_digit)) {
        before.remove(0);
    }
    let is_help = before.first().is_some_and(|word| word.eq_ignore_ascii_case(b"help") || word == b"?");
    if is_help {
        before.remove(0);
    }
    let mut names: Vec<String> = match before.as_slice() {
        [] => all().iter().filter(|row| !row.is_internal).map(|row| row.name.to_ascii_uppercase()).collect(),
        [command] if lookup(command).is_some_and(|row| row.is_container()) => lookup(command)
            .map(|row| row.subcommands().iter().map(|sub| sub.short_name().to_ascii_uppercase()).collect())
            .unwrap_or_default(),
        [set] if set == b":set" => vec!["hints".to_owned(), "nohints".to_owned()],
        words if !is_help => Remainder::after(words)
            .map(|remainder| remainder.tokens().into_iter().map(str::to_owned).collect())
            .unwrap_or_default(),
        _ => Vec::new(),
    };
    if before.is_empty() {
        if is_help {
            names.extend(help::groups().into_iter().map(|group| format!("@{group}")));
        } else {
            names.extend(OWN.map(str::to_owned));
        }
    }
    // An empty word would offer the whole table.
    if prefix.is_empty() && before.is_empty() && !is_help {
        return (start, Vec::new());
    }
    let is_lower = prefix.bytes().any(|byte| byte.is_ascii_lowercase())
        && !prefix.bytes().any(|byte| byte.is_ascii_uppercase());
    names.retain(|name| name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix)));
    if is_lower {
        names.iter_mut().for_each(|name| name.make_ascii_lowercase());
    }
    names.sort_unstable();
    names.dedup();
    (start, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_follow_the_line() {
        assert_eq!(missing("GET"), Some(" key".to_owned()));
        assert_eq!(missing("GET "), Some("key".to_owned()));
        assert_eq!(missing("GET k"), None);
        assert_eq!(missing("5 GET "), Some("key".to_owned()));
        assert_eq!(missing("connect h"), Some(" port".to_owned()));
        assert_eq!(missing("GET \"k"), None);
        assert_eq!(missing(""), None);
    }

    #[test]
    fn completion_keeps_the_case_of_what_was_typed() {
        assert_eq!(candidates("HGETA"), (0, vec!["HGETALL".to_owned()]));
        assert_eq!(candidates("hgeta"), (0, vec!["hgetall".to_owned()]));
        assert_eq!(candidates("client ki"), (7, vec!["kill".to_owned()]));
        assert_eq!(candidates("SET k v EXA"), (8, vec!["EXAT".to_owned()]));
        assert_eq!(candidates("help @has"), (5, vec!["@hash".to_owned()]));
        assert_eq!(candidates("help hgeta"), (5, vec!["hgetall".to_owned()]));
        assert_eq!(candidates("3 hgeta"), (2, vec!["hgetall".to_owned()]));
        assert_eq!(candidates(":set no"), (5, vec!["nohints".to_owned()]));
        assert_eq!(candidates("conn"), (0, vec!["connect".to_owned()]));
        assert_eq!(candidates("get \"k v"), (7, vec![]));
        assert_eq!(candidates("").1, Vec::<String>::new());
        assert!(candidates("CLIENT ").1.contains(&"KILL".to_owned()));
    }
}
