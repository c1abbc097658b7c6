//! The binary as a user runs it: real processes, exit codes, one-line errors.
#![allow(clippy::unwrap_used, reason = "a test's own helpers fail by panicking")]

mod bench;
mod files;
mod server;
mod storm;
