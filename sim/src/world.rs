//! The world of one history: virtual time, the client's bridge, the server, the network between, and the callers.
//!
//! Owns the queue of what happens next and the order in which it happens. What each part does is in the modules
//! beside this one ([`crate::driver`], [`crate::server`], [`crate::callers`]).

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use towline_client_proto::{Batch, Bridge, LostCause, Parts, RetryBudget, Sent, Ticket};
use towline_faults::model::{EndpointId, Keep, Model};
use towline_sansio::Instant;

use crate::callers::Caller;
use crate::command::{Ending, Kind, Record};
use crate::draw::Draw;
use crate::invariants::{self, Violation, events::Events, line::Line, wakes::Wakes};
use crate::moves::Moves;
use crate::network::Conn;
use crate::plan::Plan;
use crate::plan::script::Scenario;
use crate::trace::Trace;
use crate::{Mutation, Settings, Tally};

/// The time at which every history begins: not zero, so that subtractions show.
const START: Instant = Instant::from_nanos(1_000_000_000);

/// Things that happen in one history at most. More means that somebody spins.
const STEPS_MAX: u64 = 400_000;

/// Something that happens at a time.
#[derive(Debug)]
pub(crate) enum What {
    /// The task that owns the socket runs.
    Owner,
    /// A dial ends.
    Dialed(u64, EndpointId, Result<(), io::ErrorKind>),
    /// The kernel takes bytes of the batch that is out for this connection.
    Kernel(u64),
    /// The writer of this connection gives its batch back.
    WriterBack(u64),
    /// The script of planned moves goes on, at the step with this number.
    Script(usize),
    /// The window of this number is over.
    WindowEnds(usize),
    /// Bytes reach the server.
    ToServer(u64, Bytes),
    /// The server learns that the client has closed.
    ServerSees(u64),
    /// Bytes reach the client.
    ToClient(u64, Bytes),
    /// The client learns that a connection is over.
    ClientSees(u64, LostCause),
    /// The server asked for this time.
    ServerTimer,
    /// The server takes connections again.
    ServerUp,
    /// A caller does something.
    Caller(usize),
    /// A caller in a hurry does something.
    Hurry(usize),
    /// A caller that was called from the line looks for room.
    Look(usize),
    /// A caller asks for an outcome.
    Poll(u64),
    /// Number so many of the plan's faults.
    Fault(usize),
    /// The credentials are right again.
    RightPassword,
    /// A planned handoff ends its hold.
    EndHold,
    /// An event of a connection that is over.
    Late(u64, Late),
    /// From now on nothing goes wrong.
    Calm,
    /// Asks something that must be answered.
    Probe,
    /// The client is shut down.
    Close,
}

/// What may be reported of a connection after its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Late {
    Lost,
    Opened,
    DialFailed,
    Broken,
}

/// A batch that is out.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) batch: Batch,
    pub(crate) count: usize,
}

/// A ready-made world.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now: Instant,
    queue: BTreeMap<(Instant, u64), What>,
    sequence: u64,
    pub(crate) bridge: Bridge<u64>,
    pub(crate) model: Model,
    pub(crate) net: Draw,
    pub(crate) work: Draw,
    pub(crate) drive: Draw,
    pub(crate) conns: BTreeMap<u64, Conn>,
    /// At most one for each connection.
    pub(crate) writers: BTreeMap<u64, Writer>,
    pub(crate) moves: Moves,
    pub(crate) owner_at: Option<Instant>,
    /// Something happened that the owner has to look at.
    pub(crate) owner_is_woken: bool,
    pub(crate) server_at: Option<Instant>,
    pub(crate) starved_until: Instant,
    pub(crate) dials_fail: u64,
    pub(crate) dials_hang: u64,
    pub(crate) slow_writers: (u64, Duration),
    /// Bytes on their way to the server, in pieces.
    pub(crate) pieces_up: usize,
    pub(crate) callers: Vec<Caller>,
    pub(crate) records: BTreeMap<u64, Record>,
    pub(crate) live: BTreeMap<u64, Ticket>,
    /// Tickets whose outcome was taken.
    pub(crate) spent: Vec<Ticket>,
    pub(crate) next_id: u64,
    pub(crate) next_waiter: u64,
    pub(crate) wakes: Wakes,
    pub(crate) line: Line,
    pub(crate) events: Events,
    /// The connection whose frames are being delivered.
    pub(crate) delivering: Option<u64>,
    /// Since when commands are held back, and by how much that stretches deadlines at most.
    pub(crate) hold: Option<(Instant, Duration)>,
    /// Until when deadlines are relaxed.
    pub(crate) relaxed_until: Option<Instant>,
    /// When they were relaxed the last time.
    pub(crate) restored_at: Instant,
    pub(crate) restarts: Vec<(u64, Keep)>,
    /// Until when the server executes nothing.
    pub(crate) busy_until: Instant,
    pub(crate) is_calm: bool,
    pub(crate) is_closed: bool,
    pub(crate) probe: Option<u64>,
    pub(crate) has_healed: bool,
    pub(crate) trace: Trace,
    pub(crate) violation: Option<Violation>,
    wakes_buffer: Vec<u64>,
}

impl World {
    /// The world of `settings`, before anything has happened.
    pub(crate) fn new(settings: &Settings, trace: Trace) -> Self {
        let mut plan = Plan::draw(settings.seed, settings.length, settings.scenario);
        if let Some(mutation) = settings.mutation {
            Mutation::apply(mutation, &mut plan.config.guards);
        }
        Self::of_plan(plan, settings.seed, trace)
    }

    /// The world of a plan, with `seed` for what is drawn on the way.
    pub(crate) fn of_plan(plan: Plan, seed: u64, trace: Trace) -> Self {
        let parts = Parts {
            config: plan.config.clone(),
            policy: Box::new(plan.policy),
            handshake: plan.handshake.clone(),
            liveness: plan.liveness,
            budget: RetryBudget::new(START, plan.budget),
            seed: plan.bridge_seed,
        };
        let bridge = Bridge::new(parts, START).expect("invariant: the plan draws a valid backoff");
        let model = Model::new(plan.model.clone());
        let callers = (0..plan.callers).map(|_| Caller::default()).collect();
        Self {
            bridge,
            model,
            now: START,
            queue: BTreeMap::new(),
            sequence: 0,
            net: Draw::new(seed, 2),
            work: Draw::new(seed, 3),
            drive: Draw::new(seed, 4),
            conns: BTreeMap::new(),
            writers: BTreeMap::new(),
            moves: Moves::default(),
            owner_at: None,
            owner_is_woken: false,
            server_at: None,
            starved_until: START,
            dials_fail: 0,
            dials_hang: 0,
            slow_writers: (0, Duration::ZERO),
            pieces_up: 0,
            callers,
            records: BTreeMap::new(),
            live: BTreeMap::new(),
            spent: Vec::new(),
            next_id: 1,
            next_waiter: 1,
            wakes: Wakes::default(),
            line: Line::default(),
            events: Events::new(plan.config.events_max),
            delivering: None,
            hold: None,
            relaxed_until: None,
            restored_at: START,
            restarts: Vec::new(),
            busy_until: START,
            is_calm: false,
            is_closed: false,
            probe: None,
            has_healed: false,
            trace,
            violation: None,
            wakes_buffer: Vec::new(),
            plan,
        }
    }

    /// Lets the history happen, to its end or to the first broken promise.
    pub(crate) fn run(&mut self) {
        self.trace.line(self.now, format_args!("plan: {:?}", self.plan.faults));
        for caller in 0..self.callers.len() {
            let pause = self.work_pause();
            self.after_pause(pause, What::Caller(caller));
        }
        for (index, (at, _)) in self.plan.faults.iter().enumerate() {
            self.queue.insert((START + *at, self.sequence), What::Fault(index));
            self.sequence += 1;
        }
        self.begin_script();
        self.at(START + self.plan.calm_at, What::Calm);
        if let Some(at) = self.plan.closes_at {
            self.at(START + at, What::Close);
        }
        self.after();
        let mut steps = 0;
        let limit = START + self.plan.calm_at + self.plan.heals_within();
        while self.violation.is_none() && !self.is_over() {
            steps += 1;
            let next = self.queue.first_key_value().map(|((at, _), _)| *at);
            let is_late = next.is_none_or(|at| at > limit);
            if is_late || steps > STEPS_MAX {
                let missing = invariants::healing::missing(self, steps > STEPS_MAX);
                self.check(Err(missing));
                return;
            }
            let Some(((at, _), what)) = self.queue.pop_first() else { return };
            self.now = at;
            self.handle(what);
            self.after();
        }
        if self.violation.is_none() {
            let result = invariants::at_the_end(self);
            self.check(result);
        }
    }

    /// Schedules something.
    pub(crate) fn at(&mut self, at: Instant, what: What) {
        self.queue.insert((at.max(self.now), self.sequence), what);
        self.sequence += 1;
    }

    /// Schedules something after a pause.
    pub(crate) fn after_pause(&mut self, pause: Duration, what: What) {
        self.at(self.now + pause, what);
    }

    /// Keeps the first broken promise.
    pub(crate) fn check(&mut self, result: Result<(), Violation>) {
        if let Err(violation) = result
            && self.violation.is_none()
        {
            self.trace.line(self.now, format_args!("BROKEN: {violation}"));
            self.violation = Some(violation);
        }
    }

    /// Joins to `bytes` what arrives with them at the same instant, as one read of the client takes it.
    fn read_together(&mut self, generation: u64, bytes: Bytes) -> Bytes {
        if self.plan.scenario == Scenario::Ordinary || self.net.chance(40) {
            return bytes;
        }
        let mut all = bytes;
        while let Some(next) = self.queue.first_entry()
            && next.key().0 == self.now
            && matches!(next.get(), What::ToClient(other, _) if *other == generation)
        {
            if let What::ToClient(_, more) = next.remove() {
                all = [&all[..], &more[..]].concat().into();
            }
        }
        all
    }

    fn handle(&mut self, what: What) {
        match what {
            What::Owner => self.owner(),
            What::Dialed(generation, endpoint, result) => self.dialed(generation, endpoint, result),
            What::Kernel(generation) => self.kernel(generation),
            What::WriterBack(generation) => self.writer_back(generation),
            What::WindowEnds(number) => self.window_ends(number),
            What::Script(step) => self.script_goes_on(step),
            What::ToServer(generation, bytes) => self.server_reads(generation, &bytes),
            What::ServerSees(generation) => self.server_sees(generation),
            What::ToClient(generation, bytes) => {
                let bytes = self.read_together(generation, bytes);
                self.client_reads(generation, &bytes);
            }
            What::ClientSees(generation, cause) => self.client_sees(generation, cause),
            What::ServerTimer => self.server_timer(),
            What::ServerUp => self.model.refuse_connections(false),
            What::Caller(caller) => self.caller(caller),
            What::Hurry(caller) => self.hurry(caller),
            What::Look(caller) => self.look_for_room(caller),
            What::Poll(id) => self.poll(id),
            What::Fault(index) => self.fault(index),
            What::RightPassword => self.right_password(),
            What::EndHold => self.end_hold(),
            What::Late(generation, late) => self.late(generation, late),
            What::Calm => self.calm(),
            What::Probe => self.ask(),
            What::Close => self.close(),
        }
    }

    /// What follows from whatever has just happened.
    fn after(&mut self) {
        self.wake();
        self.drain_server();
        self.watch_stretching();
        let result = invariants::handoff::bounded(self);
        self.check(result);
        let result = invariants::deadline::timer_is_set(self);
        self.check(result);
        self.schedule_owner();
        if self.is_closed && self.bridge.is_finished() {
            let result = invariants::closing::everybody_knows(self);
            self.check(result);
        }
    }

    /// Wakes those whose commands ended or for whom there is room.
    pub(crate) fn wake(&mut self) {
        let mut woken = std::mem::take(&mut self.wakes_buffer);
        self.bridge.take_wakes(&mut woken);
        // Whoever is called may give its place on, so that another one is called.
        while !woken.is_empty() {
            for waiter in woken.drain(..) {
                match self.wakes.woken(waiter) {
                    Ok(target) => self.woken(target),
                    Err(violation) => self.check(Err(violation)),
                }
            }
            self.bridge.take_wakes(&mut woken);
        }
        self.wakes_buffer = woken;
    }

    /// Whether nothing is left that could happen.
    fn is_over(&self) -> bool {
        let is_served = if self.is_closed { self.bridge.is_finished() } else { self.has_healed };
        self.is_calm
            && is_served
            && self.live.is_empty()
            && self.pieces_up == 0
            && self.writers.is_empty()
            && self.wanted() <= 1
            && self.callers.iter().all(|caller| caller.is_done)
            && self.bridge.is_idle()
    }

    /// How often the command with this id was executed; a transaction counts once.
    pub(crate) fn executions(&self, id: u64) -> usize {
        self.executions_of(id).count()
    }

    /// The executions of the command with this id: the connection of each, and its place in the ledger.
    pub(crate) fn executions_of(&self, id: u64) -> impl Iterator<Item = (u64, u64)> {
        let is_transaction =
            self.records.get(&id).is_some_and(|record| record.command.kind == Kind::Transaction);
        let entries = self.model.ledger().executions(id);
        let entries = entries.filter(move |entry| !is_transaction || entry.args[0].as_ref() == b"INCR");
        entries.map(|entry| (entry.connection.0, entry.sequence))
    }

    /// What the history had in it.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally { connections: self.bridge.counters().connections, ..Tally::default() };
        for (id, record) in &self.records {
            tally.commands += 1;
            tally.repeated += u64::from(self.executions(*id) > 1);
            match &record.ending {
                Some(Ending::Acknowledged(_)) => tally.acknowledged += 1,
                Some(Ending::Failed(_, Sent::Maybe)) => tally.unknown += 1,
                Some(Ending::Abandoned) => tally.abandoned += 1,
                _ => {}
            }
            tally.not_sent += u64::from(record.is_not_sent());
        }
        tally
    }
}
