//! `CLIENT TRACKING` and what belongs to it.
//!
//! Owns: its options and their checks. Does **not** own the messages (see [`crate::tracking`]).

use super::client::switch;
use crate::client::flag;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::session::Tracking;
use crate::tracking;
use std::collections::BTreeSet;
use std::ops::Bound;

/// Reads the options behind `ON` or `OFF`.
fn parse(ctx: &Ctx<'_>, args: Args<'_>) -> Result<Tracking, CommandError> {
    let mut tracking = Tracking::default();
    let mut at = 3;
    while at < args.len() {
        let has_value = at + 1 < args.len();
        if args.is(at, "redirect") && has_value {
            if tracking.redirect.is_some() {
                return Err(CommandError::Text("ERR A client can only redirect to a single other client"));
            }
            let target =
                u64::try_from(args.int(at + 1)?).ok().filter(|&id| ctx.server.clients.get(id).is_some());
            if target.is_none() {
                return Err(CommandError::Text("ERR The client ID you want redirect to does not exist"));
            }
            tracking.redirect = target;
            at += 1;
        } else if args.is(at, "prefix") && has_value {
            tracking.prefixes.push(args.get(at + 1).to_vec());
            at += 1;
        } else if args.is(at, "bcast") {
            tracking.is_broadcast = true;
        } else if args.is(at, "optin") {
            tracking.is_opt_in = true;
        } else if args.is(at, "optout") {
            tracking.is_opt_out = true;
        } else if args.is(at, "noloop") {
            tracking.is_no_loop = true;
        } else {
            return Err(CommandError::Syntax);
        }
        at += 1;
    }
    Ok(tracking)
}

/// Whether the options go together, and with how the client tracks now.
fn check(tracking: &Tracking, before: Option<&Tracking>) -> Result<(), CommandError> {
    let refuse = |text: &'static str| Err(CommandError::Text(text));
    if !tracking.is_broadcast && !tracking.prefixes.is_empty() {
        return refuse("ERR PREFIX option requires BCAST mode to be enabled");
    }
    if before.is_some_and(|before| before.is_broadcast != tracking.is_broadcast) {
        return refuse(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
             with a different mode.",
        );
    }
    if tracking.is_broadcast && (tracking.is_opt_in || tracking.is_opt_out) {
        return refuse("ERR OPTIN and OPTOUT are not compatible with BCAST");
    }
    if tracking.is_opt_in && tracking.is_opt_out {
        return refuse("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    let switches = |before: &Tracking| {
        (tracking.is_opt_in && before.is_opt_out) || (tracking.is_opt_out && before.is_opt_in)
    };
    if before.is_some_and(switches) {
        return refuse(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
             with a different mode.",
        );
    }
    check_prefixes(&tracking.prefixes, before.map_or(&[], |before| &before.prefixes))
}

/// One of two prefixes must not begin with the other: the client would be told twice.
fn check_prefixes(added: &[Vec<u8>], present: &[Vec<u8>]) -> Result<(), CommandError> {
    let overlap = |a: &[u8], kind: &str, b: &[u8]| {
        Err(CommandError::joined(&[
            b"ERR Prefix '",
            a,
            b"' overlaps with ",
            kind.as_bytes(),
            b" prefix '",
            b,
            b"'. Prefixes for a single client must not overlap.",
        ]))
    };
    let mut present: BTreeSet<&[u8]> = present.iter().map(Vec::as_slice).collect();
    for prefix in added {
        if let Some(other) = overlapping(&present, prefix) {
            return overlap(prefix, "an existing", other);
        }
    }
    present.clear();
    for prefix in added {
        if let Some(other) = overlapping(&present, prefix) {
            return overlap(other, "another provided", prefix);
        }
        present.insert(prefix);
    }
    Ok(())
}

/// The member that overlaps with `prefix`. In a set without overlaps only the neighbours of its place can: what begins
/// with it stands right behind that place, what it begins with right before.
fn overlapping<'a>(set: &BTreeSet<&'a [u8]>, prefix: &[u8]) -> Option<&'a [u8]> {
    let behind = set.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded)).next();
    let before = set.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(prefix))).next_back();
    let behind = behind.copied().filter(|other| other.starts_with(prefix));
    behind.or_else(|| before.copied().filter(|other| prefix.starts_with(other)))
}

/// `CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix ...] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]`
fn tracking(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let wanted = parse(ctx, args)?;
    let on = switch(args, 2)?;
    let server = ctx.server;
    let session = ctx.session();
    if on {
        check(&wanted, session.tracking.as_deref())?;
        tracking::on(server, session, wanted);
    } else {
        tracking::off(server, session);
    }
    ctx.out.ok();
    Ok(())
}

/// `CLIENT CACHING <YES | NO>`
fn caching(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let tracking = ctx.session().tracking.as_deref_mut();
    let Some(tracking) = tracking.filter(|tracking| tracking.is_opt_in || tracking.is_opt_out) else {
        return Err(CommandError::Text(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    tracking.caching = Some(if args.is(2, "yes") {
        if !tracking.is_opt_in {
            return Err(CommandError::Text(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
        true
    } else if args.is(2, "no") {
        if !tracking.is_opt_out {
            return Err(CommandError::Text(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
        false
    } else {
        return Err(CommandError::Syntax);
    });
    ctx.out.ok();
    Ok(())
}

fn redirect_of(tracking: Option<&Tracking>) -> i64 {
    tracking.map_or(-1, |tracking| tracking.redirect.unwrap_or(0) as i64)
}

/// `CLIENT GETREDIR`
fn getredir(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let redirect = redirect_of(ctx.session().tracking.as_deref());
    ctx.out.int(redirect);
    Ok(())
}

/// `CLIENT TRACKINGINFO`
fn trackinginfo(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let session = ctx.session();
    let is_broken = session.client.has_flag(flag::TRACKING_BROKEN);
    let tracking = session.tracking.as_deref().cloned();
    let flags = tracking.as_ref().map_or_else(
        || vec!["off"],
        |tracking| {
            let facts = [
                (true, "on"),
                (tracking.is_broadcast, "bcast"),
                (tracking.is_opt_in, "optin"),
                (tracking.caching == Some(true), "caching-yes"),
                (tracking.is_opt_out, "optout"),
                (tracking.caching == Some(false), "caching-no"),
                (tracking.is_no_loop, "noloop"),
                (is_broken, "broken_redirect"),
            ];
            facts.iter().filter(|(holds, _)| *holds).map(|&(_, name)| name).collect()
        },
    );
    ctx.out.map(3);
    ctx.out.bulk(b"flags");
    ctx.out.set(flags.len());
    flags.iter().for_each(|flag| ctx.out.bulk(flag.as_bytes()));
    ctx.out.bulk(b"redirect");
    ctx.out.int(redirect_of(tracking.as_ref()));
    ctx.out.bulk(b"prefixes");
    let prefixes = tracking.map(|tracking| tracking.prefixes).unwrap_or_default();
    ctx.out.array(prefixes.len());
    prefixes.iter().for_each(|prefix| ctx.out.bulk(prefix));
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    no_keys("client|caching", caching),
    no_keys("client|getredir", getredir),
    no_keys("client|tracking", tracking),
    no_keys("client|trackinginfo", trackinginfo),
];

#[cfg(test)]
mod tests;
