//! Doing what is asked for: announcements at their pace, and what follows each.
//!
//! Owns the order and the times of frames. Does not own frames, replays and closing: that is the server's maintenance.
//!
//! ```text
//! migrate, failover   pause ── MIGRATING (all) ── pause ── MIGRATED (all)
//! bind                pause ── MOVING (the moving addresses) ── window ── their old connections are closed
//! slot_migrate        pause ── SMIGRATING (all) ── pause ── SMIGRATED (all)
//! ```
//!
//! An action ends with its last frame, or with the last old connection. Actions on one database take turns.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use towline_server::{DrainState, Notice, Scope, SlotMove};

use super::action::Action;
use super::cluster::Cluster;
use super::database::{Database, locked};
use super::layout::{Node, Policy, SlotEffect};

/// How long after a window's end old connections are waited for. The server gives them a second.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// How often they are looked for.
const CLOSING_POLL: Duration = Duration::from_millis(20);

/// Runs an action to its end.
pub(super) async fn run(cluster: &Arc<Cluster>, id: u64, kind: &'static str, action: Action) {
    let databases = match action.databases() {
        Some(ids) => ids.into_iter().filter_map(|id| cluster.database(id)).collect(),
        None => cluster.databases(),
    };
    // In ascending order, each once, so that two actions never wait for one another.
    let mut databases: Vec<Arc<Database>> = databases;
    databases.sort_by_key(|database| database.id);
    databases.dedup_by_key(|database| database.id);
    let mut turns = Vec::with_capacity(databases.len());
    for database in &databases {
        turns.push(Arc::clone(&database.turn).lock_owned().await);
    }
    locked(&cluster.jobs).start(id, SystemTime::now());
    cluster.say("action", json!({ "action_id": id.to_string(), "action_type": kind, "status": "running" }));
    let result = act(cluster, action).await;
    let (status, text) = match &result {
        Ok(output) => ("ended", output.clone()),
        Err(error) => ("failed", error.as_str().into()),
    };
    cluster.say(
        "action",
        json!({ "action_id": id.to_string(), "action_type": kind, "status": status, "output": text }),
    );
    locked(&cluster.jobs).end(id, result, SystemTime::now());
}

async fn act(cluster: &Arc<Cluster>, action: Action) -> Result<Value, String> {
    let Action::Sequence(steps) = action else { return step(cluster, action).await };
    let mut outputs = Vec::with_capacity(steps.len());
    for (number, action) in (1..).zip(steps) {
        let output = step(cluster, action).await.map_err(|error| format!("action {number}: {error}"))?;
        outputs.push(match &output["output"] {
            Value::String(text) => text.clone(),
            _ => output.to_string(),
        });
    }
    Ok(text(outputs.join("\n")))
}

/// Output as every action but `create_database` gives it.
fn text(text: impl Display) -> Value {
    json!({ "output": text.to_string() })
}

async fn step(cluster: &Arc<Cluster>, action: Action) -> Result<Value, String> {
    let found = |id: u32| cluster.database(id).ok_or_else(|| format!("db:{id} is gone"));
    match action {
        Action::Migrate { database, source, target } => {
            let database = found(database)?;
            let (from, to) = database.layout().migration(source, target)?;
            let shards = database.layout().on(from);
            migrate(cluster, &database, &shards, to).await.map(text)
        }
        Action::MigrateShards { database, shards, target } => {
            let database = found(database)?;
            database.layout().check(target)?;
            if let Some(stray) = database.layout().first_unknown(&shards) {
                return Err(format!("there is no redis:{stray}"));
            }
            migrate(cluster, &database, &shards, target).await.map(text)
        }
        Action::Failover { database, shards } => {
            let database = found(database)?;
            failover(cluster, &database, &shards).await.map(text)
        }
        Action::Bind { database, source, target } => {
            bind(cluster, &*found(database)?, source, target).await.map(text)
        }
        Action::BindPolicy { database, policy } => {
            bind_policy(cluster, &*found(database)?, policy).await.map(text)
        }
        Action::SlotMigrate { database, effect, source, target } => {
            slot_migrate(cluster, &*found(database)?, effect, source, target).await.map(text)
        }
        Action::Create(config) => cluster.create(config).map(|made| made.describe(&cluster.settings)),
        Action::Delete(Some(id)) => delete(cluster, vec![found(id)?]).await.map(text),
        Action::Delete(None) => delete(cluster, cluster.databases()).await.map(text),
        Action::Status => Ok(text(cluster.status())),
        Action::SetNotifications(on) => {
            cluster.set_notifying(on);
            Ok(text(if on { "notifications are on" } else { "notifications are off" }))
        }
        Action::Nothing => Ok(text("nothing to do")),
        Action::Restart { database } => {
            let closed = found(database)?.maintenance.close(Scope::All);
            Ok(text(format!("{closed} connections closed")))
        }
        Action::Outage { database, node, delay } => {
            let databases = match database {
                Some(id) => vec![found(id)?],
                None => cluster.databases(),
            };
            outage(cluster, &databases, node, delay).await.map(text)
        }
        // Sequences are flat.
        Action::Sequence(_) => Err("a sequence in a sequence".to_owned()),
    }
}

/// Names of shards as notices have them.
fn names(shards: &[u32]) -> Vec<String> {
    shards.iter().map(ToString::to_string).collect()
}

async fn migrate(cluster: &Cluster, database: &Database, shards: &[u32], to: Node) -> Result<String, String> {
    let pace = cluster.settings.pace;
    sleep(pace).await;
    let opening = Notice::Migrating { starts_in: pace, shards: names(shards) };
    database.maintenance.announce(Scope::All, opening);
    sleep(pace).await;
    database.layout().relocate(shards, to);
    database.maintenance.announce(Scope::All, Notice::Migrated { shards: names(shards) });
    Ok(format!("shards {} migrated to node:{to}", names(shards).join(", ")))
}

async fn failover(cluster: &Cluster, database: &Database, wanted: &[u32]) -> Result<String, String> {
    let pace = cluster.settings.pace;
    let shards = database.layout().failover(wanted)?;
    sleep(pace).await;
    let opening = Notice::FailingOver { starts_in: pace, shards: names(&shards) };
    database.maintenance.announce(Scope::All, opening);
    sleep(pace).await;
    database.layout().promote_replicas_of(&shards);
    database.maintenance.announce(Scope::All, Notice::FailedOver { shards: names(&shards) });
    Ok(format!("shards {} failed over to their replicas", names(&shards).join(", ")))
}

async fn bind(
    cluster: &Cluster,
    database: &Database,
    source: Option<Node>,
    target: Option<Node>,
) -> Result<String, String> {
    let settings = &cluster.settings;
    let (leaving, to) = database.layout().binding(source, target)?;
    sleep(settings.pace).await;
    let end = Instant::now() + settings.window;
    let mut drains = Vec::with_capacity(leaving.len());
    for &node in &leaving {
        let next = Some(database.successor(settings, to));
        let scope = Scope::Local(database.address(node));
        drains.push(
            database.maintenance.drain(scope, settings.window, next).map_err(|error| error.to_string())?,
        );
    }
    database.layout().bind(to);
    sleep_until(end).await;
    let mine = || {
        let all = database.maintenance.drains();
        all.into_iter().filter(|drain| drains.contains(&drain.seq)).collect::<Vec<_>>()
    };
    let is_open = |state| matches!(state, DrainState::Announced | DrainState::Closing);
    while mine().iter().any(|drain| is_open(drain.state)) && Instant::now() < end + CLOSING_MAX {
        sleep(CLOSING_POLL).await;
    }
    let (mut all, mut told, mut left, mut closed) = (0, 0, 0, 0);
    for drain in mine() {
        all += drain.connections;
        told += drain.told;
        left += drain.left;
        closed += drain.closed;
    }
    Ok(format!(
        "endpoint:{}:1 moved to node:{to}: of {all} connections {told} were told, {left} left and {closed} were closed",
        database.id
    ))
}

/// Binds an endpoint, perhaps in another way than before. A way that adds nodes, or takes them away, moves nobody.
async fn bind_policy(cluster: &Cluster, database: &Database, policy: Policy) -> Result<String, String> {
    if database.layout().policy == policy {
        return bind(cluster, database, None, None).await;
    }
    sleep(cluster.settings.pace).await;
    database.layout().policy = policy;
    cluster.save_endpoints();
    Ok(format!("endpoint:{}:1 is bound to {} now; no connection has to move", database.id, policy.name()))
}

async fn slot_migrate(
    cluster: &Cluster,
    database: &Database,
    effect: SlotEffect,
    source: Option<Node>,
    target: Option<Node>,
) -> Result<String, String> {
    let pace = cluster.settings.pace;
    let plan = database.layout().slot_plan(effect, source, target)?;
    let slots = plan.slots.to_string();
    sleep(pace).await;
    database.maintenance.announce(Scope::All, Notice::Smigrating { slots: slots.clone() });
    sleep(pace).await;
    database.layout().apply(&plan);
    cluster.save_endpoints();
    let (source, destination) = (database.address(plan.from), database.address(plan.to));
    let moved =
        SlotMove { source: source.to_string(), destination: destination.to_string(), slots: slots.clone() };
    database.maintenance.announce(Scope::All, Notice::Smigrated { moves: vec![moved] });
    Ok(format!("slots {slots} moved from {source} to {destination}"))
}

async fn delete(cluster: &Cluster, databases: Vec<Arc<Database>>) -> Result<String, String> {
    let mut deleted = Vec::with_capacity(databases.len());
    for database in databases {
        let id = database.id;
        if cluster.remove(id).is_none() {
            continue;
        }
        let stopped = tokio::task::spawn_blocking(move || database.stop()).await;
        let stopped = stopped.map_err(|_| format!("db:{id}: a thread of the server panicked"))?;
        stopped.map_err(|error| format!("db:{id}: {error}"))?;
        deleted.push(format!("db:{id}"));
    }
    Ok(format!("deleted: {}", deleted.join(", ")))
}

/// Makes addresses unreachable for a while: their connections end without warning and new ones are refused.
async fn outage(
    cluster: &Cluster,
    databases: &[Arc<Database>],
    node: Option<Node>,
    delay: Option<Duration>,
) -> Result<String, String> {
    if let Some(tls) = databases.iter().find(|database| database.config.is_tls) {
        return Err(format!("db:{} has TLS, and its port cannot be closed and opened again", tls.id));
    }
    let nodes = node.map_or(1..=cluster.settings.addresses.len(), |node| node..=node);
    let mut closed = 0;
    for database in databases {
        for node in nodes.clone() {
            database.stop_listening(node);
            closed += database.maintenance.close(Scope::Local(database.address(node)));
        }
    }
    sleep(delay.unwrap_or(cluster.settings.pace)).await;
    for database in databases {
        for node in nodes.clone() {
            database.listen(node).map_err(|error| format!("db:{}: {error}", database.id))?;
        }
    }
    Ok(format!("{closed} connections closed; the addresses are back"))
}
