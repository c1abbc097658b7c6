//! Who is in which granted region at this moment: a page of words that both processes see.
//!
//! Owns the words and the rules by which they are changed. Does **not** own regions.
//!
//! Each grant has a word. Who was given the region adds one before it touches the memory and takes it off afterwards; who gave it
//! sets a bit and waits until nobody is inside. So a region that was taken back is not touched any more, as long as the peer is
//! an engine and not its enemy; what a peer may do at all is up to the mapping, not to this page. A peer that is stopped in the
//! middle of a copy is not waited for without end; it may finish that one copy when it goes on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant as Monotonic};

use rustix::event::Timespec;
use rustix::thread::futex;

use super::map::{Mapped, Use, memory_file};

/// Grants in the life of one link. Further regions go over TCP.
pub(super) const GRANTS_MAX: u32 = 4_096;

/// Bytes of a page.
const PAGE_LEN: usize = GRANTS_MAX as usize * size_of::<u32>();

/// The region was taken back.
const RECALLED: u32 = 1 << 31;

/// The link is over.
const CLOSED: u32 = 1 << 30;

const COUNT: u32 = CLOSED - 1;

/// How often a peer that takes its time is looked after: it may be dead.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// Whether memory may be touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// Yes, or it was allowed to the end.
    Open,
    /// The region was taken back.
    Recalled,
    /// The link is over: nothing that happens now counts.
    Closed,
}

fn admission(word: u32) -> Admission {
    if word & CLOSED != 0 {
        Admission::Closed
    } else if word & RECALLED != 0 {
        Admission::Recalled
    } else {
        Admission::Open
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Page {
    mapped: Mapped,
}

impl Page {
    /// A new one, with the descriptor for the peer.
    pub(super) fn create() -> std::io::Result<(Self, OwnedFd)> {
        let file = memory_file("towline-grants", PAGE_LEN)?;
        Ok((Self::of(file.as_fd())?, file))
    }

    /// A peer's.
    ///
    /// # Errors
    /// It is none: the peer's fault.
    pub(super) fn of(file: BorrowedFd<'_>) -> std::io::Result<Self> {
        Ok(Self { mapped: Mapped::new(file, PAGE_LEN, Use::ReadWrite)? })
    }

    fn word(&self, slot: u32) -> &AtomicU32 {
        self.mapped.word(slot as usize).expect("invariant: slots are below GRANTS_MAX")
    }

    /// Goes into a region that was granted. [`Page::leave`] follows, if it is open.
    pub(super) fn enter(&self, slot: u32) -> Admission {
        let word = self.word(slot);
        let found = admission(word.fetch_add(1, Ordering::AcqRel));
        if found != Admission::Open {
            self.leave(slot);
        }
        found
    }

    /// Goes out, and finds what has changed meanwhile.
    pub(super) fn leave(&self, slot: u32) -> Admission {
        let word = self.word(slot);
        let before = word.fetch_sub(1, Ordering::AcqRel);
        if before & COUNT == 1 && before & (RECALLED | CLOSED) != 0 {
            // Nobody waits, perhaps.
            let _ = futex::wake(word, futex::Flags::empty(), u32::MAX);
        }
        admission(before)
    }

    /// Takes a region back; [`Page::wait`] follows.
    pub(super) fn recall(&self, slot: u32) {
        self.word(slot).fetch_or(RECALLED, Ordering::AcqRel);
    }

    /// The link is over for what was granted in this slot; [`Page::wait`] follows.
    pub(super) fn close(&self, slot: u32) {
        self.word(slot).fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Waits until nobody is inside, so long at most. False if somebody does not leave. Who is gone is not waited for.
    pub(super) fn wait(&self, slot: u32, patience: Duration, is_gone: impl Fn() -> bool) -> bool {
        let word = self.word(slot);
        let until = Monotonic::now() + patience;
        loop {
            let seen = word.load(Ordering::Acquire);
            if seen & COUNT == 0 || is_gone() {
                return true;
            }
            if Monotonic::now() >= until {
                return false;
            }
            // Woken, changed, or time to look: the loop decides.
            let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_is_inside_is_waited_for_and_nobody_comes_in_any_more() {
        let (ours, file) = Page::create().unwrap();
        let theirs = Page::of(file.as_fd()).unwrap();
        assert_eq!(theirs.enter(7), Admission::Open);
        ours.recall(7);
        assert_eq!(theirs.enter(7), Admission::Recalled);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ours.wait(7, LONG, || false));
            assert_eq!(theirs.leave(7), Admission::Recalled);
            assert!(waiting.join().unwrap());
        });
        assert_eq!((theirs.enter(7), theirs.enter(8)), (Admission::Recalled, Admission::Open));
        ours.close(7);
        assert_eq!(theirs.enter(7), Admission::Closed);
    }

    #[test]
    fn who_does_not_leave_is_waited_for_only_so_long_and_the_dead_not_at_all() {
        let (ours, file) = Page::create().unwrap();
        let theirs = Page::of(file.as_fd()).unwrap();
        assert_eq!(theirs.enter(GRANTS_MAX - 1), Admission::Open);
        ours.close(GRANTS_MAX - 1);
        assert!(ours.wait(GRANTS_MAX - 1, LONG, || true));
        assert!(!ours.wait(GRANTS_MAX - 1, Duration::from_millis(10), || false));
        assert_eq!(theirs.leave(GRANTS_MAX - 1), Admission::Closed);
        assert!(ours.wait(GRANTS_MAX - 1, LONG, || false));
    }

    #[test]
    fn what_is_shorter_than_a_page_is_none() {
        assert!(Page::of(memory_file("short", PAGE_LEN - 1).unwrap().as_fd()).is_err());
    }
}
