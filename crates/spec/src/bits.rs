//! The three bit sets of a row: command flags, ACL categories and key flags.
//!
//! Owns their names on the wire. Does not own which command has which bit: that is the table.

/// Defines a bit set over `u32`: named constants, the usual set operations and the wire names in order.
///
/// The `raw` module holds the same bits as plain numbers, because `|` on a user type is not `const` and the
/// table is.
macro_rules! bit_set {
    (
        $(#[$meta:meta])* pub struct $set:ident, raw $raw:ident {
            $($(#[$bit_meta:meta])* $bit:ident = $shift:literal, $wire:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $set(u32);

        impl $set {
            /// The set without members.
            pub const EMPTY: Self = Self(0);
            $($(#[$bit_meta])* pub const $bit: Self = Self(1 << $shift);)*
            /// Every member with its name on the wire, in the order in which replies list them.
            pub const NAMES: &'static [(Self, &'static str)] = &[$((Self::$bit, $wire)),*];

            pub(crate) const fn from_raw(bits: u32) -> Self {
                Self(bits)
            }

            /// The bits as a number; its meaning is private to this version of the crate.
            pub const fn bits(self) -> u32 {
                self.0
            }

            /// Says whether every member of `other` is in this set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Says whether the sets share a member.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Says whether the set has no member.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Both sets' members.
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// This set without the members of `other`.
            pub const fn difference(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// The wire names of the members, in the order of [`Self::NAMES`].
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter().filter(move |(bit, _)| self.contains(*bit)).map(|(_, name)| *name)
            }

            /// The member with this wire name, in any case.
            pub fn by_name(name: &[u8]) -> Option<Self> {
                Self::NAMES
                    .iter()
                    .find(|(_, wire)| wire.as_bytes().eq_ignore_ascii_case(name))
                    .map(|(bit, _)| *bit)
            }
        }

        impl std::ops::BitOr for $set {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl std::fmt::Debug for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_set().entries(self.names()).finish()
            }
        }

        #[allow(dead_code, reason = "the table uses most bits; derived ones are set by the builder")]
        pub(crate) mod $raw {
            $(pub(crate) const $bit: u32 = 1 << $shift;)*
        }
    };
}

bit_set! {
    /// What a command does and when it may run, as `COMMAND INFO` shows it.
    pub struct Flags, raw flag {
        /// May change a key.
        WRITE = 0, "write";
        /// Reads keys and changes none.
        READONLY = 1, "readonly";
        /// Refused when memory is over its limit.
        DENYOOM = 2, "denyoom";
        /// For administrators.
        ADMIN = 3, "admin";
        /// Publish and subscribe.
        PUBSUB = 4, "pubsub";
        /// Not callable from a script.
        NOSCRIPT = 5, "noscript";
        /// May wait for other clients.
        BLOCKING = 6, "blocking";
        /// Allowed while a data set is being loaded.
        LOADING = 7, "loading";
        /// Allowed on a replica whose data is out of date.
        STALE = 8, "stale";
        /// Hidden from `MONITOR`.
        SKIP_MONITOR = 9, "skip_monitor";
        /// Hidden from the slow log.
        SKIP_SLOWLOG = 10, "skip_slowlog";
        /// Accepts keys of a slot that is being imported, as if `ASKING` came first.
        ASKING = 11, "asking";
        /// Constant or logarithmic work.
        FAST = 12, "fast";
        /// Allowed before authentication.
        NO_AUTH = 13, "no_auth";
        /// Replicated although it writes no key of the data set.
        MAY_REPLICATE = 14, "may_replicate";
        /// Valid without any key, although it has key positions.
        NO_MANDATORY_KEYS = 15, "no_mandatory_keys";
        /// Not allowed while a data set is being loaded in the background.
        NO_ASYNC_LOADING = 16, "no_async_loading";
        /// Not allowed inside `MULTI`.
        NO_MULTI = 17, "no_multi";
        /// Some key positions depend on the arguments; set by the builder, not by rows.
        MOVABLEKEYS = 18, "movablekeys";
        /// Allowed while a script runs over its time.
        ALLOW_BUSY = 19, "allow_busy";
        /// Reaches keys that its arguments do not name.
        TOUCHES_ARBITRARY_KEYS = 20, "touches_arbitrary_keys";
    }
}

impl Flags {
    /// The flags that `COMMAND` shows; the others steer the server only.
    pub const fn shown(self) -> Self {
        self.difference(Self::MAY_REPLICATE.union(Self::TOUCHES_ARBITRARY_KEYS))
    }
}

bit_set! {
    /// ACL categories, named without the `@` sign.
    pub struct AclCategories, raw acl {
        /// Keys of any type.
        KEYSPACE = 0, "keyspace";
        /// Reads keys.
        READ = 1, "read";
        /// Writes keys.
        WRITE = 2, "write";
        /// Sets.
        SET = 3, "set";
        /// Sorted sets.
        SORTEDSET = 4, "sortedset";
        /// Lists.
        LIST = 5, "list";
        /// Hashes.
        HASH = 6, "hash";
        /// Strings.
        STRING = 7, "string";
        /// Bitmaps.
        BITMAP = 8, "bitmap";
        /// HyperLogLogs.
        HYPERLOGLOG = 9, "hyperloglog";
        /// Geospatial indexes.
        GEO = 10, "geo";
        /// Streams.
        STREAM = 11, "stream";
        /// Publish and subscribe.
        PUBSUB = 12, "pubsub";
        /// Administration.
        ADMIN = 13, "admin";
        /// Flagged fast.
        FAST = 14, "fast";
        /// Not flagged fast.
        SLOW = 15, "slow";
        /// May block.
        BLOCKING = 16, "blocking";
        /// Needs care for its cost or its power.
        DANGEROUS = 17, "dangerous";
        /// Affects connections.
        CONNECTION = 18, "connection";
        /// Transactions.
        TRANSACTION = 19, "transaction";
        /// Scripts and functions.
        SCRIPTING = 20, "scripting";
    }
}

bit_set! {
    /// How a command treats one of its keys, as `COMMAND GETKEYSANDFLAGS` shows it.
    pub struct KeyFlags, raw key_flag {
        /// Reads the value and changes nothing.
        RO = 0, "RO";
        /// Reads or keeps part of the value and changes it.
        RW = 1, "RW";
        /// Replaces the value without reading it.
        OW = 2, "OW";
        /// Removes the key.
        RM = 3, "RM";
        /// Gives data of the value to the user, in the reply or in another key.
        ACCESS = 4, "access";
        /// Changes data of the value.
        UPDATE = 5, "update";
        /// Adds data and changes none.
        INSERT = 6, "insert";
        /// Removes data.
        DELETE = 7, "delete";
        /// Not a key, but it decides the slot (a sharded channel).
        NOT_KEY = 8, "not_key";
        /// The spec does not find every key that it stands for.
        INCOMPLETE = 9, "incomplete";
        /// The flags depend on the arguments.
        VARIABLE_FLAGS = 10, "variable_flags";
    }
}
