//! `towline cli`: a client for people with redis-cli habits.
//!
//! ```text
//! options -> oneshot | interpreter (piped lines) | repl | modes      what to do
//!                \-> session (state) -> connection (interrupt)       the conversation
//!                        \-> output -> render                        replies as text
//! repl -> complete -> hints, help                                    the command table at the prompt
//! ```
//!
//! Owns a blocking client with one connection. Does not own a client library: nothing here is concurrent, and a
//! command is never sent twice.

mod complete;
mod connection;
mod error;
mod help;
mod hints;
mod interpreter;
mod interrupt;
mod modes;
mod oneshot;
mod options;
mod output;
mod render;
mod repl;
#[cfg(feature = "tls")]
mod secure;
mod session;
mod state;
mod target;

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;

pub(crate) use connection::Connection;
pub(crate) use error::{CliError, one_line};
pub(crate) use options::{CliArgs, Environment};
pub(crate) use render::{Delimiters, Style, render};
pub(crate) use target::{Credentials, HOST_DEFAULT, Target};

use options::{Mode, Settings, StdinArgument};
use output::Output;
use session::{Session, Verdict};

/// Exit code of a command that failed or, with `-e`, was answered with an error.
const EXIT_FAILURE: u8 = 1;

/// Longest password that is asked for, in bytes.
const PASSWORD_BYTES_MAX: u64 = 64 * 1024;

/// Does what `arguments` ask for; every failure is one line on standard error.
pub(crate) fn run(arguments: CliArgs) -> ExitCode {
    let outcome =
        arguments.resolve(Environment::read(), ask_password).and_then(|settings| execute(&settings));
    match outcome {
        Ok(code) => code,
        // Whoever closed the pipe has seen enough.
        Err(CliError::OutputClosed) => ExitCode::from(EXIT_FAILURE),
        Err(error) => {
            warn(&error.to_string());
            ExitCode::from(EXIT_FAILURE)
        }
    }
}

fn execute(settings: &Settings) -> Result<ExitCode, CliError> {
    let output = Output::new(
        settings.style,
        settings.delimiters.clone(),
        settings.shows_pushes,
        settings.fails_on_error,
    );
    let mut session = Session::new(settings, output);
    match &settings.mode {
        Mode::Command(args) => {
            let verdict = oneshot::run(&mut session, settings, args.clone())?;
            Ok(code(verdict == Verdict::Refused && settings.fails_on_error))
        }
        Mode::Lines if settings.stdin_argument != StdinArgument::None => {
            Err(CliError::Usage("-x and -X need a command: towline cli -x SET key < file".to_owned()))
        }
        Mode::Lines if io::stdin().is_terminal() => repl::run(session).map(|()| ExitCode::SUCCESS),
        Mode::Lines => {
            let tally = interpreter::run_lines(&mut session, io::stdin().lock())?;
            Ok(code(tally.failed > 0 || (tally.refused > 0 && settings.fails_on_error)))
        }
        Mode::Pipe(patience) => modes::pipe::run(&mut session, *patience).map(code),
        mode => modes::run(&mut session, settings, mode).map(|()| ExitCode::SUCCESS),
    }
}

fn code(is_failure: bool) -> ExitCode {
    if is_failure { ExitCode::from(EXIT_FAILURE) } else { ExitCode::SUCCESS }
}

/// Writes a line to standard error.
pub(crate) fn warn(text: &str) {
    // Without a standard error there is nobody to tell; the exit code still says it.
    let _ = writeln!(io::stderr(), "{}", text.replace('\n', " "));
}

/// Reads a password, unseen if standard input is a terminal.
pub(crate) fn ask_password() -> Result<Vec<u8>, CliError> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let failed = |source| CliError::Local { what: "password", source };
    let _ = write!(io::stderr(), "Please input password: ");
    let mut input = io::stdin().lock();
    let shown = if input.is_terminal() {
        Some(tcgetattr(&input).map_err(|error| failed(error.into()))?)
    } else {
        None
    };
    if let Some(shown) = &shown {
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&input, OptionalActions::Flush, &hidden).map_err(|error| failed(error.into()))?;
    }
    let mut line = Vec::new();
    let read = input.by_ref().take(PASSWORD_BYTES_MAX).read_until(b'\n', &mut line);
    if let Some(shown) = &shown {
        tcsetattr(&input, OptionalActions::Flush, shown).map_err(|error| failed(error.into()))?;
        let _ = writeln!(io::stderr());
    }
    read.map_err(failed)?;
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    line.truncate(end);
    Ok(line)
}
