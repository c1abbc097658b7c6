//! Links over RDMA cards. Behind the feature `rdma`.
//!
//! Owns [`RdmaTransport`], which drives any [`Verbs`], and [`Card`], the real one. Does **not** link against anything: libibverbs is
//! loaded when a card is opened, and where there is none, or no device, [`RdmaError`] says so.
//!
//! ```no_run
//! use towline_transfer::rdma::{Card, CardConfig, RdmaTransport};
//! use towline_transfer::{Engine, EngineConfig, Trust};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let card = Card::open(&CardConfig::default())?;
//! let config = EngineConfig::new(Trust::key("at least sixteen bytes of secret"));
//! let engine = Engine::start(config.listen("10.0.0.1:7100".parse()?).transport(RdmaTransport::new(card)?))?;
//! # Ok(())
//! # }
//! ```
//!
//! The transport has run on the simulated fabric of `towline-transfer-proto` only; no card was at hand.

mod card;
#[cfg(test)]
mod fake;
mod ffi;
mod transport;
mod verbs;

pub use card::{Card, CardConfig};
pub use transport::RdmaTransport;
pub use verbs::{Keys, NotPosted, RdmaError, Verbs, WORK_MAX, WorkDone, WorkRequest, WorkStatus};
