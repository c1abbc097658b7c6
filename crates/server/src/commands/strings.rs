//! Commands that read and replace whole strings: `SET`, `GET` and their kin.
//!
//! Owns: these commands, and [`reply_str`]. Does **not** own changes of a part (see [`super::string_parts`]), arithmetic
//! (see [`super::counters`]) or comparison of two strings (see [`super::lcs`]).

use super::deadline::Unit;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use bytes::Bytes;
use std::sync::Arc;
use towline_resp::writer::{SHARED_BULK_BYTES_MIN, Writer};
use towline_store::keyspace::Expiry;
use towline_store::notify::Class;
use towline_store::value::{Str, Value};

/// A string's block as a reply holds it.
#[expect(
    clippy::rc_buffer,
    reason = "the block is the store's, which grows it in place while nobody else holds it"
)]
struct Block(Arc<Vec<u8>>);

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Replies with a string; a large one is shared with the store, not copied.
#[inline]
pub(super) fn reply_str(out: &mut Writer, text: Str<'_>) {
    match text {
        Str::Int(number) => out.bulk_int(number),
        Str::Bytes(bytes) => out.bulk(bytes),
        Str::Shared(block) if block.len() < SHARED_BULK_BYTES_MIN => out.bulk(block),
        Str::Shared(block) => out.bulk_shared(Bytes::from_owner(Block(Arc::clone(block)))),
    }
}

/// Whether a string has this text.
pub(super) fn is_equal(text: Str<'_>, other: &[u8]) -> bool {
    text.bytes(&mut [0; 20]) == other
}

/// Makes `key` hold argument `index`, whose block is taken over when it came as one.
#[inline]
pub(super) fn put(ctx: &mut Ctx<'_>, key: &[u8], args: Args<'_>, index: usize, expiry: Expiry) {
    match args.shared(index) {
        Some(block) => ctx.ks.set_value(key, Value::Shared(Arc::clone(block)), expiry),
        None => ctx.ks.set_string(key, args.get(index), expiry),
    }
}

/// Tells of a string that was replaced, and of its expiry when it has been given one.
fn was_set(ctx: &mut Ctx<'_>, key: &[u8], expiry: Expiry) {
    ctx.ks.changed(key, Class::String, "set");
    if matches!(expiry, Expiry::At(_)) {
        ctx.ks.notify(Class::Generic, "expire", key);
    }
}

/// When `SET` sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Condition<'a> {
    #[default]
    Always,
    /// `NX`
    Absent,
    /// `XX`
    Present,
    /// `IFEQ`: the key holds this string.
    Equal(&'a [u8]),
}

/// What becomes of the expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Ttl<'a> {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// `KEEPTTL`
    Keep,
    /// `PERSIST`
    Persist,
    /// `EX` and its kin with their number.
    Until(Unit, &'a [u8]),
}

impl<'a> Ttl<'a> {
    /// Takes over the option at `index` if it is one of the four units: returns how many arguments it has.
    fn accept_unit(&mut self, args: Args<'a>, index: usize) -> Option<usize> {
        let (unit, number) = (Unit::parse(args.get(index))?, args.at(index + 1)?);
        match *self {
            Self::Unsaid => {}
            // The same option again replaces the number, as in Redis.
            Self::Until(before, _) if before == unit => {}
            Self::Until(..) | Self::Keep | Self::Persist => return None,
        }
        *self = Self::Until(unit, number);
        Some(2)
    }

    /// What `SET` and `MSETEX` do with the expiry.
    fn expiry(self, now_ms: u64, command: &'static str) -> Result<Expiry, CommandError> {
        Ok(match self {
            Self::Unsaid | Self::Persist => Expiry::Clear,
            Self::Keep => Expiry::Keep,
            Self::Until(unit, number) => Expiry::At(unit.deadline(number, now_ms, command)?),
        })
    }
}

#[derive(Debug, Default)]
struct SetOptions<'a> {
    condition: Condition<'a>,
    ttl: Ttl<'a>,
    replies_old: bool,
}

impl<'a> SetOptions<'a> {
    /// Reads the options from `args[from]` on; `is_set` admits those that `MSETEX` does not have.
    fn parse(args: Args<'a>, from: usize, is_set: bool) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut index = from;
        while index < args.len() {
            index += options.accept(args, index, is_set).ok_or(CommandError::Syntax)?;
        }
        Ok(options)
    }

    fn accept(&mut self, args: Args<'a>, index: usize, is_set: bool) -> Option<usize> {
        if args.is(index, "NX") {
            self.require(Condition::Absent)
        } else if args.is(index, "XX") {
            self.require(Condition::Present)
        } else if args.is(index, "KEEPTTL") {
            let is_free = matches!(self.ttl, Ttl::Unsaid | Ttl::Keep);
            self.ttl = Ttl::Keep;
            is_free.then_some(1)
        } else if is_set && args.is(index, "GET") {
            self.replies_old = true;
            Some(1)
        } else if is_set && args.is(index, "IFEQ") {
            let value = args.at(index + 1)?;
            (self.condition == Condition::Always).then_some(())?;
            self.condition = Condition::Equal(value);
            Some(2)
        } else {
            self.ttl.accept_unit(args, index)
        }
    }

    fn require(&mut self, condition: Condition<'a>) -> Option<usize> {
        let is_free = self.condition == Condition::Always || self.condition == condition;
        self.condition = condition;
        is_free.then_some(1)
    }
}

/// `SET key value [NX | XX | IFEQ value] [GET] [EX … | PX … | EXAT … | PXAT … | KEEPTTL]`
fn set(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    if args.len() == 3 {
        put(ctx, key, args, 2, Expiry::Clear);
        ctx.ks.changed(key, Class::String, "set");
        ctx.out.ok();
        return Ok(());
    }
    let options = SetOptions::parse(args, 3, true)?;
    let expiry = options.ttl.expiry(ctx.ks.now_ms(), "set")?;
    if options.replies_old {
        reply_old(ctx, key)?;
    }
    let holds = match options.condition {
        Condition::Always => true,
        Condition::Absent => !ctx.ks.exists(key),
        Condition::Present => ctx.ks.exists(key),
        Condition::Equal(value) => ctx.ks.string(key)?.is_some_and(|text| is_equal(text, value)),
    };
    if holds {
        put(ctx, key, args, 2, expiry);
        was_set(ctx, key, expiry);
    }
    match (options.replies_old, holds) {
        (true, _) => {}
        (false, true) => ctx.out.ok(),
        (false, false) => ctx.out.null(),
    }
    Ok(())
}

/// Replies with the string at `key`, or null.
fn reply_old(ctx: &mut Ctx<'_>, key: &[u8]) -> CommandResult {
    match ctx.ks.string(key)? {
        Some(text) => reply_str(ctx.out, text),
        None => ctx.out.null(),
    }
    Ok(())
}

/// `GET key`
fn get(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply_old(ctx, args.get(1))
}

/// `SETNX key value`
fn setnx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let is_new = !ctx.ks.exists(key);
    if is_new {
        put(ctx, key, args, 2, Expiry::Clear);
        was_set(ctx, key, Expiry::Clear);
    }
    ctx.out.int(is_new.into());
    Ok(())
}

/// `SETEX key seconds value`
fn setex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set_until(ctx, args, Unit::Seconds, "setex")
}

/// `PSETEX key milliseconds value`
fn psetex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set_until(ctx, args, Unit::Milliseconds, "psetex")
}

fn set_until(ctx: &mut Ctx<'_>, args: Args<'_>, unit: Unit, command: &'static str) -> CommandResult {
    let key = args.get(1);
    let expiry = Expiry::At(unit.deadline(args.get(2), ctx.ks.now_ms(), command)?);
    put(ctx, key, args, 3, expiry);
    was_set(ctx, key, expiry);
    ctx.out.ok();
    Ok(())
}

/// `GETSET key value`
fn getset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    reply_old(ctx, key)?;
    put(ctx, key, args, 2, Expiry::Clear);
    was_set(ctx, key, Expiry::Clear);
    Ok(())
}

/// `GETDEL key`
fn getdel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    reply_old(ctx, key)?;
    if ctx.ks.delete(key) {
        ctx.ks.changed(key, Class::Generic, "del");
    }
    Ok(())
}

/// `GETEX key [EX … | PX … | EXAT … | PXAT … | PERSIST]`
fn getex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let mut ttl = Ttl::default();
    let mut index = 2;
    while index < args.len() {
        if args.is(index, "PERSIST") && matches!(ttl, Ttl::Unsaid | Ttl::Persist) {
            ttl = Ttl::Persist;
            index += 1;
        } else {
            index += ttl.accept_unit(args, index).ok_or(CommandError::Syntax)?;
        }
    }
    let now_ms = ctx.ks.now_ms();
    let Some(text) = ctx.ks.string(key)? else {
        ctx.out.null();
        return Ok(());
    };
    let expiry = ttl.expiry(now_ms, "getex")?;
    reply_str(ctx.out, text);
    match (ttl, expiry) {
        (Ttl::Until(..), Expiry::At(at)) if at <= now_ms => {
            ctx.ks.delete(key);
            ctx.ks.changed(key, Class::Generic, "del");
        }
        (Ttl::Until(..), Expiry::At(at)) => {
            ctx.ks.set_expiry(key, Some(at));
            ctx.ks.changed(key, Class::Generic, "expire");
        }
        (Ttl::Persist, _) if ctx.ks.expiry(key).flatten().is_some() => {
            ctx.ks.set_expiry(key, None);
            ctx.ks.changed(key, Class::Generic, "persist");
        }
        _ => {}
    }
    Ok(())
}

/// `DELIFEQ key value`
fn delifeq(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let is_it = ctx.ks.string(key)?.is_some_and(|text| is_equal(text, args.get(2)));
    if is_it {
        ctx.ks.delete(key);
        ctx.ks.changed(key, Class::Generic, "del");
    }
    ctx.out.int(is_it.into());
    Ok(())
}

/// `MGET key [key ...]`: keys of other kinds count as absent.
fn mget(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.out.array(args.len() - 1);
    for key in args.from(1).iter() {
        match ctx.ks.string(key) {
            Ok(Some(text)) => reply_str(ctx.out, text),
            Ok(None) | Err(_) => ctx.out.null(),
        }
    }
    Ok(())
}

/// `MSET key value [key value ...]`
fn mset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::Arity("mset"));
    }
    put_pairs(ctx, args, 1, args.len(), Expiry::Clear);
    ctx.out.ok();
    Ok(())
}

/// `MSETNX key value [key value ...]`
fn msetnx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::Arity("msetnx"));
    }
    let is_free = (1..args.len()).step_by(2).all(|index| !ctx.ks.exists(args.get(index)));
    if is_free {
        put_pairs(ctx, args, 1, args.len(), Expiry::Clear);
    }
    ctx.out.int(is_free.into());
    Ok(())
}

fn put_pairs(ctx: &mut Ctx<'_>, args: Args<'_>, from: usize, to: usize, expiry: Expiry) {
    for index in (from..to).step_by(2) {
        let key = args.get(index);
        put(ctx, key, args, index + 1, expiry);
        was_set(ctx, key, expiry);
    }
}

/// `MSETEX numkeys key value [key value ...] [NX | XX] [EX … | PX … | EXAT … | PXAT … | KEEPTTL]`
fn msetex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let count = args.int(1).ok().and_then(|count| i32::try_from(count).ok()).filter(|&count| count > 0);
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(CommandError::Text("ERR invalid numkeys value or out of range"))?;
    if count > (args.len() - 2) / 2 {
        return Err(CommandError::Syntax);
    }
    let end = 2 + 2 * count;
    let options = SetOptions::parse(args, end, false)?;
    let expiry = options.ttl.expiry(ctx.ks.now_ms(), "msetex")?;
    let mut keys = (2..end).step_by(2).map(|index| args.get(index));
    let holds = match options.condition {
        Condition::Absent => keys.all(|key| !ctx.ks.exists(key)),
        Condition::Present => keys.all(|key| ctx.ks.exists(key)),
        Condition::Always | Condition::Equal(_) => true,
    };
    if holds {
        put_pairs(ctx, args, 2, end, expiry);
    }
    ctx.out.int(holds.into());
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("delifeq", delifeq),
    keys("get", get),
    keys("getdel", getdel),
    keys("getex", getex),
    keys("getset", getset),
    keys("mget", mget),
    keys("mset", mset),
    keys("msetex", msetex),
    keys("msetnx", msetnx),
    keys("psetex", psetex),
    keys("set", set),
    keys("setex", setex),
    keys("setnx", setnx),
];

#[cfg(test)]
mod tests;
