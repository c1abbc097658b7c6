use proptest::prelude::*;

use super::*;
use crate::maintenance::SlotMove;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn address(port: u16) -> Address {
    Address::new("10.0.0.1", port).unwrap()
}

fn node(id: &str, port: u16) -> NodeInfo {
    NodeInfo { id: Some(id.into()), address: Some(address(port)), ..NodeInfo::default() }
}

/// A view in which each node has the slots up to its bound.
fn view(nodes: &[(&str, u16, Slot)]) -> View {
    let mut view = View::default();
    let mut first = 0;
    for (at, (id, port, last)) in nodes.iter().enumerate() {
        view.topology.nodes.push(node(id, *port));
        if *last >= first {
            view.topology.slots.set_range(SlotRange { first, last: *last }, at);
            first = last.saturating_add(1);
        }
    }
    view
}

fn router() -> Router {
    let mut router = Router::new(at(0), RouterConfig::default(), 1);
    assert!(router.poll_refresh(at(0)));
    let change = router.refreshed(at(1), &[view(&[("a", 1, 9_999), ("b", 2, 16_383)])]);
    assert_eq!((change.added.len(), change.moved.len()), (2, 2));
    router
}

fn owner(router: &Router, slot: Slot) -> u16 {
    router.owner(slot).unwrap().address.port
}

fn id_of(router: &Router, port: u16) -> EndpointId {
    router.endpoints().find(|endpoint| endpoint.address.port == port).unwrap().id
}

#[test]
fn where_the_role_is_identity_a_demoted_primary_is_another_endpoint() {
    let of = |primary: u16, replica: u16| {
        let mut view = View::default();
        let info = |port, role| NodeInfo { address: Some(address(port)), role, ..NodeInfo::default() };
        view.topology.nodes = vec![info(primary, Role::Primary), info(replica, Role::Replica)];
        view.topology.slots.set(0, Some(0));
        view
    };
    for is_role_identity in [true, false] {
        let config = RouterConfig { is_role_identity, ..RouterConfig::default() };
        let mut router = Router::new(at(0), config, 1);
        router.told(at(1), &of(1, 2).topology);
        let old = router.owner(0).unwrap().id;
        let change = router.told(at(2), &of(2, 1).topology);
        let new = router.owner(0).unwrap();
        assert_eq!((new.address.port, new.info.role), (2, Role::Primary));
        assert_eq!(change.moved, [(Some(old), new.id, vec![0])]);
        assert_eq!(change.removed.contains(&old), is_role_identity);
        assert_eq!(router.endpoint(old).is_none(), is_role_identity);
        assert_eq!(router.endpoints().count(), 2);
        assert!(router.told(at(3), &of(2, 1).topology).is_empty());
    }
}

#[test]
fn an_heir_has_all_slots_of_whom_it_followed_until_views_have_caught_up() {
    let mut old = view(&[("a", 1, 9_999), ("b", 2, 16_383)]);
    old.topology.nodes.push(NodeInfo { role: Role::Replica, primary: Some(0), ..node("c", 3) });
    let mut router = Router::new(at(0), RouterConfig::default(), 1);
    router.told(at(1), &old.topology);
    let (a, c) = (id_of(&router, 1), id_of(&router, 3));
    assert_eq!(router.heirs_of(a), [c]);
    assert!(router.heirs_of(c).is_empty() && router.heirs_of(id_of(&router, 2)).is_empty());
    // It was given one slot before, by a redirect.
    router.moved(at(2), a, 5, Some(&address(2)));
    let change = router.succeeded(at(10), a, c);
    assert_eq!(change.moved.len(), 1);
    assert_eq!((owner(&router, 0), owner(&router, 9_999), owner(&router, 5)), (3, 3, 2));
    assert_eq!(router.endpoint(c).unwrap().info.role, Role::Primary);
    // Nobody is asked who has nothing to inherit, and an old view takes nothing back.
    assert!(router.heirs_of(a).is_empty());
    router.told(at(1000), &old.topology);
    assert_eq!(owner(&router, 0), 3);
    router.told(at(10 + 3000), &old.topology);
    assert_eq!(owner(&router, 0), 1, "but what the cluster insists on is believed");
    // Who is no endpoint any more changes nothing.
    let gone = EndpointId(99);
    assert!(router.succeeded(at(4000), gone, c).is_empty() && router.succeeded(at(4000), a, gone).is_empty());
}

/// Who has changed sides is known last: the view that follows a failover at once is often old in that.
#[test]
fn a_change_is_looked_at_twice_more() {
    let mut router = router();
    let views = |last: u16| [view(&[("a", 1, last), ("b", 2, 16_383)])];
    let mut due = Vec::new();
    let mut now = 1;
    // The first map was a change as well.
    for last in [9_999, 9_999, 8_000, 8_000, 8_000] {
        let at_due = router.poll_timeout().unwrap();
        due.push(at_due.since(at(now)).as_secs());
        now = at_due.since(at(0)).as_millis() as u64;
        assert!(router.poll_refresh(at(now)));
        router.refreshed(at(now), &views(last));
    }
    assert_eq!(due, [2, 5, 60, 2, 5]);
    assert_eq!(router.poll_timeout().unwrap().since(at(now)).as_secs(), 60);
}

#[test]
fn a_redirect_of_the_owner_changes_one_slot() {
    let mut router = router();
    let (a, b) = (id_of(&router, 1), id_of(&router, 2));
    let (to, change) = router.moved(at(10), a, 5, Some(&address(2)));
    assert_eq!((to, change.moved), (Some(b), vec![(Some(a), b, vec![5])]));
    assert_eq!((owner(&router, 5), owner(&router, 6)), (2, 1));
    // Somebody else's is followed to the owner that the map has.
    let (to, change) = router.moved(at(11), a, 5, Some(&address(9)));
    assert_eq!(to, Some(b));
    assert!(change.is_empty());
    let (to, change) = router.moved(at(12), b, 7, None);
    assert_eq!(to, Some(a), "nobody knows where to");
    assert!(change.is_empty());
}

#[test]
fn a_redirect_to_a_stranger_brings_it_in() {
    let mut router = router();
    let a = id_of(&router, 1);
    let (to, change) = router.moved(at(10), a, 5, Some(&address(3)));
    assert_eq!(change.added, vec![to.unwrap()]);
    assert_eq!(owner(&router, 5), 3);
}

#[test]
fn views_that_lag_behind_do_not_undo_a_redirect() {
    let mut router = router();
    let a = id_of(&router, 1);
    router.moved(at(10), a, 5, Some(&address(2)));
    let old = view(&[("a", 1, 9_999), ("b", 2, 16_383)]);
    assert!(router.poll_refresh(at(2000)));
    assert!(router.refreshed(at(2000), std::slice::from_ref(&old)).moved.is_empty());
    router.request_refresh(at(4000), crate::routing::RefreshCause::Urgent);
    assert!(router.poll_refresh(at(4100)));
    let change = router.refreshed(at(4100), &[old]);
    assert_eq!(change.moved[0].2, [5], "by now everybody would know");
}

/// Pain 14: every address is new, the nodes are the same.
#[test]
fn a_node_that_moved_is_a_new_endpoint_and_its_old_one_goes() {
    let mut router = router();
    let a = id_of(&router, 1);
    let change = router.take(at(5000), &view(&[("a", 11, 9_999), ("b", 2, 16_383)]).topology);
    assert_eq!(change.removed, [a]);
    assert_eq!((change.added.len(), change.moved[0].2.len()), (1, 10_000));
    assert_eq!(owner(&router, 0), 11);
}

/// Pain 11: `MOVED` says the IP address, the view says the name.
#[test]
fn another_name_of_a_node_is_that_node() {
    let mut router = router();
    let mut named = view(&[("a", 1, 9_999), ("b", 2, 16_383)]);
    named.topology.nodes[0].aliases.push(Address::new("one.example", 1).unwrap());
    assert!(router.take(at(10), &named.topology).removed.is_empty());
    let b = id_of(&router, 2);
    let (to, change) = router.moved(at(20), b, 16_000, Address::new("ONE.example", 1).as_ref());
    assert!(change.added.is_empty());
    assert_eq!(to, Some(id_of(&router, 1)));
    // Now the cluster prefers names: the connection by number stays.
    let mut renamed = view(&[("a", 1, 9_999), ("b", 2, 16_383)]);
    renamed.topology.nodes[0].aliases.push(address(1));
    renamed.topology.nodes[0].address = Address::new("one.example", 1);
    let change = router.take(at(30), &renamed.topology);
    assert!(change.added.is_empty() && change.removed.is_empty(), "{change:?}");
}

#[test]
fn a_slot_that_nobody_has_keeps_its_last_owner() {
    let mut router = router();
    let change = router.take(at(10), &view(&[("b", 2, 5_000)]).topology);
    assert_eq!((owner(&router, 0), owner(&router, 6_000)), (2, 1));
    assert!(change.removed.is_empty());
}

#[test]
fn announced_moves_change_the_map() {
    let mut router = router();
    let moves = vec![SlotMove {
        source: Some(address(1)),
        destination: address(2),
        slots: vec![SlotRange { first: 3, last: 5 }, SlotRange { first: 16_000, last: 16_001 }],
    }];
    let change = router.slots_moved(at(10), &SlotsMoved { seq: Some(1), moves, is_complete: true });
    assert_eq!(change.moved.len(), 1);
    assert_eq!(change.moved[0].2, [3, 4, 5]);
    assert_eq!(owner(&router, 4), 2);
}

/// A thousand slots move one after the other while five hundred clients use them: each is told of every move by a
/// redirect, patches its map, and asks for the whole of it once a second at most, not all of them at one time.
#[test]
fn five_hundred_clients_ask_once_a_second_while_a_thousand_slots_move() {
    const CLIENTS: u64 = 500;
    let mut known = [view(&[("a", 1, 9_999), ("b", 2, 16_383)])];
    let mut clients: Vec<Router> = (0..CLIENTS)
        .map(|seed| {
            let mut router = Router::new(at(0), RouterConfig::default(), seed);
            assert!(router.poll_refresh(at(0)));
            router.refreshed(at(1), &known);
            router
        })
        .collect();
    let mut in_second = [0_u64; 12];
    for slot in 0..1000_u16 {
        let now = 2_000 + u64::from(slot) * 10;
        known[0].topology.slots.set(slot, Some(1));
        for router in &mut clients {
            let a = id_of(router, 1);
            router.moved(at(now), a, slot, Some(&address(2)));
            if router.poll_refresh(at(now)) {
                in_second[(now / 1000) as usize - 2] += 1;
                router.refreshed(at(now + 2), &known);
            }
        }
    }
    for router in &clients {
        assert!((0..1000).all(|slot| owner(router, slot) == 2), "every redirect has changed the map");
        // The first one, and no more than one in each of the ten seconds.
        assert!((2..=11).contains(&router.refreshes()), "{} refreshes", router.refreshes());
    }
    assert!(in_second.iter().all(|count| *count <= CLIENTS), "{in_second:?}");
}

#[test]
fn strangers_are_bounded() {
    let mut router = router();
    let mut change = Change::default();
    let found =
        (0..5000).filter(|port| router.endpoint_at(at(1), &address(100 + port), &mut change).is_some());
    assert_eq!(found.count(), UNSEEN_MAX);
}

proptest! {
    #[test]
    fn every_slot_has_an_owner_that_is_an_endpoint(
        steps in prop::collection::vec((0_u8..4, 0_u16..16_384, 1_u16..8, 0_u64..2_000), 0..60),
    ) {
        let mut router = router();
        let mut now = 10;
        let mut known: Vec<EndpointId> = router.endpoints().map(|endpoint| endpoint.id).collect();
        for (what, slot, port, pause) in steps {
            now += pause;
            let change = match what {
                0 => router.take(at(now), &view(&[("a", port, slot), ("b", 2, 16_383)]).topology),
                1 => router.take(at(now), &view(&[("c", port, 16_383)]).topology),
                _ => {
                    let by = router.owner(slot).unwrap().id;
                    router.moved(at(now), by, slot, Some(&address(port))).1
                }
            };
            known.extend(&change.added);
            for (from, to, slots) in &change.moved {
                prop_assert!(known.contains(to) && from.is_none_or(|from| known.contains(&from)));
                prop_assert!(!slots.is_empty() && Some(*to) != *from);
            }
            known.retain(|id| !change.removed.contains(id));
            let now_known: Vec<EndpointId> = router.endpoints().map(|endpoint| endpoint.id).collect();
            prop_assert_eq!(now_known.len(), known.len());
            prop_assert!((0..16_384).all(|slot| router.owner(slot).is_some()));
        }
    }
}
