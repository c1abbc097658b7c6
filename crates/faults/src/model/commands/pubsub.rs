//! Publish and subscribe: channels, patterns, sharded channels.

use std::collections::BTreeSet;

use bytes::Bytes;
use towline_resp::writer::Writer;

use super::{Call, Step};
use crate::model::Model;
use crate::model::failure::Failure;
use crate::model::glob;
use crate::model::session::Session;

/// The three kinds of subscriptions.
#[derive(Clone, Copy)]
enum Kind {
    Channel,
    Pattern,
    Shard,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name.as_bytes()[0] {
            b'p' => Self::Pattern,
            b's' if name != "subscribe" => Self::Shard,
            _ => Self::Channel,
        }
    }

    fn set(self, session: &mut Session) -> &mut BTreeSet<Bytes> {
        match self {
            Self::Channel => &mut session.channels,
            Self::Pattern => &mut session.patterns,
            Self::Shard => &mut session.shard_channels,
        }
    }

    /// The count that confirmations carry: sharded channels are counted apart.
    fn count(self, session: &Session) -> usize {
        match self {
            Self::Channel | Self::Pattern => session.channels.len() + session.patterns.len(),
            Self::Shard => session.shard_channels.len(),
        }
    }
}

impl Model {
    /// `SUBSCRIBE channel [channel ...]` and its kin: one confirmation for each channel.
    pub(super) fn subscribe(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let kind = Kind::of(call.command.name);
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        for channel in &call.args[1..] {
            kind.set(session).insert(channel.clone());
            confirm(out, call.command.name, Some(channel), kind.count(session));
        }
        Ok(Step::Done)
    }

    /// `UNSUBSCRIBE [channel ...]` and its kin: without channels, of all of them.
    pub(super) fn unsubscribe(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let kind = Kind::of(call.command.name);
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        let channels: Vec<Bytes> = match &call.args[1..] {
            [] => kind.set(session).iter().cloned().collect(),
            named => named.to_vec(),
        };
        if channels.is_empty() {
            confirm(out, call.command.name, None, kind.count(session));
        }
        for channel in &channels {
            kind.set(session).remove(channel);
            confirm(out, call.command.name, Some(channel), kind.count(session));
        }
        Ok(Step::Done)
    }

    /// `PUBLISH channel message`, `SPUBLISH shardchannel message`
    pub(super) fn publish(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let (channel, message) = (&call.args[1], &call.args[2]);
        let is_sharded = call.command.name == "spublish";
        let mut messages = Vec::new();
        for (connection, session) in &self.sessions {
            let mut push = Writer::new(session.proto);
            let mut count = 0;
            let mut deliver = |parts: &[&[u8]]| {
                push.push(parts.len());
                parts.iter().for_each(|part| push.bulk(part));
                count += 1;
            };
            if is_sharded {
                if session.shard_channels.contains(channel) {
                    deliver(&[b"smessage", channel, message]);
                }
            } else {
                if session.channels.contains(channel) {
                    deliver(&[b"message", channel, message]);
                }
                for pattern in session.patterns.iter().filter(|pattern| glob::matches(pattern, channel)) {
                    deliver(&[b"pmessage", pattern, channel, message]);
                }
            }
            if count > 0 {
                messages.push((*connection, count, push.take().0));
            }
        }
        let mut receivers = 0;
        for (connection, count, bytes) in messages {
            receivers += count;
            self.tell(call.now, connection, bytes);
        }
        out.int(receivers);
        Ok(Step::Done)
    }
}

fn confirm(out: &mut Writer, what: &str, channel: Option<&Bytes>, count: usize) {
    out.push(3);
    out.bulk(what.as_bytes());
    match channel {
        Some(channel) => out.bulk(channel),
        None => out.null(),
    }
    out.int(i64::try_from(count).unwrap_or(i64::MAX));
}
