//! Cards on the simulated fabric, in real time, and engines on such cards.
//!
//! Owns a [`Verbs`] for tests. The fabric has copies of the registered memory; they are brought up to date before anything happens on
//! the fabric, and what arrived is brought back.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant as Monotonic};

use towline_sansio::{Instant, Prng};
use towline_transfer_proto::fabric::{
    self, CardId, Fabric, FabricConfig, Operation, RemoteAddress, RemoteKey, Status as FabricStatus,
};
use towline_transfer_proto::{Opcode, Psn, Qpn, QueuePair};

use crate::memory::MemoryRegion;
use crate::regions::{Access, Range};

use super::verbs::{Keys, NotPosted, RdmaError, Verbs, WorkDone, WorkRequest, WorkStatus};

struct Pinned {
    /// `None`: not for peers.
    key: Option<RemoteKey>,
    memory: MemoryRegion,
}

struct World {
    fabric: Fabric,
    start: Monotonic,
    memories: BTreeMap<(CardId, u64), Pinned>,
    reading: HashMap<(CardId, Qpn, u64), Range>,
    done: BTreeMap<CardId, VecDeque<WorkDone>>,
    stopped: BTreeSet<CardId>,
}

/// The network and all its cards.
#[derive(Clone)]
struct Network {
    world: Arc<(Mutex<World>, Condvar)>,
}

impl Network {
    fn new(config: FabricConfig) -> Self {
        let world = World {
            fabric: Fabric::new(config, Prng::new(1)),
            start: Monotonic::now(),
            memories: BTreeMap::new(),
            reading: HashMap::new(),
            done: BTreeMap::new(),
            stopped: BTreeSet::new(),
        };
        Self { world: Arc::new((Mutex::new(world), Condvar::new())) }
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.0.lock().unwrap()
    }

    fn tell(&self) {
        self.world.1.notify_all();
    }

    fn card(&self) -> FakeCard {
        FakeCard { id: self.lock().fabric.add_card(), network: self.clone(), is_full: false }
    }

    /// Waits until something is so.
    fn wait_until(&self, is_so: impl Fn(&World) -> bool) {
        let mut world = self.lock();
        while !is_so(&world) {
            world = self.world.1.wait(world).unwrap();
        }
    }
}

impl World {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Lets happen what is due. True if anybody has completions.
    fn run(&mut self) -> bool {
        let now = self.now();
        if self.fabric.next_timeout().is_some_and(|at| at <= now) {
            let before: Vec<Vec<u8>> = self
                .memories
                .values()
                .map(|pinned| pinned.memory.to_vec(0, pinned.memory.len()).unwrap())
                .collect();
            for (((card, _), pinned), bytes) in self.memories.iter().zip(&before) {
                if let Some(place) = pinned.key.and_then(|key| self.fabric.memory_mut(*card, key)) {
                    place.copy_from_slice(bytes);
                }
            }
            self.fabric.handle_timeout(now);
            for (((card, _), pinned), bytes) in self.memories.iter().zip(&before) {
                let after = pinned.key.and_then(|key| self.fabric.memory(*card, key));
                if let Some(after) = after.filter(|after| after != bytes) {
                    pinned.memory.write(0, after).unwrap();
                }
            }
        }
        while let Some((card, completion)) = self.fabric.poll() {
            let fabric::Completion { qpn, id, status, data } = completion;
            let reading = self.reading.remove(&(card, qpn, id));
            if let (FabricStatus::Done, Some(range)) = (status, reading) {
                range.memory().write(range.offset(), &data).unwrap();
            }
            let status = match status {
                FabricStatus::Done => WorkStatus::Done,
                FabricStatus::RetryExceeded => WorkStatus::Unanswered,
                FabricStatus::RemoteAccess => WorkStatus::RemoteAccess,
                FabricStatus::Flushed => WorkStatus::Flushed,
            };
            self.done.entry(card).or_default().push_back(WorkDone { qpn, id, status });
        }
        self.done.values().any(|done| !done.is_empty())
    }
}

/// One card.
struct FakeCard {
    id: CardId,
    network: Network,
    /// It takes no memory.
    is_full: bool,
}

impl std::fmt::Debug for FakeCard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeCard").field("id", &self.id).finish_non_exhaustive()
    }
}

fn refused(call: &'static str) -> RdmaError {
    RdmaError::Call { call, reason: "refused".to_owned() }
}

impl Verbs for FakeCard {
    fn create(&self, rail: u16, psn: Psn) -> Result<QueuePair, RdmaError> {
        Ok(self.network.lock().fabric.create(self.id, rail, psn))
    }

    fn connect(&self, own: &QueuePair, remote: &QueuePair) -> Result<(), RdmaError> {
        let mut world = self.network.lock();
        world.fabric.receive_from(self.id, own.qpn, remote).map_err(|_| refused("receive"))?;
        world.fabric.start_sending(self.id, own.qpn).map_err(|_| refused("send"))
    }

    fn destroy(&self, qpn: Qpn) {
        let mut world = self.network.lock();
        let _ = world.fabric.destroy(self.id, qpn);
        world.reading.retain(|(card, of, _), _| (*card, *of) != (self.id, qpn));
        self.network.tell();
    }

    fn register(&self, base: u64, memory: &MemoryRegion, access: Access) -> Result<Keys, RdmaError> {
        if self.is_full {
            return Err(refused("register"));
        }
        let mut world = self.network.lock();
        let access = match access {
            Access::Local => None,
            Access::Read => Some(fabric::Access::Read),
            Access::ReadWrite => Some(fabric::Access::ReadWrite),
        };
        let key = access.map(|access| world.fabric.register(self.id, vec![0; memory.len()], access));
        world.memories.insert((self.id, base), Pinned { key, memory: memory.clone() });
        Ok(Keys { local: 0, remote: key.map_or(0, |key| key.0) })
    }

    fn deregister(&self, base: u64) {
        let mut world = self.network.lock();
        if let Some(key) = world.memories.remove(&(self.id, base)).and_then(|pinned| pinned.key) {
            world.fabric.deregister(self.id, key);
        }
    }

    fn post(&self, qpn: Qpn, request: &WorkRequest<'_>) -> Result<(), NotPosted> {
        let mut world = self.network.lock();
        let (local, id) = (request.local, request.id);
        assert!(world.memories.contains_key(&(self.id, request.local_address - local.offset() as u64)));
        let key = RemoteKey(request.remote_key);
        // The card of the peer would do this: the region's first address is the base it was registered with.
        let base =
            world.memories.iter().find(|(_, pinned)| pinned.key == Some(key)).map(|((_, base), _)| *base);
        let address = RemoteAddress { key, offset: request.remote.wrapping_sub(base.unwrap_or(0)) };
        let length = local.len();
        let operation = match request.opcode {
            Opcode::Write => {
                Operation::Write { data: local.memory().to_vec(local.offset(), length).unwrap(), to: address }
            }
            Opcode::Read => {
                world.reading.insert((self.id, qpn, id), local.clone());
                Operation::Read { length: length as u64, from: address }
            }
        };
        let now = world.now();
        world.fabric.post(now, self.id, qpn, fabric::Work { id, operation }).map_err(|_| NotPosted)?;
        self.network.tell();
        Ok(())
    }

    fn wait(&self, done: &mut Vec<WorkDone>) -> bool {
        done.clear();
        let mut world = self.network.lock();
        while !world.stopped.contains(&self.id) {
            if world.run() {
                self.network.tell();
            }
            if let Some(own) = world.done.get_mut(&self.id).filter(|own| !own.is_empty()) {
                done.extend(own.drain(..));
                return true;
            }
            let pause = world.fabric.next_timeout().map(|at| at.since(world.now()));
            world = match pause {
                Some(pause) => self.network.world.1.wait_timeout(world, pause).unwrap().0,
                None => self.network.world.1.wait(world).unwrap(),
            };
        }
        false
    }

    fn stop(&self) {
        self.network.lock().stopped.insert(self.id);
        self.network.tell();
    }
}

mod tests {
    use super::*;
    use crate::rdma::RdmaTransport;
    use crate::{Engine, EngineConfig, Failure, Registered, Request, Segment, Status, Trust};

    const PATIENCE: Duration = Duration::from_secs(60);
    const LEN: usize = 64 * 1024;

    /// A card that repeats for a minute: a busy machine breaks nothing.
    const PATIENT: FabricConfig = FabricConfig { retry_count: 1_000, ..FabricConfig::USUAL };

    fn engine(card: FakeCard) -> Engine {
        let mut config =
            EngineConfig::new(Trust::key("a secret for these tests")).listen(([127, 0, 0, 1], 0).into());
        config.transfer.slice = 4096;
        Engine::start(config.transport(RdmaTransport::new(card).unwrap())).unwrap()
    }

    fn register(engine: &Engine, name: &str, access: Access) -> Registered {
        engine.register(name, &MemoryRegion::allocate(LEN).unwrap(), access).unwrap()
    }

    fn status(segment: &Segment, request: Request) -> Status {
        segment.submit(&[request]).unwrap().wait_for(PATIENCE).unwrap().statuses[0]
    }

    fn pattern() -> Vec<u8> {
        (0..LEN).map(|at| (at * 7 + at / 256) as u8).collect()
    }

    #[test]
    fn bytes_go_over_the_fabric_in_many_slices_both_ways() {
        let network = Network::new(PATIENT);
        let (here, there) = (engine(network.card()), engine(network.card()));
        let kv = register(&there, "kv", Access::ReadWrite);
        let local = register(&here, "scratch", Access::Local);
        local.memory().write(0, &pattern()).unwrap();
        let segment = here.open(there.name()).wait_for(PATIENCE).unwrap();
        let remote = segment.region("kv").unwrap();
        let batches: Vec<_> = (0..8)
            .map(|_| segment.submit(&[Request::write(&local, 0, &remote, 0, LEN as u64)]).unwrap())
            .collect();
        batches.iter().for_each(|batch| assert!(batch.wait_for(PATIENCE).unwrap().is_complete()));
        assert!(kv.memory().to_vec(0, LEN).unwrap() == pattern());
        kv.memory().write(100, b"changed there").unwrap();
        assert_eq!(status(&segment, Request::read(&local, 7, &remote, 100, 13)), Status::Completed);
        assert_eq!(local.memory().to_vec(7, 13).unwrap(), b"changed there");
        let bytes = (here.metrics().bytes_out, here.metrics().bytes_in, there.metrics().bytes_in);
        assert_eq!(bytes, (8 * LEN as u64, 13, 0));
        assert!(network.lock().fabric.counters().bytes >= 8 * LEN as u64);
    }

    #[test]
    fn the_card_refuses_what_was_taken_back_and_the_link_is_made_anew() {
        let network = Network::new(PATIENT);
        let (here, there) = (engine(network.card()), engine(network.card()));
        let (kv, other) =
            (register(&there, "kv", Access::ReadWrite), register(&there, "other", Access::ReadWrite));
        let local = register(&here, "scratch", Access::Local);
        local.memory().write(0, &pattern()).unwrap();
        let segment = here.open(there.name()).wait_for(PATIENCE).unwrap();
        let (gone, left) = (segment.region("kv").unwrap(), segment.region("other").unwrap());
        assert_eq!(status(&segment, Request::write(&local, 0, &gone, 0, 64)), Status::Completed);
        assert!(there.deregister(&kv));
        let refused = status(&segment, Request::write(&local, 0, &gone, 0, 4096));
        assert_eq!(refused, Status::Failed(Failure::RemoteAccess));
        assert_eq!(status(&segment, Request::write(&local, 0, &left, 0, LEN as u64)), Status::Completed);
        assert!(other.memory().to_vec(0, LEN).unwrap() == pattern());
        assert_eq!(there.metrics().bytes_in, 0);
    }

    #[test]
    fn a_path_that_breaks_costs_a_link_and_no_bytes() {
        let network =
            Network::new(FabricConfig { ack_timeout: Duration::from_millis(20), ..FabricConfig::USUAL });
        let (one, other) = (network.card(), network.card());
        let (from, to) = (one.id, other.id);
        let (here, there) = (engine(one), engine(other));
        let kv = register(&there, "kv", Access::ReadWrite);
        let local = register(&here, "scratch", Access::Local);
        local.memory().write(0, &pattern()).unwrap();
        let segment = here.open(there.name()).wait_for(PATIENCE).unwrap();
        let remote = segment.region("kv").unwrap();
        network.lock().fabric.set_cut(from, to, true);
        let before = network.lock().fabric.counters().retry_exceeded;
        let batch = segment.submit(&[Request::write(&local, 0, &remote, 0, LEN as u64)]).unwrap();
        network.wait_until(|world| world.fabric.counters().retry_exceeded > before);
        network.lock().fabric.set_cut(from, to, false);
        assert!(batch.wait_for(PATIENCE).unwrap().is_complete());
        assert!(kv.memory().to_vec(0, LEN).unwrap() == pattern());
        assert_eq!(there.metrics().bytes_in, 0);
    }

    #[test]
    fn memory_that_the_card_does_not_take_goes_over_tcp() {
        let network = Network::new(PATIENT);
        let full = FakeCard { is_full: true, ..network.card() };
        let (here, there) = (engine(network.card()), engine(full));
        let kv = register(&there, "kv", Access::ReadWrite);
        let local = register(&here, "scratch", Access::Local);
        local.memory().write(0, &pattern()).unwrap();
        let segment = here.open(there.name()).wait_for(PATIENCE).unwrap();
        let request = Request::write(&local, 0, &segment.region("kv").unwrap(), 0, LEN as u64);
        assert_eq!(status(&segment, request), Status::Completed);
        assert!(kv.memory().to_vec(0, LEN).unwrap() == pattern());
        assert_eq!(there.metrics().bytes_in, LEN as u64);
    }
}
