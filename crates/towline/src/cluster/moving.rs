//! What both ways of moving slots share: the request to stop, the pace, the progress, and what came of it.
//!
//! Owns no conversation with nodes; those are `classic` and `atomic`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use towline_cluster::Slot;
use towline_cluster_proto::Ranges;
use towline_cluster_proto::plan::{self, Move};

use super::error::{ClusterError, EXIT_INTERRUPTED};
use super::member::shown;
use super::options::MoveArgs;
use super::survey::Survey;

/// A slot costs about as much as so many small keys: several commands at three nodes and their bookkeeping.
const KEYS_OF_A_SLOT: u64 = 20;

/// How often there is a line when standard error is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Ctrl-C and SIGTERM: the first asks, the second ends the process at once (the cluster has all that is needed to go on).
#[derive(Debug, Clone)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes the signals over for the rest of the process's life.
    ///
    /// # Errors
    /// [`ClusterError::Local`].
    pub(super) fn install() -> Result<Self, ClusterError> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let local = |source| ClusterError::Local { what: "signal handler", source };
            // In this order: the first signal finds the flag still down.
            let at_once = i32::from(EXIT_INTERRUPTED);
            signal_hook::flag::register_conditional_shutdown(signal, at_once, Arc::clone(&asked))
                .map_err(local)?;
            signal_hook::flag::register(signal, Arc::clone(&asked)).map_err(local)?;
        }
        Ok(Self(asked))
    }

    /// Whether to leave things in order and end.
    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Something that could not move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stuck {
    /// Its slot, or slots.
    pub(super) slots: Ranges,
    /// The key, where it is about one.
    pub(super) key: Option<Bytes>,
    /// Why.
    pub(super) reason: String,
}

impl Stuck {
    /// As a sentence.
    pub(super) fn text(&self) -> String {
        match &self.key {
            Some(key) => {
                format!(
                    "slot {}: key '{}' could not move: {}",
                    shown(&self.slots),
                    key.escape_ascii(),
                    self.reason
                )
            }
            None => format!("slots {} could not move: {}", shown(&self.slots), self.reason),
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// Slots that have their new owner.
    pub(super) slots: usize,
    /// Keys that went with them.
    pub(super) keys: u64,
    /// What could not move.
    pub(super) stuck: Vec<Stuck>,
    /// What was not begun.
    pub(super) left: Vec<Move>,
    /// Whether somebody asked to stop.
    pub(super) is_interrupted: bool,
}

impl Moved {
    /// For scripts.
    pub(super) fn json(&self, how: &str, elapsed: Duration) -> Value {
        let stuck = |stuck: &Stuck| {
            json!({
                "slots": shown(&stuck.slots),
                "key": stuck.key.as_ref().map(|key| key.escape_ascii().to_string()),
                "reason": stuck.reason,
            })
        };
        json!({
            "how": how,
            "slots_moved": self.slots,
            "keys_moved": self.keys,
            "seconds": elapsed.as_secs_f64(),
            "stuck": self.stuck.iter().map(stuck).collect::<Vec<_>>(),
            "left": json_of(&self.left),
            "is_interrupted": self.is_interrupted,
        })
    }

    /// The slots that were not begun.
    pub(super) fn left_slots(&self) -> Ranges {
        plan::ranges_of(self.left.iter().flat_map(|step| plan::each(&step.slots)))
    }
}

/// Moves for scripts.
pub(super) fn json_of(moves: &[Move]) -> Value {
    let one = |step: &Move| json!({"from": step.from.to_string(), "to": step.to.to_string(), "slots": shown(&step.slots)});
    Value::Array(moves.iter().map(one).collect())
}

/// Holds a rate.
#[derive(Debug)]
pub(super) struct Pace {
    rate: u64,
    begun: Instant,
    done: u64,
}

impl Pace {
    /// So many keys per second; 0: no bound.
    pub(super) fn new(rate: u64) -> Self {
        Self { rate, begun: Instant::now(), done: 0 }
    }

    /// Waits as long as `keys` more take at this rate.
    pub(super) fn wait(&mut self, keys: u64) {
        self.done += keys;
        if self.rate > 0 {
            let due = Duration::from_secs_f64(self.done as f64 / self.rate as f64);
            std::thread::sleep(due.saturating_sub(self.begun.elapsed()));
        }
    }
}

/// What a run of moves has with it.
#[derive(Debug)]
pub(super) struct Moving<'a> {
    /// The options.
    pub(super) how: &'a MoveArgs,
    /// Whether to end.
    pub(super) stop: Stop,
    /// What is shown.
    pub(super) progress: Progress,
    /// Keys of each slot that is to move, as they were before.
    keys: BTreeMap<Slot, u64>,
}

impl<'a> Moving<'a> {
    /// Counts what is to move.
    ///
    /// # Errors
    /// The nodes'.
    pub(super) fn begin(
        survey: &mut Survey,
        moves: &[Move],
        how: &'a MoveArgs,
        stop: Stop,
    ) -> Result<Self, ClusterError> {
        let mut keys = BTreeMap::new();
        for step in moves {
            let slots: Vec<Slot> = plan::each(&step.slots).collect();
            let counts = survey.count_keys(step.from, &slots)?;
            keys.extend(slots.into_iter().zip(counts));
        }
        let progress = Progress::new(keys.len(), keys.values().sum());
        Ok(Self { how, stop, progress, keys })
    }

    /// Keys of these slots before the move.
    pub(super) fn keys_of(&self, slots: &[Slot]) -> u64 {
        slots.iter().filter_map(|slot| self.keys.get(slot)).sum()
    }
}

/// What is shown meanwhile, on standard error.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    said: Instant,
    slots: usize,
    keys: u64,
}

impl Progress {
    fn new(slots: usize, keys: u64) -> Self {
        // The target is standard error, and nothing is drawn there unless it is a terminal.
        let bar = ProgressBar::new(keys + slots as u64 * KEYS_OF_A_SLOT);
        let template = "{wide_bar} {percent:>3}% ETA {eta} {msg}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let now = Instant::now();
        Self { bar, begun: now, said: now, slots, keys }
    }

    /// How far it is.
    pub(super) fn at(&mut self, moved: &Moved) {
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-3);
        let (slots_rate, keys_rate) = (moved.slots as f64 / seconds, moved.keys as f64 / seconds);
        let text = format!(
            "{}/{} slots ({slots_rate:.0}/s), {}/{} keys ({keys_rate:.0}/s)",
            moved.slots, self.slots, moved.keys, self.keys
        );
        self.bar.set_position(moved.keys + moved.slots as u64 * KEYS_OF_A_SLOT);
        self.say(&text);
    }

    /// A word about what goes on.
    pub(super) fn say(&mut self, text: &str) {
        if !self.bar.is_hidden() {
            self.bar.set_message(text.to_owned());
        } else if self.said.elapsed() >= LINE_EVERY {
            self.said = Instant::now();
            crate::cli::warn(text);
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
