//! A data worker: one thread, one runtime, its connections.
//!
//! Owns: accepting, the connections' tasks, the worker's periodic work. Does **not** own what a connection does.

use crate::client::Addresses;
use crate::config::Config;
use crate::connection::{self, Desk, unix_ms};
use crate::cron;
use crate::endpoints::{self, Accepting, Endpoint};
use crate::execute::Local;
use crate::maintenance;
use crate::persistence::held;
use crate::session::Session;
use crate::shared::{Shared, Stop};
use crate::stream::Stream;
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::task::{LocalSet, spawn_local};

/// Accepts of one turn; then the connections get theirs.
pub(crate) const ACCEPTS_PER_TURN: usize = 64;
/// How long accepting rests when the process is out of file descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(100);
/// How long unsent replies may take when the server stops.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// Sockets that are listened on as long as the server runs; for the others see [`crate::endpoints`]. All workers share
/// them; each has its own descriptor.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    pub(crate) unix: Vec<std::os::unix::net::UnixListener>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Vec<std::net::TcpListener>,
}

impl Listeners {
    /// Where they listen with TLS.
    pub(crate) fn tls_addresses(&self) -> Vec<SocketAddr> {
        #[cfg(feature = "tls")]
        return self.tls.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        #[cfg(not(feature = "tls"))]
        Vec::new()
    }

    /// The same sockets under descriptors of their own.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            unix: self
                .unix
                .iter()
                .map(std::os::unix::net::UnixListener::try_clone)
                .collect::<io::Result<_>>()?,
            #[cfg(feature = "tls")]
            tls: self.tls.iter().map(std::net::TcpListener::try_clone).collect::<io::Result<_>>()?,
        })
    }
}

/// Runs worker `index` until the server stops.
///
/// # Errors
/// When the runtime or a listener cannot be set up; the environment's fault.
pub(crate) fn run(index: usize, shared: &Arc<Shared>, listeners: Listeners, seed: u64) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local_set = LocalSet::new();
    let desk = Rc::new(RefCell::new(Desk::new(Local::new(index, Arc::clone(shared), seed))));
    local_set.block_on(&runtime, async {
        let mut stopping = shared.stopping();
        let changes = shared.endpoints.changes();
        let mut accepting = Accepting::default();
        accepting.update(shared, &desk)?;
        spawn_local(endpoints::follow(accepting, changes, Arc::clone(shared), Rc::clone(&desk)));
        for listener in listeners.unix {
            spawn_local(accept_unix(UnixListener::from_std(listener)?, Arc::clone(shared), Rc::clone(&desk)));
        }
        #[cfg(feature = "tls")]
        for listener in listeners.tls {
            spawn_local(crate::tls::accept(
                TcpListener::from_std(listener)?,
                Arc::clone(shared),
                Rc::clone(&desk),
            ));
        }
        spawn_local(cron::run(Rc::clone(&desk)));
        spawn_local(held::run(Rc::clone(&desk)));
        if index == 0 {
            spawn_local(maintenance::run(Arc::clone(shared)));
        }
        // The sender lives in `shared`, so waiting fails never.
        let _ = stopping.wait_for(|stop| *stop != Stop::No).await;
        let unsent =
            || shared.clients.all().iter().any(|client| client.reply_bytes.load(Ordering::Relaxed) > 0);
        let deadline = tokio::time::Instant::now() + STOP_GRACE;
        while unsent() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // One more turn, so that the reply to what stopped the server goes out.
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    })
}

/// Accepts connections by one socket until its endpoint is given up.
pub(crate) async fn accept_tcp(
    listener: TcpListener,
    endpoint: Arc<Endpoint>,
    shared: Arc<Shared>,
    desk: Rc<RefCell<Desk>>,
) {
    let mut accepted = 0;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let config = shared.config();
                if let Some(session) = admit_tcp(&shared, &config, &stream, peer, Greeting::Text) {
                    spawn_local(connection::serve(Stream::Tcp(stream), session, Rc::clone(&desk)));
                }
            }
            Err(_) if !endpoint.is_open() => return,
            Err(error) => rest(&error).await,
        }
        accepted += 1;
        if accepted % ACCEPTS_PER_TURN == 0 {
            tokio::task::yield_now().await;
        }
    }
}

async fn accept_unix(listener: UnixListener, shared: Arc<Shared>, desk: Rc<RefCell<Desk>>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let config = shared.config();
                let path: Box<str> = config.unixsocket.clone().unwrap_or_default().into();
                let addresses = Addresses {
                    peer: format!("{path}:0").into(),
                    local: format!("{path}:0").into(),
                    tcp: None,
                    fd: std::os::fd::AsRawFd::as_raw_fd(&stream),
                    is_unix: true,
                };
                match admit(&shared, &config, addresses) {
                    Ok(session) => {
                        spawn_local(connection::serve(Stream::Unix(stream), session, Rc::clone(&desk)));
                    }
                    Err(text) => {
                        let _ = stream.try_write(&connection::refusal(text));
                    }
                }
            }
            Err(error) => rest(&error).await,
        }
    }
}

/// Accepting failed: without a rest, running out of descriptors would be a busy loop.
pub(crate) async fn rest(error: &io::Error) {
    tracing::warn!(%error, "accepting a connection failed");
    tokio::time::sleep(ACCEPT_REST).await;
}

const PROTECTED: &str = "DENIED Towline is running in protected mode because protected mode is enabled and no password \
is set for the default user. In this mode connections are only accepted from the loopback interface. To connect from \
elsewhere, set a password with 'requirepass', or, on a network that you trust, turn 'protected-mode' off.";

/// What a connection begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// The protocol.
    Text,
    /// TLS, and the protocol inside.
    #[cfg(feature = "tls")]
    Handshake,
}

/// Makes a TCP connection a client, or refuses it.
pub(crate) fn admit_tcp(
    shared: &Shared,
    config: &Config,
    stream: &TcpStream,
    peer: SocketAddr,
    greeting: Greeting,
) -> Option<Session> {
    let refuse = |text: &str| {
        match greeting {
            // One segment into an empty socket buffer; a client that cannot take it is gone anyway.
            Greeting::Text => _ = stream.try_write(&connection::refusal(text)),
            // Nothing that can be said before the handshake would be understood.
            #[cfg(feature = "tls")]
            Greeting::Handshake => {}
        }
    };
    if config.protected_mode && config.requirepass.is_empty() && !is_loopback(peer.ip()) {
        refuse(PROTECTED);
        return None;
    }
    // A socket that refuses these options works without them.
    let _ = stream.set_nodelay(true);
    if config.tcp_keepalive_s > 0 {
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(Duration::from_secs(config.tcp_keepalive_s))
            .with_interval(Duration::from_secs((config.tcp_keepalive_s / 3).max(1)))
            .with_retries(3);
        let _ = socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive);
    }
    let local = stream.local_addr().ok();
    let addresses = Addresses {
        peer: peer.to_string().into(),
        local: local.map(|local| local.to_string()).unwrap_or_default().into(),
        tcp: local.map(|local| (peer, local)),
        fd: std::os::fd::AsRawFd::as_raw_fd(stream),
        is_unix: false,
    };
    admit(shared, config, addresses).map_err(refuse).ok()
}

fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()),
    }
}

fn admit(shared: &Shared, config: &Config, addresses: Addresses) -> Result<Session, &'static str> {
    if shared.clients.len() >= config.maxclients {
        shared.stats.connections_rejected.fetch_add(1, Ordering::Relaxed);
        return Err("ERR max number of clients reached");
    }
    shared.stats.connections.fetch_add(1, Ordering::Relaxed);
    let client = shared.clients.add(addresses, unix_ms());
    Ok(Session::new(client, config.requirepass.is_empty()))
}
