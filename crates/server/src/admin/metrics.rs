//! The server's numbers in Prometheus's text format.
//!
//! Owns: names, types and descriptions of metrics. Does **not** own the numbers.
//!
//! Written by hand from [`Stats`](crate::stats::Stats): the numbers are there already, each worker's on cache lines of its
//! own, and are added up when somebody asks. A metrics facade would have every command count a second time, in shared
//! memory, to arrive at the same text. The format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use crate::commands::{REDIS_VERSION, TOWLINE_VERSION};
use crate::process;
use crate::shared::Shared;
use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use towline_store::store::DB_COUNT;

/// What the text is, for HTTP.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics as of `now_ms`, unix milliseconds.
pub(crate) fn render(shared: &Shared, now_ms: u64) -> String {
    let mut page = Page::default();
    server(&mut page, shared);
    clients(&mut page, shared);
    traffic(&mut page, shared);
    memory(&mut page, shared, now_ms);
    keyspace(&mut page, shared);
    commands(&mut page, shared);
    page.text
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Grows only; `CONFIG RESETSTAT` sets it to zero, which Prometheus takes for a restart.
    Counter,
    /// Goes up and down.
    Gauge,
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// Begins a metric; its samples follow.
    fn begin(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // Writing to a string cannot fail.
        let _ = write!(self.text, "# HELP towline_{name} {help}\n# TYPE towline_{name} {kind}\n");
    }

    /// One sample with labels.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "towline_{name}");
        for (index, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{label}=\"", if index == 0 { '{' } else { ',' });
            for char in value.chars() {
                match char {
                    '\\' | '"' => self.text.extend(['\\', char]),
                    '\n' => self.text.push_str("\\n"),
                    char => self.text.push(char),
                }
            }
            self.text.push('"');
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.begin(name, Kind::Gauge, help);
        self.sample(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.begin(name, Kind::Counter, help);
        self.sample(name, &[], value);
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn server(page: &mut Page, shared: &Shared) {
    page.begin("build_info", Kind::Gauge, "Always 1; the labels say what runs.");
    let labels = [("version", TOWLINE_VERSION), ("redis_version", REDIS_VERSION), ("run_id", &shared.run_id)];
    page.sample("build_info", &labels, 1);
    let started = shared.started_ms as f64 / 1000.0;
    page.gauge("start_time_seconds", "Unix time of the start.", started);
    page.gauge("workers", "Data workers.", shared.config().workers);
    let cpu = process::cpu();
    // Not by mode: the kernel knows the parts only roughly, and estimates may shrink, which counters must not.
    page.counter("cpu_seconds_total", "CPU time of the process.", cpu.user + cpu.system);
}

fn clients(page: &mut Page, shared: &Shared) {
    let stats = &shared.stats;
    page.gauge("connected_clients", "Clients that are connected.", shared.clients.len());
    page.gauge("blocked_clients", "Clients that wait in a blocking command.", shared.blocked.len());
    page.gauge("maxclients", "Clients that may be connected.", shared.config().maxclients);
    page.counter("connections_total", "Connections that were accepted.", load(&stats.connections));
    let rejected = load(&stats.connections_rejected);
    page.counter(
        "connections_rejected_total",
        "Connections that were refused because of maxclients.",
        rejected,
    );
    let name = "clients_cut_total";
    page.begin(name, Kind::Counter, "Clients that were cut because of what they made the server keep.");
    page.sample(name, &[("reason", "output_limit")], load(&stats.output_limit_disconnects));
    page.sample(name, &[("reason", "query_limit")], load(&stats.query_limit_disconnects));
    page.sample(name, &[("reason", "maxmemory_clients")], load(&stats.clients_evicted));
}

fn traffic(page: &mut Page, shared: &Shared) {
    let stats = &shared.stats;
    page.counter("net_input_bytes_total", "Bytes read from clients.", stats.sum(|worker| &worker.bytes_in));
    page.counter(
        "net_output_bytes_total",
        "Bytes written to clients.",
        stats.sum(|worker| &worker.bytes_out),
    );
    page.counter("net_reads_total", "Reads from clients.", stats.sum(|worker| &worker.reads));
    page.counter("net_writes_total", "Writes to clients.", stats.sum(|worker| &worker.writes));
    page.begin("error_replies_total", Kind::Counter, "Error replies by their first word.");
    for (code, count) in stats.errors() {
        page.sample("error_replies_total", &[("code", &code)], count);
    }
}

fn memory(page: &mut Page, shared: &Shared, now_ms: u64) {
    let used = shared.memory.used_bytes(&shared.store, None, now_ms);
    page.gauge("memory_used_bytes", "Memory that is allocated.", used);
    page.gauge("memory_peak_bytes", "The most memory that was allocated.", shared.memory.peak_bytes());
    page.gauge("memory_rss_bytes", "Memory of the process that is resident.", process::rss_bytes());
    page.gauge("memory_max_bytes", "maxmemory; 0 is no limit.", shared.config().maxmemory);
}

fn keyspace(page: &mut Page, shared: &Shared) {
    let (store, stats) = (&shared.store, &shared.stats);
    let dbs = || (0..shared.config().databases.min(DB_COUNT)).map(|db| (db, db.to_string()));
    page.begin("db_keys", Kind::Gauge, "Keys by database.");
    for (db, label) in dbs() {
        page.sample("db_keys", &[("db", &label)], store.len(db));
    }
    page.begin("db_keys_expiring", Kind::Gauge, "Keys with a time to live by database.");
    for (db, label) in dbs() {
        page.sample("db_keys_expiring", &[("db", &label)], store.expires(db));
    }
    page.counter("keyspace_hits_total", "Lookups that found a key.", stats.sum(|worker| &worker.hits));
    page.counter("keyspace_misses_total", "Lookups that found none.", stats.sum(|worker| &worker.misses));
    page.counter("keyspace_changes_total", "Changes to the data set.", stats.dirty());
    page.counter("expired_keys_total", "Keys that expired.", stats.sum(|worker| &worker.expired));
    let fields = stats.sum(|worker| &worker.expired_fields);
    page.counter("expired_fields_total", "Fields of hashes that expired.", fields);
    page.counter("evicted_keys_total", "Keys that maxmemory evicted.", stats.sum(|worker| &worker.evicted));
}

/// Commands that were never called have no samples: there are hundreds.
fn commands(page: &mut Page, shared: &Shared) {
    let called: Vec<_> = towline_spec::rows()
        .iter()
        .map(|command| (command.name, shared.stats.command(command)))
        .filter(|(_, totals)| totals.calls + totals.rejected > 0)
        .collect();
    page.begin("commands_total", Kind::Counter, "Calls by command.");
    for (name, totals) in &called {
        page.sample("commands_total", &[("command", name)], totals.calls);
    }
    page.begin("command_seconds_total", Kind::Counter, "Time that the calls took, by command.");
    for (name, totals) in &called {
        page.sample("command_seconds_total", &[("command", name)], seconds(totals.nanos));
    }
    page.begin("commands_failed_total", Kind::Counter, "Calls that answered with an error, by command.");
    for (name, totals) in &called {
        page.sample("commands_failed_total", &[("command", name)], totals.failed);
    }
    page.begin(
        "commands_rejected_total",
        Kind::Counter,
        "Commands that were refused before they ran, by command.",
    );
    for (name, totals) in &called {
        page.sample("commands_rejected_total", &[("command", name)], totals.rejected);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Server;

    #[test]
    fn the_text_has_each_metric_once_with_its_samples() {
        let mut server = Server::new();
        for line in ["SET a 1", "GET a", "GET b", "INCR a", "LPUSH a x", "PEXPIRE a 100000"] {
            server.line(line);
        }
        server.line("INFO");
        let text = render(&server.local.shared, 1);
        for line in [
            "# TYPE towline_commands_total counter",
            "towline_commands_total{command=\"get\"} 2",
            "towline_commands_failed_total{command=\"lpush\"} 1",
            "towline_db_keys{db=\"0\"} 1",
            "towline_db_keys{db=\"15\"} 0",
            "towline_db_keys_expiring{db=\"0\"} 1",
            "towline_error_replies_total{code=\"WRONGTYPE\"} 1",
            "towline_keyspace_misses_total 1",
            "towline_maxclients 10000",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        let types: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut distinct = types.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(types.len(), distinct.len());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("towline_") && value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn labels_are_escaped() {
        let mut page = Page::default();
        page.sample("x", &[("a", "q\"b\\n\n"), ("b", "")], 1.5);
        assert_eq!(page.text, "towline_x{a=\"q\\\"b\\\\n\\n\",b=\"\"} 1.5\n");
    }
}
