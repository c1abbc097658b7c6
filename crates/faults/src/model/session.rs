//! What the model server knows of one connection.
//!
//! Owns the state; what changes it are commands.

use std::collections::BTreeSet;

use bytes::Bytes;
use towline_resp::Proto;
use towline_sansio::Instant;
use towline_spec::Command;

use super::keyspace::DbKey;
use super::maintenance::{EndpointForm, EndpointId};
use super::reader::RequestReader;

/// Which of the next replies are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReplyMode {
    #[default]
    On,
    Off,
    /// The next command's reply is not sent, those after it are.
    SkipNext,
}

/// Commands between `MULTI` and `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) queue: Vec<(&'static Command, Vec<Bytes>)>,
    /// One of its commands was refused, so `EXEC` will be.
    pub(super) is_aborted: bool,
}

/// What `CLIENT TRACKING ON` asked for.
#[derive(Debug, Default)]
pub(super) struct Tracking {
    pub(super) is_broadcast: bool,
    pub(super) is_without_own: bool,
    /// With broadcasts: the keys that count begin with one of these, if there are any.
    pub(super) prefixes: Vec<Bytes>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session {
    /// What `CLIENT ID` answers: rises with every connection, also across restarts.
    pub(super) client_id: u64,
    pub(super) proto: Proto,
    pub(super) db: u32,
    pub(super) is_authenticated: bool,
    pub(super) name: Bytes,
    pub(super) reply_mode: ReplyMode,
    pub(super) reader: RequestReader,
    /// Commands executed since bytes last arrived.
    pub(super) batch_count: u64,
    pub(super) transaction: Option<Transaction>,
    pub(super) watched: BTreeSet<DbKey>,
    /// A watched key was changed.
    pub(super) is_dirty: bool,
    pub(super) channels: BTreeSet<Bytes>,
    pub(super) patterns: BTreeSet<Bytes>,
    pub(super) shard_channels: BTreeSet<Bytes>,
    pub(super) tracking: Option<Tracking>,
    /// The address that it was opened to.
    pub(super) endpoint: EndpointId,
    /// It wants to be told of maintenance, and of successors in this form.
    pub(super) notified: Option<EndpointForm>,
    /// It was opened to an endpoint that reads nothing and says nothing.
    pub(super) is_silent: bool,
    pub(super) is_blocked: bool,
    /// When the last output leaves: what follows leaves no earlier.
    pub(super) last_due: Instant,
    /// Bytes of output that wait to be taken.
    pub(super) output_bytes: usize,
}

impl Session {
    pub(super) fn new(client_id: u64, is_authenticated: bool) -> Self {
        Self {
            client_id,
            proto: Proto::Resp2,
            db: 0,
            is_authenticated,
            name: Bytes::new(),
            reply_mode: ReplyMode::On,
            reader: RequestReader::default(),
            batch_count: 0,
            transaction: None,
            watched: BTreeSet::new(),
            is_dirty: false,
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            shard_channels: BTreeSet::new(),
            tracking: None,
            endpoint: EndpointId::DEFAULT,
            notified: None,
            is_silent: false,
            is_blocked: false,
            last_due: Instant::ZERO,
            output_bytes: 0,
        }
    }

    /// Whether only commands about subscriptions are allowed: RESP2 cannot tell their pushes from replies.
    pub(super) fn is_confined(&self) -> bool {
        let count = self.channels.len() + self.patterns.len() + self.shard_channels.len();
        self.proto == Proto::Resp2 && count > 0
    }

    /// Forgets what was watched.
    pub(super) fn unwatch(&mut self) {
        self.watched.clear();
        self.is_dirty = false;
    }

    /// Back to the state of a new connection, but for its number and what arrived (`RESET`).
    pub(super) fn reset(&mut self, is_authenticated: bool) {
        let fresh = Self::new(self.client_id, is_authenticated);
        let old = std::mem::replace(self, fresh);
        self.reader = old.reader;
        self.endpoint = old.endpoint;
        self.batch_count = old.batch_count;
        self.last_due = old.last_due;
        self.output_bytes = old.output_bytes;
    }
}
