//! The initiator's side: from wanting a lane to CONFIRM.

use std::time::Duration;

use towline_admission::{AttemptOutcome, Passage, RequestId, Requested, Ticket};
use towline_sansio::Instant;

use crate::identity::{Attempt, ConnId, LinkId, LinkKey, QueuePair};
use crate::wire::{Hello, Message, RejectReason, Welcome};

use super::line::{Dial, Phase};
use super::output::{Output, Role};
use super::{Conn, Connections, NoQueuePairs};

impl Connections {
    pub(super) fn request_permit(&mut self, now: Instant, key: LinkKey) {
        match self.limiter.request(key.node) {
            Ok(Requested::Granted(request)) => {
                self.line(key).phase = Phase::WaitPermit { request };
                self.requests.insert(request, key);
                self.granted.push_back(request);
            }
            Ok(Requested::Waiting(request)) => {
                self.line(key).phase = Phase::WaitPermit { request };
                self.requests.insert(request, key);
            }
            Err(_) => {
                // More lanes than may wait: the rest looks again later. Nothing was tried, so nothing failed.
                let cap = self.config.backoff.cap;
                self.wait_until(key, now + cap);
            }
        }
    }

    pub(super) fn on_granted(&mut self, now: Instant, request: RequestId) {
        // Given back between the grant and now: its permit went on then.
        let Some(key) = self.requests.get(&request).copied() else { return };
        let peer = self.peers.get_mut(&key.node).expect("invariant: a lane is met before it is used");
        match peer.breaker.ask(now, &mut self.prng) {
            Passage::Refused { retry_at } => {
                self.counters.put_off += 1;
                self.release(request);
                self.wait_until(key, retry_at);
                self.peer(key.node).blocked.insert(key.lane);
            }
            Passage::Allowed(passage) => {
                let at = self.limiter.start(request, now).unwrap_or(now);
                self.line(key).phase = Phase::Paced { request, passage };
                if at > now {
                    self.set_timer(key, Some(at));
                } else {
                    self.dial(now, key);
                }
            }
        }
    }

    pub(super) fn dial(&mut self, now: Instant, key: LinkKey) {
        let Phase::Paced { request, passage } = std::mem::take(&mut self.line(key).phase) else { return };
        let conn = self.conn_id();
        self.conns.insert(conn, Conn::Of(key));
        self.line(key).phase = Phase::Dialing { dial: Dial { conn, request, passage } };
        self.set_timer(key, Some(now + self.config.dial_timeout));
        self.outputs.push_back(Output::Dial { conn, node: key.node });
    }

    pub(super) fn on_dialed(&mut self, conn: ConnId) {
        let Some(Conn::Of(key)) = self.conns.get(&conn).copied() else { return };
        match std::mem::take(&mut self.line(key).phase) {
            Phase::Dialing { dial } if dial.conn == conn => {
                let link = self.new_link(key);
                let queue_pairs = usize::from(self.line(key).queue_pairs);
                let psns = self.psns(queue_pairs);
                self.line(key).phase = Phase::Offering { dial, link };
                self.outputs.push_back(Output::Offer { link, key, psns });
            }
            other => self.line(key).phase = other,
        }
    }

    pub(super) fn on_offered(
        &mut self,
        now: Instant,
        link: LinkId,
        queue_pairs: Result<Vec<QueuePair>, NoQueuePairs>,
    ) {
        let Some(key) = self.owners.get(&link).copied() else { return };
        let Ok(queue_pairs) = queue_pairs else { return self.local_fault(now, key) };
        match std::mem::take(&mut self.line(key).phase) {
            Phase::Offering { dial, link: own } if own == link => {
                self.send_hello(now, key, dial, link, queue_pairs);
            }
            other => self.line(key).phase = other,
        }
    }

    fn send_hello(
        &mut self,
        now: Instant,
        key: LinkKey,
        dial: Dial,
        link: LinkId,
        queue_pairs: Vec<QueuePair>,
    ) {
        let (nonce, conn, count) = (self.prng.next_u64(), dial.conn, queue_pairs.len());
        let to_incarnation = self.peer(key.node).incarnation;
        let (from, patience) = (self.me, self.config.reply_timeout);
        let line = self.line(key);
        line.attempt.0 += 1;
        let hello = Hello {
            from,
            to: key.node,
            to_incarnation,
            lane: key.lane,
            attempt: line.attempt,
            nonce,
            patience,
            ticket: line.ticket.take().map(Ticket::to_wire),
            is_insisting: line.is_insisting,
            queue_pairs,
        };
        line.phase = Phase::AwaitReply { dial, link, nonce, queue_pairs: count };
        self.set_timer(key, Some(now + patience));
        self.counters.hellos += 1;
        self.send(conn, Message::Hello(hello));
    }

    /// The lane whose present HELLO an answer on this connection is to.
    fn answered(&mut self, conn: ConnId, attempt: Attempt) -> Option<LinkKey> {
        let Some(Conn::Of(key)) = self.conns.get(&conn).copied() else { return None };
        let is_checked = self.guards.echo;
        let line = self.line(key);
        let is_present = matches!(&line.phase, Phase::AwaitReply { dial, .. } if dial.conn == conn)
            && (line.attempt == attempt || !is_checked);
        if !is_present {
            self.counters.stale_replies += 1;
        }
        is_present.then_some(key)
    }

    pub(super) fn on_welcome(&mut self, now: Instant, conn: ConnId, welcome: Welcome) {
        let Some(key) = self.answered(conn, welcome.attempt) else { return };
        let Phase::AwaitReply { link, nonce, queue_pairs, .. } = self.line(key).phase else { return };
        let is_ours = !self.guards.echo || (welcome.echo == nonce && welcome.to == self.me);
        if !is_ours {
            self.counters.stale_replies += 1;
            return;
        }
        let is_sound = welcome.from.node == key.node && welcome.queue_pairs.len() == queue_pairs;
        if !is_sound || !self.meet_life(now, key.node, welcome.from.incarnation) {
            return self.attempt_failed(now, key);
        }
        if self.guards.abandoned {
            let line = self.line(key);
            line.seen = line.seen.max(welcome.abandoned);
        }
        match std::mem::take(&mut self.line(key).phase) {
            Phase::AwaitReply { dial, .. } => {
                let (process, nonce) = (welcome.from, welcome.nonce);
                self.line(key).phase = Phase::Confirming { dial, link, process, nonce };
                self.outputs.push_back(Output::Activate { link, remote: welcome.queue_pairs });
            }
            other => self.line(key).phase = other,
        }
    }

    pub(super) fn on_activated(
        &mut self,
        now: Instant,
        key: LinkKey,
        link: LinkId,
        result: Result<(), NoQueuePairs>,
    ) {
        if result.is_err() {
            return self.local_fault(now, key);
        }
        match std::mem::take(&mut self.line(key).phase) {
            Phase::Confirming { dial, link: own, process, nonce } if own == link => {
                let (conn, attempt) = (dial.conn, self.line(key).attempt);
                self.send(conn, Message::Confirm { attempt, nonce });
                self.conns.insert(conn, Conn::Spare);
                self.let_go(now, key, dial, AttemptOutcome::Worked);
                self.counters.linked += 1;
                self.become_ready(
                    now,
                    key,
                    Phase::Ready { link, process, role: Role::Initiator, welcome: None },
                );
            }
            Phase::Prepared { conn, link: own, process, welcome, is_confirmed: true, .. } if own == link => {
                self.conns.insert(conn, Conn::Spare);
                let welcome = Some(welcome);
                self.become_ready(now, key, Phase::Ready { link, process, role: Role::Target, welcome });
            }
            other => self.line(key).phase = other,
        }
    }

    fn become_ready(&mut self, now: Instant, key: LinkKey, phase: Phase) {
        if let Phase::Ready { link, process, role, .. } = phase {
            self.outputs.push_back(Output::Ready { link, key, process, role });
        }
        self.set_timer(key, None);
        self.ready += 1;
        let line = self.line(key);
        line.phase = phase;
        line.is_insisting = false;
        line.ticket = None;
        line.backoff.connected(now);
    }

    pub(super) fn on_busy(
        &mut self,
        now: Instant,
        conn: ConnId,
        attempt: Attempt,
        retry_after: Duration,
        ticket: Option<u64>,
    ) {
        let Some(key) = self.answered(conn, attempt) else { return };
        self.counters.busy += 1;
        if !self.guards.busy_is_free {
            return self.attempt_failed(now, key);
        }
        self.end_attempt(now, key, AttemptOutcome::Busy);
        // A ticket is a time of our own. Without one others were told the same.
        let spread = if ticket.is_none() { self.config.return_jitter } else { Duration::ZERO };
        let nanos = u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX);
        let jitter = Duration::from_nanos(self.prng.below(nanos.saturating_add(1)));
        self.line(key).ticket = ticket.map(Ticket::from_wire);
        self.wait_until(key, now + retry_after.min(self.config.appointment_max) + jitter);
    }

    pub(super) fn on_use_mine(&mut self, now: Instant, conn: ConnId, attempt: Attempt) {
        let Some(key) = self.answered(conn, attempt) else { return };
        self.counters.yielded += 1;
        self.end_attempt(now, key, AttemptOutcome::Busy);
        self.line(key).phase = Phase::Yielded;
        self.set_timer(key, Some(now + self.config.yield_timeout));
    }

    pub(super) fn on_reject(&mut self, now: Instant, conn: ConnId, attempt: Attempt, reason: RejectReason) {
        let Some(key) = self.answered(conn, attempt) else { return };
        if reason == RejectReason::WrongIncarnation {
            // It restarted. Who it is now, its WELCOME will say; who it was, is gone.
            if self.guards.incarnations {
                self.end_links(now, key.node, super::DownCause::PeerRestarted);
            }
            self.peer(key.node).incarnation = None;
        }
        self.attempt_failed(now, key);
    }

    /// The attempt came to nothing: give back, and try again after a backoff if the lane is wanted.
    pub(super) fn attempt_failed(&mut self, now: Instant, key: LinkKey) {
        self.counters.failed += 1;
        self.end_attempt(now, key, AttemptOutcome::Failed);
        let at = self.after_failure(now, key.node);
        if self.line(key).is_wanted {
            self.wait_until(key, at);
        }
    }

    /// Our own card failed: the peer's breaker has nothing to do with it.
    fn local_fault(&mut self, now: Instant, key: LinkKey) {
        self.counters.failed += 1;
        if self.line(key).phase.is_inbound() {
            self.end_phase(now, key, super::DownCause::QueuePair);
        } else {
            self.end_attempt(now, key, AttemptOutcome::Abandoned);
        }
        let at = self.after_failure(now, key.node);
        if self.line(key).is_wanted {
            self.wait_until(key, at);
        }
    }

    /// Nobody needs the attempt any more.
    pub(super) fn abandon(&mut self, now: Instant, key: LinkKey) {
        self.end_phase(now, key, super::DownCause::Leaving);
    }

    /// Ends an attempt of ours with this outcome; the lane is idle after it.
    fn end_attempt(&mut self, now: Instant, key: LinkKey, outcome: AttemptOutcome) {
        match std::mem::take(&mut self.line(key).phase) {
            Phase::Dialing { dial } => self.give_up(now, key, dial, None, outcome),
            Phase::Offering { dial, link }
            | Phase::AwaitReply { dial, link, .. }
            | Phase::Confirming { dial, link, .. } => self.give_up(now, key, dial, Some(link), outcome),
            // Others have no attempt to end.
            other => self.line(key).phase = other,
        }
    }

    fn give_up(
        &mut self,
        now: Instant,
        key: LinkKey,
        dial: Dial,
        link: Option<LinkId>,
        outcome: AttemptOutcome,
    ) {
        self.set_timer(key, None);
        self.close(dial.conn);
        if let Some(link) = link {
            self.retire(link);
        }
        self.let_go(now, key, dial, outcome);
    }
}
