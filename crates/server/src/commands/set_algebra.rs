//! Set algebra: intersections, unions and differences, as replies and into a key.
//!
//! Owns: the three operations over any number of sets. Does **not** own single sets ([`super::sets`]).

use super::collections::{bulk_elem, numkeys_arg};
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_resp::writer::Writer;
use towline_store::keyspace::{Expiry, Keyspace};
use towline_store::limits::EncodingLimits;
use towline_store::notify::Class;
use towline_store::number::parse_i64;
use towline_store::packed::Elem;
use towline_store::set::Set;
use towline_store::value::{Value, ValueRef};

/// What is made of several sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// Members of all sets.
    Inter,
    /// Members of any set.
    Union,
    /// Members of the first set that are in no other.
    Diff,
}

impl Operation {
    fn stored_event(self) -> &'static str {
        match self {
            Self::Inter => "sinterstore",
            Self::Union => "sunionstore",
            Self::Diff => "sdiffstore",
        }
    }
}

/// The sets at `keys`, `None` for those that are not there. All are looked at before the first is used, so that a key of
/// another kind is an error wherever it stands.
fn sets<'k>(ks: &'k mut Keyspace<'_>, keys: Args<'_>) -> Result<Vec<Option<&'k Set>>, CommandError> {
    for key in keys.iter() {
        ks.set(key)?;
    }
    let ks = &*ks;
    let set_at = |key| match ks.peek(key) {
        Some(ValueRef::Set(set)) => Some(set),
        _ => None,
    };
    Ok(keys.iter().map(set_at).collect())
}

/// Visits the members of the intersection until `visit` says that it has enough.
fn intersect<'s>(sets: &[Option<&'s Set>], mut visit: impl FnMut(Elem<'s>) -> bool) {
    let Some(mut sets) = sets.iter().copied().collect::<Option<Vec<_>>>() else { return };
    // The smallest first: the work is its size times the number of sets.
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return };
    for member in smallest.iter() {
        if others.iter().all(|set| set.contains(member)) && !visit(member) {
            return;
        }
    }
}

/// What an operation yields.
enum Outcome<'s> {
    /// Members of the operands.
    Borrowed(Vec<Elem<'s>>),
    /// A set that had to be built.
    Built(Set),
}

impl Outcome<'_> {
    fn into_set(self, limits: &EncodingLimits) -> Set {
        match self {
            Self::Borrowed(members) => Set::from_members(members, limits),
            Self::Built(set) => set,
        }
    }

    fn reply(&self, out: &mut Writer) {
        match self {
            Self::Borrowed(members) => {
                out.set(members.len());
                members.iter().for_each(|member| bulk_elem(out, *member));
            }
            Self::Built(set) => {
                out.set(set.len());
                set.iter().for_each(|member| bulk_elem(out, member));
            }
        }
    }
}

fn run<'s>(operation: Operation, sets: &[Option<&'s Set>], limits: &EncodingLimits) -> Outcome<'s> {
    match operation {
        Operation::Inter => {
            let mut members = Vec::new();
            intersect(sets, |member| {
                members.push(member);
                true
            });
            Outcome::Borrowed(members)
        }
        Operation::Union => {
            let members = sets.iter().flatten().flat_map(|set| set.iter());
            Outcome::Built(Set::from_members(members, limits))
        }
        Operation::Diff => difference(sets, limits),
    }
}

/// Either looks up each member of the first set in the others, or takes the others' members out of a copy: whichever
/// costs less, where a look-up in half of the sets is expected to decide.
fn difference<'s>(sets: &[Option<&'s Set>], limits: &EncodingLimits) -> Outcome<'s> {
    let Some((Some(first), others)) = sets.split_first() else { return Outcome::Borrowed(Vec::new()) };
    let mut others: Vec<&Set> = others.iter().copied().flatten().collect();
    let all_members = others.iter().fold(first.len(), |sum, set| sum.saturating_add(set.len()));
    if first.len().saturating_mul(others.len()) / 2 <= all_members {
        // Large sets first: they are the likeliest to have a member.
        others.sort_by_key(|set| std::cmp::Reverse(set.len()));
        let is_left = |member: &Elem<'_>| !others.iter().any(|set| set.contains(*member));
        return Outcome::Borrowed(first.iter().filter(is_left).collect());
    }
    let mut left = Set::from_members(first.iter(), limits);
    for member in others.iter().flat_map(|set| set.iter()) {
        left.remove(member);
        if left.is_empty() {
            break;
        }
    }
    Outcome::Built(left)
}

fn reply(ctx: &mut Ctx<'_>, args: Args<'_>, operation: Operation) -> CommandResult {
    let limits = &ctx.ks.settings().limits;
    let outcome = run(operation, &sets(&mut ctx.ks, args.from(1))?, limits);
    outcome.reply(ctx.out);
    Ok(())
}

/// Replaces the destination, whatever it held, by the result; an empty one deletes it.
fn store(ctx: &mut Ctx<'_>, args: Args<'_>, operation: Operation) -> CommandResult {
    let limits = &ctx.ks.settings().limits;
    let result = run(operation, &sets(&mut ctx.ks, args.from(2))?, limits).into_set(limits);
    let (destination, len) = (args.get(1), result.len());
    if len > 0 {
        ctx.ks.set_value(destination, Value::Set(result), Expiry::Clear);
        ctx.ks.changed(destination, Class::Set, operation.stored_event());
    } else if ctx.ks.delete(destination) {
        ctx.ks.changed(destination, Class::Generic, "del");
    }
    ctx.out.int(len as i64);
    Ok(())
}

fn sinter(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, Operation::Inter)
}

fn sunion(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, Operation::Union)
}

fn sdiff(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, Operation::Diff)
}

fn sinterstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    store(ctx, args, Operation::Inter)
}

fn sunionstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    store(ctx, args, Operation::Union)
}

fn sdiffstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    store(ctx, args, Operation::Diff)
}

fn sintercard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key_count = numkeys_arg(args, 1)?;
    if key_count > args.len() - 2 {
        return Err(CommandError::Text("ERR Number of keys can't be greater than number of args"));
    }
    let mut limit = 0;
    let options = args.from(2 + key_count);
    for index in (0..options.len()).step_by(2) {
        if !options.is(index, "limit") || index + 1 == options.len() {
            return Err(CommandError::Syntax);
        }
        let given = parse_i64(options.get(index + 1)).and_then(|limit| usize::try_from(limit).ok());
        limit = given.ok_or(CommandError::Text("ERR LIMIT can't be negative"))?;
    }
    let mut count = 0;
    intersect(&sets(&mut ctx.ks, args.from(2).first(key_count))?, |_| {
        count += 1;
        count != limit
    });
    ctx.out.int(count as i64);
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("sdiff", sdiff),
    keys("sdiffstore", sdiffstore),
    keys("sinter", sinter),
    keys("sintercard", sintercard),
    keys("sinterstore", sinterstore),
    keys("sunion", sunion),
    keys("sunionstore", sunionstore),
];

#[cfg(test)]
mod tests;
