//! From a slot stream to a file: the data of one instant, in the form of an RDB file or of commands.
//!
//! Owns: what stands in the file, and writing it in steps of bounded size. Does **not** own which file it is, when it is
//! written, nor what becomes of it (see [`super::keeper`]).

mod commands;
pub(crate) mod elements;

use super::disk::{DiskFile, write_all};
use crate::commands::REDIS_VERSION;
use commands::CommandWriter;
use elements::{Element, Shape};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use towline_persist::directory::BaseForm;
use towline_persist::rdb_file::{RdbWriter, RdbWriterOptions, ValueKey};
use towline_rdb::length::{write_length, write_string_compressed};
use towline_rdb::{Compression, ObjectError, RdbType, VERSION_REDIS_MAX};
use towline_store::store::{DB_COUNT, Store};
use towline_store::stream::{BATCH_BYTES_DEFAULT, Batch, Image, KeyHead, Overrun, SlotStream};

/// Bytes after which a file is synced while it is written: so much is written back at the end at most, and a sync of the log
/// beside it waits for no more.
const SYNC_BYTES: u64 = 16 << 20;

/// How a snapshot is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) form: BaseForm,
    /// `rdbcompression`.
    pub(crate) compression: Compression,
    /// `rdbchecksum`.
    pub(crate) has_checksum: bool,
    /// Whether it is the base of a log, which is noted in an RDB file.
    pub(crate) is_base: bool,
    /// When, in unix seconds; noted in an RDB file.
    pub(crate) unix_s: u64,
    /// Bytes that the data takes in memory; noted in an RDB file.
    pub(crate) used_bytes: u64,
}

/// How far it has come, for whoever wants to look.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    keys: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Keys and bytes written so far.
    pub(crate) fn written(&self) -> Written {
        Written { keys: self.keys.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }

    fn add(&self, keys: u64, bytes: u64) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What a snapshot came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) keys: u64,
    pub(crate) bytes: u64,
}

/// Why a snapshot came to nothing. The next one may do better, whichever it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SnapshotError {
    /// The disk was slower than the clients for too long.
    #[error(transparent)]
    Overrun(#[from] Overrun),
    /// The environment's fault: nothing is known of the file.
    #[error("writing failed: {0}")]
    Write(io::Error),
    /// The environment's fault, and likewise.
    #[error("syncing failed: {0}")]
    Sync(io::Error),
    /// A defect of ours: the store encoded a value in a way that is not known here.
    #[error("a value cannot be written: {0}")]
    Value(#[from] ObjectError),
}

#[derive(Debug)]
enum Form {
    Rdb(Box<RdbForm>),
    Commands(CommandWriter),
}

#[derive(Debug)]
struct RdbForm {
    writer: RdbWriter,
    compression: Compression,
    db: Option<u8>,
    /// One bit for each database whose size was noted.
    sized: u16,
    /// The value in parts that was begun and not ended.
    open: Option<Shape>,
    scratch: Vec<u8>,
}

/// Makes the bytes of a snapshot. Dropping it ends the stream; [`Encoder::close`] frees at once what that holds.
#[derive(Debug)]
pub(crate) struct Encoder {
    stream: SlotStream,
    batch: Batch,
    form: Form,
    keys: u64,
}

/// A piece of a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// Keys that end in it.
    pub(crate) keys: u64,
    /// Whether it is the last one.
    pub(crate) is_last: bool,
    /// Whether something happened to the data since the stream's instant; always `false` if the stream does not follow.
    pub(crate) has_tail: bool,
}

impl Encoder {
    /// Of the snapshot of this stream. If the stream has a tail as well, that is passed over.
    pub(crate) fn new(stream: SlotStream, options: &Options) -> Self {
        let form = match options.form {
            BaseForm::Commands => Form::Commands(CommandWriter::default()),
            BaseForm::Rdb => Form::Rdb(Box::new(RdbForm::new(options))),
        };
        Self { stream, batch: Batch::default(), form, keys: 0 }
    }

    /// What comes next: about [`BATCH_BYTES_DEFAULT`] and one element of a value.
    ///
    /// # Errors
    /// [`SnapshotError::Overrun`] and [`SnapshotError::Value`]: what came so far is of no use.
    pub(crate) fn next(&mut self, store: &Store) -> Result<Chunk, SnapshotError> {
        let progress = self.stream.next(store, &mut self.batch)?;
        let mut chunk = Chunk {
            is_last: progress.is_snapshot_done,
            has_tail: self.batch.units().next().is_some(),
            ..Chunk::default()
        };
        for image in self.batch.images() {
            chunk.keys += u64::from(matches!(image, Image::Key { .. } | Image::End));
            match &mut self.form {
                Form::Commands(writer) => writer.image(&mut chunk.bytes, image)?,
                Form::Rdb(form) => form.image(store, image)?,
            }
        }
        if let Form::Rdb(form) = &mut self.form {
            chunk.bytes = form.take(chunk.is_last);
        }
        self.keys += chunk.keys;
        Ok(chunk)
    }

    /// Ends the stream.
    pub(crate) fn close(self, store: &Store) {
        self.stream.close(store);
    }
}

impl RdbForm {
    fn new(options: &Options) -> Self {
        let has_checksum = options.has_checksum;
        let mut writer = RdbWriter::new(RdbWriterOptions {
            has_checksum,
            compression: options.compression,
            chunk_bytes: BATCH_BYTES_DEFAULT,
            ..RdbWriterOptions::default()
        });
        writer.aux("redis-ver", REDIS_VERSION.as_bytes());
        writer.aux("redis-bits", usize::BITS.to_string().as_bytes());
        writer.aux("ctime", options.unix_s.to_string().as_bytes());
        writer.aux("used-mem", options.used_bytes.to_string().as_bytes());
        writer.aux("aof-base", if options.is_base { b"1" } else { b"0" });
        let compression = options.compression;
        Self { writer, compression, db: None, sized: 0, open: None, scratch: Vec::new() }
    }

    fn image(&mut self, store: &Store, image: Image<'_>) -> Result<(), ObjectError> {
        match image {
            Image::Key { head, object } => self.key(store, &head, object, true)?,
            Image::Begin { head, object } => {
                self.open = Some(Shape::read(object)?.0);
                self.key(store, &head, object, false)?;
            }
            Image::Part { elements } => match self.open {
                // What comes of a string are its bytes, behind its length: compressing them would take all of them at once.
                Some(shape) if self.compression == Compression::Lzf && shape.rdb_type != RdbType::String => {
                    self.scratch.clear();
                    compress_elements(&mut self.scratch, shape, elements)?;
                    self.writer.encoded_more(&self.scratch);
                }
                _ => self.writer.encoded_more(elements),
            },
            Image::End => self.open = None,
        }
        Ok(())
    }

    fn key(
        &mut self,
        store: &Store,
        head: &KeyHead<'_>,
        object: &[u8],
        is_whole: bool,
    ) -> Result<(), ObjectError> {
        if self.db != Some(head.db) {
            self.db = Some(head.db);
            let is_new = head.db < DB_COUNT && self.sized & (1 << head.db) == 0;
            let sizes = is_new.then(|| (store.len(head.db) as u64, store.expires(head.db) as u64));
            self.sized |= u16::from(is_new) << (head.db % DB_COUNT);
            self.writer.database(head.db.into(), sizes);
        }
        let key = ValueKey { key: head.key, expires_at_ms: head.expires_at_ms };
        let (&type_byte, mut body) = object.split_first().ok_or(ObjectError::Truncated)?;
        if is_whole && self.compression == Compression::Lzf {
            self.scratch.clear();
            compress_object(&mut self.scratch, object)?;
            body = &self.scratch;
        }
        self.writer.encoded(key, RdbType::from_byte(type_byte, VERSION_REDIS_MAX)?, body);
        Ok(())
    }

    fn take(&mut self, is_last: bool) -> Vec<u8> {
        if !is_last {
            return self.writer.take_chunk();
        }
        std::mem::replace(&mut self.writer, RdbWriter::new(RdbWriterOptions::default())).finish()
    }
}

/// Appends a whole object's body, its strings compressed.
fn compress_object(out: &mut Vec<u8>, object: &[u8]) -> Result<(), ObjectError> {
    let (shape, count, elements) = Shape::read(object)?;
    if shape.rdb_type == RdbType::HashMetadata {
        out.extend(shape.earliest_ms.to_le_bytes());
    }
    if shape.rdb_type != RdbType::String {
        write_length(out, count);
    }
    compress_elements(out, shape, elements)
}

fn compress_elements(out: &mut Vec<u8>, shape: Shape, elements: &[u8]) -> Result<(), ObjectError> {
    shape.for_each(elements, |element| match element {
        Element::Plain(element) => write_string_compressed(out, &element),
        Element::Scored(member, score) => {
            write_string_compressed(out, &member);
            out.extend(score.to_le_bytes());
        }
        Element::Field(name, value) => {
            write_string_compressed(out, &name);
            write_string_compressed(out, &value);
        }
        Element::Expiring(at, name, value) => {
            write_length(out, at);
            write_string_compressed(out, &name);
            write_string_compressed(out, &value);
        }
    })
}

/// Writes a snapshot into a file in steps.
#[derive(Debug)]
pub(crate) struct Snapshot {
    encoder: Encoder,
    unsynced_bytes: u64,
    has_tail: bool,
}

impl Snapshot {
    /// Of the snapshot of this stream.
    pub(crate) fn new(stream: SlotStream, options: &Options) -> Self {
        Self { encoder: Encoder::new(stream, options), unsynced_bytes: 0, has_tail: false }
    }

    /// Writes a little: `true` when all is written and synced.
    ///
    /// # Errors
    /// [`SnapshotError`]: the file is of no use.
    pub(crate) fn step(
        &mut self,
        store: &Store,
        file: &mut dyn DiskFile,
        progress: &Progress,
    ) -> Result<bool, SnapshotError> {
        let chunk = self.encoder.next(store)?;
        write_all(file, &chunk.bytes).map_err(SnapshotError::Write)?;
        self.unsynced_bytes += chunk.bytes.len() as u64;
        self.has_tail |= chunk.has_tail;
        progress.add(chunk.keys, chunk.bytes.len() as u64);
        if chunk.is_last || self.unsynced_bytes >= SYNC_BYTES {
            self.unsynced_bytes = 0;
            file.sync().map_err(SnapshotError::Sync)?;
        }
        Ok(chunk.is_last)
    }

    /// Whether something happened to the data since the instant, as far as it was seen; only a stream that follows knows.
    pub(crate) fn has_tail(&self) -> bool {
        self.has_tail
    }

    /// Ends the stream.
    pub(crate) fn close(self, store: &Store) {
        self.encoder.close(store);
    }
}

/// Writes the whole snapshot of a stream into a file and syncs it. Blocks for as long as that takes.
///
/// # Errors
/// [`SnapshotError`]: the file is of no use.
pub(crate) fn write_snapshot(
    store: &Store,
    stream: SlotStream,
    file: &mut dyn DiskFile,
    options: &Options,
    progress: &Progress,
) -> Result<Written, SnapshotError> {
    let mut snapshot = Snapshot::new(stream, options);
    let written = loop {
        match snapshot.step(store, file, progress) {
            Ok(true) => break Ok(progress.written()),
            Ok(false) => {}
            Err(error) => break Err(error),
        }
    };
    snapshot.close(store);
    written
}

#[cfg(test)]
mod tests;
