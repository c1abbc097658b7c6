//! What of the configuration concerns files.
//!
//! Owns: the parameters, their defaults and the reasons. Does **not** own what is done with them (see
//! [`crate::persistence`]).

/// `appendfsync`: when the log is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AppendFsync {
    /// Before a write is answered: nothing that was answered is lost.
    Always,
    /// Once a second: at most the last second is lost. The default, as in Redis.
    #[default]
    EverySec,
    /// When the system likes to, typically after 30 seconds.
    No,
}

/// `load-unsupported`: what a start does with streams, modules' data and functions in its files, which this server does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadUnsupported {
    /// It fails, with a list of all of them. The default: nobody loses data without having asked for it.
    #[default]
    Refuse,
    /// It leaves them out, with a warning for each.
    Skip,
}

/// A snapshot is due when at least so many changes are not saved and the last one is at least so long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last save, at least 1.
    pub seconds: u64,
    /// Changes since the last save.
    pub changes: u64,
}

/// Snapshots and log. [`Default`] is a server that writes nothing by itself, as one that is embedded in a program should;
/// [`Persistence::of_a_process`] has the defaults of Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persistence {
    /// `save`: any of these points makes a snapshot due. Empty: none is made unless it is asked for.
    pub save: Vec<SavePoint>,
    /// `stop-writes-on-bgsave-error`: whether writes are refused while the last snapshot that a save point asked for has
    /// failed. Default yes: better an error than a promise that does not hold.
    pub stop_writes_on_bgsave_error: bool,
    /// `rdbcompression`: whether long strings in files are compressed. Default no, where Redis has yes: it takes time at every
    /// save and every start, and disk is cheap. Strings of more than 64 KiB are never compressed.
    pub rdbcompression: bool,
    /// `rdbchecksum`: whether snapshots end with a checksum. Default yes: it costs little beside the writing.
    pub rdbchecksum: bool,
    /// `appendonly`: whether there is a log.
    pub appendonly: bool,
    /// `appendfilename`: what the names of the log's files begin with.
    pub appendfilename: String,
    /// `appenddirname`: the log's directory, in `dir`.
    pub appenddirname: String,
    /// `appendfsync`.
    pub appendfsync: AppendFsync,
    /// `no-appendfsync-on-rewrite`: whether `everysec` and `no` sync nothing while a snapshot or a rewrite is written. Default
    /// no; it has no effect on `always`, whose promise would not hold.
    pub no_appendfsync_on_rewrite: bool,
    /// `auto-aof-rewrite-percentage`: growth since the last rewrite from which on the log is rewritten, 0 for never. Default
    /// 100.
    pub auto_aof_rewrite_percentage: u64,
    /// `auto-aof-rewrite-min-size`: bytes below which it is not. Default 64 MiB.
    pub auto_aof_rewrite_min_size: u64,
    /// `aof-load-truncated`: whether a start cuts a command that is torn at the log's end. Default yes: it was never answered
    /// under `always`.
    pub aof_load_truncated: bool,
    /// `aof-use-rdb-preamble`: whether a rewrite writes the base as an RDB file. Default yes: it is smaller and loads faster.
    pub aof_use_rdb_preamble: bool,
    /// `aof-timestamp-enabled`: whether the log says in comments when its commands came. Default no.
    pub aof_timestamp_enabled: bool,
    /// `load-unsupported`.
    pub load_unsupported: LoadUnsupported,
}

impl Default for Persistence {
    fn default() -> Self {
        Self {
            save: Vec::new(),
            stop_writes_on_bgsave_error: true,
            rdbcompression: false,
            rdbchecksum: true,
            appendonly: false,
            appendfilename: "appendonly.aof".into(),
            appenddirname: "appendonlydir".into(),
            appendfsync: AppendFsync::default(),
            no_appendfsync_on_rewrite: false,
            auto_aof_rewrite_percentage: 100,
            auto_aof_rewrite_min_size: 64 << 20,
            aof_load_truncated: true,
            aof_use_rdb_preamble: true,
            aof_timestamp_enabled: false,
            load_unsupported: LoadUnsupported::default(),
        }
    }
}

impl Persistence {
    /// The defaults of a server that is a process of its own: the save points of Redis, an hour with a change, five minutes
    /// with a hundred, a minute with ten thousand.
    pub fn of_a_process() -> Self {
        let point = |seconds, changes| SavePoint { seconds, changes };
        Self { save: vec![point(3600, 1), point(300, 100), point(60, 10_000)], ..Self::default() }
    }
}
