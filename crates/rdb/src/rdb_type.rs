//! RDB type bytes and versions.
//!
//! Owns the assignment of numbers, which Redis and Valkey no longer share: byte 22 is one thing in the
//! versions of Redis and another in those of Valkey. Does not own the bodies (`object` does).

use std::fmt;

use crate::error::ObjectError;

/// The newest RDB version of Redis that is understood: that of Redis 7.4 to 8.2.
pub const VERSION_REDIS_MAX: u16 = 12;
/// The RDB version of Valkey 9; it left 12 to 79 to Redis.
pub const VERSION_VALKEY: u16 = 80;

/// The type of a value in RDB and DUMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RdbType {
    /// 0: a string.
    String,
    /// 1: a list of strings.
    List,
    /// 2: a set of strings.
    Set,
    /// 3: a sorted set with scores as text.
    Zset,
    /// 4: a hash of strings.
    Hash,
    /// 5: a sorted set with binary scores.
    Zset2,
    /// 6: a module value of an unreleased form.
    ModulePreGa,
    /// 7: a module value.
    Module2,
    /// 9: a hash as one zipmap.
    HashZipmap,
    /// 10: a list as one ziplist.
    ListZiplist,
    /// 11: a set as one intset.
    SetIntset,
    /// 12: a sorted set as one ziplist.
    ZsetZiplist,
    /// 13: a hash as one ziplist.
    HashZiplist,
    /// 14: a list as ziplists.
    ListQuicklist,
    /// 15: a stream.
    StreamListpacks,
    /// 16: a hash as one listpack.
    HashListpack,
    /// 17: a sorted set as one listpack.
    ZsetListpack,
    /// 18: a list as listpacks and plain strings.
    ListQuicklist2,
    /// 19: a stream with the first ID and counters.
    StreamListpacks2,
    /// 20: a set as one listpack.
    SetListpack,
    /// 21: a stream with active times of consumers.
    StreamListpacks3,
    /// 22 in Redis: a hash with absolute field expiry, from the release candidates of 7.4.
    HashMetadataPreGa,
    /// 23: a hash with field expiry as one listpack, from the release candidates of 7.4.
    HashListpackExPreGa,
    /// 24: a hash with field expiry relative to the earliest one.
    HashMetadata,
    /// 25: a hash with field expiry as one listpack of triples.
    HashListpackEx,
    /// 22 in Valkey: a hash with absolute field expiry, -1 for none.
    HashValkey,
}

impl RdbType {
    /// The type that `byte` stands for in RDB version `version`.
    ///
    /// # Errors
    /// [`ObjectError::UnknownType`] when the number is not assigned.
    pub const fn from_byte(byte: u8, version: u16) -> Result<Self, ObjectError> {
        Ok(match byte {
            0 => Self::String,
            1 => Self::List,
            2 => Self::Set,
            3 => Self::Zset,
            4 => Self::Hash,
            5 => Self::Zset2,
            6 => Self::ModulePreGa,
            7 => Self::Module2,
            9 => Self::HashZipmap,
            10 => Self::ListZiplist,
            11 => Self::SetIntset,
            12 => Self::ZsetZiplist,
            13 => Self::HashZiplist,
            14 => Self::ListQuicklist,
            15 => Self::StreamListpacks,
            16 => Self::HashListpack,
            17 => Self::ZsetListpack,
            18 => Self::ListQuicklist2,
            19 => Self::StreamListpacks2,
            20 => Self::SetListpack,
            21 => Self::StreamListpacks3,
            22 if version >= VERSION_VALKEY => Self::HashValkey,
            22 => Self::HashMetadataPreGa,
            23 if version < VERSION_VALKEY => Self::HashListpackExPreGa,
            24 if version < VERSION_VALKEY => Self::HashMetadata,
            25 if version < VERSION_VALKEY => Self::HashListpackEx,
            _ => return Err(ObjectError::UnknownType(byte)),
        })
    }

    /// The number on the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::String => 0,
            Self::List => 1,
            Self::Set => 2,
            Self::Zset => 3,
            Self::Hash => 4,
            Self::Zset2 => 5,
            Self::ModulePreGa => 6,
            Self::Module2 => 7,
            Self::HashZipmap => 9,
            Self::ListZiplist => 10,
            Self::SetIntset => 11,
            Self::ZsetZiplist => 12,
            Self::HashZiplist => 13,
            Self::ListQuicklist => 14,
            Self::StreamListpacks => 15,
            Self::HashListpack => 16,
            Self::ZsetListpack => 17,
            Self::ListQuicklist2 => 18,
            Self::StreamListpacks2 => 19,
            Self::SetListpack => 20,
            Self::StreamListpacks3 => 21,
            Self::HashMetadataPreGa | Self::HashValkey => 22,
            Self::HashListpackExPreGa => 23,
            Self::HashMetadata => 24,
            Self::HashListpackEx => 25,
        }
    }
}

impl fmt::Display for RdbType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({self:?})", self.byte())
    }
}

/// Whether payloads of RDB version `version` are understood.
pub(crate) const fn is_known_version(version: u16) -> bool {
    matches!(version, 1..=VERSION_REDIS_MAX | VERSION_VALKEY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_types_agree_in_both_families() {
        for version in [VERSION_REDIS_MAX, VERSION_VALKEY] {
            for byte in 0..=u8::MAX {
                match RdbType::from_byte(byte, version) {
                    Ok(rdb_type) => assert_eq!(rdb_type.byte(), byte),
                    Err(error) => assert_eq!(error, ObjectError::UnknownType(byte)),
                }
            }
        }
        assert_eq!(RdbType::from_byte(22, 12), Ok(RdbType::HashMetadataPreGa));
        assert_eq!(RdbType::from_byte(22, 80), Ok(RdbType::HashValkey));
        assert!(RdbType::from_byte(24, 80).is_err());
    }
}
