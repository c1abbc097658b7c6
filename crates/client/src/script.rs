//! Lua scripts.
//!
//! Owns calling a script by its digest where the server has it, and by its source where it has not. Does not own
//! functions (`FCALL` is a command like any other), nor what a script does.
//!
//! A server forgets scripts: at a restart, after `SCRIPT FLUSH`, and newer ones when they have too many. So the first
//! call on each connection sends the source, which also makes the server remember it; later ones send the digest;
//! and a `NOSCRIPT`, which proves that nothing ran, is followed by the source without the caller noticing. What is
//! known belongs to one connection's generation, because the next one may lead to another server.

mod sha1;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use towline_client_proto::{Error, Generation, Order, Reply};
use towline_resp::frame::Frame;
use towline_spec::SideEffect;

use crate::args::{Args, ToArgs};
use crate::client::{Client, Way, convert};
use crate::cmd::{Cmd, CmdOptions, RetryChoice};
use crate::engine::Engine;
use crate::value::FromReply;

/// A Lua script. Cloning is cheap; make it once and keep it.
///
/// ```no_run
/// # async fn take(client: towline_client::Client) -> Result<(), towline_client::Error> {
/// use towline_client::Script;
///
/// let script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
/// let total: i64 = script.key("total").arg(5).query(&client).await?;
/// # Ok(())
/// # }
/// ```
///
/// A script counts as one that writes and is never repeated once it may have run, unless it is
/// [`read_only`](Self::read_only).
#[derive(Clone)]
pub struct Script {
    source: Arc<Source>,
    is_read_only: bool,
}

struct Source {
    text: Bytes,
    digest: sha1::Digest,
    /// The same in hexadecimal.
    hex: Box<str>,
}

impl Script {
    /// A script of this source. Its digest is computed here, once.
    pub fn new(source: impl AsRef<[u8]>) -> Self {
        let text = Bytes::copy_from_slice(source.as_ref());
        let digest = sha1::digest(&text);
        let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
        Self { source: Arc::new(Source { text, digest, hex }), is_read_only: false }
    }

    /// The script only reads: it is called by `EVAL_RO`, the server holds it to that, and a call whose reply is lost
    /// with its connection is repeated like any read. Needs Redis 7.0 or Valkey.
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Its SHA-1 in hexadecimal, by which servers know it.
    pub fn digest(&self) -> &str {
        &self.source.hex
    }

    /// Begins a call.
    pub fn call(&self) -> ScriptCall {
        ScriptCall {
            script: self.clone(),
            keys: Args::default(),
            args: Args::default(),
            options: CmdOptions::default(),
        }
    }

    /// Begins a call with a key, or several.
    pub fn key(&self, key: impl ToArgs) -> ScriptCall {
        self.call().key(key)
    }

    /// Begins a call with an argument, or several.
    pub fn arg(&self, arg: impl ToArgs) -> ScriptCall {
        self.call().arg(arg)
    }

    /// Makes the server remember the script without running it (`SCRIPT LOAD`), for instance before its first call is
    /// urgent. No call depends on it.
    ///
    /// # Errors
    /// As [`Cmd::query`]; the server's error if the script does not compile.
    ///
    /// # Cancel safety
    /// As [`Cmd::query`].
    pub async fn load(&self, client: &Client) -> Result<(), Error> {
        Cmd::new("SCRIPT LOAD").arg(&self.source.text).query::<()>(client).await?;
        if let Way::Endpoint(_) = &client.inner.way {
            client.inner.engines().for_each(|engine| self.remember(engine));
        }
        Ok(())
    }

    fn is_known(&self, engine: &Engine) -> bool {
        let generation = engine.lock().bridge.generation();
        let known = engine.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        known.generation == generation && known.digests.contains(&self.source.digest)
    }

    /// The connection may have changed since the reply came: then a call by digest finds out.
    fn remember(&self, engine: &Engine) {
        let generation = engine.lock().bridge.generation();
        let mut known = engine.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        if known.generation != generation || known.digests.len() >= KNOWN_MAX {
            *known = KnownScripts { generation, digests: HashSet::new() };
        }
        known.digests.insert(self.source.digest);
    }

    fn forget(&self, engine: &Engine) {
        engine.scripts.lock().unwrap_or_else(PoisonError::into_inner).digests.remove(&self.source.digest);
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("digest", &self.digest())
            .field("source_bytes", &self.source.text.len())
            .field("is_read_only", &self.is_read_only)
            .finish()
    }
}

/// Most scripts that are known of one connection. With more all are forgotten, which costs each its source once.
const KNOWN_MAX: usize = 1024;

/// Which scripts the server of one connection has.
#[derive(Debug, Default)]
pub(crate) struct KnownScripts {
    generation: Generation,
    digests: HashSet<sha1::Digest>,
}

/// One call of a [`Script`], with its keys and arguments.
#[derive(Clone)]
#[must_use = "a call does nothing until it is sent"]
pub struct ScriptCall {
    script: Script,
    keys: Args,
    args: Args,
    options: CmdOptions,
}

impl ScriptCall {
    /// Appends a key, or several.
    pub fn key(mut self, key: impl ToArgs) -> Self {
        key.write_args(&mut self.keys);
        self
    }

    /// Appends an argument, or several.
    pub fn arg(mut self, arg: impl ToArgs) -> Self {
        arg.write_args(&mut self.args);
        self
    }

    /// As [`Cmd::deadline`]; it holds for the call as a whole.
    pub const fn deadline(mut self, after: std::time::Duration) -> Self {
        self.options.deadline = Some(after);
        self
    }

    /// As [`Cmd::no_retry`].
    pub const fn no_retry(mut self) -> Self {
        self.options.retry = RetryChoice::Never;
        self
    }

    /// As [`Cmd::fire_and_forget`]. It is sent with its source, because nobody would hear of a `NOSCRIPT`.
    pub const fn fire_and_forget(mut self) -> Self {
        self.options.is_fire_and_forget = true;
        self
    }

    /// The call as a command that carries the source, so that no server state can make it fail: for pipelines and
    /// transactions.
    pub fn to_cmd_eval(&self) -> Cmd {
        let name = if self.script.is_read_only { "EVAL_RO" } else { "EVAL" };
        self.command(Cmd::new(name).arg(&self.script.source.text))
    }

    /// The call as a command that names the script by its digest. It fails with `NOSCRIPT` where the server does not
    /// have it.
    pub fn to_cmd_evalsha(&self) -> Cmd {
        let name = if self.script.is_read_only { "EVALSHA_RO" } else { "EVALSHA" };
        self.command(Cmd::new(name).arg(self.script.digest()))
    }

    fn command(&self, begun: Cmd) -> Cmd {
        let mut cmd = begun.arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        *cmd.options_mut() = self.options;
        cmd
    }

    /// Runs the script and converts its reply.
    ///
    /// # Errors
    /// As [`Cmd::query`], but never `NOSCRIPT`.
    ///
    /// # Cancel safety
    /// As [`Cmd::query`].
    pub async fn query<T: FromReply>(self, client: &Client) -> Result<T, Error> {
        convert(self.send(client).await.map(Reply::One))
    }

    async fn send(self, client: &Client) -> Result<Frame, Error> {
        let Self { script, options, .. } = &self;
        // In a cluster: of the node that has the keys. If they have moved by then, the new node answers for itself.
        let engine = &match &client.inner.way {
            Way::Endpoint(engine) => {
                let further = &client.inner.further;
                Arc::clone(further.engine_for(engine, || self.to_cmd_evalsha().slot()))
            }
            Way::Cluster(cluster) => {
                cluster.engine_for(&self.to_cmd_evalsha(), client.inner.command_timeout).await?
            }
        };
        let effect = if script.is_read_only { SideEffect::ReadOnly } else { SideEffect::NonIdempotent };
        let mut deadline = None;
        if client.inner.has_script_cache && !options.is_fire_and_forget && script.is_known(engine) {
            let cmd = self.to_cmd_evalsha();
            let order = client.order(&cmd, effect);
            deadline = Some(order.deadline);
            match client.send_as(&cmd, order).await {
                Err(error) if is_noscript(&error) => script.forget(engine),
                outcome => return outcome,
            }
        }
        let cmd = self.to_cmd_eval();
        let order = client.order(&cmd, effect);
        let order = Order { deadline: deadline.unwrap_or(order.deadline), ..order };
        let outcome = client.send_as(&cmd, order).await;
        if outcome.is_ok() && !options.is_fire_and_forget {
            script.remember(engine);
        }
        outcome
    }
}

impl fmt::Debug for ScriptCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptCall")
            .field("script", &self.script)
            .field("key_count", &self.keys.len())
            .field("arg_count", &self.args.len())
            .field("options", &self.options)
            .finish()
    }
}

/// Whether the server does not have the script. A running script may raise an error of the same code; servers add to
/// it where it came from.
fn is_noscript(error: &Error) -> bool {
    match error.kind() {
        towline_client_proto::ErrorKind::Server(answer) => {
            answer.code() == "NOSCRIPT" && !answer.message().contains(" script: ")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_client_proto::ServerError;

    fn words(cmd: &Cmd) -> Vec<String> {
        cmd.args().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
    }

    #[test]
    fn a_call_is_a_command_in_two_forms() {
        let script = Script::new("return 1");
        assert_eq!(script.digest(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        let call = script.key(("a", "b")).arg(7).arg(Bytes::from(vec![b'x'; 5000])).no_retry();
        assert_eq!(words(&call.to_cmd_eval())[..6], ["EVAL", "return 1", "2", "a", "b", "7"]);
        assert_eq!(words(&call.to_cmd_evalsha())[..4], ["EVALSHA", script.digest(), "2", "a"]);
        assert_eq!(call.to_cmd_eval().args().last().unwrap().len(), 5000);
        assert_eq!(call.to_cmd_eval().options().retry, RetryChoice::Never);
        assert_eq!(call.to_cmd_eval().effect(), SideEffect::NonIdempotent);
        let read = script.read_only().call();
        assert_eq!(words(&read.to_cmd_eval()), ["EVAL_RO", "return 1", "0"]);
        assert_eq!(read.to_cmd_evalsha().effect(), SideEffect::ReadOnly);
    }

    #[test]
    fn an_error_of_a_running_script_is_no_missing_script() {
        let error = |text| Error::server(ServerError::new(text));
        assert!(is_noscript(&error("NOSCRIPT No matching script. Please use EVAL.")));
        assert!(!is_noscript(&error("NOSCRIPT none script: 3f, on @user_script:1.")));
        assert!(!is_noscript(&error("ERR No matching script")));
    }
}
