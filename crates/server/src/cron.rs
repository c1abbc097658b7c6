//! A worker's periodic work.
//!
//! Owns: when it is done. Does **not** own what expiry or statistics are.

use crate::config::Config;
use crate::connection::{Desk, unix_ms};
use crate::execute::Local;
use crate::{followups, memory, tracking};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use towline_store::keyspace::Keyspace;

/// The time between two rounds of background work: `hz` of them in a second, ten by default. Keys are reclaimed at most this
/// long after they expire (nobody sees them after their time, whenever that is), and an idle server does next to nothing.
fn period_of(config: &Config) -> Duration {
    Duration::from_secs(1) / config.hz.max(1)
}

/// The share of a round that expiry may take, in percent: a quarter with the least `active-expire-effort`, as in Redis.
fn expire_percent(config: &Config) -> u32 {
    const LEAST: u32 = 25;
    LEAST + 2 * config.active_expire_effort.saturating_sub(1)
}

/// Keys that expire under one lock.
const EXPIRED_PER_LOCK: usize = 64;
/// Time that one turn of expiry may take from the commands; what is left waits for the next turn, a moment later.
const EXPIRE_TURN: Duration = Duration::from_millis(1);
/// Milliseconds between two looks for idle clients.
const IDLE_MS: u64 = 1000;
/// Turns of eviction in one period, in between which commands run: half of the time at most.
const EVICTION_TURNS: usize = 100;

/// Does a worker's periodic work until the server stops.
pub(crate) async fn run(desk: Rc<RefCell<Desk>>) {
    let mut period = period_of(&desk.borrow().local.config);
    let mut ticks = ticks_from_now(period);
    let mut last_idle_ms = 0;
    loop {
        for _ in 0..EVICTION_TURNS {
            if desk.borrow().local.shared.persistence.is_loading() {
                break;
            }
            let has_more = memory::tick(&mut desk.borrow_mut().local, unix_ms());
            if !has_more {
                break;
            }
            tokio::task::yield_now().await;
        }
        ticks.tick().await;
        desk.borrow_mut().local.refresh();
        let config = Arc::clone(&desk.borrow().local.config);
        if period_of(&config) != period {
            period = period_of(&config);
            ticks = ticks_from_now(period);
        }
        let is_first = desk.borrow().local.worker == 0;
        if is_first {
            let mut left = period * expire_percent(&config) / 100;
            while !left.is_zero() {
                let turn = left.min(EXPIRE_TURN);
                left -= turn;
                let is_done = expire(&mut desk.borrow_mut().local, turn);
                if is_done {
                    break;
                }
                tokio::task::yield_now().await;
            }
            if unix_ms().abs_diff(last_idle_ms) >= IDLE_MS {
                last_idle_ms = unix_ms();
                close_idle(&desk.borrow().local);
            }
            let shared = Arc::clone(&desk.borrow().local.shared);
            if let Some(bytes_max) = config.client_memory_bytes_max() {
                shared.evict_clients(bytes_max);
            }
        }
        let desk = &mut *desk.borrow_mut();
        let (now_ms, stats) = (unix_ms(), &desk.local.shared.stats);
        stats.worker(desk.local.worker).absorb(&mut desk.local.changes);
        stats.tick(now_ms);
        followups::work_off(&mut desk.local, None, now_ms);
        if is_first {
            tracking::enforce_limit(&mut desk.local, now_ms);
        }
    }
}

fn ticks_from_now(period: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

/// Removes expired keys for one turn; `true` when none is left.
fn expire(local: &mut Local, turn: Duration) -> bool {
    if !local.shared.active_expire.load(Ordering::Relaxed) || local.shared.persistence.is_loading() {
        return true;
    }
    let (now_ms, started) = (unix_ms(), Instant::now());
    let shared = Arc::clone(&local.shared);
    let settings = Arc::clone(&local.settings);
    let mut from = 0;
    while let Some(slot) = shared.store.next_due(from, now_ms) {
        let mut ks = Keyspace::hold(&shared.store, [slot], &settings, &mut local.changes, 0, now_ms);
        ks.changes().tracks_prefixes = shared.tracking.any_broadcast();
        let done = ks.expire_due(slot, EXPIRED_PER_LOCK);
        drop(ks);
        followups::work_off(local, None, now_ms);
        if done < EXPIRED_PER_LOCK {
            from = usize::from(slot) + 1;
        }
        if from >= towline_cluster::SLOT_COUNT {
            break;
        }
        if started.elapsed() > turn {
            return false;
        }
    }
    true
}

/// Closes clients that have been silent for longer than `timeout`.
fn close_idle(local: &Local) {
    use crate::client::flag::{BLOCKED, MONITOR, PUBSUB};
    let timeout_ms = local.config.timeout_s * 1000;
    if timeout_ms == 0 {
        return;
    }
    let now_ms = unix_ms();
    for client in local.shared.clients.all() {
        let idle_ms = now_ms.saturating_sub(client.last_ms.load(Ordering::Relaxed));
        if idle_ms > timeout_ms && !client.has_flag(BLOCKED | PUBSUB | MONITOR) {
            client.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hz_and_effort_decide_how_much_is_done() {
        let of = |hz, active_expire_effort| {
            let config = Config { hz, active_expire_effort, ..Config::default() };
            (period_of(&config).as_micros(), expire_percent(&config))
        };
        assert_eq!(of(10, 1), (100_000, 25));
        assert_eq!(of(1, 10), (1_000_000, 43));
        assert_eq!(of(500, 5), (2_000, 33));
    }
}
