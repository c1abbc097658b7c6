//! What a server announces before it moves connections, shards or slots.
//!
//! Owns the reading of the seven pushes ([`Notification`]), the time during which timeouts are relaxed ([`Windows`]),
//! the memory of announcements already seen ([`Dedupe`]), and what is asked of the server to get any
//! ([`MaintenanceMode`], [`EndpointType`]). Does not own the move of a connection ([`crate::handoff`]), the slot map,
//! or the sending of anything.
//!
//! ```text
//! push frame --Notification::read--> Moving      --> Handoff (new connection), Windows (relaxed meanwhile)
//!                                    Starting    --> Windows::opens
//!                                    Finished    --> Windows::closes
//!                                    SlotsMoving --> Windows::opens
//!                                    SlotsMoved  --> Windows::closes, slot map
//! ```
//!
//! The reader accepts whatever the known servers and fault injectors send and never fails: an announcement that cannot
//! be understood is no error of the connection. Numbers of announcements ("seq") grow per database; they are missing
//! on some servers, start again after a restart, and the same announcement comes again to whoever opts in late.

mod dedupe;
mod mode;
mod notification;
mod window;

pub use dedupe::{Dedupe, Identity, Seen};
pub use mode::{ConfiguredHost, EndpointType, MaintenanceMode, is_private};
pub use notification::{
    Finished, Kind, Moving, Notification, ShardEvent, SlotMove, SlotsMoved, SlotsMoving, Starting,
};
pub use towline_cluster::{Address, SlotRange};
pub use window::{Arrival, Closed, Opened, WindowConfig, Windows};
