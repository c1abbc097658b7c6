//! Events as lines of a log.

use std::fmt;

use super::Event;
use crate::diagnosis::Short;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected { generation, info, down_for, backlog } => {
                write!(f, "connected ({generation}")?;
                if let Some(name) = &info.server.name {
                    write!(f, ", {name}")?;
                }
                if let Some(version) = &info.server.version {
                    write!(f, " {version}")?;
                }
                write!(f, ") after {}; {backlog} commands waited", Short(*down_for))
            }
            Self::Lost { generation, cause, unknown, kept } => write!(
                f,
                "connection {generation} lost: {cause}; {unknown} commands failed, {kept} wait for the next one"
            ),
            Self::DialFailed { generation, error, retry_in } => {
                write!(f, "dial {generation} failed: {error}; the next is in {}", Short(*retry_in))
            }
            Self::HandshakeFailed { generation, error, retry_in } => {
                write!(f, "handshake {generation} failed: {error}; the next dial is in {}", Short(*retry_in))
            }
            Self::ReauthRefused { generation, error } => {
                write!(f, "new credentials were refused on {generation}: {error}")
            }
            Self::UnwatchedFailed { count, last } => {
                write!(f, "{count} fire-and-forget commands failed, the last one: {last}")
            }
            Self::Closed => f.write_str("closed"),
            Self::Missed { count } => write!(f, "{count} events were missed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind, LostCause, Sent};
    use crate::generation::Generation;
    use std::time::Duration;

    #[test]
    fn an_event_is_a_line_of_a_log() {
        let generation = Generation(3);
        let lost = Event::Lost { generation, cause: LostCause::Closed, unknown: 2, kept: 5 };
        assert_eq!(
            lost.to_string(),
            "connection g3 lost: the peer closed it; 2 commands failed, 5 wait for the next one"
        );
        let dial = Event::DialFailed {
            generation,
            error: std::io::ErrorKind::ConnectionRefused,
            retry_in: Duration::from_millis(120),
        };
        assert_eq!(dial.to_string(), "dial g3 failed: connection refused; the next is in 120 ms");
        let last = Error::new(ErrorKind::Closed, Sent::No);
        assert_eq!(
            Event::UnwatchedFailed { count: 2, last }.to_string(),
            "2 fire-and-forget commands failed, the last one: client is closed; the command was not sent"
        );
    }
}
