//! Why a command is answered with an error, in Redis's words.

/// An error reply of an executed command. The client's fault, and of no use to repeat.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    #[error("ERR value is not an integer or out of range")]
    NotInteger,
    #[error("ERR increment or decrement would overflow")]
    Overflow,
    #[error("ERR syntax error")]
    Syntax,
    #[error("{0}")]
    Text(String),
}

impl Failure {
    /// Any other text, with its code.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}
