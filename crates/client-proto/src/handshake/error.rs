//! How the start of a connection fails.

use std::fmt;

use crate::error::LostCause;
use crate::server_error::{ServerClass, ServerError};

/// One command of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Step {
    /// `AUTH`: credentials.
    Auth,
    /// `HELLO`: the protocol version.
    Hello,
    /// `SELECT`: the database.
    Select,
    /// `READONLY`: reads from a replica of a cluster.
    ReadOnly,
    /// `ROLE`: primary or replica.
    Role,
    /// `CLIENT SETNAME`: the connection's name.
    SetName,
    /// `CLIENT SETINFO`: the library's name or version.
    SetInfo,
    /// `CLIENT ID`: the connection's number on the server.
    ClientId,
    /// `CLIENT MAINT_NOTIFICATIONS`: notifications of maintenance.
    Maintenance,
    /// `CLIENT TRACKING`: announcements of changes.
    Tracking,
    /// A further command of the configuration, by its place there.
    Extra(u16),
    /// The command that proves that replies line up.
    Tracer,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auth => "AUTH",
            Self::Hello => "HELLO",
            Self::Select => "SELECT",
            Self::ReadOnly => "READONLY",
            Self::Role => "ROLE",
            Self::SetName => "CLIENT SETNAME",
            Self::SetInfo => "CLIENT SETINFO",
            Self::ClientId => "CLIENT ID",
            Self::Maintenance => "CLIENT MAINT_NOTIFICATIONS",
            Self::Tracking => "CLIENT TRACKING",
            Self::Extra(index) => return write!(f, "extra command {index}"),
            Self::Tracer => "the tracer",
        })
    }
}

/// Why a connection could not be put to use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The server refused the credentials. The configuration's fault; not retryable with the same ones.
    #[error("the server refuses the credentials: {0}")]
    WrongPassword(ServerError),
    /// The user may not run a command of the handshake. The configuration's fault; not retryable.
    #[error("the user lacks a permission: {0}")]
    NoPermission(ServerError),
    /// The server wants credentials and the configuration has none. Not retryable.
    #[error("the server requires credentials and none are configured: {0}")]
    AuthRequired(ServerError),
    /// The server left `AUTH` without a reply, which some versions do when they refuse it. Most likely the
    /// credentials are wrong; not retryable with the same ones.
    #[error("the server did not answer AUTH, most likely because it refuses the credentials")]
    AuthUnanswered,
    /// Notifications of maintenance are required and the connection speaks RESP2, which has no room for them. The
    /// configuration's fault, or an old server; not retryable.
    #[error("notifications of maintenance are required, and this server speaks RESP2 only")]
    NoMaintenance,
    /// The configured database is not there. The configuration's fault; not retryable.
    #[error("the server has no database {database}: {answer}")]
    NoSuchDatabase {
        /// The configured number.
        database: u32,
        /// What the server said.
        answer: ServerError,
    },
    /// The server does not speak the one protocol that the configuration allows. Not retryable.
    #[error("the server does not speak the configured protocol: {0}")]
    ProtocolRefused(ServerError),
    /// The server is up but does not serve yet: it loads its data, runs a long script, or waits for its primary
    /// or its cluster. Retryable.
    #[error("the server does not serve yet: {0}")]
    Busy(ServerError),
    /// The server is not the primary that it was said to be: it was one, or will be one in a moment. Retryable, most likely
    /// elsewhere.
    #[error("the server is no primary but says `{role}`")]
    NotPrimary {
        /// What it calls itself: `slave`, `replica`, `sentinel`.
        role: Box<str>,
    },
    /// The server has as many clients as it may. Retryable.
    #[error("the server has too many clients: {0}")]
    TooManyClients(ServerError),
    /// The server refused a command of the handshake for another reason. Not retryable.
    #[error("the server refuses {step}: {answer}")]
    Refused {
        /// The command.
        step: Step,
        /// What the server said.
        answer: ServerError,
    },
    /// Replies do not line up with commands. The peer's fault; retryable on another connection.
    #[error("replies do not line up with the commands of the handshake")]
    Desync,
    /// No reply came in time. Retryable.
    #[error("no reply to {step} in time")]
    Timeout {
        /// The first command without a reply.
        step: Step,
    },
    /// The connection ended before the handshake was through. Retryable.
    #[error("the connection was lost before the reply to {step}: {cause}")]
    Lost {
        /// The first command without a reply.
        step: Step,
        /// How it ended.
        cause: LostCause,
    },
}

impl HandshakeError {
    /// Whether another attempt with the same configuration may succeed.
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Busy(_)
                | Self::NotPrimary { .. }
                | Self::TooManyClients(_)
                | Self::Desync
                | Self::Timeout { .. }
                | Self::Lost { .. }
        )
    }

    /// Whether the credentials are the reason, so that a provider should be asked for new ones.
    pub const fn is_about_credentials(&self) -> bool {
        matches!(self, Self::WrongPassword(_) | Self::AuthRequired(_) | Self::AuthUnanswered)
    }

    /// What an error reply to `step` means, for a step that has no meaning of its own for it.
    pub fn from_answer(step: Step, answer: ServerError) -> Self {
        match (answer.class(), answer.code()) {
            (ServerClass::TooManyClients, _) => Self::TooManyClients(answer),
            (ServerClass::Answer, "NOAUTH") => Self::AuthRequired(answer),
            (ServerClass::Answer, "WRONGPASS") => Self::WrongPassword(answer),
            (ServerClass::Answer, "NOPERM") => Self::NoPermission(answer),
            (
                ServerClass::Loading
                | ServerClass::ScriptBusy
                | ServerClass::ClusterDown
                | ServerClass::MasterDown
                | ServerClass::TryAgain,
                _,
            ) => Self::Busy(answer),
            _ => Self::Refused { step, answer },
        }
    }
}
