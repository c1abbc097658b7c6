//! The replies as clients read them, and as real servers write them.

use super::*;
use crate::change::{Change, MigrationEnd, Outcome};
use crate::gate::Down;
use crate::node::Announced;
use bytes::BytesMut;
use towline_cluster::{Asked, Health as Seen, OpenState, Role as SeenRole, View};
use towline_resp::Proto;
use towline_resp::frame::{Decoder, Frame};
use towline_resp::writer::Writer;

const fn id(n: u8) -> NodeId {
    NodeId::from_bytes([n; NodeId::BYTES])
}

const A: NodeId = id(1);
const B: NodeId = id(2);
const R: NodeId = id(3);
const M: NodeId = id(50);

fn at(port: u16, hostname: &str) -> Announced {
    Announced {
        ip: "127.0.0.1".into(),
        port,
        tls_port: port + 100,
        bus_port: port + 10_000,
        hostname: hostname.into(),
        name: String::new(),
    }
}

fn apply(metadata: &mut Metadata, changes: impl IntoIterator<Item = Change>) {
    for change in changes {
        assert_eq!(metadata.apply(&change), Outcome::Done, "{change:?}");
    }
}

/// A has 0-100 and 200 and a host name, B the rest and has failed, R copies A. Slot 5 goes from A to B.
fn cluster() -> Metadata {
    let mut metadata = Metadata::default();
    let join = |node, port, slots, config_epoch| Change::Join {
        node,
        shard: node,
        at: at(port, ""),
        slots,
        config_epoch,
    };
    apply(
        &mut metadata,
        [
            Change::Found { cluster: id(99), node: A, shard: A, at: at(7000, "h.example") },
            Change::AddSlots { node: A, slots: vec![(0, 100), (200, 200)] },
            Change::SetConfigEpoch { node: A, epoch: 1 },
            join(B, 7001, vec![(101, 199), (201, 16383)], 2),
            join(R, 7002, vec![], 0),
            Change::Replicate { node: R, primary: A },
            Change::Answers { node: B, answers: false, now_ms: 5 },
            Change::SetMigrating { node: A, slot: 5, to: B },
            Change::SetImporting { node: B, slot: 5, from: A },
        ],
    );
    metadata
}

fn viewer<'a>(metadata: &'a Metadata, heard: &'a BTreeMap<NodeId, Heard>) -> Viewer<'a> {
    Viewer { metadata, me: A, heard, reader: Reader::default() }
}

fn frame(proto: Proto, write: impl FnOnce(&mut Writer)) -> Frame {
    let mut writer = Writer::new(proto);
    write(&mut writer);
    let mut bytes = BytesMut::from(writer.buf());
    let frame = Decoder::default().decode(&mut bytes).unwrap().unwrap();
    assert!(bytes.is_empty(), "one reply and no more");
    frame
}

fn asked() -> Asked {
    Asked { address: towline_cluster::Address::new("seed.example", 7000).unwrap(), is_tls: false }
}

/// `address role health ranges`, one line a node, as the client side has it.
fn seen(view: &View) -> Vec<String> {
    let nodes = view.topology.nodes.iter().enumerate();
    let mut lines: Vec<String> = nodes
        .map(|(at, node)| {
            let ranges = view.topology.slots.ranges().filter(|(_, owner)| *owner == at);
            let ranges: String = ranges.map(|(range, _)| format!(" {range}")).collect();
            let address = node.address.as_ref().map_or_else(|| "?".into(), ToString::to_string);
            format!("{address} {:?} {:?}{ranges}", node.role, node.health)
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn nodes_are_lines_that_tools_know() {
    let metadata = cluster();
    let heard = BTreeMap::from([(B, Heard { is_connected: true, asked_ms: 7, heard_ms: 9 })]);
    let expected = format!(
        "{A} 127.0.0.1:7000@17000,h.example myself,master - 0 0 1 connected 0-100 200 [5->-{B}]\n\
         {B} 127.0.0.1:7001@17001 master,fail - 7 9 2 connected 101-199 201-16383\n\
         {R} 127.0.0.1:7002@17002 slave {A} 0 0 1 disconnected\n"
    );
    assert_eq!(viewer(&metadata, &heard).nodes(), expected);
    let at_b = Viewer { me: B, ..viewer(&metadata, &heard) };
    let lines = at_b.nodes();
    assert!(
        lines.contains(&format!("17001 myself,master,fail - 0 0 2 connected 101-199 201-16383 [5-<-{A}]\n"))
    );
    assert!(lines.contains("0-100 200\n"), "another's markers are not shown: {lines}");
    let by_tls = Viewer { reader: Reader { is_tls: true, ..Reader::default() }, ..viewer(&metadata, &heard) };
    assert!(by_tls.nodes().contains("127.0.0.1:7100@17000,h.example"));
}

#[test]
fn clients_read_the_same_out_of_all_three_replies() {
    let metadata = cluster();
    let heard = BTreeMap::new();
    let viewer = viewer(&metadata, &heard);
    let a = "127.0.0.1:7000 Primary Online 0-100 200";
    for proto in [Proto::Resp2, Proto::Resp3] {
        let nodes = View::from_nodes(&frame(proto, |out| viewer.write_nodes(out)), &asked()).unwrap();
        assert_eq!(
            seen(&nodes),
            [a, "127.0.0.1:7001 Primary Failed 101-199 201-16383", "127.0.0.1:7002 Replica Online"]
        );
        assert_eq!(nodes.myself.map(|at| nodes.topology.nodes[at].epoch), Some(Some(1)));
        assert_eq!(nodes.open.len(), 1);
        assert_eq!((nodes.open[0].slot, nodes.open[0].state), (5, OpenState::Migrating));
        let shards = View::from_shards(&frame(proto, |out| viewer.write_shards(out)), &asked()).unwrap();
        assert_eq!(
            seen(&shards),
            [a, "127.0.0.1:7001 Primary Failed 101-199 201-16383", "127.0.0.1:7002 Replica Loading"]
        );
        let replica = shards.topology.nodes.iter().find(|node| node.role == SeenRole::Replica).unwrap();
        assert_eq!(replica.health, Seen::Loading);
        assert!(replica.primary.is_some());
        let slots = View::from_slots(&frame(proto, |out| viewer.write_slots(out)), &asked()).unwrap();
        assert_eq!(seen(&slots), [a, "127.0.0.1:7001 Primary Online 101-199 201-16383"]);
    }
}

#[test]
fn bytes_are_those_of_redis() {
    let mut metadata = Metadata::default();
    let node = Announced { tls_port: 0, ..at(26100, "h.example") };
    apply(
        &mut metadata,
        [
            Change::Found { cluster: id(99), node: A, shard: A, at: node },
            Change::AddSlots { node: A, slots: vec![(0, 100), (200, 200)] },
        ],
    );
    let heard = BTreeMap::new();
    let shards = |proto, preferred| {
        let viewer = Viewer { reader: Reader { preferred, is_tls: false }, ..viewer(&metadata, &heard) };
        let mut out = Writer::new(proto);
        viewer.write_shards(&mut out);
        String::from_utf8(out.buf().to_vec()).unwrap()
    };
    let slots = |proto, preferred| {
        let viewer = Viewer { reader: Reader { preferred, is_tls: false }, ..viewer(&metadata, &heard) };
        let mut out = Writer::new(proto);
        viewer.write_slots(&mut out);
        String::from_utf8(out.buf().to_vec()).unwrap()
    };
    // Recorded from Redis 7.0.15; Redis 8.2 gives the same.
    let node = |endpoint: &str| {
        format!(
            "$2\r\nid\r\n$40\r\n{A}\r\n$4\r\nport\r\n:26100\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$8\r\nendpoint\r\n{endpoint}\r\n\
             $8\r\nhostname\r\n$9\r\nh.example\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$18\r\nreplication-offset\r\n:0\r\n\
             $6\r\nhealth\r\n$6\r\nonline\r\n"
        )
    };
    let ranges = "$5\r\nslots\r\n*4\r\n:0\r\n:100\r\n:200\r\n:200\r\n$5\r\nnodes\r\n*1\r\n";
    let ip = "$9\r\n127.0.0.1";
    assert_eq!(shards(Proto::Resp2, EndpointType::Ip), format!("*1\r\n*4\r\n{ranges}*16\r\n{}", node(ip)));
    assert_eq!(
        shards(Proto::Resp3, EndpointType::Unknown),
        format!("*1\r\n%2\r\n{ranges}%8\r\n{}", node("$0\r\n"))
    );
    let range = |first, last, node: &str| format!("*3\r\n:{first}\r\n:{last}\r\n*4\r\n{node}");
    for (proto, preferred, node) in [
        (
            Proto::Resp2,
            EndpointType::Ip,
            format!("{ip}\r\n:26100\r\n$40\r\n{A}\r\n*2\r\n$8\r\nhostname\r\n$9\r\nh.example\r\n"),
        ),
        (
            Proto::Resp3,
            EndpointType::Hostname,
            format!("$9\r\nh.example\r\n:26100\r\n$40\r\n{A}\r\n%1\r\n$2\r\nip\r\n{ip}\r\n"),
        ),
        (
            Proto::Resp3,
            EndpointType::Unknown,
            format!(
                "_\r\n:26100\r\n$40\r\n{A}\r\n%2\r\n$2\r\nip\r\n{ip}\r\n$8\r\nhostname\r\n$9\r\nh.example\r\n"
            ),
        ),
    ] {
        let expected = format!("*2\r\n{}{}", range(0, 100, &node), range(200, 200, &node));
        assert_eq!(slots(proto, preferred), expected, "{proto:?} {preferred:?}");
    }
}

#[test]
fn redirects_name_nodes_as_the_client_prefers() {
    let metadata = cluster();
    let reader = |preferred, is_tls| Reader { preferred, is_tls };
    let cases = [
        (reader(EndpointType::Ip, false), Verdict::Moved(5, A), "MOVED 5 127.0.0.1:7000"),
        (reader(EndpointType::Ip, true), Verdict::Ask(5, B), "ASK 5 127.0.0.1:7101"),
        (reader(EndpointType::Hostname, false), Verdict::Moved(5, A), "MOVED 5 h.example:7000"),
        (reader(EndpointType::Hostname, false), Verdict::Moved(5, B), "MOVED 5 ?:7001"),
        (reader(EndpointType::Unknown, false), Verdict::Moved(5, B), "MOVED 5 :7001"),
        (Reader::default(), Verdict::TryAgain, TRY_AGAIN),
        (Reader::default(), Verdict::CrossSlot, CROSS_SLOT),
        (Reader::default(), Verdict::Down(Down::State), "CLUSTERDOWN The cluster is down"),
        (Reader::default(), Verdict::Moved(5, id(77)), TRY_AGAIN),
    ];
    for (reader, verdict, text) in cases {
        assert_eq!(reader.refusal(&metadata, verdict).as_deref(), Some(text), "{reader:?}");
    }
    for verdict in [Verdict::Serve, Verdict::Park] {
        assert_eq!(Reader::default().refusal(&metadata, verdict), None);
    }
}

#[test]
fn info_counts_slots_and_messages() {
    let metadata = cluster();
    let heard = BTreeMap::new();
    let facts = Facts {
        is_cluster_ok: true,
        sent: &[("append", 3), ("vote", 0), ("probe", 4)],
        received: &[],
        links_over_limit: 0,
        leader: Some(B),
        term: 12,
    };
    let info = viewer(&metadata, &heard).info(&facts);
    for line in [
        "cluster_state:ok",
        "cluster_slots_assigned:16384",
        "cluster_slots_ok:102",
        "cluster_slots_fail:16282",
        "cluster_known_nodes:3",
        "cluster_size:2",
        "cluster_current_epoch:2",
        "cluster_my_epoch:1",
        "cluster_stats_messages_append_sent:3",
        "cluster_stats_messages_sent:7",
        "cluster_stats_messages_received:0",
        &format!("cluster_leader:{B}"),
        "cluster_term:12",
    ] {
        assert!(info.lines().any(|it| it == line), "{line} in {info}");
    }
    assert!(info.ends_with("\r\n") && !info.contains("vote"));
    let at_replica = Viewer { me: R, ..viewer(&metadata, &heard) };
    assert!(at_replica.info(&Facts::default()).contains("cluster_my_epoch:1\r\n"));
}

#[test]
fn replicas_are_listed_of_primaries_only() {
    let metadata = cluster();
    let heard = BTreeMap::new();
    let viewer = viewer(&metadata, &heard);
    let mut out = Writer::new(Proto::Resp2);
    assert_eq!(
        viewer.write_replicas(id(77), &mut out).unwrap_err().to_string(),
        format!("ERR Unknown node {}", id(77))
    );
    assert_eq!(
        viewer.write_replicas(R, &mut out).unwrap_err().to_string(),
        "ERR The specified node is not a master"
    );
    assert!(out.is_empty());
    viewer.write_replicas(A, &mut out).unwrap();
    viewer.write_replicas(B, &mut out).unwrap();
    let line = format!("{R} 127.0.0.1:7002@17002 slave {A} 0 0 1 disconnected");
    assert_eq!(String::from_utf8_lossy(out.buf()), format!("*1\r\n${}\r\n{line}\r\n*0\r\n", line.len()));
}

#[test]
fn links_are_maps_of_six_fields() {
    let link = LinkFacts {
        node: B,
        is_outgoing: true,
        since_ms: 1_796_065_111_225,
        send_buffer_allocated: 64,
        send_buffer_used: 0,
    };
    let mut out = Writer::new(Proto::Resp3);
    links(&[link, LinkFacts { is_outgoing: false, send_buffer_used: 48, ..link }], &mut out);
    let one = |direction: &str, events: &str, used: usize| {
        format!(
            "%6\r\n$9\r\ndirection\r\n{direction}\r\n$4\r\nnode\r\n$40\r\n{B}\r\n$11\r\ncreate-time\r\n:1796065111225\r\n\
             $6\r\nevents\r\n{events}\r\n$21\r\nsend-buffer-allocated\r\n:64\r\n$16\r\nsend-buffer-used\r\n:{used}\r\n"
        )
    };
    let expected = format!("*2\r\n{}{}", one("$2\r\nto", "$1\r\nr", 0), one("$4\r\nfrom", "$2\r\nrw", 48));
    assert_eq!(String::from_utf8_lossy(out.buf()), expected);
}

#[test]
fn migrations_are_shown_on_both_nodes_with_valkeys_words() {
    let mut metadata = cluster();
    let begin = |n, slots| Change::BeginMigration {
        id: id(n),
        source: A,
        target: B,
        slots,
        now_ms: 1_796_065_114_900,
    };
    let end =
        |n, end| Change::EndMigration { id: id(n), end, message: "m".into(), now_ms: 1_796_065_115_100 };
    apply(
        &mut metadata,
        [
            begin(50, vec![(10, 19), (30, 30)]),
            Change::CommitMigration { id: M, now_ms: 1_796_065_115_100 },
            begin(49, vec![(40, 40)]),
            end(49, MigrationEnd::Failed),
            begin(52, vec![(40, 40)]),
            end(52, MigrationEnd::Cancelled),
            begin(51, vec![(41, 41)]),
        ],
    );
    let heard = BTreeMap::new();
    let at_a = viewer(&metadata, &heard);
    let progress = |_| {
        Some(Progress { state: "snapshotting", heard_ms: 1_796_065_116_000, message: "", remaining_bytes: 9 })
    };
    // Recorded from Valkey 9.1.2, but for names and ranges.
    let expected = format!(
        "%12\r\n$4\r\nname\r\n$40\r\n{M}\r\n$9\r\noperation\r\n$6\r\nEXPORT\r\n$11\r\nslot_ranges\r\n$11\r\n10-19 30-30\r\n\
         $11\r\ntarget_node\r\n$40\r\n{B}\r\n$11\r\nsource_node\r\n$40\r\n{A}\r\n$11\r\ncreate_time\r\n:1796065114\r\n\
         $16\r\nlast_update_time\r\n:1796065115\r\n$13\r\nlast_ack_time\r\n:1796065115\r\n$5\r\nstate\r\n$7\r\nsuccess\r\n\
         $7\r\nmessage\r\n$0\r\n\r\n$8\r\ncow_size\r\n:0\r\n$19\r\nremaining_repl_size\r\n:0\r\n"
    );
    let mut out = Writer::new(Proto::Resp3);
    at_a.write_migrations(1000, progress, &mut out);
    assert!(String::from_utf8_lossy(out.buf()).ends_with(&expected));
    let states = |viewer: &Viewer<'_>, kept, progress: Option<Progress<'static>>| {
        let Frame::Array(all) = frame(Proto::Resp2, |out| viewer.write_migrations(kept, |_| progress, out))
        else {
            panic!("a list")
        };
        let field = |entry: &Frame, at: usize| match entry {
            Frame::Array(fields) => match &fields[at] {
                Frame::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        all.iter().map(|entry| format!("{} {}", field(entry, 3), field(entry, 17))).collect::<Vec<_>>()
    };
    assert_eq!(
        states(&at_a, 2, progress(M)),
        ["EXPORT snapshotting", "EXPORT cancelled", "EXPORT failed"],
        "newest first, the active one beside two that are over"
    );
    let at_b = Viewer { me: B, ..at_a };
    assert_eq!(states(&at_b, 0, None), ["IMPORT waiting-for-ack"]);
    assert_eq!(states(&Viewer { me: R, ..at_a }, 1000, None), [""; 0]);
}
