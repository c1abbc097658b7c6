//! How long each client needs after an event in a real cluster or at a primary that sentinels watch, and what it costs.
//!
//! Owns the events, the load and the account of it. Does not own the servers (`e2e::clusters`, `e2e::sentinels`) nor the clients' own ways of
//! connecting ([`clients`]). Every client gets a cluster of its own and the same load: one task for each key, which counts it up
//! (`INCR`) again and again and waits for each answer.

mod clients;
mod load;
mod table;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use clients::{Counting, Fred, RedisRs, Rustis, Towline};
use e2e::clusters::{RealCluster, key_in};
use e2e::process::ServerKind;
use e2e::sentinels::{RealSentinels, Setup};
use load::{Load, Outcome};
use std::time::{Duration, Instant};

/// A node that is gone is given up after this time. Redis's default is 15 s; what is measured is what comes on top.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// Keys of the node to which something happens, and as many of each of the others.
const KEYS_EACH: u16 = 8;

/// Slots of a reshard: those of all the node's keys are among them.
const SLOTS_MOVED: u16 = 100;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Happening {
    /// A primary is killed with SIGKILL
    Kill,
    /// A replica takes its primary's place (CLUSTER FAILOVER)
    Failover,
    /// redis-cli moves 100 slots key by key
    Reshard,
    /// Every node is restarted on another port, one after the other
    Restarts,
    /// A primary that sentinels watch is killed with SIGKILL
    SentinelKill,
    /// A replica takes its place (SENTINEL FAILOVER)
    SentinelFailover,
}

/// Where a client finds the servers.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Nodes of a cluster, by their ports.
    Cluster(Vec<u16>),
    /// Sentinels, by their ports.
    Sentinels(Vec<u16>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    Towline,
    RedisRs,
    Fred,
    Rustis,
}

#[derive(Parser)]
#[command(about = "What an event in a cluster costs Towline's client, redis-rs, fred and rustis")]
struct Arguments {
    /// redis70, redis82 or valkey91
    #[arg(long, default_value = "valkey91")]
    server: String,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "kill,failover,reshard,restarts,sentinel-kill,sentinel-failover"
    )]
    events: Vec<Happening>,
    #[arg(long, value_delimiter = ',', default_value = "towline,redis-rs,fred,rustis")]
    clients: Vec<Name>,
}

/// The whole program.
///
/// # Errors
/// The command line, or a cluster that does not come about or does not recover.
pub fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let kind = ServerKind::from_name(&arguments.server)?;
    let mut results = Vec::new();
    for &event in &arguments.events {
        for round in 0..arguments.rounds {
            for turn in 0..arguments.clients.len() {
                let client = arguments.clients[(turn + round) % arguments.clients.len()];
                let outcome = match client {
                    Name::Towline => measure::<Towline>(kind, event),
                    Name::RedisRs => measure::<RedisRs>(kind, event),
                    Name::Fred => measure::<Fred>(kind, event),
                    Name::Rustis => measure::<Rustis>(kind, event),
                };
                let outcome = outcome.with_context(|| format!("{client:?}, {event:?}, round {round}"))?;
                eprintln!("{event:?} round {round} {client:?}: {outcome:?}");
                results.push((event, client, outcome));
            }
        }
    }
    print!("{}", table::of(&arguments.events, &arguments.clients, &results));
    Ok(())
}

/// One client, one event, on servers of its own.
fn measure<C: Counting>(kind: ServerKind, event: Happening) -> anyhow::Result<Outcome> {
    match event {
        Happening::SentinelKill | Happening::SentinelFailover => with_sentinels::<C>(kind, event),
        _ => with_cluster::<C>(kind, event),
    }
}

/// One worker for the load, so that the client and the servers share two cores in the same way each time.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?)
}

fn with_sentinels<C: Counting>(kind: ServerKind, event: Happening) -> anyhow::Result<Outcome> {
    let setup = Setup { down_after: NODE_TIMEOUT, ..Setup::default() };
    let deployment = RealSentinels::start(kind, &setup)?;
    let primary = deployment.primary()?;
    let keys = (0..3 * KEYS_EACH).map(|at| format!("counter:{at}")).collect();
    let runtime = runtime()?;
    let place = Place::Sentinels(deployment.sentinel_ports());
    let load = runtime.block_on(Load::start::<C>(&place, keys, Vec::new()))?;
    let begun = Instant::now();
    let heir = if event == Happening::SentinelKill {
        deployment.kill(primary)?;
        deployment.wait_for_heir(primary)?
    } else {
        deployment.fail_over()?
    };
    let over = Instant::now();
    let counts = |key: &str| e2e::clusters::counter_at(&mut deployment.server(heir).connect()?, key);
    let outcome = runtime.block_on(load.finish(begun, over, counts));
    runtime.shutdown_background();
    outcome
}

fn with_cluster<C: Counting>(kind: ServerKind, event: Happening) -> anyhow::Result<Outcome> {
    let mut cluster = RealCluster::start(kind, NODE_TIMEOUT)?;
    let primaries = cluster.primaries()?;
    let (struck, others) = primaries.split_first().context("the cluster has no primary")?;
    // The first slots of a node are the first to be moved.
    let keys_of = |first: u16| (0..KEYS_EACH).map(move |at| key_in(first + at, "counter"));
    let struck_keys: Vec<String> = keys_of(struck.slots[0].0).collect();
    let other_keys: Vec<String> = others.iter().flat_map(|other| keys_of(other.slots[0].0)).collect();
    let runtime = runtime()?;
    let place = Place::Cluster(cluster.ports());
    let load = runtime.block_on(Load::start::<C>(&place, struck_keys, other_keys))?;
    let begun = Instant::now();
    match event {
        Happening::Kill => {
            cluster.kill(struck.port)?;
            cluster.wait_for_heir(struck)?;
        }
        Happening::Failover => cluster.fail_over(struck)?,
        Happening::Reshard => cluster.reshard(struck, &others[0], SLOTS_MOVED)?,
        Happening::Restarts => cluster.restart_all_elsewhere()?,
        Happening::SentinelKill | Happening::SentinelFailover => {
            anyhow::bail!("a cluster has no sentinels")
        }
    }
    let over = Instant::now();
    let counts = |key: &str| cluster.counter(key);
    let outcome = runtime.block_on(load.finish(begun, over, counts));
    // Some clients leave tasks behind that wait for ever.
    runtime.shutdown_background();
    outcome
}
