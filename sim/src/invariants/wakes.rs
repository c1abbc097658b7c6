//! **Wakes.** Whoever left a waiter is called exactly once when the command ends (or when there is room), and not
//! before; a waiter that was replaced or whose command was given up is never called.

use std::collections::BTreeMap;

use super::{Violation, promise};

/// What a waiter waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The outcome of this command.
    Command(u64),
    /// Room for this caller.
    Room(usize),
}

/// All waiters that the bridge has.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    left: BTreeMap<u64, Target>,
    /// Called, and not looked since.
    called: BTreeMap<u64, Target>,
}

impl Wakes {
    /// A waiter was left.
    pub(crate) fn left(&mut self, waiter: u64, target: Target) {
        self.left.insert(waiter, target);
    }

    /// The bridge calls a waiter.
    pub(crate) fn woken(&mut self, waiter: u64) -> Result<Target, Violation> {
        let target = self.left.remove(&waiter);
        let Some(target) = target else {
            let again = self.called.get(&waiter);
            return Err(Violation::new(
                "wakes",
                format!("waiter {waiter} was called, but is not waiting (called before: {again:?})"),
            ));
        };
        self.called.insert(waiter, target);
        Ok(target)
    }

    /// A waiter for room was called or not when its caller looked.
    pub(crate) fn polled(&mut self, waiter: u64, is_there: bool) -> Result<(), Violation> {
        let was_called = self.called.remove(&waiter).is_some();
        let was_left = self.left.remove(&waiter).is_some();
        promise!(
            was_called == is_there || !was_left && !was_called,
            "wakes",
            "waiter {waiter} for room: called {was_called}, room {is_there}"
        );
        Ok(())
    }

    /// A command was looked at: `has_ended`, or the waiter `before` was given back.
    pub(crate) fn polled_command(
        &mut self,
        id: u64,
        has_ended: bool,
        before: Option<u64>,
    ) -> Result<(), Violation> {
        let target = Target::Command(id);
        let left: Vec<u64> =
            self.left.iter().filter(|(_, other)| **other == target).map(|(waiter, _)| *waiter).collect();
        let was_called = self.called.values().any(|other| *other == target);
        self.called.retain(|_, other| *other != target);
        if has_ended {
            promise!(left.is_empty(), "wakes", "{id} has ended, but its waiter {left:?} was not called");
        } else {
            promise!(!was_called, "wakes", "{id} was called and has no outcome");
            promise!(
                left.first().copied() == before,
                "wakes",
                "{id} left {left:?}, and was given {before:?} back"
            );
            self.left.retain(|_, other| *other != target);
        }
        Ok(())
    }

    /// A command was given up.
    pub(crate) fn abandoned(&mut self, id: u64) {
        self.left.retain(|_, target| *target != Target::Command(id));
        self.called.retain(|_, target| *target != Target::Command(id));
    }

    /// A place in the line was given up.
    pub(crate) fn dropped(&mut self, waiter: u64) {
        self.left.remove(&waiter);
        self.called.remove(&waiter);
    }

    /// At the end nobody is left.
    pub(crate) fn check_all_called(&self) -> Result<(), Violation> {
        promise!(self.left.is_empty(), "wakes", "waiters were never called: {:?}", self.left);
        Ok(())
    }
}
