//! **The handshake comes first.** No command of a caller is given to a connection before the replies to the whole
//! handshake were read from it.

use super::{Violation, promise};
use crate::network::Conn;

pub(crate) fn may_send(conn: &Conn, generation: u64, id: u64) -> Result<(), Violation> {
    let (said, heard) = (conn.handshake_commands, conn.frames);
    promise!(
        said > 0 && heard >= said,
        "handshake_first",
        "{id} was sent on connection {generation} after {heard} replies to {said} commands of the handshake"
    );
    Ok(())
}
