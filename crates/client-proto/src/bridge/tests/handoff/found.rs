//! What the simulator found last.

use super::*;

#[test]
fn what_is_sent_again_and_what_waited_for_its_keys_go_in_the_order_of_submission() {
    let mut rig = with_order(HandoffOrder::PerKey);
    rig.connect();
    let old = rig.bridge.generation();
    let first = rig.incr("a");
    rig.write_to(old, usize::MAX);
    let lost = rig.announce();
    rig.shake(lost);
    let read = rig.get("b");
    assert!(texts(&rig.write_to(lost, usize::MAX)).ends_with("$1 b "));
    let parked = rig.incr("a");
    assert!(rig.write_to(lost, usize::MAX).is_empty());
    rig.bridge.lost(rig.now, lost, LostCause::Reset);
    rig.reply_from(old, b":1\r\n");
    rig.connect();
    assert_eq!(texts(&rig.write(usize::MAX)), "*2 $3 GET $1 b *2 $4 INCR $1 a ");
    rig.reply(b"$1\r\nx\r\n:2\r\n");
    assert_eq!((rig.outcome(first), rig.outcome(parked)), (integer(1), integer(2)));
    assert!(matches!(rig.outcome(read), Some(Ok(_))));
}

#[test]
fn a_closed_bridge_ends_with_the_last_answer_of_the_connection_that_was_left() {
    let mut rig = with_order(HandoffOrder::None);
    rig.connect();
    let old = rig.bridge.generation();
    let read = rig.get("a");
    rig.write_to(old, usize::MAX);
    let lost = rig.announce();
    rig.shake(lost);
    rig.bridge.lost(rig.now, lost, LostCause::Reset);
    rig.bridge.close(rig.now);
    assert!(!rig.bridge.is_finished(), "an answer may still come");
    rig.bridge.lost(rig.now, old, LostCause::Reset);
    assert!(rig.bridge.is_finished());
    assert!(rig.outcome(read).expect("it has ended").is_err());
}
