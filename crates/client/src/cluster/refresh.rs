//! The task that asks for the map.
//!
//! Owns whom to ask and how long to wait for answers. Does not own when (the router says) nor what the answers come to.

use std::collections::hash_map::RandomState;
use std::future::pending;
use std::hash::BuildHasher;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use towline_client_proto::maintenance::MaintenanceMode;
use towline_client_proto::{Error, LinkState, Reply};
use towline_cluster::{Address, Asked, View};
use towline_resp::frame::Frame;
use towline_sansio::Prng;

use super::Cluster;
use crate::client::Client;
use crate::clock;
use crate::engine::Engine;
use crate::lease::say;
use crate::transport::Target;

/// So many nodes are asked, if so many are connected: one that is wrong is outvoted.
const VIEWS_WANTED: usize = 3;

/// A connected node has this long to answer. One that takes longer is busy, or gone.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Once one node has answered, the others have this long: the map should not wait for the slowest.
const OTHERS_TIME: Duration = Duration::from_millis(100);

/// Seeds that are asked at once.
const SEEDS_MAX: usize = 8;

/// Asks for the map whenever the router wants to, as long as the cluster's client lives.
pub(super) async fn keep(cluster: Weak<Cluster>, wake: Arc<Notify>) {
    let mut prng = Prng::new(RandomState::new().hash_one(Instant::now()));
    loop {
        let Some(present) = cluster.upgrade() else { return };
        let (is_due, next) = {
            let mut state = present.lock();
            if state.is_closed {
                return;
            }
            let is_due = state.router.poll_refresh(clock::now());
            (is_due, state.router.poll_timeout())
        };
        if is_due {
            let (views, error) = present.ask(&mut prng).await;
            present.take_views(&views, error);
            continue;
        }
        drop(present);
        let sleep = async {
            match next {
                Some(at) => sleep_until(clock::wall(at).into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = wake.notified() => {}
            () = sleep => {}
        }
    }
}

impl Cluster {
    /// The views of several nodes; or why there is none.
    async fn ask(&self, prng: &mut Prng) -> (Vec<View>, Option<Box<str>>) {
        let is_tls = self.options.tls_options().is_some();
        let mut asking: JoinSet<Result<View, String>> = JoinSet::new();
        for (address, engine) in self.connected(prng) {
            let asked = Asked { address, is_tls };
            asking.spawn_on(ask_node(engine, asked, ANSWER_TIME), &self.runtime);
        }
        let (views, error) = gather(asking, ANSWER_TIME).await;
        if !views.is_empty() {
            return (views, None);
        }
        // The way back: the addresses that were configured, resolved anew.
        let mut asking = JoinSet::new();
        for seed in self.seeds().take(SEEDS_MAX) {
            let Target::Tcp { host, port } = seed else { continue };
            let Some(address) = Address::new(host, *port) else { continue };
            let options =
                self.options.clone().with_target(seed.clone()).maintenance(MaintenanceMode::Disabled);
            asking.spawn_on(ask_seed(options, Asked { address, is_tls }), &self.runtime);
        }
        let (views, seed_error) = gather(asking, self.options.dial_timeout()).await;
        (views, seed_error.or(error).map(Into::into))
    }

    /// Some of the connected nodes, drawn anew each time.
    fn connected(&self, prng: &mut Prng) -> Vec<(Address, Arc<Engine>)> {
        let nodes: Vec<_> = self.lock().nodes.values().cloned().collect();
        let mut up: Vec<_> = nodes
            .iter()
            .filter_map(|node| {
                let engine = node.client()?.inner.endpoint();
                let is_up = engine.lock().bridge.link_state() == LinkState::Up;
                is_up.then(|| (node.address.clone(), Arc::clone(engine)))
            })
            .collect();
        for at in (1..up.len()).rev() {
            up.swap(at, prng.below(at as u64 + 1) as usize);
        }
        up.truncate(VIEWS_WANTED);
        up
    }
}

/// What comes of the asking within `time`, and not much later than the first answer.
async fn gather(mut asking: JoinSet<Result<View, String>>, time: Duration) -> (Vec<View>, Option<String>) {
    let mut until = Instant::now() + time.min(Duration::from_secs(3600));
    let (mut views, mut error) = (Vec::new(), None);
    while let Ok(Some(answer)) = timeout_at(until, asking.join_next()).await {
        match answer {
            Ok(Ok(view)) => {
                views.push(view);
                until = until.min(Instant::now() + OTHERS_TIME);
            }
            Ok(Err(reason)) => error = Some(reason),
            // A task that was dropped with its runtime.
            Err(_) => {}
        }
    }
    (views, error)
}

async fn ask_node(engine: Arc<Engine>, asked: Asked, time: Duration) -> Result<View, String> {
    let text = |error: Error| format!("{}: {error}", asked.address);
    // Known since Redis 7.0.
    match say(&engine, &[b"CLUSTER", b"SHARDS"], time).await {
        Ok(reply) => {
            View::from_shards(&frame(reply), &asked).map_err(|error| format!("{}: {error}", asked.address))
        }
        Err(error) if error.code() == Some("ERR") => {
            let reply = say(&engine, &[b"CLUSTER", b"SLOTS"], time).await.map_err(text)?;
            View::from_slots(&frame(reply), &asked).map_err(|error| format!("{}: {error}", asked.address))
        }
        Err(error) => Err(text(error)),
    }
}

/// Asks a seed, over a connection for this purpose.
async fn ask_seed(options: crate::ConnectOptions, asked: Asked) -> Result<View, String> {
    let time = options.dial_timeout();
    let client = Client::lazy(options).map_err(|error| error.to_string())?;
    match timeout(time, client.ready()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(format!("{}: {error}", asked.address)),
        Err(_) => return Err(format!("{}: no connection within {time:?}", asked.address)),
    }
    ask_node(Arc::clone(client.inner.endpoint()), asked, ANSWER_TIME).await
}

fn frame(reply: Reply) -> Frame {
    match reply {
        Reply::One(frame) => frame,
        Reply::Many(frames) => Frame::Array(frames),
    }
}
