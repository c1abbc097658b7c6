//! The options of `towline cluster`.
//!
//! Owns their names and what each of them allows by itself. Does not own what they do.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use towline_cluster_proto::Ranges;

use super::address::Address;
use super::error::ClusterError;
use super::member::read_ranges;
use super::peer::Access;
use crate::cli::{CliError, Credentials, Environment, ask_password};
use crate::tls::{Connector, TlsArgs};

/// Make, check and change clusters, of Towline, Redis or Valkey.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 it is done, or the check found no problem; 1 it failed, or the check found problems; 2 the command line \
    cannot be; 130 Ctrl-C, everything was left in order and the same command goes on.\n\n\
    Examples:\n  towline cluster create 7000 7001 7002\n  towline cluster check 7000\n  \
    towline cluster reshard 7000 --slots 1000 --from all --to 127.0.0.1:7002\n  towline cluster rebalance 7000 --use-empty --dry-run"
)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    pub(super) job: ClusterJob,
    #[command(flatten)]
    pub(super) connect: ConnectArgs,
    /// One JSON object on standard output, and nothing else there.
    #[arg(long = "json", global = true)]
    pub(super) is_json: bool,
    /// Do not ask before something is changed. Without a terminal nobody can be asked, and this is needed.
    #[arg(short = 'y', long = "yes", global = true)]
    pub(super) is_yes: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct ConnectArgs {
    /// Password of all nodes. Other users of the machine can see it: better TOWLINE_AUTH or REDISCLI_AUTH in the environment, or --askpass.
    #[arg(short = 'a', long = "pass", global = true, value_name = "PASSWORD")]
    password: Option<OsString>,
    /// User that the password belongs to.
    #[arg(long, global = true, value_name = "NAME")]
    user: Option<OsString>,
    /// Ask for the password; -a and the environment do not count then.
    #[arg(long, global = true)]
    askpass: bool,
    /// Seconds to wait for a reply. The default is above what moving a big key takes.
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    tls: TlsArgs,
}

impl ConnectArgs {
    /// How nodes are reached.
    ///
    /// # Errors
    /// [`ClusterError::Usage`].
    pub(super) fn access(&self) -> Result<Access, ClusterError> {
        let usage = |error: &dyn std::fmt::Display| ClusterError::Usage(error.to_string());
        let tls = Connector::new(&self.tls).map_err(|error| usage(&error))?;
        let password = if self.askpass {
            Some(ask_password().map_err(|error: CliError| usage(&error))?)
        } else {
            let given = self.password.clone();
            given.or_else(|| Environment::read().password).map(OsString::into_vec)
        };
        let user = self.user.clone().map(OsString::into_vec);
        let credentials = match (user, password) {
            (Some(_), None) => return Err(ClusterError::Usage("--user needs a password".to_owned())),
            (user, password) => password.map(|password| Credentials { user, password }),
        };
        Ok(Access { tls, credentials, timeout: Duration::from_secs(self.timeout) })
    }
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(super) enum ClusterJob {
    /// Make a cluster of nodes that are alone and empty.
    Create(CreateArgs),
    /// Look for everything that is wrong, and say what to do.
    Check(CheckArgs),
    /// Mend what `check` finds. No value is overwritten without being asked for.
    Fix(FixArgs),
    /// Slots, keys and replicas of each primary.
    Info(AtArgs),
    /// All nodes, as the named one sees them.
    Nodes(AtArgs),
    /// Let a node that is alone and empty join.
    AddNode(AddNodeArgs),
    /// Let a node without slots go.
    DelNode(DelNodeArgs),
    /// Move slots with their keys to a primary.
    Reshard(ReshardArgs),
    /// Move slots until each primary has its share.
    Rebalance(RebalanceArgs),
    /// Migrations that the servers carry out themselves (CLUSTER MIGRATESLOTS).
    Migrate(MigrateArgs),
    /// Send a command to every node.
    Call(CallArgs),
}

/// Any node of the cluster.
#[derive(Debug, Args)]
pub(super) struct AtArgs {
    /// Any node of the cluster: host:port, or the port of one on this machine.
    pub(super) node: Address,
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// The nodes: primaries first, replicas behind them.
    #[arg(required = true)]
    pub(super) nodes: Vec<Address>,
    /// Replicas of each primary.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(super) replicas: u16,
    /// Show what would be done.
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub(super) at: AtArgs,
    /// Do not look for keys in slots that their node does not own.
    #[arg(long)]
    pub(super) no_keys: bool,
}

#[derive(Debug, Args)]
pub(super) struct FixArgs {
    #[command(flatten)]
    pub(super) at: AtArgs,
    /// What to do with a key that two nodes have with different values: leave both, or keep the one of the slot's owner (which clients
    /// see), or the other one.
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Conflict::Stop)]
    pub(super) conflict: Conflict,
    /// Work on the nodes that answer although others do not.
    #[arg(long)]
    pub(super) without_lost: bool,
    /// Show what would be done.
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Which of two values survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Conflict {
    /// Neither is touched.
    Stop,
    /// The value at the slot's owner.
    Owner,
    /// The value at the other node.
    Other,
}

#[derive(Debug, Args)]
pub(super) struct AddNodeArgs {
    /// The node that joins.
    pub(super) new: Address,
    /// Any node of the cluster.
    pub(super) node: Address,
    /// Join as a replica, of the primary that has fewest.
    #[arg(long)]
    pub(super) replica: bool,
    /// Join as a replica of this primary: host:port or the beginning of its name.
    #[arg(long, value_name = "NODE", conflicts_with = "replica")]
    pub(super) replica_of: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct DelNodeArgs {
    #[command(flatten)]
    pub(super) at: AtArgs,
    /// The node that goes: host:port or the beginning of its name. It may be one that does not answer any more.
    pub(super) leaving: String,
}

/// How slots move.
#[derive(Debug, Clone, Args)]
pub(super) struct MoveArgs {
    /// Key by key, by this tool (SETSLOT and MIGRATE). Every server can do that.
    #[arg(long, conflicts_with = "atomic")]
    pub(super) classic: bool,
    /// Whole ranges, by the servers (CLUSTER MIGRATESLOTS): the default where the sources know it.
    #[arg(long)]
    pub(super) atomic: bool,
    /// Keys per second at most; 0: as fast as it goes. For --classic.
    #[arg(long, value_name = "KEYS", default_value_t = 0)]
    pub(super) rate: u64,
    /// Keys of one MIGRATE. More are faster, and hold up others at single-threaded servers for longer. For --classic.
    #[arg(long, value_name = "KEYS", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) pipeline: u32,
    /// Slots that are open at once with --classic (up to 128), or of one migration with --atomic; what an interruption waits for. The
    /// defaults are 32 and 1024.
    #[arg(long, value_name = "SLOTS", value_parser = clap::value_parser!(u16).range(1..=16384))]
    pub(super) batch: Option<u16>,
    /// Overwrite a key that the target has with another value. For --classic.
    #[arg(long)]
    pub(super) replace: bool,
    /// Show what would be done.
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReshardArgs {
    #[command(flatten)]
    pub(super) at: AtArgs,
    /// The primary that gets the slots: host:port or the beginning of its name.
    #[arg(long, value_name = "NODE")]
    pub(super) to: String,
    /// The primaries that give them, separated by commas, or `all`.
    #[arg(long, value_name = "NODES", default_value = "all", value_delimiter = ',')]
    pub(super) from: Vec<String>,
    /// How many, from each source in proportion to what it has.
    #[arg(long, value_name = "COUNT", required_unless_present = "ranges", conflicts_with = "ranges")]
    pub(super) slots: Option<u16>,
    /// Which: `0-99,200`. Those that the target has already stay.
    #[arg(long, value_name = "RANGES", value_parser = read_ranges)]
    pub(super) ranges: Option<Ranges>,
    #[command(flatten)]
    pub(super) how: MoveArgs,
}

#[derive(Debug, Args)]
pub(super) struct RebalanceArgs {
    #[command(flatten)]
    pub(super) at: AtArgs,
    /// What a primary should have in relation to the others, which have 1: `NODE=WEIGHT`. 0 empties it.
    #[arg(long, value_name = "NODE=WEIGHT", value_delimiter = ',', value_parser = read_weight)]
    pub(super) weight: Vec<(String, f64)>,
    /// Do nothing while each primary is within so many percent of its share.
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub(super) threshold: f64,
    /// Give primaries without slots their share as well.
    #[arg(long)]
    pub(super) use_empty: bool,
    #[command(flatten)]
    pub(super) how: MoveArgs,
}

fn read_weight(text: &str) -> Result<(String, f64), String> {
    let read = text.rsplit_once('=').and_then(|(node, weight)| Some((node, weight.parse::<f64>().ok()?)));
    let valid = read.filter(|(node, weight)| !node.is_empty() && weight.is_finite() && *weight >= 0.0);
    valid
        .map(|(node, weight)| (node.to_owned(), weight))
        .ok_or_else(|| format!("'{text}' is no weight: NODE=WEIGHT, where WEIGHT is a number from 0 up"))
}

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    #[command(subcommand)]
    pub(super) job: MigrateJob,
}

#[derive(Debug, Subcommand)]
pub(super) enum MigrateJob {
    /// Show migrations, at their sources and targets.
    Status(AtArgs),
    /// End all migrations that go on; their slots stay where they are.
    Cancel(AtArgs),
}

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    #[command(flatten)]
    pub(super) at: AtArgs,
    /// Only to primaries.
    #[arg(long, conflicts_with = "only_replicas")]
    pub(super) only_primaries: bool,
    /// Only to replicas.
    #[arg(long)]
    pub(super) only_replicas: bool,
    /// The command.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read() {
        assert_eq!(read_weight("127.0.0.1:7000=0"), Ok(("127.0.0.1:7000".to_owned(), 0.0)));
        assert_eq!(read_weight("ab12=1.5"), Ok(("ab12".to_owned(), 1.5)));
        for bad in ["", "x", "x=", "=1", "x=-1", "x=nan", "x=inf"] {
            assert!(read_weight(bad).is_err(), "{bad}");
        }
    }
}
