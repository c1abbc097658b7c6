//! Why a run of the command line client stops, or a command has no answer.
//!
//! Owns the one-line texts, each with what to do. Does not own error replies: those are answers and are shown as such.

use std::io;

use towline_resp::frame::FrameError;

/// What went wrong between the keyboard and the reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// No connection could be made; retryable.
    #[error("Could not connect to Redis at {address}: {reason} (is the server up? -h, -p and -s say where)")]
    Connect {
        /// Host and port, or a socket's path.
        address: String,
        /// The system's words.
        reason: String,
    },
    /// The server hung up before it answered; whether the command ran is unknown.
    #[error("Server closed the connection before it replied; the command may have been executed")]
    Closed,
    /// The server's bytes are no RESP; is it another service's port?
    #[error("Protocol error: {0} (is there a Redis-compatible server on this port?)")]
    Protocol(#[from] FrameError),
    /// The socket failed after it was connected.
    #[error("Connection failed: {}; the command may have been executed", reason(.0))]
    Socket(io::Error),
    /// The user pressed Ctrl-C while a reply was awaited.
    #[error("Interrupted")]
    Interrupted,
    /// Standard output was closed by its reader: nobody is left to tell.
    #[error("Standard output is closed")]
    OutputClosed,
    /// Standard input or output, a file or a terminal failed.
    #[error("{what}: {}", reason(.source))]
    Local {
        /// What was being done.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The server refused a command that a mode needs.
    #[error("{command}: {}", one_line(text))]
    Reply {
        /// The command's name.
        command: &'static str,
        /// The error reply.
        text: bytes::Bytes,
    },
    /// A reply has another shape than the command's documentation says.
    #[error("{command}: unexpected reply; is this a Redis-compatible server?")]
    UnexpectedReply {
        /// The command's name.
        command: &'static str,
    },
    /// What was asked for cannot be done; the text says what to do instead.
    #[error("{0}")]
    Usage(String),
}

/// A server's text as one line that does nothing to a terminal.
pub(crate) fn one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

/// The system's message without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
