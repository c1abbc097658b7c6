//! `CLUSTER INFO`.

use super::Viewer;
use crate::id::NodeId;
use crate::node::Health;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use towline_cluster::Slot;
use towline_resp::writer::Writer;

/// What `CLUSTER INFO` tells that no metadata say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts<'a> {
    /// Whether this node serves.
    pub is_cluster_ok: bool,
    /// Messages to other nodes since the start, by kind.
    pub sent: &'a [(&'a str, u64)],
    /// Messages from other nodes since the start, by kind.
    pub received: &'a [(&'a str, u64)],
    /// Links that were closed because too much waited in them.
    pub links_over_limit: u64,
    /// Who leads the log of metadata, if somebody is known to.
    pub leader: Option<NodeId>,
    /// The leader's term.
    pub term: u64,
}

impl Viewer<'_> {
    /// `CLUSTER INFO`: Redis's lines, and about the log `cluster_leader` (empty if there is none) and `cluster_term`.
    pub fn info(&self, facts: &Facts<'_>) -> String {
        let is_failed = |id| {
            let node = self.metadata.node(id);
            node.is_some_and(|node| matches!(node.health, Health::Failed { .. }))
        };
        let count = |first: Slot, last: Slot| u64::from(last - first) + 1;
        let (mut assigned, mut failed, mut owners) = (0, 0, BTreeSet::new());
        for (first, last, owner) in self.metadata.runs() {
            assigned += count(first, last);
            failed += if is_failed(owner) { count(first, last) } else { 0 };
            owners.insert(owner);
        }
        let my_epoch = self.metadata.node(self.me).map_or(0, |me| self.epoch(me));
        let active = self.metadata.migrations().values().filter(|migration| migration.is_active()).count();
        let mut text = String::new();
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            // Writing into a String does not fail.
            let _ = write!(text, "{name}:{value}\r\n");
        };
        line("cluster_state", &if facts.is_cluster_ok { "ok" } else { "fail" });
        line("cluster_slots_assigned", &assigned);
        line("cluster_slots_ok", &(assigned - failed));
        line("cluster_slots_pfail", &0);
        line("cluster_slots_fail", &failed);
        line("cluster_known_nodes", &self.metadata.nodes().len());
        line("cluster_size", &owners.len());
        line("cluster_current_epoch", &self.metadata.current_epoch());
        line("cluster_my_epoch", &my_epoch);
        for (direction, counts) in [("sent", facts.sent), ("received", facts.received)] {
            for (kind, count) in counts.iter().filter(|(_, count)| *count > 0) {
                line(&format!("cluster_stats_messages_{kind}_{direction}"), count);
            }
            let sum = counts.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
            line(&format!("cluster_stats_messages_{direction}"), &sum);
        }
        line("total_cluster_links_buffer_limit_exceeded", &facts.links_over_limit);
        line("cluster_slot_migration_active_tasks", &active);
        line("cluster_leader", &facts.leader.map_or_else(String::new, |leader| leader.to_string()));
        line("cluster_term", &facts.term);
        text
    }

    /// The reply to `CLUSTER INFO`: a text.
    pub fn write_info(&self, facts: &Facts<'_>, out: &mut Writer) {
        out.verbatim(b"txt", &self.info(facts));
    }
}
