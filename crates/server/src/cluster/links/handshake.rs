//! The first words on a link between nodes.
//!
//! Owns: who speaks, for which cluster and what for, and that both know the secret. Does **not** own what comes after; links are not
//! encrypted, so a secret keeps strangers out of a cluster, and not readers off its network.
//!
//! ```text
//! dialler                                acceptor
//!    | magic, Hello (who, for what, nonce)  |
//!    |------------------------------------->|
//!    |     Answer (refusal; or who, nonce, proof of the secret over both nonces)
//!    |<-------------------------------------|
//!    | Proof                                |
//!    |------------------------------------->|
//!    |     Accepted, or a refusal           |
//!    |<-------------------------------------|
//! ```

use super::Purpose;
use crate::cluster::identity::random_bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::io;
use std::net::IpAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use towline_cluster_proto::NodeId;

/// What every link begins with, from the side that dials.
const MAGIC: &[u8; 8] = b"TOWLBUS\n";
/// The version of what is said on links. Nodes of another version are refused: there is none yet.
const VERSION: u16 = 1;
/// The longest message of a handshake, in bytes; names and addresses are far shorter.
const MESSAGE_BYTES_MAX: usize = 1024;
/// The longest address that a node may give itself, as long as the longest that Redis allows.
const IP_BYTES_MAX: usize = 46;

type Bytes32 = [u8; 32];

/// A node, as it says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduction {
    /// Its name.
    pub(crate) node: NodeId,
    /// Its cluster.
    pub(crate) cluster: NodeId,
    /// Its address; empty if it does not know.
    pub(crate) ip: String,
    /// Its port for nodes.
    pub(crate) bus_port: u16,
    /// Whether it is the only node of its cluster.
    pub(crate) is_alone: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    version: u16,
    purpose: Purpose,
    from: Introduction,
    nonce: Bytes32,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Refused(Refusal),
    Challenge {
        from: Introduction,
        nonce: Bytes32,
        /// All zeros without a secret.
        proof: Bytes32,
        has_secret: bool,
        /// The address that the dialler comes from.
        seen: IpAddr,
    },
    Accepted,
}

/// Why a node does not talk to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum Refusal {
    /// It speaks another version of this protocol.
    #[error("it speaks version {0} of the protocol between nodes")]
    Version(u16),
    /// It belongs to another cluster: it was reset, or it has joined elsewhere.
    #[error("it belongs to the cluster {0}")]
    Cluster(NodeId),
    /// It does not know this cluster's secret.
    #[error("it has another 'cluster-secret'")]
    Secret,
    /// It has more links than it may have.
    #[error("it has too many links")]
    Full,
    /// It is being stopped.
    #[error("it is stopping")]
    Stopping,
}

/// Why a link did not come about. The environment's fault, or the operator's; retryable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The connection broke.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Whoever is there is no node.
    #[error("what answers there is no node of Towline")]
    Foreign,
    /// The other side refuses, or this one does.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The other side of a link, after its handshake.
#[derive(Debug, Clone)]
pub(crate) struct Greeted {
    /// Who it is.
    pub(crate) peer: Introduction,
    /// What the link is for.
    pub(crate) purpose: Purpose,
    /// The address under which the other side sees the dialling one; that one's own address if this side dialled.
    pub(crate) seen: IpAddr,
}

/// Dials: says who this node is, and hears who is there. `secret`: empty if there is none.
///
/// # Errors
/// [`HandshakeError`].
///
/// # Cancel safety
/// The connection is of no use after a cancelled handshake.
pub(crate) async fn dial(
    stream: &mut TcpStream,
    purpose: Purpose,
    from: Introduction,
    secret: &[u8],
) -> Result<Greeted, HandshakeError> {
    let nonce = random_bytes()?;
    let hello = encode(&Hello { version: VERSION, purpose, from, nonce })?;
    stream.write_all(MAGIC).await?;
    send(stream, &hello).await?;
    let (answer, bytes) = receive::<Answer>(stream).await?;
    let (peer, theirs, proof, has_secret, seen) = match answer {
        Answer::Refused(refusal) => return Err(refusal.into()),
        Answer::Accepted => return Err(HandshakeError::Foreign),
        Answer::Challenge { from, nonce, proof, has_secret, seen } => (from, nonce, proof, has_secret, seen),
    };
    if has_secret == secret.is_empty() {
        return Err(Refusal::Secret.into());
    }
    if has_secret && verify(secret, b"acceptor", &[&nonce, &theirs, &hello], &proof).is_err() {
        return Err(Refusal::Secret.into());
    }
    check(&peer)?;
    // Over the whole of both messages, so that nothing of them can be changed on the way.
    let mine = prove(secret, b"dialler", &[&hello, &bytes]);
    send(stream, &mine).await?;
    match receive::<Answer>(stream).await?.0 {
        Answer::Accepted => Ok(Greeted { peer, purpose, seen }),
        Answer::Refused(refusal) => Err(refusal.into()),
        Answer::Challenge { .. } => Err(HandshakeError::Foreign),
    }
}

/// Answers a dial. `admit` says whether this node talks to the other one, and how this node introduces itself.
///
/// # Errors
/// [`HandshakeError`]; the other side was told if it is a node.
///
/// # Cancel safety
/// As [`dial`].
pub(crate) async fn accept(
    stream: &mut TcpStream,
    secret: &[u8],
    admit: impl FnOnce(&Introduction, Purpose) -> Result<Introduction, Refusal>,
) -> Result<Greeted, HandshakeError> {
    let mut magic = [0; MAGIC.len()];
    stream.read_exact(&mut magic).await?;
    if magic != *MAGIC {
        return Err(HandshakeError::Foreign);
    }
    let (hello, bytes) = receive::<Hello>(stream).await?;
    let admitted = match hello.version {
        VERSION => check(&hello.from).and_then(|()| Ok(admit(&hello.from, hello.purpose)?)),
        _ => Err(Refusal::Version(VERSION).into()),
    };
    let from = match admitted {
        Ok(from) => from,
        Err(HandshakeError::Refused(refusal)) => return refuse(stream, refusal).await,
        Err(error) => return Err(error),
    };
    let nonce: Bytes32 = random_bytes()?;
    let seen = stream.peer_addr()?.ip().to_canonical();
    let proof = prove(secret, b"acceptor", &[&hello.nonce, &nonce, &bytes]);
    let challenge = encode(&Answer::Challenge { from, nonce, proof, has_secret: !secret.is_empty(), seen })?;
    send(stream, &challenge).await?;
    let mut theirs = [0; 32 + 2];
    stream.read_exact(&mut theirs).await?;
    if !secret.is_empty() && verify(secret, b"dialler", &[&bytes, &challenge], &theirs[2..]).is_err() {
        return refuse(stream, Refusal::Secret).await;
    }
    send(stream, &encode(&Answer::Accepted)?).await?;
    Ok(Greeted { peer: hello.from, purpose: hello.purpose, seen })
}

async fn refuse(stream: &mut TcpStream, refusal: Refusal) -> Result<Greeted, HandshakeError> {
    send(stream, &encode(&Answer::Refused(refusal.clone()))?).await?;
    Err(refusal.into())
}

fn check(introduction: &Introduction) -> Result<(), HandshakeError> {
    if introduction.ip.len() > IP_BYTES_MAX { Err(HandshakeError::Foreign) } else { Ok(()) }
}

fn mac(secret: &[u8], side: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("invariant: HMAC takes keys of any length");
    mac.update(side);
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac
}

fn prove(secret: &[u8], side: &[u8], parts: &[&[u8]]) -> Bytes32 {
    if secret.is_empty() { [0; 32] } else { mac(secret, side, parts).finalize().into_bytes().into() }
}

/// In constant time.
fn verify(secret: &[u8], side: &[u8], parts: &[&[u8]], proof: &[u8]) -> Result<(), ()> {
    mac(secret, side, parts).verify_slice(proof).map_err(|_| ())
}

fn encode(message: &impl Serialize) -> Result<Vec<u8>, HandshakeError> {
    postcard::to_stdvec(message).map_err(|error| io::Error::other(error).into())
}

async fn send(stream: &mut TcpStream, message: &[u8]) -> Result<(), HandshakeError> {
    let mut bytes = Vec::with_capacity(message.len() + 2);
    let length = u16::try_from(message.len()).map_err(|_| HandshakeError::Foreign)?;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(message);
    Ok(stream.write_all(&bytes).await?)
}

async fn receive<T: DeserializeOwned>(stream: &mut TcpStream) -> Result<(T, Vec<u8>), HandshakeError> {
    let length = usize::from(stream.read_u16_le().await?);
    if length > MESSAGE_BYTES_MAX {
        return Err(HandshakeError::Foreign);
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    let message = postcard::from_bytes(&bytes).map_err(|_| HandshakeError::Foreign)?;
    Ok((message, bytes))
}
