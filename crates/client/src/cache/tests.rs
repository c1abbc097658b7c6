use std::time::Duration;

use bytes::Bytes;
use towline_client_proto::{Reply, ServerError};
use towline_resp::frame::Frame;

use super::read::{Heard, compact, hear};
use super::{CacheOptions, command_bytes, key_of};
use crate::cmd::cmd;

fn ok() -> Frame {
    Frame::Simple(Bytes::from_static(b"OK"))
}

fn error(text: &'static str) -> Frame {
    Frame::Error(Bytes::from_static(text.as_bytes()))
}

fn value() -> Frame {
    Frame::Bulk(Bytes::from_static(b"value"))
}

#[test]
fn what_depends_on_one_key_alone_may_be_kept() {
    for command in [
        cmd("GET").arg("k"),
        cmd("hget").arg(("k", "f")),
        cmd("EXISTS").arg("k"),
        cmd("MGET").arg("k"),
        cmd("ZRANGE").arg(("k", 0, -1)),
        cmd("MEMORY USAGE").arg("k"),
        cmd("SINTER").arg("k"),
    ] {
        assert_eq!(key_of(&command).unwrap(), b"k", "{command:?}");
    }
    for command in [
        cmd("SET").arg(("k", 1)),
        cmd("GETEX").arg("k"),
        cmd("MGET").arg(["k", "l"]),
        cmd("PING"),
        cmd("TTL").arg("k"),
        cmd("HTTL").arg(("k", "FIELDS", 1, "f")),
        cmd("SRANDMEMBER").arg("k"),
        cmd("HSCAN").arg(("k", 0)),
        cmd("SORT_RO").arg("k"),
        cmd("EVAL_RO").arg(("return 1", 1, "k")),
        cmd("TOUCH").arg("k"),
        cmd("XREAD").arg(("STREAMS", "k", 0)),
        cmd("GET"),
        cmd("NOT.KNOWN").arg("k"),
        cmd("GET").arg("k").fire_and_forget(),
    ] {
        assert!(key_of(&command).is_err(), "{command:?}");
    }
}

#[test]
fn a_command_is_known_by_all_of_its_bytes() {
    let long = Bytes::from(vec![b'x'; 10_000]);
    let [a, b] = [cmd("GETRANGE").arg(&long).arg((1, 12)), cmd("GETRANGE").arg(&long).arg((11, 2))];
    assert!(command_bytes(&a).len() > 10_000);
    assert_ne!(command_bytes(&a), command_bytes(&b));
    assert_eq!(&command_bytes(&cmd("GET").arg("k"))[..], b"$3\r\nGET\r\n$1\r\nk\r\n");
}

#[test]
fn only_what_the_server_watches_is_kept() {
    let heard = |frames: &[Frame]| hear(Reply::Many(frames.to_vec()), true);
    // Of the millisecond that the server rounds up, nobody knows how much is left.
    let minute = Some(Some(Duration::from_millis(59_999)));
    assert_eq!(heard(&[ok(), value(), Frame::Integer(60_000)]), Heard::Value(value(), minute));
    assert_eq!(heard(&[ok(), value(), Frame::Integer(-1)]), Heard::Value(value(), Some(None)));
    assert_eq!(heard(&[ok(), Frame::Null, Frame::Integer(-2)]), Heard::Value(Frame::Null, Some(None)));
    assert_eq!(
        heard(&[ok(), value(), Frame::Integer(-2)]),
        Heard::Value(value(), None),
        "it has just expired"
    );
    let nothing = Frame::Array(vec![Frame::Null, Frame::Null]);
    assert_eq!(heard(&[ok(), nothing.clone(), Frame::Integer(-2)]), Heard::Value(nothing, Some(None)));
    let unwatched = heard(&[error("ERR not in tracking mode"), value(), Frame::Integer(-1)]);
    assert_eq!(unwatched, Heard::Value(value(), None));
    let untimed = heard(&[ok(), value(), error("NOPERM no")]);
    assert_eq!(untimed, Heard::Value(value(), None));
    let wrong = heard(&[ok(), error("WRONGTYPE no"), Frame::Integer(-1)]);
    assert_eq!(wrong, Heard::Refused(ServerError::from_bytes(b"WRONGTYPE no")));
    assert_eq!(heard(&[ok(), error("MOVED 1 a:1"), error("MOVED 1 a:1")]), Heard::Again);
    assert_eq!(heard(&[ok()]), Heard::Again);
    assert_eq!(
        hear(Reply::Many(vec![value(), Frame::Integer(1)]), false),
        Heard::Value(value(), Some(Some(Duration::ZERO)))
    );
}

#[test]
fn what_is_kept_holds_no_read_buffer() {
    let buffer = Bytes::from(vec![b'x'; 64 * 1024]);
    let frame =
        Frame::Array(vec![Frame::Bulk(buffer.slice(..3)), Frame::Map(vec![(value(), Frame::Integer(1))])]);
    let (kept, bytes) = compact(frame.clone());
    assert_eq!(kept, frame);
    assert!((100..1000).contains(&bytes), "{bytes}");
    drop(frame);
    assert!(buffer.is_unique());
}

#[test]
fn prefixes_say_what_is_watched() {
    let some = CacheOptions::new().broadcast(["user:", "job:"]);
    assert!(some.is_watched(b"user:1") && some.is_watched(b"job:") && !some.is_watched(b"use"));
    assert!(CacheOptions::new().is_watched(b"any"));
    assert!(CacheOptions::new().broadcast(Vec::<Bytes>::new()).is_watched(b"any"));
}
