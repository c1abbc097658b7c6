//! `towline drill storm` as a user runs it.

use std::process::{Command, Output};

use serde_json::Value;

fn storm(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_towline"));
    command.args(["drill", "storm"]).args(arguments).output().unwrap()
}

#[test]
fn the_same_seed_gives_the_same_list_and_ours_keeps_its_promises() {
    let arguments = ["--scenario", "A1,A3,B,G20", "--json"];
    let (first, second) = (storm(&arguments), storm(&arguments));
    assert_eq!((first.status.code(), &first.stdout), (Some(0), &second.stdout));
    let list: Value = serde_json::from_slice(&first.stdout).unwrap();
    let rows = list.as_array().unwrap();
    assert_eq!(rows.len(), 4 * 6);
    for row in rows.iter().filter(|row| row["policy"].as_str().unwrap().starts_with("ours")) {
        assert_eq!((&row["stuck_pct"], &row["dead_pct"]), (&0.0.into(), &0.0.into()), "{row}");
    }
    let of = |scenario: &str, policy: &str| {
        rows.iter().find(|row| row["scenario"] == scenario && row["policy"] == policy).unwrap()
    };
    assert!(of("A3", "legacy")["max_s"].as_f64().unwrap() > 90.0);
    assert!(of("A3", "ours")["max_s"].as_f64().unwrap() < 1.0);
    assert!(of("B", "pr2793")["dead_pct"].as_f64().unwrap() > 90.0);
    let other = storm(&["--scenario", "A1", "--policy", "ours", "--json", "--seed", "2"]);
    let other: Value = serde_json::from_slice(&other.stdout).unwrap();
    assert_ne!(other[0]["trace_hash"], of("A1", "ours")["trace_hash"]);
}

#[test]
fn tables_say_what_they_rest_on_and_each_scenario_has_its_drawing() {
    let directory = tempfile::tempdir().unwrap();
    let svg = directory.path().join("storm.svg");
    let output = storm(&["--scenario", "A1,A2", "--svg", svg.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("They rest on:") && text.contains("ours-hello"), "{text}");
    for name in ["storm-A1.svg", "storm-A2.svg"] {
        assert!(std::fs::read_to_string(directory.path().join(name)).unwrap().contains("pr2793"));
    }
}

#[test]
fn unknown_names_are_one_line_and_exit_code_2() {
    for arguments in [["--scenario", "Z"], ["--policy", "theirs"]] {
        let output = storm(&arguments);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
    }
}
