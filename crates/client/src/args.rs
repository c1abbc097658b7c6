// Long because: the table of `ToArgs` is one list of types.
//! Arguments of commands: what Rust values are on the wire.
//!
//! Owns [`ToArgs`] and [`Args`], the buffer in which arguments are encoded as they are given. Does **not** own what a
//! command means ([`Cmd`](crate::Cmd)), nor the array header before the arguments, which needs their number and is
//! written when the command is submitted.

use bytes::Bytes;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use towline_resp::double::format_double;
use towline_spec::ArgList;

/// Encoded bytes that need no allocation: `SET` with a key and a value of 45 bytes each fits.
const INLINE_BYTES: usize = 128;

/// [`Bytes`] of this length or more are sent from where they are, in bytes. Below it copying is cheaper than one more
/// element of `writev`.
pub const SHARED_BYTES_MIN: usize = 4096;

/// How many arguments are looked at without an allocation.
const VIEW_COUNT: usize = 16;

/// Arguments up to this are encoded in one step. Two digits tell their length.
const SHORT_BYTES_MAX: usize = 64;

/// `$`, two digits and two line ends.
const SHORT_OVERHEAD: usize = 7;

const LINE_END: &[u8] = b"\r\n";

/// A value that gives arguments to a command: none, one or several.
///
/// | value | arguments |
/// |---|---|
/// | `&str`, `String`, `char` | one, its UTF-8 |
/// | `&[u8]`, `Vec<u8>`, `[u8; N]`, `b"..."` | one, these bytes |
/// | [`Bytes`] | one; not copied from [`SHARED_BYTES_MIN`] on |
/// | integers | one, decimal |
/// | `f32`, `f64` | one: the short digits that read back as the same number; `inf`, `-inf` |
/// | `bool` | one: `1` or `0` |
/// | `Option` | those of the value, or none |
/// | tuples, slices, arrays, `Vec`, sets | those of each element in turn |
/// | maps | each key's and its value's in turn |
/// | own structs | each field's name and value, by `#[derive(ToArgs)]`; see [the macro](derive@crate::ToArgs) |
/// | own enums | one, a word, by the same |
///
/// A `u8` by itself is a number; several of them are a string of bytes.
///
/// ```
/// use towline_client::cmd;
///
/// let set = cmd("SET").arg("key").arg(b"value").arg(("EX", 60)).arg(Option::<&str>::None);
/// let args: Vec<&[u8]> = set.args().collect();
/// assert_eq!(args, [&b"SET"[..], b"key", b"value", b"EX", b"60"]);
/// ```
pub trait ToArgs {
    /// Appends the arguments.
    fn write_args(&self, args: &mut Args);

    /// Appends the arguments of several values: those of each in turn. Only `u8`, of which several are one string,
    /// does otherwise.
    fn write_slice_args(values: &[Self], args: &mut Args)
    where
        Self: Sized,
    {
        for value in values {
            value.write_args(args);
        }
    }
}

/// A value that gives one argument, or none if it is an `Option`: what a hash's field, and any other place for exactly one,
/// can take. Numbers, strings, booleans, what points to them, newtypes of them; no lists.
///
/// ```compile_fail
/// #[derive(towline_client::ToArgs)]
/// struct Post {
///     title: String,
///     tags: Vec<String>, // `Vec<String>` may give several arguments, and here is place for one
/// }
/// ```
///
/// Say so for a type of your own by `impl ToArg for MyType {}`; `#[derive(ToArgs)]` says it for newtypes and enums.
#[diagnostic::on_unimplemented(
    message = "`{Self}` may give several arguments, and here is place for one",
    note = "lists cannot be fields of a hash: join them into one string, or skip the field",
    note = "a type of your own that gives one argument says so by `impl towline_client::ToArg for {Self} {{}}`"
)]
pub trait ToArg: ToArgs {}

/// Encoded arguments: `$length\r\n...\r\n` for each.
///
/// Long [`Bytes`] stay where they are and are only noted; all else is copied when it is appended.
#[derive(Clone, Default)]
pub struct Args {
    encoded: SmallVec<[u8; INLINE_BYTES]>,
    shared: Vec<Shared>,
    shared_len: usize,
    count: usize,
}

/// A payload that stands between the encoded bytes before `at` and those from `at` on.
#[derive(Clone)]
struct Shared {
    at: usize,
    bytes: Bytes,
}

/// A piece of encoded arguments; the pieces in order are the bytes to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// Bytes of the command's own buffer, to be copied.
    Encoded(&'a [u8]),
    /// A long argument, to be sent from where it is; cloning it copies nothing.
    Shared(&'a Bytes),
}

impl Part<'_> {
    /// The bytes, whoever holds them.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Encoded(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Args {
    /// Appends one argument, by copy.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let len = bytes.len();
        if len > SHORT_BYTES_MAX {
            self.open(len);
            self.encoded.extend_from_slice(bytes);
            return self.encoded.extend_from_slice(LINE_END);
        }
        // Put together first: one growth check instead of three, and most arguments are short.
        self.count += 1;
        let mut whole = [0; SHORT_BYTES_MAX + SHORT_OVERHEAD];
        let [tens, ones] = [b'0' + (len / 10) as u8, b'0' + (len % 10) as u8];
        let start = if len < 10 {
            whole[..4].copy_from_slice(&[b'$', ones, b'\r', b'\n']);
            4
        } else {
            whole[..5].copy_from_slice(&[b'$', tens, ones, b'\r', b'\n']);
            5
        };
        whole[start..start + len].copy_from_slice(bytes);
        whole[start + len..start + len + 2].copy_from_slice(LINE_END);
        self.encoded.extend_from_slice(&whole[..start + len + 2]);
    }

    /// Appends one argument; from [`SHARED_BYTES_MIN`] on without a copy.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            return self.push(bytes);
        }
        self.open(bytes.len());
        self.shared.push(Shared { at: self.encoded.len(), bytes: bytes.clone() });
        self.shared_len += bytes.len();
        self.encoded.extend_from_slice(LINE_END);
    }

    /// Appends a name and the value behind it; nothing if the value gives no argument.
    #[cfg(feature = "derive")]
    pub(crate) fn push_pair<T: ToArg + ?Sized>(&mut self, name: &[u8], value: &T) {
        let (start, count) = (self.encoded.len(), self.count);
        self.push(name);
        let end = self.encoded.len();
        value.write_args(self);
        if self.encoded.len() == end {
            self.encoded.truncate(start);
            self.count = count;
        }
    }

    fn open(&mut self, len: usize) {
        self.count += 1;
        self.encoded.push(b'$');
        self.encoded.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
        self.encoded.extend_from_slice(LINE_END);
    }

    /// Appends all arguments of `other`; long [`Bytes`] are not copied.
    fn append(&mut self, other: &Self) {
        let start = self.encoded.len();
        self.encoded.extend_from_slice(&other.encoded);
        let shared = other.shared.iter().map(|shared| Shared { at: start + shared.at, ..shared.clone() });
        self.shared.extend(shared);
        self.shared_len += other.shared_len;
        self.count += other.count;
    }

    /// How many arguments there are.
    #[inline]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no argument.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Length of the encoded arguments in bytes, those that are not copied included.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        self.encoded.len() + self.shared_len
    }

    /// The encoded arguments, in order. Without long [`Bytes`] it is one piece.
    #[inline]
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let starts = std::iter::once(0).chain(self.shared.iter().map(|shared| shared.at));
        let pieces = starts.enumerate().flat_map(|(index, start)| {
            let next = self.shared.get(index);
            let end = next.map_or(self.encoded.len(), |shared| shared.at);
            let encoded = Part::Encoded(&self.encoded[start..end]);
            std::iter::once(encoded).chain(next.map(|shared| Part::Shared(&shared.bytes)))
        });
        pieces.filter(|part| !part.as_slice().is_empty())
    }

    /// The arguments themselves, in order.
    pub fn iter(&self) -> ArgsIter<'_> {
        ArgsIter { args: self, at: 0, shared: 0, left: self.count }
    }

    /// Calls `look` with the arguments by position; allocates for more than a handful of them.
    pub(crate) fn view<'a, T>(&'a self, look: impl FnOnce(&View<'a>) -> T) -> T {
        look(&View(self.iter().collect()))
    }
}

impl ToArgs for Args {
    fn write_args(&self, args: &mut Args) {
        args.append(self);
    }
}

/// Shows counts only: an argument may be a secret.
impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args").field("count", &self.count).field("encoded_len", &self.encoded_len()).finish()
    }
}

impl<'a> IntoIterator for &'a Args {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

/// The arguments in order, each without its length.
#[derive(Debug, Clone)]
pub struct ArgsIter<'a> {
    args: &'a Args,
    at: usize,
    shared: usize,
    left: usize,
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let encoded = &self.args.encoded[..];
        let (mut len, mut at) = (0_usize, self.at + 1);
        while encoded[at] != b'\r' {
            len = len * 10 + usize::from(encoded[at] - b'0');
            at += 1;
        }
        at += LINE_END.len();
        // A payload that stands here is this argument's: one of a later argument has that one's header before it.
        if let Some(shared) = self.args.shared.get(self.shared).filter(|shared| shared.at == at) {
            self.shared += 1;
            self.at = at + LINE_END.len();
            return Some(&shared.bytes);
        }
        self.at = at + len + LINE_END.len();
        Some(&encoded[at..at + len])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}

/// Arguments by position, for the command table.
pub(crate) struct View<'a>(SmallVec<[&'a [u8]; VIEW_COUNT]>);

impl<'a> View<'a> {
    /// The argument at `index`, for as long as the command lives.
    pub(crate) fn at(&self, index: usize) -> Option<&'a [u8]> {
        self.0.get(index).copied()
    }

    /// All of them.
    pub(crate) fn as_slice(&self) -> &[&'a [u8]] {
        &self.0
    }
}

impl ArgList for View<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn arg(&self, index: usize) -> &[u8] {
        self.0[index]
    }
}

impl ToArgs for str {
    #[inline]
    fn write_args(&self, args: &mut Args) {
        args.push(self.as_bytes());
    }
}

impl ToArgs for String {
    #[inline]
    fn write_args(&self, args: &mut Args) {
        args.push(self.as_bytes());
    }
}

impl ToArgs for char {
    fn write_args(&self, args: &mut Args) {
        args.push(self.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

impl ToArgs for Bytes {
    #[inline]
    fn write_args(&self, args: &mut Args) {
        args.push_bytes(self);
    }
}

impl ToArgs for bool {
    fn write_args(&self, args: &mut Args) {
        args.push(if *self { b"1" } else { b"0" });
    }
}

impl ToArgs for f64 {
    fn write_args(&self, args: &mut Args) {
        args.push(format_double(*self).as_bytes());
    }
}

impl ToArgs for f32 {
    fn write_args(&self, args: &mut Args) {
        // The f64 nearest to the f32's own digits has the same shortest digits: 0.1, not 0.10000000149011612.
        let wide = format!("{self:e}").parse().unwrap_or_else(|_| f64::from(*self));
        wide.write_args(args);
    }
}

impl ToArgs for u8 {
    fn write_args(&self, args: &mut Args) {
        args.push(itoa::Buffer::new().format(*self).as_bytes());
    }

    #[inline]
    fn write_slice_args(values: &[Self], args: &mut Args) {
        args.push(values);
    }
}

macro_rules! integers {
    ($($int:ty),*) => {$(
        impl ToArgs for $int {
            #[inline]
            fn write_args(&self, args: &mut Args) {
                args.push(itoa::Buffer::new().format(*self).as_bytes());
            }
        }
    )*};
}

integers!(i8, i16, u16, i32, u32, i64, u64, isize, usize, i128, u128);

impl<T: ToArgs> ToArgs for Option<T> {
    fn write_args(&self, args: &mut Args) {
        if let Some(value) = self {
            value.write_args(args);
        }
    }
}

impl<T: ToArg> ToArg for Option<T> {}

macro_rules! single {
    ($($one:ty),*) => {$(
        impl ToArg for $one {}
    )*};
}

single!(
    str, String, char, Bytes, bool, f32, f64, u8, i8, i16, u16, i32, u32, i64, u64, isize, usize, i128, u128
);
single!([u8], Vec<u8>);

impl<const N: usize> ToArg for [u8; N] {}

impl<T: ToArgs> ToArgs for [T] {
    #[inline]
    fn write_args(&self, args: &mut Args) {
        T::write_slice_args(self, args);
    }
}

impl<T: ToArgs, const N: usize> ToArgs for [T; N] {
    #[inline]
    fn write_args(&self, args: &mut Args) {
        T::write_slice_args(self, args);
    }
}

impl<T: ToArgs> ToArgs for Vec<T> {
    #[inline]
    fn write_args(&self, args: &mut Args) {
        T::write_slice_args(self, args);
    }
}

impl<T: ToArgs> ToArgs for VecDeque<T> {
    fn write_args(&self, args: &mut Args) {
        for value in self {
            value.write_args(args);
        }
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<T: ToArgs + ?Sized> ToArgs for $pointer {
            #[inline]
            fn write_args(&self, args: &mut Args) {
                (**self).write_args(args);
            }
        }

        impl<T: ToArg + ?Sized> ToArg for $pointer {}
    )*};
}

pointers!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

impl<T: ToArgs + ToOwned + ?Sized> ToArgs for Cow<'_, T> {
    fn write_args(&self, args: &mut Args) {
        (**self).write_args(args);
    }
}

impl<T: ToArg + ToOwned + ?Sized> ToArg for Cow<'_, T> {}

impl<K: ToArgs, V: ToArgs, S> ToArgs for HashMap<K, V, S> {
    fn write_args(&self, args: &mut Args) {
        for pair in self {
            pair.write_args(args);
        }
    }
}

impl<K: ToArgs, V: ToArgs> ToArgs for BTreeMap<K, V> {
    fn write_args(&self, args: &mut Args) {
        for pair in self {
            pair.write_args(args);
        }
    }
}

impl<T: ToArgs, S> ToArgs for HashSet<T, S> {
    fn write_args(&self, args: &mut Args) {
        for value in self {
            value.write_args(args);
        }
    }
}

impl<T: ToArgs> ToArgs for BTreeSet<T> {
    fn write_args(&self, args: &mut Args) {
        for value in self {
            value.write_args(args);
        }
    }
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: ToArgs),*> ToArgs for ($($name,)*) {
            #[expect(non_snake_case, reason = "one name for the type and its value keeps the macro short")]
            fn write_args(&self, args: &mut Args) {
                let ($($name,)*) = self;
                $($name.write_args(args);)*
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts<A: ToArgs>(value: A) -> Vec<String> {
        let mut args = Args::default();
        value.write_args(&mut args);
        assert_eq!(args.iter().len(), args.iter().count());
        args.iter().map(|arg| String::from_utf8(arg.to_vec()).unwrap()).collect()
    }

    #[test]
    fn every_kind_of_value_gives_its_arguments() {
        assert_eq!(texts("a"), ["a"]);
        assert_eq!(texts(String::from("a")), ["a"]);
        assert_eq!(texts(b"raw"), ["raw"]);
        assert_eq!(texts(*b"raw"), ["raw"]);
        assert_eq!(texts(&b"raw"[..]), ["raw"]);
        assert_eq!(texts(b"raw".to_vec()), ["raw"]);
        assert_eq!(texts(Bytes::from_static(b"raw")), ["raw"]);
        assert_eq!(texts(7_u8), ["7"]);
        assert_eq!(texts([1, 2]), ["1", "2"]);
        assert_eq!(texts(vec!["a", "b"]), ["a", "b"]);
        assert_eq!(texts(&["a", "b"][..]), ["a", "b"]);
        assert_eq!(texts((1, "a", Some('c'), None::<u8>)), ["1", "a", "c"]);
        assert_eq!(texts([("a", 1), ("b", 2)]), ["a", "1", "b", "2"]);
        assert_eq!(texts(BTreeMap::from([("a", 1), ("b", 2)])), ["a", "1", "b", "2"]);
        assert_eq!(texts(HashMap::from([("a", b"x")])), ["a", "x"]);
        assert_eq!(texts(BTreeSet::from(["b", "a"])), ["a", "b"]);
        assert_eq!(texts([true, false]), ["1", "0"]);
        assert_eq!(texts(Cow::Borrowed("a")), ["a"]);
        assert_eq!(texts(Box::<str>::from("a")), ["a"]);
        assert_eq!(texts(Arc::<[u8]>::from(&b"raw"[..])), ["raw"]);
        assert_eq!(texts([b"raw", b"two"]), ["raw", "two"]);
        assert_eq!(texts(i128::MIN), [i128::MIN.to_string()]);
        assert_eq!(texts(u64::MAX), [u64::MAX.to_string()]);
        assert!(texts(Vec::<String>::new()).is_empty());
        assert_eq!(texts(Vec::<u8>::new()), [""]);
    }

    #[test]
    fn floats_are_short_and_infinity_is_what_redis_reads() {
        assert_eq!(
            texts([0.1, 1.0, -2.5, f64::INFINITY, f64::NEG_INFINITY]),
            ["0.1", "1", "-2.5", "inf", "-inf"]
        );
        assert_eq!(texts([0.1_f32, 16_777_216.0, f32::INFINITY]), ["0.1", "16777216", "inf"]);
    }

    #[test]
    fn long_bytes_are_shared_and_all_else_is_one_piece() {
        let long = Bytes::from(vec![b'x'; SHARED_BYTES_MIN]);
        let mut args = Args::default();
        ("SET", "k", &long, "", &long).write_args(&mut args);
        let parts: Vec<_> = args.parts().collect();
        assert_eq!(parts.len(), 5);
        assert_eq!(parts[0].as_slice(), b"$3\r\nSET\r\n$1\r\nk\r\n$4096\r\n");
        assert!(matches!(parts[1], Part::Shared(bytes) if bytes.as_ptr() == long.as_ptr()));
        assert_eq!(parts[2].as_slice(), b"\r\n$0\r\n\r\n$4096\r\n");
        assert_eq!(parts.iter().map(|part| part.as_slice().len()).sum::<usize>(), args.encoded_len());
        let seen: Vec<_> = args.iter().collect();
        assert_eq!(seen, [&b"SET"[..], b"k", &long, b"", &long]);

        let mut args = Args::default();
        ("SET", "k", long.slice(1..)).write_args(&mut args);
        assert_eq!(args.parts().count(), 1);
        assert_eq!(Args::default().parts().count(), 0);
    }

    #[test]
    fn lengths_at_every_border_are_told() {
        for len in [0, 9, 10, SHORT_BYTES_MAX, SHORT_BYTES_MAX + 1, 99, 100, SHARED_BYTES_MIN - 1] {
            let text = "x".repeat(len);
            let mut args = Args::default();
            args.push(text.as_bytes());
            let expected = format!("${len}\r\n{text}\r\n");
            assert_eq!(args.parts().next().unwrap().as_slice(), expected.as_bytes());
        }
    }

    #[test]
    fn a_small_command_does_not_allocate() {
        let mut args = Args::default();
        ("SET", "k".repeat(45), "v".repeat(45)).write_args(&mut args);
        assert!(!args.encoded.spilled());
    }

    proptest! {
        #[test]
        fn the_parts_are_what_the_reference_encoder_writes(
            values in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..130), any::<bool>()), 0..30),
        ) {
            let values: Vec<Bytes> = values
                .into_iter()
                .map(|(bytes, is_long)| if is_long { bytes.repeat(SHARED_BYTES_MIN) } else { bytes })
                .map(Bytes::from)
                .collect();
            let mut args = Args::default();
            values.write_args(&mut args);
            let mut expected = Vec::new();
            towline_resp::frame::encode_command(&values, &mut expected);
            let mut found = format!("*{}\r\n", args.len()).into_bytes();
            args.parts().for_each(|part| found.extend_from_slice(part.as_slice()));
            prop_assert!(found == expected);
            prop_assert!(args.iter().eq(values.iter().map(|value| &value[..])));
        }

        #[test]
        fn floats_read_back_as_they_were(value in any::<f64>(), narrow in any::<f32>()) {
            let text = texts(value).remove(0);
            let back: f64 = text.parse().unwrap();
            prop_assert!(back.to_bits() == value.to_bits() || value.is_nan());
            let back: f32 = texts(narrow).remove(0).parse().unwrap();
            prop_assert!(back.to_bits() == narrow.to_bits() || narrow.is_nan());
        }
    }
}
