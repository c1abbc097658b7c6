//! What the engine knew about a command when it failed.
//!
//! Owns the record and its text. Does not own the measuring: the bridge fills it in.

use std::fmt;
use std::time::Duration;

use crate::error::{LostCause, Stage};
use crate::generation::Generation;
use crate::handshake::HandshakeError;

/// The circumstances of a failure, for a log line or a bug report. Names of commands are in it, keys and values never.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The command's name, without arguments; `MULTI` for a transaction, `?` if its bytes are gone.
    pub command: Box<str>,
    /// How far the command had come.
    pub stage: Stage,
    /// How long it waited in the backlog, in milliseconds; earlier attempts included, if it was sent again.
    pub queued: Duration,
    /// How long its bytes waited in the write buffer, for the kernel to take them.
    pub staged: Duration,
    /// How long the server had it, or the network.
    pub on_wire: Duration,
    /// Commands in the backlog at the time of the failure.
    pub backlog_commands: usize,
    /// Bytes of those.
    pub backlog_bytes: usize,
    /// Commands that waited for replies.
    pub in_flight_commands: usize,
    /// The command whose reply was due next, which the others wait for.
    pub head_of_line: Option<HeadOfLine>,
    /// How long ago the connection last yielded a byte; `None` without a connection.
    pub read_age: Option<Duration>,
    /// Why nothing was connected; `None` if something was.
    pub down: Option<Down>,
    /// The connection that the command was given to; `None` if it never was.
    pub generation: Option<Generation>,
    /// Where to look first.
    pub blame: Blame,
}

/// Nothing is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Down {
    /// For how long.
    pub since: Duration,
    /// The latest reason.
    pub trouble: Trouble,
}

/// Why nothing is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// The first connection is not there yet, and no dial has failed.
    NeverConnected,
    /// The last dial yielded no socket.
    Dial(std::io::ErrorKind),
    /// The last handshake did not succeed.
    Handshake(HandshakeError),
    /// The connection was lost and no dial has failed since.
    Lost(LostCause),
}

/// The command at the head of the in-flight queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadOfLine {
    /// Its name, without arguments.
    pub name: Box<str>,
    /// How long ago its batch was sent.
    pub age: Duration,
}

/// Who is to blame, as far as the engine can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Blame {
    /// The server answers others or trickles bytes: it is slow, or the head-of-line command is.
    ServerSlow,
    /// Nothing at all comes from the peer.
    NetworkSilent,
    /// This process came too late to its own timer to judge anybody else.
    RuntimeStarved,
    /// The command waited for a connection.
    NotConnected,
    /// No sign points anywhere.
    Unknown,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServerSlow => "the server is slow",
            Self::NetworkSilent => "the network is silent",
            Self::RuntimeStarved => "this process is starved of CPU time",
            Self::NotConnected => "nothing is connected",
            Self::Unknown => "cause unknown",
        })
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverConnected => f.write_str("never connected"),
            Self::Dial(kind) => write!(f, "last dial: {kind}"),
            Self::Handshake(error) => write!(f, "last handshake: {error}"),
            Self::Lost(cause) => write!(f, "connection lost: {cause}"),
        }
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was {}: {}", self.command, self.stage, self.blame)?;
        if let Some(down) = &self.down {
            write!(f, ", down for {} ({})", Short(down.since), down.trouble)?;
        }
        write!(
            f,
            "; {} queued, {} staged, {} on the wire",
            Short(self.queued),
            Short(self.staged),
            Short(self.on_wire),
        )?;
        if let Some(age) = self.read_age {
            write!(f, "; last read {} ago", Short(age))?;
        }
        write!(f, "; {} in flight", self.in_flight_commands)?;
        if let Some(head) = &self.head_of_line {
            write!(f, ", first is {} for {}", head.name, Short(head.age))?;
        }
        let plural = if self.backlog_commands == 1 { "" } else { "s" };
        write!(f, "; backlog {} command{plural}, {} bytes", self.backlog_commands, self.backlog_bytes)?;
        match self.generation {
            Some(generation) => write!(f, "; connection {generation}"),
            None => Ok(()),
        }
    }
}

/// A duration as a person reads it: three digits at most, and no nanoseconds.
pub(crate) struct Short(pub(crate) Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        match micros {
            0 => f.write_str("0 ms"),
            1..10_000 => write!(f, "{}.{} ms", micros / 1000, micros % 1000 / 100),
            10_000..1_000_000 => write!(f, "{} ms", micros / 1000),
            1_000_000..10_000_000 => {
                write!(f, "{}.{:02} s", micros / 1_000_000, micros % 1_000_000 / 10_000)
            }
            _ => write!(f, "{} s", micros / 1_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind, Sent};

    fn diagnosis() -> Diagnosis {
        Diagnosis {
            command: "GET".into(),
            stage: Stage::OnWire,
            queued: Duration::from_millis(3),
            staged: Duration::ZERO,
            on_wire: Duration::from_micros(800_700),
            backlog_commands: 7,
            backlog_bytes: 700,
            in_flight_commands: 2,
            head_of_line: Some(HeadOfLine { name: "KEYS".into(), age: Duration::from_millis(1250) }),
            read_age: Some(Duration::from_millis(12)),
            down: None,
            generation: Some(Generation(4)),
            blame: Blame::ServerSlow,
        }
    }

    #[test]
    fn a_timeout_says_what_a_person_needs() {
        let error = Error::new(ErrorKind::Deadline, Sent::Maybe).with_diagnosis(diagnosis());
        assert_eq!(
            error.to_string(),
            "deadline passed; the command was sent and may have run (GET was on the wire: the server is slow; 3.0 ms \
             queued, 0 ms staged, 800 ms on the wire; last read 12 ms ago; 2 in flight, first is KEYS for 1.25 s; \
             backlog 7 commands, 700 bytes; connection g4)"
        );
    }

    #[test]
    fn a_timeout_without_a_connection_says_why_there_is_none() {
        let diagnosis = Diagnosis {
            stage: Stage::Queued,
            queued: Duration::from_secs(5),
            on_wire: Duration::ZERO,
            in_flight_commands: 0,
            head_of_line: None,
            read_age: None,
            down: Some(Down {
                since: Duration::from_secs(61),
                trouble: Trouble::Dial(std::io::ErrorKind::ConnectionRefused),
            }),
            generation: None,
            blame: Blame::NotConnected,
            ..diagnosis()
        };
        let error = Error::new(ErrorKind::Deadline, Sent::No).with_diagnosis(diagnosis);
        assert_eq!(
            error.to_string(),
            "deadline passed; the command was not sent (GET was queued: nothing is connected, down for 61 s (last \
             dial: connection refused); 5.00 s queued, 0 ms staged, 0 ms on the wire; 0 in flight; backlog 7 \
             commands, 700 bytes)"
        );
    }

    #[test]
    fn durations_are_short() {
        let texts = [0, 40, 9_999, 10_000, 999_999, 1_000_000, 9_999_999, 10_000_000]
            .map(|micros| Short(Duration::from_micros(micros)).to_string());
        assert_eq!(texts, ["0 ms", "0.0 ms", "9.9 ms", "10 ms", "999 ms", "1.00 s", "9.99 s", "10 s"]);
    }
}
