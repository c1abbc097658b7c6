//! One connection of the endpoint, from its dial to its end.
//!
//! Owns what belongs to one socket: how far it has come, what is in flight on it, how far its writing is, whether it is
//! silent. Does not own what outlives it (the queue, the log, the policy) nor what one connection means to the others
//! ([`super::handoff`]).

use std::collections::VecDeque;
use std::net::SocketAddr;

use towline_sansio::Instant;

use super::doubt::Doubt;
use super::flush::Write;
use super::link::{LinkState, Loss};
use crate::generation::Generation;
use crate::handshake::{Handshake, ReAuth, Ready};
use crate::liveness::{Liveness, LivenessConfig};
use crate::slab::Ticket;

/// Whose reply comes next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flight {
    Command(Ticket),
    /// A command whose caller was told already that its deadline passed.
    Expired {
        replies: u32,
        len: u32,
        /// The lower half of the position at which it ends.
        end: u32,
    },
    /// A liveness probe or a fence: any reply but an error shows that the peer lives.
    Probe,
    /// New credentials in place.
    Reauth,
    /// A batch of subscriptions and its fence.
    Subscriptions,
    /// A `PING` before subscriptions move to connection `successor`.
    Fence {
        successor: Generation,
    },
    /// The publication that tells where the streams of two connections join.
    Marker,
}

#[derive(Debug)]
pub(super) enum Phase {
    Waiting { due: Instant },
    Dialing,
    Shaking { handshake: Box<Handshake> },
    Up { info: Box<Ready> },
    Closed,
}

/// What a connection is to its bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Commands are sent on it, or will be once it is up.
    Serving,
    /// It is being made ready to take over.
    Successor,
    /// It was left: what is in flight on it is still answered, nothing more is sent.
    Retiring,
}

#[derive(Debug)]
pub(super) struct Conn {
    pub(super) role: Role,
    pub(super) generation: Generation,
    pub(super) phase: Phase,
    /// The connection is over but a writer still has bytes for it: how many the kernel took is not known yet.
    pub(super) doomed: Option<Loss>,
    /// Why a successor came to nothing.
    pub(super) failure: Option<Loss>,
    /// Where it leads, if the owner could tell.
    pub(super) peer: Option<SocketAddr>,
    pub(super) in_flight: VecDeque<Flight>,
    pub(super) in_flight_bytes: usize,
    pub(super) write: Write,
    /// New credentials whose reply has not come.
    pub(super) reauth: Option<ReAuth>,
    pub(super) liveness: Liveness,
    /// Since when something has been in flight without a break.
    pub(super) flying_since: Option<Instant>,
    /// A fresh connection is to be asked, and nobody was told so yet.
    pub(super) doubt: Option<Doubt>,
    /// A `MOVING` came before the connection was up: the server repeats what is under way.
    pub(super) heard_moving: bool,
}

impl Conn {
    pub(super) fn new(now: Instant, role: Role, liveness: LivenessConfig) -> Self {
        Self {
            role,
            generation: Generation::default(),
            phase: Phase::Waiting { due: now },
            doomed: None,
            failure: None,
            peer: None,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            write: Write::default(),
            reauth: None,
            liveness: Liveness::new(now, liveness),
            flying_since: None,
            doubt: None,
            heard_moving: false,
        }
    }

    #[inline]
    pub(super) const fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up { .. }) && self.doomed.is_none()
    }

    /// Whether there is a socket that may be written to.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Shaking { .. } | Phase::Up { .. }) && self.doomed.is_none()
    }

    pub(super) const fn is_doomed(&self) -> bool {
        self.doomed.is_some()
    }

    pub(super) const fn state(&self) -> LinkState {
        match &self.phase {
            Phase::Waiting { .. } => LinkState::Waiting,
            Phase::Dialing => LinkState::Dialing,
            Phase::Shaking { .. } => LinkState::Shaking,
            Phase::Up { .. } => LinkState::Up,
            Phase::Closed => LinkState::Closed,
        }
    }

    pub(super) fn info(&self) -> Option<&Ready> {
        match &self.phase {
            Phase::Up { info } => Some(info),
            _ => None,
        }
    }

    pub(super) fn client_id(&self) -> Option<i64> {
        self.info().and_then(|info| info.client_id)
    }
}
