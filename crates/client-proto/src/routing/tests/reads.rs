//! Reads at replicas, and what becomes of those that a replica does not answer.

use towline_cluster::key_slot;

use super::world::World;
use crate::command::Flags;
use crate::error::Sent;
use crate::routing::ReadFrom;

const KEY: &str = "foo";

/// A world in which server 1 has the slot of `KEY` and servers 7 and 8 follow it.
fn world() -> World {
    let mut world = World::new(&[1, 2]);
    world.move_slot(key_slot(KEY.as_bytes()), 1);
    world.add_replica(7, 1);
    world.add_replica(8, 1);
    world
}

#[test]
fn a_replica_answers() {
    let mut world = world();
    let mut read = world.read_at(7, KEY, ReadFrom::Replica, Flags::NONE);
    world.turn();
    assert_eq!(world.place_of(&mut read), (7, true));
    world.succeeded(&mut read);
    assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0));
}

/// Pain: a read fails because a replica loads, has lost its primary, or does not follow the slot any more.
#[test]
fn what_a_replica_refuses_the_primary_answers() {
    for refusal in [
        "LOADING Redis is loading the dataset in memory",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "CLUSTERDOWN The cluster is down",
        "MOVED 12182 10.0.0.1:1",
        "ASK 12182 10.0.0.1:2",
        "TRYAGAIN Multiple keys request during rehashing of slot",
    ] {
        for policy in [ReadFrom::PreferReplica, ReadFrom::Any, ReadFrom::Nearest] {
            let mut world = world();
            for replica in [7, 8] {
                world.servers.get_mut(&replica).unwrap().refusal = Some(refusal);
            }
            let mut read = world.read_at(7, KEY, policy, Flags::NO_RETRY);
            world.turn();
            assert_eq!(world.place_of(&mut read), (1, false), "{refusal}");
            world.succeeded(&mut read);
            assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0));
        }
    }
}

#[test]
fn where_the_primary_must_not_answer_another_replica_does() {
    let mut world = world();
    world.servers.get_mut(&7).unwrap().refusal = Some("LOADING Redis is loading the dataset in memory");
    let mut read = world.read_at(7, KEY, ReadFrom::Replica, Flags::NONE);
    world.turn();
    assert_eq!(world.place_of(&mut read), (8, true));
    world.succeeded(&mut read);
    // If none can, the last that was asked is asked again after a wait, by the rules of a single endpoint.
    world.servers.get_mut(&8).unwrap().refusal = Some("LOADING Redis is loading the dataset in memory");
    let mut read = world.read_at(7, KEY, ReadFrom::Replica, Flags::NONE);
    world.turn();
    assert_eq!(world.outcome(&mut read), None);
    world.settle();
    let (text, sent) = world.failed(&mut read);
    assert!(text.starts_with("LOADING") && sent == Sent::Answered, "{text}, {sent:?}");
}

#[test]
fn what_a_dead_replica_had_others_answer() {
    let mut world = world();
    let place = world.reader_at(7);
    let mut sent = world.read_at(7, KEY, ReadFrom::PreferReplica, Flags::NONE);
    world.write(place, usize::MAX);
    let mut unsent = world.read_at(7, KEY, ReadFrom::PreferReplica, Flags::NONE);
    let mut strict = world.read_at(7, KEY, ReadFrom::Replica, Flags::NONE);
    world.servers.get_mut(&7).unwrap().is_dead = true;
    world.cut(7);
    world.turn();
    for read in [&mut sent, &mut unsent, &mut strict] {
        assert_eq!(world.place_of(read), (8, true));
        world.succeeded(read);
    }
    assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0));
}

/// A read that was sent to a replica is not sent again where its caller does not want that.
#[test]
fn no_retry_holds_for_reads_at_replicas() {
    let mut world = world();
    let place = world.reader_at(7);
    let mut read = world.read_at(7, KEY, ReadFrom::PreferReplica, Flags::NO_RETRY);
    world.write(place, usize::MAX);
    world.cut(7);
    world.turn();
    assert_eq!(world.failed(&mut read).1, Sent::Maybe);
}

#[test]
fn without_another_replica_a_read_waits_for_its_own() {
    let mut world = World::new(&[1, 2]);
    world.move_slot(key_slot(KEY.as_bytes()), 1);
    world.add_replica(7, 1);
    world.servers.get_mut(&7).unwrap().is_dead = true;
    world.cut(7);
    let mut read = world.read_at(7, KEY, ReadFrom::Replica, Flags::NONE);
    for _ in 0..5 {
        world.connect();
        world.turn();
        world.wait(50);
    }
    assert_eq!(world.outcome(&mut read), None);
    world.servers.get_mut(&7).unwrap().is_dead = false;
    world.settle();
    world.succeeded(&mut read);
}

/// What a replica was asked when the cluster let it go, or made it the primary, has an answer as well.
#[test]
fn a_replica_may_leave_or_take_over() {
    let mut world = world();
    let slot = key_slot(KEY.as_bytes());
    let mut before = world.read_at(7, KEY, ReadFrom::PreferReplica, Flags::NONE);
    let mut gone = world.read_at(8, KEY, ReadFrom::PreferReplica, Flags::NONE);
    world.servers.get_mut(&7).unwrap().follows = None;
    world.move_slot(slot, 7);
    world.servers.remove(&8);
    world.wait(4000);
    world.refresh();
    world.turn();
    assert_eq!(world.owner_of(slot), 7);
    world.succeeded(&mut before);
    assert_eq!(world.place_of(&mut gone), (7, false));
    world.settle();
    world.succeeded(&mut gone);
}
