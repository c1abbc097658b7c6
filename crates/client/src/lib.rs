//! The client for applications.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod args;
mod client;
mod clock;
mod cmd;
mod credentials;
mod dialing;
mod driver;
mod engine;
mod observe;
mod options;
mod pipeline;
mod trace;
pub mod transport;
mod url;
mod value;

pub use args::{Args, ArgsIter, Part, SHARED_BYTES_MIN, ToArgs};
pub use client::Client;
pub use cmd::{BlockTime, Cmd, CmdOptions, Profile, RetryChoice, cmd};
pub use credentials::{CredentialsError, CredentialsFuture, CredentialsProvider, RotatingCredentials};
pub use observe::Events;
pub use options::{ConnectOptions, OptionsError};
pub use pipeline::{Entry, Pipeline, PipelineMisuse, Transacted, pipe};
pub use towline_admission::{BackoffConfig, BackoffError};
pub use towline_client_proto::{
    BacklogPolicy, Blame, Config, Counters, Credentials, Diagnosis, Down, Error, ErrorKind, Event,
    Generation, HeadOfLine, LinkState, LivenessConfig, LostCause, Outage, Peer, Policy, ProtocolChoice,
    Ready, RetryBudgetConfig, SecondOpinion, Sent, ServerError, ServerInfo, ServerMode, Situation, Snapshot,
    Stage, Trouble, Verdict,
};
pub use towline_resp::frame::Frame;
pub use towline_spec::SideEffect;
pub use url::UrlError;
pub use value::{Found, FromReply, ReplyError};
