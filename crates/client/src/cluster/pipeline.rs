//! Commands that are submitted together.
//!
//! Owns their splitting by node and the joining of their outcomes in the order of the request. Does not own what a pipeline
//! is ([`crate::Pipeline`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use towline_client_proto::routing::{BridgeId, EndpointId, Lane, Plan, ReadFrom};
use towline_client_proto::{Error, ErrorKind, Order, Sent, SubmitError};
use towline_cluster::Slot;
use towline_resp::frame::Frame;

use super::Cluster;
use super::exchange::RoutedOutcome;
use super::node::Node;
use super::read::{Way, no_replica};
use super::send::one;
use crate::clock;
use crate::cmd::Cmd;
use crate::engine::Engine;

/// What became of the submitting of one command.
enum Submission {
    Not,
    Sent(Option<RoutedOutcome>),
    Failed(Error),
}

/// By connection: the node, and the places of its commands.
type Groups = BTreeMap<BridgeId, (Arc<Node>, Vec<usize>)>;

/// What one round of submitting came to.
enum Round {
    Done,
    /// There is no room at this node for what this order is about.
    NoRoom(Arc<Engine>, Order),
    /// A replica's lag has to be known first.
    NoLag(Order),
}

impl Cluster {
    /// Where a command of a pipeline goes: one slot, or any node.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`]: it is a command for several nodes.
    pub(crate) fn way(&self, cmd: &Cmd) -> Result<Option<Slot>, Error> {
        let refuse = |advice: &str| {
            let name = cmd.name().escape_ascii();
            Err(Error::misuse(format!("{name} cannot be part of a pipeline in a cluster: {advice}")))
        };
        match self.plan_of(cmd, false) {
            Plan::Slot(slot) => Ok(Some(slot)),
            Plan::Anywhere | Plan::Split { .. } => Ok(None),
            Plan::Spread(..) => refuse("it goes to several nodes; send it by itself"),
            Plan::Refused(advice) => refuse(advice),
        }
    }

    /// The one slot of a transaction's commands.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`]: their keys are in several slots.
    pub(crate) fn slot_of_all<'c>(&self, cmds: impl Iterator<Item = &'c Cmd>) -> Result<Option<Slot>, Error> {
        let mut found = None;
        for cmd in cmds {
            let Some(slot) = self.way(cmd)? else { continue };
            if *found.get_or_insert(slot) != slot {
                return Err(Error::misuse(
                    "the keys of a transaction must be in one slot, which keys share that have the same part in braces \
                     ({user1}:name, {user1}:mail)",
                ));
            }
        }
        Ok(found)
    }

    /// Submits commands, those of one lane of a node back to back and in their order, and waits for all of them. One outcome for
    /// each, in the order given. Whoever `read` names may answer them: they all read, unless that is the primary.
    pub(crate) async fn submit_all(
        &self,
        sends: Vec<(Option<Slot>, &Cmd)>,
        read: ReadFrom,
        orders: Vec<Order>,
    ) -> Vec<Result<Frame, Error>> {
        let mut submitted: Vec<Submission> = sends.iter().map(|_| Submission::Not).collect();
        if !self.routes.load().has_map()
            && let Some(first) = orders.first()
            && let Err(error) = self.map_before(first).await
        {
            return sends.iter().map(|_| Err(error.clone())).collect();
        }
        let mut looks = 0;
        while submitted.iter().any(|it| matches!(it, Submission::Not)) {
            let failed = match self.submit_round(&sends, read, &orders, &mut submitted) {
                // Room was asked for and is there now, or the time is over.
                Round::NoRoom(engine, order) => engine.room_again(&order).await.err(),
                Round::NoLag(order) => self.measured_before(&order).await.err(),
                Round::Done if submitted.iter().any(|it| matches!(it, Submission::Not)) => {
                    self.look_again(&mut looks).err()
                }
                Round::Done => None,
            };
            fail_rest(&mut submitted, failed);
        }
        let mut outcomes = Vec::with_capacity(submitted.len());
        for submission in submitted {
            outcomes.push(match submission {
                Submission::Sent(Some(outcome)) => one(outcome.await),
                Submission::Sent(None) => Ok(Frame::Null),
                Submission::Failed(error) => Err(error),
                Submission::Not => Err(Error::new(ErrorKind::Unavailable, Sent::No)),
            });
        }
        outcomes
    }

    /// Submits what is not yet, lane by lane of node by node.
    fn submit_round(
        &self,
        sends: &[(Option<Slot>, &Cmd)],
        read: ReadFrom,
        orders: &[Order],
        submitted: &mut [Submission],
    ) -> Round {
        let (groups, end) = self.group(sends, read, orders, submitted);
        for (id, (node, places)) in groups {
            let reader = id.endpoint.is_reader().then(|| self.reader_of(&node));
            let engine = reader.as_ref().unwrap_or_else(|| node.client_in(self).inner.lane(id.lane));
            let now = clock::now();
            let mut state = engine.lock();
            let mut flush = towline_client_proto::Flush::Nobody;
            for at in places {
                let (slot, cmd) = sends[at];
                let encode = |out: &mut towline_client_proto::Encoder<'_>| cmd.encode(out);
                let bridge = &mut state.bridge;
                let taken = match slot.filter(|_| id.endpoint.is_reader()) {
                    Some(slot) => bridge.submit_read(now, (slot, read), &orders[at], None, encode),
                    None => bridge.submit_routed(now, slot, &orders[at], None, encode),
                };
                submitted[at] = match taken {
                    Ok(taken) => {
                        flush = taken.flush;
                        let outcome = |ticket| RoutedOutcome::new(Arc::clone(engine), ticket);
                        Submission::Sent(taken.ticket.map(outcome))
                    }
                    Err(SubmitError::Elsewhere) => continue,
                    Err(SubmitError::Failed(error))
                        if matches!(error.kind(), ErrorKind::BacklogFull { .. }) =>
                    {
                        engine.see_to(flush, now, state);
                        return Round::NoRoom(Arc::clone(engine), orders[at]);
                    }
                    Err(SubmitError::Failed(error)) => Submission::Failed(error),
                };
            }
            engine.see_to(flush, now, state);
        }
        end
    }

    /// Which node, or which node's connection for reads, gets which of the commands that are not submitted; and whether the
    /// lag of replicas has to be known for the rest.
    fn group(
        &self,
        sends: &[(Option<Slot>, &Cmd)],
        read: ReadFrom,
        orders: &[Order],
        submitted: &mut [Submission],
    ) -> (Groups, Round) {
        let keyless = self.node(None);
        let routes = self.routes.load();
        let (mut groups, mut end) = (Groups::new(), Round::Done);
        // Commands of one slot go to one node.
        let mut chosen: BTreeMap<Slot, Option<(EndpointId, Arc<Node>)>> = BTreeMap::new();
        for (at, (slot, _)) in sends.iter().enumerate() {
            if !matches!(submitted[at], Submission::Not) {
                continue;
            }
            let owner = || self.node(*slot).map(|node| (node.id, node));
            let place = match *slot {
                None => keyless.clone().map(|node| (node.id, node)),
                Some(_) if read == ReadFrom::Primary => owner(),
                Some(slot) if chosen.contains_key(&slot) => chosen[&slot].clone(),
                Some(slot) => {
                    let place = match self.way_of_read(&routes, slot, read) {
                        Way::Owner => owner(),
                        Way::Replica(node) => Some((node.id.reader(), node)),
                        Way::Later => {
                            end = Round::NoLag(orders[at]);
                            None
                        }
                        Way::Nobody => {
                            submitted[at] = Submission::Failed(no_replica(read));
                            continue;
                        }
                    };
                    chosen.insert(slot, place.clone());
                    place
                }
            };
            if let Some((endpoint, node)) = place {
                // There is one connection for reads from a replica.
                let lane = if endpoint.is_reader() { Lane::FIRST } else { self.lanes().of(*slot) };
                let id = BridgeId { endpoint, lane };
                groups.entry(id).or_insert_with(|| (node, Vec::new())).1.push(at);
            }
        }
        (groups, end)
    }
}

fn fail_rest(submitted: &mut [Submission], error: Option<Error>) {
    let Some(error) = error else { return };
    for submission in submitted.iter_mut().filter(|it| matches!(it, Submission::Not)) {
        *submission = Submission::Failed(error.clone());
    }
}
