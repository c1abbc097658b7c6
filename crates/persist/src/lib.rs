//! The files of durability: bytes in, bytes out.
//!
//! Owns three formats and the rules between them: [`rdb_file`], the snapshot that Redis, Valkey and their
//! tools read; [`aof`], the log of Redis 7 in its parts (manifest, base, increments); [`directory`], which of
//! the files that lie in a directory are loaded, in what order, and in what steps a rewrite replaces them.
//!
//! Does not own files (the server opens, writes, syncs, renames and removes them, as these state machines
//! say), the store's values, the encodings of values (`towline_rdb`), or when to save.
//!
//! Pure: no file system, no clock, no runtime. Everything that is read is untrusted: nothing is allocated by
//! a claimed length, nothing panics, and each refusal says at which byte or line.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod aof;
pub mod directory;
pub mod rdb_file;
