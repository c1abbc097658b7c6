//! The appender's thread.
//!
//! Owns: when turns are taken and the thread sleeps, the thread that syncs beside it. Does **not** decide anything about the
//! log.
//!
//! Under `everysec` and `no` the appender rests a few milliseconds after each write, so that under load a command costs no
//! system call for it, and writes are large. Under `always` it goes on at once: what came while the device was busy is the
//! next group.

use super::handle::{AWAKE, Bell, IDLE, Line, Message, RESTING};
use super::{Appender, CROWDED_BYTES, Now, Policy, SyncDone, SyncJob, Turn, WAKE_BYTES};
use crate::connection::unix_ms;
use crate::persistence::Persistence;
use crate::shared::Shared;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as Clock};
use towline_sansio::Instant;
use towline_store::stream::{Waiting, Wake};

/// How long effects gather before they are written, unless `always` waits for them. What a process that is killed may lose
/// under the other policies.
const REST: Duration = Duration::from_millis(5);

/// Starts the thread; it ends with [`super::LogHandle::end`].
///
/// # Errors
/// No thread is to be had; the environment's fault.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let line = shared.persistence.log.take_line();
    let line = line.ok_or_else(|| io::Error::other("the appender was started before"))?;
    let shared = Arc::clone(shared);
    thread::Builder::new().name("appender".into()).spawn(move || Driver::new(shared, line).run())
}

/// What is called under slots' locks when effects have come.
fn wake(shared: &Arc<Shared>) -> Wake {
    let bell = Arc::clone(&shared.persistence.log.bell);
    let weak: Weak<Shared> = Arc::downgrade(shared);
    Arc::new(move |waiting| {
        let bytes = match waiting {
            Waiting::Effects { bytes } => bytes,
            Waiting::Overrun => usize::MAX,
        };
        if bytes >= CROWDED_BYTES
            && let Some(shared) = weak.upgrade()
        {
            shared.persistence.gate.set_crowded(true);
        }
        let is_due = match bell.mode.load(Ordering::SeqCst) {
            IDLE => true,
            RESTING => bytes >= WAKE_BYTES,
            _ => false,
        };
        if is_due {
            bell.ring();
        }
    })
}

/// Syncs beside the appender.
struct Syncer {
    jobs: Sender<SyncJob>,
    thread: JoinHandle<()>,
}

struct Driver {
    shared: Arc<Shared>,
    core: Appender,
    line: Line,
    syncer: Option<Syncer>,
    started: Clock,
}

impl Driver {
    fn new(shared: Arc<Shared>, line: Line) -> Self {
        let config = &shared.config().persistence;
        let (fsync, timestamps) = (config.appendfsync, config.aof_timestamp_enabled);
        let policy = Policy { fsync, timestamps, pause_sync: false };
        let core = Appender::new(policy, wake(&shared));
        Self { shared, core, line, syncer: None, started: Clock::now() }
    }

    fn now(&self) -> Now {
        Now { instant: Instant::ZERO + self.started.elapsed(), unix_ms: unix_ms() }
    }

    fn persistence(&self) -> &Persistence {
        &self.shared.persistence
    }

    fn run(mut self) {
        let bell = Arc::clone(&self.persistence().log.bell);
        // Nobody else sets it.
        let _ = bell.thread.set(thread::current());
        loop {
            while let Ok(done) = self.line.syncs.try_recv() {
                self.synced(done);
            }
            while let Ok(message) = self.line.messages.try_recv() {
                self.settle();
                if self.handle(message).is_break() {
                    return;
                }
            }
            let turn = self.turn();
            if !(turn.is_busy && self.core.is_always()) {
                self.sleep(&bell, &turn);
            }
        }
    }

    fn turn(&mut self) -> Turn {
        let (shared, now) = (Arc::clone(&self.shared), self.now());
        let mut turn = self.core.turn(&shared.store, &shared.persistence.gate, now);
        if let Some(job) = turn.sync.take() {
            self.sync_elsewhere(job);
        }
        self.publish();
        if turn.wants_recovery {
            self.persistence().log.ask_for_recovery();
        }
        turn
    }

    /// Tells the others how things are.
    fn publish(&self) {
        self.persistence().releases.ring();
        self.persistence().log.publish(self.core.status());
    }

    fn sleep(&self, bell: &Bell, turn: &Turn) {
        if turn.is_busy {
            bell.mode.store(RESTING, Ordering::SeqCst);
            thread::park_timeout(REST);
        } else {
            bell.mode.store(IDLE, Ordering::SeqCst);
            // Whoever found the appender awake before that did not ring.
            if !self.core.has_effects() {
                match turn.at {
                    None => thread::park(),
                    Some(at) => thread::park_timeout(at.since(self.now().instant)),
                }
            }
        }
        bell.mode.store(AWAKE, Ordering::SeqCst);
    }

    // ---- syncing --------------------------------------------------------------------------------------------------

    fn sync_elsewhere(&mut self, job: SyncJob) {
        if self.syncer.is_none() {
            self.syncer = self.start_syncer();
        }
        // Without a thread to be had, it is done here.
        let left = match &self.syncer {
            Some(syncer) => syncer.jobs.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        };
        if let Some(job) = left {
            self.synced(job.run());
        }
    }

    fn start_syncer(&self) -> Option<Syncer> {
        let (jobs, receiver) = channel::<SyncJob>();
        let (done, bell) = (self.line.synced.clone(), Arc::clone(&self.persistence().log.bell));
        let work = move || {
            for job in receiver {
                // The appender outlives this thread.
                let _ = done.send(job.run());
                bell.ring();
            }
        };
        let thread = thread::Builder::new().name("log-sync".into()).spawn(work).ok()?;
        Some(Syncer { jobs, thread })
    }

    fn synced(&mut self, done: SyncDone) {
        let (shared, now) = (Arc::clone(&self.shared), self.now());
        self.core.synced(done, &shared.persistence.gate, now);
    }

    /// Waits for the sync that is under way, if there is one. What comes meanwhile is written: a sync may take long.
    fn settle(&mut self) {
        while self.core.is_sync_running() {
            match self.line.syncs.recv_timeout(REST) {
                Ok(done) => self.synced(done),
                Err(RecvTimeoutError::Timeout) => _ = self.turn(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    // ---- messages -------------------------------------------------------------------------------------------------

    fn handle(&mut self, message: Message) -> ControlFlow<()> {
        let (shared, now) = (Arc::clone(&self.shared), self.now());
        let (store, gate, core) = (&shared.store, &shared.persistence.gate, &mut self.core);
        // Whoever is answered finds the status as the answer says. An answer that nobody waits for is lost.
        match message {
            Message::Begin { file, name, bytes, done } => {
                let result = core.begin(file, name, bytes, store, gate, now);
                self.publish();
                _ = done.send(result);
            }
            Message::Switch { kind, file, name, base, done } => {
                let result = core.switch(kind, file, name, &base, store, gate, now);
                self.publish();
                _ = done.send(result);
            }
            Message::Committed { done } => {
                core.committed(gate, now);
                self.publish();
                _ = done.send(());
            }
            Message::GivenUp { done } => {
                core.given_up(store, gate, now);
                self.publish();
                _ = done.send(());
            }
            Message::Stop { done } => {
                let result = core.stop(store, gate, now);
                self.publish();
                _ = done.send(result);
            }
            Message::Finish { done } => {
                core.hold_everything(gate);
                let result = core.finish(store, gate, now);
                self.publish();
                _ = done.send(result);
            }
            Message::Policy { policy, done } => {
                core.set_policy(policy, store, gate, now);
                self.publish();
                _ = done.send(());
            }
            Message::End { done } => {
                if let Err(error) = core.stop(store, gate, now) {
                    tracing::error!(%error, "the end of the log is not on the device");
                }
                if let Some(syncer) = self.syncer.take() {
                    drop(syncer.jobs);
                    // It does nothing that could panic but what tests make it do.
                    let _ = syncer.thread.join();
                }
                self.publish();
                _ = done.send(());
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
