//! What a cache can be told.
//!
//! Owns [`CacheOptions`] and the reasons for its defaults. Does not own what is done with them.

use std::time::Duration;

use bytes::Bytes;
use towline_client_proto::Tracking;

/// How much is kept on this side, and for how long; see [`ConnectOptions::client_cache`](crate::ConnectOptions::client_cache).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOptions {
    bytes_max: usize,
    entry_bytes_max: usize,
    max_age: Duration,
    waiters_max: usize,
    prefixes: Option<Vec<Bytes>>,
}

impl CacheOptions {
    /// The defaults. What each is, and why, stands at its setter.
    pub const fn new() -> Self {
        Self {
            bytes_max: 64 * 1024 * 1024,
            entry_bytes_max: 1024 * 1024,
            max_age: Duration::from_secs(300),
            waiters_max: 4096,
            prefixes: None,
        }
    }

    /// The bytes of all that is kept, keys, commands and bookkeeping included. Default 64 MiB: some hundred thousand small
    /// values, and a small part of what a server process has. From 4 MiB on the room is divided among 16 parts by the keys'
    /// hashes.
    pub const fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// A reply that takes more is not kept, nor one that is larger than a part of the room. Default 1 MiB: one large value
    /// does not push a thousand small ones out.
    pub const fn entry_bytes_max(mut self, bytes: usize) -> Self {
        self.entry_bytes_max = bytes;
        self
    }

    /// The longest time for which a reply is served. Default five minutes. The server's announcements keep the cache true, so
    /// this is for what they do not cover: a primary that was cut off from its cluster and does not know that it is none any
    /// more, and `SWAPDB`.
    pub const fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    /// How many callers may wait for one read; more read by themselves. Default 4096, which bounds what one slow reply holds.
    pub const fn waiters_max(mut self, count: usize) -> Self {
        self.waiters_max = count;
        self
    }

    /// The server announces every change of keys with these prefixes, whoever has read them (`BCAST`); only these keys are
    /// cached. Without a prefix: all keys. Default: the server remembers which keys this client has read through the cache
    /// (`OPTIN`).
    ///
    /// It costs the server no memory for each key, and the client a message for each change of a key that it may never have
    /// read. Prefixes must not begin with one another.
    pub fn broadcast(mut self, prefixes: impl IntoIterator<Item = impl Into<Bytes>>) -> Self {
        self.prefixes = Some(prefixes.into_iter().map(Into::into).collect());
        self
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes_max
    }

    pub(super) const fn entry_bytes(&self) -> usize {
        self.entry_bytes_max
    }

    pub(super) const fn age(&self) -> Duration {
        self.max_age
    }

    pub(super) const fn waiters(&self) -> usize {
        self.waiters_max
    }

    pub(super) fn tracking(&self) -> Tracking {
        match &self.prefixes {
            None => Tracking::OptIn,
            Some(prefixes) => Tracking::Broadcast(prefixes.clone()),
        }
    }

    /// Whether each read has to be announced as one to be watched.
    pub(super) const fn is_opt_in(&self) -> bool {
        self.prefixes.is_none()
    }

    /// Whether changes of a key are announced.
    pub(super) fn is_watched(&self, key: &[u8]) -> bool {
        match &self.prefixes {
            None => true,
            Some(prefixes) => prefixes.is_empty() || prefixes.iter().any(|prefix| key.starts_with(prefix)),
        }
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self::new()
    }
}
