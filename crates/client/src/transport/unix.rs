//! Unix stream sockets.
//!
//! Owns the dial. There is nothing to set: such a socket has no timers and no algorithm of Nagle, and a dead peer is
//! seen at once.

use super::{ConnectError, DialStage, Limit};
use std::path::Path;
use tokio::net::UnixStream;

/// Connects to the socket at `path`.
pub(super) async fn dial(path: &Path, limit: &Limit<'_>) -> Result<UnixStream, ConnectError> {
    let dialed = limit.hold(DialStage::Connect, UnixStream::connect(path)).await?;
    dialed.map_err(|source| ConnectError::Unix { path: path.to_owned(), source })
}
