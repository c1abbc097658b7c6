//! One open connection: its stream, its read buffer, its decoder.
//!
//! Owns how bytes are read and written. Does not own what they mean, nor when.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};
use towline_client_proto::{Batch, Generation};
use towline_resp::frame::{Decoder, Frame, FrameError};

use super::dial::Course;
use crate::dialing::DialRight;
use crate::engine::{Written, write_batch};
use crate::transport::Stream;

/// Room for one read. Some hundred small replies; larger reads gain nothing on the way through one core's cache.
const READ_BYTES: usize = 32 * 1024;

/// With less room than this the buffer is renewed before a read.
const READ_BYTES_MIN: usize = 4 * 1024;

/// A body of this size gets a buffer of its own, of exactly its size.
const LARGE_BYTES_MIN: usize = 64 * 1024;

/// The most that is reserved for a body before its bytes come. Reserved is not used: the pages come with the bytes.
const CLAIM_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Frames given to the bridge at once.
pub(super) const FRAMES_MAX: usize = 512;

/// One open connection.
pub(super) struct Connection {
    pub(super) generation: Generation,
    /// Where it was dialled.
    pub(super) course: Course,
    pub(super) stream: Stream,
    pub(super) buffer: BytesMut,
    pub(super) decoder: Decoder,
    pub(super) frames: Vec<Frame>,
    /// The buffer was made for a large body: it is read to its end and not beyond, so that it need not grow.
    pub(super) is_exact: bool,
    /// The other tasks were let go first, so that they submit what they have.
    pub(super) has_yielded: bool,
    /// The stream has taken bytes that it may still hold back.
    pub(super) needs_flush: bool,
    /// The right to dial, kept until the handshake is through.
    pub(super) right: Option<DialRight>,
}

impl Connection {
    pub(super) fn new(generation: Generation, course: Course, stream: Stream, right: DialRight) -> Self {
        Self {
            generation,
            course,
            stream,
            buffer: BytesMut::new(),
            decoder: Decoder::default(),
            frames: Vec::new(),
            is_exact: false,
            has_yielded: false,
            needs_flush: false,
            right: Some(right),
        }
    }

    /// One read. The future of `read_buf` may be dropped at any time without losing bytes.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let missing = self.decoder.bytes_missing(self.buffer.len());
        self.is_exact = missing > 0 && (self.is_exact || missing >= LARGE_BYTES_MIN);
        let limit = if self.is_exact { self.make_room(missing) } else { usize::MAX };
        if limit == usize::MAX && self.buffer.capacity() - self.buffer.len() < READ_BYTES_MIN {
            self.buffer.reserve(READ_BYTES);
        }
        let mut room = (&mut self.buffer).limit(limit);
        pin!(self.stream.read_buf(&mut room)).poll(cx)
    }

    /// A buffer for the rest of a large body, and nothing behind it. Returns how much may be read.
    fn make_room(&mut self, missing: usize) -> usize {
        let wanted = missing.min(CLAIM_BYTES_MAX.max(self.buffer.len()));
        if self.buffer.capacity() - self.buffer.len() < wanted {
            let mut exact = BytesMut::with_capacity(self.buffer.len() + wanted);
            exact.extend_from_slice(&self.buffer);
            self.buffer = exact;
        }
        wanted
    }

    /// Moves whole frames from the buffer to the list, until it is long.
    pub(super) fn decode(&mut self) -> Option<FrameError> {
        while self.frames.len() < FRAMES_MAX {
            match self.decoder.decode(&mut self.buffer) {
                Ok(Some(frame)) => self.frames.push(frame),
                Ok(None) => break,
                Err(error) => return Some(error),
            }
        }
        None
    }

    /// An empty rest of a large buffer would keep all of it alive.
    pub(super) fn trim(&mut self) {
        if self.buffer.is_empty() && self.decoder.is_idle() && self.buffer.capacity() == 0 {
            self.buffer = BytesMut::new();
        }
    }

    pub(super) fn write(&mut self, cx: &mut Context<'_>, batch: Batch) -> (Batch, Written) {
        let stream = &mut self.stream;
        let (batch, mut written) = write_batch(batch, |pieces| poll_write(stream, cx, pieces));
        self.needs_flush |= written.count > 0 && stream.needs_flush();
        if let Err(error) = self.flush(cx)
            && written.error.is_none()
        {
            written.error = Some(error);
        }
        (batch, written)
    }

    /// Pushes on what the stream holds back; if it cannot now, the task is woken when it can.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.needs_flush
            && let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(cx)
        {
            self.needs_flush = false;
            return flushed;
        }
        Ok(())
    }
}

/// A vectored write as a function that blocks or not; if it does, the task is woken when the kernel takes bytes again.
fn poll_write(stream: &mut Stream, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
    match Pin::new(stream).poll_write_vectored(cx, pieces) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

#[cfg(test)]
mod tests;
