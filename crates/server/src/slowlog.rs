//! `SLOWLOG`.
//!
//! Owns: the log of commands that took long. Does **not** own measuring.

use crate::client::Client;
use crate::command::Args;
use crate::config::Config;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use towline_spec::{Command, Flags};

/// Arguments of a command that are kept, the note of those left out included.
const ARGS_MAX: usize = 32;
/// Bytes of an argument that are kept, before the note of those left out.
const ARG_BYTES_MAX: usize = 128;

/// A command that took long.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    /// Unix seconds.
    pub(crate) at_s: u64,
    pub(crate) micros: u64,
    /// Shortened, secrets left out.
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) peer: String,
    pub(crate) name: Vec<u8>,
}

#[derive(Debug, Default)]
struct Log {
    next_id: u64,
    /// Newest first.
    entries: VecDeque<Entry>,
}

/// The log.
#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    log: Mutex<Log>,
}

impl SlowLog {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs the command if it took long enough.
    #[inline]
    pub(crate) fn offer(
        &self,
        config: &Config,
        command: &'static Command,
        args: Args<'_>,
        elapsed: Duration,
        client: &Arc<Client>,
        now_ms: u64,
    ) {
        let micros = elapsed.as_micros() as u64;
        if u64::try_from(config.slowlog_log_slower_than).is_ok_and(|threshold| micros >= threshold) {
            self.log(config, command, args, micros, client, now_ms);
        }
    }

    #[cold]
    fn log(
        &self,
        config: &Config,
        command: &'static Command,
        args: Args<'_>,
        micros: u64,
        client: &Arc<Client>,
        now_ms: u64,
    ) {
        if command.flags.contains(Flags::SKIP_SLOWLOG) || config.slowlog_max_len == 0 {
            return;
        }
        let name = client.names.lock().unwrap_or_else(PoisonError::into_inner).name.clone();
        let peer = client.addresses.peer.to_string();
        let args = shorten(command, args);
        let mut log = self.lock();
        let id = log.next_id;
        log.next_id += 1;
        log.entries.push_front(Entry { id, at_s: now_ms / 1000, micros, args, peer, name });
        log.entries.truncate(config.slowlog_max_len);
    }

    /// The newest entries, `count` at most.
    pub(crate) fn newest(&self, count: usize) -> Vec<Entry> {
        self.lock().entries.iter().take(count).cloned().collect()
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Forgets all entries; ids go on.
    pub(crate) fn clear(&self) {
        self.lock().entries.clear();
    }

    /// Forgets the oldest entries beyond `len`.
    pub(crate) fn trim(&self, len: usize) {
        self.lock().entries.truncate(len);
    }
}

fn shorten(command: &'static Command, args: Args<'_>) -> Vec<Vec<u8>> {
    let kept = if args.len() > ARGS_MAX { ARGS_MAX - 1 } else { args.len() };
    let secret = first_secret(command, args);
    let mut shortened: Vec<Vec<u8>> = Vec::with_capacity(kept + 1);
    for (index, arg) in args.iter().take(kept).enumerate() {
        shortened.push(match () {
            () if secret.is_some_and(|secret| index >= secret) => b"(redacted)".to_vec(),
            () if arg.len() > ARG_BYTES_MAX => {
                let mut short = arg[..ARG_BYTES_MAX].to_vec();
                short.extend_from_slice(format!("... ({} more bytes)", arg.len() - ARG_BYTES_MAX).as_bytes());
                short
            }
            () => arg.to_vec(),
        });
    }
    if args.len() > kept {
        shortened.push(format!("... ({} more arguments)", args.len() - kept).into_bytes());
    }
    shortened
}

/// The first argument that may be a secret; all from there on are left out of logs.
pub(crate) fn first_secret(command: &Command, args: Args<'_>) -> Option<usize> {
    let after_word = |words: &[&str]| {
        (1..args.len()).find(|&index| words.iter().any(|word| args.is(index, word))).map(|index| index + 1)
    };
    match command.name {
        "auth" => Some(1),
        "hello" => after_word(&["AUTH"]),
        "migrate" => after_word(&["AUTH", "AUTH2"]),
        "acl|setuser" => Some(3),
        "config|set" => {
            let secrets = ["requirepass", "masterauth", "tls-key-file-pass", "cluster-secret"];
            (2..args.len()).step_by(2).find(|&i| secrets.iter().any(|name| args.is(i, name))).map(|i| i + 1)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Addresses;
    use crate::command::OwnedArgs;

    fn log(log: &SlowLog, config: &Config, micros: u64, args: &[&[u8]]) {
        let owned = OwnedArgs::from_slices(args);
        let command = towline_spec::resolve(&owned.args()).unwrap();
        let client =
            Arc::new(Client::new(1, Addresses { peer: "1.2.3.4:5".into(), ..Addresses::default() }, 0));
        log.offer(config, command, owned.args(), Duration::from_micros(micros), &client, 5_000);
    }

    #[test]
    fn only_slow_commands_are_kept_and_the_oldest_go() {
        let slow = SlowLog::default();
        let config = Config { slowlog_log_slower_than: 10, slowlog_max_len: 2, ..Config::default() };
        for micros in [9, 10, 11, 12] {
            log(&slow, &config, micros, &[b"GET", b"k"]);
        }
        let entries = slow.newest(10);
        assert_eq!(
            entries.iter().map(|entry| (entry.id, entry.micros)).collect::<Vec<_>>(),
            [(2, 12), (1, 11)]
        );
        assert_eq!((entries[0].at_s, entries[0].peer.as_str()), (5, "1.2.3.4:5"));
        slow.clear();
        log(&slow, &config, 99, &[b"GET", b"k"]);
        assert_eq!(slow.newest(1)[0].id, 3);
        let never = Config { slowlog_log_slower_than: -1, ..Config::default() };
        log(&slow, &never, 1 << 40, &[b"GET", b"k"]);
        assert_eq!(slow.len(), 1);
    }

    #[test]
    fn long_commands_are_shortened_and_secrets_left_out() {
        let slow = SlowLog::default();
        let config = Config { slowlog_log_slower_than: 0, ..Config::default() };
        let long = vec![b'x'; 130];
        log(&slow, &config, 1, &[b"SET", b"k", &long]);
        assert!(slow.newest(1)[0].args[2].ends_with(b"xx... (2 more bytes)"));
        let many = vec![b"a".as_slice(); 33];
        log(&slow, &config, 1, &[&[b"DEL".as_slice()], many.as_slice()].concat());
        let args = &slow.newest(1)[0].args;
        assert_eq!((args.len(), args[31].as_slice()), (32, b"... (3 more arguments)".as_slice()));
        log(&slow, &config, 1, &[b"AUTH", b"user", b"secret"]);
        assert_eq!(slow.newest(1)[0].args, [b"AUTH".as_slice(), b"(redacted)", b"(redacted)"]);
        log(&slow, &config, 1, &[b"CONFIG", b"SET", b"hz", b"1", b"requirepass", b"x"]);
        assert_eq!(slow.newest(1)[0].args[5], b"(redacted)");
    }
}
