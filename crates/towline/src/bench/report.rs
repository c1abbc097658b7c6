//! Results as a table, CSV or JSON lines.
//!
//! Owns the figures of one workload and their forms. Does not own how they were measured.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer as _};
use serde_json::Value;

use super::tally::Tally;

/// Error texts that the table shows per workload.
const ERROR_TEXTS_SHOWN: usize = 3;

/// Longest workload name that the table shows whole, in characters.
const NAME_WIDTH: usize = 16;

/// The figures of one workload. Field names are those of the JSON form.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// Name of the workload, or the custom command.
    pub(crate) workload: String,
    /// Replies received, errors included.
    pub(crate) ops: u64,
    /// Error replies and lost commands.
    pub(crate) errors: u64,
    /// From the first send to the last reply.
    pub(crate) seconds: f64,
    /// Replies per second.
    pub(crate) ops_per_s: f64,
    /// Latency percentiles, microseconds.
    #[serde(flatten)]
    pub(crate) latency: Latency,
    /// CPU time of the server process per reply, microseconds; absent when its PID is not known.
    pub(crate) server_cpu_us_per_op: Option<f64>,
    /// CPU time of this process per reply, microseconds.
    pub(crate) client_cpu_us_per_op: Option<f64>,
    /// The process that was measured.
    pub(crate) server_pid: Option<u32>,
    /// What was asked for.
    #[serde(flatten)]
    pub(crate) setting: Setting,
    /// Errors by text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) error_texts: BTreeMap<String, u64>,
}

/// Latency in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Latency {
    mean_us: f64,
    p50_us: f64,
    p75_us: f64,
    p90_us: f64,
    p95_us: f64,
    p99_us: f64,
    p99_9_us: f64,
    p99_99_us: f64,
    max_us: f64,
}

impl Latency {
    /// From a histogram in nanoseconds.
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile: f64| micros(histogram.value_at_quantile(quantile));
        Self {
            mean_us: round(histogram.mean() / 1000.0, 10.0),
            p50_us: at(0.5),
            p75_us: at(0.75),
            p90_us: at(0.9),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            p99_99_us: at(0.9999),
            max_us: micros(histogram.max()),
        }
    }
}

/// What a workload was run with.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Setting {
    /// Connections at the start.
    pub(crate) connections: u32,
    /// Threads of the generator.
    pub(crate) threads: u32,
    /// Commands in flight per connection.
    pub(crate) pipeline: u32,
    /// Intended commands per second of an open loop.
    pub(crate) rate: Option<u64>,
    /// Bytes per value.
    pub(crate) data_bytes: u64,
    /// Number of keys.
    pub(crate) key_range: u64,
    /// Seed of the random choices.
    pub(crate) seed: u64,
    /// 2 or 3.
    pub(crate) resp: u8,
}

/// CPU time spent during a workload, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuSpent {
    /// By the server process.
    pub(crate) server_ns: Option<u64>,
    /// By this process.
    pub(crate) client_ns: Option<u64>,
}

impl Row {
    /// The figures of `tally`.
    pub(crate) fn new(
        workload: &str,
        tally: &Tally,
        cpu: CpuSpent,
        server_pid: Option<u32>,
        setting: Setting,
    ) -> Self {
        let seconds = tally.elapsed.as_secs_f64();
        let per_op = |ns: u64| round(ns as f64 / 1000.0 / tally.replies.max(1) as f64, 1000.0);
        Self {
            workload: workload.to_owned(),
            ops: tally.replies,
            errors: tally.errors.total(),
            seconds: round(seconds, 1e6),
            ops_per_s: if seconds > 0.0 { round(tally.replies as f64 / seconds, 1.0) } else { 0.0 },
            latency: Latency::of(&tally.latency),
            server_cpu_us_per_op: cpu.server_ns.map(per_op),
            client_cpu_us_per_op: cpu.client_ns.map(per_op),
            server_pid,
            setting,
            error_texts: tally
                .errors
                .by_count()
                .into_iter()
                .map(|(text, count)| (text.to_owned(), count))
                .collect(),
        }
    }

    /// Whether not one command succeeded.
    pub(crate) fn has_failed(&self) -> bool {
        self.errors >= self.ops
    }
}

fn micros(ns: u64) -> f64 {
    round(ns as f64 / 1000.0, 10.0)
}

/// `value` rounded to the nearest of `steps` parts of one.
pub(crate) fn round(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Columns for people.
    Table,
    /// One object per line.
    Json,
    /// A header and one line per workload.
    Csv,
}

/// Writes rows as they come.
#[derive(Debug)]
pub(crate) struct Reporter<W> {
    out: W,
    form: Form,
    is_begun: bool,
}

impl<W: Write> Reporter<W> {
    /// Writes to `out` in `form`.
    pub(crate) fn new(out: W, form: Form) -> Self {
        Self { out, form, is_begun: false }
    }

    /// Writes one row, with the header before the first.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn row(&mut self, row: &Row) -> io::Result<()> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        match self.form {
            Form::Json => {
                serde_json::to_writer(&mut self.out, row)?;
                writeln!(self.out)?;
            }
            Form::Csv => self.csv(row, is_first)?,
            Form::Table => self.table(row, is_first)?,
        }
        self.out.flush()
    }

    fn csv(&mut self, row: &Row, is_first: bool) -> io::Result<()> {
        if is_first {
            writeln!(
                self.out,
                "workload,ops,errors,seconds,ops_per_s,mean_us,p50_us,p75_us,p90_us,p95_us,p99_us,p99_9_us,p99_99_us,\
                 max_us,server_cpu_us_per_op,client_cpu_us_per_op"
            )?;
        }
        let l = &row.latency;
        let or_empty = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        writeln!(
            self.out,
            "\"{}\",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            row.workload.replace('"', "\"\""),
            row.ops,
            row.errors,
            row.seconds,
            row.ops_per_s,
            l.mean_us,
            l.p50_us,
            l.p75_us,
            l.p90_us,
            l.p95_us,
            l.p99_us,
            l.p99_9_us,
            l.p99_99_us,
            l.max_us,
            or_empty(row.server_cpu_us_per_op),
            or_empty(row.client_cpu_us_per_op),
        )
    }

    fn table(&mut self, row: &Row, is_first: bool) -> io::Result<()> {
        if is_first {
            writeln!(
                self.out,
                "{:<NAME_WIDTH$} {:>10} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>8}",
                "workload",
                "ops",
                "seconds",
                "ops/s",
                "p50 us",
                "p95 us",
                "p99 us",
                "p99.9 us",
                "max us",
                "srv us/op",
                "cli us/op",
                "errors"
            )?;
        }
        let l = &row.latency;
        let or_dash =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
        let name: String = row.workload.chars().take(NAME_WIDTH).collect();
        writeln!(
            self.out,
            "{name:<NAME_WIDTH$} {:>10} {:>8.2} {:>10.0} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>10} {:>10} {:>8}",
            row.ops,
            row.seconds,
            row.ops_per_s,
            l.p50_us,
            l.p95_us,
            l.p99_us,
            l.p99_9_us,
            l.max_us,
            or_dash(row.server_cpu_us_per_op),
            or_dash(row.client_cpu_us_per_op),
            row.errors,
        )?;
        let mut texts: Vec<_> = row.error_texts.iter().collect();
        texts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (text, count) in texts.into_iter().take(ERROR_TEXTS_SHOWN) {
            writeln!(self.out, "  {count} x {text}")?;
        }
        Ok(())
    }
}

/// The report of a run that has one result: names and values, in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(String, Value)>);

impl Fields {
    /// Adds one value; `None` shows as a dash, or as null in JSON.
    pub(crate) fn add(&mut self, name: &str, value: impl Into<Value>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// Writes one JSON object, or a line per value.
    ///
    /// # Errors
    /// Those of the writer.
    pub(crate) fn write(&self, mut out: impl Write, is_json: bool) -> io::Result<()> {
        if is_json {
            let mut serializer = serde_json::Serializer::new(&mut out);
            serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))?;
            writeln!(out)?;
        } else {
            for (name, value) in &self.0 {
                match value {
                    Value::Null => writeln!(out, "{name:<28} -")?,
                    Value::String(text) => writeln!(out, "{name:<28} {text}")?,
                    value => writeln!(out, "{name:<28} {value}")?,
                }
            }
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn row() -> Row {
        let mut tally = Tally::new();
        tally.latency.saturating_record_n(2_000, 99);
        tally.latency.saturating_record(1_000_000);
        tally.replies = 100;
        tally.errors.add("ERR \"odd\"", 2);
        tally.elapsed = Duration::from_millis(500);
        let cpu = CpuSpent { server_ns: Some(150_000), client_ns: None };
        let setting = Setting {
            connections: 1,
            threads: 1,
            pipeline: 1,
            rate: None,
            data_bytes: 3,
            key_range: 10,
            seed: 1,
            resp: 2,
        };
        Row::new("set, \"x\"", &tally, cpu, Some(7), setting)
    }

    fn written(form: Form) -> String {
        let mut out = Vec::new();
        let mut reporter = Reporter::new(&mut out, form);
        reporter.row(&row()).unwrap();
        reporter.row(&row()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_has_one_flat_object_per_line() {
        let text = written(Form::Json);
        assert_eq!(text.lines().count(), 2);
        let value: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(value["ops"], 100);
        assert_eq!(value["ops_per_s"], 200.0);
        assert_eq!(value["p50_us"], 2.0);
        assert!(value["max_us"].as_f64().unwrap() >= 1000.0);
        assert_eq!(value["server_cpu_us_per_op"], 1.5);
        assert!(value["client_cpu_us_per_op"].is_null());
        assert_eq!(value["error_texts"]["ERR \"odd\""], 2);
    }

    #[test]
    fn csv_and_table_have_one_header() {
        let csv = written(Form::Csv);
        assert_eq!(csv.lines().count(), 3);
        assert!(csv.lines().nth(1).unwrap().starts_with("\"set, \"\"x\"\"\",100,2,0.5,200,"));
        let table = written(Form::Table);
        assert_eq!(table.matches("workload").count(), 1);
        assert!(table.contains("  2 x ERR \"odd\""));
    }

    #[test]
    fn fields_keep_their_order_in_both_forms() {
        let mut fields = Fields::default();
        fields.add("zeta", 1);
        fields.add("alpha", None::<u64>);
        let form = |is_json| {
            let mut out = Vec::new();
            fields.write(&mut out, is_json).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(form(true), "{\"zeta\":1,\"alpha\":null}\n");
        assert_eq!(form(false), format!("{:<28} 1\n{:<28} -\n", "zeta", "alpha"));
    }

    #[test]
    fn a_run_has_failed_only_when_nothing_succeeded() {
        let mut row = row();
        assert!(!row.has_failed());
        row.errors = row.ops;
        assert!(row.has_failed());
    }
}
