//! What of libibverbs is used, as C sees it.
//!
//! Owns: types, constants and the layout that they must have. Does **not** call anything.
//!
//! The library is loaded when it is wanted, so no headers are needed to build. Sizes and places were taken from the headers of
//! rdma-core 44 by a C program (`sizeof`, `offsetof`) and are asserted here; they belong to the library's stable interface,
//! version 1.1 and later.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

/// An opaque C type.
macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        #[derive(Debug)]
        pub(super) struct $name {
            _private: [u8; 0],
        }
    )* };
}

opaque!(Device Domain);

pub(super) type Pointer = *mut c_void;

#[repr(C)]
pub(super) struct Operations {
    _before: [Pointer; 11],
    pub(super) poll_cq: Option<unsafe extern "C" fn(*mut CompletionQueue, c_int, *mut Completion) -> c_int>,
    pub(super) req_notify_cq: Option<unsafe extern "C" fn(*mut CompletionQueue, c_int) -> c_int>,
    _between: [Pointer; 12],
    pub(super) post_send:
        Option<unsafe extern "C" fn(*mut Pair, *mut SendRequest, *mut *mut SendRequest) -> c_int>,
    _after: [Pointer; 6],
}

/// The beginning of `ibv_context`; what follows is the library's.
#[repr(C)]
pub(super) struct Context {
    pub(super) device: *mut Device,
    pub(super) operations: Operations,
}

#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct PortAttributes {
    pub(super) state: c_uint,
    pub(super) max_mtu: c_uint,
    pub(super) active_mtu: c_uint,
    pub(super) gid_table_len: c_int,
    _capabilities: [u32; 4],
    _counters: u16,
    pub(super) lid: u16,
    _sm_lid: u16,
    _small: [u8; 8],
    pub(super) link_layer: u8,
    _rest: [u8; 5],
}

/// The beginning of `ibv_mr`.
#[repr(C)]
pub(super) struct Memory {
    context: *mut Context,
    domain: *mut Domain,
    address: Pointer,
    length: usize,
    handle: u32,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

#[repr(C)]
pub(super) struct Channel {
    context: *mut Context,
    pub(super) fd: c_int,
    references: c_int,
}

/// The beginning of `ibv_cq`.
#[repr(C)]
pub(super) struct CompletionQueue {
    pub(super) context: *mut Context,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Capacities {
    pub(super) max_send: u32,
    pub(super) max_receive: u32,
    pub(super) max_send_pieces: u32,
    pub(super) max_receive_pieces: u32,
    pub(super) max_inline: u32,
}

#[repr(C)]
pub(super) struct PairInit {
    pub(super) context: Pointer,
    pub(super) send_cq: *mut CompletionQueue,
    pub(super) receive_cq: *mut CompletionQueue,
    pub(super) shared_receive: Pointer,
    pub(super) capacities: Capacities,
    pub(super) kind: c_uint,
    pub(super) signals_all: c_int,
}

/// The beginning of `ibv_qp`.
#[repr(C)]
pub(super) struct Pair {
    pub(super) context: *mut Context,
    _pointers: [Pointer; 5],
    _handle: u32,
    pub(super) number: u32,
}

#[repr(C, align(8))]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Route {
    pub(super) gid: [u8; 16],
    pub(super) flow_label: u32,
    pub(super) own_gid_index: u8,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AddressHandle {
    pub(super) route: Route,
    pub(super) lid: u16,
    pub(super) service_level: u8,
    pub(super) path_bits: u8,
    pub(super) static_rate: u8,
    pub(super) is_global: u8,
    pub(super) port: u8,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PairAttributes {
    pub(super) state: c_uint,
    pub(super) current_state: c_uint,
    pub(super) path_mtu: c_uint,
    pub(super) migration_state: c_uint,
    pub(super) qkey: u32,
    pub(super) receive_psn: u32,
    pub(super) send_psn: u32,
    pub(super) remote_number: u32,
    pub(super) access: c_uint,
    pub(super) capacities: Capacities,
    pub(super) path: AddressHandle,
    pub(super) other_path: AddressHandle,
    pub(super) partition_index: u16,
    pub(super) other_partition_index: u16,
    pub(super) notifies_drained: u8,
    pub(super) is_draining: u8,
    pub(super) max_reads: u8,
    pub(super) max_reads_served: u8,
    pub(super) min_rnr_timer: u8,
    pub(super) port: u8,
    pub(super) timeout: u8,
    pub(super) retries: u8,
    pub(super) rnr_retries: u8,
    pub(super) other_port: u8,
    pub(super) other_timeout: u8,
    pub(super) rate_limit: u32,
}

#[repr(C)]
pub(super) struct Piece {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) lkey: u32,
}

#[repr(C)]
pub(super) struct SendRequest {
    pub(super) id: u64,
    pub(super) next: *mut Self,
    pub(super) pieces: *mut Piece,
    pub(super) piece_count: c_int,
    pub(super) opcode: c_uint,
    pub(super) flags: c_uint,
    pub(super) immediate: u32,
    pub(super) remote_address: u64,
    pub(super) rkey: u32,
    _rest: [u64; 9],
}

impl SendRequest {
    pub(super) fn new(id: u64, opcode: c_uint, piece: &mut Piece, remote_address: u64, rkey: u32) -> Self {
        Self {
            id,
            next: std::ptr::null_mut(),
            pieces: piece,
            piece_count: 1,
            opcode,
            flags: SEND_SIGNALED,
            immediate: 0,
            remote_address,
            rkey,
            _rest: [0; 9],
        }
    }
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Completion {
    pub(super) id: u64,
    pub(super) status: c_uint,
    pub(super) opcode: c_uint,
    pub(super) vendor_error: u32,
    pub(super) bytes: u32,
    pub(super) immediate: u32,
    pub(super) number: u32,
    _rest: [u32; 4],
}

pub(super) const WRITE: c_uint = 0;
pub(super) const READ: c_uint = 4;
pub(super) const SEND_SIGNALED: c_uint = 2;

pub(super) const STATUS_DONE: c_uint = 0;
pub(super) const STATUS_LOCAL_LENGTH: c_uint = 1;
pub(super) const STATUS_LOCAL_PROTECTION: c_uint = 4;
pub(super) const STATUS_REMOTE_INVALID: c_uint = 9;
pub(super) const STATUS_REMOTE_ACCESS: c_uint = 10;
pub(super) const STATUS_RETRY_EXCEEDED: c_uint = 12;
pub(super) const STATUS_RNR_EXCEEDED: c_uint = 13;

pub(super) const STATE_INIT: c_uint = 1;
pub(super) const STATE_RECEIVE: c_uint = 2;
pub(super) const STATE_SEND: c_uint = 3;
pub(super) const KIND_RELIABLE: c_uint = 2;

pub(super) const ACCESS_LOCAL_WRITE: c_int = 1;
pub(super) const ACCESS_REMOTE_WRITE: c_int = 2;
pub(super) const ACCESS_REMOTE_READ: c_int = 4;

pub(super) const PORT_ACTIVE: c_uint = 4;
pub(super) const ETHERNET: u8 = 2;

/// What `ibv_modify_qp` is told to look at.
pub(super) mod mask {
    use std::ffi::c_int;

    const STATE: c_int = 1;
    const TIMEOUTS: c_int = 512 | 1024 | 2048;

    /// Access flags, partition, port.
    pub(in super::super) const INIT: c_int = STATE | 8 | 16 | 32;
    /// Path, MTU, receive number, reads served, RNR timer, counterpart.
    pub(in super::super) const RECEIVE: c_int = STATE | 128 | 256 | 4096 | 32768 | 131_072 | 1_048_576;
    /// Timer, retries, send number, reads.
    pub(in super::super) const SEND: c_int = STATE | TIMEOUTS | 8192 | 65536;
}

// `ibv_send_wr`, `ibv_wc` and the attributes are written and read by both sides: their layout must be the library's.
const _: () = {
    assert!(size_of::<Operations>() == 256);
    assert!(offset_of!(Context, operations) == 8);
    assert!(offset_of!(Operations, poll_cq) == 88 && offset_of!(Operations, req_notify_cq) == 96);
    assert!(offset_of!(Operations, post_send) == 200);
    assert!(size_of::<PortAttributes>() == 52 && offset_of!(PortAttributes, active_mtu) == 8);
    assert!(offset_of!(PortAttributes, lid) == 34 && offset_of!(PortAttributes, link_layer) == 46);
    assert!(offset_of!(Memory, lkey) == 36 && offset_of!(Memory, rkey) == 40);
    assert!(size_of::<Channel>() == 16 && offset_of!(Channel, fd) == 8);
    assert!(size_of::<PairInit>() == 64 && offset_of!(PairInit, capacities) == 32);
    assert!(offset_of!(PairInit, kind) == 52 && offset_of!(PairInit, signals_all) == 56);
    assert!(offset_of!(Pair, number) == 52);
    assert!(size_of::<Route>() == 24 && offset_of!(Route, own_gid_index) == 20);
    assert!(size_of::<AddressHandle>() == 32 && offset_of!(AddressHandle, port) == 30);
    assert!(size_of::<PairAttributes>() == 144 && offset_of!(PairAttributes, path) == 56);
    assert!(offset_of!(PairAttributes, receive_psn) == 20 && offset_of!(PairAttributes, access) == 32);
    assert!(
        offset_of!(PairAttributes, partition_index) == 120 && offset_of!(PairAttributes, max_reads) == 126
    );
    assert!(offset_of!(PairAttributes, retries) == 131 && offset_of!(PairAttributes, rate_limit) == 136);
    assert!(size_of::<Piece>() == 16);
    assert!(size_of::<SendRequest>() == 128 && offset_of!(SendRequest, opcode) == 28);
    assert!(offset_of!(SendRequest, remote_address) == 40 && offset_of!(SendRequest, rkey) == 48);
    assert!(size_of::<Completion>() == 48 && offset_of!(Completion, number) == 28);
};

/// The functions that are called by name.
pub(super) struct Functions {
    pub(super) get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut Device,
    pub(super) free_device_list: unsafe extern "C" fn(*mut *mut Device),
    pub(super) device_name: unsafe extern "C" fn(*mut Device) -> *const c_char,
    pub(super) open_device: unsafe extern "C" fn(*mut Device) -> *mut Context,
    pub(super) close_device: unsafe extern "C" fn(*mut Context) -> c_int,
    pub(super) query_port: unsafe extern "C" fn(*mut Context, u8, *mut PortAttributes) -> c_int,
    pub(super) query_gid: unsafe extern "C" fn(*mut Context, u8, c_int, *mut [u8; 16]) -> c_int,
    pub(super) alloc_pd: unsafe extern "C" fn(*mut Context) -> *mut Domain,
    pub(super) dealloc_pd: unsafe extern "C" fn(*mut Domain) -> c_int,
    pub(super) reg_mr_iova: unsafe extern "C" fn(*mut Domain, Pointer, usize, u64, c_int) -> *mut Memory,
    pub(super) dereg_mr: unsafe extern "C" fn(*mut Memory) -> c_int,
    pub(super) create_channel: unsafe extern "C" fn(*mut Context) -> *mut Channel,
    pub(super) destroy_channel: unsafe extern "C" fn(*mut Channel) -> c_int,
    pub(super) create_cq:
        unsafe extern "C" fn(*mut Context, c_int, Pointer, *mut Channel, c_int) -> *mut CompletionQueue,
    pub(super) destroy_cq: unsafe extern "C" fn(*mut CompletionQueue) -> c_int,
    pub(super) get_cq_event:
        unsafe extern "C" fn(*mut Channel, *mut *mut CompletionQueue, *mut Pointer) -> c_int,
    pub(super) ack_cq_events: unsafe extern "C" fn(*mut CompletionQueue, c_uint),
    pub(super) create_qp: unsafe extern "C" fn(*mut Domain, *mut PairInit) -> *mut Pair,
    pub(super) modify_qp: unsafe extern "C" fn(*mut Pair, *mut PairAttributes, c_int) -> c_int,
    pub(super) destroy_qp: unsafe extern "C" fn(*mut Pair) -> c_int,
}
