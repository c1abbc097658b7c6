//! A real card, by libibverbs.
//!
//! Owns: the library, loaded at run time, and one port of one device with its queue pairs and memory. Does **not** decide anything.
//!
//! Queue pairs are reliable connections with the usual numbers: acknowledgement timer 14 (67 ms), 7 repetitions. One completion
//! queue serves all of them, and a thread sleeps on its channel.

use std::collections::HashMap;
use std::ffi::{CStr, c_int};
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use libloading::Library;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use towline_transfer_proto::{Opcode, Psn, Qpn, QueuePair};

use crate::memory::MemoryRegion;
use crate::regions::Access;

use super::ffi::{self, Functions, mask};
use super::verbs::{Keys, NotPosted, RdmaError, Verbs, WORK_MAX, WorkDone, WorkRequest, WorkStatus};

/// The name that rdma-core has had since 2005.
const LIBRARY: &str = "libibverbs.so.1";

/// Queue pairs at a time: as many as the completion queue has room for.
const PAIRS_MAX: usize = 512;

/// Completions of one look.
const COMPLETIONS: usize = 64;

/// Which port of which device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardConfig {
    /// The device's name, such as `mlx5_0`. Default: the first.
    pub device: Option<String>,
    /// Its port; 0, the default, is 1, the first.
    pub port: u8,
    /// Which of the port's global identifiers. Default 0, which every port has; RoCE version 2 often wants 1 or 3.
    pub gid_index: u8,
}

/// See the module's documentation.
pub struct Card {
    functions: Functions,
    context: *mut ffi::Context,
    domain: *mut ffi::Domain,
    channel: *mut ffi::Channel,
    queue: *mut ffi::CompletionQueue,
    port: u8,
    gid_index: u8,
    attributes: ffi::PortAttributes,
    gid: [u8; 16],
    pairs: RwLock<HashMap<Qpn, Handle<ffi::Pair>>>,
    memories: Mutex<HashMap<u64, Pinned>>,
    stop: OwnedFd,
    is_stopped: AtomicBool,
    /// Last, so that it is unloaded last.
    _library: Library,
}

/// A pointer of the library's, used by one call at a time or as the library allows.
struct Handle<T>(*mut T);

// SAFETY: the objects behind are the library's, which lets any thread use them.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<T> {}

/// Memory that the card may touch.
struct Pinned {
    handle: Handle<ffi::Memory>,
    _memory: MemoryRegion,
}

// SAFETY: libibverbs lets any thread use contexts, domains, queues and channels; the card changes none of its pointers.
unsafe impl Send for Card {}
// SAFETY: as above.
unsafe impl Sync for Card {}

impl fmt::Debug for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Card").field("port", &self.port).field("gid", &self.gid).finish_non_exhaustive()
    }
}

fn last_error(call: &'static str) -> RdmaError {
    RdmaError::Call { call, reason: io::Error::last_os_error().to_string() }
}

fn checked(call: &'static str, code: c_int) -> Result<(), RdmaError> {
    match code {
        0 => Ok(()),
        code if code > 0 => {
            Err(RdmaError::Call { call, reason: io::Error::from_raw_os_error(code).to_string() })
        }
        _ => Err(last_error(call)),
    }
}

fn made<T>(call: &'static str, pointer: *mut T) -> Result<*mut T, RdmaError> {
    if pointer.is_null() { Err(last_error(call)) } else { Ok(pointer) }
}

/// Looks every function up.
fn load(library: &Library) -> Result<Functions, RdmaError> {
    macro_rules! symbol {
        ($name:literal) => {{
            // SAFETY: the type is that of the field, whose signature is the one in the library's header.
            let found = unsafe { library.get($name.as_bytes()) };
            *found.map_err(|_| RdmaError::NoSymbol { symbol: $name })?
        }};
    }
    Ok(Functions {
        get_device_list: symbol!("ibv_get_device_list"),
        free_device_list: symbol!("ibv_free_device_list"),
        device_name: symbol!("ibv_get_device_name"),
        open_device: symbol!("ibv_open_device"),
        close_device: symbol!("ibv_close_device"),
        query_port: symbol!("ibv_query_port"),
        query_gid: symbol!("ibv_query_gid"),
        alloc_pd: symbol!("ibv_alloc_pd"),
        dealloc_pd: symbol!("ibv_dealloc_pd"),
        reg_mr_iova: symbol!("ibv_reg_mr_iova"),
        dereg_mr: symbol!("ibv_dereg_mr"),
        create_channel: symbol!("ibv_create_comp_channel"),
        destroy_channel: symbol!("ibv_destroy_comp_channel"),
        create_cq: symbol!("ibv_create_cq"),
        destroy_cq: symbol!("ibv_destroy_cq"),
        get_cq_event: symbol!("ibv_get_cq_event"),
        ack_cq_events: symbol!("ibv_ack_cq_events"),
        create_qp: symbol!("ibv_create_qp"),
        modify_qp: symbol!("ibv_modify_qp"),
        destroy_qp: symbol!("ibv_destroy_qp"),
    })
}

/// Opens the device of this name, or the first.
fn open_device(functions: &Functions, name: Option<&str>) -> Result<*mut ffi::Context, RdmaError> {
    let none = || RdmaError::NoDevice { name: name.map(str::to_owned) };
    let mut count = 0;
    // SAFETY: the list is as long as `count` says and valid until it is freed; devices that are open outlive it.
    unsafe {
        let list = (functions.get_device_list)(&raw mut count);
        if list.is_null() {
            return Err(none());
        }
        let mut opened = Err(none());
        for index in 0..usize::try_from(count).unwrap_or(0) {
            let device = *list.add(index);
            let called = (functions.device_name)(device);
            let is_wanted = name
                .is_none_or(|name| !called.is_null() && CStr::from_ptr(called).to_bytes() == name.as_bytes());
            if is_wanted {
                opened = made("ibv_open_device", (functions.open_device)(device));
                break;
            }
        }
        (functions.free_device_list)(list);
        opened
    }
}

impl Card {
    /// Loads the library and opens the port.
    ///
    /// # Errors
    /// See [`RdmaError`]; nothing is left open.
    pub fn open(config: &CardConfig) -> Result<Self, RdmaError> {
        // SAFETY: libibverbs is a system library, whose initialisation only reads its configuration.
        let library = unsafe { Library::new(LIBRARY) };
        let library = library.map_err(|error| RdmaError::NoLibrary { reason: error.to_string() })?;
        let functions = load(&library)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let stop = stop.map_err(|error| RdmaError::Call { call: "eventfd", reason: error.to_string() })?;
        let context = open_device(&functions, config.device.as_deref())?;
        // From here on, dropping it closes what is open.
        let mut card = Self {
            functions,
            context,
            domain: ptr::null_mut(),
            channel: ptr::null_mut(),
            queue: ptr::null_mut(),
            port: config.port.max(1),
            gid_index: config.gid_index,
            attributes: ffi::PortAttributes::default(),
            gid: [0; 16],
            pairs: RwLock::default(),
            memories: Mutex::default(),
            stop,
            is_stopped: AtomicBool::new(false),
            _library: library,
        };
        card.prepare()?;
        Ok(card)
    }

    fn prepare(&mut self) -> Result<(), RdmaError> {
        let functions = &self.functions;
        let entries = c_int::try_from(PAIRS_MAX * WORK_MAX).unwrap_or(c_int::MAX);
        // SAFETY: the context is open, and each call gets what the one before made.
        unsafe {
            checked(
                "ibv_query_port",
                (functions.query_port)(self.context, self.port, &raw mut self.attributes),
            )?;
            if self.attributes.state != ffi::PORT_ACTIVE {
                return Err(RdmaError::PortDown { port: self.port });
            }
            checked(
                "ibv_query_gid",
                (functions.query_gid)(self.context, self.port, self.gid_index.into(), &raw mut self.gid),
            )?;
            self.domain = made("ibv_alloc_pd", (functions.alloc_pd)(self.context))?;
            self.channel = made("ibv_create_comp_channel", (functions.create_channel)(self.context))?;
            let queue = (functions.create_cq)(self.context, entries, ptr::null_mut(), self.channel, 0);
            self.queue = made("ibv_create_cq", queue)?;
        }
        Ok(())
    }

    fn pairs(&self) -> std::sync::RwLockReadGuard<'_, HashMap<Qpn, Handle<ffi::Pair>>> {
        self.pairs.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn modify(
        &self,
        pair: *mut ffi::Pair,
        mut to: ffi::PairAttributes,
        mask: c_int,
    ) -> Result<(), RdmaError> {
        // SAFETY: the pair is open while its lock is held, which callers do, and the attributes outlive the call.
        checked("ibv_modify_qp", unsafe { (self.functions.modify_qp)(pair, &raw mut to, mask) })
    }

    /// The path to a peer.
    fn path(&self, remote: &QueuePair) -> ffi::AddressHandle {
        let is_global = self.attributes.link_layer == ffi::ETHERNET || remote.lid == 0;
        let route = ffi::Route {
            gid: remote.gid,
            own_gid_index: self.gid_index,
            hop_limit: 64,
            ..ffi::Route::default()
        };
        ffi::AddressHandle {
            route: if is_global { route } else { ffi::Route::default() },
            lid: remote.lid,
            is_global: is_global.into(),
            port: self.port,
            ..ffi::AddressHandle::default()
        }
    }

    /// What is there already.
    fn take(&self, done: &mut Vec<WorkDone>) {
        let mut found = [ffi::Completion::default(); COMPLETIONS];
        // SAFETY: the context is open; the table of a device's operations does not change.
        let Some(poll_cq) = (unsafe { (*self.context).operations.poll_cq }) else { return };
        // SAFETY: there is room for so many.
        let count = unsafe { poll_cq(self.queue, COMPLETIONS as c_int, found.as_mut_ptr()) };
        for completion in &found[..usize::try_from(count).unwrap_or(0)] {
            let status = match completion.status {
                ffi::STATUS_DONE => WorkStatus::Done,
                ffi::STATUS_LOCAL_LENGTH | ffi::STATUS_LOCAL_PROTECTION => WorkStatus::LocalAccess,
                ffi::STATUS_REMOTE_INVALID | ffi::STATUS_REMOTE_ACCESS => WorkStatus::RemoteAccess,
                ffi::STATUS_RETRY_EXCEEDED | ffi::STATUS_RNR_EXCEEDED => WorkStatus::Unanswered,
                _ => WorkStatus::Flushed,
            };
            done.push(WorkDone { qpn: Qpn(completion.number), id: completion.id, status });
        }
    }

    /// Asks for an event when something comes.
    fn arm(&self) {
        // SAFETY: as for `take`.
        if let Some(notify) = unsafe { (*self.context).operations.req_notify_cq } {
            // SAFETY: the queue is open.
            unsafe { notify(self.queue, 0) };
        }
    }

    /// Sleeps until the channel has an event, and takes it; or until the card is stopped.
    fn sleep(&self) {
        // SAFETY: the channel and its descriptor are open as long as the card is.
        let channel = unsafe { BorrowedFd::borrow_raw((*self.channel).fd) };
        let mut watched =
            [PollFd::from_borrowed_fd(channel, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
        if poll(&mut watched, None).is_ok() && watched[0].revents().contains(PollFlags::IN) {
            let (mut queue, mut context) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: there is an event, so this does not block; it is acknowledged before the queue can be destroyed.
            unsafe {
                if (self.functions.get_cq_event)(self.channel, &raw mut queue, &raw mut context) == 0 {
                    (self.functions.ack_cq_events)(queue, 1);
                }
            }
        }
    }
}

impl Verbs for Card {
    fn create(&self, rail: u16, psn: Psn) -> Result<QueuePair, RdmaError> {
        let mut pairs = self.pairs.write().unwrap_or_else(PoisonError::into_inner);
        if pairs.len() >= PAIRS_MAX {
            return Err(RdmaError::Full { pairs: pairs.len() });
        }
        let capacities = ffi::Capacities {
            max_send: WORK_MAX as u32,
            max_receive: 1,
            max_send_pieces: 1,
            max_receive_pieces: 1,
            max_inline: 0,
        };
        let mut init = ffi::PairInit {
            context: ptr::null_mut(),
            send_cq: self.queue,
            receive_cq: self.queue,
            shared_receive: ptr::null_mut(),
            capacities,
            kind: ffi::KIND_RELIABLE,
            signals_all: 1,
        };
        // SAFETY: the domain and the queue are open, and `init` outlives the call.
        let pair = unsafe { (self.functions.create_qp)(self.domain, &raw mut init) };
        let pair = made("ibv_create_qp", pair)?;
        // SAFETY: it was just made.
        let qpn = Qpn(unsafe { (*pair).number });
        pairs.insert(qpn, Handle(pair));
        Ok(QueuePair { rail, qpn, psn, lid: self.attributes.lid, gid: self.gid })
    }

    fn connect(&self, own: &QueuePair, remote: &QueuePair) -> Result<(), RdmaError> {
        let pairs = self.pairs();
        let gone = || RdmaError::Call { call: "ibv_modify_qp", reason: "no such queue pair".to_owned() };
        let pair = pairs.get(&own.qpn).ok_or_else(gone)?.0;
        let access = (ffi::ACCESS_LOCAL_WRITE | ffi::ACCESS_REMOTE_READ | ffi::ACCESS_REMOTE_WRITE) as u32;
        let none = ffi::PairAttributes::default();
        let init = ffi::PairAttributes { state: ffi::STATE_INIT, access, port: self.port, ..none };
        self.modify(pair, init, mask::INIT)?;
        let receive = ffi::PairAttributes {
            state: ffi::STATE_RECEIVE,
            path_mtu: self.attributes.active_mtu,
            receive_psn: remote.psn.get(),
            remote_number: remote.qpn.0,
            max_reads_served: 16,
            min_rnr_timer: 12,
            path: self.path(remote),
            ..none
        };
        self.modify(pair, receive, mask::RECEIVE)?;
        let send = ffi::PairAttributes {
            state: ffi::STATE_SEND,
            send_psn: own.psn.get(),
            max_reads: 16,
            timeout: 14,
            retries: 7,
            rnr_retries: 7,
            ..none
        };
        self.modify(pair, send, mask::SEND)
    }

    fn destroy(&self, qpn: Qpn) {
        let pair = self.pairs.write().unwrap_or_else(PoisonError::into_inner).remove(&qpn);
        if let Some(Handle(pair)) = pair {
            // SAFETY: nobody else has it any more, since posting and connecting hold the lock.
            unsafe { (self.functions.destroy_qp)(pair) };
        }
    }

    fn register(&self, base: u64, memory: &MemoryRegion, access: Access) -> Result<Keys, RdmaError> {
        let access = match access {
            Access::Local => ffi::ACCESS_LOCAL_WRITE,
            Access::Read => ffi::ACCESS_LOCAL_WRITE | ffi::ACCESS_REMOTE_READ,
            Access::ReadWrite => ffi::ACCESS_LOCAL_WRITE | ffi::ACCESS_REMOTE_READ | ffi::ACCESS_REMOTE_WRITE,
        };
        // SAFETY: the memory is mapped for as long as it is kept beside its handle.
        let handle = made("ibv_reg_mr_iova", unsafe {
            (self.functions.reg_mr_iova)(self.domain, memory.as_ptr().cast(), memory.len(), base, access)
        })?;
        // SAFETY: it was just made.
        let keys = unsafe { Keys { local: (*handle).lkey, remote: (*handle).rkey } };
        let pinned = Pinned { handle: Handle(handle), _memory: memory.clone() };
        self.memories.lock().unwrap_or_else(PoisonError::into_inner).insert(base, pinned);
        Ok(keys)
    }

    fn deregister(&self, base: u64) {
        let pinned = self.memories.lock().unwrap_or_else(PoisonError::into_inner).remove(&base);
        if let Some(pinned) = pinned {
            // SAFETY: nobody else has the handle.
            unsafe { (self.functions.dereg_mr)(pinned.handle.0) };
        }
    }

    fn post(&self, qpn: Qpn, request: &WorkRequest<'_>) -> Result<(), NotPosted> {
        let pairs = self.pairs();
        let pair = pairs.get(&qpn).ok_or(NotPosted)?.0;
        let length = u32::try_from(request.local.len()).map_err(|_| NotPosted)?;
        // Memory is registered under the engine's addresses, ours too.
        let mut piece = ffi::Piece { address: request.local_address, length, lkey: request.local_key };
        let opcode = if request.opcode == Opcode::Write { ffi::WRITE } else { ffi::READ };
        let mut work =
            ffi::SendRequest::new(request.id, opcode, &mut piece, request.remote, request.remote_key);
        let mut refused = ptr::null_mut();
        // SAFETY: the context is open; the table of a device's operations does not change.
        let post_send = unsafe { (*self.context).operations.post_send }.ok_or(NotPosted)?;
        // SAFETY: the pair is open while the lock is held, and the library copies the request before it returns.
        match unsafe { post_send(pair, &raw mut work, &raw mut refused) } {
            0 => Ok(()),
            _ => Err(NotPosted),
        }
    }

    fn wait(&self, done: &mut Vec<WorkDone>) -> bool {
        done.clear();
        while !self.is_stopped.load(Ordering::Acquire) {
            self.take(done);
            if !done.is_empty() {
                return true;
            }
            // What came between the look and the arming has no event.
            self.arm();
            self.take(done);
            if !done.is_empty() {
                return true;
            }
            self.sleep();
        }
        false
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        // A full counter wakes as well.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let numbers: Vec<Qpn> = self.pairs().keys().copied().collect();
        numbers.into_iter().for_each(|qpn| self.destroy(qpn));
        let bases: Vec<u64> =
            self.memories.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect();
        bases.into_iter().for_each(|base| self.deregister(base));
        // SAFETY: nobody uses the card any more, and what depends on something goes before it.
        unsafe {
            if !self.queue.is_null() {
                (self.functions.destroy_cq)(self.queue);
            }
            if !self.channel.is_null() {
                (self.functions.destroy_channel)(self.channel);
            }
            if !self.domain.is_null() {
                (self.functions.dealloc_pd)(self.domain);
            }
            (self.functions.close_device)(self.context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_the_library_or_without_the_device_says_so() {
        let config = CardConfig { device: Some("no_such_card".to_owned()), ..CardConfig::default() };
        let error = Card::open(&config).unwrap_err();
        let is_honest = match &error {
            // It, or what it needs itself.
            RdmaError::NoLibrary { reason } => reason.contains(".so"),
            RdmaError::NoDevice { name } => name.as_deref() == Some("no_such_card"),
            _ => false,
        };
        assert!(is_honest, "{error}");
        assert!(!error.to_string().is_empty());
    }
}
