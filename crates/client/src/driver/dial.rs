//! One dial: the right to make it, what has to be asked first, and the socket.
//!
//! Owns the way from a target to a stream with the handshake that is to be said on it. Does not own when to dial, nor
//! where to: the bridge says both.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use towline_client_proto::handoff::Target as Whither;
use towline_client_proto::{Generation, HandshakeConfig};

use crate::clock;
use crate::dialing::{DialRight, Dialing};
use crate::options::ConnectOptions;
use crate::transport::{ConnectError, Connector, Stream, Target};

/// A socket that came late in its dial's time still gets this long for its handshake, or the dial's whole time if that is
/// shorter.
const HANDSHAKE_TIME_MIN: Duration = Duration::from_millis(500);

/// Where a dial leads.
#[derive(Debug, Clone)]
pub(super) struct Course {
    /// As the server or the user named it.
    pub(super) whither: Whither,
    pub(super) target: Target,
    /// The name under which dials to it are admitted.
    pub(super) key: Arc<str>,
    /// How many moves the client had heard of when it was dialled.
    pub(super) moves: u64,
}

impl Course {
    /// The way to `whither`. `configured_key` is the name under which dials to the configured target are admitted.
    pub(super) fn new(
        whither: Whither,
        options: &ConnectOptions,
        configured_key: &Arc<str>,
        moves: u64,
    ) -> Self {
        let (target, key) = match &whither {
            Whither::Named(address) => {
                let target = Target::tcp(&*address.host, address.port);
                let key = target.to_string().into();
                (target, key)
            }
            Whither::Configured => (options.target().clone(), Arc::clone(configured_key)),
        };
        Self { whither, target, key, moves }
    }
}

/// What a dial yields.
pub(super) struct Dialed {
    pub(super) stream: Stream,
    pub(super) right: DialRight,
    pub(super) handshake: HandshakeConfig,
}

/// A dial under way. Dropping it gives it up.
pub(super) struct Dial {
    generation: Generation,
    course: Course,
    attempt: Pin<Box<dyn Future<Output = Result<Dialed, ConnectError>> + Send>>,
}

impl Dial {
    /// Begins to dial for connection `generation`.
    pub(super) fn begin(
        generation: Generation,
        course: Course,
        connector: &Connector,
        options: &ConnectOptions,
    ) -> Self {
        let (key, target) = (Arc::clone(&course.key), course.target.clone());
        let attempt = attempt(key, connector.clone(), options.clone(), target);
        Self { generation, course, attempt: Box::pin(attempt) }
    }

    /// Where it leads.
    pub(super) fn into_course(self) -> Course {
        self.course
    }

    pub(super) const fn generation(&self) -> Generation {
        self.generation
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Dialed, ConnectError>> {
        self.attempt.as_mut().poll(cx)
    }
}

/// One dial of a connection that nobody else has to do with.
pub(crate) async fn dialed(
    connector: Connector,
    options: ConnectOptions,
) -> Result<(Stream, DialRight, HandshakeConfig), ConnectError> {
    let target = options.target().clone();
    let Dialed { stream, right, handshake } =
        attempt(target.to_string().into(), connector, options, target).await?;
    Ok((stream, right, handshake))
}

/// One dial, with everything that must be asked first.
async fn attempt(
    key: Arc<str>,
    connector: Connector,
    options: ConnectOptions,
    target: Target,
) -> Result<Dialed, ConnectError> {
    let failed =
        |reason: String| ConnectError::Transport { target: target.clone(), source: io::Error::other(reason) };
    let right = Dialing::of_process().right(&key).await.map_err(|full| failed(full.to_string()))?;
    let begun = clock::now();
    let credentials = match options.provider() {
        Some(provider) => Some(provider.credentials().await.map_err(|error| failed(error.to_string()))?),
        None => None,
    };
    // Whoever the server names is as much to be trusted as the configured server is, and no more.
    let stream = match connector.connect_as(&target, options.target(), options.dial_timeout()).await {
        Ok(stream) => stream,
        Err(error) => {
            right.failed();
            return Err(error);
        }
    };
    let left = options.dial_timeout().saturating_sub(clock::now().since(begun));
    let least = HANDSHAKE_TIME_MIN.min(options.dial_timeout());
    let handshake = options.handshake(credentials, left.max(least), stream.peer_addr());
    Ok(Dialed { stream, right, handshake })
}
