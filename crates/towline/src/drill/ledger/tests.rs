//! Histories with each violation put in, against a model that executes what it is told.

use super::*;

/// A server that executes what it is told, in the order in which it is told.
#[derive(Default)]
struct Model {
    held: Held,
    register: Option<i64>,
}

impl Model {
    fn run(&mut self, request: Request) -> Outcome {
        let step = |number: &mut i64| {
            *number += 1;
            Outcome::Number(*number)
        };
        match request.op {
            Op::Incr | Op::Shared => step(&mut self.held.number),
            Op::Left => step(&mut self.held.left),
            Op::Right => step(&mut self.held.right),
            Op::Append => {
                self.held.log.extend_from_slice(format!("{:08x}", request.number).as_bytes());
                Outcome::Number(self.held.log.len() as i64)
            }
            Op::Set => {
                self.register = Some(i64::from(request.number));
                Outcome::Number(0)
            }
            Op::Get => self.register.map_or(Outcome::Nothing, Outcome::Number),
        }
    }
}

fn requests(ledger: &mut Ledger, ops: &[Op]) -> Vec<Request> {
    ops.iter().map(|op| ledger.submit(*op)).collect()
}

/// Submits `ops`, runs them in `order` (each place as often as it is named), answers with the first run.
fn played(ops: &[Op], order: &[usize]) -> Findings {
    let (mut ledger, mut model) = (Ledger::default(), Model::default());
    let requests = requests(&mut ledger, ops);
    let mut answered = vec![false; ops.len()];
    for &place in order {
        let outcome = model.run(requests[place]);
        if !std::mem::replace(&mut answered[place], true) {
            ledger.settle(requests[place], outcome);
        }
    }
    ledger.audit(0, &model.held)
}

#[test]
fn what_runs_once_in_order_is_clean() {
    let mut chooser = Chooser::new(1, 0, Mix::default());
    let ops: Vec<Op> = (0..500).map(|_| chooser.next()).filter(|op| *op != Op::Shared).collect();
    let findings = played(&ops, &(0..ops.len()).collect::<Vec<_>>());
    assert!(findings.is_clean() && findings.completed == ops.len() as u64, "{findings:?}");
}

#[test]
fn a_second_run_is_a_duplicate() {
    for op in [Op::Incr, Op::Append, Op::Left] {
        let findings = played(&[op; 3], &[0, 1, 1, 2]);
        assert_eq!((findings.duplicated, findings.lost), (1, 0), "{op:?} {findings:?}");
        // Behind the last answer nothing is left to notice it by but the sum.
        assert_eq!(played(&[op; 3], &[0, 1, 2, 1]).duplicated, 1, "{op:?}");
    }
}

#[test]
fn a_swap_is_reordered_and_no_duplicate() {
    for (ops, order) in [
        (&[Op::Incr; 3][..], &[0, 2, 1][..]),
        (&[Op::Append; 3], &[1, 0, 2]),
        (&[Op::Set, Op::Get], &[1, 0]),
        (&[Op::Set, Op::Get, Op::Set], &[0, 2, 1]),
    ] {
        let findings = played(ops, order);
        assert!(findings.reordered > 0, "{ops:?} {findings:?}");
        assert_eq!((findings.duplicated, findings.lost), (0, 0), "{ops:?}");
    }
}

#[test]
fn an_unknown_command_may_have_run_or_not_and_is_a_failure() {
    for op in [Op::Incr, Op::Append, Op::Set] {
        for has_run in [true, false] {
            let (mut ledger, mut model) = (Ledger::default(), Model::default());
            let requests = requests(&mut ledger, &[op, op, op, Op::Get]);
            for (place, request) in requests.iter().enumerate() {
                if place != 1 {
                    let outcome = model.run(*request);
                    ledger.settle(*request, outcome);
                } else if has_run {
                    model.run(*request);
                }
            }
            let findings = ledger.audit(0, &model.held);
            assert_eq!((findings.completed, findings.failed), (3, 1), "{op:?}");
            assert_eq!((findings.duplicated, findings.reordered, findings.lost), (0, 0, 0), "{op:?}");
        }
    }
}

#[test]
fn what_ran_although_it_was_reported_as_not_sent_counts_as_a_duplicate() {
    for op in [Op::Incr, Op::Append] {
        let (mut ledger, mut model) = (Ledger::default(), Model::default());
        let requests = requests(&mut ledger, &[op; 2]);
        requests.iter().for_each(|request| _ = model.run(*request));
        ledger.settle(requests[0], Outcome::Unsent);
        ledger.settle(requests[1], Outcome::Number(if op == Op::Incr { 2 } else { 16 }));
        let findings = ledger.audit(0, &model.held);
        assert_eq!((findings.failed, findings.duplicated), (1, 1), "{op:?} {findings:?}");
    }
}

#[test]
fn an_acknowledged_effect_that_is_gone_is_lost() {
    let (mut ledger, mut model) = (Ledger::default(), Model::default());
    for request in requests(&mut ledger, &[Op::Incr, Op::Append]) {
        let outcome = model.run(request);
        ledger.settle(request, outcome);
    }
    assert_eq!(ledger.audit(0, &Held::default()).lost, 2);
}

#[test]
fn a_late_run_of_an_unknown_command_is_reordered() {
    let (mut ledger, mut model) = (Ledger::default(), Model::default());
    let requests = requests(&mut ledger, &[Op::Incr; 3]);
    for place in [1, 0, 2] {
        let outcome = model.run(requests[place]);
        if place != 0 {
            ledger.settle(requests[place], outcome);
        }
    }
    let findings = ledger.audit(0, &model.held);
    assert_eq!((findings.duplicated, findings.reordered), (0, 1), "{findings:?}");
}

#[test]
fn the_shared_number_gives_each_answer_once() {
    let answers = |values: &[i64]| {
        let mut ledger = Ledger::default();
        for value in values {
            let request = ledger.submit(Op::Shared);
            ledger.settle(request, Outcome::Number(*value));
        }
        ledger
    };
    let audit = |ledgers: &[Ledger], held| audit_shared(0, ledgers.iter(), held);
    assert!(audit(&[answers(&[1, 3]), answers(&[2, 4])], 4).is_clean());
    assert_eq!(audit(&[answers(&[1, 2]), answers(&[2])], 3).reordered, 1);
    assert_eq!(audit(&[answers(&[2, 1])], 2).reordered, 1);
    assert_eq!(audit(&[answers(&[1])], 3).duplicated, 2);
}

#[test]
fn mixes_are_read_and_refused() {
    let mix: Mix = "incr=1,get=3".parse().unwrap();
    assert_eq!(mix, Mix { incr: 1, append: 0, set: 0, get: 3 });
    assert_eq!(Mix::default().to_string().parse::<Mix>().unwrap(), Mix::default());
    for bad in ["", "incr", "incr=x", "del=1", "incr=0", "incr=9999"] {
        assert!(bad.parse::<Mix>().is_err(), "{bad}");
    }
    let mut chooser = Chooser::new(7, 3, mix);
    let drawn: Vec<Op> = (0..400).map(|_| chooser.next()).collect();
    assert!(!drawn.contains(&Op::Append) && drawn.contains(&Op::Shared) && drawn.contains(&Op::Get));
    let lefts = drawn.windows(2).filter(|pair| pair[0] == Op::Left);
    assert!(lefts.into_iter().all(|pair| pair[1] == Op::Right));
}
