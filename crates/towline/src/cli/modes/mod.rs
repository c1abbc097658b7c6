//! What redis-cli does beside sending commands: watching, measuring, scanning, mass insertion.
//!
//! Owns the choice among the modes and what they share: the pages of `SCAN` and the shape of replies.

mod bigkeys;
mod latency;
pub(crate) mod pipe;
mod scan;
mod stat;

use bytes::Bytes;
use towline_resp::frame::Frame;

use super::error::CliError;
use super::options::{Mode, ScanOptions, Settings};
use super::session::Session;

use bigkeys::Size;
use latency::Course;

/// Runs the mode; the other ones (commands, lines, `--pipe`) have their own ways and do nothing here.
///
/// # Errors
/// What the server or the connection did.
pub(crate) fn run(session: &mut Session, settings: &Settings, mode: &Mode) -> Result<(), CliError> {
    match mode {
        Mode::Stat => stat::run(session, settings),
        Mode::Latency => latency::run(session, settings, Course::Total),
        Mode::LatencyHistory => latency::run(session, settings, Course::History),
        Mode::Scan(options) => scan::run(session, settings, options),
        Mode::BigKeys(options) => bigkeys::run(session, settings, options, Size::Members),
        Mode::MemKeys(options, samples) => {
            bigkeys::run(session, settings, options, Size::Memory { samples: *samples })
        }
        Mode::Command(_) | Mode::Lines | Mode::Pipe(_) => Ok(()),
    }
}

/// The pages of a `SCAN`.
#[derive(Debug)]
struct Pages {
    cursor: Bytes,
    options: ScanOptions,
    is_finished: bool,
}

impl Pages {
    fn new(options: &ScanOptions) -> Self {
        Self { cursor: Bytes::from_static(b"0"), options: options.clone(), is_finished: false }
    }

    /// The next page's keys, of which there may be none; `None` at the end.
    fn next(&mut self, session: &mut Session) -> Result<Option<Vec<Bytes>>, CliError> {
        if self.is_finished {
            return Ok(None);
        }
        let count = self.options.count.map(|count| count.to_string());
        let mut args: Vec<&[u8]> = vec![b"SCAN", &self.cursor];
        if let Some(pattern) = &self.options.pattern {
            args.extend([&b"MATCH"[..], pattern]);
        }
        if let Some(count) = &count {
            args.extend([&b"COUNT"[..], count.as_bytes()]);
        }
        if let Some(key_type) = &self.options.key_type {
            args.extend([&b"TYPE"[..], key_type.as_bytes()]);
        }
        let unexpected = || CliError::UnexpectedReply { command: "SCAN" };
        let Frame::Array(parts) = accepted("SCAN", session.request(&args)?)? else {
            return Err(unexpected());
        };
        let mut parts = parts.into_iter();
        let (Some(Frame::Bulk(cursor)), Some(Frame::Array(keys))) = (parts.next(), parts.next()) else {
            return Err(unexpected());
        };
        self.is_finished = &cursor[..] == b"0";
        self.cursor = cursor;
        let keys = keys.into_iter().map(|key| match key {
            Frame::Bulk(key) => Ok(key),
            _ => Err(unexpected()),
        });
        keys.collect::<Result<_, _>>().map(Some)
    }
}

/// The reply, unless it is an error.
fn accepted(command: &'static str, reply: Frame) -> Result<Frame, CliError> {
    match reply.as_error() {
        Some(text) => Err(CliError::Reply { command, text: text.clone() }),
        None => Ok(reply),
    }
}
