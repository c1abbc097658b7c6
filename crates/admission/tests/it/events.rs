//! Virtual time: what happens next, in order, ties in the order of scheduling.

use std::collections::BTreeMap;
use towline_sansio::Instant;

pub(crate) struct Events<E> {
    pending: BTreeMap<(Instant, u64), E>,
    scheduled: u64,
}

impl<E> Events<E> {
    pub(crate) fn new() -> Self {
        Self { pending: BTreeMap::new(), scheduled: 0 }
    }

    pub(crate) fn at(&mut self, when: Instant, event: E) {
        self.pending.insert((when, self.scheduled), event);
        self.scheduled += 1;
    }

    pub(crate) fn next(&mut self) -> Option<(Instant, E)> {
        let ((when, _), event) = self.pending.pop_first()?;
        Some((when, event))
    }
}
