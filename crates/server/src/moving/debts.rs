//! What targets may have of keys that are here as well.
//!
//! Owns: which keys were sent and are not known to have been deleted here for good, and the file that says so after a crash. Does
//! **not** own sending (see [`super::courier`]).
//!
//! A source that is killed between the target's answer and its own deletion has the key again when it is back, and clients go on
//! writing it. The copy at the target is old by then, and only this file tells it from a value that somebody else put there: a
//! copy is replaced only if it is what was sent, byte for byte or by its digest. So nothing here is a promise: an entry too many
//! does no harm, and one that is lost leaves the decision to the operator, as with Redis.
//!
//! ```text
//! file: magic, record, record, ...      record: an entry (postcard)
//! ```

use crate::commands::digest_of_payload;
use crate::connection::unix_ms;
use crate::persistence::directory::read_all;
use crate::persistence::disk::{Disk, DiskFile, write_all};
use crate::shared::Shared;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use towline_cluster::key_slot;
use towline_store::changes::Changes;
use towline_store::keyspace::Keyspace;
use towline_store::stream::Piece;

/// The file, in `dir`.
const NAME: &str = "towline.moves";
/// The new content of the file, until it takes its name.
const NEW_NAME: &str = "towline.moves.new";
/// The first bytes of the file; the last one is the version.
const MAGIC: &[u8; 8] = b"TWLMOVE\x01";
/// More entries are forgotten, in the order of their places: far more keys than are under way at once.
const ENTRIES_MAX: usize = 64 << 10;
/// Above this, and twice what it was begun with, the file is written anew with what still counts.
const FILE_BYTES: u64 = 1 << 20;
/// A longer file is none of ours: keys have up to 512 MiB, but many such ones are not moved together.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A key at a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct There {
    pub(super) host: String,
    pub(super) port: u16,
    /// The database at the target.
    pub(super) target_db: i64,
    pub(super) key: Vec<u8>,
}

/// Values of one key that a target may have: of the last orders whose fate nobody knows.
const DIGESTS_MAX: usize = 4;

/// What is known of a key that was sent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Debt {
    /// The database here.
    db: u8,
    /// Of the values that were sent, the latest last, where nobody knows what became of them.
    digests: Vec<String>,
    /// Nobody knows yet what becomes of the value that is here.
    is_under_way: bool,
    /// The log holds the key's deletion up to there.
    #[serde(skip)]
    paid_at: Option<u64>,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Debts {
    live: BTreeMap<There, Debt>,
    journal: Option<Journal>,
}

#[derive(Debug)]
struct Journal {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    bytes: u64,
    /// What the file was begun with.
    begun_bytes: u64,
}

impl Debt {
    fn doubt(&mut self, digest: String) {
        self.is_under_way = false;
        self.digests.retain(|other| *other != digest);
        self.digests.push(digest);
        let over = self.digests.len().saturating_sub(DIGESTS_MAX);
        self.digests.drain(..over);
    }
}

impl Debts {
    /// Notes keys that are about to be sent, in the file as well if what is here is kept in a log; then it is on the device if
    /// `appendfsync` is `always`.
    ///
    /// # Errors
    /// The environment's fault; nothing may be sent.
    pub(super) fn send(
        &mut self,
        shared: &Shared,
        db: u8,
        keys: impl Iterator<Item = There>,
    ) -> io::Result<()> {
        let mut records = Vec::new();
        for there in keys {
            // What an earlier order left there still counts: the target may have either value.
            let debt = self.live.entry(there.clone()).or_default();
            (debt.db, debt.paid_at, debt.is_under_way) = (db, None, true);
            append(&mut records, &there, debt)?;
        }
        while self.live.len() > ENTRIES_MAX {
            self.live.pop_first();
        }
        let gate = &shared.persistence.gate;
        if !gate.is_promising() {
            return Ok(());
        }
        let written = self.journal(shared).and_then(|journal| {
            write_all(&mut *journal.file, &records)?;
            journal.bytes += records.len() as u64;
            if gate.is_strict() { journal.file.sync() } else { Ok(()) }
        });
        if written.is_err() {
            // What is in it now is unknown; the next one begins anew.
            self.journal = None;
        }
        written
    }

    fn journal(&mut self, shared: &Shared) -> io::Result<&mut Journal> {
        if self.journal.is_none() {
            let dir = PathBuf::from(&shared.config().dir);
            self.journal = Some(Journal::write(&shared.persistence.disk, &dir, &self.live)?);
        }
        Ok(self.journal.as_mut().expect("invariant: it was just made"))
    }

    /// The target has the key, and it was deleted here.
    pub(super) fn paid(&mut self, there: &There, position: u64) {
        if let Some(debt) = self.live.get_mut(there) {
            debt.paid_at = Some(position);
        }
    }

    /// The target did not take what was sent now; what is known from earlier stays.
    pub(super) fn refused(&mut self, there: &There) {
        if !self.is_owed(there) {
            self.live.remove(there);
        } else if let Some(debt) = self.live.get_mut(there) {
            debt.is_under_way = false;
        }
    }

    /// Nobody knows whether the target has what was sent, which has this digest.
    pub(super) fn doubt(&mut self, there: &There, digest: String) {
        if let Some(debt) = self.live.get_mut(there) {
            debt.doubt(digest);
        }
    }

    /// What the target has cannot be from here.
    pub(super) fn forget(&mut self, there: &There) {
        self.live.remove(there);
    }

    /// Whether the target may have the key by an earlier order.
    pub(super) fn is_owed(&self, there: &There) -> bool {
        self.live.get(there).is_some_and(|debt| !debt.digests.is_empty())
    }

    /// Whether an earlier order may have sent a value with this digest.
    pub(super) fn may_have_sent(&self, there: &There, digest: &String) -> bool {
        self.live.get(there).is_some_and(|debt| debt.digests.contains(digest))
    }

    /// Drops what is paid for good, and makes the file small if it is not.
    pub(super) fn tidy(&mut self, shared: &Shared) {
        let gate = &shared.persistence.gate;
        let (durable, is_promising) = (gate.durable(), gate.is_promising());
        self.live.retain(|_, debt| debt.paid_at.is_none_or(|at| at > durable && is_promising));
        let Some(journal) = &self.journal else { return };
        let has_grown = journal.bytes > FILE_BYTES.max(2 * journal.begun_bytes);
        let is_due = has_grown || self.live.is_empty() && journal.bytes > MAGIC.len() as u64;
        if is_due {
            let written = Journal::write(&journal.disk, &journal.dir, &self.live);
            // The old file says more than the new one would, and does no harm.
            self.journal = written.inspect_err(|error| tracing::warn!("cannot write '{NAME}': {error}")).ok();
        }
    }

    /// What the server before this one left. The data set is loaded, and no client has changed it yet: what is here of those keys
    /// now is what was sent.
    pub(super) fn recall(shared: &Shared) -> Self {
        let dir = PathBuf::from(&shared.config().dir);
        let disk = &shared.persistence.disk;
        let live = match read_all(&**disk, &dir.join(NAME), FILE_BYTES_MAX) {
            Ok(bytes) => entries(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                tracing::warn!(
                    "cannot read '{NAME}', so keys that were under way may be reported as busy: {error}"
                );
                return Self::default();
            }
        };
        let mut debts = Self::default();
        for (there, mut debt) in live {
            if debt.is_under_way
                && let Some(digest) = digest_here(shared, debt.db, &there.key)
            {
                debt.doubt(digest);
            }
            if !debt.digests.is_empty() {
                debts.live.insert(there, debt);
            }
        }
        let written = Journal::write(disk, &dir, &debts.live);
        debts.journal = written.inspect_err(|error| tracing::warn!("cannot write '{NAME}': {error}")).ok();
        if !debts.live.is_empty() {
            tracing::info!(
                "{} keys were on their way to other servers, which may have them too",
                debts.live.len()
            );
        }
        debts
    }
}

impl Journal {
    /// Puts a new file in place of the old one.
    fn write(disk: &Arc<dyn Disk>, dir: &Path, live: &BTreeMap<There, Debt>) -> io::Result<Self> {
        let mut content = MAGIC.to_vec();
        live.iter().try_for_each(|(there, debt)| append(&mut content, there, debt))?;
        let new = dir.join(NEW_NAME);
        let mut file = disk.create(&new)?;
        write_all(&mut *file, &content)?;
        file.sync()?;
        disk.rename(&new, &dir.join(NAME))?;
        disk.sync_dir(dir)?;
        let bytes = content.len() as u64;
        Ok(Self { dir: dir.to_owned(), disk: Arc::clone(disk), file, bytes, begun_bytes: bytes })
    }
}

fn append(records: &mut Vec<u8>, there: &There, debt: &Debt) -> io::Result<()> {
    records.extend_from_slice(&postcard::to_stdvec(&(there, debt)).map_err(io::Error::other)?);
    Ok(())
}

/// The entries of a file, up to where a crash cut it short.
fn entries(bytes: &[u8]) -> BTreeMap<There, Debt> {
    let mut live = BTreeMap::new();
    let mut rest = bytes.strip_prefix(MAGIC).unwrap_or_default();
    while let Ok(((there, debt), behind)) = postcard::take_from_bytes(rest) {
        live.insert(there, debt);
        rest = behind;
    }
    live
}

fn digest_here(shared: &Shared, db: u8, key: &[u8]) -> Option<String> {
    let (settings, mut changes, now_ms) = (shared.config().settings(), Changes::new(0), unix_ms());
    let ks = Keyspace::hold(&shared.store, [key_slot(key)], &settings, &mut changes, db, now_ms);
    let mut picture = ks.picture(key, Piece::default())?;
    while !picture.is_complete() {
        picture.make_room();
        match picture.needs_slot() {
            true => ks.picture_more(key, &mut picture),
            false => picture.advance(),
        }
    }
    digest_of_payload(&picture.into_payload(), now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::persistence::memory_disk::{MemoryDisk, SharedDisk};
    use crate::testing::{START_MS, Server};

    fn server(disk: &Arc<MemoryDisk>) -> Server {
        let config = Config { workers: 1, dir: "/data".into(), ..Config::default() };
        let server = Server::with_shared(Shared::new(
            config,
            Arc::new(SharedDisk(Arc::clone(disk))),
            "0".repeat(40),
            START_MS,
        ));
        let gate = &server.local.shared.persistence.gate;
        gate.set_always(true);
        gate.set_promising(true);
        server
    }

    fn there(key: &str) -> There {
        There { host: "h".into(), port: 1, target_db: 0, key: key.into() }
    }

    fn send(debts: &mut Debts, server: &Server, keys: &[&str]) -> io::Result<()> {
        debts.send(&server.local.shared, 0, keys.iter().map(|key| there(key)))
    }

    /// What a server would know that starts now on what is on the device, with these commands as its data.
    fn after_a_crash(disk: &Arc<MemoryDisk>, lines: &[&str]) -> Debts {
        let mut server = server(disk);
        for line in lines {
            server.line(line);
        }
        Debts::recall(&server.local.shared)
    }

    #[test]
    fn what_was_sent_is_known_after_a_crash_until_its_deletion_is_durable() {
        let disk = MemoryDisk::new();
        let server = server(&disk);
        let shared = &server.local.shared;
        let mut debts = Debts::default();
        assert!(after_a_crash(&disk, &["SET a 1"]).live.is_empty());
        send(&mut debts, &server, &["a", "b", "c"]).unwrap();
        assert!(!debts.is_owed(&there("a")), "it is under way");
        let synced = disk.content("/data/towline.moves").synced;
        assert_eq!(synced, disk.content("/data/towline.moves").bytes, "always");
        assert_eq!(entries(&synced).len(), 3);

        debts.paid(&there("a"), 10);
        debts.refused(&there("b"));
        debts.doubt(&there("c"), "digest".into());
        shared.persistence.gate.set_durable(9);
        debts.tidy(shared);
        let known = after_a_crash(&disk, &["SET a 1", "SET c 3"]);
        assert!(known.is_owed(&there("a")), "its deletion may not be durable");
        assert!(!known.is_owed(&there("b")), "it is not here any more");
        let first = known.live[&there("a")].digests.clone();
        // The second crash: the value here is another one by now, and what was sent is still what was sent.
        let mut known = after_a_crash(&disk, &["SET a 2", "SET c 3"]);
        assert_eq!(known.live[&there("a")].digests, first);
        // It is sent again, and there is a third one: the target may have either value.
        send(&mut known, &server, &["a"]).unwrap();
        let known = after_a_crash(&disk, &["SET a 2"]);
        let both = &known.live[&there("a")].digests;
        assert!(both.len() == 2 && known.may_have_sent(&there("a"), &first[0]), "{both:?}");

        shared.persistence.gate.set_durable(10);
        debts.tidy(shared);
        assert_eq!(debts.live.len(), 1);
        debts.forget(&there("c"));
        debts.tidy(shared);
        assert_eq!(disk.content("/data/towline.moves").bytes, MAGIC);
        assert!(after_a_crash(&disk, &["SET a 1"]).live.is_empty());
    }

    #[test]
    fn what_an_earlier_order_left_still_counts() {
        let server = server(&MemoryDisk::new());
        let mut debts = Debts::default();
        send(&mut debts, &server, &["k"]).unwrap();
        debts.doubt(&there("k"), "digest".into());
        send(&mut debts, &server, &["k"]).unwrap();
        debts.refused(&there("k"));
        assert!(debts.may_have_sent(&there("k"), &"digest".into()));
        for number in 0..DIGESTS_MAX {
            debts.doubt(&there("k"), number.to_string());
            debts.doubt(&there("k"), number.to_string());
        }
        assert_eq!(debts.live[&there("k")].digests, ["0", "1", "2", "3"], "the oldest is forgotten");
        debts.paid(&there("k"), 0);
        debts.tidy(&server.local.shared);
        assert!(debts.live.is_empty());
    }

    #[test]
    fn nothing_is_sent_that_cannot_be_noted_and_a_torn_end_is_left_out() {
        let disk = MemoryDisk::new();
        let server = server(&disk);
        let mut debts = Debts::default();
        let mut failures = 0;
        // Each operation of the file fails once.
        for operation in 0.. {
            disk.fail(disk.operations() + operation..disk.operations() + operation + 1);
            debts.journal = None;
            match send(&mut debts, &server, &["k"]) {
                Err(_) => failures += 1,
                Ok(()) => break,
            }
        }
        assert!(failures >= 4, "{failures}: two writes and two syncs");
        disk.fail_all(false);
        let bytes = disk.content("/data/towline.moves").bytes;
        send(&mut debts, &server, &["l"]).unwrap();
        let longer = disk.content("/data/towline.moves").bytes;
        for end in 0..longer.len() {
            let is_known = |key| entries(&longer[..end]).contains_key(&there(key));
            assert!(!is_known("l"), "{end}");
            assert!(is_known("k") || end < bytes.len(), "{end}");
        }
        assert!(entries(b"something else").is_empty());
    }

    #[test]
    fn entries_and_the_file_are_bounded() {
        let disk = MemoryDisk::new();
        let server = server(&disk);
        let mut debts = Debts::default();
        let names: Vec<String> = (0..ENTRIES_MAX + 10).map(|number| format!("{number:040}")).collect();
        for part in names.chunks(1000) {
            let part: Vec<&str> = part.iter().map(String::as_str).collect();
            send(&mut debts, &server, &part).unwrap();
        }
        assert_eq!(debts.live.len(), ENTRIES_MAX);
        assert!(disk.content("/data/towline.moves").bytes.len() as u64 > FILE_BYTES);
        names.iter().for_each(|name| debts.paid(&there(name), 0));
        debts.tidy(&server.local.shared);
        assert_eq!(disk.content("/data/towline.moves").bytes, MAGIC);
    }

    #[test]
    fn without_a_log_there_is_no_file() {
        let disk = MemoryDisk::new();
        let server = server(&disk);
        server.local.shared.persistence.gate.set_promising(false);
        let mut debts = Debts::default();
        send(&mut debts, &server, &["k"]).unwrap();
        debts.paid(&there("k"), 7);
        debts.tidy(&server.local.shared);
        assert!(debts.live.is_empty() && disk.operations() == 0);
    }
}
