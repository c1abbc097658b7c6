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
use towline_cluster::sentinel::{RoleReply, view_of_roles};
use towline_cluster::{Address, Asked, View};
use towline_resp::frame::Frame;
use towline_sansio::Prng;

use super::Cluster;
use super::source::Source;
use crate::client::{Client, Running};
use crate::clock;
use crate::engine::Engine;
use crate::lease::say;
use crate::transport::Target;

/// So many nodes are asked, if so many are connected: one that is wrong is outvoted.
const VIEWS_WANTED: usize = 3;

/// A connected node has this long to answer. One that takes longer is busy, or gone.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Once one node has answered, the others have this long: the map should not wait for the slowest.
const OTHERS_TIME: Duration = Duration::from_millis(100);

/// Seeds that are asked at once.
const SEEDS_MAX: usize = 8;

/// Servers that are asked for their roles have this long, connections included; less if a dial has less.
const ROLE_TIME: Duration = Duration::from_secs(2);

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
    /// What those who know say; or why there is nothing.
    async fn ask(&self, prng: &mut Prng) -> (Vec<View>, Option<Box<str>>) {
        match &self.source {
            Source::Cluster => self.ask_nodes(prng).await,
            Source::Sentinel(sentinels) => self.ask_sentinels(sentinels).await,
            Source::Replicated => self.ask_roles().await,
        }
    }

    /// The views of several nodes.
    async fn ask_nodes(&self, prng: &mut Prng) -> (Vec<View>, Option<Box<str>>) {
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

    /// What the configured servers say of themselves.
    async fn ask_roles(&self) -> (Vec<View>, Option<Box<str>>) {
        let mut asking = JoinSet::new();
        for server in self.seeds().take(SEEDS_MAX) {
            let options = self.options.clone().with_target(server.clone());
            let options = options.maintenance(MaintenanceMode::Disabled).primary_only(false);
            asking.spawn_on(ask_role(options), &self.runtime);
        }
        // All of them, if they come: the one that is late may be the primary.
        let until = Instant::now() + self.options.dial_timeout().min(ROLE_TIME);
        let (mut roles, mut reasons) = (Vec::new(), Vec::new());
        while let Ok(Some(answer)) = timeout_at(until, asking.join_next()).await {
            match answer {
                Ok(Ok(role)) => roles.push(role),
                Ok(Err(reason)) => reasons.push(reason),
                // A task that was dropped with its runtime.
                Err(_) => {}
            }
        }
        match view_of_roles(&roles) {
            Some(view) => (vec![view], None),
            None => {
                reasons.extend(roles.iter().map(|(address, _)| format!("{address}: is no primary")));
                reasons.sort_unstable();
                (Vec::new(), Some(format!("none of the servers is a primary: {}", reasons.join("; ")).into()))
            }
        }
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

/// Waits for a client's first connection; the first failure ends the wait.
pub(super) async fn first_connection(client: &Client, time: Duration) -> Result<(), Error> {
    let mut reason = None;
    let connected = Running::connected(client.inner.endpoint(), &client.inner.events, |failure| {
        reason = Some(failure);
        false
    });
    match timeout(time, connected).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Err(error)) => Err(error),
        Ok(Ok(false)) | Err(_) => Err(Running::connect_error(reason)),
    }
}

/// Asks a server what it is, over a connection for this purpose.
async fn ask_role(options: crate::ConnectOptions) -> Result<(Address, RoleReply), String> {
    let target = options.target().clone();
    let text = |error: &dyn std::fmt::Display| format!("{target}: {error}");
    let Target::Tcp { host, port } = &target else { return Err(text(&"is no address")) };
    let address = Address::new(host, *port).ok_or_else(|| text(&"is no address"))?;
    let time = options.dial_timeout().min(ROLE_TIME);
    let client = Client::lazy(options).map_err(|error| text(&error))?;
    first_connection(&client, time).await.map_err(|error| text(error.kind()))?;
    let reply = say(client.inner.endpoint(), &[b"ROLE"], ANSWER_TIME).await;
    let reply = reply.map_err(|error| text(error.kind()))?;
    let role = RoleReply::parse(&frame(reply)).map_err(|error| text(&error))?;
    Ok((address, role))
}

async fn ask_node(engine: Arc<Engine>, asked: Asked, time: Duration) -> Result<View, String> {
    let text = |error: Error| format!("{}: {}", asked.address, error.kind());
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
    // Its first failure is told: nothing is learnt by waiting for another.
    let connected = first_connection(&client, time).await;
    connected.map_err(|error| format!("{}: {}", asked.address, error.kind()))?;
    ask_node(Arc::clone(client.inner.endpoint()), asked, ANSWER_TIME).await
}

pub(super) fn frame(reply: Reply) -> Frame {
    match reply {
        Reply::One(frame) => frame,
        Reply::Many(frames) => Frame::Array(frames),
    }
}
