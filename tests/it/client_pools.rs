//! Programs that keep a pool: bb8 and deadpool themselves, with a manager of a few lines, over the client and over its
//! paths of redis-rs.

use std::time::Duration;

use e2e::process::{Server, ServerKind};
use towline_client::redis::{self, AsyncCommands, RedisError, aio::MultiplexedConnection};
use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions, Error, cmd};

const TASKS: u64 = 32;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

struct Plain(ConnectOptions);

impl bb8::ManageConnection for Plain {
    type Connection = Client;
    type Error = Error;

    async fn connect(&self) -> Result<Client, Error> {
        Client::open(self.0.clone()).await
    }

    async fn is_valid(&self, client: &mut Client) -> Result<(), Error> {
        cmd("PING").query(client).await
    }

    // It connects again by itself.
    fn has_broken(&self, _: &mut Client) -> bool {
        false
    }
}

impl deadpool::managed::Manager for Plain {
    type Type = Client;
    type Error = Error;

    async fn create(&self) -> Result<Client, Error> {
        Client::open(self.0.clone()).await
    }

    async fn recycle(
        &self,
        client: &mut Client,
        _: &deadpool::managed::Metrics,
    ) -> deadpool::managed::RecycleResult<Error> {
        Ok(cmd("PING").query(client).await?)
    }
}

struct RedisRs(redis::Client);

impl bb8::ManageConnection for RedisRs {
    type Connection = MultiplexedConnection;
    type Error = RedisError;

    async fn connect(&self) -> Result<MultiplexedConnection, RedisError> {
        self.0.get_multiplexed_async_connection().await
    }

    async fn is_valid(&self, con: &mut MultiplexedConnection) -> Result<(), RedisError> {
        redis::cmd("PING").exec_async(con).await
    }

    fn has_broken(&self, _: &mut MultiplexedConnection) -> bool {
        false
    }
}

/// Closes every connection of normal clients but the one that asks.
fn kill_all(server: &Server) {
    server.connect().unwrap().words("CLIENT KILL TYPE normal SKIPME yes").unwrap();
}

#[test]
fn bb8_hands_out_clients_and_they_outlive_their_connections() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind, &[]).unwrap();
        let options = ConnectOptions::new(Target::tcp("127.0.0.1", server.port()));
        runtime().block_on(async {
            let pool = bb8::Pool::builder().max_size(4).build(Plain(options)).await.unwrap();
            let count = || {
                let pool = pool.clone();
                async move {
                    let client = pool.get().await.unwrap();
                    cmd("INCR").arg("n").query::<u64>(&client).await.unwrap();
                }
            };
            let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(count())).collect();
            for task in tasks {
                task.await.unwrap();
            }
            let before = pool.state().statistics.connections_created;
            kill_all(&server);
            let client = pool.get().await.unwrap();
            assert_eq!(client.get::<u64>("n").await.unwrap(), TASKS);
            assert_eq!(
                pool.state().statistics.connections_created,
                before,
                "the clients came back by themselves"
            );
        });
    }
}

#[test]
fn deadpool_hands_out_clients_and_they_outlive_their_connections() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind, &[]).unwrap();
        let options = ConnectOptions::new(Target::tcp("127.0.0.1", server.port()));
        runtime().block_on(async {
            let pool = deadpool::managed::Pool::<Plain>::builder(Plain(options)).max_size(4).build().unwrap();
            let count = || {
                let pool = pool.clone();
                async move {
                    let client = pool.get().await.unwrap();
                    cmd("INCR").arg("n").query::<u64>(&client).await.unwrap();
                }
            };
            let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(count())).collect();
            for task in tasks {
                task.await.unwrap();
            }
            let before = pool.status().size;
            kill_all(&server);
            let client = pool.get().await.unwrap();
            assert_eq!(client.get::<u64>("n").await.unwrap(), TASKS);
            assert_eq!(pool.status().size, before, "the clients came back by themselves");
        });
    }
}

#[test]
fn a_pool_of_redis_rs_connections_runs_on_this_client() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind, &[]).unwrap();
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", server.port())).unwrap();
        runtime().block_on(async {
            let pool = bb8::Pool::builder()
                .max_size(2)
                .connection_timeout(Duration::from_secs(5))
                .build(RedisRs(client))
                .await
                .unwrap();
            for expected in 1..=10_u64 {
                let mut con = pool.get().await.unwrap();
                assert_eq!(con.incr::<_, _, u64>("n", 1).await.unwrap(), expected);
                if expected == 5 {
                    drop(con);
                    kill_all(&server);
                }
            }
        });
    }
}
