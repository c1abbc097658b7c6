mod announcements;
mod scenarios;

use super::*;
use crate::maintenance::Address;
use std::net::SocketAddr;

const A: &str = "10.0.0.1:6379";
const B: &str = "10.0.0.2:6379";
const C: &str = "10.0.0.3:6379";
const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn moving(seq: impl Into<Option<u64>>, seconds: u64, successor: &str) -> Moving {
    let window = (seconds > 0).then(|| Duration::from_secs(seconds));
    Moving { seq: seq.into(), window, successor: Address::parse(successor.as_bytes()) }
}

fn peer(text: &str) -> Option<SocketAddr> {
    text.parse().ok()
}

fn named(text: &str) -> Target {
    Target::Named(Address::parse(text.as_bytes()).unwrap())
}

/// A busy connection; the configured address is a name.
fn source(generation: u64, peer_text: &str) -> Source {
    Source {
        generation: Generation(generation),
        peer: peer(peer_text),
        client_id: Some(100),
        configured_is_name: true,
        is_idle: false,
    }
}

fn facts(peer_text: &str) -> Facts {
    Facts { peer: peer(peer_text), client_id: Some(200), replayed: false }
}

/// The machine with its generator.
struct Rig {
    machine: Handoff,
    prng: Prng,
}

impl Rig {
    fn new() -> Self {
        Self::with(HandoffConfig::default(), 1)
    }

    fn with(config: HandoffConfig, seed: u64) -> Self {
        Self { machine: Handoff::new(config), prng: Prng::new(seed) }
    }

    fn moving(&mut self, millis: u64, moving: &Moving, from: Source) -> Taken {
        self.machine.on_moving(at(millis), moving, from, &mut self.prng)
    }

    fn steps(&mut self, millis: u64) -> Vec<Step> {
        std::iter::from_fn(|| self.machine.poll(at(millis))).collect()
    }

    /// Everything that is to be done at this moment, as one text.
    fn text(&mut self, millis: u64) -> String {
        let one = |step: Step| match step {
            Step::Dial { target: Target::Configured } => "dial configured".to_owned(),
            Step::Dial { target: Target::Named(address) } => format!("dial {address}"),
            Step::AbandonDial => "abandon".to_owned(),
            Step::Recycle { hold_max } => format!("recycle {}", hold_max.as_millis()),
            Step::Retire => "retire".to_owned(),
            Step::Ended(ended) => format!("ended {:?}", ended.outcome),
        };
        self.steps(millis).into_iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn failed(&mut self, millis: u64) {
        self.machine.on_dial_failed(at(millis), &mut self.prng);
    }

    fn ready(&mut self, millis: u64, facts: Facts) -> Judgement {
        self.machine.on_ready(at(millis), facts, &mut self.prng)
    }

    /// The milliseconds until the next poll.
    fn timeout(&self) -> Option<u64> {
        self.machine.poll_timeout().map(|at| at.nanos() / 1_000_000)
    }

    fn phase(&self) -> Phase {
        self.machine.phase()
    }

    /// Announced at 0 with a window of 15 s and dialled.
    fn preparing(successor: &str) -> Self {
        let mut rig = Self::new();
        assert_eq!(rig.moving(0, &moving(7, 15, successor), source(1, A)), Taken::Begun);
        assert!(rig.text(if successor.is_empty() { 7500 } else { 0 }).starts_with("dial"));
        rig
    }

    /// Moved to B as generation 2 at 10 ms, not drained.
    fn draining() -> Self {
        let mut rig = Self::preparing(B);
        assert_eq!(rig.ready(10, facts(B)), Judgement::CutOver);
        rig.machine.on_cut_over(at(10), Generation(2));
        assert_eq!(rig.phase(), Phase::Draining);
        rig
    }

    /// Nothing worked until nine tenths of the window.
    fn recycling() -> Self {
        let mut rig = Self::preparing(B);
        assert_eq!(rig.text(13_500), "abandon, recycle 1500");
        rig
    }
}

#[test]
fn a_busy_connection_dials_the_named_successor_at_once_and_moves() {
    let mut rig = Rig::new();
    assert_eq!(rig.moving(0, &moving(7, 15, B), source(1, A)), Taken::Begun);
    assert_eq!((rig.phase(), rig.timeout()), (Phase::Waiting, Some(0)));
    assert_eq!(rig.text(0), format!("dial {B}"));
    assert_eq!((rig.phase(), rig.timeout()), (Phase::Preparing, Some(13_500)));
    assert_eq!(rig.ready(3, facts(B)), Judgement::CutOver);
    assert_eq!(rig.phase(), Phase::Ready);
    rig.machine.on_cut_over(at(3), Generation(2));
    assert_eq!((rig.phase(), rig.timeout()), (Phase::Draining, Some(25_000)));
    rig.machine.on_drained(at(5));
    let steps = rig.steps(5);
    let times = Times {
        received_at: at(0),
        dialled_at: Some(at(0)),
        ready_at: Some(at(3)),
        cut_over_at: Some(at(3)),
        ended_at: Some(at(5)),
    };
    let ended = Ended {
        outcome: Outcome::Moved,
        seq: Some(7),
        successor: Address::parse(B.as_bytes()),
        from: Generation(1),
        to: Some(Generation(2)),
        retargets: 0,
        dials: 1,
        times,
    };
    assert_eq!(steps, [Step::Ended(ended)]);
    assert_eq!((rig.phase(), rig.timeout()), (Phase::Serving, None));
    let counters = rig.machine.counters();
    assert_eq!((counters.announced, counters.begun, counters.dials, counters.moved), (1, 1, 1, 1));
}

#[test]
fn idle_connections_dial_at_moments_spread_over_a_fifth_of_the_window() {
    for (successor, from, to) in [(B, 0, 3000), ("", 7500, 10_500)] {
        let mut fifths = [0; 5];
        for seed in 0..200 {
            let mut rig = Rig::with(HandoffConfig::default(), seed);
            let idle = Source { is_idle: true, ..source(1, A) };
            rig.moving(0, &moving(7, 15, successor), idle);
            let dial_at = rig.timeout().unwrap();
            assert!((from..=to).contains(&dial_at), "{dial_at}");
            fifths[(((dial_at - from) / 600) as usize).min(4)] += 1;
        }
        assert!(fifths.iter().all(|count| (20..=60).contains(count)), "{fifths:?}");
    }
}

#[test]
fn a_refused_successor_is_retried_soon_and_in_turn_with_the_configured_address() {
    let mut rig = Rig::preparing(B);
    let mut now = 0;
    let mut targets = vec!["dial B".to_owned()];
    while targets.len() < 8 {
        rig.failed(now);
        assert_eq!(rig.phase(), Phase::Waiting);
        let next = rig.timeout().unwrap();
        assert!(next >= now && next <= now + 100, "from {now} to {next}");
        now = next + 1;
        targets.push(rig.text(now).replace(B, "B"));
    }
    let (b, configured) = ("dial B", "dial configured");
    assert_eq!(targets, [b, b, configured, b, configured, b, configured, b]);
    assert_eq!(rig.machine.counters().dials_failed, 7);
}

#[test]
fn delays_between_refused_dials_are_never_zero_and_never_above_their_ceiling() {
    for seed in 0..50 {
        let mut rig = Rig::with(HandoffConfig::default(), seed);
        rig.moving(0, &moving(7, 120, B), source(1, A));
        let mut now = at(0);
        for ceiling in [25, 50, 100, 100, 100, 100] {
            assert!(matches!(rig.machine.poll(now), Some(Step::Dial { .. })));
            rig.machine.on_dial_failed(now, &mut rig.prng);
            let next = rig.machine.poll_timeout().unwrap();
            let delay = next.since(now);
            assert!(delay >= ceiling * MS / 2 && delay <= ceiling * MS, "{delay:?} of {ceiling} ms");
            assert_eq!(rig.machine.poll(now), None);
            now = next;
        }
    }
}

#[test]
fn the_fallback_does_not_move_to_the_node_that_is_left() {
    let mut rig = Rig::preparing(B);
    rig.failed(0);
    assert_eq!(rig.text(100), format!("dial {B}"));
    rig.failed(100);
    assert_eq!(rig.text(200), "dial configured");
    assert_eq!(rig.ready(201, facts(A)), Judgement::SameNode);
    // The configured address is left alone for a second.
    for now in [400, 600, 800] {
        assert_eq!(rig.text(now), format!("dial {B}"));
        rig.failed(now);
    }
    assert_eq!(rig.text(1300), "dial configured");
    // It leads elsewhere now.
    assert_eq!(rig.ready(1301, facts(C)), Judgement::CutOver);
    assert_eq!(rig.machine.counters().same_node, 1);
}

#[test]
fn a_successor_that_stays_away_leads_to_a_recycle_at_nine_tenths_of_the_window() {
    // Refused all along.
    let mut rig = Rig::preparing(B);
    let mut now = 0;
    let text = loop {
        rig.failed(now);
        now = rig.timeout().unwrap() + 1;
        let text = rig.text(now);
        if !text.starts_with("dial") {
            break text;
        }
    };
    assert!((13_500..13_510).contains(&now), "{now}");
    assert!(text.starts_with("recycle 1"), "{text}");
    assert_eq!(rig.phase(), Phase::Recycling);
    // Or a dial that hangs.
    let mut rig = Rig::recycling();
    assert_eq!(rig.machine.reconnect_target(at(13_500)), Target::Configured, "not first to what hung");
    assert_eq!(rig.ready(13_600, facts(B)), Judgement::NotWanted);
    rig.machine.on_source_lost(at(13_700));
    assert_eq!(rig.text(13_700), "ended Recycled");
    assert!(rig.machine.planned_left(at(20_000)).is_some());
}

#[test]
fn the_hold_of_a_recycle_has_three_bounds() {
    for (window, relaxed, expected) in
        [(15, 10, 1500), (120, 10, 5000), (5, 10, 1000), (120, 0, 1000), (60, 4, 2000)]
    {
        let config = HandoffConfig { relaxed: Duration::from_secs(relaxed), ..HandoffConfig::default() };
        let mut rig = Rig::with(config, 1);
        rig.moving(0, &moving(7, window, B), source(1, A));
        rig.steps(0);
        assert_eq!(rig.text(window * 900), format!("abandon, recycle {expected}"));
    }
}

#[test]
fn a_recycle_that_nobody_carries_out_ends_with_the_window() {
    let mut rig = Rig::recycling();
    assert_eq!(rig.timeout(), Some(16_000));
    assert_eq!(rig.text(15_999), "");
    assert_eq!(rig.text(16_000), "ended MissedWindow");
    // One that ends by a new connection is a recycle, whoever forgot to say that the old one was lost.
    let mut rig = Rig::recycling();
    rig.machine.on_reconnected(at(14_000), source(2, B));
    assert_eq!(rig.text(14_000), "ended Recycled");
}

#[test]
fn without_a_successor_the_configured_address_is_dialled_at_half_of_the_window() {
    let mut rig = Rig::new();
    rig.moving(1000, &moving(7, 15, ""), source(1, A));
    assert_eq!(rig.text(8499), "");
    assert_eq!(rig.timeout(), Some(8500));
    assert_eq!(rig.text(8500), "dial configured");
    assert_eq!(rig.ready(8501, facts(B)), Judgement::CutOver);
}

#[test]
fn lagging_names_are_asked_again_until_the_last_try_is_accepted() {
    let mut rig = Rig::preparing("");
    let mut tries = vec![7500];
    while rig.ready(*tries.last().unwrap(), facts(A)) == Judgement::SameNode {
        let next = rig.timeout().unwrap();
        assert_eq!(rig.text(next + 1), "dial configured");
        tries.push(next + 1);
    }
    assert_eq!(tries[1], 8501, "the second after one second");
    assert!(tries[1..].windows(2).all(|pair| (100..=1501).contains(&(pair[1] - pair[0]))), "{tries:?}");
    assert_eq!(*tries.last().unwrap(), 13_501, "the last at nine tenths");
    assert_eq!(rig.machine.counters().same_node as usize, tries.len() - 1);
}

#[test]
fn a_name_that_leads_elsewhere_in_time_is_followed() {
    let mut rig = Rig::preparing("");
    assert_eq!(rig.ready(7501, facts(A)), Judgement::SameNode);
    assert_eq!(rig.phase(), Phase::Waiting);
    assert_eq!(rig.text(8501), "dial configured");
    assert_eq!(rig.ready(8502, facts(B)), Judgement::CutOver);
}

#[test]
fn who_is_the_same_node() {
    let known = |peer_text, client_id, replayed| Facts { peer: peer(peer_text), client_id, replayed };
    // The configured address is a name, the peer of the old connection and what is known of the new one.
    let table = [
        (true, A, known(A, Some(101), false), Judgement::SameNode),
        (true, A, known(A, Some(101), true), Judgement::SameNode),
        (true, A, known(A, None, false), Judgement::SameNode),
        // Another process behind the same address counts from the start.
        (true, A, known(A, Some(3), false), Judgement::CutOver),
        (true, A, known(A, Some(100), false), Judgement::CutOver),
        (true, A, known(B, Some(101), false), Judgement::CutOver),
        // The repeated announcement is a hint, no proof.
        (true, A, known(B, Some(101), true), Judgement::CutOver),
        (true, "", known("", Some(101), false), Judgement::CutOver),
        (true, "", known("", Some(101), true), Judgement::SameNode),
        (true, "", known("", Some(3), true), Judgement::CutOver),
        (true, "", known("", None, true), Judgement::CutOver),
        // An IP address leads where it leads.
        (false, A, known(A, Some(101), true), Judgement::CutOver),
    ];
    for (configured_is_name, old, new, expected) in table {
        let mut rig = Rig::new();
        rig.moving(0, &moving(7, 15, ""), Source { configured_is_name, ..source(1, old) });
        assert_eq!(rig.text(7500), "dial configured");
        assert_eq!(rig.ready(7501, new), expected, "{configured_is_name} {old} {new:?}");
    }
    // A named successor is accepted whatever it is, also where the connection is now.
    let mut rig = Rig::preparing(A);
    assert_eq!(rig.ready(1, known(A, Some(101), true)), Judgement::CutOver);
}

#[test]
fn a_last_try_that_fails_or_hangs_leads_to_a_recycle() {
    let mut rig = Rig::preparing("");
    assert_eq!(rig.ready(7501, facts(A)), Judgement::SameNode);
    rig.text(13_400);
    rig.failed(13_495);
    assert_eq!(rig.timeout(), Some(13_500));
    assert_eq!(rig.text(13_500), "dial configured");
    let mut hangs = Rig { machine: rig.machine.clone(), prng: rig.prng.clone() };
    rig.failed(13_501);
    assert_eq!(rig.text(13_501), "recycle 1499");
    assert_eq!(hangs.timeout(), Some(14_250));
    assert_eq!(hangs.text(14_250), "abandon, recycle 1000");
}

#[test]
fn the_window_has_a_default_and_bounds() {
    for (window, expected) in [
        (None, 10_000),
        (Some(Duration::ZERO), 1000),
        (Some(500 * MS), 1000),
        (Some(Duration::from_secs(15)), 15_000),
        (Some(Duration::MAX), 120_000),
    ] {
        let mut rig = Rig::new();
        rig.moving(0, &Moving { seq: Some(1), window, successor: None }, source(1, A));
        assert_eq!(rig.timeout(), Some(expected / 2), "{window:?}");
    }
}

#[test]
fn a_lost_source_ends_what_is_prepared() {
    let mut rig = Rig::new();
    rig.moving(0, &moving(7, 15, ""), source(1, A));
    rig.machine.on_source_lost(at(100));
    assert_eq!(rig.text(100), "ended SourceLost");

    let mut rig = Rig::preparing(B);
    rig.machine.on_source_lost(at(100));
    assert_eq!(rig.text(100), "abandon, ended SourceLost");
    assert_eq!(rig.machine.reconnect_target(at(100)), named(B));
    assert!(rig.machine.planned_left(at(100)).is_some());
    // The connection that follows is at the successor already.
    rig.machine.on_reconnected(at(110), source(2, B));
    assert_eq!(rig.moving(111, &moving(7, 14, B), source(2, B)), Taken::Duplicate);

    // Accepted and not serving yet: there is nothing to drain.
    let mut rig = Rig::preparing(B);
    rig.ready(100, facts(B));
    rig.machine.on_source_lost(at(100));
    rig.machine.on_cut_over(at(101), Generation(2));
    assert_eq!(rig.text(101), "ended Moved");
}

#[test]
fn a_connection_that_landed_on_the_old_node_after_a_loss_moves_by_its_own_copy() {
    let mut rig = Rig::new();
    rig.moving(0, &moving(7, 15, ""), source(1, A));
    rig.machine.on_source_lost(at(1000));
    rig.steps(1000);
    rig.machine.on_reconnected(at(1010), source(2, A));
    assert_eq!(rig.moving(1011, &moving(7, 14, ""), source(2, A)), Taken::Begun);
    // Elsewhere it is over.
    let mut rig = Rig::new();
    rig.moving(0, &moving(7, 15, ""), source(1, A));
    rig.machine.on_source_lost(at(1000));
    rig.steps(1000);
    rig.machine.on_reconnected(at(1010), source(2, B));
    assert_eq!(rig.moving(1011, &moving(7, 14, ""), source(2, B)), Taken::Duplicate);
    // Back from a successor that was lost after the move.
    let mut rig = Rig::draining();
    rig.machine.on_drained(at(20));
    rig.steps(20);
    rig.failed(30);
    rig.machine.on_reconnected(at(40), source(3, A));
    assert_eq!(rig.moving(41, &moving(7, 14, B), source(3, A)), Taken::Begun);
    // After a recycle it was tried enough, however that was reported.
    for tells_loss in [true, false] {
        let mut rig = Rig::recycling();
        if tells_loss {
            rig.machine.on_source_lost(at(13_510));
        }
        rig.machine.on_reconnected(at(13_520), source(2, A));
        assert_eq!(rig.moving(13_521, &moving(7, 1, B), source(2, A)), Taken::Duplicate);
    }
}

#[test]
fn what_worked_last_is_where_an_ordinary_dial_goes_first() {
    let mut rig = Rig::preparing(B);
    rig.failed(0);
    assert_eq!(rig.machine.reconnect_target(at(0)), Target::Configured);
    assert_eq!(rig.text(100), format!("dial {B}"));
    rig.ready(100, facts(B));
    rig.machine.on_cut_over(at(100), Generation(2));
    assert_eq!(rig.machine.reconnect_target(at(100)), named(B));
}

#[test]
fn a_lost_successor_is_a_failed_dial_before_the_cut_over_and_an_end_after_it() {
    let mut rig = Rig::preparing(B);
    rig.ready(100, facts(B));
    rig.machine.on_successor_lost(at(100), &mut rig.prng);
    assert_eq!((rig.phase(), rig.machine.counters().dials_failed), (Phase::Waiting, 1));

    let mut rig = Rig::draining();
    rig.moving(50, &moving(8, 15, C), source(2, B));
    rig.machine.on_successor_lost(at(100), &mut rig.prng);
    assert_eq!(rig.text(100), "ended SuccessorLost");
    assert_eq!(rig.machine.reconnect_target(at(100)), named(C), "where the lost successor was about to move");
    assert_eq!(rig.machine.counters().superseded, 1);

    let mut rig = Rig::draining();
    rig.machine.on_successor_lost(at(100), &mut rig.prng);
    assert_eq!(rig.text(100), "ended SuccessorLost");
    assert_eq!(rig.machine.reconnect_target(at(100)), Target::Configured);
}

#[test]
fn a_drain_ends_by_itself_some_time_after_the_window() {
    let mut rig = Rig::draining();
    assert_eq!(rig.text(24_999), "");
    assert_eq!(rig.text(25_000), "retire, ended Moved");
    rig.machine.on_drained(at(25_001));
    rig.machine.on_source_lost(at(25_002));
    assert_eq!(rig.text(25_002), "");
    let mut rig = Rig::draining();
    rig.machine.on_source_lost(at(15_000));
    assert_eq!(rig.text(15_000), "ended Moved");
    assert_eq!(rig.machine.counters().drains_cut, 1);
}

#[test]
fn a_driver_that_polls_after_the_window_has_missed_it() {
    let mut rig = Rig::new();
    rig.moving(0, &moving(7, 15, B), source(1, A));
    assert_eq!(rig.text(15_000), "ended MissedWindow");
    assert_eq!(rig.machine.reconnect_target(at(16_000)), named(B), "the forced reconnect is planned");
    assert_eq!(rig.machine.planned_left(at(16_000)), Some(Duration::from_secs(9)));
    assert_eq!(rig.machine.planned_left(at(25_000)), None);
    let mut rig = Rig::preparing(B);
    assert_eq!(rig.text(15_000), "abandon, ended MissedWindow");
    let mut rig = Rig::preparing(B);
    rig.ready(14_000, facts(B));
    assert_eq!(rig.text(15_000), "abandon, ended MissedWindow");
    rig.machine.on_cut_over(at(15_000), Generation(2));
    assert_eq!(rig.phase(), Phase::Serving);
}

#[test]
fn ordinary_dials_follow_the_pin_for_the_window() {
    let mut rig = Rig::draining();
    rig.machine.on_drained(at(20));
    rig.steps(20);
    assert_eq!(rig.machine.reconnect_target(at(20)), named(B));
    for expected in [Target::Configured, named(B), Target::Configured] {
        rig.failed(30);
        assert_eq!(rig.machine.reconnect_target(at(30)), expected);
    }
    rig.failed(40);
    assert_eq!(rig.machine.reconnect_target(at(14_999)), named(B));
    assert_eq!(rig.machine.reconnect_target(at(15_000)), Target::Configured);
    assert_eq!(rig.machine.planned_left(at(15_000)), None);
    assert_eq!(Handoff::new(HandoffConfig::default()).reconnect_target(at(0)), Target::Configured);
}

#[test]
fn what_is_told_in_the_wrong_phase_changes_nothing() {
    let mut rig = Rig::new();
    rig.failed(0);
    assert_eq!(rig.ready(0, facts(B)), Judgement::NotWanted);
    rig.machine.on_cut_over(at(0), Generation(2));
    rig.machine.on_drained(at(0));
    rig.machine.on_source_lost(at(0));
    rig.machine.on_successor_lost(at(0), &mut rig.prng);
    assert_eq!((rig.text(0), rig.phase(), rig.timeout()), (String::new(), Phase::Serving, None));
    let mut rig = Rig::preparing(B);
    rig.machine.on_cut_over(at(1), Generation(2));
    rig.machine.on_drained(at(1));
    assert_eq!((rig.text(1), rig.phase()), (String::new(), Phase::Preparing));
}

#[test]
fn absurd_numbers_are_moved_to_sane_ones() {
    let config = HandoffConfig {
        relaxed: Duration::MAX,
        window_default: Duration::MAX,
        window_min: Duration::MAX,
        window_max: Duration::ZERO,
        chain_max: u32::MAX,
        chain_window: Duration::MAX,
        retry_min: Duration::ZERO,
        retry_max: Duration::ZERO,
        same_node_retry: Duration::MAX,
        idle_spread: 0,
        hold_min: Duration::MAX,
        grace: Duration::MAX,
    };
    let mut rig = Rig::with(config, 1);
    rig.moving(0, &moving(7, 0, ""), Source { is_idle: true, ..source(1, A) });
    let dial_at = rig.timeout().unwrap();
    assert_eq!(rig.text(dial_at + 1), "dial configured");
    rig.failed(dial_at + 1);
    rig.text(dial_at + 10);
    assert_eq!(rig.ready(dial_at + 20, facts(A)), Judgement::SameNode);
    assert_eq!(rig.machine.config().chain_max, HandoffConfig::CHAIN_MAX);
    let half = HandoffConfig { window_default: Duration::MAX, ..HandoffConfig::default() };
    let mut rig = Rig::with(half, 1);
    rig.moving(0, &moving(7, 0, B), source(1, A));
    rig.steps(0);
    assert_eq!(rig.text(108_000), "abandon, recycle 5000");
}
