//! Metrics and health over HTTP, on a port of their own.
//!
//! Owns: the admin port's listener, its bounds, `/health` and `/metrics`. Does **not** own counting (see
//! [`crate::stats`]) nor the text of the metrics (see [`metrics`]). Nothing of it runs on a data worker: a scrape reads
//! atomics, and costs commands nothing.

pub(crate) mod metrics;

use crate::connection::unix_ms;
use crate::shared::{Shared, Stop};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Connections that are served at a time: a few scrapers, a probe and a person. More wait in the backlog.
const CONNECTIONS_MAX: usize = 32;
/// Connections that wait to be accepted.
pub(crate) const BACKLOG: u32 = 128;
/// A connection that sends nothing for this long is closed. Scrapers that keep theirs open come every minute or more often.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// How long accepting rests when the process is out of file descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Serves the admin port until the server stops. The calling thread is the control thread.
///
/// # Errors
/// When the runtime or the listener cannot be set up; the environment's fault.
pub(crate) fn run(listener: std::net::TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut stopping = shared.stopping();
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let listener = Listener { listener: TcpListener::from_std(listener)?, slots };
        let served = axum::serve(listener, router(shared));
        tokio::select! {
            served = served.into_future() => served,
            _ = stopping.wait_for(|stop| *stop != Stop::No) => Ok(()),
        }
    })
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/health", get(async || "ok\n"))
        .route("/metrics", get(scrape))
        .fallback(async || (StatusCode::NOT_FOUND, "not found: there are /health and /metrics\n"))
        .with_state(shared)
}

async fn scrape(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::render(&shared, unix_ms()))
}

/// Accepts no more connections than there are slots.
struct Listener {
    listener: TcpListener,
    slots: Arc<Semaphore>,
}

impl axum::serve::Listener for Listener {
    type Io = Guarded;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guarded, SocketAddr) {
        let slot = Arc::clone(&self.slots).acquire_owned().await.expect("invariant: nobody closes it");
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let idle = Box::pin(tokio::time::sleep(IDLE_MAX));
                    return (Guarded { stream, idle, _slot: slot }, peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection on the admin port failed");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when its peer is silent for too long.
struct Guarded {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
    _slot: OwnedSemaphorePermit,
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(read) => {
                self.idle.as_mut().reset(Instant::now() + IDLE_MAX);
                Poll::Ready(read)
            }
            Poll::Pending if self.idle.as_mut().poll(cx).is_ready() => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
