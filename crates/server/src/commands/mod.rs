//! The commands, one file per group; each file ends in the table of its rows.
//!
//! Owns: what each command does and answers. Does **not** own names, arity, flags or key positions: those are rows of
//! `towline-spec`. A command is one row there and one handler here; a test holds the two against each other.

use crate::command::Row;
use std::sync::OnceLock;
use towline_spec::{COUNT, Command};

mod acl;
mod bitmaps;
mod blocking;
mod client;
mod client_list;
mod client_tracking;
pub(crate) mod cluster;
mod collections;
mod config;
mod connection;
mod counters;
mod deadline;
mod debug;
mod dump;
mod expiry;
mod geo;
mod geo_search;
mod hash_ttl;
mod hashes;
mod hyperloglog;
mod info;
mod introspection;
mod keys;
mod lcs;
mod lists;
mod maintenance;
mod memory;
mod migrate;
mod observation;
mod persistence;
mod pubsub;
mod replication;
mod scan;
mod server;
mod set_algebra;
mod sets;
mod sort;
mod string_parts;
mod strings;
mod transactions;
mod zset_algebra;
mod zset_blocking;
mod zset_common;
mod zset_pop;
mod zset_ranges;
mod zsets;

pub(crate) use debug::digest_of_payload;
pub(crate) use dump::{Builder as ValueBuilder, decode as decode_payload};
pub(crate) use info::{REDIS_VERSION, TOWLINE_VERSION};

const GROUPS: &[&[Row]] = &[
    acl::ROWS,
    bitmaps::ROWS,
    blocking::ROWS,
    client::ROWS,
    client_list::ROWS,
    client_tracking::ROWS,
    cluster::ROWS,
    config::ROWS,
    connection::ROWS,
    counters::ROWS,
    debug::ROWS,
    dump::ROWS,
    expiry::ROWS,
    geo::ROWS,
    geo_search::ROWS,
    hash_ttl::ROWS,
    hashes::ROWS,
    hyperloglog::ROWS,
    info::ROWS,
    introspection::ROWS,
    keys::ROWS,
    lcs::ROWS,
    lists::ROWS,
    maintenance::ROWS,
    memory::ROWS,
    migrate::ROWS,
    observation::ROWS,
    persistence::ROWS,
    pubsub::ROWS,
    replication::ROWS,
    scan::ROWS,
    server::ROWS,
    set_algebra::ROWS,
    sets::ROWS,
    sort::ROWS,
    string_parts::ROWS,
    strings::ROWS,
    transactions::ROWS,
    zset_algebra::ROWS,
    zset_blocking::ROWS,
    zset_pop::ROWS,
    zset_ranges::ROWS,
    zsets::ROWS,
];

static BY_ID: OnceLock<Box<[Option<Row>; COUNT]>> = OnceLock::new();

fn by_id() -> &'static [Option<Row>; COUNT] {
    BY_ID.get_or_init(|| {
        let mut rows = Box::new([None; COUNT]);
        for row in GROUPS.iter().copied().flatten() {
            let command = towline_spec::lookup_full(row.name.as_bytes())
                .expect("invariant: every handler has a row in the command table (tested)");
            rows[command.id.index()] = Some(*row);
        }
        rows
    })
}

/// The code of a command; none while it is only planned.
#[inline]
pub(crate) fn row(command: &Command) -> Option<&'static Row> {
    by_id()[command.id.index()].as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use towline_spec::State;

    #[test]
    fn handlers_and_the_command_table_agree() {
        let mut seen = BTreeSet::new();
        for row in GROUPS.iter().copied().flatten() {
            assert!(
                towline_spec::lookup_full(row.name.as_bytes()).is_some(),
                "{} is not in the command table",
                row.name
            );
            assert!(seen.insert(row.name), "{} has two handlers", row.name);
        }
        let missing: Vec<_> = towline_spec::rows()
            .iter()
            .filter(|command| matches!(command.state, State::Implemented) && !command.is_container())
            .map(|command| command.name)
            .filter(|name| !seen.contains(name))
            .collect();
        assert!(
            missing.is_empty(),
            "implemented according to the command table, without a handler: {missing:?}"
        );
    }
}
