//! Digests of data sets, to compare two of them.
//!
//! Owns: a digest that depends on keys, values and whether they expire, and on nothing else: not on encodings, on order
//! in memory, nor on the process. Does **not** withstand somebody who looks for collisions.

use towline_store::entry::Entry;
use towline_store::packed::ElemBuf;
use towline_store::value::ValueRef;

const LANES: usize = 3;
/// Odd numbers without a pattern, one for each lane.
const FACTORS: [u64; LANES] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f];

/// A digest; digests of the parts of something unordered are added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest([u64; LANES]);

/// Spreads each bit over all.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Digest {
    /// The digest of parts in order, each with its length.
    fn of(parts: &[&[u8]]) -> Self {
        let mut lanes = FACTORS;
        let mut feed = |word: u64| {
            for (lane, factor) in lanes.iter_mut().zip(FACTORS) {
                *lane = mix((*lane ^ word).wrapping_mul(factor));
            }
        };
        for part in parts {
            feed(part.len() as u64);
            for chunk in part.chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                feed(u64::from_le_bytes(word));
            }
        }
        Self(lanes)
    }

    /// Adds the digest of a part whose place does not matter.
    pub(super) fn add(&mut self, other: Self) {
        for (lane, more) in self.0.iter_mut().zip(other.0) {
            *lane = lane.wrapping_add(more);
        }
    }

    fn bytes(self) -> [u8; LANES * 8] {
        let mut bytes = [0; LANES * 8];
        for (place, lane) in bytes.chunks_exact_mut(8).zip(self.0) {
            place.copy_from_slice(&lane.to_be_bytes());
        }
        bytes
    }

    /// 40 hex digits.
    pub(super) fn hex(self) -> String {
        let mut hex: String = self.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        hex.truncate(40);
        hex
    }

    /// The digest of a key with its database, its value and whether it expires.
    pub(super) fn of_key(db: u8, entry: &Entry, now_ms: u64) -> Self {
        let expires = u8::from(entry.expires_at_ms().is_some());
        let value = Self::of_value(entry.value_ref(), now_ms).bytes();
        Self::of(&[&[db, expires], entry.key(), &value])
    }

    /// The digest of a value; hash fields whose time is over are left out.
    pub(super) fn of_value(value: ValueRef<'_>, now_ms: u64) -> Self {
        let (mut name_buf, mut value_buf) = (ElemBuf::new(), ElemBuf::new());
        let mut sum = Self::default();
        let kind: &[u8] = match value {
            ValueRef::String(text) => {
                sum = Self::of(&[text.bytes(&mut [0; 20])]);
                b"string"
            }
            ValueRef::List(list) => {
                for elem in list.iter() {
                    sum = Self::of(&[&sum.bytes(), elem.render(&mut name_buf)]);
                }
                b"list"
            }
            ValueRef::Set(set) => {
                set.iter().for_each(|member| sum.add(Self::of(&[member.render(&mut name_buf)])));
                b"set"
            }
            ValueRef::Hash(hash) => {
                for field in hash.iter().filter(|field| field.expires_at_ms.is_none_or(|at| at > now_ms)) {
                    let expires = [u8::from(field.expires_at_ms.is_some())];
                    let (name, value) =
                        (field.name.render(&mut name_buf), field.value.render(&mut value_buf));
                    sum.add(Self::of(&[name, value, &expires]));
                }
                b"hash"
            }
            ValueRef::Zset(zset) => {
                for (member, score) in zset.iter() {
                    // Zero has two signs and one meaning.
                    let score = (score + 0.0).to_bits().to_le_bytes();
                    sum.add(Self::of(&[member, &score]));
                }
                b"zset"
            }
        };
        Self::of(&[kind, &sum.bytes()])
    }
}
