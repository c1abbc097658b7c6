//! What happened, line by line: a hash of all of it always, the last lines on request.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use towline_sansio::Instant;

/// Lines kept for the report of a failure.
const LINES_MAX: usize = 50;

/// A running FNV-1a hash of everything written to it.
#[derive(Debug)]
struct Hash(u64);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

/// How much of a trace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The hash only: the usual run.
    Hash,
    /// The last lines too.
    Tail,
    /// Every line.
    All,
}

/// The trace of one history.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: Hash,
    keep: Keep,
    lines: VecDeque<String>,
}

impl Trace {
    /// An empty trace.
    pub(crate) const fn new(keep: Keep) -> Self {
        Self { hash: Hash(0xcbf2_9ce4_8422_2325), keep, lines: VecDeque::new() }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, now: Instant, what: fmt::Arguments<'_>) {
        let micros = now.nanos() / 1000;
        // Writing to the hash cannot fail.
        let _ = writeln!(self.hash, "{micros} {what}");
        if self.keep == Keep::Hash {
            return;
        }
        if self.keep == Keep::Tail && self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:>6}.{:03} ms  {what}", micros / 1000, micros % 1000));
    }

    /// The hash and the kept lines.
    pub(crate) fn finish(self) -> (u64, Vec<String>) {
        (self.hash.0, self.lines.into())
    }
}
