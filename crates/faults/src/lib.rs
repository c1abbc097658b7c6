//! Faults on a byte stream, and a server that remembers what it executed.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
