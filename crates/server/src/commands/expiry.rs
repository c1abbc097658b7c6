//! Commands that set, read and remove a key's expiry.
//!
//! Owns: `EXPIRE`, `TTL` and their kin. Does **not** own the removal of expired keys (the store's) nor the conversion of
//! units (see [`super::deadline`]).

use super::deadline::Unit;
use super::keys::look;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use towline_store::notify::Class;

/// `NX`, `XX`, `GT`, `LT` of `EXPIRE` and its kin.
#[derive(Debug, Default)]
struct Conditions {
    absent: bool,
    present: bool,
    later: bool,
    earlier: bool,
}

impl Conditions {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for index in 0..args.len() {
            let flag = match args.get(index).to_ascii_uppercase().as_slice() {
                b"NX" => &mut conditions.absent,
                b"XX" => &mut conditions.present,
                b"GT" => &mut conditions.later,
                b"LT" => &mut conditions.earlier,
                _ => {
                    return Err(CommandError::quoting("ERR Unsupported option ", args.get(index), ""));
                }
            };
            *flag = true;
        }
        if conditions.absent && (conditions.present || conditions.later || conditions.earlier) {
            return Err(CommandError::Text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if conditions.later && conditions.earlier {
            return Err(CommandError::Text("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// Whether a key that expires at `old` may expire at `new` from now on. No expiry counts as the latest of all.
    fn hold(&self, old: Option<u64>, new: i64) -> bool {
        let order = old.map(|old| new.cmp(&i64::try_from(old).unwrap_or(i64::MAX)));
        !(self.absent && old.is_some()
            || self.present && old.is_none()
            || self.later && order.is_none_or(|order| order.is_le())
            || self.earlier && order.is_some_and(|order| order.is_ge()))
    }
}

/// `EXPIRE key seconds [NX | XX | GT | LT]`
fn expire(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set(ctx, args, Unit::Seconds, "expire")
}

/// `PEXPIRE key milliseconds [NX | XX | GT | LT]`
fn pexpire(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set(ctx, args, Unit::Milliseconds, "pexpire")
}

/// `EXPIREAT key unix-time-seconds [NX | XX | GT | LT]`
fn expireat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set(ctx, args, Unit::UnixSeconds, "expireat")
}

/// `PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]`
fn pexpireat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set(ctx, args, Unit::UnixMilliseconds, "pexpireat")
}

fn set(ctx: &mut Ctx<'_>, args: Args<'_>, unit: Unit, command: &'static str) -> CommandResult {
    let key = args.get(1);
    let conditions = Conditions::parse(args.from(3))?;
    let now_ms = ctx.ks.now_ms();
    let at = unit.instant(args.get(2), now_ms, command)?;
    let is_done = ctx.ks.expiry(key).is_some_and(|old| conditions.hold(old, at));
    if is_done {
        match u64::try_from(at) {
            Ok(at) if at > now_ms => {
                ctx.ks.set_expiry(key, Some(at));
                ctx.ks.changed(key, Class::Generic, "expire");
            }
            // The time has passed: the key goes at once.
            Ok(_) | Err(_) => {
                ctx.ks.delete(key);
                ctx.ks.changed(key, Class::Generic, "del");
            }
        }
    }
    ctx.out.int(is_done.into());
    Ok(())
}

/// `TTL key`: rounded to the nearest second.
fn ttl(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, |at, now_ms| at.saturating_sub(now_ms).saturating_add(500) / 1000)
}

/// `PTTL key`
fn pttl(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, |at, now_ms| at.saturating_sub(now_ms))
}

/// `EXPIRETIME key`: rounded to the nearest second.
fn expiretime(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, |at, _| at.saturating_add(500) / 1000)
}

/// `PEXPIRETIME key`
fn pexpiretime(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    reply(ctx, args, |at, _| at)
}

/// Answers what `shown` makes of the expiry and the present, -1 for a key that stays, -2 without a key.
fn reply(ctx: &mut Ctx<'_>, args: Args<'_>, shown: fn(u64, u64) -> u64) -> CommandResult {
    let key = args.get(1);
    let now_ms = ctx.ks.now_ms();
    let expiry = if look(&mut ctx.ks, key) { ctx.ks.expiry(key) } else { None };
    ctx.out.int(match expiry {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => i64::try_from(shown(at, now_ms)).unwrap_or(i64::MAX),
    });
    Ok(())
}

/// `PERSIST key`
fn persist(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let is_done = ctx.ks.expiry(key).flatten().is_some();
    if is_done {
        ctx.ks.set_expiry(key, None);
        ctx.ks.changed(key, Class::Generic, "persist");
    }
    ctx.out.int(is_done.into());
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    keys("expire", expire),
    keys("expireat", expireat),
    keys("expiretime", expiretime),
    keys("persist", persist),
    keys("pexpire", pexpire),
    keys("pexpireat", pexpireat),
    keys("pexpiretime", pexpiretime),
    keys("pttl", pttl),
    keys("ttl", ttl),
];

#[cfg(test)]
mod tests {
    use crate::testing::{START_MS, Server};

    #[test]
    fn expiries_are_set_and_shown() {
        let mut server = Server::new();
        server.line("SET k v");
        assert_eq!(server.line("TTL k"), ":-1");
        assert_eq!(server.line("PEXPIRETIME none"), ":-2");
        assert_eq!(server.line("EXPIRE k 100"), ":1");
        assert_eq!(server.line("TTL k"), ":100");
        assert_eq!(server.line("PEXPIRE k 1500"), ":1");
        assert_eq!(server.line("TTL k"), ":2");
        assert_eq!(server.line("PTTL k"), ":1500");
        assert_eq!(server.line(&format!("PEXPIREAT k {}", START_MS + 7)), ":1");
        assert_eq!(server.line("PEXPIRETIME k"), format!(":{}", START_MS + 7));
        assert_eq!(server.line("EXPIRETIME k"), format!(":{}", START_MS / 1000));
        assert_eq!(server.line("EXPIRE none 1"), ":0");
        server.advance(7);
        assert_eq!(server.line("GET k"), "$-1");
    }

    #[test]
    fn a_time_that_has_passed_deletes() {
        let mut server = Server::new();
        for line in ["EXPIRE k -1", "EXPIRE k 0", "PEXPIREAT k 1", "EXPIREAT k -5"] {
            server.line("SET k v");
            assert_eq!(server.line(line), ":1", "{line}");
            assert_eq!(server.line("EXISTS k"), ":0", "{line}");
        }
    }

    #[test]
    fn persist_removes_the_expiry() {
        let mut server = Server::new();
        server.line("SET k v EX 10");
        assert_eq!(server.line("PERSIST k"), ":1");
        assert_eq!(server.line("PERSIST k"), ":0");
        assert_eq!(server.line("PERSIST none"), ":0");
        assert_eq!(server.line("TTL k"), ":-1");
    }

    #[test]
    fn conditions_compare_with_the_expiry_in_force() {
        let mut server = Server::new();
        server.line("SET k v");
        assert_eq!(server.line("EXPIRE k 10 XX"), ":0");
        assert_eq!(server.line("EXPIRE k 10 GT"), ":0");
        assert_eq!(server.line("EXPIRE k 100 LT"), ":1");
        assert_eq!(server.line("EXPIRE k 50 NX"), ":0");
        assert_eq!(server.line("EXPIRE k 50 GT"), ":0");
        assert_eq!(server.line("EXPIRE k 100 GT"), ":0");
        assert_eq!(server.line("EXPIRE k 200 xx gt"), ":1");
        assert_eq!(server.line("EXPIRE k 300 LT"), ":0");
        assert_eq!(server.line("TTL k"), ":200");
    }

    #[test]
    fn arguments_that_do_not_fit() {
        let mut server = Server::new();
        server.line("SET k v");
        assert_eq!(
            server.line("EXPIRE k 1 NX GT"),
            "-ERR NX and XX, GT or LT options at the same time are not compatible"
        );
        assert_eq!(
            server.line("EXPIRE k 1 LT GT"),
            "-ERR GT and LT options at the same time are not compatible"
        );
        assert_eq!(server.line("EXPIRE k 1 ab"), "-ERR Unsupported option ab");
        assert_eq!(server.line("EXPIRE k x"), "-ERR value is not an integer or out of range");
        assert_eq!(
            server.line("EXPIRE k 9223372036854775807"),
            "-ERR invalid expire time in 'expire' command"
        );
        assert_eq!(
            server.line("PEXPIRE k 9223372036854775807"),
            "-ERR invalid expire time in 'pexpire' command"
        );
        assert_eq!(server.line("TTL k"), ":-1");
    }
}
