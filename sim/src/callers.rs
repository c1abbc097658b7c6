//! Callers of the client: they submit, wait, look, lose patience.

use std::time::Duration;

use towline_client_proto::{Error, ErrorKind, Order, RoomTicket, Sent};
use towline_sansio::Instant;

use crate::command::{Command, Ending, Record};
use crate::invariants::{self, wakes::Target};
use crate::plan::script::Scenario;
use crate::world::{What, World};

/// One caller. Its commands are executed in the order in which it submits them.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    /// It waits for room to submit this.
    room: Option<(RoomTicket, u64, Command)>,
    /// It was called from the line, when this many commands had been put back to the queue; `None`: more of them are
    /// on their way.
    promise: Option<u64>,
    /// It submits nothing more.
    pub(crate) is_done: bool,
}

/// The number of the caller that asks whether all is well.
const PROBER: usize = usize::MAX;

/// Commands that a caller submits at once at most.
const BURST_MAX: u64 = 12;

impl World {
    pub(crate) fn work_pause(&mut self) -> Duration {
        let longest = u64::try_from(self.plan.gap.as_micros()).unwrap_or(u64::MAX);
        self.work.micros(0, longest)
    }

    /// A caller does something, and again later, until it has nothing more to do.
    pub(crate) fn caller(&mut self, caller: usize) {
        if self.next_id > self.plan.commands_max && self.callers[caller].room.is_none() {
            self.callers[caller].is_done = true;
            return;
        }
        self.act(caller);
        let pause = self.work_pause();
        self.after_pause(pause, What::Caller(caller));
    }

    /// A caller is in a hurry: a move was announced.
    pub(crate) fn hurry(&mut self, caller: usize) {
        let is_up = self.bridge.counters().connections > 0;
        if self.now < self.moves.rush_until && !self.callers[caller].is_done && is_up {
            if self.work.chance(85) && self.callers[caller].room.is_none() {
                self.submit_some(caller);
            } else {
                self.act(caller);
            }
            let longest = u64::try_from(self.plan.latency.as_micros() / 2).unwrap_or(u64::MAX);
            let pause = self.work.micros(0, longest);
            self.after_pause(pause, What::Hurry(caller));
        }
    }

    fn act(&mut self, caller: usize) {
        if self.callers[caller].room.is_some() {
            self.wait_in_line(caller);
        } else if self.plan.scenario == Scenario::CalmMoves && self.bridge.counters().connections == 0 {
            // A policy that does not wait would refuse everything now.
        } else {
            match self.work.range(0, 99) {
                0..=69 => self.submit_some(caller),
                70..=84 => self.abandon_one(),
                85..=94 => self.poll_one(),
                _ => self.use_spent_ticket(),
            }
        }
    }

    fn submit_some(&mut self, caller: usize) {
        let count = if self.work.chance(25) { self.work.range(2, BURST_MAX) } else { 1 };
        for _ in 0..count {
            if self.next_id > self.plan.commands_max || self.callers[caller].room.is_some() {
                return;
            }
            let (id, plan) = (self.new_id(), &self.plan);
            let command = Command::draw(id, &mut self.work, plan.large_percent, plan.large_bytes);
            let deadline = self.draw_deadline();
            if self.submit(caller, command.clone(), deadline, None) == Err(Full) && self.work.chance(60) {
                self.stand_in_line(caller, command);
            }
        }
    }

    const fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn draw_deadline(&mut self) -> Instant {
        if self.work.chance(self.plan.endless_percent) {
            return Instant::FAR;
        }
        let longest = u64::try_from(self.plan.deadline_max.as_micros()).unwrap_or(u64::MAX);
        // A few have passed already.
        self.now + if self.work.chance(2) { Duration::ZERO } else { self.work.micros(500, longest) }
    }

    /// Submits one command; only a full backlog is an error here, everything else is in its record.
    fn submit(
        &mut self,
        caller: usize,
        command: Command,
        deadline: Instant,
        room: Option<RoomTicket>,
    ) -> Result<(), Full> {
        let bytes = command.len_bytes();
        let order = Order {
            effect: command.effect(),
            replies: command.replies(),
            deadline,
            flags: command.flags,
            bytes,
            room,
        };
        let shares = self.work.chance(20);
        let before = self.bridge.snapshot(self.now).backlog_bytes;
        let result = self.bridge.submit(self.now, &order, |out| command.encode(out, shares));
        self.trace.line(
            self.now,
            format_args!(
                "caller {} submits {} {:?} {bytes} bytes {:?}: {result:?}",
                caller as isize, command.id, command.kind, command.flags
            ),
        );
        let id = command.id;
        let mut record = Record::new(command, caller, self.now, deadline);
        record.turn = self.records.len();
        record.was_ever_up = self.bridge.counters().connections > 0;
        let submitted = match result {
            Ok(submitted) => submitted,
            Err(error) => {
                let is_full = matches!(error.kind(), ErrorKind::BacklogFull { .. });
                record.ending = Some(Ending::Rejected(error.into_kind()));
                self.records.insert(id, record);
                return if is_full { Err(Full) } else { Ok(()) };
            }
        };
        self.records.insert(id, record);
        let result = invariants::policy::may_accept(self, id);
        self.check(result);
        let snapshot = self.bridge.snapshot(self.now);
        let config = &self.plan.config;
        let promise = room.and_then(|_| self.callers[caller].promise);
        // What was put back since the promise may have filled the backlog.
        let is_bounded = room.is_none() || promise.is_some() && promise == self.put_back();
        let connections = self.wanted();
        let result =
            invariants::bounds::after_submit(&snapshot, config, before, bytes, is_bounded, connections);
        self.check(result);
        if let Some(ticket) = submitted.ticket {
            self.live.insert(id, ticket);
            if self.work.chance(85) {
                self.poll(id);
            } else {
                let pause = self.work.millis(0, 100);
                self.after_pause(pause, What::Poll(id));
            }
        }
        self.follow(submitted.flush);
        Ok(())
    }

    fn stand_in_line(&mut self, caller: usize, command: Command) {
        let waiter = self.new_waiter();
        self.wakes.left(waiter, Target::Room(caller));
        let id = self.new_id();
        let command = Command { id, ..command };
        let ticket = self.bridge.wait_for_room(command.len_bytes(), waiter);
        self.line.joined(caller);
        self.trace.line(self.now, format_args!("caller {caller} waits for room: {ticket:?}"));
        self.callers[caller].room = Some((ticket, waiter, command));
        self.wake();
    }

    const fn new_waiter(&mut self) -> u64 {
        self.next_waiter += 1;
        self.next_waiter - 1
    }

    /// A caller in the line looks whether it is its turn, or goes away.
    fn wait_in_line(&mut self, caller: usize) {
        if self.work.chance(5) {
            let Some((ticket, waiter, _)) = self.callers[caller].room.take() else { return };
            self.trace.line(self.now, format_args!("caller {caller} leaves the line"));
            self.wakes.dropped(waiter);
            self.line.left(caller);
            self.bridge.leave_room(ticket);
        } else if self.work.chance(20) {
            self.look_for_room(caller);
        }
    }

    /// Whether it is the caller's turn: then it submits.
    pub(crate) fn look_for_room(&mut self, caller: usize) {
        let Some((ticket, waiter, command)) = self.callers[caller].room.take() else { return };
        let fresh = self.new_waiter();
        let is_its_turn = self.bridge.poll_room(ticket, || fresh);
        let result = self.wakes.polled(waiter, is_its_turn);
        self.check(result);
        if !is_its_turn {
            self.wakes.left(fresh, Target::Room(caller));
            self.callers[caller].room = Some((ticket, fresh, command));
            return;
        }
        let deadline = self.draw_deadline().max(self.now + Duration::from_millis(1));
        let id = command.id;
        let result = self.submit(caller, command, deadline, Some(ticket));
        if result == Err(Full) {
            self.check(Err(invariants::bounds::promised_room(id)));
        }
        // A place that was not used up goes to the next.
        if self.records.get(&id).is_some_and(|record| matches!(record.ending, Some(Ending::Rejected(_)))) {
            self.bridge.leave_room(ticket);
        }
    }

    /// Somebody's waiter was called.
    pub(crate) fn woken(&mut self, target: Target) {
        match target {
            Target::Command(id) => {
                if let (Some(record), Some(generation)) = (self.records.get_mut(&id), self.delivering) {
                    record.answered_on = Some(generation);
                }
                if self.work.chance(80) {
                    self.poll(id);
                } else {
                    let pause = self.work.millis(0, 20);
                    self.after_pause(pause, What::Poll(id));
                }
            }
            Target::Room(caller) => {
                let result = self.line.called(caller);
                self.check(result);
                self.callers[caller].promise = self.put_back();
                if self.work.chance(60) {
                    self.look_for_room(caller);
                } else {
                    let pause = self.work.millis(0, 30);
                    self.after_pause(pause, What::Look(caller));
                }
            }
        }
    }

    /// How many commands were put back to the queue so far; `None`: some are about to be.
    fn put_back(&self) -> Option<u64> {
        let counters = self.bridge.counters();
        let is_settled = self.bridge.snapshot(self.now).delayed_commands == 0;
        // A cut puts back what the kernel had not taken.
        let cuts = counters.handoffs;
        is_settled.then_some(counters.replayed + counters.repeated + counters.refused_retried + cuts)
    }

    fn one_live(&mut self) -> Option<u64> {
        let index = self.work.size(0, self.live.len().checked_sub(1)?);
        self.live.keys().nth(index).copied()
    }

    fn poll_one(&mut self) {
        if let Some(id) = self.one_live() {
            self.poll(id);
        }
    }

    /// A caller asks for an outcome, and leaves a waiter if there is none.
    pub(crate) fn poll(&mut self, id: u64) {
        let Some(ticket) = self.live.get(&id).copied() else { return };
        let fresh = self.new_waiter();
        let mut before = None;
        let outcome = self.bridge.poll_outcome(ticket, |left| {
            before = left;
            fresh
        });
        let result = self.wakes.polled_command(id, outcome.is_some(), before);
        self.check(result);
        let Some(outcome) = outcome else {
            self.wakes.left(fresh, Target::Command(id));
            return;
        };
        self.live.remove(&id);
        self.spent.push(ticket);
        self.trace.line(self.now, format_args!("outcome of {id}: {outcome:?}"));
        let ending = Record::classify(outcome);
        let result = invariants::deadline::was_not_early(self, id, &ending);
        self.check(result);
        if self.probe == Some(id) {
            self.probe_ended(&ending);
        }
        if let Some(record) = self.records.get_mut(&id) {
            record.ending = Some(ending);
        }
    }

    fn abandon_one(&mut self) {
        let Some(id) = self.one_live().filter(|id| self.probe != Some(*id)) else { return };
        let Some(ticket) = self.live.remove(&id) else { return };
        // Callers that keep their own time ask for the error first.
        let is_told = self.work.chance(50);
        let told = is_told.then(|| self.bridge.explain(self.now, ticket, ErrorKind::Deadline).sent());
        self.trace.line(self.now, format_args!("abandon {id}, told {told:?}"));
        self.bridge.abandon(ticket);
        self.wakes.abandoned(id);
        self.spent.push(ticket);
        if let Some(record) = self.records.get_mut(&id) {
            record.was_withdrawn = !record.was_handed_out || told == Some(Sent::No);
            record.ending = Some(Ending::Abandoned);
        }
    }

    /// A ticket whose outcome was taken is no claim on anything.
    fn use_spent_ticket(&mut self) {
        if self.spent.is_empty() {
            return;
        }
        let index = self.work.size(0, self.spent.len() - 1);
        let ticket = self.spent[index];
        if self.work.chance(50) {
            let outcome = self.bridge.poll_outcome(ticket, |_| 0);
            let result = invariants::stale::ticket_is_void(outcome.as_ref());
            self.check(result);
        } else {
            let before = invariants::stale::Digest::of(self);
            self.bridge.abandon(ticket);
            let result = before.is_unchanged(self, 0);
            self.check(result);
        }
    }

    /// Asks something that must be answered, now that all is well.
    pub(crate) fn ask(&mut self) {
        if self.is_closed {
            return;
        }
        let id = self.new_id();
        self.probe = Some(id);
        let full = self.submit(PROBER, Command::probe(id), self.now + Duration::from_secs(60), None);
        if full.is_err() || !self.live.contains_key(&id) {
            self.after_pause(Duration::from_millis(20), What::Probe);
        }
    }

    fn probe_ended(&mut self, ending: &Ending) {
        if matches!(ending, Ending::Acknowledged(_)) {
            self.has_healed = true;
        } else {
            self.after_pause(Duration::from_millis(20), What::Probe);
        }
    }
}

/// The backlog is full.
#[derive(Debug, PartialEq, Eq)]
struct Full;

impl Record {
    fn new(command: Command, caller: usize, now: Instant, deadline: Instant) -> Self {
        Self {
            command,
            caller,
            deadline,
            submitted_at: now,
            turn: 0,
            was_ever_up: false,
            stretch: Duration::ZERO,
            answered_on: None,
            was_handed_out: false,
            kernel_took: 0,
            taken_by: Vec::new(),
            was_withdrawn: false,
            ending: None,
        }
    }

    /// Whether the client said that the command was not executed.
    pub(crate) fn is_not_sent(&self) -> bool {
        match &self.ending {
            Some(Ending::Rejected(_) | Ending::Failed(_, Sent::No)) => true,
            Some(Ending::Abandoned) => self.was_withdrawn,
            _ => false,
        }
    }
}

/// What a spent ticket must yield.
pub(crate) fn is_misuse(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Misuse(_))
}
