//! A load on counters of a cluster whose nodes come and go, by a client of a few lines that follows every redirect.
//!
//! Owns the load and what is known of each counter. Promised is: an increment that was acknowledged is there once; one without an answer is
//! there once or not at all.

use crate::conn::Conn;
use crate::value::Value;
use crate::wait;
use anyhow::{Context, bail, ensure};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The load, until it is told to end.
#[derive(Debug)]
pub struct Counters {
    thread: JoinHandle<anyhow::Result<Account>>,
    is_over: Arc<AtomicBool>,
    ports: Arc<Mutex<Vec<u16>>>,
}

/// What the load came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    /// Increments with an answer.
    pub acknowledged: u64,
    /// Increments without.
    pub unknown: u64,
}

impl Counters {
    /// Begins to increment `keys` in turn, by the nodes on these ports.
    pub fn start(ports: Vec<u16>, keys: Vec<String>) -> Self {
        let (is_over, ports) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(ports)));
        let mut load = Load {
            ports: Arc::clone(&ports),
            conns: BTreeMap::new(),
            at: 0,
            counters: keys.into_iter().map(|key| Counter { key, known: 0, unknown: 0 }).collect(),
            account: Account::default(),
        };
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                load.round()?;
            }
            // Once more, now that nothing goes wrong any more: it tells what became of those without an answer.
            load.round()?;
            Ok(load.account)
        });
        Self { thread, is_over, ports }
    }

    /// The nodes are on these ports from now on.
    pub fn set_ports(&self, ports: Vec<u16>) {
        *self.ports.lock().unwrap_or_else(PoisonError::into_inner) = ports;
    }

    /// Ends the load. All nodes have to run.
    ///
    /// # Errors
    /// A promise was broken, or a counter was not served for too long.
    pub fn finish(self) -> anyhow::Result<Account> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the load panicked"))?
    }
}

#[derive(Debug)]
struct Counter {
    key: String,
    /// The last answer.
    known: i64,
    /// Increments since then that may have run.
    unknown: i64,
}

/// What became of one try.
enum Tried {
    Counted(i64),
    /// It did not run.
    NotRun,
    Unknown,
}

#[derive(Debug)]
struct Load {
    ports: Arc<Mutex<Vec<u16>>>,
    conns: BTreeMap<u16, Conn>,
    /// Where the last one ran.
    at: u16,
    counters: Vec<Counter>,
    account: Account,
}

impl Load {
    fn round(&mut self) -> anyhow::Result<()> {
        for place in 0..self.counters.len() {
            let key = self.counters[place].key.clone();
            let mut lost = 0;
            let counted = wait::until_some(wait::PATIENCE, || match self.increment(&key) {
                Tried::Counted(value) => Some(value),
                Tried::NotRun => None,
                Tried::Unknown => {
                    lost += 1;
                    None
                }
            });
            let counter = &mut self.counters[place];
            counter.unknown += lost;
            self.account.unknown += lost as u64;
            let value = counted.with_context(|| format!("{key} is not served"))?;
            let (least, most) = (counter.known + 1, counter.known + 1 + counter.unknown);
            ensure!((least..=most).contains(&value), "{key} is {value}, and may be {least} to {most}");
            (counter.known, counter.unknown) = (value, 0);
            self.account.acknowledged += 1;
        }
        Ok(())
    }

    fn increment(&mut self, key: &str) -> Tried {
        let command = ["INCR", key];
        match self.ask(self.at, &[&command]) {
            Err(tried) => tried,
            Ok(Value::Int(value)) => Tried::Counted(value),
            Ok(reply) => match self.follow(&reply) {
                Some((port, false)) => {
                    self.at = port;
                    Tried::NotRun
                }
                Some((port, true)) => match self.ask(port, &[&["ASKING"], &command]) {
                    Ok(Value::Int(value)) => Tried::Counted(value),
                    Ok(_) => Tried::NotRun,
                    Err(tried) => tried,
                },
                None => Tried::NotRun,
            },
        }
    }

    /// Where a redirect leads, and whether only for once.
    fn follow(&self, reply: &Value) -> Option<(u16, bool)> {
        let error = reply.error()?;
        let mut words = error.split(' ');
        let is_ask = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        Some((words.nth(1)?.rsplit_once(':')?.1.parse().ok()?, is_ask))
    }

    /// The last reply of these commands, sent together.
    fn ask(&mut self, port: u16, commands: &[&[&str]]) -> Result<Value, Tried> {
        let opened = match self.conns.remove(&port) {
            Some(conn) => Ok(conn),
            None => Conn::open(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        };
        let Ok(mut conn) = opened else {
            self.go_elsewhere();
            return Err(Tried::NotRun);
        };
        let mut exchange = || -> anyhow::Result<Value> {
            for command in commands {
                conn.send(command)?;
            }
            let mut reply = conn.read()?;
            for _ in 1..commands.len() {
                if reply.error().is_some() {
                    bail!("refused");
                }
                reply = conn.read()?;
            }
            Ok(reply)
        };
        match exchange() {
            Ok(reply) => {
                self.conns.insert(port, conn);
                Ok(reply)
            }
            Err(_) => {
                self.go_elsewhere();
                Err(Tried::Unknown)
            }
        }
    }

    fn go_elsewhere(&mut self) {
        let ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let place = ports.iter().position(|port| *port == self.at).map_or(0, |place| place + 1);
        self.at = ports[place % ports.len()];
    }
}
