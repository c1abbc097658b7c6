//! The builder with which the table's rows are written, and the step from a row to a [`Command`].
//!
//! Owns what can be worked out from a row: ACL categories, the legacy key triple, `movablekeys`, the way keys
//! are walked. Everything here runs at compile time.

use crate::bits::{AclCategories, Flags, KeyFlags, acl, flag};
use crate::command::{Command, CommandId, Deprecation, Group, SideEffect, State};
use crate::keys::{BeginSearch, FindKeys, KeyShape, KeySpec};

/// A row as the table's files write it.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    name: &'static str,
    arity: i16,
    flags: u32,
    acl: u32,
    has_group_acl: bool,
    keys: &'static [KeySpec],
    effect: Option<SideEffect>,
    since: &'static str,
    summary: &'static str,
    complexity: &'static str,
    syntax: &'static str,
    tips: &'static [&'static str],
    deprecated: Option<Deprecation>,
    is_internal: bool,
    state: State,
    shape: Option<KeyShape>,
    subcommands: &'static [Self],
}

/// Starts a row: full name, arity and flags (bits of [`flag`]).
pub(crate) const fn cmd(name: &'static str, arity: i16, flags: u32) -> Row {
    Row {
        name,
        arity,
        flags,
        acl: 0,
        has_group_acl: true,
        keys: &[],
        effect: None,
        since: "",
        summary: "",
        complexity: "O(1)",
        syntax: "",
        tips: &[],
        deprecated: None,
        is_internal: false,
        state: State::Implemented,
        shape: None,
        subcommands: &[],
    }
}

impl Row {
    /// The version that had it first, and one sentence.
    pub(crate) const fn doc(mut self, since: &'static str, summary: &'static str) -> Self {
        self.since = since;
        self.summary = summary;
        self
    }

    /// Arguments, as the command reference writes them.
    pub(crate) const fn args(mut self, syntax: &'static str) -> Self {
        self.syntax = syntax;
        self
    }

    /// Cost, when it is not O(1).
    pub(crate) const fn cost(mut self, complexity: &'static str) -> Self {
        self.complexity = complexity;
        self
    }

    /// Key specs.
    pub(crate) const fn keys(mut self, keys: &'static [KeySpec]) -> Self {
        self.keys = keys;
        self
    }

    /// Repetition class; required unless the row is flagged read-only or is a container.
    pub(crate) const fn effect(mut self, effect: SideEffect) -> Self {
        self.effect = Some(effect);
        self
    }

    /// ACL categories beside those that follow from flags and group.
    pub(crate) const fn acl(mut self, categories: u32) -> Self {
        self.acl = categories;
        self
    }

    /// ACL categories instead of the group's.
    pub(crate) const fn acl_only(mut self, categories: u32) -> Self {
        self.acl = categories;
        self.has_group_acl = false;
        self
    }

    /// Hints for clients and proxies.
    pub(crate) const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    /// Marks it as replaced.
    pub(crate) const fn deprecated(mut self, since: &'static str, replaced_by: &'static str) -> Self {
        self.deprecated = Some(Deprecation { since, replaced_by });
        self
    }

    /// Marks it as made for servers and tests.
    pub(crate) const fn internal(mut self) -> Self {
        self.is_internal = true;
        self
    }

    /// Marks it as not yet executed by the server; subcommands carry their own mark.
    pub(crate) const fn planned(mut self, missing: &'static str) -> Self {
        self.state = State::Planned(missing);
        self
    }

    /// Keys that need more than the specs.
    pub(crate) const fn shape(mut self, shape: KeyShape) -> Self {
        self.shape = Some(shape);
        self
    }

    /// Makes it a container.
    pub(crate) const fn subcommands(mut self, rows: &'static [Self]) -> Self {
        self.subcommands = rows;
        self
    }

    pub(crate) const fn subcommand_rows(&self) -> &'static [Self] {
        self.subcommands
    }

    /// The finished row. Panics, at compile time, when a row that needs a class has none.
    pub(crate) const fn build(
        &self,
        id: u16,
        group: Group,
        parent: Option<CommandId>,
        subcommands: (u16, u16),
    ) -> Command {
        let is_container = subcommands.1 != 0;
        let effect = match self.effect {
            Some(effect) => effect,
            None if is_container || self.flags & flag::READONLY != 0 => SideEffect::ReadOnly,
            None => panic!("a row that is not read-only needs an effect"),
        };
        let (legacy_keys, is_movable) = legacy_range(self.keys);
        let mut flags = self.flags;
        if is_movable || matches!(self.shape, Some(KeyShape::Sort | KeyShape::Migrate)) {
            flags |= flag::MOVABLEKEYS;
        }
        Command {
            name: self.name,
            id: CommandId(id),
            arity: self.arity,
            flags: Flags::from_raw(flags),
            acl: AclCategories::from_raw(self.categories(group, is_container)),
            keys: self.keys,
            legacy_keys,
            effect,
            group,
            since: self.since,
            summary: self.summary,
            complexity: self.complexity,
            syntax: self.syntax,
            tips: self.tips,
            deprecated: self.deprecated,
            is_internal: self.is_internal,
            state: self.state,
            shape: match self.shape {
                Some(shape) => shape,
                None => shape_of(self.keys),
            },
            subcommands,
            parent,
        }
    }

    /// Flags imply categories; the group adds its own, except to containers, which do nothing themselves.
    const fn categories(&self, group: Group, is_container: bool) -> u32 {
        let mut set = self.acl;
        if self.has_group_acl && !is_container {
            set |= group.acl();
        }
        if self.flags & flag::WRITE != 0 {
            set |= acl::WRITE;
        }
        // A read-only script is not a plain read: what it does is the script's affair.
        if self.flags & flag::READONLY != 0 && set & acl::SCRIPTING == 0 {
            set |= acl::READ;
        }
        if self.flags & flag::ADMIN != 0 {
            set |= acl::ADMIN | acl::DANGEROUS;
        }
        if self.flags & flag::PUBSUB != 0 {
            set |= acl::PUBSUB;
        }
        if self.flags & flag::BLOCKING != 0 {
            set |= acl::BLOCKING;
        }
        set | if self.flags & flag::FAST != 0 { acl::FAST } else { acl::SLOW }
    }
}

const fn shape_of(keys: &[KeySpec]) -> KeyShape {
    match keys {
        [] => KeyShape::None,
        [
            KeySpec {
                begin: BeginSearch::Index(1),
                find: FindKeys::Range { last: 0, step: 1, limit: 0 },
                ..
            },
        ] => KeyShape::First,
        _ => KeyShape::Specs,
    }
}

/// The triple (first, last, step) that covers the keys at fixed places, and whether it misses some.
///
/// One range stands as it is. Of several, adjoining ranges of step 1 merge into one.
const fn legacy_range(keys: &[KeySpec]) -> ((i16, i16, i16), bool) {
    if let [KeySpec { begin: BeginSearch::Index(first), find: FindKeys::Range { last, step, .. }, .. }] = keys
    {
        let first = *first as i16;
        let last = if *last >= 0 { first + *last as i16 } else { *last as i16 };
        return ((first, last, *step as i16), false);
    }
    let mut range: Option<(i16, i16)> = None;
    let mut is_movable = false;
    let mut index = 0;
    while index < keys.len() {
        let spec = &keys[index];
        index += 1;
        let (BeginSearch::Index(first), FindKeys::Range { last, step: 1, .. }) = (spec.begin, spec.find)
        else {
            is_movable = true;
            continue;
        };
        let first = first as i16;
        let last = if last >= 0 { first + last as i16 } else { last as i16 };
        range = match range {
            None => Some((first, last)),
            Some((begin, end)) if end == first - 1 => Some((begin, last)),
            Some(kept) => {
                is_movable = true;
                Some(kept)
            }
        };
    }
    match range {
        Some((first, last)) => ((first, last, 1), is_movable),
        None => ((0, 0, 0), is_movable),
    }
}

/// One key at argument `at`.
pub(crate) const fn key(at: u8, flags: u32) -> KeySpec {
    keys(at, 0, 1, flags)
}

/// Keys from argument `at` to `last` (negative: from the end), every `step`.
pub(crate) const fn keys(at: u8, last: i8, step: u8, flags: u32) -> KeySpec {
    KeySpec {
        begin: BeginSearch::Index(at),
        find: FindKeys::Range { last, step, limit: 0 },
        flags: KeyFlags::from_raw(flags),
        notes: "",
    }
}

/// A count at argument `at`, then that many keys, every `step`.
pub(crate) const fn counted(at: u8, step: u8, flags: u32) -> KeySpec {
    KeySpec {
        begin: BeginSearch::Index(at),
        find: FindKeys::KeyNum { count_at: 0, first: 1, step },
        flags: KeyFlags::from_raw(flags),
        notes: "",
    }
}

/// Keys after a word that stands at `start_from` or later, up to `last`, of which one part in `limit` are keys.
pub(crate) const fn after(keyword: &'static str, start_from: i8, last: i8, limit: u8, flags: u32) -> KeySpec {
    KeySpec {
        begin: BeginSearch::Keyword { keyword, start_from },
        find: FindKeys::Range { last, step: 1, limit },
        flags: KeyFlags::from_raw(flags),
        notes: "",
    }
}

/// Keys that no rule describes.
pub(crate) const fn unknown(flags: u32) -> KeySpec {
    KeySpec {
        begin: BeginSearch::Unknown,
        find: FindKeys::Unknown,
        flags: KeyFlags::from_raw(flags),
        notes: "",
    }
}

impl KeySpec {
    /// Adds what the flags cannot say.
    pub(crate) const fn note(mut self, notes: &'static str) -> Self {
        self.notes = notes;
        self
    }
}
