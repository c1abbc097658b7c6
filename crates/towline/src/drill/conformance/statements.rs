// Long because: it is the table of all statements of the contract that are checked.

//! The statements of `docs/maintenance-notifications.md` that can be checked on a peer, by number and name.
//!
//! Owns the list. The document has the same numbers and names, which a test compares. Does not own the checks.

/// Whom a statement binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// How strongly, in the words of RFC 2119.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Must,
    Should,
}

/// One statement that has a check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statement {
    /// `MN-12` has number 12.
    pub(super) number: u32,
    /// The name of its check.
    pub(super) name: &'static str,
    pub(super) side: Side,
    pub(super) level: Level,
    /// What is looked at, in a line.
    pub(super) about: &'static str,
}

const fn server(number: u32, name: &'static str, level: Level, about: &'static str) -> Statement {
    Statement { number, name, side: Side::Server, level, about }
}

const fn client(number: u32, name: &'static str, level: Level, about: &'static str) -> Statement {
    Statement { number, name, side: Side::Client, level, about }
}

use Level::{Must, Should};

/// All of them, by number.
pub(super) const STATEMENTS: &[Statement] = &[
    server(1, "opt-in", Must, "CLIENT MAINT_NOTIFICATIONS ON is answered with OK"),
    server(2, "opt-in-any-case", Must, "words are understood in any case"),
    server(3, "endpoint-types", Must, "each of the five endpoint types is accepted"),
    server(4, "unknown-type-refused", Must, "another endpoint type is refused, and the connection goes on"),
    server(5, "auto-refused", Must, "auto is a word of clients and is refused"),
    server(6, "bad-arguments-refused", Must, "too few or too many words are refused"),
    server(7, "off", Must, "OFF is answered with OK and stops the frames"),
    server(8, "last-opt-in-counts", Must, "a second ON replaces the endpoint type of the first"),
    server(9, "resp2-silent", Must, "a RESP2 connection is never sent a frame"),
    server(10, "opt-in-only", Must, "a connection that did not opt in is never sent a frame"),
    server(20, "moving-shape", Must, "MOVING has four elements: name, integer, integer, string or null"),
    server(21, "moving-time", Must, "its time is whole seconds, at least 1 and at most the window"),
    server(22, "moving-ip", Must, "its endpoint is address:port for the IP types, if an address is known"),
    server(23, "moving-none", Must, "its endpoint is the null of RESP3 for the type none"),
    server(24, "between-replies", Must, "frames stand between replies, never inside of one"),
    server(25, "seq-rises", Must, "numbers rise from event to event"),
    server(26, "once", Must, "one event is sent once to a connection"),
    server(27, "replay", Must, "who opts in during the window is sent the event with its number"),
    server(28, "replay-remaining-time", Must, "with the time that is left"),
    server(29, "no-replay-after-end", Must, "and not once the window is over"),
    server(30, "accepts-in-window", Must, "new connections are served during the window"),
    server(31, "not-closed-early", Must, "told connections are served to the window's end"),
    server(32, "closed-at-end", Must, "and closed within two seconds after it"),
    server(33, "new-ones-stay", Should, "connections from within the window outlive it"),
    server(34, "answers-before-close", Should, "what was executed is answered before the close"),
    server(35, "blocked-released", Should, "who is blocked gets the reply of a timeout before the close"),
    server(40, "migrating-shape", Must, "MIGRATING has four elements"),
    server(41, "migrated-shape", Must, "MIGRATED has three elements"),
    server(42, "failing-over-shape", Must, "FAILING_OVER has four elements"),
    server(43, "failed-over-shape", Must, "FAILED_OVER has three elements"),
    server(44, "smigrating-shape", Must, "SMIGRATING has three elements, the slots in one string"),
    server(45, "smigrated-shape", Must, "SMIGRATED has three elements, the last of triplets"),
    client(60, "resp3-first", Must, "RESP3 is agreed on before the opt-in"),
    client(61, "opt-in-form", Must, "the opt-in is ON, alone or with one of the five types"),
    client(
        62,
        "refusal-tolerated",
        Must,
        "an error as its answer changes nothing, unless notifications are required",
    ),
    client(63, "frames-in-handshake", Must, "a frame right behind the OK of the opt-in does no harm"),
    client(64, "moves", Must, "after MOVING commands arrive at the named endpoint, within the window"),
    client(65, "leaves", Must, "and the old connection is closed by the client before the window's end"),
    client(66, "make-before-break", Should, "and only once the new one has been made"),
    client(67, "finishes-in-flight", Must, "and not while a command of its own is unanswered there"),
    client(68, "repeats-ignored", Must, "the same MOVING again changes nothing"),
    client(69, "null-at-half", Must, "without an endpoint it comes back at half the window, and not before"),
    client(70, "stays-when-refused", Should, "it stays on the old connection while the endpoint refuses it"),
    client(71, "simple-strings", Must, "elements may be simple strings"),
    client(72, "extra-elements", Must, "more elements than are known are ignored"),
    client(73, "unknown-frames", Must, "frames of unknown names are ignored"),
    client(74, "short-frames", Must, "MIGRATING without shards and odd frames do no harm"),
];

impl Statement {
    /// `MN-12`.
    pub(super) fn id(&self) -> String {
        format!("MN-{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: &str = include_str!("../../../../../docs/maintenance-notifications.md");

    #[test]
    fn the_document_has_every_statement_with_its_check() {
        for statement in STATEMENTS {
            let line = CONTRACT.lines().find(|line| line.starts_with(&format!("**{}**", statement.id())));
            let line = line.unwrap_or_else(|| panic!("{} is not in the document", statement.id()));
            let name = format!("(`{}`)", statement.name);
            assert!(line.contains(&name), "{} lacks {name}", statement.id());
        }
    }

    #[test]
    fn the_document_names_no_check_that_does_not_exist() {
        for line in CONTRACT.lines().filter(|line| line.starts_with("**MN-")) {
            let id = line.trim_start_matches('*').split('*').next().unwrap_or_default();
            let is_known = STATEMENTS.iter().any(|statement| statement.id() == id);
            assert!(is_known || line.contains("(no check"), "{id}: {line}");
        }
    }

    #[test]
    fn numbers_and_names_are_unique() {
        for pair in STATEMENTS.windows(2) {
            assert!(pair[0].number < pair[1].number, "{}", pair[1].id());
        }
        let mut names: Vec<_> = STATEMENTS.iter().map(|statement| statement.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STATEMENTS.len());
    }
}
