//! Client-side caching: who is told that a key changed.
//!
//! Owns: `CLIENT TRACKING` beyond the keys themselves: the prefixes of broadcasting clients, and the messages. Does
//! **not** own which client read which key (each slot knows that of its keys).
//!
//! A client gets invalidations behind the reply of the command that it is executing: a client that changes a key which it
//! has cached first reads that the change is done.

use crate::client::{Client, flag};
use crate::command::{Args, Ctx};
use crate::execute::Local;
use crate::followups;
use crate::session::{Session, Tracking};
use crate::shared::Shared;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use towline_cluster::SLOT_COUNT;
use towline_resp::Proto;
use towline_resp::writer::Writer;
use towline_spec::{Command, Flags, KeyFlags};
use towline_store::keyspace::Keyspace;

/// Where RESP2 clients listen for the invalidations of those who redirect to them.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// Who broadcasts for a prefix, by id.
type Broadcasters = BTreeMap<u64, Arc<Client>>;
/// By the length of the prefix, then by the prefix: a key is looked up once per length.
type Prefixes = BTreeMap<usize, BTreeMap<Vec<u8>, Broadcasters>>;

/// Clients that track by prefix.
#[derive(Debug, Default)]
pub(crate) struct TrackingTable {
    broadcasts: AtomicUsize,
    prefixes: Mutex<Prefixes>,
}

impl TrackingTable {
    /// Whether a client tracks by prefix.
    #[inline]
    pub(crate) fn any_broadcast(&self) -> bool {
        self.broadcasts.load(Ordering::Relaxed) > 0
    }

    /// Distinct prefixes that are tracked.
    pub(crate) fn prefix_count(&self) -> usize {
        self.prefixes().values().map(BTreeMap::len).sum()
    }

    fn prefixes(&self) -> MutexGuard<'_, Prefixes> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// ---- turning it on and off ------------------------------------------------------------------------------------------

/// The session tracks like this from now on. What it tracked before, and the prefixes that it has, stay.
pub(crate) fn on(shared: &Shared, session: &mut Session, mut tracking: Tracking) {
    let client = Arc::clone(&session.client);
    if let Some(before) = &session.tracking {
        tracking.caching = before.caching;
    }
    if tracking.is_broadcast {
        let mut added = std::mem::take(&mut tracking.prefixes);
        if added.is_empty() {
            added.push(Vec::new());
        }
        if let Some(before) = session.tracking.take() {
            tracking.prefixes = before.prefixes;
        } else {
            shared.tracking.broadcasts.fetch_add(1, Ordering::Relaxed);
        }
        let mut all = shared.tracking.prefixes();
        for prefix in added {
            let of_length = all.entry(prefix.len()).or_default();
            let is_new =
                of_length.entry(prefix.clone()).or_default().insert(client.id, Arc::clone(&client)).is_none();
            if is_new {
                tracking.prefixes.push(prefix);
            }
        }
        tracking.prefixes.sort_unstable();
    }
    client.redirect.store(tracking.redirect.unwrap_or(0), Ordering::Relaxed);
    client.set_flag(flag::TRACKING_BROKEN, false);
    client.set_flag(flag::TRACKING_BROADCAST, tracking.is_broadcast);
    client.set_flag(flag::TRACKING_NO_LOOP, tracking.is_no_loop);
    client.set_flag(flag::TRACKING, true);
    session.tracking = Some(Box::new(tracking));
}

/// The session no longer tracks. The slots find that out when they have something to tell it.
pub(crate) fn off(shared: &Shared, session: &mut Session) {
    let Some(tracking) = session.tracking.take() else { return };
    let client = &session.client;
    client.set_flag(
        flag::TRACKING | flag::TRACKING_BROADCAST | flag::TRACKING_NO_LOOP | flag::TRACKING_BROKEN,
        false,
    );
    client.redirect.store(0, Ordering::Relaxed);
    if !tracking.is_broadcast {
        return;
    }
    let mut all = shared.tracking.prefixes();
    for prefix in &tracking.prefixes {
        let Some(of_length) = all.get_mut(&prefix.len()) else { continue };
        let Some(clients) = of_length.get_mut(prefix) else { continue };
        clients.remove(&client.id);
        if clients.is_empty() {
            of_length.remove(prefix);
        }
        if of_length.is_empty() {
            all.remove(&prefix.len());
        }
    }
    shared.tracking.broadcasts.fetch_sub(1, Ordering::Relaxed);
}

// ---- reading --------------------------------------------------------------------------------------------------------

/// Records the keys that a tracking client's command read. The slots of the command's keys are held.
pub(crate) fn record(ctx: &mut Ctx<'_>, command: &'static Command, args: Args<'_>) {
    let session = ctx.session();
    let Some(tracking) = &session.tracking else { return };
    let is_wanted = match (tracking.is_opt_in, tracking.is_opt_out) {
        (true, _) => tracking.caching == Some(true),
        (_, true) => tracking.caching != Some(false),
        (false, false) => true,
    };
    if tracking.is_broadcast || !is_wanted || !command.flags.contains(Flags::READONLY) {
        return;
    }
    let client = session.client.id;
    // A command from whose arguments no keys can be read has read none.
    let _ = towline_spec::for_each_key(command, &args, |index, flags| {
        if !flags.contains(KeyFlags::NOT_KEY) {
            ctx.ks.track(args.get(index), client);
        }
    });
}

/// What `CLIENT CACHING` said was about the command behind it, or the transaction behind it.
pub(crate) fn after_command(session: &mut Session, command: &'static Command) {
    if session.multi.is_none()
        && let Some(tracking) = &mut session.tracking
        && !command.name.starts_with("client|")
    {
        tracking.caching = None;
    }
}

/// Keys that one call of [`enforce_limit`] forgets at most; a limit that was lowered far is reached over many commands and
/// rounds.
const FORGOTTEN_MAX: usize = 128;

/// Forgets tracked keys, drawn at random, while there are more than `tracking-table-max-keys`; their trackers are told that
/// they changed. The caller holds no slot.
pub(crate) fn enforce_limit(local: &mut Local, now_ms: u64) {
    let limit = local.config.tracking_table_max_keys;
    let is_above = |local: &Local| limit > 0 && local.shared.store.tracked().0 > limit;
    if !is_above(local) {
        return;
    }
    let (shared, settings) = (Arc::clone(&local.shared), Arc::clone(&local.settings));
    for _ in 0..FORGOTTEN_MAX {
        let from = local.changes.rng.below(SLOT_COUNT as u64) as usize;
        let Some(slot) = shared.store.next_tracked(from).or_else(|| shared.store.next_tracked(0)) else {
            break;
        };
        let r = local.changes.rng.next_u64();
        let mut ks = Keyspace::hold(&shared.store, [slot], &settings, &mut local.changes, 0, now_ms);
        ks.forget_tracked(slot, r);
        drop(ks);
        if !is_above(local) {
            break;
        }
    }
    followups::work_off(local, None, now_ms);
}

// ---- telling --------------------------------------------------------------------------------------------------------

/// A message in the forms in which it has been needed.
struct Invalidation<'a> {
    /// The keys; none for "all".
    keys: Option<&'a [&'a [u8]]>,
    resp2: Option<Bytes>,
    resp3: Option<Bytes>,
}

impl<'a> Invalidation<'a> {
    fn new(keys: Option<&'a [&'a [u8]]>) -> Self {
        Self { keys, resp2: None, resp3: None }
    }

    fn bytes(&mut self, proto: Proto) -> Bytes {
        let keys = self.keys;
        let form = if proto == Proto::Resp3 { &mut self.resp3 } else { &mut self.resp2 };
        let write = || {
            let mut out = Writer::new(proto);
            if proto == Proto::Resp3 {
                out.push(2);
                out.bulk(b"invalidate");
            } else {
                out.push(3);
                out.bulk(b"message");
                out.bulk(CHANNEL);
            }
            match keys {
                Some(keys) => {
                    out.array(keys.len());
                    keys.iter().for_each(|key| out.bulk(key));
                }
                None => out.null(),
            }
            Bytes::from(out.take().0)
        };
        form.get_or_insert_with(write).clone()
    }

    /// Tells the client that tracked the keys, or the one that it redirects to.
    fn send(&mut self, shared: &Shared, client: &Arc<Client>) {
        let redirect = client.redirect.load(Ordering::Relaxed);
        if redirect == 0 {
            // RESP2 has no way to tell it.
            if client.has_flag(flag::RESP3) {
                client.push(self.bytes(Proto::Resp3));
            }
            return;
        }
        match shared.clients.get(redirect) {
            Some(target) if target.has_flag(flag::RESP3) => drop(target.push(self.bytes(Proto::Resp3))),
            Some(target) if target.has_flag(flag::PUBSUB) => drop(target.push(self.bytes(Proto::Resp2))),
            Some(_) => {}
            None => {
                client.set_flag(flag::TRACKING_BROKEN, true);
                if client.has_flag(flag::RESP3) {
                    let mut out = Writer::new(Proto::Resp3);
                    out.push(2);
                    out.bulk(b"tracking-redir-broken");
                    out.int(redirect as i64);
                    client.push(Bytes::from(out.take().0));
                }
            }
        }
    }
}

fn is_own(client: &Client, origin: Option<&Arc<Client>>) -> bool {
    client.has_flag(flag::TRACKING_NO_LOOP) && origin.is_some_and(|origin| origin.id == client.id)
}

/// Tells the clients that a key which they read has changed; `origin` is the client that changed it.
pub(crate) fn invalidate(shared: &Shared, key: &[u8], clients: &[u64], origin: Option<&Arc<Client>>) {
    let keys = [key];
    let mut message = Invalidation::new(Some(&keys));
    for client in clients.iter().filter_map(|&id| shared.clients.get(id)) {
        // It may have changed its mind since it read the key.
        let tracks = client.has_flag(flag::TRACKING) && !client.has_flag(flag::TRACKING_BROADCAST);
        if tracks && !is_own(&client, origin) {
            message.send(shared, &client);
        }
    }
}

/// Tells the clients that track a prefix of one of the keys: one message for each prefix.
pub(crate) fn invalidate_prefixes(shared: &Shared, keys: &[Box<[u8]>], origin: Option<&Arc<Client>>) {
    let prefixes = shared.tracking.prefixes();
    let mut changed: BTreeMap<&[u8], (&Broadcasters, Vec<&[u8]>)> = BTreeMap::new();
    for key in keys {
        for (&length, of_length) in prefixes.range(..=key.len()) {
            if let Some((prefix, clients)) = of_length.get_key_value(&key[..length]) {
                let (_, keys) = changed.entry(prefix).or_insert_with(|| (clients, Vec::new()));
                keys.push(key);
            }
        }
    }
    for (clients, mut keys) in changed.into_values() {
        keys.sort_unstable();
        keys.dedup();
        let mut message = Invalidation::new(Some(&keys));
        for client in clients.values().filter(|client| !is_own(client, origin)) {
            message.send(shared, client);
        }
    }
}

/// Tells all tracking clients that nothing they know holds any more: `FLUSHALL`, `FLUSHDB`.
pub(crate) fn invalidate_all(shared: &Shared) {
    let mut message = Invalidation::new(None);
    for client in shared.clients.all() {
        if client.has_flag(flag::TRACKING) {
            message.send(shared, &client);
        }
    }
}
