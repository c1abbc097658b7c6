//! A connection that waits: for a key, for a pause to end, for memory, or for the log.
//!
//! Owns: going to wait and coming back. Does **not** own who serves a waiter (see [`crate::blocking`]).

use super::{Connection, Desk, End, Waiting, unix_ms};
use crate::blocking::{self, Waiter};
use crate::client::{Ending, flag};
use crate::command::OwnedArgs;
use crate::execute::Local;
use crate::parking::Parking;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

/// How long a write waits before it looks again whether the log has caught up with the writes, and a command on a slot that changes
/// hands, whose it is.
const CROWDED_REST: Duration = Duration::from_millis(2);
/// A connection with so many bytes of replies that wait for the log executes nothing more until some have left.
const HELD_BYTES_MAX: usize = 1 << 20;

/// The time until every other connection that is ready had its turn, those whose bytes are just coming in included.
pub(super) struct Turn(Pin<Box<dyn Future<Output = ()>>>);

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turn")
    }
}

impl Connection {
    /// Ends the waiting when its time has come, and goes on with what was read meanwhile, or before the last turn ended.
    pub(super) fn poll_waiting(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Result<(), End> {
        let Some(waiting) = self.waiting.as_deref_mut() else {
            return if self.is_cut { self.go_on(cx, desk) } else { Ok(()) };
        };
        let now_ms = unix_ms();
        desk.out.proto = self.session.proto;
        let held_back = match waiting {
            Waiting::Paused { timer, command } => {
                let until = desk.local.shared.pause.until_ms();
                if until.is_some_and(|until| until > now_ms) && timer.as_mut().poll(cx).is_pending() {
                    return Ok(());
                }
                self.session.client.set_flag(flag::PAUSED, false);
                Some(command.clone())
            }
            Waiting::Parked { parking, command } => {
                if !parking.is_over(self.session.client.id, cx.waker()) {
                    return Ok(());
                }
                Some(command.clone())
            }
            Waiting::Crowded { turn, command } => {
                if turn.0.as_mut().poll(cx).is_pending() {
                    return Ok(());
                }
                Some(command.clone())
            }
            Waiting::Blocked { waiter, timer } => {
                let is_late = timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
                if is_late {
                    *timer = None;
                }
                let waiter = Arc::clone(waiter);
                let reply = waiter.take_reply();
                // Served at this moment: the reply comes with the next wake-up.
                if reply.is_none() && !(is_late && waiter.end()) {
                    return Ok(());
                }
                blocking::forget(&mut desk.local, &waiter, now_ms);
                match reply {
                    _ if waiter.is_silent() => {}
                    Some(reply) => {
                        let output = self.output.get_or_insert_default();
                        let position = reply.position;
                        reply.parts.into_iter().for_each(|bytes| output.push(bytes, position));
                    }
                    None => waiter.nothing().write(&mut desk.out),
                }
                None
            }
        };
        self.waiting = None;
        if let Some(command) = held_back {
            self.execute_one(cx, desk, command.args(), now_ms);
            if !matches!(self.waiting.as_deref(), Some(Waiting::Parked { .. })) {
                // Whatever it waited for of its own, it had.
                self.session.decoding = None;
            }
            if self.waiting.is_some() {
                return self.send_replies(cx, desk);
            }
        }
        self.go_on(cx, desk)
    }

    /// Executes what was read before, as much as the turn allows, and sends the replies.
    fn go_on(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Result<(), End> {
        self.execute_kept(cx, desk)?;
        self.enforce_input_limit(desk)?;
        self.send_replies(cx, desk)
    }

    pub(super) fn pause(&mut self, cx: &mut Context<'_>, local: &Local, command: OwnedArgs) {
        let until = local.shared.pause.until_ms().unwrap_or(0);
        let timer = Box::pin(tokio::time::sleep(Duration::from_millis(until.saturating_sub(unix_ms()))));
        self.session.client.set_flag(flag::PAUSED, true);
        self.waiting = Some(Box::new(Waiting::Paused { timer, command }));
        // The timer is looked at in the next turn.
        cx.waker().wake_by_ref();
    }

    /// Sees to being woken when the log is durable up to `position`.
    #[cold]
    pub(super) fn wait_for_log(&mut self, cx: &Context<'_>, local: &mut Local, position: u64) {
        // Once it need not wait for a position, it never has to again.
        if self.awaited != position {
            self.awaited = position;
            let Local { held, shared, worker, .. } = local;
            let persistence = &shared.persistence;
            held.add(&persistence.releases, &persistence.gate, *worker, position, cx.waker());
        }
    }

    /// Whether so many replies wait for the log that nothing more is executed: what the peer sends stays with it.
    pub(super) fn holds_much(&self, local: &Local) -> bool {
        let gate = &local.shared.persistence.gate;
        self.output.as_ref().is_some_and(|output| output.bytes() >= HELD_BYTES_MAX && output.is_held(gate))
    }

    /// The command runs again when the waiting there is over.
    pub(super) fn park(&mut self, cx: &Context<'_>, parking: Arc<Parking>, command: OwnedArgs) {
        self.waiting = Some(Box::new(Waiting::Parked { parking, command }));
        // Whether it is over by now is looked at in the next turn.
        cx.waker().wake_by_ref();
    }

    pub(super) fn wait_for_turn(&mut self, cx: &mut Context<'_>, local: &Local, command: OwnedArgs) {
        let has_parked = local.shared.cluster.as_deref().is_some_and(|cluster| cluster.table.has_parked());
        let mut turn = if has_parked || local.shared.persistence.gate.is_crowded() {
            Turn(Box::pin(tokio::time::sleep(CROWDED_REST)))
        } else {
            Turn(Box::pin(tokio::task::yield_now()))
        };
        // The first look asks to be woken.
        if turn.0.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        self.waiting = Some(Box::new(Waiting::Crowded { turn, command }));
    }

    pub(super) fn block(&mut self, cx: &mut Context<'_>, waiter: Arc<Waiter>) {
        if self.session.client.ending() != Ending::No {
            // Who is to leave must not begin to wait. That it is served just now is as well.
            let _ = waiter.time_out();
        }
        let timer = waiter.timeout().map(|timeout| Box::pin(tokio::time::sleep(timeout)));
        self.waiting = Some(Box::new(Waiting::Blocked { waiter, timer }));
        // The timer and the reply, which may be there already, are looked at in the next turn.
        cx.waker().wake_by_ref();
    }
}
