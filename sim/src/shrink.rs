//! From a range of seeds to the shortest history that shows a failure.

use crate::{Detail, Report, Settings, Tally, Violation, run};

/// A history that broke a promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// How to repeat it.
    pub settings: Settings,
    /// What it broke.
    pub violation: Violation,
    /// The last lines of its trace.
    pub lines: Vec<String>,
}

/// Runs histories of `count` seeds from `settings.seed` on. The first failure ends it.
///
/// # Errors
/// The failure, shrunk. Boxed because it is large and rare.
pub fn hunt(settings: &Settings, count: u64) -> Result<Tally, Box<Failure>> {
    let mut tally = Tally::default();
    for offset in 0..count {
        let settings = Settings { seed: settings.seed.wrapping_add(offset), ..*settings };
        let report = run(&settings, Detail::Hash);
        if report.violation.is_some() {
            return Err(Box::new(shrink(&settings)));
        }
        tally += report.tally;
    }
    Ok(tally)
}

/// The same failure in as few commands as possible: the first length that breaks any promise.
pub fn shrink(settings: &Settings) -> Failure {
    let length = (1..settings.length)
        .find(|length| run(&Settings { length: *length, ..*settings }, Detail::Hash).violation.is_some());
    let settings = Settings { length: length.unwrap_or(settings.length), ..*settings };
    let Report { lines, violation, .. } = run(&settings, Detail::Tail);
    let none = Violation { promise: "none", what: "the history is fine".to_owned() };
    Failure { settings, violation: violation.unwrap_or(none), lines }
}

/// The command that repeats a history.
pub fn reproduce_command(settings: &Settings) -> String {
    let mutation = settings.mutation.map(|mutation| format!(" --mutate {}", mutation.name()));
    let scenario = settings.scenario.map(|scenario| format!(" --scenario {}", scenario.name()));
    format!(
        "cargo run -p sim -- --seed {} --length {}{}{} --trace",
        settings.seed,
        settings.length,
        mutation.unwrap_or_default(),
        scenario.unwrap_or_default()
    )
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "seed {} broke {}", self.settings.seed, self.violation)?;
        write!(f, "repeat: {}", reproduce_command(&self.settings))
    }
}
