//! The same subscriptions on two connections, from the one to the other.
//!
//! Owns the second set of actual subscriptions while an endpoint moves, and the moment at which it becomes the only one.
//! Does not own when that is, nor what is known then about the messages of the two.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{Confirmed, Entry, Gap, Kind, State, SubscriberId, Subscriptions, TooManyNames};
use crate::generation::Generation;

/// The subscriber in whose name a mirror has its names: who really wants them is known to the original.
const MIRROR: SubscriberId = SubscriberId(u64::MAX);

/// What it means to subscribers that another connection's subscriptions took the place of theirs.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Names that were confirmed on the new connection and concern somebody: requests that are granted, and gaps.
    pub confirmed: Vec<Confirmed>,
    /// Subscribers that had a confirmed name before.
    pub carried: BTreeSet<SubscriberId>,
}

impl Subscriptions {
    /// The names that are wanted now, for the connection `generation`, where nothing is subscribed yet. Costs the memory
    /// of the names' bookkeeping a second time, without the names.
    pub fn mirror(&self, generation: Generation) -> Self {
        let wanted = self.entries.iter().filter(|(_, entry)| entry.is_carried());
        let entries: BTreeMap<_, _> =
            wanted.map(|(key, entry)| (key.clone(), Entry { is_queued: true, ..entry.mirrored() })).collect();
        let mut mirror = Self::new(self.names_max);
        mirror.queue.extend(entries.keys().cloned());
        mirror.entries = entries;
        mirror.generation = Some(generation);
        mirror
    }

    /// Makes this mirror want what `original` wants now, no more and no less. What `original` is about to end counts as
    /// wanted: as long as it is active, whoever comes has it at once.
    pub fn follow(&mut self, original: &Self) {
        let is_wanted = |key: &(Kind, Bytes)| original.entries.get(key).is_some_and(Entry::is_carried);
        let unwanted = self.entries.iter_mut().filter(|(key, _)| !is_wanted(key));
        let mut changed: Vec<(Kind, Bytes)> = Vec::new();
        for (key, entry) in unwanted {
            entry.subscribers.clear();
            changed.push(key.clone());
        }
        for (key, entry) in original.entries.iter().filter(|(_, entry)| entry.is_carried()) {
            let mirrored = self.entries.entry(key.clone()).or_insert_with(|| {
                changed.push(key.clone());
                entry.mirrored()
            });
            let is_active = mirrored.state == State::Active;
            mirrored.subscribers.entry(MIRROR).or_insert(is_active);
        }
        for key in changed {
            self.review(&key);
        }
    }

    /// Ends this mirror's time as one: from now on it is the subscriptions, and `original`, whose connection is left, has
    /// only its open batches. `is_whole`: of names that were active on both, subscribers have seen all messages.
    pub fn inherit(&mut self, original: &mut Self, is_whole: bool) -> Inherited {
        let mut inherited = Inherited::default();
        self.names_max = original.names_max;
        self.unknown_count += original.unknown_count;
        self.by_subscriber = std::mem::take(&mut original.by_subscriber);
        original.queue.clear();
        let mut before = std::mem::take(&mut original.entries);
        for (key, entry) in &mut self.entries {
            let was = before.remove(key).unwrap_or_default();
            entry.subscribers = was.subscribers;
            let confirmed = entry.subscribers.iter().filter(|(_, is_confirmed)| **is_confirmed);
            inherited.carried.extend(confirmed.map(|(subscriber, _)| *subscriber));
            if entry.state != State::Active {
                // Confirmed later, with a gap for those that had it.
                entry.active_in = was.active_in;
                continue;
            }
            let gap = Gap { kind: key.0, name: key.1.clone(), from: was.active_in, to: entry.active_in };
            let confirmed = entry.confirm(gap, is_whole && was.state == State::Active);
            if !confirmed.new.is_empty() || !confirmed.gaps.is_empty() {
                inherited.confirmed.push(confirmed);
            }
        }
        for (key, was) in before.into_iter().filter(|(_, was)| was.is_desired()) {
            let confirmed = was.subscribers.iter().filter(|(_, is_confirmed)| **is_confirmed);
            inherited.carried.extend(confirmed.map(|(subscriber, _)| *subscriber));
            let entry = Entry { subscribers: was.subscribers, active_in: was.active_in, ..Entry::default() };
            self.entries.insert(key, entry);
        }
        let unsettled = self.entries.iter().filter(|(_, entry)| !entry.is_at_rest());
        for key in unsettled.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.review(&key);
        }
        inherited
    }

    /// [`Subscriptions::subscribe`], in a command of its own: should the server refuse it, no other name is concerned.
    ///
    /// # Errors
    /// As [`Subscriptions::subscribe`].
    pub fn subscribe_alone(
        &mut self,
        subscriber: SubscriberId,
        kind: Kind,
        name: &[u8],
    ) -> Result<(), TooManyNames> {
        self.subscribe(subscriber, kind, name)?;
        if let Some(entry) = self.entries.get_mut(&(kind, Bytes::copy_from_slice(name))) {
            entry.is_alone = true;
        }
        Ok(())
    }

    /// Whether the server has confirmed the name on this connection, and has not ended it.
    pub fn is_active(&self, kind: Kind, name: &[u8]) -> bool {
        let entry = self.entries.get(&(kind, Bytes::copy_from_slice(name)));
        entry.is_some_and(|entry| entry.state == State::Active)
    }

    /// Who wants a name that the server has refused on this connection; `None` if it has not.
    pub fn refused_to(&self, kind: Kind, name: &Bytes) -> Option<Vec<SubscriberId>> {
        let entry = self.entries.get(&(kind, name.clone())).filter(|entry| entry.state == State::Refused)?;
        Some(entry.subscribers.keys().copied().collect())
    }

    /// The connection, while there is one.
    pub const fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// Whether a command waits for its replies.
    pub fn has_batches(&self) -> bool {
        !self.batches.is_empty()
    }

    /// Whether no command waits for its replies and none is about to be sent.
    pub fn is_quiet(&self) -> bool {
        self.batches.is_empty() && self.queue.is_empty()
    }

    /// One gap for each subscriber of each confirmed name.
    pub fn gaps(&self) -> Vec<(SubscriberId, Gap)> {
        let mut gaps = Vec::new();
        for ((kind, name), entry) in &self.entries {
            let (from, to) = (entry.active_in, self.generation.unwrap_or(entry.active_in));
            let confirmed = entry.subscribers.iter().filter(|(_, is_confirmed)| **is_confirmed);
            gaps.extend(confirmed.map(|(id, _)| (*id, Gap { kind: *kind, name: name.clone(), from, to })));
        }
        gaps
    }
}

impl Entry {
    /// The same name on another connection.
    fn mirrored(&self) -> Self {
        Self {
            subscribers: BTreeMap::from([(MIRROR, false)]),
            active_in: self.active_in,
            is_alone: self.is_alone,
            ..Self::default()
        }
    }

    /// The name is active: all of its subscribers are confirmed now. Those that were before get a gap, unless their
    /// messages are `whole`.
    pub(super) fn confirm(&mut self, gap: Gap, is_whole: bool) -> Confirmed {
        let (kind, name) = (gap.kind, gap.name.clone());
        let mut confirmed = Confirmed { kind, name, new: Vec::new(), gaps: Vec::new(), gap };
        for (subscriber, is_confirmed) in &mut self.subscribers {
            match std::mem::replace(is_confirmed, true) {
                true if is_whole => {}
                true => confirmed.gaps.push(*subscriber),
                false => confirmed.new.push(*subscriber),
            }
        }
        confirmed
    }

    /// Whether a successor needs it.
    fn is_carried(&self) -> bool {
        self.is_desired() || self.state == State::Active
    }

    /// Whether nothing is to be done about it.
    fn is_at_rest(&self) -> bool {
        self.next().is_none() && self.is_desired()
    }
}
