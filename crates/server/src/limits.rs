//! Bounds on what one client may hold.
//!
//! Owns: `client-output-buffer-limit`. Does **not** own measuring or cutting (see [`crate::connection`]).

/// How much a client may leave unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputLimit {
    /// Above this the client is cut at once; 0 is no limit. Bytes.
    pub hard_bytes: u64,
    /// Above this for longer than `soft_seconds` the client is cut; 0 is no limit. Bytes.
    pub soft_bytes: u64,
    /// See `soft_bytes`.
    pub soft_seconds: u64,
}
