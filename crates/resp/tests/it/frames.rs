//! Frames: round trips, any split gives the same, bounds hold.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use towline_resp::Proto;
use towline_resp::frame::{DEPTH_MAX, Decoder, Frame, FrameError, FrameLimits, Scalar};

/// Decodes a stream in pieces of the given lengths (the last repeats).
fn decode(mut stream: &[u8], lens: &[usize], limits: FrameLimits) -> (Vec<Frame>, Option<FrameError>) {
    let (mut decoder, mut buf, mut frames) = (Decoder::new(limits), BytesMut::new(), Vec::new());
    let mut lens = lens.iter().copied().chain(std::iter::repeat(lens.last().copied().unwrap_or(1)));
    loop {
        let len = lens.next().unwrap_or(1).clamp(1, stream.len().max(1)).min(stream.len());
        buf.extend_from_slice(&stream[..len]);
        stream = &stream[len..];
        loop {
            match decoder.decode(&mut buf) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
        if stream.is_empty() {
            return (frames, None);
        }
    }
}

fn decode_whole(stream: &[u8]) -> (Vec<Frame>, Option<FrameError>) {
    decode(stream, &[usize::MAX], FrameLimits::default())
}

fn bulk(text: &'static str) -> Frame {
    Frame::Bulk(Bytes::from_static(text.as_bytes()))
}

#[test]
fn every_type_is_decoded() {
    let stream = b"+OK\r\n-ERR no\r\n:-7\r\n:+7\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n,1.5\r\n,inf\r\n,-inf\r\n,10\r\n\
        #t\r\n#f\r\n(-12345678901234567890\r\n=7\r\ntxt:a\r\n\r\n!5\r\nERR x\r\n*0\r\n*2\r\n:1\r\n*1\r\n+a\r\n\
        %1\r\n+k\r\n:1\r\n~1\r\n:1\r\n>2\r\n+invalidate\r\n_\r\n|1\r\n+ttl\r\n:3\r\n$1\r\nv\r\n";
    let text = |text: &'static str| Bytes::from_static(text.as_bytes());
    let (frames, error) = decode_whole(stream);
    assert_eq!(error, None);
    let expected = vec![
        Frame::Simple(text("OK")),
        Frame::Error(text("ERR no")),
        Frame::Integer(-7),
        Frame::Integer(7),
        bulk("a\r\n"),
        bulk(""),
        Frame::Null,
        Frame::NullArray,
        Frame::Null,
        Frame::Double(1.5),
        Frame::Double(f64::INFINITY),
        Frame::Double(f64::NEG_INFINITY),
        Frame::Double(10.0),
        Frame::Boolean(true),
        Frame::Boolean(false),
        Frame::BigNumber(text("-12345678901234567890")),
        Frame::Verbatim { format: *b"txt", text: text("a\r\n") },
        Frame::BlobError(text("ERR x")),
        Frame::Array(vec![]),
        Frame::Array(vec![Frame::Integer(1), Frame::Array(vec![Frame::Simple(text("a"))])]),
        Frame::Map(vec![(Frame::Simple(text("k")), Frame::Integer(1))]),
        Frame::Set(vec![Frame::Integer(1)]),
        Frame::Push(vec![Frame::Simple(text("invalidate")), Frame::Null]),
        Frame::Attributed {
            attributes: vec![(Frame::Simple(text("ttl")), Frame::Integer(3))],
            frame: Box::new(bulk("v")),
        },
    ];
    assert_eq!(frames, expected);
    assert_eq!(expected.last().unwrap().clone().without_attributes(), bulk("v"));
    assert!(matches!(decode_whole(b",nan\r\n").0[..], [Frame::Double(value)] if value.is_nan()));
}

#[test]
fn an_attribute_belongs_to_the_value_after_it_within_aggregates_too() {
    let (frames, error) = decode_whole(b"*2\r\n|1\r\n:1\r\n:2\r\n:3\r\n:4\r\n|0\r\n+x\r\n");
    assert_eq!(error, None);
    let attributed = Frame::Attributed {
        attributes: vec![(Frame::Integer(1), Frame::Integer(2))],
        frame: Box::new(Frame::Integer(3)),
    };
    let empty =
        Frame::Attributed { attributes: vec![], frame: Box::new(Frame::Simple(Bytes::from_static(b"x"))) };
    assert_eq!(frames, [Frame::Array(vec![attributed, Frame::Integer(4)]), empty]);
}

#[test]
fn hostile_frames_are_refused_by_name() {
    let limits = FrameLimits { bulk_bytes_max: 1000, line_bytes_max: 100, elements_max: 50, depth_max: 4 };
    let long_line = format!("+{}", "x".repeat(101));
    let cases: Vec<(&str, FrameError)> = vec![
        ("x\r\n", FrameError::UnknownType { byte: b'x' }),
        ("\r\n", FrameError::UnknownType { byte: b'\r' }),
        ("$?\r\n", FrameError::Streamed),
        ("*?\r\n", FrameError::Streamed),
        ("%?\r\n", FrameError::Streamed),
        (";4\r\n", FrameError::UnknownType { byte: b';' }),
        ("$-2\r\n", FrameError::InvalidLength),
        ("$01\r\n", FrameError::InvalidLength),
        ("*-2\r\n", FrameError::InvalidLength),
        ("%-1\r\n", FrameError::InvalidLength),
        ("=-1\r\n", FrameError::InvalidLength),
        ("$99999999999999999999\r\n", FrameError::InvalidLength),
        ("$1001\r\n", FrameError::BulkTooLong { max: 1000 }),
        ("*51\r\n", FrameError::TooManyElements { max: 50 }),
        ("%26\r\n", FrameError::TooManyElements { max: 50 }),
        ("*26\r\n*25\r\n", FrameError::TooManyElements { max: 50 }),
        ("*9223372036854775807\r\n", FrameError::TooManyElements { max: 50 }),
        ("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", FrameError::TooDeep { max: 4 }),
        ("|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n", FrameError::TooDeep { max: 4 }),
        ("*1\r\n>1\r\n", FrameError::NestedPush),
        (":1x\r\n", FrameError::Malformed(Scalar::Integer)),
        (":+-1\r\n", FrameError::Malformed(Scalar::Integer)),
        (",1.x\r\n", FrameError::Malformed(Scalar::Double)),
        (",infinity\r\n", FrameError::Malformed(Scalar::Double)),
        ("(\r\n", FrameError::Malformed(Scalar::BigNumber)),
        ("(1.5\r\n", FrameError::Malformed(Scalar::BigNumber)),
        ("#x\r\n", FrameError::Malformed(Scalar::Boolean)),
        ("_x\r\n", FrameError::Malformed(Scalar::Null)),
        ("=3\r\ntxt\r\n", FrameError::VerbatimFormat),
        ("$1\r\nabc", FrameError::InvalidLineEnd),
        ("+a\rb\r\n", FrameError::InvalidLineEnd),
        (&long_line, FrameError::LineTooLong { max: 100 }),
    ];
    for (stream, expected) in cases {
        for lens in [&[usize::MAX][..], &[1], &[2, 3]] {
            let (frames, error) = decode(stream.as_bytes(), lens, limits);
            assert_eq!(error.as_ref(), Some(&expected), "{stream:?}");
            assert_eq!(frames, []);
        }
    }
}

#[test]
fn default_depth_is_reached_and_not_passed() {
    let nested = |depth: usize| [b"*1\r\n".repeat(depth), b":1\r\n".to_vec()].concat();
    assert_eq!(decode_whole(&nested(DEPTH_MAX)).0.len(), 1);
    assert_eq!(decode_whole(&nested(DEPTH_MAX + 1)).1, Some(FrameError::TooDeep { max: DEPTH_MAX }));
}

#[test]
fn a_large_aggregate_in_small_reads_is_decoded_once() {
    let frame = Frame::Array((0..100_000).map(Frame::Integer).collect());
    let (frames, error) = decode(&frame.encode(Proto::Resp2), &[50], FrameLimits::default());
    assert_eq!(error, None);
    assert!(frames == [frame]);
}

#[test]
fn resp2_drops_what_it_has_no_form_for() {
    let attributed =
        Frame::Attributed { attributes: vec![(bulk("a"), bulk("b"))], frame: Box::new(Frame::Boolean(true)) };
    assert_eq!(attributed.encode(Proto::Resp2), b":1\r\n");
    let map = Frame::Map(vec![(bulk("a"), Frame::Double(0.5))]);
    assert_eq!(map.encode(Proto::Resp2), b"*2\r\n$1\r\na\r\n$3\r\n0.5\r\n");
    assert_eq!(map.encode(Proto::Resp3), b"%1\r\n$1\r\na\r\n,0.5\r\n");
}

/// Text that fits a line.
fn line() -> impl Strategy<Value = Bytes> {
    "[ -~\u{e4}]{0,20}".prop_map(Bytes::from)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..50).prop_map(Bytes::from)
}

/// Any frame that RESP3 can carry. `null_array` is RESP2's alone, pushes stay outermost.
fn frame() -> impl Strategy<Value = Frame> {
    let leaf = prop_oneof![
        line().prop_map(Frame::Simple),
        line().prop_map(Frame::Error),
        any::<i64>().prop_map(Frame::Integer),
        bytes().prop_map(Frame::Bulk),
        Just(Frame::Null),
        any::<f64>()
            .prop_filter("NaN is not equal to itself", |value| !value.is_nan())
            .prop_map(Frame::Double),
        any::<bool>().prop_map(Frame::Boolean),
        "[+-]?[0-9]{1,30}".prop_map(|digits| Frame::BigNumber(Bytes::from(digits))),
        bytes().prop_map(|text| Frame::Verbatim { format: *b"txt", text }),
        bytes().prop_map(Frame::BlobError),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let frames = prop::collection::vec(inner.clone(), 0..6);
        let pairs = prop::collection::vec((inner.clone(), inner.clone()), 0..4);
        prop_oneof![
            frames.clone().prop_map(Frame::Array),
            frames.prop_map(Frame::Set),
            pairs.clone().prop_map(Frame::Map),
            (pairs, inner)
                .prop_map(|(attributes, frame)| Frame::Attributed { attributes, frame: Box::new(frame) }),
        ]
    })
}

proptest! {
    #[test]
    fn frames_come_back_from_any_split(
        frames in prop::collection::vec(frame(), 0..6),
        push in prop::collection::vec(frame(), 0..3),
        lens in prop::collection::vec(1..100_usize, 1..20),
    ) {
        let mut frames = frames;
        frames.push(Frame::Push(push));
        let stream: Vec<u8> = frames.iter().flat_map(|frame| frame.encode(Proto::Resp3)).collect();
        for lens in [&[usize::MAX][..], &lens, &[1]] {
            let (decoded, error) = decode(&stream, lens, FrameLimits::default());
            prop_assert_eq!(error, None);
            prop_assert_eq!(&decoded, &frames);
        }
    }

    #[test]
    fn any_split_of_any_stream_gives_the_same_frames(
        frames in prop::collection::vec(frame(), 0..6),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        lens in prop::collection::vec(1..60_usize, 1..20),
    ) {
        let mut stream: Vec<u8> = frames.iter().flat_map(|frame| frame.encode(Proto::Resp3)).collect();
        for (at, byte) in noise {
            if !stream.is_empty() {
                let at = at.index(stream.len());
                stream[at] = byte;
            }
        }
        let whole = decode_whole(&stream);
        for lens in [&lens[..], &[1]] {
            // Compared by their texts, for which NaN equals NaN.
            prop_assert_eq!(format!("{:?}", decode(&stream, lens, FrameLimits::default())), format!("{whole:?}"));
        }
    }

    #[test]
    fn resp2_frames_decode_to_what_they_stand_for(frame in frame()) {
        let (decoded, error) = decode_whole(&frame.encode(Proto::Resp2));
        prop_assert_eq!(error, None);
        prop_assert_eq!(decoded.len(), 1);
    }
}
