//! The target alone.

use super::super::wire::Frame;
use super::*;

struct Run {
    target: Target,
    now: Instant,
}

impl Run {
    fn new(config: Config) -> Self {
        Self { target: Target::new(config, at(0)), now: at(0) }
    }

    fn receiving(config: Config) -> Self {
        let mut run = Self::new(config);
        let window = run.target_window();
        let begun = run.on(TargetEvent::Hello { attempt: 1, version: VERSION });
        let welcome = Frame::Welcome { version: VERSION, window };
        assert_eq!(begun, [TargetAction::Begin(1), TargetAction::Send(1, welcome)]);
        run
    }

    fn target_window(&self) -> u64 {
        Config::default().window_bytes
    }

    /// Everything is here, and that was said.
    fn ready(config: Config) -> Self {
        let mut run = Self::receiving(config);
        run.frame(head(0, 1, true, 2, 3));
        assert_eq!(run.frame(chunk("im")), []);
        let batch = StreamBatch {
            position_before: 0,
            position: 1,
            is_snapshot_done: true,
            images: Bytes::from_static(b"im"),
            units: Bytes::from_static(b"uni"),
        };
        assert_eq!(run.frame(chunk("uni")), [TargetAction::Apply(1, batch)]);
        assert_eq!(run.frame(Frame::Final { position: 1 }), [], "it is not applied yet");
        let ack = Frame::Ack { position: 1, bytes: 5 };
        assert_eq!(run.on(TargetEvent::Applied(1)), [TargetAction::Send(1, ack), TargetAction::Sync(1)]);
        let ready = Frame::Ready { position: 1 };
        assert_eq!(run.on(TargetEvent::Synced(1)), [TargetAction::Send(1, ready)]);
        run
    }

    fn on(&mut self, event: TargetEvent) -> Vec<TargetAction> {
        self.target.handle(self.now, event);
        std::iter::from_fn(|| self.target.poll_action()).collect()
    }

    fn frame(&mut self, frame: Frame) -> Vec<TargetAction> {
        self.on(TargetEvent::Frame(1, frame))
    }

    fn until(&mut self, millis: u64) -> Vec<TargetAction> {
        let mut actions = Vec::new();
        while let Some(next) = self.target.poll_timeout().filter(|&next| next <= at(millis)) {
            self.now = self.now.max(next);
            self.target.handle_timeout(self.now);
            let before = actions.len();
            actions.extend(std::iter::from_fn(|| self.target.poll_action()));
            let is_idle =
                actions.len() == before && self.target.poll_timeout().is_some_and(|it| it <= self.now);
            assert!(!is_idle, "a timeout that does nothing comes again at once: {:?}", self.target);
        }
        self.now = at(millis);
        actions
    }
}

fn head(before: u64, position: u64, is_snapshot_done: bool, image_bytes: u64, unit_bytes: u64) -> Frame {
    Frame::Batch { position_before: before, position, is_snapshot_done, image_bytes, unit_bytes }
}

fn chunk(text: &'static str) -> Frame {
    Frame::Chunk(Bytes::from_static(text.as_bytes()))
}

fn is_refused(actions: &[TargetAction]) -> bool {
    let is_abort = |action: &TargetAction| matches!(action, TargetAction::Send(1, Frame::Abort { .. }));
    actions.iter().any(is_abort)
        && actions.contains(&TargetAction::Close(1))
        && actions.last() == Some(&TargetAction::Abandon)
}

#[test]
fn what_no_source_sends_drops_the_import() {
    let config = Config { batch_bytes_max: 100, ..Config::default() };
    let cases: [(&str, &[Frame]); 11] = [
        ("a chunk of nothing", &[Frame::Chunk(Bytes::from_static(b"x"))]),
        ("too much of a batch", &[head(0, 0, false, 1, 0), chunk("xx")]),
        ("a batch within another", &[head(0, 0, false, 1, 0), head(0, 0, false, 1, 0)]),
        ("a gap", &[head(1, 2, false, 0, 5)]),
        ("backwards", &[head(0, 1, false, 0, 1), chunk("x"), head(1, 0, false, 0, 1)]),
        ("effects without bytes", &[head(0, 1, false, 5, 0)]),
        ("images after the snapshot", &[head(0, 0, true, 0, 0), head(0, 0, true, 1, 0)]),
        ("too large", &[head(0, 1, true, u64::MAX, u64::MAX)]),
        ("an end within a batch", &[head(0, 0, true, 1, 0), Frame::Final { position: 0 }]),
        ("an end before the snapshot's", &[head(0, 0, false, 0, 0), Frame::Final { position: 0 }]),
        ("a frame of a target", &[Frame::Ready { position: 0 }]),
    ];
    for (name, frames) in cases {
        let mut run = Run::receiving(config.clone());
        let (last, before) = frames.split_last().unwrap();
        for frame in before {
            assert!(!is_refused(&run.frame(frame.clone())), "{name}");
        }
        let actions = run.frame(last.clone());
        assert!(is_refused(&actions), "{name}: {actions:?}");
        assert_eq!(run.frame(Frame::Keepalive), [], "{name}: the link is closed");
        assert_eq!(run.target.status().state, "waiting-for-ack");
    }
}

#[test]
fn a_window_that_is_not_kept_drops_the_import() {
    let mut run = Run::new(Config { window_bytes: 4, ..Config::default() });
    run.on(TargetEvent::Hello { attempt: 1, version: VERSION });
    for _ in 0..2 {
        run.frame(head(0, 0, false, 2, 0));
        assert_eq!(run.frame(chunk("xx")).len(), 1);
    }
    assert_eq!(run.target.status().bytes_remaining, 4);
    assert!(is_refused(&run.frame(head(0, 0, false, 2, 0))));
}

#[test]
fn a_link_that_is_lost_drops_what_is_not_whole_and_keeps_what_is() {
    let mut run = Run::receiving(Config::default());
    run.frame(head(0, 0, false, 1, 0));
    assert_eq!(run.on(TargetEvent::Lost(1)), [TargetAction::Close(1), TargetAction::Abandon]);
    assert_eq!(run.on(TargetEvent::Applied(1)), [], "what was under way is gone");
    let mut run = Run::ready(Config::default());
    assert_eq!(run.on(TargetEvent::Lost(1)), [TargetAction::Close(1)]);
    assert_eq!(run.target.status().state, "failover-granted");
    assert_eq!(run.on(TargetEvent::Decided(Decision::Committed)), [TargetAction::Finish]);
    let mut run = Run::ready(Config::default());
    assert_eq!(
        run.on(TargetEvent::Decided(Decision::Ended)),
        [TargetAction::Close(1), TargetAction::Abandon]
    );
    assert_eq!(run.target.poll_timeout(), None);
    assert_eq!(run.on(TargetEvent::Decided(Decision::Committed)), [], "once");
}

#[test]
fn only_a_newer_attempt_begins_anew() {
    let mut run = Run::ready(Config::default());
    let refused = run.on(TargetEvent::Hello { attempt: 1, version: VERSION });
    assert_eq!(refused.last(), Some(&TargetAction::Close(1)));
    assert!(!refused.contains(&TargetAction::Begin(1)), "it came late: what is here is the same attempt's");
    assert_eq!(run.target.status().state, "failover-granted");
    let begun = run.on(TargetEvent::Hello { attempt: 3, version: VERSION + 5 });
    assert_eq!(begun[..2], [TargetAction::Close(1), TargetAction::Begin(3)]);
    assert_eq!(run.on(TargetEvent::Synced(1)), [], "the import of the attempt before");
    let mut run = Run::new(Config::default());
    let refused = run.on(TargetEvent::Hello { attempt: 1, version: 0 });
    assert_eq!(refused.last(), Some(&TargetAction::Close(1)), "another version");
}

#[test]
fn an_import_that_fails_says_why() {
    let mut run = Run::receiving(Config::default());
    run.frame(head(0, 0, false, 1, 0));
    run.frame(chunk("x"));
    let failed = run.on(TargetEvent::ApplyFailed(1, "out of memory".into()));
    let abort = TargetAction::Send(1, Frame::Abort { reason: "out of memory".into() });
    assert_eq!(failed, [abort, TargetAction::Close(1), TargetAction::Abandon]);
    assert_eq!(run.target.status().message, "out of memory");
}

#[test]
fn a_target_that_is_left_alone_asks_for_the_end_and_goes_by_what_the_log_says() {
    let mut run = Run::ready(Config::default());
    run.on(TargetEvent::Lost(1));
    assert_eq!(run.until(29_999), []);
    let end = Proposal::End("No link from the source for 30s".into());
    assert_eq!(run.until(30_000), [TargetAction::Propose(end.clone())]);
    let refused = run.on(TargetEvent::Hello { attempt: 2, version: VERSION });
    assert_eq!(refused.last(), Some(&TargetAction::Close(2)));
    run.on(TargetEvent::ProposalFailed);
    assert_eq!(run.until(30_500), [TargetAction::Propose(end)]);
    // The commit was first.
    assert_eq!(run.on(TargetEvent::Decided(Decision::Committed)), [TargetAction::Finish]);
}

#[test]
fn a_link_is_kept_alive_and_given_up_when_it_is_silent() {
    let mut run = Run::receiving(Config::default());
    let keepalives = run.until(9999);
    assert_eq!(keepalives, vec![TargetAction::Send(1, Frame::Keepalive); 9]);
    assert_eq!(run.until(10_000), [TargetAction::Close(1), TargetAction::Abandon]);
    assert!(matches!(run.until(40_000)[..], [TargetAction::Propose(Proposal::End(_))]));
}

#[test]
fn a_target_that_was_restarted_keeps_what_it_has_until_it_knows() {
    for (decision, then) in
        [(Decision::Ended, TargetAction::Abandon), (Decision::Committed, TargetAction::Finish)]
    {
        let mut run = Run { target: Target::after_restart(Config::default(), at(0)), now: at(0) };
        let end = Proposal::End("The target was restarted".into());
        assert_eq!(run.target.poll_action(), Some(TargetAction::Propose(end)));
        assert_eq!(run.until(1_000_000), []);
        assert_eq!(run.on(TargetEvent::Decided(decision)), [then]);
    }
}
