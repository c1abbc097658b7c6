//! Which keys are on their way, and which commands that holds back.
//!
//! Owns: the marks. Does **not** own the moves that set them.
//!
//! A key is marked from the moment in which its value is read until the target's answer is known. Commands that read it are
//! served; those that would change it wait at its [`Parking`]. Marks are set, looked for and removed under the lock of the
//! key's slot; a mark holds in all databases, so that nothing can reach the key by another name of its database.

use crate::command::Args;
use crate::parking::Parking;
use hashbrown::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use towline_cluster::key_slot;
use towline_spec::{Command, Flags, KeyFlags, for_each_key};

/// Parts of the table, each with a lock of its own: enough that workers seldom meet.
const PARTS: usize = 64;

type Part = HashMap<Box<[u8]>, Arc<Parking>>;

/// The keys that are on their way.
#[derive(Debug)]
pub(crate) struct Marks {
    count: AtomicUsize,
    parts: Box<[Mutex<Part>]>,
}

impl Default for Marks {
    fn default() -> Self {
        Self { count: AtomicUsize::new(0), parts: (0..PARTS).map(|_| Mutex::default()).collect() }
    }
}

impl Marks {
    fn part(&self, key: &[u8]) -> MutexGuard<'_, Part> {
        let part = usize::from(key_slot(key)) % PARTS;
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any key is on its way. Looked at under the slots of a command, the answer holds for their keys.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Marks a key, whose slot is held.
    ///
    /// # Errors
    /// Where to wait, if it is on its way already.
    pub(crate) fn set(&self, key: &[u8]) -> Result<Arc<Parking>, Arc<Parking>> {
        let mut part = self.part(key);
        if let Some(parking) = part.get(key) {
            return Err(Arc::clone(parking));
        }
        let parking = Arc::new(Parking::default());
        part.insert(key.into(), Arc::clone(&parking));
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(parking)
    }

    /// Removes the mark of a key, whose slot is held. The caller then ends the waiting.
    pub(crate) fn clear(&self, key: &[u8]) {
        if self.part(key).remove(key).is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Where a command that changes this key has to wait, if it has to.
    pub(crate) fn of(&self, key: &[u8]) -> Option<Arc<Parking>> {
        self.part(key).get(key).cloned()
    }

    /// Where some key's followers wait, if any is on its way.
    fn first(&self) -> Option<Arc<Parking>> {
        let parts = self.parts.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner));
        parts.into_iter().find_map(|part| part.values().next().cloned())
    }

    /// Where the command, whose slots are held, has to wait because it would change a key that is on its way.
    #[cold]
    pub(crate) fn holding(&self, command: &Command, args: Args<'_>) -> Option<Arc<Parking>> {
        if !command.flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE)) {
            return None;
        }
        // Flushing may come in between: then the key is moved first and the rest is flushed after that. An exchange of
        // databases would give the key another place, where its end would not find it.
        if command.name == "swapdb" {
            return self.first();
        }
        let mut found = None;
        // Arguments from which no keys can be read are refused by the handler before it touches one.
        let _ = for_each_key(command, &args, |index, flags| {
            if found.is_none() && !flags.intersects(KeyFlags::RO.union(KeyFlags::NOT_KEY)) {
                found = self.of(args.get(index));
            }
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::OwnedArgs;

    #[test]
    fn a_table_of_commands_on_a_key_that_is_on_its_way() {
        let marks = Marks::default();
        assert!(!marks.any());
        let parking = marks.set(b"k").unwrap();
        assert!(marks.any() && marks.set(b"k").is_err());
        let is_held = |line: &str| {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let args = OwnedArgs::from_slices(&words);
            let command = towline_spec::resolve(&args.args()).unwrap();
            marks.holding(command, args.args()).is_some_and(|found| Arc::ptr_eq(&found, &parking))
        };
        let held = [
            "SET k v",
            "DEL a k",
            "RENAME a k",
            "RENAME k a",
            "COPY a k",
            "BLPOP a k 0",
            "BLMOVE a k LEFT LEFT 0",
            "EXPIRE k 1",
            "SORT a STORE k",
            "PFCOUNT k",
            "GETEX k PERSIST",
            "SWAPDB 0 1",
            "MOVE k 1",
            "RESTORE k 0 x",
            "MIGRATE 127.0.0.1 1 k 0 1",
            "ZUNIONSTORE k 1 a",
        ];
        let free = [
            "GET k",
            "MGET a k",
            "DUMP k",
            "EXISTS k",
            "COPY k a",
            "SET a k",
            "TTL k",
            "LRANGE k 0 -1",
            "SORT k STORE a",
            "FLUSHALL",
            "ZUNIONSTORE a 1 k",
        ];
        for line in held {
            assert!(is_held(line), "{line}");
        }
        for line in free {
            assert!(!is_held(line), "{line}");
        }
        marks.clear(b"k");
        assert!(!marks.any() && !is_held("SET k v"));
    }
}
