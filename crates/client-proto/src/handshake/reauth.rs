//! New credentials on a connection in use.
//!
//! Owns the bytes and what their two replies mean. Does not own when it is safe to send them; see [`ReAuth::start`].

use bytes::BufMut;
use towline_resp::frame::{Frame, encode_command};

use super::config::{Credentials, Peer};
use super::error::HandshakeError;
use super::{Tracer, auth_result};
use crate::server_error::ServerError;

/// `AUTH` and a tracer behind it, from the bytes to the second reply.
#[derive(Debug)]
pub struct ReAuth {
    tracer: Tracer,
    /// The reply to `AUTH`, once it is there.
    result: Option<Result<(), HandshakeError>>,
}

/// What a reply to [`ReAuth`] means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReAuthProgress {
    /// Another reply is due.
    NeedMore,
    /// The connection has the new identity.
    Done,
    /// The server refuses the new credentials. The connection is whole and keeps its old identity.
    Refused(HandshakeError),
    /// Replies do not line up; close the connection.
    Broken(HandshakeError),
}

impl ReAuth {
    /// Appends both commands to `out`.
    ///
    /// Send them only while no other command of the connection waits for its reply, and ahead of any other: Redis 8
    /// does not answer a refused `AUTH` that it reads together with an earlier command, and all later replies would
    /// go to the wrong callers. What follows in the same write is not affected.
    pub fn start(credentials: &Credentials, token: u64, out: &mut impl BufMut) -> Self {
        let tracer = Tracer::new(Peer::Server, token);
        encode_command(&credentials.auth(), out);
        encode_command(&tracer.command(), out);
        Self { tracer, result: None }
    }

    /// Takes the next frame that answers a command. Pushes are not for here.
    pub fn on_frame(&mut self, frame: Frame) -> ReAuthProgress {
        let frame = frame.without_attributes();
        let answer = ServerError::from_frame(&frame);
        match self.result.take() {
            None => match auth_result(&frame, answer) {
                Err(error @ HandshakeError::AuthUnanswered) => ReAuthProgress::Broken(error),
                result => {
                    self.result = Some(result);
                    ReAuthProgress::NeedMore
                }
            },
            Some(result) => match (self.tracer.check(&frame, answer), result) {
                (Err(HandshakeError::Desync), _) => ReAuthProgress::Broken(HandshakeError::Desync),
                // A refusal of the tracer (the server loads, say) is in the tracer's place all the same.
                (_, Ok(())) => ReAuthProgress::Done,
                (_, Err(error)) => ReAuthProgress::Refused(error),
            },
        }
    }
}
