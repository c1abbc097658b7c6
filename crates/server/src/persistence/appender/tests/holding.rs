//! Replies that wait, over real sockets, with a disk whose syncs wait to be let go.

use crate::config::{AppendFsync, Config};
use crate::persistence::disk::Disk;
use crate::persistence::memory_disk::{MemoryDisk, SharedDisk};
use crate::server::Server;
use e2e::wait;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct Rig {
    server: Option<Server>,
    disk: Arc<MemoryDisk>,
}

impl Rig {
    /// A server with so many workers, whose log has begun under `always`.
    fn new(workers: usize, change: impl FnOnce(&mut Config)) -> Self {
        let (disk, mut config) = (MemoryDisk::new(), Config { workers, ..Config::default() });
        config.persistence.appendfsync = AppendFsync::Always;
        config.bind = vec!["127.0.0.1".into()];
        // No server listens on a fixed port; the address is asked for below.
        config.port = 0;
        config.unixsocket = None;
        change(&mut config);
        let server = start(config, &disk);
        let file = SharedDisk(Arc::clone(&disk)).create(Path::new("log")).expect("this does not fail");
        server.shared().persistence.log.begin(file, "log".into(), 0).expect("it is off");
        Self { server: Some(server), disk }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs until the end")
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.server().addresses()[0]).expect("it listens");
        stream.set_read_timeout(Some(wait::PATIENCE)).expect("a socket has timeouts");
        stream.set_nodelay(true).expect("a socket has options");
        let mut client = Client { stream, id: 0 };
        client.send("CLIENT ID");
        client.id = client.line()[1..].parse().expect("a number");
        client
    }

    /// Waits until the client has a reply that waits, and nothing has left.
    fn assert_held(&self, client: &Client) {
        let facts = self.server().shared().clients.get(client.id).expect("it is connected");
        assert!(wait::until(|| facts.reply_bytes.load(Ordering::Relaxed) > 0), "no reply waits");
        assert!(client.has_nothing(), "a reply has left");
    }

    fn await_sync(&self) {
        assert!(wait::until(|| self.disk.waiting_syncs() > 0), "no sync comes");
    }
}

/// The test may share the machine with others that take ports.
fn start(mut config: Config, disk: &Arc<MemoryDisk>) -> Server {
    loop {
        let probe = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("there are ports");
        config.port = probe.local_addr().expect("it is bound").port();
        drop(probe);
        if let Ok(server) = Server::start_on(config.clone(), Arc::new(SharedDisk(Arc::clone(disk)))) {
            return server;
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.disk.hold_syncs(false);
        if let Some(server) = self.server.take() {
            server.stopper().stop();
            let ended = server.join();
            assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
        }
    }
}

struct Client {
    stream: TcpStream,
    id: u64,
}

impl Client {
    fn send(&mut self, lines: &str) {
        let text: String = lines.split(';').map(|line| format!("{}\r\n", line.trim())).collect();
        self.stream.write_all(text.as_bytes()).expect("the server reads");
    }

    fn line(&mut self) -> String {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !line.ends_with(b"\r\n") {
            self.stream.read_exact(&mut byte).expect("a reply comes");
            line.push(byte[0]);
        }
        String::from_utf8_lossy(&line[..line.len() - 2]).into_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.line()
    }

    fn has_nothing(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket has options");
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).expect("a socket has options");
        matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Whether the server has closed the connection.
    fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }
}

#[test]
fn no_reply_leaves_before_the_sync_and_nobody_else_waits() {
    for workers in [1, 3] {
        let rig = Rig::new(workers, |_| {});
        let (mut a, mut b) = (rig.connect(), rig.connect());
        rig.disk.hold_syncs(true);
        a.send("SET {a} 1; GET {a}; PING; SET {a} 2; INCR {a}");
        rig.assert_held(&a);
        rig.await_sync();
        for _ in 0..3 {
            assert_eq!(b.ask("PING"), "+PONG");
            assert_eq!(b.ask("GET {other}"), "$-1");
        }
        rig.assert_held(&a);
        rig.disk.hold_syncs(false);
        assert_eq!([a.line(), a.line(), a.line()], ["+OK", "$1", "1"]);
        assert_eq!([a.line(), a.line(), a.line()], ["+PONG", "+OK", ":3"]);
    }
}

#[test]
fn whoever_reads_what_is_not_durable_waits_as_well() {
    let rig = Rig::new(2, |_| {});
    let (mut a, mut b, mut c) = (rig.connect(), rig.connect(), rig.connect());
    rig.disk.hold_syncs(true);
    a.send("SET k 1");
    rig.assert_held(&a);
    b.send("GET k");
    c.send("MGET k other");
    rig.assert_held(&b);
    rig.assert_held(&c);
    rig.disk.hold_syncs(false);
    assert_eq!([b.line(), b.line()], ["$1", "1"]);
    assert_eq!([c.line(), c.line()], ["*2", "$1"]);
    assert_eq!(a.line(), "+OK");
}

#[test]
fn what_a_blocked_client_gets_waits_for_the_push() {
    let rig = Rig::new(3, |_| {});
    let (mut pusher, mut blocked) = (rig.connect(), rig.connect());
    blocked.send("BLPOP list 0");
    let shared = rig.server().shared();
    assert!(wait::until(|| shared.blocked.len() == 1));
    rig.disk.hold_syncs(true);
    pusher.send("RPUSH list x");
    rig.assert_held(&blocked);
    rig.assert_held(&pusher);
    rig.disk.hold_syncs(false);
    assert_eq!(pusher.line(), ":1");
    assert_eq!([blocked.line(), blocked.line(), blocked.line()], ["*2", "$4", "list"]);
}

#[test]
fn one_sync_serves_all_who_came_during_the_one_before() {
    let rig = Rig::new(2, |_| {});
    let mut first = rig.connect();
    let mut clients: Vec<Client> = (0..50).map(|_| rig.connect()).collect();
    rig.disk.hold_syncs(true);
    first.send("SET first 1");
    rig.await_sync();
    let before = rig.disk.syncs();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&format!("SET key:{number} 1; INCR counter"));
    }
    for client in &clients {
        rig.assert_held(client);
    }
    rig.disk.pass_sync();
    assert_eq!(first.line(), "+OK");
    rig.await_sync();
    assert_eq!(rig.disk.syncs(), before + 1);
    assert!(clients.iter().all(Client::has_nothing));
    rig.disk.pass_sync();
    for client in &mut clients {
        assert_eq!(client.line(), "+OK");
        assert!(client.line().starts_with(':'));
    }
    assert_eq!(rig.disk.syncs(), before + 1, "100 writes of 50 clients took one more sync");
}

#[test]
fn a_connection_that_is_held_can_be_killed_or_leave() {
    let rig = Rig::new(2, |_| {});
    let (mut a, mut b, mut quitting) = (rig.connect(), rig.connect(), rig.connect());
    rig.disk.hold_syncs(true);
    a.send("SET k 1");
    rig.assert_held(&a);
    quitting.send("SET k 2; QUIT");
    rig.assert_held(&quitting);
    assert_eq!(b.ask(&format!("CLIENT KILL ID {}", a.id)), ":1");
    assert!(a.is_closed());
    rig.disk.hold_syncs(false);
    assert_eq!([quitting.line(), quitting.line()], ["+OK", "+OK"]);
    assert!(quitting.is_closed());
    assert_eq!(
        [b.ask("GET k"), b.line()],
        ["$1", "2"],
        "the write of the one that was killed happened before"
    );
}

#[test]
fn what_is_held_counts_against_the_output_limit() {
    let rig = Rig::new(1, |config| {
        config.client_output_buffer_limit.normal.hard_bytes = 100_000;
    });
    let (mut a, mut b) = (rig.connect(), rig.connect());
    let value = "x".repeat(60_000);
    assert_eq!(a.ask(&format!("SET k {value}")), "+OK");
    rig.disk.hold_syncs(true);
    a.send("APPEND k y; GET k");
    rig.assert_held(&a);
    assert_eq!(b.ask("PING"), "+PONG");
    a.send("GET k");
    assert!(a.is_closed());
    assert_eq!(b.ask("PING"), "+PONG");
}

#[test]
fn a_server_that_stops_answers_what_it_could_write() {
    let mut rig = Rig::new(2, |_| {});
    let mut a = rig.connect();
    rig.disk.hold_syncs(true);
    a.send("SET k 1");
    rig.assert_held(&a);
    let server = rig.server.take().expect("it runs");
    let log = Arc::clone(server.shared());
    let finishing = std::thread::spawn(move || log.persistence.log.finish());
    rig.await_sync();
    rig.disk.hold_syncs(false);
    finishing.join().expect("it does not panic").expect("the disk works");
    assert_eq!(a.line(), "+OK");
    server.stopper().stop();
    server.join().expect("it ends");
}

#[test]
fn a_change_of_the_policy_lets_everything_go() {
    let rig = Rig::new(2, |_| {});
    let mut a = rig.connect();
    rig.disk.hold_syncs(true);
    a.send("SET k 1");
    rig.assert_held(&a);
    let shared = Arc::clone(rig.server().shared());
    let changing = std::thread::spawn(move || {
        shared.persistence.log.policy(AppendFsync::EverySec, false, false);
    });
    rig.await_sync();
    rig.disk.hold_syncs(false);
    changing.join().expect("it does not panic");
    assert_eq!(a.line(), "+OK");
    assert_eq!(a.ask("SET k 2"), "+OK");
    let status = rig.server().shared().persistence.log.status();
    assert!(status.is_on && status.last_write.is_ok());
}
