//! What is said on a link, as bytes.
//!
//! Owns the header of every frame. A body of `length` bytes may follow it.
//!
//! ```text
//!  0      1        2       4       8      16        24       28      32
//!  | kind | status | flags | sum   | id   | address | length | zero  | body ...      all numbers big endian
//! ```

/// Bytes of a header.
pub(super) const HEADER_LEN: usize = 32;

/// The header carries a CRC-32C of the body.
const HAS_SUM: u16 = 1;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Apply the body at `address`, then say [`Kind::Applied`].
    Write,
    /// Send `length` bytes at `address`, as [`Kind::Data`]. No body, whatever `length` says.
    Read,
    /// The write `id` is applied, or not: see the status. No body.
    Applied,
    /// The body is what read `id` asked for.
    Data,
    /// The body is notification number `id`.
    Notify,
    /// Notifications up to number `id` are taken by the life `address`. No body.
    Acknowledge,
    /// There is room for notifications again: send what is not acknowledged. No body.
    Again,
    /// What do you have? No body.
    Describe,
    /// The body is a description of a segment.
    Description,
}

const KINDS: [Kind; 9] = [
    Kind::Write,
    Kind::Read,
    Kind::Applied,
    Kind::Data,
    Kind::Notify,
    Kind::Acknowledge,
    Kind::Again,
    Kind::Describe,
    Kind::Description,
];

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// As asked.
    Done,
    /// The range is not for this.
    Refused,
    /// The body is not what its sum says.
    Corrupt,
}

const ANSWERS: [Answer; 3] = [Answer::Done, Answer::Refused, Answer::Corrupt];

/// See the module's picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) answer: Answer,
    pub(super) sum: Option<u32>,
    pub(super) id: u64,
    pub(super) address: u64,
    pub(super) length: u32,
}

impl Header {
    pub(super) fn new(kind: Kind, id: u64) -> Self {
        Self { kind, answer: Answer::Done, sum: None, id, address: 0, length: 0 }
    }

    /// Bytes that follow the header.
    pub(super) fn body_len(&self) -> usize {
        match self.kind {
            Kind::Write | Kind::Data | Kind::Notify | Kind::Description => self.length as usize,
            Kind::Read | Kind::Applied | Kind::Acknowledge | Kind::Again | Kind::Describe => 0,
        }
    }

    pub(super) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = self.kind as u8 + 1;
        bytes[1] = self.answer as u8;
        bytes[2..4].copy_from_slice(&(if self.sum.is_some() { HAS_SUM } else { 0 }).to_be_bytes());
        bytes[4..8].copy_from_slice(&self.sum.unwrap_or_default().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.id.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.address.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// `None` for what no peer of this version says.
    pub(super) fn parse(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let kind = *KINDS.get(usize::from(bytes[0].checked_sub(1)?))?;
        let answer = *ANSWERS.get(usize::from(bytes[1]))?;
        let (short, rest) = bytes[2..].split_first_chunk::<2>()?;
        let (sum, rest) = rest.split_first_chunk::<4>()?;
        let (id, rest) = rest.split_first_chunk::<8>()?;
        let (address, rest) = rest.split_first_chunk::<8>()?;
        let (length, zero) = rest.split_first_chunk::<4>()?;
        let sum = match (u16::from_be_bytes(*short), u32::from_be_bytes(*sum)) {
            (HAS_SUM, sum) => Some(sum),
            (0, 0) => None,
            _ => return None,
        };
        let (id, address) = (u64::from_be_bytes(*id), u64::from_be_bytes(*address));
        let length = u32::from_be_bytes(*length);
        (zero == [0; 4]).then_some(Self { kind, answer, sum, id, address, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for kind in KINDS {
            for (answer, sum) in ANSWERS.into_iter().zip([None, Some(0), Some(u32::MAX)]) {
                let header = Header { kind, answer, sum, id: 1 << 60, address: u64::MAX, length: 7 };
                assert_eq!(Header::parse(&header.encode()), Some(header));
            }
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let sound = Header::new(Kind::Read, 1).encode();
        for (at, byte) in [(0, 0), (0, 10), (1, 3), (2, 1), (3, 2), (7, 1), (28, 1), (31, 1)] {
            let mut bytes = sound;
            bytes[at] = byte;
            assert_eq!(Header::parse(&bytes), None, "byte {at} is {byte}");
        }
    }
}
