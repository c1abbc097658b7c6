use std::time::Duration;

use towline_cluster::key_slot;
use towline_spec::SideEffect;

use super::world::{Claim, World};
use crate::command::{Encoder, Flags, Order, Reply};
use crate::error::Sent;
use crate::routing::REDIRECTS_MAX;

const KEY: &str = "foo";

/// A world in which server 1 has the slot of `KEY`, and the client knows it.
fn world() -> World {
    let mut world = World::new(&[1, 2, 3]);
    world.move_slot(key_slot(KEY.as_bytes()), 1);
    world.refresh();
    assert_eq!(world.owner_of(key_slot(KEY.as_bytes())), 1);
    world
}

#[test]
fn a_command_goes_to_its_slot_and_follows_it() {
    let mut world = world();
    let slot = key_slot(KEY.as_bytes());
    let mut first = world.append(KEY, "a");
    world.turn();
    world.succeeded(&mut first);
    world.move_slot(slot, 2);
    let mut second = world.append(KEY, "b");
    world.turn();
    world.succeeded(&mut second);
    assert_eq!((world.values(KEY).as_str(), world.owner_of(slot)), ("a b", 2));
    assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0));
}

/// What is said to one server has no slot, whatever command had its number before.
#[test]
fn what_is_meant_for_one_server_is_carried_to_no_other() {
    let mut world = world();
    let mut before = world.append(KEY, "a");
    world.turn();
    world.succeeded(&mut before);
    world.cut(1);
    let mut meant = world.ask(1);
    world.move_slot(key_slot(KEY.as_bytes()), 2);
    world.refresh();
    world.turn();
    assert!(world.outcome(&mut meant).is_none(), "the other server answered");
    world.settle();
    world.succeeded(&mut meant);
}

/// A later command does not overtake an earlier one that was sent to the wrong node.
#[test]
fn order_is_kept_across_a_redirect() {
    let mut world = world();
    world.move_slot(key_slot(KEY.as_bytes()), 2);
    let (one, two) = (world.at(1), world.at(2));
    let mut claims = vec![world.append(KEY, "a"), world.append(KEY, "b")];
    world.write(one, usize::MAX);
    claims.push(world.append(KEY, "c"));
    // The first is sent back; the second is still at the server, the third in the queue.
    world.serve(one, 1);
    world.read(one);
    world.carry();
    assert_eq!(world.owner_of(key_slot(KEY.as_bytes())), 2);
    claims.push(world.append(KEY, "d"));
    world.write(two, usize::MAX);
    assert!(world.input(2).contains("$1 a ") && !world.input(2).contains("$1 d "), "{}", world.input(2));
    world.serve(two, 1);
    world.turn();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b c d");
    assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0));
}

/// A command that is still in the queue when its slot moves twice is not overtaken by one that was submitted in between. It
/// leaves late, because a writer has bytes of its log.
#[test]
fn order_is_kept_if_the_first_owner_is_the_last_to_give_up_what_it_has() {
    let mut world = world();
    let slot = key_slot(KEY.as_bytes());
    let one = world.at(1);
    let mut claims = vec![world.append(KEY, "a")];
    world.write(one, 10);
    claims.push(world.append(KEY, "b"));
    for (owner, value) in [(2, "c"), (3, "d")] {
        world.move_slot(slot, owner);
        world.refresh();
        claims.push(world.append(KEY, value));
    }
    world.turn();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b c d");
    assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0));
}

/// The same for two commands that were sent: the older one has gone on to the second owner when the slot moves again, and the
/// younger one comes back first.
#[test]
fn what_comes_back_to_a_third_owner_waits_for_what_is_older() {
    let mut world = world();
    let slot = key_slot(KEY.as_bytes());
    let (one, two, three) = (world.at(1), world.at(2), world.at(3));
    let mut claims: Vec<Claim> = ["a", "b"].map(|value| world.append(KEY, value)).into();
    world.write(one, usize::MAX);
    world.move_slot(slot, 2);
    world.serve(one, 1);
    world.read(one);
    world.carry();
    world.write(two, usize::MAX);
    assert!(world.input(2).contains("$1 a "), "{}", world.input(2));
    world.move_slot(slot, 3);
    world.wait(4000);
    world.refresh();
    assert_eq!(world.owner_of(slot), 3);
    world.serve(one, 1);
    world.read(one);
    world.carry();
    world.write(three, usize::MAX);
    world.serve(three, 1);
    assert_eq!(world.values(KEY), "", "the first is at the second server still");
    world.turn();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b");
}

/// What a server refuses for now after its slot has gone follows the slot at once.
#[test]
fn a_refusal_for_now_by_a_former_owner_does_not_keep_the_command() {
    let mut world = world();
    let one = world.at(1);
    let mut claims = vec![world.append(KEY, "a")];
    world.write(one, usize::MAX);
    world.servers.get_mut(&1).unwrap().refusal = Some("TRYAGAIN Multiple keys request");
    world.move_slot(key_slot(KEY.as_bytes()), 2);
    world.refresh();
    claims.push(world.append(KEY, "b"));
    world.turn();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b");
}

/// A redirect that is on its way to the router is older than what was refused for now behind it.
#[test]
fn what_waits_does_not_overtake_a_redirect_that_moves_its_slot() {
    let mut world = world();
    let one = world.at(1);
    let mut claims: Vec<Claim> = ["a", "b"].map(|value| world.append(KEY, value)).into();
    world.write(one, usize::MAX);
    world.move_slot(key_slot(KEY.as_bytes()), 2);
    world.serve(one, 1);
    world.servers.get_mut(&1).unwrap().refusal = Some("TRYAGAIN Multiple keys request");
    world.serve(one, 1);
    world.read(one);
    world.turn();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b");
}

/// A redirect that names nobody brings a command back to the bridge that it came from.
#[test]
fn order_is_kept_if_a_redirect_names_nobody() {
    let mut world = world();
    let one = world.at(1);
    world.servers.get_mut(&1).unwrap().refusal = Some("MOVED 12182 nowhere");
    let mut claims = vec![world.append(KEY, "a")];
    world.write(one, usize::MAX);
    claims.push(world.append(KEY, "b"));
    world.serve(one, 1);
    world.servers.get_mut(&1).unwrap().refusal = None;
    world.read(one);
    world.carry();
    world.settle();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b");
}

/// What was sent behind a refused command and is lost unsent does not go before it on the next connection.
#[test]
fn what_a_loss_brings_back_waits_behind_what_was_refused() {
    let mut world = world();
    let one = world.at(1);
    world.servers.get_mut(&1).unwrap().refusal = Some("TRYAGAIN Multiple keys request");
    let mut refused = world.append(KEY, "a");
    world.write(one, usize::MAX);
    let mut unsent = world.append(KEY, "b");
    world.write(one, 10);
    world.serve(one, 1);
    world.read(one);
    world.servers.get_mut(&1).unwrap().refusal = None;
    world.cut(1);
    world.settle();
    [&mut refused, &mut unsent].into_iter().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b");
}

/// Pain 13: `ASKING` and its command are one unit; what is sent beside them does not come between.
#[test]
fn asking_and_its_command_are_one_unit() {
    let mut world = world();
    let slot = key_slot(KEY.as_bytes());
    world.open_slot(slot, 2);
    world.gone.insert(KEY.into());
    let (one, two) = (world.at(1), world.at(2));
    let mut first = world.append(KEY, "a");
    let mut second = world.append(KEY, "b");
    world.write(one, usize::MAX);
    world.serve(one, usize::MAX);
    world.read(one);
    world.carry();
    world.write(two, usize::MAX);
    let input = world.input(2);
    assert_eq!(input.matches("ASKING *3 $6 APPEND").count(), 2, "{input}");
    world.turn();
    assert_eq!(
        world.outcome(&mut first).unwrap().unwrap(),
        Reply::One(towline_resp::frame::Frame::Integer(1))
    );
    world.succeeded(&mut second);
    assert_eq!(world.owner_of(slot), 1, "the slot is where it was");
    assert_eq!(world.values(KEY), "a b");
}

#[test]
fn a_refusal_for_now_makes_its_slot_wait_and_no_other() {
    let mut world = world();
    world.servers.get_mut(&1).unwrap().refusal =
        Some("TRYAGAIN Multiple keys request during rehashing of slot");
    let mut first = world.append(KEY, "a");
    world.turn();
    world.servers.get_mut(&1).unwrap().refusal = None;
    let mut second = world.append(KEY, "b");
    let other = (0..).map(|n| format!("k{n}")).find(|key| {
        world.owner_of(key_slot(key.as_bytes())) == 1 && key_slot(key.as_bytes()) != key_slot(KEY.as_bytes())
    });
    let mut beside = world.append(&other.unwrap(), "x");
    world.turn();
    world.succeeded(&mut beside);
    assert_eq!(world.outcome(&mut second), None, "it waits for the first");
    world.settle();
    world.succeeded(&mut first);
    world.succeeded(&mut second);
    assert_eq!(world.values(KEY), "a b");
}

#[test]
fn what_waits_follows_its_slot() {
    let mut world = world();
    world.servers.get_mut(&1).unwrap().refusal = Some("CLUSTERDOWN The cluster is down");
    let mut claims: Vec<Claim> = ["a", "b", "c"].map(|value| world.append(KEY, value)).into();
    world.turn();
    claims.push(world.append(KEY, "d"));
    world.move_slot(key_slot(KEY.as_bytes()), 3);
    world.refresh();
    claims.push(world.append(KEY, "e"));
    world.turn();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b c d e");
}

/// Pain 12: a write to a replica waits for the map.
#[test]
fn a_write_that_reached_a_replica_waits_for_the_map() {
    let mut world = world();
    world.servers.get_mut(&1).unwrap().refusal =
        Some("READONLY You can't write against a read only replica.");
    let mut claim = world.append(KEY, "a");
    world.turn();
    assert_eq!(world.outcome(&mut claim), None);
    assert!(world.router.poll_timeout().unwrap() < world.now + Duration::from_secs(2), "a refresh is due");
    world.move_slot(key_slot(KEY.as_bytes()), 2);
    world.refresh();
    world.turn();
    world.succeeded(&mut claim);
}

/// Pain 11: two nodes that name each other.
#[test]
fn a_loop_ends_after_a_bounded_number_of_redirects() {
    let mut world = world();
    let slot = key_slot(KEY.as_bytes());
    for server in world.servers.values_mut() {
        server.slots.remove(&slot);
    }
    world.servers.get_mut(&1).unwrap().elsewhere.insert(slot, 2);
    world.servers.get_mut(&2).unwrap().elsewhere.insert(slot, 1);
    let order = Order {
        effect: SideEffect::NonIdempotent,
        replies: 1,
        deadline: world.now + Duration::from_secs(60),
        flags: Flags::NONE,
        bytes: crate::command::encoded_len(&["APPEND", KEY, "a"]),
        room: None,
    };
    let begun = world.now;
    let mut claim = world.submit_order(slot, &order, |out| out.command(&["APPEND", KEY, "a"]));
    world.settle();
    let (text, sent) = world.failed(&mut claim);
    assert!(text.starts_with("MOVED") && sent == Sent::Answered, "{text} {sent:?}");
    let took = world.now.since(begun);
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(8), "{took:?}");
    const { assert!(REDIRECTS_MAX == 16) };
}

#[test]
fn a_transaction_is_sent_on_as_a_whole() {
    let mut world = world();
    let slot = key_slot(KEY.as_bytes());
    world.move_slot(slot, 2);
    let encode = |out: &mut Encoder<'_>| {
        out.command(&["MULTI"]);
        out.command(&["APPEND", KEY, "a"]);
        out.command(&["APPEND", KEY, "b"]);
        out.command(&["EXEC"]);
    };
    let order = Order {
        effect: SideEffect::NonIdempotent,
        replies: 4,
        deadline: world.now + Duration::from_secs(5),
        flags: Flags::TRANSACTION,
        bytes: 100,
        room: None,
    };
    let mut claim = world.submit_order(slot, &order, encode);
    world.turn();
    let Reply::Many(frames) = world.outcome(&mut claim).unwrap().unwrap() else { panic!("a unit") };
    assert_eq!(frames.len(), 4);
    assert_eq!(world.values(KEY), "a b");
    // The same to where a slot is being imported.
    world.open_slot(slot, 3);
    world.gone.insert(KEY.into());
    let mut claim = world.submit_order(slot, &order, encode);
    world.turn();
    let Reply::Many(frames) = world.outcome(&mut claim).unwrap().unwrap() else { panic!("a unit") };
    assert_eq!((frames.len(), world.values(KEY).as_str()), (4, "a b a b"));
}

#[test]
fn a_failover_moves_what_was_not_sent_and_fails_what_may_have_run() {
    let mut world = world();
    let one = world.at(1);
    let mut sent = world.append(KEY, "a");
    world.write(one, usize::MAX);
    let mut unsent = world.append(KEY, "b");
    world.servers.get_mut(&1).unwrap().is_dead = true;
    world.cut(1);
    let mut read = world.submit(&["GET", KEY], Flags::NONE, SideEffect::ReadOnly);
    world.connect();
    world.carry();
    assert!(world.router.poll_timeout().unwrap() < world.now + Duration::from_secs(2), "a refresh is due");
    assert_eq!(world.failed(&mut sent).1, Sent::Maybe);
    for slot in 0..16_384 {
        if world.owner_of(slot) == 1 {
            world.move_slot(slot, 3);
        }
    }
    world.refresh();
    world.turn();
    world.succeeded(&mut unsent);
    world.succeeded(&mut read);
    assert_eq!(world.values(KEY), "b");
}

#[test]
fn a_read_that_was_sent_to_a_dead_node_is_repeated_elsewhere() {
    let mut world = world();
    let one = world.at(1);
    let mut read = world.submit(&["GET", KEY], Flags::NONE, SideEffect::ReadOnly);
    world.write(one, usize::MAX);
    world.move_slot(key_slot(KEY.as_bytes()), 2);
    world.refresh();
    // The map has changed while the read is out; its node dies before it answers.
    world.servers.get_mut(&1).unwrap().is_dead = true;
    world.cut(1);
    world.turn();
    world.succeeded(&mut read);
}

#[test]
fn a_node_that_leaves_answers_what_it_has_and_hands_over_the_rest() {
    let mut world = world();
    let one = world.at(1);
    let mut sent = world.append(KEY, "a");
    world.write(one, usize::MAX);
    world.serve(one, usize::MAX);
    let mut unsent = world.append(KEY, "b");
    for slot in 0..16_384 {
        if world.owner_of(slot) == 1 {
            world.move_slot(slot, 2);
        }
    }
    world.servers.remove(&1);
    world.refresh();
    assert_eq!(world.retired(), 1);
    let mut later = world.append(KEY, "c");
    world.read(one);
    world.turn();
    [&mut sent, &mut unsent, &mut later].into_iter().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b c");
}

#[test]
fn what_any_node_may_serve_leaves_a_node_that_is_lost() {
    let mut world = world();
    world.servers.get_mut(&1).unwrap().is_dead = true;
    let mut anywhere = world.submit_keyless(1, Flags::NONE);
    let mut here = world.submit_keyless(1, Flags::PINNED);
    world.cut(1);
    world.carry();
    world.turn();
    world.succeeded(&mut anywhere);
    assert_eq!(world.outcome(&mut here), None, "it is for this node and no other");
}

#[test]
fn who_gives_up_leaves_nothing_behind() {
    let mut world = world();
    world.servers.get_mut(&1).unwrap().refusal = Some("CLUSTERDOWN The cluster is down");
    let first = world.append(KEY, "a");
    world.turn();
    let second = world.append(KEY, "b");
    world.abandon(first);
    world.abandon(second);
    world.servers.get_mut(&1).unwrap().refusal = None;
    world.move_slot(key_slot(KEY.as_bytes()), 2);
    let one = world.at(1);
    let third = world.append(KEY, "c");
    world.write(one, usize::MAX);
    world.serve(one, 1);
    world.read(one);
    world.abandon(third);
    world.settle();
    assert_eq!((world.values(KEY).as_str(), world.leftovers(), world.unsent_bytes()), ("", 0, 0));
}

#[test]
fn waiting_ends_with_the_deadline_and_says_that_nothing_ran() {
    let mut world = world();
    world.servers.get_mut(&1).unwrap().refusal = Some("CLUSTERDOWN The cluster is down");
    let mut first = world.append(KEY, "a");
    world.turn();
    let mut second = world.append(KEY, "b");
    world.settle();
    for claim in [&mut first, &mut second] {
        let (text, sent) = world.failed(claim);
        assert_eq!((text.as_str(), sent), ("deadline passed", Sent::No));
    }
    assert_eq!((world.leftovers(), world.unsent_bytes()), (0, 0));
}

#[test]
fn what_nobody_waits_for_follows_too() {
    let mut world = world();
    world.move_slot(key_slot(KEY.as_bytes()), 2);
    for value in ["a", "b", "c"] {
        world.submit(&["APPEND", KEY, value], Flags::FIRE_AND_FORGET, SideEffect::NonIdempotent);
    }
    world.turn();
    assert_eq!((world.values(KEY).as_str(), world.leftovers()), ("a b c", 0));
}

#[test]
fn a_reply_that_overtakes_the_writer_is_followed_all_the_same() {
    let mut world = world();
    world.move_slot(key_slot(KEY.as_bytes()), 2);
    let mut claims: Vec<Claim> = ["a", "b"].map(|value| world.append(KEY, value)).into();
    // Both have left the queue, and the kernel has the first with a part of the second.
    let one = world.at(1);
    world.write(one, 40);
    world.serve(one, 1);
    world.read(one);
    world.carry();
    claims.push(world.append(KEY, "c"));
    world.settle();
    claims.iter_mut().for_each(|claim| world.succeeded(claim));
    assert_eq!(world.values(KEY), "a b c");
}
