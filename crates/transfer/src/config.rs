//! The numbers of an engine.
//!
//! Owns [`EngineConfig`], its bounds and defaults.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use towline_transfer_proto::{ConnectConfig, InboxConfig, OutboxConfig, TransferConfig};

use crate::tcp::ANSWERS_MAX;
use crate::transport::Transport;

/// Who may be linked with an engine.
#[derive(Clone)]
pub enum Trust {
    /// Who proves this secret. Handshakes are authenticated both ways by HMAC-SHA-256; data are not encrypted, so the
    /// network between must not be the enemy's. At least 16 bytes.
    Key(Arc<[u8]>),
    /// Anybody who reaches the port may read and write what is registered for peers. For machines of one's own, and tests.
    Insecure,
}

impl Trust {
    /// A pre-shared secret.
    pub fn key(secret: impl Into<Vec<u8>>) -> Self {
        Self::Key(secret.into().into())
    }
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key(..)",
            Self::Insecure => "Insecure",
        })
    }
}

/// A secret below this length is no secret.
pub(crate) const KEY_BYTES_MIN: usize = 16;

/// TCP connections of one link at most.
pub(crate) const LANES_MAX: u16 = 16;

/// Everything that an engine is started with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EngineConfig {
    /// Where others reach it. Port 0 lets the system choose. `None` listens nowhere: such an engine can link itself to others and
    /// then serve them.
    pub listen: Option<SocketAddr>,
    /// Its name, which it keeps across restarts. By default where it listens, as text, which is how others call it then; if
    /// it listens on every address or nowhere, give one.
    pub name: Option<String>,
    /// Who may be linked.
    pub trust: Trust,
    /// Threads that move bytes over TCP, 1 to 64. Default: as many as there are processors, 4 at most, since one moves gigabytes.
    pub io_threads: usize,
    /// TCP connections of one link, 1 to 16. Default 1: one fills two processors. More help where one connection is limited by
    /// the network's delay.
    pub lanes: u16,
    /// CRC-32C over each slice that goes over TCP, in both directions. Default off: the network has its own sums, weaker ones, and
    /// these cost about a tenth of a processor for each GB/s.
    pub checksums: bool,
    /// A link over TCP on which something is under way and nothing moves for so long is broken. Default 5 s: longer than a network
    /// takes to find another way, and shorter than people wait.
    pub stall_max: Duration,
    /// Registered regions at most. Default 4,096; their descriptions fit one message.
    pub regions_max: usize,
    /// How peers are connected.
    pub connect: ConnectConfig,
    /// How work to **one** peer is bounded and shared between classes; another peer has its own. Slices are 256 KiB instead of
    /// the protocol's 64: over TCP a slice costs a header and an acknowledgement.
    pub transfer: TransferConfig,
    /// Notifications to one peer.
    pub outbox: OutboxConfig,
    /// Notifications of all peers that nobody has taken.
    pub inbox: InboxConfig,
    /// What [`crate::Engine::shutdown`] waits at most for work that is under way. Default 500 ms, so that all of it ends within
    /// a second.
    pub shutdown_grace: Duration,
    /// Besides TCP. Each needs a [`Transport::rail`] of its own.
    pub transports: Vec<Arc<dyn Transport>>,
    /// For drills: each handshake that is served takes this long. Default zero.
    pub service_time: Duration,
}

impl EngineConfig {
    /// The defaults, for peers that prove this trust.
    pub fn new(trust: Trust) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            listen: None,
            name: None,
            trust,
            io_threads: processors.min(4),
            lanes: 1,
            checksums: false,
            stall_max: Duration::from_secs(5),
            regions_max: 4_096,
            connect: ConnectConfig::ENGINE,
            transfer: TransferConfig { slice: 256 * 1024, ..TransferConfig::ENGINE },
            outbox: OutboxConfig::default(),
            inbox: InboxConfig::default(),
            shutdown_grace: Duration::from_millis(500),
            transports: Vec::new(),
            service_time: Duration::ZERO,
        }
    }

    /// Listen here.
    #[must_use]
    pub fn listen(mut self, at: SocketAddr) -> Self {
        self.listen = Some(at);
        self
    }

    /// Under this name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// With one more transport.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transports.push(transport);
        self
    }

    pub(crate) fn problem(&self) -> Option<&'static str> {
        let is_short = matches!(&self.trust, Trust::Key(key) if key.len() < KEY_BYTES_MIN);
        let mut rails: Vec<u16> = self.transports.iter().map(|transport| transport.rail()).collect();
        rails.push(0);
        rails.sort_unstable();
        // What a peer may ask for at a time; beyond it the other end stops reading.
        let open_max = (self.transfer.window as usize).saturating_add(self.outbox.count_max);
        let problems = [
            (is_short, "the key is shorter than 16 bytes"),
            (!(1..=64).contains(&self.io_threads), "io_threads must be 1 to 64"),
            (!(1..=LANES_MAX).contains(&self.lanes), "lanes must be 1 to 16"),
            (self.transfer.slice > u64::from(u32::MAX), "a slice must be below 4 GiB"),
            (open_max >= ANSWERS_MAX, "window and outbox.count_max together must be below 4,096"),
            (self.stall_max.is_zero(), "stall_max must be positive"),
            (self.regions_max == 0, "regions_max must be positive"),
            (rails.windows(2).any(|pair| pair[0] == pair[1]), "two transports have the same rail"),
            (self.transports.len() > 8, "at most 8 transports besides TCP"),
        ];
        problems.into_iter().find(|(is_so, _)| *is_so).map(|(_, text)| text)
    }
}
