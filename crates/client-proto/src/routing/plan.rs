//! The way of a command, as the command table knows it.
//!
//! Owns the reading of keys and of the table's tips (`request_policy`, `response_policy`). Does not own the nodes, nor the
//! joining of replies.
//!
//! Source: "Command tips" in the Redis documentation.

use std::collections::BTreeMap;

use towline_cluster::{Slot, key_slot};
use towline_spec::{ArgList, Command, CommandId, for_each_key, id, resolve_any};

/// Where a command goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// To the owner of this slot. Keys of other slots, if there are any, are for the server to refuse.
    Slot(Slot),
    /// To any primary: it has no keys.
    Anywhere,
    /// To several nodes.
    Spread(Spread, Join),
    /// In parts, one for each slot: the numbers of the command's keys, ascending. In the order of the slots.
    Split {
        /// The parts.
        parts: Vec<(Slot, Vec<usize>)>,
        /// Arguments for each key, itself included.
        width: usize,
        /// How the replies are joined.
        join: Join,
    },
    /// Nowhere: it makes no sense in a cluster. The text says what does.
    Refused(&'static str),
}

/// To which nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spread {
    /// Every node that has slots.
    Primaries,
    /// Replicas as well.
    Nodes,
}

/// How the replies of several nodes become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Join {
    /// The first error, or the first reply.
    AllSucceeded,
    /// The first reply that is no error.
    OneSucceeded,
    /// The sum of numbers.
    Sum,
    /// The least of numbers.
    Min,
    /// The greatest of numbers.
    Max,
    /// 1 where all have 1, element by element.
    And,
    /// 1 where any has 1, element by element.
    Or,
    /// All elements of all replies.
    Append,
    /// The elements in the order of the command's keys.
    ByKey,
    /// Any reply that is not null.
    AnyValue,
    /// Every reply with its node's address.
    PerNode,
}

/// Commands that may be split by slot. `MSETNX` may not: it sets all of its keys or none.
const SPLIT: [(CommandId, usize, Join); 6] = [
    (id("mget"), 1, Join::ByKey),
    (id("mset"), 2, Join::AllSucceeded),
    (id("del"), 1, Join::Sum),
    (id("unlink"), 1, Join::Sum),
    (id("exists"), 1, Join::Sum),
    (id("touch"), 1, Join::Sum),
];

const SCAN: CommandId = id("scan");
const RANDOMKEY: CommandId = id("randomkey");

/// Where the command with these arguments goes. `may_split`: commands on keys of several slots may be split.
///
/// A command that is not in the table is taken to have its key behind its name.
pub fn plan<A: ArgList + ?Sized>(args: &A, may_split: bool) -> Plan {
    let Some(command) = resolve_any(args) else {
        return if args.len() > 1 { Plan::Slot(key_slot(args.arg(1))) } else { Plan::Anywhere };
    };
    let mut first = None;
    let mut is_crossing = false;
    let walked = for_each_key(command, args, |index, _| {
        let slot = key_slot(args.arg(index));
        is_crossing |= *first.get_or_insert(slot) != slot;
    });
    match (walked, first) {
        (Ok(()), Some(slot)) if !is_crossing => Plan::Slot(slot),
        (Ok(()), Some(slot)) => {
            let split = may_split.then(|| split(command, args)).flatten();
            split.unwrap_or(Plan::Slot(slot))
        }
        _ => spread(command),
    }
}

/// The parts of a command on keys of several slots.
fn split<A: ArgList + ?Sized>(command: &Command, args: &A) -> Option<Plan> {
    let (_, width, join) = SPLIT.into_iter().find(|(id, ..)| *id == command.id)?;
    let values = args.len() - 1;
    if !values.is_multiple_of(width) {
        return None;
    }
    let mut parts: BTreeMap<Slot, Vec<usize>> = BTreeMap::new();
    for at in 0..values / width {
        parts.entry(key_slot(args.arg(1 + at * width))).or_default().push(at);
    }
    Some(Plan::Split { parts: parts.into_iter().collect(), width, join })
}

/// The way of a command without keys.
fn spread(command: &Command) -> Plan {
    if command.id == SCAN {
        return Plan::Refused(
            "a cursor belongs to one node: use `Client::scan_all`, which visits all of them",
        );
    }
    let tip = |name: &str| command.tips.iter().find_map(|tip| tip.strip_prefix(name)?.strip_prefix(':'));
    let spread = match tip("request_policy") {
        Some("all_shards") => Spread::Primaries,
        Some("all_nodes") => Spread::Nodes,
        _ => return Plan::Anywhere,
    };
    let join = match tip("response_policy") {
        _ if command.id == RANDOMKEY => Join::AnyValue,
        Some("all_succeeded") => Join::AllSucceeded,
        Some("one_succeeded") => Join::OneSucceeded,
        Some("agg_sum") => Join::Sum,
        Some("agg_min") => Join::Min,
        Some("agg_max") => Join::Max,
        Some("agg_logical_and") => Join::And,
        Some("agg_logical_or") => Join::Or,
        Some(_) => Join::PerNode,
        None if command.name == "keys" => Join::Append,
        None => Join::PerNode,
    };
    Plan::Spread(spread, join)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words<'a>(Vec<&'a [u8]>);

    impl ArgList for Words<'_> {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn arg(&self, index: usize) -> &[u8] {
            self.0[index]
        }
    }

    fn of(command: &str, may_split: bool) -> String {
        let words = Words(command.split(' ').map(str::as_bytes).collect());
        match plan(&words, may_split) {
            Plan::Slot(slot) => slot.to_string(),
            Plan::Spread(spread, join) => format!("{spread:?} {join:?}"),
            Plan::Split { parts, join, .. } => {
                let parts: Vec<_> = parts.iter().map(|(slot, keys)| format!("{slot}={keys:?}")).collect();
                format!("{join:?} {}", parts.join(" "))
            }
            Plan::Refused(_) => "refused".into(),
            Plan::Anywhere => "anywhere".into(),
        }
    }

    #[test]
    fn the_table_knows_the_way() {
        for (command, expected) in [
            ("GET foo", "12182"),
            ("EVAL x 1 foo", "12182"),
            ("EVAL x 0", "anywhere"),
            ("XREAD COUNT 1 STREAMS foo 0", "12182"),
            ("SPUBLISH foo message", "12182"),
            ("PUBLISH foo message", "anywhere"),
            ("MGET {a}1 {a}2", "15495"),
            ("MGET foo bar foo", "ByKey 5061=[1] 12182=[0, 2]"),
            ("MSET foo 1 bar 2", "AllSucceeded 5061=[1] 12182=[0]"),
            ("MSET foo 1 bar", "12182"),
            ("MSETNX foo 1 bar 2", "12182"),
            ("DEL foo bar", "Sum 5061=[1] 12182=[0]"),
            ("EXISTS foo bar", "Sum 5061=[1] 12182=[0]"),
            ("SINTER foo bar", "12182"),
            ("DBSIZE", "Primaries Sum"),
            ("FLUSHALL", "Primaries AllSucceeded"),
            ("KEYS *", "Primaries Append"),
            ("RANDOMKEY", "Primaries AnyValue"),
            ("INFO", "Primaries PerNode"),
            ("SCRIPT LOAD x", "Nodes AllSucceeded"),
            ("SCRIPT EXISTS x", "Primaries And"),
            ("CONFIG SET maxmemory 0", "Nodes AllSucceeded"),
            ("PING", "Primaries AllSucceeded"),
            ("TIME", "anywhere"),
            ("SCAN 0", "refused"),
            ("JSON.DEBUG MEMORY foo", "12182"),
            ("JSON.MGET {a}1 {a}2 $", "15495"),
            ("VSIM foo ELE e", "12182"),
            ("FT.SEARCH foo bar", "anywhere"),
            ("TS.MGET FILTER foo=bar", "anywhere"),
            ("MODULE.DO foo bar", "12182"),
            ("MODULE.DO", "anywhere"),
            ("GET", "anywhere"),
        ] {
            assert_eq!(of(command, true), expected, "{command}");
        }
        assert_eq!(of("MGET foo bar", false), "12182");
    }
}
