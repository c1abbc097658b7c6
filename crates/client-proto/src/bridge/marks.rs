//! When bytes were handed to a writer and when the kernel took them.
//!
//! Owns one mark for each batch, not for each command: what a batch has in common costs nothing per command. Does not
//! own positions ([`super::flush`]) nor what is made of the times ([`super::diagnose`]).

use std::collections::VecDeque;

use towline_sansio::Instant;

/// One batch of commands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// Where its last command ends in the log.
    end: u64,
    /// When a writer got it.
    pub(super) handed_at: Instant,
    /// When the kernel had taken all of it.
    pub(super) taken_at: Option<Instant>,
}

/// The batches with commands that are not answered, at ascending positions. Each has at least one command, so the
/// bound on commands in flight is a bound on these.
#[derive(Debug, Default)]
pub(super) struct Marks(VecDeque<Mark>);

impl Marks {
    /// A writer got the commands up to `end`.
    pub(super) fn handed(&mut self, end: u64, now: Instant) {
        // Positions ascend, but for commands that were kept back and have no times of their own then.
        if self.0.back().is_some_and(|last| end <= last.end) {
            return;
        }
        self.0.push_back(Mark { end, handed_at: now, taken_at: None });
    }

    /// The kernel has taken everything before `position`. One batch is out at a time, so the last mark is the only one
    /// that this can concern.
    pub(super) fn taken(&mut self, position: u64, now: Instant) {
        if let Some(last) = self.0.back_mut()
            && last.end <= position
        {
            last.taken_at.get_or_insert(now);
        }
    }

    /// Everything before `position` is answered.
    pub(super) fn forget(&mut self, position: u64) {
        while self.0.front().is_some_and(|mark| mark.end <= position) {
            self.0.pop_front();
        }
    }

    /// Positions have changed, or the connection has.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The batch of the command that ends at `end`.
    pub(super) fn of(&self, end: u64) -> Option<Mark> {
        self.0.get(self.0.partition_point(|mark| mark.end < end)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_command_has_the_times_of_its_batch() {
        let mut marks = Marks::default();
        marks.handed(10, at(1));
        marks.taken(5, at(2));
        assert_eq!(marks.of(10).and_then(|mark| mark.taken_at), None, "half of it is not all of it");
        marks.taken(10, at(3));
        marks.handed(30, at(4));
        marks.taken(30, at(5));
        let times = |end| marks.of(end).map(|mark| (mark.handed_at, mark.taken_at));
        assert_eq!(times(7), Some((at(1), Some(at(3)))));
        assert_eq!(times(10), Some((at(1), Some(at(3)))));
        assert_eq!(times(11), Some((at(4), Some(at(5)))));
        assert_eq!(times(31), None);
    }

    #[test]
    fn what_is_answered_is_forgotten() {
        let mut marks = Marks::default();
        marks.handed(10, at(1));
        marks.handed(20, at(2));
        marks.forget(10);
        assert_eq!(marks.of(5).map(|mark| mark.handed_at), Some(at(2)), "the next one is the first now");
        marks.forget(19);
        assert!(marks.of(20).is_some());
        marks.forget(20);
        assert!(marks.of(20).is_none());
    }
}
