//! The prompt.
//!
//! Owns line editing, the history file, and what Ctrl-C and Ctrl-D do. Does not own the meaning of a line
//! (`interpreter`) nor the conversation (`session`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use super::complete::Prompter;
use super::error::CliError;
use super::help;
use super::interpreter::Line;
use super::session::Session;
use super::warn;

/// Lines that the history keeps.
const HISTORY_LINES_MAX: usize = 2000;

/// A command that took at least this long is shown with its time.
const SLOW: Duration = Duration::from_millis(500);

/// Empties the screen.
const CLEAR: &[u8] = b"\x1b[H\x1b[2J";

type LineEditor = Editor<Prompter, FileHistory>;

/// Reads and runs lines until `quit`, Ctrl-D or Ctrl-C at the prompt.
///
/// # Errors
/// [`CliError::OutputClosed`], [`CliError::Local`]; what happens to single commands is shown, and the prompt comes
/// back.
pub(crate) fn run(mut session: Session) -> Result<(), CliError> {
    session.become_interactive()?;
    let history = history_path();
    let mut editor = editor(history.as_deref())?;
    report(session.connect().map(|_| ()))?;
    loop {
        // An end that came while nobody typed is found, and mended, by the next command.
        let _ = session.show_pushes();
        let line = match editor.readline(&session.prompt()) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(terminal_error(error)),
        };
        // Ctrl-C during editing is a key; a signal left over from the last command must not end the next one.
        session.take_interrupt();
        remember(&mut editor, &line, history.as_deref());
        match Line::parse(line.as_bytes()) {
            Ok(Line::Empty) => {}
            Ok(Line::Quit) => return Ok(()),
            Ok(Line::Help(words)) => session.output().write(help::text(&words).as_bytes())?,
            Ok(Line::Clear) => session.output().write(CLEAR)?,
            Ok(Line::Connect(target)) => report(session.turn_to(target))?,
            Ok(Line::Hints(has_hints)) => {
                if let Some(prompter) = editor.helper_mut() {
                    prompter.has_hints = has_hints;
                }
            }
            Ok(Line::Command { repeat, args }) => command(&mut session, repeat, &args)?,
            Err(text) => session.output().line(&text)?,
        }
    }
}

fn command(session: &mut Session, repeat: u64, args: &[Vec<u8>]) -> Result<(), CliError> {
    for _ in 0..repeat {
        let began = Instant::now();
        let outcome = session.run(args);
        if let Err(CliError::Interrupted) = outcome {
            // The reply would be taken for the next command's: a new connection is the only clean way on.
            session.output().line("")?;
            return report(session.connect().map(|_| ()));
        }
        let is_lost = outcome.is_err();
        report(outcome.map(|_| ()))?;
        if is_lost || session.take_interrupt() {
            return Ok(());
        }
        if began.elapsed() >= SLOW {
            session.output().line(&format!("({:.2}s)", began.elapsed().as_secs_f64()))?;
        }
    }
    Ok(())
}

/// Says what happened, unless it ends the session.
fn report(outcome: Result<(), CliError>) -> Result<(), CliError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error @ (CliError::OutputClosed | CliError::Local { .. })) => Err(error),
        Err(error @ CliError::Connect { .. }) => {
            warn(&error.to_string());
            Ok(())
        }
        Err(error) => {
            warn(&format!("Error: {error}"));
            Ok(())
        }
    }
}

fn editor(history: Option<&Path>) -> Result<LineEditor, CliError> {
    let config = Config::builder()
        .max_history_size(HISTORY_LINES_MAX)
        .and_then(|builder| builder.history_ignore_dups(true))
        .map_err(terminal_error)?
        .history_ignore_space(true)
        .completion_type(CompletionType::Circular)
        .auto_add_history(false)
        .build();
    let mut editor = LineEditor::with_config(config).map_err(terminal_error)?;
    editor.set_helper(Some(Prompter::new()));
    if let Some(path) = history {
        // The first session has none yet, and an unreadable one must not keep anybody from working.
        let _ = editor.load_history(path);
    }
    Ok(editor)
}

/// Adds a line to the history, in memory and on disk, unless it may hold a secret.
fn remember(editor: &mut LineEditor, line: &str, history: Option<&Path>) {
    if line.trim().is_empty() || is_secret(line) {
        return;
    }
    let is_new = editor.add_history_entry(line).unwrap_or(false);
    if let (true, Some(path)) = (is_new, history) {
        // A full disk must not keep anybody from working.
        let _ = editor.append_history(path);
    }
}

/// Whether a line sets or sends a password. Lines whose quotes do not match are judged by their words all the same.
fn is_secret(line: &str) -> bool {
    let words: Vec<String> = line.split_whitespace().map(str::to_ascii_lowercase).collect();
    let word = |index: usize| words.get(index).map_or("", |word| word.trim_matches(['"', '\'']));
    let start = usize::from(word(0).bytes().all(|byte| byte.is_ascii_digit()));
    let has = |name: &str| words.iter().any(|word| word == name);
    match (word(start), word(start + 1)) {
        ("auth", _) => true,
        ("hello", _) => has("auth"),
        ("migrate", _) => has("auth") || has("auth2"),
        ("acl", sub) => matches!(sub, "setuser" | "getuser"),
        ("config", "set") => ["requirepass", "masterauth", "masteruser", "primaryauth", "tls-key-file-pass"]
            .iter()
            .any(|name| has(name)),
        ("sentinel", _) => has("auth-pass") || has("sentinel-pass"),
        _ => false,
    }
}

/// The history file; `None` when there is no home directory or the environment names `/dev/null` or nothing.
fn history_path() -> Option<PathBuf> {
    let named = ["TOWLINE_CLI_HISTFILE", "REDISCLI_HISTFILE"].into_iter().find_map(std::env::var_os);
    match named {
        Some(path) => Some(PathBuf::from(path))
            .filter(|path| !path.as_os_str().is_empty() && path != Path::new("/dev/null")),
        None => Some(PathBuf::from(std::env::var_os("HOME")?).join(".towline_cli_history")),
    }
}

fn terminal_error(error: ReadlineError) -> CliError {
    let source = match error {
        ReadlineError::Io(error) => error,
        other => std::io::Error::other(other.to_string()),
    };
    CliError::Local { what: "terminal", source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_secrets_are_not_remembered() {
        for line in [
            "AUTH pw",
            "  auth user pw",
            "2 auth pw",
            "\"AUTH\" pw",
            "auth \"unbalanced",
            "HELLO 3 AUTH u p",
            "ACL SETUSER bob >pw",
            "config set requirepass pw",
            "CONFIG SET maxmemory 1 masterauth pw",
            "MIGRATE h 1 k 0 5 AUTH pw",
        ] {
            assert!(is_secret(line), "{line}");
        }
        for line in
            ["GET auth", "HELLO 3", "CONFIG SET maxmemory 1", "CONFIG GET requirepass", "ACL LIST", ""]
        {
            assert!(!is_secret(line), "{line}");
        }
    }
}
