use super::*;
use crate::thin::ThinKey;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn key(n: u64) -> Vec<u8> {
    format!("key:{n}").into_bytes()
}

fn insert(table: &mut Table<ThinKey>, n: u64) {
    table.insert(hash64(&key(n)), ThinKey::new(&key(n)));
}

fn scan_all(
    table: &mut Table<ThinKey>,
    count: usize,
    mut between: impl FnMut(&mut Table<ThinKey>),
) -> BTreeSet<Vec<u8>> {
    let (mut cursor, mut seen) = (0, BTreeSet::new());
    loop {
        cursor = table.scan(cursor, count, &mut |item| {
            seen.insert(item.key().to_vec());
        });
        if cursor == 0 {
            return seen;
        }
        between(table);
    }
}

proptest! {
    #[test]
    fn behaves_as_a_set(ops in prop::collection::vec((0u8..4, 0u64..3000), 1..4000)) {
        let (mut table, mut model) = (Table::<ThinKey>::new(), BTreeSet::new());
        for (op, n) in ops {
            let hash = hash64(&key(n));
            match op {
                0 | 1 => if model.insert(n) { insert(&mut table, n) },
                2 => prop_assert_eq!(table.remove(hash, &key(n)).is_some(), model.remove(&n)),
                _ => prop_assert_eq!(table.get(hash, &key(n)).is_some(), model.contains(&n)),
            }
            prop_assert_eq!(table.len(), model.len());
        }
        let all: BTreeSet<_> = table.iter().map(|item| item.key().to_vec()).collect();
        prop_assert_eq!(all, model.iter().map(|&n| key(n)).collect::<BTreeSet<_>>());
    }

    #[test]
    fn a_scan_misses_nothing_while_the_table_changes(count in 1usize..50, seed: u64, keep in 1u64..600) {
        let mut table = Table::new();
        (0..keep).for_each(|n| insert(&mut table, n));
        let (mut rng, mut next) = (Prng::new(seed), keep);
        let mut guests = Vec::new();
        let seen = scan_all(&mut table, count, |table| {
            for _ in 0..rng.below(200) {
                if rng.below(3) > 0 {
                    insert(table, next);
                    guests.push(next);
                    next += 1;
                } else if let Some(n) = guests.pop() {
                    table.remove(hash64(&key(n)), &key(n));
                }
            }
            if next > 20_000 { for n in guests.drain(..) { table.remove(hash64(&key(n)), &key(n)); } }
        });
        for n in 0..keep {
            prop_assert!(seen.contains(&key(n)));
        }
    }
}

#[test]
fn a_hundred_thousand_items() {
    let mut table = Table::new();
    (0..100_000).for_each(|n| insert(&mut table, n));
    assert_eq!(scan_all(&mut table, 10, |_| {}).len(), 100_000);
    let mut seen = BTreeSet::new();
    let mut rng = Prng::new(3);
    for _ in 0..20_000 {
        seen.insert(table.random(rng.next_u64()).unwrap().key().to_vec());
    }
    assert!(seen.len() > 17_000, "20,000 uniform draws of 100,000 repeat about 1,900 times: {}", seen.len());
    let places = table.segments().iter().map(|segment| segment.places.len() * 8).sum::<usize>();
    assert!(matches!(&table.shape, Shape::Many(directory) if directory.place_bytes == places));
    assert!(places < 100_000 * 13, "{places}");
    for n in 0..100_000 {
        assert!(table.remove(hash64(&key(n)), &key(n)).is_some());
    }
    assert_eq!((table.len(), table.mem_bytes()), (0, 0));
}

#[test]
fn updates_that_move_the_block_are_kept() {
    use crate::thin::ThinPair;
    let mut table = Table::new();
    table.insert(hash64(b"f"), ThinPair::new(b"f", b"v", None));
    table.get_mut(hash64(b"f"), b"f").unwrap().set_value(&[9; 5000]);
    assert_eq!(table.get(hash64(b"f"), b"f").unwrap().value(), &[9; 5000]);
    assert_eq!(table.replace(hash64(b"f"), ThinPair::new(b"f", b"w", None)).unwrap().value().len(), 5000);
    assert_eq!(table.len(), 1);
}

#[test]
fn memory_of_a_small_table_is_close_to_its_items() {
    let mut table = Table::new();
    (0..61).for_each(|n| insert(&mut table, n));
    assert!(table.mem_bytes() <= 80 * 8, "{}", table.mem_bytes());
}

proptest! {
    #[test]
    fn a_walk_visits_everything_once_while_the_table_changes(
        seed: u64,
        budget in 1usize..40,
        keep in 1u64..1500,
        churn in 1u64..600,
        clears: bool,
    ) {
        let mut table = Table::new();
        (0..keep).for_each(|n| insert(&mut table, n));
        let (mut rng, mut position) = (Prng::new(seed), Position::default());
        let mut present: BTreeSet<u64> = (0..keep).collect();
        let (mut visited, mut next, mut changes_left) = (BTreeSet::new(), keep, 3000u64);
        // Keys that came when the walk had passed their place: never visited.
        let mut late = BTreeSet::new();
        while !position.is_done() {
            let mut left = budget;
            table.walk(&mut position, &mut |hash, item| {
                assert_eq!(hash, hash64(item.key()));
                assert!(visited.insert(item.key().to_vec()), "visited twice");
                left = left.saturating_sub(1);
                left > 0
            });
            for &n in present.iter().step_by(7) {
                let is_behind = visited.contains(&key(n)) || late.contains(&n);
                prop_assert_eq!(position.has_passed(hash64(&key(n))), is_behind);
            }
            // Else, keys would come faster than a walk of small steps goes.
            changes_left = changes_left.saturating_sub(churn);
            if changes_left == 0 {
                continue;
            }
            let empties = clears && rng.below(20) == 0;
            for _ in 0..if empties { present.len() as u64 } else { rng.below(churn) } {
                if !empties && rng.below(3) > 0 {
                    insert(&mut table, next);
                    present.insert(next);
                    if position.has_passed(hash64(&key(next))) {
                        late.insert(next);
                    }
                    next += 1;
                } else if let Some(n) = present.pop_first() {
                    prop_assert!(table.remove(hash64(&key(n)), &key(n)).is_some());
                }
            }
        }
        prop_assert!(present.iter().all(|&n| visited.contains(&key(n)) || late.contains(&n)));
        prop_assert!(late.iter().all(|&n| !visited.contains(&key(n))));
    }
}
