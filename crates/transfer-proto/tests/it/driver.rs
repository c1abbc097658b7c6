//! A driver as an engine would have one, on the simulated fabric: it does what the machines say and decides nothing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use towline_sansio::{Instant, Prng};
use towline_transfer_proto::fabric::{
    Access, CardId, Fabric, FabricConfig, Operation, RemoteAddress, RemoteKey, Status, Work,
};
use towline_transfer_proto::wire::Message;
use towline_transfer_proto::{
    BatchId, ConnId, ConnectConfig, Connections, Delivery, Event, Inbox, InboxConfig, Incarnation, Lane,
    LinkId, LinkKey, NodeId, Notification, Opcode, Outbox, OutboxConfig, Output, Post, Process, Psn, Qpn,
    QueuePair, Request, SliceId, SubmitError, TaskId, TransferConfig, Transfers, WireEnd,
};

pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;
const DELAY: Duration = Duration::from_micros(50);

pub(crate) fn node(at: usize) -> NodeId {
    NodeId(at as u128 + 1)
}

fn lane(to: usize) -> LinkKey {
    LinkKey { node: node(to), lane: Lane(0) }
}

struct Host {
    connections: Connections,
    transfers: Transfers,
    outbox: Outbox,
    inbox: Inbox,
    card: CardId,
    memory: RemoteKey,
    local: Vec<u8>,
    links: BTreeMap<LinkId, Qpn>,
    posts: BTreeMap<SliceId, Post>,
    conns: BTreeMap<ConnId, usize>,
    life: u32,
    is_up: bool,
}

enum Parcel {
    Dial,
    Opened,
    Say(Message),
    Closed,
    Notify(Notification),
    Acknowledge(u64),
}

struct Pipe {
    ends: [Option<ConnId>; 2],
    dialler: usize,
    lives: [u32; 2],
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) events: Vec<Event>,
    /// The receiver's life with each.
    pub(crate) notified: Vec<(u32, Vec<u8>)>,
    fabric: Fabric,
    processes: Vec<Host>,
    pipes: Vec<Pipe>,
    /// Due time, receiver, pipe. Delays are equal, so the order of sending is that of arriving.
    parcels: VecDeque<(Instant, usize, usize, Parcel)>,
    is_cut: bool,
    prng: Prng,
    bytes: usize,
}

impl World {
    pub(crate) fn new(seed: u64, bytes: usize) -> Self {
        let mut prng = Prng::new(seed);
        let config = FabricConfig { losses_per_million: 5_000, reuses_numbers: true, ..FabricConfig::USUAL };
        let mut fabric = Fabric::new(config, Prng::new(prng.next_u64()));
        let processes = [A, B].map(|at| {
            let card = fabric.add_card();
            let memory = fabric.register(card, vec![0; bytes], Access::ReadWrite);
            process(at, 1, card, memory, bytes, &mut prng)
        });
        Self {
            now: Instant::ZERO,
            events: Vec::new(),
            notified: Vec::new(),
            fabric,
            processes: processes.into(),
            pipes: Vec::new(),
            parcels: VecDeque::new(),
            is_cut: false,
            prng,
            bytes,
        }
    }

    pub(crate) fn life(&self, at: usize) -> u32 {
        self.processes[at].life
    }

    pub(crate) fn is_up(&self, at: usize) -> bool {
        self.processes[at].is_up
    }

    pub(crate) fn memory(&self, at: usize) -> &[u8] {
        let Host { card, memory, .. } = self.processes[at];
        self.fabric.memory(card, memory).unwrap()
    }

    pub(crate) fn local(&mut self, at: usize) -> &mut [u8] {
        &mut self.processes[at].local
    }

    pub(crate) fn submit(
        &mut self,
        at: usize,
        requests: &[Request],
        notify: Vec<u8>,
    ) -> Result<BatchId, SubmitError> {
        let process = &mut self.processes[at];
        let length = notify.len();
        // Backpressure: without room the batch has no notification.
        let notify = process.outbox.reserve(length).ok().map(|()| (requests[0].peer, notify));
        let batch = process.transfers.submit(self.now, requests, notify);
        self.settle();
        batch
    }

    pub(crate) fn cancel(&mut self, at: usize, task: TaskId) {
        self.processes[at].transfers.cancel(self.now, task);
        self.settle();
    }

    pub(crate) fn free(&mut self, at: usize, batch: BatchId) {
        self.processes[at].transfers.free(batch).unwrap();
    }

    pub(crate) fn crash(&mut self, at: usize) {
        let process = &mut self.processes[at];
        process.is_up = false;
        process.life += 1;
        self.fabric.reset(process.card);
        self.fabric.set_down(process.card, true);
    }

    pub(crate) fn start(&mut self, at: usize) {
        if self.processes[at].is_up {
            return;
        }
        let (card, life) = (self.processes[at].card, self.processes[at].life);
        self.fabric.set_down(card, false);
        let memory = self.fabric.register(card, vec![0; self.bytes], Access::ReadWrite);
        self.processes[at] = process(at, life, card, memory, self.bytes, &mut self.prng);
    }

    pub(crate) fn cut(&mut self, is_cut: bool) {
        self.is_cut = is_cut;
        let [a, b] = [A, B].map(|at| self.processes[at].card);
        self.fabric.set_cut(a, b, is_cut);
        self.fabric.set_cut(b, a, is_cut);
    }

    pub(crate) fn fail_a_link(&mut self, at: usize) {
        let process = &mut self.processes[at];
        if let (Some(link), true) = (process.connections.link(lane(1 - at)), process.is_up) {
            process.connections.failed(self.now, link);
        }
        self.settle();
    }

    /// Lets so much time pass.
    pub(crate) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        self.settle();
        while let Some(at) = self.next_at().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.fabric.handle_timeout(self.now);
            while self.parcels.front().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, to, pipe, parcel) = self.parcels.pop_front().unwrap();
                self.arrive(to, pipe, parcel);
            }
            for process in self.processes.iter_mut().filter(|process| process.is_up) {
                process.connections.handle_timeout(self.now);
                process.transfers.handle_timeout(self.now);
            }
            self.settle();
        }
        self.now = until;
    }

    fn next_at(&self) -> Option<Instant> {
        let up = self.processes.iter().filter(|process| process.is_up);
        let timers = up.flat_map(|process| {
            [process.connections.next_timeout(), process.transfers.next_timeout(self.now)]
        });
        let parcel = self.parcels.front().map(|(at, ..)| *at);
        timers.chain([parcel, self.fabric.next_timeout()]).flatten().min()
    }

    /// Does what everybody asks for, until nobody asks for anything.
    fn settle(&mut self) {
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            while let Some((card, completion)) = self.fabric.poll() {
                is_busy = true;
                let at = if card == self.processes[A].card { A } else { B };
                self.complete(at, completion);
            }
            for at in [A, B] {
                while let Some(output) = self.processes[at].connections.poll() {
                    is_busy = true;
                    self.perform(at, output);
                }
                while let Some(event) = self.processes[at].transfers.poll_event() {
                    is_busy = true;
                    self.hear(at, event);
                }
                while let Some(post) = self.processes[at].transfers.poll_post(self.now) {
                    is_busy = true;
                    self.post(at, post);
                }
            }
        }
    }

    fn hear(&mut self, at: usize, event: Event) {
        let process = &mut self.processes[at];
        match &event {
            Event::Want { .. } => process.connections.want(self.now, lane(1 - at), 1).unwrap(),
            Event::Unwant { .. } => process.connections.unwant(self.now, lane(1 - at)),
            Event::Flush { .. } => {
                if let Some(link) = process.connections.link(lane(1 - at)) {
                    process.connections.failed(self.now, link);
                }
            }
            Event::Notify { payload, .. } => {
                process.outbox.push(payload.clone());
                self.notify(at);
            }
            Event::BatchDone { is_complete: false, .. } => process.outbox.release(8),
            Event::Ended { .. } | Event::Drained { .. } | Event::BatchDone { .. } => {}
        }
        if at == A {
            self.events.push(event);
        }
    }

    /// Notifications have a lane of their own; here it is as good as the link.
    fn notify(&mut self, at: usize) {
        while self.processes[at].connections.link(lane(1 - at)).is_some()
            && let Some(notification) = self.processes[at].outbox.poll()
        {
            self.send(1 - at, usize::MAX, Parcel::Notify(notification));
        }
    }

    fn post(&mut self, at: usize, post: Post) {
        let to = RemoteAddress { key: self.processes[1 - at].memory, offset: post.remote };
        let process = &mut self.processes[at];
        let range = post.local as usize..(post.local + post.length) as usize;
        let operation = match post.opcode {
            Opcode::Write => Operation::Write { data: process.local[range].to_vec(), to },
            Opcode::Read => Operation::Read { length: post.length, from: to },
        };
        process.posts.insert(post.slice, post);
        let work = Work { id: post.slice.to_bits(), operation };
        let qpn = process.links.get(&post.link).copied();
        let card = process.card;
        let is_posted = qpn.is_some_and(|qpn| self.fabric.post(self.now, card, qpn, work).is_ok());
        if !is_posted {
            let process = &mut self.processes[at];
            process.posts.remove(&post.slice);
            process.transfers.completed(self.now, post.slice, WireEnd::Flushed);
        }
    }

    fn complete(&mut self, at: usize, completion: towline_transfer_proto::fabric::Completion) {
        let process = &mut self.processes[at];
        let slice = SliceId::from_bits(completion.id);
        let Some(post) = process.posts.remove(&slice) else { return };
        let end = match completion.status {
            Status::Done => WireEnd::Done,
            Status::RetryExceeded => WireEnd::Unanswered,
            Status::RemoteAccess => WireEnd::RemoteAccess,
            Status::Flushed => WireEnd::Flushed,
        };
        if end == WireEnd::Done && post.opcode == Opcode::Read {
            process.local[post.local as usize..(post.local + post.length) as usize]
                .copy_from_slice(&completion.data);
        }
        // The card gave the queue pair up with this one: first the link is over, then its slices are back.
        if matches!(end, WireEnd::Unanswered | WireEnd::RemoteAccess) {
            process.transfers.link_down(node(1 - at), post.link);
            process.connections.failed(self.now, post.link);
        }
        assert!(process.transfers.completed(self.now, slice, end));
    }

    fn perform(&mut self, at: usize, output: Output) {
        let card = self.processes[at].card;
        match output {
            Output::Dial { conn, .. } => {
                let lives = [A, B].map(|at| self.processes[at].life);
                let mut ends = [None; 2];
                ends[at] = Some(conn);
                self.pipes.push(Pipe { ends, dialler: at, lives });
                let pipe = self.pipes.len() - 1;
                self.processes[at].conns.insert(conn, pipe);
                self.send(1 - at, pipe, Parcel::Dial);
            }
            Output::Send { conn, message } => {
                let pipe = self.processes[at].conns[&conn];
                self.send(1 - at, pipe, Parcel::Say(message));
            }
            Output::Close { conn } => {
                if let Some(pipe) = self.processes[at].conns.remove(&conn) {
                    self.send(1 - at, pipe, Parcel::Closed);
                }
            }
            Output::Offer { link, psns, .. } => {
                let made = self.make(at, link, psns[0]);
                self.processes[at].connections.made(self.now, link, Ok(vec![made]));
            }
            Output::Serve { link, psns, remote, .. } => {
                let made = self.make(at, link, psns[0]);
                self.fabric.receive_from(card, made.qpn, &remote[0]).unwrap();
                self.processes[at].connections.made(self.now, link, Ok(vec![made]));
            }
            Output::Activate { link, remote } => {
                let qpn = self.processes[at].links[&link];
                if let Some(remote) = remote.first() {
                    self.fabric.receive_from(card, qpn, remote).unwrap();
                }
                self.fabric.start_sending(card, qpn).unwrap();
                self.processes[at].connections.activated(self.now, link, Ok(()));
            }
            Output::Retire { link } => {
                // Before its slices come back flushed, so that none is posted to it again.
                self.processes[at].transfers.link_down(node(1 - at), link);
                if let Some(qpn) = self.processes[at].links.remove(&link) {
                    self.fabric.destroy(card, qpn).unwrap();
                }
            }
            Output::Ready { link, process, .. } => {
                self.processes[at].transfers.link_up(node(1 - at), link);
                self.processes[at].outbox.link_up(process.incarnation);
                self.notify(at);
            }
            Output::Down { .. } => {}
        }
    }

    fn make(&mut self, at: usize, link: LinkId, psn: Psn) -> QueuePair {
        let made = self.fabric.create(self.processes[at].card, 0, psn);
        self.processes[at].links.insert(link, made.qpn);
        made
    }

    fn send(&mut self, to: usize, pipe: usize, parcel: Parcel) {
        if !self.is_cut {
            self.parcels.push_back((self.now + DELAY, to, pipe, parcel));
        }
    }

    fn arrive(&mut self, to: usize, pipe: usize, parcel: Parcel) {
        if !self.processes[to].is_up {
            return;
        }
        let from = 1 - to;
        match parcel {
            Parcel::Notify(notification) => {
                let (life, sender) = (self.processes[to].life, self.processes[from].connections.me());
                let number = notification.number;
                let delivery = self.processes[to].inbox.received(sender, notification);
                while let Some((_, payload)) = self.processes[to].inbox.take() {
                    self.notified.push((life, payload));
                }
                match delivery {
                    Delivery::Taken => self.send(from, life as usize, Parcel::Acknowledge(number)),
                    Delivery::Repeated { last } => self.send(from, life as usize, Parcel::Acknowledge(last)),
                    Delivery::OutOfOrder | Delivery::Full => {}
                }
                return;
            }
            Parcel::Acknowledge(number) => {
                // An acknowledgement of another life is for other numbers.
                let is_present = self.processes[to].connections.linked_to(lane(from));
                if is_present.is_some_and(|(process, _)| process.incarnation.0 == pipe as u64) {
                    self.processes[to].outbox.acknowledged(number);
                }
                return;
            }
            Parcel::Dial | Parcel::Opened | Parcel::Say(_) | Parcel::Closed => {}
        }
        if self.pipes[pipe].lives != [A, B].map(|at| self.processes[at].life) {
            return;
        }
        if let Parcel::Dial = parcel {
            let conn = self.processes[to].connections.accepted(self.now).unwrap();
            self.pipes[pipe].ends[to] = Some(conn);
            self.processes[to].conns.insert(conn, pipe);
            return self.send(self.pipes[pipe].dialler, pipe, Parcel::Opened);
        }
        let Some(conn) = self.pipes[pipe].ends[to].filter(|conn| self.processes[to].conns.contains_key(conn))
        else {
            return;
        };
        let process = &mut self.processes[to];
        match parcel {
            Parcel::Opened => process.connections.dialed(self.now, conn),
            Parcel::Say(message) => process.connections.received(self.now, conn, message),
            Parcel::Closed => {
                process.conns.remove(&conn);
                process.connections.closed(self.now, conn);
            }
            Parcel::Dial | Parcel::Notify(_) | Parcel::Acknowledge(_) => {}
        }
    }
}

fn process(at: usize, life: u32, card: CardId, memory: RemoteKey, bytes: usize, prng: &mut Prng) -> Host {
    let me = Process { node: node(at), incarnation: Incarnation(u64::from(life)) };
    Host {
        connections: Connections::new(me, ConnectConfig::ENGINE, Prng::new(prng.next_u64())).unwrap(),
        transfers: Transfers::new(TransferConfig::ENGINE).unwrap(),
        outbox: Outbox::new(OutboxConfig::default()),
        inbox: Inbox::new(InboxConfig::default()),
        card,
        memory,
        local: vec![0; bytes],
        links: BTreeMap::new(),
        posts: BTreeMap::new(),
        conns: BTreeMap::new(),
        life,
        is_up: true,
    }
}
