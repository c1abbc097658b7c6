//! What several clients share: queues from one to the next, and one counter.
//!
//! Owns which numbers may be in a queue after a kill. Pure. Does not own how many pushes and pops ran: each client's ledger
//! says the fewest and the most.

use super::ledger::{Kind, Problem};
use super::value::{Entry, Place, Value};

/// A queue of consecutive numbers, of which one client pushes and another pops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Queue {
    /// The number that is pushed next.
    pub(super) next_push: u64,
    /// The number that is popped next.
    pub(super) next_pop: u64,
}

impl Queue {
    /// Compares the list that was found with the pushes and pops of the run, fewest and most of each. Returns what is wrong.
    pub(super) fn judge(
        &self,
        place: &Place,
        found: Option<&Entry>,
        pushed: (u64, u64),
        popped: (u64, u64),
    ) -> Option<Problem> {
        let first = (self.next_pop + popped.0, self.next_pop + popped.1);
        let end = (self.next_push + pushed.0, self.next_push + pushed.1);
        let wrong = |kind, what: String| {
            let shown = found.map_or_else(|| "nothing".to_owned(), ToString::to_string);
            let text = format!(
                "queue {place}: {what}; found {shown}, pushes went to {}..{}, pops to {}..{}",
                end.0, end.1, first.0, first.1
            );
            Some(Problem { kind, text })
        };
        let numbers = match numbers(found) {
            Ok(numbers) => numbers,
            Err(what) => return wrong(Kind::Partial, what),
        };
        let (Some(&head), Some(&tail)) = (numbers.first(), numbers.last()) else {
            // All was popped: the two meet somewhere.
            return if first.1 < end.0 {
                wrong(Kind::Lost, format!("{} acknowledged elements are lost", end.0 - first.1))
            } else if end.1 < first.0 {
                wrong(Kind::Partial, "more was popped than was ever pushed".to_owned())
            } else {
                None
            };
        };
        if numbers.windows(2).any(|pair| pair[1] != pair[0] + 1) {
            wrong(Kind::Partial, "there is a hole, or an element is there twice".to_owned())
        } else if head < first.0 {
            wrong(Kind::Lost, format!("element {head} came back after its pop was acknowledged"))
        } else if head > first.1 {
            wrong(Kind::Lost, format!("element {} is lost at the front", first.1))
        } else if tail + 1 < end.0 {
            wrong(Kind::Lost, format!("element {} is lost at the back", tail + 1))
        } else if tail + 1 > end.1 {
            wrong(Kind::Partial, format!("element {tail} was never pushed"))
        } else {
            None
        }
    }

    /// Goes on from what was found. After an empty list it does not matter where, so long as no number is used again.
    pub(super) fn adopt(&mut self, found: Option<&Entry>, pushes_sent: u64) {
        let numbers = numbers(found).unwrap_or_default();
        match (numbers.first(), numbers.last()) {
            (Some(head), Some(tail)) => *self = Self { next_push: tail + 1, next_pop: *head },
            _ => {
                self.next_push += pushes_sent;
                self.next_pop = self.next_push;
            }
        }
    }
}

fn numbers(found: Option<&Entry>) -> Result<Vec<u64>, String> {
    let Some(entry) = found else { return Ok(Vec::new()) };
    let Value::List(items) = &*entry.value else { return Err("it is no list".to_owned()) };
    let number = |item: &bytes::Bytes| std::str::from_utf8(item).ok()?.parse().ok();
    items.iter().map(|item| number(item).ok_or_else(|| "an element is no number".to_owned())).collect()
}

/// Compares the shared counter with the sums of all clients' increments, fewest and most.
pub(super) fn judge_counter(found: Option<&Entry>, base: i64, sums: (u64, u64)) -> Result<i64, Problem> {
    let value = found.map_or(Some(0), |entry| match &*entry.value {
        Value::Text(text) => std::str::from_utf8(text).ok()?.parse::<i64>().ok(),
        _ => None,
    });
    let bound = |sum: u64| base.saturating_add(i64::try_from(sum).unwrap_or(i64::MAX));
    let (low, high) = (bound(sums.0), bound(sums.1));
    match value {
        Some(value) if (low..=high).contains(&value) => Ok(value),
        _ => {
            let shown = found.map_or_else(|| "nothing".to_owned(), ToString::to_string);
            let kind = if value.is_some_and(|value| value < low) { Kind::Lost } else { Kind::Partial };
            Err(Problem { kind, text: format!("the shared counter: expected {low}..{high}, found {shown}") })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::value::Deadline;
    use super::*;

    fn list(numbers: impl IntoIterator<Item = u64>) -> Option<Entry> {
        let items = numbers.into_iter().map(|number| number.to_string().into()).collect();
        Some(Entry { value: Arc::new(Value::List(items)), deadline: Deadline::Never })
    }

    fn text(text: &'static str) -> Option<Entry> {
        Some(Entry { value: Arc::new(Value::Text(text.into())), deadline: Deadline::Never })
    }

    #[test]
    fn what_was_pushed_is_there_or_was_popped() {
        let queue = Queue { next_push: 10, next_pop: 8 };
        let place = Place::new(0, "q1");
        // Three to five pushes and one or two pops: 9 or 10 is the first, 12 to 14 the last.
        for (found, kind) in [
            (list(9..13), None),
            (list(10..15), None),
            (list(8..13), Some(Kind::Lost)),
            (list(11..13), Some(Kind::Lost)),
            (list(9..12), Some(Kind::Lost)),
            (list(9..16), Some(Kind::Partial)),
            (list([9, 10, 12, 13]), Some(Kind::Partial)),
            (list([9, 10, 11, 11, 12]), Some(Kind::Partial)),
            (None, Some(Kind::Lost)),
            (text("x"), Some(Kind::Partial)),
        ] {
            let problem = queue.judge(&place, found.as_ref(), (3, 5), (1, 2));
            assert_eq!(problem.as_ref().map(|problem| problem.kind), kind, "{found:?} {problem:?}");
        }
        assert_eq!(queue.judge(&place, None, (0, 2), (1, 3)), None);
        assert_eq!(queue.judge(&place, None, (0, 0), (3, 3)).unwrap().kind, Kind::Partial);
    }

    #[test]
    fn the_next_run_goes_on_where_the_list_ends() {
        let mut queue = Queue { next_push: 10, next_pop: 8 };
        queue.adopt(list(9..13).as_ref(), 5);
        assert_eq!(queue, Queue { next_push: 13, next_pop: 9 });
        queue.adopt(None, 4);
        assert_eq!(queue, Queue { next_push: 17, next_pop: 17 });
    }

    #[test]
    fn a_counter_has_all_that_was_answered_and_no_more_than_was_sent() {
        assert_eq!(judge_counter(text("7").as_ref(), 5, (2, 4)), Ok(7));
        assert_eq!(judge_counter(None, 0, (0, 3)), Ok(0));
        for (found, kind) in [("6", Kind::Lost), ("10", Kind::Partial), ("x", Kind::Partial)] {
            assert_eq!(judge_counter(text(found).as_ref(), 5, (2, 4)).unwrap_err().kind, kind);
        }
    }
}
