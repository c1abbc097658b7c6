//! What a drill says at its end.
//!
//! Owns the figures, the table and the JSON object, and the verdict. Does not own how they come about.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::account::Bucket;

/// How far a deadline may be off after all moves, milliseconds.
const TTL_OFF_MS_MAX: u64 = 5;

/// Width of the timeline's bars.
const BAR: usize = 40;

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Happening {
    /// Since the beginning of the load, seconds.
    pub(super) at_s: f64,
    /// A sentence.
    pub(super) what: String,
}

/// The figures.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Report {
    pub(super) server: String,
    pub(super) is_chaos: bool,
    pub(super) seed: u64,
    pub(super) nodes: u16,
    /// Keys that were there from the beginning.
    pub(super) keys: u64,
    pub(super) seconds: f64,
    pub(super) completed: u64,
    /// Commands whose fate nobody knows, because a node was killed.
    pub(super) unknown: u64,
    pub(super) moves: u64,
    pub(super) slots_moved: u64,
    pub(super) keys_moved: u64,
    pub(super) kills: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) orphaned: u64,
    pub(super) errors: u64,
    /// The longest command during a move.
    pub(super) stall_ms_max: f64,
    /// The longest command while nothing moved.
    pub(super) idle_ms_max: f64,
    pub(super) ttl_off_ms_max: u64,
    pub(super) errors_by_text: BTreeMap<String, u64>,
    pub(super) events: Vec<Happening>,
    #[serde(skip)]
    pub(super) timeline: (Duration, Vec<Bucket>),
}

impl Report {
    /// Whether nothing is wrong, and something was moved at all.
    pub(super) fn is_passed(&self) -> bool {
        let wrong = self.lost + self.duplicated + self.orphaned + self.errors;
        wrong == 0 && self.ttl_off_ms_max <= TTL_OFF_MS_MAX && self.slots_moved > 0
    }

    /// One object on one line.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// The table with the timeline.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let chaos = if self.is_chaos { ", nodes and tool are killed" } else { "" };
        writeln!(out, "{}, {} nodes, seed {}{chaos}\n", self.server, self.nodes, self.seed)?;
        for event in &self.events {
            writeln!(out, "  {:>8.3} s  {}", event.at_s, event.what)?;
        }
        let (width, buckets) = &self.timeline;
        let most = buckets.iter().map(|bucket| bucket.completed).max().unwrap_or_default().max(1);
        writeln!(out, "\n  {:>8}    {:>10}  {:>10}", "at", "commands", "max ms")?;
        for (step, bucket) in (0u32..).zip(buckets) {
            let bar = "#".repeat((bucket.completed as usize * BAR).div_ceil(most as usize));
            let line = format!(
                "  {:>8.2} s  {:>10}  {:>10.3}  {bar}",
                (*width * step).as_secs_f64(),
                bucket.completed,
                bucket.max_us as f64 / 1000.0
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        writeln!(out)?;
        for (name, value) in [
            ("keys", self.keys),
            ("completed", self.completed),
            ("unknown", self.unknown),
            ("moves", self.moves),
            ("slots moved", self.slots_moved),
            ("keys moved", self.keys_moved),
            ("kills", self.kills),
            ("lost", self.lost),
            ("duplicated", self.duplicated),
            ("orphaned", self.orphaned),
            ("errors", self.errors),
            ("ttl off, ms", self.ttl_off_ms_max),
        ] {
            writeln!(out, "  {name:<14} {value}")?;
        }
        writeln!(
            out,
            "  {:<14} {:.3} (while nothing moves: {:.3})",
            "stall, ms", self.stall_ms_max, self.idle_ms_max
        )?;
        for (text, count) in &self.errors_by_text {
            writeln!(out, "  {count} x {text}")?;
        }
        writeln!(out, "\n  {}", if self.is_passed() { "passed" } else { "FAILED" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_key_fails_the_drill() {
        let good = Report { slots_moved: 1, ttl_off_ms_max: TTL_OFF_MS_MAX, ..Report::default() };
        assert!(good.is_passed());
        for change in [
            |report: &mut Report| report.lost = 1,
            |report: &mut Report| report.duplicated = 1,
            |report: &mut Report| report.orphaned = 1,
            |report: &mut Report| report.errors = 1,
            |report: &mut Report| report.ttl_off_ms_max += 1,
            |report: &mut Report| report.slots_moved = 0,
        ] {
            let mut report = good.clone();
            change(&mut report);
            assert!(!report.is_passed());
        }
    }

    #[test]
    fn json_has_what_scripts_read() {
        let mut out = Vec::new();
        Report::default().json(&mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        for name in
            ["keys", "seconds", "lost", "duplicated", "orphaned", "errors", "stall_ms_max", "ttl_off_ms_max"]
        {
            assert!(value[name].is_number(), "{name}");
        }
    }
}
