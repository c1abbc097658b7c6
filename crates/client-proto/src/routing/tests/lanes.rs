//! Several connections to each node.

use towline_cluster::key_slot;
use towline_spec::SideEffect;

use super::world::{Claim, World};
use crate::command::Flags;
use crate::error::Sent;

/// Three keys, each of another one of three lanes.
const KEYS: [&str; 3] = ["foo", "bar", "baz"];

/// A client with three lanes to each of three servers; the first has all keys.
fn world() -> World {
    let mut world = World::with_lanes(&[1, 2, 3], 3);
    KEYS.iter().for_each(|key| world.move_slot(key_slot(key.as_bytes()), 1));
    world.refresh();
    let mut lanes = KEYS.map(|key| world.at_lane_of(key, 1));
    lanes.sort_unstable();
    assert!(lanes.windows(2).all(|two| two[0] != two[1]), "{lanes:?}");
    world
}

#[test]
fn each_lane_has_a_connection_and_slots_of_its_own() {
    let mut world = world();
    assert_eq!(world.places(), 9);
    let mut claims = KEYS.map(|key| world.append(key, "a"));
    for key in KEYS {
        let at = world.at_lane_of(key, 1);
        world.write(at, usize::MAX);
        world.serve(at, usize::MAX);
        assert_eq!(world.values(key), "a", "only its own lane was written");
    }
    world.turn();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
}

/// A lane that is lost keeps its keys waiting, in their order; the others do not notice.
#[test]
fn a_lane_that_is_down_holds_up_its_own_keys_only() {
    let mut world = world();
    let foo = world.at_lane_of("foo", 1);
    let mut sent = world.append("foo", "a");
    world.write(foo, usize::MAX);
    let mut waiting = vec![world.append("foo", "b")];
    world.cut_at(foo);
    assert_eq!(world.failed(&mut sent).1, Sent::Maybe);
    waiting.push(world.append("foo", "c"));
    let mut others = ["bar", "baz"].map(|key| world.append(key, "x"));
    world.turn();
    others.iter_mut().for_each(|claim| world.succeeded(claim));
    assert!(waiting.iter_mut().all(|claim| world.outcome(claim).is_none()));
    world.settle();
    waiting.iter_mut().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values("foo"), "b c");
}

#[test]
fn a_slot_that_moves_goes_from_lane_to_lane_and_waits_for_its_own() {
    let mut world = world();
    let (foo_one, foo_two) = (world.at_lane_of("foo", 1), world.at_lane_of("foo", 2));
    let mut claims: Vec<Claim> = ["a", "b"].map(|value| world.append("foo", value)).into();
    world.write(foo_one, usize::MAX);
    world.serve(foo_one, 1);
    claims.push(world.append("foo", "c"));
    // Both slots move while only the first lane has something under way.
    for key in ["foo", "bar"] {
        world.move_slot(key_slot(key.as_bytes()), 2);
    }
    world.refresh();
    let mut later = [world.append("foo", "d"), world.append("bar", "x")];
    let bar_two = world.at_lane_of("bar", 2);
    for at in [foo_two, bar_two] {
        world.write(at, usize::MAX);
        world.serve(at, usize::MAX);
        world.read(at);
    }
    assert_eq!(world.outcome(&mut later[0]), None, "it waits for what the old node has");
    world.succeeded(&mut later[1]);
    world.turn();
    claims.iter_mut().chain(&mut later[..1]).for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values("foo"), "a b c d");
    assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0));
}

#[test]
fn a_redirect_is_followed_to_the_same_lane() {
    let mut world = world();
    for key in KEYS {
        let slot = key_slot(key.as_bytes());
        world.open_slot(slot, 3);
        world.gone.insert(key.into());
    }
    let mut claims: Vec<Claim> =
        KEYS.iter().flat_map(|key| ["a", "b"].map(|value| world.append(key, value))).collect();
    for key in KEYS {
        let at = world.at_lane_of(key, 1);
        world.write(at, usize::MAX);
        world.serve(at, usize::MAX);
        world.read(at);
    }
    world.carry();
    for key in KEYS {
        let at = world.at_lane_of(key, 3);
        world.write(at, usize::MAX);
        world.serve(at, usize::MAX);
        assert_eq!(world.values(key), "a b");
        world.read(at);
    }
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
}

#[test]
fn a_node_that_leaves_hands_over_every_lane() {
    let mut world = world();
    let mut claims: Vec<Claim> = KEYS.iter().map(|key| world.append(key, "a")).collect();
    for key in KEYS {
        let at = world.at_lane_of(key, 1);
        world.write(at, usize::MAX);
        world.serve(at, usize::MAX);
    }
    claims.extend(KEYS.map(|key| world.append(key, "b")));
    let keyless = world.submit_keyless(1, Flags::NONE);
    for slot in 0..16_384 {
        if world.owner_of(slot) == 1 {
            world.move_slot(slot, 2);
        }
    }
    world.servers.remove(&1);
    world.refresh();
    assert_eq!(world.retired(), 1, "once, and not for each lane");
    claims.extend(KEYS.map(|key| world.append(key, "c")));
    claims.push(keyless);
    for key in KEYS {
        let at = world.at_lane_of(key, 1);
        world.read(at);
    }
    world.turn();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
    for key in KEYS {
        assert_eq!(world.values(key), "a b c");
    }
    assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0));
}

#[test]
fn a_refusal_for_now_holds_up_one_slot_of_one_lane() {
    let mut world = world();
    world.servers.get_mut(&1).unwrap().refusal = Some("TRYAGAIN Multiple keys request");
    let mut first = world.append("foo", "a");
    world.turn();
    world.servers.get_mut(&1).unwrap().refusal = None;
    let mut later = world.append("foo", "b");
    let mut read = world.submit(&["GET", "bar"], Flags::NONE, SideEffect::ReadOnly);
    world.turn();
    world.succeeded(&mut read);
    assert_eq!(world.outcome(&mut later), None);
    world.settle();
    [&mut first, &mut later].into_iter().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values("foo"), "a b");
}
