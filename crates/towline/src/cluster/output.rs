//! What people and scripts read, and the question before a change.
//!
//! Owns standard output and the answer `yes`. Does not own progress, which goes to standard error (`progress`).

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use super::error::ClusterError;

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 1024;

/// How a job speaks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    /// One JSON object instead of lines.
    pub(super) is_json: bool,
    /// Nobody is asked.
    pub(super) is_yes: bool,
    /// Nothing is said.
    pub(super) is_silent: bool,
}

impl Output {
    /// For who uses a job as a part of something else.
    pub(super) fn silent() -> Self {
        Self { is_json: false, is_yes: true, is_silent: true }
    }

    /// Writes a line for people.
    ///
    /// # Errors
    /// [`ClusterError::Local`].
    pub(super) fn line(&self, text: &str) -> Result<(), ClusterError> {
        if self.is_json || self.is_silent { Ok(()) } else { write(&format!("{text}\n")) }
    }

    /// Writes the object for scripts.
    ///
    /// # Errors
    /// [`ClusterError::Local`].
    pub(super) fn json(&self, value: &serde_json::Value) -> Result<(), ClusterError> {
        if self.is_json { write(&format!("{value}\n")) } else { Ok(()) }
    }

    /// Asks whether to go on.
    ///
    /// # Errors
    /// [`ClusterError::Refusal`] if the answer is not yes; [`ClusterError::Usage`] if nobody can be asked.
    pub(super) fn confirm(&self, question: &str) -> Result<(), ClusterError> {
        if self.is_yes {
            return Ok(());
        }
        let local = |source| ClusterError::Local { what: "standard input", source };
        let input = std::io::stdin().lock();
        if !input.is_terminal() {
            return Err(ClusterError::Usage(format!(
                "{question} Nobody can be asked without a terminal: say --yes"
            )));
        }
        let mut error = std::io::stderr();
        write!(error, "{question} (yes/no) ").and_then(|()| error.flush()).map_err(local)?;
        let mut answer = String::new();
        std::io::Read::take(input, ANSWER_BYTES_MAX).read_line(&mut answer).map_err(local)?;
        if answer.trim().eq_ignore_ascii_case("yes") {
            Ok(())
        } else {
            Err(ClusterError::Refusal("nothing was changed".to_owned()))
        }
    }
}

/// Writes bytes to standard output.
///
/// # Errors
/// [`ClusterError::Local`].
pub(super) fn write(text: &str) -> Result<(), ClusterError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|source| ClusterError::Local { what: "standard output", source })
}

/// Columns under each other: all left-aligned but those whose heading begins with `>`.
pub(super) fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let text = |cell: &str| cell.strip_prefix('>').unwrap_or(cell).to_owned();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| text(cell).chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let is_right: Vec<bool> = rows
        .first()
        .map(|heading| heading.iter().map(|cell| cell.starts_with('>')).collect())
        .unwrap_or_default();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).zip(&is_right).map(|((cell, width), is_right)| {
            let cell = text(cell);
            if *is_right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["name", ">keys"], ["a", "1000"], ["longer", "7"]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        assert_eq!(table(&rows), ["name    keys", "a       1000", "longer     7"]);
        assert!(table(&[]).is_empty());
    }
}
