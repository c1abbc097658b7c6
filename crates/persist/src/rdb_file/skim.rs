//! Finds where things end in bytes that may not have arrived whole.
//!
//! Owns the difference between "more bytes are needed" and "wrong", and the layout of each type as far as its
//! extent depends on it. Does not own decoding.

use std::borrow::Cow;

use towline_rdb::length::read_string;
use towline_rdb::{Limits, ObjectError, RdbType, Reader};

/// Why skimming stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The slice must hold this many bytes at least before another try can get further.
    More(u64),
    /// No continuation makes it right.
    Bad { at: usize, error: ObjectError },
}

/// A position in the bytes so far.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    limits: Limits,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize, limits: Limits) -> Self {
        Self { bytes, at, limits }
    }

    /// The bytes that arrived and were not passed.
    pub(super) fn available(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, count: u64) -> Result<&'a [u8], Stop> {
        let end = (self.at as u64).saturating_add(count);
        match usize::try_from(end).ok().and_then(|end| self.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(Stop::More(end)),
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Stop> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn bad<T>(&self, at: usize, error: ObjectError) -> Result<T, Stop> {
        debug_assert!(at <= self.bytes.len());
        Err(Stop::Bad { at, error })
    }

    /// Reads a length.
    pub(super) fn length(&mut self) -> Result<u64, Stop> {
        let at = self.at;
        match self.length_or_form()? {
            Form::Bytes(length) => Ok(length),
            Form::Integer(_) | Form::Lzf => {
                self.bad(at, ObjectError::Malformed { encoding: "length", reason: "unknown form" })
            }
        }
    }

    fn length_or_form(&mut self) -> Result<Form, Stop> {
        let at = self.at;
        let first = self.byte()?;
        Ok(match (first >> 6, first) {
            (0, _) => Form::Bytes(first.into()),
            (1, _) => Form::Bytes(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            (_, 0x80) => Form::Bytes(u32::from_be_bytes(self.array()?).into()),
            (_, 0x81) => Form::Bytes(u64::from_be_bytes(self.array()?)),
            (_, 0xc0..=0xc2) => Form::Integer(1 << (first & 3)),
            (_, 0xc3) => Form::Lzf,
            _ => {
                return self.bad(at, ObjectError::Malformed { encoding: "string", reason: "unknown form" });
            }
        })
    }

    /// Reads what stands before a string's bytes; how many bytes follow. The limits are not asked.
    pub(super) fn string_head(&mut self) -> Result<u64, Stop> {
        Ok(match self.length_or_form()? {
            Form::Bytes(bytes) | Form::Integer(bytes) => bytes,
            Form::Lzf => {
                let block_bytes = self.length()?;
                self.length()?;
                block_bytes
            }
        })
    }

    /// Passes a string in any form. Sizes beyond the limits are refused before the bytes are waited for.
    pub(super) fn pass_string(&mut self) -> Result<(), Stop> {
        let at = self.at;
        let bytes = self.string_head()?;
        let bytes_max = self.limits.string_bytes_max;
        if bytes > bytes_max {
            return self.bad(at, ObjectError::TooLarge { bytes, bytes_max });
        }
        self.take(bytes).map(drop)
    }

    /// Reads a string.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>, Stop> {
        let at = self.at;
        self.pass_string()?;
        let mut reader = Reader::new(&self.bytes[at..self.at], self.limits);
        read_string(&mut reader).map_err(|error| Stop::Bad { at, error })
    }
}

/// How a string is stored.
enum Form {
    /// As this many bytes.
    Bytes(u64),
    /// As an integer of this many bytes.
    Integer(u64),
    /// Compressed; two lengths follow.
    Lzf,
}

/// The shape of a value's body, as far as its extent depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `head_bytes` and one string.
    Packed { head_bytes: u64 },
    /// `head_bytes`, a count, and as many units.
    Counted { head_bytes: u64, unit: Unit },
    /// Not decoded: passed over by `skip`.
    Foreign,
}

/// One element of a counted body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// A string.
    String,
    /// A string and a score as text.
    TextScored,
    /// A string and a binary score.
    Scored,
    /// Two strings.
    Pair,
    /// A length and two strings.
    LengthPair,
    /// Two strings and a time.
    PairTime,
    /// A length and a string.
    Node,
}

pub(super) const fn layout(rdb_type: RdbType) -> Layout {
    use RdbType as T;
    let (head_bytes, unit) = match rdb_type {
        T::String
        | T::ListZiplist
        | T::SetIntset
        | T::SetListpack
        | T::ZsetZiplist
        | T::ZsetListpack
        | T::HashZiplist
        | T::HashListpack
        | T::HashListpackExPreGa
        | T::HashZipmap => return Layout::Packed { head_bytes: 0 },
        T::HashListpackEx => return Layout::Packed { head_bytes: 8 },
        T::List | T::Set | T::ListQuicklist => (0, Unit::String),
        T::Zset => (0, Unit::TextScored),
        T::Zset2 => (0, Unit::Scored),
        T::Hash => (0, Unit::Pair),
        T::HashMetadata => (8, Unit::LengthPair),
        T::HashMetadataPreGa => (0, Unit::LengthPair),
        T::HashValkey => (0, Unit::PairTime),
        T::ListQuicklist2 => (0, Unit::Node),
        _ => return Layout::Foreign,
    };
    Layout::Counted { head_bytes, unit }
}

impl Unit {
    /// Passes one unit.
    pub(super) fn pass(self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        if matches!(self, Self::LengthPair | Self::Node) {
            cursor.length()?;
        }
        cursor.pass_string()?;
        match self {
            Self::String | Self::Node => Ok(()),
            Self::TextScored => match cursor.byte()? {
                // One byte for what is no finite number.
                253.. => Ok(()),
                length => cursor.take(length.into()).map(drop),
            },
            Self::Scored => cursor.take(8).map(drop),
            Self::Pair | Self::LengthPair => cursor.pass_string(),
            Self::PairTime => {
                cursor.pass_string()?;
                cursor.take(8).map(drop)
            }
        }
    }
}
