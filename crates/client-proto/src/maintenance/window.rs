//! How long timeouts are relaxed.
//!
//! Owns the windows that announcements open and close, and their ends. Does not own a clock, timers, or any command's
//! deadline: whoever judges deadlines asks for [`Windows::floor`] at that moment.
//!
//! ```text
//!          opener: max(announced, relaxed), at most cap
//! closed ------------------------------------------------> open --cap or announced end--> closed
//!    ^                                                       |
//!    +------------- tail is over ------------- tail <--------+ closer
//! ```
//!
//! Windows of different kinds overlap, and relaxation ends with the last of them. Each has an end of its own, so that a
//! closing announcement that never comes costs [`WindowConfig::cap`] and no more.

use std::time::Duration;

use towline_sansio::Instant;

use super::notification::{Kind, Notification};

/// The lengths of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowConfig {
    /// What a timeout is at least while a window is open, and the shortest window. Default 10 s, which every known
    /// client uses: longer than a failover takes. Zero turns relaxation off.
    pub relaxed: Duration,
    /// Longest window of one announcement, for the case that its end is never announced. Default three times
    /// `relaxed`.
    pub cap: Duration,
    /// How long relaxation lasts after the announced end, while connections and caches recover. Default twice
    /// `relaxed`.
    pub tail: Duration,
}

impl WindowConfig {
    /// The usual proportions for a relaxed timeout.
    pub const fn from_relaxed(relaxed: Duration) -> Self {
        Self { relaxed, cap: relaxed.saturating_mul(3), tail: relaxed.saturating_mul(2) }
    }
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self::from_relaxed(Duration::from_secs(10))
    }
}

/// When an announcement arrived, as seen from its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// While the connection was being set up: the server tells what happened before. What goes on still counts; an
    /// end is remembered and changes nothing, for it may be hours old.
    Handshake,
    /// Later.
    Live,
}

/// What came of an announcement that something begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opened {
    /// A window was opened, or the open one made longer.
    Yes,
    /// It was known: another connection had it, or the server repeated it.
    Replay,
    /// A later announcement has ended what it announces.
    Stale,
    /// Relaxation is off.
    Off,
}

/// What came of an announcement that something has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Closed {
    /// The window was closed; the tail begins.
    Yes,
    /// It was known.
    Replay,
    /// Nothing was open that it could end.
    NothingOpen,
}

/// The windows of one endpoint.
#[derive(Debug, Clone)]
pub struct Windows {
    config: WindowConfig,
    kinds: [State; Kind::ALL.len()],
}

/// What is known of one kind. Numbers have their own mark each: 0 is a number like others.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The end of the window or of its tail.
    until: Option<Instant>,
    is_tail: bool,
    /// The highest number that opened.
    opened: Option<u64>,
    /// The highest number that closed.
    closed: Option<u64>,
}

impl State {
    fn is_open(&self, now: Instant) -> bool {
        !self.is_tail && self.until.is_some_and(|until| now < until)
    }
}

impl Windows {
    /// No window is open.
    pub const fn new(config: WindowConfig) -> Self {
        let closed = State { until: None, is_tail: false, opened: None, closed: None };
        Self { config, kinds: [closed; Kind::ALL.len()] }
    }

    /// The lengths that it was made with.
    pub const fn config(&self) -> &WindowConfig {
        &self.config
    }

    /// Takes any announcement to where it belongs. Whether relaxation was begun, made longer or shortened by it.
    pub fn on_notification(&mut self, now: Instant, notification: &Notification, arrival: Arrival) -> bool {
        let (kind, seq) = (notification.kind(), notification.seq());
        let announced = match notification {
            Notification::Moving(moving) => moving.window,
            Notification::Starting(starting) => starting.starts_in,
            Notification::SlotsMoving(_) => None,
            Notification::Finished(_) | Notification::SlotsMoved(_) => {
                return self.closes(now, kind, seq, arrival) == Closed::Yes;
            }
        };
        self.opens(now, kind, seq, announced) == Opened::Yes
    }

    /// Something begins. The window lasts as long as announced, within the configured bounds, from now on; an open one
    /// is only ever made longer. Without a number nothing is taken for a replay.
    pub fn opens(
        &mut self,
        now: Instant,
        kind: Kind,
        seq: Option<u64>,
        announced: Option<Duration>,
    ) -> Opened {
        if self.config.relaxed.is_zero() {
            return Opened::Off;
        }
        let WindowConfig { relaxed, cap, .. } = self.config;
        let state = self.state(kind);
        if seq.is_some() {
            if seq <= state.closed {
                return Opened::Stale;
            }
            if seq <= state.opened {
                return Opened::Replay;
            }
            state.opened = seq;
        }
        let until = now + announced.unwrap_or(relaxed).min(cap).max(relaxed);
        state.until = state.until.max(Some(until));
        state.is_tail = false;
        Opened::Yes
    }

    /// Something has ended: the tail replaces the rest of the window. Nothing else than an open window is closed, and
    /// not by a number below the one that opened it.
    pub fn closes(&mut self, now: Instant, kind: Kind, seq: Option<u64>, arrival: Arrival) -> Closed {
        let tail = self.config.tail;
        let state = self.state(kind);
        if seq.is_some() {
            if seq <= state.closed {
                return Closed::Replay;
            }
            state.closed = seq;
        }
        let is_older = seq.is_some() && seq < state.opened;
        if arrival == Arrival::Handshake || is_older || !state.is_open(now) {
            return Closed::NothingOpen;
        }
        state.until = Some(now + tail);
        state.is_tail = true;
        Closed::Yes
    }

    /// The end of relaxation as known now; `None` if nothing is relaxed. It may have passed, until
    /// [`Windows::handle_timeout`] is called.
    pub fn relaxed_until(&self) -> Option<Instant> {
        self.kinds.iter().filter_map(|state| state.until).max()
    }

    /// Whether timeouts are relaxed.
    pub fn is_relaxed(&self, now: Instant) -> bool {
        self.relaxed_until().is_some_and(|until| now < until)
    }

    /// The timeout that counts at this moment: the longer of the configured and the relaxed one while a window is
    /// open, the configured one otherwise.
    pub fn floor(&self, now: Instant, configured: Duration) -> Duration {
        if self.is_relaxed(now) { configured.max(self.config.relaxed) } else { configured }
    }

    /// Ends what is over. Whether relaxation ended with it.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        let was_relaxed = self.relaxed_until().is_some();
        for state in &mut self.kinds {
            if state.until.is_some_and(|until| until <= now) {
                state.until = None;
                state.is_tail = false;
            }
        }
        was_relaxed && self.relaxed_until().is_none()
    }

    /// When the next window or tail is over; `None` if there is none.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.kinds.iter().filter_map(|state| state.until).min()
    }

    /// Forgets all numbers, because another server process counts anew. Open windows stay until their end.
    pub fn reset(&mut self) {
        for state in &mut self.kinds {
            state.opened = None;
            state.closed = None;
        }
    }

    fn state(&mut self, kind: Kind) -> &mut State {
        &mut self.kinds[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Arrival::{Handshake, Live};
    use Kind::{Failover, Migration, Moving, SlotMigration};
    use proptest::prelude::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn secs(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    fn windows() -> Windows {
        Windows::new(WindowConfig::default())
    }

    #[test]
    fn a_window_lasts_as_announced_within_its_bounds() {
        for (announced, expected) in [
            (None, 10),
            (secs(0), 10),
            (secs(2), 10),
            (secs(15), 15),
            (secs(30), 30),
            (secs(31), 30),
            (Some(Duration::MAX), 30),
        ] {
            let mut windows = windows();
            assert_eq!(windows.opens(at(5), Migration, Some(1), announced), Opened::Yes);
            assert_eq!(windows.relaxed_until(), Some(at(5 + expected)), "{announced:?}");
            assert!(!windows.handle_timeout(at(4 + expected)));
            assert!(windows.handle_timeout(at(5 + expected)), "no tail after a window that nobody closed");
            assert_eq!((windows.relaxed_until(), windows.poll_timeout()), (None, None));
        }
    }

    #[test]
    fn a_closer_replaces_the_rest_by_the_tail() {
        let mut windows = windows();
        windows.opens(at(0), Failover, Some(7), secs(30));
        assert_eq!(windows.closes(at(1), Failover, Some(9), Live), Closed::Yes);
        assert_eq!(windows.relaxed_until(), Some(at(21)));
        // During the tail: a repeated closer does not prolong it, an opener only ever prolongs.
        assert_eq!(windows.closes(at(2), Failover, Some(9), Live), Closed::Replay);
        assert_eq!(windows.closes(at(2), Failover, Some(10), Live), Closed::NothingOpen);
        assert_eq!(windows.opens(at(3), Failover, Some(11), None), Opened::Yes);
        assert_eq!(windows.relaxed_until(), Some(at(21)));
        assert_eq!(windows.opens(at(15), Failover, Some(12), None), Opened::Yes);
        assert_eq!(windows.relaxed_until(), Some(at(25)));
    }

    #[test]
    fn old_openers_open_nothing_and_replays_do_not_prolong() {
        let mut windows = windows();
        assert_eq!(windows.opens(at(0), SlotMigration, Some(0), None), Opened::Yes);
        assert_eq!(windows.opens(at(5), SlotMigration, Some(0), None), Opened::Replay);
        assert_eq!(windows.relaxed_until(), Some(at(10)));
        assert_eq!(windows.closes(at(6), SlotMigration, Some(5), Live), Closed::Yes);
        windows.handle_timeout(at(26));
        // Read late on another connection.
        assert_eq!(windows.opens(at(27), SlotMigration, Some(4), None), Opened::Stale);
        assert_eq!(windows.opens(at(27), SlotMigration, Some(5), None), Opened::Stale);
        assert_eq!(windows.relaxed_until(), None);
        // Numbers of one kind say nothing about another.
        assert_eq!(windows.opens(at(27), Migration, Some(4), None), Opened::Yes);
    }

    #[test]
    fn a_late_closer_does_not_close_what_opened_after_it() {
        let mut windows = windows();
        windows.opens(at(0), Migration, Some(7), secs(30));
        assert_eq!(windows.closes(at(1), Migration, Some(5), Live), Closed::NothingOpen);
        assert_eq!(windows.relaxed_until(), Some(at(30)));
        assert_eq!(windows.closes(at(2), Migration, Some(8), Live), Closed::Yes);
    }

    #[test]
    fn what_a_server_tells_a_new_connection_about_the_past_opens_nothing() {
        let mut windows = windows();
        assert_eq!(windows.closes(at(0), Migration, Some(5), Handshake), Closed::NothingOpen);
        assert_eq!(windows.closes(at(0), Failover, Some(5), Live), Closed::NothingOpen);
        assert_eq!(windows.closes(at(0), Failover, None, Live), Closed::NothingOpen);
        assert_eq!(windows.relaxed_until(), None);
        // Nor does it close what another connection has open, if it has no number.
        windows.opens(at(0), Migration, Some(6), None);
        assert_eq!(windows.closes(at(1), Migration, None, Handshake), Closed::NothingOpen);
        assert_eq!(windows.relaxed_until(), Some(at(10)));
    }

    #[test]
    fn without_numbers_everything_counts() {
        let mut windows = windows();
        assert_eq!(windows.opens(at(0), Migration, None, None), Opened::Yes);
        assert_eq!(windows.opens(at(5), Migration, None, None), Opened::Yes);
        assert_eq!(windows.relaxed_until(), Some(at(15)));
        assert_eq!(windows.closes(at(6), Migration, None, Live), Closed::Yes);
        assert_eq!(windows.relaxed_until(), Some(at(26)));
    }

    #[test]
    fn relaxation_ends_with_the_last_of_overlapping_windows() {
        let mut windows = windows();
        windows.opens(at(0), Moving, Some(1), secs(15));
        windows.opens(at(1), Migration, Some(2), None);
        windows.opens(at(2), Failover, Some(3), None);
        assert_eq!((windows.poll_timeout(), windows.relaxed_until()), (Some(at(11)), Some(at(15))));
        windows.closes(at(3), Migration, Some(4), Live);
        assert_eq!((windows.poll_timeout(), windows.relaxed_until()), (Some(at(12)), Some(at(23))));
        for (time, ends) in [(12, false), (15, false), (22, false), (23, true), (24, false)] {
            assert_eq!(windows.handle_timeout(at(time)), ends, "at {time}");
        }
    }

    #[test]
    fn a_configured_timeout_is_never_lowered_and_is_exact_again_at_the_end() {
        let mut windows = windows();
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(60));
        assert_eq!(windows.floor(at(0), short), short);
        windows.opens(at(0), Moving, Some(1), None);
        assert_eq!(windows.floor(at(0), short), Duration::from_secs(10));
        assert_eq!(windows.floor(at(0), long), long);
        // Exact also if nobody has called `handle_timeout`.
        assert_eq!(windows.floor(at(10), short), short);
    }

    #[test]
    fn relaxation_can_be_turned_off() {
        let mut windows = Windows::new(WindowConfig::from_relaxed(Duration::ZERO));
        assert_eq!(windows.opens(at(0), Moving, Some(1), secs(15)), Opened::Off);
        assert_eq!(windows.floor(at(0), Duration::from_millis(5)), Duration::from_millis(5));
    }

    #[test]
    fn after_a_restart_numbers_begin_anew() {
        let mut windows = windows();
        windows.opens(at(0), Migration, Some(100), None);
        windows.closes(at(1), Migration, Some(101), Live);
        assert_eq!(windows.opens(at(2), Migration, Some(1), None), Opened::Stale);
        windows.reset();
        assert_eq!(windows.opens(at(2), Migration, Some(1), None), Opened::Yes);
        assert_eq!(windows.closes(at(3), Migration, Some(2), Live), Closed::Yes);
    }

    #[test]
    fn announcements_find_their_window() {
        use crate::maintenance::{Finished, Moving, ShardEvent, SlotsMoved, SlotsMoving, Starting};
        let mut windows = windows();
        let moving = Moving { seq: Some(1), window: secs(15), successor: None };
        assert!(windows.on_notification(at(0), &Notification::Moving(moving.clone()), Handshake));
        assert!(!windows.on_notification(at(1), &Notification::Moving(moving), Live));
        let event = ShardEvent::Failover;
        let starting = Starting { event, seq: Some(1), starts_in: secs(2), shards: "".into() };
        assert!(windows.on_notification(at(1), &Notification::Starting(starting), Live));
        assert_eq!(windows.poll_timeout(), Some(at(11)));
        let finished = Finished { event, seq: Some(2), shards: "".into() };
        assert!(windows.on_notification(at(2), &Notification::Finished(finished), Live));
        assert_eq!(windows.relaxed_until(), Some(at(22)));
        let slots = SlotsMoving { seq: Some(3), slots: vec![] };
        assert!(windows.on_notification(at(3), &Notification::SlotsMoving(slots), Live));
        let moved = SlotsMoved { seq: Some(4), moves: vec![], is_complete: false };
        assert!(windows.on_notification(at(5), &Notification::SlotsMoved(moved), Live));
        assert_eq!(windows.relaxed_until(), Some(at(25)));
    }

    proptest! {
        #[test]
        fn relaxation_has_an_end_within_the_longest_window(
            steps in prop::collection::vec((0usize..4, prop::option::of(0u64..6), 0u64..40, any::<bool>(), 0u64..12), 0..60)
        ) {
            let mut windows = windows();
            let mut now = Instant::ZERO;
            for (kind, seq, announced, is_opener, passed) in steps {
                now = now + Duration::from_secs(passed);
                let before = windows.relaxed_until();
                windows.handle_timeout(now);
                prop_assert!(windows.poll_timeout().is_none_or(|at| at > now));
                prop_assert_eq!(windows.relaxed_until().is_some(), before.is_some_and(|until| until > now));
                if is_opener {
                    windows.opens(now, Kind::ALL[kind], seq, secs(announced));
                } else {
                    windows.closes(now, Kind::ALL[kind], seq, Live);
                }
                prop_assert!(windows.relaxed_until().is_none_or(|until| until <= now + Duration::from_secs(30)));
                prop_assert!(windows.floor(now, Duration::from_secs(11)) == Duration::from_secs(11));
            }
        }
    }
}
