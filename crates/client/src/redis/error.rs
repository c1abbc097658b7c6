//! Errors as redis-rs represents them.
//!
//! Owns the way from an [`Error`] to a [`RedisError`], so that what users of redis-rs test for (`is_timeout`,
//! `is_connection_dropped`, `code`, `kind`) holds, and the way back to what redis-rs has no word for: whether the
//! server may have run the command.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use ::redis::{ErrorKind as RedisKind, RedisError};
use towline_client_proto::{Error, ErrorKind, LostCause, Sent};

use super::value::server_error;

/// The same error for a caller who knows redis-rs.
///
/// | ours | redis-rs | what holds |
/// |---|---|---|
/// | the server's answer | the same code and detail | `code()`, `kind()`, `redirect_node()` |
/// | `Deadline`, `BacklogAge`, `BacklogFull`, `LeasesTaken` | I/O, `TimedOut` | `is_timeout()` |
/// | `Lost` | I/O, by the cause: `UnexpectedEof`, `ConnectionReset`, `ConnectionAborted` | `is_connection_dropped()` |
/// | `Unavailable`, `Connect`, `Closed` | I/O, `NotConnected` | `is_connection_dropped()` |
/// | `Handshake` | `AuthenticationFailed` for credentials, I/O if it may pass, else `InvalidClientConfig` | |
/// | `Protocol` | `Parse` | `is_unrecoverable_error()` |
/// | `Misuse` | `Client` | |
/// | `Shape` | `UnexpectedReturnType` | |
pub(super) fn redis_error(error: Error) -> RedisError {
    let kind = match error.kind() {
        ErrorKind::Server(answer) => return server_error(answer.text().as_bytes()).into(),
        ErrorKind::Deadline
        | ErrorKind::BacklogAge
        | ErrorKind::BacklogFull { .. }
        | ErrorKind::LeasesTaken { .. } => io::ErrorKind::TimedOut,
        ErrorKind::Lost(LostCause::Closed) => io::ErrorKind::UnexpectedEof,
        ErrorKind::Lost(LostCause::Reset) => io::ErrorKind::ConnectionReset,
        ErrorKind::Lost(_) => io::ErrorKind::ConnectionAborted,
        ErrorKind::Handshake(refusal) if refusal.is_about_credentials() => {
            return (
                RedisKind::AuthenticationFailed,
                "the server refuses the credentials",
                error.to_string(),
            )
                .into();
        }
        ErrorKind::Handshake(refusal) if !refusal.is_retryable() => {
            return (RedisKind::InvalidClientConfig, "the server refuses the connection", error.to_string())
                .into();
        }
        ErrorKind::Protocol(_) => {
            return (RedisKind::Parse, "the peer broke the protocol", error.to_string()).into();
        }
        ErrorKind::Misuse(_) => {
            return (RedisKind::Client, "the client refuses the call", error.to_string()).into();
        }
        ErrorKind::Shape(_) => {
            return (RedisKind::UnexpectedReturnType, "the reply is of another type", error.to_string())
                .into();
        }
        // What is left is about having no connection.
        _ => io::ErrorKind::NotConnected,
    };
    io::Error::new(kind, error).into()
}

/// Towline's own error within one of redis-rs, where there is one: with the diagnosis of a timeout, for example.
/// Errors of the server and of conversions have none.
pub fn inner_error(error: &RedisError) -> Option<&Error> {
    let source = error.source()?;
    // redis-rs keeps its cause behind a reference count, which is an error of its own to `downcast_ref`.
    let io = source.downcast_ref::<io::Error>().or_else(|| {
        source.downcast_ref::<Arc<dyn StdError + Send + Sync>>().and_then(|shared| shared.downcast_ref())
    })?;
    io.get_ref()?.downcast_ref()
}

/// Whether the server may have run the command that failed with `error`; `None` if the error does not come from this
/// client. A pipeline's error tells of the command that failed first.
pub fn sent(error: &RedisError) -> Option<Sent> {
    match error.kind() {
        RedisKind::Server(_) | RedisKind::Extension => Some(Sent::Answered),
        RedisKind::UnexpectedReturnType => Some(Sent::Answered),
        RedisKind::Client | RedisKind::AuthenticationFailed | RedisKind::InvalidClientConfig => {
            Some(Sent::No)
        }
        _ => inner_error(error).map(Error::sent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_client_proto::ServerError;

    fn converted(kind: ErrorKind, sent: Sent) -> RedisError {
        redis_error(Error::new(kind, sent))
    }

    #[test]
    fn what_callers_of_redis_rs_test_for_holds() {
        let late = converted(ErrorKind::Deadline, Sent::Maybe);
        assert!(late.is_timeout() && !late.is_connection_dropped() && late.is_io_error());

        for cause in [LostCause::Closed, LostCause::Reset, LostCause::Silent, LostCause::Planned] {
            let lost = converted(ErrorKind::Lost(cause), Sent::Maybe);
            assert!(lost.is_connection_dropped() && !lost.is_timeout(), "{cause}");
        }
        let absent = converted(ErrorKind::Unavailable, Sent::No);
        assert!(absent.is_connection_dropped() && absent.is_unrecoverable_error());

        let wrong = redis_error(Error::server(ServerError::new("WRONGTYPE not a list")));
        assert_eq!((wrong.code(), wrong.detail()), (Some("WRONGTYPE"), Some("not a list")));

        let misuse = redis_error(Error::misuse("take a lease"));
        assert_eq!(misuse.kind(), RedisKind::Client);
        assert!(misuse.to_string().contains("take a lease"), "{misuse}");
    }

    #[test]
    fn whether_it_was_sent_is_kept() {
        let lost = converted(ErrorKind::Lost(LostCause::Reset), Sent::Maybe);
        assert_eq!(sent(&lost), Some(Sent::Maybe));
        assert_eq!(inner_error(&lost).unwrap().kind(), &ErrorKind::Lost(LostCause::Reset));
        assert_eq!(sent(&converted(ErrorKind::Deadline, Sent::No)), Some(Sent::No));
        assert_eq!(sent(&redis_error(Error::server(ServerError::new("ERR x")))), Some(Sent::Answered));
        assert_eq!(sent(&io::Error::other("elsewhere").into()), None);
    }
}
