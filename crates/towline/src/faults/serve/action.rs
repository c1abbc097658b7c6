//! What can be asked for, and reading it.
//!
//! Owns the names and parameters of actions, and saying what is wrong with them. Does not own doing them (see
//! [`super::perform`]).
//!
//! Numbers may be texts, since half of the harnesses send them so.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::database::DatabaseConfig;
use super::layout::{Node, Policy, SlotEffect};
use super::rladmin::{self, Command};

/// Steps of a sequence. 100: more than anybody writes.
const STEPS_MAX: usize = 100;

/// Shards of a database: as many as a large cluster has.
const SHARDS_MAX: u64 = 128;

/// The longest outage: an hour.
const OUTAGE_MAX_S: f64 = 3600.0;

/// What can be asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Migrate {
        database: u32,
        source: Option<Node>,
        target: Option<Node>,
    },
    MigrateShards {
        database: u32,
        shards: Vec<u32>,
        target: Node,
    },
    Failover {
        database: u32,
        shards: Vec<u32>,
    },
    Bind {
        database: u32,
        source: Option<Node>,
        target: Option<Node>,
    },
    /// A bind that may change how the endpoint is bound.
    BindPolicy {
        database: u32,
        policy: Policy,
    },
    SlotMigrate {
        database: u32,
        effect: SlotEffect,
        source: Option<Node>,
        target: Option<Node>,
    },
    Sequence(Vec<Self>),
    Create(DatabaseConfig),
    /// One, or all.
    Delete(Option<u32>),
    Status,
    SetNotifications(bool),
    /// Nothing to do, and that is right.
    Nothing,
    /// Every connection of a database is closed.
    Restart {
        database: u32,
    },
    /// Addresses are gone for so long; `None` is all databases, or all nodes.
    Outage {
        database: Option<u32>,
        node: Option<Node>,
        delay: Option<Duration>,
    },
}

impl Action {
    /// The databases that it acts on: these, or with `None` all of them.
    pub(super) fn databases(&self) -> Option<Vec<u32>> {
        match self {
            Self::Migrate { database, .. }
            | Self::MigrateShards { database, .. }
            | Self::Failover { database, .. }
            | Self::Bind { database, .. }
            | Self::BindPolicy { database, .. }
            | Self::SlotMigrate { database, .. }
            | Self::Restart { database }
            | Self::Delete(Some(database))
            | Self::Outage { database: Some(database), .. } => Some(vec![*database]),
            Self::Delete(None) | Self::Outage { database: None, .. } => None,
            Self::Sequence(steps) => {
                steps.iter().map(Self::databases).try_fold(Vec::new(), |mut all, step| {
                    all.extend(step?);
                    Some(all)
                })
            }
            Self::Create(_) | Self::Status | Self::SetNotifications(_) | Self::Nothing => Some(Vec::new()),
        }
    }
}

/// What reading an action has to know.
pub(super) trait Known {
    /// Whether there is such a database.
    fn has_database(&self, id: u32) -> bool;
    /// The only database, if there is just one.
    fn only_database(&self) -> Option<u32>;
    /// Whether databases can have TLS.
    fn has_tls(&self) -> bool;
    /// How many nodes there are.
    fn node_count(&self) -> usize;
}

/// An action's canonical name, and what it is.
pub(super) type Parsed = (&'static str, Action);

/// Reads an action.
///
/// # Errors
/// One line on what is wrong; the caller's mistake.
pub(super) fn parse(kind: &str, parameters: &Value, known: &dyn Known) -> Result<Parsed, String> {
    let empty = Map::new();
    let map = match parameters {
        Value::Null => &empty,
        Value::Object(map) => map,
        _ => return Err("parameters is no object".to_owned()),
    };
    let read = Reader { map, known };
    let (name, action) = match kind {
        "migrate" => ("migrate", read.migrate()?),
        "failover" => ("failover", Action::Failover { database: read.database()?, shards: Vec::new() }),
        "bind" => ("bind", read.bind()?),
        "slot_migrate" => ("slot_migrate", read.slot_migrate()?),
        "topology_change_standalone" => ("topology_change_standalone", read.topology_change()?),
        "sequence_of_actions" => ("sequence_of_actions", read.sequence()?),
        "create_database" => ("create_database", Action::Create(read.config()?)),
        "delete_database" => ("delete_database", read.delete()?),
        "execute_rladmin_command" => {
            let text = read.text("rladmin_command")?.ok_or("rladmin_command is missing")?;
            ("execute_rladmin_command", rladmin_action(text, || read.database(), known)?)
        }
        "update_cluster_config" => ("update_cluster_config", read.cluster_config()?),
        "reset_cluster" => match read.flag("clean_all_dbs")? {
            true => ("reset_cluster", Action::Delete(None)),
            // No node is ever in maintenance mode here, so that is clean.
            false => ("reset_cluster", Action::Nothing),
        },
        "dmc_restart" => ("dmc_restart", Action::Restart { database: read.database()? }),
        "network_failure" => ("network_failure", read.outage(Some(read.database()?), None)?),
        "proxy_failure" => ("proxy_failure", read.outage(Some(read.database()?), read.node("node_id")?)?),
        "node_failure" => {
            let node = read.node("node_id")?.ok_or("node_id is missing")?;
            ("node_failure", read.outage(None, Some(node))?)
        }
        "cluster_failure" => ("cluster_failure", read.outage(None, None)?),
        other => return Err(impossible(other)),
    };
    Ok((name, action))
}

/// Why an action means nothing here.
fn impossible(kind: &str) -> String {
    let why = match kind {
        "execute_rlutil_command" => "there is no rlutil behind an embedded server",
        "reshard" => {
            "the number of shards is fixed when a database is created; slot_migrate with slot-shuffle moves slots"
        }
        "shard_failure" => {
            "shards are labels on one store: none can fail alone, and a store that fails has no replica to take over; \
             failover announces a planned one"
        }
        "node_remove" => {
            "the nodes are the addresses of the command line; migrate and bind leave one, node_failure makes it unreachable"
        }
        "maintenance_mode" => {
            "nodes have no modes; sequence_of_actions of migrate and bind is what clients see of it"
        }
        _ => {
            return format!(
                "unknown action `{kind}`; there are bind, cluster_failure, create_database, delete_database, dmc_restart, \
                 execute_rladmin_command, failover, migrate, network_failure, node_failure, proxy_failure, reset_cluster, \
                 sequence_of_actions, slot_migrate, topology_change_standalone and update_cluster_config"
            );
        }
    };
    format!("{kind} means nothing here: {why}")
}

/// What an `rladmin` command does. `default` is asked for the database when the command does not name one.
///
/// # Errors
/// One line on what is wrong; the caller's mistake.
pub(super) fn rladmin_action(
    text: &str,
    default: impl Fn() -> Result<u32, String>,
    known: &dyn Known,
) -> Result<Action, String> {
    let (named, command) = rladmin::parse(text)?;
    if command == Command::Status {
        return Ok(Action::Status);
    }
    let exists = |id: u32| match known.has_database(id) {
        true => Ok(id),
        false => Err(format!("there is no db:{id}")),
    };
    let database = || named.map_or_else(&default, exists);
    Ok(match command {
        Command::Status => Action::Status,
        Command::MigrateNode { from, to } => {
            Action::Migrate { database: database()?, source: Some(from), target: Some(to) }
        }
        Command::MigrateShards { shards, to } => {
            Action::MigrateShards { database: database()?, shards, target: to }
        }
        Command::Bind { database, policy } => Action::BindPolicy { database: exists(database)?, policy },
        Command::Failover { shards } => Action::Failover { database: database()?, shards },
    })
}

/// The effects of `topology_change_standalone`, and the ways to each.
pub(super) const TOPOLOGY_EFFECTS: [(&str, &[&str]); 4] = [
    ("data_movement_conn_drop", &["migrate", "failover", "maintenance_mode"]),
    ("data_movement_no_conn_drop", &["migrate", "failover"]),
    ("conn_drop", &["bind"]),
    // Connections are told of it by nothing but their resolver, and there is none here.
    ("dns_resolution_change", &[]),
];

/// The ways to each effect of `slot_migrate`. They are names for one thing here: the same frames follow.
pub(super) const fn slot_triggers(effect: SlotEffect) -> &'static [&'static str] {
    match effect {
        SlotEffect::RemoveAdd | SlotEffect::Remove => &["migrate", "failover", "maintenance_mode"],
        SlotEffect::Add => &["migrate", "failover"],
        SlotEffect::Shuffle => &["migrate", "failover", "reshard"],
    }
}

/// What `GET` on an effect's path answers: the ways to it, each with a database that it can happen to.
///
/// # Errors
/// One line on an effect that does not exist.
pub(super) fn describe_effect(path: &str, effect: &str, node_count: usize) -> Result<Value, String> {
    let triggers: &[&str] = match path {
        "slot-migrate" => slot_triggers(slot_effect(effect)?),
        _ => topology_effect(effect)?,
    };
    let describe = |&name: &&str| {
        let has_replicas = name == "failover";
        let policy = if path == "slot-migrate" { Policy::MasterNodes } else { Policy::Single };
        let shards = if path == "slot-migrate" { 3 } else { 2 };
        json!({
            "name": name,
            "description": format!("{effect} by {name}"),
            "requirements": [{
                "dbconfig": {
                    // Harnesses cut the last two parts off.
                    "name": format!("{path}-{effect}-{name}-db-1").replace('_', "-"),
                    "port": 0,
                    "memory_size": 134_217_728,
                    "replication": has_replicas || path != "slot-migrate",
                    "eviction_policy": "noeviction",
                    "sharding": true,
                    "shards_count": shards,
                    "oss_cluster": false,
                    "proxy_policy": policy.name(),
                    "shards_placement": if policy == Policy::Single { "dense" } else { "sparse" },
                },
                "cluster": { "index": 0, "nodes": node_count },
                "description": "an embedded server with this layout",
            }],
        })
    };
    Ok(json!({
        "effect": effect,
        "cluster": { "index": 0, "nodes": node_count },
        "triggers": triggers.iter().map(describe).collect::<Vec<_>>(),
    }))
}

fn slot_effect(text: &str) -> Result<SlotEffect, String> {
    let found = SlotEffect::ALL.into_iter().find(|effect| effect.name() == text);
    found
        .ok_or_else(|| format!("unknown effect `{text}`; there are remove-add, remove, add and slot-shuffle"))
}

fn topology_effect(text: &str) -> Result<&'static [&'static str], String> {
    let found = TOPOLOGY_EFFECTS.iter().find(|(name, _)| *name == text);
    found.map(|(_, triggers)| *triggers).ok_or_else(|| {
        let names = TOPOLOGY_EFFECTS.map(|(name, _)| name).join(", ");
        format!("unknown effect `{text}`; there are {names}")
    })
}

/// The parameters of one action.
struct Reader<'a> {
    map: &'a Map<String, Value>,
    known: &'a dyn Known,
}

impl Reader<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<Option<&str>, String> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| format!("{name} is no text"))).transpose()
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let read = |value: &Value| match value {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        };
        self.get(name)
            .map(|value| read(value).ok_or_else(|| format!("{name} is no whole number")))
            .transpose()
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(format!("{name} is neither true nor false")),
        }
    }

    fn database(&self) -> Result<u32, String> {
        // There is a harness that writes it like this in sequences.
        let number =
            self.number("bdb_id")?.map_or_else(|| self.number("bdbId"), |number| Ok(Some(number)))?;
        let Some(number) = number else {
            return self.known.only_database().ok_or_else(|| "bdb_id is missing".to_owned());
        };
        let id = u32::try_from(number).ok().filter(|&id| self.known.has_database(id));
        id.ok_or_else(|| format!("there is no database with bdb_id {number}"))
    }

    fn node(&self, name: &str) -> Result<Option<Node>, String> {
        let Some(number) = self.number(name)? else { return Ok(None) };
        let count = self.known.node_count();
        let node = usize::try_from(number).ok().filter(|node| (1..=count).contains(node));
        node.map(Some)
            .ok_or_else(|| format!("{name}: there is no node:{number}; there are node:1 to node:{count}"))
    }

    fn migrate(&self) -> Result<Action, String> {
        let (source, target) = (self.node("source_node")?, self.node("target_node")?);
        Ok(Action::Migrate { database: self.database()?, source, target })
    }

    fn bind(&self) -> Result<Action, String> {
        let (source, target) = (self.node("source_node")?, self.node("target_node")?);
        Ok(Action::Bind { database: self.database()?, source, target })
    }

    /// The trigger, under either of its names, if it is one of these.
    fn trigger(&self, effect: &str, triggers: &[&'static str]) -> Result<&'static str, String> {
        let given = self.text("trigger")?.map_or_else(|| self.text("variant"), |text| Ok(Some(text)))?;
        let first = triggers.first().copied().unwrap_or_default();
        match given {
            None | Some("default") => Ok(first),
            Some(text) => triggers.iter().find(|trigger| **trigger == text).copied().ok_or_else(|| {
                format!("unknown trigger `{text}`; to {effect} there are {}", triggers.join(", "))
            }),
        }
    }

    fn slot_migrate(&self) -> Result<Action, String> {
        let effect = slot_effect(self.text("effect")?.ok_or("effect is missing")?)?;
        self.trigger(effect.name(), slot_triggers(effect))?;
        let (source, target) = (self.node("source_node")?, self.node("target_node")?);
        Ok(Action::SlotMigrate { database: self.database()?, effect, source, target })
    }

    fn topology_change(&self) -> Result<Action, String> {
        let effect = self.text("effect")?.ok_or("effect is missing")?;
        let triggers = topology_effect(effect)?;
        if triggers.is_empty() {
            return Err(format!(
                "{effect} means nothing here: there is no name server that could answer otherwise; towline faults proxy has \
                 names that change"
            ));
        }
        let trigger = self.trigger(effect, triggers)?;
        let database = self.database()?;
        let moving = match trigger {
            "failover" => Action::Failover { database, shards: Vec::new() },
            _ => self.migrate()?,
        };
        Ok(match effect {
            "data_movement_no_conn_drop" => moving,
            "conn_drop" => self.bind()?,
            _ => {
                let bind = Action::Bind { database, source: None, target: self.node("target_node")? };
                Action::Sequence(vec![moving, bind])
            }
        })
    }

    fn sequence(&self) -> Result<Action, String> {
        let steps = self.get("actions").and_then(Value::as_array).ok_or("actions is missing, or no array")?;
        if steps.len() > STEPS_MAX {
            return Err(format!("{} actions; at most {STEPS_MAX} are possible", steps.len()));
        }
        let step = |(number, step): (usize, &Value)| {
            let kind = step.get("type").and_then(Value::as_str).ok_or("type is missing");
            let own = step.get("params").or_else(|| step.get("parameters")).cloned();
            let mut own = own.unwrap_or_else(|| json!({}));
            // What a step does not say, its sequence does.
            let outer = self.get("bdb_id").or_else(|| self.get("bdbId"));
            if let (Value::Object(own), Some(outer)) = (&mut own, outer)
                && !own.contains_key("bdbId")
            {
                own.entry("bdb_id").or_insert_with(|| outer.clone());
            }
            kind.map_err(str::to_owned)
                .and_then(|kind| match kind {
                    "sequence_of_actions" => Err("a sequence in a sequence".to_owned()),
                    kind => parse(kind, &own, self.known),
                })
                .map(|(_, action)| action)
                .map_err(|error| format!("action {number}: {error}"))
        };
        let mut actions = Vec::with_capacity(steps.len());
        for action in (1..).zip(steps).map(step) {
            match action? {
                // An effect that takes two steps.
                Action::Sequence(inner) => actions.extend(inner),
                single => actions.push(single),
            }
        }
        Ok(Action::Sequence(actions))
    }

    fn delete(&self) -> Result<Action, String> {
        match self.flag("delete_all")? {
            true => Ok(Action::Delete(None)),
            false => self.database().map(|id| Action::Delete(Some(id))),
        }
    }

    fn cluster_config(&self) -> Result<Action, String> {
        let config =
            self.get("config").and_then(Value::as_object).ok_or("config is missing, or no object")?;
        if let Some(other) = config.keys().find(|name| *name != "client_maint_notifications") {
            return Err(format!("config.{other} means nothing here; there is client_maint_notifications"));
        }
        let inner = Reader { map: config, known: self.known };
        match inner.get("client_maint_notifications") {
            None => Err("config has no client_maint_notifications".to_owned()),
            Some(_) => inner.flag("client_maint_notifications").map(Action::SetNotifications),
        }
    }

    fn outage(&self, database: Option<u32>, node: Option<Node>) -> Result<Action, String> {
        let read = |value: &Value| match value {
            Value::String(text) => text.parse().ok(),
            other => other.as_f64(),
        };
        let delay = self.get("delay").map(|value| {
            let seconds = read(value).filter(|seconds| (0.0..=OUTAGE_MAX_S).contains(seconds));
            seconds.map(Duration::from_secs_f64).ok_or("delay is a number of seconds, at most 3600")
        });
        Ok(Action::Outage { database, node, delay: delay.transpose()? })
    }

    fn config(&self) -> Result<DatabaseConfig, String> {
        let map = self.get("database_config").and_then(Value::as_object);
        let inner = Reader { map: map.ok_or("database_config is missing, or no object")?, known: self.known };
        inner.database_config()
    }

    fn database_config(&self) -> Result<DatabaseConfig, String> {
        if self.flag("oss_cluster")? {
            return Err("oss_cluster means nothing here: the server has no CLUSTER commands yet; slot_migrate announces moves of \
                        slots to the connections of any database"
                .to_owned());
        }
        let name = self.text("name")?.ok_or("name is missing")?;
        if name.is_empty() || name.len() > 200 || name.contains(char::is_whitespace) {
            return Err("name is empty, too long, or has blanks".to_owned());
        }
        let port = self.number("port")?.unwrap_or(0);
        let port = u16::try_from(port).map_err(|_| format!("port {port} is no port"))?;
        let shards = self.number("shards_count")?.unwrap_or(1);
        if !(1..=SHARDS_MAX).contains(&shards) {
            return Err(format!("shards_count is 1 to {SHARDS_MAX}"));
        }
        let policy = self.text("proxy_policy")?.unwrap_or("single");
        let policy = Policy::ALL.into_iter().find(|known| known.name() == policy).ok_or_else(|| {
            format!("unknown proxy_policy `{policy}`; there are single, all-master-shards and all-nodes")
        })?;
        let is_tls = self.flag("tls")? || self.text("tls_mode")? == Some("enabled");
        if is_tls && !self.known.has_tls() {
            return Err(
                "TLS needs --tls-cert-file and --tls-key-file on the injector's command line".to_owned()
            );
        }
        let password = self.text("authentication_redis_pass")?.filter(|text| !text.is_empty());
        Ok(DatabaseConfig {
            name: name.to_owned(),
            port,
            shards: u32::try_from(shards).unwrap_or(1),
            has_replicas: self.flag("replication")?,
            policy,
            password: password.map(str::to_owned),
            is_tls,
        })
    }
}

#[cfg(test)]
mod tests;
