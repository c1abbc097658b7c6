//! The options of `towline cli`: redis-cli's, as far as they make sense here.
//!
//! Owns their names and their checks one by one; [`Settings`] is what the rest of the module works with. Does not
//! own what the options do.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use super::error::CliError;
use super::render::{Delimiters, Style};
use super::target::{Credentials, HOST_DEFAULT, PORT_DEFAULT, Target, Uri};
use crate::tls::{Connector, TlsArgs};

/// Sends commands to a server, or starts an interactive session when none is given.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, args_override_self = true)]
#[command(
    after_help = "The command begins at the first word that is no option, and everything behind it belongs to it. Without a command, \
    lines of standard input are commands.\n\n\
    Examples:\n  towline cli SET greeting hello\n  towline cli -x SET greeting < file\n  \
    towline cli --scan --pattern 'user:*'\n  towline cli --json HGETALL user:1\n  towline cli --pipe < commands.resp"
)]
pub(crate) struct CliArgs {
    /// Print this help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
    /// Run the command this often, or print this many lines of --stat and --latency-history; negative: for ever.
    #[arg(short, value_name = "COUNT", allow_negative_numbers = true)]
    repeat: Option<i64>,
    /// Seconds between repetitions, cycles of --scan, --stat and --latency-history, and 100 cycles of --bigkeys.
    #[arg(short, value_name = "SECONDS", value_parser = parse_seconds)]
    interval: Option<Duration>,
    /// Read the last argument from standard input.
    #[arg(short = 'x')]
    is_last_from_stdin: bool,
    /// Read the argument that is TAG from standard input.
    #[arg(short = 'X', value_name = "TAG", conflicts_with = "is_last_from_stdin")]
    tag_from_stdin: Option<OsString>,
    /// Arguments are in the REPL's quoted form ("\x00").
    #[arg(long)]
    quoted_input: bool,
    /// Exit with code 1 when the reply is an error.
    #[arg(short = 'e')]
    fails_on_error: bool,
    /// Say on standard error what happens to connections.
    #[arg(long)]
    verbose: bool,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, conflicts_with = "mode", value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    mode: ModeArgs,
    #[command(flatten)]
    refused: RefusedArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
struct ConnectArgs {
    /// Host name or address.
    #[arg(short = 'h', long, value_name = "HOST", default_value = HOST_DEFAULT)]
    host: String,
    /// Port.
    #[arg(short, long, default_value_t = PORT_DEFAULT)]
    port: u16,
    /// Unix socket; host and port do not count then.
    #[arg(short, long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Password. Other users of the machine can see it: better TOWLINE_AUTH or REDISCLI_AUTH in the environment, or --askpass.
    #[arg(short = 'a', long = "pass", value_name = "PASSWORD")]
    password: Option<OsString>,
    /// User that the password belongs to.
    #[arg(long, value_name = "NAME")]
    user: Option<OsString>,
    /// Ask for the password; -a and the environment do not count then.
    #[arg(long)]
    askpass: bool,
    /// No warning about -a.
    #[arg(long)]
    no_auth_warning: bool,
    /// `redis://[[user]:password@]host[:port][/db]`, `rediss://` likewise with TLS, or `redis+unix:///path[?db=n]`.
    #[arg(short, long, value_name = "URI")]
    uri: Option<String>,
    /// Database.
    #[arg(short = 'n', value_name = "DB")]
    db: Option<u32>,
    /// Speak RESP2.
    #[arg(short = '2', conflicts_with = "is_resp3")]
    is_resp2: bool,
    /// Speak RESP3.
    #[arg(short = '3')]
    is_resp3: bool,
    /// Cluster: follow MOVED and ASK.
    #[arg(short = 'c')]
    is_cluster: bool,
    #[command(flatten)]
    tls: TlsArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct FormatArgs {
    /// Payloads only; the default when standard output is no terminal.
    #[arg(long, group = "format")]
    raw: bool,
    /// Types and quotes, even when standard output is no terminal.
    #[arg(long, group = "format")]
    no_raw: bool,
    /// Comma-separated values.
    #[arg(long, group = "format")]
    csv: bool,
    /// JSON; speaks RESP3 if the server does and -2 does not forbid it.
    #[arg(long, group = "format")]
    json: bool,
    /// JSON whose strings hold the quoted form, for binary values.
    #[arg(long, group = "format")]
    quoted_json: bool,
    /// Between the members of a raw reply.
    #[arg(short = 'd', value_name = "DELIMITER", default_value = "\n", hide_default_value = true)]
    element_delimiter: OsString,
    /// Behind a raw reply.
    #[arg(short = 'D', value_name = "DELIMITER", default_value = "\n", hide_default_value = true)]
    reply_delimiter: OsString,
    /// Whether to show RESP3 pushes; the default is yes on a terminal.
    #[arg(long, value_enum, value_name = "YES|NO")]
    show_pushes: Option<YesNo>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum YesNo {
    #[value(alias = "y")]
    Yes,
    #[value(alias = "n")]
    No,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Modes")]
struct ModeArgs {
    /// Print the server's memory, clients and load every second.
    #[arg(long, group = "mode")]
    stat: bool,
    /// Measure round trips: for ever on a terminal, otherwise for one second or -i.
    #[arg(long, group = "mode")]
    latency: bool,
    /// Like --latency, with a new line every 15 seconds or -i.
    #[arg(long, group = "mode")]
    latency_history: bool,
    /// Print all keys.
    #[arg(long, group = "mode")]
    scan: bool,
    /// Find the keys with the most members or bytes of each type.
    #[arg(long, group = "mode")]
    bigkeys: bool,
    /// Find the keys that use the most memory.
    #[arg(long, group = "mode")]
    memkeys: bool,
    /// Members of each key that --memkeys looks at; 0: all.
    #[arg(long, value_name = "COUNT")]
    memkeys_samples: Option<u32>,
    /// With --scan, --bigkeys, --memkeys: only keys that match.
    #[arg(long, value_name = "GLOB")]
    pattern: Option<OsString>,
    /// Like --pattern, in the REPL's quoted form.
    #[arg(long, value_name = "GLOB", conflicts_with = "pattern")]
    quoted_pattern: Option<String>,
    /// With --scan, --bigkeys, --memkeys: keys per round trip.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// With --scan: only keys of this type.
    #[arg(long = "type", value_name = "TYPE")]
    key_type: Option<String>,
    /// Send standard input, which is RESP, and count the replies.
    #[arg(long, group = "mode")]
    pipe: bool,
    /// Seconds without a reply after which --pipe gives up; 0: never.
    #[arg(long, value_name = "SECONDS", default_value_t = PIPE_TIMEOUT_SECONDS)]
    pipe_timeout: u64,
}

/// Patience of `--pipe`, in seconds, once everything is sent: redis-cli's.
const PIPE_TIMEOUT_SECONDS: u64 = 30;

/// Options of redis-cli that have no place here. They are known so that the answer can say where to go.
#[derive(Debug, Args)]
struct RefusedArgs {
    #[arg(long, hide = true)]
    eval: Option<OsString>,
    #[arg(long, hide = true)]
    ldb: bool,
    #[arg(long, hide = true)]
    rdb: Option<OsString>,
    #[arg(long, hide = true)]
    functions_rdb: Option<OsString>,
    #[arg(long, hide = true, alias = "slave")]
    replica: bool,
    #[arg(long, hide = true)]
    lru_test: Option<OsString>,
    #[arg(long, hide = true)]
    hotkeys: bool,
    #[arg(long, hide = true)]
    latency_dist: bool,
    #[arg(long, hide = true)]
    intrinsic_latency: Option<OsString>,
    #[arg(long, hide = true, num_args = 0..)]
    cluster: Option<Vec<OsString>>,
    #[arg(long, hide = true)]
    tls_ciphers: Option<OsString>,
    #[arg(long, hide = true)]
    tls_ciphersuites: Option<OsString>,
}

impl RefusedArgs {
    fn check(&self) -> Result<(), CliError> {
        let all = [
            (
                self.eval.is_some(),
                "--eval is not supported: send the script itself, `towline cli -x EVAL ...` reads the last argument from standard input",
            ),
            (self.ldb, "--ldb is not supported: there is no script debugger"),
            (self.rdb.is_some(), "--rdb is not supported: use BGSAVE and copy the server's file"),
            (
                self.functions_rdb.is_some(),
                "--functions-rdb is not supported: FUNCTION DUMP returns the functions",
            ),
            (self.replica, "--replica is not supported: MONITOR shows the commands that a server executes"),
            (self.lru_test.is_some(), "--lru-test is not supported: `towline bench` generates load"),
            (self.hotkeys, "--hotkeys is not supported: OBJECT FREQ tells how often a key is used"),
            (
                self.latency_dist,
                "--latency-dist is not supported: use --latency-history, or `towline bench` for percentiles",
            ),
            (
                self.intrinsic_latency.is_some(),
                "--intrinsic-latency is not supported: use a tool of the operating system, such as cyclictest",
            ),
            (
                self.cluster.is_some(),
                "--cluster is not supported here: `towline cluster` creates, checks, fixes and reshards clusters",
            ),
            (
                self.tls_ciphers.is_some() || self.tls_ciphersuites.is_some(),
                "--tls-ciphers and --tls-ciphersuites are not supported: only suites that are safe are offered",
            ),
        ];
        match all.iter().find(|(is_given, _)| *is_given) {
            Some((_, text)) => Err(CliError::Usage((*text).to_owned())),
            None => Ok(()),
        }
    }
}

/// Protocol to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Say nothing: servers begin with RESP2.
    Resp2,
    /// `HELLO 3`, and say so when it is refused.
    Resp3,
    /// `HELLO 3`, and carry on in RESP2 when it is refused.
    Resp3IfPossible,
}

/// Where arguments come from that are not on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StdinArgument {
    /// Standard input holds no argument.
    None,
    /// It is the last argument.
    Last,
    /// It replaces the argument that equals this tag.
    Tag(Vec<u8>),
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Run one command.
    Command(Vec<Vec<u8>>),
    /// Run the lines of standard input, or those typed at a prompt.
    Lines,
    /// `--stat`.
    Stat,
    /// `--latency`.
    Latency,
    /// `--latency-history`.
    LatencyHistory,
    /// `--scan`.
    Scan(ScanOptions),
    /// `--bigkeys`.
    BigKeys(ScanOptions),
    /// `--memkeys` with the number of samples.
    MemKeys(ScanOptions, Option<u32>),
    /// `--pipe` with its patience; `None`: without end.
    Pipe(Option<Duration>),
}

/// Which keys a scan visits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScanOptions {
    /// Glob that names match.
    pub(crate) pattern: Option<Vec<u8>>,
    /// Keys per round trip, at least 1.
    pub(crate) count: Option<u32>,
    /// Type that values have.
    pub(crate) key_type: Option<String>,
}

/// The options, checked and put together.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Where the server is.
    pub(crate) target: Target,
    /// How to speak TLS, if at all.
    pub(crate) tls: Option<Connector>,
    /// Who asks.
    pub(crate) credentials: Option<Credentials>,
    /// Database.
    pub(crate) db: u32,
    /// Protocol to begin with.
    pub(crate) protocol: Protocol,
    /// Whether redirections are followed.
    pub(crate) is_cluster: bool,
    /// Layout, when the caller chose one.
    pub(crate) style: Option<Style>,
    /// Delimiters of raw replies.
    pub(crate) delimiters: Delimiters,
    /// Whether pushes are shown, when the caller chose.
    pub(crate) shows_pushes: Option<bool>,
    /// Repetitions, when the caller chose; negative: no end.
    pub(crate) repeat: Option<i64>,
    /// Pause between repetitions.
    pub(crate) interval: Option<Duration>,
    /// What standard input is for.
    pub(crate) stdin_argument: StdinArgument,
    /// Whether an error reply makes the exit code 1.
    pub(crate) fails_on_error: bool,
    /// Whether to tell about connections.
    pub(crate) is_verbose: bool,
    /// What to do.
    pub(crate) mode: Mode,
}

/// What the environment says.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// A password: `TOWLINE_AUTH`, else `REDISCLI_AUTH`.
    pub(crate) password: Option<OsString>,
}

impl Environment {
    /// Reads the process's environment.
    pub(crate) fn read() -> Self {
        let password = ["TOWLINE_AUTH", "REDISCLI_AUTH"].into_iter().find_map(std::env::var_os);
        Self { password }
    }
}

impl CliArgs {
    /// Puts the options together; `ask_password` is called for `--askpass`.
    ///
    /// # Errors
    /// [`CliError::Usage`] when options contradict each other or name something unsupported, and what
    /// `ask_password` returns.
    pub(crate) fn resolve(
        self,
        environment: Environment,
        ask_password: impl FnOnce() -> Result<Vec<u8>, CliError>,
    ) -> Result<Settings, CliError> {
        self.refused.check()?;
        let uri = self.connect.uri.as_deref().map(Uri::parse).transpose();
        let uri = uri.map_err(|error| CliError::Usage(error.to_string()))?;
        let mut tls = self.connect.tls;
        tls.is_tls |= uri.as_ref().is_some_and(|uri| uri.is_tls);
        let tls = Connector::new(&tls).map_err(|error| CliError::Usage(error.to_string()))?;
        let (target, uri_credentials, uri_db) = match uri {
            Some(uri) => (Some(uri.target), uri.credentials, uri.db),
            None => (None, None, None),
        };
        let is_exposed = self.connect.password.is_some() || uri_credentials.is_some();
        let password = if self.connect.askpass {
            Some(ask_password()?)
        } else {
            let from_environment = environment.password.filter(|_| uri_credentials.is_none());
            self.connect.password.or(from_environment).map(bytes)
        };
        if is_exposed && !self.connect.no_auth_warning && !self.connect.askpass {
            super::warn(
                "Warning: a password on the command line can be seen by other users of this machine; use TOWLINE_AUTH or --askpass",
            );
        }
        let user = self.connect.user.map(bytes);
        let credentials = password.map(|password| Credentials { user, password }).or(uri_credentials);
        let command = self.command.into_iter().map(bytes).collect();
        let command = if self.quoted_input { unquote_all(command)? } else { command };
        let style = self.format.style();
        let is_json = matches!(style, Some(Style::Json | Style::QuotedJson));
        let target = target.unwrap_or(match self.connect.socket {
            Some(path) => Target::Unix(path),
            None => Target::Tcp { host: self.connect.host, port: self.connect.port },
        });
        if tls.is_some() && matches!(target, Target::Unix(_)) {
            return Err(CliError::Usage("--tls is for TCP; leave out --socket".to_owned()));
        }
        Ok(Settings {
            target,
            tls,
            credentials,
            db: self.connect.db.or(uri_db).unwrap_or(0),
            protocol: match (self.connect.is_resp3, self.connect.is_resp2) {
                (true, _) => Protocol::Resp3,
                (false, false) if is_json => Protocol::Resp3IfPossible,
                _ => Protocol::Resp2,
            },
            is_cluster: self.connect.is_cluster,
            style,
            delimiters: Delimiters {
                element: bytes(self.format.element_delimiter),
                reply: bytes(self.format.reply_delimiter),
            },
            shows_pushes: self.format.show_pushes.map(|choice| matches!(choice, YesNo::Yes)),
            repeat: self.repeat,
            interval: self.interval,
            stdin_argument: match self.tag_from_stdin {
                Some(tag) => StdinArgument::Tag(bytes(tag)),
                None if self.is_last_from_stdin => StdinArgument::Last,
                None => StdinArgument::None,
            },
            fails_on_error: self.fails_on_error,
            is_verbose: self.verbose,
            mode: self.mode.resolve(command)?,
        })
    }
}

impl FormatArgs {
    const fn style(&self) -> Option<Style> {
        if self.raw {
            Some(Style::Raw)
        } else if self.no_raw {
            Some(Style::Standard)
        } else if self.csv {
            Some(Style::Csv)
        } else if self.json {
            Some(Style::Json)
        } else if self.quoted_json {
            Some(Style::QuotedJson)
        } else {
            None
        }
    }
}

impl ModeArgs {
    fn resolve(self, command: Vec<Vec<u8>>) -> Result<Mode, CliError> {
        let pattern = match self.quoted_pattern {
            Some(text) => Some(unquote(text.as_bytes())?),
            None => self.pattern.map(bytes),
        };
        let options = ScanOptions { pattern, count: self.count, key_type: self.key_type };
        Ok(if self.stat {
            Mode::Stat
        } else if self.latency {
            Mode::Latency
        } else if self.latency_history {
            Mode::LatencyHistory
        } else if self.scan {
            Mode::Scan(options)
        } else if self.bigkeys {
            Mode::BigKeys(options)
        } else if self.memkeys {
            Mode::MemKeys(options, self.memkeys_samples)
        } else if self.pipe {
            Mode::Pipe((self.pipe_timeout > 0).then(|| Duration::from_secs(self.pipe_timeout)))
        } else if command.is_empty() {
            Mode::Lines
        } else {
            Mode::Command(command)
        })
    }
}

fn bytes(text: OsString) -> Vec<u8> {
    text.into_vec()
}

fn unquote_all(words: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, CliError> {
    words.iter().map(|word| unquote(word)).collect()
}

/// One word in the REPL's quoted form.
fn unquote(word: &[u8]) -> Result<Vec<u8>, CliError> {
    match towline_resp::inline::split_line(word).as_deref() {
        Ok([only]) => Ok(only.clone()),
        _ => Err(CliError::Usage(format!("not one word in quoted form: {}", word.escape_ascii()))),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "not a possible number of seconds".to_owned())
}

#[cfg(test)]
mod tests;
