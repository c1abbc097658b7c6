//! **No command outlives its deadline by more than a tick**, and none fails of it early. Deadlines are kept in whole
//! milliseconds, rounded up; a scan runs once per tick at most. So a command has ended after the first
//! [`handle_timeout`] at or after *deadline, rounded up, plus tick plus one millisecond*, and [`poll_timeout`] asks for
//! a call by then. The same holds for the policy's bound on the age of what waits, which is no
//! deadline of a caller and may come two milliseconds early.
//!
//! Soft deadlines are stretched by the time for which a handoff held commands back, and while the server is busy with
//! itself they leave at least the relaxed time. Hard ones are what they are.
//!
//! [`handle_timeout`]: towline_client_proto::Bridge::handle_timeout
//! [`poll_timeout`]: towline_client_proto::Bridge::poll_timeout

use std::time::Duration;

use towline_client_proto::{BacklogPolicy, ErrorKind, Flags};
use towline_sansio::Instant;

use super::{Violation, promise};
use crate::command::{Ending, Record};
use crate::world::World;

const MILLI: Duration = Duration::from_millis(1);

/// The time by which a command must have ended; `None`: it may wait for ever.
fn limit(world: &World, record: &Record) -> Option<Instant> {
    let by_deadline = (record.deadline < Instant::FAR).then(|| {
        let is_hard = record.command.flags.contains(Flags::HARD_DEADLINE);
        // Two roundings: of the deadline, and of what a hold has added.
        let soft = if is_hard { Duration::ZERO } else { record.stretch + world.held_for(world.now) };
        let limit = record.deadline + soft + MILLI;
        if is_hard { limit } else { limit.max(relaxed(world, record)) }
    });
    let by_age = world.plan.policy.age_max().filter(|_| !record.was_handed_out);
    let by_age = by_age.map(|age| record.submitted_at + age + MILLI);
    let limit = by_deadline.into_iter().chain(by_age).min()?;
    Some(limit + world.plan.config.tick + MILLI)
}

/// Until when relaxation lets a command live that has no hard deadline.
fn relaxed(world: &World, record: &Record) -> Instant {
    let floor = record.submitted_at + world.plan.config.windows.relaxed + MILLI;
    let now = world.relaxed_until.map_or(record.submitted_at, |until| until.min(floor));
    let before = (record.submitted_at <= world.restored_at).then_some(world.restored_at);
    before.map_or(now, |before| now.max(before.min(floor)))
}

/// Commands that must have ended by now.
pub(crate) fn overdue(world: &World) -> Vec<u64> {
    let is_due = |id: &u64| limit(world, &world.records[id]).is_some_and(|limit| limit <= world.now);
    world.live.keys().copied().filter(is_due).collect()
}

/// The broken promise of an overdue command that has no outcome.
pub(crate) fn outlived(world: &World, id: u64) -> Violation {
    let record = &world.records[&id];
    let (age, deadline) = (world.now.since(record.submitted_at), record.deadline.since(record.submitted_at));
    let message = format!("{id} is {age:?} old with a deadline of {deadline:?} and has no outcome");
    Violation::new("deadline", message)
}

/// The bridge wants to be called in time for every deadline.
pub(crate) fn timer_is_set(world: &mut World) -> Result<(), Violation> {
    let timer = world.bridge.poll_timeout();
    let soonest = world.now + world.plan.config.tick;
    let is_missed = |limit: &Instant| timer.is_none_or(|timer| timer > soonest.max(*limit));
    let missed: Vec<(u64, Instant)> = world
        .live
        .keys()
        .filter_map(|id| Some((*id, limit(world, &world.records[id]).filter(is_missed)?)))
        .collect();
    for (id, limit) in missed {
        // It may have ended, and nobody has looked yet.
        world.poll(id);
        promise!(
            !world.live.contains_key(&id),
            "deadline",
            "{id} must end by {limit:?}, but the next timer is {timer:?}"
        );
    }
    Ok(())
}

/// A deadline or an age was really reached.
pub(crate) fn was_not_early(world: &World, id: u64, ending: &Ending) -> Result<(), Violation> {
    let record = &world.records[&id];
    let Ending::Failed(kind, _) = ending else { return Ok(()) };
    match kind {
        ErrorKind::Deadline => promise!(
            world.now >= record.deadline,
            "deadline",
            "{id} failed {:?} before its deadline",
            record.deadline.since(world.now)
        ),
        ErrorKind::BacklogAge => {
            let age = world.plan.policy.age_max().unwrap_or(Duration::MAX);
            promise!(
                world.now.since(record.submitted_at) + 2 * MILLI >= age,
                "deadline",
                "{id} failed of age before {age:?}"
            );
        }
        _ => {}
    }
    Ok(())
}
