//! redis-rs: the multiplexed connection, and the manager that connects again.

use super::{BenchClient, Patience};
use anyhow::Context;
use redis::aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection};
use redis::{AsyncCommands, AsyncConnectionConfig, Client};
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Multiplexed(MultiplexedConnection);

impl BenchClient for Multiplexed {
    async fn connect(port: u16, patience: Patience) -> anyhow::Result<Self> {
        let mut config = AsyncConnectionConfig::new();
        if patience == Patience::Long {
            config = config.set_response_timeout(None);
        }
        let client = Client::open(("127.0.0.1", port))?;
        Ok(Self(client.get_multiplexed_async_connection_with_config(&config).await?))
    }

    async fn get(&mut self, key: &str) -> anyhow::Result<usize> {
        let value: Option<Vec<u8>> = self.0.get(key).await?;
        value.map(|value| value.len()).context("no such key")
    }

    async fn set(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        self.0.set::<_, _, ()>(key, value).await?;
        Ok(())
    }
}

#[derive(Clone)]
pub(crate) struct Manager(ConnectionManager);

impl BenchClient for Manager {
    async fn connect(port: u16, patience: Patience) -> anyhow::Result<Self> {
        let mut config = ConnectionManagerConfig::new();
        if patience == Patience::Long {
            config = config
                .set_response_timeout(None)
                .set_number_of_retries(1_000)
                .set_max_delay(Duration::from_millis(100));
        }
        let client = Client::open(("127.0.0.1", port))?;
        Ok(Self(ConnectionManager::new_with_config(client, config).await?))
    }

    async fn get(&mut self, key: &str) -> anyhow::Result<usize> {
        let value: Option<Vec<u8>> = self.0.get(key).await?;
        value.map(|value| value.len()).context("no such key")
    }

    async fn set(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        self.0.set::<_, _, ()>(key, value).await?;
        Ok(())
    }
}
