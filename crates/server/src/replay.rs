//! Commands that no client waits for: those of a log that is loaded, and the effects of slots that come in.
//!
//! Owns: running one. Does **not** own where they come from, nor what its failure means.

use crate::command::{Args, CommandError, Ctx, Row};
use crate::shared::Shared;
use towline_resp::writer::Writer;
use towline_store::keyspace::Keyspace;

/// Why a command did not run. Whoever wrote it down is at fault, or a bug of ours.
#[derive(Debug)]
pub(crate) enum ReplayError {
    /// It would wait for a key, and what has an effect does not.
    Waits,
    /// It fails.
    Fails(CommandError),
}

/// Runs a command on what is held for it. Its reply goes to `out`, and is of no use.
///
/// # Errors
/// [`ReplayError`].
pub(crate) fn replay<'a>(
    shared: &'a Shared,
    row: &Row,
    args: Args<'_>,
    ks: Keyspace<'a>,
    out: &'a mut Writer,
) -> Result<(), ReplayError> {
    let mut ctx = Ctx {
        ks,
        out,
        server: shared,
        session: None,
        blocked: None,
        is_held_back: false,
        parked: None,
        worker: 0,
    };
    let result = (row.run)(&mut ctx, args);
    match result {
        Ok(()) if ctx.blocked.is_some() => Err(ReplayError::Waits),
        result => result.map_err(ReplayError::Fails),
    }
}
