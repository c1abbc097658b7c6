//! Several connections to one server, and to each node of a cluster.

use e2e::clients::options;
use e2e::conn::Conn;
use e2e::fault_proxy::FaultProxy;
use e2e::ledger_of_keys::KeyLedger;
use e2e::process::{Server, ServerKind};
use e2e::wait;
use tokio::task::JoinSet;
use towline_client::{Client, Event, LinkState, Script, Transacted, cmd, pipe};
use towline_faults::link::Close;

use crate::cluster_client_moves::under_load;

const SERVERS: [ServerKind; 3] = [ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91];

/// How many connections of this name the server has.
fn named(observer: &mut Conn, name: &str) -> usize {
    let list = observer.words("CLIENT LIST").unwrap();
    let list = String::from_utf8_lossy(list.bytes().unwrap()).into_owned();
    list.lines().filter(|line| line.contains(&format!(" name={name} "))).count()
}

/// Every kind of command, with four connections where there was one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_sees_as_many_connections_as_there_are_lanes() {
    for kind in SERVERS {
        let server = Server::start(kind, &[]).unwrap();
        let mut observer = server.connect().unwrap();
        let url = format!("redis://{}/?lanes=4&client_name=lanes", server.address());
        let client = Client::connect(&url).await.unwrap();
        assert_eq!(named(&mut observer, "lanes"), 4, "{kind:?}: all of them, before the first command");

        for number in 0..40 {
            client.set(format!("key:{number}"), number.to_string()).await.unwrap();
        }
        let keys: Vec<String> = (0..40).map(|number| format!("key:{number}")).collect();
        let values: Vec<u32> = cmd("MGET").arg(&keys).query(&client).await.unwrap();
        assert_eq!(values, (0..40).collect::<Vec<_>>());
        assert_eq!(cmd("DBSIZE").query::<u64>(&client).await.unwrap(), 40);
        let mut pipeline = pipe();
        for key in &keys {
            pipeline = pipeline.add_command(cmd("GET").arg(key));
        }
        assert_eq!(pipeline.query::<Vec<u32>>(&client).await.unwrap(), values);
        let transaction = pipe().cmd("SET").arg("a").arg(1).ignore().cmd("INCR").arg("b").atomic();
        assert_eq!(transaction.transact::<(u64,)>(&client).await.unwrap(), Transacted::Committed((1,)));
        let script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
        for round in 1..3 {
            for key in ["s1", "s2", "s3", "s4", "s5"] {
                assert_eq!(script.key(key).arg(5).query::<i64>(&client).await.unwrap(), 5 * round);
            }
        }
        assert_eq!(named(&mut observer, "lanes"), 4, "{kind:?}");

        // A lease and a blocking command have connections of their own, as ever.
        let lease = client.lease().await.unwrap();
        cmd("WATCH").arg("a").query::<()>(&lease).await.unwrap();
        assert_eq!(named(&mut observer, "lanes"), 5);
        drop(lease);

        let (snapshot, counters) = (client.snapshot(), client.metrics());
        assert_eq!((snapshot.link, counters.connections), (LinkState::Up, 4));
        assert!(counters.answered > 50, "{counters:?}");
        let mut events = client.events();
        client.close().await;
        assert!(client.get::<()>("k").await.is_err());
        let mut closed = 0;
        while let Some(event) = events.next().await {
            closed += usize::from(event == Event::Closed);
        }
        assert_eq!(closed, 1, "one client has one end");
        assert!(wait::until(|| named(&mut observer, "lanes") == 0));
    }
}

/// Each list is on one lane, and what is appended to it stays in order, whichever lanes are cut at whatever byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_keep_their_order_while_lanes_are_cut() {
    for kind in SERVERS {
        let server = Server::start(kind, &[]).unwrap();
        let proxy = FaultProxy::start(server.address(), 7, &["cut@both:mean:60000"]).await.unwrap();
        let client = Client::open(options(proxy.address()).lanes(4)).await.unwrap();
        assert!(proxy.dial_count() >= 4);
        let ledger = KeyLedger::start(&client, (0..12).map(|number| format!("list:{number}")).collect());
        assert!(wait::eventually(|| proxy.dial_count() > 20).await, "lanes are cut one by one");
        proxy.cut_all(Close::Reset);
        let before = proxy.dial_count();
        assert!(wait::eventually(|| proxy.dial_count() > before + 8).await);
        proxy.set_rules(&[]).unwrap();
        proxy.cut_all(Close::Fin);
        let account = ledger.finish(&client).await.unwrap();
        assert!(account.acknowledged > 100, "{kind:?}: {account:?}");
        client.close().await;
    }
}

/// A reply that takes seconds on its connection is waited for by the keys of its lane and by nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_value_holds_up_its_own_lane_only() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let mut observer = server.connect().unwrap();
    observer.call(&[&b"SET"[..], b"{large}", &vec![b'x'; 6_000_000]]).unwrap();
    // The reply takes three seconds.
    let proxy = FaultProxy::start(server.address(), 1, &["rate@s2c:0/2M"]).await.unwrap();
    let client = Client::open(options(proxy.address()).lanes(2)).await.unwrap();
    let large = async { client.get::<bytes::Bytes>("{large}").await.unwrap().len() };
    let beside = async {
        assert!(wait::eventually(|| client.metrics().bytes_read > 100_000).await, "it has begun");
        // A key with the same tag is on the same lane, one of the others on the other.
        let mut small = JoinSet::new();
        for key in ["{large}:beside", "a", "b"] {
            let client = client.clone();
            small.spawn(async move {
                client.get::<Option<String>>(key).await.unwrap();
                (key, client.metrics().bytes_read >= 6_000_000)
            });
        }
        small.join_all().await
    };
    let (len, small) = tokio::join!(large, beside);
    assert_eq!(len, 6_000_000);
    assert!(small.contains(&("{large}:beside", true)), "it waited for the large one: {small:?}");
    assert!(small.iter().any(|(_, was_over)| !was_over), "the other lane did not: {small:?}");
}

fn reshard(kind: ServerKind) {
    let (account, client) = under_load(kind, 4, |cluster| {
        let primaries = cluster.primaries().unwrap();
        cluster.reshard(&primaries[0], &primaries[1], 20).unwrap();
        cluster.reshard(&primaries[1], &primaries[2], 20).unwrap();
    });
    assert_eq!(account.unknown, 0, "nothing was lost, so nothing is unknown: {account:?}");
    assert!(client.metrics().refused_retried > 10, "commands were sent on: {:?}", client.metrics());
    assert!(client.metrics().connections >= 12, "four to each primary: {:?}", client.metrics());
}

#[test]
fn slots_move_between_four_lanes_on_redis_70() {
    reshard(ServerKind::Redis70);
}

#[test]
fn slots_move_between_four_lanes_on_redis_82() {
    reshard(ServerKind::Redis82);
}

#[test]
fn slots_move_between_four_lanes_on_valkey_91() {
    reshard(ServerKind::Valkey91);
}

/// Slots move while every node closes its clients' connections again and again.
#[test]
fn slots_move_while_lanes_are_cut() {
    let (account, client) = under_load(ServerKind::Valkey91, 4, move |cluster| {
        let primaries = cluster.primaries().unwrap();
        std::thread::scope(|scope| {
            let moving = scope.spawn(|| cluster.reshard(&primaries[0], &primaries[2], 40));
            // redis-cli has connections of its own, which must live.
            let mut conns: Vec<_> =
                primaries.iter().map(|primary| cluster.connect(primary.port).unwrap()).collect();
            while !moving.is_finished() {
                // All lanes are back before the next round.
                let is_back = |conn: &mut Conn| library_clients(conn).len() >= 4;
                wait::until(|| moving.is_finished() || conns.iter_mut().all(is_back));
                for conn in &mut conns {
                    for id in library_clients(conn) {
                        conn.words(&format!("CLIENT KILL ID {id}")).unwrap();
                    }
                }
            }
            moving.join().unwrap().unwrap();
        });
    });
    let counters = client.metrics();
    assert!(counters.connections > 24, "{counters:?} {account:?}");
}

/// The numbers of the connections that said that they are this client's.
fn library_clients(conn: &mut Conn) -> Vec<String> {
    let list = conn.words("CLIENT LIST").unwrap();
    let list = String::from_utf8_lossy(list.bytes().unwrap()).into_owned();
    let ours = list.lines().filter(|line| line.contains("lib-name=towline"));
    ours.filter_map(|line| line.split(' ').find_map(|field| field.strip_prefix("id=")))
        .map(str::to_owned)
        .collect()
}

/// A primary dies; each of its lanes hands over what it had.
#[test]
fn a_primary_with_four_lanes_dies() {
    let (account, _) = under_load(ServerKind::Redis82, 4, |cluster| {
        let primaries = cluster.primaries().unwrap();
        cluster.kill(primaries[0].port).unwrap();
        cluster.wait_for_heir(&primaries[0]).unwrap();
    });
    assert!(account.acknowledged > 100, "{account:?}");
}
