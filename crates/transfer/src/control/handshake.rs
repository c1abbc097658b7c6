//! One connection that carries a handshake.
//!
//! Owns: its socket, what came in and did not make a frame yet, and what could not go out yet. Bounded: what comes in by
//! the longest frame, what goes out by what the protocol says on one connection.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use towline_transfer_proto::wire::{BODY_MAX, Frame, HEADER_LEN, Message, TAG_LEN};
use towline_transfer_proto::{ConnId, LinkKey};

use crate::tcp::Connected;

use super::seal::{self, JOIN_LEN, Seal};

/// The longest frame.
const FRAME_MAX: usize = HEADER_LEN + BODY_MAX + TAG_LEN;

/// What is read at a time. Little, since data may follow the last message of a handshake.
const READ_LEN: usize = 1024;

/// A connection of the control thread.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) conn: ConnId,
    pub(super) socket: TcpStream,
    pub(super) is_connecting: bool,
    /// The lane of the HELLO that it carries.
    pub(super) key: Option<LinkKey>,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

/// What a connection has to say.
#[derive(Debug)]
pub(super) enum Said {
    /// Nothing more at the moment.
    Nothing,
    /// A message of somebody who may say it.
    Message(Message),
    /// It is a further lane of a link.
    Joined {
        /// What the link was told it by.
        token: [u8; 16],
        /// Which lane.
        lane: u16,
    },
    /// It is no handshake, or not from somebody who may shake hands.
    Foreign,
}

impl Handshake {
    pub(super) fn new(conn: ConnId, socket: TcpStream, is_connecting: bool) -> Self {
        Self { conn, socket, is_connecting, key: None, incoming: Vec::new(), outgoing: Vec::new() }
    }

    /// Reads what is there. False if the connection is over.
    pub(super) fn read(&mut self) -> bool {
        let mut bytes = [0; READ_LEN];
        while self.incoming.len() < FRAME_MAX {
            match self.socket.read(&mut bytes) {
                Ok(0) => return false,
                Ok(read) => {
                    self.incoming.extend_from_slice(&bytes[..read]);
                    if read < bytes.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// The next thing that was said.
    pub(super) fn next(&mut self, seal: &Seal) -> Said {
        if seal::is_join(&self.incoming) {
            let Some((preamble, _)) = self.incoming.split_first_chunk::<JOIN_LEN>() else {
                return Said::Nothing;
            };
            let Some((token, lane)) = seal.joined(preamble) else { return Said::Foreign };
            self.incoming.drain(..JOIN_LEN);
            return Said::Joined { token, lane };
        }
        match Frame::parse(&self.incoming) {
            Ok(None) => Said::Nothing,
            Ok(Some(frame)) if seal.is_genuine(&frame) => {
                let Frame { message, length, .. } = frame;
                self.incoming.drain(..length);
                Said::Message(message)
            }
            Ok(Some(_)) | Err(_) => Said::Foreign,
        }
    }

    /// Sends a message, or keeps what the socket does not take. False if the connection is over.
    pub(super) fn send(&mut self, message: &Message, seal: &Seal) -> bool {
        seal.encode(message, &mut self.outgoing);
        self.flush()
    }

    /// Sends what was kept. False if the connection is over.
    pub(super) fn flush(&mut self) -> bool {
        while !self.outgoing.is_empty() {
            match self.socket.write(&self.outgoing) {
                Ok(written) => drop(self.outgoing.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Whether something could not go out yet.
    pub(super) fn is_behind(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// The connection, for what follows the handshake.
    pub(super) fn into_connected(self) -> Connected {
        Connected { socket: self.socket, first: self.outgoing, early: self.incoming }
    }
}
