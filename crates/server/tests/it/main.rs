//! The server in this process, reached through real sockets.
#![allow(clippy::unwrap_used, reason = "a test's own helpers fail by panicking")]

mod admin;
mod loading;
mod maintenance;
mod running;
#[cfg(feature = "tls")]
mod tls;
