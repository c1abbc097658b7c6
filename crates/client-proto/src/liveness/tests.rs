//! The watch in virtual time.

use super::*;

#[derive(Debug, Clone, Copy)]
enum Event {
    Read,
    Write,
    Blocked,
    /// The oldest unanswered command was sent at this millisecond.
    Oldest(u64),
    Answered,
    Opinion(Opinion),
}
use Event::{Answered, Blocked, Oldest, Read, Write};

/// A name, what happens, until when, and what the watch does.
type Case<'a> = (&'a str, &'a [(u64, Event)], u64, &'a [(u64, Act)]);

const DEAD: Act = Act::Dead(LostCause::Silent);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Plays events (at milliseconds) and polls on time until `end`; in a pause (from, to) nothing of the driver runs,
/// what happens meanwhile is handled at its end, reads before the poll. Returns the acts with their times.
fn play(config: LivenessConfig, events: &[(u64, Event)], pauses: &[(u64, u64)], end: u64) -> Vec<(u64, Act)> {
    let mut watch = Liveness::new(Instant::ZERO, config);
    let mut acts = Vec::new();
    let mut events = events.iter().copied().peekable();
    for now in 0..=end {
        if pauses.iter().any(|(from, to)| (*from..*to).contains(&now)) {
            continue;
        }
        while let Some((_, event)) = events.next_if(|(when, _)| *when <= now) {
            match event {
                Read => watch.on_read(at(now)),
                Write => watch.on_write(at(now)),
                Blocked => watch.on_write_blocked(at(now)),
                Oldest(sent_at) => watch.in_flight(Some(at(sent_at))),
                Answered => {
                    watch.on_read(at(now));
                    watch.in_flight(None);
                }
                Event::Opinion(opinion) => watch.on_opinion(opinion),
            }
        }
        while watch.poll_timeout().is_some_and(|due| due <= at(now)) {
            let before = watch.poll_timeout();
            match watch.poll(at(now)) {
                Some(act) => acts.push((now, act)),
                None => assert_ne!(watch.poll_timeout(), before, "a poll on time makes progress"),
            }
        }
    }
    acts
}

/// Nobody else is asked.
fn alone() -> LivenessConfig {
    LivenessConfig { held_max: None, ..LivenessConfig::default() }
}

fn with_second_opinion() -> LivenessConfig {
    LivenessConfig { second_opinion: Some(SecondOpinion::default()), ..alone() }
}

#[test]
fn silence_and_progress_in_virtual_time() {
    let trickle: Vec<(u64, Event)> =
        [(0, Oldest(0))].into_iter().chain((1..20).map(|n| (n * 1500, Read))).collect();
    let cases: &[Case<'_>] = &[
        ("a silent peer with a command in flight", &[(100, Oldest(100))], 5000, &[(1900, DEAD)]),
        (
            "a silent peer after good times",
            &[(0, Oldest(0)), (900, Answered), (1000, Oldest(1000))],
            5000,
            &[(2800, DEAD)],
        ),
        ("busy for 1.5 s in one command", &[(0, Oldest(0)), (1500, Answered)], 5000, &[]),
        (
            "busy for 1.5 s, three times in a row",
            &[
                (0, Oldest(0)),
                (1500, Read),
                (1500, Oldest(0)),
                (3000, Read),
                (3000, Oldest(0)),
                (4500, Answered),
            ],
            5000,
            &[],
        ),
        ("a big reply that trickles, then stops", &trickle, 40_000, &[(28_500 + 1800, DEAD)]),
        ("answered while under suspicion", &[(0, Oldest(0)), (1780, Answered)], 5000, &[]),
        (
            "a byte while under suspicion, then silence",
            &[(0, Oldest(0)), (1780, Read)],
            5000,
            &[(3580, DEAD)],
        ),
        ("a write that the kernel refuses for too long", &[(200, Blocked)], 5000, &[(2000, DEAD)]),
        (
            "a blocked write that moves",
            &[(0, Oldest(0)), (0, Blocked), (1700, Write), (1700, Blocked), (3400, Write), (3400, Answered)],
            5000,
            &[],
        ),
        (
            "a write that was not blocked is no sign of life",
            &[(0, Oldest(0)), (500, Write), (1000, Write), (1500, Write)],
            5000,
            &[(1800, DEAD)],
        ),
        ("idle", &[], 11_000, &[(5000, Act::SendPing), (10_000, Act::SendPing)]),
        (
            "idle, and the ping finds a dead peer",
            &[(3000, Oldest(3000)), (3001, Answered), (8002, Oldest(8001))],
            20_000,
            &[(8001, Act::SendPing), (9801, DEAD)],
        ),
    ];
    for (name, events, end, acts) in cases {
        assert_eq!(play(alone(), events, &[], *end), *acts, "{name}");
    }
}

#[test]
fn with_the_defaults_a_silent_peer_is_known_in_under_two_seconds_and_a_busy_one_is_spared() {
    let config = alone();
    assert!(config.silence_max + config.confirm < Duration::from_secs(2));
    assert!(config.silence_max > Duration::from_millis(1500));
}

#[test]
fn a_starved_process_reads_before_it_judges() {
    // The reply came at 200; nothing ran from 100 to 4000; the driver reads at 4000.
    let events = [(0, Oldest(0)), (200, Answered)];
    assert_eq!(play(alone(), &events, &[(100, 4000)], 6000), []);
    // The same, but the reactor reports the socket only a little after the timer.
    let events = [(0, Oldest(0)), (4300, Answered)];
    assert_eq!(play(alone(), &events, &[(100, 4000)], 6000), []);
}

#[test]
fn a_starved_process_finds_a_dead_peer_all_the_same() {
    let events = [(0, Oldest(0))];
    let acts = play(alone(), &events, &[(100, 4000)], 6000);
    assert_eq!(acts, [(4500, DEAD)], "the grace has passed");
    // The process runs for one millisecond in 800, for ever.
    let pauses: Vec<(u64, u64)> = (0..100).map(|n| (n * 800 + 1, n * 800 + 800)).collect();
    let acts = play(alone(), &events, &pauses, 60_000);
    assert!(matches!(acts[..], [(2400..=8000, DEAD)]), "{acts:?}");
}

#[test]
fn lateness_within_the_slack_is_no_excuse() {
    let events = [(0, Oldest(0))];
    let acts = play(alone(), &events, &[(1700, 1800)], 6000);
    assert_eq!(acts, [(1850, DEAD)]);
}

#[test]
fn a_second_opinion_tells_busy_from_gone() {
    let ask = |opinion| [(0, Oldest(0)), (1100, Event::Opinion(opinion))];
    let asked = (1000, Act::AskElsewhere);
    let asked_at_once = |opinion| play(with_second_opinion(), &ask(opinion), &[], 20_000);
    assert_eq!(asked_at_once(Opinion::Unreachable), [asked, (1100, DEAD)]);
    assert_eq!(asked_at_once(Opinion::Answers), [asked, (1800, DEAD)]);
    assert_eq!(asked_at_once(Opinion::Busy), [asked, (10_050, DEAD)]);
    let late =
        play(with_second_opinion(), &[(0, Oldest(0)), (1790, Event::Opinion(Opinion::Busy))], &[], 20_000);
    assert_eq!(late, [asked, (10_050, DEAD)], "an answer in the last moment still counts");
}

#[test]
fn a_peer_that_holds_back_writes_has_more_time() {
    let asked = (1000, Act::AskElsewhere);
    let told = |opinion| {
        let events = [(0, Oldest(0)), (1300, Event::Opinion(opinion))];
        play(LivenessConfig::default(), &events, &[], 20_000)
    };
    assert_eq!(told(Opinion::Holds), [asked, (10_050, DEAD)]);
    // Somebody who was asked about writes has said nothing else; without a word it ends as ever.
    assert_eq!(play(LivenessConfig::default(), &[(0, Oldest(0))], &[], 20_000), [asked, (1800, DEAD)]);
    let late = [(0, Oldest(0)), (1790, Event::Opinion(Opinion::Holds))];
    assert_eq!(play(LivenessConfig::default(), &late, &[], 20_000), [asked, (10_050, DEAD)]);
    // The time to ask follows the patience, so that there is time for an answer.
    let brief = LivenessConfig { silence_max: Duration::from_millis(700), ..LivenessConfig::default() };
    assert_eq!(brief.opinion_time(), Duration::from_millis(300));
    assert_eq!(play(brief, &[(0, Oldest(0))], &[], 5000), [(400, Act::AskElsewhere), (750, DEAD)]);
    // It counts for one silence only.
    let again =
        [(0, Oldest(0)), (1300, Event::Opinion(Opinion::Holds)), (4000, Answered), (4001, Oldest(4001))];
    assert_eq!(
        play(LivenessConfig::default(), &again, &[], 20_000),
        [asked, (5001, Act::AskElsewhere), (5801, DEAD)]
    );
}

#[test]
fn a_second_opinion_counts_for_one_silence_only() {
    let events = [
        (0, Oldest(0)),
        (1100, Event::Opinion(Opinion::Busy)),
        (5000, Answered),
        (5001, Oldest(5001)),
        (5002, Event::Opinion(Opinion::Busy)),
    ];
    assert_eq!(
        play(with_second_opinion(), &events, &[], 20_000),
        [(1000, Act::AskElsewhere), (6001, Act::AskElsewhere), (6801, DEAD)]
    );
}

#[test]
fn pings_can_be_switched_off() {
    let config = LivenessConfig { idle_ping_after: None, ..alone() };
    assert_eq!(play(config, &[], &[], 60_000), []);
    assert_eq!(Liveness::new(Instant::ZERO, config).poll_timeout(), None);
}

#[test]
fn the_verdict_is_said_once() {
    let mut watch = Liveness::new(Instant::ZERO, alone());
    watch.in_flight(Some(Instant::ZERO));
    assert_eq!(watch.poll(at(1750)), None);
    assert_eq!(watch.poll(at(1800)), Some(DEAD));
    assert_eq!((watch.poll(at(9000)), watch.poll_timeout()), (None, None));
}

#[test]
fn blame_follows_the_evidence() {
    let mut watch = Liveness::new(Instant::ZERO, with_second_opinion());
    assert_eq!(watch.blame(at(10)), Blame::Unknown);
    watch.in_flight(Some(at(100)));
    assert_eq!(watch.blame(at(200)), Blame::Unknown);
    assert_eq!(watch.blame(at(1850)), Blame::NetworkSilent);
    watch.on_read(at(1860));
    assert_eq!(watch.blame(at(1900)), Blame::ServerSlow);
    assert_eq!(watch.sign_age(at(1900)), Duration::from_millis(40));
    assert_eq!(watch.poll(at(2860)), Some(Act::AskElsewhere));
    watch.on_opinion(Opinion::Busy);
    assert_eq!(watch.blame(at(4000)), Blame::ServerSlow);
    assert_eq!(watch.poll(at(30_000)), None, "far too late to judge");
    assert_eq!(watch.blame(at(30_000)), Blame::RuntimeStarved);
    watch.on_read(at(30_001));
    assert_eq!(watch.blame(at(30_002)), Blame::ServerSlow, "that is over");
}
