//! Subscriptions on their way from one connection to its successor.

mod world;

use super::*;
use crate::bridge::Continuity;
use crate::bridge::overlap::FREEZE_MAX;
use crate::subscriptions::{Item, Kind, Overflow};
use world::{Fault, Markers, World, push};

/// Three moves with everything in a drawn order.
fn moves(seed: u64, markers: Markers, fault: Fault) -> World {
    let mut world = World::new(seed, markers);
    for _ in 0..3 {
        world.announce();
        let old = world.rig.bridge.generation();
        let fault_at = world.prng.below(100);
        for at in 0..100 {
            if at == fault_at {
                world.fail(fault, old);
            }
            match world.prng.below(8) {
                0 | 1 => world.publish(),
                2 if world.prng.below(4) == 0 => world.change_guest(),
                _ => {
                    world.step();
                }
            }
        }
        world.settle();
    }
    world.check();
    world
}

#[test]
fn nothing_is_lost_or_doubled_whatever_the_order() {
    for seed in 0..1000 {
        let world = moves(seed, Markers::Allowed, Fault::None);
        assert_eq!(world.totals(), (0, 0), "seed {seed}");
        assert_eq!(world.continuities, [Continuity::Exact; 3], "seed {seed}");
    }
}

#[test]
fn without_a_marker_nothing_is_lost_and_every_subscriber_is_told() {
    for markers in [Markers::NoPublish, Markers::NoSubscribe, Markers::Swallowed] {
        for seed in 0..250 {
            let world = moves(seed, markers, Fault::None);
            assert_eq!(world.continuities, [Continuity::MayRepeat; 3], "seed {seed} {markers:?}");
            let gaps = world.totals().0;
            assert_eq!(gaps, 0, "seed {seed} {markers:?}");
            for reader in &world.readers {
                assert_eq!(reader.overlaps, 3, "seed {seed} {markers:?}: {reader:?}");
            }
        }
    }
}

#[test]
fn a_successor_that_is_lost_on_the_way_costs_nothing() {
    for seed in 0..1000 {
        let world = moves(seed, Markers::Allowed, Fault::NewLost);
        // Lost after the cut it is a lost connection like others.
        if world.continuities == [Continuity::Exact; 3] && world.rig.bridge.counters().successors_failed == 3
        {
            assert_eq!(world.totals(), (0, 0), "seed {seed}");
        }
    }
}

#[test]
fn an_old_connection_that_is_lost_on_the_way_is_told_unless_all_is_known() {
    let mut exact = 0;
    for fault in [Fault::OldLost, Fault::OldClosed] {
        for seed in 0..1000 {
            let world = moves(seed, Markers::Allowed, fault);
            let is_exact = |it: &&Continuity| **it == Continuity::Exact;
            exact += world.continuities.iter().filter(is_exact).count();
        }
    }
    assert!(exact > 100, "{exact}");
}

#[test]
fn faults_of_all_kinds_are_told() {
    for markers in [Markers::NoPublish, Markers::NoSubscribe, Markers::Swallowed] {
        for fault in [Fault::OldLost, Fault::OldClosed, Fault::NewLost] {
            for seed in 0..100 {
                moves(seed, markers, fault);
            }
        }
    }
}

#[test]
fn at_the_marker_the_streams_join_in_any_order_of_delivery() {
    // Messages before and after the marker, and how many frames of the old connection come before those of the new one.
    for (before, after) in (0..3).flat_map(|before| (0..3).map(move |after| (before, after))) {
        for first in 0..12 {
            let mut world = World::marked();
            let (world, old, new) = (&mut world.0, world.1, world.2);
            // The marker was executed already: what is before it stands before it in both streams.
            for generation in [old, new] {
                let conn = world.model.conns.get_mut(&generation).unwrap();
                let marker = conn.output.iter().position(|frame| format!("{frame:?}").contains("handoff:"));
                let tail = conn.output.split_off(marker.expect("the marker is on its way"));
                for number in 0..before {
                    conn.output.push_back(push(&["message", "a", &number.to_string()]));
                    conn.output.push_back(push(&["pmessage", "*", "a", &number.to_string()]));
                }
                conn.output.extend(tail);
            }
            world.model.published.insert((Kind::Channel, "a".to_owned()), before);
            for _ in 0..after {
                world.model.publish_next(Kind::Channel, "a");
            }
            world.deliver(old, first);
            world.deliver(new, usize::MAX);
            if world.rig.bridge.is_wanted(old) {
                world.deliver(old, usize::MAX);
            }
            world.tend();
            assert_eq!(world.continuities, [Continuity::Exact], "{before} {after} {first}");
            world.check();
            assert_eq!(world.totals(), (0, 0), "{before} {after} {first}");
        }
    }
}

#[test]
fn an_old_connection_that_ends_behind_its_marker_is_not_missed() {
    let (mut world, old, new) = World::marked();
    world.publish();
    world.deliver_all(old);
    world.end(old);
    assert_eq!(world.rig.bridge.generation(), new);
    world.publish();
    assert!(world.rig.bridge.has_overlap(), "the place in the new stream is not known yet");
    world.deliver_all(new);
    assert_eq!(world.continuities, [Continuity::Exact]);
    world.check();
    assert_eq!(world.totals(), (0, 0));
}

#[test]
fn an_old_connection_that_ends_before_its_marker_leaves_an_overlap() {
    let (mut world, old, new) = World::marked();
    world.end(old);
    world.publish();
    world.deliver_all(new);
    assert_eq!(world.continuities, [Continuity::MayRepeat]);
    world.check();
    assert_eq!(world.totals(), (0, 4));
}

#[test]
fn a_successor_that_ends_behind_the_old_ones_marker_loses_nothing() {
    let (mut world, old, new) = World::marked();
    for _ in 0..20 {
        world.publish();
    }
    world.deliver_all(old);
    world.end(new);
    world.tend();
    assert_eq!(world.rig.bridge.generation(), old);
    world.check();
    assert_eq!(world.continuities, [Continuity::Exact], "of the second attempt");
    assert_eq!(world.totals(), (0, 0));
}

#[test]
fn a_newer_announcement_begins_anew_and_loses_nothing() {
    let (mut world, old, new) = World::marked();
    world.deliver_all(old);
    world.announce();
    for _ in 0..20 {
        world.publish();
    }
    world.deliver_all(old);
    assert!(!world.rig.bridge.is_wanted(new));
    world.check();
    assert_eq!(world.continuities, [Continuity::Exact]);
    assert_eq!(world.totals(), (0, 0));
}

#[test]
fn more_than_can_be_kept_ends_the_wait_for_the_marker() {
    let (mut world, old, new) = World::marked();
    world.deliver_all(new);
    let large = "x".repeat(1 << 20);
    for _ in 0..10 {
        world.model.publish(Kind::Shard, "s", &large);
    }
    for reader in &world.readers {
        world.rig.bridge.unsubscribe(reader.id, Kind::Shard, ["s"]);
    }
    world.readers.retain(|reader| reader.kind != Kind::Shard);
    world.deliver_all(new);
    assert_eq!(world.continuities, [Continuity::MayRepeat]);
    assert!(!world.rig.bridge.is_wanted(old));
    world.check();
    assert_eq!(world.totals(), (0, 3));
}

#[test]
fn ten_thousand_names_move_in_batches() {
    let mut world = World::new(1, Markers::Allowed);
    let names: Vec<String> = (0..10_000).map(|number| format!("many:{number}")).collect();
    let many = world.rig.bridge.open_subscriber(1 << 20, Overflow::DropOldest).unwrap();
    world.rig.bridge.subscribe(world.rig.now, many, Kind::Channel, &names).unwrap();
    world.settle();
    let old = world.rig.bridge.generation();
    world.announce();
    let begun = world.rig.now;
    world.settle();
    assert_ne!(world.rig.bridge.generation(), old);
    assert_eq!(world.rig.now, begun, "nothing waits for a time");
    assert_eq!(world.continuities, [Continuity::Exact]);
    world.model.publish(Kind::Channel, "many:9999", "0");
    world.settle();
    assert!(matches!(
        world.rig.bridge.poll_item(many, |_| 0),
        std::task::Poll::Ready(Some(Item::Message(message))) if message.channel == "many:9999"
    ));
    assert!(world.rig.bridge.poll_item(many, |_| 0).is_pending());
}

#[test]
fn names_that_come_and_go_while_the_subscriptions_move_are_right_after_it() {
    let (mut world, old, new) = World::marked();
    // Neither connection takes changes now.
    world.change_guest();
    let gone = world.readers.remove(0);
    world.rig.bridge.close_subscriber(world.rig.now, gone.id);
    world.deliver_all(old);
    assert!(!world.guest.as_ref().unwrap().is_granted);
    world.deliver_all(new);
    world.settle();
    assert!(world.guest.as_ref().unwrap().is_granted);
    world.check();
    assert_eq!(world.totals(), (0, 0));
}

#[test]
fn nodes_of_a_cluster_have_no_common_order() {
    let mut world = World::new(1, Markers::Allowed);
    world.model.mode = "cluster";
    world.announce();
    world.settle();
    assert_eq!(world.continuities, [Continuity::MayRepeat]);
    world.check();
    assert_eq!(world.totals(), (0, 4));
}

#[test]
fn a_name_that_the_successor_refuses_is_told_after_the_cut() {
    let mut world = World::new(1, Markers::Allowed);
    world.model.refused = Some(("a", "NOPERM no such channel"));
    world.announce();
    world.settle();
    assert_eq!(world.continuities, [Continuity::Exact]);
    let told: Vec<u32> = world.readers.iter().map(|reader| reader.refused).collect();
    assert_eq!(told, [1, 0, 0, 0]);
    assert_eq!(world.totals(), (0, 0));
}

#[test]
fn a_name_that_the_successor_refuses_for_now_is_waited_for_a_while_and_has_a_gap_then() {
    let mut world = World::new(1, Markers::Allowed);
    let begun = world.rig.now;
    world.model.refused = Some(("a", "CLUSTERDOWN not yet"));
    world.announce();
    while world.continuities.is_empty() {
        world.settle();
        assert!(world.rig.now < begun + Duration::from_secs(8), "within half of the window");
    }
    assert!(world.rig.now > begun + Duration::from_secs(3));
    assert_eq!(world.continuities, [Continuity::Exact]);
    world.model.refused = None;
    world.check();
    let gaps: Vec<u32> = world.readers.iter().map(|reader| reader.gaps).collect();
    assert_eq!(gaps, [1, 1, 0, 0], "of those that were in one command with it");
}

#[test]
fn a_fence_that_does_not_come_in_time_leaves_gaps() {
    let mut world = World::new(1, Markers::Allowed);
    let old = world.rig.bridge.generation();
    world.announce();
    let begun = world.rig.now;
    for _ in 0..1000 {
        world.tend();
        for generation in world.generations() {
            world.flush(generation);
            let input = &world.model.conns[&generation].input;
            // The old connection does not come to its fence.
            if generation != old || input.front().is_some_and(|words| words.len() > 1) {
                world.model.execute(generation);
            }
            world.deliver(generation, usize::MAX);
        }
        if world.model.conns[&old].input.front().is_some_and(|words| words[..] == ["PING"]) {
            break;
        }
    }
    for _ in 0..100 {
        if world.rig.bridge.generation() != old {
            break;
        }
        world.rig.now = world.rig.bridge.poll_timeout().unwrap().max(world.rig.now);
        world.rig.bridge.handle_timeout(world.rig.now);
    }
    assert_eq!(world.rig.now, begun + FREEZE_MAX);
    world.tend();
    assert_eq!(world.continuities, [Continuity::MayMiss]);
    world.publish();
    world.check();
    assert_eq!(world.totals(), (4, 4));
}
