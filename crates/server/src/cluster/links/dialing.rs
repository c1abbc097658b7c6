//! Dialling another node.
//!
//! Owns: the right to dial, time limits, and the handshake's outcome. Does **not** own when to try again (a link does, by its backoff).
//!
//! There is one link for each pair and direction, so a link's backoff is all the breaker that a target needs; the limiter keeps a
//! node that finds many others gone from dialling them all at once.

use super::handshake::{self, Greeted, HandshakeError, Introduction};
use super::{HANDSHAKE_TIME_MAX, Purpose};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use towline_admission::{BackoffConfig, DialLimiter, LimiterConfig};
use towline_sansio::Instant;

/// How long a connection may take to be made: two lost SYNs on a network of one site.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(1);

/// How long a link waits before it dials again. Half a second at most, for elections take about two; at once is too soon, as a node
/// that is being started refuses a few times.
pub(super) const BACKOFF: BackoffConfig = BackoffConfig {
    base: Duration::from_millis(25),
    cap: Duration::from_millis(500),
    multiplier: 2.0,
    first_jitter: Duration::from_millis(20),
    stable_after: Duration::from_secs(1),
};

/// Where a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// An address, or a name that resolves to one.
    pub(crate) ip: String,
    /// Its port for nodes.
    pub(crate) bus_port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.ip.contains(':') {
            write!(f, "[{}]:{}", self.ip, self.bus_port)
        } else {
            write!(f, "{}:{}", self.ip, self.bus_port)
        }
    }
}

/// Dials for a node.
pub(crate) struct Dialer {
    limiter: DialLimiter,
    epoch: std::time::Instant,
    secret: Vec<u8>,
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}

impl Dialer {
    /// A dialler that knows this secret; an empty one is none.
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        let limiter = DialLimiter::new(LimiterConfig::CLIENT).expect("invariant: the defaults are valid");
        Self { limiter, epoch: std::time::Instant::now(), secret }
    }

    /// Now, as backoff and limiter see it.
    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Makes a connection and says who this node is.
    ///
    /// # Errors
    /// [`HandshakeError`]; that it takes too long is one of its `Io`.
    ///
    /// # Cancel safety
    /// The connection is closed.
    pub(crate) async fn dial(
        &self,
        at: &Address,
        purpose: Purpose,
        from: Introduction,
    ) -> Result<(TcpStream, Greeted), HandshakeError> {
        let key: Arc<str> = at.to_string().into();
        let permit = self.limiter.acquire(key).await.map_err(|full| io::Error::other(full.to_string()))?;
        let now = self.now();
        tokio::time::sleep(permit.start_at(now).since(now)).await;
        let connecting = timeout(CONNECT_TIME_MAX, TcpStream::connect((at.ip.as_str(), at.bus_port)));
        let mut stream = connecting.await.map_err(|_| too_long())??;
        stream.set_nodelay(true)?;
        let shaking = timeout(HANDSHAKE_TIME_MAX, handshake::dial(&mut stream, purpose, from, &self.secret));
        let greeted = shaking.await.map_err(|_| too_long())??;
        Ok((stream, greeted))
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time")
}
