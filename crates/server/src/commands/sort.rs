//! `SORT` and `SORT_RO`.
//!
//! Owns: weights, order, look-ups by pattern, storing. Does **not** own the collections that are sorted. Patterns name
//! keys that are not among the arguments, so a command that has some holds every slot.

use crate::command::{Args, CommandError, CommandResult, Ctx, Locks, Row};
use std::cmp::Ordering;
use std::ops::Range;
use towline_cluster::{Slot, hash_tag, key_slot};
use towline_store::keyspace::{Expiry, WrongType};
use towline_store::list::{End, List};
use towline_store::notify::Class;
use towline_store::number::parse_f64_lax;
use towline_store::value::{Value, ValueRef};

/// What a pattern of `BY` or `GET` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// No `*`: names nothing.
    Nothing,
    /// A key: the element between these two; of a hash that field.
    Key { before: &'a [u8], after: &'a [u8], field: Option<&'a [u8]> },
}

impl<'a> Pattern<'a> {
    fn parse(text: &'a [u8]) -> Self {
        if text == b"#" {
            return Self::Element;
        }
        let Some(star) = memchr::memchr(b'*', text) else { return Self::Nothing };
        let (before, rest) = (&text[..star], &text[star + 1..]);
        match memchr::memmem::find(rest, b"->") {
            Some(arrow) if arrow + 2 < rest.len() => {
                Self::Key { before, after: &rest[..arrow], field: Some(&rest[arrow + 2..]) }
            }
            _ => Self::Key { before, after: rest, field: None },
        }
    }

    /// A pattern of `BY`, where `#` has no meaning.
    fn parse_weight(text: &'a [u8]) -> Self {
        match Self::parse(text) {
            Self::Element => Self::Nothing,
            pattern => pattern,
        }
    }

    fn looks_up(self) -> bool {
        matches!(self, Self::Key { .. })
    }

    /// Whether every key that the pattern makes is in this slot: it has a hash tag before the place of the element.
    fn is_in_slot(self, slot: Slot) -> bool {
        match self {
            Self::Element | Self::Nothing => true,
            Self::Key { before, .. } => hash_tag(before) != before && key_slot(before) == slot,
        }
    }

    /// What the pattern stands for with `element` in it.
    fn value(self, ctx: &mut Ctx<'_>, element: &[u8]) -> Option<Vec<u8>> {
        let (before, after, field) = match self {
            Self::Element => return Some(element.to_vec()),
            Self::Nothing => return None,
            Self::Key { before, after, field } => (before, after, field),
        };
        let key = [before, element, after].concat();
        match field {
            None => ctx.ks.string(&key).ok().flatten().map(|text| text.to_vec()),
            Some(field) => ctx.ks.hash(&key).ok().flatten()?.get(field).map(|value| value.to_vec()),
        }
    }
}

#[derive(Debug, Default)]
struct Options<'a> {
    by: Option<Pattern<'a>>,
    /// A `BY` named nothing, which says that the order stays as it is, whatever another `BY` says.
    keeps_order: bool,
    gets: Vec<Pattern<'a>>,
    limit: Option<(i64, i64)>,
    is_descending: bool,
    is_alpha: bool,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>, may_store: bool) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut index = 2;
        while index < args.len() {
            let value = args.at(index + 1);
            index += 2;
            match (args.get(index - 2).to_ascii_uppercase().as_slice(), value) {
                (b"ASC", _) => (options.is_descending, index) = (false, index - 1),
                (b"DESC", _) => (options.is_descending, index) = (true, index - 1),
                (b"ALPHA", _) => (options.is_alpha, index) = (true, index - 1),
                (b"LIMIT", Some(_)) if index < args.len() => {
                    options.limit = Some((args.int(index - 1)?, args.int(index)?));
                    index += 1;
                }
                (b"STORE", Some(key)) if may_store => options.store = Some(key),
                (b"BY", Some(pattern)) => {
                    let by = Pattern::parse_weight(pattern);
                    options.keeps_order |= by == Pattern::Nothing;
                    options.by = Some(by);
                }
                (b"GET", Some(pattern)) => options.gets.push(Pattern::parse(pattern)),
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(options)
    }

    fn looks_up(&self) -> bool {
        self.by.is_some_and(Pattern::looks_up) || self.gets.iter().any(|pattern| pattern.looks_up())
    }

    /// The part of `len` elements that is asked for.
    fn range(&self, len: usize) -> Range<usize> {
        let (start, count) = self.limit.unwrap_or((0, -1));
        let start = usize::try_from(start.max(0)).map_or(len, |start| start.min(len));
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        start..start.saturating_add(count).min(len)
    }
}

fn needs_all_slots(args: Args<'_>) -> bool {
    Options::parse(args, true).is_ok_and(|options| options.looks_up())
}

/// The elements of a collection in the order in which it has them.
#[derive(Debug)]
struct Elements {
    all: Vec<Vec<u8>>,
    is_set: bool,
}

/// Reads the collection at `key`; of one that has an order and keeps it only `part` of its length.
fn elements(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    options: &Options<'_>,
    is_kept: bool,
) -> Result<Elements, CommandError> {
    let part = |len: usize| if is_kept { options.range(len) } else { 0..len };
    let mut is_set = false;
    let all = match ctx.ks.read(key) {
        None => Vec::new(),
        Some(ValueRef::List(list)) => {
            let (len, part) = (list.len(), part(list.len()));
            if part.is_empty() {
                Vec::new()
            } else if is_kept && options.is_descending {
                let back = list.iter_back_from(len - 1 - part.start);
                back.take(part.len()).map(|element| element.to_vec()).collect()
            } else {
                list.iter_from(part.start).take(part.len()).map(|element| element.to_vec()).collect()
            }
        }
        Some(ValueRef::Set(set)) => {
            is_set = true;
            set.iter().map(|member| member.to_vec()).collect()
        }
        Some(ValueRef::Zset(zset)) => {
            let (len, part) = (zset.len(), part(zset.len()));
            if is_kept && options.is_descending {
                let ranks = len - part.end..len - part.start;
                zset.range(ranks).rev().map(|(member, _)| member.to_vec()).collect()
            } else {
                zset.range(part).map(|(member, _)| member.to_vec()).collect()
            }
        }
        Some(ValueRef::String(_) | ValueRef::Hash(_)) => return Err(WrongType.into()),
    };
    Ok(Elements { all, is_set })
}

/// Sorts by number; equal ones by their text, so that the result is always the same.
fn sort_numbers(
    ctx: &mut Ctx<'_>,
    elements: Vec<Vec<u8>>,
    by: Option<Pattern<'_>>,
    is_descending: bool,
) -> Result<Vec<Vec<u8>>, CommandError> {
    let mut weighed = Vec::with_capacity(elements.len());
    for element in elements {
        let weight = match by {
            None => weight(&element),
            Some(by) => by.value(ctx, &element).map_or(Some(0.0), |text| weight(&text)),
        };
        let weight =
            weight.ok_or(CommandError::Text("ERR One or more scores can't be converted into double"))?;
        weighed.push((weight, element));
    }
    weighed.sort_by(|a, b| {
        let order = a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal).then_with(|| a.1.cmp(&b.1));
        if is_descending { order.reverse() } else { order }
    });
    Ok(weighed.into_iter().map(|(_, element)| element).collect())
}

/// A text as a number; a finite one that does not fit is none.
fn weight(text: &[u8]) -> Option<f64> {
    let number = parse_f64_lax(text)?;
    let is_overflow = number.is_infinite() && text.iter().any(u8::is_ascii_digit);
    (!number.is_nan() && !is_overflow).then_some(number)
}

/// Sorts by text; what a pattern does not find comes first.
fn sort_texts(
    ctx: &mut Ctx<'_>,
    mut elements: Vec<Vec<u8>>,
    by: Option<Pattern<'_>>,
    is_descending: bool,
) -> Vec<Vec<u8>> {
    let in_order = |order: Ordering| if is_descending { order.reverse() } else { order };
    let Some(by) = by else {
        elements.sort_by(|a, b| in_order(a.cmp(b)));
        return elements;
    };
    let mut weighed: Vec<_> =
        elements.into_iter().map(|element| (by.value(ctx, &element), element)).collect();
    weighed.sort_by(|a, b| in_order(a.0.cmp(&b.0)));
    weighed.into_iter().map(|(_, element)| element).collect()
}

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA] [STORE destination]`
fn sort(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args, true)?;
    run(ctx, args.get(1), options)
}

/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]`
fn sort_ro(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args, false)?;
    run(ctx, args.get(1), options)
}

/// In a cluster, keys that patterns make must be where the sorted key is: other nodes may have them.
fn check_slots(ctx: &Ctx<'_>, key: &[u8], options: &Options<'_>) -> CommandResult {
    if ctx.server.cluster.is_none() {
        return Ok(());
    }
    let slot = key_slot(key);
    if options.by.is_some_and(|by| !by.is_in_slot(slot)) {
        return Err(CommandError::Text(
            "ERR BY option of SORT denied in cluster mode when keys formed by the pattern may be in different slots.",
        ));
    }
    if options.gets.iter().any(|get| !get.is_in_slot(slot)) {
        return Err(CommandError::Text(
            "ERR GET option of SORT denied in cluster mode when keys formed by the pattern may be in different slots.",
        ));
    }
    Ok(())
}

fn run(ctx: &mut Ctx<'_>, key: &[u8], mut options: Options<'_>) -> CommandResult {
    check_slots(ctx, key, &options)?;
    let mut is_kept = options.keeps_order;
    let Elements { all, is_set } = elements(ctx, key, &options, is_kept)?;
    if is_kept && is_set && options.store.is_some() {
        // What is stored must not depend on the order inside a set.
        (is_kept, options.by, options.is_alpha) = (false, None, true);
    }
    let sorted = match (is_kept, options.is_alpha) {
        (true, _) => all,
        (false, true) => sort_texts(ctx, all, options.by, options.is_descending),
        (false, false) => sort_numbers(ctx, all, options.by, options.is_descending)?,
    };
    // Lists and sorted sets that keep their order were cut when they were read.
    let part = if is_kept && !is_set { 0..sorted.len() } else { options.range(sorted.len()) };
    let shown = &sorted[part];
    match options.store {
        Some(to) => store(ctx, to, shown, &options.gets),
        None => {
            reply(ctx, shown, &options.gets);
            Ok(())
        }
    }
}

fn reply(ctx: &mut Ctx<'_>, shown: &[Vec<u8>], gets: &[Pattern<'_>]) {
    ctx.out.array(shown.len() * gets.len().max(1));
    for element in shown {
        if gets.is_empty() {
            ctx.out.bulk(element);
        }
        for get in gets {
            match get.value(ctx, element) {
                Some(value) => ctx.out.bulk(&value),
                None => ctx.out.null(),
            }
        }
    }
}

/// Stores the result as a list; what a pattern does not find is the empty string there.
fn store(ctx: &mut Ctx<'_>, to: &[u8], shown: &[Vec<u8>], gets: &[Pattern<'_>]) -> CommandResult {
    let limits = &ctx.ks.settings().limits;
    let mut list = List::new();
    for element in shown {
        if gets.is_empty() {
            list.push(End::Back, element, limits);
        }
        for get in gets {
            list.push(End::Back, &get.value(ctx, element).unwrap_or_default(), limits);
        }
    }
    let len = list.len();
    if len > 0 {
        ctx.ks.set_value(to, Value::List(list), Expiry::Clear);
        ctx.ks.changed(to, Class::List, "sortstore");
    } else if ctx.ks.delete(to) {
        ctx.ks.changed(to, Class::Generic, "del");
    }
    ctx.out.int(len as i64);
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    Row { name: "sort", run: sort, locks: Locks::AllIf(needs_all_slots) },
    Row { name: "sort_ro", run: sort_ro, locks: Locks::AllIf(needs_all_slots) },
];

#[cfg(test)]
mod tests {
    use crate::testing::Server;
    use towline_rdb::DumpWriter;

    fn server() -> Server {
        let mut server = Server::new();
        server.line("RPUSH l 3 1 10 2");
        for (id, weight, name) in [("1", "30", "one"), ("2", "20", "two"), ("3", "10", "three")] {
            server.run(&["SET", &format!("w_{id}"), weight]);
            server.run(&["HSET", &format!("h_{id}"), "name", name, "w", weight]);
        }
        server
    }

    #[test]
    fn numbers_and_texts() {
        let mut server = server();
        assert_eq!(server.line("SORT l"), "*4 $1 1 $1 2 $1 3 $2 10");
        assert_eq!(server.line("SORT l DESC"), "*4 $2 10 $1 3 $1 2 $1 1");
        assert_eq!(server.line("SORT l ALPHA"), "*4 $1 1 $2 10 $1 2 $1 3");
        assert_eq!(server.line("SORT l alpha desc asc"), "*4 $1 1 $2 10 $1 2 $1 3");
        assert_eq!(server.line("SORT_RO l LIMIT 1 2"), "*2 $1 2 $1 3");
        assert_eq!(server.line("SORT l LIMIT -5 1"), "*1 $1 1");
        assert_eq!(server.line("SORT l LIMIT 10 10"), "*0");
        assert_eq!(server.line("SORT l LIMIT 1 -1"), "*3 $1 2 $1 3 $2 10");
        assert_eq!(server.line("SORT l LIMIT 1 0"), "*0");
        assert_eq!(server.line("SORT none"), "*0");
    }

    #[test]
    fn patterns_look_up_weights_and_values() {
        let mut server = server();
        assert_eq!(server.line("SORT l BY w_*"), "*4 $2 10 $1 3 $1 2 $1 1");
        assert_eq!(server.line("SORT l BY h_*->w"), "*4 $2 10 $1 3 $1 2 $1 1");
        assert_eq!(server.line("SORT l BY h_*->name ALPHA"), "*4 $2 10 $1 1 $1 3 $1 2");
        assert_eq!(server.line("SORT l LIMIT 0 1 GET # GET w_* GET h_*->name"), "*3 $1 1 $2 30 $3 one");
        assert_eq!(server.line("SORT l DESC LIMIT 0 1 GET w_* GET fixed GET l*"), "*3 $-1 $-1 $-1");
        assert_eq!(server.line("SORT l LIMIT 0 1 GET h_* GET w_*->f GET w_*->"), "*3 $-1 $-1 $-1");
    }

    #[test]
    fn a_pattern_without_a_star_keeps_the_order() {
        let mut server = server();
        assert_eq!(server.line("SORT l BY #"), "*4 $1 3 $1 1 $2 10 $1 2");
        assert_eq!(server.line("SORT l BY nosort"), "*4 $1 3 $1 1 $2 10 $1 2");
        assert_eq!(server.line("SORT l BY nosort LIMIT 1 2"), "*2 $1 1 $2 10");
        assert_eq!(server.line("SORT l BY nosort DESC LIMIT 1 2"), "*2 $2 10 $1 1");
        assert_eq!(server.line("SORT l BY nosort LIMIT 4 2"), "*0");
        assert_eq!(server.line("SORT l BY nosort BY w_*"), "*4 $1 3 $1 1 $2 10 $1 2");
        let mut zset = DumpWriter::zset(3);
        [("c", 3.0), ("a", 1.0), ("b", 2.0)]
            .iter()
            .for_each(|(member, score)| zset.scored(member.as_bytes(), *score));
        server.run_bytes(&[b"RESTORE", b"z", b"0", &zset.finish()]);
        assert_eq!(server.line("SORT z BY nosort"), "*3 $1 a $1 b $1 c");
        assert_eq!(server.line("SORT z BY nosort DESC LIMIT 0 2"), "*2 $1 c $1 b");
        assert_eq!(server.line("SORT z BY nosort DESC LIMIT 2 5"), "*1 $1 a");
        server.line("SADD s c a b");
        assert_eq!(server.line("SORT s BY nosort STORE d"), ":3");
        assert_eq!(server.line("LRANGE d 0 -1"), "*3 $1 a $1 b $1 c");
    }

    #[test]
    fn results_are_stored() {
        let mut server = server();
        assert_eq!(server.line("SORT l STORE d"), ":4");
        assert_eq!(server.line("LRANGE d 0 -1"), "*4 $1 1 $1 2 $1 3 $2 10");
        assert_eq!(server.line("SORT l GET w_* STORE d"), ":4");
        assert_eq!(server.line("LRANGE d 0 -1"), "*4 $2 30 $2 20 $2 10 $0");
        assert_eq!(server.line("SORT none STORE d"), ":0");
        assert_eq!(server.line("EXISTS d"), ":0");
        server.line("SORT l STORE l");
        assert_eq!(server.line("LRANGE l 0 -1"), "*4 $1 1 $1 2 $1 3 $2 10");
    }

    #[test]
    fn arguments_and_values_that_do_not_fit() {
        let mut server = server();
        assert_eq!(server.line("SORT_RO l STORE d"), "-ERR syntax error");
        assert_eq!(server.line("SORT l LIMIT 1"), "-ERR syntax error");
        assert_eq!(server.line("SORT l BY"), "-ERR syntax error");
        assert_eq!(server.line("SORT l LIMIT x 1"), "-ERR value is not an integer or out of range");
        assert_eq!(
            server.line("SORT w_1"),
            "-WRONGTYPE Operation against a key holding the wrong kind of value"
        );
        server.line("RPUSH t 1 x");
        assert_eq!(server.line("SORT t"), "-ERR One or more scores can't be converted into double");
        assert_eq!(
            server.line("SORT l BY h_*->name"),
            "-ERR One or more scores can't be converted into double"
        );
    }
}
