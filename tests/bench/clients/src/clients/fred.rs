//! fred.

use super::{BenchClient, Patience};
use anyhow::Context;
use bytes::Bytes;
use fred::clients::Client;
use fred::interfaces::{ClientLike, KeysInterface};
use fred::types::Builder;
use fred::types::config::{Config, ReconnectPolicy};

#[derive(Clone)]
pub(crate) struct Fred(Client);

impl BenchClient for Fred {
    async fn connect(port: u16, patience: Patience) -> anyhow::Result<Self> {
        let config = Config::from_url(&format!("redis://127.0.0.1:{port}"))?;
        let mut builder = Builder::from_config(config);
        if patience == Patience::Long {
            // Its default connects once; for ever, every 10 to 100 ms, is what an application would ask for here.
            builder.set_policy(ReconnectPolicy::new_exponential(0, 10, 100, 2));
        }
        let client = builder.build()?;
        client.init().await?;
        Ok(Self(client))
    }

    async fn get(&mut self, key: &str) -> anyhow::Result<usize> {
        let value: Option<Bytes> = self.0.get(key).await?;
        value.map(|value| value.len()).context("no such key")
    }

    async fn set(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        self.0.set::<(), _, _>(key, value, None, None, false).await?;
        Ok(())
    }
}
