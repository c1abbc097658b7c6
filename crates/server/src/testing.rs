//! A server without sockets, for the tests of commands.
//!
//! ```ignore
//! let mut server = Server::new();
//! assert_eq!(server.run(&["SET", "k", "v"]), "+OK\r\n");
//! ```

use crate::blocking::Waiter;
use crate::client::Addresses;
use crate::command::{Ctx, OwnedArgs};
use crate::config::Config;
use crate::execute::{Flow, Local, resolve, run};
use crate::persistence::disk::RealDisk;
use crate::session::Session;
use crate::shared::Shared;
use std::sync::Arc;
use towline_resp::Proto;
use towline_resp::writer::Writer;
use towline_store::keyspace::Keyspace;
use towline_store::notify;

/// The program's allocator, so that its statistics mean something in tests as well.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// One worker with one client; time stands still until [`Server::advance`].
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) local: Local,
    pub(crate) session: Session,
    pub(crate) now_ms: u64,
}

/// The first instant of a test.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

impl Server {
    /// A server with the default configuration and a RESP2 client.
    pub(crate) fn new() -> Self {
        Self::with(Config { workers: 1, ..Config::default() })
    }

    /// A server with this configuration.
    pub(crate) fn with(config: Config) -> Self {
        Self::with_shared(Shared::new(config, Arc::new(RealDisk), "0".repeat(40), START_MS))
    }

    /// A server with this shared state.
    pub(crate) fn with_shared(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        let client = shared.clients.add(Addresses::default(), START_MS);
        Self { local: Local::new(0, shared, 1), session: Session::new(client, true), now_ms: START_MS }
    }

    /// From now on the client speaks RESP3.
    pub(crate) fn resp3(mut self) -> Self {
        self.session.speak(Proto::Resp3);
        self
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    /// Changes so far.
    pub(crate) fn dirty(&mut self) -> u64 {
        self.local.shared.stats.worker(0).absorb(&mut self.local.changes);
        self.local.shared.stats.dirty()
    }

    /// Reads so far that found a key, and those that found none.
    pub(crate) fn hits_and_misses(&mut self) -> (u64, u64) {
        let stats = &self.local.shared.stats;
        stats.worker(0).absorb(&mut self.local.changes);
        (stats.sum(|worker| &worker.hits), stats.sum(|worker| &worker.misses))
    }

    /// Runs a command and returns the reply's bytes.
    pub(crate) fn run_bytes(&mut self, args: &[&[u8]]) -> Vec<u8> {
        let args = OwnedArgs::from_slices(args);
        let mut out = Writer::new(self.session.proto);
        match run(&mut self.local, &mut self.session, args.args(), &mut out, self.now_ms) {
            Flow::Blocked(waiter) => {
                crate::blocking::forget(&mut self.local, &waiter, self.now_ms);
                return b"(blocked)".to_vec();
            }
            Flow::Paused => return b"(paused)".to_vec(),
            Flow::Crowded => return b"(crowded)".to_vec(),
            Flow::Parked(_) => return b"(parked)".to_vec(),
            Flow::Next | Flow::Close => {}
        }
        out.segments().collect::<Vec<_>>().concat()
    }

    /// Runs a command and returns the reply as text, `\r\n` shown as a space, without the last one.
    pub(crate) fn run(&mut self, args: &[&str]) -> String {
        let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        String::from_utf8_lossy(&self.run_bytes(&args)).replace("\r\n", " ").trim_end().to_owned()
    }

    /// Runs the words of a line as a command.
    pub(crate) fn line(&mut self, line: &str) -> String {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// The session of another client.
    pub(crate) fn second(&self) -> Session {
        let client = self.local.shared.clients.add(Addresses::default(), self.now_ms);
        Session::new(client, true)
    }

    /// Runs the words of a line as a command of another client.
    pub(crate) fn line_as(&mut self, session: &mut Session, line: &str) -> String {
        std::mem::swap(&mut self.session, session);
        let reply = self.line(line);
        std::mem::swap(&mut self.session, session);
        reply
    }

    /// What was pushed to the client since the last look, as text.
    pub(crate) fn pushed(&self) -> String {
        pushed(&self.session)
    }

    /// Runs the words of a line as a blocking command of a client of its own in the same database, which is left
    /// waiting.
    ///
    /// # Panics
    /// If the command answers at once.
    pub(crate) fn wait(&mut self, line: &str) -> Arc<Waiter> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        let args = OwnedArgs::from_slices(&words);
        let client = self.local.shared.clients.add(Addresses::default(), self.now_ms);
        let mut session = Session::new(client, true);
        (session.proto, session.db) = (self.session.proto, self.session.db);
        let mut out = Writer::new(session.proto);
        match run(&mut self.local, &mut session, args.args(), &mut out, self.now_ms) {
            Flow::Blocked(waiter) => waiter,
            flow => panic!("{line} does not wait: {flow:?}, {out:?}"),
        }
    }

    /// Runs the words of a line as a blocking command of the client itself, which is left waiting.
    ///
    /// # Panics
    /// If the command answers at once.
    pub(crate) fn wait_here(&mut self, line: &str) -> Arc<Waiter> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        let args = OwnedArgs::from_slices(&words);
        let mut out = Writer::new(self.session.proto);
        match run(&mut self.local, &mut self.session, args.args(), &mut out, self.now_ms) {
            Flow::Blocked(waiter) => waiter,
            flow => panic!("{line} does not wait: {flow:?}, {out:?}"),
        }
    }

    /// The reply that a waiter was served with, shown as [`Server::run`] does; "" while it waits.
    pub(crate) fn served(waiter: &Waiter) -> String {
        let reply = waiter.take_reply().unwrap_or_default().parts.concat();
        String::from_utf8_lossy(&reply).replace("\r\n", " ").trim_end().to_owned()
    }

    /// Runs the words of a line as a command and returns the keyspace notifications it sets off instead of publishing
    /// them, as `event key`.
    ///
    /// # Panics
    /// If the command fails.
    pub(crate) fn events(&mut self, line: &str) -> Vec<String> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        let args = OwnedArgs::from_slices(&words);
        let (_, row) = resolve(args.args()).expect("the command is known");
        let mut settings = (*self.local.settings).clone();
        settings.notify = notify::parse(b"KEA").expect("these letters are classes");
        let shared = Arc::clone(&self.local.shared);
        let mut out = Writer::new(self.session.proto);
        let (changes, db) = (&mut self.local.changes, self.session.db);
        let ks = Keyspace::hold_all(&shared.store, &settings, changes, db, self.now_ms);
        let mut ctx = Ctx {
            ks,
            out: &mut out,
            server: &shared,
            session: Some(&mut self.session),
            worker: 0,
            blocked: None,
            is_held_back: false,
            parked: None,
        };
        (row.run)(&mut ctx, args.args()).expect("the command succeeds");
        drop(ctx);
        let notes = std::mem::take(&mut self.local.changes.notes);
        notes.iter().map(|note| format!("{} {}", note.event, String::from_utf8_lossy(&note.key))).collect()
    }
}

/// What was pushed to a client since the last look, as text, `\r\n` shown as a space, without the last one.
pub(crate) fn pushed(session: &Session) -> String {
    let bytes: Vec<u8> = session.client.take_outbox().into_iter().flatten().collect();
    String::from_utf8_lossy(&bytes).replace("\r\n", " ").trim_end().to_owned()
}
