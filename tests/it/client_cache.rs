//! The client's cache: what it saves, and that it is never wrong for longer than it takes to hear of a change.

use e2e::clients::options;
use e2e::clusters::{RealCluster, key_in};
use e2e::conn::Conn;
use e2e::fault_proxy::FaultProxy;
use e2e::process::{Server, ServerKind};
use e2e::value::Value;
use e2e::wait;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use towline_client::commands::Commands;
use towline_client::transport::Target;
use towline_client::{
    Cache, CacheOptions, Client, ClusterOptions, ConnectOptions, ErrorKind, LivenessConfig, ProtocolChoice,
    Sent, cmd,
};

/// A server, a client with a cache, and a plain connection beside it.
struct Rig {
    server: Rc<Server>,
    client: Client,
    cache: Cache,
    observer: Conn,
}

impl Rig {
    /// How often the server has run a command.
    fn calls(&mut self, command: &str) -> u64 {
        let stats = text(&self.observer.words("INFO commandstats").unwrap());
        let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
        let calls = line.and_then(|line| line.split("calls=").nth(1)?.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }

    fn say(&mut self, line: &str) {
        let reply = self.observer.words(line).unwrap();
        assert!(reply.error().is_none(), "{line}: {reply}");
    }

    /// Waits until a key is read as `expected`. Whatever is read before must be `before`.
    async fn becomes(&self, key: &str, before: Option<&str>, expected: Option<&str>) {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        let (before, expected) = (before.map(str::to_owned), expected.map(str::to_owned));
        becomes(&cache, &key, before, expected).await;
    }
}

async fn becomes(cache: &Cache, key: &str, before: Option<String>, expected: Option<String>) {
    let limit = tokio::time::Instant::now() + wait::PATIENCE;
    loop {
        let value: Option<String> = cache.get(key).await.unwrap();
        if value == expected {
            return;
        }
        assert_eq!(value, before, "{key}");
        assert!(tokio::time::Instant::now() < limit, "{key} was never read as {expected:?}");
        tokio::task::yield_now().await;
    }
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.bytes().unwrap_or_default()).into_owned()
}

/// Runs a test on every server.
fn each<F: Future<Output = ()>>(caching: &CacheOptions, test: impl Fn(Rig) -> F) {
    let kinds = [ServerKind::Towline, ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91];
    each_of(&kinds, caching, test);
}

fn each_of<F: Future<Output = ()>>(kinds: &[ServerKind], caching: &CacheOptions, test: impl Fn(Rig) -> F) {
    // The client needs a thread of its own while a test waits for a server.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for &kind in kinds {
        let server = Rc::new(Server::start(kind, &[]).unwrap());
        let observer = server.connect().unwrap();
        runtime.block_on(async {
            let client = Client::open(options(server.address()).client_cache(caching.clone())).await.unwrap();
            let cache = client.cache().unwrap();
            assert!(wait::eventually(|| cache.report().is_on).await, "{kind:?} announces changes");
            // Kept here too: a test that does not mention it must not end it.
            test(Rig { server: Rc::clone(&server), client: client.clone(), cache, observer }).await;
        });
    }
}

#[test]
fn a_hit_does_not_touch_the_server() {
    each(&CacheOptions::new(), async |mut rig| {
        rig.say("SET k 1");
        rig.say("HSET h a 1 b 2");
        for _ in 0..10 {
            assert_eq!(rig.cache.get::<u32>("k").await.unwrap(), 1);
            let map: HashMap<String, u32> = rig.cache.hgetall("h").await.unwrap();
            assert_eq!(map.len(), 2);
            // That there is nothing is known, too.
            assert_eq!(rig.cache.get::<Option<u32>>("none").await.unwrap(), None);
        }
        assert_eq!((rig.calls("get"), rig.calls("hgetall")), (2, 1));
        let counters = rig.client.metrics();
        assert_eq!((counters.cache_hits, counters.cache_misses, counters.cache_bypassed), (27, 3, 0));
        // What does not go through the handle is not kept, and may be written.
        assert_eq!(rig.client.get::<u32>("k").await.unwrap(), 1);
        assert_eq!((rig.calls("get"), rig.cache.report().entries), (3, 3));
    });
}

#[test]
fn what_others_change_is_read_anew() {
    each(&CacheOptions::new(), async |mut rig| {
        rig.say("SET k old");
        rig.say("SET stays here");
        rig.becomes("k", None, Some("old")).await;
        rig.becomes("stays", None, Some("here")).await;
        rig.say("SET k new");
        rig.becomes("k", Some("old"), Some("new")).await;
        rig.say("DEL k");
        rig.becomes("k", Some("new"), None).await;
        rig.say("MSET k back other 1");
        rig.becomes("k", None, Some("back")).await;
        let before = rig.client.metrics().cache_hits;
        rig.becomes("stays", None, Some("here")).await;
        assert_eq!(rig.client.metrics().cache_hits, before + 1, "its neighbour's change is not its own");
        rig.say("FLUSHALL");
        rig.becomes("k", Some("back"), None).await;
        rig.becomes("stays", Some("here"), None).await;
    });
}

#[test]
fn who_writes_through_the_same_client_need_not_see_what_was_before() {
    each(&CacheOptions::new(), async |rig| {
        for round in 0..200_u32 {
            rig.client.set("k", round.to_string()).await.unwrap();
            rig.cache.forget("k");
            assert_eq!(rig.cache.get::<u32>("k").await.unwrap(), round);
        }
        // Without that word the announcement has to come first.
        rig.client.set("k", "own").await.unwrap();
        rig.becomes("k", Some("199"), Some("own")).await;
    });
}

#[test]
fn nothing_is_kept_longer_than_its_key() {
    each(&CacheOptions::new(), async |mut rig| {
        rig.say("SET k soon PX 300");
        assert_eq!(rig.cache.get::<Option<String>>("k").await.unwrap().as_deref(), Some("soon"));
        assert!(wait::until(|| rig.observer.words("PTTL k").unwrap().int() == Some(-2)));
        // At once: the server may not even have noticed before it was asked.
        assert_eq!(rig.cache.get::<Option<String>>("k").await.unwrap(), None);
        // A time that is set later is announced.
        rig.say("SET k for-ever");
        rig.becomes("k", None, Some("for-ever")).await;
        rig.say("PEXPIRE k 1");
        rig.becomes("k", Some("for-ever"), None).await;
    });
}

#[test]
fn a_lost_connection_takes_what_was_read_on_it_along() {
    each(&CacheOptions::new(), async |mut rig| {
        rig.say("SET stays 1");
        for round in 0..5 {
            let (old, new) = (format!("old{round}"), format!("new{round}"));
            rig.say(&format!("SET k {old}"));
            let before = rig.cache.get::<Option<String>>("k").await.unwrap();
            becomes(&rig.cache, "k", before, Some(old)).await;
            assert_eq!(rig.cache.get::<u32>("stays").await.unwrap(), 1);
            rig.say("CLIENT KILL TYPE normal SKIPME yes");
            rig.say(&format!("SET k {new}"));
            assert!(wait::eventually(|| rig.client.metrics().connections == round + 2).await);
            assert_eq!(rig.cache.get::<String>("k").await.unwrap(), new);
        }
        assert!(rig.client.metrics().cache_dropped >= 5);
    });
}

#[test]
fn concurrent_readers_share_one_read() {
    each(&CacheOptions::new(), async |mut rig| {
        rig.say("SET k 1");
        let readers: Vec<_> = (0..64)
            .map(|_| {
                let cache = rig.cache.clone();
                tokio::spawn(async move { cache.get::<u32>("k").await.unwrap() })
            })
            .collect();
        for reader in readers {
            assert_eq!(reader.await.unwrap(), 1);
        }
        let counters = rig.cache.report().counters;
        assert_eq!((counters.misses, counters.hits + counters.coalesced), (1, 63));
        assert_eq!(rig.calls("get"), 1);
    });
}

#[test]
fn a_reader_that_goes_does_not_take_the_read_along() {
    each(&CacheOptions::new(), async |mut rig| {
        rig.say("SET k 1");
        // Polled once: the read is under way.
        let gone = rig.cache.get::<u32>("k");
        tokio::select! {
            biased;
            _ = gone => {}
            () = std::future::ready(()) => {}
        }
        assert_eq!(rig.cache.get::<u32>("k").await.unwrap(), 1);
        assert_eq!((rig.cache.report().counters.misses, rig.calls("get")), (1, 1));
    });
}

#[test]
fn errors_are_not_kept_and_some_commands_are_refused() {
    each(&CacheOptions::new().entry_bytes_max(10_000), async |mut rig| {
        rig.say("RPUSH list a");
        for _ in 0..2 {
            let error = rig.cache.get::<String>("list").await.unwrap_err();
            assert_eq!((error.code(), error.sent()), (Some("WRONGTYPE"), Sent::Answered));
        }
        assert_eq!((rig.calls("get"), rig.cache.report().entries), (2, 0));
        for command in [cmd("INCR").arg("n"), cmd("MGET").arg(["a", "b"]), cmd("TTL").arg("k"), cmd("PING")] {
            let error = rig.cache.query::<()>(command).await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Misuse(_)), "{error}");
            assert_eq!(error.sent(), Sent::No);
        }
        assert_eq!(rig.calls("incr"), 0);
        // Too large to be kept, and read all the same.
        rig.client.set("large", "x".repeat(20_000)).await.unwrap();
        assert_eq!(rig.cache.get::<String>("large").await.unwrap().len(), 20_000);
        assert_eq!(rig.cache.report().entries, 0);
        // A caller who wants it fresher than anything can be.
        rig.say("SET k 1");
        let fresh = rig.cache.max_age(Duration::ZERO);
        let before = rig.calls("get");
        for _ in 0..3 {
            assert_eq!(fresh.get::<u32>("k").await.unwrap(), 1);
        }
        assert_eq!(rig.calls("get"), before + 3);
    });
}

#[test]
fn prefixes_are_announced_without_a_read() {
    each(&CacheOptions::new().broadcast(["user:", "job:"]), async |mut rig| {
        rig.say("MSET user:1 old other 1");
        // The announcement of the write may come after the first reads.
        while rig.cache.report().counters.hits == 0 {
            assert_eq!(rig.cache.get::<String>("user:1").await.unwrap(), "old");
        }
        let before = rig.calls("get");
        for _ in 0..3 {
            assert_eq!(rig.cache.get::<String>("user:1").await.unwrap(), "old");
            assert_eq!(rig.cache.get::<u32>("other").await.unwrap(), 1);
        }
        assert_eq!(rig.calls("get"), before + 3, "other keys are not cached");
        rig.say("SET user:1 new");
        rig.becomes("user:1", Some("old"), Some("new")).await;
        assert_eq!(rig.calls("client|caching"), 0);
    });
}

#[test]
fn a_server_that_announces_nothing_is_read_from() {
    // Towline has one user so far, who may everything.
    let kinds = [ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91];
    each_of(&kinds, &CacheOptions::new(), async |mut rig| {
        rig.say("ACL SETUSER reader on >secret ~* +@all -client|tracking");
        rig.say("SET k 1");
        let target = options(rig.server.address());
        let user = towline_client::Credentials::user("reader", "secret");
        let client = Client::open(target.credentials(user).client_cache(CacheOptions::new())).await.unwrap();
        let cache = client.cache().unwrap();
        for _ in 0..3 {
            assert_eq!(cache.get::<u32>("k").await.unwrap(), 1);
        }
        assert!(!cache.report().is_on);
        assert_eq!((client.metrics().cache_bypassed, rig.calls("get")), (3, 3));
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _context = runtime.enter();
    let resp2 = options(([127, 0, 0, 1], 1).into()).protocol(ProtocolChoice::Resp2);
    let error = Client::lazy(resp2.clone().client_cache(CacheOptions::new())).unwrap_err();
    assert!(error.to_string().contains("RESP3"), "{error}");
    let error = Client::lazy(resp2).unwrap().cache().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(_)), "{error}");
}

/// Readers see a key's versions in their order, whatever happens to the connection, and the last one in the end.
#[test]
fn no_reader_ever_goes_back_in_time() {
    each(&CacheOptions::new(), async |mut rig| {
        let stop = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..8)
            .map(|_| {
                let (cache, stop) = (rig.cache.clone(), Arc::clone(&stop));
                tokio::spawn(async move {
                    let mut last = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let version = cache.get::<Option<u64>>("k").await.unwrap().unwrap_or(0);
                        assert!(version >= last, "{version} after {last}");
                        last = version;
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for version in 1..=3000 {
            rig.say(&format!("SET k {version}"));
            if version % 300 == 0 {
                rig.say("CLIENT KILL TYPE normal SKIPME yes");
            }
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.await.unwrap();
        }
        let last = rig.cache.get::<Option<String>>("k").await.unwrap();
        rig.becomes("k", last.as_deref(), Some("3000")).await;
        assert!(rig.cache.report().counters.hits > 0);
    });
}

/// A connection that says nothing any more is found out by the client's own questions, and what it announced last is not trusted
/// for longer.
#[test]
fn a_silent_connection_is_not_trusted_for_long() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let mut observer = server.connect().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let proxy = FaultProxy::start(server.address(), 1, &[]).await.unwrap();
        let mut liveness = LivenessConfig::default();
        (liveness.idle_ping_after, liveness.silence_max) =
            (Some(Duration::from_millis(200)), Duration::from_millis(300));
        let options = options(proxy.address()).liveness(liveness).client_cache(CacheOptions::new());
        let client = Client::open(options).await.unwrap();
        let cache = client.cache().unwrap();
        observer.words("SET k old").unwrap();
        becomes(&cache, "k", None, Some("old".into())).await;
        becomes(&cache, "k", None, Some("old".into())).await;
        assert!(cache.report().counters.hits > 0);
        proxy.hold_present();
        observer.words("SET k new").unwrap();
        becomes(&cache, "k", Some("old".into()), Some("new".into())).await;
    });
}

#[test]
fn a_planned_move_of_the_connection_drops_what_it_had_read() {
    let server = Server::start(ServerKind::Towline, &["--bind", "127.0.0.1", "127.0.0.2"]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let at = |last: u8| std::net::SocketAddr::from(([127, 0, 0, last], server.port()));
        let client = Client::open(options(at(1)).client_cache(CacheOptions::new())).await.unwrap();
        let cache = client.cache().unwrap();
        let mut admin = Conn::open(at(2)).unwrap();
        for (round, (from, to)) in (1..).zip([(1, 2), (2, 1), (1, 2)]) {
            let (old, new) = (format!("old{round}"), format!("new{round}"));
            admin.words(&format!("SET k {old}")).unwrap();
            let before = cache.get("k").await.unwrap();
            becomes(&cache, "k", before, Some(old)).await;
            let mut speaker = Conn::open(at(to)).unwrap();
            speaker.words(&format!("TOWLINE DRAIN WINDOW 5 TO {} ON {}", at(to), at(from))).unwrap();
            assert!(wait::eventually(|| client.metrics().handoffs == round).await, "{:?}", client.metrics());
            admin = speaker;
            admin.words(&format!("SET k {new}")).unwrap();
            // The old connection may be gone already: nobody but the client itself knows that the value is over.
            assert_eq!(cache.get::<String>("k").await.unwrap(), new);
        }
        assert!(client.metrics().cache_dropped >= 3);
        assert_eq!(client.metrics().failed, 0);
    });
}

fn in_a_cluster(kind: ServerKind) {
    let cluster = RealCluster::start(kind, Duration::from_secs(1)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let ports = cluster.ports();
        let seeds = ClusterOptions::new().seed(Target::tcp("127.0.0.1", ports[5]));
        let options = ConnectOptions::new(Target::tcp("127.0.0.1", ports[0]))
            .command_timeout(Duration::from_secs(15))
            .cluster(seeds)
            .client_cache(CacheOptions::new());
        let client = Client::open(options).await.unwrap();
        let cache = client.cache().unwrap();
        let primaries = cluster.primaries().unwrap();
        let keys: Vec<String> = primaries.iter().map(|node| key_in(node.slots[0].0, "cached")).collect();
        for (key, node) in keys.iter().zip(&primaries) {
            assert_eq!(cluster.connect(node.port).unwrap().words(&format!("SET {key} old")).unwrap(), ok());
            becomes(&cache, key, None, Some("old".into())).await;
            becomes(&cache, key, None, Some("old".into())).await;
        }
        assert!(cache.report().counters.hits >= 1);
        assert_eq!(cache.report().counters.bypassed, 0);

        // A slot moves, and its key is changed by its new owner.
        cluster.reshard(&primaries[0], &primaries[1], 5).unwrap();
        let mut owner = cluster.connect(primaries[1].port).unwrap();
        assert_eq!(owner.words(&format!("SET {} moved", keys[0])).unwrap(), ok());
        becomes(&cache, &keys[0], Some("old".into()), Some("moved".into())).await;
        // What is read from the new owner is kept, and heard of.
        let before = cache.report().counters.hits;
        while cache.report().counters.hits == before {
            assert_eq!(cache.get::<String>(&keys[0]).await.unwrap(), "moved");
        }
        owner.words(&format!("SET {} again", keys[0])).unwrap();
        becomes(&cache, &keys[0], Some("moved".into()), Some("again".into())).await;

        // A primary dies; its heir changes the key.
        let lost =
            cluster.primaries().unwrap().into_iter().find(|node| node.port == primaries[2].port).unwrap();
        becomes(&cache, &keys[2], None, Some("old".into())).await;
        cluster.kill(lost.port).unwrap();
        cluster.wait_for_heir(&lost).unwrap();
        let heir = cluster
            .members_by(|port| port != lost.port)
            .unwrap()
            .into_iter()
            .find(|node| node.is_serving() && node.slots.iter().any(|(low, _)| *low == lost.slots[0].0))
            .unwrap();
        let changed = cluster.connect(heir.port).unwrap().words(&format!("SET {} heir", keys[2])).unwrap();
        assert_eq!(changed, ok());
        becomes(&cache, &keys[2], Some("old".into()), Some("heir".into())).await;
    });
    runtime.shutdown_background();
}

#[test]
fn slots_and_primaries_come_and_go_on_redis_70() {
    in_a_cluster(ServerKind::Redis70);
}

#[test]
fn slots_and_primaries_come_and_go_on_redis_82() {
    in_a_cluster(ServerKind::Redis82);
}

#[test]
fn slots_and_primaries_come_and_go_on_valkey_91() {
    in_a_cluster(ServerKind::Valkey91);
}
