//! `towline drill storm`: a fleet connects all at once, with today's software and with ours.
//!
//! ```text
//! options ─> runs (scenarios, the law's grid, further promises) ─> report (tables, JSON), plot (SVG)
//! ```
//!
//! Owns the command, the forms of its figures and its exit code. Does not own the fleets: `towline-transfer-proto` has them,
//! in virtual time and from a seed, so that this command needs no network and gives the same figures on every machine. With
//! `--real` they are of `towline-transfer`, on sockets (`real.rs`).

mod options;
mod plot;
mod real;
mod report;
#[cfg(test)]
mod tests;

pub(super) use options::StormArgs;

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result};
use towline_transfer_proto::storm::{ASSUMPTIONS, Policy, Scenario, further, run};

use options::{Part, Plan};
use report::Row;

/// The grid of the law: nodes, and permits of each.
const LAW_NODES: [u32; 5] = [3, 10, 20, 40, 100];
const LAW_PERMITS: [u32; 6] = [1, 2, 4, 8, 16, 64];

/// Runs what was asked for and prints it. True if ours kept every promise.
///
/// # Errors
/// The report or the drawing cannot be written.
pub(super) fn execute(args: &StormArgs, plan: &Plan) -> Result<bool> {
    if args.is_real {
        return real::execute(args);
    }
    let mut out = std::io::stdout().lock();
    let mut rows = Vec::new();
    let mut checks = Vec::new();
    if plan.has(Part::Scenarios) {
        for scenario in &plan.scenarios {
            rows.extend(of_scenario(args, plan, scenario)?);
        }
        if !args.is_json {
            report::table(&mut out, &rows)?;
        }
    }
    if plan.has(Part::Law) {
        let law = law(args.seed);
        if !args.is_json {
            report::law(&mut out, &law, &LAW_NODES, &LAW_PERMITS)?;
        }
        rows.extend(law);
    }
    if plan.has(Part::Further) {
        checks = further(args.seed);
        if !args.is_json {
            report::further(&mut out, &checks)?;
        }
    }
    if args.is_json {
        report::json(&mut out, &rows, &checks)?;
    } else {
        report::assumptions(&mut out, ASSUMPTIONS, args.seed)?;
    }
    out.flush().context("cannot write the report")?;
    Ok(rows.iter().all(Row::is_as_promised) && checks.iter().all(|check| check.holds))
}

/// One scenario with every policy that was asked for, drawn if that was asked for, too.
fn of_scenario(args: &StormArgs, plan: &Plan, scenario: &Scenario) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for policy in &plan.policies {
        let report = run(scenario, *policy, args.seed);
        if args.svg.is_some() {
            lines.push(plot::Line::new(policy.name(), &report));
        }
        rows.push(Row::new(scenario.name.to_owned(), scenario.title, *policy, args.seed, &report));
    }
    if let Some(path) = &args.svg {
        let path = plan.svg_of(path, scenario.name);
        let title = format!("{}: {}", scenario.name, scenario.title);
        plot::draw(Path::new(&path), &title, &lines)?;
    }
    Ok(rows)
}

/// The law's grid with the repaired limiter, and ours for each size of the fleet.
fn law(seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for nodes in LAW_NODES {
        let scenario = Scenario::of_the_law(nodes);
        let mut add = |policy: Policy, name: String| {
            let report = run(&scenario, policy, seed);
            rows.push(Row::new(name, scenario.title, policy, seed, &report));
        };
        for permits in LAW_PERMITS {
            add(Policy::LimitedRepaired { permits }, format!("law-{nodes}x{permits}"));
        }
        if let Some(ours) = Policy::named("ours") {
            add(ours, format!("law-{nodes}"));
        }
    }
    rows
}
