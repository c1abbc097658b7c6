//! Bytes over TCP: the transport that every link has.
//!
//! Owns: the lanes of a link and what is said on them. The first lane is the connection of the link's handshake. Does **not** own
//! handshakes ([`crate::control`]).

mod frame;
mod io;
mod lane;
mod receive;

pub(crate) use io::IoThreads;
pub(crate) use lane::ANSWERS_MAX;
pub(crate) use receive::STAGING_LEN;

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use towline_transfer_proto::{LinkId, Notification, Process, WireEnd};

use crate::peer::Peer;
use crate::transport::{Ended, Rail, Work};

use frame::{Header, Kind};
use lane::Outgoing;

pub(crate) use lane::Lane;

/// The rail number of TCP.
pub(crate) const TCP_RAIL: u16 = 0;

/// A link's end over TCP.
#[derive(Debug)]
pub(crate) struct TcpRail {
    peer: Arc<Peer>,
    link: LinkId,
    process: Process,
    /// Filled as they come; the first always is.
    lanes: Vec<OnceLock<Arc<Lane>>>,
    next: AtomicUsize,
}

/// A connection as a handshake leaves it.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) socket: TcpStream,
    /// What has to go out first.
    pub(crate) first: Vec<u8>,
    /// What came in already.
    pub(crate) early: Vec<u8>,
}

impl TcpRail {
    /// A link's end with room for so many lanes, and its first. What comes in is not read before [`TcpRail::serve`]: the peer has
    /// to know the link first.
    pub(crate) fn new(
        peer: Arc<Peer>,
        link: LinkId,
        process: Process,
        lanes: u16,
        first: Connected,
        io: &IoThreads,
    ) -> Arc<Self> {
        let lanes = (0..lanes.max(1)).map(|_| OnceLock::new()).collect();
        let rail = Self { peer, link, process, lanes, next: AtomicUsize::new(0) };
        rail.insert(0, first, io);
        Arc::new(rail)
    }

    /// The first lane is read from now on.
    pub(crate) fn serve(&self) {
        self.first().serve();
    }

    /// One more lane. One that is there already, or that nobody asked for, is dropped.
    pub(crate) fn add(&self, index: u16, connected: Connected, io: &IoThreads) {
        if let Some(lane) = self.insert(index, connected, io) {
            lane.serve();
        }
    }

    fn insert(&self, index: u16, connected: Connected, io: &IoThreads) -> Option<&Arc<Lane>> {
        let place = self.lanes.get(usize::from(index))?;
        let Connected { socket, first, early } = connected;
        let lane = Lane::new(socket, self.peer.clone(), self.link, self.process, io.pick(), first, early);
        place.set(lane).ok()?;
        place.get()
    }

    fn first(&self) -> &Arc<Lane> {
        self.lanes[0].get().expect("invariant: a link begins with its first lane")
    }

    fn up(&self) -> impl Iterator<Item = &Arc<Lane>> {
        self.lanes.iter().filter_map(OnceLock::get)
    }

    /// The lane, if there is one only: then a thread that waits for the link may read it.
    pub(crate) fn sole(&self) -> Option<&Arc<Lane>> {
        if self.lanes.len() == 1 { self.lanes[0].get() } else { None }
    }

    /// Queues a notification. [`TcpRail::flush_control`] sends it.
    pub(crate) fn queue_notification(&self, notification: Notification) {
        let header = Header::new(Kind::Notify, notification.number);
        self.first().queue(Outgoing::bytes(header, notification.payload));
    }

    pub(crate) fn flush_control(&self) {
        self.first().flush();
    }

    /// Asks the peer what it has.
    pub(crate) fn ask_description(&self) {
        self.say(Kind::Describe);
    }

    /// Tells the peer that there is room for notifications.
    pub(crate) fn ask_again(&self) {
        self.say(Kind::Again);
    }

    fn say(&self, kind: Kind) {
        self.first().queue(Outgoing::bare(Header::new(kind, 0)));
        self.first().flush();
    }
}

impl Rail for TcpRail {
    fn post(&self, works: Vec<Work>, ended: &mut Vec<Ended>) {
        let up: Vec<_> = self.up().collect();
        if up.len() == 1 {
            return up[0].post(works, ended);
        }
        let mut shares: Vec<Vec<Work>> = up.iter().map(|_| Vec::new()).collect();
        for work in works {
            let index = self.next.fetch_add(1, Ordering::Relaxed) % up.len();
            shares[index].push(work);
        }
        for (lane, share) in up.iter().zip(shares).filter(|(_, share)| !share.is_empty()) {
            lane.post(share, ended);
        }
    }

    fn retire(&self, ended: &mut Vec<Ended>) {
        let before = ended.len();
        self.up().for_each(|lane| lane.retire(ended));
        // One attempt for the link, not one for each lane.
        let unanswered = ended[before..].iter_mut().filter(|(_, end)| *end == WireEnd::Unanswered);
        unanswered.skip(1).for_each(|(_, end)| *end = WireEnd::Flushed);
    }
}
