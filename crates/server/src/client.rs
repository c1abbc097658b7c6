//! What other workers see of a client, and how they reach it.
//!
//! Owns: a client's public facts, its outbox, the registry of all clients. Does **not** own its session or its socket.

use crate::shared::Shared;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Where a connection comes from and goes to, as `CLIENT LIST` prints it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses {
    pub(crate) peer: Box<str>,
    pub(crate) local: Box<str>,
    /// Peer and local address of a TCP connection.
    pub(crate) tcp: Option<(SocketAddr, SocketAddr)>,
    pub(crate) fd: i32,
    pub(crate) is_unix: bool,
}

impl Addresses {
    /// The address that a TCP connection was accepted on.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        self.tcp.map(|(_, local)| local)
    }
}

/// Names that a client gave itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub(crate) name: Vec<u8>,
    pub(crate) lib_name: Vec<u8>,
    pub(crate) lib_version: Vec<u8>,
}

#[derive(Default)]
struct Outbox {
    queue: VecDeque<Bytes>,
    bytes: usize,
    waker: Option<Waker>,
}

/// Public facts that are single bits; see [`Client::flags`].
pub(crate) mod flag {
    pub(crate) const BLOCKED: u32 = 1 << 0;
    pub(crate) const PUBSUB: u32 = 1 << 1;
    pub(crate) const MULTI: u32 = 1 << 2;
    pub(crate) const MONITOR: u32 = 1 << 3;
    pub(crate) const TRACKING: u32 = 1 << 4;
    pub(crate) const TRACKING_BROADCAST: u32 = 1 << 5;
    pub(crate) const NO_EVICT: u32 = 1 << 6;
    pub(crate) const NO_TOUCH: u32 = 1 << 7;
    pub(crate) const RESP3: u32 = 1 << 8;
    pub(crate) const TRACKING_BROKEN: u32 = 1 << 10;
    pub(crate) const READONLY: u32 = 1 << 11;
    pub(crate) const PAUSED: u32 = 1 << 12;
    pub(crate) const TRACKING_NO_LOOP: u32 = 1 << 13;
    /// It opted in to notices of planned moves at least once.
    pub(crate) const NOTIFIED: u32 = 1 << 14;
    /// It is sent the data set and what happens to it.
    pub(crate) const REPLICA: u32 = 1 << 15;
    /// Shard channels that it listens to went to another node; its session does not know yet.
    pub(crate) const CHANNELS_GONE: u32 = 1 << 16;
}

/// Whether a connection is to end, and how much of its work is done before that; each is stronger than those above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Ending {
    /// It goes on.
    No = 0,
    /// As soon as nothing is unread, unanswered or unsent.
    Finishing = 1,
    /// As soon as nothing is unsent; nothing more is read.
    Flushing = 2,
    /// At once.
    Killed = 3,
}

/// A client as the rest of the server sees it.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) addresses: Addresses,
    pub(crate) created_ms: u64,
    pub(crate) last_ms: AtomicU64,
    pub(crate) flags: AtomicU32,
    pub(crate) db: AtomicU8,
    /// Index of the last command in the command table, plus 1; 0 before the first.
    pub(crate) last_command: AtomicU16,
    pub(crate) names: Mutex<Names>,
    pub(crate) channels: AtomicU32,
    pub(crate) patterns: AtomicU32,
    pub(crate) shard_channels: AtomicU32,
    /// Queued commands of a transaction, or -1 outside of one, as two's complement.
    pub(crate) multi: AtomicU32,
    pub(crate) watched: AtomicU32,
    /// Where tracked invalidations go, 0 for the client itself.
    pub(crate) redirect: AtomicU64,
    /// Bytes that wait to be parsed, and to be sent.
    pub(crate) query_bytes: AtomicUsize,
    pub(crate) reply_bytes: AtomicUsize,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    /// An [`Ending`].
    ending: AtomicU8,
    /// Whether the outbox holds something; saves its lock on the way of every command.
    has_mail: AtomicBool,
    outbox: Mutex<Outbox>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// A client that was just accepted.
    pub(crate) fn new(id: u64, addresses: Addresses, now_ms: u64) -> Self {
        Self {
            id,
            addresses,
            created_ms: now_ms,
            last_ms: AtomicU64::new(now_ms),
            flags: AtomicU32::new(0),
            db: AtomicU8::new(0),
            last_command: AtomicU16::new(0),
            names: Mutex::default(),
            channels: AtomicU32::new(0),
            patterns: AtomicU32::new(0),
            shard_channels: AtomicU32::new(0),
            multi: AtomicU32::new(u32::MAX),
            watched: AtomicU32::new(0),
            redirect: AtomicU64::new(0),
            query_bytes: AtomicUsize::new(0),
            reply_bytes: AtomicUsize::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            ending: AtomicU8::new(Ending::No as u8),
            has_mail: AtomicBool::new(false),
            outbox: Mutex::default(),
        }
    }

    /// Whether the connection has TLS.
    pub(crate) fn is_tls(&self, shared: &Shared) -> bool {
        self.addresses.local_address().is_some_and(|local| shared.endpoints.is_tls(local))
    }

    /// Names that the client gave itself.
    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.names)
    }

    /// Sets or clears public facts.
    pub(crate) fn set_flag(&self, bits: u32, on: bool) {
        if on {
            self.flags.fetch_or(bits, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!bits, Ordering::Relaxed);
        }
    }

    /// Whether a public fact holds.
    pub(crate) fn has_flag(&self, bits: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & bits != 0
    }

    /// Queues bytes that are not a reply (a message, an invalidation, a monitored command), and wakes the connection.
    /// Returns the bytes that now wait.
    pub(crate) fn push(&self, bytes: Bytes) -> usize {
        let mut outbox = lock(&self.outbox);
        outbox.bytes += bytes.len();
        outbox.queue.push_back(bytes);
        self.has_mail.store(true, Ordering::Release);
        if let Some(waker) = &outbox.waker {
            waker.wake_by_ref();
        }
        outbox.bytes
    }

    /// Wakes the connection, so that it looks at what was done to it.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &lock(&self.outbox).waker {
            waker.wake_by_ref();
        }
    }

    /// The connection wants to be woken by every push from now on.
    pub(crate) fn register(&self, waker: &Waker) {
        lock(&self.outbox).waker = Some(waker.clone());
    }

    /// Whether something was pushed and not yet taken.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Takes what was pushed.
    pub(crate) fn take_outbox(&self) -> VecDeque<Bytes> {
        let mut outbox = lock(&self.outbox);
        self.has_mail.store(false, Ordering::Release);
        outbox.bytes = 0;
        std::mem::take(&mut outbox.queue)
    }

    /// Bytes that were pushed and not yet taken.
    pub(crate) fn outbox_bytes(&self) -> usize {
        lock(&self.outbox).bytes
    }

    /// Bytes that the client takes, its buffers included.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let buffers = self.query_bytes.load(Ordering::Relaxed) + self.reply_bytes.load(Ordering::Relaxed);
        (size_of::<Self>() + buffers + self.outbox_bytes()) as u64
    }

    /// The connection is to be closed, without waiting for what is unsent.
    pub(crate) fn kill(&self) {
        self.end(Ending::Killed);
        self.wake();
    }

    /// The connection is to end like this, unless it is already to end sooner. It sees that when it is woken.
    pub(crate) fn end(&self, ending: Ending) {
        self.ending.fetch_max(ending as u8, Ordering::AcqRel);
    }

    /// Whether and how the connection is to end.
    #[inline]
    pub(crate) fn ending(&self) -> Ending {
        match self.ending.load(Ordering::Acquire) {
            0 => Ending::No,
            1 => Ending::Finishing,
            2 => Ending::Flushing,
            _ => Ending::Killed,
        }
    }

    /// Whether the connection is to be closed at once.
    #[inline]
    pub(crate) fn is_killed(&self) -> bool {
        self.ending() == Ending::Killed
    }
}

/// All clients by id.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    next_id: AtomicU64,
    connected: AtomicUsize,
    by_id: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    /// Registers a client under the next id.
    pub(crate) fn add(&self, addresses: Addresses, now_ms: u64) -> Arc<Client> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client::new(id, addresses, now_ms));
        lock(&self.by_id).insert(id, Arc::clone(&client));
        self.connected.fetch_add(1, Ordering::Relaxed);
        client
    }

    /// Forgets a client.
    pub(crate) fn remove(&self, id: u64) {
        if lock(&self.by_id).remove(&id).is_some() {
            self.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The client with this id.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Client>> {
        lock(&self.by_id).get(&id).cloned()
    }

    /// Clients that are connected.
    pub(crate) fn len(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }

    /// Closes clients, the one that takes most memory first, until all together take no more than `bytes_max`, and says how
    /// many. Those with `CLIENT NO-EVICT` count and stay.
    pub(crate) fn evict(&self, bytes_max: u64) -> u64 {
        let open = self.all().into_iter().filter(|client| !client.is_killed());
        let mut sizes: Vec<(u64, Arc<Client>)> = open.map(|client| (client.memory_bytes(), client)).collect();
        let mut sum: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
        if sum <= bytes_max {
            return 0;
        }
        sizes.retain(|(_, client)| !client.has_flag(flag::NO_EVICT));
        sizes.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut evicted = 0;
        for (bytes, client) in sizes {
            if sum <= bytes_max {
                break;
            }
            tracing::info!(
                id = client.id,
                peer = &*client.addresses.peer,
                bytes,
                "client evicted: maxmemory-clients"
            );
            client.kill();
            sum -= bytes;
            evicted += 1;
        }
        evicted
    }

    /// All clients, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        lock(&self.by_id).values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_clients_go_until_the_rest_fits() {
        let clients = Clients::default();
        let with = |bytes| {
            let client = clients.add(Addresses::default(), 0);
            client.query_bytes.store(bytes, Ordering::Relaxed);
            client
        };
        let [small, large, larger, exempt] = [1000, 50_000, 60_000, 70_000].map(with);
        exempt.set_flag(flag::NO_EVICT, true);
        let killed = || [&small, &large, &larger, &exempt].map(|client| client.is_killed());
        assert_eq!(clients.evict(200_000), 0);
        assert_eq!((clients.evict(150_000), killed()), (1, [false, false, true, false]));
        large.push(Bytes::from(vec![0; 40_000]));
        assert_eq!((clients.evict(100_000), killed()), (1, [false, true, true, false]));
        assert_eq!(
            (clients.evict(1000), killed()),
            (1, [true, true, true, false]),
            "it cannot fit, and tries"
        );
    }
}
