//! Subscribers of a bridge: confirmations, refusals, gaps, the end.

use std::task::Poll;

use super::*;
use crate::subscriptions::{Gap, Item, Kind, Lagged, Overflow, SubscriberId};

const ROOM: usize = 1 << 20;

impl Rig {
    fn for_pubsub(parts: Parts) -> Self {
        let mut rig = Self::new(parts);
        rig.bridge = rig.bridge.with_pubsub(PubSubConfig::default(), rig.now);
        rig
    }

    fn subscriber(&mut self) -> SubscriberId {
        self.bridge.open_subscriber(ROOM, Overflow::DropOldest).unwrap()
    }

    fn subscribe(&mut self, id: SubscriberId, names: &[&str]) {
        self.bridge.subscribe(self.now, id, Kind::Channel, names).unwrap();
    }

    fn is_subscribed(&mut self, id: SubscriberId) -> Poll<Result<(), Error>> {
        self.bridge.poll_subscribed(id, |_| 7)
    }

    fn item(&mut self, id: SubscriberId) -> Poll<Option<Item>> {
        self.bridge.poll_item(id, |_| 8)
    }

    /// Takes what the bridge sends and answers its subscriptions as a RESP2 server does.
    fn serve(&mut self) -> String {
        let sent = String::from_utf8(self.write(usize::MAX)).unwrap();
        let mut words = sent.split("\r\n").filter(|word| !word.starts_with(['*', '$']) && !word.is_empty());
        let mut replies = String::new();
        let mut verb = "";
        while let Some(word) = words.next() {
            match word {
                "SUBSCRIBE" | "UNSUBSCRIBE" => verb = word,
                "PING" => {
                    let token = words.next().unwrap_or_default();
                    replies.push_str(&array(&["pong", token]));
                }
                name => replies.push_str(&confirmation(&verb.to_ascii_lowercase(), name)),
            }
        }
        self.reply(replies.as_bytes());
        sent
    }

    fn publish(&mut self, channel: &str, payload: &str) {
        self.reply(array(&["message", channel, payload]).as_bytes());
    }

    fn payload(&mut self, id: SubscriberId) -> String {
        match self.item(id) {
            Poll::Ready(Some(Item::Message(message))) => String::from_utf8(message.payload.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

fn array(words: &[&str]) -> String {
    let bulks: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{bulks}", words.len())
}

fn confirmation(verb: &str, name: &str) -> String {
    format!("*3\r\n${}\r\n{verb}\r\n${}\r\n{name}\r\n:1\r\n", verb.len(), name.len())
}

#[test]
fn a_request_is_settled_by_the_confirmation_of_every_name() {
    let mut rig = Rig::for_pubsub(parts());
    let id = rig.subscriber();
    rig.subscribe(id, &["a", "b"]);
    assert!(rig.is_subscribed(id).is_pending(), "nothing is connected");
    rig.connect();
    let sent = String::from_utf8(rig.write(usize::MAX)).unwrap();
    assert!(sent.starts_with(&array(&["SUBSCRIBE", "a", "b"])), "{sent}");
    rig.reply(confirmation("subscribe", "a").as_bytes());
    assert!(rig.is_subscribed(id).is_pending());
    rig.reply(confirmation("subscribe", "b").as_bytes());
    let mut wakes = Vec::new();
    rig.bridge.take_wakes(&mut wakes);
    assert_eq!(wakes, [7]);
    assert_eq!(rig.is_subscribed(id), Poll::Ready(Ok(())));
    rig.publish("b", "news");
    assert_eq!(rig.payload(id), "news");
    assert!(rig.item(id).is_pending());
}

#[test]
fn subscriptions_leave_before_commands_that_waited() {
    let mut rig = Rig::for_pubsub(parts());
    let id = rig.subscriber();
    let get = rig.get("k");
    rig.subscribe(id, &["a"]);
    rig.connect();
    let sent = String::from_utf8(rig.write(usize::MAX)).unwrap();
    assert!(sent.find("SUBSCRIBE") < sent.find("GET"), "{sent}");
    let token = sent.split("\r\n").skip_while(|word| *word != "PING").nth(2).unwrap();
    let replies = format!("{}{}:4\r\n", confirmation("subscribe", "a"), array(&["pong", token]));
    rig.reply(replies.as_bytes());
    assert_eq!(rig.outcome(get), integer(4));
    assert_eq!(rig.is_subscribed(id), Poll::Ready(Ok(())));
}

#[test]
fn a_refusal_takes_the_whole_request_back() {
    let mut rig = Rig::for_pubsub(parts());
    let id = rig.subscriber();
    rig.subscribe(id, &["a"]);
    rig.connect();
    rig.serve();
    assert_eq!(rig.is_subscribed(id), Poll::Ready(Ok(())));
    rig.subscribe(id, &["a", "secret", "b"]);
    // One name spoils the command for all, so each is tried alone.
    let fence = |sent: &str| sent.split("\r\n").skip_while(|word| *word != "PING").nth(2).unwrap().to_owned();
    let sent = String::from_utf8(rig.write(usize::MAX)).unwrap();
    assert!(sent.starts_with(&array(&["SUBSCRIBE", "secret", "b"])), "{sent}");
    rig.reply(format!("-NOPERM channel\r\n{}", array(&["pong", &fence(&sent)])).as_bytes());
    let sent = String::from_utf8(rig.write(usize::MAX)).unwrap();
    assert!(sent.starts_with(&array(&["SUBSCRIBE", "secret"])), "{sent}");
    let second = sent.split("*2\r\n$9\r\nSUBSCRIBE").nth(2).unwrap();
    let replies = format!(
        "-NOPERM channel\r\n{}{}{}",
        array(&["pong", &fence(&sent)]),
        confirmation("subscribe", "b"),
        array(&["pong", &fence(second)]),
    );
    rig.reply(replies.as_bytes());
    let Poll::Ready(Err(error)) = rig.is_subscribed(id) else { panic!("it is settled") };
    assert_eq!((error.code(), error.sent()), (Some("NOPERM"), Sent::Answered));
    assert!(rig.serve().starts_with(&array(&["UNSUBSCRIBE", "b"])));
    rig.publish("a", "still here");
    assert_eq!(rig.payload(id), "still here");
    assert_eq!(rig.bridge.link_state(), LinkState::Up);
}

#[test]
fn a_lost_connection_leaves_one_gap_before_what_follows() {
    let mut rig = Rig::for_pubsub(parts());
    let id = rig.subscriber();
    rig.subscribe(id, &["a"]);
    rig.connect();
    rig.serve();
    rig.publish("a", "before");
    let from = rig.bridge.generation();
    rig.lose();
    rig.connect();
    rig.serve();
    rig.publish("a", "after");
    assert_eq!(rig.payload(id), "before");
    let to = rig.bridge.generation();
    let gap = Gap { kind: Kind::Channel, name: "a".into(), from, to };
    assert_eq!(rig.item(id), Poll::Ready(Some(Item::Gap(gap))));
    assert_eq!(rig.payload(id), "after");
    assert!(rig.item(id).is_pending());
}

#[test]
fn what_the_server_refuses_for_now_is_tried_again() {
    let mut rig = Rig::for_pubsub(parts());
    let id = rig.subscriber();
    rig.subscribe(id, &["a"]);
    rig.connect();
    let sent = String::from_utf8(rig.write(usize::MAX)).unwrap();
    let token = sent.split("\r\n").skip_while(|word| *word != "PING").nth(2).unwrap();
    rig.reply(format!("-CLUSTERDOWN later\r\n{}", array(&["pong", token])).as_bytes());
    assert!(rig.is_subscribed(id).is_pending());
    assert_eq!(rig.serve(), "");
    rig.now = rig.bridge.poll_timeout().unwrap();
    rig.bridge.handle_timeout(rig.now);
    assert!(rig.serve().starts_with(&array(&["SUBSCRIBE", "a"])));
    assert_eq!(rig.is_subscribed(id), Poll::Ready(Ok(())));
}

#[test]
fn a_request_that_is_given_up_leaves_nothing() {
    let mut rig = Rig::for_pubsub(parts());
    let (first, second) = (rig.subscriber(), rig.subscriber());
    rig.subscribe(first, &["a"]);
    rig.subscribe(second, &["a", "b"]);
    rig.connect();
    rig.bridge.cancel_subscribe(second);
    rig.serve();
    assert!(rig.serve().starts_with(&array(&["UNSUBSCRIBE", "b"])));
    rig.publish("a", "1");
    assert_eq!(rig.payload(first), "1");
    assert!(rig.item(second).is_pending());
}

#[test]
fn a_policy_that_does_not_wait_fails_requests_with_the_next_dial() {
    let mut rig = Rig::for_pubsub(Parts { policy: Box::new(Policy::FailFast), ..parts() });
    let id = rig.subscriber();
    rig.subscribe(id, &["a"]);
    let generation = rig.bridge.poll_dial(rig.now).unwrap();
    assert!(rig.is_subscribed(id).is_pending());
    rig.bridge.dial_failed(rig.now, generation, std::io::ErrorKind::ConnectionRefused);
    let Poll::Ready(Err(error)) = rig.is_subscribed(id) else { panic!("it is settled") };
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Unavailable, Sent::No));
    rig.connect();
    assert_eq!(rig.serve(), "");
    rig.lose();
    let refused = rig.bridge.subscribe(rig.now, id, Kind::Channel, ["a"]).unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::Unavailable, "the connection was lost");
}

#[test]
fn without_a_subscriber_the_bridge_lingers_and_ends() {
    let mut rig = Rig::for_pubsub(parts());
    let id = rig.subscriber();
    rig.subscribe(id, &["a"]);
    rig.connect();
    rig.serve();
    rig.bridge.close_subscriber(rig.now, id);
    rig.serve();
    rig.now = rig.now + (PubSubConfig::default().linger - Duration::from_millis(1));
    rig.bridge.handle_timeout(rig.now);
    let id = rig.subscriber();
    rig.now = rig.now + Duration::from_secs(60);
    rig.bridge.handle_timeout(rig.now);
    assert!(!rig.bridge.is_closed(), "it has a subscriber");
    rig.bridge.close_subscriber(rig.now, id);
    rig.now = rig.now + PubSubConfig::default().linger;
    rig.write(usize::MAX);
    rig.bridge.handle_timeout(rig.now);
    assert!(rig.bridge.is_finished());
    assert_eq!(rig.bridge.poll_timeout(), None);
    let refused = rig.bridge.open_subscriber(ROOM, Overflow::DropOldest).unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::Closed);
}

#[test]
fn a_bridge_that_gets_no_further_subscriber_ends_with_the_last() {
    let mut rig = Rig::for_pubsub(parts());
    let id = rig.subscriber();
    rig.subscribe(id, &["a"]);
    rig.connect();
    rig.serve();
    rig.bridge.close_when_unused(rig.now);
    rig.publish("a", "still here");
    assert_eq!(rig.payload(id), "still here");
    rig.bridge.close_subscriber(rig.now, id);
    assert_eq!(rig.bridge.poll_timeout(), Some(rig.now));
    rig.bridge.handle_timeout(rig.now);
    assert!(rig.bridge.is_finished());
}

#[test]
fn the_end_is_told_after_what_is_queued() {
    let mut rig = Rig::for_pubsub(parts());
    let id = rig.subscriber();
    rig.subscribe(id, &["a"]);
    rig.connect();
    rig.serve();
    assert!(rig.item(id).is_pending());
    rig.publish("a", "last");
    rig.bridge.close(rig.now);
    assert_eq!(rig.payload(id), "last");
    assert_eq!(rig.item(id), Poll::Ready(None));
    assert!(rig.bridge.is_finished());
}

#[test]
fn a_slow_reader_costs_its_bound_and_learns_what_it_missed() {
    let mut rig = Rig::for_pubsub(parts());
    let (slow, quick) = (rig.bridge.open_subscriber(1000, Overflow::DropOldest).unwrap(), rig.subscriber());
    rig.subscribe(slow, &["a"]);
    rig.subscribe(quick, &["a"]);
    rig.connect();
    rig.serve();
    for number in 0..100 {
        rig.publish("a", &number.to_string());
        assert_eq!(rig.payload(quick), number.to_string());
    }
    let (bytes, dropped) = rig.bridge.subscriber_load(slow);
    assert!(bytes <= 1000, "{bytes}");
    let Poll::Ready(Some(Item::Lagged(Lagged { messages, .. }))) = rig.item(slow) else {
        panic!("some are gone")
    };
    assert_eq!(dropped.messages, messages);
    for number in messages..100 {
        assert_eq!(rig.payload(slow), number.to_string());
    }
}

#[test]
fn pushes_on_a_connection_for_commands_answer_nothing() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let get = rig.get("k");
    rig.write(usize::MAX);
    rig.reply(b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n:5\r\n");
    assert_eq!(rig.outcome(get), integer(5));
    assert_eq!(rig.bridge.counters().pushes_unknown, 1);
    let refused = rig.bridge.open_subscriber(ROOM, Overflow::DropOldest).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Misuse(_)));
}

#[test]
fn new_credentials_wait_for_the_next_connection_of_a_resp2_subscriber() {
    let mut rig = Rig::for_pubsub(parts());
    let id = rig.subscriber();
    rig.subscribe(id, &["a"]);
    rig.connect();
    rig.serve();
    rig.bridge.reauthenticate(crate::Credentials::password("fresh"));
    assert_eq!(rig.serve(), "");
    rig.publish("a", "1");
    assert_eq!(rig.payload(id), "1");
}
