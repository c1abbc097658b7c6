use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn limits(size: i32) -> EncodingLimits {
    EncodingLimits { list_max_listpack_size: size, ..EncodingLimits::default() }
}

fn owned<'a>(elems: impl Iterator<Item = Elem<'a>>) -> Vec<Vec<u8>> {
    elems.map(Elem::to_vec).collect()
}

fn list_of(count: usize, limits: &EncodingLimits) -> List {
    let mut list = List::new();
    for i in 0..count {
        list.push(End::Back, i.to_string().as_bytes(), limits);
    }
    list
}

#[test]
fn encodings_change_where_they_do_in_redis() {
    let by_count = limits(8);
    let mut list = list_of(8, &by_count);
    assert_eq!(list.encoding(), "listpack");
    list.push(End::Back, b"8", &by_count);
    assert_eq!(list.encoding(), "quicklist");
    // Only at half the limit, and with one node left, does it go back.
    list.drop_from(End::Back, 4, &by_count);
    assert_eq!((list.len(), list.encoding()), (5, "quicklist"));
    list.drop_from(End::Back, 1, &by_count);
    assert_eq!((list.len(), list.encoding()), (4, "listpack"));
}

#[test]
fn a_rotation_changes_no_encoding() {
    let by_count = limits(8);
    let mut full = list_of(8, &by_count);
    full.rotate(End::Front, End::Back, &by_count);
    assert_eq!(full.encoding(), "listpack");
    // One element less would turn it back.
    let mut list = list_of(9, &by_count);
    list.drop_from(End::Back, 4, &by_count);
    assert_eq!(list.rotate(End::Back, End::Front, &by_count), Some(b"4".to_vec()));
    assert_eq!((list.len(), list.encoding()), (5, "quicklist"));
    let mut single = List::new();
    single.push(End::Front, &[b'x'; 10_000], &limits(-2));
    single.rotate(End::Front, End::Back, &limits(-2));
    assert_eq!((single.len(), single.encoding()), (1, "quicklist"));
}

#[test]
fn a_large_element_stands_alone() {
    let by_bytes = limits(-2);
    let mut list = list_of(3, &by_bytes);
    list.push(End::Front, &[b'x'; 10_000], &by_bytes);
    assert_eq!(list.encoding(), "quicklist");
    assert_eq!(list.nodes().map(Packed::len).collect::<Vec<_>>(), [1, 3]);
    list.set(2, &[b'y'; 9_000], &by_bytes);
    assert_eq!(list.nodes().map(Packed::len).collect::<Vec<_>>(), [1, 1, 1, 1]);
    list.drop_from(End::Back, 3, &by_bytes);
    assert_eq!((list.len(), list.encoding()), (1, "quicklist"), "a large element never goes back");
    list.drop_from(End::Back, 1, &by_bytes);
    assert!(list.is_empty());
}

#[test]
fn a_batch_is_judged_as_a_whole() {
    let by_bytes = limits(-2);
    let tiny: Vec<&[u8]> = vec![b"1"; 5000];
    let mut list = List::new();
    list.push_all(End::Back, tiny, &by_bytes);
    assert_eq!(list.encoding(), "listpack", "5000 bytes of strings, although 10000 when packed");
    list.push_all(End::Back, vec![&b""[..]; 5000], &by_bytes);
    assert_eq!(list.encoding(), "quicklist");
}

#[test]
fn replacing_small_by_middling_elements_does_not_overgrow_a_node() {
    let by_bytes = limits(-2);
    let mut list = list_of(6000, &by_bytes);
    for index in 0..1000 {
        list.set(index, &[b'z'; 4000], &by_bytes);
    }
    let largest = list.nodes().map(Packed::byte_len).max().unwrap();
    assert!(largest < 3 * 8192, "{largest}");
}

#[test]
fn indices_and_ranges_are_those_of_commands() {
    let list = list_of(5, &limits(-2));
    assert_eq!((list.index(0), list.index(-1), list.index(-5)), (Some(0), Some(4), Some(0)));
    assert_eq!((list.index(5), list.index(-6), list.index(i64::MIN)), (None, None, None));
    for (start, stop, range) in [
        (0, -1, 0..5),
        (-3, -2, 2..4),
        (3, 100, 3..5),
        (-100, 0, 0..1),
        (4, 2, 0..0),
        (5, 9, 0..0),
        (i64::MIN, i64::MAX, 0..5),
        (0, i64::MIN, 0..0),
    ] {
        assert_eq!(list.range(start, stop), range, "{start} {stop}");
    }
    assert_eq!(List::new().range(0, -1), 0..0);
}

#[test]
fn positions_follow_rank_count_and_bound() {
    let mut list = List::new();
    list.push_all(End::Back, [&b"a"[..], b"1", b"a", b"b", b"a", b"1"], &limits(2));
    assert_eq!(list.positions(b"a", 1, 0, 0), [0, 2, 4]);
    assert_eq!(list.positions(b"a", 2, 1, 0), [2]);
    assert_eq!(list.positions(b"a", -1, 2, 0), [4, 2]);
    assert_eq!(list.positions(b"1", -2, 0, 0), [1]);
    assert_eq!(list.positions(b"a", 1, 0, 3), [0, 2]);
    assert_eq!(list.positions(b"c", 1, 0, 0), [0usize; 0]);
    assert_eq!(list.positions(b"a", i64::MIN, 0, 0), [0usize; 0]);
}

#[test]
fn long_lists_cost_little_more_than_their_elements() {
    let by_bytes = limits(-2);
    let mut list = List::new();
    for _ in 0..20_000 {
        list.push(End::Back, &[b'v'; 30], &by_bytes);
    }
    let bytes = list.mem_bytes();
    assert!(bytes < 20_000 * 32 * 11 / 10, "{bytes}");
    list.drop_from(End::Front, 19_999, &by_bytes);
    assert!(list.mem_bytes() < 100);
}

#[derive(Debug, Clone)]
enum Op {
    Push(bool, Vec<Vec<u8>>),
    Drop(bool, usize),
    Pop(bool),
    Rotate(bool, bool),
    Set(usize, Vec<u8>),
    Insert(bool, usize, Vec<u8>),
    Remove(bool, usize, usize),
    Keep(i64, i64),
}

fn elem() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0i64..6).prop_map(|int| int.to_string().into_bytes()),
        3 => prop::collection::vec(any::<u8>(), 0..6),
        1 => (0usize..3000).prop_map(|len| vec![b'x'; len]),
        1 => (8000usize..9000).prop_map(|len| vec![b'x'; len]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (any::<bool>(), prop::collection::vec(elem(), 0..12)).prop_map(|(end, elems)| Op::Push(end, elems)),
        1 => (any::<bool>(), 0usize..6).prop_map(|(end, count)| Op::Drop(end, count)),
        2 => any::<bool>().prop_map(Op::Pop),
        2 => any::<(bool, bool)>().prop_map(|(from, to)| Op::Rotate(from, to)),
        3 => (any::<usize>(), elem()).prop_map(|(at, elem)| Op::Set(at, elem)),
        4 => (any::<bool>(), any::<usize>(), elem()).prop_map(|(side, at, elem)| Op::Insert(side, at, elem)),
        1 => (any::<bool>(), any::<usize>(), 0usize..4).prop_map(|(end, at, max)| Op::Remove(end, at, max)),
        1 => (-30i64..30, -30i64..30).prop_map(|(start, stop)| Op::Keep(start, stop)),
    ]
}

fn end(is_front: bool) -> End {
    if is_front { End::Front } else { End::Back }
}

fn remove_from_model(model: &mut VecDeque<Vec<u8>>, end: End, max: usize, wanted: &[u8]) -> usize {
    let mut matches: Vec<usize> = (0..model.len()).filter(|&at| model[at] == wanted).collect();
    if end == End::Back {
        matches.reverse();
    }
    matches.truncate(max);
    matches.sort_unstable();
    matches.iter().rev().for_each(|&at| drop(model.remove(at)));
    matches.len()
}

fn apply(list: &mut List, model: &mut VecDeque<Vec<u8>>, op: Op, limits: &EncodingLimits) {
    let len = model.len();
    match op {
        Op::Push(is_front, elems) => {
            list.push_all(end(is_front), elems.iter().map(Vec::as_slice), limits);
            for elem in elems {
                if is_front { model.push_front(elem) } else { model.push_back(elem) }
            }
        }
        Op::Drop(is_front, count) => {
            list.drop_from(end(is_front), count, limits);
            for _ in 0..count {
                if is_front {
                    model.pop_front()
                } else {
                    model.pop_back()
                };
            }
        }
        Op::Pop(is_front) => {
            let popped = if is_front { model.pop_front() } else { model.pop_back() };
            assert_eq!(list.pop(end(is_front), limits), popped);
        }
        Op::Rotate(is_from_front, is_to_front) => {
            let moved = if is_from_front { model.pop_front() } else { model.pop_back() };
            assert_eq!(list.rotate(end(is_from_front), end(is_to_front), limits), moved);
            if let Some(elem) = moved {
                if is_to_front { model.push_front(elem) } else { model.push_back(elem) }
            }
        }
        Op::Set(at, elem) => {
            let at = at % (len + 1);
            assert_eq!(list.set(at, &elem, limits), at < len);
            if let Some(there) = model.get_mut(at) {
                *there = elem;
            }
        }
        Op::Insert(is_before, at, elem) if len > 0 => {
            let pivot = model[at % len].clone();
            let side = if is_before { Side::Before } else { Side::After };
            assert!(list.insert_beside(side, &pivot, &elem, limits));
            let found = model.iter().position(|other| *other == pivot).unwrap();
            model.insert(if is_before { found } else { found + 1 }, elem);
        }
        Op::Remove(is_front, at, max) if len > 0 => {
            let wanted = model[at % len].clone();
            let max = if max == 0 { usize::MAX } else { max };
            let removed = remove_from_model(model, end(is_front), max, &wanted);
            assert_eq!(list.remove_equal(end(is_front), max, &wanted, limits), removed);
        }
        Op::Insert(..) | Op::Remove(..) => {
            assert!(!list.insert_beside(Side::Before, b"none", b"x", limits));
        }
        Op::Keep(start, stop) => {
            let range = list.range(start, stop);
            list.keep(range.clone(), limits);
            *model = model.range(range).cloned().collect();
        }
    }
}

fn check(list: &List, model: &VecDeque<Vec<u8>>) {
    assert_eq!(list.len(), model.len());
    assert_eq!(*model, owned(list.iter()));
    for (index, elem) in model.iter().enumerate() {
        assert_eq!(list.get(index), Some(Elem::Bytes(elem)));
    }
    let from = model.len() / 3;
    assert_eq!(owned(list.iter_from(from)), model.range(from..).cloned().collect::<Vec<_>>());
    assert!(
        list.iter_from(model.len()).next().is_none() && list.iter_back_from(model.len()).next().is_none()
    );
    if !model.is_empty() {
        let back: Vec<_> = model.range(..=from).rev().cloned().collect();
        assert_eq!(owned(list.iter_back_from(from)), back);
    }
    let owned_bytes: usize = list.nodes().map(Packed::mem_bytes).sum();
    let frame = list.mem_bytes() - owned_bytes;
    assert!(frame <= 64 + 16 * (4 * list.nodes().len() + 64), "{frame} bytes beside the nodes");
    if list.encoding() == "quicklist" {
        assert!(list.nodes().all(|node| !node.is_empty()));
    }
}

proptest! {
    #[test]
    fn behaves_like_a_deque(
        size in prop_oneof![Just(1), Just(3), Just(8), Just(-1), Just(-2)],
        ops in prop::collection::vec(op(), 0..60),
    ) {
        let limits = limits(size);
        let (mut list, mut model) = (List::new(), VecDeque::new());
        for op in ops {
            apply(&mut list, &mut model, op, &limits);
            check(&list, &model);
        }
        check(&list.clone(), &model);
    }
}
