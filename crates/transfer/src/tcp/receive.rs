//! The incoming side of a lane.
//!
//! Owns: frames as they come, where their bodies go, and the answers to them. Does **not** trust any of it: ranges are looked
//! up before a byte is applied, lengths are bounded before anything grows, and what no honest peer says ends the link.
//!
//! Bodies of slices go from the socket into registered memory without a copy in between; what is short is read many frames at
//! a time.

use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use towline_transfer_proto::{Incarnation, Notification, Opcode, SliceId, WireEnd};

use crate::regions::{Range, RemoteAccess};
use crate::segment::{DESCRIPTION_BYTES_MAX, Description, NOTIFICATION_BYTES_MAX};
use crate::sys::{self, Pieces};
use crate::transport::Ended;

use super::frame::{Answer, HEADER_LEN, Header, Kind};
use super::lane::{Lane, Outgoing, sum_of};

/// What one thread reads at a time for short frames.
pub(crate) const STAGING_LEN: usize = 64 * 1024;

/// Bodies with at least so much to come are read straight into their place.
const DIRECT_MIN: usize = 4 * 1024;

/// Bytes that one lane may read before the others of its thread have a turn.
const TURN_BYTES: usize = 4 * 1024 * 1024;

/// How far a turn came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The socket is empty.
    Drained,
    /// There may be more.
    More,
    /// Too many answers are owed.
    Paused,
    /// The connection is over, or the peer is not one.
    Over,
}

#[derive(Debug)]
enum Place {
    Range(Range),
    Bytes(Vec<u8>),
    /// It was refused: its bytes go by.
    Nowhere,
}

#[derive(Debug)]
struct Body {
    header: Header,
    place: Place,
    at: usize,
}

impl Body {
    fn left(&self) -> usize {
        self.header.body_len() - self.at
    }
}

/// What a lane has read of a frame.
#[derive(Debug)]
pub(super) struct Receiver {
    header: [u8; HEADER_LEN],
    have: usize,
    body: Option<Body>,
    /// What came before the lane began.
    early: Vec<u8>,
    is_over: bool,
}

/// The peer said what no peer says.
struct Misbehaved;

impl Receiver {
    pub(super) fn new(early: Vec<u8>) -> Self {
        Self { header: [0; HEADER_LEN], have: 0, body: None, early, is_over: false }
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
        self.body = None;
        self.early = Vec::new();
    }

    /// Reads straight into the body's place, and the header behind it. `None` if that is not worth it here.
    fn read_direct(&mut self, lane: &Lane) -> Option<std::io::Result<(usize, usize)>> {
        let body = self.body.as_mut().filter(|body| body.left() >= DIRECT_MIN)?;
        let Place::Range(range) = &body.place else { return None };
        let left = body.left();
        let mut pieces = Pieces::new();
        pieces.range(range, body.at).expect("invariant: a body's range was checked when it began");
        pieces.sink(&mut self.header);
        let (asked, read) = (pieces.bytes(), sys::read(lane.socket.as_fd(), &pieces));
        Some(
            read.inspect(|bytes| {
                body.at += (*bytes).min(left);
                self.have = bytes.saturating_sub(left);
            })
            .map(|bytes| (bytes, asked)),
        )
    }
}

impl Lane {
    /// Reads and applies what the socket has, for one turn.
    pub(super) fn receive(&self, staging: &mut [u8], ended: &mut Vec<Ended>) -> Turn {
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.receive_turn(&mut receiver, staging, ended);
        drop(receiver);
        if turn == Turn::Over {
            self.fail();
        } else {
            self.flush();
        }
        turn
    }

    fn receive_turn(&self, receiver: &mut Receiver, staging: &mut [u8], ended: &mut Vec<Ended>) -> Turn {
        if receiver.is_over {
            return Turn::Over;
        }
        let early = std::mem::take(&mut receiver.early);
        if self.consume(receiver, &early, ended).is_err() {
            return Turn::Over;
        }
        let mut total = 0;
        while total < TURN_BYTES {
            if self.must_pause() {
                return Turn::Paused;
            }
            let (read, asked) = match receiver.read_direct(self) {
                Some(Ok((bytes, asked))) => (self.after_direct(receiver, ended).map(|()| bytes), asked),
                Some(Err(error)) => match error.kind() {
                    std::io::ErrorKind::WouldBlock => return Turn::Drained,
                    std::io::ErrorKind::Interrupted => continue,
                    _ => return Turn::Over,
                },
                None => match rustix::net::recv(&self.socket, &mut *staging, rustix::net::RecvFlags::empty())
                {
                    Ok((bytes, _)) => {
                        (self.consume(receiver, &staging[..bytes], ended).map(|()| bytes), staging.len())
                    }
                    Err(rustix::io::Errno::AGAIN) => return Turn::Drained,
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(_) => return Turn::Over,
                },
            };
            match read {
                Err(Misbehaved) | Ok(0) => return Turn::Over,
                // A stream that gave less than was asked for is empty; what comes now is a new edge.
                Ok(bytes) if bytes < asked => return Turn::Drained,
                Ok(bytes) => total += bytes,
            }
        }
        Turn::More
    }

    fn after_direct(&self, receiver: &mut Receiver, ended: &mut Vec<Ended>) -> Result<(), Misbehaved> {
        if let Some(body) = receiver.body.take_if(|body| body.left() == 0) {
            self.finish(body, ended)?;
        }
        if receiver.have == HEADER_LEN {
            receiver.have = 0;
            let header = receiver.header;
            receiver.body = self.begin(&header, ended)?;
        }
        Ok(())
    }

    /// Takes bytes that were read.
    fn consume(
        &self,
        receiver: &mut Receiver,
        mut bytes: &[u8],
        ended: &mut Vec<Ended>,
    ) -> Result<(), Misbehaved> {
        while !bytes.is_empty() {
            if let Some(body) = &mut receiver.body {
                let (part, rest) = bytes.split_at(body.left().min(bytes.len()));
                match &mut body.place {
                    Place::Range(range) => {
                        let written = range.memory().write(range.offset() + body.at, part);
                        written.expect("invariant: a body's range was checked when it began");
                    }
                    Place::Bytes(held) => held.extend_from_slice(part),
                    Place::Nowhere => {}
                }
                body.at += part.len();
                bytes = rest;
                if let Some(body) = receiver.body.take_if(|body| body.left() == 0) {
                    self.finish(body, ended)?;
                }
            } else {
                let (part, rest) = bytes.split_at((HEADER_LEN - receiver.have).min(bytes.len()));
                receiver.header[receiver.have..receiver.have + part.len()].copy_from_slice(part);
                receiver.have += part.len();
                bytes = rest;
                if receiver.have == HEADER_LEN {
                    receiver.have = 0;
                    let header = receiver.header;
                    receiver.body = self.begin(&header, ended)?;
                }
            }
        }
        Ok(())
    }

    /// A header came. What its body goes to, if one follows.
    fn begin(&self, header: &[u8; HEADER_LEN], ended: &mut Vec<Ended>) -> Result<Option<Body>, Misbehaved> {
        let header = Header::parse(header).ok_or(Misbehaved)?;
        let place = match header.kind {
            Kind::Write => match self.range_of(&header, RemoteAccess::Write) {
                Some(range) => Place::Range(range),
                None => Place::Nowhere,
            },
            Kind::Data => match self.reading(header.id) {
                Some(range) if range.len() == header.body_len() => Place::Range(range),
                Some(_) if header.body_len() == 0 && header.answer != Answer::Done => Place::Nowhere,
                _ => return Err(Misbehaved),
            },
            Kind::Notify if header.body_len() <= NOTIFICATION_BYTES_MAX => Place::Bytes(Vec::new()),
            Kind::Description if header.body_len() <= DESCRIPTION_BYTES_MAX => Place::Bytes(Vec::new()),
            Kind::Notify | Kind::Description => return Err(Misbehaved),
            Kind::Read | Kind::Applied | Kind::Acknowledge | Kind::Again | Kind::Describe => Place::Nowhere,
        };
        let body = Body { header, place, at: 0 };
        if body.left() > 0 {
            return Ok(Some(body));
        }
        self.finish(body, ended).map(|()| None)
    }

    /// A peer's range, or a refusal that is counted.
    fn range_of(&self, header: &Header, wanted: RemoteAccess) -> Option<Range> {
        let shared = self.peer.shared();
        let range = shared.regions.remote(header.address, u64::from(header.length), wanted);
        if range.is_none() {
            shared.refusals.fetch_add(1, Ordering::Relaxed);
        }
        range
    }

    /// A frame is here as a whole.
    fn finish(&self, body: Body, ended: &mut Vec<Ended>) -> Result<(), Misbehaved> {
        let Body { header, place, .. } = body;
        let shared = self.peer.shared();
        match (header.kind, place) {
            (Kind::Write, place) => {
                let answer = self.judge(&header, &place);
                count(&shared.bytes_in, &header, answer);
                self.answer(Outgoing::bare(Header { answer, ..Header::new(Kind::Applied, header.id) }));
            }
            (Kind::Read, _) => self.answer(self.data(&header)),
            (Kind::Applied, _) => self.land_write(&header, ended)?,
            (Kind::Data, place) => {
                let answer =
                    if header.answer == Answer::Done { self.judge(&header, &place) } else { header.answer };
                count(&shared.bytes_in, &header, answer);
                self.land(header.id).ok_or(Misbehaved)?;
                ended.push((SliceId::from_bits(header.id), end_of(answer)));
            }
            (Kind::Notify, Place::Bytes(payload)) => self.notified(header.id, payload),
            // A notification of no bytes.
            (Kind::Notify, _) => self.notified(header.id, Vec::new()),
            (Kind::Acknowledge, _) => self.peer.acknowledged(header.id, Incarnation(header.address)),
            (Kind::Again, _) => self.peer.resend(),
            (Kind::Describe, _) => {
                let description = Description::encode(&shared.regions.entries());
                self.answer(Outgoing::bytes(Header::new(Kind::Description, 0), description));
            }
            (Kind::Description, Place::Bytes(bytes)) => {
                let description = Description::parse(self.process, &bytes).ok_or(Misbehaved)?;
                self.peer.described(&description);
            }
            (Kind::Description, _) => return Err(Misbehaved),
        }
        Ok(())
    }

    /// Whether the body of a slice is what its sender sent, and was applied.
    fn judge(&self, header: &Header, place: &Place) -> Answer {
        match (place, header.sum) {
            (Place::Range(range), Some(sum)) if sum_of(range) != sum => {
                self.peer.shared().corrupt.fetch_add(1, Ordering::Relaxed);
                Answer::Corrupt
            }
            (Place::Range(_), _) => Answer::Done,
            (Place::Bytes(_) | Place::Nowhere, _) => Answer::Refused,
        }
    }

    /// The answer to a read.
    fn data(&self, asked: &Header) -> Outgoing {
        let mut header = Header::new(Kind::Data, asked.id);
        let Some(range) = self.range_of(asked, RemoteAccess::Read).filter(|range| range.len() > 0) else {
            return Outgoing::bare(Header { answer: Answer::Refused, ..header });
        };
        let shared = self.peer.shared();
        header.length = asked.length;
        header.sum = shared.checksums.then(|| sum_of(&range));
        count(&shared.bytes_out, &header, Answer::Done);
        Outgoing::range(header, range)
    }

    fn land_write(&self, header: &Header, ended: &mut Vec<Ended>) -> Result<(), Misbehaved> {
        let flight = self.land(header.id).ok_or(Misbehaved)?;
        if flight.opcode != Opcode::Write {
            return Err(Misbehaved);
        }
        if header.answer == Answer::Done {
            self.peer.shared().bytes_out.fetch_add(flight.local.len() as u64, Ordering::Relaxed);
        }
        ended.push((SliceId::from_bits(header.id), end_of(header.answer)));
        Ok(())
    }

    fn notified(&self, number: u64, payload: Vec<u8>) {
        let shared = self.peer.shared();
        let notification = Notification { number, payload };
        if let Some(last) = shared.deliver(&self.peer, self.process, notification) {
            let life = shared.me.incarnation.0;
            self.answer(Outgoing::bare(Header { address: life, ..Header::new(Kind::Acknowledge, last) }));
        }
    }
}

fn count(bytes: &AtomicU64, header: &Header, answer: Answer) {
    if answer == Answer::Done {
        bytes.fetch_add(u64::from(header.length), Ordering::Relaxed);
    }
}

fn end_of(answer: Answer) -> WireEnd {
    match answer {
        Answer::Done => WireEnd::Done,
        Answer::Refused => WireEnd::RemoteAccess,
        // It is worth another attempt, and costs one.
        Answer::Corrupt => WireEnd::Unanswered,
    }
}
