//! `--pipe`: mass insertion. Standard input is RESP already; it is sent as it is, and the replies are counted.
//!
//! Owns the end of the conversation: an `ECHO` of random bytes, whose reply cannot be mistaken for another. Sending and
//! counting go on at the same time, so neither side waits for the other with full buffers.

use std::io::Read as _;
use std::time::{Duration, Instant};

use towline_resp::frame::{Frame, encode_command};

use crate::cli::connection::Connection;
use crate::cli::error::{CliError, one_line};
use crate::cli::output::Output;
use crate::cli::session::Session;
use crate::cli::warn;

/// Bytes of input held at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Length of the marker, in bytes: enough that no other reply equals it by chance.
const MARKER_BYTES: usize = 20;

/// How a mass insertion goes.
#[derive(Debug)]
struct Pipe {
    output: Output,
    errors: u64,
    replies: u64,
    is_confirmed: bool,
}

/// Sends standard input and counts the replies; says whether any was an error.
///
/// # Errors
/// The connection broke, the server did not answer within `patience` after everything was sent, or a stream failed.
pub(crate) fn run(session: &mut Session, patience: Option<Duration>) -> Result<bool, CliError> {
    let marker = random_marker()?;
    let output = session.output().clone();
    let mut pipe = Pipe { output, errors: 0, replies: 0, is_confirmed: false };
    let connection = session.connect()?;
    connection.set_nonblocking()?;
    let outcome = pipe.transfer(connection, &marker, patience);
    pipe.output.line(&format!("errors: {}, replies: {}", pipe.errors, pipe.replies))?;
    outcome?;
    Ok(pipe.errors > 0)
}

impl Pipe {
    fn transfer(
        &mut self,
        connection: &mut Connection,
        marker: &[u8],
        patience: Option<Duration>,
    ) -> Result<(), CliError> {
        let mut input = std::io::stdin().lock();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            // Standard input may be a slow pipe: replies that come meanwhile wait in the system's buffers.
            let count = input
                .read(&mut chunk)
                .map_err(|source| CliError::Local { what: "standard input", source })?;
            if count == 0 {
                break;
            }
            self.send(connection, &chunk[..count], marker)?;
        }
        let mut end = Vec::new();
        // The line end before the marker closes an inline command that has none; elsewhere it is ignored.
        end.extend_from_slice(b"\r\n");
        encode_command(&[b"ECHO", marker], &mut end);
        self.send(connection, &end, marker)?;
        self.output.line("All data transferred. Waiting for the last reply...")?;
        while !self.is_confirmed {
            let deadline = patience.map(|patience| Instant::now() + patience);
            if !connection.wait(false, deadline)?.can_read {
                let seconds = patience.unwrap_or_default().as_secs();
                return Err(CliError::Usage(format!(
                    "No replies for {seconds} seconds: exiting. Does the input end within a command? --pipe-timeout 0 waits for ever"
                )));
            }
            self.count(connection, marker)?;
        }
        self.output.line("Last reply received from server.")
    }

    /// Sends all of `bytes`, counting replies while the server takes none.
    fn send(&mut self, connection: &mut Connection, mut bytes: &[u8], marker: &[u8]) -> Result<(), CliError> {
        while !bytes.is_empty() {
            let ready = connection.wait(true, None)?;
            if ready.can_read {
                self.count(connection, marker)?;
            }
            if ready.can_write {
                bytes = &bytes[connection.write_some(bytes)?..];
            }
        }
        Ok(())
    }

    /// Counts the replies that are there.
    fn count(&mut self, connection: &mut Connection, marker: &[u8]) -> Result<(), CliError> {
        while let Some(frame) = connection.receive_ready()? {
            match frame {
                Frame::Push(_) => {}
                Frame::Bulk(bytes) if bytes == marker => self.is_confirmed = true,
                frame => {
                    self.replies += 1;
                    if let Some(text) = frame.as_error() {
                        self.errors += 1;
                        warn(&one_line(text));
                    }
                }
            }
        }
        Ok(())
    }
}

fn random_marker() -> Result<Vec<u8>, CliError> {
    let mut marker = vec![0; MARKER_BYTES];
    let mut filled = 0;
    while filled < marker.len() {
        filled += rustix::rand::getrandom(&mut marker[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|error| CliError::Local { what: "random bytes", source: error.into() })?;
    }
    Ok(marker)
}
