//! A small blocking client.
//!
//! Owns: one TCP connection, its read buffer and the encoding of commands. It has no retries, no pool and no opinion
//! on replies; a test that needs raw bytes writes them itself.

use crate::value::{self, Value};
use anyhow::{Context, bail};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a read may block before the test fails instead of hanging.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// One connection to a server.
#[derive(Debug)]
pub struct Conn {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// How many bytes of `buffer` are parsed already.
    start: usize,
}

/// Encodes one command as an array of bulk strings, at the end of `out`.
pub fn encode<A: AsRef<[u8]>>(arguments: &[A], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
    for argument in arguments {
        let argument = argument.as_ref();
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}

impl Conn {
    /// Connects to `address`; the connection speaks RESP2 until it says otherwise.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.set_write_timeout(Some(READ_TIMEOUT))?;
        Ok(Self { stream, buffer: Vec::new(), start: 0 })
    }

    /// Connects and switches to RESP3.
    ///
    /// # Errors
    /// The connection or `HELLO 3` is refused.
    pub fn open_resp3(address: SocketAddr) -> anyhow::Result<Self> {
        let mut conn = Self::open(address)?;
        let reply = conn.call(&["HELLO", "3"])?;
        if let Some(error) = reply.error() {
            bail!("HELLO 3: {error}");
        }
        Ok(conn)
    }

    /// The connection's own address, which is how the server names it in `CLIENT LIST`.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn local_address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.stream.local_addr()?)
    }

    /// Sets how long [`Conn::read`] waits for bytes.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn set_read_timeout(&self, timeout: Duration) -> anyhow::Result<()> {
        Ok(self.stream.set_read_timeout(Some(timeout))?)
    }

    /// Writes raw bytes.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(bytes).context("the server closed the connection while a command was written")
    }

    /// Sends a command without waiting for its reply.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn send<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> anyhow::Result<()> {
        let mut bytes = Vec::new();
        encode(arguments, &mut bytes);
        self.write(&bytes)
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// The connection is closed, silent for too long, or sends no RESP.
    pub fn read(&mut self) -> anyhow::Result<Value> {
        loop {
            if let Some((value, used)) = value::parse(&self.buffer[self.start..])? {
                self.start += used;
                if self.start == self.buffer.len() {
                    self.buffer.clear();
                    self.start = 0;
                }
                return Ok(value);
            }
            let mut chunk = [0; 65536];
            let count =
                self.stream.read(&mut chunk).with_context(|| match self.buffer.len() - self.start {
                    0 => "no reply".to_owned(),
                    unread => format!(
                        "an incomplete reply of {unread} bytes: {}",
                        self.buffer[self.start..].escape_ascii()
                    ),
                })?;
            if count == 0 {
                bail!("the server closed the connection");
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.extend_from_slice(&chunk[..count]);
        }
    }

    /// Waits for a bulk string that has no line end behind it, as `SYNC` sends a snapshot.
    ///
    /// # Errors
    /// As for [`Conn::read`].
    pub fn read_snapshot(&mut self) -> anyhow::Result<Vec<u8>> {
        loop {
            let unread = &self.buffer[self.start..];
            let end = unread.windows(2).position(|two| two == b"\r\n");
            if let Some(end) = end {
                let head = String::from_utf8_lossy(&unread[..end]).into_owned();
                let len: usize = head.strip_prefix('$').context("no bulk string")?.parse()?;
                if unread.len() >= end + 2 + len {
                    let snapshot = unread[end + 2..end + 2 + len].to_vec();
                    self.start += end + 2 + len;
                    return Ok(snapshot);
                }
            }
            let mut chunk = [0; 65536];
            let count = self.stream.read(&mut chunk).context("an incomplete snapshot")?;
            if count == 0 {
                bail!("the server closed the connection");
            }
            self.buffer.extend_from_slice(&chunk[..count]);
        }
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    /// As for [`Conn::send`] and [`Conn::read`]; an error *reply* is a value.
    pub fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> anyhow::Result<Value> {
        self.send(arguments)?;
        self.read()
    }

    /// Sends a command given as words separated by blanks.
    ///
    /// # Errors
    /// As for [`Conn::call`].
    pub fn words(&mut self, command: &str) -> anyhow::Result<Value> {
        self.call(&command.split(' ').collect::<Vec<_>>())
    }

    /// Sends all commands in one write, then reads all replies.
    ///
    /// # Errors
    /// As for [`Conn::call`].
    pub fn pipeline<A: AsRef<[u8]>>(&mut self, commands: &[Vec<A>]) -> anyhow::Result<Vec<Value>> {
        let mut bytes = Vec::new();
        for command in commands {
            encode(command, &mut bytes);
        }
        self.write(&bytes)?;
        commands.iter().map(|_| self.read()).collect()
    }

    /// Reads until the server closes the connection: what it still sent.
    ///
    /// # Errors
    /// The server keeps the connection open for longer than the read timeout.
    pub fn read_to_close(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut rest = self.buffer.split_off(self.start);
        self.buffer.clear();
        self.start = 0;
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => Ok(rest),
            // A reset after an unread request is a close as well.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(rest),
            Err(error) => Err(error).context("the server did not close the connection"),
        }
    }
}
