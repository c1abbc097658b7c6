//! The load: tasks that each know what became of their own keys.
//!
//! Owns the kinds of commands and their audits. Does not own the moves meanwhile.
//!
//! | task | commands | promise |
//! |---|---|---|
//! | lists | `RPUSH` of unique numbers | each acknowledged one is there once |
//! | counters | `INCR` | acknowledged <= value <= acknowledged and unknown |
//! | registers | `SET`, `GET` | never older than acknowledged |
//! | pairs | `MSET`, `MGET` | both values are the same |
//! | transactions | `MULTI`, two `INCR`, `EXEC` | both or neither |
//! | queues | `RPUSH`, `BLPOP` | each acknowledged element is popped once, or still there |
//! | big | `HSET`, `HGET`, `STRLEN` | as registers |

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;
use towline_client::{Client, Error, FromReply, Transacted, cmd, pipe};

use super::account::{Account, Failed, Found, judge_counter, judge_list};

/// Rest between two rounds of a task: full load would be a test of the machine.
const REST: Duration = Duration::from_micros(500);

/// Rest after a failure.
const REST_FAILED: Duration = Duration::from_millis(20);

/// How long a consumer waits for an element.
const BLOCK_SECONDS: f64 = 1.0;

/// The keys of the big values.
pub(super) const BIG_HASH: &str = "drill:big:hash";
/// See [`BIG_HASH`].
pub(super) const BIG_STRING: &str = "drill:big:string";

/// What every task has.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) client: Client,
    pub(super) account: Arc<Account>,
    pub(super) is_over: Arc<AtomicBool>,
}

/// A command's result, counted and timed.
async fn timed<T>(caller: &Caller, sent: impl Future<Output = Result<T, Error>>) -> Result<T, Failed> {
    let begun = Instant::now();
    match sent.await {
        Ok(value) => {
            caller.account.took(begun.elapsed());
            Ok(value)
        }
        Err(error) => {
            let failed = caller.account.failed(&error);
            tokio::time::sleep(REST_FAILED).await;
            Err(failed)
        }
    }
}

impl Caller {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }
}

/// Reads for an audit, which must succeed.
async fn read<T: FromReply>(client: &Client, command: towline_client::Cmd) -> Result<T> {
    command.query(client).await.context("the cluster does not answer the audit")
}

/// What a task leaves to be audited.
#[derive(Debug)]
pub(super) enum Left {
    List { key: String, fates: Vec<Option<bool>> },
    Counter { key: String, acknowledged: u64, unknown: u64 },
    Register { key: String, last: u64, unknown: Option<u64> },
    Both { keys: [String; 2], acknowledged: u64, unknown: u64 },
    Produced { key: String, fates: Vec<Option<bool>> },
    Consumed { key: String, numbers: Vec<usize>, unknown: u64 },
    Nothing,
}

/// Starts so many tasks of each kind.
pub(super) fn start(caller: &Caller, workers: u16) -> JoinSet<Left> {
    let mut tasks = JoinSet::new();
    for n in 0..workers {
        tasks.spawn(lists(caller.clone(), format!("drill:list:{n}")));
        tasks.spawn(counters(caller.clone(), format!("drill:counter:{n}")));
        tasks.spawn(registers(caller.clone(), format!("drill:register:{n}")));
        tasks.spawn(pairs(caller.clone(), format!("drill:{{pair:{n}}}")));
        tasks.spawn(transactions(caller.clone(), format!("drill:{{both:{n}}}")));
        tasks.spawn(produce(caller.clone(), format!("drill:queue:{n}")));
        tasks.spawn(consume(caller.clone(), format!("drill:queue:{n}")));
    }
    tasks.spawn(big(caller.clone()));
    tasks
}

async fn lists(caller: Caller, key: String) -> Left {
    let mut fates = Vec::new();
    while caller.goes_on() {
        let push = cmd("RPUSH").arg(&key).arg(fates.len());
        fates.push(match timed(&caller, push.query::<u64>(&caller.client)).await {
            Ok(_) => Some(true),
            Err(Failed::Unknown) => Some(false),
            Err(Failed::Not) => None,
        });
        tokio::time::sleep(REST).await;
    }
    Left::List { key, fates }
}

async fn counters(caller: Caller, key: String) -> Left {
    let (mut acknowledged, mut unknown) = (0, 0);
    while caller.goes_on() {
        match timed(&caller, cmd("INCR").arg(&key).query::<u64>(&caller.client)).await {
            Ok(_) => acknowledged += 1,
            Err(Failed::Unknown) => unknown += 1,
            Err(Failed::Not) => {}
        }
        tokio::time::sleep(REST).await;
    }
    Left::Counter { key, acknowledged, unknown }
}

async fn registers(caller: Caller, key: String) -> Left {
    let (mut last, mut unknown, mut next) = (0, None, 1);
    while caller.goes_on() {
        match timed(&caller, cmd("SET").arg(&key).arg(next).query::<()>(&caller.client)).await {
            Ok(()) => (last, unknown) = (next, None),
            Err(Failed::Unknown) => unknown = Some(next),
            Err(Failed::Not) => {}
        }
        next += 1;
        let got = timed(&caller, cmd("GET").arg(&key).query::<Option<u64>>(&caller.client)).await;
        if let Ok(value) = got {
            let value = value.unwrap_or_default();
            if value != last && unknown.is_none_or(|unknown| value < last || value > unknown) {
                caller.account.wrong("a read was older than what was acknowledged before it");
            }
        }
        tokio::time::sleep(REST).await;
    }
    Left::Register { key, last, unknown }
}

async fn pairs(caller: Caller, base: String) -> Left {
    let (a, b) = (format!("{base}:a"), format!("{base}:b"));
    let mut next = 0u64;
    while caller.goes_on() {
        next += 1;
        let set = cmd("MSET").arg(&a).arg(next).arg(&b).arg(next);
        // Whatever becomes of it, both are what they are together.
        let _ = timed(&caller, set.query::<()>(&caller.client)).await;
        let got = cmd("MGET").arg(&a).arg(&b).query::<Vec<Option<u64>>>(&caller.client);
        if let Ok(values) = timed(&caller, got).await
            && values.first() != values.last()
        {
            caller.account.wrong("MSET was seen in half");
        }
        tokio::time::sleep(REST).await;
    }
    Left::Nothing
}

async fn transactions(caller: Caller, base: String) -> Left {
    let keys = [format!("{base}:a"), format!("{base}:b")];
    let (mut acknowledged, mut unknown) = (0, 0);
    while caller.goes_on() {
        let both = pipe().atomic().cmd("INCR").arg(&keys[0]).cmd("INCR").arg(&keys[1]);
        let outcome = async {
            match both.transact::<(u64, u64)>(&caller.client).await? {
                Transacted::Committed(values) => Ok(values),
                Transacted::Unknown(error) => Err(error),
                Transacted::Refused(answer) => Err(Error::server(answer)),
                Transacted::Conflict => Err(Error::misuse("a conflict without a WATCH")),
            }
        };
        match timed(&caller, outcome).await {
            Ok((a, b)) => {
                acknowledged += 1;
                if a != b {
                    caller.account.wrong("a transaction was seen in half");
                }
            }
            Err(Failed::Unknown) => unknown += 1,
            Err(Failed::Not) => {}
        }
        tokio::time::sleep(REST).await;
    }
    Left::Both { keys, acknowledged, unknown }
}

async fn produce(caller: Caller, key: String) -> Left {
    let mut fates = Vec::new();
    while caller.goes_on() {
        let push = cmd("RPUSH").arg(&key).arg(fates.len());
        fates.push(match timed(&caller, push.query::<u64>(&caller.client)).await {
            Ok(_) => Some(true),
            Err(Failed::Unknown) => Some(false),
            Err(Failed::Not) => None,
        });
        tokio::time::sleep(REST * 4).await;
    }
    Left::Produced { key, fates }
}

async fn consume(caller: Caller, key: String) -> Left {
    let (mut numbers, mut unknown) = (Vec::new(), 0);
    while caller.goes_on() {
        let pop = cmd("BLPOP").arg(&key).arg(BLOCK_SECONDS);
        match pop.query::<Option<(String, usize)>>(&caller.client).await {
            Ok(popped) => numbers.extend(popped.map(|(_, number)| number)),
            Err(error) => {
                unknown += u64::from(caller.account.failed(&error) == Failed::Unknown);
                tokio::time::sleep(REST_FAILED).await;
            }
        }
    }
    Left::Consumed { key, numbers, unknown }
}

async fn big(caller: Caller) -> Left {
    let mut next = 0u64;
    while caller.goes_on() {
        next += 1;
        let client = &caller.client;
        let set = cmd("HSET").arg(BIG_HASH).arg("drill").arg(next);
        if timed(&caller, set.query::<u64>(client)).await.is_ok() {
            let got = cmd("HGET").arg(BIG_HASH).arg("drill").query::<Option<u64>>(client);
            if let Ok(value) = timed(&caller, got).await
                && value != Some(next)
            {
                caller.account.wrong("a read was older than what was acknowledged before it");
            }
        }
        // What it is does not matter: it is answered in time, and by the owner.
        let _ = timed(&caller, cmd("STRLEN").arg(BIG_STRING).query::<u64>(client)).await;
        tokio::time::sleep(REST * 2).await;
    }
    Left::Nothing
}

/// Compares what tasks left with what the cluster has.
///
/// # Errors
/// It does not answer.
pub(super) async fn audit(client: &Client, left: &[Left]) -> Result<Found> {
    let mut found = Found::default();
    for one in left {
        found.add(match one {
            Left::List { key, fates } => {
                let held: Vec<usize> = read(client, cmd("LRANGE").arg(key).arg(0).arg(-1)).await?;
                judge_list(&held, fates)
            }
            Left::Counter { key, acknowledged, unknown } => {
                let value: Option<u64> = read(client, cmd("GET").arg(key)).await?;
                judge_counter(value.unwrap_or_default(), *acknowledged, *unknown)
            }
            Left::Register { key, last, unknown } => {
                let value: Option<u64> = read(client, cmd("GET").arg(key)).await?;
                let value = value.unwrap_or_default();
                let is_right =
                    value == *last || unknown.is_some_and(|unknown| (*last..=unknown).contains(&value));
                Found { lost: u64::from(!is_right), duplicated: 0 }
            }
            Left::Both { keys, acknowledged, unknown } => {
                let mut both = Found::default();
                for key in keys {
                    let value: Option<u64> = read(client, cmd("GET").arg(key)).await?;
                    both.add(judge_counter(value.unwrap_or_default(), *acknowledged, *unknown));
                }
                both
            }
            Left::Produced { key, fates } => queue(client, key, fates, left).await?,
            Left::Consumed { .. } | Left::Nothing => Found::default(),
        });
    }
    Ok(found)
}

/// A queue's elements: those that were popped, and those that are left.
async fn queue(client: &Client, key: &str, fates: &[Option<bool>], left: &[Left]) -> Result<Found> {
    let mut held: Vec<usize> = read(client, cmd("LRANGE").arg(key).arg(0).arg(-1)).await?;
    let mut unknown = 0;
    for one in left {
        if let Left::Consumed { key: of, numbers, unknown: pops } = one
            && of == key
        {
            held.extend(numbers);
            unknown += pops;
        }
    }
    let mut found = judge_list(&held, fates);
    // A pop whose answer was lost may have taken one.
    found.lost = found.lost.saturating_sub(unknown);
    Ok(found)
}
