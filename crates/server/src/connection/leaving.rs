//! A connection that ends.
//!
//! Owns: when one that a drain closes is done, and ending so that the peer gets every reply. Does **not** own which connections those are (see
//! [`crate::maintenance`]).

use super::{Connection, End, end_turn};
use crate::client::Ending;
use crate::execute::Local;
use crate::output::Sent;
use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How long nothing may come in before the connection is done: the parts of a pipeline follow one another more quickly.
const QUIET: Duration = Duration::from_millis(5);
/// Bytes of one read that is thrown away, and how many of those are made in one turn.
const DISCARDED_BYTES: usize = 4096;
const DISCARDS_PER_TURN: usize = 16;

/// The time in which nothing has come in.
#[derive(Debug)]
pub(super) struct Quiet {
    timer: Pin<Box<Sleep>>,
    /// All that had come in when it began.
    bytes_in: u64,
}

impl Connection {
    /// Sends what is left, as far as the socket takes it at once, and ends.
    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>, local: &mut Local) -> Poll<()> {
        if !self.session.client.is_killed()
            && let Some(output) = &mut self.output
        {
            match output.poll_send(cx, &mut self.stream, &local.shared.persistence.gate) {
                Ok(Sent::All) | Err(_) => {}
                Ok(Sent::Full) => return Poll::Pending,
                Ok(Sent::Held(position)) => {
                    self.wait_for_log(cx, local, position);
                    self.register(cx, self.session.client.ending());
                    return Poll::Pending;
                }
            }
        }
        let is_shut = Pin::new(&mut self.stream).poll_shutdown(cx).is_ready();
        match self.session.client.ending() {
            Ending::Killed => Poll::Ready(()),
            Ending::Finishing | Ending::Flushing if is_shut => self.poll_linger(cx),
            _ if is_shut => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    /// Takes notice of how it is to end.
    #[cold]
    pub(super) fn begin_to_leave(&mut self, ending: Ending) -> Result<(), End> {
        match ending {
            Ending::No | Ending::Finishing => Ok(()),
            Ending::Flushing => {
                self.session.is_closing = true;
                Ok(())
            }
            Ending::Killed => Err(End::Here),
        }
    }

    /// Ends if all that came in is answered, all that was answered is sent, and nothing more has come for a while. A
    /// transaction that is being put together is something unanswered. The socket has nothing to read now.
    #[cold]
    pub(super) fn leave_if_done(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let is_read = self.input.is_empty() && self.big.is_none() && self.owned.is_empty();
        let is_answered = self.waiting.is_none() && self.session.multi.is_none();
        let is_sent = self.is_sent() && !self.is_unflushed && !self.session.client.has_mail();
        if !(is_read && is_answered && is_sent) {
            self.quiet = None;
            return Ok(());
        }
        let bytes_in = self.session.client.bytes_in.load(Ordering::Relaxed);
        let begin = || Box::new(Quiet { timer: Box::pin(tokio::time::sleep(QUIET)), bytes_in });
        let quiet = match self.quiet.take().filter(|quiet| quiet.bytes_in == bytes_in) {
            Some(quiet) => self.quiet.insert(quiet),
            None => self.quiet.insert(begin()),
        };
        if quiet.timer.as_mut().poll(cx).is_pending() {
            return Ok(());
        }
        self.session.is_closing = true;
        Err(End::Here)
    }

    /// Waits for the peer to close, and throws away what it still sends: closing a socket that has something unread makes
    /// the system drop replies that are on their way. The drain's last step ends the waiting.
    #[cold]
    pub(super) fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ending = self.session.client.ending();
        let mut space = [MaybeUninit::uninit(); DISCARDED_BYTES];
        for _ in 0..DISCARDS_PER_TURN {
            let mut buffer = ReadBuf::uninit(&mut space);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    self.register(cx, ending);
                    return Poll::Pending;
                }
            }
        }
        end_turn(cx);
        Poll::Pending
    }
}
