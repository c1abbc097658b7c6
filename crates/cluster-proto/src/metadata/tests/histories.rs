//! Random histories over few nodes and slots, so that most changes meet what an earlier one left.

use super::*;
use proptest::prelude::*;

fn node() -> impl Strategy<Value = NodeId> {
    (1..6u8).prop_map(id)
}

fn slot() -> impl Strategy<Value = Slot> {
    prop_oneof![8 => 0..5u16, 1 => Just(16383), 1 => Just(16384)]
}

fn slots() -> impl Strategy<Value = Ranges> {
    prop_oneof![
        6 => prop::collection::vec(0..6u16, 0..4).prop_map(ranges),
        1 => prop::collection::vec((slot(), slot()), 0..3),
    ]
}

fn nodes_change() -> impl Strategy<Value = Change> {
    let at = || {
        prop_oneof![9 => Just("10.0.0.1"), 1 => Just("a b")]
            .prop_map(|ip| Announced { ip: ip.into(), ..Announced::default() })
    };
    let epoch = prop_oneof![4 => 0..5u64, 1 => Just(EPOCH_MAX), 1 => Just(u64::MAX)];
    let time = 0..100_000u64;
    prop_oneof![
        (node(), node()).prop_map(|(node, shard)| {
            Change::Found { cluster: id(100), node, shard, at: Announced::default() }
        }),
        (node(), node(), at(), slots(), epoch.clone()).prop_map(|(node, shard, at, slots, config_epoch)| {
            Change::Join { node, shard, at, slots, config_epoch }
        }),
        (node(), at()).prop_map(|(node, at)| Change::Announce { node, at }),
        (node(), epoch).prop_map(|(node, epoch)| Change::SetConfigEpoch { node, epoch }),
        node().prop_map(|node| Change::BumpEpoch { node }),
        (node(), node(), time.clone()).prop_map(|(by, node, now_ms)| Change::Forget { by, node, now_ms }),
        (node(), time.clone()).prop_map(|(node, now_ms)| Change::Leave { node, now_ms }),
        (node(), node()).prop_map(|(node, primary)| Change::Replicate { node, primary }),
        (node(), any::<bool>(), time).prop_map(|(node, answers, now_ms)| Change::Answers {
            node,
            answers,
            now_ms
        }),
    ]
}

fn slots_change() -> impl Strategy<Value = Change> {
    let name = || (50..53u8).prop_map(id);
    prop_oneof![
        (node(), slots()).prop_map(|(node, slots)| Change::AddSlots { node, slots }),
        slots().prop_map(|slots| Change::DelSlots { slots }),
        node().prop_map(|node| Change::FlushSlots { node }),
        (node(), slot(), node()).prop_map(|(node, slot, to)| Change::SetMigrating { node, slot, to }),
        (node(), slot(), node()).prop_map(|(node, slot, from)| Change::SetImporting { node, slot, from }),
        (node(), slot()).prop_map(|(node, slot)| Change::SetStable { node, slot }),
        (node(), slot(), node(), any::<bool>()).prop_map(|(node, slot, owner, holds_keys)| {
            Change::SetOwner { node, slot, owner, holds_keys }
        }),
        (name(), node(), node(), slots()).prop_map(|(id, source, target, slots)| {
            Change::BeginMigration { id, source, target, slots, now_ms: 1 }
        }),
        name().prop_map(|id| Change::CommitMigration { id, now_ms: 2 }),
        name().prop_map(|id| Change::EndMigration {
            id,
            end: MigrationEnd::Failed,
            message: "it failed".into(),
            now_ms: 3,
        }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let one = || prop_oneof![nodes_change(), slots_change(), slots_change()];
    prop_oneof![12 => one(), 1 => prop::collection::vec(one(), 0..4).prop_map(Change::Many)]
}

fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(_))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_change_has_an_outcome_and_keeps_the_invariants(
        changes in prop::collection::vec(change(), 1..80),
        is_founded in prop::bool::weighted(0.9),
    ) {
        let mut metadata = if is_founded { cluster() } else { Metadata::default() };
        for change in &changes {
            let before = metadata.clone();
            let outcome = metadata.apply(change);
            prop_assert_eq!(metadata.check(), Ok(()), "{:?}", change);
            if is_refused(&outcome) {
                prop_assert_eq!(&metadata, &before, "{:?} was refused", change);
            }
            let mut twin = before;
            prop_assert_eq!(twin.apply(change), outcome);
            prop_assert_eq!(&twin, &metadata);
            for (slot, owner) in metadata.owners() {
                prop_assert_eq!(metadata.owner(slot), Some(owner));
            }
        }
    }

    #[test]
    fn what_is_stored_is_what_is_read(changes in prop::collection::vec(change(), 1..40)) {
        let mut metadata = cluster();
        for change in &changes {
            let outcome = metadata.apply(change);
            let bytes = postcard::to_stdvec(&(change, &outcome)).unwrap();
            prop_assert_eq!(&postcard::from_bytes::<(Change, Outcome)>(&bytes).unwrap(), &(change.clone(), outcome));
        }
        let bytes = postcard::to_stdvec(&metadata).unwrap();
        prop_assert_eq!(postcard::from_bytes::<Metadata>(&bytes).unwrap(), metadata);
    }
}
