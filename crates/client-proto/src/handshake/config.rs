//! What a connection shall be before its first command.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

/// The choices of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeConfig {
    /// The protocol. Default: RESP3 where the server knows it.
    pub protocol: ProtocolChoice,
    /// What answers at the other end. Default: a server.
    pub peer: Peer,
    /// Who the connection is. Default: nobody, so the server's default user.
    pub credentials: Option<Credentials>,
    /// The database. Default 0, which costs no command since every connection starts there.
    pub database: u32,
    /// Whether a replica of a cluster shall answer reads itself (`READONLY`). Default: no. A server without
    /// cluster mode refuses the command, which is recorded and does no harm.
    pub is_read_only: bool,
    /// Whether the server must be a primary (`ROLE`). Default: no. A replica, or a sentinel, ends the attempt; a server whose
    /// role the user may not know does not.
    pub is_primary_required: bool,
    /// The connection's name in `CLIENT LIST`. Default: none. A name that the server refuses is recorded only.
    pub client_name: Option<Box<str>>,
    /// The library's name in `CLIENT LIST`. Default `towline`. Servers before 7.2 refuse it, which is ignored.
    pub library_name: Option<Box<str>>,
    /// The library's version in `CLIENT LIST`. Default: this crate's.
    pub library_version: Option<Box<str>>,
    /// Whether to ask for notifications of maintenance, and how. Default: not.
    pub maintenance: Option<MaintenanceRequest>,
    /// Whether the server is to announce changes of what this connection reads, and how. Default: not.
    pub tracking: Option<Tracking>,
    /// Further commands, sent in this order before the tracer. At most 65536 of them are sent.
    pub extra: Vec<ExtraCommand>,
    /// How long the replies may take in total. Default 5 s: longer than a server takes to fork or to load a small
    /// data set, shorter than what a person waits for.
    pub timeout: Duration,
}

impl Default for HandshakeConfig {
    fn default() -> Self {
        Self {
            protocol: ProtocolChoice::default(),
            peer: Peer::default(),
            credentials: None,
            database: 0,
            is_read_only: false,
            is_primary_required: false,
            client_name: None,
            library_name: Some("towline".into()),
            library_version: Some(env!("CARGO_PKG_VERSION").into()),
            maintenance: None,
            tracking: None,
            extra: Vec::new(),
            timeout: Duration::from_secs(5),
        }
    }
}

/// Which protocol to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ProtocolChoice {
    /// RESP3, or RESP2 with a server that refuses `HELLO 3`.
    #[default]
    Resp3OrResp2,
    /// RESP3; a server that refuses it is an error.
    Resp3,
    /// RESP2. `HELLO 2` is still sent, for what it tells about the server; its refusal is ignored.
    Resp2,
}

/// What answers at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Peer {
    /// A server that knows `HELLO` and `CLIENT`, or answers an error to what it does not know.
    #[default]
    Server,
    /// A proxy that closes the connection at commands it does not know, as twemproxy does: no `HELLO`, no
    /// `CLIENT`, and a `PING` without argument as the tracer. Speaks RESP2.
    Proxy,
}

/// How to ask for notifications of maintenance (`CLIENT MAINT_NOTIFICATIONS ON`). Needs RESP3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MaintenanceRequest {
    /// The form in which successors are to be named, as sent; `None`: the server chooses.
    pub moving_endpoint_type: Option<&'static str>,
    /// Whether a refusal ends the attempt. Otherwise it is recorded only.
    pub is_required: bool,
}

/// Which changes the server announces (`CLIENT TRACKING ON`). Needs RESP3; a refusal is recorded only. See
/// <https://redis.io/docs/latest/develop/reference/client-side-caching/>.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tracking {
    /// Those of keys that this connection reads by commands which follow `CLIENT CACHING YES` (`OPTIN`).
    OptIn,
    /// Those of all keys that begin with one of these prefixes, whoever reads them (`BCAST`). None: all keys.
    Broadcast(Vec<Bytes>),
}

impl Tracking {
    /// The command.
    pub(super) fn command(&self) -> Vec<&[u8]> {
        let mut args: Vec<&[u8]> = vec![b"CLIENT", b"TRACKING", b"ON"];
        match self {
            Self::OptIn => args.push(b"OPTIN"),
            Self::Broadcast(prefixes) => {
                args.push(b"BCAST");
                args.extend(prefixes.iter().flat_map(|prefix| [b"PREFIX", &prefix[..]]));
            }
        }
        args
    }
}

/// A user and a password. The password is never in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Option<Box<str>>,
    password: Bytes,
}

/// A command that belongs to the start of every connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraCommand {
    /// The command and its arguments.
    pub args: Vec<Bytes>,
    /// Whether its refusal ends the attempt. Otherwise it is recorded only.
    pub is_required: bool,
}

impl Credentials {
    /// The password of the server's default user.
    pub fn password(password: impl Into<Bytes>) -> Self {
        Self { user: None, password: password.into() }
    }

    /// A user of the server's access control lists.
    pub fn user(user: impl Into<Box<str>>, password: impl Into<Bytes>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// The user's name; `None` for the default user.
    pub fn user_name(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The command. Without a user it has the short form, which servers before 6.0 know as well.
    pub(super) fn auth(&self) -> Vec<&[u8]> {
        match &self.user {
            Some(user) => vec![b"AUTH", user.as_bytes(), &self.password],
            None => vec![b"AUTH", &self.password],
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}
