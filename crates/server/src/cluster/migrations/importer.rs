//! The thread that puts what comes into the store.
//!
//! Owns: doing jobs in their order, and saying when each is done. Does **not** own what comes of the import.

use crate::cluster::import::Import;
use crate::cluster::table::PARKED;
use crate::shared::Shared;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use towline_cluster_proto::Ranges;
use towline_cluster_proto::migration::{StreamBatch, TargetEvent};
use towline_store::stream::Batch;

use super::each;

/// How often it is looked whether the log is durable: less than a sync takes, and it is one load.
const SYNC_LOOK: Duration = Duration::from_micros(200);

/// What is to be done.
#[derive(Debug)]
pub(super) enum Job {
    /// See `TargetAction::Begin`.
    Begin,
    Apply(u32, StreamBatch),
    Sync(u32),
    Abandon,
    Finish,
}

/// The way to the thread; it ends, having done all jobs, when this is dropped.
#[derive(Debug)]
pub(super) struct Importer(Sender<Job>);

impl Importer {
    /// Starts the thread. With `is_resumed`, what is in the slots from before a crash is part of the import.
    pub(super) fn start(
        shared: &Arc<Shared>,
        slots: &Ranges,
        is_resumed: bool,
        events: UnboundedSender<TargetEvent>,
    ) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let (shared, slots) = (Arc::clone(shared), slots.clone());
        let import = is_resumed.then(|| Import::resume(&shared, each(&slots)));
        let thread = Thread { shared, slots, import, events };
        std::thread::Builder::new().name("importer".into()).spawn(move || thread.run(&queue))?;
        Ok(Self(jobs))
    }

    /// Does this after all that was asked for before.
    pub(super) fn send(&self, job: Job) {
        // The thread ends only when this is dropped.
        let _ = self.0.send(job);
    }
}

struct Thread {
    shared: Arc<Shared>,
    slots: Ranges,
    import: Option<Import>,
    events: UnboundedSender<TargetEvent>,
}

impl Thread {
    fn run(mut self, queue: &Receiver<Job>) {
        while let Ok(job) = queue.recv() {
            let event = match job {
                Job::Begin => {
                    self.set_parked(true);
                    self.import = Some(Import::begin(&self.shared, each(&self.slots)));
                    continue;
                }
                Job::Apply(attempt, batch) => match self.apply(batch) {
                    Ok(()) => TargetEvent::Applied(attempt),
                    Err(reason) => TargetEvent::ApplyFailed(attempt, reason),
                },
                Job::Sync(attempt) => match self.sync() {
                    Ok(()) => TargetEvent::Synced(attempt),
                    Err(reason) => TargetEvent::ApplyFailed(attempt, reason),
                },
                Job::Abandon => {
                    if let Some(import) = self.import.take() {
                        import.abandon();
                    }
                    self.set_parked(false);
                    continue;
                }
                Job::Finish => {
                    // Clients first: until the keys are counted, they are only missing from DBSIZE and the like.
                    self.set_parked(false);
                    if let Some(import) = self.import.take() {
                        import.finish();
                    }
                    continue;
                }
            };
            // Nobody listens any more: the log has decided.
            let _ = self.events.send(event);
        }
    }

    fn set_parked(&self, is_on: bool) {
        if let Some(cluster) = self.shared.cluster.as_deref() {
            for slot in each(&self.slots) {
                self.shared.store.with_locked(slot, |_| cluster.table.set(slot, PARKED, is_on));
            }
        }
    }

    fn apply(&mut self, batch: StreamBatch) -> Result<(), String> {
        let import = self.import.as_mut().ok_or("nothing is being imported")?;
        let StreamBatch { position_before, is_snapshot_done, images, units, .. } = batch;
        let batch = Batch::from_bytes(images.into(), units.into(), position_before);
        let batch = batch.map_err(|error| error.to_string())?;
        import.apply(batch, is_snapshot_done).map_err(|error| error.to_string())
    }

    /// Waits until what was applied is as durable as this node makes a reply: with `appendfsync always`, on disk.
    fn sync(&self) -> Result<(), String> {
        let position = self.import.as_ref().map_or(0, Import::position);
        let gate = &self.shared.persistence.gate;
        while gate.holds(position) {
            if gate.is_log_failed() {
                return Err("this node's log cannot be written".into());
            }
            std::thread::park_timeout(SYNC_LOOK);
        }
        Ok(())
    }
}
