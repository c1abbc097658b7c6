//! The right to dial.
//!
//! Owns what all clients of one process share about it: the limiter, and a breaker for each target, so that a dead
//! server is asked by one client and not by all. Does not own the backoff of a single client (its bridge has it), nor
//! the dial itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;
use towline_admission::{
    Attempt, AttemptOutcome, Breaker, BreakerConfig, Change, DialLimiter, DialPermit, LimiterConfig, Passage,
    WaitersFull,
};
use towline_sansio::Prng;

use crate::clock;

/// Targets remembered although no client uses them. A process that dials more than these forgets the oldest unused.
const TARGETS_IDLE_MAX: usize = 1024;

/// What the clients of a process share when they dial.
pub(crate) struct Dialing {
    limiter: DialLimiter,
    targets: Mutex<BTreeMap<Arc<str>, Arc<Target>>>,
}

struct Target {
    breaker: Mutex<(Breaker, Prng)>,
    /// Wakes those whom the breaker has refused.
    freed: Notify,
}

impl Target {
    fn breaker(&self) -> MutexGuard<'_, (Breaker, Prng)> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dialing {
    /// The one of this process.
    pub(crate) fn of_process() -> &'static Self {
        static DIALING: OnceLock<Dialing> = OnceLock::new();
        DIALING.get_or_init(|| Self {
            limiter: DialLimiter::new(LimiterConfig::CLIENT).expect("invariant: the defaults are valid"),
            targets: Mutex::new(BTreeMap::new()),
        })
    }

    fn target(&self, key: &Arc<str>) -> Arc<Target> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = targets.get(key) {
            return Arc::clone(target);
        }
        if targets.len() >= TARGETS_IDLE_MAX {
            targets.retain(|_, target| Arc::strong_count(target) > 1);
        }
        let breaker = Breaker::new(BreakerConfig::CLIENT).expect("invariant: the defaults are valid");
        let seed = clock::now().nanos();
        let target =
            Arc::new(Target { breaker: Mutex::new((breaker, Prng::new(seed))), freed: Notify::new() });
        targets.insert(Arc::clone(key), Arc::clone(&target));
        target
    }

    /// Waits for the right to dial `key`: until its breaker allows it, a permit is free, and the gap to the dial
    /// before has passed. A wait, not an attempt: it costs nobody's retries.
    ///
    /// # Errors
    /// [`WaitersFull`]: more clients wait than a process can have connections.
    ///
    /// # Cancel safety
    /// Dropping it leaves the line; a right that was granted meanwhile goes to the next.
    pub(crate) async fn right(&self, key: &Arc<str>) -> Result<DialRight, WaitersFull> {
        let target = self.target(key);
        loop {
            let mut right = DialRight { target: Arc::clone(&target), attempt: None, permit: None };
            // Registered before asking, so that no change between the two is missed.
            let freed = target.freed.notified();
            let passage = {
                let mut breaker = target.breaker();
                let (breaker, prng) = &mut *breaker;
                breaker.ask(clock::now(), prng)
            };
            match passage {
                Passage::Refused { retry_at } => {
                    let _ = tokio::time::timeout_at(clock::wall(retry_at).into(), freed).await;
                    continue;
                }
                Passage::Allowed(attempt) => right.attempt = Some(attempt),
            }
            let permit = self.limiter.acquire(Arc::clone(key)).await?;
            tokio::time::sleep_until(clock::wall(permit.start_at(clock::now())).into()).await;
            right.permit = Some(permit);
            return Ok(right);
        }
    }
}

/// The right to have one dial in flight. Ends with the word on what came of it, or by being dropped, which says
/// nothing about the target.
pub(crate) struct DialRight {
    target: Arc<Target>,
    attempt: Option<Attempt>,
    permit: Option<DialPermit>,
}

impl DialRight {
    /// The target lives: it answered, whatever it said.
    pub(crate) fn worked(mut self) {
        self.report(AttemptOutcome::Worked);
    }

    /// No socket, or nothing came from it.
    pub(crate) fn failed(mut self) {
        self.report(AttemptOutcome::Failed);
    }

    fn report(&mut self, outcome: AttemptOutcome) {
        self.permit = None;
        let Some(attempt) = self.attempt.take() else { return };
        let change = {
            let mut breaker = self.target.breaker();
            let (breaker, prng) = &mut *breaker;
            breaker.report(clock::now(), attempt, outcome, prng)
        };
        match change {
            Change::None | Change::Opened { .. } => {}
            Change::ProbeFree => self.target.freed.notify_one(),
            Change::Closed => self.target.freed.notify_waiters(),
        }
    }
}

impl Drop for DialRight {
    fn drop(&mut self) {
        self.report(AttemptOutcome::Abandoned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialing() -> Dialing {
        Dialing {
            limiter: DialLimiter::new(LimiterConfig::CLIENT).unwrap(),
            targets: Mutex::new(BTreeMap::new()),
        }
    }

    #[tokio::test]
    async fn a_dead_target_is_asked_by_one_and_its_return_frees_all() {
        let (dialing, key) = (Arc::new(dialing()), Arc::<str>::from("db:6379"));
        for _ in 0..BreakerConfig::CLIENT.failures {
            dialing.right(&key).await.unwrap().failed();
        }
        // Open: the first to come after a while is the probe, and the others wait for what it finds.
        let probe = dialing.right(&key).await.unwrap();
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let (dialing, key) = (Arc::clone(&dialing), Arc::clone(&key));
                tokio::spawn(async move { dialing.right(&key).await.unwrap().worked() })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(waiting.iter().all(|waiter| !waiter.is_finished()));
        probe.worked();
        for waiter in waiting {
            waiter.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_probe_that_is_given_up_frees_the_next() {
        let (dialing, key) = (dialing(), Arc::<str>::from("db:6379"));
        for _ in 0..BreakerConfig::CLIENT.failures {
            dialing.right(&key).await.unwrap().failed();
        }
        drop(dialing.right(&key).await.unwrap());
        dialing.right(&key).await.unwrap().worked();
    }

    #[test]
    fn unused_targets_are_forgotten() {
        let dialing = dialing();
        let kept = dialing.target(&Arc::from("kept"));
        for n in 0..2 * TARGETS_IDLE_MAX {
            dialing.target(&Arc::from(n.to_string()));
        }
        assert!(dialing.targets.lock().unwrap().len() <= TARGETS_IDLE_MAX + 1);
        assert!(Arc::ptr_eq(&kept, &dialing.target(&Arc::from("kept"))));
    }
}
