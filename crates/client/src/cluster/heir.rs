//! Who takes the place of a primary that is lost.
//!
//! Owns the asking of its replicas. Does not own what follows from their answer ([`Router::succeeded`]) nor the usual asking for
//! the map ([`super::refresh`]), which goes on: that is one question a second to nodes that may not know yet, while a replica
//! knows the moment it is elected, and `ROLE` costs it next to nothing. The connections that this makes are those that will
//! be needed.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use towline_client_proto::Reply;
use towline_client_proto::routing::{EndpointId, Router, apply};
use towline_cluster::sentinel::RoleReply;
use towline_sansio::Prng;

use super::Cluster;
use super::node::Node;
use crate::lease::say;

/// The least and the most time from one question to the next, while a failover is to be expected; drawn anew each time, so
/// that many clients do not ask at once. Five hundred clients come to some five thousand `ROLE` a second. A connection that
/// was merely cut is back before the first.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(150));

/// So long a failover is to be expected. Redis gives up a node after 15 s by default, and then needs an election.
const EXPECTED_WITHIN: Duration = Duration::from_secs(30);

/// Afterwards the pause is longer by this factor: the primary may stay away for hours.
const PATIENCE: u32 = 10;

/// A replica has this long to answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// So many replicas of one primary are asked.
const ASKED_MAX: usize = 5;

impl Cluster {
    /// A node cannot be reached: looks for its heir, if it needs one and nobody looks for it yet.
    pub(super) fn look_for_heir(&self, lost: EndpointId) {
        if self.lock().without_heir.insert(lost) {
            self.runtime.spawn(look(self.me.clone(), lost));
        }
    }

    /// Whom to ask. Nobody, and nobody looks any more, if the node is back or has no slots.
    fn heirs(&self, lost: EndpointId) -> Vec<(EndpointId, Arc<Node>)> {
        let mut state = self.lock();
        let is_up = state.nodes.get(&lost).is_some_and(|node| node.is_connected());
        let heirs = if is_up || state.is_closed { Vec::new() } else { state.router.heirs_of(lost) };
        if heirs.is_empty() {
            state.without_heir.remove(&lost);
        }
        heirs
            .into_iter()
            .take(ASKED_MAX)
            .filter_map(|id| Some((id, Arc::clone(state.nodes.get(&id)?))))
            .collect()
    }

    /// The first of them who says that it is a primary.
    async fn ask_heirs(&self, heirs: Vec<(EndpointId, Arc<Node>)>) -> Option<EndpointId> {
        let mut asking = JoinSet::new();
        for (id, node) in heirs {
            let engine = Arc::clone(node.engine_in(self));
            let ask = async move {
                let Ok(Reply::One(reply)) = say(&engine, &[b"ROLE"], ANSWER_TIME).await else { return None };
                matches!(RoleReply::parse(&reply), Ok(RoleReply::Primary { .. })).then_some(id)
            };
            asking.spawn_on(ask, &self.runtime);
        }
        while let Some(answer) = asking.join_next().await {
            if let Ok(Some(heir)) = answer {
                return Some(heir);
            }
        }
        None
    }
}

async fn look(cluster: Weak<Cluster>, lost: EndpointId) {
    let mut prng = Prng::new(RandomState::new().hash_one(Instant::now()));
    let begun = Instant::now();
    loop {
        let spread = (PAUSE.1 - PAUSE.0).as_millis() as u64;
        let pause = PAUSE.0 + Duration::from_millis(prng.below(spread + 1));
        let is_expected = begun.elapsed() < EXPECTED_WITHIN;
        sleep(if is_expected { pause } else { pause * PATIENCE }).await;
        let Some(cluster) = cluster.upgrade() else { return };
        let heirs = cluster.heirs(lost);
        if heirs.is_empty() {
            return;
        }
        if let Some(heir) = cluster.ask_heirs(heirs).await {
            cluster.change(|router: &mut Router, hands, now| {
                let change = router.succeeded(now, lost, heir);
                apply(router, now, &change, hands);
            });
        }
    }
}
