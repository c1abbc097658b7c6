//! The limits on what one connection makes the server keep.
//!
//! Owns: comparing with the limits and cutting the client off. Does **not** own what is counted.

use super::{Connection, Desk, End, unix_ms};
use crate::execute::Local;
use crate::limits::OutputLimit;
use std::sync::atomic::Ordering;

impl Connection {
    /// Cuts a client that does not read its replies.
    pub(super) fn enforce_output_limit(&mut self, local: &Local) -> Result<(), End> {
        let bytes = self.output.as_ref().map_or(0, |output| output.bytes());
        self.session.client.reply_bytes.store(bytes, Ordering::Relaxed);
        if bytes == 0 {
            self.over_soft_limit_since_ms = None;
            return Ok(());
        }
        self.enforce_client_memory(local, bytes)?;
        let limit: OutputLimit = local.config.output_limit(&self.session.client);
        let (over_soft, now_ms) = (limit.soft_bytes > 0 && bytes as u64 > limit.soft_bytes, unix_ms());
        let since = if over_soft { Some(self.over_soft_limit_since_ms.unwrap_or(now_ms)) } else { None };
        self.over_soft_limit_since_ms = since;
        let over_hard = limit.hard_bytes > 0 && bytes as u64 > limit.hard_bytes;
        if over_hard || since.is_some_and(|since| now_ms - since > limit.soft_seconds * 1000) {
            local.shared.stats.output_limit_disconnects.fetch_add(1, Ordering::Relaxed);
            self.session.client.kill();
            return Err(End::Here);
        }
        Ok(())
    }

    /// Bounds what one connection can make the server keep without executing it.
    pub(super) fn enforce_input_limit(&mut self, desk: &mut Desk) -> Result<(), End> {
        let owned: usize = self.owned.iter().map(|arg| arg.len()).sum();
        let multi = self.session.multi.as_ref().map_or(0, |multi| multi.bytes);
        let bytes = self.input.len() + self.big.as_ref().map_or(0, |big| big.block.len()) + owned + multi;
        self.session.client.query_bytes.store(bytes, Ordering::Relaxed);
        if bytes as u64 > desk.local.config.client_query_buffer_limit {
            desk.local.shared.stats.query_limit_disconnects.fetch_add(1, Ordering::Relaxed);
            self.session.client.kill();
            return Err(End::Here);
        }
        self.enforce_client_memory(&desk.local, bytes)
    }

    /// A client that holds much of what all may hold has them looked at at once; many with little each are looked at in the
    /// background.
    fn enforce_client_memory(&self, local: &Local, bytes: usize) -> Result<(), End> {
        const SHARE: u64 = 16;
        if let Some(bytes_max) = local.config.client_memory_bytes_max()
            && bytes as u64 > bytes_max / SHARE
        {
            local.shared.evict_clients(bytes_max);
            if self.session.client.is_killed() {
                return Err(End::Here);
            }
        }
        Ok(())
    }
}
