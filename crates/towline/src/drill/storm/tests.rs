//! The command's own part. What the fleets do is tested where they are.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: StormArgs,
}

fn plan(arguments: &[&str]) -> Result<Plan, String> {
    Line::try_parse_from([&["storm"], arguments].concat()).unwrap().args.plan()
}

#[test]
fn names_are_picked_in_the_order_of_the_table_and_unknown_ones_refused() {
    let all = plan(&[]).unwrap();
    assert_eq!((all.scenarios.len(), all.policies.len()), (Scenario::ALL.len(), Policy::ALL.len()));
    let some = plan(&["--scenario", "b,a1", "--policy", "ours,legacy", "--nodes", "7"]).unwrap();
    let names: Vec<&str> = some.scenarios.iter().map(|scenario| scenario.name).collect();
    assert_eq!(names, ["A1", "B"]);
    assert_eq!((some.scenarios[0].nodes, some.policies[0].name()), (7, "legacy"));
    assert!(plan(&["--scenario", "Z"]).unwrap_err().contains("A1, A2"));
    assert!(plan(&["--policy", "theirs"]).unwrap_err().contains("pr2793-repaired"));
    assert!(plan(&["--nodes", "100000", "--endpoints", "64"]).unwrap_err().contains("too many"));
}

#[test]
fn the_json_list_has_the_fields_that_others_read() {
    let scenario = Scenario::named("A1").unwrap();
    let rows: Vec<Row> = Policy::ALL
        .iter()
        .map(|(_, policy)| Row::new("A1".to_owned(), scenario.title, *policy, 1, &run(scenario, *policy, 1)))
        .collect();
    assert!(rows.iter().all(Row::is_as_promised));
    let mut out = Vec::new();
    report::json(&mut out, &rows, &[]).unwrap();
    let list: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(list.as_array().unwrap().len(), Policy::ALL.len());
    for row in list.as_array().unwrap() {
        for field in ["connected_pct", "stuck_pct", "dead_pct", "p50_s", "max_s", "rpcs_per_connection"] {
            assert!(row[field].is_number(), "{field} in {row}");
        }
    }
    assert_eq!((&list[0]["policy"], &list[0]["stuck_pct"]), (&"legacy".into(), &51.25.into()));
    let mut text = Vec::new();
    report::table(&mut text, &rows).unwrap();
    assert_eq!(String::from_utf8(text).unwrap().lines().count(), 2 + Policy::ALL.len());
}

#[test]
fn a_broken_promise_is_not_as_promised() {
    let scenario = Scenario::named("A1").unwrap();
    let mut report = run(scenario, Policy::named("ours").unwrap(), 1);
    report.connected -= 1;
    let row = Row::new("A1".to_owned(), scenario.title, Policy::named("ours").unwrap(), 1, &report);
    assert!(!row.is_as_promised());
}
