//! Reads back everything that a server holds.
//!
//! Owns the commands for that. Does not own what should be there.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use towline_resp::frame::Frame;

use super::client::{Clock, Wire};
use super::mix::{DBS_ALL, Fields};
use super::value::{Deadline, Entry, Field, Found, Place, Value};

/// Keys that are asked for at once.
const AT_ONCE: usize = 64;

/// Reads all keys of all databases.
///
/// # Errors
/// The connection ended, or an answer has another form than it should have.
pub(super) fn read(wire: &mut Wire, fields: Fields) -> io::Result<Found> {
    let from_ms = Clock::wall_ms();
    let mut found = Found { from_ms, ..Found::default() };
    for db in 0..DBS_ALL {
        wire.call(&["SELECT", &db.to_string()])?;
        if wire.call(&["DBSIZE"])? == Frame::Integer(0) {
            continue;
        }
        let keys = scan(wire)?;
        for keys in keys.chunks(AT_ONCE) {
            entries(wire, db, keys, &mut found.keys)?;
        }
        if fields == Fields::Expire {
            deadlines(wire, db, &mut found.keys)?;
        }
    }
    found.until_ms = Clock::wall_ms();
    Ok(found)
}

/// The names of all keys of the database.
fn scan(wire: &mut Wire) -> io::Result<Vec<String>> {
    let (mut cursor, mut keys) = ("0".to_owned(), Vec::new());
    loop {
        let Frame::Array(answer) = wire.call(&["SCAN", &cursor, "COUNT", "1000"])? else {
            return Err(io::Error::other("SCAN was not answered with an array"));
        };
        let [Frame::Bulk(next), Frame::Array(names)] = answer.as_slice() else {
            return Err(io::Error::other("SCAN was answered in another form"));
        };
        cursor = String::from_utf8_lossy(next).into_owned();
        keys.extend(texts(names).map(|name| String::from_utf8_lossy(&name).into_owned()));
        if cursor == "0" {
            // A cursor may show a key twice.
            keys.sort_unstable();
            keys.dedup();
            return Ok(keys);
        }
    }
}

/// The content and the deadlines of some keys. A key that expires meanwhile is not there.
fn entries(wire: &mut Wire, db: u8, keys: &[String], into: &mut BTreeMap<Place, Entry>) -> io::Result<()> {
    let ask = |word: &'static str| keys.iter().map(move |key| vec![word, key.as_str()]);
    let types = wire.pipeline(&ask("TYPE").collect::<Vec<_>>())?;
    let values: Vec<Vec<&str>> = keys.iter().zip(&types).map(|(key, of)| command(key, of)).collect();
    let values = wire.pipeline(&values)?;
    // After the values: what has a deadline now was alive before.
    let deadlines = wire.pipeline(&ask("PEXPIRETIME").collect::<Vec<_>>())?;
    for (((key, of), value), deadline) in keys.iter().zip(&types).zip(values).zip(deadlines) {
        let deadline = match deadline {
            Frame::Integer(-1) => Deadline::Never,
            Frame::Integer(-2) => continue,
            Frame::Integer(at) => Deadline::At(u64::try_from(at).unwrap_or(0)),
            other => return Err(io::Error::other(format!("PEXPIRETIME {key} was answered {other:?}"))),
        };
        let Some(value) = value_of(of, value)? else { continue };
        if !value.is_gone() {
            into.insert(Place::new(db, key), Entry { value: Arc::new(value), deadline });
        }
    }
    Ok(())
}

/// Adds the deadlines of fields to the hashes of a database.
fn deadlines(wire: &mut Wire, db: u8, keys: &mut BTreeMap<Place, Entry>) -> io::Result<()> {
    for (place, entry) in keys.iter_mut().filter(|(place, _)| place.db == db) {
        let Value::Hash(fields) = Arc::make_mut(&mut entry.value) else { continue };
        let count = fields.len().to_string();
        let mut command: Vec<Bytes> =
            ["HPEXPIRETIME", &place.key, "FIELDS", &count].map(|word| word.to_owned().into()).into();
        command.extend(fields.keys().cloned());
        let Frame::Array(answer) = wire.call(&command)? else {
            return Err(io::Error::other(format!("HPEXPIRETIME {place} was not answered with an array")));
        };
        for (field, until) in fields.values_mut().zip(answer) {
            field.until = match until {
                Frame::Integer(until) => u64::try_from(until).ok(),
                _ => None,
            };
        }
    }
    Ok(())
}

/// The command that reads a key of this type.
fn command<'a>(key: &'a str, of: &Frame) -> Vec<&'a str> {
    match name(of) {
        b"list" => vec!["LRANGE", key, "0", "-1"],
        b"hash" => vec!["HGETALL", key],
        b"set" => vec!["SMEMBERS", key],
        b"zset" => vec!["ZRANGE", key, "0", "-1", "WITHSCORES"],
        _ => vec!["GET", key],
    }
}

fn name(of: &Frame) -> &[u8] {
    match of {
        Frame::Simple(name) => name,
        _ => b"",
    }
}

/// A value from its answer; none if the key was gone by then.
fn value_of(of: &Frame, frame: Frame) -> io::Result<Option<Value>> {
    let items = match frame {
        Frame::Bulk(text) => return Ok(Some(Value::Text(Bytes::copy_from_slice(&text)))),
        Frame::Array(frames) => frames,
        frame if frame.is_null() => return Ok(None),
        other => return Err(io::Error::other(format!("a value was read as {other:?}"))),
    };
    let pairs = || items.chunks_exact(2).filter_map(|pair| Some((bulk(&pair[0])?, bulk(&pair[1])?)));
    let score = |text: Bytes| std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    Ok(Some(match name(of) {
        b"list" => Value::List(texts(&items).collect::<VecDeque<_>>()),
        b"hash" => Value::Hash(pairs().map(|(field, text)| (field, Field::lasting(text))).collect()),
        b"set" => Value::Set(texts(&items).collect()),
        _ => Value::Zset(pairs().map(|(member, text)| (member, score(text).unwrap_or(i64::MIN))).collect()),
    }))
}

fn texts(frames: &[Frame]) -> impl Iterator<Item = Bytes> + '_ {
    frames.iter().filter_map(bulk)
}

/// A text that does not keep the whole answer's memory alive.
fn bulk(frame: &Frame) -> Option<Bytes> {
    match frame {
        Frame::Bulk(text) => Some(Bytes::copy_from_slice(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_their_types() {
        let bulks = |texts: &[&'static str]| {
            Frame::Array(texts.iter().map(|text| Frame::Bulk((*text).into())).collect())
        };
        for (of, answer, shown) in [
            ("string", Frame::Bulk("v".into()), "text v"),
            ("list", bulks(&["2", "1"]), "list of 2 (2 .. 1)"),
            ("hash", bulks(&["f", "1"]), "hash of 1 (f=1)"),
            ("set", bulks(&["b", "a"]), "set of 2 (a b)"),
            ("zset", bulks(&["m", "-3"]), "zset of 1 (m=-3)"),
        ] {
            let value = value_of(&Frame::Simple(of.into()), answer).unwrap().unwrap();
            assert_eq!(value.to_string(), shown);
        }
        assert_eq!(value_of(&Frame::Simple("string".into()), Frame::Null).unwrap(), None);
        assert!(value_of(&Frame::Simple("string".into()), Frame::Integer(1)).is_err());
    }
}
