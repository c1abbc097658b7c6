//! How a command fails, and what its caller then knows.
//!
//! Owns the error type of the client: what happened, and whether the server may have run the command. Does not own
//! the decision to try again (`retry`) nor the measuring of circumstances (the bridge fills in [`Diagnosis`]).

use std::borrow::Cow;
use std::fmt;

use towline_resp::frame::FrameError;

use crate::diagnosis::{Diagnosis, Short};
use crate::handshake::HandshakeError;
use crate::server_error::ServerError;

/// Whether the server may have run a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sent {
    /// Not all of its bytes left: it was not executed, for certain.
    No,
    /// The kernel took its last byte and no reply came: it ran, or it did not.
    Maybe,
    /// The server replied.
    Answered,
}

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// In the backlog: no connection has it.
    Queued,
    /// In a connection's write buffer: the kernel has not taken its last byte.
    Staged,
    /// The kernel has taken its last byte.
    OnWire,
    /// Its reply was read.
    Answered,
}

impl Stage {
    /// What the stage says about execution.
    pub const fn sent(self) -> Sent {
        match self {
            Self::Queued | Self::Staged => Sent::No,
            Self::OnWire => Sent::Maybe,
            Self::Answered => Sent::Answered,
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => "queued",
            Self::Staged => "staged",
            Self::OnWire => "on the wire",
            Self::Answered => "answered",
        })
    }
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LostCause {
    /// The peer closed it in an orderly way.
    #[error("the peer closed it")]
    Closed,
    /// The peer, or something between, reset it.
    #[error("the peer reset it")]
    Reset,
    /// Reading or writing failed.
    #[error("input or output failed: {0}")]
    Io(std::io::ErrorKind),
    /// Nothing came from the peer although something was due.
    #[error("the peer fell silent")]
    Silent,
    /// The peer sent what is no RESP, or a reply that nobody asked for.
    #[error("the peer broke the protocol")]
    Protocol,
    /// The handshake did not succeed.
    #[error("its handshake failed")]
    Handshake,
    /// This client ended it on request.
    #[error("it was closed by this client")]
    Killed,
    /// A planned handoff retired it.
    #[error("it was retired by a planned move")]
    Planned,
}

impl From<std::io::ErrorKind> for LostCause {
    fn from(kind: std::io::ErrorKind) -> Self {
        use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
        match kind {
            UnexpectedEof => Self::Closed,
            ConnectionReset | ConnectionAborted | BrokenPipe => Self::Reset,
            // The kernel's own verdict (keepalive, TCP_USER_TIMEOUT) on a peer that acknowledges nothing.
            TimedOut => Self::Silent,
            other => Self::Io(other),
        }
    }
}

/// How the peer broke the protocol. Final for the connection: the stream cannot be resynchronised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// Its bytes are no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A reply came while no command waited for one.
    #[error("a reply came that no command waits for")]
    ReplyToNothing,
    /// A reply cannot belong to the command whose turn it is.
    #[error("replies do not line up with commands")]
    Misaligned,
}

/// What happened to a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server answered with an error. The caller's, the data's or the server's fault, see the code.
    #[error("{0}")]
    Server(ServerError),
    /// The command's deadline passed before its reply came.
    #[error("deadline passed")]
    Deadline,
    /// Its connection ended.
    #[error("connection lost: {0}")]
    Lost(LostCause),
    /// Nothing is connected and the policy does not wait.
    #[error("not connected, and the backlog policy does not wait")]
    Unavailable,
    /// The backlog holds as many bytes as it may.
    #[error("backlog is full ({bytes_max} bytes)")]
    BacklogFull {
        /// The bound in bytes.
        bytes_max: usize,
    },
    /// The command waited in the backlog for as long as the policy allows.
    #[error("waited in the backlog for too long")]
    BacklogAge,
    /// No connection could be set up, for a reason that waiting does not cure.
    #[error("handshake failed: {0}")]
    Handshake(HandshakeError),
    /// The peer broke the protocol.
    #[error("protocol error: {0}")]
    Protocol(ProtocolError),
    /// No connection came about within the time that the caller gave it. The text has the last dial's reason.
    #[error("{0}")]
    Connect(Box<str>),
    /// All connections that the client may lease were taken for as long as the caller could wait.
    #[error("all {leased_max} leased connections are taken")]
    LeasesTaken {
        /// The bound.
        leased_max: usize,
    },
    /// No node may answer a read by the policy that was asked for, and its bound on the lag: there is no replica, or none that
    /// follows closely enough. May pass.
    #[error("no node may answer this read by `{}`", policy.name())]
    NoReplica {
        /// The policy.
        policy: crate::routing::ReadFrom,
    },
    /// The client was shut down.
    #[error("client is closed")]
    Closed,
    /// The call makes no sense as it was made; the caller's mistake.
    #[error("misuse: {0}")]
    Misuse(Cow<'static, str>),
    /// The server's reply is not what the caller's type can be made of. The caller's mistake about the command, or
    /// a key that holds another type of data.
    #[error("{0}")]
    Shape(Box<str>),
    /// The caller gave the command up.
    #[error("cancelled")]
    Cancelled,
}

/// Why a command failed, and whether it may have run. One pointer wide.
///
/// Retryable or not is one question ([`Error::is_retryable`]), executed or not is another ([`Error::sent`]): the
/// first is only ever true where the second is certain.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    sent: Sent,
    diagnosis: Option<Box<Diagnosis>>,
}

impl Error {
    /// An error without a diagnosis.
    pub fn new(kind: ErrorKind, sent: Sent) -> Self {
        Self(Box::new(Inner { kind, sent, diagnosis: None }))
    }

    /// The server's error reply.
    pub fn server(error: ServerError) -> Self {
        Self::new(ErrorKind::Server(error), Sent::Answered)
    }

    /// A call that makes no sense. Nothing was sent.
    pub fn misuse(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Misuse(what.into()), Sent::No)
    }

    /// The same error with its circumstances.
    #[must_use]
    pub fn with_diagnosis(mut self, diagnosis: Diagnosis) -> Self {
        self.0.diagnosis = Some(Box::new(diagnosis));
        self
    }

    /// What happened.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// What happened, by value.
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the server may have run the command.
    pub fn sent(&self) -> Sent {
        self.0.sent
    }

    /// The circumstances, where the engine recorded them.
    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        self.0.diagnosis.as_deref()
    }

    /// Whether time ran out: the deadline, the backlog's bound on age, or the wait for a leased connection.
    pub fn is_timeout(&self) -> bool {
        matches!(self.kind(), ErrorKind::Deadline | ErrorKind::BacklogAge | ErrorKind::LeasesTaken { .. })
    }

    /// Whether the connection, or the lack of one, is the reason.
    pub fn is_connection_lost(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Lost(_)
                | ErrorKind::Unavailable
                | ErrorKind::Connect(_)
                | ErrorKind::Handshake(_)
                | ErrorKind::Protocol(_)
        )
    }

    /// Whether the same call may be made again without any risk and may succeed then: the command was not
    /// executed, for certain, and the trouble may pass. An error that leaves the execution open is never
    /// retryable in this sense; the caller knows whether the command may run twice, this error does not.
    pub fn is_retryable(&self) -> bool {
        match self.kind() {
            ErrorKind::Server(error) => self.sent() != Sent::Maybe && error.class().is_not_executed(),
            ErrorKind::Handshake(error) => self.sent() == Sent::No && error.is_retryable(),
            ErrorKind::Closed | ErrorKind::Misuse(_) | ErrorKind::Shape(_) | ErrorKind::Cancelled => false,
            ErrorKind::Deadline
            | ErrorKind::Lost(_)
            | ErrorKind::Unavailable
            | ErrorKind::Connect(_)
            | ErrorKind::BacklogFull { .. }
            | ErrorKind::BacklogAge
            | ErrorKind::LeasesTaken { .. }
            | ErrorKind::NoReplica { .. }
            | ErrorKind::Protocol(_) => self.sent() == Sent::No,
        }
    }

    /// The code of the server's error reply, such as `WRONGTYPE`; `None` if the server did not answer.
    pub fn code(&self) -> Option<&str> {
        match self.kind() {
            ErrorKind::Server(error) => Some(error.code()),
            _ => None,
        }
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        Self::server(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.kind(), f)?;
        match self.sent() {
            Sent::No => f.write_str("; the command was not sent")?,
            Sent::Maybe => f.write_str("; the command was sent and may have run")?,
            Sent::Answered => {}
        }
        if let (ErrorKind::Unavailable, Some(down)) =
            (self.kind(), self.diagnosis().and_then(|diagnosis| diagnosis.down.as_ref()))
        {
            return write!(f, " (down for {}: {})", Short(down.since), down.trouble);
        }
        match self.diagnosis() {
            Some(diagnosis) => write!(f, " ({diagnosis})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", self.kind())
            .field("sent", &self.sent())
            .field("diagnosis", &self.diagnosis())
            .finish()
    }
}

impl std::error::Error for Error {
    /// The typed cause below the kind; [`Error`]'s own text already includes what it says.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Server(error) => Some(error),
            ErrorKind::Lost(cause) => Some(cause),
            ErrorKind::Handshake(error) => Some(error),
            ErrorKind::Protocol(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn an_error_is_small() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
    }

    #[test]
    fn the_text_says_whether_the_command_may_have_run() {
        let lost = |sent| Error::new(ErrorKind::Lost(LostCause::Closed), sent).to_string();
        assert_eq!(lost(Sent::No), "connection lost: the peer closed it; the command was not sent");
        assert_eq!(
            lost(Sent::Maybe),
            "connection lost: the peer closed it; the command was sent and may have run"
        );
        assert_eq!(Error::server(ServerError::new("ERR no")).to_string(), "ERR no");
    }

    #[test]
    fn retryable_implies_that_nothing_was_executed() {
        let kinds = [
            ErrorKind::Deadline,
            ErrorKind::Lost(LostCause::Reset),
            ErrorKind::Unavailable,
            ErrorKind::BacklogFull { bytes_max: 1 },
            ErrorKind::BacklogAge,
            ErrorKind::Handshake(HandshakeError::Desync),
            ErrorKind::Protocol(ProtocolError::Misaligned),
        ];
        for kind in kinds {
            assert!(Error::new(kind.clone(), Sent::No).is_retryable(), "{kind:?}");
            assert!(!Error::new(kind.clone(), Sent::Maybe).is_retryable(), "{kind:?}");
        }
        for kind in [ErrorKind::Closed, ErrorKind::Misuse("x".into()), ErrorKind::Cancelled] {
            assert!(!Error::new(kind.clone(), Sent::No).is_retryable(), "{kind:?}");
        }
        assert!(Error::server(ServerError::new("LOADING Redis is loading")).is_retryable());
        assert!(!Error::server(ServerError::new("OOM command not allowed")).is_retryable());
    }

    #[test]
    fn causes_are_reached_through_source() {
        let error = Error::new(ErrorKind::Protocol(ProtocolError::Frame(FrameError::Streamed)), Sent::Maybe);
        let cause = error.source().expect("a protocol error has a cause");
        assert!(cause.downcast_ref::<ProtocolError>().is_some());
        assert!(error.is_connection_lost() && !error.is_timeout());
        assert_eq!(Error::server(ServerError::new("WRONGTYPE x")).code(), Some("WRONGTYPE"));
    }

    #[test]
    fn an_io_error_tells_closing_resetting_and_silence_apart() {
        use std::io::ErrorKind as Io;
        assert_eq!(LostCause::from(Io::UnexpectedEof), LostCause::Closed);
        assert_eq!(LostCause::from(Io::BrokenPipe), LostCause::Reset);
        assert_eq!(LostCause::from(Io::TimedOut), LostCause::Silent);
        assert_eq!(LostCause::from(Io::OutOfMemory), LostCause::Io(Io::OutOfMemory));
    }
}
