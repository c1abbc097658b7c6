//! What of `rladmin` harnesses use: four commands, and the text of `status`.
//!
//! Owns reading and writing these texts. Does not own what a command does.

use std::fmt::Write as _;

use super::layout::{Node, Policy, Shard};

/// A command that means something here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// `status`, perhaps with more behind.
    Status,
    /// `migrate node N all_shards target_node M`
    MigrateNode { from: Node, to: Node },
    /// `migrate shard S [S ...] target_node M`
    MigrateShards { shards: Vec<u32>, to: Node },
    /// `bind endpoint D:E policy P`
    Bind { database: u32, policy: Policy },
    /// `failover shard S [S ...]`
    Failover { shards: Vec<u32> },
}

/// A command line: the database of `-b`, and the command.
///
/// # Errors
/// One line on what is not understood; the caller's mistake.
pub(super) fn parse(text: &str) -> Result<(Option<u32>, Command), String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    if words.first() == Some(&"rladmin") {
        words.remove(0);
    }
    let mut database = None;
    if words.first() == Some(&"-b") {
        let id = words.get(1).ok_or("a database's number stands after -b")?;
        database = Some(number(id, "db")?);
        words.drain(..2);
    }
    let command = match words.as_slice() {
        ["status", ..] => Command::Status,
        ["migrate", "node", from, "all_shards", "target_node", to] => {
            Command::MigrateNode { from: node(from)?, to: node(to)? }
        }
        ["migrate", "shard", shards @ .., "target_node", to] if !shards.is_empty() => {
            Command::MigrateShards { shards: numbers(shards)?, to: node(to)? }
        }
        ["bind", "endpoint", endpoint, "policy", policy] => {
            let endpoint = endpoint.strip_prefix("endpoint:").unwrap_or(endpoint);
            let id = endpoint.split_once(':').map_or(endpoint, |(database, _)| database);
            let policy = Policy::ALL.into_iter().find(|known| known.name() == *policy).ok_or_else(|| {
                format!("unknown policy `{policy}`; there are single, all-master-shards and all-nodes")
            })?;
            Command::Bind { database: number(id, "endpoint")?, policy }
        }
        ["failover", "shard", shards @ ..] if !shards.is_empty() => {
            Command::Failover { shards: numbers(shards)? }
        }
        _ => {
            return Err(format!(
                "rladmin {}: not among what the injector knows: status; migrate node N all_shards target_node M; \
                 migrate shard S target_node M; bind endpoint D:E policy P; failover shard S",
                words.join(" ")
            ));
        }
    };
    Ok((database, command))
}

/// A number, perhaps with its kind before it: `3` or `node:3`.
fn number(text: &str, kind: &str) -> Result<u32, String> {
    let digits = text.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':')).unwrap_or(text);
    digits.parse().map_err(|_| format!("`{text}` is no number"))
}

fn node(text: &str) -> Result<Node, String> {
    number(text, "node").map(|node| node as Node)
}

fn numbers(texts: &[&str]) -> Result<Vec<u32>, String> {
    texts.iter().map(|text| number(text, "redis")).collect()
}

/// A node, as `status` shows it.
#[derive(Debug)]
pub(super) struct NodeLine {
    pub(super) address: String,
    pub(super) host: String,
}

/// A database, as `status` shows it.
#[derive(Debug)]
pub(super) struct DatabaseLine {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) endpoint: String,
    pub(super) policy: Policy,
    pub(super) is_tls: bool,
    pub(super) bound: Vec<Node>,
    pub(super) shards: Vec<Shard>,
    pub(super) has_replicas: bool,
}

/// The text of `status`.
pub(super) fn status(nodes: &[NodeLine], databases: &[DatabaseLine]) -> String {
    let mut out =
        String::from("CLUSTER NODES:\nNODE:ID ROLE ADDRESS EXTERNAL_ADDRESS HOSTNAME SHARDS STATUS\n");
    // Writing to a string cannot fail.
    for (id, node) in (1..).zip(nodes) {
        let (mark, role) = if id == 1 { ("*", "master") } else { ("", "slave") };
        let shards = databases.iter().flat_map(|database| &database.shards);
        let count = shards.filter(|shard| shard.node == id).count();
        let NodeLine { address, host } = node;
        let _ = writeln!(out, "{mark}node:{id} {role} {address} {address} {host} {count}/100 OK");
    }
    out.push_str("\nDATABASES:\nDB:ID NAME TYPE STATUS SHARDS PLACEMENT REPLICATION PERSISTENCE ENDPOINT\n");
    for DatabaseLine { id, name, endpoint, policy, shards, has_replicas, .. } in databases {
        let placement = if *policy == Policy::Single { "dense" } else { "sparse" };
        let replication = if *has_replicas { "enabled" } else { "disabled" };
        let count = if *has_replicas { shards.len() / 2 } else { shards.len() };
        let _ = writeln!(
            out,
            "db:{id} {name} redis active {count} {placement} {replication} disabled {endpoint}"
        );
    }
    out.push_str("\nENDPOINTS:\nDB:ID NAME ID NODE ROLE SSL\n");
    for DatabaseLine { id, name, policy, is_tls, bound, .. } in databases {
        let tls = if *is_tls { "Yes" } else { "No" };
        for node in bound {
            let _ = writeln!(out, "db:{id} {name} endpoint:{id}:1 node:{node} {} {tls}", policy.name());
        }
    }
    out.push_str("\nSHARDS:\nDB:ID NAME ID NODE ROLE SLOTS USED_MEMORY STATUS\n");
    for DatabaseLine { id, name, shards, .. } in databases {
        for Shard { id: shard, node, role, slots, .. } in shards {
            let role = role.name();
            let _ = writeln!(out, "db:{id} {name} redis:{shard} node:{node} {role} {slots} 2MB OK");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::serve::layout::Layout;

    #[test]
    fn commands_are_understood_as_harnesses_write_them() {
        let command = |text| parse(text).unwrap();
        assert_eq!(command("rladmin status extra all"), (None, Command::Status));
        assert_eq!(command("rladmin -b 3 status"), (Some(3), Command::Status));
        let migrate = Command::MigrateNode { from: 2, to: 3 };
        assert_eq!(command("migrate node 2 all_shards target_node 3").1, migrate);
        assert_eq!(command("migrate node node:2 all_shards target_node node:3").1, migrate);
        let shards = Command::MigrateShards { shards: vec![1, 4], to: 3 };
        assert_eq!(command("migrate shard 1 redis:4 target_node 3").1, shards);
        let bind = |policy| Command::Bind { database: 7, policy };
        assert_eq!(command("bind endpoint 7:1 policy single").1, bind(Policy::Single));
        assert_eq!(command("bind endpoint endpoint:7:1 policy all-nodes").1, bind(Policy::AllNodes));
        assert_eq!(command("failover shard 1 3").1, Command::Failover { shards: vec![1, 3] });
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, what) in [
            ("", "not among"),
            ("rladmin", "not among"),
            ("-b", "after -b"),
            ("-b x status", "`x` is no number"),
            ("migrate node 1 all_shards target_node", "not among"),
            ("migrate node x all_shards target_node 2", "`x` is no number"),
            ("bind endpoint 1:1 policy everywhere", "unknown policy"),
            ("failover shard", "not among"),
            ("cluster reset", "rladmin cluster reset"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn the_status_has_the_sections_that_harnesses_look_for() {
        let layout = Layout::new(3, Policy::Single, 2, true, 1);
        let node = |n: u8| NodeLine { address: format!("127.0.0.{n}"), host: format!("node{n}.test") };
        let database = DatabaseLine {
            id: 1,
            name: "m-standard".into(),
            endpoint: "127.0.0.1:12000".into(),
            policy: layout.policy,
            is_tls: false,
            bound: layout.bound().into_iter().collect(),
            has_replicas: true,
            shards: layout.shards,
        };
        let text = status(&[node(1), node(2), node(3)], &[database]);
        for line in [
            "CLUSTER NODES:",
            "*node:1 master 127.0.0.1 127.0.0.1 node1.test 2/100 OK",
            "node:3 slave 127.0.0.3 127.0.0.3 node3.test 0/100 OK",
            "DATABASES:",
            "db:1 m-standard redis active 2 dense enabled disabled 127.0.0.1:12000",
            "ENDPOINTS:",
            "db:1 m-standard endpoint:1:1 node:1 single No",
            "SHARDS:",
            "db:1 m-standard redis:1 node:1 master 0-8191 2MB OK",
            "db:1 m-standard redis:4 node:2 slave 8192-16383 2MB OK",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
