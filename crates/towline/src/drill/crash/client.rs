//! One client of the load: a connection, its pipelines, and every answer noted in its ledger.
//!
//! Owns the connection and the comparison of each answer with what it must be. Does not own which commands are sent, see
//! [`mix`](super::mix), nor the verdict, see [`ledger`](super::ledger).

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use towline_resp::frame::{Decoder, Frame, encode_command};

use super::ledger::{Kind, Ledger, Problem};
use super::mix::Mix;
use super::op::Op;
use super::state::{Expect, Outcome};

/// A server that is silent for so long does not serve.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes read at once.
const READ_BYTES: usize = 16 * 1024;

/// The clocks of a run: the wall's, by which keys expire, and the time since the run began, which nobody sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    /// Begins now.
    pub(super) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(super) fn at(self) -> Duration {
        self.start.elapsed()
    }

    /// Milliseconds since 1970.
    pub(super) fn wall_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A connection that speaks RESP2.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    buffer: BytesMut,
    decoder: Decoder,
}

impl Wire {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: BytesMut::new(), decoder: Decoder::default() })
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next answer.
    ///
    /// # Errors
    /// The connection has ended, the bytes are no RESP, or nothing came within [`PATIENCE`].
    pub(super) fn receive(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.buffer).map_err(io::Error::other)? {
                return Ok(frame);
            }
            let mut bytes = [0; READ_BYTES];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// As those of sending and receiving.
    pub(super) fn call<A: AsRef<[u8]>>(&mut self, words: &[A]) -> io::Result<Frame> {
        let mut bytes = Vec::new();
        encode_command(words, &mut bytes);
        self.send(&bytes)?;
        self.receive()
    }

    /// Sends commands together and waits for all their answers.
    ///
    /// # Errors
    /// As those of sending and receiving.
    pub(super) fn pipeline(&mut self, commands: &[Vec<&str>]) -> io::Result<Vec<Frame>> {
        let mut bytes = Vec::new();
        commands.iter().for_each(|words| encode_command(words, &mut bytes));
        self.send(&bytes)?;
        commands.iter().map(|_| self.receive()).collect()
    }
}

/// An answer that is awaited.
enum Awaited {
    /// That of a SELECT between commands.
    Select,
    /// The `+OK` of MULTI, and the `+QUEUED`s.
    Inside,
    /// That of a command in the ledger.
    Step,
}

/// One client at work.
pub(super) struct Client<'a> {
    pub(super) number: usize,
    pub(super) ledger: &'a mut Ledger,
    pub(super) mix: Mix,
    pub(super) clock: Clock,
    pub(super) depth: u64,
    /// The number of the next element to pop.
    pub(super) next_pop: u64,
    /// Whether the server was killed: what fails then, fails for that.
    pub(super) is_killed: &'a AtomicBool,
}

impl Client<'_> {
    /// Sends pipelines until the connection ends. Returns what was wrong with answers.
    pub(super) fn drive(&mut self, address: SocketAddr) -> Vec<Problem> {
        let mut problems = Vec::new();
        let ended = Wire::open(address).and_then(|mut wire| {
            let mut db = 0;
            while problems.is_empty() {
                self.round(&mut wire, &mut db, &mut problems)?;
            }
            // The rest of this run would only repeat it.
            Ok(())
        });
        if let Err(error) = ended
            && !self.is_killed.load(Ordering::Acquire)
        {
            let next = self.ledger.next().map_or_else(|| "no command".to_owned(), ToString::to_string);
            let text =
                format!("client {}: the connection failed before the kill: {error}; at {next}", self.number);
            problems.push(Problem { kind: Kind::WrongAnswer, text });
        }
        problems
    }

    /// One pipeline and its answers.
    fn round(&mut self, wire: &mut Wire, db: &mut u8, problems: &mut Vec<Problem>) -> io::Result<()> {
        let now_ms = Clock::wall_ms();
        let ops = self.mix.batch(self.ledger.known(), now_ms, self.depth);
        let (mut bytes, mut awaited) = (Vec::new(), Vec::new());
        for op in ops {
            if op.db() != *db {
                *db = op.db();
                encode_command(&["SELECT".to_owned(), db.to_string()], &mut bytes);
                awaited.push(Awaited::Select);
            }
            let commands = op.commands();
            awaited.extend(commands.iter().skip(1).map(|_| Awaited::Inside));
            awaited.push(Awaited::Step);
            commands.iter().for_each(|words| encode_command(words, &mut bytes));
            self.ledger.send(op, now_ms);
        }
        // Even of what could not be sent as a whole, the first commands may have answers.
        let sent = wire.send(&bytes);
        for awaited in awaited {
            let frame = wire.receive()?;
            match awaited {
                Awaited::Step => self.answer(&frame, problems),
                Awaited::Select | Awaited::Inside => {
                    if let Some(text) = frame.as_error() {
                        let text = format!("client {}: {}", self.number, String::from_utf8_lossy(text));
                        problems.push(Problem { kind: Kind::WrongAnswer, text });
                    }
                }
            }
        }
        sent
    }

    /// Notes an answer and compares it with what it must be.
    fn answer(&mut self, frame: &Frame, problems: &mut Vec<Problem>) {
        let Some(op) = self.ledger.next().cloned() else { return };
        let outcome = outcome(&op, frame);
        let popped = match outcome {
            Outcome::Popped(Some(number)) => Some(number),
            _ => None,
        };
        let expect = self.ledger.answer(outcome, Clock::wall_ms(), self.clock.at());
        let is_in_turn = popped.is_none_or(|number| number == self.next_pop);
        self.next_pop = popped.map_or(self.next_pop, |number| number + 1);
        if !is_in_turn || !fits(&expect, frame) {
            let expect = if is_in_turn { format!("{expect:?}") } else { "the next number".to_owned() };
            let text = format!("client {}: {op} was answered {frame:?}, not {expect}", self.number);
            problems.push(Problem { kind: Kind::WrongAnswer, text: short(text) });
        }
    }
}

/// Answers with a thousand members are no use to anybody.
fn short(mut text: String) -> String {
    const SHORT: usize = 400;
    if let Some((end, _)) = text.char_indices().nth(SHORT) {
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

/// What an answer says of its command, beyond that it ran.
fn outcome(op: &Op, frame: &Frame) -> Outcome {
    if frame.as_error().is_some() {
        return Outcome::Refused;
    }
    match (op, frame) {
        (Op::SPop { .. }, Frame::Array(frames)) => {
            Outcome::Chosen(frames.iter().filter_map(bulk).cloned().collect())
        }
        (Op::Learn { .. }, Frame::Integer(until)) => Outcome::Deadline(u64::try_from(*until).ok()),
        (Op::Pop { .. }, Frame::Array(frames)) => {
            let number = frames.get(1).and_then(bulk);
            Outcome::Popped(number.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()))
        }
        (Op::Pop { .. }, _) => Outcome::Popped(None),
        // Not done after all, as after a failed WATCH; there is none here.
        (Op::Multi(_), frame) if frame.is_null() => Outcome::Refused,
        _ => Outcome::Done,
    }
}

fn bulk(frame: &Frame) -> Option<&Bytes> {
    match frame {
        Frame::Bulk(text) => Some(text),
        _ => None,
    }
}

/// Whether an answer is what it must be.
fn fits(expect: &Expect, frame: &Frame) -> bool {
    match (expect, frame) {
        (_, frame) if frame.as_error().is_some() => false,
        (Expect::Any, _) => true,
        (Expect::Ok, Frame::Simple(text)) => text.as_ref() == b"OK",
        (Expect::Integer(expected), Frame::Integer(found)) => expected == found,
        (Expect::Integers(expected), Frame::Array(found)) => {
            found.iter().eq(expected.iter().map(|number| Frame::Integer(*number)).collect::<Vec<_>>().iter())
        }
        (Expect::Text(Some(expected)), Frame::Bulk(found)) => expected == found,
        (Expect::Text(None), frame) => frame.is_null(),
        (Expect::Texts(expected), Frame::Array(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(a, b)| Some(a) == bulk(b))
        }
        // LPOP of a list that is not there.
        (Expect::Texts(expected), frame) => expected.is_empty() && frame.is_null(),
        (Expect::Members(count, of), Frame::Array(found)) => {
            found.len() == *count
                && found.iter().all(|frame| bulk(frame).is_some_and(|text| of.contains(text)))
        }
        (Expect::All(expected), Frame::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expect, frame)| fits(expect, frame))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Place;
    use super::*;

    fn bulk(text: &'static str) -> Frame {
        Frame::Bulk(text.into())
    }

    #[test]
    fn answers_are_compared_with_what_they_must_be() {
        let pair = || Frame::Array(vec![bulk("a"), bulk("b")]);
        let texts = |texts: &[&'static str]| texts.iter().map(|text| Bytes::from(*text)).collect::<Vec<_>>();
        for (expect, frame, is_right) in [
            (Expect::Any, Frame::Integer(3), true),
            (Expect::Any, Frame::Error("MISCONF no disk".into()), false),
            (Expect::Ok, Frame::Simple("OK".into()), true),
            (Expect::Integer(2), Frame::Integer(3), false),
            (Expect::Integers(vec![1]), Frame::Array(vec![Frame::Integer(1)]), true),
            (Expect::Integers(vec![1]), Frame::Array(vec![Frame::Integer(-2)]), false),
            (Expect::Texts(texts(&["a", "b"])), pair(), true),
            (Expect::Texts(texts(&["b", "a"])), pair(), false),
            (Expect::Texts(Vec::new()), Frame::Null, true),
            (Expect::Members(2, texts(&["a", "b", "c"]).into_iter().collect()), pair(), true),
            (Expect::Members(2, texts(&["a", "c"]).into_iter().collect()), pair(), false),
            (Expect::All(vec![Expect::Any, Expect::Any]), pair(), true),
            (Expect::All(vec![Expect::Any]), pair(), false),
        ] {
            assert_eq!(fits(&expect, &frame), is_right, "{expect:?} {frame:?}");
        }
    }

    #[test]
    fn answers_tell_what_the_server_chose() {
        let at = Place::new(0, "k");
        let members = Frame::Array(vec![bulk("q0"), bulk("7")]);
        for (op, frame, expected) in [
            (Op::Pop { queue: at.clone() }, members.clone(), Outcome::Popped(Some(7))),
            (Op::Pop { queue: at.clone() }, Frame::NullArray, Outcome::Popped(None)),
            (Op::SPop { at: at.clone(), count: 2 }, members, Outcome::Chosen(vec!["q0".into(), "7".into()])),
            (Op::Learn { at: at.clone() }, Frame::Integer(9), Outcome::Deadline(Some(9))),
            (Op::Learn { at: at.clone() }, Frame::Integer(-2), Outcome::Deadline(None)),
            (Op::Persist { at }, Frame::Error("MISCONF".into()), Outcome::Refused),
        ] {
            assert_eq!(outcome(&op, &frame), expected, "{op}");
        }
    }
}
