//! `DUMP` and `RESTORE`.
//!
//! Owns: the two commands and the conversion between the store's values and payloads. Does **not** own the format (see
//! `towline_rdb`).

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, keys};
use crate::moving::{self, Decoding, LARGE_PAYLOAD_BYTES};
use bytes::Bytes;
use std::sync::Arc;
use towline_rdb::{
    DumpError, DumpWriter, HashFieldRef, HashTtlForm, Insert, Kind, Limits, Visitor, encode_string,
    visit_dump,
};
use towline_store::hash::{Hash, OldExpiry};
use towline_store::keyspace::Expiry;
use towline_store::limits::EncodingLimits;
use towline_store::list::{End, List};
use towline_store::notify::Class;
use towline_store::packed::ElemBuf;
use towline_store::set::Set;
use towline_store::value::{Value, ValueRef};
use towline_store::zset::{Inserted, Zset};

/// The payload of a value.
pub(super) fn encode(value: ValueRef<'_>) -> Vec<u8> {
    let mut buf = ElemBuf::new();
    let mut writer = match value {
        ValueRef::String(text) => return encode_string(text.bytes(&mut [0; 20])),
        ValueRef::List(list) => DumpWriter::list(list.len() as u64),
        ValueRef::Set(set) => DumpWriter::set(set.len() as u64),
        ValueRef::Zset(zset) => DumpWriter::zset(zset.len() as u64),
        ValueRef::Hash(hash) => match hash.next_expiry_ms() {
            None => DumpWriter::hash(hash.len() as u64),
            Some(at) => DumpWriter::hash_expiring(hash.len() as u64, HashTtlForm::default(), at),
        },
    };
    match value {
        ValueRef::String(_) => {}
        ValueRef::List(list) => list.iter().for_each(|element| writer.element(element.render(&mut buf))),
        ValueRef::Set(set) => set.iter().for_each(|member| writer.element(member.render(&mut buf))),
        ValueRef::Zset(zset) => zset.iter().for_each(|(member, score)| writer.scored(member, score)),
        ValueRef::Hash(hash) => {
            let mut value_buf = ElemBuf::new();
            for field in hash.iter() {
                writer.field(HashFieldRef {
                    name: field.name.render(&mut buf),
                    value: field.value.render(&mut value_buf),
                    expires_at_ms: field.expires_at_ms,
                });
            }
        }
    }
    writer.finish()
}

/// The value of a payload.
///
/// # Errors
/// See [`DumpError`]: the sender's fault in all cases.
pub(crate) fn decode(payload: &[u8], limits: Limits, encoding: &EncodingLimits) -> Result<Value, DumpError> {
    let mut builder = Builder::new(encoding);
    visit_dump(payload, limits, &mut builder)?;
    Ok(builder.value)
}

/// Puts a value together from its pieces.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    value: Value,
    count_hint: usize,
    encoding: &'a EncodingLimits,
}

impl<'a> Builder<'a> {
    /// Nothing yet.
    pub(crate) fn new(encoding: &'a EncodingLimits) -> Self {
        Self::with(Value::Bytes(Vec::new()), 0, encoding)
    }

    /// Goes on with what [`Builder::into_parts`] gave.
    pub(crate) fn with(value: Value, count_hint: usize, encoding: &'a EncodingLimits) -> Self {
        Self { value, count_hint, encoding }
    }

    /// The value as it is now, and how many elements it was announced to have.
    pub(crate) fn into_parts(self) -> (Value, usize) {
        (self.value, self.count_hint)
    }
}

impl Visitor for Builder<'_> {
    fn begin(&mut self, kind: Kind, count_hint: usize) {
        self.count_hint = count_hint;
        self.value = match kind {
            Kind::String => Value::Bytes(Vec::new()),
            Kind::List => Value::List(List::new()),
            Kind::Set => Value::Set(Set::new()),
            Kind::Zset => Value::Zset(Zset::new()),
            Kind::Hash => Value::Hash(Hash::new()),
        };
    }

    fn string(&mut self, value: &[u8]) {
        self.value = Value::Bytes(value.to_vec());
    }

    fn list_element(&mut self, element: &[u8]) {
        if let Value::List(list) = &mut self.value {
            list.push(End::Back, element, self.encoding);
        }
    }

    fn set_member(&mut self, member: &[u8]) -> Insert {
        let Value::Set(set) = &mut self.value else { return Insert::Duplicate };
        if set.is_empty() {
            *set = Set::for_first(member, self.count_hint, self.encoding);
        }
        if set.add(member, self.encoding) { Insert::New } else { Insert::Duplicate }
    }

    fn zset_member(&mut self, member: &[u8], score: f64) -> Insert {
        let Value::Zset(zset) = &mut self.value else { return Insert::Duplicate };
        match zset.insert(member, score, self.encoding) {
            Inserted::Added => Insert::New,
            Inserted::Updated | Inserted::Unchanged | Inserted::NotANumber => Insert::Duplicate,
        }
    }

    fn hash_field(&mut self, field: HashFieldRef<'_>) -> Insert {
        let Value::Hash(hash) = &mut self.value else { return Insert::Duplicate };
        let is_new = hash.set(field.name, field.value, OldExpiry::Clear, self.encoding);
        if let Some(at) = field.expires_at_ms {
            hash.set_expires_at_ms(field.name, at.max(1));
        }
        if is_new { Insert::New } else { Insert::Duplicate }
    }
}

/// `DUMP key`
fn dump(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    match ctx.ks.read(args.get(1)).map(encode) {
        Some(payload) => ctx.out.bulk_shared(Bytes::from(payload)),
        None => ctx.out.null(),
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
    idle_s: Option<u64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut index = 4;
        while index < args.len() {
            let has_value = index + 1 < args.len();
            if args.is(index, "REPLACE") {
                options.replaces = true;
            } else if args.is(index, "ABSTTL") {
                options.is_absolute = true;
            } else if args.is(index, "IDLETIME") && has_value && options.frequency.is_none() {
                index += 1;
                let idle_s = u64::try_from(args.int(index)?);
                options.idle_s =
                    Some(idle_s.map_err(|_| CommandError::Text("ERR Invalid IDLETIME value, must be >= 0"))?);
            } else if args.is(index, "FREQ") && has_value && options.idle_s.is_none() {
                index += 1;
                let frequency = u8::try_from(args.int(index)?);
                options.frequency =
                    Some(frequency.map_err(|_| {
                        CommandError::Text("ERR Invalid FREQ value, must be >= 0 and <= 255")
                    })?);
            } else {
                return Err(CommandError::Syntax);
            }
            index += 1;
        }
        Ok(options)
    }
}

/// The value of the payload. A large one is made on another thread, and the command runs again when it is there: then `None`.
/// Inside `EXEC`, which cannot wait under its locks, it is made here.
fn value_of(ctx: &mut Ctx<'_>, args: Args<'_>, limits: Limits) -> Option<Result<Value, DumpError>> {
    let payload = args.get(3);
    let encoding = &ctx.ks.settings().limits;
    if let Some(decoding) = ctx.session.as_mut().and_then(|session| session.decoding.take())
        && let Some(value) = decoding.take()
    {
        return Some(value);
    }
    let may_wait = ctx.session.as_ref().is_some_and(|session| !session.is_in_exec);
    if payload.len() <= LARGE_PAYLOAD_BYTES || !may_wait || !ctx.server.moves.is_running() {
        return Some(decode(payload, limits, encoding));
    }
    let payload = args.shared(3).cloned().unwrap_or_else(|| Arc::new(payload.to_vec()));
    let decoding = Arc::new(Decoding::new(payload, limits, *encoding));
    ctx.session().decoding = Some(Arc::clone(&decoding));
    ctx.park(decoding.parking());
    ctx.server.moves.send(moving::Errand::Decode(decoding));
    None
}

/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
fn restore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = args.get(1);
    let options = Options::parse(args)?;
    if !options.replaces && ctx.ks.exists(key) {
        return Err(CommandError::Text("BUSYKEY Target key name already exists."));
    }
    let ttl =
        u64::try_from(args.int(2)?).map_err(|_| CommandError::Text("ERR Invalid TTL value, must be >= 0"))?;
    let (settings, now_ms) = (ctx.ks.settings(), ctx.ks.now_ms());
    let string_bytes_max = ctx.server.config().proto_max_bulk_len;
    let limits = Limits { string_bytes_max, ..Limits::default() };
    let Some(decoded) = value_of(ctx, args, limits) else { return Ok(()) };
    let value = decoded.map_err(|error| match error {
        DumpError::Object(_) => CommandError::Text("ERR Bad data format"),
        _ => CommandError::Text("ERR DUMP payload version or checksum are wrong"),
    })?;
    let at = match (ttl, options.is_absolute) {
        (0, _) => None,
        (ttl, true) => Some(ttl),
        (ttl, false) => Some(now_ms.saturating_add(ttl)),
    };
    if at.is_some_and(|at| at <= now_ms) {
        // Its time has passed on the way: as if it had come and gone.
        if ctx.ks.delete(key) {
            ctx.ks.changed(key, Class::Generic, "del");
        }
    } else {
        ctx.ks.set_value(key, value, at.map_or(Expiry::Clear, Expiry::At));
        let access = if settings.is_lfu() {
            options.frequency.map(|frequency| settings.access_with_counter(frequency, now_ms))
        } else {
            options.idle_s.map(|idle_s| settings.access_idle_for(idle_s, now_ms))
        };
        if let Some(access) = access {
            ctx.ks.set_access(key, access);
        }
        ctx.ks.changed(key, Class::Generic, "restore");
    }
    ctx.out.ok();
    Ok(())
}

pub(super) const ROWS: &[Row] =
    &[keys("dump", dump), keys("restore", restore), keys("restore-asking", restore)];

#[cfg(test)]
mod tests {
    use crate::testing::Server;
    use towline_rdb::{Compression, HashField, HashTtlForm, Object, encode_dump};

    const BAD: &str = "-ERR DUMP payload version or checksum are wrong";

    /// The payload of a bulk reply.
    fn bulk(reply: &[u8]) -> Vec<u8> {
        let start = reply.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        reply[start..reply.len() - 2].to_vec()
    }

    fn dump(server: &mut Server, key: &[u8]) -> Vec<u8> {
        bulk(&server.run_bytes(&[b"DUMP", key]))
    }

    fn restore(server: &mut Server, key: &[u8], payload: &[u8], options: &[&[u8]]) -> String {
        let args = [&[b"RESTORE", key, b"0", payload], options].concat();
        String::from_utf8_lossy(&server.run_bytes(&args)).trim_end().to_owned()
    }

    #[test]
    fn every_kind_comes_back() {
        let mut server = Server::new();
        server.line("SET s text");
        server.line("SET n 12345");
        server.run(&["SET", "large", &"x".repeat(70_000)]);
        server.line("RPUSH l a 1 -7 b");
        server.line("SADD i 1 2 3");
        server.line("SADD m a b 3");
        server.line("HSET h f v g 1");
        for key in ["s", "n", "large", "l", "i", "m", "h"] {
            let payload = dump(&mut server, key.as_bytes());
            assert_eq!(restore(&mut server, b"copy", &payload, &[b"REPLACE"]), "+OK", "{key}");
            assert_eq!(dump(&mut server, b"copy"), payload, "{key}");
            assert_eq!(
                server.line("OBJECT ENCODING copy"),
                server.line(&format!("OBJECT ENCODING {key}")),
                "{key}"
            );
        }
        assert_eq!(server.line("DUMP none"), "$-1");
    }

    #[test]
    fn sorted_sets_and_expiring_fields_come_back() {
        let mut server = Server::new();
        let zset = Object::Zset(vec![(b"a".to_vec(), 1.5), (b"b".to_vec(), f64::INFINITY)]);
        let field = |name: &[u8], expires_at_ms| HashField {
            name: name.to_vec(),
            value: b"v".to_vec(),
            expires_at_ms,
        };
        let hash = Object::Hash(vec![field(b"soon", Some(server.now_ms + 5)), field(b"stays", None)]);
        for (object, kind) in [(zset, "+zset"), (hash, "+hash")] {
            let payload = encode_dump(&object, HashTtlForm::default(), Compression::Off);
            assert_eq!(restore(&mut server, b"k", &payload, &[b"REPLACE"]), "+OK");
            assert_eq!(server.line("TYPE k"), kind);
            assert_eq!(dump(&mut server, b"k"), payload);
        }
        server.advance(5);
        assert_eq!(server.line("HGETALL k"), "*2 $5 stays $1 v");
    }

    #[test]
    fn the_expiry_is_given() {
        let mut server = Server::new();
        server.line("SET s text");
        let payload = dump(&mut server, b"s");
        let with_ttl = |server: &mut Server, ttl: &str, options: &[&[u8]]| {
            let args =
                [&[b"RESTORE".as_slice(), b"s", ttl.as_bytes(), &payload, b"REPLACE"], options].concat();
            String::from_utf8_lossy(&server.run_bytes(&args)).trim_end().to_owned()
        };
        assert_eq!(with_ttl(&mut server, "100", &[]), "+OK");
        assert_eq!(server.line("PTTL s"), ":100");
        let at = (server.now_ms + 7).to_string();
        assert_eq!(with_ttl(&mut server, &at, &[b"absttl"]), "+OK");
        assert_eq!(server.line("PTTL s"), ":7");
        assert_eq!(with_ttl(&mut server, "-1", &[]), "-ERR Invalid TTL value, must be >= 0");
        assert_eq!(with_ttl(&mut server, "x", &[]), "-ERR value is not an integer or out of range");
        assert_eq!(server.line("GET s"), "$4 text");
        assert_eq!(with_ttl(&mut server, "1", &[b"ABSTTL"]), "+OK");
        assert_eq!(server.line("EXISTS s"), ":0");
    }

    #[test]
    fn the_last_access_is_given() {
        let mut server = Server::new();
        server.line("SET s text");
        let payload = dump(&mut server, b"s");
        assert_eq!(restore(&mut server, b"s", &payload, &[b"REPLACE", b"IDLETIME", b"1000"]), "+OK");
        assert_eq!(server.line("OBJECT IDLETIME s"), ":1000");
        assert_eq!(restore(&mut server, b"s", &payload, &[b"REPLACE", b"FREQ", b"7"]), "+OK");
        for (options, error) in [
            ([b"IDLETIME".as_slice(), b"-1"].as_slice(), "-ERR Invalid IDLETIME value, must be >= 0"),
            (&[b"FREQ", b"256"], "-ERR Invalid FREQ value, must be >= 0 and <= 255"),
            (&[b"FREQ", b"1", b"IDLETIME", b"1"], "-ERR syntax error"),
            (&[b"FREQ"], "-ERR syntax error"),
        ] {
            assert_eq!(restore(&mut server, b"s", &payload, options), error);
        }
    }

    #[test]
    fn bad_payloads_change_nothing() {
        let mut server = Server::new();
        server.line("SET s text");
        let payload = dump(&mut server, b"s");
        assert_eq!(restore(&mut server, b"s", &payload, &[]), "-BUSYKEY Target key name already exists.");
        assert_eq!(restore(&mut server, b"k", b"foo", &[]), BAD);
        let mut damaged = payload.clone();
        damaged[2] ^= 1;
        assert_eq!(restore(&mut server, b"s", &damaged, &[b"REPLACE"]), BAD);
        let twice = Object::Set(vec![b"a".to_vec(), b"a".to_vec()]);
        let twice = encode_dump(&twice, HashTtlForm::default(), Compression::Off);
        assert_eq!(restore(&mut server, b"s", &twice, &[b"REPLACE"]), "-ERR Bad data format");
        assert_eq!(server.line("GET s"), "$4 text");
        assert_eq!(server.line("EXISTS k"), ":0");
    }
}
