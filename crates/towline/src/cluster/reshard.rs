//! `towline cluster reshard` and `rebalance`.
//!
//! Owns the order: the state of the cluster, what an interrupted run left, the plan, the question, the move, the report. Does not own
//! the plan (`towline_cluster_proto::plan`) nor the moves (`classic`, `atomic`).

use std::time::{Duration, Instant};

use serde_json::json;
use towline_cluster::Slot;
use towline_cluster_proto::NodeId;
use towline_cluster_proto::plan::{self, Move, Share};

use super::error::ClusterError;
use super::findings;
use super::member::shown;
use super::moving::{Moved, Moving, Stop, json_of};
use super::options::{Conflict, MoveArgs, RebalanceArgs, ReshardArgs};
use super::output::{Output, table};
use super::peer::Access;
use super::settle::{self, Settling, Step};
use super::survey::Survey;
use super::{atomic, classic};

/// Patience with nodes that have not yet heard of each other's latest.
const AGREE_WITHIN: Duration = Duration::from_secs(15);

/// How often they are asked meanwhile.
const POLL: Duration = Duration::from_millis(100);

/// `reshard`.
///
/// # Errors
/// The cluster is in no state for it, the options do not fit it, or a node does not answer.
pub(super) fn reshard(args: &ReshardArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let mut job = Job::begin(&args.at.node, access, output, &args.how)?;
    let shares = job.survey.shares();
    let to = job.survey.find(&args.to)?;
    if !shares.iter().any(|share| share.node == to) {
        return Err(ClusterError::Usage(format!("{} is no primary", job.survey.label(to))));
    }
    let sources = sources(&job.survey, &shares, &args.from)?;
    let moves = match (&args.ranges, args.slots) {
        (Some(ranges), _) => {
            // What the target has already stays, whoever the sources are.
            let target = shares.iter().filter(|share| share.node == to && !sources.contains(share));
            let all: Vec<Share> = sources.iter().chain(target).cloned().collect();
            plan::pick(&all, ranges, to)?
        }
        (None, slots) => plan::take(&sources, usize::from(slots.unwrap_or_default()), to)?,
    };
    job.carry_out(&moves)
}

fn sources(survey: &Survey, shares: &[Share], from: &[String]) -> Result<Vec<Share>, ClusterError> {
    if from.iter().any(|name| name == "all") {
        return Ok(shares.to_vec());
    }
    let mut sources: Vec<Share> = Vec::new();
    for name in from {
        let id = survey.find(name)?;
        let share = shares.iter().find(|share| share.node == id);
        let share =
            share.ok_or_else(|| ClusterError::Usage(format!("{} is no primary", survey.label(id))))?;
        if !sources.contains(share) {
            sources.push(share.clone());
        }
    }
    Ok(sources)
}

/// `rebalance`.
///
/// # Errors
/// As [`reshard`].
pub(super) fn rebalance(
    args: &RebalanceArgs,
    access: &Access,
    output: &Output,
) -> Result<bool, ClusterError> {
    let mut job = Job::begin(&args.at.node, access, output, &args.how)?;
    let mut shares = job.survey.shares();
    for (name, weight) in &args.weight {
        let id = job.survey.find(name)?;
        let share = shares.iter_mut().find(|share| share.node == id);
        let share =
            share.ok_or_else(|| ClusterError::Usage(format!("{} is no primary", job.survey.label(id))))?;
        share.weight = Some(*weight);
    }
    if !args.threshold.is_finite() || args.threshold < 0.0 {
        return Err(ClusterError::Usage("--threshold is a number from 0 up".to_owned()));
    }
    let moves = plan::rebalance(&shares, args.threshold, args.use_empty)?;
    job.carry_out(&moves)
}

/// Waits until all nodes say the same; false if they do not in time.
///
/// # Errors
/// Nobody answers.
pub(super) fn wait_for_agreement(survey: &mut Survey, patience: Duration) -> Result<bool, ClusterError> {
    let deadline = Instant::now() + patience;
    while !findings::agree(&survey.seen()) {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(POLL);
        survey.refresh()?;
    }
    Ok(true)
}

/// Waits until every primary says that it serves; false if one does not in time. Redis's nodes take 2 s after they became members.
///
/// # Errors
/// The nodes'.
pub(super) fn wait_for_service(survey: &mut Survey, patience: Duration) -> Result<bool, ClusterError> {
    let deadline = Instant::now() + patience;
    for id in survey.primaries() {
        loop {
            let info = survey.node(id)?.peer.text("CLUSTER INFO")?;
            if info.lines().any(|line| line.trim_end() == "cluster_state:ok") {
                break;
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
    }
    Ok(true)
}

/// A run of moves.
struct Job<'a> {
    survey: Survey,
    output: &'a Output,
    how: &'a MoveArgs,
    stop: Stop,
}

impl<'a> Job<'a> {
    fn begin(
        node: &super::address::Address,
        access: &Access,
        output: &'a Output,
        how: &'a MoveArgs,
    ) -> Result<Self, ClusterError> {
        if how.atomic && (how.rate > 0 || how.replace) {
            return Err(ClusterError::Usage(
                "--rate and --replace are for --classic; the servers have settings of their own for --atomic"
                    .to_owned(),
            ));
        }
        let mut survey = Survey::of(node, access)?;
        let missing = survey.lost.iter().find(|lost| !lost.member.has("slave"));
        if let Some(lost) = missing {
            let gone = lost.member.has_failed() && lost.member.slots.is_empty();
            if !gone {
                return Err(ClusterError::Refusal(format!(
                    "{} does not answer ({}), so nobody can say what it owns; see towline cluster check",
                    lost.member.label(),
                    lost.reason
                )));
            }
        }
        if !wait_for_agreement(&mut survey, AGREE_WITHIN)? {
            return Err(ClusterError::Refusal(
                "the nodes do not agree on who owns what; see towline cluster check".to_owned(),
            ));
        }
        if !wait_for_service(&mut survey, AGREE_WITHIN)? {
            return Err(ClusterError::Refusal(
                "not every primary serves (cluster_state); see towline cluster check".to_owned(),
            ));
        }
        let mut job = Self { survey, output, how, stop: Stop::install()? };
        job.resume()?;
        Ok(job)
    }

    /// Finishes what an interrupted run left open.
    fn resume(&mut self) -> Result<(), ClusterError> {
        let open = settle::marks(&self.survey.seen());
        if open.is_empty() {
            return Ok(());
        }
        let slots = shown(&plan::ranges_of(open.keys().copied()));
        let mut all = Vec::new();
        for (slot, marks) in &open {
            let keys = Settling::keys_of(&mut self.survey, *slot)?;
            let steps = settle::steps(marks, |node| keys.get(&node).copied());
            let is_ours = |step: &Step| !matches!(step, Step::Cold { .. });
            let Some(owner) = marks.owner.filter(|_| steps.iter().all(is_ours)) else {
                return Err(ClusterError::Refusal(format!(
                    "slot {slot} is open in a way that an interrupted move does not leave; towline cluster fix mends it"
                )));
            };
            all.push((*slot, owner, steps));
        }
        self.output
            .line(&format!("slots {slots} are open, as an interrupted move leaves them: they come first"))?;
        if self.how.dry_run {
            return Ok(());
        }
        self.output.confirm("Finish them?")?;
        let moves: Vec<Move> = all.iter().flat_map(|(slot, _, steps)| finishing(*slot, steps)).collect();
        let mut moving = Moving::begin(&mut self.survey, &moves, self.how, self.stop.clone())?;
        let mut settling = Settling {
            survey: &mut self.survey,
            conflict: Conflict::Stop,
            moving: &mut moving,
            moved: Moved::default(),
        };
        for (slot, owner, steps) in all {
            settling.settle(slot, owner, &steps)?;
        }
        let moved = settling.moved;
        moving.progress.finish();
        if let Some(stuck) = moved.stuck.first() {
            return Err(ClusterError::Refusal(stuck.text()));
        }
        if self.stop.is_asked() {
            return Err(ClusterError::Interrupted("stopped before anything new was begun".to_owned()));
        }
        self.output.line(&format!("finished {} slots with {} keys", moved.slots, moved.keys))?;
        self.survey.refresh()?;
        wait_for_agreement(&mut self.survey, AGREE_WITHIN)?;
        Ok(())
    }

    fn carry_out(&mut self, moves: &[Move]) -> Result<bool, ClusterError> {
        let mut rows = vec![["from", "to", ">slots", "ranges"].map(str::to_owned).to_vec()];
        for step in moves {
            let (from, to) = (self.survey.label(step.from), self.survey.label(step.to));
            rows.push(vec![from, to, plan::count(&step.slots).to_string(), shown(&step.slots)]);
        }
        if moves.is_empty() {
            self.output.line("nothing has to move")?;
            self.output.json(&json!({"plan": [], "slots_moved": 0, "keys_moved": 0}))?;
            return Ok(true);
        }
        for line in table(&rows) {
            self.output.line(&line)?;
        }
        if self.how.dry_run {
            self.output.json(&json!({"plan": json_of(moves)}))?;
            return Ok(true);
        }
        let is_atomic = self.is_atomic(moves)?;
        self.output.confirm("Move them?")?;
        let mut moving = Moving::begin(&mut self.survey, moves, self.how, self.stop.clone())?;
        let begun = Instant::now();
        let outcome = if is_atomic {
            let sources: Vec<NodeId> = moves.iter().map(|step| step.from).collect();
            atomic::wait_for_others(&mut self.survey, &sources, &mut moving)
                .and_then(|()| atomic::run(&mut self.survey, moves, &mut moving))
        } else {
            classic::run(&mut self.survey, moves, &mut moving)
        };
        moving.progress.finish();
        let elapsed = begun.elapsed();
        let moved = outcome.map_err(|error| match error {
            interrupted @ ClusterError::Interrupted(_) => interrupted,
            error => ClusterError::Refusal(format!("{error}; the same command goes on where this one ended")),
        })?;
        self.survey.refresh()?;
        wait_for_agreement(&mut self.survey, AGREE_WITHIN)?;
        self.report(&moved, moves, if is_atomic { "atomic" } else { "classic" }, elapsed)
    }

    fn is_atomic(&mut self, moves: &[Move]) -> Result<bool, ClusterError> {
        if self.how.classic || (!self.how.atomic && (self.how.rate > 0 || self.how.replace)) {
            return Ok(false);
        }
        let mut nodes: Vec<NodeId> = moves.iter().flat_map(|step| [step.from, step.to]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let is_known = atomic::is_known(&mut self.survey, &nodes)?;
        if self.how.atomic && !is_known {
            return Err(ClusterError::Usage(
                "these servers do not move slots by themselves (CLUSTER MIGRATESLOTS); use --classic"
                    .to_owned(),
            ));
        }
        Ok(is_known)
    }

    fn report(
        &self,
        moved: &Moved,
        moves: &[Move],
        how: &str,
        elapsed: Duration,
    ) -> Result<bool, ClusterError> {
        let mut object = moved.json(how, elapsed);
        object["plan"] = json_of(moves);
        self.output.json(&object)?;
        for stuck in &moved.stuck {
            self.output.line(&stuck.text())?;
        }
        let seconds = elapsed.as_secs_f64();
        self.output.line(&format!(
            "{how}: moved {} slots with {} keys in {seconds:.2} s ({:.0} slots/s, {:.0} keys/s)",
            moved.slots,
            moved.keys,
            moved.slots as f64 / seconds.max(1e-3),
            moved.keys as f64 / seconds.max(1e-3)
        ))?;
        let left = moved.left_slots();
        if !left.is_empty() {
            self.output.line(&format!(
                "not begun: {} slots, which --ranges {} moves",
                plan::count(&left),
                shown(&left)
            ))?;
        }
        if moved.is_interrupted {
            return Err(ClusterError::Interrupted("stopped; nothing is open".to_owned()));
        }
        Ok(moved.stuck.is_empty())
    }
}

/// The move of a slot among its steps, to be counted.
fn finishing(slot: Slot, steps: &[Step]) -> Option<Move> {
    steps.iter().find_map(|step| match *step {
        Step::Finish { from, to } => Some(Move { from, to, slots: vec![(slot, slot)] }),
        Step::Cold { .. } | Step::Stable { .. } => None,
    })
}
