//! The file that the log is appended to.
//!
//! Owns: encoding units, writing them whole, cutting off what was written in part, and up to where all is on the device. Does
//! **not** own when any of that is done, nor which file it is (see [`super`]).

use crate::persistence::disk::{DiskFile, write_all};
use std::io;
use towline_persist::aof::LogWriter;
use towline_store::stream::Unit;

/// Bytes that are gathered for one write: the file system's work is small beside the copying, and they stay in a cache
/// from being encoded to being copied.
pub(super) const WRITE_BYTES: usize = 256 << 10;

/// A place in the file between two units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// The file's size up to there.
    pub(super) bytes: u64,
    /// The last unit before it.
    pub(super) position: u64,
}

/// Appends a unit of effects to `out`: as a transaction if there are several, which are applied all or none.
#[inline]
pub(crate) fn write_unit(writer: &mut LogWriter, unit: &Unit<'_>, out: &mut Vec<u8>) {
    let is_transaction = unit.len() > 1;
    for (index, effect) in unit.effects().enumerate() {
        if is_transaction && index == 0 {
            writer.multi(out, effect.db.into());
        }
        writer.encoded(out, effect.db.into(), effect.command);
    }
    if is_transaction {
        writer.exec(out);
    }
}

/// The file that is appended to.
#[derive(Debug)]
pub(super) struct LogFile {
    handle: Box<dyn DiskFile>,
    pub(super) name: String,
    writer: LogWriter,
    /// Whole units that are encoded and not written.
    buffer: Vec<u8>,
    /// The last unit that was encoded.
    encoded: u64,
    pub(super) written: Mark,
    pub(super) synced: Mark,
    /// There may be a part of a unit behind what was written.
    needs_cut: bool,
}

impl LogFile {
    /// A file that is whole up to `bytes` and is synced when something of ours has been; `position` is that of the last unit
    /// before whatever is appended.
    pub(super) fn new(handle: Box<dyn DiskFile>, name: String, bytes: u64, position: u64) -> Self {
        let at = Mark { bytes, position };
        Self {
            handle,
            name,
            writer: LogWriter::new(),
            buffer: Vec::new(),
            encoded: position,
            written: at,
            synced: at,
            needs_cut: false,
        }
    }

    /// Encodes a unit, behind a timestamp if there is to be one.
    #[inline]
    pub(super) fn push(&mut self, unit: &Unit<'_>, unix_s: Option<u64>) {
        if let Some(unix_s) = unix_s {
            self.writer.timestamp(&mut self.buffer, unix_s);
        }
        write_unit(&mut self.writer, unit, &mut self.buffer);
        self.encoded = unit.position.get();
    }

    /// Bytes that are not written.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Whether something was written and is not synced.
    pub(super) fn is_ahead(&self) -> bool {
        self.written != self.synced
    }

    /// Writes all that is encoded.
    ///
    /// # Errors
    /// The environment's fault. The units stay, and what was written of them is cut off, now or before the next write.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.cut()?;
        if let Err(error) = write_all(&mut *self.handle, &self.buffer) {
            self.needs_cut = true;
            // Tried again before the next write.
            let _ = self.cut();
            return Err(error);
        }
        self.written.bytes += self.buffer.len() as u64;
        self.written.position = self.encoded;
        self.buffer.clear();
        self.buffer.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }

    fn cut(&mut self) -> io::Result<()> {
        if self.needs_cut {
            self.handle.truncate(self.written.bytes)?;
            self.needs_cut = false;
        }
        Ok(())
    }

    /// Returns when all that was written is on the device.
    ///
    /// # Errors
    /// The environment's fault; the file is to be given up.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.is_ahead() {
            self.handle.sync()?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Another handle, to sync it elsewhere.
    pub(super) fn duplicate(&self) -> io::Result<Box<dyn DiskFile>> {
        self.handle.duplicate()
    }

    /// Cuts the file to what is known to be on the device, if that works: behind it there may be anything, and a start would
    /// take it for damage.
    pub(super) fn give_up(mut self) {
        if let Err(error) = self.handle.truncate(self.synced.bytes) {
            tracing::warn!(%error, file = self.name, "the log's file was given up, and could not be cut");
        }
    }
}
