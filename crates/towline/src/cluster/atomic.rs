//! Slots that servers move by themselves: `CLUSTER MIGRATESLOTS`, `GETSLOTMIGRATIONS`, `CANCELSLOTMIGRATIONS`, as Valkey 9 has them.
//!
//! Owns the start of such migrations, the watch over them, and `towline cluster migrate`. Does not own the migration: after a crash of
//! this tool it goes on, and the next run waits for it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use towline_cluster_proto::plan::{self, Move};
use towline_cluster_proto::{NodeId, Ranges};
use towline_resp::frame::Frame;

use super::error::ClusterError;
use super::member::{read_ranges, shown};
use super::moving::{Moved, Moving, Stuck};
use super::options::AtArgs;
use super::output::{Output, table};
use super::peer::{Access, Peer, text_of, words};
use super::survey::Survey;

/// How often a source is asked how far it is.
const POLL: Duration = Duration::from_millis(100);

/// Slots of one migration, unless said otherwise: few enough that an interruption does not wait long and that the pause at the end is
/// short where it grows with the keys.
const BATCH_SLOTS: u16 = 1024;

/// A migration as one of its nodes tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Job {
    /// Its name, the same at both nodes.
    pub(super) name: String,
    /// `EXPORT` at the source, `IMPORT` at the target.
    pub(super) operation: String,
    /// What moves.
    #[serde(skip)]
    pub(super) slots: Ranges,
    /// From here.
    pub(super) source: String,
    /// To there.
    pub(super) target: String,
    /// `snapshotting`, `success`, ...
    pub(super) state: String,
    /// Why it failed.
    pub(super) message: String,
    /// What the target lacks of the stream, in bytes, where servers tell.
    pub(super) remaining_bytes: Option<u64>,
}

impl Job {
    /// Whether it goes on.
    pub(super) fn is_active(&self) -> bool {
        !matches!(self.state.as_str(), "success" | "failed" | "cancelled")
    }

    fn is_export(&self) -> bool {
        self.operation.eq_ignore_ascii_case("export")
    }

    fn read(entry: &Frame) -> Option<Self> {
        let fields = fields(entry)?;
        let text = |name: &str| {
            let text = fields.get(name).and_then(|frame| text_of(frame));
            text.map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default()
        };
        let remaining = fields.get("remaining_repl_size").and_then(|frame| match frame {
            Frame::Integer(bytes) => u64::try_from(*bytes).ok(),
            frame => std::str::from_utf8(text_of(frame)?).ok()?.parse().ok(),
        });
        Some(Self {
            name: text("name"),
            operation: text("operation"),
            slots: read_ranges(&text("slot_ranges").replace(' ', ",")).ok()?,
            source: text("source_node"),
            target: text("target_node"),
            state: text("state"),
            message: text("message"),
            remaining_bytes: remaining,
        })
    }
}

/// The fields of a map, in either protocol.
fn fields(entry: &Frame) -> Option<BTreeMap<String, &Frame>> {
    let name = |frame: &Frame| text_of(frame).map(|text| String::from_utf8_lossy(text).into_owned());
    match entry {
        Frame::Map(pairs) => {
            Some(pairs.iter().filter_map(|(key, value)| Some((name(key)?, value))).collect())
        }
        Frame::Array(parts) => {
            let pairs = parts.chunks_exact(2);
            Some(pairs.filter_map(|pair| Some((name(&pair[0])?, &pair[1]))).collect())
        }
        _ => None,
    }
}

/// The migrations that a node knows, newest first; `None` if it does not know such a thing.
///
/// # Errors
/// The node's.
pub(super) fn jobs(peer: &mut Peer) -> Result<Option<Vec<Job>>, ClusterError> {
    match peer.ask(&words("CLUSTER GETSLOTMIGRATIONS"))? {
        Frame::Array(entries) => Ok(Some(entries.iter().filter_map(Job::read).collect())),
        _ => Ok(None),
    }
}

/// Whether all of these nodes move slots by themselves.
///
/// # Errors
/// The nodes'.
pub(super) fn is_known(survey: &mut Survey, nodes: &[NodeId]) -> Result<bool, ClusterError> {
    for id in nodes {
        if jobs(&mut survey.node(*id)?.peer)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits for what goes on at these sources already: an earlier run may have begun it.
///
/// # Errors
/// The nodes'; [`ClusterError::Interrupted`].
pub(super) fn wait_for_others(
    survey: &mut Survey,
    sources: &[NodeId],
    moving: &mut Moving<'_>,
) -> Result<(), ClusterError> {
    for source in sources {
        loop {
            let all = jobs(&mut survey.node(*source)?.peer)?.unwrap_or_default();
            let Some(job) = all.iter().find(|job| job.is_active()) else { break };
            moving.progress.say(&format!(
                "waiting for {} of slots {}: {}",
                job.operation,
                shown(&job.slots),
                job.state
            ));
            if moving.stop.is_asked() {
                return Err(ClusterError::Interrupted(
                    "nothing was begun; the migration that was there before goes on".to_owned(),
                ));
            }
            std::thread::sleep(POLL);
        }
    }
    Ok(())
}

/// Carries the moves out, one migration after the other; after Ctrl-C it ends with the one that goes on.
///
/// # Errors
/// The nodes'. What could not move is no error but part of the outcome.
pub(super) fn run(
    survey: &mut Survey,
    moves: &[Move],
    moving: &mut Moving<'_>,
) -> Result<Moved, ClusterError> {
    let mut moved = Moved::default();
    let batch = usize::from(moving.how.batch.unwrap_or(BATCH_SLOTS));
    for step in moves {
        let slots: Vec<_> = plan::each(&step.slots).collect();
        for chunk in slots.chunks(batch) {
            let part = Move { slots: plan::ranges_of(chunk.iter().copied()), ..step.clone() };
            if moving.stop.is_asked() || !moved.stuck.is_empty() {
                moved.left.push(part);
                continue;
            }
            match one(survey, &part, moving)? {
                None => {
                    moved.slots += chunk.len();
                    moved.keys += moving.keys_of(chunk);
                    moving.progress.at(&moved);
                }
                Some(reason) => moved.stuck.push(Stuck { slots: part.slots, key: None, reason }),
            }
        }
    }
    moved.is_interrupted = moving.stop.is_asked() && !moved.left.is_empty();
    Ok(moved)
}

/// One migration, from its start to its end; `Some` is why it failed.
fn one(survey: &mut Survey, part: &Move, moving: &mut Moving<'_>) -> Result<Option<String>, ClusterError> {
    let mut text = "CLUSTER MIGRATESLOTS SLOTSRANGE".to_owned();
    for (first, last) in &part.slots {
        text.push_str(&format!(" {first} {last}"));
    }
    text.push_str(&format!(" NODE {}", part.to));
    let command = words(&text);
    let peer = &mut survey.node(part.from)?.peer;
    if let Some(error) = peer.ask(&command)?.as_error() {
        return Ok(Some(crate::cli::one_line(error)));
    }
    loop {
        let peer = &mut survey.node(part.from)?.peer;
        let all = jobs(peer)?.unwrap_or_default();
        let is_ours =
            |job: &&Job| job.is_export() && job.target == part.to.to_string() && job.slots == part.slots;
        // Newest first: the one that was just begun.
        let Some(job) = all.iter().find(is_ours) else {
            return Ok(Some("the source accepted the migration and does not know it any more".to_owned()));
        };
        if !job.is_active() {
            let failure = format!("{}: {}", job.state, job.message);
            return Ok((job.state != "success").then_some(failure));
        }
        let lag = job.remaining_bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes behind"));
        moving.progress.say(&format!("slots {}: {}{lag}", shown(&part.slots), job.state));
        std::thread::sleep(POLL);
    }
}

/// `migrate status`.
///
/// # Errors
/// The nodes'.
pub(super) fn status(args: &AtArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let mut survey = Survey::of(&args.node, access)?;
    let heading = ["node", "operation", "slots", "state", "message"].map(str::to_owned).to_vec();
    let (mut rows, mut objects, mut is_known) = (vec![heading], Vec::new(), false);
    for node in survey.nodes.iter_mut().filter(|node| node.seen.own.is_primary()) {
        let Some(all) = jobs(&mut node.peer)? else { continue };
        is_known = true;
        let address = node.peer.address.to_string();
        for job in &all {
            let cells = [&address, &job.operation, &shown(&job.slots), &job.state, &job.message];
            rows.push(cells.map(Clone::clone).to_vec());
            objects.push(json!({"node": address, "slots": shown(&job.slots), "migration": job}));
        }
    }
    if !is_known {
        return Err(ClusterError::Refusal("these servers do not move slots by themselves".to_owned()));
    }
    output.json(&serde_json::Value::Array(objects))?;
    if rows.len() == 1 {
        output.line("no migration goes on, and none is remembered")?;
    } else {
        for line in table(&rows) {
            output.line(&line)?;
        }
    }
    Ok(true)
}

/// `migrate cancel`.
///
/// # Errors
/// The nodes'.
pub(super) fn cancel(args: &AtArgs, access: &Access, output: &Output) -> Result<bool, ClusterError> {
    let mut survey = Survey::of(&args.node, access)?;
    let mut cancelled = Vec::new();
    for node in survey.nodes.iter_mut().filter(|node| node.seen.own.is_primary()) {
        let all = jobs(&mut node.peer)?.unwrap_or_default();
        let exports: Vec<&Job> = all.iter().filter(|job| job.is_active() && job.is_export()).collect();
        if exports.is_empty() {
            continue;
        }
        node.peer.call(&words("CLUSTER CANCELSLOTMIGRATIONS"))?;
        for job in exports {
            output.line(&format!("{}: slots {} stay", node.peer.address, shown(&job.slots)))?;
            cancelled.push(
                json!({"node": node.peer.address.to_string(), "slots": shown(&job.slots), "migration": job}),
            );
        }
    }
    if cancelled.is_empty() {
        output.line("no migration goes on")?;
    }
    output.json(&json!({"cancelled": cancelled}))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn migrations_are_read_in_both_protocols() {
        let bulk = |text: &'static str| Frame::Bulk(Bytes::from_static(text.as_bytes()));
        let pairs = [
            (bulk("name"), bulk("n1")),
            (bulk("operation"), bulk("EXPORT")),
            (bulk("slot_ranges"), bulk("0-9 20-29")),
            (bulk("target_node"), bulk("t")),
            (bulk("source_node"), bulk("s")),
            (bulk("create_time"), Frame::Integer(1)),
            (bulk("state"), bulk("snapshotting")),
            (bulk("message"), bulk("")),
            (bulk("remaining_repl_size"), Frame::Integer(7)),
        ];
        let flat = Frame::Array(pairs.iter().cloned().flat_map(|(name, value)| [name, value]).collect());
        let job = Job::read(&flat).unwrap();
        assert_eq!(Some(&job), Job::read(&Frame::Map(pairs.to_vec())).as_ref());
        assert_eq!((job.slots.as_slice(), job.remaining_bytes), (&[(0, 9), (20, 29)][..], Some(7)));
        assert!(job.is_active() && job.is_export());
        assert!(!Job { state: "failed".to_owned(), ..job }.is_active());
        assert_eq!(Job::read(&Frame::Integer(1)), None);
    }
}
