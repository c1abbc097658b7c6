//! Processes with this crate's machines, a network between them, cards on the simulated fabric.
//!
//! Owns: virtual time, dials and messages with their delays and losses, the making of queue pairs, process lives. Does
//! **not** own a decision of the protocol: it does what [`Output`] says, as a driver would, and nothing else.
//!
//! Each link that comes up is tried: both ends post an empty write on its first queue pair as soon as they may. A link whose
//! write fails is reported to its process as a failed queue pair, and counted.

use std::collections::BTreeSet;
use std::time::Duration;

use towline_sansio::{Instant, Prng};

use crate::connect::{ConnectConfig, Connections, Output, Role};
use crate::fabric::{CardId, Fabric, FabricConfig, Operation, RemoteAddress, RemoteKey, Status, Work};
use crate::guards::Guards;
use crate::identity::{ConnId, Incarnation, LinkId, LinkKey, NodeId, Process, Psn, Qpn, QueuePair};
use crate::wire::{Frame, Message, encode};

use super::event::{Event, EventQueue, Happening, Index, Seen, words};
use super::report::Trace;
use super::scenario::Service;

/// One way over the network.
const DELAY: Duration = Duration::from_micros(25);

#[derive(Debug, Clone, Copy)]
struct End {
    process: Index,
    life: u32,
    conn: Option<ConnId>,
}

/// A connection for handshakes; end 0 dialled.
#[derive(Debug)]
struct Pipe {
    ends: [End; 2],
    is_open: bool,
    /// When the last thing that was sent in each direction arrives: nothing overtakes.
    busy_until: [Instant; 2],
}

#[derive(Debug, Default)]
struct LinkRecord {
    queue_pairs: Vec<Qpn>,
    key: Option<LinkKey>,
    hello_at: Instant,
    /// For a target: whom to receive from when its work is done, with first packet numbers.
    work: Option<(Vec<QueuePair>, Vec<Psn>)>,
}

#[derive(Debug)]
struct Machine {
    node: NodeId,
    config: ConnectConfig,
    guards: Guards,
    connections: Connections,
    life: u32,
    is_up: bool,
    wake: Option<Instant>,
    card: CardId,
    service: Service,
    slow: u32,
    /// By connection number less one.
    pipes: Vec<Option<(usize, usize)>>,
    /// By link number less one.
    links: Vec<LinkRecord>,
    prng: Prng,
}

/// The network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FleetConfig {
    pub(crate) seed: u64,
    /// Dials that vanish, in percent.
    pub(crate) loss_percent: u32,
    /// Each message takes up to so much longer, drawn anew.
    pub(crate) delay_spread: Duration,
    pub(crate) fabric: FabricConfig,
    /// Remember what every process was told.
    pub(crate) is_logging: bool,
}

impl FleetConfig {
    pub(crate) fn usual(seed: u64) -> Self {
        Self {
            seed,
            loss_percent: 0,
            delay_spread: Duration::ZERO,
            fabric: FabricConfig::USUAL,
            is_logging: true,
        }
    }
}

/// The fleet. See the module's documentation.
pub(crate) struct Fleet {
    config: FleetConfig,
    pub(crate) now: Instant,
    prng: Prng,
    events: EventQueue,
    machines: Vec<Machine>,
    by_node: std::collections::BTreeMap<NodeId, Index>,
    pipes: Vec<Pipe>,
    cut: BTreeSet<(Index, Index)>,
    pub(crate) fabric: Fabric,
    pub(crate) seen: Vec<(Instant, Seen)>,
    /// From HELLO to READY at initiators.
    pub(crate) round_trips: Vec<Duration>,
    /// Work that was done for an initiator that had gone.
    pub(crate) wasted: u64,
    pub(crate) broken: u64,
    pub(crate) wakeups: u64,
    trace: Trace,
}

impl Fleet {
    pub(crate) fn new(config: FleetConfig) -> Self {
        let mut prng = Prng::new(config.seed);
        let fabric = Fabric::new(config.fabric, Prng::new(prng.next_u64()));
        Self {
            config,
            now: Instant::ZERO,
            prng,
            events: EventQueue::default(),
            machines: Vec::new(),
            by_node: std::collections::BTreeMap::new(),
            pipes: Vec::new(),
            cut: BTreeSet::new(),
            fabric,
            seen: Vec::new(),
            round_trips: Vec::new(),
            wasted: 0,
            broken: 0,
            wakeups: 0,
            trace: Trace::new(),
        }
    }

    /// Makes room for so many processes: they are large, and would be moved as their number grows.
    pub(crate) fn reserve(&mut self, processes: usize) {
        self.machines.reserve_exact(processes);
    }

    /// One more process. Its name is its number and one, so that later ones go first where HELLOs cross.
    pub(crate) fn add(&mut self, config: ConnectConfig, service: Service, guards: Guards) -> Index {
        let index = self.machines.len();
        let node = node(index);
        let mut prng = Prng::new(self.prng.next_u64());
        let connections = connections(node, 0, config, guards, &mut prng);
        let card = self.fabric.add_card();
        self.by_node.insert(node, index);
        self.machines.push(Machine {
            node,
            config,
            guards,
            connections,
            life: 0,
            is_up: true,
            wake: None,
            card,
            service,
            slow: 1,
            pipes: Vec::new(),
            links: Vec::new(),
            prng,
        });
        index
    }

    pub(crate) fn connections(&self, at: Index) -> &Connections {
        &self.machines[at].connections
    }

    pub(crate) fn hash(&self) -> u64 {
        self.trace.hash()
    }

    pub(crate) fn happen_at(&mut self, at: Duration, happening: Happening) {
        self.schedule(Instant::ZERO + at, Event::Happen(happening));
    }

    /// Runs until then, or until nothing is left to happen.
    pub(crate) fn run_until(&mut self, until: Instant) {
        while self.next_at().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    fn next_at(&self) -> Option<Instant> {
        [self.events.next_at(), self.fabric.next_timeout()].into_iter().flatten().min()
    }

    /// The next event. False if there is none. What the fabric does at the same time comes after it.
    pub(crate) fn step(&mut self) -> bool {
        let event_at = self.events.next_at();
        if let Some(at) = self.fabric.next_timeout()
            && event_at.is_none_or(|event_at| at < event_at)
        {
            self.now = self.now.max(at);
            self.trace.add([self.now.nanos(), 0, 0, 0]);
            self.fabric.handle_timeout(self.now);
            self.settle_fabric();
            return true;
        }
        let Some((at, event)) = self.events.pop() else { return false };
        self.now = at;
        self.trace.add(words(at, &event));
        match event {
            Event::Happen(happening) => self.on_happening(happening),
            Event::Wake { at, life } => self.on_wake(at, life),
            Event::Arrive { pipe } => self.on_arrive(pipe),
            Event::Opened { pipe } => {
                if let Some((at, conn)) = self.live_end(pipe, 0) {
                    self.tell(at, |connections, now| connections.dialed(now, conn));
                }
            }
            Event::Bytes { pipe, end, bytes } => self.on_bytes(pipe, end, &bytes),
            Event::Closed { pipe, end } => {
                if let Some((at, conn)) = self.live_end(pipe, end) {
                    self.pipes[pipe].is_open = false;
                    self.tell(at, |connections, now| connections.closed(now, conn));
                }
            }
            Event::Made { at, life, link } => self.on_made(at, life, link),
            Event::Activated { at, life, link, is_ok } => {
                if self.machines[at].life == life && self.machines[at].is_up {
                    let result = if is_ok { Ok(()) } else { Err(crate::NoQueuePairs) };
                    self.tell(at, |connections, now| connections.activated(now, link, result));
                }
            }
        }
        self.settle_fabric();
        true
    }

    fn on_happening(&mut self, happening: Happening) {
        match happening {
            // A process that is away needs nothing, and one that is full is told so: that is what the tests look at.
            Happening::Want { at, key, queue_pairs } => {
                if self.machines[at].is_up {
                    self.tell(at, |connections, now| {
                        let _ = connections.want(now, key, queue_pairs);
                    });
                }
            }
            Happening::Unwant { at, key } => self.tell(at, |connections, now| connections.unwant(now, key)),
            Happening::Crash(at) => self.crash(at),
            Happening::Start(at) => self.start(at),
            Happening::Leave(at) => {
                self.tell(at, Connections::leave);
                self.machines[at].is_up = false;
            }
            Happening::Slow { at, factor } => self.machines[at].slow = factor,
            Happening::LinkFails { at, key } => {
                if let Some(link) = self.machines[at].connections.link(key) {
                    self.tell(at, |connections, now| connections.failed(now, link));
                }
            }
            Happening::SilentClient { to } => {
                let nobody = End { process: to, life: u32::MAX, conn: None };
                let pipe = self.open_pipe(nobody, to);
                self.schedule(self.now + DELAY, Event::Arrive { pipe });
            }
            Happening::Cut { from, to, is_cut } => {
                if is_cut {
                    self.cut.insert((from, to));
                } else {
                    self.cut.remove(&(from, to));
                }
                let (from, to) = (self.machines[from].card, self.machines[to].card);
                self.fabric.set_cut(from, to, is_cut);
            }
        }
    }

    /// The process and its memory are gone. Its peers' sockets say nothing: the host is gone, too.
    fn crash(&mut self, at: Index) {
        let machine = &mut self.machines[at];
        machine.is_up = false;
        machine.life += 1;
        machine.wake = None;
        machine.pipes.clear();
        machine.links.clear();
        let card = machine.card;
        self.fabric.reset(card);
        self.fabric.set_down(card, true);
    }

    fn start(&mut self, at: Index) {
        let life = self.machines[at].life + 1;
        let machine = &mut self.machines[at];
        machine.life = life;
        machine.is_up = true;
        machine.wake = None;
        machine.pipes.clear();
        machine.links.clear();
        machine.connections =
            connections(machine.node, u64::from(life), machine.config, machine.guards, &mut machine.prng);
        let card = machine.card;
        self.fabric.set_down(card, false);
    }

    fn on_wake(&mut self, at: Index, life: u32) {
        let machine = &mut self.machines[at];
        // Of an earlier life, or one that came before this was set.
        if machine.life != life || machine.wake != Some(self.now) {
            return;
        }
        machine.wake = None;
        if machine.connections.next_timeout().is_some_and(|next| next <= self.now) {
            self.wakeups += 1;
            self.tell(at, Connections::handle_timeout);
        } else {
            // What it was set for is done, and the next is later: a driver would have moved its timer.
            self.drain(at);
        }
    }

    fn on_arrive(&mut self, pipe: usize) {
        let end = self.pipes[pipe].ends[1];
        let to = end.process;
        if !self.machines[to].is_up || self.machines[to].life != end.life {
            return;
        }
        let accepted = self.machines[to].connections.accepted(self.now);
        match accepted {
            Ok(conn) => {
                self.pipes[pipe].ends[1].conn = Some(conn);
                self.bind(to, conn, pipe, 1);
                self.transmit(pipe, 0, Event::Opened { pipe });
            }
            Err(_) => self.transmit(pipe, 0, Event::Closed { pipe, end: 0 }),
        }
        self.drain(to);
    }

    fn on_bytes(&mut self, pipe: usize, end: usize, bytes: &[u8]) {
        let Some((at, conn)) = self.live_end(pipe, end) else { return };
        let frame = Frame::parse(bytes).expect("invariant: whole frames are sent");
        let message = frame.expect("invariant: whole frames are sent").message;
        self.tell(at, |connections, now| connections.received(now, conn, message));
    }

    fn on_made(&mut self, at: Index, life: u32, link: LinkId) {
        if self.machines[at].life != life || !self.machines[at].is_up {
            return;
        }
        let card = self.machines[at].card;
        let record = self.record(at, link);
        let Some((remote, psns)) = record.work.take() else { return };
        let mut made = Vec::with_capacity(remote.len());
        for (remote, psn) in remote.iter().zip(psns) {
            let own = self.fabric.create(card, remote.rail, psn);
            self.fabric.receive_from(card, own.qpn, remote).expect("invariant: a new queue pair");
            made.push(own);
        }
        self.record(at, link).queue_pairs = made.iter().map(|own| own.qpn).collect();
        let before = self.machines[at].connections.counters().served;
        self.tell(at, |connections, now| connections.made(now, link, Ok(made)));
        self.wasted += u64::from(self.machines[at].connections.counters().served == before);
    }

    /// Gives a process an input and does what it asks for.
    fn tell(&mut self, at: Index, input: impl FnOnce(&mut Connections, Instant)) {
        let now = self.now;
        input(&mut self.machines[at].connections, now);
        self.drain(at);
    }

    fn drain(&mut self, at: Index) {
        while let Some(output) = self.machines[at].connections.poll() {
            self.perform(at, output);
        }
        // A timer that is set too early is moved when it fires: that is cheaper than setting it at every step.
        let machine = &mut self.machines[at];
        let Some(next) = machine.connections.next_timeout() else { return };
        if machine.wake.is_none_or(|wake| wake > next) {
            let (life, next) = (machine.life, next.max(self.now));
            machine.wake = Some(next);
            self.schedule(next, Event::Wake { at, life });
        }
    }

    fn perform(&mut self, at: Index, output: Output) {
        match output {
            Output::Dial { conn, node } => self.dial(at, conn, node),
            Output::Send { conn, message } => self.send(at, conn, &message),
            Output::Close { conn } => {
                if let Some((pipe, end)) = self.pipe_of(at, conn) {
                    self.unbind(at, conn);
                    self.transmit(pipe, 1 - end, Event::Closed { pipe, end: 1 - end });
                }
            }
            Output::Offer { link, key, psns } => self.offer(at, link, key, &psns),
            Output::Serve { link, key, remote, psns, .. } => self.serve(at, link, key, remote, psns),
            Output::Activate { link, remote } => self.activate(at, link, &remote),
            Output::Retire { link } => {
                let card = self.machines[at].card;
                let record = self.record(at, link);
                record.key = None;
                for qpn in std::mem::take(&mut record.queue_pairs) {
                    // It is ours until here.
                    let _ = self.fabric.destroy(card, qpn);
                }
            }
            Output::Ready { link, key, role, .. } => {
                if role == Role::Initiator {
                    let hello_at = self.record(at, link).hello_at;
                    self.round_trips.push(self.now.since(hello_at));
                }
                self.try_link(at, link);
                self.see(Seen::Ready { at, key, role });
            }
            Output::Down { key, cause, .. } => self.see(Seen::Down { at, key, cause }),
        }
    }

    fn see(&mut self, seen: Seen) {
        if self.config.is_logging {
            self.seen.push((self.now, seen));
        }
    }

    fn dial(&mut self, at: Index, conn: ConnId, to: NodeId) {
        let life = self.machines[at].life;
        let Some(to) = self.by_node.get(&to).copied() else { return };
        let pipe = self.open_pipe(End { process: at, life, conn: Some(conn) }, to);
        self.bind(at, conn, pipe, 0);
        let is_lost =
            self.config.loss_percent > 0 && self.prng.below(100) < u64::from(self.config.loss_percent);
        if !is_lost {
            self.transmit(pipe, 1, Event::Arrive { pipe });
        }
    }

    fn open_pipe(&mut self, from: End, to: Index) -> usize {
        let end = End { process: to, life: self.machines[to].life, conn: None };
        self.pipes.push(Pipe { ends: [from, end], is_open: true, busy_until: [Instant::ZERO; 2] });
        self.pipes.len() - 1
    }

    fn send(&mut self, at: Index, conn: ConnId, message: &Message) {
        let Some((pipe, end)) = self.pipe_of(at, conn) else { return };
        let mut bytes = Vec::with_capacity(256);
        encode(message, &mut bytes);
        self.transmit(pipe, 1 - end, Event::Bytes { pipe, end: 1 - end, bytes });
    }

    /// Lets something arrive at an end of a pipe, unless the way is cut.
    fn transmit(&mut self, pipe: usize, to_end: usize, event: Event) {
        let ends = self.pipes[pipe].ends;
        if self.cut.contains(&(ends[1 - to_end].process, ends[to_end].process)) {
            return;
        }
        let spread = u64::try_from(self.config.delay_spread.as_nanos()).unwrap_or(u64::MAX);
        let extra = if spread == 0 { 0 } else { self.prng.below(spread) };
        let at = (self.now + DELAY + Duration::from_nanos(extra)).max(self.pipes[pipe].busy_until[to_end]);
        self.pipes[pipe].busy_until[to_end] = at;
        self.schedule(at, event);
    }

    /// The process and connection at an end, if both still are what they were.
    fn live_end(&self, pipe: usize, end: usize) -> Option<(Index, ConnId)> {
        let End { process, life, conn } = self.pipes[pipe].ends[end];
        let conn = conn?;
        let machine = &self.machines[process];
        let is_live =
            machine.is_up && machine.life == life && self.pipe_of(process, conn) == Some((pipe, end));
        is_live.then_some((process, conn))
    }

    fn bind(&mut self, at: Index, conn: ConnId, pipe: usize, end: usize) {
        let slot = usize::try_from(conn.0).expect("invariant: connections are counted") - 1;
        let pipes = &mut self.machines[at].pipes;
        if pipes.len() <= slot {
            pipes.resize(slot + 1, None);
        }
        pipes[slot] = Some((pipe, end));
    }

    fn unbind(&mut self, at: Index, conn: ConnId) {
        let slot = usize::try_from(conn.0).expect("invariant: connections are counted") - 1;
        if let Some(entry) = self.machines[at].pipes.get_mut(slot) {
            *entry = None;
        }
    }

    fn pipe_of(&self, at: Index, conn: ConnId) -> Option<(usize, usize)> {
        let slot = usize::try_from(conn.0).ok()?.checked_sub(1)?;
        self.machines[at].pipes.get(slot).copied().flatten()
    }

    fn record(&mut self, at: Index, link: LinkId) -> &mut LinkRecord {
        let slot = usize::try_from(link.0).expect("invariant: links are counted") - 1;
        let links = &mut self.machines[at].links;
        if links.len() <= slot {
            links.resize_with(slot + 1, LinkRecord::default);
        }
        &mut links[slot]
    }

    fn offer(&mut self, at: Index, link: LinkId, key: LinkKey, psns: &[Psn]) {
        let (card, now) = (self.machines[at].card, self.now);
        let made: Vec<QueuePair> =
            (0_u16..).zip(psns).map(|(rail, psn)| self.fabric.create(card, rail, *psn)).collect();
        let record = self.record(at, link);
        record.key = Some(key);
        record.hello_at = now;
        record.queue_pairs = made.iter().map(|own| own.qpn).collect();
        self.machines[at].connections.made(now, link, Ok(made));
    }

    /// The work of a target: a fixed part for the handshake and a part for each queue pair. One of each is the service time.
    fn serve(&mut self, at: Index, link: LinkId, key: LinkKey, remote: Vec<QueuePair>, psns: Vec<Psn>) {
        let snapshot = self.machines[at].connections.queue_length();
        let machine = &self.machines[at];
        let queue_pairs = u32::try_from(remote.len()).unwrap_or(u32::MAX);
        let work = machine.service.work(snapshot as usize) * machine.slow;
        let work = (work * super::FIXED_PARTS + work * super::QUEUE_PAIR_PARTS * queue_pairs)
            / (super::FIXED_PARTS + super::QUEUE_PAIR_PARTS);
        let life = machine.life;
        let record = self.record(at, link);
        record.key = Some(key);
        record.work = Some((remote, psns));
        self.schedule(self.now + work, Event::Made { at, life, link });
    }

    fn activate(&mut self, at: Index, link: LinkId, remote: &[QueuePair]) {
        let (card, life) = (self.machines[at].card, self.machines[at].life);
        let own = self.record(at, link).queue_pairs.clone();
        let mut is_ok = true;
        for (qpn, remote) in own.iter().zip(remote) {
            is_ok &= self.fabric.receive_from(card, *qpn, remote).is_ok();
        }
        for qpn in own {
            is_ok &= self.fabric.start_sending(card, qpn).is_ok();
        }
        self.schedule(self.now, Event::Activated { at, life, link, is_ok });
    }

    fn try_link(&mut self, at: Index, link: LinkId) {
        let card = self.machines[at].card;
        let Some(qpn) = self.record(at, link).queue_pairs.first().copied() else { return };
        let to = RemoteAddress { key: RemoteKey(0), offset: 0 };
        let work = Work { id: link.0, operation: Operation::Write { data: Vec::new(), to } };
        if self.fabric.post(self.now, card, qpn, work).is_err() {
            self.broken += 1;
        }
    }

    /// Posts an empty write on a lane's link, if there is one: whether the far end is there shows within the cards' window.
    pub(crate) fn use_link(&mut self, at: Index, key: LinkKey) {
        if let Some(link) = self.machines[at].connections.link(key) {
            self.try_link(at, link);
            self.settle_fabric();
        }
    }

    fn settle_fabric(&mut self) {
        while let Some((card, completion)) = self.fabric.poll() {
            // Cards are given out in the order of the processes.
            let at = card.0 as usize;
            let link = LinkId(completion.id);
            let key = self.record(at, link).key;
            if let (Some(key), Status::RetryExceeded | Status::RemoteAccess) = (key, completion.status) {
                self.broken += 1;
                self.see(Seen::Broken { at, key });
                self.tell(at, |connections, now| connections.failed(now, link));
            }
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events.push(at, event);
    }
}

/// The name of a process of the fleet.
pub(crate) fn node(index: Index) -> NodeId {
    NodeId(index as u128 + 1)
}

fn connections(
    node: NodeId,
    life: u64,
    config: ConnectConfig,
    guards: Guards,
    prng: &mut Prng,
) -> Connections {
    let me = Process { node, incarnation: Incarnation(life) };
    let connections = Connections::new(me, config, Prng::new(prng.next_u64()));
    connections.expect("invariant: drills have sound numbers").with_guards(guards)
}
