//! A conversation with a server: connects, brings the connection into its state, sends commands, follows redirections.
//!
//! Owns which frame answers which command, and when a new connection is needed: never in order to send a command a
//! second time. Does not own where commands come from.

use towline_resp::frame::Frame;

use super::connection::Connection;
use super::error::{CliError, one_line};
use super::interrupt::Interrupt;
use super::options::{Protocol, Settings};
use super::output::Output;
use super::state::{ConnectionState, Conversation, has_text_reply};
use super::target::Target;
use super::warn;
use crate::tls::Connector;

/// Redirections that one command follows. A cluster at rest needs one, one that moves slots two or three.
const REDIRECTS_MAX: usize = 16;

/// Whether a command was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The reply is no error, or there is none.
    Accepted,
    /// The reply is an error.
    Refused,
}

/// A server, the connection to it if there is one, and how replies are shown.
#[derive(Debug)]
pub(crate) struct Session {
    target: Target,
    tls: Option<Connector>,
    connection: Option<Connection>,
    state: ConnectionState,
    /// Whether a refused `HELLO 3` is worth a word.
    insists_on_resp3: bool,
    is_cluster: bool,
    is_verbose: bool,
    /// Whether somebody watches, who wants to know why things happen.
    is_interactive: bool,
    interrupt: Option<Interrupt>,
    output: Output,
}

/// What a `MOVED` or `ASK` error asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Redirection {
    slot: String,
    target: Target,
    is_ask: bool,
}

impl Session {
    /// A session that is not connected yet.
    pub(crate) fn new(settings: &Settings, output: Output) -> Self {
        Self {
            target: settings.target.clone(),
            tls: settings.tls.clone(),
            connection: None,
            state: ConnectionState::new(
                settings.db,
                settings.protocol != Protocol::Resp2,
                settings.credentials.clone(),
            ),
            insists_on_resp3: settings.protocol == Protocol::Resp3,
            is_cluster: settings.is_cluster,
            is_verbose: settings.is_verbose,
            is_interactive: false,
            interrupt: None,
            output,
        }
    }

    /// Makes Ctrl-C end waiting instead of the process.
    ///
    /// # Errors
    /// [`CliError::Local`].
    pub(crate) fn catch_interrupts(&mut self) -> Result<(), CliError> {
        let interrupt =
            Interrupt::install().map_err(|source| CliError::Local { what: "signal handler", source })?;
        self.interrupt = Some(interrupt);
        Ok(())
    }

    /// Explains on standard output what is not part of a reply, and makes Ctrl-C end waiting instead of the process.
    ///
    /// # Errors
    /// As [`Self::catch_interrupts`].
    pub(crate) fn become_interactive(&mut self) -> Result<(), CliError> {
        self.is_interactive = true;
        self.catch_interrupts()
    }

    /// Whether Ctrl-C was pressed since the last question; never without [`Self::catch_interrupts`].
    pub(crate) fn take_interrupt(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::take)
    }

    /// How replies are shown.
    pub(crate) const fn output(&self) -> &Output {
        &self.output
    }

    /// The prompt: where commands go, and in which state.
    pub(crate) fn prompt(&self) -> String {
        if self.connection.is_none() {
            return "not connected> ".to_owned();
        }
        let mut prompt = self.target.prompt();
        if self.state.db > 0 {
            prompt.push_str(&format!("[{}]", self.state.db));
        }
        if self.state.is_in_transaction() {
            prompt.push_str("(TX)");
        }
        prompt.push_str("> ");
        prompt
    }

    /// Turns to another server.
    ///
    /// # Errors
    /// As [`Self::connect`]; the session then has no connection and will try again.
    pub(crate) fn turn_to(&mut self, target: Target) -> Result<(), CliError> {
        self.target = target;
        self.disconnect();
        self.connect().map(|_| ())
    }

    /// The connection, made now if there is none.
    ///
    /// # Errors
    /// [`CliError::Connect`], and what a connection can suffer during the handshake.
    pub(crate) fn connect(&mut self) -> Result<&mut Connection, CliError> {
        if self.connection.is_none() {
            let mut connection = Connection::open(&self.target, self.tls.as_ref())?;
            self.note(|| format!("connected to {}", self.target));
            self.introduce(&mut connection)?;
            return Ok(self.connection.insert(connection));
        }
        self.connection.as_mut().ok_or(CliError::Closed)
    }

    /// Gives up the connection; the next command makes a new one.
    pub(crate) fn disconnect(&mut self) {
        if self.connection.take().is_some() {
            self.note(|| format!("disconnected from {}", self.target));
        }
        self.state.disconnected();
    }

    /// Brings a fresh connection into the session's state. Refusals are said and otherwise ignored, so that the
    /// server's answer to the command itself decides.
    fn introduce(&mut self, connection: &mut Connection) -> Result<(), CliError> {
        if let Some(credentials) = &self.state.credentials {
            let mut args: Vec<&[u8]> = vec![b"AUTH"];
            args.extend(credentials.user.as_deref());
            args.push(&credentials.password);
            if let Some(text) = ask(connection, &args, self.interrupt.as_ref())?.as_error() {
                warn(&format!("AUTH failed: {}", one_line(text)));
            }
        }
        if self.state.db > 0 {
            let db = self.state.db.to_string();
            let reply = ask(connection, &[b"SELECT", db.as_bytes()], self.interrupt.as_ref())?;
            if let Some(text) = reply.as_error() {
                warn(&format!("SELECT {db} failed: {}", one_line(text)));
                self.state.db = 0;
            }
        }
        if self.state.is_resp3 {
            let reply = ask(connection, &[b"HELLO", b"3"], self.interrupt.as_ref())?;
            if let Some(text) = reply.as_error() {
                if self.insists_on_resp3 {
                    warn(&format!("HELLO 3 failed: {}", one_line(text)));
                }
                self.state.is_resp3 = false;
            }
        }
        Ok(())
    }

    /// Runs one command and shows what it brings; messages and `MONITOR` lines until Ctrl-C or the end.
    ///
    /// # Errors
    /// [`CliError::Usage`] for commands that cannot be shown; otherwise what a connection can suffer, after which
    /// there is no connection, and the command may or may not have been executed.
    pub(crate) fn run(&mut self, args: &[Vec<u8>]) -> Result<Verdict, CliError> {
        let conversation = Conversation::of(args);
        if let Conversation::Unreadable(text) = conversation {
            return Err(CliError::Usage(text.to_owned()));
        }
        let is_fresh = self.connection.is_none();
        self.connect()?;
        if !is_fresh {
            self.revive()?;
        }
        let result = match conversation {
            Conversation::Confirmations(count) => self.confirmed(args, count),
            Conversation::Stream => self.stream(args),
            Conversation::Reply | Conversation::Unreadable(_) => self.reply_of(args),
        };
        match result {
            Err(CliError::Closed) if args[0].eq_ignore_ascii_case(b"shutdown") => {
                self.disconnect();
                Ok(Verdict::Accepted)
            }
            Err(error) => {
                self.disconnect();
                Err(error)
            }
            Ok(verdict) => Ok(verdict),
        }
    }

    /// Sends a command and returns its reply without showing it; for the modes, which need no redirections.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) fn request<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Result<Frame, CliError> {
        self.connect()?.send(args)?;
        self.next_reply()
    }

    /// Sends commands at once and returns their replies in order.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) fn request_all(&mut self, commands: &[Vec<&[u8]>]) -> Result<Vec<Frame>, CliError> {
        let mut bytes = Vec::new();
        for command in commands {
            towline_resp::frame::encode_command(command, &mut bytes);
        }
        self.connect()?.send_encoded(&bytes)?;
        commands.iter().map(|_| self.next_reply()).collect()
    }

    /// Shows pushes that came in the meantime, and replaces a connection that the server has closed: nothing has
    /// been sent on it since, so this is safe.
    fn revive(&mut self) -> Result<(), CliError> {
        match self.show_pushes() {
            Err(CliError::Closed | CliError::Socket(_)) => {
                self.disconnect();
                self.connect().map(|_| ())
            }
            other => other,
        }
    }

    /// Shows pushes that have arrived.
    ///
    /// # Errors
    /// [`CliError::Closed`] if the server has closed the connection; as [`Self::run`].
    pub(crate) fn show_pushes(&mut self) -> Result<(), CliError> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        for frame in connection.unasked()? {
            self.output.push(&frame)?;
        }
        Ok(())
    }

    fn reply_of(&mut self, args: &[Vec<u8>]) -> Result<Verdict, CliError> {
        let mut is_asking = false;
        for _ in 0..=REDIRECTS_MAX {
            if std::mem::take(&mut is_asking) {
                self.request(&["ASKING"])?;
            }
            self.connect()?.send(args)?;
            if !self.state.sent(args) {
                return Ok(Verdict::Accepted);
            }
            let reply = self.next_reply()?;
            let redirection = self.redirection(&reply);
            let Some(redirection) = redirection else { return self.show(args, &reply) };
            if self.is_interactive {
                let Redirection { slot, target, .. } = &redirection;
                self.output.line(&format!("-> Redirected to slot [{slot}] located at {target}"))?;
            }
            is_asking = redirection.is_ask;
            self.turn_to(redirection.target)?;
        }
        Err(CliError::Usage(format!(
            "more than {REDIRECTS_MAX} redirections: the nodes do not agree on the slot's owner; try again later"
        )))
    }

    /// Where to go instead. A transaction stays where it began: its queue cannot move.
    fn redirection(&self, reply: &Frame) -> Option<Redirection> {
        if !self.is_cluster || self.state.is_in_transaction() {
            return None;
        }
        let text = std::str::from_utf8(reply.as_error()?).ok()?;
        let mut words = text.split(' ');
        let is_ask = match words.next()? {
            "ASK" => true,
            "MOVED" => false,
            _ => return None,
        };
        let slot = words.next()?.to_owned();
        Some(Redirection { slot, target: self.target.redirected(words.next()?)?, is_ask })
    }

    fn show(&mut self, args: &[Vec<u8>], reply: &Frame) -> Result<Verdict, CliError> {
        self.state.answered(args, reply);
        self.output.reply(reply, has_text_reply(args))?;
        Ok(if reply.as_error().is_some() { Verdict::Refused } else { Verdict::Accepted })
    }

    /// An unsubscribe: in RESP3 its confirmations are pushes.
    fn confirmed(&mut self, args: &[Vec<u8>], count: usize) -> Result<Verdict, CliError> {
        self.connect()?.send(args)?;
        if !self.state.sent(args) {
            return Ok(Verdict::Accepted);
        }
        let mut missing = count;
        while missing > 0 {
            let frame = self.next_frame()?;
            match &frame {
                Frame::Array(parts) | Frame::Push(parts) if begins_with(parts, &args[0]) => {
                    missing -= 1;
                    self.output.reply(&frame, false)?;
                }
                Frame::Push(_) => self.output.push(&frame)?,
                _ => return self.show(args, &frame),
            }
        }
        Ok(Verdict::Accepted)
    }

    /// Shows what a subscription or `MONITOR` brings, until the connection ends or Ctrl-C ends it.
    fn stream(&mut self, args: &[Vec<u8>]) -> Result<Verdict, CliError> {
        self.connect()?.send(args)?;
        if !self.state.sent(args) {
            return Ok(Verdict::Accepted);
        }
        let first = self.next_frame()?;
        let is_queued = matches!(&first, Frame::Simple(text) if &text[..] == b"QUEUED");
        if is_queued || first.as_error().is_some() {
            return self.show(args, &first);
        }
        if self.is_interactive {
            self.output.line("Reading messages... (press Ctrl-C to leave)")?;
        }
        self.output.reply(&first, false)?;
        loop {
            let frame = self.next_frame()?;
            self.output.reply(&frame, false)?;
        }
    }

    /// The next frame that is no push; pushes before it are shown.
    fn next_reply(&mut self) -> Result<Frame, CliError> {
        loop {
            match self.next_frame()? {
                push @ Frame::Push(_) => self.output.push(&push)?,
                frame => return Ok(frame),
            }
        }
    }

    fn next_frame(&mut self) -> Result<Frame, CliError> {
        let connection = self.connection.as_mut().ok_or(CliError::Closed)?;
        connection.receive(self.interrupt.as_ref())
    }

    fn note(&self, text: impl FnOnce() -> String) {
        if self.is_verbose {
            warn(&text());
        }
    }
}

/// A command of the handshake; pushes are none of its business.
fn ask(
    connection: &mut Connection,
    args: &[&[u8]],
    interrupt: Option<&Interrupt>,
) -> Result<Frame, CliError> {
    connection.send(args)?;
    loop {
        match connection.receive(interrupt)? {
            Frame::Push(_) => {}
            frame => return Ok(frame),
        }
    }
}

fn begins_with(parts: &[Frame], name: &[u8]) -> bool {
    matches!(parts.first(), Some(Frame::Bulk(word) | Frame::Simple(word)) if word.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests;
