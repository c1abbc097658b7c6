//! The pushes of publish and subscribe.
//!
//! Owns their shapes, in both protocols. Does not own what they mean for the state of subscriptions.

use bytes::Bytes;
use towline_resp::Proto;
use towline_resp::frame::Frame;

/// Payloads and names up to this many bytes are copied out of the read buffer, so that a message which is kept does not
/// keep a buffer of many times its size alive.
const COPY_BYTES_MAX: usize = 4096;

/// What kind of name is subscribed. A pattern and a channel of the same name are two subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A channel (`SUBSCRIBE`).
    Channel,
    /// A pattern of channels (`PSUBSCRIBE`).
    Pattern,
    /// A shard channel (`SSUBSCRIBE`).
    Shard,
}

impl Kind {
    pub(super) const fn subscribe(self) -> &'static str {
        match self {
            Self::Channel => "SUBSCRIBE",
            Self::Pattern => "PSUBSCRIBE",
            Self::Shard => "SSUBSCRIBE",
        }
    }

    pub(super) const fn unsubscribe(self) -> &'static str {
        match self {
            Self::Channel => "UNSUBSCRIBE",
            Self::Pattern => "PUNSUBSCRIBE",
            Self::Shard => "SUNSUBSCRIBE",
        }
    }
}

/// A published message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The kind of the subscription that it came by.
    pub kind: Kind,
    /// The channel that it was published to.
    pub channel: Bytes,
    /// The pattern that it came by, if it did.
    pub pattern: Option<Bytes>,
    /// What was published.
    pub payload: Bytes,
}

impl Message {
    /// The name of the subscription that it came by: the pattern, or else the channel.
    pub fn subscription(&self) -> &Bytes {
        self.pattern.as_ref().unwrap_or(&self.channel)
    }

    /// The message without a hold on the read buffer; `name` is the subscription's own copy of its name.
    pub(super) fn compact(self, name: &Bytes) -> Self {
        let Self { kind, channel, pattern, payload } = self;
        let (channel, pattern) = match pattern {
            Some(_) => (compact(channel), Some(name.clone())),
            None => (name.clone(), None),
        };
        Self { kind, channel, pattern, payload: compact(payload) }
    }
}

fn compact(bytes: Bytes) -> Bytes {
    if bytes.len() <= COPY_BYTES_MAX { Bytes::copy_from_slice(&bytes) } else { bytes }
}

/// The values of a frame that answers no command, or the frame itself if it may answer one.
///
/// RESP3 has a type for such frames. On a RESP2 connection that subscribes they are arrays like others, known by their
/// first word; `pong` answers a command and is not among them.
///
/// # Errors
/// The frame, unchanged.
pub fn take_push(frame: Frame, protocol: Proto) -> Result<Vec<Frame>, Frame> {
    match frame {
        Frame::Push(values) => Ok(values),
        Frame::Array(values) if protocol == Proto::Resp2 && word(&values).is_some() => Ok(values),
        other => Err(other),
    }
}

/// What a push says.
#[derive(Debug)]
pub(super) enum PubSub {
    Message(Message),
    Subscribed(Kind, Bytes),
    Unsubscribed(Kind, Bytes),
    /// The first word fits and the rest does not.
    Malformed,
}

#[derive(Debug, Clone, Copy)]
enum Word {
    Message(Kind),
    Subscribed(Kind),
    Unsubscribed(Kind),
}

fn word(values: &[Frame]) -> Option<Word> {
    Some(match &text(values.first()?)?[..] {
        b"message" => Word::Message(Kind::Channel),
        b"pmessage" => Word::Message(Kind::Pattern),
        b"smessage" => Word::Message(Kind::Shard),
        b"subscribe" => Word::Subscribed(Kind::Channel),
        b"psubscribe" => Word::Subscribed(Kind::Pattern),
        b"ssubscribe" => Word::Subscribed(Kind::Shard),
        b"unsubscribe" => Word::Unsubscribed(Kind::Channel),
        b"punsubscribe" => Word::Unsubscribed(Kind::Pattern),
        b"sunsubscribe" => Word::Unsubscribed(Kind::Shard),
        _ => return None,
    })
}

/// `None` if it is not about subscriptions.
pub(super) fn parse(values: &[Frame]) -> Option<PubSub> {
    let word = word(values)?;
    let texts: Vec<&Bytes> = values[1..].iter().filter_map(text).collect();
    Some(match (word, &texts[..]) {
        (Word::Message(Kind::Pattern), [pattern, channel, payload]) => PubSub::Message(Message {
            kind: Kind::Pattern,
            channel: (*channel).clone(),
            pattern: Some((*pattern).clone()),
            payload: (*payload).clone(),
        }),
        (Word::Message(kind @ (Kind::Channel | Kind::Shard)), [channel, payload]) => {
            PubSub::Message(Message {
                kind,
                channel: (*channel).clone(),
                pattern: None,
                payload: (*payload).clone(),
            })
        }
        // The count that follows is the server's; it is not needed, since every name is accounted for.
        (Word::Subscribed(kind), [name]) => PubSub::Subscribed(kind, (*name).clone()),
        (Word::Unsubscribed(kind), [name]) => PubSub::Unsubscribed(kind, (*name).clone()),
        _ => PubSub::Malformed,
    })
}

fn text(frame: &Frame) -> Option<&Bytes> {
    match frame {
        Frame::Simple(text) | Frame::Bulk(text) => Some(text),
        _ => None,
    }
}
