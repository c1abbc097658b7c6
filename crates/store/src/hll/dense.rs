//! The dense form: 16384 registers of 6 bits, packed from the least significant bit on; four registers in three bytes.

use super::estimate::Histogram;
use super::{REGISTER_COUNT, Registers};

const REGISTER_BITS: usize = 6;
const REGISTER_MAX: u8 = (1 << REGISTER_BITS) - 1;
/// Size in bytes of all packed registers.
pub(super) const REGISTER_BYTES: usize = REGISTER_COUNT * REGISTER_BITS / 8;

fn unpack(group: [u8; 3]) -> [u8; 4] {
    let [first, second, third] = group;
    [
        first & REGISTER_MAX,
        (first >> 6 | second << 2) & REGISTER_MAX,
        (second >> 4 | third << 4) & REGISTER_MAX,
        third >> 2,
    ]
}

fn pack_group([first, second, third, fourth]: [u8; 4]) -> [u8; 3] {
    [first | second << 6, second >> 2 | third << 4, third >> 4 | fourth << 2]
}

/// Raises one register to at least `run`; `true` when it was lower.
pub(super) fn raise(packed: &mut [u8], index: usize, run: u8) -> bool {
    let (groups, _) = packed.as_chunks_mut::<3>();
    let Some(group) = groups.get_mut(index / 4) else {
        return false;
    };
    let mut registers = unpack(*group);
    let register = &mut registers[index % 4];
    if *register >= run {
        return false;
    }
    *register = run.min(REGISTER_MAX);
    *group = pack_group(registers);
    true
}

/// Packs all registers.
pub(super) fn pack(registers: &Registers, packed: &mut [u8]) {
    let (groups, _) = registers.as_chunks::<4>();
    let (packed, _) = packed.as_chunks_mut::<3>();
    packed.iter_mut().zip(groups).for_each(|(packed, group)| *packed = pack_group(*group));
}

/// Raises each of `registers` to at least the packed one.
pub(super) fn merge_into(packed: &[u8], registers: &mut Registers) {
    let (packed, _) = packed.as_chunks::<3>();
    let (groups, _) = registers.as_chunks_mut::<4>();
    for (group, packed) in groups.iter_mut().zip(packed) {
        group.iter_mut().zip(unpack(*packed)).for_each(|(register, other)| *register = other.max(*register));
    }
}

/// How many registers have each value.
pub(super) fn histogram(packed: &[u8]) -> Histogram {
    let mut histogram = Histogram::default();
    let (packed, _) = packed.as_chunks::<3>();
    packed.iter().for_each(|group| unpack(*group).iter().for_each(|register| histogram.add(*register, 1)));
    histogram
}
