//! Replies kept on this side, until the server says that they are no longer true.
//!
//! Owns the handle ([`Cache`]), the parts of the cache behind their locks, and the way of the server's words to them. Does
//! **not** own what is kept and when it goes (`towline_client_proto::cache`), nor how a reply is asked for (`read`).
//!
//! The lock of a part is the last one: nothing else is locked, woken or sent under it.

mod options;
mod read;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::future::Future;
use std::hash::BuildHasher;
use std::hash::RandomState;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use towline_client_proto::cache::{Cache as Core, CacheConfig, CacheCounters, Look, Name, SourceId};
use towline_client_proto::{Counters, Error, ErrorKind, Reply, Sent, Tracking, TrackingNews};
use towline_cluster::Slot;
use towline_resp::frame::Frame;
use towline_spec::{CommandId, Flags, SideEffect, for_each_key, id, resolve};

use crate::client::{Client, convert};
use crate::clock;
use crate::cmd::{Cmd, cmd};
use crate::commands::{Commands, TypedCommands};
use crate::trace;
use crate::value::FromReply;

pub use options::CacheOptions;

/// Parts that are locked apart, so that tasks which read different keys seldom meet.
const PARTS: usize = 16;

/// Below this size there is one part: a part must have room for an entry of some size.
const PARTED_BYTES_MIN: usize = 4 * 1024 * 1024;

/// Reads for their effect, not for their reply.
const NOT_FOR_THE_REPLY: [CommandId; 1] = [id("touch")];

/// Who waits for a read.
type Waiter = oneshot::Sender<Result<Frame, Error>>;

/// Reads through a cache in this process, which the server keeps true. Cloning is cheap.
///
/// Made by [`Client::cache`], if [`ConnectOptions::client_cache`](crate::ConnectOptions::client_cache) says so. What is read
/// through this handle is kept; what is read through the client itself is not, and costs nothing. `docs/client.md` says what
/// is guaranteed.
///
/// With [`Commands`] or [`TypedCommands`] in scope it has a method for each command: `cache.hgetall("user:1")`.
///
/// ```no_run
/// use towline_client::{CacheOptions, Client, ConnectOptions, cmd};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let options: ConnectOptions = "redis://localhost".parse()?;
/// let client = Client::open(options.client_cache(CacheOptions::new())).await?;
/// let cache = client.cache()?;
/// let name: Option<String> = cache.get("user:1:name").await?; // asks the server
/// let name: Option<String> = cache.get("user:1:name").await?; // does not
/// let first: Vec<String> = cache.query(cmd("LRANGE").arg(("jobs", 0, 9))).await?;
/// # let _ = (name, first);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cache {
    client: Client,
    shared: Arc<Shared>,
    max_age: Duration,
}

/// A cache at one moment; see [`Cache::report`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheReport {
    /// Replies that are kept, and reads under way.
    pub entries: usize,
    /// Their bytes: keys, commands, values, bookkeeping.
    pub bytes: usize,
    /// Whether some connection announces changes: without one, everything is read from the server.
    pub is_on: bool,
    /// Totals.
    pub counters: CacheCounters,
}

/// What all handles to one cache share.
pub(crate) struct Shared {
    parts: Box<[Mutex<Core<Waiter, Frame>>]>,
    hasher: RandomState,
    options: CacheOptions,
    next_source: AtomicU64,
    runtime: Handle,
}

/// The way from one endpoint's connections to the cache.
pub(crate) struct CacheLink {
    shared: Arc<Shared>,
    pub(crate) source: SourceId,
}

impl CacheLink {
    /// What the connections have to ask for.
    pub(crate) fn tracking(&self) -> Tracking {
        self.shared.options.tracking()
    }

    /// Passes on what a bridge has to say, in its order.
    pub(crate) fn tell(&self, news: Vec<TrackingNews>) {
        for word in news {
            match word {
                TrackingNews::Began => self.shared.each(|part| part.began(self.source)),
                TrackingNews::Ended => self.shared.each(|part| part.ended(self.source)),
                TrackingNews::Keys(keys) => keys.iter().for_each(|key| self.shared.invalidate(key)),
                // Including words that this cache does not know.
                _ => self.shared.each(|part| part.invalidate_all(self.source)),
            }
        }
    }
}

impl Drop for CacheLink {
    fn drop(&mut self) {
        self.shared.each(|part| part.ended(self.source));
    }
}

impl Shared {
    /// An empty cache. Must be called within a tokio runtime, on which reads run.
    pub(crate) fn new(options: CacheOptions) -> Arc<Self> {
        let count = if options.bytes() < PARTED_BYTES_MIN { 1 } else { PARTS };
        let config = CacheConfig {
            bytes_max: options.bytes() / count,
            entry_bytes_max: options.entry_bytes().min(options.bytes() / count),
            waiters_max: options.waiters(),
            ..CacheConfig::default()
        };
        Arc::new(Self {
            parts: (0..count).map(|_| Mutex::new(Core::new(config))).collect(),
            hasher: RandomState::new(),
            options,
            next_source: AtomicU64::new(1),
            runtime: Handle::current(),
        })
    }

    /// The way of one more endpoint.
    pub(crate) fn link(self: &Arc<Self>) -> CacheLink {
        let source = SourceId(self.next_source.fetch_add(1, Ordering::Relaxed));
        CacheLink { shared: Arc::clone(self), source }
    }

    /// Slots have another owner from now on.
    pub(crate) fn slots_moved(&self, has_moved: impl Fn(Slot) -> bool) {
        self.each(|part| part.slots_moved(&has_moved));
    }

    fn name<'n>(&self, key: &'n [u8], command: &'n [u8]) -> Name<'n> {
        Name::new(&self.hasher, key, command)
    }

    /// The part that has a key. No foreign code runs under the lock, so a panic elsewhere leaves it whole.
    fn part(&self, key_hash: u64) -> MutexGuard<'_, Core<Waiter, Frame>> {
        // The upper bits: the lower ones find the place within the part's tables.
        let at = (key_hash >> 48) as usize % self.parts.len();
        lock(&self.parts[at])
    }

    fn each(&self, act: impl Fn(&mut Core<Waiter, Frame>)) {
        self.parts.iter().for_each(|part| act(&mut lock(part)));
    }

    fn invalidate(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        self.part(hash).invalidate(hash, key);
    }

    fn report(&self) -> CacheReport {
        let mut report = CacheReport::default();
        for part in &self.parts {
            let part = lock(part);
            report.entries += part.len();
            report.bytes += part.bytes();
            report.is_on |= part.is_on();
            report.counters.add(&part.counters());
        }
        report
    }

    /// Adds the cache's totals to a client's.
    pub(crate) fn count(&self, counters: &mut Counters) {
        let cache = self.report().counters;
        counters.cache_hits += cache.hits;
        counters.cache_misses += cache.misses;
        counters.cache_coalesced += cache.coalesced;
        counters.cache_bypassed += cache.bypassed;
        counters.cache_invalidated += cache.invalidated;
        counters.cache_evicted += cache.evicted;
        counters.cache_dropped += cache.dropped;
        counters.cache_expired += cache.expired;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// The cache of this client, as [`ConnectOptions::client_cache`](crate::ConnectOptions::client_cache) describes it. All
    /// handles share one.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`]: the options have none, or this is a leased connection, which has none of its own.
    pub fn cache(&self) -> Result<Cache, Error> {
        let Some(shared) = self.inner.cache.clone() else {
            return Err(Error::misuse("the client has no cache: see `ConnectOptions::client_cache`"));
        };
        Ok(Cache { client: self.clone(), max_age: shared.options.age(), shared })
    }
}

impl Cache {
    /// The same cache for callers who want nothing older than this, in place of [`CacheOptions::max_age`]. The age counts from
    /// before the read was sent. What is older is read anew, and kept for all.
    pub fn max_age(&self, max_age: Duration) -> Self {
        Self { max_age, ..self.clone() }
    }

    /// The client behind it.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// `GET key`, from the cache if it is there.
    ///
    /// # Errors
    /// As [`Cache::query`].
    ///
    /// # Cancel safety
    /// As [`Cache::query`].
    pub async fn get<T: FromReply>(&self, key: impl AsRef<[u8]>) -> Result<T, Error> {
        let (key, get) = (key.as_ref(), cmd("GET").arg(key.as_ref()));
        let outcome = match self.look_up(&get, key) {
            Looked::Here(frame) => Ok(frame),
            Looked::Coming(coming) => trace::command(b"GET", coming.wait(&get)).await,
            Looked::Around => self.client.send(&get).await,
        };
        convert(outcome.map(Reply::One))
    }

    /// The reply to a command that reads one key, from the cache if it is there.
    ///
    /// A reply that is not there is read once for all who ask for it at the same time. Replies that are errors go to those who
    /// wait and are not kept.
    ///
    /// # Errors
    /// As [`Cmd::query`]. [`ErrorKind::Misuse`] for a command whose reply cannot be kept: it writes, has no key or several,
    /// blocks, is not in the command table, or its reply depends on more than the key's value (`TTL`, `SRANDMEMBER`, `SCAN`,
    /// scripts). [`ErrorKind::Closed`]: the client's runtime has ended.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: the read goes on for others and for the cache, also if nobody is left who waits for it.
    pub async fn query<T: FromReply>(&self, cmd: Cmd) -> Result<T, Error> {
        let looked = {
            let key = key_of(&cmd)?;
            self.look_up(&cmd, &key)
        };
        let outcome = match looked {
            Looked::Here(frame) => Ok(frame),
            Looked::Coming(coming) => trace::command(cmd.name(), coming.wait(&cmd)).await,
            Looked::Around => trace::command(cmd.name(), self.client.send(&cmd)).await,
        };
        convert(outcome.map(Reply::One))
    }

    /// Forgets what is known of a key, and what is being read of it. For who has just written and must not see what was there
    /// before, not even until the server's announcement has come: call it when the write is answered.
    pub fn forget(&self, key: impl AsRef<[u8]>) {
        self.shared.invalidate(key.as_ref());
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.shared.each(Core::clear);
    }

    /// How full it is and what it was good for; [`Client::metrics`] has the totals, too. Takes each part's lock once.
    pub fn report(&self) -> CacheReport {
        self.shared.report()
    }

    fn look_up(&self, cmd: &Cmd, key: &[u8]) -> Looked {
        if !self.shared.options.is_watched(key) {
            return Looked::Around;
        }
        let command = command_bytes(cmd);
        let name = self.shared.name(key, &command);
        let mut receiver = None;
        let waiter = || {
            let (sender, receives) = oneshot::channel();
            receiver = Some(receives);
            sender
        };
        let look = self.shared.part(name.key_hash()).look_up(clock::now(), &name, self.max_age, waiter);
        match (look, receiver) {
            (Look::Hit(frame), _) => Looked::Here(frame),
            (Look::Joined, Some(receiver)) => Looked::Coming(Coming { receiver }),
            (Look::Read(read), Some(receiver)) => {
                let reading = read::Reading::new(&self.shared, &self.client, cmd, key, read);
                self.shared.runtime.spawn(reading.run());
                Looked::Coming(Coming { receiver })
            }
            (Look::Bypass | Look::Joined | Look::Read(_), _) => Looked::Around,
        }
    }
}

/// What a look at the cache came to.
enum Looked {
    Here(Frame),
    Coming(Coming),
    /// It is to be read without the cache.
    Around,
}

/// A read under way, for one of those who wait for it.
struct Coming {
    receiver: oneshot::Receiver<Result<Frame, Error>>,
}

impl Coming {
    /// Waits for it: for the time that the command has itself, if it has one.
    async fn wait(self, cmd: &Cmd) -> Result<Frame, Error> {
        let over = |_| Err(Error::new(ErrorKind::Closed, Sent::Maybe));
        match cmd.options().deadline {
            None => self.receiver.await.unwrap_or_else(over),
            Some(time) => match tokio::time::timeout(time, self.receiver).await {
                Ok(outcome) => outcome.unwrap_or_else(over),
                Err(_) => Err(Error::new(ErrorKind::Deadline, Sent::Maybe)),
            },
        }
    }
}

/// The command's arguments as they are sent.
fn command_bytes(cmd: &Cmd) -> Cow<'_, [u8]> {
    let (_, parts) = cmd.encoded();
    let mut whole: Option<Cow<'_, [u8]>> = None;
    for part in parts {
        let piece = match part {
            crate::args::Part::Encoded(bytes) => bytes,
            crate::args::Part::Shared(bytes) => &bytes[..],
        };
        match &mut whole {
            None => whole = Some(Cow::Borrowed(piece)),
            Some(known) => known.to_mut().extend_from_slice(piece),
        }
    }
    whole.unwrap_or_default()
}

/// The one key of a command whose reply may be kept.
fn key_of(cmd: &Cmd) -> Result<Vec<u8>, Error> {
    let refuse = |reason: &str| {
        let name = cmd.name().escape_ascii();
        Err(Error::misuse(format!("the reply to {name} cannot be kept: {reason}")))
    };
    if cmd.options().is_fire_and_forget {
        return refuse("nobody waits for it");
    }
    let args: Vec<&[u8]> = cmd.args().collect();
    let Ok(command) = resolve(&args[..]) else { return refuse("the command is not in the table") };
    let flags = command.flags;
    if !flags.contains(Flags::READONLY) || command.effect != SideEffect::ReadOnly {
        return refuse("it does not only read");
    }
    let depends_on_more = flags.contains(Flags::TOUCHES_ARBITRARY_KEYS)
        || flags.contains(Flags::BLOCKING)
        || command.tips.contains(&"nondeterministic_output")
        || command.group == towline_spec::Group::Scripting
        || NOT_FOR_THE_REPLY.contains(&command.id);
    if depends_on_more {
        return refuse("it depends on more than the value of its key");
    }
    if !command.accepts_arity(args.len()) {
        return refuse("it has the wrong number of arguments");
    }
    let mut keys = [None; 2];
    let mut count = 0;
    let are_known = for_each_key(command, &args[..], |index, _| {
        if let Some(place) = keys.get_mut(count) {
            *place = args.get(index).copied();
        }
        count += 1;
    });
    match (are_known, keys) {
        (Ok(()), [Some(key), None]) => Ok(key.to_vec()),
        _ => refuse("it has no key, or several"),
    }
}

impl Commands for Cache {
    fn run<T: FromReply + Send>(&self, cmd: Cmd) -> impl Future<Output = Result<T, Error>> + Send {
        self.query(cmd)
    }
}

impl TypedCommands for Cache {
    fn run<T: FromReply + Send>(&self, cmd: Cmd) -> impl Future<Output = Result<T, Error>> + Send {
        self.query(cmd)
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("max_age", &self.max_age)
            .field("report", &self.report())
            .finish_non_exhaustive()
    }
}
