//! The server's side of the world: the network to and from it, and what goes wrong on the way.

use std::time::Duration;

use bytes::Bytes;
use towline_client_proto::LostCause;
use towline_faults::model::{ConnectionId, Keep, OutputEvent, Trouble, Wrong};
use towline_resp::frame::Frame;
use towline_sansio::Instant;

use crate::invariants;
use crate::plan::{Fault, GARBAGE, credentials, wrong_credentials};
use crate::world::{What, World};

impl World {
    /// One trip.
    pub(crate) fn latency(&mut self) -> Duration {
        let longest = u64::try_from(self.plan.latency.as_micros()).unwrap_or(u64::MAX);
        self.net.micros(longest / 4, longest)
    }

    /// Cuts bytes into pieces as they may travel.
    fn pieces(&mut self, bytes: &Bytes) -> Vec<Bytes> {
        let mut rest = bytes.clone();
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let most = rest.len().min(self.plan.piece_bytes);
            // Small pieces of something large would only make the history long.
            let least = if rest.len() > 500 { most } else { 1 };
            let len = self.net.size(least, most).max(rest.len() / 20).max(1);
            pieces.push(rest.split_to(len.min(rest.len())));
        }
        pieces
    }

    /// Bytes enter the network towards the server.
    pub(crate) fn travel_up(&mut self, generation: u64, bytes: Vec<u8>) {
        let Some(conn) = self.conns.get_mut(&generation) else { return };
        if bytes.is_empty() {
            return;
        }
        let before = conn.up.total;
        let is_between_commands = conn.boundary == before;
        conn.up.total += bytes.len() as u64;
        for id in conn.take_complete() {
            if let Some(record) = self.records.get_mut(&id) {
                record.kernel_took += 1;
                record.taken_by.push(generation);
            }
        }
        conn.unacked += bytes.len();
        if conn.up.is_dark {
            return;
        }
        let mut bytes = Bytes::from(bytes);
        if is_between_commands && std::mem::take(&mut conn.spoils_up) {
            bytes = [&GARBAGE, &bytes[..]].concat().into();
        }
        let cut = conn.up.cut_at.filter(|cut| *cut < before + bytes.len() as u64);
        if let Some(cut) = cut {
            bytes.truncate(usize::try_from(cut.saturating_sub(before)).unwrap_or(0));
        }
        for piece in self.pieces(&bytes) {
            let pause = self.latency();
            let Some(conn) = self.conns.get_mut(&generation) else { return };
            let at = conn.up.last_arrival.max(conn.stalled_until).max(self.now + pause);
            conn.up.last_arrival = at;
            self.pieces_up += 1;
            self.at(at, What::ToServer(generation, piece));
        }
        if cut.is_some() {
            self.cut(generation);
        }
    }

    /// The connection is reset after what has been sent so far has arrived.
    fn cut(&mut self, generation: u64) {
        let pause = self.latency();
        let Some(conn) = self.conns.get_mut(&generation) else { return };
        conn.up.is_dark = true;
        conn.down.is_dark = true;
        conn.up.cut_at = None;
        conn.down.cut_at = None;
        let at = conn.up.last_arrival.max(self.now);
        let seen_at = conn.down.last_arrival.max(at) + pause;
        self.at(at, What::ServerSees(generation));
        self.at(seen_at, What::ClientSees(generation, LostCause::Reset));
    }

    /// Bytes reach the server.
    pub(crate) fn server_reads(&mut self, generation: u64, bytes: &Bytes) {
        self.pieces_up -= 1;
        let Some(conn) = self.conns.get_mut(&generation) else { return };
        conn.unacked = conn.unacked.saturating_sub(bytes.len());
        if conn.up.is_dead {
            return;
        }
        self.trace.line(self.now, format_args!("server gets {} bytes of g{generation}", bytes.len()));
        self.feed_server(generation, bytes);
    }

    /// The server learns that a client has gone.
    pub(crate) fn server_sees(&mut self, generation: u64) {
        self.model.disconnect(self.now, ConnectionId(generation));
    }

    /// The server's own time.
    pub(crate) fn server_timer(&mut self) {
        if self.server_at == Some(self.now) {
            self.server_at = None;
            self.model.handle_timeout(self.now);
        }
    }

    /// Takes what the server sends.
    pub(crate) fn drain_server(&mut self) {
        while let Some(output) = self.model.poll_output(self.now) {
            let generation = output.connection.0;
            match output.event {
                OutputEvent::Bytes(bytes) => self.travel_down(generation, bytes),
                OutputEvent::Close => {
                    let pause = self.latency();
                    let Some(conn) = self.conns.get_mut(&generation) else { continue };
                    if !conn.down.is_dark {
                        let at = conn.down.last_arrival.max(conn.stalled_until).max(self.now + pause);
                        conn.down.last_arrival = at;
                        self.at(at, What::ClientSees(generation, LostCause::Closed));
                    }
                }
            }
        }
        if let Some(due) = self.model.poll_timeout()
            && self.server_at.is_none_or(|at| due < at)
        {
            self.server_at = Some(due.max(self.now));
            self.at(due, What::ServerTimer);
        }
    }

    fn travel_down(&mut self, generation: u64, mut bytes: Bytes) {
        let Some(conn) = self.conns.get_mut(&generation) else { return };
        if conn.down.is_dark {
            return;
        }
        if std::mem::take(&mut conn.spoils_down) {
            bytes = [&GARBAGE, &bytes[..]].concat().into();
        }
        let before = conn.down.total;
        conn.down.total += bytes.len() as u64;
        let cut = conn.down.cut_at.filter(|cut| *cut < conn.down.total);
        if let Some(cut) = cut {
            bytes.truncate(usize::try_from(cut.saturating_sub(before)).unwrap_or(0));
        }
        for piece in self.pieces(&bytes) {
            let pause = self.latency();
            let Some(conn) = self.conns.get_mut(&generation) else { return };
            let at = conn.down.last_arrival.max(conn.stalled_until).max(self.now + pause);
            conn.down.last_arrival = at;
            self.at(at, What::ToClient(generation, piece));
        }
        if cut.is_some() {
            self.cut(generation);
        }
    }

    /// The connection that the client uses at present.
    pub(crate) fn current(&self) -> Option<u64> {
        let serving = self.bridge.generation().0;
        self.conns.get(&serving).filter(|conn| conn.is_open).map(|_| serving)
    }

    /// The connection to which something happens: any that is open.
    fn victim(&mut self) -> Option<u64> {
        let open: Vec<u64> =
            self.conns.iter().filter(|(_, conn)| conn.is_open).map(|(generation, _)| *generation).collect();
        if open.len() < 2 { open.first().copied() } else { Some(self.net.pick(&open)) }
    }

    /// Something goes wrong.
    pub(crate) fn fault(&mut self, index: usize) {
        let Some((_, fault)) = self.plan.faults.get(index).cloned() else { return };
        let Some(generation) = self.victim() else { return self.fault_of_server(&fault, 0) };
        self.trace.line(self.now, format_args!("fault {fault:?} g{generation}"));
        let pause = self.latency();
        let Some(conn) = self.conns.get_mut(&generation) else { return };
        match fault {
            Fault::Fin => self.model.close(self.now, ConnectionId(generation)),
            Fault::Reset => {
                conn.up.is_dead = true;
                conn.down.is_dead = true;
                conn.down.is_dark = true;
                conn.is_broken = true;
                self.model.disconnect(self.now, ConnectionId(generation));
                self.after_pause(pause, What::ClientSees(generation, LostCause::Reset));
            }
            Fault::HalfOpen => {
                conn.up.is_dark = true;
                conn.down.is_dark = true;
            }
            Fault::Mute => conn.down.is_dark = true,
            Fault::Stall(time) => conn.stalled_until = self.now + time,
            Fault::CutUp(bytes) => conn.up.cut_at = Some(conn.up.total + bytes),
            Fault::CutDown(bytes) => conn.down.cut_at = Some(conn.down.total + bytes),
            Fault::GarbageDown => (conn.spoils_down, conn.has_lied) = (true, true),
            Fault::GarbageUp => (conn.spoils_up, conn.has_lied) = (true, true),
            other => self.fault_of_server(&other, generation),
        }
    }

    /// A fault that does not need a connection.
    fn fault_of_server(&mut self, fault: &Fault, generation: u64) {
        match *fault {
            Fault::Restart(keep, time) => {
                self.restarts.push((self.model.generation() + 1, keep));
                self.model.restart(self.now, keep);
                self.model.refuse_connections(true);
                self.after_pause(time, What::ServerUp);
            }
            Fault::Busy(time) => {
                self.busy_until = self.busy_until.max(self.now + time);
                self.model.busy(self.now, time);
            }
            Fault::Refuse(ref refusal, after, times) => {
                let wrong = Wrong::Refuse(refusal.clone());
                self.model.trouble(Trouble::new(wrong).after(after).times(times));
            }
            Fault::CloseBefore(after) => self.model.trouble(Trouble::new(Wrong::CloseBefore).after(after)),
            Fault::CloseAfter(after) => self.model.trouble(Trouble::new(Wrong::CloseAfter).after(after)),
            Fault::DialsFail(count) => self.dials_fail += count,
            Fault::DialsHang(count) => self.dials_hang += count,
            Fault::SlowWriters(count, time) => self.slow_writers = (count, time),
            Fault::Starve(time) => self.starved_until = self.now + time,
            Fault::Hold(time, cap) => self.begin_hold(time, cap),
            Fault::Reauth => self.bridge.reauthenticate(credentials()),
            Fault::WrongPassword(time) => {
                self.bridge.reauthenticate(wrong_credentials());
                self.after_pause(time, What::RightPassword);
            }
            Fault::BusyAfter(after, time) => {
                self.model.trouble(Trouble::new(Wrong::BusyAfter(time)).after(after));
            }
            Fault::Push => {
                let push = Frame::Push(vec![Frame::Bulk(Bytes::from_static(b"news")), Frame::Integer(1)]);
                self.model.push(self.now, ConnectionId(generation), &push);
            }
            Fault::ExtraReply => self.extra_reply(generation),
            Fault::PlannedLoss if generation > 0 => self.lose(generation, LostCause::Planned),
            _ => {}
        }
    }

    /// A reply that nobody asked for. Only while no command has left whole: otherwise no client can tell.
    fn extra_reply(&mut self, generation: u64) {
        let is_alone = self.conns.values().filter(|conn| conn.is_open).count() == 1;
        let is_up = self.bridge.info().is_some() && is_alone && self.bridge.generation().0 == generation;
        let in_flight = self.bridge.snapshot(self.now).in_flight_commands;
        let Some(conn) = self.conns.get_mut(&generation) else { return };
        let has_sent_none =
            in_flight == 0 || (in_flight == conn.ends.len() && conn.boundary == conn.up.total);
        if is_up && has_sent_none && self.writers.is_empty() {
            conn.has_lied = true;
            let mut frames = vec![Frame::Simple(Bytes::from_static(b"OK"))];
            self.deliver(generation, &mut frames, None, false);
            let result = invariants::peace::lie_is_noticed(self, generation);
            self.check(result);
        }
    }

    /// The client gets the right credentials.
    pub(crate) fn right_password(&mut self) {
        if self.plan.handshake.credentials.is_some() {
            self.bridge.reauthenticate(credentials());
        }
    }

    fn begin_hold(&mut self, time: Duration, cap: Duration) {
        if self.bridge.held_since().is_none() {
            self.bridge.begin_hold(self.now, cap);
            self.after_pause(time, What::EndHold);
        }
    }

    /// The planned handoff lets commands go.
    pub(crate) fn end_hold(&mut self) {
        self.bridge.end_hold(self.now);
    }

    /// Notes what holds and relaxation do to soft deadlines.
    pub(crate) fn watch_stretching(&mut self) {
        let hold = self.bridge.held_since();
        if let Some((since, cap)) = self.hold
            && hold != self.hold
        {
            for id in self.live.keys() {
                if let Some(record) = self.records.get_mut(id) {
                    record.stretch += self.now.since(since).min(cap);
                }
            }
        }
        self.hold = hold;
        let relaxed = self.bridge.relaxed_until();
        if let Some(before) = self.relaxed_until {
            self.restored_at = before.min(self.now);
        }
        self.relaxed_until = relaxed;
    }

    /// What the hold under way has added to soft deadlines by now.
    pub(crate) fn held_for(&self, now: Instant) -> Duration {
        self.hold.map_or(Duration::ZERO, |(since, cap)| now.since(since).min(cap))
    }

    /// From now on nothing goes wrong.
    pub(crate) fn calm(&mut self) {
        self.trace.line(self.now, format_args!("calm"));
        self.is_calm = true;
        self.model.calm();
        self.model.refuse_connections(false);
        self.calm_moves();
        (self.dials_fail, self.dials_hang, self.slow_writers) = (0, 0, (0, Duration::ZERO));
        self.starved_until = self.now;
        // Of a server that is busy after some command, the world does not know until when.
        self.busy_until = self.busy_until.max(self.now + Duration::from_millis(400));
        self.right_password();
        for conn in self.conns.values_mut() {
            conn.up.cut_at = None;
            conn.down.cut_at = None;
            (conn.spoils_up, conn.spoils_down) = (false, false);
        }
        if !self.is_closed {
            self.ask();
        }
    }

    /// Keeps what a restart lost, for the expected replies.
    pub(crate) fn has_lost_data(&self, server_generation: u64) -> bool {
        self.restarts.contains(&(server_generation, Keep::Nothing))
    }

    /// Judges that no deadline was passed over; see [`invariants::deadline`].
    pub(crate) fn check_deadlines(&mut self) {
        for id in invariants::deadline::overdue(self) {
            self.poll(id);
            if self.live.contains_key(&id) {
                let violation = invariants::deadline::outlived(self, id);
                self.check(Err(violation));
            }
        }
    }
}
