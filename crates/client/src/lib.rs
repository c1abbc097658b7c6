//! A client for Redis, Valkey and Towline that knows what became of every command.
//!
//! One [`Client`] is a handle that every task may use at once, by reference or by clone. All of them share a connection;
//! commands of concurrent tasks are pipelined by themselves. When the connection breaks, the client knows for each
//! command whether the server may have run it, sends again what cannot do harm, and says of the rest what is certain.
//!
//! ```no_run
//! use towline_client::{Client, Error, cmd, pipe};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let client = Client::connect("redis://127.0.0.1:6379").await?;
//!
//! client.set("greeting", "hello").await?;
//! let greeting: Option<String> = client.get("greeting").await?;
//!
//! let visits: i64 = cmd("INCR").arg("visits").query(&client).await?;
//! let (a, b): (i64, Option<String>) =
//!     pipe().cmd("INCR").arg("a").cmd("GET").arg("b").query(&client).await?;
//! # let _ = (greeting, visits, a, b);
//! # Ok(())
//! # }
//! ```
//!
//! The directory `examples` has whole programs; `docs/client.md` is the guide to policies, deadlines and errors.
//!
//! # The fate of a command
//!
//! Every error answers two questions: what happened ([`Error::kind`]), and whether the server may have run the command
//! ([`Error::sent`]). The client counts the bytes that the kernel took, so the second answer is never a guess.
//!
//! | the connection breaks while the command is | the server has | what follows | if it fails all the same |
//! |---|---|---|---|
//! | queued: no connection has it | not run it | sent on the next connection, in order | [`Sent::No`] |
//! | staged: its last byte has not left | not run it | sent on the next connection, in order | [`Sent::No`] |
//! | on the wire, a read | perhaps run it | sent again | [`Sent::Maybe`] |
//! | on the wire, idempotent (`SET`) | perhaps run it | sent again if [`Cmd::allow_retry`] says so | [`Sent::Maybe`] |
//! | on the wire, anything else (`INCR`) | perhaps run it | fails at once with [`ErrorKind::Lost`] | [`Sent::Maybe`] |
//! | on the wire, a transaction | run all of it or nothing | [`Transacted::Unknown`] | [`Sent::Maybe`] |
//! | answered | run it, or refused it | the answer | [`Sent::Answered`] |
//!
//! A refusal that proves that nothing ran (`LOADING`, `TRYAGAIN`, ...) is followed by another attempt, within the
//! deadline and a budget. [`Error::is_retryable`] is true only where a second call cannot run anything twice.
//!
//! # Time
//!
//! Each command has one deadline, from submission to reply: 5 s, or [`ConnectOptions::command_timeout`], or
//! [`Cmd::deadline`]. It includes the wait for a connection. An error that ends a command early carries a
//! [`Diagnosis`]: the time in each stage, what it waited behind, why nothing was connected, and where to look first.
//!
//! # What is bounded
//!
//! Unsent commands: 64 MiB ([`ConnectOptions::backlog_bytes_max`]); who finds no room waits in line. Unanswered ones: 16 MiB
//! and about a million ([`Config`]). Repetitions: a tenth of the traffic ([`RetryBudgetConfig`]). Dials: backoff with jitter,
//! and a limiter that all clients of the process share.
//!
//! # Cancel safety
//!
//! Every future here may be dropped at any time. A command that the connection has not taken is withdrawn and never
//! sent; of one that it has, the reply is read and dropped. Nobody else ever gets it.
//!
//! # Subscriptions
//!
//! [`Client::subscribe`] gives a stream of what is published. It has a connection of its own, survives its losses, and has
//! an event in the place of everything that is missing: [`PubSubEvent::Gap`] and [`PubSubEvent::Dropped`]. A slow reader
//! costs 8 MiB at most ([`SubscriptionBuilder::buffer_bytes_max`]).
//!
//! # Clusters
//!
//! A URL such as `redis://node-1:7000,node-2:7000/?cluster=true`, or [`ConnectOptions::cluster`], makes it a client of a cluster:
//! commands go to whom their keys belong and follow their slots. `docs/cluster-client.md` is the guide.
//!
//! # Sentinel
//!
//! `redis-sentinel://sentinel-1,sentinel-2/name`, or [`ConnectOptions::sentinel`], makes it a client of a primary that sentinels
//! watch: it is used as one server, and a failover is a pause. `docs/sentinel.md` is the guide.
//!
//! # Caching
//!
//! With [`ConnectOptions::client_cache`], [`Client::cache`] reads through a cache in this process that the server keeps true.
//!
//! # Observing
//!
//! [`Client::events`] is one ordered stream of what happens to the connection, [`Client::snapshot`] its state (as JSON,
//! too), [`Client::metrics`] are the counters. [`ConnectOptions::on_unwatched_failure`] hears of fire-and-forget commands
//! that failed. No key, value or credential is in any of them.
//!
//! # Features
//!
//! * `derive` (default): `#[derive(FromReply, ToArgs)]` for structs and enums.
//! * `tls` (default): `rediss://` and [`transport::TlsOptions`], by rustls with aws-lc; costs the build of a C library.
//! * `native-tls`: the same by the system's library, see [`transport::TlsLibrary`]; on Linux OpenSSL, with its headers.
//! * `compression`: the wrapper `Compressed` for values, by LZ4 in Rust alone.
//! * `redis-compat`: runs what is written for redis-rs; see the module `redis`. Costs the crate `redis` and what it needs.
//! * `testing`: the module `testing`, a server in memory for the tests of programs.
//! * `tracing`: the connection's events at INFO and WARN, a span for each command at TRACE. Off, nothing of it is
//!   compiled.
//!
//! # Runtime
//!
//! Tokio, of either flavour, with its I/O and time drivers. A client lives on the runtime on which it was made.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod args;
pub mod blocking;
mod cache;
mod client;
mod clock;
mod cluster;
mod cmd;
pub mod commands;
#[cfg(feature = "compression")]
mod compressed;
mod credentials;
mod dialing;
mod driver;
mod engine;
mod keyspace;
mod lanes;
mod lease;
mod monitor;
mod observe;
mod opinion;
mod options;
mod pipeline;
mod primary_options;
mod pubsub;
#[cfg(feature = "redis-compat")]
pub mod redis;
mod scan_stream;
mod script;
#[cfg(feature = "testing")]
pub mod testing;
mod timer;
mod trace;
pub mod transport;
mod url;
mod value;

pub use args::{Args, ArgsIter, Part, SHARED_BYTES_MIN, ToArg, ToArgs};
pub use cache::{Cache, CacheOptions, CacheReport};
pub use client::Client;
pub use cluster::{ClusterOptions, ClusterReport, NodeReport, ScanAll, ScanAllBuilder};
pub use cmd::{BlockTime, Cmd, CmdOptions, Profile, RetryChoice, cmd};
#[cfg(feature = "compression")]
pub use compressed::{COMPRESS_BYTES_MIN, Compressed, DECOMPRESSED_BYTES_MAX};
pub use credentials::{CredentialsError, CredentialsFuture, CredentialsProvider, RotatingCredentials};
pub use keyspace::{KeyspaceEvent, KeyspaceEvents};
pub use lease::{Lease, LeaseReport};
pub use monitor::{MONITOR_LINE_BYTES_MAX, Monitor, MonitorEvent};
pub use observe::Events;
pub use options::{ConnectOptions, OptionsError};
pub use pipeline::{Entry, Pipeline, PipelineMisuse, Transacted, pipe};
pub use primary_options::{ReplicatedOptions, SentinelOptions};
pub use pubsub::{
    BUFFER_BYTES_DEFAULT, DroppedTotals, Overflow, PubSubEvent, Subscription, SubscriptionBuilder,
};
pub use scan_stream::ScanStream;
pub use script::{Script, ScriptCall};
/// Called by what the derive macros write.
#[cfg(feature = "derive")]
#[doc(hidden)]
pub use value::derived as derive;

pub use towline_admission::{BackoffConfig, BackoffError};
#[cfg(feature = "derive")]
pub use towline_client_derive::{FromReply, ToArgs};
pub use towline_client_proto::cache::CacheCounters;
pub use towline_client_proto::handoff::{HandoffConfig, HandoffOrder};
pub use towline_client_proto::maintenance::{EndpointType, MaintenanceMode, WindowConfig};
pub use towline_client_proto::routing::{LANES_MAX, Lanes, ReadFrom};
pub use towline_client_proto::{
    AttemptError, BacklogPolicy, Blame, Config, Counters, Credentials, Diagnosis, Down, Error, ErrorKind,
    Event, FlushOrder, Generation, HandoffEvent, HeadOfLine, LinkState, LivenessConfig, LostCause,
    MaintenanceEvent, Outage, Peer, Policy, ProtocolChoice, Ready, RetryBudgetConfig, SecondOpinion, Sent,
    ServerError, ServerInfo, ServerMode, Situation, Snapshot, Stage, Trouble, Verdict,
};
pub use towline_resp::frame::Frame;
pub use towline_spec::SideEffect;
pub use url::UrlError;
pub use value::{Found, FromReply, ReplyError};
