//! What one client is sent: a snapshot, and then every effect.
//!
//! Owns: the form of both on the wire, the order, and waiting for a slow client. Does **not** own the client's connection, which
//! sends what is pushed to it.
//!
//! ```text
//! $EOF:<40 bytes>\r\n <snapshot> <the same 40 bytes>      if the client finds the end by a mark;
//!                                                         the commands come when it has acknowledged that
//! $<bytes>\r\n <snapshot>                                 if not: the snapshot is written to a file first
//! <commands>                                              SELECT, MULTI and EXEC where they are needed; PING now and then
//! ```

use super::{Feed, Phase};
use crate::connection::unix_ms;
use crate::persistence::appender::write_unit;
use crate::persistence::disk::DiskFile;
use crate::persistence::keeper;
use crate::persistence::snapshot::{Progress, SnapshotError, write_snapshot};
use crate::shared::Shared;
use bytes::Bytes;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use towline_persist::aof::LogWriter;
use towline_persist::directory::BaseForm;
use towline_store::stream::{Batch, Config, Overrun, SlotStream, Watch};

/// Bytes that wait in the connection at most before the feed waits: the rest stays in the streams, where it takes no memory
/// (the snapshot) or is counted (the tail).
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// Without anything else to send, a replica is sent a `PING` this often, as Redis does it: it takes a silent primary for dead.
const PING_EVERY: Duration = Duration::from_secs(10);
/// A feed that waits is woken by what it waits for; this is for what nobody wakes it for, an overrun of its tail.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// A file's bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// Bytes of the mark at the snapshot's end.
const MARK_BYTES: usize = 40;

/// Why a feed has ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// The client is gone.
    #[error("the client is gone")]
    Gone,
    /// The client did not keep up.
    #[error("it did not take what it was sent: see client-output-buffer-limit replica")]
    TooSlow(#[from] Overrun),
    /// The snapshot could not be made.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The file for the snapshot could not be written or read.
    #[error("the snapshot's file: {0}")]
    File(#[from] io::Error),
}

/// Feeds the client until it is gone.
pub(super) fn run(shared: &Arc<Shared>, feed: &Arc<Feed>) -> Result<(), End> {
    let slots = if feed.wishes.without_keys { 0..0 } else { 0..towline_cluster::SLOT_COUNT as u16 };
    let ours = Arc::clone(feed);
    let limit = shared.config().client_output_buffer_limit.replica;
    let bytes_max = match limit.hard_bytes {
        0 => usize::MAX,
        bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
    };
    let tail = Config {
        has_snapshot: false,
        bytes_max,
        wake: Some(Arc::new(move |_| ours.wake())),
        ..Config::default()
    };
    let now_ms = unix_ms();
    let mut tail = SlotStream::open(&shared.store, slots, now_ms, &tail);
    let result = feed_from(shared, feed, &mut tail, now_ms);
    tail.close(&shared.store);
    result
}

fn feed_from(shared: &Arc<Shared>, feed: &Feed, tail: &mut SlotStream, now_ms: u64) -> Result<(), End> {
    let config = Config { follows: false, ..Config::default() };
    let (snapshot, position) = tail.open_beside(&shared.store, now_ms, &config);
    let mut pipe = Pipe { feed, tail: tail.watch() };
    if feed.wishes.finds_end {
        let mark = mark(shared);
        pipe.push(Bytes::from([b"$EOF:", mark.as_slice(), b"\r\n"].concat()))?;
        save(shared, snapshot, &mut pipe)?;
        pipe.push(Bytes::from(mark))?;
        // A replica looks for the mark at the end of what it has read, so nothing may come behind it before it has seen it.
        if !feed.wishes.snapshot_only {
            pipe.wait_for_acknowledgement()?;
        }
    } else {
        send_by_file(shared, feed, snapshot, &mut pipe)?;
    }
    if feed.wishes.snapshot_only {
        return Ok(());
    }
    feed.phase.store(Phase::Tail as u8, Ordering::Relaxed);
    follow(shared, feed, tail, position, &mut pipe)
}

fn save(shared: &Shared, snapshot: SlotStream, file: &mut dyn DiskFile) -> Result<(), End> {
    let options = keeper::options(shared, &shared.config(), BaseForm::Rdb, false, unix_ms());
    write_snapshot(&shared.store, snapshot, file, &options, &Progress::default())?;
    Ok(())
}

/// 40 characters that are not in the snapshot, with all probability.
fn mark(shared: &Shared) -> Vec<u8> {
    let mut bytes = [0; MARK_BYTES / 2];
    // Without randomness the mark is that of this server's run, which is random as well.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(filled) if filled == bytes.len() => {
            bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
        }
        _ => shared.run_id.clone().into_bytes(),
    }
}

/// Sends the snapshot to a client that must know its length first.
fn send_by_file(shared: &Shared, feed: &Feed, snapshot: SlotStream, pipe: &mut Pipe<'_>) -> Result<(), End> {
    let name = format!("temp-{}-sync-{}.rdb", std::process::id(), feed.client.id);
    let path = PathBuf::from(&shared.config().dir).join(name);
    let disk = &shared.persistence.disk;
    let mut file = match disk.create(&path) {
        Ok(file) => file,
        Err(error) => {
            snapshot.close(&shared.store);
            return Err(error.into());
        }
    };
    let sent = save(shared, snapshot, &mut *file).and_then(|()| {
        file.seek(0)?;
        pipe.push(Bytes::from(format!("${}\r\n", file.size()?)))?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                read => pipe.push(Bytes::copy_from_slice(&buffer[..read]))?,
            }
        }
    });
    disk.remove(&path)?;
    sent
}

/// Sends what happened after the snapshot's instant, at `position`, and what happens from now on.
fn follow(
    shared: &Shared,
    feed: &Feed,
    tail: &mut SlotStream,
    position: u64,
    pipe: &mut Pipe<'_>,
) -> Result<(), End> {
    let (mut batch, mut writer) = (Batch::default(), LogWriter::new());
    let mut last_sent = Instant::now();
    loop {
        tail.next(&shared.store, &mut batch)?;
        let mut out = Vec::new();
        for unit in batch.units().filter(|unit| unit.position.get() > position) {
            write_unit(&mut writer, &unit, &mut out);
        }
        if out.is_empty() {
            let quiet = last_sent.elapsed();
            if quiet < PING_EVERY {
                std::thread::park_timeout(PING_EVERY - quiet);
                pipe.check()?;
                continue;
            }
            out.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
        }
        last_sent = Instant::now();
        feed.sent.fetch_add(out.len() as u64, Ordering::Relaxed);
        pipe.push(Bytes::from(out))?;
    }
}

/// The client's connection, as a file that is written.
#[derive(Debug)]
struct Pipe<'a> {
    feed: &'a Feed,
    tail: Watch,
}

impl Pipe<'_> {
    fn check(&self) -> Result<(), End> {
        self.tail.check()?;
        if self.feed.is_over() { Err(End::Gone) } else { Ok(()) }
    }

    fn wait_for_acknowledgement(&self) -> Result<(), End> {
        while !self.feed.has_acknowledged.load(Ordering::Acquire) {
            self.check()?;
            std::thread::park_timeout(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Hands the bytes to the connection, once it has not much left to send.
    fn push(&self, bytes: Bytes) -> Result<(), End> {
        let client = &self.feed.client;
        loop {
            self.check()?;
            if client.outbox_bytes() + client.reply_bytes.load(Ordering::Acquire) < UNSENT_BYTES_MAX {
                client.push(bytes);
                return Ok(());
            }
            // The connection wakes us when it has sent all.
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }
}

impl DiskFile for Pipe<'_> {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(Bytes::copy_from_slice(bytes))
            .map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&mut self, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn size(&self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn seek(&mut self, _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
