//! A snapshot as commands: the base of a log with `aof-use-rdb-preamble no`.
//!
//! Owns: which commands make a key. Does **not** own their encoding (see [`LogWriter`]).

use super::elements::{Element, Shape};
use std::borrow::Cow;
use towline_persist::aof::LogWriter;
use towline_rdb::{ObjectError, RdbType};
use towline_resp::double::format_double;
use towline_store::stream::{Image, KeyHead};

/// Elements of one command: a reader must hold the command as a whole, and Redis writes as many.
const ELEMENTS_MAX: usize = 64;

/// Makes commands of images.
#[derive(Debug, Default)]
pub(super) struct CommandWriter {
    log: LogWriter,
    /// The value in parts that was begun and not ended.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    db: u8,
    key: Vec<u8>,
    expires_at_ms: Option<u64>,
    shape: Shape,
    /// A string of which some bytes were written: the others are appended.
    is_begun: bool,
}

impl CommandWriter {
    /// Appends the commands of one image.
    pub(super) fn image(&mut self, out: &mut Vec<u8>, image: Image<'_>) -> Result<(), ObjectError> {
        match image {
            Image::Key { head, object } => {
                let (shape, _, elements) = Shape::read(object)?;
                self.elements(out, head.db, head.key, shape, elements)?;
                self.expiry(out, &head);
            }
            Image::Begin { head, object } => {
                let (shape, ..) = Shape::read(object)?;
                let (db, key, expires_at_ms) = (head.db, head.key.to_vec(), head.expires_at_ms);
                self.open = Some(Open { db, key, expires_at_ms, shape, is_begun: false });
            }
            Image::Part { elements } => {
                if let Some(mut open) = self.open.take() {
                    if open.shape.rdb_type == RdbType::String {
                        let name: &[u8] = if open.is_begun { b"APPEND" } else { b"SET" };
                        self.log.command(out, open.db.into(), [name, &open.key, elements]);
                        open.is_begun = true;
                    } else {
                        self.elements(out, open.db, &open.key, open.shape, elements)?;
                    }
                    self.open = Some(open);
                }
            }
            Image::End => {
                if let Some(Open { db, key, expires_at_ms, .. }) = self.open.take() {
                    self.expiry(out, &KeyHead { slot: 0, db, key: &key, expires_at_ms, access: 0 });
                }
            }
        }
        Ok(())
    }

    fn elements(
        &mut self,
        out: &mut Vec<u8>,
        db: u8,
        key: &[u8],
        shape: Shape,
        elements: &[u8],
    ) -> Result<(), ObjectError> {
        let name: &[u8] = match shape.rdb_type {
            RdbType::String => b"SET",
            RdbType::List => b"RPUSH",
            RdbType::Set => b"SADD",
            RdbType::Zset2 => b"ZADD",
            _ => b"HSET",
        };
        let mut args: Vec<Cow<'_, [u8]>> = Vec::new();
        let mut count = 0;
        let mut expiring: Vec<(u64, Cow<'_, [u8]>)> = Vec::new();
        let mut write = |args: &mut Vec<Cow<'_, [u8]>>, expiring: &mut Vec<(u64, Cow<'_, [u8]>)>| {
            if !args.is_empty() {
                let all: Vec<&[u8]> = [name, key].into_iter().chain(args.iter().map(|arg| &**arg)).collect();
                self.log.command(out, db.into(), all);
                args.clear();
            }
            for (at_ms, field) in expiring.drain(..) {
                let at_ms = at_ms.to_string();
                let command: [&[u8]; 6] = [b"HPEXPIREAT", key, at_ms.as_bytes(), b"FIELDS", b"1", &field];
                self.log.command(out, db.into(), command);
            }
        };
        shape.for_each(elements, |element| {
            match element {
                Element::Plain(element) => args.push(element),
                Element::Scored(member, score) => {
                    args.push(Cow::Owned(format_double(score).as_bytes().to_vec()));
                    args.push(member);
                }
                Element::Field(field, value) => args.extend([field, value]),
                Element::Expiring(at, field, value) => {
                    if let Some(at_ms) = shape.field_expiry_ms(at) {
                        expiring.push((at_ms, field.clone()));
                    }
                    args.extend([field, value]);
                }
            }
            count += 1;
            if count % ELEMENTS_MAX == 0 {
                write(&mut args, &mut expiring);
            }
        })?;
        write(&mut args, &mut expiring);
        Ok(())
    }

    fn expiry(&mut self, out: &mut Vec<u8>, head: &KeyHead<'_>) {
        if let Some(at_ms) = head.expires_at_ms {
            let at_ms = at_ms.to_string();
            let command: [&[u8]; 3] = [b"PEXPIREAT", head.key, at_ms.as_bytes()];
            self.log.command(out, head.db.into(), command);
        }
    }
}
