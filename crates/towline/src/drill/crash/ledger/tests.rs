//! The ledger against servers that keep their promise and servers that do not.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::super::value::Value;
use super::*;

const END: End = End { ms: 10_000, at: Duration::from_millis(9_000) };

fn at(key: &str) -> Place {
    Place::new(0, key)
}

fn set(key: &str, text: &'static str) -> Op {
    Op::Set { at: at(key), text: text.into(), until: None }
}

fn incr(key: &str) -> Op {
    Op::IncrBy { at: at(key), by: 1 }
}

/// A ledger of these commands, the first `answered` of which have an answer, one each millisecond.
fn ledger(ops: &[Op], answered: usize) -> Ledger {
    let mut ledger = Ledger::default();
    for (index, op) in ops.iter().enumerate() {
        ledger.send(op.clone(), 1000 + index as u64);
    }
    for index in 0..answered {
        ledger.answer(Outcome::Done, 1001 + index as u64, Duration::from_millis(1 + index as u64));
    }
    ledger
}

/// What a server shows that ran the first `count` commands.
fn found_after(ops: &[Op], count: usize) -> Found {
    let state = ledger(&ops[..count], count).known;
    Found { keys: state.keys, from_ms: 11_000, until_ms: 11_100 }
}

fn kinds(verdict: &Verdict) -> Vec<Kind> {
    verdict.problems.iter().map(|problem| problem.kind).collect()
}

#[test]
fn every_answered_command_and_any_first_ones_of_the_rest_are_right() {
    let ops: Vec<Op> = (0..6).map(|_| incr("n")).collect();
    let ledger = ledger(&ops, 3);
    for count in 0..=6 {
        let verdict = ledger.judge(&found_after(&ops, count), Promise::All, END);
        assert_eq!(verdict.problems.is_empty(), count >= 3, "{count}: {verdict:?}");
        assert_eq!(verdict.missing, 3_usize.saturating_sub(count));
        assert_eq!(verdict.unknown_applied, count.saturating_sub(3));
        assert!(ledger.judge(&found_after(&ops, count), Promise::Some, END).problems.is_empty());
    }
}

#[test]
fn a_lost_command_is_one_line_with_key_and_values() {
    let ops = [set("k", "one"), set("k", "two")];
    let verdict = ledger(&ops, 2).judge(&found_after(&ops, 1), Promise::All, END);
    assert_eq!(kinds(&verdict), [Kind::Lost]);
    let text = &verdict.problems[0].text;
    for part in ["1 acknowledged", "command 1 (SET k one)", "k in database 0", "text two", "found text one"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains('\n'));
}

#[test]
fn what_is_missing_may_be_a_second_old_and_no_older() {
    let ops: Vec<Op> = (0..4).map(|_| incr("n")).collect();
    let mut ledger = Ledger::default();
    for (op, ms) in ops.iter().zip([100_u64, 7_999, 8_001, 8_900]) {
        ledger.send(op.clone(), ms);
        ledger.answer(Outcome::Done, ms, Duration::from_millis(ms));
    }
    let promise = Promise::Older(Duration::from_secs(1));
    for (count, oldest_ms) in [(4, None), (3, Some(100)), (2, Some(999)), (1, Some(1001)), (0, Some(8900))] {
        let verdict = ledger.judge(&found_after(&ops, count), promise, END);
        assert_eq!(verdict.oldest_missing, oldest_ms.map(Duration::from_millis));
        let is_kept = oldest_ms.is_none_or(|ms| ms <= 1000);
        assert_eq!(verdict.problems.is_empty(), is_kept, "{count}: {verdict:?}");
    }
}

#[test]
fn a_hole_fits_no_number_of_commands() {
    let ops = [set("a", "1"), set("b", "1"), set("c", "1")];
    let mut found = found_after(&ops, 3);
    found.keys.remove(&at("b"));
    for promise in [Promise::All, Promise::Some] {
        let verdict = ledger(&ops, 3).judge(&found, promise, END);
        let kind = if promise == Promise::All { Kind::Lost } else { Kind::Partial };
        assert_eq!(kinds(&verdict), [kind], "{verdict:?}");
        assert!(verdict.problems[0].text.contains("found nothing"), "{verdict:?}");
    }
    // Without an answer it may be missing, but not before others that are there.
    let verdict = ledger(&ops, 1).judge(&found, Promise::All, END);
    assert_eq!(kinds(&verdict), [Kind::Partial], "{verdict:?}");
}

#[test]
fn half_a_transaction_is_partial_with_and_without_an_answer() {
    let multi = Op::Multi(vec![incr("a"), incr("b"), incr("c")]);
    let ops = [set("x", "1"), multi];
    let mut found = found_after(&ops, 2);
    found.keys.remove(&at("c"));
    for answered in [1, 2] {
        let verdict = ledger(&ops, answered).judge(&found, Promise::All, END);
        assert_eq!(verdict.problems.len(), 1, "{verdict:?}");
        assert!(matches!(verdict.problems[0].kind, Kind::Partial | Kind::Lost), "{verdict:?}");
        assert!(verdict.problems[0].text.contains("MULTI INCRBY a 1; "), "{verdict:?}");
    }
}

#[test]
fn a_wrong_time_to_live_is_told_apart() {
    let ops = [Op::Set { at: at("k"), text: "v".into(), until: Some(50_000) }];
    let mut found = found_after(&ops, 1);
    found
        .keys
        .insert(at("k"), Entry { value: Arc::new(Value::Text("v".into())), deadline: Deadline::At(50_001) });
    let verdict = ledger(&ops, 1).judge(&found, Promise::All, END);
    assert_eq!(kinds(&verdict), [Kind::WrongTtl]);
    assert!(verdict.problems[0].text.contains("until 50000"), "{verdict:?}");
}

#[test]
fn lists_with_holes_doubles_or_popped_elements_are_found() {
    let items = |range: std::ops::Range<u8>| range.map(|n| Bytes::from(n.to_string())).collect::<Vec<_>>();
    let push = |range| Op::RPush { at: at("l"), items: items(range) };
    let ops = [push(0..3), push(3..6), Op::LPop { at: at("l"), count: 2 }];
    let ledger = ledger(&ops, 3);
    for (list, kind) in [
        (items(2..6), None),
        (items(0..6), Some(Kind::Lost)),
        (items(1..6), Some(Kind::Partial)),
        (items(2..5), Some(Kind::Partial)),
        ([items(2..4), items(3..6)].concat(), Some(Kind::Partial)),
    ] {
        let value = Arc::new(Value::List(list.into()));
        let keys = BTreeMap::from([(at("l"), Entry { value, deadline: Deadline::Never })]);
        let verdict = ledger.judge(&Found { keys, from_ms: 0, until_ms: 1 }, Promise::All, END);
        assert_eq!(verdict.problems.first().map(|problem| problem.kind), kind, "{verdict:?}");
    }
}

#[test]
fn common_counts_are_those_of_the_numbers_that_fit() {
    let push = |number| Op::Push { queue: at("q"), number };
    let ops = [push(0), incr("n"), push(1), push(2), incr("n"), push(3)];
    let ledger = ledger(&ops, 2);
    let verdict = ledger.judge(&found_after(&ops, 4), Promise::All, END);
    assert_eq!(verdict.pushed, (1, 3), "the pushes show in no key of the client's own");
    let verdict = ledger.judge(&found_after(&ops, 5), Promise::All, END);
    assert_eq!(verdict.pushed, (3, 4));
}

#[test]
fn a_refused_command_has_no_effect_and_the_next_run_begins_with_what_was_found() {
    let ops = [set("k", "one"), set("k", "two")];
    let mut ledger = ledger(&ops, 1);
    ledger.answer(Outcome::Refused, 1010, Duration::from_millis(10));
    let found = found_after(&ops, 1);
    assert!(ledger.judge(&found, Promise::All, END).problems.is_empty());
    ledger.adopt(&Found::default());
    assert_eq!((ledger.answered(), ledger.unknown()), (0, 0));
    let verdict = ledger.judge(&found, Promise::All, END);
    assert_eq!(kinds(&verdict), [Kind::Partial], "a key that comes back");
}

/// Small commands over few keys, so that they meet.
fn any_op() -> impl Strategy<Value = Op> {
    let key = prop::sample::select(vec!["a", "b", "c"]);
    let single = (key.clone(), key, 0_u8..7, any::<u8>()).prop_map(|(key, other, kind, number)| {
        let text = Bytes::from(number.to_string());
        match kind {
            0 => {
                Op::Set { at: at(key), text, until: (number % 2 == 0).then_some(90_000 + u64::from(number)) }
            }
            1 => Op::RPush { at: at("l"), items: vec![text] },
            2 => Op::Del { at: vec![at(key), at(other)] },
            3 => Op::Rename { from: at(key), to: at(other) },
            4 => Op::Copy { from: at(key), to: at(other) },
            5 => Op::HSet { at: at("h"), fields: vec![(text.clone(), text)] },
            _ => Op::Persist { at: at(key) },
        }
    });
    prop_oneof![4 => single.clone(), 1 => prop::collection::vec(single, 1..4).prop_map(Op::Multi)]
}

proptest! {
    #[test]
    fn any_prefix_from_the_last_answer_on_is_right_and_an_older_one_is_not_unless_it_looks_the_same(
        ops in prop::collection::vec(any_op(), 1..30),
        answered in any::<prop::sample::Index>(),
        count in any::<prop::sample::Index>(),
    ) {
        let (answered, count) = (answered.index(ops.len() + 1), count.index(ops.len() + 1));
        let ledger = ledger(&ops, answered);
        let found = found_after(&ops, count);
        let verdict = ledger.judge(&found, Promise::All, END);
        let looks_like_later = (answered..=ops.len()).any(|other| found_after(&ops, other).keys == found.keys);
        prop_assert_eq!(verdict.problems.is_empty(), looks_like_later, "{:?}", verdict);
        prop_assert!(ledger.judge(&found, Promise::Some, END).problems.is_empty());
    }
}
