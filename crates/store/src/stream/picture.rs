//! One key's value as a payload for `RESTORE`, made piece by piece while its slot is free in between.
//!
//! Owns: the pieces' order. Does **not** own keeping the value as it is meanwhile: the caller holds back who would change it,
//! or notices, and begins anew.

use super::image::{Piece, is_piecewise, seal, write_object};
use super::partial::Partial;
use crate::entry::Entry;
use crate::slot::Tables;

/// A value that is being written; see the module's description. Made by [`crate::keyspace::Keyspace::picture`].
#[derive(Debug)]
pub struct Picture {
    expires_at_ms: Option<u64>,
    access: u32,
    object: Vec<u8>,
    /// What is left, if the value is not complete.
    rest: Option<Box<Partial>>,
    piece: Piece,
}

impl Picture {
    /// Begins with an entry of this database: a small value is complete at once.
    pub(crate) fn begin(db: u8, hash: u64, entry: &Entry, piece: Piece) -> Self {
        let (expires_at_ms, access) = (entry.expires_at_ms(), entry.access());
        let mut object = Vec::new();
        let rest = if is_piecewise(entry.value_ref(), piece) {
            let partial = Partial::new(db, db, hash, entry);
            object.extend_from_slice(partial.head());
            Some(Box::new(partial))
        } else {
            write_object(&mut object, entry.value_ref());
            None
        };
        Self { expires_at_ms, access, object, rest, piece }
    }

    /// When the key expires, in unix milliseconds.
    pub fn expires_at_ms(&self) -> Option<u64> {
        self.expires_at_ms
    }

    /// The key's access bits (see [`Entry::access`]).
    pub fn access(&self) -> u32 {
        self.access
    }

    /// Whether nothing is left to be written.
    pub fn is_complete(&self) -> bool {
        self.rest.is_none()
    }

    /// Whether the next piece needs the slot: a long string does not, since writers copy it before they change it.
    pub fn needs_slot(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.needs_slot())
    }

    /// Makes room for the next piece. Called without the slot, so that nobody waits while the buffer moves.
    pub fn make_room(&mut self) {
        /// What a piece may be larger than its bound, unless a single element is.
        const SLACK_BYTES: usize = 4096;
        self.object.reserve(self.piece.bytes + SLACK_BYTES);
    }

    /// Writes the next piece of a value that does not need its slot.
    pub fn advance(&mut self) {
        self.advance_in(&Tables::default());
    }

    /// Writes the next piece.
    pub(crate) fn advance_in(&mut self, tables: &Tables) {
        let Some(rest) = &mut self.rest else { return };
        if rest.write_elements(tables, &mut self.object, self.piece.elements, self.piece.bytes) {
            self.rest = None;
        }
    }

    /// The payload of a complete value. Reads all of it, for the checksum.
    pub fn into_payload(mut self) -> Vec<u8> {
        seal(&mut self.object);
        self.object
    }
}
