//! TCP: names to addresses, addresses to a socket.
//!
//! Owns: socket options and the race between a name's addresses. Does **not** own what is above the socket.

use super::{ConnectError, DialStage, Limit};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::task::JoinSet;

/// Linux takes the times of keepalive in seconds up to this.
const KEEPALIVE_MAX: Duration = Duration::from_secs(32_767);

/// The kernel takes them in whole seconds, and not zero.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);

/// Linux takes the number of unanswered probes up to this.
const KEEPALIVE_PROBE_COUNT_MAX: u32 = 127;

/// Options of TCP sockets.
///
/// ```
/// use std::time::Duration;
/// use towline_client::transport::TcpOptions;
///
/// let options = TcpOptions::new().keepalive(None).user_timeout(Some(Duration::from_secs(5)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpOptions {
    is_nodelay: bool,
    keepalive: Option<Keepalive>,
    user_timeout: Option<Duration>,
    bind: Option<IpAddr>,
    attempt_delay: Duration,
    send_buffer_bytes: Option<u32>,
    receive_buffer_bytes: Option<u32>,
}

/// When the kernel asks an idle peer whether it is there. Times are rounded to whole seconds from 1 to 32767.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection is dead, 1 to 127.
    pub probe_count: u32,
}

impl Default for Keepalive {
    /// 30 s, then every 5 s, dead after 3: below the minute or so after which common load balancers and address
    /// translators forget an idle connection, and dead within 45 s even if the process does not get to run.
    fn default() -> Self {
        Self { idle: Duration::from_secs(30), interval: Duration::from_secs(5), probe_count: 3 }
    }
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            is_nodelay: true,
            keepalive: Some(Keepalive::default()),
            user_timeout: Some(Duration::from_secs(10)),
            bind: None,
            attempt_delay: Duration::from_millis(250),
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        }
    }
}

impl TcpOptions {
    /// The defaults, each with its reason at its setter.
    pub fn new() -> Self {
        Self::default()
    }

    /// `TCP_NODELAY`. Default on: the client joins commands itself, and waiting for more costs up to 40 ms.
    pub const fn nodelay(mut self, is_on: bool) -> Self {
        self.is_nodelay = is_on;
        self
    }

    /// Probes of idle connections; `None`: none. Default on, see [`Keepalive::default`].
    pub const fn keepalive(mut self, keepalive: Option<Keepalive>) -> Self {
        self.keepalive = keepalive;
        self
    }

    /// `TCP_USER_TIMEOUT` (Linux): how long sent bytes may stay without an acknowledgement until the connection is
    /// dead; `None` or zero: as the system has it, about 15 minutes.
    ///
    /// Default 10 s: five retransmissions, so that a lossy moment or a route that fails over does not end a
    /// connection. The client's own probes are quicker; this is the net below them, for a process that does not get to
    /// run.
    pub const fn user_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.user_timeout = timeout;
        self
    }

    /// The local address to connect from; `None`, the default: the system's choice.
    pub const fn bind(mut self, address: Option<IpAddr>) -> Self {
        self.bind = address;
        self
    }

    /// The local address that is connected from, if one is set.
    pub const fn bind_address(&self) -> Option<IpAddr> {
        self.bind
    }

    /// How long one address of a name has before the next is tried beside it; a failure is followed by the next at
    /// once. Default 250 ms, as RFC 8305 recommends: longer than most round trips, shorter than what a person notices.
    pub const fn attempt_delay(mut self, delay: Duration) -> Self {
        self.attempt_delay = delay;
        self
    }

    /// `SO_SNDBUF` in bytes; `None`, the default: the kernel fits it to the path, which a fixed size ends.
    pub const fn send_buffer_bytes(mut self, bytes: Option<u32>) -> Self {
        self.send_buffer_bytes = bytes;
        self
    }

    /// `SO_RCVBUF` in bytes; `None`, the default: the kernel fits it to the path, which a fixed size ends.
    pub const fn receive_buffer_bytes(mut self, bytes: Option<u32>) -> Self {
        self.receive_buffer_bytes = bytes;
        self
    }
}

/// Resolves the name and connects to the first of its addresses that answers.
pub(super) async fn dial(
    host: &str,
    port: u16,
    options: &TcpOptions,
    limit: &Limit<'_>,
) -> Result<TcpStream, ConnectError> {
    let found = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => resolve(host, port, limit).await?,
    };
    let addresses: Vec<_> = found
        .into_iter()
        .filter(|at| options.bind.is_none_or(|bind| bind.is_ipv4() == at.is_ipv4()))
        .collect();
    if let (true, Some(bind)) = (addresses.is_empty(), options.bind) {
        return Err(ConnectError::NoAddressToBind { target: limit.target.clone(), bind });
    }
    let raced = limit.hold(DialStage::Connect, race(alternate(addresses), options)).await?;
    raced.map_err(|failures| ConnectError::Connect { target: limit.target.clone(), failures })
}

async fn resolve(host: &str, port: u16, limit: &Limit<'_>) -> Result<Vec<SocketAddr>, ConnectError> {
    let failed = |source| ConnectError::Resolve { host: host.to_owned(), source };
    let found = limit.hold(DialStage::Resolve, lookup_host((host, port))).await?.map_err(failed)?;
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return Err(failed(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    }
    Ok(found)
}

/// Addresses of both families in turn, so that a family without a route costs one delay only (RFC 8305, section 4).
fn alternate(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_v6_first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == is_v6_first);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut out = Vec::with_capacity(first.len() + second.len());
    while first.len() + second.len() > 0 {
        out.extend(first.next());
        out.extend(second.next());
    }
    out
}

/// The first connection that comes to be: one more address whenever the last one failed or took too long.
async fn race(
    addresses: Vec<SocketAddr>,
    options: &TcpOptions,
) -> Result<TcpStream, Vec<(SocketAddr, io::Error)>> {
    if let [address] = addresses[..] {
        return connect(address, options).await.map_err(|error| vec![(address, error)]);
    }
    let mut waiting = addresses.into_iter();
    // Dropping it ends all dials that are still under way.
    let mut dials = JoinSet::new();
    let mut failures = Vec::new();
    loop {
        if let Some(address) = waiting.next() {
            let options = options.clone();
            dials.spawn(async move { (address, connect(address, &options).await) });
        }
        tokio::select! {
            dialed = dials.join_next() => match dialed {
                Some(Ok((_, Ok(stream)))) => return Ok(stream),
                Some(Ok((address, Err(error)))) => failures.push((address, error)),
                // A runtime that shuts down cancels its tasks; the others tell the same.
                Some(Err(_)) => {}
                None => return Err(failures),
            },
            () = tokio::time::sleep(options.attempt_delay), if waiting.len() > 0 => {}
        }
    }
}

async fn connect(address: SocketAddr, options: &TcpOptions) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    prepare(&socket, options)?;
    if let Some(bind) = options.bind {
        socket.bind(SocketAddr::new(bind, 0))?;
    }
    socket.connect(address).await
}

/// Sets all options before the dial: the user timeout then holds for it too, and buffer sizes are told to the peer.
fn prepare(socket: &TcpSocket, options: &TcpOptions) -> io::Result<()> {
    socket.set_nodelay(options.is_nodelay)?;
    if let Some(bytes) = options.send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = options.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    let raw = SockRef::from(socket);
    if let Some(keepalive) = &options.keepalive {
        let times = TcpKeepalive::new()
            .with_time(keepalive.idle.clamp(KEEPALIVE_MIN, KEEPALIVE_MAX))
            .with_interval(keepalive.interval.clamp(KEEPALIVE_MIN, KEEPALIVE_MAX))
            .with_retries(keepalive.probe_count.clamp(1, KEEPALIVE_PROBE_COUNT_MAX));
        raw.set_tcp_keepalive(&times)?;
    }
    #[cfg(target_os = "linux")]
    if let Some(timeout) = options.user_timeout.filter(|timeout| !timeout.is_zero()) {
        // The kernel takes milliseconds in a signed 32-bit number; zero would be its own default.
        let millis = timeout.as_millis().clamp(1, i32::MAX as u128) as u64;
        raw.set_tcp_user_timeout(Some(Duration::from_millis(millis)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// An address where nobody listens.
    async fn closed() -> SocketAddr {
        listener().await.1
    }

    #[test]
    fn families_take_turns_and_the_resolver_says_which_is_first() {
        let (v4, v6) = (
            |port| SocketAddr::from(([127, 0, 0, 1], port)),
            |port| SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port)),
        );
        assert_eq!(alternate(vec![v6(1), v6(2), v6(3), v4(4), v4(5)]), [v6(1), v4(4), v6(2), v4(5), v6(3)]);
        assert_eq!(alternate(vec![v4(1), v6(2)]), [v4(1), v6(2)]);
        assert!(alternate(vec![]).is_empty());
    }

    #[tokio::test]
    async fn an_address_that_refuses_is_followed_by_the_next_at_once() {
        let (_listener, good) = listener().await;
        let options = TcpOptions::new().attempt_delay(Duration::MAX);
        let stream = race(vec![closed().await, good], &options).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        let failures = race(vec![closed().await, closed().await], &options).await.unwrap_err();
        assert_eq!(failures.len(), 2);
        assert!(failures.iter().all(|(_, error)| error.kind() == io::ErrorKind::ConnectionRefused));
    }

    #[tokio::test]
    async fn an_address_that_says_nothing_is_overtaken() {
        // The kernel drops the handshakes of a listener whose queue is full, as a host behind a firewall would.
        let silent = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        silent.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        silent.listen(0).unwrap();
        let address = silent.local_addr().unwrap().as_socket().unwrap();
        let _fills_the_queue = TcpStream::connect(address).await.unwrap();

        let (_listener, good) = listener().await;
        let options = TcpOptions::new().attempt_delay(Duration::ZERO);
        let stream = race(vec![address, good], &options).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
    }

    #[tokio::test]
    async fn options_reach_the_socket_and_extreme_ones_are_bounded() {
        let (_listener, good) = listener().await;
        let stream = connect(good, &TcpOptions::new()).await.unwrap();
        assert!(stream.nodelay().unwrap());
        let raw = SockRef::from(&stream);
        assert!(raw.keepalive().unwrap());
        assert_eq!(raw.tcp_keepalive_time().unwrap(), Duration::from_secs(30));
        assert_eq!(raw.tcp_user_timeout().unwrap(), Some(Duration::from_secs(10)));

        for time in [Duration::ZERO, Duration::MAX, Duration::from_nanos(1)] {
            let keepalive = Keepalive { idle: time, interval: time, probe_count: u32::MAX };
            let options = TcpOptions::new().keepalive(Some(keepalive)).user_timeout(Some(time));
            connect(good, &options).await.unwrap();
        }
        let plain = TcpOptions::new().nodelay(false).keepalive(None).user_timeout(None);
        let stream = connect(good, &plain.bind(Some(IpAddr::from([127, 0, 0, 2])))).await.unwrap();
        assert!(!stream.nodelay().unwrap() && !SockRef::from(&stream).keepalive().unwrap());
        assert_eq!(stream.local_addr().unwrap().ip(), IpAddr::from([127, 0, 0, 2]));
    }
}
