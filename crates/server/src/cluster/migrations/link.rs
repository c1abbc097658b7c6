//! A connection that carries frames of a migration.
//!
//! Owns: bytes to frames and back, and closing. Does **not** own which frames: the machines bound how many are under way.

use bytes::BytesMut;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::timeout;
use towline_cluster_proto::migration::wire::Frame;

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// Bytes that are encoded before they are written.
const WRITE_BYTES: usize = 512 << 10;
/// How long a link that is closed goes on writing what was said before.
const LINGER: Duration = Duration::from_secs(1);

/// Reads frames.
#[derive(Debug)]
pub(super) struct Reader {
    stream: TcpStream,
    buffer: BytesMut,
}

/// A link whose first frame was read.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) attempt: u32,
    pub(super) version: u16,
    pub(super) reader: Reader,
}

impl Reader {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// The next frame; `None` at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        next(&mut self.stream, &mut self.buffer).await
    }
}

async fn next(stream: &mut (impl AsyncReadExt + Unpin), buffer: &mut BytesMut) -> io::Result<Option<Frame>> {
    loop {
        if let Some(frame) = Frame::decode(buffer).map_err(io::Error::other)? {
            return Ok(Some(frame));
        }
        buffer.reserve(READ_BYTES);
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// A link at work. Dropping it closes it once what was sent is written.
#[derive(Debug)]
pub(super) struct Link {
    frames: UnboundedSender<Frame>,
    reading: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// What a link tells.
#[derive(Debug)]
pub(super) enum Heard {
    Frame(Frame),
    /// It is gone, for this reason.
    Lost(String),
}

impl Link {
    /// Starts to read and write; `tell` is called with what comes, and last with [`Heard::Lost`].
    pub(super) fn start(reader: Reader, tell: impl Fn(Heard) + Clone + 'static) -> Self {
        let Reader { stream, buffer } = reader;
        let (read, write) = stream.into_split();
        let (frames, queue) = unbounded_channel();
        let told = tell.clone();
        spawn_local(async move {
            if let Err(error) = write_all(write, queue).await {
                told(Heard::Lost(error.to_string()));
            }
        });
        let reading = spawn_local(read_all(read, buffer, tell)).abort_handle();
        Self { frames, reading }
    }

    /// Sends a frame, behind those before.
    pub(super) fn send(&self, frame: Frame) {
        // If it was lost, that was told.
        let _ = self.frames.send(frame);
    }
}

async fn read_all(mut read: OwnedReadHalf, mut buffer: BytesMut, tell: impl Fn(Heard)) {
    loop {
        match next(&mut read, &mut buffer).await {
            Ok(Some(frame)) => tell(Heard::Frame(frame)),
            Ok(None) => return tell(Heard::Lost("the other side closed it".into())),
            Err(error) => return tell(Heard::Lost(error.to_string())),
        }
    }
}

async fn write_all(write: OwnedWriteHalf, mut queue: UnboundedReceiver<Frame>) -> io::Result<()> {
    let (mut write, mut out) = (BufWriter::with_capacity(0, write), BytesMut::new());
    while let Some(frame) = queue.recv().await {
        frame.encode(&mut out);
        while out.len() < WRITE_BYTES
            && let Ok(frame) = queue.try_recv()
        {
            frame.encode(&mut out);
        }
        if queue.is_closed() && queue.is_empty() {
            // The last words: a peer that does not read them is not waited for.
            return timeout(LINGER, write.write_all(&out)).await.unwrap_or(Ok(()));
        }
        write.write_all(&out).await?;
        out.clear();
    }
    Ok(())
}
