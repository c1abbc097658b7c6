//! Why a reply is not the value that was asked for.

use std::fmt;
use towline_client_proto::ServerError;
use towline_resp::frame::Frame;

/// Why a reply did not become the value that the caller asked for. The command was executed.
///
/// Names kinds and lengths, never contents: those may be secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyError {
    /// The server answered with an error, or one of several commands did.
    Server(ServerError),
    /// The reply has another shape, or is out of range.
    Shape {
        /// What would have done.
        expected: &'static str,
        /// What came.
        found: Found,
        /// Positions from the outside to the element that is meant; empty: the reply itself.
        path: Vec<usize>,
    },
    /// A field of a struct is not what it is to be.
    Field {
        /// The field's name in the reply.
        name: &'static str,
        /// Positions from the outside to the struct; empty: it is the reply itself.
        path: Vec<usize>,
        /// What is wrong with the field.
        error: Box<Self>,
    },
}

/// What came in place of what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// Another kind of reply.
    Kind(&'static str),
    /// A text of this many bytes that cannot be read as what was expected.
    Text(usize),
    /// A number that does not fit.
    Number,
    /// This many elements.
    Elements(usize),
    /// Nothing: a field that is not there.
    Absent,
}

impl ReplyError {
    /// A frame that is not what was expected: the server's error if it is one.
    pub(crate) fn unexpected(expected: &'static str, frame: &Frame) -> Self {
        match ServerError::from_frame(frame) {
            Some(error) => Self::Server(error),
            None => Self::shape(expected, Found::Kind(kind(frame))),
        }
    }

    pub(crate) const fn shape(expected: &'static str, found: Found) -> Self {
        Self::Shape { expected, found, path: Vec::new() }
    }

    /// The same error of the element at `index`.
    pub(super) fn at(mut self, index: usize) -> Self {
        if let Self::Shape { path, .. } | Self::Field { path, .. } = &mut self {
            path.insert(0, index);
        }
        self
    }

    /// The same error of a struct's field.
    #[cfg_attr(not(feature = "derive"), expect(dead_code, reason = "only derived structs have fields"))]
    pub(super) fn within(self, name: &'static str) -> Self {
        match self {
            Self::Server(error) => Self::Server(error),
            error => Self::Field { name, path: Vec::new(), error: Box::new(error) },
        }
    }

    /// The server's error, if that is the reason.
    pub const fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) => Some(error),
            Self::Shape { .. } | Self::Field { .. } => None,
        }
    }
}

/// The name of a frame's kind, with its article.
const fn kind(frame: &Frame) -> &'static str {
    match frame {
        Frame::Simple(_) => "a simple string",
        Frame::Error(_) | Frame::BlobError(_) => "an error",
        Frame::Integer(_) => "an integer",
        Frame::Bulk(_) => "a string",
        Frame::Null | Frame::NullArray => "null",
        Frame::Array(_) => "an array",
        Frame::Double(_) => "a double",
        Frame::Boolean(_) => "a boolean",
        Frame::BigNumber(_) => "a big number",
        Frame::Verbatim { .. } => "a verbatim string",
        Frame::Map(_) => "a map",
        Frame::Set(_) => "a set",
        Frame::Push(_) => "a push",
        Frame::Attributed { .. } => "a value with attributes",
    }
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error = self;
        if let Self::Server(error) = error {
            return fmt::Display::fmt(error, f);
        }
        f.write_str("the reply")?;
        let (expected, found) = loop {
            let (Self::Shape { path, .. } | Self::Field { path, .. }) = error else { return Ok(()) };
            path.iter().try_for_each(|index| write!(f, "[{index}]"))?;
            match error {
                Self::Field { name, error: inner, .. } => {
                    write!(f, ".{name}")?;
                    error = inner;
                }
                Self::Shape { expected, found, .. } => break (expected, found),
                Self::Server(_) => return Ok(()),
            }
        };
        match found {
            Found::Kind(kind) => write!(f, " is {kind}, expected {expected}")?,
            Found::Text(len) => write!(f, " is a text of {len} bytes that is not {expected}")?,
            Found::Number => write!(f, " is a number that does not fit, expected {expected}")?,
            Found::Elements(count) => write!(f, " has {count} elements, expected {expected}")?,
            Found::Absent => write!(f, " is absent, expected {expected}")?,
        }
        if matches!(found, Found::Kind("null") | Found::Absent) {
            f.write_str("; an `Option` takes null")?;
        }
        Ok(())
    }
}

impl std::error::Error for ReplyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Server(error) => Some(error),
            Self::Shape { .. } | Self::Field { .. } => None,
        }
    }
}
