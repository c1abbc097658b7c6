//! A proxy in this process that drives `towline_faults` over real sockets.
//!
//! Owns: the listener, the sockets of its connections, and what a test may do to all of them at once (cut, hold,
//! another upstream, other rules). It does not own what a rule does to bytes: that is `towline_faults::link`. The command
//! `towline faults proxy` is the same for processes that are not tests; this one is quicker to start, and a test can ask
//! it at any moment.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bytes::{Buf as _, BytesMut};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};
use towline_faults::link::{Action, Close, Link};
use towline_faults::plan::{Dialed, Plan};
use towline_faults::rule::{BUSY_REPLY, DialFault, Direction, Rule, Side};

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// Connections on which nothing passes any more are dropped after so long: every client has given them up by then.
const SILENT_MAX: Duration = Duration::from_secs(20);

/// How long a closed socket waits for its peer to close too, so that its last bytes are not lost to a reset.
const LINGER: Duration = Duration::from_secs(1);

/// A running proxy on the loopback address. Dropping it ends its connections.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    start: Instant,
    upstream: Mutex<SocketAddr>,
    plan: Mutex<Plan>,
    /// When each connection was accepted, refused ones included.
    dials: Mutex<Vec<Instant>>,
    faults: Mutex<BTreeMap<&'static str, u64>>,
    open: AtomicU64,
    forwarded: AtomicU64,
    /// Closes all connections that are there.
    cut: broadcast::Sender<Close>,
    /// Connections up to this number neither read nor write.
    held: watch::Sender<u64>,
    /// So many more replies are lost, each with its connection.
    losing: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parsed(rules: &[&str]) -> anyhow::Result<Vec<Rule>> {
    rules.iter().map(|rule| rule.parse().with_context(|| format!("the rule {rule}"))).collect()
}

impl FaultProxy {
    /// Starts a proxy for `upstream` on the current runtime, with rules in the text form of
    /// [`towline_faults::rule`].
    ///
    /// # Errors
    /// A rule is malformed, or no port is free.
    pub async fn start(upstream: SocketAddr, seed: u64, rules: &[&str]) -> anyhow::Result<Self> {
        let plan = Plan::new(towline_sansio::Instant::ZERO, seed, parsed(rules)?)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            start: Instant::now(),
            upstream: Mutex::new(upstream),
            plan: Mutex::new(plan),
            dials: Mutex::default(),
            faults: Mutex::default(),
            open: AtomicU64::new(0),
            forwarded: AtomicU64::new(0),
            cut: broadcast::Sender::new(16),
            held: watch::Sender::new(0),
            losing: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { address, shared, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the rules for connections to come.
    ///
    /// # Errors
    /// A rule is malformed, or there are too many.
    pub fn set_rules(&self, rules: &[&str]) -> anyhow::Result<()> {
        Ok(locked(&self.shared.plan).set_rules(parsed(rules)?)?)
    }

    /// Where connections to come lead.
    pub fn set_upstream(&self, upstream: SocketAddr) {
        *locked(&self.shared.upstream) = upstream;
    }

    /// Closes every connection that is there.
    pub fn cut_all(&self, how: Close) {
        // Nobody listens when there is no connection.
        let _ = self.shared.cut.send(how);
    }

    /// Nothing passes any more on the connections that are there, as if their packets were dropped; new ones are well.
    pub fn hold_present(&self) {
        self.shared.held.send_replace(locked(&self.shared.plan).connection_count());
    }

    /// Nothing passes any more, on new connections neither.
    pub fn hold_all(&self) {
        self.shared.held.send_replace(u64::MAX);
    }

    /// What was held goes on.
    pub fn release(&self) {
        self.shared.held.send_replace(0);
    }

    /// The next `count` times that a server answers, the connection ends in place of the answer.
    pub fn lose_replies(&self, count: u64) {
        self.shared.losing.store(count, Ordering::Relaxed);
    }

    /// How many connections were made so far, refused ones included.
    pub fn dial_count(&self) -> usize {
        locked(&self.shared.dials).len()
    }

    /// When each connection was made, in order.
    pub fn dials(&self) -> Vec<Instant> {
        locked(&self.shared.dials).clone()
    }

    /// How many connections are open.
    pub fn open_count(&self) -> u64 {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// How many bytes were passed on, both ways together.
    pub fn forwarded_bytes(&self) -> u64 {
        self.shared.forwarded.load(Ordering::Relaxed)
    }

    /// How often each fault happened.
    pub fn faults(&self) -> BTreeMap<&'static str, u64> {
        locked(&self.shared.faults).clone()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut_all(Close::Reset);
    }
}

impl Shared {
    fn now(&self) -> towline_sansio::Instant {
        towline_sansio::Instant::ZERO + self.start.elapsed()
    }

    fn loses_reply(&self) -> bool {
        let one_less = |left: u64| left.checked_sub(1);
        self.losing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    fn note(&self, fault: &'static str) {
        *locked(&self.faults).entry(fault).or_default() += 1;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        let dial = locked(&shared.plan).dial(shared.now());
        locked(&shared.dials).push(Instant::now());
        // Subscribed here, so that a cut hits every connection that was accepted before it.
        let cut = shared.cut.subscribe();
        tokio::spawn(serve(Arc::clone(&shared), client, dial.outcome, cut));
    }
}

async fn serve(shared: Arc<Shared>, client: TcpStream, dialed: Dialed, mut cut: broadcast::Receiver<Close>) {
    let link = match dialed {
        Dialed::Open(link) => *link,
        Dialed::Faulty(fault) => {
            shared.note(fault.name());
            return match fault {
                DialFault::Refuse => drop(client.set_zero_linger()),
                DialFault::Close => close(client, BytesMut::new(), Close::Fin).await,
                DialFault::Busy => close(client, BUSY_REPLY.into(), Close::Fin).await,
                DialFault::Hang => drop(timeout(SILENT_MAX, cut.recv()).await),
            };
        }
    };
    let upstream = *locked(&shared.upstream);
    let Ok(server) = TcpStream::connect(upstream).await else { return drop(client.set_zero_linger()) };
    shared.open.fetch_add(1, Ordering::Relaxed);
    let mut held = shared.held.subscribe();
    // Only a hold from now on, and one that is in force, concerns this connection.
    held.mark_changed();
    let driver =
        Driver { shared: &shared, link, ends: [End::new(client), End::new(server)], silent_since: None };
    driver.run(cut, held).await;
    shared.open.fetch_sub(1, Ordering::Relaxed);
}

/// One socket.
#[derive(Debug)]
struct End {
    /// `None` when it is closed.
    stream: Option<TcpStream>,
    /// What the kernel has not taken yet.
    unwritten: BytesMut,
    is_finished: bool,
    has_ended: bool,
}

impl End {
    fn new(stream: TcpStream) -> Self {
        // Without the option pieces of a split may be joined, nothing worse.
        let _ = stream.set_nodelay(true);
        Self { stream: Some(stream), unwritten: BytesMut::new(), is_finished: false, has_ended: false }
    }

    /// Waits for bytes; for ever if the socket is closed.
    async fn readable(&self) {
        match &self.stream {
            Some(stream) => drop(stream.readable().await),
            None => std::future::pending().await,
        }
    }

    /// Waits for room, if something waits for it.
    async fn writable(&self) {
        match &self.stream {
            Some(stream) if !self.unwritten.is_empty() => drop(stream.writable().await),
            _ => std::future::pending().await,
        }
    }

    fn read(&self, room: usize, into: &mut [u8]) -> io::Result<usize> {
        let room = room.min(into.len());
        self.stream.as_ref().map_or(Ok(0), |stream| stream.try_read(&mut into[..room]))
    }

    /// Gives the kernel what it takes; how many bytes.
    fn flush(&mut self) -> io::Result<usize> {
        let Some(stream) = &self.stream else { return Ok(0) };
        let mut written = 0;
        while !self.unwritten.is_empty() {
            match stream.try_write(&self.unwritten) {
                Ok(count) => {
                    self.unwritten.advance(count);
                    written += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(written),
                Err(error) => {
                    self.stream = None;
                    return Err(error);
                }
            }
        }
        if std::mem::take(&mut self.is_finished) {
            // A peer that has gone needs no end.
            let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
        }
        Ok(written)
    }
}

/// Closes a socket behind what it still has to deliver, or with a reset.
async fn close(stream: TcpStream, mut unwritten: BytesMut, how: Close) {
    if how == Close::Reset {
        // If the option cannot be set, the socket was broken before.
        let _ = stream.set_zero_linger();
        return;
    }
    let linger = async {
        let mut stream = stream;
        while !unwritten.is_empty() {
            stream.writable().await?;
            match stream.try_write(&unwritten) {
                Ok(count) => unwritten.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        rustix::net::shutdown(&stream, rustix::net::Shutdown::Write)?;
        let mut dropped = [0; 4096];
        while stream.read(&mut dropped).await? > 0 {}
        io::Result::Ok(())
    };
    // Delivered or not, the socket goes.
    let _ = timeout(LINGER, linger).await;
}

/// What ends a wait.
enum Event {
    Readable(Direction),
    Other,
    Cut(Close),
    Gone,
}

struct Driver<'a> {
    shared: &'a Shared,
    link: Link,
    /// The client's and the server's.
    ends: [End; 2],
    silent_since: Option<Instant>,
}

/// The place of the socket that a direction's bytes come from.
const fn sender(direction: Direction) -> usize {
    match direction {
        Direction::ClientToServer => 0,
        Direction::ServerToClient => 1,
    }
}

impl Driver<'_> {
    async fn run(mut self, mut cut: broadcast::Receiver<Close>, mut held: watch::Receiver<u64>) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let is_held = *held.borrow_and_update() >= self.link.connection();
            if !is_held {
                self.act();
                if self.link.is_over() {
                    break;
                }
            }
            match self.wait(is_held, &mut cut, &mut held).await {
                Event::Readable(direction) => self.read(direction, &mut buffer),
                Event::Cut(how) => {
                    self.link.close(how);
                    self.act();
                    break;
                }
                Event::Gone => break,
                Event::Other => {}
            }
        }
        for End { stream, unwritten, .. } in self.ends {
            if let Some(stream) = stream {
                tokio::spawn(close(stream, unwritten, Close::Fin));
            }
        }
    }

    /// Does everything that the link wants done now.
    fn act(&mut self) {
        loop {
            while let Some(action) = self.link.poll(self.shared.now()) {
                match action {
                    Action::Forward { direction, bytes } => {
                        let end = &mut self.ends[1 - sender(direction)];
                        if end.stream.is_some() {
                            end.unwritten.extend_from_slice(&bytes);
                        }
                        self.flush(direction);
                    }
                    Action::Finish { direction } => self.ends[1 - sender(direction)].is_finished = true,
                    Action::Close { side, how } => {
                        for (index, other) in [(0, Side::Server), (1, Side::Client)] {
                            if side != other {
                                self.shut(index, how);
                            }
                        }
                    }
                    Action::Fault(fired) => self.shared.note(fired.fault.name()),
                }
            }
            // A write that finds its peer gone is news for the link.
            if Direction::BOTH.map(|direction| self.flush(direction)) == [false; 2] {
                return;
            }
        }
    }

    fn shut(&mut self, index: usize, how: Close) {
        let end = &mut self.ends[index];
        let unwritten = std::mem::take(&mut end.unwritten);
        if let Some(stream) = end.stream.take() {
            tokio::spawn(close(stream, unwritten, how));
        }
    }

    /// Writes what waits for a direction's receiver; whether that is gone.
    fn flush(&mut self, direction: Direction) -> bool {
        match self.ends[1 - sender(direction)].flush() {
            Ok(count) => {
                self.shared.forwarded.fetch_add(count as u64, Ordering::Relaxed);
                false
            }
            Err(_) => {
                self.end(direction.reversed(), Close::Reset);
                true
            }
        }
    }

    fn read(&mut self, direction: Direction, buffer: &mut [u8]) {
        let room = self.link.room(direction);
        match self.ends[sender(direction)].read(room, buffer) {
            Ok(0) => self.end(direction, Close::Fin),
            Ok(_) if direction == Direction::ServerToClient && self.shared.loses_reply() => {
                self.link.close(Close::Fin);
            }
            Ok(count) => drop(self.link.push(self.shared.now(), direction, &buffer[..count])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.end(direction, Close::Reset),
        }
    }

    /// The sender of a direction has ended.
    fn end(&mut self, direction: Direction, how: Close) {
        self.ends[sender(direction)].has_ended = true;
        self.link.finish(self.shared.now(), direction, how);
    }

    /// Waits until there is something to do.
    async fn wait(
        &mut self,
        is_held: bool,
        cut: &mut broadcast::Receiver<Close>,
        held: &mut watch::Receiver<u64>,
    ) -> Event {
        use Direction::{ClientToServer, ServerToClient};
        let is_silent = is_held || self.link.is_silent();
        let since = is_silent.then(|| *self.silent_since.get_or_insert_with(Instant::now));
        if !is_silent {
            self.silent_since = None;
        }
        let [client, server] = &self.ends;
        let wants = |direction, from: &End, to: &End| {
            !is_silent && !from.has_ended && to.unwritten.is_empty() && self.link.room(direction) > 0
        };
        let due = self.link.poll_timeout().filter(|_| !is_held);
        let due = due.map(|at| self.shared.start + at.since(towline_sansio::Instant::ZERO));
        let mut time = pin!(async {
            match due {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        });
        let mut given_up = pin!(async {
            match since {
                Some(since) => sleep_until(since + SILENT_MAX).await,
                None => std::future::pending().await,
            }
        });
        tokio::select! {
            how = cut.recv() => Event::Cut(how.unwrap_or(Close::Reset)),
            _ = held.changed() => Event::Other,
            () = client.readable(), if wants(ClientToServer, client, server) => Event::Readable(ClientToServer),
            () = server.readable(), if wants(ServerToClient, server, client) => Event::Readable(ServerToClient),
            () = client.writable(), if !is_silent => Event::Other,
            () = server.writable(), if !is_silent => Event::Other,
            () = &mut time => Event::Other,
            () = &mut given_up => Event::Gone,
        }
    }
}
