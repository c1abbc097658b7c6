//! Rules on text that neither rustfmt nor clippy knows.
//!
//! Owns: the limit on file length, the list of files that may contain `unsafe`, and the words that do not land. It
//! reads what git tracks or would track, and changes nothing.

use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// A longer source file says in its first line why it is long.
const FILE_LINES_MAX: usize = 600;
const LONG_BECAUSE: &str = "// Long because:";

/// The only files with `unsafe`, each with the tests that watch over it. See ARCHITECTURE.md for the reason.
const UNSAFE_FILES: &[&str] = &[
    "crates/store/src/table.rs",
    "crates/store/src/entry.rs",
    "crates/store/src/thin.rs",
    "crates/transfer/src/memory.rs",
    "crates/transfer/src/sys.rs",
    "crates/transfer/src/rdma/card.rs",
    "crates/transfer/src/rdma/ffi.rs",
    "crates/transfer/src/shm/copy.rs",
    "crates/transfer/src/shm/map.rs",
];

/// The one place where a test may wait on the wall clock: a bounded poll of a condition.
const WAIT_FILES: &[&str] = &["tests/src/wait.rs"];

// Each word is written in two pieces, so that this file does not find itself.
const LEFTOVERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ig", "nore"),
];
const SLEEPS: &[&str] =
    &[concat!("thread::sl", "eep"), concat!("time::sl", "eep"), concat!("park_", "timeout")];
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("py", "pi.org"),
    concat!("registry.", "npmjs"),
    concat!("deb.", "debian.org"),
];

/// Checks every text file of the checkout; one line for each find.
///
/// # Errors
/// Git cannot list the files, or one of them cannot be read.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot start git")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let mut finds = Vec::new();
    for path in output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        let path = std::str::from_utf8(path).context("a path in the checkout is not UTF-8")?;
        let full = root.join(path);
        if path == "Cargo.lock" || !full.is_file() {
            continue;
        }
        let bytes = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            finds.extend(finds_in(path, &text));
        }
    }
    Ok(finds)
}

/// What is wrong with one file.
fn finds_in(path: &str, text: &str) -> Vec<String> {
    let mut finds = Vec::new();
    let is_rust = path.ends_with(".rs");
    let lines = text.lines().count();
    if is_rust && lines > FILE_LINES_MAX && !text.starts_with(LONG_BECAUSE) {
        finds
            .push(format!("{path}: {lines} lines; split it, or let the first line say `{LONG_BECAUSE} ...`"));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        finds.push(format!("{path}: no newline at the end"));
    }
    let mut is_test = is_test_file(path);
    for (number, line) in (1..).zip(text.lines()) {
        let mut find = |what: &str| finds.push(format!("{path}:{number}: {what}"));
        if let Some(word) = MACHINE_PATHS.iter().find(|word| line.contains(*word)) {
            find(&format!("`{word}` belongs to one machine"));
        }
        if line.ends_with([' ', '\t']) && !path.ends_with(".md") {
            find("white space at the end of the line");
        }
        if !is_rust {
            continue;
        }
        if let Some(word) = LEFTOVERS.iter().find(|word| line.contains(*word)) {
            find(&format!("`{word}` does not land"));
        }
        is_test |= line.starts_with("#[cfg(test)]");
        if is_test && !WAIT_FILES.contains(&path) && SLEEPS.iter().any(|word| line.contains(word)) {
            find("tests do not sleep: drive time, or wait for a condition");
        }
        if has_unsafe(line) && !UNSAFE_FILES.contains(&path) {
            find("unsafe outside the files that may have it (xtask/src/tidy.rs)");
        }
    }
    finds
}

/// Whether the whole file is test code, by its place.
fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// Whether a line of code opens an unsafe block, item or attribute. Comments and prose in strings do not count.
fn has_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let keyword = concat!("un", "safe");
    code.match_indices(keyword).any(|(at, _)| {
        let after = &code[at + keyword.len()..];
        let is_attribute = after.starts_with('(') && code[..at].ends_with('[');
        let opens = [" {", " fn ", " impl", " extern ", " trait "].iter().any(|word| after.starts_with(word));
        is_attribute || opens
    })
}

#[cfg(test)]
mod tests {
    use super::{FILE_LINES_MAX, LONG_BECAUSE, finds_in};

    #[test]
    fn a_long_file_needs_a_reason() {
        let long = "//\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(finds_in("crates/x/src/a.rs", &long).len(), 1);
        assert!(finds_in("crates/x/src/a.rs", &format!("{LONG_BECAUSE} a table\n{long}")).is_empty());
    }

    #[test]
    fn unsafe_is_found_only_in_code_and_only_where_it_may_not_be() {
        let code = concat!("let x = un", "safe { y };\n");
        assert_eq!(finds_in("crates/server/src/a.rs", code).len(), 1);
        assert!(finds_in("crates/store/src/table.rs", code).is_empty());
        let comment = concat!("// nothing is un", "safe here\nlet un", "safe_count = 0;\n");
        assert!(finds_in("crates/server/src/a.rs", comment).is_empty());
    }

    #[test]
    fn sleeping_is_found_in_tests_only() {
        let sleep = concat!("std::thread::sl", "eep(d);\n");
        assert_eq!(finds_in("tests/it/main.rs", sleep).len(), 1);
        assert_eq!(finds_in("crates/x/src/a.rs", &format!("#[cfg(test)]\n{sleep}")).len(), 1);
        assert!(finds_in("crates/x/src/a.rs", sleep).is_empty());
    }

    #[test]
    fn leftovers_and_machine_paths_are_found() {
        let text = concat!("// TO", "DO\n// see /wo", "rk/x\n");
        assert_eq!(finds_in("crates/x/src/a.rs", text).len(), 2);
    }
}
