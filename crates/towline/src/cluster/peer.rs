//! A conversation with one node.
//!
//! Owns the connection, the patience, and which reply belongs to which command. Does not send a command twice: whether that does harm
//! is known only to who asked for it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use towline_resp::frame::{Frame, encode_command};

use super::address::Address;
use super::error::ClusterError;
use crate::cli::{CliError, Connection, Credentials, Target, one_line};
use crate::tls::Connector;

/// Patience with a node that is to accept a connection. Nodes that are gone without a trace would hold up a survey for minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Commands on their way at once: their replies fit into the buffers of a socket, so neither side waits for the other for ever.
const PIPELINE_MAX: usize = 512;

/// Words of a command that an error names.
const WORDS_NAMED: usize = 3;

/// A command's words.
pub(super) type Words = Vec<Bytes>;

/// Makes a command of a text: its words, split at blanks.
pub(super) fn words(text: &str) -> Words {
    text.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

/// How nodes are reached.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// How to speak TLS, if at all.
    pub(super) tls: Option<Connector>,
    /// Who asks.
    pub(super) credentials: Option<Credentials>,
    /// Patience with a reply.
    pub(super) timeout: Duration,
}

/// A node that is spoken to.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: Address,
    access: Access,
    connection: Option<Connection>,
    /// Whether a transaction of changes is one change there; not known before it is asked.
    is_agreeing: Option<bool>,
}

impl Peer {
    /// Connects.
    ///
    /// # Errors
    /// [`ClusterError::Node`]; [`ClusterError::Refused`] if the credentials are wrong.
    pub(super) fn open(address: Address, access: &Access) -> Result<Self, ClusterError> {
        let mut peer = Self { address, access: access.clone(), connection: None, is_agreeing: None };
        peer.connect()?;
        Ok(peer)
    }

    fn connect(&mut self) -> Result<(), ClusterError> {
        if self.connection.is_some() {
            return Ok(());
        }
        let Address { host, port } = self.address.clone();
        let target = Target::Tcp { host, port };
        let opened = Connection::open_within(&target, self.access.tls.as_ref(), CONNECT_TIMEOUT);
        let connection = opened.and_then(|connection| connection.set_nonblocking().map(|()| connection));
        self.connection = Some(connection.map_err(|source| self.broken(source))?);
        if let Some(credentials) = self.access.credentials.clone() {
            let mut auth = vec![Bytes::from_static(b"AUTH")];
            auth.extend(credentials.user.map(Bytes::from));
            auth.push(Bytes::from(credentials.password));
            self.call(&auth)?;
        }
        Ok(())
    }

    fn broken(&self, source: CliError) -> ClusterError {
        ClusterError::Node { node: self.address.to_string(), source }
    }

    /// Sends a command and returns what comes, errors included.
    ///
    /// # Errors
    /// [`ClusterError::Node`], [`ClusterError::Silent`]: the command may have run.
    pub(super) fn ask(&mut self, command: &[Bytes]) -> Result<Frame, ClusterError> {
        let mut replies = self.ask_all(std::slice::from_ref(&command))?;
        replies.pop().ok_or_else(|| self.unexpected(command))
    }

    /// As [`Self::ask`], with an error reply as an error.
    ///
    /// # Errors
    /// As there, and [`ClusterError::Refused`].
    pub(super) fn call(&mut self, command: &[Bytes]) -> Result<Frame, ClusterError> {
        let frame = self.ask(command)?;
        match frame.as_error() {
            Some(text) => Err(self.refused(command, text)),
            None => Ok(frame),
        }
    }

    /// Sends commands at once and returns their replies in order, errors included.
    ///
    /// # Errors
    /// As [`Self::ask`]; any of the commands may have run.
    pub(super) fn ask_all<C: AsRef<[Bytes]>>(&mut self, commands: &[C]) -> Result<Vec<Frame>, ClusterError> {
        let mut replies = Vec::with_capacity(commands.len());
        for chunk in commands.chunks(PIPELINE_MAX) {
            self.send(chunk)?;
            self.receive(chunk, &mut replies)?;
        }
        Ok(replies)
    }

    /// As [`Self::ask_all`], for changes of the cluster. Towline's nodes agree on each of them, which takes a write to disk at a
    /// majority; in a transaction they agree on all at once. Other servers get them one by one.
    ///
    /// # Errors
    /// As [`Self::ask`], and [`ClusterError::Refused`] if the transaction as a whole is.
    pub(super) fn ask_changes(&mut self, commands: &[Words]) -> Result<Vec<Frame>, ClusterError> {
        let is_agreeing = match self.is_agreeing {
            Some(known) => known,
            None => self.text("INFO server")?.lines().any(|line| line.starts_with("towline_version:")),
        };
        self.is_agreeing = Some(is_agreeing);
        if !is_agreeing || commands.len() < 2 {
            return self.ask_all(commands);
        }
        let mut replies = Vec::with_capacity(commands.len());
        for chunk in commands.chunks(PIPELINE_MAX) {
            let exec = words("EXEC");
            let mut whole = vec![words("MULTI")];
            whole.extend_from_slice(chunk);
            whole.push(exec.clone());
            match self.ask_all(&whole)?.pop() {
                Some(Frame::Array(results)) if results.len() == chunk.len() => replies.extend(results),
                Some(frame) => {
                    let error = frame.as_error().map(|text| self.refused(&exec, text));
                    return Err(error.unwrap_or_else(|| self.unexpected(&exec)));
                }
                None => return Err(self.unexpected(&exec)),
            }
        }
        Ok(replies)
    }

    /// Sends commands without waiting; [`Self::receive`] must follow with the same ones, at most as many as a socket's buffer takes
    /// replies of.
    ///
    /// # Errors
    /// [`ClusterError::Node`].
    pub(super) fn send<C: AsRef<[Bytes]>>(&mut self, commands: &[C]) -> Result<(), ClusterError> {
        self.connect()?;
        let mut bytes = Vec::new();
        for command in commands {
            encode_command(command.as_ref(), &mut bytes);
        }
        let connection = self.connection.as_mut();
        let sent = connection.map_or(Err(CliError::Closed), |connection| connection.send_encoded(&bytes));
        sent.map_err(|source| self.lost(source))
    }

    /// The replies to what was sent.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(super) fn receive<C: AsRef<[Bytes]>>(
        &mut self,
        commands: &[C],
        replies: &mut Vec<Frame>,
    ) -> Result<(), ClusterError> {
        for command in commands {
            let frame = self.next(command.as_ref())?;
            replies.push(frame);
        }
        Ok(())
    }

    fn next(&mut self, command: &[Bytes]) -> Result<Frame, ClusterError> {
        let deadline = Instant::now() + self.access.timeout;
        loop {
            let Some(connection) = &mut self.connection else { return Err(self.broken(CliError::Closed)) };
            match connection.receive_ready() {
                Ok(Some(Frame::Push(_))) => {}
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) if Instant::now() >= deadline => {
                    self.connection = None;
                    return Err(ClusterError::Silent {
                        node: self.address.to_string(),
                        command: named(command),
                        seconds: self.access.timeout.as_secs(),
                    });
                }
                Ok(None) => {
                    connection.wait(false, Some(deadline)).map_err(|source| self.lost(source))?;
                }
                Err(source) => return Err(self.lost(source)),
            }
        }
    }

    /// Replies to come would be taken for those of other commands: the connection is given up.
    fn lost(&mut self, source: CliError) -> ClusterError {
        self.connection = None;
        self.broken(source)
    }

    /// The error that a refusal is.
    pub(super) fn refused(&self, command: &[Bytes], text: &[u8]) -> ClusterError {
        let node = self.address.to_string();
        ClusterError::Refused { node, command: named(command), text: one_line(text) }
    }

    /// The error that an odd reply is.
    pub(super) fn unexpected(&self, command: &[Bytes]) -> ClusterError {
        ClusterError::Unexpected { node: self.address.to_string(), command: named(command) }
    }

    /// A command whose reply is a text.
    ///
    /// # Errors
    /// As [`Self::call`], and [`ClusterError::Unexpected`].
    pub(super) fn text(&mut self, command: &str) -> Result<String, ClusterError> {
        let command = words(command);
        let frame = self.call(&command)?;
        let text = text_of(&frame).ok_or_else(|| self.unexpected(&command))?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// A command whose reply is a number from 0 up.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub(super) fn number(&mut self, command: &str) -> Result<u64, ClusterError> {
        let command = words(command);
        match self.call(&command)? {
            Frame::Integer(number) if number >= 0 => Ok(number.unsigned_abs()),
            _ => Err(self.unexpected(&command)),
        }
    }
}

/// The text of a reply, whatever kind of string it is.
pub(super) fn text_of(frame: &Frame) -> Option<&Bytes> {
    match frame {
        Frame::Simple(text) | Frame::Bulk(text) | Frame::Verbatim { text, .. } => Some(text),
        _ => None,
    }
}

/// The first words of a command, for a message. Never more: a password may follow.
fn named(command: &[Bytes]) -> String {
    let is_auth = command.first().is_some_and(|name| name.eq_ignore_ascii_case(b"AUTH"));
    let shown = if is_auth { 1 } else { WORDS_NAMED };
    let words: Vec<String> = command.iter().take(shown).map(|word| one_line(word)).collect();
    words.join(" ")
}
