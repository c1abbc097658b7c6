//! The few scripts that the model server understands.
//!
//! Owns the reading of a body: calls one after the other, written so that a real server runs the same text. A statement is
//! `redis.call('NAME', argument, ...)`, with `return` before the last one if its reply is wanted, or `return` and one
//! argument. An argument is `KEYS[n]`, `ARGV[n]`, a quoted text or an integer. `--` begins a comment. Nothing else is Lua
//! here.
//!
//! Does not own execution, nor the digests that name scripts.

use bytes::Bytes;
use towline_resp::number::parse_i64;

use super::failure::Failure;

/// A body that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// The calls, in order.
    pub(super) calls: Vec<Vec<Operand>>,
    /// What the script answers.
    pub(super) reply: ScriptReply,
}

/// What a script answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScriptReply {
    /// A null: nothing was returned.
    Nothing,
    /// The reply of the last call.
    LastCall,
    /// An argument or a text.
    Operand(Operand),
    /// An integer, which is not a text in a reply.
    Integer(i64),
}

/// One argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Text(Bytes),
    /// From 0.
    Key(usize),
    /// From 0.
    Argv(usize),
}

impl Operand {
    /// Its value; an argument that was not given is an error, as a nil in a call is in Redis.
    pub(super) fn value<'a>(&'a self, keys: &'a [Bytes], argv: &'a [Bytes]) -> Result<&'a Bytes, Failure> {
        let found = match self {
            Self::Text(text) => Some(text),
            Self::Key(index) => keys.get(*index),
            Self::Argv(index) => argv.get(*index),
        };
        found.ok_or_else(|| {
            Failure::text("ERR Lua redis lib command arguments must be strings or integers script")
        })
    }
}

/// Reads a body.
///
/// # Errors
/// It has something that the model does not understand; the text is that of a compile error.
pub(super) fn parse(body: &[u8]) -> Result<Script, Failure> {
    let mut parser = Parser { rest: body };
    let mut script = Script { calls: Vec::new(), reply: ScriptReply::Nothing };
    loop {
        parser.skip_blanks();
        if parser.rest.is_empty() {
            return Ok(script);
        }
        if script.reply != ScriptReply::Nothing {
            return Err(parser.error());
        }
        let is_return = parser.word(b"return");
        if parser.take(b"redis.call") {
            script.calls.push(parser.arguments()?);
            if is_return {
                script.reply = ScriptReply::LastCall;
            }
        } else if is_return {
            script.reply = parser.returned()?;
        } else {
            return Err(parser.error());
        }
    }
}

struct Parser<'a> {
    rest: &'a [u8],
}

impl Parser<'_> {
    fn error(&self) -> Failure {
        let near = String::from_utf8_lossy(&self.rest[..self.rest.len().min(20)]).into_owned();
        Failure::text(format!(
            "ERR Error compiling script (the model server knows redis.call only): near '{near}'"
        ))
    }

    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if let Some(rest) = self.rest.strip_prefix(b";") {
                self.rest = rest;
            } else if self.rest.starts_with(b"--") {
                let end = self.rest.iter().position(|&byte| byte == b'\n');
                self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
            } else {
                return;
            }
        }
    }

    /// Takes a fixed text, after blanks.
    fn take(&mut self, text: &[u8]) -> bool {
        self.rest = self.rest.trim_ascii_start();
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes a word that ends there.
    fn word(&mut self, word: &[u8]) -> bool {
        let ends = self.rest.get(word.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        ends && self.take(word)
    }

    /// `('NAME', argument, ...)`
    fn arguments(&mut self) -> Result<Vec<Operand>, Failure> {
        if !self.take(b"(") {
            return Err(self.error());
        }
        let mut operands = vec![self.operand()?];
        while self.take(b",") {
            operands.push(self.operand()?);
        }
        if self.take(b")") { Ok(operands) } else { Err(self.error()) }
    }

    fn returned(&mut self) -> Result<ScriptReply, Failure> {
        self.rest = self.rest.trim_ascii_start();
        let is_text = matches!(self.rest.first(), Some(b'\'' | b'"'));
        match self.operand()? {
            Operand::Text(digits) if !is_text => {
                parse_i64(&digits).map(ScriptReply::Integer).ok_or_else(|| self.error())
            }
            operand => Ok(ScriptReply::Operand(operand)),
        }
    }

    fn operand(&mut self) -> Result<Operand, Failure> {
        if self.take(b"KEYS[") {
            return self.index().map(Operand::Key);
        }
        if self.take(b"ARGV[") {
            return self.index().map(Operand::Argv);
        }
        self.rest = self.rest.trim_ascii_start();
        let (text, rest) = match *self.rest {
            [quote @ (b'\'' | b'"'), ref inner @ ..] => {
                let end = inner.iter().position(|&byte| byte == quote).ok_or_else(|| self.error())?;
                (&inner[..end], &inner[end + 1..])
            }
            ref rest => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
                rest.split_at(digits)
            }
        };
        if text.is_empty() && rest.len() == self.rest.len() {
            return Err(self.error());
        }
        self.rest = rest;
        Ok(Operand::Text(Bytes::copy_from_slice(text)))
    }

    /// `n]`, from 1 on the wire, from 0 here.
    fn index(&mut self) -> Result<usize, Failure> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = parse_i64(&self.rest[..digits]).and_then(|number| usize::try_from(number - 1).ok());
        self.rest = &self.rest[digits..];
        match number {
            Some(index) if self.take(b"]") => Ok(index),
            _ => Err(self.error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Operand {
        Operand::Text(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn calls_are_read() {
        let body = b"-- id:7\nredis.call('SET', KEYS[1], \"a b\"); return redis.call(\"INCRBY\",KEYS[2], ARGV[1] )\n";
        let script = parse(body).unwrap();
        assert_eq!(script.calls[0], [text("SET"), Operand::Key(0), text("a b")]);
        assert_eq!(script.calls[1], [text("INCRBY"), Operand::Key(1), Operand::Argv(0)]);
        assert_eq!(script.reply, ScriptReply::LastCall);
    }

    #[test]
    fn returns_are_read() {
        assert_eq!(parse(b"return -5").unwrap().reply, ScriptReply::Integer(-5));
        assert_eq!(parse(b"return '5'").unwrap().reply, ScriptReply::Operand(text("5")));
        assert_eq!(parse(b"return ARGV[2]").unwrap().reply, ScriptReply::Operand(Operand::Argv(1)));
        assert_eq!(parse(b"").unwrap().reply, ScriptReply::Nothing);
    }

    #[test]
    fn everything_else_is_refused_with_its_place() {
        let bad: [&[u8]; 10] = [
            b"local x = 1",
            b"return",
            b"return redis.call(",
            b"redis.call('a'",
            b"redis.call()",
            b"return 1 return 2",
            b"return KEYS[0]",
            b"return KEYS[x]",
            b"return 'open",
            b"return {1}",
        ];
        for body in bad {
            let error = parse(body).unwrap_err().to_string();
            assert!(error.starts_with("ERR Error compiling script"), "{error}");
        }
    }
}
