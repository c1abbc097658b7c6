//! The clients, each as its documentation says, with its own defaults for retries and times.

use super::Place;
use anyhow::Context;
use e2e::sentinels::NAME;
use fred::interfaces::{ClientLike, KeysInterface};
use fred::types::Builder;
use fred::types::config::{Config, ReconnectPolicy};
use rustis::client::IntoConfig;
use rustis::commands::StringCommands;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Mutex;
use towline_client::{ConnectOptions, cmd};

/// A client that counts.
pub(crate) trait Counting: Clone + Send + Sync + 'static {
    /// Connects to the servers that are there.
    fn connect(place: &Place) -> impl Future<Output = anyhow::Result<Self>> + Send;

    /// `INCR`.
    fn count(&mut self, key: &str) -> impl Future<Output = anyhow::Result<()>> + Send;
}

fn list(ports: &[u16]) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    hosts.join(",")
}

#[derive(Clone)]
pub(crate) struct Towline(towline_client::Client);

impl Counting for Towline {
    async fn connect(place: &Place) -> anyhow::Result<Self> {
        let url = match place {
            Place::Cluster(ports) => format!("redis-cluster://{}", list(ports)),
            Place::Sentinels(ports) => format!("redis-sentinel://{}/{NAME}", list(ports)),
        };
        let options: ConnectOptions = url.parse()?;
        Ok(Self(towline_client::Client::open(options).await?))
    }

    async fn count(&mut self, key: &str) -> anyhow::Result<()> {
        Ok(cmd("INCR").arg(key).query::<()>(&self.0).await?)
    }
}

/// A connection of redis-rs to a sentinels' primary does not follow a failover: after an error the sentinels are asked for
/// another one, as its documentation says.
#[derive(Clone)]
pub(crate) enum RedisRs {
    Cluster(redis::cluster_async::ClusterConnection),
    Sentinels(Arc<Mutex<Found>>),
}

pub(crate) struct Found {
    sentinels: redis::sentinel::SentinelClient,
    connection: Option<redis::aio::MultiplexedConnection>,
}

impl Counting for RedisRs {
    async fn connect(place: &Place) -> anyhow::Result<Self> {
        let url = |port: &u16| format!("redis://127.0.0.1:{port}");
        match place {
            Place::Cluster(ports) => {
                let client = redis::cluster::ClusterClient::new(ports.iter().map(url))?;
                Ok(Self::Cluster(client.get_async_connection().await?))
            }
            Place::Sentinels(ports) => {
                let sentinels = redis::sentinel::SentinelClient::build(
                    ports.iter().map(url).collect(),
                    NAME.to_owned(),
                    None,
                    redis::sentinel::SentinelServerType::Master,
                )?;
                Ok(Self::Sentinels(Arc::new(Mutex::new(Found { sentinels, connection: None }))))
            }
        }
    }

    async fn count(&mut self, key: &str) -> anyhow::Result<()> {
        let mut command = redis::cmd("INCR");
        command.arg(key);
        let found = match self {
            Self::Cluster(connection) => {
                let _: u64 = command.query_async(connection).await?;
                return Ok(());
            }
            Self::Sentinels(found) => found,
        };
        let mut connection = {
            let mut found = found.lock().await;
            match &found.connection {
                Some(connection) => connection.clone(),
                None => {
                    let connection = found.sentinels.get_async_connection().await?;
                    found.connection.insert(connection).clone()
                }
            }
        };
        let counted: redis::RedisResult<u64> = command.query_async(&mut connection).await;
        if counted.is_err() {
            found.lock().await.connection = None;
        }
        counted?;
        Ok(())
    }
}

#[derive(Clone)]
pub(crate) struct Fred(fred::clients::Client);

impl Counting for Fred {
    async fn connect(place: &Place) -> anyhow::Result<Self> {
        let (scheme, ports, name) = match place {
            Place::Cluster(ports) => ("redis-cluster", ports, String::new()),
            Place::Sentinels(ports) => ("redis-sentinel", ports, format!("sentinelServiceName={NAME}&")),
        };
        let (first, rest) = ports.split_first().context("there is a port")?;
        let more: Vec<String> = rest.iter().map(|port| format!("node=127.0.0.1:{port}")).collect();
        let url = format!("{scheme}://127.0.0.1:{first}?{name}{}", more.join("&"));
        let mut builder = Builder::from_config(Config::from_url(&url)?);
        // Without a policy it does not connect again; for ever, every 10 to 100 ms, is what an application would ask for.
        builder.set_policy(ReconnectPolicy::new_exponential(0, 10, 100, 2));
        let client = builder.build()?;
        client.init().await?;
        Ok(Self(client))
    }

    async fn count(&mut self, key: &str) -> anyhow::Result<()> {
        let _: u64 = self.0.incr(key).await?;
        Ok(())
    }
}

#[derive(Clone)]
pub(crate) struct Rustis(rustis::client::Client);

impl Counting for Rustis {
    async fn connect(place: &Place) -> anyhow::Result<Self> {
        let url = match place {
            Place::Cluster(ports) => format!("redis+cluster://{}", list(ports)),
            Place::Sentinels(ports) => format!("redis+sentinel://{}/{NAME}", list(ports)),
        };
        let config = url.into_config()?;
        Ok(Self(rustis::client::Client::connect(config).await?))
    }

    async fn count(&mut self, key: &str) -> anyhow::Result<()> {
        let _: i64 = self.0.incr(key).await?;
        Ok(())
    }
}
