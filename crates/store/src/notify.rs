//! Keyspace notifications: the classes and their letters.
//!
//! Owns: `notify-keyspace-events` as a set of bits. Does **not** own publishing.
//! Source: Redis documentation, "Redis keyspace notifications".

/// `K`: publish to `__keyspace@<db>__:<key>`.
pub const KEYSPACE: u32 = 1 << 0;
/// `E`: publish to `__keyevent@<db>__:<event>`.
pub const KEYEVENT: u32 = 1 << 1;
pub(crate) const MISS: u32 = Class::Miss.bit();
pub(crate) const NEW: u32 = Class::New.bit();

/// What a notification is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// `g`: commands that work on any kind.
    Generic = 2,
    /// `$`
    String = 3,
    /// `l`
    List = 4,
    /// `s`
    Set = 5,
    /// `h`
    Hash = 6,
    /// `z`
    Zset = 7,
    /// `x`: a key expired.
    Expired = 8,
    /// `e`: a key was evicted.
    Evicted = 9,
    /// `t`
    Stream = 10,
    /// `m`: a read found no key. Not part of `A`.
    Miss = 11,
    /// `d`
    Module = 12,
    /// `n`: a key came to be. Not part of `A`.
    New = 13,
}

impl Class {
    /// The class's bit.
    #[inline]
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }
}

const LETTERS: [(u8, u32); 14] = [
    (b'g', Class::Generic.bit()),
    (b'$', Class::String.bit()),
    (b'l', Class::List.bit()),
    (b's', Class::Set.bit()),
    (b'h', Class::Hash.bit()),
    (b'z', Class::Zset.bit()),
    (b'x', Class::Expired.bit()),
    (b'e', Class::Evicted.bit()),
    (b't', Class::Stream.bit()),
    (b'd', Class::Module.bit()),
    (b'K', KEYSPACE),
    (b'E', KEYEVENT),
    (b'm', MISS),
    (b'n', NEW),
];
/// Letters of `LETTERS` that `A` stands for.
const ALL_COUNT: usize = 10;

fn all() -> u32 {
    LETTERS[..ALL_COUNT].iter().map(|&(_, bit)| bit).sum()
}

/// Reads a value of `notify-keyspace-events`; `None` for an unknown letter.
pub fn parse(letters: &[u8]) -> Option<u32> {
    letters.iter().try_fold(0, |mask, letter| match letter {
        b'A' => Some(mask | all()),
        letter => LETTERS.iter().find(|(known, _)| known == letter).map(|(_, bit)| mask | bit),
    })
}

/// Writes a mask as `CONFIG GET` shows it.
pub fn render(mask: u32) -> String {
    let (head, skip) = if mask & all() == all() { ("A", ALL_COUNT) } else { ("", 0) };
    let rest =
        LETTERS[skip..].iter().filter(|(_, bit)| mask & bit != 0).map(|&(letter, _)| char::from(letter));
    head.chars().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_round_trip() {
        for text in ["", "AKE", "g$lKE", "KEm", "AKEmn", "xKE"] {
            let mask = parse(text.as_bytes()).unwrap();
            assert_eq!(parse(render(mask).as_bytes()), Some(mask), "{text}");
        }
        assert_eq!(render(parse(b"KEA").unwrap()), "AKE");
        assert_eq!(parse(b"KEy"), None);
    }
}
