use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn owned(set: &Set) -> BTreeSet<Vec<u8>> {
    let members: Vec<_> = set.iter().map(Elem::to_vec).collect();
    assert_eq!(members.len(), set.len());
    members.into_iter().collect()
}

fn ints(range: std::ops::Range<i64>) -> Vec<Vec<u8>> {
    range.map(|int| int.to_string().into_bytes()).collect()
}

fn set_of(members: &[Vec<u8>], limits: &EncodingLimits) -> Set {
    let mut set = Set::new();
    set.add_all(members.iter().map(Vec::as_slice), limits);
    set
}

#[test]
fn encodings_change_where_they_do_in_redis() {
    let limits = EncodingLimits::default();
    let mut set = set_of(&ints(0..512), &limits);
    assert_eq!(set.encoding(), "intset");
    assert!(!set.add(&b"7"[..], &limits) && set.encoding() == "intset");
    assert!(set.add(512, &limits) && set.encoding() == "hashtable");

    let mut set = set_of(&ints(0..127), &limits);
    assert!(set.add(&b"word"[..], &limits) && set.encoding() == "listpack");
    assert!(set.add(&b"other"[..], &limits) && set.encoding() == "hashtable");
    assert!(!set.remove(&b"absent"[..]) && set.remove(5) && set.len() == 128);
    assert_eq!(set.encoding(), "hashtable", "no way back");

    let mut set = set_of(&ints(0..128), &limits);
    assert!(set.add(&b"word"[..], &limits) && set.encoding() == "hashtable");

    let mut set = set_of(&[b"a".to_vec()], &limits);
    assert_eq!(set.encoding(), "listpack");
    assert!(set.add(&[b'x'; 64][..], &limits) && set.encoding() == "listpack");
    assert!(set.add(&[b'x'; 65][..], &limits) && set.encoding() == "hashtable");
}

#[test]
fn the_size_of_a_batch_counts() {
    let limits = EncodingLimits::default();
    assert_eq!(set_of(&vec![b"a".to_vec(); 129], &limits).encoding(), "hashtable");
    // Too many for an intset, too many for a listpack.
    assert_eq!(set_of(&vec![b"1".to_vec(); 513], &limits).encoding(), "hashtable");
    let none = EncodingLimits { set_max_intset_entries: 0, ..limits };
    assert_eq!(set_of(&ints(1..3), &none).encoding(), "listpack");
    let none = EncodingLimits { set_max_listpack_entries: 0, ..none };
    assert_eq!(set_of(&ints(1..3), &none).encoding(), "hashtable");
    let mut set = set_of(&[b"a".to_vec()], &limits);
    set.add_all(vec![&b"b"[..]; 129].into_iter(), &limits);
    assert_eq!((set.len(), set.encoding()), (2, "hashtable"));
}

#[test]
fn small_sets_cost_little() {
    let limits = EncodingLimits::default();
    assert_eq!(set_of(&ints(0..10), &limits).mem_bytes(), 32);
    let words: Vec<_> = (0..10).map(|i| format!("member:{i:04}").into_bytes()).collect();
    assert_eq!(set_of(&words, &limits).mem_bytes(), 160, "ten times 11 bytes and two of frame");
}

#[test]
fn every_member_is_as_likely() {
    let limits = EncodingLimits::default();
    let words: Vec<Vec<u8>> = (0..20).map(|i| format!("w{i}").into_bytes()).collect();
    let tabled = EncodingLimits { set_max_listpack_entries: 0, ..limits };
    for set in [set_of(&ints(0..20), &limits), set_of(&words, &limits), set_of(&words, &tabled)] {
        let mut rng = Prng::new(5);
        let mut counts = BTreeMap::<Vec<u8>, u32>::new();
        let mut count = |member: Elem<'_>| *counts.entry(member.to_vec()).or_default() += 1;
        (0..5_000).for_each(|_| count(set.random(&mut rng).unwrap()));
        set.draw(5_000, &mut rng, &mut count);
        (0..1_000).for_each(|_| set.sample(5, &mut rng).into_iter().for_each(&mut count));
        (0..500).for_each(|_| set.sample(10, &mut rng).into_iter().for_each(&mut count));
        (0..5_000).for_each(|_| count(Elem::Bytes(&set.clone().pop_random(&mut rng).unwrap())));
        assert_eq!(counts.len(), 20);
        assert!(counts.values().all(|count| (1050..1450).contains(count)), "{}: {counts:?}", set.encoding());
    }
}

#[test]
fn choices_from_an_empty_set_are_empty() {
    let (mut set, mut rng) = (Set::new(), Prng::new(1));
    assert_eq!(set.random(&mut rng), None);
    assert_eq!(set.pop_random(&mut rng), None);
    assert!(set.sample(3, &mut rng).is_empty() && set.pop_sample(3, &mut rng).is_empty());
    set.draw(3, &mut rng, &mut |_| panic!("nothing to draw"));
}

#[test]
fn samples_from_a_table_are_distinct_at_any_size() {
    let limits = EncodingLimits::default();
    let mut rng = Prng::new(2);
    let mut set = set_of(&ints(0..3000), &limits);
    for count in [1, 10, 999, 1000, 1001, 2999, 3000, 5000] {
        let sample: BTreeSet<_> = set.sample(count, &mut rng).into_iter().map(Elem::to_vec).collect();
        assert_eq!(sample.len(), count.min(3000));
    }
    let popped: BTreeSet<_> = set.pop_sample(1000, &mut rng).into_iter().collect();
    assert_eq!((popped.len(), set.len()), (1000, 2000));
    assert!(popped.iter().all(|member| !set.contains(&member[..])));
    assert_eq!(set.pop_sample(9999, &mut rng).len(), 2000);
    assert!(set.is_empty());
}

#[derive(Debug, Clone)]
enum Op {
    Add(Vec<u8>),
    AddAll(Vec<Vec<u8>>),
    Remove(Vec<u8>),
    Pop,
    PopSample(usize),
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (-20i64..20).prop_map(|int| int.to_string().into_bytes()),
        1 => any::<i64>().prop_map(|int| int.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => member().prop_map(Op::Add),
        1 => prop::collection::vec(member(), 0..8).prop_map(Op::AddAll),
        6 => member().prop_map(Op::Remove),
        1 => Just(Op::Pop),
        1 => (0usize..5).prop_map(Op::PopSample),
    ]
}

fn check(set: &Set, model: &BTreeSet<Vec<u8>>) {
    assert_eq!(owned(set), *model);
    assert!(model.iter().all(|member| set.contains(&member[..])));
    let mut scanned = BTreeSet::new();
    let mut cursor = 0;
    loop {
        cursor = set.scan(cursor, 2, &mut |member| {
            scanned.insert(member.to_vec());
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, *model);
    let (mem_bytes, least) = (set.mem_bytes(), model.iter().map(Vec::len).sum::<usize>());
    match &set.repr {
        Repr::Small(small) => assert_eq!(mem_bytes, small.mem_bytes()),
        Repr::Table(members) => {
            let items: usize = members.table.iter().map(|item| item.mem_bytes()).sum();
            assert_eq!(members.item_bytes, items);
            assert!(mem_bytes >= least + members.table.mem_bytes());
        }
    }
}

proptest! {
    #[test]
    fn behaves_like_a_set(
        ops in prop::collection::vec(op(), 0..80),
        ints_max in 0usize..20,
        packed_max in 0usize..10,
        seed: u64,
    ) {
        let limits = EncodingLimits {
            set_max_intset_entries: ints_max,
            set_max_listpack_entries: packed_max,
            set_max_listpack_value: 8,
            ..EncodingLimits::default()
        };
        let (mut set, mut model, mut rng) = (Set::new(), BTreeSet::new(), Prng::new(seed));
        for op in ops {
            match op {
                Op::Add(member) => prop_assert_eq!(set.add(&member[..], &limits), model.insert(member)),
                Op::AddAll(members) => {
                    let added = set.add_all(members.iter().map(Vec::as_slice), &limits);
                    prop_assert_eq!(added, members.into_iter().filter(|member| model.insert(member.clone())).count());
                }
                Op::Remove(member) => prop_assert_eq!(set.remove(&member[..]), model.remove(&member)),
                Op::Pop => {
                    let popped = set.pop_random(&mut rng);
                    prop_assert_eq!(popped.is_none(), model.is_empty());
                    prop_assert!(popped.is_none_or(|member| model.remove(&member)));
                }
                Op::PopSample(count) => {
                    let popped = set.pop_sample(count, &mut rng);
                    prop_assert_eq!(popped.len(), count.min(model.len()));
                    prop_assert!(popped.iter().all(|member| model.remove(member)));
                }
            }
            check(&set, &model);
        }
        check(&set.clone(), &model);
        check(&Set::from_members(set.iter(), &limits), &model);
    }
}
