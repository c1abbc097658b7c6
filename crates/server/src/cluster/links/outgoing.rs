//! A link that this node dials.
//!
//! Owns: one connection to one node, dialled when something is to be said; requests that are under way on it. Does **not** own what is
//! said.

use super::dialing::{Address, BACKOFF, Dialer};
use super::handshake::{Greeted, Introduction, Refusal};
use super::messages::{Kind, Request, Response, put_frame, read_frame};
use super::{LinkState, Purpose, Registry};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use towline_admission::{Backoff, LossCause};
use towline_cluster_proto::NodeId;
use towline_sansio::Prng;

/// Requests that wait for a link. Raft has one under way for each link, proposals some more.
const QUEUE_MAX: usize = 256;
/// Requests without an answer on one connection; the other side works on fewer at a time.
const UNANSWERED_MAX: usize = 1024;
/// A link on which nothing is said for so long is closed.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
/// The other side has not answered anything for so long: the connection is of no use. Longer than any request may take there.
const SILENCE_MAX: Duration = Duration::from_secs(6);
/// The other side has not read for so long.
const WRITE_TIME_MAX: Duration = Duration::from_secs(5);

/// Why a request has no answer. The environment's fault; retryable if nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The other node has not got it.
    #[error("{0}")]
    NotSent(String),
    /// The other node may have got it.
    #[error("the connection was lost before the answer came")]
    Lost,
}

struct Call {
    frame: Vec<u8>,
    answer: oneshot::Sender<Result<Response, CallError>>,
}

impl Call {
    fn fail(self, error: CallError) {
        // Whoever does not wait any more does not need to know.
        let _ = self.answer.send(Err(error));
    }
}

/// What a link needs to know of its node, each time it dials.
pub(crate) trait Route: Send + Sync + fmt::Debug + 'static {
    /// Where the other node is, as far as is known; `None` if it is not.
    fn address(&self) -> Option<Address>;
    /// Who this node is.
    fn introduction(&self) -> Introduction;
    /// The name of the other node.
    fn node(&self) -> NodeId;
    /// It was not reached there.
    fn failed(&self);
}

/// A link. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Outgoing {
    calls: mpsc::Sender<Call>,
    is_open: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Outgoing {
    /// A link that dials when it is first used. Must be called on the runtime that it is to live on.
    pub(crate) fn start(
        route: Arc<dyn Route>,
        dialer: Arc<Dialer>,
        registry: Arc<Registry>,
        seed: u64,
    ) -> Self {
        let (calls, inbox) = mpsc::channel(QUEUE_MAX);
        let backoff = Backoff::new(BACKOFF).expect("invariant: the constant is valid");
        let is_open = Arc::new(AtomicBool::new(false));
        let open = Arc::clone(&is_open);
        let prng = Prng::new(seed);
        let task = Task { route, dialer, registry, calls: inbox, is_open: open, backoff, prng };
        Self { calls, is_open, task: tokio::spawn(task.run()) }
    }

    /// Whether there is a connection.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Sends a request, which is a frame whose number does not matter, and waits for the answer. It has no time limit: whoever calls does.
    ///
    /// # Errors
    /// [`CallError`].
    ///
    /// # Cancel safety
    /// It may be sent nevertheless.
    pub(crate) async fn call(&self, frame: Vec<u8>) -> Result<Response, CallError> {
        let (answer, answered) = oneshot::channel();
        if self.calls.try_send(Call { frame, answer }).is_err() {
            return Err(CallError::NotSent("too much is waiting for this link".into()));
        }
        answered.await.unwrap_or(Err(CallError::Lost))
    }
}

/// One request on a connection of its own, which is closed then.
///
/// # Errors
/// The connection broke, or it took too long; the request may have arrived.
///
/// # Cancel safety
/// As an error.
pub(crate) async fn call_once(
    mut stream: TcpStream,
    request: &Request,
    until: tokio::time::Instant,
) -> io::Result<Response> {
    let mut frame = Vec::new();
    put_frame(1, Kind::Request, request, &mut frame)?;
    let calling = async {
        stream.write_all(&frame).await?;
        let (_, response) = read_frame::<Response>(&mut stream, Kind::Response).await?;
        Ok(response)
    };
    tokio::time::timeout_at(until, calling).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Task {
    route: Arc<dyn Route>,
    dialer: Arc<Dialer>,
    registry: Arc<Registry>,
    calls: mpsc::Receiver<Call>,
    is_open: Arc<AtomicBool>,
    backoff: Backoff,
    prng: Prng,
}

type Unanswered = Mutex<BTreeMap<u64, oneshot::Sender<Result<Response, CallError>>>>;

impl Task {
    async fn run(mut self) {
        let mut not_before = self.dialer.now();
        let mut reason = String::new();
        while let Some(call) = self.calls.recv().await {
            if self.dialer.now() < not_before {
                call.fail(CallError::NotSent(reason.clone()));
                continue;
            }
            match self.dial().await {
                Ok(stream) => {
                    self.backoff.connected(self.dialer.now());
                    self.is_open.store(true, Ordering::Relaxed);
                    self.talk(stream, call).await;
                    self.is_open.store(false, Ordering::Relaxed);
                    not_before = self.backoff.lost(self.dialer.now(), LossCause::Private, &mut self.prng);
                    reason = "the connection was lost a moment ago".into();
                }
                Err(text) => {
                    not_before = self.backoff.failed(self.dialer.now(), &mut self.prng);
                    tracing::debug!("cannot reach node {}: {text}", self.route.node());
                    self.route.failed();
                    reason = text;
                    call.fail(CallError::NotSent(reason.clone()));
                    // What has gathered meanwhile has waited long enough.
                    while let Ok(call) = self.calls.try_recv() {
                        call.fail(CallError::NotSent(reason.clone()));
                    }
                }
            }
        }
    }

    async fn dial(&self) -> Result<TcpStream, String> {
        let at = self.route.address().ok_or("its address is not known")?;
        let from = self.route.introduction();
        let cluster = from.cluster;
        let dialled = self.dialer.dial(&at, Purpose::Raft, from).await;
        let (stream, Greeted { peer, .. }) = dialled.map_err(|error| format!("{at}: {error}"))?;
        if peer.cluster != cluster {
            return Err(format!("{at}: {}", Refusal::Cluster(peer.cluster)));
        }
        if peer.node != self.route.node() {
            return Err(format!("{at}: another node, {}, is there", peer.node));
        }
        Ok(stream)
    }

    /// Until the connection ends, or nobody has anything to say any more.
    async fn talk(&mut self, stream: TcpStream, first: Call) {
        let registered = self.registry.register(self.route.node(), true);
        let unanswered = Unanswered::default();
        let heard = Mutex::new(Instant::now());
        let (reader, writer) = stream.into_split();
        let reading = async {
            let mut reader = BufReader::new(reader);
            while let Ok((number, response)) = read_frame::<Response>(&mut reader, Kind::Response).await {
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                let answer = unanswered.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
                if let Some(answer) = answer {
                    // Whoever does not wait any more does not need to know.
                    let _ = answer.send(Ok(response));
                }
            }
        };
        let writing = write(writer, &mut self.calls, first, &unanswered, &heard, &registered.state);
        tokio::select! {
            () = reading => {}
            () = writing => {}
        }
        let unanswered = unanswered.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (_, answer) in unanswered {
            let _ = answer.send(Err(CallError::Lost));
        }
    }
}

async fn write(
    mut writer: OwnedWriteHalf,
    calls: &mut mpsc::Receiver<Call>,
    first: Call,
    unanswered: &Unanswered,
    heard: &Mutex<Instant>,
    state: &LinkState,
) {
    let mut next = Some(first);
    for number in 1.. {
        let call = match next.take() {
            Some(call) => call,
            None => match timeout(IDLE_TIME_MAX, calls.recv()).await {
                Ok(Some(call)) => call,
                Ok(None) | Err(_) => return,
            },
        };
        if call.answer.is_closed() {
            continue;
        }
        let mut frame = call.frame;
        frame[4..12].copy_from_slice(&u64::to_le_bytes(number));
        let waiting = {
            let mut unanswered = unanswered.lock().unwrap_or_else(PoisonError::into_inner);
            if unanswered.is_empty() {
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            }
            unanswered.insert(number, call.answer);
            unanswered.len()
        };
        let silence = heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        if waiting > UNANSWERED_MAX || silence > SILENCE_MAX {
            return;
        }
        state.queued_bytes.store(frame.len() as u64, Ordering::Relaxed);
        if !matches!(timeout(WRITE_TIME_MAX, writer.write_all(&frame)).await, Ok(Ok(()))) {
            return;
        }
        state.queued_bytes.store(0, Ordering::Relaxed);
    }
}
