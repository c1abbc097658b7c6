//! `EncodingLimits`: up to which size a collection keeps its compact encoding.
//!
//! Owns: the limits, their names (those of the configuration) and their defaults. Does **not** own the decision at a
//! given moment: each value type applies the limits where Redis applies its own.

use crate::hll::SPARSE_BYTES_MAX_DEFAULT;

/// Limits of the compact encodings. The defaults are those of Redis 7.2 (`config.c`), so that `OBJECT ENCODING` answers
/// alike; a limit of 0 switches a compact encoding off, except for lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodingLimits {
    /// Most fields of a hash in a listpack. 512: a search through it still costs less than the cache misses of a table.
    pub hash_max_listpack_entries: usize,
    /// Longest field or value, in bytes, of a hash in a listpack. 64: longer ones make the search slow and the gain small.
    pub hash_max_listpack_value: usize,
    /// Size of a list's node: positive, the most elements; -1 to -5, the most bytes (4, 8, 16, 32, 64 KiB). -2: the most that
    /// one insertion moves within a microsecond. 0 means 1, below -5 means -5.
    pub list_max_listpack_size: i32,
    /// Most members of a set of integers. 512: binary search is fast far beyond, insertion moves at most 4 KiB.
    pub set_max_intset_entries: usize,
    /// Most members of a set in a listpack. 128: every addition has to search all of them.
    pub set_max_listpack_entries: usize,
    /// Longest member, in bytes, of a set in a listpack.
    pub set_max_listpack_value: usize,
    /// Most members of a sorted set in a listpack. 128: rank and range queries walk through it.
    pub zset_max_listpack_entries: usize,
    /// Longest member, in bytes, of a sorted set in a listpack.
    pub zset_max_listpack_value: usize,
    /// Longest sparse HyperLogLog in bytes. 3000: from there on, changing it in place costs more than the memory is worth.
    pub hll_sparse_max_bytes: usize,
}

impl Default for EncodingLimits {
    fn default() -> Self {
        Self {
            hash_max_listpack_entries: 512,
            hash_max_listpack_value: 64,
            list_max_listpack_size: -2,
            set_max_intset_entries: 512,
            set_max_listpack_entries: 128,
            set_max_listpack_value: 64,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value: 64,
            hll_sparse_max_bytes: SPARSE_BYTES_MAX_DEFAULT,
        }
    }
}
