//! The outcome of each check, as lines or as JSON.
//!
//! Owns the forms and what an outcome means for the exit code. Does not own the checks.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::statements::{Level, STATEMENTS, Side, Statement};

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// With what was seen instead.
    Failed(String),
    /// With what it would need.
    NotExercised(String),
}

impl Outcome {
    /// Passed if true, and failed with this text otherwise.
    pub(super) fn when(is_fine: bool, otherwise: impl FnOnce() -> String) -> Self {
        if is_fine { Self::Passed } else { Self::Failed(otherwise()) }
    }
}

/// The outcomes so far, by name.
#[derive(Debug, Default)]
pub(super) struct Verdicts(BTreeMap<&'static str, Outcome>);

impl Verdicts {
    /// Notes an outcome. Of several for one check the worst stays: one failure is enough, and a pass is more than nothing.
    pub(super) fn note(&mut self, name: &'static str, outcome: Outcome) {
        let rank = |outcome: &Outcome| match outcome {
            Outcome::NotExercised(_) => 0,
            Outcome::Passed => 1,
            Outcome::Failed(_) => 2,
        };
        let place = self.0.entry(name).or_insert_with(|| outcome.clone());
        if rank(&outcome) > rank(place) {
            *place = outcome;
        }
    }

    /// All checks of a side, or only that with this name, in the order of the statements.
    pub(super) fn of<'a>(
        &'a self,
        side: Side,
        only: Option<&'a str>,
    ) -> impl Iterator<Item = (&'static Statement, Outcome)> + 'a {
        let wanted = STATEMENTS.iter().filter(move |statement| {
            statement.side == side && only.is_none_or(|only| only == statement.name || only == statement.id())
        });
        wanted.map(|statement| {
            let none = || Outcome::NotExercised("the check did not come about".to_owned());
            (statement, self.0.get(statement.name).cloned().unwrap_or_else(none))
        })
    }
}

#[derive(Serialize)]
struct Line {
    id: String,
    name: &'static str,
    level: &'static str,
    outcome: &'static str,
    about: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The sums of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) not_exercised: usize,
}

/// Writes a line for each outcome, and the sums.
///
/// # Errors
/// Those of the writer.
pub(super) fn write(
    out: &mut impl Write,
    outcomes: impl Iterator<Item = (&'static Statement, Outcome)>,
    is_json: bool,
) -> io::Result<Sums> {
    let mut sums = Sums::default();
    for (statement, outcome) in outcomes {
        let (word, why) = match outcome {
            Outcome::Passed => ("pass", None),
            Outcome::Failed(why) => ("FAIL", Some(why)),
            Outcome::NotExercised(why) => ("not exercised", Some(why)),
        };
        match word {
            "pass" => sums.passed += 1,
            "FAIL" => sums.failed += 1,
            _ => sums.not_exercised += 1,
        }
        let level = if statement.level == Level::Must { "MUST" } else { "SHOULD" };
        let line = Line {
            id: statement.id(),
            name: statement.name,
            level,
            outcome: word,
            about: statement.about,
            why,
        };
        if is_json {
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        } else {
            let why = line.why.map_or_else(String::new, |why| format!("\n{:<39}{why}", ""));
            let Line { id, name, about, .. } = line;
            writeln!(out, "{word:<14} {id:<6} {name:<22} {level}: {about}{why}")?;
        }
    }
    if !is_json {
        writeln!(
            out,
            "{} passed, {} failed, {} not exercised",
            sums.passed, sums.failed, sums.not_exercised
        )?;
    }
    out.flush()?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_outcome_stays() {
        let mut verdicts = Verdicts::default();
        verdicts.note("opt-in", Outcome::NotExercised("x".into()));
        verdicts.note("opt-in", Outcome::Passed);
        verdicts.note("off", Outcome::Failed("y".into()));
        verdicts.note("off", Outcome::Passed);
        let outcome = |name| verdicts.of(Side::Server, Some(name)).next().unwrap().1;
        assert_eq!(outcome("opt-in"), Outcome::Passed);
        assert_eq!(outcome("MN-7"), Outcome::Failed("y".into()));
        assert!(matches!(outcome("resp2-silent"), Outcome::NotExercised(_)));
    }

    #[test]
    fn lines_and_json_have_the_number_and_the_reason() {
        let mut verdicts = Verdicts::default();
        verdicts.note("off", Outcome::Failed("a frame came".into()));
        let mut out = Vec::new();
        let sums = write(&mut out, verdicts.of(Side::Server, Some("off")), false).unwrap();
        assert_eq!(sums, Sums { failed: 1, ..Sums::default() });
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("FAIL") && text.contains("MN-7") && text.contains("a frame came"), "{text}");
        let mut out = Vec::new();
        write(&mut out, verdicts.of(Side::Server, Some("off")), true).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((&value["id"], &value["outcome"]), (&"MN-7".into(), &"FAIL".into()));
    }
}
