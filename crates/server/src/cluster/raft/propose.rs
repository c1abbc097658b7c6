//! How a change finds the leader.
//!
//! Owns: where a proposal is sent, how long it is tried, and what is known of it in the end. Does **not** own the log.
//!
//! A proposal is sent again only if it is certain that it was not written: to another node, or to the same one later. So a change is
//! made once or not at all, and when that is not known, it is said so.

use super::group::{Group, Leader, Written};
use super::node::Inner;
use super::types::{Member, Seat};
use crate::cluster::links::messages::{Request, Response};
use crate::cluster::links::outgoing::CallError;
use crate::cluster::log::ProposeError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use towline_cluster_proto::{Change, Outcome, Refused};

/// How long a proposal looks for a leader, however long `cluster-node-timeout` is: an election takes two seconds.
const TIME_MAX: Duration = Duration::from_secs(5);
/// A transaction of 16384 changes has a fifth of this.
const CHANGE_BYTES_MAX: usize = 4 << 20;
/// Between two looks for a leader, if nothing happens.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// See [`crate::cluster::log::MetadataLog::propose`].
pub(super) async fn propose(node: Arc<Inner>, change: Change) -> Result<Outcome, ProposeError> {
    let time = TIME_MAX.min(node.timing.lease.max(Duration::from_secs(2)));
    let until = Instant::now() + time;
    // Nobody leaves the group meanwhile.
    let turn = timeout_at(until, node.transition.read()).await;
    let _turn = turn.map_err(|_| ProposeError::NoQuorum(time))?;
    if node.is_closed.load(Ordering::Acquire) || node.identity().joining.is_some() {
        return Err(ProposeError::Closed);
    }
    let group = node.group();
    let (index, outcome) = in_group(&group, change, until).await.map_err(|error| match error {
        ProposeError::NoQuorum(_) => ProposeError::NoQuorum(time),
        error => error,
    })?;
    if node.see(&group, index, until).await { Ok(outcome) } else { Err(ProposeError::Unknown) }
}

/// Proposes in this group. Returns when the change is made, which may be before it is seen here: the number of its entry, and what
/// came of it.
pub(super) async fn in_group(
    group: &Group,
    change: Change,
    until: Instant,
) -> Result<(u64, Outcome), ProposeError> {
    if postcard::to_stdvec(&change).map_or(true, |bytes| bytes.len() > CHANGE_BYTES_MAX) {
        let text = "ERR This changes too much at once: split it";
        return Ok((0, Outcome::Refused(Refused::Other(text.into()))));
    }
    let mut metrics = group.raft.0.metrics();
    while Instant::now() < until {
        metrics.borrow_and_update();
        let written = match group.leader() {
            Leader::Me(_) => group.write(change.clone(), until).await,
            Leader::Other(seat, member) => ask(group, seat, &member, change.clone(), until).await,
            Leader::Nobody => ask_around(group, &change, until).await,
        };
        match written {
            Written::Made(index, outcome) => return Ok((index, outcome)),
            Written::Unknown => return Err(ProposeError::Unknown),
            Written::Closed => return Err(ProposeError::Closed),
            Written::NotLeader | Written::NoQuorum => {}
        }
        let again = until.min(Instant::now() + LOOK_AGAIN);
        // That the time is over is as good a reason to look again as any news.
        let _ = timeout_at(again, metrics.changed()).await;
    }
    Err(ProposeError::NoQuorum(TIME_MAX))
}

async fn ask(group: &Group, seat: Seat, member: &Member, change: Change, until: Instant) -> Written {
    match group.ask(seat, member, &Request::Propose(change), until).await {
        Ok(Response::Made { index, outcome }) => Written::Made(index, outcome),
        Ok(Response::NoQuorum) => Written::NoQuorum,
        Ok(Response::NotLeader { .. } | Response::NotHere) | Err(CallError::NotSent(_)) => Written::NotLeader,
        Ok(_) | Err(CallError::Lost) => Written::Unknown,
    }
}

/// Nobody has told this node who leads, as happens to one that has come back elsewhere: any member may know.
async fn ask_around(group: &Group, change: &Change, until: Instant) -> Written {
    let membership = group.membership();
    for (&seat, member) in membership.nodes().filter(|&(&seat, _)| seat != group.id.seat) {
        match ask(group, seat, member, change.clone(), until).await {
            Written::NotLeader | Written::NoQuorum => {}
            written => return written,
        }
    }
    Written::NotLeader
}
