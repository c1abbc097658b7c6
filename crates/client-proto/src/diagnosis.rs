//! What the engine knew about a command when it failed.
//!
//! Owns the record and its text. Does not own the measuring: the bridge fills it in.

use std::fmt;
use std::time::Duration;

use crate::error::Stage;
use crate::generation::Generation;

/// The circumstances of a failure, for a log line or a bug report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// How far the command had come.
    pub stage: Stage,
    /// How long it waited in the backlog.
    pub queued: Duration,
    /// How long its bytes waited in the write buffer.
    pub staged: Duration,
    /// How long the server had it, or the kernel.
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
    /// The connection that the command was given to; `None` if it never was.
    pub generation: Option<Generation>,
    /// Where to look first.
    pub blame: Blame,
}

/// The command at the head of the in-flight queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadOfLine {
    /// Its name, without arguments.
    pub name: Box<str>,
    /// How long ago its last byte was sent.
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
    /// This process polled the connection too late to judge anybody else.
    RuntimeStarved,
    /// No sign points anywhere.
    Unknown,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServerSlow => "the server is slow",
            Self::NetworkSilent => "the network is silent",
            Self::RuntimeStarved => "this process is starved of CPU time",
            Self::Unknown => "cause unknown",
        })
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}; {:?} queued, {:?} staged, {:?} on the wire; backlog {} commands, {} bytes; {} in flight",
            self.stage,
            self.blame,
            self.queued,
            self.staged,
            self.on_wire,
            self.backlog_commands,
            self.backlog_bytes,
            self.in_flight_commands,
        )?;
        if let Some(head) = &self.head_of_line {
            write!(f, ", first is {} since {:?}", head.name, head.age)?;
        }
        if let Some(age) = self.read_age {
            write!(f, "; last read {age:?} ago")?;
        }
        match self.generation {
            Some(generation) => write!(f, "; connection {generation}"),
            None => f.write_str("; never on a connection"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_every_measure() {
        let diagnosis = Diagnosis {
            stage: Stage::OnWire,
            queued: Duration::from_millis(3),
            staged: Duration::ZERO,
            on_wire: Duration::from_millis(800),
            backlog_commands: 7,
            backlog_bytes: 700,
            in_flight_commands: 2,
            head_of_line: Some(HeadOfLine { name: "KEYS".into(), age: Duration::from_millis(900) }),
            read_age: Some(Duration::from_millis(900)),
            generation: Some(Generation(4)),
            blame: Blame::ServerSlow,
        };
        assert_eq!(
            diagnosis.to_string(),
            "on the wire: the server is slow; 3ms queued, 0ns staged, 800ms on the wire; backlog 7 commands, 700 \
             bytes; 2 in flight, first is KEYS since 900ms; last read 900ms ago; connection g4"
        );
    }
}
