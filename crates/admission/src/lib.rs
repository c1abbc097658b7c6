//! When and how fast this software dials, and what a listener does when too many dial at once.
//!
//! A fleet that starts, or loses its server, dials at the same moment. Without anything between, the handshakes queue
//! at the listener for longer than their callers wait, the callers give up and dial again, and the listener works for
//! callers that have gone: from some size on it never gets out of that. This crate is what stands between, on both
//! sides. It is pure: time comes in as [`Instant`](towline_sansio::Instant), randomness as
//! [`Prng`](towline_sansio::Prng), and no part knows a socket, a timer or a runtime.
//!
//! # How the parts fit
//!
//! On the side that dials, each attempt passes four questions, in this order:
//!
//! 1. [`Backoff`] (one for each connection): *when may I try?* At once if only I was hit, a little later if others
//!    were too, then at random below a ceiling that grows with each failure. The caller's timer sleeps until then.
//! 2. [`Breaker`] (one for each target, shared in the process): *is it any use?* While a target is down, one probe
//!    goes and the others wait for its answer.
//! 3. [`DialLimiter`] (one for the process): *is it my turn?* So many dials in flight in all, so many to one target,
//!    first come first served. The [`DialPermit`] lives as long as the attempt and goes on when it is dropped.
//! 4. [`DialPermit::start_at`]: *when exactly?* Dials of one target keep a gap, also when each ends in microseconds.
//!
//! On the side that listens, [`Headers`] closes connections that say nothing, and [`AdmissionQueue`] decides about
//! those that ask: serve now, queue for a short time, or [`Busy`] with a time to return and a ticket that holds the
//! place. The limiter alone cannot do this: each process keeps its limits, and a thousand processes that do still are
//! a storm. *Busy* goes back to the dialling side as an appointment, not as a failure: sleep until
//! [`Busy::retry_at`], keep [`Backoff`] as it is, and report [`AttemptOutcome::Busy`].
//!
//! # Two promises
//!
//! * **Waiting spends no retry budget.** Waiting for a delay, a breaker, a permit or an appointment is a state of the
//!   attempt, in which nothing was sent. Count an attempt when its dial starts. The deadline of whatever needs the
//!   connection goes on meanwhile.
//! * **Waiting never spins.** Every refusal says when asking again can help (an instant, a wake-up, or a [`Change`]),
//!   always later than now. There is nothing to poll in between.
//!
//! # One client, one listener
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use towline_admission::{
//!     Admission, AdmissionQueue, Arrival, AttemptOutcome, Backoff, BackoffConfig, Breaker, BreakerConfig,
//!     DialLimiter, LimiterConfig, LossCause, Passage, QueueConfig,
//! };
//! use towline_sansio::{Instant, Prng};
//!
//! let mut prng = Prng::new(7);
//! let limiter: DialLimiter<Arc<str>> = DialLimiter::new(LimiterConfig::CLIENT)?;
//! let mut breaker = Breaker::new(BreakerConfig::CLIENT)?;
//! let mut backoff = Backoff::new(BackoffConfig::CLIENT)?;
//! // The listener has one worker, and so many are before us that the next would wait too long.
//! let mut queue = AdmissionQueue::new(QueueConfig { workers: 1, ..QueueConfig::LISTENER })?;
//! let arrival = |source, ticket| Arrival { source, deadline: Instant::FAR, ticket };
//! for other in 0..41 {
//!     assert!(!matches!(queue.arrive(Instant::ZERO, arrival(other, None)), Admission::Busy(_)));
//! }
//!
//! // The connection was lost together with everybody's. One loop pass is one attempt.
//! backoff.connected(Instant::ZERO);
//! let lost_at = Instant::ZERO + Duration::from_secs(60);
//! let mut when = backoff.lost(lost_at, LossCause::Shared, &mut prng); // The timer wakes us then.
//! let (mut ticket, mut failures) = (None, 0);
//! loop {
//!     let attempt = match breaker.ask(when, &mut prng) {
//!         Passage::Allowed(attempt) => attempt,
//!         Passage::Refused { retry_at } => {
//!             when = retry_at;
//!             continue;
//!         }
//!     };
//!     let permit = limiter.try_acquire("node-a:7000".into()).expect("a driver awaits `acquire` here");
//!     let now = permit.start_at(when);
//!     // ... dial, send the handshake with the ticket; the listener answers:
//!     match queue.arrive(now, arrival(99, ticket)) {
//!         Admission::Busy(busy) => {
//!             breaker.report(now, attempt, AttemptOutcome::Busy, &mut prng); // It lives.
//!             ticket = busy.ticket;
//!             when = busy.retry_at; // An appointment: no failure, no backoff, no retry spent.
//!             assert!(when > now);
//!         }
//!         Admission::Admit(_) | Admission::Queue { .. } => {
//!             breaker.report(now, attempt, AttemptOutcome::Worked, &mut prng);
//!             backoff.connected(now);
//!             break;
//!         }
//!     }
//!     failures += u32::from(backoff.level() > 0);
//! }
//! assert!(ticket.is_some(), "it was told to come back once, and then let in");
//! assert_eq!(failures, 0);
//! assert_eq!(limiter.snapshot().in_use, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod backoff;
mod breaker;
mod headers;
mod limiter;
mod queue;

pub use backoff::{Backoff, BackoffConfig, BackoffError, LossCause};
pub use breaker::{
    Attempt, AttemptOutcome, Breaker, BreakerConfig, BreakerConfigError, BreakerState, Change, Passage,
};
pub use headers::{HeaderId, Headers, HeadersConfig, HeadersConfigError, HeadersFull};
pub use limiter::{
    Acquire, DialLimiter, DialPermit, LimiterConfig, LimiterConfigError, LimiterCore, LimiterSnapshot,
    RequestId, Requested, TargetSnapshot, UnknownRequest, WaitersFull,
};
pub use queue::{
    Admission, AdmissionQueue, Arrival, Busy, BusyReason, JobId, QueueConfig, QueueConfigError, QueueEvent,
    QueueSnapshot, Ticket,
};
