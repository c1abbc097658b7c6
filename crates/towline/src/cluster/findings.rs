//! What is wrong with a cluster, as its nodes' answers show it.
//!
//! Owns the rules of `towline cluster check`; all of them are functions of what nodes said. Does not own the questions (`survey`), nor
//! what to do about it (`fix`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use towline_cluster::{OpenState, Slot};
use towline_cluster_proto::{NodeId, plan};

use super::member::{Member, shown};
use super::survey::{Lost, Seen, owners};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// Clients suffer from it, or would at the next step: the check fails.
    Problem,
    /// Worth knowing.
    Note,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// A word that scripts compare.
    pub(super) kind: &'static str,
    /// How much it matters.
    pub(super) severity: Severity,
    /// A sentence for people.
    pub(super) text: String,
    /// The slots concerned, such as `0-99,200`; empty if it is not about slots.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) slots: String,
    /// The keys concerned; 0 if it is not about keys.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) keys: u64,
}

/// For serde, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Finding {
    pub(super) fn problem(kind: &'static str, text: String) -> Self {
        Self { kind, severity: Severity::Problem, text, slots: String::new(), keys: 0 }
    }

    fn note(kind: &'static str, text: String) -> Self {
        Self { severity: Severity::Note, ..Self::problem(kind, text) }
    }

    fn about(self, slots: impl IntoIterator<Item = Slot>) -> Self {
        Self { slots: shown(&plan::ranges_of(slots)), ..self }
    }
}

/// Keys of a slot at a node that does not own it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Orphans {
    /// Who has them.
    pub(super) holder: NodeId,
    /// The slot.
    pub(super) slot: Slot,
    /// How many.
    pub(super) keys: u64,
}

/// All findings about what nodes say of the cluster.
pub(super) fn of_views(seen: &[&Seen], lost: &[Lost]) -> Vec<Finding> {
    let mut findings = Vec::new();
    of_lost(lost, &mut findings);
    of_agreement(seen, &mut findings);
    of_open_slots(seen, &mut findings);
    of_coverage(seen, &mut findings);
    of_health(seen, lost, &mut findings);
    of_replicas(seen, lost, &mut findings);
    findings
}

/// Findings about keys that clients cannot reach.
pub(super) fn of_orphans(orphans: &[Orphans], label: impl Fn(NodeId) -> String) -> Vec<Finding> {
    let mut by_holder: BTreeMap<NodeId, Vec<&Orphans>> = BTreeMap::new();
    for found in orphans {
        by_holder.entry(found.holder).or_default().push(found);
    }
    let finding = |(holder, found): (NodeId, Vec<&Orphans>)| {
        let keys: u64 = found.iter().map(|found| found.keys).sum();
        let slots = found.iter().map(|found| found.slot);
        let text = format!(
            "{} holds {keys} keys of {} slots that it does not own; clients cannot reach them, `towline cluster fix` brings them to \
             their owner",
            label(holder),
            found.len()
        );
        Finding { keys, ..Finding::problem("orphans", text) }.about(slots)
    };
    by_holder.into_iter().map(finding).collect()
}

fn of_lost(lost: &[Lost], findings: &mut Vec<Finding>) {
    for Lost { member, reason } in lost {
        let text = format!("{} does not answer: {reason}", member.label());
        findings.push(if member.has_failed() && member.slots.is_empty() {
            let text =
                format!("{text}; it has no slots, and `towline cluster del-node` makes the others forget it");
            Finding::note("unreachable", text)
        } else {
            Finding::problem("unreachable", text).about(plan::each(&member.slots))
        });
    }
}

/// Who owns what, as one node sees it.
fn signature(seen: &Seen) -> BTreeMap<NodeId, &[(Slot, Slot)]> {
    let owns = |member: &&Member| !member.slots.is_empty();
    seen.view.iter().filter(owns).map(|member| (member.id, member.slots.as_slice())).collect()
}

/// Whether all nodes say the same about every slot, and know the same nodes, and whom each of them follows.
pub(super) fn agree(seen: &[&Seen]) -> bool {
    let names =
        |seen: &Seen| seen.view.iter().map(|member| (member.id, member.primary)).collect::<BTreeSet<_>>();
    seen.windows(2).all(|pair| signature(pair[0]) == signature(pair[1]) && names(pair[0]) == names(pair[1]))
}

fn of_agreement(seen: &[&Seen], findings: &mut Vec<Finding>) {
    let Some((first, others)) = seen.split_first() else { return };
    for other in others.iter().filter(|other| signature(other) != signature(first)) {
        let (a, b) = (owner_table(first), owner_table(other));
        let differ = (0..).zip(a.iter().zip(&b)).filter(|(_, (a, b))| a != b).map(|(slot, _)| slot);
        let text =
            format!("{} and {} do not agree who owns some slots", first.own.label(), other.own.label());
        findings.push(Finding::problem("disagreement", text).about(differ));
    }
    for node in seen {
        for other in seen.iter().filter(|other| !node.view.iter().any(|known| known.id == other.own.id)) {
            let text = format!("{} does not know {}", node.own.label(), other.own.label());
            findings.push(Finding::problem("unknown-node", text));
        }
    }
}

fn owner_table(seen: &Seen) -> Vec<Option<NodeId>> {
    let members: Vec<Seen> =
        seen.view.iter().map(|member| Seen { own: member.clone(), view: Vec::new() }).collect();
    owners(&members.iter().collect::<Vec<_>>())
}

fn of_open_slots(seen: &[&Seen], findings: &mut Vec<Finding>) {
    for node in seen {
        for (way, kind, verb) in [
            (OpenState::Migrating, "migrating", "gives away"),
            (OpenState::Importing, "importing", "takes over"),
        ] {
            let open = node.own.open.iter().filter(|open| open.way == way);
            let slots: Vec<Slot> = open.map(|open| open.slot).collect();
            if !slots.is_empty() {
                let text = format!(
                    "{} {verb} {} slots: a move goes on or was interrupted; `towline cluster fix` finishes it",
                    node.own.label(),
                    slots.len()
                );
                findings.push(Finding::problem(kind, text).about(slots));
            }
        }
    }
}

fn of_coverage(seen: &[&Seen], findings: &mut Vec<Finding>) {
    let owners = owners(seen);
    let uncovered: Vec<Slot> =
        (0..).zip(&owners).filter(|(_, owner)| owner.is_none()).map(|(slot, _)| slot).collect();
    if !uncovered.is_empty() {
        let text = format!("{} slots belong to nobody who answers", uncovered.len());
        findings.push(Finding::problem("uncovered", text).about(uncovered));
    }
    for node in seen.iter().filter(|node| node.own.is_primary()) {
        let is_disputed = |slot: &Slot| owners[usize::from(*slot)] != Some(node.own.id);
        let disputed: Vec<Slot> = plan::each(&node.own.slots).filter(is_disputed).collect();
        if !disputed.is_empty() {
            let text = format!(
                "{} claims {} slots that another node claims with a higher epoch",
                node.own.label(),
                disputed.len()
            );
            findings.push(Finding::problem("two-owners", text).about(disputed));
        }
    }
    let mut epochs: BTreeMap<u64, &Member> = BTreeMap::new();
    for member in seen.iter().map(|seen| &seen.own).filter(|own| own.is_primary() && !own.slots.is_empty()) {
        if let Some(other) = epochs.insert(member.epoch, member) {
            let text =
                format!("{} and {} have the same epoch, {}", other.label(), member.label(), member.epoch);
            findings.push(Finding::note("same-epoch", text));
        }
    }
}

fn of_health(seen: &[&Seen], lost: &[Lost], findings: &mut Vec<Finding>) {
    for node in seen {
        for member in &node.view {
            // Who does not answer us either was found already.
            if lost.iter().any(|lost| lost.member.id == member.id) {
                continue;
            }
            if member.has("fail") || member.has("fail?") {
                let text = format!("{} thinks that {} has failed", node.own.label(), member.label());
                findings.push(Finding::problem("failed", text));
            } else if !member.is_connected && !member.has("myself") && !member.has("handshake") {
                let text = format!("{} has no connection to {}", node.own.label(), member.label());
                findings.push(Finding::note("disconnected", text));
            }
        }
    }
}

fn of_replicas(seen: &[&Seen], lost: &[Lost], findings: &mut Vec<Finding>) {
    let replicas: Vec<&Member> = seen.iter().map(|seen| &seen.own).filter(|own| !own.is_primary()).collect();
    for replica in &replicas {
        let known = |id: NodeId| {
            seen.iter().any(|seen| seen.own.id == id && seen.own.is_primary())
                || lost.iter().any(|lost| lost.member.id == id)
        };
        if !replica.primary.is_some_and(known) {
            let text = format!("{} follows no primary of this cluster", replica.label());
            findings.push(Finding::problem("no-primary", text));
        }
    }
    if replicas.is_empty() {
        return;
    }
    for primary in seen.iter().map(|seen| &seen.own).filter(|own| own.is_primary() && !own.slots.is_empty()) {
        if !replicas.iter().any(|replica| replica.primary == Some(primary.id)) {
            let text = format!("{} has no replica, as others have", primary.label());
            findings.push(Finding::note("no-replica", text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    /// A cluster whose nodes all see the same lines, each its own with more flags and markers.
    fn cluster(lines: &[(char, &str, &str, &str)]) -> Vec<Seen> {
        let line = |(name, flags, rest, markers): &(char, &str, &str, &str), is_own: bool| {
            let own = if is_own { format!("myself,{flags}") } else { (*flags).to_owned() };
            let markers = if is_own { *markers } else { "" };
            let port = 7000 + u32::from(*name) - u32::from('a');
            let text = format!("{} 127.0.0.1:{port}@1{port} {own} {rest} {markers}", id(*name));
            Member::parse(text.trim_end(), "127.0.0.1").unwrap()
        };
        let seen = |own: &(char, &str, &str, &str)| {
            let view: Vec<Member> = lines.iter().map(|it| line(it, it.0 == own.0)).collect();
            Seen { own: line(own, true), view }
        };
        lines.iter().map(seen).collect()
    }

    fn kinds(seen: &[Seen], lost: &[Lost]) -> Vec<(&'static str, Severity, String)> {
        let found = of_views(&seen.iter().collect::<Vec<_>>(), lost);
        found.into_iter().map(|finding| (finding.kind, finding.severity, finding.slots)).collect()
    }

    fn three(markers: [&'static str; 2]) -> Vec<Seen> {
        cluster(&[
            ('a', "master", "- 0 0 1 connected 0-5460", markers[0]),
            ('b', "master", "- 0 0 2 connected 5461-10922", markers[1]),
            ('c', "master", "- 0 0 3 connected 10923-16383", ""),
        ])
    }

    #[test]
    fn a_whole_cluster_has_no_findings() {
        let seen = three(["", ""]);
        assert_eq!(kinds(&seen, &[]), []);
        assert!(agree(&seen.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn open_slots_are_found_on_both_sides() {
        let (to, from) = (format!("[5->-{}]", id('b')), format!("[5-<-{}]", id('a')));
        let seen = three([Box::leak(to.into_boxed_str()), Box::leak(from.into_boxed_str())]);
        let found = kinds(&seen, &[]);
        assert_eq!(
            found,
            [
                ("migrating", Severity::Problem, "5".to_owned()),
                ("importing", Severity::Problem, "5".to_owned())
            ]
        );
    }

    #[test]
    fn views_that_differ_are_found_with_their_slots() {
        let mut seen = three(["", ""]);
        // The second node has not heard yet that slot 5460 is its neighbour's.
        seen[1].view[0].slots = vec![(0, 5459)];
        assert!(!agree(&seen.iter().collect::<Vec<_>>()));
        assert_eq!(kinds(&seen, &[]), [("disagreement", Severity::Problem, "5460".to_owned())]);
        seen[1].view = three(["", ""])[1].view.clone();
        seen[2].view.remove(0);
        let found = kinds(&seen, &[]);
        assert!(found.iter().any(|found| found.0 == "unknown-node"), "{found:?}");
        assert!(!agree(&seen.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn slots_of_nobody_and_of_two_are_found() {
        let seen = cluster(&[
            ('a', "master", "- 0 0 1 connected 0-100 200", ""),
            ('b', "master", "- 0 0 2 connected 100-199 202-16383", ""),
        ]);
        assert_eq!(
            kinds(&seen, &[]),
            [
                ("uncovered", Severity::Problem, "201".to_owned()),
                ("two-owners", Severity::Problem, "100".to_owned())
            ]
        );
    }

    #[test]
    fn replicas_and_the_lost_are_judged() {
        let follows = format!("{} 0 0 1 connected", id('a'));
        let astray = format!("{} 0 0 1 connected", id('d'));
        let seen = cluster(&[
            ('a', "master", "- 0 0 1 connected 0-8000", ""),
            ('b', "master", "- 0 0 1 connected 8001-16383", ""),
            ('c', "slave", &follows, ""),
            ('e', "slave", &astray, ""),
        ]);
        let found: Vec<&str> = kinds(&seen, &[]).into_iter().map(|found| found.0).collect();
        assert_eq!(found, ["same-epoch", "no-primary", "no-replica"]);

        let gone = |flags: &str, slots: &str| {
            let line = format!("{} 127.0.0.1:7003@17003 {flags} - 0 0 1 disconnected {slots}", id('d'));
            Lost { member: Member::parse(line.trim_end(), "x").unwrap(), reason: "refused".to_owned() }
        };
        let severity = |lost: Lost| of_views(&[], &[lost])[0].severity;
        assert_eq!(severity(gone("master,fail", "")), Severity::Note);
        assert_eq!(severity(gone("master,fail", "5")), Severity::Problem);
        assert_eq!(severity(gone("master", "")), Severity::Problem);
    }

    #[test]
    fn orphans_are_told_by_holder() {
        let holder = id('a').parse().unwrap();
        let orphans = [Orphans { holder, slot: 7, keys: 2 }, Orphans { holder, slot: 8, keys: 1 }];
        let found = of_orphans(&orphans, |id| id.to_string());
        assert_eq!((found.len(), found[0].slots.as_str()), (1, "7-8"));
        assert!(found[0].text.contains("3 keys of 2 slots"), "{}", found[0].text);
    }
}
