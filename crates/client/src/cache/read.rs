//! One read for the cache, in a task of its own.
//!
//! Owns the unit that is sent, and what its replies mean. Does not own who waits for it.
//!
//! # The unit
//!
//! `CLIENT CACHING YES`, the command, `PTTL key`: one range of bytes, so that nobody's command comes between, and all of it on
//! one connection. The server watches the key from the second command on, so whatever changes between the second and the third
//! is announced. Without an agreement to the first nothing is kept: the server that answered may be another one than was
//! thought, an old one, or one that does not allow it.
//!
//! A redirect is not followed by the unit, for `ASKING` and `CLIENT CACHING` each undo the other: the command is sent again by
//! itself, as the client sends every command, and its reply is not kept. The map is right afterwards.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use towline_client_proto::cache::{Fresh, ReadId, SourceId};
use towline_client_proto::{Encoder, Error, ErrorKind, Order, Reply, Sent, ServerError};
use towline_resp::frame::{Frame, encode_command};
use towline_spec::SideEffect;

use super::Shared;
use crate::client::{Client, Way};
use crate::cmd::Cmd;

const CACHING: &[u8] = b"*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n";

/// A read that was begun. Dropped before its end, because its runtime ends, it tells those who wait.
pub(super) struct Reading {
    shared: Arc<Shared>,
    client: Client,
    cmd: Cmd,
    key: Bytes,
    read: ReadId,
    is_over: bool,
}

/// What the replies to a unit come to.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// The reply. `ttl` is there if it may be kept, and has the key's time if that ends.
    Value(Frame, Option<Option<Duration>>),
    /// The server's answer, an error.
    Refused(ServerError),
    /// The command did not run.
    Again,
}

impl Reading {
    pub(super) fn new(shared: &Arc<Shared>, client: &Client, cmd: &Cmd, key: &[u8], read: ReadId) -> Self {
        let mut cmd = cmd.clone();
        // Others may wait for it, whose time is not this caller's.
        cmd.options_mut().deadline = None;
        Self {
            shared: Arc::clone(shared),
            client: client.clone(),
            cmd,
            key: Bytes::copy_from_slice(key),
            read,
            is_over: false,
        }
    }

    pub(super) async fn run(mut self) {
        let (heard, source) = self.ask().await;
        let outcome = match heard {
            Ok(Heard::Value(frame, Some(ttl))) => {
                let (frame, bytes) = compact(frame);
                let fresh = source.map(|source| Fresh { value: frame.clone(), bytes, source, ttl });
                return self.complete(fresh, &Ok(frame));
            }
            Ok(Heard::Value(frame, None)) => Ok(frame),
            Ok(Heard::Refused(answer)) => Err(Error::new(ErrorKind::Server(answer), Sent::Answered)),
            Ok(Heard::Again) => self.client.send(&self.cmd).await,
            Err(error) => Err(error),
        };
        self.complete(None, &outcome);
    }

    fn complete(&mut self, fresh: Option<Fresh<Frame>>, outcome: &Result<Frame, Error>) {
        self.is_over = true;
        let hash = self.shared.name(&self.key, b"").key_hash();
        let waiters = self.shared.part(hash).complete(self.read, fresh);
        for waiter in waiters {
            // Who has gone does not want it.
            let _ = waiter.send(outcome.clone());
        }
    }

    /// Sends the unit; with the replies comes who gave them.
    async fn ask(&self) -> (Result<Heard, Error>, Option<SourceId>) {
        let is_opt_in = self.shared.options.is_opt_in();
        let announcement = if is_opt_in { CACHING } else { b"" };
        let mut pttl = Vec::new();
        encode_command(&[b"PTTL", &self.key[..]], &mut pttl);
        let order = self.client.order(&self.cmd, SideEffect::ReadOnly);
        let order = Order {
            replies: 2 + u32::from(is_opt_in),
            bytes: announcement.len() + order.bytes + pttl.len(),
            ..order
        };
        let encode = |out: &mut Encoder<'_>| {
            out.raw(announcement);
            self.cmd.encode(out);
            out.raw(&pttl);
        };
        let (outcome, source) = match &self.client.inner.way {
            Way::Endpoint(engine) => {
                let slot = || Some(towline_cluster::key_slot(&self.key));
                let engine = self.client.inner.further.engine_for(engine, slot);
                (engine.exchange(order, encode).await, engine.cache.as_ref().map(|link| link.source))
            }
            Way::Cluster(cluster) => {
                let mut routed = cluster.exchange(Some(cluster.slot_of_key(&self.key)), order, encode);
                let outcome = (&mut routed).await;
                (
                    outcome,
                    routed.answered_by().and_then(|engine| engine.cache.as_ref()).map(|link| link.source),
                )
            }
        };
        (outcome.map(|reply| hear(reply, is_opt_in)), source)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if !self.is_over {
            self.complete(None, &Err(Error::new(ErrorKind::Closed, Sent::Maybe)));
        }
    }
}

/// Reads the replies to a unit.
pub(super) fn hear(reply: Reply, is_opt_in: bool) -> Heard {
    let Reply::Many(frames) = reply else { return Heard::Again };
    let mut frames = frames.into_iter();
    let is_watched =
        !is_opt_in || frames.next().is_some_and(|frame| ServerError::from_frame(&frame).is_none());
    let (Some(value), Some(time)) = (frames.next(), frames.next()) else { return Heard::Again };
    if let Some(answer) = ServerError::from_frame(&value) {
        return if answer.class().is_not_executed() { Heard::Again } else { Heard::Refused(answer) };
    }
    let ttl = match time.without_attributes() {
        // Servers count whole milliseconds, so up to one of them is over already.
        Frame::Integer(millis @ 0..) => {
            Some(Some(Duration::from_millis(millis.unsigned_abs().saturating_sub(1))))
        }
        Frame::Integer(WITHOUT_END) => Some(None),
        Frame::Integer(NO_SUCH_KEY) if is_nothing(&value) => Some(None),
        // Its time was over between the two commands, or is not known: it might outlive the key.
        _ => None,
    };
    Heard::Value(value, ttl.filter(|_| is_watched))
}

/// What `PTTL` says of a key that does not expire, and of none.
const WITHOUT_END: i64 = -1;
const NO_SUCH_KEY: i64 = -2;

/// Whether a reply is what commands say of a key that is not there. One that is not recognised is read again next time.
fn is_nothing(value: &Frame) -> bool {
    match value {
        Frame::Null | Frame::NullArray | Frame::Integer(0) => true,
        Frame::Simple(text) => &text[..] == b"none",
        Frame::Bulk(text) => text.is_empty(),
        Frame::Array(frames) | Frame::Set(frames) => frames.iter().all(is_nothing),
        Frame::Map(pairs) => pairs.is_empty(),
        _ => false,
    }
}

/// The same value in memory of its own, and how much that is. What comes from a connection is a part of its read buffer, and
/// would keep all of it.
pub(super) fn compact(frame: Frame) -> (Frame, usize) {
    let mut bytes = 0;
    let frame = copy(frame, &mut bytes);
    (frame, bytes)
}

/// What `Bytes` takes beside its content, when somebody shares it.
const SHARE_BYTES: usize = 24;

/// Recurses as deep as the frame is nested, which the decoder bounds.
fn copy(frame: Frame, bytes: &mut usize) -> Frame {
    let own = |text: Bytes, bytes: &mut usize| {
        *bytes += text.len() + SHARE_BYTES;
        Bytes::copy_from_slice(&text)
    };
    let all = |frames: Vec<Frame>, bytes: &mut usize| {
        *bytes += frames.len() * size_of::<Frame>();
        frames.into_iter().map(|frame| copy(frame, bytes)).collect::<Vec<_>>()
    };
    let pairs = |pairs: Vec<(Frame, Frame)>, bytes: &mut usize| {
        *bytes += pairs.len() * size_of::<(Frame, Frame)>();
        pairs.into_iter().map(|(key, value)| (copy(key, bytes), copy(value, bytes))).collect::<Vec<_>>()
    };
    match frame {
        Frame::Simple(text) => Frame::Simple(own(text, bytes)),
        Frame::Error(text) => Frame::Error(own(text, bytes)),
        Frame::Bulk(text) => Frame::Bulk(own(text, bytes)),
        Frame::BigNumber(text) => Frame::BigNumber(own(text, bytes)),
        Frame::BlobError(text) => Frame::BlobError(own(text, bytes)),
        Frame::Verbatim { format, text } => Frame::Verbatim { format, text: own(text, bytes) },
        Frame::Array(frames) => Frame::Array(all(frames, bytes)),
        Frame::Set(frames) => Frame::Set(all(frames, bytes)),
        Frame::Push(frames) => Frame::Push(all(frames, bytes)),
        Frame::Map(map) => Frame::Map(pairs(map, bytes)),
        Frame::Attributed { attributes, frame } => {
            *bytes += size_of::<Frame>();
            Frame::Attributed { attributes: pairs(attributes, bytes), frame: Box::new(copy(*frame, bytes)) }
        }
        plain @ (Frame::Integer(_)
        | Frame::Null
        | Frame::NullArray
        | Frame::Double(_)
        | Frame::Boolean(_)) => plain,
    }
}
