//! One connection: from readable bytes to written replies.
//!
//! Owns: the socket, what was read and not yet executed, what was answered and not yet sent, and waiting. Does **not**
//! own what commands do.
//!
//! A connection is one task on one worker. Each time it is polled it sends what is left, takes what others pushed, reads
//! what has come, executes all complete commands of it and writes all replies at once. Reads and replies go through
//! buffers of the worker: an idle connection has none of its own.

use self::big::Big;
use self::parsed::{Parsed, Step, simple_row};
use crate::batch::{self, RUN_MAX, Simple};
use crate::blocking::{self, Waiter};
use crate::client::Ending;
use crate::command::{Args, OwnedArgs, Row};
use crate::execute::{self, Flow, Local};
use crate::farewell;
use crate::output::{Output, Sent};
use crate::parking::Parking;
use crate::session::Session;
use crate::stream::Stream;
use bytes::Bytes;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use towline_resp::request::{
    ArgRange, Progress, RequestError, RequestLimits, RequestParser, UnauthenticatedLimits,
};
use towline_resp::writer::Writer;
use towline_spec::Command;

mod big;
mod enforcing;
mod leaving;
mod parsed;
#[cfg(test)]
mod turn_tests;
mod waiting;

/// Bytes of one read. A read costs the same for one byte as for this many, and this many still fit the second-level cache.
pub(crate) const READ_BYTES: usize = 64 * 1024;
/// Reads of one turn; then other connections get theirs. TLS gives a record at a time, and a record may be short.
const READS_PER_TURN: usize = 8;
/// Bytes that one turn takes: one full read, which is about 2,000 short commands or a quarter of a millisecond. More would
/// save nothing, and whoever comes in meanwhile waits for one such turn of each connection that always has more.
const TURN_BYTES: usize = READ_BYTES;
/// Time of one turn that commands take; a command that takes longer is the turn's last. Slow commands are bounded by this:
/// what fits in [`TURN_BYTES`] of them may take seconds.
const TURN_TIME: Duration = Duration::from_micros(500);
/// A reply buffer that grew larger is given back once it is empty.
const REPLY_BUFFER_KEPT_BYTES: usize = 256 * 1024;
/// Replies of one turn are sent, and held against the client's limits, each time they come to this much.
const REPLIES_PER_SEND_BYTES: usize = 1 << 20;

/// What a worker lends to the connection that is being served.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) local: Local,
    pub(crate) out: Writer,
    pub(crate) scratch: Vec<u8>,
    args: Vec<ArgRange>,
}

impl Desk {
    /// The buffers of one worker.
    pub(crate) fn new(local: Local) -> Self {
        Self {
            local,
            out: Writer::default(),
            scratch: vec![0; READ_BYTES],
            args: Vec::with_capacity(RUN_MAX * 4),
        }
    }
}

/// Why the connection does not execute what it has read.
#[derive(Debug)]
enum Waiting {
    Blocked { waiter: Arc<Waiter>, timer: Option<Pin<Box<Sleep>>> },
    Paused { timer: Pin<Box<Sleep>>, command: OwnedArgs },
    Crowded { turn: waiting::Turn, command: OwnedArgs },
    Parked { parking: Arc<Parking>, command: OwnedArgs },
}

/// A connection; see the module's description.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    session: Session,
    parser: RequestParser,
    /// Read and not executed, from `done` on, where a command begins. Empty when all is executed.
    input: Vec<u8>,
    /// Bytes at the start of `input` that are executed: moving the rest for each turn would cost more than the commands.
    done: usize,
    /// The turn was over before `input` was: there may be complete commands in it.
    is_cut: bool,
    big: Option<Box<Big>>,
    /// Arguments of the command at the start of `input` that have blocks of their own.
    owned: Vec<Arc<Vec<u8>>>,
    output: Option<Box<Output>>,
    /// Up to where the log has to be durable before the worker wakes this connection; 0 if it does not.
    awaited: u64,
    waiting: Option<Box<Waiting>>,
    /// Since when the soft output limit is exceeded, in unix milliseconds.
    over_soft_limit_since_ms: Option<u64>,
    /// The task's waker, as it was given to the client.
    waker: Option<Waker>,
    /// The socket has taken bytes that it may not have sent: TLS does.
    is_unflushed: bool,
    /// A drain closes it, and it has nothing to do at this moment.
    quiet: Option<Box<leaving::Quiet>>,
}

/// The end of a connection.
#[derive(Debug)]
enum End {
    /// The peer closed, or the socket failed.
    Peer,
    /// We close: `QUIT`, a protocol error, a limit, `CLIENT KILL`.
    Here,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Peer
    }
}

/// Unix milliseconds.
pub(crate) fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Ends a turn of somebody who has more to do. The next one comes when all others that are ready had theirs and the sockets
/// and timers were looked at: tokio holds such a wake-up back until then. With a plain one, those who have more at hand would
/// go round among themselves many times before anybody looks for those whose bytes have just come.
fn end_turn(cx: &mut Context<'_>) {
    if pin!(tokio::task::yield_now()).poll(cx).is_ready() {
        cx.waker().wake_by_ref();
    }
}

/// Serves a connection until it ends.
pub(crate) async fn serve(stream: Stream, session: Session, desk: Rc<RefCell<Desk>>) {
    let mut connection = Connection {
        stream,
        session,
        parser: RequestParser::new(),
        input: Vec::new(),
        done: 0,
        is_cut: false,
        big: None,
        owned: Vec::new(),
        output: None,
        awaited: 0,
        waiting: None,
        over_soft_limit_since_ms: None,
        waker: None,
        is_unflushed: false,
        quiet: None,
    };
    // The desk is borrowed within one poll only: nothing that holds it awaits.
    poll_fn(|cx| connection.poll(cx, &mut desk.borrow_mut())).await;
    let desk = &mut *desk.borrow_mut();
    connection.leave(&mut desk.local);
}

impl Connection {
    fn poll(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Poll<()> {
        let turn = self.poll_turn(cx, desk);
        desk.local.shared.stats.worker(desk.local.worker).absorb(&mut desk.local.changes);
        match turn {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) | Err(End::Peer) => Poll::Ready(()),
            Err(End::Here) => self.poll_close(cx, &mut desk.local),
        }
    }

    /// Undoes what the connection left with others.
    fn leave(&mut self, local: &mut Local) {
        let now_ms = unix_ms();
        match self.waiting.take().map(|waiting| *waiting) {
            Some(Waiting::Blocked { waiter, .. }) => {
                waiter.end();
                blocking::forget(local, &waiter, now_ms);
            }
            Some(Waiting::Parked { parking, .. }) => parking.forget(self.session.client.id),
            Some(Waiting::Paused { .. } | Waiting::Crowded { .. }) | None => {}
        }
        farewell::session_end(local, &mut self.session, now_ms);
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Result<Poll<()>, End> {
        desk.local.refresh();
        desk.local.forget_position();
        desk.local.spent = Duration::ZERO;
        let ending = self.session.client.ending();
        if ending != Ending::No {
            self.begin_to_leave(ending)?;
        }
        if self.session.is_closing && self.is_sent() {
            return Err(End::Here);
        }
        self.take_outbox();
        self.poll_output(cx, &mut desk.local)?;
        self.enforce_output_limit(&desk.local)?;
        if self.session.is_closing {
            return Err(End::Here);
        }
        if self.holds_much(&desk.local) {
            self.register(cx, ending);
            return Ok(Poll::Pending);
        }
        let goes_on = self.is_cut;
        self.poll_waiting(cx, desk)?;
        if goes_on {
            // What was left of the last turn is a turn: with a read besides, it would be one of twice the size.
            end_turn(cx);
            return Ok(Poll::Pending);
        }
        let before = self.session.client.bytes_in.load(Ordering::Relaxed);
        for _ in 0..READS_PER_TURN {
            let taken = self.session.client.bytes_in.load(Ordering::Relaxed) - before;
            if self.is_cut || taken >= TURN_BYTES as u64 {
                break;
            }
            match self.poll_read(cx, desk)? {
                Poll::Ready(()) => {}
                Poll::Pending => {
                    if ending != Ending::No {
                        self.leave_if_done(cx)?;
                    }
                    self.register(cx, ending);
                    return Ok(Poll::Pending);
                }
            }
        }
        end_turn(cx);
        Ok(Poll::Pending)
    }

    /// Sees to being woken by pushes, and by an end that is nearer than the one that is known of.
    fn register(&mut self, cx: &Context<'_>, ending: Ending) {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
            self.session.client.register(cx.waker());
        }
        // What was pushed before the waker was there woke nobody.
        if self.session.client.has_mail() || self.session.client.ending() != ending {
            cx.waker().wake_by_ref();
        }
    }

    fn is_sent(&self) -> bool {
        self.output.as_ref().is_none_or(|output| output.is_empty())
    }

    /// Puts what others pushed behind what is to be sent.
    fn take_outbox(&mut self) {
        if self.session.client.has_mail() {
            let pushed = self.session.client.take_outbox();
            let output = self.output.get_or_insert_default();
            pushed.into_iter().for_each(|bytes| output.push(bytes, 0));
        }
    }

    fn poll_output(&mut self, cx: &mut Context<'_>, local: &mut Local) -> Result<(), End> {
        if let Some(output) = &mut self.output {
            let before = output.bytes();
            let sent = output.poll_send(cx, &mut self.stream, &local.shared.persistence.gate)?;
            let bytes = before - output.bytes();
            if bytes > 0 {
                self.is_unflushed = self.stream.buffers();
                self.session.client.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            match sent {
                Sent::All => {
                    self.output = None;
                    self.session.client.reply_bytes.store(0, Ordering::Release);
                    if let Some(feed) = &self.session.feed {
                        feed.wake();
                    }
                }
                Sent::Full => {}
                Sent::Held(position) => self.wait_for_log(cx, local, position),
            }
        }
        if self.is_unflushed {
            self.is_unflushed = Pin::new(&mut self.stream).poll_flush(cx)?.is_pending();
        }
        Ok(())
    }

    // ---- reading --------------------------------------------------------------------------------------------------

    /// Reads once and executes what is complete. `Pending` when the socket has nothing more now.
    fn poll_read(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Result<Poll<()>, End> {
        if self.big.is_some() {
            return self.poll_read_big(cx, desk);
        }
        let mut scratch = std::mem::take(&mut desk.scratch);
        let mut buffer = ReadBuf::new(&mut scratch);
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
        let read = buffer.filled().len();
        let result = match polled {
            Poll::Pending => Ok(Poll::Pending),
            Poll::Ready(Err(error)) => Err(error.into()),
            Poll::Ready(Ok(())) if read == 0 => Err(End::Peer),
            Poll::Ready(Ok(())) => self.received(cx, desk, &scratch[..read]).map(Poll::Ready),
        };
        desk.scratch = scratch;
        result
    }

    fn received(&mut self, cx: &mut Context<'_>, desk: &mut Desk, bytes: &[u8]) -> Result<(), End> {
        self.session.client.bytes_in.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        // A reply stands behind what was pushed before its command was read.
        self.take_outbox();
        desk.local.shared.stats.worker(desk.local.worker).received(bytes.len());
        if self.waiting.is_some() {
            self.input.extend_from_slice(bytes);
            return self.enforce_input_limit(desk);
        }
        if self.input.is_empty() {
            let rest = self.execute(cx, desk, bytes)?;
            self.input = bytes[rest].to_vec();
        } else {
            self.input.extend_from_slice(bytes);
            self.execute_kept(cx, desk)?;
        }
        self.enforce_input_limit(desk)?;
        self.send_replies(cx, desk)
    }

    // ---- executing ------------------------------------------------------------------------------------------------

    fn limits(&self, local: &Local) -> RequestLimits {
        RequestLimits {
            bulk_bytes_max: local.config.proto_max_bulk_len,
            unauthenticated: (!self.session.is_authenticated).then(UnauthenticatedLimits::default),
            ..RequestLimits::default()
        }
    }

    /// Executes complete commands of what is kept, as many as the turn allows.
    fn execute_kept(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Result<(), End> {
        let mut input = std::mem::take(&mut self.input);
        let done = std::mem::take(&mut self.done);
        let rest = self.execute(cx, desk, &input[done..])?;
        input.truncate(done + rest.end);
        let done = done + rest.start;
        if done * 2 < input.len() {
            (self.input, self.done) = (input, done);
        } else {
            // Moves no more than what was executed since the last time, and gives memory back.
            self.input = input[done..].to_vec();
        }
        Ok(())
    }

    /// Executes complete commands of `data`, which begins with a command, as many as the turn allows. Returns which part of
    /// it is left.
    fn execute(&mut self, cx: &mut Context<'_>, desk: &mut Desk, data: &[u8]) -> Result<Range<usize>, End> {
        desk.out.proto = self.session.proto;
        let now_ms = unix_ms();
        self.session.client.last_ms.store(now_ms, Ordering::Relaxed);
        let mut ranges = std::mem::take(&mut desk.args);
        let (mut at, mut end) = (0, data.len());
        self.is_cut = false;
        while self.waiting.is_none() && !self.session.is_closing {
            if at < end && (at >= TURN_BYTES || desk.local.spent >= TURN_TIME) {
                self.is_cut = true;
                break;
            }
            match self.execute_run(cx, desk, data, at, &mut ranges, now_ms) {
                Ok(Step::More(next)) => {
                    at = next;
                    if desk.out.len_bytes() >= REPLIES_PER_SEND_BYTES {
                        // A long pipeline must not pile up replies beyond the client's output limit.
                        self.send_replies(cx, desk)?;
                        desk.out.proto = self.session.proto;
                    }
                }
                Ok(Step::Rest { from, to }) => {
                    (at, end) = (from, to);
                    break;
                }
                Err(error) => {
                    self.refuse(desk, &error);
                    at = end;
                }
            }
        }
        desk.args = ranges;
        Ok(at..end)
    }

    /// Parses and executes commands from `at` on: a run of simple ones, or one that is not. Nothing behind a command that is
    /// not simple is parsed before it was executed: it may have to be left for later.
    fn execute_run(
        &mut self,
        cx: &mut Context<'_>,
        desk: &mut Desk,
        data: &[u8],
        mut at: usize,
        ranges: &mut Vec<ArgRange>,
        now_ms: u64,
    ) -> Result<Step, RequestError> {
        let limits = self.limits(&desk.local);
        let may_run =
            batch::allowed(&desk.local, &self.session, data.len() - at, now_ms) && self.owned.is_empty();
        let mut commands = SmallVec::<[(Parsed, &'static Command, &'static Row); RUN_MAX]>::new();
        ranges.clear();
        let mut failed = Ok(());
        let mut step = None;
        let mut last = None;
        while commands.len() < RUN_MAX {
            let from = ranges.len();
            match self.parser.parse(&data[at..], &limits, ranges) {
                Ok(Progress::Complete { consumed }) => {
                    let parsed = Parsed { start: at, end: at + consumed, from, to: ranges.len() };
                    at += consumed;
                    match simple_row(parsed.args(data, ranges, &[])) {
                        Some((command, row)) if may_run => commands.push((parsed, command, row)),
                        _ => {
                            last = Some(parsed);
                            break;
                        }
                    }
                }
                Ok(Progress::Inline { consumed, owned }) => {
                    self.owned = owned.into_iter().map(Arc::new).collect();
                    last = Some(Parsed { start: at, end: at + consumed, from, to: ranges.len() });
                    at += consumed;
                    break;
                }
                Ok(Progress::Empty { consumed }) => at += consumed,
                Ok(Progress::Incomplete) => {
                    step = Some(Step::Rest { from: at, to: data.len() });
                    break;
                }
                Ok(Progress::Big { start, len }) => {
                    let block = data[at + start..].to_vec();
                    self.big = Some(Box::new(Big { block, len }));
                    step = Some(Step::Rest { from: at, to: at + start });
                    break;
                }
                Err(error) => {
                    failed = Err(error);
                    break;
                }
            }
        }
        if let Some(held) = self.execute_simple(desk, data, &commands, ranges, now_ms) {
            return Ok(self.step_back(cx, desk, held.args(data, ranges, &[]), held.end, now_ms));
        }
        failed?;
        if let Some(parsed) = last {
            let owned = std::mem::take(&mut self.owned);
            self.execute_one(cx, desk, parsed.args(data, ranges, &owned), now_ms);
        }
        Ok(step.unwrap_or(Step::More(at)))
    }

    /// Executes a run of simple commands, or the beginning of it: then the first of the others is returned, which cannot run now.
    fn execute_simple(
        &mut self,
        desk: &mut Desk,
        data: &[u8],
        commands: &[(Parsed, &'static Command, &'static Row)],
        ranges: &[ArgRange],
        now_ms: u64,
    ) -> Option<Parsed> {
        let simple = |&(parsed, command, row): &(Parsed, _, _)| Simple {
            command,
            row,
            args: parsed.args(data, ranges, &[]),
        };
        let run: SmallVec<[Simple<'_>; RUN_MAX]> = commands.iter().map(simple).collect();
        let mut from = 0;
        while from < run.len() {
            let ran = batch::execute(&mut desk.local, &mut self.session, &run[from..], &mut desk.out, now_ms);
            from += ran.count;
            if ran.is_held_back {
                return Some(commands[from].0);
            }
        }
        None
    }

    /// Executes a command of a run by itself, which makes it wait; what was parsed behind it, from `end` on, is parsed again then.
    fn step_back(
        &mut self,
        cx: &mut Context<'_>,
        desk: &mut Desk,
        args: Args<'_>,
        end: usize,
        now_ms: u64,
    ) -> Step {
        self.parser = RequestParser::new();
        self.big = None;
        self.owned.clear();
        self.execute_one(cx, desk, args, now_ms);
        Step::More(end)
    }

    /// Executes a command that is not simple.
    fn execute_one(&mut self, cx: &mut Context<'_>, desk: &mut Desk, args: Args<'_>, now_ms: u64) {
        match execute::run(&mut desk.local, &mut self.session, args, &mut desk.out, now_ms) {
            Flow::Next | Flow::Close => {}
            Flow::Blocked(waiter) => self.block(cx, waiter),
            Flow::Paused => self.pause(cx, &desk.local, OwnedArgs::copy(args)),
            Flow::Crowded => self.wait_for_turn(cx, &desk.local, OwnedArgs::copy(args)),
            Flow::Parked(parking) => self.park(cx, parking, OwnedArgs::copy(args)),
        }
    }

    /// Answers with a protocol error and closes.
    fn refuse(&mut self, desk: &mut Desk, error: &RequestError) {
        desk.local.shared.stats.error_reply("ERR");
        desk.out.proto = self.session.proto;
        let mut text = b"ERR ".to_vec();
        text.extend_from_slice(&error.to_bytes());
        desk.out.error_bytes(&text);
        self.session.is_closing = true;
    }

    /// Writes the replies of this turn; what the socket does not take is kept.
    fn send_replies(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Result<(), End> {
        let position = desk.local.take_position();
        let out = &mut desk.out;
        if !out.is_empty() {
            let bytes = out.len_bytes();
            desk.local.shared.stats.worker(desk.local.worker).sent(bytes);
            let is_held = desk.local.shared.persistence.gate.holds(position);
            if self.output.is_none() && !out.has_shared() && !is_held {
                self.is_unflushed = self.stream.buffers();
                let mut sent = 0;
                while sent < bytes {
                    match Pin::new(&mut self.stream).poll_write(cx, &out.buf()[sent..]) {
                        Poll::Ready(Ok(n)) if n > 0 => sent += n,
                        Poll::Ready(_) => {
                            out.clear();
                            return Err(End::Peer);
                        }
                        Poll::Pending => break,
                    }
                }
                self.session.client.bytes_out.fetch_add(sent as u64, Ordering::Relaxed);
                if sent == bytes {
                    out.clear();
                } else {
                    self.output.get_or_insert_default().push_writer(out, sent, position);
                }
            } else {
                self.output.get_or_insert_default().push_writer(out, 0, position);
            }
            if out.buf().is_empty() && out.buf_mut().capacity() > REPLY_BUFFER_KEPT_BYTES {
                *out.buf_mut() = Vec::new();
            }
        }
        self.take_outbox();
        self.poll_output(cx, &mut desk.local)?;
        self.enforce_output_limit(&desk.local)?;
        if self.session.is_closing { Err(End::Here) } else { Ok(()) }
    }
}

/// Bytes for a client that is refused before it becomes one.
pub(crate) fn refusal(text: &str) -> Bytes {
    Bytes::from(format!("-{text}\r\n"))
}
