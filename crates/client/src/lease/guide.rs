//! Where leased connections lead: where the shared one is.
//!
//! Owns the choice for each dial. Does not own the shared connection's moves (its bridge does), nor when to dial.
//!
//! Locks are taken in this order: a leased connection's engine, this, the shared connection's engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use towline_client_proto::Leaving;
use towline_client_proto::handoff::Target as Whither;
use towline_sansio::Instant;

use crate::engine::Engine;

/// The way of new leased connections.
pub(crate) struct Guide {
    shared: Arc<Engine>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What a leased connection was told, and until when that holds. The shared one is told the same, usually first.
    heard: Option<(Whither, Instant)>,
    /// The way that did not work last, while another is tried. It lasts until that one does not work either, or until
    /// the first choice is a new one.
    failed: Option<Whither>,
}

impl Guide {
    pub(super) fn new(shared: Arc<Engine>) -> Self {
        Self { shared, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where to dial now, and how many moves have been announced to the shared connection so far.
    pub(crate) fn course(&self, now: Instant) -> (Whither, u64) {
        let mut state = self.lock();
        let (first, second, moves) = self.choices(&state, now);
        if state.failed.as_ref().is_some_and(|failed| *failed != first) {
            state.failed = None;
        }
        match second {
            Some(second) if state.failed.is_some() => (second, moves),
            _ => (first, moves),
        }
    }

    /// A dial came to nothing: the next goes the other way, if there is one.
    pub(crate) fn failed(&self, whither: &Whither) {
        let mut state = self.lock();
        state.failed = match &state.failed {
            None => Some(whither.clone()),
            Some(failed) if failed == whither => return,
            Some(_) => None,
        };
    }

    /// A leased connection was told where its endpoint goes.
    pub(super) fn note(&self, leaving: &Leaving) {
        self.lock().heard = Some((leaving.target.clone(), leaving.until));
    }

    /// During a window its successor, which the shared connection knows by experience, otherwise the configured
    /// address. The second choice is the configured address, or where the shared connection was led.
    fn choices(&self, state: &State, now: Instant) -> (Whither, Option<Whither>, u64) {
        let shared = self.shared.lock();
        let moves = shared.bridge.moves_announced();
        let known = shared.bridge.reconnect_target(now);
        let led_to = shared.place.as_ref().map(|place| place.whither.clone());
        drop(shared);
        let heard = || match &state.heard {
            Some((whither, until)) if now < *until => whither.clone(),
            _ => Whither::Configured,
        };
        match known {
            Whither::Named(_) => (known, Some(Whither::Configured), moves),
            Whither::Configured => match heard() {
                named @ Whither::Named(_) => (named, Some(Whither::Configured), moves),
                Whither::Configured => {
                    (Whither::Configured, led_to.filter(|led_to| *led_to != Whither::Configured), moves)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use towline_client_proto::maintenance::Address;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn named(host: &str) -> Whither {
        Whither::Named(Address { host: host.into(), port: 6379 })
    }

    /// A guide beside a shared connection that does not exist yet.
    async fn guide() -> (crate::Client, Guide) {
        let client = crate::Client::lazy("redis://127.0.0.1:1".parse().unwrap()).unwrap();
        let guide = Guide::new(Arc::clone(client.inner.endpoint()));
        (client, guide)
    }

    #[tokio::test]
    async fn what_a_leased_connection_was_told_holds_for_its_window() {
        let (_client, guide) = guide().await;
        assert_eq!(guide.course(at(0)).0, Whither::Configured);
        guide.note(&Leaving { leave_at: at(1), until: at(10), target: named("b") });
        assert_eq!(guide.course(at(9)).0, named("b"));
        assert_eq!(guide.course(at(10)).0, Whither::Configured);
    }

    #[tokio::test]
    async fn a_way_that_fails_is_followed_by_the_other() {
        let (_client, guide) = guide().await;
        guide.failed(&Whither::Configured);
        assert_eq!(guide.course(at(0)).0, Whither::Configured, "there is no other");
        guide.note(&Leaving { leave_at: at(1), until: at(10), target: named("b") });
        assert_eq!(guide.course(at(1)).0, named("b"));
        guide.failed(&named("b"));
        guide.failed(&named("b"));
        assert_eq!(guide.course(at(2)).0, Whither::Configured, "however many find out");
        guide.failed(&Whither::Configured);
        assert_eq!(guide.course(at(3)).0, named("b"));
        guide.failed(&named("b"));
        guide.note(&Leaving { leave_at: at(4), until: at(20), target: named("c") });
        assert_eq!(guide.course(at(5)).0, named("c"), "a new successor is tried first");
    }
}
