//! The clients behind one trait. Each adapter calls its client as that client's own documentation does, with the
//! cheapest owned or shared type for the reply, and with key and value given as slices.

mod fred;
mod harness;
mod redis_rs;
mod rustis;
mod towline;

use std::future::Future;

pub(crate) use self::fred::Fred;
pub(crate) use self::harness::Harness;
pub(crate) use self::redis_rs::{Manager, Multiplexed};
pub(crate) use self::rustis::Rustis;
pub(crate) use self::towline::Towline;

/// What a client does while it has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Its defaults, as a user gets it.
    Default,
    /// It waits as long as it takes, and keeps commands while it is disconnected if it can.
    Long,
}

/// A client with one shared connection.
pub(crate) trait BenchClient: Clone + Send + Sync + 'static {
    /// Connects to a server on 127.0.0.1.
    fn connect(port: u16, patience: Patience) -> impl Future<Output = anyhow::Result<Self>> + Send;

    /// Reads a value; the answer is its length. A missing key is an error.
    fn get(&mut self, key: &str) -> impl Future<Output = anyhow::Result<usize>> + Send;

    /// Writes a value.
    fn set(&mut self, key: &str, value: &str) -> impl Future<Output = anyhow::Result<()>> + Send;
}
