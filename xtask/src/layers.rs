//! Who may depend on whom, checked over `cargo metadata`.
//!
//! Owns: the order of the workspace's crates, the list of pure ones, and the walls between products. It looks at
//! normal and build dependencies only: tests may use whatever they need.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The workspace from the bottom to the top: a crate may use only what stands before it.
const ORDER: &[&str] = &[
    "towline-sansio",
    "towline-resp",
    "towline-spec",
    "towline-cluster",
    "towline-admission",
    "towline-rdb",
    "towline-persist",
    "towline-store",
    "towline-client-proto",
    "towline-transfer-proto",
    "towline-cluster-proto",
    "towline-faults",
    "towline-client-derive",
    "towline-client",
    "towline-transfer",
    "towline-server",
    "towline",
    "axum-service-redis-rs",
    "axum-service-towline",
    "sim",
    "e2e",
    "xtask",
];

/// State machines and data: bytes and time come in as arguments.
const PURE: &[&str] = &[
    "towline-sansio",
    "towline-resp",
    "towline-spec",
    "towline-cluster",
    "towline-admission",
    "towline-rdb",
    "towline-persist",
    "towline-store",
    "towline-client-proto",
    "towline-transfer-proto",
    "towline-cluster-proto",
    "towline-faults",
];

/// Crates that bring sockets, threads, clocks, randomness or an allocator with them.
const IMPURE: &[&str] = &[
    "async-io",
    "axum",
    "getrandom",
    "hyper",
    "mio",
    "polling",
    "rand",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "tikv-jemalloc-ctl",
    "tikv-jemallocator",
    "tokio",
    "tokio-rustls",
    "tokio-util",
];

/// `(a prefix of a crate's name, what none of those crates reaches)`: an application links the client without the store.
const WALLS: &[(&str, &[&str])] = &[
    ("towline-client", &["towline-store", "towline-server", "towline-rdb", "towline-persist"]),
    ("towline-transfer", &["towline-store", "towline-server", "towline-rdb", "towline-persist"]),
];

/// Package name to the names of its direct normal and build dependencies.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Checks the workspace at `root`; one line for each broken rule.
///
/// # Errors
/// `cargo metadata` fails, for example because a manifest does not parse.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root)
        .output()
        .context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let (graph, members) = read(&metadata).context("cargo metadata has an unknown shape")?;
    Ok(broken_rules(&graph, &members))
}

/// The dependency graph and the workspace's own packages.
fn read(metadata: &Value) -> Option<(Graph, BTreeSet<String>)> {
    let mut names = BTreeMap::new();
    for package in metadata["packages"].as_array()? {
        names.insert(package["id"].as_str()?, package["name"].as_str()?);
    }
    let members = metadata["workspace_members"]
        .as_array()?
        .iter()
        .filter_map(|id| names.get(id.as_str()?).map(|name| (*name).to_owned()))
        .collect();
    let mut graph = Graph::new();
    for node in metadata["resolve"]["nodes"].as_array()? {
        // Two versions of one crate share an entry: a rule names crates, not versions.
        let entry = graph.entry((*names.get(node["id"].as_str()?)?).to_owned()).or_default();
        for dependency in node["deps"].as_array()? {
            let kinds = dependency["dep_kinds"].as_array()?;
            if kinds.iter().any(|kind| kind["kind"].as_str() != Some("dev")) {
                entry.insert((*names.get(dependency["pkg"].as_str()?)?).to_owned());
            }
        }
    }
    Some((graph, members))
}

/// Every rule that the graph breaks.
fn broken_rules(graph: &Graph, members: &BTreeSet<String>) -> Vec<String> {
    let rank = |name: &str| ORDER.iter().position(|entry| *entry == name);
    let mut finds = Vec::new();
    for member in members {
        let Some(own_rank) = rank(member) else {
            finds.push(format!("{member}: not in the order of crates (xtask/src/layers.rs)"));
            continue;
        };
        for dependency in graph.get(member).into_iter().flatten() {
            if rank(dependency).is_some_and(|rank| rank >= own_rank) {
                finds.push(format!("{member} -> {dependency}: dependencies point downwards only"));
            }
        }
        for target in forbidden(member) {
            if let Some(path) = path_to(graph, member, target) {
                finds.push(format!("{}: {member} must not reach {target}", path.join(" -> ")));
            }
        }
    }
    finds
}

/// What `member` must not reach, directly or through others.
fn forbidden(member: &str) -> Vec<&'static str> {
    let mut targets = if PURE.contains(&member) { IMPURE.to_vec() } else { Vec::new() };
    for (prefix, walled) in WALLS {
        if member.starts_with(prefix) {
            targets.extend_from_slice(walled);
        }
    }
    targets
}

/// A path of dependencies from one package to another.
fn path_to(graph: &Graph, from: &str, target: &str) -> Option<Vec<String>> {
    let mut seen = BTreeSet::from([from.to_owned()]);
    let mut paths = vec![vec![from.to_owned()]];
    while let Some(path) = paths.pop() {
        let last = path.last().expect("invariant: a path starts with its origin");
        for next in graph.get(last).into_iter().flatten() {
            let mut longer = path.clone();
            longer.push(next.clone());
            if next == target {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                paths.push(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Graph, broken_rules};
    use std::collections::BTreeSet;

    fn finds(edges: &[(&str, &[&str])]) -> Vec<String> {
        let graph: Graph = edges
            .iter()
            .map(|(name, targets)| ((*name).into(), targets.iter().map(|target| (*target).into()).collect()))
            .collect();
        let is_member = |name: &&String| name.starts_with("towline");
        let members: BTreeSet<String> = graph.keys().filter(is_member).cloned().collect();
        broken_rules(&graph, &members)
    }

    #[test]
    fn a_pure_crate_that_reaches_tokio_through_another_is_found() {
        let found = finds(&[("towline-resp", &["middle"]), ("middle", &["tokio"])]);
        assert_eq!(found, ["towline-resp -> middle -> tokio: towline-resp must not reach tokio"]);
    }

    #[test]
    fn an_upward_dependency_and_an_unknown_crate_are_found() {
        let found = finds(&[("towline-resp", &["towline-spec"]), ("towline-new", &[])]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn the_client_does_not_reach_the_store() {
        let found = finds(&[("towline-client", &["towline-store"]), ("towline-store", &[])]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_sound_graph_has_no_finds() {
        assert!(finds(&[("towline-server", &["towline-store", "tokio"]), ("towline-store", &[])]).is_empty());
    }
}
