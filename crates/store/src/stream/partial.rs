//! A large value on its way: its elements as they were at the opening instant, piece by piece, while it changes.
//!
//! Owns: which elements were sent, and saving those that change before they are. Does **not** own the walk over keys (see
//! [`super::tap`]).
//!
//! Whoever is about to change an element calls the matching `before_…` first, under the slot's lock. An element that was
//! not sent yet is encoded there and then; one that is new is noted, so that the walk passes it over. What that costs is of
//! the order of the change itself, whatever the size of the value. A value that is removed as a whole is not freed but
//! handed over ([`Partial::keep`]), at no cost.

use super::batch::{KeyHead, write_begin, write_end, write_part};
use super::image::{FieldForm, Piece, write_element, write_field, write_head, write_scored};
use super::spans::Spans;
use crate::elem::ElemBuf;
use crate::entry::Entry;
use crate::hash::Hash;
use crate::hasher::hash64;
use crate::list::List;
use crate::set::Set;
use crate::slot::Tables;
use crate::table::{Position, Ref, Table};
use crate::value::{Str, Value, ValueRef};
use crate::zset::Zset;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use towline_cluster::Slot;

/// Heap bytes of a noted element beside its own.
const NOTED_BYTES: usize = 32;

/// Where the value is now.
#[derive(Debug)]
enum Place {
    /// Under its key in this database.
    Live(u8),
    /// Under its key in a table that was flushed.
    Flushed(Arc<Table<Entry>>),
    /// Removed from the keyspace.
    Kept(Arc<Value>),
    /// Whatever is to be sent was saved.
    Saved,
}

#[derive(Debug)]
enum Elements {
    /// A string, from this byte on. Writers copy it before they change it.
    Text {
        text: Arc<Vec<u8>>,
        at: usize,
    },
    /// Fields or members in a table; those in `noted` are not to be visited.
    Table {
        position: Position,
        noted: BTreeSet<Box<[u8]>>,
    },
    /// Numbered members below `left`, but for those in `noted`.
    Numbered {
        left: usize,
        noted: BTreeSet<Box<[u8]>>,
    },
    List(Spans),
}

/// A large value on its way.
#[derive(Debug)]
pub(super) struct Partial {
    db: u8,
    key: Box<[u8]>,
    hash: u64,
    expires_at_ms: Option<u64>,
    access: u32,
    head: Vec<u8>,
    form: FieldForm,
    place: Place,
    elements: Elements,
    /// Encoded elements that changed before they were sent, and are sent next. Those of a list are in its spans.
    saved: Vec<u8>,
    noted_bytes: usize,
    is_begun: bool,
}

impl Partial {
    /// Begins with an entry of the database `live`, which was `db` at the opening instant.
    pub(super) fn new(db: u8, live: u8, hash: u64, entry: &Entry) -> Self {
        let value = entry.value_ref();
        let mut head = Vec::new();
        write_head(&mut head, value);
        let (mut form, mut place) = (FieldForm::Plain, Place::Live(live));
        let elements = match value {
            ValueRef::String(text) => {
                place = Place::Saved;
                let text = match text {
                    Str::Shared(text) => Arc::clone(text),
                    text => Arc::new(text.to_vec()),
                };
                Elements::Text { text, at: 0 }
            }
            ValueRef::List(list) => Elements::List(Spans::new(list.len())),
            ValueRef::Zset(zset) => Elements::Numbered { left: zset.len(), noted: BTreeSet::new() },
            ValueRef::Hash(hash) => {
                form = FieldForm::of(hash);
                Elements::Table { position: Position::default(), noted: BTreeSet::new() }
            }
            ValueRef::Set(_) => Elements::Table { position: Position::default(), noted: BTreeSet::new() },
        };
        Self {
            db,
            key: entry.key().into(),
            hash,
            expires_at_ms: entry.expires_at_ms(),
            access: entry.access(),
            head,
            form,
            place,
            elements,
            saved: Vec::new(),
            noted_bytes: 0,
            is_begun: false,
        }
    }

    /// Begins with an entry of a table that was flushed.
    pub(super) fn in_flushed(db: u8, hash: u64, entry: &Entry, table: &Arc<Table<Entry>>) -> Self {
        let mut partial = Self::new(db, db, hash, entry);
        if matches!(partial.place, Place::Live(_)) {
            partial.place = Place::Flushed(Arc::clone(table));
        }
        partial
    }

    /// Whether the value is that of this key of today.
    pub(super) fn is_at(&self, db: u8, hash: u64, key: &[u8]) -> bool {
        matches!(self.place, Place::Live(live) if live == db) && self.hash == hash && *self.key == *key
    }

    /// Heap bytes that it holds because of changes.
    pub(super) fn held_bytes(&self) -> usize {
        let spans = if let Elements::List(spans) = &self.elements { spans.held_bytes() } else { 0 };
        self.saved.len() + self.noted_bytes + spans
    }

    // ---- the value goes elsewhere -----------------------------------------------------------------------------------

    /// The value was taken out of the keyspace.
    pub(super) fn keep(&mut self, value: &Arc<Value>) {
        self.place = Place::Kept(Arc::clone(value));
    }

    /// The table with the key was flushed.
    pub(super) fn flushed(&mut self, db: u8, table: &Arc<Table<Entry>>) {
        if matches!(self.place, Place::Live(live) if live == db) {
            self.place = Place::Flushed(Arc::clone(table));
        }
    }

    /// Two databases were exchanged.
    pub(super) fn swapped(&mut self, a: u8, b: u8) {
        if let Place::Live(live) = &mut self.place {
            *live = if *live == a {
                b
            } else if *live == b {
                a
            } else {
                *live
            };
        }
    }

    /// Encodes all that is left, because the value is about to belong to another key.
    pub(super) fn save_all(&mut self, tables: &Tables) {
        let mut saved = std::mem::take(&mut self.saved);
        while !self.write_elements(tables, &mut saved, usize::MAX, usize::MAX) {}
        (self.saved, self.place) = (saved, Place::Saved);
    }

    // ---- before changes -----------------------------------------------------------------------------------------------

    /// A field is about to be set, removed or given another expiry.
    pub(super) fn before_field(&mut self, hash: &Hash, name: &[u8]) {
        if self.note_in_table(name)
            && let Some(field) = hash.field(name)
        {
            write_field(&mut self.saved, self.form, &field);
        }
    }

    /// A member is about to be added or removed.
    pub(super) fn before_member(&mut self, set: &Set, member: &[u8]) {
        if self.note_in_table(member) && set.contains(member) {
            write_element(&mut self.saved, member);
        }
    }

    /// Notes an element that the walk is not to visit; `false` if it would not anyway.
    fn note_in_table(&mut self, element: &[u8]) -> bool {
        let Elements::Table { position, noted } = &mut self.elements else { return false };
        if position.has_passed(hash64(element)) || noted.contains(element) {
            return false;
        }
        self.noted_bytes += element.len() + NOTED_BYTES;
        noted.insert(element.into())
    }

    /// A member is about to be added or given another score.
    pub(super) fn before_score(&mut self, zset: &Zset, member: &[u8]) {
        let Elements::Numbered { left, noted } = &mut self.elements else { return };
        // A new member gets the next number.
        let number = zset.number(member).unwrap_or(zset.len());
        if number >= *left || noted.contains(member) {
            return;
        }
        if let Some(score) = zset.score(member) {
            write_scored(&mut self.saved, member, score);
        }
        self.noted_bytes += member.len() + NOTED_BYTES;
        noted.insert(member.into());
    }

    /// A member is about to be removed: the last one takes its number.
    pub(super) fn before_removal(&mut self, zset: &Zset, member: &[u8]) {
        let Some(number) = zset.number(member) else { return };
        self.before_score(zset, member);
        let Elements::Numbered { left, noted } = &mut self.elements else { return };
        let last = zset.len() - 1;
        if number < *left
            && last >= *left
            && let Some((moved, _)) = zset.numbered(last)
            && noted.insert(moved.into())
        {
            self.noted_bytes += moved.len() + NOTED_BYTES;
        }
    }

    /// Elements are about to be inserted in front of the one with this index.
    pub(super) fn before_insert(&mut self, at: usize, count: usize) {
        if let Elements::List(spans) = &mut self.elements {
            spans.before_insert(at, count);
        }
    }

    /// Elements are about to be removed from the list.
    pub(super) fn before_cut(&mut self, list: &List, gone: Range<usize>) {
        if let Elements::List(spans) = &mut self.elements {
            spans.before_remove(gone, list);
        }
    }

    /// An element of the list is about to be replaced.
    pub(super) fn before_set(&mut self, list: &List, at: usize) {
        if let Elements::List(spans) = &mut self.elements {
            spans.before_set(at, list);
        }
    }

    // ---- sending --------------------------------------------------------------------------------------------------------

    /// Writes the next piece; `true` when it was the last one.
    pub(super) fn write_piece(
        &mut self,
        slot: Slot,
        tables: &Tables,
        out: &mut Vec<u8>,
        piece: Piece,
    ) -> bool {
        if !self.is_begun {
            self.is_begun = true;
            let Self { db, ref key, expires_at_ms, access, .. } = *self;
            write_begin(out, &KeyHead { slot, db, key, expires_at_ms, access }, &self.head);
        }
        let saved = std::mem::take(&mut self.saved);
        let mut is_done = false;
        write_part(out, |out| {
            out.extend_from_slice(&saved);
            is_done = self.write_elements(tables, out, piece.elements, piece.bytes);
        });
        if is_done {
            write_end(out);
        }
        is_done
    }

    /// The type byte and what stands before the first element.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether what is left can be written without the key's slot.
    pub(super) fn needs_slot(&self) -> bool {
        matches!(self.place, Place::Live(_))
    }

    /// Writes elements, at most `count` and not many more than `bytes` bytes; `true` when none is left.
    pub(super) fn write_elements(
        &mut self,
        tables: &Tables,
        out: &mut Vec<u8>,
        count: usize,
        bytes: usize,
    ) -> bool {
        let live;
        let value = match &self.place {
            Place::Live(db) => {
                live = tables.db(*db).and_then(|part| part.table.get(self.hash, &self.key));
                live.map(Ref::value)
            }
            Place::Flushed(table) => table.get(self.hash, &self.key).map(Ref::value),
            Place::Kept(value) => Some(value.as_ref().as_ref()),
            Place::Saved => None,
        };
        let (form, most) = (self.form, Most { count, end: out.len().saturating_add(bytes) });
        match (&mut self.elements, value) {
            (Elements::Text { text, at }, _) => {
                let end = at.saturating_add(bytes).min(text.len());
                out.extend_from_slice(&text[*at..end]);
                *at = end;
                end == text.len()
            }
            (Elements::List(spans), Some(ValueRef::List(list))) => {
                spans.write_next(out, list, count, bytes);
                spans.is_done()
            }
            (Elements::Table { position, noted }, Some(ValueRef::Hash(hash))) => {
                write_fields(out, hash, form, position, noted, most)
            }
            (Elements::Table { position, noted }, Some(ValueRef::Set(set))) => {
                write_members(out, set, position, noted, most)
            }
            (Elements::Numbered { left, noted }, Some(ValueRef::Zset(zset))) => {
                write_numbered(out, zset, left, noted, most)
            }
            (Elements::List(_) | Elements::Table { .. } | Elements::Numbered { .. }, _) => true,
        }
    }
}

/// Where a piece ends.
#[derive(Debug, Clone, Copy)]
struct Most {
    count: usize,
    /// Length of the output from which on nothing more is written.
    end: usize,
}

fn write_fields(
    out: &mut Vec<u8>,
    hash: &Hash,
    form: FieldForm,
    position: &mut Position,
    noted: &BTreeSet<Box<[u8]>>,
    most: Most,
) -> bool {
    let (mut count, mut buf) = (0, ElemBuf::new());
    hash.walk(position, &mut |field| {
        if !noted.contains(field.name.render(&mut buf)) {
            write_field(out, form, &field);
        }
        count += 1;
        count < most.count && out.len() < most.end
    });
    position.is_done()
}

fn write_members(
    out: &mut Vec<u8>,
    set: &Set,
    position: &mut Position,
    noted: &BTreeSet<Box<[u8]>>,
    most: Most,
) -> bool {
    let mut count = 0;
    set.walk(position, &mut |member| {
        if !noted.contains(member) {
            write_element(out, member);
        }
        count += 1;
        count < most.count && out.len() < most.end
    });
    position.is_done()
}

fn write_numbered(
    out: &mut Vec<u8>,
    zset: &Zset,
    left: &mut usize,
    noted: &BTreeSet<Box<[u8]>>,
    most: Most,
) -> bool {
    *left = (*left).min(zset.len());
    let mut count = 0;
    while *left > 0 && count < most.count && out.len() < most.end {
        *left -= 1;
        count += 1;
        if let Some((member, score)) = zset.numbered(*left)
            && !noted.contains(member)
        {
            write_scored(out, member, score);
        }
    }
    *left == 0
}
