//! Frames between the two nodes of a migration.
//!
//! Owns: their bytes, and the bounds of what is read. Does **not** own when which may be sent: the machines do.
//!
//! A frame is its length (u32, without itself), its kind (u8) and its fields; numbers are little-endian. What a peer sends is untrusted:
//! every length is checked before anything is kept for it.

use crate::id::NodeId;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Most bytes of a batch in one frame. 1 MiB: other frames wait behind it for 8 ms at 1 Gbit/s.
pub const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Longest reason in a frame, in bytes.
pub const REASON_BYTES_MAX: usize = 256;

const LENGTH_BYTES: usize = 4;

/// What is said between the nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Source: this is a link for that migration.
    Hello {
        /// The version of the frames that follow.
        version: u16,
        /// Which migration.
        migration: NodeId,
        /// The source.
        source: NodeId,
        /// How many times the source has begun, this one included.
        attempt: u32,
    },
    /// Target: begin.
    Welcome {
        /// The version of the frames that follow; at most that of the `Hello`.
        version: u16,
        /// Bytes of batches that may be unacknowledged.
        window: u64,
    },
    /// Source: a batch of the stream begins. Its lanes follow in [`Frame::Chunk`]s, images first.
    Batch {
        /// The position before its first effect.
        position_before: u64,
        /// That of its last one.
        position: u64,
        /// Whether it completes the snapshot, or comes after it.
        is_snapshot_done: bool,
        /// Bytes of images.
        image_bytes: u64,
        /// Bytes of effects.
        unit_bytes: u64,
    },
    /// Source: the next bytes of the batch.
    Chunk(Bytes),
    /// Target: this much is applied.
    Ack {
        /// The position of the last effect that is.
        position: u64,
        /// Bytes of all batches that are.
        bytes: u64,
    },
    /// Source: the slots are parked, and this is the last position there is.
    Final {
        /// The position.
        position: u64,
    },
    /// Target: everything up to there is applied, and as durable as this node makes things.
    Ready {
        /// The position.
        position: u64,
    },
    /// Either: nothing comes of this link.
    Abort {
        /// Why, at most [`REASON_BYTES_MAX`] bytes.
        reason: String,
    },
    /// Either: I am here.
    Keepalive,
}

/// Bytes that are no frame; the peer's fault. The link is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Longer than any frame may be.
    #[error("a frame of {0} bytes")]
    TooLong(u64),
    /// No frame has this kind.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// A frame of this kind has another length.
    #[error("a frame of the kind {0} with the wrong length")]
    Length(u8),
}

/// The longest frame: a chunk.
const FRAME_BYTES_MAX: usize = 1 + CHUNK_BYTES_MAX;

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Welcome { .. } => 2,
            Self::Batch { .. } => 3,
            Self::Chunk(_) => 4,
            Self::Ack { .. } => 5,
            Self::Final { .. } => 6,
            Self::Ready { .. } => 7,
            Self::Abort { .. } => 8,
            Self::Keepalive => 9,
        }
    }

    /// Appends the frame, its length included.
    ///
    /// # Panics
    /// If a chunk is longer than [`CHUNK_BYTES_MAX`]: the machines do not make such.
    pub fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        out.put_u32_le(0);
        out.put_u8(self.kind());
        match self {
            Self::Hello { version, migration, source, attempt } => {
                out.put_u16_le(*version);
                out.put_slice(migration.as_bytes());
                out.put_slice(source.as_bytes());
                out.put_u32_le(*attempt);
            }
            Self::Welcome { version, window } => {
                out.put_u16_le(*version);
                out.put_u64_le(*window);
            }
            Self::Batch { position_before, position, is_snapshot_done, image_bytes, unit_bytes } => {
                out.put_u64_le(*position_before);
                out.put_u64_le(*position);
                out.put_u8(u8::from(*is_snapshot_done));
                out.put_u64_le(*image_bytes);
                out.put_u64_le(*unit_bytes);
            }
            Self::Chunk(bytes) => {
                assert!(bytes.len() <= CHUNK_BYTES_MAX, "a chunk of {} bytes", bytes.len());
                out.put_slice(bytes);
            }
            Self::Ack { position, bytes } => {
                out.put_u64_le(*position);
                out.put_u64_le(*bytes);
            }
            Self::Final { position } | Self::Ready { position } => out.put_u64_le(*position),
            Self::Abort { reason } => {
                let end = reason.floor_char_boundary(REASON_BYTES_MAX);
                out.put_slice(&reason.as_bytes()[..end]);
            }
            Self::Keepalive => {}
        }
        let length = (out.len() - start - LENGTH_BYTES) as u32;
        out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    /// Takes the next frame out of what was read; `None` if it is not complete yet.
    ///
    /// # Errors
    /// [`WireError`]; what follows cannot be read either.
    pub fn decode(buf: &mut BytesMut) -> Result<Option<Self>, WireError> {
        let Some((length, rest)) = buf.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length);
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        if size > FRAME_BYTES_MAX {
            return Err(WireError::TooLong(length.into()));
        }
        if rest.len() < size {
            return Ok(None);
        }
        buf.advance(LENGTH_BYTES);
        let mut body = buf.split_to(size).freeze();
        let kind = body.try_get_u8().map_err(|_| WireError::Length(0))?;
        let frame = Self::decode_body(kind, &mut body)?;
        if body.has_remaining() { Err(WireError::Length(kind)) } else { Ok(Some(frame)) }
    }

    fn decode_body(kind: u8, body: &mut Bytes) -> Result<Self, WireError> {
        let short = |_| WireError::Length(kind);
        let id = |body: &mut Bytes| {
            let mut bytes = [0; NodeId::BYTES];
            body.try_copy_to_slice(&mut bytes).map_err(|_| WireError::Length(kind))?;
            Ok(NodeId::from_bytes(bytes))
        };
        Ok(match kind {
            1 => Self::Hello {
                version: body.try_get_u16_le().map_err(short)?,
                migration: id(body)?,
                source: id(body)?,
                attempt: body.try_get_u32_le().map_err(short)?,
            },
            2 => Self::Welcome {
                version: body.try_get_u16_le().map_err(short)?,
                window: body.try_get_u64_le().map_err(short)?,
            },
            3 => Self::Batch {
                position_before: body.try_get_u64_le().map_err(short)?,
                position: body.try_get_u64_le().map_err(short)?,
                is_snapshot_done: body.try_get_u8().map_err(short)? != 0,
                image_bytes: body.try_get_u64_le().map_err(short)?,
                unit_bytes: body.try_get_u64_le().map_err(short)?,
            },
            4 => Self::Chunk(body.split_off(0)),
            5 => Self::Ack {
                position: body.try_get_u64_le().map_err(short)?,
                bytes: body.try_get_u64_le().map_err(short)?,
            },
            6 => Self::Final { position: body.try_get_u64_le().map_err(short)? },
            7 => Self::Ready { position: body.try_get_u64_le().map_err(short)? },
            8 if body.len() > REASON_BYTES_MAX => return Err(WireError::Length(kind)),
            8 => Self::Abort { reason: String::from_utf8_lossy(&body.split_off(0)).into_owned() },
            9 => Self::Keepalive,
            other => return Err(WireError::Kind(other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame() -> impl Strategy<Value = Frame> {
        let id = || any::<[u8; 20]>().prop_map(NodeId::from_bytes);
        prop_oneof![
            (any::<u16>(), id(), id(), any::<u32>()).prop_map(|(version, migration, source, attempt)| {
                Frame::Hello { version, migration, source, attempt }
            }),
            (any::<u16>(), any::<u64>()).prop_map(|(version, window)| Frame::Welcome { version, window }),
            (any::<[u64; 4]>(), any::<bool>()).prop_map(|(numbers, is_snapshot_done)| Frame::Batch {
                position_before: numbers[0],
                position: numbers[1],
                is_snapshot_done,
                image_bytes: numbers[2],
                unit_bytes: numbers[3],
            }),
            prop::collection::vec(any::<u8>(), 0..100).prop_map(|bytes| Frame::Chunk(bytes.into())),
            any::<(u64, u64)>().prop_map(|(position, bytes)| Frame::Ack { position, bytes }),
            any::<u64>().prop_map(|position| Frame::Final { position }),
            any::<u64>().prop_map(|position| Frame::Ready { position }),
            "[a-z]{0,40}".prop_map(|reason| Frame::Abort { reason }),
            Just(Frame::Keepalive),
        ]
    }

    proptest! {
        #[test]
        fn frames_survive_any_cut(frames in prop::collection::vec(frame(), 0..8), cuts in prop::collection::vec(1..40usize, 1..40)) {
            let mut bytes = BytesMut::new();
            frames.iter().for_each(|frame| frame.encode(&mut bytes));
            let (mut read, mut buf, mut cuts) = (Vec::new(), BytesMut::new(), cuts.into_iter().cycle());
            while !bytes.is_empty() {
                let cut = cuts.next().unwrap_or(1).min(bytes.len());
                buf.extend_from_slice(&bytes.split_to(cut));
                while let Some(frame) = Frame::decode(&mut buf).unwrap() {
                    read.push(frame);
                }
            }
            prop_assert_eq!(read, frames);
            prop_assert!(buf.is_empty());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..12u8, length in 0..200u32) {
            // As they come, and behind a head that leads into each kind.
            let mut whole = BytesMut::from(bytes.as_slice());
            while let Ok(Some(_)) = Frame::decode(&mut whole) {}
            let mut led = BytesMut::new();
            led.put_u32_le(length);
            led.put_u8(kind);
            led.put_slice(&bytes);
            while let Ok(Some(_)) = Frame::decode(&mut led) {}
        }
    }

    #[test]
    fn lengths_are_checked_before_anything_is_kept() {
        let decode = |bytes: &[u8]| Frame::decode(&mut BytesMut::from(bytes));
        let long = (FRAME_BYTES_MAX as u32 + 1).to_le_bytes();
        assert_eq!(decode(&long), Err(WireError::TooLong(FRAME_BYTES_MAX as u64 + 1)));
        assert_eq!(decode(&[0, 0, 0, 0]), Err(WireError::Length(0)));
        assert_eq!(decode(&[1, 0, 0, 0, 77]), Err(WireError::Kind(77)));
        assert_eq!(decode(&[2, 0, 0, 0, 9, 0]), Err(WireError::Length(9)), "a byte too many");
        assert_eq!(decode(&[2, 0, 0, 0, 6, 0]), Err(WireError::Length(6)), "seven too few");
        let mut bytes = BytesMut::new();
        Frame::Abort { reason: "\u{e9}".repeat(200) }.encode(&mut bytes);
        assert_eq!(Frame::decode(&mut bytes), Ok(Some(Frame::Abort { reason: "\u{e9}".repeat(128) })));
    }
}
