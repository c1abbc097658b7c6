//! How far replicas are behind their primaries.
//!
//! Owns the asking, and what an answer means. Does not own what follows from it for a read
//! (`towline_client_proto::routing::choose`). Nothing is asked unless a bound is set.
//!
//! A primary is asked for its replication offset first, its replicas after it has answered. So a replica that says an offset
//! at least as great had everything that the primary had when it was asked, and one that says less lacks at most the
//! difference of that. What was written since then is not in the number; the next look is about [`LOOK_EVERY`] away. A replica
//! that has no link to its primary, or does not answer within [`ANSWER_TIME`], counts as lost; so do all whose primary does not
//! answer, as nobody knows what they lack.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use towline_client_proto::routing::{EndpointId, Lag};
use towline_client_proto::{LinkState, LostCause, Reply};
use towline_resp::frame::Frame;

use super::Cluster;
use super::node::Node;
use crate::clock;
use crate::engine::Engine;
use crate::lease::say;

/// From one look to the next: at the pace at which replicas acknowledge to their primaries.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// From one look to the next if somebody waits for it: about what a connection needs to come up.
const PAUSE: Duration = Duration::from_millis(50);

/// A node has this long to answer. One that takes longer is busy, or gone.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(1);

/// The lag of one replica, as it was last seen.
#[derive(Debug)]
pub(super) struct LastLag(AtomicU64);

const UNMEASURED: u64 = u64::MAX;
const LOST: u64 = u64::MAX - 1;

impl Default for LastLag {
    fn default() -> Self {
        Self(AtomicU64::new(UNMEASURED))
    }
}

impl LastLag {
    pub(super) fn get(&self) -> Lag {
        match self.0.load(Ordering::Relaxed) {
            UNMEASURED => Lag::Unmeasured,
            LOST => Lag::Lost,
            bytes => Lag::Bytes(bytes),
        }
    }

    pub(super) fn set(&self, lag: Lag) {
        let number = match lag {
            Lag::Unmeasured => UNMEASURED,
            Lag::Lost => LOST,
            Lag::Bytes(bytes) => bytes.min(LOST - 1),
        };
        self.0.store(number, Ordering::Relaxed);
    }
}

/// The calls between those who read and the task that measures.
#[derive(Debug, Default)]
pub(super) struct Measure {
    wanted: Notify,
    done: Notify,
}

impl Measure {
    /// Asks for a look, and waits for the end of one.
    pub(super) async fn measured(&self) {
        // Made before the look is asked for, so that its end is not missed.
        let done = self.done.notified();
        self.wanted.notify_one();
        done.await;
    }
}

/// Measures as long as the cluster's client lives.
pub(super) async fn keep(cluster: Weak<Cluster>, measure: Arc<Measure>) {
    loop {
        {
            let Some(present) = cluster.upgrade() else { return };
            if present.is_closed() {
                return;
            }
            present.measure().await;
        }
        measure.done.notify_waiters();
        tokio::time::sleep(PAUSE).await;
        // Whether it was asked for or the time is over is all the same.
        let _ = timeout(LOOK_EVERY - PAUSE, measure.wanted.notified()).await;
    }
}

impl Cluster {
    /// One look at all replicas that are connected for reads.
    async fn measure(&self) {
        let mut looks: JoinSet<()> = JoinSet::new();
        for (owner, replicas) in self.routes.load().read_shards() {
            let replicas: Vec<Arc<Node>> = replicas
                .into_iter()
                .filter(|node| node.reader().is_some_and(|reader| is_up(reader.inner.endpoint())))
                .collect();
            if !replicas.is_empty() {
                let owner = Arc::clone(owner.engine_in(self));
                looks.spawn_on(look_at_shard(owner, replicas), &self.runtime);
            }
        }
        while looks.join_next().await.is_some() {}
    }
}

fn is_up(engine: &Engine) -> bool {
    engine.lock().bridge.link_state() == LinkState::Up
}

async fn look_at_shard(owner: Arc<Engine>, replicas: Vec<Arc<Node>>) {
    let primary = match info(&owner).await {
        Some(facts) => number(&facts, "master_repl_offset"),
        None => None,
    };
    let mut answers: JoinSet<(EndpointId, Lag)> = JoinSet::new();
    for node in &replicas {
        let Some(reader) = node.reader() else { continue };
        let (id, engine) = (node.id, Arc::clone(reader.inner.endpoint()));
        answers.spawn(async move {
            let facts = info(&engine).await;
            if facts.is_none() {
                give_up(&engine);
            }
            (id, facts.map_or(Lag::Lost, |facts| lag(primary, &facts)))
        });
    }
    while let Some(answer) = answers.join_next().await {
        let Ok((id, lag)) = answer else { continue };
        if let Some(node) = replicas.iter().find(|node| node.id == id) {
            node.set_lag(lag);
        }
    }
}

/// What a node says of its replication; `None` if it does not within the time.
async fn info(engine: &Engine) -> Option<BTreeMap<String, String>> {
    match say(engine, &[b"INFO", b"replication"], ANSWER_TIME).await {
        Ok(Reply::One(frame)) => facts(&frame),
        Ok(Reply::Many(_)) | Err(_) => None,
    }
}

/// The lines of `INFO`.
fn facts(frame: &Frame) -> Option<BTreeMap<String, String>> {
    let text = match frame {
        Frame::Bulk(bytes) | Frame::Verbatim { text: bytes, .. } => std::str::from_utf8(bytes).ok()?,
        _ => return None,
    };
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    Some(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn number(facts: &BTreeMap<String, String>, name: &str) -> Option<u64> {
    facts.get(name)?.parse().ok()
}

/// The lag of a replica that says this, given what its primary said before.
fn lag(primary: Option<u64>, replica: &BTreeMap<String, String>) -> Lag {
    let is_linked = replica.get("master_link_status").is_some_and(|status| status == "up");
    match (primary, number(replica, "slave_repl_offset")) {
        (Some(primary), Some(offset)) if is_linked => Lag::Bytes(primary.saturating_sub(offset)),
        _ => Lag::Lost,
    }
}

/// Ends the connection to a replica that does not answer, so that the reads on it go elsewhere.
fn give_up(engine: &Engine) {
    let mut state = engine.lock();
    let generation = state.bridge.generation();
    if state.bridge.link_state() == LinkState::Up {
        state.bridge.lost(clock::now(), generation, LostCause::Silent);
        crate::engine::wake_owner(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &'static str) -> BTreeMap<String, String> {
        facts(&Frame::Bulk(text.into())).unwrap()
    }

    #[test]
    fn a_replica_lacks_what_its_primary_had_before() {
        let replica =
            said("# Replication\r\nrole:slave\r\nmaster_link_status:up\r\nslave_repl_offset:700\r\n");
        assert_eq!(lag(Some(1000), &replica), Lag::Bytes(300));
        assert_eq!(lag(Some(600), &replica), Lag::Bytes(0), "it has got more since");
        assert_eq!(lag(None, &replica), Lag::Lost, "nobody knows");
        let cut = said("role:slave\r\nmaster_link_status:down\r\nslave_repl_offset:700\r\n");
        assert_eq!(lag(Some(700), &cut), Lag::Lost);
        assert_eq!(lag(Some(700), &said("role:master\r\nmaster_repl_offset:700\r\n")), Lag::Lost);
    }
}
