//! Programs written for redis-rs on Towline's client: what its own guide and examples show, against every server.
//!
//! Each test runs over both protocols. What a test says is what redis-rs promises; none of it mentions this client but
//! for the line that connects.

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::time::Duration;

use e2e::process::{Server, ServerKind};
use redis::aio::ConnectionLike;
use redis::streams::{StreamMaxlen, StreamReadOptions, StreamReadReply};
use redis::{
    AsyncCommands, AsyncIter, ErrorKind, FromRedisValue, ParsingError, RedisResult, Script, ServerErrorKind,
    Value, from_redis_value,
};
use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions, ProtocolChoice, Sent};

/// Runs a test on every server, over both protocols.
fn each(test: impl Fn(Client) -> Pin<Box<dyn Future<Output = RedisResult<()>>>>) {
    on(&[ServerKind::Towline, ServerKind::Redis70, ServerKind::Valkey91], test);
}

/// As [`each`], for what Towline's server does not have yet: scripts and streams.
fn each_real(test: impl Fn(Client) -> Pin<Box<dyn Future<Output = RedisResult<()>>>>) {
    on(&[ServerKind::Redis70, ServerKind::Valkey91], test);
}

fn on(kinds: &[ServerKind], test: impl Fn(Client) -> Pin<Box<dyn Future<Output = RedisResult<()>>>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for &kind in kinds {
        let server = Server::start(kind, &[]).unwrap();
        for protocol in [ProtocolChoice::Resp2, ProtocolChoice::Resp3] {
            let options = ConnectOptions::new(Target::tcp("127.0.0.1", server.port())).protocol(protocol);
            runtime.block_on(async {
                let mut client = Client::open(options).await.unwrap();
                redis::cmd("FLUSHALL").exec_async(&mut client).await.unwrap();
                let outcome = test(client).await;
                assert!(outcome.is_ok(), "{} with {protocol:?}: {outcome:?}", kind.name());
            });
        }
    }
}

/// The client as code sees it that knows redis-rs's traits only. (Its own `get` and `set` would come first.)
fn known_by_traits(client: Client) -> impl AsyncCommands + Clone + Sync + 'static {
    client
}

#[test]
fn commands_take_and_give_the_callers_types() {
    each(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client);
            let () = con.set("key1", b"foo").await?;
            redis::cmd("SET").arg(&["key2", "bar"]).exec_async(&mut con).await?;
            let both: (String, Vec<u8>) =
                redis::cmd("MGET").arg(&["key1", "key2"]).query_async(&mut con).await?;
            assert_eq!(both, ("foo".to_owned(), b"bar".to_vec()));

            let absent: Option<i64> = con.get("absent").await?;
            assert_eq!(absent, None);
            let () = con.hset_multiple("hash", &[("a", 1), ("b", 2)]).await?;
            let hash: HashMap<String, i64> = con.hgetall("hash").await?;
            assert_eq!(hash, HashMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]));
            let () = con.zadd_multiple("zset", &[(1.5, "x"), (2.5, "y")]).await?;
            let range: Vec<(String, f64)> = con.zrange_withscores("zset", 0, -1).await?;
            assert_eq!(range, [("x".to_owned(), 1.5), ("y".to_owned(), 2.5)]);
            let () = con.sadd("set", &["a", "b", "a"]).await?;
            let set: BTreeSet<String> = con.smembers("set").await?;
            assert_eq!(set.into_iter().collect::<Vec<_>>(), ["a", "b"]);
            let is_member: bool = con.sismember("set", "a").await?;
            assert!(is_member);
            assert_eq!(ConnectionLike::get_db(&con), 0);
            Ok(())
        })
    });
}

#[test]
fn pipelines_answer_in_order_and_say_which_command_failed() {
    each(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client);
            let (a, b): (i64, String) = redis::pipe()
                .set("a", 41)
                .ignore()
                .incr("a", 1)
                .set("b", "x")
                .ignore()
                .get("b")
                .query_async(&mut con)
                .await?;
            assert_eq!((a, b.as_str()), (42, "x"));

            let mut failing = redis::pipe();
            failing.get("a").incr("b", 1).get("b");
            let error = failing.query_async::<Vec<Value>>(&mut con).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::ResponseError));
            let errors = error.into_server_errors().unwrap();
            assert_eq!(errors.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [1]);

            let results: Vec<RedisResult<String>> = failing.ignore_errors().query_async(&mut con).await?;
            assert_eq!(results.iter().map(RedisResult::is_ok).collect::<Vec<_>>(), [true, false, true]);
            let nothing: Vec<Value> = redis::pipe().query_async(&mut con).await?;
            assert_eq!(nothing, []);
            Ok(())
        })
    });
}

#[test]
fn atomic_pipelines_are_transactions() {
    each(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client);
            let (a, b): (i64, i64) = redis::pipe()
                .atomic()
                .incr("a", 2)
                .set("c", 1)
                .ignore()
                .incr("b", 3)
                .query_async(&mut con)
                .await?;
            assert_eq!((a, b), (2, 3));

            let refused = redis::pipe().atomic().incr("a", 1).cmd("NOSUCH").query_async::<()>(&mut con).await;
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Server(ServerErrorKind::ExecAbort));
            assert_eq!(towline_client::redis::sent(&refused), Some(Sent::Answered));
            let a: i64 = con.get("a").await?;
            assert_eq!(a, 2);

            let () = con.set("text", "x").await?;
            let failed =
                redis::pipe().atomic().incr("a", 1).incr("text", 1).query_async::<(i64, i64)>(&mut con).await;
            let errors = failed.unwrap_err().into_server_errors().unwrap();
            assert_eq!(errors.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [1]);
            Ok(())
        })
    });
}

#[test]
fn a_watched_key_that_changes_leaves_the_transaction_undone() {
    each(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client.clone());
            let refused = redis::cmd("WATCH").arg("k").exec_async(&mut con).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Client);
            assert!(refused.to_string().contains("take a lease"), "{refused}");

            let mut lease = client.lease().await.unwrap();
            for is_disturbed in [true, false] {
                let () = con.set("k", 1).await?;
                redis::cmd("WATCH").arg("k").exec_async(&mut lease).await?;
                let value: i64 = redis::cmd("GET").arg("k").query_async(&mut lease).await?;
                if is_disturbed {
                    let () = con.set("k", 10).await?;
                }
                let outcome: Option<(i64,)> = redis::pipe()
                    .atomic()
                    .set("k", value + 1)
                    .ignore()
                    .get("k")
                    .query_async(&mut lease)
                    .await?;
                assert_eq!(outcome, (!is_disturbed).then_some((2,)));
            }
            Ok(())
        })
    });
}

#[test]
fn a_script_is_loaded_again_when_the_server_has_forgotten_it() {
    each_real(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client);
            let script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
            for expected in [5, 10] {
                let value: i64 = script.key("n").arg(5).invoke_async(&mut con).await?;
                assert_eq!(value, expected);
                redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut con).await?;
            }
            Ok(())
        })
    });
}

#[test]
fn iterators_see_every_element() {
    each(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client);
            let mut fill = redis::pipe();
            for number in 0..1000 {
                fill.sadd("set", number).ignore().set(format!("key:{number}"), number).ignore();
            }
            fill.exec_async(&mut con).await?;

            let mut members = BTreeSet::new();
            let mut iter: AsyncIter<'_, i64> = con.sscan("set").await?;
            while let Some(member) = iter.next_item().await {
                members.insert(member?);
            }
            assert_eq!(members.len(), 1000);

            drop(iter);
            let mut keys = BTreeSet::new();
            let mut iter: AsyncIter<'_, String> = con.scan_match("key:*").await?;
            while let Some(key) = iter.next_item().await {
                keys.insert(key?);
            }
            assert_eq!(keys.len(), 1000);
            Ok(())
        })
    });
}

/// A type of somebody else's.
#[derive(Debug, PartialEq)]
struct Point {
    x: i64,
    y: i64,
}

impl FromRedisValue for Point {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let mut fields: HashMap<String, i64> = from_redis_value(value)?;
        let mut field =
            |name: &str| fields.remove(name).ok_or_else(|| ParsingError::from(format!("no {name}")));
        Ok(Self { x: field("x")?, y: field("y")? })
    }
}

#[test]
fn a_foreign_type_is_read_from_a_reply() {
    each(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client);
            let () = con.hset_multiple("point", &[("x", 3), ("y", 4)]).await?;
            let point: Point = con.hgetall("point").await?;
            assert_eq!(point, Point { x: 3, y: 4 });
            let error = con.hgetall::<_, Point>("absent").await.unwrap_err();
            assert!(error.to_string().contains("no x"), "{error}");
            Ok(())
        })
    });
}

#[test]
fn streams_are_read_as_their_own_types() {
    each_real(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client);
            for number in 0..5 {
                let _: String = con.xadd_maxlen("s", StreamMaxlen::Equals(3), "*", &[("n", number)]).await?;
            }
            let options = StreamReadOptions::default().count(10);
            let reply: Option<StreamReadReply> = con.xread_options(&["s"], &["0"], &options).await?;
            let reply = reply.unwrap();
            let numbers: Vec<i64> = reply.keys[0].ids.iter().map(|id| id.get("n").unwrap()).collect();
            assert_eq!((reply.keys[0].key.as_str(), numbers), ("s", vec![2, 3, 4]));
            let nothing: Option<StreamReadReply> = con.xread_options(&["s"], &["$"], &options).await?;
            assert!(nothing.is_none_or(|reply| reply.keys.is_empty()));
            Ok(())
        })
    });
}

#[test]
fn a_blocking_command_holds_nobody_up_and_is_not_cut_short() {
    each(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client);
            let mut waiting = con.clone();
            let pop = tokio::spawn(async move { waiting.blpop::<_, (String, String)>("queue", 0.0).await });
            // Longer than redis-rs gives any command, if the machine is quick; this one goes on in any case.
            let info = |text: String| text.contains("blocked_clients:1\r\n");
            while !info(redis::cmd("INFO").arg("clients").query_async(&mut con).await?) {}
            let _: i64 = con.rpush("queue", "item").await?;
            assert_eq!(pop.await.unwrap()?, ("queue".to_owned(), "item".to_owned()));
            Ok(())
        })
    });
}

#[test]
fn errors_answer_what_users_of_redis_rs_ask() {
    each(|client| {
        Box::pin(async move {
            let mut con = known_by_traits(client);
            let () = con.set("text", "x").await?;
            let wrong = con.lpush::<_, _, ()>("text", 1).await.unwrap_err();
            assert_eq!((wrong.code(), wrong.kind()), (Some("WRONGTYPE"), ErrorKind::Extension));
            let number = con.incr::<_, _, i64>("text", 1).await.unwrap_err();
            assert_eq!(number.kind(), ErrorKind::Server(ServerErrorKind::ResponseError));
            let shape = con.get::<_, i64>("text").await.unwrap_err();
            assert_eq!(shape.kind(), ErrorKind::Parse);
            Ok(())
        })
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let nobody: ConnectOptions = "redis://127.0.0.1:1".parse().unwrap();
        let mut con =
            known_by_traits(Client::lazy(nobody.command_timeout(Duration::from_millis(50))).unwrap());
        let late = con.get::<_, Option<i64>>("key").await.unwrap_err();
        assert!(late.is_timeout() && late.is_io_error(), "{late}");
        assert_eq!(towline_client::redis::sent(&late), Some(Sent::No));
    });
}

/// Both of redis-rs's traits have the same names.
mod typed {
    use super::each;
    use redis::AsyncTypedCommands;
    use towline_client::Client;

    fn known_by_traits(client: Client) -> impl AsyncTypedCommands {
        client
    }

    #[test]
    fn typed_commands_have_fixed_types() {
        each(|client| {
            Box::pin(async move {
                let mut con = known_by_traits(client);
                con.set("hello", "world").await?;
                assert_eq!(con.get("hello").await?, Some("world".to_owned()));
                con.set("counter", 0).await?;
                assert_eq!(con.incr("counter", 3).await?, 3);
                assert_eq!(con.del("counter").await?, 1);
                assert_eq!(con.key_type("hello").await?, redis::ValueType::String);
                for item in ["a", "b", "c"] {
                    con.lpush("list", item).await?;
                }
                assert_eq!(con.lrange("list", 0, -1).await?, ["c", "b", "a"]);
                Ok(())
            })
        });
    }
}
