use crate::client::Addresses;
use crate::cluster::Cluster;
use crate::cluster::local_log::LocalLog;
use crate::cluster::log::MetadataLog;
use crate::config::Config;
use crate::session::Session;
use crate::testing::{Server, pushed};
use std::sync::Arc;
use towline_cluster_proto::{Announced, Change, NodeId};

/// A node whose log is in memory. Errands are done where a command asks for them.
struct Node {
    server: Server,
    log: Arc<LocalLog>,
}

fn id(byte: u8) -> NodeId {
    NodeId::from_bytes([byte; NodeId::BYTES])
}

fn at(port: u16) -> Announced {
    Announced { ip: "127.0.0.1".into(), port, bus_port: port + 10_000, ..Announced::default() }
}

impl Node {
    /// Node 1, which owns all slots.
    fn new() -> Self {
        let node = Self::with(|_| {});
        assert_eq!(node.apply(Change::AddSlots { node: id(1), slots: vec![(0, 16_383)] }), "Done");
        node
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config { workers: 1, ..Config::default() };
        config.cluster.is_enabled = true;
        change(&mut config);
        let server = Server::with(config);
        let log = Arc::new(LocalLog::new(id(9), id(1), id(101), at(7001)));
        server.cluster().open(Arc::clone(&log) as Arc<dyn MetadataLog>);
        let node = Self { server, log };
        node.follow();
        node
    }

    /// Node 1 with the lower half of the slots, beside node 2 with the upper one.
    fn beside() -> Self {
        let node = Self::with(|_| {});
        let join = |node, port, slots| Change::Join {
            node,
            shard: id(102),
            at: at(port),
            slots: vec![slots],
            config_epoch: 2,
        };
        node.apply(join(id(2), 7002, (8192, 16_383)));
        node.apply(Change::AddSlots { node: id(1), slots: vec![(0, 8191)] });
        node
    }

    fn apply(&self, change: Change) -> String {
        let outcome = self.log.apply(&change);
        self.follow();
        format!("{outcome:?}")
    }

    fn follow(&self) {
        self.server.cluster().catch_up(&self.server.local.shared);
    }

    /// Runs the words of a line, errands included.
    fn line(&mut self, line: &str) -> String {
        self.server.line(line)
    }
}

impl Server {
    fn cluster(&self) -> &Cluster {
        self.local.shared.cluster.as_deref().expect("cluster mode")
    }
}

// "{a}" is in slot 15495, "{b}" in 3300, "{c}" in 7365.
const ELSEWHERE: &str = "-MOVED 15495 127.0.0.1:7002";

#[test]
fn keys_go_where_their_slot_is() {
    let mut node = Node::beside();
    assert_eq!(node.line("SET {b}1 v"), "+OK");
    assert_eq!(node.line("SET {a}1 v"), ELSEWHERE);
    assert_eq!(node.line("MGET {a}1 {a}2"), ELSEWHERE);
    assert_eq!(node.line("MGET {b}1 {b}2"), "*2 $1 v $-1");
    assert_eq!(node.line("MGET {b}1 {c}1"), "-CROSSSLOT Keys in request don't hash to the same slot");
    assert_eq!(node.line("MGET {a}1 {b}1"), "-CROSSSLOT Keys in request don't hash to the same slot");
    assert_eq!(node.line("DBSIZE"), ":1");
    assert_eq!(node.line("BLPOP {a}1 0"), ELSEWHERE);
    assert_eq!(node.line("SSUBSCRIBE {a}"), ELSEWHERE);
    assert_eq!(node.line("SPUBLISH {a} m"), ELSEWHERE);
    assert_eq!(node.line("SPUBLISH {b} m"), ":0");
    assert_eq!(node.line("WATCH {a}1"), ELSEWHERE);
    assert_eq!(node.line("SORT {b}1 STORE {c}"), "-CROSSSLOT Keys in request don't hash to the same slot");
    assert_eq!(
        node.line("SORT {b}l BY w_*"),
        "-ERR BY option of SORT denied in cluster mode when keys formed by the pattern may be in different slots."
    );
    assert_eq!(node.line("SORT {b}l BY {b}_*"), "*0");
    let stats = node.line("INFO commandstats errorstats");
    assert!(
        stats.contains("errorstat_MOVED:count=6")
            && stats.contains("cmdstat_blpop:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1"),
        "{stats}"
    );
}

#[test]
fn one_database_and_no_way_to_another() {
    let mut node = Node::new();
    assert_eq!(node.line("SELECT 0"), "+OK");
    assert_eq!(node.line("SELECT 1"), "-ERR SELECT is not allowed in cluster mode");
    assert_eq!(node.line("MOVE k 1"), "-ERR MOVE is not allowed in cluster mode");
    assert_eq!(node.line("SWAPDB 0 1"), "-ERR SWAPDB is not allowed in cluster mode");
    assert_eq!(
        node.line("COPY {k}1 {k}2 DB 1"),
        "-ERR Copying to another database is not allowed in cluster mode"
    );
    assert!(node.line("HELLO").contains("$7 cluster"));
    assert!(node.line("INFO cluster").contains("cluster_enabled:1"));
}

#[test]
fn a_transaction_is_refused_when_it_is_queued_and_again_when_it_runs() {
    let mut node = Node::beside();
    assert_eq!(node.line("MULTI"), "+OK");
    assert_eq!(node.line("GET {a}1"), ELSEWHERE);
    assert_eq!(node.line("GET {b}1"), "+QUEUED");
    assert_eq!(node.line("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
    node.line("MULTI");
    assert_eq!((node.line("GET {b}1"), node.line("GET {c}1")), ("+QUEUED".into(), "+QUEUED".into()));
    assert_eq!(node.line("EXEC"), "-CROSSSLOT Keys in request don't hash to the same slot");
    node.line("WATCH {b}1");
    node.line("MULTI");
    node.line("SET {b}1 v");
    node.apply(Change::SetOwner { node: id(1), slot: 3300, owner: id(2), holds_keys: false });
    assert_eq!(node.line("EXEC"), "-MOVED 3300 127.0.0.1:7002");
    assert_eq!(node.line("EXEC"), "-ERR EXEC without MULTI");
    assert_eq!(node.line("DBSIZE"), ":0");
}

#[test]
fn asking_is_for_one_command_or_one_transaction() {
    let mut node = Node::beside();
    node.apply(Change::SetImporting { node: id(1), slot: 15_495, from: id(2) });
    assert_eq!(node.line("SET {a}1 v"), ELSEWHERE);
    node.line("ASKING");
    assert_eq!(node.line("SET {a}1 v"), "+OK");
    assert_eq!(node.line("GET {a}1"), ELSEWHERE);
    node.line("ASKING");
    node.line("PING");
    assert_eq!(node.line("GET {a}1"), ELSEWHERE);
    node.line("ASKING");
    assert_eq!(node.line("MGET {a}1 {a}2"), "-TRYAGAIN Multiple keys request during rehashing of slot");
    node.line("ASKING");
    assert_eq!(node.line("MGET {a}1 {a}1"), "*2 $1 v $1 v");
    node.line("ASKING");
    node.line("MULTI");
    assert_eq!((node.line("GET {a}1"), node.line("SET {a}1 w")), ("+QUEUED".into(), "+QUEUED".into()));
    assert_eq!(node.line("EXEC"), "*2 $1 v +OK");
    assert_eq!(node.line("GET {a}1"), ELSEWHERE);
    node.line("MULTI");
    assert_eq!(node.line("ASKING"), "+QUEUED");
    assert_eq!(node.line("EXEC"), "*1 +OK");
    assert_eq!(node.line("GET {a}1"), ELSEWHERE);
}

#[test]
fn keys_of_a_slot_that_is_moved_key_by_key() {
    let mut node = Node::beside();
    for key in ["{b}1", "{b}2"] {
        node.line(&format!("SET {key} v"));
    }
    node.line("SET {b}gone v PX 1");
    node.server.advance(1);
    node.apply(Change::SetMigrating { node: id(1), slot: 3300, to: id(2) });
    let ask = "-ASK 3300 127.0.0.1:7002";
    let again = "-TRYAGAIN Multiple keys request during rehashing of slot";
    assert_eq!(node.line("GET {b}1"), "$1 v");
    assert_eq!(node.line("GET {b}3"), ask);
    assert_eq!(node.line("GET {b}gone"), ask, "expired keys are missing");
    assert_eq!(node.line("MGET {b}1 {b}2"), "*2 $1 v $1 v");
    assert_eq!(node.line("MGET {b}1 {b}3"), again);
    assert_eq!(node.line("MGET {b}3 {b}3"), ask);
    assert_eq!(node.line("BLPOP {b}3 0"), ask);
    assert_eq!(node.line("SSUBSCRIBE {b}"), "*3 $10 ssubscribe $3 {b} :1");
    node.line("SUNSUBSCRIBE");
    node.line("MULTI");
    assert_eq!(node.line("GET {b}3"), ask);
    assert!(node.line("EXEC").starts_with("-EXECABORT"));
    let before = node.server.hits_and_misses();
    node.line("GET {b}4");
    assert_eq!(node.server.hits_and_misses(), before);
    node.apply(Change::SetStable { node: id(1), slot: 3300 });
    assert_eq!(node.line("GET {b}3"), "$-1");
}

#[test]
fn a_slot_that_goes_takes_along_who_waits_watches_and_listens() {
    let mut node = Node::beside();
    let moves = node.server.wait("BLPOP {b}l 0");
    let stays = node.server.wait("BLPOP {c}l 0");
    let mut watcher = node.server.second();
    node.server.line_as(&mut watcher, "WATCH {b}1");
    node.server.line_as(&mut watcher, "MULTI");
    node.server.line_as(&mut watcher, "PING");
    let mut listener = node.server.second();
    for name in ["{b}x", "{c}x", "{b}y"] {
        node.server.line_as(&mut listener, &format!("SSUBSCRIBE {name}"));
    }
    node.apply(Change::SetOwner { node: id(1), slot: 3300, owner: id(2), holds_keys: false });
    assert_eq!(Server::served(&moves), "-MOVED 3300 127.0.0.1:7002");
    assert_eq!(Server::served(&stays), "");
    assert_eq!(node.server.line_as(&mut watcher, "EXEC"), "*-1");
    let told = pushed(&listener);
    assert!(told.contains("*3 $12 sunsubscribe $4 {b}x :") && told.contains("$4 {b}y :"), "{told}");
    assert!(!told.contains("{c}x"));
    assert_eq!(
        node.server.line_as(&mut listener, "PUBSUB SHARDCHANNELS"),
        "-ERR Can't execute 'pubsub|shardchannels': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    );
    assert_eq!(node.server.line_as(&mut listener, "SUNSUBSCRIBE"), "*3 $12 sunsubscribe $4 {c}x :0");
    node.apply(Change::DelSlots { slots: vec![(7365, 7365)] });
    assert_eq!(Server::served(&stays), "-CLUSTERDOWN Hash slot not served");
    drop(node.server.wait("SAVE"));
}

#[test]
fn a_cluster_that_is_down_serves_what_it_is_allowed_to() {
    let mut node = Node::beside();
    let waits = node.server.wait("BLPOP {b}l 0");
    node.log.set_fresh(false);
    node.follow();
    assert_eq!(Server::served(&waits), "-CLUSTERDOWN The cluster is down");
    assert_eq!(node.line("GET {b}1"), "-CLUSTERDOWN The cluster is down");
    assert_eq!(node.line("GET {a}1"), "-CLUSTERDOWN The cluster is down");
    assert_eq!(node.line("SPUBLISH {b} m"), ":0");
    assert_eq!(node.line("PING"), "+PONG");
    node.line("CONFIG SET cluster-allow-reads-when-down yes");
    assert_eq!(node.line("GET {b}1"), "$-1");
    assert_eq!(node.line("SET {b}1 v"), "-CLUSTERDOWN The cluster is down and only accepts read commands");
    node.log.set_fresh(true);
    node.follow();
    assert_eq!(node.line("SET {b}1 v"), "+OK");
    node.apply(Change::DelSlots { slots: vec![(0, 0)] });
    assert_eq!(node.line("SET {b}1 v"), "-CLUSTERDOWN The cluster is down and only accepts read commands");
    node.line("CONFIG SET cluster-require-full-coverage no");
    node.follow();
    assert_eq!(node.line("SET {b}1 v"), "+OK");
}

#[test]
fn a_parked_slot_holds_back_what_is_on_it_and_nothing_else() {
    let mut node = Node::beside();
    let park = |node: &Node, is_on| {
        let cluster = node.server.cluster();
        let store = &node.server.local.shared.store;
        store.with_locked(3300, |_| cluster.table.set(3300, crate::cluster::table::PARKED, is_on));
    };
    node.line("MULTI");
    node.line("INCR {b}n");
    park(&node, true);
    assert_eq!(node.line("EXEC"), "(crowded)");
    assert_eq!(node.line("EXEC"), "(crowded)");
    let mut other = node.server.second();
    assert_eq!(node.server.line_as(&mut other, "GET {b}n"), "(crowded)");
    assert_eq!(node.server.line_as(&mut other, "SET {c}n 1"), "+OK");
    park(&node, false);
    assert_eq!(node.line("EXEC"), "*1 :1");
}

#[test]
fn endpoints_are_told_as_the_configuration_has_it() {
    let mut node = Node::beside();
    let named = Announced { hostname: "b.example".into(), ..at(7002) };
    node.line("CONFIG SET cluster-preferred-endpoint-type hostname");
    assert_eq!(node.line("GET {a}"), "-MOVED 15495 ?:7002");
    node.apply(Change::Announce { node: id(2), at: named });
    assert_eq!(node.line("GET {a}"), "-MOVED 15495 b.example:7002");
    node.line("CONFIG SET cluster-preferred-endpoint-type unknown-endpoint");
    assert_eq!(node.line("GET {a}"), "-MOVED 15495 :7002");
}

#[test]
fn keys_of_a_slot_are_counted_listed_and_flushed() {
    let mut node = Node::new();
    for n in 0..200 {
        node.line(&format!("SET {{b}}{n} v"));
    }
    node.line("SET {a}1 v");
    assert_eq!(node.line("CLUSTER KEYSLOT {b}17"), ":3300");
    assert_eq!(node.line("CLUSTER COUNTKEYSINSLOT 3300"), ":200");
    assert_eq!(node.line("CLUSTER COUNTKEYSINSLOT 16384"), "-ERR Invalid slot");
    assert!(node.line("CLUSTER GETKEYSINSLOT 3300 3").starts_with("*3 $"));
    assert_eq!(node.line("CLUSTER GETKEYSINSLOT 3300 -1"), "-ERR Invalid slot or number of keys");
    assert_eq!(node.line("CLUSTER GETKEYSINSLOT x 1"), "-ERR Invalid slot or number of keys");
    assert_eq!(node.line("CLUSTER GETKEYSINSLOT 1 10"), "*0");
    assert_eq!(
        node.line("CLUSTER SLOT-STATS ORDERBY key-count LIMIT 2"),
        "*2 *2 :3300 *2 $9 key-count :200 *2 :15495 *2 $9 key-count :1"
    );
    assert_eq!(node.line("CLUSTER SLOT-STATS SLOTSRANGE 3300 3300"), "*1 *2 :3300 *2 $9 key-count :200");
    assert_eq!(node.line("CLUSTER FLUSHSLOT 3300 BOTH"), "-ERR syntax error");
    assert_eq!(node.line("CLUSTER FLUSHSLOT 3300 ASYNC"), "+OK");
    assert_eq!((node.line("CLUSTER COUNTKEYSINSLOT 3300"), node.line("DBSIZE")), (":0".into(), ":1".into()));
}

#[test]
fn arguments_are_checked_before_anything_is_proposed() {
    let mut node = Node::beside();
    let form = "-ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP";
    let unknown = "0".repeat(40);
    for (line, reply) in [
        ("CLUSTER ADDSLOTS x", "-ERR Invalid or out of range slot"),
        ("CLUSTER ADDSLOTS 16384", "-ERR Invalid or out of range slot"),
        ("CLUSTER ADDSLOTS 1 2 1", "-ERR Slot 1 specified multiple times"),
        ("CLUSTER ADDSLOTSRANGE 5 1", "-ERR start slot number 5 is greater than end slot number 1"),
        ("CLUSTER ADDSLOTSRANGE 1 2 3", "-ERR wrong number of arguments for 'cluster|addslotsrange' command"),
        ("CLUSTER SETSLOT 1", "-ERR wrong number of arguments for 'cluster|setslot' command"),
        ("CLUSTER SETSLOT x STABLE", "-ERR Invalid or out of range slot"),
        ("CLUSTER SETSLOT 1 NODE", form),
        ("CLUSTER SETSLOT 1 STABLE now", form),
        ("CLUSTER SETSLOT 9000 MIGRATING nobody", "-ERR I'm not the owner of hash slot 9000"),
        ("CLUSTER SETSLOT 1 IMPORTING nobody", "-ERR I'm already the owner of hash slot 1"),
        ("CLUSTER SETSLOT 1 migrating nobody", "-ERR I don't know about node nobody"),
        ("CLUSTER SETSLOT 1 NODE nobody", "-ERR Unknown node nobody"),
        ("CLUSTER FORGET nobody", "-ERR Unknown node nobody"),
        ("CLUSTER REPLICATE nobody", "-ERR Unknown node nobody"),
        ("CLUSTER SET-CONFIG-EPOCH -1", "-ERR Invalid config epoch specified: -1"),
        ("CLUSTER SET-CONFIG-EPOCH x", "-ERR value is not an integer or out of range"),
        ("CLUSTER MEET nowhere 7000", "-ERR Invalid node address specified: nowhere:7000"),
        ("CLUSTER MEET 127.0.0.1 0", "-ERR Invalid base port specified: 0"),
        ("CLUSTER MEET 127.0.0.1 60000", "-ERR Invalid node address specified: 127.0.0.1:60000"),
        ("CLUSTER MEET 127.0.0.1 7000 x", "-ERR Invalid bus port specified: x"),
        ("CLUSTER FAILOVER", "-ERR You should send CLUSTER FAILOVER to a replica"),
        ("CLUSTER RESET FIRM", "-ERR syntax error"),
        ("CLUSTER SLOT-STATS ORDERBY cpu-usec", "-ERR Unrecognized sort metric for ORDERBY."),
        (
            "CLUSTER SLOT-STATS ORDERBY key-count LIMIT 0",
            "-ERR Limit has to lie in between 1 and 16384 (maximum number of slots).",
        ),
        ("CLUSTER SLOT-STATS SLOTSRANGE 2 1", "-ERR Start slot number 2 is greater than end slot number 1"),
        (&format!("CLUSTER COUNT-FAILURE-REPORTS {unknown}"), &format!("-ERR Unknown node {unknown}")),
        (&format!("CLUSTER COUNT-FAILURE-REPORTS {}", id(2)), ":0"),
        ("CLUSTER CANCELSLOTMIGRATIONS", "-ERR No migrations ongoing"),
        ("CLUSTER GETSLOTMIGRATIONS", "*0"),
        ("CLUSTER MIGRATESLOTS SLOTS 1 2", "-ERR syntax error"),
        ("CLUSTER MIGRATESLOTS SLOTSRANGE 1 2", "-ERR syntax error"),
        ("CLUSTER MIGRATESLOTS SLOTSRANGE NODE x", "-ERR syntax error"),
        ("CLUSTER MIGRATESLOTS SLOTSRANGE 1 x NODE x", "-ERR Invalid or out of range slot"),
        (
            "CLUSTER MIGRATESLOTS SLOTSRANGE 5 1 NODE x",
            "-ERR Start slot number 5 is greater than end slot number 1.",
        ),
        (
            "CLUSTER MIGRATESLOTS SLOTSRANGE 0 5 3 8 NODE x",
            "-ERR Slot range 3-8 overlaps with previous range 0-5.",
        ),
        ("CLUSTER MIGRATESLOTS SLOTSRANGE 0 5 NODE x", "-ERR Unknown node name: x"),
        (
            &format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 5 NODE {unknown}"),
            &format!("-ERR Unknown node name: {unknown}"),
        ),
        (
            &format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 5 NODE {}", id(1)),
            "-ERR Target node can not be this node.",
        ),
        (
            &format!("CLUSTER MIGRATESLOTS SLOTSRANGE 9000 9000 NODE {}", id(2)),
            "-ERR Slots are not served by this node.",
        ),
        ("CLUSTER SYNCSLOTS x", "-ERR unknown subcommand 'SYNCSLOTS'. Try CLUSTER HELP."),
    ] {
        assert_eq!(node.line(line), reply, "{line}");
    }
    node.line("SET {b}1 v");
    assert_eq!(node.line("CLUSTER FLUSHSLOTS"), "-ERR DB must be empty to perform CLUSTER FLUSHSLOTS.");
    assert_eq!(
        node.line("CLUSTER RESET"),
        "-ERR CLUSTER RESET can't be called with master nodes containing keys"
    );
    assert_eq!(node.line(&format!("CLUSTER SETSLOT 9000 IMPORTING {}", id(2))), "(blocked)");
}

#[test]
fn changes_in_a_transaction_are_alone() {
    let mut node = Node::new();
    node.line("MULTI");
    node.line("CLUSTER BUMPEPOCH");
    node.line("GET k");
    assert_eq!(
        node.line("EXEC"),
        "-EXECABORT Transaction discarded because of: commands that change the cluster can only be in a transaction with \
         each other"
    );
    node.line("MULTI");
    for line in ["CLUSTER DELSLOTS 5", "CLUSTER ADDSLOTS 5 x", "CLUSTER BUMPEPOCH"] {
        assert_eq!(node.line(line), "+QUEUED");
    }
    assert_eq!(node.line("EXEC"), "(blocked)");
}

#[test]
fn a_batch_is_refused_command_by_command() {
    let mut node = Node::beside();
    let mut session = Session::new(node.server.local.shared.clients.add(Addresses::default(), 1), true);
    let reply = crate::batch::tests_support::run(
        &mut node.server.local,
        &mut session,
        &["SET {b}1 v", "GET {a}1", "GET {b}1"],
    );
    assert_eq!(reply, format!("+OK {ELSEWHERE} $1 v"));
}
