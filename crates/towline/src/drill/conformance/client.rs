//! The checks of a client: a script of announcements, and what the client did after each.
//!
//! Owns the script. Does not own the server that plays it ([`super::scripted`]).
//!
//! The client under test sends ordinary commands all the time, on as many connections as it likes, and connects again when a
//! connection ends. It is moved from the first address to the second and back.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use towline_resp::frame::Frame;

use super::scripted::{OptIn, Scripted, Seen};
use super::verdict::{Outcome, Verdicts};

/// The window of each MOVING.
const WINDOW: Duration = Duration::from_secs(2);

/// How long the client may take to do what it does without being told to.
const REACTION: Duration = Duration::from_secs(5);

/// How long a reply is held back while the client moves.
const HELD: Duration = Duration::from_millis(300);

/// How early in the window a client may come back that has to wait for half of it: half, less what clocks differ.
const HALF_AT_LEAST: f64 = 0.45;

/// How long nothing must change for the harmless frames.
const UNDISTURBED: Duration = Duration::from_millis(700);

/// The time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The endpoint types that may be asked for.
const TYPES: [&str; 5] = ["internal-ip", "internal-fqdn", "external-ip", "external-fqdn", "none"];

/// The script's addresses.
#[derive(Debug, Clone, Copy)]
struct Places {
    first: SocketAddr,
    second: SocketAddr,
    /// Nobody listens there.
    nowhere: SocketAddr,
}

impl Places {
    /// On loopback the addresses differ by their IP, since some clients take only the host from a MOVING; elsewhere by
    /// their port.
    fn new(first: SocketAddr) -> Self {
        let at = |number: u8| match first.ip() {
            IpAddr::V4(ip) if ip.is_loopback() => SocketAddr::new([127, 0, 0, number].into(), first.port()),
            ip => SocketAddr::new(ip, first.port().wrapping_add(u16::from(number) - 1)),
        };
        Self { first, second: at(2), nowhere: at(4) }
    }
}

/// Plays the script to whoever connects to `first`.
///
/// # Errors
/// The addresses cannot be had, or nobody connects within `patience`.
pub(super) fn check(first: SocketAddr, patience: Duration, verdicts: &mut Verdicts) -> Result<()> {
    let places = Places::new(first);
    let server = Scripted::listen(&[places.first, places.second])
        .with_context(|| format!("cannot listen on {first} and {}", places.second))?;
    crate::bench::complain(&format!(
        "waiting for a client at {first}; let it send commands all the time, and connect again when it has to"
    ));
    server.answer_opt_in(OptIn::Accept(vec![migrating(1), migrated(2)]));
    if !until(Instant::now() + patience, || !server.seen().is_empty()) {
        bail!("nobody connected to {first} within {} s", patience.as_secs());
    }
    if !until(Instant::now() + REACTION, || !server.opted_in(first).is_empty()) {
        bail!(
            "the client does not opt in: CLIENT MAINT_NOTIFICATIONS did not come within {} s",
            REACTION.as_secs()
        );
    }
    let script = Script { server, places };
    script.handshake(verdicts);
    script.server.answer_opt_in(OptIn::Accept(Vec::new()));
    script.moving(verdicts);
    script.liberal(verdicts);
    script.harmless(verdicts);
    script.null(verdicts);
    script.refused(verdicts);
    script.opt_in_refused(verdicts);
    Ok(())
}

struct Script {
    server: Scripted,
    places: Places,
}

fn until(end: Instant, mut is_so: impl FnMut() -> bool) -> bool {
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

impl Script {
    fn handshake(&self, verdicts: &mut Verdicts) {
        let is_working = |seen: &Seen| seen.last_command.is_some();
        let is_unharmed = until(Instant::now() + REACTION, || {
            self.server.opted_in(self.places.first).iter().any(is_working)
        });
        verdicts.note("frames-in-handshake", Outcome::when(is_unharmed, || "no command followed".to_owned()));
        for seen in self.server.seen() {
            let Some((words, is_resp3)) = seen.opt_in else { continue };
            verdicts.note("resp3-first", Outcome::when(is_resp3, || "HELLO 3 had not come".to_owned()));
            verdicts.note("opt-in-form", Outcome::when(is_opt_in(&words), || words.join(" ")));
        }
    }

    /// Waits until there are opted-in connections that work.
    fn settled(&self, at: SocketAddr) -> Vec<Seen> {
        until(Instant::now() + REACTION, || {
            let there = self.server.opted_in(at);
            !there.is_empty() && there.iter().all(|seen| seen.last_command.is_some())
        });
        self.server.opted_in(at)
    }

    /// The strict MOVING, sent twice.
    fn moving(&self, verdicts: &mut Verdicts) {
        let Places { first, second, .. } = self.places;
        let old = self.settled(first);
        if old.is_empty() {
            return;
        }
        self.server.hold_next(&old, HELD);
        let frame = moving(10, WINDOW, bulk(second.to_string()));
        let at = Instant::now();
        self.server.push(&old, &frame);
        std::thread::sleep(LOOK_EVERY);
        self.server.push(&old, &frame);
        let end = at + WINDOW;
        let has_moved =
            until(end, || self.server.opted_in(second).iter().any(|seen| seen.last_command.is_some()));
        verdicts.note("moves", Outcome::when(has_moved, || format!("no command came to {second}")));
        until(end, || self.of(&old).iter().all(|seen| seen.closed.is_some()));
        let now = self.of(&old);
        let are_gone = now.iter().all(|seen| seen.closed.is_some());
        verdicts.note("leaves", Outcome::when(are_gone, || "the old connection was still open".to_owned()));
        let arrived =
            self.server.seen().iter().filter(|seen| seen.local == second).map(|seen| seen.opened).min();
        for seen in &now {
            let is_made_first = arrived.is_some() && seen.closed.is_none_or(|closed| arrived <= Some(closed));
            verdicts.note(
                "make-before-break",
                Outcome::when(is_made_first, || "it was closed before".to_owned()),
            );
            let is_answered = !(seen.was_waiting && seen.closed.is_some());
            verdicts.note("finishes-in-flight", Outcome::when(is_answered, || "a reply was due".to_owned()));
        }
        let new = self.server.seen().iter().filter(|seen| seen.local == second).count();
        // A pool may grow for its own reasons; twice as many is one for each frame.
        verdicts.note(
            "repeats-ignored",
            Outcome::when(new < 2 * old.len() || new == 1, || {
                format!("{} connections became {new}", old.len())
            }),
        );
        self.close_window(&old);
    }

    /// Back again, by a frame of simple strings with elements that nobody knows yet.
    fn liberal(&self, verdicts: &mut Verdicts) {
        let Places { first, second, .. } = self.places;
        let old = self.settled(second);
        if old.is_empty() {
            return;
        }
        let frame = Frame::Push(vec![
            simple("MOVING"),
            Frame::Integer(20),
            Frame::Integer(WINDOW.as_secs() as i64),
            Frame::Simple(first.to_string().into()),
            simple("later"),
            Frame::Array(vec![Frame::Integer(1)]),
        ]);
        let at = Instant::now();
        self.server.push(&old, &frame);
        let is_new = |seen: &Seen| seen.opened >= at && seen.last_command.is_some();
        let has_moved = until(at + WINDOW, || self.server.opted_in(first).iter().any(is_new));
        for name in ["simple-strings", "extra-elements"] {
            verdicts.note(name, Outcome::when(has_moved, || format!("no command came to {first}")));
        }
        self.close_window(&old);
    }

    /// Frames that must not matter.
    fn harmless(&self, verdicts: &mut Verdicts) {
        for (name, frames) in [
            (
                "unknown-frames",
                vec![
                    Frame::Push(vec![bulk("LATER_KIND".to_owned()), Frame::Integer(30), Frame::Null]),
                    Frame::Push(vec![simple("X")]),
                ],
            ),
            (
                "short-frames",
                vec![
                    Frame::Push(vec![bulk("MIGRATING".to_owned()), Frame::Integer(31), Frame::Integer(1)]),
                    Frame::Push(vec![bulk("MIGRATED".to_owned()), Frame::Integer(32)]),
                    Frame::Push(vec![bulk("FAILING_OVER".to_owned())]),
                    Frame::Push(vec![bulk("SMIGRATED".to_owned()), Frame::Integer(33), Frame::Null]),
                ],
            ),
        ] {
            let there = self.settled(self.places.first);
            if there.is_empty() {
                return;
            }
            frames.iter().for_each(|frame| self.server.push(&there, frame));
            let at = Instant::now();
            std::thread::sleep(UNDISTURBED);
            let now = self.of(&there);
            let are_fine = now.iter().all(|seen| seen.closed.is_none())
                && now.iter().any(|seen| seen.last_command.is_some_and(|command| command > at));
            verdicts.note(name, Outcome::when(are_fine, || "the connection was given up".to_owned()));
        }
    }

    /// Without an endpoint.
    fn null(&self, verdicts: &mut Verdicts) {
        let old = self.settled(self.places.first);
        if old.is_empty() {
            return;
        }
        let at = Instant::now();
        self.server.push(&old, &moving(40, WINDOW, Frame::Null));
        let is_new = |seen: &Seen| seen.opened > at;
        let has_come = until(at + WINDOW, || self.server.seen().iter().any(is_new));
        let came = self.server.seen().iter().filter(|seen| is_new(seen)).map(|seen| seen.opened).min();
        let after = came.map(|came| came.duration_since(at));
        let is_late_enough = after.is_some_and(|after| after >= WINDOW.mul_f64(HALF_AT_LEAST));
        verdicts.note(
            "null-at-half",
            Outcome::when(has_come && is_late_enough, || match after {
                Some(after) => format!(
                    "it came back {} ms after a MOVING with {} s",
                    after.as_millis(),
                    WINDOW.as_secs()
                ),
                None => "it did not come back within the window".to_owned(),
            }),
        );
        until(at + WINDOW, || self.of(&old).iter().all(|seen| seen.closed.is_some()));
        self.close_window(&old);
    }

    /// To an endpoint where nobody listens.
    fn refused(&self, verdicts: &mut Verdicts) {
        let old = self.settled(self.places.first);
        if old.is_empty() {
            return;
        }
        let at = Instant::now();
        self.server.push(&old, &moving(50, WINDOW, bulk(self.places.nowhere.to_string())));
        std::thread::sleep(WINDOW / 2);
        let is_used = self.of(&old).iter().any(|seen| {
            seen.closed.is_none() && seen.last_command.is_some_and(|command| command > at + WINDOW / 4)
        });
        verdicts.note(
            "stays-when-refused",
            Outcome::when(is_used, || {
                "no command came on the old connection in the second quarter of the window".to_owned()
            }),
        );
        std::thread::sleep((at + WINDOW).saturating_duration_since(Instant::now()));
        self.close_window(&old);
    }

    /// A server that does not know notifications any more.
    fn opt_in_refused(&self, verdicts: &mut Verdicts) {
        self.server.answer_opt_in(OptIn::Refuse);
        let there: Vec<Seen> = self.server.seen().into_iter().filter(|seen| seen.closed.is_none()).collect();
        let at = Instant::now();
        self.server.cut(&there);
        let is_working = |seen: &Seen| seen.opened > at && seen.last_command.is_some();
        let goes_on = until(Instant::now() + REACTION, || self.server.seen().iter().any(is_working));
        verdicts.note("refusal-tolerated", Outcome::when(goes_on, || "no command followed".to_owned()));
    }

    /// What the connections have become.
    fn of(&self, which: &[Seen]) -> Vec<Seen> {
        let seen = self.server.seen();
        which.iter().filter_map(|old| seen.get(old.id)).cloned().collect()
    }

    /// Does what a server does at the window's end.
    fn close_window(&self, old: &[Seen]) {
        let left: Vec<Seen> = self.of(old).into_iter().filter(|seen| seen.closed.is_none()).collect();
        self.server.cut(&left);
    }
}

/// `CLIENT MAINT_NOTIFICATIONS ON`, alone or with a type, in any case.
fn is_opt_in(words: &[String]) -> bool {
    let words: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["client", "maint_notifications", "on"] => true,
        ["client", "maint_notifications", "on", "moving-endpoint-type", kind] => TYPES.contains(kind),
        _ => false,
    }
}

fn bulk(text: String) -> Frame {
    Frame::Bulk(text.into())
}

fn simple(text: &'static str) -> Frame {
    Frame::Simple(Bytes::from_static(text.as_bytes()))
}

fn moving(seq: i64, window: Duration, endpoint: Frame) -> Frame {
    let time = Frame::Integer(window.as_secs() as i64);
    Frame::Push(vec![bulk("MOVING".to_owned()), Frame::Integer(seq), time, endpoint])
}

fn migrating(seq: i64) -> Frame {
    let shards = bulk("[\"1\"]".to_owned());
    Frame::Push(vec![bulk("MIGRATING".to_owned()), Frame::Integer(seq), Frame::Integer(2), shards])
}

fn migrated(seq: i64) -> Frame {
    Frame::Push(vec![bulk("MIGRATED".to_owned()), Frame::Integer(seq), bulk("[\"1\"]".to_owned())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opt_ins_are_of_a_few_forms() {
        let is = |line: &str| is_opt_in(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(is("CLIENT MAINT_NOTIFICATIONS ON"));
        assert!(is("client maint_notifications on moving-endpoint-type external-ip"));
        assert!(!is("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type auto"));
        assert!(!is("CLIENT MAINT_NOTIFICATIONS ON none"));
    }

    #[test]
    fn addresses_differ_where_clients_look() {
        let loopback = Places::new("127.0.0.1:7000".parse().unwrap());
        assert_eq!(
            (loopback.second.to_string(), loopback.nowhere.to_string()),
            ("127.0.0.2:7000".into(), "127.0.0.4:7000".into())
        );
        let other = Places::new("[::1]:7000".parse().unwrap());
        assert_eq!(other.second.to_string(), "[::1]:7001");
    }
}
