//! Shared memory: engines of one host, in one process and in several.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use towline_transfer::shm::ShmTransport;
use towline_transfer::{
    Access, Engine, EngineConfig, Failure, MemoryRegion, Registered, Request, Segment, Status, SubmitError,
    Trust,
};

use crate::pair::{KEY, PATIENCE, loopback, pattern, register};

const LEN: usize = 1 << 20;

fn config(listen: SocketAddr, secret: &str) -> EngineConfig {
    let mut config = EngineConfig::new(Trust::key(KEY)).listen(listen);
    config.transports = vec![ShmTransport::new(Trust::key(secret)).unwrap()];
    config
}

fn engine() -> Engine {
    Engine::start(config(loopback(), KEY)).unwrap()
}

fn share(engine: &Engine, name: &str, access: Access) -> Registered {
    engine.register(name, &MemoryRegion::shared(LEN).unwrap(), access).unwrap()
}

fn open(engine: &Engine, name: &str) -> Segment {
    engine.open(name).wait_for(PATIENCE).unwrap()
}

fn status(segment: &Segment, request: Request) -> Status {
    segment.submit(&[request]).unwrap().wait_for(PATIENCE).unwrap().statuses[0]
}

#[test]
fn bytes_of_shared_regions_do_not_go_over_tcp_and_those_of_others_do() {
    let (here, there) = (engine(), engine());
    let (kv, private) =
        (share(&there, "kv", Access::ReadWrite), register(&there, "private", LEN, Access::ReadWrite));
    let local = register(&here, "scratch", LEN, Access::Local);
    let segment = open(&here, there.name());
    let (remote, by_tcp) = (segment.region("kv").unwrap(), segment.region("private").unwrap());
    let content = pattern(1, LEN);
    local.memory().write(0, &content).unwrap();
    assert_eq!(status(&segment, Request::write(&local, 0, &remote, 0, LEN as u64)), Status::Completed);
    assert!(kv.memory().to_vec(0, LEN).unwrap() == content);
    kv.memory().write(77, b"changed there").unwrap();
    assert_eq!(status(&segment, Request::read(&local, 5, &remote, 70, 100)), Status::Completed);
    assert_eq!(local.memory().to_vec(12, 13).unwrap(), b"changed there");
    let moved = |engine: &Engine| (engine.metrics().bytes_in, engine.metrics().bytes_out);
    assert_eq!((moved(&here), moved(&there)), ((100, LEN as u64), (0, 0)));
    assert_eq!(status(&segment, Request::write(&local, 0, &by_tcp, 0, 4096)), Status::Completed);
    assert!(private.memory().to_vec(0, 4096).unwrap() == local.memory().to_vec(0, 4096).unwrap());
    assert_eq!(moved(&there), (4096, 0));
}

#[test]
fn notifications_follow_the_bytes_of_shared_memory() {
    let (here, there) = (engine(), engine());
    let kv = share(&there, "kv", Access::ReadWrite);
    let local = register(&here, "scratch", LEN, Access::Local);
    let segment = open(&here, there.name());
    let remote = segment.region("kv").unwrap();
    local.memory().write(0, &pattern(2, LEN)).unwrap();
    // What waits for the region's grant is overtaken by what comes when it is there; from then on, batches end in order.
    assert_eq!(status(&segment, Request::read(&local, 0, &remote, 0, 1)), Status::Completed);
    local.memory().write(0, &pattern(2, 1)).unwrap();
    for number in 0..64_u64 {
        let at = number * 16_384;
        let request = Request::write(&local, at, &remote, at, 16_384);
        let _batch = segment.submit_and_notify(&[request], number.to_be_bytes()).unwrap();
    }
    for number in 0..64_usize {
        assert_eq!(there.wait_notification(PATIENCE).unwrap().payload, (number as u64).to_be_bytes());
        let at = number * 16_384;
        assert!(kv.memory().to_vec(at, 16_384).unwrap() == local.memory().to_vec(at, 16_384).unwrap());
    }
}

#[test]
fn who_accepts_a_link_uses_it_as_well() {
    let (here, there) = (engine(), engine());
    let mine = share(&here, "mine", Access::ReadWrite);
    let _segment = open(&here, there.name());
    let back = open(&there, here.name());
    let local = register(&there, "scratch", LEN, Access::Local);
    local.memory().write(0, &pattern(3, LEN)).unwrap();
    let remote = back.region("mine").unwrap();
    assert_eq!(status(&back, Request::write(&local, 0, &remote, 0, LEN as u64)), Status::Completed);
    assert!(mine.memory().to_vec(0, LEN).unwrap() == pattern(3, LEN));
    assert_eq!(here.metrics().bytes_in, 0);
}

#[test]
fn permissions_and_recalls_hold_in_shared_memory() {
    let (here, there) = (engine(), engine());
    let (model, kv) = (share(&there, "model", Access::Read), share(&there, "kv", Access::ReadWrite));
    let local = register(&here, "scratch", LEN, Access::Local);
    let segment = open(&here, there.name());
    let (readable, writable) = (segment.region("model").unwrap(), segment.region("kv").unwrap());
    assert_eq!(status(&segment, Request::read(&local, 0, &readable, 0, LEN as u64)), Status::Completed);
    let refused = segment.submit(&[Request::write(&local, 0, &readable, 0, 16)]).unwrap_err();
    assert_eq!(refused, SubmitError::ReadOnly { index: 0 });
    assert_eq!(status(&segment, Request::write(&local, 0, &writable, 0, 16)), Status::Completed);
    assert!(there.deregister(&kv) && there.deregister(&model));
    let gone = Status::Failed(Failure::RemoteAccess);
    assert_eq!(status(&segment, Request::write(&local, 0, &writable, 0, 16)), gone);
    assert_eq!(status(&segment, Request::read(&local, 0, &readable, 0, 16)), gone);
    assert_eq!(there.metrics().bytes_in, 0);
}

#[test]
fn memory_that_was_given_for_reading_is_written_over_tcp_only() {
    let (here, there) = (engine(), engine());
    let memory = MemoryRegion::shared(LEN).unwrap();
    there.register("reads", &memory, Access::Read).unwrap();
    there.register("writes", &memory, Access::ReadWrite).unwrap();
    let local = register(&here, "scratch", LEN, Access::Local);
    local.memory().write(0, b"by tcp").unwrap();
    let segment = open(&here, there.name());
    let (reads, writes) = (segment.region("reads").unwrap(), segment.region("writes").unwrap());
    assert_eq!(status(&segment, Request::read(&local, 100, &reads, 0, 16)), Status::Completed);
    assert_eq!(status(&segment, Request::write(&local, 0, &writes, 0, 6)), Status::Completed);
    assert_eq!((memory.to_vec(0, 6).unwrap(), there.metrics().bytes_in), (b"by tcp".to_vec(), 6));
}

#[test]
fn who_has_another_key_for_shared_memory_is_linked_without_it() {
    let here = Engine::start(config(loopback(), "not the secret of the others")).unwrap();
    let there = engine();
    let kv = share(&there, "kv", Access::ReadWrite);
    let local = register(&here, "scratch", LEN, Access::Local);
    local.memory().write(0, b"by tcp").unwrap();
    let segment = open(&here, there.name());
    let request = Request::write(&local, 0, &segment.region("kv").unwrap(), 0, 6);
    assert_eq!(status(&segment, request), Status::Completed);
    assert_eq!((kv.memory().to_vec(0, 6).unwrap(), there.metrics().bytes_in), (b"by tcp".to_vec(), 6));
}

#[test]
fn an_engine_without_the_transport_is_linked_without_it() {
    let (here, there) = (engine(), Engine::start(crate::pair::config()).unwrap());
    let kv = share(&there, "kv", Access::ReadWrite);
    let local = register(&here, "scratch", LEN, Access::Local);
    local.memory().write(0, b"by tcp").unwrap();
    let segment = open(&here, there.name());
    let request = Request::write(&local, 0, &segment.region("kv").unwrap(), 0, 6);
    assert_eq!(status(&segment, request), Status::Completed);
    assert_eq!(kv.memory().to_vec(0, 6).unwrap(), b"by tcp");
}

/// What a test tells the process that it starts: the test itself, which then plays the other part.
const PART: &str = "TOWLINE_TRANSFER_PART";

/// This test in another process, killed when dropped. It says a line when it is ready.
struct Other {
    process: Child,
    line: String,
}

impl Other {
    fn start(test: &str, part: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(PART, part)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find_map(|line| line.split_once("ready ").map(|(_, rest)| rest.to_owned())).unwrap();
        Self { process, line }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

const SERVER: &str = "server";

/// Until the parent is gone or done with us: it kills us before that, usually.
fn stay() {
    let _ = std::io::stdin().lines().count();
}

/// Serves a shared region full of one byte, always as the same node.
fn serve(fill: u8) {
    let engine = Engine::start(config(loopback(), KEY).name(SERVER)).unwrap();
    let kv = share(&engine, "kv", Access::ReadWrite);
    kv.memory().write(0, &vec![fill; LEN]).unwrap();
    println!("ready {}", engine.address().unwrap());
    stay();
}

#[test]
fn a_server_of_shared_memory_that_is_killed_and_comes_back_is_found_again() {
    if let Ok(part) = std::env::var(PART) {
        return serve(part.parse().unwrap());
    }
    let test = "shm::a_server_of_shared_memory_that_is_killed_and_comes_back_is_found_again";
    let here = engine();
    let local = register(&here, "scratch", LEN, Access::Local);
    let first = Other::start(test, "1");
    here.add_peer(SERVER, first.line.parse().unwrap()).unwrap();
    let segment = open(&here, SERVER);
    let kv = segment.region("kv").unwrap();
    assert_eq!(status(&segment, Request::read(&local, 0, &kv, 0, LEN as u64)), Status::Completed);
    assert!(local.memory().to_vec(0, LEN).unwrap() == vec![1; LEN]);
    // Killed while work is under way.
    let batches: Vec<_> =
        (0..64).map(|_| segment.submit(&[Request::write(&local, 0, &kv, 0, LEN as u64)]).unwrap()).collect();
    drop(first);
    let second = Other::start(test, "2");
    here.add_peer(SERVER, second.line.parse().unwrap()).unwrap();
    // What did not end before is not done in the other life.
    for batch in batches {
        let status = batch.wait_for(PATIENCE).unwrap().statuses[0];
        assert!(matches!(status, Status::Completed | Status::PeerRestarted), "{status:?}");
    }
    let again = open(&here, SERVER);
    let kv = again.region("kv").unwrap();
    assert_eq!(status(&again, Request::read(&local, 0, &kv, 0, LEN as u64)), Status::Completed);
    assert!(local.memory().to_vec(0, LEN).unwrap() == vec![2; LEN]);
    let before = here.metrics().bytes_out;
    assert_eq!(status(&again, Request::write(&local, 0, &kv, 0, 100)), Status::Completed);
    assert_eq!(here.metrics().bytes_out - before, 100);
}

/// Writes the region of somebody else, again and again.
fn write_on(name: &str) {
    let engine = engine();
    let local = register(&engine, "scratch", LEN, Access::Local);
    local.memory().write(0, &vec![9; LEN]).unwrap();
    let segment = open(&engine, name);
    let kv = segment.region("kv").unwrap();
    let write = || status(&segment, Request::write(&local, 0, &kv, 0, LEN as u64));
    assert_eq!(write(), Status::Completed);
    println!("ready {}", engine.metrics().bytes_out);
    while write() == Status::Completed {}
    stay();
}

#[test]
fn a_writer_that_is_killed_in_the_middle_holds_nobody_up() {
    if let Ok(part) = std::env::var(PART) {
        return write_on(&part);
    }
    let test = "shm::a_writer_that_is_killed_in_the_middle_holds_nobody_up";
    let there = engine();
    let kv = share(&there, "kv", Access::ReadWrite);
    for _ in 0..3 {
        let writer = Other::start(test, there.name());
        assert_eq!(writer.line, LEN.to_string());
        assert!(kv.memory().to_vec(0, LEN).unwrap() == vec![9; LEN]);
        drop(writer);
        kv.memory().write(0, &vec![0; LEN]).unwrap();
    }
    // While somebody is writing: when this returns, nobody is.
    let writer = Other::start(test, there.name());
    assert!(there.deregister(&kv));
    kv.memory().write(0, &vec![5; LEN]).unwrap();
    let again = there.register("kv", &MemoryRegion::shared(LEN).unwrap(), Access::ReadWrite).unwrap();
    assert!(kv.memory().to_vec(0, LEN).unwrap() == vec![5; LEN]);
    drop(writer);
    assert!(again.memory().to_vec(0, LEN).unwrap() == vec![0; LEN]);
    assert_eq!(there.metrics().bytes_in, 0);
}
