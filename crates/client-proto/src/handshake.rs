//! The start of a connection.
//!
//! Owns what is said before the first command of a caller. Does not own sockets, dialling or timers.

mod error;

pub use error::{HandshakeError, Step};
