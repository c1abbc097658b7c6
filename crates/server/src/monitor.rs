//! `MONITOR`: clients that see every command.
//!
//! Owns: the list of monitors and the line they are sent. Does **not** own which arguments nobody may see (see
//! [`crate::slowlog`]).

use crate::client::{Client, flag};
use crate::command::{Args, Ctx};
use crate::session::Session;
use crate::shared::Shared;
use crate::slowlog::first_secret;
use bytes::Bytes;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use towline_spec::{Command, Flags};

/// Clients that monitor.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    clients: Mutex<Vec<Arc<Client>>>,
}

impl Monitors {
    /// Whether there is any.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    fn clients(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session sees every command from now on.
pub(crate) fn add(shared: &Shared, session: &mut Session) {
    if session.is_monitor {
        return;
    }
    session.is_monitor = true;
    session.client.set_flag(flag::MONITOR, true);
    shared.monitors.clients().push(Arc::clone(&session.client));
    shared.monitors.count.fetch_add(1, Ordering::Relaxed);
}

/// The session no longer sees commands.
pub(crate) fn remove(shared: &Shared, session: &mut Session) {
    if !session.is_monitor {
        return;
    }
    session.is_monitor = false;
    session.client.set_flag(flag::MONITOR, false);
    shared.monitors.clients().retain(|client| client.id != session.client.id);
    shared.monitors.count.fetch_sub(1, Ordering::Relaxed);
}

/// Shows a command that was just executed, and whose slots are held, to all monitors. Commands for administrators are not
/// shown.
#[cold]
pub(crate) fn feed(ctx: &mut Ctx<'_>, command: &'static Command, args: Args<'_>) {
    if command.flags.intersects(Flags::SKIP_MONITOR.union(Flags::ADMIN)) {
        return;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let db = ctx.ks.db();
    let client = &ctx.session().client;
    let mut line = Vec::new();
    let addresses = &client.addresses;
    let (kind, place) = match addresses.local.strip_suffix(":0") {
        Some(path) if addresses.is_unix => ("unix:", path),
        _ => ("", &*addresses.peer),
    };
    let seconds = now.as_secs();
    let micros = now.subsec_micros();
    // Writing into memory does not fail.
    let _ = write!(line, "+{seconds}.{micros:06} [{db} {kind}{place}]");
    let secret = first_secret(command, args);
    for (index, arg) in args.iter().enumerate() {
        line.push(b' ');
        quote(&mut line, if secret.is_some_and(|secret| index >= secret) { b"(redacted)" } else { arg });
    }
    line.extend_from_slice(b"\r\n");
    let line = Bytes::from(line);
    for monitor in ctx.server.monitors.clients().iter() {
        monitor.push(line.clone());
    }
}

/// Appends bytes in quotes, so that they fit on a line and can be told from each other.
pub(crate) fn quote(line: &mut Vec<u8>, bytes: &[u8]) {
    line.push(b'"');
    for &byte in bytes {
        let short = match byte {
            b'"' | b'\\' => Some(byte),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            b'\t' => Some(b't'),
            0x07 => Some(b'a'),
            0x08 => Some(b'b'),
            _ => None,
        };
        match short {
            Some(letter) => line.extend_from_slice(&[b'\\', letter]),
            None if (b' '..=b'~').contains(&byte) => line.push(byte),
            None => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                line.extend_from_slice(&[
                    b'\\',
                    b'x',
                    HEX[usize::from(byte >> 4)],
                    HEX[usize::from(byte & 15)],
                ]);
            }
        }
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_keeps_a_line_a_line() {
        let mut line = Vec::new();
        quote(&mut line, b"a \"b\" \\ \n\r\t\x07\x08\x00\xff~");
        assert_eq!(line, br#""a \"b\" \\ \n\r\t\a\b\x00\xff~""#);
    }
}
