//! The list of commands in docs/compatibility.md, written from the command table so that the two cannot drift apart.
//!
//! Owns: the text between the two markers of that file. The rest of it is written by people.

use anyhow::{Context, bail};
use std::fmt::Write;
use std::path::Path;
use towline_spec::{Command, State};

const FILE: &str = "docs/compatibility.md";
const BEGIN: &str = "<!-- commands: begin (written by `cargo xtask fix`) -->\n";
const END: &str = "<!-- commands: end -->\n";

/// Whether the list in the file is the one that the table gives; a line that says so when it is not.
///
/// # Errors
/// The file is missing, or its markers are.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let (old, new) = texts(root)?;
    Ok(if old == new { Vec::new() } else { vec![format!("{FILE} is out of date: run `cargo xtask fix`")] })
}

/// Writes the list into the file.
///
/// # Errors
/// The file cannot be read or written, or its markers are missing.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    let (old, new) = texts(root)?;
    if old != new {
        std::fs::write(root.join(FILE), new).with_context(|| format!("cannot write {FILE}"))?;
    }
    Ok(())
}

/// The file as it is and as it should be.
fn texts(root: &Path) -> anyhow::Result<(String, String)> {
    let old = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let parts = old.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let Some((head, tail)) = parts else { bail!("{FILE} has lost its markers") };
    let new = format!("{head}{BEGIN}{}{END}{tail}", table());
    Ok((old, new))
}

/// One table for each group, in the order of the command table.
fn table() -> String {
    let mut groups: Vec<(&str, Vec<&Command>)> = Vec::new();
    for command in towline_spec::all().iter().filter(|command| !command.is_internal) {
        let name = command.group.name();
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, commands)) => commands.push(command),
            None => groups.push((name, vec![command])),
        }
    }
    let mut text = String::new();
    for (group, commands) in groups {
        let _ = write!(text, "\n### {group}\n\n| command | state |\n|---|---|\n");
        for command in commands {
            row(&mut text, command);
            for subcommand in command.subcommands() {
                row(&mut text, subcommand);
            }
        }
    }
    text.push('\n');
    text
}

fn row(text: &mut String, command: &Command) {
    let name = command.name.replace('|', " ").to_uppercase();
    let state = match command.state {
        State::Implemented => "yes".to_owned(),
        State::Planned(part) => format!("later: {part}"),
    };
    let _ = writeln!(text, "| `{name}` | {state} |");
}
