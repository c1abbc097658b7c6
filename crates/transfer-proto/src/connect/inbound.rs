//! The target's side: from a HELLO to a link that was confirmed.

use std::time::Duration;

use towline_admission::{Admission, Arrival, Busy, JobId, Ticket};
use towline_sansio::Instant;

use crate::identity::{Attempt, ConnId, LinkId, LinkKey, Process, QueuePair};
use crate::wire::{Hello, Message, RejectReason, Welcome};

use super::line::Phase;
use super::output::{DownCause, Output, Role};
use super::{Conn, Connections, NoQueuePairs};

/// For a process that knows as many nodes as it may: when to ask again. Links end in minutes, not in milliseconds.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(1);

impl Connections {
    pub(super) fn on_hello(&mut self, now: Instant, conn: ConnId, hello: Hello) {
        self.counters.asked += 1;
        match self.conns.get(&conn).copied() {
            Some(Conn::Silent(header)) => {
                self.headers.finished(header);
                self.conns.insert(conn, Conn::Spare);
            }
            Some(Conn::Spare) => {}
            // A HELLO on a connection that carries a handshake: its sender does not speak this protocol.
            Some(Conn::Of(_)) | None => return,
        }
        if let Some(reason) = self.objection(&hello) {
            return self.reject(conn, hello.attempt, reason);
        }
        let key = LinkKey { node: hello.from.node, lane: hello.lane };
        if !self.meet(key) {
            self.counters.refused += 1;
            let busy = Message::Busy { attempt: hello.attempt, retry_after: FULL_RETRY_AFTER, ticket: None };
            self.send(conn, busy);
            return self.close(conn);
        }
        if !self.meet_life(now, key.node, hello.from.incarnation) {
            self.counters.stale_dropped += 1;
            return self.reject(conn, hello.attempt, RejectReason::Superseded);
        }
        if hello.attempt <= self.line(key).seen && self.guards.attempts {
            return self.on_old_hello(conn, key, &hello);
        }
        self.line(key).seen = hello.attempt;
        if self.goes_first(key, &hello) {
            self.send(conn, Message::UseMine { attempt: hello.attempt });
            return self.close(conn);
        }
        self.take_up(now, conn, key, hello);
    }

    /// What makes a HELLO one that cannot be answered.
    fn objection(&self, hello: &Hello) -> Option<RejectReason> {
        if self.is_leaving {
            Some(RejectReason::Leaving)
        } else if hello.to != self.me.node {
            Some(RejectReason::WrongNode)
        } else if hello.to_incarnation.is_some_and(|life| life != self.me.incarnation) {
            Some(RejectReason::WrongIncarnation)
        } else if hello.queue_pairs.is_empty()
            || hello.lane.0 >= self.config.lanes_max
            || hello.from.node == self.me.node
        {
            Some(RejectReason::Invalid)
        } else {
            None
        }
    }

    /// A HELLO that was seen before, or one before that.
    fn on_old_hello(&mut self, conn: ConnId, key: LinkKey, hello: &Hello) {
        let is_ours = |welcome: &Welcome| welcome.attempt == hello.attempt && welcome.echo == hello.nonce;
        let known = match &self.line(key).phase {
            Phase::Prepared { welcome, .. } | Phase::Ready { welcome: Some(welcome), .. }
                if is_ours(welcome) =>
            {
                Some(Welcome::clone(welcome))
            }
            _ => None,
        };
        let Some(welcome) = known.filter(|_| self.guards.cached_reply) else {
            self.counters.stale_dropped += 1;
            return self.reject(conn, hello.attempt, RejectReason::Superseded);
        };
        self.counters.repeated += 1;
        // The answer goes where the question came from, and so will its CONFIRM.
        if let Phase::Prepared { conn: before, .. } = &mut self.line(key).phase {
            let before = std::mem::replace(before, conn);
            self.conns.insert(before, Conn::Spare);
            self.conns.insert(conn, Conn::Of(key));
        }
        self.send(conn, Message::Welcome(welcome));
    }

    /// Whether our own HELLO, which is on its way to the same peer, is the one to be answered.
    fn goes_first(&mut self, key: LinkKey, theirs: &Hello) -> bool {
        let node = self.me.node;
        let line = self.line(key);
        // Before ours is out, the peer has shown that it gets through, and we have not.
        matches!(line.phase, Phase::AwaitReply { .. })
            && (line.is_insisting, node) > (theirs.is_insisting, theirs.from.node)
            && self.guards.tie_break
    }

    fn take_up(&mut self, now: Instant, conn: ConnId, key: LinkKey, hello: Hello) {
        // Its earlier attempt waits for nobody any more, and its earlier link has lost its other end.
        let is_of_the_peer = |phase: &Phase| phase.is_inbound() || matches!(phase, Phase::Ready { .. });
        if is_of_the_peer(&self.line(key).phase) {
            if matches!(self.line(key).phase, Phase::Queued { .. }) {
                self.counters.spared += 1;
            }
            self.end_phase(now, key, DownCause::PeerRebuilds);
        }
        let arrival = Arrival {
            source: key.node,
            deadline: now + hello.patience,
            ticket: hello.ticket.map(Ticket::from_wire),
        };
        match self.queue.arrive(now, arrival) {
            Admission::Busy(busy) => {
                self.counters.refused += 1;
                self.send(conn, busy_message(now, hello.attempt, busy));
                self.close(conn);
                if matches!(self.line(key).phase, Phase::Idle) {
                    self.resume(now, key);
                }
            }
            Admission::Admit(job) => {
                self.give_way(now, conn, key);
                self.serve(job, conn, key, Box::new(hello));
            }
            Admission::Queue { job, .. } => {
                self.give_way(now, conn, key);
                self.queued.insert(job, key);
                self.line(key).phase = Phase::Queued { job, conn, hello: Box::new(hello) };
            }
        }
    }

    /// Our own attempt ends, since the peer's is taken up.
    fn give_way(&mut self, now: Instant, conn: ConnId, key: LinkKey) {
        if matches!(self.line(key).phase, Phase::AwaitReply { .. }) {
            self.counters.yielded += 1;
        }
        self.end_phase(now, key, DownCause::PeerRebuilds);
        self.conns.insert(conn, Conn::Of(key));
    }

    pub(super) fn on_start(&mut self, job: JobId) {
        let key = self.queued.remove(&job).expect("invariant: whatever is queued belongs to a lane");
        match std::mem::take(&mut self.line(key).phase) {
            Phase::Queued { job: own, conn, hello } if own == job => self.serve(job, conn, key, hello),
            other => {
                self.line(key).phase = other;
                self.queue.cancel(job);
            }
        }
    }

    /// Its initiator has stopped listening: no work for nobody.
    pub(super) fn on_expired(&mut self, now: Instant, job: JobId) {
        let key = self.queued.remove(&job).expect("invariant: whatever is queued belongs to a lane");
        self.counters.spared += 1;
        self.end_phase(now, key, DownCause::PeerRebuilds);
        self.resume(now, key);
    }

    fn serve(&mut self, job: JobId, conn: ConnId, key: LinkKey, hello: Box<Hello>) {
        let link = self.new_link(key);
        self.serving.insert(link, job);
        let psns = self.psns(hello.queue_pairs.len());
        let (process, remote) = (hello.from, hello.queue_pairs.clone());
        self.line(key).phase = Phase::Serving { conn, link, hello };
        self.outputs.push_back(Output::Serve { link, key, process, remote, psns });
    }

    pub(super) fn on_served(
        &mut self,
        now: Instant,
        link: LinkId,
        queue_pairs: Result<Vec<QueuePair>, NoQueuePairs>,
    ) {
        // Retired meanwhile: its initiator is gone or has begun anew.
        let Some(key) = self.owners.get(&link).copied() else { return };
        match std::mem::take(&mut self.line(key).phase) {
            Phase::Serving { conn, link: own, hello } if own == link => match queue_pairs {
                Ok(queue_pairs) => self.send_welcome(now, key, conn, link, *hello, queue_pairs),
                Err(NoQueuePairs) => {
                    self.line(key).phase = Phase::Serving { conn, link, hello: hello.clone() };
                    self.send(
                        conn,
                        Message::Reject { attempt: hello.attempt, reason: RejectReason::NoResources },
                    );
                    self.end_phase(now, key, DownCause::QueuePair);
                    self.resume(now, key);
                }
            },
            other => self.line(key).phase = other,
        }
    }

    fn send_welcome(
        &mut self,
        now: Instant,
        key: LinkKey,
        conn: ConnId,
        link: LinkId,
        hello: Hello,
        queue_pairs: Vec<QueuePair>,
    ) {
        self.counters.served += 1;
        let nonce = self.prng.next_u64();
        let welcome = Welcome {
            from: self.me,
            to: hello.from,
            attempt: hello.attempt,
            echo: hello.nonce,
            nonce,
            abandoned: self.line(key).attempt,
            queue_pairs,
        };
        let (process, message) = (hello.from, Message::Welcome(welcome.clone()));
        let welcome = Box::new(welcome);
        self.line(key).phase = Phase::Prepared { conn, link, process, nonce, welcome, is_confirmed: false };
        self.set_timer(key, Some(now + self.config.confirm_timeout));
        self.send(conn, message);
        if !self.guards.confirm {
            self.confirm(key, link);
        }
    }

    pub(super) fn on_confirm(&mut self, conn: ConnId, attempt: Attempt, nonce: u64) {
        let Some(Conn::Of(key)) = self.conns.get(&conn).copied() else { return };
        if let Phase::Prepared { conn: own, link, nonce: expected, welcome, .. } = &self.line(key).phase
            && *own == conn
            && *expected == nonce
            && welcome.attempt == attempt
        {
            let link = *link;
            self.confirm(key, link);
        }
    }

    /// The initiator has our queue pairs: ours may send. Once.
    pub(super) fn confirm(&mut self, key: LinkKey, link: LinkId) {
        if let Phase::Prepared { link: own, is_confirmed, .. } = &mut self.line(key).phase
            && *own == link
            && !*is_confirmed
        {
            *is_confirmed = true;
            self.outputs.push_back(Output::Activate { link, remote: Vec::new() });
        }
    }

    fn reject(&mut self, conn: ConnId, attempt: Attempt, reason: RejectReason) {
        self.send(conn, Message::Reject { attempt, reason });
        self.close(conn);
    }

    /// The process and the end of a lane's link, for tests and snapshots.
    pub fn linked_to(&self, key: LinkKey) -> Option<(Process, Role)> {
        match self.peers.get(&key.node)?.lines.get(&key.lane)?.phase {
            Phase::Ready { process, role, .. } => Some((process, role)),
            _ => None,
        }
    }
}

/// On the wire a time is a time from now.
fn busy_message(now: Instant, attempt: Attempt, busy: Busy) -> Message {
    Message::Busy { attempt, retry_after: busy.retry_at.since(now), ticket: busy.ticket.map(Ticket::to_wire) }
}
