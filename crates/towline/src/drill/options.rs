//! The command line of `towline drill`.
//!
//! Owns flag names, defaults and their bounds, and what no flag can tell by itself.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use towline_client_proto::handoff::HandoffOrder;
use towline_client_proto::maintenance::{EndpointType, MaintenanceMode};

use super::conformance::ConformanceArgs;
use super::crash::CrashArgs;
use super::ledger::Mix;
use super::reshard::ReshardArgs;
use super::script::Script;
use super::storm::StormArgs;
use super::transfer::TransferDrillArgs;

/// Seconds of a run with one script.
const SECONDS_DEFAULT: f64 = 9.0;

/// Seconds of each run when there are several: all of them together stay below half a minute.
const SECONDS_OF_SEVERAL: f64 = 2.6;

/// What stays for the time behind the window, at least.
const TAIL: Duration = Duration::from_millis(400);

/// Options of `towline drill`.
#[derive(Debug, Args)]
pub(crate) struct DrillArgs {
    /// What to practise.
    #[command(subcommand)]
    pub(super) job: DrillJob,
}

/// What `towline drill` can do.
#[derive(Debug, Subcommand)]
pub(super) enum DrillJob {
    /// Move a client's connections under load, and account for every command; exit code 1 if one failed, ran twice, was
    /// out of order or lost.
    Handoff(Box<HandoffArgs>),
    /// Check a server or a client against the wire contract of maintenance notifications, statement by statement; exit code
    /// 1 if one is broken, 3 if the server has none.
    Conformance(Box<ConformanceArgs>),
    /// Let a fleet connect all at once, in virtual time, with the software of today and with ours; exit code 1 if ours broke
    /// a promise.
    Storm(Box<StormArgs>),
    /// Kill a server at random moments under load, start it again on its files, and compare what it has with what it
    /// promised; exit code 1 if anything is missing, partial or wrong.
    Crash(Box<CrashArgs>),
    /// Move slots of a cluster back and forth under load, and account for every command and key; exit code 1 if one is lost, ran
    /// twice, is where no client finds it, failed, or has another deadline.
    Reshard(Box<ReshardArgs>),
    /// Move random bytes into another process's memory and back, while that is killed and connections are cut, and account for every
    /// byte and notification; exit code 1 if one is torn, misplaced, lost or comes twice.
    Transfer(Box<TransferDrillArgs>),
}

/// Options of `towline drill handoff`.
#[derive(Debug, Clone, Args)]
pub(super) struct HandoffArgs {
    /// What happens: plain (one MOVING), refuse, slow, dns, null, ipv6, back-to-back, blocked, pubsub, or all of these; cut
    /// closes without a word, which fails what is in flight.
    #[arg(long = "script", value_enum, value_delimiter = ',', default_value = "plain", value_name = "LIST")]
    pub(super) scripts: Vec<ScriptName>,
    /// Which client is loaded.
    #[arg(long, value_enum, default_value_t = ClientKind::Towline)]
    pub(super) client: ClientKind,
    /// A Python that has redis-py, for --client redis-py.
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub(super) python: PathBuf,
    /// Shares of the commands.
    #[arg(long, default_value_t = Mix::default(), value_name = "SHARES")]
    pub(super) mix: Mix,
    /// Commands per second in total, sent at their times whatever the client does (open loop); 0 is full load.
    #[arg(long, default_value_t = 0, value_name = "OPS_PER_S", value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    pub(super) rate: u64,
    /// Concurrent callers.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) workers: u32,
    /// Clients, each with a connection of its own, that the workers share.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) connections: u32,
    /// Commands that a worker keeps in flight, or with --rate may have; 4, or 64 with --rate. redis-py has 1.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) pipeline: Option<u32>,
    /// The window that the server announces, whole seconds; a third of --seconds unless given.
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(super) window: Option<u64>,
    /// Length of a run; 9, or 2.6 for each of several scripts.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(super) seconds: Option<f64>,
    /// What the commands are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Whether the client asks for notifications.
    #[arg(long, value_enum, default_value_t = Maintenance::Auto)]
    pub(super) client_maintenance: Maintenance,
    /// The form of endpoint that the client asks for.
    #[arg(long, value_enum, default_value_t = EndpointForm::Auto, value_name = "FORM")]
    pub(super) moving_endpoint_type: EndpointForm,
    /// The order that the client keeps while its connection moves.
    #[arg(long, value_enum, default_value_t = Order::Strict)]
    pub(super) handoff_order: Order,
    /// One JSON object for each script instead of the table.
    #[arg(long = "json")]
    pub(super) is_json: bool,
    /// Draw throughput by 10 ms with the events into this SVG file; with several scripts, each into one named after it.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// A script by its name, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ScriptName {
    /// One MOVING to another address.
    Plain,
    /// The address refuses connections.
    Refuse,
    /// The address takes its time to answer.
    Slow,
    /// The name still means the old address for a while.
    Dns,
    /// No address: back to the configured one.
    Null,
    /// An IPv6 address.
    Ipv6,
    /// A second MOVING before the first is worked off.
    BackToBack,
    /// Callers wait in BLPOP.
    Blocked,
    /// Subscribers listen.
    Pubsub,
    /// The connections are closed without MOVING.
    Cut,
    /// Every one of these, but for cut.
    All,
}

/// Which client is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ClientKind {
    /// Towline's own.
    Towline,
    /// redis-py, in a process of its own, with its retries off and its notifications on.
    RedisPy,
}

/// Whether the client asks for notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Maintenance {
    /// No.
    Disabled,
    /// If the server knows them.
    Auto,
    /// Or it does not connect.
    Required,
}

/// The form of endpoint that the client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EndpointForm {
    /// As the client finds right.
    Auto,
    InternalIp,
    InternalFqdn,
    ExternalIp,
    ExternalFqdn,
    /// No address is wanted.
    None,
    /// As the server finds right: the option is not sent.
    ServerDefault,
}

/// The order that the client keeps while its connection moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Order {
    /// All commands of a connection.
    Strict,
    /// Commands of one key.
    PerKey,
    /// None.
    None,
}

impl Maintenance {
    /// As Towline's client has it.
    pub(super) fn mode(self) -> MaintenanceMode {
        match self {
            Self::Disabled => MaintenanceMode::Disabled,
            Self::Auto => MaintenanceMode::Auto,
            Self::Required => MaintenanceMode::Required,
        }
    }
}

impl EndpointForm {
    /// As Towline's client has it.
    pub(super) fn form(self) -> EndpointType {
        match self {
            Self::Auto => EndpointType::Auto,
            Self::InternalIp => EndpointType::InternalIp,
            Self::InternalFqdn => EndpointType::InternalFqdn,
            Self::ExternalIp => EndpointType::ExternalIp,
            Self::ExternalFqdn => EndpointType::ExternalFqdn,
            Self::None => EndpointType::None,
            Self::ServerDefault => EndpointType::ServerDefault,
        }
    }
}

impl Order {
    /// As Towline's client has it.
    pub(super) fn order(self) -> HandoffOrder {
        match self {
            Self::Strict => HandoffOrder::Strict,
            Self::PerKey => HandoffOrder::PerKey,
            Self::None => HandoffOrder::None,
        }
    }
}

/// When things happen in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// From the start to the MOVING.
    pub(super) moving: Duration,
    /// Length of the window.
    pub(super) window: Duration,
    /// Length of the run.
    pub(super) run: Duration,
}

impl HandoffArgs {
    /// The scripts to run, in order, each once.
    pub(super) fn scripts(&self) -> Vec<Script> {
        let mut scripts = Vec::new();
        for name in &self.scripts {
            let named = Script::ALL.iter().chain([&Script::Cut]).filter(|script| match name {
                ScriptName::All => **script != Script::Cut,
                one => script.option() == *one,
            });
            for script in named {
                if !scripts.contains(script) {
                    scripts.push(*script);
                }
            }
        }
        scripts
    }

    /// When things happen.
    ///
    /// # Errors
    /// The window does not fit into the run: the caller's mistake, in one line.
    pub(super) fn times(&self) -> Result<Times, String> {
        let is_single = self.scripts().len() == 1;
        let seconds = self.seconds.unwrap_or(if is_single { SECONDS_DEFAULT } else { SECONDS_OF_SEVERAL });
        let run = Duration::from_secs_f64(seconds);
        let window = Duration::from_secs(self.window.unwrap_or_else(|| ((seconds / 3.0) as u64).max(1)));
        let moving = run / 4;
        if moving + window + TAIL > run {
            let least = ((window + TAIL).as_secs_f64() * 4.0 / 3.0 * 10.0).ceil() / 10.0;
            return Err(format!(
                "a window of {} s does not fit into a run of {seconds} s; --seconds {least} has room for it",
                window.as_secs()
            ));
        }
        Ok(Times { moving, window, run })
    }

    /// Commands that a worker may have in flight.
    pub(super) fn depth(&self) -> usize {
        let default = if self.rate > 0 { 64 } else { 4 };
        self.pipeline.map_or(default, |depth| depth as usize)
    }

    /// What no single option can tell by itself.
    ///
    /// # Errors
    /// One line on what is wrong; the caller's mistake.
    pub(super) fn check(&self) -> Result<(), String> {
        self.times()?;
        if self.client == ClientKind::RedisPy && self.pipeline.is_some_and(|depth| depth > 1) {
            return Err("redis-py has one command in flight for each worker; leave out --pipeline".to_owned());
        }
        if self.client == ClientKind::RedisPy && self.moving_endpoint_type == EndpointForm::ServerDefault {
            return Err(
                "redis-py always sends an endpoint type; server-default is for Towline's client".to_owned()
            );
        }
        Ok(())
    }
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (1.9..=300.0).contains(&value) => Ok(value),
        _ => Err("a run takes from 1.9 to 300 seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        handoff: HandoffArgs,
    }

    fn line(words: &str) -> HandoffArgs {
        Line::try_parse_from(words.split(' ')).unwrap().handoff
    }

    #[test]
    fn all_is_every_script_but_the_cut_and_stays_below_half_a_minute() {
        let all = line("x --script all,plain");
        assert_eq!(all.scripts(), Script::ALL);
        assert!(all.times().unwrap().run * (all.scripts().len() as u32) < Duration::from_secs(25));
        assert_eq!(line("x --script cut,null").scripts(), [Script::Cut, Script::Null]);
        assert_eq!(line("x").scripts(), [Script::Plain]);
    }

    #[test]
    fn the_window_fits_into_the_run() {
        let times = line("x").times().unwrap();
        assert_eq!((times.window.as_secs(), times.moving.as_secs_f64()), (3, 2.25));
        assert_eq!(line("x --seconds 3").times().unwrap().window.as_secs(), 1);
        let error = line("x --seconds 3 --window 2").check().unwrap_err();
        assert!(error.contains("--seconds 3.2"), "{error}");
        assert!(line("x --seconds 3.2 --window 2").check().is_ok());
        assert!(line("x --seconds 1.9").check().is_ok());
    }

    #[test]
    fn depths_follow_the_loop() {
        assert_eq!((line("x").depth(), line("x --rate 10").depth()), (4, 64));
        assert!(line("x --client redis-py --pipeline 2").check().is_err());
        assert!(Line::try_parse_from(["x", "--seconds", "0.1"]).is_err());
        assert!(Line::try_parse_from(["x", "--script", "fire"]).is_err());
    }
}
