//! Typed commands and the streams of the client, against every server and over both protocols.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::Pin;

use bytes::Bytes;
use e2e::process::{Server, ServerKind};
use towline_client::commands::{NONE, TypedCommands, batch, make};
use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions, Error, KeyspaceEvent, ProtocolChoice, PubSubEvent, Transacted};

/// Runs a test on every server, over both protocols.
fn each(test: impl Fn(Client) -> Pin<Box<dyn Future<Output = Result<(), Error>>>>) {
    on(&ServerKind::ALL, test);
}

/// As [`each`], for what Towline's server does not have yet: scripts and streams.
fn each_real(test: impl Fn(Client) -> Pin<Box<dyn Future<Output = Result<(), Error>>>>) {
    on(&[ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91], test);
}

fn on(kinds: &[ServerKind], test: impl Fn(Client) -> Pin<Box<dyn Future<Output = Result<(), Error>>>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for &kind in kinds {
        let server = Server::start(kind, &["--notify-keyspace-events", "KA"]).unwrap();
        for protocol in [ProtocolChoice::Resp2, ProtocolChoice::Resp3] {
            let options = ConnectOptions::new(Target::tcp("127.0.0.1", server.port())).protocol(protocol);
            runtime.block_on(async {
                let client = Client::open(options).await.unwrap();
                TypedCommands::flushall(&client).await.unwrap();
                let outcome = test(client).await;
                assert!(outcome.is_ok(), "{} with {protocol:?}: {outcome:?}", kind.name());
            });
        }
    }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

#[test]
fn strings_and_keys_have_their_own_types() {
    each(|client| {
        Box::pin(async move {
            let con = &client;
            TypedCommands::set(con, "a", 1).await?;
            TypedCommands::mset(con, [("b", "x"), ("c", "y")]).await?;
            let set: Option<Bytes> = con.set_with("a", 2, ("NX", "GET")).await?;
            assert_eq!(set, Some(bytes("1")));
            assert_eq!((con.incr("a").await?, con.incrbyfloat("a", 0.5).await?), (2, 2.5));
            assert_eq!(con.append("b", "yz").await?, 3);
            assert_eq!(con.getrange("b", 0, 1).await?, bytes("xy"));
            assert_eq!(con.mget(["b", "none"]).await?, [Some(bytes("xyz")), None]);
            assert_eq!((con.getdel("c").await?, con.getdel("c").await?), (Some(bytes("y")), None));
            assert_eq!((con.exists(["a", "b", "c"]).await?, con.del(["a", "c"]).await?), (2, 1));
            assert_eq!((con.expire("b", 100).await?, con.expire("none", 100).await?), (true, false));
            assert!((1..=100).contains(&con.ttl("b").await?) && con.persist("b").await?);
            assert_eq!((con.ttl("b").await?, con.ttl("none").await?), (-1, -2));
            assert_eq!(
                (con.type_("b").await?.as_str(), con.type_("none").await?.as_str()),
                ("string", "none")
            );
            assert_eq!(con.object_encoding("none").await.unwrap_or(None), None);
            assert_eq!((con.copy("b", "d").await?, con.dbsize().await?), (true, 2));
            con.rename("d", "e").await?;
            assert_eq!(con.keys("e").await?, [bytes("e")]);
            assert_eq!((con.setbit("bits", 7, 1).await?, con.getbit("bits", 7).await?), (false, true));
            assert_eq!((con.bitcount("bits").await?, con.bitpos("bits", 1).await?), (1, 7));
            Ok(())
        })
    });
}

#[test]
fn collections_have_their_own_types() {
    each(|client| {
        Box::pin(async move {
            let con = &client;
            assert_eq!((con.rpush("l", ["a", "b", "c"]).await?, con.llen("l").await?), (3, 3));
            assert_eq!(con.lrange("l", 0, -1).await?, ["a", "b", "c"].map(bytes));
            assert_eq!((con.lpop("l").await?, con.lindex("l", 9).await?), (Some(bytes("a")), None));
            assert_eq!((con.lpos("l", "c").await?, con.lpos("l", "x").await?), (Some(1), None));
            assert_eq!(con.linsert("l", "BEFORE", "c", "bc").await?, 3);
            assert_eq!(con.blpop(["none", "l"], 1).await?, Some((bytes("l"), bytes("b"))));
            assert_eq!(con.lmove("l", "m", "LEFT", "RIGHT").await?, Some(bytes("bc")));

            assert_eq!(con.hset("h", [("a", "1")]).await?, 1);
            assert_eq!(con.hgetall("h").await?, HashMap::from([(bytes("a"), bytes("1"))]));
            assert_eq!((con.hincrby("h", "a", 4).await?, con.hexists("h", "x").await?), (5, false));
            assert_eq!((con.hget("h", "a").await?, con.hget("h", "x").await?), (Some(bytes("5")), None));

            assert_eq!(con.sadd("s", ["a", "b"]).await?, 2);
            assert_eq!(con.smismember("s", ["a", "x"]).await?, [true, false]);
            assert_eq!(con.sintercard(["s", "s"]).await?, 2);
            let members: BTreeSet<Bytes> = con.smembers("s").await?.into_iter().collect();
            assert_eq!(members, BTreeSet::from(["a", "b"].map(bytes)));

            assert_eq!(con.zadd("z", [(1, "a"), (2, "b")]).await?, 2);
            assert_eq!((con.zscore("z", "b").await?, con.zscore("z", "x").await?), (Some(2.0), None));
            assert_eq!((con.zrank("z", "b").await?, con.zrank("z", "x").await?), (Some(1), None));
            assert_eq!(con.zmscore("z", ["a", "x"]).await?, [Some(1.0), None]);
            assert_eq!((con.zincrby("z", 0.5, "a").await?, con.zcard("z").await?), (1.5, 2));
            assert_eq!(con.zpopmin("z").await?, [(bytes("a"), 1.5)]);
            assert_eq!(con.bzpopmax(["z"], 1).await?, Some((bytes("z"), bytes("b"), 2.0)));
            assert_eq!(con.zpopmin("z").await?, []);

            assert_eq!(con.geoadd("g", (13.361389, 38.115556, "Palermo")).await?, 1);
            let positions = con.geopos("g", ["Palermo", "nowhere"]).await?;
            assert!(positions[0].is_some_and(|(x, y)| (x - 13.36).abs() < 0.01 && (y - 38.11).abs() < 0.01));
            assert_eq!(positions[1], None);
            assert_eq!(con.geodist("g", "Palermo", "nowhere").await?, None);
            assert!(con.pfadd("p", ["a", "b"]).await? && con.pfcount(["p"]).await? == 2);
            Ok(())
        })
    });
}

#[test]
fn streams_and_scripts_have_their_own_types() {
    each_real(|client| {
        Box::pin(async move {
            let con = &client;
            let id = con.xadd("s", "*", [("f", "v"), ("g", "w")]).await?;
            let fields = vec![(bytes("f"), bytes("v")), (bytes("g"), bytes("w"))];
            assert_eq!(con.xrange("s", "-", "+").await?, [(id.clone(), fields.clone())]);
            let read = con.xread_with(("COUNT", 5), ["s"], ["0"]).await?;
            assert_eq!(read, HashMap::from([(bytes("s"), vec![(id.clone(), fields.clone())])]));
            assert_eq!(con.xread(["s"], ["$"]).await?, HashMap::new());
            con.xgroup_create("s", "g", "0").await?;
            assert!(con.xgroup_createconsumer("s", "g", "c").await?);
            assert_eq!(con.xreadgroup("g", "c", ["s"], [">"]).await?[&bytes("s")].len(), 1);
            assert_eq!((con.xack("s", "g", [&id]).await?, con.xlen("s").await?), (1, 1));
            assert_eq!((con.xdel("s", [&id]).await?, con.xgroup_destroy("s", "g").await?), (1, true));

            let sum: i64 = con.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", ["n"], [7]).await?;
            assert_eq!(sum, 7);
            let nothing: Option<String> = con.eval("return false", NONE, NONE).await?;
            assert_eq!(nothing, None);
            let library =
                "#!lua name=lib\nredis.register_function('double', function(k, a) return a[1] * 2 end)";
            assert_eq!(con.function_load_with("REPLACE", library).await?, "lib");
            assert_eq!(con.fcall::<i64>("double", NONE, [21]).await?, 42);
            let sha = con.script_load("return 1").await?;
            assert_eq!(con.script_exists([sha.as_str(), &"0".repeat(40)]).await?, [true, false]);

            Ok(())
        })
    });
}

#[test]
fn the_server_has_its_own_types() {
    each(|client| {
        Box::pin(async move {
            let con = &client;
            TypedCommands::set(con, "n", 1).await?;
            assert_eq!((con.ping().await?.as_str(), con.echo("x").await?), ("PONG", bytes("x")));
            let (seconds, micros) = con.time().await?;
            assert!(seconds > 1_600_000_000 && micros < 1_000_000);
            assert_eq!(con.config_get(["databases"]).await?.len(), 1);
            assert!(con.info("server").await?.contains("redis_version"));
            assert!(con.client_id().await? > 0 && con.command_count().await? > 100);
            assert_eq!(con.acl_whoami().await?, "default");
            let (cursor, keys) = con.scan_with(0, ("MATCH", "n", "COUNT", 100)).await?;
            assert_eq!((cursor, keys), (0, vec![bytes("n")]));
            Ok(())
        })
    });
}

#[test]
fn a_batch_is_a_tuple_of_its_commands() {
    each(|client| {
        Box::pin(async move {
            let (n, text, fields, chosen) = batch()
                .incrby("n", 5)
                .and_ignore(make::hashes::hset("h", ("f", "v")))
                .get("none")
                .hgetall("h")
                .and::<i32>(make::strings::get("n"))
                .query(&client)
                .await?;
            assert_eq!((n, text, chosen), (5, None, 5));
            assert_eq!(fields, HashMap::from([(bytes("f"), bytes("v"))]));

            let transfer = batch().decrby("n", 2).incrby("m", 2).atomic();
            assert_eq!(transfer.clone().transact(&client).await?, Transacted::Committed((3, 2)));
            assert_eq!(transfer.query(&client).await?, (1, 4));
            Ok(())
        })
    });
}

#[test]
fn a_scan_sees_everything_that_stays() {
    each(|client| {
        Box::pin(async move {
            let fill = (0..500).map(|number| make::strings::set(format!("key:{number}"), number));
            let fill = fill.chain((0..500).map(|number| make::sets::sadd("set", number)));
            let fill = fill.chain((0..500).map(|number| make::hashes::hset("hash", (number, number * 2))));
            let fill = fill.chain((0..500).map(|number| make::zsets::zadd("zset", (number, number))));
            fill.collect::<towline_client::Pipeline>().query::<()>(&client).await?;

            let mut keys = BTreeSet::new();
            let mut scan = client.scan_keys::<String>().matching("key:*").page_size(50).of_type("string");
            while let Some(key) = scan.next().await {
                keys.insert(key?);
            }
            assert_eq!(keys.len(), 500);
            assert!(scan.next().await.is_none());

            let mut members = BTreeSet::new();
            let mut scan = client.scan_set::<u32>("set");
            while let Some(member) = scan.next().await {
                members.insert(member?);
            }
            assert_eq!(members, (0..500).collect());

            let mut fields = BTreeMap::new();
            let mut scan = client.scan_hash::<u32, u32>("hash").page_size(100);
            while let Some(pair) = scan.next().await {
                fields.extend([pair?]);
            }
            assert_eq!(fields, (0..500).map(|number| (number, number * 2)).collect());

            let mut scores = BTreeMap::new();
            let mut scan = client.scan_sorted_set::<u32>("zset");
            while let Some(pair) = scan.next().await {
                let (member, score) = pair?;
                scores.insert(member, score);
            }
            assert!(scores.len() == 500 && scores.iter().all(|(member, score)| f64::from(*member) == *score));
            Ok(())
        })
    });
}

#[test]
fn a_scan_of_the_wrong_type_says_so() {
    each(|client| {
        Box::pin(async move {
            client.set("text", "x").await?;
            let error = client.scan_set::<String>("text").next().await.unwrap().unwrap_err();
            assert_eq!(error.code(), Some("WRONGTYPE"));
            Ok(())
        })
    });
}

#[test]
fn keyspace_events_are_a_stream() {
    each(|client| {
        Box::pin(async move {
            let mut events = client.keyspace_events(0, "watched:*").await?;
            client.set("watched:a", "1").await?;
            client.set("other", "1").await?;
            TypedCommands::del(&client, ["watched:a"]).await?;
            for expected in ["set", "del"] {
                let event = events.next().await.unwrap();
                let happened = KeyspaceEvent::Happened { key: bytes("watched:a"), event: bytes(expected) };
                assert_eq!(event, happened);
            }
            Ok(())
        })
    });
}

#[test]
fn messages_are_a_stream() {
    each(|client| {
        Box::pin(async move {
            use std::future::poll_fn;
            use std::task::Poll;

            let mut news = Box::pin(client.subscribe(["news"]).await?);
            client.publish("news", "hello").await?;
            // By the trait, as the combinators of any stream library do it.
            let event = poll_fn(|cx| match futures_core::Stream::poll_next(news.as_mut(), cx) {
                Poll::Ready(event) => Poll::Ready(event),
                Poll::Pending => Poll::Pending,
            })
            .await;
            let message =
                PubSubEvent::Message { channel: bytes("news"), pattern: None, payload: bytes("hello") };
            assert_eq!(event, Some(message));
            Ok(())
        })
    });
}

#[test]
fn what_a_server_is_given_is_a_stream() {
    each_real(|client| {
        Box::pin(async move {
            let mut monitor = client.monitor().await?;
            client.set("key", b"a \"b\"\n\xff").await?;
            let event = loop {
                let event = monitor.next().await.unwrap()?;
                if event.args[0].eq_ignore_ascii_case(b"set") {
                    break event;
                }
            };
            assert_eq!(
                (event.database, &event.args[1..]),
                (0, &[bytes("key"), Bytes::from_static(b"a \"b\"\n\xff")][..])
            );
            let kill = client.client_kill(("TYPE", "normal", "SKIPME", "yes"));
            kill.await.unwrap_or(0_i64);
            while let Some(event) = monitor.next().await {
                if let Err(error) = event {
                    assert!(error.is_connection_lost(), "{error}");
                }
            }
            Ok(())
        })
    });
}

/// The trait whose methods leave the type to the caller has a place of its own: both traits have the same names.
mod chosen {
    use super::{BTreeMap, Bytes, bytes, each};
    use towline_client::commands::Commands;

    #[test]
    fn the_caller_chooses_the_type() {
        each(|client| {
            Box::pin(async move {
                client.set("n", "42").await?;
                assert_eq!(client.get::<i64>("n").await?, 42);
                assert_eq!(client.get::<String>("n").await?, "42");
                assert_eq!(client.get::<Bytes>("n").await?, bytes("42"));
                let long = Bytes::from(vec![b'x'; 100_000]);
                client.set("long", &long).await?;
                assert_eq!(client.get::<Bytes>("long").await?, long);

                client.hset::<u64>("h", [("a", 1), ("b", 2)]).await?;
                let fields: BTreeMap<String, i64> = client.hgetall("h").await?;
                assert_eq!(fields, BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]));
                let both: [Option<i64>; 3] = client.hmget("h", ["a", "x", "b"]).await?;
                assert_eq!(both, [Some(1), None, Some(2)]);
                let scores: Vec<(String, f64)> = {
                    client.zadd::<u64>("z", [(1.5, "m"), (2.5, "n")]).await?;
                    client.zrange_with("z", 0, -1, "WITHSCORES").await?
                };
                assert_eq!(scores, [("m".to_owned(), 1.5), ("n".to_owned(), 2.5)]);
                Ok(())
            })
        });
    }
}
