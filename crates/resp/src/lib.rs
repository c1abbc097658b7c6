//! RESP2 and RESP3: bytes to commands and frames, and back.
//!
//! Owns the wire format only: [`request`] cuts a client's bytes into commands (server side), [`writer`]
//! builds replies (server side), [`frame`] decodes replies and encodes commands (client side), [`inline`] cuts a
//! line into words. [`double`],
//! [`long_double`] and [`number`] hold the decimal forms of numbers that Redis reads and writes.
//!
//! Does not own sockets, buffers' growth, what a command means, or when to close a connection.
//!
//! The protocol: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod double;
pub mod frame;
mod grisu;
pub mod inline;
pub mod long_double;
pub mod number;
pub mod request;
pub mod writer;

/// The protocol version that a connection speaks, as negotiated with `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Proto {
    /// The protocol every connection starts with.
    #[default]
    Resp2,
    /// Typed replies and pushes, after `HELLO 3`.
    Resp3,
}
