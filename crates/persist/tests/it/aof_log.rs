//! Increments and bases: whole, torn, damaged.

use proptest::prelude::*;
use towline_persist::aof::{
    LogEnd, LogError, LogErrorKind, LogEvent, LogLimits, LogReader, LogWriter, PartError, PartEvent,
    PartReader, TornReason,
};
use towline_persist::rdb_file::{OnObstacle, RdbEvent};
use towline_rdb::Limits;

use crate::fixtures::FIXTURES;

type Commands = Vec<Vec<Vec<u8>>>;

fn read_with(
    log: &[u8],
    chunk_bytes: usize,
    limits: LogLimits,
) -> Result<(Commands, LogEnd), (Commands, LogError)> {
    let mut reader = LogReader::new(limits);
    let mut chunks = log.chunks(chunk_bytes);
    let mut commands = Commands::new();
    loop {
        match reader.next_event() {
            Ok(LogEvent::NeedMore) => match chunks.next() {
                Some(chunk) => reader.feed(chunk),
                None => reader.end(),
            },
            Ok(LogEvent::Timestamp(unix_s)) => assert!(unix_s > 0),
            Ok(LogEvent::Command(command)) => {
                assert_eq!(log[command.offset as usize], b'*');
                assert_eq!(command.args.iter().len(), command.args.len());
                commands.push(command.args.iter().map(<[u8]>::to_vec).collect());
            }
            Ok(LogEvent::End(end)) => return Ok((commands, end)),
            Err(error) => {
                assert_eq!(reader.next_event().expect_err("it failed"), error, "an error stays");
                return Err((commands, error));
            }
        }
    }
}

fn read(log: &[u8], chunk_bytes: usize) -> Result<(Commands, LogEnd), (Commands, LogError)> {
    read_with(log, chunk_bytes, LogLimits::default())
}

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Annotations, database switches, a transaction, an empty argument.
fn sample() -> Vec<u8> {
    let (mut writer, mut out) = (LogWriter::new(), Vec::new());
    writer.timestamp(&mut out, 1_796_033_117);
    writer.command(&mut out, 0, [&b"SET"[..], b"k", b""]);
    writer.command(&mut out, 0, [&b"RPUSH"[..], b"l", b"a\r\n*1\r\n", b"b"]);
    writer.timestamp(&mut out, 1_796_033_117);
    writer.timestamp(&mut out, 1_796_033_118);
    out.extend_from_slice(b"#other annotation\r\n");
    writer.multi(&mut out, 3);
    writer.command(&mut out, 3, [&b"INCR"[..], b"n"]);
    writer.command(&mut out, 4, [&b"INCR"[..], b"n"]);
    writer.exec(&mut out);
    writer.command(&mut out, 4, [&b"DEL"[..], b"k"]);
    out
}

#[test]
fn what_was_written_is_read_however_it_arrives() {
    let log = sample();
    let (whole, end) = read(&log, usize::MAX).unwrap();
    assert_eq!(end, LogEnd::Whole);
    let names: Vec<String> =
        whole.iter().map(|command| String::from_utf8_lossy(&command.join(&b' ')).into_owned()).collect();
    assert_eq!(
        names,
        [
            "SELECT 0",
            "SET k ",
            "RPUSH l a\r\n*1\r\n b",
            "SELECT 3",
            "MULTI",
            "INCR n",
            "SELECT 4",
            "INCR n",
            "EXEC",
            "DEL k",
        ]
    );
    for chunk_bytes in 1..log.len() {
        assert_eq!(read(&log, chunk_bytes), Ok((whole.clone(), LogEnd::Whole)), "{chunk_bytes}");
    }
}

#[test]
fn increments_of_every_server_are_read() {
    for fixture in &FIXTURES {
        let (commands, end) = read(fixture.increment, 10).unwrap();
        assert_eq!(end, LogEnd::Whole);
        let expected: Vec<_> =
            ["SELECT 0", "SET after rewrite", "MULTI", "SELECT 3", "SET x 1", "INCR x", "EXEC"]
                .map(words)
                .into();
        let mut commands = commands;
        // Redis opens the transaction before or after it selects the database, by version.
        commands.sort();
        let mut sorted = expected;
        sorted.sort();
        assert_eq!(commands, sorted, "{}", fixture.name);
    }
}

/// Whatever is cut off, the rest is read up to the last whole unit, and the cut leaves a whole log.
#[test]
fn a_log_cut_anywhere_is_torn_there() {
    let log = sample();
    let whole = read(&log, usize::MAX).unwrap().0;
    for cut in 0..log.len() {
        for chunk_bytes in [1, 9, usize::MAX] {
            let (commands, end) = read(&log[..cut], chunk_bytes).unwrap();
            assert!(whole.starts_with(&commands), "cut at {cut}");
            let opens = commands.iter().filter(|command| command[0] == b"MULTI").count();
            assert_eq!(opens, commands.iter().filter(|command| command[0] == b"EXEC").count());
            match end {
                LogEnd::Whole => {}
                LogEnd::Torn { cut_at, lost_bytes, reason } => {
                    assert_eq!(cut_at + lost_bytes, cut as u64);
                    assert_ne!(reason, TornReason::Zeros);
                    let repaired = read(&log[..cut_at as usize], chunk_bytes).unwrap();
                    assert_eq!(repaired, (commands, LogEnd::Whole), "cut at {cut}");
                }
            }
        }
    }
    let open = log.windows(5).position(|bytes| bytes == b"MULTI").unwrap();
    let (_, end) = read(&log[..open + 30], usize::MAX).unwrap();
    let LogEnd::Torn { cut_at, reason: TornReason::Transaction, .. } = end else { panic!("{end:?}") };
    assert_eq!(cut_at as usize, open - "*1\r\n$5\r\n".len());
}

/// A file that grew before its bytes were written ends with zeros.
#[test]
fn zeros_up_to_the_end_are_a_torn_tail_and_elsewhere_damage() {
    let log = sample();
    for cut in 0..log.len() {
        let mut zeros = log[..cut].to_vec();
        zeros.resize(cut + 5000, 0);
        for chunk_bytes in [7, usize::MAX] {
            let (commands, end) = match read(&zeros, chunk_bytes) {
                Ok(read) => read,
                Err((_, error)) => panic!("zeros from {cut}: {error}"),
            };
            let LogEnd::Torn { cut_at, lost_bytes, .. } = end else { panic!("{end:?}") };
            assert_eq!(cut_at + lost_bytes, zeros.len() as u64);
            assert_eq!(read(&log[..cut_at as usize], chunk_bytes).unwrap(), (commands, LogEnd::Whole));
        }
        zeros.push(b'*');
        for chunk_bytes in [7, usize::MAX] {
            let (_, error) = read(&zeros, chunk_bytes).expect_err("something follows the zeros");
            assert!(error.sound_bytes <= error.offset && error.offset < zeros.len() as u64);
        }
    }
}

/// Damage in the frame is found and named; damage inside an argument cannot be, and stays inside it.
#[test]
fn a_changed_byte_is_an_error_or_stays_in_its_argument() {
    let log = sample();
    let (whole, _) = read(&log, usize::MAX).unwrap();
    for at in 0..log.len() {
        for flip in [1, 0x20, 0x80] {
            let mut damaged = log.clone();
            damaged[at] ^= flip;
            match read(&damaged, usize::MAX) {
                Err((commands, error)) => {
                    assert!(error.offset <= log.len() as u64 && error.sound_bytes <= error.offset);
                    let changed = whole.iter().zip(&commands).filter(|(a, b)| a != b).count();
                    assert!(changed <= 1, "byte {at}");
                }
                Ok((commands, end)) => {
                    assert!(commands.len() <= whole.len() || end != LogEnd::Whole, "byte {at}");
                }
            }
        }
    }
}

#[test]
fn damage_is_named_with_its_place_and_what_to_do() {
    let damaged = |expected, found| LogErrorKind::Damaged { expected, found };
    for (log, offset, sound_bytes, kind) in [
        (&b"*1\r\n$4\r\nPING\r\nPING\r\n"[..], 14, 14, damaged("the start of a command", b'P')),
        (b"*1\r\n:4\r\nPING\r\n", 4, 0, damaged("the length of an argument", b':')),
        (b"*1\r\n$4\r\nPINGS\r\n", 12, 0, damaged("a line end", b'S')),
        (b"*1\r\n$-1\r\n", 5, 0, damaged("a number", b'-')),
        (b"*\r\n", 1, 0, damaged("a number", b'\r')),
        (b"*0\r\n", 0, 0, damaged("a command with a name", b'0')),
        (b"*1\n$4\r\nPING\r\n", 2, 0, damaged("a number", b'\n')),
        (b"#TS:now\r\n", 4, 0, damaged("a time in seconds", b'n')),
        (b"*1\r\n$4\r\nEXEC\r\n", 0, 0, LogErrorKind::Transaction("EXEC without MULTI")),
        (
            b"*1\r\n$5\r\nMULTI\r\n*1\r\n$5\r\nmulti\r\n",
            15,
            0,
            LogErrorKind::Transaction("MULTI inside MULTI"),
        ),
    ] {
        for chunk_bytes in [1, usize::MAX] {
            let (_, error) = read(log, chunk_bytes).expect_err("it is damaged");
            assert_eq!(error, LogError { offset, sound_bytes, kind: kind.clone() }, "{}", log.escape_ascii());
        }
    }
    let (_, error) = read(b"*1\r\n$4\r\nPING\r\nPING\r\n", 3).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the log is damaged: expected the start of a command, found 0x50, at byte 14; what lies before byte 14 is sound: \
         bring the file back from a copy, or cut it to that length (redis-check-aof --fix) and lose what follows"
    );
}

#[test]
fn claims_beyond_the_limits_are_refused_before_their_bytes() {
    let limits = LogLimits { arg_bytes_max: 10, args_max: 5, unit_bytes_max: 60 };
    for (log, size) in [(&b"*6\r\n"[..], 6), (b"*1\r\n$11\r\n", 11)] {
        let (_, error) = read_with(log, 1, limits).unwrap_err();
        assert!(matches!(error.kind, LogErrorKind::TooLarge { size: found, .. } if found == size), "{error}");
    }
    let open = [&b"*1\r\n$5\r\nMULTI\r\n"[..], &b"*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n".repeat(3)].concat();
    let (commands, error) = read_with(&open, 4, limits).unwrap_err();
    assert!(matches!(error.kind, LogErrorKind::TooLarge { what: "a unit", .. }), "{error}");
    assert!(commands.is_empty());
    let (_, end) = read(b"*2147483647\r\n$536870912\r\nabc", 1).unwrap();
    assert_eq!(end, LogEnd::Torn { cut_at: 0, lost_bytes: 28, reason: TornReason::Command });
}

fn read_part(file: &[u8], chunk_bytes: usize) -> Result<(usize, Commands, LogEnd), PartError> {
    let mut reader = PartReader::new(OnObstacle::Refuse, Limits::default(), LogLimits::default());
    let (mut values, mut commands) = (0, Commands::new());
    let mut chunks = file.chunks(chunk_bytes);
    loop {
        match reader.next_event()? {
            PartEvent::NeedMore => match chunks.next() {
                Some(chunk) => reader.feed(chunk),
                None => reader.end(),
            },
            PartEvent::Rdb(RdbEvent::Value(_)) => values += 1,
            PartEvent::Rdb(_) | PartEvent::Timestamp(_) => {}
            PartEvent::Command(command) => commands.push(command.args.iter().map(<[u8]>::to_vec).collect()),
            PartEvent::End(end) => return Ok((values, commands, end)),
        }
    }
}

#[test]
fn each_form_of_a_file_is_recognised() {
    let log = sample();
    let commands = read(&log, usize::MAX).unwrap().0;
    for fixture in &FIXTURES {
        let both = [fixture.rdb, &log].concat();
        for chunk_bytes in [1, 3, usize::MAX] {
            let (values, none, end) = read_part(fixture.rdb, chunk_bytes).unwrap();
            assert!(values >= 15 && none.is_empty() && end == LogEnd::Whole);
            let read = read_part(&both, chunk_bytes).unwrap();
            assert_eq!(read, (values, commands.clone(), LogEnd::Whole));
            assert_eq!(read_part(&log, chunk_bytes).unwrap(), (0, commands.clone(), LogEnd::Whole));
            let torn = read_part(&both[..both.len() - 1], chunk_bytes).unwrap();
            assert!(matches!(torn.2, LogEnd::Torn { .. }));
        }
        for cut in 6..fixture.rdb.len() {
            assert!(matches!(read_part(&fixture.rdb[..cut], 100), Err(PartError::Rdb(_))), "a base is whole");
        }
    }
    assert_eq!(read_part(b"", 1).unwrap(), (0, vec![], LogEnd::Whole));
    let (_, _, end) = read_part(b"*", 1).unwrap();
    assert_eq!(end, LogEnd::Torn { cut_at: 0, lost_bytes: 1, reason: TornReason::Command });
    assert!(matches!(read_part(b"RED", 1), Err(PartError::Log(_))));
}

proptest! {
    #[test]
    fn any_commands_survive(
        commands in prop::collection::vec(
            (0_u32..3, prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 1..6)),
            0..12,
        ),
        chunk_bytes in 1_usize..50,
    ) {
        let (mut writer, mut out) = (LogWriter::new(), Vec::new());
        for (database, args) in &commands {
            let mut args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            args.insert(0, b"SADD");
            writer.command(&mut out, *database, args);
        }
        let (read, end) = read(&out, chunk_bytes).unwrap();
        prop_assert_eq!(end, LogEnd::Whole);
        let read: Vec<_> = read.into_iter().filter(|command| command[0] != b"SELECT").collect();
        prop_assert_eq!(read.len(), commands.len());
        for (read, (_, args)) in read.iter().zip(&commands) {
            prop_assert_eq!(&read[1..], &args[..]);
        }
    }

    #[test]
    fn any_bytes_are_handled(
        bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"*$#\r\n01234\0MULTIEXEC".to_vec())],
            0..200,
        ),
        chunk_bytes in 1_usize..20,
    ) {
        if let Ok((_, _, LogEnd::Torn { cut_at, lost_bytes, .. })) = read_part(&bytes, chunk_bytes) {
            prop_assert_eq!(cut_at + lost_bytes, bytes.len() as u64);
        }
    }
}
