//! What each change does and refuses, and that no history of changes breaks an invariant.

mod histories;

use super::*;
use crate::change::{MigrationEnd, ranges};
use crate::node::{Announced, Health};

const fn id(n: u8) -> NodeId {
    NodeId::from_bytes([n; NodeId::BYTES])
}

/// Source, target, a third primary, a replica of the source, and one that nobody knows.
const S: NodeId = id(1);
const T: NodeId = id(2);
const B: NodeId = id(3);
const R: NodeId = id(4);
const STRANGER: NodeId = id(9);
const M: NodeId = id(50);
const SLOT: Slot = 7;
/// A slot of the third node.
const OTHERS: Slot = 2000;
/// A slot of nobody.
const FREE: Slot = 16_000;

fn refused(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused(refused) => refused.to_string(),
        Outcome::Done | Outcome::Epoch { .. } | Outcome::Many(_) => format!("not refused: {outcome:?}"),
    }
}

fn join(node: NodeId, slots: Ranges, config_epoch: u64) -> Change {
    Change::Join { node, shard: node, at: Announced::default(), slots, config_epoch }
}

fn done(metadata: &mut Metadata, changes: impl IntoIterator<Item = Change>) {
    for change in changes {
        assert_eq!(metadata.apply(&change), Outcome::Done, "{change:?}");
        assert_eq!(metadata.check(), Ok(()), "{change:?}");
    }
}

/// S owns 0-999, T 1000-1999, B 2000-2999; epochs 1, 2, 3.
fn cluster() -> Metadata {
    let mut metadata = Metadata::default();
    let at = Announced::default();
    done(
        &mut metadata,
        [
            Change::Found { cluster: id(100), node: S, shard: S, at },
            Change::AddSlots { node: S, slots: vec![(0, 999)] },
            Change::SetConfigEpoch { node: S, epoch: 1 },
            join(T, vec![(1000, 1999)], 2),
            join(B, vec![(2000, 2999)], 3),
            join(R, vec![], 0),
            Change::Replicate { node: R, primary: S },
        ],
    );
    metadata
}

fn migrating(node: NodeId, slot: Slot, to: NodeId) -> Change {
    Change::SetMigrating { node, slot, to }
}

fn importing(node: NodeId, slot: Slot, from: NodeId) -> Change {
    Change::SetImporting { node, slot, from }
}

fn stable(node: NodeId, slot: Slot) -> Change {
    Change::SetStable { node, slot }
}

fn owner(node: NodeId, slot: Slot, owner: NodeId) -> Change {
    Change::SetOwner { node, slot, owner, holds_keys: false }
}

fn begin(slots: Ranges) -> Change {
    Change::BeginMigration { id: M, source: S, target: T, slots, now_ms: 10 }
}

fn commit() -> Change {
    Change::CommitMigration { id: M, now_ms: 20 }
}

fn end(message: &str) -> Change {
    Change::EndMigration { id: M, end: MigrationEnd::Failed, message: message.into(), now_ms: 30 }
}

/// `(what is said, the reply)`, on a cluster whose slot [`SLOT`] is closed.
fn setslot_replies() -> Vec<(Change, String)> {
    let keys = Change::SetOwner { node: S, slot: SLOT, owner: T, holds_keys: true };
    let replica = "ERR Please use SETSLOT only with masters.";
    let out_of_range = "ERR Invalid or out of range slot";
    let rows = [
        (migrating(R, SLOT, T), replica.to_owned()),
        (importing(R, SLOT, T), replica.to_owned()),
        (stable(R, SLOT), replica.to_owned()),
        (owner(R, SLOT, T), replica.to_owned()),
        (stable(S, 16384), out_of_range.to_owned()),
        (owner(S, Slot::MAX, T), out_of_range.to_owned()),
        (migrating(S, OTHERS, T), format!("ERR I'm not the owner of hash slot {OTHERS}")),
        (migrating(S, FREE, T), format!("ERR I'm not the owner of hash slot {FREE}")),
        // Ownership comes before the question who the other one is.
        (migrating(T, SLOT, STRANGER), format!("ERR I'm not the owner of hash slot {SLOT}")),
        (importing(S, SLOT, T), format!("ERR I'm already the owner of hash slot {SLOT}")),
        (migrating(S, SLOT, STRANGER), format!("ERR I don't know about node {STRANGER}")),
        (importing(T, SLOT, STRANGER), format!("ERR I don't know about node {STRANGER}")),
        (owner(T, SLOT, STRANGER), format!("ERR Unknown node {STRANGER}")),
        (migrating(S, SLOT, R), "ERR Target node is not a master".to_owned()),
        (importing(T, SLOT, R), "ERR Target node is not a master".to_owned()),
        (owner(T, SLOT, R), "ERR Target node is not a master".to_owned()),
        (migrating(S, SLOT, S), "ERR Target node is myself".to_owned()),
        (
            keys,
            format!(
                "ERR Can't assign hashslot {SLOT} to a different node while I still hold keys for this hash slot."
            ),
        ),
    ];
    rows.into()
}

#[test]
fn setslot_refuses_with_the_texts_of_redis_and_changes_nothing() {
    let mut metadata = cluster();
    let before = metadata.clone();
    for (change, reply) in setslot_replies() {
        assert_eq!(refused(&metadata.apply(&change)), reply, "{change:?}");
        assert_eq!(metadata, before, "{change:?}");
    }
}

#[test]
fn setslot_allows_what_redis_allows() {
    let mut metadata = cluster();
    done(&mut metadata, [importing(T, SLOT, B)]);
    assert_eq!(metadata.marker(T, SLOT), Some(Marker::ImportingFrom(B)), "from a node that does not own it");
    done(&mut metadata, [migrating(S, SLOT, T), migrating(S, SLOT, B)]);
    assert_eq!(metadata.marker(S, SLOT), Some(Marker::MigratingTo(B)), "the last destination counts");
    done(&mut metadata, [stable(S, SLOT), stable(S, SLOT), stable(T, SLOT), stable(B, FREE)]);
    assert_eq!(metadata.markers_of(S).chain(metadata.markers_of(T)).next(), None);
    assert_eq!(metadata, cluster());
}

/// What redis-cli does for one slot.
fn move_slot(slot: Slot) -> [Change; 5] {
    [importing(T, slot, S), migrating(S, slot, T), owner(T, slot, T), owner(S, slot, T), owner(B, slot, T)]
}

#[test]
fn a_slot_moves_as_tools_move_it_and_the_epoch_is_raised_once() {
    let mut metadata = cluster();
    done(&mut metadata, move_slot(SLOT));
    assert_eq!(metadata.owner(SLOT), Some(T));
    assert_eq!(metadata.slots_of(S), [(0, 6), (8, 999)]);
    assert_eq!(metadata.node(T).unwrap().config_epoch, 4);
    assert_eq!(metadata.markers_of(S).chain(metadata.markers_of(T)).next(), None);
    done(&mut metadata, move_slot(SLOT + 1));
    assert_eq!(metadata.current_epoch(), 4, "the highest already");
}

#[test]
fn said_to_the_source_first_both_agree_all_the_same() {
    let mut metadata = cluster();
    done(&mut metadata, [importing(T, SLOT, S), migrating(S, SLOT, T), owner(S, SLOT, T)]);
    assert_eq!((metadata.owner(SLOT), metadata.marker(T, SLOT)), (Some(T), None));
    let after = metadata.clone();
    done(&mut metadata, [owner(T, SLOT, T), owner(B, SLOT, T)]);
    assert_eq!(metadata, after);
}

#[test]
fn a_node_that_has_nothing_to_do_with_a_slot_does_not_give_it_away() {
    let mut metadata = cluster();
    done(&mut metadata, [importing(T, SLOT, S), migrating(S, SLOT, T)]);
    let before = metadata.clone();
    done(&mut metadata, [owner(B, SLOT, T)]);
    assert_eq!(metadata, before);
    done(&mut metadata, [owner(B, FREE, T)]);
    assert_eq!(metadata.owner(FREE), Some(T), "nobody's slot is everybody's");
}

#[test]
fn the_last_node_of_a_slot_keeps_no_marker_that_contradicts_it() {
    let mut metadata = cluster();
    done(&mut metadata, [migrating(S, SLOT, T), importing(T, SLOT, S), importing(B, SLOT, S)]);
    done(&mut metadata, [Change::DelSlots { slots: vec![(0, 999)] }]);
    assert_eq!(metadata.marker(S, SLOT), None);
    assert_eq!(metadata.marker(T, SLOT), Some(Marker::ImportingFrom(S)));
    done(&mut metadata, [Change::AddSlots { node: T, slots: vec![(0, 999)] }]);
    assert_eq!(metadata.marker(T, SLOT), None);
    assert_eq!(metadata.marker(B, SLOT), Some(Marker::ImportingFrom(S)));
}

#[test]
fn slots_are_added_and_deleted_all_or_none() {
    let mut metadata = cluster();
    let before = metadata.clone();
    let add = |node, slots| Change::AddSlots { node, slots };
    let del = |slots| Change::DelSlots { slots };
    for (change, reply) in [
        (add(S, vec![(5000, 5001), (1500, 1500)]), "ERR Invalid or out of range slot"),
        (add(S, vec![(1500, 1500), (5000, 5001)]), "ERR Slot 1500 is already busy"),
        (add(S, vec![(16383, 16384)]), "ERR Invalid or out of range slot"),
        (add(S, vec![(5001, 5000)]), "ERR Invalid or out of range slot"),
        (add(R, vec![(5000, 5001)]), "ERR Target node is not a master"),
        (del(vec![(2999, 3000)]), "ERR Slot 3000 is already unassigned"),
    ] {
        assert_eq!(refused(&metadata.apply(&change)), reply, "{change:?}");
        assert_eq!(metadata, before);
    }
    done(&mut metadata, [add(S, ranges([5001, 5000, 5000])), Change::FlushSlots { node: S }]);
    assert_eq!(metadata.slots_of(S), []);
    done(&mut metadata, [Change::FlushSlots { node: S }]);
}

#[test]
fn a_joining_node_keeps_what_it_owns_only_with_the_higher_epoch() {
    let mut metadata = cluster();
    // S: epoch 1, T: 2, B: 3. It claims a slot of each, and one of nobody.
    let slots = vec![(0, 0), (1000, 1000), (2000, 2000), (FREE, FREE)];
    done(&mut metadata, [join(id(5), slots.clone(), 2)]);
    assert_eq!(metadata.slots_of(id(5)), [(0, 0), (FREE, FREE)], "equal epochs: who was there first");
    assert_eq!(metadata.node(id(5)).unwrap().config_epoch, 4, "and the one that came gets a new one");
    // It asks again, and has moved meanwhile.
    let at = Announced { ip: "10.0.0.5".into(), ..Announced::default() };
    done(&mut metadata, [Change::Join { node: id(5), shard: id(5), at, slots, config_epoch: 9 }]);
    assert_eq!(metadata.slots_of(id(5)), [(0, 0), (FREE, FREE)]);
    assert_eq!(metadata.node(id(5)).unwrap().at.ip, "10.0.0.5");
    // Slots that are on their way are not up for discussion.
    done(&mut metadata, [begin(vec![(10, 11)]), join(id(6), vec![(10, 12)], 100)]);
    assert_eq!(metadata.slots_of(id(6)), [(12, 12)]);
    assert_eq!(metadata.current_epoch(), 100);
}

#[test]
fn what_would_break_lines_or_epochs_does_not_join() {
    let mut metadata = cluster();
    let at = |ip: &str| Announced { ip: ip.into(), ..Announced::default() };
    for ip in ["10.0.0.1\n", "a b", "a,b", "a@b", "\u{e9}", &"a".repeat(256)] {
        let change = Change::Join { node: id(5), shard: id(5), at: at(ip), slots: vec![], config_epoch: 0 };
        assert!(refused(&metadata.apply(&change)).starts_with("ERR An address"), "{ip:?}");
        let change = Change::Announce { node: S, at: at(ip) };
        assert!(refused(&metadata.apply(&change)).starts_with("ERR An address"), "{ip:?}");
    }
    let outcome = metadata.apply(&join(id(5), vec![], EPOCH_MAX + 1));
    assert!(refused(&outcome).starts_with("ERR Invalid config epoch"));
    assert_eq!(metadata, cluster());
    assert!(refused(&Metadata::default().apply(&join(S, vec![], 0))).contains("no cluster yet"));
    // Two that come from a copied directory say the same shard.
    let twin = Change::Join {
        node: id(5),
        shard: S,
        at: Announced::default(),
        slots: vec![],
        config_epoch: EPOCH_MAX,
    };
    done(&mut metadata, [twin]);
    assert!(matches!(metadata.apply(&Change::BumpEpoch { node: S }), Outcome::Epoch { is_new: true, .. }));
    assert_eq!(metadata.check(), Ok(()));
}

#[test]
fn forgetting_is_repeated_by_tools_and_refused_when_it_would_lose_slots() {
    let mut metadata = cluster();
    let forget = |by, node, now_ms| Change::Forget { by, node, now_ms };
    for (change, reply) in [
        (forget(S, STRANGER, 0), format!("ERR Unknown node {STRANGER}")),
        (forget(S, S, 0), "ERR I tried hard but I can't forget myself...".into()),
        (forget(R, S, 0), "ERR Can't forget my master!".into()),
        (
            forget(S, T, 0),
            "ERR This node owns slots: move them away first, or 'CLUSTER DELSLOTS' them".into(),
        ),
    ] {
        assert_eq!(refused(&metadata.apply(&change)), reply, "{change:?}");
    }
    assert_eq!(metadata, cluster());
    done(&mut metadata, [importing(T, SLOT, S), migrating(S, SLOT, T), Change::FlushSlots { node: T }]);
    done(&mut metadata, [forget(S, T, 1000), forget(B, T, 1500), forget(R, T, 60_999)]);
    assert_eq!(metadata.marker(S, SLOT), None);
    assert_eq!(refused(&metadata.apply(&forget(B, T, 61_000))), format!("ERR Unknown node {T}"));
    // A primary that goes leaves its replicas by themselves.
    done(&mut metadata, [Change::FlushSlots { node: S }, forget(B, S, 2000)]);
    assert_eq!(metadata.node(R).map(|node| (node.role, node.shard)), Some((Role::Primary, R)));
    // And may come back, as soon as it likes.
    done(&mut metadata, [join(S, vec![(0, 5)], 1)]);
    assert_eq!(metadata.slots_of(S), [(0, 5)]);
}

#[test]
fn a_node_that_is_reset_leaves_with_its_slots() {
    let mut metadata = cluster();
    done(&mut metadata, [begin(vec![(0, 10)]), importing(T, SLOT + 20, S)]);
    let leave = Change::Leave { node: S, now_ms: 1000 };
    done(&mut metadata, [leave.clone(), leave]);
    assert_eq!(metadata.owner(SLOT), None);
    assert!(!metadata.migrations()[&M].is_active());
    done(&mut metadata, [Change::Forget { by: T, node: S, now_ms: 1001 }]);
}

#[test]
fn replicas_are_empty_and_follow_primaries() {
    let mut metadata = cluster();
    let replicate = |node, primary| Change::Replicate { node, primary };
    let not_empty = "ERR To set a master the node must be empty and without assigned slots.";
    for (change, reply) in [
        (replicate(R, STRANGER), format!("ERR Unknown node {STRANGER}")),
        (replicate(STRANGER, S), format!("ERR Unknown node {STRANGER}")),
        (replicate(S, S), "ERR Can't replicate myself".into()),
        (replicate(T, R), "ERR I can only replicate a master, not a replica.".into()),
        (replicate(T, S), not_empty.into()),
    ] {
        assert_eq!(refused(&metadata.apply(&change)), reply, "{change:?}");
    }
    assert_eq!(metadata, cluster());
    done(&mut metadata, [Change::FlushSlots { node: T }, begin(vec![(0, 0)])]);
    assert_eq!(refused(&metadata.apply(&replicate(T, B))), not_empty, "slots are coming");
    done(&mut metadata, [end(""), migrating(S, SLOT, T), importing(T, SLOT, S), replicate(T, B)]);
    assert_eq!(metadata.marker(S, SLOT), None, "clients would be sent to and fro");
    assert_eq!(metadata.replicas_of(B).collect::<Vec<_>>(), [T]);
}

#[test]
fn epochs_are_set_once_and_raised_when_they_are_not_the_highest() {
    let mut metadata = Metadata::default();
    let at = Announced::default();
    done(&mut metadata, [Change::Found { cluster: id(100), node: S, shard: S, at }]);
    let set = |epoch| Change::SetConfigEpoch { node: S, epoch };
    assert!(refused(&metadata.apply(&set(EPOCH_MAX + 1))).starts_with("ERR Invalid config epoch"));
    done(&mut metadata, [set(5)]);
    assert_eq!(refused(&metadata.apply(&set(6))), "ERR Node config epoch is already non-zero");
    let bump = |node| Change::BumpEpoch { node };
    assert_eq!(metadata.apply(&bump(S)), Outcome::Epoch { epoch: 5, is_new: false });
    done(&mut metadata, [join(T, vec![], 0)]);
    assert_eq!(metadata.apply(&bump(T)), Outcome::Epoch { epoch: 6, is_new: true });
    let alone = "ERR The user can assign a config epoch only when the node does not know any other node.";
    assert_eq!(refused(&metadata.apply(&set(7))), alone);
}

#[test]
fn of_commit_and_end_the_first_decides() {
    for changes in [[commit(), end("late")], [end("early"), commit()]] {
        let mut metadata = cluster();
        done(&mut metadata, [begin(vec![(0, 9)]), begin(vec![(0, 9)])]);
        done(&mut metadata, [changes[0].clone(), changes[0].clone()]);
        let decided = metadata.clone();
        assert_eq!(refused(&metadata.apply(&changes[1])), "ERR The migration is over");
        assert_eq!(metadata, decided);
        let is_done = changes[0] == commit();
        assert_eq!(metadata.owner(9), Some(if is_done { T } else { S }));
        assert_eq!(metadata.owner(10), Some(S));
        assert_eq!(metadata.node(T).unwrap().config_epoch, if is_done { 4 } else { 2 });
        assert_eq!(metadata.migrations()[&M].updated_ms, if is_done { 20 } else { 30 });
    }
}

#[test]
fn slots_under_way_are_left_alone() {
    let mut metadata = cluster();
    done(&mut metadata, [begin(vec![(0, 9)])]);
    let before = metadata.clone();
    let other = |target, slots| Change::BeginMigration { id: id(51), source: S, target, slots, now_ms: 10 };
    for (change, reply) in [
        (migrating(S, 5, B), "ERR Slot export in progress."),
        (importing(T, 5, S), "ERR Slot import in progress."),
        (owner(T, 5, T), "ERR Slot import in progress."),
        (owner(B, 5, B), "ERR Slot export in progress."),
        (stable(S, 5), "ERR Slot export in progress."),
        (Change::DelSlots { slots: vec![(9, 9)] }, "ERR Slot export in progress."),
        (Change::FlushSlots { node: S }, "ERR Slot export in progress."),
        (other(B, vec![(9, 10)]), "ERR I am already migrating slot 9."),
        (other(S, vec![(10, 11)]), "ERR Target node can not be this node."),
        (other(R, vec![(10, 11)]), "ERR Target node is not a master"),
        (other(T, vec![(999, 1000)]), "ERR Slots are not served by this node."),
        (other(T, vec![]), "ERR No slots to migrate"),
        (
            Change::BeginMigration {
                id: id(51),
                source: B,
                target: T,
                slots: vec![(2000, 2000), (FREE, FREE)],
                now_ms: 0,
            },
            "ERR Slot 16000 has no node served.",
        ),
        (Change::CommitMigration { id: id(51), now_ms: 0 }, "ERR There is no such migration"),
    ] {
        assert_eq!(refused(&metadata.apply(&change)), reply, "{change:?}");
        assert_eq!(metadata, before, "{change:?}");
    }
    let unknown = format!("ERR Unknown node name: {STRANGER}");
    assert_eq!(refused(&metadata.apply(&other(STRANGER, vec![(10, 11)]))), unknown);
    done(&mut metadata, [importing(B, 20, S)]);
    done(&mut metadata, [migrating(S, 20, B)]);
    let open = "ERR Slot 20 is open: finish its migration with CLUSTER SETSLOT first.";
    assert_eq!(refused(&metadata.apply(&other(T, vec![(20, 20)]))), open);
}

#[test]
fn the_history_of_migrations_is_bounded_and_drops_the_oldest() {
    let mut metadata = cluster();
    let name = |n: u16| {
        let mut bytes = [0; NodeId::BYTES];
        // Names in another order than time.
        bytes[..2].copy_from_slice(&n.reverse_bits().to_be_bytes());
        NodeId::from_bytes(bytes)
    };
    let count = MIGRATIONS_KEPT as u16 + 20;
    for n in 0..count {
        let id = name(n);
        let begin = Change::BeginMigration { id, source: S, target: T, slots: vec![(0, 0)], now_ms: 0 };
        let message = "\u{e9}".repeat(200);
        let end = Change::EndMigration { id, end: MigrationEnd::Cancelled, message, now_ms: 0 };
        assert_eq!([metadata.apply(&begin), metadata.apply(&end)], [Outcome::Done, Outcome::Done]);
    }
    assert_eq!(metadata.migrations().len(), MIGRATIONS_KEPT);
    assert!(!metadata.migrations().contains_key(&name(19)));
    let oldest = &metadata.migrations()[&name(20)];
    assert_eq!(oldest.number, 21);
    let MigrationState::Ended { message, .. } = &oldest.state else { panic!("it was cancelled") };
    assert_eq!(message.len(), MESSAGE_BYTES_MAX);
}

#[test]
fn a_transaction_goes_on_after_a_part_that_is_refused() {
    let mut metadata = cluster();
    // What `redis-cli --cluster fix` says for a slot of nobody.
    let fix = Change::Many(vec![
        Change::DelSlots { slots: vec![(FREE, FREE)] },
        Change::AddSlots { node: S, slots: vec![(FREE, FREE)] },
        stable(S, FREE),
        Change::BumpEpoch { node: S },
    ]);
    let outcome = metadata.apply(&fix);
    let Outcome::Many(parts) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refused(&parts[0]), format!("ERR Slot {FREE} is already unassigned"));
    assert_eq!(parts[1..], [Outcome::Done, Outcome::Done, Outcome::Epoch { epoch: 4, is_new: true }]);
    let nested = metadata.apply(&Change::Many(vec![Change::Many(vec![])]));
    assert!(matches!(&nested, Outcome::Many(parts) if refused(&parts[0]).contains("another one")));
}

#[test]
fn a_failed_node_failed_when_it_was_first_seen_to() {
    let mut metadata = cluster();
    let answers = |answers, now_ms| Change::Answers { node: T, answers, now_ms };
    done(&mut metadata, [answers(false, 10), answers(false, 20)]);
    assert_eq!(metadata.node(T).unwrap().health, Health::Failed { since_ms: 10 });
    done(&mut metadata, [answers(true, 30)]);
    assert_eq!(metadata.node(T).unwrap().health, Health::Online);
}

#[test]
fn what_came_later_is_told_from_what_an_earlier_migration_left() {
    let mut metadata = cluster();
    let begin = |n, source, target| Change::BeginMigration {
        id: id(n),
        source,
        target,
        slots: vec![(SLOT, SLOT)],
        now_ms: 10,
    };
    let end =
        |n| Change::EndMigration { id: id(n), end: MigrationEnd::Failed, message: String::new(), now_ms: 11 };
    let commit = |n| Change::CommitMigration { id: id(n), now_ms: 11 };
    done(&mut metadata, [begin(60, S, T), end(60)]);
    assert!(!metadata.came_later(T, SLOT, id(60)));
    done(&mut metadata, [begin(61, S, T)]);
    assert!(metadata.came_later(T, SLOT, id(60)), "it may be coming");
    assert!(!metadata.came_later(T, SLOT, id(61)), "that is the one itself");
    assert!(!metadata.came_later(T, SLOT + 1, id(60)) && !metadata.came_later(B, SLOT, id(60)));
    done(&mut metadata, [commit(61)]);
    assert!(metadata.came_later(T, SLOT, id(60)), "it came");
    done(&mut metadata, [begin(62, T, S), commit(62)]);
    assert!(!metadata.came_later(T, SLOT, id(60)), "it came and went");
}

#[test]
fn metadata_that_break_an_invariant_are_found() {
    type Break = fn(&mut Metadata);
    let breaks: [(&str, Break); 8] = [
        ("overlap", |it| Arc::make_mut(&mut it.owners).set(16384, 16385, Some(S))),
        ("no primary", |it| Arc::make_mut(&mut it.owners).set(5, 5, Some(R))),
        ("contradicts", |it| _ = it.markers.insert((T, SLOT), Marker::MigratingTo(S))),
        ("no primary", |it| _ = it.markers.insert((S, SLOT), Marker::MigratingTo(R))),
        ("epoch", |it| Arc::make_mut(&mut it.nodes).get_mut(&S).unwrap().config_epoch = 2),
        ("epoch", |it| it.current_epoch = 0),
        ("shard", |it| Arc::make_mut(&mut it.nodes).get_mut(&S).unwrap().shard = T),
        ("malformed", |it| Arc::make_mut(&mut it.nodes).get_mut(&S).unwrap().at.name = "a b".into()),
    ];
    for (what, breaks) in breaks {
        let mut metadata = cluster();
        breaks(&mut metadata);
        let inconsistent = metadata.check().unwrap_err().to_string();
        assert!(inconsistent.contains(what), "{what}: {inconsistent}");
    }
}
