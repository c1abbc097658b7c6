//! What the proxy and the injector say: one JSON object a line on standard output.
//!
//! Owns the fields and the writing, on a thread of its own, so that a slow reader of the output does not become one more
//! fault. Does not own what happens.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

/// Lines that wait for standard output. 4096: some hundred KiB, a second of a storm. More are dropped and counted.
const LINES_MAX: usize = 4096;

/// One line of the proxy.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum Event<'a> {
    /// The proxy is ready.
    Listening { listen: String, upstream: String, control: Option<String>, seed: u64, rules: &'a [String] },
    /// A rule's fault happened. A dial's fault has no direction and no offset.
    Fault {
        at_ms: f64,
        connection: u64,
        fault: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        direction: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        rule: &'a str,
    },
    /// The upstream could not be reached; the client was reset.
    Unreachable { at_ms: f64, connection: u64, error: String },
    /// Connections were cut, through the control port or by the script.
    Cut { at_ms: f64, connections: usize, how: &'static str },
    /// Other rules are in force, by the control port or by the script.
    Rules { at_ms: f64, rules: &'a [String], open: bool },
    /// The script has done its last step.
    ScriptEnded { at_ms: f64, steps: usize },
    /// The proxy ends.
    Stopped { at_ms: f64, stats: &'a super::shared::Snapshot },
}

/// Milliseconds with three digits behind the point.
pub(super) fn ms(since_start: Duration) -> f64 {
    since_start.as_micros() as f64 / 1000.0
}

/// The way to standard output.
#[derive(Debug)]
pub(super) struct Report {
    lines: SyncSender<Vec<u8>>,
    dropped: AtomicU64,
}

/// The thread that writes.
#[derive(Debug)]
pub(super) struct Writing(JoinHandle<()>);

impl Writing {
    /// Waits until everything is written. The report has to be dropped first.
    pub(super) fn finish(self) {
        // A panic there has been printed, and nothing depends on the output.
        let _ = self.0.join();
    }
}

impl Report {
    /// Starts the thread that writes.
    ///
    /// # Errors
    /// There are no more threads.
    pub(super) fn start() -> std::io::Result<(Self, Writing)> {
        let (lines, written) = sync_channel::<Vec<u8>>(LINES_MAX);
        let thread = std::thread::Builder::new().name("report".into()).spawn(move || {
            let mut out = std::io::stdout();
            for line in written {
                // Nobody reads any more: the proxy goes on all the same.
                if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                    return;
                }
            }
        })?;
        Ok((Self { lines, dropped: AtomicU64::new(0) }, Writing(thread)))
    }

    /// Writes one line.
    pub(super) fn line(&self, event: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        if self.lines.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that nobody was quick enough to read.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
