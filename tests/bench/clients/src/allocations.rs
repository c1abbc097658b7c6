//! What the counting binary tells the workloads about its allocator. It counts nothing itself.

/// Totals since the process started.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// Blocks asked for.
    pub allocations: usize,
    /// Blocks that were resized.
    pub reallocations: usize,
    /// Bytes asked for, growth of resized blocks included.
    pub bytes: usize,
    /// Bytes given back.
    pub bytes_freed: usize,
}

impl Snapshot {
    /// Bytes in blocks that are not freed yet.
    pub fn live(&self) -> usize {
        self.bytes.saturating_sub(self.bytes_freed)
    }
}

/// Access to the counting allocator, which lives in the binary.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    /// Reads the totals.
    pub snapshot: fn() -> Snapshot,
    /// Starts a new peak at what is live now.
    pub peak_reset: fn(),
    /// The highest live bytes since the reset, above what was live then.
    pub peak: fn() -> usize,
}
