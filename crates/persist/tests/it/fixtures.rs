//! Files of real servers (fixtures/generate.sh), and what they hold.

use std::collections::BTreeMap;

use towline_persist::rdb_file::{Part, RdbEvent, RdbFileError, RdbReader, RdbReaderOptions};
use towline_rdb::{HashField, HashFieldRef, Insert, Kind, Limits, Object, Visitor};

/// The servers, each with its files.
pub(crate) struct Fixture {
    pub(crate) name: &'static str,
    pub(crate) rdb: &'static [u8],
    pub(crate) foreign: &'static [u8],
    pub(crate) manifest: &'static [u8],
    pub(crate) increment: &'static [u8],
}

macro_rules! fixture {
    ($name:literal) => {
        Fixture {
            name: $name,
            rdb: include_bytes!(concat!("../fixtures/", $name, ".rdb")),
            foreign: include_bytes!(concat!("../fixtures/", $name, "-foreign.rdb")),
            manifest: include_bytes!(concat!("../fixtures/", $name, ".manifest")),
            increment: include_bytes!(concat!("../fixtures/", $name, ".incr.aof")),
        }
    };
}

pub(crate) const FIXTURES: [Fixture; 3] =
    [fixture!("redis-7.0"), fixture!("redis-8.2"), fixture!("valkey-9.1")];

/// When keys and fields that expire do so: the year 2100.
pub(crate) const EXPIRES_MS: u64 = 4_102_444_800_000;

/// A value with its time to live.
pub(crate) type Entry = (Object, Option<u64>);
/// What a file holds, by database and key.
pub(crate) type Keys = BTreeMap<(u32, Vec<u8>), Entry>;

fn texts(words: &str) -> Vec<Vec<u8>> {
    words.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

fn fields(words: &[(&str, &str, Option<u64>)]) -> Object {
    let field = |(name, value, expires_at_ms): &(&str, &str, Option<u64>)| HashField {
        name: name.as_bytes().to_vec(),
        value: value.as_bytes().to_vec(),
        expires_at_ms: *expires_at_ms,
    };
    Object::Hash(words.iter().map(field).collect())
}

/// What generate.sh writes.
pub(crate) fn expected(has_field_expiry: bool) -> Keys {
    let list = Object::List(texts("1 a -300 70000 b"));
    let (ints, words) = (Object::Set(texts("1 2 300")), Object::Set(texts("5 a b")));
    let scores = [("c", f64::NEG_INFINITY), ("a", 1.0), ("b", 2.5)];
    let scores =
        Object::Zset(scores.iter().map(|(member, score)| (member.as_bytes().to_vec(), *score)).collect());
    let hash = fields(&[("f", "v", None), ("n", "7", None)]);
    let string = |text: &str| Object::String(text.as_bytes().to_vec());
    let mut keys = vec![
        (0, "string", string("hello"), None),
        (0, "number", string("12345"), None),
        (0, "long", string(&"towline ".repeat(40)), None),
        (0, "expiring", string("v"), Some(EXPIRES_MS)),
        (0, "list", list.clone(), None),
        (0, "ints", ints.clone(), None),
        (0, "words", words.clone(), None),
        (0, "scores", scores.clone(), None),
        (0, "fields", hash.clone(), None),
        (0, "plain-list", list, None),
        (0, "plain-ints", ints, None),
        (0, "plain-words", words, None),
        (0, "plain-scores", scores, None),
        (0, "plain-fields", hash, None),
        (3, "other", string("database"), None),
    ];
    if has_field_expiry {
        let hash = fields(&[("f", "v", Some(EXPIRES_MS)), ("g", "w", None)]);
        keys.push((0, "field-ttl", hash.clone(), None));
        keys.push((0, "packed-field-ttl", hash, None));
    }
    let entry = |(database, key, object, at): (u32, &str, Object, Option<u64>)| {
        ((database, key.as_bytes().to_vec()), (object, at))
    };
    keys.into_iter().map(entry).collect()
}

/// Collects a value; what has no order is sorted at the end.
#[derive(Default)]
pub(crate) struct Collector(pub(crate) Option<Object>);

impl Collector {
    pub(crate) fn finish(self) -> Object {
        let mut object = self.0.expect("a value");
        match &mut object {
            Object::String(_) | Object::List(_) => {}
            Object::Set(members) => members.sort(),
            Object::Zset(members) => {
                members.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
            }
            Object::Hash(fields) => fields.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        object
    }
}

impl Visitor for Collector {
    fn begin(&mut self, kind: Kind, _count_hint: usize) {
        assert!(self.0.is_none(), "begin comes once");
        self.0 = Some(match kind {
            Kind::String => Object::String(Vec::new()),
            Kind::List => Object::List(Vec::new()),
            Kind::Set => Object::Set(Vec::new()),
            Kind::Zset => Object::Zset(Vec::new()),
            Kind::Hash => Object::Hash(Vec::new()),
        });
    }
    fn string(&mut self, value: &[u8]) {
        self.0 = Some(Object::String(value.to_vec()));
    }
    fn list_element(&mut self, element: &[u8]) {
        let Some(Object::List(elements)) = &mut self.0 else { panic!("a list") };
        elements.push(element.to_vec());
    }
    fn set_member(&mut self, member: &[u8]) -> Insert {
        let Some(Object::Set(members)) = &mut self.0 else { panic!("a set") };
        members.push(member.to_vec());
        Insert::New
    }
    fn zset_member(&mut self, member: &[u8], score: f64) -> Insert {
        let Some(Object::Zset(members)) = &mut self.0 else { panic!("a sorted set") };
        members.push((member.to_vec(), score));
        Insert::New
    }
    fn hash_field(&mut self, field: HashFieldRef<'_>) -> Insert {
        let Some(Object::Hash(fields)) = &mut self.0 else { panic!("a hash") };
        fields.push(HashField {
            name: field.name.to_vec(),
            value: field.value.to_vec(),
            expires_at_ms: field.expires_at_ms,
        });
        Insert::New
    }
}

/// Reads a whole file, fed in chunks of `chunk_bytes`; the keys and how many parts there were.
pub(crate) fn load(
    file: &[u8],
    chunk_bytes: usize,
    options: RdbReaderOptions,
) -> Result<(Keys, usize), RdbFileError> {
    let mut reader = RdbReader::new(options);
    let mut chunks = file.chunks(chunk_bytes);
    let (mut keys, mut parts) = (Keys::new(), 0);
    let mut open = Collector::default();
    loop {
        match reader.next_event()? {
            RdbEvent::NeedMore => match chunks.next() {
                Some(chunk) => reader.feed(chunk),
                None => reader.end(),
            },
            RdbEvent::End(_) => return Ok((keys, parts)),
            RdbEvent::Value(value) => {
                parts += 1;
                value.visit(Limits::default(), &mut open).expect("the value decodes");
                if matches!(value.part, Part::Only | Part::Last) {
                    let object = std::mem::take(&mut open).finish();
                    let entry = (object, value.expires_at_ms);
                    assert!(keys.insert((value.database, value.key.to_vec()), entry).is_none());
                }
            }
            _ => {}
        }
    }
}
