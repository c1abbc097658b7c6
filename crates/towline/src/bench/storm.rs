//! `towline bench conns`: many connections at once.
//!
//! Owns the storm and its report: how long until every connection has its answer to HELLO 3, what failed, what the
//! kernel dropped, what an idle connection costs the server. Does not own load on those connections.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::task::spawn_local;

use super::connection::{Stream, Target};
use super::fleet::{raise_file_limit, runtime};
use super::load::prepare;
use super::options::{ConnsArgs, TargetArgs};
use super::report::{Fields, round};
use super::tally::ErrorTally;
use super::{Verdict, cpu};

/// Error texts in the report.
const ERROR_TEXTS_SHOWN: usize = 3;

/// What the storm has come to so far.
#[derive(Debug, Default)]
struct Weather {
    /// Ready connections, kept open until the memory is read.
    streams: Vec<Stream>,
    slowest: Duration,
    errors: ErrorTally,
}

/// Opens the connections, reports, and closes them.
///
/// # Errors
/// When the server cannot be reached at all.
pub(super) fn execute(options: &ConnsArgs, target_options: &TargetArgs, is_json: bool) -> Result<Verdict> {
    let count = options.count;
    raise_file_limit(count as usize);
    let target_options = TargetArgs { is_resp3: true, ..target_options.clone() };
    let (target, server_pid) = prepare(&target_options)?;
    let rss_before = server_pid.and_then(cpu::rss_bytes);
    let cpu_before = server_pid.and_then(cpu::process_ns);
    let overflows_before = cpu::listen_overflows();
    let runtime = runtime()?;
    let start = Instant::now();
    let weather = runtime.block_on(storm(&target, count));
    let seconds = start.elapsed().as_secs_f64();
    let ready = weather.streams.len() as u64;
    let grown = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
    let rss = grown(rss_before, server_pid.and_then(cpu::rss_bytes));
    let server_ns = grown(cpu_before, server_pid.and_then(cpu::process_ns));
    let per_connection = |total: Option<u64>| total.and_then(|total| total.checked_div(ready));
    let mut fields = Fields::default();
    fields.add("connections", count);
    fields.add("ready", ready);
    fields.add("failures", weather.errors.total());
    fields.add("seconds", round(seconds, 1e6));
    fields.add("slowest_ms", round(weather.slowest.as_secs_f64() * 1e3, 1e3));
    fields.add("listen_overflows", grown(overflows_before, cpu::listen_overflows()));
    fields.add("server_rss_bytes_per_conn", per_connection(rss));
    fields.add("server_cpu_us_per_conn", per_connection(server_ns).map(|ns| ns as f64 / 1000.0));
    fields.add("server_pid", server_pid);
    for (index, (text, failures)) in weather.errors.by_count().into_iter().take(ERROR_TEXTS_SHOWN).enumerate()
    {
        fields.add(&format!("error_{}", index + 1), format!("{failures} x {text}"));
    }
    fields.write(std::io::stdout().lock(), is_json).context("cannot write the report")?;
    Ok(if ready > 0 { Verdict::Succeeded } else { Verdict::Failed })
}

/// Starts every connect before waiting for any.
async fn storm(target: &Target, count: u32) -> Weather {
    let weather = Rc::new(RefCell::new(Weather::default()));
    let mut attempts = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let (target, weather) = (target.clone(), Rc::clone(&weather));
        attempts.push(spawn_local(async move {
            let start = Instant::now();
            let outcome = target.connect().await;
            let mut weather = weather.borrow_mut();
            match outcome {
                Ok(stream) => {
                    weather.slowest = weather.slowest.max(start.elapsed());
                    weather.streams.push(stream);
                }
                Err(error) => weather.errors.add(&format!("{error:#}"), 1),
            }
        }));
    }
    for attempt in attempts {
        if attempt.await.is_err() {
            weather.borrow_mut().errors.add("a connection's task failed", 1);
        }
    }
    weather.take()
}
