//! What two processes of one host say to each other about memory.
//!
//! Owns: the unix socket between them, its name, its messages, and the proof of who is there. Does **not** own what follows.
//!
//! Messages are packets of a fixed size, some with one descriptor, and each of them fits into the socket's buffer: a peer keeps
//! to one question at a time, so that a socket which is full is a fault of the peer's.
//!
//! Each side proves that it has the engine's key, over two numbers that only this link's handshake has brought together, one
//! from each side. Without a key, both processes must belong to the same user.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use hmac::{Hmac, KeyInit, Mac};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use sha2::Sha256;
use towline_transfer_proto::{Psn, Qpn, QueuePair};

use crate::clock::random;
use crate::config::Trust;

/// Connections that wait to be accepted; more are refused, and their links do without shared memory.
const BACKLOG: i32 = 128;

/// Bytes of every message.
const MESSAGE_LEN: usize = 64;

/// One side's number of one link.
pub(super) type Token = [u8; 16];

/// A proof of the key.
pub(super) type Tag = [u8; 32];

/// Which side of a link proves itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Who offered, and connects.
    Initiator,
    /// Who served, and accepts.
    Target,
}

/// Where a process listens: 40 bits, random, which fit into a [`QueuePair`]. Only processes that share a network namespace find
/// each other by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    qpn: Qpn,
    lid: u16,
}

impl Name {
    fn new() -> Self {
        let [high, low] = [u32::from_ne_bytes(random()), u32::from_ne_bytes(random())];
        // The largest number says that there is no queue pair.
        Self { qpn: Qpn(high % Psn::MODULUS), lid: (low % u32::from(u16::MAX)) as u16 }
    }

    pub(super) fn of(queue_pair: &QueuePair) -> Self {
        Self { qpn: queue_pair.qpn, lid: queue_pair.lid }
    }

    pub(super) fn queue_pair(self, rail: u16, psn: Psn, gid: Token) -> QueuePair {
        QueuePair { rail, qpn: self.qpn, psn, lid: self.lid, gid }
    }

    fn address(self) -> rustix::io::Result<SocketAddrUnix> {
        SocketAddrUnix::new_abstract_name(
            format!("towline-shm-{:06x}{:04x}", self.qpn.0, self.lid).as_bytes(),
        )
    }
}

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Listens at a name of its own.
pub(super) fn listen() -> io::Result<(OwnedFd, Name)> {
    let (listener, name) = (socket()?, Name::new());
    rustix::net::bind(&listener, &name.address()?)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok((listener, name))
}

/// The next connection, if there is one.
pub(super) fn accept(listener: BorrowedFd<'_>) -> Option<OwnedFd> {
    rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).ok()
}

/// Connects, at once or not at all.
pub(super) fn connect(name: Name) -> io::Result<OwnedFd> {
    let socket = socket()?;
    rustix::net::connect(&socket, &name.address()?)?;
    Ok(socket)
}

/// Whether the other end is gone.
pub(super) fn is_gone(socket: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut watched = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let is_heard = poll(&mut watched, Some(&now)).is_ok_and(|count| count > 0);
    is_heard && watched[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

/// Whether the other end may be there at all.
pub(super) fn is_admitted(socket: BorrowedFd<'_>, trust: &Trust) -> bool {
    match trust {
        Trust::Key(_) => true,
        Trust::Insecure => rustix::net::sockopt::socket_peercred(socket)
            .is_ok_and(|peer| peer.uid == rustix::process::geteuid()),
    }
}

/// What a side proves.
pub(super) fn proof(trust: &Trust, side: Side, initiator: &Token, target: &Token) -> Option<Tag> {
    let mac = mac(trust, side, initiator, target)?;
    Some(mac.finalize().into_bytes().into())
}

/// Whether a side has proved itself. In constant time.
pub(super) fn is_proof(trust: &Trust, side: Side, initiator: &Token, target: &Token, tag: &Tag) -> bool {
    mac(trust, side, initiator, target).is_none_or(|mac| mac.verify_slice(tag).is_ok())
}

fn mac(trust: &Trust, side: Side, initiator: &Token, target: &Token) -> Option<Hmac<Sha256>> {
    let Trust::Key(key) = trust else { return None };
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("invariant: HMAC takes keys of any length");
    mac.update(match side {
        Side::Initiator => b"towline shm initiator",
        Side::Target => b"towline shm target   ",
    });
    mac.update(initiator);
    mac.update(target);
    Some(mac)
}

/// A message. Those that say so bring a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// The first of the initiator's: which link, and that it may. With its page.
    Prove { token: Token, tag: Tag },
    /// The first of the target's, when the link is active there. With its page.
    Proved { tag: Tag },
    /// Which region has this address? One at a time.
    Ask { address: u64 },
    /// This one. With its memory.
    Grant { base: u64, len: u64, slot: u32, is_writable: bool },
    /// None that you may use.
    Refuse,
    /// This one, which is not to be shared.
    Elsewhere { base: u64, len: u64 },
    /// What was granted in this slot is over.
    Recall { slot: u32 },
}

impl Message {
    fn encode(self) -> [u8; MESSAGE_LEN] {
        let mut bytes = [0; MESSAGE_LEN];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        match self {
            Self::Prove { token, tag } => {
                put(0, &[1]);
                put(8, &token);
                put(24, &tag);
            }
            Self::Proved { tag } => {
                put(0, &[2]);
                put(24, &tag);
            }
            Self::Ask { address } => {
                put(0, &[3]);
                put(8, &address.to_be_bytes());
            }
            Self::Grant { base, len, slot, is_writable } => {
                put(0, &[4, u8::from(is_writable)]);
                put(4, &slot.to_be_bytes());
                put(8, &base.to_be_bytes());
                put(16, &len.to_be_bytes());
            }
            Self::Refuse => put(0, &[5]),
            Self::Elsewhere { base, len } => {
                put(0, &[6]);
                put(8, &base.to_be_bytes());
                put(16, &len.to_be_bytes());
            }
            Self::Recall { slot } => {
                put(0, &[7]);
                put(4, &slot.to_be_bytes());
            }
        }
        bytes
    }

    fn parse(bytes: &[u8; MESSAGE_LEN]) -> Option<Self> {
        let u64_at = |at: usize| bytes[at..].first_chunk().copied().map_or(0, u64::from_be_bytes);
        let slot = bytes[4..].first_chunk().copied().map_or(0, u32::from_be_bytes);
        let tag = *bytes[24..].first_chunk()?;
        Some(match bytes[0] {
            1 => Self::Prove { token: *bytes[8..].first_chunk()?, tag },
            2 => Self::Proved { tag },
            3 => Self::Ask { address: u64_at(8) },
            4 => Self::Grant { base: u64_at(8), len: u64_at(16), slot, is_writable: bytes[1] == 1 },
            5 => Self::Refuse,
            6 => Self::Elsewhere { base: u64_at(8), len: u64_at(16) },
            7 => Self::Recall { slot },
            _ => return None,
        })
    }
}

/// Sends a message, at once or not at all.
///
/// # Errors
/// The socket is full, or the other end is gone.
pub(super) fn send(socket: BorrowedFd<'_>, message: Message, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let bytes = message.encode();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = file.into_iter().collect();
    if !files.is_empty() {
        let is_pushed = control.push(SendAncillaryMessage::ScmRights(&files));
        debug_assert!(is_pushed, "invariant: there is room for one descriptor");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(socket, &[io::IoSlice::new(&bytes)], &mut control, flags)?;
    Ok(())
}

/// What came.
#[derive(Debug)]
pub(super) enum Received {
    /// A message, perhaps with a descriptor.
    Message(Message, Option<OwnedFd>),
    /// Nothing for now.
    Nothing,
    /// The end, an error, or what no honest peer sends.
    Over,
}

/// Takes the next message.
pub(super) fn receive(socket: BorrowedFd<'_>) -> Received {
    let mut bytes = [0; MESSAGE_LEN];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::net::recvmsg(socket, &mut [io::IoSliceMut::new(&mut bytes)], &mut control, flags);
    // Taken out in any case, so that what is not expected is closed.
    let mut files: Vec<OwnedFd> = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    match received {
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Received::Nothing,
        Ok(got)
            if got.bytes == MESSAGE_LEN
                && !got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
                && files.len() <= 1 =>
        {
            match Message::parse(&bytes) {
                Some(message) => Received::Message(message, files.pop()),
                None => Received::Over,
            }
        }
        Ok(_) | Err(_) => Received::Over,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    #[test]
    fn messages_arrive_as_they_were_sent_with_their_descriptor() {
        let (here, there) = pair();
        let all = [
            Message::Prove { token: [7; 16], tag: [8; 32] },
            Message::Proved { tag: [9; 32] },
            Message::Ask { address: u64::MAX },
            Message::Grant { base: 1 << 40, len: 77, slot: 5, is_writable: true },
            Message::Grant { base: 0, len: u64::MAX, slot: u32::MAX, is_writable: false },
            Message::Refuse,
            Message::Elsewhere { base: 3, len: 4 },
            Message::Recall { slot: 9 },
        ];
        for message in all {
            for file in [None, Some(here.as_fd())] {
                send(here.as_fd(), message, file).unwrap();
                let Received::Message(got, with) = receive(there.as_fd()) else { panic!("{message:?}") };
                assert_eq!((got, with.is_some()), (message, file.is_some()));
            }
        }
        assert!(matches!(receive(there.as_fd()), Received::Nothing) && !is_gone(there.as_fd()));
        drop(here);
        assert!(is_gone(there.as_fd()) && matches!(receive(there.as_fd()), Received::Over));
    }

    #[test]
    fn what_is_no_message_is_the_end() {
        for bytes in [&[9; MESSAGE_LEN][..], &[3; MESSAGE_LEN + 1], &[3; MESSAGE_LEN - 1], &[0; 1]] {
            let (here, there) = pair();
            rustix::net::send(&here, bytes, SendFlags::NOSIGNAL).unwrap();
            assert!(matches!(receive(there.as_fd()), Received::Over));
        }
        // More descriptors than there is room for.
        let (here, there) = pair();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let many = [here.as_fd(); 5];
        assert!(control.push(SendAncillaryMessage::ScmRights(&many)));
        let message = Message::Refuse.encode();
        rustix::net::sendmsg(&here, &[io::IoSlice::new(&message)], &mut control, SendFlags::NOSIGNAL)
            .unwrap();
        assert!(matches!(receive(there.as_fd()), Received::Over));
    }

    #[test]
    fn a_socket_that_nobody_reads_fills_up_and_says_so() {
        let (here, _there) = pair();
        let sent = (0..100_000).take_while(|_| send(here.as_fd(), Message::Refuse, None).is_ok()).count();
        assert!((1..100_000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_proof_is_of_one_key_one_side_and_one_link() {
        let ours = Trust::key("a secret of some length");
        let tag = proof(&ours, Side::Initiator, &[1; 16], &[2; 16]).unwrap();
        assert!(is_proof(&ours, Side::Initiator, &[1; 16], &[2; 16], &tag));
        assert!(!is_proof(&ours, Side::Target, &[1; 16], &[2; 16], &tag));
        assert!(!is_proof(&ours, Side::Initiator, &[2; 16], &[1; 16], &tag));
        let theirs = Trust::key("a secret of another kind");
        assert!(!is_proof(&theirs, Side::Initiator, &[1; 16], &[2; 16], &tag));
        assert!(!is_proof(&ours, Side::Initiator, &[1; 16], &[2; 16], &[0; 32]));
        assert_eq!(proof(&Trust::Insecure, Side::Target, &[1; 16], &[2; 16]), None);
    }

    #[test]
    fn a_name_survives_the_way_through_a_handshake() {
        let (listener, name) = listen().unwrap();
        assert_eq!(Name::of(&name.queue_pair(1, Psn::new(5), [1; 16])), name);
        let there = connect(name).unwrap();
        let here = accept(listener.as_fd()).unwrap();
        assert!(is_admitted(here.as_fd(), &Trust::Insecure) && accept(listener.as_fd()).is_none());
        send(there.as_fd(), Message::Refuse, None).unwrap();
        assert!(matches!(receive(here.as_fd()), Received::Message(Message::Refuse, None)));
        drop(listener);
        assert!(connect(name).is_err());
    }
}
