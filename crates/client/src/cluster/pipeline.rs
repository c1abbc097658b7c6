//! Commands that are submitted together.
//!
//! Owns their splitting by node and the joining of their outcomes in the order of the request. Does not own what a pipeline
//! is ([`crate::Pipeline`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use towline_client_proto::routing::{EndpointId, Plan};
use towline_client_proto::{Error, ErrorKind, Order, Sent, SubmitError};
use towline_cluster::Slot;
use towline_resp::frame::Frame;

use super::Cluster;
use super::exchange::RoutedOutcome;
use super::node::Node;
use super::send::one;
use crate::clock;
use crate::cmd::Cmd;

/// What became of the submitting of one command.
enum Submission {
    Not,
    Sent(Option<RoutedOutcome>),
    Failed(Error),
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
        match cmd.plan(false) {
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

    /// Submits commands, those of one node back to back and in their order, and waits for all of them. One outcome for
    /// each, in the order given.
    pub(crate) async fn submit_all(
        &self,
        sends: Vec<(Option<Slot>, &Cmd)>,
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
            if let Some((engine, order)) = self.submit_round(&sends, &orders, &mut submitted) {
                // Room was asked for and is there now, or the time is over.
                let failed = engine.room_again(&order).await.err();
                fail_rest(&mut submitted, failed);
            } else if submitted.iter().any(|it| matches!(it, Submission::Not)) {
                fail_rest(&mut submitted, self.look_again(&mut looks).err());
            }
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

    /// Submits what is not yet, node by node. Returns who has no room, and for what.
    fn submit_round(
        &self,
        sends: &[(Option<Slot>, &Cmd)],
        orders: &[Order],
        submitted: &mut [Submission],
    ) -> Option<(Arc<crate::engine::Engine>, Order)> {
        let keyless = self.node(None);
        let mut groups: BTreeMap<EndpointId, (Arc<Node>, Vec<usize>)> = BTreeMap::new();
        for (at, (slot, _)) in sends.iter().enumerate() {
            if !matches!(submitted[at], Submission::Not) {
                continue;
            }
            let node = if slot.is_some() { self.node(*slot) } else { keyless.clone() };
            if let Some(node) = node {
                groups.entry(node.id).or_insert_with(|| (node, Vec::new())).1.push(at);
            }
        }
        for (node, places) in groups.into_values() {
            let engine = node.engine_in(self);
            let now = clock::now();
            let mut state = engine.lock();
            let mut flush = towline_client_proto::Flush::Nobody;
            for at in places {
                let (slot, cmd) = sends[at];
                let encode = |out: &mut towline_client_proto::Encoder<'_>| cmd.encode(out);
                submitted[at] = match state.bridge.submit_routed(now, slot, &orders[at], None, encode) {
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
                        return Some((Arc::clone(engine), orders[at]));
                    }
                    Err(SubmitError::Failed(error)) => Submission::Failed(error),
                };
            }
            engine.see_to(flush, now, state);
        }
        None
    }
}

fn fail_rest(submitted: &mut [Submission], error: Option<Error>) {
    let Some(error) = error else { return };
    for submission in submitted.iter_mut().filter(|it| matches!(it, Submission::Not)) {
        *submission = Submission::Failed(error.clone());
    }
}
