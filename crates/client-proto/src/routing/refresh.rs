//! When the slot map is asked for.
//!
//! Owns the single flight, the pause between two refreshes, their jitter. Does not own whom to ask.
//!
//! ```text
//!   Idle --request--> Due(at) --poll_begin--> Running --finished--> Idle, or Due if there is reason to ask again
//! ```

use std::time::Duration;

use towline_sansio::{Instant, Prng};

/// Times of a [`Refresh`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefreshConfig {
    /// The least time from the beginning of one refresh to that of the next. Default 1 s: a thousand slots that move in
    /// turn cost each client one refresh a second, and their redirects have patched the map meanwhile.
    pub pause_min: Duration,
    /// How long a refresh may be put off that is asked for by a redirect, which has patched the map already; drawn anew
    /// each time, so that many clients do not ask at once. Default 250 ms.
    pub redirected_jitter: Duration,
    /// The same when something cannot be reached or served. Default 20 ms.
    pub urgent_jitter: Duration,
    /// The map is asked for after this time in any case, and not more often than `pause_min`; `Duration::MAX`: never. Default 60 s: a node that was added
    /// without slots, or a replica that has gone, is noticed within a minute.
    pub interval: Duration,
}

impl Default for RefreshConfig {
    fn default() -> Self {
        Self {
            pause_min: Duration::from_secs(1),
            redirected_jitter: Duration::from_millis(250),
            urgent_jitter: Duration::from_millis(20),
            interval: Duration::from_secs(60),
        }
    }
}

/// Why the map is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefreshCause {
    /// A redirect has shown that it is old.
    Redirected,
    /// A node cannot be reached, or cannot serve what it should; or there is no map yet.
    Urgent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Due(Instant),
    Running {
        /// Asked for again meanwhile.
        again: Option<RefreshCause>,
    },
}

/// The one refresh of a client.
#[derive(Debug)]
pub struct Refresh {
    config: RefreshConfig,
    state: State,
    begun_at: Option<Instant>,
    finished_at: Instant,
    begun: u64,
    /// A refresh is due at this time in any case.
    early: Option<Instant>,
}

impl Refresh {
    /// No refresh is due; [`Refresh::request`] asks for the first.
    pub const fn new(now: Instant, config: RefreshConfig) -> Self {
        Self { config, state: State::Idle, begun_at: None, finished_at: now, begun: 0, early: None }
    }

    /// How many refreshes were begun.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Something may have changed.
    pub fn request(&mut self, now: Instant, cause: RefreshCause, prng: &mut Prng) {
        match self.state {
            State::Running { again } => self.state = State::Running { again: again.max(Some(cause)) },
            State::Idle => self.state = State::Due(self.due(now, cause, prng)),
            State::Due(known) if cause == RefreshCause::Urgent => {
                self.state = State::Due(known.min(self.due(now, cause, prng)));
            }
            State::Due(_) => {}
        }
    }

    fn due(&self, now: Instant, cause: RefreshCause, prng: &mut Prng) -> Instant {
        let jitter = match cause {
            RefreshCause::Redirected => self.config.redirected_jitter,
            RefreshCause::Urgent => self.config.urgent_jitter,
        };
        let nanos = u64::try_from(jitter.as_nanos()).unwrap_or(u64::MAX);
        let earliest = self.begun_at.map_or(now, |begun| now.max(begun + self.config.pause_min));
        // The very first one has nobody to keep company with.
        if self.begun_at.is_none() {
            now
        } else {
            earliest + Duration::from_nanos(prng.below(nanos.saturating_add(1)))
        }
    }

    /// When [`Refresh::poll_begin`] will say yes.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Due(at) => Some(at.min(self.periodic())),
            State::Idle if self.config.interval < Duration::MAX || self.early.is_some() => {
                Some(self.periodic())
            }
            State::Idle | State::Running { .. } => None,
        }
    }

    fn periodic(&self) -> Instant {
        let at = self.finished_at + self.config.interval.max(self.config.pause_min);
        self.early.map_or(at, |early| early.min(at))
    }

    /// The next refresh is due at this time at the latest, but not before the pause is over.
    pub fn no_later_than(&mut self, at: Instant) {
        let at = self.begun_at.map_or(at, |begun| at.max(begun + self.config.pause_min));
        self.early = Some(self.early.map_or(at, |early| early.min(at)));
    }

    /// Whether to begin now. Followed by [`Refresh::finished`].
    pub fn poll_begin(&mut self, now: Instant) -> bool {
        let is_due = self.poll_timeout().is_some_and(|at| at <= now);
        if is_due {
            self.state = State::Running { again: None };
            self.early = None;
            self.begun_at = Some(now);
            self.begun += 1;
        }
        is_due
    }

    /// A refresh has ended. Without a map (`has_map` is false) the next follows after the pause.
    pub fn finished(&mut self, now: Instant, has_map: bool, prng: &mut Prng) {
        let State::Running { again } = self.state else { return };
        self.finished_at = now;
        let again = if has_map { again } else { Some(RefreshCause::Urgent) };
        self.state = match again {
            Some(cause) => State::Due(self.due(now, cause, prng)),
            None => State::Idle,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Pain 9: a thousand redirects in a second are two refreshes.
    #[test]
    fn any_number_of_redirects_costs_one_refresh_a_second() {
        let mut prng = Prng::new(1);
        let mut refresh = Refresh::new(at(0), RefreshConfig::default());
        let mut begun = Vec::new();
        for millis in 0..5000 {
            refresh.request(at(millis), RefreshCause::Redirected, &mut prng);
            if refresh.poll_begin(at(millis)) {
                begun.push(millis);
                refresh.finished(at(millis + 1), true, &mut prng);
            }
        }
        assert!((4..=5).contains(&begun.len()), "{begun:?}");
        assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= 1000), "{begun:?}");
    }

    #[test]
    fn only_one_is_under_way_and_what_happens_meanwhile_is_not_forgotten() {
        let mut prng = Prng::new(1);
        let mut refresh = Refresh::new(at(0), RefreshConfig::default());
        refresh.request(at(0), RefreshCause::Urgent, &mut prng);
        assert!(refresh.poll_begin(at(0)), "the first one at once");
        refresh.request(at(10), RefreshCause::Urgent, &mut prng);
        assert!(!refresh.poll_begin(at(5000)) && refresh.poll_timeout().is_none());
        refresh.finished(at(100), true, &mut prng);
        let due = refresh.poll_timeout().unwrap();
        assert!(due >= at(1000) && due <= at(1020), "{due:?}");
        assert!(refresh.poll_begin(at(1020)));
        refresh.finished(at(1100), true, &mut prng);
        assert_eq!(refresh.poll_timeout(), Some(at(61_100)), "after a minute in any case");
    }

    #[test]
    fn a_refresh_that_found_nobody_is_followed_by_another() {
        let mut prng = Prng::new(1);
        let config = RefreshConfig { interval: Duration::MAX, ..RefreshConfig::default() };
        let mut refresh = Refresh::new(at(0), config);
        assert_eq!(refresh.poll_timeout(), None);
        refresh.request(at(0), RefreshCause::Urgent, &mut prng);
        assert!(refresh.poll_begin(at(0)));
        refresh.finished(at(3000), false, &mut prng);
        assert!(refresh.poll_timeout().unwrap() <= at(3020));
    }

    #[test]
    fn an_interval_of_nothing_keeps_the_pause() {
        let mut prng = Prng::new(1);
        let config = RefreshConfig { interval: Duration::ZERO, ..RefreshConfig::default() };
        let mut refresh = Refresh::new(at(0), config);
        refresh.request(at(0), RefreshCause::Urgent, &mut prng);
        assert!(refresh.poll_begin(at(0)));
        refresh.finished(at(5), true, &mut prng);
        assert_eq!(refresh.poll_timeout(), Some(at(1005)));
    }

    #[test]
    fn urgent_reasons_do_not_wait_behind_redirects() {
        let mut prng = Prng::new(7);
        let mut refresh = Refresh::new(at(0), RefreshConfig::default());
        refresh.request(at(0), RefreshCause::Urgent, &mut prng);
        assert!(refresh.poll_begin(at(0)));
        refresh.finished(at(1), true, &mut prng);
        refresh.request(at(2000), RefreshCause::Redirected, &mut prng);
        refresh.request(at(2000), RefreshCause::Urgent, &mut prng);
        assert!(refresh.poll_timeout().unwrap() <= at(2020));
    }

    #[test]
    fn a_refresh_may_be_due_early() {
        let mut prng = Prng::new(7);
        let config = RefreshConfig { interval: Duration::MAX, ..RefreshConfig::default() };
        let mut refresh = Refresh::new(at(0), config);
        refresh.request(at(0), RefreshCause::Urgent, &mut prng);
        assert!(refresh.poll_begin(at(0)));
        refresh.finished(at(10), true, &mut prng);
        assert_eq!(refresh.poll_timeout(), None);
        refresh.no_later_than(at(5010));
        refresh.no_later_than(at(9000));
        assert_eq!(refresh.poll_timeout(), Some(at(5010)));
        assert!(refresh.poll_begin(at(5010)));
        refresh.finished(at(5020), true, &mut prng);
        assert_eq!(refresh.poll_timeout(), None, "once");
        refresh.no_later_than(at(5030));
        assert_eq!(refresh.poll_timeout(), Some(at(6010)), "the pause is kept");
    }

    proptest! {
        #[test]
        fn two_refreshes_are_never_closer_than_the_pause(
            steps in prop::collection::vec((0_u64..400, any::<bool>(), any::<bool>()), 0..300), seed: u64,
        ) {
            let mut prng = Prng::new(seed);
            let mut refresh = Refresh::new(at(0), RefreshConfig::default());
            let (mut now, mut last) = (0, None);
            for (pause, is_urgent, has_map) in steps {
                now += pause;
                let cause = if is_urgent { RefreshCause::Urgent } else { RefreshCause::Redirected };
                refresh.request(at(now), cause, &mut prng);
                if is_urgent && pause % 7 == 0 {
                    refresh.no_later_than(at(now));
                }
                if refresh.poll_begin(at(now)) {
                    prop_assert!(last.is_none_or(|last| now - last >= 1000));
                    last = Some(now);
                    refresh.finished(at(now + pause / 2), has_map, &mut prng);
                }
            }
        }
    }
}
