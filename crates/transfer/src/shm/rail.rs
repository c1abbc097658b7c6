//! One link's end over shared memory.
//!
//! Owns: what the peer granted us and its mappings, what we granted the peer, and the slices that wait for a grant. Does **not**
//! own connections ([`super::transport`]).
//!
//! Who posts a slice copies it, from its memory to the peer's or back. The first slice for a region asks the peer for it, and
//! the transport's thread copies what has waited when the answer comes. A region that is not shared memory, or that the peer cannot
//! grant, is left to TCP.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::{Duration, Instant as Monotonic};

use towline_transfer_proto::{LinkId, Opcode, SliceId, WireEnd};

use crate::regions::{Regions, RemoteAccess};
use crate::transport::{Ended, LinkEvents, Rail, Work};

use super::copy::Stores;
use super::map::{Mapped, Use, descriptor_for};
use super::page::{Admission, GRANTS_MAX, Page};
use super::socket::{self, Message, Side, Token};
use super::transport::Inner;

/// Regions of a peer that are remembered at most: as many as it can grant, and as many that it cannot. A peer that says more is
/// not honest.
const KNOWN_MAX: usize = 2 * GRANTS_MAX as usize;

/// How long taking a region back waits for who is copying. A copy of a slice takes a fraction of a millisecond; the rest is for
/// processors that have more to do.
const RECALL_MAX: Duration = Duration::from_secs(5);

/// How long the end of a link waits for them, while other links wait for it. The peer has no other link to us before it has ended this
/// one itself, which waits for its copies.
const RETIRE_MAX: Duration = Duration::from_millis(200);

/// How long a peer may take to prove itself, and to answer a question: it is a thread of its own that does so at once.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A region of the peer's.
#[derive(Debug)]
struct Known {
    base: u64,
    len: u64,
    /// `None`: it goes over TCP.
    granted: Option<Granted>,
}

#[derive(Debug)]
struct Granted {
    mapped: Mapped,
    slot: u32,
    is_writable: bool,
}

impl Known {
    /// Where in the region the work is, if it is within.
    fn place(&self, work: &Work) -> Option<usize> {
        let offset = work.remote.checked_sub(self.base)?;
        let end = offset.checked_add(work.local.len() as u64)?;
        if end > self.len { None } else { usize::try_from(offset).ok() }
    }
}

/// What the peer lets us into.
#[derive(Debug, Default)]
struct Peers {
    /// Comes with its proof.
    page: Option<Page>,
    /// By address.
    known: Vec<Known>,
}

impl Peers {
    fn find(&self, address: u64) -> Option<&Known> {
        let after = self.known.partition_point(|known| known.base <= address);
        let known = self.known.get(after.checked_sub(1)?)?;
        (address - known.base < known.len).then_some(known)
    }
}

#[derive(Debug, Default)]
struct Waiting {
    works: VecDeque<Work>,
    /// One question at a time.
    asked: Option<u64>,
    /// The link broke under these.
    kept: Vec<SliceId>,
    /// We wait for the peer to say something.
    until: Option<Monotonic>,
    is_over: bool,
}

impl Waiting {
    /// The question, if there was one.
    fn answered(&mut self) -> Option<u64> {
        let asked = self.asked.take()?;
        self.until = None;
        Some(asked)
    }
}

/// Which proof we wait for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub(super) initiator: Token,
    pub(super) target: Token,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct ShmRail {
    link: LinkId,
    token: u64,
    socket: OwnedFd,
    events: LinkEvents,
    regions: Arc<Regions>,
    transport: Weak<Inner>,
    /// What we granted: the region's base for each slot.
    page: Page,
    slots: Mutex<Vec<u64>>,
    peers: RwLock<Peers>,
    waiting: Mutex<Waiting>,
    /// Of an initiator whose target has not proved itself yet.
    expected: OnceLock<Expected>,
    is_over: AtomicBool,
    has_failed: AtomicBool,
}

/// What one slice came to.
enum Carried {
    Ended(WireEnd),
    Elsewhere,
    Broken,
}

impl ShmRail {
    pub(super) fn new(
        link: LinkId,
        token: u64,
        socket: OwnedFd,
        events: LinkEvents,
        transport: &Arc<Inner>,
        page: Page,
        peers: Option<Page>,
    ) -> Self {
        Self {
            link,
            token,
            socket,
            events,
            regions: transport.regions().clone(),
            transport: Arc::downgrade(transport),
            page,
            slots: Mutex::default(),
            peers: RwLock::new(Peers { page: peers, known: Vec::new() }),
            waiting: Mutex::default(),
            expected: OnceLock::new(),
            is_over: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        }
    }

    /// The target has to prove itself before anything else.
    pub(super) fn expect(&self, expected: Expected) {
        let is_first = self.expected.set(expected).is_ok();
        debug_assert!(is_first, "invariant: a rail is made for one link");
        self.waiting().until = Some(Monotonic::now() + ANSWER_MAX);
    }

    pub(super) fn token(&self) -> u64 {
        self.token
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn peers(&self) -> RwLockReadGuard<'_, Peers> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots(&self) -> MutexGuard<'_, Vec<u64>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Breaks the rail.
    pub(super) fn fail(&self) {
        if !self.has_failed.swap(true, Ordering::AcqRel) && !self.is_over.load(Ordering::Acquire) {
            if let Some(transport) = self.transport.upgrade() {
                transport.ignore(self);
                // Who never proved itself is not tried again.
                if self.peers().page.is_none() {
                    transport.distrust(self.link);
                }
            }
            self.events.failed();
        }
    }

    /// Until when the peer has to say something.
    pub(super) fn deadline(&self) -> Option<Monotonic> {
        self.waiting().until.filter(|_| !self.has_failed.load(Ordering::Acquire))
    }

    /// Takes all messages that are there. The transport's thread calls it.
    pub(super) fn hear(&self) {
        while !self.is_over.load(Ordering::Acquire) {
            match socket::receive(self.socket()) {
                socket::Received::Message(message, file) => {
                    if self.obey(message, file).is_none() {
                        return self.fail();
                    }
                }
                socket::Received::Nothing => return,
                socket::Received::Over => return self.fail(),
            }
        }
    }

    /// `None` if no honest peer says this now, or the peer does not listen.
    fn obey(&self, message: Message, file: Option<OwnedFd>) -> Option<()> {
        if let Message::Proved { tag } = message {
            return self.proved(&tag, file?);
        }
        self.peers().page.as_ref()?;
        match message {
            Message::Ask { address } => self.answer(address),
            Message::Grant { base, len, slot, is_writable } => {
                let usage = if is_writable { Use::ReadWrite } else { Use::Read };
                let mapped = Mapped::new(file?.as_fd(), usize::try_from(len).ok()?, usage).ok()?;
                let is_slot = slot < GRANTS_MAX;
                self.learn(Known {
                    base,
                    len,
                    granted: is_slot.then_some(Granted { mapped, slot, is_writable }),
                })
            }
            Message::Elsewhere { base, len } => self.learn(Known { base, len, granted: None }),
            Message::Refuse => self.refused(),
            Message::Recall { slot } => {
                self.forget(slot);
                Some(())
            }
            Message::Prove { .. } | Message::Proved { .. } => None,
        }
    }

    fn proved(&self, tag: &socket::Tag, file: OwnedFd) -> Option<()> {
        let Expected { initiator, target } = *self.expected.get()?;
        let transport = self.transport.upgrade()?;
        if !socket::is_proof(transport.trust(), Side::Target, &initiator, &target, tag) {
            return None;
        }
        let page = Page::of(file.as_fd()).ok()?;
        {
            let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
            if peers.page.is_some() {
                return None;
            }
            peers.page = Some(page);
        }
        self.waiting().until = None;
        self.ask()
    }

    /// Asks for the region of the first slice that waits, unless a question is open.
    fn ask(&self) -> Option<()> {
        if self.peers().page.is_none() {
            return Some(());
        }
        let mut waiting = self.waiting();
        if waiting.asked.is_some() || waiting.is_over {
            return Some(());
        }
        let Some(address) = waiting.works.front().map(|work| work.remote) else { return Some(()) };
        waiting.asked = Some(address);
        waiting.until = Some(Monotonic::now() + ANSWER_MAX);
        drop(waiting);
        socket::send(self.socket(), Message::Ask { address }, None).ok()?;
        self.transport.upgrade()?.wake();
        Some(())
    }

    /// The peer asks for a region of ours.
    fn answer(&self, address: u64) -> Option<()> {
        // Under the lock: a region that is taken back after this look is recalled after its slot is there.
        let mut slots = self.slots();
        let Some(range) = self.regions.remote(address, 1, RemoteAccess::Read) else {
            return socket::send(self.socket(), Message::Refuse, None).ok();
        };
        let is_writable = self.regions.remote(address, 1, RemoteAccess::Write).is_some();
        let usage = if is_writable { Use::ReadWrite } else { Use::Read };
        let (base, len) = (address - range.offset() as u64, range.memory().len() as u64);
        let slot = u32::try_from(slots.len()).ok().filter(|slot| *slot < GRANTS_MAX);
        let file = range.memory().file().and_then(|file| descriptor_for(file, usage).ok());
        let (Some(slot), Some(file)) = (slot, file) else {
            return socket::send(self.socket(), Message::Elsewhere { base, len }, None).ok();
        };
        slots.push(base);
        let grant = Message::Grant { base, len, slot, is_writable };
        socket::send(self.socket(), grant, Some(file.as_fd())).ok()
    }

    /// The answer to our question: a region.
    fn learn(&self, known: Known) -> Option<()> {
        let asked = self.waiting().answered()?;
        if asked < known.base || asked - known.base >= known.len {
            return None;
        }
        let (base, len) = (known.base, known.len);
        {
            let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
            if self.is_over.load(Ordering::Acquire) {
                return Some(());
            }
            let at = peers.known.partition_point(|other| other.base < base);
            let is_apart = peers.known.get(at).is_none_or(|next| base.saturating_add(len) <= next.base)
                && at
                    .checked_sub(1)
                    .is_none_or(|before| peers.known[before].base + peers.known[before].len <= base);
            if !is_apart || peers.known.len() >= KNOWN_MAX || base.checked_add(len).is_none() {
                return None;
            }
            peers.known.insert(at, known);
        }
        let mut waiting = self.waiting();
        let (ready, rest) = waiting.works.drain(..).partition(|work| work.remote.wrapping_sub(base) < len);
        waiting.works = rest;
        drop(waiting);
        let ready: VecDeque<Work> = ready;
        let mut ended = Vec::new();
        self.carry_all(ready.into(), &mut ended);
        self.events.completed(&ended);
        self.ask()
    }

    /// The answer to our question: nothing that we may use.
    fn refused(&self) -> Option<()> {
        let mut waiting = self.waiting();
        let asked = waiting.answered()?;
        let mut ended = Vec::new();
        waiting.works.retain(|work| {
            let is_asked = work.remote == asked;
            if is_asked {
                ended.push((work.slice, WireEnd::RemoteAccess));
            }
            !is_asked
        });
        drop(waiting);
        self.events.completed(&ended);
        self.ask()
    }

    /// The peer took a region back.
    fn forget(&self, slot: u32) {
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        peers.known.retain(|known| known.granted.as_ref().is_none_or(|granted| granted.slot != slot));
    }

    /// We take a region back: when this returns the peer does not touch it any more, unless it stands still inside.
    pub(super) fn recall(&self, base: u64) {
        let slots: Vec<u32> = {
            let slots = self.slots();
            (0..).zip(slots.iter()).filter(|(_, granted)| **granted == base).map(|(slot, _)| slot).collect()
        };
        for slot in slots {
            self.page.recall(slot);
            // Without the message the peer finds out when it comes again.
            let _ = socket::send(self.socket(), Message::Recall { slot }, None);
            self.wait_out(slot, RECALL_MAX);
        }
    }

    fn wait_out(&self, slot: u32, patience: Duration) {
        if !self.page.wait(slot, patience, || socket::is_gone(self.socket())) {
            tracing::warn!(link = %self.link, "a peer stands still in the middle of a copy into shared memory");
        }
    }

    /// Copies what is known, keeps what is not, and leaves to TCP what is TCP's.
    fn carry_all(&self, works: Vec<Work>, ended: &mut Vec<Ended>) {
        let stores = Stores::of(works.iter().map(|work| work.local.len()).sum());
        let (mut unknown, mut elsewhere, mut broken) = (VecDeque::new(), Vec::new(), Vec::new());
        {
            let peers = self.peers();
            for work in works {
                let carried = match (&peers.page, peers.find(work.remote)) {
                    _ if self.is_over.load(Ordering::Acquire) => Carried::Ended(WireEnd::Flushed),
                    (Some(page), Some(known)) => carry(page, known, &work, stores),
                    _ => {
                        unknown.push_back(work);
                        continue;
                    }
                };
                match carried {
                    Carried::Ended(end) => {
                        if end == WireEnd::Done {
                            self.events.moved(work.opcode, work.local.len());
                        }
                        ended.push((work.slice, end));
                    }
                    Carried::Elsewhere => elsewhere.push(work),
                    Carried::Broken => broken.push(work.slice),
                }
            }
        }
        let is_broken = !broken.is_empty();
        if !unknown.is_empty() || is_broken {
            let mut waiting = self.waiting();
            if waiting.is_over {
                let flushed = unknown.iter().map(|work| work.slice).chain(broken);
                ended.extend(flushed.map(|slice| (slice, WireEnd::Flushed)));
            } else {
                waiting.works.append(&mut unknown);
                waiting.kept.append(&mut broken);
            }
        }
        if !elsewhere.is_empty() {
            self.events.elsewhere(elsewhere);
        }
        if is_broken || self.ask().is_none() {
            self.fail();
        }
    }

    fn end(&self, ended: &mut Vec<Ended>) {
        let mut waiting = self.waiting();
        waiting.is_over = true;
        let (works, kept) = (std::mem::take(&mut waiting.works), std::mem::take(&mut waiting.kept));
        drop(waiting);
        let mut end =
            if self.has_failed.load(Ordering::Acquire) { WireEnd::Unanswered } else { WireEnd::Flushed };
        for slice in kept.into_iter().chain(works.into_iter().map(|work| work.slice)) {
            ended.push((slice, end));
            end = WireEnd::Flushed;
        }
    }
}

/// Copies one slice.
fn carry(page: &Page, known: &Known, work: &Work, stores: Stores) -> Carried {
    let Some(granted) = &known.granted else { return Carried::Elsewhere };
    let is_write = work.opcode == Opcode::Write;
    let Some(offset) = known.place(work).filter(|_| granted.is_writable || !is_write) else {
        return Carried::Ended(WireEnd::RemoteAccess);
    };
    match page.enter(granted.slot) {
        Admission::Open => {}
        Admission::Recalled => return Carried::Ended(WireEnd::RemoteAccess),
        Admission::Closed => return Carried::Broken,
    }
    let is_copied = if is_write {
        granted.mapped.write(offset, &work.local, stores)
    } else {
        granted.mapped.read(offset, &work.local, stores)
    };
    // Who took the region back waited for this copy, so it counts. Who closed the link may not have.
    match page.leave(granted.slot) {
        Admission::Closed => Carried::Broken,
        Admission::Open | Admission::Recalled if is_copied => Carried::Ended(WireEnd::Done),
        Admission::Open | Admission::Recalled => Carried::Ended(WireEnd::RemoteAccess),
    }
}

impl Rail for ShmRail {
    fn post(&self, works: Vec<Work>, ended: &mut Vec<Ended>) {
        self.carry_all(works, ended);
    }

    fn retire(&self, ended: &mut Vec<Ended>) {
        if self.is_over.swap(true, Ordering::AcqRel) {
            return;
        }
        // Who is copying is waited for here, and stops after the slice.
        let peers = std::mem::take(&mut *self.peers.write().unwrap_or_else(PoisonError::into_inner));
        drop(peers);
        let granted = self.slots().len();
        let granted = u32::try_from(granted).expect("invariant: slots are below GRANTS_MAX");
        (0..granted).for_each(|slot| self.page.close(slot));
        // All of them together.
        let until = Monotonic::now() + RETIRE_MAX;
        (0..granted).for_each(|slot| self.wait_out(slot, until.saturating_duration_since(Monotonic::now())));
        if let Some(transport) = self.transport.upgrade() {
            transport.forget(self);
        }
        self.end(ended);
    }
}
