//! A limit for each process does not bound a fleet: the law.

use super::*;

const NODES: [u32; 5] = [3, 10, 20, 40, 100];
const PERMITS: [u32; 6] = [1, 2, 4, 8, 16, 64];

fn cell(nodes: u32, permits: u32, horizon: Duration) -> Report {
    let scenario = Scenario { horizon, ..Scenario::of_the_law(nodes) };
    run(&scenario, Policy::LimitedRepaired { permits }, SEED)
}

#[test]
fn a_fleet_is_safe_if_nodes_times_permits_times_work_is_below_the_window() {
    for nodes in NODES {
        for permits in PERMITS {
            let load = f64::from(nodes * permits) * 0.0042;
            let stuck = cell(nodes, permits, 60 * SECOND).stuck_percent();
            // The one exception has so few endpoints in all that a second round drains them.
            let is_safe = load < 0.47 || (nodes, permits) == (3, 64);
            if is_safe {
                assert_eq!(stuck, 0.0, "{nodes} nodes, {permits} permits: {load} s");
            } else {
                assert!(stuck >= 80.0, "{nodes} nodes, {permits} permits: {load} s, {stuck} % stuck");
            }
        }
    }
}

#[test]
fn some_cells_recover_late_and_most_never() {
    let late = cell(10, 16, 600 * SECOND);
    is_near("10 nodes, 16 permits", late.settled_at.since(Instant::ZERO).as_secs_f64(), 107.0, 15.0);
    assert_eq!(late.stuck_percent(), 0.0);
    assert!(cell(20, 16, 600 * SECOND).stuck_percent() >= 80.0);
}

#[test]
fn ours_is_whole_in_every_cell() {
    for nodes in NODES {
        for permits in PERMITS {
            let scenario = Scenario::of_the_law(nodes);
            let report = ours::run_with_permits(&scenario, 4, permits, SEED);
            let floor = scenario.floor(4);
            assert_eq!(report.connected_percent(), 100.0, "{nodes} nodes, {permits} permits");
            assert!(report.setup.max() <= floor.mul_f64(1.1) + 50 * MS, "{nodes} nodes, {permits} permits");
        }
    }
}
