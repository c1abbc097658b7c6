//! One order: keys to another server, window by window.
//!
//! Owns: what is sent when, what the answers mean, and finding out what the target has when there is no answer. Does **not**
//! own the connection (see [`super::peer`]) nor keys here (see [`super::picture`]).
//!
//! A key is deleted here when it is known that the target has it, and never otherwise. When a connection breaks, or is silent
//! for too long, after all of a key was sent, the target is asked for the key's value over another connection. If nobody can
//! be asked, the key stays, the client is told, and it is remembered what was sent: when the key is moved there again and is
//! found to be there already, as it was sent, then it replaces that.

use super::Order;
use super::debts::There;
use super::peer::{Make, Peer, PeerError, Place};
use super::picture::{Fate, Found, Parcel, begin, finish};
use super::pool::Pool;
use crate::blocking::Waiter;
use crate::commands::digest_of_payload;
use crate::connection::unix_ms;
use crate::execute::Local;
use crate::failpoint;
use crate::shared::Shared;
use bytes::Bytes;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use towline_rdb::{Compression, HashTtlForm, Limits, RdbType, decode_dump, encode_dump};
use towline_resp::frame::Frame;
use towline_resp::writer::Writer;

/// A window ends at so many keys, or at so many bytes of payloads: then their answers are waited for. It bounds how many keys
/// are marked, and the memory for payloads beside that of one value.
const WINDOW_KEYS: usize = 256;
const WINDOW_BYTES: usize = 1 << 20;
/// Small requests are written together up to this.
const WRITE_TOGETHER_BYTES: usize = 64 << 10;
/// How often a target that does not have a key is asked once more, and after which time: it may not have executed yet what
/// it had read.
const ASKS_MAX: usize = 3;
const ASK_GAP: Duration = Duration::from_millis(50);
/// How long asking waits for each answer at most: a target that was silent for as long as the order allows is not asked for as
/// long again, since whoever wants to write the key waits all the while.
const ASK_TIMEOUT_MAX: Duration = Duration::from_secs(5);

/// Executes orders; all copies share what they have.
#[derive(Debug, Clone)]
pub(super) struct Courier {
    pub(super) shared: Arc<Shared>,
    pub(super) local: Rc<RefCell<Local>>,
    pub(super) pool: Rc<RefCell<Pool>>,
}

impl Courier {
    /// Executes an order and answers who waits for it.
    pub(super) async fn run(&self, order: Order, waiter: &Waiter) {
        let mut trip =
            Trip { courier: self, order: &order, peer: None, error: None, position: 0, has_sent: false };
        trip.run().await;
        let Trip { error, position, has_sent, peer, .. } = trip;
        if let Some(peer) = peer {
            self.pool.borrow_mut().put(peer, Instant::now());
            self.count_idle();
        }
        failpoint::pass("migrate-done");
        let mut out = Writer::new(waiter.proto());
        match error {
            Some(error) => {
                self.shared.stats.error_reply(&error);
                out.error(error);
            }
            None if has_sent => out.ok(),
            None => out.simple("NOKEY"),
        }
        // A client that has gone meanwhile changes nothing of what was done.
        waiter.end_at(Bytes::from(out.take().0), position);
    }

    /// Closes connections that nobody used for a while.
    pub(super) fn expire(&self, now: Instant) {
        self.pool.borrow_mut().expire(now);
        self.count_idle();
        self.shared.moves.debts().tidy(&self.shared);
    }

    fn count_idle(&self) {
        self.shared.moves.idle_sockets.store(self.pool.borrow().len(), Ordering::Relaxed);
    }
}

/// An order under way.
struct Trip<'a> {
    courier: &'a Courier,
    order: &'a Order,
    peer: Option<Peer>,
    /// The first error: it is the answer, and what can be moved all the same is.
    error: Option<String>,
    /// The log holds the deletions up to there.
    position: u64,
    has_sent: bool,
}

impl Trip<'_> {
    async fn run(&mut self) {
        let mut keys: VecDeque<&[u8]> = self.order.keys.iter().map(Vec::as_slice).collect();
        loop {
            let window = self.fill(&mut keys).await;
            if window.is_empty() {
                return;
            }
            self.has_sent = true;
            failpoint::pass("migrate-marked");
            if let Err(error) = self.deliver(window).await {
                self.peer = None;
                self.note(error);
                return;
            }
        }
    }

    fn note(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// The next keys that are there. One that is on another way is waited for with empty hands only, so that no two orders wait
    /// for each other.
    async fn fill(&mut self, keys: &mut VecDeque<&[u8]>) -> Vec<Parcel> {
        let (mut window, mut bytes) = (Vec::new(), 0);
        while window.len() < WINDOW_KEYS
            && bytes < WINDOW_BYTES
            && let Some(&key) = keys.front()
        {
            let found = begin(&mut self.courier.local.borrow_mut(), self.order.db, key);
            let parcel = match found {
                Found::Gone => None,
                Found::Elsewhere(parking) => {
                    if window.is_empty() {
                        parking.over().await;
                        continue;
                    }
                    break;
                }
                Found::Begun(begun) => {
                    let shared = Arc::clone(&self.courier.shared);
                    let settings = Arc::clone(&self.courier.local.borrow().settings);
                    if begun.is_small() {
                        Some(begun.complete(&shared, &settings))
                    } else {
                        // A thread that panicked is a bug, whose message was printed; the mark stays, so nothing is lost.
                        spawn_blocking(move || begun.complete(&shared, &settings)).await.ok()
                    }
                }
            };
            keys.pop_front();
            if let Some(parcel) = parcel {
                bytes += parcel.payload.len();
                window.push(parcel);
            }
        }
        self.settle(&mut window);
        window
    }

    /// Ends the way of those whose fate is known. The others stay in the window.
    fn settle(&mut self, window: &mut Vec<Parcel>) {
        let is_known = |parcel: &mut Parcel| !matches!(parcel.fate, Fate::Unsent | Fate::Sent | Fate::Owed);
        let known: Vec<Parcel> = window.extract_if(.., is_known).collect();
        let fates: Vec<(There, bool)> = match self.order.copies {
            true => Vec::new(),
            false => known.iter().map(|one| (self.there(&one.key), one.fate == Fate::Moved)).collect(),
        };
        let position = finish(&mut self.courier.local.borrow_mut(), self.order.db, known, self.order.copies);
        self.position = self.position.max(position);
        let mut debts = self.courier.shared.moves.debts();
        for (there, has_moved) in fates {
            match has_moved {
                true => debts.paid(&there, position),
                false => debts.refused(&there),
            }
        }
    }

    /// Sends a window and ends the way of all its keys. `Err` if nothing more can be sent.
    async fn deliver(&mut self, mut window: Vec<Parcel>) -> Result<(), String> {
        let mut unknown = Vec::new();
        let mut result = self.send(&mut window).await;
        if let Err(failure) = &result {
            let may_retry = failure.may_retry;
            self.find_out(&mut window, &mut unknown).await;
            self.settle(&mut window);
            if may_retry {
                // The connection was an old one, which the target had closed: nothing is wrong with a new one.
                result = self.send(&mut window).await;
                if result.is_err() {
                    self.find_out(&mut window, &mut unknown).await;
                }
            }
        }
        window.iter_mut().for_each(|parcel| parcel.fate = Fate::Stays);
        self.settle(&mut window);
        result.map_err(|Failure { error, .. }| match unknown.first() {
            None => error.to_string(),
            Some(first) => format!(
                "{error}; {} of the keys may be at the target as well, the first is '{first}': they stay here, and moving \
                 them there again sets that right",
                unknown.len()
            ),
        })
    }

    /// Sends what is unsent, and reads the answers.
    async fn send(&mut self, window: &mut Vec<Parcel>) -> Result<(), Failure> {
        if window.is_empty() {
            return Ok(());
        }
        let mut peer = match self.peer.take() {
            Some(peer) => peer,
            None => self.peer().await.map_err(|error| Failure { error, may_retry: false })?,
        };
        match self.exchange(&mut peer, window).await {
            Ok(()) => {
                peer.is_proven = true;
                self.peer = Some(peer);
                Ok(())
            }
            Err(error) => Err(Failure { may_retry: !peer.is_proven && error.is_loss(), error }),
        }
    }

    fn place(&self) -> Place {
        let Order { host, port, login, .. } = self.order;
        Place { host: host.clone(), port: *port, login: login.clone() }
    }

    /// A connection: one that was kept, or a new one.
    async fn peer(&self) -> Result<Peer, PeerError> {
        let place = self.place();
        let kept = self.courier.pool.borrow_mut().take(&place);
        self.courier.count_idle();
        if let Some(mut peer) = kept.filter(|peer| !peer.is_stale()) {
            peer.set_timeout(self.order.timeout);
            peer.is_proven = false;
            return Ok(peer);
        }
        Peer::connect(place, self.order.timeout).await
    }

    async fn exchange(&mut self, peer: &mut Peer, window: &mut Vec<Parcel>) -> Result<(), PeerError> {
        peer.select(self.order.target_db).await?;
        self.note_sending(window)?;
        self.write_all(peer, window).await?;
        failpoint::pass("migrate-sent");
        let mut at = 0;
        while at < window.len() {
            if window[at].fate != Fate::Sent {
                at += 1;
                continue;
            }
            match peer.answer().await? {
                Ok(_) => window[at].fate = Fate::Moved,
                Err(text) => self.refused(&mut window[at], text),
            }
            peer.is_proven = true;
            at += 1;
            failpoint::pass("migrate-answered");
            if !peer.has_answer() {
                // What is known by now is ended, before anybody waits for more.
                self.settle(window);
                at = 0;
            }
        }
        let is_owed = |parcel: &&mut Parcel| parcel.fate == Fate::Owed;
        for parcel in window.iter_mut().filter(is_owed) {
            self.pay(peer, parcel).await?;
        }
        self.settle(window);
        Ok(())
    }

    fn there(&self, key: &[u8]) -> There {
        let Order { host, port, target_db, .. } = self.order;
        There { host: host.clone(), port: *port, target_db: *target_db, key: key.to_vec() }
    }

    /// Notes what is about to be sent, so that it is known after a crash.
    fn note_sending(&self, window: &[Parcel]) -> Result<(), PeerError> {
        if self.order.copies {
            return Ok(());
        }
        let unsent = window.iter().filter(|parcel| parcel.fate == Fate::Unsent);
        let keys = unsent.map(|parcel| self.there(&parcel.key));
        let shared = &self.courier.shared;
        shared
            .moves
            .debts()
            .send(shared, self.order.db, keys)
            .map_err(|error| PeerError::Unnoted(error.to_string()))
    }

    fn refused(&mut self, parcel: &mut Parcel, text: String) {
        if text.starts_with("BUSYKEY") && self.courier.shared.moves.debts().is_owed(&self.there(&parcel.key))
        {
            parcel.fate = Fate::Owed;
        } else {
            parcel.fate = Fate::Stays;
            self.note(PeerError::Refused(text).to_string());
        }
    }

    /// The target has a key that an earlier order may have sent there: if its value is what was sent then, or is the key's
    /// own, nothing is lost by replacing it.
    async fn pay(&mut self, peer: &mut Peer, parcel: &mut Parcel) -> Result<(), PeerError> {
        let there = self.there(&parcel.key);
        let found = self.digest_there(peer, &parcel.key).await?;
        parcel.fate = Fate::Stays;
        let may_have_sent = found
            .as_ref()
            .is_some_and(|found| self.courier.shared.moves.debts().may_have_sent(&there, found));
        if may_have_sent || found.is_some() && found == digest(&parcel.payload).await {
            let mut head = Vec::new();
            self.write_head(&mut head, parcel, peer.make(), true);
            peer.write(&head).await?;
            peer.write(&parcel.payload).await?;
            let tail = self.tail(parcel, peer.make(), true);
            peer.write(&tail).await?;
            parcel.fate = Fate::Sent;
            match peer.answer().await? {
                Ok(_) => {
                    parcel.fate = Fate::Moved;
                    return Ok(());
                }
                Err(text) => {
                    parcel.fate = Fate::Stays;
                    self.note(PeerError::Refused(text).to_string());
                }
            }
        } else {
            self.courier.shared.moves.debts().forget(&there);
            self.note(PeerError::Refused(BUSY.into()).to_string());
        }
        Ok(())
    }

    /// Writes the requests for all that is unsent; small ones together.
    async fn write_all(&self, peer: &mut Peer, window: &mut [Parcel]) -> Result<(), PeerError> {
        let (mut together, mut first) = (Vec::new(), 0);
        for at in 0..window.len() {
            if window[at].fate != Fate::Unsent {
                continue;
            }
            if window[at].expires_at_ms.is_some_and(|expires_at_ms| expires_at_ms <= unix_ms()) {
                window[at].fate = Fate::Stays;
                continue;
            }
            self.adapt(&mut window[at], peer.make()).await;
            let parcel = &window[at];
            self.write_head(&mut together, parcel, peer.make(), self.order.replaces);
            if parcel.payload.len() < WRITE_TOGETHER_BYTES {
                together.extend_from_slice(&parcel.payload);
            } else {
                flush(peer, &mut together, &mut window[first..at]).await?;
                peer.write(&window[at].payload).await?;
                first = at;
            }
            let tail = self.tail(&window[at], peer.make(), self.order.replaces);
            together.extend_from_slice(&tail);
            if together.len() >= WRITE_TOGETHER_BYTES {
                flush(peer, &mut together, &mut window[first..=at]).await?;
                first = at + 1;
            }
        }
        flush(peer, &mut together, &mut window[first..]).await
    }

    /// Valkey does not read Redis's form of a hash with fields that expire, and has one of its own.
    async fn adapt(&self, parcel: &mut Parcel, make: Make) {
        if make != Make::Valkey || parcel.payload.first() != Some(&RdbType::HashMetadata.byte()) {
            return;
        }
        let payload = Arc::clone(&parcel.payload);
        let limits = self.limits();
        let adapted = spawn_blocking(move || {
            let object = decode_dump(&payload, limits).ok()?;
            Some(encode_dump(&object, HashTtlForm::Valkey, Compression::Off))
        });
        if let Ok(Some(adapted)) = adapted.await {
            parcel.payload = Arc::new(adapted);
        }
    }

    fn limits(&self) -> Limits {
        let string_bytes_max = self.courier.shared.config().proto_max_bulk_len;
        Limits { string_bytes_max, ..Limits::default() }
    }

    /// The request up to the payload's first byte. Between our own servers the expiry is a point in time, so that it does not
    /// depend on how long the way takes; others are told what is left of it, as their own `MIGRATE` does.
    fn write_head(&self, out: &mut Vec<u8>, parcel: &Parcel, make: Make, replaces: bool) {
        let verb: &[u8] = if self.courier.shared.cluster.is_some() { b"RESTORE-ASKING" } else { b"RESTORE" };
        let ttl = match (parcel.expires_at_ms, make) {
            (None, _) => 0,
            (Some(at), Make::Towline) => at,
            (Some(at), Make::Valkey | Make::Redis) => at.saturating_sub(unix_ms()).max(1),
        };
        let count = 4 + self.options(parcel, make, replaces).len();
        out.extend_from_slice(format!("*{count}\r\n").as_bytes());
        for arg in [verb, &parcel.key, ttl.to_string().as_bytes()] {
            write_bulk(out, arg);
        }
        out.extend_from_slice(format!("${}\r\n", parcel.payload.len()).as_bytes());
    }

    /// The request behind the payload's last byte.
    fn tail(&self, parcel: &Parcel, make: Make, replaces: bool) -> Vec<u8> {
        let mut out = b"\r\n".to_vec();
        self.options(parcel, make, replaces)
            .iter()
            .for_each(|option| write_bulk(&mut out, option.as_bytes()));
        out
    }

    fn options(&self, parcel: &Parcel, make: Make, replaces: bool) -> SmallVec<[String; 4]> {
        let mut options = SmallVec::new();
        if replaces {
            options.push("REPLACE".to_owned());
        }
        if make == Make::Towline {
            if parcel.expires_at_ms.is_some() {
                options.push("ABSTTL".to_owned());
            }
            let (settings, now_ms) = (Arc::clone(&self.courier.local.borrow().settings), unix_ms());
            let (name, number) = if settings.is_lfu() {
                ("FREQ", u64::from(settings.lfu_counter(parcel.access, now_ms).min(255)))
            } else {
                ("IDLETIME", settings.idle_s(parcel.access, now_ms))
            };
            if number > 0 {
                options.extend([name.to_owned(), number.to_string()]);
            }
        }
        options
    }

    /// Asks the target, over a connection of its own, for all keys that it may have.
    async fn find_out(&mut self, window: &mut [Parcel], unknown: &mut Vec<String>) {
        self.peer = None;
        if !window.iter().any(|parcel| parcel.fate == Fate::Sent) {
            return;
        }
        let limit = self.order.timeout.min(ASK_TIMEOUT_MAX);
        let mut peer = match Peer::connect(self.place(), limit).await {
            Ok(mut peer) => peer.select(self.order.target_db).await.ok().map(|()| peer),
            Err(_) => None,
        };
        for parcel in window.iter_mut().filter(|parcel| parcel.fate == Fate::Sent) {
            parcel.fate = match &mut peer {
                None => Fate::Unknown,
                Some(asked) => match self.find_out_one(asked, parcel).await {
                    Ok(fate) => fate,
                    Err(_) => {
                        peer = None;
                        Fate::Unknown
                    }
                },
            };
            if parcel.fate == Fate::Unknown {
                unknown.push(String::from_utf8_lossy(&parcel.key).into_owned());
            }
            // Who does not have it yet may still execute what it had read.
            if matches!(parcel.fate, Fate::Unknown | Fate::Unsent)
                && !self.order.copies
                && let Some(digest) = digest(&parcel.payload).await
            {
                self.courier.shared.moves.debts().doubt(&self.there(&parcel.key), digest);
            }
        }
        if let Some(peer) = &mut peer {
            peer.set_timeout(self.order.timeout);
        }
        self.peer = peer;
    }

    /// What became of one key that was sent.
    async fn find_out_one(&self, peer: &mut Peer, parcel: &Parcel) -> Result<Fate, PeerError> {
        let sent = digest(&parcel.payload).await;
        for asks in 1.. {
            match self.digest_there(peer, &parcel.key).await? {
                Some(found) if Some(&found) == sent.as_ref() => return Ok(Fate::Moved),
                Some(_) => return Ok(Fate::Stays),
                None if asks == ASKS_MAX => break,
                None => tokio::time::sleep(ASK_GAP).await,
            }
        }
        Ok(Fate::Unsent)
    }

    /// The digest of the value that the target has under this key; `None` if it has none.
    async fn digest_there(&self, peer: &mut Peer, key: &[u8]) -> Result<Option<String>, PeerError> {
        if self.courier.shared.cluster.is_some() {
            peer.ask(&[b"ASKING"]).await?;
        }
        match peer.ask(&[b"DUMP", key]).await? {
            Frame::Bulk(payload) => {
                Ok(digest(&Arc::new(payload.to_vec())).await.or_else(|| Some(String::new())))
            }
            _ => Ok(None),
        }
    }
}

/// The target's words, when we say them for it.
const BUSY: &str = "BUSYKEY Target key name already exists.";

/// Why a window could not be sent to its end.
struct Failure {
    error: PeerError,
    /// Whether a new connection may do better.
    may_retry: bool,
}

/// Writes what is together: from then on, the target may have those keys.
async fn flush(peer: &mut Peer, together: &mut Vec<u8>, window: &mut [Parcel]) -> Result<(), PeerError> {
    let unsent = window.iter_mut().filter(|parcel| parcel.fate == Fate::Unsent);
    // If writing fails, it is not known which of them the system took.
    unsent.for_each(|parcel| parcel.fate = Fate::Sent);
    peer.write(together).await?;
    together.clear();
    Ok(())
}

fn write_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The digest of a payload's value: equal for equal values, however they are encoded. `None` for one that is not read here.
async fn digest(payload: &Arc<Vec<u8>>) -> Option<String> {
    let payload = Arc::clone(payload);
    spawn_blocking(move || digest_of_payload(&payload, unix_ms())).await.ok().flatten()
}
