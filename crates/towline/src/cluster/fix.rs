//! `towline cluster fix`.
//!
//! ```text
//! slots of nobody, or of two  ->  open slots  ->  keys that nobody can reach  ->  check
//! ```
//!
//! Owns the order of these, the question, and the choice of an owner for slots without one. Does not own the single steps (`settle`).
//! Keys are only ever moved, and a value is overwritten or removed only as `--conflict` says.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use towline_cluster::Slot;
use towline_cluster_proto::NodeId;
use towline_cluster_proto::plan;
use towline_resp::frame::Frame;

use super::check;
use super::error::ClusterError;
use super::findings;
use super::member::shown;
use super::moving::{Moved, Moving, Stop};
use super::options::{FixArgs, MoveArgs};
use super::output::Output;
use super::peer::{Access, Words, words};
use super::reshard::{wait_for_agreement, wait_for_service};
use super::settle::{self, Settling, Step};
use super::survey::Survey;

/// Patience with nodes that settle by themselves who owns what.
const AGREE_WITHIN: Duration = Duration::from_secs(10);

/// Slots that get an owner in one transaction.
const CLAIMS_AT_ONCE: usize = 64;

/// Mends, and says whether a check finds no problem afterwards.
///
/// # Errors
/// The nodes', and [`ClusterError::Refusal`] while a primary does not answer.
pub(super) fn run(args: &FixArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let mut survey = Survey::of(&args.at.node, access)?;
    wait_for_agreement(&mut survey, AGREE_WITHIN)?;
    if let Some(lost) = survey.lost.iter().find(|lost| lost.member.is_primary() && !args.without_lost) {
        return Err(ClusterError::Refusal(format!(
            "{} does not answer: what it has would be given up; wait for it, or say --without-lost",
            lost.member.label()
        )));
    }
    let plan = describe(&mut survey)?;
    for line in &plan {
        output.line(line)?;
    }
    if plan.is_empty() {
        output.line("nothing to mend")?;
    }
    if args.dry_run {
        output.json(&json!({"plan": plan}))?;
        return Ok(plan.is_empty());
    }
    let mut moved = Moved::default();
    if !plan.is_empty() {
        output.confirm("Mend this?")?;
        mend(args, &mut survey, &mut moved)?;
        survey.refresh()?;
        wait_for_agreement(&mut survey, AGREE_WITHIN)?;
    }
    for stuck in &moved.stuck {
        output.line(&stuck.text())?;
    }
    output.line(&format!("moved {} keys, finished {} slots", moved.keys, moved.slots))?;
    let mut found = findings::of_views(&survey.seen(), &survey.lost);
    let orphans = check::orphans(&mut survey)?;
    found.extend(findings::of_orphans(&orphans, |id| survey.label(id)));
    if output.is_json {
        let problems = found.iter().filter(|it| it.severity == findings::Severity::Problem).count();
        let mut object = moved.json("classic", Duration::ZERO);
        object["findings"] = json!(found);
        object["is_ok"] = json!(problems == 0);
        output.json(&object)?;
        return Ok(problems == 0 && moved.stuck.is_empty());
    }
    Ok(check::report(&survey, &found, output)? && moved.stuck.is_empty())
}

/// What would be done, in sentences.
fn describe(survey: &mut Survey) -> Result<Vec<String>, ClusterError> {
    let mut lines = Vec::new();
    for (owner, slots) in claims(survey)? {
        lines.push(format!("slots {} get the owner {}", shown(&plan::ranges_of(slots)), survey.label(owner)));
    }
    for (slot, marks) in settle::marks(&survey.seen()) {
        let keys = Settling::keys_of(survey, slot)?;
        for step in settle::steps(&marks, |node| keys.get(&node).copied()) {
            lines.push(match step {
                Step::Cold { from, to } => format!(
                    "slot {slot}: {} keys go from {} to {}",
                    keys.get(&from).copied().unwrap_or_default(),
                    survey.label(from),
                    survey.label(to)
                ),
                Step::Finish { from, to } => {
                    format!(
                        "slot {slot}: its move from {} to {} is finished",
                        survey.label(from),
                        survey.label(to)
                    )
                }
                Step::Stable { node } => format!("slot {slot}: {} closes it", survey.label(node)),
            });
        }
    }
    for orphans in check::orphans(survey)? {
        lines.push(format!(
            "slot {}: {} keys that clients cannot reach go from {} to the owner",
            orphans.slot,
            orphans.keys,
            survey.label(orphans.holder)
        ));
    }
    Ok(lines)
}

fn mend(args: &FixArgs, survey: &mut Survey, moved: &mut Moved) -> Result<(), ClusterError> {
    let stop = Stop::install()?;
    let claims = claims(survey)?;
    if !claims.is_empty() {
        for (owner, slots) in claims {
            claim(survey, owner, &slots)?;
        }
        survey.refresh()?;
        wait_for_agreement(survey, AGREE_WITHIN)?;
        // A node that does not serve takes no keys; if it stays so, that is said of each of them.
        wait_for_service(survey, AGREE_WITHIN)?;
    }
    let how = MoveArgs::classic();
    let mut moving = Moving::begin(survey, &[], &how, stop)?;
    let mut settling =
        Settling { survey, conflict: args.conflict, moving: &mut moving, moved: std::mem::take(moved) };
    for (slot, marks) in settle::marks(&settling.survey.seen()) {
        let keys = Settling::keys_of(settling.survey, slot)?;
        let steps = settle::steps(&marks, |node| keys.get(&node).copied());
        if let Some(owner) = marks.owner {
            settling.settle(slot, owner, &steps)?;
        }
        if settling.moving.stop.is_asked() {
            return Err(ClusterError::Interrupted("stopped; the same command goes on".to_owned()));
        }
    }
    settling.survey.refresh()?;
    wait_for_agreement(settling.survey, AGREE_WITHIN)?;
    let owners = settling.survey.owners();
    for orphans in check::orphans(settling.survey)? {
        let Some(owner) = owners[usize::from(orphans.slot)] else { continue };
        let steps = [Step::Cold { from: orphans.holder, to: owner }, Step::Stable { node: orphans.holder }];
        settling.settle(orphans.slot, owner, &steps)?;
        if settling.moving.stop.is_asked() {
            return Err(ClusterError::Interrupted("stopped; the same command goes on".to_owned()));
        }
    }
    *moved = settling.moved;
    settling.moving.progress.finish();
    Ok(())
}

/// Slots that need an owner, by who gets them: those of nobody, and those that two claim.
fn claims(survey: &mut Survey) -> Result<BTreeMap<NodeId, Vec<Slot>>, ClusterError> {
    let owners = survey.owners();
    let primaries = survey.primaries();
    let uncovered: Vec<Slot> =
        (0..).zip(&owners).filter(|(_, owner)| owner.is_none()).map(|(slot, _)| slot).collect();
    let mut keys: Vec<(NodeId, Vec<u64>)> = Vec::new();
    for id in &primaries {
        keys.push((*id, survey.count_keys(*id, &uncovered)?));
    }
    let owned = |id: NodeId| owners.iter().filter(|owner| **owner == Some(id)).count();
    let sizes = primaries.iter().map(|id| (*id, owned(*id))).collect();
    let mut claims = assign(&uncovered, &keys, sizes);
    // Of two that claim a slot, the one with the higher epoch is told to claim it again with a higher one yet.
    for node in survey.nodes.iter().filter(|node| node.seen.own.is_primary()) {
        for slot in plan::each(&node.seen.own.slots) {
            if let Some(owner) = owners[usize::from(slot)].filter(|owner| *owner != node.id()) {
                claims.entry(owner).or_default().push(slot);
            }
        }
    }
    Ok(claims)
}

/// Owners for slots: who has most keys of it, or else who has fewest slots.
fn assign(
    slots: &[Slot],
    keys: &[(NodeId, Vec<u64>)],
    mut sizes: BTreeMap<NodeId, usize>,
) -> BTreeMap<NodeId, Vec<Slot>> {
    let mut claims: BTreeMap<NodeId, Vec<Slot>> = BTreeMap::new();
    for (at, slot) in slots.iter().enumerate() {
        let held = keys.iter().filter_map(|(id, counts)| Some((*counts.get(at)?, *id)));
        let richest =
            held.filter(|(keys, _)| *keys > 0).max_by_key(|(keys, id)| (*keys, std::cmp::Reverse(*id)));
        let smallest = || sizes.iter().min_by_key(|(id, size)| (**size, **id)).map(|(id, _)| *id);
        let Some(owner) = richest.map(|(_, id)| id).or_else(smallest) else { continue };
        claims.entry(owner).or_default().push(*slot);
        *sizes.entry(owner).or_default() += 1;
    }
    claims
}

/// Makes a node the owner of slots, with an epoch above all others.
fn claim(survey: &mut Survey, owner: NodeId, slots: &[Slot]) -> Result<(), ClusterError> {
    let peer = &mut survey.node(owner)?.peer;
    for chunk in slots.chunks(CLAIMS_AT_ONCE) {
        let mut commands: Vec<Words> = vec![words("MULTI")];
        for slot in chunk {
            // Whom it still takes for the owner, if anybody.
            commands.push(words(&format!("CLUSTER DELSLOTS {slot}")));
            commands.push(words(&format!("CLUSTER ADDSLOTS {slot}")));
        }
        commands.push(words("CLUSTER BUMPEPOCH"));
        commands.push(vec![Bytes::from_static(b"EXEC")]);
        let replies = peer.ask_all(&commands)?;
        let Some(Frame::Array(results)) = replies.last() else {
            return Err(peer.unexpected(&words("EXEC")));
        };
        // In pairs: what ADDSLOTS says counts.
        for (pair, slot) in results.chunks(2).zip(chunk) {
            if let Some(text) = pair.get(1).and_then(Frame::as_error) {
                return Err(peer.refused(&words(&format!("CLUSTER ADDSLOTS {slot}")), text));
            }
        }
    }
    Ok(())
}

impl MoveArgs {
    /// Key by key, with the defaults.
    fn classic() -> Self {
        Self {
            classic: true,
            atomic: false,
            rate: 0,
            pipeline: 50,
            batch: None,
            replace: false,
            dry_run: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_to_who_has_their_keys_and_else_to_the_smallest() {
        let (a, b) = (NodeId::from_bytes([1; 20]), NodeId::from_bytes([2; 20]));
        let keys = [(a, vec![0, 5, 0, 2]), (b, vec![0, 1, 0, 9])];
        let sizes = BTreeMap::from([(a, 10), (b, 9)]);
        let claims = assign(&[7, 8, 9, 10], &keys, sizes);
        // Slot 7 to b (9 slots); then both have 10, and 8 goes by keys; 9 to b again; 10 by keys.
        assert_eq!(claims, BTreeMap::from([(a, vec![8]), (b, vec![7, 9, 10])]));
        assert!(assign(&[1], &[], BTreeMap::new()).is_empty());
    }
}
