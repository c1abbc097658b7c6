//! Subscriptions against a model server, and against what servers send.

use bytes::BytesMut;
use proptest::prelude::*;
use towline_resp::Proto;
use towline_resp::frame::Decoder;

use super::*;

const A: SubscriberId = SubscriberId(1);
const B: SubscriberId = SubscriberId(2);
const G1: Generation = Generation(1);
const G2: Generation = Generation(2);

fn bulk(text: &[u8]) -> Frame {
    Frame::Bulk(Bytes::copy_from_slice(text))
}

fn push(words: &[&str]) -> Vec<Frame> {
    words.iter().map(|word| bulk(word.as_bytes())).collect()
}

fn kind_of(command: &[u8]) -> (Kind, bool) {
    match command {
        b"SUBSCRIBE" => (Kind::Channel, true),
        b"PSUBSCRIBE" => (Kind::Pattern, true),
        b"SSUBSCRIBE" => (Kind::Shard, true),
        b"UNSUBSCRIBE" => (Kind::Channel, false),
        b"PUNSUBSCRIBE" => (Kind::Pattern, false),
        b"SUNSUBSCRIBE" => (Kind::Shard, false),
        other => panic!("no such command: {other:?}"),
    }
}

/// A server that answers commands when it is told to, in order.
#[derive(Default)]
struct Server {
    input: BytesMut,
    decoder: Decoder,
    commands: VecDeque<Vec<Bytes>>,
    actual: BTreeSet<(Kind, Bytes)>,
    /// Names that a command must not contain.
    forbidden: BTreeSet<Bytes>,
    /// Most names seen in one command.
    widest: usize,
    command_count: usize,
}

impl Server {
    fn read(&mut self) {
        while let Some(frame) = self.decoder.decode(&mut self.input).unwrap() {
            let Frame::Array(args) = frame else { panic!("no command: {frame:?}") };
            let args = args.into_iter().map(|arg| match arg {
                Frame::Bulk(arg) => arg,
                other => panic!("no argument: {other:?}"),
            });
            self.commands.push_back(args.collect());
        }
    }

    /// Executes one command.
    fn step(&mut self) -> Vec<Frame> {
        self.read();
        let Some(args) = self.commands.pop_front() else { return Vec::new() };
        if *args[0] == *b"PING" {
            return vec![Frame::Bulk(args[1].clone())];
        }
        let (kind, is_subscribe) = kind_of(&args[0]);
        self.widest = self.widest.max(args.len() - 1);
        self.command_count += 1;
        if args[1..].iter().any(|name| self.forbidden.contains(name)) {
            return vec![Frame::Error(Bytes::from_static(b"NOPERM no access to one of the channels"))];
        }
        let word = args[0].to_ascii_lowercase();
        let answer = |name: &Bytes| {
            let key = (kind, name.clone());
            if is_subscribe {
                self.actual.insert(key)
            } else {
                self.actual.remove(&key)
            };
            Frame::Push(vec![bulk(&word), Frame::Bulk(name.clone()), Frame::Integer(1)])
        };
        args[1..].iter().map(answer).collect()
    }
}

/// The machine, its server, and what came out of the machine.
#[derive(Default)]
struct World {
    subs: Subscriptions,
    server: Server,
    generation: Generation,
    is_connected: bool,
    events: Vec<PushEvent>,
    refused: Vec<Refused>,
}

impl World {
    fn connect(&mut self) {
        self.server = Server { forbidden: std::mem::take(&mut self.server.forbidden), ..Server::default() };
        self.generation = self.generation.next();
        self.is_connected = true;
        self.subs.on_connected(self.generation);
    }

    fn lose(&mut self) {
        self.is_connected = false;
        self.subs.on_lost(self.generation);
    }

    fn flush(&mut self) {
        while self.subs.poll_command(&mut self.server.input) {}
    }

    fn receive(&mut self, frame: Frame) {
        match take_push(frame, Proto::Resp3) {
            Ok(values) => self.events.push(self.subs.on_push(self.generation, values)),
            Err(reply) => match self.subs.on_reply(&reply) {
                BatchReply::NeedMore => {}
                BatchReply::Done(refused) => self.refused.extend(refused),
                BatchReply::Misaligned => panic!("misaligned: {reply:?}"),
            },
        }
    }

    /// One command of the server.
    fn step(&mut self) -> bool {
        self.flush();
        let frames = self.server.step();
        let is_progress = !frames.is_empty();
        frames.into_iter().for_each(|frame| self.receive(frame));
        is_progress
    }

    fn settle(&mut self) {
        while self.step() {}
    }

    fn gaps(&self) -> Vec<(Generation, Generation, Vec<SubscriberId>)> {
        let confirmed = self.events.iter().filter_map(|event| match event {
            PushEvent::Confirmed(confirmed) if !confirmed.gaps.is_empty() => Some(confirmed),
            _ => None,
        });
        confirmed.map(|event| (event.gap.from, event.gap.to, event.gaps.clone())).collect()
    }
}

#[test]
fn a_reconnect_subscribes_in_few_commands_and_confirms_by_name() {
    let mut world = World::default();
    for number in 0..1000 {
        let name = format!("channel-{number}");
        assert_eq!(world.subs.subscribe(A, Kind::Channel, name.as_bytes()), Ok(Subscribed::Pending));
    }
    world.subs.subscribe(A, Kind::Pattern, b"p*").unwrap();
    world.connect();
    world.settle();
    assert!(world.subs.is_settled());
    assert_eq!(world.server.actual.len(), 1001);
    assert_eq!((world.server.command_count, world.server.widest), (3, NAMES_PER_COMMAND_MAX));
    let confirmed = world.events.iter().filter(|event| matches!(event, PushEvent::Confirmed(_))).count();
    assert_eq!(confirmed, 1001);
    assert_eq!(world.gaps(), [], "nobody missed anything yet");

    world.lose();
    assert!(!world.subs.is_settled());
    world.connect();
    world.settle();
    assert_eq!(world.gaps().len(), 1001, "one gap for each subscription");
}

#[test]
fn long_names_end_a_command_early() {
    let mut world = World::default();
    for number in 0..10 {
        world.subs.subscribe(A, Kind::Channel, &[number; NAME_BYTES_PER_COMMAND_MAX / 2]).unwrap();
    }
    world.connect();
    world.settle();
    assert_eq!((world.server.command_count, world.server.widest), (5, 2));
}

#[test]
fn several_subscribers_share_one_subscription() {
    let mut world = World::default();
    world.connect();
    world.subs.subscribe(A, Kind::Channel, b"c").unwrap();
    world.settle();
    assert_eq!(world.subs.subscribe(B, Kind::Channel, b"c"), Ok(Subscribed::Active));
    assert_eq!(world.subs.subscribe(B, Kind::Channel, b"c"), Ok(Subscribed::Active), "again is the same");
    world.settle();
    assert_eq!(world.server.command_count, 1);
    let name = Bytes::from_static(b"c");
    assert_eq!(world.subs.subscribers(Kind::Channel, &name).collect::<Vec<_>>(), [A, B]);

    assert!(world.subs.unsubscribe(A, Kind::Channel, b"c"));
    assert!(!world.subs.unsubscribe(A, Kind::Channel, b"c"));
    world.settle();
    assert_eq!(world.server.actual.len(), 1, "B is still there");
    world.subs.remove(B);
    world.settle();
    assert_eq!((world.server.actual.len(), world.subs.name_count()), (0, 0));
    assert!(world.subs.is_empty() && world.subs.is_settled());
}

#[test]
fn messages_reach_only_confirmed_subscribers_and_the_rest_is_counted() {
    let mut world = World::default();
    world.connect();
    world.subs.subscribe(A, Kind::Pattern, b"c*").unwrap();
    let message = push(&["pmessage", "c*", "c1", "hello"]);
    assert_eq!(world.subs.on_push(G1, message.clone()), PushEvent::Unknown, "not confirmed");
    world.settle();
    let expected = Message {
        kind: Kind::Pattern,
        channel: "c1".into(),
        pattern: Some("c*".into()),
        payload: "hello".into(),
    };
    assert_eq!(world.subs.on_push(G1, message.clone()), PushEvent::Message(expected));
    assert_eq!(world.subs.on_push(G2, message.clone()), PushEvent::Unknown, "of another connection");
    assert_eq!(world.subs.on_push(G1, push(&["message", "c1", "hello"])), PushEvent::Unknown);
    assert_eq!(world.subs.on_push(G1, push(&["message", "c1"])), PushEvent::Unknown);
    assert_eq!(world.subs.unknown_count(), 4);
    let other = push(&["invalidate", "key"]);
    assert_eq!(world.subs.on_push(G1, other.clone()), PushEvent::Other(other));
    assert_eq!(world.subs.on_push(G1, Vec::new()), PushEvent::Other(Vec::new()));
    // Between the wish to leave and the server's word, messages still come.
    world.subs.remove(A);
    assert_eq!(world.subs.on_push(G1, message), PushEvent::Unknown);
}

#[test]
fn a_gap_is_marked_once_and_only_for_those_who_missed_something() {
    let mut world = World::default();
    world.connect();
    world.subs.subscribe(A, Kind::Channel, b"c").unwrap();
    world.settle();
    world.lose();
    world.subs.subscribe(B, Kind::Channel, b"c").unwrap();
    // Lost again before the server has confirmed anything.
    world.connect();
    world.flush();
    world.lose();
    world.connect();
    world.settle();
    assert_eq!(world.gaps(), [(G1, Generation(3), vec![A])]);
    world.lose();
    world.connect();
    world.settle();
    assert_eq!(world.gaps()[1..], [(Generation(3), Generation(4), vec![A, B])]);
}

#[test]
fn a_late_word_about_an_earlier_connection_changes_nothing() {
    let mut world = World::default();
    world.connect();
    world.subs.subscribe(A, Kind::Channel, b"c").unwrap();
    world.lose();
    world.connect();
    world.flush();
    world.subs.on_lost(G1);
    assert_eq!(world.subs.on_push(G1, push(&["subscribe", "c"])), PushEvent::Unknown);
    assert!(!world.subs.is_settled());
    world.settle();
    assert!(world.subs.is_settled());
}

#[test]
fn a_removal_by_the_server_is_followed_by_a_new_subscription() {
    let mut world = World::default();
    world.connect();
    world.subs.subscribe(A, Kind::Shard, b"s").unwrap();
    world.settle();
    world.server.actual.clear();
    let event = world.subs.on_push(G1, push(&["sunsubscribe", "s"]));
    assert_eq!(event, PushEvent::Removed { kind: Kind::Shard, name: "s".into(), is_asked_for: false });
    world.settle();
    assert_eq!(world.server.actual.len(), 1);
    assert_eq!(world.gaps(), [(G1, G1, vec![A])]);
}

#[test]
fn a_removal_that_crosses_our_own_command_does_not_shift_replies() {
    // Redis moves the slot away while our SUNSUBSCRIBE is on its way: a push, then an error, then the fence.
    let mut subs = Subscriptions::default();
    subs.on_connected(G1);
    subs.subscribe(A, Kind::Shard, b"s").unwrap();
    let mut out = Vec::new();
    assert!(subs.poll_command(&mut out) && !subs.poll_command(&mut out));
    subs.on_push(G1, push(&["ssubscribe", "s"]));
    assert_eq!(subs.on_reply(&bulk(b"towline-fence-1")), BatchReply::Done(Vec::new()));
    subs.remove(A);
    assert!(subs.poll_command(&mut out));
    let event = subs.on_push(G1, push(&["sunsubscribe", "s"]));
    assert!(matches!(event, PushEvent::Removed { is_asked_for: true, .. }));
    let moved = Frame::Error(Bytes::from_static(b"MOVED 12182 127.0.0.1:7001"));
    assert_eq!(subs.on_reply(&moved), BatchReply::NeedMore);
    assert_eq!(subs.on_reply(&bulk(b"towline-fence-2")), BatchReply::Done(Vec::new()));
    assert!(subs.is_settled());
}

#[test]
fn a_fence_settles_only_the_names_of_its_own_batch() {
    // Confirmed, taken away and subscribed again, all before the first fence.
    let mut subs = Subscriptions::default();
    subs.on_connected(G1);
    subs.subscribe(A, Kind::Shard, b"s").unwrap();
    assert!(subs.poll_command(&mut Vec::new()));
    subs.on_push(G1, push(&["ssubscribe", "s"]));
    subs.on_push(G1, push(&["sunsubscribe", "s"]));
    assert!(subs.poll_command(&mut Vec::new()));
    assert_eq!(subs.on_reply(&bulk(b"towline-fence-1")), BatchReply::Done(Vec::new()));
    subs.on_push(G1, push(&["ssubscribe", "s"]));
    assert_eq!(subs.on_reply(&bulk(b"towline-fence-2")), BatchReply::Done(Vec::new()));
    assert!(subs.is_settled());
}

#[test]
fn one_forbidden_name_does_not_spoil_the_others() {
    let mut world = World::default();
    world.server.forbidden.insert(Bytes::from_static(b"secret"));
    for name in ["a", "secret", "z"] {
        world.subs.subscribe(A, Kind::Channel, name.as_bytes()).unwrap();
    }
    world.connect();
    world.settle();
    assert_eq!(world.server.actual.len(), 2);
    assert_eq!(world.refused.len(), 1);
    assert_eq!((&world.refused[0].name[..], &world.refused[0].subscribers[..]), (&b"secret"[..], &[A][..]));
    assert!(!world.subs.is_settled());
    // The permission is given, and a new subscriber tries again.
    world.server.forbidden.clear();
    world.subs.subscribe(B, Kind::Channel, b"secret").unwrap();
    world.settle();
    assert!(world.subs.is_settled());
}

#[test]
fn a_name_that_spoilt_a_command_stays_alone_on_the_next_connection() {
    let mut world = World::default();
    world.server.forbidden.insert(Bytes::from_static(b"m"));
    for name in ["m", "z"] {
        world.subs.subscribe(A, Kind::Channel, name.as_bytes()).unwrap();
    }
    world.connect();
    world.settle();
    world.lose();
    world.subs.subscribe(A, Kind::Channel, b"a").unwrap();
    world.subs.subscribe(A, Kind::Channel, b"b").unwrap();
    world.connect();
    world.settle();
    assert_eq!((world.server.command_count, world.server.widest), (3, 2), "a with b, m, z");
    assert_eq!(world.server.actual.len(), 3);
}

#[test]
fn a_subscription_that_a_busy_server_does_not_end_is_ended_later() {
    let mut subs = Subscriptions::default();
    subs.on_connected(G1);
    subs.subscribe(A, Kind::Channel, b"a").unwrap();
    assert!(subs.poll_command(&mut Vec::new()));
    subs.on_push(G1, push(&["subscribe", "a"]));
    assert_eq!(subs.on_reply(&bulk(b"towline-fence-1")), BatchReply::Done(Vec::new()));
    subs.remove(A);
    assert!(subs.poll_command(&mut Vec::new()));
    let busy = Frame::Error(Bytes::from_static(b"BUSY Redis is busy running a script"));
    assert_eq!(subs.on_reply(&busy), BatchReply::NeedMore);
    let BatchReply::Done(refused) = subs.on_reply(&busy) else { panic!("the fence is refused as well") };
    assert_eq!((refused.len(), refused[0].subscribers.len()), (1, 0));
    assert!(!subs.poll_command(&mut Vec::new()), "no hot loop");
    subs.retry_refused();
    let mut out = Vec::new();
    assert!(subs.poll_command(&mut out) && out.starts_with(b"*2\r\n$11\r\nUNSUBSCRIBE"));
}

#[test]
fn a_server_that_is_busy_is_tried_again_when_the_driver_says_so() {
    let mut subs = Subscriptions::default();
    subs.on_connected(G1);
    subs.subscribe(A, Kind::Channel, b"a").unwrap();
    subs.subscribe(A, Kind::Channel, b"b").unwrap();
    let mut out = Vec::new();
    assert!(subs.poll_command(&mut out));
    let busy = Frame::Error(Bytes::from_static(b"BUSY Redis is busy running a script"));
    assert_eq!(subs.on_reply(&busy), BatchReply::NeedMore);
    let BatchReply::Done(refused) = subs.on_reply(&busy) else { panic!("the fence is refused as well") };
    assert_eq!(refused.len(), 2);
    assert!(!subs.poll_command(&mut out), "no hot loop");
    subs.retry_refused();
    assert!(subs.poll_command(&mut out) && !subs.poll_command(&mut out), "one command for both");
}

#[test]
fn a_fence_that_the_user_may_not_send_still_ends_a_batch() {
    let mut subs = Subscriptions::default();
    subs.on_connected(G1);
    subs.subscribe(A, Kind::Channel, b"a").unwrap();
    assert!(subs.poll_command(&mut Vec::new()));
    subs.on_push(G1, push(&["subscribe", "a"]));
    let text = b"NOPERM User app has no permissions to run the 'ping' command";
    assert_eq!(subs.on_reply(&Frame::Error(Bytes::from_static(text))), BatchReply::Done(Vec::new()));
    assert!(subs.is_settled());
}

#[test]
fn a_reply_that_no_batch_can_have_is_misaligned() {
    let mut subs = Subscriptions::default();
    assert_eq!(subs.on_reply(&bulk(b"x")), BatchReply::Misaligned, "no batch");
    subs.on_connected(G1);
    subs.subscribe(A, Kind::Channel, b"a").unwrap();
    assert!(subs.poll_command(&mut Vec::new()));
    assert_eq!(subs.on_reply(&bulk(b"towline-fence-2")), BatchReply::Misaligned);
    assert_eq!(
        subs.on_reply(&bulk(b"towline-fence-1")),
        BatchReply::Misaligned,
        "neither confirmed nor refused"
    );
}

#[test]
fn resp2_has_arrays_for_pushes() {
    let frame = |words: &[&str]| Frame::Array(push(words));
    let message = frame(&["message", "c", "x"]);
    assert_eq!(take_push(message.clone(), Proto::Resp2), Ok(push(&["message", "c", "x"])));
    assert_eq!(take_push(message.clone(), Proto::Resp3), Err(message));
    let pong = frame(&["pong", "towline-fence-1"]);
    assert_eq!(take_push(pong.clone(), Proto::Resp2), Err(pong.clone()));

    let mut subs = Subscriptions::default();
    subs.on_connected(G1);
    subs.subscribe(A, Kind::Channel, b"c").unwrap();
    assert!(subs.poll_command(&mut Vec::new()));
    subs.on_push(G1, push(&["subscribe", "c"]));
    assert_eq!(subs.on_reply(&pong), BatchReply::Done(Vec::new()));
}

#[test]
fn the_number_of_names_is_bounded() {
    let mut subs = Subscriptions::new(1);
    subs.subscribe(A, Kind::Channel, b"a").unwrap();
    assert_eq!(subs.subscribe(A, Kind::Channel, b"b"), Err(TooManyNames { max: 1 }));
    assert_eq!(subs.subscribe(B, Kind::Channel, b"a"), Ok(Subscribed::Pending));
}

#[derive(Debug, Clone)]
enum Op {
    Subscribe(u64, Kind, u8),
    Unsubscribe(u64, Kind, u8),
    Remove(u64),
    Step,
    Connect,
    Lose,
    /// The server ends a subscription by itself.
    Take(u8),
    Retry,
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![Just(Kind::Channel), Just(Kind::Pattern), Just(Kind::Shard)];
    prop_oneof![
        6 => (0_u64..4, kind.clone(), 0_u8..5).prop_map(|(who, kind, name)| Op::Subscribe(who, kind, name)),
        6 => (0_u64..4, kind, 0_u8..5).prop_map(|(who, kind, name)| Op::Unsubscribe(who, kind, name)),
        1 => (0_u64..4).prop_map(Op::Remove),
        8 => Just(Op::Step),
        1 => Just(Op::Connect),
        1 => Just(Op::Lose),
        2 => (0_u8..5).prop_map(Op::Take),
        1 => Just(Op::Retry),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_history_ends_with_the_actual_equal_to_the_desired_state(ops in prop::collection::vec(op(), 0..120)) {
        let mut world = World::default();
        let mut desired: BTreeMap<(Kind, Bytes), BTreeSet<SubscriberId>> = BTreeMap::new();
        // Name 4 is forbidden in the meantime.
        world.server.forbidden.insert(Bytes::from_static(&[4]));
        for op in ops {
            match op {
                Op::Subscribe(who, kind, name) => {
                    world.subs.subscribe(SubscriberId(who), kind, &[name]).unwrap();
                    desired.entry((kind, Bytes::from(vec![name]))).or_default().insert(SubscriberId(who));
                }
                Op::Unsubscribe(who, kind, name) => {
                    let was = desired
                        .get_mut(&(kind, Bytes::from(vec![name])))
                        .is_some_and(|who_has| who_has.remove(&SubscriberId(who)));
                    prop_assert_eq!(world.subs.unsubscribe(SubscriberId(who), kind, &[name]), was);
                }
                Op::Remove(who) => {
                    world.subs.remove(SubscriberId(who));
                    desired.values_mut().for_each(|who_has| {
                        who_has.remove(&SubscriberId(who));
                    });
                }
                Op::Step if world.is_connected => {
                    world.step();
                }
                Op::Lose if world.is_connected => world.lose(),
                Op::Connect if !world.is_connected => world.connect(),
                Op::Take(name) if world.is_connected => {
                    let key = (Kind::Shard, Bytes::from(vec![name]));
                    if world.server.actual.remove(&key) {
                        let word = Frame::Push(vec![bulk(b"sunsubscribe"), Frame::Bulk(key.1), Frame::Integer(0)]);
                        world.receive(word);
                    }
                }
                Op::Retry => world.subs.retry_refused(),
                _ => {}
            }
        }
        world.server.forbidden.clear();
        if !world.is_connected {
            world.connect();
        }
        world.settle();
        world.subs.retry_refused();
        world.settle();
        let desired: BTreeMap<_, _> = desired.into_iter().filter(|(_, who)| !who.is_empty()).collect();
        let names: BTreeSet<_> = desired.keys().cloned().collect();
        prop_assert_eq!(&world.server.actual, &names);
        prop_assert!(world.subs.is_settled());
        for ((kind, name), who) in desired {
            prop_assert_eq!(world.subs.subscribers(kind, &name).collect::<BTreeSet<_>>(), who);
        }
    }

    #[test]
    fn gaps_are_exactly_the_interruptions(is_lost in prop::collection::vec(any::<bool>(), 1..20)) {
        // Each step: the connection is lost before or after the confirmation.
        let mut world = World::default();
        world.subs.subscribe(A, Kind::Channel, b"c").unwrap();
        let mut confirmed = 0_usize;
        for is_early in is_lost {
            world.connect();
            if is_early {
                world.flush();
            } else {
                world.settle();
                confirmed += 1;
            }
            world.lose();
        }
        prop_assert_eq!(world.gaps().len(), confirmed.saturating_sub(1));
    }
}
