//! **Reply id = request id.** The reply that a caller gets is the one that the server gave to this very command: what
//! it had to answer follows from the ledger, command by command.

use std::collections::BTreeMap;

use bytes::Bytes;
use towline_client_proto::Reply;
use towline_faults::model::Entry;
use towline_resp::frame::Frame;

use super::{Violation, promise};
use crate::command::{Ending, Kind};
use crate::world::World;

pub(crate) fn check(world: &World) -> Result<(), Violation> {
    let expected = expected(world);
    let none = Vec::new();
    for (id, record) in &world.records {
        let Some(Ending::Acknowledged(reply)) = &record.ending else { continue };
        let candidates = expected.get(id).unwrap_or(&none);
        let is_right = candidates.iter().any(|(connection, frames)| {
            record.answered_on.is_none_or(|on| on == *connection)
                && match reply {
                    Reply::One(frame) => frames.first() == Some(frame),
                    Reply::Many(all) => {
                        let inner = Frame::Array(frames.clone());
                        record.command.kind == Kind::Transaction && all.last() == Some(&inner)
                    }
                }
        });
        promise!(
            is_right,
            "identity",
            "{id} ({:?}) was answered {reply:?} by connection {:?}; the server answered {candidates:?}",
            record.command.kind,
            record.answered_on
        );
    }
    Ok(())
}

/// What the server had to answer: for each id, each execution's connection and frames (one for each command with
/// that id: a transaction has two).
fn expected(world: &World) -> BTreeMap<u64, Vec<(u64, Vec<Frame>)>> {
    let mut shadow = Shadow::default();
    let mut expected: BTreeMap<u64, Vec<(u64, Vec<Frame>)>> = BTreeMap::new();
    let mut server = 0;
    let mut unit = None;
    for entry in world.model.ledger().entries() {
        if (server + 1..=entry.generation).any(|generation| world.has_lost_data(generation)) {
            shadow = Shadow::default();
        }
        server = entry.generation;
        let Some(id) = entry.id else { continue };
        let Some(frame) = shadow.execute(entry) else { continue };
        let executions = expected.entry(id).or_default();
        let is_same_unit = entry.transaction.is_some() && unit == entry.transaction;
        unit = entry.transaction;
        match executions.last_mut() {
            Some((_, frames)) if is_same_unit => frames.push(frame),
            _ => executions.push((entry.connection.0, vec![frame])),
        }
    }
    expected
}

/// The data as the ledger makes it.
#[derive(Default)]
struct Shadow {
    strings: BTreeMap<Bytes, Bytes>,
    /// Lengths of lists and logs, values of counters.
    numbers: BTreeMap<Bytes, i64>,
}

impl Shadow {
    fn execute(&mut self, entry: &Entry) -> Option<Frame> {
        let args = &entry.args;
        let bulk = |value: Option<&Bytes>| value.map_or(Frame::Null, |value| Frame::Bulk(value.clone()));
        let key = args.get(1)?;
        Some(match args[0].as_ref() {
            b"ECHO" => Frame::Bulk(key.clone()),
            b"MGET" => Frame::Array(args[1..].iter().map(|key| bulk(self.strings.get(key))).collect()),
            b"SET" => {
                let before = self.strings.insert(key.clone(), args.get(2)?.clone());
                if args.len() > 3 { bulk(before.as_ref()) } else { Frame::Simple(Bytes::from_static(b"OK")) }
            }
            b"DEL" => {
                let removed = args[1..].iter().filter(|key| self.strings.remove(*key).is_some()).count();
                Frame::Integer(i64::try_from(removed).ok()?)
            }
            b"INCR" => self.add(key, 1),
            b"RPUSH" => self.add(key, 1),
            b"APPEND" => self.add(key, i64::try_from(args.get(2)?.len()).ok()?),
            _ => return None,
        })
    }

    fn add(&mut self, key: &Bytes, by: i64) -> Frame {
        let number = self.numbers.entry(key.clone()).or_default();
        *number += by;
        Frame::Integer(*number)
    }
}
