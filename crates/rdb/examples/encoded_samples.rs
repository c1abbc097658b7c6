//! Prints `tests/fixtures/encoded.txt`: sample payloads for `tests/fixtures/generate.py restore`.

#[path = "../tests/it/canonical.rs"]
mod canonical;
#[path = "../tests/it/samples.rs"]
mod samples;

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in samples::lines() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
