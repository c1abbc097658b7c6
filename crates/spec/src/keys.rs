//! Where a command's keys are, and the walk over them.
//!
//! Owns key specs and their evaluation over an argument list. Does not own slots or hash tags (`cluster`), nor
//! the meaning of other arguments: a command that the handler would refuse for its syntax may still yield keys.

use crate::bits::KeyFlags;
use crate::command::Command;

/// Arguments by position: 0 is the command's name, and of a subcommand 1 is the subcommand's.
pub trait ArgList {
    /// How many arguments there are, the name included.
    fn len(&self) -> usize;

    /// The argument at `index`, which is below [`len`](Self::len).
    fn arg(&self, index: usize) -> &[u8];

    /// Says whether there is no argument at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: AsRef<[u8]>> ArgList for [T] {
    #[inline]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn arg(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

impl<T: AsRef<[u8]>> ArgList for Vec<T> {
    #[inline]
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    #[inline]
    fn arg(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

impl<T: AsRef<[u8]>, const N: usize> ArgList for [T; N] {
    #[inline]
    fn len(&self) -> usize {
        N
    }

    #[inline]
    fn arg(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

/// One rule that finds keys: where to begin, then which arguments from there.
///
/// The model is Redis's: <https://redis.io/docs/latest/develop/reference/key-specs/>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpec {
    /// Where to begin.
    pub begin: BeginSearch,
    /// Which arguments are keys.
    pub find: FindKeys,
    /// How the command treats them.
    pub flags: KeyFlags,
    /// What the flags cannot say; empty for most.
    pub notes: &'static str,
}

/// Where the search for keys begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeginSearch {
    /// At this argument.
    Index(u8),
    /// At the argument after this word (any case), looked for from `start_from` on; negative counts from the
    /// end and searches backwards.
    Keyword {
        /// The word, upper case.
        keyword: &'static str,
        /// Where the search begins.
        start_from: i8,
    },
    /// The rule cannot be written down; the crate finds these keys by other means.
    Unknown,
}

/// Which arguments are keys, counted from where the search began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindKeys {
    /// Every `step`-th argument up to `last`.
    Range {
        /// Relative to the first when not negative; otherwise from the end of the arguments (-1 is the last one).
        last: i8,
        /// Distance between keys.
        step: u8,
        /// With a `last` of -1: only the first of this many equal parts of the rest are keys; 0 and 1 mean all.
        limit: u8,
    },
    /// An argument says how many keys follow.
    KeyNum {
        /// Where the count is.
        count_at: u8,
        /// Where the first key is.
        first: u8,
        /// Distance between keys.
        step: u8,
    },
    /// The rule cannot be written down.
    Unknown,
}

/// How the walk finds a command's keys; worked out from its specs by the table's builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyShape {
    /// There are none.
    None,
    /// Argument 1 and no other: the hot case.
    First,
    /// By the specs.
    Specs,
    /// `SET`: argument 1, flags by options.
    Set,
    /// `BITFIELD`: argument 1, flags by subcommands.
    Bitfield,
    /// `SORT`, `SORT_RO`: argument 1, and a destination among the options.
    Sort,
    /// `MIGRATE`: argument 3, or those after `KEYS`.
    Migrate,
}

/// The arguments do not fit the command's key positions (a bad count, a missing key): its syntax is wrong.
///
/// The command's own handler gives the exact error; keys that were reported before it are to be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyError;

impl std::fmt::Display for KeyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the arguments do not fit the command's key positions")
    }
}

impl std::error::Error for KeyError {}

/// Calls `f` with the position of every key and how the command treats it; a command without keys calls nothing.
///
/// For a subcommand pass its own row and the whole argument list. Channels of sharded pub/sub are reported with
/// [`KeyFlags::NOT_KEY`]: they decide the slot, but are no keys. A destination may be reported more than once.
///
/// # Errors
/// [`KeyError`] when the arguments cannot be this command's; the caller's mistake, not retryable.
#[inline]
pub fn for_each_key<A: ArgList + ?Sized>(
    command: &Command,
    args: &A,
    mut f: impl FnMut(usize, KeyFlags),
) -> Result<(), KeyError> {
    match command.shape {
        KeyShape::None => Ok(()),
        KeyShape::First if args.len() > 1 => {
            f(1, command.keys[0].flags);
            Ok(())
        }
        KeyShape::First => Err(KeyError),
        KeyShape::Specs => walk_specs(command, args, &mut f),
        KeyShape::Set => walk_one(args, set_flags(args), &mut f),
        KeyShape::Bitfield => walk_one(args, bitfield_flags(args), &mut f),
        KeyShape::Sort => walk_sort(args, &mut f),
        KeyShape::Migrate => walk_migrate(args, &mut f),
    }
}

/// The position of the first key (or sharded channel), which decides where a command is routed.
///
/// `None` when there is none or the arguments do not fit.
#[inline]
pub fn first_key<A: ArgList + ?Sized>(command: &Command, args: &A) -> Option<usize> {
    if command.legacy_keys.0 > 0 {
        let index = command.legacy_keys.0.unsigned_abs() as usize;
        if command.shape != KeyShape::Migrate {
            return (index < args.len()).then_some(index);
        }
    }
    let mut first = None;
    for_each_key(command, args, |index, _| {
        first.get_or_insert(index);
    })
    .ok()?;
    first
}

fn walk_one<A: ArgList + ?Sized>(
    args: &A,
    flags: KeyFlags,
    f: &mut impl FnMut(usize, KeyFlags),
) -> Result<(), KeyError> {
    if args.len() < 2 {
        return Err(KeyError);
    }
    f(1, flags);
    Ok(())
}

fn walk_specs<A: ArgList + ?Sized>(
    command: &Command,
    args: &A,
    f: &mut impl FnMut(usize, KeyFlags),
) -> Result<(), KeyError> {
    for spec in command.keys {
        let begin = match spec.begin {
            BeginSearch::Index(index) => usize::from(index),
            BeginSearch::Keyword { keyword, start_from } => match find_keyword(args, keyword, start_from) {
                Some(at) => at + 1,
                None => continue,
            },
            BeginSearch::Unknown => continue,
        };
        // An open range may hold no key at all, where arity allows that: `PFMERGE destination`.
        let is_open = matches!(spec.find, FindKeys::Range { last: ..0, .. });
        if is_open && begin == args.len() && command.accepts_arity(args.len()) {
            continue;
        }
        let Some((first, last, step)) = key_range(spec.find, begin, args)? else { continue };
        if last >= args.len() || last < first {
            return Err(KeyError);
        }
        for index in (first..=last).step_by(step) {
            f(index, spec.flags);
        }
    }
    Ok(())
}

fn find_keyword<A: ArgList + ?Sized>(args: &A, keyword: &str, start_from: i8) -> Option<usize> {
    let matches = |index: &usize| args.arg(*index).eq_ignore_ascii_case(keyword.as_bytes());
    let distance = usize::from(start_from.unsigned_abs());
    if start_from >= 0 {
        (distance..args.len()).find(matches)
    } else {
        (1..=args.len().checked_sub(distance)?).rev().find(matches)
    }
}

/// First and last position and the step; `None` when a count of 0 says that there are no keys.
fn key_range<A: ArgList + ?Sized>(
    find: FindKeys,
    begin: usize,
    args: &A,
) -> Result<Option<(usize, usize, usize)>, KeyError> {
    let argc = args.len();
    match find {
        FindKeys::Range { last, step, limit } => {
            let last = if last >= 0 {
                Some(begin + usize::from(last.unsigned_abs()))
            } else if limit <= 1 {
                argc.checked_sub(usize::from(last.unsigned_abs()))
            } else {
                let part = argc.saturating_sub(begin) / usize::from(limit);
                (begin + part).checked_sub(usize::from(last.unsigned_abs()))
            };
            Ok(Some((begin, last.ok_or(KeyError)?, usize::from(step))))
        }
        FindKeys::KeyNum { count_at, first, step } => {
            let count_at = begin + usize::from(count_at);
            if count_at >= argc {
                return Err(KeyError);
            }
            let count = parse_count(args.arg(count_at)).ok_or(KeyError)?;
            if count == 0 {
                return Ok(None);
            }
            let (first, step) = (begin + usize::from(first), usize::from(step));
            // A count above argc cannot be met; refusing it here keeps the product from overflowing.
            if count > argc {
                return Err(KeyError);
            }
            Ok(Some((first, first + (count - 1) * step, step)))
        }
        FindKeys::Unknown => Ok(None),
    }
}

/// A count as Redis writes integers: digits only, no sign, no leading zero.
fn parse_count(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > 9 || (text.len() > 1 && text[0] == b'0') {
        return None;
    }
    text.iter()
        .try_fold(0usize, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + usize::from(byte - b'0')))
}

fn set_flags<A: ArgList + ?Sized>(args: &A) -> KeyFlags {
    const WRITES: KeyFlags = KeyFlags::OW.union(KeyFlags::UPDATE);
    const READS_TOO: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE);
    let reads = (3..args.len()).any(|index| args.arg(index).eq_ignore_ascii_case(b"get"));
    if reads { READS_TOO } else { WRITES }
}

fn bitfield_flags<A: ArgList + ?Sized>(args: &A) -> KeyFlags {
    let writes = (2..args.len()).any(|index| {
        let word = args.arg(index);
        word.eq_ignore_ascii_case(b"set") || word.eq_ignore_ascii_case(b"incrby")
    });
    if writes { KeyFlags::RW | KeyFlags::ACCESS | KeyFlags::UPDATE } else { KeyFlags::RO | KeyFlags::ACCESS }
}

/// The position of `SORT`'s destination: the last `STORE` counts, and words that are other options' values do not.
pub(crate) fn sort_destination<A: ArgList + ?Sized>(args: &A) -> Option<usize> {
    let mut destination = None;
    let mut index = 2;
    while index < args.len() {
        let word = args.arg(index);
        let values = if word.eq_ignore_ascii_case(b"limit") {
            2
        } else if word.eq_ignore_ascii_case(b"store") {
            if index + 1 < args.len() {
                destination = Some(index + 1);
            }
            1
        } else {
            usize::from(word.eq_ignore_ascii_case(b"get") || word.eq_ignore_ascii_case(b"by"))
        };
        index += 1 + values;
    }
    destination
}

fn walk_sort<A: ArgList + ?Sized>(args: &A, f: &mut impl FnMut(usize, KeyFlags)) -> Result<(), KeyError> {
    walk_one(args, KeyFlags::RO | KeyFlags::ACCESS, f)?;
    if let Some(index) = sort_destination(args) {
        f(index, KeyFlags::OW | KeyFlags::UPDATE);
    }
    Ok(())
}

fn walk_migrate<A: ArgList + ?Sized>(args: &A, f: &mut impl FnMut(usize, KeyFlags)) -> Result<(), KeyError> {
    const FLAGS: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);
    if args.len() < 6 {
        return Err(KeyError);
    }
    if !args.arg(3).is_empty() {
        f(3, FLAGS);
        return Ok(());
    }
    let mut index = 6;
    while index < args.len() {
        let word = args.arg(index);
        if word.eq_ignore_ascii_case(b"keys") {
            (index + 1..args.len()).for_each(|key| f(key, FLAGS));
            return Ok(());
        }
        let values = if word.eq_ignore_ascii_case(b"auth") {
            1
        } else {
            2 * usize::from(word.eq_ignore_ascii_case(b"auth2"))
        };
        index += 1 + values;
    }
    // An empty name without KEYS is the empty key.
    f(3, FLAGS);
    Ok(())
}
