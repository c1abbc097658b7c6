//! The servers of a drill: one store in this process behind several addresses, and what stands in for a network.
//!
//! Owns the embedded server, its addresses, a name whose meaning changes, and a door that opens late. Does not own what is
//! announced when.
//!
//! All addresses share one port and differ in their IP, because some clients take only the host from a MOVING.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use towline_client::transport::{Dialing, Target, Transport};
use towline_server::{Config, Maintenance, Server, Stopper};

/// The name that scripts move; nothing outside this process resolves it.
pub(super) const NAME: &str = "handoff.drill.test";

/// How long the late door lets nothing through.
pub(super) const SLOW_FOR: Duration = Duration::from_millis(400);

/// How often a start is tried again when the port was taken in between.
const START_TRIES: usize = 5;

/// An embedded server.
#[derive(Debug)]
pub(super) struct Stage {
    server: Option<Server>,
    stopper: Stopper,
    port: u16,
    /// Where the drill itself asks; never moved.
    pub(super) admin: SocketAddr,
    tasks: Vec<AbortHandle>,
}

impl Stage {
    /// Starts the server with its first, second and third address.
    ///
    /// # Errors
    /// The addresses cannot be had, or the server does not start; the environment's fault.
    pub(super) fn start() -> Result<Self> {
        let mut last = None;
        for _ in 0..START_TRIES {
            match Self::start_once() {
                Ok(stage) => return Ok(stage),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| anyhow!("the server was never started")))
    }

    fn start_once() -> Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut config = Config::default();
        config.port = port;
        config.bind = vec!["127.0.0.1".into()];
        config.workers = 1;
        let server = Server::start(config)?;
        let stopper = server.stopper();
        let mut stage = Self {
            server: Some(server),
            stopper,
            port,
            admin: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
            tasks: Vec::new(),
        };
        stage.admin = stage.server().listen((Ipv4Addr::LOCALHOST, 0).into())?;
        for address in [stage.second(), stage.third()] {
            stage
                .server()
                .listen(address)
                .context("the drill needs 127.0.0.2 and 127.0.0.3 on the loopback interface")?;
        }
        Ok(stage)
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("invariant: the server is taken by drop only")
    }

    fn at(&self, ip: impl Into<IpAddr>) -> SocketAddr {
        SocketAddr::new(ip.into(), self.port)
    }

    /// Where the client begins.
    pub(super) fn first(&self) -> SocketAddr {
        self.at(Ipv4Addr::LOCALHOST)
    }

    /// Where it is sent.
    pub(super) fn second(&self) -> SocketAddr {
        self.at([127, 0, 0, 2])
    }

    /// Where it is sent then.
    pub(super) fn third(&self) -> SocketAddr {
        self.at([127, 0, 0, 3])
    }

    /// Where nobody listens.
    pub(super) fn nowhere(&self) -> SocketAddr {
        self.at([127, 0, 0, 4])
    }

    /// Listens on `[::1]` as well.
    ///
    /// # Errors
    /// This machine has no IPv6.
    pub(super) fn listen_v6(&self) -> Result<SocketAddr> {
        let address = self.at(Ipv6Addr::LOCALHOST);
        self.server().listen(address).context("the script ipv6 needs [::1]")
    }

    /// Opens a door on an address of its own behind which the second address is; what comes in waits there for
    /// [`SLOW_FOR`]. Its later traffic costs a copy in this process.
    ///
    /// # Errors
    /// The address cannot be had.
    pub(super) async fn slow_door(&mut self) -> Result<SocketAddr> {
        let (address, behind) = (self.at([127, 0, 0, 5]), self.second());
        let listener =
            tokio::net::TcpListener::bind(address).await.context("the script slow needs 127.0.0.5")?;
        let door = tokio::spawn(async move {
            let mut passing = JoinSet::new();
            while let Ok((from, _)) = listener.accept().await {
                passing.spawn(pass(from, behind));
                while passing.try_join_next().is_some() {}
            }
        });
        self.tasks.push(door.abort_handle());
        Ok(address)
    }

    /// To announce with.
    pub(super) fn maintenance(&self) -> Maintenance {
        self.server().maintenance()
    }

    /// Refuses new connections at an address.
    pub(super) fn retire(&self, address: SocketAddr) {
        self.server().stop_listening(address);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.stopper.stop();
        if let Some(server) = self.server.take() {
            // The run is over and reported; how the server's threads end changes nothing.
            let _ = server.join();
        }
    }
}

/// Carries one connection through the late door.
async fn pass(mut from: TcpStream, behind: SocketAddr) {
    tokio::time::sleep(SLOW_FOR).await;
    // Whatever fails here shows to the client as a connection that ends.
    let Ok(mut to) = TcpStream::connect(behind).await else { return };
    if from.set_nodelay(true).is_ok() && to.set_nodelay(true).is_ok() {
        let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
    }
}

/// Reaches addresses as they are, and [`NAME`] at what it means at the moment.
#[derive(Debug, Clone)]
pub(super) struct Names {
    meaning: Arc<Mutex<IpAddr>>,
}

impl Names {
    /// The name means this.
    pub(super) fn new(meaning: IpAddr) -> Self {
        Self { meaning: Arc::new(Mutex::new(meaning)) }
    }

    /// From now on it means that.
    pub(super) fn change(&self, meaning: IpAddr) {
        *self.meaning.lock().unwrap_or_else(PoisonError::into_inner) = meaning;
    }

    fn address(&self, target: &Target) -> std::io::Result<SocketAddr> {
        let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "the drill knows no such name");
        let Target::Tcp { host, port } = target else { return Err(missing()) };
        let ip = match host == NAME {
            true => *self.meaning.lock().unwrap_or_else(PoisonError::into_inner),
            false => host.parse().map_err(|_| missing())?,
        };
        Ok(SocketAddr::new(ip, *port))
    }
}

impl Transport for Names {
    fn connect<'a>(&'a self, target: &'a Target) -> Dialing<'a> {
        Box::pin(async {
            let stream = TcpStream::connect(self.address(target)?).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as _)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_what_it_was_told_last() {
        let names = Names::new([127, 0, 0, 1].into());
        let address = |host: &str| names.address(&Target::tcp(host, 7)).map(|address| address.to_string());
        assert_eq!(address(NAME).unwrap(), "127.0.0.1:7");
        names.change([127, 0, 0, 2].into());
        assert_eq!(address(NAME).unwrap(), "127.0.0.2:7");
        assert_eq!(address("127.0.0.9").unwrap(), "127.0.0.9:7");
        assert!(address("elsewhere.test").is_err());
    }
}
