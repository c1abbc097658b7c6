//! **The line for room is served in the order of arrival.** Nobody is called before somebody who came earlier and still
//! waits.

use std::collections::VecDeque;

use super::{Violation, promise};

/// Those who wait for room, in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Line(VecDeque<usize>);

impl Line {
    /// A caller stands in line.
    pub(crate) fn joined(&mut self, caller: usize) {
        self.0.push_back(caller);
    }

    /// A caller goes away, or was called before and comes now.
    pub(crate) fn left(&mut self, caller: usize) {
        self.0.retain(|other| *other != caller);
    }

    /// A caller is called.
    pub(crate) fn called(&mut self, caller: usize) -> Result<(), Violation> {
        let first = self.0.pop_front();
        promise!(first == Some(caller), "line", "caller {caller} was called, and {first:?} came first");
        Ok(())
    }
}
