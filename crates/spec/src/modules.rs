//! The commands of modules: JSON, search, time series, probabilistic structures, vector sets.
//!
//! Owns a table apart from the server's own, with rows of the same kind: Towline's server has none of these commands, and
//! [`lookup`](crate::lookup), [`resolve`](crate::resolve) and [`rows`](crate::rows) do not know them. Clients ask
//! [`resolve_any`](crate::resolve_any), so that they route these commands by their keys and repeat what only reads.
//!
//! Source: the pages of the commands at <https://redis.io/docs/latest/commands/>; of vector sets also `COMMAND DOCS` of
//! Redis 8.2.

use crate::command::{Command, CommandId, Group};
use crate::keys::ArgList;
use crate::row::{Row, cmd};
use crate::table;

mod bloom;
mod json;
mod search;
mod timeseries;
mod vectors;

/// What a name begins with, and the rows whose names do.
const FAMILIES: [(&str, Group, &[Row]); 9] = [
    ("json.", Group::Json, json::ROWS),
    ("ft.", Group::Search, search::ROWS),
    ("ts.", Group::TimeSeries, timeseries::ROWS),
    ("bf.", Group::Probabilistic, bloom::BF),
    ("cf.", Group::Probabilistic, bloom::CF),
    ("cms.", Group::Probabilistic, bloom::CMS),
    ("topk.", Group::Probabilistic, bloom::TOPK),
    ("tdigest.", Group::Probabilistic, bloom::TDIGEST),
    ("v", Group::VectorSet, vectors::ROWS),
];

const COUNT: usize = {
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        count += FAMILIES[family].2.len();
        family += 1;
    }
    count
};

static ROWS: [Command; COUNT] = build().0;

/// Where each family's rows begin.
const STARTS: [usize; FAMILIES.len()] = build().1;

const fn build() -> ([Command; COUNT], [usize; FAMILIES.len()]) {
    const FILLER: Command =
        cmd("", 0, 0).effect(crate::SideEffect::ReadOnly).build(0, Group::Json, None, (0, 0));
    let mut rows = [FILLER; COUNT];
    let mut starts = [0; FAMILIES.len()];
    let (mut place, mut family) = (0, 0);
    while family < FAMILIES.len() {
        starts[family] = place;
        let (_, group, of_family) = FAMILIES[family];
        let mut row = 0;
        while row < of_family.len() {
            // Ids go on where those of the server's table end, so that no module's command is taken for one of these.
            rows[place] = of_family[row].build((table::COUNT + place) as u16, group, None, (0, 0));
            place += 1;
            row += 1;
        }
        family += 1;
    }
    (rows, starts)
}

/// Every command of a module, family by family. Commands of two words are rows of their own: `ft.cursor|read`.
pub fn rows() -> &'static [Command] {
    &ROWS
}

/// The row that these arguments are for, in any case; `None` if no known module has the command.
pub fn resolve<A: ArgList + ?Sized>(args: &A) -> Option<&'static Command> {
    if args.is_empty() {
        return None;
    }
    let name = args.arg(0);
    let starts_with = |prefix: &str| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    let family = FAMILIES.iter().position(|(prefix, ..)| starts_with(prefix))?;
    let rows = &ROWS[STARTS[family]..STARTS[family] + FAMILIES[family].2.len()];
    rows.iter().find(|row| match row.name.split_once('|') {
        None => row.name.as_bytes().eq_ignore_ascii_case(name),
        Some((first, second)) => {
            first.as_bytes().eq_ignore_ascii_case(name)
                && args.len() > 1
                && second.as_bytes().eq_ignore_ascii_case(args.arg(1))
        }
    })
}

/// The id of a lower-case name, for constants.
pub(crate) const fn id(name: &str) -> CommandId {
    let rows = build().0;
    let mut place = 0;
    while place < COUNT {
        if table::equal(rows[place].name.as_bytes(), name.as_bytes()) {
            return rows[place].id;
        }
        place += 1;
    }
    panic!("no module's command has this name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, SideEffect, effect_of, for_each_key, resolve_any};
    use std::collections::BTreeSet;

    fn words(line: &str) -> Vec<&str> {
        line.split(' ').collect()
    }

    #[test]
    fn every_row_is_found_in_any_case_and_no_other_table_has_it() {
        let names: BTreeSet<_> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), COUNT);
        for (place, row) in ROWS.iter().enumerate() {
            assert_eq!(row.id.index(), table::COUNT + place);
            let line = row.name.replace('|', " ");
            for line in [line.to_ascii_uppercase(), line] {
                assert_eq!(resolve(&words(&line)).unwrap().name, row.name);
                assert_eq!(resolve_any(&words(&line)).unwrap().name, row.name);
            }
            assert!(crate::resolve(&words(row.name)).is_err(), "{}", row.name);
            assert!(row.subcommands().is_empty() && row.parent().is_none());
        }
        for unknown in ["", "v", "json.", "json.nosuch", "ft.cursor", "ft.cursor peek", "get", "vaddd"] {
            assert!(resolve(&words(unknown)).is_none(), "{unknown}");
        }
        assert!(resolve(&Vec::<&str>::new()).is_none());
        assert_eq!(resolve_any(&["get", "k"]).unwrap().name, "get");
    }

    #[test]
    fn every_row_is_sane() {
        for row in &ROWS {
            let name = row.name;
            assert!(row.summary.ends_with('.') && row.summary.len() < 100, "{name}");
            assert!(!row.flags.contains(Flags::WRITE | Flags::READONLY), "{name}");
            assert_eq!(row.flags.contains(Flags::READONLY), row.effect == SideEffect::ReadOnly, "{name}");
            let has_key =
                row.syntax.split([' ', '[']).any(|word| ["key", "source", "destination"].contains(&word));
            let names_keys_only_to_narrow = name == "ft.search";
            assert_eq!(row.has_keys(), has_key && !names_keys_only_to_narrow, "{name}");
            let is_listed = row.name == "ft._list";
            assert_eq!(crate::syntax::arguments(row).is_empty(), is_listed, "{name}");
        }
    }

    #[test]
    fn keys_are_where_the_documentation_has_them() {
        for (line, expected) in [
            ("JSON.SET doc $ 1", "doc"),
            ("JSON.MGET a b c $.x", "a b c"),
            ("JSON.MSET a $ 1 b $ 2", "a b"),
            ("JSON.DEBUG MEMORY doc $", "doc"),
            ("FT.SEARCH idx * INKEYS 1 doc", ""),
            ("FT.SUGADD suggestions hello 1", "suggestions"),
            ("FT.CURSOR READ idx 7", ""),
            ("TS.ADD t * 1", "t"),
            ("TS.MADD a 1 2 b 1 2", "a b"),
            ("TS.CREATERULE a b AGGREGATION avg 60", "a b"),
            ("TS.DELETERULE a b", "a b"),
            ("TS.MRANGE - + FILTER x=y", ""),
            ("BF.MADD f a b", "f"),
            ("CMS.MERGE d 2 a b WEIGHTS 1 2", "d a b"),
            ("TDIGEST.MERGE d 1 a COMPRESSION 100", "d a"),
            ("TOPK.ADD t a", "t"),
            ("VADD v VALUES 2 1 2 e", "v"),
            ("VSIM v ELE e", "v"),
        ] {
            let args = words(line);
            let mut found = Vec::new();
            for_each_key(resolve(&args).unwrap(), &args, |index, _| found.push(args[index])).unwrap();
            assert_eq!(found.join(" "), expected, "{line}");
        }
    }

    #[test]
    fn effects_follow_the_arguments() {
        for (line, expected) in [
            ("JSON.SET doc $ 1", SideEffect::Idempotent),
            ("JSON.SET doc $ 1 NX", SideEffect::Convergent),
            ("JSON.GET doc", SideEffect::ReadOnly),
            ("JSON.NUMINCRBY doc $ 1", SideEffect::NonIdempotent),
            ("CMS.MERGE d 1 a", SideEffect::Idempotent),
            ("CMS.MERGE d 1 d", SideEffect::NonIdempotent),
            ("TDIGEST.MERGE d 1 a", SideEffect::NonIdempotent),
            ("FT.SEARCH idx *", SideEffect::ReadOnly),
            ("FT.CURSOR READ idx 7", SideEffect::NonIdempotent),
        ] {
            let args = words(line);
            assert_eq!(effect_of(resolve(&args).unwrap(), &args), expected, "{line}");
        }
    }
}
