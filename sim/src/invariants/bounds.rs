//! **Bounds hold.** What waits takes no more bytes than `backlog_bytes_max` when a command is accepted (a single larger
//! command finds an empty backlog; what a loss puts back was accepted before). What is in flight takes no more
//! commands than `in_flight_max` and no more bytes than `in_flight_bytes_max` plus the one command that crosses it. A
//! backlog begins to leave in a window of `pace_bytes_initial`, unless fresh commands may go first: those are not held
//! to it. Whoever was called from the line for room has it. The log holds no more than what is not answered, twice, plus a
//! fixed slack. While an endpoint moves, the bounds on what is in flight hold for each of its connections, and the one
//! on the log not at all: both are over soon.

use towline_client_proto::{Config, FlushOrder, Snapshot};

use super::{Violation, promise};

/// Probes and credentials of the connection itself count with the commands in flight.
const OWN_FLIGHTS_MAX: usize = 2;

/// What the log may hold beyond twice the live bytes.
const LOG_SLACK_BYTES: usize = 2 << 20;

/// After a command of `bytes` was accepted while `before` bytes waited. Room that was promised stands, also if a loss
/// has filled the backlog since.
pub(crate) fn after_submit(
    snapshot: &Snapshot,
    config: &Config,
    before: usize,
    bytes: usize,
    is_bounded: bool,
    connections: usize,
) -> Result<(), Violation> {
    let max = config.backlog_bytes_max.max(bytes);
    promise!(
        snapshot.backlog_bytes <= max || !is_bounded,
        "bounds",
        "{bytes} bytes were accepted to {before}: {} wait, the bound is {max}",
        snapshot.backlog_bytes
    );
    promise!(
        snapshot.backlog_bytes == before + bytes,
        "bounds",
        "{bytes} bytes added to {before} are counted as {}",
        snapshot.backlog_bytes
    );
    let live = snapshot.backlog_bytes + snapshot.in_flight_bytes;
    promise!(
        connections > 1 || snapshot.log_bytes <= 2 * live + LOG_SLACK_BYTES,
        "bounds",
        "the log holds {} bytes for {live} live ones",
        snapshot.log_bytes
    );
    Ok(())
}

/// After a writer took a batch.
pub(crate) fn after_taking(
    snapshot: &Snapshot,
    config: &Config,
    largest: usize,
    connections: usize,
) -> Result<(), Violation> {
    let max = config.in_flight_max.saturating_add(OWN_FLIGHTS_MAX).saturating_mul(connections.max(1));
    promise!(
        snapshot.in_flight_commands <= max,
        "bounds",
        "{} commands are in flight, the bound is {max}",
        snapshot.in_flight_commands
    );
    let max = (config.in_flight_bytes_max + largest) * connections.max(1);
    promise!(
        snapshot.in_flight_bytes <= max,
        "bounds",
        "{} bytes are in flight, the bound is {max}",
        snapshot.in_flight_bytes
    );
    Ok(())
}

/// After the first batch of a connection that came up with a backlog.
pub(crate) fn first_window(snapshot: &Snapshot, config: &Config, largest: usize) -> Result<(), Violation> {
    if config.flush_order != FlushOrder::InOrder {
        return Ok(());
    }
    let max = config.pace_bytes_initial + largest;
    promise!(
        snapshot.in_flight_bytes <= max,
        "bounds",
        "the backlog begins to leave with {} bytes, the first window is {max}",
        snapshot.in_flight_bytes
    );
    Ok(())
}

/// A caller was called from the line and found no room.
pub(crate) fn promised_room(id: u64) -> Violation {
    Violation::new("bounds", format!("{id} was called from the line for room and found none"))
}
