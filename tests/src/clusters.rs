//! Real clusters: six servers, three of which follow the other three.
//!
//! Owns the processes, their making into a cluster by `redis-cli --cluster create`, and what tests do to it: resharding, failovers,
//! kills. Does not own the load ([`crate::ledger_of_keys`]).

use crate::conn::Conn;
use crate::peers::Peer;
use crate::process::{Server, ServerKind, free_port};
use crate::value::Value;
use crate::wait;
use anyhow::{Context, bail};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Nodes of a cluster.
const NODES: usize = 6;

/// A cluster whose processes end with it.
#[derive(Debug)]
pub struct RealCluster {
    servers: Vec<Server>,
    node_timeout: Duration,
}

/// One line of `CLUSTER NODES`.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name.
    pub id: String,
    /// Its port.
    pub port: u16,
    /// `master`, `slave`, `fail`, ...
    pub flags: String,
    /// Whom it follows, or `-`.
    pub primary: String,
    /// Its slots, as ranges.
    pub slots: Vec<(u16, u16)>,
}

impl Member {
    /// Whether it has slots and is not given up.
    pub fn is_serving(&self) -> bool {
        self.flags.contains("master") && !self.flags.contains("fail") && !self.slots.is_empty()
    }
}

impl RealCluster {
    /// Starts three primaries with a replica each. A node that is gone is given up after `node_timeout`.
    ///
    /// # Errors
    /// A server does not start, or they do not become a cluster.
    pub fn start(kind: ServerKind, node_timeout: Duration) -> anyhow::Result<Self> {
        Self::start_with(kind, node_timeout, &[])
    }

    /// [`Self::start`], with more flags for each server.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(kind: ServerKind, node_timeout: Duration, more: &[&str]) -> anyhow::Result<Self> {
        let mut servers = Vec::new();
        for _ in 0..NODES {
            let start = |flags: &[&str]| Server::start(kind, &[flags, more].concat());
            servers.push(with_flags(node_timeout, start)?);
        }
        let cluster = Self { servers, node_timeout };
        let addresses: Vec<String> =
            cluster.servers.iter().map(|server| server.address().to_string()).collect();
        let mut arguments = vec!["--cluster", "create"];
        arguments.extend(addresses.iter().map(String::as_str));
        arguments.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        cluster.cli(&arguments)?;
        if !wait::until(|| cluster.is_whole()) {
            bail!("the servers did not become a cluster");
        }
        Ok(cluster)
    }

    /// Whether every node that runs knows three primaries with all slots, and their replicas are in line.
    fn is_whole(&self) -> bool {
        self.servers.iter().all(|server| {
            let Ok(mut conn) = server.connect() else { return false };
            let info = text(conn.words("CLUSTER INFO").ok());
            let replication = text(conn.words("INFO replication").ok());
            let is_ok = info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:6");
            is_ok && (replication.contains("role:master") || replication.contains("master_link_status:up"))
        })
    }

    /// Runs redis-cli.
    ///
    /// # Errors
    /// It fails; the message has what it printed.
    pub fn cli(&self, arguments: &[&str]) -> anyhow::Result<String> {
        redis_cli(arguments)
    }

    /// The ports of the nodes.
    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(Server::port).collect()
    }

    /// The server on a port.
    ///
    /// # Panics
    /// There is none.
    pub fn server(&self, port: u16) -> &Server {
        self.servers.iter().find(|server| server.port() == port).expect("a port of the cluster")
    }

    /// A connection to the node on a port.
    ///
    /// # Errors
    /// It does not accept it.
    pub fn connect(&self, port: u16) -> anyhow::Result<Conn> {
        self.server(port).connect()
    }

    /// The cluster as some node sees it that runs.
    ///
    /// # Errors
    /// None runs.
    pub fn members(&self) -> anyhow::Result<Vec<Member>> {
        self.members_by(|_| true)
    }

    /// The cluster as the first of the chosen nodes sees it.
    ///
    /// # Errors
    /// None of them runs.
    pub fn members_by(&self, mut choose: impl FnMut(u16) -> bool) -> anyhow::Result<Vec<Member>> {
        for server in self.servers.iter().filter(|server| choose(server.port())) {
            let Ok(mut conn) = server.connect() else { continue };
            let nodes = text(Some(conn.words("CLUSTER NODES")?));
            return Ok(nodes.lines().filter_map(member).collect());
        }
        bail!("no node of the cluster runs")
    }

    /// The primaries that serve.
    ///
    /// # Errors
    /// No node runs.
    pub fn primaries(&self) -> anyhow::Result<Vec<Member>> {
        Ok(self.members()?.into_iter().filter(Member::is_serving).collect())
    }

    /// Whether all nodes say the same about every slot. Gossip takes a moment.
    fn agrees(&self) -> bool {
        let view = |port: u16| {
            let members = self.members_by(|other| other == port).unwrap_or_default();
            let mut owners: Vec<_> = members.into_iter().map(|member| (member.id, member.slots)).collect();
            owners.sort();
            owners
        };
        let ports = self.ports();
        ports.windows(2).all(|pair| view(pair[0]) == view(pair[1]))
    }

    /// Moves `count` slots from one primary to another, key by key, as `redis-cli` does.
    ///
    /// # Errors
    /// redis-cli fails.
    pub fn reshard(&self, from: &Member, to: &Member, count: u16) -> anyhow::Result<()> {
        // redis-cli refuses to begin before.
        if !wait::until(|| self.agrees()) {
            bail!("the nodes do not agree about their slots");
        }
        let (at, count) = (format!("127.0.0.1:{}", from.port), count.to_string());
        let arguments = [
            "--cluster",
            "reshard",
            &at,
            "--cluster-from",
            &from.id,
            "--cluster-to",
            &to.id,
            "--cluster-slots",
            &count,
            "--cluster-yes",
        ];
        self.cli(&arguments).map(drop)
    }

    /// Makes a replica of `primary` take its place, and waits until everybody knows.
    ///
    /// # Errors
    /// It has no replica, or it does not come to that.
    pub fn fail_over(&self, primary: &Member) -> anyhow::Result<()> {
        let members = self.members()?;
        let replica = members.iter().find(|member| member.primary == primary.id);
        let replica = replica.context("the primary has no replica")?;
        let reply = self.connect(replica.port)?.words("CLUSTER FAILOVER")?;
        if let Some(error) = reply.error() {
            bail!("CLUSTER FAILOVER: {error}");
        }
        let has_changed = || {
            self.ports().into_iter().all(|port| {
                let members = self.members_by(|other| other == port).unwrap_or_default();
                members.iter().any(|member| member.id == replica.id && member.is_serving())
            })
        };
        if wait::until(has_changed) { Ok(()) } else { bail!("the replica did not take over") }
    }

    /// Restarts every node, one after the other and each on a new port: replicas first, and primaries after a replica has
    /// taken their place. Nobody is left at the end where it was in the beginning.
    ///
    /// # Errors
    /// A node does not come back, or the cluster does not become whole again in between.
    pub fn restart_all_elsewhere(&mut self) -> anyhow::Result<()> {
        let (primaries, replicas): (Vec<_>, Vec<_>) =
            self.members()?.into_iter().partition(Member::is_serving);
        for member in replicas.iter().chain(&primaries) {
            // By its name: it may have become a replica, or a primary, meanwhile.
            let present = self.members()?.into_iter().find(|present| present.id == member.id);
            let present = present.context("a node is not a member any more")?;
            if present.is_serving() {
                self.fail_over(&present)?;
            }
            self.restart_elsewhere(present.port)?;
        }
        Ok(())
    }

    /// Restarts a node on a new port, and waits until all know where it is and the cluster is whole.
    fn restart_elsewhere(&mut self, old: u16) -> anyhow::Result<()> {
        let node_timeout = self.node_timeout;
        let server = self.servers.iter_mut().find(|server| server.port() == old).context("no such node")?;
        with_flags(node_timeout, |flags| server.restart_elsewhere(flags))?;
        let is_known = || {
            let ports = self.ports();
            ports.iter().all(|port| {
                let members = self.members_by(|other| other == *port).unwrap_or_default();
                !members.is_empty() && members.iter().all(|member| ports.contains(&member.port))
            })
        };
        if wait::until(|| is_known() && self.is_whole()) {
            Ok(())
        } else {
            bail!("the cluster did not become whole after the node on port {old} was restarted")
        }
    }

    /// The number that a key holds, as its owner has it; 0 if there is none.
    ///
    /// # Errors
    /// Nobody owns it, or it is no number.
    pub fn counter(&self, key: &str) -> anyhow::Result<u64> {
        let slot = slot_of(key);
        let has = |member: &&Member| member.slots.iter().any(|(low, high)| (*low..=*high).contains(&slot));
        let primaries = self.primaries()?;
        let owner = primaries.iter().find(has).with_context(|| format!("nobody owns {key}"))?;
        counter_at(&mut self.connect(owner.port)?, key)
    }

    /// Kills a node at once (`SIGKILL`).
    ///
    /// # Errors
    /// It is gone already.
    pub fn kill(&self, port: u16) -> anyhow::Result<()> {
        self.server(port).signal(rustix::process::Signal::KILL)
    }

    /// Waits until the slots of `lost` have another owner, as a node sees it that is not `lost`.
    ///
    /// # Errors
    /// It does not come to that.
    pub fn wait_for_heir(&self, lost: &Member) -> anyhow::Result<()> {
        let has_heir = || {
            let members = self.members_by(|port| port != lost.port).unwrap_or_default();
            lost.slots.iter().all(|(first, _)| {
                let owns =
                    |member: &&Member| member.slots.iter().any(|(low, high)| low <= first && first <= high);
                members.iter().filter(owns).any(|member| member.id != lost.id && member.is_serving())
            })
        };
        if wait::until(has_heir) { Ok(()) } else { bail!("nobody took over") }
    }
}

/// A node in cluster mode that is alone and empty.
///
/// # Errors
/// It does not start.
pub fn lonely_node(kind: ServerKind, node_timeout: Duration) -> anyhow::Result<Server> {
    with_flags(node_timeout, |flags| Server::start(kind, flags))
}

/// Runs redis-cli, which is asked nothing.
///
/// # Errors
/// It fails; the message has what it printed.
pub fn redis_cli(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(Peer::RedisCli.path()?)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("cannot start redis-cli")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() || text.contains("[ERR]") {
        bail!("redis-cli {arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(text)
}

/// The flags of a node whose bus has a port that is free now.
fn with_flags<T>(
    node_timeout: Duration,
    start: impl FnOnce(&[&str]) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let (bus, timeout) = (free_port()?.to_string(), node_timeout.as_millis().to_string());
    start(&[
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &bus,
        "--cluster-node-timeout",
        &timeout,
        "--cluster-replica-validity-factor",
        "0",
        "--repl-diskless-sync-delay",
        "0",
    ])
}

/// A key in `slot`, with `tag` in it.
///
/// # Panics
/// There is none among a million, which does not happen.
pub fn key_in(slot: u16, tag: &str) -> String {
    (0..1_000_000)
        .map(|n| format!("{tag}:{n}"))
        .find(|key| slot_of(key) == slot)
        .expect("some key of a million is in each slot")
}

/// The number that a key holds at a server; 0 if there is none.
///
/// # Errors
/// The server refuses, or it is no number.
pub fn counter_at(conn: &mut Conn, key: &str) -> anyhow::Result<u64> {
    match text(Some(conn.words(&format!("GET {key}"))?)) {
        number if number.is_empty() => Ok(0),
        number => number.parse().with_context(|| format!("{key} holds {number}")),
    }
}

/// The slot of a key without braces: CRC-16/XMODEM, as the specification has it.
pub fn slot_of(key: &str) -> u16 {
    let mut crc = 0u16;
    for byte in key.bytes() {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
        }
    }
    crc % 16384
}

pub(crate) fn text(value: Option<Value>) -> String {
    let bytes = value.as_ref().and_then(Value::bytes).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn member(line: &str) -> Option<Member> {
    let words: Vec<&str> = line.split(' ').collect();
    let endpoint = words.get(1)?.split('@').next()?;
    let range = |word: &&str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    Some(Member {
        id: (*words.first()?).to_owned(),
        port: endpoint.rsplit_once(':')?.1.parse().ok()?,
        flags: (*words.get(2)?).to_owned(),
        primary: (*words.get(3)?).to_owned(),
        slots: words.get(8..).unwrap_or_default().iter().filter_map(range).collect(),
    })
}
