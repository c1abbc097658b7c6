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
mod options;
mod pipeline;
pub mod transport;
mod url;
mod value;

pub use args::{Args, ArgsIter, Part, SHARED_BYTES_MIN, ToArgs};
pub use client::Client;
pub use cmd::{BlockTime, Cmd, CmdOptions, Profile, RetryChoice, cmd};
pub use credentials::{CredentialsError, CredentialsFuture, CredentialsProvider, RotatingCredentials};
pub use options::{ConnectOptions, OptionsError};
pub use pipeline::{Entry, Pipeline, PipelineMisuse, Transacted, pipe};
pub use towline_admission::{BackoffConfig, BackoffError};
pub use towline_client_proto::{
    BacklogPolicy, Config, Credentials, Diagnosis, Error, ErrorKind, Event, LinkState, LivenessConfig,
    LostCause, Outage, Peer, Policy, ProtocolChoice, RetryBudgetConfig, SecondOpinion, Sent, ServerError,
    Situation, Snapshot, Stage, Verdict,
};
pub use towline_resp::frame::Frame;
pub use towline_spec::SideEffect;
pub use url::UrlError;
pub use value::{Found, FromReply, ReplyError};
