//! What a cache is told, and in which order.

use super::*;
use crate::bridge::TrackingNews;
use crate::handshake::{MaintenanceRequest, Tracking};

const INVALIDATE: &[u8] = b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n";
const INVALIDATE_ALL: &[u8] = b">2\r\n$10\r\ninvalidate\r\n_\r\n";
const MOVING: &[u8] = b">4\r\n$6\r\nMOVING\r\n:17\r\n:15\r\n$16\r\n203.0.113.7:6379\r\n";

fn rig(tracking: Tracking) -> Rig {
    let mut parts = parts();
    (parts.handshake.peer, parts.handshake.protocol) = (Peer::Server, ProtocolChoice::Resp3OrResp2);
    parts.handshake.maintenance = Some(MaintenanceRequest { moving_endpoint_type: None, is_required: false });
    let mut rig = Rig::new(parts);
    rig.bridge = rig.bridge.with_tracking(tracking);
    rig
}

/// How a server takes `CLIENT TRACKING`.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    Agrees,
    Refuses,
    SpeaksResp2,
}

impl Rig {
    fn news(&mut self) -> Vec<TrackingNews> {
        self.bridge.take_tracking_news()
    }

    /// Writes what connection `generation` has to say.
    fn write_on(&mut self, generation: Generation) -> Vec<u8> {
        let mut sent = Vec::new();
        while let Some(batch) = self.bridge.take_write(self.now, generation) {
            sent.extend(batch.slices().flatten());
            let count = batch.len();
            self.bridge.wrote(self.now, batch, count);
        }
        sent
    }

    fn reply_on(&mut self, generation: Generation, bytes: &[u8]) {
        let (mut buffer, mut decoder, mut frames) = (BytesMut::from(bytes), Decoder::default(), Vec::new());
        while let Some(frame) = decoder.decode(&mut buffer).unwrap() {
            frames.push(frame);
        }
        self.bridge.deliver(self.now, generation, &mut frames);
    }

    /// Answers the handshake of connection `generation`; the words of its `CLIENT TRACKING`.
    fn greet(&mut self, generation: Generation, server: Server) -> Option<String> {
        let sent = self.write_on(generation);
        let (mut tracking, mut replies) = (None, String::new());
        for command in String::from_utf8(sent).unwrap().split('*').skip(1) {
            let words: Vec<&str> = command.split("\r\n").skip(2).step_by(2).collect();
            replies += &match words.as_slice() {
                ["HELLO", ..] if server == Server::SpeaksResp2 => "-ERR unknown command\r\n".to_owned(),
                ["HELLO", ..] => "%1\r\n+proto\r\n:3\r\n".to_owned(),
                ["PING", token, ..] => format!("+{token}\r\n"),
                ["CLIENT", "ID", ..] => ":5\r\n".to_owned(),
                ["CLIENT", "TRACKING", rest @ ..] => {
                    tracking = Some(rest.join(" "));
                    let refusal = "-NOPERM no permissions\r\n";
                    if server == Server::Refuses { refusal } else { "+OK\r\n" }.to_owned()
                }
                _ => "+OK\r\n".to_owned(),
            };
        }
        self.reply_on(generation, replies.as_bytes());
        tracking
    }

    fn come_up(&mut self, server: Server) -> Option<String> {
        self.now = self.bridge.poll_timeout().unwrap_or(self.now).max(self.now);
        let generation = self.bridge.poll_dial(self.now).expect("a dial is due");
        self.bridge.opened(self.now, generation, None);
        let tracking = self.greet(generation, server);
        assert_eq!(self.bridge.link_state(), LinkState::Up);
        tracking
    }
}

fn keys(keys: &[&'static str]) -> TrackingNews {
    TrackingNews::Keys(keys.iter().map(|key| bytes::Bytes::from_static(key.as_bytes())).collect())
}

#[test]
fn each_connection_asks_for_announcements_and_says_when_it_has_them() {
    let mut rig = rig(Tracking::OptIn);
    assert_eq!(rig.come_up(Server::Agrees).as_deref(), Some("ON OPTIN"));
    assert!(rig.bridge.info().unwrap().has_tracking);
    assert_eq!(rig.news(), [TrackingNews::Began]);
    rig.lose();
    assert_eq!(rig.come_up(Server::Agrees).as_deref(), Some("ON OPTIN"));
    assert_eq!(rig.news(), [TrackingNews::Ended, TrackingNews::Began]);
    assert!(!rig.bridge.has_tracking_news());
}

#[test]
fn prefixes_are_sent_and_a_refusal_costs_nothing_but_the_cache() {
    let mut rig = rig(Tracking::Broadcast(vec!["user:".into(), "job:".into()]));
    let sent = rig.come_up(Server::Refuses);
    assert_eq!(sent.as_deref(), Some("ON BCAST PREFIX user: PREFIX job:"));
    assert_eq!((rig.news(), rig.bridge.info().unwrap().has_tracking), (vec![], false));
    assert_eq!(rig.bridge.info().unwrap().refused[0].0, Step::Tracking);
    rig.lose();
    rig.news();
    rig.come_up(Server::SpeaksResp2);
    assert_eq!(rig.news(), [], "RESP2 has no room for announcements, whatever the server says");
}

#[test]
fn announcements_keep_their_order_and_are_no_unknown_pushes() {
    let mut rig = rig(Tracking::OptIn);
    rig.come_up(Server::Agrees);
    rig.reply(INVALIDATE);
    rig.reply(b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nc\r\n");
    rig.reply(INVALIDATE_ALL);
    assert_eq!(rig.news(), [TrackingNews::Began, keys(&["a", "b", "c"]), TrackingNews::All]);
    // What cannot be read may be about any key.
    rig.reply(b">2\r\n$10\r\ninvalidate\r\n*1\r\n:7\r\n");
    assert_eq!(rig.news(), [TrackingNews::All]);
    assert_eq!(rig.bridge.counters().pushes_unknown, 0);
    rig.reply(b">2\r\n$5\r\nother\r\n_\r\n");
    assert_eq!(rig.bridge.counters().pushes_unknown, 1);
}

#[test]
fn more_keys_than_are_kept_are_all_keys() {
    let mut rig = rig(Tracking::OptIn);
    rig.come_up(Server::Agrees);
    rig.news();
    for _ in 0..10_000 {
        rig.reply(INVALIDATE);
    }
    assert_eq!(rig.news(), [TrackingNews::All]);
    rig.reply(INVALIDATE);
    assert_eq!(rig.news(), [keys(&["a", "b"])], "the count begins anew");
}

#[test]
fn a_handoff_ends_what_was_read_before_the_cut() {
    let mut rig = rig(Tracking::OptIn);
    rig.come_up(Server::Agrees);
    let old = rig.bridge.generation();
    let pending = rig.get("a");
    rig.write_on(old);
    // Busy, so that it moves at once; the maintenance notice is the server's.
    rig.reply_on(old, MOVING);
    rig.news();
    let dial = rig.bridge.poll_handoff_dial(rig.now).expect("a busy connection dials at once");
    rig.bridge.opened(rig.now, dial.generation, None);
    assert_eq!(rig.greet(dial.generation, Server::Agrees).as_deref(), Some("ON OPTIN"));
    assert_eq!(rig.bridge.generation(), dial.generation, "it has cut over");
    assert_eq!(rig.news(), [TrackingNews::Ended, TrackingNews::Began]);
    // The connection that was left still has a reply and an announcement to give.
    rig.reply_on(old, b"$1\r\nx\r\n");
    rig.reply_on(old, INVALIDATE);
    assert!(rig.bridge.poll_outcome(pending, |_| 0).is_some());
    assert!(rig.news().len() <= 1);
}

#[test]
fn a_bridge_without_a_cache_asks_for_nothing() {
    let mut parts = parts();
    (parts.handshake.peer, parts.handshake.protocol) = (Peer::Server, ProtocolChoice::Resp3);
    let mut rig = Rig::new(parts);
    assert_eq!(rig.come_up(Server::Agrees), None);
    rig.reply(INVALIDATE);
    assert_eq!((rig.news(), rig.bridge.counters().pushes_unknown), (vec![], 1));
}
