//! A load on registers, of which every command is noted with its answer and when it was under way.
//!
//! Owns the tasks and the notes. Does not judge them ([`crate::linearizable`]).

use crate::linearizable::{Asked, Op, Unexplained, explain};
use anyhow::ensure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::task::JoinSet;
use towline_client::{Client, Error, Sent, cmd};
use towline_sansio::Prng;

/// The load, until it is told to end. A write has a value that no other one has.
#[derive(Debug)]
pub struct Registers {
    keys: Arc<Vec<String>>,
    tasks: JoinSet<anyhow::Result<Vec<(usize, Op)>>>,
    is_over: Arc<AtomicBool>,
}

/// What the load came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Commands with an answer.
    pub answered: usize,
    /// Writes that may have run.
    pub unknown: usize,
    /// Keys of which what was seen cannot be explained.
    pub unexplained: Vec<(String, Unexplained)>,
}

impl Registers {
    /// Begins a load by so many tasks, each of which has one command at a time under way. Each command goes by one of the clients, at random.
    pub fn start(clients: &[Client], keys: Vec<String>, tasks: usize, seed: u64) -> Self {
        let (keys, is_over) = (Arc::new(keys), Arc::new(AtomicBool::new(false)));
        let (since, mut set) = (Instant::now(), JoinSet::new());
        for task in 0..tasks {
            let (clients, keys, is_over) = (clients.to_vec(), Arc::clone(&keys), Arc::clone(&is_over));
            let mut rng = Prng::new(seed.wrapping_add(task as u64));
            set.spawn(async move {
                let mut ops = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let client = &clients[rng.below(clients.len() as u64) as usize];
                    let key = rng.below(keys.len() as u64) as usize;
                    let value = ((task as u64) << 32) | ops.len() as u64;
                    ops.extend(run(client, &keys[key], value, &mut rng, since).await?.map(|op| (key, op)));
                }
                Ok(ops)
            });
        }
        Self { keys, tasks: set, is_over }
    }

    /// Ends the load and judges it, key by key.
    ///
    /// # Errors
    /// A command was refused, or failed although it was not sent.
    pub async fn finish(mut self) -> anyhow::Result<Judgement> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut histories = vec![Vec::new(); self.keys.len()];
        while let Some(ended) = self.tasks.join_next().await {
            ended??.into_iter().for_each(|(key, op)| histories[key].push(op));
        }
        let mut judgement = Judgement::default();
        for (key, history) in histories.into_iter().enumerate() {
            let answered = history.iter().filter(|op| op.ended.is_some()).count();
            judgement.answered += answered;
            judgement.unknown += history.len() - answered;
            if let Err(unexplained) = explain(history) {
                judgement.unexplained.push((self.keys[key].clone(), unexplained));
            }
        }
        Ok(judgement)
    }
}

/// Runs one command; `None` if it says nothing.
async fn run(
    client: &Client,
    key: &str,
    value: u64,
    rng: &mut Prng,
    since: Instant,
) -> anyhow::Result<Option<Op>> {
    let now = || since.elapsed().as_nanos() as u64;
    let begun = now();
    let kind = rng.below(8);
    let asked = match kind {
        0..4 => cmd("GET").arg(key).query(client).await.map(Asked::Read),
        4 => cmd("DEL").arg(key).query(client).await.map(|()| Asked::Write(None)),
        _ => cmd("SET").arg(key).arg(value).query(client).await.map(|()| Asked::Write(Some(value))),
    };
    let ended = now();
    match asked {
        Ok(asked) => Ok(Some(Op { begun, ended: Some(ended), asked })),
        Err(error) => {
            let is_unknown = error.sent() == Sent::Maybe && !is_answer(&error);
            ensure!(is_unknown, "{key}: a command failed that was not sent, or was refused: {error}");
            let written = match kind {
                0..4 => return Ok(None),
                4 => None,
                _ => Some(value),
            };
            Ok(Some(Op { begun, ended: None, asked: Asked::Write(written) }))
        }
    }
}

fn is_answer(error: &Error) -> bool {
    error.code().is_some()
}
