//! Why a job on a cluster stops.
//!
//! Owns the one-line texts and the exit codes. Does not own what is found about a cluster (`findings`): that is an answer, not a failure.

use towline_cluster_proto::plan::PlanError;

use crate::cli::CliError;

/// Exit code of a job that failed, or whose check found problems.
pub(super) const EXIT_FAILURE: u8 = 1;

/// Exit code of a command line that cannot be.
pub(super) const EXIT_USAGE: u8 = 2;

/// Exit code after Ctrl-C, as shells have it: everything is in order, and the job can be run again.
pub(super) const EXIT_INTERRUPTED: u8 = 130;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ClusterError {
    /// A node cannot be reached, or the connection broke; retryable, a command on its way may have run.
    #[error("{node}: {source}")]
    Node {
        /// Its address.
        node: String,
        /// What happened.
        source: CliError,
    },
    /// A node did not answer in time; the command may still run.
    #[error("{node}: no reply to {command} within {seconds} s (--timeout)")]
    Silent {
        /// Its address.
        node: String,
        /// The command's first words.
        command: String,
        /// The patience.
        seconds: u64,
    },
    /// A node refused a command.
    #[error("{node}: {command}: {text}")]
    Refused {
        /// Its address.
        node: String,
        /// The command's first words.
        command: String,
        /// The error reply.
        text: String,
    },
    /// A reply of another shape than documented.
    #[error("{node}: {command}: unexpected reply")]
    Unexpected {
        /// Its address.
        node: String,
        /// The command's first words.
        command: String,
    },
    /// The plan cannot be.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The options do not fit together, or to this cluster.
    #[error("{0}")]
    Usage(String),
    /// The cluster is in no state for the job; the text says what to do.
    #[error("{0}")]
    Refusal(String),
    /// Ctrl-C, after everything was left in order.
    #[error("{0}")]
    Interrupted(String),
    /// Standard output or a signal handler failed.
    #[error("{what}: {source}")]
    Local {
        /// What was being done.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

impl ClusterError {
    /// What the process ends with.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => EXIT_USAGE,
            Self::Interrupted(_) => EXIT_INTERRUPTED,
            _ => EXIT_FAILURE,
        }
    }
}
