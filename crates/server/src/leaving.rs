//! Values and tables on their way out.
//!
//! Owns: freeing what commands removed, small things at once and large ones on a thread of their own, and the count of what
//! is not free yet. Does **not** own the decision to remove anything.

use crate::memory::thread_net_bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use towline_store::entry::Entry;
use towline_store::table::Table;
use towline_store::value::{Value, ValueRef};

/// Elements and entries that are freed at once, a few hundred microseconds' work; more are freed on a thread of their own.
const FREE_INLINE_MAX: usize = 4096;

/// Counts what is being freed elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    bytes: AtomicU64,
    pending: AtomicU64,
    freed: AtomicU64,
    /// What the freeing threads allocated minus what they freed.
    net_bytes: AtomicI64,
}

impl Leaving {
    /// Bytes of values that count as gone, though they are not free yet.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether something is not free yet.
    pub(crate) fn is_any(&self) -> bool {
        self.pending.load(Ordering::Acquire) > 0
    }

    /// Values and tables that were freed elsewhere, and those that are not free yet.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.freed.load(Ordering::Relaxed), self.pending.load(Ordering::Relaxed))
    }

    /// What the freeing threads allocated minus what they freed, so that the sum over all threads is exact at once.
    pub(crate) fn net_bytes(&self) -> i64 {
        self.net_bytes.load(Ordering::Relaxed)
    }

    /// Frees values and tables: here if that is little work. The caller holds no slot.
    pub(crate) fn free(this: &Arc<Self>, values: Vec<Value>, tables: Vec<Table<Entry>>) {
        let elements: usize = values.iter().map(|value| value.as_ref().elements()).sum();
        let entries: usize = tables.iter().map(Table::len).sum();
        if elements.saturating_add(entries) <= FREE_INLINE_MAX {
            return;
        }
        let values = values.into_iter().map(|value| Part::new(Some(value), None, this));
        let tables = tables.into_iter().map(|table| Part::new(None, Some(table), this));
        let parts: Vec<Part> = values.chain(tables).collect();
        // Without a thread to be had, the closure and the parts in it are dropped here: late but right.
        let _ = std::thread::Builder::new().name("free".into()).spawn(move || {
            for mut part in parts {
                let before = thread_net_bytes();
                part.free();
                // Before the part stops counting as not free yet: who looks in between must not see too little free.
                part.leaving.net_bytes.fetch_add(thread_net_bytes() - before, Ordering::Relaxed);
            }
        });
    }
}

/// Something that counts as not free yet.
#[derive(Debug)]
struct Part {
    value: Option<Value>,
    table: Option<Table<Entry>>,
    bytes: u64,
    leaving: Arc<Leaving>,
}

impl Part {
    fn new(value: Option<Value>, table: Option<Table<Entry>>, leaving: &Arc<Leaving>) -> Self {
        // Of a table it is not known: a walk over all entries would cost as much as freeing them.
        let bytes = value.as_ref().map_or(0, |value| value_bytes(value.as_ref()));
        leaving.bytes.fetch_add(bytes, Ordering::Relaxed);
        leaving.pending.fetch_add(1, Ordering::Relaxed);
        Self { value, table, bytes, leaving: Arc::clone(leaving) }
    }

    fn free(&mut self) {
        drop(self.value.take());
        drop(self.table.take());
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.free();
        self.leaving.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.leaving.freed.fetch_add(1, Ordering::Relaxed);
        self.leaving.pending.fetch_sub(1, Ordering::Release);
    }
}

/// Bytes of a value by its structure's own account.
fn value_bytes(value: ValueRef<'_>) -> u64 {
    let bytes = match value {
        ValueRef::String(text) => text.len(),
        ValueRef::List(list) => list.mem_bytes(),
        ValueRef::Hash(hash) => hash.mem_bytes(),
        ValueRef::Set(set) => set.mem_bytes(),
        ValueRef::Zset(zset) => zset.mem_bytes(),
    };
    bytes as u64
}

/// Something that stays "not free yet" until it is dropped.
#[cfg(test)]
pub(crate) fn hold_back(leaving: &Arc<Leaving>, bytes: usize) -> impl Drop + use<> {
    Part::new(Some(Value::Bytes(vec![0; bytes])), None, leaving)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_elsewhere_counts_until_it_is() {
        let leaving = Arc::new(Leaving::default());
        let part = hold_back(&leaving, 1000);
        assert_eq!((leaving.bytes(), leaving.counts(), leaving.is_any()), (1000, (0, 1), true));
        drop(part);
        assert_eq!((leaving.bytes(), leaving.counts(), leaving.is_any()), (0, (1, 0), false));
    }

    #[test]
    fn little_work_is_done_at_once() {
        let leaving = Arc::new(Leaving::default());
        Leaving::free(&leaving, vec![Value::Bytes(vec![0; 1000])], vec![Table::default()]);
        assert_eq!((leaving.counts(), leaving.net_bytes()), ((0, 0), 0));
    }
}
