//! Two nodes in one process, one log, and links over loopback: what was acknowledged is where the slots are, whatever happens.

use super::*;
use crate::cluster::errands::{self, Errand, Request};
use crate::cluster::local_log::LocalLog;
use crate::cluster::log::{Link, MeetError, Peer, ProposeError, Standing};
use crate::config::Config as ServerConfig;
use crate::persistence::disk::RealDisk;
use crate::testing::{START_MS, Server};
use std::cell::Cell;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{LocalSet, yield_now};
use towline_cluster::key_slot;
use towline_cluster_proto::{Announced, Change, MigrationEnd, Outcome};
use towline_sansio::Prng;

const SOURCE: usize = 0;
const TARGET: usize = 1;

fn id(byte: u8) -> NodeId {
    NodeId::from_bytes([byte; NodeId::BYTES])
}

/// A node's seat at the log that both share.
#[derive(Debug)]
struct Seat {
    log: Arc<LocalLog>,
    standing: watch::Sender<Standing>,
}

impl MetadataLog for Seat {
    fn propose(&self, change: Change) -> Answer<Result<Outcome, ProposeError>> {
        self.log.propose(change)
    }
    fn metadata(&self) -> watch::Receiver<Arc<Metadata>> {
        self.log.metadata()
    }
    fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }
    fn meet(&self, peer: Peer) -> Answer<Result<(), MeetError>> {
        self.log.meet(peer)
    }
    fn reset(&self, node: NodeId) -> Answer<Result<(), ProposeError>> {
        self.log.reset(node)
    }
    fn announce(&self, at: Announced) {
        self.log.announce(at);
    }
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

struct World {
    log: Arc<LocalLog>,
    nodes: Vec<Server>,
    managers: Vec<Rc<RefCell<Manager>>>,
    /// Bytes that a link carries towards the target before it breaks; for each link made, the next one.
    breaks: Rc<RefCell<Vec<u64>>>,
    dials: Rc<Cell<u32>>,
}

impl World {
    /// Node 1 owns all slots, node 2 none.
    async fn new(breaks: Vec<u64>) -> Self {
        let at = |port: u16| Announced {
            ip: "127.0.0.1".into(),
            port,
            bus_port: port + 1,
            ..Announced::default()
        };
        let log = Arc::new(LocalLog::new(id(9), id(1), id(101), at(7001)));
        log.apply(&Change::AddSlots { node: id(1), slots: vec![(0, 16_383)] });
        let join = Change::Join { node: id(2), shard: id(102), at: at(7002), slots: vec![], config_epoch: 2 };
        log.apply(&join);
        let mut world = Self {
            log,
            nodes: Vec::new(),
            managers: Vec::new(),
            breaks: Rc::new(RefCell::new(breaks)),
            dials: Rc::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for node in [id(1), id(2)] {
            let mut config = ServerConfig { workers: 1, ..ServerConfig::default() };
            config.cluster.is_enabled = true;
            let shared = Shared::new(config, Arc::new(RealDisk), "0".repeat(40), START_MS);
            let mut server = Server::with_shared(shared);
            // Streams are opened at the time of day.
            server.now_ms = crate::connection::unix_ms();
            let shared = Arc::clone(&server.local.shared);
            shared.persistence.loading.end(Ok(()));
            let standing = Standing { node, is_fresh: true, leader: Some(id(1)), term: 1 };
            let seat = Seat { log: Arc::clone(&world.log), standing: watch::Sender::new(standing) };
            let seat: Arc<dyn MetadataLog> = Arc::new(seat);
            shared.cluster.as_deref().unwrap().open(Arc::clone(&seat));
            let dial: Dial = Arc::new(move |_| {
                Box::pin(async move { TcpStream::connect(address).await.map_err(|error| error.to_string()) })
            });
            let manager = Rc::new(RefCell::new(Manager::new(&shared, &seat, dial)));
            let mut metadata = seat.metadata();
            let follower = Rc::clone(&manager);
            let step = move |metadata: &Metadata| {
                follower.borrow_mut().follow(metadata);
                shared.cluster.as_deref().unwrap().catch_up(&shared);
            };
            step(&metadata.borrow_and_update().clone());
            let ended = manager.borrow().ended();
            spawn_local(async move {
                loop {
                    tokio::select! {
                        changed = metadata.changed() => if changed.is_err() { return },
                        () = ended.notified() => {}
                    }
                    step(&metadata.borrow_and_update().clone());
                }
            });
            world.nodes.push(server);
            world.managers.push(manager);
        }
        let (target, breaks, dials) =
            (Rc::clone(&world.managers[TARGET]), Rc::clone(&world.breaks), Rc::clone(&world.dials));
        spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                dials.set(dials.get() + 1);
                let limit = breaks.borrow_mut().pop();
                let stream = match limit {
                    Some(limit) => breaking(stream, limit).await,
                    None => stream,
                };
                target.borrow().take(id(1), stream);
            }
        });
        world
    }

    /// As `CLUSTER MIGRATESLOTS` does.
    fn begin(&self, migration: u8, slots: Ranges) {
        self.nodes[SOURCE].local.shared.cluster.as_deref().unwrap().migrations.note_begun(id(migration));
        self.begin_before(migration, slots);
    }

    /// As an earlier process of the source did.
    fn begin_before(&self, migration: u8, slots: Ranges) {
        let (source, target, now_ms) = (id(1), id(2), START_MS);
        let begin = Change::BeginMigration { id: id(migration), source, target, slots, now_ms };
        assert_eq!(self.log.apply(&begin), Outcome::Done);
    }

    /// What works on a node's migrations after it was started again.
    fn restarted(&self, node: usize) -> Manager {
        let shared = &self.nodes[node].local.shared;
        shared.cluster.as_deref().unwrap().migrations.begun().clear();
        let seat = Arc::clone(shared.cluster.as_deref().unwrap().log().unwrap());
        let dial: Dial = Arc::new(|_| Box::pin(async { Err("nobody is dialled".into()) }));
        Manager::new(shared, &seat, dial)
    }

    fn end(&self, migration: u8) {
        let end = Proposal::End("a test".into()).into_change(id(migration), START_MS);
        assert_eq!(self.log.apply(&end), Outcome::Done);
    }

    fn state(&self, migration: u8) -> MigrationState {
        self.log.metadata().borrow().migrations()[&id(migration)].state.clone()
    }

    fn is_over(&self, migration: u8) -> bool {
        self.state(migration) != MigrationState::Active
    }

    /// As a client does it that follows redirects, and waits where it is made to wait.
    async fn line(&mut self, line: &str) -> String {
        let mut at = SOURCE;
        loop {
            let reply = self.nodes[at].line(line);
            match reply.as_str() {
                "(crowded)" => yield_now().await,
                moved if moved.starts_with("-MOVED") => {
                    at = if moved.ends_with("7001") { SOURCE } else { TARGET };
                    yield_now().await;
                }
                _ => return reply,
            }
        }
    }

    /// Waits until nothing is worked on any more.
    async fn settle(&self) {
        while self.managers.iter().any(|manager| !manager.borrow().running.borrow().is_empty()) {
            yield_now().await;
        }
    }

    /// Waits until the node counts so many keys: the last ones are freed, or shown, off the path.
    async fn until_keys(&mut self, node: usize, keys: usize) {
        let expected = format!(":{keys}");
        while self.nodes[node].line("DBSIZE") != expected {
            yield_now().await;
        }
    }
}

/// A connection that carries what comes by `stream`, and breaks after so many bytes of it.
async fn breaking(mut stream: TcpStream, limit: u64) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap());
    let (near, far) = tokio::join!(near, listener.accept());
    let (near, (mut far, _)) = (near.unwrap(), far.unwrap());
    spawn_local(async move {
        let (mut left, mut there, mut back) = (limit as usize, vec![0; 1000], vec![0; 1000]);
        loop {
            let most = there.len().min(left);
            tokio::select! {
                read = stream.read(&mut there[..most]) => match read {
                    Ok(read) if read > 0 => {
                        left -= read;
                        if far.write_all(&there[..read]).await.is_err() || left == 0 {
                            return;
                        }
                    }
                    _ => return,
                },
                read = far.read(&mut back) => match read {
                    Ok(read) if read > 0 => if stream.write_all(&back[..read]).await.is_err() { return },
                    _ => return,
                },
            }
        }
    });
    near
}

fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, test());
}

/// Puts a key into the slot, whoever owns it.
fn put(shared: &Shared, slot: Slot) {
    let (settings, mut changes) = (shared.config().settings(), Changes::new(0));
    let key = (0..).map(|n: u32| n.to_string()).find(|key| key_slot(key.as_bytes()) == slot).unwrap();
    let mut ks = Keyspace::hold(&shared.store, [slot], &settings, &mut changes, 0, 0);
    ks.load_string(key.as_bytes(), b"v", None, 0);
}

fn holds(shared: &Shared, slot: Slot) -> bool {
    shared.store.with_locked(slot, |locked| locked.len(0)) > 0
}

/// Writes while slots move until the migration is over; returns what each counter was last acknowledged to be.
async fn load(world: &mut World, migration: u8, rng: &mut Prng) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    while !world.is_over(migration) {
        for _ in 0..4 {
            let key = format!("n:{}", rng.below(50));
            let reply = world.line(&format!("INCR {key}")).await;
            let value: u64 = reply.strip_prefix(':').and_then(|text| text.parse().ok()).expect("a number");
            let before = counters.insert(key.clone(), value).unwrap_or(0);
            assert_eq!(value, before + 1, "{key} lost or doubled an increment");
        }
        yield_now().await;
    }
    counters
}

async fn check(world: &mut World, counters: &BTreeMap<String, u64>) {
    for (key, value) in counters {
        let text = value.to_string();
        let expected = format!("${} {text}", text.len());
        assert_eq!(world.line(&format!("GET {key}")).await, expected, "{key}");
    }
}

fn fill(server: &mut Server, keys: usize) {
    for n in 0..keys {
        server.line(&format!("SET k:{n} {n}"));
    }
    let fields: Vec<String> = (0..3000).map(|n| format!("f{n} v{n}")).collect();
    for chunk in fields.chunks(100) {
        server.line(&format!("HSET big {}", chunk.join(" ")));
    }
    server.line("SET due v PX 100000");
}

#[test]
fn slots_move_under_load_and_nothing_is_lost() {
    run(|| async {
        let mut world = World::new(vec![]).await;
        fill(&mut world.nodes[SOURCE], 2000);
        let began = std::time::Instant::now();
        world.begin(20, vec![(0, 16_383)]);
        let counters = load(&mut world, 20, &mut Prng::new(1)).await;
        assert_eq!(world.state(20), MigrationState::Done);
        check(&mut world, &counters).await;
        world.settle().await;
        world.until_keys(SOURCE, 0).await;
        world.until_keys(TARGET, 2002 + counters.len()).await;
        assert_eq!(world.nodes[TARGET].line("HLEN big"), ":3000");
        assert_eq!(world.nodes[TARGET].line("HGET big f2999"), "$5 v2999");
        assert_eq!(
            world.nodes[TARGET].line("EXPIRETIME due"),
            format!(":{}", (world.nodes[SOURCE].now_ms + 100_000 + 500) / 1000)
        );
        assert!(world.nodes[SOURCE].line("GET due").starts_with("-MOVED"));
        assert_eq!(world.dials.get(), 1);
        // It was handed over because little was left to send, not because that took too long.
        assert!(began.elapsed() < Config::default().follow_max, "{:?}", began.elapsed());
    });
}

#[test]
fn while_slots_move_the_target_shows_nothing_and_the_source_serves() {
    run(|| async {
        let mut world = World::new(vec![]).await;
        fill(&mut world.nodes[SOURCE], 500);
        let slot = key_slot(b"k:1");
        world.begin(20, vec![(slot, slot)]);
        let mut looks = 0;
        while !world.is_over(20) {
            looks += 1;
            assert_eq!(world.nodes[TARGET].line("DBSIZE"), ":0");
            assert!(world.nodes[TARGET].line("GET k:1").starts_with(&format!("-MOVED {slot} ")));
            assert_eq!(world.line("GET k:1").await, "$1 1");
            yield_now().await;
        }
        assert!(looks > 1);
        world.settle().await;
        assert_eq!(world.nodes[TARGET].line("GET k:1"), "$1 1");
        assert_eq!(world.nodes[SOURCE].line("GET k:2"), "$1 2", "other slots stay");
    });
}

#[test]
fn a_link_that_breaks_anywhere_is_made_again_or_the_source_keeps_all() {
    for seed in 0..6 {
        run(|| async move {
            let mut rng = Prng::new(seed);
            // Three breaks are more than the source takes.
            let breaks = (0..1 + seed % 3).map(|_| 1 + rng.below(60_000)).collect();
            let mut world = World::new(breaks).await;
            fill(&mut world.nodes[SOURCE], 1000);
            world.begin(20, vec![(0, 8000), (9000, 16_383)]);
            let counters = load(&mut world, 20, &mut rng).await;
            check(&mut world, &counters).await;
            world.settle().await;
            let total = 1002 + counters.len();
            let of = |world: &mut World, node: usize| -> usize {
                world.nodes[node].line("DBSIZE").trim_start_matches(':').parse().expect("a number")
            };
            while of(&mut world, SOURCE) + of(&mut world, TARGET) != total {
                yield_now().await;
            }
            let is_done = world.state(20) == MigrationState::Done;
            assert_eq!(is_done, of(&mut world, TARGET) > 0, "seed {seed}: {:?}", world.state(20));
            check(&mut world, &counters).await;
        });
    }
}

#[test]
fn an_operator_cancels_and_the_target_has_nothing() {
    run(|| async {
        let mut world = World::new(vec![]).await;
        fill(&mut world.nodes[SOURCE], 2000);
        world.begin(20, vec![(0, 16_383)]);
        while world.dials.get() == 0 {
            yield_now().await;
        }
        let end = Change::EndMigration {
            id: id(20),
            end: MigrationEnd::Cancelled,
            message: String::new(),
            now_ms: START_MS + 2,
        };
        assert_eq!(world.log.apply(&end), Outcome::Done);
        world.settle().await;
        assert_eq!(world.nodes[SOURCE].line("DBSIZE"), ":2002");
        assert_eq!(world.line("SET k:1 again").await, "+OK");
        world.until_keys(TARGET, 0).await;
        // And the same slots can move after that.
        world.begin(21, vec![(0, 16_383)]);
        let counters = load(&mut world, 21, &mut Prng::new(3)).await;
        check(&mut world, &counters).await;
        assert_eq!(world.state(21), MigrationState::Done);
    });
}

#[test]
fn what_a_crash_interrupted_is_ended_and_its_slots_are_parked_until_then() {
    run(|| async {
        let mut world = World::new(vec![]).await;
        fill(&mut world.nodes[SOURCE], 100);
        world.begin_before(20, vec![(0, 16_383)]);
        // From when the node knows of it.
        let shared = Arc::clone(&world.nodes[SOURCE].local.shared);
        shared.cluster.as_deref().unwrap().catch_up(&shared);
        assert_eq!(world.nodes[SOURCE].line("GET k:1"), "(crowded)");
        while !world.is_over(20) {
            yield_now().await;
        }
        assert!(matches!(world.state(20), MigrationState::Ended { end: MigrationEnd::Failed, .. }));
        world.settle().await;
        assert_eq!(world.line("GET k:1").await, "$1 1");
        world.until_keys(TARGET, 0).await;
    });
}

#[test]
fn a_flush_waits_for_what_is_changing_hands() {
    run(|| async {
        let mut world = World::new(vec![]).await;
        fill(&mut world.nodes[SOURCE], 10);
        world.managers[SOURCE].borrow().node.set_parked(&vec![(5, 5)], true);
        assert_eq!(world.nodes[SOURCE].line("FLUSHALL"), "(crowded)");
        assert_eq!(world.nodes[SOURCE].line("DBSIZE"), ":12");
        world.managers[SOURCE].borrow().node.set_parked(&vec![(5, 5)], false);
        assert_eq!(world.nodes[SOURCE].line("FLUSHALL"), "+OK");
        assert_eq!(world.nodes[SOURCE].line("DBSIZE"), ":0");
    });
}

#[test]
fn what_an_interrupted_import_left_is_hidden_before_anything_is_loaded() {
    run(|| async {
        let world = World::new(vec![]).await;
        world.begin_before(20, vec![(0, 16_383)]);
        let node = &world.nodes[TARGET].local.shared;
        let mut started = world.restarted(TARGET);
        started.follow(&world.log.metadata().borrow().clone());
        // Nothing else has run yet.
        assert!((0..16_384).all(|slot| node.store.is_hidden(slot)));
        let cluster = node.cluster.as_deref().unwrap();
        assert!((0..16_384).all(|slot| cluster.table.is_parked(slot)));
    });
}

#[test]
fn what_a_later_migration_brought_stays_when_an_earlier_one_ends_late() {
    run(|| async {
        let world = World::new(vec![]).await;
        world.begin_before(20, vec![(5, 5)]);
        let node = Arc::clone(&world.nodes[TARGET].local.shared);
        put(&node, 5);
        let mut started = world.restarted(TARGET);
        started.follow(&world.log.metadata().borrow().clone());
        // All at once, as a node hears of it that was down meanwhile.
        world.end(20);
        world.begin_before(21, vec![(5, 5)]);
        let commit = Proposal::Commit.into_change(id(21), START_MS);
        assert_eq!(world.log.apply(&commit), Outcome::Done);
        while !started.running.borrow().is_empty() {
            yield_now().await;
        }
        assert!(holds(&node, 5) && !node.store.is_hidden(5));
        assert!(!node.cluster.as_deref().unwrap().table.is_parked(5));
    });
}

#[test]
fn the_next_migration_of_a_slot_begins_when_the_last_one_has_ended_here() {
    run(|| async {
        let mut world = World::new(vec![]).await;
        fill(&mut world.nodes[SOURCE], 200);
        world.begin(20, vec![(0, 16_383)]);
        while world.dials.get() == 0 {
            yield_now().await;
        }
        world.end(20);
        world.begin(21, vec![(9, 9)]);
        let metadata = world.log.metadata().borrow().clone();
        for manager in &world.managers {
            manager.borrow_mut().follow(&metadata);
            let running: Vec<NodeId> = manager.borrow().running.borrow().keys().copied().collect();
            assert_eq!(running, [id(20)]);
        }
        while !world.is_over(21) {
            yield_now().await;
        }
        assert_eq!(world.state(21), MigrationState::Done);
    });
}

#[test]
fn what_was_not_begun_after_all_is_forgotten() {
    run(|| async {
        let world = World::new(vec![]).await;
        let node = Arc::clone(&world.nodes[SOURCE].local.shared);
        let migrations = &node.cluster.as_deref().unwrap().migrations;
        let begin = |number: u8, slots: Ranges| {
            migrations.note_begun(id(number));
            Change::BeginMigration { id: id(number), source: id(1), target: id(2), slots, now_ms: START_MS }
        };
        // Of two that cannot both be, the first is begun.
        let changes = vec![begin(30, vec![(0, 5)]), begin(31, vec![(5, 9)])];
        let log = node.cluster.as_deref().unwrap().log().unwrap().clone();
        let request = Request { errand: Errand::All(changes), waiter: None };
        errands::run(Arc::clone(&node), log, request).await;
        assert!(!migrations.is_interrupted(id(30)));
        assert!(migrations.is_interrupted(id(31)));
        while !world.is_over(30) {
            yield_now().await;
        }
        world.settle().await;
        assert!(migrations.begun().is_empty());
    });
}

/// Migrations that began and ended while the target or the source was down, in random order, and what it does with what it finds.
#[test]
fn at_its_start_a_node_drops_what_a_migration_left_and_nothing_else() {
    for seed in 0..6 {
        run(|| async move {
            let mut rng = Prng::new(seed);
            let world = World::new(vec![]).await;
            // Slot by slot the owner, and who has something that is left there, by the migrations.
            let (mut owners, mut leftovers) = ([1_u8; 8], [None; 8]);
            for number in 0..12 {
                let (slot, is_done) = (rng.below(8) as u16, rng.below(2) == 0);
                let owner = owners[usize::from(slot)];
                let other = 3 - owner;
                // One that is long ago says nothing of what is there today.
                let now_ms =
                    START_MS - if rng.below(4) == 0 { LEFTOVERS_MS + 1 } else { rng.below(LEFTOVERS_MS) };
                let (source, target, slots) = (id(owner), id(other), vec![(slot, slot)]);
                let id = id(40 + number);
                world.log.apply(&Change::BeginMigration { id, source, target, slots, now_ms });
                let end = match is_done {
                    true => Proposal::Commit,
                    false => Proposal::End("a test".into()),
                };
                assert_eq!(world.log.apply(&end.into_change(id, now_ms)), Outcome::Done);
                owners[usize::from(slot)] = if is_done { other } else { owner };
                let is_recent = now_ms >= START_MS - LEFTOVERS_MS;
                leftovers[usize::from(slot)] = is_recent.then_some(if is_done { owner } else { other });
            }
            // One slot is open: what is there is under way.
            let open = rng.below(8) as u16;
            let (owner, other) = (owners[usize::from(open)], 3 - owners[usize::from(open)]);
            world.log.apply(&Change::SetImporting { node: id(other), slot: open, from: id(owner) });
            leftovers[usize::from(open)] = None;
            for node in [SOURCE, TARGET] {
                let me = node as u8 + 1;
                let server = &world.nodes[node].local.shared;
                (0..8).for_each(|slot| put(server, slot));
                world.restarted(node).follow(&world.log.metadata().borrow().clone());
                let expected: Vec<bool> = (0..8).map(|slot| leftovers[slot] != Some(me)).collect();
                let found = || -> Vec<bool> { (0..8).map(|slot| holds(server, slot)).collect() };
                while found() != expected {
                    assert!(
                        found().iter().zip(&expected).all(|(has, keeps)| *has || !keeps),
                        "seed {seed}: {me}"
                    );
                    yield_now().await;
                }
            }
        });
    }
}
