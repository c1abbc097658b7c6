//! rustis.

use super::{BenchClient, Patience};
use anyhow::Context;
use rustis::client::{Client, IntoConfig};
use rustis::commands::StringCommands;
use rustis::resp::BulkString;

#[derive(Clone)]
pub(crate) struct Rustis(Client);

impl BenchClient for Rustis {
    async fn connect(port: u16, patience: Patience) -> anyhow::Result<Self> {
        let mut config = format!("redis://127.0.0.1:{port}").into_config()?;
        if patience == Patience::Long {
            // Only commands that may be repeated are kept while it is disconnected; the budget is off.
            config.retry_on_error = true;
            config.max_command_attempts = usize::MAX;
            config.backpressure.max_queued_bytes = 0;
        }
        Ok(Self(Client::connect(config).await?))
    }

    async fn get(&mut self, key: &str) -> anyhow::Result<usize> {
        let value: Option<BulkString> = self.0.get(key).await?;
        value.map(|value| value.as_bytes().len()).context("no such key")
    }

    async fn set(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        self.0.set(key, value).await?;
        Ok(())
    }
}
