//! Snapshot and effects of random programs, applied elsewhere, are the same data set.
//!
//! Owns: the proof that no command forgets an effect. The programs are those of the differential tester, and they know
//! every command that writes; a test below holds that against the command table.

use crate::testing::Server;
use e2e::diff::{self, TOPICS};
use std::collections::{BTreeMap, BTreeSet};
use towline_sansio::Prng;
use towline_spec::{Flags, State};
use towline_store::Scope;
use towline_store::changes::{Changes, Settings};
use towline_store::hash::Field;
use towline_store::keyspace::Keyspace;
use towline_store::packed::ElemBuf;
use towline_store::store::{DB_COUNT, Store};
use towline_store::stream::{Batch, Config, Image, Piece, Progress, SlotStream, restore_payload};
use towline_store::value::ValueRef;

/// All that is alive at `now_ms`, as text: database and key, then expiry and value.
pub(crate) fn contents(store: &Store, now_ms: u64) -> BTreeMap<(u8, Vec<u8>), String> {
    let (settings, mut changes) = (Settings::default(), Changes::new(1));
    let mut all = BTreeMap::new();
    for db in 0..DB_COUNT {
        let mut from = 0;
        while let Some(slot) = store.next_occupied(db, from) {
            from = usize::from(slot) + 1;
            let ks = Keyspace::hold(store, [slot], &settings, &mut changes, db, 0);
            ks.for_each_in_slot(slot, |entry| {
                let value = show(entry.value_ref(), now_ms);
                if entry.expires_at_ms().is_none_or(|at| at > now_ms) && !value.is_empty() {
                    let shown = format!("{:?} {value}", entry.expires_at_ms());
                    all.insert((db, entry.key().to_vec()), shown);
                }
            });
            if from >= towline_cluster::SLOT_COUNT {
                break;
            }
        }
    }
    all
}

/// A value as text; empty for a hash of which all fields have expired.
fn show(value: ValueRef<'_>, now_ms: u64) -> String {
    let text =
        |elem: towline_store::packed::Elem<'_>| elem.render(&mut ElemBuf::new()).escape_ascii().to_string();
    match value {
        ValueRef::String(string) => format!("string {}", string.to_vec().escape_ascii()),
        ValueRef::List(list) => format!("list {:?}", list.iter().map(text).collect::<Vec<_>>()),
        ValueRef::Set(set) => format!("set {:?}", set.iter().map(text).collect::<BTreeSet<_>>()),
        ValueRef::Zset(zset) => {
            let members = zset
                .iter()
                .map(|(member, score)| (member.escape_ascii().to_string(), (score + 0.0).to_bits()));
            format!("zset {:?}", members.collect::<BTreeMap<_, _>>())
        }
        ValueRef::Hash(hash) => {
            let is_alive = |field: &Field<'_>| field.expires_at_ms.is_none_or(|at| at > now_ms);
            let fields = hash
                .iter()
                .filter(is_alive)
                .map(|field| (text(field.name), (text(field.value), field.expires_at_ms)));
            let fields: BTreeMap<_, _> = fields.collect();
            if fields.is_empty() { String::new() } else { format!("hash {fields:?}") }
        }
    }
}

/// The words of a RESP command.
pub(crate) fn words(mut command: &[u8]) -> Vec<Vec<u8>> {
    let mut line = || {
        let end = command.iter().position(|&byte| byte == b'\r').expect("the command is complete");
        let line = command[..end].to_vec();
        command = &command[end + 2..];
        line
    };
    let number = |line: &[u8]| String::from_utf8_lossy(&line[1..]).parse::<usize>().expect("a length");
    let count = number(&line());
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let end = command.iter().position(|&byte| byte == b'\r').expect("the command is complete");
        let len = number(&command[..end]);
        words.push(command[end + 2..end + 2 + len].to_vec());
        command = &command[end + 2 + len + 2..];
    }
    words
}

/// A key on its way: database, key, expiry, object.
type Pending = (u8, Vec<u8>, Option<u64>, Vec<u8>);

/// Applies what a stream yields to a store of its own.
struct Replica {
    server: Server,
    begun: Option<Pending>,
    units: Vec<Vec<(u8, Vec<Vec<u8>>)>>,
    seen: BTreeSet<(u8, Vec<u8>)>,
    is_complete: bool,
}

impl Replica {
    fn new() -> Self {
        let mut server = Server::new();
        // Nothing expires here: expiry is an effect.
        server.now_ms = 0;
        Self { server, begun: None, units: Vec::new(), seen: BTreeSet::new(), is_complete: false }
    }

    fn run(&mut self, db: u8, words: &[Vec<u8>]) {
        self.server.session.db = db;
        let args: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = self.server.run_bytes(&args);
        let line = diff::command_line(&words.to_vec());
        assert_ne!(reply.first(), Some(&b'-'), "{line}: {}", reply.escape_ascii());
    }

    fn restore(&mut self, (db, key, expires_at_ms, object): Pending) {
        assert!(self.seen.insert((db, key.clone())), "{:?} came twice", key.escape_ascii().to_string());
        let at = expires_at_ms.unwrap_or(0).to_string().into_bytes();
        let words = [b"RESTORE".to_vec(), key, at, restore_payload(object), b"ABSTTL".to_vec()];
        self.run(db, &words);
    }

    fn apply(&mut self, batch: &Batch, progress: Progress) {
        for image in batch.images() {
            match image {
                Image::Key { head, object } => {
                    assert!(self.begun.is_none(), "another key between the parts of one");
                    self.restore((head.db, head.key.to_vec(), head.expires_at_ms, object.to_vec()));
                }
                Image::Begin { head, object } => {
                    assert!(self.begun.is_none(), "another key between the parts of one");
                    self.begun = Some((head.db, head.key.to_vec(), head.expires_at_ms, object.to_vec()));
                }
                Image::Part { elements } => {
                    self.begun.as_mut().expect("a value was begun").3.extend_from_slice(elements);
                }
                Image::End => {
                    let begun = self.begun.take().expect("a value was begun");
                    self.restore(begun);
                }
            }
        }
        for unit in batch.units() {
            self.units.push(unit.effects().map(|effect| (effect.db, words(effect.command))).collect());
        }
        self.is_complete |= progress.is_snapshot_done;
        if self.is_complete {
            for unit in std::mem::take(&mut self.units) {
                unit.iter().for_each(|(db, words)| self.run(*db, words));
            }
        }
    }

    /// Takes the next batch; `false` if there was nothing.
    fn follow(&mut self, stream: &mut SlotStream, store: &Store, batch: &mut Batch) -> bool {
        let progress = stream.next(store, batch).expect("the stream keeps up");
        self.apply(batch, progress);
        !batch.is_empty() || !progress.is_snapshot_done
    }
}

/// A stream with a replica.
struct Tap {
    stream: SlotStream,
    replica: Replica,
}

/// Commands that no program has.
const MORE: &[&str] = &[
    "MSETEX 2 s1 1 s2 b PX 500",
    "MSETEX 1 s3 b KEEPTTL",
    "DELIFEQ s1 1",
    "DELIFEQ s2 a",
    "SWAPDB 0 1",
    "MOVE s1 1",
    "SELECT 1",
    "SELECT 0",
    "RPUSH l1 a b c d e f g h",
    "SADD e1 a b c d e f g h",
];

/// Runs the program of `topic` and `seed`, with a stream from the beginning and others that are opened on the way, and
/// compares.
fn check(name: &str, seed: u64, piece: Piece) -> BTreeSet<String> {
    let topic = TOPICS.iter().find(|topic| topic.name == name).expect("there is such a topic");
    let mut rng = Prng::new(seed);
    let mut server = Server::new();
    for limit in ["hash-max-listpack-entries", "set-max-listpack-entries", "zset-max-listpack-entries"] {
        server.line(&format!("CONFIG SET {limit} 2"));
    }
    server.line("CONFIG SET set-max-intset-entries 2 list-max-listpack-size 2");
    let config = Config { batch_bytes: 1, piece, ..Config::default() };
    let (mut taps, mut batch) = (Vec::new(), Batch::default());
    let open = |server: &Server| Tap {
        stream: SlotStream::open(&server.local.shared.store, 0..16384, server.now_ms, &config),
        replica: Replica::new(),
    };
    taps.push(open(&server));
    let mut names = BTreeSet::new();
    for mut command in diff::own_commands(topic, seed) {
        if rng.below(30) == 0 {
            let line = MORE[rng.below(MORE.len() as u64) as usize];
            command = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        }
        let name = String::from_utf8_lossy(&command[0]).to_lowercase();
        if matches!(name.as_str(), "debug" | "reset" | "config" | "client") {
            continue;
        }
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        server.run_bytes(&args);
        names.insert(name);
        if rng.below(4) == 0 {
            server.advance(rng.below(3) * rng.below(2000));
        }
        if rng.below(40) == 0 && taps.len() < 4 {
            taps.push(open(&server));
        }
        for tap in &mut taps {
            if rng.below(4) == 0 {
                tap.replica.follow(&mut tap.stream, &server.local.shared.store, &mut batch);
            }
        }
        if rng.below(30) == 0 {
            let at = rng.below(taps.len() as u64) as usize;
            compare(&server, &mut taps[at], name_of(topic.name, seed, &command));
        }
    }
    for tap in &mut taps {
        compare(&server, tap, format!("{} {seed}, at the end", topic.name));
    }
    for tap in taps {
        tap.stream.close(&server.local.shared.store);
    }
    names
}

fn name_of(topic: &str, seed: u64, command: &Vec<Vec<u8>>) -> String {
    format!("{topic} {seed}, after {}", diff::command_line(command))
}

/// Lets the replica catch up and compares it with the server.
fn compare(server: &Server, tap: &mut Tap, at: String) {
    let (store, mut batch) = (&server.local.shared.store, Batch::default());
    while tap.replica.follow(&mut tap.stream, store, &mut batch) {}
    let (ours, theirs) =
        (contents(store, server.now_ms), contents(&tap.replica.server.local.shared.store, server.now_ms));
    for (key, value) in &ours {
        assert_eq!(Some(value), theirs.get(key), "{at}: {}", key.1.escape_ascii());
    }
    for key in theirs.keys() {
        assert!(ours.contains_key(key), "{at}: {} is not gone", key.1.escape_ascii());
    }
}

#[test]
fn effects_of_random_programs_replay_to_the_same_data() {
    let mut names = BTreeSet::new();
    for topic in TOPICS {
        for seed in 0..30 {
            let elements = [1, 2, 256][seed as usize % 3];
            names.extend(check(topic.name, seed, Piece { elements, bytes: 64 << 10 }));
        }
    }
    // Commands that wait, or that no program has, have tests of their own below; `MIGRATE` has one in `moving`, and
    // `RESTORE-ASKING` is `RESTORE`.
    let elsewhere = |name: &str| ["blpop", "brpop", "blmove", "migrate", "restore-asking"].contains(&name);
    let missing = towline_spec::all().iter().filter(|command| {
        command.flags.contains(Flags::WRITE)
            && command.state == State::Implemented
            && !names.contains(command.name)
            && !elsewhere(command.name)
    });
    let missing: Vec<&str> = missing.map(|command| command.name).collect();
    assert_eq!(missing, Vec::<&str>::new(), "no program has these commands that write");
}

/// The effects of lines, as text; `|` ends each unit.
fn effects_of(lines: &[&str]) -> String {
    let mut server = Server::new();
    let (first, last) = lines.split_at(lines.len() - 1);
    first.iter().for_each(|line| drop(server.line(line)));
    let config = Config { has_snapshot: false, ..Config::default() };
    let store = &server.local.shared.clone().store;
    let mut stream = SlotStream::open(store, 0..16384, server.now_ms, &config);
    server.line(last[0]);
    let mut batch = Batch::default();
    stream.next(store, &mut batch).expect("the stream keeps up");
    let mut shown = Vec::new();
    for unit in batch.units() {
        for effect in unit.effects() {
            let scope = if effect.scope == Scope::Store { "*" } else { "" };
            shown.push(format!("{scope}{}:{}", effect.db, diff::command_line(&words(effect.command))));
        }
        shown.push("|".to_owned());
    }
    shown.join(" ")
}

#[test]
fn an_effect_names_what_happened() {
    let start = crate::testing::START_MS;
    for (lines, effects) in [
        (&["SET k v"][..], "0:SET k v |".to_owned()),
        (&["SET k v EX 10"], format!("0:SET k v PXAT {} |", start + 10_000)),
        (&["SET k 1 PX 7", "INCR k"], format!("0:SET k 2 PXAT {} |", start + 7)),
        (&["SET k v", "EXPIRE k 100"], format!("0:PEXPIREAT k {} |", start + 100_000)),
        (&["SET k v", "GETEX k PERSIST"], String::new()),
        (&["SET k v", "EXPIRE k -1"], "0:DEL k |".to_owned()),
        (&["SADD k a", "SPOP k"], "0:SREM k a |".to_owned()),
        (&["HSET k f 1", "HINCRBYFLOAT k f 0.5"], "0:HSET k f 1.5 |".to_owned()),
        (&["ZADD k 1 a", "ZINCRBY k 2 a"], "0:ZADD k 3 a |".to_owned()),
        (&["SET a 1", "SET b 2", "MSET a x b y"], "0:SET a x 0:SET b y |".to_owned()),
        (&["SETBIT k 100 1", "SETBIT k 7 1"], "0:SETRANGE k 0 \"\\x01\" |".to_owned()),
        (&["SETBIT k 7 1", "SETBIT k 7 1"], String::new()),
        (&["APPEND k a", "APPEND k b"], "0:APPEND k b |".to_owned()),
        (&["RPUSH a x", "LMOVE a b LEFT RIGHT"], "0:LPOP a 0:RPUSH b x |".to_owned()),
        (&["SET a 1", "MOVE a 3"], "0:DEL a 3:SET a 1 |".to_owned()),
        (&["SET a 1", "FLUSHALL"], "*0:FLUSHDB |".to_owned()),
        (&["SET a 1", "SWAPDB 0 1"], "*0:SWAPDB 0 1 |".to_owned()),
        (&["GET none"], String::new()),
        (&["PFADD k a", "PFADD k a"], String::new()),
    ] {
        assert_eq!(effects_of(lines), effects, "{lines:?}");
    }
}

#[test]
fn a_transaction_is_one_unit_and_expiry_is_an_effect() {
    let mut server = Server::new();
    server.line("SET old v PX 5");
    let shared = server.local.shared.clone();
    let config = Config { has_snapshot: false, ..Config::default() };
    let mut stream = SlotStream::open(&shared.store, 0..16384, server.now_ms, &config);
    server.advance(5);
    for line in ["MULTI", "GET old", "SET a 1", "INCR a", "LPUSH b x", "EXEC"] {
        server.line(line);
    }
    let mut batch = Batch::default();
    let progress = stream.next(&shared.store, &mut batch).expect("the stream keeps up");
    let units: Vec<Vec<String>> = batch
        .units()
        .map(|unit| unit.effects().map(|effect| diff::command_line(&words(effect.command))).collect())
        .collect();
    assert_eq!(units, [["DEL old", "SET a 1", "SET a 2", "LPUSH b x"]]);
    assert_eq!(progress.position, 1);
    stream.close(&shared.store);
}

#[test]
fn what_a_waiting_client_takes_is_an_effect() {
    let mut server = Server::new();
    let shared = server.local.shared.clone();
    let config = Config { has_snapshot: false, reports_position: true, ..Config::default() };
    let mut stream = SlotStream::open(&shared.store, 0..16384, server.now_ms, &config);
    for line in ["BLPOP a 0", "BRPOP b 0", "BLMOVE c d LEFT RIGHT 0", "BZPOPMIN e 0", "BLMPOP 0 1 f LEFT"] {
        server.wait(line);
    }
    for line in ["RPUSH a 1", "RPUSH b 1", "RPUSH c 1", "ZADD e 1 m", "RPUSH f 1"] {
        server.line(line);
    }
    let mut batch = Batch::default();
    stream.next(&shared.store, &mut batch).expect("the stream keeps up");
    let shown: Vec<String> = batch
        .units()
        .map(|unit| {
            let lines = unit.effects().map(|effect| diff::command_line(&words(effect.command)));
            lines.collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(
        shown,
        [
            "RPUSH a 1",
            "LPOP a",
            "RPUSH b 1",
            "RPOP b",
            "RPUSH c 1",
            "LPOP c RPUSH d 1",
            "ZADD e 1 m",
            "DEL e",
            "RPUSH f 1",
            "LPOP f"
        ]
    );
    assert_eq!(server.local.changes.position, 10);
}
