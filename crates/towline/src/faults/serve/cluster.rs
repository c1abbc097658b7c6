//! The pretended cluster: its databases, its switches, and the actions that run.
//!
//! Owns the registry of databases and the tasks of actions. Does not own what an action does (see [`super::perform`]).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::action::{Action, Known, Parsed};
use super::database::{CreateError, Database, DatabaseConfig, check_port, locked};
use super::jobs::Jobs;
use super::perform;
use super::rladmin::{self, NodeLine};
use super::settings::ServeArgs;
use crate::faults::report::{Report, ms};

/// Databases at a time. 64: each is a server with threads of its own.
const DATABASES_MAX: usize = 64;

/// The next numbers.
#[derive(Debug)]
struct Next {
    database: u32,
    shard: u32,
}

/// A line of output.
#[derive(Debug, Serialize)]
struct Line {
    event: &'static str,
    at_ms: f64,
    #[serde(flatten)]
    fields: Value,
}

/// Everything that is there.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) settings: ServeArgs,
    start: Instant,
    databases: Mutex<BTreeMap<u32, Arc<Database>>>,
    next: Mutex<Next>,
    is_notifying: AtomicBool,
    pub(super) jobs: Mutex<Jobs>,
    tasks: Mutex<JoinSet<()>>,
    report: Report,
}

impl Cluster {
    pub(super) fn new(settings: ServeArgs, report: Report) -> Self {
        Self {
            settings,
            start: Instant::now(),
            databases: Mutex::default(),
            next: Mutex::new(Next { database: 1, shard: 1 }),
            is_notifying: AtomicBool::new(true),
            jobs: Mutex::default(),
            tasks: Mutex::new(JoinSet::new()),
            report,
        }
    }

    /// Writes a line of output, with the time since the start.
    pub(super) fn say(&self, event: &'static str, fields: Value) {
        self.report.line(&Line { event, at_ms: ms(self.start.elapsed()), fields });
    }

    pub(super) fn database(&self, id: u32) -> Option<Arc<Database>> {
        locked(&self.databases).get(&id).cloned()
    }

    /// All databases, by number.
    pub(super) fn databases(&self) -> Vec<Arc<Database>> {
        locked(&self.databases).values().cloned().collect()
    }

    /// Whether a database like this can be created, as far as can be told before.
    ///
    /// # Errors
    /// One line: there are too many, or the name or the port is taken.
    pub(super) fn check_create(&self, config: &DatabaseConfig) -> Result<(), String> {
        let databases = locked(&self.databases);
        if databases.len() >= DATABASES_MAX {
            return Err(format!("there are {DATABASES_MAX} databases, and there can be no more"));
        }
        if let Some(twin) = databases.values().find(|other| other.config.name == config.name) {
            return Err(format!("there is a database of this name: db:{}", twin.id));
        }
        match config.port {
            0 => Ok(()),
            port => check_port(&self.settings.addresses, port).map_err(|error| error.to_string()),
        }
    }

    /// Creates a database.
    ///
    /// # Errors
    /// One line, as for [`Self::check_create`], or what the server says.
    pub(super) fn create(&self, config: DatabaseConfig) -> Result<Arc<Database>, String> {
        self.check_create(&config)?;
        let (id, first_shard) = {
            let mut next = locked(&self.next);
            let numbers = (next.database, next.shard);
            next.database += 1;
            next.shard += config.shards * if config.has_replicas { 2 } else { 1 };
            numbers
        };
        let started = Database::start(&self.settings, config, id, first_shard);
        let database = Arc::new(started.map_err(|error: CreateError| error.to_string())?);
        database.maintenance.set_enabled(self.is_notifying.load(Ordering::Relaxed));
        locked(&self.databases).insert(id, Arc::clone(&database));
        self.save_endpoints();
        Ok(database)
    }

    /// Takes a database out; its server goes on until somebody stops it.
    pub(super) fn remove(&self, id: u32) -> Option<Arc<Database>> {
        let removed = locked(&self.databases).remove(&id);
        self.save_endpoints();
        removed
    }

    /// Turns announcements on or off, for databases to come as well.
    pub(super) fn set_notifying(&self, on: bool) {
        self.is_notifying.store(on, Ordering::Relaxed);
        for database in self.databases() {
            database.maintenance.set_enabled(on);
        }
    }

    /// What `rladmin status` prints.
    pub(super) fn status(&self) -> String {
        let nodes = (1..).zip(&self.settings.addresses).map(|(node, address)| NodeLine {
            address: address.to_string(),
            host: self.settings.name_of(node).map_or_else(|| address.to_string(), str::to_owned),
        });
        let databases: Vec<_> = self.databases().iter().map(|database| database.line()).collect();
        rladmin::status(&nodes.collect::<Vec<_>>(), &databases)
    }

    /// All databases by name, as harnesses expect them in a file.
    pub(super) fn endpoints(&self) -> Value {
        let databases = self.databases();
        let one =
            |database: &Arc<Database>| (database.config.name.clone(), database.describe(&self.settings));
        Value::Object(databases.iter().map(one).collect())
    }

    /// Brings the file of `--endpoints-file` up to date.
    pub(super) fn save_endpoints(&self) {
        let Some(path) = &self.settings.endpoints_file else { return };
        if let Err(error) = replace_file(path, &format!("{:#}\n", self.endpoints())) {
            // Whoever reads the file has the old one; the injector goes on.
            self.say(
                "endpoints-file",
                json!({ "file": path.display().to_string(), "error": error.to_string() }),
            );
        }
    }

    /// Starts an action; its number.
    ///
    /// # Errors
    /// One line: too many have not ended, or what cannot be is asked for.
    pub(super) fn submit(self: &Arc<Self>, (kind, action): Parsed) -> Result<u64, String> {
        if let Action::Create(config) = &action {
            self.check_create(config)?;
        }
        let id = locked(&self.jobs).submit(kind, SystemTime::now());
        let id = id.ok_or_else(|| format!("{} actions have not ended", super::jobs::UNFINISHED_MAX))?;
        let cluster = Arc::clone(self);
        let mut tasks = locked(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { perform::run(&cluster, id, kind, action).await });
        Ok(id)
    }

    /// Ends all actions and stops all servers; blocking.
    pub(super) fn stop(&self) {
        locked(&self.tasks).abort_all();
        for database in std::mem::take(&mut *locked(&self.databases)).into_values() {
            if let Err(error) = database.stop() {
                self.say("not-stopped", json!({ "bdb_id": database.id, "error": error.to_string() }));
            }
        }
    }
}

impl Known for Cluster {
    fn has_database(&self, id: u32) -> bool {
        locked(&self.databases).contains_key(&id)
    }

    fn only_database(&self) -> Option<u32> {
        let databases = locked(&self.databases);
        let mut ids = databases.keys();
        ids.next().filter(|_| ids.next().is_none()).copied()
    }

    fn has_tls(&self) -> bool {
        cfg!(feature = "tls") && self.settings.tls_cert_file.is_some()
    }

    fn node_count(&self) -> usize {
        self.settings.addresses.len()
    }
}

/// Writes a file that nobody ever sees half of.
fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    std::fs::write(&new, text)?;
    std::fs::rename(&new, path)
}
