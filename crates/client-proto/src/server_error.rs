//! An error that the server answered, and what its code proves.
//!
//! Owns the split into code and message and the classes of codes. Does not own what to do about a class: that is
//! `retry`'s decision.

use std::fmt;

use bytes::Bytes;
use towline_resp::frame::Frame;

/// An error reply: its code (the first word) and its message (the rest).
///
/// Holds its own copy of the text, so that a kept error never pins a read buffer. Bytes that are no UTF-8 are
/// replaced by U+FFFD.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ServerError {
    text: Box<str>,
    code_len: usize,
}

/// What an error's code says about the command that it answers.
///
/// Every class but [`ServerClass::Answer`] proves that the command was not executed: the server refuses before it
/// starts. See [`ServerError::class`] for the exception, errors that a script passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerClass {
    /// `LOADING`: the server reads its data set.
    Loading,
    /// `BUSY`: a script or a module command has run for too long and everything else is refused.
    ScriptBusy,
    /// `CLUSTERDOWN`: no quorum, or the slot has no owner.
    ClusterDown,
    /// `TRYAGAIN`: the keys of one command are on two nodes while their slot moves.
    TryAgain,
    /// `MASTERDOWN`: a replica without its primary, told not to serve stale data.
    MasterDown,
    /// `READONLY`: a write reached a replica; the topology has changed.
    ReadOnly,
    /// `NOREPLICAS`: too few replicas for `min-replicas-to-write`.
    NoReplicas,
    /// `MOVED`: another node owns the slot.
    Moved,
    /// `ASK`: another node has the key for now.
    Ask,
    /// `ERR max number of clients reached`: the connection itself was refused.
    TooManyClients,
    /// Everything else is the answer to the command, `OOM` and `WRONGTYPE` and `NOPERM` included: asking again
    /// gives the same, or may do the work twice.
    Answer,
}

impl ServerError {
    /// From the text of an error reply, without its type byte and line end.
    pub fn from_bytes(text: &[u8]) -> Self {
        Self::new(&String::from_utf8_lossy(text))
    }

    /// From the text of an error reply.
    pub fn new(text: &str) -> Self {
        let code_len = text.find(' ').unwrap_or(text.len());
        Self { text: text.into(), code_len }
    }

    /// The error in `frame`, if it is one (of either kind, within attributes or not).
    pub fn from_frame(frame: &Frame) -> Option<Self> {
        match frame {
            Frame::Attributed { frame, .. } => Self::from_frame(frame),
            other => other.as_error().map(|text| Self::from_bytes(text)),
        }
    }

    /// The first word: `WRONGTYPE`, `ERR`, `MOVED`. Empty if the server sent an empty error.
    pub fn code(&self) -> &str {
        &self.text[..self.code_len]
    }

    /// What follows the code and one space.
    pub fn message(&self) -> &str {
        self.text.get(self.code_len + 1..).unwrap_or_default()
    }

    /// Code and message as the server sent them.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text as bytes of its own, for a caller that forwards the reply.
    pub fn to_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(self.text.as_bytes())
    }

    /// What the code proves.
    ///
    /// An error that came up inside a script names the script (`script: <sha>, on @user_script:1.`, Redis 7). The
    /// script had begun by then, so such an error is an [`ServerClass::Answer`] whatever its code.
    pub fn class(&self) -> ServerClass {
        if self.text.contains(" script: ") && self.text.contains("@user_") {
            return ServerClass::Answer;
        }
        match self.code() {
            "LOADING" => ServerClass::Loading,
            "BUSY" => ServerClass::ScriptBusy,
            "CLUSTERDOWN" => ServerClass::ClusterDown,
            "TRYAGAIN" => ServerClass::TryAgain,
            "MASTERDOWN" => ServerClass::MasterDown,
            "READONLY" => ServerClass::ReadOnly,
            "NOREPLICAS" => ServerClass::NoReplicas,
            "MOVED" => ServerClass::Moved,
            "ASK" => ServerClass::Ask,
            "ERR" if self.message().starts_with("max number of clients") => ServerClass::TooManyClients,
            _ => ServerClass::Answer,
        }
    }
}

impl ServerClass {
    /// Whether the class proves that the command was not executed.
    pub const fn is_not_executed(self) -> bool {
        !matches!(self, Self::Answer)
    }
}

impl fmt::Debug for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_splits_into_code_and_message() {
        let cases: [(&[u8], &str, &str); 5] = [
            (b"WRONGTYPE Operation against a key", "WRONGTYPE", "Operation against a key"),
            (b"MOVED 3999 127.0.0.1:6381", "MOVED", "3999 127.0.0.1:6381"),
            (b"ERR", "ERR", ""),
            (b"", "", ""),
            (b"ERR \xff", "ERR", "\u{fffd}"),
        ];
        for (bytes, code, message) in cases {
            let error = ServerError::from_bytes(bytes);
            assert_eq!((error.code(), error.message()), (code, message));
        }
    }

    #[test]
    fn an_error_is_found_in_every_frame_that_is_one() {
        let text = Bytes::from_static(b"ERR no");
        let plain = Frame::Error(text.clone());
        let attributed = Frame::Attributed { attributes: Vec::new(), frame: Box::new(plain.clone()) };
        for frame in [plain, Frame::BlobError(text.clone()), attributed] {
            assert_eq!(ServerError::from_frame(&frame), Some(ServerError::new("ERR no")));
        }
        assert_eq!(ServerError::from_frame(&Frame::Simple(text)), None);
    }

    #[test]
    fn words_that_begin_like_a_refusal_are_answers() {
        for text in
            ["BUSYGROUP Consumer Group name already exists", "BUSYKEY Target key name already exists."]
        {
            assert_eq!(ServerError::new(text).class(), ServerClass::Answer);
        }
        assert_eq!(ServerError::new("BUSY Redis is busy running a script.").class(), ServerClass::ScriptBusy);
    }

    #[test]
    fn a_refusal_that_a_script_passed_on_proves_nothing() {
        let text = "READONLY You can't write against a read only replica. script: 2f8c, on @user_script:1.";
        assert_eq!(ServerError::new(text).class(), ServerClass::Answer);
    }
}
