//! What a socket has not taken yet.
//!
//! Owns: unsent bytes in order, sending them, and not sending what the log has to have first. Does **not** own limits on how
//! many there may be, nor waking whoever waits for the log (see [`crate::persistence::held`]).

use crate::persistence::gate::Gate;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use towline_resp::writer::Writer;

/// Slices given to one `writev`; Linux takes 1024, and more than this many gain nothing.
const SLICES_MAX: usize = 64;

/// Text up to this length is copied when it is kept, so that the buffer that it was written to, which is larger, is used again.
const COPIED_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug)]
struct Chunk {
    bytes: Bytes,
    /// It tells of the log up to there.
    position: u64,
}

/// How far sending has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All is sent.
    All,
    /// The socket takes no more, and wakes the task when it does.
    Full,
    /// What is next tells of the log up to this position, which is not durable. Nobody wakes the task.
    Held(u64),
}

/// Unsent bytes.
#[derive(Debug, Default)]
pub(crate) struct Output {
    chunks: VecDeque<Chunk>,
    bytes: usize,
}

impl Output {
    /// Bytes that are not sent.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether all is sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether what is next has to wait for the log.
    pub(crate) fn is_held(&self, gate: &Gate) -> bool {
        self.chunks.front().is_some_and(|chunk| gate.holds(chunk.position))
    }

    /// Queues bytes that tell of the log up to `position`; 0 if of nothing.
    pub(crate) fn push(&mut self, bytes: Bytes, position: u64) {
        if !bytes.is_empty() {
            self.bytes += bytes.len();
            self.chunks.push_back(Chunk { bytes, position });
        }
    }

    /// Queues what `writer` holds from byte `skip` on, and empties it. It tells of the log up to `position`.
    pub(crate) fn push_writer(&mut self, writer: &mut Writer, mut skip: usize, position: u64) {
        if !writer.has_shared() && writer.len_bytes() <= COPIED_BYTES_MAX {
            self.push(Bytes::copy_from_slice(&writer.buf()[skip..]), position);
            writer.clear();
            return;
        }
        let (text, shared) = writer.take();
        let text = Bytes::from(text);
        let mut from = 0;
        let mut push = |bytes: Bytes| {
            let skipped = skip.min(bytes.len());
            skip -= skipped;
            self.push(bytes.slice(skipped..), position);
        };
        for (at, bytes) in shared {
            push(text.slice(from..at));
            push(bytes);
            from = at;
        }
        push(text.slice(from..));
    }

    /// Sends until all is sent, the socket takes no more, or what is next has to wait for the log.
    ///
    /// # Errors
    /// The peer's or the network's fault: nothing more can be sent.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut (impl AsyncWrite + Unpin),
        gate: &Gate,
    ) -> io::Result<Sent> {
        while let Some(first) = self.chunks.front() {
            if gate.holds(first.position) {
                return Ok(Sent::Held(first.position));
            }
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut count = 0;
            let free = self.chunks.iter().take_while(|chunk| !gate.holds(chunk.position));
            for (slice, chunk) in slices.iter_mut().zip(free) {
                *slice = IoSlice::new(&chunk.bytes);
                count += 1;
            }
            match Pin::new(&mut *stream).poll_write_vectored(cx, &slices[..count.max(1)]) {
                Poll::Pending => return Ok(Sent::Full),
                Poll::Ready(sent) => match sent? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    sent => self.advance(sent),
                },
            }
        }
        Ok(Sent::All)
    }

    fn advance(&mut self, mut sent: usize) {
        self.bytes -= sent;
        while let Some(first) = self.chunks.front_mut() {
            if sent < first.bytes.len() {
                let _ = first.bytes.split_to(sent);
                return;
            }
            sent -= first.bytes.len();
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_resp::Proto;

    #[test]
    fn a_writers_shared_parts_keep_their_place() {
        let mut writer = Writer::new(Proto::Resp2);
        writer.int(1);
        writer.bulk_shared(Bytes::from(vec![b'x'; 20_000]));
        writer.int(2);
        let whole = writer.segments().collect::<Vec<_>>().concat();
        for skip in [0, 3, 10, 15_000, whole.len() - 2, whole.len()] {
            let mut copy = Writer::new(Proto::Resp2);
            copy.int(1);
            copy.bulk_shared(Bytes::from(vec![b'x'; 20_000]));
            copy.int(2);
            let mut output = Output::default();
            output.push_writer(&mut copy, skip, 0);
            let kept: Vec<u8> = output.chunks.iter().flat_map(|chunk| chunk.bytes.to_vec()).collect();
            assert_eq!(kept, whole[skip..]);
            assert_eq!(output.bytes(), whole.len() - skip);
        }
    }
}
