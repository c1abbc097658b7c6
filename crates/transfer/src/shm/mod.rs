//! Bytes between processes of one host: a copy from one's memory to the other's, and nothing in between.
//!
//! Owns [`ShmTransport`]. Does **not** own handshakes over TCP, which come first and carry this transport's names and numbers.
//!
//! * `copy`: the routine that moves the bytes.
//! * `map`: memory files, their seals and mappings.
//! * `page`: who is in which region at this moment.
//! * `socket`: what two processes say to each other, and their proofs.
//! * `rail`: one link. `transport`: all of them, and the thread.

mod copy;
mod map;
mod page;
mod rail;
mod socket;
mod transport;

pub use transport::ShmTransport;
