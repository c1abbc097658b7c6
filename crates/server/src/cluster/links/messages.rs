//! What nodes ask of each other on a link, and its frames.
//!
//! Owns: requests, answers, and their bounds. Does **not** own what is done about them.
//!
//! A frame: length of what follows it (4 bytes), number of the request (8), kind (1), the message in postcard. Numbers are
//! little-endian. New variants go to the end, as positions stand for names.

use crate::cluster::raft::types::{Seat, SnapshotMeta, Types, Vote};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest, VoteResponse};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};
use towline_cluster_proto::{Announced, Change, Metadata, NodeId, Outcome, Ranges};

/// The largest frame, in bytes: a snapshot of a cluster with a thousand migrations in its history fits.
pub(crate) const FRAME_BYTES_MAX: usize = 64 << 20;
/// Length of a frame's number and kind.
const NUMBER_AND_KIND: usize = 9;
/// How much of a frame is read at once, so that a length that is only claimed costs no memory.
const READ_BYTES: usize = 256 << 10;

/// What a node asks of another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Raft, from the leader.
    Append {
        /// To whom.
        to: Seat,
        /// How long ago the leader knew a quorum to follow it, in milliseconds; `None` if it did not yet.
        age_ms: Option<u64>,
        /// The request.
        rpc: AppendEntriesRequest<Types>,
    },
    /// Raft, from a candidate.
    Vote {
        /// To whom.
        to: Seat,
        /// The request.
        rpc: VoteRequest<Seat>,
    },
    /// Raft, from the leader: the whole state.
    Snapshot {
        /// To whom.
        to: Seat,
        /// The leader's.
        vote: Vote,
        /// What it stands for.
        meta: SnapshotMeta,
        /// The state.
        metadata: Box<Metadata>,
    },
    /// Make this change, if you lead.
    Propose(Change),
    /// Take me in.
    Join(Box<Joining>),
    /// Ask me to take you in: I am there.
    Invite {
        /// My address; empty for the one that this comes from.
        ip: String,
        /// My port for nodes.
        bus_port: u16,
    },
    /// Are you there?
    Ping,
}

/// Who wants to join a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Joining {
    /// Its name.
    pub(crate) node: NodeId,
    /// The seat that it will have.
    pub(crate) seat: Seat,
    /// Its shard.
    pub(crate) shard: NodeId,
    /// Where it is.
    pub(crate) at: Announced,
    /// What it owns.
    pub(crate) slots: Ranges,
    /// The version of that claim.
    pub(crate) config_epoch: u64,
}

/// What a node answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Response {
    /// To [`Request::Append`].
    Append(AppendEntriesResponse<Seat>),
    /// To [`Request::Vote`].
    Vote(VoteResponse<Seat>),
    /// To [`Request::Snapshot`].
    Snapshot(Vote),
    /// The change is made, by this entry.
    Made {
        /// The entry's number.
        index: u64,
        /// What came of it.
        outcome: Outcome,
    },
    /// Somebody else leads; nothing was done.
    NotLeader {
        /// Who, if known.
        leader: Option<NodeId>,
    },
    /// No quorum follows; nothing was done.
    NoQuorum,
    /// It may or may not be done.
    Unknown,
    /// It is in.
    Joined {
        /// The cluster's name.
        cluster: NodeId,
    },
    /// It cannot be taken in right now; nothing was done.
    Busy,
    /// It is not taken in, for this reason.
    NotJoined(String),
    /// It will come.
    Invited,
    /// That seat is not here, or the node is not of that cluster any more.
    NotHere,
    /// I am here.
    Pong,
}

/// Whether a frame asks or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Asks.
    Request,
    /// Answers.
    Response,
}

/// Appends a frame. A message that is larger than a frame may be is refused.
pub(crate) fn put_frame(
    number: u64,
    kind: Kind,
    message: &impl Serialize,
    to: &mut Vec<u8>,
) -> io::Result<()> {
    let message = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let length = message.len() + NUMBER_AND_KIND;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "larger than a frame may be"));
    }
    to.extend_from_slice(&(length as u32).to_le_bytes());
    to.extend_from_slice(&number.to_le_bytes());
    to.push(u8::from(kind == Kind::Response));
    to.extend_from_slice(&message);
    Ok(())
}

/// Reads a frame of the kind that this direction carries.
///
/// # Errors
/// The connection broke, or the other side sends what no node sends: either way it is of no use any more.
///
/// # Cancel safety
/// None: part of a frame may be read.
pub(crate) async fn read_frame<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    kind: Kind,
) -> io::Result<(u64, T)> {
    let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let length = stream.read_u32_le().await? as usize;
    if !(NUMBER_AND_KIND..=FRAME_BYTES_MAX).contains(&length) {
        return Err(wrong("a frame of a length that none has"));
    }
    let number = stream.read_u64_le().await?;
    if stream.read_u8().await? != u8::from(kind == Kind::Response) {
        return Err(wrong("a frame of another kind"));
    }
    let length = length - NUMBER_AND_KIND;
    let mut bytes = Vec::with_capacity(length.min(READ_BYTES));
    while bytes.len() < length {
        let start = bytes.len();
        bytes.resize(start + (length - start).min(READ_BYTES), 0);
        stream.read_exact(&mut bytes[start..]).await?;
    }
    let message = postcard::from_bytes(&bytes).map_err(|_| wrong("a message that no node sends"))?;
    Ok((number, message))
}
