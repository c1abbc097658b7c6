//! One TCP connection of a link: its outgoing side, and what is under way on it.
//!
//! Owns: the queue of frames, who writes them, and the slices that wait for their answers. `receive.rs` owns the incoming side.
//!
//! * **Whoever has a frame writes it.** The thread that submits writes to the socket itself, until the socket is full; then its
//!   I/O thread goes on. Only one writes at a time, and nobody waits for it: who finds a writer at work leaves the frame in the
//!   queue, which the writer looks at before it leaves.
//! * **The queue is bounded** by the window of [`towline_transfer_proto::TransferConfig`], by the outbox, and for answers by
//!   [`ANSWERS_MAX`] and [`ANSWER_BYTES_MAX`]: beyond them the lane stops reading what asks for more.

use std::collections::{HashMap, VecDeque};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use towline_transfer_proto::{LinkId, Opcode, Process, WireEnd};

use crate::kick::Kick;
use crate::peer::{Peer, PeerListener};
use crate::poller::Watch;
use crate::regions::Range;
use crate::sys::{self, Pieces};
use crate::transport::{Ended, Listener as _, Work};

use super::frame::{HEADER_LEN, Header, Kind};
use super::io::IoThread;
use super::receive::{Receiver, Turn};

/// Answers that wait to be sent. Peers that keep to their windows never reach it.
pub(crate) const ANSWERS_MAX: usize = 4_096;

/// Bytes of answers that have bytes of their own, which are descriptions of segments.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A frame to send.
#[derive(Debug)]
pub(super) struct Outgoing {
    header: [u8; HEADER_LEN],
    body: Body,
    /// It answers something of the peer's.
    is_answer: bool,
}

#[derive(Debug)]
enum Body {
    None,
    Range(Range),
    Bytes(Vec<u8>),
    /// Bytes that go out without a header: the end of a handshake.
    Raw(Vec<u8>),
}

impl Outgoing {
    pub(super) fn bare(header: Header) -> Self {
        Self { header: header.encode(), body: Body::None, is_answer: false }
    }

    pub(super) fn range(header: Header, range: Range) -> Self {
        Self { header: header.encode(), body: Body::Range(range), is_answer: false }
    }

    pub(super) fn bytes(mut header: Header, bytes: Vec<u8>) -> Self {
        header.length = u32::try_from(bytes.len()).expect("invariant: bodies of their own are below 4 GiB");
        Self { header: header.encode(), body: Body::Bytes(bytes), is_answer: false }
    }

    pub(super) fn raw(bytes: Vec<u8>) -> Self {
        Self { header: [0; HEADER_LEN], body: Body::Raw(bytes), is_answer: false }
    }

    fn header_len(&self) -> usize {
        if matches!(self.body, Body::Raw(_)) { 0 } else { HEADER_LEN }
    }

    fn body_len(&self) -> usize {
        match &self.body {
            Body::None => 0,
            Body::Range(range) => range.len(),
            Body::Bytes(bytes) | Body::Raw(bytes) => bytes.len(),
        }
    }

    fn len(&self) -> usize {
        self.header_len() + self.body_len()
    }

    /// Bytes that it holds itself.
    fn held(&self) -> usize {
        match &self.body {
            Body::Bytes(bytes) => bytes.len(),
            Body::None | Body::Range(_) | Body::Raw(_) => 0,
        }
    }

    /// What is left of it after its first `sent` bytes.
    fn gather<'a>(&'a self, sent: usize, pieces: &mut Pieces<'a>) {
        let header = &self.header[..self.header_len()];
        pieces.source(header.get(sent..).unwrap_or_default());
        let at = sent.saturating_sub(header.len());
        match &self.body {
            Body::None => {}
            Body::Range(range) => {
                pieces.range(range, at).expect("invariant: a frame's range was checked when it was made");
            }
            Body::Bytes(bytes) | Body::Raw(bytes) => pieces.source(bytes.get(at..).unwrap_or_default()),
        }
    }
}

#[derive(Debug, Default)]
struct Sender {
    queue: VecDeque<Outgoing>,
    /// Bytes of the front that are sent.
    sent: usize,
    /// The socket was full.
    is_blocked: bool,
}

enum Written {
    /// Nothing is left that was seen.
    All,
    /// The socket is full.
    Blocked,
    /// The connection is gone.
    Broken,
}

/// A slice that waits for its answer.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) opcode: Opcode,
    pub(super) local: Range,
    number: u64,
}

#[derive(Debug, Default)]
struct Flights {
    slices: HashMap<u64, Flight>,
    next: u64,
    is_over: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(super) socket: TcpStream,
    pub(super) peer: Arc<Peer>,
    pub(super) process: Process,
    pub(super) receiver: Mutex<Receiver>,
    link: LinkId,
    io: Arc<IoThread>,
    token: u64,
    outgoing: Mutex<VecDeque<Outgoing>>,
    sender: Mutex<Sender>,
    /// There is room in the socket since somebody looked.
    is_writable: AtomicBool,
    flights: Mutex<Flights>,
    answers: AtomicUsize,
    answer_bytes: AtomicUsize,
    /// It does not read, for it owes too many answers.
    is_paused: AtomicBool,
    has_failed: AtomicBool,
    /// The socket was full, and is watched for room.
    is_full: AtomicBool,
    interest: Mutex<Interest>,
}

/// What the lane's I/O thread is woken for. The lock keeps changes in order.
#[derive(Debug, Default)]
struct Interest {
    /// A waiting thread reads the lane itself.
    is_driven: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lane {
    /// A lane on a connected (or connecting) socket that does not block. `first` goes out before everything else, `early` came
    /// in before. [`Lane::serve`] gives it to its I/O thread.
    pub(super) fn new(
        socket: TcpStream,
        peer: Arc<Peer>,
        link: LinkId,
        process: Process,
        io: &Arc<IoThread>,
        first: Vec<u8>,
        early: Vec<u8>,
    ) -> Arc<Self> {
        let mut outgoing = VecDeque::new();
        if !first.is_empty() {
            outgoing.push_back(Outgoing::raw(first));
        }
        let token = io.new_token();
        Arc::new(Self {
            socket,
            peer,
            process,
            receiver: Mutex::new(Receiver::new(early)),
            link,
            io: io.clone(),
            token,
            outgoing: Mutex::new(outgoing),
            sender: Mutex::default(),
            is_writable: AtomicBool::new(false),
            flights: Mutex::default(),
            answers: AtomicUsize::new(0),
            answer_bytes: AtomicUsize::new(0),
            is_paused: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            interest: Mutex::default(),
        })
    }

    /// From now on what comes in is read.
    pub(super) fn serve(self: &Arc<Self>) {
        self.io.add(self.clone());
    }

    pub(super) fn token(&self) -> u64 {
        self.token
    }

    /// Puts slices on the wire. Those that cannot go are in `ended`.
    pub(super) fn post(&self, works: Vec<Work>, ended: &mut Vec<Ended>) {
        let mut frames = VecDeque::with_capacity(works.len());
        let checksums = self.peer.shared().checksums;
        let mut flights = lock(&self.flights);
        if flights.is_over {
            ended.extend(works.into_iter().map(|work| (work.slice, WireEnd::Flushed)));
            return;
        }
        for work in works {
            let kind = if work.opcode == Opcode::Write { Kind::Write } else { Kind::Read };
            let length = u32::try_from(work.local.len()).expect("invariant: slices are below 4 GiB");
            let mut header =
                Header { address: work.remote, length, ..Header::new(kind, work.slice.to_bits()) };
            flights.next += 1;
            let flight = Flight { opcode: work.opcode, local: work.local.clone(), number: flights.next };
            flights.slices.insert(work.slice.to_bits(), flight);
            frames.push_back(match work.opcode {
                Opcode::Write => {
                    header.sum = checksums.then(|| sum_of(&work.local));
                    Outgoing::range(header, work.local)
                }
                Opcode::Read => Outgoing::bare(header),
            });
        }
        drop(flights);
        lock(&self.outgoing).append(&mut frames);
        self.flush();
    }

    /// Takes a slice off the wire that has its answer, or is about to have it.
    pub(super) fn land(&self, slice: u64) -> Option<Flight> {
        lock(&self.flights).slices.remove(&slice)
    }

    /// What a read asked for, if it is on the way.
    pub(super) fn reading(&self, slice: u64) -> Option<Range> {
        let flights = lock(&self.flights);
        flights
            .slices
            .get(&slice)
            .filter(|flight| flight.opcode == Opcode::Read)
            .map(|flight| flight.local.clone())
    }

    /// Queues a frame of our own. [`Lane::flush`] sends it.
    pub(super) fn queue(&self, frame: Outgoing) {
        lock(&self.outgoing).push_back(frame);
    }

    /// Queues an answer.
    pub(super) fn answer(&self, mut frame: Outgoing) {
        frame.is_answer = true;
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.answer_bytes.fetch_add(frame.held(), Ordering::Relaxed);
        self.queue(frame);
    }

    fn owes_too_much(&self) -> bool {
        self.answers.load(Ordering::Relaxed) >= ANSWERS_MAX
            || self.answer_bytes.load(Ordering::Relaxed) >= ANSWER_BYTES_MAX
    }

    /// Whether reading has to wait until answers are sent. The lane is resumed by who sends them.
    pub(super) fn must_pause(&self) -> bool {
        if !self.owes_too_much() {
            return false;
        }
        self.is_paused.store(true, Ordering::SeqCst);
        // They may have been sent between the two looks.
        self.owes_too_much() || !self.is_paused.swap(false, Ordering::SeqCst)
    }

    /// There is room in the socket.
    pub(super) fn writable(&self) {
        self.is_full.store(false, Ordering::SeqCst);
        self.is_writable.store(true, Ordering::SeqCst);
        self.flush();
    }

    /// Writes what is queued, or leaves it to whoever is writing.
    pub(super) fn flush(&self) {
        loop {
            let written = match self.sender.try_lock() {
                Ok(mut sender) => self.write_out(&mut sender),
                Err(TryLockError::Poisoned(sender)) => self.write_out(&mut sender.into_inner()),
                Err(TryLockError::WouldBlock) => return,
            };
            let has_more = match written {
                Written::All => !lock(&self.outgoing).is_empty(),
                Written::Blocked => self.is_writable.load(Ordering::SeqCst),
                Written::Broken => {
                    self.fail();
                    false
                }
            };
            if !has_more {
                break;
            }
        }
        if self.is_paused.load(Ordering::SeqCst)
            && !self.owes_too_much()
            && self.is_paused.swap(false, Ordering::SeqCst)
        {
            self.io.resume(self.token);
        }
    }

    fn write_out(&self, sender: &mut Sender) -> Written {
        loop {
            sender.queue.append(&mut lock(&self.outgoing));
            if sender.queue.is_empty() {
                return Written::All;
            }
            if sender.is_blocked && !self.is_writable.swap(false, Ordering::SeqCst) {
                return Written::Blocked;
            }
            sender.is_blocked = false;
            let mut pieces = Pieces::new();
            let mut skip = sender.sent;
            for frame in &sender.queue {
                frame.gather(std::mem::take(&mut skip), &mut pieces);
                if pieces.is_full() {
                    break;
                }
            }
            match sys::write(self.socket.as_fd(), &pieces) {
                Ok(bytes) => self.count_sent(sender, bytes),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    sender.is_blocked = true;
                    self.is_full.store(true, Ordering::SeqCst);
                    self.watch(&lock(&self.interest));
                    return Written::Blocked;
                }
                Err(_) => return Written::Broken,
            }
        }
    }

    fn count_sent(&self, sender: &mut Sender, bytes: usize) {
        sender.sent += bytes;
        while let Some(front) = sender.queue.front()
            && front.len() <= sender.sent
        {
            sender.sent -= front.len();
            if front.is_answer {
                self.answers.fetch_sub(1, Ordering::Relaxed);
                self.answer_bytes.fetch_sub(front.held(), Ordering::Relaxed);
            }
            sender.queue.pop_front();
        }
    }

    /// The connection is of no use any more.
    pub(super) fn fail(&self) {
        if !self.has_failed.swap(true, Ordering::SeqCst) {
            PeerListener(self.peer.clone()).failed(self.link);
        }
    }

    /// Tells the poller what the I/O thread is woken for: to read, unless somebody else does, and for room, if that was missed.
    /// One that is not watched yet will be, for everything.
    fn watch(&self, interest: &Interest) -> bool {
        let watch = match (interest.is_driven, self.is_full.load(Ordering::SeqCst)) {
            (false, false) => Watch::EdgesRead,
            (false, true) => Watch::Edges,
            (true, false) => Watch::EdgesNone,
            (true, true) => Watch::EdgesWrite,
        };
        self.io.watch(&self.socket, self.token, watch)
    }

    /// Lets the calling thread, which waits for something, read the lane in place of its I/O thread, until `is_over` or the time has
    /// come. That saves the way from one thread to the other. Returns at once if somebody does it already.
    pub(crate) fn drive(&self, kick: &Kick, until: Option<Instant>, is_over: &dyn Fn() -> bool) {
        let mut interest = lock(&self.interest);
        if interest.is_driven {
            return;
        }
        interest.is_driven = true;
        let is_watched = self.watch(&interest);
        drop(interest);
        if is_watched {
            self.drive_on(kick, until, is_over);
        }
        let mut interest = lock(&self.interest);
        interest.is_driven = false;
        // What came meanwhile is an edge for the I/O thread.
        self.watch(&interest);
    }

    fn drive_on(&self, kick: &Kick, until: Option<Instant>, is_over: &dyn Fn() -> bool) {
        let mut ended = Vec::new();
        while !is_over() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) || !kick.wait(&self.socket, left) {
                return;
            }
            let turn = kick.with_staging(|staging| self.receive(staging, &mut ended));
            if !ended.is_empty() {
                self.completed(&ended);
                ended.clear();
            }
            if matches!(turn, Turn::Paused | Turn::Over) {
                return;
            }
        }
    }

    /// Slices ended.
    pub(super) fn completed(&self, ended: &[Ended]) {
        PeerListener(self.peer.clone()).completed(ended);
    }

    /// Ends the lane: when this returns, nothing of it touches memory.
    pub(super) fn retire(&self, ended: &mut Vec<Ended>) {
        let mut flights = lock(&self.flights);
        flights.is_over = true;
        let slices = std::mem::take(&mut flights.slices);
        drop(flights);
        // Who is reading into memory is waited for here, and stops.
        lock(&self.receiver).end();
        let mut sender = lock(&self.sender);
        sender.queue.clear();
        sender.sent = 0;
        lock(&self.outgoing).clear();
        drop(sender);
        // A socket that is gone is as good as shut down.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.io.remove(self.token);
        let was_broken = self.has_failed.swap(true, Ordering::SeqCst);
        let oldest = slices.values().map(|flight| flight.number).min().filter(|_| was_broken);
        ended.extend(slices.into_iter().map(|(slice, flight)| {
            let is_oldest = Some(flight.number) == oldest;
            let end = if is_oldest { WireEnd::Unanswered } else { WireEnd::Flushed };
            (towline_transfer_proto::SliceId::from_bits(slice), end)
        }));
    }
}

pub(super) fn sum_of(range: &Range) -> u32 {
    let sum = range.memory().crc32c(range.offset(), range.len());
    sum.expect("invariant: a range lies within its region")
}
