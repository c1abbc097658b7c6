//! What all workers share.
//!
//! Owns: the store, the registries and the configuration in force. Does **not** own anything that one worker or one
//! connection has to itself.

use crate::blocking::Blocked;
use crate::client::{Clients, flag};
use crate::cluster::Cluster;
use crate::config::{AppendFsync, Config};
use crate::endpoints::Endpoints;
use crate::latency::LatencyMonitor;
use crate::maintenance::Registry;
use crate::memory::Meter;
use crate::monitor::Monitors;
use crate::moving::Moves;
use crate::pause::Pause;
use crate::persistence::Persistence;
use crate::persistence::disk::Disk;
use crate::persistence::keeper::{Request, StopOptions};
use crate::pubsub::PubSub;
use crate::replicas::Replicas;
use crate::slowlog::SlowLog;
use crate::stats::Stats;
use crate::tracking::TrackingTable;
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use towline_store::store::Store;

/// How the server is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is not.
    No,
    /// Finish the commands at hand, close everything, exit with 0.
    Gracefully,
}

/// State that all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) clients: Clients,
    pub(crate) pubsub: PubSub,
    pub(crate) blocked: Blocked,
    pub(crate) monitors: Monitors,
    pub(crate) tracking: TrackingTable,
    pub(crate) pause: Pause,
    pub(crate) maintenance: Registry,
    /// `None` outside of cluster mode.
    pub(crate) cluster: Option<Box<Cluster>>,
    pub(crate) endpoints: Endpoints,
    pub(crate) persistence: Persistence,
    pub(crate) replicas: Replicas,
    /// Keys that are on their way to other servers.
    pub(crate) moves: Moves,
    pub(crate) slowlog: SlowLog,
    pub(crate) latency: LatencyMonitor,
    pub(crate) memory: Meter,
    pub(crate) stats: Stats,
    #[cfg(feature = "tls")]
    pub(crate) tls: crate::tls::Tls,
    /// 40 hex digits, new at each start.
    pub(crate) run_id: String,
    /// The data set's history, as replicas know it; `DEBUG CHANGE-REPL-ID` starts another.
    replication_id: Mutex<String>,
    pub(crate) started_ms: u64,
    config: ArcSwap<Config>,
    config_lock: Mutex<()>,
    config_epoch: AtomicU64,
    config_changes: watch::Sender<()>,
    /// `DEBUG SET-ACTIVE-EXPIRE 0` turns it off.
    pub(crate) active_expire: AtomicBool,
    stop: watch::Sender<Stop>,
}

impl Shared {
    /// The state of a server that starts now, with this configuration.
    pub(crate) fn new(config: Config, disk: Arc<dyn Disk>, run_id: String, started_ms: u64) -> Self {
        // One more than there are workers: the thread that moves keys counts as well.
        let stats = Stats::new(config.workers.max(1) + 1);
        stats.track_latency(config.latency_tracking);
        let persistence = Persistence::new(disk, config.workers.max(1), started_ms);
        persistence.gate.set_always(config.persistence.appendfsync == AppendFsync::Always);
        Self {
            store: Store::new(),
            clients: Clients::default(),
            pubsub: PubSub::default(),
            blocked: Blocked::default(),
            monitors: Monitors::default(),
            tracking: TrackingTable::default(),
            pause: Pause::default(),
            maintenance: Registry::new(started_ms),
            cluster: config.cluster.is_enabled.then(Box::default),
            endpoints: Endpoints::default(),
            persistence,
            replicas: Replicas::default(),
            moves: Moves::default(),
            slowlog: SlowLog::default(),
            latency: LatencyMonitor::default(),
            memory: Meter::new(config.workers),
            stats,
            #[cfg(feature = "tls")]
            tls: crate::tls::Tls::default(),
            replication_id: Mutex::new(run_id.chars().rev().collect()),
            run_id,
            started_ms,
            config: ArcSwap::from_pointee(config),
            config_lock: Mutex::new(()),
            config_epoch: AtomicU64::new(1),
            config_changes: watch::Sender::new(()),
            active_expire: AtomicBool::new(true),
            stop: watch::Sender::new(Stop::No),
        }
    }

    /// The configuration in force. For what is rare; commands use their worker's copy.
    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// Changes with every change of the configuration.
    #[inline]
    pub(crate) fn config_epoch(&self) -> u64 {
        self.config_epoch.load(Ordering::Acquire)
    }

    /// Replaces the configuration by what `change` makes of it; nothing happens when that fails.
    pub(crate) fn change_config<E>(
        &self,
        change: impl FnOnce(&mut Config) -> Result<(), E>,
    ) -> Result<(), E> {
        let _one_at_a_time = self.config_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = Config::clone(&self.config.load());
        change(&mut config)?;
        self.persistence.gate.set_always(config.persistence.appendfsync == AppendFsync::Always);
        self.config.store(Arc::new(config));
        self.config_epoch.fetch_add(1, Ordering::Release);
        self.config_changes.send_replace(());
        Ok(())
    }

    /// Closes clients until all together take no more than `bytes_max`: `maxmemory-clients`.
    pub(crate) fn evict_clients(&self, bytes_max: u64) {
        let evicted = self.clients.evict(bytes_max);
        self.stats.clients_evicted.fetch_add(evicted, Ordering::Relaxed);
    }

    /// To wait for changes of the configuration with.
    pub(crate) fn config_changes(&self) -> watch::Receiver<()> {
        self.config_changes.subscribe()
    }

    /// 40 hex digits that name the data set's history.
    pub(crate) fn replication_id(&self) -> String {
        self.replication_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins another history of the data set.
    pub(crate) fn set_replication_id(&self, id: String) {
        *self.replication_id.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// Asks every part of the server to end, at once.
    pub(crate) fn stop(&self, how: Stop) {
        self.stop.send_replace(how);
        self.persistence.keeper.send(Request::Quit);
    }

    /// Asks the server to keep what is to be kept and then to end, as `SHUTDOWN` does; if that fails, it goes on. While it is
    /// loading there is nothing to keep.
    pub(crate) fn ask_to_stop(&self, options: StopOptions) {
        if self.persistence.gate.is_loading() {
            self.stop(Stop::Gracefully);
        } else {
            self.persistence.keeper.send(Request::Stop(options));
        }
    }

    /// Ends `CLIENT PAUSE`: what was held back runs.
    pub(crate) fn unpause(&self) {
        self.pause.end();
        for client in self.clients.all() {
            if client.has_flag(flag::PAUSED) {
                client.wake();
            }
        }
    }

    /// To wait for the end with.
    pub(crate) fn stopping(&self) -> watch::Receiver<Stop> {
        self.stop.subscribe()
    }
}
