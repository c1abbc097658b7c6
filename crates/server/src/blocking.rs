//! Clients that wait for a key.
//!
//! Owns: waiters, and serving them in the order of their arrival once a key has something for them. Does **not** own the
//! queues (each slot has those of its keys) nor the connection's side of waiting.
//!
//! A waiter is served by the worker that changed the key: it runs the waiter's command on its behalf, under the slots of
//! all its keys, and hands the reply over. Between the change and that, another worker may see what the waiter is to get: a
//! command that may wait itself is held back there, so that it cannot overtake. The first to move a waiter out of `Waiting` decides its fate: served, timed
//! out, unblocked or gone.

use crate::client::{Client, flag};
use crate::command::{Args, Block, Ctx, Nothing, OwnedArgs, Row};
use crate::execute::{Local, slots_of};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use towline_resp::Proto;
use towline_resp::writer::Writer;
use towline_spec::{Command, Flags, Group};
use towline_store::keyspace::Keyspace;
use towline_store::value::Kind;

const WAITING: u8 = 0;
const SERVED: u8 = 1;
const ENDED: u8 = 2;

/// A command that waits, with all that is needed to run it again.
#[derive(Debug)]
pub(crate) struct Waiter {
    id: AtomicU64,
    client: Arc<Client>,
    proto: Proto,
    db: u8,
    command: &'static Command,
    row: &'static Row,
    args: OwnedArgs,
    block: Block,
    fate: AtomicU8,
    /// `CLIENT REPLY` suppresses the reply.
    is_silent: AtomicBool,
    reply: Mutex<Option<Served>>,
}

/// The reply of a waiter that was served.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Its bytes.
    pub(crate) parts: Vec<Bytes>,
    /// It tells of the log up to there.
    pub(crate) position: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waiter {
    /// A waiter of `client`, not yet registered.
    pub(crate) fn new(
        client: Arc<Client>,
        proto: Proto,
        db: u8,
        command: &'static Command,
        row: &'static Row,
        args: OwnedArgs,
        block: Block,
    ) -> Self {
        let (id, fate) = (AtomicU64::new(0), AtomicU8::new(WAITING));
        let is_silent = AtomicBool::new(false);
        Self { id, client, proto, db, command, row, args, block, fate, is_silent, reply: Mutex::new(None) }
    }

    /// Its place among all waiters; later ones have larger ids.
    pub(crate) fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    /// The keys it waits for.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.block.keys.iter().map(Vec::as_slice)
    }

    /// Whether a key of this kind may have something for it. If one has, a key of another kind that the command meets
    /// first is an error, as it would be had the command come only now.
    fn wants(&self, kind: Kind) -> bool {
        match self.command.group {
            Group::List => kind == Kind::List,
            Group::SortedSet => kind == Kind::Zset,
            _ => true,
        }
    }

    /// Who waits.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether its command may change the keyspace.
    pub(crate) fn writes(&self) -> bool {
        self.command.flags.contains(Flags::WRITE)
    }

    /// How long it waits at most.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.block.timeout
    }

    /// What it answers when nothing came.
    pub(crate) fn nothing(&self) -> Nothing {
        self.block.nothing
    }

    /// Whatever it is served with, its client does not want to read it.
    pub(crate) fn silence(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Whether its client does not want to read a reply.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// Ends the waiting from the client's side. `false` if it was served before: then the reply is there, or will be
    /// within the time of one command.
    pub(crate) fn end(&self) -> bool {
        self.fate.compare_exchange(WAITING, ENDED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends the waiting with this reply, from outside (`CLIENT UNBLOCK`). `false` if it was over before.
    pub(crate) fn end_with(&self, reply: Bytes) -> bool {
        self.end_at(reply, 0)
    }

    /// As [`Waiter::end_with`]; the reply tells of the log up to `position`.
    pub(crate) fn end_at(&self, reply: Bytes, position: u64) -> bool {
        if self.fate.compare_exchange(WAITING, SERVED, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        self.deliver(Served { parts: vec![reply], position });
        true
    }

    /// Ends the waiting as if its time were up, from outside. `false` if it was over before.
    pub(crate) fn time_out(&self) -> bool {
        let mut out = Writer::new(self.proto);
        self.nothing().write(&mut out);
        self.end_with(Bytes::from(out.take().0))
    }

    fn deliver(&self, reply: Served) {
        *lock(&self.reply) = Some(reply);
        self.client.wake();
    }

    /// The reply, once it is there.
    pub(crate) fn take_reply(&self) -> Option<Served> {
        lock(&self.reply).take()
    }

    /// The protocol that its replies are written in.
    pub(crate) fn proto(&self) -> Proto {
        self.proto
    }
}

/// All clients that wait.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    next_id: AtomicU64,
    by_id: Mutex<BTreeMap<u64, Arc<Waiter>>>,
}

impl Blocked {
    /// Registers a waiter.
    pub(crate) fn add(&self, waiter: Waiter) -> Arc<Waiter> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        waiter.id.store(id, Ordering::Relaxed);
        waiter.client.set_flag(flag::BLOCKED, true);
        let waiter = Arc::new(waiter);
        lock(&self.by_id).insert(id, Arc::clone(&waiter));
        waiter
    }

    fn get(&self, id: u64) -> Option<Arc<Waiter>> {
        lock(&self.by_id).get(&id).cloned()
    }

    /// The waiter of a client.
    pub(crate) fn of_client(&self, client: u64) -> Option<Arc<Waiter>> {
        lock(&self.by_id).values().find(|waiter| waiter.client.id == client).cloned()
    }

    /// All that wait.
    pub(crate) fn all(&self) -> Vec<Arc<Waiter>> {
        lock(&self.by_id).values().cloned().collect()
    }

    /// Ends the waiting of these clients, whose ids rise, as if their time were up.
    pub(crate) fn release(&self, clients: &[u64]) {
        let waiters = self.all();
        let meant = waiters.iter().filter(|waiter| clients.binary_search(&waiter.client.id).is_ok());
        for waiter in meant {
            // Served at this moment: its reply is on the way.
            let _ = waiter.time_out();
        }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        lock(&self.by_id).len()
    }

    /// Distinct keys that are waited for.
    pub(crate) fn key_count(&self) -> usize {
        let by_id = lock(&self.by_id);
        let keys = by_id.values().flat_map(|waiter| waiter.keys().map(|key| (waiter.db, key)));
        keys.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Forgets a waiter whose fate is decided.
    pub(crate) fn remove(&self, waiter: &Waiter) {
        if lock(&self.by_id).remove(&waiter.id()).is_some() {
            waiter.client.set_flag(flag::BLOCKED, false);
        }
    }
}

/// Takes a waiter out of the queues of its keys. The caller holds no slot.
pub(crate) fn forget(local: &mut Local, waiter: &Waiter, now_ms: u64) {
    let shared = Arc::clone(&local.shared);
    let settings = Arc::clone(&local.settings);
    let slots = waiter.keys().map(towline_cluster::key_slot);
    let mut ks = Keyspace::hold(&shared.store, slots, &settings, &mut local.changes, waiter.db, now_ms);
    for key in waiter.keys() {
        ks.unwait(key, waiter.id());
    }
    drop(ks);
    shared.blocked.remove(waiter);
}

/// Serves those who wait for a key that changed, longest waiting first, as long as the key has something for them.
/// What that sets off in turn is left in `local.changes`. The caller holds no slot.
pub(crate) fn serve(local: &mut Local, db: u8, key: &[u8], now_ms: u64) {
    let shared = Arc::clone(&local.shared);
    let settings = Arc::clone(&local.settings);
    let mut after = None;
    loop {
        let mut ks = Keyspace::hold(
            &shared.store,
            [towline_cluster::key_slot(key)],
            &settings,
            &mut local.changes,
            db,
            now_ms,
        );
        let kind = ks.kind(key);
        let (Some(kind), Some(id)) = (kind, ks.waiter(key, after)) else {
            ks.serve_done(key);
            return;
        };
        drop(ks);
        match shared.blocked.get(id) {
            Some(waiter) if waiter.wants(kind) && serve_one(local, &waiter, (db, key), now_ms) => {
                forget(local, &waiter, now_ms)
            }
            _ => after = Some(id),
        }
    }
}

/// Runs the waiter's command. `false` if there is nothing in it for the waiter, its fate is decided, or it would change a key
/// that is on its way: then the waiters of the key that is `ready` are served later.
fn serve_one(local: &mut Local, waiter: &Waiter, ready: (u8, &[u8]), now_ms: u64) -> bool {
    let shared = Arc::clone(&local.shared);
    let settings = Arc::clone(&local.settings);
    let args: Args<'_> = waiter.args.args();
    let mut out = Writer::new(waiter.proto);
    let slots = slots_of(waiter.command, args);
    let ks = Keyspace::hold(&shared.store, slots, &settings, &mut local.changes, waiter.db, now_ms);
    if shared.moves.marks.any()
        && let Some(parking) = shared.moves.marks.holding(waiter.command, args)
    {
        parking.defer(ready.0, ready.1);
        return false;
    }
    let mut ctx = Ctx {
        ks,
        out: &mut out,
        server: &shared,
        session: None,
        blocked: None,
        is_held_back: false,
        parked: None,
        worker: local.worker,
    };
    // Under the slots of all its keys: nobody else can serve it, and it cannot have been queued anew.
    if waiter.fate.compare_exchange(WAITING, SERVED, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return false;
    }
    let result = (waiter.row.run)(&mut ctx, args);
    let still_blocked = ctx.blocked.take().is_some();
    if still_blocked {
        waiter.fate.store(WAITING, Ordering::Release);
        // The client may have tried to end the waiting in between; it looks again when it is woken.
        waiter.client.wake();
        return false;
    }
    if let Err(error) = result {
        error.reply(ctx.out);
    }
    drop(ctx);
    // What it got may have come with the command that is being executed here, or with one before.
    let position = local.changes.position.max(local.changes.seen);
    waiter
        .deliver(Served { parts: vec![Bytes::from(out.segments().collect::<Vec<_>>().concat())], position });
    true
}
