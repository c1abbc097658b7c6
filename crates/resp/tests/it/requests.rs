//! Commands: any split gives the same, hostile input gives Redis's texts.

use proptest::prelude::*;
use towline_resp::frame::encode_command;
use towline_resp::request::{BIG_BULK_BYTES, RequestError, RequestLimits};

use crate::driver::Driver;

const KIB_64: usize = 64 * 1024;

/// A stream, what a server answers before it closes, and the commands that it executes until then.
struct Hostile {
    stream: Vec<u8>,
    text: Option<&'static str>,
    executed: usize,
}

fn hostile(stream: impl Into<Vec<u8>>, executed: usize, text: &'static str) -> Hostile {
    Hostile { stream: stream.into(), text: Some(text), executed }
}

fn harmless(stream: impl Into<Vec<u8>>, executed: usize) -> Hostile {
    Hostile { stream: stream.into(), text: None, executed }
}

fn check(cases: Vec<Hostile>, limits: RequestLimits) {
    for Hostile { stream, text, executed } in cases {
        let shown = String::from_utf8_lossy(&stream[..stream.len().min(60)]).into_owned();
        for split in [&[usize::MAX][..], &[1], &[3, 1, 7]] {
            let driver = Driver::run_split(&stream, split, limits);
            assert_eq!(driver.error.map(|error| error.to_string()).as_deref(), text, "{shown:?}");
            assert_eq!(driver.commands.len(), executed, "{shown:?}");
        }
    }
}

fn with_filler(head: &str, filler: char, count: usize) -> Vec<u8> {
    let mut stream = head.as_bytes().to_vec();
    stream.extend(std::iter::repeat_n(filler as u8, count));
    stream
}

#[test]
fn hostile_input_gets_redis_texts() {
    const MULTIBULK: &str = "Protocol error: invalid multibulk length";
    const BULK: &str = "Protocol error: invalid bulk length";
    const QUOTES: &str = "Protocol error: unbalanced quotes in request";
    const LINE_END: &str = "Protocol error: invalid CRLF in request";
    check(
        vec![
            hostile("*a\r\n", 0, MULTIBULK),
            hostile("*\r\n", 0, MULTIBULK),
            hostile("*+1\r\n$4\r\nPING\r\n", 0, MULTIBULK),
            hostile("*01\r\n$4\r\nPING\r\n", 0, MULTIBULK),
            hostile("*-0\r\n", 0, MULTIBULK),
            hostile("* 1\r\n", 0, MULTIBULK),
            hostile("*2147483648\r\n", 0, MULTIBULK),
            hostile("*99999999999999999999\r\n", 0, MULTIBULK),
            hostile("*1\n$4\nPING\n\r\n", 0, MULTIBULK),
            hostile("*1\r\nPING\r\n", 0, "Protocol error: expected '$', got 'P'"),
            hostile("*1\r\n\r\n", 0, "Protocol error: expected '$', got ' '"),
            hostile("*1\r\n*1\r\n", 0, "Protocol error: expected '$', got '*'"),
            hostile("*1\r\n$-1\r\n", 0, BULK),
            hostile("*1\r\n$\r\n", 0, BULK),
            hostile("*1\r\n$04\r\nPING\r\n", 0, BULK),
            hostile("*1\r\n$536870913\r\n", 0, BULK),
            hostile("*1\r\n$9223372036854775807\r\n", 0, BULK),
            hostile("*1\r\n$4x\r\nPING\r\n", 0, BULK),
            hostile("*1\r\n$4\r\nPINGxx*1\r\n", 0, LINE_END),
            hostile("*1\rX$4\rXPING\r\n", 0, LINE_END),
            hostile("PING 'a\r\n", 0, QUOTES),
            hostile("PING \"a\r\n", 0, QUOTES),
            hostile("PING 'a'b\r\n", 0, QUOTES),
            hostile("PING \"\\\r\n", 0, QUOTES),
            hostile(with_filler("", 'A', KIB_64 + 1), 0, "Protocol error: too big inline request"),
            hostile(with_filler("*", '1', KIB_64), 0, "Protocol error: too big mbulk count string"),
            hostile(with_filler("*1\r\n$", '1', KIB_64), 0, "Protocol error: too big bulk count string"),
            // What came before the error is executed, what comes after it is not.
            hostile("PING\r\n*1\r\nx\r\nPING\r\n", 1, "Protocol error: expected '$', got 'x'"),
        ],
        RequestLimits::default(),
    );
}

#[test]
fn odd_but_legal_input_is_accepted() {
    check(
        vec![
            harmless("*0\r\n*-1\r\n*-2\r\n\r\n\n   \r\nPING\r\n", 1),
            harmless("*1048577\r\n", 0),
            harmless("*1\r\n$536870912\r\n", 0),
            harmless("*1\r\n$0\r\n\r\nPING\n", 2),
            harmless("''\r\nPING \"\" '' \"a b\"\r\n", 2),
            harmless("PING\r\r\n", 1),
            harmless("PING \"\\", 0),
            harmless(with_filler("", 'A', KIB_64), 0),
            harmless("*1\n$4\nPING\n", 0),
            harmless("", 0),
        ],
        RequestLimits::default(),
    );
}

#[test]
fn strangers_are_held_to_tighter_bounds() {
    const COUNT: &str = "Protocol error: unauthenticated multibulk length";
    const LEN: &str = "Protocol error: unauthenticated bulk length";
    check(
        vec![
            hostile("*11\r\n", 0, COUNT),
            hostile("*1048577\r\n", 0, COUNT),
            hostile("*99999999999\r\n", 0, "Protocol error: invalid multibulk length"),
            hostile("*1\r\n$16385\r\n", 0, LEN),
            hostile("*1\r\n$999999999\r\n", 0, "Protocol error: invalid bulk length"),
            harmless("*10\r\n$16384\r\n", 0),
        ],
        RequestLimits::unauthenticated(),
    );
}

#[test]
fn a_byte_outside_ascii_is_sent_back_as_it_came() {
    let error = Driver::run(b"*1\r\n\xffa\r\n", RequestLimits::default()).error.unwrap();
    assert_eq!(error, RequestError::ExpectedBulk { got: 0xff });
    assert_eq!(error.to_bytes(), b"Protocol error: expected '$', got '\xff'");
}

#[test]
fn big_bulks_come_out_whole_wherever_reads_end() {
    let big = |fill: u8, extra: usize| vec![fill; BIG_BULK_BYTES + extra];
    let small = vec![b's'; BIG_BULK_BYTES - 1];
    let command = vec![b"MSET".to_vec(), big(b'a', 0), b"k".to_vec(), small, big(b'b', 1), big(b'c', 9)];
    let mut stream = Vec::new();
    encode_command(&command, &mut stream);
    let one = stream.len();
    encode_command(&[b"PING"], &mut stream);
    stream.extend_from_within(..one);
    let expected = [command.clone(), vec![b"PING".to_vec()], command];
    for lens in [
        vec![usize::MAX],
        vec![40],
        vec![16 * 1024],
        vec![1, 100_000],
        vec![BIG_BULK_BYTES + 20, 1, 2, 70_000],
    ] {
        let driver = Driver::run_split(&stream, &lens, RequestLimits::default());
        assert_eq!(driver.error, None);
        assert!(driver.commands == expected, "split {lens:?}");
    }
    // The end of the first big bulk and the head of what follows, byte by byte.
    for cut in 70..120 {
        let lens = [BIG_BULK_BYTES - 50 + cut, usize::MAX];
        assert!(
            Driver::run_split(&stream, &lens, RequestLimits::default()).commands == expected,
            "cut {cut}"
        );
    }
}

#[test]
fn a_big_bulk_must_end_with_crlf() {
    let mut stream = format!("*1\r\n${BIG_BULK_BYTES}\r\n").into_bytes();
    stream.extend(std::iter::repeat_n(b'x', BIG_BULK_BYTES));
    stream.extend_from_slice(b"\rx");
    for lens in [vec![usize::MAX], vec![1000]] {
        let driver = Driver::run_split(&stream, &lens, RequestLimits::default());
        assert_eq!(driver.error, Some(RequestError::InvalidLineEnd));
    }
}

#[test]
fn many_arguments_in_small_reads_stay_cheap() {
    let args: Vec<Vec<u8>> = (0..100_000).map(|index: u32| index.to_string().into_bytes()).collect();
    let mut stream = Vec::new();
    encode_command(&args, &mut stream);
    let driver = Driver::run_split(&stream, &[100], RequestLimits::default());
    assert!(driver.commands == [args]);
}

/// Pieces that streams are made of: whole commands, fragments of them, and bytes.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let command = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6).prop_map(|args| {
        let mut bytes = Vec::new();
        encode_command(&args, &mut bytes);
        bytes
    });
    let fragment = prop::sample::select(vec![
        "\r\n",
        "\n",
        "\r",
        "*",
        "*1\r\n",
        "*3\r\n",
        "*0\r\n",
        "*-1\r\n",
        "$3\r\n",
        "$10\r\n",
        "$0\r\n\r\n",
        "$-1\r\n",
        "abc",
        "*12",
        "PING\r\n",
        "set k \"a b\"\n",
        "echo 'x\\'y' \"\\x41\\n\"\r\n",
        "'",
        "\"",
        "\\",
        " ",
        "$",
    ])
    .prop_map(|text: &str| text.as_bytes().to_vec());
    let bytes = prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![6 => command, 3 => fragment, 1 => bytes]
}

proptest! {
    #[test]
    fn any_split_of_any_stream_gives_the_same_commands(
        pieces in prop::collection::vec(piece(), 0..20),
        lens in prop::collection::vec(1..60_usize, 1..40),
        is_unauthenticated in any::<bool>(),
    ) {
        let stream = pieces.concat();
        let limits = if is_unauthenticated { RequestLimits::unauthenticated() } else { RequestLimits::default() };
        let whole = Driver::run(&stream, limits);
        for lens in [&lens[..], &[1]] {
            let split = Driver::run_split(&stream, lens, limits);
            prop_assert_eq!(&split.commands, &whole.commands);
            prop_assert_eq!(split.error, whole.error);
        }
    }

    #[test]
    fn encoded_commands_come_back(
        commands in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20), 0..10),
        lens in prop::collection::vec(1..600_usize, 1..10),
    ) {
        let mut stream = Vec::new();
        for args in &commands {
            encode_command(args, &mut stream);
        }
        let driver = Driver::run_split(&stream, &lens, RequestLimits::default());
        prop_assert_eq!(driver.error, None);
        prop_assert_eq!(driver.commands, commands);
    }
}
