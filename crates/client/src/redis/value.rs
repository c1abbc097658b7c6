//! Replies as redis-rs represents them.
//!
//! Owns the way from a [`Frame`] to a [`Value`]. Does **not** own the way on to the caller's types, which is redis-rs's
//! `FromRedisValue`.

use ::redis::{PushKind, ServerError, Value, VerbatimFormat, make_extension_error, parse_redis_value};
use towline_resp::frame::Frame;

/// The same reply. What redis-rs keeps as text and is no UTF-8 is made so, with replacement characters.
///
/// As deep as the decoder nests.
pub(super) fn value(frame: Frame) -> Value {
    match frame {
        Frame::Simple(text) if &text[..] == b"OK" => Value::Okay,
        Frame::Simple(text) => Value::SimpleString(lossy(&text)),
        Frame::Error(text) | Frame::BlobError(text) => Value::ServerError(server_error(&text)),
        Frame::Integer(number) => Value::Int(number),
        // Takes the memory over where nobody else holds it.
        Frame::Bulk(text) => Value::BulkString(text.into()),
        Frame::Null | Frame::NullArray => Value::Nil,
        Frame::Array(frames) => Value::Array(values(frames)),
        Frame::Double(number) => Value::Double(number),
        Frame::Boolean(is_true) => Value::Boolean(is_true),
        Frame::BigNumber(digits) => big_number(&digits),
        Frame::Verbatim { format, text } => {
            let format = match &format {
                b"txt" => VerbatimFormat::Text,
                b"mkd" => VerbatimFormat::Markdown,
                other => VerbatimFormat::Unknown(lossy(other)),
            };
            Value::VerbatimString { format, text: lossy(&text) }
        }
        Frame::Map(pairs) => Value::Map(self::pairs(pairs)),
        Frame::Set(frames) => Value::Set(values(frames)),
        Frame::Push(frames) => push(frames),
        Frame::Attributed { attributes, frame } => {
            Value::Attribute { data: Box::new(value(*frame)), attributes: pairs(attributes) }
        }
    }
}

pub(super) fn values(frames: Vec<Frame>) -> Vec<Value> {
    frames.into_iter().map(value).collect()
}

fn pairs(pairs: Vec<(Frame, Frame)>) -> Vec<(Value, Value)> {
    pairs.into_iter().map(|(key, item)| (value(key), value(item))).collect()
}

/// The server's error by its text, `CODE message`. The kinds of known codes can only be had from redis-rs's parser.
pub(super) fn server_error(text: &[u8]) -> ServerError {
    let text = lossy(text);
    let encoded = format!("!{}\r\n{text}\r\n", text.len());
    if let Ok(Value::ServerError(error)) = parse_redis_value(encoded.as_bytes()) {
        return error;
    }
    let (code, detail) = match text.split_once(' ') {
        Some((code, detail)) => (code, Some(detail.to_owned())),
        None => (&text[..], None),
    };
    ServerError::try_from(make_extension_error(code.to_owned(), detail))
        .expect("invariant: redis-rs makes extension errors as server errors")
}

/// Its type depends on a feature of redis-rs that anybody in the build may switch on, so redis-rs makes it.
fn big_number(digits: &[u8]) -> Value {
    let encoded = [b"(", digits, b"\r\n"].concat();
    parse_redis_value(&encoded).unwrap_or_else(|_| Value::BulkString(digits.to_vec()))
}

fn push(frames: Vec<Frame>) -> Value {
    let mut frames = frames.into_iter();
    let kind = match frames.next() {
        Some(Frame::Bulk(kind) | Frame::Simple(kind)) => push_kind(&kind),
        _ => PushKind::Other(String::new()),
    };
    Value::Push { kind, data: frames.map(value).collect() }
}

fn push_kind(kind: &[u8]) -> PushKind {
    match kind {
        b"invalidate" => PushKind::Invalidate,
        b"message" => PushKind::Message,
        b"pmessage" => PushKind::PMessage,
        b"smessage" => PushKind::SMessage,
        b"subscribe" => PushKind::Subscribe,
        b"psubscribe" => PushKind::PSubscribe,
        b"ssubscribe" => PushKind::SSubscribe,
        b"unsubscribe" => PushKind::Unsubscribe,
        b"punsubscribe" => PushKind::PUnsubscribe,
        b"sunsubscribe" => PushKind::SUnsubscribe,
        other => PushKind::Other(lossy(other)),
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::redis::{ErrorKind, RedisError, ServerErrorKind};
    use proptest::prelude::*;
    use towline_resp::frame::{Decoder, FrameLimits};

    /// What both make of the same bytes.
    fn both(bytes: &[u8]) -> (Value, Value) {
        let mut decoder = Decoder::new(FrameLimits::default());
        let frame = decoder.decode(&mut bytes.into()).unwrap().unwrap();
        (value(frame), parse_redis_value(bytes).unwrap())
    }

    #[test]
    fn every_kind_of_reply_is_what_redis_rs_makes_of_it() {
        for bytes in [
            "+OK\r\n",
            "+PONG\r\n",
            "-ERR no\r\n",
            "-WRONGTYPE Operation against a key\r\n",
            "-NOSCRIPT No matching script\r\n",
            "-BARE\r\n",
            "!21\r\nSYNTAX invalid syntax\r\n",
            ":-7\r\n",
            "$3\r\nabc\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "_\r\n",
            "*2\r\n:1\r\n*1\r\n+OK\r\n",
            ",1.5\r\n",
            ",inf\r\n",
            "#t\r\n",
            "(3492890328409238509324850943850943825024385\r\n",
            "=7\r\ntxt:abc\r\n",
            "=7\r\nmkd:abc\r\n",
            "=7\r\nfoo:abc\r\n",
            "%1\r\n+a\r\n:1\r\n",
            "~2\r\n:1\r\n:2\r\n",
            ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
            ">1\r\n$5\r\nother\r\n",
            "|1\r\n+ttl\r\n:3\r\n:9\r\n",
        ] {
            let (ours, theirs) = both(bytes.as_bytes());
            assert_eq!(ours, theirs, "{bytes:?}");
        }
    }

    #[test]
    fn codes_of_errors_have_the_kinds_that_callers_test_for() {
        let kind = |text: &str| RedisError::from(server_error(text.as_bytes())).kind();
        assert_eq!(kind("ERR x"), ErrorKind::Server(ServerErrorKind::ResponseError));
        assert_eq!(kind("LOADING x"), ErrorKind::Server(ServerErrorKind::BusyLoading));
        assert_eq!(kind("READONLY x"), ErrorKind::Server(ServerErrorKind::ReadOnly));
        assert_eq!(kind("WRONGTYPE x"), ErrorKind::Extension);
        let moved = RedisError::from(server_error(b"MOVED 12 host:7000"));
        assert_eq!(moved.redirect_node(), Some(("host:7000", 12)));
    }

    proptest! {
        #[test]
        fn any_text_of_an_error_is_taken(text in proptest::collection::vec(any::<u8>(), 0..64)) {
            let error = server_error(&text);
            let lossy = lossy(&text);
            prop_assert_eq!(error.code(), lossy.split(' ').next().unwrap());
            prop_assert_eq!(error.details(), lossy.split_once(' ').map(|(_, detail)| detail));
        }

        #[test]
        fn any_digits_of_a_big_number_are_taken(digits in "[-+]?[0-9]{1,80}") {
            let (ours, theirs) = both(format!("({digits}\r\n").as_bytes());
            prop_assert_eq!(ours, theirs);
        }
    }
}
