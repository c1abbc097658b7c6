//! Joining another cluster, and leaving one.
//!
//! Owns: who joins whom, and the steps by which a node changes its group. Does **not** own what a join does to the metadata
//! (`Change::Join`).
//!
//! ```text
//! joining node                                         leader of the other cluster
//!   file: "may have joined G with seat S"  (synced)
//!   Join(S, slots, epoch) --------------------------->  old seats of the node: gone; Change::Join; S: learner
//!   files of group G (synced)  <----------------------  Joined
//!   file: "belongs to G with seat S"       (synced)
//!   group G opened, old group closed
//! ```
//!
//! A node that has asked and not heard an answer may be a member already: it asks again with the same seat until it has heard one,
//! also after a restart, and takes no changes meanwhile. So it is in one group at each moment, and never in both.

use super::duties;
use super::group::{Group, Leader, Written};
use super::node::{Inner, SERVING_TIME_MAX};
use super::propose;
use super::store;
use super::types::Member;
use crate::cluster::identity::{GroupId, Identity, IdentityError, random_id, random_seat};
use crate::cluster::links::Purpose;
use crate::cluster::links::dialing::Address;
use crate::cluster::links::handshake::{Greeted, HandshakeError, Refusal};
use crate::cluster::links::messages::{Joining, Request, Response};
use crate::cluster::links::outgoing::call_once;
use crate::cluster::links::unix_ms;
use crate::cluster::log::{MeetError, Peer, ProposeError};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use towline_cluster_proto::{Change, NodeId, Outcome};

/// How long a meeting is tried, busy nodes included. Tools meet all nodes at once, and one cluster takes them in one by one.
const MEET_TIME_MAX: Duration = Duration::from_secs(20);
/// The longest pause before a busy node is asked again; drawn at random, so that two that ask each other do not go on for ever.
const BUSY_PAUSE_MS: u64 = 200;
/// How long a node that leaves waits for those that it leaves.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(3);
/// Between tries to hear whether this node was taken in.
const RESUME_PAUSE: Duration = Duration::from_secs(1);

/// What came of asking once.
enum Asked {
    Joined,
    Busy(String),
    /// It is not known whether this node was taken in.
    Unknown(String),
    Refused(MeetError),
}

fn unreachable(address: SocketAddr, reason: impl ToString) -> MeetError {
    MeetError::Unreachable { address, reason: reason.to_string() }
}

/// See [`crate::cluster::log::MetadataLog::meet`].
pub(super) async fn meet(node: Arc<Inner>, peer: Peer) -> Result<(), MeetError> {
    let address = SocketAddr::new(peer.ip, peer.bus_port);
    let at = Address { ip: peer.ip.to_string(), bus_port: peer.bus_port };
    meet_at(&node, &at, address).await
}

async fn meet_at(node: &Arc<Inner>, at: &Address, address: SocketAddr) -> Result<(), MeetError> {
    let until = Instant::now() + MEET_TIME_MAX;
    loop {
        let (stream, greeted) = dial(node, at, address).await?;
        let group = node.group();
        if greeted.peer.node == group.node {
            return Ok(());
        }
        if greeted.peer.cluster == group.id.cluster {
            // Of use after both have moved: each knows now where the other one is.
            let membership = group.membership();
            if let Some((_, member)) = membership.nodes().find(|(_, member)| member.node == greeted.peer.node)
            {
                node.common.see(greeted.peer.node, at.clone(), group.said(member));
            }
            return Ok(());
        }
        let reason = if group.applied.borrow().metadata.cluster().is_none() {
            "this node has joined a cluster a moment ago and does not know it yet".into()
        } else if group.is_alone() {
            match join(node, at, stream, &greeted, until).await {
                Asked::Joined => return Ok(()),
                Asked::Refused(error) => return Err(error),
                Asked::Unknown(reason) => return Err(unreachable(address, reason)),
                Asked::Busy(reason) => reason,
            }
        } else if greeted.peer.is_alone {
            let wanted = node.common.wanted.borrow().clone();
            let invite = Request::Invite { ip: wanted.ip, bus_port: wanted.bus_port };
            let answer = call_once(stream, &invite, until).await;
            return answer.map(drop).map_err(|error| unreachable(address, error));
        } else {
            return Err(MeetError::TwoClusters);
        };
        let pause = Duration::from_millis(random_seat().unwrap_or(1) % BUSY_PAUSE_MS + 10);
        if Instant::now() + pause >= until {
            return Err(unreachable(address, reason));
        }
        tokio::time::sleep(pause).await;
    }
}

async fn dial(node: &Inner, at: &Address, address: SocketAddr) -> Result<(TcpStream, Greeted), MeetError> {
    let dialled = node.common.dialer.dial(at, Purpose::Meet, node.introduction()).await;
    let (stream, greeted) = dialled.map_err(|error| match error {
        HandshakeError::Refused(Refusal::Secret) => MeetError::Secret,
        error => unreachable(address, error),
    })?;
    node.seen_at(greeted.seen);
    Ok((stream, greeted))
}

/// Asks to be taken into the cluster of the node at the other end, if this node is still alone.
async fn join(
    node: &Arc<Inner>,
    at: &Address,
    stream: TcpStream,
    greeted: &Greeted,
    until: Instant,
) -> Asked {
    let Ok(_turn) = timeout_at(until, node.transition.write()).await else {
        return Asked::Busy("this node is busy with another change".into());
    };
    let group = node.group();
    let pending = node.identity().joining.clone();
    if !group.is_alone() {
        // Another meeting was faster; whether it was with the same cluster is seen at the next look.
        return Asked::Busy("this node has joined another cluster meanwhile".into());
    }
    let is_first = pending.is_none();
    let target = match pending {
        Some((target, _)) if target.cluster == greeted.peer.cluster => target,
        Some((target, at)) => {
            return Asked::Busy(format!("this node has asked the cluster {} at {at} before", target.cluster));
        }
        None => match random_seat() {
            Ok(seat) => GroupId { cluster: greeted.peer.cluster, seat },
            Err(error) => {
                return Asked::Refused(unreachable(SocketAddr::new(greeted.seen, at.bus_port), error));
            }
        },
    };
    let text = at.to_string();
    if let Err(error) = node.change_identity(|me| me.joining = Some((target, text))).await {
        return Asked::Refused(unreachable(SocketAddr::new(greeted.seen, at.bus_port), error));
    }
    let request = Request::Join(Box::new(node.joining(&group, target)));
    let asked = match timeout_at(until, call_once(stream, &request, until)).await {
        Ok(Ok(Response::Joined { cluster })) if cluster == target.cluster => {
            return match node.switch(target, false, |_| {}).await {
                Ok(()) => Asked::Joined,
                Err(error) => Asked::Unknown(error.to_string()),
            };
        }
        Ok(Ok(Response::Busy | Response::NoQuorum | Response::NotLeader { .. } | Response::NotHere)) => {
            Asked::Busy("the other cluster takes nobody in at present".into())
        }
        Ok(Ok(Response::NotJoined(reason))) => {
            Asked::Refused(unreachable(SocketAddr::new(greeted.seen, at.bus_port), reason))
        }
        Ok(Ok(_)) => return Asked::Unknown("it is not known what came of it; it is tried again".into()),
        Ok(Err(error)) => return Asked::Unknown(format!("{error}; it is tried again")),
        Err(_) => return Asked::Unknown("no answer came in time; it is tried again".into()),
    };
    if !is_first && !matches!(asked, Asked::Refused(_)) {
        // This time it was not taken in; what came of the time before is still not known.
        return Asked::Unknown("the other cluster is busy; it is tried again".into());
    }
    // It is certain that this node was not taken in.
    if let Err(error) = node.change_identity(|me| me.joining = None).await {
        return Asked::Unknown(error.to_string());
    }
    asked
}

/// Asks again, as long as it is not known whether this node was taken in.
pub(super) async fn resume(node: Arc<Inner>) {
    loop {
        tokio::time::sleep(RESUME_PAUSE).await;
        let Some((_, at)) = node.identity().joining.clone() else {
            // What meetings leave behind is looked at now and then; nothing else starts one.
            tokio::time::sleep(RESUME_PAUSE * 4).await;
            continue;
        };
        let Some((ip, port)) = at.rsplit_once(':') else { continue };
        let Ok(bus_port) = port.parse() else { continue };
        let ip = ip.trim_matches(['[', ']']).to_owned();
        let address = SocketAddr::new(ip.parse().unwrap_or_else(|_| IpAddr::from([0, 0, 0, 0])), bus_port);
        if let Err(error) = meet_at(&node, &Address { ip, bus_port }, address).await {
            tracing::warn!(
                "this node has asked the cluster at {at} to take it in, and no answer has come yet: {error}"
            );
        }
    }
}

/// See [`crate::cluster::log::MetadataLog::reset`].
pub(super) async fn reset(node: Arc<Inner>, name: NodeId) -> Result<(), ProposeError> {
    let _turn = node.transition.write().await;
    if node.is_closed.load(Ordering::Acquire) {
        return Err(ProposeError::Closed);
    }
    let group = node.group();
    let metadata = Arc::clone(&group.applied.borrow().metadata);
    let other = metadata.nodes().keys().copied().find(|&other| other != group.node);
    if let Some(by) = other {
        let leave = Change::Many(vec![
            Change::FlushSlots { node: group.node },
            Change::Forget { by, node: group.node, now_ms: unix_ms() },
        ]);
        let until = Instant::now() + LEAVE_TIME_MAX;
        if let Err(error) = propose::in_group(&group, leave, until).await {
            tracing::warn!("this node leaves its cluster without its knowledge: {error}");
        }
    }
    let drawn = random_id().and_then(|cluster| Ok((GroupId { cluster, seat: random_seat()? }, random_id()?)));
    let (target, shard) = drawn.map_err(|_| ProposeError::Closed)?;
    let is_renamed = name != group.node;
    let changed = node.switch(target, true, move |me| {
        me.node = name;
        if is_renamed {
            me.shard = shard;
        }
    });
    changed.await.map_err(|error| {
        tracing::error!("this node cannot leave its cluster: {error}");
        ProposeError::Closed
    })
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SwitchError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Group(#[from] super::group::GroupError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Inner {
    /// Changes who this node is, on the disk first.
    async fn change_identity(&self, change: impl FnOnce(&mut Identity)) -> Result<(), SwitchError> {
        let mut identity = self.identity().clone();
        change(&mut identity);
        let (disk, path, stored) = (Arc::clone(&self.disk), self.path.clone(), identity.clone());
        let storing = tokio::task::spawn_blocking(move || stored.store(&*disk, &path));
        storing.await.map_err(io::Error::other)??;
        *self.identity() = identity;
        Ok(())
    }

    /// Leaves the group for this one. The caller holds the transition.
    pub(super) async fn switch(
        self: &Arc<Self>,
        target: GroupId,
        is_founder: bool,
        change: impl FnOnce(&mut Identity),
    ) -> Result<(), SwitchError> {
        let (disk, dir) = (Arc::clone(&self.disk), self.raft_dir.clone());
        let name = target.file_name();
        let creating = tokio::task::spawn_blocking(move || store::create(&*disk, &dir, &name));
        creating.await.map_err(io::Error::other)??;
        let changed = self.change_identity(|me| {
            change(me);
            (me.group, me.is_founder, me.joining) = (target, is_founder, None);
        });
        changed.await?;
        let identity = self.identity().clone();
        // If what follows fails, this node belongs to the new group and takes no part in it until it is started again.
        self.group().close().await;
        self.stand_aside();
        let (disk, dir) = (Arc::clone(&self.disk), self.raft_dir.clone());
        let opened = Group::open(disk, dir, &identity, self.timing, Arc::clone(&self.common)).await?;
        self.group.store(Arc::clone(&opened));
        self.run_group(&opened);
        let (disk, dir) = (Arc::clone(&self.disk), self.raft_dir.clone());
        let name = target.file_name();
        // What is left is removed at the next start.
        let _ = tokio::task::spawn_blocking(move || store::remove_others(&*disk, &dir, &name)).await;
        if is_founder {
            let mut standing = self.standing();
            let until = Instant::now() + SERVING_TIME_MAX;
            // If it takes longer, it comes later.
            let _ = timeout_at(until, standing.wait_for(|standing| standing.is_fresh)).await;
        }
        Ok(())
    }

    fn joining(&self, group: &Group, target: GroupId) -> Joining {
        let metadata = Arc::clone(&group.applied.borrow().metadata);
        let known = metadata.node(group.node);
        let shard = self.identity().shard;
        Joining {
            node: group.node,
            seat: target.seat,
            shard: known.map_or(shard, |known| known.shard),
            at: self.common.wanted.borrow().clone(),
            slots: metadata.slots_of(group.node),
            config_epoch: known.map_or(0, |known| known.config_epoch),
        }
    }

    /// Joins the cluster of the node there, as that one wishes.
    pub(super) fn come(self: &Arc<Self>, at: Address) {
        let node = Arc::clone(self);
        // Not a task of the group, as it ends the group.
        self.runtime.spawn(async move {
            let Ok(ip) = at.ip.parse() else { return };
            let peer = Peer { ip, port: 0, bus_port: at.bus_port };
            if let Err(error) = meet(node, peer).await {
                tracing::warn!("the node at {at} has asked this one to join it, which failed: {error}");
            }
        });
    }

    /// Takes a node into this cluster, here or at the leader.
    pub(super) async fn take_in(
        self: &Arc<Self>,
        mut joining: Joining,
        from: IpAddr,
        until: Instant,
    ) -> Response {
        if joining.at.ip.is_empty() {
            joining.at.ip = from.to_string();
        }
        let group = self.group();
        // A node that is alone may be about to join somebody itself.
        let _turn = if group.is_alone() {
            match timeout_at(until.min(Instant::now() + Duration::from_millis(300)), self.transition.write())
                .await
            {
                Ok(turn) => Some(turn),
                Err(_) => return Response::Busy,
            }
        } else {
            None
        };
        if self.group().id != group.id || self.identity().joining.is_some() {
            return Response::Busy;
        }
        match group.leader() {
            Leader::Me(_) => {
                let taken = timeout_at(until, group.seat(&joining, until)).await;
                taken.unwrap_or(Response::Unknown)
            }
            Leader::Other(seat, member) => {
                let request = Request::Join(Box::new(joining));
                match group.ask(seat, &member, &request, until).await {
                    Ok(response) => response,
                    Err(crate::cluster::links::outgoing::CallError::NotSent(_)) => Response::Busy,
                    Err(_) => Response::Unknown,
                }
            }
            Leader::Nobody => Response::Busy,
        }
    }
}

impl Group {
    /// Gives a node its seat, as the leader. Doing it twice does no harm, as whoever hears no answer asks again.
    async fn seat(&self, joining: &Joining, until: Instant) -> Response {
        let _turn = self.members.lock().await;
        let membership = self.membership();
        let others =
            membership.nodes().filter(|(seat, member)| member.node == joining.node && **seat != joining.seat);
        let old: Vec<u64> = others.map(|(&seat, _)| seat).collect();
        for seat in old {
            // It has lost what that seat has promised, so the seat must go before it gets another.
            let is_voter = self.membership().voter_ids().any(|voter| voter == seat);
            if let Err(error) = duties::remove(self, seat, is_voter).await {
                tracing::warn!("the old seat of node {} cannot be taken away: {error}", joining.node);
                return Response::Busy;
            }
        }
        let change = Change::Join {
            node: joining.node,
            shard: joining.shard,
            at: joining.at.clone(),
            slots: joining.slots.clone(),
            config_epoch: joining.config_epoch,
        };
        match self.write(change, until).await {
            Written::Made(_, Outcome::Refused(refused)) => return Response::NotJoined(refused.to_string()),
            Written::Made(..) => {}
            Written::NotLeader | Written::NoQuorum | Written::Closed => return Response::Busy,
            Written::Unknown => return Response::Unknown,
        }
        if self.membership().membership().get_node(&joining.seat).is_none() {
            let member =
                Member { node: joining.node, ip: joining.at.ip.clone(), bus_port: joining.at.bus_port };
            if let Err(error) = self.raft.0.add_learner(joining.seat, member, false).await {
                tracing::warn!("node {} cannot be given a seat now: {error}", joining.node);
                return Response::Unknown;
            }
        }
        Response::Joined { cluster: self.id.cluster }
    }
}
