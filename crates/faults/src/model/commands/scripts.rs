//! Scripts: loading, running, forgetting.

use bytes::Bytes;
use towline_resp::number::parse_i64;
use towline_resp::writer::Writer;
use towline_spec::resolve;

use super::{Call, Step};
use crate::model::Model;
use crate::model::failure::Failure;
use crate::model::script::{self, Script, ScriptReply};
use crate::model::sha1::sha1_hex;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// Any other length cannot be a digest.
const DIGEST_DIGITS: usize = 40;

impl Model {
    /// `SCRIPT LOAD script`
    pub(super) fn script_load(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let digest = sha1_hex(&call.args[2]);
        let script = script::parse(&call.args[2])?;
        out.bulk(digest.as_bytes());
        self.scripts.insert(digest, script);
        Ok(Step::Done)
    }

    /// `SCRIPT EXISTS sha1 [sha1 ...]`
    pub(super) fn script_exists(&self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        out.array(call.args.len() - 2);
        for digest in &call.args[2..] {
            out.int(i64::from(self.script(digest).is_some()));
        }
        Ok(Step::Done)
    }

    /// `SCRIPT FLUSH [ASYNC | SYNC]`
    pub(super) fn script_flush(&mut self, out: &mut Writer) -> Result<Step, Failure> {
        self.scripts.clear();
        out.ok();
        Ok(Step::Done)
    }

    fn script(&self, digest: &[u8]) -> Option<&Script> {
        self.scripts.get(&String::from_utf8_lossy(digest).to_ascii_lowercase())
    }

    /// `EVAL script numkeys [key ...] [arg ...]`, `EVALSHA sha1 numkeys [key ...] [arg ...]`
    pub(super) fn eval(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let is_by_digest = call.command.name == "evalsha";
        if is_by_digest && call.args[1].len() != DIGEST_DIGITS {
            return Err(Failure::text(NO_SCRIPT));
        }
        let count = parse_i64(&call.args[2]).ok_or(Failure::NotInteger)?;
        let count =
            usize::try_from(count).map_err(|_| Failure::text("ERR Number of keys can't be negative"))?;
        let given = &call.args[3..];
        if count > given.len() {
            return Err(Failure::text("ERR Number of keys can't be greater than number of args"));
        }
        let (keys, argv) = given.split_at(count);
        let script = if !is_by_digest {
            let script = script::parse(&call.args[1])?;
            self.scripts.insert(sha1_hex(&call.args[1]), script.clone());
            script
        } else {
            let found = self.script(&call.args[1]).cloned();
            found.ok_or_else(|| Failure::text(NO_SCRIPT))?
        };
        let last = self.script_calls(call, &script, keys, argv)?;
        match &script.reply {
            ScriptReply::Nothing => out.null(),
            ScriptReply::Integer(value) => out.int(*value),
            ScriptReply::Operand(operand) => match operand.value(keys, argv) {
                Ok(text) => out.bulk(text),
                Err(_) => out.null(),
            },
            // Lua has one nil, and it comes out as the null of a string.
            ScriptReply::LastCall if last == b"*-1\r\n" => out.null(),
            ScriptReply::LastCall => out.raw(&last),
        }
        Ok(Step::Done)
    }

    /// Runs the calls of a script one after the other; the reply of the last. An error ends it, and leaves done what was
    /// done, as in Redis.
    fn script_calls(
        &mut self,
        call: &Call<'_>,
        script: &Script,
        keys: &[Bytes],
        argv: &[Bytes],
    ) -> Result<Vec<u8>, Failure> {
        let mut last = Vec::new();
        for operands in &script.calls {
            let values: Result<Vec<Bytes>, Failure> =
                operands.iter().map(|operand| operand.value(keys, argv).cloned()).collect();
            let args = values?;
            let command =
                resolve(&args).map_err(|_| Failure::text("ERR Unknown Redis command called from script"))?;
            if !command.accepts_arity(args.len()) {
                return Err(Failure::text("ERR Wrong number of args calling Redis command from script"));
            }
            let mut reply = Writer::new(self.proto_of(call.connection));
            // Only commands on keys: no script subscribes, waits, or runs a script.
            self.run_data(&Call { command, args: &args, is_queued: true, ..*call }, &mut reply)?;
            last = reply.take().0;
        }
        Ok(last)
    }
}
