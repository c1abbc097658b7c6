//! `LATENCY`: events that took longer than `latency-monitor-threshold`.
//!
//! Owns: the recent spikes of each event. Does **not** own the histograms of commands (see [`crate::stats`]).

use crate::config::Config;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use towline_spec::{Command, Flags};

/// Spikes of an event that are kept, as in Redis; those within one second are one.
const SPIKES_MAX: usize = 160;

/// One spike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spike {
    /// Unix seconds.
    pub(crate) at_s: u64,
    /// The longest within that second.
    pub(crate) ms: u64,
}

/// The spikes of one event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    /// Oldest first.
    pub(crate) spikes: VecDeque<Spike>,
    /// The longest since the last reset.
    pub(crate) max_ms: u64,
}

/// All spikes. Events are named by the server, so their number is small.
#[derive(Debug, Default)]
pub(crate) struct LatencyMonitor {
    events: Mutex<BTreeMap<&'static str, Series>>,
}

impl LatencyMonitor {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Series>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command took this long.
    #[inline]
    pub(crate) fn command(&self, config: &Config, command: &Command, elapsed: Duration, now_ms: u64) {
        if config.latency_monitor_threshold > 0 {
            let event = if command.flags.contains(Flags::FAST) { "fast-command" } else { "command" };
            self.offer(config, event, elapsed, now_ms);
        }
    }

    /// Keeps the event if it took long enough.
    pub(crate) fn offer(&self, config: &Config, event: &'static str, elapsed: Duration, now_ms: u64) {
        let (threshold, ms) = (config.latency_monitor_threshold, elapsed.as_millis() as u64);
        if threshold == 0 || ms < threshold {
            return;
        }
        let spike = Spike { at_s: now_ms / 1000, ms };
        let mut events = self.lock();
        let series = events.entry(event).or_default();
        series.max_ms = series.max_ms.max(ms);
        match series.spikes.back_mut() {
            Some(last) if last.at_s == spike.at_s => last.ms = last.ms.max(ms),
            _ => series.spikes.push_back(spike),
        }
        if series.spikes.len() > SPIKES_MAX {
            series.spikes.pop_front();
        }
    }

    /// All events with their spikes.
    pub(crate) fn all(&self) -> BTreeMap<&'static str, Series> {
        self.lock().clone()
    }

    /// The spikes of one event.
    pub(crate) fn series(&self, event: &[u8]) -> Option<Series> {
        self.lock().iter().find(|(name, _)| name.as_bytes() == event).map(|(_, series)| series.clone())
    }

    /// Forgets the events for which `is_meant` holds; returns how many there were.
    pub(crate) fn forget(&self, is_meant: impl Fn(&str) -> bool) -> usize {
        let mut events = self.lock();
        let before = events.len();
        events.retain(|name, _| !is_meant(name));
        before - events.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spikes_within_a_second_are_one_and_old_ones_go() {
        let (monitor, mut config) = (LatencyMonitor::default(), Config::default());
        monitor.offer(&config, "x", Duration::from_secs(9), 0);
        assert!(monitor.all().is_empty());
        config.latency_monitor_threshold = 10;
        for (ms, at_ms) in [(9, 1000), (20, 1000), (30, 1999), (10, 2000)] {
            monitor.offer(&config, "x", Duration::from_millis(ms), at_ms);
        }
        let series = monitor.series(b"x").unwrap();
        assert_eq!(series.spikes, [Spike { at_s: 1, ms: 30 }, Spike { at_s: 2, ms: 10 }]);
        assert_eq!(series.max_ms, 30);
        for i in 0..500u64 {
            monitor.offer(&config, "y", Duration::from_millis(10), i * 1000);
        }
        assert_eq!(monitor.series(b"y").unwrap().spikes.len(), SPIKES_MAX);
        assert_eq!(monitor.forget(|name| name == "x"), 1);
        assert!(monitor.series(b"x").is_none());
    }
}
