//! Working off a read batch: simple commands together, so that their memory is fetched at once.
//!
//! Owns: which commands are simple and how a run of them executes. Does **not** own parsing or anything about commands
//! that are not simple.
//!
//! A random key costs three cache misses: its slot, its place in the table, its entry. One after the other they are most
//! of a command's time. A run of up to [`RUN_MAX`] commands is worked off in passes instead: fetch all slots; lock them (in
//! ascending order, as always); fetch all places; fetch all entries; then execute in the order in which the connection sent
//! them. Replies and order are those of single execution.

use crate::cluster::gate::{Asker, Pass};
use crate::command::{Args, Ctx, Locks, Row};
use crate::commands;
use crate::execute::{Local, call};
use crate::session::Session;
use crate::{followups, memory};
use std::sync::atomic::Ordering;
use std::time::Instant;
use towline_cluster::{Slot, key_slot};
use towline_resp::writer::Writer;
use towline_spec::{Command, Flags};
use towline_store::hasher::hash64;
use towline_store::keyspace::{HELD_INLINE, Keyspace};

/// Commands of one run: as many slots as are held without an allocation.
pub(crate) const RUN_MAX: usize = HELD_INLINE;

/// A command of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Simple<'a> {
    pub(crate) command: &'static Command,
    pub(crate) row: &'static Row,
    pub(crate) args: Args<'a>,
}

/// The command's row, if it is simple: one key, right behind the name, and never slow.
#[inline]
pub(crate) fn simple(command: &'static Command, argc: usize) -> Option<&'static Row> {
    let one_key = command.legacy_keys == (1, 1, 1);
    let quick = command.flags.contains(Flags::FAST) || matches!(command.name, "set" | "lrange" | "getrange");
    let plain = !command.flags.intersects(Flags::BLOCKING.union(Flags::NO_MULTI).union(Flags::MOVABLEKEYS));
    if !(one_key && quick && plain && command.accepts_arity(argc)) {
        return None;
    }
    commands::row(command).filter(|row| matches!(row.locks, Locks::Keys))
}

/// Whether the server's state allows runs at all; else every command goes the long way.
#[inline]
pub(crate) fn allowed(local: &Local, session: &Session, input_bytes: usize, now_ms: u64) -> bool {
    /// What a run may take beyond the bytes that it brings: simple commands make at most a HyperLogLog each.
    const ROOM_BYTES: u64 = 1 << 20;
    /// With a threshold below this, single commands are timed for the slow log.
    const SLOWLOG_US_MIN: i64 = 1000;
    let threshold = local.config.slowlog_log_slower_than;
    session.is_plain()
        && !local.shared.monitors.any()
        && !local.shared.pause.is_on()
        && local.shared.persistence.gate.is_open()
        && !local.shared.tracking.any_broadcast()
        && !(0..SLOWLOG_US_MIN).contains(&threshold)
        && memory::is_roomy(local, ROOM_BYTES + input_bytes as u64, now_ms)
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Commands that were answered. Fewer than given when one of them woke a blocked client, which comes before whatever follows.
    pub(crate) count: usize,
    /// The next one cannot run now: it is to go the long way, and to wait there.
    pub(crate) is_held_back: bool,
}

/// Executes the run, or the beginning of it.
pub(crate) fn execute(
    local: &mut Local,
    session: &mut Session,
    run: &[Simple<'_>],
    out: &mut Writer,
    now_ms: u64,
) -> Ran {
    let Local { shared, config, settings, changes, worker, spent, .. } = local;
    let mut places = [(0 as Slot, 0u64); RUN_MAX];
    for (place, simple) in places.iter_mut().zip(run) {
        let key = simple.args.get(1);
        *place = (key_slot(key), hash64(key));
        shared.store.prefetch_slot(place.0);
    }
    let places = &places[..run.len().min(RUN_MAX)];
    let started = Instant::now();
    let slots = places.iter().map(|&(slot, _)| slot);
    let mut ks = Keyspace::hold(&shared.store, slots, settings, changes, session.db, now_ms);
    if places.len() > 1 {
        places.iter().for_each(|&(slot, hash)| ks.prefetch_places(slot, hash));
        places.iter().for_each(|&(slot, hash)| ks.prefetch_entry(slot, hash));
    }
    // Somebody may have begun to track since it was looked at; under the slots, the look is good.
    ks.changes().tracks_prefixes = shared.tracking.any_broadcast();
    let (touch, mut failed, mut refused) = (!session.is_no_touch, 0u32, 0u32);
    let (cluster, is_any_moving) = (shared.cluster.as_deref(), shared.moves.marks.any());
    let mut ctx = Ctx {
        ks,
        out,
        server: shared,
        session: Some(session),
        blocked: None,
        is_held_back: false,
        parked: None,
        worker: *worker,
    };
    let (mut done, mut is_held_back) = (0, false);
    for (simple, &(slot, hash)) in run.iter().zip(places) {
        if let Some(cluster) = cluster
            && cluster.table.word(slot) != 0
        {
            let asker = Asker::new(ctx.session(), shared);
            match cluster.pass(config, &ctx.ks, asker, std::iter::once((simple.command, simple.args))) {
                Pass::Serve => {}
                Pass::Later => {
                    is_held_back = true;
                    break;
                }
                Pass::Refuse(error) => {
                    refused |= 1 << done;
                    shared.stats.error_reply(&error.to_string());
                    error.reply(ctx.out);
                    done += 1;
                    continue;
                }
            }
        }
        if is_any_moving && shared.moves.marks.holding(simple.command, simple.args).is_some() {
            is_held_back = true;
            break;
        }
        ctx.ks.begin(now_ms, touch);
        ctx.ks.preset(simple.args.get(1), slot, hash);
        if let Err(error) = call(&mut ctx, simple.command, simple.row, simple.args) {
            failed |= 1 << done;
            shared.stats.error_reply(&error.to_string());
            error.reply(ctx.out);
        }
        done += 1;
        if !ctx.ks.changes().ready.is_empty() {
            break;
        }
    }
    drop(ctx);
    let elapsed = started.elapsed();
    *spent += elapsed;
    let (each, stats) = (elapsed / done.max(1) as u32, shared.stats.worker(*worker));
    for (i, simple) in run[..done].iter().enumerate() {
        match refused & (1 << i) {
            0 => stats.called(simple.command, each, failed & (1 << i) == 0),
            _ => stats.rejected(simple.command),
        }
    }
    if let Some(last) = run[..done].last() {
        session.client.last_command.store(last.command.id.index() as u16 + 1, Ordering::Relaxed);
    }
    followups::work_off(local, None, now_ms);
    Ran { count: done, is_held_back }
}

#[cfg(test)]
pub(crate) mod tests_support {
    use super::*;
    use crate::command::OwnedArgs;
    use crate::testing::START_MS;

    /// Runs lines as one batch, in which one is held back: which.
    pub(crate) fn held_back_at(local: &mut Local, session: &mut Session, lines: &[&str]) -> usize {
        let (ran, _) = execute_lines(local, session, lines);
        assert!(ran.is_held_back, "{ran:?}");
        ran.count
    }

    /// Runs lines as one batch; the replies as [`crate::testing::Server::line`] shows them.
    pub(crate) fn run(local: &mut Local, session: &mut Session, lines: &[&str]) -> String {
        let (ran, replies) = execute_lines(local, session, lines);
        assert_eq!(ran, Ran { count: lines.len(), is_held_back: false });
        replies
    }

    fn execute_lines(local: &mut Local, session: &mut Session, lines: &[&str]) -> (Ran, String) {
        let words = |line: &&str| {
            OwnedArgs::from_slices(&line.split_whitespace().map(str::as_bytes).collect::<Vec<_>>())
        };
        let owned: Vec<OwnedArgs> = lines.iter().map(words).collect();
        let of = |owned| {
            let args = OwnedArgs::args(owned);
            let command = towline_spec::lookup(args.get(0)).expect("a command");
            Simple { command, row: simple(command, args.len()).expect("a simple one"), args }
        };
        let run: Vec<Simple<'_>> = owned.iter().map(of).collect();
        let mut out = Writer::new(session.proto);
        let ran = execute(local, session, &run, &mut out, START_MS);
        let bytes: Vec<u8> = out.segments().collect::<Vec<_>>().concat();
        (ran, String::from_utf8_lossy(&bytes).replace("\r\n", " ").trim_end().to_owned())
    }
}
