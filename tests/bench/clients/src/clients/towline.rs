//! Towline's client.

use super::{BenchClient, Patience};
use anyhow::Context;
use bytes::Bytes;
use towline_client::{Client, ConnectOptions, FlushOrder};

#[derive(Clone)]
pub(crate) struct Towline(Client);

impl BenchClient for Towline {
    // Its defaults are patient: commands wait in the backlog while it is disconnected, until their deadline. Long patience
    // is asked for where new commands meet a backlog, so they may overtake it.
    async fn connect(port: u16, patience: Patience) -> anyhow::Result<Self> {
        let options: ConnectOptions = format!("redis://127.0.0.1:{port}").parse()?;
        let order = match patience {
            Patience::Long => FlushOrder::FreshFirst,
            Patience::Default => FlushOrder::InOrder,
        };
        Ok(Self(Client::open(options.flush_order(order)).await?))
    }

    async fn get(&mut self, key: &str) -> anyhow::Result<usize> {
        let value: Option<Bytes> = self.0.get(key).await?;
        value.map(|value| value.len()).context("no such key")
    }

    async fn set(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        self.0.set(key, value).await?;
        Ok(())
    }
}
