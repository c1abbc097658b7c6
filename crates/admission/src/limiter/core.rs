//! The decisions of the dial limiter, with explicit ids.
//!
//! Owns: who holds a permit, who waits, in which order, and when the next dial of a target may start. Does **not** own
//! wakers, locks or guards ([`crate::DialLimiter`] adds them), and does not know whether a dial worked.
//!
//! The rule that everything follows from: after each call no waiter is left that could go. So one freed place can let
//! at most one waiter go, and a newcomer that finds room overtakes nobody.

use super::{LimiterConfig, LimiterConfigError};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;
use towline_sansio::Instant;

/// Names one request from [`LimiterCore::request`] until its release or cancellation. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {}", self.0)
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requested {
    /// It holds a permit; dial now.
    Granted(RequestId),
    /// It stands in the queue; a later call returns its id when it may go.
    Waiting(RequestId),
}

impl Requested {
    /// The id, in either case.
    pub fn id(self) -> RequestId {
        match self {
            Self::Granted(id) | Self::Waiting(id) => id,
        }
    }
}

/// The waiting room is full: [`LimiterConfig::waiters_max`] requests wait already.
///
/// Nothing was dialled and nothing was queued. Retryable after a backoff; the process dials far more than it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} dials wait already, which is the limit")]
pub struct WaitersFull {
    /// How many wait.
    pub waiting: u32,
}

/// The id was never given out, or its permit was given back before. A mistake of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{id} is not known to the limiter")]
pub struct UnknownRequest {
    /// The id in question.
    pub id: RequestId,
}

/// What the limiter looks like at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimiterSnapshot<K> {
    /// Permits held, at most [`LimiterConfig::per_process`].
    pub in_use: u32,
    /// Requests that wait, at most [`LimiterConfig::waiters_max`].
    pub waiting: u32,
    /// The same for each target with a permit or a waiter, in the order of the targets.
    pub targets: Vec<TargetSnapshot<K>>,
}

/// One target in a [`LimiterSnapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSnapshot<K> {
    /// The target.
    pub target: K,
    /// Permits held, at most [`LimiterConfig::per_target`].
    pub in_use: u32,
    /// Requests that wait.
    pub waiting: u32,
}

#[derive(Debug, Clone)]
struct Request<K> {
    target: K,
    is_granted: bool,
}

#[derive(Debug, Clone, Default)]
struct Target {
    in_use: u32,
    /// Ids grow with time, so the smallest has waited longest.
    waiting: BTreeSet<RequestId>,
}

/// The limiter as a state machine; see the [crate] for the guard around it.
///
/// ```
/// use towline_admission::{LimiterConfig, LimiterCore, Requested};
///
/// let mut core = LimiterCore::new(LimiterConfig { per_target: 1, ..LimiterConfig::CLIENT })?;
/// let Requested::Granted(first) = core.request("a:6379")? else { panic!("there is room") };
/// let Requested::Waiting(second) = core.request("a:6379")? else { panic!("the target is full") };
/// assert!(matches!(core.request("b:6379")?, Requested::Granted(_))); // Another target does not wait.
/// assert_eq!(core.release(first)?, Some(second));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct LimiterCore<K> {
    config: LimiterConfig,
    next_id: u64,
    requests: BTreeMap<RequestId, Request<K>>,
    /// Only targets with a permit or a waiter.
    targets: BTreeMap<K, Target>,
    /// The longest waiter of each target that has waiters *and* room; non-empty only while the process is full.
    ready: BTreeMap<RequestId, K>,
    in_use: u32,
    /// When the next dial of a target may start, where that may be later than now.
    next_start: BTreeMap<K, Instant>,
}

impl<K: Ord + Clone> LimiterCore<K> {
    /// `next_start` is swept of the past at this size: more targets than most processes ever dial.
    const SWEEP_AT: usize = 1024;

    /// An empty limiter.
    ///
    /// # Errors
    /// As [`LimiterConfig::validate`].
    pub fn new(config: LimiterConfig) -> Result<Self, LimiterConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            next_id: 0,
            requests: BTreeMap::new(),
            targets: BTreeMap::new(),
            ready: BTreeMap::new(),
            in_use: 0,
            next_start: BTreeMap::new(),
        })
    }

    /// Asks for a permit, and stands in line if there is none.
    ///
    /// # Errors
    /// The waiting room is full.
    pub fn request(&mut self, target: K) -> Result<Requested, WaitersFull> {
        if self.has_room(&target) {
            return Ok(Requested::Granted(self.insert(target, true)));
        }
        let waiting = self.waiting();
        if waiting >= self.config.waiters_max {
            return Err(WaitersFull { waiting });
        }
        let id = self.insert(target.clone(), false);
        self.offer(&target);
        Ok(Requested::Waiting(id))
    }

    /// Asks for a permit without waiting. It never overtakes a waiter: where one could go, there is no room left.
    pub fn try_request(&mut self, target: K) -> Option<RequestId> {
        self.has_room(&target).then(|| self.insert(target, true))
    }

    /// Gives a permit back. Returns the waiter that got it, if any.
    ///
    /// # Errors
    /// The id holds no permit; nothing changed.
    pub fn release(&mut self, id: RequestId) -> Result<Option<RequestId>, UnknownRequest> {
        if self.is_granted(id) { self.cancel(id) } else { Err(UnknownRequest { id }) }
    }

    /// Ends a request in whatever state it is: leaves the queue, or gives its permit back. Returns the waiter that
    /// got the permit, if any.
    ///
    /// # Errors
    /// The id is not known; nothing changed.
    pub fn cancel(&mut self, id: RequestId) -> Result<Option<RequestId>, UnknownRequest> {
        let Some(Request { target: name, is_granted }) = self.requests.remove(&id) else {
            return Err(UnknownRequest { id });
        };
        let target = self.targets.get_mut(&name).expect("invariant: every request is counted at its target");
        if is_granted {
            target.in_use -= 1;
            self.in_use -= 1;
        } else {
            target.waiting.remove(&id);
            self.ready.remove(&id);
        }
        if target.in_use == 0 && target.waiting.is_empty() {
            self.targets.remove(&name);
        }
        self.offer(&name);
        Ok(if is_granted { self.grant_one() } else { None })
    }

    /// When the dial of a granted request may start: now, or after the gap to the previous dial of the same target.
    /// Books that instant, so call it once for each dial, right before it, and wait until then with the permit held.
    ///
    /// # Errors
    /// The id holds no permit; nothing was booked.
    pub fn start(&mut self, id: RequestId, now: Instant) -> Result<Instant, UnknownRequest> {
        let request = self.requests.get(&id).filter(|request| request.is_granted);
        let target = request.ok_or(UnknownRequest { id })?.target.clone();
        if self.config.target_gap == Duration::ZERO {
            return Ok(now);
        }
        if self.next_start.len() >= Self::SWEEP_AT {
            self.next_start.retain(|_, next| *next > now);
        }
        let next = self.next_start.entry(target).or_insert(now);
        let start = now.max(*next);
        *next = start + self.config.target_gap;
        Ok(start)
    }

    /// Whether the request holds a permit. False for unknown ids.
    pub fn is_granted(&self, id: RequestId) -> bool {
        self.requests.get(&id).is_some_and(|request| request.is_granted)
    }

    /// The limits.
    pub fn config(&self) -> &LimiterConfig {
        &self.config
    }

    /// What is held and what waits, now. Costs one entry for each busy target.
    pub fn snapshot(&self) -> LimiterSnapshot<K> {
        let targets = self.targets.iter().map(|(name, target)| TargetSnapshot {
            target: name.clone(),
            in_use: target.in_use,
            waiting: count(target.waiting.len()),
        });
        LimiterSnapshot { in_use: self.in_use, waiting: self.waiting(), targets: targets.collect() }
    }

    fn waiting(&self) -> u32 {
        count(self.requests.len()) - self.in_use
    }

    fn has_room(&self, target: &K) -> bool {
        let in_use = self.targets.get(target).map_or(0, |target| target.in_use);
        self.in_use < self.config.per_process && in_use < self.config.per_target
    }

    fn insert(&mut self, target: K, is_granted: bool) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let entry = self.targets.entry(target.clone()).or_default();
        if is_granted {
            entry.in_use += 1;
            self.in_use += 1;
        } else {
            entry.waiting.insert(id);
        }
        self.requests.insert(id, Request { target, is_granted });
        id
    }

    /// Puts the longest waiter of a target with room among those that may go.
    fn offer(&mut self, name: &K) {
        let Some(target) = self.targets.get(name) else { return };
        if target.in_use < self.config.per_target
            && let Some(first) = target.waiting.first()
        {
            self.ready.insert(*first, name.clone());
        }
    }

    /// Lets the longest of the waiters that may go have a place, if there is one.
    fn grant_one(&mut self) -> Option<RequestId> {
        if self.in_use >= self.config.per_process {
            return None;
        }
        let (id, name) = self.ready.pop_first()?;
        let target = self.targets.get_mut(&name).expect("invariant: a waiter is counted at its target");
        target.waiting.remove(&id);
        target.in_use += 1;
        self.in_use += 1;
        let request = self.requests.get_mut(&id).expect("invariant: a waiter is a request");
        request.is_granted = true;
        self.offer(&name);
        Some(id)
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
