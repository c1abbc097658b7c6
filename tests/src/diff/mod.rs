//! The differential tester: the same random program for two servers, every reply compared.
//!
//! Owns: the search for differences, the shrinking of a program that shows one, and the report. A difference is either
//! a mistake or stands in [`crate::known_differences`] with its reason.
//!
//! ```text
//! cargo run -p e2e --bin differential -- --type zsets --seed 1 --count 200000 --a towline --b redis70
//! ```

mod compare;
mod dialect;
mod program;
mod side;
mod template;
mod topics;
mod values;

pub use dialect::Dialects;
pub use program::command_line;
pub use topics::{TOPICS, Topic};

use crate::known_differences;
use crate::process::ServerKind;
use crate::value::Value;
use program::{Program, Templates, command_name};
use side::{Answers, Side};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};
use template::Arguments;

/// Programs that are tried while one is shrunk.
const SHRINK_TRIES_MAX: usize = 600;

/// How long shrinking may take: each try of a program that hangs costs a reply's timeout.
const SHRINK_TIME_MAX: Duration = Duration::from_secs(60);

/// What to compare.
#[derive(Debug)]
pub struct Settings {
    /// The commands to draw from.
    pub topic: &'static Topic,
    /// The first program's seed; each next program has the next seed.
    pub seed: u64,
    /// How many commands to compare at least.
    pub count: u64,
    /// The two servers.
    pub sides: [ServerKind; 2],
    /// How many differences to report before stopping.
    pub findings_max: usize,
}

/// What a run did.
#[derive(Debug)]
pub struct Summary {
    /// How many commands were compared.
    pub compared: u64,
    /// The differences found, each ready to be printed.
    pub findings: Vec<String>,
    /// How often each known difference was seen, by name.
    pub known: BTreeMap<&'static str, u64>,
}

/// A command on which the sides differ.
#[derive(Debug)]
struct Difference {
    /// Index among all commands of the program, the probes included.
    at: usize,
    /// What was asked: of the commands queued in a transaction, the one whose reply differs.
    command: Arguments,
    replies: [String; 2],
    /// Equal in two differences with, most likely, the same cause.
    signature: String,
}

/// Compares until `settings.count` commands have agreed or enough differences are found.
///
/// # Errors
/// A server cannot be started.
pub fn run(settings: &Settings) -> anyhow::Result<Summary> {
    let mut sides = [Side::start(settings.sides[0])?, Side::start(settings.sides[1])?];
    let dialects = Dialects::of(settings.sides);
    let templates = Templates::new(settings.topic, dialects);
    let mut summary = Summary { compared: 0, findings: Vec::new(), known: BTreeMap::new() };
    let mut seen = Vec::new();
    let mut seed = settings.seed;
    while summary.compared < settings.count && summary.findings.len() < settings.findings_max {
        let program = Program::draw(settings.topic, &templates, dialects, seed);
        let probes = probes(settings.topic);
        let outcome = execute(&mut sides, &program, &probes, &mut summary.known)?;
        summary.compared += (program.commands().len() + probes.len()) as u64;
        if let Some(difference) = outcome
            && !seen.contains(&difference.signature)
        {
            seen.push(difference.signature.clone());
            let (program, difference) = shrink(&mut sides, program, &probes, difference)?;
            summary.findings.push(report(settings, seed, &program, &difference));
        }
        seed = seed.wrapping_add(1);
    }
    Ok(summary)
}

/// The commands of the program of `topic` that `seed` gives, for every dialect.
pub fn commands(topic: &Topic, seed: u64) -> Vec<Arguments> {
    let dialects = Dialects::all();
    Program::draw(topic, &Templates::new(topic, dialects), dialects, seed).commands()
}

/// As [`commands`], with all that only some dialects know: what Towline speaks.
pub fn own_commands(topic: &Topic, seed: u64) -> Vec<Arguments> {
    let dialects = Dialects::of([ServerKind::Towline; 2]);
    Program::draw(topic, &Templates::new(topic, dialects), dialects, seed).commands()
}

/// Commands that read all of the state that a program may have left.
fn probes(topic: &Topic) -> Vec<Arguments> {
    let mut keys: Vec<String> = ["s1", "l1", "h1", "e1", "z1"].map(str::to_owned).to_vec();
    keys.extend((1..=4).map(|number| format!("{}{number}", topic.key_letter)));
    keys.sort();
    keys.dedup();
    let mut lines = vec!["KEYS *".to_owned()];
    for key in keys {
        lines.push(format!("TTL {key}"));
        for shape in ["GET {}", "LRANGE {} 0 -1", "HGETALL {}", "SMEMBERS {}", "ZRANGE {} 0 -1 WITHSCORES"] {
            lines.push(shape.replace("{}", &key));
        }
    }
    lines.iter().map(|line| line.split(' ').map(|word| word.as_bytes().to_vec()).collect()).collect()
}

/// Runs a program on both sides; the first difference that is not a known one.
fn execute(
    sides: &mut [Side; 2],
    program: &Program,
    probes: &[Arguments],
    known: &mut BTreeMap<&'static str, u64>,
) -> anyhow::Result<Option<Difference>> {
    let [a, b] = sides;
    let answers = [a.run(program, probes)?, b.run(program, probes)?];
    let mut commands = program.commands();
    commands.push(vec![b"DISCARD".to_vec()]);
    commands.push(vec![b"SELECT".to_vec(), b"0".to_vec()]);
    commands.extend(probes.iter().cloned());
    Ok(first_difference([a.kind(), b.kind()], &commands, &answers, known))
}

fn first_difference(
    kinds: [ServerKind; 2],
    commands: &[Arguments],
    answers: &[Answers; 2],
    known: &mut BTreeMap<&'static str, u64>,
) -> Option<Difference> {
    let [a, b] = answers;
    let mut queue: Vec<&Arguments> = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        let (Some(x), Some(y)) = (a.replies.get(at), b.replies.get(at)) else {
            let end = |answers: &Answers| match (answers.replies.get(at), &answers.failure) {
                (Some(reply), _) => reply.to_string(),
                (None, failure) => failure.clone().unwrap_or_else(|| "no reply".into()),
            };
            if a.replies.len() == b.replies.len() && a.failure.is_some() && b.failure.is_some() {
                return None;
            }
            let replies = [end(a), end(b)];
            return Some(Difference {
                at,
                signature: signature(command, &replies),
                command: command.clone(),
                replies,
            });
        };
        let pairs = match (command_name(command).as_str(), x, y) {
            ("EXEC", Value::Array(x), Value::Array(y))
                if x.len() == queue.len() && y.len() == queue.len() =>
            {
                queue.iter().copied().zip(x.iter().zip(y)).collect()
            }
            _ => vec![(command, (x, y))],
        };
        for (command, (x, y)) in pairs {
            if compare::agree(command, x, y) {
                continue;
            }
            if let Some(found) = known_differences::find(kinds, command, [x, y]) {
                *known.entry(found.name).or_default() += 1;
                if found.diverges {
                    return None;
                }
                continue;
            }
            let replies = [x.to_string(), y.to_string()];
            return Some(Difference {
                at,
                signature: signature(command, &replies),
                command: command.clone(),
                replies,
            });
        }
        match x {
            Value::Simple(text) if text == b"QUEUED" => queue.push(command),
            // A refused MULTI inside a transaction leaves its queue as it is.
            Value::Error(_) if command_name(command) == "MULTI" => {}
            _ if matches!(command_name(command).as_str(), "EXEC" | "DISCARD" | "RESET" | "MULTI") => {
                queue.clear()
            }
            _ => {}
        }
    }
    None
}

/// The command's name and both replies without what varies in them.
fn signature(command: &Arguments, replies: &[String; 2]) -> String {
    let shape = |reply: &String| {
        if reply.starts_with('-') { without_quoted(reply) } else { reply.chars().take(1).collect::<String>() }
    };
    format!("{} {} {}", command_name(command), shape(&replies[0]), shape(&replies[1]))
}

/// An error text without digits and quoted words, which repeat what the caller sent.
fn without_quoted(text: &str) -> String {
    let parts = text.split(['\'', '"', '`']).step_by(2);
    parts.flat_map(str::chars).filter(|c| !c.is_ascii_digit()).collect()
}

/// Removes units while the difference stays, in the manner of Zeller's ddmin.
fn shrink(
    sides: &mut [Side; 2],
    mut program: Program,
    probes: &[Arguments],
    mut difference: Difference,
) -> anyhow::Result<(Program, Difference)> {
    let began = Instant::now();
    let mut tries = 0;
    let mut chunk = program.units.len().div_ceil(2);
    let signature = difference.signature.clone();
    while tries < SHRINK_TRIES_MAX && began.elapsed() < SHRINK_TIME_MAX {
        let mut is_smaller = false;
        let mut start = 0;
        while start < program.units.len() && tries < SHRINK_TRIES_MAX && began.elapsed() < SHRINK_TIME_MAX {
            let mut candidate = program.clone();
            candidate.units.drain(start..(start + chunk).min(program.units.len()));
            tries += 1;
            match execute(sides, &candidate, probes, &mut BTreeMap::new())? {
                Some(found) if found.signature == signature => {
                    program = candidate;
                    difference = found;
                    is_smaller = true;
                }
                _ => start += chunk,
            }
        }
        if chunk == 1 && !is_smaller {
            break;
        }
        chunk = chunk.div_ceil(2).max(1);
    }
    Ok((program, difference))
}

fn report(settings: &Settings, seed: u64, program: &Program, difference: &Difference) -> String {
    let mut text = String::new();
    let [a, b] = settings.sides.map(ServerKind::name);
    let protocol = if program.is_resp3 { 3 } else { 2 };
    let _ = writeln!(
        text,
        "difference on `{}` (RESP{protocol}, compact up to {} entries):\n  {a:<9} {}\n  {b:<9} {}\nafter:",
        command_line(&difference.command),
        program.compact_entries,
        shortened(&difference.replies[0]),
        shortened(&difference.replies[1]),
    );
    for (at, command) in program.commands().iter().enumerate().take(difference.at + 1) {
        let _ =
            writeln!(text, "  {}{}", command_line(command), if at == difference.at { "    <--" } else { "" });
    }
    if difference.at >= program.commands().len() {
        let _ = writeln!(text, "  (seen when the state was read at the end)");
    }
    let _ = write!(
        text,
        "repeat: cargo run -p e2e --bin differential -- --type {} --seed {seed} --count 1 --a {a} --b {b}",
        settings.topic.name
    );
    text
}

/// A reply of readable length.
fn shortened(reply: &str) -> String {
    const SHOWN_CHARS: usize = 400;
    match reply.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}... ({} bytes)", &reply[..at], reply.len()),
        None => reply.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialects, Program, TOPICS, Templates};

    #[test]
    fn every_shape_of_every_topic_can_be_drawn() {
        for topic in TOPICS {
            for dialects in [Dialects::all(), Dialects::parse("R8V9"), Dialects::parse("V9")] {
                let templates = Templates::new(topic, dialects);
                for seed in 0..50 {
                    let program = Program::draw(topic, &templates, dialects, seed);
                    assert!(program.commands().iter().all(|command| !command.is_empty()), "{}", topic.name);
                }
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_program_again() {
        let topic = &TOPICS[0];
        let templates = Templates::new(topic, Dialects::all());
        let draw = |seed| Program::draw(topic, &templates, Dialects::all(), seed).commands();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
