//! Where replies go: standard output in the chosen layout, notes on standard error.
//!
//! Owns writing and flushing. Does not own the layouts (`render`).

use std::io::{self, IsTerminal as _, Write as _};

use towline_resp::frame::Frame;

use super::error::CliError;
use super::render::{Delimiters, Style, quoted, render};

/// How replies are shown.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    style: Style,
    delimiters: Delimiters,
    shows_pushes: bool,
    is_terminal: bool,
    is_error_text_on_stderr: bool,
    sink: Sink,
}

/// Where replies are written.
#[derive(Debug, Clone)]
enum Sink {
    Stdout,
    /// What a test reads.
    #[cfg(test)]
    Memory(std::rc::Rc<std::cell::RefCell<Vec<u8>>>),
}

impl Output {
    /// The caller's choices, completed by what standard output is.
    pub(crate) fn new(
        style: Option<Style>,
        delimiters: Delimiters,
        shows_pushes: Option<bool>,
        is_error_text_on_stderr: bool,
    ) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let style = style.unwrap_or(if is_terminal { Style::Standard } else { Style::Raw });
        let shows_pushes = shows_pushes.unwrap_or(is_terminal);
        Self { style, delimiters, shows_pushes, is_terminal, is_error_text_on_stderr, sink: Sink::Stdout }
    }

    /// Writes to memory, in the layout for people, pushes included.
    #[cfg(test)]
    pub(crate) fn in_memory() -> (Self, std::rc::Rc<std::cell::RefCell<Vec<u8>>>) {
        let written = std::rc::Rc::default();
        let output = Self {
            style: Style::Standard,
            delimiters: Delimiters::default(),
            shows_pushes: true,
            is_terminal: false,
            is_error_text_on_stderr: false,
            sink: Sink::Memory(std::rc::Rc::clone(&written)),
        };
        (output, written)
    }

    /// The layout.
    pub(crate) const fn style(&self) -> Style {
        self.style
    }

    /// Whether standard output is a terminal.
    pub(crate) const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Shows the reply to a command; `is_text` says that the command's replies are made to be read as they are.
    ///
    /// # Errors
    /// [`CliError::OutputClosed`], [`CliError::Local`].
    pub(crate) fn reply(&self, frame: &Frame, is_text: bool) -> Result<(), CliError> {
        if let Some(text) = frame.as_error()
            && self.is_error_text_on_stderr
        {
            let mut line = text.to_vec();
            line.push(b'\n');
            // Without a standard error there is nobody to tell; the exit code still says it.
            let _ = io::stderr().write_all(&line);
            return Ok(());
        }
        let mut bytes = Vec::new();
        let is_error = frame.as_error().is_some();
        match self.style {
            Style::Standard if is_text && !is_error => text(frame, &mut bytes),
            Style::Raw if is_text => text(frame, &mut bytes),
            style => render(frame, style, &self.delimiters, &mut bytes),
        }
        self.write(&bytes)
    }

    /// Shows a push that came while something else was awaited, unless pushes are hidden.
    ///
    /// # Errors
    /// As [`Self::reply`].
    pub(crate) fn push(&self, frame: &Frame) -> Result<(), CliError> {
        if !self.shows_pushes {
            return Ok(());
        }
        match invalidation(frame) {
            Some(line) if self.style == Style::Standard => self.write(&line),
            _ => self.reply(frame, false),
        }
    }

    /// Writes a line of the client's own, on standard output.
    ///
    /// # Errors
    /// As [`Self::reply`].
    pub(crate) fn line(&self, text: &str) -> Result<(), CliError> {
        self.write(format!("{text}\n").as_bytes())
    }

    /// Writes bytes as they are, and flushes.
    ///
    /// # Errors
    /// As [`Self::reply`].
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), CliError> {
        let written = match &self.sink {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            #[cfg(test)]
            Sink::Memory(written) => written.borrow_mut().write_all(bytes),
        };
        written.map_err(|source| match source.kind() {
            io::ErrorKind::BrokenPipe => CliError::OutputClosed,
            _ => CliError::Local { what: "standard output", source },
        })
    }

    /// A key in one line: quoted for people and JSON, as it is for pipes.
    pub(crate) fn key(&self, key: &[u8]) -> Vec<u8> {
        let mut line = Vec::with_capacity(key.len() + 3);
        match self.style {
            Style::Standard => quoted(key, &mut line),
            Style::Raw => line.extend_from_slice(key),
            style => {
                let frame = Frame::Bulk(bytes::Bytes::copy_from_slice(key));
                render(&frame, style, &self.delimiters, &mut line);
                return line;
            }
        }
        line.push(b'\n');
        line
    }
}

/// The reply as it is, with a line end only if it has none.
fn text(frame: &Frame, out: &mut Vec<u8>) {
    let delimiters = Delimiters { reply: Vec::new(), ..Delimiters::default() };
    render(frame, Style::Raw, &delimiters, out);
    if out.last() != Some(&b'\n') {
        out.push(b'\n');
    }
}

/// The one line for a push that says which cached keys are stale.
fn invalidation(frame: &Frame) -> Option<Vec<u8>> {
    let Frame::Push(parts) = frame else { return None };
    let [Frame::Bulk(kind) | Frame::Simple(kind), keys] = parts.as_slice() else { return None };
    if kind != "invalidate" {
        return None;
    }
    let mut line = b"-> invalidate: ".to_vec();
    match keys {
        Frame::Array(keys) => {
            for (index, key) in keys.iter().enumerate() {
                let Frame::Bulk(key) = key else { return None };
                line.extend_from_slice(if index > 0 { b", '" } else { b"'" });
                line.extend(key.escape_ascii());
                line.push(b'\'');
            }
        }
        keys if keys.is_null() => line.extend_from_slice(b"all keys"),
        _ => return None,
    }
    line.push(b'\n');
    Some(line)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn bulk(text: &'static str) -> Frame {
        Frame::Bulk(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn invalidations_are_one_line() {
        let push = |keys| Frame::Push(vec![bulk("invalidate"), keys]);
        let keys = Frame::Array(vec![bulk("a"), bulk("b\n")]);
        assert_eq!(invalidation(&push(keys)).unwrap(), b"-> invalidate: 'a', 'b\\n'\n");
        assert_eq!(invalidation(&push(Frame::Null)).unwrap(), b"-> invalidate: all keys\n");
        assert_eq!(invalidation(&push(bulk("a"))), None);
        assert_eq!(invalidation(&Frame::Push(vec![bulk("message"), bulk("c"), bulk("m")])), None);
    }
}
