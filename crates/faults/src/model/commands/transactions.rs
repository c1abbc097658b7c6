//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.

use towline_resp::writer::Writer;

use super::{Call, Step};
use crate::model::failure::Failure;
use crate::model::session::Transaction;
use crate::model::{Executed, Model};

impl Model {
    /// `MULTI`
    pub(super) fn multi(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        if session.transaction.is_some() {
            return Err(Failure::text("ERR MULTI calls can not be nested"));
        }
        session.transaction = Some(Transaction::default());
        out.ok();
        Ok(Step::Done)
    }

    /// `DISCARD`
    pub(super) fn discard(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        if session.transaction.take().is_none() {
            return Err(Failure::text("ERR DISCARD without MULTI"));
        }
        session.unwatch();
        out.ok();
        Ok(Step::Done)
    }

    /// `WATCH key [key ...]`
    pub(super) fn watch(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        if session.transaction.is_some() {
            return Err(Failure::text("ERR WATCH inside MULTI is not allowed"));
        }
        let db = session.db;
        session.watched.extend(call.args[1..].iter().map(|key| (db, key.clone())));
        out.ok();
        Ok(Step::Done)
    }

    /// `UNWATCH`
    pub(super) fn unwatch(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        if let Some(session) = self.sessions.get_mut(&call.connection) {
            session.unwatch();
        }
        out.ok();
        Ok(Step::Done)
    }

    /// `EXEC`
    pub(super) fn exec(&mut self, call: &Call<'_>, out: &mut Writer) -> Result<Step, Failure> {
        let Some(session) = self.sessions.get_mut(&call.connection) else { return Ok(Step::Silent) };
        let Some(transaction) = session.transaction.take() else {
            return Err(Failure::text("ERR EXEC without MULTI"));
        };
        let is_dirty = session.is_dirty;
        session.unwatch();
        if transaction.is_aborted {
            return Err(Failure::text("EXECABORT Transaction discarded because of previous errors."));
        }
        if is_dirty {
            out.null_array();
            return Ok(Step::Done);
        }
        out.array(transaction.queue.len());
        // Each queued command is one entry, and EXEC's own comes behind them.
        let own_sequence = self.ledger.next_sequence() + transaction.queue.len() as u64;
        for (command, args) in &transaction.queue {
            let start = out.mark();
            let queued = Call { command, args, is_queued: true, is_first: false, ..*call };
            let result = self.run(&queued, out);
            let failed = result.is_err();
            if let Err(failure) = result {
                out.truncate(start);
                out.error(failure);
            }
            self.record(Executed {
                now: call.now,
                connection: call.connection,
                command,
                args,
                transaction: Some(own_sequence),
                failed,
            });
        }
        Ok(Step::Done)
    }
}
