//! A second opinion on a server that has fallen silent: what a fresh connection finds.
//!
//! Owns that one short conversation. Does not own when to ask, nor what the answer means for the connection in doubt
//! (`liveness` of the core). It dials as everybody does, by the right of [`Dialing`], and without a right in time it has
//! no opinion.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout_at};
use towline_client_proto::Opinion;

use crate::dialing::Dialing;
use crate::options::ConnectOptions;
use crate::transport::{ConnectError, Connector, DialStage, Stream, Target};

/// Ends with what was found; `None` if it says nothing about the server.
pub(crate) type Asking = Pin<Box<dyn Future<Output = Option<Opinion>> + Send>>;

/// Asks at `target`, where the silent connection leads. The answer is there before the patience with that one ends.
/// `key` is the name under which dials to the target are admitted.
pub(crate) fn ask(connector: Connector, options: &ConnectOptions, target: Target, key: Arc<str>) -> Asking {
    let liveness = options.liveness_config();
    let asked_after = liveness.second_opinion.map_or(liveness.silence_max, |second| second.ask_after);
    // Three quarters of what is left, so that the answer is there in time; and never longer than a dial may take.
    let left = liveness.silence_max.saturating_sub(asked_after);
    let time = (left - left / 4).min(options.dial_timeout());
    let identity = options.target().clone();
    Box::pin(async move { find_out(&connector, &target, &identity, &key, time).await })
}

async fn find_out(
    connector: &Connector,
    target: &Target,
    identity: &Target,
    key: &Arc<str>,
    time: std::time::Duration,
) -> Option<Opinion> {
    let now = Instant::now();
    // A `time` beyond the clock's reach: its half is not.
    let deadline = now.checked_add(time).unwrap_or(now);
    let right = timeout_at(deadline, Dialing::of_process().right(key)).await.ok()?.ok()?;
    let left = deadline.saturating_duration_since(Instant::now());
    let stream = match connector.connect_as(target, identity, left).await {
        Ok(stream) => stream,
        // The kernel of the peer has accepted it, so it lives.
        Err(ConnectError::Timeout { stage: DialStage::Tls, .. }) => return Some(Opinion::Busy),
        Err(
            ConnectError::Connect { .. }
            | ConnectError::Unix { .. }
            | ConnectError::Timeout { stage: DialStage::Connect, .. },
        ) => {
            right.failed();
            return Some(Opinion::Unreachable);
        }
        Err(_) => return None,
    };
    match timeout_at(deadline, ping(stream)).await {
        Ok(true) => {
            right.worked();
            Some(Opinion::Answers)
        }
        Ok(false) => None,
        Err(_) => Some(Opinion::Busy),
    }
}

/// Whether anything comes back: a refusal shows a live server as well as an answer does.
async fn ping(mut stream: Stream) -> bool {
    let sent = async {
        stream.write_all(b"*1\r\n$4\r\nPING\r\n").await?;
        stream.flush().await
    };
    if sent.await.is_err() {
        return false;
    }
    matches!(stream.read(&mut [0; 16]).await, Ok(count) if count > 0)
}
