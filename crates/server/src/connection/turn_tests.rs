//! Turns of connections that always have more to do, on one worker. What was executed in which order is read from a list that
//! the commands themselves write, so no test looks at a clock.

use super::{Desk, READ_BYTES, TURN_BYTES, serve};
use crate::session::Session;
use crate::stream::Stream;
use crate::testing::Server;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use tokio::task::{LocalSet, spawn_local, yield_now};

/// Connections that have more than a turn's worth to do.
const FLOODING: usize = 8;
/// Bytes that each of them has sent before the worker begins. The system's default buffer of a socket takes them.
const SENT_BYTES: usize = 2 * TURN_BYTES + READ_BYTES / 4;

/// One worker and a connection that asks it.
struct Worker {
    desk: Rc<RefCell<Desk>>,
    server: Server,
}

impl Worker {
    fn new() -> Self {
        let server = Server::new();
        let local = crate::execute::Local::new(0, server.local.shared.clone(), 1);
        Self { desk: Rc::new(RefCell::new(Desk::new(local))), server }
    }

    /// A connection; the other end does not block.
    fn open(&self) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let stream = Stream::Unix(tokio::net::UnixStream::from_std(theirs).unwrap());
        let session: Session = self.server.second();
        spawn_local(serve(stream, session, Rc::clone(&self.desk)));
        ours
    }

    /// What was executed so far, in order.
    fn log(&mut self) -> Vec<u8> {
        let reply = self.server.run_bytes(&[b"LRANGE", b"log", b"0", b"-1"]);
        let names =
            reply.split(|&byte| byte == b'\n').filter(|line| line.len() == 2 && line[0].is_ascii_lowercase());
        names.map(|line| line[0]).collect()
    }

    fn executed(&mut self) -> usize {
        self.server.line("LLEN log").trim_start_matches(':').parse().unwrap()
    }
}

/// What the connection called `name` sends to be put in the log once.
fn command(name: u8) -> Vec<u8> {
    format!("RPUSH log {}\r\n", name as char).into_bytes()
}

fn flooding() -> impl Iterator<Item = u8> {
    b'a'..b'a' + FLOODING as u8
}

/// Runs `test` where connections are served.
fn on_worker<F: Future<Output = ()>>(test: impl FnOnce(Worker) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, test(Worker::new()));
}

/// Opens the flooding connections and sends all that they have, `prefix` first. Returns them and the number of commands.
fn flood(worker: &Worker, prefix: &[u8]) -> (Vec<UnixStream>, usize) {
    let mut sent = 0;
    let open = flooding().map(|name| {
        let mut bytes = prefix.to_vec();
        while bytes.len() < SENT_BYTES {
            bytes.extend_from_slice(&command(name));
            sent += 1;
        }
        let mut stream = worker.open();
        stream.write_all(&bytes).unwrap();
        stream
    });
    (open.collect(), sent)
}

/// The log as stretches of one connection each: its name, and the number of its commands.
fn stretches(log: &[u8]) -> Vec<(u8, usize)> {
    log.chunk_by(|a, b| a == b).map(|stretch| (stretch[0], stretch.len())).collect()
}

/// Panics unless everyone had at most one turn more than anybody else who was not done. A connection's last turn of a round
/// and its first of the next may follow one another: rounds go to and fro.
fn assert_fair(log: &[u8]) {
    let turn_commands = TURN_BYTES / command(b'a').len() + 1;
    let mut left = log.iter().fold(BTreeMap::<u8, usize>::new(), |mut left, &name| {
        *left.entry(name).or_default() += 1;
        left
    });
    // For each pair: stretches of the first since the last one of the second.
    let mut since = BTreeMap::<(u8, u8), usize>::new();
    for (at, (name, commands)) in stretches(log).into_iter().enumerate() {
        assert!(commands <= 2 * turn_commands, "stretch {at}: {commands} commands of {}", name as char);
        *left.get_mut(&name).unwrap() -= commands;
        for other in flooding().filter(|&other| other != name) {
            let turns = since.entry((name, other)).or_default();
            *turns += 1;
            let may = if left[&other] == 0 { usize::MAX } else { 2 };
            assert!(*turns <= may, "{} had {turns} turns, {} none", name as char, other as char);
            since.insert((other, name), 0);
        }
    }
}

#[test]
fn connections_that_always_have_more_take_turns() {
    on_worker(|mut worker| async move {
        let (_open, sent) = flood(&worker, b"");
        while worker.executed() < sent {
            yield_now().await;
        }
        let log = worker.log();
        assert_eq!(log.len(), sent);
        assert!(stretches(&log).len() >= 2 * FLOODING, "{:?}", stretches(&log));
        assert_fair(&log);
    });
}

#[test]
fn who_comes_while_others_flood_waits_for_one_turn_of_each() {
    on_worker(|mut worker| async move {
        let mut late = worker.open();
        let (_open, sent) = flood(&worker, b"");
        let mut begun_at = None;
        while worker.executed() < sent + usize::from(begun_at.is_some()) {
            if worker.executed() > 0 && begun_at.is_none() {
                late.write_all(&command(b'z')).unwrap();
                begun_at = Some(worker.executed());
            }
            yield_now().await;
        }
        let log = worker.log();
        let begun_at = begun_at.expect("it came after the first round");
        let waited = log.iter().position(|&name| name == b'z').unwrap() - begun_at;
        let stretches = stretches(&log[begun_at..begun_at + waited]);
        assert!(begun_at + waited < sent, "it came last");
        assert!(stretches.len() <= FLOODING, "it waited for {stretches:?}");
    });
}

#[test]
fn what_was_read_during_a_wait_is_executed_in_turns() {
    on_worker(|mut worker| async move {
        let (_open, sent) = flood(&worker, b"BLPOP gate 0\r\n");
        let is_read = |worker: &Worker| {
            let clients = worker.server.local.shared.clients.all();
            let read = clients.iter().map(|client| client.bytes_in.load(Ordering::Relaxed));
            read.filter(|&bytes| bytes >= SENT_BYTES as u64).count() == FLOODING
        };
        while !is_read(&worker) {
            yield_now().await;
        }
        assert_eq!(worker.executed(), 0);
        let mut gate = worker.open();
        gate.write_all(&b"RPUSH gate 1\r\n".repeat(FLOODING)).unwrap();
        while worker.executed() < sent {
            yield_now().await;
        }
        assert_fair(&worker.log());
    });
}

#[test]
fn slow_commands_end_a_turn_by_their_time() {
    const COMMANDS: u64 = 400;
    on_worker(|mut worker| async move {
        let members: Vec<String> = (0..200).map(|member| member.to_string()).collect();
        worker.server.line(&format!("SADD set {}", members.join(" ")));
        let sort = towline_spec::lookup(b"sort").unwrap();
        let mut stream = worker.open();
        stream.write_all("SORT set\r\n".repeat(COMMANDS as usize).as_bytes()).unwrap();
        let (mut executed, mut turns) = (0, 0);
        while executed < COMMANDS {
            yield_now().await;
            let now = worker.server.local.shared.stats.command(sort).calls;
            turns += usize::from(now > executed);
            executed = now;
        }
        // All of it is a small part of what one turn may read, and takes a multiple of what one may take.
        assert!(turns > 1, "one turn took all");
    });
}
