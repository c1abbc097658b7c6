//! Each row of the rules, and of what Redis 7.0, Redis 8.2 and Valkey 9.1 were seen to answer, as one row here.

use super::*;
use crate::change::{Change, Outcome};
use crate::node::Announced;

const ME: NodeId = NodeId::from_bytes([1; NodeId::BYTES]);
const OTHER: NodeId = NodeId::from_bytes([2; NodeId::BYTES]);
const THIRD: NodeId = NodeId::from_bytes([3; NodeId::BYTES]);
const SLOT: Slot = 42;

/// This node owns the slot and nothing happens to it.
const MINE: SlotState =
    SlotState { owner: Owner::Me, migrating_to: None, importing_from: None, is_parked: false };
/// S of the table: it holds `a` and `b`.
const SOURCE: SlotState = SlotState { migrating_to: Some(OTHER), ..MINE };
/// T of the table: it holds `c`.
const TARGET: SlotState = SlotState {
    owner: Owner::Other(OTHER),
    importing_from: Some(OTHER),
    migrating_to: None,
    is_parked: false,
};
const NOT_MINE: SlotState = SlotState { importing_from: None, ..TARGET };
const UNASSIGNED: SlotState = SlotState { owner: Owner::Nobody, ..MINE };

const UP: NodeState = NodeState {
    is_cluster_ok: true,
    allows_reads_when_down: false,
    allows_shard_pubsub_when_down: true,
    replicates: None,
};
const DOWN: NodeState = NodeState { is_cluster_ok: false, ..UP };
const DOWN_READS: NodeState = NodeState { allows_reads_when_down: true, ..DOWN };
const DOWN_NO_PUBSUB: NodeState = NodeState { allows_shard_pubsub_when_down: false, ..DOWN };
const REPLICA: NodeState = NodeState { replicates: Some(OTHER), ..UP };

const KEY: Keys = Keys::Slot { slot: SLOT, are_several: false };
const TWO_KEYS: Keys = Keys::Slot { slot: SLOT, are_several: true };
const CROSS: Keys = Keys::CrossSlot { first: SLOT };

const READ: Request = Request {
    keys: KEY,
    is_asking: false,
    is_migrate: false,
    is_readonly_client: false,
    writes: false,
    is_shard_channel: false,
};
const WRITE: Request = Request { writes: true, ..READ };
const READ_TWO: Request = Request { keys: TWO_KEYS, ..READ };
const WRITE_TWO: Request = Request { keys: TWO_KEYS, ..WRITE };
const MIGRATE: Request = Request { is_migrate: true, ..WRITE };
const MIGRATE_TWO: Request = Request { keys: TWO_KEYS, ..MIGRATE };
const PUBLISH: Request = Request { is_shard_channel: true, ..READ };
const CHANNELS: Request = Request { keys: TWO_KEYS, ..PUBLISH };
const NO_KEYS: Request = Request { keys: Keys::None, ..WRITE };

const fn asking(request: Request) -> Request {
    Request { is_asking: true, ..request }
}

const fn readonly(request: Request) -> Request {
    Request { is_readonly_client: true, ..request }
}

const MOVED: Verdict = Verdict::Moved(SLOT, OTHER);
const ASK: Verdict = Verdict::Ask(SLOT, OTHER);

/// Keys that exist, keys that do not.
type Held = (usize, usize);
/// The gate must not look for keys.
const UNSEEN: Option<Held> = None;
type Row = (&'static str, Request, SlotState, NodeState, Option<Held>, Verdict);

fn rules() -> Vec<Row> {
    let parked = SlotState { is_parked: true, ..MINE };
    let parked_there = SlotState { is_parked: true, ..NOT_MINE };
    use Verdict::{CrossSlot, Down as IsDown, Park, Serve, TryAgain};
    vec![
        ("1: no keys", NO_KEYS, UNASSIGNED, DOWN, UNSEEN, Serve),
        ("2: unassigned", READ, UNASSIGNED, UP, UNSEEN, IsDown(Down::Unassigned)),
        ("2 before 3", Request { keys: CROSS, ..READ }, UNASSIGNED, UP, UNSEEN, IsDown(Down::Unassigned)),
        ("2 before 4", READ, UNASSIGNED, DOWN, UNSEEN, IsDown(Down::Unassigned)),
        ("2: channels too", PUBLISH, UNASSIGNED, UP, UNSEEN, IsDown(Down::Unassigned)),
        (
            "2: although importing",
            asking(READ),
            SlotState { owner: Owner::Nobody, ..TARGET },
            UP,
            UNSEEN,
            IsDown(Down::Unassigned),
        ),
        ("3: several slots", Request { keys: CROSS, ..READ }, MINE, UP, UNSEEN, CrossSlot),
        ("3: first one elsewhere", Request { keys: CROSS, ..READ }, NOT_MINE, UP, UNSEEN, CrossSlot),
        ("3 before 4", Request { keys: CROSS, ..READ }, MINE, DOWN, UNSEEN, CrossSlot),
        ("3: MIGRATE too", Request { keys: CROSS, ..MIGRATE }, SOURCE, UP, UNSEEN, CrossSlot),
        ("4: down", READ, MINE, DOWN, UNSEEN, IsDown(Down::State)),
        ("4: writes when down", WRITE, MINE, DOWN, UNSEEN, IsDown(Down::State)),
        ("4: reads are allowed", READ, MINE, DOWN_READS, UNSEEN, Serve),
        ("4: and still redirected", READ, NOT_MINE, DOWN_READS, UNSEEN, MOVED),
        ("4: writes are not", WRITE, MINE, DOWN_READS, UNSEEN, IsDown(Down::OnlyReads)),
        ("4: channels have their switch", PUBLISH, MINE, DOWN, UNSEEN, Serve),
        ("4: which may be off", PUBLISH, MINE, DOWN_NO_PUBSUB, UNSEEN, IsDown(Down::State)),
        ("4 before 5", MIGRATE, SOURCE, DOWN, UNSEEN, IsDown(Down::State)),
        ("parked: readers", READ, parked, UP, UNSEEN, Park),
        ("parked: writers", WRITE_TWO, parked, UP, UNSEEN, Park),
        ("parked: channels", PUBLISH, parked, UP, UNSEEN, Park),
        ("parked: MIGRATE", MIGRATE, SlotState { is_parked: true, ..SOURCE }, UP, UNSEEN, Park),
        ("parked: the hand-over is decided", READ, parked_there, UP, UNSEEN, MOVED),
        ("parked and down", READ, parked, DOWN, UNSEEN, IsDown(Down::State)),
        (
            "parked: what names several slots never runs",
            Request { keys: CROSS, ..READ },
            parked,
            UP,
            UNSEEN,
            CrossSlot,
        ),
        ("5: MIGRATE at the source", MIGRATE, SOURCE, UP, UNSEEN, Serve),
        ("5: whatever keys there are", MIGRATE_TWO, SOURCE, UP, UNSEEN, Serve),
        ("5: MIGRATE at the target", MIGRATE, TARGET, UP, UNSEEN, Serve),
        ("5: only on open slots", MIGRATE, NOT_MINE, UP, UNSEEN, MOVED),
        ("5: only on a primary", readonly(MIGRATE), TARGET, REPLICA, UNSEEN, MOVED),
        ("6: none missing", READ, SOURCE, UP, Some((1, 0)), Serve),
        ("6: all missing", READ, SOURCE, UP, Some((0, 1)), ASK),
        ("6: one key twice, missing", READ, SOURCE, UP, Some((0, 2)), ASK),
        ("6: partly", READ_TWO, SOURCE, UP, Some((1, 1)), TryAgain),
        ("6: not for channels", CHANNELS, SOURCE, UP, UNSEEN, Serve),
        ("6: ASKING changes nothing", asking(READ), SOURCE, UP, Some((0, 1)), ASK),
        ("7: one key, ASKING", asking(READ), TARGET, UP, UNSEEN, Serve),
        ("7: several, one missing", asking(READ_TWO), TARGET, UP, Some((1, 1)), TryAgain),
        ("7: several, none missing", asking(READ_TWO), TARGET, UP, Some((2, 0)), Serve),
        ("7: channels", asking(CHANNELS), TARGET, UP, UNSEEN, Serve),
        ("7: not importing", asking(READ), NOT_MINE, UP, UNSEEN, MOVED),
        ("8: READONLY at a replica", readonly(READ), NOT_MINE, REPLICA, UNSEEN, Serve),
        ("8: not writes", readonly(WRITE), NOT_MINE, REPLICA, UNSEEN, MOVED),
        ("8: not without READONLY", READ, NOT_MINE, REPLICA, UNSEEN, MOVED),
        ("8: channels need no READONLY", PUBLISH, NOT_MINE, REPLICA, UNSEEN, Serve),
        (
            "8: another's replica",
            readonly(READ),
            NOT_MINE,
            NodeState { replicates: Some(THIRD), ..UP },
            UNSEEN,
            MOVED,
        ),
        ("8: a replica without data", readonly(READ), NOT_MINE, UP, UNSEEN, MOVED),
        ("9: mine", WRITE_TWO, MINE, UP, UNSEEN, Serve),
        ("9: not mine", READ, NOT_MINE, UP, UNSEEN, MOVED),
    ]
}

/// The slot is open from S to T; S holds `a` and `b`, T holds `c`.
fn seen() -> Vec<Row> {
    use Verdict::{Serve, TryAgain};
    vec![
        ("GET present at S", READ, SOURCE, UP, Some((1, 0)), Serve),
        ("GET missing at S", READ, SOURCE, UP, Some((0, 1)), ASK),
        ("GET at T", READ, TARGET, UP, UNSEEN, MOVED),
        ("GET present at T, ASKING", asking(READ), TARGET, UP, UNSEEN, Serve),
        ("GET missing at T, ASKING", asking(READ), TARGET, UP, UNSEEN, Serve),
        ("SET new at S", WRITE, SOURCE, UP, Some((0, 1)), ASK),
        ("SET new at T", WRITE, TARGET, UP, UNSEEN, MOVED),
        ("SET new at T, ASKING", asking(WRITE), TARGET, UP, UNSEEN, Serve),
        ("MGET both at S", READ_TWO, SOURCE, UP, Some((2, 0)), Serve),
        ("MGET one at S", READ_TWO, SOURCE, UP, Some((1, 1)), TryAgain),
        ("MGET none at S", READ_TWO, SOURCE, UP, Some((0, 2)), ASK),
        ("MGET at T", READ_TWO, TARGET, UP, UNSEEN, MOVED),
        ("MGET both at T, ASKING", asking(READ_TWO), TARGET, UP, Some((2, 0)), Serve),
        ("MGET one at T, ASKING", asking(READ_TWO), TARGET, UP, Some((1, 1)), TryAgain),
        ("MGET none at T, ASKING", asking(READ_TWO), TARGET, UP, Some((0, 2)), TryAgain),
        ("DEL partial at S", WRITE_TWO, SOURCE, UP, Some((1, 1)), TryAgain),
        ("MSET of new keys at T, ASKING", asking(WRITE_TWO), TARGET, UP, Some((0, 2)), TryAgain),
        ("BLPOP missing at S", WRITE, SOURCE, UP, Some((0, 1)), ASK),
        ("BLPOP partial at S", WRITE_TWO, SOURCE, UP, Some((1, 1)), TryAgain),
        ("BLPOP of one key at T, ASKING", asking(WRITE), TARGET, UP, UNSEEN, Serve),
        ("BLPOP of two keys at T, ASKING", asking(WRITE_TWO), TARGET, UP, Some((0, 2)), TryAgain),
        ("WATCH missing at S", READ, SOURCE, UP, Some((0, 1)), ASK),
        ("EXEC of present keys at S", WRITE_TWO, SOURCE, UP, Some((2, 0)), Serve),
        ("EXEC after one key has left S", WRITE_TWO, SOURCE, UP, Some((1, 1)), TryAgain),
        ("SPUBLISH at S", PUBLISH, SOURCE, UP, UNSEEN, Serve),
        ("SPUBLISH at T", PUBLISH, TARGET, UP, UNSEEN, MOVED),
        ("SPUBLISH at T, ASKING", asking(PUBLISH), TARGET, UP, UNSEEN, Serve),
        ("RESTORE at T", WRITE, TARGET, UP, UNSEEN, MOVED),
        ("RESTORE-ASKING at T", asking(WRITE), TARGET, UP, UNSEEN, Serve),
    ]
}

#[test]
fn every_rule_and_every_observed_reply_in_its_order() {
    for (name, request, slot, node, held, expected) in rules().into_iter().chain(seen()) {
        let mut looked = 0;
        let verdict = decide(&request, &slot, &node, || {
            looked += 1;
            let (existing, missing) = held.unwrap_or_else(|| panic!("{name}: keys do not matter here"));
            Present { existing, missing }
        });
        assert_eq!(verdict, expected, "{name}");
        assert_eq!(looked, usize::from(held.is_some()), "{name}: looked for keys");
    }
}

#[test]
fn a_plain_slot_serves_whatever_has_its_keys_in_it() {
    // The server skips the gate for such slots: it may, only if no request is answered otherwise.
    assert!(MINE.is_plain());
    for other in [SOURCE, TARGET, NOT_MINE, UNASSIGNED, SlotState { is_parked: true, ..MINE }] {
        assert!(!other.is_plain(), "{other:?}");
    }
    for request in
        [READ, WRITE, READ_TWO, WRITE_TWO, MIGRATE, PUBLISH, asking(WRITE_TWO), readonly(READ), NO_KEYS]
    {
        assert_eq!(decide(&request, &MINE, &UP, || unreachable!()), Verdict::Serve, "{request:?}");
    }
}

#[test]
fn the_texts_are_those_that_clients_know() {
    for (down, text) in [
        (Down::Unassigned, "CLUSTERDOWN Hash slot not served"),
        (Down::State, "CLUSTERDOWN The cluster is down"),
        (Down::OnlyReads, "CLUSTERDOWN The cluster is down and only accepts read commands"),
    ] {
        assert_eq!(down.to_string(), text);
    }
}

#[test]
fn a_node_sees_its_own_markers_only() {
    let mut metadata = Metadata::default();
    let at = Announced::default();
    for change in [
        Change::Found { cluster: THIRD, node: ME, shard: ME, at: at.clone() },
        Change::Join { node: OTHER, shard: OTHER, at, slots: vec![], config_epoch: 0 },
        Change::AddSlots { node: OTHER, slots: vec![(SLOT, SLOT)] },
        Change::SetMigrating { node: OTHER, slot: SLOT, to: ME },
        Change::SetImporting { node: ME, slot: SLOT, from: OTHER },
    ] {
        assert_eq!(metadata.apply(&change), Outcome::Done);
    }
    assert_eq!(SlotState::of(&metadata, ME, SLOT, false), TARGET);
    let mine = SlotState { migrating_to: Some(ME), ..MINE };
    assert_eq!(SlotState::of(&metadata, OTHER, SLOT, false), mine);
    assert_eq!(SlotState::of(&metadata, ME, SLOT + 1, false), UNASSIGNED);
}
