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
use towline_cluster::{SLOT_COUNT, Slot};

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

/// Bytes that came as a batch are none: damaged, or of another version. The sender's fault; not retryable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a batch of a slot stream: {0}")]
pub struct Malformed(&'static str);

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

    /// The batch whose [`Batch::image_bytes`] and [`Batch::unit_bytes`] these are; `position` is that of the last unit before
    /// it. Nothing is allocated by a length that the bytes claim.
    ///
    /// # Errors
    /// [`Malformed`]: not every byte of them belongs to a frame, or a frame to a slot.
    pub fn from_bytes(images: Vec<u8>, units: Vec<u8>, position: u64) -> Result<Self, Malformed> {
        check_images(&images)?;
        check_units(&units)?;
        Ok(Self { images, effects: units, position })
    }

    /// The images as bytes, to be sent.
    pub fn image_bytes(&self) -> &[u8] {
        &self.images
    }

    /// The units as bytes, to be sent.
    pub fn unit_bytes(&self) -> &[u8] {
        &self.effects
    }

    /// Position of the last unit before this batch.
    pub fn position_before(&self) -> u64 {
        self.position
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

/// The first `len` bytes and the rest.
fn cut(bytes: &[u8], len: u64) -> Result<(&[u8], &[u8]), Malformed> {
    let len = usize::try_from(len).ok().filter(|&len| len <= bytes.len());
    Ok(bytes.split_at(len.ok_or(Malformed("a length goes beyond the end"))?))
}

fn head<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), Malformed> {
    bytes.split_first_chunk().ok_or(Malformed("a frame is cut off"))
}

fn check_slot(slot: u16) -> Result<(), Malformed> {
    if usize::from(slot) < SLOT_COUNT { Ok(()) } else { Err(Malformed("there is no such slot")) }
}

fn check_images(mut frames: &[u8]) -> Result<(), Malformed> {
    while !frames.is_empty() {
        let ([tag, _, low, high, len @ ..], rest) = head::<HEAD_BYTES>(frames)?;
        let (body, rest) = cut(rest, u64::from_le_bytes(*len))?;
        match *tag {
            KEY | BEGIN => {
                check_slot(u16::from_le_bytes([*low, *high]))?;
                let (_expiry_and_access, body) = cut(body, 12)?;
                let (key_len, body) = head::<4>(body)?;
                cut(body, u32::from_le_bytes(*key_len).into())?;
            }
            PART => {}
            END if body.is_empty() => {}
            _ => return Err(Malformed("there is no such image")),
        }
        frames = rest;
    }
    Ok(())
}

fn check_units(mut frames: &[u8]) -> Result<(), Malformed> {
    while !frames.is_empty() {
        let ([c0, c1, c2, c3, len @ ..], rest) = head::<UNIT_HEAD_BYTES>(frames)?;
        let (mut body, rest) = cut(rest, u64::from_le_bytes(*len))?;
        let (count, mut found) = (u32::from_le_bytes([*c0, *c1, *c2, *c3]), 0u32);
        while !body.is_empty() {
            let ([_, low, high, len @ ..], tail) = head::<EFFECT_HEAD_BYTES>(body)?;
            let slot = u16::from_le_bytes([*low, *high]);
            if slot != ALL_SLOTS {
                check_slot(slot)?;
            }
            body = cut(tail, u64::from_le_bytes(*len))?.1;
            found = found.saturating_add(1);
        }
        if found == 0 || found != count {
            return Err(Malformed("a unit has another number of effects than it says"));
        }
        frames = rest;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{Changes, Settings};
    use crate::keyspace::{Expiry, Keyspace};
    use crate::store::Store;
    use crate::stream::{Config, Piece, SlotStream};
    use crate::value::Value;
    use towline_cluster::key_slot;

    /// Batches with every kind of frame.
    fn batches() -> Vec<Batch> {
        let (store, settings, mut changes) = (Store::new(), Settings::default(), Changes::new(1));
        let mut set = |key: &str, value: Value| {
            let slot = key_slot(key.as_bytes());
            let mut ks = Keyspace::hold(&store, [slot], &settings, &mut changes, 0, 1000);
            ks.set_value(key.as_bytes(), value, Expiry::At(u64::MAX / 2));
        };
        set("small", Value::Bytes(b"text".to_vec()));
        set("large", Value::Bytes(vec![b'x'; 100_000]));
        let config = Config { piece: Piece { bytes: 1000, ..Piece::default() }, ..Config::default() };
        let mut stream = SlotStream::open(&store, 0..16384, 1000, &config);
        set("later", Value::Bytes(b"text".to_vec()));
        let mut all = Vec::new();
        loop {
            let mut batch = Batch::default();
            let progress = stream.next(&store, &mut batch).unwrap();
            if progress.is_snapshot_done && batch.is_empty() {
                break;
            }
            all.push(batch);
        }
        stream.close(&store);
        assert!(all.iter().any(|batch| batch.images().any(|image| matches!(image, Image::Part { .. }))));
        assert!(all.iter().any(|batch| batch.units().count() > 0));
        all
    }

    #[test]
    fn a_batch_survives_the_wire() {
        for batch in batches() {
            let (images, units) = (batch.image_bytes().to_vec(), batch.unit_bytes().to_vec());
            let copy = Batch::from_bytes(images, units, batch.position_before()).unwrap();
            assert!(copy.images().eq(batch.images()));
            let effects = |batch: &Batch| -> Vec<(u64, u8, Vec<u8>)> {
                let of = |unit: Unit<'_>| {
                    let position = unit.position.get();
                    let all = unit.effects().map(|effect| (position, effect.db, effect.command.to_vec()));
                    all.collect::<Vec<_>>()
                };
                batch.units().flat_map(of).collect()
            };
            assert_eq!(effects(&copy), effects(&batch));
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_refused_or_read() {
        for batch in batches() {
            let (images, units) = (batch.image_bytes(), batch.unit_bytes());
            let cuts = |bytes: &[u8]| (0..bytes.len()).step_by(1 + bytes.len() / 500).collect::<Vec<_>>();
            let read = |images: &[u8], units: &[u8]| {
                let Ok(batch) = Batch::from_bytes(images.to_vec(), units.to_vec(), 0) else { return };
                batch.images().for_each(drop);
                batch.units().for_each(|unit| unit.effects().for_each(drop));
            };
            for at in cuts(images) {
                read(&images[..at], &[]);
                for bit in 0..8 {
                    let mut changed = images.to_vec();
                    changed[at] ^= 1 << bit;
                    read(&changed, &[]);
                }
            }
            for at in cuts(units) {
                read(&[], &units[..at]);
                for bit in 0..8 {
                    let mut changed = units.to_vec();
                    changed[at] ^= 1 << bit;
                    read(&[], &changed);
                }
            }
        }
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut image = vec![PART, 0, 0, 0];
        image.extend(u64::MAX.to_le_bytes());
        assert!(Batch::from_bytes(image, Vec::new(), 0).is_err());
        let mut unit = 2u32.to_le_bytes().to_vec();
        unit.extend(0u64.to_le_bytes());
        assert!(Batch::from_bytes(Vec::new(), unit, 0).is_err(), "two effects, none there");
        let slot_beyond = [KEY, 0, 0xff, 0xff, 16, 0, 0, 0, 0, 0, 0, 0];
        let image = [slot_beyond.as_slice(), &[0; 16]].concat();
        assert!(Batch::from_bytes(image, Vec::new(), 0).is_err());
    }
}
