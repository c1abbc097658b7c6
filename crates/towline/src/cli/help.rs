//! `help`: what the command table knows about commands and groups.
//!
//! Owns the layout of the texts; the words come from the table.

use towline_spec::{Command, all, lookup, lookup_sub};

const GENERAL: &str = "\
towline cli sends each line to the server as a command and shows the reply.

  help <command>       what a command does, e.g. help set, help client kill
  help @<group>        the commands of a group; help @<Tab> goes through the groups
  connect <host> <port>
                       turn to another server
  <count> <command>    run a command several times
  clear                clear the screen
  :set hints|nohints   show the arguments that are still missing, or do not
  quit                 leave; so do exit, Ctrl-D and Ctrl-C

Words are separated by spaces. \"...\" may hold spaces and \\n, \\r, \\t, \\b, \\a, \\\", \\\\ and \\xHH; '...' holds
everything as it is but \\'. Ctrl-C ends a command that waits, a subscription and MONITOR.
";

/// The text for `help` and the words behind it.
pub(crate) fn text(words: &[Vec<u8>]) -> String {
    match words {
        [] => GENERAL.to_owned(),
        [group] if group.starts_with(b"@") => about_group(&String::from_utf8_lossy(&group[1..])),
        [name] => lookup(name).map_or_else(|| unknown(words), about_command),
        [name, sub, ..] => match lookup(name).and_then(|parent| lookup_sub(parent, sub)) {
            Some(row) => format!("\n{}\n", about(row)),
            None => unknown(words),
        },
    }
}

/// The names of the groups, in the table's order.
pub(crate) fn groups() -> Vec<&'static str> {
    let mut names = Vec::new();
    for row in all() {
        if !names.contains(&row.group.name()) {
            names.push(row.group.name());
        }
    }
    names
}

fn about_command(command: &Command) -> String {
    let rows = std::iter::once(command).chain(command.subcommands());
    format!("\n{}\n", rows.map(about).collect::<Vec<_>>().join("\n"))
}

fn about_group(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let rows: Vec<_> = all()
        .iter()
        .filter(|row| row.group.name() == name && !row.is_internal)
        .map(|row| format!("  {}\n  summary: {}\n  since: {}\n", title(row), row.summary, row.since))
        .collect();
    if rows.is_empty() {
        return format!("There is no group @{name}; the groups are @{}\n", groups().join(", @"));
    }
    format!("\n{}\n", rows.join("\n"))
}

/// Name and arguments.
fn title(row: &Command) -> String {
    let name = row.name.to_ascii_uppercase().replace('|', " ");
    format!("{name} {}", row.syntax).trim_end().to_owned()
}

fn about(row: &Command) -> String {
    let mut text = format!("  {}\n  summary: {}\n  since: {}\n", title(row), row.summary, row.since);
    text.push_str(&format!("  group: {}\n", row.group.name()));
    if !row.is_container() {
        text.push_str(&format!("  complexity: {}\n", row.complexity));
    }
    if let Some(deprecation) = row.deprecated {
        text.push_str(&format!(
            "  deprecated since {}: use {}\n",
            deprecation.since, deprecation.replaced_by
        ));
    }
    text
}

fn unknown(words: &[Vec<u8>]) -> String {
    let name = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
    format!("There is no help on {name:?}; `help @<group>` lists commands\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(line: &str) -> String {
        text(&line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn help_tells_about_commands_subcommands_and_groups() {
        assert!(help("").contains("help @<group>"));
        let get = help("GET");
        assert!(get.contains("\n  GET key\n  summary: ") && get.contains("  group: string\n"), "{get}");
        let kill = help("client kill");
        assert!(kill.contains("  CLIENT KILL ") && !kill.contains("CLIENT LIST"), "{kill}");
        assert!(help("client").contains("CLIENT LIST") && help("CLIENT").contains("CLIENT KILL"));
        let hashes = help("@hash");
        assert!(hashes.contains("HGETALL key") && !hashes.contains("LPUSH"), "{hashes}");
        assert!(help("@sorted-set").contains("ZADD") && help("@sorted_set").contains("ZADD"));
        assert!(help("@nosuch").contains("@string"));
        assert!(help("nosuch x").contains("no help on \"nosuch x\""));
    }
}
