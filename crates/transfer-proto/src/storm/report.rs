//! What came of a fleet.

use std::time::Duration;

use towline_sansio::Instant;

/// The steps of [`Report::goodput`].
pub const GOODPUT_STEP: Duration = Duration::from_millis(100);

/// A running hash of everything that happened, in order: two runs are the same if these are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trace(u64);

impl Trace {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// FNV-1a over whole words instead of bytes: it need not be hard to forge, only to collide by chance.
    pub(super) fn add(&mut self, words: [u64; 4]) {
        for word in words {
            self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
            self.0 ^= self.0 >> 29;
        }
    }

    pub(super) const fn hash(self) -> u64 {
        self.0
    }
}

/// Durations in order, for percentiles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub(super) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The smallest value that so many percent do not exceed; zero without values.
    pub fn percentile(&self, percent: f64) -> Duration {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1).min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    /// The largest; zero without values.
    pub fn max(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// The account of one scenario with one policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Endpoints in all.
    pub endpoints: usize,
    /// Those that were connected at the end.
    pub connected: usize,
    /// Times that an endpoint became connected, in all: more than there are endpoints where the target dies meanwhile.
    pub made: u64,
    /// Those that were not, and were given up for good: part of the stuck ones.
    pub dead: usize,
    /// From when an endpoint was needed to when it was connected; of those that are, the last time that they became so.
    pub setup: Times,
    /// From a handshake's sending to its answer, of those that were answered in time.
    pub round_trip: Times,
    /// Handshake requests sent.
    pub rpcs: u64,
    /// Handshakes that the target worked for although nobody waited for them any more.
    pub wasted: u64,
    /// Queue pairs that ended in the error state on their own.
    pub queue_pair_errors: u64,
    /// Acknowledgements to queue pairs that had not asked.
    pub ghost_acks: u64,
    /// Timer wake-ups that found nothing to do.
    pub idle_wakeups: u64,
    /// Connected endpoints at the end of each [`GOODPUT_STEP`].
    pub goodput: Vec<u32>,
    /// When the last endpoint became connected.
    pub settled_at: Instant,
    /// Equal for equal histories.
    pub trace_hash: u64,
}

impl Report {
    /// Percent of the endpoints that were connected at the end.
    pub fn connected_percent(&self) -> f64 {
        percent(self.connected, self.endpoints)
    }

    /// Percent that were not.
    pub fn stuck_percent(&self) -> f64 {
        percent(self.endpoints - self.connected, self.endpoints)
    }

    /// Percent that were given up for good.
    pub fn dead_percent(&self) -> f64 {
        percent(self.dead, self.endpoints)
    }

    /// Handshake requests for each time that an endpoint became connected; infinite if none did.
    pub fn rpcs_per_connection(&self) -> f64 {
        self.rpcs as f64 / self.made as f64
    }

    /// When so many percent of the endpoints were connected for the first time.
    pub fn time_to_goodput(&self, percent: f64) -> Option<Duration> {
        let needed = percent / 100.0 * self.endpoints as f64;
        let step = self.goodput.iter().position(|connected| f64::from(*connected) >= needed)?;
        Some(GOODPUT_STEP * u32::try_from(step + 1).unwrap_or(u32::MAX))
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Counts connected endpoints over time.
#[derive(Debug, Default)]
pub(super) struct Goodput {
    steps: Vec<u32>,
    connected: u32,
    made: u64,
}

impl Goodput {
    /// Closes the steps that ended before `now`. Before the count changes.
    fn reach(&mut self, now: Instant) {
        let steps = (now.nanos() / GOODPUT_STEP.as_nanos().max(1) as u64) as usize;
        if self.steps.len() < steps {
            self.steps.resize(steps, self.connected);
        }
    }

    pub(super) fn up(&mut self, now: Instant) {
        self.reach(now);
        self.connected += 1;
        self.made += 1;
    }

    pub(super) fn down(&mut self, now: Instant) {
        self.reach(now);
        self.connected -= 1;
    }

    pub(super) const fn made(&self) -> u64 {
        self.made
    }

    pub(super) fn finish(mut self, now: Instant) -> Vec<u32> {
        self.reach(now + GOODPUT_STEP);
        self.steps
    }
}
