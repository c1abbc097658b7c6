//! The thread that puts what comes into the store.
//!
//! Owns: doing jobs in their order, and saying when each is done. Does **not** own what comes of the import.

use super::set_parked;
use crate::cluster::each;
use crate::cluster::import::Import;
use crate::failpoint;
use crate::shared::Shared;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use towline_cluster_proto::Ranges;
use towline_cluster_proto::migration::{StreamBatch, TargetEvent};
use towline_store::stream::Batch;

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

impl Job {
    /// The failpoint before it.
    fn place(&self) -> &'static str {
        match self {
            Self::Begin => "target-begin",
            Self::Apply(_, StreamBatch { is_snapshot_done: false, .. }) => "target-apply",
            Self::Apply(..) => "target-apply-tail",
            Self::Sync(_) => "target-sync",
            Self::Abandon => "target-abandon",
            Self::Finish => "target-finish",
        }
    }
}

/// The way to the thread; it ends, having done all jobs, when this is dropped.
#[derive(Debug)]
pub(super) struct Importer {
    jobs: Sender<Job>,
    /// Closed when the thread has ended.
    ended: oneshot::Receiver<()>,
}

impl Importer {
    /// Starts the thread. `import`: what is in the slots from before a crash.
    pub(super) fn start(
        shared: &Arc<Shared>,
        slots: &Ranges,
        import: Option<Import>,
        events: UnboundedSender<TargetEvent>,
    ) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let (shared, slots) = (Arc::clone(shared), slots.clone());
        let (end, ended) = oneshot::channel();
        let thread = Thread { shared, slots, import, events, _end: end };
        std::thread::Builder::new().name("importer".into()).spawn(move || thread.run(&queue))?;
        Ok(Self { jobs, ended })
    }

    /// Waits until all jobs are done: until then nothing else may be done with the slots here.
    pub(super) async fn end(self) {
        let Self { jobs, ended } = self;
        drop(jobs);
        // Nothing is ever sent.
        let _ = ended.await;
    }

    /// Does this after all that was asked for before.
    pub(super) fn send(&self, job: Job) {
        // The thread ends only when this is dropped.
        let _ = self.jobs.send(job);
    }
}

struct Thread {
    shared: Arc<Shared>,
    slots: Ranges,
    import: Option<Import>,
    events: UnboundedSender<TargetEvent>,
    _end: oneshot::Sender<()>,
}

impl Thread {
    fn run(mut self, queue: &Receiver<Job>) {
        // What is still to be loaded into the slots would be there again behind a drop.
        if self.import.is_some() && self.shared.persistence.loading.wait().is_err() {
            return;
        }
        while let Ok(job) = queue.recv() {
            failpoint::pass(job.place());
            let event = match job {
                Job::Begin => {
                    set_parked(&self.shared, &self.slots, true);
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
                    set_parked(&self.shared, &self.slots, false);
                    failpoint::pass("target-abandoned");
                    continue;
                }
                Job::Finish => {
                    // Clients first: until the keys are counted, they are only missing from DBSIZE and the like.
                    set_parked(&self.shared, &self.slots, false);
                    failpoint::pass("target-served");
                    if let Some(import) = self.import.take() {
                        import.finish();
                    }
                    failpoint::pass("target-finished");
                    continue;
                }
            };
            // Nobody listens any more: the log has decided.
            let _ = self.events.send(event);
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
