//! The thread that writes a Raft group's files.
//!
//! Owns: the open log, the order in which things reach the disk, and that several writes share one sync. Does **not** own what is
//! written.
//!
//! A failure is final: what of the file is on the device is not known any more, so nothing is written behind it, and everything that
//! is asked for from then on fails with the same words. The node then follows nobody and serves nothing until it is started again.

use super::format::frame;
use super::types::Types;
use crate::persistence::disk::{Disk, DiskFile, write_all};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use tokio::sync::oneshot;

/// Records that share a frame and a sync, in bytes: enough for some hundred changes. One that is larger goes alone.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Who hears that something is on the disk.
pub(super) enum Done {
    /// Raft.
    Flushed(openraft::storage::LogFlushed<Types>),
    /// A task that waits.
    Waiter(oneshot::Sender<io::Result<()>>),
    /// Nobody, so it need not be synced by itself: it goes with the next frame.
    Nobody,
}

impl Done {
    fn tell(self, result: io::Result<()>) {
        match self {
            Self::Flushed(flushed) => flushed.log_io_completed(result),
            // Whoever is gone does not need to know.
            Self::Waiter(waiter) => _ = waiter.send(result),
            Self::Nobody => {}
        }
    }
}

/// What the thread is asked for. Done in order.
pub(super) enum Order {
    /// Append these records.
    Append(Vec<u8>, Done),
    /// Put this in place of the log.
    Rewrite(Vec<u8>, Done),
    /// Put this in place of the snapshot.
    Snapshot(Vec<u8>, Done),
    /// End: nothing is done after this.
    Close(Done),
}

/// Where the files of a group are.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    /// Their directory.
    pub(super) dir: PathBuf,
    /// Vote and entries.
    pub(super) log: PathBuf,
    /// The state that makes older entries needless.
    pub(super) snapshot: PathBuf,
}

impl Paths {
    /// Files in `dir` whose names begin with `name`.
    pub(super) fn new(dir: &Path, name: &str) -> Self {
        let file = |end: &str| dir.join(format!("{name}.{end}"));
        Self { dir: dir.to_owned(), log: file("log"), snapshot: file("snapshot") }
    }
}

/// The handle of the thread. Dropping it ends the thread once everything asked for is done, without waiting for it.
#[derive(Debug)]
pub(super) struct Writer {
    orders: mpsc::Sender<Order>,
    bytes: Arc<AtomicU64>,
}

impl Writer {
    /// Starts the thread on a log that is open at its end, and `bytes` long.
    pub(super) fn start(
        disk: Arc<dyn Disk>,
        paths: Paths,
        log: Box<dyn DiskFile>,
        bytes: u64,
    ) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let bytes = Arc::new(AtomicU64::new(bytes));
        let mut state =
            State { disk, paths, log, pending: Vec::new(), failed: None, bytes: Arc::clone(&bytes) };
        std::thread::Builder::new().name("cluster-log".into()).spawn(move || state.run(&inbox))?;
        Ok(Self { orders, bytes })
    }

    /// Asks for something. If the thread is gone, whoever waits is told.
    pub(super) fn ask(&self, order: Order) {
        if let Err(mpsc::SendError(order)) = self.orders.send(order) {
            let (Order::Append(_, done)
            | Order::Rewrite(_, done)
            | Order::Snapshot(_, done)
            | Order::Close(done)) = order;
            done.tell(Err(io::Error::other("the thread that writes the cluster's log has ended")));
        }
    }

    /// The log's size.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

struct State {
    disk: Arc<dyn Disk>,
    paths: Paths,
    log: Box<dyn DiskFile>,
    /// Records that nobody waits for.
    pending: Vec<u8>,
    failed: Option<(io::ErrorKind, String)>,
    bytes: Arc<AtomicU64>,
}

impl State {
    fn run(&mut self, inbox: &mpsc::Receiver<Order>) {
        let mut next = None;
        let mut closing = None;
        while closing.is_none() {
            let Some(order) = next.take().or_else(|| inbox.recv().ok()) else { break };
            match order {
                Order::Append(records, Done::Nobody) => self.pending.extend_from_slice(&records),
                Order::Append(records, done) => next = self.append(records, done, inbox),
                Order::Rewrite(file, done) => {
                    let result = self.guarded(|state| state.rewrite(&file));
                    done.tell(result);
                }
                Order::Snapshot(file, done) => {
                    let result = self.guarded(|state| {
                        let path = state.paths.snapshot.clone();
                        put(&*state.disk, &state.paths.dir, &path, &file)
                    });
                    done.tell(result);
                }
                Order::Close(done) => closing = Some(done),
            }
        }
        if !self.pending.is_empty() {
            // The end: these only save the next start some work.
            let _ = self.guarded(|state| state.write_frame(&[]));
        }
        if let Some(done) = closing {
            done.tell(Ok(()));
        }
    }

    /// Writes these records and all that wait behind them as one frame. Returns the first order that is something else.
    fn append(&mut self, mut records: Vec<u8>, done: Done, inbox: &mpsc::Receiver<Order>) -> Option<Order> {
        let mut told = vec![done];
        let mut next = None;
        while records.len() < BATCH_BYTES_MAX {
            match inbox.try_recv() {
                Ok(Order::Append(more, done)) if records.len() + more.len() <= BATCH_BYTES_MAX => {
                    records.extend_from_slice(&more);
                    told.push(done);
                }
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let result = self.guarded(|state| state.write_frame(&records));
        for done in told {
            done.tell(match &result {
                Ok(()) => Ok(()),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            });
        }
        next
    }

    fn guarded(&mut self, work: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if let Some((kind, text)) = &self.failed {
            return Err(io::Error::new(*kind, text.clone()));
        }
        let result = work(self);
        if let Err(error) = &result {
            let path = self.paths.log.display();
            tracing::error!(
                "The cluster's log at {path} cannot be written: {error}. This node serves nothing until it is started again \
                 with a disk that works"
            );
            self.failed = Some((error.kind(), error.to_string()));
        }
        result
    }

    fn write_frame(&mut self, records: &[u8]) -> io::Result<()> {
        let mut payload = std::mem::take(&mut self.pending);
        payload.extend_from_slice(records);
        let mut bytes = Vec::new();
        frame(&payload, &mut bytes);
        write_all(&mut *self.log, &bytes)?;
        self.log.sync()?;
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn rewrite(&mut self, file: &[u8]) -> io::Result<()> {
        let path = self.paths.log.clone();
        // It says all that was asked for until now.
        self.pending.clear();
        put(&*self.disk, &self.paths.dir, &path, file)?;
        self.log = self.disk.append(&path)?;
        self.bytes.store(file.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Puts a file in place as a whole: beside it, synced, renamed, the directory synced.
pub(in crate::cluster) fn put(disk: &dyn Disk, dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp");
    let beside = PathBuf::from(beside);
    let mut file = disk.create(&beside)?;
    write_all(&mut *file, bytes)?;
    file.sync()?;
    drop(file);
    disk.rename(&beside, path)?;
    disk.sync_dir(dir)
}
