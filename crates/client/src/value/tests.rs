use super::*;
use crate::args::{Args, ToArgs};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;

fn bulk(text: &str) -> Frame {
    Frame::Bulk(Bytes::copy_from_slice(text.as_bytes()))
}

fn bulks(texts: &[&str]) -> Frame {
    Frame::Array(texts.iter().map(|text| bulk(text)).collect())
}

fn simple(text: &'static str) -> Frame {
    Frame::Simple(Bytes::from_static(text.as_bytes()))
}

fn error(text: &'static str) -> Frame {
    Frame::Error(Bytes::from_static(text.as_bytes()))
}

fn attributed(frame: Frame) -> Frame {
    Frame::Attributed { attributes: vec![(bulk("ttl"), Frame::Integer(1))], frame: Box::new(frame) }
}

#[track_caller]
fn is<T: FromReply + PartialEq + Debug>(frame: Frame, expected: T) {
    assert_eq!(T::from_reply(frame.clone()).unwrap(), expected, "{frame:?}");
    assert_eq!(T::from_reply(attributed(frame)).unwrap(), expected, "with attributes");
}

#[track_caller]
fn fails<T: FromReply + Debug>(frame: Frame) -> String {
    T::from_reply(frame).unwrap_err().to_string()
}

#[test]
fn integers_come_in_every_form_and_are_checked() {
    is(Frame::Integer(7), 7_i64);
    is(bulk("7"), 7_u8);
    is(simple("-7"), -7_i8);
    is(Frame::Double(7.0), 7_u32);
    is(Frame::Boolean(true), 1_usize);
    is(Frame::BigNumber(Bytes::from_static(b"170141183460469231731687303715884105727")), i128::MAX);
    is(bulk("18446744073709551615"), u64::MAX);
    assert!(fails::<u8>(Frame::Integer(256)).contains("does not fit, expected an integer from 0 to 255"));
    assert!(fails::<u64>(Frame::Integer(-1)).contains("does not fit"));
    assert!(fails::<i64>(Frame::Double(1e300)).contains("does not fit"));
    assert!(fails::<i64>(Frame::Double(0.5)).contains("fraction"));
    assert!(fails::<i64>(Frame::Double(f64::NAN)).contains("fraction"));
    assert_eq!(fails::<i64>(bulk("abc")), "the reply is a text of 3 bytes that is not an integer");
    assert!(fails::<i64>(Frame::Null).contains("Option"));
}

#[test]
fn floats_booleans_and_strings_come_in_both_protocols() {
    is(Frame::Double(1.5), 1.5);
    is(bulk("1.5"), 1.5_f32);
    is(bulk("-inf"), f64::NEG_INFINITY);
    is(Frame::Integer(3), 3.0);
    assert!(f64::from_reply(bulk("nan")).unwrap().is_nan());
    assert!(fails::<f64>(bulk("1.5x")).contains("not a number"));

    for frame in [Frame::Boolean(true), Frame::Integer(1), simple("OK"), bulk("1")] {
        is(frame, true);
    }
    for frame in [Frame::Boolean(false), Frame::Integer(0), Frame::Null, bulk("0")] {
        is(frame, false);
    }
    assert!(fails::<bool>(Frame::Integer(2)).contains("0, 1 or OK"));

    let verbatim = Frame::Verbatim { format: *b"txt", text: Bytes::from_static(b"text") };
    for frame in [bulk("text"), simple("text"), verbatim] {
        is(frame.clone(), "text".to_owned());
        is(frame.clone(), b"text".to_vec());
        is(frame, Bytes::from_static(b"text"));
    }
    is(Frame::Integer(5), "5".to_owned());
    is(Frame::Double(0.1), "0.1".to_owned());
    is(Frame::Boolean(true), "1".to_owned());
    let not_utf8 = Frame::Bulk(Bytes::from_static(b"\xff"));
    assert!(fails::<String>(not_utf8.clone()).contains("UTF-8"));
    is(not_utf8, vec![0xff_u8]);
    is(Frame::Array(vec![Frame::Integer(1), Frame::Integer(2)]), vec![1_u8, 2]);
    // A missing key is not an empty value.
    for text in
        [fails::<String>(Frame::Null), fails::<Vec<u8>>(Frame::Null), fails::<Bytes>(Frame::NullArray)]
    {
        assert!(text.contains("Option"), "{text}");
    }
}

#[test]
fn bytes_are_the_ones_that_were_read() {
    let text = Bytes::from(vec![b'x'; 100]);
    let taken = Bytes::from_reply(Frame::Bulk(text.clone())).unwrap();
    assert_eq!(taken.as_ptr(), text.as_ptr());
    let taken = Option::<Bytes>::from_reply(Frame::Bulk(text.clone())).unwrap().unwrap();
    assert_eq!(taken.as_ptr(), text.as_ptr());
}

#[test]
fn null_is_none_and_no_elements() {
    is(Frame::Null, None::<String>);
    is(Frame::NullArray, None::<Vec<String>>);
    is(bulk("a"), Some("a".to_owned()));
    is(Frame::Null, Vec::<String>::new());
    is(Frame::NullArray, HashMap::<String, String>::new());
    assert!(fails::<(String, String)>(Frame::NullArray).contains("Option"));
    assert!(fails::<[i64; 0]>(Frame::Null).contains("Option"));
}

#[test]
fn pairs_come_nested_flat_and_as_maps() {
    let expected = vec![("a".to_owned(), 1_i64), ("b".to_owned(), 2)];
    let pairs = || vec![(bulk("a"), Frame::Integer(1)), (bulk("b"), Frame::Integer(2))];
    let nested = pairs().into_iter().map(|(key, value)| Frame::Array(vec![key, value])).collect();
    for frame in [bulks(&["a", "1", "b", "2"]), Frame::Array(nested), Frame::Map(pairs())] {
        is(frame.clone(), expected.clone());
        is(frame.clone(), expected.iter().cloned().collect::<HashMap<_, _>>());
        is(frame, expected.iter().cloned().collect::<BTreeMap<_, _>>());
    }
    is(Frame::Map(pairs()), ["a", "1", "b", "2"].map(str::to_owned));
    is(
        bulks(&["a", "1", "x", "b", "2", "y"]),
        vec![("a".to_owned(), 1, "x".to_owned()), ("b".to_owned(), 2, "y".to_owned())],
    );
    assert_eq!(
        fails::<HashMap<String, String>>(bulks(&["a", "1", "b"])),
        "the reply has 3 elements, expected a multiple of 2"
    );
    // Two lists as the values of a map are not two pairs.
    let lists = Frame::Map(vec![(bulk("a"), bulks(&["1", "2"])), (bulk("b"), bulks(&["3", "4"]))]);
    is(lists, BTreeMap::from([("a".to_owned(), vec![1, 2]), ("b".to_owned(), vec![3, 4])]));
}

#[test]
fn nested_replies_of_real_commands_are_read() {
    // SCAN
    is(
        Frame::Array(vec![bulk("17"), bulks(&["k1", "k2"])]),
        (17_u64, vec!["k1".to_owned(), "k2".to_owned()]),
    );
    // XRANGE
    let entry = Frame::Array(vec![bulk("1-0"), bulks(&["f", "v"])]);
    is(
        Frame::Array(vec![entry.clone()]),
        vec![("1-0".to_owned(), HashMap::from([("f".to_owned(), "v".to_owned())]))],
    );
    // XREAD in RESP2 and in RESP3
    let expected =
        BTreeMap::from([("s".to_owned(), vec![("1-0".to_owned(), vec![("f".to_owned(), "v".to_owned())])])]);
    let entries = Frame::Array(vec![entry]);
    is(Frame::Array(vec![Frame::Array(vec![bulk("s"), entries.clone()])]), Some(expected.clone()));
    is(Frame::Map(vec![(bulk("s"), entries)]), Some(expected));
    // ZRANGE WITHSCORES in RESP3
    let scored = Frame::Array(vec![Frame::Array(vec![bulk("m"), Frame::Double(1.5)])]);
    is(scored, vec![("m".to_owned(), 1.5)]);
    // SMISMEMBER, SMEMBERS, GEOPOS
    is(Frame::Array(vec![Frame::Integer(1), Frame::Integer(0)]), vec![true, false]);
    is(Frame::Set(vec![bulk("a"), bulk("b")]), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    is(bulks(&["a"]), HashSet::from(["a".to_owned()]));
    is(bulks(&["1", "2"]), VecDeque::from([1, 2]));
    is(Frame::Array(vec![bulks(&["1.5", "2"]), Frame::NullArray]), vec![Some((1.5, 2.0)), None]);
    is(Frame::Push(vec![bulk("message"), bulk("c")]), ("message".to_owned(), "c".to_owned()));
    is(bulks(&["1", "2", "3"]), [1, 2, 3]);
    assert!(fails::<[i64; 2]>(bulks(&["1"])).contains("has 1 elements"));
    assert!(fails::<(i64, i64)>(bulks(&["1"])).contains("has 1 elements, expected an array of 2"));
    is(bulk("a"), Box::new("a".to_owned()));
}

#[test]
fn errors_are_the_servers_unless_the_type_has_a_place_for_them() {
    let refused = || error("WRONGTYPE Operation against a key");
    let server = ReplyError::Server(ServerError::new("WRONGTYPE Operation against a key"));
    let mixed = || Frame::Array(vec![Frame::Integer(1), refused()]);
    assert_eq!(i64::from_reply(refused()), Err(server.clone()));
    assert_eq!(Option::<String>::from_reply(attributed(refused())), Err(server.clone()));
    assert_eq!(Vec::<i64>::from_reply(mixed()), Err(server.clone()));
    assert_eq!(<()>::from_reply(refused()), Err(server.clone()));
    assert_eq!(<()>::from_reply(Frame::Array(vec![attributed(mixed())])), Err(server.clone()));
    assert_eq!(<()>::from_reply(Frame::Map(vec![(bulk("a"), refused())])), Err(server.clone()));
    is(simple("OK"), ());
    let results = Vec::<Result<i64, ServerError>>::from_reply(mixed()).unwrap();
    assert_eq!(results[0], Ok(1));
    assert_eq!(results[1].as_ref().unwrap_err().code(), "WRONGTYPE");
    assert_eq!(Frame::from_reply(refused()), Ok(refused()));
    assert_eq!(server.server_error().unwrap().code(), "WRONGTYPE");
    assert!(std::error::Error::source(&server).is_some());
}

#[test]
fn errors_name_the_place() {
    let frame = Frame::Array(vec![bulk("0"), bulks(&["1", "x"])]);
    let error = <(i64, Vec<i64>)>::from_reply(frame).unwrap_err();
    assert_eq!(error.to_string(), "the reply[1][1] is a text of 1 bytes that is not an integer");
    let ReplyError::Shape { found, path, .. } = error else { panic!("a server's error") };
    assert_eq!((found, path), (Found::Text(1), vec![1, 1]));
}

/// A value's arguments, as a server that stores strings would answer them.
fn answered(value: &impl ToArgs) -> Vec<Frame> {
    let mut args = Args::default();
    value.write_args(&mut args);
    args.iter().map(|arg| Frame::Bulk(Bytes::copy_from_slice(arg))).collect()
}

#[track_caller]
fn comes_back<T: ToArgs + FromReply + PartialEq + Debug>(value: T) {
    let frame = answered(&value).remove(0);
    assert_eq!(T::from_reply(frame).unwrap(), value);
}

/// Any frame, a few levels deep.
fn frames() -> impl Strategy<Value = Frame> {
    let text = || prop::collection::vec(any::<u8>(), 0..8).prop_map(Bytes::from);
    let leaf = prop_oneof![
        text().prop_map(Frame::Bulk),
        text().prop_map(Frame::Error),
        "[0-9.-]{0,6}".prop_map(|digits| Frame::Simple(digits.into_bytes().into())),
        any::<i64>().prop_map(Frame::Integer),
        any::<f64>().prop_map(Frame::Double),
        any::<bool>().prop_map(Frame::Boolean),
        Just(Frame::Null),
        Just(Frame::NullArray),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let several = || prop::collection::vec(inner.clone(), 0..5);
        let pairs = prop::collection::vec((inner.clone(), inner.clone()), 0..3);
        prop_oneof![
            several().prop_map(Frame::Array),
            several().prop_map(Frame::Set),
            pairs.prop_map(Frame::Map),
            inner.clone().prop_map(attributed),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_stored_comes_back(
        int in any::<i64>(), wide in any::<i128>(), small in any::<u8>(),
        float in any::<f64>().prop_filter("equal to itself", |float| !float.is_nan()),
        text in any::<String>(), raw in any::<Vec<u8>>(), flag in any::<bool>(),
    ) {
        comes_back(int);
        comes_back(wide);
        comes_back(small);
        comes_back(float);
        comes_back(text);
        comes_back(Bytes::from(raw.clone()));
        comes_back(raw);
        comes_back(flag);
    }

    #[test]
    fn collections_come_back_in_both_protocols(
        map in any::<BTreeMap<String, i64>>(), set in any::<BTreeSet<Vec<u8>>>(), rows in any::<Vec<(u16, String, bool)>>(),
    ) {
        let flat = answered(&map);
        let pairs = flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        prop_assert_eq!(&BTreeMap::from_reply(Frame::Array(flat)).unwrap(), &map);
        prop_assert_eq!(&BTreeMap::from_reply(Frame::Map(pairs)).unwrap(), &map);
        prop_assert_eq!(&BTreeSet::from_reply(Frame::Array(answered(&set))).unwrap(), &set);
        prop_assert_eq!(&BTreeSet::from_reply(Frame::Set(answered(&set))).unwrap(), &set);
        prop_assert_eq!(&Vec::<(u16, String, bool)>::from_reply(Frame::Array(answered(&rows))).unwrap(), &rows);
    }

    #[test]
    fn any_reply_is_a_value_or_an_error(frame in frames()) {
        let _ = i64::from_reply(frame.clone());
        let _ = u8::from_reply(frame.clone());
        let _ = f64::from_reply(frame.clone());
        let _ = bool::from_reply(frame.clone());
        let _ = String::from_reply(frame.clone());
        let _ = Vec::<u8>::from_reply(frame.clone());
        let _ = Vec::<Vec<Option<String>>>::from_reply(frame.clone());
        let _ = Vec::<(i64, f64, Bytes)>::from_reply(frame.clone());
        let _ = <[(String, String); 2]>::from_reply(frame.clone());
        let _ = HashMap::<String, HashMap<String, String>>::from_reply(frame.clone());
        let results = Vec::<Result<Frame, ServerError>>::from_reply(frame.clone());
        prop_assert!(results.is_ok() || !matches!(frame, Frame::Array(_) | Frame::Set(_) | Frame::Map(_)));
        prop_assert_eq!(<()>::from_reply(frame.clone()).is_ok(), first_error(&frame).is_none());
    }
}
