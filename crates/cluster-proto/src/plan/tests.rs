//! Plans: tables of small clusters, and what holds of every plan.

use super::*;
use proptest::prelude::*;

fn id(number: u8) -> NodeId {
    let mut bytes = [0; NodeId::BYTES];
    bytes[0] = number;
    NodeId::from_bytes(bytes)
}

fn share(number: u8, slots: &[(Slot, Slot)]) -> Share {
    Share { node: id(number), slots: slots.to_vec(), weight: None }
}

fn weighted(number: u8, slots: &[(Slot, Slot)], weight: f64) -> Share {
    Share { weight: Some(weight), ..share(number, slots) }
}

/// Who owns how much after the moves; panics if a slot is moved by somebody who does not own it.
fn after(shares: &[Share], moves: &[Move]) -> BTreeMap<NodeId, usize> {
    let mut owners: BTreeMap<Slot, NodeId> = BTreeMap::new();
    for share in shares {
        owners.extend(each(&share.slots).map(|slot| (slot, share.node)));
    }
    for step in moves {
        assert!(!step.slots.is_empty());
        for slot in each(&step.slots) {
            assert_eq!(owners.insert(slot, step.to), Some(step.from), "slot {slot}");
        }
    }
    let mut counts: BTreeMap<NodeId, usize> = shares.iter().map(|share| (share.node, 0)).collect();
    for owner in owners.values() {
        *counts.entry(*owner).or_default() += 1;
    }
    counts
}

#[test]
fn a_new_cluster_has_the_ranges_that_redis_cli_gives() {
    assert_eq!(spread(3), [vec![(0, 5460)], vec![(5461, 10922)], vec![(10923, 16383)]]);
    assert_eq!(spread(1), [vec![(0, 16383)]]);
    assert_eq!(spread(2), [vec![(0, 8191)], vec![(8192, 16383)]]);
    assert!(spread(0).is_empty());
    for primaries in [4, 5, 6, 7, 100, 1000, SLOT_COUNT, SLOT_COUNT + 9] {
        let all: Vec<Slot> =
            spread(primaries).iter().flat_map(|ranges| each(ranges).collect::<Vec<_>>()).collect();
        assert!(all.iter().copied().eq(0..SLOT_COUNT as Slot), "{primaries}");
        let sizes: Vec<usize> = spread(primaries).iter().map(|ranges| count(ranges)).collect();
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{primaries}");
    }
}

#[test]
fn replicas_are_even_and_on_other_hosts() {
    assert_eq!(place_replicas(&["a", "b", "c"], &["a", "b", "c"]), [1, 0, 2]);
    assert_eq!(place_replicas(&["a", "a"], &["a", "a", "a", "a"]), [0, 1, 0, 1]);
    assert_eq!(place_replicas(&["a", "b"], &["b", "a"]), [0, 1]);
    assert!(place_replicas(&[], &["a"]).is_empty());
}

#[test]
fn slots_are_taken_in_proportion() {
    let sources = [share(1, &[(0, 99)]), share(2, &[(100, 399)]), share(3, &[])];
    let moves = take(&sources, 40, id(3)).unwrap();
    assert_eq!(
        moves,
        [
            Move { from: id(1), to: id(3), slots: vec![(90, 99)] },
            Move { from: id(2), to: id(3), slots: vec![(370, 399)] },
        ]
    );
    // The target itself is no source.
    let moves = take(&sources, 5, id(1)).unwrap();
    assert_eq!(moves, [Move { from: id(2), to: id(1), slots: vec![(395, 399)] }]);
    assert_eq!(take(&sources, 301, id(1)), Err(PlanError::TooFew { wanted: 301, owned: 300 }));
    assert_eq!(take(&sources, 0, id(1)), Ok(Vec::new()));
}

#[test]
fn ranges_are_picked_from_their_owners_and_again_after_an_interruption() {
    let sources = [share(1, &[(0, 9)]), share(2, &[(10, 19)]), share(3, &[(30, 39)])];
    let moves = pick(&sources, &[(8, 11), (35, 36)], id(3)).unwrap();
    assert_eq!(
        moves,
        [
            Move { from: id(1), to: id(3), slots: vec![(8, 9)] },
            Move { from: id(2), to: id(3), slots: vec![(10, 11)] },
        ]
    );
    assert_eq!(pick(&sources, &[(20, 20)], id(1)), Err(PlanError::NotOwned(20)));
}

#[test]
fn short_ranges_are_given_whole_before_long_ones_are_cut() {
    let sources = [share(1, &[(0, 99), (200, 202), (300, 300)])];
    let moves = take(&sources, 6, id(2)).unwrap();
    assert_eq!(moves[0].slots, [(98, 99), (200, 202), (300, 300)]);
}

#[test]
fn a_table_of_rebalances() {
    let whole = (0, 16383);
    let even = || vec![share(1, &[(0, 5460)]), share(2, &[(5461, 10922)]), share(3, &[(10923, 16383)])];
    let sizes = |shares: &[Share], threshold: f64, uses_empty: bool| {
        let moves = rebalance(shares, threshold, uses_empty).unwrap();
        after(shares, &moves).into_values().collect::<Vec<_>>()
    };
    assert_eq!(rebalance(&even(), 2.0, false), Ok(Vec::new()));
    // Even is even: which of three has one more is no reason to move a slot.
    assert_eq!(rebalance(&even(), 0.0, false), Ok(Vec::new()));
    // An empty primary keeps nothing, unless it is asked for by flag or by weight.
    assert_eq!(sizes(&[share(1, &[whole]), share(2, &[])], 2.0, false), [16384, 0]);
    assert_eq!(sizes(&[share(1, &[whole]), share(2, &[])], 2.0, true), [8192, 8192]);
    assert_eq!(sizes(&[share(1, &[whole]), weighted(2, &[], 3.0)], 2.0, false), [4096, 12288]);
    // Within the threshold nothing moves, beyond it everything is made exact.
    let near = [share(1, &[(0, 8271)]), share(2, &[(8272, 16383)])];
    assert_eq!(sizes(&near, 2.0, false), [8272, 8112]);
    assert_eq!(sizes(&near, 0.5, false), [8192, 8192]);
    // Weight 0 empties, whatever the threshold.
    assert_eq!(sizes(&[weighted(1, &[(0, 0)], 0.0), share(2, &[(1, 16383)])], 100.0, false), [0, 16384]);
    assert_eq!(rebalance(&[weighted(1, &[whole], 0.0)], 2.0, false), Err(PlanError::NoWeight));
    assert_eq!(rebalance(&[weighted(1, &[whole], -1.0)], 2.0, false), Err(PlanError::Weight(id(1))));
    assert_eq!(rebalance(&[weighted(1, &[whole], f64::NAN)], 2.0, false), Err(PlanError::Weight(id(1))));
    assert_eq!(rebalance(&[share(1, &[]), share(2, &[])], 2.0, true), Ok(Vec::new()));
}

/// redis-cli went round for ever on this: 201 primaries, one of them to be emptied (redis #4941).
#[test]
fn one_of_201_primaries_is_emptied() {
    let mut shares: Vec<Share> =
        spread(201).iter().zip(1..).map(|(slots, number)| share(number, slots)).collect();
    shares[100].weight = Some(0.0);
    let moves = rebalance(&shares, 2.0, false).unwrap();
    let counts = after(&shares, &moves);
    assert_eq!(counts[&shares[100].node], 0);
    assert!(counts.values().all(|owned| [0, 81, 82].contains(owned)), "{counts:?}");
    // 200 of them emptied: the last one has everything.
    for share in &mut shares[..200] {
        share.weight = Some(0.0);
    }
    let moves = rebalance(&shares, 2.0, false).unwrap();
    assert_eq!(after(&shares, &moves)[&shares[200].node], SLOT_COUNT);
}

prop_compose! {
    fn clusters()(
        cuts in prop::collection::vec(0..SLOT_COUNT, 0..40),
        owners in prop::collection::vec(0u8..8, 41),
        weights in prop::collection::vec(prop::option::of(0u8..5), 8),
    ) -> Vec<Share> {
        let mut ends: Vec<usize> = cuts.into_iter().chain([SLOT_COUNT]).collect();
        ends.sort_unstable();
        let mut slots: Vec<Vec<Slot>> = vec![Vec::new(); 8];
        let mut first = 0;
        for (end, owner) in ends.iter().zip(owners) {
            slots[usize::from(owner)].extend((first..*end).map(|slot| slot as Slot));
            first = *end;
        }
        let number = 1u8..;
        slots.into_iter().zip(number).zip(weights)
            .map(|((slots, number), weight)| Share {
                node: id(number),
                slots: ranges_of(slots),
                weight: weight.map(f64::from),
            })
            .collect()
    }
}

proptest! {
    #[test]
    fn a_rebalance_gives_each_its_share_and_moves_no_slot_for_nothing(shares in clusters(), uses_empty: bool) {
        let Ok(moves) = rebalance(&shares, 0.0, uses_empty) else {
            return Ok(());
        };
        let counts = after(&shares, &moves);
        let takes_part = |share: &&Share| !share.slots.is_empty() || share.weight.is_some() || uses_empty;
        let sum: f64 = shares.iter().filter(takes_part).map(|share| share.weight.unwrap_or(1.0)).sum();
        for share in shares.iter().filter(takes_part) {
            let exact = SLOT_COUNT as f64 * share.weight.unwrap_or(1.0) / sum;
            prop_assert!((counts[&share.node] as f64 - exact).abs() < 1.0 + 1e-6);
        }
        let givers: Vec<NodeId> = moves.iter().map(|step| step.from).collect();
        prop_assert!(moves.iter().all(|step| !givers.contains(&step.to)));
        // A balanced cluster stays as it is.
        let mut owners: BTreeMap<NodeId, Vec<Slot>> = shares.iter().map(|s| (s.node, each(&s.slots).collect())).collect();
        for step in &moves {
            let moved: Vec<Slot> = each(&step.slots).collect();
            owners.get_mut(&step.from).unwrap().retain(|slot| !moved.contains(slot));
            owners.get_mut(&step.to).unwrap().extend(moved);
        }
        let again: Vec<Share> = shares.iter()
            .map(|share| Share { slots: ranges_of(owners[&share.node].iter().copied()), ..share.clone() })
            .collect();
        if again.iter().zip(&shares).all(|(a, b)| a.slots.is_empty() == b.slots.is_empty()) {
            prop_assert_eq!(rebalance(&again, 0.0, uses_empty), Ok(Vec::new()));
        }
    }

    #[test]
    fn as_many_are_taken_as_are_wanted(shares in clusters(), wanted in 0..=SLOT_COUNT) {
        let owned: usize = shares[1..].iter().map(|share| count(&share.slots)).sum();
        match take(&shares, wanted, shares[0].node) {
            Ok(moves) => {
                let before = count(&shares[0].slots);
                prop_assert_eq!(after(&shares, &moves)[&shares[0].node], before + wanted);
            }
            Err(error) => prop_assert_eq!(error, PlanError::TooFew { wanted, owned }),
        }
    }
}
