//! Who may shake hands.
//!
//! Owns: tags on handshake frames and on the preambles of further lanes, made and checked. Does **not** own the frames
//! ([`towline_transfer_proto::wire`]).
//!
//! With a key, a tag is the HMAC-SHA-256 of everything before it, and is compared in constant time before anything else of the
//! frame is believed. Without one it is zero, and must be: so an engine with a key and one without do not understand each
//! other by accident. What protects against recordings are the nonces and attempts of the protocol.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use towline_transfer_proto::wire::{self, Frame, Message, TAG_LEN};

use crate::config::Trust;

/// What the preamble of a further lane begins with.
const JOIN_MAGIC: [u8; 4] = *b"TWLJ";

/// Bytes of a preamble: magic, token, lane, tag.
pub(super) const JOIN_LEN: usize = 4 + 16 + 2 + TAG_LEN;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Seal {
    trust: Trust,
}

impl Seal {
    pub(super) fn new(trust: Trust) -> Self {
        Self { trust }
    }

    /// Appends a message with its tag.
    pub(super) fn encode(&self, message: &Message, out: &mut Vec<u8>) {
        let start = out.len();
        let tag = wire::encode(message, out);
        let sealed = self.tag(&out[start..tag.start]);
        out[tag].copy_from_slice(&sealed);
    }

    /// Whether the frame is from somebody who may say it.
    pub(super) fn is_genuine(&self, frame: &Frame<'_>) -> bool {
        self.checks(frame.signed, frame.tag)
    }

    /// The preamble of a further lane.
    pub(super) fn join(&self, token: &[u8; 16], lane: u16) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(JOIN_LEN);
        bytes.extend_from_slice(&JOIN_MAGIC);
        bytes.extend_from_slice(token);
        bytes.extend_from_slice(&lane.to_be_bytes());
        let tag = self.tag(&bytes);
        bytes.extend_from_slice(&tag);
        bytes
    }

    /// The token and lane of a genuine preamble.
    pub(super) fn joined(&self, bytes: &[u8; JOIN_LEN]) -> Option<([u8; 16], u16)> {
        let (signed, tag) = bytes.split_last_chunk::<TAG_LEN>()?;
        if !self.checks(signed, tag) {
            return None;
        }
        let (token, lane) = signed.strip_prefix(&JOIN_MAGIC)?.split_first_chunk::<16>()?;
        Some((*token, u16::from_be_bytes(lane.try_into().ok()?)))
    }

    fn tag(&self, signed: &[u8]) -> [u8; TAG_LEN] {
        match &self.trust {
            Trust::Key(key) => mac(key, signed).finalize().into_bytes().into(),
            Trust::Insecure => [0; TAG_LEN],
        }
    }

    fn checks(&self, signed: &[u8], tag: &[u8; TAG_LEN]) -> bool {
        match &self.trust {
            // In constant time.
            Trust::Key(key) => mac(key, signed).verify_slice(tag).is_ok(),
            Trust::Insecure => *tag == [0; TAG_LEN],
        }
    }
}

/// Whether these bytes begin a preamble.
pub(super) fn is_join(bytes: &[u8]) -> bool {
    bytes.starts_with(&JOIN_MAGIC)
}

fn mac(key: &[u8], signed: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("invariant: HMAC takes keys of any length");
    mac.update(signed);
    mac
}

#[cfg(test)]
mod tests {
    use towline_transfer_proto::{Incarnation, NodeId, Process};

    use super::*;

    fn seal(key: &str) -> Seal {
        Seal::new(Trust::key(key))
    }

    fn frame(seal: &Seal) -> Vec<u8> {
        let from = Process { node: NodeId(1), incarnation: Incarnation(2) };
        let mut bytes = Vec::new();
        seal.encode(&Message::Bye { from }, &mut bytes);
        bytes
    }

    #[test]
    fn a_frame_is_genuine_with_the_same_key_and_unchanged() {
        let (ours, theirs) = (seal("sixteen bytes ok"), seal("another 16 bytes"));
        let open = Seal::new(Trust::Insecure);
        let mut bytes = frame(&ours);
        let is_genuine = |seal: &Seal, bytes: &[u8]| {
            Frame::parse(bytes).unwrap().is_some_and(|frame| seal.is_genuine(&frame))
        };
        assert!(is_genuine(&ours, &bytes) && !is_genuine(&theirs, &bytes) && !is_genuine(&open, &bytes));
        assert!(is_genuine(&open, &frame(&open)) && !is_genuine(&ours, &frame(&open)));
        let last = bytes.len() - 1;
        for at in [wire::HEADER_LEN, last] {
            bytes[at] ^= 1;
            assert!(!is_genuine(&ours, &bytes));
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn a_preamble_is_genuine_with_the_same_key_and_unchanged() {
        let (ours, theirs) = (seal("sixteen bytes ok"), seal("another 16 bytes"));
        let mut bytes: [u8; JOIN_LEN] = ours.join(&[7; 16], 3).try_into().unwrap();
        assert!(is_join(&bytes));
        assert_eq!(ours.joined(&bytes), Some(([7; 16], 3)));
        assert_eq!(theirs.joined(&bytes), None);
        bytes[21] ^= 1;
        assert_eq!(ours.joined(&bytes), None);
    }
}
