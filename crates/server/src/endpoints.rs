//! The TCP addresses that the server listens on, which may change while it runs.
//!
//! Owns: the listening sockets, and one accepting task per socket and worker; which addresses are listened on, those of TLS,
//! which do not change, included. Does **not** own the connections: those of an address that is given up stay; nor the
//! sockets of TLS.

use crate::connection::Desk;
use crate::shared::Shared;
use crate::worker;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_local};

/// Addresses that are listened on at once; each takes a descriptor per worker.
pub(crate) const ENDPOINTS_MAX: usize = 1024;

/// An address that is listened on. All workers share its socket; each has a descriptor of its own.
#[derive(Debug)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    listener: std::net::TcpListener,
    is_open: AtomicBool,
}

impl Endpoint {
    /// Whether it is still listened on.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Endpoints {
    list: Mutex<Vec<Arc<Endpoint>>>,
    /// The addresses with TLS, set once at the start.
    tls: OnceLock<Vec<SocketAddr>>,
    changed: watch::Sender<()>,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self { list: Mutex::default(), tls: OnceLock::new(), changed: watch::Sender::new(()) }
    }
}

impl Endpoints {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Endpoint>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To hear of changes with.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Whether there may be another one.
    pub(crate) fn has_room(&self) -> bool {
        self.list().len() < ENDPOINTS_MAX
    }

    /// Says once, at the start, which addresses are listened on with TLS; later calls change nothing.
    pub(crate) fn set_tls(&self, addresses: Vec<SocketAddr>) {
        self.tls.get_or_init(|| addresses);
    }

    /// Whether a connection to this address has TLS.
    pub(crate) fn is_tls(&self, local: SocketAddr) -> bool {
        // Who listens everywhere is reached at an address of its own.
        self.tls.get().into_iter().flatten().any(|address| address.port() == local.port())
    }

    /// What is listened on, those with TLS last.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let mut addresses: Vec<_> = self.list().iter().map(|endpoint| endpoint.address).collect();
        addresses.extend(self.tls.get().into_iter().flatten());
        addresses
    }

    /// Has all workers accept what comes in by this socket. Returns its address.
    ///
    /// # Errors
    /// When the socket has no address.
    pub(crate) fn add(&self, listener: std::net::TcpListener) -> io::Result<SocketAddr> {
        let address = listener.local_addr()?;
        self.list().push(Arc::new(Endpoint { address, listener, is_open: AtomicBool::new(true) }));
        self.changed.send_replace(());
        Ok(address)
    }

    /// Gives up an address: connecting to it is refused when this returns. `false` if it was not listened on.
    pub(crate) fn remove(&self, address: SocketAddr) -> bool {
        let mut list = self.list();
        let Some(index) = list.iter().position(|endpoint| endpoint.address == address) else { return false };
        let endpoint = list.remove(index);
        drop(list);
        endpoint.is_open.store(false, Ordering::Release);
        // The workers' descriptors are closed a moment later; until then the socket must not take connections that nobody
        // accepts. A socket that refuses this is closed all the same.
        let _ = socket2::SockRef::from(&endpoint.listener).shutdown(std::net::Shutdown::Both);
        self.changed.send_replace(());
        true
    }
}

/// What one worker accepts by.
#[derive(Debug, Default)]
pub(crate) struct Accepting {
    running: Vec<(Arc<Endpoint>, JoinHandle<()>)>,
}

impl Accepting {
    /// Begins to accept by the endpoints that are new, and ends it with those that are gone.
    ///
    /// # Errors
    /// The environment's: a descriptor cannot be had. The others are seen to all the same.
    pub(crate) fn update(&mut self, shared: &Arc<Shared>, desk: &Rc<RefCell<Desk>>) -> io::Result<()> {
        let list: Vec<Arc<Endpoint>> = shared.endpoints.list().clone();
        self.running.retain(|(endpoint, task)| {
            let is_wanted = endpoint.is_open();
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        let mut result = Ok(());
        for endpoint in list {
            if self.running.iter().any(|(known, _)| Arc::ptr_eq(known, &endpoint)) {
                continue;
            }
            match endpoint.listener.try_clone().and_then(TcpListener::from_std) {
                Ok(listener) => {
                    let (shared, desk) = (Arc::clone(shared), Rc::clone(desk));
                    let task = spawn_local(worker::accept_tcp(listener, Arc::clone(&endpoint), shared, desk));
                    self.running.push((endpoint, task));
                }
                Err(error) => result = Err(error),
            }
        }
        result
    }
}

/// Follows the changes of the endpoints until the worker ends.
pub(crate) async fn follow(
    mut accepting: Accepting,
    mut changes: watch::Receiver<()>,
    shared: Arc<Shared>,
    desk: Rc<RefCell<Desk>>,
) {
    // The sender lives in `shared`, so waiting fails never.
    while changes.changed().await.is_ok() {
        if let Err(error) = accepting.update(&shared, &desk) {
            tracing::warn!(%error, "a worker cannot accept connections of a new endpoint");
        }
    }
}
