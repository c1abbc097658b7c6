//! From a row's syntax text to a tree of arguments.
//!
//! The notation is that of the command reference: `lower-case` words are values, `UPPER-CASE` words are tokens,
//! `[x]` is optional, `<x | y>` and `[x | y]` are choices, `x [x ...]` repeats. A token owns the values behind it
//! up to the next token or option (`LIMIT offset count` is one argument).
//!
//! Owns the tree for `COMMAND DOCS`; value kinds are told by name, so they are good for hints and nothing else.
//! It does not check arguments of real commands.

use crate::bits::KeyFlags;
use crate::command::{Command, Group};
use crate::keys::{BeginSearch, KeySpec};

/// One argument, or a group of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Lower-case name.
    pub name: String,
    /// What kind of value it is.
    pub kind: ArgumentKind,
    /// The word that announces it, or that it is.
    pub token: Option<&'static str>,
    /// It may be left out.
    pub is_optional: bool,
    /// It may be repeated.
    pub is_multiple: bool,
    /// A repetition repeats the token too.
    pub repeats_token: bool,
    /// For a key: which of the command's key specs finds it.
    pub key_spec: Option<usize>,
    /// The members of a block or the alternatives of a choice.
    pub children: Vec<Self>,
}

/// The kinds of arguments, as `COMMAND DOCS` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Any bytes.
    String,
    /// A whole number.
    Integer,
    /// A decimal number.
    Double,
    /// The name of a key.
    Key,
    /// A glob pattern.
    Pattern,
    /// A point in Unix time.
    UnixTime,
    /// The token alone.
    PureToken,
    /// One of the children.
    OneOf,
    /// All of the children, in order.
    Block,
}

impl ArgumentKind {
    /// The name in `COMMAND DOCS`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Key => "key",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::PureToken => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }
}

/// The arguments of a command, the name left out; empty for containers, whose subcommands have their own.
pub fn arguments(command: &Command) -> Vec<Argument> {
    if command.is_container() {
        return Vec::new();
    }
    let mut parser = Parser { command, rest: lex(command.syntax), key_count: 0 };
    parser.rest.reverse();
    let mut alternatives = parser.alternatives().0;
    alternatives.pop().unwrap_or_default()
}

/// Splits into words and the marks `[ ] < > |`.
fn lex(text: &'static str) -> Vec<&'static str> {
    const MARKS: [char; 5] = ['[', ']', '<', '>', '|'];
    let mut tokens = Vec::new();
    for word in text.split_ascii_whitespace() {
        let mut rest = word;
        while let Some(at) = rest.find(MARKS) {
            if at > 0 {
                tokens.push(&rest[..at]);
            }
            tokens.push(&rest[at..=at]);
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            tokens.push(rest);
        }
    }
    tokens
}

/// Says whether a word stands for itself: capitals, or a sign such as `*` and `""`.
fn is_token(word: &str) -> bool {
    !word.bytes().any(|byte| byte.is_ascii_lowercase()) && word != "..."
}

struct Parser<'a> {
    command: &'a Command,
    /// What is left to read, last first.
    rest: Vec<&'static str>,
    /// Specs that have their argument, which pairs the next key with its spec.
    key_count: usize,
}

impl Parser<'_> {
    /// Sequences between `|` up to a closing mark or the end, and whether `...` ended them.
    fn alternatives(&mut self) -> (Vec<Vec<Argument>>, bool) {
        let mut all = Vec::new();
        let mut is_repeated = false;
        loop {
            all.push(self.sequence());
            if self.rest.last() == Some(&"...") {
                self.rest.pop();
                is_repeated = true;
            }
            match self.rest.pop() {
                Some("|") => {}
                _ => return (all, is_repeated),
            }
        }
    }

    fn sequence(&mut self) -> Vec<Argument> {
        let mut items = Vec::new();
        while let Some(&next) = self.rest.last() {
            match next {
                "]" | ">" | "|" | "..." => break,
                "[" => self.option(&mut items),
                word if is_token(word) && word != "<" => {
                    self.rest.pop();
                    items.push(self.announced(word));
                }
                _ => self.value(&mut items),
            }
        }
        items
    }

    /// A value word or a required choice.
    fn value(&mut self, items: &mut Vec<Argument>) {
        match self.rest.pop() {
            Some("<") => {
                let (alternatives, is_repeated) = self.alternatives();
                let mut group = group(alternatives);
                group.is_multiple |= is_repeated;
                items.push(group);
            }
            Some(word) => {
                let kind = kind_of(self.command, word);
                let mut argument = leaf(word.to_owned(), kind, None);
                if kind == ArgumentKind::Key {
                    argument.key_spec = self.next_key_spec();
                }
                items.push(argument);
            }
            None => {}
        }
    }

    /// The spec of the next key; keys that a value names (`SORT`'s patterns) have a spec but no argument.
    fn next_key_spec(&mut self) -> Option<usize> {
        let specs = self.command.keys;
        let is_of_patterns =
            |spec: &KeySpec| spec.begin == BeginSearch::Unknown && spec.flags.contains(KeyFlags::RO);
        while specs.get(self.key_count).is_some_and(is_of_patterns) {
            self.key_count += 1;
        }
        let last = specs.len().checked_sub(1)?;
        let spec = self.key_count.min(last);
        self.key_count += 1;
        Some(spec)
    }

    /// `[...]`: a repetition of what stands before it, or something optional.
    fn option(&mut self, items: &mut Vec<Argument>) {
        self.rest.pop();
        let keys_before = self.key_count;
        let (mut alternatives, is_repeated) = self.alternatives();
        if is_repeated
            && let [repeated] = alternatives.as_slice()
            && repeats_tail(items, repeated)
        {
            self.key_count = keys_before;
            let start = items.len() - repeated.len();
            let mut whole = group(vec![items.split_off(start)]);
            whole.is_multiple = true;
            whole.repeats_token = whole.token.is_some();
            items.push(whole);
            return;
        }
        let mut optional = group(std::mem::take(&mut alternatives));
        optional.is_optional = true;
        optional.is_multiple |= is_repeated;
        items.push(optional);
    }

    /// A token with the values that belong to it.
    fn announced(&mut self, token: &'static str) -> Argument {
        let mut values = Vec::new();
        while let Some(&next) = self.rest.last() {
            match next {
                "]" | ">" | "|" | "..." => break,
                "[" if self.repeats(&values) => self.option(&mut values),
                "[" => break,
                word if is_token(word) && word != "<" => break,
                _ => self.value(&mut values),
            }
        }
        match values.len() {
            0 => {
                let name = if token == "\"\"" { "empty".to_owned() } else { token.to_ascii_lowercase() };
                leaf(name, ArgumentKind::PureToken, Some(token))
            }
            1 => Argument { token: Some(token), ..values.remove(0) },
            _ => Argument { token: Some(token), name: token.to_ascii_lowercase(), ..group(vec![values]) },
        }
    }

    /// Says whether the `[` that comes next repeats the last of `values`: it begins with a value word and ends
    /// with `...`. A token owns such a repetition, an option after its values it does not.
    fn repeats(&self, values: &[Argument]) -> bool {
        let inner = self.rest.iter().rev().skip(1).take_while(|word| **word != "]");
        let words: Vec<_> = inner.copied().collect();
        let [names @ .., "..."] = words.as_slice() else { return false };
        names.len() <= values.len()
            && names
                .iter()
                .zip(&values[values.len() - names.len()..])
                .all(|(name, value)| *name == value.name)
    }
}

/// Says whether the last items are the repeated ones.
fn repeats_tail(items: &[Argument], repeated: &[Argument]) -> bool {
    items.len() >= repeated.len()
        && items[items.len() - repeated.len()..]
            .iter()
            .zip(repeated)
            .all(|(item, again)| item.name == again.name && item.token == again.token)
}

fn leaf(name: String, kind: ArgumentKind, token: Option<&'static str>) -> Argument {
    Argument {
        name,
        kind,
        token,
        is_optional: false,
        is_multiple: false,
        repeats_token: false,
        key_spec: None,
        children: Vec::new(),
    }
}

/// One argument that stands for the alternatives: a lone argument stays itself, several in a row are a block,
/// several alternatives a choice.
fn group(mut alternatives: Vec<Vec<Argument>>) -> Argument {
    if alternatives.len() > 1 {
        let children: Vec<_> = alternatives.into_iter().map(|alternative| group(vec![alternative])).collect();
        let name = choice_name(&children);
        return Argument { children, ..leaf(name.to_owned(), ArgumentKind::OneOf, None) };
    }
    let mut items = alternatives.pop().unwrap_or_default();
    if items.len() == 1 {
        return items.remove(0);
    }
    let names: Vec<_> = items.iter().map(|item| item.name.as_str()).collect();
    let name = names.join("-");
    Argument { children: items, ..leaf(name, ArgumentKind::Block, None) }
}

fn choice_name(children: &[Argument]) -> &'static str {
    match children.first().and_then(|child| child.token) {
        Some("NX" | "FNX" | "XX" | "KEEPREF") => "condition",
        Some("GT") => "comparison",
        Some("EX") => "expiration",
        Some("ASC") => "order",
        Some("M") => "unit",
        Some("LEFT" | "RIGHT" | "MIN" | "BEFORE") => "where",
        Some("BYTE") => "range-unit",
        Some("BYSCORE") => "sort-by",
        Some("ASYNC") => "flush-type",
        Some("MAXLEN") => "strategy",
        Some("SUM") => "aggregate",
        Some("ON" | "YES") => "enabled",
        _ => "choice",
    }
}

/// The kind of a value, by its name and, where names are shared, by its command.
fn kind_of(command: &Command, name: &str) -> ArgumentKind {
    use ArgumentKind::{Double, Integer, Key, Pattern, String, UnixTime};
    let is_scored = command.group == Group::SortedSet && !command.name.contains("lex");
    match name {
        "key" | "newkey" | "destkey" | "sourcekey" | "source" | "destination" | "dst" | "src" | "key1"
        | "key2" => Key,
        "pattern" | "match-pattern" => Pattern,
        "unix-time-seconds" | "unix-time-milliseconds" => UnixTime,
        "radius" | "longitude" | "latitude" | "width" | "height" | "score" => Double,
        "timeout" if command.group == Group::List || command.group == Group::SortedSet => Double,
        "min" | "max" if is_scored && command.name != "zrangestore" => Double,
        "increment" if command.name == "zincrby" || command.name.ends_with("float") => Double,
        "value" if command.group == Group::Bitmap => Integer,
        "start" | "end" | "stop" if command.group == Group::Stream || command.name == "zrange" => String,
        "version" | "timeout" | "increment" | "start" | "end" | "stop" | "bits" | "bit" | "bytes" => Integer,
        "cursor" if command.name != "clusterscan" => Integer,
        "count" | "offset" | "limit" | "index" | "index1" | "index2" | "db" | "destination-db" | "port" => {
            Integer
        }
        "seconds" | "milliseconds" | "ms" | "ttl" | "frequency" | "decrement" | "rank" | "len" => Integer,
        "numkeys" | "numfields" | "numids" | "numlocal" | "numreplicas" | "num-matches" => Integer,
        "slot" | "start-slot" | "end-slot" | "config-epoch" | "cluster-bus-port" | "client-id" => Integer,
        "weight" | "maxage" | "protover" | "min-match-len" | "entries-read" | "entries-added" => Integer,
        _ => String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lookup_full, rows};

    fn tree(name: &str) -> Vec<Argument> {
        arguments(lookup_full(name.as_bytes()).unwrap())
    }

    /// The notation, printed back from the tree.
    fn print(argument: &Argument) -> String {
        let inner = |separator: &str| argument.children.iter().map(print).collect::<Vec<_>>().join(separator);
        let token = argument.token.unwrap_or_default();
        let value = match argument.kind {
            ArgumentKind::PureToken => token.to_owned(),
            ArgumentKind::OneOf if argument.is_optional && argument.token.is_none() => inner(" | "),
            ArgumentKind::OneOf => format!("<{}>", inner(" | ")),
            ArgumentKind::Block => inner(" "),
            _ => argument.name.clone(),
        };
        let with_token = |value: &str| match (argument.kind, token) {
            (ArgumentKind::PureToken, _) | (_, "") => value.to_owned(),
            (_, token) => format!("{token} {value}"),
        };
        let is_group = argument.kind == ArgumentKind::OneOf;
        let text = match (argument.is_multiple, argument.repeats_token) {
            (false, _) => with_token(&value),
            (true, _) if is_group && argument.is_optional => format!("{value} ..."),
            (true, _) if is_group => format!("{} ...>", value.trim_end_matches('>')),
            (true, true) => format!("{0} [{0} ...]", with_token(&value)),
            (true, false) => with_token(&format!("{value} [{value} ...]")),
        };
        if argument.is_optional { format!("[{text}]") } else { text }
    }

    #[test]
    fn every_syntax_survives_a_round_trip() {
        for row in rows().iter().filter(|row| !row.is_container()) {
            let printed: Vec<_> = arguments(row).iter().map(print).collect();
            assert_eq!(printed.join(" "), row.syntax, "{}", row.name);
        }
    }

    #[test]
    fn keys_carry_their_spec() {
        let arguments = tree("zunionstore");
        assert_eq!(arguments[0].key_spec, Some(0));
        assert_eq!((arguments[2].kind, arguments[2].key_spec), (ArgumentKind::Key, Some(1)));
        assert!(arguments[2].is_multiple && !arguments[2].is_optional);
        assert_eq!(tree("sort").pop().unwrap().key_spec, Some(2));
    }

    #[test]
    fn options_of_set_form_choices() {
        let arguments = tree("set");
        assert_eq!(arguments.len(), 5);
        assert_eq!(arguments[1].kind, ArgumentKind::String);
        let (condition, get, expiration) = (&arguments[2], &arguments[3], &arguments[4]);
        assert!(condition.is_optional && condition.kind == ArgumentKind::OneOf);
        assert_eq!(condition.children[0].token, Some("NX"));
        assert_eq!((get.kind, get.token), (ArgumentKind::PureToken, Some("GET")));
        assert_eq!(expiration.name, "expiration");
        let ex = &expiration.children[0];
        assert_eq!((ex.name.as_str(), ex.token, ex.kind), ("seconds", Some("EX"), ArgumentKind::Integer));
        assert_eq!(expiration.children[2].kind, ArgumentKind::UnixTime);
    }

    #[test]
    fn tokens_own_the_values_behind_them() {
        let fields = tree("hexpire").pop().unwrap();
        assert_eq!((fields.token, fields.kind), (Some("FIELDS"), ArgumentKind::Block));
        assert!(fields.children[1].is_multiple);
        let get = tree("sort").into_iter().find(|argument| argument.token == Some("GET")).unwrap();
        assert!(get.is_optional && get.is_multiple && get.repeats_token);
        let pairs = &tree("hset")[1];
        assert!(pairs.is_multiple && pairs.kind == ArgumentKind::Block && pairs.children.len() == 2);
    }
}
