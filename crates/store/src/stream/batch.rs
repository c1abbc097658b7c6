//! What a stream hands over: images and units of effects, as frames in two buffers.
//!
//! Owns: the frames' layout and reading them. Does **not** own their content.
//!
//! ```text
//! image   u8 tag, u8 db, u16 slot, u64 bytes of the body, body
//!         body of Key and Begin: u64 expiry (0: none), u32 access bits, u32 bytes of the key, key, object
//! unit    u32 effects, u64 bytes of the body, body: effects
//! effect  u8 db, u16 slot (0xffff: all), u64 bytes of the command, command
//! ```

use super::image;
use crate::effects::{Effects, Scope};
use crate::entry::Entry;
use std::num::NonZeroU64;
use std::ops::Range;
use towline_cluster::Slot;

const KEY: u8 = 0;
const BEGIN: u8 = 1;
const PART: u8 = 2;
const END: u8 = 3;
const HEAD_BYTES: usize = 12;
/// The slot of an effect on whole databases.
const ALL_SLOTS: u16 = u16::MAX;
const UNIT_HEAD_BYTES: usize = 12;
const EFFECT_HEAD_BYTES: usize = 11;

/// What is known of a key beside its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHead<'a> {
    /// The key's slot.
    pub slot: Slot,
    /// The database that it was in at the opening instant.
    pub db: u8,
    /// The key.
    pub key: &'a [u8],
    /// When it expires, in unix milliseconds.
    pub expires_at_ms: Option<u64>,
    /// Its access bits, whose meaning is the eviction policy's (see [`crate::changes::Settings`]).
    pub access: u32,
}

/// A piece of the snapshot. All of them together, in any order of keys, are the state at the opening instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image<'a> {
    /// A key with its whole value: `object` is an RDB type byte and the RDB encoding of the value, which with a version
    /// and a checksum behind it (see [`restore_payload`]) is what `DUMP` returns.
    Key {
        /// The key.
        head: KeyHead<'a>,
        /// Type byte and value.
        object: &'a [u8],
    },
    /// A key whose value follows in parts, without another key in between: `object` is the type byte and what stands before
    /// the first element (the number of elements; a string's length).
    Begin {
        /// The key.
        head: KeyHead<'a>,
        /// Type byte and number of elements.
        object: &'a [u8],
    },
    /// Whole elements of the value, or bytes of a string. `Begin`'s object and all parts in order are the value's encoding.
    Part {
        /// Encoded elements.
        elements: &'a [u8],
    },
    /// The value is complete.
    End,
}

/// Makes the object of a key, put together from its parts if it came in parts, a payload for `RESTORE`.
pub fn restore_payload(mut object: Vec<u8>) -> Vec<u8> {
    image::seal(&mut object);
    object
}

/// One effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect<'a> {
    /// What it concerns: a key's slot, or databases as a whole (`FLUSHDB`, `SWAPDB`).
    pub scope: Scope,
    /// The database that it is to be applied in.
    pub db: u8,
    /// The effect as a RESP array of bulk strings.
    pub command: &'a [u8],
}

/// The effects of one command or transaction: to be applied all or none.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// Which unit of the stream this is; the first is 1.
    pub position: NonZeroU64,
    count: u32,
    body: &'a [u8],
}

impl<'a> Unit<'a> {
    /// Number of effects, at least 1.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Never: a unit without effects is not sent.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The effects in order.
    pub fn effects(&self) -> impl Iterator<Item = Effect<'a>> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_first_chunk::<EFFECT_HEAD_BYTES>()?;
            let [db, low, high, len @ ..] = *head;
            let (command, tail) = tail.split_at(u64::from_le_bytes(len) as usize);
            rest = tail;
            let slot = u16::from_le_bytes([low, high]);
            let scope = if slot == ALL_SLOTS { Scope::Store } else { Scope::Slot(slot) };
            Some(Effect { scope, db, command })
        })
    }
}

/// What one call of [`super::SlotStream::next`] yielded; its buffers are used again by the next call.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) images: Vec<u8>,
    pub(super) effects: Vec<u8>,
    /// Position of the last unit before this batch.
    pub(super) position: u64,
}

impl Batch {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.effects.is_empty()
    }

    /// Bytes in it.
    pub fn bytes(&self) -> usize {
        self.images.len() + self.effects.len()
    }

    /// The pieces of the snapshot in it, in order.
    pub fn images(&self) -> impl Iterator<Item = Image<'_>> {
        let mut rest = self.images.as_slice();
        std::iter::from_fn(move || {
            let (image, tail) = read_image(rest)?;
            rest = tail;
            Some(image)
        })
    }

    /// The units of effects in it, in order.
    pub fn units(&self) -> impl Iterator<Item = Unit<'_>> {
        let (mut rest, mut position) = (self.effects.as_slice(), self.position);
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_first_chunk::<UNIT_HEAD_BYTES>()?;
            let [c0, c1, c2, c3, len @ ..] = *head;
            let (body, tail) = tail.split_at(u64::from_le_bytes(len) as usize);
            (rest, position) = (tail, position + 1);
            let count = u32::from_le_bytes([c0, c1, c2, c3]);
            Some(Unit { position: NonZeroU64::new(position)?, count, body })
        })
    }
}

fn read_image(frames: &[u8]) -> Option<(Image<'_>, &[u8])> {
    let (head, tail) = frames.split_first_chunk::<HEAD_BYTES>()?;
    let [tag, db, low, high, len @ ..] = *head;
    let (body, tail) = tail.split_at(u64::from_le_bytes(len) as usize);
    let slot = u16::from_le_bytes([low, high]);
    let keyed = || {
        let (expiry, rest) = body.split_first_chunk::<8>()?;
        let (access, rest) = rest.split_first_chunk::<4>()?;
        let (key_len, rest) = rest.split_first_chunk::<4>()?;
        let (key, object) = rest.split_at(u32::from_le_bytes(*key_len) as usize);
        let expires_at_ms = NonZeroU64::new(u64::from_le_bytes(*expiry)).map(NonZeroU64::get);
        let access = u32::from_le_bytes(*access);
        Some((KeyHead { slot, db, key, expires_at_ms, access }, object))
    };
    let image = match tag {
        KEY => keyed().map(|(head, object)| Image::Key { head, object })?,
        BEGIN => keyed().map(|(head, object)| Image::Begin { head, object })?,
        PART => Image::Part { elements: body },
        _ => Image::End,
    };
    Some((image, tail))
}

/// Appends a frame whose body `write` appends.
fn frame(out: &mut Vec<u8>, tag: u8, db: u8, slot: Slot, write: impl FnOnce(&mut Vec<u8>)) {
    let [low, high] = slot.to_le_bytes();
    out.extend_from_slice(&[tag, db, low, high]);
    with_length(out, write);
}

fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 8]);
    write(out);
    let len = (out.len() - at - 8) as u64;
    out[at..at + 8].copy_from_slice(&len.to_le_bytes());
}

fn write_key_head(out: &mut Vec<u8>, head: &KeyHead<'_>) {
    // Expiry 0 stands for none. A key that expired at the very start of 1970 is long gone at any other time, too.
    out.extend(head.expires_at_ms.map_or(0, |at| at.max(1)).to_le_bytes());
    out.extend(head.access.to_le_bytes());
    out.extend((head.key.len() as u32).to_le_bytes());
    out.extend_from_slice(head.key);
}

/// Appends the image of a key whose value is written in one.
pub(super) fn write_key(out: &mut Vec<u8>, slot: Slot, db: u8, entry: &Entry) {
    let (key, expires_at_ms, access) = (entry.key(), entry.expires_at_ms(), entry.access());
    frame(out, KEY, db, slot, |out| {
        write_key_head(out, &KeyHead { slot, db, key, expires_at_ms, access });
        image::write_object(out, entry.value_ref());
    });
}

/// Appends the beginning of a key whose value is written in parts.
pub(super) fn write_begin(out: &mut Vec<u8>, head: &KeyHead<'_>, object: &[u8]) {
    frame(out, BEGIN, head.db, head.slot, |out| {
        write_key_head(out, head);
        out.extend_from_slice(object);
    });
}

/// Appends a part that `write` writes; nothing if that writes nothing.
pub(super) fn write_part(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let before = out.len();
    frame(out, PART, 0, 0, write);
    if out.len() == before + HEAD_BYTES {
        out.truncate(before);
    }
}

/// Appends the end of a key whose value was written in parts.
pub(super) fn write_end(out: &mut Vec<u8>) {
    frame(out, END, 0, 0, |_| {});
}

/// Appends those of a unit's effects for which `wants` holds; `false` if there is none.
pub(super) fn write_unit(
    out: &mut Vec<u8>,
    effects: &Effects,
    unit: Range<usize>,
    wants: impl Fn(Scope) -> bool,
) -> bool {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut count = 0u32;
    with_length(out, |out| {
        for op in unit {
            let (scope, db) = effects.scope(op);
            if !wants(scope) {
                continue;
            }
            count += 1;
            let slot = match scope {
                Scope::Slot(slot) => slot,
                Scope::Store => ALL_SLOTS,
            };
            let [low, high] = slot.to_le_bytes();
            out.extend_from_slice(&[db, low, high]);
            with_length(out, |out| effects.render(op, out));
        }
    });
    if count == 0 {
        out.truncate(at);
        return false;
    }
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
    true
}
