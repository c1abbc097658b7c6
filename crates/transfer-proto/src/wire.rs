//! The handshake on the wire.
//!
//! Owns the messages and their bytes. Does **not** own keys: every frame ends with room for a tag, and a driver with a
//! pre-shared key fills it and checks it over [`Frame::signed`] before it believes anything else. Without a key the tag
//! is zero.
//!
//! ```text
//!  0      4        5     6          8              12            12+n        44+n
//!  | TWLX | version| kind| zero (2) | body length n | body (n)   | tag (32) |     all numbers big endian
//! ```
//!
//! Bounded: a body is at most [`BODY_MAX`] bytes, which is known from the first twelve bytes. Versioned: a frame of
//! another version is refused by its number, and this version refuses bytes that it does not know.

use std::time::Duration;

use crate::identity::{Attempt, Incarnation, Lane, NodeId, Process, Psn, Qpn, QueuePair};

/// The version that this crate speaks.
pub const VERSION: u8 = 1;

/// Queue pairs in one HELLO at most: 64 rails with four queue pairs each.
pub const QUEUE_PAIRS_MAX: usize = 256;

/// The longest body: a HELLO with [`QUEUE_PAIRS_MAX`] queue pairs, rounded up.
pub const BODY_MAX: usize = 8 * 1024;

/// Bytes before the body.
pub const HEADER_LEN: usize = 12;

/// Bytes of the tag behind the body: what HMAC-SHA-256 yields.
pub const TAG_LEN: usize = 32;

const MAGIC: [u8; 4] = *b"TWLX";

/// What processes say to each other before they are linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Initiator to target: let us be linked.
    Hello(Hello),
    /// Target to initiator: my queue pairs are ready to receive yours.
    Welcome(Welcome),
    /// Target to initiator: not now. Costs the initiator nothing but time.
    Busy {
        /// The HELLO that this answers.
        attempt: Attempt,
        /// Come back so long after this was sent.
        retry_after: Duration,
        /// Bring this, if given.
        ticket: Option<u64>,
    },
    /// Target to initiator: my own HELLO is on its way to you, answer that one.
    UseMine {
        /// The HELLO that this answers.
        attempt: Attempt,
    },
    /// Target to initiator: no.
    Reject {
        /// The HELLO that this answers.
        attempt: Attempt,
        /// Why.
        reason: RejectReason,
    },
    /// Initiator to target: my queue pairs are ready; from now on you may post, too.
    Confirm {
        /// The HELLO that began it.
        attempt: Attempt,
        /// The nonce of the WELCOME: proof that this is not a recording.
        nonce: u64,
    },
    /// I am leaving: whatever linked us is gone.
    Bye {
        /// Who leaves.
        from: Process,
    },
}

/// The question of a handshake. One for a lane, whatever its number of rails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Who asks.
    pub from: Process,
    /// Whom it means. A listener that is somebody else says so instead of linking a stranger.
    pub to: NodeId,
    /// Which life of it, if the initiator has met one.
    pub to_incarnation: Option<Incarnation>,
    /// Which lane.
    pub lane: Lane,
    /// The number of this handshake.
    pub attempt: Attempt,
    /// A number that the answer must repeat.
    pub nonce: u64,
    /// How long the initiator listens for the answer, from when it sent this. Later work is for nobody.
    pub patience: Duration,
    /// The ticket of an earlier [`Message::Busy`].
    pub ticket: Option<u64>,
    /// It was told to wait for the target's own HELLO, and waited in vain.
    pub is_insisting: bool,
    /// Its queue pairs.
    pub queue_pairs: Vec<QueuePair>,
}

/// The answer of a target that has done its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// Who answers.
    pub from: Process,
    /// To whom, in which life.
    pub to: Process,
    /// The HELLO that this answers.
    pub attempt: Attempt,
    /// The nonce of that HELLO.
    pub echo: u64,
    /// A number that [`Message::Confirm`] must repeat.
    pub nonce: u64,
    /// The target's own attempts up to this number are given up: should one of them still arrive, drop it.
    pub abandoned: Attempt,
    /// Its queue pairs, one for each of the HELLO's, in the same order.
    pub queue_pairs: Vec<QueuePair>,
}

/// Why a HELLO was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// A later attempt or a later life of the initiator is known.
    Superseded,
    /// It meant another node. The initiator's address book is out of date.
    WrongNode,
    /// It meant an earlier life of this node. Ask again without naming one.
    WrongIncarnation,
    /// The target is leaving.
    Leaving,
    /// The target could not make its queue pairs.
    NoResources,
    /// The question itself cannot be answered (no queue pairs, too many of them, lanes out of range).
    Invalid,
}

/// Why bytes are no frame. Always the peer's fault; the connection is of no use after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Not this protocol.
    #[error("a handshake does not begin with these bytes")]
    NotHandshake,
    /// Another version.
    #[error("handshake version {version}, this process speaks version 1")]
    Version {
        /// The version it claims.
        version: u8,
    },
    /// Longer than [`BODY_MAX`].
    #[error("a handshake message of {length} bytes; at most {BODY_MAX} are allowed")]
    TooLong {
        /// The length it claims.
        length: u32,
    },
    /// No such kind of message.
    #[error("handshake messages of kind {kind} are not known")]
    Kind {
        /// The kind it claims.
        kind: u8,
    },
    /// The body does not have the shape of its kind.
    #[error("the body of a handshake message is malformed")]
    Malformed,
}

/// A complete frame at the front of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the tag is computed over: header and body.
    pub signed: &'a [u8],
    /// The tag. Compare it in constant time.
    pub tag: &'a [u8; TAG_LEN],
    /// What it says. Not to be believed before the tag is checked.
    pub message: Message,
    /// Bytes of the whole frame.
    pub length: usize,
}

impl<'a> Frame<'a> {
    /// Reads the frame at the front of `bytes`. `None` if more bytes are needed.
    ///
    /// # Errors
    /// The bytes are no frame and no beginning of one. Found as early as the bytes show it, so that a claimed length
    /// never makes anybody wait or allocate for more than [`BODY_MAX`].
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, WireError> {
        if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
            return Err(WireError::NotHandshake);
        }
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let [_, _, _, _, version, kind, zero @ ..] = *header;
        if version != VERSION {
            return Err(WireError::Version { version });
        }
        let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let body_len = length as usize;
        if body_len > BODY_MAX {
            return Err(WireError::TooLong { length });
        }
        if zero[..2] != [0, 0] {
            return Err(WireError::Malformed);
        }
        if !(kind::HELLO..=kind::BYE).contains(&kind) {
            return Err(WireError::Kind { kind });
        }
        let Some((body, rest)) = rest.split_at_checked(body_len) else { return Ok(None) };
        let Some((tag, _)) = rest.split_first_chunk::<TAG_LEN>() else { return Ok(None) };
        let mut reader = Reader { bytes: body };
        let message = read_body(kind, &mut reader).ok_or(WireError::Malformed)?;
        if !reader.bytes.is_empty() {
            return Err(WireError::Malformed);
        }
        let signed = &bytes[..HEADER_LEN + body_len];
        Ok(Some(Self { signed, tag, message, length: HEADER_LEN + body_len + TAG_LEN }))
    }
}

/// Appends a message with a zero tag, and returns where the tag is. The bytes before it since the append began are
/// what a driver signs.
///
/// # Panics
/// With more than [`QUEUE_PAIRS_MAX`] queue pairs, which no [`crate::Connections`] sends.
pub fn encode(message: &Message, out: &mut Vec<u8>) -> std::ops::Range<usize> {
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, kind_of(message), 0, 0, 0, 0, 0, 0]);
    write_body(message, out);
    let body_len = out.len() - start - HEADER_LEN;
    assert!(body_len <= BODY_MAX, "invariant: a message has at most QUEUE_PAIRS_MAX queue pairs");
    let length = u32::try_from(body_len).expect("invariant: BODY_MAX fits 32 bits");
    out[start + 8..start + HEADER_LEN].copy_from_slice(&length.to_be_bytes());
    let tag = out.len();
    out.extend_from_slice(&[0; TAG_LEN]);
    tag..tag + TAG_LEN
}

mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const WELCOME: u8 = 2;
    pub(super) const BUSY: u8 = 3;
    pub(super) const USE_MINE: u8 = 4;
    pub(super) const REJECT: u8 = 5;
    pub(super) const CONFIRM: u8 = 6;
    pub(super) const BYE: u8 = 7;
}

fn kind_of(message: &Message) -> u8 {
    match message {
        Message::Hello(_) => kind::HELLO,
        Message::Welcome(_) => kind::WELCOME,
        Message::Busy { .. } => kind::BUSY,
        Message::UseMine { .. } => kind::USE_MINE,
        Message::Reject { .. } => kind::REJECT,
        Message::Confirm { .. } => kind::CONFIRM,
        Message::Bye { .. } => kind::BYE,
    }
}

fn write_body(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::Hello(hello) => write_hello(hello, out),
        Message::Welcome(welcome) => {
            write_process(welcome.from, out);
            write_process(welcome.to, out);
            for number in [welcome.attempt.0, welcome.echo, welcome.nonce, welcome.abandoned.0] {
                out.extend_from_slice(&number.to_be_bytes());
            }
            write_queue_pairs(&welcome.queue_pairs, out);
        }
        Message::Busy { attempt, retry_after, ticket } => {
            out.extend_from_slice(&attempt.0.to_be_bytes());
            write_duration(*retry_after, out);
            write_option(*ticket, out);
        }
        Message::UseMine { attempt } => out.extend_from_slice(&attempt.0.to_be_bytes()),
        Message::Reject { attempt, reason } => {
            out.extend_from_slice(&attempt.0.to_be_bytes());
            out.push(reason_number(*reason));
        }
        Message::Confirm { attempt, nonce } => {
            out.extend_from_slice(&attempt.0.to_be_bytes());
            out.extend_from_slice(&nonce.to_be_bytes());
        }
        Message::Bye { from } => write_process(*from, out),
    }
}

fn write_hello(hello: &Hello, out: &mut Vec<u8>) {
    write_process(hello.from, out);
    out.extend_from_slice(&hello.to.0.to_be_bytes());
    write_option(hello.to_incarnation.map(|incarnation| incarnation.0), out);
    out.extend_from_slice(&hello.lane.0.to_be_bytes());
    out.extend_from_slice(&hello.attempt.0.to_be_bytes());
    out.extend_from_slice(&hello.nonce.to_be_bytes());
    write_duration(hello.patience, out);
    write_option(hello.ticket, out);
    out.push(u8::from(hello.is_insisting));
    write_queue_pairs(&hello.queue_pairs, out);
}

fn write_process(process: Process, out: &mut Vec<u8>) {
    out.extend_from_slice(&process.node.0.to_be_bytes());
    out.extend_from_slice(&process.incarnation.0.to_be_bytes());
}

/// Whole nanoseconds; 584 years and more are 584 years.
fn write_duration(duration: Duration, out: &mut Vec<u8>) {
    out.extend_from_slice(&u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).to_be_bytes());
}

fn write_option(number: Option<u64>, out: &mut Vec<u8>) {
    out.push(u8::from(number.is_some()));
    out.extend_from_slice(&number.unwrap_or_default().to_be_bytes());
}

fn write_queue_pairs(queue_pairs: &[QueuePair], out: &mut Vec<u8>) {
    let count = u16::try_from(queue_pairs.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&count.to_be_bytes());
    for queue_pair in queue_pairs {
        out.extend_from_slice(&queue_pair.rail.to_be_bytes());
        out.extend_from_slice(&queue_pair.qpn.0.to_be_bytes());
        out.extend_from_slice(&queue_pair.psn.get().to_be_bytes());
        out.extend_from_slice(&queue_pair.lid.to_be_bytes());
        out.extend_from_slice(&queue_pair.gid);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*array)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Only the bytes that a writer writes: one message has one form, so that a tag covers one meaning.
    fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn option(&mut self) -> Option<Option<u64>> {
        let (is_some, number) = (self.flag()?, self.u64()?);
        (is_some || number == 0).then_some(is_some.then_some(number))
    }

    fn attempt(&mut self) -> Option<Attempt> {
        self.u64().map(Attempt)
    }

    fn process(&mut self) -> Option<Process> {
        let node = NodeId(self.array().map(u128::from_be_bytes)?);
        Some(Process { node, incarnation: Incarnation(self.u64()?) })
    }

    fn queue_pairs(&mut self) -> Option<Vec<QueuePair>> {
        let count = usize::from(self.u16()?);
        if count > QUEUE_PAIRS_MAX {
            return None;
        }
        (0..count).map(|_| self.queue_pair()).collect()
    }

    fn queue_pair(&mut self) -> Option<QueuePair> {
        let (rail, qpn, psn, lid) = (self.u16()?, self.u32()?, self.u32()?, self.u16()?);
        let fits = qpn < Psn::MODULUS && psn < Psn::MODULUS;
        Some(QueuePair { rail, qpn: Qpn(qpn), psn: Psn::new(psn), lid, gid: self.array()? }).filter(|_| fits)
    }
}

fn read_body(kind: u8, reader: &mut Reader<'_>) -> Option<Message> {
    Some(match kind {
        kind::HELLO => Message::Hello(read_hello(reader)?),
        kind::WELCOME => Message::Welcome(Welcome {
            from: reader.process()?,
            to: reader.process()?,
            attempt: reader.attempt()?,
            echo: reader.u64()?,
            nonce: reader.u64()?,
            abandoned: reader.attempt()?,
            queue_pairs: reader.queue_pairs()?,
        }),
        kind::BUSY => Message::Busy {
            attempt: reader.attempt()?,
            retry_after: Duration::from_nanos(reader.u64()?),
            ticket: reader.option()?,
        },
        kind::USE_MINE => Message::UseMine { attempt: reader.attempt()? },
        kind::REJECT => Message::Reject { attempt: reader.attempt()?, reason: reason_of(reader.u8()?)? },
        kind::CONFIRM => Message::Confirm { attempt: reader.attempt()?, nonce: reader.u64()? },
        kind::BYE => Message::Bye { from: reader.process()? },
        _ => return None,
    })
}

fn read_hello(reader: &mut Reader<'_>) -> Option<Hello> {
    Some(Hello {
        from: reader.process()?,
        to: NodeId(reader.array().map(u128::from_be_bytes)?),
        to_incarnation: reader.option()?.map(Incarnation),
        lane: Lane(reader.u16()?),
        attempt: reader.attempt()?,
        nonce: reader.u64()?,
        patience: Duration::from_nanos(reader.u64()?),
        ticket: reader.option()?,
        is_insisting: reader.flag()?,
        queue_pairs: reader.queue_pairs()?,
    })
}

const REASONS: [RejectReason; 6] = [
    RejectReason::Superseded,
    RejectReason::WrongNode,
    RejectReason::WrongIncarnation,
    RejectReason::Leaving,
    RejectReason::NoResources,
    RejectReason::Invalid,
];

fn reason_number(reason: RejectReason) -> u8 {
    match reason {
        RejectReason::Superseded => 1,
        RejectReason::WrongNode => 2,
        RejectReason::WrongIncarnation => 3,
        RejectReason::Leaving => 4,
        RejectReason::NoResources => 5,
        RejectReason::Invalid => 6,
    }
}

fn reason_of(number: u8) -> Option<RejectReason> {
    REASONS.into_iter().find(|reason| reason_number(*reason) == number)
}

#[cfg(test)]
mod tests;
