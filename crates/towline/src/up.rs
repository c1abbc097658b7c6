//! `towline up`: a cluster in one process, for development.
//!
//! Owns the nodes' configuration, their making into a cluster, what is told about it, and its end. Does not own the nodes
//! (`towline_server`) nor how a cluster is made (`cluster`).

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use towline_server::{AppendFsync, Config, LogLevel, Server, Stopper};

use crate::cluster;
use crate::log::Log;

/// Nodes at most: each has threads and a port of its own, and a development machine has few cores.
const NODES_MAX: u16 = 64;

/// Distance of a node's port for other nodes from its port for clients, as everywhere.
const BUS_OFFSET: u16 = 10_000;

/// Where nodes listen: for development, nobody else is to reach them.
const HOST: &str = "127.0.0.1";

/// Starts a cluster in this process and runs it until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --dir the data goes with the cluster. With it, the same command serves the same data again."
)]
pub(crate) struct UpArgs {
    /// Nodes, each of which owns its share of the slots.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=i64::from(NODES_MAX)))]
    nodes: u16,
    /// Port of the first node; the others follow.
    #[arg(long, default_value_t = 7000)]
    port: u16,
    /// Keep the data here, one directory for each node.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Say where the nodes are as one JSON object.
    #[arg(long = "json")]
    is_json: bool,
}

/// Runs the cluster; a failure is one line on standard error.
pub(crate) fn run(args: &UpArgs) -> ExitCode {
    match execute(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::bench::complain(&format!("{error:#}").replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn execute(args: &UpArgs) -> Result<()> {
    let last = args.port.checked_add(args.nodes - 1).and_then(|last| last.checked_add(BUS_OFFSET));
    if args.port == 0 || last.is_none() {
        bail!(
            "--port {} has no room for {} nodes: each also needs the port {BUS_OFFSET} above its own",
            args.port,
            args.nodes
        );
    }
    // Before there is anything that a signal would leave behind.
    let mut signals = Signals::install()?;
    let _log = Log::start(None, LogLevel::Warning)?;
    // As the server process does: memory that a load left behind goes back to the system.
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
    let temporary = match &args.dir {
        None => {
            Some(tempfile::Builder::new().prefix("towline-up-").tempdir().context("no temporary directory")?)
        }
        Some(_) => None,
    };
    let kept = args.dir.as_deref();
    let dir =
        kept.or_else(|| temporary.as_ref().map(tempfile::TempDir::path)).unwrap_or_else(|| Path::new("."));
    let nodes = Nodes::start(args, dir, kept.is_some())?;
    let ports: Vec<u16> = (0..args.nodes).map(|at| args.port + at).collect();
    let made = cluster::bring_up(HOST, &ports);
    let told = made.map_err(anyhow::Error::from).and_then(|()| tell(args, &ports, kept));
    if told.is_ok() {
        signals.wait();
    }
    nodes.stop()?;
    told
}

/// The running nodes. What is dropped stops.
#[derive(Debug)]
struct Nodes {
    servers: Vec<(Server, Stopper)>,
}

impl Nodes {
    fn start(args: &UpArgs, dir: &Path, is_kept: bool) -> Result<Self> {
        let mut nodes = Self { servers: Vec::new() };
        for at in 0..args.nodes {
            let port = args.port + at;
            let server = config(dir, port, args.nodes, is_kept).and_then(|config| Ok(Server::start(config)?));
            let started = server.with_context(|| format!("node {port} does not start"));
            match started {
                Ok(server) => {
                    let stopper = server.stopper();
                    nodes.servers.push((server, stopper));
                }
                Err(error) => {
                    // The error to report is this one.
                    let _ = nodes.stop();
                    return Err(error);
                }
            }
        }
        for (server, _) in &nodes.servers {
            server.wait_until_loaded()?;
        }
        Ok(nodes)
    }

    /// Stops all of them, and waits for them.
    fn stop(self) -> Result<()> {
        for (_, stopper) in &self.servers {
            stopper.stop();
        }
        let mut result = Ok(());
        for (server, _) in self.servers {
            result = server.join().map_err(anyhow::Error::from).and(result);
        }
        result
    }
}

fn config(dir: &Path, port: u16, nodes: u16, is_kept: bool) -> Result<Config> {
    let dir = dir.join(port.to_string());
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut config = Config::default();
    config.port = port;
    config.bind = vec![HOST.to_owned()];
    config.dir = dir.to_str().context("--dir is no text")?.to_owned();
    // The machine's cores are shared by all nodes.
    config.workers = (config.workers / usize::from(nodes)).max(1);
    config.cluster.is_enabled = true;
    config.persistence.appendonly = is_kept;
    config.persistence.appendfsync = AppendFsync::EverySec;
    Ok(config)
}

/// Says how to connect.
fn tell(args: &UpArgs, ports: &[u16], kept: Option<&Path>) -> Result<()> {
    let endpoints: Vec<String> = ports.iter().map(|port| format!("{HOST}:{port}")).collect();
    let url = format!("redis://{}/?cluster=true", endpoints.join(","));
    let text = if args.is_json {
        format!("{}\n", json!({"nodes": endpoints, "url": url, "dir": kept}))
    } else {
        let data = match kept {
            Some(dir) => format!("The data is in {}; the same command serves it again.", dir.display()),
            None => "The data goes with the cluster; --dir DIR keeps it.".to_owned(),
        };
        format!(
            "A cluster of {} nodes is ready. Ctrl-C stops it.\n\n  \
             redis-cli -c -p {port}\n  towline cluster check {port}\n  {url}\n\n{data}\n",
            ports.len(),
            port = args.port,
        )
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")
}

/// SIGINT and SIGTERM as something to wait for.
#[derive(Debug)]
struct Signals {
    pipe: UnixStream,
}

impl Signals {
    fn install() -> Result<Self> {
        let (pipe, end) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, end.try_clone()?).context("signal handler")?;
        }
        Ok(Self { pipe })
    }

    /// Returns when one has come.
    fn wait(&mut self) {
        // An error ends the waiting as a signal does: there is nothing else to wait for.
        let _ = self.pipe.read_exact(&mut [0]);
    }
}
