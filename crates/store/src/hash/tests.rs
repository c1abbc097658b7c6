use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn limits(entries: usize) -> EncodingLimits {
    EncodingLimits { hash_max_listpack_entries: entries, ..EncodingLimits::default() }
}

fn hash_of(count: usize, limits: &EncodingLimits) -> Hash {
    let mut hash = Hash::new();
    for i in 0..count {
        hash.set(format!("f{i}").as_bytes(), i.to_string().as_bytes(), OldExpiry::Clear, limits);
    }
    hash
}

#[test]
fn encodings_change_where_they_do_in_redis() {
    let limits = EncodingLimits::default();
    let mut hash = hash_of(512, &limits);
    assert_eq!(hash.encoding(), "listpack");
    assert!(!hash.set(b"f1", b"again", OldExpiry::Clear, &limits) && hash.encoding() == "listpack");
    assert!(hash.set(b"more", b"", OldExpiry::Clear, &limits) && hash.encoding() == "hashtable");
    assert!(hash.remove(b"more") && !hash.remove(b"more"));
    assert_eq!(hash.encoding(), "hashtable", "no way back");

    let mut hash = hash_of(1, &limits);
    hash.set(b"f0", &[b'x'; 64], OldExpiry::Clear, &limits);
    assert_eq!(hash.encoding(), "listpack");
    hash.set(b"f0", &[b'x'; 65], OldExpiry::Clear, &limits);
    assert_eq!(hash.encoding(), "hashtable");

    // Two names for one field are three fields to the estimate.
    let mut hash = Hash::new();
    let batch = [(&b"a"[..], &b"1"[..]), (b"a", b"2"), (b"a", b"3")];
    assert_eq!(
        hash.set_all(batch.into_iter(), &EncodingLimits { hash_max_listpack_entries: 2, ..limits }),
        1
    );
    assert_eq!((hash.len(), hash.encoding()), (1, "hashtable"));
}

#[test]
fn expiry_makes_triples_which_stay_sorted() {
    let limits = limits(8);
    let mut hash = hash_of(4, &limits);
    assert!(!hash.set_expires_at_ms(b"absent", 5) && hash.encoding() == "listpack");
    assert!(hash.set_expires_at_ms(b"f2", 50) && hash.set_expires_at_ms(b"f3", 20));
    assert_eq!((hash.encoding(), hash.next_expiry_ms(), hash.expiring_len()), ("listpackex", Some(20), 2));
    let names: Vec<_> = hash.iter().map(|field| field.name.to_vec()).collect();
    assert_eq!(names, [b"f3", b"f2", b"f0", b"f1"]);
    assert_eq!(hash.expires_at_ms(b"f2"), Some(Some(50)));
    assert_eq!((hash.expires_at_ms(b"f0"), hash.expires_at_ms(b"no")), (Some(None), None));
    assert!(hash.persist(b"f3") && !hash.persist(b"f3") && !hash.persist(b"no"));
    assert_eq!((hash.next_expiry_ms(), hash.encoding()), (Some(50), "listpackex"));
    hash.set(b"f2", b"x", OldExpiry::Keep, &limits);
    assert_eq!(hash.next_expiry_ms(), Some(50));
    hash.set(b"f2", b"x", OldExpiry::Clear, &limits);
    assert_eq!((hash.next_expiry_ms(), hash.get(b"f2")), (None, Some(Elem::Bytes(b"x"))));
}

#[test]
fn due_fields_go_in_order_and_within_the_bound() {
    for entries in [0, 100] {
        let limits = limits(entries);
        let mut hash = hash_of(20, &limits);
        for i in 0..10 {
            hash.set_expires_at_ms(format!("f{i}").as_bytes(), 100 - i);
        }
        let mut gone = Vec::new();
        assert_eq!(hash.expire_due(90, usize::MAX, &mut |name| gone.push(name.to_vec())), 0);
        assert_eq!(hash.expire_due(95, 2, &mut |name| gone.push(name.to_vec())), 2);
        assert_eq!(hash.expire_due(95, usize::MAX, &mut |name| gone.push(name.to_vec())), 3);
        assert_eq!(gone, [b"f9", b"f8", b"f7", b"f6", b"f5"]);
        assert_eq!((hash.len(), hash.next_expiry_ms()), (15, Some(96)));
        assert_eq!(hash.expire_due(u64::MAX, usize::MAX, &mut |_| {}), 5);
        assert_eq!((hash.len(), hash.next_expiry_ms(), hash.expiring_len()), (10, None, 0));
    }
}

#[test]
fn small_hashes_cost_little() {
    let hash = hash_of(10, &EncodingLimits::default());
    assert_eq!(hash.mem_bytes(), 80, "ten times 4 + 2 bytes and the head");
}

#[test]
fn every_field_is_as_likely() {
    for entries in [0, 100] {
        let mut hash = hash_of(20, &limits(entries));
        hash.set_expires_at_ms(b"f4", 9);
        let mut rng = Prng::new(4);
        let mut counts = BTreeMap::<Vec<u8>, u32>::new();
        let mut count = |field: Field<'_>| {
            assert_eq!(field.name.to_vec()[1..], field.value.to_vec());
            *counts.entry(field.name.to_vec()).or_default() += 1;
        };
        (0..5_000).for_each(|_| count(hash.random(&mut rng).unwrap()));
        hash.draw(5_000, &mut rng, &mut count);
        (0..1_000).for_each(|_| hash.sample(5, &mut rng).into_iter().for_each(&mut count));
        (0..500).for_each(|_| hash.sample(10, &mut rng).into_iter().for_each(&mut count));
        assert_eq!(counts.len(), 20);
        assert!(counts.values().all(|count| (820..1180).contains(count)), "{}: {counts:?}", hash.encoding());
        assert_eq!(hash.sample(99, &mut rng).len(), 20);
    }
    assert_eq!(Hash::new().random(&mut Prng::new(1)), None);
    Hash::new().draw(3, &mut Prng::new(1), &mut |_| panic!("nothing to draw"));
}

#[derive(Debug, Clone)]
enum Op {
    Set(Vec<u8>, Vec<u8>, bool),
    SetAll(Vec<(Vec<u8>, Vec<u8>)>),
    Remove(Vec<u8>),
    Expire(Vec<u8>, u64),
    Persist(Vec<u8>),
    Due(u64, usize),
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (-10i64..10).prop_map(|int| int.to_string().into_bytes()),
        2 => prop::collection::vec(any::<u8>(), 0..10),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (text(), text(), any::<bool>()).prop_map(|(name, value, keep)| Op::Set(name, value, keep)),
        1 => prop::collection::vec((text(), text()), 0..6).prop_map(Op::SetAll),
        3 => text().prop_map(Op::Remove),
        4 => (text(), 1u64..50).prop_map(|(name, at_ms)| Op::Expire(name, at_ms)),
        1 => text().prop_map(Op::Persist),
        1 => (0u64..50, 0usize..4).prop_map(|(now_ms, max)| Op::Due(now_ms, max)),
    ]
}

fn apply(hash: &mut Hash, model: &mut Model, op: Op, limits: &EncodingLimits) {
    match op {
        Op::Set(name, value, keep) => {
            let old = model.get(&name).cloned();
            let old_expiry = if keep { OldExpiry::Keep } else { OldExpiry::Clear };
            assert_eq!(hash.set(&name, &value, old_expiry, limits), old.is_none());
            model.insert(name, (value, old.and_then(|(_, at_ms)| at_ms).filter(|_| keep)));
        }
        Op::SetAll(pairs) => {
            let refs = pairs.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
            let added = hash.set_all(refs, limits);
            let new = pairs
                .into_iter()
                .filter(|(name, value)| model.insert(name.clone(), (value.clone(), None)).is_none());
            assert_eq!(added, new.count());
        }
        Op::Remove(name) => assert_eq!(hash.remove(&name), model.remove(&name).is_some()),
        Op::Expire(name, at_ms) => {
            assert_eq!(hash.set_expires_at_ms(&name, at_ms), model.contains_key(&name));
            if let Some((_, there)) = model.get_mut(&name) {
                *there = Some(at_ms);
            }
        }
        Op::Persist(name) => {
            let had = model.get_mut(&name).and_then(|(_, at_ms)| at_ms.take());
            assert_eq!(hash.persist(&name), had.is_some());
        }
        Op::Due(now_ms, max) => {
            let due = model.values().filter(|(_, at_ms)| at_ms.is_some_and(|at_ms| at_ms <= now_ms)).count();
            let next = model.values().filter_map(|(_, at_ms)| *at_ms).min();
            assert_eq!(hash.next_expiry_ms(), next);
            let removed = hash.expire_due(now_ms, max, &mut |name| {
                let (_, at_ms) = model.remove(name).unwrap();
                assert!(at_ms.unwrap() <= now_ms);
            });
            assert_eq!(removed, due.min(max));
        }
    }
}

fn check(hash: &Hash, model: &Model) {
    let owned = |field: Field<'_>| (field.name.to_vec(), (field.value.to_vec(), field.expires_at_ms));
    assert_eq!(hash.len(), model.len());
    assert_eq!(hash.iter().map(owned).collect::<Model>(), *model);
    for (name, (value, at_ms)) in model {
        assert!(hash.contains(name));
        assert_eq!(hash.get(name), Some(Elem::Bytes(value)));
        assert_eq!(hash.expires_at_ms(name), Some(*at_ms));
    }
    let mut scanned = Model::new();
    let mut cursor = 0;
    loop {
        cursor = hash.scan(cursor, 2, &mut |field| scanned.extend([owned(field)]));
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, *model);
    assert_eq!(hash.next_expiry_ms(), model.values().filter_map(|(_, at_ms)| *at_ms).min());
    assert_eq!(hash.expiring_len(), model.values().filter(|(_, at_ms)| at_ms.is_some()).count());
    match &hash.repr {
        Repr::Packed(packed) => {
            assert_eq!(hash.mem_bytes(), packed.mem_bytes());
            let order: Vec<_> = hash.iter().map(|field| field.expires_at_ms.unwrap_or(u64::MAX)).collect();
            assert!(order.is_sorted());
        }
        Repr::Table(fields) => fields.assert_sums(),
    }
}

proptest! {
    #[test]
    fn behaves_like_a_map(ops in prop::collection::vec(op(), 0..100), entries in 0usize..12) {
        let limits = EncodingLimits { hash_max_listpack_value: 8, ..limits(entries) };
        let (mut hash, mut model) = (Hash::new(), Model::new());
        for op in ops {
            apply(&mut hash, &mut model, op, &limits);
            check(&hash, &model);
        }
        check(&hash.clone(), &model);
    }
}
