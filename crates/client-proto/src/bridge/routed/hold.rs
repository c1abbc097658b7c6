//! One slot that waits.
//!
//! Owns the order of the commands that wait for a slot, and which of them need not wait any more. Does not own what they wait
//! for: who raises fences and names times tells it.

use std::collections::BTreeMap;

use towline_sansio::Instant;

/// A command that waits for its slot, with a copy of its bytes.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) index: u32,
    pub(super) number: u64,
    /// It was sent and came back.
    pub(super) is_returned: bool,
    pub(super) bytes: Vec<u8>,
}

/// A slot that waits.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// The server needs time.
    pub(super) due: Option<Instant>,
    /// Fences of bridges that had the slot before, and that have not passed.
    pub(super) awaits: u32,
    /// Fences of this bridge that have not passed.
    pub(super) own: u32,
    /// Only one bridge that had the slot before was ever waited for. What comes back from there comes in order, so it need
    /// not wait for the rest.
    pub(super) is_stream: bool,
    /// What lies in the queue has to be taken out of it first.
    pub(super) is_gathering: bool,
    /// In the order of submission: by number and, for reads that have none, index. Of many that come late none is slow to find
    /// its place.
    pub(super) waiting: BTreeMap<(u64, u32), Held>,
}

impl Hold {
    /// Keeps a command, in its place.
    pub(super) fn keep(&mut self, held: Held) {
        self.waiting.insert((held.number, held.index), held);
    }

    /// Whether what comes back may be sent while the rest waits.
    const fn is_flowing(&self) -> bool {
        self.is_stream && self.awaits == 1 && self.own == 0 && self.due.is_none() && !self.is_gathering
    }

    /// Whether command `number`, which has come back, need not wait.
    pub(super) fn lets_pass(&self, number: u64) -> bool {
        self.is_flowing() && self.waiting.values().next().is_none_or(|first| first.number > number)
    }

    /// Takes out what need not wait any more, in order. Nothing is left if no fence is.
    pub(super) fn ready(&mut self) -> Vec<Held> {
        if self.is_over() {
            return std::mem::take(&mut self.waiting).into_values().collect();
        }
        let mut ready = Vec::new();
        while self.is_flowing()
            && let Some(first) = self.waiting.first_entry().filter(|first| first.get().is_returned)
        {
            ready.push(first.remove());
        }
        ready
    }

    /// Whether nothing keeps commands from being sent.
    pub(super) const fn is_over(&self) -> bool {
        self.due.is_none() && !self.is_gathering && self.own == 0 && self.awaits == 0
    }
}
