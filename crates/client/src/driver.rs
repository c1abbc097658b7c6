//! The owner of an endpoint's connections: dials, reads, writes what callers leave, and keeps time.
//!
//! Owns the sockets' reading halves, the dials under way, the timer. Makes no decision: what to do comes from the
//! bridge. There is one connection, except while the endpoint moves: then its successor is made ready beside it, and
//! what was left is read until it has answered.
//!
//! Reading is always armed: nothing here waits for a write without polling reads, so that a peer which stops reading
//! until its own output is taken cannot deadlock with us.

mod connection;
mod dial;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};

use towline_client_proto::handoff::Target as Whither;
use towline_client_proto::maintenance::Address;
use towline_client_proto::{Credentials, Doubt, Event, Generation, LinkState, LostCause};
use towline_sansio::Instant;

use crate::clock;
use crate::cluster::{Attachment, Follow};
use crate::credentials::CredentialsProvider;
use crate::engine::{Engine, Place, State, finish_write};
use crate::lanes::Voice;
use crate::lease::Guide;
use crate::opinion::{self, Asking};
use crate::options::ConnectOptions;
use crate::timer::Timer;
use crate::transport::Connector;

use connection::{Connection, FRAMES_MAX};
pub(crate) use dial::dialed;
use dial::{Course, Dial, Dialed};

/// Rounds of reading and writing before other tasks get a turn.
const ROUNDS_MAX: usize = 16;

/// Everything that stays the same from dial to dial.
pub(crate) struct Owner {
    engine: Arc<Engine>,
    connector: Connector,
    options: ConnectOptions,
    /// The target's name where dials are admitted.
    target_key: Arc<str>,
    voice: Voice,
    timer: Timer,
    /// Waiters to wake once the lock is gone; kept for its memory.
    wakes: Vec<Waker>,
    /// Ends when other credentials are to be used than those of the present connection.
    rotation: Option<Rotation>,
    /// A fresh connection that is asked about the present one's silence.
    opinion: Option<(Generation, Asking)>,
    /// One, while nothing moves.
    connections: Vec<Connection>,
    dials: Vec<Dial>,
    life: Life,
    /// Present on a connection of a cluster's client.
    attachment: Option<Attachment>,
}

/// What follows when a connection that was ready is lost.
#[derive(Clone)]
pub(crate) enum Life {
    /// The next one.
    Reconnects,
    /// The end: what a leased connection is about (watched keys, a transaction) ends with it. It leads where the guide
    /// says.
    OneConnection(Arc<Guide>),
    /// The next one, wherever the cluster says then.
    Follows(Follow),
    /// The end as well: it is for a few words to the process at this address, wherever the target has gone meanwhile.
    Aside(SocketAddr),
}

impl Life {
    /// Whether there is one connection and then no other.
    pub(crate) const fn is_single(&self) -> bool {
        !matches!(self, Self::Reconnects | Self::Follows(_))
    }

    /// Where to dial, and how many moves had been heard of by then.
    fn course(&self, now: Instant, state: &State) -> (Whither, u64) {
        match self {
            Self::Reconnects => (state.bridge.reconnect_target(now), state.bridge.moves_announced()),
            Self::OneConnection(guide) => guide.course(now),
            // A server that says where it goes knows better than the map.
            Self::Follows(follow) => match state.bridge.reconnect_target(now) {
                Whither::Configured => (follow.course(), state.bridge.moves_announced()),
                named @ Whither::Named(_) => (named, state.bridge.moves_announced()),
            },
            Self::Aside(at) => {
                (Whither::Named(Address { host: at.ip().to_string().into(), port: at.port() }), 0)
            }
        }
    }

    fn dial_failed(&self, whither: &Whither) {
        match self {
            Self::OneConnection(guide) => guide.failed(whither),
            Self::Follows(follow) => follow.failed(),
            Self::Reconnects | Self::Aside(_) => {}
        }
    }
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

/// What one look at a connection came to.
enum Served {
    /// Neither side has anything for the other; the task is woken when one has.
    Idle,
    /// The kernel takes no more.
    Blocked,
    Some,
    /// Other tasks go first; this one is woken again.
    Yielded,
    /// It is over.
    Over,
}

/// What there is to do when no connection has anything.
enum Rest {
    Sleep,
    /// Something has come due.
    Again,
    /// The bridge has ended.
    Finished,
}

impl Owner {
    pub(crate) fn new(
        engine: Arc<Engine>,
        connector: Connector,
        options: ConnectOptions,
        voice: Voice,
        life: Life,
        attachment: Option<Attachment>,
    ) -> Self {
        let target_key = options.target().to_string().into();
        Self {
            engine,
            connector,
            options,
            target_key,
            voice,
            timer: Timer::new(),
            wakes: Vec::new(),
            rotation: None,
            opinion: None,
            connections: Vec::new(),
            dials: Vec::new(),
            life,
            attachment,
        }
    }

    /// Serves until the bridge has ended.
    pub(crate) async fn run(mut self) {
        poll_fn(|cx| self.poll_turn(cx)).await;
        while let Some(connection) = self.connections.pop() {
            self.shut(connection);
        }
        self.settle();
    }

    /// One turn of the task: reads, writes, dials and keeps time until there is nothing left to do for now.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_rotation(cx);
        self.poll_opinion(cx);
        for _ in 0..ROUNDS_MAX {
            let mut is_busy = self.poll_dials(cx);
            let mut is_blocked = false;
            let mut at = 0;
            while at < self.connections.len() {
                match self.poll_connection(cx, at) {
                    Served::Idle => {}
                    Served::Blocked => is_blocked = true,
                    Served::Some => is_busy = true,
                    Served::Yielded => {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Served::Over => {
                        let connection = self.connections.remove(at);
                        self.shut(connection);
                        is_busy = true;
                        continue;
                    }
                }
                at += 1;
            }
            if is_busy {
                continue;
            }
            match self.rest(cx, is_blocked) {
                Rest::Again => {}
                Rest::Sleep => return Poll::Pending,
                Rest::Finished => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once and writes once.
    fn poll_connection(&mut self, cx: &mut Context<'_>, at: usize) -> Served {
        let connection = &mut self.connections[at];
        let generation = connection.generation;
        let has_read = match connection.poll_read(cx) {
            Poll::Ready(Ok(0)) => {
                self.lose(generation, LostCause::Closed);
                return Served::Over;
            }
            Poll::Ready(Ok(count)) => {
                self.hand_over(at, count);
                true
            }
            Poll::Ready(Err(error)) => {
                self.lose(generation, LostCause::from(error.kind()));
                return Served::Over;
            }
            Poll::Pending => false,
        };
        if let Err(error) = self.connections[at].flush(cx) {
            self.lose(generation, LostCause::from(error.kind()));
            return Served::Over;
        }
        match self.poll_write(cx, at) {
            Wrote::Yielded => Served::Yielded,
            Wrote::Some => Served::Some,
            _ if has_read => Served::Some,
            Wrote::Blocked => Served::Blocked,
            Wrote::Nothing => Served::Idle,
        }
    }

    /// Looks at the time and at what the bridge wants before the task sleeps.
    fn rest(&mut self, cx: &mut Context<'_>, is_blocked: bool) -> Rest {
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        let now = clock::now();
        if state.bridge.poll_timeout().is_some_and(|at| at <= now) {
            state.bridge.handle_timeout(now);
            if let Some((generation, doubt)) = state.bridge.poll_second_opinion() {
                self.ask(generation, doubt, cx);
            }
        }
        if state.bridge.is_finished() || self.has_had_its_life(&state) {
            self.publish(state);
            return Rest::Finished;
        }
        let unwanted = self.connections.iter().position(|it| !state.bridge.is_wanted(it.generation));
        if let Some(at) = unwanted {
            self.publish(state);
            let connection = self.connections.remove(at);
            self.shut(connection);
            return Rest::Again;
        }
        // A dial is dropped without the lock: it may be a foreign transport's.
        let unwanted = self.dials.iter().position(|dial| !state.bridge.is_wanted(dial.generation()));
        if let Some(at) = unwanted {
            self.publish(state);
            self.dials.swap_remove(at);
            return Rest::Again;
        }
        if self.begin_dials(&mut state) {
            self.publish(state);
            return Rest::Again;
        }
        // What a timeout asked for is written at once, unless the kernel blocks.
        let wants_write = |it: &Connection| state.bridge.wants_write(it.generation);
        if !is_blocked && self.connections.iter().any(wants_write) {
            self.publish(state);
            return Rest::Again;
        }
        let timeout = state.bridge.poll_timeout();
        if !state.owner.as_ref().is_some_and(|owner| owner.will_wake(cx.waker())) {
            state.owner = Some(cx.waker().clone());
        }
        state.sleeps_until = self.timer.until(timeout);
        self.publish(state);
        self.timer.arm(timeout, cx);
        Rest::Sleep
    }

    /// Whether the one connection of this owner is over. The loss of it is settled first, for which a caller may have to
    /// give bytes back.
    fn has_had_its_life(&self, state: &State) -> bool {
        self.life.is_single()
            && self.connections.is_empty()
            && state.bridge.counters().connections > 0
            && !matches!(state.bridge.link_state(), LinkState::Up | LinkState::Shaking)
    }

    /// Begins the dials that are due.
    fn begin_dials(&mut self, state: &mut State) -> bool {
        let now = clock::now();
        let mut has_begun = false;
        if let Some(generation) = state.bridge.poll_dial(now) {
            let (whither, moves) = self.life.course(now, state);
            self.begin_dial(generation, whither, moves);
            has_begun = true;
        }
        if let Some(dial) = state.bridge.poll_handoff_dial(now) {
            self.begin_dial(dial.generation, dial.target, state.bridge.moves_announced());
            has_begun = true;
        }
        has_begun
    }

    fn begin_dial(&mut self, generation: Generation, whither: Whither, moves: u64) {
        let course = Course::new(whither, &self.options, &self.target_key, moves);
        // Who follows others speaks to each of them in its own name; the configured target only led to them.
        let dial = match &self.life {
            Life::Follows(_) => {
                let options = self.options.clone().with_target(course.target.clone());
                Dial::begin(generation, course, &self.connector, &options)
            }
            _ => Dial::begin(generation, course, &self.connector, &self.options),
        };
        self.dials.push(dial);
    }

    /// Sees what has come of the dials; whether any has ended.
    fn poll_dials(&mut self, cx: &mut Context<'_>) -> bool {
        let mut has_ended = false;
        let mut at = 0;
        while at < self.dials.len() {
            let Poll::Ready(result) = self.dials[at].poll(cx) else {
                at += 1;
                continue;
            };
            let dial = self.dials.swap_remove(at);
            let generation = dial.generation();
            let course = dial.into_course();
            has_ended = true;
            match result {
                Ok(dialed) => self.open(generation, course, dialed),
                Err(error) => {
                    self.life.dial_failed(&course.whither);
                    let engine = Arc::clone(&self.engine);
                    let mut state = engine.lock();
                    state.bridge.dial_failed(clock::now(), generation, error.io_kind());
                    state.last_dial_error = Some(Arc::new(error));
                    self.publish(state);
                }
            }
        }
        has_ended
    }

    fn open(&mut self, generation: Generation, course: Course, dialed: Dialed) {
        let Dialed { stream, right, handshake } = dialed;
        self.opinion = None;
        let known = handshake.credentials.clone().zip(self.options.provider().cloned());
        self.rotation = known.map(|(known, provider)| rotation(provider, known));
        let peer = stream.peer_addr();
        self.connections.push(Connection::new(generation, course, stream, right));
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        state.bridge.set_handshake(handshake);
        state.bridge.opened(clock::now(), generation, peer);
        self.publish(state);
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
    fn ask(&mut self, generation: Generation, doubt: Doubt, cx: &mut Context<'_>) {
        let course = self.connections.iter().find(|it| it.generation == generation).map(|it| &it.course);
        let Some(Course { target, key, .. }) = course.cloned() else { return };
        let asking = opinion::ask(self.connector.clone(), &self.options, target, key, doubt);
        self.opinion = Some((generation, asking));
        cx.waker().wake_by_ref();
    }

    /// Decodes what was read, `bytes_read` of it just now, and gives it to the bridge.
    fn hand_over(&mut self, at: usize, mut bytes_read: usize) {
        let engine = Arc::clone(&self.engine);
        loop {
            let connection = &mut self.connections[at];
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
            let is_through = connection.right.is_some() && !state.bridge.is_shaking(connection.generation);
            let right = if is_through { connection.right.take() } else { None };
            self.publish(state);
            // It answered. Whether we like the answer does not concern the target.
            if let Some(right) = right {
                right.worked();
            }
            if !is_more || broken.is_some() {
                break;
            }
        }
        self.connections[at].trim();
    }

    /// Writes one batch, if there is one.
    fn poll_write(&mut self, cx: &mut Context<'_>, at: usize) -> Wrote {
        let engine = Arc::clone(&self.engine);
        let connection = &mut self.connections[at];
        let generation = connection.generation;
        let mut state = engine.lock();
        if !state.bridge.wants_write(generation) {
            return Wrote::Nothing;
        }
        let is_serving = generation == state.bridge.generation();
        if is_serving && !connection.has_yielded && state.bridge.expects_more() {
            connection.has_yielded = true;
            return Wrote::Yielded;
        }
        connection.has_yielded = false;
        let now = clock::now();
        let Some(batch) = state.bridge.take_write(now, generation) else { return Wrote::Nothing };
        drop(state);
        let (batch, written) = connection.write(cx, batch);
        let mut state = engine.lock();
        finish_write(&mut state, now, batch, &written);
        if written.is_blocked {
            state.bridge.write_blocked(now, generation);
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
        let right = connection.right.take();
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        if let Some(right) = right {
            right.failed();
            // One that was given up says nothing about where it would have led.
            if !state.bridge.is_closed() {
                self.life.dial_failed(&connection.course.whither);
            }
        }
        if state.writer.as_ref().is_some_and(|(generation, _)| *generation == connection.generation) {
            state.writer = None;
        }
        // Of a connection that was left every reply was read: nothing is in the way of an orderly end.
        let is_graceful = state.bridge.is_finished() || state.bridge.has_answered(connection.generation);
        self.publish(state);
        if let Some(side) = connection.stream.write_side()
            && !is_graceful
        {
            side.discard_on_close();
        }
    }

    /// Lets the lock go, then wakes whoever has something to see and tells what has happened.
    fn publish(&mut self, mut state: MutexGuard<'_, State>) {
        self.show_writer(&mut state);
        state.bridge.take_wakes(&mut self.wakes);
        let mut events = Vec::new();
        if state.bridge.has_events() {
            events.extend(std::iter::from_fn(|| state.bridge.poll_event()));
        }
        let news = state.bridge.has_news().then(|| state.bridge.take_news());
        // With the lock: who sees a reply does not find anything older in the cache. What came before it is told by then.
        if state.bridge.has_tracking_news()
            && let Some(cache) = &self.engine.cache
        {
            cache.tell(state.bridge.take_tracking_news());
        }
        drop(state);
        self.wakes.drain(..).for_each(Waker::wake);
        events.into_iter().for_each(|event| self.tell(event));
        if let (Some(news), Some(attachment)) = (news, &self.attachment) {
            attachment.tell(news);
        }
    }

    /// Callers may write to the connection that serves, and to no other.
    fn show_writer(&self, state: &mut State) {
        let serving = state.bridge.generation();
        self.show_place(state, serving);
        if state.writer.as_ref().is_some_and(|(generation, _)| *generation == serving) {
            return;
        }
        let connection = self.connections.iter().find(|connection| connection.generation == serving);
        let side = connection.and_then(|connection| connection.stream.write_side());
        state.writer = side.map(|side| (serving, Arc::clone(side)));
    }

    fn show_place(&self, state: &mut State, serving: Generation) {
        if state.place.as_ref().is_some_and(|place| place.generation == serving) {
            return;
        }
        let Some(connection) = self.connections.iter().find(|it| it.generation == serving) else { return };
        let Course { whither, moves, .. } = connection.course.clone();
        state.place = Some(Place {
            generation: serving,
            whither,
            local: connection.stream.local_addr(),
            moves,
            opened_at: clock::now(),
        });
    }

    fn tell(&self, event: Event) {
        crate::trace::event(&self.target_key, &event);
        if let Event::UnwatchedFailed { count, last } = &event
            && let Some(hook) = self.options.unwatched_hook()
        {
            hook(*count, last);
        }
        // Nobody listens: nothing is lost that anybody wanted.
        let _ = self.voice.events.send(event);
    }

    /// The last words: whoever still waits for something learns that it is over.
    fn settle(&mut self) {
        let engine = Arc::clone(&self.engine);
        let mut state = engine.lock();
        state.is_ended = true;
        self.publish(state);
        let is_last = self.voice.is_last_word();
        is_last.then(|| self.tell(Event::Closed));
    }
}

impl Drop for Owner {
    /// An owner that is dropped before its end (its runtime shuts down, or it panicked) leaves nobody waiting.
    fn drop(&mut self) {
        // Without the lock: streams and dials may be a foreign transport's.
        self.connections.clear();
        self.dials.clear();
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
