//! The result of one script, as a table or as JSON.
//!
//! Owns the figures' names and forms, and whether the drill was passed. Does not own how they were measured.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::director::Happening;
use super::ledger::Findings;
use super::timeline::Phase;

/// What happened to one client in one script. Field names are those of the JSON form.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Report {
    pub(super) script: &'static str,
    #[serde(skip)]
    pub(super) about: &'static str,
    /// `towline`, or another client with its version.
    pub(super) client: String,
    pub(super) workers: u32,
    pub(super) connections: u32,
    /// Commands in flight per worker.
    pub(super) pipeline: usize,
    /// Commands per second of an open loop; none is full load.
    pub(super) rate: Option<u64>,
    pub(super) mix: String,
    pub(super) window_s: u64,
    pub(super) seconds: f64,
    pub(super) seed: u64,
    /// Commands answered, messages and elements received included.
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    /// Effects, elements and messages that were acknowledged and are not there.
    pub(super) lost: u64,
    /// Places where the client says that messages may be missing.
    pub(super) gaps: u64,
    /// From the write of MOVING to the moment when the last told connection had left; none if one stayed.
    pub(super) recycle_ms: Option<f64>,
    /// The longest time without any answer from MOVING on, while it had effects.
    pub(super) pause_ms: f64,
    /// Latencies while the move had effects.
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
    pub(super) connections_told: usize,
    pub(super) connections_replaced: usize,
    pub(super) before: Phase,
    pub(super) during: Phase,
    pub(super) after: Phase,
    pub(super) events: Vec<Happening>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) errors: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<String>,
    pub(super) notes: Vec<String>,
}

impl Report {
    /// Whether every command was answered once, in order, and nothing is missing.
    pub(super) fn is_passed(&self) -> bool {
        self.failed == 0
            && self.duplicated == 0
            && self.reordered == 0
            && self.lost == 0
            && self.completed > 0
    }

    /// Takes over what the audit found.
    pub(super) fn found(&mut self, findings: Findings) {
        self.completed = findings.completed;
        self.failed = findings.failed;
        self.duplicated = findings.duplicated;
        self.reordered = findings.reordered;
        self.lost = findings.lost;
        self.problems = findings.problems;
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

    /// Tables for people.
    ///
    /// # Errors
    /// Those of the writer.
    pub(super) fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let load =
            self.rate.map_or_else(|| "full load".to_owned(), |rate| format!("{rate} commands a second"));
        writeln!(out, "handoff {}: {}", self.script, self.about)?;
        writeln!(
            out,
            "  {}, {} workers on {} client{} with up to {} in flight each, {load}, {}, seed {}",
            self.client,
            self.workers,
            self.connections,
            if self.connections == 1 { "" } else { "s" },
            self.pipeline,
            self.mix,
            self.seed
        )?;
        self.notes.iter().try_for_each(|note| writeln!(out, "  note: {note}"))?;
        writeln!(out, "\n  {:<14} {:>10}   what", "event", "at")?;
        for happening in &self.events {
            let at = format!("{:.4} s", happening.at_ms / 1000.0);
            writeln!(out, "  {:<14} {at:>10}   {}", happening.label, happening.what)?;
        }
        self.phases(out)?;
        self.sums(out)?;
        self.errors.iter().try_for_each(|(text, count)| writeln!(out, "  {count} x {text}"))?;
        self.problems.iter().try_for_each(|problem| writeln!(out, "  ! {problem}"))?;
        let verdict = if self.is_passed() { "passed" } else { "FAILED" };
        writeln!(out, "  {verdict}\n")?;
        out.flush()
    }

    fn phases(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "\n  {:<14} {:>11} {:>11} {:>11}", "", "before", "during", "after")?;
        let phases = [&self.before, &self.during, &self.after];
        let mut row = |name: &str, of: &dyn Fn(&Phase) -> String| {
            let [before, during, after] = phases.map(of);
            writeln!(out, "  {name:<14} {before:>11} {during:>11} {after:>11}")
        };
        row("commands", &|phase| phase.completed.to_string())?;
        row("seconds", &|phase| format!("{:.3}", phase.seconds))?;
        row("per second", &|phase| format!("{:.0}", phase.ops_per_s))?;
        row("p50 ms", &|phase| format!("{:.3}", phase.p50_ms))?;
        row("p99 ms", &|phase| format!("{:.3}", phase.p99_ms))?;
        row("p99.9 ms", &|phase| format!("{:.3}", phase.p99_9_ms))?;
        row("max ms", &|phase| format!("{:.3}", phase.max_ms))?;
        row("pause ms", &|phase| format!("{:.3}", phase.pause_ms))?;
        row("machine late", &|phase| format!("{:.3}", phase.late_ms))?;
        row("lowest 10 ms", &|phase| {
            phase.lowest_bucket_percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.0} %"))
        })
    }

    fn sums(&self, out: &mut impl Write) -> io::Result<()> {
        let recycle = self.recycle_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
        let replaced = format!("{} of {}", self.connections_replaced, self.connections_told);
        writeln!(out)?;
        for (name, value) in [
            ("recycle", &recycle as &dyn std::fmt::Display),
            ("pause", &format!("{:.1} ms", self.pause_ms)),
            ("replaced", &replaced),
            ("completed", &self.completed),
            ("failed", &self.failed),
            ("duplicated", &self.duplicated),
            ("reordered", &self.reordered),
            ("lost", &self.lost),
        ] {
            writeln!(out, "  {name:<14} {value}")?;
        }
        if self.gaps > 0 {
            writeln!(out, "  {:<14} {}", "gaps told", self.gaps)?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::Value;

    use super::*;

    pub(in crate::drill) fn report() -> Report {
        Report {
            script: "plain",
            about: "one MOVING",
            client: "towline".to_owned(),
            workers: 16,
            connections: 1,
            pipeline: 4,
            rate: None,
            mix: "incr=1".to_owned(),
            window_s: 3,
            seconds: 9.0,
            seed: 1,
            completed: 10,
            failed: 0,
            duplicated: 0,
            reordered: 0,
            lost: 0,
            gaps: 0,
            recycle_ms: Some(4.2),
            pause_ms: 1.5,
            p99_ms: 2.0,
            max_ms: 3.0,
            connections_told: 1,
            connections_replaced: 1,
            before: Phase::default(),
            during: Phase { p99_9_ms: 1.25, ..Phase::default() },
            after: Phase::default(),
            events: vec![Happening { at_ms: 2250.4, what: "to there".to_owned(), label: "MOVING" }],
            errors: BTreeMap::new(),
            problems: Vec::new(),
            notes: vec!["two cores".to_owned()],
        }
    }

    #[test]
    fn json_has_what_scripts_read() {
        let mut out = Vec::new();
        report().json(&mut out).unwrap();
        let value: Value = serde_json::from_slice(&out).unwrap();
        for name in ["completed", "failed", "duplicated", "reordered", "recycle_ms", "max_ms", "p99_ms"] {
            assert!(value[name].is_number(), "{name}");
        }
        assert_eq!(
            (&value["during"]["p99.9_ms"], &value["events"][0]["at_ms"]),
            (&1.25.into(), &2250.4.into())
        );
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    }

    #[test]
    fn one_wrong_command_fails_the_drill() {
        assert!(report().is_passed());
        for change in [
            |report: &mut Report| report.failed = 1,
            |report: &mut Report| report.duplicated = 1,
            |report: &mut Report| report.reordered = 1,
            |report: &mut Report| report.lost = 1,
            |report: &mut Report| report.completed = 0,
        ] {
            let mut report = report();
            change(&mut report);
            assert!(!report.is_passed());
        }
    }

    #[test]
    fn the_table_has_events_and_sums() {
        let mut out = Vec::new();
        let mut report = report();
        report.failed = 2;
        report.errors.insert("connection lost (may have run)".to_owned(), 2);
        report.table(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for part in [
            "MOVING",
            "2.2504 s",
            "during",
            "recycle        4.2 ms",
            "failed         2",
            "FAILED",
            "2 x conn",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
    }
}
