//! Which node of a shard answers a read.
//!
//! Owns the policies ([`ReadFrom`]), and the one decision for each of them ([`choose`], [`choose_again`]). Does not own the
//! nodes' connections, nor how far behind a replica is: it is told both.
//!
//! | policy | first | then | then | then |
//! |---|---|---|---|---|
//! | `Primary` | primary | | | |
//! | `PreferReplica` | replicas in turn | primary | | |
//! | `Replica` | replicas in turn | (no one) | | |
//! | `Any` | primary and replicas in turn | | | |
//! | `Nearest` | replicas of the zone in turn | primary, if of the zone | other replicas in turn | primary |
//! | `InZone` | replicas of the zone in turn | primary, if of the zone | (no one) | |
//!
//! A column holds nodes that are connected and fit for reads. A fit replica without a connection yet is passed over, and
//! connected for the reads that follow. If nobody in a row is connected, the read waits for the primary where the row has it,
//! else for a replica that the row has.

use towline_cluster::Health;

/// Which nodes answer reads. The table of fallbacks is in `docs/cluster-client.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ReadFrom {
    /// The primary, as for writes. The default: the only one whose reads see every write that was acknowledged before.
    #[default]
    Primary,
    /// Replicas in turn; the primary if none of them can.
    PreferReplica,
    /// Replicas in turn, and nobody else: for work that must not burden primaries.
    Replica,
    /// The primary and its replicas in turn.
    Any,
    /// A replica of the client's own zone, then the primary if it is there, then another replica, then the primary.
    Nearest,
    /// A replica of the client's own zone, then the primary if it is there, and nobody else: for where traffic between zones
    /// must not happen.
    InZone,
}

impl ReadFrom {
    /// All policies with their names in URLs.
    pub const NAMES: [(Self, &'static str); 6] = [
        (Self::Primary, "primary"),
        (Self::PreferReplica, "prefer-replica"),
        (Self::Replica, "replica"),
        (Self::Any, "any"),
        (Self::Nearest, "nearest"),
        (Self::InZone, "in-zone"),
    ];

    /// The policy of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find_map(|(policy, known)| (*known == name).then_some(*policy))
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::PreferReplica => "prefer-replica",
            Self::Replica => "replica",
            Self::Any => "any",
            Self::Nearest => "nearest",
            Self::InZone => "in-zone",
        }
    }

    /// Whether it asks for the client's zone.
    pub const fn needs_zone(self) -> bool {
        matches!(self, Self::Nearest | Self::InZone)
    }

    const fn tiers(self) -> &'static [Tier] {
        use Tier::{All, NearPrimary, NearReplicas, Primary, Replicas};
        match self {
            Self::Primary => &[Primary],
            Self::PreferReplica => &[Replicas, Primary],
            Self::Replica => &[Replicas],
            Self::Any => &[All],
            Self::Nearest => &[NearReplicas, NearPrimary, Replicas, Primary],
            Self::InZone => &[NearReplicas, NearPrimary],
        }
    }
}

/// One column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    NearReplicas,
    NearPrimary,
    Replicas,
    Primary,
    All,
}

impl Tier {
    const fn has_primary(self, is_near: bool) -> bool {
        matches!(self, Self::Primary | Self::All) || (matches!(self, Self::NearPrimary) && is_near)
    }

    const fn has_replica(self, is_near: bool) -> bool {
        matches!(self, Self::Replicas | Self::All) || (matches!(self, Self::NearReplicas) && is_near)
    }
}

/// A node's connection for reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// It serves.
    Up,
    /// Nobody has asked for it yet.
    Unused,
    /// It was asked for, and does not serve at present.
    Down,
}

/// How far a replica is behind its primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lag {
    /// Not known yet.
    Unmeasured,
    /// So many bytes of the replication stream.
    Bytes(u64),
    /// It has lost its primary, or does not say.
    Lost,
}

impl Lag {
    const fn is_within(self, bound: Option<u64>) -> bool {
        match (bound, self) {
            (None, _) => true,
            (Some(bound), Self::Bytes(bytes)) => bytes <= bound,
            (Some(_), Self::Unmeasured | Self::Lost) => false,
        }
    }

    /// Whether the next look may find it within the bound, unlike the last.
    const fn may_be_within(self, bound: Option<u64>) -> bool {
        self.is_within(bound) || matches!(self, Self::Unmeasured)
    }
}

/// One node of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its connection.
    pub reach: Reach,
    /// What its peers say of it.
    pub health: Health,
    /// Whether it is in the client's zone.
    pub is_near: bool,
    /// How far it is behind. Of no account for a primary.
    pub lag: Lag,
}

/// Who answers a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The primary.
    Primary,
    /// The replica of this number.
    Replica(usize),
    /// A replica, as soon as it is known how far it is behind.
    Later,
    /// Nobody may.
    Nobody,
}

/// A choice, and what it asks for besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// Who answers.
    pub choice: Choice,
    /// A replica that would have answered if it were connected: to be connected.
    pub connect: Option<usize>,
}

/// Who answers a read under `policy`. `replica` describes each of `count` replicas, and is asked about as few as possible;
/// `bound` is how many bytes a replica may be behind; `turn` grows from read to read.
pub fn choose(
    policy: ReadFrom,
    primary: impl Fn() -> Candidate,
    count: usize,
    replica: impl Fn(usize) -> Candidate,
    bound: Option<u64>,
    turn: usize,
) -> Chosen {
    let mut connect = None;
    for tier in policy.tiers() {
        let choice = connected(*tier, &primary, count, &replica, bound, turn, &mut connect);
        if let Some(choice) = choice {
            return Chosen { choice, connect };
        }
    }
    let has_primary = || {
        let is_near = policy.needs_zone() && primary().is_near;
        policy.tiers().iter().any(|tier| tier.has_primary(is_near))
    };
    let choice = if has_primary() { Choice::Primary } else { waiting(policy, count, &replica, bound, turn) };
    Chosen { choice, connect }
}

/// Who of one column is connected and fit.
fn connected(
    tier: Tier,
    primary: &impl Fn() -> Candidate,
    count: usize,
    replica: &impl Fn(usize) -> Candidate,
    bound: Option<u64>,
    turn: usize,
    connect: &mut Option<usize>,
) -> Option<Choice> {
    // A primary that takes part in the turn has the number behind the last replica.
    let places = if tier == Tier::All { count + 1 } else { count };
    let in_turn = (0..places).map(|step| turn.wrapping_add(step) % places);
    for place in in_turn {
        if place == count {
            if primary().reach == Reach::Up {
                return Some(Choice::Primary);
            }
            continue;
        }
        let it = replica(place);
        if !tier.has_replica(it.is_near) || it.health != Health::Online {
            continue;
        }
        match it.reach {
            Reach::Up if it.lag.is_within(bound) => return Some(Choice::Replica(place)),
            Reach::Unused => *connect = connect.or(Some(place)),
            Reach::Up | Reach::Down => {}
        }
    }
    if !matches!(tier, Tier::Primary | Tier::NearPrimary) {
        return None;
    }
    let it = primary();
    (tier.has_primary(it.is_near) && it.reach == Reach::Up).then_some(Choice::Primary)
}

/// Which replica to wait for if the primary is none of the policy's.
fn waiting(
    policy: ReadFrom,
    count: usize,
    replica: &impl Fn(usize) -> Candidate,
    bound: Option<u64>,
    turn: usize,
) -> Choice {
    let mut later = Choice::Nobody;
    for tier in policy.tiers() {
        for place in (0..count).map(|step| turn.wrapping_add(step) % count) {
            let it = replica(place);
            if !tier.has_replica(it.is_near) || it.health == Health::Failed {
                continue;
            }
            if it.lag.is_within(bound) {
                return Choice::Replica(place);
            }
            if it.lag.may_be_within(bound) {
                later = Choice::Later;
            }
        }
    }
    later
}

/// Who answers a read that replica `was` did not: because it refused it (then the primary, where the policy has it), or
/// because its connection was lost (then whoever [`choose`] finds among the others). Where the policy has nobody else,
/// the same replica again.
pub fn choose_again(
    policy: ReadFrom,
    primary: impl Fn() -> Candidate,
    count: usize,
    replica: impl Fn(usize) -> Candidate,
    bound: Option<u64>,
    (was, is_refused): (Option<usize>, bool),
) -> Choice {
    let is_near = primary().is_near;
    if is_refused && policy.tiers().iter().any(|tier| tier.has_primary(is_near)) {
        return Choice::Primary;
    }
    let others = |place| {
        let it = replica(place);
        if Some(place) == was { Candidate { health: Health::Failed, ..it } } else { it }
    };
    // The next in turn.
    let turn = was.map_or(0, |was| was + 1);
    match choose(policy, primary, count, others, bound, turn).choice {
        Choice::Later | Choice::Nobody => was.map_or(Choice::Nobody, Choice::Replica),
        choice => choice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One node of a word such as `un5`: `u`p, `d`own, unused (`-`), `l`oading or `f`ailed; `n`ear or far (`.`); bytes
    /// behind, `?` unmeasured, `x` lost.
    fn node(word: &str) -> Candidate {
        let bytes = word.as_bytes();
        let lag = match &word[2..] {
            "" => Lag::Bytes(0),
            "?" => Lag::Unmeasured,
            "x" => Lag::Lost,
            bytes => Lag::Bytes(bytes.parse().unwrap()),
        };
        let (reach, health) = match bytes[0] {
            b'u' => (Reach::Up, Health::Online),
            b'd' => (Reach::Down, Health::Online),
            b'-' => (Reach::Unused, Health::Online),
            b'l' => (Reach::Up, Health::Loading),
            b'f' => (Reach::Up, Health::Failed),
            other => panic!("{other}"),
        };
        Candidate { reach, health, is_near: bytes[1] == b'n', lag }
    }

    fn text(choice: Choice) -> String {
        match choice {
            Choice::Primary => "P".into(),
            Choice::Replica(at) => at.to_string(),
            Choice::Later => "later".into(),
            Choice::Nobody => "nobody".into(),
        }
    }

    fn decide(policy: ReadFrom, nodes: &str, bound: Option<u64>, turn: usize) -> String {
        let nodes: Vec<Candidate> = nodes.split(' ').map(node).collect();
        let chosen = choose(policy, || nodes[0], nodes.len() - 1, |at| nodes[at + 1], bound, turn);
        let connect = chosen.connect.map(|at| format!(" connect {at}")).unwrap_or_default();
        text(chosen.choice) + &connect
    }

    /// Columns: the primary and the replicas, the bound; then what each policy of [`ReadFrom::NAMES`] but the first comes to
    /// at turn 0 and turn 1.
    const TABLE: &[(&str, Option<u64>, [&str; 10])] = &[
        // All is well: turns go round.
        ("u. u. u.", None, ["0", "1", "0", "1", "0", "1", "0", "1", "nobody", "nobody"]),
        ("u. u. un", None, ["0", "1", "0", "1", "0", "1", "1", "1", "1", "1"]),
        ("un u. u.", None, ["0", "1", "0", "1", "0", "1", "P", "P", "P", "P"]),
        ("un un un", None, ["0", "1", "0", "1", "0", "1", "0", "1", "0", "1"]),
        ("u. u.", None, ["0", "0", "0", "0", "0", "P", "0", "0", "nobody", "nobody"]),
        // No replica.
        ("u.", None, ["P", "P", "nobody", "nobody", "P", "P", "P", "P", "nobody", "nobody"]),
        ("dn", None, ["P", "P", "nobody", "nobody", "P", "P", "P", "P", "P", "P"]),
        // One is down; one has not been used; one loads; one was given up.
        ("u. d. u.", None, ["1", "1", "1", "1", "1", "1", "1", "1", "nobody", "nobody"]),
        (
            "u. -. u.",
            None,
            [
                "1 connect 0",
                "1",
                "1 connect 0",
                "1",
                "1 connect 0",
                "1",
                "1 connect 0",
                "1",
                "nobody",
                "nobody",
            ],
        ),
        ("u. l. u.", None, ["1", "1", "1", "1", "1", "1", "1", "1", "nobody", "nobody"]),
        ("un fn u.", None, ["1", "1", "1", "1", "1", "1", "P", "P", "P", "P"]),
        // Only the primary is connected.
        ("u. d. d.", None, ["P", "P", "0", "1", "P", "P", "P", "P", "nobody", "nobody"]),
        ("u. f. l.", None, ["P", "P", "1", "1", "P", "P", "P", "P", "nobody", "nobody"]),
        (
            "u. -n",
            None,
            [
                "P connect 0",
                "P connect 0",
                "0 connect 0",
                "0 connect 0",
                "P connect 0",
                "P",
                "P connect 0",
                "P connect 0",
                "0 connect 0",
                "0 connect 0",
            ],
        ),
        // The primary is down, and everybody is.
        ("d. u. d.", None, ["0", "0", "0", "0", "0", "0", "0", "0", "nobody", "nobody"]),
        ("d. d. d.", None, ["P", "P", "0", "1", "P", "P", "P", "P", "nobody", "nobody"]),
        ("d. dn d.", None, ["P", "P", "0", "1", "P", "P", "P", "P", "0", "0"]),
        // A bound on the lag.
        ("u. u.9 u.5", Some(5), ["1", "1", "1", "1", "1", "1", "1", "1", "nobody", "nobody"]),
        ("u. u.x u.6", Some(5), ["P", "P", "nobody", "nobody", "P", "P", "P", "P", "nobody", "nobody"]),
        ("u. un? un6", Some(5), ["P", "P", "later", "later", "P", "P", "P", "P", "later", "later"]),
        ("d. u.x", Some(5), ["P", "P", "nobody", "nobody", "P", "P", "P", "P", "nobody", "nobody"]),
        ("u. u.x u.6", None, ["0", "1", "0", "1", "0", "1", "0", "1", "nobody", "nobody"]),
    ];

    #[test]
    fn reads_go_where_the_table_says() {
        for (nodes, bound, expected) in TABLE {
            let policies = ReadFrom::NAMES[1..].iter().flat_map(|(policy, _)| [(policy, 0), (policy, 1)]);
            for ((policy, turn), expected) in policies.zip(expected) {
                assert_eq!(
                    decide(*policy, nodes, *bound, turn),
                    *expected,
                    "{policy:?} of {nodes}, bound {bound:?}, turn {turn}"
                );
            }
            assert_eq!(decide(ReadFrom::Primary, nodes, *bound, 0), "P", "{nodes}");
        }
    }

    /// Columns: the nodes, which replica did not answer, and what follows after a refusal and after a loss, by policy as above.
    const AGAIN: &[(&str, usize, [&str; 10])] = &[
        ("u. u. u.", 0, ["P", "1", "1", "1", "P", "1", "P", "1", "0", "0"]),
        ("u. u. u.", 1, ["P", "0", "0", "0", "P", "P", "P", "0", "1", "1"]),
        ("u. un", 0, ["P", "P", "0", "0", "P", "P", "P", "P", "0", "0"]),
        ("un un u.", 0, ["P", "1", "1", "1", "P", "1", "P", "P", "P", "P"]),
        ("d. dn d.", 0, ["P", "P", "1", "1", "P", "P", "P", "P", "0", "0"]),
    ];

    #[test]
    fn who_did_not_answer_is_asked_last() {
        for (nodes, was, expected) in AGAIN {
            let all: Vec<Candidate> = nodes.split(' ').map(node).collect();
            let policies =
                ReadFrom::NAMES[1..].iter().flat_map(|(policy, _)| [(policy, true), (policy, false)]);
            for ((policy, is_refused), expected) in policies.zip(expected) {
                let past = (Some(*was), is_refused);
                let choice = choose_again(*policy, || all[0], all.len() - 1, |at| all[at + 1], None, past);
                assert_eq!(text(choice), *expected, "{policy:?} of {nodes}, {past:?}");
            }
        }
    }

    #[test]
    fn every_policy_has_its_name() {
        for (policy, name) in ReadFrom::NAMES {
            assert_eq!((ReadFrom::named(name), policy.name()), (Some(policy), name));
        }
        assert_eq!(ReadFrom::named("slave"), None);
    }
}
