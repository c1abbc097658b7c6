//! No client: each command costs one turn of the runtime. What is measured here is the harness's own share.

use super::{BenchClient, Patience};
use crate::statistics::VALUE_BYTES;

#[derive(Clone)]
pub(crate) struct Harness;

impl BenchClient for Harness {
    async fn connect(_port: u16, _patience: Patience) -> anyhow::Result<Self> {
        Ok(Self)
    }

    async fn get(&mut self, _key: &str) -> anyhow::Result<usize> {
        tokio::task::yield_now().await;
        Ok(VALUE_BYTES)
    }

    async fn set(&mut self, _key: &str, _value: &str) -> anyhow::Result<()> {
        tokio::task::yield_now().await;
        Ok(())
    }
}
