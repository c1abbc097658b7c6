//! `verify` and `fix`: runs cargo once per step and prints one line for each.
//!
//! Owns: which steps there are and their order (cheap ones first). A failed step does not stop the later ones, so
//! that one run shows everything that is wrong; its output is printed in full.

use crate::{commands, compatibility, layers, say, tidy};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// One step's outcome: what to say on its line, or the whole text that explains the failure.
type Outcome = Result<String, String>;

/// A step's name and what runs it.
type Step = (&'static str, fn(&Path) -> anyhow::Result<Outcome>);

/// What is compiled with a feature only: its tests, and clippy where a feature brings much.
const FEATURES: [&[&str]; 3] = [
    &["test", "-p", "towline-client", "--features", "tracing", "--test", "tracing"],
    &["clippy", "-p", "towline-transfer", "--features", "rdma", "--all-targets", "--", "-D", "warnings"],
    &["test", "-p", "towline-transfer", "--features", "rdma", "--lib"],
];

/// Every step, the cheap ones first.
const STEPS: &[Step] = &[
    ("fmt", |root| cargo(root, &["fmt", "--all", "--check"], &[])),
    ("tidy", |root| tidy::check(root).map(finds)),
    ("layers", |root| layers::check(root).map(finds)),
    ("lists", |root| {
        let mut stale = compatibility::check(root)?;
        stale.extend(commands::check(root)?);
        Ok(finds(stale))
    }),
    ("deny", deny),
    ("clippy", |root| cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])),
    ("build", |root| cargo(root, &["build", "--workspace", "--bins", "--examples"], &[])),
    ("tests", tests),
    ("features", features),
    ("doctests", |root| cargo(root, &["test", "--workspace", "--doc"], &[])),
    ("docs", |root| cargo(root, &["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])),
];

/// Runs every step, or those named in `only`; true when all passed.
///
/// # Errors
/// A name that is no step, or cargo that cannot be started.
pub(crate) fn verify(root: &Path, only: &[&str]) -> anyhow::Result<bool> {
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|(step, _)| step != *name)) {
        let names: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
        bail!("there is no step {unknown}; the steps are {}", names.join(", "));
    }
    let started = Instant::now();
    let mut failed = Vec::new();
    for (name, run) in STEPS.iter().filter(|(name, _)| only.is_empty() || only.contains(name)) {
        let began = Instant::now();
        let outcome = run(root)?;
        let seconds = began.elapsed().as_secs_f64();
        match outcome {
            Ok(note) => say(format!("ok    {name:<9}{seconds:>7.1} s  {note}").trim_end()),
            Err(text) => {
                say(&format!("FAIL  {name:<9}{seconds:>7.1} s"));
                say(text.trim_end());
                failed.push(*name);
            }
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    if failed.is_empty() {
        say(&format!("verify: green in {seconds:.0} s"));
    } else {
        say(&format!("verify: failed in {seconds:.0} s: {}", failed.join(", ")));
    }
    Ok(failed.is_empty())
}

/// Formats the sources, applies what clippy knows how to repair, and rewrites generated lists.
///
/// # Errors
/// Cargo cannot be started, or a file with a generated list cannot be written.
pub(crate) fn fix(root: &Path) -> anyhow::Result<bool> {
    compatibility::write(root)?;
    commands::write(root)?;
    let mut is_done = true;
    let clippy = ["clippy", "--fix", "--allow-dirty", "--allow-staged", "--workspace", "--all-targets"];
    for arguments in [&clippy[..], &["fmt", "--all"]] {
        if let Err(text) = cargo(root, arguments, &[])? {
            say(&text);
            is_done = false;
        }
    }
    Ok(is_done)
}

/// Runs cargo with its output kept back unless it fails.
fn cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<Outcome> {
    Ok(captured(root, arguments, environment)?.map(|_| String::new()))
}

/// Runs cargo; its output as text on either side.
fn captured(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<Outcome> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start cargo {}", arguments.join(" ")))?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok(if output.status.success() { Ok(text) } else { Err(text) })
}

/// Whether cargo has the subcommand `name` installed.
fn has_subcommand(root: &Path, name: &str) -> anyhow::Result<bool> {
    Ok(captured(root, &[name, "--version"], &[])?.is_ok())
}

/// Every command of [`FEATURES`], until one fails.
fn features(root: &Path) -> anyhow::Result<Outcome> {
    for arguments in FEATURES {
        if let Err(text) = cargo(root, arguments, &[])? {
            return Ok(Err(text));
        }
    }
    Ok(Ok(String::new()))
}

/// The tests with nextest where it is installed (a process for each test, faster), else with `cargo test`.
fn tests(root: &Path) -> anyhow::Result<Outcome> {
    let (binary, examples) = (built_binary("towline")?, built_binary("examples")?);
    if has_subcommand(root, "nextest")? {
        let arguments = ["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "fail"];
        let environment = [
            ("NEXTEST_HIDE_PROGRESS_BAR", "1"),
            ("E2E_TOWLINE", binary.as_str()),
            ("E2E_EXAMPLES", examples.as_str()),
        ];
        let outcome = captured(root, &arguments, &environment)?;
        return Ok(outcome.map(|text| nextest_summary(&text)));
    }
    let arguments = ["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"];
    let outcome =
        captured(root, &arguments, &[("E2E_TOWLINE", binary.as_str()), ("E2E_EXAMPLES", examples.as_str())])?;
    Ok(outcome.map(|text| libtest_summary(&text)))
}

/// The path of a binary of this workspace, or of the directory with its examples, built in the same profile as xtask itself.
fn built_binary(name: &str) -> anyhow::Result<String> {
    let own = std::env::current_exe().context("cannot tell where xtask is")?;
    let path = own.with_file_name(name);
    path.into_os_string().into_string().ok().context("the target directory's path is not UTF-8")
}

/// Nextest's own closing line, for example `212 tests run: 212 passed, 0 skipped`.
fn nextest_summary(text: &str) -> String {
    let line = text.lines().rev().find(|line| line.trim_start().starts_with("Summary"));
    line.and_then(|line| line.split_once(']'))
        .map_or_else(String::new, |(_, counts)| counts.trim().to_owned())
}

/// The sum over the closing lines of all test binaries, in the shape of nextest's.
fn libtest_summary(text: &str) -> String {
    let passed: u64 = text
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. "))
        .filter_map(|counts| counts.split_once(" passed")?.0.parse::<u64>().ok())
        .sum();
    format!("{passed} tests run: {passed} passed")
}

/// Licences and sources of dependencies, where cargo-deny is installed.
fn deny(root: &Path) -> anyhow::Result<Outcome> {
    if !has_subcommand(root, "deny")? {
        return Ok(Ok("skipped: cargo-deny is not installed".into()));
    }
    cargo(root, &["deny", "--offline", "check", "licenses", "bans", "sources"], &[])
}

/// An empty list of finds is a passed step.
fn finds(finds: Vec<String>) -> Outcome {
    if finds.is_empty() { Ok(String::new()) } else { Err(finds.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::{libtest_summary, nextest_summary};

    #[test]
    fn summaries_of_both_runners_read_alike() {
        let nextest = "noise\n     Summary [   0.500s] 3 tests run: 3 passed, 0 skipped\n";
        assert_eq!(nextest_summary(nextest), "3 tests run: 3 passed, 0 skipped");
        let libtest = "test result: ok. 2 passed; 0 failed;\nx\ntest result: ok. 5 passed; 0 failed;\n";
        assert_eq!(libtest_summary(libtest), "7 tests run: 7 passed");
    }
}
