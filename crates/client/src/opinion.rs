//! A second opinion on a server that has fallen silent: what a fresh connection finds.
//!
//! Owns that one short conversation. Does not own when to ask, nor what the answer means for the connection in doubt
//! (`liveness` of the core). It dials as everybody does, by the right of [`Dialing`], and without a right in time it has
//! no opinion.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout_at};
use towline_client_proto::maintenance::MaintenanceMode;
use towline_client_proto::{Doubt, ErrorKind, LivenessConfig, Opinion};

use crate::client::Client;
use crate::dialing::Dialing;
use crate::lease::say;
use crate::options::ConnectOptions;
use crate::transport::{ConnectError, Connector, DialStage, Stream, Target};

/// Ends with what was found; `None` if it says nothing about the server.
pub(crate) type Asking = Pin<Box<dyn Future<Output = Option<Opinion>> + Send>>;

/// A publication to this channel is a write for a server that holds back writes, and for nobody else: it needs no key, so
/// no slot, and nobody listens.
const HELD_CHANNEL: &[u8] = b"towline:held";

/// A write that is not answered for less than this says nothing.
const HELD_TIME_MIN: Duration = Duration::from_millis(50);

/// Asks at `target`, where the silent connection leads. The answer is there before the patience with that one ends.
/// `key` is the name under which dials to the target are admitted.
pub(crate) fn ask(
    connector: Connector,
    options: &ConnectOptions,
    target: Target,
    key: Arc<str>,
    doubt: Doubt,
) -> Asking {
    // Three quarters of what is left, so that the answer is there in time; and never longer than a dial may take.
    let left = options.liveness_config().opinion_time();
    let time = (left - left / 4).min(options.dial_timeout());
    let identity = options.target().clone();
    let liveness = LivenessConfig { second_opinion: None, held_max: None, ..*options.liveness_config() };
    let options =
        options.clone().with_target(target.clone()).maintenance(MaintenanceMode::Disabled).liveness(liveness);
    Box::pin(async move {
        let now = Instant::now();
        // A `time` beyond the clock's reach: its half is not.
        let deadline = now.checked_add(time).unwrap_or(now);
        let opinion = find_out(&connector, &target, &identity, &key, deadline).await;
        if doubt.about_writes && opinion == Some(Opinion::Answers) && holds(options, deadline).await {
            return Some(Opinion::Holds);
        }
        opinion.filter(|_| doubt.about_life)
    })
}

/// Whether a write on a fresh connection, with everything that a connection says first, is not answered. A user who may not
/// publish is refused at once, which says nothing.
async fn holds(options: ConnectOptions, deadline: Instant) -> bool {
    let Ok(client) = Client::lazy(options) else { return false };
    if !matches!(timeout_at(deadline, client.ready()).await, Ok(Ok(()))) {
        return false;
    }
    let left = deadline.saturating_duration_since(Instant::now());
    if left < HELD_TIME_MIN {
        return false;
    }
    let outcome = say(client.inner.endpoint(), &[b"PUBLISH", HELD_CHANNEL, b""], left).await;
    matches!(outcome, Err(error) if matches!(error.kind(), ErrorKind::Deadline))
}

async fn find_out(
    connector: &Connector,
    target: &Target,
    identity: &Target,
    key: &Arc<str>,
    deadline: Instant,
) -> Option<Opinion> {
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
