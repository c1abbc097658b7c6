//! `towline cluster`: makes, checks and changes clusters.
//!
//! ```text
//! options -> create | check | fix | show (info, nodes, call) | reshard (and rebalance) | atomic (migrate)
//!               reshard -> classic (key by key) | atomic (by the servers);  fix, reshard -> settle (open slots)
//!               all -> survey (what every node says) -> member;  peer (one conversation);  findings (what is wrong)
//! ```
//!
//! Owns the operator's side of a cluster, of Towline, Redis 7 or Valkey. All state is in the cluster: a run that was interrupted is
//! gone on with by the same command. Does not own plans, which are `towline_cluster_proto::plan`, nor the reading of a cluster for
//! clients, which is `towline-cluster`.

mod address;
mod atomic;
mod check;
mod classic;
mod create;
mod error;
mod findings;
mod fix;
mod keys;
mod member;
mod moving;
mod options;
mod output;
mod peer;
mod reshard;
mod settle;
mod show;
mod survey;

use std::process::ExitCode;

pub(crate) use create::{answers, bring_up};
pub(crate) use error::ClusterError;
pub(crate) use options::ClusterArgs;

use error::EXIT_FAILURE;
use options::{ClusterJob, MigrateJob};
use output::Output;

/// Does what `arguments` ask for; a failure is one line on standard error.
pub(crate) fn run(arguments: ClusterArgs) -> ExitCode {
    match execute(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_FAILURE),
        Err(error) => {
            crate::bench::complain(&error.to_string().replace('\n', " "));
            ExitCode::from(error.exit_code())
        }
    }
}

fn execute(arguments: &ClusterArgs) -> Result<bool, ClusterError> {
    let access = arguments.connect.access()?;
    let output = Output { is_json: arguments.is_json, is_yes: arguments.is_yes, is_silent: false };
    match &arguments.job {
        ClusterJob::Create(args) => create::create(args, &access, &output),
        ClusterJob::Check(args) => check::run(args, &access, &output),
        ClusterJob::Fix(args) => fix::run(args, &access, &output),
        ClusterJob::Info(args) => show::info(args, &access, &output),
        ClusterJob::Nodes(args) => show::nodes(args, &access, &output),
        ClusterJob::AddNode(args) => create::add(args, &access, &output),
        ClusterJob::DelNode(args) => create::delete(args, &access, &output),
        ClusterJob::Reshard(args) => reshard::reshard(args, &access, &output),
        ClusterJob::Rebalance(args) => reshard::rebalance(args, &access, &output),
        ClusterJob::Migrate(args) => match &args.job {
            MigrateJob::Status(at) => atomic::status(at, &access, &output),
            MigrateJob::Cancel(at) => atomic::cancel(at, &access, &output),
        },
        ClusterJob::Call(args) => show::call(args, &access, &output),
    }
}
