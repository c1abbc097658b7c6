//! What commands are given and what they leave behind.
//!
//! Owns: the settings that the keyspace follows and the record of what must happen after the locks are gone. Does
//! **not** own doing it: publishing, waking and freeing are the server's.

use crate::effects::Effects;
use crate::entry::Entry;
use crate::evict::Policy;
use crate::limits::EncodingLimits;
use crate::notify::Class;
use crate::table::Table;
use crate::value::Value;
use towline_sansio::Prng;

/// What the keyspace follows; a copy for each worker, replaced as a whole when the configuration changes.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// When collections change their encoding.
    pub limits: EncodingLimits,
    /// `notify-keyspace-events`, see [`crate::notify`].
    pub notify: u32,
    /// `maxmemory-policy`.
    pub policy: Policy,
    /// `lfu-log-factor`: how slowly the counter grows. Default 10, as Redis: a million hits saturate it.
    pub lfu_log_factor: u32,
    /// `lfu-decay-time`: minutes per lost count. Default 1.
    pub lfu_decay_minutes: u32,
    /// Accesses before this instant, in unix milliseconds, count as if they were at it. Default 0. For the replay of a log, which
    /// runs at an instant where nothing has expired.
    pub access_from_ms: u64,
}

/// A notification to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub class: Class,
    /// The event's name.
    pub event: &'static str,
    /// The key's database.
    pub db: u8,
    /// The key.
    pub key: Box<[u8]>,
}

/// What commands set off. All lists are worked off and cleared after each command or batch.
#[derive(Debug)]
pub struct Changes {
    /// Randomness for sampling and counters.
    pub rng: Prng,
    /// Changes since the start, as `rdb_changes_since_last_save` counts them.
    pub dirty: u64,
    /// Reads that found a key.
    pub hits: u64,
    /// Reads that found none.
    pub misses: u64,
    /// Keys that expired.
    pub expired: u64,
    /// Hash fields that expired.
    pub expired_fields: u64,
    /// Notifications to publish, in order.
    pub notes: Vec<Note>,
    /// Keys whose waiters may have something to get; [`crate::keyspace::Keyspace::serve_done`] ends each entry.
    pub ready: Vec<(u8, Box<[u8]>)>,
    /// Keys that changed, with the clients that tracked them.
    pub invalidated: Vec<(Box<[u8]>, Vec<u64>)>,
    /// Whether some client tracks by prefix, so that every changed key is recorded in `modified`.
    pub tracks_prefixes: bool,
    /// Keys that changed, when `tracks_prefixes`.
    pub modified: Vec<Box<[u8]>>,
    /// Whether a database was emptied as a whole.
    pub flushed: bool,
    /// Large values to be freed off the path.
    pub garbage: Vec<Value>,
    /// Tables of flushed databases, likewise.
    pub tables: Vec<Table<Entry>>,
    /// Position of the last unit of effects in a stream that was opened with
    /// [`crate::stream::Config::reports_position`]: a reply may have to wait until that is durable.
    pub position: u64,
    /// Likewise of the last unit with an effect on a slot that was held: whatever the commands read may tell of it.
    pub seen: u64,
    /// What the command at hand did so far, if somebody listens.
    pub(crate) effects: Effects,
}

impl Changes {
    /// An empty record; `seed` starts its randomness.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Prng::new(seed),
            dirty: 0,
            hits: 0,
            misses: 0,
            expired: 0,
            expired_fields: 0,
            notes: Vec::new(),
            ready: Vec::new(),
            invalidated: Vec::new(),
            tracks_prefixes: false,
            modified: Vec::new(),
            flushed: false,
            garbage: Vec::new(),
            tables: Vec::new(),
            position: 0,
            seen: 0,
            effects: Effects::default(),
        }
    }
}
