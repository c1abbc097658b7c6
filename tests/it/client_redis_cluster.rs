//! redis-rs's paths on a real cluster: what a program for redis-rs's cluster client does, with one line changed.

use std::time::Duration;

use e2e::clusters::RealCluster;
use e2e::process::ServerKind;
use towline_client::redis;

use redis::AsyncCommands;
use redis::aio::transaction_async;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;

async fn everything(mut con: ClusterConnection) -> redis::RedisResult<()> {
    for number in 0..60 {
        let () = con.set(format!("key:{number}"), number).await?;
    }
    let keys: Vec<String> = (0..60).map(|number| format!("key:{number}")).collect();
    let values: Vec<u32> = con.mget(&keys).await?;
    assert_eq!(values, (0..60).collect::<Vec<_>>());

    let mut pipeline = redis::pipe();
    for key in &keys {
        pipeline.incr(key, 1);
    }
    let values: Vec<u32> = pipeline.query_async(&mut con).await?;
    assert_eq!(values, (1..61).collect::<Vec<_>>());

    let (a, b): (i64, i64) =
        redis::pipe().atomic().incr("{t}a", 1).incr("{t}b", 2).query_async(&mut con).await?;
    assert_eq!((a, b), (1, 2));
    let script = redis::Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    let sum: i64 = script.key("{t}a").arg(10).invoke_async(&mut con).await?;
    assert_eq!(sum, 11);

    let (doubled,): (i64,) = transaction_async(con.clone(), &["{t}a"], |mut con, mut pipe| async move {
        let value: i64 = con.get("{t}a").await?;
        pipe.set("{t}a", value * 2).ignore().get("{t}a").query_async(&mut con).await
    })
    .await?;
    assert_eq!(doubled, 22);

    let crossing = con.rename::<_, _, ()>("{t}a", "{u}a").await.unwrap_err();
    assert_eq!(crossing.code(), Some("CROSSSLOT"));
    let deleted: u64 = con.del(&keys).await?;
    assert_eq!(deleted, 60);
    Ok(())
}

fn on(kind: ServerKind) {
    let cluster = RealCluster::start(kind, Duration::from_secs(2)).unwrap();
    let nodes: Vec<String> =
        cluster.ports()[..2].iter().map(|port| format!("redis://127.0.0.1:{port}/")).collect();
    let client = ClusterClient::builder(nodes).response_timeout(Duration::from_secs(5)).build().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { everything(client.get_async_connection().await.unwrap()).await }).unwrap();
    let mut con = client.get_connection().unwrap();
    redis::cmd("SET").arg("sync").arg(1).exec(&mut con).unwrap();
    assert_eq!(redis::cmd("GET").arg("sync").query::<i64>(&mut con).unwrap(), 1);
    runtime.shutdown_background();
}

#[test]
fn a_program_for_redis_rs_runs_on_a_cluster_of_redis_7() {
    on(ServerKind::Redis70);
}

#[test]
fn a_program_for_redis_rs_runs_on_a_cluster_of_valkey_9() {
    on(ServerKind::Valkey91);
}
