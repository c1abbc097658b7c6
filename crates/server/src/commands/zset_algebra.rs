//! Union, intersection and difference of sorted sets, replied or stored; sets are taken as sorted sets of scores 1.
//!
//! Owns: the arguments of these commands and the arithmetic of scores. Does **not** own the sets themselves.

use super::zset_common::Scores;
use super::zset_ranges::store;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use towline_store::keyspace::{Keyspace, WrongType};
use towline_store::number::{parse_f64, parse_i64};
use towline_store::packed::Elem;
use towline_store::set::Set;
use towline_store::value::ValueRef;
use towline_store::zset::Zset;

/// Input keys that are kept without a heap allocation.
const INPUTS_INLINE: usize = 8;
/// The score of a member of a set.
const SET_SCORE: f64 = 1.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// How the scores of a member in several inputs become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        const NAMES: [(&[u8], Aggregate); 3] =
            [(b"sum", Aggregate::Sum), (b"min", Aggregate::Min), (b"max", Aggregate::Max)];
        let found = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        found.map(|(_, aggregate)| *aggregate).ok_or(CommandError::Syntax)
    }

    /// The sum of infinities of either sign is 0, as in Redis. Where a product was not a number, the other score stays.
    fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Sum => number_or_zero(left + right),
            Self::Min => left.min(right),
            Self::Max => left.max(right),
        }
    }
}

fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

// ---- arguments ----------------------------------------------------------------------------------------------------

/// What the command's name says.
#[derive(Debug, Clone, Copy)]
struct Form {
    name: &'static str,
    operation: Operation,
    kind: FormKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormKind {
    Reply,
    /// The result goes to the key that is the first argument.
    Store,
    /// Only the size of the result is asked for.
    Count,
}

#[derive(Debug, Clone, Copy)]
struct Input<'a> {
    key: &'a [u8],
    /// Members; 0 when there is no such key.
    len: usize,
    weight: f64,
}

/// The arguments of one command.
#[derive(Debug)]
struct Query<'a> {
    inputs: SmallVec<[Input<'a>; INPUTS_INLINE]>,
    operation: Operation,
    aggregate: Aggregate,
    scores: Scores,
    /// Members of an intersection to count at most.
    limit: usize,
}

/// The number of members of a set or sorted set.
fn len_of(value: Option<ValueRef<'_>>) -> Result<usize, WrongType> {
    match value {
        None => Ok(0),
        Some(value @ (ValueRef::Zset(_) | ValueRef::Set(_))) => Ok(value.elements()),
        Some(_) => Err(WrongType),
    }
}

impl<'a> Query<'a> {
    /// Reads the arguments. The inputs are looked up in between, because Redis complains about a wrong type before it does
    /// about options.
    fn parse(ctx: &mut Ctx<'_>, args: Args<'a>, form: Form) -> Result<Self, CommandError> {
        let numkeys = if form.kind == FormKind::Store { 2 } else { 1 };
        let count = args.int(numkeys)?;
        if count < 1 {
            return Err(CommandError::message(format!(
                "ERR at least 1 input key is needed for '{}' command",
                form.name
            )));
        }
        let rest = args.from(numkeys + 1);
        let count =
            usize::try_from(count).ok().filter(|&count| count <= rest.len()).ok_or(CommandError::Syntax)?;
        let mut inputs = SmallVec::new();
        for key in rest.iter().take(count) {
            inputs.push(Input { key, len: len_of(ctx.ks.read(key))?, weight: 1.0 });
        }
        let (operation, aggregate) = (form.operation, Aggregate::Sum);
        let mut query = Self { inputs, operation, aggregate, scores: Scores::Hidden, limit: usize::MAX };
        query.parse_options(rest.from(count), form)?;
        Ok(query)
    }

    fn parse_options(&mut self, options: Args<'a>, form: Form) -> Result<(), CommandError> {
        let is_count = form.kind == FormKind::Count;
        let has_weights = form.operation != Operation::Diff && !is_count;
        let mut index = 0;
        while index < options.len() {
            let left = options.len() - index;
            if has_weights && left > self.inputs.len() && options.is(index, "weights") {
                for (input, weight) in self.inputs.iter_mut().zip(options.from(index + 1).iter()) {
                    input.weight =
                        parse_f64(weight).ok_or(CommandError::Text("ERR weight value is not a float"))?;
                }
                index += 1 + self.inputs.len();
            } else if has_weights && left >= 2 && options.is(index, "aggregate") {
                self.aggregate = Aggregate::parse(options.get(index + 1))?;
                index += 2;
            } else if form.kind == FormKind::Reply && options.is(index, "withscores") {
                self.scores = Scores::Shown;
                index += 1;
            } else if is_count && left >= 2 && options.is(index, "limit") {
                let limit = parse_i64(options.get(index + 1)).and_then(|limit| usize::try_from(limit).ok());
                let limit = limit.ok_or(CommandError::Text("ERR LIMIT can't be negative"))?;
                self.limit = if limit == 0 { usize::MAX } else { limit };
                index += 2;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(())
    }
}

// ---- computing ----------------------------------------------------------------------------------------------------

/// An input's members, whatever keeps them.
#[derive(Debug, Clone, Copy)]
enum Source<'k> {
    Missing,
    Zset(&'k Zset),
    Set(&'k Set),
}

impl<'k> Source<'k> {
    fn of(ks: &'k Keyspace<'_>, key: &[u8]) -> Self {
        match ks.peek(key) {
            Some(ValueRef::Zset(zset)) => Self::Zset(zset),
            Some(ValueRef::Set(set)) => Self::Set(set),
            _ => Self::Missing,
        }
    }

    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Missing => None,
            Self::Zset(zset) => zset.score(member),
            Self::Set(set) => set.contains(member).then_some(SET_SCORE),
        }
    }

    /// Visits the members until the visitor breaks off.
    fn visit(self, mut visit: impl FnMut(Cow<'k, [u8]>, f64) -> ControlFlow<()>) -> ControlFlow<()> {
        match self {
            Self::Missing => ControlFlow::Continue(()),
            Self::Zset(zset) => zset.iter().try_for_each(|(member, score)| visit(member.into(), score)),
            Self::Set(set) => set.iter().try_for_each(|member| match member {
                Elem::Bytes(bytes) => visit(bytes.into(), SET_SCORE),
                Elem::Int(_) => visit(member.to_vec().into(), SET_SCORE),
            }),
        }
    }
}

/// The members of a result with their scores, in no order.
type Entries<'k> = Vec<(Cow<'k, [u8]>, f64)>;

impl Query<'_> {
    /// The inputs with their weights, in the order in which their scores are put together: it shows in the rounding.
    fn sources<'k>(&mut self, ks: &'k Keyspace<'_>) -> SmallVec<[(Source<'k>, f64); INPUTS_INLINE]> {
        if self.operation != Operation::Diff {
            self.inputs.sort_by_key(|input| input.len);
        }
        self.inputs.iter().map(|input| (Source::of(ks, input.key), input.weight)).collect()
    }

    fn entries<'k>(&mut self, ks: &'k Keyspace<'_>) -> Entries<'k> {
        let sources = self.sources(ks);
        let [first, others @ ..] = sources.as_slice() else { return Vec::new() };
        let mut entries = Vec::new();
        match self.operation {
            Operation::Union => return self.union(&sources),
            Operation::Inter => {
                self.for_each_common(*first, others, |member, score| entries.push((member, score)));
            }
            Operation::Diff => {
                let _ = first.0.visit(|member, score| {
                    if !others.iter().any(|(other, _)| other.score(&member).is_some()) {
                        entries.push((member, score));
                    }
                    ControlFlow::Continue(())
                });
            }
        }
        entries
    }

    fn union<'k>(&self, sources: &[(Source<'k>, f64)]) -> Entries<'k> {
        let mut scores: HashMap<Cow<'k, [u8]>, f64> = HashMap::new();
        for (source, weight) in sources {
            let _ = source.visit(|member, score| {
                let score = number_or_zero(score * weight);
                scores.entry(member).and_modify(|sum| *sum = self.aggregate.of(*sum, score)).or_insert(score);
                ControlFlow::Continue(())
            });
        }
        scores.into_iter().collect()
    }

    /// Visits the members that all inputs share, at most `limit`.
    fn for_each_common<'k>(
        &self,
        first: (Source<'k>, f64),
        others: &[(Source<'k>, f64)],
        mut visit: impl FnMut(Cow<'k, [u8]>, f64),
    ) {
        let mut left = self.limit;
        let _ = first.0.visit(|member, score| {
            let first = number_or_zero(score * first.1);
            let sum = others.iter().try_fold(first, |sum, (other, weight)| {
                Some(self.aggregate.of(sum, other.score(&member)? * weight))
            });
            if let Some(sum) = sum {
                visit(member, sum);
                left -= 1;
            }
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
}

// ---- commands -----------------------------------------------------------------------------------------------------

fn run_reply(ctx: &mut Ctx<'_>, args: Args<'_>, name: &'static str, operation: Operation) -> CommandResult {
    let mut query = Query::parse(ctx, args, Form { name, operation, kind: FormKind::Reply })?;
    let mut entries = query.entries(&ctx.ks);
    entries.sort_unstable_by(|(left, left_score), (right, right_score)| {
        // Equal in value is equal here, whatever the sign of zero.
        let by_score = left_score.partial_cmp(right_score).unwrap_or(std::cmp::Ordering::Equal);
        by_score.then_with(|| left.cmp(right))
    });
    query.scores.reply(ctx.out, entries.iter().map(|(member, score)| (member.as_ref(), *score)));
    Ok(())
}

fn run_store(ctx: &mut Ctx<'_>, args: Args<'_>, name: &'static str, operation: Operation) -> CommandResult {
    let mut query = Query::parse(ctx, args, Form { name, operation, kind: FormKind::Store })?;
    let limits = &ctx.ks.settings().limits;
    let entries = query.entries(&ctx.ks);
    let longest = entries.iter().map(|(member, _)| member.len()).max();
    let mut result = Zset::for_members(entries.len(), longest.unwrap_or(0), limits);
    for (member, score) in entries {
        result.insert(&member, score, limits);
    }
    store(ctx, args.get(1), result, name);
    Ok(())
}

fn zunion(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run_reply(ctx, args, "zunion", Operation::Union)
}

fn zinter(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run_reply(ctx, args, "zinter", Operation::Inter)
}

fn zdiff(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run_reply(ctx, args, "zdiff", Operation::Diff)
}

fn zunionstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run_store(ctx, args, "zunionstore", Operation::Union)
}

fn zinterstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run_store(ctx, args, "zinterstore", Operation::Inter)
}

fn zdiffstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    run_store(ctx, args, "zdiffstore", Operation::Diff)
}

fn zintercard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let form = Form { name: "zintercard", operation: Operation::Inter, kind: FormKind::Count };
    let mut query = Query::parse(ctx, args, form)?;
    let sources = query.sources(&ctx.ks);
    let mut count = 0;
    if let [first, others @ ..] = sources.as_slice() {
        query.for_each_common(*first, others, |_, _| count += 1);
    }
    ctx.out.int(count);
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("zdiff", zdiff),
    keys("zdiffstore", zdiffstore),
    keys("zinter", zinter),
    keys("zintercard", zintercard),
    keys("zinterstore", zinterstore),
    keys("zunion", zunion),
    keys("zunionstore", zunionstore),
];

#[cfg(test)]
mod tests;
