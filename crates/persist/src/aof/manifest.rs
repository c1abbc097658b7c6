//! The manifest: which files make the log, as text.
//!
//! Owns the text and the rules between its lines. Does not own whether the files exist (`directory` does).
//!
//! A line is `file NAME seq NUMBER type b|h|i`; a name with blanks or quotes is quoted as in an inline command.
//! Redis 8 adds `startoffset` and `endoffset`, replication offsets, which are kept. Lines that start with `#` are
//! comments. Redis passes over words that it does not know; here they are refused with their line, since nobody
//! can tell whether the data is right without them.

use std::fmt::Write as _;

use towline_resp::inline::split_line;

/// A longer line is refused, as in Redis.
pub const LINE_BYTES_MAX: usize = 1024;

/// A file that the manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Its name in the directory: no path.
    pub name: String,
    /// Its number: increments are loaded in the order of theirs.
    pub sequence: u64,
    /// Replication offset before its first command, written by Redis 8.
    pub start_offset: Option<i64>,
    /// Replication offset after its last command, written by Redis 8.
    pub end_offset: Option<i64>,
}

impl ManifestFile {
    /// A file without replication offsets.
    #[must_use]
    pub fn new(name: impl Into<String>, sequence: u64) -> Self {
        Self { name: name.into(), sequence, start_offset: None, end_offset: None }
    }
}

/// The files of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The data at the start of the first increment, if there was any.
    pub base: Option<ManifestFile>,
    /// Commands since then, in order.
    pub increments: Vec<ManifestFile>,
    /// Files that a rewrite replaced and that are to be removed; in no use.
    pub history: Vec<ManifestFile>,
}

/// Why a manifest was refused. A person put the text there, or another program; never retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the manifest: {kind}")]
pub struct ManifestError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub kind: ManifestErrorKind,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestErrorKind {
    /// The manifest has no bytes; a log without files has a comment.
    #[error("the file is empty")]
    Empty,
    /// It has no end, or is longer than [`LINE_BYTES_MAX`].
    #[error("it is longer than {LINE_BYTES_MAX} bytes, or its end is missing")]
    LineEnd,
    /// It is not made of pairs of a word and a value, quotes are open, or it is not UTF-8.
    #[error("it is not `file NAME seq NUMBER type b|h|i`")]
    Form,
    /// A word that no known version writes, or one that is there twice.
    #[error("`{0}` is not known there")]
    Word(String),
    /// A value that does not suit its word.
    #[error("`{value}` is no value for `{word}`")]
    Value {
        /// The word.
        word: &'static str,
        /// The value.
        value: String,
    },
    /// The name leads out of the directory.
    #[error("`{0}` is not the name of a file in the directory")]
    Path(String),
    /// A second base.
    #[error("there is a base already")]
    SecondBase,
    /// The increments' numbers do not ascend.
    #[error("increment {sequence} follows increment {before}")]
    Order {
        /// This line's number.
        sequence: u64,
        /// The number before it.
        before: u64,
    },
    /// The same file twice.
    #[error("`{0}` is named twice")]
    Twice(String),
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// See [`ManifestErrorKind`].
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        let fail = |line, kind| Err(ManifestError { line, kind });
        if text.is_empty() {
            return fail(1, ManifestErrorKind::Empty);
        }
        let mut manifest = Self::default();
        for (number, line) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
            if line.len() > LINE_BYTES_MAX || !line.ends_with(b"\n") {
                return fail(number, ManifestErrorKind::LineEnd);
            }
            if line.starts_with(b"#") {
                continue;
            }
            match parse_line(line).and_then(|(file, kind)| manifest.add(file, kind)) {
                Ok(()) => {}
                Err(kind) => return fail(number, kind),
            }
        }
        Ok(manifest)
    }

    /// The text, which [`parse`](Self::parse) reads back.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let base = self.base.iter().map(|file| (file, 'b'));
        let history = self.history.iter().map(|file| (file, 'h'));
        for (file, kind) in base.chain(history).chain(self.increments.iter().map(|file| (file, 'i'))) {
            text.push_str("file ");
            push_name(&mut text, &file.name);
            // Writing to a string does not fail.
            let _ = write!(text, " seq {} type {kind}", file.sequence);
            for (word, offset) in [("startoffset", file.start_offset), ("endoffset", file.end_offset)] {
                if let Some(offset) = offset {
                    let _ = write!(text, " {word} {offset}");
                }
            }
            text.push('\n');
        }
        if text.is_empty() {
            // An empty file would look like one whose content was lost.
            text.push_str("# no files yet\n");
        }
        text
    }

    /// The name of every file in it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.base.iter().chain(&self.history).chain(&self.increments).map(|file| file.name.as_str())
    }

    fn add(&mut self, file: ManifestFile, kind: u8) -> Result<(), ManifestErrorKind> {
        if self.names().any(|name| name == file.name) {
            return Err(ManifestErrorKind::Twice(file.name));
        }
        match kind {
            b'b' if self.base.is_some() => return Err(ManifestErrorKind::SecondBase),
            b'b' => self.base = Some(file),
            b'h' => self.history.push(file),
            _ => {
                let before = self.increments.last().map_or(0, |file| file.sequence);
                if file.sequence <= before {
                    return Err(ManifestErrorKind::Order { sequence: file.sequence, before });
                }
                self.increments.push(file);
            }
        }
        Ok(())
    }
}

fn parse_line(line: &[u8]) -> Result<(ManifestFile, u8), ManifestErrorKind> {
    let words = split_line(line.trim_ascii()).map_err(|_| ManifestErrorKind::Form)?;
    let words: Result<Vec<String>, _> = words.into_iter().map(String::from_utf8).collect();
    let words = words.map_err(|_| ManifestErrorKind::Form)?;
    if words.is_empty() || words.len() % 2 != 0 {
        return Err(ManifestErrorKind::Form);
    }
    let (mut name, mut sequence, mut kind) = (None, None, None);
    let (mut start_offset, mut end_offset) = (None, None);
    for pair in words.chunks_exact(2) {
        let (word, value) = (pair[0].to_ascii_lowercase(), &pair[1]);
        let is_second = match word.as_str() {
            "file" => {
                let is_path =
                    value.is_empty() || value == "." || value == ".." || value.contains(['/', '\\', '\0']);
                if is_path {
                    return Err(ManifestErrorKind::Path(value.clone()));
                }
                name.replace(value.clone()).is_some()
            }
            "seq" => {
                let number = parse_number::<u64>("seq", value)?;
                if number == 0 {
                    return Err(ManifestErrorKind::Value { word: "seq", value: value.clone() });
                }
                sequence.replace(number).is_some()
            }
            "type" => match value.as_bytes() {
                [byte @ (b'b' | b'h' | b'i')] => kind.replace(*byte).is_some(),
                _ => return Err(ManifestErrorKind::Value { word: "type", value: value.clone() }),
            },
            "startoffset" => start_offset.replace(parse_number("startoffset", value)?).is_some(),
            "endoffset" => end_offset.replace(parse_number("endoffset", value)?).is_some(),
            _ => true,
        };
        if is_second {
            return Err(ManifestErrorKind::Word(pair[0].clone()));
        }
    }
    match (name, sequence, kind) {
        (Some(name), Some(sequence), Some(kind)) => {
            Ok((ManifestFile { name, sequence, start_offset, end_offset }, kind))
        }
        _ => Err(ManifestErrorKind::Form),
    }
}

fn parse_number<N: std::str::FromStr>(word: &'static str, value: &str) -> Result<N, ManifestErrorKind> {
    value.parse().map_err(|_| ManifestErrorKind::Value { word, value: value.to_owned() })
}

/// Appends a name, quoted if a reader would not take it as one word otherwise.
fn push_name(text: &mut String, name: &str) {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if name.bytes().all(is_plain) {
        text.push_str(name);
        return;
    }
    text.push('"');
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('"');
}
