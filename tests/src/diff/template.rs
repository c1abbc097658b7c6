//! A small grammar for command shapes.
//!
//! Owns: parsing of a template such as `SET $key $value [ NX | XX ] [ EX $ttl ]` and its expansion to arguments. What a
//! `$class` may be is decided in [`super::values`].
//!
//! | written | means |
//! |---|---|
//! | `WORD` | itself, now and then in another case |
//! | `$class` | an argument of that class, or several |
//! | `[ a \| b ]` | nothing, or one of the alternatives |
//! | `( a \| b )` | one of the alternatives |
//! | `{ a \| b }` | one to three alternatives in any order, repeats included |
//! | `@R8V9` in front | this template or alternative exists only in the named dialects |
//! | `;` | the next command of the same unit, which shrinking never takes apart |

use super::dialect::Dialects;
use super::values::Draw;

/// A parsed template: the commands of one unit.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pub(super) dialects: Dialects,
    commands: Vec<Vec<Item>>,
}

#[derive(Clone, Debug)]
enum Item {
    Word(String),
    Class(String),
    Maybe(Vec<Alternative>),
    One(Vec<Alternative>),
    Some(Vec<Alternative>),
}

#[derive(Clone, Debug)]
struct Alternative {
    dialects: Dialects,
    items: Vec<Item>,
}

/// A command's arguments, the name first.
pub(super) type Arguments = Vec<Vec<u8>>;

impl Template {
    /// Parses `text`. A mistake in it is a bug of the table that holds it, hence a panic.
    pub(super) fn parse(text: &str) -> Self {
        let mut tokens: Vec<&str> = text.split_whitespace().collect();
        let dialects = leading_dialects(&mut tokens);
        let commands = tokens.split(|token| *token == ";").map(|tokens| parse_items(text, tokens)).collect();
        Self { dialects, commands }
    }

    /// Draws one unit from the template.
    pub(super) fn expand(&self, draw: &mut Draw<'_>) -> Vec<Arguments> {
        // A class followed by a digit, such as `$key1`, keeps its value through the whole unit.
        draw.forget_names();
        self.commands
            .iter()
            .map(|items| {
                let mut arguments = Vec::new();
                expand_items(items, draw, &mut arguments);
                arguments
            })
            .collect()
    }
}

/// Takes an `@...` off the front.
fn leading_dialects(tokens: &mut Vec<&str>) -> Dialects {
    match tokens.first().and_then(|token| token.strip_prefix('@')) {
        Some(text) => {
            let dialects = Dialects::parse(text);
            tokens.remove(0);
            dialects
        }
        None => Dialects::all(),
    }
}

fn parse_items(whole: &str, tokens: &[&str]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        at += 1;
        let close = match token {
            "[" => "]",
            "(" => ")",
            "{" => "}",
            _ => {
                items.push(match token.strip_prefix('$') {
                    Some(class) => Item::Class(class.to_owned()),
                    None => Item::Word(token.to_owned()),
                });
                continue;
            }
        };
        let length = matching(whole, &tokens[at..], token, close);
        let alternatives = parse_alternatives(whole, &tokens[at..at + length]);
        at += length + 1;
        items.push(match token {
            "[" => Item::Maybe(alternatives),
            "(" => Item::One(alternatives),
            _ => Item::Some(alternatives),
        });
    }
    items
}

/// How many tokens stand before the bracket that closes this group.
fn matching(whole: &str, tokens: &[&str], open: &str, close: &str) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate() {
        if *token == open {
            depth += 1;
        } else if *token == close {
            if depth == 0 {
                return index;
            }
            depth -= 1;
        }
    }
    panic!("template without `{close}`: {whole}")
}

fn parse_alternatives(whole: &str, tokens: &[&str]) -> Vec<Alternative> {
    let mut alternatives = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "[" | "(" | "{" => depth += 1,
            "]" | ")" | "}" => depth -= 1,
            "|" if depth == 0 => {
                alternatives.push(parse_alternative(whole, &tokens[start..index]));
                start = index + 1;
            }
            _ => {}
        }
    }
    alternatives.push(parse_alternative(whole, &tokens[start..]));
    alternatives
}

fn parse_alternative(whole: &str, tokens: &[&str]) -> Alternative {
    let mut tokens = tokens.to_vec();
    let dialects = leading_dialects(&mut tokens);
    Alternative { dialects, items: parse_items(whole, &tokens) }
}

fn expand_items(items: &[Item], draw: &mut Draw<'_>, out: &mut Arguments) {
    for item in items {
        match item {
            Item::Word(word) => out.push(draw.word(word)),
            Item::Class(class) => draw.class(class, out),
            Item::Maybe(alternatives) => {
                if draw.chance(50) {
                    expand_one(alternatives, draw, out);
                }
            }
            Item::One(alternatives) => expand_one(alternatives, draw, out),
            Item::Some(alternatives) => {
                for _ in 0..=draw.below(3) {
                    expand_one(alternatives, draw, out);
                }
            }
        }
    }
}

fn expand_one(alternatives: &[Alternative], draw: &mut Draw<'_>, out: &mut Arguments) {
    let usable: Vec<&Alternative> =
        alternatives.iter().filter(|alternative| draw.dialects().is_within(alternative.dialects)).collect();
    if !usable.is_empty() {
        let chosen = usable[draw.below(usable.len())];
        expand_items(&chosen.items, draw, out);
    }
}
