//! The client for programs without an async runtime.
//!
//! Owns the one background thread of the process on which all clients of this kind live, and the waiting of their
//! callers. Does not own what is said to the server: that is the async [`crate::Client`], whose commands, options and
//! errors these are.
//!
//! The background thread runs a current-thread runtime with the connections; a call is polled on its caller's own
//! thread and parks it meanwhile. So calls cannot starve each other: a caller that is slow, or blocked in `BLPOP`,
//! costs the others nothing.
//!
//! ```no_run
//! use towline_client::blocking::{Client, TypedCommands};
//! use towline_client::cmd;
//!
//! let client = Client::connect("redis://localhost")?;
//! client.set("key", "value")?;
//! let value: String = client.get("key")?;
//! let length: u64 = client.query(cmd("STRLEN").arg("key"))?;
//! // Every command is a method, as of the async client: with types that replies have by nature, or that you choose.
//! let members = TypedCommands::sadd(&client, "set", ["a", "b"])?;
//! # Ok::<(), towline_client::Error>(())
//! ```
//!
//! # Inside a runtime
//!
//! A call that parks a thread of an async runtime stops every task that runs there. So each call fails with
//! [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) on a thread that is inside a tokio runtime, and nothing is sent: use
//! [`crate::Client`] there. Threads that tokio keeps for blocking work look the same from here; say so by
//! [`Client::on_blocking_thread`].

mod any;
mod typed;

pub use any::Commands;
pub use typed::TypedCommands;

use std::io;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use towline_client_proto::Error;
use towline_resp::frame::Frame;

use crate::cmd::Cmd;
use crate::options::ConnectOptions;
use crate::pipeline::{Pipeline, Transacted};
use crate::script::ScriptCall;
use crate::value::FromReply;

/// A handle to one server for callers that wait on their own thread. Cloning is cheap; all clones share one
/// connection and every thread may use them at once.
#[derive(Clone, Debug)]
pub struct Client {
    client: crate::Client,
    is_blocking_thread: bool,
}

/// One connection for one caller, from [`Client::lease`]; see [`crate::Lease`].
#[derive(Debug)]
pub struct Lease {
    // Dropped in this order: the lease keeps the connection only if no other handle uses it.
    client: Client,
    lease: crate::Lease,
}

impl Lease {
    /// As [`crate::Lease::is_moving`].
    pub fn is_moving(&self) -> bool {
        self.lease.is_moving()
    }

    /// As [`crate::Lease::moving_until`].
    pub fn moving_until(&self) -> Option<std::time::Instant> {
        self.lease.moving_until()
    }
}

impl Deref for Lease {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Client {
    /// As [`crate::Client::connect`].
    ///
    /// # Errors
    /// As there; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) inside a runtime, or if no thread can be started.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Self::new(wait(crate::Client::connect(url), false)?)
    }

    /// As [`crate::Client::open`].
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn open(options: ConnectOptions) -> Result<Self, Error> {
        Self::new(wait(crate::Client::open(options), false)?)
    }

    /// As [`crate::Client::lazy`]: returns at once, the connection comes later. It may be called anywhere.
    ///
    /// # Errors
    /// As there.
    pub fn lazy(options: ConnectOptions) -> Result<Self, Error> {
        let _context = background()?.enter();
        Self::new(crate::Client::lazy(options))
    }

    fn new(client: Result<crate::Client, Error>) -> Result<Self, Error> {
        client.map(|client| Self { client, is_blocking_thread: false })
    }

    /// A handle whose calls do not ask whether they are inside a runtime, for closures of `spawn_blocking` and
    /// `block_in_place`. On any other thread of a runtime its calls stop that runtime's tasks.
    pub const fn on_blocking_thread(mut self) -> Self {
        self.is_blocking_thread = true;
        self
    }

    /// The async client behind it.
    pub const fn as_async(&self) -> &crate::Client {
        &self.client
    }

    /// As [`crate::Client::ready`].
    ///
    /// # Errors
    /// As there; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) inside a runtime.
    pub fn ready(&self) -> Result<(), Error> {
        self.wait(self.client.ready())?
    }

    /// As [`crate::Client::get`].
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn get<T: FromReply>(&self, key: impl AsRef<[u8]>) -> Result<T, Error> {
        self.wait(self.client.get(key))?
    }

    /// As [`crate::Client::set`].
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.wait(self.client.set(key, value))?
    }

    /// Sends one command, waits for its reply until its deadline, and converts it.
    ///
    /// # Errors
    /// As [`Cmd::query`]; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) inside a runtime.
    pub fn query<T: FromReply>(&self, cmd: Cmd) -> Result<T, Error> {
        self.wait(cmd.query(&self.client))?
    }

    /// As [`Pipeline::query`].
    ///
    /// # Errors
    /// As there; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) inside a runtime.
    pub fn pipeline<T: FromReply>(&self, pipeline: Pipeline) -> Result<T, Error> {
        self.wait(pipeline.query(&self.client))?
    }

    /// As [`Pipeline::results`].
    ///
    /// # Errors
    /// As there; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) inside a runtime.
    pub fn results(&self, pipeline: Pipeline) -> Result<Vec<Result<Frame, Error>>, Error> {
        self.wait(pipeline.results(&self.client))?
    }

    /// As [`Pipeline::transact`].
    ///
    /// # Errors
    /// As there; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) inside a runtime.
    pub fn transact<T: FromReply>(&self, pipeline: Pipeline) -> Result<Transacted<T>, Error> {
        self.wait(pipeline.transact(&self.client))?
    }

    /// As [`ScriptCall::query`].
    ///
    /// # Errors
    /// As there; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) inside a runtime.
    pub fn script<T: FromReply>(&self, call: ScriptCall) -> Result<T, Error> {
        self.wait(call.query(&self.client))?
    }

    /// As [`crate::Client::lease`].
    ///
    /// # Errors
    /// As there; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) inside a runtime.
    pub fn lease(&self) -> Result<Lease, Error> {
        let lease = self.wait(self.client.lease())??;
        let client =
            Self { client: crate::Client::clone(&lease), is_blocking_thread: self.is_blocking_thread };
        Ok(Lease { client, lease })
    }

    fn wait<F: Future>(&self, future: F) -> Result<F::Output, Error> {
        wait(future, self.is_blocking_thread)
    }
}

impl Commands for Client {
    fn run<T: FromReply>(&self, cmd: Cmd) -> Result<T, Error> {
        self.query(cmd)
    }
}

impl TypedCommands for Client {
    fn run<T: FromReply>(&self, cmd: Cmd) -> Result<T, Error> {
        self.query(cmd)
    }
}

/// The runtime on which connections live, started with the first client. It lives as long as the process.
fn background() -> Result<&'static tokio::runtime::Handle, Error> {
    static BACKGROUND: OnceLock<Result<tokio::runtime::Handle, Error>> = OnceLock::new();
    BACKGROUND
        .get_or_init(|| {
            start()
                .map_err(|error| Error::misuse(format!("the background thread cannot be started: {error}")))
        })
        .as_ref()
        .map_err(Clone::clone)
}

fn start() -> io::Result<tokio::runtime::Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("towline-client".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}

/// Polls a future on this thread until it is ready. Its timers, and what it spawns, belong to the background thread.
pub(crate) fn wait<F: Future>(future: F, is_blocking_thread: bool) -> Result<F::Output, Error> {
    if !is_blocking_thread && tokio::runtime::Handle::try_current().is_ok() {
        return Err(Error::misuse(
            "a blocking call inside an async runtime would stop its tasks: use the async client, or \
             `Client::on_blocking_thread` in `spawn_blocking`",
        ));
    }
    let _context = background()?.enter();
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return Ok(output),
            // It may return for no reason, which costs one poll.
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use towline_client_proto::{ErrorKind, Sent};

    fn nowhere() -> ConnectOptions {
        "redis://127.0.0.1:1".parse::<ConnectOptions>().unwrap()
    }

    #[test]
    fn a_deadline_ends_a_call_although_nothing_answers() {
        let client = Client::lazy(nowhere()).unwrap();
        let error = client.query::<()>(crate::cmd("PING").deadline(Duration::from_millis(20))).unwrap_err();
        assert_eq!((error.kind().clone(), error.sent()), (ErrorKind::Deadline, Sent::No));
        let error = Client::open(nowhere().connect_timeout(Duration::from_millis(50))).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Connect(_)), "{error}");
    }

    #[tokio::test]
    async fn inside_a_runtime_a_call_is_refused_and_says_why() {
        let client = Client::lazy(nowhere()).unwrap();
        let error = client.get::<()>("key").unwrap_err();
        assert!(error.to_string().contains("use the async client"), "{error}");
        let allowed = client.on_blocking_thread();
        let late = crate::cmd("PING").deadline(Duration::from_millis(1));
        let outcome = tokio::task::spawn_blocking(move || allowed.query::<()>(late)).await.unwrap();
        assert_eq!(*outcome.unwrap_err().kind(), ErrorKind::Deadline);
    }
}
