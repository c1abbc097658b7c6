//! Commands on keys that neither wait nor concern other connections.

use std::time::Duration;

use towline_resp::number::parse_i64;
use towline_resp::writer::Writer;
use towline_sansio::Instant;

use super::Call;
use crate::model::failure::Failure;
use crate::model::keyspace::{DATABASES, DbKey, End, Keyspace, Value};

/// Runs a command in database `db`, writes its reply, and names the keys that it changed.
pub(super) fn run(
    keyspace: &mut Keyspace,
    call: &Call<'_>,
    db: u32,
    out: &mut Writer,
) -> Result<Vec<DbKey>, Failure> {
    let mut data = Data { keyspace, call, db, out };
    match call.command.name {
        "get" => data.get(),
        "set" => data.set(),
        "mget" => data.mget(),
        "mset" => data.mset(),
        "append" => data.append(),
        "strlen" => data.strlen(),
        "incr" => data.add(1),
        "decr" => data.add(-1),
        "incrby" => call.int(2).and_then(|by| data.add(by)),
        "decrby" => {
            call.int(2).and_then(|by| by.checked_neg().ok_or(Failure::Overflow)).and_then(|by| data.add(by))
        }
        "del" | "unlink" => data.del(),
        "exists" => data.exists(),
        "type" => data.kind(),
        "expire" => data.expire(Duration::from_secs(1)),
        "pexpire" => data.expire(Duration::from_millis(1)),
        "persist" => data.persist(),
        "ttl" => data.ttl(1000),
        "pttl" => data.ttl(1),
        "rpush" => data.push(End::Right),
        "lpush" => data.push(End::Left),
        "rpop" => data.pop(End::Right),
        "lpop" => data.pop(End::Left),
        "llen" => data.llen(),
        "lrange" => data.lrange(),
        "dbsize" => data.dbsize(),
        "flushall" | "flushdb" => data.flush(),
        name => Err(Failure::text(format!("ERR the model server does not have '{name}'"))),
    }
}

/// One command on the way.
struct Data<'a, 'c> {
    keyspace: &'a mut Keyspace,
    call: &'a Call<'c>,
    db: u32,
    out: &'a mut Writer,
}

/// No key was changed.
const UNCHANGED: Vec<DbKey> = Vec::new();

impl Data<'_, '_> {
    fn now(&self) -> Instant {
        self.call.now
    }

    fn key(&self, index: usize) -> DbKey {
        (self.db, self.call.args[index].clone())
    }

    /// The first argument's key, as the only one that was changed.
    fn changed(&self) -> Vec<DbKey> {
        vec![self.key(1)]
    }

    fn string_or_null(&mut self, key: &DbKey) -> Result<(), Failure> {
        match self.keyspace.string(self.call.now, key)? {
            Some(text) => self.out.bulk(text),
            None => self.out.null(),
        }
        Ok(())
    }

    fn get(&mut self) -> Result<Vec<DbKey>, Failure> {
        self.string_or_null(&self.key(1))?;
        Ok(UNCHANGED)
    }

    /// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]`
    fn set(&mut self) -> Result<Vec<DbKey>, Failure> {
        let options = SetOptions::read(self.call)?;
        let (now, key) = (self.now(), self.key(1));
        if options.is_get {
            self.string_or_null(&key)?;
        }
        let is_there = self.keyspace.value(now, &key).is_some();
        let is_wanted = options.only_if_there.is_none_or(|wanted| wanted == is_there);
        if is_wanted {
            let kept = if options.keeps_ttl { self.keyspace.ttl(now, &key).flatten() } else { None };
            let expires = options.ttl.or(kept).map(|ttl| now + ttl);
            self.keyspace.set(key, &self.call.args[2], expires);
        }
        match (options.is_get, is_wanted) {
            (true, _) => {}
            (false, true) => self.out.ok(),
            (false, false) => self.out.null(),
        }
        Ok(if is_wanted { self.changed() } else { UNCHANGED })
    }

    fn mget(&mut self) -> Result<Vec<DbKey>, Failure> {
        self.out.array(self.call.args.len() - 1);
        for index in 1..self.call.args.len() {
            let key = self.key(index);
            match self.keyspace.value(self.call.now, &key) {
                Some(Value::String(text)) => self.out.bulk(text),
                Some(Value::List(_)) | None => self.out.null(),
            }
        }
        Ok(UNCHANGED)
    }

    fn mset(&mut self) -> Result<Vec<DbKey>, Failure> {
        let pairs = &self.call.args[1..];
        if !pairs.len().is_multiple_of(2) {
            return Err(Failure::text("ERR wrong number of arguments for 'mset' command"));
        }
        let mut changed = Vec::with_capacity(pairs.len() / 2);
        for pair in pairs.chunks_exact(2) {
            self.keyspace.set((self.db, pair[0].clone()), &pair[1], None);
            changed.push((self.db, pair[0].clone()));
        }
        self.out.ok();
        Ok(changed)
    }

    fn append(&mut self) -> Result<Vec<DbKey>, Failure> {
        let length = self.keyspace.append(self.call.now, &self.key(1), &self.call.args[2])?;
        self.length(length);
        Ok(self.changed())
    }

    fn strlen(&mut self) -> Result<Vec<DbKey>, Failure> {
        let length = self.keyspace.string(self.call.now, &self.key(1))?.map_or(0, |text| text.len());
        self.length(length);
        Ok(UNCHANGED)
    }

    fn add(&mut self, by: i64) -> Result<Vec<DbKey>, Failure> {
        let new = self.keyspace.add(self.call.now, &self.key(1), by)?;
        self.out.int(new);
        Ok(self.changed())
    }

    fn del(&mut self) -> Result<Vec<DbKey>, Failure> {
        let mut removed = Vec::new();
        for key in &self.call.args[1..] {
            let key = (self.db, key.clone());
            if self.keyspace.remove(self.call.now, &key) {
                removed.push(key);
            }
        }
        self.length(removed.len());
        Ok(removed)
    }

    fn exists(&mut self) -> Result<Vec<DbKey>, Failure> {
        let there = (1..self.call.args.len())
            .filter(|&index| self.keyspace.value(self.call.now, &self.key(index)).is_some())
            .count();
        self.length(there);
        Ok(UNCHANGED)
    }

    fn kind(&mut self) -> Result<Vec<DbKey>, Failure> {
        let name = match self.keyspace.value(self.call.now, &self.key(1)) {
            None => "none",
            Some(Value::String(_)) => "string",
            Some(Value::List(_)) => "list",
        };
        self.out.simple(name);
        Ok(UNCHANGED)
    }

    fn expire(&mut self, unit: Duration) -> Result<Vec<DbKey>, Failure> {
        let (now, key, count) = (self.now(), self.key(1), self.call.int(2)?);
        let is_done = match u32::try_from(count) {
            // A time that has passed removes the key.
            Ok(0) => self.keyspace.remove(now, &key),
            Err(_) if count < 0 => self.keyspace.remove(now, &key),
            Ok(count) => self.keyspace.expire(now, &key, Some(now + unit.saturating_mul(count))),
            Err(_) => self.keyspace.expire(now, &key, Some(Instant::FAR)),
        };
        self.out.int(i64::from(is_done));
        Ok(if is_done { self.changed() } else { UNCHANGED })
    }

    fn persist(&mut self) -> Result<Vec<DbKey>, Failure> {
        let (now, key) = (self.now(), self.key(1));
        let has_ttl = self.keyspace.ttl(now, &key).flatten().is_some();
        let is_done = has_ttl && self.keyspace.expire(now, &key, None);
        self.out.int(i64::from(is_done));
        Ok(if is_done { self.changed() } else { UNCHANGED })
    }

    fn ttl(&mut self, unit_ms: u128) -> Result<Vec<DbKey>, Failure> {
        let left = match self.keyspace.ttl(self.call.now, &self.key(1)) {
            None => -2,
            Some(None) => -1,
            Some(Some(left)) => i64::try_from((left.as_millis() + unit_ms / 2) / unit_ms).unwrap_or(i64::MAX),
        };
        self.out.int(left);
        Ok(UNCHANGED)
    }

    fn push(&mut self, end: End) -> Result<Vec<DbKey>, Failure> {
        let length = self.keyspace.push(self.call.now, &self.key(1), end, &self.call.args[2..])?;
        self.length(length);
        Ok(self.changed())
    }

    /// `LPOP key [count]`
    fn pop(&mut self, end: End) -> Result<Vec<DbKey>, Failure> {
        let (now, key) = (self.now(), self.key(1));
        let Some(count) = self.call.args.get(2) else {
            let element = self.keyspace.pop(now, &key, end)?;
            match &element {
                Some(element) => self.out.bulk(element),
                None => self.out.null(),
            }
            return Ok(if element.is_some() { self.changed() } else { UNCHANGED });
        };
        let count = parse_i64(count).and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or_else(|| Failure::text("ERR value is out of range, must be positive"))?;
        let Some(there) = self.keyspace.list(now, &key)?.map(|list| list.len()) else {
            self.out.null_array();
            return Ok(UNCHANGED);
        };
        let taken = count.min(there);
        self.out.array(taken);
        for _ in 0..taken {
            if let Some(element) = self.keyspace.pop(now, &key, end)? {
                self.out.bulk(&element);
            }
        }
        Ok(if taken > 0 { self.changed() } else { UNCHANGED })
    }

    fn llen(&mut self) -> Result<Vec<DbKey>, Failure> {
        let length = self.keyspace.list(self.call.now, &self.key(1))?.map_or(0, |list| list.len());
        self.length(length);
        Ok(UNCHANGED)
    }

    fn lrange(&mut self) -> Result<Vec<DbKey>, Failure> {
        let (first, last) = (self.call.int(2)?, self.call.int(3)?);
        let key = self.key(1);
        let Some(list) = self.keyspace.list(self.call.now, &key)? else {
            self.out.array(0);
            return Ok(UNCHANGED);
        };
        let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
        let from_start = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
        let first = from_start(first).max(0);
        let last = from_start(last).min(length - 1);
        let count = usize::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(0);
        self.out.array(count);
        for element in list.iter().skip(usize::try_from(first).unwrap_or(usize::MAX)).take(count) {
            self.out.bulk(element);
        }
        Ok(UNCHANGED)
    }

    fn dbsize(&mut self) -> Result<Vec<DbKey>, Failure> {
        let count = self.keyspace.keys(self.call.now, self.db).len();
        self.length(count);
        Ok(UNCHANGED)
    }

    /// `FLUSHDB`, `FLUSHALL`
    fn flush(&mut self) -> Result<Vec<DbKey>, Failure> {
        let databases =
            if self.call.command.name == "flushall" { 0..DATABASES } else { self.db..self.db + 1 };
        let keys: Vec<DbKey> = databases.flat_map(|db| self.keyspace.keys(self.call.now, db)).collect();
        for key in &keys {
            self.keyspace.remove(self.call.now, key);
        }
        self.out.ok();
        Ok(keys)
    }

    fn length(&mut self, length: usize) {
        self.out.int(i64::try_from(length).unwrap_or(i64::MAX));
    }
}

/// The options of `SET`.
#[derive(Default)]
struct SetOptions {
    only_if_there: Option<bool>,
    is_get: bool,
    keeps_ttl: bool,
    ttl: Option<Duration>,
}

impl SetOptions {
    fn read(call: &Call<'_>) -> Result<Self, Failure> {
        let (mut options, mut at) = (Self::default(), 3);
        while at < call.args.len() {
            if call.is(at, "nx") && options.only_if_there.is_none() {
                options.only_if_there = Some(false);
            } else if call.is(at, "xx") && options.only_if_there.is_none() {
                options.only_if_there = Some(true);
            } else if call.is(at, "get") {
                options.is_get = true;
            } else if call.is(at, "keepttl") && options.ttl.is_none() {
                options.keeps_ttl = true;
            } else if (call.is(at, "ex") || call.is(at, "px"))
                && options.ttl.is_none()
                && !options.keeps_ttl
                && at + 1 < call.args.len()
            {
                let unit = if call.is(at, "ex") { 1000 } else { 1 };
                at += 1;
                let ms = u64::try_from(call.int(at)?).ok().filter(|&count| count > 0);
                let ms = ms.and_then(|count| count.checked_mul(unit));
                let ms = ms.ok_or_else(|| Failure::text("ERR invalid expire time in 'set' command"))?;
                options.ttl = Some(Duration::from_millis(ms));
            } else {
                return Err(Failure::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}
