//! Files that are as they should be.

use towline_persist::rdb_file::{
    CheckReport, Checksum, Obstacle, OnObstacle, PIECE_BYTES, RdbChecker, RdbFileError, RdbFileErrorKind,
    RdbReader, RdbReaderOptions, RdbWriter, RdbWriterOptions, ValueKey,
};
use towline_rdb::{BodyWriter, Compression, HashTtlForm, Limits, Object, RdbType};

use crate::fixtures::{Collector, EXPIRES_MS, FIXTURES, Keys, expected, load};

pub(crate) fn check(file: &[u8]) -> Result<CheckReport, RdbFileError> {
    let mut checker = RdbChecker::new(Limits::default(), false);
    checker.feed(file)?;
    checker.finish()
}

fn write(keys: &Keys, options: RdbWriterOptions) -> Vec<u8> {
    let mut writer = RdbWriter::new(options);
    writer.aux("redis-ver", b"7.0.15");
    writer.aux("ctime", b"1796033116");
    let (mut file, mut database) = (Vec::new(), None);
    for ((number, key), (object, expires_at_ms)) in keys {
        if database != Some(*number) {
            database = Some(*number);
            writer.database(*number, Some((keys.len() as u64, 1)));
        }
        writer.object(ValueKey { key, expires_at_ms: *expires_at_ms }, object);
        if writer.is_chunk_ready() {
            file.extend(writer.take_chunk());
        }
    }
    let bytes = writer.file_bytes();
    let last = writer.finish();
    file.extend(last);
    assert_eq!(file.len() as u64, bytes + 9);
    file
}

#[test]
fn files_of_every_server_load_however_they_arrive() {
    for fixture in &FIXTURES {
        let expected = expected(fixture.name != "redis-7.0");
        for chunk_bytes in [1, 2, 7, 64, usize::MAX] {
            let (keys, _) = load(fixture.rdb, chunk_bytes, RdbReaderOptions::default()).unwrap();
            assert!(keys == expected, "{} in chunks of {chunk_bytes}", fixture.name);
        }
        let report = check(fixture.rdb).unwrap();
        assert_eq!((report.keys, report.expiring), (expected.len() as u64, 1));
        assert_eq!((report.database_max, report.checksum), (3, Checksum::Right));
        assert_eq!((report.bytes, report.obstacle_count), (fixture.rdb.len() as u64, 0));
    }
}

#[test]
fn written_files_hold_what_was_written() {
    let keys = expected(true);
    for form in [HashTtlForm::Redis, HashTtlForm::Valkey] {
        for compression in [Compression::Off, Compression::Lzf] {
            for has_checksum in [true, false] {
                let options = RdbWriterOptions { form, compression, has_checksum, chunk_bytes: 100 };
                let file = write(&keys, options);
                for chunk_bytes in [1, 50, usize::MAX] {
                    let (read, _) = load(&file, chunk_bytes, RdbReaderOptions::default()).unwrap();
                    assert!(read == keys);
                }
                let checksum = if has_checksum { Checksum::Right } else { Checksum::Absent };
                assert_eq!(check(&file).unwrap().checksum, checksum);
            }
        }
    }
    assert_eq!(check(&write(&Keys::new(), RdbWriterOptions::default())).unwrap().keys, 0);
}

#[test]
fn files_without_field_expiry_announce_what_redis_7_loads() {
    let file = write(&expected(false), RdbWriterOptions::default());
    assert!(file.starts_with(b"REDIS0010"));
}

/// Large collections of each plain form leave in pieces, and none of them is larger than a piece and an element.
#[test]
fn large_collections_come_in_pieces() {
    let element = |index: u32| format!("{index:-<40}").into_bytes();
    let hash = |expiring: bool| {
        let field = |index: u32| towline_rdb::HashField {
            name: element(index),
            value: b"v".to_vec(),
            expires_at_ms: (expiring && index.is_multiple_of(3)).then_some(EXPIRES_MS + u64::from(index)),
        };
        Object::Hash((0..20_000).map(field).collect())
    };
    let objects = [
        Object::List((0..20_000).map(element).collect()),
        Object::Set((0..20_000).map(element).collect()),
        Object::Zset((0..20_000).map(|index| (element(index), f64::from(index))).collect()),
        hash(false),
        hash(true),
    ];
    for form in [HashTtlForm::Redis, HashTtlForm::Valkey] {
        for object in &objects {
            let keys = Keys::from([((1, b"large".to_vec()), (object.clone(), Some(5)))]);
            let file = write(&keys, RdbWriterOptions { form, ..RdbWriterOptions::default() });
            let (mut read, parts) = load(&file, 10_000, RdbReaderOptions::default()).unwrap();
            assert!(parts >= file.len() / (PIECE_BYTES + 1000) && parts > 2, "{parts}");
            let (object, at) = read.pop_first().unwrap().1;
            let expected = Collector(Some(keys[&(1, b"large".to_vec())].0.clone())).finish();
            assert!(object == expected && at == Some(5));
            assert_eq!(check(&file).unwrap().keys, 1);
        }
    }
}

#[test]
fn what_towline_does_not_have_is_named_before_anything_is_loaded() {
    for fixture in &FIXTURES {
        let error = load(fixture.foreign, 11, RdbReaderOptions::default()).unwrap_err();
        assert!(matches!(error.kind, RdbFileErrorKind::Obstacle(_)), "{error}");

        let report = check(fixture.foreign).unwrap();
        assert_eq!((report.keys, report.obstacle_count), (2, 2), "{}", fixture.name);
        let [function, stream] = &report.obstacles[..] else { panic!("{:?}", report.obstacles) };
        assert!(matches!(function, Obstacle::Function { .. }));
        assert_eq!(fixture.foreign[function.offset() as usize], 245);
        let Obstacle::Value { offset, database: 0, key, rdb_type } = stream else { panic!("{stream:?}") };
        assert_eq!((key.as_slice(), fixture.foreign[*offset as usize]), (&b"stream"[..], rdb_type.byte()));
        assert!(stream.to_string().starts_with("key \"stream\" in database 0: RDB type"));

        let options = RdbReaderOptions { on_obstacle: OnObstacle::Report, ..Default::default() };
        for chunk_bytes in [1, 5, usize::MAX] {
            let (keys, _) = load(fixture.foreign, chunk_bytes, options).unwrap();
            let names: Vec<&[u8]> = keys.keys().map(|(_, key)| key.as_slice()).collect();
            assert_eq!(names, [&b"before"[..], b"zzz"], "{}", fixture.name);
        }
    }
}

/// A module's value and auxiliary field, an import of slots, slot hints, LRU and LFU, times in seconds: each as the
/// servers write it.
#[test]
fn rare_parts_are_read_or_passed_over() {
    let mut file = b"VALKEY080".to_vec();
    let module_id: u64 = (0..9).fold(0, |id, _| id << 6 | 2) << 10 | 1;
    let id = [&[0x81][..], &module_id.to_be_bytes()].concat();
    let data = [&[2, 7, 4][..], &[0; 8], &[3, 0, 0, 0, 0, 5, 3], b"abc", &[1, 9, 0]].concat();
    file.extend([&[247][..], &id, &[2, 1], &data].concat());
    file.extend([&[243, 4][..], b"name", &[2, 0, 5, 8, 9]].concat());
    file.extend([254, 0, 244, 1, 2, 0]);
    file.extend([&[7, 1, b'm'][..], &id, &data].concat());
    file.extend([&[253, 100, 0, 0, 0, 249, 3, 0, 1][..], b"k", &[1], b"v"].concat());
    file.extend([&[248, 30, 0, 1][..], b"l", &[0xc0, 9]].concat());
    file.push(255);
    file.extend([0; 8]);
    let report = check(&file).unwrap();
    assert_eq!((report.keys, report.expiring, report.obstacle_count), (2, 1, 3));
    assert_eq!(report.obstacles[0].to_string(), "the data of module type CCCCCCCCC");
    assert!(matches!(report.obstacles[1], Obstacle::SlotImport { .. }));
    assert!(matches!(report.obstacles[2], Obstacle::Value { rdb_type: RdbType::Module2, .. }));
    let options = RdbReaderOptions { on_obstacle: OnObstacle::Report, ..Default::default() };
    let (keys, _) = load(&file, 1, options).unwrap();
    assert_eq!(keys[&(0, b"k".to_vec())], (Object::String(b"v".to_vec()), Some(100_000)));
    assert_eq!(keys[&(0, b"l".to_vec())], (Object::String(b"9".to_vec()), None));
}

#[test]
fn a_preamble_ends_where_the_commands_begin() {
    let mut file = write(&expected(false), RdbWriterOptions::default());
    let end = file.len();
    file.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
    let options = RdbReaderOptions { is_preamble: true, ..Default::default() };
    let mut reader = RdbReader::new(options);
    reader.feed(&file);
    while !matches!(reader.next_event().unwrap(), towline_persist::rdb_file::RdbEvent::End(_)) {}
    assert_eq!(reader.into_rest(), (end as u64, b"*1\r\n$4\r\nPING\r\n".to_vec()));
    let mut checker = RdbChecker::new(Limits::default(), true);
    assert_eq!(checker.feed(&file), Ok(true));
    assert_eq!(checker.finish().unwrap().bytes, end as u64);
    let error = check(&file).unwrap_err();
    assert_eq!((error.offset, error.kind), (end as u64, RdbFileErrorKind::TrailingBytes));
}

#[test]
fn encoded_values_pass_through() {
    let mut writer = RdbWriter::new(RdbWriterOptions::default());
    writer.database(0, None);
    writer.encoded(ValueKey { key: b"k", expires_at_ms: None }, RdbType::List, &[1, 1, b'a']);
    writer.begin(ValueKey { key: b"h", expires_at_ms: None }, BodyWriter::hash(0));
    writer.end_value();
    let file = writer.finish();
    let report = check(&file).unwrap();
    assert_eq!((report.keys, report.empty_keys), (1, 1));
}
