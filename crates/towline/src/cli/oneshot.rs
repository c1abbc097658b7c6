//! One command from the command line, and its repetitions.
//!
//! Owns the argument that standard input holds, the count and the pace. Does not own the conversation (`session`).

use std::io::Read as _;

use super::error::CliError;
use super::options::{Settings, StdinArgument};
use super::session::{Session, Verdict};

/// Longest argument that is read from standard input, in bytes: the longest string that Redis takes.
const ARGUMENT_BYTES_MAX: u64 = 512 << 20;

/// Runs `args` as often as the settings say, and says whether any reply was an error.
///
/// # Errors
/// As [`Session::run`]; [`CliError::Usage`] when standard input is too long or its tag is missing.
pub(crate) fn run(
    session: &mut Session,
    settings: &Settings,
    args: Vec<Vec<u8>>,
) -> Result<Verdict, CliError> {
    let args = complete(args, &settings.stdin_argument)?;
    let mut verdict = Verdict::Accepted;
    let mut left = settings.repeat.unwrap_or(1);
    while left != 0 {
        if session.run(&args)? == Verdict::Refused {
            verdict = Verdict::Refused;
        }
        left = if left > 0 { left - 1 } else { left };
        if let Some(interval) = settings.interval.filter(|_| left != 0) {
            std::thread::sleep(interval);
        }
    }
    Ok(verdict)
}

/// Puts standard input where it belongs.
fn complete(mut args: Vec<Vec<u8>>, source: &StdinArgument) -> Result<Vec<Vec<u8>>, CliError> {
    match source {
        StdinArgument::None => {}
        StdinArgument::Last => args.push(read_stdin()?),
        StdinArgument::Tag(tag) => {
            let Some(arg) = args.iter_mut().find(|arg| *arg == tag) else {
                let text = format!("-X {0}: no argument is {0}", tag.escape_ascii());
                return Err(CliError::Usage(text));
            };
            *arg = read_stdin()?;
        }
    }
    Ok(args)
}

fn read_stdin() -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(ARGUMENT_BYTES_MAX + 1);
    input.read_to_end(&mut bytes).map_err(|source| CliError::Local { what: "standard input", source })?;
    if bytes.len() as u64 > ARGUMENT_BYTES_MAX {
        return Err(CliError::Usage(format!(
            "standard input is longer than {ARGUMENT_BYTES_MAX} bytes, the longest string that a server takes"
        )));
    }
    Ok(bytes)
}
