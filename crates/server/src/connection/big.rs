//! An argument that is read straight into its own block.
//!
//! Owns: the block's growth and reading into it. Does **not** own which arguments are big (see [`RequestParser`]).
//!
//! [`RequestParser`]: towline_resp::request::RequestParser

use super::{Connection, Desk, End};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::io::AsyncReadExt;
use towline_resp::request::strip_bulk_end;

/// A big argument's buffer grows to at most this many times what has arrived, and at least by this much at a time: what is
/// claimed and never sent costs address space, not memory, and a large value is moved once on its way.
const BIG_GROWTH: usize = 64;
const BIG_STEP_BYTES: usize = 1 << 20;

/// A bulk that is read straight into its own block.
#[derive(Debug)]
pub(super) struct Big {
    pub(super) block: Vec<u8>,
    pub(super) len: usize,
}

impl Big {
    /// Bytes still to come, the line end included.
    fn missing(&self) -> usize {
        self.len + 2 - self.block.len()
    }

    /// Makes room for more, in proportion to what has come: a claimed length alone allocates nothing.
    fn reserve(&mut self) {
        if self.block.capacity() == self.block.len() {
            let step = (self.block.len() * (BIG_GROWTH - 1)).max(BIG_STEP_BYTES).min(self.missing());
            self.block.reserve_exact(step);
        }
    }
}

impl Connection {
    /// Reads once into the big argument's block; executes its command when it is whole.
    pub(super) fn poll_read_big(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Result<Poll<()>, End> {
        let big = self.big.as_mut().expect("invariant: called while a big argument is read");
        big.reserve();
        let missing = big.missing();
        let mut taken = (&mut self.stream).take(missing as u64);
        let polled = pin!(taken.read_buf(&mut big.block)).poll(cx);
        match polled {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(read) => {
                let read = read?;
                if read == 0 {
                    return Err(End::Peer);
                }
                self.session.client.bytes_in.fetch_add(read as u64, Ordering::Relaxed);
                desk.local.shared.stats.worker(desk.local.worker).received(read);
            }
        }
        if big.missing() > 0 {
            self.enforce_input_limit(desk)?;
            return Ok(Poll::Ready(()));
        }
        let Big { mut block, len } = *self.big.take().expect("invariant: it was just there");
        desk.out.proto = self.session.proto;
        match strip_bulk_end(&mut block, len) {
            Ok(()) => {
                self.owned.push(Arc::new(block));
                self.parser.big_taken();
                self.execute_kept(cx, desk)?;
            }
            Err(error) => self.refuse(desk, &error),
        }
        self.enforce_input_limit(desk)?;
        self.send_replies(cx, desk).map(Poll::Ready)
    }
}
