//! The same data in all forms of a file, read back by the formats' own readers.

use super::*;
use crate::persistence::disk::Disk;
use crate::persistence::faulty_disk::FaultyDisk;
use crate::testing::Server;
use std::collections::BTreeMap;
use towline_persist::aof::{LogEvent, LogLimits, LogReader};
use towline_persist::rdb_file::{RdbEvent, RdbReader, RdbReaderOptions};
use towline_store::stream;

fn words(count: usize, of: impl Fn(usize) -> String) -> String {
    (0..count).map(|index| format!(" {}", of(index))).collect()
}

/// A server with values of every type, small and large, compressible or not.
fn filled() -> Server {
    let mut server = Server::new();
    let lines = [
        "SET string hello".to_owned(),
        "SET number -12345".into(),
        format!("SET long {}", "towline".repeat(30_000)),
        "SET expiring v PXAT 4102444800000".into(),
        "SET expired v PX 1".into(),
        format!("RPUSH list 1 -300 70000 9000000000 {}", "x".repeat(300)),
        format!("RPUSH long-list{}", words(3_000, |i| format!("element-{i}"))),
        "SADD ints 1 2 300".into(),
        format!("SADD large-set{}", words(2_000, |i| format!("member-{i}-{}", "y".repeat(40)))),
        "ZADD scores 1 a 2.5 b -inf c +inf d 0.1 e -0 f".into(),
        format!("ZADD large-scores{}", words(1_000, |i| format!("{i}.25 m{i}"))),
        "HSET fields f v n 7".into(),
        format!("HSET large-fields{}", words(1_500, |i| format!("field-{i} {}", "z".repeat(30)))),
        "PEXPIREAT large-fields 4102444800000".into(),
        "HSET field-ttl f v g w".into(),
        "HPEXPIREAT field-ttl 4102444800000 FIELDS 1 f".into(),
        format!("HSET large-field-ttl{}", words(1_000, |i| format!("f{i} v{i}"))),
        "HPEXPIREAT large-field-ttl 4102444800000 FIELDS 2 f2 f4".into(),
        "SELECT 3".into(),
        "SET other database".into(),
        "SELECT 0".into(),
    ];
    for line in lines {
        let reply = server.line(&line);
        assert!(!reply.starts_with('-'), "{reply}");
    }
    server.advance(10);
    server
}

fn write(server: &Server, options: &Options) -> Vec<u8> {
    let disk = FaultyDisk::default();
    let mut file = disk.create("file".as_ref()).unwrap();
    let store = &server.local.shared.store;
    let config = stream::Config { follows: false, ..stream::Config::default() };
    let stream = SlotStream::open(store, 0..16384, server.now_ms, &config);
    let progress = Progress::default();
    let written = write_snapshot(store, stream, &mut *file, options, &progress).unwrap();
    let bytes = disk.content("file").unwrap();
    assert_eq!(written, Written { keys: 15, bytes: bytes.len() as u64 });
    bytes
}

fn options(form: BaseForm, compression: Compression) -> Options {
    Options { form, compression, has_checksum: true, is_base: true, unix_s: 1, used_bytes: 2 }
}

/// Database and key to the value's digest and expiry, as the server tells them.
type Contents = BTreeMap<(u32, Vec<u8>), (String, String)>;

fn contents(server: &mut Server) -> Contents {
    let mut contents = Contents::new();
    for db in [0, 3] {
        server.line(&format!("SELECT {db}"));
        let keys = server.line("KEYS *");
        for key in keys.split(' ').skip(1).filter(|word| !word.starts_with('$')) {
            let digest = server.line(&format!("DEBUG DIGEST-VALUE {key}"));
            let expiry = server.line(&format!("PEXPIRETIME {key}"));
            let fields = server.line(&format!("HPEXPIRETIME {key} FIELDS 3 f f2 f3"));
            contents.insert((db, key.into()), (digest, expiry + &fields));
        }
    }
    server.line("SELECT 0");
    contents
}

/// Applies an RDB file by `RESTORE`.
fn restored(file: &[u8]) -> Server {
    let mut server = Server::new();
    server.advance(10);
    let mut reader = RdbReader::new(RdbReaderOptions::default());
    reader.feed(file);
    reader.end();
    let mut auxes = BTreeMap::new();
    loop {
        match reader.next_event().unwrap() {
            RdbEvent::End(_) => break,
            RdbEvent::Aux { name, value } => _ = auxes.insert(name.to_vec(), value.to_vec()),
            RdbEvent::Value(value) => {
                let mut payload = vec![value.rdb_type.byte()];
                payload.extend_from_slice(value.body);
                payload.extend(VERSION_REDIS_MAX.to_le_bytes());
                payload.extend(towline_rdb::crc64::checksum(&payload).to_le_bytes());
                let at = value.expires_at_ms.unwrap_or(0).to_string();
                server.line(&format!("SELECT {}", value.database));
                let reply = server.run_bytes(&[b"RESTORE", value.key, at.as_bytes(), &payload, b"ABSTTL"]);
                assert_eq!(reply, b"+OK\r\n", "{}", String::from_utf8_lossy(value.key));
            }
            _ => {}
        }
    }
    assert_eq!(auxes[&b"aof-base"[..]], b"1");
    assert_eq!(auxes[&b"redis-ver"[..]], REDIS_VERSION.as_bytes());
    server
}

#[test]
fn rdb_files_hold_the_data_compressed_or_not() {
    let mut server = filled();
    let expected = contents(&mut server);
    assert_eq!(expected.len(), 15);
    let plain = write(&server, &options(BaseForm::Rdb, Compression::Off));
    let compressed = write(&server, &options(BaseForm::Rdb, Compression::Lzf));
    assert_eq!(contents(&mut restored(&plain)), expected);
    assert_eq!(contents(&mut restored(&compressed)), expected);
    // The long string is written in parts, which are not compressed.
    assert!(compressed.len() < plain.len() - 50_000, "{} and {}", compressed.len(), plain.len());
}

#[test]
fn a_base_of_commands_makes_the_same_data() {
    let mut server = filled();
    let file = write(&server, &options(BaseForm::Commands, Compression::Off));
    let mut copy = Server::new();
    copy.advance(10);
    let mut reader = LogReader::new(LogLimits::default());
    reader.feed(&file);
    reader.end();
    loop {
        match reader.next_event().unwrap() {
            LogEvent::Command(command) => {
                let args: Vec<&[u8]> = command.args.iter().collect();
                assert!(args.len() <= 2 + 2 * 64, "{} arguments", args.len());
                let reply = copy.run_bytes(&args);
                assert_ne!(reply[0], b'-', "{}", String::from_utf8_lossy(&reply));
            }
            LogEvent::End(_) => break,
            _ => {}
        }
    }
    copy.line("SELECT 0");
    assert_eq!(contents(&mut copy), contents(&mut server));
}
