//! One connection's own state, which only its own worker touches.
//!
//! Owns: database, protocol, transaction, watches, subscriptions, reply mode. Does **not** own the socket (see
//! [`crate::connection`]) nor what other workers may see of a client (see [`crate::client`]).

use crate::client::{Client, flag};
use crate::command::{OwnedArgs, Row};
use crate::moving::Decoding;
use crate::replicas::{Feed, Wishes};
use std::collections::BTreeSet;
use std::sync::Arc;
use towline_resp::Proto;
use towline_spec::Command;
use towline_store::WatchFlag;

/// A command that waits for `EXEC`.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) command: &'static Command,
    pub(crate) row: &'static Row,
    pub(crate) args: OwnedArgs,
}

/// A transaction that is being put together.
#[derive(Debug, Default)]
pub(crate) struct Multi {
    pub(crate) queue: Vec<Queued>,
    /// A command was refused while queueing: `EXEC` will be, too.
    pub(crate) is_refused: bool,
    /// Bytes of the queued arguments.
    pub(crate) bytes: usize,
}

/// The keys that `EXEC` depends on.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) flag: Arc<WatchFlag>,
    /// `(database, key)`.
    pub(crate) keys: BTreeSet<(u8, Vec<u8>)>,
}

/// Whether replies are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    /// They are.
    #[default]
    On,
    /// They are not, until `CLIENT REPLY ON`.
    Off,
    /// The next command's is not.
    SkipNext,
    /// This command's is not.
    Skip,
}

/// Names that a client listens to.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    pub(crate) channels: BTreeSet<Vec<u8>>,
    pub(crate) patterns: BTreeSet<Vec<u8>>,
    pub(crate) shard_channels: BTreeSet<Vec<u8>>,
}

impl Subscriptions {
    /// Channels and patterns, as the replies of `SUBSCRIBE` count them.
    pub(crate) fn count(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0 && self.shard_channels.is_empty()
    }
}

/// `CLIENT TRACKING` of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracking {
    pub(crate) redirect: Option<u64>,
    pub(crate) is_broadcast: bool,
    pub(crate) prefixes: Vec<Vec<u8>>,
    pub(crate) is_opt_in: bool,
    pub(crate) is_opt_out: bool,
    pub(crate) is_no_loop: bool,
    /// `CLIENT CACHING` said so of the next command.
    pub(crate) caching: Option<bool>,
}

/// A connection's state.
#[derive(Debug)]
pub(crate) struct Session {
    /// What other workers see of this client.
    pub(crate) client: Arc<Client>,
    pub(crate) db: u8,
    pub(crate) proto: Proto,
    /// Whether commands are allowed: no password is set, or it was given.
    pub(crate) is_authenticated: bool,
    pub(crate) is_no_touch: bool,
    pub(crate) is_readonly: bool,
    /// Close once what is written is sent.
    pub(crate) is_closing: bool,
    pub(crate) reply: ReplyMode,
    pub(crate) multi: Option<Box<Multi>>,
    pub(crate) watch: Option<Box<Watch>>,
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    pub(crate) tracking: Option<Box<Tracking>>,
    pub(crate) is_monitor: bool,
    /// What it said with `REPLCONF`.
    pub(crate) wishes: Option<Box<Wishes>>,
    /// It is sent the data set and what happens to it.
    pub(crate) feed: Option<Arc<Feed>>,
    /// Whether that is to begin once the command's reply is written.
    pub(crate) is_feed_due: bool,
    /// Whether the command at hand was queued by `MULTI` and is run by `EXEC`.
    pub(crate) is_in_exec: bool,
    /// `ASKING`: the next command, or the transaction that it begins, may use slots that are being imported.
    pub(crate) is_asking: bool,
    /// The value that the command at hand brings, which another thread makes of its payload.
    pub(crate) decoding: Option<Arc<Decoding>>,
}

impl Session {
    /// The state of a connection that was just accepted.
    pub(crate) fn new(client: Arc<Client>, is_authenticated: bool) -> Self {
        Self {
            client,
            db: 0,
            proto: Proto::Resp2,
            is_authenticated,
            is_no_touch: false,
            is_readonly: false,
            is_closing: false,
            reply: ReplyMode::On,
            multi: None,
            watch: None,
            subscriptions: None,
            tracking: None,
            is_monitor: false,
            wishes: None,
            feed: None,
            is_feed_due: false,
            is_in_exec: false,
            is_asking: false,
            decoding: None,
        }
    }

    /// From now on the connection speaks this protocol.
    pub(crate) fn speak(&mut self, proto: Proto) {
        self.proto = proto;
        self.client.set_flag(flag::RESP3, proto == Proto::Resp3);
    }

    /// Whether only (un)subscribing commands, `PING`, `QUIT` and `RESET` are allowed: RESP2 cannot tell a message from a reply.
    pub(crate) fn is_subscriber(&self) -> bool {
        self.proto == Proto::Resp2
            && self.subscriptions.as_ref().is_some_and(|subscriptions| !subscriptions.is_empty())
    }

    /// Whether commands may be worked off in batches: nothing about this connection needs a look between two commands.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_authenticated
            && self.multi.is_none()
            && self.subscriptions.is_none()
            && self.tracking.is_none()
            && self.reply == ReplyMode::On
            && !self.is_monitor
            && !self.is_asking
    }
}
