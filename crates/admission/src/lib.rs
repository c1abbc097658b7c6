//! When and how fast this software dials, and what a listener does when too many dial at once.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod backoff;
mod limiter;

pub use backoff::{Backoff, BackoffConfig, BackoffError, LossCause};
pub use limiter::{
    Acquire, DialLimiter, DialPermit, LimiterConfig, LimiterConfigError, LimiterCore, LimiterSnapshot,
    RequestId, Requested, TargetSnapshot, UnknownRequest, WaitersFull,
};
