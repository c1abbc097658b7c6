//! Who this node is: its name, its shard, and the one Raft group that it belongs to.
//!
//! Owns: the file `cluster-config-file`. Does **not** own the group's log: the file names it, and names one only after its files are
//! on the disk. So at each moment, and after a crash at each moment, a node is part of exactly one group.

use crate::cluster::raft::types::Seat;
use crate::cluster::raft::writer::put;
use crate::persistence::disk::Disk;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use towline_cluster_proto::NodeId;

/// The first line of the file. Redis's own file of this name lists nodes, and is not read.
const TITLE: &str =
    "# Towline's identity in its cluster. Written by the server: do not edit, do not copy to another node.";
/// A file that is longer is not ours.
const FILE_BYTES_MAX: u64 = 4096;

/// A group that a node belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupId {
    /// The cluster's name.
    pub(crate) cluster: NodeId,
    /// The node's seat in it.
    pub(crate) seat: Seat,
}

impl GroupId {
    /// How names of the group's files begin.
    pub(crate) fn file_name(&self) -> String {
        format!("{}-{:016x}", self.cluster, self.seat)
    }
}

/// Who this node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its name.
    pub(crate) node: NodeId,
    /// The name of its shard, as long as it has joined nothing that says otherwise.
    pub(crate) shard: NodeId,
    /// Its group.
    pub(crate) group: GroupId,
    /// Whether it has founded that group, so that an empty log means that nobody else knows of it.
    pub(crate) is_founder: bool,
    /// The group that it has asked to be taken into, and where it asked. Until it has heard an answer, it may be a member already.
    pub(crate) joining: Option<(GroupId, String)>,
}

/// Why a node does not know who it is. The environment's fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum IdentityError {
    /// The disk does not work, or the system has no randomness.
    #[error("cannot read or write {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Somebody else's file has the name.
    #[error(
        "{} was not written by Towline: name another file with 'cluster-config-file', or move it away for a node that starts anew",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is not what was written.
    #[error("{} is damaged: restore it, or move it and the directory beside it away for a node that starts anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

impl Identity {
    /// A node that nobody knows, alone in a group of its own.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn draw() -> io::Result<Self> {
        Ok(Self {
            node: random_id()?,
            shard: random_id()?,
            group: GroupId { cluster: random_id()?, seat: random_seat()? },
            is_founder: true,
            joining: None,
        })
    }

    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub(crate) fn load(disk: &dyn Disk, path: &Path) -> Result<Option<Self>, IdentityError> {
        let failed = |error| IdentityError::Io { path: path.to_owned(), error };
        let mut file = match disk.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        let foreign = || IdentityError::Foreign { path: path.to_owned() };
        if file.size().map_err(failed)? > FILE_BYTES_MAX {
            return Err(foreign());
        }
        let (mut bytes, mut chunk) = (Vec::new(), [0; 512]);
        loop {
            match file.read(&mut chunk).map_err(failed)? {
                0 => break,
                read => bytes.extend_from_slice(&chunk[..read]),
            }
        }
        let text = String::from_utf8(bytes).map_err(|_| foreign())?;
        if !text.starts_with(TITLE) {
            return Err(foreign());
        }
        Self::parse(&text).map(Some).ok_or_else(|| IdentityError::Damaged { path: path.to_owned() })
    }

    /// Writes the file; returns once it is on the device.
    ///
    /// # Errors
    /// The disk's. The file is as before or as asked for.
    pub(crate) fn store(&self, disk: &dyn Disk, path: &Path) -> Result<(), IdentityError> {
        let dir = path.parent().unwrap_or_else(|| Path::new("."));
        let result = put(disk, dir, path, self.to_text().as_bytes());
        result.map_err(|error| IdentityError::Io { path: path.to_owned(), error })
    }

    fn to_text(&self) -> String {
        let mut text = format!("{TITLE}\nnode {}\nshard {}\n", self.node, self.shard);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "cluster {}\nseat {}", self.group.cluster, self.group.seat);
        let _ = writeln!(text, "founder {}", self.is_founder);
        if let Some((group, at)) = &self.joining {
            let _ = writeln!(text, "joining {} {} {at}", group.cluster, group.seat);
        }
        let _ = writeln!(text, "sum {:08x}", sum(&text));
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let (body, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let expected = u32::from_str_radix(last.strip_prefix("sum ")?, 16).ok()?;
        if sum(&format!("{body}\n")) != expected {
            return None;
        }
        let field = |name: &str| body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let joining = match field("joining") {
            None => None,
            Some(line) => {
                let mut words = line.splitn(3, ' ');
                let group =
                    GroupId { cluster: words.next()?.parse().ok()?, seat: words.next()?.parse().ok()? };
                Some((group, words.next()?.to_owned()))
            }
        };
        Some(Self {
            node: field("node")?.parse().ok()?,
            shard: field("shard")?.parse().ok()?,
            group: GroupId { cluster: field("cluster")?.parse().ok()?, seat: field("seat")?.parse().ok()? },
            is_founder: bool::from_str(field("founder")?).ok()?,
            joining,
        })
    }
}

fn sum(text: &str) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, text.as_bytes()) as u32
}

/// A name that nothing else has.
///
/// # Errors
/// The system has no randomness.
pub(crate) fn random_id() -> io::Result<NodeId> {
    random_bytes().map(NodeId::from_bytes)
}

/// A seat that nobody else has. Not 0, which is nobody's.
///
/// # Errors
/// The system has no randomness.
pub(crate) fn random_seat() -> io::Result<Seat> {
    random_bytes().map(|bytes| u64::from_le_bytes(bytes).max(1))
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The system has no randomness.
pub(crate) fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let (mut bytes, mut filled) = ([0; N], 0);
    while filled < N {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::faulty_disk::{Fault, FaultyDisk};

    fn path() -> &'static Path {
        Path::new("/dir/nodes.conf")
    }

    #[test]
    fn what_is_written_is_read_and_anything_else_is_said_to_be_so() {
        let disk = FaultyDisk::default();
        disk.make_dir(Path::new("/dir")).unwrap();
        assert!(Identity::load(&disk, path()).unwrap().is_none());
        let mut identity = Identity::draw().unwrap();
        for joining in [None, Some((identity.group, "[::1]:17000".to_owned()))] {
            identity.joining = joining;
            identity.store(&disk, path()).unwrap();
            assert_eq!(Identity::load(&disk, path()).unwrap().as_ref(), Some(&identity));
        }
        let text = disk.content(path()).unwrap();
        for at in TITLE.len() + 1..text.len() {
            let mut bad = text.clone();
            bad[at] ^= 1;
            disk.put(path(), &bad);
            assert!(matches!(Identity::load(&disk, path()), Err(IdentityError::Damaged { .. })), "byte {at}");
        }
        disk.put(
            path(),
            b"07c37df 127.0.0.1:30004@31004 myself,master - 0 0 0 connected\nvars currentEpoch 6\n",
        );
        assert!(matches!(Identity::load(&disk, path()), Err(IdentityError::Foreign { .. })));
    }

    #[test]
    fn a_disk_that_fails_leaves_the_old_one_or_the_new_one() {
        let (old, new) = (Identity::draw().unwrap(), Identity::draw().unwrap());
        for at in 1.. {
            let disk = FaultyDisk::default();
            disk.make_dir(Path::new("/dir")).unwrap();
            old.store(&disk, path()).unwrap();
            disk.set_fault(Fault::From(at));
            let result = new.store(&disk, path());
            let found = Identity::load(&disk.copy(), path()).unwrap().unwrap();
            assert!(found == old || found == new);
            if result.is_ok() {
                assert_eq!(found, new);
                return;
            }
        }
    }
}
