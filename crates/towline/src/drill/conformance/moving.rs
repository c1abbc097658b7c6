//! One MOVING, seen by connections of every kind at once, and a second one after it.
//!
//! Owns the cast and the times. Does not own how the event is made to happen.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use towline_resp::frame::Frame;

use super::inject::Inject;
use super::server::{FRAME_MAX, SILENCE, has_shape, opt_in};
use super::verdict::{Outcome, Verdicts};
use super::wire::{Came, PATIENCE, Wire, all, shown, text};

/// The window of the first event, where it can be chosen.
const WINDOW: Duration = Duration::from_secs(2);

/// The window of the second.
const SECOND_WINDOW: Duration = Duration::from_secs(1);

/// How long after its window's end a connection may live.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// How long an injector may take from the request to the frame: it pauses before it acts.
const EVENT_MAX: Duration = Duration::from_secs(10);

/// Commands of one batch of the busy connection.
const BATCH: usize = 50;

/// The longest window that is waited for.
const WINDOW_MAX: Duration = Duration::from_secs(60);

/// Everything that is checked with events.
const NAMES: &[&str] = &[
    "off",
    "last-opt-in-counts",
    "resp2-silent",
    "opt-in-only",
    "moving-shape",
    "moving-time",
    "moving-ip",
    "moving-none",
    "between-replies",
    "seq-rises",
    "once",
    "replay",
    "replay-remaining-time",
    "no-replay-after-end",
    "accepts-in-window",
    "not-closed-early",
    "closed-at-end",
    "new-ones-stay",
    "answers-before-close",
    "blocked-released",
];

/// The connections that see the event.
struct Cast {
    ip: Wire,
    none: Wire,
    again: Wire,
    off: Wire,
    quiet: Wire,
    resp2: Wire,
    blocked: Wire,
    busy: JoinHandle<Option<String>>,
    counting: JoinHandle<i64>,
}

/// Runs the checks.
///
/// # Errors
/// The server stops answering.
pub(super) fn check(target: SocketAddr, inject: &Inject, verdicts: &mut Verdicts) -> Result<()> {
    let key = format!("conformance:{}:count", std::process::id());
    let mut cast = Cast::assemble(target, &key)?;
    let chosen = match inject.moving(WINDOW) {
        Ok(chosen) => chosen,
        Err(error) => {
            for name in NAMES {
                verdicts.note(name, Outcome::NotExercised(format!("{error:#}")));
            }
            // The helpers end with their connections, when this process does.
            return Ok(());
        }
    };
    let Some(frame) = cast.ip.push(Instant::now() + EVENT_MAX) else {
        verdicts.note("moving-shape", Outcome::Failed("no MOVING came".to_owned()));
        return Ok(());
    };
    let begun = Instant::now();
    let (seq, time) = shape(&frame, chosen, verdicts);
    let window = Duration::from_secs(time).min(WINDOW_MAX);
    cast.endpoints(&frame, begun, verdicts);
    cast.silent_ones(verdicts)?;
    // In the middle of the window.
    let middle = begun + window / 2;
    let early = cast.served_until(middle);
    let mut late = late_one(target, seq, time, verdicts)?;
    let early = early && cast.served_until(begun + window.mul_f64(0.7));
    verdicts.note("not-closed-early", Outcome::when(early, || "it was closed within the window".to_owned()));
    cast.ending(target, &key, seq, begun + window, verdicts)?;
    late.pushes.clear();
    after(target, inject, seq, &mut late, verdicts)
}

/// What the frame is in itself; its number and its seconds.
fn shape(frame: &[Frame], chosen: Option<Duration>, verdicts: &mut Verdicts) -> (i64, u64) {
    verdicts.note("moving-shape", Outcome::when(has_shape(frame), || format!("it was {}", all(frame))));
    let number = |place: usize| match frame.get(place) {
        Some(Frame::Integer(number)) => *number,
        _ => 0,
    };
    let (seq, time) = (number(1), u64::try_from(number(2)).unwrap_or_default());
    let is_within = (1..=chosen.unwrap_or(WINDOW_MAX).as_secs()).contains(&time);
    verdicts.note("moving-time", Outcome::when(is_within, || format!("its time is {time}")));
    (seq, time)
}

fn is_null(frame: Option<&Vec<Frame>>) -> bool {
    frame.and_then(|frame| frame.get(3)).is_some_and(Frame::is_null)
}

impl Cast {
    fn assemble(target: SocketAddr, key: &str) -> io::Result<Self> {
        let with = |words: &[&str]| {
            let mut wire = Wire::resp3(target)?;
            opt_in(&mut wire, words)?;
            io::Result::Ok(wire)
        };
        let mut again = with(&["ON", "moving-endpoint-type", "external-ip"])?;
        opt_in(&mut again, &["ON", "moving-endpoint-type", "none"])?;
        let mut off = with(&["ON"])?;
        opt_in(&mut off, &["OFF"])?;
        let mut resp2 = Wire::open(target)?;
        // Whether this is refused is up to the server; that nothing comes of it is not.
        opt_in(&mut resp2, &["ON"])?;
        let mut blocked = with(&["ON"])?;
        blocked.send(&["BLPOP", &format!("{key}:list"), "0"])?;
        let (busy, counting, counted) = (with(&["ON"])?, with(&["ON"])?, key.to_owned());
        counting_reset(target, key)?;
        Ok(Self {
            ip: with(&["ON", "moving-endpoint-type", "external-ip"])?,
            none: with(&["ON", "moving-endpoint-type", "none"])?,
            again,
            off,
            quiet: Wire::resp3(target)?,
            resp2,
            blocked,
            busy: std::thread::spawn(move || echo(busy)),
            counting: std::thread::spawn(move || count(counting, &counted)),
        })
    }

    /// The form of the endpoint for each that asked for one.
    fn endpoints(&mut self, frame: &[Frame], begun: Instant, verdicts: &mut Verdicts) {
        let host = frame.get(3).and_then(text).and_then(|endpoint| {
            let (host, port) = endpoint.rsplit_once(':')?;
            port.parse::<u16>().ok().map(|_| host.trim_matches(['[', ']']).to_owned())
        });
        verdicts.note(
            "moving-ip",
            match host {
                Some(host) if host.parse::<IpAddr>().is_ok() => Outcome::Passed,
                Some(host) => {
                    Outcome::NotExercised(format!("the server named {host}: it may know no address"))
                }
                None => Outcome::Failed(format!("it was {}", all(frame))),
            },
        );
        for (name, wire) in [("moving-none", &mut self.none), ("last-opt-in-counts", &mut self.again)] {
            let frame = wire.push(begun + FRAME_MAX);
            verdicts.note(
                name,
                Outcome::when(is_null(frame.as_ref()), || {
                    frame.map_or_else(
                        || "no MOVING came".to_owned(),
                        |frame| format!("it was {}", all(&frame)),
                    )
                }),
            );
        }
    }

    /// Those that must not hear of it.
    fn silent_ones(&mut self, verdicts: &mut Verdicts) -> io::Result<()> {
        for (name, wire) in
            [("off", &mut self.off), ("opt-in-only", &mut self.quiet), ("resp2-silent", &mut self.resp2)]
        {
            let pong = wire.call(&["PING"])?;
            let is_pong = text(&pong).as_deref() == Some("PONG");
            let extra = match wire.next(Instant::now() + SILENCE) {
                Came::Push(frames) => Some(all(&frames)),
                Came::Reply(frame) => Some(shown(&frame)),
                Came::End | Came::Silence => None,
            };
            let is_silent = is_pong && extra.is_none() && wire.pushes.is_empty();
            verdicts.note(
                name,
                Outcome::when(is_silent, || {
                    format!(
                        "PING was answered with {}, then came {}",
                        shown(&pong),
                        extra.unwrap_or_default()
                    )
                }),
            );
        }
        Ok(())
    }

    /// Whether a told connection is served until then.
    fn served_until(&mut self, until: Instant) -> bool {
        loop {
            if self.ip.call(&["PING"]).is_err() {
                return false;
            }
            if Instant::now() >= until {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// From the window's end to the last close.
    fn ending(
        mut self,
        target: SocketAddr,
        key: &str,
        seq: i64,
        end: Instant,
        verdicts: &mut Verdicts,
    ) -> io::Result<()> {
        let until = end + CLOSED_WITHIN;
        let (replies, _) = self.blocked.until_end(until);
        let is_released = matches!(replies.as_slice(), [reply] if reply.is_null());
        verdicts.note(
            "blocked-released",
            Outcome::when(is_released, || match replies.as_slice() {
                [] => "it was closed without a reply".to_owned(),
                replies => format!("BLPOP was answered with {}", all(replies)),
            }),
        );
        for wire in [&mut self.ip, &mut self.none, &mut self.quiet] {
            let (_, closed) = wire.until_end(until);
            verdicts
                .note("closed-at-end", Outcome::when(closed.is_some(), || "it was still open".to_owned()));
        }
        let times =
            self.ip.named("MOVING").filter(|(_, frames)| frames.get(1) == Some(&Frame::Integer(seq))).count();
        verdicts.note("once", Outcome::when(times == 1, || format!("it came {times} times")));
        // A thread that panicked has said so; its check fails with it.
        let torn = self.busy.join().unwrap_or_else(|_| Some("the check itself failed".to_owned()));
        verdicts.note("between-replies", torn.map_or(Outcome::Passed, Outcome::Failed));
        let acked = self.counting.join().unwrap_or(-1);
        let mut wire = Wire::resp3(target)?;
        let held = wire.call(&["GET", key])?;
        let held = text(&held).and_then(|text| text.parse().ok()).unwrap_or(0);
        wire.call(&["DEL", key])?;
        verdicts.note(
            "answers-before-close",
            Outcome::when(held == acked, || format!("{held} commands were executed and {acked} answered")),
        );
        Ok(())
    }
}

/// The counter begins at nothing.
fn counting_reset(target: SocketAddr, key: &str) -> io::Result<()> {
    Wire::resp3(target)?.call(&["DEL", key]).map(drop)
}

/// Sends batches until the connection ends; what was wrong with a reply, if any was.
fn echo(mut wire: Wire) -> Option<String> {
    for round in 0.. {
        let word = |number: usize| format!("{round}-{number}");
        for number in 0..BATCH {
            if wire.send(&["ECHO", &word(number)]).is_err() {
                return None;
            }
        }
        for number in 0..BATCH {
            match wire.reply() {
                Ok(frame) if text(&frame) == Some(word(number)) => {}
                Ok(frame) => {
                    return Some(format!("ECHO {} was answered with {}", word(number), shown(&frame)));
                }
                Err(_) => return None,
            }
        }
    }
    None
}

/// Increments until the connection ends; how often that was answered.
fn count(mut wire: Wire, key: &str) -> i64 {
    let mut acked = 0;
    while wire.call(&["INCR", key]).is_ok() {
        acked += 1;
    }
    acked
}

/// A connection that opts in in the middle of the window.
fn late_one(target: SocketAddr, seq: i64, time: u64, verdicts: &mut Verdicts) -> io::Result<Wire> {
    let mut late = Wire::resp3(target)?;
    late.send(&["CLIENT", "MAINT_NOTIFICATIONS", "ON"])?;
    let first = late.next(Instant::now() + PATIENCE);
    let is_first = matches!(&first, Came::Reply(Frame::Simple(text)) if text == "OK");
    let frame = late.push(Instant::now() + FRAME_MAX);
    let replayed = frame.as_ref().and_then(|frame| match (frame.get(1), frame.get(2)) {
        (Some(Frame::Integer(seq)), Some(Frame::Integer(left))) => {
            Some((*seq, u64::try_from(*left).unwrap_or(0)))
        }
        _ => None,
    });
    let is_same = is_first && replayed.is_some_and(|(number, _)| number == seq);
    verdicts.note("replay", Outcome::when(is_same, || format!("first came {first:?}, then {frame:?}")));
    // Half of it is over: with whole seconds rounded up, a window of two has one left.
    let most = time.div_ceil(2);
    let is_left = replayed.is_some_and(|(_, left)| (1..=most).contains(&left));
    verdicts
        .note("replay-remaining-time", Outcome::when(is_left, || format!("{frame:?} at half of {time} s")));
    let pong = late.call(&["PING"])?;
    let is_pong = text(&pong).as_deref() == Some("PONG");
    verdicts.note(
        "accepts-in-window",
        Outcome::when(is_pong, || format!("PING was answered with {}", shown(&pong))),
    );
    Ok(late)
}

/// Once the window is over.
fn after(
    target: SocketAddr,
    inject: &Inject,
    seq: i64,
    late: &mut Wire,
    verdicts: &mut Verdicts,
) -> Result<()> {
    let is_there = late.call(&["PING"]).is_ok();
    verdicts.note("new-ones-stay", Outcome::when(is_there, || "it was closed with the old ones".to_owned()));
    let mut fresh = Wire::resp3(target)?;
    opt_in(&mut fresh, &["ON"])?;
    let stale = fresh.push(Instant::now() + SILENCE);
    verdicts.note("no-replay-after-end", Outcome::when(stale.is_none(), || format!("{stale:?} came")));
    if let Err(error) = inject.moving(SECOND_WINDOW) {
        verdicts.note("seq-rises", Outcome::NotExercised(format!("{error:#}")));
        return Ok(());
    }
    let next = fresh.push(Instant::now() + EVENT_MAX);
    let rises =
        matches!(next.as_ref().and_then(|frame| frame.get(1)), Some(Frame::Integer(next)) if *next > seq);
    verdicts.note("seq-rises", Outcome::when(rises, || format!("{next:?} came after number {seq}")));
    Ok(())
}
