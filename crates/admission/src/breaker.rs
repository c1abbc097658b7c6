//! Whether dialling one target makes sense at all now.
//!
//! Owns: the recent failures of one target and the permission to try. Does **not** own the delay between the attempts
//! of one client ([`crate::Backoff`]) or their number ([`crate::DialLimiter`]): those spread the load, this stops it.
//! With many clients of one dead target in a process, one of them asks and the others wait for the answer.
//!
//! ```text
//!            `failures` failures within `window`, no success between
//!   Closed -------------------------------------------------------------> Open
//!     ^                                                                    | [open_for / 2, open_for]
//!     |  `probes` probes worked, one after the other                       v
//!     +---------------------------------------------------------------- HalfOpen --a probe fails or is lost--> Open
//! ```
//!
//! A target that answers *busy* is alive: the answer counts as one that worked.

use std::collections::VecDeque;
use std::time::Duration;
use towline_sansio::{Instant, Prng};

/// The numbers of a [`Breaker`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// So many failures open it. From 1 to [`BreakerConfig::FAILURES_MAX`].
    pub failures: u32,
    /// Only failures of the last `window` count. More than zero.
    pub window: Duration,
    /// It stays open for a time drawn from half of this to this, so that the processes of a fleet do not probe in
    /// step. More than zero.
    pub open_for: Duration,
    /// So many probes in a row must work before everybody may dial. More than zero.
    pub probes: u32,
    /// A probe that has not been reported after this long is lost and counts as failed. More than zero; not below
    /// the time limit of a dial and its handshake, or slow probes fail.
    pub probe_timeout: Duration,
}

impl BreakerConfig {
    /// The bound on the memory of one breaker: 8 bytes for each failure.
    pub const FAILURES_MAX: u32 = 1024;

    /// The defaults of clients.
    ///
    /// * `failures` 5 in a `window` of 10 s: an unlucky moment gives one or two, a dead target gives five at once.
    /// * `open_for` 500 ms: with the limiter's quarter of a second for 500 connections everybody is back within a
    ///   second of the target's return.
    /// * `probes` 1: a handshake that was answered is proof enough.
    /// * `probe_timeout` 5 s, as the usual limit of a dial with its handshake.
    pub const CLIENT: Self = Self {
        failures: 5,
        window: Duration::from_secs(10),
        open_for: Duration::from_millis(500),
        probes: 1,
        probe_timeout: Duration::from_secs(5),
    };

    /// Checks the numbers.
    ///
    /// # Errors
    /// The first that would keep it open or closed for ever; the configuration's author's fault.
    pub fn validate(&self) -> Result<(), BreakerConfigError> {
        for (is_zero, field) in [
            (self.failures == 0, "failures"),
            (self.window.is_zero(), "window"),
            (self.open_for.is_zero(), "open_for"),
            (self.probes == 0, "probes"),
            (self.probe_timeout.is_zero(), "probe_timeout"),
        ] {
            if is_zero {
                return Err(BreakerConfigError::NotPositive { field });
            }
        }
        if self.failures > Self::FAILURES_MAX {
            return Err(BreakerConfigError::TooManyFailures { failures: self.failures });
        }
        Ok(())
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self::CLIENT
    }
}

/// Why a [`BreakerConfig`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BreakerConfigError {
    /// A number or a time is zero.
    #[error("the breaker's {field} is zero; it must be positive")]
    NotPositive {
        /// The field's name.
        field: &'static str,
    },
    /// Above [`BreakerConfig::FAILURES_MAX`].
    #[error("a breaker that opens after {failures} failures; at most 1024 can be counted")]
    TooManyFailures {
        /// As configured.
        failures: u32,
    },
}

/// The answer to [`Breaker::ask`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Passage {
    /// Dial, then [`Breaker::report`] what came of it.
    Allowed(Attempt),
    /// Do not dial. Ask again at `retry_at`, or when a report of another attempt says that something changed. This
    /// refusal is a wait: it costs no retry.
    Refused {
        /// The earliest time at which asking without a change can help.
        retry_at: Instant,
    },
}

/// A permitted attempt, to be reported once. One that is dropped counts as lost when it was a probe, else not at all.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "report the outcome, else a probe holds up everybody until its timeout"]
pub struct Attempt {
    epoch: u64,
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptOutcome {
    /// The handshake was answered.
    Worked,
    /// The target answered *busy*: it lives, and says itself when to come back.
    Busy,
    /// Refused, timed out, reset, or answered by something that is not the target.
    Failed,
    /// Given up for a reason of our own before there was an outcome.
    Abandoned,
}

/// What a report did. On everything but [`Change::None`] and [`Change::Opened`], whoever was refused may ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// Nothing that others need to know.
    None,
    /// Nobody may dial until then.
    Opened {
        /// When the first probe may go.
        until: Instant,
    },
    /// The next probe may go.
    ProbeFree,
    /// Everybody may dial.
    Closed,
}

/// The state, for snapshots and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// Everybody may dial.
    Closed {
        /// Failures in the window as of the last report.
        failures: u32,
    },
    /// Nobody may dial before `until`.
    Open {
        /// When the first probe may go.
        until: Instant,
    },
    /// One probe at a time may dial.
    HalfOpen {
        /// How many probes have worked.
        worked: u32,
        /// Whether one is out now.
        is_probing: bool,
    },
}

#[derive(Debug, Clone)]
enum State {
    Closed { failures: VecDeque<Instant> },
    Open { until: Instant },
    HalfOpen { worked: u32, probe_deadline: Option<Instant> },
}

/// The breaker of one target.
///
/// ```
/// use towline_admission::{AttemptOutcome, Breaker, BreakerConfig, Change, Passage};
/// use towline_sansio::{Instant, Prng};
///
/// let mut prng = Prng::new(1);
/// let mut breaker = Breaker::new(BreakerConfig { failures: 1, ..BreakerConfig::CLIENT })?;
/// let Passage::Allowed(attempt) = breaker.ask(Instant::ZERO, &mut prng) else { panic!("it starts closed") };
/// let Change::Opened { until } = breaker.report(Instant::ZERO, attempt, AttemptOutcome::Failed, &mut prng) else {
///     panic!("one failure is enough here")
/// };
/// assert_eq!(breaker.ask(Instant::ZERO, &mut prng), Passage::Refused { retry_at: until });
/// let Passage::Allowed(probe) = breaker.ask(until, &mut prng) else { panic!("the time is over") };
/// assert_eq!(breaker.report(until, probe, AttemptOutcome::Worked, &mut prng), Change::Closed);
/// # Ok::<(), towline_admission::BreakerConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Breaker {
    config: BreakerConfig,
    state: State,
    /// Grows with each change of state and each probe. A report from an earlier epoch says nothing about this one.
    epoch: u64,
}

impl Breaker {
    /// A closed breaker.
    ///
    /// # Errors
    /// As [`BreakerConfig::validate`].
    pub fn new(config: BreakerConfig) -> Result<Self, BreakerConfigError> {
        config.validate()?;
        Ok(Self { config, state: State::Closed { failures: VecDeque::new() }, epoch: 0 })
    }

    /// May the target be dialled now? Takes a draw only when it finds a lost probe and opens again.
    pub fn ask(&mut self, now: Instant, prng: &mut Prng) -> Passage {
        match self.state {
            State::Closed { .. } => Passage::Allowed(Attempt { epoch: self.epoch }),
            State::Open { until } if now < until => Passage::Refused { retry_at: until },
            State::Open { .. } => self.probe(now, 0),
            State::HalfOpen { worked, probe_deadline: None } => self.probe(now, worked),
            State::HalfOpen { probe_deadline: Some(deadline), .. } if now < deadline => {
                Passage::Refused { retry_at: deadline }
            }
            State::HalfOpen { .. } => Passage::Refused { retry_at: self.open(now, prng) },
        }
    }

    /// Takes the outcome of an attempt. Reports from before the last change of state do nothing. Takes a draw only
    /// when it opens.
    pub fn report(
        &mut self,
        now: Instant,
        attempt: Attempt,
        outcome: AttemptOutcome,
        prng: &mut Prng,
    ) -> Change {
        if attempt.epoch != self.epoch {
            return Change::None;
        }
        match (&mut self.state, outcome) {
            (State::Closed { failures }, AttemptOutcome::Failed) => {
                failures.push_back(now);
                while failures.front().is_some_and(|first| now.since(*first) > self.config.window) {
                    failures.pop_front();
                }
                if failures.len() < self.config.failures as usize {
                    return Change::None;
                }
                Change::Opened { until: self.open(now, prng) }
            }
            (State::Closed { failures }, AttemptOutcome::Worked | AttemptOutcome::Busy) => {
                failures.clear();
                Change::None
            }
            // No attempt carries the epoch of an open breaker.
            (State::Closed { .. }, AttemptOutcome::Abandoned) | (State::Open { .. }, _) => Change::None,
            (State::HalfOpen { .. }, AttemptOutcome::Failed) => {
                Change::Opened { until: self.open(now, prng) }
            }
            (State::HalfOpen { worked, .. }, AttemptOutcome::Worked | AttemptOutcome::Busy) => {
                let worked = *worked + 1;
                if worked >= self.config.probes {
                    self.enter(State::Closed { failures: VecDeque::new() });
                    return Change::Closed;
                }
                self.enter(State::HalfOpen { worked, probe_deadline: None });
                Change::ProbeFree
            }
            (State::HalfOpen { worked, .. }, AttemptOutcome::Abandoned) => {
                let worked = *worked;
                self.enter(State::HalfOpen { worked, probe_deadline: None });
                Change::ProbeFree
            }
        }
    }

    /// The target is known to be a new one (restarted under a new identity, failed over): forget the old one.
    pub fn reset(&mut self) -> Change {
        self.enter(State::Closed { failures: VecDeque::new() });
        Change::Closed
    }

    /// The state as the last call left it. An open breaker whose time is over says so until somebody asks.
    pub fn state(&self) -> BreakerState {
        match &self.state {
            State::Closed { failures } => {
                BreakerState::Closed { failures: u32::try_from(failures.len()).unwrap_or(u32::MAX) }
            }
            State::Open { until } => BreakerState::Open { until: *until },
            State::HalfOpen { worked, probe_deadline } => {
                BreakerState::HalfOpen { worked: *worked, is_probing: probe_deadline.is_some() }
            }
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.epoch += 1;
    }

    fn probe(&mut self, now: Instant, worked: u32) -> Passage {
        self.enter(State::HalfOpen { worked, probe_deadline: Some(now + self.config.probe_timeout) });
        Passage::Allowed(Attempt { epoch: self.epoch })
    }

    fn open(&mut self, now: Instant, prng: &mut Prng) -> Instant {
        let nanos = u64::try_from(self.config.open_for.as_nanos()).unwrap_or(u64::MAX);
        let until = now + Duration::from_nanos(nanos / 2 + prng.below((nanos - nanos / 2).saturating_add(1)));
        self.enter(State::Open { until });
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);
    const CONFIG: BreakerConfig = BreakerConfig { failures: 3, probes: 2, ..BreakerConfig::CLIENT };

    struct Bench {
        breaker: Breaker,
        prng: Prng,
        now: Instant,
    }

    impl Bench {
        fn new(config: BreakerConfig) -> Self {
            Self { breaker: Breaker::new(config).unwrap(), prng: Prng::new(1), now: Instant::ZERO }
        }

        fn allowed(&mut self) -> Attempt {
            match self.breaker.ask(self.now, &mut self.prng) {
                Passage::Allowed(attempt) => attempt,
                Passage::Refused { retry_at } => panic!("refused until {retry_at:?}"),
            }
        }

        fn refused(&mut self) -> Instant {
            match self.breaker.ask(self.now, &mut self.prng) {
                Passage::Allowed(_) => panic!("allowed"),
                Passage::Refused { retry_at } => retry_at,
            }
        }

        fn report(&mut self, attempt: Attempt, outcome: AttemptOutcome) -> Change {
            self.breaker.report(self.now, attempt, outcome, &mut self.prng)
        }

        fn attempt(&mut self, outcome: AttemptOutcome) -> Change {
            let attempt = self.allowed();
            self.report(attempt, outcome)
        }

        fn open(&mut self) -> Instant {
            loop {
                if let Change::Opened { until } = self.attempt(AttemptOutcome::Failed) {
                    return until;
                }
            }
        }
    }

    #[test]
    fn configurations_that_never_open_or_never_close_are_refused() {
        let refusal = |config: BreakerConfig| Breaker::new(config).err();
        let zero = |field| Some(BreakerConfigError::NotPositive { field });
        assert_eq!(refusal(BreakerConfig { failures: 0, ..CONFIG }), zero("failures"));
        assert_eq!(refusal(BreakerConfig { window: Duration::ZERO, ..CONFIG }), zero("window"));
        assert_eq!(refusal(BreakerConfig { open_for: Duration::ZERO, ..CONFIG }), zero("open_for"));
        assert_eq!(refusal(BreakerConfig { probes: 0, ..CONFIG }), zero("probes"));
        assert_eq!(refusal(BreakerConfig { probe_timeout: Duration::ZERO, ..CONFIG }), zero("probe_timeout"));
        let error = BreakerConfigError::TooManyFailures { failures: 1025 };
        assert_eq!(refusal(BreakerConfig { failures: 1025, ..CONFIG }), Some(error));
    }

    #[test]
    fn only_failures_within_the_window_and_in_a_row_open_it() {
        let mut bench = Bench::new(CONFIG);
        for _ in 0..20 {
            assert_eq!(bench.attempt(AttemptOutcome::Failed), Change::None);
            bench.now = bench.now + Duration::from_millis(5_001);
        }
        for _ in 0..20 {
            assert_eq!(bench.attempt(AttemptOutcome::Failed), Change::None);
            assert_eq!(bench.attempt(AttemptOutcome::Worked), Change::None);
        }
        assert_eq!(bench.attempt(AttemptOutcome::Failed), Change::None);
        assert_eq!(bench.attempt(AttemptOutcome::Failed), Change::None);
        assert!(matches!(bench.attempt(AttemptOutcome::Failed), Change::Opened { .. }));
    }

    #[test]
    fn busy_answers_and_abandoned_attempts_never_open_it() {
        let mut bench = Bench::new(CONFIG);
        for _ in 0..1000 {
            assert_eq!(bench.attempt(AttemptOutcome::Busy), Change::None);
            assert_eq!(bench.attempt(AttemptOutcome::Abandoned), Change::None);
        }
        assert_eq!(bench.breaker.state(), BreakerState::Closed { failures: 0 });
    }

    #[test]
    fn one_probe_at_a_time_and_so_many_as_configured() {
        let mut bench = Bench::new(CONFIG);
        let until = bench.open();
        assert_eq!(bench.refused(), until);
        bench.now = until;
        let probe = bench.allowed();
        assert_eq!(bench.refused(), until + CONFIG.probe_timeout, "others wait for the probe");
        assert_eq!(bench.report(probe, AttemptOutcome::Worked), Change::ProbeFree);
        let probe = bench.allowed();
        assert_eq!(bench.report(probe, AttemptOutcome::Abandoned), Change::ProbeFree);
        assert_eq!(bench.breaker.state(), BreakerState::HalfOpen { worked: 1, is_probing: false });
        assert_eq!(bench.attempt(AttemptOutcome::Busy), Change::Closed, "busy is alive");
        let (_first, _second) = (bench.allowed(), bench.allowed());
    }

    #[test]
    fn a_failed_probe_opens_it_again() {
        let mut bench = Bench::new(CONFIG);
        bench.now = bench.open();
        let Change::Opened { until } = bench.attempt(AttemptOutcome::Failed) else {
            panic!("still half open")
        };
        assert_eq!(bench.refused(), until);
    }

    #[test]
    fn a_probe_that_is_never_reported_does_not_hold_it_for_ever() {
        let mut bench = Bench::new(CONFIG);
        bench.now = bench.open();
        let lost = bench.allowed();
        bench.now = bench.now + CONFIG.probe_timeout;
        bench.now = bench.refused();
        let probe = bench.allowed();
        assert_eq!(
            bench.report(lost, AttemptOutcome::Failed),
            Change::None,
            "it is too late for the lost one"
        );
        assert_eq!(bench.report(probe, AttemptOutcome::Worked), Change::ProbeFree);
    }

    #[test]
    fn attempts_from_before_it_opened_say_nothing_about_the_probe() {
        let mut bench = Bench::new(CONFIG);
        let (early, late) = (bench.allowed(), bench.allowed());
        bench.now = bench.open();
        let probe = bench.allowed();
        assert_eq!(bench.report(early, AttemptOutcome::Failed), Change::None);
        assert_eq!(bench.report(late, AttemptOutcome::Worked), Change::None);
        assert_eq!(bench.report(probe, AttemptOutcome::Worked), Change::ProbeFree);
        assert_eq!(bench.breaker.reset(), Change::Closed);
    }

    proptest! {
        #[test]
        fn at_most_one_probe_is_out_and_every_refusal_ends(
            seed: u64,
            steps in prop::collection::vec((0u8..5, any::<usize>(), 0u64..2_000), 1..300),
        ) {
            let mut bench = Bench { prng: Prng::new(seed), ..Bench::new(CONFIG) };
            let mut attempts: Vec<Attempt> = Vec::new();
            for (step, pick, pause_ms) in steps {
                bench.now = bench.now + MS * u32::try_from(pause_ms).unwrap();
                let outcome = match step {
                    0 => AttemptOutcome::Worked,
                    1 => AttemptOutcome::Failed,
                    2 => AttemptOutcome::Abandoned,
                    3 => AttemptOutcome::Busy,
                    _ => {
                        match bench.breaker.ask(bench.now, &mut bench.prng) {
                            Passage::Allowed(attempt) => attempts.push(attempt),
                            Passage::Refused { retry_at } => {
                                prop_assert!(retry_at > bench.now, "asking again at once would spin");
                                prop_assert!(retry_at <= bench.now + CONFIG.probe_timeout.max(CONFIG.open_for));
                            }
                        }
                        continue;
                    }
                };
                if !attempts.is_empty() {
                    let attempt = attempts.swap_remove(pick % attempts.len());
                    let change = bench.report(attempt, outcome);
                    if let Change::Opened { until } = change {
                        prop_assert!(outcome == AttemptOutcome::Failed);
                        let open_for = until.since(bench.now);
                        prop_assert!(open_for >= CONFIG.open_for / 2 && open_for <= CONFIG.open_for);
                    }
                }
                if let BreakerState::HalfOpen { is_probing, .. } = bench.breaker.state() {
                    let out = attempts.iter().filter(|attempt| attempt.epoch == bench.breaker.epoch).count();
                    prop_assert_eq!(out, usize::from(is_probing));
                }
            }
        }
    }
}
