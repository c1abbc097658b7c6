//! redis-rs's connection trait for this client's handles.
//!
//! Owns the way from redis-rs's commands and pipelines to this client's. Written against [`Carrier`], so that what
//! holds for the handle of one server holds for any other: `connection_like!` makes a handle a connection of redis-rs.

use std::future::Future;
use std::time::Duration;

use ::redis::{Arg, ErrorKind as RedisKind, RedisError, RedisResult, Value};
use bytes::{Bytes, BytesMut};
use towline_client_proto::{Error, ErrorKind, ServerError};
use towline_resp::frame::{Decoder, Frame, FrameLimits};

use super::error::redis_error;
use super::value::{server_error, value};
use crate::args::SHARED_BYTES_MIN;
use crate::client::Client;
use crate::cmd::Cmd;
use crate::lease::Lease;
use crate::pipeline::{Pipeline, Transacted, pipe};

/// What can carry the commands of redis-rs.
pub(super) trait Carrier: Sync {
    /// Sends one command; an error of the server is a frame.
    fn command(&self, cmd: Cmd) -> impl Future<Output = Result<Frame, Error>> + Send;

    /// Sends independent commands; one result for each.
    fn commands(
        &self,
        pipeline: Pipeline,
    ) -> impl Future<Output = Result<Vec<Result<Frame, Error>>, Error>> + Send;

    /// Sends a transaction; what it gives is an array with a frame for each command.
    fn transaction(
        &self,
        pipeline: Pipeline,
    ) -> impl Future<Output = Result<Transacted<Frame>, Error>> + Send;

    /// The number of the database.
    fn database(&self) -> i64;
}

impl Carrier for Client {
    async fn command(&self, cmd: Cmd) -> Result<Frame, Error> {
        cmd.query(self).await
    }

    async fn commands(&self, pipeline: Pipeline) -> Result<Vec<Result<Frame, Error>>, Error> {
        pipeline.results(self).await
    }

    async fn transaction(&self, pipeline: Pipeline) -> Result<Transacted<Frame>, Error> {
        pipeline.transact(self).await
    }

    fn database(&self) -> i64 {
        self.options().selected_database().into()
    }
}

impl Carrier for Lease {
    async fn command(&self, cmd: Cmd) -> Result<Frame, Error> {
        Carrier::command(&**self, cmd).await
    }

    async fn commands(&self, pipeline: Pipeline) -> Result<Vec<Result<Frame, Error>>, Error> {
        Carrier::commands(&**self, pipeline).await
    }

    async fn transaction(&self, pipeline: Pipeline) -> Result<Transacted<Frame>, Error> {
        Carrier::transaction(&**self, pipeline).await
    }

    fn database(&self) -> i64 {
        Carrier::database(&**self)
    }
}

/// Makes handles connections of redis-rs.
macro_rules! connection_like {
    ($($handle:ty),*) => {$(
        impl ::redis::aio::ConnectionLike for $handle {
            fn req_packed_command<'a>(
                &'a mut self,
                cmd: &'a ::redis::Cmd,
            ) -> ::redis::RedisFuture<'a, ::redis::Value> {
                Box::pin($crate::redis::carry::request(&*self, cmd))
            }

            fn req_packed_commands<'a>(
                &'a mut self,
                pipeline: &'a ::redis::Pipeline,
                offset: usize,
                count: usize,
            ) -> ::redis::RedisFuture<'a, Vec<::redis::Value>> {
                Box::pin($crate::redis::carry::request_all(&*self, pipeline, offset, count))
            }

            fn get_db(&self) -> i64 {
                $crate::redis::carry::Carrier::database(self)
            }
        }
    )*};
}

connection_like!(Client, Lease);

/// Sends one command of redis-rs.
pub(super) async fn request(carrier: &impl Carrier, cmd: &::redis::Cmd) -> RedisResult<Value> {
    carrier.command(command(cmd)?).await.map(value).map_err(redis_error)
}

/// Sends a pipeline of redis-rs: the replies from `offset` on, `count` of them. Of a transaction that is the one to
/// `EXEC`.
pub(super) async fn request_all(
    carrier: &impl Carrier,
    pipeline: &::redis::Pipeline,
    offset: usize,
    count: usize,
) -> RedisResult<Vec<Value>> {
    send_all(carrier, commands(pipeline)?, pipeline.is_transaction(), offset, count).await
}

/// Sends several commands, as a transaction or not: the replies from `offset` on, `count` of them.
pub(super) async fn send_all(
    carrier: &impl Carrier,
    pipeline: Pipeline,
    is_transaction: bool,
    offset: usize,
    count: usize,
) -> RedisResult<Vec<Value>> {
    if is_transaction {
        let outcome = carrier.transaction(pipeline.atomic()).await.map_err(redis_error)?;
        return Ok(vec![transacted(outcome)?]);
    }
    let results = carrier.commands(pipeline).await.map_err(redis_error)?;
    let mut values = Vec::with_capacity(count);
    for result in results.into_iter().skip(offset).take(count) {
        values.push(match result {
            Ok(frame) => value(frame),
            Err(error) => match error.kind() {
                ErrorKind::Server(answer) => Value::ServerError(server_error(answer.text().as_bytes())),
                _ => return Err(redis_error(error)),
            },
        });
    }
    Ok(values)
}

/// What redis-rs expects as the reply to `EXEC`.
fn transacted(outcome: Transacted<Frame>) -> RedisResult<Value> {
    match outcome {
        Transacted::Committed(frame) => Ok(value(frame)),
        Transacted::Conflict => Ok(Value::Nil),
        Transacted::Refused(answer) => Err(refused(&answer)),
        Transacted::Unknown(error) => Err(redis_error(error)),
    }
}

/// A transaction of which nothing ran. The server's own word where it says that another attempt may succeed,
/// otherwise `EXECABORT` with the reason, because that is what callers test for.
fn refused(answer: &ServerError) -> RedisError {
    if answer.code() == "EXECABORT" || answer.class().is_not_executed() {
        return server_error(answer.text().as_bytes()).into();
    }
    let text = format!("EXECABORT Transaction discarded because of previous errors: {}", answer.text());
    server_error(text.as_bytes()).into()
}

/// The commands of a pipeline of redis-rs, each of whose replies is wanted: redis-rs leaves out what is ignored.
pub(super) fn commands(pipeline: &::redis::Pipeline) -> RedisResult<Pipeline> {
    let mut ours = pipe();
    for cmd in pipeline.cmd_iter() {
        ours.push(command(cmd)?);
    }
    Ok(ours)
}

/// A command of redis-rs as one of ours.
pub(super) fn command(cmd: &::redis::Cmd) -> RedisResult<Cmd> {
    let mut ours = match cmd.args_iter().next() {
        None => return Err((RedisKind::Client, "empty command").into()),
        // The place of a cursor is known, the cursor itself is only in the encoded command.
        Some(_) if cmd.in_scan_mode() => encoded_command(&cmd.get_packed_command())?,
        Some(_) => {
            let mut ours = Cmd::bare();
            for arg in cmd.args_iter() {
                if let Arg::Simple(bytes) = arg {
                    push(&mut ours, bytes);
                }
            }
            ours
        }
    };
    if cmd.is_no_response() {
        // Stricter than redis-rs, which takes the caller's word that the server is silent.
        ours = ours.fire_and_forget();
    }
    Ok(ours)
}

/// Copies a long argument once, into memory of its own, rather than twice.
fn push(cmd: &mut Cmd, bytes: &[u8]) {
    if bytes.len() >= SHARED_BYTES_MIN {
        cmd.push(Bytes::copy_from_slice(bytes));
    } else {
        cmd.push(bytes);
    }
}

/// The one command in `bytes`.
pub(super) fn encoded_command(bytes: &[u8]) -> RedisResult<Cmd> {
    let mut commands = encoded_commands(bytes)?;
    match (commands.pop(), commands.is_empty()) {
        (Some(cmd), true) => Ok(cmd),
        _ => Err((RedisKind::Client, "one command was expected").into()),
    }
}

/// The commands in `bytes`, encoded as arrays of strings, one after the other.
pub(super) fn encoded_commands(bytes: &[u8]) -> RedisResult<Vec<Cmd>> {
    let malformed = || RedisError::from((RedisKind::Client, "what was to be sent is no command"));
    let mut rest = BytesMut::from(bytes);
    let mut decoder = Decoder::new(FrameLimits::default());
    let mut commands = Vec::new();
    while !rest.is_empty() {
        let Ok(Some(Frame::Array(args))) = decoder.decode(&mut rest) else { return Err(malformed()) };
        let mut cmd = Cmd::bare();
        for arg in args {
            let Frame::Bulk(arg) = arg else { return Err(malformed()) };
            cmd.push(arg);
        }
        if cmd.args().len() == 0 {
            return Err(malformed());
        }
        commands.push(cmd);
    }
    Ok(commands)
}

/// The command with `timeout` from submission to reply. One that blocks gets it on top of what it may block.
pub(super) fn limited(cmd: Cmd, timeout: Duration) -> Cmd {
    if cmd.is_blocking() { cmd } else { cmd.deadline(timeout) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(cmd: &Cmd) -> Vec<Vec<u8>> {
        cmd.args().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn a_command_keeps_its_arguments() {
        let long = vec![b'x'; SHARED_BYTES_MIN];
        let mut theirs = ::redis::cmd("SET");
        theirs.arg("key").arg(&long).arg("EX").arg(60);
        let ours = command(&theirs).unwrap();
        assert_eq!(args(&ours), [b"SET".to_vec(), b"key".to_vec(), long, b"EX".to_vec(), b"60".to_vec()]);
        let mut sent = Vec::new();
        ours.write_to(|part| sent.extend_from_slice(part.as_slice()));
        assert_eq!(sent, theirs.get_packed_command());
    }

    #[test]
    fn a_cursor_is_an_argument() {
        let mut theirs = ::redis::cmd("SSCAN");
        theirs.arg("key").cursor_arg(17).arg("COUNT").arg(5);
        let ours = command(&theirs).unwrap();
        assert_eq!(args(&ours), [&b"SSCAN"[..], b"key", b"17", b"COUNT", b"5"]);
    }

    #[test]
    fn what_is_no_command_is_refused() {
        assert_eq!(command(&::redis::Cmd::new()).unwrap_err().kind(), RedisKind::Client);
        for bytes in [&b"*1\r\n"[..], b"PING\r\n", b"*0\r\n", b"*1\r\n:1\r\n"] {
            assert_eq!(encoded_commands(bytes).unwrap_err().kind(), RedisKind::Client, "{bytes:?}");
        }
        let two = [::redis::cmd("PING").get_packed_command(), ::redis::cmd("TIME").get_packed_command()];
        assert_eq!(encoded_commands(&two.concat()).unwrap().len(), 2);
        assert_eq!(encoded_command(&two.concat()).unwrap_err().kind(), RedisKind::Client);
    }

    #[test]
    fn a_refused_transaction_is_an_aborted_one() {
        use ::redis::ServerErrorKind::{BusyLoading, ExecAbort};
        let error = refused(&ServerError::new("ERR unknown command 'X'"));
        assert_eq!(error.kind(), RedisKind::Server(ExecAbort));
        assert!(error.to_string().contains("unknown command 'X'"), "{error}");
        assert_eq!(refused(&ServerError::new("LOADING x")).kind(), RedisKind::Server(BusyLoading));
    }
}
