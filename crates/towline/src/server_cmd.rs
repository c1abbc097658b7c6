//! `towline server`: the server as a process.
//!
//! Owns: its command line, the PID file, signals, what is logged of start and stop, and the exit code. Does **not** own
//! parameters (see `towline_server::Config`) nor where the log goes (see [`log`](crate::log)).

use crate::log::Log;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};
use towline_server::{Config, ConfigWatch, Reloader, Server};

/// `towline server [CONFIG-FILE] [--name value …]`, as redis-server takes them.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ServerArgs {
    /// A file in redis.conf syntax, then parameters as `--name value`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Runs the server until SIGTERM, SIGINT or `SHUTDOWN`.
pub(crate) fn run(args: &ServerArgs) -> ExitCode {
    if args.args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print_help();
        return ExitCode::SUCCESS;
    }
    let (file, flags) = match args.args.split_first() {
        Some((file, flags)) if !file.starts_with('-') => (Some(Path::new(file)), flags),
        _ => (None, args.args.as_slice()),
    };
    // Variables that are not text cannot be parameters.
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let started = Config::load(file, env, flags.iter().cloned()).map_err(anyhow::Error::from).and_then(serve);
    match started {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::bench::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "help is what was asked for")]
fn print_help() {
    println!(
        "Run a server.\n\nUsage: towline server [CONFIG-FILE] [--NAME VALUE ...]\n\n\
         CONFIG-FILE has the syntax of redis.conf; every parameter of it is also a flag (--port 7000) and an environment\n\
         variable (TOWLINE_PORT=7000). A flag wins over the environment, which wins over the file.\n\n\
         Common parameters:\n  \
         --port 6379            TCP port; 0 turns TCP off\n  \
         --bind 127.0.0.1       addresses to listen on\n  \
         --unixsocket PATH      listen on a Unix socket as well\n  \
         --tls-port 6380        TLS port; needs --tls-cert-file and --tls-key-file (PEM), and --tls-ca-cert-file\n                         \
         unless --tls-auth-clients is no\n  \
         --workers N            data workers (default: one for each core)\n  \
         --requirepass SECRET   password that clients must give\n  \
         --maxmemory 2gb        memory limit; see --maxmemory-policy\n  \
         --admin-port 9121      Prometheus metrics (/metrics) and /health over HTTP, on --admin-bind 127.0.0.1\n  \
         --logfile PATH         log there instead of to standard error; --loglevel is debug, verbose, notice,\n                         \
         warning or nothing\n\n\
         Signals: SIGTERM and SIGINT finish the commands at hand, save if there are save points, and stop; a second SIGINT\n\
         stops without saving; SIGHUP reads the certificates again and reopens the log file.\n\n\
         CONFIG GET * lists all parameters of a running server."
    );
}

fn serve(config: Config) -> anyhow::Result<()> {
    let log = Log::start(config.logfile.as_deref(), config.loglevel)?;
    // Without a thread of its own, jemalloc gives memory back only while it is asked for more: an idle server would keep what a
    // load left behind. A build of it that cannot have one works as well.
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before anybody can know of the server and send one: unhandled, each would end the process.
    let mut signals = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    let started = Server::start(config);
    if let Err(error) = &started
        && !log.is_standard_error()
    {
        tracing::error!("{error}");
    }
    let server = started?;
    let (stopper, reloader, watch) = (server.stopper(), server.reloader(), server.config_watch());
    announce(&watch.config());
    let _pid_file = watch.config().pidfile.clone().and_then(PidFile::write);
    let (stopped, mut ended) = tokio::sync::mpsc::channel::<()>(1);
    let waiter = std::thread::Builder::new().name("join".into()).spawn(move || {
        let result = server.join();
        drop(stopped);
        result
    })?;
    runtime.block_on(async {
        let follow = follow(signals.hangup, &log, &reloader, watch);
        tokio::pin!(follow);
        let mut interrupts = 0;
        loop {
            let signal = tokio::select! {
                _ = signals.terminate.recv() => "SIGTERM",
                _ = signals.interrupt.recv() => "SIGINT",
                _ = ended.recv() => break,
                never = &mut follow => match never {},
            };
            interrupts += u32::from(signal == "SIGINT");
            if interrupts > 1 {
                tracing::warn!("SIGINT again: stopping without saving");
                stopper.stop_without_saving();
            } else {
                tracing::info!("{signal}: stopping");
                stopper.stop();
            }
        }
    });
    let result = waiter.join().map_err(|_| anyhow::anyhow!("the server's threads panicked"))?;
    if let Err(error) = &result
        && !log.is_standard_error()
    {
        tracing::error!("{error}");
    }
    result?;
    tracing::info!("stopped");
    Ok(())
}

/// Signals that mean something to the server.
#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Takes the signals over; within a runtime.
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// Says what runs, and which parameters do nothing.
fn announce(config: &Config) {
    for note in config.notes() {
        tracing::warn!("{note}");
    }
    let mut places = Vec::new();
    let mut port = |name: &str, number: u16, addresses: &str| {
        if number != 0 {
            places.push(format!("{name} {number} ({addresses})"));
        }
    };
    let addresses =
        config.bind.iter().map(|address| address.trim_start_matches('-')).collect::<Vec<_>>().join(", ");
    port("port", config.port, &addresses);
    port("tls-port", config.tls_port, &addresses);
    port("admin-port", config.admin_port, &config.admin_bind);
    places.extend(config.unixsocket.as_ref().map(|path| format!("unixsocket {path}")));
    tracing::info!(
        "towline {} ready: pid {}, {}, {} worker{}",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        places.join(", "),
        config.workers,
        if config.workers == 1 { "" } else { "s" },
    );
}

/// Does what SIGHUP and `CONFIG SET loglevel` ask for, until dropped.
async fn follow(mut hangup: Signal, log: &Log, reloader: &Reloader, mut watch: ConfigWatch) -> Infallible {
    loop {
        tokio::select! {
            _ = hangup.recv() => {
                match log.reopen() {
                    Ok(()) => {}
                    Err(error) => tracing::error!("SIGHUP: {error}; logging goes on to the old file"),
                }
                match reloader.reload() {
                    Ok(()) => tracing::info!("SIGHUP: log file and certificates are those on disk now"),
                    Err(error) => tracing::error!("SIGHUP: {error}; the old certificates stay in use"),
                }
            }
            config = watch.changed() => log.set_level(config.loglevel),
        }
    }
}

/// The file that names this process; removed with the value.
#[derive(Debug)]
struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file. One that cannot be written is no reason not to serve.
    fn write(path: String) -> Option<Self> {
        match std::fs::write(&path, format!("{}\n", std::process::id())) {
            Ok(()) => Some(Self(path.into())),
            Err(error) => {
                tracing::warn!("cannot write pidfile '{path}': {error}");
                None
            }
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let own = std::process::id().to_string();
        // Another server may have written its own meanwhile.
        if std::fs::read_to_string(&self.0).is_ok_and(|pid| pid.trim() == own) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}
