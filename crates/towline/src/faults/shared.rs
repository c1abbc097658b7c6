//! What all connections of a proxy and its control port share.
//!
//! Owns the plan of rules, the registry of open connections, and the counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant as Clock;
use towline_faults::link::{Close, Fired, Link};
use towline_faults::plan::{Dial, Plan, TooManyRules};
use towline_faults::rule::{Direction, Rule};
use towline_sansio::Instant;

use super::options::Upstream;
use super::report::{Event, Report, ms};
use super::script::{How, Script};

/// The plan, and its rules as texts.
#[derive(Debug)]
struct Rules {
    plan: Plan,
    texts: Arc<[String]>,
}

/// A dial's outcome, and the texts of the rules that it came from.
#[derive(Debug)]
pub(super) struct Dialed {
    pub(super) dial: Dial,
    pub(super) texts: Arc<[String]>,
    /// Says when other rules are in force for open connections too.
    pub(super) rearmed: watch::Receiver<()>,
}

/// Which connections get other rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those to come.
    New,
    /// Those to come and those that are open: as if the network itself changed.
    OpenToo,
}

/// Counters, as `/stats` shows them.
#[derive(Debug, Serialize)]
pub(super) struct Snapshot {
    /// Dials so far, those that failed by a rule included.
    connections: u64,
    /// Connections that are open now.
    open: usize,
    /// Bytes that were delivered to the server.
    c2s_bytes: u64,
    /// Bytes that were delivered to clients.
    s2c_bytes: u64,
    /// Faults that happened, by name.
    faults: BTreeMap<&'static str, u64>,
    /// Dials of the upstream that failed.
    unreachable: u64,
    /// Lines of output that nobody read in time.
    lines_dropped: u64,
}

/// What is shared.
#[derive(Debug)]
pub(super) struct Shared {
    start: Clock,
    pub(super) seed: u64,
    pub(super) upstream: Upstream,
    pub(super) report: Report,
    rules: Mutex<Rules>,
    rearmed: watch::Sender<()>,
    script: watch::Sender<Script>,
    open: Mutex<BTreeMap<u64, mpsc::Sender<Close>>>,
    faults: Mutex<BTreeMap<&'static str, u64>>,
    c2s_bytes: AtomicU64,
    s2c_bytes: AtomicU64,
    unreachable: AtomicU64,
}

/// A panic elsewhere leaves nothing half done here: each critical section is one step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn texts(rules: &[Rule]) -> Arc<[String]> {
    rules.iter().map(ToString::to_string).collect()
}

impl Shared {
    pub(super) fn new(
        seed: u64,
        upstream: Upstream,
        rules: Vec<Rule>,
        script: Script,
        report: Report,
    ) -> Result<Self, TooManyRules> {
        let texts = texts(&rules);
        let plan = Plan::new(Instant::ZERO, seed, rules)?;
        Ok(Self {
            start: Clock::now(),
            seed,
            upstream,
            report,
            rules: Mutex::new(Rules { plan, texts }),
            rearmed: watch::Sender::new(()),
            script: watch::Sender::new(script),
            open: Mutex::default(),
            faults: Mutex::default(),
            c2s_bytes: AtomicU64::new(0),
            s2c_bytes: AtomicU64::new(0),
            unreachable: AtomicU64::new(0),
        })
    }

    /// The time as the pure parts know it: since the proxy's start.
    pub(super) fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    /// An instant as the runtime knows it.
    pub(super) fn clock(&self, at: Instant) -> Clock {
        self.start + at.since(Instant::ZERO)
    }

    /// Milliseconds since the start.
    pub(super) fn at_ms(&self) -> f64 {
        ms(self.start.elapsed())
    }

    /// Somebody dials.
    pub(super) fn dial(&self) -> Dialed {
        let now = self.now();
        let mut rules = locked(&self.rules);
        // Subscribed under the lock: a change after this reaches the connection, one before is in its rules.
        let rearmed = self.rearmed.subscribe();
        Dialed { dial: rules.plan.dial(now), texts: Arc::clone(&rules.texts), rearmed }
    }

    /// Where the upstream is by a rule about its name; `None` without such a rule.
    pub(super) fn moved_upstream(&self) -> Option<Vec<std::net::IpAddr>> {
        locked(&self.rules).plan.resolve(self.now(), &self.upstream.host).map(<[_]>::to_vec)
    }

    /// The rules as texts.
    pub(super) fn rule_texts(&self) -> Arc<[String]> {
        Arc::clone(&locked(&self.rules).texts)
    }

    /// Replaces the rules.
    pub(super) fn set_rules(&self, new: Vec<Rule>, reach: Reach) -> Result<(), TooManyRules> {
        let texts = texts(&new);
        {
            let mut rules = locked(&self.rules);
            rules.plan.set_rules(new)?;
            rules.texts = Arc::clone(&texts);
            if reach == Reach::OpenToo {
                self.rearmed.send_replace(());
            }
        }
        let is_for_open = reach == Reach::OpenToo;
        self.report.line(&Event::Rules { at_ms: self.at_ms(), rules: &texts, open: is_for_open });
        Ok(())
    }

    /// Gives an open connection the rules of now; their texts.
    pub(super) fn rearm(&self, link: &mut Link) -> Arc<[String]> {
        let now = self.now();
        let rules = locked(&self.rules);
        rules.plan.rearm(now, link);
        Arc::clone(&rules.texts)
    }

    /// The script in force.
    pub(super) fn script(&self) -> Script {
        self.script.borrow().clone()
    }

    /// To follow the script in force with.
    pub(super) fn scripts(&self) -> watch::Receiver<Script> {
        self.script.subscribe()
    }

    /// Starts another script in place of the one in force.
    pub(super) fn set_script(&self, script: Script) {
        self.script.send_replace(script);
    }

    /// Enters a connection; it is told of a cut until what is returned is dropped.
    pub(super) fn register(self: &Arc<Self>, connection: u64, rearmed: watch::Receiver<()>) -> Registered {
        // One cut is enough to end a connection.
        let (sender, cut) = mpsc::channel(1);
        locked(&self.open).insert(connection, sender);
        Registered { shared: Arc::clone(self), connection, cut, rearmed }
    }

    /// Cuts one connection, or all; how many.
    pub(super) fn cut(&self, connection: Option<u64>, how: How) -> usize {
        let connections = {
            let open = locked(&self.open);
            let chosen = open.iter().filter(|(number, _)| connection.is_none_or(|wanted| wanted == **number));
            chosen.filter(|(_, cut)| cut.try_send(how.close()).is_ok()).count()
        };
        self.report.line(&Event::Cut { at_ms: self.at_ms(), connections, how: how.name() });
        connections
    }

    /// A stream's fault happened.
    pub(super) fn fired(&self, fired: &Fired, texts: &[String]) {
        let name = fired.fault.name();
        *locked(&self.faults).entry(name).or_default() += 1;
        self.report.line(&Event::Fault {
            at_ms: ms(fired.at.since(Instant::ZERO)),
            connection: fired.connection,
            fault: name,
            direction: Some(fired.direction.name()),
            offset: Some(fired.offset),
            rule: texts.get(fired.rule).map_or("", String::as_str),
        });
    }

    /// A dial's fault happened.
    pub(super) fn dial_failed(&self, connection: u64, fault: &'static str, rule: &str) {
        *locked(&self.faults).entry(fault).or_default() += 1;
        let at_ms = self.at_ms();
        self.report.line(&Event::Fault { at_ms, connection, fault, direction: None, offset: None, rule });
    }

    /// The upstream could not be reached.
    pub(super) fn unreachable(&self, connection: u64, error: String) {
        self.unreachable.fetch_add(1, Ordering::Relaxed);
        self.report.line(&Event::Unreachable { at_ms: self.at_ms(), connection, error });
    }

    /// Bytes were delivered.
    pub(super) fn delivered(&self, direction: Direction, bytes: usize) {
        let counter = match direction {
            Direction::ClientToServer => &self.c2s_bytes,
            Direction::ServerToClient => &self.s2c_bytes,
        };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// All counters.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            connections: locked(&self.rules).plan.connection_count(),
            open: locked(&self.open).len(),
            c2s_bytes: self.c2s_bytes.load(Ordering::Relaxed),
            s2c_bytes: self.s2c_bytes.load(Ordering::Relaxed),
            faults: locked(&self.faults).clone(),
            unreachable: self.unreachable.load(Ordering::Relaxed),
            lines_dropped: self.report.dropped(),
        }
    }
}

/// A connection in the registry.
#[derive(Debug)]
pub(super) struct Registered {
    shared: Arc<Shared>,
    connection: u64,
    cut: mpsc::Receiver<Close>,
    rearmed: watch::Receiver<()>,
}

/// What a connection is told from outside.
#[derive(Debug)]
pub(super) enum Told {
    /// To close.
    Cut(Close),
    /// That other rules are in force for it.
    Rearm,
}

impl Registered {
    /// Waits for word from outside. Cancel safe.
    pub(super) async fn told(&mut self) -> Told {
        // The registry holds one sender as long as this value lives, and what is shared the other: both always come or wait.
        tokio::select! {
            Some(how) = self.cut.recv() => Told::Cut(how),
            Ok(()) = self.rearmed.changed() => Told::Rearm,
            else => std::future::pending().await,
        }
    }

    /// Waits until the connection is to be cut. Cancel safe.
    pub(super) async fn cut(&mut self) -> Close {
        loop {
            if let Told::Cut(how) = self.told().await {
                return how;
            }
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        locked(&self.shared.open).remove(&self.connection);
    }
}
