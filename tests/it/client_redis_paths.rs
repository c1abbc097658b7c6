//! redis-rs's own paths on this client: what its guide shows, with one line changed, against every server.

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::time::Duration;

use e2e::process::{Server, ServerKind};
use towline_client::redis;

use redis::aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection, transaction_async};
use redis::{AsyncCommands, Client, Commands, ErrorKind, PushInfo, PushKind, RedisResult};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn servers() -> impl Iterator<Item = Server> {
    let kinds = [ServerKind::Towline, ServerKind::Redis70, ServerKind::Valkey91];
    kinds.into_iter().map(|kind| Server::start(kind, &[]).unwrap())
}

/// Runs a test on every server, over both protocols.
fn each(test: impl Fn(Client) -> Pin<Box<dyn Future<Output = RedisResult<()>>>>) {
    let runtime = runtime();
    for server in servers() {
        for protocol in ["", "?protocol=resp3"] {
            let client = Client::open(format!("redis://127.0.0.1:{}/{protocol}", server.port())).unwrap();
            runtime.block_on(async {
                let mut con = client.get_multiplexed_async_connection().await.unwrap();
                redis::cmd("FLUSHALL").exec_async(&mut con).await.unwrap();
                let outcome = test(client).await;
                assert!(outcome.is_ok(), "{protocol:?}: {outcome:?}");
            });
        }
    }
}

#[test]
fn a_connection_is_shared_by_cloning_it() {
    async fn one(con: &MultiplexedConnection, number: i32) -> RedisResult<()> {
        let mut con = con.clone();
        let key = format!("key{number}");
        redis::cmd("SET").arg(&key).arg(number).exec_async(&mut con).await?;
        let value: i32 = redis::cmd("GET").arg(&key).query_async(&mut con).await?;
        assert_eq!(value, number);
        Ok(())
    }
    each(|client| {
        Box::pin(async move {
            let con = client.get_multiplexed_async_connection().await?;
            let tasks: Vec<_> = (0..100)
                .map(|number| {
                    let con = con.clone();
                    tokio::spawn(async move { one(&con, number).await })
                })
                .collect();
            for task in tasks {
                task.await.unwrap()?;
            }
            Ok(())
        })
    });
}

#[test]
fn a_manager_is_made_at_once_or_later() {
    each(|client| {
        Box::pin(async move {
            let config = ConnectionManagerConfig::new()
                .set_number_of_retries(3)
                .set_max_delay(Duration::from_millis(200))
                .set_response_timeout(Some(Duration::from_secs(3)));
            let mut now = client.get_connection_manager().await?;
            let mut lazy: ConnectionManager = client.get_connection_manager_lazy(config)?;
            let () = now.set("key", 1).await?;
            let value: i64 = lazy.incr("key", 1).await?;
            assert_eq!(value, 2);
            Ok(())
        })
    });
}

#[test]
fn a_watched_transaction_is_repeated_until_nobody_interferes() {
    each(|client| {
        Box::pin(async move {
            let con = client.get_multiplexed_async_connection().await?;
            let increments: Vec<_> = (0..8)
                .map(|_| {
                    let con = con.clone();
                    tokio::spawn(async move {
                        for _ in 0..5 {
                            let (_,): (i64,) =
                                transaction_async(con.clone(), &["n"], |mut con, mut pipe| async move {
                                    let old: Option<i64> = con.get("n").await?;
                                    pipe.set("n", old.unwrap_or(0) + 1)
                                        .ignore()
                                        .get("n")
                                        .query_async(&mut con)
                                        .await
                                })
                                .await?;
                        }
                        RedisResult::Ok(())
                    })
                })
                .collect();
            for task in increments {
                task.await.unwrap()?;
            }
            let n: i64 = con.clone().get("n").await?;
            assert_eq!(n, 40);
            Ok(())
        })
    });
}

#[test]
fn a_transaction_of_plain_commands_is_one() {
    each(|client| {
        Box::pin(async move {
            let mut con = client.get_multiplexed_async_connection().await?;
            redis::cmd("MULTI").exec_async(&mut con).await?;
            let queued: String = redis::cmd("INCR").arg("a").query_async(&mut con).await?;
            assert_eq!(queued, "QUEUED");
            let outside: Option<i64> = con.as_client().get("a").await.unwrap();
            assert_eq!(outside, None);
            let (a,): (i64,) = redis::cmd("EXEC").query_async(&mut con).await?;
            assert_eq!(a, 1);
            let again = redis::cmd("EXEC").exec_async(&mut con).await.unwrap_err();
            assert!(again.to_string().contains("EXEC without MULTI"), "{again}");
            redis::cmd("UNWATCH").exec_async(&mut con).await?;
            Ok(())
        })
    });
}

#[test]
fn a_database_is_selected_by_url_and_by_command() {
    for server in servers() {
        runtime().block_on(async {
            let url = format!("redis://127.0.0.1:{}/3", server.port());
            let mut con = Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap();
            assert_eq!(redis::aio::ConnectionLike::get_db(&con), 3);
            let () = con.set("key", "in 3").await.unwrap();
            let mut other = con.clone();
            redis::cmd("SELECT").arg(0).exec_async(&mut other).await.unwrap();
            assert_eq!(redis::aio::ConnectionLike::get_db(&other), 0);
            let there: Option<String> = other.get("key").await.unwrap();
            let here: Option<String> = con.get("key").await.unwrap();
            assert_eq!((there, here.as_deref()), (None, Some("in 3")));
            let none = redis::cmd("SELECT").arg(9999).exec_async(&mut other).await.unwrap_err();
            assert_eq!(none.code(), Some("ERR"));
        });
    }
}

#[test]
fn messages_come_as_a_stream() {
    each(|client| {
        Box::pin(async move {
            let mut publisher = client.get_multiplexed_async_connection().await?;
            let mut pubsub = client.get_async_pubsub().await?;
            pubsub.subscribe("phone").await?;
            pubsub.psubscribe(&["door.*", "window.*"]).await?;
            let _: i64 = publisher.publish("phone", "banana").await?;
            {
                let mut messages = pubsub.on_message();
                let message = next(&mut messages).await.unwrap();
                assert_eq!(message.get_channel_name(), "phone");
                assert_eq!(message.get_payload::<String>()?, "banana");
                assert!(!message.from_pattern());
            }
            let (mut sink, mut stream) = pubsub.split();
            sink.unsubscribe("phone").await?;
            sink.subscribe("bell").await?;
            let _: i64 = publisher.publish("phone", "unheard").await?;
            let _: i64 = publisher.publish("door.front", "knock").await?;
            let message = next(&mut stream).await.unwrap();
            assert_eq!(message.get_pattern::<String>()?, "door.*");
            assert_eq!(message.get_payload::<String>()?, "knock");
            Ok(())
        })
    });
}

async fn next<S: futures_core::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

#[test]
fn messages_come_to_a_push_sender() {
    each(|client| {
        Box::pin(async move {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<PushInfo>();
            let config =
                ConnectionManagerConfig::new().set_push_sender(sender).set_automatic_resubscription();
            let mut manager = client.get_connection_manager_with_config(config).await?;
            manager.subscribe("phone").await?;
            let mut publisher = client.get_multiplexed_async_connection().await?;
            let _: i64 = publisher.publish("phone", "banana").await?;
            let confirmed = receiver.recv().await.unwrap();
            assert_eq!(confirmed.kind, PushKind::Subscribe);
            let mut message = receiver.recv().await.unwrap();
            assert_eq!(message.kind, PushKind::Message);
            let payload: String = redis::from_redis_value(message.data.pop().unwrap())?;
            assert_eq!(payload, "banana");

            let refused = publisher.subscribe("phone").await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Client);
            Ok(())
        })
    });
}

#[test]
fn a_lost_connection_ends_the_stream_of_messages() {
    each(|client| {
        Box::pin(async move {
            let mut con = client.get_multiplexed_async_connection().await?;
            let mut pubsub = client.get_async_pubsub().await?;
            pubsub.subscribe("phone").await?;
            let mut messages = pubsub.into_on_message();
            redis::cmd("CLIENT").arg(&["KILL", "TYPE", "pubsub"]).exec_async(&mut con).await?;
            assert!(next(&mut messages).await.is_none());
            Ok(())
        })
    });
}

#[test]
fn what_a_server_is_given_comes_as_a_stream() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    runtime().block_on(async {
        let client = Client::open(("127.0.0.1", server.port())).unwrap();
        let mut con = client.get_multiplexed_async_connection().await.unwrap();
        let mut monitor = client.get_async_monitor().await.unwrap();
        let () = con.set("key", "value").await.unwrap();
        let mut lines = monitor.on_message::<String>();
        loop {
            let line = next(&mut lines).await.unwrap();
            if line.ends_with(r#""SET" "key" "value""#) {
                return;
            }
        }
    });
}

/// Where redis-rs's managed connection fails the command that finds the connection dead.
#[test]
fn a_killed_connection_is_not_noticed_by_a_read() {
    each(|client| {
        Box::pin(async move {
            let mut killer = client.get_multiplexed_async_connection().await?;
            let mut con = client.get_connection_manager().await?;
            let () = con.set("key", 1).await?;
            for _ in 0..3 {
                redis::cmd("CLIENT")
                    .arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"])
                    .exec_async(&mut killer)
                    .await?;
                let value: i64 = con.get("key").await?;
                assert_eq!(value, 1);
            }
            assert!(con.as_client().metrics().connections > 1);
            Ok(())
        })
    });
}

#[test]
fn a_refused_connection_is_known_as_one() {
    runtime().block_on(async {
        let client = Client::open("redis://127.0.0.1:1/").unwrap();
        let config =
            redis::AsyncConnectionConfig::new().set_connection_timeout(Some(Duration::from_millis(100)));
        let error = client.get_multiplexed_async_connection_with_config(&config).await.unwrap_err();
        assert!(error.is_connection_refusal() && error.is_connection_dropped(), "{error}");
    });
    let unknown = Client::open("http://127.0.0.1/").unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::InvalidClientConfig);
    let server = Server::start(ServerKind::Redis70, &["--requirepass", "secret"]).unwrap();
    runtime().block_on(async {
        let client = Client::open(format!("redis://:wrong@127.0.0.1:{}/", server.port())).unwrap();
        let error = client.get_multiplexed_async_connection().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AuthenticationFailed, "{error}");
        let info = ::redis::IntoConnectionInfo::into_connection_info(("127.0.0.1", server.port())).unwrap();
        let info =
            info.set_redis_settings(redis::RedisConnectionInfo::default().set_password("secret").set_db(2));
        let mut con = Client::open(info).unwrap().get_multiplexed_async_connection().await.unwrap();
        let pong: String = redis::cmd("PING").query_async(&mut con).await.unwrap();
        assert_eq!((pong.as_str(), redis::aio::ConnectionLike::get_db(&con)), ("PONG", 2));
    });
}

/// A pool in the manner of bb8 and deadpool: it knows nothing but redis-rs's traits.
struct Pool<C> {
    idle: std::sync::Mutex<Vec<C>>,
}

impl<C: redis::aio::ConnectionLike + Send> Pool<C> {
    async fn run<T>(&self, job: impl AsyncFnOnce(&mut C) -> RedisResult<T>) -> RedisResult<T> {
        let mut con = self.idle.lock().unwrap().pop().unwrap();
        let pong: String = redis::cmd("PING").query_async(&mut con).await?;
        assert_eq!(pong, "PONG");
        let outcome = job(&mut con).await;
        if !matches!(&outcome, Err(error) if error.is_unrecoverable_error()) {
            self.idle.lock().unwrap().push(con);
        }
        outcome
    }
}

#[test]
fn a_pool_of_connections_works_as_it_did() {
    each(|client| {
        Box::pin(async move {
            let con = client.get_multiplexed_async_connection().await?;
            let pool = Pool { idle: std::sync::Mutex::new(vec![con]) };
            let value: i64 = pool.run(async |con| con.incr("n", 1).await).await?;
            let wrong = pool.run(async |con| con.lpush::<_, _, ()>("n", 1).await).await.unwrap_err();
            assert_eq!((value, wrong.code()), (1, Some("WRONGTYPE")));
            assert_eq!(pool.idle.lock().unwrap().len(), 1);
            Ok(())
        })
    });
}

#[test]
fn programs_without_a_runtime_run_too() {
    for server in servers() {
        let client = Client::open(format!("redis://127.0.0.1:{}/", server.port())).unwrap();
        let mut con = client.get_connection().unwrap();
        redis::cmd("FLUSHALL").exec(&mut con).unwrap();

        let config: HashMap<String, isize> =
            redis::cmd("CONFIG").arg("GET").arg("*-max-*-entries").query(&mut con).unwrap();
        assert!(config.contains_key("set-max-intset-entries"));

        let mut fill = redis::pipe();
        for number in 0..1000 {
            fill.cmd("SADD").arg("my_set").arg(number).ignore();
        }
        fill.exec(&mut con).unwrap();
        let mut scan = redis::cmd("SSCAN");
        scan.arg("my_set").cursor_arg(0);
        let sum: i32 = scan.iter::<i32>(&mut con).unwrap().map(Result::unwrap).sum();
        assert_eq!(sum, 499_500);

        let () = con.set("the_key", 42).unwrap();
        let (new,): (isize,) = redis::transaction(&mut con, &["the_key"], |con, pipe| {
            let value: isize = con.get("the_key")?;
            pipe.set("the_key", value + 1).ignore().get("the_key").query(con)
        })
        .unwrap();
        assert_eq!(new, 43);
        // Towline's server has no scripts yet.
        if server.kind() != ServerKind::Towline {
            let script = redis::Script::new("return tonumber(ARGV[1]) + 1");
            assert_eq!(script.arg(4).invoke::<i64>(&mut con).unwrap(), 5);
        }
        let keys: BTreeSet<String> = con.scan().unwrap().map(Result::unwrap).collect();
        assert_eq!(keys.len(), 2);
        assert!(redis::ConnectionLike::check_connection(&mut con));

        let mut listener = client.get_connection().unwrap();
        let mut pubsub = listener.as_pubsub();
        pubsub.subscribe("phone").unwrap();
        let _: i64 = con.publish("phone", "banana").unwrap();
        assert_eq!(pubsub.get_message().unwrap().get_payload::<String>().unwrap(), "banana");
        pubsub.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        assert!(pubsub.get_message().unwrap_err().is_timeout());
    }
}
