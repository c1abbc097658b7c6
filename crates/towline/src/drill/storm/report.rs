//! The figures of `towline drill storm` as tables and as JSON.
//!
//! Owns their names and forms, and which of them are promises.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use towline_transfer::FleetReport;
use towline_transfer_proto::storm::{Check, Policy, Report};

/// One scenario with one policy. Field names are those of the JSON form.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) scenario: String,
    pub(super) policy: &'static str,
    pub(super) connected_pct: f64,
    /// Not connected at the end; the dead ones are part of them.
    pub(super) stuck_pct: f64,
    /// Given up for good.
    pub(super) dead_pct: f64,
    /// From being needed to being connected; none if nobody is.
    pub(super) p50_s: Option<f64>,
    pub(super) p90_s: Option<f64>,
    pub(super) p99_s: Option<f64>,
    pub(super) max_s: Option<f64>,
    /// None if nobody is connected.
    pub(super) rpcs_per_connection: Option<f64>,
    pub(super) endpoints: usize,
    pub(super) rpcs: u64,
    /// The slowest request that was answered in time.
    pub(super) rpc_max_s: f64,
    /// Handshakes that the target worked for and nobody waited for.
    pub(super) wasted: u64,
    /// Queue pairs in error, acknowledgements to strangers, timers for nothing: counted for ours.
    pub(super) queue_pair_errors: u64,
    pub(super) ghost_acks: u64,
    pub(super) idle_wakeups: u64,
    /// When so many percent of the endpoints were connected.
    pub(super) goodput_50_s: Option<f64>,
    pub(super) goodput_90_s: Option<f64>,
    pub(super) goodput_99_s: Option<f64>,
    pub(super) seed: u64,
    /// Equal for equal histories.
    pub(super) trace_hash: String,
    #[serde(skip)]
    title: &'static str,
    #[serde(skip)]
    is_ours: bool,
}

impl Row {
    pub(super) fn new(
        scenario: String,
        title: &'static str,
        policy: Policy,
        seed: u64,
        report: &Report,
    ) -> Self {
        let setup = |percent: f64| (report.connected > 0).then(|| seconds(report.setup.percentile(percent)));
        let goodput = |percent: f64| report.time_to_goodput(percent).map(seconds);
        Self {
            scenario,
            policy: policy.name(),
            connected_pct: round(report.connected_percent(), 100.0),
            stuck_pct: round(report.stuck_percent(), 100.0),
            dead_pct: round(report.dead_percent(), 100.0),
            p50_s: setup(50.0),
            p90_s: setup(90.0),
            p99_s: setup(99.0),
            max_s: setup(100.0),
            rpcs_per_connection: (report.made > 0).then(|| round(report.rpcs_per_connection(), 100.0)),
            endpoints: report.endpoints,
            rpcs: report.rpcs,
            rpc_max_s: seconds(report.round_trip.max()),
            wasted: report.wasted,
            queue_pair_errors: report.queue_pair_errors,
            ghost_acks: report.ghost_acks,
            idle_wakeups: report.idle_wakeups,
            goodput_50_s: goodput(50.0),
            goodput_90_s: goodput(90.0),
            goodput_99_s: goodput(99.0),
            seed,
            trace_hash: format!("{:016x}", report.trace_hash),
            title,
            is_ours: matches!(policy, Policy::Ours { .. }),
        }
    }

    /// Real handshakes.
    pub(super) fn real(total: usize, seed: u64, report: &FleetReport) -> Self {
        let connected = report.setups.len();
        let of = |percent: f64, all: usize| {
            let rank = (percent / 100.0 * all as f64).ceil() as usize;
            report.setups.get(rank.clamp(1, all.max(1)) - 1).map(|setup| seconds(*setup))
        };
        let percent = 100.0 * connected as f64 / total.max(1) as f64;
        let setup = |percent| of(percent, connected).filter(|_| connected > 0);
        Self {
            scenario: "real".to_owned(),
            policy: "ours",
            connected_pct: round(percent, 100.0),
            stuck_pct: round(100.0 - percent, 100.0),
            dead_pct: 0.0,
            p50_s: setup(50.0),
            p90_s: setup(90.0),
            p99_s: setup(99.0),
            max_s: setup(100.0),
            rpcs_per_connection: (connected > 0)
                .then(|| round(report.hellos as f64 / connected as f64, 100.0)),
            endpoints: total,
            rpcs: report.hellos,
            rpc_max_s: seconds(report.answer_max),
            wasted: report.failed,
            queue_pair_errors: report.lost,
            ghost_acks: 0,
            idle_wakeups: 0,
            goodput_50_s: of(50.0, total),
            goodput_90_s: of(90.0, total),
            goodput_99_s: of(99.0, total),
            seed,
            trace_hash: "-".to_owned(),
            title: "real handshakes on loopback with one engine",
            is_ours: true,
        }
    }

    /// For ours: everybody connected, nobody dead, nothing in error. The others promise nothing.
    pub(super) fn is_as_promised(&self) -> bool {
        let is_whole = self.connected_pct >= 100.0 && self.dead_pct <= 0.0;
        !self.is_ours || (is_whole && self.queue_pair_errors + self.ghost_acks + self.idle_wakeups == 0)
    }
}

/// One list on one line: the rows, then the further promises.
///
/// # Errors
/// Those of the writer.
pub(super) fn json(out: &mut impl Write, rows: &[Row], checks: &[Check]) -> io::Result<()> {
    let mut list: Vec<serde_json::Value> = Vec::with_capacity(rows.len() + checks.len());
    for row in rows {
        list.push(serde_json::to_value(row)?);
    }
    list.extend(checks.iter().map(|check| {
        serde_json::json!({
            "scenario": check.name,
            "policy": "ours",
            "promise": check.promise,
            "found": check.found,
            "holds": check.holds,
        })
    }));
    serde_json::to_writer(&mut *out, &list)?;
    writeln!(out)
}

/// The scenarios, one below the other.
///
/// # Errors
/// Those of the writer.
pub(super) fn table(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let mut before = "";
    for row in rows {
        if row.scenario != before {
            before = &row.scenario;
            writeln!(out, "{}: {} ({} endpoints)", row.scenario, row.title, row.endpoints)?;
            writeln!(
                out,
                "  {:<16} {:>9} {:>7} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8}  trace",
                "policy",
                "connected",
                "stuck",
                "dead",
                "p50 s",
                "p90 s",
                "p99 s",
                "max s",
                "rpc max s",
                "rpcs/con"
            )?;
        }
        writeln!(
            out,
            "  {:<16} {:>8.1}% {:>6.1}% {:>6.1}% {:>9} {:>9} {:>9} {:>9} {:>9.3} {:>8}  {}",
            row.policy,
            row.connected_pct,
            row.stuck_pct,
            row.dead_pct,
            cell(row.p50_s, 3),
            cell(row.p90_s, 3),
            cell(row.p99_s, 3),
            cell(row.max_s, 3),
            row.rpc_max_s,
            cell(row.rpcs_per_connection, 2),
            row.trace_hash,
        )?;
    }
    Ok(())
}

/// The grid of the law: percent stuck after a minute.
///
/// # Errors
/// Those of the writer.
pub(super) fn law(out: &mut impl Write, rows: &[Row], nodes: &[u32], permits: &[u32]) -> io::Result<()> {
    writeln!(
        out,
        "The law: percent stuck after 60 s, 64 endpoints a node, 4.2 ms each, pr2793-repaired with so many permits"
    )?;
    write!(out, "  {:>10}", "nodes")?;
    permits.iter().try_for_each(|permits| write!(out, " {permits:>8}"))?;
    writeln!(out, " {:>8}", "ours")?;
    let stuck = |name: String| rows.iter().find(|row| row.scenario == name).map(|row| row.stuck_pct);
    for nodes in nodes {
        write!(out, "  {nodes:>10}")?;
        for permits in permits {
            write!(out, " {:>8}", cell(stuck(format!("law-{nodes}x{permits}")), 1))?;
        }
        writeln!(out, " {:>8}", cell(stuck(format!("law-{nodes}")), 1))?;
    }
    writeln!(out, "  safe where nodes x permits x 4.2 ms < 470 ms, which is nodes x permits <= 111")
}

/// The further promises.
///
/// # Errors
/// Those of the writer.
pub(super) fn further(out: &mut impl Write, checks: &[Check]) -> io::Result<()> {
    writeln!(out, "Further promises of ours")?;
    for check in checks {
        let verdict = if check.holds { "holds" } else { "BROKEN" };
        writeln!(out, "  {:<10} {verdict:<7} {}", check.name, check.promise)?;
        writeln!(out, "  {:<18} found: {}", "", check.found)?;
    }
    Ok(())
}

/// What the figures rest on.
///
/// # Errors
/// Those of the writer.
pub(super) fn assumptions(out: &mut impl Write, assumptions: &[&str], seed: u64) -> io::Result<()> {
    writeln!(out, "These figures are simulated in virtual time from seed {seed}. They rest on:")?;
    assumptions.iter().try_for_each(|assumption| writeln!(out, "  - {assumption}"))
}

fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn seconds(duration: Duration) -> f64 {
    round(duration.as_secs_f64(), 1e6)
}

fn round(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}
