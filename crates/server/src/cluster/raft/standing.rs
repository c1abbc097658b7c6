//! How a node stands in its cluster, as it changes.
//!
//! Owns: putting together what Raft, the leader's word and the applied log say. Does **not** own the rule (see
//! [`towline_cluster_proto::lease`]) nor what a node does that may not serve.

use super::group::Group;
use super::node::Inner;
use super::types::Vote;
use crate::cluster::log::Standing;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use towline_cluster_proto::lease::may_serve;

/// Says how this node stands. When Raft ends by itself, which it does when its disk fails, the node knows nothing any more.
pub(super) async fn stand(node: Weak<Inner>, group: Arc<Group>) {
    watch_standing(&node, &group).await;
    if let Some(node) = node.upgrade() {
        node.stand_aside();
    }
}

/// Follows the standing, whenever it changes: also when nothing happens for too long.
async fn watch_standing(node: &Weak<Inner>, group: &Group) {
    let mut metrics = group.raft.0.metrics();
    let Some(mut published) = node.upgrade().map(|node| node.published.subscribe()) else { return };
    let mut was_fresh = false;
    // What was in the log when this node began to lead: all that was decided before is among it.
    let mut led: Option<(Vote, u64)> = None;
    loop {
        let (term, voters, last_entry) = {
            let metrics = metrics.borrow_and_update();
            if metrics.running_state.is_err() {
                return;
            }
            let membership = metrics.membership_config.membership();
            (metrics.current_term, membership.get_joint_config().clone(), metrics.last_log_index.unwrap_or(0))
        };
        group.freshness.set_voters(&voters);
        let (seat, applied) = *published.borrow_and_update();
        let is_here = seat == group.id.seat;
        led = group.leads_by().map(|vote| led.filter(|(by, _)| *by == vote).unwrap_or((vote, last_entry)));
        let decided = led.map_or_else(|| group.freshness.decided(), |(_, last)| last);
        let now = Instant::now();
        let until = group.fresh_as_of(now).map(|as_of| as_of + group.timing.lease);
        let knows_quorum = is_here && until.is_some_and(|until| until > now);
        let is_fresh = may_serve(was_fresh, knows_quorum, applied, decided);
        was_fresh = is_fresh;
        let standing = Standing { node: group.node, is_fresh, leader: group.leader_node(), term };
        let Some(node) = node.upgrade() else { return };
        node.standing.send_if_modified(|old| std::mem::replace(old, standing) != standing);
        drop(node);
        // Followers are told of a quorum with each heartbeat, which is of no interest while they are fresh anyway.
        let pause = until.filter(|_| is_fresh).map_or(Duration::from_secs(60), |until| until - now);
        tokio::select! {
            _ = tokio::time::sleep(pause) => {}
            () = group.freshness.news.notified(), if !is_fresh => {}
            result = metrics.changed() => if result.is_err() { return },
            result = published.changed(), if !is_fresh => if result.is_err() { return },
        }
    }
}
