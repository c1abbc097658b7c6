//! `CLIENT PAUSE`.
//!
//! Owns: until when which commands wait. Does **not** own the connections that hold them back.

use crate::command::Args;
use crate::execute::Local;
use crate::session::Session;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use towline_spec::{Command, Flags};

/// The pause in force.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Unix milliseconds; 0 without a pause.
    until_ms: AtomicU64,
    all: AtomicBool,
}

impl Pause {
    /// Whether commands may have to wait.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.until_ms.load(Ordering::Relaxed) != 0
    }

    /// When the pause ends, in unix milliseconds, if there is one.
    pub(crate) fn until_ms(&self) -> Option<u64> {
        Some(self.until_ms.load(Ordering::Acquire)).filter(|&at| at != 0)
    }

    /// Holds commands back until then: all of them, or those that write. A pause in force gets longer and wider, never
    /// shorter, as in Redis.
    pub(crate) fn begin(&self, until_ms: u64, all: bool) {
        self.until_ms.fetch_max(until_ms, Ordering::AcqRel);
        if all {
            self.all.store(true, Ordering::Release);
        }
    }

    /// What is in force, to be put in force again by [`Pause::begin`].
    pub(crate) fn state(&self) -> (u64, bool) {
        (self.until_ms.load(Ordering::Acquire), self.all.load(Ordering::Acquire))
    }

    /// Ends the pause. Whoever waits is to be woken by the caller.
    pub(crate) fn end(&self) {
        self.until_ms.store(0, Ordering::Release);
        self.all.store(false, Ordering::Release);
    }
}

/// Whether the pause holds this command back.
#[inline]
pub(crate) fn holds_back(
    local: &Local,
    session: &Session,
    command: &'static Command,
    args: Args<'_>,
    now_ms: u64,
) -> bool {
    let pause = &local.shared.pause;
    pause.is_on() && holds(pause, session, command, args, now_ms)
}

#[cold]
fn holds(pause: &Pause, session: &Session, command: &'static Command, args: Args<'_>, now_ms: u64) -> bool {
    if pause.until_ms().is_none_or(|until| until <= now_ms) {
        pause.end();
        return false;
    }
    // CLIENT must get through: it is how the pause is ended.
    if args.is(0, "client") {
        return false;
    }
    if pause.all.load(Ordering::Acquire) {
        return true;
    }
    let writes = |command: &Command| command.flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE));
    match &session.multi {
        Some(multi) if command.name == "exec" => multi.queue.iter().any(|queued| writes(queued.command)),
        _ => writes(command),
    }
}
