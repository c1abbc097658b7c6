//! Commands that are more than one node's, and commands that block.
//!
//! Owns the carrying out of a plan: to whom the parts go, and whose errors count. Does not own the plan
//! (`towline_client_proto::routing::plan`) nor the joining of replies ([`super::join`]).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use towline_client_proto::routing::{Join, Plan, Spread};
use towline_client_proto::{
    Error, ErrorKind, Flags, LostCause, Order, Reply, Sent, ServerClass, ServerError,
};
use towline_cluster::{Redirect, RedirectKind, Slot};
use towline_resp::frame::Frame;
use towline_spec::SideEffect;

use super::node::Node;
use super::{Cluster, join};
use crate::client::Client;
use crate::cmd::{BlockTime, Cmd, RetryChoice};
use crate::lease::reads_from_now;

/// The first and the longest wait before a blocking command is sent again that was refused for now.
const REFUSED_WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// A blocking command follows so many redirects.
const REDIRECTS_MAX: u32 = 64;

impl Cluster {
    /// Where a command goes, in this client's way.
    pub(crate) fn plan(&self, cmd: &Cmd) -> Plan {
        self.plan_of(cmd, self.cluster_options.is_split())
    }

    /// Carries out a plan that is not for one slot.
    pub(crate) async fn carry_out(
        &self,
        client: &Client,
        cmd: &Cmd,
        effect: SideEffect,
        plan: Plan,
    ) -> Result<Frame, Error> {
        let order = client.order(cmd, effect);
        match plan {
            Plan::Slot(slot) => one(self.exchange(Some(slot), order, |out| cmd.encode(out)).await),
            Plan::Anywhere => one(self.exchange(None, order, |out| cmd.encode(out)).await),
            Plan::Spread(spread, join) => self.spread(cmd, &order, spread, join).await,
            Plan::Split { parts, width, join } => self.split(client, cmd, effect, &parts, width, join).await,
            Plan::Refused(advice) => {
                let name = cmd.name().escape_ascii();
                Err(Error::misuse(format!("{name} makes no sense in a cluster: {advice}")))
            }
        }
    }

    /// Sends a command to several nodes at once.
    async fn spread(&self, cmd: &Cmd, order: &Order, spread: Spread, how: Join) -> Result<Frame, Error> {
        if !self.routes.load().has_map() {
            self.map_before(order).await?;
        }
        let nodes = match spread {
            Spread::Primaries => self.routes.load().primaries(),
            Spread::Nodes => self.routes.load().all(),
        };
        // Each is for its node and no other.
        let order = Order { flags: order.flags | Flags::PINNED, ..*order };
        let sent: Vec<_> = nodes.iter().map(|node| self.submit_to(node, &order, cmd)).collect();
        let mut replies = Vec::with_capacity(sent.len());
        for (node, sent) in nodes.iter().zip(sent) {
            let outcome = match sent {
                Ok(Some(outcome)) => outcome.await,
                Ok(None) => Ok(Reply::One(Frame::Null)),
                Err(error) => Err(error),
            };
            replies.push((node.address.to_string(), as_value(outcome)?));
        }
        if cmd.options().is_fire_and_forget {
            return Ok(Frame::Null);
        }
        join::nodes(how, replies)
    }

    /// Sends a command to this node and no other.
    fn submit_to(
        &self,
        node: &Arc<Node>,
        order: &Order,
        cmd: &Cmd,
    ) -> Result<Option<super::exchange::RoutedOutcome>, Error> {
        use towline_client_proto::SubmitError;
        let engine = node.engine_in(self);
        let now = crate::clock::now();
        let mut state = engine.lock();
        match state.bridge.submit_routed(now, None, order, None, |out| cmd.encode(out)) {
            Ok(submitted) => {
                engine.see_to(submitted.flush, now, state);
                let outcome = |ticket| super::exchange::RoutedOutcome::new(Arc::clone(engine), ticket);
                Ok(submitted.ticket.map(outcome))
            }
            Err(SubmitError::Failed(error)) => {
                crate::engine::wake_finished(state);
                Err(error)
            }
            // It has left the cluster just now.
            Err(SubmitError::Elsewhere) => Err(Error::new(ErrorKind::Unavailable, Sent::No)),
        }
    }

    /// Sends a command in parts, one for each slot, and joins the replies.
    async fn split(
        &self,
        client: &Client,
        cmd: &Cmd,
        effect: SideEffect,
        parts: &[(Slot, Vec<usize>)],
        width: usize,
        how: Join,
    ) -> Result<Frame, Error> {
        let words: Vec<&[u8]> = cmd.args().collect();
        let commands: Vec<(Slot, Cmd)> = parts
            .iter()
            .map(|(slot, keys)| {
                let values = keys.iter().flat_map(|at| &words[1 + at * width..1 + (at + 1) * width]);
                (*slot, cmd.with_words(std::iter::once(words[0]).chain(values.copied())))
            })
            .collect();
        let orders = commands.iter().map(|(_, part)| client.order(part, effect)).collect();
        let sends = commands.iter().map(|(slot, part)| (Some(*slot), part)).collect();
        let outcomes = self.submit_all(sends, client.read_policy(cmd), orders).await;
        let mut replies = Vec::with_capacity(outcomes.len());
        let mut failure: Option<Error> = None;
        for ((_, keys), outcome) in parts.iter().zip(outcomes) {
            match outcome {
                Ok(frame) => replies.push((keys.as_slice(), frame)),
                Err(error) => failure = Some(worse(failure, error)),
            }
        }
        match failure {
            // What the other parts did stays done: the command as a whole may have run in part.
            Some(error) if replies.is_empty() => Err(error),
            Some(error) => Err(Error::new(error.clone().into_kind(), error.sent().max(Sent::Maybe))),
            None => join::parts(how, replies),
        }
    }

    /// Sends a command that blocks to whoever has its slot, and again when that changes.
    pub(crate) async fn send_blocking(
        &self,
        cmd: &Cmd,
        effect: SideEffect,
        block: BlockTime,
        timeout: Duration,
    ) -> Result<Frame, Error> {
        let slot = self.slot_of(cmd);
        let begun = Instant::now();
        let block_end = match block {
            BlockTime::AtMost(time) => begun.checked_add(time),
            BlockTime::Forever => None,
        };
        let give_up = match cmd.options().deadline {
            Some(after) => begun.checked_add(after),
            None => block_end.and_then(|end| end.checked_add(timeout)),
        };
        let mut wait = REFUSED_WAIT.0;
        let (mut redirects, mut asking) = (0, None);
        let mut present = cmd.clone();
        loop {
            let node = match asking.take() {
                Some(node) => node,
                None => self.node_for(slot, timeout).await?,
            };
            let error =
                match node.client_in(self).send_blocking(&present, effect, left(block, block_end)).await {
                    Err(error) if error.code().is_some() || error.sent() == Sent::No => error,
                    outcome => return outcome,
                };
            let is_asking = present.is_asking();
            present = present_again(cmd, block_end);
            if give_up.is_some_and(|end| end <= Instant::now()) || redirects >= REDIRECTS_MAX {
                return Err(error);
            }
            // What came since it was sent would be missed.
            if matches!(error.kind(), ErrorKind::Lost(LostCause::Planned)) && reads_from_now(cmd) {
                return Err(error);
            }
            match self.redirect(&error, &node, slot, is_asking) {
                Next::Here => {}
                Next::Asking(next) => {
                    present = present.asking();
                    asking = Some(next);
                }
                Next::Wait if cmd.options().retry != RetryChoice::Never => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(REFUSED_WAIT.1);
                    continue;
                }
                Next::Wait | Next::Fail => return Err(error),
            }
            redirects += 1;
            // Who is sent back and forth waits for the nodes to agree.
            if redirects > 3 {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(REFUSED_WAIT.1);
            }
        }
    }

    /// The client of the node that has a key.
    pub(crate) async fn client_for(&self, key: &[u8], timeout: Duration) -> Result<Client, Error> {
        let node = self.node_for(Some(self.slot_of_key(key)), timeout).await?;
        Ok(node.client_in(self).clone())
    }

    /// The engine of the node that has a command's keys.
    pub(crate) async fn engine_for(
        &self,
        cmd: &Cmd,
        timeout: Duration,
    ) -> Result<Arc<crate::engine::Engine>, Error> {
        let slot = self.slot_of(cmd);
        Ok(Arc::clone(self.node_for(slot, timeout).await?.engine_of(self, slot)))
    }

    pub(super) async fn node_for(&self, slot: Option<Slot>, timeout: Duration) -> Result<Arc<Node>, Error> {
        if let Some(node) = self.node(slot) {
            return Ok(node);
        }
        tokio::time::timeout(timeout, self.ready()).await.map_err(|_| self.no_map())??;
        self.node(slot).ok_or_else(|| self.no_map())
    }

    /// What follows from a blocking command's error.
    fn redirect(&self, error: &Error, node: &Arc<Node>, slot: Option<Slot>, is_asking: bool) -> Next {
        let ErrorKind::Server(answer) = error.kind() else {
            // Nothing was sent: its connection did not come about, or its node has left.
            self.request_refresh(towline_client_proto::routing::RefreshCause::Urgent);
            return if error.is_retryable() { Next::Wait } else { Next::Fail };
        };
        let Some(redirect) = Redirect::parse(answer.text()) else {
            return match answer.class() {
                ServerClass::ReadOnly | ServerClass::ClusterDown | ServerClass::MasterDown => {
                    self.request_refresh(towline_client_proto::routing::RefreshCause::Urgent);
                    Next::Wait
                }
                _ if is_demotion(answer) => {
                    self.request_refresh(towline_client_proto::routing::RefreshCause::Urgent);
                    Next::Wait
                }
                _ => Next::Fail,
            };
        };
        let to = redirect.address(&node.address);
        match redirect.kind {
            RedirectKind::Moved if is_asking => Next::Here,
            RedirectKind::Moved => {
                self.note_moved(node.id, slot.unwrap_or(redirect.slot), to.as_ref());
                Next::Here
            }
            RedirectKind::Ask => match to.and_then(|to| self.node_at(&to)) {
                Some(node) => Next::Asking(node),
                None => Next::Wait,
            },
        }
    }

    /// The node at an address that a redirect names.
    fn node_at(&self, address: &towline_cluster::Address) -> Option<Arc<Node>> {
        let mut found = None;
        self.change(|router, hands, now| {
            let mut change = towline_client_proto::routing::Change::default();
            found = router.endpoint_at(now, address, &mut change);
            towline_client_proto::routing::apply(router, now, &change, hands);
        });
        self.lock().nodes.get(&found?).cloned()
    }
}

/// Whether a server has ended a command that blocked because it is no primary any more. `UNBLOCKED` by itself is what an
/// application may have asked for.
fn is_demotion(answer: &ServerError) -> bool {
    answer.code() == "UNBLOCKED" && answer.message().contains("instance state changed")
}

/// What to do with a blocking command that was not executed.
enum Next {
    /// Ask whoever has the slot now.
    Here,
    /// Ask this node, after `ASKING`.
    Asking(Arc<Node>),
    Wait,
    Fail,
}

/// The block time that is left.
fn left(block: BlockTime, end: Option<Instant>) -> BlockTime {
    match end {
        Some(end) => BlockTime::AtMost(end.saturating_duration_since(Instant::now())),
        None => block,
    }
}

fn present_again(cmd: &Cmd, end: Option<Instant>) -> Cmd {
    match end {
        Some(end) => cmd.with_block_time(end.saturating_duration_since(Instant::now())),
        None => cmd.clone(),
    }
}

/// The error that tells more: what may have run goes before what did not.
fn worse(known: Option<Error>, error: Error) -> Error {
    match known {
        Some(known) if known.sent() >= error.sent() => known,
        _ => error,
    }
}

/// A server's error as a value, for joining.
fn as_value(outcome: Result<Reply, Error>) -> Result<Frame, Error> {
    match one(outcome) {
        Err(error) => match error.kind() {
            ErrorKind::Server(answer) => Ok(Frame::Error(answer.to_bytes())),
            _ => Err(error),
        },
        ok => ok,
    }
}

pub(super) fn one(outcome: Result<Reply, Error>) -> Result<Frame, Error> {
    outcome.map(|reply| match reply {
        Reply::One(frame) => frame,
        Reply::Many(frames) => Frame::Array(frames),
    })
}
