//! `towline cluster check`.
//!
//! Owns the questions beyond `CLUSTER NODES` and the report. Does not own the rules (`findings`).

use std::collections::BTreeSet;

use serde_json::json;
use towline_cluster::{OpenState, SLOT_COUNT, Slot};
use towline_cluster_proto::{NodeId, plan};

use super::atomic;
use super::error::ClusterError;
use super::findings::{self, Finding, Orphans, Severity};
use super::options::CheckArgs;
use super::output::Output;
use super::peer::Access;
use super::survey::Survey;

/// Checks, and says whether no problem was found.
///
/// # Errors
/// The first node does not answer.
pub(super) fn run(args: &CheckArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let mut survey = Survey::of(&args.at.node, access)?;
    let mut found = findings::of_views(&survey.seen(), &survey.lost);
    found.extend(of_states(&mut survey));
    if !args.no_keys {
        let orphans = orphans(&mut survey)?;
        found.extend(findings::of_orphans(&orphans, |id| survey.label(id)));
    }
    report(&survey, &found, output)
}

/// Prints what was found, and says whether none of it is a problem.
///
/// # Errors
/// Standard output's.
pub(super) fn report(survey: &Survey, found: &[Finding], output: &Output) -> Result<bool, ClusterError> {
    let problems = found.iter().filter(|finding| finding.severity == Severity::Problem).count();
    let covered = survey.owners().iter().flatten().count();
    if output.is_json {
        output.json(&json!({
            "is_ok": problems == 0,
            "slots_covered": covered,
            "nodes": survey.nodes.len(),
            "unreachable": survey.lost.len(),
            "findings": found,
        }))?;
    } else {
        for finding in found {
            let mark = match finding.severity {
                Severity::Problem => "PROBLEM",
                Severity::Note => "note   ",
            };
            let slots =
                if finding.slots.is_empty() { String::new() } else { format!(" [slots {}]", finding.slots) };
            output.line(&format!("{mark}  {}{slots}", finding.text))?;
        }
        let verdict = if problems == 0 { "no problem".to_owned() } else { format!("{problems} problems") };
        output.line(&format!(
            "{} nodes, {covered} of {SLOT_COUNT} slots covered: {verdict}",
            survey.nodes.len()
        ))?;
    }
    Ok(problems == 0)
}

/// What nodes say of the cluster's state.
fn of_states(survey: &mut Survey) -> Vec<Finding> {
    let mut found = Vec::new();
    for node in &mut survey.nodes {
        let label = node.label();
        let info = node.peer.text("CLUSTER INFO").unwrap_or_default();
        if !info.lines().any(|line| line.trim_end() == "cluster_state:ok") {
            let text = format!("{label} does not serve: its cluster_state is not ok");
            found.push(Finding::problem("state", text));
        }
    }
    found
}

/// Keys in slots that their node does not own. What a move at present brings is none.
///
/// # Errors
/// The nodes'.
pub(super) fn orphans(survey: &mut Survey) -> Result<Vec<Orphans>, ClusterError> {
    let owners = survey.owners();
    let mut orphans = Vec::new();
    for holder in survey.primaries() {
        let moving = moving_to(survey, holder)?;
        let is_foreign = |slot: &Slot| owners[usize::from(*slot)] != Some(holder) && !moving.contains(slot);
        let slots: Vec<Slot> = (0..SLOT_COUNT as Slot).filter(is_foreign).collect();
        let counts = survey.count_keys(holder, &slots)?;
        let held = slots.into_iter().zip(counts).filter(|(_, keys)| *keys > 0);
        orphans.extend(held.map(|(slot, keys)| Orphans { holder, slot, keys }));
    }
    Ok(orphans)
}

/// The slots whose keys a node has because they are on their way to it.
fn moving_to(survey: &mut Survey, holder: NodeId) -> Result<BTreeSet<Slot>, ClusterError> {
    let node = survey.node(holder)?;
    let open = node.seen.own.open.iter().filter(|open| open.way == OpenState::Importing);
    let mut moving: BTreeSet<Slot> = open.map(|open| open.slot).collect();
    let jobs = atomic::jobs(&mut node.peer)?.unwrap_or_default();
    for job in jobs.iter().filter(|job| job.is_active()) {
        moving.extend(plan::each(&job.slots));
    }
    Ok(moving)
}
