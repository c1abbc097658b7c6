//! The threads that serve lanes.
//!
//! Owns: one loop for each thread, which sleeps until a socket is ready or somebody calls. Does **not** own what is read and
//! written: lanes do that.

use std::collections::HashMap;
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::poller::{Poller, Watch};

use super::lane::Lane;
use super::receive::{STAGING_LEN, Turn};

#[derive(Debug)]
enum Call {
    Add(Arc<Lane>),
    Resume(u64),
    Remove(u64),
    Stop,
}

/// One thread.
#[derive(Debug)]
pub(crate) struct IoThread {
    poller: Poller,
    /// At most one call for each change of a lane's state.
    calls: Mutex<Vec<Call>>,
    tokens: AtomicU64,
}

impl IoThread {
    fn new() -> io::Result<Self> {
        Ok(Self { poller: Poller::new()?, calls: Mutex::default(), tokens: AtomicU64::new(1) })
    }

    pub(super) fn new_token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn add(&self, lane: Arc<Lane>) {
        self.call(Call::Add(lane));
    }

    pub(super) fn resume(&self, token: u64) {
        self.call(Call::Resume(token));
    }

    pub(super) fn remove(&self, token: u64) {
        self.call(Call::Remove(token));
    }

    /// Changes what the thread is woken for. False if it does not know the lane yet.
    pub(super) fn watch(&self, socket: &TcpStream, token: u64, watch: Watch) -> bool {
        self.poller.change(socket, token, watch).is_ok()
    }

    fn call(&self, call: Call) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        self.poller.wake();
    }

    fn run(&self) {
        let mut lanes: HashMap<u64, Arc<Lane>> = HashMap::new();
        let mut turns: Vec<u64> = Vec::new();
        let (mut ready, mut ended) = (Vec::new(), Vec::new());
        let mut staging = vec![0; STAGING_LEN];
        loop {
            let timeout = (!turns.is_empty()).then_some(Duration::ZERO);
            if let Err(error) = self.poller.wait(timeout, &mut ready) {
                tracing::error!(%error, "an I/O thread cannot wait for its sockets");
                return;
            }
            for call in std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner)) {
                match call {
                    Call::Add(lane) => {
                        match self.poller.add(&lane.socket, lane.token(), Watch::Edges) {
                            Ok(()) => lane.flush(),
                            Err(_) => lane.fail(),
                        }
                        turns.push(lane.token());
                        lanes.insert(lane.token(), lane);
                    }
                    Call::Resume(token) => turns.push(token),
                    Call::Remove(token) => {
                        if let Some(lane) = lanes.remove(&token) {
                            self.poller.remove(&lane.socket);
                        }
                    }
                    Call::Stop => return,
                }
            }
            for event in &ready {
                let Some(lane) = lanes.get(&event.token) else { continue };
                if event.is_writable {
                    lane.writable();
                }
                if event.is_readable && !turns.contains(&event.token) {
                    turns.push(event.token);
                }
            }
            turns.retain(|token| {
                let Some(lane) = lanes.get(token) else { return false };
                let turn = lane.receive(&mut staging, &mut ended);
                if !ended.is_empty() {
                    lane.completed(&ended);
                    ended.clear();
                }
                turn == Turn::More
            });
        }
    }
}

/// All I/O threads of an engine.
#[derive(Debug)]
pub(crate) struct IoThreads {
    threads: Vec<Arc<IoThread>>,
    handles: Mutex<Vec<JoinHandle<()>>>,
    next: AtomicUsize,
}

impl IoThreads {
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let all = Self { threads: Vec::new(), handles: Mutex::default(), next: AtomicUsize::new(0) };
        (0..count).try_fold(all, |mut all, index| {
            let thread = Arc::new(IoThread::new()?);
            let own = thread.clone();
            let handle =
                std::thread::Builder::new().name(format!("transfer-io-{index}")).spawn(move || own.run());
            all.threads.push(thread);
            all.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle?);
            Ok(all)
        })
    }

    /// The thread of the next lane.
    pub(super) fn pick(&self) -> &Arc<IoThread> {
        &self.threads[self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len()]
    }

    /// Ends the threads. Lanes that are left are dropped with them.
    pub(crate) fn stop(&self) {
        self.threads.iter().for_each(|thread| thread.call(Call::Stop));
        for handle in std::mem::take(&mut *self.handles.lock().unwrap_or_else(PoisonError::into_inner)) {
            // A thread that panicked has said so.
            let _ = handle.join();
        }
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        self.stop();
    }
}
