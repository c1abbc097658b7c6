//! A connection that does not move.

use super::*;
use crate::bridge::MaintenanceEvent;
use crate::handoff::Target;
use crate::handshake::MaintenanceRequest;

const NAMED: &[u8] = b">4\r\n$6\r\nMOVING\r\n:17\r\n:15\r\n$16\r\n203.0.113.7:6379\r\n";
const NULL: &[u8] = b">4\r\n$6\r\nMOVING\r\n:17\r\n:15\r\n_\r\n";
const SHORT: &[u8] = b">4\r\n$6\r\nMOVING\r\n:17\r\n:1\r\n_\r\n";

fn leased(seed: u64) -> Rig {
    let mut parts = parts();
    parts.handshake.maintenance = Some(MaintenanceRequest { moving_endpoint_type: None, is_required: false });
    parts.config.hands_off = false;
    parts.seed = seed;
    Rig::new(parts)
}

#[test]
fn the_moment_to_leave_is_drawn_within_a_fifth_of_the_window() {
    let mut moments = Vec::new();
    for seed in 0..50 {
        let mut rig = leased(seed);
        rig.connect();
        rig.reply(NAMED);
        let leaving = rig.bridge.leaving().unwrap();
        assert_eq!(leaving.until, rig.now + Duration::from_secs(15));
        assert!(matches!(&leaving.target, Target::Named(address) if address.port == 6379));
        moments.push(leaving.leave_at.since(rig.now));
    }
    assert!(moments.iter().all(|after| *after <= Duration::from_secs(3)), "{moments:?}");
    moments.sort_unstable();
    moments.dedup();
    assert!(moments.len() > 40, "they are spread: {moments:?}");
}

#[test]
fn without_a_successor_it_is_left_after_half_of_the_window_and_in_time() {
    for seed in 0..50 {
        let mut rig = leased(seed);
        rig.connect();
        rig.reply(NULL);
        let after = rig.bridge.leaving().unwrap().leave_at.since(rig.now);
        assert!((7500..=10_500).contains(&after.as_millis()), "{after:?}");
        let leaving = rig.bridge.leaving().unwrap().clone();
        rig.reply(SHORT);
        let again = rig.bridge.leaving().unwrap();
        assert_eq!(again.leave_at, rig.now, "nothing is left for the last second");
        assert!(again.until < leaving.until);
        rig.reply(NAMED);
        assert_eq!(
            rig.bridge.leaving().unwrap().leave_at,
            rig.now,
            "what is said again is no reason to stay"
        );
    }
}

#[test]
fn who_waits_on_it_is_woken_and_an_event_tells() {
    let mut rig = leased(1);
    rig.connect();
    let ticket = rig.submit_as(&["BLPOP", "k", "0"], SideEffect::NonIdempotent, Flags::NO_RETRY).unwrap();
    assert!(rig.bridge.poll_outcome(ticket, |_| 7).is_none());
    rig.write(usize::MAX);
    rig.reply(NAMED);
    let mut wakes = Vec::new();
    rig.bridge.take_wakes(&mut wakes);
    assert_eq!(wakes, [7]);
    assert!(rig.bridge.poll_outcome(ticket, |_| 7).is_none(), "it is still blocked");
    let leaving = |event: &Event| matches!(event, Event::Maintenance(MaintenanceEvent::Leaving { .. }));
    assert!(std::iter::from_fn(|| rig.bridge.poll_event()).any(|event| leaving(&event)));
    assert_eq!(rig.bridge.counters().handoffs, 0);
}

#[test]
fn what_is_said_again_during_the_handshake_counts_and_ends_with_the_connection() {
    let mut rig = leased(1);
    rig.now = rig.bridge.poll_timeout().unwrap_or(rig.now).max(rig.now);
    let generation = rig.bridge.poll_dial(rig.now).unwrap();
    rig.bridge.opened(rig.now, generation, None);
    rig.write(usize::MAX);
    rig.reply(NAMED);
    rig.reply(b"+PONG\r\n");
    assert_eq!(rig.bridge.link_state(), LinkState::Up);
    assert!(rig.bridge.leaving().is_some());
    rig.bridge.lost(rig.now, generation, LostCause::Closed);
    rig.connect();
    assert!(rig.bridge.leaving().is_none(), "the next connection stays");
}
