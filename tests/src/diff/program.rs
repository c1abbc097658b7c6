//! A random program: what one connection sends to both servers.
//!
//! Owns: drawing a program from a seed, and showing it as text that a person can send again.

use super::dialect::Dialects;
use super::template::{Arguments, Template};
use super::topics::Topic;
use super::values::Draw;
use towline_sansio::Prng;

/// Units that are drawn for one program: long enough for state to build up, short enough to shrink fast.
const UNITS: usize = 150;

/// How often a command is damaged, in percent.
const DAMAGE_PERCENT: usize = 6;

/// How often a command comes from another topic, in percent.
const COMMON_PERCENT: usize = 12;

/// Commands that are never damaged: a stray argument could block the connection, or change the server for others.
const UNDAMAGED: &[&str] = &["CLIENT", "CONFIG", "DEBUG", "MULTI", "RESET", "SELECT", "SWAPDB", "HELLO"];

/// What is sent: a protocol version, thresholds, and units of commands.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Whether the connection speaks RESP3.
    pub(super) is_resp3: bool,
    /// The length at which compact encodings end, small so that both encodings occur.
    pub(super) compact_entries: usize,
    /// Commands in groups that stay together.
    pub(super) units: Vec<Vec<Arguments>>,
}

impl Program {
    /// Draws a program of `topic` from `seed`.
    pub(super) fn draw(topic: &Topic, templates: &Templates, dialects: Dialects, seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let mut draw = Draw::new(&mut prng, dialects, topic.key_letter);
        let is_resp3 = draw.chance(50);
        let compact_entries = [4, 8, 128][draw.below(3)];
        let mut units = Vec::with_capacity(UNITS);
        while units.len() < UNITS {
            let pool = if draw.chance(COMMON_PERCENT) { &templates.common } else { &templates.own };
            let template = &pool[draw.below(pool.len())];
            let mut unit = template.expand(&mut draw);
            // A random element that is taken has to be followed by the removal of the rest, see the templates.
            let is_random = unit.iter().any(|command| command_name(command) == "SPOP");
            if !is_random && draw.chance(DAMAGE_PERCENT) {
                let at = draw.below(unit.len());
                if may_be_damaged(&unit[at]) {
                    draw.damage(&mut unit[at]);
                }
            }
            units.push(unit);
        }
        Self { is_resp3, compact_entries, units }
    }

    /// All commands in order.
    pub(super) fn commands(&self) -> Vec<Arguments> {
        self.units.iter().flatten().cloned().collect()
    }
}

/// The templates that fit a pair of servers.
#[derive(Debug)]
pub(super) struct Templates {
    own: Vec<Template>,
    common: Vec<Template>,
}

impl Templates {
    /// Those of `topic` that all of `dialects` know.
    pub(super) fn new(topic: &Topic, dialects: Dialects) -> Self {
        let (mut own, mut common) = topic.templates();
        own.retain(|template| dialects.is_within(template.dialects));
        common.retain(|template| dialects.is_within(template.dialects));
        Self { own, common }
    }
}

fn may_be_damaged(command: &Arguments) -> bool {
    let name = command_name(command);
    // A stray score would end what the keys for orders of members promise.
    let is_lex = command.iter().any(|argument| argument.starts_with(b"lex"));
    !is_lex && !name.starts_with('B') && !UNDAMAGED.contains(&name.as_str())
}

/// The command's name in upper case.
pub(super) fn command_name(command: &Arguments) -> String {
    command.first().map(|name| String::from_utf8_lossy(name).to_uppercase()).unwrap_or_default()
}

/// The command as redis-cli understands it.
pub fn command_line(command: &Arguments) -> String {
    let words: Vec<String> = command
        .iter()
        .map(|argument| {
            let is_plain = !argument.is_empty()
                && argument
                    .iter()
                    .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\'));
            if is_plain {
                String::from_utf8_lossy(argument).into_owned()
            } else {
                format!("\"{}\"", argument.escape_ascii())
            }
        })
        .collect();
    words.join(" ")
}
