//! Payloads that become values on another thread.
//!
//! Owns: handing a payload over and taking the value back. Does **not** own decoding (see [`crate::commands`]).

use crate::commands::decode_payload;
use crate::parking::Parking;
use std::sync::{Arc, Mutex, PoisonError};
use towline_rdb::{DumpError, Limits};
use towline_store::limits::EncodingLimits;
use towline_store::value::Value;

/// Payloads of more bytes are not decoded by a worker: this many take 0.1 to 0.3 ms, of which a turn may have 0.5.
pub(crate) const LARGE_PAYLOAD_BYTES: usize = 32 << 10;

/// A payload that is being decoded, or was.
#[derive(Debug)]
pub(crate) struct Decoding {
    payload: Arc<Vec<u8>>,
    limits: Limits,
    encoding: EncodingLimits,
    value: Mutex<Option<Result<Value, DumpError>>>,
    parking: Arc<Parking>,
}

impl Decoding {
    /// Of this payload, with these limits.
    pub(crate) fn new(payload: Arc<Vec<u8>>, limits: Limits, encoding: EncodingLimits) -> Self {
        Self { payload, limits, encoding, value: Mutex::new(None), parking: Arc::default() }
    }

    /// Where the command waits for the value.
    pub(crate) fn parking(&self) -> Arc<Parking> {
        Arc::clone(&self.parking)
    }

    /// Decodes, and ends the waiting.
    pub(super) fn run(&self) {
        let value = decode_payload(&self.payload, self.limits, &self.encoding);
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        self.parking.end();
    }

    /// The value, once. `None` if it is not there: the thread that was to make it has ended.
    pub(crate) fn take(&self) -> Option<Result<Value, DumpError>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Decoding {
    /// The last who has it may be a thread that was stopped before it could run.
    fn drop(&mut self) {
        self.parking.end();
    }
}
