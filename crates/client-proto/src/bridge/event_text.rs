//! Events as lines of a log.

use std::fmt;

use super::{AttemptError, Continuity, Event, HandoffEvent, MaintenanceEvent};
use crate::diagnosis::Short;
use crate::handoff::{Outcome, Taken, Target};

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
            Self::Handoff(event) => write!(f, "handoff: {event}"),
            Self::Maintenance(event) => write!(f, "maintenance: {event}"),
            Self::UnwatchedFailed { count, last } => {
                write!(f, "{count} fire-and-forget commands failed, the last one: {last}")
            }
            Self::Closed => f.write_str("closed"),
            Self::Missed { count } => write!(f, "{count} events were missed"),
        }
    }
}

impl fmt::Display for HandoffEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Announced { generation, successor, window, taken } => {
                write!(f, "the endpoint of {generation} moves")?;
                if let Some(successor) = successor {
                    write!(f, " to {successor}")?;
                }
                if let Some(window) = window {
                    write!(f, " within {}", Short(*window))?;
                }
                write!(f, ": {taken}")
            }
            Self::Dialing { generation, target } => write!(f, "dialling {generation} at {target}"),
            Self::AttemptFailed { generation, error } => {
                write!(f, "{generation} cannot take over ({error}); the old connection goes on serving")
            }
            Self::CutOver { from, to, in_flight, moved, queued } => write!(
                f,
                "{to} serves instead of {from}; {in_flight} commands are answered there, {moved} were taken back, \
                 {queued} wait"
            ),
            Self::Subscriptions { from, to, continuity, took } => {
                write!(f, "the subscriptions of {from} are on {to} after {}; {continuity}", Short(*took))
            }
            Self::Drained { generation, took } => {
                write!(f, "{generation} has answered everything after {}", Short(*took))
            }
            Self::Recycling { generation, hold_max } => write!(
                f,
                "no successor is ready; {generation} is left when it has answered, within {}",
                Short(*hold_max)
            ),
            Self::Ended(ended) => {
                write!(f, "{} {}", ended.from, ended.outcome)?;
                match ended.times.ended_at {
                    Some(at) => write!(f, " after {}", Short(at.since(ended.times.received_at))),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for Continuity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "each message came once",
            Self::MayRepeat => "no message was lost, the last ones may come twice",
            Self::MayMiss => "messages may be missing, and the last ones may come twice",
        })
    }
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dial(error) => write!(f, "{error}"),
            Self::Handshake(error) => write!(f, "{error}"),
            Self::Lost(cause) => write!(f, "{cause}"),
            Self::SameNode => f.write_str("it leads to the server that is to be left"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("the configured address"),
            Self::Named(address) => write!(f, "{address}"),
        }
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begun => "a handoff begins",
            Self::Retargeted => "the handoff goes there instead",
            Self::Queued => "it begins when the present handoff is over",
            Self::Duplicate => "that is known",
            Self::Stale => "that is over",
            Self::TooMany => "too many moves in a short time, this one is not followed",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Moved => "was replaced and has ended",
            Self::Recycled => "had no successor in time and was left in good order",
            Self::MissedWindow => "had no successor in time and stands until the server closes it",
            Self::SourceLost => "was lost before a successor was ready",
            Self::SuccessorLost => "was replaced, and its successor was lost",
        })
    }
}

impl fmt::Display for MaintenanceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relaxed { .. } => f.write_str("the server is busy with itself; deadlines are relaxed"),
            Self::Restored => f.write_str("deadlines are as configured again"),
            Self::Leaving { .. } => f.write_str("the server will close this connection, which cannot move"),
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
