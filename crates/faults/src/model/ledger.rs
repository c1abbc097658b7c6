//! What the model server executed, in order.
//!
//! Owns the entries and the indexes over them: by id, by key, by connection. Does not own execution, nor what a history must
//! look like: a checker asks and judges.

use std::collections::BTreeMap;

use bytes::Bytes;
use towline_sansio::Instant;

use super::ConnectionId;

/// The marker of an id within an argument; see [`id_of`].
const ID_MARKER: &[u8] = b"id:";

/// One executed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place among all executed commands, from 0, across restarts.
    pub sequence: u64,
    /// The connection that sent it.
    pub connection: ConnectionId,
    /// Which life of the server executed it: 0 until the first restart.
    pub generation: u64,
    /// When it was executed. For a command that waited (`BLPOP`), when it was served or timed out.
    pub at: Instant,
    /// Its arguments, the name first.
    pub args: Box<[Bytes]>,
    /// The id among its arguments, see [`id_of`].
    pub id: Option<u64>,
    /// The sequence number of the `EXEC` that it was part of. The `EXEC` itself stands behind its commands and is not
    /// part of itself.
    pub transaction: Option<u64>,
    /// Whether it was answered with an error and therefore changed nothing (`WRONGTYPE`, a value that is no integer).
    pub failed: bool,
}

/// The id of a command: the number at the end of the first argument that ends with `id:` and decimal digits, where `id:` begins
/// the argument or follows a byte that is neither letter nor digit. So `id:7`, `counter:id:7` and `job/id:7` have the id
/// 7, `grid:7` has none.
pub fn id_of<A: AsRef<[u8]>>(args: &[A]) -> Option<u64> {
    args.iter().find_map(|arg| id_in(arg.as_ref()))
}

fn id_in(arg: &[u8]) -> Option<u64> {
    let digits = arg.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (front, digits) = arg.split_at(arg.len() - digits);
    let before = front.strip_suffix(ID_MARKER)?;
    if before.last().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Every executed command, in order, with indexes by id, by key and by connection.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    by_id: BTreeMap<u64, Vec<usize>>,
    by_key: BTreeMap<Bytes, Vec<usize>>,
    by_connection: BTreeMap<ConnectionId, Vec<usize>>,
}

impl Ledger {
    /// All entries in the order of execution.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How often the command with this id was executed, failures included.
    pub fn execution_count(&self, id: u64) -> usize {
        self.by_id.get(&id).map_or(0, Vec::len)
    }

    /// The executions of the command with this id, in order.
    pub fn executions(&self, id: u64) -> impl Iterator<Item = &Entry> {
        self.by_id.get(&id).into_iter().flatten().map(|&index| &self.entries[index])
    }

    /// Every id that was executed, in ascending order, with its number of executions.
    pub fn ids(&self) -> impl Iterator<Item = (u64, usize)> {
        self.by_id.iter().map(|(id, entries)| (*id, entries.len()))
    }

    /// The commands that named this key, in the order of execution. Keys of all databases are one.
    pub fn order_of(&self, key: &[u8]) -> impl Iterator<Item = &Entry> {
        self.by_key.get(key).into_iter().flatten().map(|&index| &self.entries[index])
    }

    /// Every key that an executed command named, in byte order.
    pub fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.by_key.keys()
    }

    /// The commands that this connection sent, in the order of execution.
    pub fn executed_by(&self, connection: ConnectionId) -> impl Iterator<Item = &Entry> {
        self.by_connection.get(&connection).into_iter().flatten().map(|&index| &self.entries[index])
    }

    /// The sequence number that the next entry gets.
    pub(super) fn next_sequence(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Appends an entry that names `keys`, and gives it its number.
    pub(super) fn record(&mut self, mut entry: Entry, keys: &[Bytes]) {
        let index = self.entries.len();
        entry.sequence = index as u64;
        if let Some(id) = entry.id {
            self.by_id.entry(id).or_default().push(index);
        }
        self.by_connection.entry(entry.connection).or_default().push(index);
        for key in keys {
            let indexes = self.by_key.entry(key.clone()).or_default();
            if indexes.last() != Some(&index) {
                indexes.push(index);
            }
        }
        self.entries.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_wherever_a_command_has_room_for_one() {
        assert_eq!(id_of(&["SET", "k", "id:17"]), Some(17));
        assert_eq!(id_of(&["INCR", "counter:id:3"]), Some(3));
        assert_eq!(id_of(&["INCR", "job/id:0", "id:9"]), Some(0), "the first one counts");
        for none in ["id:", "grid:7", "id:7x", "id:99999999999999999999999", "", "7"] {
            assert_eq!(id_of(&["GET", none]), None, "{none}");
        }
    }

    fn entry(args: &[&'static str]) -> Entry {
        Entry {
            sequence: 0,
            connection: ConnectionId(1),
            generation: 0,
            at: Instant::ZERO,
            args: args.iter().map(|arg| Bytes::from_static(arg.as_bytes())).collect(),
            id: id_of(args),
            transaction: None,
            failed: false,
        }
    }

    #[test]
    fn the_indexes_keep_the_order_of_execution() {
        let mut ledger = Ledger::default();
        let (a, b) = (Bytes::from_static(b"a"), Bytes::from_static(b"b"));
        ledger.record(entry(&["SET", "a", "id:1"]), std::slice::from_ref(&a));
        ledger.record(entry(&["MSET", "a", "id:2", "b", "x"]), &[a.clone(), b, a]);
        ledger.record(entry(&["SET", "a", "id:1"]), &[Bytes::from_static(b"a")]);
        assert_eq!(ledger.ids().collect::<Vec<_>>(), [(1, 2), (2, 1)]);
        assert_eq!(ledger.execution_count(1), 2);
        assert_eq!(ledger.executions(1).map(|entry| entry.sequence).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(ledger.order_of(b"a").map(|entry| entry.sequence).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(ledger.order_of(b"b").count(), 1);
        assert_eq!(ledger.order_of(b"c").count(), 0);
        assert_eq!(
            ledger.executed_by(ConnectionId(1)).map(|entry| entry.sequence).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        assert_eq!(ledger.executed_by(ConnectionId(2)).count(), 0);
        assert_eq!(ledger.keys().count(), 2);
    }
}
