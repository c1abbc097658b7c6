//! Which announcements of a move were seen before.
//!
//! Owns the memory of them. Does not own what is done about a new one.
//!
//! A server sends the same `MOVING` to each of its connections, and again to every connection that opts in while the
//! window is open, with the time that is left. An announcement may also be read long after it was sent: it stays in the
//! socket's buffer when the process is stalled or the server has closed. So an announcement is known by its number,
//! its successor and the peer that sent it; and numbers below one that was acted on are past.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use towline_sansio::Instant;

use super::notification::Moving;
use towline_cluster::Address;

/// What makes two announcements of a move the same. Not their time, which shrinks with each repetition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The number. Without one no two announcements are known to be the same.
    pub seq: Option<u64>,
    /// The successor; two moves at once may share a number.
    pub successor: Option<Address>,
    /// Who sent it, if the peer has an address.
    pub source: Option<SocketAddr>,
}

impl Identity {
    /// The identity of an announcement that was read on a connection to `source`.
    pub fn of(moving: &Moving, source: Option<SocketAddr>) -> Self {
        Self { seq: moving.seq, successor: moving.successor.clone(), source }
    }
}

/// What is known about an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    /// Nothing: act on it.
    New,
    /// It was acted on, and its window is open.
    Duplicate,
    /// Its window has ended, or a newer one was acted on.
    Stale,
}

/// The announcements that one bridge has acted on. At most [`Dedupe::ENTRIES_MAX`] of them are kept.
#[derive(Debug, Clone, Default)]
pub struct Dedupe {
    entries: VecDeque<Entry>,
    mark: Option<Mark>,
}

#[derive(Debug, Clone)]
struct Entry {
    identity: Identity,
    ends_at: Instant,
    /// Whether the connection has moved because of it.
    is_moved: bool,
}

/// The highest number acted on.
#[derive(Debug, Clone, Copy)]
struct Mark {
    seq: u64,
    since: Instant,
}

impl Dedupe {
    /// Most announcements kept; the oldest is forgotten first, and its number is then below the mark. More than
    /// this many moves within one window do not happen: chains are cut long before.
    pub const ENTRIES_MAX: usize = 16;

    /// How long a number keeps lower ones out. Longer than any window, so that what is read late is known to be
    /// past; not for ever, so that a server which restarted unnoticed and counts from the start is believed again.
    pub const MARK_TTL: Duration = Duration::from_secs(300);

    /// Nothing seen.
    pub const fn new() -> Self {
        Self { entries: VecDeque::new(), mark: None }
    }

    /// What is known about an announcement.
    ///
    /// A move that was made is known whoever repeats it: the successor repeats the announcement that led to it.
    pub fn check(&self, now: Instant, identity: &Identity) -> Seen {
        let Some(seq) = identity.seq else { return Seen::New };
        let known = self.entries.iter().find(|entry| {
            entry.identity.seq == Some(seq)
                && entry.identity.successor == identity.successor
                && (entry.is_moved || entry.identity.source == identity.source)
        });
        match known {
            Some(entry) if now < entry.ends_at => Seen::Duplicate,
            Some(_) if self.mark(now).is_some_and(|mark| seq <= mark) => Seen::Stale,
            _ if self.mark(now).is_some_and(|mark| seq < mark) => Seen::Stale,
            _ => Seen::New,
        }
    }

    /// Remembers an announcement that is acted on; its window ends at `ends_at`.
    pub fn record(&mut self, now: Instant, identity: Identity, ends_at: Instant) {
        let Some(seq) = identity.seq else { return };
        let mark = self.mark(now).map_or(seq, |mark| mark.max(seq));
        self.mark = Some(Mark { seq: mark, since: now });
        self.entries.retain(|entry| entry.identity != identity);
        if self.entries.len() >= Self::ENTRIES_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { identity, ends_at, is_moved: false });
    }

    /// Notes that the connection has moved because of an announcement.
    pub fn moved(&mut self, identity: &Identity) {
        for entry in self.entries.iter_mut().filter(|entry| entry.identity == *identity) {
            entry.is_moved = true;
        }
    }

    /// Forgets one announcement, so that it is acted on again. Lower numbers stay past.
    pub fn forget(&mut self, identity: &Identity) {
        self.entries.retain(|entry| entry.identity != *identity);
    }

    /// Forgets everything, because another server process (another run id) counts anew.
    pub fn reset(&mut self) {
        self.entries.clear();
        self.mark = None;
    }

    fn mark(&self, now: Instant) -> Option<u64> {
        self.mark.filter(|mark| now.since(mark.since) < Self::MARK_TTL).map(|mark| mark.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn id(seq: impl Into<Option<u64>>, successor: &str, source: &str) -> Identity {
        Identity {
            seq: seq.into(),
            successor: Address::parse(successor.as_bytes()),
            source: source.parse().ok(),
        }
    }

    const A: &str = "10.0.0.1:6379";
    const B: &str = "10.0.0.2:6379";
    const C: &str = "10.0.0.3:6379";

    #[test]
    fn a_repeated_announcement_is_a_duplicate_until_its_window_ends() {
        let mut dedupe = Dedupe::new();
        assert_eq!(dedupe.check(at(0), &id(7, B, A)), Seen::New);
        dedupe.record(at(0), id(7, B, A), at(15));
        assert_eq!(dedupe.check(at(14), &id(7, B, A)), Seen::Duplicate);
        assert_eq!(dedupe.check(at(15), &id(7, B, A)), Seen::Stale, "read from a buffer after the end");
    }

    #[test]
    fn another_successor_or_another_source_makes_another_announcement() {
        let mut dedupe = Dedupe::new();
        dedupe.record(at(0), id(7, B, A), at(15));
        assert_eq!(dedupe.check(at(1), &id(7, C, A)), Seen::New);
        assert_eq!(dedupe.check(at(1), &id(7, "", A)), Seen::New);
        assert_eq!(dedupe.check(at(1), &id(7, B, C)), Seen::New);
    }

    #[test]
    fn a_move_that_was_made_is_known_whoever_repeats_it() {
        let mut dedupe = Dedupe::new();
        dedupe.record(at(0), id(7, "", A), at(15));
        assert_eq!(dedupe.check(at(9), &id(7, "", B)), Seen::New);
        dedupe.moved(&id(7, "", A));
        assert_eq!(dedupe.check(at(9), &id(7, "", B)), Seen::Duplicate);
        assert_eq!(dedupe.check(at(16), &id(7, "", B)), Seen::Stale);
    }

    #[test]
    fn what_is_forgotten_is_new_once_more() {
        let mut dedupe = Dedupe::new();
        dedupe.record(at(0), id(7, B, A), at(15));
        dedupe.forget(&id(7, B, A));
        assert_eq!(dedupe.check(at(1), &id(7, B, A)), Seen::New);
        assert_eq!(dedupe.check(at(1), &id(6, B, A)), Seen::Stale);
    }

    #[test]
    fn lower_numbers_are_past() {
        let mut dedupe = Dedupe::new();
        dedupe.record(at(0), id(0, B, A), at(15));
        dedupe.record(at(1), id(8, C, A), at(15));
        assert_eq!(dedupe.check(at(2), &id(7, B, A)), Seen::Stale);
        assert_eq!(dedupe.check(at(2), &id(0, B, A)), Seen::Duplicate);
        assert_eq!(dedupe.check(at(2), &id(9, B, A)), Seen::New);
    }

    #[test]
    fn a_restarted_server_is_believed_after_a_reset_or_a_while() {
        let mut dedupe = Dedupe::new();
        dedupe.record(at(0), id(8, B, A), at(15));
        assert_eq!(dedupe.check(at(299), &id(1, B, A)), Seen::Stale);
        assert_eq!(dedupe.check(at(300), &id(1, B, A)), Seen::New);
        assert_eq!(dedupe.check(at(300), &id(8, B, A)), Seen::New);
        dedupe.record(at(300), id(8, B, A), at(315));
        dedupe.reset();
        assert_eq!(dedupe.check(at(301), &id(1, B, A)), Seen::New);
        assert_eq!(dedupe.check(at(301), &id(8, B, A)), Seen::New);
    }

    #[test]
    fn without_a_number_everything_is_new() {
        let mut dedupe = Dedupe::new();
        dedupe.record(at(0), id(None, B, A), at(15));
        assert_eq!(dedupe.check(at(1), &id(None, B, A)), Seen::New);
        assert!(dedupe.entries.is_empty());
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_is_past() {
        let mut dedupe = Dedupe::new();
        for seq in 0..1000 {
            dedupe.record(at(seq / 100), id(seq, B, A), at(1000));
        }
        assert_eq!(dedupe.entries.len(), Dedupe::ENTRIES_MAX);
        assert_eq!(dedupe.check(at(10), &id(5, B, A)), Seen::Stale);
        assert_eq!(dedupe.check(at(10), &id(999, B, A)), Seen::Duplicate);
    }
}
