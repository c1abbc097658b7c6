//! What the keeper makes the appender do.
//!
//! Owns: beginning, switching to another file at one instant, and ending. Does **not** own turns (see [`super`]).

use super::file::LogFile;
use super::{AppendError, Appender, Now, Phase, Policy, RECOVER_REST, WAKE_BYTES};
use crate::config::AppendFsync;
use crate::persistence::disk::DiskFile;
use crate::persistence::gate::Gate;
use towline_cluster::SLOT_COUNT;
use towline_persist::directory::RewriteKind;
use towline_store::store::Store;
use towline_store::stream::{self, Batch, SlotStream, Wake};

impl Appender {
    pub(super) fn tail_config(&self) -> stream::Config {
        stream::Config {
            has_snapshot: false,
            reports_position: true,
            position_start: self.position,
            bytes_max: self.tail_bytes_max,
            wake: Some(Wake::clone(&self.wake)),
            wake_bytes: WAKE_BYTES,
            ..stream::Config::default()
        }
    }

    fn open_tail(&self, store: &Store, now: Now) -> SlotStream {
        SlotStream::open(store, 0..SLOT_COUNT as u16, now.unix_ms, &self.tail_config())
    }

    fn append_to(&mut self, handle: Box<dyn DiskFile>, name: String, bytes: u64, position: u64) {
        self.generation += 1;
        self.file = Some(LogFile::new(handle, name, bytes, position));
    }

    /// Appends go to this file from now on; it is the last of a log that holds everything.
    pub(crate) fn begin(
        &mut self,
        handle: Box<dyn DiskFile>,
        name: String,
        bytes: u64,
        store: &Store,
        gate: &Gate,
        now: Now,
    ) -> Result<(), AppendError> {
        if self.phase != Phase::Off {
            return Err(AppendError::State("is on already"));
        }
        self.tail = Some(self.open_tail(store, now));
        self.append_to(handle, name, bytes, self.position);
        self.phase = Phase::On;
        gate.set_durable(self.position);
        gate.set_promising(true);
        Ok(())
    }

    /// From one instant on appends go to this file. See [`LogHandle::switch`].
    #[expect(clippy::too_many_arguments, reason = "four of them are the surroundings, which no machine owns")]
    pub(crate) fn switch(
        &mut self,
        kind: RewriteKind,
        handle: Box<dyn DiskFile>,
        name: String,
        base: &stream::Config,
        store: &Store,
        gate: &Gate,
        now: Now,
    ) -> Result<SlotStream, AppendError> {
        match (kind, self.phase) {
            (RewriteKind::Replace, Phase::On) => self.replace(handle, name, base, store, gate, now),
            (RewriteKind::Enable, Phase::Off | Phase::Failed) => {
                self.enable(handle, name, base, store, gate, now)
            }
            (RewriteKind::Replace, Phase::Off) => {
                let snapshot = self.enable(handle, name, base, store, gate, now)?;
                self.phase = Phase::On;
                gate.set_durable(self.position);
                gate.set_promising(true);
                Ok(snapshot)
            }
            (_, Phase::Failed) => Err(AppendError::State("has failed")),
            (_, Phase::On) => Err(AppendError::State("is on already")),
            (_, Phase::Pending { .. }) => Err(AppendError::State("is just being written anew")),
        }
    }

    fn replace(
        &mut self,
        handle: Box<dyn DiskFile>,
        name: String,
        base: &stream::Config,
        store: &Store,
        gate: &Gate,
        now: Now,
    ) -> Result<SlotStream, AppendError> {
        if self.retry.is_some() {
            self.flush(gate, now).map_err(AppendError::Write)?;
        }
        let Some(tail) = &mut self.tail else { return Err(AppendError::State("is off")) };
        let (snapshot, instant) = tail.open_beside(store, now.unix_ms, base);
        let mut batch = std::mem::take(&mut self.batch);
        let result = match tail.next(store, &mut batch) {
            Ok(progress) => {
                self.position = progress.position;
                self.close_file(&batch, instant, gate, now)
            }
            Err(stream::Overrun) => {
                self.overrun(store, gate, now);
                Err(AppendError::Overrun)
            }
        };
        if result.is_ok() {
            self.append_to(handle, name, 0, instant);
        }
        // What came after the instant goes to the new file, or goes on in the old one.
        self.write(&batch, instant, gate, now);
        self.batch = batch;
        match result {
            Ok(()) => Ok(snapshot),
            Err(error) => {
                snapshot.close(store);
                Err(error)
            }
        }
    }

    /// Writes what came up to the instant, and syncs it.
    fn close_file(&mut self, batch: &Batch, instant: u64, gate: &Gate, now: Now) -> Result<(), AppendError> {
        let unix_s = self.policy.timestamps.then_some(now.unix_ms / 1000);
        if let Some(file) = &mut self.file {
            let before = batch.units().take_while(|unit| unit.position.get() <= instant);
            before.for_each(|unit| file.push(&unit, unix_s));
        }
        self.flush(gate, now).map_err(AppendError::Write)?;
        self.sync(gate, now).map_err(AppendError::Sync)
    }

    fn enable(
        &mut self,
        handle: Box<dyn DiskFile>,
        name: String,
        base: &stream::Config,
        store: &Store,
        gate: &Gate,
        now: Now,
    ) -> Result<SlotStream, AppendError> {
        let is_recovery = self.phase == Phase::Failed;
        if self.tail.is_none() {
            self.tail = Some(self.open_tail(store, now));
        }
        let Some(tail) = &mut self.tail else { return Err(AppendError::State("is off")) };
        let (snapshot, instant) = tail.open_beside(store, now.unix_ms, base);
        let mut batch = std::mem::take(&mut self.batch);
        match tail.next(store, &mut batch) {
            Ok(progress) => self.position = progress.position,
            Err(stream::Overrun) => {
                snapshot.close(store);
                self.overrun(store, gate, now);
                return Err(AppendError::Overrun);
            }
        }
        self.append_to(handle, name, 0, instant);
        self.phase = Phase::Pending { base: instant, is_broken: false, is_recovery };
        self.recover_at = None;
        // The base has what came before.
        self.write(&batch, instant, gate, now);
        self.batch = batch;
        Ok(snapshot)
    }

    /// The base of the last switch is in force.
    pub(crate) fn committed(&mut self, gate: &Gate, now: Now) {
        let Phase::Pending { base, is_broken, .. } = self.phase else { return };
        gate.set_durable(base);
        self.phase = if is_broken { Phase::Failed } else { Phase::On };
        if is_broken {
            self.recover_at = Some(now.instant);
        } else if self.retry.is_none() {
            self.last_write = Ok(());
        }
        self.tell_durable(gate);
        self.tell_gate(gate);
        gate.set_promising(true);
    }

    /// The base of the last switch was given up, or there was no switch because something before it has failed.
    pub(crate) fn given_up(&mut self, store: &Store, gate: &Gate, now: Now) {
        match self.phase {
            Phase::Off | Phase::On => {}
            Phase::Pending { is_recovery: false, .. } => self.close(store, gate),
            Phase::Failed | Phase::Pending { .. } => {
                self.phase = Phase::Failed;
                self.file = None;
                self.retry = None;
                self.recover_at = Some(now.instant + RECOVER_REST);
            }
        }
    }

    /// Writes and syncs all; then there is no log any more, whatever came of that.
    pub(crate) fn stop(&mut self, store: &Store, gate: &Gate, now: Now) -> Result<(), AppendError> {
        let result = self.finish(store, gate, now);
        self.close(store, gate);
        result
    }

    /// Writes and syncs all that has come.
    pub(crate) fn finish(&mut self, store: &Store, gate: &Gate, now: Now) -> Result<(), AppendError> {
        match self.phase {
            Phase::Off | Phase::Pending { is_recovery: false, .. } => return Ok(()),
            Phase::Failed | Phase::Pending { .. } => return Err(AppendError::State("has failed")),
            Phase::On => {}
        }
        if let Some(retry) = &mut self.retry {
            retry.at = now.instant;
        }
        self.append(store, gate, now);
        self.flush(gate, now).map_err(AppendError::Write)?;
        self.sync(gate, now).map_err(AppendError::Sync)?;
        if self.phase == Phase::On { Ok(()) } else { Err(AppendError::Overrun) }
    }

    fn close(&mut self, store: &Store, gate: &Gate) {
        if let Some(mut tail) = self.tail.take() {
            // Positions go on from here, should there be another tail.
            if let Ok(progress) = tail.next(store, &mut self.batch) {
                self.position = progress.position;
            }
            tail.close(store);
        }
        self.batch = Batch::default();
        (self.phase, self.file, self.retry, self.recover_at) = (Phase::Off, None, None, None);
        self.last_write = Ok(());
        gate.set_promising(false);
        gate.set_last(false);
        gate.set_crowded(false);
        gate.set_log_failed(None);
    }

    /// Changes the policy. `always` begins with a sync, so that it holds for whatever is answered from then on.
    pub(crate) fn set_policy(&mut self, policy: Policy, store: &Store, gate: &Gate, now: Now) {
        let begins = policy.fsync == AppendFsync::Always && !self.is_always();
        self.policy = policy;
        if begins && self.phase == Phase::On {
            // A failure is noted.
            let _ = self.finish(store, gate, now);
        }
        gate.set_last(false);
    }

    /// What is executed from now on is not answered before it is on the device, whatever the policy.
    pub(crate) fn hold_everything(&mut self, gate: &Gate) {
        if self.phase == Phase::On {
            self.policy.fsync = AppendFsync::Always;
            gate.set_last(true);
        }
    }
}
