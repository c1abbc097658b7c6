//! Lines as commands: the client's own, and those for the server.
//!
//! Owns the meaning of a line, for the prompt as well as for piped input. Does not own reading lines.

use std::io::BufRead;

use towline_resp::inline::split_line;

use super::error::CliError;
use super::help;
use super::session::{Session, Verdict};
use super::target::Target;
use super::warn;

/// Longest line of piped input, in bytes: one argument may have 512 MiB, and escapes make four bytes of one.
const LINE_BYTES_MAX: u64 = 2 << 30;

/// What a line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// Nothing.
    Empty,
    /// End of the session.
    Quit,
    /// Texts about a command, a group, or, without words, about the client.
    Help(Vec<Vec<u8>>),
    /// An empty screen.
    Clear,
    /// Another server.
    Connect(Target),
    /// Hints on or off.
    Hints(bool),
    /// A command for the server, to be sent `repeat` times.
    Command {
        /// At least 1.
        repeat: u64,
        /// Never empty.
        args: Vec<Vec<u8>>,
    },
}

impl Line {
    /// Reads a line, without its line end.
    ///
    /// # Errors
    /// The text to show: quotes that do not match, or a mistake in one of the client's own commands.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        let mut args = split_line(line).map_err(|_| "Invalid argument(s)".to_owned())?;
        let Some(first) = args.first() else { return Ok(Self::Empty) };
        match (first.to_ascii_lowercase().as_slice(), args.len()) {
            (b"quit" | b"exit", 1) => return Ok(Self::Quit),
            (b"help" | b"?", _) => return Ok(Self::Help(args.split_off(1))),
            (b"clear", 1) => return Ok(Self::Clear),
            (b"connect", count) => {
                let target = if count == 3 { parse_target(&args[1], &args[2]) } else { None };
                return target.map(Self::Connect).ok_or_else(|| "usage: connect <host> <port>".to_owned());
            }
            (b":set", 2) if args[1].eq_ignore_ascii_case(b"hints") => return Ok(Self::Hints(true)),
            (b":set", 2) if args[1].eq_ignore_ascii_case(b"nohints") => return Ok(Self::Hints(false)),
            (b":set", _) => return Err("usage: :set hints | :set nohints".to_owned()),
            _ => {}
        }
        let Some(repeat) = number(first).filter(|_| args.len() > 1) else {
            return Ok(Self::Command { repeat: 1, args });
        };
        if repeat == 0 {
            return Err("Invalid repeat count: 1 is the least".to_owned());
        }
        args.remove(0);
        Ok(Self::Command { repeat, args })
    }
}

fn parse_target(host: &[u8], port: &[u8]) -> Option<Target> {
    let host = std::str::from_utf8(host).ok()?.to_owned();
    Some(Target::Tcp { host, port: std::str::from_utf8(port).ok()?.parse().ok()? })
}

fn number(word: &[u8]) -> Option<u64> {
    if !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// What came of piped input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Error replies.
    pub(crate) refused: u64,
    /// Lines that had no reply: not understood, or the connection broke.
    pub(crate) failed: u64,
}

/// Runs the lines of `input` until its end or `quit`. A server that cannot be reached ends it too.
///
/// # Errors
/// [`CliError::Connect`], [`CliError::OutputClosed`], [`CliError::Local`]; every other mishap is said and counted.
pub(crate) fn run_lines(session: &mut Session, mut input: impl BufRead) -> Result<Tally, CliError> {
    let mut tally = Tally::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = std::io::Read::take(&mut input, LINE_BYTES_MAX);
        let count = bounded
            .read_until(b'\n', &mut line)
            .map_err(|source| CliError::Local { what: "standard input", source })?;
        if count == 0 {
            return Ok(tally);
        }
        match Line::parse(&line) {
            Ok(Line::Quit) => return Ok(tally),
            Ok(Line::Empty | Line::Clear | Line::Hints(_)) => {}
            Ok(Line::Help(words)) => session.output().write(help::text(&words).as_bytes())?,
            Ok(Line::Connect(target)) => session.turn_to(target)?,
            Ok(Line::Command { repeat, args }) => run_repeated(session, repeat, &args, &mut tally)?,
            Err(text) => {
                tally.failed += 1;
                session.output().line(&text)?;
            }
        }
    }
}

fn run_repeated(
    session: &mut Session,
    repeat: u64,
    args: &[Vec<u8>],
    tally: &mut Tally,
) -> Result<(), CliError> {
    for _ in 0..repeat {
        match session.run(args) {
            Ok(Verdict::Accepted) => {}
            Ok(Verdict::Refused) => tally.refused += 1,
            Err(error @ (CliError::Connect { .. } | CliError::OutputClosed | CliError::Local { .. })) => {
                return Err(error);
            }
            Err(error) => {
                tally.failed += 1;
                warn(&format!("Error: {error}"));
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(repeat: u64, words: &[&str]) -> Result<Line, String> {
        Ok(Line::Command { repeat, args: words.iter().map(|word| word.as_bytes().to_vec()).collect() })
    }

    #[test]
    fn lines_are_commands_or_the_clients_own() {
        let cases = [
            ("", Ok(Line::Empty)),
            ("  \r\n", Ok(Line::Empty)),
            ("GET k\n", command(1, &["GET", "k"])),
            ("set 'a b' \"\\x41\"", command(1, &["set", "a b", "A"])),
            ("5 PING", command(5, &["PING"])),
            ("5", command(1, &["5"])),
            ("+5 PING", command(1, &["+5", "PING"])),
            ("99999999999999999999 PING", command(1, &["99999999999999999999", "PING"])),
            ("quit", Ok(Line::Quit)),
            ("EXIT", Ok(Line::Quit)),
            ("quit now", command(1, &["quit", "now"])),
            ("help", Ok(Line::Help(vec![]))),
            ("? get", Ok(Line::Help(vec![b"get".to_vec()]))),
            ("clear", Ok(Line::Clear)),
            ("connect ::1 7", Ok(Line::Connect(Target::Tcp { host: "::1".into(), port: 7 }))),
            (":set nohints", Ok(Line::Hints(false))),
            (":SET HINTS", Ok(Line::Hints(true))),
        ];
        for (line, expected) in cases {
            assert_eq!(Line::parse(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn mistakes_are_one_line() {
        for (line, expected) in [
            ("get \"k", "Invalid argument(s)"),
            ("connect db1", "usage: connect"),
            ("connect db1 x", "usage: connect"),
            (":set colours", "usage: :set"),
            ("0 PING", "Invalid repeat count"),
        ] {
            let text = Line::parse(line.as_bytes()).unwrap_err();
            assert!(text.starts_with(expected) && !text.contains('\n'), "{text}");
        }
    }
}
