//! A set of rules at work: connection numbers, random choices, and what happens to each dial.
//!
//! Owns the seed, the numbers of connections, and the rules' remaining counts. Does not own what faults do to bytes
//! (see [`crate::link`]).
//!
//! ```
//! use towline_faults::link::Action;
//! use towline_faults::plan::{Dialed, Plan};
//! use towline_faults::rule::Direction::ClientToServer;
//! use towline_sansio::Instant;
//!
//! let now = Instant::ZERO;
//! let mut plan = Plan::new(now, 7, vec!["cut@c2s:4".parse().expect("a rule")]).expect("few rules");
//! let Dialed::Open(mut link) = plan.dial(now).outcome else { panic!("no rule is for dials") };
//! link.push(now, ClientToServer, b"PING\r\n");
//! let actions: Vec<Action> = std::iter::from_fn(|| link.poll(now)).collect();
//! assert_eq!(actions.len(), 3); // four bytes, the fault, the close
//! assert!(link.is_over());
//! ```

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use towline_sansio::{Instant, Prng};

use crate::link::{Armed, BUFFER_BYTES_MAX, Link, When, take_one};
use crate::rule::{DialFault, Direction, Garbage, Rule, Scope, StreamFault, StreamRule, Trigger, Way};

/// The most rules of one plan: 1,000, more than anybody writes, and few enough to look at all for each connection.
pub const RULES_MAX: usize = 1000;

/// More than [`RULES_MAX`] rules; the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} rules; at most {RULES_MAX} are possible")]
pub struct TooManyRules {
    /// How many were given.
    pub count: usize,
}

/// One rule and how often it may still happen.
#[derive(Clone, Debug)]
struct Counted {
    rule: Rule,
    left: Option<Arc<AtomicU64>>,
}

/// What happened to a dial.
#[derive(Debug)]
pub struct Dial {
    /// The connection's number, from 1. Refused dials count.
    pub connection: u64,
    /// The rule that decided, from 0.
    pub rule: Option<usize>,
    /// What comes of it.
    pub outcome: Dialed,
}

/// What comes of a dial.
#[derive(Debug)]
pub enum Dialed {
    /// A connection, with the faults that wait for it.
    Open(Box<Link>),
    /// None, or one with a fault of its own.
    Faulty(DialFault),
}

/// Rules at work. Everything random follows from the seed, the rule's place and the connection's number.
#[derive(Debug)]
pub struct Plan {
    start: Instant,
    seed: u64,
    rules: Vec<Counted>,
    connection_count: u64,
    buffer_bytes_max: usize,
}

impl Plan {
    /// A plan that begins at `start`.
    ///
    /// # Errors
    /// [`TooManyRules`].
    pub fn new(start: Instant, seed: u64, rules: Vec<Rule>) -> Result<Self, TooManyRules> {
        let mut plan =
            Self { start, seed, rules: Vec::new(), connection_count: 0, buffer_bytes_max: BUFFER_BYTES_MAX };
        plan.set_rules(rules)?;
        Ok(plan)
    }

    /// Bounds the bytes that wait in each direction of connections to come; default [`BUFFER_BYTES_MAX`], at least 1.
    pub fn set_buffer_bytes_max(&mut self, bytes: usize) {
        self.buffer_bytes_max = bytes.max(1);
    }

    /// Replaces the rules, with fresh counts. Connections that are open keep the faults that wait for them; numbers go on.
    ///
    /// # Errors
    /// [`TooManyRules`]; the old rules stay.
    pub fn set_rules(&mut self, rules: Vec<Rule>) -> Result<(), TooManyRules> {
        if rules.len() > RULES_MAX {
            return Err(TooManyRules { count: rules.len() });
        }
        let counted = |rule: Rule| {
            let count = match &rule {
                Rule::Stream(StreamRule { scope, .. }) => scope.count,
                Rule::Dial(rule) => rule.scope.count,
                Rule::Dns(_) => None,
            };
            Counted { rule, left: count.map(|count| Arc::new(AtomicU64::new(count))) }
        };
        self.rules = rules.into_iter().map(counted).collect();
        Ok(())
    }

    /// The rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|counted| &counted.rule)
    }

    /// How many dials there were.
    pub fn connection_count(&self) -> u64 {
        self.connection_count
    }

    /// Somebody dials: the next connection. Of several rules for dials, the first that applies decides.
    pub fn dial(&mut self, now: Instant) -> Dial {
        self.connection_count += 1;
        let connection = self.connection_count;
        for (index, counted) in self.rules.iter().enumerate() {
            let Rule::Dial(rule) = &counted.rule else { continue };
            let mut prng = self.prng(index, connection);
            if self.applies(&rule.scope, now, connection, &mut prng) && take_one(counted.left.as_ref()) {
                return Dial { connection, rule: Some(index), outcome: Dialed::Faulty(rule.fault) };
            }
        }
        let armed = self.arm_all(now, connection, now);
        let link = Link::new(connection, now, armed, self.buffer_bytes_max);
        Dial { connection, rule: None, outcome: Dialed::Open(Box::new(link)) }
    }

    /// Puts the rules of now in place of those that an open connection has: what it suffers ends, a stall or a half-open state
    /// included, and places count from here on. Rules for dials do not concern it.
    pub fn rearm(&self, now: Instant, link: &mut Link) {
        let armed = self.arm_all(link.opened(), link.connection(), now);
        link.rearm(armed);
    }

    /// The streams' faults of a connection, with their random choices made.
    fn arm_all(&self, opened: Instant, connection: u64, now: Instant) -> Vec<Armed> {
        let mut all = Vec::new();
        for (index, counted) in self.rules.iter().enumerate() {
            let Rule::Stream(rule) = &counted.rule else { continue };
            let mut prng = self.prng(index, connection);
            if !self.applies(&rule.scope, opened, connection, &mut prng) {
                continue;
            }
            // Always drawn, so that other choices do not depend on it.
            let drawn = Direction::BOTH[usize::from(prng.below(2) == 1)];
            let directions = match rule.way {
                Way::Drawn => [Some(drawn), None],
                Way::One(direction) => [Some(direction), None],
                Way::Both => Direction::BOTH.map(Some),
            };
            for direction in directions.into_iter().flatten() {
                all.push(arm(index, rule, direction, counted.left.clone(), now, &mut prng));
            }
        }
        all
    }

    /// The addresses of a name at `now`: none if it does not exist then; `None` if no rule is about it.
    pub fn resolve(&self, now: Instant, name: &str) -> Option<&[IpAddr]> {
        let since_start = now.since(self.start);
        let answers = self.rules().find_map(|rule| match rule {
            Rule::Dns(rule) if rule.name == name => Some(&rule.answers),
            _ => None,
        })?;
        let current = answers.iter().rev().find(|(since, _)| *since <= since_start);
        Some(current.map_or(&[], |(_, addresses)| addresses))
    }

    /// The random choices of one rule for one connection.
    fn prng(&self, rule: usize, connection: u64) -> Prng {
        // Odd multipliers keep different pairs apart; one step mixes them.
        let pair = (rule as u64).wrapping_mul(0xd6e8_feb8_6659_fd93)
            ^ connection.wrapping_mul(0xa076_1d64_78bd_642f);
        let mixed = Prng::new(pair).next_u64();
        Prng::new(self.seed ^ mixed)
    }

    fn applies(&self, scope: &Scope, now: Instant, connection: u64, prng: &mut Prng) -> bool {
        let since_start = now.since(self.start);
        // Always drawn, so that other choices do not depend on the share.
        let draw = prng.below(100);
        connection >= scope.nth_first
            && scope.nth_last.is_none_or(|last| connection <= last)
            && since_start >= scope.from
            && scope.until.is_none_or(|until| since_start < until)
            && draw < u64::from(scope.chance_percent)
    }
}

/// Makes the random choices of a rule.
fn arm(
    index: usize,
    rule: &StreamRule,
    direction: Direction,
    left: Option<Arc<AtomicU64>>,
    now: Instant,
    prng: &mut Prng,
) -> Armed {
    let when = match rule.trigger {
        Trigger::Offset(offset) => When::Offset(offset),
        Trigger::After(time) => When::At(now + time),
        Trigger::Random { first, last } => {
            let span = last.saturating_sub(first).saturating_add(1);
            When::Offset(first.saturating_add(prng.below(span)))
        }
        Trigger::Mean(mean) => When::Offset(exponential(mean, prng)),
    };
    let garbage = match &rule.fault {
        StreamFault::Garbage(Garbage::Exact(bytes)) => bytes.clone(),
        StreamFault::Garbage(Garbage::Random(length)) => random_bytes(*length, prng),
        _ => Bytes::new(),
    };
    let seed = prng.next_u64();
    Armed { rule: index, direction, when, fault: rule.fault.clone(), garbage, seed, left }
}

/// A whole number from the exponential distribution: how many bytes pass until one is hit, if each is hit with the same chance.
#[expect(clippy::cast_possible_truncation, reason = "a float that is too large becomes the largest number")]
fn exponential(mean: u64, prng: &mut Prng) -> u64 {
    // 53 bits are all that a float has; one more than drawn, so that it is never zero.
    let share = ((prng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-share.ln() * mean as f64) as u64
}

fn random_bytes(length: u32, prng: &mut Prng) -> Bytes {
    (0..length).map(|_| prng.next_u64().to_le_bytes()[0]).collect::<Vec<u8>>().into()
}
