//! `towline faults serve`: a fault injector for clients, over embedded servers.
//!
//! ```text
//! http ──> action (what is asked for) ──> cluster (databases, jobs) ──> perform (frames at their pace)
//!                                             │ database (server, addresses) ── layout (labels)
//!                                             └ rladmin (commands and texts)
//! ```
//!
//! It speaks the HTTP API of the fault injector that the harnesses of Redis clients use, so that they can run against a
//! machine instead of a cluster: databases on several loopback addresses, and actions that make them announce moves.
//!
//! Owns the API and what actions mean. Does **not** own announcing, replaying and closing: that is `towline_server`, as it
//! runs everywhere. There is no cluster behind it: each database is one store that all of its addresses serve, so data
//! is where a client looks for it before, during and after everything.

mod action;
mod cluster;
mod database;
mod http;
mod jobs;
mod layout;
mod perform;
mod rladmin;
mod settings;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::report::Report;
use cluster::Cluster;
use database::DatabaseConfig;
use layout::Policy;
pub(super) use settings::ServeArgs;

/// Masters of the databases to begin with. Two, each with a replica, as the harnesses' own databases have.
const SHARDS: u32 = 2;

/// Runs the injector until SIGTERM or SIGINT.
///
/// # Errors
/// A port cannot be had, or a database cannot start; the environment's fault.
pub(super) fn run(settings: ServeArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (report, writing) = Report::start()?;
    let cluster = Arc::new(Cluster::new(settings, report));
    let result = runtime.block_on(serve(&cluster));
    cluster.stop();
    if result.is_ok() {
        cluster.say("stopped", json!({}));
    }
    // Tasks hold the cluster, and with it the way to standard output.
    runtime.shutdown_background();
    drop(cluster);
    writing.finish();
    result
}

async fn serve(cluster: &Arc<Cluster>) -> Result<()> {
    // Before anybody can know of the injector and send one: unhandled, each would end the process.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let settings = &cluster.settings;
    let listener = TcpListener::bind(settings.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", settings.listen))?;
    for (port, name) in (settings.port..).zip(&settings.databases) {
        let config = DatabaseConfig {
            name: name.clone(),
            port: if settings.port == 0 { 0 } else { port },
            shards: SHARDS,
            has_replicas: true,
            policy: Policy::Single,
            password: settings.password.clone(),
            is_tls: false,
        };
        cluster.create(config).map_err(|error| anyhow::anyhow!("database {name}: {error}"))?;
    }
    cluster.save_endpoints();
    let listen = listener.local_addr()?.to_string();
    cluster.say("listening", json!({ "listen": listen, "databases": cluster.endpoints() }));
    tokio::select! {
        served = http::serve(listener, Arc::clone(cluster)) => served.context("the HTTP API failed"),
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}
