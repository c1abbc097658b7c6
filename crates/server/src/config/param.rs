//! What one parameter is.
//!
//! Owns: setting and showing a parameter by its name. Does **not** own the list of parameters (see `table`).

use super::Config;
use std::borrow::Cow;

/// Why a value is refused, in the words of the error reply.
pub(crate) type Reason = Cow<'static, str>;

/// When a parameter may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// By `CONFIG SET` as well.
    Anytime,
    /// At the start only.
    AtStart,
    /// By `CONFIG SET` only if `enable-protected-configs` allows it.
    Protected,
}

/// How a parameter takes its value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Set {
    /// As one word.
    Word(fn(&mut Config, &[u8]) -> Result<(), Reason>),
    /// As any number of words.
    Words(fn(&mut Config, &[Vec<u8>]) -> Result<(), Reason>),
}

/// One parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Param {
    /// The name in files, flags and commands.
    pub(crate) name: &'static str,
    /// Its former name, which works as well.
    pub(crate) alias: Option<&'static str>,
    pub(crate) change: Change,
    /// The value in force.
    pub(crate) get: fn(&Config) -> Vec<u8>,
    pub(crate) set: Set,
    /// Words of the value that go on one line of a file; 0 is all of them.
    pub(crate) words_per_line: usize,
    /// Why the parameter has no effect; empty if it has one.
    pub(crate) note: &'static str,
}

impl Param {
    /// The parameter may be changed by this only.
    pub(super) const fn change(mut self, change: Change) -> Self {
        self.change = change;
        self
    }

    /// The parameter is known by this name as well.
    pub(super) const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    /// Sets the value from a line's words.
    pub(crate) fn set_words(&self, config: &mut Config, words: &[Vec<u8>]) -> Result<(), Reason> {
        match (self.set, words) {
            (Set::Word(set), [word]) => set(config, word),
            (Set::Word(_), _) | (Set::Words(_), []) => Err("wrong number of arguments".into()),
            (Set::Words(set), words) => set(config, words),
        }
    }

    /// Sets the value from one text. Several words in it are separated by single spaces, and nothing is quoted.
    pub(crate) fn set_text(&self, config: &mut Config, text: &[u8]) -> Result<(), Reason> {
        match self.set {
            Set::Word(set) => set(config, text),
            Set::Words(set) if text.is_empty() => set(config, &[]),
            Set::Words(set) => {
                let words: Vec<_> = text.split(|&byte| byte == b' ').map(<[u8]>::to_vec).collect();
                set(config, &words)
            }
        }
    }

    /// The name that a caller means who wrote it this way: the present one or the former.
    pub(crate) fn name_as_given(&self, given: &[u8]) -> &'static str {
        self.alias.filter(|alias| given.eq_ignore_ascii_case(alias.as_bytes())).unwrap_or(self.name)
    }
}
