//! The rows, one file per group, and the table that they make at compile time.
//!
//! Owns the order of rows and the index by name. To add a command: add a row to its group's file; nothing else
//! in this crate lists commands.

use crate::command::{Command, CommandId, Group};
use crate::row::Row;

mod bitmaps;
mod cluster;
mod connection;
mod geo;
mod hashes;
mod hyperloglog;
mod keys;
mod lists;
mod pubsub;
mod scripting;
mod server;
mod sets;
mod streams;
mod strings;
mod transactions;
mod zsets;

/// What every file of rows needs.
pub(crate) mod prelude {
    pub(crate) use crate::bits::acl;
    pub(crate) use crate::bits::flag::*;
    pub(crate) use crate::bits::key_flag::*;
    pub(crate) use crate::command::SideEffect::*;
    pub(crate) use crate::keys::{KeyShape, KeySpec};
    pub(crate) use crate::row::{Row, after, cmd, counted, key, keys, unknown};

    /// No flags.
    pub(crate) const NONE: u32 = 0;

    /// One key, whose data goes to the user.
    pub(crate) const READ_1: &[KeySpec] = &[key(1, RO | ACCESS)];
    /// The same at argument 2, for subcommands.
    pub(crate) const READ_2: &[KeySpec] = &[key(2, RO | ACCESS)];
    /// All arguments are keys, whose data goes to the user.
    pub(crate) const READ_ALL: &[KeySpec] = &[keys(1, -1, 1, RO | ACCESS)];
    /// A count and that many keys, whose data goes to the user.
    pub(crate) const READ_COUNTED_1: &[KeySpec] = &[counted(1, 1, RO | ACCESS)];
    /// One key, of which only facts (type, size, expiry) go to the user.
    pub(crate) const META_1: &[KeySpec] = &[key(1, RO)];
    /// The same at argument 2, for subcommands.
    pub(crate) const META_2: &[KeySpec] = &[key(2, RO)];
    /// All arguments are keys, of which only facts go to the user.
    pub(crate) const META_ALL: &[KeySpec] = &[keys(1, -1, 1, RO)];
    /// One key, in whose value something changes.
    pub(crate) const CHANGE_1: &[KeySpec] = &[key(1, RW | UPDATE)];
    /// One key, in whose value something changes and is shown.
    pub(crate) const EXCHANGE_1: &[KeySpec] = &[key(1, RW | ACCESS | UPDATE)];
    /// One key, to whose value something is added.
    pub(crate) const ADD_1: &[KeySpec] = &[key(1, RW | INSERT)];
    /// One key, from whose value something is removed.
    pub(crate) const REMOVE_1: &[KeySpec] = &[key(1, RW | DELETE)];
    /// One key, from whose value something is removed and shown.
    pub(crate) const TAKE_1: &[KeySpec] = &[key(1, RW | ACCESS | DELETE)];
    /// One key, whose value is replaced.
    pub(crate) const REPLACE_1: &[KeySpec] = &[key(1, OW | UPDATE)];
}

const GROUPS: &[(Group, &[Row])] = &[
    (Group::String, strings::ROWS),
    (Group::Bitmap, bitmaps::ROWS),
    (Group::List, lists::ROWS),
    (Group::Hash, hashes::ROWS),
    (Group::Set, sets::ROWS),
    (Group::SortedSet, zsets::ROWS),
    (Group::Generic, keys::ROWS),
    (Group::HyperLogLog, hyperloglog::ROWS),
    (Group::Geo, geo::ROWS),
    (Group::Transactions, transactions::ROWS),
    (Group::PubSub, pubsub::ROWS),
    (Group::Connection, connection::ROWS),
    (Group::Server, server::ROWS),
    (Group::Cluster, cluster::ROWS),
    (Group::Scripting, scripting::ROWS),
    (Group::Stream, streams::ROWS),
];

const fn count_top_level() -> usize {
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        count += GROUPS[group].1.len();
        group += 1;
    }
    count
}

const fn count_all() -> usize {
    let (mut count, mut group) = (count_top_level(), 0);
    while group < GROUPS.len() {
        let rows = GROUPS[group].1;
        let mut row = 0;
        while row < rows.len() {
            count += rows[row].subcommand_rows().len();
            row += 1;
        }
        group += 1;
    }
    count
}

/// How many commands there are without subcommands; their ids come first.
pub(crate) const TOP_LEVEL_COUNT: usize = count_top_level();
/// How many rows there are.
pub(crate) const COUNT: usize = count_all();

/// Every row: the commands group by group, then the subcommands of each container in the same order.
pub(crate) static ROWS: [Command; COUNT] = build_rows();

const fn build_rows() -> [Command; COUNT] {
    const FILLER: Command =
        crate::row::cmd("", 0, 0).effect(crate::SideEffect::ReadOnly).build(0, Group::Generic, None, (0, 0));
    let mut rows = [FILLER; COUNT];
    let (mut id, mut subcommand_id, mut group) = (0, TOP_LEVEL_COUNT, 0);
    while group < GROUPS.len() {
        let (name, group_rows) = GROUPS[group];
        let mut row = 0;
        while row < group_rows.len() {
            let subcommands = group_rows[row].subcommand_rows();
            let span = (subcommand_id as u16, subcommands.len() as u16);
            rows[id] = group_rows[row].build(id as u16, name, None, span);
            let mut sub = 0;
            while sub < subcommands.len() {
                rows[subcommand_id] =
                    subcommands[sub].build(subcommand_id as u16, name, Some(CommandId(id as u16)), (0, 0));
                subcommand_id += 1;
                sub += 1;
            }
            id += 1;
            row += 1;
        }
        group += 1;
    }
    rows
}

/// Buckets of the index: a power of two with a load below one third, so that most names sit in their own bucket.
const BUCKETS: usize = 1024;
const _: () = assert!(TOP_LEVEL_COUNT * 3 < BUCKETS && COUNT < u16::MAX as usize);

/// A name in lower case, in the form in which lookups compare: its length, first bytes and last bytes.
///
/// The two words overlap or meet in names of up to 16 bytes, so that they are the whole name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Folded {
    head: u64,
    tail: u64,
    len: usize,
}

/// The longest name that [`Folded`] holds completely.
const FOLDED_LEN_MAX: usize = 16;

impl Folded {
    #[inline]
    const fn new(name: &[u8]) -> Self {
        let (head, tail) = if let (Some(head), Some(tail)) = (name.first_chunk::<8>(), name.last_chunk::<8>())
        {
            (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
        } else if let (Some(head), Some(tail)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
            (u32::from_le_bytes(*head) as u64, u32::from_le_bytes(*tail) as u64)
        } else {
            match name {
                [] => (0, 0),
                [only] => (*only as u64, 0),
                [first, last] => (*first as u64, *last as u64),
                [first, middle, last, ..] => (*first as u64, (*middle as u64) << 8 | *last as u64),
            }
        };
        Self { head: to_lower(head), tail: to_lower(tail), len: name.len() }
    }

    #[inline]
    const fn bucket(self) -> usize {
        let mixed = self.head.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ self.tail.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
            ^ (self.len as u64).wrapping_mul(0x1656_67b1_9e37_79f9);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKETS.trailing_zeros())) as usize
    }
}

/// Lower-cases the ASCII capitals among eight bytes and leaves every other byte as it is.
#[inline]
const fn to_lower(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * ONES;
    // With the top bits cleared no byte carries into the next: its top bit tells the comparison's outcome.
    let low = word & !TOP;
    let from_a = low + (0x80 - b'A' as u64) * ONES;
    let past_z = low + (0x7f - b'Z' as u64) * ONES;
    let capitals = from_a & !past_z & !word & TOP;
    word | capitals >> 2
}

/// One place of the index; a free one has the length 0, which no name has.
#[derive(Clone, Copy)]
struct Bucket {
    name: Folded,
    id: u16,
}

/// Commands by the hash of their names; collisions go to the next bucket.
static INDEX: [Bucket; BUCKETS] = build_index();

const fn build_index() -> [Bucket; BUCKETS] {
    let mut index = [Bucket { name: Folded::new(b""), id: 0 }; BUCKETS];
    let mut id = 0;
    while id < TOP_LEVEL_COUNT {
        let name = Folded::new(NAMES[id].as_bytes());
        let mut bucket = name.bucket();
        while index[bucket].name.len != 0 {
            bucket = (bucket + 1) % BUCKETS;
        }
        index[bucket] = Bucket { name, id: id as u16 };
        id += 1;
    }
    index
}

/// The names alone, for compile-time use: a `const` may not read a `static`.
const NAMES: [&str; COUNT] = {
    let rows = build_rows();
    let mut names = [""; COUNT];
    let mut id = 0;
    while id < COUNT {
        names[id] = rows[id].name;
        id += 1;
    }
    names
};

#[inline]
pub(crate) fn lookup(name: &[u8]) -> Option<&'static Command> {
    let folded = Folded::new(name);
    let mut bucket = folded.bucket();
    // Ends: the index is never full.
    loop {
        let entry = &INDEX[bucket];
        if entry.name.len == 0 {
            return None;
        }
        if entry.name == folded {
            let command = &ROWS[usize::from(entry.id)];
            if name.len() <= FOLDED_LEN_MAX || command.name.as_bytes().eq_ignore_ascii_case(name) {
                return Some(command);
            }
        }
        bucket = (bucket + 1) % BUCKETS;
    }
}

/// The id of a full name at compile time; panics, so does not compile, when there is none.
pub(crate) const fn id(name: &str) -> CommandId {
    let mut id = 0;
    while id < COUNT {
        if equal(NAMES[id].as_bytes(), name.as_bytes()) {
            return CommandId(id as u16);
        }
        id += 1;
    }
    panic!("no command has this name")
}

pub(crate) const fn equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_case_by_words_is_ascii_lower_case() {
        for byte in 0..=u8::MAX {
            for neighbour in [0, b'A', b'z', 0x80, 0xff] {
                let bytes = [byte, neighbour, byte, neighbour, byte, byte, neighbour, byte];
                assert_eq!(
                    to_lower(u64::from_le_bytes(bytes)),
                    u64::from_le_bytes(bytes.map(|byte| byte.to_ascii_lowercase()))
                );
            }
        }
    }

    #[test]
    fn most_names_are_found_at_once() {
        let at_once = ROWS[..TOP_LEVEL_COUNT]
            .iter()
            .filter(|row| INDEX[Folded::new(row.name.as_bytes()).bucket()].id == row.id.0)
            .count();
        assert!(at_once * 10 > TOP_LEVEL_COUNT * 8, "{at_once} of {TOP_LEVEL_COUNT}");
    }
}
