//! What a cluster costs the client: the same load on one server, and on clusters of one and more nodes.
//!
//! Owns the servers, the rounds, the load and the table. Only Towline's client is measured here.
//!
//! A cluster of one node has one socket, as the server without a cluster has: what it costs more is the map, the gate of each
//! slot, and everything else that knows of slots. Further nodes bring further sockets, each with writes and reads of its own.

use crate::statistics::{Draw, keys, median, quantile_us, tick, value};
use crate::usage::Usage;
use anyhow::{Context, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use towline_client::transport::Target;
use towline_client::{Client, ClusterOptions, ConnectOptions, LivenessConfig};

const SLOTS: usize = 16_384;
const WARM_UP: Duration = Duration::from_millis(300);
/// So many latencies are kept of all tasks together; their memory is there before the time begins.
const LATENCIES_MAX: usize = 2_000_000;

/// The command line of `cluster`.
#[derive(Args)]
pub(crate) struct Bench {
    /// The servers' program: anything that takes Redis's options
    #[arg(long, env = "VALKEY91")]
    server: PathBuf,
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    #[arg(long, default_value_t = 0.6)]
    seconds: f64,
    /// Sizes of clusters, beside the server without one
    #[arg(long, value_delimiter = ',', default_value = "1,3,30")]
    nodes: Vec<usize>,
    #[arg(long, value_delimiter = ',', default_value = "64,256,1024")]
    tasks: Vec<usize>,
    /// Connections to each node
    #[arg(long, default_value_t = 1)]
    lanes: u8,
    /// Measures each cluster a second time while the slot map is asked for as often as the client ever does, once a second
    #[arg(long)]
    refresh: bool,
}

/// The command line of one measurement.
#[derive(Args)]
pub(crate) struct Once {
    #[arg(long)]
    port: u16,
    #[arg(long)]
    is_cluster: bool,
    #[arg(long)]
    refresh: bool,
    #[arg(long)]
    tasks: usize,
    #[arg(long, default_value_t = 1)]
    lanes: u8,
    #[arg(long, default_value_t = 0.6)]
    seconds: f64,
    /// Ends after about so many commands instead, for tools that count instructions: the difference of two runs is that of their
    /// commands
    #[arg(long)]
    commands: Option<u64>,
}

/// What one measurement found.
#[derive(Serialize, Deserialize)]
struct Found {
    cpu_us: f64,
    user_us: f64,
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    writes: f64,
    reads: f64,
}

/// One column: a server or a cluster.
struct Subject {
    name: String,
    port: u16,
    is_cluster: bool,
    refresh: bool,
}

/// Servers, which end with it.
struct Servers(Vec<Child>);

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself; then there is nothing to kill and the wait only collects it.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Takes one measurement, and prints it as JSON.
pub(crate) fn once(options: &Once) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("{}", serde_json::to_string(&runtime.block_on(measure(options))?)?);
    Ok(())
}

/// All rounds, and the table.
pub(crate) fn bench(options: &Bench) -> anyhow::Result<()> {
    let mut servers = Servers(Vec::new());
    let mut subjects = Vec::new();
    let single = launch(&options.server, &mut servers, false)?;
    subjects.push(Subject { name: "one server".into(), port: single, is_cluster: false, refresh: false });
    for &count in &options.nodes {
        let port = make_cluster(&options.server, &mut servers, count)?;
        for refresh in [false, true].into_iter().filter(|refresh| !refresh || options.refresh) {
            let name = format!("{count} nodes{}", if refresh { ", map asked for" } else { "" });
            subjects.push(Subject { name, port, is_cluster: true, refresh });
        }
    }
    let mut found: BTreeMap<(usize, usize), Vec<Found>> = BTreeMap::new();
    for round in 0..options.rounds {
        for &tasks in &options.tasks {
            for turn in 0..subjects.len() {
                let at = (turn + round) % subjects.len();
                found.entry((tasks, at)).or_default().push(child(options, &subjects[at], tasks)?);
            }
        }
        eprintln!("round {} of {} done", round + 1, options.rounds);
    }
    print!("{}", table(&subjects, &found));
    Ok(())
}

fn child(options: &Bench, subject: &Subject, tasks: usize) -> anyhow::Result<Found> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("cluster-once").args(["--port", &subject.port.to_string(), "--tasks", &tasks.to_string()]);
    command.args(["--lanes", &options.lanes.to_string(), "--seconds", &options.seconds.to_string()]);
    command.args(subject.is_cluster.then_some("--is-cluster"));
    command.args(subject.refresh.then_some("--refresh"));
    let output = command.output()?;
    ensure!(output.status.success(), "{}: {}", subject.name, String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn table(subjects: &[Subject], found: &BTreeMap<(usize, usize), Vec<Found>>) -> String {
    let mut out = String::from(
        "| tasks | | CPU us | ratio | user us | ratio | k/s | p50 us | p99 us | commands/write | commands/read |\n\
         |--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let middle = |all: &[Found], of: fn(&Found) -> f64| median(&all.iter().map(of).collect::<Vec<_>>());
    for ((tasks, at), all) in found {
        let of = |figure: fn(&Found) -> f64| middle(all, figure);
        let ratio = |figure: fn(&Found) -> f64| {
            let single = found.get(&(*tasks, 0)).map_or(f64::NAN, |single| middle(single, figure));
            middle(all, figure) / single
        };
        // A `String` takes everything.
        let _ = writeln!(
            out,
            "| {tasks} | {} | {:.3} | {:.2} | {:.3} | {:.2} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} |",
            subjects[*at].name,
            of(|it| it.cpu_us),
            ratio(|it| it.cpu_us),
            of(|it| it.user_us),
            ratio(|it| it.user_us),
            of(|it| it.per_second / 1e3),
            of(|it| it.p50_us),
            of(|it| it.p99_us),
            of(|it| 1.0 / it.writes),
            of(|it| 1.0 / it.reads),
        );
    }
    out
}

/// Tasks that each wait for one `GET` at a time, half of them, and for one `SET`, the other half.
async fn measure(options: &Once) -> anyhow::Result<Found> {
    // Thirty servers on few cores may be silent for long without being dead.
    let liveness = LivenessConfig { silence_max: Duration::MAX, ..LivenessConfig::default() };
    let target = Target::tcp("127.0.0.1", options.port);
    let mut connect = ConnectOptions::new(target).lanes(options.lanes).liveness(liveness);
    if options.is_cluster {
        let interval = Duration::from_secs(if options.refresh { 1 } else { 3600 });
        connect = connect.cluster(ClusterOptions::new().refresh_interval(interval));
    }
    let client = Client::open(connect).await?;
    let keys: Arc<[String]> = keys().into();
    for key in &*keys {
        client.set(key, value()).await?;
    }
    let of_task = options.commands.map_or(u64::MAX, |commands| commands / options.tasks as u64);
    if options.commands.is_none() {
        drop(phase(&client, &keys, options.tasks, WARM_UP, of_task).await?);
    }
    let length =
        options.commands.map_or(Duration::from_secs_f64(options.seconds), |_| Duration::from_secs(600));
    let (usage, counters, begun) = (Usage::now()?, client.metrics(), Instant::now());
    let lanes = phase(&client, &keys, options.tasks, length, of_task).await?;
    let (elapsed, usage, after) = (begun.elapsed(), Usage::now()?.since(usage), client.metrics());
    let commands: u64 = lanes.iter().map(|lane| lane.0).sum();
    let mut ticks: Vec<u32> = lanes.into_iter().flat_map(|lane| lane.1).collect();
    ticks.sort_unstable();
    let each = |total: f64| total / commands as f64;
    Ok(Found {
        cpu_us: each(usage.cpu().as_secs_f64() * 1e6),
        user_us: each(usage.user.as_secs_f64() * 1e6),
        per_second: commands as f64 / elapsed.as_secs_f64(),
        p50_us: quantile_us(&ticks, 0.50),
        p99_us: quantile_us(&ticks, 0.99),
        writes: each((after.writes - counters.writes) as f64),
        reads: each((after.reads - counters.reads) as f64),
    })
}

async fn phase(
    client: &Client,
    keys: &Arc<[String]>,
    tasks: usize,
    length: Duration,
    of_task: u64,
) -> anyhow::Result<Vec<(u64, Vec<u32>)>> {
    let until = Instant::now() + length;
    let mut running = JoinSet::new();
    for number in 0..tasks {
        let ticks = Vec::with_capacity(LATENCIES_MAX / tasks);
        running.spawn(drive(client.clone(), Arc::clone(keys), number, until, of_task, ticks));
    }
    let mut done = Vec::with_capacity(tasks);
    while let Some(lane) = running.join_next().await {
        done.push(lane??);
    }
    Ok(done)
}

async fn drive(
    client: Client,
    keys: Arc<[String]>,
    number: usize,
    until: Instant,
    of_task: u64,
    mut ticks: Vec<u32>,
) -> anyhow::Result<(u64, Vec<u32>)> {
    let (mut draw, value) = (Draw::new(number), value());
    let (mut commands, mut last) = (0, Instant::now());
    while last < until && commands < of_task {
        let key = &keys[draw.index()];
        if number % 2 == 0 {
            let value: Option<bytes::Bytes> = client.get(key).await?;
            ensure!(value.is_some(), "no such key");
        } else {
            client.set(key, &value).await?;
        }
        let now = Instant::now();
        commands += 1;
        if ticks.len() < ticks.capacity() {
            ticks.push(tick(now - last));
        }
        last = now;
    }
    Ok((commands, ticks))
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Starts one server, which writes no files.
fn launch(program: &Path, servers: &mut Servers, is_cluster: bool) -> anyhow::Result<u16> {
    let port = free_port()?;
    let mut command = Command::new(program);
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
    if is_cluster {
        let state = std::env::temp_dir().join(format!("towline-bench-nodes-{port}.conf"));
        // One of an earlier run would make it another node.
        drop(std::fs::remove_file(&state));
        command.args(["--cluster-enabled", "yes", "--cluster-port", &free_port()?.to_string()]);
        command.arg("--cluster-config-file").arg(state);
    }
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    servers.0.push(child.with_context(|| format!("cannot start {}", program.display()))?);
    until(|| ask(port, &["PING"]).is_ok_and(|reply| reply.starts_with("+PONG")))?;
    Ok(port)
}

/// Starts so many primaries that share the slots; the port of one of them.
fn make_cluster(program: &Path, servers: &mut Servers, count: usize) -> anyhow::Result<u16> {
    let mut ports = Vec::new();
    for number in 0..count {
        let port = launch(program, servers, true)?;
        let (first, end) = (number * SLOTS / count, (number + 1) * SLOTS / count);
        let reply = ask(port, &["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &(end - 1).to_string()])?;
        ensure!(reply.starts_with("+OK"), "{reply}");
        ports.push(port);
    }
    for port in &ports[1..] {
        // The bus has a port of its own, which the node says.
        let myself = ask(*port, &["CLUSTER", "NODES"])?;
        let bus = myself.split_once('@').and_then(|(_, rest)| rest.split([',', ' ']).next());
        let bus = bus.context("a node without a bus")?;
        let reply = ask(ports[0], &["CLUSTER", "MEET", "127.0.0.1", &port.to_string(), bus])?;
        ensure!(reply.starts_with("+OK"), "{reply}");
    }
    let is_whole = |port: &u16| {
        ask(*port, &["CLUSTER", "INFO"]).is_ok_and(|info| {
            info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{count}\r"))
        })
    };
    until(|| ports.iter().all(is_whole))?;
    Ok(ports[0])
}

/// Sends one command on a connection of its own; what has come of the reply within a moment.
fn ask(port: u16, words: &[&str]) -> anyhow::Result<String> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut command = format!("*{}\r\n", words.len());
    for word in words {
        write!(command, "${}\r\n{word}\r\n", word.len())?;
    }
    socket.write_all(command.as_bytes())?;
    let mut reply = vec![0; 16 * 1024];
    let count = socket.read(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply[..count]).into_owned())
}

fn until(is_true: impl FnMut() -> bool) -> anyhow::Result<()> {
    ensure!(e2e::wait::until(is_true), "the servers do not come up");
    Ok(())
}
