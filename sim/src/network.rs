//! One connection between the client's socket and the server, as a pair of pipes.
//!
//! Owns what is under way and how far each side has come. Does not own time: the world asks when bytes arrive.

use std::collections::BTreeMap;

use bytes::BytesMut;
use towline_faults::model::EndpointId;
use towline_resp::frame::Decoder;
use towline_sansio::Instant;

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// Bytes that entered.
    pub(crate) total: u64,
    /// Nothing arrives before what was sent earlier.
    pub(crate) last_arrival: Instant,
    /// The connection is reset when this many bytes have entered.
    pub(crate) cut_at: Option<u64>,
    /// What enters is lost, in silence.
    pub(crate) is_dark: bool,
    /// What is under way is lost.
    pub(crate) is_dead: bool,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Conn {
    /// To the server.
    pub(crate) up: Pipe,
    /// To the client.
    pub(crate) down: Pipe,
    /// The client holds a socket.
    pub(crate) is_open: bool,
    /// The client's kernel knows that the connection is gone: writes fail.
    pub(crate) is_broken: bool,
    pub(crate) decoder: Decoder,
    pub(crate) input: BytesMut,
    /// Which of the server's addresses it leads to.
    pub(crate) endpoint: EndpointId,
    /// The kernel takes nothing more before.
    pub(crate) write_again_at: Instant,
    /// Bytes that the kernel took and that have not arrived.
    pub(crate) unacked: usize,
    pub(crate) stalled_until: Instant,
    /// The last byte's offset of every command that a writer was given and the kernel has not taken whole.
    pub(crate) ends: BTreeMap<u64, u64>,
    /// Commands before the first one of a caller.
    pub(crate) handshake_commands: usize,
    /// Frames that the client has been given, without pushes.
    pub(crate) frames: usize,
    /// Where the last whole command ends that the kernel took.
    pub(crate) boundary: u64,
    /// Something that is no RESP goes between two commands. (Inside a command it could pass for other content, which
    /// no checker could tell from a mistake.)
    pub(crate) spoils_up: bool,
    /// The same in front of the server's next reply.
    pub(crate) spoils_down: bool,
    /// The client got, or may get, what a server does not send.
    pub(crate) has_lied: bool,
    /// It came up with a backlog of which nothing was sent yet.
    pub(crate) begins_with_backlog: bool,
    /// It was set up after the end of all trouble.
    pub(crate) is_of_calm: bool,
}

impl Conn {
    /// A fresh connection.
    pub(crate) fn new(now: Instant, endpoint: EndpointId, is_of_calm: bool) -> Self {
        let pipe = || Pipe { last_arrival: now, ..Pipe::default() };
        Self {
            up: pipe(),
            down: pipe(),
            is_open: true,
            is_broken: false,
            decoder: Decoder::default(),
            input: BytesMut::new(),
            endpoint,
            write_again_at: now,
            unacked: 0,
            stalled_until: now,
            ends: BTreeMap::new(),
            boundary: 0,
            handshake_commands: 0,
            frames: 0,
            spoils_up: false,
            spoils_down: false,
            has_lied: false,
            begins_with_backlog: false,
            is_of_calm,
        }
    }

    /// Whether a writer may still put bytes into it.
    pub(crate) const fn takes_bytes(&self) -> bool {
        self.is_open && !self.is_broken
    }

    /// The commands whose last byte the kernel has by now, taken out of the list.
    pub(crate) fn take_complete(&mut self) -> Vec<u64> {
        let total = self.up.total;
        let complete: Vec<u64> =
            self.ends.iter().filter(|(_, end)| **end <= total).map(|(id, _)| *id).collect();
        for id in &complete {
            self.boundary = self.boundary.max(self.ends.remove(id).unwrap_or(0));
        }
        complete
    }
}
