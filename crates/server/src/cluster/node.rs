//! The cluster's thread.
//!
//! Owns: opening the log when the server starts, following it until the server stops, and what this node says of itself. Does **not**
//! own what is followed (see [`super::follower`]) nor errands (see [`super::errands`]).

pub(crate) use super::identity::random_id;
use super::links::MigrationStream;
use super::log::MetadataLog;
use super::migrations::{Dial, Manager};
use super::raft::{RaftConfig, RaftLog};
use super::{Cluster, errands};
use crate::config::Config;
use crate::server::StartError;
use crate::shared::{Shared, Stop};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::task::{LocalSet, spawn_local};
use towline_cluster_proto::Announced;

/// Links that bring slots and wait to be looked at; each is looked at within one turn of this thread.
const WAITING_LINKS_MAX: usize = 64;

/// Opens the log and begins to follow it; the workers know the cluster when this returns.
///
/// # Errors
/// [`StartError::Cluster`]: the configuration's fault, or the environment's.
pub(crate) fn start(shared: &Arc<Shared>) -> Result<Option<JoinHandle<io::Result<()>>>, StartError> {
    if shared.cluster.is_none() {
        return Ok(None);
    }
    let (opened, open) = mpsc::channel();
    let thread = {
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("cluster".into());
        thread.spawn(move || run(&shared, &opened)).map_err(|error| StartError::Cluster(error.to_string()))?
    };
    match open.recv() {
        Ok(Ok(())) => Ok(Some(thread)),
        Ok(Err(text)) => Err(StartError::Cluster(text)),
        Err(_) => Err(StartError::Cluster("the cluster's thread ended".into())),
    }
}

fn run(shared: &Arc<Shared>, opened: &mpsc::Sender<Result<(), String>>) -> io::Result<()> {
    let Some(cluster) = shared.cluster.as_deref() else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let (links, opened_links) = tokio::sync::mpsc::channel(WAITING_LINKS_MAX);
        let (log, links) = match open(shared, links).await {
            Ok(log) => (log, opened_links),
            Err(text) => {
                // The starter waits for it; if it does not, it has stopped waiting for anything.
                let _ = opened.send(Err(text));
                return Ok(());
            }
        };
        cluster.open(Arc::clone(&log) as Arc<dyn MetadataLog>);
        let mut manager = manager(shared, &log);
        // Before data is loaded: what an interrupted migration has brought is not to be seen for a moment.
        let metadata = log.metadata().borrow().clone();
        manager.follow(&metadata);
        cluster.catch_up(shared);
        let _ = opened.send(Ok(()));
        follow(shared, cluster, &log, manager, links).await;
        log.shutdown().await;
        Ok(())
    })
}

/// The log of this node.
async fn open(shared: &Arc<Shared>, migrations: Sender<MigrationStream>) -> Result<Arc<RaftLog>, String> {
    let config = shared.config();
    let announced = announced(&config);
    let client_port = if config.port == 0 { config.tls_port } else { config.port };
    let (Some(announced), Some(bus_port)) = (announced, config.cluster.bus_port(client_port)) else {
        let port = config.port;
        return Err(format!("no port for other nodes follows from 'port {port}': set 'cluster-port'"));
    };
    let bind = bound(&config);
    if config.cluster.secret.0.is_empty() && !bind.iter().all(IpAddr::is_loopback) {
        tracing::warn!(
            "Whoever reaches port {bus_port} can take part in this cluster: set 'cluster-secret', or keep others away from the port"
        );
    }
    let opened = RaftLog::start(RaftConfig {
        dir: config.dir.clone().into(),
        file: config.cluster.config_file.clone(),
        disk: Arc::clone(&shared.persistence.disk),
        bind: bind.into_iter().map(|ip| SocketAddr::new(ip, bus_port)).collect(),
        announced,
        secret: config.cluster.secret.0.clone(),
        node_timeout: Duration::from_millis(config.cluster.node_timeout_ms),
        migrations,
    });
    opened.await.map_err(|error| error.to_string())
}

/// Where other nodes are listened for: as for clients, at each address that this machine has. One that begins with `-` may be missing.
fn bound(config: &Config) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for text in &config.bind {
        let (may_miss, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let ip = match text {
            "*" => Some(IpAddr::from([0, 0, 0, 0])),
            "::*" => Some(IpAddr::from([0_u16; 8])),
            text => text.parse().ok(),
        };
        let is_there = |ip: &IpAddr| !may_miss || std::net::UdpSocket::bind((*ip, 0)).is_ok();
        found.extend(ip.filter(is_there));
    }
    if found.is_empty() {
        found.push(IpAddr::from([0, 0, 0, 0]));
    }
    found
}

fn manager(shared: &Arc<Shared>, log: &Arc<RaftLog>) -> Manager {
    let raft = Arc::clone(log);
    let dial: Dial = Arc::new(move |node| {
        let raft = Arc::clone(&raft);
        Box::pin(async move { raft.connect(node).await.map_err(|error| error.to_string()) })
    });
    Manager::new(shared, &(Arc::clone(log) as Arc<dyn MetadataLog>), dial)
}

/// Does errands and follows the log until the server stops.
async fn follow(
    shared: &Arc<Shared>,
    cluster: &Cluster,
    log: &Arc<RaftLog>,
    mut manager: Manager,
    mut links: Receiver<MigrationStream>,
) {
    let Some(mut requests) = cluster.receiver() else { return };
    let log = Arc::clone(log) as Arc<dyn MetadataLog>;
    let (mut metadata, mut standing, ended) = (log.metadata(), log.standing(), manager.ended());
    let (mut config, mut stopping) = (shared.config_changes(), shared.stopping());
    let mut said = announced(&shared.config());
    loop {
        manager.follow(&metadata.borrow_and_update().clone());
        cluster.catch_up(shared);
        tokio::select! {
            // The sender lives in `shared`, so waiting fails never.
            _ = stopping.wait_for(|stop| *stop != Stop::No) => return,
            Some(request) = requests.recv() => {
                spawn_local(errands::run(Arc::clone(shared), Arc::clone(&log), request));
                continue;
            }
            Some(link) = links.recv() => manager.take(link.node, link.stream),
            () = ended.notified() => {}
            changed = metadata.changed() => if changed.is_err() { return },
            changed = standing.changed() => if changed.is_err() { return },
            changed = config.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = announced(&shared.config());
                if now != said {
                    said = now;
                    said.iter().for_each(|at| log.announce(at.clone()));
                }
            }
        }
    }
}

/// What this node says of itself; `None` if it has no port for other nodes.
pub(crate) fn announced(config: &Config) -> Option<Announced> {
    let cluster = &config.cluster;
    let or = |announced: u16, own: u16| if announced == 0 { own } else { announced };
    let client_port = if config.port == 0 { config.tls_port } else { config.port };
    Some(Announced {
        ip: if cluster.announce_ip.is_empty() { bound_ip(config) } else { cluster.announce_ip.clone() },
        port: or(cluster.announce_port, config.port),
        tls_port: or(cluster.announce_tls_port, config.tls_port),
        bus_port: or(cluster.announce_bus_port, cluster.bus_port(client_port)?),
        hostname: cluster.announce_hostname.clone(),
        name: cluster.announce_human_nodename.clone(),
    })
}

/// The address that is listened on, if it is one: others find out how they reach a node that listens everywhere.
fn bound_ip(config: &Config) -> String {
    let first = config.bind.first().and_then(|first| first.trim_start_matches('-').parse::<IpAddr>().ok());
    first.filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string()).unwrap_or_default()
}
