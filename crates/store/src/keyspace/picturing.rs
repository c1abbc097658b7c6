//! Values on their way to other servers.
//!
//! Owns: the way to a value's picture. Does **not** own the picture's bytes (see [`crate::stream::Picture`]).

use super::Keyspace;
use crate::stream::{Picture, Piece};

impl Keyspace<'_> {
    /// Begins to write the value of a key as a payload for `RESTORE`; `None` without a key, or if its time is over. Counts
    /// neither as a hit nor as an access, and removes nothing.
    pub fn picture(&self, key: &[u8], piece: Piece) -> Option<Picture> {
        let (index, hash) = self.locate(key);
        let entry = self.found(index, hash, key)?;
        let is_over = entry.expires_at_ms().is_some_and(|at| at <= self.now_ms);
        (!is_over).then(|| Picture::begin(self.db, hash, &entry, piece))
    }

    /// Writes the next piece of a picture of this key.
    pub fn picture_more(&self, key: &[u8], picture: &mut Picture) {
        picture.advance_in(self.guard(self.locate(key).0));
    }

    /// The waiters of this key are looked at again, if it has any: something kept them from being served before.
    pub fn serve_again(&mut self, key: &[u8]) {
        let index = self.locate(key).0;
        self.wake(index, key);
    }
}
