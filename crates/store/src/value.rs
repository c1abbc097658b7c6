//! What a key can hold.
//!
//! Owns: the kinds of values and the borrowed and owned forms in which they pass through interfaces. Does **not** own
//! how an entry stores them.

use crate::hash::Hash;
use crate::list::List;
use crate::number::IntText;
use crate::set::Set;
use crate::zset::Zset;
use std::sync::Arc;

/// The decimal text of `number`, written into `scratch`.
#[inline]
pub(crate) fn render_i64(number: i64, scratch: &mut [u8; 20]) -> &[u8] {
    let mut text = IntText::new();
    let text = text.render(number);
    let (head, _) = scratch.split_at_mut(text.len());
    head.copy_from_slice(text);
    head
}

/// The kinds of values, in the words of `TYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A byte string.
    String,
    /// A list.
    List,
    /// A hash.
    Hash,
    /// A set.
    Set,
    /// A sorted set.
    Zset,
}

impl Kind {
    /// The word that `TYPE` answers and that `SCAN … TYPE` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::List => "list",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::Zset => "zset",
        }
    }
}

/// A borrowed string value.
#[derive(Debug, Clone, Copy)]
pub enum Str<'a> {
    /// Stored as an integer; its text is the canonical decimal form.
    Int(i64),
    /// Stored as bytes.
    Bytes(&'a [u8]),
    /// Stored as a shared block, which a reply can keep without a copy.
    Shared(&'a Arc<Vec<u8>>),
}

impl<'a> Str<'a> {
    /// The text; an integer is rendered into `scratch`.
    #[inline]
    pub fn bytes(self, scratch: &'a mut [u8; 20]) -> &'a [u8] {
        match self {
            Self::Int(number) => render_i64(number, scratch),
            Self::Bytes(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    /// A copy of the text.
    pub fn to_vec(self) -> Vec<u8> {
        self.bytes(&mut [0; 20]).to_vec()
    }

    /// Bytes of the text.
    pub fn len(self) -> usize {
        self.bytes(&mut [0; 20]).len()
    }

    /// Whether the text is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// A borrowed value.
#[derive(Debug, Clone, Copy)]
pub enum ValueRef<'a> {
    /// A byte string.
    String(Str<'a>),
    /// A list.
    List(&'a List),
    /// A hash.
    Hash(&'a Hash),
    /// A set.
    Set(&'a Set),
    /// A sorted set.
    Zset(&'a Zset),
}

impl ValueRef<'_> {
    /// A copy that owns itself.
    pub fn to_value(self) -> Value {
        match self {
            Self::String(Str::Int(number)) => Value::Int(number),
            Self::String(Str::Bytes(bytes)) => Value::Bytes(bytes.to_vec()),
            Self::String(Str::Shared(bytes)) => Value::Shared(Arc::new(bytes.to_vec())),
            Self::List(list) => Value::List(list.clone()),
            Self::Hash(hash) => Value::Hash(hash.clone()),
            Self::Set(set) => Value::Set(set.clone()),
            Self::Zset(zset) => Value::Zset(zset.clone()),
        }
    }

    /// Number of elements; 1 for a string. Freeing a value costs about this many steps.
    pub fn elements(self) -> usize {
        match self {
            Self::String(_) => 1,
            Self::List(list) => list.len(),
            Self::Hash(hash) => hash.len(),
            Self::Set(set) => set.len(),
            Self::Zset(zset) => zset.len(),
        }
    }
}

/// A value that belongs to nobody else.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string that is the canonical form of an integer.
    Int(i64),
    /// A string. Becomes an integer when it is stored and is the canonical form of one.
    Bytes(Vec<u8>),
    /// A string in a block of its own, stored as it is.
    Shared(Arc<Vec<u8>>),
    /// A list.
    List(List),
    /// A hash.
    Hash(Hash),
    /// A set.
    Set(Set),
    /// A sorted set.
    Zset(Zset),
}

impl Value {
    /// The value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Int(number) => ValueRef::String(Str::Int(*number)),
            Self::Bytes(bytes) => ValueRef::String(Str::Bytes(bytes)),
            Self::Shared(bytes) => ValueRef::String(Str::Shared(bytes)),
            Self::List(list) => ValueRef::List(list),
            Self::Hash(hash) => ValueRef::Hash(hash),
            Self::Set(set) => ValueRef::Set(set),
            Self::Zset(zset) => ValueRef::Zset(zset),
        }
    }
}
