//! What may follow the words typed so far, from the command table's syntax.
//!
//! Owns the matching of words with a command's argument tree. It is lenient: a hint is help, not a check, and when
//! words fit nowhere there is none.

use towline_spec::syntax::{Argument, ArgumentKind, arguments};
use towline_spec::{Command, lookup, lookup_sub};

/// What is left of a command's arguments after some words.
#[derive(Debug)]
pub(crate) struct Remainder {
    arguments: Vec<Argument>,
}

impl Remainder {
    /// Matches `words`, the command's name among them; `None` if no such command, or no such arguments, exist.
    pub(crate) fn after<A: AsRef<[u8]>>(words: &[A]) -> Option<Self> {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        let (command, taken) = find(&words)?;
        let mut remainder = Self { arguments: arguments(command) };
        let mut rest = &words[taken..];
        while !rest.is_empty() {
            rest = remainder.take(rest)?;
        }
        Some(remainder)
    }

    /// The missing arguments in the command reference's notation; empty if none are.
    pub(crate) fn notation(&self) -> String {
        self.arguments.iter().map(notation).collect::<Vec<_>>().join(" ")
    }

    /// The words that may come next and are not values.
    pub(crate) fn tokens(&self) -> Vec<&'static str> {
        let mut tokens = Vec::new();
        for argument in &self.arguments {
            first_tokens(argument, &mut tokens);
            if !argument.is_optional {
                break;
            }
        }
        tokens
    }

    /// Takes the first of `words` and those that belong to it out of the arguments; what is left of the words.
    fn take<'w>(&mut self, words: &'w [&'w [u8]]) -> Option<&'w [&'w [u8]]> {
        let required = self.arguments.iter().position(|argument| !argument.is_optional);
        let reachable = required.map_or(self.arguments.len(), |at| at + 1);
        let word = words[0];
        let by_token =
            self.arguments[..reachable].iter().position(|argument| begins_with_token(argument, word));
        let at = by_token.or_else(|| self.arguments[..reachable].iter().position(takes_value))?;
        let argument = self.arguments.remove(at);
        let (rest, mut left) = consume(&argument, words)?;
        if argument.is_multiple {
            left.push(Argument { is_optional: true, ..argument.clone() });
        }
        // What stands before a required argument, or before the value of an optional one, cannot come any more;
        // options with tokens come in any order.
        let start = if argument.is_optional && by_token.is_some() { at } else { 0 };
        self.arguments.splice(start..at, left);
        Some(rest)
    }
}

/// The command or subcommand that the first words name, and how many words that takes.
fn find(words: &[&[u8]]) -> Option<(&'static Command, usize)> {
    let command = lookup(words.first()?)?;
    match words.get(1) {
        Some(sub) if command.is_container() => Some((lookup_sub(command, sub)?, 2)),
        _ => Some((command, 1)),
    }
}

/// Takes the words of one argument; what is left of them, and what is left of the argument when they ran out.
fn consume<'w>(argument: &Argument, words: &'w [&'w [u8]]) -> Option<(&'w [&'w [u8]], Vec<Argument>)> {
    let mut rest = words;
    if let Some(token) = argument.token {
        if !is(rest.first()?, token) {
            return None;
        }
        rest = &rest[1..];
    }
    match argument.kind {
        ArgumentKind::PureToken => Some((rest, Vec::new())),
        ArgumentKind::OneOf => {
            let Some(word) = rest.first() else {
                return Some((rest, vec![plain(argument)]));
            };
            let by_token = argument.children.iter().find(|child| begins_with_token(child, word));
            consume(by_token.or_else(|| argument.children.iter().find(|child| takes_value(child)))?, rest)
        }
        ArgumentKind::Block => {
            let mut block = Remainder { arguments: argument.children.clone() };
            while !rest.is_empty() && block.arguments.iter().any(|child| !child.is_optional) {
                rest = block.take(rest)?;
            }
            Some((rest, block.arguments))
        }
        _ if rest.is_empty() => Some((rest, vec![plain(argument)])),
        _ => Some((&rest[1..], Vec::new())),
    }
}

/// The argument without what announced it and without repetitions: the value that is missing.
fn plain(argument: &Argument) -> Argument {
    Argument { token: None, is_optional: false, is_multiple: false, ..argument.clone() }
}

fn begins_with_token(argument: &Argument, word: &[u8]) -> bool {
    match (argument.token, argument.kind) {
        (Some(token), _) => is(word, token),
        (None, ArgumentKind::OneOf) => argument.children.iter().any(|child| begins_with_token(child, word)),
        (None, ArgumentKind::Block) => {
            argument.children.first().is_some_and(|child| begins_with_token(child, word))
        }
        _ => false,
    }
}

fn takes_value(argument: &Argument) -> bool {
    match (argument.token, argument.kind) {
        (Some(_), _) => false,
        (None, ArgumentKind::OneOf) => argument.children.iter().any(takes_value),
        (None, ArgumentKind::Block) => argument.children.first().is_some_and(takes_value),
        (None, kind) => kind != ArgumentKind::PureToken,
    }
}

fn first_tokens(argument: &Argument, tokens: &mut Vec<&'static str>) {
    match (argument.token, argument.kind) {
        (Some(token), _) => tokens.push(token),
        (None, ArgumentKind::OneOf) => argument.children.iter().for_each(|child| first_tokens(child, tokens)),
        (None, ArgumentKind::Block) => {
            for child in &argument.children {
                first_tokens(child, tokens);
                if !child.is_optional {
                    break;
                }
            }
        }
        _ => {}
    }
}

fn notation(argument: &Argument) -> String {
    let children =
        |separator: &str| argument.children.iter().map(notation).collect::<Vec<_>>().join(separator);
    let value = match argument.kind {
        ArgumentKind::PureToken => String::new(),
        ArgumentKind::OneOf if argument.is_optional && argument.token.is_none() => children(" | "),
        ArgumentKind::OneOf => format!("<{}>", children(" | ")),
        ArgumentKind::Block => children(" "),
        _ => argument.name.clone(),
    };
    let once = match argument.token {
        Some(token) if value.is_empty() => token.to_owned(),
        Some(token) => format!("{token} {value}"),
        None => value,
    };
    match (argument.is_optional, argument.is_multiple) {
        (false, false) => once,
        (true, false) => format!("[{once}]"),
        (false, true) => format!("{once} [{once} ...]"),
        (true, true) => format!("[{once} ...]"),
    }
}

fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(line: &str) -> Option<String> {
        let words: Vec<_> = line.split(' ').collect();
        Remainder::after(&words).map(|remainder| remainder.notation())
    }

    #[test]
    fn words_use_up_arguments() {
        let cases = [
            ("get", "key"),
            ("get k", ""),
            ("mget", "key [key ...]"),
            ("mget a", "[key ...]"),
            ("mget a b", "[key ...]"),
            ("mset a", "value [key value ...]"),
            ("mset a 1", "[key value ...]"),
            ("mset a 1 b", "value [key value ...]"),
            (
                "getex k",
                "[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
            ),
            ("getex k EX", "seconds"),
            ("getex k ex 5", ""),
            ("config get", "parameter [parameter ...]"),
            ("object encoding", "key"),
            ("object encoding k", ""),
        ];
        for (line, expected) in cases {
            assert_eq!(hint(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn options_come_in_any_order_and_leave() {
        let all = hint("set k v").unwrap();
        assert!(all.contains("NX") && all.contains("[GET]") && all.contains("EX seconds"), "{all}");
        let less = hint("set k v ex 5").unwrap();
        assert!(less.contains("NX") && less.contains("[GET]") && !less.contains("EX seconds"), "{less}");
        let least = hint("set k v ex 5 nx").unwrap();
        assert_eq!(least, "[GET]");
        let zadd = hint("zadd z 1").unwrap();
        assert!(zadd.starts_with("member [score member") && !zadd.contains("NX"), "{zadd}");
    }

    #[test]
    fn what_fits_nowhere_has_no_hint() {
        for line in ["nosuch", "get k x", "set k v bogus", "object nosuch"] {
            assert_eq!(hint(line), None, "{line}");
        }
    }

    #[test]
    fn tokens_of_the_place() {
        let tokens = |line: &str| Remainder::after(&line.split(' ').collect::<Vec<_>>()).unwrap().tokens();
        let set = tokens("set k v");
        assert!(set.contains(&"NX") && set.contains(&"GET") && set.contains(&"EXAT"), "{set:?}");
        assert!(tokens("set").is_empty() && tokens("set k").is_empty());
        assert_eq!(tokens("bitcount k 0 1"), ["BYTE", "BIT"]);
        assert!(tokens("lmove a b").contains(&"LEFT"));
    }

    #[test]
    fn every_command_survives_any_number_of_words() {
        for row in towline_spec::rows() {
            for count in 0..6 {
                let words: Vec<&str> = row.name.split('|').chain(std::iter::repeat_n("1", count)).collect();
                let _ = Remainder::after(&words).map(|remainder| (remainder.notation(), remainder.tokens()));
            }
        }
    }
}
