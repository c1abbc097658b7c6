//! The source alone.

use super::super::wire::Frame;
use super::*;
use crate::change::{Change, MigrationEnd};

const M: NodeId = id(50);
const ME: NodeId = id(1);

struct Run {
    source: Source,
    now: Instant,
}

impl Run {
    fn new(config: Config) -> Self {
        Self { source: Source::new(M, ME, config, at(0)), now: at(0) }
    }

    /// With a link, a stream, and the first batch asked for.
    fn streaming(config: Config) -> Self {
        let mut run = Self::new(config);
        assert_eq!(run.actions(), [SourceAction::Dial(1)]);
        let hello = Frame::Hello { version: VERSION, migration: M, source: ME, attempt: 1 };
        assert_eq!(run.on(SourceEvent::Connected(1)), [SourceAction::Send(1, hello)]);
        let opened = run.on(SourceEvent::Frame(1, Frame::Welcome { version: VERSION, window: 100 }));
        assert_eq!(opened, [SourceAction::OpenStream(1), SourceAction::Fetch(1)]);
        run
    }

    /// Everything is sent and acknowledged, the slots are parked and `Final` is said.
    fn handing_over(config: Config) -> Self {
        let mut run = Self::streaming(config);
        let actions = run.on(fetched(0, 10, true, 0));
        assert!(actions.contains(&SourceAction::Park(1)), "{actions:?}");
        run.on(fetched(0, 0, true, 0));
        assert_eq!(run.on(SourceEvent::Parked(1)), [SourceAction::Fetch(1)]);
        run.on(ack(0, 10));
        let last = run.on(SourceEvent::Fetched(1, units(0, 3, 6), 0));
        assert_eq!(last.last(), Some(&SourceAction::Fetch(1)));
        assert_eq!(run.on(fetched(3, 0, true, 0)), [SourceAction::Send(1, Frame::Final { position: 3 })]);
        run.on(ack(3, 16));
        run
    }

    fn committing(config: Config) -> Self {
        let mut run = Self::handing_over(config);
        let ready = SourceEvent::Frame(1, Frame::Ready { position: 3 });
        assert_eq!(run.on(ready), [SourceAction::Propose(Proposal::Commit)]);
        run
    }

    fn actions(&mut self) -> Vec<SourceAction> {
        std::iter::from_fn(|| self.source.poll_action()).collect()
    }

    fn on(&mut self, event: SourceEvent) -> Vec<SourceAction> {
        self.source.handle(self.now, event);
        self.actions()
    }

    /// Time passes up to `millis`, with a stop at each timeout.
    fn until(&mut self, millis: u64) -> Vec<SourceAction> {
        let mut actions = Vec::new();
        while let Some(next) = self.source.poll_timeout().filter(|&next| next <= at(millis)) {
            self.now = self.now.max(next);
            self.source.handle_timeout(self.now);
            let new = self.actions();
            let is_idle = new.is_empty() && self.source.poll_timeout().is_some_and(|again| again <= self.now);
            assert!(!is_idle, "a timeout that does nothing comes again at once: {:?}", self.source);
            actions.extend(new);
        }
        self.now = at(millis);
        actions
    }
}

fn fetched(position: u64, image_bytes: usize, is_snapshot_done: bool, waiting: u64) -> SourceEvent {
    let images = vec![7; image_bytes].into();
    let batch =
        StreamBatch { position_before: position, position, is_snapshot_done, images, units: Bytes::new() };
    SourceEvent::Fetched(1, batch, waiting)
}

fn units(position_before: u64, count: u64, bytes: usize) -> StreamBatch {
    StreamBatch {
        position_before,
        position: position_before + count,
        is_snapshot_done: true,
        images: Bytes::new(),
        units: vec![8; bytes].into(),
    }
}

fn ack(position: u64, bytes: u64) -> SourceEvent {
    SourceEvent::Frame(1, Frame::Ack { position, bytes })
}

fn ends(actions: &[SourceAction]) -> Option<&str> {
    actions.iter().find_map(|action| match action {
        SourceAction::Propose(Proposal::End(reason)) => Some(reason.as_str()),
        _ => None,
    })
}

#[test]
fn a_batch_is_cut_into_chunks_lane_by_lane() {
    let mut run = Run::streaming(Config { chunk_bytes: 4, ..Config::default() });
    let batch = StreamBatch {
        position_before: 0,
        position: 2,
        is_snapshot_done: false,
        images: Bytes::from_static(b"images"),
        units: Bytes::from_static(b"units"),
    };
    let sent = run.on(SourceEvent::Fetched(1, batch, 0));
    let chunk =
        |bytes: &'static str| SourceAction::Send(1, Frame::Chunk(Bytes::from_static(bytes.as_bytes())));
    let head = Frame::Batch {
        position_before: 0,
        position: 2,
        is_snapshot_done: false,
        image_bytes: 6,
        unit_bytes: 5,
    };
    let chunks = ["imag", "es", "unit", "s"].map(chunk);
    let expected: Vec<_> =
        [SourceAction::Send(1, head)].into_iter().chain(chunks).chain([SourceAction::Fetch(1)]).collect();
    assert_eq!(sent, expected);
}

#[test]
fn no_more_is_fetched_than_the_window_holds() {
    let mut run = Run::streaming(Config::default());
    assert!(run.on(fetched(0, 60, false, 0)).contains(&SourceAction::Fetch(1)));
    assert!(
        !run.on(fetched(0, 60, false, 0)).contains(&SourceAction::Fetch(1)),
        "the target's window is 100"
    );
    assert_eq!(run.on(ack(0, 20)), []);
    assert_eq!(run.on(ack(0, 60)), [SourceAction::Fetch(1)]);
}

#[test]
fn the_snapshot_is_paced_and_the_tail_is_not() {
    let config = Config { bytes_per_second: NonZeroU64::new(1000), park_bytes_max: 0, ..Config::default() };
    let mut run = Run::streaming(config);
    let sent = run.on(fetched(0, 50, false, 0));
    assert!(!sent.contains(&SourceAction::Fetch(1)));
    assert_eq!(run.source.poll_timeout(), Some(at(50)));
    assert_eq!(run.until(49), []);
    assert_eq!(run.until(50), [SourceAction::Fetch(1)]);
    run.on(ack(0, 50));
    // The snapshot is complete: effects go as they come.
    assert!(run.on(fetched(0, 50, true, 10)).contains(&SourceAction::Fetch(1)));
}

#[test]
fn slots_are_parked_when_the_tail_is_short_or_soon_sent_or_never_gets_short() {
    let config = Config { park_bytes_max: 10, ..Config::default() };
    let is_parked = |actions: &[SourceAction]| actions.contains(&SourceAction::Park(1));
    let mut run = Run::streaming(config.clone());
    assert!(!is_parked(&run.on(fetched(0, 30, false, 0))), "the snapshot is not complete");
    run.on(ack(0, 30));
    assert!(!is_parked(&run.on(fetched(0, 0, true, 11))));
    assert!(is_parked(&run.on(SourceEvent::Fetched(1, units(0, 1, 5), 5))));

    let mut run = Run::streaming(config.clone());
    run.on(fetched(0, 90, true, 1000));
    run.until(30);
    // 90 bytes in 30 ms: 1000 bytes take 333 ms, 12 take 4 ms.
    assert!(!is_parked(&run.on(ack(0, 90))));
    assert!(is_parked(&run.on(SourceEvent::Fetched(1, units(0, 1, 4), 8))));

    let mut run = Run::streaming(Config { silence_max: Duration::from_secs(100), ..config });
    run.on(fetched(0, 90, true, 1000));
    assert!(!is_parked(&run.until(9999)));
    assert!(is_parked(&run.until(10_000)));
    assert_eq!(run.source.status().state, "waiting-to-pause");
}

#[test]
fn it_is_decided_by_the_log_and_nothing_else() {
    let mut run = Run::committing(Config::default());
    // Nothing that the link does lets the slots go on.
    assert_eq!(run.on(SourceEvent::Frame(1, Frame::Abort { reason: "no".into() })), []);
    assert_eq!(run.on(SourceEvent::Lost(1, "it broke".into())), []);
    // Nor time: the end is proposed, and of the two the log has one first.
    let late = run.until(5000);
    assert!(ends(&late).is_some());
    assert!(!late.contains(&SourceAction::Unpark), "{late:?}");
    assert_eq!(run.on(SourceEvent::ProposalFailed), []);
    assert!(ends(&run.until(5500)).is_some(), "until it has an outcome");
    let mut other = Run::committing(Config::default());
    let committed = run.on(SourceEvent::Decided(Decision::Committed));
    assert_eq!(
        committed,
        [SourceAction::CloseStream(1), SourceAction::Close(1), SourceAction::Unpark, SourceAction::DropSlots]
    );
    let ended = other.on(SourceEvent::Decided(Decision::Ended));
    assert_eq!(ended, [SourceAction::CloseStream(1), SourceAction::Close(1), SourceAction::Unpark]);
    assert_eq!(run.source.status().state, "success");
    assert_eq!(run.source.decision(), Some(Decision::Committed));
    for run in [&mut run, &mut other] {
        assert_eq!(run.source.poll_timeout(), None);
        assert_eq!(run.on(SourceEvent::Decided(Decision::Ended)), [], "once");
    }
}

#[test]
fn a_commit_that_has_no_outcome_is_proposed_again() {
    let mut run = Run::committing(Config::default());
    assert_eq!(run.on(SourceEvent::ProposalFailed), []);
    assert_eq!(run.until(500), [SourceAction::Propose(Proposal::Commit)]);
}

#[test]
fn before_the_commit_is_proposed_a_lost_link_lets_the_slots_go_on_and_begins_anew() {
    for make in [Run::streaming, Run::handing_over] {
        let mut run = make(Config::default());
        let is_parked = run.source.status().state == "failover-paused";
        let lost = run.on(SourceEvent::Lost(1, "it broke".into()));
        let mut expected = vec![SourceAction::CloseStream(1), SourceAction::Close(1)];
        expected.extend(is_parked.then_some(SourceAction::Unpark));
        expected.push(SourceAction::Dial(2));
        assert_eq!(lost, expected);
        // What the first attempt still says means nothing.
        for event in [
            SourceEvent::Frame(1, Frame::Ready { position: 3 }),
            SourceEvent::Parked(1),
            fetched(0, 10, true, 0),
            SourceEvent::Overrun(1),
            SourceEvent::Lost(1, "again".into()),
        ] {
            assert_eq!(run.on(event), []);
        }
        run.on(SourceEvent::Lost(2, "refused".into()));
        let last = run.on(SourceEvent::Lost(3, "refused".into()));
        assert_eq!(ends(&last), Some("Connection lost to target: refused"));
        assert_eq!(run.source.status().state, "failed");
        run.on(SourceEvent::ProposalFailed);
        let again = run.now + Duration::from_millis(500);
        assert_eq!(run.source.poll_timeout(), Some(again));
    }
}

#[test]
fn a_hand_over_that_takes_too_long_ends_it_and_the_slots_go_on_at_once() {
    let mut run = Run::handing_over(Config::default());
    run.now = at(4000);
    run.on(SourceEvent::Frame(1, Frame::Keepalive));
    let late = run.until(5000);
    assert!(late.contains(&SourceAction::Unpark));
    assert!(ends(&late).is_some_and(|reason| reason.contains("5s")), "{late:?}");
    let abort = |action: &SourceAction| matches!(action, SourceAction::Send(1, Frame::Abort { .. }));
    assert!(late.iter().any(abort), "the target is told");
    // It was said too late.
    assert_eq!(run.on(SourceEvent::Frame(1, Frame::Ready { position: 3 })), []);
    assert_eq!(run.on(SourceEvent::Decided(Decision::Ended)), [SourceAction::Close(1)]);
}

#[test]
fn a_target_that_says_what_no_target_says_is_given_up() {
    type Make = fn(Config) -> Run;
    let cases: [(Make, Frame); 6] = [
        (Run::streaming, Frame::Ack { position: 0, bytes: 1 }),
        (Run::streaming, Frame::Ready { position: 0 }),
        (Run::handing_over, Frame::Ready { position: 4 }),
        (Run::handing_over, Frame::Ack { position: 4, bytes: 16 }),
        (Run::handing_over, Frame::Ack { position: 3, bytes: 15 }),
        (Run::streaming, Frame::Welcome { version: VERSION, window: 1 }),
    ];
    for (make, frame) in cases {
        let mut run = make(Config::default());
        let actions = run.on(SourceEvent::Frame(1, frame.clone()));
        assert!(ends(&actions).is_some(), "{frame:?}: {actions:?}");
    }
    let mut run = Run::new(Config::default());
    run.on(SourceEvent::Connected(1));
    let actions = run.on(SourceEvent::Frame(1, Frame::Welcome { version: VERSION + 1, window: 1 }));
    assert!(ends(&actions).is_some(), "a version that it was not offered");
    let mut run = Run::streaming(Config::default());
    let actions = run.on(SourceEvent::Frame(1, Frame::Abort { reason: "out of memory".into() }));
    assert_eq!(ends(&actions), Some("The target gave up: out of memory"));
}

#[test]
fn a_link_is_kept_alive_and_given_up_when_it_is_silent() {
    let mut run = Run::streaming(Config::default());
    let keepalive = SourceAction::Send(1, Frame::Keepalive);
    let mut actions = run.until(9999);
    assert_eq!(actions.len(), 9);
    actions.retain(|action| *action != keepalive);
    assert_eq!(actions, []);
    assert!(run.until(10_000).contains(&SourceAction::Dial(2)));
    // Nobody answers.
    assert!(run.until(20_000).contains(&SourceAction::Dial(3)));
    assert!(ends(&run.until(30_000)).is_some());
}

#[test]
fn a_stream_that_is_overrun_begins_anew() {
    let mut run = Run::streaming(Config::default());
    assert_eq!(run.on(SourceEvent::Overrun(1)), [SourceAction::Close(1), SourceAction::Dial(2)]);
}

#[test]
fn an_empty_stream_is_asked_again_when_it_says_so() {
    let mut run = Run::streaming(Config { park_bytes_max: 0, ..Config::default() });
    assert_eq!(run.on(fetched(0, 0, false, 0)), [SourceAction::Fetch(1)], "slots without keys");
    run.on(fetched(0, 9, true, 0));
    run.on(fetched(0, 0, true, 0));
    assert_eq!(run.on(SourceEvent::StreamReady(1)), [SourceAction::Fetch(1)]);
    assert_eq!(run.on(SourceEvent::StreamReady(1)), [], "one at a time");
}

#[test]
fn a_source_that_was_restarted_stays_parked_until_it_knows() {
    for (decision, then) in [
        (Decision::Ended, vec![SourceAction::Close(1), SourceAction::Unpark]),
        (Decision::Committed, vec![SourceAction::Close(1), SourceAction::Unpark, SourceAction::DropSlots]),
    ] {
        let mut run = Run { source: Source::after_restart(M, ME, Config::default(), at(0)), now: at(0) };
        assert_eq!(ends(&run.actions()), Some("The source was restarted"));
        run.on(SourceEvent::ProposalFailed);
        assert!(ends(&run.until(500)).is_some());
        assert_eq!(run.until(1_000_000), []);
        assert_eq!(run.on(SourceEvent::Decided(decision)), then);
    }
}

#[test]
fn proposals_are_entries_of_the_log() {
    assert_eq!(Proposal::Commit.into_change(M, 5), Change::CommitMigration { id: M, now_ms: 5 });
    let end = Proposal::End("why".into()).into_change(M, 5);
    let expected =
        Change::EndMigration { id: M, end: MigrationEnd::Failed, message: "why".into(), now_ms: 5 };
    assert_eq!(end, expected);
}
