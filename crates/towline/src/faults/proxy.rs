//! The proxy's life: listen, accept, stop.
//!
//! Owns the listener, the bound on connections, and signals.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::options::ProxyArgs;
use super::report::{Event, Report};
use super::script::Script;
use super::shared::Shared;
use super::{connection, control, script};

/// Connections at a time. 8192: two sockets each, within the usual hard limit on descriptors. More wait in the backlog.
const CONNECTIONS_MAX: usize = 8192;

/// How long accepting rests when the process is out of file descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Reads `--script`; the empty script without it.
///
/// # Errors
/// One line: the file cannot be read, or is no script; the caller's mistake.
pub(super) fn script(options: &ProxyArgs) -> Result<Script, String> {
    let Some(path) = &options.script else { return Ok(Script::default()) };
    let name = path.display();
    let text = std::fs::read(path).map_err(|error| format!("cannot read --script {name}: {error}"))?;
    Script::parse(&text).map_err(|error| format!("--script {name}: {error}"))
}

/// Runs the proxy until SIGTERM or SIGINT.
///
/// # Errors
/// A port cannot be had; the environment's fault.
pub(super) fn run(options: ProxyArgs, script: Script) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (report, writing) = Report::start()?;
    let shared = Arc::new(Shared::new(options.seed, options.upstream, options.rules, script, report)?);
    let result = runtime.block_on(serve(&shared, options.listen, options.control));
    if result.is_ok() {
        let stats = &shared.snapshot();
        shared.report.line(&Event::Stopped { at_ms: shared.at_ms(), stats });
    }
    // Connections end with the runtime, and with them everybody who reports.
    // A look-up that hangs is not waited for.
    runtime.shutdown_background();
    drop(shared);
    writing.finish();
    result
}

async fn serve(shared: &Arc<Shared>, listen: SocketAddr, control: Option<SocketAddr>) -> Result<()> {
    // Before anybody can know of the proxy and send one: unhandled, each would end the process.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    let control = match control {
        None => None,
        Some(address) => {
            let bound = TcpListener::bind(address).await;
            Some(bound.with_context(|| format!("cannot listen on {address} for --control"))?)
        }
    };
    let control_address = control.as_ref().map(TcpListener::local_addr).transpose()?;
    shared.report.line(&Event::Listening {
        listen: listener.local_addr()?.to_string(),
        upstream: shared.upstream.to_string(),
        control: control_address.map(|address| address.to_string()),
        seed: shared.seed,
        rules: &shared.rule_texts(),
    });
    let controlled = async {
        match control {
            Some(listener) => control::serve(listener, Arc::clone(shared)).await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = accept(listener, shared) => Ok(()),
        () = script::run(shared) => Ok(()),
        served = controlled => served.context("the control port failed"),
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

/// Accepts connections for ever; they end with this future.
async fn accept(listener: TcpListener, shared: &Arc<Shared>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("invariant: nobody closes it");
        while connections.try_join_next().is_some() {}
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_REST).await;
            continue;
        };
        let (shared, dialed) = (Arc::clone(shared), shared.dial());
        connections.spawn(async move {
            connection::serve(shared, client, dialed).await;
            drop(slot);
        });
    }
}
