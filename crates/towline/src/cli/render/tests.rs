use bytes::Bytes;

use super::*;

fn bulk(text: &'static [u8]) -> Frame {
    Frame::Bulk(Bytes::from_static(text))
}

fn simple(text: &'static str) -> Frame {
    Frame::Simple(Bytes::from_static(text.as_bytes()))
}

fn error(text: &'static str) -> Frame {
    Frame::Error(Bytes::from_static(text.as_bytes()))
}

fn text(frame: &Frame, style: Style) -> String {
    let mut out = Vec::new();
    render(frame, style, &Delimiters::default(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// `Frame`, then the text in each style.
type Row = (Frame, [&'static str; 5]);

fn check(rows: Vec<Row>) {
    const STYLES: [Style; 5] = [Style::Standard, Style::Raw, Style::Csv, Style::Json, Style::QuotedJson];
    for (frame, expected) in rows {
        for (style, expected) in STYLES.into_iter().zip(expected) {
            assert_eq!(text(&frame, style), expected, "{style:?} of {frame:?}");
        }
    }
}

#[test]
fn scalars() {
    let verbatim = Frame::Verbatim { format: *b"txt", text: Bytes::from_static(b"two\nlines") };
    let quoted_json = r#""x\\x01\\\"\\\\\\xc3\\xa9\\n""#.to_owned() + "\n";
    check(vec![
        (simple("OK"), ["OK\n", "OK\n", "\"OK\"\n", "\"OK\"\n", "\"OK\"\n"]),
        (
            error("ERR \"x\""),
            [
                "(error) ERR \"x\"\n",
                "ERR \"x\"\n\n",
                "ERROR,\"ERR \\\"x\\\"\"\n",
                "error:\"ERR \\\"x\\\"\"\n",
                "error:\"ERR \\\"x\\\"\"\n",
            ],
        ),
        (Frame::Integer(-7), ["(integer) -7\n", "-7\n", "-7\n", "-7\n", "-7\n"]),
        (Frame::Null, ["(nil)\n", "\n", "NULL\n", "null\n", "null\n"]),
        (Frame::NullArray, ["(nil)\n", "\n", "NULL\n", "null\n", "null\n"]),
        (Frame::Double(1.5), ["(double) 1.5\n", "1.5\n", "1.5\n", "1.5\n", "1.5\n"]),
        (Frame::Double(f64::INFINITY), ["(double) inf\n", "inf\n", "inf\n", "\"inf\"\n", "\"inf\"\n"]),
        (Frame::Boolean(true), ["(true)\n", "(true)\n", "true\n", "true\n", "true\n"]),
        (
            Frame::BigNumber(Bytes::from_static(b"+123456789012345678901")),
            [
                "(big number) +123456789012345678901\n",
                "+123456789012345678901\n",
                "+123456789012345678901\n",
                "123456789012345678901\n",
                "123456789012345678901\n",
            ],
        ),
        (
            verbatim,
            ["two\nlines\n", "two\nlines\n", "\"two\\nlines\"\n", "\"two\\nlines\"\n", "\"two\\\\nlines\"\n"],
        ),
        (
            bulk("x\x01\"\\\u{e9}\n".as_bytes()),
            [
                "\"x\\x01\\\"\\\\\\xc3\\xa9\\n\"\n",
                "x\x01\"\\\u{e9}\n\n",
                "\"x\\x01\\\"\\\\\\xc3\\xa9\\n\"\n",
                "\"x\\u0001\\\"\\\\\u{e9}\\n\"\n",
                quoted_json.leak(),
            ],
        ),
        (
            bulk(b"\x07\x08\t\r\x7f"),
            [
                "\"\\a\\b\\t\\r\\x7f\"\n",
                "\x07\x08\t\r\x7f\n",
                "\"\\a\\b\\t\\r\\x7f\"\n",
                "\"\\u0007\\b\\t\\r\x7f\"\n",
                "\"\\\\a\\\\b\\\\t\\\\r\\\\x7f\"\n",
            ],
        ),
    ]);
}

#[test]
fn empty_aggregates() {
    check(vec![
        (Frame::Array(vec![]), ["(empty array)\n", "\n", "\n", "[]\n", "[]\n"]),
        (Frame::Set(vec![]), ["(empty set)\n", "\n", "\n", "[]\n", "[]\n"]),
        (Frame::Push(vec![]), ["(empty push)\n", "\n", "\n", "[]\n", "[]\n"]),
        (Frame::Map(vec![]), ["(empty hash)\n", "\n", "\n", "{}\n", "{}\n"]),
    ]);
}

#[test]
fn aggregates() {
    let entry = || Frame::Array(vec![bulk(b"1-1"), Frame::Array(vec![bulk(b"f"), bulk(b"v")])]);
    check(vec![
        (
            Frame::Array(vec![entry(), Frame::Array(vec![]), Frame::Null]),
            [
                "1) 1) \"1-1\"\n   2) 1) \"f\"\n      2) \"v\"\n2) (empty array)\n3) (nil)\n",
                "1-1\nf\nv\n\n\n",
                "\"1-1\",\"f\",\"v\",,NULL\n",
                "[[\"1-1\",[\"f\",\"v\"]],[],null]\n",
                "[[\"1-1\",[\"f\",\"v\"]],[],null]\n",
            ],
        ),
        (
            Frame::Map(vec![(bulk(b"s"), Frame::Array(vec![entry()])), (bulk(b"t"), Frame::Array(vec![]))]),
            [
                "1# \"s\" => \n   1) 1) \"1-1\"\n      2) 1) \"f\"\n         2) \"v\"\n2# \"t\" => (empty array)\n",
                "s 1-1\nf\nv\nt \n",
                "\"s\",\"1-1\",\"f\",\"v\",\"t\",\n",
                "{\"s\":[[\"1-1\",[\"f\",\"v\"]]],\"t\":[]}\n",
                "{\"s\":[[\"1-1\",[\"f\",\"v\"]]],\"t\":[]}\n",
            ],
        ),
        (
            Frame::Map(vec![
                (Frame::Integer(0), Frame::Boolean(false)),
                (Frame::Array(vec![bulk(b"a")]), Frame::Boolean(true)),
            ]),
            [
                "1# (integer) 0 => (false)\n2# 1) \"a\" => (true)\n",
                "0 (false)\na (true)\n",
                "0,false,\"a\",true\n",
                "{\"0\":false,\"[\\\"a\\\"]\":true}\n",
                "{\"0\":false,\"[\\\"a\\\"]\":true}\n",
            ],
        ),
        (
            Frame::Set(vec![simple("OK"), error("WRONGTYPE x"), bulk(b"")]),
            [
                "1~ OK\n2~ (error) WRONGTYPE x\n3~ \"\"\n",
                "OK\nWRONGTYPE x\n\n\n",
                "\"OK\",ERROR,\"WRONGTYPE x\",\"\"\n",
                "[\"OK\",error:\"WRONGTYPE x\",\"\"]\n",
                "[\"OK\",error:\"WRONGTYPE x\",\"\"]\n",
            ],
        ),
        (
            Frame::Attributed {
                attributes: vec![(bulk(b"ttl"), Frame::Integer(9))],
                frame: Box::new(bulk(b"v")),
            },
            ["1| \"ttl\" => (integer) 9\n\"v\"\n", "v\n", "\"v\"\n", "\"v\"\n", "\"v\"\n"],
        ),
    ]);
}

#[test]
fn a_map_of_one_pair_stays_on_its_keys_line() {
    let pair = || (bulk(b"k"), Frame::Integer(1));
    let nested = |pairs| text(&Frame::Map(vec![(bulk(b"a"), Frame::Map(pairs))]), Style::Standard);
    assert_eq!(nested(vec![pair()]), "1# \"a\" => 1# \"k\" => (integer) 1\n");
    assert_eq!(
        nested(vec![pair(), pair()]),
        "1# \"a\" => \n   1# \"k\" => (integer) 1\n   2# \"k\" => (integer) 1\n"
    );
}

#[test]
fn numbers_of_members_are_aligned() {
    let lines =
        text(&Frame::Array(vec![Frame::Array(vec![Frame::Integer(1), Frame::Null]); 10]), Style::Standard);
    assert!(lines.starts_with(" 1) 1) (integer) 1\n    2) (nil)\n 2) 1) "), "{lines}");
    assert!(lines.ends_with("10) 1) (integer) 1\n    2) (nil)\n"), "{lines}");
}

#[test]
fn delimiters_apply_to_raw_replies() {
    let delimiters = Delimiters { element: b", ".to_vec(), reply: b"|".to_vec() };
    let frame = Frame::Array(vec![Frame::Integer(1), Frame::Array(vec![bulk(b"a"), bulk(b"b")])]);
    let mut out = Vec::new();
    render(&frame, Style::Raw, &delimiters, &mut out);
    assert_eq!(out, b"1, a, b|");
}
