//! A log by Raft, as far as a hand-over can notice: terms, quorums, entries that are lost with a leader, heartbeats that say how old the
//! leader's quorum is.
//!
//! Owns: one node's part in it. Does **not** own the network, nor elections: votes are cast at one instant, by those who could be reached.

use super::*;
use crate::lease::may_serve;

/// A node that has not heard of a quorum for so long serves nothing.
pub(super) const LEASE: Duration = Duration::from_millis(1500);
pub(super) const HEARTBEAT: Duration = Duration::from_millis(100);
/// How long a message of the log is on its way at most.
pub(super) const LATE_MAX: Duration = Duration::from_millis(40);

/// What a leader knows of the others.
#[derive(Debug, Clone)]
pub(super) struct Leading {
    matched: [usize; NODES],
    /// When the request was sent that a node answered last.
    acked: [Option<Instant>; NODES],
    /// The entries that were there when it began to lead.
    at_first: usize,
    pub(super) since: Instant,
}

/// One node's part. What a crash leaves is `term` and `entries`.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    me: usize,
    pub(super) term: u64,
    pub(super) entries: Vec<(u64, Change)>,
    pub(super) commit: usize,
    pub(super) leading: Option<Leading>,
    /// Whom the node follows.
    pub(super) leader: Option<usize>,
    pub(super) heard_leader: Instant,
    /// As of when a leader had a quorum, by its word.
    heard: Option<Instant>,
    decided: usize,
    was_fresh: bool,
}

/// What nodes say to each other about the log.
#[derive(Debug, Clone)]
pub(super) enum Say {
    Append {
        term: u64,
        before: usize,
        entries: Vec<(u64, Change)>,
        commit: usize,
        age: Option<Duration>,
        sent: Instant,
    },
    /// `matched`: so many entries are the leader's.
    Appended {
        term: u64,
        is_taken: bool,
        matched: usize,
        sent: Instant,
    },
    Propose(Change),
}

impl Replica {
    pub(super) fn new(me: usize) -> Self {
        Self {
            me,
            term: 0,
            entries: Vec::new(),
            commit: 0,
            leading: None,
            leader: None,
            heard_leader: Instant::ZERO,
            heard: None,
            decided: 0,
            was_fresh: false,
        }
    }

    /// What a process knows that was just started. How far the log is decided it may have to hear again.
    pub(super) fn restart(&mut self, commit: usize, now: Instant) {
        let (term, entries) = (self.term, std::mem::take(&mut self.entries));
        *self = Self { term, entries, commit, heard_leader: now, ..Self::new(self.me) };
    }

    /// What decides who may be voted for.
    pub(super) fn last(&self) -> (u64, usize) {
        (self.entries.last().map_or(0, |(term, _)| *term), self.entries.len())
    }

    pub(super) fn follow(&mut self, term: u64) {
        self.term = term;
        (self.leading, self.leader) = (None, None);
    }

    pub(super) fn lead(&mut self, now: Instant) {
        self.entries.push((self.term, Change::Many(Vec::new())));
        let at_first = self.entries.len();
        let (mut matched, mut acked) = ([0; NODES], [None; NODES]);
        (matched[self.me], acked[self.me]) = (at_first, Some(now));
        self.leading = Some(Leading { matched, acked, at_first, since: now });
        self.leader = Some(self.me);
    }

    /// As of when a leader knows that a majority follows it.
    fn quorum(&self, now: Instant) -> Option<Instant> {
        let mut acked = self.leading.as_ref()?.acked;
        acked[self.me] = Some(now);
        acked.sort_unstable();
        acked[NODES - (NODES / 2 + 1)]
    }

    /// Whether it may serve, having applied so much. Asked before anything that makes it fresher.
    pub(super) fn is_fresh(&mut self, now: Instant, applied: usize, bug: Option<Bug>) -> bool {
        let as_of = if self.leading.is_some() { self.quorum(now) } else { self.heard };
        let knows_quorum = as_of.is_some_and(|as_of| as_of + LEASE > now) || bug == Some(Bug::NoLease);
        let decided = self.leading.as_ref().map_or(self.decided, |leading| leading.at_first);
        let decided = if bug == Some(Bug::ServesBehind) { 0 } else { decided };
        self.was_fresh = may_serve(self.was_fresh, knows_quorum, applied as u64, decided as u64);
        self.was_fresh
    }

    /// When the node answered a leader last, or when the leader began.
    pub(super) fn answered(&self, node: usize) -> Option<Instant> {
        let leading = self.leading.as_ref()?;
        Some(leading.acked[node].unwrap_or(leading.since).max(leading.since))
    }

    /// What a leader says to another node now.
    pub(super) fn append_to(&self, to: usize, now: Instant) -> Option<Say> {
        let leading = self.leading.as_ref()?;
        let before = leading.matched[to].min(self.entries.len());
        let age = self.quorum(now).map(|as_of| now.since(as_of));
        let entries = self.entries[before..].to_vec();
        Some(Say::Append { term: self.term, before, entries, commit: self.commit, age, sent: now })
    }

    /// Returns what is answered.
    pub(super) fn hear(&mut self, now: Instant, from: usize, said: Say) -> Option<Say> {
        match said {
            Say::Append { term, before, entries, commit, age, sent } => {
                let refused = Say::Appended { term: self.term, is_taken: false, matched: 0, sent };
                if term < self.term {
                    return Some(refused);
                }
                if term > self.term || self.leading.is_some() {
                    self.follow(term);
                }
                (self.leader, self.heard_leader) = (Some(from), now);
                // A leader knows nothing of a node at first and sends all; nobody loses entries. So what it leaves out is there.
                let matched = before + entries.len();
                self.take(before, entries);
                self.commit = self.commit.max(commit.min(self.entries.len()));
                self.decided = self.decided.max(commit);
                let as_of = age.and_then(|age| now.nanos().checked_sub(age.as_nanos() as u64));
                self.heard = self.heard.max(as_of.map(Instant::from_nanos));
                Some(Say::Appended { term, is_taken: true, matched, sent })
            }
            Say::Appended { term, is_taken, matched, sent } => {
                if term > self.term {
                    self.follow(term);
                }
                if let Some(leading) = self.leading.as_mut().filter(|_| is_taken && term == self.term) {
                    leading.acked[from] = leading.acked[from].max(Some(sent));
                    leading.matched[from] = leading.matched[from].max(matched);
                    self.decide();
                }
                None
            }
            Say::Propose(change) => {
                if let Some(leading) = &mut self.leading {
                    self.entries.push((self.term, change));
                    leading.matched[self.me] = self.entries.len();
                }
                None
            }
        }
    }

    /// A leader's entries from `before` on. What contradicts them is of an old leader and goes.
    fn take(&mut self, before: usize, entries: Vec<(u64, Change)>) {
        for (at, (term, change)) in entries.into_iter().enumerate() {
            let at = before + at;
            if self.entries.get(at).is_some_and(|(own, _)| *own != term) {
                assert!(at >= self.commit, "what is decided is taken back");
                self.entries.truncate(at);
            }
            if at == self.entries.len() {
                self.entries.push((term, change));
            }
        }
    }

    fn decide(&mut self) {
        let Some(leading) = &self.leading else { return };
        let mut matched = leading.matched;
        matched.sort_unstable();
        let most = matched[NODES - (NODES / 2 + 1)];
        if most > self.commit && self.entries[most - 1].0 == self.term {
            self.commit = most;
        }
    }
}
