//! Planned moves tried out in full, where drawing would only come by.

use std::time::Duration;

use towline_client_proto::handoff::HandoffOrder;
use towline_faults::model::EndpointId;

use crate::plan::Plan;
use crate::plan::script::{From, Scenario, Step, To, When};
use crate::trace::{Keep, Trace};
use crate::world::World;
use crate::{Report, happen};

const A: EndpointId = EndpointId(0);
const B: EndpointId = EndpointId(1);
const C: EndpointId = EndpointId(2);

/// A plan of calm moves with these steps and enough commands for a pipeline.
fn plan(seed: u64, steps: Vec<(When, Step)>) -> Plan {
    let mut plan = Plan::draw(seed, 40, Some(Scenario::CalmMoves));
    plan.model.has_maintenance = true;
    plan.commands_max = 40;
    plan.callers = 2;
    plan.script.steps = steps;
    plan.calm_at = plan.script.takes() + Duration::from_millis(1100);
    plan
}

fn expect_fine(plan: Plan, seed: u64, what: &str) -> Report {
    let report = happen(World::of_plan(plan, seed, Trace::new(Keep::Tail)));
    assert!(report.violation.is_none(), "{what}: {}\n{:?}", report.lines.join("\n"), report.violation);
    report
}

const fn moving(to: EndpointId, window: Duration) -> Step {
    Step::Moving { from: From::Current, to: To::This(to), window, is_same_seq: false }
}

#[test]
fn a_move_announced_at_any_byte_of_a_mixed_pipeline_fails_nothing() {
    /// About what 40 commands and a handshake have.
    const BYTES: u64 = 1500;
    let orders = [HandoffOrder::Strict, HandoffOrder::PerKey, HandoffOrder::None];
    for offset in 0..BYTES {
        let seed = offset % 7;
        let mut plan = plan(seed, vec![(When::Bytes(offset), moving(B, Duration::from_secs(1)))]);
        plan.gap = Duration::from_millis(2);
        plan.config.handoff_order = orders[usize::try_from(offset).unwrap() % orders.len()];
        let report = expect_fine(plan, seed, &format!("announced after {offset} bytes"));
        assert!(report.tally.connections >= 2, "it has moved, announced after {offset} bytes");
    }
}

/// Every order of these indexes.
fn orders(of: usize) -> Vec<Vec<usize>> {
    if of == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(of - 1);
    (0..of)
        .flat_map(|at| {
            shorter.iter().map(move |order| {
                let mut order = order.clone();
                order.insert(at, of - 1);
                order
            })
        })
        .collect()
}

#[test]
fn the_successor_the_close_another_move_and_the_windows_end_come_in_any_order() {
    const SLOT: Duration = Duration::from_millis(250);
    const SEEDS: u64 = 8;
    for order in orders(4) {
        let slot = |event: usize| {
            let at = order.iter().position(|it| *it == event).unwrap();
            SLOT * u32::try_from(at + 1).unwrap()
        };
        let window = slot(0);
        let mut later = [
            (slot(1), Step::Access { endpoint: B, refused: 0, silent: 0 }),
            (slot(2), Step::CloseEarly(A)),
            (slot(3), moving(C, Duration::from_secs(1))),
        ];
        later.sort_by_key(|(at, _)| *at);
        let mut steps = vec![
            (When::Bytes(500), Step::Access { endpoint: B, refused: 10_000, silent: 0 }),
            (When::After(Duration::ZERO), moving(B, window)),
        ];
        let mut before = Duration::ZERO;
        for (at, step) in later {
            steps.push((When::After(at - before), step));
            before = at;
        }
        for seed in 0..SEEDS {
            expect_fine(plan(seed, steps.clone()), seed, &format!("seed {seed}, {order:?}"));
        }
    }
}
