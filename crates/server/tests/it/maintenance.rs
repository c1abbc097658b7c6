//! Notices and drains on sockets, through the handle that programs use.

use crate::running::Running;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use towline_server::{
    DrainError, DrainState, DrainStatus, EndpointType, Maintenance, Notice, Scope, SlotMove, Successor,
};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(10);
/// The window of a drain that a test waits for.
const WINDOW: Duration = Duration::from_millis(300);

struct Conn(TcpStream);

impl Conn {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut conn = Self(stream);
        conn.send("PING");
        conn.expect("+PONG\r\n");
        conn
    }

    /// A connection that speaks RESP3 and wants to be told.
    fn told(address: SocketAddr, endpoint_type: &str) -> Self {
        let mut conn = Self::open(address);
        conn.send("HELLO 3");
        conn.read_until("$7\r\nmodules\r\n*0\r\n");
        conn.send(&format!("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type {endpoint_type}"));
        conn.expect("+OK\r\n");
        conn
    }

    fn send(&mut self, line: &str) {
        self.0.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    /// Reads exactly this.
    fn expect(&mut self, text: &str) {
        let mut bytes = vec![0; text.len()];
        self.0.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), text);
    }

    fn read_until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end.as_bytes()) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        String::from_utf8(bytes).unwrap()
    }

    /// What comes until the server closes, in an orderly manner.
    fn rest(mut self) -> String {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn start() -> (Running, SocketAddr, Maintenance) {
    let (running, port) = Running::start(&["--port", "{port}"]);
    let maintenance = running.server().maintenance();
    (running, local(port), maintenance)
}

/// The drain's state once it is over. `conn` is one that stays: each look waits for an answer to it.
fn wait_over(maintenance: &Maintenance, seq: u64, conn: &mut Conn) -> DrainStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        conn.send("PING");
        conn.expect("+PONG\r\n");
        let status = maintenance.drains().into_iter().find(|status| status.seq == seq).unwrap();
        if status.state == DrainState::Over {
            return status;
        }
        assert!(Instant::now() < deadline, "{status:?}");
    }
}

fn named(host: &str, port: u16) -> Option<Successor> {
    Some(Successor::new(host, port))
}

#[test]
fn every_notice_has_its_frame_byte_for_byte() {
    let (_running, address, maintenance) = start();
    let mut conn = Conn::told(address, "internal-ip");
    let shards = || vec!["2".to_owned(), "4".to_owned()];
    let moved = |destination: &str, slots: &str| SlotMove {
        source: "10.0.0.1:6379".into(),
        destination: destination.into(),
        slots: slots.into(),
    };
    let (window, starts_in) = (Duration::from_secs(15), Duration::from_secs(2));
    let cases = [
        (
            Notice::Moving { window, successor: named("203.0.113.7", 12000) },
            ">4 $6 MOVING :# :15 $17 203.0.113.7:12000 ",
        ),
        (Notice::Moving { window, successor: named("::1", 6379) }, ">4 $6 MOVING :# :15 $10 [::1]:6379 "),
        (
            Notice::Moving { window, successor: named("db.test", 6379) },
            ">4 $6 MOVING :# :15 $12 db.test:6379 ",
        ),
        (Notice::Moving { window, successor: None }, ">4 $6 MOVING :# :15 _ "),
        (Notice::Migrating { starts_in, shards: shards() }, ">4 $9 MIGRATING :# :2 $10 [\"2\",_\"4\"] "),
        (Notice::Migrated { shards: shards() }, ">3 $8 MIGRATED :# $10 [\"2\",_\"4\"] "),
        (
            Notice::FailingOver { starts_in, shards: vec!["2".into()] },
            ">4 $12 FAILING_OVER :# :2 $5 [\"2\"] ",
        ),
        (Notice::FailedOver { shards: vec!["2".into()] }, ">3 $11 FAILED_OVER :# $5 [\"2\"] "),
        (
            Notice::Smigrating { slots: "123,456,5000-7000".into() },
            ">3 $10 SMIGRATING :# $17 123,456,5000-7000 ",
        ),
        (
            Notice::Smigrated {
                moves: vec![moved("10.0.0.2:6379", "123,456"), moved("10.0.0.3:6379", "5000-7000")],
            },
            ">3 $9 SMIGRATED :# *2 *3 $13 10.0.0.1:6379 $13 10.0.0.2:6379 $7 123,456 \
             *3 $13 10.0.0.1:6379 $13 10.0.0.3:6379 $9 5000-7000 ",
        ),
    ];
    let mut last = 0;
    for (notice, frame) in cases {
        let seq = maintenance.announce(Scope::All, notice);
        assert!(seq > last);
        last = seq;
        conn.expect(&frame.replace(' ', "\r\n").replace(",_", ", ").replace('#', &seq.to_string()));
    }
}

#[test]
fn a_drain_closes_those_that_were_there_and_no_other() {
    let (running, address, maintenance) = start();
    let other = running.server().listen(local(0)).unwrap();
    let (told, mut deaf) = (Conn::told(address, "internal-ip"), Conn::open(address));
    let (mut elsewhere, mut leaves) = (Conn::told(other, "none"), Some(Conn::told(address, "none")));
    let window = Duration::from_secs(2);
    let seq = maintenance.drain(Scope::Local(address), window, named("127.0.0.2", address.port())).unwrap();
    leaves.take().unwrap().read_until("_\r\n");
    let mut later = Conn::told_late(address, &format!(">4\r\n$6\r\nMOVING\r\n:{seq}\r\n:2\r\n_\r\n"));
    deaf.send("SET k v");
    deaf.expect("+OK\r\n");
    let target = format!("127.0.0.2:{}", address.port());
    assert_eq!(
        told.rest(),
        format!(">4\r\n$6\r\nMOVING\r\n:{seq}\r\n:2\r\n${}\r\n{target}\r\n", target.len())
    );
    assert_eq!(deaf.rest(), "");
    for conn in [&mut later, &mut elsewhere] {
        conn.send("GET k");
        conn.expect("$1\r\nv\r\n");
    }
    let status = wait_over(&maintenance, seq, &mut elsewhere);
    assert_eq!((status.connections, status.told, status.left, status.closed), (3, 2, 1, 2));
    assert_eq!(maintenance.connections(Scope::All).len(), 2);
}

impl Conn {
    /// A connection that opts in and is told this right behind the reply.
    fn told_late(address: SocketAddr, frames: &str) -> Self {
        let mut conn = Self::open(address);
        conn.send("HELLO 3");
        conn.read_until("$7\r\nmodules\r\n*0\r\n");
        conn.send("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none\r\nPING");
        conn.expect(&format!("+OK\r\n{frames}+PONG\r\n"));
        conn
    }
}

#[test]
fn endpoints_come_and_go_while_the_server_runs() {
    let (running, address, maintenance) = start();
    let server = running.server();
    let added = server.listen(local(0)).unwrap();
    let mut conn = Conn::told(added, "external-fqdn");
    let seen = maintenance.connections(Scope::Local(added));
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].local, seen[0].peer), (Some(added), conn.0.local_addr().ok()));
    assert_eq!((seen[0].is_notified, seen[0].endpoint_type), (true, Some(EndpointType::ExternalFqdn)));
    assert!(
        server.listen(added).unwrap_err().to_string().starts_with(&format!("cannot listen on {added}: "))
    );
    assert!(server.stop_listening(added) && !server.stop_listening(added));
    assert!(TcpStream::connect(added).is_err());
    conn.send("PING");
    conn.expect("+PONG\r\n");
    assert_eq!(server.listen(added).unwrap(), added);
    Conn::open(added);
    assert!(server.stop_listening(address));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn one_drain_per_scope_and_a_bounded_number_of_them() {
    let (_running, address, maintenance) = start();
    let conn = Conn::told(address, "none");
    let first = maintenance.drain(Scope::All, Duration::from_secs(60), None).unwrap();
    let second = maintenance.drain(Scope::All, WINDOW, None).unwrap();
    assert!(second > first);
    assert_eq!(
        conn.rest(),
        format!(
            ">4\r\n$6\r\nMOVING\r\n:{first}\r\n:60\r\n_\r\n>4\r\n$6\r\nMOVING\r\n:{second}\r\n:1\r\n_\r\n"
        )
    );
    let status = wait_over(&maintenance, second, &mut Conn::open(address));
    assert_eq!((status.connections, status.closed), (1, 1));
    for window in [Duration::from_millis(99), Duration::from_secs(3601)] {
        assert_eq!(maintenance.drain(Scope::All, window, None), Err(DrainError::Window));
    }
    let drain = |port| maintenance.drain(Scope::Local(local(port)), Duration::from_secs(60), None);
    let begun: Vec<u64> = (1..=64).map(|port| drain(port).unwrap()).collect();
    assert_eq!(drain(65), Err(DrainError::TooMany { drains_max: 64 }));
    assert!(drain(64).is_ok(), "in place of one that runs");
    assert!(maintenance.cancel(begun[0]) && !maintenance.cancel(begun[0]));
    assert!(drain(65).is_ok());
}

#[test]
fn close_is_a_fault_without_warning() {
    let (_running, address, maintenance) = start();
    let conns: Vec<Conn> = (0..3).map(|_| Conn::told(address, "none")).collect();
    assert_eq!(maintenance.close(Scope::Local(address)), 3);
    conns.into_iter().for_each(|conn| assert_eq!(conn.rest(), ""));
}

#[test]
fn the_switch_is_the_parameter() {
    let (_running, address, maintenance) = start();
    let mut conn = Conn::told(address, "none");
    maintenance.set_enabled(false);
    conn.send("CONFIG GET maint-notifications");
    conn.expect("%1\r\n$19\r\nmaint-notifications\r\n$2\r\nno\r\n");
    conn.send("CLIENT MAINT_NOTIFICATIONS ON");
    assert!(conn.read_until("\r\n").starts_with("-ERR notifications about maintenance are turned off"));
    maintenance.announce(Scope::All, Notice::Migrated { shards: Vec::new() });
    conn.send("CONFIG SET maint-notifications yes");
    conn.expect("+OK\r\n");
    let seq = maintenance.announce(Scope::All, Notice::Migrated { shards: Vec::new() });
    conn.expect(&format!(">3\r\n$8\r\nMIGRATED\r\n:{seq}\r\n$2\r\n[]\r\n"));
}
