//! One database: an embedded server on every node's address, and its layout.
//!
//! Owns the server's life and its ports. Does not own what actions do (see [`super::perform`]).

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use towline_server::{Config, Maintenance, Server, StartError, Successor, TlsAuthClients};

use super::layout::{Layout, Node, Policy};
use super::rladmin::DatabaseLine;
use super::settings::ServeArgs;

/// How often a free port is looked for: it has to be free on every address.
const PORT_TRIES: usize = 50;

/// What a database is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DatabaseConfig {
    /// Without blanks, for it stands in tables.
    pub(super) name: String,
    /// 0 takes a free one.
    pub(super) port: u16,
    /// Masters, at least 1.
    pub(super) shards: u32,
    pub(super) has_replicas: bool,
    pub(super) policy: Policy,
    pub(super) password: Option<String>,
    pub(super) is_tls: bool,
}

/// Why there is no database.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateError {
    /// The port is in use on one of the addresses. Harnesses look for the first word and try the next port.
    #[error("port_unavailable: port {port} is in use on {address}")]
    Port {
        /// The port.
        port: u16,
        /// Where.
        address: IpAddr,
    },
    /// No port is free on all addresses, or an address does not exist.
    #[error("no port to be had on {address}: {source}")]
    Address {
        /// Where.
        address: IpAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The server does not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A running database.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) id: u32,
    pub(super) config: DatabaseConfig,
    pub(super) maintenance: Maintenance,
    /// By node.
    addresses: Vec<SocketAddr>,
    layout: Mutex<Layout>,
    /// `None` when it has been stopped.
    server: Mutex<Option<Server>>,
    /// Whoever acts on the database has it.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
}

/// A panic elsewhere leaves nothing half done here: each critical section is one step.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Database {
    /// Starts a database; its shards count up from `first_shard`.
    ///
    /// # Errors
    /// [`CreateError`]: mostly the environment's fault; another port may do.
    pub(super) fn start(
        settings: &ServeArgs,
        mut config: DatabaseConfig,
        id: u32,
        first_shard: u32,
    ) -> Result<Self, CreateError> {
        let server = if config.port == 0 {
            let mut tries = PORT_TRIES;
            loop {
                config.port = free_port(&settings.addresses)?;
                tries -= 1;
                match Server::start(server_config(settings, &config)) {
                    // Somebody took it in between.
                    Err(StartError::Listen { .. }) if tries > 0 => {}
                    started => break started?,
                }
            }
        } else {
            check_port(&settings.addresses, config.port)?;
            Server::start(server_config(settings, &config))?
        };
        let layout = Layout::new(
            settings.addresses.len(),
            config.policy,
            config.shards,
            config.has_replicas,
            first_shard,
        );
        Ok(Self {
            id,
            addresses: settings.addresses.iter().map(|&ip| SocketAddr::new(ip, config.port)).collect(),
            config,
            maintenance: server.maintenance(),
            layout: Mutex::new(layout),
            server: Mutex::new(Some(server)),
            turn: Arc::default(),
        })
    }

    pub(super) fn layout(&self) -> MutexGuard<'_, Layout> {
        locked(&self.layout)
    }

    /// The address of a node.
    pub(super) fn address(&self, node: Node) -> SocketAddr {
        // Nodes were checked when they were named.
        self.addresses[node.clamp(1, self.addresses.len()) - 1]
    }

    /// A node as connections are told of it.
    pub(super) fn successor(&self, settings: &ServeArgs, node: Node) -> Successor {
        let address = self.address(node);
        Successor {
            ip: Some(address.ip().to_string()),
            fqdn: settings.name_of(node).map(str::to_owned),
            port: address.port(),
        }
    }

    /// Refuses new connections on a node's address; those that are there stay.
    pub(super) fn stop_listening(&self, node: Node) {
        if let Some(server) = &*locked(&self.server) {
            server.stop_listening(self.address(node));
        }
    }

    /// Accepts connections on a node's address again.
    ///
    /// # Errors
    /// Somebody else has taken the port meanwhile.
    pub(super) fn listen(&self, node: Node) -> Result<(), StartError> {
        match &*locked(&self.server) {
            Some(server) => server.listen(self.address(node)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Stops the server, and waits for its threads; blocking.
    pub(super) fn stop(&self) -> io::Result<()> {
        let Some(server) = locked(&self.server).take() else { return Ok(()) };
        server.stopper().stop();
        server.join()
    }

    /// What `create_database` answers and the endpoints file has.
    pub(super) fn describe(&self, settings: &ServeArgs) -> Value {
        let scheme = if self.config.is_tls { "rediss" } else { "redis" };
        let bound = self.layout().bound();
        let raw = |node: Node| {
            let address = self.address(node);
            json!({
                "addr": [address.ip().to_string()],
                "addr_type": "external",
                "dns_name": settings.name_of(node).map_or_else(|| address.ip().to_string(), str::to_owned),
                "oss_cluster_api_preferred_endpoint_type": "ip",
                "oss_cluster_api_preferred_ip_type": "external",
                "port": address.port(),
                "proxy_policy": self.config.policy.name(),
                "uid": format!("{}:1", self.id),
            })
        };
        // A single endpoint has its first address for good, as its name would be; where it is bound is told by MOVING.
        let nodes: Vec<Node> = match self.config.policy {
            Policy::Single => vec![1],
            Policy::MasterNodes | Policy::AllNodes => bound.into_iter().collect(),
        };
        let urls: Vec<String> =
            nodes.iter().map(|&node| format!("{scheme}://{}", self.address(node))).collect();
        json!({
            "bdb_id": self.id,
            "username": "default",
            "password": self.config.password.as_deref().unwrap_or_default(),
            "tls": self.config.is_tls,
            "raw_endpoints": nodes.into_iter().map(raw).collect::<Vec<_>>(),
            "endpoints": urls,
        })
    }

    /// The database as `rladmin status` shows it.
    pub(super) fn line(&self) -> DatabaseLine {
        let layout = self.layout();
        DatabaseLine {
            id: self.id,
            name: self.config.name.clone(),
            endpoint: self.addresses[0].to_string(),
            policy: layout.policy,
            is_tls: self.config.is_tls,
            bound: layout.bound().into_iter().collect(),
            has_replicas: layout.has_replicas(),
            shards: layout.shards.clone(),
        }
    }
}

fn server_config(settings: &ServeArgs, config: &DatabaseConfig) -> Config {
    let file = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let mut server = Config::default();
    server.bind = settings.addresses.iter().map(ToString::to_string).collect();
    (server.port, server.tls_port) = if config.is_tls { (0, config.port) } else { (config.port, 0) };
    server.tls_cert_file = file(&settings.tls_cert_file);
    server.tls_key_file = file(&settings.tls_key_file);
    server.tls_auth_clients = TlsAuthClients::No;
    server.workers = settings.workers.into();
    server.requirepass = config.password.clone().unwrap_or_default().into_bytes();
    server
}

/// Whether a port is free on every address.
pub(super) fn check_port(addresses: &[IpAddr], port: u16) -> Result<(), CreateError> {
    for &address in addresses {
        match TcpListener::bind((address, port)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(CreateError::Port { port, address });
            }
            Err(source) => return Err(CreateError::Address { address, source }),
        }
    }
    Ok(())
}

/// A port that is free on every address, just now.
fn free_port(addresses: &[IpAddr]) -> Result<u16, CreateError> {
    let first = addresses[0];
    let failed = |source| CreateError::Address { address: first, source };
    let mut last = failed(io::ErrorKind::AddrInUse.into());
    for _ in 0..PORT_TRIES {
        let port = TcpListener::bind((first, 0)).and_then(|listener| listener.local_addr());
        let port = port.map_err(failed)?.port();
        match check_port(addresses, port) {
            Ok(()) => return Ok(port),
            Err(error @ CreateError::Port { .. }) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}
