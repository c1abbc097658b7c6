//! The client as state machines: what happens to every command, whatever happens to its connection.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
