//! What a node does without being asked, most of it as the leader.
//!
//! Owns: who is a member and who a voter, finding out which nodes do not answer, and links among all members. Does **not** own the changes that this leads to
//! (they go through the log like all others).
//!
//! Voters are an odd number of nodes, seven at most: a second, fourth or sixth voter adds one more node that a quorum needs, and none
//! that may fail.

use super::group::{Group, Leader, Written};
use super::network::to_frame;
use super::types::{Member, Seat};
use crate::cluster::links::messages::Request;
use crate::cluster::links::unix_ms;
use openraft::error::{ClientWriteError, RaftError};
use openraft::{ChangeMembers, ServerState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;
use towline_cluster_proto::{Change, Health, NodeId};

/// More voters make each change slower and hardly any failure survivable that seven do not survive.
const VOTERS_MAX: usize = 7;
/// A learner that lacks so few entries may vote.
const LAG_MAX: u64 = 64;
/// A change of members that takes longer has no quorum; it is looked at again later.
const MEMBERS_TIME_MAX: Duration = Duration::from_secs(3);
/// From this size on a log is cut by a snapshot although it has few entries.
const LOG_BYTES_MAX: u64 = 8 << 20;

/// Between two looks at the links.
const LINK_ROUND: Duration = Duration::from_secs(1);
/// A link that is open is used so often at least: three times before it would be closed as idle.
const ROUNDS_BETWEEN_PINGS: u64 = 20;

type MembersResult = Result<(), RaftError<Seat, ClientWriteError<Seat, Member>>>;

/// Runs as long as the group does: sleeps while this node follows.
pub(super) async fn run(group: Arc<Group>, found: Option<Change>) {
    let mut server = group.raft.0.server_metrics();
    let mut applied = group.applied.clone();
    loop {
        if server.wait_for(|server| server.state == ServerState::Leader).await.is_err() {
            return;
        }
        let since = Instant::now();
        while let Leader::Me(_) = group.leader() {
            applied.borrow_and_update();
            server.borrow_and_update();
            if let Some(found) =
                found.as_ref().filter(|_| group.applied.borrow().metadata.cluster().is_none())
            {
                // What comes of it is seen when it is applied; if nothing does, it is tried again.
                let _ = group.write(found.clone(), tokio::time::Instant::now() + MEMBERS_TIME_MAX).await;
                continue_soon(&mut applied).await;
                continue;
            }
            tend(&group, since).await;
            let pause = (group.timing.lease / 10).clamp(Duration::from_millis(50), Duration::from_secs(1));
            // Alone, there is nobody to look after: only what is applied matters.
            let pause = if group.is_alone() { Duration::from_secs(60) } else { pause };
            tokio::select! {
                _ = tokio::time::sleep(pause) => {}
                result = applied.changed() => if result.is_err() { return },
                result = server.changed() => if result.is_err() { return },
            }
        }
    }
}

/// Keeps a link to every other member, as tools take a node without one for disconnected, and as a node that has moved tells all others so
/// by dialling them.
pub(super) async fn keep_links(group: Arc<Group>) {
    let mut server = group.raft.0.server_metrics();
    for round in 0_u64.. {
        let membership = Arc::clone(&server.borrow_and_update().membership_config);
        group.peers.retain(|seat| membership.membership().get_node(&seat).is_some());
        let others = membership.nodes().filter(|&(&seat, _)| seat != group.id.seat);
        let mut pings = JoinSet::new();
        for (&seat, member) in others {
            let link = group.peers.link(seat, member);
            if (!link.is_open() || round.is_multiple_of(ROUNDS_BETWEEN_PINGS))
                && let Ok(frame) = to_frame(&Request::Ping)
            {
                // What comes of it is seen by whoever looks at the links.
                pings.spawn(async move { timeout(LINK_ROUND, link.call(frame)).await.is_ok() });
            }
        }
        pings.join_all().await;
        let is_alone = membership.nodes().all(|(&seat, _)| seat == group.id.seat);
        let pause = if is_alone { Duration::from_secs(3600) } else { LINK_ROUND };
        tokio::select! {
            _ = tokio::time::sleep(pause) => {}
            result = server.changed() => if result.is_err() { return },
        }
    }
}

async fn continue_soon(applied: &mut tokio::sync::watch::Receiver<super::machine::Applied>) {
    let changed = applied.changed();
    let _ = timeout(Duration::from_millis(100), changed).await;
}

async fn tend(group: &Group, since: Instant) {
    if group.store.bytes() > LOG_BYTES_MAX {
        // It fails only if the group has ended.
        let _ = group.raft.0.trigger().snapshot().await;
    }
    let membership = group.membership();
    let is_member = |seat| membership.membership().get_node(&seat).is_some();
    group.freshness.retain(is_member);
    if group.leads_a_quorum() != Some(true) {
        return;
    }
    if let Ok(_turn) = group.members.try_lock()
        && let Ok(Err(error)) = timeout(MEMBERS_TIME_MAX, tend_members(group)).await
    {
        tracing::debug!("the cluster's members cannot change now: {error}");
    }
    detect(group, since).await;
}

/// One step towards the members that there should be.
async fn tend_members(group: &Group) -> MembersResult {
    let membership = group.membership();
    let raft = &group.raft.0;
    if membership.membership().get_joint_config().len() > 1 {
        // A leader before this one did not come to the end of a change.
        return raft.change_membership(ChangeMembers::AddVoterIds(BTreeSet::new()), true).await.map(drop);
    }
    let voters: BTreeSet<Seat> = membership.voter_ids().collect();
    let metadata = Arc::clone(&group.applied.borrow().metadata);
    let gone = membership.nodes().find(|(_, member)| metadata.node(member.node).is_none());
    if let Some((&seat, _)) = gone {
        return remove(group, seat, voters.contains(&seat)).await;
    }
    let recently = group.timing.heartbeat * 10;
    let answers = |seat| {
        seat == group.id.seat || group.freshness.last_answer(seat).is_some_and(|at| at.elapsed() < recently)
    };
    let metrics = group.metrics();
    let keeps_up = |seat: &Seat| {
        let matched = metrics.replication.as_ref()?.get(seat).copied().flatten()?;
        let last = metrics.last_log_index.unwrap_or(0);
        (last.saturating_sub(matched.index) <= LAG_MAX).then_some(())
    };
    let learners: Vec<Seat> = membership.membership().learner_ids().collect();
    let mut able: Vec<Seat> =
        learners.into_iter().filter(|&seat| answers(seat) && keeps_up(&seat).is_some()).collect();
    let wanted = odd(voters.len() + able.len()).min(VOTERS_MAX);
    if wanted > voters.len() {
        able.truncate(wanted - voters.len());
        let able = BTreeSet::from_iter(able);
        return raft.change_membership(ChangeMembers::AddVoterIds(able), true).await.map(drop);
    }
    if voters.len().is_multiple_of(2) {
        let others = voters.iter().copied().filter(|&seat| seat != group.id.seat);
        // Rather one that does not answer.
        if let Some(seat) = others.max_by_key(|&seat| !answers(seat)) {
            let out = BTreeSet::from([seat]);
            return raft.change_membership(ChangeMembers::RemoveVoters(out), true).await.map(drop);
        }
    }
    Ok(())
}

/// Takes a seat away.
pub(super) async fn remove(group: &Group, seat: Seat, is_voter: bool) -> MembersResult {
    let seats = BTreeSet::from([seat]);
    let change =
        if is_voter { ChangeMembers::RemoveVoters(seats) } else { ChangeMembers::RemoveNodes(seats) };
    group.raft.0.change_membership(change, false).await.map(drop)
}

/// The largest odd number that is not larger; 1 for 0.
fn odd(count: usize) -> usize {
    count.saturating_sub(1) / 2 * 2 + 1
}

/// Finds out who answers, and puts what is news into the log.
async fn detect(group: &Group, since: Instant) {
    let metadata = Arc::clone(&group.applied.borrow().metadata);
    let membership = group.membership();
    let seats: BTreeMap<NodeId, Seat> =
        membership.nodes().map(|(&seat, member)| (member.node, seat)).collect();
    for (&node, known) in metadata.nodes() {
        let answers = match seats.get(&node) {
            Some(&seat) if seat == group.id.seat => true,
            Some(&seat) => {
                // A leader that is new gives everybody the time that an old one has given.
                let last = group.freshness.last_answer(seat).unwrap_or(since).max(since);
                let is_silent = last.elapsed() > group.timing.lease;
                // Nothing heard yet of one that has failed is no sign of life.
                let is_back = group.freshness.last_answer(seat).is_some_and(|at| at > since);
                if known.health == Health::Online { !is_silent } else { is_back && !is_silent }
            }
            // It joins, or leaves.
            None => continue,
        };
        if answers != (known.health == Health::Online) {
            let change = Change::Answers { node, answers, now_ms: unix_ms() };
            let until = tokio::time::Instant::now() + MEMBERS_TIME_MAX;
            if let Written::Made(..) = group.write(change, until).await {
                tracing::warn!("node {node} {}", if answers { "answers again" } else { "does not answer" });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::odd;

    #[test]
    fn voters_are_an_odd_number() {
        let of: Vec<usize> = (0..=8).map(odd).collect();
        assert_eq!(of, [1, 1, 1, 3, 3, 5, 5, 7, 7]);
    }
}
