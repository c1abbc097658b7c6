//! One subscriber's queue.
//!
//! Owns the bound and the count of what was dropped. Does not own waking the subscriber.

use std::collections::VecDeque;

use super::{Gap, Message, Refused};
use crate::generation::Generation;

/// What an item costs above its payload and names: about its size in memory.
pub const ITEM_OVERHEAD_BYTES: usize = 160;

/// What to drop when the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// The oldest items, as many as make room: a slow subscriber sees what is new. The default, because most channels
    /// carry states and news.
    #[default]
    DropOldest,
    /// The item that does not fit: a slow subscriber sees an unbroken beginning.
    DropNewest,
}

/// What a subscriber sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Message(Message),
    /// Messages of one subscription may have been lost here, because its connection was.
    Gap(Gap),
    /// The subscriber's names go on by another connection here, and messages may come twice.
    Overlap(Overlap),
    /// A subscription was refused.
    Refused(Refused),
    /// Items were dropped here, because the subscriber was too slow.
    Lagged(Lagged),
}

/// A subscriber's names were moved from one connection to another, and where the streams of the two join is not known.
/// Messages after this may have come before it already: those that were published in the last moments before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The connection that the messages before it came from.
    pub from: Generation,
    /// The one that those after it come from.
    pub to: Generation,
}

/// How much was dropped at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lagged {
    /// Messages.
    pub messages: u64,
    /// Other items: gaps, overlaps and refusals.
    pub others: u64,
    /// Bytes of all of them, overhead included.
    pub bytes: u64,
}

/// A bounded queue of items with counted drops. Order is kept, and a [`Item::Lagged`] stands where items are missing.
#[derive(Debug)]
pub struct Outbox {
    items: VecDeque<Item>,
    bytes: usize,
    bytes_max: usize,
    overflow: Overflow,
    /// Dropped at the front and not yet told.
    front: Lagged,
    total: Lagged,
}

impl Outbox {
    /// A queue of at most `bytes_max` bytes, [`ITEM_OVERHEAD_BYTES`] per item included. An item that is larger than
    /// the bound is dropped whatever `overflow` says.
    pub const fn new(bytes_max: usize, overflow: Overflow) -> Self {
        let nothing = Lagged { messages: 0, others: 0, bytes: 0 };
        Self { items: VecDeque::new(), bytes: 0, bytes_max, overflow, front: nothing, total: nothing }
    }

    /// Appends an item, or drops one or more; false if something was dropped.
    pub fn push(&mut self, item: Item) -> bool {
        let cost = item.cost();
        if self.bytes.saturating_add(cost) <= self.bytes_max {
            self.bytes += cost;
            self.items.push_back(item);
            return true;
        }
        if self.overflow == Overflow::DropNewest || cost > self.bytes_max {
            self.drop_at_back(&item);
            return false;
        }
        while self.bytes.saturating_add(cost) > self.bytes_max {
            let Some(oldest) = self.items.pop_front() else { break };
            self.bytes -= oldest.cost();
            match oldest {
                // Its drops were counted when they happened; they are now at the front.
                Item::Lagged(lagged) => self.front.add(lagged),
                dropped => {
                    let lagged = dropped.lagged();
                    self.front.add(lagged);
                    self.total.add(lagged);
                }
            }
        }
        self.bytes += cost;
        self.items.push_back(item);
        false
    }

    /// The next item.
    pub fn pop(&mut self) -> Option<Item> {
        if self.front != Lagged::default() {
            return Some(Item::Lagged(std::mem::take(&mut self.front)));
        }
        let item = self.items.pop_front()?;
        self.bytes -= item.cost();
        Some(item)
    }

    /// Whether [`Outbox::pop`] has nothing.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.front == Lagged::default()
    }

    /// Bytes in the queue, overhead included.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Everything that was dropped so far.
    pub const fn dropped(&self) -> Lagged {
        self.total
    }

    /// Counts an item as dropped behind all others. The marker costs nothing and there are never two in a row.
    fn drop_at_back(&mut self, item: &Item) {
        let lagged = item.lagged();
        self.total.add(lagged);
        match self.items.back_mut() {
            Some(Item::Lagged(last)) => last.add(lagged),
            Some(_) => self.items.push_back(Item::Lagged(lagged)),
            None => self.front.add(lagged),
        }
    }
}

impl Item {
    fn cost(&self) -> usize {
        let bytes = match self {
            Self::Message(message) => {
                let pattern = message.pattern.as_ref().map_or(0, |pattern| pattern.len());
                message.channel.len() + pattern + message.payload.len()
            }
            Self::Gap(gap) => gap.name.len(),
            Self::Overlap(_) => 0,
            Self::Refused(refused) => refused.name.len() + refused.error.text().len(),
            Self::Lagged(_) => return 0,
        };
        bytes.saturating_add(ITEM_OVERHEAD_BYTES)
    }

    fn lagged(&self) -> Lagged {
        match self {
            Self::Lagged(lagged) => *lagged,
            Self::Message(_) => Lagged { messages: 1, others: 0, bytes: self.cost() as u64 },
            Self::Gap(_) | Self::Overlap(_) | Self::Refused(_) => {
                Lagged { messages: 0, others: 1, bytes: self.cost() as u64 }
            }
        }
    }
}

impl Lagged {
    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.others += other.others;
        self.bytes += other.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::Kind;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn message(number: usize, len: usize) -> Item {
        Item::Message(Message {
            kind: Kind::Channel,
            channel: Bytes::from(number.to_string()),
            pattern: None,
            payload: Bytes::from(vec![0; len]),
        })
    }

    fn number(item: &Item) -> Option<usize> {
        match item {
            Item::Message(message) => std::str::from_utf8(&message.channel).unwrap().parse().ok(),
            _ => None,
        }
    }

    #[test]
    fn the_oldest_go_first_and_the_marker_leads() {
        let mut outbox = Outbox::new(2 * (ITEM_OVERHEAD_BYTES + 11), Overflow::DropOldest);
        assert!(outbox.push(message(1, 10)) && outbox.push(message(2, 10)));
        assert!(!outbox.push(message(3, 10)));
        assert!(matches!(outbox.pop(), Some(Item::Lagged(Lagged { messages: 1, others: 0, .. }))));
        assert_eq!(outbox.pop().as_ref().and_then(number), Some(2));
        assert_eq!(outbox.pop().as_ref().and_then(number), Some(3));
        assert!(outbox.pop().is_none() && outbox.is_empty() && outbox.bytes() == 0);
        assert_eq!(outbox.dropped().messages, 1);
    }

    #[test]
    fn the_newest_go_and_the_marker_stands_in_their_place() {
        let mut outbox = Outbox::new(ITEM_OVERHEAD_BYTES + 11, Overflow::DropNewest);
        assert!(outbox.push(message(1, 10)));
        assert!(!outbox.push(message(2, 10)) && !outbox.push(message(3, 10)));
        assert_eq!(outbox.pop().as_ref().and_then(number), Some(1));
        assert!(matches!(outbox.pop(), Some(Item::Lagged(Lagged { messages: 2, .. }))));
        assert!(outbox.push(message(4, 10)));
        assert_eq!(outbox.pop().as_ref().and_then(number), Some(4));
        assert!(outbox.is_empty());
    }

    #[test]
    fn what_is_larger_than_the_bound_is_dropped_alone() {
        let mut outbox = Outbox::new(1000, Overflow::DropOldest);
        assert!(outbox.push(message(1, 10)));
        assert!(!outbox.push(message(2, 1000)));
        assert!(outbox.push(message(3, 10)));
        assert_eq!(outbox.pop().as_ref().and_then(number), Some(1));
        assert!(matches!(outbox.pop(), Some(Item::Lagged(Lagged { messages: 1, .. }))));
        assert_eq!(outbox.pop().as_ref().and_then(number), Some(3));
    }

    #[test]
    fn a_dropped_gap_is_counted_apart() {
        let gap = Gap { kind: Kind::Channel, name: Bytes::new(), from: Generation(1), to: Generation(2) };
        let mut outbox = Outbox::new(0, Overflow::DropOldest);
        assert!(!outbox.push(Item::Gap(gap)));
        assert!(matches!(outbox.pop(), Some(Item::Lagged(Lagged { messages: 0, others: 1, .. }))));
    }

    proptest! {
        #[test]
        fn every_message_is_delivered_in_order_or_counted_in_its_place(
            steps in prop::collection::vec(prop::option::weighted(0.7, 0_usize..1300), 0..200),
            is_newest in any::<bool>(),
        ) {
            let overflow = if is_newest { Overflow::DropNewest } else { Overflow::DropOldest };
            let mut outbox = Outbox::new(1200, overflow);
            let (mut pushed, mut seen) = (0, 0_usize);
            for step in steps {
                if let Some(len) = step {
                    outbox.push(message(pushed, len));
                    pushed += 1;
                    prop_assert!(outbox.bytes() <= 1200);
                } else if let Some(item) = outbox.pop() {
                    match item {
                        Item::Lagged(lagged) => seen += usize::try_from(lagged.messages).unwrap(),
                        item => {
                            prop_assert_eq!(number(&item), Some(seen));
                            seen += 1;
                        }
                    }
                }
            }
            while let Some(item) = outbox.pop() {
                match item {
                    Item::Lagged(lagged) => seen += usize::try_from(lagged.messages).unwrap(),
                    item => {
                        prop_assert_eq!(number(&item), Some(seen));
                        seen += 1;
                    }
                }
            }
            prop_assert_eq!(seen, pushed);
            prop_assert_eq!(outbox.bytes(), 0);
        }
    }
}
