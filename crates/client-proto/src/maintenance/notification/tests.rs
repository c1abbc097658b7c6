use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use towline_resp::Proto;
use towline_resp::frame::Decoder;

fn bulk(text: &str) -> Frame {
    Frame::Bulk(Bytes::copy_from_slice(text.as_bytes()))
}

fn simple(text: &str) -> Frame {
    Frame::Simple(Bytes::copy_from_slice(text.as_bytes()))
}

fn int(value: i64) -> Frame {
    Frame::Integer(value)
}

fn list(values: &[Frame]) -> Frame {
    Frame::Array(values.to_vec())
}

fn read(values: &[Frame]) -> Notification {
    Notification::read(values).unwrap_or_else(|| panic!("not an announcement: {values:?}"))
}

/// `seq|window in s|successor`, with `-` for what is not there.
fn moving_text(values: &[Frame]) -> String {
    let Notification::Moving(moving) = read(values) else { panic!("not MOVING: {values:?}") };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    format!(
        "{}|{}|{}",
        or_none(moving.seq.map(|seq| seq.to_string())),
        or_none(moving.window.map(|window| window.as_secs().to_string())),
        or_none(moving.successor.map(|address| address.to_string())),
    )
}

fn slots_text(slots: &[SlotRange]) -> String {
    slots.iter().map(SlotRange::to_string).collect::<Vec<_>>().join(",")
}

/// `source>destination=slots` for each move, `!` at the end if something was left out.
fn moves_text(values: &[Frame]) -> String {
    let Notification::SlotsMoved(moved) = read(values) else { panic!("not SMIGRATED: {values:?}") };
    let one = |m: &SlotMove| {
        let source = m.source.as_ref().map_or_else(|| "-".into(), Address::to_string);
        format!("{source}>{}={}", m.destination, slots_text(&m.slots))
    };
    let mut text = moved.moves.iter().map(one).collect::<Vec<_>>().join(" ");
    if !moved.is_complete {
        text.push('!');
    }
    text
}

#[test]
fn the_bytes_of_the_specification_are_read() {
    let parse = |bytes: &[u8]| {
        let mut buf = bytes::BytesMut::from(bytes);
        let frame = Decoder::default().decode(&mut buf).unwrap().unwrap();
        let Frame::Push(values) = frame else { panic!("{frame:?}") };
        read(&values)
    };
    let moving = |seq, successor: Option<&str>| {
        Notification::Moving(Moving {
            seq: Some(seq),
            window: Some(Duration::from_secs(15)),
            successor: successor.and_then(|text| Address::parse(text.as_bytes())),
        })
    };
    assert_eq!(
        parse(b">4\r\n$6\r\nMOVING\r\n:17\r\n:15\r\n$17\r\n203.0.113.7:12000\r\n"),
        moving(17, Some("203.0.113.7:12000"))
    );
    assert_eq!(parse(b">4\r\n$6\r\nMOVING\r\n:18\r\n:15\r\n_\r\n"), moving(18, None));
    let starting = |event, seq, shards: &str| {
        let starts_in = Some(Duration::from_secs(2));
        Notification::Starting(Starting { event, seq: Some(seq), starts_in, shards: shards.into() })
    };
    let finished = |event, seq, shards: &str| {
        Notification::Finished(Finished { event, seq: Some(seq), shards: shards.into() })
    };
    assert_eq!(
        parse(b">4\r\n$9\r\nMIGRATING\r\n:19\r\n:2\r\n$10\r\n[\"2\", \"4\"]\r\n"),
        starting(ShardEvent::Migration, 19, "[\"2\", \"4\"]")
    );
    assert_eq!(
        parse(b">3\r\n$8\r\nMIGRATED\r\n:20\r\n$10\r\n[\"2\", \"4\"]\r\n"),
        finished(ShardEvent::Migration, 20, "[\"2\", \"4\"]")
    );
    assert_eq!(
        parse(b">4\r\n$12\r\nFAILING_OVER\r\n:21\r\n:2\r\n$5\r\n[\"2\"]\r\n"),
        starting(ShardEvent::Failover, 21, "[\"2\"]")
    );
    assert_eq!(
        parse(b">3\r\n$11\r\nFAILED_OVER\r\n:22\r\n$5\r\n[\"2\"]\r\n"),
        finished(ShardEvent::Failover, 22, "[\"2\"]")
    );
    let Notification::SlotsMoving(moving) = parse(b">3\r\n+SMIGRATING\r\n:12\r\n+123,456,5000-7000\r\n")
    else {
        panic!("SMIGRATING")
    };
    assert_eq!((moving.seq, slots_text(&moving.slots).as_str()), (Some(12), "123,456,5000-7000"));
    let bytes = b">3\r\n+SMIGRATED\r\n:13\r\n*2\r\n*3\r\n+10.0.0.1:6379\r\n+10.0.0.2:6379\r\n+123,456\r\n\
        *3\r\n+10.0.0.1:6379\r\n+10.0.0.3:6379\r\n+5000-7000\r\n";
    let mut buf = bytes::BytesMut::from(&bytes[..]);
    let Some(Frame::Push(values)) = Decoder::default().decode(&mut buf).unwrap() else { panic!("a push") };
    assert_eq!(
        moves_text(&values),
        "10.0.0.1:6379>10.0.0.2:6379=123,456 10.0.0.1:6379>10.0.0.3:6379=5000-7000"
    );
}

#[test]
fn every_form_of_moving_is_read() {
    let b = bulk;
    let huge = "99999999999999999999999";
    let table: Vec<(Vec<Frame>, &str)> = vec![
        (vec![int(17), int(15), b("h:1")], "17|15|h:1"),
        (vec![int(0), int(15), b("h:1")], "0|15|h:1"),
        (vec![simple("17"), b("15"), simple("h:1")], "17|15|h:1"),
        (vec![b("+17"), b(" 015 "), b("h:1")], "17|15|h:1"),
        (vec![Frame::BigNumber(Bytes::from_static(b"17")), Frame::Double(15.0), b("h:1")], "17|15|h:1"),
        // No successor.
        (vec![int(17), int(15), Frame::Null], "17|15|-"),
        (vec![int(17), int(15), Frame::NullArray], "17|15|-"),
        (vec![int(17), int(15)], "17|15|-"),
        (vec![int(17), int(15), b("null")], "17|15|-"),
        (vec![int(17), int(15), b("none")], "17|15|-"),
        (vec![int(17), int(15), b("?")], "17|15|-"),
        (vec![int(17), int(15), b("?:6379")], "17|15|-"),
        (vec![int(17), int(15), b("")], "17|15|-"),
        (vec![int(17), int(15), b("<nil>")], "17|15|-"),
        (vec![int(17), int(15), b("h:0")], "17|15|-"),
        (vec![int(17), int(15), b(":6379")], "17|15|-"),
        (vec![int(17), int(15), int(6379)], "17|15|-"),
        (vec![int(17), int(15), Frame::Null, b("extra:1")], "17|15|-"),
        // IPv6.
        (vec![int(17), int(15), b("[2001:db8::1]:6379")], "17|15|[2001:db8::1]:6379"),
        (vec![int(17), int(15), b("2001:db8::1:6379")], "17|15|[2001:db8::1]:6379"),
        // Less than a second is left, or nothing.
        (vec![int(17), int(0), b("h:1")], "17|0|h:1"),
        (vec![int(17), int(-3), b("h:1")], "17|0|h:1"),
        (vec![int(17), b("-99999999999999999999999"), b("h:1")], "17|0|h:1"),
        // Times that are none, and one that is long.
        (vec![int(17), Frame::Null, b("h:1")], "17|-|h:1"),
        (vec![int(17), b("soon"), b("h:1")], "17|-|h:1"),
        (vec![int(17), Frame::Double(f64::NAN), b("h:1")], "17|-|h:1"),
        (vec![int(17), b("h:1")], "17|-|h:1"),
        (vec![int(17), int(i64::MAX), b("h:1")], "17|9223372036854775807|h:1"),
        (vec![int(17), b(huge), b("h:1")], "17|18446744073709551615|h:1"),
        // A seq that is none.
        (vec![int(-1), int(15), b("h:1")], "-|15|h:1"),
        (vec![Frame::Null, int(15), b("h:1")], "-|15|h:1"),
        (vec![b("abc"), int(15), b("h:1")], "-|15|h:1"),
        (vec![b(huge), int(15), b("h:1")], "-|15|h:1"),
        (vec![b("h:1")], "-|-|h:1"),
        (vec![], "-|-|-"),
        // More than expected, and nested where it should be flat.
        (vec![int(17), int(15), b("h:1"), int(3), list(&[b("x")])], "17|15|h:1"),
        (vec![list(&[int(17), int(15), b("h:1")])], "17|15|h:1"),
        (vec![int(17), int(15), list(&[b("h:1")])], "17|15|h:1"),
        (vec![int(17), int(15), list(&[b("h"), int(1)])], "17|15|h:1"),
        (vec![int(17), int(15), list(&[b("h"), b("1")])], "17|15|h:1"),
        (vec![int(17), int(15), list(&[b("h"), int(70000)])], "17|15|-"),
        (vec![int(17), int(15), list(&[])], "17|15|-"),
    ];
    for (fields, expected) in table {
        for name in [bulk("MOVING"), simple("moving")] {
            let values: Vec<_> = std::iter::once(name).chain(fields.clone()).collect();
            assert_eq!(moving_text(&values), expected, "{values:?}");
        }
    }
    let attributed = Frame::Attributed { attributes: vec![], frame: Box::new(int(17)) };
    assert_eq!(moving_text(&[bulk("MOVING"), attributed, int(15), bulk("h:1")]), "17|15|h:1");
}

#[test]
fn announcements_about_shards_need_no_shards() {
    let text = |values: &[Frame]| match read(values) {
        Notification::Starting(Starting { event, seq, starts_in, shards }) => {
            format!("{event:?} {seq:?} {:?} {shards}", starts_in.map(|time| time.as_secs()))
        }
        Notification::Finished(Finished { event, seq, shards }) => format!("{event:?} {seq:?} {shards}"),
        other => panic!("{other:?}"),
    };
    let migrating = |rest: &[Frame]| text(&[&[bulk("MIGRATING")], rest].concat());
    assert_eq!(migrating(&[int(1), int(2), bulk("[\"2\"]")]), "Migration Some(1) Some(2) [\"2\"]");
    assert_eq!(migrating(&[int(1), int(2)]), "Migration Some(1) Some(2) ");
    assert_eq!(migrating(&[int(1), int(2), list(&[bulk("2"), int(4)])]), "Migration Some(1) Some(2) 2,4");
    assert_eq!(migrating(&[int(1), bulk("[\"2\"]")]), "Migration Some(1) None [\"2\"]");
    assert_eq!(migrating(&[int(1)]), "Migration Some(1) None ");
    assert_eq!(migrating(&[]), "Migration None None ");
    assert_eq!(migrating(&[bulk("[\"2\"]")]), "Migration None None [\"2\"]");
    assert_eq!(text(&[bulk("FAILING_OVER"), bulk("7"), bulk("2")]), "Failover Some(7) Some(2) ");
    // A time where none belongs.
    assert_eq!(text(&[bulk("MIGRATED"), int(3), int(2), bulk("[\"2\"]")]), "Migration Some(3) [\"2\"]");
    assert_eq!(text(&[bulk("FAILED_OVER"), int(3)]), "Failover Some(3) ");
    assert_eq!(text(&[bulk("FAILED_OVER"), Frame::Null]), "Failover None ");
}

#[test]
fn a_long_list_of_shards_is_cut_at_a_character() {
    for shards in ["\u{20ac}".repeat(2000), "x".repeat(5000)] {
        let Notification::Finished(finished) = read(&[bulk("MIGRATED"), int(1), bulk(&shards)]) else {
            panic!("MIGRATED")
        };
        assert!((SHARDS_BYTES_MAX - 3..=SHARDS_BYTES_MAX).contains(&finished.shards.len()));
    }
    let bytes = Frame::Bulk(Bytes::from(vec![0xff; 5000]));
    let Notification::Finished(finished) = read(&[bulk("MIGRATED"), int(1), bytes]) else {
        panic!("MIGRATED")
    };
    assert!(finished.shards.len() <= SHARDS_BYTES_MAX);
}

#[test]
fn slots_are_read_in_every_form_and_bad_ones_are_left_out() {
    let b = bulk;
    let table: Vec<(Vec<Frame>, Option<u64>, &str)> = vec![
        (vec![int(12), b("123,456,5000-7000")], Some(12), "123,456,5000-7000"),
        (vec![int(12), b("0"), b("16383"), b("5-6,7")], Some(12), "0,16383,5-6,7"),
        (vec![int(12), int(2), b("123, 456")], Some(12), "123,456"),
        (vec![int(12), list(&[b("1"), int(2), b("3-4")])], Some(12), "1,2,3-4"),
        (vec![int(12), b("16384,7-3,abc,-1,5-,5,99999999999999999999")], Some(12), "5"),
        (vec![int(12), b("")], Some(12), ""),
        (vec![int(12)], Some(12), ""),
        (vec![b("5000-7000")], None, "5000-7000"),
        (vec![Frame::Null, b("1,2")], None, "1,2"),
        (vec![], None, ""),
    ];
    for (fields, seq, expected) in table {
        let values: Vec<_> = std::iter::once(b("SMIGRATING")).chain(fields).collect();
        let Notification::SlotsMoving(moving) = read(&values) else { panic!("{values:?}") };
        assert_eq!((moving.seq, slots_text(&moving.slots).as_str()), (seq, expected), "{values:?}");
    }
}

#[test]
fn moves_are_read_nested_and_flat_and_a_bad_triplet_is_skipped_alone() {
    let b = bulk;
    let triplet = |source: &str, destination: &str, slots: &str| list(&[b(source), b(destination), b(slots)]);
    let (one, two) = (triplet("a:1", "b:1", "1,2"), triplet("a:1", "c:1", "3-4"));
    let deep = (0..4).fold(one.clone(), |inner, _| list(&[inner]));
    let both = "a:1>b:1=1,2 a:1>c:1=3-4";
    let incomplete = format!("{both}!");
    let table: Vec<(Vec<Frame>, &str)> = vec![
        (vec![int(13), list(&[one.clone(), two.clone()])], both),
        (vec![int(13), one.clone(), two.clone()], both),
        (vec![list(&[one.clone(), two.clone()])], both),
        (vec![int(13), int(2), list(&[one.clone(), two.clone()])], both),
        // Flat, in the push itself or in one array, with slots in one value or in several.
        (vec![int(13), b("a:1"), b("b:1"), b("1,2"), b("a:1"), b("c:1"), b("3-4")], both),
        (vec![int(13), list(&[b("a:1"), b("b:1"), b("1,2"), b("a:1"), b("c:1"), b("3-4")])], both),
        (vec![int(13), b("a:1"), b("b:1"), b("1"), int(2), b("a:1"), b("c:1"), b("3-4")], both),
        (vec![int(13), list(&[list(&[b("a:1"), b("b:1"), list(&[b("1"), int(2)])]), two.clone()])], both),
        // Without a source.
        (vec![int(13), b("b:1"), b("1,2")], "->b:1=1,2"),
        (vec![int(13), list(&[list(&[b("b:1"), b("1,2")])])], "->b:1=1,2"),
        // One bad triplet.
        (vec![int(13), list(&[one.clone(), triplet("a:1", "?", "9"), two.clone()])], &incomplete),
        (vec![int(13), list(&[one.clone(), triplet("a:1", "b:1", "x"), two.clone()])], &incomplete),
        (vec![int(13), list(&[one.clone(), Frame::Null, two.clone()])], &incomplete),
        (vec![int(13), list(&[one.clone(), list(&[]), list(&[b("a:1")]), two.clone()])], &incomplete),
        (
            vec![
                int(13),
                b("a:1"),
                b("b:1"),
                b("x"),
                b("a:1"),
                b("b:1"),
                b("1,2"),
                b("a:1"),
                b("c:1"),
                b("3-4"),
            ],
            &incomplete,
        ),
        (vec![int(13), list(&[triplet("?", "b:1", "1")])], "->b:1=1!"),
        (vec![int(13), b("a:1"), b("b:1"), b("c:1"), b("1")], "->c:1=1!"),
        (vec![int(13), list(&[triplet("a:1", "b:1", "1,x,2")])], "a:1>b:1=1,2!"),
        // More than expected in a triplet does no harm to it.
        (vec![int(13), list(&[list(&[b("a:1"), b("b:1"), b("1"), b("more")])])], "a:1>b:1=1!"),
        // Nothing at all.
        (vec![int(13), list(&[])], "!"),
        (vec![int(13)], "!"),
        (vec![], "!"),
        (vec![int(13), deep], "!"),
    ];
    for (fields, expected) in table {
        let values: Vec<_> = std::iter::once(b("SMIGRATED")).chain(fields).collect();
        assert_eq!(moves_text(&values), expected, "{values:?}");
    }
}

#[test]
fn moves_and_ranges_are_bounded() {
    let triplet = list(&[bulk("a:1"), bulk("b:1"), bulk("1")]);
    let many = list(&vec![triplet; SlotMove::MOVES_MAX + 5]);
    let Notification::SlotsMoved(moved) = read(&[bulk("SMIGRATED"), int(1), many]) else {
        panic!("SMIGRATED")
    };
    assert_eq!((moved.moves.len(), moved.is_complete), (SlotMove::MOVES_MAX, false));

    let slots = "1,".repeat(SlotRange::RANGES_MAX + 5);
    let Notification::SlotsMoving(moving) = read(&[bulk("SMIGRATING"), int(1), bulk(&slots), bulk("2")])
    else {
        panic!("SMIGRATING")
    };
    assert_eq!(moving.slots.len(), SlotRange::RANGES_MAX);
}

#[test]
fn other_pushes_are_not_announcements() {
    for values in [
        vec![],
        vec![bulk("message"), bulk("channel"), bulk("MOVING")],
        vec![bulk("invalidate"), list(&[bulk("key")])],
        vec![bulk("MOVING2"), int(1)],
        vec![bulk(""), int(1)],
        vec![int(1), bulk("MOVING")],
        vec![Frame::Null],
        vec![list(&[bulk("MOVING")])],
    ] {
        assert_eq!(Notification::read(&values), None, "{values:?}");
    }
}

#[test]
fn seq_kind_and_name_are_those_of_the_frame() {
    for (name, kind) in [
        ("MOVING", Kind::Moving),
        ("MIGRATING", Kind::Migration),
        ("MIGRATED", Kind::Migration),
        ("FAILING_OVER", Kind::Failover),
        ("FAILED_OVER", Kind::Failover),
        ("SMIGRATING", Kind::SlotMigration),
        ("SMIGRATED", Kind::SlotMigration),
    ] {
        let notification = read(&[bulk(name), int(5)]);
        assert_eq!((notification.name(), notification.kind(), notification.seq()), (name, kind, Some(5)));
    }
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let text = prop_oneof![
        any::<Vec<u8>>(),
        "[0-9,:.a-c?-]{0,12}".prop_map(String::into_bytes),
        prop_oneof![Just("h:1"), Just("[::1]:2"), Just("null"), Just("1-5"), Just("99999999999999999999")]
            .prop_map(|text| text.as_bytes().to_vec()),
    ]
    .prop_map(Bytes::from);
    let leaf = prop_oneof![
        text.clone().prop_map(Frame::Simple),
        text.clone().prop_map(Frame::Bulk),
        text.clone().prop_map(Frame::Error),
        text.clone().prop_map(Frame::BigNumber),
        text.prop_map(|text| Frame::Verbatim { format: *b"txt", text }),
        any::<i64>().prop_map(Frame::Integer),
        (-3i64..20_000).prop_map(Frame::Integer),
        any::<f64>().prop_map(Frame::Double),
        any::<bool>().prop_map(Frame::Boolean),
        Just(Frame::Null),
        Just(Frame::NullArray),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Frame::Array),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Frame::Set),
            prop::collection::vec((inner.clone(), inner.clone()), 0..3).prop_map(Frame::Map),
            (prop::collection::vec((inner.clone(), inner.clone()), 0..2), inner)
                .prop_map(|(attributes, frame)| Frame::Attributed { attributes, frame: Box::new(frame) }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_values_after_a_known_name_are_read_without_panic_and_within_bounds(
        name in prop::sample::select(vec![
            "MOVING", "MIGRATING", "MIGRATED", "FAILING_OVER", "FAILED_OVER", "SMIGRATING", "SMIGRATED",
        ]),
        values in prop::collection::vec(any_frame(), 0..8),
    ) {
        let push: Vec<_> = std::iter::once(bulk(name)).chain(values).collect();
        let notification = read(&push);
        prop_assert_eq!(notification.name(), name);
        match notification {
            Notification::Moving(moving) => prop_assert!(moving.successor.is_none_or(|address| address.port != 0)),
            Notification::Starting(starting) => prop_assert!(starting.shards.len() <= SHARDS_BYTES_MAX),
            Notification::Finished(finished) => prop_assert!(finished.shards.len() <= SHARDS_BYTES_MAX),
            Notification::SlotsMoving(moving) => {
                prop_assert!(moving.slots.iter().all(|range| range.first <= range.last && range.last < 16384));
            }
            Notification::SlotsMoved(moved) => {
                prop_assert!(moved.moves.iter().all(|one| !one.slots.is_empty()));
                prop_assert!(!moved.is_complete || !moved.moves.is_empty());
            }
        }
    }

    #[test]
    fn any_push_is_read_or_left_alone(values in prop::collection::vec(any_frame(), 0..6)) {
        let _ = Notification::read(&values);
    }

    #[test]
    fn simple_strings_say_the_same_as_bulk_strings(
        name in prop::sample::select(vec!["MOVING", "MIGRATING", "SMIGRATING", "SMIGRATED"]),
        texts in prop::collection::vec("[0-9,:.a-c-]{0,12}", 0..6),
    ) {
        let push = |make: fn(&str) -> Frame| -> Vec<Frame> {
            std::iter::once(name).chain(texts.iter().map(String::as_str)).map(make).collect()
        };
        prop_assert_eq!(Notification::read(&push(bulk)), Notification::read(&push(simple)));
    }

    #[test]
    fn what_a_server_writes_is_what_is_read(seq: u32, seconds in 1u32.., host in "[a-z]{1,10}", port in 1u16..) {
        let address = format!("{host}:{port}");
        let push = vec![bulk("MOVING"), int(seq.into()), int(seconds.into()), bulk(&address)];
        let mut buf = bytes::BytesMut::from(&Frame::Push(push).encode(Proto::Resp3)[..]);
        let Some(Frame::Push(values)) = Decoder::default().decode(&mut buf).unwrap() else {
            panic!("a push")
        };
        // `null`, `none` and `nil` are names that no host has.
        let expected = Address::parse(address.as_bytes());
        let read = read(&values);
        prop_assert_eq!(read, Notification::Moving(Moving {
            seq: Some(seq.into()),
            window: Some(Duration::from_secs(seconds.into())),
            successor: expected,
        }));
    }
}
