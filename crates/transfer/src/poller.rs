//! Waiting for sockets, and being woken.
//!
//! Owns an epoll descriptor and the event that wakes its thread. Does **not** own sockets: a token says which is meant.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// The token of [`Poller::wake`].
pub(crate) const WAKE: u64 = 0;

/// Events of one wait at most.
const EVENTS_MAX: usize = 256;

/// What a socket is ready for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readiness {
    pub(crate) token: u64,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
}

/// How a socket is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// As long as there is something to read.
    Read,
    /// As long as there is something to read or room to write.
    ReadWrite,
    /// Once for each change.
    Edges,
    /// Once for each change of what there is to read.
    EdgesRead,
    /// Once for each change of what room there is.
    EdgesWrite,
    /// Only for its end.
    EdgesNone,
}

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    wake: OwnedFd,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self { epoll, wake })
    }

    pub(crate) fn add(&self, socket: impl AsFd, token: u64, watch: Watch) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token), flags(watch))?)
    }

    pub(crate) fn change(&self, socket: impl AsFd, token: u64, watch: Watch) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(token), flags(watch))?)
    }

    pub(crate) fn remove(&self, socket: impl AsFd) {
        // One that is not there is as good as removed.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Makes the present or the next wait end.
    pub(crate) fn wake(&self) {
        // A full counter wakes as well.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Waits for events, for ever without a timeout. A wake-up is taken here and is no event.
    pub(crate) fn wait(&self, timeout: Option<Duration>, ready: &mut Vec<Readiness>) -> io::Result<()> {
        ready.clear();
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_MAX);
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let (token, flags) = (event.data.u64(), event.flags);
            if token == WAKE {
                let mut count = [0; 8];
                let _ = rustix::io::read(&self.wake, &mut count);
                continue;
            }
            let is_over = flags.intersects(EventFlags::HUP | EventFlags::RDHUP | EventFlags::ERR);
            ready.push(Readiness {
                token,
                is_readable: is_over || flags.contains(EventFlags::IN),
                is_writable: is_over || flags.contains(EventFlags::OUT),
            });
        }
        Ok(())
    }
}

fn flags(watch: Watch) -> EventFlags {
    match watch {
        Watch::Read => EventFlags::IN | EventFlags::RDHUP,
        Watch::ReadWrite => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP,
        Watch::Edges => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
        Watch::EdgesRead => EventFlags::IN | EventFlags::RDHUP | EventFlags::ET,
        Watch::EdgesWrite => EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
        Watch::EdgesNone => EventFlags::RDHUP | EventFlags::ET,
    }
}
