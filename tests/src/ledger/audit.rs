//! The comparison of what the tasks know with what the server holds.

use anyhow::Context as _;

use super::fate::{Counter, Fate, Shared};
use super::{Record, Summary};
use crate::conn::Conn;
use crate::value::Value;

/// Compares everything; what contradicts the promise is added to `summary`.
pub(super) fn audit(
    conn: &mut Conn,
    records: &[Record],
    shared: &[Shared],
    summary: &mut Summary,
) -> anyhow::Result<()> {
    for (which, shared) in shared.iter().enumerate() {
        count(conn, &format!("shared:{which}"), &shared.counter, summary)?;
    }
    for record in records {
        let task = record.task;
        for (kind, counter) in [
            ("own", &record.own),
            ("piped", &record.piped),
            ("dropped", &record.dropped),
            ("unwatched", &record.unwatched),
            ("pair-a", &record.pair),
        ] {
            count(conn, &format!("{kind}:{task}"), counter, summary)?;
        }
        summary.unwatched += record.unwatched.unknown;
        let pair = [number(conn, &format!("pair-a:{task}"))?, number(conn, &format!("pair-b:{task}"))?];
        if pair[0] != pair[1] {
            summary.problem(format!("a torn transaction of task {task}: {pair:?}"));
        }
        let read = conn.call(&["GET", &format!("register:{task}")])?;
        if let Err(problem) = record.register.allows(read.bytes()) {
            summary.problem(format!("register:{task}: {problem}"));
        }
        entries(conn, record, summary)?;
        let fates = record.entries.fates();
        let with = |fate| fates.iter().filter(|other| **other == fate).count() as u64;
        summary.tally(record.register.acked, record.register.unknown(), record.register.not_sent);
        summary.tally(with(Fate::Acked), with(Fate::Unknown), with(Fate::NotSent));
    }
    Ok(())
}

fn number(conn: &mut Conn, key: &str) -> anyhow::Result<i64> {
    let reply = conn.call(&["GET", key])?;
    if reply.is_null() {
        return Ok(0);
    }
    let text = reply.bytes().context("no string")?;
    Ok(std::str::from_utf8(text)?.parse()?)
}

fn count(conn: &mut Conn, key: &str, counter: &Counter, summary: &mut Summary) -> anyhow::Result<()> {
    summary.tally(counter.acked, counter.unknown, counter.not_sent);
    let value = number(conn, key)?;
    let value_u64 = u64::try_from(value).context("a negative count")?;
    summary.unknown_ran += value_u64.saturating_sub(counter.acked).min(counter.unknown);
    summary.duplicates += value_u64.saturating_sub(counter.acked + counter.unknown);
    if let Err(problem) = counter.allows(value) {
        summary.problem(format!("{key}: {problem}"));
    }
    Ok(())
}

/// Every entry that was acknowledged is there once and in order; of the unknown ones each at most once.
fn entries(conn: &mut Conn, record: &Record, summary: &mut Summary) -> anyhow::Result<()> {
    let key = format!("entries:{}", record.task);
    let reply = conn.call(&["LRANGE", &key, "0", "-1"])?;
    let Value::Array(items) = reply else { anyhow::bail!("{key} is no list: {reply}") };
    let fates = record.entries.fates();
    let mut seen = vec![false; fates.len()];
    let mut last_acked = None;
    for item in items {
        let text = std::str::from_utf8(item.bytes().context("no string")?)?;
        let id: usize = text.parse()?;
        match fates.get(id) {
            _ if seen.get(id) == Some(&true) => {
                summary.duplicates += 1;
                summary.problem(format!("{key}: entry {id} is there twice"));
            }
            Some(Fate::Acked) if last_acked.is_some_and(|last| id < last) => {
                summary.problem(format!("{key}: entry {id} came after {last_acked:?}"));
            }
            Some(Fate::Acked) => last_acked = Some(id),
            Some(Fate::Unknown) => summary.unknown_ran += 1,
            Some(Fate::NotSent) => {
                summary.problem(format!("{key}: entry {id} was not sent, and is there"));
            }
            None => summary.problem(format!("{key}: entry {id} was never made")),
        }
        if let Some(seen) = seen.get_mut(id) {
            *seen = true;
        }
    }
    for (id, fate) in fates.iter().enumerate() {
        if *fate == Fate::Acked && !seen[id] {
            summary.problem(format!("{key}: entry {id} was acknowledged, and is missing"));
        }
    }
    Ok(())
}
