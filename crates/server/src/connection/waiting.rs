//! A connection that waits: for a key, or for a pause to end.
//!
//! Owns: going to wait and coming back. Does **not** own who serves a waiter (see [`crate::blocking`]).

use super::{Connection, Desk, End, Waiting, unix_ms};
use crate::blocking::{self, Waiter};
use crate::client::flag;
use crate::command::OwnedArgs;
use crate::execute::Local;
use std::future::Future;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

impl Connection {
    /// Ends the waiting when its time has come, and goes on with what was read meanwhile.
    pub(super) fn poll_waiting(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Result<(), End> {
        let Some(waiting) = self.waiting.as_deref_mut() else { return Ok(()) };
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
                    Some(reply) => {
                        let output = self.output.get_or_insert_default();
                        reply.into_iter().for_each(|bytes| output.push(bytes));
                    }
                    None => waiter.nothing().write(&mut desk.out),
                }
                None
            }
        };
        self.waiting = None;
        if let Some(command) = held_back {
            self.execute_one(cx, desk, command.args(), now_ms);
        }
        let input = std::mem::take(&mut self.input);
        self.execute(cx, desk, &input)?;
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

    pub(super) fn block(&mut self, cx: &mut Context<'_>, waiter: Arc<Waiter>) {
        let timer = waiter.timeout().map(|timeout| Box::pin(tokio::time::sleep(timeout)));
        self.waiting = Some(Box::new(Waiting::Blocked { waiter, timer }));
        // The timer and the reply, which may be there already, are looked at in the next turn.
        cx.waker().wake_by_ref();
    }
}
