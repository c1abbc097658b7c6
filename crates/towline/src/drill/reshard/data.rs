//! What is there from the beginning: keys that nobody touches, keys with a deadline, and two big values.
//!
//! Owns their filling and their comparison at the end. Does not own what tasks work on (`load`).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use towline_client::{Client, cmd, pipe};

use super::account::Found;
use super::load::{BIG_HASH, BIG_STRING};
use super::options::ReshardArgs;

/// Keys with a deadline.
const TTL_KEYS: u64 = 200;

/// Their deadlines: far enough that none of them comes.
const TTL: Duration = Duration::from_secs(6 * 3600);

/// Commands sent together.
const BATCH: u64 = 500;

/// Bytes of a value that nobody touches.
const VALUE_BYTES: usize = 100;

/// What was filled in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filled {
    keys: u64,
    seed: u64,
    fields: u64,
    string_bytes: u64,
    /// Unix milliseconds of the first key's deadline; each further one is a millisecond later.
    deadline_ms: u64,
}

fn key(seed: u64, n: u64) -> String {
    format!("drill:fill:{seed}:{n}")
}

fn value(n: u64) -> String {
    format!("{n:0>VALUE_BYTES$}")
}

fn ttl_key(n: u64) -> String {
    format!("drill:ttl:{n}")
}

impl Filled {
    /// Fills everything in.
    ///
    /// # Errors
    /// The cluster refuses something.
    pub(super) async fn fill(client: &Client, args: &ReshardArgs) -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
        let deadline_ms = u64::try_from((now + TTL).as_millis()).context("the clock is far off")?;
        let filled = Self {
            keys: u64::from(args.keys),
            seed: args.seed,
            fields: u64::from(args.big_hash),
            string_bytes: u64::from(args.big_string),
            deadline_ms,
        };
        for first in (0..filled.keys).step_by(BATCH as usize) {
            let mut batch = pipe();
            for n in first..(first + BATCH).min(filled.keys) {
                batch.push(cmd("SET").arg(key(filled.seed, n)).arg(value(n)));
            }
            for result in batch.results(client).await? {
                result.context("the cluster does not take the keys")?;
            }
        }
        for n in 0..TTL_KEYS {
            let set = cmd("SET").arg(ttl_key(n)).arg("v").arg("PXAT").arg(filled.deadline_ms + n);
            set.query::<()>(client).await.context("a key with a deadline")?;
        }
        for first in (0..filled.fields).step_by(BATCH as usize) {
            let mut set = cmd("HSET").arg(BIG_HASH);
            for n in first..(first + BATCH).min(filled.fields) {
                set.push(format!("field:{n}")).push(n);
            }
            set.query::<u64>(client).await.context("the big hash")?;
        }
        let string = vec![b'x'; filled.string_bytes as usize];
        cmd("SET").arg(BIG_STRING).arg(string).query::<()>(client).await.context("the big string")?;
        Ok(filled)
    }

    /// Keys that were filled in.
    pub(super) fn count(&self) -> u64 {
        self.keys + TTL_KEYS + 2
    }

    /// How far the deadlines are from where they were set, at most, milliseconds. Keys that are gone are the audit's.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) async fn ttl_off_ms(&self, client: &Client) -> Result<u64> {
        let mut batch = pipe();
        for n in 0..TTL_KEYS {
            batch.push(cmd("PEXPIRETIME").arg(ttl_key(n)));
        }
        let times: Vec<i64> = batch.query(client).await?;
        let off = |(at, n): (i64, u64)| u64::try_from(at).ok().map(|at| at.abs_diff(self.deadline_ms + n));
        Ok(times.into_iter().zip(0..).filter_map(off).max().unwrap_or_default())
    }

    /// What is missing or another than it was.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) async fn audit(&self, client: &Client) -> Result<Found> {
        let mut lost = 0;
        for first in (0..self.keys).step_by(BATCH as usize) {
            let numbers = first..(first + BATCH).min(self.keys);
            let mut batch = pipe();
            for n in numbers.clone() {
                batch.push(cmd("GET").arg(key(self.seed, n)));
            }
            let values: Vec<Option<String>> = batch.query(client).await?;
            let is_wrong = |(held, n): &(Option<String>, u64)| held.as_deref() != Some(&value(*n));
            lost += values.into_iter().zip(numbers).filter(is_wrong).count() as u64;
        }
        let mut batch = pipe();
        for n in 0..TTL_KEYS {
            batch.push(cmd("EXISTS").arg(ttl_key(n)));
        }
        let there: Vec<u64> = batch.query(client).await?;
        lost += there.into_iter().filter(|there| *there == 0).count() as u64;
        let fields: u64 = cmd("HLEN").arg(BIG_HASH).query(client).await?;
        // The load has added one field.
        lost += self.fields.saturating_sub(fields);
        let bytes: u64 = cmd("STRLEN").arg(BIG_STRING).query(client).await?;
        lost += u64::from(bytes != self.string_bytes);
        Ok(Found { lost, duplicated: 0 })
    }
}
