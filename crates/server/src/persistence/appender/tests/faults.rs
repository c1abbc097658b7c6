//! Every fault at every write, sync and truncation of a run.

use super::*;

/// What is executed, with what it leaves in the log.
const SCRIPT: &[(&[&str], &str)] = &[
    (&["SET a 1"], "SET a 1"),
    (&["MULTI", "SET b 1", "RPUSH l x", "EXEC"], "SET b 1 | RPUSH l x"),
    (&["SELECT 2", "SET c 1"], "SET c 1"),
    (&["SELECT 0", "SADD s x y"], "SADD s x y"),
    (&["HSET h f v g w"], "HSET h f v g w"),
    (&["INCR n"], "SET n 1"),
];

impl Bench {
    /// The units in all files, oldest first, of what a process reads or what is left without power.
    fn all_units(&self, of_synced: bool) -> Vec<String> {
        let content = |file: u32| {
            let content = self.disk.content(&file.to_string());
            if of_synced { content.synced } else { content.bytes }
        };
        let units = (1..=self.files).flat_map(|file| units(&content(file)));
        units.map(|unit| unit.join(" | ")).collect()
    }

    /// Whatever happened, the files hold the first of the units that were executed, and at least those that count as durable.
    fn check(&self, executed: &[&str], context: &str) {
        for of_synced in [false, true] {
            let found = self.all_units(of_synced);
            assert!(found.len() <= executed.len(), "{context}: {found:?}");
            assert_eq!(found, executed[..found.len()], "{context}");
            let durable = self.gate().durable() as usize;
            assert!(found.len() >= durable, "{context}: {durable} count as durable, and there is {found:?}");
        }
    }
}

/// Runs the script with these operations failing; returns how many operations there were. `switch_at` is the step before
/// which the log is rewritten.
fn run(fsync: AppendFsync, failing: std::ops::Range<u64>, switch_at: Option<usize>) -> u64 {
    let context = format!("{fsync:?}, {failing:?} failing, rewrite before {switch_at:?}");
    let mut bench = Bench::begun(fsync);
    bench.disk.limit_writes(31);
    bench.disk.fail(failing);
    let mut executed: Vec<&str> = Vec::new();
    let mut needs_recovery = false;
    for (step, (lines, unit)) in SCRIPT.iter().enumerate() {
        if switch_at == Some(step) && !bench.gate().is_log_failed() {
            // Failed or not: with both increments in the manifest, whatever is in them counts.
            match bench.switch(RewriteKind::Replace) {
                Ok(_) => bench.committed(),
                Err(_) => bench.given_up(),
            }
            bench.check(&executed, &context);
        }
        let replies: Vec<String> = lines.iter().map(|line| bench.run(line).0).collect();
        if replies.iter().any(|reply| reply.contains("MISCONF")) {
            // A transaction that was refused has left nothing, and a database stays selected.
            bench.run("SELECT 0");
        } else {
            executed.push(unit);
        }
        for _ in 0..4 {
            needs_recovery |= bench.turn().wants_recovery;
            bench.check(&executed, &context);
            bench.advance(RETRY_FIRST);
        }
    }
    if fsync == AppendFsync::EverySec {
        bench.advance(SYNC_EVERY);
        needs_recovery |= bench.turn().wants_recovery;
    }
    bench.advance(RETRY_MAX * 2);
    needs_recovery |= bench.turn().wants_recovery;
    bench.check(&executed, &context);
    let operations = bench.disk.operations();
    bench.disk.fail_all(false);
    recover(&mut bench, needs_recovery, &context);
    operations
}

/// The disk works again: either the log goes on by itself, or the data set is written anew.
fn recover(bench: &mut Bench, needs_recovery: bool, context: &str) {
    for _ in 0..4 {
        bench.advance(RETRY_MAX);
        bench.turn();
    }
    assert_eq!(bench.gate().is_log_failed(), needs_recovery, "{context}");
    if needs_recovery {
        bench.switch(RewriteKind::Enable).expect("it has failed");
        bench.committed();
    }
    assert!(bench.gate().is_open(), "{context}");
    let (reply, position) = bench.run("SET last 1");
    assert_eq!(reply, "+OK", "{context}");
    for _ in 0..4 {
        bench.advance(SYNC_EVERY);
        bench.turn();
    }
    assert_eq!(bench.gate().durable(), position, "{context}");
    let units = bench.all_units(true);
    assert_eq!(units.last().map(String::as_str), Some("SET last 1"), "{context}");
}

#[test]
fn each_operation_may_fail_once_or_for_long() {
    for fsync in [AppendFsync::Always, AppendFsync::EverySec] {
        for switch_at in [None, Some(0), Some(3)] {
            let operations = run(fsync, 0..0, switch_at);
            assert!(operations > 12, "{operations}");
            for first in 0..operations {
                for count in [1, 4, 1000] {
                    run(fsync, first..first + count, switch_at);
                }
            }
        }
    }
}

#[test]
fn what_was_given_up_is_cut_to_what_is_on_the_device() {
    let mut bench = Bench::begun(AppendFsync::Always);
    bench.run("SET a 1");
    bench.turn();
    bench.run("SET b 1");
    let next = bench.disk.operations();
    bench.disk.fail(next + 1..next + 2);
    bench.turn();
    assert_eq!(bench.units(1), ["SET a 1"]);
    assert_eq!(bench.gate().durable(), 1);
    assert!(bench.gate().holds(2), "whoever wrote it still waits");
    let status = bench.core.status();
    assert_eq!((status.is_on, status.bytes, status.last_write.is_err()), (true, 0, true));
}
