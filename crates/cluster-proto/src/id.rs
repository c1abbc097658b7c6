//! Names of nodes, shards, clusters and migrations: 20 random bytes, written as 40 hex digits, as in Redis.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// 20 bytes that name a node, a shard, a cluster or a migration. Whoever makes one draws it at random.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId([u8; Self::BYTES]);

impl NodeId {
    /// Length in bytes; twice as many hex digits.
    pub const BYTES: usize = 20;

    /// The name with these bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The next one in order; after the last comes the first.
    pub(crate) fn next(mut self) -> Self {
        for byte in self.0.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        self
    }

    /// Reads 40 hex digits, as a client types them.
    ///
    /// # Errors
    /// [`IdError`] for anything else; the client's fault.
    pub fn parse(text: &[u8]) -> Result<Self, IdError> {
        if text.len() != 2 * Self::BYTES {
            return Err(IdError);
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |c: u8| (c as char).to_digit(16).ok_or(IdError);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Ok(Self(bytes))
    }
}

/// The text is no name of a node: not 40 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a name of 40 hex digits")]
pub struct IdError;

impl FromStr for NodeId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text.as_bytes())
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_name_carries_over_bytes() {
        let mut bytes = [0; NodeId::BYTES];
        bytes[19] = 255;
        let next = NodeId::from_bytes(bytes).next();
        assert_eq!(next.as_bytes()[18..], [1, 0]);
        assert_eq!(NodeId::from_bytes([255; NodeId::BYTES]).next(), NodeId::from_bytes([0; NodeId::BYTES]));
    }

    #[test]
    fn forty_hex_digits_and_nothing_else() {
        let text = "00112233445566778899aabbccddeeff01234567";
        let id: NodeId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(NodeId::parse(text.to_uppercase().as_bytes()), Ok(id));
        for bad in
            ["", "00", &text[1..], &format!("{text}0"), &text.replace('0', "g"), &text.replace('0', "+")]
        {
            assert_eq!(NodeId::parse(bad.as_bytes()), Err(IdError), "{bad}");
        }
    }
}
