//! Slots that move as a whole, driven by this node (`CLUSTER MIGRATESLOTS`).
//!
//! Owns: starting the machines of `towline_cluster_proto::migration` for what the log says, doing what they say, links that bring slots, and
//! what is shown of it all. Does **not** own the decision (the log) nor the protocol (the machines).
//!
//! ```text
//! log: BeginMigration --follow--> Source driver <--link--> Target driver <--follow-- log: BeginMigration
//!                                  | stream, park           | importer's thread, park
//!                                  +-- CommitMigration --> log --> both: gate, then unpark
//! ```
//!
//! Everything here lives on the cluster's thread, except what takes long: putting batches into the store and freeing keys.

mod driving;
mod importer;
mod link;
mod source;
mod target;
#[cfg(test)]
mod tests;

use super::each;
use super::log::{Answer, MetadataLog};
use crate::failpoint;
use crate::shared::Shared;
use link::Opened;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::spawn_local;
use tokio::time::timeout;
use towline_cluster::Slot;
use towline_cluster_proto::migration::wire::Frame;
use towline_cluster_proto::migration::{Config, Decision, Proposal, Status};
use towline_cluster_proto::{Metadata, Migration, MigrationState, NodeId, Ranges};
use towline_sansio::Instant;
use towline_store::changes::{Changes, Settings};
use towline_store::keyspace::Keyspace;

/// How long a link may take to say what it is for, and this node to hear of that migration from the log.
const HELLO_TIME_MAX: Duration = Duration::from_secs(5);
/// What a node has left of slots that moved while it was down is dropped at its start if they moved so recently: later, somebody may have
/// put it there by hand.
const LEFTOVERS_MS: u64 = 60 * 60 * 1000;

/// Makes a connection to a node, for slots.
pub(crate) type Dial = Arc<dyn Fn(NodeId) -> Answer<Result<TcpStream, String>> + Send + Sync>;

/// What is shown of a migration that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Live {
    /// In Valkey's words.
    pub(crate) state: &'static str,
    /// What went wrong last.
    pub(crate) message: String,
    /// When the other side was last heard of, in unix milliseconds; 0 for never.
    pub(crate) heard_ms: u64,
    /// Bytes that are known to be still to come.
    pub(crate) bytes_remaining: u64,
}

/// What this node knows of its migrations beyond what the log says; for whoever asks.
#[derive(Debug, Default)]
pub(crate) struct Migrations {
    live: Mutex<BTreeMap<NodeId, Live>>,
    /// Those that this process has proposed to begin, and that are not over.
    begun: Mutex<BTreeSet<NodeId>>,
}

impl Migrations {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self) -> MutexGuard<'_, BTreeSet<NodeId>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process is about to propose the beginning of a migration that takes slots away from this node.
    pub(crate) fn note_begun(&self, id: NodeId) {
        self.begun().insert(id);
    }

    /// What was proposed of these has its outcome, or none that is known. One that is not in the metadata was not begun; should it begin all the
    /// same, it is as one of an earlier process, and is ended.
    pub(crate) fn forget_unmade(&self, ids: impl Iterator<Item = NodeId>, metadata: &Metadata) {
        let mut begun = self.begun();
        ids.filter(|id| !metadata.migrations().contains_key(id)).for_each(|id| _ = begun.remove(&id));
    }

    /// Whether an earlier process of this node may have worked on the migration, as its source: then nobody knows what it has proposed, and
    /// the slots are parked until the log has decided.
    pub(crate) fn is_interrupted(&self, id: NodeId) -> bool {
        !self.begun().contains(&id)
    }

    /// Those that this node works on.
    pub(crate) fn all(&self) -> BTreeMap<NodeId, Live> {
        self.lock().clone()
    }
}

/// What drivers share.
struct Node {
    shared: Arc<Shared>,
    log: Arc<dyn MetadataLog>,
    dial: Dial,
    epoch: std::time::Instant,
}

impl Node {
    /// This node's name; `CLUSTER RESET` may change it.
    fn me(&self) -> NodeId {
        self.log.standing().borrow().node
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn config(&self) -> Config {
        Config::default()
    }

    /// What the log says of a migration that this node works on, once this node's workers see it, too.
    fn decision(&self, id: NodeId, metadata: &Metadata) -> Option<Decision> {
        let decision = match metadata.migrations().get(&id).map(|migration| &migration.state) {
            Some(MigrationState::Active) => return None,
            Some(MigrationState::Done) => Decision::Committed,
            Some(MigrationState::Ended { .. }) | None => Decision::Ended,
        };
        failpoint::pass("decided");
        if let Some(cluster) = self.shared.cluster.as_deref() {
            cluster.catch_up(&self.shared);
        }
        Some(decision)
    }

    /// Puts a proposal into the log; `failed` is called if it has no outcome.
    fn propose(&self, id: NodeId, proposal: Proposal, failed: impl FnOnce() + 'static) {
        let log = Arc::clone(&self.log);
        spawn_local(async move {
            let change = proposal.into_change(id, crate::connection::unix_ms());
            failpoint::change("ask", &change);
            if let Err(error) = log.propose(change).await {
                tracing::warn!(migration = %id, "{error}");
                failed();
            }
        });
    }

    fn set_parked(&self, slots: &Ranges, is_on: bool) {
        set_parked(&self.shared, slots, is_on);
    }

    fn show(&self, id: NodeId, status: &Status<'_>) {
        let Some(cluster) = self.shared.cluster.as_deref() else { return };
        let ago = |heard: Instant| self.now().since(heard).as_millis() as u64;
        let live = Live {
            state: status.state,
            message: status.message.to_owned(),
            heard_ms: status.heard.map_or(0, |heard| crate::connection::unix_ms().saturating_sub(ago(heard))),
            bytes_remaining: status.bytes_remaining,
        };
        cluster.migrations.lock().insert(id, live);
    }

    fn hide(&self, id: NodeId) {
        if let Some(cluster) = self.shared.cluster.as_deref() {
            cluster.migrations.lock().remove(&id);
            cluster.migrations.begun().remove(&id);
        }
    }
}

/// From now on nothing on these slots runs, or it does again.
fn set_parked(shared: &Shared, slots: &Ranges, is_on: bool) {
    match shared.cluster.as_deref() {
        Some(cluster) if is_on => cluster.park(&shared.store, slots),
        Some(cluster) => cluster.unpark(&shared.store, slots),
        None => {}
    }
}

/// Frees the keys of those of these slots that are not this node's, and are not coming in. Takes as long as there are keys; those who track one of
/// them are told.
fn drop_slots(shared: &Shared, slots: impl Iterator<Item = Slot>) -> usize {
    let Some(cluster) = shared.cluster.as_deref() else { return 0 };
    let (settings, mut changes): (Settings, _) = (shared.config().settings(), Changes::new(0));
    let mut removed = 0;
    for slot in slots {
        let mut held = Keyspace::hold(&shared.store, [slot], &settings, &mut changes, 0, 0);
        // Whoever makes it this node's again, or hides it, passes its lock.
        let known = cluster.known();
        let is_others = known.metadata.owner(slot).is_some_and(|owner| owner != known.me);
        if is_others && !shared.store.is_hidden(slot) {
            removed += held.flush_slot(slot);
        }
        drop(held);
        for (key, clients) in std::mem::take(&mut changes.invalidated) {
            crate::tracking::invalidate(shared, &key, &clients, None);
        }
        changes.tables.clear();
        changes.garbage.clear();
    }
    removed
}

/// A migration that is worked on.
#[derive(Debug)]
struct Running {
    slots: Ranges,
    /// Where links are brought, at the target.
    door: Option<UnboundedSender<Opened>>,
}

impl Running {
    fn meets(&self, slots: &Ranges) -> bool {
        let meets = |&(first, last): &(Slot, Slot)| {
            slots.iter().any(|&(other_first, other_last)| first <= other_last && other_first <= last)
        };
        self.slots.iter().any(meets)
    }
}

/// The migrations that this node works on.
pub(crate) struct Manager {
    node: Rc<Node>,
    running: Rc<RefCell<BTreeMap<NodeId, Running>>>,
    ended: Arc<Notify>,
    /// Whether leftovers were looked for.
    has_looked: bool,
    /// Whether this node was a fresh part of its cluster when it looked last.
    was_fresh: bool,
    /// Migrations to this node that were under way before it was: an earlier process may have worked on them.
    found: BTreeSet<NodeId>,
    /// Migrations that were seen under way and are still to be begun here, also if they are over by then: slots may be parked, or keys left.
    waiting: BTreeMap<NodeId, Migration>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager").field("running", &self.running.borrow().len()).finish_non_exhaustive()
    }
}

impl Manager {
    /// Nothing is worked on yet.
    pub(crate) fn new(shared: &Arc<Shared>, log: &Arc<dyn MetadataLog>, dial: Dial) -> Self {
        let (shared, log) = (Arc::clone(shared), Arc::clone(log));
        let node = Rc::new(Node { shared, log, dial, epoch: std::time::Instant::now() });
        Self {
            node,
            running: Rc::default(),
            ended: Arc::default(),
            has_looked: false,
            was_fresh: false,
            found: BTreeSet::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Begins to work on what the log says. Called with new metadata *before* workers see them: slots of a migration that a crash
    /// interrupted are parked before anything on them is served.
    pub(crate) fn follow(&mut self, metadata: &Metadata) {
        // Not before this node knows all that is decided: by what it knew when it stopped, slots may be another node's that are its own again.
        let is_fresh = self.node.log.standing().borrow().is_fresh;
        if is_fresh && !std::mem::replace(&mut self.has_looked, true) {
            self.drop_leftovers(metadata);
        }
        let me = self.node.me();
        for (&id, migration) in metadata.migrations() {
            if !self.was_fresh && migration.target == me && migration.is_active() {
                self.found.insert(id);
            }
            let is_mine = migration.source == me || migration.target == me;
            if is_mine && migration.is_active() && !self.running.borrow().contains_key(&id) {
                self.waiting.entry(id).or_insert_with(|| migration.clone());
            }
        }
        self.was_fresh |= is_fresh;
        self.start_waiting();
    }

    /// Begins to work on those of which no slot is worked on any more, in the order of their numbers.
    fn start_waiting(&mut self) {
        let mut waiting: Vec<(NodeId, Migration)> = std::mem::take(&mut self.waiting).into_iter().collect();
        waiting.sort_unstable_by_key(|(_, migration)| migration.number);
        for (id, migration) in waiting {
            if self.is_busy(&migration) {
                self.waiting.insert(id, migration);
            } else {
                self.start(id, &migration);
            }
        }
    }

    /// Resolves when [`Self::follow`] is to be called although nothing new is known: a migration has come to its end here.
    pub(crate) fn ended(&self) -> Arc<Notify> {
        Arc::clone(&self.ended)
    }

    /// Whether an earlier one of the same slots is still worked on: what that drops or shows at its end must not be what this one brings.
    fn is_busy(&self, migration: &Migration) -> bool {
        self.running.borrow().values().any(|other| other.meets(&migration.slots))
    }

    fn start(&self, id: NodeId, migration: &Migration) {
        let (node, running, ended) =
            (Rc::clone(&self.node), Rc::clone(&self.running), Arc::clone(&self.ended));
        let end = move |node: &Node| {
            node.hide(id);
            running.borrow_mut().remove(&id);
            ended.notify_one();
        };
        let work = |door| {
            self.running.borrow_mut().insert(id, Running { slots: migration.slots.clone(), door });
        };
        let migration = migration.clone();
        if migration.source == node.me() {
            let cluster = node.shared.cluster.as_deref();
            let is_resumed = cluster.is_some_and(|cluster| cluster.migrations.is_interrupted(id));
            work(None);
            let driver = source::Driver::new(Rc::clone(&node), id, migration, is_resumed);
            spawn_local(async move {
                driver.run().await;
                end(&node);
            });
            return;
        }
        let is_resumed = self.found.contains(&id);
        match target::Driver::new(Rc::clone(&node), id, migration.clone(), is_resumed) {
            Ok(driver) => {
                work(Some(driver.door()));
                spawn_local(async move {
                    driver.run().await;
                    end(&node);
                });
            }
            Err(error) => tracing::error!(migration = %id, "no thread for the import: {error}"),
        }
    }

    /// A node wants to bring slots.
    pub(crate) fn take(&self, from: NodeId, stream: TcpStream) {
        let (node, running) = (Rc::clone(&self.node), Rc::clone(&self.running));
        spawn_local(async move {
            let greeted = timeout(HELLO_TIME_MAX, async {
                let mut reader = link::Reader::new(stream);
                let Ok(Some(Frame::Hello { version, migration, source, attempt })) = reader.next().await
                else {
                    return None;
                };
                (source == from).then_some(())?;
                // The source may have heard of it from the log first.
                let mut metadata = node.log.metadata();
                let known = |metadata: &Arc<Metadata>| {
                    let found = metadata.migrations().get(&migration);
                    found.is_some_and(|found| found.source == from && found.target == node.me())
                };
                metadata.wait_for(known).await.ok()?;
                loop {
                    let links = running.borrow().get(&migration).and_then(|running| running.door.clone());
                    if let Some(links) = links {
                        return Some((links, Opened { attempt, version, reader }));
                    }
                    // The manager follows the same metadata within this turn, or when an earlier migration has ended here, or this one is over.
                    let is_over = |metadata: &Arc<Metadata>| {
                        !metadata.migrations().get(&migration).is_some_and(Migration::is_active)
                    };
                    if is_over(&metadata.borrow_and_update()) {
                        return None;
                    }
                    tokio::task::yield_now().await;
                }
            });
            match greeted.await {
                Ok(Some((links, opened))) => _ = links.send(opened),
                Ok(None) | Err(_) => {
                    tracing::warn!(%from, "a link for a migration that is not known was closed")
                }
            }
        });
    }

    /// Keys of slots that moved away, or did not come after all, while this node was down. The other node has them.
    fn drop_leftovers(&self, metadata: &Metadata) {
        let (me, shared) = (self.node.me(), Arc::clone(&self.node.shared));
        let since_ms = shared.started_ms.saturating_sub(LEFTOVERS_MS);
        let mut latest: BTreeMap<Slot, &Migration> = BTreeMap::new();
        // Of those that this node had part in: what others did with the slot afterwards says nothing of what is here.
        let is_of = |migration: &&Migration| migration.source == me || migration.target == me;
        let mut all: Vec<&Migration> = metadata.migrations().values().filter(is_of).collect();
        all.sort_unstable_by_key(|migration| migration.number);
        for migration in all {
            latest.extend(each(&migration.slots).map(|slot| (slot, migration)));
        }
        let is_left = |slot: Slot, migration: &Migration| {
            let moved_away = migration.source == me && migration.state == MigrationState::Done;
            let never_came =
                migration.target == me && matches!(migration.state, MigrationState::Ended { .. });
            (moved_away || never_came)
                && migration.updated_ms >= since_ms
                && metadata.owner(slot).is_some_and(|owner| owner != me)
                && metadata.marker(me, slot).is_none()
        };
        let slots: Vec<Slot> = latest
            .into_iter()
            .filter(|&(slot, migration)| is_left(slot, migration))
            .map(|(slot, _)| slot)
            .collect();
        if slots.is_empty() {
            return;
        }
        tokio::task::spawn_blocking(move || {
            // What is still to be loaded would come back.
            if shared.persistence.loading.wait().is_err() {
                return;
            }
            if let Some(cluster) = shared.cluster.as_deref() {
                cluster.catch_up(&shared);
            }
            let keys = drop_slots(&shared, slots.iter().copied());
            if keys > 0 {
                tracing::info!(
                    slots = slots.len(),
                    keys,
                    "dropped keys of slots whose migration ended while this node was down"
                );
            }
        });
    }
}
