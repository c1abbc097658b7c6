//! Times to live as commands are given them.
//!
//! Owns: the four units (`EX`, `PX`, `EXAT`, `PXAT`) and their conversion to unix milliseconds. Does **not** own what a
//! command does with the instant.

use crate::command::CommandError;
use towline_store::number::parse_i64;

/// How a number says when a key expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds from now.
    Seconds,
    /// Milliseconds from now.
    Milliseconds,
    /// Unix seconds.
    UnixSeconds,
    /// Unix milliseconds.
    UnixMilliseconds,
}

impl Unit {
    /// The option of `SET` and its kin that is followed by such a number.
    pub(super) fn parse(word: &[u8]) -> Option<Self> {
        const WORDS: [(&[u8], Unit); 4] = [
            (b"EX", Unit::Seconds),
            (b"PX", Unit::Milliseconds),
            (b"EXAT", Unit::UnixSeconds),
            (b"PXAT", Unit::UnixMilliseconds),
        ];
        WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|&(_, unit)| unit)
    }

    /// Whether the number counts from the epoch, not from now.
    pub(super) fn is_absolute(self) -> bool {
        matches!(self, Self::UnixSeconds | Self::UnixMilliseconds)
    }

    fn is_seconds(self) -> bool {
        matches!(self, Self::Seconds | Self::UnixSeconds)
    }

    /// The instant in unix milliseconds, which may lie in the past: for `EXPIRE` and its kin.
    ///
    /// # Errors
    /// The text is no integer, or the instant does not fit; `command` is named in the latter.
    pub(super) fn instant(
        self,
        text: &[u8],
        now_ms: u64,
        command: &'static str,
    ) -> Result<i64, CommandError> {
        let number = parse_i64(text).ok_or(CommandError::NotInteger)?;
        self.convert(number, now_ms).ok_or_else(|| invalid(command))
    }

    /// The instant in unix milliseconds, for `SET` and its kin, which take positive numbers only.
    ///
    /// # Errors
    /// As [`Unit::instant`], and for zero and less.
    pub(super) fn deadline(
        self,
        text: &[u8],
        now_ms: u64,
        command: &'static str,
    ) -> Result<u64, CommandError> {
        let number = parse_i64(text).ok_or(CommandError::NotInteger)?;
        let at = if number > 0 { self.convert(number, now_ms) } else { None };
        at.and_then(|at| u64::try_from(at).ok()).ok_or_else(|| invalid(command))
    }

    fn convert(self, number: i64, now_ms: u64) -> Option<i64> {
        let ms = if self.is_seconds() { number.checked_mul(1000)? } else { number };
        if self.is_absolute() { Some(ms) } else { ms.checked_add(i64::try_from(now_ms).ok()?) }
    }
}

fn invalid(command: &'static str) -> CommandError {
    CommandError::message(format!("ERR invalid expire time in '{command}' command"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_their_bounds() {
        assert_eq!(Unit::parse(b"pxat"), Some(Unit::UnixMilliseconds));
        assert_eq!(Unit::parse(b"p"), None);
        assert_eq!(Unit::Seconds.deadline(b"10", 500, "set"), Ok(10_500));
        assert_eq!(Unit::UnixSeconds.deadline(b"10", 500, "set"), Ok(10_000));
        assert_eq!(Unit::Milliseconds.instant(b"-700", 500, "pexpire"), Ok(-200));
        assert_eq!(Unit::Seconds.deadline(b"0", 500, "set"), Err(invalid("set")));
        assert_eq!(Unit::Seconds.deadline(b"9223372036854775", 5000, "set"), Err(invalid("set")));
        assert_eq!(Unit::Seconds.instant(b"9223372036854776", 0, "expire"), Err(invalid("expire")));
        assert_eq!(Unit::Seconds.instant(b"ten", 0, "expire"), Err(CommandError::NotInteger));
    }
}
