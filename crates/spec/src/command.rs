//! What one row of the command table says.
//!
//! Owns the vocabulary of a row. Does not own the rows (`table`), how keys are found (`keys`) or how a command
//! is executed (the server).

use crate::bits::{AclCategories, Flags};
use crate::keys::{KeyShape, KeySpec};
use crate::table;

/// The place of a row in the table: dense, from 0 to [`COUNT`](crate::COUNT) - 1, so it can index an array of handlers.
///
/// A module's command ([`modules`](crate::modules)) has an id above these, which no array of handlers has a place for.
/// It is stable within one build only; nothing may store or send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandId(pub(crate) u16);

impl CommandId {
    /// The place as an array index, below [`COUNT`](crate::COUNT).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One command, or one subcommand of a container command.
#[derive(Debug)]
pub struct Command {
    /// Lower-case name; a subcommand's is `container|subcommand`.
    pub name: &'static str,
    /// This row's place in the table.
    pub id: CommandId,
    /// Exact argument count when positive, least count (negated) when negative; the name counts, and so does
    /// the container's name.
    pub arity: i16,
    /// What it does and when it may run.
    pub flags: Flags,
    /// ACL categories, those that follow from the flags included.
    pub acl: AclCategories,
    /// Where its keys are.
    pub keys: &'static [KeySpec],
    /// First key, last key (negative: from the end) and step, as old clients want them; all 0 without such keys.
    pub legacy_keys: (i16, i16, i16),
    /// The worst that repeating it can do, whatever its options; see [`effect_of`](crate::effect_of).
    pub effect: SideEffect,
    /// The group it is documented under.
    pub group: Group,
    /// The version of Redis (or Valkey, or Towline) that had it first.
    pub since: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Cost in O() notation.
    pub complexity: &'static str,
    /// Arguments after the name, as the command reference writes them.
    pub syntax: &'static str,
    /// Hints for clients and proxies (`request_policy:...`, `nondeterministic_output`).
    pub tips: &'static [&'static str],
    /// Set when newer commands replace it.
    pub deprecated: Option<Deprecation>,
    /// Set when it exists for servers and tests, not for users.
    pub is_internal: bool,
    /// Whether the server has it.
    pub state: State,
    pub(crate) shape: KeyShape,
    pub(crate) subcommands: (u16, u16),
    pub(crate) parent: Option<CommandId>,
}

impl Command {
    /// The subcommands of a container; empty for all others.
    pub fn subcommands(&self) -> &'static [Self] {
        let (start, len) = (usize::from(self.subcommands.0), usize::from(self.subcommands.1));
        &table::ROWS[start..start + len]
    }

    /// Says whether this is a container, which cannot run without a subcommand unless its arity allows it
    /// (`COMMAND` alone does).
    pub const fn is_container(&self) -> bool {
        self.subcommands.1 != 0
    }

    /// The container of a subcommand.
    pub fn parent(&self) -> Option<&'static Self> {
        self.parent.map(|id| &table::ROWS[id.index()])
    }

    /// The name without its container: `id` for `client|id`.
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, sub)| sub)
    }

    /// Says whether the server has it, which decides if `COMMAND` lists it.
    pub const fn is_implemented(&self) -> bool {
        matches!(self.state, State::Implemented)
    }

    /// Says whether any key can be given (channels of sharded pub/sub do not count).
    pub fn has_keys(&self) -> bool {
        self.keys.iter().any(|spec| !spec.flags.contains(crate::KeyFlags::NOT_KEY))
    }

    /// Says whether `argc` arguments, the name included, are acceptable.
    pub const fn accepts_arity(&self, argc: usize) -> bool {
        let least = self.arity.unsigned_abs() as usize;
        if self.arity >= 0 { argc == least } else { argc >= least }
    }
}

/// Why and since when a command should not be used by new code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecation {
    /// The version that deprecated it.
    pub since: &'static str,
    /// What replaces it.
    pub replaced_by: &'static str,
}

/// Whether the server executes a command today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It does, and lists it.
    Implemented,
    /// It does not yet; the row serves clients and key extraction. The text names the missing part.
    Planned(&'static str),
}

/// What a second execution of the same command may do, in rising order of harm.
///
/// A client whose connection died after the last byte was sent does not know whether the command ran; this
/// class says whether it may ask again. `BLOCKING` and `NO_MULTI` are flags, not classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SideEffect {
    /// Changes nothing that a client can see: repeat at will, anywhere.
    ReadOnly,
    /// Same final state and same reply (`SET key value`): repeat when the caller allows it.
    Idempotent,
    /// Same final state, but the reply tells the second run from the first (`DEL` answers 0): repeat only when
    /// the caller does not need the reply.
    Convergent,
    /// Reads or changes the state of this connection only (`SELECT`, `SUBSCRIBE`, `CLIENT ID`): belongs to the
    /// handshake or to the caller, and means something else on another connection.
    Connection,
    /// Adds up, moves, or hands out data that cannot be had again (`INCR`, `LPUSH`, `GETDEL`, `EXEC`): never repeat.
    NonIdempotent,
    /// Changes the server (`CONFIG SET`, `FLUSHALL`, `SHUTDOWN`): never repeat.
    Admin,
}

/// The groups of the command reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// Keys of any type.
    Generic,
    /// Strings.
    String,
    /// Bitmaps.
    Bitmap,
    /// Lists.
    List,
    /// Hashes.
    Hash,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// HyperLogLogs.
    HyperLogLog,
    /// Geospatial indexes.
    Geo,
    /// Streams.
    Stream,
    /// Publish and subscribe.
    PubSub,
    /// Transactions.
    Transactions,
    /// Scripts and functions.
    Scripting,
    /// Connections.
    Connection,
    /// The server itself.
    Server,
    /// The cluster.
    Cluster,
    /// JSON documents: a module.
    Json,
    /// Search and queries: a module.
    Search,
    /// Time series: a module.
    TimeSeries,
    /// Bloom and cuckoo filters, sketches: a module.
    Probabilistic,
    /// Vector sets: a module that Redis 8 has built in.
    VectorSet,
}

impl Group {
    /// The name in `COMMAND DOCS`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::String => "string",
            Self::Bitmap => "bitmap",
            Self::List => "list",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::HyperLogLog => "hyperloglog",
            Self::Geo => "geo",
            Self::Stream => "stream",
            Self::PubSub => "pubsub",
            Self::Transactions => "transactions",
            Self::Scripting => "scripting",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Cluster => "cluster",
            Self::Json => "json",
            Self::Search => "search",
            Self::TimeSeries => "timeseries",
            Self::Probabilistic => "bf",
            Self::VectorSet => "vector_set",
        }
    }

    /// The ACL category that the group's commands share, if any. Modules' groups, and the server, cluster and pub/sub have
    /// none: their commands get theirs from flags or by name.
    pub(crate) const fn acl(self) -> u32 {
        use crate::bits::acl::*;
        match self {
            Self::Generic => KEYSPACE,
            Self::String => STRING,
            Self::Bitmap => BITMAP,
            Self::List => LIST,
            Self::Hash => HASH,
            Self::Set => SET,
            Self::SortedSet => SORTEDSET,
            Self::HyperLogLog => HYPERLOGLOG,
            Self::Geo => GEO,
            Self::Stream => STREAM,
            Self::Transactions => TRANSACTION,
            Self::Scripting => SCRIPTING,
            Self::Connection => CONNECTION,
            Self::PubSub | Self::Server | Self::Cluster => 0,
            Self::Json | Self::Search | Self::TimeSeries | Self::Probabilistic | Self::VectorSet => 0,
        }
    }
}
