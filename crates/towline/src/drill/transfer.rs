//! `towline drill transfer`: random transfers between two processes, one of which is killed again and again.
//!
//! ```text
//! ledger (what each slot must hold) <-> engine here <== cutter (breaks connections) ==> engine there, killed and started anew
//! ```
//!
//! Owns: the load, the faults, and the account: what completed is there to the byte, what did not complete is counted, a life
//! that has ended gets nothing of what was meant for it into the next one, and each notification comes once.

use std::collections::HashSet;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde::Serialize;
use towline_sansio::Prng;
use towline_transfer::{
    Access, Batch, Engine, EngineConfig, MemoryRegion, Registered, RemoteRegion, Request, Segment, Status,
    SubmitError, Trust,
};

use crate::transfer::child::ServeChild;

/// Places that transfers go to, one at a time each.
const SLOTS: u64 = 256;

/// Bytes of a slot.
const SLOT: u64 = 16 * 1024;

/// Batches under way.
const UNDER_WAY: usize = 48;

/// How long anything may take before the drill is over.
const PATIENCE: Duration = Duration::from_secs(60);

const KEY: &str = "the secret of a drill on loopback";
const NAME: &str = "drilled";

/// Options of `towline drill transfer`.
#[derive(Debug, Clone, Args)]
pub(super) struct TransferDrillArgs {
    /// How many transfers.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    transfers: u64,
    /// How often the other process is killed.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    kills: u64,
    /// How often the connections are cut.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    cuts: u64,
    /// TCP connections of a link.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    lanes: u16,
    /// What random choices follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One JSON object.
    #[arg(long = "json")]
    is_json: bool,
}

/// The account. Field names are those of the JSON form.
#[derive(Debug, Default, Serialize)]
struct Account {
    transfers: u64,
    completed: u64,
    timed_out: u64,
    canceled: u64,
    restarted: u64,
    failed: u64,
    kills: u64,
    cuts: u64,
    reads_compared: u64,
    bytes_compared: u64,
    /// Ranges that did not hold what they must.
    wrong: u64,
    notifications: u64,
    notified_twice: u64,
    notifications_missing: u64,
    seconds: f64,
}

/// Runs the drill and prints its account. True if nothing is wrong.
///
/// # Errors
/// The processes cannot be started, or something takes for ever.
pub(super) fn execute(args: &TransferDrillArgs) -> Result<bool> {
    let began = Instant::now();
    let mut drill = Drill::new(args)?;
    drill.run()?;
    drill.account.seconds = began.elapsed().as_secs_f64();
    let account = &drill.account;
    let mut out = std::io::stdout().lock();
    if args.is_json {
        writeln!(out, "{}", serde_json::to_string(account)?)?;
    } else {
        writeln!(out, "{account:#?}")?;
    }
    Ok(account.wrong + account.notified_twice + account.notifications_missing + account.failed == 0)
}

/// What is known of a slot.
struct Slot {
    /// Its bytes, unless something of unknown fate was written.
    known: Option<Vec<u8>>,
    is_busy: bool,
}

/// A transfer under way.
struct Job {
    batch: Batch,
    slot: u64,
    range: std::ops::Range<u64>,
    /// What is written; nothing for a read.
    bytes: Option<Vec<u8>>,
    number: u64,
}

struct Drill<'a> {
    args: &'a TransferDrillArgs,
    prng: Prng,
    engine: Engine,
    local: Registered,
    child: ServeChild,
    key: tempfile::NamedTempFile,
    cutter: Cutter,
    segment: Segment,
    kv: RemoteRegion,
    slots: Vec<Slot>,
    jobs: Vec<Job>,
    /// Numbers of this life's batches that completed.
    told: HashSet<u64>,
    heard: HashSet<u64>,
    account: Account,
}

impl<'a> Drill<'a> {
    fn new(args: &'a TransferDrillArgs) -> Result<Self> {
        let mut key = tempfile::NamedTempFile::new().context("cannot make a file for the key")?;
        key.write_all(KEY.as_bytes())?;
        let child = start_child(loopback(), args, &key)?;
        let cutter = Cutter::start(child.address)?;
        let mut config = EngineConfig::new(Trust::key(KEY)).name("driller");
        config.lanes = args.lanes;
        // Transfers wait for the other process, and here that is back at once.
        config.connect.backoff.cap = Duration::from_millis(100);
        let engine = Engine::start(config)?;
        let memory = MemoryRegion::allocate((SLOTS * SLOT) as usize)?;
        let local = engine.register("drill", &memory, Access::Local)?;
        engine.add_peer(NAME, cutter.address)?;
        let (segment, kv) = open(&engine)?;
        Ok(Self {
            args,
            prng: Prng::new(args.seed),
            engine,
            local,
            child,
            key,
            cutter,
            segment,
            kv,
            slots: (0..SLOTS).map(|_| Slot { known: Some(vec![0; SLOT as usize]), is_busy: false }).collect(),
            jobs: Vec::new(),
            told: HashSet::new(),
            heard: HashSet::new(),
            account: Account::default(),
        })
    }

    fn run(&mut self) -> Result<()> {
        let every = |times: u64| self.args.transfers.checked_div(times).unwrap_or(u64::MAX).max(1);
        let (kill_every, cut_every) = (every(self.args.kills), every(self.args.cuts));
        let (mut next_kill, mut next_cut) = (kill_every / 2, cut_every / 2);
        while self.account.transfers < self.args.transfers {
            while self.jobs.len() >= UNDER_WAY {
                self.reap_one()?;
            }
            self.submit()?;
            if self.account.transfers > next_kill {
                next_kill = next_kill.saturating_add(kill_every);
                self.kill()?;
            }
            if self.account.transfers > next_cut {
                next_cut = next_cut.saturating_add(cut_every);
                self.cutter.cut();
                self.account.cuts += 1;
            }
        }
        while !self.jobs.is_empty() {
            self.reap_one()?;
        }
        self.compare_all()?;
        self.hear_all()
    }

    fn submit(&mut self) -> Result<()> {
        let slot = self.prng.below(SLOTS);
        if self.slots[slot as usize].is_busy {
            return self.reap_one();
        }
        // What is not known becomes known by being written as a whole.
        let is_known = self.slots[slot as usize].known.is_some();
        let is_read = is_known && self.prng.below(3) == 0;
        let start = if is_known { self.prng.below(SLOT) } else { 0 };
        let length = if is_known { self.prng.below(SLOT - start) + 1 } else { SLOT };
        let (range, at) = (start..start + length, slot * SLOT + start);
        let bytes = (!is_read).then(|| noise(&mut self.prng, length as usize));
        let mut request = match &bytes {
            Some(bytes) => {
                self.local.memory().write(at as usize, bytes)?;
                Request::write(&self.local, at, &self.kv, at, length)
            }
            None => Request::read(&self.local, at, &self.kv, at, length),
        };
        if self.prng.below(50) == 0 {
            request = request.timeout(Duration::from_micros(self.prng.below(2_000)));
        }
        let number = self.account.transfers;
        let submitted = match self.segment.submit_and_notify(&[request], number.to_string()) {
            // As many notifications as may be are on their way: they come back while we look at what is done.
            Err(SubmitError::OutboxFull(_)) => return self.reap_one(),
            other => other?,
        };
        if self.prng.below(100) == 0 {
            submitted.cancel();
        }
        self.slots[slot as usize].is_busy = true;
        self.jobs.push(Job { batch: submitted, slot, range, bytes, number });
        self.account.transfers += 1;
        Ok(())
    }

    /// Takes the oldest transfer's end into the account.
    fn reap_one(&mut self) -> Result<()> {
        if self.jobs.is_empty() {
            return Ok(());
        }
        let job = self.jobs.remove(0);
        let result = job.batch.wait_for(PATIENCE).context("a transfer did not end")?;
        let status = result.statuses.first().copied().unwrap_or(Status::Pending);
        let slot = &mut self.slots[job.slot as usize];
        slot.is_busy = false;
        let range = job.range.start as usize..job.range.end as usize;
        let counter = match status {
            Status::Completed => &mut self.account.completed,
            Status::TimedOut => &mut self.account.timed_out,
            Status::Canceled => &mut self.account.canceled,
            Status::PeerRestarted => &mut self.account.restarted,
            _ => &mut self.account.failed,
        };
        *counter += 1;
        if status == Status::Completed {
            self.told.insert(job.number);
        }
        match job.bytes {
            None if status == Status::Completed => {
                let at = (job.slot * SLOT) as usize + range.start;
                let found = self.local.memory().to_vec(at, range.len())?;
                self.account.reads_compared += 1;
                self.account.bytes_compared += range.len() as u64;
                let is_right = slot.known.as_ref().is_some_and(|known| known[range] == found);
                self.account.wrong += u64::from(!is_right);
            }
            None => {}
            Some(bytes) if status == Status::Completed => match &mut slot.known {
                Some(known) => known[range].copy_from_slice(&bytes),
                None => slot.known = (bytes.len() as u64 == SLOT).then_some(bytes),
            },
            Some(_) => slot.known = None,
        }
        Ok(())
    }

    /// The other process dies in the middle of everything, and comes back with nothing.
    fn kill(&mut self) -> Result<()> {
        self.child.kill();
        self.hear_now();
        self.account.kills += 1;
        let address = self.child.address;
        self.child = start_child(address, self.args, &self.key)?;
        while !self.jobs.is_empty() {
            self.reap_one()?;
        }
        (self.segment, self.kv) = open(&self.engine)?;
        for slot in &mut self.slots {
            slot.known = Some(vec![0; SLOT as usize]);
        }
        self.told.clear();
        self.heard.clear();
        // Nothing that was meant for the life before may be in this one.
        self.compare_all()
    }

    /// Reads every slot that is known, and compares.
    fn compare_all(&mut self) -> Result<()> {
        let requests: Vec<_> = (0..SLOTS)
            .map(|slot| Request::read(&self.local, slot * SLOT, &self.kv, slot * SLOT, SLOT))
            .collect();
        let result =
            self.segment.submit(&requests)?.wait_for(PATIENCE).context("reading back did not end")?;
        ensure!(result.is_complete(), "reading back failed: {:?}", result.statuses.first());
        for (at, slot) in self.slots.iter().enumerate() {
            let found = self.local.memory().to_vec(at * SLOT as usize, SLOT as usize)?;
            if let Some(known) = &slot.known {
                self.account.bytes_compared += SLOT;
                self.account.wrong += u64::from(*known != found);
            }
        }
        Ok(())
    }

    /// What the other process has told of notifications.
    fn hear_now(&mut self) {
        while let Ok(line) = self.child.lines.try_recv() {
            hear(&line, &mut self.heard, &mut self.account);
        }
    }

    /// Every notification of the last life that was promised has to come.
    fn hear_all(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        self.hear_now();
        while !self.told.is_subset(&self.heard) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.child.lines.recv_timeout(left) else { break };
            hear(&line, &mut self.heard, &mut self.account);
        }
        self.account.notifications_missing = self.told.difference(&self.heard).count() as u64;
        Ok(())
    }
}

fn hear(line: &str, heard: &mut HashSet<u64>, account: &mut Account) {
    let value: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let number = value.as_ref().and_then(|value| value["text"].as_str()?.parse().ok());
    if let Some(number) = number {
        account.notifications += 1;
        account.notified_twice += u64::from(!heard.insert(number));
    }
}

fn open(engine: &Engine) -> Result<(Segment, RemoteRegion)> {
    let segment = engine.open(NAME).wait_for(PATIENCE)?;
    let kv = segment.region("kv").context("the other process offers no region kv")?;
    Ok((segment, kv))
}

fn start_child(
    listen: SocketAddr,
    args: &TransferDrillArgs,
    key: &tempfile::NamedTempFile,
) -> Result<ServeChild> {
    let arguments = [
        "--name".to_owned(),
        NAME.to_owned(),
        "--lanes".to_owned(),
        args.lanes.to_string(),
        "--key-file".to_owned(),
        key.path().display().to_string(),
    ];
    ServeChild::start(listen, SLOTS * SLOT, &arguments)
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn noise(prng: &mut Prng, bytes: usize) -> Vec<u8> {
    std::iter::repeat_with(|| prng.next_u64().to_le_bytes()).flatten().take(bytes).collect()
}

/// Forwards connections, and breaks all of them on request.
struct Cutter {
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Cutter {
    /// Its threads end with the process.
    fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(loopback())?;
        let address = listener.local_addr()?;
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let sockets = open.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // Nobody there: the near side is closed, which is what it would see without a cutter.
                let Ok(far) = TcpStream::connect(upstream) else { continue };
                let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { continue };
                if let (Ok(near), Ok(far)) = (near.try_clone(), far.try_clone()) {
                    let mut open = sockets.lock().unwrap_or_else(PoisonError::into_inner);
                    open.retain(|socket| socket.peer_addr().is_ok());
                    open.extend([near, far]);
                }
                std::thread::spawn(move || forward(&near, &far));
                std::thread::spawn(move || forward(&far_too, &near_too));
            }
        });
        Ok(Self { address, open })
    }

    fn cut(&self) {
        for socket in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn forward(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}
