//! What commands ask the cluster's thread for.
//!
//! Owns: doing it, and the replies of those who wait. Does **not** own arguments (see [`crate::commands`]).

use super::log::{MetadataLog, Peer, ProposeError};
use crate::blocking::Waiter;
use crate::command::CommandError;
use crate::failpoint;
use crate::shared::Shared;
use bytes::Bytes;
use std::sync::Arc;
use towline_cluster_proto::{Change, NodeId, Outcome};
use towline_resp::writer::Writer;

/// Something to be done by the cluster's thread.
#[derive(Debug, Clone)]
pub(crate) enum Errand {
    /// A change of the cluster.
    Change(Change),
    /// `EXEC` of a transaction of changes. What could not be read as one has its error.
    Transaction(Vec<Result<Change, CommandError>>),
    /// Several changes as one entry of the log. Answered as one: with the first refusal, if there is any.
    All(Vec<Change>),
    /// `CLUSTER MEET`.
    Meet(Peer),
    /// `CLUSTER RESET`: the node's name from now on.
    Reset(NodeId),
}

impl Errand {
    /// The failpoints before its changes are proposed.
    fn ask(&self) {
        let ask = |change| failpoint::change("ask", change);
        match self {
            Self::Change(change) => ask(change),
            Self::Transaction(parts) => parts.iter().flatten().for_each(ask),
            Self::All(changes) => changes.iter().for_each(ask),
            Self::Meet(_) | Self::Reset(_) => {}
        }
    }
}

/// An errand, and who waits for it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) errand: Errand,
    pub(crate) waiter: Option<Arc<Waiter>>,
}

/// Does an errand, lets this node's workers see what came of it, and answers.
pub(crate) async fn run(shared: Arc<Shared>, log: Arc<dyn MetadataLog>, request: Request) {
    let Request { errand, waiter } = request;
    errand.ask();
    let reply = match errand {
        Errand::Change(change) => Reply::One(log.propose(change).await),
        Errand::Transaction(parts) => transaction(&*log, parts).await,
        Errand::All(changes) => Reply::One(all(&shared, &*log, changes).await),
        Errand::Reset(node) => Reply::One(log.reset(node).await.map(|()| Outcome::Done)),
        Errand::Meet(peer) => {
            if let Err(error) = log.meet(peer.clone()).await {
                tracing::warn!(ip = %peer.ip, port = peer.port, "CLUSTER MEET: {error}");
            }
            Reply::One(Ok(Outcome::Done))
        }
    };
    if let Some(cluster) = shared.cluster.as_deref() {
        cluster.catch_up(&shared);
    }
    failpoint::pass("answer");
    if let Some(waiter) = waiter {
        let mut out = Writer::new(waiter.proto());
        reply.write(&shared, &mut out);
        // Somebody who stopped waiting does not want to know.
        let _ = waiter.end_with(Bytes::from(out.take().0));
    }
}

async fn all(shared: &Shared, log: &dyn MetadataLog, changes: Vec<Change>) -> Result<Outcome, ProposeError> {
    let begun: Vec<NodeId> = changes.iter().filter_map(begins).collect();
    let outcome = log.propose(Change::Many(changes)).await.map(first_refusal);
    if let Some(cluster) = shared.cluster.as_deref() {
        cluster.migrations.forget_unmade(begun.into_iter(), &log.metadata().borrow());
    }
    outcome
}

/// The migration that a change begins.
fn begins(change: &Change) -> Option<NodeId> {
    match change {
        Change::BeginMigration { id, .. } => Some(*id),
        _ => None,
    }
}

fn first_refusal(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Many(outcomes) => {
            let mut refused = outcomes.into_iter().filter(|one| matches!(one, Outcome::Refused(_)));
            refused.next().unwrap_or(Outcome::Done)
        }
        one => one,
    }
}

async fn transaction(log: &dyn MetadataLog, parts: Vec<Result<Change, CommandError>>) -> Reply {
    let changes: Vec<Change> = parts.iter().filter_map(|part| part.as_ref().ok().cloned()).collect();
    let mut outcomes = match log.propose(Change::Many(changes)).await {
        Ok(Outcome::Many(outcomes)) => outcomes.into_iter(),
        Ok(outcome) => vec![outcome].into_iter(),
        Err(error) => return Reply::One(Err(error)),
    };
    let of = |part: Result<Change, CommandError>| {
        // The log gives an outcome for each change.
        part.map(|_| outcomes.next().unwrap_or(Outcome::Done))
    };
    Reply::Many(parts.into_iter().map(of).collect())
}

/// What is answered.
#[derive(Debug)]
enum Reply {
    One(Result<Outcome, ProposeError>),
    Many(Vec<Result<Outcome, CommandError>>),
}

impl Reply {
    fn write(&self, shared: &Shared, out: &mut Writer) {
        let refuse = |out: &mut Writer, text: String| {
            shared.stats.error_reply(&text);
            out.error(&text);
        };
        match self {
            Self::One(Ok(outcome)) => write(shared, out, outcome),
            Self::One(Err(error)) => refuse(out, error.to_string()),
            Self::Many(parts) => {
                out.array(parts.len());
                for part in parts {
                    match part {
                        Ok(outcome) => write(shared, out, outcome),
                        Err(error) => refuse(out, error.to_string()),
                    }
                }
            }
        }
    }
}

fn write(shared: &Shared, out: &mut Writer, outcome: &Outcome) {
    match outcome {
        Outcome::Done => out.ok(),
        Outcome::Epoch { epoch, is_new } => {
            out.simple(&format!("{} {epoch}", if *is_new { "BUMPED" } else { "STILL" }));
        }
        Outcome::Refused(refused) => {
            let text = refused.to_string();
            shared.stats.error_reply(&text);
            out.error(&text);
        }
        Outcome::Many(outcomes) => {
            out.array(outcomes.len());
            outcomes.iter().for_each(|outcome| write(shared, out, outcome));
        }
    }
}
