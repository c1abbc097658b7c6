//! A worker's periodic work.
//!
//! Owns: when it is done. Does **not** own what expiry or statistics are.

use crate::connection::{Desk, unix_ms};
use crate::execute::Local;
use crate::{followups, memory, tracking};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use towline_store::keyspace::Keyspace;

/// Ten times a second, as Redis's default `hz`: keys are reclaimed at most this long after they expire (nobody sees them
/// after their time, whenever that is), and an idle server does next to nothing.
const PERIOD: Duration = Duration::from_millis(100);
/// Keys that expire under one lock.
const EXPIRED_PER_LOCK: usize = 64;
/// Time that one turn of expiry may take from the commands; what is left waits for the next turn, a moment later.
const EXPIRE_TURN: Duration = Duration::from_millis(1);
/// Turns in between which commands run, before the next period.
const EXPIRE_TURNS: usize = 25;
/// Turns of eviction in one period, in between which commands run: half of the time at most.
const EVICTION_TURNS: usize = 100;
/// Periods between two looks for idle clients.
const IDLE_PERIODS: u64 = 10;

/// Does a worker's periodic work until the server stops.
pub(crate) async fn run(desk: Rc<RefCell<Desk>>) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut period = 0u64;
    loop {
        for _ in 0..EVICTION_TURNS {
            let has_more = memory::tick(&mut desk.borrow_mut().local, unix_ms());
            if !has_more {
                break;
            }
            tokio::task::yield_now().await;
        }
        ticks.tick().await;
        period += 1;
        let is_first = desk.borrow().local.worker == 0;
        if is_first {
            for _ in 0..EXPIRE_TURNS {
                let is_done = expire(&mut desk.borrow_mut().local);
                if is_done {
                    break;
                }
                tokio::task::yield_now().await;
            }
            if period.is_multiple_of(IDLE_PERIODS) {
                close_idle(&desk.borrow().local);
            }
        }
        let desk = &mut *desk.borrow_mut();
        desk.local.refresh();
        let (now_ms, stats) = (unix_ms(), &desk.local.shared.stats);
        stats.worker(desk.local.worker).absorb(&mut desk.local.changes);
        stats.tick(now_ms);
        followups::work_off(&mut desk.local, None, now_ms);
        if is_first {
            tracking::enforce_limit(&mut desk.local, now_ms);
        }
    }
}

/// Removes expired keys for one turn; `true` when none is left.
fn expire(local: &mut Local) -> bool {
    if !local.shared.active_expire.load(Ordering::Relaxed) {
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
        if started.elapsed() > EXPIRE_TURN {
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
