//! From a command's syntax to the functions that make it.

use std::fmt::Write as _;
use towline_spec::syntax::{Argument, ArgumentKind, arguments};
use towline_spec::{Command, Group};

/// Words of Rust that a name must not be.
const KEYWORDS: &[&str] = &["move", "type", "where", "match", "ref"];

/// Values that count what follows them.
const COUNTS: &[&str] = &["numkeys", "numfields", "numids"];

/// One function.
pub(super) struct Method {
    pub(super) command: &'static Command,
    /// The function's name.
    pub(super) name: String,
    /// The names of its parameters.
    pub(super) params: Vec<String>,
    pieces: Vec<Piece>,
    has_options: bool,
}

/// What is appended to the command.
enum Piece {
    Token(&'static str),
    Param(String),
    /// A parameter behind how many groups of so many arguments it has.
    Counted(usize, String),
}

/// The function of a command, and the one with options if it has any.
pub(super) fn methods(command: &'static Command) -> Vec<Method> {
    let tree = arguments(command);
    let name = identifier(&command.name.replace('|', "_"));
    let plain = method(command, name.clone(), &tree, false);
    if !plain.has_options {
        return vec![plain];
    }
    let name = format!("{}_with", name.trim_end_matches('_'));
    vec![plain, method(command, name, &tree, true)]
}

fn method(command: &'static Command, name: String, tree: &[Argument], has_all: bool) -> Method {
    let mut out = Method { command, name, params: Vec::new(), pieces: Vec::new(), has_options: false };
    out.sequence(tree, has_all);
    out
}

impl Method {
    fn sequence(&mut self, items: &[Argument], has_all: bool) {
        let mut items = items.iter().peekable();
        while let Some(item) = items.next() {
            if COUNTS.contains(&item.name.as_str())
                && let Some(counted) = items.next_if(|next| next.is_multiple)
            {
                let size = counted.children.len().max(1);
                let name = self.parameter(&plural(&counted.name));
                self.pieces.push(Piece::Counted(size, name));
            } else if is_option(item) {
                let mut run = vec![item];
                while let Some(more) = items.next_if(|next| is_option(next)) {
                    run.push(more);
                }
                self.has_options = true;
                if has_all {
                    let name = match run.as_slice() {
                        [lone] if lone.token.is_none() && lone.children.is_empty() => lone.name.as_str(),
                        _ => "options",
                    };
                    let name = self.parameter(name);
                    self.pieces.push(Piece::Param(name));
                }
            } else {
                self.required(item, has_all);
            }
        }
    }

    fn required(&mut self, item: &Argument, has_all: bool) {
        if let Some(token) = item.token
            && !item.repeats_token
        {
            self.pieces.push(Piece::Token(token));
            if item.kind == ArgumentKind::PureToken {
                return;
            }
        }
        if item.kind == ArgumentKind::Block && !item.is_multiple {
            return self.sequence(&item.children, has_all);
        }
        // A choice between a value and a word for one (`<* | id>`) is called after the value.
        let value = item.children.iter().find(|child| child.token.is_none() && child.children.is_empty());
        let name = match value {
            Some(value) if item.name == "choice" && item.children.len() == 2 => &value.name,
            _ => &item.name,
        };
        let name = if item.is_multiple { plural(name) } else { name.clone() };
        let name = self.parameter(&name);
        self.pieces.push(Piece::Param(name));
    }

    /// A parameter of that name, or of one like it if it is taken.
    fn parameter(&mut self, name: &str) -> String {
        let name = identifier(name);
        let mut free = name.clone();
        let mut number = 2;
        while self.params.contains(&free) {
            free = format!("{}_{number}", name.trim_end_matches('_'));
            number += 1;
        }
        self.params.push(free.clone());
        free
    }

    /// The parameters in brackets, behind `first` if that is one.
    pub(super) fn params(&self, first: &str) -> String {
        let first = (!first.is_empty()).then(|| first.to_owned());
        let params = self.params.iter().map(|name| format!("{name}: impl ToArgs"));
        format!("({})", first.into_iter().chain(params).collect::<Vec<_>>().join(", "))
    }

    /// The expression that makes the command.
    pub(super) fn body(&self) -> String {
        let upper = self.command.name.to_ascii_uppercase();
        let mut words = upper.split('|');
        let mut text = format!("cmd({:?})", words.next().unwrap_or_default());
        for word in words {
            let _ = write!(text, ".arg({word:?})");
        }
        for piece in &self.pieces {
            match piece {
                Piece::Token(token) => _ = write!(text, ".arg({:?})", token.trim_matches('"')),
                Piece::Param(name) => _ = write!(text, ".arg({name})"),
                Piece::Counted(size, name) => text = format!("counted({text}, {size}, {name})"),
            }
        }
        text
    }

    /// The call of the function that makes the command.
    pub(super) fn call(&self) -> String {
        let file = super::file_of(self.command.group);
        format!("make::{file}::{}({})", self.name, self.params.join(", "))
    }

    fn line(&self) -> String {
        let name = self.command.name.replace('|', " ").to_ascii_uppercase();
        let syntax = self.command.syntax;
        let space = if syntax.is_empty() { "" } else { " " };
        format!("`{name}{space}{syntax}`")
    }

    /// The summary.
    pub(super) fn short_doc(&self) -> String {
        let with = if self.name.ends_with("_with") { " With options." } else { "" };
        wrapped(&format!("{}{with}", self.command.summary))
    }

    /// Everything that a caller wants to know.
    pub(super) fn long_doc(&self) -> String {
        let Command { since, complexity, deprecated, .. } = self.command;
        // Vector sets are Redis's own.
        let whose = match self.command.group {
            Group::Json | Group::Search | Group::TimeSeries | Group::Probabilistic => " of its module",
            _ => "",
        };
        let mut text = format!(
            "{}\n///\n{}",
            self.short_doc(),
            wrapped(&format!("{}: {complexity}, since {since}{whose}.", self.line()))
        );
        if let Some(old) = deprecated {
            let _ = write!(
                text,
                "\n///\n{}",
                wrapped(&format!("Old since {}: better {}.", old.since, old.replaced_by))
            );
        }
        text
    }
}

/// What may be left out. A repetition that may be empty needs no function of its own: nothing gives no arguments.
fn is_option(item: &Argument) -> bool {
    item.is_optional && !(item.is_multiple && item.token.is_none() && item.children.is_empty())
}

fn plural(name: &str) -> String {
    match name.strip_suffix('y') {
        Some(stem) if !name.ends_with("key") => format!("{stem}ies"),
        _ if name.ends_with('s') => name.to_owned(),
        _ => format!("{name}s"),
    }
}

fn identifier(name: &str) -> String {
    // `ft._list` is `ft_list`.
    let name = name.replace("._", "_").replace(['-', '/', '.'], "_").to_ascii_lowercase();
    if KEYWORDS.contains(&name.as_str()) { format!("{name}_") } else { name }
}

/// A doc comment of lines that are not too long. Code stays in one piece.
fn wrapped(text: &str) -> String {
    const COLUMNS: usize = 108;
    let mut out = String::from("///");
    let mut len = out.len();
    for word in text.split(' ') {
        if len + 1 + word.len() > COLUMNS {
            out.push_str("\n///");
            len = 3;
        }
        out.push(' ');
        out.push_str(word);
        len += 1 + word.len();
    }
    out
}
