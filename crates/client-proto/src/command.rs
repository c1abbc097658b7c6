//! What the bridge must know of a command, and what comes back.
//!
//! Owns the descriptions. Does not own the command's bytes, which the caller writes through an [`Encoder`].

use bytes::Bytes;
use towline_resp::frame::{Frame, encode_command};
use towline_sansio::Instant;
use towline_spec::SideEffect;

use crate::bridge::RoomTicket;
use crate::buffer::{Log, SHARE_BYTES_MIN};

/// Properties of a command that change how it is treated; combine with `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub(crate) u8);

impl Flags {
    /// Nothing special.
    pub const NONE: Self = Self(0);
    /// Never send twice, whatever the command's class.
    pub const NO_RETRY: Self = Self(1);
    /// The caller allows that an idempotent command runs twice.
    pub const ALLOW_RETRY: Self = Self(1 << 1);
    /// Nobody waits: the reply is dropped, a failure is counted and reported as an event.
    pub const FIRE_AND_FORGET: Self = Self(1 << 2);
    /// A `MULTI` … `EXEC` unit: one range of bytes, never repeated once possibly sent.
    pub const TRANSACTION: Self = Self(1 << 3);
    /// Only this endpoint may serve it.
    pub const PINNED: Self = Self(1 << 4);
    /// The deadline is the caller's own and does not stretch while a planned handoff holds commands back.
    pub const HARD_DEADLINE: Self = Self(1 << 5);

    /// Has no deadline that comes.
    pub(crate) const ENDLESS: Self = Self(1 << 6);
    /// Nobody waits for it any more, or nobody ever did.
    pub(crate) const ORPHAN: Self = Self(1 << 7);

    /// Whether all of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The description of one command, or of one indivisible unit.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// What repeating it would do.
    pub effect: SideEffect,
    /// Replies that answer it: 1, or `n + 2` for a transaction of `n`. At least 1.
    pub replies: u32,
    /// When its caller stops waiting. [`Instant::FAR`] for never; times over 24 days away count as never.
    pub deadline: Instant,
    /// Its properties.
    pub flags: Flags,
    /// Its encoded size in bytes: exact, it is what the bounds go by.
    pub bytes: usize,
    /// A place in the line for room, if the caller waited for one.
    pub room: Option<RoomTicket>,
}

/// What answers a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// One frame. An error frame that was the server's answer is one too.
    One(Frame),
    /// The frames of a unit, in order.
    Many(Vec<Frame>),
}

/// Where a command's bytes go. Everything written belongs to the one command.
#[derive(Debug)]
pub struct Encoder<'a>(pub(crate) &'a mut Log);

impl Encoder<'_> {
    /// Appends bytes that are RESP already.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.append(bytes.len(), |out| out.extend_from_slice(bytes));
    }

    /// Appends a whole command from its arguments, each copied once.
    pub fn command<A: AsRef<[u8]>>(&mut self, args: &[A]) {
        let hint = args.iter().map(|arg| arg.as_ref().len() + ARG_OVERHEAD).sum::<usize>() + ARG_OVERHEAD;
        self.0.append(hint, |out| encode_command(args, out));
    }

    /// Appends bytes that are RESP already, by reference if they are many.
    pub fn share(&mut self, bytes: Bytes) {
        if bytes.len() >= SHARE_BYTES_MIN {
            self.0.share(bytes);
        } else {
            self.raw(&bytes);
        }
    }
}

/// `$`, a length of up to 9 digits and two line ends.
const ARG_OVERHEAD: usize = 14;

/// The exact number of bytes that [`Encoder::command`] writes for `args`.
pub fn encoded_len<A: AsRef<[u8]>>(args: &[A]) -> usize {
    let bulk = |len: usize| 1 + digits(len) + 2 + len + 2;
    1 + digits(args.len()) + 2 + args.iter().map(|arg| bulk(arg.as_ref().len())).sum::<usize>()
}

const fn digits(n: usize) -> usize {
    match n.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_exact() {
        for args in [vec![""], vec!["GET", "key"], vec!["x"; 10], vec!["0123456789", "", "a"]] {
            let mut out = Vec::new();
            encode_command(&args, &mut out);
            assert_eq!(encoded_len(&args), out.len(), "{args:?}");
        }
    }
}
