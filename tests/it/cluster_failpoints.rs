//! Nodes that are killed at every step of a slot's move, and what is left of it.
//!
//! One of three nodes is held at a place (see `failpoint` in the server), one of them is killed while it is, started again, and the move comes to
//! its end, whichever. Then one node owns the slots and has all keys, the other has none, and the same command moves them.

use e2e::clusters::{Member, key_in};
use e2e::conn::Conn;
use e2e::counters::Counters;
use e2e::process::towline_binary;
use e2e::towline_cluster::TowlineCluster;
use e2e::value::Value;
use e2e::wait;
use std::process::{Command, Stdio};
use std::thread;

/// Each node writes its log before it answers.
const FLAGS: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];
/// What moves, and how many keys are in it.
const SLOTS: std::ops::Range<u16> = 0..40;
const KEYS: usize = 120;

/// A node, by what it does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Target,
    /// Who leads the log; one of the others, or the third.
    Leader,
}
use Role::{Leader, Source, Target};

/// What is asked for, and where somebody is held meanwhile.
#[derive(Debug, Clone, Copy)]
struct Case {
    at: (Role, &'static str),
    /// The migration is cancelled, once the target has begun to take the slots in.
    is_cancelled: bool,
    victim: Role,
}

/// Every step on the way to a hand-over.
const STEPS: [(Role, &str); 36] = [
    (Source, "ask-begin"),
    (Leader, "append-begin"),
    (Source, "apply-begin"),
    (Target, "applied-begin"),
    (Source, "source-dial"),
    (Source, "source-hello"),
    (Target, "target-welcome"),
    (Target, "target-begin"),
    (Source, "source-open"),
    (Source, "source-fetch"),
    (Source, "source-batch"),
    (Target, "target-apply"),
    (Target, "target-ack"),
    (Source, "source-tail"),
    (Target, "target-apply-tail"),
    (Source, "source-park"),
    (Source, "source-parked"),
    (Source, "source-final"),
    (Target, "target-sync"),
    (Target, "target-ready"),
    (Source, "source-commit"),
    (Source, "ask-commit"),
    (Leader, "append-commit"),
    (Source, "append-commit"),
    (Target, "append-commit"),
    (Leader, "apply-commit"),
    (Source, "apply-commit"),
    (Target, "applied-commit"),
    (Source, "decided"),
    (Target, "decided"),
    (Source, "source-unpark"),
    (Source, "source-drop"),
    (Source, "source-dropped"),
    (Target, "target-finish"),
    (Target, "target-served"),
    (Target, "target-finished"),
];

/// Every step on the way back.
const STEPS_BACK: [(Role, &str); 8] = [
    (Source, "ask-end"),
    (Leader, "append-end"),
    (Source, "apply-end"),
    (Target, "applied-end"),
    (Source, "source-close"),
    (Target, "decided"),
    (Target, "target-abandon"),
    (Target, "target-abandoned"),
];

fn ask(conn: &mut Conn, command: &str) -> String {
    match conn.words(command) {
        Ok(Value::Error(text)) => format!("-{}", String::from_utf8_lossy(&text)),
        Ok(Value::Int(number)) => number.to_string(),
        Ok(other) => String::from_utf8_lossy(other.bytes().unwrap_or_default()).into_owned(),
        Err(error) => format!("-{error}"),
    }
}

/// A cluster under load.
struct Stage {
    cluster: TowlineCluster,
    counters: Counters,
    keys: Vec<String>,
    ids: Vec<String>,
}

impl Stage {
    fn start() -> Self {
        let cluster = TowlineCluster::start(3, FLAGS).unwrap();
        let slots: Vec<u16> = SLOTS.collect();
        let keys: Vec<String> = (0..KEYS).map(|n| key_in(slots[n % slots.len()], &format!("k{n}"))).collect();
        let mut first = cluster.connect(0).unwrap();
        for key in &keys {
            assert_eq!(ask(&mut first, &format!("SET {key} of-{key}")), "OK");
        }
        let counted = (0..6).map(|n| key_in(slots[n * 6], "n")).collect();
        let counters = Counters::start(cluster.ports(), counted);
        let ids = (0..3).map(|node| cluster.id(node).unwrap()).collect();
        Self { cluster, counters, keys, ids }
    }

    fn conn(&self, node: usize) -> Conn {
        self.cluster.connect(node).unwrap()
    }

    fn owner(&self) -> usize {
        let owns =
            |member: &Member| member.slots.iter().any(|&(first, last)| (first..=last).contains(&SLOTS.start));
        let owner = self.cluster.members(2).unwrap().into_iter().find(owns).expect("somebody owns the slots");
        self.ids.iter().position(|id| *id == owner.id).unwrap()
    }

    fn leader(&self) -> usize {
        let named = |node: usize| {
            let info = ask(&mut self.conn(node), "CLUSTER INFO");
            let line =
                info.lines().find_map(|line| line.strip_prefix("cluster_leader:")).unwrap_or("").to_owned();
            self.ids.iter().position(|id| id == line.trim())
        };
        wait::until_some(wait::PATIENCE, || (0..3).find_map(named)).expect("nobody leads")
    }

    fn migrate(&self, target: usize) -> String {
        let last = SLOTS.end - 1;
        format!("CLUSTER MIGRATESLOTS SLOTSRANGE {} {last} NODE {}", SLOTS.start, self.ids[target])
    }

    /// Waits until no node knows a migration that is under way, and the cluster is whole and of one mind.
    #[track_caller]
    fn settle(&self, case: &str) {
        self.cluster.wait_until_whole(3).unwrap();
        let is_over = |node: usize| {
            let Ok(Value::Array(all)) = self.conn(node).words("CLUSTER GETSLOTMIGRATIONS") else {
                return false;
            };
            let text =
                |value: &Value| String::from_utf8_lossy(value.bytes().unwrap_or_default()).into_owned();
            all.iter().all(|one| {
                let Value::Array(fields) = one else { return false };
                let at = fields.iter().position(|field| text(field) == "state").expect("a state");
                ["success", "failed", "cancelled"].contains(&text(&fields[at + 1]).as_str())
            })
        };
        let views = || {
            (0..3).map(|node| {
                let mut members: Vec<_> = self
                    .cluster
                    .members(node)
                    .unwrap()
                    .into_iter()
                    .map(|member| (member.id, member.slots))
                    .collect();
                members.sort();
                members
            })
        };
        let agree = || views().zip(views().skip(1)).all(|(one, other)| one == other);
        let is_settled = wait::until(|| (0..3).all(is_over) && agree());
        assert!(is_settled, "{case}: it does not come to an end\n{}", self.logs());
    }

    fn logs(&self) -> String {
        let log = |node: usize| format!("--- node {node}\n{}", self.cluster.servers()[node].log());
        (0..3).map(log).collect()
    }

    /// Whether each key has its value at the one node that serves it, and is nowhere else.
    #[track_caller]
    fn check(&self, case: &str) {
        let mut nodes: Vec<Conn> = (0..3).map(|node| self.conn(node)).collect();
        for key in &self.keys {
            let found: Vec<String> = nodes.iter_mut().map(|node| ask(node, &format!("GET {key}"))).collect();
            let served: Vec<&String> = found.iter().filter(|reply| !reply.starts_with("-MOVED")).collect();
            assert_eq!(served, [&format!("of-{key}")], "{case}: {key}: {found:?}\n{}", self.logs());
        }
        let total = self.keys.len() + 6;
        let mut sizes = || -> Vec<usize> {
            nodes.iter_mut().map(|node| ask(node, "DBSIZE").parse().unwrap_or(usize::MAX / 8)).collect()
        };
        let is_whole = wait::until(|| sizes().iter().sum::<usize>() == total);
        assert!(is_whole, "{case}: {total} keys are {:?}\n{}", sizes(), self.logs());
    }

    fn kill_at(&mut self, case: Case) {
        let name = format!("{case:?}");
        let source = self.owner();
        let target = 1 - source;
        let role = |role, leader| match role {
            Source => source,
            Target => target,
            Leader => leader,
        };
        let leader = self.leader();
        let ((at, place), victim) = ((role(case.at.0, leader), case.at.1), role(case.victim, leader));
        let servers = self.cluster.servers();
        if case.is_cancelled {
            servers[target].hold_at("target-apply").unwrap();
        } else {
            servers[at].hold_at(place).unwrap();
        }
        // Whoever is held may not answer.
        let (mut conn, command) = (self.conn(source), self.migrate(target));
        conn.send(&command.split(' ').collect::<Vec<_>>()).unwrap();
        let mut canceller = self.conn(source);
        if case.is_cancelled {
            assert!(wait::until(|| servers[target].is_held_at("target-apply")), "{name}: nothing comes");
            servers[at].hold_at(place).unwrap();
            canceller.send(&["CLUSTER", "CANCELSLOTMIGRATIONS"]).unwrap();
            if place.starts_with("target-") {
                // From here on it cannot be handed over, so the target comes to the place behind what it is at.
                assert_eq!(canceller.read().unwrap().to_string(), "+OK", "{name}");
                servers[target].release("target-apply");
            }
        }
        let is_held = wait::until(|| servers[at].is_held_at(place));
        assert!(is_held, "{name}: it does not come there\n{}", self.logs());
        self.cluster.kill(victim).unwrap();
        for server in self.cluster.servers() {
            server.release(place);
            server.release("target-apply");
        }
        self.cluster.revive(victim, FLAGS).unwrap();
        self.counters.set_ports(self.cluster.ports());
        self.settle(&name);
        self.check(&name);
        if self.owner() == source {
            // Nothing of it is in the way of the next one.
            assert_eq!(ask(&mut self.conn(source), &self.migrate(target)), "OK", "{name}");
            self.settle(&name);
            assert_eq!(self.owner(), target, "{name}\n{}", self.logs());
            self.check(&name);
        }
    }
}

/// Two clusters at a time: most of it is waiting.
fn play(cases: &[Case]) {
    thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                let mut stage = Stage::start();
                for case in cases.iter().skip(half).step_by(2) {
                    stage.kill_at(*case);
                }
                let account = stage.counters.finish().unwrap();
                assert!(account.acknowledged > cases.len() as u64, "{account:?}");
            });
        }
    });
}

fn cases(steps: &[(Role, &'static str)], victims: &[Role], is_cancelled: bool) -> Vec<Case> {
    let of =
        |&at: &(Role, &'static str)| victims.iter().map(move |&victim| Case { at, is_cancelled, victim });
    steps.iter().flat_map(of).collect()
}

#[test]
fn whoever_dies_at_any_step_of_a_hand_over_one_node_has_the_slots_and_all_keys() {
    play(&cases(&STEPS, &[Source, Target], false));
}

#[test]
fn a_leader_that_dies_around_a_decision_changes_nothing() {
    let around: Vec<_> = STEPS
        .into_iter()
        .filter(|(_, place)| place.contains("-begin") || place.contains("commit") || *place == "decided")
        .collect();
    play(&cases(&around, &[Leader], false));
}

#[test]
fn whoever_dies_while_a_migration_is_cancelled_the_source_has_the_slots_and_the_target_nothing() {
    play(&cases(&STEPS_BACK, &[Source, Target, Leader], true));
}

/// Steps of `SETSLOT` and `MIGRATE`, as a tool asks for them.
const STEPS_OF_KEYS: [(Role, &str); 14] = [
    (Target, "ask-importing"),
    (Leader, "append-importing"),
    (Target, "applied-importing"),
    (Target, "answer"),
    (Source, "ask-migrating"),
    (Source, "applied-migrating"),
    (Source, "answer"),
    (Source, "migrate-marked"),
    (Source, "migrate-sent"),
    (Source, "migrate-answered"),
    (Source, "migrate-done"),
    (Target, "ask-owner"),
    (Leader, "append-owner"),
    (Source, "applied-owner"),
];

/// What the tool moves: a few slots, one of which has a key that is written to.
const RANGE: &str = "0-2";

impl Stage {
    /// The tool, told to move a few slots key by key. What it says is in its output.
    fn tool(&self, source: usize) -> Command {
        let mut command = Command::new(towline_binary().unwrap());
        let node = self.cluster.servers()[2].address().to_string();
        command.args(["cluster", "reshard", &node, "--to", &self.ids[1 - source], "--ranges", RANGE]);
        // What the source has counts: it gives a key away only for good.
        command.args(["--classic", "--replace", "--yes"]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn kill_at_key(&mut self, at: (Role, &'static str), victim: Role) {
        let name = format!("{at:?}, and {victim:?} dies");
        let (source, leader) = (self.owner(), self.leader());
        let role = |role| match role {
            Source => source,
            Target => 1 - source,
            Leader => leader,
        };
        let ((node, place), victim) = ((role(at.0), at.1), role(victim));
        self.cluster.servers()[node].hold_at(place).unwrap();
        let mut tool = self.tool(source).spawn().unwrap();
        let is_held = wait::until(|| self.cluster.servers()[node].is_held_at(place));
        assert!(is_held, "{name}: it does not come there\n{}", self.logs());
        self.cluster.kill(victim).unwrap();
        self.cluster.servers()[node].release(place);
        self.cluster.revive(victim, FLAGS).unwrap();
        self.counters.set_ports(self.cluster.ports());
        // It knows nothing of the new address, and may insist for a while.
        tool.kill().unwrap();
        tool.wait().unwrap();
        self.settle(&name);
        let again = self.tool(source).output().unwrap();
        let said = [again.stdout, again.stderr].concat();
        assert!(again.status.success(), "{name}: {}\n{}", String::from_utf8_lossy(&said), self.logs());
        self.settle(&name);
        assert_eq!(self.owner(), 1 - source, "{name}");
        self.check(&name);
    }
}

#[test]
fn whoever_dies_while_keys_move_one_by_one_the_same_command_goes_on_and_no_key_is_lost() {
    thread::scope(|scope| {
        for victim in [Source, Target] {
            scope.spawn(move || {
                let mut stage = Stage::start();
                STEPS_OF_KEYS.into_iter().for_each(|at| stage.kill_at_key(at, victim));
                stage.counters.finish().unwrap();
            });
        }
    });
}
