//! How long ago a quorum was heard of.
//!
//! Owns: when whom answered this node as the leader, and as of when a leader that this node follows knew a quorum behind it. Does
//! **not** own what follows from it (`standing.rs`, `towline_cluster_proto::lease`).
//!
//! A follower takes the leader's word only for as long as the leader had a quorum itself: each heartbeat says how long ago that was.
//! The time that a heartbeat spends on its way is not known and counts in the follower's favour; it is less than a link's patience.

use super::types::{Seat, Vote};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

#[derive(Debug, Default)]
struct State {
    /// Under which vote `acks` were given.
    vote: Option<Vote>,
    /// When the last request was sent that the seat has answered as a follower.
    acks: BTreeMap<Seat, Instant>,
    /// When the last answer of any kind came.
    answers: BTreeMap<Seat, Instant>,
    /// The voters; two sets while they change.
    voters: Vec<BTreeSet<Seat>>,
    /// As of when a leader had a quorum, by its own word.
    heard: Option<Instant>,
    /// The last entry that a leader said was decided.
    decided: u64,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Freshness {
    me: Seat,
    state: Mutex<State>,
    /// Woken when a leader was heard of.
    pub(super) news: Notify,
}

impl Freshness {
    /// Nothing was heard of yet.
    pub(super) fn new(me: Seat) -> Self {
        Self { me, state: Mutex::default(), news: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These are the voters now.
    pub(super) fn set_voters(&self, voters: &[BTreeSet<Seat>]) {
        let mut state = self.state();
        if state.voters != voters {
            state.voters = voters.to_vec();
        }
    }

    /// `seat` has answered what was sent to it at `sent`; `vote`: if it did so as a follower.
    pub(super) fn answered(&self, seat: Seat, sent: Instant, vote: Option<Vote>) {
        let mut state = self.state();
        state.answers.insert(seat, Instant::now());
        let Some(vote) = vote else { return };
        if state.vote != Some(vote) {
            state.vote = Some(vote);
            state.acks.clear();
        }
        let last = state.acks.entry(seat).or_insert(sent);
        *last = (*last).max(sent);
    }

    /// When `seat` answered last.
    pub(super) fn last_answer(&self, seat: Seat) -> Option<Instant> {
        self.state().answers.get(&seat).copied()
    }

    /// As of when this node, leading by `vote`, knows that a quorum follows it.
    pub(super) fn quorum(&self, vote: Vote, now: Instant) -> Option<Instant> {
        let state = self.state();
        let of = |seat: &Seat| match *seat {
            seat if seat == self.me => Some(now),
            seat if state.vote == Some(vote) => state.acks.get(&seat).copied(),
            _ => None,
        };
        let of_set = |voters: &BTreeSet<Seat>| {
            let mut times: Vec<Option<Instant>> = voters.iter().map(of).collect();
            times.sort_unstable();
            times.get(times.len().checked_sub(voters.len() / 2 + 1)?).copied().flatten()
        };
        state.voters.iter().map(of_set).min().flatten()
    }

    /// A leader, followed, said that it had a quorum `age` before `received`, and that the log is decided up to entry `decided`.
    pub(super) fn hear(&self, received: Instant, age: Duration, decided: u64) {
        let as_of = received.checked_sub(age);
        let mut state = self.state();
        state.decided = state.decided.max(decided);
        if as_of > state.heard {
            state.heard = as_of;
            drop(state);
            self.news.notify_one();
        }
    }

    /// The last entry that is decided, by a leader's word.
    pub(super) fn decided(&self) -> u64 {
        self.state().decided
    }

    /// As of when a leader had a quorum, by its word.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.state().heard
    }

    /// Forgets seats that are no members any more.
    pub(super) fn retain(&self, is_member: impl Fn(Seat) -> bool) {
        let mut state = self.state();
        state.acks.retain(|&seat, _| is_member(seat));
        state.answers.retain(|&seat, _| is_member(seat));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_is_as_old_as_its_oldest_member_and_both_sets_count_while_voters_change() {
        let fresh = Freshness::new(1);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (vote, other) = (Vote::new_committed(3, 1), Vote::new_committed(4, 1));
        assert_eq!(fresh.quorum(vote, at(9)), None);
        fresh.set_voters(&[BTreeSet::from([1])]);
        assert_eq!(fresh.quorum(vote, at(9)), Some(at(9)));
        fresh.set_voters(&[BTreeSet::from([1, 2, 3])]);
        assert_eq!(fresh.quorum(vote, at(9)), None);
        fresh.answered(2, at(5), Some(vote));
        assert_eq!(fresh.quorum(vote, at(9)), Some(at(5)));
        fresh.answered(3, at(7), Some(vote));
        fresh.answered(3, at(6), Some(vote));
        assert_eq!(fresh.quorum(vote, at(9)), Some(at(7)));
        assert_eq!(fresh.quorum(other, at(9)), None, "answers to an older claim do not count");
        fresh.set_voters(&[BTreeSet::from([1, 2, 3]), BTreeSet::from([1, 2])]);
        assert_eq!(fresh.quorum(vote, at(9)), Some(at(5)));
        fresh.answered(2, at(8), None);
        assert_eq!(fresh.quorum(vote, at(9)), Some(at(5)), "an answer that follows nobody");
    }

    #[test]
    fn a_follower_is_as_fresh_as_its_leader_was() {
        let fresh = Freshness::new(2);
        let start = Instant::now() + Duration::from_secs(60);
        fresh.hear(start, Duration::from_secs(2), 7);
        assert_eq!(fresh.heard(), Some(start - Duration::from_secs(2)));
        // A leader that has lost its quorum says so by an age that grows with the time.
        fresh.hear(start + Duration::from_secs(5), Duration::from_secs(7), 6);
        assert_eq!(fresh.decided(), 7, "nothing that was decided ceases to be");
        assert_eq!(fresh.heard(), Some(start - Duration::from_secs(2)));
    }
}
