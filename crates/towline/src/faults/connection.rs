//! One connection of the proxy: two sockets and the link between them.
//!
//! Owns the loop: read while there is room, do what the link says, write, wait. Decides nothing.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use towline_faults::link::{Action, Close, Link};
use towline_faults::plan;
use towline_faults::rule::{self, BUSY_REPLY, DialFault, Direction};

use super::shared::{Dialed, Registered, Shared, Told};
use super::stream::{Side, linger, reset};

/// How long a dial of the upstream may take: longer than one lost SYN.
const DIAL_MAX: Duration = Duration::from_secs(5);

/// Bytes of one read. 16 KiB: thousands of connections are cheap, and a large value takes few reads.
const READ_BYTES: usize = 16 * 1024;

/// Serves one client until its connection has ended.
pub(super) async fn serve(shared: Arc<Shared>, client: TcpStream, dialed: Dialed) {
    let Dialed { dial, texts, rearmed } = dialed;
    let connection = dial.connection;
    let mut registered = shared.register(connection, rearmed);
    let link = match dial.outcome {
        plan::Dialed::Open(link) => *link,
        plan::Dialed::Faulty(fault) => {
            let rule = dial.rule.and_then(|rule| texts.get(rule)).map_or("", String::as_str);
            shared.dial_failed(connection, fault.name(), rule);
            return fail(client, fault, &mut registered).await;
        }
    };
    match reach(&shared).await {
        Ok(server) => {
            let driver = Driver {
                shared: &shared,
                texts,
                link,
                client: Side::new(client),
                server: Side::new(server),
                closing: JoinSet::new(),
                buffer: vec![0; READ_BYTES],
            };
            driver.run(&mut registered).await;
        }
        Err(error) => {
            shared.unreachable(connection, error.to_string());
            reset(client);
        }
    }
}

/// Does what a rule for dials says. A listening socket has accepted before anybody can say no, so a refusal is a reset.
async fn fail(client: TcpStream, fault: DialFault, registered: &mut Registered) {
    match fault {
        DialFault::Refuse => reset(client),
        DialFault::Close => linger(client, VecDeque::new()).await,
        DialFault::Busy => linger(client, VecDeque::from([BUSY_REPLY.into()])).await,
        DialFault::Hang => {
            let mut side = Side::new(client);
            tokio::select! {
                () = side.peer_ended() => {}
                how = registered.cut() => side.close(how).await,
            }
        }
    }
}

/// Dials the upstream, wherever it is now.
async fn reach(shared: &Shared) -> io::Result<TcpStream> {
    let upstream = &shared.upstream;
    let dial = async {
        let addresses: Vec<SocketAddr> = match shared.moved_upstream() {
            Some(moved) => moved.into_iter().map(|ip| SocketAddr::new(ip, upstream.port)).collect(),
            None => lookup_host((upstream.host.as_str(), upstream.port)).await?.collect(),
        };
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{} has no address", upstream.host)));
        }
        TcpStream::connect(addresses.as_slice()).await
    };
    timeout(DIAL_MAX, dial).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// What ends a wait.
enum Event {
    Readable(Direction),
    Writable,
    PeerEnded(Direction),
    Time,
    Told(Told),
}

/// The loop of one connection.
struct Driver<'a> {
    shared: &'a Shared,
    texts: Arc<[String]>,
    link: Link,
    client: Side,
    server: Side,
    /// Sockets that are being closed.
    closing: JoinSet<()>,
    buffer: Vec<u8>,
}

impl Driver<'_> {
    async fn run(mut self, registered: &mut Registered) {
        loop {
            self.act();
            if self.link.is_over() {
                break;
            }
            match self.wait(registered).await {
                Event::Readable(direction) => self.read(direction),
                Event::PeerEnded(direction) => self.end(direction, Close::Fin),
                Event::Told(Told::Cut(how)) => self.link.close(how),
                Event::Told(Told::Rearm) => self.rearm(),
                Event::Writable | Event::Time => {}
            }
        }
        // What has ended by itself is delivered to the end; what a fault has closed is gone already.
        for mut side in [self.client, self.server] {
            self.closing.spawn(side.close(Close::Fin));
        }
        while self.closing.join_next().await.is_some() {}
    }

    /// Other rules are in force.
    fn rearm(&mut self) {
        let was_silent = self.link.is_silent();
        self.texts = self.shared.rearm(&mut self.link);
        if !was_silent {
            return;
        }
        for direction in Direction::BOTH {
            if self.sender(direction).look_anew().is_err() {
                self.end(direction, Close::Reset);
            }
        }
    }

    /// Does everything that the link wants done now.
    fn act(&mut self) {
        loop {
            while let Some(action) = self.link.poll(self.shared.now()) {
                self.perform(action);
            }
            // A write may find that the peer is gone, of which the link has to know.
            if !(self.flush(Direction::ClientToServer) | self.flush(Direction::ServerToClient)) {
                return;
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Forward { direction, bytes } => {
                self.receiver(direction).write(bytes);
                // At once, so that pieces of a split are separate writes.
                self.flush(direction);
            }
            Action::Finish { direction } => self.receiver(direction).finish(),
            Action::Close { side, how } => {
                if side != rule::Side::Server {
                    self.closing.spawn(self.client.close(how));
                }
                if side != rule::Side::Client {
                    self.closing.spawn(self.server.close(how));
                }
            }
            Action::Fault(fired) => self.shared.fired(&fired, &self.texts),
        }
    }

    /// Writes what waits for a direction's receiver; whether that is gone.
    fn flush(&mut self, direction: Direction) -> bool {
        let (count, is_gone) = match self.receiver(direction).flush() {
            Ok(count) => (count, false),
            Err(_) => (0, true),
        };
        self.shared.delivered(direction, count);
        if is_gone {
            self.end(direction.reversed(), Close::Reset);
        }
        is_gone
    }

    fn read(&mut self, direction: Direction) {
        let room = self.link.room(direction).min(self.buffer.len());
        let sender = match direction {
            Direction::ClientToServer => &self.client,
            Direction::ServerToClient => &self.server,
        };
        match sender.read(&mut self.buffer[..room]) {
            Ok(0) if room > 0 => self.end(direction, Close::Fin),
            Ok(count) => {
                self.link.push(self.shared.now(), direction, &self.buffer[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.end(direction, Close::Reset),
        }
    }

    /// The sender of a direction has ended.
    fn end(&mut self, direction: Direction, how: Close) {
        self.sender(direction).has_ended = true;
        self.link.finish(self.shared.now(), direction, how);
    }

    fn sender(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::ClientToServer => &mut self.client,
            Direction::ServerToClient => &mut self.server,
        }
    }

    fn receiver(&mut self, direction: Direction) -> &mut Side {
        self.sender(direction.reversed())
    }

    /// Waits until there is something to do.
    async fn wait(&self, registered: &mut Registered) -> Event {
        let is_silent = self.link.is_silent();
        let wants = |direction, sender: &Side, receiver: &Side| {
            !sender.has_ended && !receiver.is_full() && self.link.room(direction) > 0
        };
        let at = self.link.poll_timeout().map(|at| self.shared.clock(at));
        let time = async {
            match at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        use Direction::{ClientToServer, ServerToClient};
        tokio::select! {
            told = registered.told() => Event::Told(told),
            () = self.client.readable(), if wants(ClientToServer, &self.client, &self.server) => {
                Event::Readable(ClientToServer)
            }
            () = self.server.readable(), if wants(ServerToClient, &self.server, &self.client) => {
                Event::Readable(ServerToClient)
            }
            () = self.client.writable(), if !is_silent => Event::Writable,
            () = self.server.writable(), if !is_silent => Event::Writable,
            () = self.client.peer_ended(), if is_silent && !self.client.has_ended => {
                Event::PeerEnded(ClientToServer)
            }
            () = self.server.peer_ended(), if is_silent && !self.server.has_ended => {
                Event::PeerEnded(ServerToClient)
            }
            () = time => Event::Time,
        }
    }
}
