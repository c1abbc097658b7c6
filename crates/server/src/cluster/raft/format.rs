//! The bytes of a Raft group's files.
//!
//! Owns: the log's frames and records, the snapshot's frame, and what is a torn tail as opposed to damage. Does **not** own files.
//!
//! ```text
//! log:      magic, frame, frame, ...          frame: marker, length, CRC-32C, records (postcard)
//! snapshot: magic, frame                      all numbers little-endian
//! ```
//!
//! A frame is written only after the one before it was synced. So a frame that is not whole, with a whole one behind it, is damage
//! of what was promised to others; with none behind it, it is a write that a crash has cut short, and nothing was promised.

use super::types::{Entry, LogId, SnapshotMeta, Vote};
use crc_fast::CrcAlgorithm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use towline_cluster_proto::{Inconsistent, Metadata};

/// The first bytes of a log; the last one is the version.
pub(super) const LOG_MAGIC: &[u8; 8] = b"TWLRLOG\x01";
/// The first bytes of a snapshot; the last one is the version.
pub(super) const SNAPSHOT_MAGIC: &[u8; 8] = b"TWLRSNP\x01";
/// The first bytes of a frame, by which one is found behind damage.
const MARKER: &[u8; 4] = b"\xf5TWf";
const HEADER_BYTES: usize = 12;

/// One thing that the log says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Record {
    /// Whom the node follows from here on.
    Vote(Vote),
    /// An entry, in place of one that had its index.
    Entry(Entry),
    /// Entries from this index on are gone.
    Truncate(u64),
    /// Entries up to this one are in a snapshot and gone.
    Purge(LogId),
    /// Entries up to this one are committed.
    Committed(LogId),
}

/// What all records of a log come to.
#[derive(Debug, Clone, Default)]
pub(super) struct LogState {
    /// Whom the node follows.
    pub(super) vote: Option<Vote>,
    /// The last entry that is gone since it is in a snapshot.
    pub(super) purged: Option<LogId>,
    /// The last entry that is known to be committed, as far as it was written down.
    pub(super) committed: Option<LogId>,
    /// The entries that are left.
    pub(super) entries: BTreeMap<u64, Entry>,
}

impl LogState {
    /// Takes a record in.
    pub(super) fn take(&mut self, record: Record) {
        match record {
            Record::Vote(vote) => self.vote = Some(vote),
            Record::Entry(entry) => _ = self.entries.insert(entry.log_id.index, entry),
            Record::Truncate(from) => _ = self.entries.split_off(&from),
            Record::Purge(to) => {
                self.entries = self.entries.split_off(&to.index.saturating_add(1));
                self.purged = self.purged.max(Some(to));
            }
            Record::Committed(to) => self.committed = Some(to),
        }
    }

    /// The last entry, here or in a snapshot.
    pub(super) fn last(&self) -> Option<LogId> {
        self.entries.last_key_value().map(|(_, entry)| entry.log_id).or(self.purged)
    }

    /// The whole of it as the content of a new log.
    pub(super) fn to_file(&self) -> Result<Vec<u8>, postcard::Error> {
        let mut records = Vec::new();
        if let Some(vote) = self.vote {
            encode(&Record::Vote(vote), &mut records)?;
        }
        if let Some(purged) = self.purged {
            encode(&Record::Purge(purged), &mut records)?;
        }
        for entry in self.entries.values() {
            encode(&Record::Entry(entry.clone()), &mut records)?;
        }
        if let Some(committed) = self.committed {
            encode(&Record::Committed(committed), &mut records)?;
        }
        let mut file = LOG_MAGIC.to_vec();
        frame(&records, &mut file);
        Ok(file)
    }
}

/// Appends a record's bytes.
pub(super) fn encode(record: &Record, to: &mut Vec<u8>) -> Result<(), postcard::Error> {
    to.extend_from_slice(&postcard::to_stdvec(record)?);
    Ok(())
}

/// Appends a frame around these bytes.
///
/// # Panics
/// The bytes are 4 GiB or more; the writer bounds its batches far below.
pub(super) fn frame(payload: &[u8], to: &mut Vec<u8>) {
    let length = u32::try_from(payload.len()).expect("invariant: batches are bounded far below 4 GiB");
    to.extend_from_slice(MARKER);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(&crc(length, payload).to_le_bytes());
    to.extend_from_slice(payload);
}

fn crc(length: u32, payload: &[u8]) -> u32 {
    let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&length.to_le_bytes());
    digest.update(payload);
    digest.finalize() as u32
}

/// The payload of the frame at the start of `bytes`, if it is whole.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(MARKER)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length);
    let payload = rest.get(..usize::try_from(length).ok()?)?;
    (crc(length, payload) == u32::from_le_bytes(*sum)).then_some(payload)
}

/// A file that is not what a node has left there. The environment's fault; trying again is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    /// It does not begin as such a file.
    #[error("it is no file of this kind, or of a newer version")]
    Foreign,
    /// Bytes in the middle are not what was written.
    #[error("its bytes at {at} are not what was written, and what follows is")]
    Middle {
        /// Where.
        at: u64,
    },
    /// What it says cannot be: whoever wrote it was broken, or somebody has changed it.
    #[error("{0}")]
    Inconsistent(Inconsistent),
    /// A whole frame holds something else than records.
    #[error("its frame at {at} holds what this version does not know")]
    Content {
        /// Where.
        at: u64,
    },
}

/// Reads a log. Returns what it comes to, and how many of its bytes are good: the rest is a torn tail.
pub(super) fn read_log(bytes: &[u8]) -> Result<(LogState, usize), Damage> {
    let mut state = LogState::default();
    if bytes.len() < LOG_MAGIC.len() && LOG_MAGIC.starts_with(bytes) {
        return Ok((state, 0));
    }
    if !bytes.starts_with(LOG_MAGIC) {
        return Err(Damage::Foreign);
    }
    let mut at = LOG_MAGIC.len();
    while at < bytes.len() {
        let Some(mut payload) = whole(&bytes[at..]) else {
            let mut behind = memchr::memmem::find_iter(&bytes[at + 1..], MARKER);
            if behind.any(|offset| whole(&bytes[at + 1 + offset..]).is_some()) {
                return Err(Damage::Middle { at: at as u64 });
            }
            break;
        };
        let end = at + HEADER_BYTES + payload.len();
        while !payload.is_empty() {
            let (record, rest) =
                postcard::take_from_bytes(payload).map_err(|_| Damage::Content { at: at as u64 })?;
            state.take(record);
            payload = rest;
        }
        at = end;
    }
    Ok((state, at))
}

/// The content of a snapshot's file.
pub(super) fn snapshot_file(meta: &SnapshotMeta, metadata: &Metadata) -> Result<Vec<u8>, postcard::Error> {
    let mut file = SNAPSHOT_MAGIC.to_vec();
    frame(&postcard::to_stdvec(&(meta, metadata))?, &mut file);
    Ok(file)
}

/// Reads a snapshot. It was put in place as a whole, so anything else than that is damage.
pub(super) fn read_snapshot(bytes: &[u8]) -> Result<(SnapshotMeta, Metadata), Damage> {
    let frame = bytes.strip_prefix(SNAPSHOT_MAGIC).ok_or(Damage::Foreign)?;
    let at = SNAPSHOT_MAGIC.len() as u64;
    let payload = whole(frame).ok_or(Damage::Middle { at })?;
    let (meta, metadata): (SnapshotMeta, Metadata) =
        postcard::from_bytes(payload).map_err(|_| Damage::Content { at })?;
    metadata.check().map_err(Damage::Inconsistent)?;
    Ok((meta, metadata))
}

/// The metadata of a cluster with slots, with an epoch that was never given.
#[cfg(test)]
pub(super) fn inconsistent(metadata: &Metadata) -> Metadata {
    let mut metadata = metadata.clone();
    let node = *metadata.nodes().keys().next().unwrap();
    metadata.apply(&towline_cluster_proto::Change::BumpEpoch { node });
    let mut bytes = postcard::to_stdvec(&metadata).unwrap();
    // The current epoch stands behind the cluster's name.
    let at = postcard::to_stdvec(&metadata.cluster()).unwrap().len();
    assert_eq!(u64::from(bytes[at]), metadata.current_epoch());
    bytes[at] = 0;
    postcard::from_bytes(&bytes).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraft::{CommittedLeaderId, EntryPayload};
    use towline_cluster_proto::{Change, NodeId};

    fn id(index: u64) -> LogId {
        LogId::new(CommittedLeaderId::new(3, 7), index)
    }

    fn entry(index: u64) -> Entry {
        let change = Change::BumpEpoch { node: NodeId::from_bytes([index as u8; NodeId::BYTES]) };
        Entry { log_id: id(index), payload: EntryPayload::Normal(change) }
    }

    fn file(frames: &[&[Record]]) -> Vec<u8> {
        let mut file = LOG_MAGIC.to_vec();
        for records in frames {
            let mut payload = Vec::new();
            records.iter().for_each(|record| encode(record, &mut payload).unwrap());
            frame(&payload, &mut file);
        }
        file
    }

    fn sample() -> Vec<u8> {
        file(&[
            &[Record::Vote(Vote::new(3, 7)), Record::Entry(entry(1)), Record::Entry(entry(2))],
            &[Record::Truncate(2), Record::Entry(entry(2)), Record::Entry(entry(3))],
            &[Record::Purge(id(1)), Record::Committed(id(3))],
        ])
    }

    #[test]
    fn records_come_to_a_state_and_a_state_to_the_same_records() {
        let file = sample();
        let (state, good) = read_log(&file).unwrap();
        assert_eq!(good, file.len());
        assert_eq!(state.vote, Some(Vote::new(3, 7)));
        assert_eq!((state.purged, state.committed, state.last()), (Some(id(1)), Some(id(3)), Some(id(3))));
        assert_eq!(state.entries.keys().copied().collect::<Vec<_>>(), [2, 3]);
        let (again, _) = read_log(&state.to_file().unwrap()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{state:?}"));
    }

    #[test]
    fn a_file_that_ends_anywhere_is_read_up_to_its_last_whole_frame() {
        let file = sample();
        let mut ends = vec![0, LOG_MAGIC.len()];
        let mut at = LOG_MAGIC.len();
        while at < file.len() {
            at += HEADER_BYTES + whole(&file[at..]).unwrap().len();
            ends.push(at);
        }
        for length in 0..=file.len() {
            let (_, good) = read_log(&file[..length]).unwrap();
            assert_eq!(Some(&good), ends.iter().rfind(|&&end| end <= length));
        }
    }

    #[test]
    fn a_byte_that_is_wrong_before_a_whole_frame_is_damage_and_in_the_last_one_a_torn_tail() {
        let file = sample();
        let last = memchr::memmem::rfind(&file, MARKER).unwrap();
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 0x20;
            match read_log(&bad) {
                Err(Damage::Foreign) => assert!(at < LOG_MAGIC.len()),
                Err(Damage::Middle { .. }) => assert!((LOG_MAGIC.len()..last).contains(&at)),
                Ok((_, good)) => assert!(at >= last && good == last, "byte {at}"),
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_snapshot_is_whole_or_damaged() {
        let meta =
            SnapshotMeta { snapshot_id: "3-7-9".into(), last_log_id: Some(id(9)), ..Default::default() };
        let mut metadata = Metadata::default();
        let node = NodeId::from_bytes([1; NodeId::BYTES]);
        metadata.apply(&Change::Found { cluster: node, node, shard: node, at: Default::default() });
        let file = snapshot_file(&meta, &metadata).unwrap();
        assert_eq!(read_snapshot(&file), Ok((meta.clone(), metadata.clone())));
        let cannot_be = snapshot_file(&meta, &inconsistent(&metadata)).unwrap();
        let damage = read_snapshot(&cannot_be).unwrap_err();
        assert_eq!(damage.to_string(), "the cluster's metadata are inconsistent: an epoch is wrong");
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 1;
            assert!(read_snapshot(&bad).is_err());
            assert!(read_snapshot(&file[..at]).is_err());
        }
    }
}
