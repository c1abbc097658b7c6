//! TLS over a socket that never blocks.
//!
//! Owns the session's state and moving its records. Does not own waiting: whoever reads or writes does that, with the
//! socket's descriptor (`connection`).
//!
//! A record may bring nothing to read, as tickets do, so a socket with something to read does not mean that there is
//! plaintext; a read that waited for it could wait for ever. One read takes all plaintext that is there, if it has room for
//! it, so that the descriptor alone tells whether there is more.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tokio_rustls::rustls::{ClientConnection, Error};

use crate::tls::Connector;

/// A session and its socket.
#[derive(Debug)]
pub(crate) struct Secure {
    session: ClientConnection,
    socket: TcpStream,
}

impl Secure {
    /// Shakes hands with the server at `host`, and blocks until that is done.
    ///
    /// # Errors
    /// The socket's, or [`io::ErrorKind::InvalidData`] with what is wrong with the peer or its certificate.
    pub(crate) fn shake(mut socket: TcpStream, tls: &Connector, host: &str) -> io::Result<Self> {
        let name = tls.name(host).map_err(invalid)?;
        let mut session = ClientConnection::new(Arc::clone(&tls.config), name).map_err(invalid)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        socket.set_nonblocking(true)?;
        Ok(Self { session, socket })
    }

    /// Whether records wait for the socket to take them.
    pub(crate) fn is_unsent(&self) -> bool {
        self.session.wants_write()
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Read for Secure {
    /// 0 is the end, whether it was announced or not: RESP tells whether a reply is whole.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(into) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            self.session.read_tls(&mut self.socket)?;
            if let Err(error) = self.session.process_new_packets() {
                // The alert tells the server why; the error to report is this one.
                let _ = self.flush();
                return Err(match error {
                    Error::AlertReceived(alert) => invalid(format!("the server refused TLS: {alert:?}")),
                    error => invalid(error),
                });
            }
        }
    }
}

impl Write for Secure {
    /// Takes bytes only when none wait, so that what waits is bounded by one call's bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let count = self.session.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            if self.session.write_tls(&mut self.socket)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

impl AsFd for Secure {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Secure {
    /// Says goodbye, so that the server can tell an end from a cut.
    fn drop(&mut self) {
        self.session.send_close_notify();
        let _ = self.flush();
    }
}
