//! `towline bench memory`: what one key costs.
//!
//! Owns the shapes of the keys and the readings around the fill. Does not own the writing itself (`load::fill`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::connection::{Target, info_number, request};
use super::fleet::{Fleet, runtime};
use super::keys::KEY_DIGITS;
use super::load::{data, fill, prepare};
use super::options::{MemoryArgs, TargetArgs, ValueType};
use super::report::{Fields, round};
use super::workload::{Template, Workload};
use super::{Verdict, cpu};

/// Members of a collection.
const MEMBERS: u32 = 10;

/// Bytes per string value and per collection member unless given.
const STRING_BYTES_DEFAULT: u64 = 100;
const MEMBER_BYTES_DEFAULT: u64 = 8;

/// Largest command that a shape may need.
const COMMAND_BYTES_MAX: u64 = 512 << 20;

/// Connections that fill; one core of any server is busy with fewer.
const CONNECTIONS: usize = 8;

/// The server's memory counts as settled when two readings so far apart agree, or after the longest wait.
const SETTLE_STEP: Duration = Duration::from_millis(200);
const SETTLE_MAX: Duration = Duration::from_secs(5);

/// A checked fill.
#[derive(Debug)]
pub(crate) struct Plan {
    keys: u64,
    key_bytes: u32,
    value_bytes: u64,
    value_type: ValueType,
    is_flushed: bool,
    workload: Arc<Workload>,
}

impl Plan {
    /// Checks the sizes and builds the command that writes one key.
    ///
    /// # Errors
    /// When the keys do not fit into their bytes, or a value is too large.
    pub(crate) fn new(options: &MemoryArgs) -> Result<Self> {
        let digits_needed = (options.keys - 1).max(1).ilog10() as usize + 1;
        let key_bytes = options.key_bytes as usize;
        ensure!(
            key_bytes >= digits_needed,
            "--key-bytes {key_bytes} has no room for {} different keys; use at least {digits_needed}",
            options.keys
        );
        let is_string = options.value_type == ValueType::String;
        let default = if is_string { STRING_BYTES_DEFAULT } else { MEMBER_BYTES_DEFAULT };
        let value_bytes = options.value_bytes.unwrap_or(default);
        let whole = if is_string { value_bytes } else { value_bytes.saturating_mul(MEMBERS.into()) };
        ensure!(whole <= COMMAND_BYTES_MAX, "--value-bytes {value_bytes} is too large for one command");
        let digits = key_bytes.min(KEY_DIGITS);
        let key = format!("{}__rand__", "key:".repeat(key_bytes / 4 + 1).split_at(key_bytes - digits).0);
        let template = Template::new(&command(options.value_type, &key, value_bytes), &[], digits);
        let workload = Arc::new(Workload::single("fill", template));
        Ok(Self {
            keys: options.keys,
            key_bytes: options.key_bytes,
            value_bytes,
            value_type: options.value_type,
            is_flushed: options.is_flushed,
            workload,
        })
    }

    /// Fills the server and reports.
    ///
    /// # Errors
    /// When the server cannot be reached, is not empty, or refuses a write; or its process is not known.
    pub(crate) fn execute(&self, options: &TargetArgs, is_json: bool) -> Result<Verdict> {
        let (target, server_pid) = prepare(options)?;
        let Some(pid) = server_pid else {
            bail!("the server's process is not known; give --server-pid (it must run on this machine)");
        };
        let runtime = runtime()?;
        let used_before = runtime.block_on(self.empty(&target))?;
        let rss_before = settled_rss(pid)?;
        let mut fleet = Fleet::connect(&target, CONNECTIONS, 1, 0)?;
        let elapsed = fill(&mut fleet, &self.workload, self.keys)?;
        drop(fleet);
        let rss = settled_rss(pid)?.saturating_sub(rss_before);
        let used_after = runtime.block_on(used_memory(&target))?;
        let used = used_after.zip(used_before).map(|(after, before)| after.saturating_sub(before));
        let per_key = |bytes: u64| round(bytes as f64 / self.keys as f64, 10.0);
        let mut fields = Fields::default();
        fields.add("type", format!("{:?}", self.value_type).to_lowercase());
        fields.add("keys", self.keys);
        fields.add("key_bytes", self.key_bytes);
        fields.add("value_bytes", self.value_bytes);
        fields.add("seconds", round(elapsed.as_secs_f64(), 1e3));
        fields.add("server_rss_bytes_delta", rss);
        fields.add("server_rss_bytes_per_key", per_key(rss));
        fields.add("used_memory_bytes_per_key", used.map(per_key));
        fields.add("server_pid", pid);
        fields.write(std::io::stdout().lock(), is_json).context("cannot write the report")?;
        Ok(Verdict::Succeeded)
    }

    /// Makes sure that the server holds nothing, and returns what it says of its memory then.
    async fn empty(&self, target: &Target) -> Result<Option<u64>> {
        let mut stream = target.connect().await?;
        if self.is_flushed {
            target.within(request(&mut stream, &["FLUSHALL"])).await?;
        }
        let reply = target.within(request(&mut stream, &["DBSIZE"])).await?;
        let text = String::from_utf8_lossy(&reply);
        let size = text.trim().trim_start_matches(':').parse::<u64>();
        match size {
            Ok(0) => used_memory(target).await,
            Ok(size) => bail!("the server holds {size} keys; --flush deletes all of them first"),
            Err(_) => bail!("the server does not say how many keys it holds (DBSIZE)"),
        }
    }
}

/// The command that writes the key `key` with ten members of `bytes` bytes, or one string.
fn command(value_type: ValueType, key: &str, bytes: u64) -> Vec<Vec<u8>> {
    let name = match value_type {
        ValueType::String => return vec![b"SET".to_vec(), key.into(), data(bytes)],
        ValueType::Hash10 => "HSET",
        ValueType::Set10 => "SADD",
        ValueType::List10 => "RPUSH",
        ValueType::Zset10 => "ZADD",
    };
    let mut line = vec![name.into(), key.into()];
    for member in 0..MEMBERS {
        let value = numbered(member, bytes);
        match value_type {
            ValueType::Hash10 => line.extend([format!("f{member}").into_bytes(), value]),
            ValueType::Zset10 => line.extend([member.to_string().into_bytes(), value]),
            _ => line.push(value),
        }
    }
    line
}

/// `bytes` bytes that differ from member to member and are no number (a set of numbers has another encoding).
fn numbered(member: u32, bytes: u64) -> Vec<u8> {
    let mut value = data(bytes.max(1));
    value[0] = b'A' + (member % 26) as u8;
    value
}

async fn used_memory(target: &Target) -> Result<Option<u64>> {
    let mut stream = target.connect().await?;
    let reply = target.within(request(&mut stream, &["INFO", "memory"])).await?;
    Ok(info_number(&reply, "used_memory"))
}

/// Resident bytes of `pid` once background work (rehashing, lazy freeing) no longer changes them.
fn settled_rss(pid: u32) -> Result<u64> {
    let read = || cpu::rss_bytes(pid).context("the server's process is gone");
    let start = Instant::now();
    let mut last = read()?;
    loop {
        std::thread::sleep(SETTLE_STEP);
        let next = read()?;
        if next == last || start.elapsed() > SETTLE_MAX {
            return Ok(next);
        }
        last = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(value_type: ValueType) -> MemoryArgs {
        MemoryArgs { keys: 1000, key_bytes: 16, value_bytes: None, value_type, is_flushed: false }
    }

    #[test]
    fn members_differ_and_have_their_size() {
        for value_type in [ValueType::Hash10, ValueType::Set10, ValueType::List10, ValueType::Zset10] {
            let line = command(value_type, "k", 8);
            let mut members: Vec<_> = line.iter().skip(2).filter(|argument| argument.len() == 8).collect();
            members.sort();
            members.dedup();
            assert_eq!(members.len(), 10, "{value_type:?}");
        }
    }

    #[test]
    fn short_and_long_keys_have_their_size() {
        for key_bytes in [3, 4, 12, 13, 16, 40] {
            let plan = Plan::new(&MemoryArgs { key_bytes, ..options(ValueType::String) }).unwrap();
            let head = "*3\r\n$3\r\nSET\r\n".len() + format!("${key_bytes}\r\n").len();
            let rest = "\r\n$100\r\n".len() + 100 + 2;
            assert_eq!(plan.workload.bytes_max(), head + key_bytes as usize + rest);
        }
    }

    #[test]
    fn too_short_keys_are_refused() {
        let error = Plan::new(&MemoryArgs { key_bytes: 2, ..options(ValueType::String) }).unwrap_err();
        assert!(error.to_string().contains("at least 3"), "{error}");
    }
}
