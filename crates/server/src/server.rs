//! Starting and stopping.
//!
//! Owns: binding the sockets, the workers' threads, signals. Does **not** own what a worker does.

use crate::admin;
use crate::cluster::node;
use crate::config::Config;
use crate::connection::unix_ms;
use crate::endpoints::ENDPOINTS_MAX;
use crate::maintenance::Maintenance;
use crate::moving;
use crate::persistence::appender;
use crate::persistence::disk::{Disk, RealDisk};
use crate::persistence::keeper::{self, StopOptions};
use crate::persistence::loading::{self, LoadError};
use crate::shared::{Shared, Stop};
use crate::worker::{self, Listeners};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::watch;

/// Why a server does not start, in one line that says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address cannot be listened on; the environment's fault, or the configuration's.
    #[error("cannot listen on {address}: {source}{hint}")]
    Listen {
        /// The address, or the socket's path.
        address: String,
        /// What the system says.
        source: io::Error,
        /// What to do.
        hint: String,
    },
    /// `bind` names something that is no address.
    #[error("cannot bind to '{0}': not an IP address (use e.g. 'bind 127.0.0.1 -::1')")]
    Address(String),
    /// `admin-bind` is no address.
    #[error("cannot bind to '{0}': not an IP address (use e.g. 'admin-bind 127.0.0.1')")]
    AdminAddress(String),
    /// The thread for everything that is not a client could not be made.
    #[error("cannot start the control thread: {0}")]
    Control(io::Error),
    /// The thread that writes the log could not be made.
    #[error("cannot start the log's thread: {0}")]
    Appender(io::Error),
    /// None of `port`, `tls-port` and `unixsocket` is set.
    #[error("nothing to listen on: set 'port', 'tls-port' or 'unixsocket'")]
    NoListener,
    /// `tls-port` is set, and this binary was built without TLS.
    #[error("this binary has no TLS: leave 'tls-port' at 0, or build it with the feature 'tls'")]
    NoTls,
    /// Certificates or their key cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
    /// So many addresses are listened on that there may be no other; the caller's fault.
    #[error("cannot listen on more than {endpoints_max} addresses")]
    TooManyEndpoints {
        /// How many there may be.
        endpoints_max: usize,
    },
    /// A thread or a runtime could not be made.
    #[error("cannot start worker {worker}: {source}")]
    Worker {
        /// Which one.
        worker: usize,
        /// What the system says.
        source: io::Error,
    },
    /// The thread for files could not be made.
    #[error("cannot start the thread for files: {0}")]
    Keeper(io::Error),
    /// The thread that moves keys to other servers could not be made.
    #[error("cannot start the thread for moving keys: {0}")]
    Mover(io::Error),
    /// The node cannot take part in a cluster; the text says what to do.
    #[error("cannot start in cluster mode: {0}")]
    Cluster(String),
    /// The data set's files cannot be used; see [`LoadError`].
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Randomness is not to be had.
    #[error("the system gives no random bytes: {0}")]
    Random(io::Error),
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<io::Result<()>>>,
    control: Option<JoinHandle<io::Result<()>>>,
    cluster: Option<JoinHandle<io::Result<()>>>,
    appender: JoinHandle<()>,
    keeper: JoinHandle<()>,
    mover: JoinHandle<io::Result<()>>,
    addresses: Vec<SocketAddr>,
    unixsocket: Option<String>,
}

impl Server {
    /// Looks at the data set's files, binds the sockets and starts the workers. Clients can connect when this returns; while the
    /// files are being loaded they are told so, see [`Server::wait_until_loaded`].
    ///
    /// # Errors
    /// [`StartError`]: the configuration or the environment is at fault, and the text says what to do.
    pub fn start(config: Config) -> Result<Self, StartError> {
        Self::start_on(config, Arc::new(RealDisk))
    }

    /// [`Server::start`] with another file system: for tests of what happens when files fail.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_on(config: Config, disk: Arc<dyn Disk>) -> Result<Self, StartError> {
        let random = random_bytes::<28>().map_err(StartError::Random)?;
        let seed = u64::from_le_bytes(random[20..].try_into().expect("invariant: 8 of 28 bytes"));
        // Fails only when a server was started in this process before; its seed is as good.
        let _ = towline_store::hasher::set_seed(seed);
        let run_id = random[..20].iter().map(|byte| format!("{byte:02x}")).collect();
        if cfg!(not(feature = "tls")) && config.tls_port != 0 {
            return Err(StartError::NoTls);
        }
        let prepared = loading::prepare(&config, &*disk)?;
        let (tcp, listeners) = bind(&config)?;
        let admin = bind_admin(&config)?;
        let unixsocket = config.unixsocket.clone();
        let count = config.workers.max(1);
        let shared = Arc::new(Shared::new(config, disk, run_id, unix_ms()));
        let addresses = tcp.into_iter().filter_map(|listener| shared.endpoints.add(listener).ok()).collect();
        shared.endpoints.set_tls(listeners.tls_addresses());
        #[cfg(feature = "tls")]
        shared.tls.reload(&shared.config())?;
        let cluster = node::start(&shared)?;
        let appender = appender::start(&shared).map_err(StartError::Appender)?;
        shared.persistence.gate.set_loading(prepared.has_work());
        let mut workers = Vec::with_capacity(count);
        for worker in 0..count {
            let failed = |source| StartError::Worker { worker, source };
            let listeners = listeners.try_clone().map_err(failed)?;
            let shared = Arc::clone(&shared);
            let seed = seed.wrapping_add(worker as u64 + 1);
            let thread = std::thread::Builder::new().name(format!("worker-{worker}"));
            workers
                .push(thread.spawn(move || worker::run(worker, &shared, listeners, seed)).map_err(failed)?);
        }
        let control = admin.map(|listener| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("control".into());
            thread.spawn(move || admin::run(listener, shared)).map_err(StartError::Control)
        });
        let control = control.transpose()?;
        let keeper = {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("keeper".into());
            thread.spawn(move || keeper::run(&shared, prepared)).map_err(StartError::Keeper)?
        };
        let mover = {
            let (shared, seed) = (Arc::clone(&shared), seed.wrapping_sub(1));
            let thread = std::thread::Builder::new().name("mover".into());
            thread.spawn(move || moving::run(&shared, seed)).map_err(StartError::Mover)?
        };
        Ok(Self { shared, workers, control, cluster, appender, keeper, mover, addresses, unixsocket })
    }

    /// Blocks until the data set is loaded and clients are served.
    ///
    /// # Errors
    /// [`LoadError`]: it cannot be loaded, and the server ends; [`Server::join`] returns the same.
    pub fn wait_until_loaded(&self) -> Result<(), LoadError> {
        self.shared.persistence.loading.wait()
    }

    /// Where it listened with TCP, TLS apart, when it started; with `port 0` in the configuration this is empty.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Listens on another address as well, without TLS: another endpoint of the same data, served by the same workers.
    /// Returns the address, which has the system's choice of a port if the port is 0. Clients can connect when this returns.
    ///
    /// # Errors
    /// [`StartError::Listen`]: the environment's fault, worth another try when the address was in use;
    /// [`StartError::TooManyEndpoints`] beyond 1024: the caller's.
    pub fn listen(&self, address: SocketAddr) -> Result<SocketAddr, StartError> {
        if !self.shared.endpoints.has_room() {
            return Err(StartError::TooManyEndpoints { endpoints_max: ENDPOINTS_MAX });
        }
        let backlog = self.shared.config().tcp_backlog;
        let added = listen(address, backlog).and_then(|listener| self.shared.endpoints.add(listener));
        added.map_err(|source| {
            let address = address.to_string();
            StartError::Listen { address, source, hint: String::new() }
        })
    }

    /// Stops listening on an address of [`Server::listen`] or [`Server::addresses`]: connecting to it is refused when this
    /// returns, and its connections stay. `false` if it is not listened on.
    pub fn stop_listening(&self, address: SocketAddr) -> bool {
        self.shared.endpoints.remove(address)
    }

    /// What the workers share.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// To announce planned work to connections with, and to drain them.
    pub fn maintenance(&self) -> Maintenance {
        Maintenance::new(Arc::clone(&self.shared))
    }

    /// To stop the server with, from another thread or a signal handler's task.
    pub fn stopper(&self) -> Stopper {
        Stopper { shared: Arc::clone(&self.shared) }
    }

    /// To make the server read its certificates again, from another thread or a signal handler's task.
    pub fn reloader(&self) -> Reloader {
        Reloader { shared: Arc::clone(&self.shared) }
    }

    /// To follow the configuration with, which `CONFIG SET` changes.
    pub fn config_watch(&self) -> ConfigWatch {
        ConfigWatch { changes: self.shared.config_changes(), shared: Arc::clone(&self.shared) }
    }

    /// Waits until the server has stopped.
    ///
    /// # Errors
    /// When a worker, or the control thread, could not set itself up, or the data set could not be loaded: then the error's source
    /// is a [`LoadError`].
    pub fn join(self) -> io::Result<()> {
        let mut result = Ok(());
        for worker in self.workers.into_iter().chain(self.control).chain(self.cluster).chain([self.mover]) {
            let ended =
                worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the server panicked")));
            if ended.is_err() {
                self.shared.stop(Stop::Gracefully);
                result = ended;
            }
        }
        // The keeper may wait for the appender, not the other way round.
        if self.keeper.join().is_err() {
            result = Err(io::Error::other("the thread for files panicked"));
        }
        self.shared.persistence.log.end();
        if self.appender.join().is_err() {
            result = Err(io::Error::other("the log's thread panicked"));
        }
        match self.shared.persistence.loading.failure() {
            // Who stops a server that loads does not want to hear that it was not loaded.
            None | Some(LoadError::Stopped) => {}
            Some(error) => result = Err(io::Error::other(error)),
        }
        if let Some(path) = self.unixsocket {
            // Left behind, it would only be replaced by the next start.
            let _ = std::fs::remove_file(path);
        }
        result
    }
}

/// Stops a server.
#[derive(Debug, Clone)]
pub struct Stopper {
    shared: Arc<Shared>,
}

impl Stopper {
    /// Stops as `SHUTDOWN` does: finishes the commands at hand, saves if there are save points, and closes everything. If what
    /// is to be kept cannot be, the server says so in its log and goes on.
    pub fn stop(&self) {
        self.shared.ask_to_stop(StopOptions::default());
    }

    /// Stops as `SHUTDOWN NOSAVE FORCE` does: nothing keeps the server from stopping.
    pub fn stop_without_saving(&self) {
        self.shared.ask_to_stop(StopOptions { save: Some(false), is_forced: true });
    }
}

/// Makes a running server read files again.
#[derive(Debug, Clone)]
pub struct Reloader {
    shared: Arc<Shared>,
}

impl Reloader {
    /// Reads certificates and key again, for new TLS connections; those that exist keep theirs. Nothing is to be done
    /// without `tls-port`.
    ///
    /// # Errors
    /// [`StartError::Tls`] with the file that is at fault; the server goes on with what it had.
    pub fn reload(&self) -> Result<(), StartError> {
        self.shared.change_config(|_config| {
            #[cfg(feature = "tls")]
            self.shared.tls.reload(_config)?;
            Ok(())
        })
    }
}

/// Follows a server's configuration.
#[derive(Debug)]
pub struct ConfigWatch {
    shared: Arc<Shared>,
    changes: watch::Receiver<()>,
}

impl ConfigWatch {
    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.shared.config()
    }

    /// Waits for the next change and returns what is in force then; changes that follow one another quickly may be one.
    ///
    /// # Cancel safety
    /// No change is lost.
    pub async fn changed(&mut self) -> Arc<Config> {
        // The sender lives in `shared`, so waiting fails never.
        let _ = self.changes.changed().await;
        self.shared.config()
    }
}

fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes)
}

/// The sockets without TLS, and the others.
fn bind(config: &Config) -> Result<(Vec<std::net::TcpListener>, Listeners), StartError> {
    let (mut tcp, mut listeners) = (Vec::new(), Listeners::default());
    if config.port != 0 {
        tcp = bind_tcp(config, config.port, "--port")?;
    }
    #[cfg(feature = "tls")]
    if config.tls_port != 0 {
        listeners.tls = bind_tcp(config, config.tls_port, "--tls-port")?;
    }
    #[cfg(feature = "tls")]
    let is_deaf = listeners.tls.is_empty();
    #[cfg(not(feature = "tls"))]
    let is_deaf = true;
    if let Some(path) = &config.unixsocket {
        listeners.unix.push(bind_unix(path, config.unixsocketperm)?);
    }
    if is_deaf && tcp.is_empty() && listeners.unix.is_empty() {
        return Err(StartError::NoListener);
    }
    Ok((tcp, listeners))
}

fn bind_admin(config: &Config) -> Result<Option<std::net::TcpListener>, StartError> {
    if config.admin_port == 0 {
        return Ok(None);
    }
    let ip: IpAddr =
        config.admin_bind.parse().map_err(|_| StartError::AdminAddress(config.admin_bind.clone()))?;
    let address = SocketAddr::new(ip, config.admin_port);
    listen(address, admin::BACKLOG).map(Some).map_err(|source| {
        let hint = hint(source.kind(), "--admin-port", "admin-bind");
        StartError::Listen { address: address.to_string(), source, hint }
    })
}

/// Listens on all addresses of `bind`; one with a leading `-` may be missing on this machine.
fn bind_tcp(config: &Config, port: u16, flag: &str) -> Result<Vec<std::net::TcpListener>, StartError> {
    let mut listeners = Vec::new();
    for address in &config.bind {
        let (is_optional, address) = match address.strip_prefix('-') {
            Some(address) => (true, address),
            None => (false, address.as_str()),
        };
        let ip: IpAddr = match address {
            "*" => IpAddr::from([0, 0, 0, 0]),
            "::*" => IpAddr::from([0u16; 8]),
            address => address.parse().map_err(|_| StartError::Address(address.to_owned()))?,
        };
        let address = SocketAddr::new(ip, port);
        match listen(address, config.tcp_backlog) {
            Ok(listener) => listeners.push(listener),
            Err(error) if is_optional && error.kind() != io::ErrorKind::AddrInUse => {}
            Err(source) => {
                let hint = hint(source.kind(), flag, "bind");
                return Err(StartError::Listen { address: address.to_string(), source, hint });
            }
        }
    }
    Ok(listeners)
}

/// What to do about a port that cannot be listened on: `flag` sets it, `parameter` its addresses.
fn hint(kind: io::ErrorKind, flag: &str, parameter: &str) -> String {
    match kind {
        io::ErrorKind::AddrInUse => {
            format!(" (another server has the port: stop it, or choose another with {flag})")
        }
        io::ErrorKind::PermissionDenied => {
            format!(" (ports below 1024 need privileges: choose another with {flag})")
        }
        io::ErrorKind::AddrNotAvailable => format!(" (this machine has no such address: see '{parameter}')"),
        _ => String::new(),
    }
}

fn listen(address: SocketAddr, backlog: u32) -> io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket.into())
}

fn bind_unix(path: &str, permissions: u32) -> Result<std::os::unix::net::UnixListener, StartError> {
    let failed = |source: io::Error| StartError::Listen {
        address: path.to_owned(),
        source,
        hint: " (check 'unixsocket' and the rights on its directory)".into(),
    };
    // A socket that a crash left behind: nobody answers there.
    if std::os::unix::net::UnixStream::connect(path).is_err() {
        let _ = std::fs::remove_file(path);
    }
    let listener = std::os::unix::net::UnixListener::bind(path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    if permissions != 0 {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(permissions);
        std::fs::set_permissions(path, mode).map_err(failed)?;
    }
    Ok(listener)
}
