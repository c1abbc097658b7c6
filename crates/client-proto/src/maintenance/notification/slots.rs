//! Lists of slots.
//!
//! Owns their text form, `123,456,5000-7000`. Does not own the slot map.

use towline_cluster::{SLOT_COUNT, SlotRange};
use towline_resp::frame::Frame;

use super::value::{flat, plain, text};

/// The slots in all values, nested once or not; what is unreadable is left out.
pub(super) fn read(values: &[Frame]) -> Vec<SlotRange> {
    let mut slots = Vec::new();
    for value in flat(values) {
        append(value, &mut slots);
    }
    slots
}

/// Appends the slots in one value. False if anything was left out: unreadable, or beyond the maximum.
pub(super) fn append(value: &Frame, out: &mut Vec<SlotRange>) -> bool {
    match plain(value) {
        Frame::Integer(slot) => match u16::try_from(*slot) {
            Ok(slot) if usize::from(slot) < SLOT_COUNT => push(SlotRange { first: slot, last: slot }, out),
            _ => false,
        },
        other => match text(other) {
            Some(text) => append_text(text, out),
            None => false,
        },
    }
}

fn append_text(text: &[u8], out: &mut Vec<SlotRange>) -> bool {
    let parts = text.split(|byte| matches!(byte, b',' | b' ')).filter(|part| !part.is_empty());
    let mut is_complete = true;
    let mut is_empty = true;
    for part in parts {
        is_empty = false;
        if out.len() >= SlotRange::RANGES_MAX {
            return false;
        }
        is_complete &= range(part).is_some_and(|range| push(range, out));
    }
    is_complete && !is_empty
}

fn push(range: SlotRange, out: &mut Vec<SlotRange>) -> bool {
    let fits = out.len() < SlotRange::RANGES_MAX;
    if fits {
        out.push(range);
    }
    fits
}

fn range(part: &[u8]) -> Option<SlotRange> {
    let (first, last) = match part.iter().position(|byte| *byte == b'-') {
        Some(at) => (slot(&part[..at])?, slot(&part[at + 1..])?),
        None => (slot(part)?, slot(part)?),
    };
    (first <= last).then_some(SlotRange { first, last })
}

fn slot(text: &[u8]) -> Option<u16> {
    if text.is_empty() || text.len() > 5 {
        return None;
    }
    let value = text
        .iter()
        .try_fold(0u32, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u32::from(byte - b'0')))?;
    u16::try_from(value).ok().filter(|slot| usize::from(*slot) < SLOT_COUNT)
}
