//! The transfer engine's protocols, without sockets, clocks or threads.
//!
//! A fleet that starts connects everybody to everybody at once. What breaks then in the field is told in
//! `docs/storm.md`; this crate has the machines that do not, and the fabric to show it on:
//!
//! * [`Connections`]: how a process links itself to others and answers those who want to be linked, under the admission
//!   of `towline-admission` on both ends.
//! * [`Transfers`]: batches of reads and writes, cut into slices, put on links as they come; [`Outbox`] and [`Inbox`] for the
//!   notifications that follow them.
//! * [`wire`]: the messages of a handshake as bytes.
//! * [`fabric`]: simulated reliable connections, for drills and for an engine without hardware.
//! * [`storm`]: whole fleets in virtual time, of this crate's machines and of models of other software.
//!
//! Pure: time comes in as [`Instant`](towline_sansio::Instant), randomness as [`Prng`](towline_sansio::Prng), what a
//! driver shall do comes out as values.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod connect;
pub mod fabric;
mod guards;
mod identity;
pub mod storm;
mod transfers;
pub mod wire;

pub use connect::{
    AcceptError, ConnectConfig, ConnectConfigError, ConnectCounters, ConnectSnapshot, Connections, DownCause,
    NoQueuePairs, Output, Role, WantError,
};
pub use guards::Guards;
pub use identity::{
    Attempt, ConnId, Incarnation, Lane, LinkId, LinkKey, NodeId, Process, Psn, Qpn, QueuePair,
};
pub use transfers::{
    BatchId, Buffers, Class, ClassConfig, Delivery, Event, Failure, FreeError, Inbox, InboxConfig,
    Notification, Opcode, Outbox, OutboxConfig, OutboxFull, Outcome, Post, Repeat, Request, SliceId,
    SubmitError, TaskId, TaskState, TransferConfig, TransferConfigError, TransferCounters, Transfers,
    WireEnd,
};
