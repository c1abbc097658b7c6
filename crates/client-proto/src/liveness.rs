//! Whether the peer of a connection is still there.
//!
//! Owns the verdict. Does not own the clock, the timer, the `PING` on the wire, or what happens to commands once the
//! verdict is in. The silence of a blocking command is wanted: it belongs on a connection of its own, whose patience is
//! set to what the command may take ([`Liveness::set_config`]).
//!
//! TCP alone notices a peer whose packets are dropped after a quarter of an hour; here data decides, in four rules:
//!
//! 1. **Silence counts from when something was due**: from the last byte read or the send time of the oldest
//!    unanswered command, whichever is later. A reply that trickles in, or a server that answers one slow command
//!    after the other, is progress. So is a blocked write that moves on, because the peer's kernel made room.
//! 2. **Silence of [`LivenessConfig::silence_max`] is suspect, not yet dead.** A short [`LivenessConfig::confirm`]
//!    follows, during which the runtime goes once through its reactor, so that bytes which had arrived are read. With
//!    the defaults a silent peer is dead 1.8 s after something was due; a server busy for 1.5 s in one command is not.
//! 3. **A late caller does not judge.** If `poll` comes more than [`LivenessConfig::late_max`] after its time, this
//!    process was starved and the bytes may wait in the kernel: the confirmation is then long
//!    ([`LivenessConfig::starved_grace`]), and starts anew if it is late as well, [`REARMS_MAX`] times at most.
//! 4. **An idle connection is asked** ([`Act::SendPing`]) before its next user finds out.
//!
//! An in-band `PING` is no help while commands are in flight, for it waits behind the slow one like everybody else.
//! What can tell a busy server from a dead one is a second opinion: a fresh connection ([`SecondOpinion`]). A server that holds
//! back writes because a planned failover is under way (`CLIENT PAUSE`) can be told from a dead connection in this way only:
//! it answers a fresh one, but not a write on it ([`LivenessConfig::held_max`]).
//!
//! The driver reads what is there before it polls, and calls [`Liveness::poll`] at [`Liveness::poll_timeout`].

use std::time::Duration;

use towline_sansio::Instant;

use crate::diagnosis::Blame;
use crate::error::LostCause;

/// How often in a row a late caller may start the confirmation anew. A bound, so that a process which is always
/// late still finds out about a dead peer.
pub const REARMS_MAX: u32 = 4;

/// The choices of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivenessConfig {
    /// Longest silence while something is due. Default 1.75 s: with `confirm` below 2 s in total, and above the
    /// 1.5 s that a server may spend in one command without being taken for dead.
    pub silence_max: Duration,
    /// How long a suspicion waits for the reactor. Default 50 ms, a few turns of a busy one.
    pub confirm: Duration,
    /// Idle time before a `PING`; `None` sends none. Default 5 s: a dead idle connection is known within 7 s, at
    /// 0.2 commands a second.
    pub idle_ping_after: Option<Duration>,
    /// How late a poll may be without a doubt about this process. Default 100 ms, above any timer's slack.
    pub late_max: Duration,
    /// How long a starved process has to catch up before it judges. Default 500 ms.
    pub starved_grace: Duration,
    /// Whether a fresh connection is asked before the verdict. Default: no, it costs a dial.
    pub second_opinion: Option<SecondOpinion>,
    /// Longest silence of a peer that holds back writes and answers everything else, as Redis and Valkey do during a planned
    /// failover and after `CLIENT PAUSE`: for a write, a fresh connection is asked after four sevenths of `silence_max`. Default
    /// 10 s, the longest that a failover pauses writes for. `None`: such a peer is given up as any other, and the writes
    /// that wait there fail although they would have run.
    pub held_max: Option<Duration>,
}

impl LivenessConfig {
    /// The silence of a write after which a fresh connection is asked whether the peer holds it back.
    fn held_ask_after(&self) -> Duration {
        // 1 s by default, which leaves as much time for the answer as a second opinion has.
        self.silence_max / 7 * 4
    }

    /// How long the answer of a fresh connection is of use, from when it was asked for.
    pub fn opinion_time(&self) -> Duration {
        let asked_after =
            self.second_opinion.map_or_else(|| self.held_ask_after(), |second| second.ask_after);
        self.silence_max.saturating_sub(asked_after)
    }
}

impl Default for LivenessConfig {
    fn default() -> Self {
        Self {
            silence_max: Duration::from_millis(1750),
            confirm: Duration::from_millis(50),
            idle_ping_after: Some(Duration::from_secs(5)),
            late_max: Duration::from_millis(100),
            starved_grace: Duration::from_millis(500),
            second_opinion: None,
            held_max: Some(Duration::from_secs(10)),
        }
    }
}

/// When to ask a fresh connection, and how much patience its answer buys. The answer is of use until `silence_max` has
/// passed: the driver reports [`Opinion::Busy`] by then if the connection stands and its `PING` has no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecondOpinion {
    /// Silence after which to ask. Default 1 s; must be less than `silence_max` to be of use.
    pub ask_after: Duration,
    /// Longest silence of a peer that accepts connections and does not answer on them: one that is busy. Default
    /// 10 s.
    pub busy_max: Duration,
}

impl Default for SecondOpinion {
    fn default() -> Self {
        Self { ask_after: Duration::from_secs(1), busy_max: Duration::from_secs(10) }
    }
}

/// What a fresh connection found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opinion {
    /// It was not set up: the peer is gone, or the way to it.
    Unreachable,
    /// It was set up and its `PING` not answered: the peer's kernel lives, its event loop is busy.
    Busy,
    /// Its `PING` was answered: the peer is well, so silence means that this connection is not.
    Answers,
    /// Its `PING` was answered and a write was not: the peer is well and holds back writes.
    Holds,
}

/// What the driver has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Send a `PING` on this connection, as a command like any other.
    SendPing,
    /// Set up a fresh connection, `PING` on it, or write if a write is what waits here, and report to
    /// [`Liveness::on_opinion`].
    AskElsewhere,
    /// Close the connection for this reason. Said once.
    Dead(LostCause),
}

/// The watch over one connection.
#[derive(Debug, Clone)]
pub struct Liveness {
    config: LivenessConfig,
    /// The last time the peer showed a sign of life.
    sign_at: Instant,
    oldest_sent_at: Option<Instant>,
    blocked_since: Option<Instant>,
    pinged_at: Option<Instant>,
    second: Second,
    /// When the suspicion becomes the verdict.
    confirm_at: Option<Instant>,
    rearms: u32,
    is_dead: bool,
}

/// The state of the second opinion, within one silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    NotAsked,
    Asked,
    Given(Opinion),
}

impl Liveness {
    /// A watch over a connection that was set up at `now`.
    pub const fn new(now: Instant, config: LivenessConfig) -> Self {
        Self {
            config,
            sign_at: now,
            oldest_sent_at: None,
            blocked_since: None,
            pinged_at: None,
            second: Second::NotAsked,
            confirm_at: None,
            rearms: 0,
            is_dead: false,
        }
    }

    /// Other choices from now on. A suspicion that the old ones raised is dropped.
    pub fn set_config(&mut self, config: LivenessConfig) {
        self.config = config;
        self.calm();
    }

    /// Bytes were read, one or many, a reply or part of one or a push.
    pub fn on_read(&mut self, now: Instant) {
        self.sign_at = self.sign_at.max(now);
        self.calm();
    }

    /// The kernel took bytes. A sign of life only if it had refused some before.
    pub fn on_write(&mut self, now: Instant) {
        if self.blocked_since.take().is_some() {
            self.on_read(now);
        }
    }

    /// The kernel takes no more bytes although some are waiting.
    pub fn on_write_blocked(&mut self, now: Instant) {
        self.blocked_since.get_or_insert(now);
    }

    /// Tells the send time of the oldest command without a reply; `None` if all are answered. To be called when it
    /// has changed, before `poll`.
    pub fn in_flight(&mut self, oldest_sent_at: Option<Instant>) {
        self.oldest_sent_at = oldest_sent_at;
        if self.silent_from().is_none() {
            self.calm();
        }
    }

    /// What a fresh connection found. Ignored if nobody asked, or the peer has spoken since.
    pub fn on_opinion(&mut self, opinion: Opinion) {
        if self.second == Second::Asked {
            self.second = Second::Given(opinion);
            if matches!(opinion, Opinion::Busy | Opinion::Holds) {
                // The longer patience lifts a suspicion that came before the answer.
                self.confirm_at = None;
            }
        }
    }

    /// What to do now. Call again until it says nothing.
    pub fn poll(&mut self, now: Instant) -> Option<Act> {
        if self.is_dead {
            return None;
        }
        let Some(silent_from) = self.silent_from() else { return self.poll_idle(now) };
        if self.second == Second::Given(Opinion::Unreachable) {
            return self.die();
        }
        if self.ask_at(silent_from).is_some_and(|at| now >= at) {
            self.second = Second::Asked;
            return Some(Act::AskElsewhere);
        }
        let due = self.due(silent_from);
        if now < due {
            return None;
        }
        let is_late = now.since(due) > self.config.late_max;
        if is_late && self.rearms < REARMS_MAX {
            self.rearms += 1;
            self.confirm_at = Some(now + self.config.starved_grace);
            return None;
        }
        if self.confirm_at.is_none() {
            self.confirm_at = Some(now + self.config.confirm);
            return None;
        }
        self.die()
    }

    /// When to poll next; `None` when nothing is going to happen without other events.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_dead {
            return None;
        }
        let Some(silent_from) = self.silent_from() else { return self.idle_ping_at() };
        if self.second == Second::Given(Opinion::Unreachable) {
            return Some(silent_from);
        }
        let due = self.due(silent_from);
        Some(self.ask_at(silent_from).map_or(due, |at| due.min(at)))
    }

    /// How long ago the peer last showed a sign of life.
    pub const fn sign_age(&self, now: Instant) -> Duration {
        now.since(self.sign_at)
    }

    /// Who is to blame, should the oldest command fail now.
    pub fn blame(&self, now: Instant) -> Blame {
        if self.rearms > 0 {
            return Blame::RuntimeStarved;
        }
        let Some(silent_from) = self.silent_from() else { return Blame::Unknown };
        let has_progressed = self.oldest_sent_at.is_some_and(|sent_at| self.sign_at > sent_at);
        match self.second {
            Second::Given(Opinion::Unreachable) => Blame::NetworkSilent,
            Second::Given(Opinion::Busy | Opinion::Holds) => Blame::ServerSlow,
            _ if now.since(silent_from) >= self.config.silence_max => Blame::NetworkSilent,
            _ if has_progressed => Blame::ServerSlow,
            _ => Blame::Unknown,
        }
    }

    /// From when on something was due and nothing came.
    fn silent_from(&self) -> Option<Instant> {
        let due_since = match (self.oldest_sent_at, self.blocked_since) {
            (Some(sent), Some(blocked)) => sent.min(blocked),
            (sent, blocked) => sent.or(blocked)?,
        };
        Some(self.sign_at.max(due_since))
    }

    /// When the silence becomes a suspicion, or the suspicion the verdict.
    fn due(&self, silent_from: Instant) -> Instant {
        self.confirm_at.unwrap_or_else(|| silent_from + self.patience())
    }

    /// The longest silence, given what is known.
    fn patience(&self) -> Duration {
        match (self.config.second_opinion, self.second) {
            (Some(second), Second::Given(Opinion::Busy)) => second.busy_max.max(self.config.silence_max),
            (_, Second::Given(Opinion::Holds)) => {
                self.config.held_max.unwrap_or_default().max(self.config.silence_max)
            }
            _ => self.config.silence_max,
        }
    }

    fn ask_at(&self, silent_from: Instant) -> Option<Instant> {
        if self.second != Second::NotAsked {
            return None;
        }
        let held_after = self.config.held_max.map(|_| self.config.held_ask_after());
        let after = self.config.second_opinion.map(|second| second.ask_after).or(held_after)?;
        Some(silent_from + after)
    }

    fn idle_ping_at(&self) -> Option<Instant> {
        let idle_from = self.sign_at.max(self.pinged_at.unwrap_or(Instant::ZERO));
        self.config.idle_ping_after.map(|pause| idle_from + pause)
    }

    fn poll_idle(&mut self, now: Instant) -> Option<Act> {
        if self.idle_ping_at().is_none_or(|at| now < at) {
            return None;
        }
        self.pinged_at = Some(now);
        Some(Act::SendPing)
    }

    /// The silence is over.
    fn calm(&mut self) {
        self.second = Second::NotAsked;
        self.confirm_at = None;
        self.rearms = 0;
    }

    fn die(&mut self) -> Option<Act> {
        self.is_dead = true;
        Some(Act::Dead(LostCause::Silent))
    }
}

#[cfg(test)]
mod tests;
