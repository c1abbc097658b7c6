//! What an error tells about the circumstances.

use super::*;
use crate::diagnosis::{Blame, Diagnosis, Trouble};
use crate::liveness::{Opinion, SecondOpinion};

const MILLI: Duration = Duration::from_millis(1);

impl Rig {
    /// Lets `millis` pass as a punctual runtime does.
    fn pass(&mut self, millis: u32) {
        let end = self.now + MILLI * millis;
        while let Some(due) = self.bridge.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.bridge.handle_timeout(self.now);
            if due <= self.now && self.bridge.poll_timeout() == Some(due) {
                break;
            }
        }
        self.now = end;
        self.bridge.handle_timeout(self.now);
    }

    fn get_within(&mut self, key: &str, millis: u32) -> Ticket {
        let args = ["GET", key];
        let order = Order {
            effect: SideEffect::ReadOnly,
            replies: 1,
            deadline: self.now + MILLI * millis,
            flags: Flags::NONE,
            bytes: crate::command::encoded_len(&args),
            room: None,
        };
        let submitted = self.bridge.submit(self.now, &order, |out| out.command(&args)).unwrap();
        submitted.ticket.unwrap()
    }

    fn failure(&mut self, ticket: Ticket) -> (Error, Diagnosis) {
        let error = self.outcome(ticket).expect("it has ended").unwrap_err();
        let diagnosis = error.diagnosis().expect("it is diagnosed").clone();
        (error, diagnosis)
    }
}

/// A connection that is never found silent.
fn patient() -> Parts {
    let liveness = LivenessConfig { silence_max: Duration::MAX, ..LivenessConfig::default() };
    Parts { liveness, ..parts() }
}

#[test]
fn the_time_of_each_stage_is_told() {
    let mut rig = Rig::new(patient());
    rig.connect();
    let ticket = rig.get_within("k", 1000);
    rig.pass(200);
    let batch = rig.bridge.take_write(rig.now, rig.bridge.generation()).unwrap();
    rig.pass(30);
    let count = batch.len();
    rig.bridge.wrote(rig.now, batch, count);
    rig.pass(770);
    let (error, diagnosis) = rig.failure(ticket);
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Deadline, Sent::Maybe));
    assert_eq!((&*diagnosis.command, diagnosis.stage), ("GET", Stage::OnWire));
    let times = [diagnosis.queued, diagnosis.staged, diagnosis.on_wire].map(|time| time.as_millis());
    assert_eq!(times, [200, 30, 770]);
    assert_eq!(diagnosis.head_of_line.map(|head| head.age), Some(MILLI * 770));
    assert_eq!(diagnosis.generation, Some(rig.bridge.generation()));
}

#[test]
fn what_the_kernel_has_not_taken_is_staged_and_may_still_run() {
    let mut rig = Rig::new(patient());
    rig.connect();
    let ticket = rig.get_within("k", 1000);
    let batch = rig.bridge.take_write(rig.now, rig.bridge.generation()).unwrap();
    rig.bridge.wrote(rig.now, batch, 5);
    rig.pass(1000);
    let (error, diagnosis) = rig.failure(ticket);
    assert_eq!(
        (error.sent(), diagnosis.stage),
        (Sent::Maybe, Stage::Staged),
        "the rest is sent all the same"
    );
    assert_eq!((diagnosis.staged, diagnosis.on_wire), (MILLI * 1000, Duration::ZERO));
}

#[test]
fn a_server_that_answers_others_is_slow() {
    let mut rig = Rig::new(patient());
    rig.connect();
    let (slow, waiting) = (rig.submit_keys(), rig.get_within("k", 1000));
    let behind = rig.get_within("l", 1000);
    rig.write(usize::MAX);
    rig.pass(600);
    rig.reply(b":1\r\n");
    assert_eq!(rig.outcome(slow), integer(1));
    rig.pass(400);
    for ticket in [waiting, behind] {
        let (_, diagnosis) = rig.failure(ticket);
        assert_eq!((diagnosis.blame, diagnosis.in_flight_commands), (Blame::ServerSlow, 2));
        assert_eq!(diagnosis.read_age, Some(MILLI * 400));
        assert_eq!(diagnosis.head_of_line.map(|head| head.name), Some("GET".into()));
    }
}

impl Rig {
    fn submit_keys(&mut self) -> Ticket {
        self.submit_as(&["KEYS", "*"], SideEffect::ReadOnly, Flags::NONE).unwrap()
    }
}

#[test]
fn all_commands_of_a_lost_connection_share_its_last_state() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let tickets = [rig.incr("a"), rig.incr("b"), rig.incr("c")];
    rig.write(usize::MAX);
    rig.pass(1900);
    for ticket in tickets {
        let (error, diagnosis) = rig.failure(ticket);
        assert_eq!(error.kind(), &ErrorKind::Lost(LostCause::Silent));
        assert_eq!((diagnosis.blame, diagnosis.in_flight_commands), (Blame::NetworkSilent, 3));
        assert_eq!(diagnosis.head_of_line.map(|head| head.name), Some("INCR".into()));
        assert_eq!(diagnosis.on_wire, MILLI * 1800);
    }
}

#[test]
fn a_command_that_found_no_connection_says_why_there_was_none() {
    let mut rig = Rig::new(parts());
    let ticket = rig.get_within("k", 1000);
    let generation = rig.bridge.poll_dial(rig.now).unwrap();
    rig.bridge.dial_failed(rig.now, generation, std::io::ErrorKind::ConnectionRefused);
    rig.pass(1000);
    let (error, diagnosis) = rig.failure(ticket);
    assert_eq!((error.sent(), diagnosis.blame), (Sent::No, Blame::NotConnected));
    assert_eq!(diagnosis.generation, None);
    let down = diagnosis.down.unwrap();
    assert_eq!(down.trouble, Trouble::Dial(std::io::ErrorKind::ConnectionRefused));
    assert_eq!(down.since, MILLI * 2000, "since the bridge began");
}

#[test]
fn a_process_that_comes_late_blames_itself() {
    let mut rig = Rig::new(patient());
    rig.connect();
    let ticket = rig.get_within("k", 1000);
    rig.write(usize::MAX);
    rig.now = rig.now + MILLI * 1500;
    rig.bridge.handle_timeout(rig.now);
    let (_, diagnosis) = rig.failure(ticket);
    assert_eq!(diagnosis.blame, Blame::RuntimeStarved);
}

#[test]
fn counters_tell_how_many_commands_share_a_write() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let before = rig.bridge.counters();
    for _ in 0..10 {
        rig.get("k");
    }
    let bytes = rig.write(usize::MAX).len() as u64;
    let after = rig.bridge.counters();
    assert_eq!(after.writes - before.writes, 1);
    assert_eq!(after.written_commands - before.written_commands, 10);
    assert_eq!(after.bytes_written - before.bytes_written, bytes);
    let listed = after.iter().find(|(name, _)| *name == "written_commands");
    assert_eq!(listed, Some(("written_commands", after.written_commands)));
}

#[test]
fn a_snapshot_is_json_without_keys_and_values() {
    let mut rig = Rig::new(patient());
    rig.bridge.set_handshake(HandshakeConfig {
        credentials: Some(crate::Credentials::user("app", "hunter2")),
        ..parts().handshake
    });
    let read = |rig: &Rig| -> serde_json::Value {
        let text = rig.bridge.snapshot(rig.now).to_json();
        for secret in ["secret-key", "secret-value", "hunter2"] {
            assert!(!text.contains(secret), "{text}");
        }
        serde_json::from_str(&text).unwrap()
    };
    let json = read(&rig);
    assert_eq!((&json["link"], &json["down"]["trouble"]), (&"waiting".into(), &"never connected".into()));
    assert_eq!(json["server"], serde_json::Value::Null);

    let mut rig = Rig::new(patient());
    rig.connect();
    let args = ["SET", "secret-key", "secret-value"];
    let _sent = rig.submit_as(&args, SideEffect::Idempotent, Flags::NONE).unwrap();
    rig.write(usize::MAX);
    let _waiting = rig.submit_as(&args, SideEffect::Idempotent, Flags::NONE).unwrap();
    rig.pass(250);
    let json = read(&rig);
    assert_eq!((&json["link"], &json["generation"], &json["down"]), (&"up".into(), &1.into(), &().into()));
    assert_eq!(json["in_flight"]["head_of_line"], serde_json::json!({ "name": "SET", "age_ms": 250 }));
    assert_eq!(
        (&json["backlog"]["commands"], &json["backlog"]["bytes"]),
        (&1.into(), &crate::command::encoded_len(&args).into())
    );
    assert_eq!((&json["counters"]["submitted"], &json["counters"]["writes"]), (&2.into(), &2.into()));
}

#[test]
fn a_silent_peer_is_given_up_within_two_seconds() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let lost = rig.incr("a");
    rig.write(usize::MAX);
    let start = rig.now;
    while rig.bridge.link_state() == LinkState::Up {
        rig.now = rig.bridge.poll_timeout().expect("something is due");
        rig.bridge.handle_timeout(rig.now);
        assert!(rig.now.since(start) < Duration::from_secs(2));
    }
    assert_eq!(rig.sent_of(lost), Sent::Maybe);
}

#[test]
fn only_a_write_that_waits_longest_is_asked_about() {
    let asked_of = |first: fn(&mut Rig) -> Ticket, config: LivenessConfig| {
        let mut rig = Rig::new(Parts { liveness: config, ..parts() });
        rig.connect();
        first(&mut rig);
        rig.incr("behind");
        rig.write(usize::MAX);
        rig.pass(1001);
        let doubt = rig.bridge.poll_second_opinion();
        assert_eq!(rig.bridge.poll_second_opinion(), None, "said once");
        (
            doubt.map(|(_, doubt)| (doubt.about_life, doubt.about_writes)),
            rig.bridge.counters().second_opinions,
        )
    };
    let usual = LivenessConfig::default();
    let curious = LivenessConfig { second_opinion: Some(SecondOpinion::default()), ..usual };
    let incurious = LivenessConfig { held_max: None, ..usual };
    assert_eq!(asked_of(|rig| rig.incr("k"), usual), (Some((false, true)), 1));
    assert_eq!(asked_of(|rig| rig.get("k"), usual), (None, 0));
    assert_eq!(asked_of(|rig| rig.get("k"), curious), (Some((true, false)), 1));
    assert_eq!(asked_of(|rig| rig.incr("k"), curious), (Some((true, true)), 1));
    assert_eq!(asked_of(|rig| rig.incr("k"), incurious), (None, 0));
}

#[test]
fn writes_that_are_held_back_are_answered_in_the_end() {
    let mut rig = Rig::new(parts());
    rig.connect();
    let ticket = rig.incr("k");
    rig.write(usize::MAX);
    rig.pass(1001);
    let (generation, _) = rig.bridge.poll_second_opinion().expect("a write has waited for a second");
    rig.bridge.second_opinion(generation, Opinion::Holds);
    rig.pass(2500);
    assert_eq!(rig.outcome(ticket), None);
    rig.reply(b":1\r\n");
    assert_eq!(rig.outcome(ticket), integer(1));
}
