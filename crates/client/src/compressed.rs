//! Values that are compressed on their way to the server.
//!
//! Owns [`Compressed`], a wrapper for one value, and its format. Opt-in for each value: nothing else is ever compressed.
//! Does **not** own which values are worth it, nor agreement between programs: all who read a value must use the wrapper, and
//! commands that look inside (`APPEND`, `GETRANGE`, `STRLEN`, `INCR`) see the compressed bytes.
//!
//! # Format
//!
//! A value that does not get shorter is stored as it is. Any other is `00 'L' 'Z' '4'`, the original length (4 bytes, little
//! endian) and an LZ4 block, as <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md> has it. A value that begins
//! with the mark itself is stored behind a mark and the length [`STORED`]. So every value that was written comes back.

use bytes::Bytes;
use towline_resp::frame::Frame;

use crate::args::{Args, ToArg, ToArgs};
use crate::value::{Found, FromReply, ReplyError};

/// Shorter values are not tried, in bytes: the header alone is eight.
pub const COMPRESS_BYTES_MIN: usize = 64;

/// The longest value that is made out of a compressed one, in bytes: the longest string that servers store by default.
pub const DECOMPRESSED_BYTES_MAX: usize = 512 * 1024 * 1024;

const MARK: [u8; 4] = *b"\0LZ4";
const HEADER_BYTES: usize = 8;

/// In the place of the length: what follows is not compressed.
const STORED: u32 = u32::MAX;

/// An LZ4 block cannot hold more than this for each of its bytes, so that a few bytes never cost much memory.
const RATIO_MAX: usize = 256;

/// A value that is compressed by LZ4 where that makes it shorter; read, whether it is compressed or not.
///
/// ```
/// use towline_client::{Compressed, Frame, FromReply, cmd};
///
/// let page = "<p>the same again</p>".repeat(100);
/// let set = cmd("SET").arg("page").arg(Compressed(&page));
/// let sent = set.args().nth(2).expect("it has a value");
/// assert!(sent.len() < page.len() / 10);
/// // The reply of `GET`, and one that another program stored without compression:
/// let Compressed(read) = Compressed::<String>::from_reply(Frame::Bulk(sent.to_vec().into()))?;
/// assert_eq!(read, page);
/// let Compressed(plain) = Compressed::<String>::from_reply(Frame::Bulk("plain".into()))?;
/// assert_eq!(plain, "plain");
/// # Ok::<(), towline_client::ReplyError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Compressed<T>(pub T);

impl<T: AsRef<[u8]>> ToArgs for Compressed<T> {
    fn write_args(&self, args: &mut Args) {
        let plain = self.0.as_ref();
        if let Some(compressed) = compress(plain) {
            args.push_bytes(&compressed.into());
        } else if plain.starts_with(&MARK) {
            args.push_bytes(&[&MARK[..], &STORED.to_le_bytes(), plain].concat().into());
        } else {
            args.push(plain);
        }
    }
}

impl<T: AsRef<[u8]>> ToArg for Compressed<T> {}

impl<T: FromReply> FromReply for Compressed<T> {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        match frame {
            Frame::Bulk(bytes) => T::from_reply(Frame::Bulk(decompress(bytes)?)).map(Self),
            Frame::Attributed { .. } => Self::from_reply(frame.without_attributes()),
            frame => T::from_reply(frame).map(Self),
        }
    }

    fn is_absent(frame: &Frame) -> bool {
        T::is_absent(frame)
    }
}

/// The header and the block, if they are shorter than the value.
fn compress(plain: &[u8]) -> Option<Vec<u8>> {
    let len = u32::try_from(plain.len()).ok().filter(|_| plain.len() <= DECOMPRESSED_BYTES_MAX)?;
    if plain.len() < COMPRESS_BYTES_MIN {
        return None;
    }
    let mut out = vec![0; HEADER_BYTES + lz4_flex::block::get_maximum_output_size(plain.len())];
    out[..4].copy_from_slice(&MARK);
    out[4..HEADER_BYTES].copy_from_slice(&len.to_le_bytes());
    let written = lz4_flex::block::compress_into(plain, &mut out[HEADER_BYTES..]).ok()?;
    out.truncate(HEADER_BYTES + written);
    (out.len() < plain.len()).then_some(out)
}

/// What a stored value stands for.
fn decompress(bytes: Bytes) -> Result<Bytes, ReplyError> {
    let Some((header, block)) =
        bytes.split_first_chunk::<HEADER_BYTES>().filter(|_| bytes.starts_with(&MARK))
    else {
        return Ok(bytes);
    };
    let [.., a, b, c, d] = *header;
    let len = u32::from_le_bytes([a, b, c, d]);
    if len == STORED {
        return Ok(bytes.slice(HEADER_BYTES..));
    }
    let broken = || ReplyError::shape("a compressed value that is whole", Found::Text(bytes.len()));
    let len = usize::try_from(len).map_err(|_| broken())?;
    if len > DECOMPRESSED_BYTES_MAX || len / RATIO_MAX > block.len() {
        return Err(broken());
    }
    let mut plain = vec![0; len];
    match lz4_flex::block::decompress_into(block, &mut plain) {
        Ok(written) if written == len => Ok(plain.into()),
        _ => Err(broken()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(value: &[u8]) -> Vec<u8> {
        let mut args = Args::default();
        Compressed(value).write_args(&mut args);
        assert_eq!(args.len(), 1);
        args.iter().next().map(<[u8]>::to_vec).unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<u8>, ReplyError> {
        Compressed::from_reply(Frame::Bulk(bytes.to_vec().into())).map(|Compressed(value)| value)
    }

    #[test]
    fn what_gets_shorter_is_compressed_and_all_else_is_not() {
        let long = b"abcdefgh".repeat(10_000);
        assert!(stored(&long).len() < long.len() / 100);
        assert_eq!(read(&stored(&long)).unwrap(), long);
        let short = [b'a'; COMPRESS_BYTES_MIN - 1];
        assert_eq!(stored(&short), short);
        let marked = b"\0LZ4 is how it begins";
        assert_eq!(stored(marked).len(), marked.len() + HEADER_BYTES);
        assert_eq!(read(&stored(marked)).unwrap(), marked);
        assert_eq!(read(b"\0LZ4").unwrap(), b"\0LZ4");
    }

    #[test]
    fn numbers_null_and_options_are_what_they_are_without_it() {
        assert_eq!(Compressed::<i64>::from_reply(Frame::Integer(7)).unwrap(), Compressed(7));
        assert_eq!(Compressed::<Option<String>>::from_reply(Frame::Null).unwrap(), Compressed(None));
        assert_eq!(Option::<Compressed<String>>::from_reply(Frame::Null).unwrap(), None);
        let error = Compressed::<String>::from_reply(Frame::Error("WRONGTYPE no".into())).unwrap_err();
        assert_eq!(error.server_error().unwrap().code(), "WRONGTYPE");
    }

    #[test]
    fn a_length_that_cannot_be_costs_no_memory() {
        for len in [512 * 1024 * 1024, 512 * 1024 * 1024 + 1, u32::MAX - 1] {
            let bomb = [&MARK[..], &u32::to_le_bytes(len), &[0; 100]].concat();
            assert!(read(&bomb).is_err());
        }
        let whole = stored(&b"abcdefgh".repeat(100));
        let error = read(&whole[..whole.len() - 1]).unwrap_err();
        assert!(error.to_string().contains("a compressed value that is whole"), "{error}");
    }

    proptest! {
        #[test]
        fn every_value_comes_back(
            start in prop::sample::select(vec![&b""[..], b"\0LZ4", b"\0LZ4\xff\xff\xff\xff"]),
            piece: Vec<u8>,
            times in 1_usize..50,
        ) {
            let value = [start, &piece.repeat(times)].concat();
            prop_assert_eq!(read(&stored(&value)).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_read_without_panic(mut bytes: Vec<u8>, len in 0_u32..5000, is_marked: bool) {
            if is_marked {
                bytes.splice(0..0, [&MARK[..], &len.to_le_bytes()].concat());
            }
            let _ = read(&bytes);
        }
    }
}
