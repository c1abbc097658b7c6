//! Towline's client.

use super::{BenchClient, Patience};
use anyhow::Context;
use bytes::Bytes;
use towline_client::Client;

#[derive(Clone)]
pub(crate) struct Towline(Client);

impl BenchClient for Towline {
    // Its defaults are patient: commands wait in the backlog while it is disconnected, until their deadline.
    async fn connect(port: u16, _patience: Patience) -> anyhow::Result<Self> {
        Ok(Self(Client::connect(&format!("redis://127.0.0.1:{port}")).await?))
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
