//! What writes did, as commands that do the same anywhere.
//!
//! Owns: the record of a command's effects and their form on the wire (RESP arrays of bulk strings, in the words of Redis
//! 7, so that the log is one that Redis can read). Does **not** own who listens (see [`crate::stream`]) nor when a command
//! begins and ends (see [`crate::keyspace`]).
//!
//! Effects are recorded where a value is changed, by the types that a handler changes it through (see
//! [`crate::keyspace::editing`]), never by the handler: a new command cannot forget its effect, because there is no way to
//! change a value past them. An effect names what happened, not what was asked: `SPOP` is an `SREM` of the chosen members,
//! a relative expiry is an absolute one, an increment that yields a string is a `SET` of the outcome, a command over
//! several slots is one effect in each. Replay needs no clock and no randomness, and the same order in each slot is enough.

use std::ops::Range;
use towline_cluster::Slot;

/// What an effect concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A key of this slot.
    Slot(Slot),
    /// A database, or two, in all slots.
    Store,
}

#[derive(Debug)]
struct Op {
    scope: Scope,
    db: u8,
    verb: &'static str,
    /// Where its arguments begin in `ends`.
    first: usize,
    /// Whether another one with the same key and verb adds its arguments to this one.
    is_mergeable: bool,
}

/// The effects of the commands since the last commit; one per worker.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    ops: Vec<Op>,
    /// Where each unit that is complete ends in `ops`.
    units: Vec<usize>,
    /// Where each argument ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    /// The key at hand.
    slot: Slot,
    db: u8,
    key: Vec<u8>,
}

/// Room kept from one command to the next; what a large value needed beyond is given back.
const KEPT_BYTES_MAX: usize = 64 * 1024;

impl Effects {
    /// Whether nothing was recorded.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The following effects concern this key.
    pub(crate) fn focus(&mut self, slot: Slot, db: u8, key: &[u8]) {
        (self.slot, self.db) = (slot, db);
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    /// The key that is in focus.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Records `verb key args…`.
    pub(crate) fn record<'a>(&mut self, verb: &'static str, args: impl IntoIterator<Item = &'a [u8]>) {
        self.begin(verb, false);
        args.into_iter().for_each(|arg| self.arg(arg));
    }

    /// Records `verb key args…`, or adds the arguments to the effect before it if that has the same key and verb.
    pub(crate) fn extend<'a>(&mut self, verb: &'static str, args: impl IntoIterator<Item = &'a [u8]>) {
        let is_first = self.units.last().is_some_and(|&end| end == self.ops.len());
        let same = self.ops.last().is_some_and(|last| {
            !is_first
                && last.is_mergeable
                && last.verb == verb
                && last.db == self.db
                && last.scope == Scope::Slot(self.slot)
                && self.arg_at(last.first) == self.key
        });
        if !same {
            self.begin(verb, true);
        }
        args.into_iter().for_each(|arg| self.arg(arg));
    }

    /// Records a command without a key that concerns a whole slot, or whole databases.
    pub(crate) fn record_whole<'a>(
        &mut self,
        scope: Scope,
        db: u8,
        verb: &'static str,
        args: impl IntoIterator<Item = &'a [u8]>,
    ) {
        self.ops.push(Op { scope, db, verb, first: self.ends.len(), is_mergeable: false });
        args.into_iter().for_each(|arg| self.arg(arg));
    }

    fn begin(&mut self, verb: &'static str, is_mergeable: bool) {
        let (scope, first) = (Scope::Slot(self.slot), self.ends.len());
        self.ops.push(Op { scope, db: self.db, verb, first, is_mergeable });
        self.bytes.extend_from_slice(&self.key);
        self.ends.push(self.bytes.len());
    }

    fn arg(&mut self, arg: &[u8]) {
        self.bytes.extend_from_slice(arg);
        self.ends.push(self.bytes.len());
    }

    fn arg_at(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    fn args_of(&self, op: usize) -> Range<usize> {
        let end = self.ops.get(op + 1).map_or(self.ends.len(), |next| next.first);
        self.ops[op].first..end
    }

    /// Number of effects.
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// Ends the unit: its effects are applied all or none. Nothing happens if it has none.
    #[inline]
    pub(crate) fn end_unit(&mut self) {
        let count = self.ops.len();
        if count > self.units.last().copied().unwrap_or(0) {
            self.units.push(count);
        }
    }

    /// The units that are complete, each with its effects, in order.
    pub(crate) fn units(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(0).chain(self.units.iter().copied());
        starts.zip(&self.units).map(|(start, &end)| start..end)
    }

    /// What effect `op` concerns, and in which database.
    pub(crate) fn scope(&self, op: usize) -> (Scope, u8) {
        (self.ops[op].scope, self.ops[op].db)
    }

    /// Writes effect `op` as a RESP command.
    pub(crate) fn render(&self, op: usize, out: &mut Vec<u8>) {
        let args = self.args_of(op);
        write_head(out, b'*', args.len() + 1);
        write_bulk(out, self.ops[op].verb.as_bytes());
        args.for_each(|at| write_bulk(out, self.arg_at(at)));
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.ops.clear();
        self.units.clear();
        self.ends.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.ends.shrink_to(KEPT_BYTES_MAX);
    }
}

/// The shortest text that reads as this score again.
pub(crate) fn format_score(score: f64) -> String {
    /// From here on, the plain form has digits that say nothing.
    const PLAIN_MAX: f64 = 1e17;
    if score.abs() < PLAIN_MAX && (score == 0.0 || score.abs() > 1e-5) {
        format!("{score}")
    } else {
        format!("{score:e}")
    }
}

#[inline]
fn write_head(out: &mut Vec<u8>, mark: u8, number: usize) {
    if number < 10 {
        // Most are, and this is on the way of every write.
        out.extend_from_slice(&[mark, b'0' + number as u8, b'\r', b'\n']);
        return;
    }
    out.push(mark);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    write_head(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(effects: &Effects) -> Vec<String> {
        let render = |op| {
            let mut out = Vec::new();
            effects.render(op, &mut out);
            String::from_utf8(out).unwrap().replace("\r\n", " ").trim_end().to_owned()
        };
        (0..effects.len()).map(render).collect()
    }

    #[test]
    fn effects_on_one_key_join() {
        let mut effects = Effects::default();
        effects.focus(3, 0, b"k");
        effects.extend("HSET", [b"f".as_slice(), b"1"]);
        effects.extend("HSET", [b"g".as_slice(), b"2"]);
        effects.focus(3, 1, b"k");
        effects.extend("HSET", [b"f".as_slice(), b"1"]);
        effects.extend("HDEL", [b"f".as_slice()]);
        effects.record("PEXPIREAT", [b"7".as_slice()]);
        effects.record_whole(Scope::Store, 4, "FLUSHDB", []);
        assert_eq!(
            rendered(&effects),
            [
                "*6 $4 HSET $1 k $1 f $1 1 $1 g $1 2",
                "*4 $4 HSET $1 k $1 f $1 1",
                "*3 $4 HDEL $1 k $1 f",
                "*3 $9 PEXPIREAT $1 k $1 7",
                "*1 $7 FLUSHDB",
            ]
        );
        assert_eq!(effects.scope(1), (Scope::Slot(3), 1));
        assert_eq!(effects.scope(4), (Scope::Store, 4));
        assert_eq!(effects.units().count(), 0);
        effects.end_unit();
        effects.end_unit();
        effects.focus(3, 1, b"k");
        effects.extend("HDEL", [b"f".as_slice()]);
        effects.end_unit();
        effects.extend("HDEL", [b"g".as_slice()]);
        effects.extend("HDEL", [b"h".as_slice()]);
        effects.end_unit();
        assert_eq!(effects.units().collect::<Vec<_>>(), [0..5, 5..6, 6..7], "nothing joins across units");
        effects.clear();
        assert!(effects.is_empty());
    }
}
