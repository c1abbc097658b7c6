//! The one hash function of the store.
//!
//! Owns: the seed. The seed is set once by the process, before the first key is stored, from randomness that the
//! caller brings: with a fixed seed (the default, used by tests and simulation) an attacker could choose colliding keys.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_micro_inline};
use std::sync::OnceLock;

static SECRETS: OnceLock<RapidSecrets> = OnceLock::new();
const DEFAULT_SEED: u64 = 0x746f_776c_696e_6521;

/// Sets the process's hash seed. Returns `false`, and changes nothing, once a key has been hashed or a seed was set.
pub fn set_seed(seed: u64) -> bool {
    SECRETS.set(RapidSecrets::seed(seed)).is_ok()
}

/// 64 well-mixed bits of `bytes`.
#[inline]
pub fn hash64(bytes: &[u8]) -> u64 {
    rapidhash_v3_micro_inline::<true, false>(bytes, SECRETS.get_or_init(|| RapidSecrets::seed(DEFAULT_SEED)))
}
