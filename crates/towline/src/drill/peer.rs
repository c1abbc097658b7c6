//! The same load through redis-py: a process with the source of `peer.py`, and its report as ledgers and samples.
//!
//! Owns the process and the lines between it and the drill. Does not own the account: what redis-py's commands came to is
//! judged by the same code as Towline's.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::delivery::{Rule, Stream};
use super::director::Rename;
use super::handoff::{Played, Run};
use super::ledger::{Ledger, Op, Outcome};
use super::load::{Loaded, Plan};
use super::options::{EndpointForm, Maintenance};
use super::script::Script;
use super::stage::NAME;
use super::timeline::Sample;

/// The program.
const SOURCE: &str = include_str!("peer.py");

/// How long it may take to import, connect and be ready.
const READY_MAX: Duration = Duration::from_secs(20);

/// How long it may take to report after the end of the run: commands have 5 s, and consumers 6 s to find the end.
const REPORT_MAX: Duration = Duration::from_secs(40);

/// How long after its command to start the load begins.
const START_IN: Duration = Duration::from_millis(50);

/// One line from the process.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Said {
    Missing { why: String },
    Ready { client: String },
    Progress { completed: u64, failed: u64 },
    Worker { number: usize, ops: Vec<(char, Came, u64, u64)> },
    List(Numbered),
    Channel(Numbered),
    Done,
}

/// What became of a command there.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Came {
    Number(i64),
    Failed((Fate, String)),
    Nothing,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Fate {
    /// The server answered with an error.
    Refused,
    /// Everything else: redis-py does not tell whether a command that failed has run.
    Unknown,
}

/// A list or a channel there.
#[derive(Debug, Deserialize)]
struct Numbered {
    produced: Vec<Came>,
    consumed: Vec<Vec<u32>>,
    errors: Vec<(Fate, String)>,
    left: Vec<u32>,
}

impl Fate {
    fn outcome(self) -> Outcome {
        match self {
            Self::Refused => Outcome::Refused,
            Self::Unknown => Outcome::Unknown,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unknown => "may have run",
        }
    }
}

/// Tells the process what a name means now.
struct Renames(mpsc::UnboundedSender<String>);

impl Rename for Renames {
    fn rename(&mut self, to: SocketAddr) {
        // A process that has ended is noticed where it is read.
        let _ = self.0.send(format!("rename {}\n", to.ip()));
    }
}

/// Runs the script with redis-py as the client.
///
/// # Errors
/// There is no such Python or no redis-py in it, the process ends early, or the script cannot be played.
pub(super) async fn play(run: &mut Run<'_>) -> Result<Played> {
    let python = run.args.python.display().to_string();
    let mut child = spawn(run, &python)?;
    let mut lines = BufReader::new(child.stdout.take().context("redis-py has no output")?).lines();
    let mut input = child.stdin.take().context("redis-py has no input")?;
    let ready = timeout(READY_MAX, next(&mut lines)).await.context("redis-py does not get ready")??;
    let client = match ready {
        Said::Ready { client } => client,
        Said::Missing { why } => bail!(
            "{python} has no redis-py with maintenance notifications (7 or later): {why}; install it or name another with --python"
        ),
        other => bail!("redis-py said {other:?} instead of being ready"),
    };
    let start = Instant::now() + START_IN;
    let monotonic = clock_gettime(ClockId::Monotonic);
    let start_ns = monotonic.tv_sec as u128 * 1_000_000_000
        + monotonic.tv_nsec as u128
        + start.duration_since(Instant::now()).as_nanos();
    let plan = run.plan(start);
    let (renames, renamed) = mpsc::unbounded_channel();
    input.write_all(format!("start {start_ns}\n").as_bytes()).await.context("redis-py has ended")?;
    let mut played = Played { client, ..Played::default() };
    let limit = run.times.run + REPORT_MAX;
    let heard = Arc::new(Mutex::new(Played::default()));
    let load = async {
        let reading = read(&mut lines, &plan, &heard);
        let forwarding = forward(input, renamed);
        tokio::select! {
            read = timeout(limit, reading) => read.context("redis-py does not report")?,
            () = forwarding => Ok(()),
        }
    };
    let ((), beside) = run.beside(&plan, Renames(renames), load).await?;
    let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    played = Played { beside, client: played.client, ..heard };
    let meant = plan.rate.map_or(0, |rate| (rate as f64 * plan.end.as_secs_f64()) as u64);
    let sent: u64 = played.loaded.ledgers.iter().map(Ledger::submitted).sum();
    // The two sides round differently: a worker's last command is no matter.
    played.loaded.unsent = meant.saturating_sub(sent + u64::from(run.args.workers));
    child.kill().await.context("redis-py does not end")?;
    Ok(played)
}

fn spawn(run: &Run<'_>, python: &str) -> Result<Child> {
    let (first, admin, args) = (run.stage.first(), run.stage.admin, run.args);
    let is_named = run.script == Script::Dns;
    let plan = json!({
        "host": if is_named { NAME.to_owned() } else { first.ip().to_string() },
        "ip": first.ip().to_string(),
        "port": first.port(),
        "admin_host": admin.ip().to_string(),
        "admin_port": admin.port(),
        "name": NAME,
        "script": run.script.name(),
        "workers": args.workers,
        "connections": args.connections,
        "mix": [args.mix.incr, args.mix.append, args.mix.set, args.mix.get],
        "rate": args.rate,
        "run_us": run.times.run.as_micros() as u64,
        "seed": args.seed,
        "maintenance": match args.client_maintenance {
            Maintenance::Disabled => "disabled",
            Maintenance::Auto => "auto",
            Maintenance::Required => "required",
        },
        "endpoint_type": match args.moving_endpoint_type {
            // The options are checked: redis-py is not asked for the server's choice.
            EndpointForm::Auto | EndpointForm::ServerDefault => "auto",
            EndpointForm::InternalIp => "internal-ip",
            EndpointForm::InternalFqdn => "internal-fqdn",
            EndpointForm::ExternalIp => "external-ip",
            EndpointForm::ExternalFqdn => "external-fqdn",
            EndpointForm::None => "none",
        },
    });
    Command::new(&run.args.python)
        .args(["-c", SOURCE, &plan.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {python}; name a Python with --python"))
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<Said> {
    let line = lines.next_line().await.context("redis-py cannot be read")?;
    let line = line.context("redis-py ended early; its reason is above")?;
    serde_json::from_str(&line).with_context(|| format!("redis-py said what is not understood: {line:.120}"))
}

/// Sends on what is to be told; ends only when the process has ended.
async fn forward(mut input: ChildStdin, mut renamed: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = renamed.recv().await {
        if input.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    // What ends the run is the report, or its absence.
    std::future::pending::<()>().await;
}

/// Reads the report to its end.
async fn read(lines: &mut Lines<BufReader<ChildStdout>>, plan: &Plan, heard: &Mutex<Played>) -> Result<()> {
    loop {
        let said = next(lines).await?;
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        match said {
            Said::Progress { completed, failed } => {
                plan.counters.completed.store(completed, Ordering::Relaxed);
                plan.counters.failed.store(failed, Ordering::Relaxed);
            }
            Said::Worker { number, ops } => worker(&mut heard.loaded, number, &ops)?,
            Said::List(numbered) => add(&mut heard, Rule::One, numbered),
            Said::Channel(numbered) => add(&mut heard, Rule::Each, numbered),
            Said::Done => return Ok(()),
            Said::Ready { .. } | Said::Missing { .. } => bail!("redis-py began twice"),
        }
    }
}

/// Replays one worker's commands into a ledger of its own.
fn worker(loaded: &mut Loaded, number: usize, ops: &[(char, Came, u64, u64)]) -> Result<()> {
    if number != loaded.ledgers.len() {
        bail!("redis-py reported worker {number} out of turn");
    }
    let mut ledger = Ledger::default();
    for (op, came, intended_us, done_us) in ops {
        let op = match op {
            'I' => Op::Incr,
            'H' => Op::Shared,
            'L' => Op::Left,
            'R' => Op::Right,
            'A' => Op::Append,
            'S' => Op::Set,
            'G' => Op::Get,
            other => bail!("redis-py reported a command {other:?}"),
        };
        let request = ledger.submit(op);
        let outcome = outcome(came, &mut loaded.errors);
        ledger.settle(request, outcome);
        let intended = Duration::from_micros(*intended_us);
        if matches!(outcome, Outcome::Number(_) | Outcome::Nothing) {
            loaded.samples.push(Sample::new(intended, Duration::from_micros(*done_us)));
        } else {
            loaded.failed_at(intended);
        }
    }
    loaded.ledgers.push(ledger);
    Ok(())
}

fn outcome(came: &Came, errors: &mut crate::bench::ErrorTally) -> Outcome {
    match came {
        Came::Number(value) => Outcome::Number(*value),
        Came::Nothing => Outcome::Nothing,
        Came::Failed((fate, text)) => {
            errors.add(&format!("{text} ({})", fate.name()), 1);
            fate.outcome()
        }
    }
}

fn add(played: &mut Played, rule: Rule, numbered: Numbered) {
    let produced = numbered.produced.iter().map(|came| outcome(came, &mut played.errors)).collect();
    played.failed += numbered.errors.len() as u64;
    for (fate, text) in &numbered.errors {
        played.errors.add(&format!("{text} ({})", fate.name()), 1);
    }
    let stream = Stream { produced, consumed: numbered.consumed, left: numbered.left };
    let number = played.streams.len();
    let kind = if rule == Rule::One { "list" } else { "channel" };
    played.streams.push((format!("{kind} {number}"), rule, stream));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Said {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn its_lines_are_understood() {
        assert!(matches!(said(r#"{"kind":"ready","client":"redis-py 8"}"#), Said::Ready { .. }));
        assert!(matches!(said(r#"{"kind":"done"}"#), Said::Done));
        let Said::Worker { number: 0, ops } = said(
            r#"{"kind":"worker","number":0,"ops":[["I",1,0,900],["S",0,1,2],["G",null,2,3],["G",1,2,3],
                ["I",["unknown","ConnectionError: gone"],3,4]]}"#,
        ) else {
            panic!("another kind");
        };
        let mut loaded = Loaded::default();
        worker(&mut loaded, 0, &ops).unwrap();
        assert_eq!((loaded.samples.len(), loaded.errors.total()), (4, 1));
        let findings =
            loaded.ledgers[0].audit(0, &super::super::ledger::Held { number: 1, ..Default::default() });
        // The GET that saw nothing came behind an acknowledged SET.
        assert_eq!((findings.completed, findings.failed, findings.reordered), (4, 1, 1));
        assert!(worker(&mut loaded, 7, &[]).is_err());
    }

    #[test]
    fn its_lists_are_judged_like_any_other() {
        let line =
            r#"{"kind":"list","produced":[1,2,["refused","x"]],"consumed":[[0],[1]],"errors":[],"left":[]}"#;
        let Said::List(numbered) = said(line) else { panic!("another kind") };
        let mut played = Played::default();
        add(&mut played, Rule::One, numbered);
        let findings = played.streams[0].2.audit("l", Rule::One);
        assert_eq!((findings.failed, findings.lost, findings.duplicated), (1, 0, 0));
    }
}
