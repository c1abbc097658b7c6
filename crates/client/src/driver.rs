//! The owner of a connection: dials, reads, writes what callers leave, and keeps time.
//!
//! Owns the socket's reading half, the read buffer, the timer. Makes no decision: what to do comes from the bridge.
//! Reading is always armed: nothing here waits for a write without polling reads, so that a peer which stops reading
//! until its own output is taken cannot deadlock with us.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::sync::broadcast;
use towline_client_proto::{Batch, Credentials, Event, Generation, HandshakeConfig, LinkState, LostCause};
use towline_resp::frame::{Decoder, Frame};

use crate::clock;
use crate::credentials::CredentialsProvider;
use crate::dialing::{DialRight, Dialing};
use crate::engine::{Engine, State, Written, finish_write, write_batch};
use crate::opinion::{self, Asking};
use crate::options::ConnectOptions;
use crate::timer::Timer;
use crate::transport::{ConnectError, Connector, Stream};

/// Room for one read. Some hundred small replies; larger reads gain nothing on the way through one core's cache.
const READ_BYTES: usize = 32 * 1024;

/// With less room than this the buffer is renewed before a read.
const READ_BYTES_MIN: usize = 4 * 1024;

/// A body of this size gets a buffer of its own, of exactly its size.
const LARGE_BYTES_MIN: usize = 64 * 1024;

/// The most that is reserved for a body before its bytes come. Reserved is not used: the pages come with the bytes.
const CLAIM_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A socket that came late in its dial's time still gets this long for its handshake, or the dial's whole time if that is
/// shorter.
const HANDSHAKE_TIME_MIN: Duration = Duration::from_millis(500);

/// Frames given to the bridge at once.
const FRAMES_MAX: usize = 512;

/// Rounds of reading and writing before other tasks get a turn.
const ROUNDS_MAX: usize = 16;

/// Everything that stays the same from dial to dial.
pub(crate) struct Owner {
    engine: Arc<Engine>,
    connector: Connector,
    options: ConnectOptions,
    /// The target's name where dials are admitted.
    target_key: Arc<str>,
    events: broadcast::Sender<Event>,
    timer: Timer,
    /// Waiters to wake once the lock is gone; kept for its memory.
    wakes: Vec<Waker>,
    /// Ends when other credentials are to be used than those of the present connection.
    rotation: Option<Rotation>,
    /// A fresh connection that is asked about the present one's silence.
    opinion: Option<(Generation, Asking)>,
    life: Life,
}

/// What follows when a connection that was ready is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// The next one.
    Reconnects,
    /// The end: what a leased connection is about (watched keys, a transaction) ends with it.
    OneConnection,
}

/// Gives the credentials that replace the present ones, once they have changed.
type Rotation = Pin<Box<dyn Future<Output = Option<Credentials>> + Send>>;

/// Waits until `provider` has others than `known`.
fn rotation(provider: Arc<dyn CredentialsProvider>, known: Credentials) -> Rotation {
    Box::pin(async move {
        provider.changed(&known).await;
        provider.credentials().await.ok()
    })
}

/// What a dial yields.
struct Dialed {
    stream: Stream,
    right: DialRight,
    handshake: HandshakeConfig,
}

/// One open connection.
struct Connection {
    generation: Generation,
    stream: Stream,
    buffer: BytesMut,
    decoder: Decoder,
    frames: Vec<Frame>,
    /// The buffer was made for a large body: it is read to its end and not beyond, so that it need not grow.
    is_exact: bool,
    /// The other tasks were let go first, so that they submit what they have.
    has_yielded: bool,
    /// The stream has taken bytes that it may still hold back.
    needs_flush: bool,
    /// The right to dial, kept until the handshake is through.
    right: Option<DialRight>,
}

/// What one attempt to write came to.
enum Wrote {
    /// There was nothing to write.
    Nothing,
    Some,
    /// The kernel takes no more; the task is woken when it does.
    Blocked,
    /// Other tasks go first; this one is woken again.
    Yielded,
}

impl Owner {
    pub(crate) fn new(
        engine: Arc<Engine>,
        connector: Connector,
        options: ConnectOptions,
        events: broadcast::Sender<Event>,
        life: Life,
    ) -> Self {
        let target_key = options.target().to_string().into();
        Self {
            engine,
            connector,
            options,
            target_key,
            events,
            timer: Timer::new(),
            wakes: Vec::new(),
            rotation: None,
            opinion: None,
            life,
        }
    }

    /// Serves until the bridge has ended.
    pub(crate) async fn run(mut self) {
        while let Some(generation) = poll_fn(|cx| self.poll_idle(cx)).await {
            let Some(dialed) = self.dial(generation).await else { continue };
            let mut connection = self.open(generation, dialed);
            poll_fn(|cx| self.poll_serve(cx, &mut connection)).await;
            self.shut(connection);
            if self.life == Life::OneConnection && poll_fn(|cx| self.poll_was_up(cx)).await {
                break;
            }
        }
        self.settle();
    }

    /// Whether any connection has been ready. Waits until the loss of the last one is settled, for which a caller may
    /// have to give bytes back.
    fn poll_was_up(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        if matches!(state.bridge.link_state(), LinkState::Up | LinkState::Shaking) {
            state.owner = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let was_up = state.bridge.counters().connections > 0;
        self.publish(state);
        Poll::Ready(was_up)
    }

    /// Waits until a dial is due. `None` when the bridge has ended.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<Generation>> {
        let engine = Arc::clone(&self.engine);
        let now = clock::now();
        let mut state = engine.lock();
        state.bridge.handle_timeout(now);
        if state.bridge.is_finished() {
            return Poll::Ready(None);
        }
        let dial = state.bridge.poll_dial(now);
        let timeout = state.bridge.poll_timeout();
        state.owner = Some(cx.waker().clone());
        state.sleeps_until = self.timer.until(timeout);
        self.publish(state);
        if dial.is_some() {
            return Poll::Ready(dial);
        }
        self.timer.arm(timeout, cx);
        Poll::Pending
    }

    /// Dials, while time goes on for what waits.
    async fn dial(&mut self, generation: Generation) -> Option<Dialed> {
        let attempt = attempt(Arc::clone(&self.target_key), self.connector.clone(), self.options.clone());
        let mut attempt = pin!(attempt);
        let result = poll_fn(|cx| {
            if let Poll::Ready(result) = attempt.as_mut().poll(cx) {
                return Poll::Ready(Some(result));
            }
            // Nothing else is dialled meanwhile; what comes due are deadlines, and the end.
            match self.poll_idle(cx) {
                Poll::Ready(None) => Poll::Ready(None),
                _ => Poll::Pending,
            }
        })
        .await?;
        match result {
            Ok(dialed) => Some(dialed),
            Err(error) => {
                let now = clock::now();
                let engine = Arc::clone(&self.engine);
                let mut state = engine.lock();
                state.bridge.dial_failed(now, generation, error.io_kind());
                state.last_dial_error = Some(Arc::new(error));
                self.publish(state);
                None
            }
        }
    }

    fn open(&mut self, generation: Generation, dialed: Dialed) -> Connection {
        let Dialed { stream, right, handshake } = dialed;
        self.opinion = None;
        let known = handshake.credentials.clone().zip(self.options.provider().cloned());
        self.rotation = known.map(|(known, provider)| rotation(provider, known));
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        state.bridge.set_handshake(handshake);
        state.bridge.opened(clock::now(), generation);
        state.writer = stream.write_side().cloned();
        self.publish(state);
        Connection {
            generation,
            stream,
            buffer: BytesMut::new(),
            decoder: Decoder::default(),
            frames: Vec::new(),
            is_exact: false,
            has_yielded: false,
            needs_flush: false,
            right: Some(right),
        }
    }

    /// Speaks `AUTH` again when the credentials have changed. A provider that has none to give is asked again by the
    /// next dial.
    fn poll_rotation(&mut self, cx: &mut Context<'_>) {
        let Some(watched) = &mut self.rotation else { return };
        let Poll::Ready(fresh) = watched.as_mut().poll(cx) else { return };
        self.rotation = fresh.zip(self.options.provider().cloned()).map(|(fresh, provider)| {
            self.engine.lock().bridge.reauthenticate(fresh.clone());
            // Nobody has polled it yet: this task has to.
            cx.waker().wake_by_ref();
            rotation(provider, fresh)
        });
    }

    /// Passes on what a fresh connection found.
    fn poll_opinion(&mut self, cx: &mut Context<'_>) {
        let Some((generation, asking)) = &mut self.opinion else { return };
        let Poll::Ready(opinion) = asking.as_mut().poll(cx) else { return };
        if let Some(opinion) = opinion {
            self.engine.lock().bridge.second_opinion(*generation, opinion);
        }
        self.opinion = None;
    }

    /// Begins to ask a fresh connection.
    fn ask(&mut self, generation: Generation, cx: &mut Context<'_>) {
        let (connector, key) = (self.connector.clone(), Arc::clone(&self.target_key));
        self.opinion = Some((generation, opinion::ask(connector, &self.options, key)));
        cx.waker().wake_by_ref();
    }

    /// Reads and writes until the connection is over.
    fn poll_serve(&mut self, cx: &mut Context<'_>, connection: &mut Connection) -> Poll<()> {
        let engine = Arc::clone(&self.engine);
        self.poll_rotation(cx);
        self.poll_opinion(cx);
        for _ in 0..ROUNDS_MAX {
            let has_read = match connection.poll_read(cx) {
                Poll::Ready(Ok(0)) => {
                    self.lose(connection.generation, LostCause::Closed);
                    return Poll::Ready(());
                }
                Poll::Ready(Ok(count)) => {
                    self.hand_over(connection, count);
                    true
                }
                Poll::Ready(Err(error)) => {
                    self.lose(connection.generation, LostCause::from(error.kind()));
                    return Poll::Ready(());
                }
                Poll::Pending => false,
            };
            if let Err(error) = connection.flush(cx) {
                self.lose(connection.generation, LostCause::from(error.kind()));
                return Poll::Ready(());
            }
            let wrote = self.poll_write(cx, connection);
            if matches!(wrote, Wrote::Yielded) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if has_read || matches!(wrote, Wrote::Some) {
                continue;
            }
            let mut state = engine.lock();
            let now = clock::now();
            if state.bridge.poll_timeout().is_some_and(|at| at <= now) {
                state.bridge.handle_timeout(now);
                if let Some(generation) = state.bridge.poll_second_opinion() {
                    self.ask(generation, cx);
                }
            }
            if !state.bridge.is_serving(connection.generation) || state.bridge.is_finished() {
                self.publish(state);
                return Poll::Ready(());
            }
            let timeout = state.bridge.poll_timeout();
            // What a timeout asked for is written at once, unless the kernel blocks.
            if state.bridge.wants_write() && !matches!(wrote, Wrote::Blocked) {
                self.publish(state);
                continue;
            }
            if !state.owner.as_ref().is_some_and(|owner| owner.will_wake(cx.waker())) {
                state.owner = Some(cx.waker().clone());
            }
            state.sleeps_until = self.timer.until(timeout);
            self.publish(state);
            self.timer.arm(timeout, cx);
            return Poll::Pending;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Decodes what was read, `bytes_read` of it just now, and gives it to the bridge.
    fn hand_over(&mut self, connection: &mut Connection, mut bytes_read: usize) {
        let engine = Arc::clone(&self.engine);
        loop {
            let broken = connection.decode();
            let is_more = connection.frames.len() == FRAMES_MAX;
            let now = clock::now();
            let mut state = engine.lock();
            let counters = state.bridge.counters_mut();
            counters.reads += u64::from(bytes_read > 0);
            counters.bytes_read += std::mem::take(&mut bytes_read) as u64;
            state.bridge.deliver(now, connection.generation, &mut connection.frames);
            if let Some(error) = broken {
                state.bridge.broken(now, connection.generation, error);
            }
            let is_through = state.bridge.link_state() != LinkState::Shaking;
            self.publish(state);
            // It answered. Whether we like the answer does not concern the target.
            if is_through && let Some(right) = connection.right.take() {
                right.worked();
            }
            if !is_more || broken.is_some() {
                break;
            }
        }
        connection.trim();
    }

    /// Writes one batch, if there is one.
    fn poll_write(&mut self, cx: &mut Context<'_>, connection: &mut Connection) -> Wrote {
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        if !state.bridge.is_serving(connection.generation) || !state.bridge.wants_write() {
            return Wrote::Nothing;
        }
        if !connection.has_yielded && state.bridge.expects_more() {
            connection.has_yielded = true;
            return Wrote::Yielded;
        }
        connection.has_yielded = false;
        let now = clock::now();
        let Some(batch) = state.bridge.take_write(now) else { return Wrote::Nothing };
        drop(state);
        let (batch, written) = connection.write(cx, batch);
        let mut state = engine.lock();
        finish_write(&mut state, now, batch, &written);
        if written.is_blocked {
            state.bridge.write_blocked(now);
        }
        self.publish(state);
        if written.is_blocked { Wrote::Blocked } else { Wrote::Some }
    }

    fn lose(&mut self, generation: Generation, cause: LostCause) {
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        state.bridge.lost(clock::now(), generation, cause);
        self.publish(state);
    }

    /// Closes a connection that the bridge has given up or that has ended by itself.
    fn shut(&mut self, mut connection: Connection) {
        if let Some(right) = connection.right.take() {
            right.failed();
        }
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        state.writer = None;
        let is_graceful = state.bridge.is_finished();
        self.publish(state);
        if let Some(side) = connection.stream.write_side()
            && !is_graceful
        {
            side.discard_on_close();
        }
    }

    /// Lets the lock go, then wakes whoever has something to see and tells what has happened.
    fn publish(&mut self, mut state: std::sync::MutexGuard<'_, State>) {
        state.bridge.take_wakes(&mut self.wakes);
        let mut events = Vec::new();
        if state.bridge.has_events() {
            events.extend(std::iter::from_fn(|| state.bridge.poll_event()));
        }
        drop(state);
        self.wakes.drain(..).for_each(Waker::wake);
        events.into_iter().for_each(|event| self.tell(event));
    }

    fn tell(&self, event: Event) {
        crate::trace::event(&self.target_key, &event);
        if let Event::UnwatchedFailed { count, last } = &event
            && let Some(hook) = self.options.unwatched_hook()
        {
            hook(*count, last);
        }
        // Nobody listens: nothing is lost that anybody wanted.
        let _ = self.events.send(event);
    }

    /// The last words: whoever still waits for something learns that it is over.
    fn settle(&mut self) {
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        state.is_ended = true;
        self.publish(state);
        self.tell(Event::Closed);
    }
}

impl Drop for Owner {
    /// An owner that is dropped before its end (its runtime shuts down, or it panicked) leaves nobody waiting.
    fn drop(&mut self) {
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        if state.is_ended {
            return;
        }
        state.writer = None;
        state.bridge.kill(clock::now());
        drop(state);
        self.settle();
    }
}

/// One dial, with everything that must be asked first.
async fn attempt(
    key: Arc<str>,
    connector: Connector,
    options: ConnectOptions,
) -> Result<Dialed, ConnectError> {
    let target = options.target();
    let failed =
        |reason: String| ConnectError::Transport { target: target.clone(), source: io::Error::other(reason) };
    let right = Dialing::of_process().right(&key).await.map_err(|full| failed(full.to_string()))?;
    let begun = clock::now();
    let credentials = match options.provider() {
        Some(provider) => Some(provider.credentials().await.map_err(|error| failed(error.to_string()))?),
        None => None,
    };
    let stream = match connector.connect(target, options.dial_timeout()).await {
        Ok(stream) => stream,
        Err(error) => {
            right.failed();
            return Err(error);
        }
    };
    let left = options.dial_timeout().saturating_sub(clock::now().since(begun));
    let least = HANDSHAKE_TIME_MIN.min(options.dial_timeout());
    let handshake = options.handshake(credentials, left.max(least));
    Ok(Dialed { stream, right, handshake })
}

impl Connection {
    /// One read. The future of `read_buf` may be dropped at any time without losing bytes.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let missing = self.decoder.bytes_missing(self.buffer.len());
        self.is_exact = missing > 0 && (self.is_exact || missing >= LARGE_BYTES_MIN);
        let limit = if self.is_exact { self.make_room(missing) } else { usize::MAX };
        if limit == usize::MAX && self.buffer.capacity() - self.buffer.len() < READ_BYTES_MIN {
            self.buffer.reserve(READ_BYTES);
        }
        let mut room = (&mut self.buffer).limit(limit);
        pin!(self.stream.read_buf(&mut room)).poll(cx)
    }

    /// A buffer for the rest of a large body, and nothing behind it. Returns how much may be read.
    fn make_room(&mut self, missing: usize) -> usize {
        let wanted = missing.min(CLAIM_BYTES_MAX.max(self.buffer.len()));
        if self.buffer.capacity() - self.buffer.len() < wanted {
            let mut exact = BytesMut::with_capacity(self.buffer.len() + wanted);
            exact.extend_from_slice(&self.buffer);
            self.buffer = exact;
        }
        wanted
    }

    /// Moves whole frames from the buffer to the list, until it is long.
    fn decode(&mut self) -> Option<towline_resp::frame::FrameError> {
        while self.frames.len() < FRAMES_MAX {
            match self.decoder.decode(&mut self.buffer) {
                Ok(Some(frame)) => self.frames.push(frame),
                Ok(None) => break,
                Err(error) => return Some(error),
            }
        }
        None
    }

    /// An empty rest of a large buffer would keep all of it alive.
    fn trim(&mut self) {
        if self.buffer.is_empty() && self.decoder.is_idle() && self.buffer.capacity() == 0 {
            self.buffer = BytesMut::new();
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, batch: Batch) -> (Batch, Written) {
        let stream = &mut self.stream;
        let (batch, mut written) = write_batch(batch, |pieces| poll_write(stream, cx, pieces));
        self.needs_flush |= written.count > 0 && stream.needs_flush();
        if let Err(error) = self.flush(cx)
            && written.error.is_none()
        {
            written.error = Some(error);
        }
        (batch, written)
    }

    /// Pushes on what the stream holds back; if it cannot now, the task is woken when it can.
    fn flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.needs_flush
            && let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(cx)
        {
            self.needs_flush = false;
            return flushed;
        }
        Ok(())
    }
}

/// A vectored write as a function that blocks or not; if it does, the task is woken when the kernel takes bytes again.
fn poll_write(stream: &mut Stream, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
    match Pin::new(stream).poll_write_vectored(cx, pieces) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

#[cfg(test)]
mod tests;
