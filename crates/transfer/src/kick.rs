//! What wakes a thread that waits for a socket and for something else.
//!
//! Owns: one event and one buffer for each thread that ever waited so. Does **not** own what is waited for.

use std::cell::RefCell;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::tcp::STAGING_LEN;

thread_local! {
    static OWN: RefCell<Option<Arc<Kick>>> = const { RefCell::new(None) };
    static STAGING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Kick {
    event: OwnedFd,
    thread: ThreadId,
}

impl Kick {
    /// The calling thread's. `None` if the system has no event for it: the thread then waits in another way.
    pub(crate) fn own() -> Option<Arc<Self>> {
        OWN.with_borrow_mut(|own| {
            if own.is_none() {
                let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
                *own = Some(Arc::new(Self { event, thread: std::thread::current().id() }));
            }
            own.clone()
        })
    }

    /// Wakes its thread, unless that is the calling one.
    pub(crate) fn kick(&self) {
        if std::thread::current().id() != self.thread {
            // A full counter wakes as well.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// Waits until the socket has something, or somebody kicks. False if the time is over or the system refuses.
    pub(crate) fn wait(&self, socket: &TcpStream, timeout: Option<Duration>) -> bool {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
        let mut fds = [PollFd::new(socket, PollFlags::IN), PollFd::new(&self.event, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => false,
            Ok(_) => {
                if !fds[1].revents().is_empty() {
                    let _ = rustix::io::read(&self.event, &mut [0; 8]);
                }
                true
            }
            Err(rustix::io::Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// The thread's buffer.
    pub(crate) fn with_staging<T>(&self, use_it: impl FnOnce(&mut [u8]) -> T) -> T {
        STAGING.with_borrow_mut(|staging| {
            staging.resize(STAGING_LEN, 0);
            use_it(staging)
        })
    }
}
