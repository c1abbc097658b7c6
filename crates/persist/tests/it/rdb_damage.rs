//! Damage at every byte: a typed error with a place, and never a load of something else.

use proptest::prelude::*;
use towline_persist::rdb_file::{
    OnObstacle, RdbEvent, RdbFileErrorKind, RdbReader, RdbReaderOptions, RdbWriter, RdbWriterOptions,
    ValueKey,
};
use towline_rdb::Limits;

use crate::fixtures::{FIXTURES, expected};
use crate::rdb_file::check;

fn own() -> Vec<u8> {
    let mut writer = RdbWriter::new(RdbWriterOptions::default());
    writer.aux("redis-ver", b"7.0.15");
    writer.database(0, Some((20, 1)));
    for ((_, key), (object, expires_at_ms)) in expected(true) {
        writer.object(ValueKey { key: &key, expires_at_ms }, &object);
    }
    writer.finish()
}

fn files() -> Vec<Vec<u8>> {
    let peers = FIXTURES.iter().flat_map(|fixture| [fixture.rdb.to_vec(), fixture.foreign.to_vec()]);
    peers.chain([own()]).collect()
}

#[test]
fn a_file_cut_anywhere_is_truncated_there() {
    for file in files() {
        for cut in 0..file.len() {
            let error = check(&file[..cut]).unwrap_err();
            assert_eq!(error.kind, RdbFileErrorKind::Truncated, "cut at {cut}");
            assert_eq!(error.offset, cut as u64);
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    for file in files() {
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = check(&damaged).expect_err("a damaged file is no file");
            assert!(error.offset <= file.len() as u64, "bit {bit}: {error}");
        }
    }
}

#[test]
fn errors_say_where() {
    let mut file = own();
    let end = file.len() as u64;
    file[end as usize - 1] ^= 1;
    let error = check(&file).unwrap_err();
    assert_eq!(error.offset, end - 8);
    assert!(error.to_string().starts_with("the checksum is wrong"), "{error}");
    for (start, kind) in [
        (&b"RESP0001\n"[..], RdbFileErrorKind::NotRdb),
        (b"VALKET080", RdbFileErrorKind::NotRdb),
        (b"REDIS00x0", RdbFileErrorKind::NotRdb),
        (b"REDIS0013", RdbFileErrorKind::Version(13)),
        (b"REDIS0080", RdbFileErrorKind::Version(80)),
        (b"VALKEY011", RdbFileErrorKind::Version(11)),
    ] {
        assert_eq!(check(start).unwrap_err().kind, kind);
    }
    let error = check(b"REDIS0010\xfe\x00\x0b\x01k\x03abc").unwrap_err();
    assert_eq!(error.offset, 11);
    assert!(error.to_string().starts_with("the value of key \"k\" in database 0 cannot be read"), "{error}");
}

/// A claim of 2^60 bytes or elements reserves nothing, and is refused or waits for bytes that do not come.
#[test]
fn claimed_sizes_reserve_nothing() {
    let huge = [&[0x81][..], &(1_u64 << 60).to_be_bytes()].concat();
    for body in [
        [&[0, 1, b'k'][..], &huge].concat(),
        [&[1, 1, b'k'][..], &huge].concat(),
        [&[5, 1, b'k'][..], &huge].concat(),
        [&[250][..], &huge].concat(),
        [&[0][..], &huge].concat(),
        [&[21, 1, b'k'][..], &huge].concat(),
        [&[245][..], &huge].concat(),
    ] {
        let file = [&b"REDIS0012\xfe\x00"[..], &body].concat();
        check(&file).expect_err("the bytes are not there");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_handled(
        start in prop_oneof![Just(&b"REDIS0012"[..]), Just(&b"VALKEY080"[..])],
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..30, 243_u8..=255], 0..300),
        chunk_bytes in 1_usize..40,
    ) {
        let file = [start, &bytes].concat();
        let options = RdbReaderOptions { on_obstacle: OnObstacle::Report, ..Default::default() };
        let mut reader = RdbReader::new(options);
        let mut chunks = file.chunks(chunk_bytes);
        loop {
            match reader.next_event() {
                Ok(RdbEvent::NeedMore) => match chunks.next() {
                    Some(chunk) => reader.feed(chunk),
                    None => reader.end(),
                },
                Ok(RdbEvent::Value(value)) => {
                    let _ = value.visit(Limits::default(), &mut crate::fixtures::Collector::default());
                }
                Ok(RdbEvent::End(_)) => break,
                Ok(_) => {}
                Err(error) => {
                    prop_assert!(error.offset <= file.len() as u64);
                    prop_assert_eq!(reader.next_event(), Err(error));
                    break;
                }
            }
        }
    }
}
