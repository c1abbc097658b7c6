//! Arrays, tuples, maps and sets.

use super::error::Found;
use super::{FromReply, ReplyError, each};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};
use towline_resp::frame::Frame;

/// The elements of an aggregate: of a map, keys and values in turn; of null, none.
pub(super) fn elements(frame: Frame, expected: &'static str) -> Result<Vec<Frame>, ReplyError> {
    match frame {
        Frame::Array(frames) | Frame::Set(frames) | Frame::Push(frames) => Ok(frames),
        Frame::Map(pairs) => Ok(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()),
        Frame::Null | Frame::NullArray => Ok(Vec::new()),
        Frame::Attributed { .. } => elements(frame.without_attributes(), expected),
        frame => Err(ReplyError::unexpected(expected, &frame)),
    }
}

impl<T: FromReply> FromReply for Vec<T> {
    #[inline]
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        T::vec_from_reply(frame)
    }
}

impl<T: FromReply, const N: usize> FromReply for [T; N] {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        if frame.is_null() {
            return Err(ReplyError::unexpected("an array of fixed length", &frame));
        }
        Self::try_from(T::vec_from_reply(frame)?)
            .map_err(|values| ReplyError::shape("another number of them", Found::Elements(values.len())))
    }
}

macro_rules! sequences {
    ($($sequence:ident ($($bound:tt)*)),*) => {$(
        impl<T: FromReply $($bound)*> FromReply for $sequence<T> {
            fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
                Ok(T::vec_from_reply(frame)?.into_iter().collect())
            }
        }
    )*};
}

sequences!(VecDeque (), BTreeSet (+ Ord));

impl<T: FromReply + Eq + Hash, S: BuildHasher + Default> FromReply for HashSet<T, S> {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        Ok(T::vec_from_reply(frame)?.into_iter().collect())
    }
}

impl<K: FromReply + Eq + Hash, V: FromReply, S: BuildHasher + Default> FromReply for HashMap<K, V, S> {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        Ok(<(K, V)>::vec_from_reply(frame)?.into_iter().collect())
    }
}

impl<K: FromReply + Ord, V: FromReply> FromReply for BTreeMap<K, V> {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        Ok(<(K, V)>::vec_from_reply(frame)?.into_iter().collect())
    }
}

/// Whether each element is an array of `arity`: tuples that lie nested, as RESP3 has them. A map's elements lie flat
/// whatever they are.
fn is_nested(frame: &Frame, arity: usize) -> bool {
    match frame {
        Frame::Array(frames) | Frame::Set(frames) | Frame::Push(frames) => {
            let of_arity = |frame: &Frame| matches!(frame, Frame::Array(inner) if inner.len() == arity);
            !frames.is_empty() && frames.iter().all(of_arity)
        }
        Frame::Attributed { frame, .. } => is_nested(frame, arity),
        _ => false,
    }
}

macro_rules! tuples {
    ($arity:literal $expected:literal $($name:ident)*) => {
        impl<$($name: FromReply),*> FromReply for ($($name,)*) {
            fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
                if frame.is_null() {
                    return Err(ReplyError::unexpected($expected, &frame));
                }
                let frames = elements(frame, $expected)?;
                if frames.len() != $arity {
                    return Err(ReplyError::shape($expected, Found::Elements(frames.len())));
                }
                let mut frames = frames.into_iter().enumerate();
                Ok(($(next::<$name>(&mut frames)?,)*))
            }

            fn vec_from_reply(frame: Frame) -> Result<Vec<Self>, ReplyError> {
                let is_nested = is_nested(&frame, $arity);
                let frames = elements(frame, $expected)?;
                if is_nested {
                    return each(frames);
                }
                if !frames.len().is_multiple_of($arity) {
                    return Err(ReplyError::shape(
                        concat!("a multiple of ", $arity),
                        Found::Elements(frames.len()),
                    ));
                }
                let count = frames.len() / $arity;
                let mut frames = frames.into_iter().enumerate();
                (0..count).map(|_| Ok(($(next::<$name>(&mut frames)?,)*))).collect()
            }
        }
    };
}

fn next<T: FromReply>(frames: &mut impl Iterator<Item = (usize, Frame)>) -> Result<T, ReplyError> {
    let (index, frame) = frames.next().expect("invariant: the number of elements was checked");
    T::from_reply(frame).map_err(|error| error.at(index))
}

tuples!(1 "an array of 1 element" A);
tuples!(2 "an array of 2 elements" A B);
tuples!(3 "an array of 3 elements" A B C);
tuples!(4 "an array of 4 elements" A B C D);
tuples!(5 "an array of 5 elements" A B C D E);
tuples!(6 "an array of 6 elements" A B C D E F);
tuples!(7 "an array of 7 elements" A B C D E F G);
tuples!(8 "an array of 8 elements" A B C D E F G H);
tuples!(9 "an array of 9 elements" A B C D E F G H I);
tuples!(10 "an array of 10 elements" A B C D E F G H I J);
tuples!(11 "an array of 11 elements" A B C D E F G H I J K);
tuples!(12 "an array of 12 elements" A B C D E F G H I J K L);
