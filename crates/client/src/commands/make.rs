//! A function for each command, which gives it with its arguments.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

pub mod bitmaps;
pub mod bloom;
pub mod cluster;
pub mod connection;
pub mod geo;
pub mod hashes;
pub mod hyperloglog;
pub mod json;
pub mod keys;
pub mod lists;
pub mod pubsub;
pub mod scripting;
pub mod search;
pub mod server;
pub mod sets;
pub mod streams;
pub mod strings;
pub mod timeseries;
pub mod transactions;
pub mod vectors;
pub mod zsets;
