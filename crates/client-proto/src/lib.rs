//! The client as state machines: what happens to every command, whatever happens to its connection.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod bridge;
mod buffer;
pub mod cache;
mod command;
mod config;
mod diagnosis;
mod error;
mod generation;
pub mod handoff;
mod handshake;
mod keys;
mod liveness;
pub mod maintenance;
mod policy;
mod retry;
pub mod routing;
mod server_error;
mod slab;
pub mod subscriptions;

pub use bridge::{
    Adopt, AttemptError, Batch, Bridge, Continuity, Counters, Doubt, Event, Flush, HandoffDial, HandoffEvent,
    Leaving, LinkState, MaintenanceEvent, MapTrouble, News, Parts, Polled, PubSubConfig, RoomTicket,
    Snapshot, Stray, StrayReason, SubmitError, Submitted, TrackingNews,
};
pub use buffer::SHARE_BYTES_MIN;
pub use command::{Encoder, Flags, Order, Reply, encoded_len};
pub use config::{Config, FlushOrder, Guards};
pub use diagnosis::{Blame, Diagnosis, Down, HeadOfLine, Trouble};
pub use error::{Error, ErrorKind, LostCause, ProtocolError, Sent, Stage};
pub use generation::Generation;
pub use handshake::{
    Credentials, ExtraCommand, Handshake, HandshakeConfig, HandshakeError, MaintenanceRequest, Peer,
    Progress, ProtocolChoice, ReAuth, ReAuthProgress, Ready, ServerInfo, ServerMode, Step, Tracking,
};
pub use keys::{KeysIn, keys_in};
pub use liveness::{Act, Liveness, LivenessConfig, Opinion, REARMS_MAX, SecondOpinion};
pub use policy::{BacklogPolicy, Outage, Policy, Situation, Verdict};
pub use retry::{
    Decision, Failure, NoRetry, Question, RetryBudget, RetryBudgetConfig, RetryFlags, Unit, Wait, decide,
};
pub use server_error::{ServerClass, ServerError};
pub use slab::Ticket;
