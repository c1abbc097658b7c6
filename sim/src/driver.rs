//! What the client's tasks do around the bridge: dial, read, write, keep time, report.
//!
//! Does everything that the real driver may do in any order, with any delay, and some things twice or late.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use towline_client_proto::handoff::Target;
use towline_client_proto::{Flush, Generation, HandoffDial, LinkState, LostCause};
use towline_faults::model::EndpointId;
use towline_resp::frame::{Frame, FrameError};

use crate::invariants::{self, Violation};
use crate::moves::peer_of;
use crate::network::Conn;
use crate::plan::DIAL_TIMEOUT;
use crate::world::{Late, What, World, Writer};

impl World {
    /// Decides when the owner's task runs next.
    pub(crate) fn schedule_owner(&mut self) {
        let is_dial_due = self.bridge.link_state() == LinkState::Waiting;
        let mut due = self.bridge.poll_timeout();
        for generation in self.writable() {
            let at = self.conns.get(&generation).map_or(self.now, |conn| conn.write_again_at);
            due = Some(due.map_or(at, |due| due.min(at)));
        }
        if std::mem::take(&mut self.owner_is_woken) || self.has_unwanted_sockets() {
            due = Some(self.now);
        }
        let Some(due) = due else { return };
        let due = due.max(self.now);
        if self.owner_at.is_some_and(|at| at <= due) {
            return;
        }
        let pause = match self.drive.range(0, 99) {
            0..=59 => Duration::ZERO,
            60..=96 => self.drive.micros(0, 100),
            97..=98 => self.drive.micros(100, 5000),
            // Whoever dials through a limiter may be late.
            _ if is_dial_due => self.drive.micros(0, 20_000),
            _ => self.drive.micros(1000, 10_000),
        };
        let at = (due + pause).max(self.starved_until);
        if self.owner_at.is_none_or(|before| at < before) {
            self.owner_at = Some(at);
            self.at(at, What::Owner);
        }
    }

    fn has_unwanted_sockets(&self) -> bool {
        self.conns
            .iter()
            .any(|(generation, conn)| conn.is_open && !self.bridge.is_wanted(Generation(*generation)))
    }

    /// One run of the task that owns the socket.
    pub(crate) fn owner(&mut self) {
        if self.owner_at != Some(self.now) {
            return;
        }
        self.owner_at = None;
        if self.bridge.poll_timeout().is_some_and(|at| at <= self.now) {
            self.bridge.handle_timeout(self.now);
            self.wake();
            self.check_deadlines();
            let is_dial_due = self.bridge.link_state() == LinkState::Waiting;
            let result = invariants::spin::has_moved(self.bridge.poll_timeout(), self.now, is_dial_due);
            self.check(result);
        }
        if let Some(generation) = self.bridge.poll_dial(self.now) {
            let target = self.bridge.reconnect_target(self.now);
            self.dial(generation.0, &target);
        }
        if let Some(HandoffDial { generation, target }) = self.bridge.poll_handoff_dial(self.now) {
            self.dial(generation.0, &target);
        }
        let unwanted: Vec<u64> = self
            .conns
            .iter()
            .filter(|(generation, conn)| conn.is_open && !self.bridge.is_wanted(Generation(**generation)))
            .map(|(generation, _)| *generation)
            .collect();
        for generation in unwanted {
            self.close_socket(generation);
        }
        self.start_writers();
        if self.drive.chance(60) {
            self.drain_events();
        }
    }

    /// Takes the bridge's events, and judges them.
    pub(crate) fn drain_events(&mut self) {
        self.events.begin();
        while let Some(event) = self.bridge.poll_event() {
            self.trace.line(self.now, format_args!("event {event:?}"));
            let result = self.events.next(&event);
            self.check(result);
            let result = invariants::peace::event_is_true(self, &event);
            self.check(result);
        }
    }

    fn dial(&mut self, generation: u64, target: &Target) {
        self.trace.line(self.now, format_args!("dial g{generation} to {target:?}"));
        let Some(endpoint) = self.resolve(target) else {
            let pause = self.latency();
            let error = Err(io::ErrorKind::HostUnreachable);
            return self.after_pause(pause, What::Dialed(generation, EndpointId::DEFAULT, error));
        };
        if self.dials_hang > 0 {
            self.dials_hang -= 1;
            self.after_pause(DIAL_TIMEOUT, What::Dialed(generation, endpoint, Err(io::ErrorKind::TimedOut)));
        } else if self.dials_fail > 0 {
            self.dials_fail -= 1;
            let pause = self.latency();
            self.after_pause(
                pause,
                What::Dialed(generation, endpoint, Err(io::ErrorKind::ConnectionRefused)),
            );
        } else {
            let pause = self.latency() * 2;
            self.after_pause(pause, What::Dialed(generation, endpoint, Ok(())));
        }
    }

    /// A dial ends.
    pub(crate) fn dialed(
        &mut self,
        generation: u64,
        endpoint: EndpointId,
        result: Result<(), io::ErrorKind>,
    ) {
        let result = result
            .and_then(|()| self.connect(generation, endpoint).map_err(|_| io::ErrorKind::ConnectionRefused));
        self.trace.line(self.now, format_args!("dialed g{generation} {result:?}"));
        let is_wanted = self.bridge.is_wanted(Generation(generation));
        let before = (!is_wanted).then(|| invariants::stale::Digest::of(self));
        match result {
            Ok(()) => {
                let is_of_calm = self.is_calm && self.busy_until <= self.now;
                self.conns.insert(generation, Conn::new(self.now, endpoint, is_of_calm));
                let peer = peer_of(endpoint, self.plan.script.form);
                self.bridge.opened(self.now, Generation(generation), Some(peer));
            }
            Err(error) => self.bridge.dial_failed(self.now, Generation(generation), error),
        }
        self.owner_is_woken = true;
        if let Some(before) = before {
            let result = before.is_unchanged(self, generation);
            self.check(result);
        }
    }

    /// The owner drops the socket. What the kernel has may still arrive.
    fn close_socket(&mut self, generation: u64) {
        let is_lost = self.net.chance(50);
        let pause = self.latency();
        let result = invariants::peace::may_end(self, generation);
        self.check(result);
        let Some(conn) = self.conns.get_mut(&generation) else { return };
        conn.is_open = false;
        conn.up.is_dead |= is_lost;
        let at = conn.up.last_arrival.max(self.now + pause);
        self.trace.line(self.now, format_args!("close g{generation}"));
        self.at(at, What::ServerSees(generation));
        for (percent, late) in
            [(30, Late::Lost), (10, Late::Opened), (10, Late::DialFailed), (10, Late::Broken)]
        {
            if self.net.chance(percent) {
                let pause = self.net.millis(0, 150);
                self.after_pause(pause, What::Late(generation, late));
            }
        }
    }

    /// The connections for which the bridge has bytes and which nobody writes to.
    fn writable(&self) -> Vec<u64> {
        let is_writable = |generation: &u64| {
            self.bridge.wants_write(Generation(*generation)) && !self.writers.contains_key(generation)
        };
        self.conns.keys().copied().filter(is_writable).collect()
    }

    /// Takes a batch for every connection whose kernel has room.
    pub(crate) fn start_writers(&mut self) {
        for generation in self.writable() {
            if self.conns.get(&generation).is_none_or(|conn| conn.write_again_at <= self.now) {
                self.start_writer(generation);
            }
        }
    }

    /// Takes a batch, if there is one.
    fn start_writer(&mut self, generation: u64) {
        let Some(batch) = self.bridge.take_write(self.now, Generation(generation)) else { return };
        let bytes: Vec<u8> = batch.slices().flatten().copied().collect();
        self.trace.line(self.now, format_args!("take_write g{generation} {} bytes", bytes.len()));
        let result = self.note_handed_out(generation, &bytes);
        self.check(result);
        let snapshot = self.bridge.snapshot(self.now);
        let largest = self.largest_command();
        let result = invariants::bounds::after_taking(&snapshot, &self.plan.config, largest, self.wanted());
        self.check(result);
        // What a connection that was left still has in flight counts too.
        let is_alone = self.wanted() == 1;
        let conn = self.conns.get_mut(&generation);
        if conn
            .is_some_and(|conn| snapshot.in_flight_bytes > 0 && std::mem::take(&mut conn.begins_with_backlog))
            && is_alone
        {
            let result = invariants::bounds::first_window(&snapshot, &self.plan.config, largest);
            self.check(result);
        }
        self.writers.insert(generation, Writer { batch, count: 0 });
        let pause = self.writer_pause();
        self.after_pause(pause, What::Kernel(generation));
    }

    /// How many connections the client wants.
    pub(crate) fn wanted(&self) -> usize {
        self.conns.keys().filter(|generation| self.bridge.is_wanted(Generation(**generation))).count()
    }

    fn largest_command(&self) -> usize {
        self.records.values().map(|record| record.command.len_bytes()).max().unwrap_or(0)
    }

    /// Writes down which commands a batch has, and where on the connection they end.
    fn note_handed_out(&mut self, generation: u64, bytes: &[u8]) -> Result<(), Violation> {
        let Some(conn) = self.conns.get_mut(&generation) else { return Ok(()) };
        let mut is_first = true;
        for (id, after) in ids_in(bytes) {
            let Some(record) = self.records.get_mut(&id) else { continue };
            if is_first {
                invariants::handshake_first::may_send(conn, generation, id)?;
                is_first = false;
            }
            record.was_handed_out = true;
            let end = conn.up.total + (after + record.command.tail_bytes()) as u64;
            conn.ends.entry(id).or_insert(end);
        }
        if is_first && conn.handshake_commands == 0 {
            conn.handshake_commands = commands_in(bytes);
        }
        Ok(())
    }

    /// How long a writer is busy at one step.
    fn writer_pause(&mut self) -> Duration {
        if self.slow_writers.0 > 0 && self.net.chance(60) {
            self.slow_writers.0 -= 1;
            return self.slow_writers.1;
        }
        if self.net.chance(70) { Duration::ZERO } else { self.net.micros(0, 300) }
    }

    /// The kernel takes what it has room for.
    pub(crate) fn kernel(&mut self, generation: u64) {
        let Some(mut writer) = self.writers.remove(&generation) else { return };
        let len = writer.batch.len();
        let is_partial = self.net.chance(self.plan.partial_percent);
        let wanted = if is_partial { self.net.size(0, len) } else { len };
        let socket_bytes = self.plan.socket_bytes;
        let room = self.conns.get(&generation).filter(|conn| conn.takes_bytes());
        let room = room.map_or(0, |conn| socket_bytes.saturating_sub(conn.unacked));
        writer.count = wanted.min(room);
        let bytes: Vec<u8> = writer.batch.slices().flatten().copied().take(writer.count).collect();
        self.trace.line(self.now, format_args!("kernel takes {} of {len} for g{generation}", bytes.len()));
        self.writers.insert(generation, writer);
        self.travel_up(generation, bytes);
        let pause = self.writer_pause();
        self.after_pause(pause, What::WriterBack(generation));
    }

    /// The writer gives its batch back.
    pub(crate) fn writer_back(&mut self, generation: u64) {
        let Some(Writer { batch, count }) = self.writers.remove(&generation) else { return };
        let is_blocked = count < batch.len();
        self.bridge.wrote(self.now, batch, count);
        self.owner_is_woken = true;
        if is_blocked {
            let at = self.now + self.net.micros(100, 10_000);
            if let Some(conn) = self.conns.get_mut(&generation) {
                conn.write_again_at = at;
            }
        }
        let is_error = self.conns.get(&generation).is_some_and(|conn| conn.is_open && conn.is_broken);
        if is_error && self.net.chance(50) {
            self.lose(generation, LostCause::Reset);
        }
    }

    /// A caller was advised to write.
    pub(crate) fn follow(&mut self, flush: Flush) {
        if flush == Flush::Caller {
            self.start_writers();
        }
    }

    /// The owner reports a loss.
    pub(crate) fn lose(&mut self, generation: u64, cause: LostCause) {
        self.trace.line(self.now, format_args!("lost g{generation} {cause:?}"));
        self.bridge.lost(self.now, Generation(generation), cause);
        self.owner_is_woken = true;
    }

    /// Bytes come in.
    pub(crate) fn client_reads(&mut self, generation: u64, bytes: &Bytes) {
        let is_read_late = self.net.chance(50);
        let Some(conn) = self.conns.get_mut(&generation) else { return };
        if conn.down.is_dead || (!conn.is_open && !is_read_late) {
            return;
        }
        let is_stale = !self.bridge.is_wanted(Generation(generation));
        conn.input.extend_from_slice(bytes);
        let mut frames = Vec::new();
        let broken = loop {
            match conn.decoder.decode(&mut conn.input) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        conn.frames += frames.iter().filter(|frame| !matches!(frame, Frame::Push(_))).count();
        self.trace.line(self.now, format_args!("deliver g{generation} {frames:?} {broken:?}"));
        self.deliver(generation, &mut frames, broken, is_stale);
    }

    /// Gives frames to the bridge; those of a connection that is over change nothing.
    pub(crate) fn deliver(
        &mut self,
        generation: u64,
        frames: &mut Vec<Frame>,
        broken: Option<FrameError>,
        is_stale: bool,
    ) {
        let before = is_stale.then(|| invariants::stale::Digest::of(self));
        self.delivering = Some(generation);
        let was_up = self.bridge.link_state() == LinkState::Up;
        self.bridge.deliver(self.now, Generation(generation), frames);
        if !was_up && self.bridge.link_state() == LinkState::Up {
            let backlog = self.bridge.snapshot(self.now).backlog_commands;
            if let Some(conn) = self.conns.get_mut(&generation) {
                conn.begins_with_backlog = backlog > 0;
            }
        }
        if let Some(error) = broken {
            self.bridge.broken(self.now, Generation(generation), error);
        }
        self.wake();
        self.owner_is_woken = true;
        self.delivering = None;
        if let Some(before) = before {
            let result = before.is_unchanged(self, generation);
            self.check(result);
        }
    }

    /// The client's kernel reports the end of a connection.
    pub(crate) fn client_sees(&mut self, generation: u64, cause: LostCause) {
        let Some(conn) = self.conns.get_mut(&generation) else { return };
        if !conn.is_open {
            return;
        }
        conn.is_broken |= cause != LostCause::Closed;
        self.lose(generation, cause);
    }

    /// An event of a connection that is over: it must change nothing.
    pub(crate) fn late(&mut self, generation: u64, late: Late) {
        self.trace.line(self.now, format_args!("late {late:?} g{generation}"));
        let before = invariants::stale::Digest::of(self);
        let old = Generation(generation);
        match late {
            Late::Lost => self.bridge.lost(self.now, old, LostCause::Reset),
            Late::Opened => self.bridge.opened(self.now, old, None),
            Late::DialFailed => self.bridge.dial_failed(self.now, old, io::ErrorKind::TimedOut),
            Late::Broken => self.bridge.broken(self.now, old, FrameError::Streamed),
        }
        let result = before.is_unchanged(self, generation);
        self.check(result);
    }

    /// The client is shut down.
    pub(crate) fn close(&mut self) {
        self.trace.line(self.now, format_args!("close the bridge"));
        self.is_closed = true;
        self.bridge.close(self.now);
    }
}

/// The ids in `bytes`, in order, each once and with the offset after its line end.
fn ids_in(bytes: &[u8]) -> Vec<(u64, usize)> {
    let (mut found, mut seen, mut at) = (Vec::new(), BTreeSet::new(), 0);
    while let Some(step) = bytes[at..].windows(3).position(|window| window == b"id:") {
        let from = at + step + 3;
        let digits = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at = from + digits;
        let id = std::str::from_utf8(&bytes[from..at]).ok().and_then(|digits| digits.parse().ok());
        if let Some(id) = id
            && bytes[at..].starts_with(b"\r\n")
            && seen.insert(id)
        {
            found.push((id, at + 2));
        }
    }
    found
}

/// How many whole commands `bytes` have.
fn commands_in(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"*")).count()
}
