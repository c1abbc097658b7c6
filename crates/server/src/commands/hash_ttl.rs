//! Fields that expire: setting, reading and removing their expiry, and the commands that read or set values along
//! with it.
//!
//! Owns: times given by clients, conditions, the order of checks, which is that of Redis 8.2. Does **not** own expiring
//! itself: a field whose time has come is gone before any command sees the hash.

use super::hashes::bulk_or_null;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_store::hash::OldExpiry;
use towline_store::keyspace::WrongType;
use towline_store::keyspace::editing::HashMut;
use towline_store::notify::Class;
use towline_store::number::parse_i64;
use towline_store::value::Kind;

/// The last instant at which a field may expire, in unix milliseconds: Redis packs it into 48 bits and uses a quarter
/// of them (year 4199).
const EXPIRES_AT_MS_MAX: u64 = (1 << 46) - 1;

const NO_FIELDS: CommandError =
    CommandError::Text("ERR Mandatory argument FIELDS is missing or not at the right position");
const COUNT_MISMATCH: CommandError =
    CommandError::Text("ERR The `numfields` parameter must match the number of arguments");
const NOT_POSITIVE: CommandError = CommandError::Text("ERR Number of fields must be a positive integer");
const NOT_POSITIVE_HEXPIRE: CommandError =
    CommandError::Text("ERR Parameter `numFields` should be greater than 0");

/// Replies of one field, where they are numbers.
mod code {
    /// There is no such field.
    pub(super) const ABSENT: i64 = -2;
    /// It does not expire.
    pub(super) const LASTING: i64 = -1;
    /// The condition did not hold.
    pub(super) const UNMET: i64 = 0;
    /// Done.
    pub(super) const DONE: i64 = 1;
    /// The time has passed already, so the field was deleted.
    pub(super) const DELETED: i64 = 2;
}

/// How a time is written.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Milliseconds per unit.
    unit_ms: u64,
    /// Counted from now, not from 1970.
    is_relative: bool,
}

const SECONDS: Clock = Clock { unit_ms: 1000, is_relative: true };
const MILLISECONDS: Clock = Clock { unit_ms: 1, is_relative: true };
const UNIX_SECONDS: Clock = Clock { unit_ms: 1000, is_relative: false };
const UNIX_MILLISECONDS: Clock = Clock { unit_ms: 1, is_relative: false };

impl Clock {
    /// The clock of `EX`, `PX`, `EXAT` and `PXAT`.
    fn of_option(args: Args<'_>, index: usize) -> Option<Self> {
        let options =
            [("ex", SECONDS), ("px", MILLISECONDS), ("exat", UNIX_SECONDS), ("pxat", UNIX_MILLISECONDS)];
        options.into_iter().find(|(word, _)| args.is(index, word)).map(|(_, clock)| clock)
    }

    /// Argument `index` as an instant in unix milliseconds.
    fn instant(
        self,
        args: Args<'_>,
        index: usize,
        now_ms: u64,
        name: &'static str,
    ) -> Result<u64, CommandError> {
        let time = u64::try_from(args.int(index)?)
            .map_err(|_| CommandError::Text("ERR invalid expire time, must be >= 0"))?;
        let from_ms = if self.is_relative { now_ms } else { 0 };
        let at_ms = time.checked_mul(self.unit_ms).and_then(|ms| ms.checked_add(from_ms));
        at_ms
            .filter(|&at_ms| at_ms <= EXPIRES_AT_MS_MAX)
            .ok_or_else(|| CommandError::message(format!("ERR invalid expire time in '{name}' command")))
    }

    /// An instant as this clock shows it; parts of a unit count as a whole one.
    fn show(self, at_ms: u64, now_ms: u64) -> i64 {
        let from_ms = if self.is_relative { now_ms } else { 0 };
        at_ms.saturating_sub(from_ms).div_ceil(self.unit_ms) as i64
    }
}

/// Looks at the key's kind without counting that as an access: Redis does so before it reads further arguments.
fn expect_hash(ctx: &mut Ctx<'_>, key: &[u8]) -> Result<(), WrongType> {
    match ctx.ks.kind(key) {
        None | Some(Kind::Hash) => Ok(()),
        Some(_) => Err(WrongType),
    }
}

/// The names in `FIELDS numfields field [field ...]`, with `FIELDS` at `index`. Nothing may follow them.
fn names(args: Args<'_>, index: usize, not_positive: CommandError) -> Result<Args<'_>, CommandError> {
    if !args.is(index, "fields") {
        return Err(NO_FIELDS);
    }
    let count = args.at(index + 1).and_then(parse_i64).filter(|&count| count > 0).ok_or(not_positive)?;
    let names = args.from(index + 2);
    if names.len() as i64 == count { Ok(names) } else { Err(COUNT_MISMATCH) }
}

/// Answers the same number for every name.
fn reply_all(ctx: &mut Ctx<'_>, names: Args<'_>, number: i64) {
    ctx.out.array(names.len());
    for _ in 0..names.len() {
        ctx.out.int(number);
    }
}

// ---- HEXPIRE and its like -----------------------------------------------------------------------------------------

/// When an expiry may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    /// `NX`: the field does not expire.
    IfLasting,
    /// `XX`: it does.
    IfExpiring,
    /// `GT`: the new time is later; never for a field that does not expire.
    IfLater,
    /// `LT`: the new time is earlier; always for a field that does not expire.
    IfEarlier,
}

impl Condition {
    fn of_option(args: Args<'_>, index: usize) -> Option<Self> {
        let options = [
            ("nx", Self::IfLasting),
            ("xx", Self::IfExpiring),
            ("gt", Self::IfLater),
            ("lt", Self::IfEarlier),
        ];
        options.into_iter().find(|(word, _)| args.is(index, word)).map(|(_, condition)| condition)
    }

    fn allows(self, old: Option<u64>, new: u64) -> bool {
        match self {
            Self::Always => true,
            Self::IfLasting => old.is_none(),
            Self::IfExpiring => old.is_some(),
            Self::IfLater => old.is_some_and(|old| new > old),
            Self::IfEarlier => old.is_none_or(|old| new < old),
        }
    }
}

fn expire(ctx: &mut Ctx<'_>, args: Args<'_>, clock: Clock, name: &'static str) -> CommandResult {
    let (key, now_ms) = (args.get(1), ctx.ks.now_ms());
    expect_hash(ctx, key)?;
    let at_ms = clock.instant(args, 2, now_ms, name)?;
    let (condition, fields_index) = match Condition::of_option(args, 3) {
        Some(condition) => (condition, 4),
        None => (Condition::Always, 3),
    };
    let names = names(args, fields_index, NOT_POSITIVE_HEXPIRE)?;
    let Some(mut hash) = ctx.ks.hash_mut(key)? else {
        reply_all(ctx, names, code::ABSENT);
        return Ok(());
    };
    let is_past = at_ms <= now_ms;
    let mut is_changed = false;
    ctx.out.array(names.len());
    for name in names.iter() {
        let reply = match hash.expires_at_ms(name) {
            None => code::ABSENT,
            Some(old) if !condition.allows(old, at_ms) => code::UNMET,
            Some(_) => {
                is_changed = true;
                put_expiry(&mut hash, name, at_ms, is_past);
                if is_past { code::DELETED } else { code::DONE }
            }
        };
        ctx.out.int(reply);
    }
    if is_changed {
        ctx.ks.changed_or_emptied(key, Class::Hash, expiry_event(is_past));
    }
    Ok(())
}

/// Lets a field expire, which is to delete it when the time has passed.
fn put_expiry(hash: &mut HashMut<'_>, name: &[u8], at_ms: u64, is_past: bool) {
    if is_past {
        hash.remove(name);
    } else {
        hash.set_expires_at_ms(name, at_ms);
    }
}

fn expiry_event(is_past: bool) -> &'static str {
    if is_past { "hdel" } else { "hexpire" }
}

fn hexpire(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    expire(ctx, args, SECONDS, "hexpire")
}

fn hpexpire(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    expire(ctx, args, MILLISECONDS, "hpexpire")
}

fn hexpireat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    expire(ctx, args, UNIX_SECONDS, "hexpireat")
}

fn hpexpireat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    expire(ctx, args, UNIX_MILLISECONDS, "hpexpireat")
}

fn hpersist(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    expect_hash(ctx, key)?;
    let names = names(args, 2, NOT_POSITIVE)?;
    let Some(mut hash) = ctx.ks.hash_mut(key)? else {
        reply_all(ctx, names, code::ABSENT);
        return Ok(());
    };
    let mut is_changed = false;
    ctx.out.array(names.len());
    for name in names.iter() {
        let reply = match hash.expires_at_ms(name) {
            None => code::ABSENT,
            Some(None) => code::LASTING,
            Some(Some(_)) => {
                is_changed |= hash.persist(name);
                code::DONE
            }
        };
        ctx.out.int(reply);
    }
    if is_changed {
        ctx.ks.changed(key, Class::Hash, "hpersist");
    }
    Ok(())
}

// ---- HTTL and its like --------------------------------------------------------------------------------------------

fn ttl(ctx: &mut Ctx<'_>, args: Args<'_>, clock: Clock) -> CommandResult {
    let now_ms = ctx.ks.now_ms();
    expect_hash(ctx, args.get(1))?;
    let names = names(args, 2, NOT_POSITIVE)?;
    let hash = ctx.ks.hash(args.get(1))?;
    ctx.out.array(names.len());
    for name in names.iter() {
        ctx.out.int(match hash.and_then(|hash| hash.expires_at_ms(name)) {
            None => code::ABSENT,
            Some(None) => code::LASTING,
            Some(Some(at_ms)) => clock.show(at_ms, now_ms),
        });
    }
    Ok(())
}

fn httl(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ttl(ctx, args, SECONDS)
}

fn hpttl(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ttl(ctx, args, MILLISECONDS)
}

fn hexpiretime(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ttl(ctx, args, UNIX_SECONDS)
}

fn hpexpiretime(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ttl(ctx, args, UNIX_MILLISECONDS)
}

// ---- values along with expiries -----------------------------------------------------------------------------------

/// Writes the value of each field and works on the field right after, so that a name given twice is seen to be changed.
/// Answers whether any call of `change` changed something; a key that is not there has only nulls.
fn visit_values(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    names: Args<'_>,
    mut change: impl FnMut(&mut HashMut<'_>, &[u8]) -> bool,
) -> Result<bool, WrongType> {
    let mut hash = ctx.ks.hash_mut(key)?;
    let mut is_changed = false;
    ctx.out.array(names.len());
    for name in names.iter() {
        let value = hash.as_ref().and_then(|hash| hash.get(name));
        bulk_or_null(ctx.out, value);
        if value.is_some()
            && let Some(hash) = &mut hash
        {
            is_changed |= change(hash, name);
        }
    }
    Ok(is_changed)
}

fn hgetdel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    expect_hash(ctx, key)?;
    let names = names(args, 2, NOT_POSITIVE)?;
    if visit_values(ctx, key, names, |hash, name| hash.remove(name))? {
        ctx.ks.changed_or_emptied(key, Class::Hash, "hdel");
    }
    Ok(())
}

/// What `HGETEX` does to the expiry of the fields it reads.
#[derive(Debug, Clone, Copy)]
enum Touch {
    Nothing,
    Persist,
    ExpireAt(u64),
}

fn hgetex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, now_ms) = (args.get(1), ctx.ks.now_ms());
    expect_hash(ctx, key)?;
    let (touch, fields_index) = if let Some(clock) = Clock::of_option(args, 2) {
        if args.len() < 6 {
            return Err(CommandError::Arity("hgetex"));
        }
        (Touch::ExpireAt(clock.instant(args, 3, now_ms, "hgetex")?), 4)
    } else if args.is(2, "persist") {
        (Touch::Persist, 3)
    } else {
        (Touch::Nothing, 2)
    };
    let names = names(args, fields_index, NOT_POSITIVE)?;
    match touch {
        Touch::Nothing => {
            let hash = ctx.ks.hash(key)?;
            ctx.out.array(names.len());
            names.iter().for_each(|name| bulk_or_null(ctx.out, hash.and_then(|hash| hash.get(name))));
        }
        Touch::Persist => {
            if visit_values(ctx, key, names, |hash, name| hash.persist(name))? {
                ctx.ks.changed(key, Class::Hash, "hpersist");
            }
        }
        Touch::ExpireAt(at_ms) => {
            let is_past = at_ms <= now_ms;
            let is_changed = visit_values(ctx, key, names, |hash, name| {
                put_expiry(hash, name, at_ms, is_past);
                true
            })?;
            if is_changed {
                ctx.ks.changed_or_emptied(key, Class::Hash, expiry_event(is_past));
            }
        }
    }
    Ok(())
}

/// The arguments of `HSETEX`.
#[derive(Debug, Clone, Copy)]
struct SetOptions<'a> {
    /// `FXX`: `Some(true)`, all fields must exist; `FNX`: `Some(false)`, none may.
    exist: Option<bool>,
    keeps_ttl: bool,
    expires_at_ms: Option<u64>,
    /// Names and values in turn.
    pairs: Args<'a>,
}

impl<'a> SetOptions<'a> {
    fn parse(args: Args<'a>, now_ms: u64) -> Result<Self, CommandError> {
        const ONE_EXPIRY: CommandError =
            CommandError::Text("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
        let mut options =
            Self { exist: None, keeps_ttl: false, expires_at_ms: None, pairs: args.from(args.len()) };
        let mut index = 2;
        while index < args.len() {
            let has_expiry = options.keeps_ttl || options.expires_at_ms.is_some();
            if args.is(index, "fields") {
                options.pairs = pairs(args, index)?;
                return Ok(options);
            } else if args.is(index, "fnx") || args.is(index, "fxx") {
                if options.exist.is_some() {
                    return Err(CommandError::Text("ERR Only one of FXX or FNX arguments can be specified"));
                }
                options.exist = Some(args.is(index, "fxx"));
            } else if args.is(index, "keepttl") {
                if has_expiry {
                    return Err(ONE_EXPIRY);
                }
                options.keeps_ttl = true;
            } else if let Some(clock) = Clock::of_option(args, index) {
                if has_expiry {
                    return Err(ONE_EXPIRY);
                }
                index += 1;
                if index == args.len() {
                    break;
                }
                options.expires_at_ms = Some(clock.instant(args, index, now_ms, "hsetex")?);
            } else {
                return Err(CommandError::quoting("ERR unknown argument: ", args.get(index), ""));
            }
            index += 1;
        }
        Err(CommandError::Arity("hsetex"))
    }

    fn iter(self) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone {
        (0..self.pairs.len() / 2).map(move |pair| (self.pairs.get(2 * pair), self.pairs.get(2 * pair + 1)))
    }
}

/// The pairs in `FIELDS numfields field value [field value ...]`, with `FIELDS` at `index`. Nothing may follow them.
fn pairs(args: Args<'_>, index: usize) -> Result<Args<'_>, CommandError> {
    let count = args.at(index + 1).ok_or(CommandError::Arity("hsetex"))?;
    let count = parse_i64(count).and_then(|count| i32::try_from(count).ok()).filter(|&count| count > 0);
    let count = count.ok_or(CommandError::Text("ERR invalid number of fields"))?;
    let pairs = args.from(index + 2);
    if pairs.len() as u64 == 2 * u64::from(count.unsigned_abs()) {
        Ok(pairs)
    } else {
        Err(CommandError::Arity("hsetex"))
    }
}

fn hsetex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, now_ms, limits) = (args.get(1), ctx.ks.now_ms(), &ctx.ks.settings().limits);
    let options = SetOptions::parse(args, now_ms)?;
    let old = ctx.ks.hash_mut(key)?;
    let exists = |name: &[u8]| old.as_ref().is_some_and(|hash| hash.contains(name));
    if options.exist.is_some_and(|expected| options.iter().any(|(name, _)| exists(name) != expected)) {
        ctx.out.int(0);
        return Ok(());
    }
    let mut hash = ctx.ks.hash_or_new(key)?;
    if options.keeps_ttl {
        for (name, value) in options.iter() {
            hash.set(name, value, OldExpiry::Keep, limits);
        }
    } else {
        hash.set_all(options.iter(), limits);
    }
    if let Some(at_ms) = options.expires_at_ms {
        let is_past = at_ms <= now_ms;
        for (name, _) in options.iter() {
            put_expiry(&mut hash, name, at_ms, is_past);
        }
        ctx.ks.notify(Class::Hash, "hset", key);
        ctx.ks.changed_or_emptied(key, Class::Hash, expiry_event(is_past));
    } else {
        ctx.ks.changed(key, Class::Hash, "hset");
    }
    ctx.out.int(1);
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("hexpire", hexpire),
    keys("hexpireat", hexpireat),
    keys("hexpiretime", hexpiretime),
    keys("hgetdel", hgetdel),
    keys("hgetex", hgetex),
    keys("hpersist", hpersist),
    keys("hpexpire", hpexpire),
    keys("hpexpireat", hpexpireat),
    keys("hpexpiretime", hpexpiretime),
    keys("hpttl", hpttl),
    keys("hsetex", hsetex),
    keys("httl", httl),
];

#[cfg(test)]
mod tests;
