//! What happens when, and what must hold.
//!
//! Owns: time, the order of events, clients, and the checks. Does **not** own what goes wrong (`chaos.rs`).

use super::links::Link;
use super::log::Say;
use super::node::Node;
use super::*;

/// Something that happens at an instant.
#[derive(Debug)]
pub(super) enum Event {
    Say {
        from: usize,
        to: usize,
        said: Say,
    },
    Heartbeat {
        node: usize,
        term: u64,
    },
    Apply {
        node: usize,
        life: u32,
    },
    CatchUp {
        node: usize,
        life: u32,
    },
    Timer {
        node: usize,
        life: u32,
    },
    Connect {
        node: usize,
        life: u32,
        id: NodeId,
        attempt: u32,
    },
    Fetch {
        node: usize,
        life: u32,
        id: NodeId,
        attempt: u32,
    },
    Frame {
        link: usize,
        end: usize,
        frame: Frame,
    },
    Lost {
        link: usize,
        end: usize,
    },
    Reset {
        link: usize,
        end: usize,
    },
    Knock {
        link: usize,
    },
    Source {
        node: usize,
        life: u32,
        id: NodeId,
        event: SourceEvent,
    },
    Target {
        node: usize,
        life: u32,
        id: NodeId,
        event: TargetEvent,
    },
    Work {
        node: usize,
        life: u32,
        id: NodeId,
    },
    Drop {
        node: usize,
        life: u32,
    },
    Restart {
        node: usize,
    },
    Heal,
    /// Elections, operators and whatever goes wrong.
    Turn,
}

/// Lines that are told of a history that fails.
const TRACE_MAX: usize = 120;

pub(super) struct World {
    pub(super) rng: Prng,
    pub(super) now: Instant,
    pub(super) bug: Option<Bug>,
    pub(super) config: Config,
    queue: BTreeMap<(Instant, u64), Event>,
    count: u64,
    /// When each node's machines want to hear of time, as far as that is in the queue.
    alarms: [Instant; NODES],
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<Link>,
    /// `[from][to]`
    pub(super) cut: [[bool; NODES]; NODES],
    /// What clients were told is written. `None` once an operator has given it up with its node.
    pub(super) expected: Option<Contents>,
    pub(super) version: u32,
    pub(super) is_calm: bool,
    pub(super) migrations: u8,
    /// A node whose slot an operator is taking away: he keeps it off the network until that is done.
    pub(super) doomed: Option<usize>,
    pub(super) released_at: Option<Instant>,
    pub(super) states: BTreeSet<&'static str>,
    pub(super) served: u64,
    /// What happened last, if it is to be told.
    pub(super) trace: Option<VecDeque<String>>,
    /// The first thing that did not hold.
    pub(super) violation: Option<String>,
}

impl World {
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> Self {
        let config = Config {
            window_bytes: 24,
            chunk_bytes: 3,
            park_bytes_max: 6,
            park_tail_max: Duration::ZERO,
            follow_max: Duration::from_millis(300),
            handover_max: Duration::from_millis(400),
            connect_max: Duration::from_millis(500),
            silence_max: Duration::from_millis(600),
            keepalive_every: Duration::from_millis(150),
            retry_after: Duration::from_millis(100),
            orphan_after: Duration::from_millis(900),
            ..Config::default()
        };
        let contents: Contents = (0..KEYS as u8).map(|key| (key, 1)).collect();
        let mut world = Self {
            rng: Prng::new(seed),
            now: Instant::from_nanos(10_000_000_000),
            bug,
            config,
            queue: BTreeMap::new(),
            count: 0,
            alarms: [Instant::FAR; NODES],
            nodes: (0..NODES).map(Node::new).collect(),
            links: Vec::new(),
            cut: [[false; NODES]; NODES],
            expected: Some(contents.clone()),
            version: 1,
            is_calm: false,
            migrations: 0,
            doomed: None,
            released_at: None,
            states: BTreeSet::new(),
            served: 0,
            trace: None,
            violation: None,
        };
        (world.nodes[0].contents, world.nodes[0].durable) = (contents.clone(), contents);
        let at = Announced::default();
        let mut changes =
            vec![Change::Found { cluster: name(9), node: name(0), shard: name(0), at: at.clone() }];
        for node in 1..NODES {
            let (node, at, slots) = (name(node), at.clone(), vec![]);
            changes.push(Change::Join { node, shard: node, at, slots, config_epoch: 0 });
        }
        changes.push(Change::AddSlots { node: name(0), slots: vec![(SLOT, SLOT)] });
        for node in &mut world.nodes {
            node.log.entries = changes.iter().map(|change| (0, change.clone())).collect();
            node.log.commit = changes.len();
            node.apply();
            node.known = node.metadata.clone();
        }
        world.elect(0);
        world.after(Duration::ZERO, Event::Turn);
        world
    }

    // ---- time -----------------------------------------------------------------------------------------------------

    pub(super) fn after(&mut self, late: Duration, event: Event) {
        self.count += 1;
        self.queue.insert((self.now + late, self.count), event);
    }

    pub(super) fn short(&mut self) -> Duration {
        Duration::from_micros(200 + self.rng.below(5000))
    }

    /// Lets so much time pass.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), event) = entry.remove_entry();
            self.now = at;
            self.note(|_| format!("{event:?}"));
            self.happen(event);
            self.clients();
            if self.violation.is_some() {
                return;
            }
        }
        self.now = end;
    }

    pub(super) fn note(&mut self, what: impl FnOnce(&Self) -> String) {
        if let Some(mut trace) = self.trace.take() {
            let text = what(self);
            if !text.starts_with("Turn") && !text.starts_with("Heartbeat") && !text.starts_with("Say") {
                if trace.len() >= TRACE_MAX {
                    trace.pop_front();
                }
                trace.push_back(format!("{:?}: {text}", self.now));
            }
            self.trace = Some(trace);
        }
    }

    fn is_of(&self, node: usize, life: u32) -> bool {
        self.nodes[node].is_up && self.nodes[node].life == life
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Say { from, to, said } => self.hear(from, to, said),
            Event::Heartbeat { node, term } => self.heartbeat(node, term),
            Event::Apply { node, life } if self.is_of(node, life) => {
                self.nodes[node].is_fresh(self.now, self.bug);
                if self.nodes[node].apply() {
                    self.follow(node);
                }
            }
            Event::CatchUp { node, life } if self.is_of(node, life) => self.catch_up(node),
            Event::Timer { node, life } if self.is_of(node, life) => self.time_passed(node),
            Event::Connect { node, life, id, attempt } if self.is_of(node, life) => {
                self.connect(node, id, attempt);
            }
            Event::Fetch { node, life, id, attempt } if self.is_of(node, life) => {
                self.fetch(node, id, attempt);
            }
            Event::Frame { link, end, frame } => self.frame_arrives(link, end, frame),
            Event::Lost { link, end } => self.lost(link, end),
            Event::Reset { link, end } => self.reset(link, end),
            Event::Knock { link } => self.knock(link),
            Event::Source { node, life, id, event } if self.is_of(node, life) => {
                self.tell_source(node, id, event);
            }
            Event::Target { node, life, id, event } if self.is_of(node, life) => {
                self.tell_target(node, id, event);
            }
            Event::Work { node, life, id } if self.is_of(node, life) => self.work(node, id),
            Event::Drop { node, life } if self.is_of(node, life) => self.drop_slot(node),
            Event::Restart { node } => self.restart(node),
            Event::Heal => self.heal_network(),
            Event::Turn => {
                self.turn();
                let late = Duration::from_millis(20 + self.rng.below(40));
                self.after(late, Event::Turn);
            }
            // Of a process that is gone.
            Event::Apply { .. }
            | Event::CatchUp { .. }
            | Event::Timer { .. }
            | Event::Connect { .. }
            | Event::Fetch { .. }
            | Event::Source { .. }
            | Event::Target { .. }
            | Event::Work { .. }
            | Event::Drop { .. } => {}
        }
    }

    fn time_passed(&mut self, node: usize) {
        let now = self.now;
        self.alarms[node] = Instant::FAR;
        if let Some((_, machine)) = &mut self.nodes[node].source {
            machine.handle_timeout(now);
            self.run_source(node);
        }
        if let Some((_, machine)) = &mut self.nodes[node].target {
            machine.handle_timeout(now);
            self.run_target(node);
        }
        self.wake(node);
    }

    /// The node's machines hear of time when they want to.
    pub(super) fn wake(&mut self, node: usize) {
        let one = &self.nodes[node];
        let of_source = one.source.as_ref().and_then(|(_, machine)| machine.poll_timeout());
        let of_target = one.target.as_ref().and_then(|(_, machine)| machine.poll_timeout());
        let Some(at) = of_source.into_iter().chain(of_target).min() else { return };
        let at = at.max(self.now);
        if at < self.alarms[node] {
            self.alarms[node] = at;
            self.after(at.since(self.now), Event::Timer { node, life: self.nodes[node].life });
        }
    }

    pub(super) fn forget_alarm(&mut self, node: usize) {
        self.alarms[node] = Instant::FAR;
    }

    // ---- the log --------------------------------------------------------------------------------------------------

    pub(super) fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cut[one][other] || self.cut[other][one]
    }

    pub(super) fn say_after(&mut self, late: Duration, from: usize, to: usize, said: Say) {
        if !self.cut[from][to] {
            self.after(late, Event::Say { from, to, said });
        }
    }

    fn say(&mut self, from: usize, to: usize, said: Say) {
        let is_lost = !self.is_calm && self.rng.below(50) == 0;
        let late = match self.rng.below(10) {
            0 => Duration::from_nanos(self.rng.below(log::LATE_MAX.as_nanos() as u64)),
            _ => self.short(),
        };
        if !is_lost {
            self.say_after(late, from, to, said);
        }
    }

    pub(super) fn hear(&mut self, from: usize, to: usize, said: Say) {
        if !self.nodes[to].is_up || self.cut[from][to] {
            return;
        }
        let (now, bug) = (self.now, self.bug);
        let one = &mut self.nodes[to];
        let was_fresh = one.is_fresh(now, bug);
        let is_proposal = matches!(said, Say::Propose(_));
        let before = one.log.commit;
        if let Some(answer) = one.log.hear(now, from, said) {
            self.say(to, from, answer);
        }
        if is_proposal {
            self.append_to_all(to);
        }
        let one = &mut self.nodes[to];
        if one.log.commit > before {
            let life = one.life;
            let late = self.short();
            self.after(late, Event::Apply { node: to, life });
            self.append_to_all(to);
        } else if !was_fresh && one.is_fresh(now, bug) {
            self.follow(to);
        }
    }

    pub(super) fn append_to_all(&mut self, node: usize) {
        for to in (0..NODES).filter(|&to| to != node) {
            if let Some(said) = self.nodes[node].log.append_to(to, self.now) {
                self.say(node, to, said);
            }
        }
    }

    fn heartbeat(&mut self, node: usize, term: u64) {
        let one = &self.nodes[node];
        if one.is_up && one.log.term == term && one.log.leading.is_some() {
            self.append_to_all(node);
            self.after(log::HEARTBEAT, Event::Heartbeat { node, term });
        }
    }

    /// The node asks all that it reaches for their votes.
    pub(super) fn elect(&mut self, node: usize) {
        let voters: Vec<usize> =
            (0..NODES).filter(|&voter| self.nodes[voter].is_up && !self.is_cut(node, voter)).collect();
        let term = voters.iter().map(|&voter| self.nodes[voter].log.term).max().unwrap_or(0) + 1;
        let last = self.nodes[node].log.last();
        let votes: Vec<usize> =
            voters.into_iter().filter(|&voter| self.nodes[voter].log.last() <= last).collect();
        if votes.len() <= NODES / 2 {
            return;
        }
        for voter in votes {
            self.nodes[voter].is_fresh(self.now, self.bug);
            self.nodes[voter].log.follow(term);
        }
        self.nodes[node].log.lead(self.now);
        self.heartbeat(node, term);
    }

    // ---- clients --------------------------------------------------------------------------------------------------

    /// At this instant a client asks all nodes, and writes where it may.
    fn clients(&mut self) {
        let (now, bug) = (self.now, self.bug);
        let serving: Vec<usize> = (0..NODES)
            .filter(|&node| self.nodes[node].is_up && self.nodes[node].verdict(now, bug) == Verdict::Serve)
            .collect();
        self.require(serving.len() < 2, || format!("nodes {serving:?} serve the same slot"));
        let Some(&node) = serving.first() else { return };
        self.served += 1;
        let contents = self.nodes[node].contents.clone();
        let expected = self.expected.clone().unwrap_or_else(|| contents.clone());
        self.require(contents == expected, || {
            format!("node {node} serves {contents:?}, and {expected:?} is what was written")
        });
        if self.rng.below(3) > 0 {
            return;
        }
        let key = self.rng.below(KEYS) as u8;
        let is_gone = self.rng.below(4) == 0;
        self.version += 1;
        let version = if is_gone { 0 } else { self.version };
        let set = |contents: &mut Contents| match version {
            0 => _ = contents.remove(&key),
            version => _ = contents.insert(key, version),
        };
        let one = &mut self.nodes[node];
        set(&mut one.contents);
        // Acknowledged when it is durable.
        one.durable = one.contents.clone();
        self.expected.as_mut().map(set);
        self.note_write(node, key, version);
    }

    /// The faults are over: all that is under way comes to its end. Checks what is left.
    pub(super) fn heal(&mut self) {
        self.is_calm = true;
        self.heal_network();
        self.run(Duration::from_secs(1));
        for _ in 0..40 {
            self.run(Duration::from_millis(500));
            if self.is_quiet() {
                break;
            }
        }
        let (now, bug, is_quiet) = (self.now, self.bug, self.is_quiet());
        self.require(is_quiet, || "it does not come to an end".into());
        let owner = (0..NODES).find(|&node| self.nodes[node].owns(&self.nodes[node].metadata));
        let verdict = owner.map(|owner| self.nodes[owner].verdict(now, bug));
        self.require(verdict == Some(Verdict::Serve), || format!("nobody serves: {owner:?} {verdict:?}"));
        for node in (0..NODES).filter(|&node| Some(node) != owner) {
            let one = &self.nodes[node];
            let is_clean = one.contents.is_empty() && !one.is_parked && !one.is_hidden;
            let is_known = self.expected.is_some();
            self.require(is_clean || !is_known, || format!("node {node} is not rid of what it had"));
        }
    }

    fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(format!("at {:?}: {}", self.now, what()));
        }
    }

    fn is_quiet(&self) -> bool {
        let commit = self.nodes.iter().map(|node| node.log.entries.len()).max().unwrap_or(0);
        let is_idle = |node: &Node| {
            node.is_up
                && node.applied == commit
                && node.source.is_none()
                && node.target.is_none()
                && node.waiting.is_empty()
                && node.work.is_empty()
        };
        self.nodes.iter().all(is_idle)
            && !self.queue.values().any(|event| matches!(event, Event::Drop { .. }))
    }
}
