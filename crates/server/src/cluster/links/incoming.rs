//! Links that other nodes dial.
//!
//! Owns: accepting, the bounds on strangers and on links, and serving requests in frames. Does **not** own who is let in and what is
//! done for them: a [`Service`] does.

use super::handshake::{self, Greeted, Introduction, Refusal};
use super::messages::{Kind, Request, Response, put_frame, read_frame};
use super::{HANDSHAKE_TIME_MAX, MigrationStream, Purpose, Registry};
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Connections that have not introduced themselves yet. More are closed at once: real nodes dial again.
const STRANGERS_MAX: usize = 64;
/// Links that other nodes have to this one; a cluster of a thousand nodes has as many.
const LINKS_MAX: usize = 1100;
/// Requests of one link that are worked on at a time; the link is not read meanwhile.
const REQUESTS_MAX: usize = 64;
/// A link on which nothing comes for so long is closed. The other side closes it after half of that.
const IDLE_TIME_MAX: Duration = Duration::from_secs(120);
/// The other side has not read for so long.
const WRITE_TIME_MAX: Duration = Duration::from_secs(5);
/// After an accept has failed, which happens when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A response that takes a while.
pub(crate) type Serving = Pin<Box<dyn Future<Output = Response> + Send>>;

/// What this node does for others.
pub(crate) trait Service: Send + Sync + fmt::Debug + 'static {
    /// Whether this node talks to that one, and who this node is.
    ///
    /// # Errors
    /// What the other one is told.
    fn admit(&self, from: &Introduction, purpose: Purpose) -> Result<Introduction, Refusal>;

    /// A node has introduced itself and knows the secret; `from` is the address that it came from, `to` the one that it came to.
    fn greeted(&self, peer: &Introduction, from: IpAddr, to: IpAddr);

    /// Serves a request; takes less time than links wait for an answer.
    fn serve(&self, peer: &Greeted, request: Request) -> Serving;

    /// A connection for slots.
    fn migration(&self, stream: MigrationStream);
}

/// Accepts links until it is dropped.
///
/// # Cancel safety
/// All links that it has accepted are closed.
pub(crate) async fn accept(
    listener: TcpListener,
    secret: Arc<[u8]>,
    service: Arc<dyn Service>,
    registry: Arc<Registry>,
) {
    let strangers = Arc::new(Semaphore::new(STRANGERS_MAX));
    let mut links = JoinSet::new();
    loop {
        while links.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("cannot accept a node: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&strangers).try_acquire_owned() else { continue };
        if links.len() >= LINKS_MAX {
            continue;
        }
        let (secret, service, registry) = (Arc::clone(&secret), Arc::clone(&service), Arc::clone(&registry));
        links.spawn(async move {
            if let Some((stream, greeted)) = greet(stream, &secret, &*service).await {
                drop(permit);
                match greeted.purpose {
                    Purpose::Migration => {
                        service.migration(MigrationStream { node: greeted.peer.node, stream });
                    }
                    Purpose::Raft | Purpose::Meet => serve(stream, greeted, service, registry).await,
                }
            }
        });
    }
}

async fn greet(mut stream: TcpStream, secret: &[u8], service: &dyn Service) -> Option<(TcpStream, Greeted)> {
    stream.set_nodelay(true).ok()?;
    let (from, to) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
    let shaking = handshake::accept(&mut stream, secret, |from, purpose| service.admit(from, purpose));
    match timeout(HANDSHAKE_TIME_MAX, shaking).await {
        Ok(Ok(greeted)) => {
            service.greeted(&greeted.peer, from.ip().to_canonical(), to.ip().to_canonical());
            Some((stream, greeted))
        }
        Ok(Err(error)) => {
            tracing::debug!("a link from {from} was not accepted: {error}");
            None
        }
        Err(_) => None,
    }
}

async fn serve(stream: TcpStream, greeted: Greeted, service: Arc<dyn Service>, registry: Arc<Registry>) {
    let registered = registry.register(greeted.peer.node, false);
    let (reader, mut writer) = stream.into_split();
    let (responses, mut ready) = mpsc::channel::<(u64, Response)>(REQUESTS_MAX);
    let reading = async {
        let mut reader = BufReader::new(reader);
        let working = Arc::new(Semaphore::new(REQUESTS_MAX));
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let frame = timeout(IDLE_TIME_MAX, read_frame::<Request>(&mut reader, Kind::Request)).await;
            let Ok(Ok((number, request))) = frame else { return };
            let Ok(permit) = Arc::clone(&working).acquire_owned().await else { return };
            let serving = service.serve(&greeted, request);
            let responses = responses.clone();
            tasks.spawn(async move {
                let response = serving.await;
                // The link has ended; its other side knows.
                let _ = responses.send((number, response)).await;
                drop(permit);
            });
        }
    };
    let writing = async {
        let mut frames = Vec::new();
        while let Some((number, response)) = ready.recv().await {
            frames.clear();
            if put_frame(number, Kind::Response, &response, &mut frames).is_err() {
                return;
            }
            registered.state.queued_bytes.store(frames.len() as u64, Ordering::Relaxed);
            if !matches!(timeout(WRITE_TIME_MAX, writer.write_all(&frames)).await, Ok(Ok(()))) {
                return;
            }
            registered.state.queued_bytes.store(0, Ordering::Relaxed);
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}
