//! The transfer engine: bytes from registered memory here to registered memory there, and back.
//!
//! ```no_run
//! use std::time::Duration;
//! use towline_transfer::{Access, Engine, EngineConfig, MemoryRegion, Request, Trust};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let trust = Trust::key("at least sixteen bytes of secret");
//! let engine = Engine::start(EngineConfig::new(trust).listen("127.0.0.1:0".parse()?))?;
//! let memory = MemoryRegion::allocate(1 << 20)?;
//! let local = engine.register("scratch", &memory, Access::Local)?;
//!
//! let segment = engine.open("127.0.0.1:7100").wait_for(Duration::from_secs(5))?;
//! let kv = segment.region("kv").ok_or("the peer has no region named kv")?;
//! memory.write(0, b"hello")?;
//! let batch = segment.submit_and_notify(&[Request::write(&local, 0, &kv, 4096, 5)], "page 1 is there")?;
//! assert!(batch.wait().is_complete());
//! # Ok(())
//! # }
//! ```
//!
//! * [`Engine`]: one for each process. It listens, links itself to peers as work needs it, and serves what they ask.
//! * [`MemoryRegion`], registered by [`Engine::register`] with an [`Access`] that is enforced on every transport.
//! * [`Segment`]: what a peer has; [`Segment::submit`] takes batches of [`Request`]s.
//! * [`Batch`]: waited for, polled, awaited or canceled. Completed means applied at the destination.
//! * Notifications follow the bytes of a batch, in order for each pair of engines, each delivered once.
//! * [`transport`]: what else than TCP may move the bytes.
//!
//! What waits, how links come up, who may retry: all of that is decided in `towline-transfer-proto`, without sockets and threads.
//! Here are the sockets and threads.
#![warn(missing_docs)]

mod batch;
mod clock;
mod config;
mod control;
mod engine;
mod error;
mod kick;
mod memory;
mod metrics;
mod peer;
mod peers;
mod poller;
mod promise;
#[cfg(feature = "rdma")]
pub mod rdma;
mod regions;
mod segment;
mod shared;
pub mod shm;
mod sys;
mod tcp;
pub mod transport;

pub use batch::{Batch, BatchResult, Request, Status};
pub use config::{EngineConfig, Trust};
pub use control::{Fleet, FleetReport};
pub use engine::{Engine, Notification, Opening};
pub use error::{NotifyError, OpenError, StartError, SubmitError};
pub use memory::{MemoryRegion, OutOfRegion};
pub use metrics::Metrics;
pub use peers::node_id;
pub use regions::{Access, Range, Regions, RegisterError, Registered, RemoteAccess};
pub use segment::{NOTIFICATION_BYTES_MAX, RemoteRegion, Segment};
pub use towline_transfer_proto::{
    Buffers, Class, ConnectConfig, ConnectCounters, ConnectSnapshot, Failure, InboxConfig, Incarnation,
    LinkId, NoQueuePairs, NodeId, Opcode, OutboxConfig, OutboxFull, Process, Psn, Qpn, QueuePair, SliceId,
    TransferConfig, TransferCounters, WireEnd,
};
