//! Several replies become one.
//!
//! Owns the arithmetic. Does not own who was asked.

use bytes::Bytes;
use towline_client_proto::routing::Join;
use towline_client_proto::{Error, ErrorKind, Sent, ServerError};
use towline_resp::frame::Frame;

/// Joins the replies of nodes, each with its address.
pub(super) fn nodes(how: Join, replies: Vec<(String, Frame)>) -> Result<Frame, Error> {
    if how == Join::PerNode {
        let named = |(address, frame)| (Frame::Bulk(Bytes::from(address)), frame);
        return Ok(Frame::Map(replies.into_iter().map(named).collect()));
    }
    let frames = replies.into_iter().map(|(_, frame)| frame).collect();
    join(how, frames)
}

/// Joins the replies to parts of one command, each with the numbers of its keys.
pub(super) fn parts(how: Join, replies: Vec<(&[usize], Frame)>) -> Result<Frame, Error> {
    if how != Join::ByKey {
        return join(how, replies.into_iter().map(|(_, frame)| frame).collect());
    }
    let count = replies.iter().map(|(keys, _)| keys.len()).sum();
    let mut joined = vec![Frame::Null; count];
    for (keys, frame) in replies {
        let values = elements(frame)?;
        if values.len() != keys.len() {
            return Err(shape("as many values as keys"));
        }
        for (at, value) in keys.iter().zip(values) {
            if let Some(place) = joined.get_mut(*at) {
                *place = value;
            }
        }
    }
    Ok(Frame::Array(joined))
}

fn join(how: Join, mut frames: Vec<Frame>) -> Result<Frame, Error> {
    let failure = frames.iter().find_map(ServerError::from_frame);
    if how == Join::OneSucceeded {
        let good = frames.iter().position(|frame| frame.as_error().is_none());
        return match (good, failure) {
            (Some(at), _) => Ok(frames.swap_remove(at)),
            (None, Some(error)) => Err(Error::server(error)),
            (None, None) => Err(shape("a reply")),
        };
    }
    if let Some(error) = failure {
        return Err(Error::server(error));
    }
    match how {
        Join::Sum => Ok(Frame::Integer(numbers(&frames)?.into_iter().fold(0, i64::saturating_add))),
        Join::Min => least(numbers(&frames)?.into_iter().min()),
        Join::Max => least(numbers(&frames)?.into_iter().max()),
        Join::And => by_element(frames, |one, other| one != 0 && other != 0),
        Join::Or => by_element(frames, |one, other| one != 0 || other != 0),
        Join::Append => {
            let mut all = Vec::new();
            for frame in frames {
                all.extend(elements(frame)?);
            }
            Ok(Frame::Array(all))
        }
        Join::AnyValue => Ok(frames.into_iter().find(|frame| !frame.is_null()).unwrap_or(Frame::Null)),
        Join::AllSucceeded | Join::OneSucceeded | Join::ByKey | Join::PerNode => {
            frames.into_iter().next().ok_or_else(|| shape("a reply"))
        }
    }
}

fn least(number: Option<i64>) -> Result<Frame, Error> {
    number.map(Frame::Integer).ok_or_else(|| shape("a number"))
}

fn numbers(frames: &[Frame]) -> Result<Vec<i64>, Error> {
    let number = |frame: &Frame| match frame {
        Frame::Integer(value) => Ok(*value),
        Frame::Boolean(value) => Ok(i64::from(*value)),
        _ => Err(shape("numbers")),
    };
    frames.iter().map(number).collect()
}

/// Numbers, or lists of them, element by element.
fn by_element(frames: Vec<Frame>, both: impl Fn(i64, i64) -> bool) -> Result<Frame, Error> {
    if frames.iter().all(|frame| matches!(frame, Frame::Integer(_) | Frame::Boolean(_))) {
        let all = numbers(&frames)?.into_iter().reduce(|one, other| i64::from(both(one, other)));
        return least(all);
    }
    let mut joined: Option<Vec<i64>> = None;
    for frame in frames {
        let values = numbers(&elements(frame)?)?;
        joined = Some(match joined {
            None => values,
            Some(known) if known.len() == values.len() => {
                known.into_iter().zip(values).map(|(one, other)| i64::from(both(one, other))).collect()
            }
            Some(_) => return Err(shape("lists of one length")),
        });
    }
    Ok(Frame::Array(joined.unwrap_or_default().into_iter().map(Frame::Integer).collect()))
}

fn elements(frame: Frame) -> Result<Vec<Frame>, Error> {
    match frame.without_attributes() {
        Frame::Array(frames) | Frame::Set(frames) => Ok(frames),
        _ => Err(shape("lists")),
    }
}

/// The nodes do not answer alike.
fn shape(expected: &str) -> Error {
    Error::new(ErrorKind::Shape(format!("the nodes' replies are not {expected}").into()), Sent::Answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(values: &[i64]) -> Frame {
        Frame::Array(values.iter().copied().map(Frame::Integer).collect())
    }

    fn of(how: Join, frames: Vec<Frame>) -> Result<Frame, Error> {
        nodes(how, frames.into_iter().enumerate().map(|(at, frame)| (format!("n{at}"), frame)).collect())
    }

    #[test]
    fn replies_are_joined_as_the_policy_says() {
        let (two, three) = (Frame::Integer(2), Frame::Integer(3));
        let both = || vec![two.clone(), three.clone()];
        assert_eq!(of(Join::Sum, both()).unwrap(), Frame::Integer(5));
        assert_eq!(of(Join::Min, both()).unwrap(), two);
        assert_eq!(of(Join::Max, both()).unwrap(), three);
        assert_eq!(of(Join::AllSucceeded, both()).unwrap(), two);
        let lists = || vec![ints(&[1, 0, 1]), ints(&[1, 1, 0])];
        assert_eq!(of(Join::And, lists()).unwrap(), ints(&[1, 0, 0]));
        assert_eq!(of(Join::Or, lists()).unwrap(), ints(&[1, 1, 1]));
        assert_eq!(of(Join::Append, lists()).unwrap(), ints(&[1, 0, 1, 1, 1, 0]));
        assert_eq!(of(Join::AnyValue, vec![Frame::Null, two.clone()]).unwrap(), two);
        let Frame::Map(pairs) = of(Join::PerNode, both()).unwrap() else { panic!("a map") };
        assert_eq!(pairs[1], (Frame::Bulk("n1".into()), three));
    }

    #[test]
    fn one_error_is_everybodys_unless_one_success_will_do() {
        let mixed = || vec![Frame::Error("NOTBUSY no script".into()), Frame::Simple("OK".into())];
        assert_eq!(of(Join::AllSucceeded, mixed()).unwrap_err().code(), Some("NOTBUSY"));
        assert_eq!(of(Join::Sum, mixed()).unwrap_err().code(), Some("NOTBUSY"));
        assert_eq!(of(Join::OneSucceeded, mixed()).unwrap(), Frame::Simple("OK".into()));
    }

    #[test]
    fn values_come_in_the_order_of_the_keys() {
        let replies = vec![(&[1, 3][..], ints(&[10, 30])), (&[0, 2][..], ints(&[0, 20]))];
        assert_eq!(parts(Join::ByKey, replies).unwrap(), ints(&[0, 10, 20, 30]));
        let short = vec![(&[0, 1][..], ints(&[1]))];
        assert!(matches!(parts(Join::ByKey, short).unwrap_err().kind(), ErrorKind::Shape(_)));
    }
}
