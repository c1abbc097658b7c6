use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The obvious sorted set.
#[derive(Debug, Default)]
struct Model(BTreeMap<Vec<u8>, f64>);

impl Model {
    fn sorted(&self) -> Vec<(&[u8], f64)> {
        let mut entries: Vec<_> = self.0.iter().map(|(member, score)| (member.as_slice(), *score)).collect();
        entries.sort_by(|left, right| order(left.1, left.0, right.1, right.0));
        entries
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<u8>, f64),
    Remove(Vec<u8>),
    RemoveRange(usize, usize),
    PopMin,
    PopMax,
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => proptest::collection::vec(proptest::sample::select(&b"ab\xff\0"[..]), 0..4),
        1 => (0_u8..20).prop_map(|fill| vec![fill; 70]),
        1 => (0_u8..20).prop_map(|fill| vec![fill; 23]),
    ]
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-3_i32..3).prop_map(f64::from),
        2 => any::<i32>().prop_map(f64::from),
        1 => any::<i64>().prop_map(|score| score as f64),
        1 => any::<f64>(),
        1 => proptest::sample::select(vec![f64::INFINITY, f64::NEG_INFINITY, 0.1, -0.0, 240.0, f64::NAN]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (member(), score()).prop_map(|(member, score)| Step::Insert(member, score)),
        4 => member().prop_map(Step::Remove),
        1 => (0_usize..40, 0_usize..12).prop_map(|(start, len)| Step::RemoveRange(start, len)),
        1 => Just(Step::PopMin),
        1 => Just(Step::PopMax),
    ]
}

fn bound() -> impl Strategy<Value = ScoreBound> {
    (score(), any::<bool>()).prop_map(|(score, is_open)| match (score.is_nan(), is_open) {
        (true, _) => ScoreBound::Excluded(0.0),
        (false, true) => ScoreBound::Excluded(score),
        (false, false) => ScoreBound::Included(score),
    })
}

fn apply(set: &mut Zset, model: &mut Model, step: Step, limits: &EncodingLimits) {
    match step {
        Step::Insert(member, score) => {
            let expected = match model.0.get(&member) {
                _ if score.is_nan() => Inserted::NotANumber,
                None => Inserted::Added,
                Some(old) if *old == score => Inserted::Unchanged,
                Some(_) => Inserted::Updated,
            };
            assert_eq!(set.insert(&member, score, limits), expected);
            if !score.is_nan() {
                model.0.insert(member, score);
            }
        }
        Step::Remove(member) => assert_eq!(set.remove(&member), model.0.remove(&member)),
        Step::RemoveRange(start, len) => {
            let gone: Vec<_> =
                model.sorted().into_iter().skip(start).take(len).map(|entry| entry.0.to_vec()).collect();
            assert_eq!(set.remove_range(start..start + len), gone.len());
            model.0.retain(|member, _| !gone.contains(member));
        }
        Step::PopMin | Step::PopMax => {
            let sorted = model.sorted();
            let (expected, popped) = match step {
                Step::PopMin => (sorted.first().copied(), set.pop_min()),
                _ => (sorted.last().copied(), set.pop_max()),
            };
            assert_eq!(popped.as_ref().map(|(member, score)| (member.as_slice(), *score)), expected);
            if let Some((member, _)) = popped {
                model.0.remove(&member);
            }
        }
    }
}

fn assert_same(set: &Zset, model: &Model) {
    let sorted = model.sorted();
    assert_eq!(set.len(), sorted.len());
    assert_eq!(set.is_empty(), sorted.is_empty());
    assert!(set.iter().eq(sorted.iter().copied()));
    assert!(set.iter().rev().eq(sorted.iter().rev().copied()));
    for (rank, (member, score)) in sorted.iter().enumerate() {
        assert_eq!(set.score(member), Some(*score));
        assert_eq!(set.rank(member), Some((rank, *score)));
        assert_eq!(set.entry(rank), Some((*member, *score)));
    }
    assert_eq!(set.entry(sorted.len()), None);
    assert_eq!(set.score(b"never there"), None);
    assert_eq!(set.rank(b"never there"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn equals_the_model_in_both_encodings(
        steps in proptest::collection::vec(step(), 0..120),
        entries_max in proptest::sample::select(vec![0_usize, 5, 128]),
        ranges in proptest::collection::vec((bound(), bound()), 8),
        lex in proptest::collection::vec((member(), member(), any::<bool>(), any::<bool>()), 8),
        (start, end) in (0_usize..50, 0_usize..50),
    ) {
        let limits = EncodingLimits { zset_max_listpack_entries: entries_max, ..EncodingLimits::default() };
        let (mut set, mut model) = (Zset::new(), Model::default());
        for step in steps {
            apply(&mut set, &mut model, step, &limits);
        }
        assert_same(&set, &model);
        assert_same(&set.clone(), &model);
        let sorted = model.sorted();
        let range = start.min(sorted.len())..end.clamp(start.min(sorted.len()), sorted.len());
        prop_assert!(set.range(start..end.max(start)).eq(sorted[range.clone()].iter().copied()));
        prop_assert!(set.range(start..end.max(start)).rev().eq(sorted[range].iter().rev().copied()));
        for (min, max) in ranges {
            let ranks = set.ranks_by_score(&ScoreRange { min, max });
            let inside = |score: f64| min.admits_as_min(score) && max.admits_as_max(score);
            let expected: Vec<_> = sorted.iter().copied().filter(|(_, score)| inside(*score)).collect();
            prop_assert!(set.range(ranks).eq(expected));
        }
        // Ranges of members are defined where all scores are equal.
        let mut flat = Zset::new();
        for member in model.0.keys() {
            flat.insert(member, 0.0, &limits);
        }
        for (low, high, is_open, is_closed) in lex {
            let min = if is_open { LexBound::Excluded(&low) } else { LexBound::Included(&low) };
            let max = if is_closed { LexBound::Included(&high) } else { LexBound::Highest };
            let inside = |member: &[u8]| min.admits_as_min(member) && max.admits_as_max(member);
            let ranks = flat.ranks_by_lex(&LexRange { min, max });
            prop_assert!(flat.range(ranks).map(|entry| entry.0).eq(model.0.keys().map(Vec::as_slice).filter(|key| inside(key))));
            let _ = set.ranks_by_lex(&LexRange { min, max });
        }
    }

    #[test]
    fn a_walk_from_both_ends_meets(count in 0_usize..300, turns in proptest::collection::vec(any::<bool>(), 300), is_large: bool) {
        let entries_max = if is_large { 0 } else { 1_000 };
        let limits = EncodingLimits { zset_max_listpack_entries: entries_max, ..EncodingLimits::default() };
        let mut set = Zset::new();
        for number in 0..count {
            set.insert(number.to_string().as_bytes(), number as f64, &limits);
        }
        let mut walk = set.iter();
        let (mut low, mut high) = (0, count);
        for is_forward in turns {
            let expected = (low < high).then_some(if is_forward { low as f64 } else { high as f64 - 1.0 });
            let found = if is_forward { walk.next() } else { walk.next_back() };
            prop_assert_eq!(found.map(|entry| entry.1), expected);
            if low < high {
                if is_forward { low += 1 } else { high -= 1 }
            }
            prop_assert_eq!(walk.len(), high - low);
        }
    }

    #[test]
    fn a_scan_visits_all_that_stay(
        stays in 1_usize..400,
        goes in 0_usize..400,
        count in 1_usize..50,
        removals in 0_usize..40,
    ) {
        let limits = EncodingLimits { zset_max_listpack_entries: 0, ..EncodingLimits::default() };
        let mut set = Zset::new();
        for number in 0..stays.max(goes) {
            if number < goes {
                set.insert(format!("go{number}").as_bytes(), 1.0, &limits);
            }
            if number < stays {
                set.insert(format!("stay{number}").as_bytes(), 1.0, &limits);
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        let (mut cursor, mut gone, mut steps) = (0, 0, 0);
        loop {
            cursor = set.scan(cursor, count, &mut |member, _| {
                seen.insert(member.to_vec());
            });
            steps += 1;
            prop_assert!(steps <= (stays + goes) / count + 1);
            if cursor == 0 {
                break;
            }
            for _ in 0..removals.min(goes - gone) {
                set.remove(format!("go{gone}").as_bytes());
                gone += 1;
            }
        }
        let is_complete = (0..stays).all(|number| seen.contains(format!("stay{number}").as_bytes()));
        prop_assert!(is_complete);
    }
}

#[test]
fn a_set_for_many_members_is_large_from_the_start() {
    let limits = EncodingLimits::default();
    assert_eq!(Zset::for_members(128, 64, &limits).encoding(), ZsetEncoding::Listpack);
    assert_eq!(Zset::for_members(1, 65, &limits).encoding(), ZsetEncoding::Skiplist);
    let mut set = Zset::for_members(129, 1, &limits);
    assert!(set.is_empty());
    assert_eq!(set.insert(b"a", -0.0, &limits), Inserted::Added);
    assert_eq!(set.encoding(), ZsetEncoding::Skiplist);
    assert!(set.score(b"a").is_some_and(f64::is_sign_negative));
}

/// Facts of Redis 7.0.15: `OBJECT ENCODING` around the default limits.
#[test]
fn the_encoding_changes_where_redis_changes_it() {
    let limits = EncodingLimits::default();
    let mut set = Zset::new();
    for number in 0..128 {
        set.insert(number.to_string().as_bytes(), f64::from(number), &limits);
    }
    assert_eq!(set.encoding().name(), "listpack");
    set.insert(b"5", 1e300, &limits);
    assert_eq!(set.encoding(), ZsetEncoding::Listpack);
    set.insert(b"128", 1.0, &limits);
    assert_eq!(set.encoding().name(), "skiplist");
    set.remove(b"128");
    assert_eq!(set.encoding(), ZsetEncoding::Skiplist);
    let mut set = Zset::new();
    set.insert(&[b'x'; 64], 1.0, &limits);
    assert_eq!(set.encoding(), ZsetEncoding::Listpack);
    set.insert(&[b'x'; 65], 1.0, &limits);
    assert_eq!(set.encoding(), ZsetEncoding::Skiplist);
    assert_eq!(set.score(&[b'x'; 64]), Some(1.0));
}

#[test]
fn the_sign_of_zero_survives_only_in_the_large_encoding() {
    let limits = EncodingLimits::default();
    let mut small = Zset::new();
    small.insert(b"a", -0.0, &limits);
    assert!(small.score(b"a").is_some_and(f64::is_sign_positive));
    let mut large = Zset::new();
    large.insert(&[0; 65], -0.0, &limits);
    large.insert(b"a", -0.0, &limits);
    assert!(large.score(b"a").is_some_and(f64::is_sign_negative));
    assert_eq!(large.insert(b"a", 0.0, &limits), Inserted::Unchanged);
    assert!(large.score(b"a").is_some_and(f64::is_sign_negative));
}

#[test]
fn random_entries_and_any_cursor_are_in_range() {
    for entries_max in [0, 128] {
        let limits = EncodingLimits { zset_max_listpack_entries: entries_max, ..EncodingLimits::default() };
        let mut set = Zset::new();
        assert_eq!(set.random(7), None);
        assert_eq!((set.pop_min(), set.pop_max()), (None, None));
        assert_eq!(set.scan(99, 10, &mut |_, _| panic!("nothing to visit")), 0);
        for number in 0..10 {
            set.insert(number.to_string().as_bytes(), f64::from(number), &limits);
        }
        let picked: std::collections::BTreeSet<_> =
            (0..10).filter_map(|random| set.random(random)).map(|e| e.0).collect();
        assert_eq!(picked.len(), 10);
        assert!(set.random(u64::MAX).is_some());
        let mut visited = 0;
        set.scan(u64::MAX, usize::MAX, &mut |_, _| visited += 1);
        assert_eq!(visited, 10);
        assert_eq!(set.remove_range(8..usize::MAX), 2);
        let (start, end) = (5, 2);
        assert_eq!(set.range(start..end).len(), 0);
    }
}

#[test]
fn memory_is_given_back_and_accounted() {
    let limits = EncodingLimits::default();
    let mut set = Zset::new();
    assert_eq!(set.mem_bytes(), 0);
    for number in 0..50_000_u32 {
        set.insert(
            format!("member:{number:09}").as_bytes(),
            f64::from(number.wrapping_mul(2_654_435_761)),
            &limits,
        );
    }
    let bytes_per_member = set.mem_bytes() / set.len();
    assert!(bytes_per_member < 68, "{bytes_per_member}");
    set.remove_range(200..usize::MAX);
    assert!(set.mem_bytes() < 200 * 1_024, "{}", set.mem_bytes());
}

#[test]
fn sets_may_be_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Zset>();
}
