//! The sums of a drill, as a table or as JSON.
//!
//! Owns the figures' names and forms, and whether the drill was passed. Does not own how they were measured.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::ledger::Kind;

/// Violations that are described; all are counted.
const DESCRIBED_MAX: usize = 40;

/// What happened in all runs. Field names are those of the JSON form.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Report {
    pub(super) server: String,
    /// How the server keeps its data.
    pub(super) keeping: String,
    pub(super) clients: u64,
    pub(super) pipeline: u64,
    pub(super) seed: u64,
    /// Runs that were judged, each with one end under load.
    pub(super) runs: u64,
    /// Those in which the server was not killed, but asked to stop.
    pub(super) stops: u64,
    /// Kills while the server started.
    pub(super) kills_in_start: u64,
    /// Starts that said that they were loading.
    pub(super) starts_loading: u64,
    /// BGSAVE and BGREWRITEAOF that the server accepted.
    pub(super) saves: u64,
    pub(super) rewrites: u64,
    /// Keys compared.
    pub(super) keys: u64,
    /// Commands, and transactions as one, that were answered.
    pub(super) acknowledged: u64,
    /// Those that were sent and not answered.
    pub(super) unknown: u64,
    /// Of these, those that had run.
    pub(super) unknown_applied: u64,
    /// Answered commands that were not there, whether promised or not.
    pub(super) missing: u64,
    /// How long before the kill the oldest of these was answered.
    pub(super) oldest_missing_ms: Option<f64>,
    pub(super) lost: u64,
    pub(super) partial: u64,
    pub(super) wrong_ttl: u64,
    pub(super) wrong_answers: u64,
    pub(super) foreign_keys: u64,
    /// From the start of the process to its first answer with data.
    pub(super) start_ms_median: f64,
    pub(super) start_ms_max: f64,
    /// Bytes of all files of the server before a start.
    pub(super) log_bytes_max: u64,
    pub(super) log_bytes_last: u64,
    pub(super) seconds: f64,
    /// Why the drill could not go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<String>,
    pub(super) violations: Vec<String>,
    /// Where the files are that the violations are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) files: Option<String>,
    #[serde(skip)]
    pub(super) starts: Vec<Duration>,
}

impl Report {
    /// Whether the server kept its promise in all runs, and there was one to keep.
    pub(super) fn is_passed(&self) -> bool {
        self.violations_all() == 0 && self.ended.is_none() && self.acknowledged > 0
    }

    /// All violations, described or not.
    pub(super) fn violations_all(&self) -> u64 {
        self.lost + self.partial + self.wrong_ttl + self.wrong_answers + self.foreign_keys
    }

    /// Counts violations of a kind.
    pub(super) fn count(&mut self, kind: Kind, count: u64) {
        *match kind {
            Kind::Lost => &mut self.lost,
            Kind::Partial => &mut self.partial,
            Kind::WrongTtl => &mut self.wrong_ttl,
            Kind::WrongAnswer => &mut self.wrong_answers,
            Kind::Foreign => &mut self.foreign_keys,
        } += count;
    }

    /// Notes the line for a violation.
    pub(super) fn describe(&mut self, line: String) {
        if self.violations.len() < DESCRIBED_MAX {
            self.violations.push(line);
        }
    }

    /// Counts what was found on one client.
    pub(super) fn count_all(&mut self, wrong: &BTreeMap<Kind, u64>) {
        wrong.iter().for_each(|(kind, count)| self.count(*kind, *count));
    }

    /// Notes how long before the kill a missing command was answered.
    pub(super) fn missed(&mut self, age: Duration) {
        let age_ms = age.as_secs_f64() * 1000.0;
        self.oldest_missing_ms = Some(self.oldest_missing_ms.map_or(age_ms, |oldest| oldest.max(age_ms)));
    }

    /// Works out the figures on starts.
    pub(super) fn finish(&mut self, seconds: f64) {
        self.seconds = seconds;
        self.starts.sort_unstable();
        let ms = |duration: Option<&Duration>| duration.map_or(0.0, |took| took.as_secs_f64() * 1000.0);
        self.start_ms_median = ms(self.starts.get(self.starts.len() / 2));
        self.start_ms_max = ms(self.starts.last());
    }

    /// One object on one line.
    ///
    /// # Errors
    /// Those of the writer.
    pub(super) fn json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)?;
        out.flush()
    }

    /// A table for people.
    ///
    /// # Errors
    /// Those of the writer.
    pub(super) fn table(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "crash: {} with {}", self.server, self.keeping)?;
        writeln!(
            out,
            "  {} clients with up to {} commands at once, seed {}",
            self.clients, self.pipeline, self.seed
        )?;
        writeln!(out)?;
        let mut row = |name: &str, value: &dyn std::fmt::Display, what: &str| {
            let space = if what.is_empty() { "" } else { "   " };
            writeln!(out, "  {name:<16} {value:>10}{space}{what}")
        };
        let oldest = self
            .oldest_missing_ms
            .map_or_else(String::new, |ms| format!("the oldest was answered {ms:.1} ms before the kill"));
        let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
        let in_start = format!(
            "{} of them stops; and {} kills while it started; {} starts were loading",
            self.stops, self.kills_in_start, self.starts_loading
        );
        row("runs", &self.runs, &in_start)?;
        row("saves", &self.saves, "BGSAVE that were begun")?;
        row("rewrites", &self.rewrites, "BGREWRITEAOF that were begun, besides those that the server began")?;
        row("keys", &self.keys, "compared")?;
        row("acknowledged", &self.acknowledged, "commands")?;
        row(
            "unknown",
            &self.unknown,
            &format!("commands without an answer; {} of them had run", self.unknown_applied),
        )?;
        row("missing", &self.missing, &oldest)?;
        row("lost", &self.lost, "")?;
        row("partial", &self.partial, "")?;
        row("wrong TTL", &self.wrong_ttl, "")?;
        row("wrong answers", &self.wrong_answers, "")?;
        row("foreign keys", &self.foreign_keys, "")?;
        let max = format!("median; {:.1} at most", self.start_ms_max);
        row("start ms", &format!("{:.1}", self.start_ms_median), &max)?;
        let most = format!("at the end; {} at most", mib(self.log_bytes_max));
        row("files MiB", &mib(self.log_bytes_last), &most)?;
        row("seconds", &format!("{:.1}", self.seconds), "")?;
        self.violations.iter().try_for_each(|line| writeln!(out, "  ! {line}"))?;
        let more = self.violations_all().saturating_sub(self.violations.len() as u64);
        if more > 0 {
            writeln!(out, "  ! and {more} more")?;
        }
        self.ended.iter().try_for_each(|why| writeln!(out, "  ! ended: {why}"))?;
        self.files.iter().try_for_each(|files| writeln!(out, "  the files are in {files}"))?;
        writeln!(out, "  {}", if self.is_passed() { "passed" } else { "FAILED" })?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report { runs: 3, acknowledged: 9, keeping: "appendfsync always".to_owned(), ..Report::default() }
    }

    #[test]
    fn one_violation_of_any_kind_fails_the_drill() {
        assert!(report().is_passed());
        for kind in [Kind::Lost, Kind::Partial, Kind::WrongTtl, Kind::WrongAnswer, Kind::Foreign] {
            let mut report = report();
            report.count(kind, 1);
            assert!(!report.is_passed(), "{kind:?}");
        }
        assert!(!Report { acknowledged: 0, ..report() }.is_passed());
        assert!(!Report { ended: Some("the server does not start".to_owned()), ..report() }.is_passed());
        assert!(Report { missing: 5, ..report() }.is_passed(), "what was not promised may be missing");
    }

    #[test]
    fn the_table_and_the_json_have_the_figures() {
        let mut report = report();
        report.starts = [5, 1, 3].map(Duration::from_millis).to_vec();
        report.count(Kind::Lost, 3);
        report.describe("run 2: lost".to_owned());
        report.missed(Duration::from_millis(40));
        report.missed(Duration::from_millis(30));
        report.finish(1.5);
        let mut out = Vec::new();
        report.table(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for part in [
            "acknowledged              9",
            "40.0 ms before",
            "! run 2: lost",
            "and 2 more",
            "FAILED",
            "3.0   median; 5.0",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
        let mut out = Vec::new();
        report.json(&mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            (&value["lost"], &value["runs"], &value["start_ms_max"]),
            (&3.into(), &3.into(), &5.0.into())
        );
    }
}
