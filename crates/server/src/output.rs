//! What a socket has not taken yet.
//!
//! Owns: unsent bytes in order, and sending them. Does **not** own limits on how many there may be.

use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use towline_resp::writer::Writer;

/// Slices given to one `writev`; Linux takes 1024, and more than this many gain nothing.
const SLICES_MAX: usize = 64;

/// Unsent bytes.
#[derive(Debug, Default)]
pub(crate) struct Output {
    chunks: VecDeque<Bytes>,
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

    /// Queues bytes.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.bytes += bytes.len();
            self.chunks.push_back(bytes);
        }
    }

    /// Queues what `writer` holds from byte `skip` on, and empties it.
    pub(crate) fn push_writer(&mut self, writer: &mut Writer, mut skip: usize) {
        let (text, shared) = writer.take();
        let text = Bytes::from(text);
        let mut from = 0;
        let mut push = |bytes: Bytes| {
            let skipped = skip.min(bytes.len());
            skip -= skipped;
            self.push(bytes.slice(skipped..));
        };
        for (at, bytes) in shared {
            push(text.slice(from..at));
            push(bytes);
            from = at;
        }
        push(text.slice(from..));
    }

    /// Sends until all is sent or the socket takes no more. Returns the bytes sent by the last step with `Pending` kept
    /// for the caller to wait on.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        while !self.chunks.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut count = 0;
            for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
                *slice = IoSlice::new(chunk);
                count += 1;
            }
            let sent = ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &slices[..count]))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(sent);
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut sent: usize) {
        self.bytes -= sent;
        while let Some(first) = self.chunks.front_mut() {
            if sent < first.len() {
                let _ = first.split_to(sent);
                return;
            }
            sent -= first.len();
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
            output.push_writer(&mut copy, skip);
            assert_eq!(output.chunks.iter().flatten().copied().collect::<Vec<u8>>(), whole[skip..]);
            assert_eq!(output.bytes(), whole.len() - skip);
        }
    }
}
