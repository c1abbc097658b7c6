//! The checks of a server.
//!
//! Owns what is sent and what has to come back. Does not own how an event is made to happen ([`super::inject`]).

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use towline_resp::frame::Frame;

use super::inject::Inject;
use super::moving;
use super::verdict::{Outcome, Verdicts};
use super::wire::{Wire, all, shown, text};

/// How long a frame may be under way.
pub(super) const FRAME_MAX: Duration = Duration::from_secs(2);

/// How long it takes to believe that nothing comes.
pub(super) const SILENCE: Duration = Duration::from_millis(300);

/// The endpoint types.
const TYPES: [&str; 5] = ["internal-ip", "internal-fqdn", "external-ip", "external-fqdn", "none"];

/// What a server is that is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Support {
    /// It has notifications; the verdicts say how well.
    Checked,
    /// It answered the opt-in with this error.
    None(String),
}

/// Runs all checks.
///
/// # Errors
/// The server cannot be reached, or has no RESP3.
pub(super) fn check(target: SocketAddr, inject: &Inject, verdicts: &mut Verdicts) -> Result<Support> {
    let mut wire = Wire::resp3(target).map_err(|error| anyhow!("no RESP3 server at {target}: {error}"))?;
    match opt_in(&mut wire, &["ON"])? {
        Frame::Error(error) => return Ok(Support::None(String::from_utf8_lossy(&error).into_owned())),
        reply => verdicts.note("opt-in", is_ok(&reply)),
    }
    drop(wire);
    handshake(target, verdicts)?;
    // First, for an injector's actions take turns, and a MOVING takes its whole window.
    others(target, inject, verdicts)?;
    moving::check(target, inject, verdicts)?;
    Ok(Support::Checked)
}

/// Sends `CLIENT MAINT_NOTIFICATIONS` with these words.
pub(super) fn opt_in(wire: &mut Wire, words: &[&str]) -> io::Result<Frame> {
    wire.call(&[&["CLIENT", "MAINT_NOTIFICATIONS"], words].concat())
}

fn is_ok(reply: &Frame) -> Outcome {
    let is_fine = matches!(reply, Frame::Simple(text) if text == "OK");
    Outcome::when(is_fine, || format!("answered with {}", shown(reply)))
}

/// What needs no event.
fn handshake(target: SocketAddr, verdicts: &mut Verdicts) -> io::Result<()> {
    let mut wire = Wire::resp3(target)?;
    for words in [
        &["client", "maint_notifications", "on"][..],
        &["Client", "Maint_Notifications", "oN", "Moving-Endpoint-Type", "NONE"],
    ] {
        let reply = wire.call(words)?;
        verdicts.note("opt-in-any-case", is_ok(&reply));
    }
    for kind in TYPES {
        let reply = opt_in(&mut wire, &["ON", "moving-endpoint-type", kind])?;
        verdicts.note("endpoint-types", is_ok(&reply));
    }
    let mut refused = |name, words: &[&str]| -> io::Result<()> {
        let reply = opt_in(&mut wire, words)?;
        let is_error = reply.as_error().is_some();
        verdicts
            .note(name, Outcome::when(is_error, || format!("{words:?} was answered with {}", shown(&reply))));
        let pong = wire.call(&["PING"])?;
        let is_pong = text(&pong).as_deref() == Some("PONG");
        verdicts.note(
            name,
            Outcome::when(is_pong, || format!("PING behind it was answered with {}", shown(&pong))),
        );
        Ok(())
    };
    refused("unknown-type-refused", &["ON", "moving-endpoint-type", "somewhere"])?;
    refused("auto-refused", &["ON", "moving-endpoint-type", "auto"])?;
    for words in [
        &[][..],
        &["MAYBE"],
        &["ON", "moving-endpoint-type"],
        &["ON", "another-option", "none"],
        &["OFF", "none"],
    ] {
        refused("bad-arguments-refused", words)?;
    }
    let mut off = Wire::resp3(target)?;
    opt_in(&mut off, &["ON"])?;
    let reply = opt_in(&mut off, &["OFF"])?;
    verdicts.note("off", is_ok(&reply));
    Ok(())
}

/// The shapes of the frames of other events, which only an injector can cause.
fn others(target: SocketAddr, inject: &Inject, verdicts: &mut Verdicts) -> io::Result<()> {
    for (action, frames) in [
        ("migrate", [("MIGRATING", "migrating-shape"), ("MIGRATED", "migrated-shape")]),
        ("failover", [("FAILING_OVER", "failing-over-shape"), ("FAILED_OVER", "failed-over-shape")]),
        ("slot_migrate", [("SMIGRATING", "smigrating-shape"), ("SMIGRATED", "smigrated-shape")]),
    ] {
        let mut wire = Wire::resp3(target)?;
        opt_in(&mut wire, &["ON"])?;
        if let Err(error) = inject.other(action) {
            for (_, name) in frames {
                verdicts.note(name, Outcome::NotExercised(format!("{error:#}")));
            }
            continue;
        }
        while wire.push(Instant::now() + FRAME_MAX).is_some_and(|frames| !is_closing(&frames)) {}
        for (word, name) in frames {
            let found = wire.named(word).next().map(|(_, frames)| frames.clone());
            verdicts.note(
                name,
                found.map_or_else(
                    || Outcome::Failed(format!("{action} brought no {word}")),
                    |frames| Outcome::when(has_shape(&frames), || format!("it was {}", all(&frames))),
                ),
            );
        }
    }
    Ok(())
}

fn is_closing(frames: &[Frame]) -> bool {
    let name = frames.first().and_then(text);
    matches!(name.as_deref(), Some("MIGRATED" | "FAILED_OVER" | "SMIGRATED"))
}

/// Whether a frame is exactly what the contract says of its name.
pub(super) fn has_shape(frames: &[Frame]) -> bool {
    let Some((Some(name), rest)) = frames.split_first().map(|(name, rest)| (text(name), rest)) else {
        return false;
    };
    match (name.as_str(), rest) {
        ("MOVING", [Frame::Integer(seq), Frame::Integer(time), endpoint]) => {
            *seq >= 0
                && *time >= 0
                && (endpoint.is_null() || text(endpoint).is_some_and(|text| text.contains(':')))
        }
        ("MIGRATING" | "FAILING_OVER", [Frame::Integer(seq), Frame::Integer(time), shards]) => {
            *seq >= 0 && *time >= 0 && is_shard_list(shards)
        }
        ("MIGRATED" | "FAILED_OVER", [Frame::Integer(seq), shards]) => *seq >= 0 && is_shard_list(shards),
        ("SMIGRATING", [Frame::Integer(seq), slots]) => {
            *seq >= 0 && text(slots).is_some_and(|text| is_slots(&text))
        }
        ("SMIGRATED", [Frame::Integer(seq), Frame::Array(moves)]) => {
            *seq >= 0 && !moves.is_empty() && moves.iter().all(is_move)
        }
        _ => false,
    }
}

/// One string with a JSON array of strings.
fn is_shard_list(frame: &Frame) -> bool {
    text(frame).is_some_and(|text| serde_json::from_str::<Vec<String>>(&text).is_ok())
}

/// Source, destination and slots.
fn is_move(frame: &Frame) -> bool {
    let Frame::Array(parts) = frame else { return false };
    let parts: Option<Vec<String>> = parts.iter().map(text).collect();
    let Some([source, destination, slots]) = parts.as_deref() else { return false };
    source.contains(':') && destination.contains(':') && is_slots(slots)
}

/// Slots and ranges of slots with commas in between.
fn is_slots(text: &str) -> bool {
    let number = |text: &str| text.parse::<u16>().ok().filter(|slot| *slot < 16_384);
    text.split(',').all(|part| match part.split_once('-') {
        Some((from, to)) => matches!((number(from), number(to)), (Some(from), Some(to)) if from <= to),
        None => number(part).is_some(),
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn bulk(text: &'static str) -> Frame {
        Frame::Bulk(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn shapes_are_exact() {
        let int = Frame::Integer;
        let shards = || bulk("[\"2\", \"4\"]");
        let triplet = |slots| Frame::Array(vec![bulk("a:1"), bulk("b:1"), bulk(slots)]);
        for (frames, is_fine) in [
            (vec![bulk("MOVING"), int(1), int(15), bulk("10.0.0.1:1")], true),
            (vec![bulk("MOVING"), int(1), int(15), Frame::Null], true),
            (vec![bulk("MOVING"), int(1), int(15)], false),
            (vec![bulk("MOVING"), int(1), bulk("15"), Frame::Null], false),
            (vec![bulk("MIGRATING"), int(1), int(2), shards()], true),
            (vec![bulk("MIGRATING"), int(1), int(2)], false),
            (vec![bulk("MIGRATED"), int(1), shards()], true),
            (vec![bulk("FAILED_OVER"), int(1), bulk("2")], false),
            (vec![bulk("SMIGRATING"), int(1), bulk("1,5-7")], true),
            (vec![bulk("SMIGRATING"), int(1), bulk("1"), bulk("2")], false),
            (vec![bulk("SMIGRATED"), int(1), Frame::Array(vec![triplet("1-2"), triplet("5")])], true),
            (vec![bulk("SMIGRATED"), int(1), Frame::Array(vec![triplet("2-1")])], false),
            (vec![bulk("SMIGRATED"), int(1), bulk("a:1 b:1 5")], false),
            (vec![], false),
        ] {
            assert_eq!(has_shape(&frames), is_fine, "{frames:?}");
        }
    }
}
