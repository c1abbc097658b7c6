//! Files of durability cross between Towline's formats and real servers, in both directions, and the servers' own
//! tools judge them.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use e2e::conn::Conn;
use e2e::peers::Peer;
use e2e::process::{Server, ServerKind};
use e2e::wait;
use towline_persist::aof::{LogEnd, LogLimits, LogWriter, Manifest, ManifestFile, PartEvent, PartReader};
use towline_persist::directory::{DirectoryFile, Found, Names, plan_start};
use towline_persist::rdb_file::{
    OnObstacle, RdbEvent, RdbReader, RdbReaderOptions, RdbWriter, RdbWriterOptions, ValueKey,
};
use towline_rdb::{HashTtlForm, Limits, Object, RdbType};

const PEERS: [ServerKind; 3] = [ServerKind::Redis70, ServerKind::Redis82, ServerKind::Valkey91];

/// When keys that expire do so: the year 2100.
const EXPIRES_MS: u64 = 4_102_444_800_000;

/// The server's own checking tool: its binary under that name.
fn check(kind: ServerKind, tool: &str, file: &Path) -> (bool, String) {
    let (peer, brand) = match kind {
        ServerKind::Redis82 => (Peer::Redis82, "redis"),
        ServerKind::Valkey91 => (Peer::Valkey91, "valkey"),
        _ => (Peer::Redis70, "redis"),
    };
    let output = Command::new(peer.path().unwrap())
        .arg0(format!("{brand}-check-{tool}"))
        .arg(file)
        .output()
        .expect("the tool starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A server that loads what lies in `directory`.
fn start_on(kind: ServerKind, directory: &Path, flags: &[&str]) -> Server {
    let directory = directory.to_str().expect("UTF-8");
    let server = Server::start(kind, &[&["--dir", directory], flags].concat()).unwrap();
    // It answers some commands while it still loads.
    let mut conn = server.connect().unwrap();
    assert!(wait::until(|| conn.words("DBSIZE").unwrap().error().is_none()), "{kind:?} loads on");
    server
}

fn run(conn: &mut Conn, command: &str) {
    let reply = conn.words(command).unwrap();
    assert_eq!(reply.error(), None, "{command}");
}

/// What the server itself thinks its data is.
fn digest(server: &Server) -> Vec<u8> {
    let mut conn = server.connect().unwrap();
    let reply = conn.words("DEBUG DIGEST").unwrap();
    match &reply {
        e2e::value::Value::Simple(digest) => digest.clone(),
        other => other.bytes().unwrap_or_else(|| panic!("{other:?}")).to_vec(),
    }
}

/// Data of every type, packed and plain, small and large, in two databases.
fn fill(conn: &mut Conn, has_field_expiry: bool) {
    let many = |from: u32, count: u32| (from..from + count).map(|i| format!(" m{i}")).collect::<String>();
    for command in [
        "SET string hello".to_owned(),
        "SET number -12345".to_owned(),
        format!("SET long {}", "towline".repeat(10_000)),
        format!("SET expiring v PXAT {EXPIRES_MS}"),
        "RPUSH list 1 -300 70000 9000000000 x".to_owned(),
        format!("RPUSH long-list{}", many(0, 20_000)),
        format!("RPUSH wide-list {} b", "w".repeat(70_000)),
        "SADD ints 1 2 300".to_owned(),
        "SADD words a b 5".to_owned(),
        format!("SADD large-set{}", many(0, 5_000)),
        "ZADD scores 1 a 2.5 b -inf c 0.1 d".to_owned(),
        format!("ZADD large-scores{}", (0..3_000).map(|i| format!(" {i}.5 m{i}")).collect::<String>()),
        "HSET fields f v n 7".to_owned(),
        format!("HSET large-fields{}", many(0, 4_000)),
        format!("PEXPIREAT large-fields {EXPIRES_MS}"),
        "SELECT 3".to_owned(),
        "SET other database".to_owned(),
        "SELECT 0".to_owned(),
    ] {
        run(conn, &command);
    }
    if has_field_expiry {
        run(conn, "HSET field-ttl f v g w");
        run(conn, &format!("HPEXPIREAT field-ttl {EXPIRES_MS} FIELDS 1 f"));
        run(conn, &format!("HSET large-field-ttl{}", many(0, 2_000)));
        run(conn, &format!("HPEXPIREAT large-field-ttl {EXPIRES_MS} FIELDS 2 m2 m4"));
    }
}

/// A value as it was read: what `RdbWriter` needs to write it again.
struct Loaded {
    database: u32,
    key: Vec<u8>,
    expires_at_ms: Option<u64>,
    object: Object,
}

/// Reads a file and decodes it; large values come in parts.
fn load(file: &[u8]) -> Vec<Loaded> {
    let mut reader = RdbReader::new(RdbReaderOptions::default());
    let mut chunks = file.chunks(10_000);
    let mut loaded: Vec<Loaded> = Vec::new();
    loop {
        match reader.next_event().unwrap() {
            RdbEvent::NeedMore => match chunks.next() {
                Some(chunk) => reader.feed(chunk),
                None => reader.end(),
            },
            RdbEvent::End(_) => return loaded,
            RdbEvent::Value(value) => {
                let part = decode(value.rdb_type, value.body);
                match loaded.last_mut() {
                    Some(last) if last.key == value.key && last.database == value.database => {
                        extend(&mut last.object, part);
                    }
                    _ => loaded.push(Loaded {
                        database: value.database,
                        key: value.key.to_vec(),
                        expires_at_ms: value.expires_at_ms,
                        object: part,
                    }),
                }
            }
            _ => {}
        }
    }
}

/// Decodes a body by putting a payload's frame around it.
fn decode(rdb_type: RdbType, body: &[u8]) -> Object {
    let version: u16 = if rdb_type == RdbType::HashValkey { 80 } else { 12 };
    let mut payload = vec![rdb_type.byte()];
    payload.extend_from_slice(body);
    payload.extend(version.to_le_bytes());
    payload.extend(towline_rdb::crc64::checksum(&payload).to_le_bytes());
    towline_rdb::decode_dump(&payload, Limits::default()).expect("the server wrote it")
}

fn extend(whole: &mut Object, part: Object) {
    match (whole, part) {
        (Object::List(whole), Object::List(part)) | (Object::Set(whole), Object::Set(part)) => {
            whole.extend(part)
        }
        (Object::Zset(whole), Object::Zset(part)) => whole.extend(part),
        (Object::Hash(whole), Object::Hash(part)) => whole.extend(part),
        (whole, part) => panic!("{whole:?} does not go on with {part:?}"),
    }
}

fn write(values: &[Loaded], form: HashTtlForm) -> Vec<u8> {
    let mut writer = RdbWriter::new(RdbWriterOptions { form, ..RdbWriterOptions::default() });
    writer.aux("redis-ver", b"7.0.15");
    writer.aux("redis-bits", b"64");
    let (mut file, mut database) = (Vec::new(), None);
    for value in values {
        if database != Some(value.database) {
            database = Some(value.database);
            let in_database = |other: &&Loaded| other.database == value.database;
            let keys = values.iter().filter(in_database).count() as u64;
            let expiring = values.iter().filter(in_database).filter(|value| value.expires_at_ms.is_some());
            writer.database(value.database, Some((keys, expiring.count() as u64)));
        }
        writer.object(ValueKey { key: &value.key, expires_at_ms: value.expires_at_ms }, &value.object);
        if writer.is_chunk_ready() {
            file.extend(writer.take_chunk());
        }
    }
    file.extend(writer.finish());
    file
}

/// A server's file is read, written by us, and loaded by a server, which has the same data by its own digest.
#[test]
fn snapshots_cross_both_ways() {
    for kind in PEERS {
        let origin = Server::start(kind, &[]).unwrap();
        let mut conn = origin.connect().unwrap();
        fill(&mut conn, kind != ServerKind::Redis70);
        run(&mut conn, "SAVE");
        let theirs = std::fs::read(origin.directory().join("dump.rdb")).unwrap();
        let values = load(&theirs);
        let form = if kind == ServerKind::Valkey91 { HashTtlForm::Valkey } else { HashTtlForm::Redis };
        let ours = write(&values, form);

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dump.rdb");
        std::fs::write(&path, &ours).unwrap();
        let (is_good, text) = check(kind, "rdb", &path);
        assert!(is_good && text.contains("RDB looks OK"), "{kind:?}: {text}");
        let heir = start_on(kind, directory.path(), &[]);
        assert_eq!(digest(&heir), digest(&origin), "{kind:?}");
        let expiry = heir.connect().unwrap().words("PEXPIRETIME expiring").unwrap();
        assert_eq!(expiry.int(), Some(EXPIRES_MS as i64));

        // A file without hashes of which fields expire loads everywhere.
        let plain: Vec<Loaded> =
            values.into_iter().filter(|value| !value.key.ends_with(b"field-ttl")).collect();
        let ours = write(&plain, HashTtlForm::Redis);
        std::fs::write(&path, &ours).unwrap();
        for other in PEERS {
            let heir = start_on(other, directory.path(), &[]);
            let keys = heir.connect().unwrap().words("DBSIZE").unwrap().int().unwrap();
            assert_eq!(keys as usize, plain.iter().filter(|value| value.database == 0).count(), "{other:?}");
        }
    }
}

/// Everything in the directory of a log.
fn found(directory: &Path) -> Found {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().expect("UTF-8");
        DirectoryFile { name, bytes: entry.metadata().unwrap().len() }
    });
    let files: Vec<_> = files.collect();
    let manifest = std::fs::read(directory.join("appendonly.aof.manifest")).ok();
    Found { manifest, files, has_single_log: false }
}

/// The commands of one file, and how it ends.
fn commands(file: &[u8]) -> (Vec<Vec<Vec<u8>>>, usize, LogEnd) {
    let mut reader = PartReader::new(OnObstacle::Refuse, Limits::default(), LogLimits::default());
    let (mut commands, mut values) = (Vec::new(), 0);
    let mut chunks = file.chunks(5_000);
    loop {
        match reader.next_event().unwrap() {
            PartEvent::NeedMore => match chunks.next() {
                Some(chunk) => reader.feed(chunk),
                None => reader.end(),
            },
            PartEvent::Command(command) => commands.push(command.args.iter().map(<[u8]>::to_vec).collect()),
            PartEvent::Rdb(RdbEvent::Value(_)) => values += 1,
            PartEvent::Rdb(_) | PartEvent::Timestamp(_) => {}
            PartEvent::End(end) => return (commands, values, end),
        }
    }
}

/// A server dies with its log; what the plan loads, sent to a fresh server, is the data that was lost.
#[test]
fn logs_of_servers_hold_what_they_had() {
    for kind in PEERS {
        for preamble in ["no", "yes"] {
            let flags =
                ["--appendonly", "yes", "--aof-timestamp-enabled", "yes", "--aof-use-rdb-preamble", preamble];
            let origin = Server::start(kind, &flags).unwrap();
            let mut conn = origin.connect().unwrap();
            fill(&mut conn, kind != ServerKind::Redis70);
            run(&mut conn, "BGREWRITEAOF");
            let info = |conn: &mut Conn| {
                let reply = conn.words("INFO persistence").unwrap();
                String::from_utf8_lossy(reply.bytes().unwrap()).into_owned()
            };
            assert!(wait::until(|| {
                let info = info(&mut conn);
                info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
            }));
            for command in ["SELECT 2", "MULTI", "SET x 1", "INCR x", "SELECT 0", "DEL string", "EXEC"] {
                run(&mut conn, command);
            }
            let expected = digest(&origin);
            let directory = origin.directory().join("appendonlydir");
            let plan = plan_start(&Names::new("appendonly.aof"), &found(&directory)).unwrap();
            assert_eq!((plan.load.len(), plan.actions.len()), (2, 0), "{plan:?}");
            assert!(plan.load[1].may_be_torn && plan.append_to.is_some());

            let heir = Server::start(kind, &[]).unwrap();
            let mut conn = heir.connect().unwrap();
            let mut values = 0;
            for file in &plan.load {
                let (commands, in_rdb, end) = commands(&std::fs::read(directory.join(&file.name)).unwrap());
                assert_eq!(end, LogEnd::Whole);
                values += in_rdb;
                for command in commands {
                    let reply = conn.call(&command).unwrap();
                    assert_eq!(reply.error(), None, "{command:?}");
                }
            }
            if preamble == "no" {
                assert_eq!(digest(&heir), expected, "{kind:?}");
            } else {
                assert!(values >= 15, "{values}");
            }
        }
    }
}

/// A log of ours: the tools accept it, and each server starts from it with the data that it says.
#[test]
fn logs_of_ours_are_loaded_by_servers() {
    let object = Object::List(vec![b"a".to_vec(), b"b".to_vec()]);
    let value = Loaded { database: 0, key: b"list".to_vec(), expires_at_ms: None, object };
    let base = write(&[value], HashTtlForm::Redis);
    let (mut writer, mut increment) = (LogWriter::new(), Vec::new());
    writer.timestamp(&mut increment, 1_796_033_117);
    writer.command(&mut increment, 0, [&b"RPUSH"[..], b"list", b"c"]);
    writer.multi(&mut increment, 3);
    writer.command(&mut increment, 3, [&b"SET"[..], b"k", b"\r\n*1\r\n"]);
    writer.command(&mut increment, 3, [&b"PEXPIREAT"[..], b"k", EXPIRES_MS.to_string().as_bytes()]);
    writer.exec(&mut increment);
    let whole_at = increment.len();
    writer.multi(&mut increment, 0);
    writer.command(&mut increment, 0, [&b"DEL"[..], b"list"]);

    let names = Names::new("appendonly.aof");
    let manifest = Manifest {
        base: Some(ManifestFile::new(names.base(4, Default::default()), 4)),
        increments: vec![ManifestFile::new(names.increment(7), 7)],
        history: Vec::new(),
    };
    for kind in PEERS {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("appendonlydir");
        std::fs::create_dir(&log).unwrap();
        let increment_path = log.join(names.increment(7));
        let files = BTreeMap::from([
            (log.join(names.manifest()), manifest.to_text().into_bytes()),
            (log.join(names.base(4, Default::default())), base.clone()),
            (increment_path.clone(), increment[..whole_at].to_vec()),
        ]);
        files.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
        let (is_good, text) = check(kind, "aof", &log.join(names.manifest()));
        assert!(is_good && text.contains("All AOF files and manifest are valid"), "{kind:?}: {text}");

        // A transaction without its end: the server cuts where we would.
        std::fs::write(&increment_path, &increment).unwrap();
        let LogEnd::Torn { cut_at, .. } = commands(&increment).2 else { panic!("it is torn") };
        // The SELECT stands before the transaction and is whole.
        assert_eq!(increment[whole_at..cut_at as usize], *b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n");
        let server =
            start_on(kind, directory.path(), &["--appendonly", "yes", "--aof-load-truncated", "yes"]);
        assert_eq!(std::fs::metadata(&increment_path).unwrap().len(), cut_at, "{kind:?}");
        let mut conn = server.connect().unwrap();
        assert_eq!(conn.words("LLEN list").unwrap().int(), Some(3));
        run(&mut conn, "SELECT 3");
        assert_eq!(conn.words("GET k").unwrap().bytes(), Some(&b"\r\n*1\r\n"[..]));
        assert_eq!(conn.words("PEXPIRETIME k").unwrap().int(), Some(EXPIRES_MS as i64));
    }
}
