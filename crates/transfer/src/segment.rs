//! What a peer has for others.
//!
//! Owns: an open [`Segment`], the [`RemoteRegion`]s in it, and their description on the wire. Does **not** own links.
//!
//! A description is asked for over the link and says what is registered at that moment, in that life of the peer. What was
//! registered later is found after opening again. What was taken back, or belonged to an earlier life, is refused by the peer.

use std::sync::Arc;

use towline_transfer_proto::{self as proto, Incarnation, NodeId, Opcode, Process};

use crate::batch::{Batch, Request};
use crate::error::{NotifyError, SubmitError};
use crate::peer::{Peer, Submission};
use crate::regions::{Access, Entry, NAME_BYTES_MAX, RemoteAccess};
use crate::transport::RegionKey;

/// A notification has at most so many bytes: it says that data are there, it is not the data.
pub const NOTIFICATION_BYTES_MAX: usize = 64 * 1024;

/// A description on the wire has at most so many bytes: 4,096 regions with long names, rounded up.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A peer's region, as it was when its segment was opened. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RemoteRegion {
    place: Arc<Place>,
}

#[derive(Debug, PartialEq, Eq)]
struct Place {
    name: String,
    process: Process,
    base: u64,
    len: u64,
    access: Access,
    /// By transport.
    keys: Vec<(u16, u32)>,
}

impl RemoteRegion {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.place.name
    }

    /// Its bytes.
    #[expect(clippy::len_without_is_empty, reason = "a region is never empty")]
    pub fn len(&self) -> u64 {
        self.place.len
    }

    /// What we may do: read, or read and write.
    pub fn access(&self) -> Access {
        self.place.access
    }
}

/// What a peer said that it has.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    process: Process,
    regions: Vec<RemoteRegion>,
}

impl Description {
    /// What peers may know of these regions.
    pub(crate) fn encode(entries: &[Arc<Entry>]) -> Vec<u8> {
        let visible = || entries.iter().filter(|entry| entry.access != Access::Local);
        let count = u32::try_from(visible().count()).unwrap_or(u32::MAX);
        let mut bytes = count.to_be_bytes().to_vec();
        for entry in visible() {
            let name = u8::try_from(entry.name.len()).expect("invariant: names have at most 255 bytes");
            bytes.push(name);
            bytes.extend_from_slice(entry.name.as_bytes());
            bytes.extend_from_slice(&entry.base.to_be_bytes());
            bytes.extend_from_slice(&(entry.memory.len() as u64).to_be_bytes());
            bytes.push(u8::from(entry.access == Access::ReadWrite));
            let keys = entry.keys.get().map_or(&[][..], Vec::as_slice);
            bytes.push(u8::try_from(keys.len()).expect("invariant: transports are few"));
            for (rail, key) in keys {
                bytes.extend_from_slice(&rail.to_be_bytes());
                bytes.extend_from_slice(&key.to_be_bytes());
            }
        }
        bytes
    }

    /// Whose it is, in which life.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    /// The keys of all regions.
    pub(crate) fn keys(&self) -> Vec<RegionKey> {
        let of = |place: &Place| {
            let (base, len) = (place.base, place.len);
            place
                .keys
                .iter()
                .map(move |(rail, key)| RegionKey { rail: *rail, base, len, key: *key })
                .collect::<Vec<_>>()
        };
        self.regions.iter().flat_map(|region| of(&region.place)).collect()
    }

    /// What a peer said. `None` if that is no description.
    pub(crate) fn parse(process: Process, bytes: &[u8]) -> Option<Self> {
        let (count, mut rest) = bytes.split_first_chunk::<4>()?;
        let mut regions = Vec::new();
        for _ in 0..u32::from_be_bytes(*count) {
            let (length, tail) = rest.split_first()?;
            let (name, tail) = tail.split_at_checked(usize::from(*length))?;
            let (base, tail) = tail.split_first_chunk::<8>()?;
            let (len, tail) = tail.split_first_chunk::<8>()?;
            let (access, tail) = tail.split_first()?;
            let (count, mut tail) = tail.split_first()?;
            let mut keys = Vec::new();
            for _ in 0..*count {
                let (rail, after) = tail.split_first_chunk::<2>()?;
                let (key, after) = after.split_first_chunk::<4>()?;
                keys.push((u16::from_be_bytes(*rail), u32::from_be_bytes(*key)));
                tail = after;
            }
            rest = tail;
            let access = match access {
                0 => Access::Read,
                1 => Access::ReadWrite,
                _ => return None,
            };
            let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?.to_owned();
            let (base, len) = (u64::from_be_bytes(*base), u64::from_be_bytes(*len));
            base.checked_add(len)?;
            let place = Place { name, process, base, len, access, keys };
            regions.push(RemoteRegion { place: Arc::new(place) });
        }
        rest.is_empty().then_some(Self { process, regions })
    }
}

const _: () = assert!(NAME_BYTES_MAX <= u8::MAX as usize);

/// An open segment: what a peer has for us, and the way to it. Cheap to clone. When the last clone is dropped and nothing is under
/// way, the link to the peer ends.
#[derive(Debug, Clone)]
pub struct Segment {
    open: Arc<Open>,
}

#[derive(Debug)]
struct Open {
    peer: Arc<Peer>,
    description: Description,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.peer.segment_closed();
    }
}

impl Segment {
    pub(crate) fn new(peer: Arc<Peer>, description: Description) -> Self {
        peer.segment_opened();
        Self { open: Arc::new(Open { peer, description }) }
    }

    /// The node that has it.
    pub fn node(&self) -> NodeId {
        self.open.peer.node()
    }

    /// The life of the node that it was opened in.
    pub fn incarnation(&self) -> Incarnation {
        self.open.description.process.incarnation
    }

    /// The region of this name, if peers may use it.
    pub fn region(&self, name: &str) -> Option<RemoteRegion> {
        self.regions().iter().find(|region| region.name() == name).cloned()
    }

    /// All regions that peers may use.
    pub fn regions(&self) -> &[RemoteRegion] {
        &self.open.description.regions
    }

    /// Begins these transfers. Those that find a link go out before this returns; the others wait for it, which costs them
    /// nothing but time.
    ///
    /// # Errors
    /// See [`SubmitError`]; nothing was begun.
    pub fn submit(&self, requests: &[Request]) -> Result<Batch, SubmitError> {
        self.begin(requests, None)
    }

    /// As [`Segment::submit`], and when every byte of the batch is applied, the peer gets this notification: once, in the order
    /// of such batches' completion. If any request fails, it gets none.
    ///
    /// # Errors
    /// See [`SubmitError`]; nothing was begun.
    pub fn submit_and_notify(
        &self,
        requests: &[Request],
        notification: impl Into<Vec<u8>>,
    ) -> Result<Batch, SubmitError> {
        let payload = notification.into();
        if payload.len() > NOTIFICATION_BYTES_MAX {
            return Err(SubmitError::NotificationTooLong { bytes: payload.len() });
        }
        self.begin(requests, Some(payload))
    }

    /// Sends a notification that follows nothing: in order with the others, at least once on the wire, delivered once in each
    /// life of the peer.
    ///
    /// # Errors
    /// See [`NotifyError`].
    pub fn notify(&self, notification: impl Into<Vec<u8>>) -> Result<(), NotifyError> {
        let payload = notification.into();
        if payload.len() > NOTIFICATION_BYTES_MAX {
            return Err(NotifyError::TooLong { bytes: payload.len() });
        }
        self.open.peer.notify(payload)
    }

    fn begin(&self, requests: &[Request], notify: Option<Vec<u8>>) -> Result<Batch, SubmitError> {
        let peer = &self.open.peer;
        let now = peer.shared().now();
        let resolve = |(index, request)| self.resolve(now, index, request);
        let resolved = requests.iter().enumerate().map(resolve).collect::<Result<Vec<_>, _>>()?;
        let submission = Submission { requests: resolved, notify, life: self.incarnation() };
        let (id, ledger) = peer.submit(submission)?;
        Ok(Batch { id, ledger, peer: Arc::downgrade(peer) })
    }

    /// Addresses in place of names.
    fn resolve(
        &self,
        now: towline_sansio::Instant,
        index: usize,
        request: &Request,
    ) -> Result<proto::Request, SubmitError> {
        let (remote, local) = (&request.remote.place, &request.local);
        if remote.process != self.open.description.process {
            return Err(SubmitError::ForeignRegion { index });
        }
        let is_within = |offset: u64, len: u64| {
            offset.checked_add(request.length).is_some_and(|end| end <= len) && request.length > 0
        };
        if !is_within(request.remote_offset, remote.len)
            || !is_within(request.local_offset, local.memory().len() as u64)
        {
            return Err(SubmitError::Range { index });
        }
        let wanted = match request.opcode {
            Opcode::Read => RemoteAccess::Read,
            Opcode::Write => RemoteAccess::Write,
        };
        if !remote.access.allows(wanted) {
            return Err(SubmitError::ReadOnly { index });
        }
        Ok(proto::Request {
            opcode: request.opcode,
            peer: self.node(),
            local: local.base() + request.local_offset,
            remote: remote.base + request.remote_offset,
            length: request.length,
            class: request.class,
            deadline: request.timeout.map_or(towline_sansio::Instant::FAR, |timeout| now + timeout),
            repeat: request.repeat,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryRegion;
    use crate::regions::Regions;

    fn process() -> Process {
        Process { node: NodeId(7), incarnation: Incarnation(1) }
    }

    #[test]
    fn a_description_says_what_peers_may_use_and_nothing_else() {
        let regions = Regions::new(5, 8);
        let memory = || MemoryRegion::allocate(4096).unwrap();
        regions.register("secret", memory(), Access::Local).unwrap();
        let kv = regions.register("kv", memory(), Access::ReadWrite).unwrap();
        regions.register("model", memory(), Access::Read).unwrap();
        kv.set_keys(vec![(2, 77), (3, u32::MAX)]);
        let bytes = Description::encode(&regions.entries());
        let description = Description::parse(process(), &bytes).unwrap();
        let names: Vec<_> =
            description.regions.iter().map(|region| (region.name(), region.access())).collect();
        assert_eq!(names, [("kv", Access::ReadWrite), ("model", Access::Read)]);
        let first = &description.regions[0].place;
        assert_eq!((first.base, first.len), (kv.base(), 4096));
        let key = |rail, key| RegionKey { rail, base: kv.base(), len: 4096, key };
        assert_eq!(description.keys(), [key(2, 77), key(3, u32::MAX)]);
    }

    #[test]
    fn what_is_no_description_is_refused_at_every_length() {
        let regions = Regions::new(5, 8);
        let kv = regions.register("kv", MemoryRegion::allocate(1).unwrap(), Access::Read).unwrap();
        kv.set_keys(vec![(2, 77)]);
        let bytes = Description::encode(&regions.entries());
        for length in 0..bytes.len() {
            assert!(Description::parse(process(), &bytes[..length]).is_none(), "{length}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Description::parse(process(), &longer).is_none());
        assert!(Description::parse(process(), &[0xff; 64]).is_none());
    }
}
