//! What is known of the commands on one key.
//!
//! Owns the counts and the bounds that follow from them. Does not ask the server.

use towline_client::{Error, Sent};

/// Commands that each add one to a number.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    pub(super) acked: u64,
    pub(super) unknown: u64,
    pub(super) not_sent: u64,
    /// The last value that was acknowledged.
    last: i64,
}

/// The fate that an error tells. An answer that makes no sense counts as unknown: garbage can look like an error.
fn is_not_sent(error: &Error) -> bool {
    error.sent() == Sent::No
}

impl Counter {
    /// Counts an outcome.
    pub(super) fn count(&mut self, outcome: &Result<i64, Error>) {
        match outcome {
            Ok(value) => {
                self.acked += 1;
                self.last = *value;
            }
            Err(error) if is_not_sent(error) => self.not_sent += 1,
            Err(_) => self.unknown += 1,
        }
    }

    /// Counts the outcome of a task that has the counter to itself: values only ever rise.
    pub(super) fn record(&mut self, outcome: &Result<i64, Error>) -> Result<(), String> {
        let last = self.last;
        self.count(outcome);
        match outcome {
            Ok(value) if *value <= last => Err(format!("a counter went from {last} to {value}")),
            _ => Ok(()),
        }
    }

    /// As [`Self::record`], when no other command of the counter is in flight: the value is within the bounds.
    pub(super) fn record_alone(&mut self, outcome: &Result<i64, Error>) -> Result<(), String> {
        self.record(outcome)?;
        outcome.as_ref().map_or(Ok(()), |value| self.allows(*value))
    }

    /// Whether the number may be this.
    pub(super) fn allows(&self, value: i64) -> Result<(), String> {
        let (least, most) = (self.acked, self.acked + self.unknown);
        let is_within = u64::try_from(value).is_ok_and(|value| (least..=most).contains(&value));
        is_within.then_some(()).ok_or_else(|| format!("{value} where {least} to {most} are possible"))
    }
}

/// A counter that many tasks increment.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    pub(super) counter: Counter,
    /// The acknowledged values, one bit each.
    seen: Vec<u64>,
}

impl Shared {
    pub(super) fn record(&mut self, outcome: &Result<i64, Error>) -> Result<(), String> {
        self.counter.count(outcome);
        let Ok(value) = *outcome else { return Ok(()) };
        let Ok(value) = usize::try_from(value) else { return Err(format!("{value} as a count")) };
        let (word, bit) = (value / 64, 1 << (value % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        is_new.then_some(()).ok_or_else(|| format!("the value {value} was given to two commands"))
    }
}

/// A string that is set to values which are all different.
#[derive(Debug, Default)]
pub(super) struct Register {
    count: u64,
    pub(super) acked: u64,
    pub(super) not_sent: u64,
    last: Option<String>,
    /// Each of these may have become the value at any time, once.
    unknown: Vec<String>,
}

impl Register {
    pub(super) fn next(&mut self) -> String {
        self.count += 1;
        format!("value-{}", self.count)
    }

    pub(super) fn record(&mut self, value: String, outcome: Result<&(), &Error>) {
        match outcome {
            Ok(()) => {
                self.acked += 1;
                self.last = Some(value);
            }
            Err(error) if is_not_sent(error) => self.not_sent += 1,
            Err(_) => self.unknown.push(value),
        }
    }

    pub(super) fn unknown(&self) -> u64 {
        self.unknown.len() as u64
    }

    pub(super) fn allows(&self, read: Option<&[u8]>) -> Result<(), String> {
        let is_last = read == self.last.as_deref().map(str::as_bytes);
        if is_last || self.unknown.iter().any(|value| Some(value.as_bytes()) == read) {
            return Ok(());
        }
        let text = read.map(|read| read.escape_ascii().to_string());
        Err(format!("a string is {text:?}, last set to {:?}", self.last))
    }
}

/// What became of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Acked,
    Unknown,
    NotSent,
}

/// A list to which numbered entries are appended.
#[derive(Debug, Default)]
pub(super) struct Entries {
    fates: Vec<Fate>,
}

impl Entries {
    pub(super) fn next(&self) -> usize {
        self.fates.len()
    }

    pub(super) fn record(&mut self, outcome: Result<&(), &Error>) {
        self.fates.push(match outcome {
            Ok(()) => Fate::Acked,
            Err(error) if is_not_sent(error) => Fate::NotSent,
            Err(_) => Fate::Unknown,
        });
    }

    pub(super) fn fates(&self) -> &[Fate] {
        &self.fates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_client::ErrorKind;

    fn failed(sent: Sent) -> Result<i64, Error> {
        Err(Error::new(ErrorKind::Deadline, sent))
    }

    #[test]
    fn a_counter_allows_what_its_commands_allow() {
        let mut counter = Counter::default();
        for outcome in [Ok(1), failed(Sent::Maybe), failed(Sent::No), Ok(3)] {
            counter.record_alone(&outcome).unwrap();
        }
        counter.allows(2).unwrap();
        counter.allows(3).unwrap();
        counter.allows(1).unwrap_err();
        counter.allows(4).unwrap_err();
        counter.clone().record(&Ok(3)).unwrap_err();
        counter.record_alone(&Ok(6)).unwrap_err();
    }

    #[test]
    fn a_value_that_two_commands_got_is_found() {
        let mut shared = Shared::default();
        shared.record(&Ok(70)).unwrap();
        shared.record(&Ok(71)).unwrap();
        shared.record(&Ok(70)).unwrap_err();
    }

    #[test]
    fn a_string_may_be_what_was_possibly_set() {
        let mut register = Register::default();
        let (first, second, third) = (register.next(), register.next(), register.next());
        register.allows(None).unwrap();
        register.record(first, Ok(&()));
        register.record(second, Err(&failed(Sent::Maybe).unwrap_err()));
        register.record(third, Err(&failed(Sent::No).unwrap_err()));
        register.allows(Some(b"value-1")).unwrap();
        register.allows(Some(b"value-2")).unwrap();
        register.allows(Some(b"value-3")).unwrap_err();
        register.allows(None).unwrap_err();
    }
}
