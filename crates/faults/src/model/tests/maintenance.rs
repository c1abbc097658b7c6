//! Announced maintenance: who is told what, and who is closed when.

use super::*;

const ON: &str = "CLIENT MAINT_NOTIFICATIONS ON";
const C: ConnectionId = ConnectionId(3);
const OTHER: EndpointId = EndpointId(1);

/// A rig whose connections speak RESP3; `A` wants to be told.
fn told() -> Rig {
    let mut rig = rig();
    for connection in [A, B] {
        rig.call(connection, &["HELLO 3"]);
    }
    assert_eq!(rig.call(A, &[ON]), "1:+OK");
    rig
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn opting_in_needs_resp3_and_knows_its_forms() {
    let mut rig = rig();
    assert_eq!(rig.call(A, &[ON]), "1:-ERR maintenance notifications need RESP3: call HELLO 3 first");
    rig.call(A, &["HELLO 3"]);
    assert_eq!(rig.model.notified(A), None);
    for (form, known) in [
        ("internal-ip", EndpointForm::InternalIp),
        ("internal-fqdn", EndpointForm::InternalFqdn),
        ("external-ip", EndpointForm::ExternalIp),
        ("external-fqdn", EndpointForm::ExternalFqdn),
        ("none", EndpointForm::None),
    ] {
        assert_eq!(
            rig.call(A, &[&format!("client maint_notifications on moving-endpoint-type {form}")]),
            "1:+OK"
        );
        assert_eq!(rig.model.notified(A), Some(known));
    }
    for wrong in ["maybe", "ON moving-endpoint-type auto", "ON moving-endpoint-type", "ON none", "OFF now"] {
        let reply = rig.call(A, &[&format!("CLIENT MAINT_NOTIFICATIONS {wrong}")]);
        assert_eq!(reply, "1:-ERR syntax error", "{wrong}");
    }
    assert_eq!(rig.call(A, &[ON]), "1:+OK");
    assert_eq!(rig.model.notified(A), Some(EndpointForm::ServerDefault));
    assert_eq!(rig.call(A, &["CLIENT MAINT_NOTIFICATIONS OFF"]), "1:+OK");
    assert_eq!(rig.model.notified(A), None);
}

#[test]
fn a_server_without_maintenance_does_not_know_the_command() {
    let mut rig = Rig::new(ModelConfig { has_maintenance: false, ..ModelConfig::default() });
    rig.call(A, &["HELLO 3"]);
    assert_eq!(
        rig.call(A, &[ON, "client maint_notifications off"]),
        "1:-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP. -ERR unknown subcommand \
         'maint_notifications'. Try CLIENT HELP."
    );
    assert_eq!(rig.model.ledger().executed_by(A).count(), 1, "what is unknown is not executed");
}

#[test]
fn a_move_is_told_to_those_who_asked_in_the_form_they_asked_for() {
    let mut rig = told();
    rig.model.connect(rig.now, C).unwrap();
    rig.call(C, &["HELLO 3", &format!("{ON} moving-endpoint-type none")]);
    let elsewhere = ConnectionId(4);
    rig.model.connect_to(rig.now, elsewhere, OTHER).unwrap();
    rig.call(elsewhere, &["HELLO 3", ON]);
    let window = Duration::from_millis(15_900);
    assert_eq!(rig.model.announce_moving(rig.now, EndpointId::DEFAULT, window, Some("b:1"), 17), 2);
    assert_eq!(rig.take(), "1:>4 $6 MOVING :17 :15 $3 b:1 3:>4 $6 MOVING :17 :15 _");
    assert_eq!(rig.model.announce_moving(rig.now, EndpointId(7), window, None, 18), 0, "nobody is there");
    assert_eq!(rig.model.connections_of(EndpointId::DEFAULT).collect::<Vec<_>>(), [A, B, C]);
}

#[test]
fn the_end_of_a_window_closes_exactly_the_connections_that_were_there() {
    let mut rig = told();
    rig.model.connect_to(rig.now, C, OTHER).unwrap();
    rig.model.announce_moving(rig.now, EndpointId::DEFAULT, secs(2), Some("b:1"), 1);
    rig.take();
    rig.pass(secs(1));
    let late = ConnectionId(4);
    rig.model.connect(rig.now, late).unwrap();
    rig.call(late, &["HELLO 3"]);
    assert_eq!(rig.call(late, &[ON]), "4:+OK >4 $6 MOVING :1 :1 $3 b:1", "told of the rest of the time");
    assert_eq!(rig.call(B, &[ON]), "2:+OK >4 $6 MOVING :1 :1 $3 b:1");
    assert_eq!(rig.pass(Duration::from_millis(999)), "");
    assert_eq!(rig.pass(Duration::from_millis(1)), "1:close 2:close");
    assert_eq!(rig.call(late, &["PING", ON]), "4:+PONG +OK", "what is over is not told");
    assert_eq!(rig.call(C, &["PING"]), "3:+PONG");
    assert_eq!(rig.model.poll_timeout(), None);
}

#[test]
fn waits_are_released_at_the_end_and_what_stands_behind_them_runs() {
    let mut rig = told();
    rig.send(A, &["BLPOP l 0", "SET k id:1"]);
    rig.model.announce_moving(rig.now, EndpointId::DEFAULT, secs(1), None, 1);
    assert_eq!(rig.take(), "1:>4 $6 MOVING :1 :1 _");
    rig.model.connect_to(rig.now, C, OTHER).unwrap();
    rig.send(C, &["BLPOP l 0"]);
    assert_eq!(rig.pass(secs(1)), "1:_ +OK close 2:close");
    assert_eq!(rig.model.ledger().execution_count(1), 1);
    let later = ConnectionId(4);
    rig.model.connect(rig.now, later).unwrap();
    assert_eq!(rig.call(later, &["RPUSH l x"]), "4::1 3:*2 $1 l $1 x", "no element is lost to a closed wait");
}

#[test]
fn a_wait_can_be_released_from_another_endpoint() {
    let mut rig = told();
    rig.send(A, &["BLPOP l 0"]);
    rig.model.connect_to(rig.now, C, OTHER).unwrap();
    assert_eq!(rig.call(C, &["CLIENT UNBLOCK 1 TIMEOUT"]), "1:_ 3::1");
}

#[test]
fn a_busy_server_closes_when_it_is_no_longer_busy() {
    let mut rig = told();
    rig.model.announce_moving(rig.now, EndpointId::DEFAULT, secs(1), None, 1);
    rig.take();
    rig.model.busy(rig.now, secs(3));
    rig.send(A, &["SET k id:1"]);
    assert_eq!(rig.pass(Duration::from_millis(2999)), "");
    assert_eq!(rig.pass(Duration::from_millis(1)), "1:+OK close 2:close");
}

#[test]
fn overlapping_moves_end_each_in_its_time() {
    let mut rig = told();
    rig.model.announce_moving(rig.now, EndpointId::DEFAULT, secs(3), Some("b:1"), 1);
    rig.model.announce_moving(rig.now, EndpointId::DEFAULT, secs(1), Some("c:1"), 2);
    assert_eq!(rig.take(), "1:>4 $6 MOVING :1 :3 $3 b:1 >4 $6 MOVING :2 :1 $3 c:1");
    assert_eq!(rig.pass(secs(1)), "1:close 2:close");
    assert_eq!(rig.pass(secs(2)), "");
}

#[test]
fn the_other_notices_have_their_shapes_and_open_ones_are_told_again() {
    let mut rig = told();
    let shards = || "[\"2\", \"4\"]".to_owned();
    let starts_in = Duration::from_millis(2500);
    let opening = [
        Notice::Migrating { starts_in, shards: shards() },
        Notice::FailingOver { starts_in, shards: shards() },
        Notice::Smigrating { slots: "1,5-7".into() },
    ];
    for (seq, notice) in (19..).zip(opening) {
        assert_eq!(rig.model.announce(rig.now, None, seq, notice), 1);
    }
    assert_eq!(
        rig.take(),
        "1:>4 $9 MIGRATING :19 :2 $10 [\"2\", \"4\"] >4 $12 FAILING_OVER :20 :2 $10 [\"2\", \"4\"] >3 $10 SMIGRATING :21 \
         $5 1,5-7"
    );
    rig.pass(secs(1));
    assert_eq!(
        rig.call(B, &[ON]),
        "2:+OK >4 $9 MIGRATING :19 :1 $10 [\"2\", \"4\"] >4 $12 FAILING_OVER :20 :1 $10 [\"2\", \"4\"] >3 $10 SMIGRATING \
         :21 $5 1,5-7"
    );
    rig.call(B, &["CLIENT MAINT_NOTIFICATIONS OFF"]);
    let moved = |destination: &str| SlotMove {
        source: "a:1".into(),
        destination: destination.into(),
        slots: "5-7".into(),
    };
    let closing = [
        Notice::Migrated { shards: shards() },
        Notice::FailedOver { shards: shards() },
        Notice::Smigrated { moves: vec![moved("b:1"), moved("c:1")] },
    ];
    for (seq, notice) in (22..).zip(closing) {
        assert_eq!(rig.model.announce(rig.now, None, seq, notice), 1);
    }
    assert_eq!(
        rig.take(),
        "1:>3 $8 MIGRATED :22 $10 [\"2\", \"4\"] >3 $11 FAILED_OVER :23 $10 [\"2\", \"4\"] >3 $9 SMIGRATED :24 *2 *3 $3 a:1 \
         $3 b:1 $3 5-7 *3 $3 a:1 $3 c:1 $3 5-7"
    );
    assert_eq!(rig.call(B, &[ON]), "2:+OK", "nothing is open");
}

#[test]
fn an_endpoint_refuses_or_is_silent_to_new_connections_only() {
    let mut rig = told();
    rig.model.connect_to(rig.now, C, OTHER).unwrap();
    rig.model.set_access(OTHER, Access::Refusing);
    let (fourth, fifth) = (ConnectionId(4), ConnectionId(5));
    assert_eq!(rig.model.connect_to(rig.now, fourth, OTHER), Err(ConnectError::Refused));
    assert_eq!(rig.call(C, &["PING"]), "3:+PONG");
    rig.model.set_access(OTHER, Access::Silent);
    rig.model.connect_to(rig.now, fourth, OTHER).unwrap();
    rig.model.set_access(OTHER, Access::Serving);
    assert_eq!(rig.call(fourth, &["SET k id:1"]), "");
    assert_eq!(rig.model.ledger().execution_count(1), 0);
    rig.model.connect_to(rig.now, fifth, OTHER).unwrap();
    assert_eq!(rig.call(fifth, &["SET k id:1"]), "5:+OK");
    assert_eq!(rig.model.close_endpoint(rig.now, OTHER), 3);
    assert_eq!(rig.take(), "3:close 4:close 5:close");
}

#[test]
fn endpoints_share_the_data_and_the_ledger_tells_them_apart() {
    let mut rig = told();
    rig.model.connect_to(rig.now, C, OTHER).unwrap();
    rig.call(A, &["SET k id:1"]);
    assert_eq!(rig.call(C, &["GET k", "SET k id:2"]), "3:$4 id:1 +OK");
    let order: Vec<ConnectionId> = rig.model.ledger().order_of(b"k").map(|entry| entry.connection).collect();
    assert_eq!(order, [A, C, C]);
    let by_c: Vec<Option<u64>> = rig.model.ledger().executed_by(C).map(|entry| entry.id).collect();
    assert_eq!(by_c, [None, Some(2)]);
}

#[test]
fn a_restart_forgets_what_was_announced() {
    let mut rig = told();
    rig.model.announce_moving(rig.now, EndpointId::DEFAULT, secs(9), None, 1);
    rig.model.announce(rig.now, None, 2, Notice::Smigrating { slots: "1".into() });
    rig.model.restart(rig.now, Keep::Everything);
    rig.take();
    rig.model.connect(rig.now, C).unwrap();
    rig.call(C, &["HELLO 3"]);
    assert_eq!(rig.call(C, &[ON]), "3:+OK");
    assert_eq!(rig.model.poll_timeout(), None);
}
