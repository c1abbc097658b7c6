//! The log, in the parts that Redis 7 gave it.
//!
//! Owns the manifest's text ([`Manifest`]), the commands and annotations of an increment ([`LogWriter`],
//! [`LogReader`]), and the two forms of a base ([`PartReader`] tells them apart). Does not own which file is
//! loaded when (`directory` does), what a command does, or when bytes become durable.
//!
//! ```text
//! appendonlydir/appendonly.aof.manifest     file appendonly.aof.2.base.rdb seq 2 type b
//!                                           file appendonly.aof.3.incr.aof seq 3 type i
//! appendonlydir/appendonly.aof.2.base.rdb   an RDB file, or commands
//! appendonlydir/appendonly.aof.3.incr.aof   #TS:1796033117 | *2 $6 SELECT $1 0 | *3 $3 SET ...
//! ```
//!
//! # A torn tail and damage
//!
//! A process that dies leaves the beginning of a command at the end of its last file, and a machine that dies may
//! leave zero bytes there: file systems grow a file before they write it. Both are a torn tail: nothing that was
//! promised is in it, and [`LogEnd::Torn`] says where to cut. A transaction (`MULTI` to `EXEC`) is torn as a
//! whole, and none of its commands is handed out before its `EXEC` was seen. Everything else that does not parse
//! is damage, [`LogError`]: bytes that were once right are not right any more, so what follows them cannot be
//! trusted, and a person must decide.
//!
//! The format has no checksums: damage inside an argument is not seen.

mod log_reader;
mod log_writer;
mod manifest;
mod part_reader;

pub use log_reader::{
    Args, LogCommand, LogEnd, LogError, LogErrorKind, LogEvent, LogLimits, LogReader, TornReason,
};
pub use log_writer::LogWriter;
pub use manifest::{LINE_BYTES_MAX, Manifest, ManifestError, ManifestErrorKind, ManifestFile};
pub use part_reader::{PartError, PartEvent, PartReader};
