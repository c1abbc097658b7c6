//! Events and spans of `tracing`, with the feature of that name; nothing at all without it.
//!
//! Owns their levels and fields. No key and no value is in them.

use std::future::Future;

use towline_client_proto::Event;

/// The target of all of them.
#[cfg(feature = "tracing")]
const TARGET: &str = "towline_client";

/// A span around one command, at level TRACE: from its submission to its outcome.
#[cfg(feature = "tracing")]
pub(crate) fn command<F: Future>(name: &[u8], future: F) -> tracing::instrument::Instrumented<F> {
    use tracing::Instrument as _;
    let span = tracing::trace_span!(target: TARGET, "command", name = %name.escape_ascii());
    future.instrument(span)
}

/// Without the feature: the future itself.
#[cfg(not(feature = "tracing"))]
#[inline]
pub(crate) fn command<F: Future>(_name: &[u8], future: F) -> F {
    future
}

/// One event of the connection to `target`: losses, failures and what is missing at WARN, the rest at INFO.
#[cfg(feature = "tracing")]
pub(crate) fn event(target: &str, event: &Event) {
    match event {
        Event::Connected { .. } | Event::Closed | Event::Handoff(_) | Event::Maintenance(_) => {
            tracing::info!(target: TARGET, server = %target, "{event}")
        }
        _ => tracing::warn!(target: TARGET, server = %target, "{event}"),
    }
}

/// Without the feature: nothing.
#[cfg(not(feature = "tracing"))]
#[inline]
pub(crate) fn event(_target: &str, _event: &Event) {}
