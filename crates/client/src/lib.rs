//! The client for applications.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod args;
mod cmd;
mod pipeline;
pub mod transport;
mod value;

pub use args::{Args, ArgsIter, Part, SHARED_BYTES_MIN, ToArgs};
pub use cmd::{BlockTime, Cmd, CmdOptions, Profile, RetryChoice, cmd};
pub use pipeline::{Entry, Pipeline, PipelineMisuse, pipe};
pub use towline_client_proto::ServerError;
pub use towline_resp::frame::Frame;
pub use towline_spec::SideEffect;
pub use value::{Found, FromReply, ReplyError};
