//! What real servers and odd ones say about a cluster, and what is read from it.

use bytes::Bytes;
use proptest::prelude::*;
use towline_resp::frame::Frame;

use crate::{Address, Asked, OpenState, Role, SLOT_COUNT, SlotRange, Topology, View, ViewError, agree};

fn bulk(text: &str) -> Frame {
    Frame::Bulk(Bytes::copy_from_slice(text.as_bytes()))
}

fn int(value: i64) -> Frame {
    Frame::Integer(value)
}

fn list(values: &[Frame]) -> Frame {
    Frame::Array(values.to_vec())
}

/// A set of fields as RESP2 sends it, and as RESP3 does.
fn fields(pairs: &[(&str, Frame)], is_resp3: bool) -> Frame {
    if is_resp3 {
        return Frame::Map(pairs.iter().map(|(name, value)| (bulk(name), value.clone())).collect());
    }
    Frame::Array(pairs.iter().flat_map(|(name, value)| [bulk(name), value.clone()]).collect())
}

fn asked() -> Asked {
    Asked { address: Address::new("seed.example", 7000).unwrap(), is_tls: false }
}

/// `address role zone` of each node with its primary, then the ranges.
fn text(topology: &Topology) -> Vec<String> {
    let name = |at: usize| match &topology.nodes[at].address {
        Some(address) => address.to_string(),
        None => "?".into(),
    };
    let nodes = (0..topology.nodes.len()).map(|at| {
        let node = &topology.nodes[at];
        let primary = node.primary.map_or_else(String::new, |primary| format!(" of {}", name(primary)));
        let zone = node.zone.as_deref().map_or_else(String::new, |zone| format!(" in {zone}"));
        format!("{} {:?} {:?}{primary}{zone}", name(at), node.role, node.health)
    });
    let ranges = topology.slots.ranges().map(|(range, node)| format!("{range} {}", name(node)));
    nodes.chain(ranges).collect()
}

fn shard_node(port: i64, endpoint: Frame, role: &str, more: &[(&str, Frame)], is_resp3: bool) -> Frame {
    let mut pairs = vec![
        ("id", bulk(&format!("{port:040}"))),
        ("port", int(port)),
        ("ip", bulk("127.0.0.1")),
        ("endpoint", endpoint),
        ("role", bulk(role)),
        ("replication-offset", int(0)),
        ("health", bulk("online")),
    ];
    pairs.extend(more.iter().cloned());
    fields(&pairs, is_resp3)
}

#[test]
fn shards_are_read_in_both_protocols() {
    for is_resp3 in [false, true] {
        let node = |port, role, more: &[_]| shard_node(port, bulk("127.0.0.1"), role, more, is_resp3);
        let zone = [("availability-zone", bulk("zone-a"))];
        let shards = list(&[
            fields(
                &[
                    ("slots", list(&[int(0), int(99), int(200), int(200)])),
                    ("nodes", list(&[node(7001, "master", &zone), node(7002, "replica", &[])])),
                    ("id", bulk("0123")),
                ],
                is_resp3,
            ),
            fields(&[("slots", list(&[])), ("nodes", list(&[node(7003, "master", &[])]))], is_resp3),
        ]);
        let view = View::from_shards(&shards, &asked()).unwrap();
        assert_eq!(
            text(&view.topology),
            [
                "127.0.0.1:7001 Primary Online in zone-a",
                "127.0.0.1:7002 Replica Online of 127.0.0.1:7001",
                "127.0.0.1:7003 Primary Online",
                "0-99 127.0.0.1:7001",
                "200 127.0.0.1:7001",
            ]
        );
    }
}

#[test]
fn a_failed_primary_beside_its_heir_owns_nothing() {
    let failed = fields(
        &[
            ("id", bulk("a")),
            ("port", int(1)),
            ("endpoint", bulk("old.example")),
            ("role", bulk("master")),
            ("health", bulk("fail")),
        ],
        true,
    );
    let heir = shard_node(2, bulk("new.example"), "master", &[], true);
    let shard = fields(&[("slots", list(&[int(0), int(5)])), ("nodes", list(&[failed, heir]))], true);
    let view = View::from_shards(&list(&[shard]), &asked()).unwrap();
    assert_eq!(text(&view.topology).last().unwrap(), "0-5 new.example:2");
}

/// Pain 14: nodes without a host, with an unknown one, with IPv6, with a name.
#[test]
fn hosts_in_every_form_lead_somewhere() {
    let one = |endpoint: Frame, more: &[(&str, Frame)]| {
        let node = shard_node(7001, endpoint, "master", more, true);
        let shard = fields(&[("slots", list(&[int(0), int(0)])), ("nodes", list(&[node]))], true);
        let view = View::from_shards(&list(&[shard]), &asked());
        view.map(|view| view.topology.nodes[0].address.as_ref().unwrap().to_string())
    };
    assert_eq!(one(Frame::Null, &[]).unwrap(), "seed.example:7001");
    assert_eq!(one(bulk(""), &[]).unwrap(), "seed.example:7001");
    assert_eq!(one(bulk("?"), &[]).unwrap(), "127.0.0.1:7001", "the address among peers has to do");
    assert_eq!(one(bulk("2001:DB8::1"), &[]).unwrap(), "[2001:db8::1]:7001");
    assert_eq!(one(bulk("Node-1.example"), &[]).unwrap(), "node-1.example:7001");
    let tls = Asked { is_tls: true, ..asked() };
    let node = shard_node(7001, bulk("h"), "master", &[("tls-port", int(7443))], true);
    let shard = fields(&[("slots", list(&[int(0), int(0)])), ("nodes", list(&[node]))], true);
    let view = View::from_shards(&list(&[shard]), &tls).unwrap();
    assert_eq!(view.topology.nodes[0].address.as_ref().unwrap().to_string(), "h:7443");
}

#[test]
fn slots_are_read_in_every_length() {
    let with_names = list(&[
        int(0),
        int(99),
        list(&[
            Frame::Null,
            int(7001),
            bulk("a"),
            fields(&[("ip", bulk("10.0.0.1")), ("hostname", bulk("one.example"))], true),
        ]),
        list(&[bulk("10.0.0.2"), int(7002), bulk("b"), list(&[bulk("hostname"), bulk("two.example")])]),
    ]);
    let short = list(&[int(100), int(199), list(&[bulk("10.0.0.3"), int(7003)])]);
    let again = list(&[
        int(300),
        int(300),
        list(&[bulk("10.0.0.2"), int(7002), bulk("b")]),
        list(&[bulk("?"), int(9)]),
    ]);
    let view = View::from_slots(&list(&[with_names, short, again]), &asked()).unwrap();
    assert_eq!(
        text(&view.topology),
        [
            "seed.example:7001 Primary Online",
            "10.0.0.2:7002 Replica Online of seed.example:7001",
            "10.0.0.3:7003 Primary Online",
            "? Replica Online of 10.0.0.2:7002",
            "0-99 seed.example:7001",
            "100-199 10.0.0.3:7003",
            "300 10.0.0.2:7002",
        ]
    );
    let alias = Address::new("one.example", 7001).unwrap();
    assert_eq!(view.topology.node_at(&alias), Some(0));
}

const NODES: &str = "\
07c3 127.0.0.1:7004@17004,host4.example,shard-id=69bc slave e7d1 0 1426238317239 4 connected
67ed 127.0.0.1:7002@17002 master - 0 1426238316232 2 connected 5461-10922
292f 127.0.0.1:7003@17003,,tls-port=0 master,fail? - 0 1426238318243 3 connected 10923-16383
6ec2 127.0.0.1:7005@17005 slave,fail 67ed 0 1426238316232 5 disconnected
dead :0@0 master,noaddr - 0 0 6 disconnected
beef 127.0.0.1:7009@17009 handshake - 0 0 0 connected
e7d1 :7001@17001,seed.example myself,master - 0 0 1 connected 0-5460 [93-<-292f] [77->-67ed]
bad line
";

#[test]
fn nodes_are_read_with_epochs_and_open_slots() {
    let view = View::from_nodes(&bulk(NODES), &asked()).unwrap();
    assert_eq!(
        text(&view.topology),
        [
            "127.0.0.1:7004 Replica Online of seed.example:7001",
            "127.0.0.1:7002 Primary Online",
            "127.0.0.1:7003 Primary Online",
            "127.0.0.1:7005 Replica Failed of 127.0.0.1:7002",
            "? Primary Failed",
            "seed.example:7001 Primary Online",
            "0-5460 seed.example:7001",
            "5461-10922 127.0.0.1:7002",
            "10923-16383 127.0.0.1:7003",
        ]
    );
    assert_eq!(view.myself, Some(5));
    let open: Vec<_> = view.open.iter().map(|open| (open.slot, open.state, &*open.other)).collect();
    assert_eq!(open, [(93, OpenState::Importing, "292f"), (77, OpenState::Migrating, "67ed")]);
    assert_eq!(view.topology.nodes[2].epoch, Some(3));
}

#[test]
fn what_is_no_topology_is_an_error() {
    let shape = Err(ViewError::Shape);
    assert_eq!(View::from_shards(&bulk("x"), &asked()), shape);
    assert_eq!(View::from_shards(&list(&[int(1)]), &asked()), shape);
    assert_eq!(View::from_slots(&Frame::Error("ERR".into()), &asked()), shape);
    assert_eq!(View::from_nodes(&int(1), &asked()), shape);
    assert_eq!(View::from_slots(&list(&[]), &asked()), Err(ViewError::Empty));
    let nowhere = list(&[list(&[int(0), int(1), list(&[bulk("?"), int(7001), bulk("a")])])]);
    assert_eq!(View::from_slots(&nowhere, &asked()), Err(ViewError::Empty));
}

/// A view of two nodes, `a` and `b`, in which `b` has the slots from `border` on.
fn halves(border: u16, myself: usize, epochs: Option<(u64, u64)>) -> View {
    let node = |id: &str, port, epoch| crate::NodeInfo {
        id: Some(id.into()),
        address: Address::new("10.0.0.1", port),
        epoch,
        ..crate::NodeInfo::default()
    };
    let mut view = View { myself: Some(myself), ..View::default() };
    let nodes = [node("a", 1, epochs.map(|it| it.0)), node("b", 2, epochs.map(|it| it.1))];
    view.topology.nodes = nodes.to_vec();
    view.topology.slots.set_range(SlotRange { first: 0, last: border - 1 }, 0);
    view.topology.slots.set_range(SlotRange { first: border, last: 16383 }, 1);
    view
}

fn border(views: &[View]) -> u16 {
    let topology = agree(views).unwrap();
    let first = topology.slots.ranges().find(|(_, node)| topology.nodes[*node].id.as_deref() == Some("b"));
    first.map_or(0, |(range, _)| range.first)
}

#[test]
fn most_views_decide_then_claims_then_epochs() {
    let view = |at, myself| halves(at, myself, None);
    assert_eq!(border(&[view(100, 2), view(100, 2), view(50, 2)]), 100, "the majority");
    assert_eq!(border(&[view(100, 2), view(50, 1)]), 50, "b claims what is disputed");
    assert_eq!(border(&[view(50, 2), view(100, 0)]), 100, "a does");
    assert_eq!(border(&[view(100, 2), view(50, 2)]), 100, "the first of equals");
    let epochs = |at, a, b| halves(at, 2, Some((a, b)));
    assert_eq!(border(&[epochs(100, 3, 4), epochs(100, 3, 4), epochs(50, 3, 7)]), 50, "the newest epoch");
}

#[test]
fn an_uncovered_slot_counts_for_nobody() {
    let mut blind = halves(100, 2, None);
    blind.topology.slots.set(7, None);
    let topology = agree(&[blind.clone(), blind, halves(100, 2, None)]).unwrap();
    assert_eq!(topology.slots.covered(), SLOT_COUNT);
}

#[test]
fn a_node_with_another_number_in_each_view_is_one_node() {
    let mut turned = halves(100, 0, None);
    turned.topology.nodes.reverse();
    turned.topology.slots.set_range(SlotRange { first: 0, last: 99 }, 1);
    turned.topology.slots.set_range(SlotRange { first: 100, last: 16383 }, 0);
    turned.topology.nodes[1].role = Role::Primary;
    let topology = agree(&[halves(100, 0, None), turned]).unwrap();
    assert_eq!(topology.nodes.len(), 2);
    assert_eq!(text(&topology)[2..], ["0-99 10.0.0.1:1", "100-16383 10.0.0.1:2"]);
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let word = prop_oneof![
        Just("id"),
        Just("port"),
        Just("nodes"),
        Just("slots"),
        Just("endpoint"),
        Just("role"),
        Just("replica"),
        Just("?"),
        Just(""),
        Just("::1"),
        Just("[5->-x]"),
        Just(NODES),
    ];
    let leaf = prop_oneof![
        word.prop_map(bulk),
        (-2_i64..20_000).prop_map(int),
        any::<i64>().prop_map(int),
        Just(Frame::Null),
        any::<Vec<u8>>().prop_map(|bytes| Frame::Bulk(bytes.into())),
    ];
    leaf.prop_recursive(5, 120, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Frame::Array),
            prop::collection::vec((inner.clone(), inner.clone()), 0..6).prop_map(Frame::Map),
            inner.prop_map(|frame| Frame::Attributed { attributes: Vec::new(), frame: Box::new(frame) }),
        ]
    })
}

proptest! {
    #[test]
    fn no_reply_panics(frame in any_frame()) {
        let views: Vec<View> = [
            View::from_shards(&frame, &asked()),
            View::from_slots(&frame, &asked()),
            View::from_nodes(&frame, &asked()),
        ].into_iter().flatten().collect();
        let _ = agree(&views);
    }

    #[test]
    fn no_line_panics(line in "[a-f0-9]{0,6} [0-9:.@,=a-z?]{0,20} [a-z,?]{0,12} [-a-f0-9]{0,4} 0 0 [0-9]{0,22} connected [0-9<>\\[\\] -]{0,30}") {
        let _ = View::from_nodes(&bulk(&line), &asked());
    }

    #[test]
    fn views_that_are_one_are_agreed_on(border_at in 1_u16..16383, copies in 1_usize..5) {
        let view = halves(border_at, 0, None);
        let topology = agree(&vec![view.clone(); copies]).unwrap();
        prop_assert_eq!(topology.slots, view.topology.slots);
    }
}
