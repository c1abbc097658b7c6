//! What moves bytes on a link.
//!
//! Owns the words between the engine and its transports. Does **not** own any transport: TCP is one of them, and always there.
//!
//! A link between two processes is made by one handshake over TCP, authenticated, whatever moves its bytes then. Its connection
//! stays: it carries notifications and descriptions of segments, and its end is the end of the link. Besides, a link has
//! *rails*: one for each transport that both ends have. A HELLO and its WELCOME carry a
//! [`QueuePair`] for each, in which `rail` is the transport's number and the other fields are the transport's to fill: `gid` has
//! room for 16 bytes. Of the rails that came up, the one with the highest [`Transport::rail`] moves the bytes; TCP is 0.
//!
//! ```text
//!  initiator: offer -----HELLO-----> target: serve -----WELCOME-----> initiator: activate --CONFIRM--> target: activate
//!                                                                         |                               |
//!                                                                       Rail: post ... retire           Rail
//! ```
//!
//! What a transport must do:
//!
//! * **COMPLETED is applied.** A write ends as [`WireEnd::Done`] when its bytes are in the destination's memory, and a read
//!   when they are in ours. Nothing else is Done.
//! * **Each slice that is posted ends once**, either in the `ended` of [`Rail::post`] or [`Rail::retire`] or through
//!   [`LinkEvents::completed`]. What is posted to a rail that is retired or broken ends as [`WireEnd::Flushed`] at once.
//! * **A rail that breaks says so once** ([`LinkEvents::failed`]) and keeps its slices until it is retired.
//! * **After [`Rail::retire`] has returned, nothing of the link touches memory on this side**: no late write of the peer's
//!   may land, for the next link begins then. Slices that end as Flushed are not touched by anybody any more.
//! * **Ranges of peers are looked up in [`Regions`]**, with the access that is wanted, before any byte moves; what is not
//!   found ends as [`WireEnd::RemoteAccess`] for who asked. Nothing a peer says is trusted beyond that.
//! * **Nothing blocks** in `offer`, `serve`, `activate` and `retire` longer than the making of a mapping or a queue pair takes.
//!   `post` may copy, for that is its work.
//! * **Nothing spins**: threads park when there is nothing to do.
//! * `serve` without a following `activate` reaches nobody's memory: the initiator may not be who it says before CONFIRM.

use std::fmt::Debug;
use std::sync::Arc;

use towline_sansio::Instant;
use towline_transfer_proto::{LinkId, NoQueuePairs, Opcode, Psn, QueuePair, SliceId, WireEnd};

use crate::regions::{Range, Regions, Registered};

/// One slice to move.
#[derive(Debug)]
pub struct Work {
    /// Its name, for its end.
    pub slice: SliceId,
    /// Which way.
    pub opcode: Opcode,
    /// Our memory, as long as the slice. Dropped when nothing touches it any more.
    pub local: Range,
    /// The peer's address: see [`Regions::remote`] there.
    pub remote: u64,
}

/// How a slice ended.
pub type Ended = (SliceId, WireEnd);

/// A way to move bytes. One for each engine, shared by its links. See the module for what it owes.
pub trait Transport: Debug + Send + Sync {
    /// Its number on the wire, its own among all transports: 0 is TCP. A higher one is preferred.
    fn rail(&self) -> u16;

    /// For people: `tcp`, `shm`, `rdma`.
    fn name(&self) -> &'static str;

    /// The engine begins: these are its regions. Called once, before anything else.
    fn attach(&self, regions: &Arc<Regions>);

    /// Our end of a link that we ask for.
    ///
    /// # Errors
    /// No end can be made now; the link is tried again later.
    fn offer(&self, link: LinkId, psn: Psn) -> Result<QueuePair, NoQueuePairs>;

    /// Our end of a link that somebody else asks for. `None` if this transport cannot reach them, which is no fault: the
    /// link does without.
    ///
    /// # Errors
    /// No end can be made now; the asker is refused.
    fn serve(&self, link: LinkId, remote: &QueuePair, psn: Psn) -> Result<Option<QueuePair>, NoQueuePairs>;

    /// Both ends are made and known. `remote` is the counterpart for who offered, `None` for who served. `None` as the result
    /// if the way turns out not to be passable, for example since the other host is another one: the link does without.
    ///
    /// # Errors
    /// The link fails and is made anew.
    fn activate(
        &self,
        link: LinkId,
        remote: Option<&QueuePair>,
        events: LinkEvents,
    ) -> Result<Option<Arc<dyn Rail>>, NoQueuePairs>;

    /// The link came to nothing before it was activated. Also called for links that this transport never heard of.
    fn abandon(&self, link: LinkId);

    /// A region was registered. By default, nothing is done: right for transports that look every slice up.
    fn registered(&self, region: &Registered) {
        let _ = region;
    }

    /// What peers need to know of a region besides its address; they hear of it with the description of the segment.
    fn key(&self, base: u64) -> Option<u32> {
        let _ = base;
        None
    }

    /// A region was taken back: when this returns, peers do not touch it by this transport. By default, nothing is done: right for
    /// transports that look every slice up.
    fn deregistered(&self, base: u64) {
        let _ = base;
    }

    /// The engine is over: every rail is retired, threads end before this returns.
    fn shut_down(&self);
}

/// What a peer said of one of its regions for one transport: [`Transport::key`] there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionKey {
    /// The transport's [`Transport::rail`].
    pub rail: u16,
    /// The region's first address.
    pub base: u64,
    /// Its bytes.
    pub len: u64,
    /// Its key.
    pub key: u32,
}

/// Our active end of one link.
pub trait Rail: Debug + Send + Sync {
    /// The peer described its segment; these keys take the place of earlier ones. Of all transports.
    fn learned(&self, keys: &[RegionKey]) {
        let _ = keys;
    }

    /// Puts slices on the wire, in any order. Those that are over when this returns are in `ended`.
    fn post(&self, works: Vec<Work>, ended: &mut Vec<Ended>);

    /// The link is over. What was under way is in `ended`, as [`WireEnd::Flushed`]; if the peer did not answer, the
    /// slice that waited longest is [`WireEnd::Unanswered`]. Idempotent.
    fn retire(&self, ended: &mut Vec<Ended>);
}

/// Where a rail tells what happens to it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LinkEvents {
    pub(crate) link: LinkId,
    pub(crate) to: Arc<dyn Listener>,
}

impl LinkEvents {
    /// Slices ended. Do not hold a lock that `post` or `retire` takes: both may be called from within.
    pub fn completed(&self, ended: &[Ended]) {
        if !ended.is_empty() {
            self.to.completed(ended);
        }
    }

    /// This rail cannot carry these slices: they go over TCP, which tells their ends. Do not hold a lock that `post` or `retire` takes.
    pub fn elsewhere(&self, works: Vec<Work>) {
        self.to.elsewhere(self.link, works);
    }

    /// A slice of so many bytes was done, for the metrics.
    pub fn moved(&self, opcode: Opcode, bytes: usize) {
        self.to.moved(opcode, bytes);
    }

    /// The rail is broken. [`Rail::retire`] follows.
    pub fn failed(&self) {
        self.to.failed(self.link);
    }

    /// The engine's clock.
    pub fn now(&self) -> Instant {
        self.to.now()
    }
}

/// The engine's side of [`LinkEvents`].
pub(crate) trait Listener: Debug + Send + Sync {
    fn completed(&self, ended: &[Ended]);
    fn elsewhere(&self, link: LinkId, works: Vec<Work>);
    fn moved(&self, opcode: Opcode, bytes: usize);
    fn failed(&self, link: LinkId);
    fn now(&self) -> Instant;
}
