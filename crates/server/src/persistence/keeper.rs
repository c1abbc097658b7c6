//! The thread that saves and rewrites.
//!
//! Owns: being asked, by commands, by the clock and by the end of the server; and the thread itself, which is a loop around
//! [`Core`]. Does **not** own what a snapshot is (see [`super::snapshot`]) nor the log's files as they grow.
//!
//! What commands must answer at once (`BGSAVE` while another one runs) is decided by [`Status`], which they look at and
//! change under its lock; what they answer later, they wait for as [`crate::blocking::Waiter`]s.

mod core;
mod rewrite;
mod save;
mod status;

pub(crate) use self::core::{Core, When};
pub(crate) use save::options;
pub(crate) use status::Running;

use status::Status;

use crate::blocking::Waiter;
use crate::command::CommandError;
use crate::connection::unix_ms;
use crate::persistence::loading::{self, Prepared, ReloadOptions};
use crate::shared::{Shared, Stop};
use save::remove_leftovers;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use towline_sansio::Instant;

/// The present, as it was read by whoever runs a core.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// For intervals: it never jumps.
    pub(crate) at: Instant,
    /// For what is written into files and told to clients.
    pub(crate) unix_ms: u64,
}

/// What a client asks for and waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    /// `SAVE`.
    Save,
    /// `DEBUG RELOAD` and `DEBUG LOADAOF`.
    Reload(ReloadOptions),
    /// `SHUTDOWN`.
    Stop(StopOptions),
}

/// How the server is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StopOptions {
    /// `SAVE` or `NOSAVE`; without either, a snapshot is made if there are save points.
    pub(crate) save: Option<bool>,
    /// `FORCE`: whether it stops even if what was to be kept could not be.
    pub(crate) is_forced: bool,
}

/// What the keeper is asked to do.
#[derive(Debug)]
pub(crate) enum Request {
    /// A client's, which waits.
    Errand(Errand, Arc<Waiter>),
    /// Something in [`Status`] has changed: look at it.
    Look,
    /// Parameters may have changed.
    ConfigChanged,
    /// The log has failed: the data is to be written anew.
    Recover,
    /// As `SHUTDOWN`, and nobody waits for an answer.
    Stop(StopOptions),
    /// The server has stopped.
    Quit,
}

/// To reach the keeper's thread.
#[derive(Debug)]
pub(crate) struct Keeper {
    status: Mutex<Status>,
    requests: Sender<Request>,
    /// Until the thread takes it.
    receiver: Mutex<Option<Receiver<Request>>>,
}

impl Keeper {
    /// Of a server that started at `now_ms`, in unix milliseconds.
    pub(crate) fn new(now_ms: u64) -> Self {
        let (requests, receiver) = channel();
        let status = Mutex::new(Status::new(now_ms));
        Self { status, requests, receiver: Mutex::new(Some(receiver)) }
    }

    /// Asks for something. After the thread's end nobody is there to do it, and nothing is to be done.
    pub(crate) fn send(&self, request: Request) {
        let _ = self.requests.send(request);
    }

    /// What goes on, and what came of what went before.
    pub(crate) fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests, once.
    pub(crate) fn receiver(&self) -> Option<Receiver<Request>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// `SHUTDOWN ABORT`: whether there was something to abort.
    pub(crate) fn abort_stop(&self) -> bool {
        let is_aborted = self.status().abort_stop();
        self.send(Request::Look);
        is_aborted
    }

    /// `BGREWRITEAOF`: the reply.
    pub(crate) fn ask_rewrite(
        &self,
        has_log: bool,
        in_exec: bool,
        unix_ms: u64,
    ) -> Result<&'static str, CommandError> {
        let reply = self.status().ask_rewrite(has_log, in_exec, unix_ms)?;
        self.send(Request::Look);
        Ok(reply)
    }

    /// `BGSAVE`: the reply.
    pub(crate) fn ask_save(
        &self,
        is_schedule: bool,
        in_exec: bool,
        unix_ms: u64,
    ) -> Result<&'static str, CommandError> {
        let reply = self.status().ask_save(is_schedule, in_exec, unix_ms)?;
        self.send(Request::Look);
        Ok(reply)
    }
}

/// Tells the time of the thread.
#[derive(Debug)]
struct Clock(std::time::Instant);

impl Clock {
    fn now(&self) -> Now {
        let nanos = u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Now { at: Instant::from_nanos(nanos), unix_ms: unix_ms() }
    }
}

/// Stops the server if the thread ends by a panic: without it nothing would be saved, and who waits would wait for ever.
struct StopOnPanic<'a>(&'a Shared);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(Stop::Gracefully);
        }
    }
}

/// What the snapshot's thread gives way by, on the scale of `nice`: on a machine without an idle core, commands come first. It
/// still has a tenth of a core then, and a whole one otherwise.
const NICE: i32 = 10;

/// Loads the data set, then saves and rewrites until the server stops.
pub(crate) fn run(shared: &Arc<Shared>, prepared: Prepared) {
    let _guard = StopOnPanic(shared);
    let Some(requests) = shared.persistence.keeper.receiver() else { return };
    let clock = Clock(std::time::Instant::now());
    let Some(mut core) = start(shared, prepared, || clock.now()) else { return };
    give_way();
    loop {
        while let Ok(request) = requests.try_recv() {
            core.handle(request, clock.now());
        }
        let next = match core.turn(clock.now()) {
            When::AtOnce => continue,
            When::Over => return,
            When::At(at) => requests.recv_timeout(at.since(clock.now().at)),
            When::Asked => requests.recv().map_err(RecvTimeoutError::from),
        };
        match next {
            Ok(request) => core.handle(request, clock.now()),
            Err(RecvTimeoutError::Timeout) => {}
            // The sender lives in `shared`.
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Loads the data set and begins the log; `None` if that fails and the server ends.
fn start(shared: &Arc<Shared>, mut prepared: Prepared, now: impl Fn() -> Now) -> Option<Core> {
    if let Some(lock) = prepared.lock.take() {
        shared.persistence.keep_lock(prepared.dir(), lock);
        remove_leftovers(&*shared.persistence.disk, prepared.dir());
    }
    let weak = Arc::downgrade(shared);
    shared.persistence.log.on_failure(Box::new(move || {
        if let Some(shared) = weak.upgrade() {
            shared.persistence.keeper.send(Request::Recover);
        }
    }));
    loading::run_at_start(shared, &prepared, |loaded| {
        let mut core = Core::new(Arc::clone(shared), now());
        core.begin_log(loaded, now())?;
        Ok(core)
    })
}

/// Lowers the priority of this thread alone. Where that is not allowed, it stays as it is.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    }
}

#[cfg(test)]
mod tests;
