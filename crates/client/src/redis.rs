//! For programs that are written for redis-rs (the crate `redis`).
//!
//! [`Client`](crate::Client) and [`Lease`](crate::Lease) are connections of redis-rs: they implement
//! [`redis::aio::ConnectionLike`], so everything that is built on that trait runs on them
//! as it is: `AsyncCommands`, `redis::cmd`, pipelines, `Script`, iterators, everybody's `FromRedisValue`.
//!
//! ```no_run
//! use redis::AsyncCommands;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let mut con = towline_client::Client::connect("redis://127.0.0.1").await?;
//! let () = con.hset("user:1", "name", "ada").await?;
//! let name: Option<String> = con.hget("user:1", "name").await?;
//! let (a, b): (i64, i64) = redis::pipe().atomic().incr("a", 1).incr("b", 1).query_async(&mut con).await?;
//! # let _ = (name, a, b);
//! # Ok(())
//! # }
//! ```
//!
//! `get`, `set` and `publish` are methods of the client itself, which come before a trait's; code that is generic over the
//! traits does not see them, and neither do users of [`aio::MultiplexedConnection`], which a client can be made into.
//!
//! Owns the conversions of commands, replies and errors. Does **not** own redis-rs's own connections, and adds nothing
//! to what the client can do.
//!
//! # What is different
//!
//! * Commands wait while the connection is down and are sent again where that is harmless; redis-rs fails them.
//! * Nothing is killed after 500 ms. A command has the client's command timeout, a blocking one its block time on top.
//! * What would change the connection that all handles share (`SELECT`, `WATCH`) is refused on a
//!   [`Client`](crate::Client), with what to do instead; a [`Lease`](crate::Lease) takes it.
//! * A transaction that the server refused has the kind `ExecAbort` and its reason as detail, but not the list of
//!   `RedisError::into_server_errors`.
//! * [`sent`] tells of an error whether the server may have run the command.

//!
//! # In the place of the crate
//!
//! The module has redis-rs's own paths, so that one line moves a program here, and the crate `redis` goes from its
//! manifest:
//!
//! ```no_run
//! use towline_client::redis;
//! # async fn run() -> redis::RedisResult<()> {
//! use redis::AsyncCommands;
//!
//! let client = redis::Client::open("redis://127.0.0.1/")?;
//! let mut con = client.get_multiplexed_async_connection().await?;
//! let () = con.set("key", 42).await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Client`], [`aio::MultiplexedConnection`], [`aio::ConnectionManager`], [`aio::PubSub`], [`Connection`] and
//! [`PubSub`] are this client's; all else is the crate's own, so what others have written for it fits. Such handles
//! take `WATCH` and `SELECT`. As with redis-rs they speak RESP2 unless a URL says `protocol=resp3`, which planned moves
//! need. A stream of messages ends where redis-rs's does: where some may be missing.
//!
//! [`cluster::ClusterClient`] is the same handle, which finds its way by itself; `route_command` has no counterpart.
//!
//! [`sentinel::SentinelClient`] makes a handle that follows the primary; connections to replicas have no counterpart there.
//!
//! Not here: redis-rs's cache. Its names are the crate's own where its
//! features are switched on, and connect by the crate's own means.

pub mod aio;
mod blocking;
mod carry;
mod client;
pub mod cluster;
mod config;
mod error;
mod monitor;
mod pubsub;
pub mod sentinel;
mod session;
mod value;

/// redis-rs's module `cluster_async`.
pub mod cluster_async {
    pub use super::aio::MultiplexedConnection as ClusterConnection;
}

pub use ::redis::*;

pub use blocking::{Connection, PubSub};
pub use client::{Client, IntoConnectionInfo};
pub use config::AsyncConnectionConfig;
pub use error::{inner_error, sent};
