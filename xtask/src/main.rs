//! Repository chores, run as `cargo xtask <chore>`.
//!
//! Owns: the definition of "green" (`verify`), mechanical repairs (`fix`), the rules on who may depend on whom
//! (`layers`) and the rules on text (`tidy`). It does not build releases and is no part of the product.

mod commands;
mod compatibility;
mod layers;
mod steps;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <chore>
  verify [STEP...]  every check, read-only; with names, only those steps
  fix               format, apply the lints' own suggestions, rewrite generated lists
  lists             rewrite generated lists: docs/compatibility.md, crates/client/src/commands
  layers            who may depend on whom
  tidy              rules on text: long files, unsafe, leftovers, sleeping tests
";

/// The root of the checkout: xtask lives one level below it.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("invariant: xtask/ is inside the checkout").into()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["verify", only @ ..] => steps::verify(&root(), only),
        ["fix"] => steps::fix(&root()),
        ["layers"] => layers::check(&root()).map(report),
        ["lists"] => compatibility::write(&root()).and_then(|()| commands::write(&root())).map(|()| true),
        ["tidy"] => tidy::check(&root()).map(report),
        _ => {
            say_error(USAGE.trim_end());
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints what a check found; true when it found nothing.
fn report(finds: Vec<String>) -> bool {
    for find in &finds {
        say(find);
    }
    if finds.is_empty() {
        say("ok");
    }
    finds.is_empty()
}

/// One line to the person who ran the chore.
#[expect(clippy::print_stdout, reason = "a chore talks to a person")]
fn say(line: &str) {
    println!("{line}");
}

/// One line to the person who ran the chore, about what went wrong.
#[expect(clippy::print_stderr, reason = "a chore talks to a person")]
fn say_error(line: &str) {
    eprintln!("{line}");
}
