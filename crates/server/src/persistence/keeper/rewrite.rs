//! One rewrite of the log on its way.
//!
//! Owns: carrying out the steps that `towline_persist::directory` plans, one at a time, the base in pieces. Does **not** own
//! their order, nor when a rewrite is made and what its failure means for the server.

use super::save::options;
use crate::persistence::appender::AppendError;
use crate::persistence::directory::Places;
use crate::persistence::disk::DiskFile;
use crate::persistence::loading::LoadError;
use crate::persistence::snapshot::{Progress, Snapshot, SnapshotError, Written};
use crate::shared::Shared;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use towline_persist::aof::Manifest;
use towline_persist::directory::{Action, BaseForm, Failure, Rewrite, RewriteKind};
use towline_store::stream;

/// Why a step was not done. All are the environment's fault, or that of a failure of the log itself, and worth another try.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RewriteError {
    /// The directory cannot be locked, or another server has it.
    #[error(transparent)]
    Lock(#[from] LoadError),
    /// A step that concerns files alone.
    #[error("cannot {action} in {}: {source}", directory.display())]
    Action { action: Action, directory: PathBuf, source: io::Error },
    /// The appender cannot go on with the new increment.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The data cannot be written.
    #[error("{}: {source}", path.display())]
    Base { path: PathBuf, source: SnapshotError },
}

/// What a step came to.
#[derive(Debug)]
pub(super) enum Step {
    /// There are more.
    More,
    /// The new base is in force; there are more.
    Committed,
    /// There is no other.
    Finished,
    /// It failed, and is tried again from an earlier step: later, and until it succeeds.
    TryAgain(RewriteError),
    /// It failed, and the rewrite is over: the old files are in force.
    GivenUp(RewriteError),
}

/// A rewrite under way.
#[derive(Debug)]
pub(super) struct RewriteJob {
    plan: Rewrite,
    places: Places,
    /// What the appender is told: a log that is taken over from an older server is not being appended to yet.
    switch: RewriteKind,
    form: BaseForm,
    before: Manifest,
    /// The base that is being written.
    base: Option<(Snapshot, Option<Box<dyn DiskFile>>)>,
    is_committed: bool,
    pub(super) progress: Arc<Progress>,
    /// The manifest in force, once that has changed.
    pub(super) manifest: Option<Manifest>,
}

impl RewriteJob {
    /// Plans a rewrite of the log with this manifest.
    pub(super) fn new(
        shared: &Shared,
        manifest: &Manifest,
        kind: RewriteKind,
        is_on: bool,
        progress: Arc<Progress>,
    ) -> Self {
        let config = shared.config();
        let form = if config.persistence.aof_use_rdb_preamble { BaseForm::Rdb } else { BaseForm::Commands };
        let places = Places::of(&config);
        let plan = Rewrite::new(&places.names, manifest, kind, form);
        let switch = if is_on { kind } else { RewriteKind::Enable };
        let before = manifest.clone();
        Self { plan, places, switch, form, before, base: None, is_committed: false, progress, manifest: None }
    }

    /// Carries out the next step, or a piece of it.
    pub(super) fn step(&mut self, shared: &Shared, unix_ms: u64) -> Step {
        let Some(action) = self.plan.action().cloned() else { return Step::Finished };
        match self.carry_out(shared, &action, unix_ms) {
            Ok(false) => Step::More,
            Ok(true) => {
                self.plan.done();
                if self.plan.is_committed() && !self.is_committed {
                    self.is_committed = true;
                    self.manifest = Some(self.plan.manifest_after().clone());
                    shared.persistence.log.told(self.written().bytes, 0);
                    shared.persistence.log.committed();
                    return Step::Committed;
                }
                Step::More
            }
            Err(error) => self.failed(shared, error),
        }
    }

    /// Whether the action is done as a whole.
    fn carry_out(&mut self, shared: &Shared, action: &Action, unix_ms: u64) -> Result<bool, RewriteError> {
        let disk = &*shared.persistence.disk;
        let failed = |source| RewriteError::Action {
            action: action.clone(),
            directory: self.places.log.clone(),
            source,
        };
        match action {
            Action::SwitchAppends { name } => {
                let file = disk.append(&self.places.log.join(name)).map_err(failed)?;
                let base = stream::Config { follows: false, ..stream::Config::default() };
                let stream = shared.persistence.log.switch(self.switch, file, name.clone(), base)?;
                let options = options(shared, &shared.config(), self.form, true, unix_ms);
                self.base = Some((Snapshot::new(stream, &options), None));
                if self.switch == RewriteKind::Replace {
                    self.tell_sizes(shared);
                }
                Ok(true)
            }
            Action::WriteBase { name } => {
                let path = self.places.log.join(name);
                let Some((snapshot, file)) = &mut self.base else { return Ok(true) };
                let mut handle = match file.take() {
                    Some(handle) => handle,
                    None => disk.create(&path).map_err(failed)?,
                };
                let stepped = snapshot.step(&shared.store, &mut *handle, &self.progress);
                *file = Some(handle);
                let is_whole = stepped.map_err(|source| RewriteError::Base { path, source })?;
                if is_whole {
                    self.close_base(shared);
                }
                Ok(is_whole)
            }
            Action::Create { .. } => {
                shared.persistence.lock_directory(&self.places.dir)?;
                self.places.carry_out(disk, action).map_err(failed)?;
                Ok(true)
            }
            _ => {
                self.places.carry_out(disk, action).map_err(failed)?;
                Ok(true)
            }
        }
    }

    /// Tells the appender how large the files behind the one that it goes on with are.
    fn tell_sizes(&self, shared: &Shared) {
        let size = |name: &str| {
            let file = shared.persistence.disk.open(&self.places.log.join(name));
            file.and_then(|file| file.size()).unwrap_or(0)
        };
        let base_bytes = self.before.base.as_ref().map_or(0, |file| size(&file.name));
        let other_bytes = self.before.increments.iter().map(|file| size(&file.name)).sum();
        shared.persistence.log.told(base_bytes, other_bytes);
    }

    fn failed(&mut self, shared: &Shared, error: RewriteError) -> Step {
        match self.plan.failed() {
            Failure::TryAgain => Step::TryAgain(error),
            Failure::GivenUp { cleanup, manifest } => {
                self.clean_up(shared, &cleanup, manifest);
                Step::GivenUp(error)
            }
        }
    }

    fn clean_up(&mut self, shared: &Shared, cleanup: &[Action], manifest: Manifest) {
        self.close_base(shared);
        for action in cleanup {
            // The next start removes what stays.
            let _ = self.places.carry_out(&*shared.persistence.disk, action);
        }
        self.manifest = Some(manifest);
        shared.persistence.log.given_up();
    }

    fn close_base(&mut self, shared: &Shared) {
        if let Some((snapshot, _)) = self.base.take() {
            snapshot.close(&shared.store);
        }
    }

    /// Whether the new base is in force for certain.
    pub(super) fn is_committed(&self) -> bool {
        self.is_committed
    }

    /// Whether the log promises nothing before this is committed.
    pub(super) fn is_first(&self) -> bool {
        self.switch == RewriteKind::Enable
    }

    /// The size of the base.
    pub(super) fn written(&self) -> Written {
        self.progress.written()
    }

    /// Ends it before its time; [`RewriteJob::manifest`] is in force. If the new manifest may be, everything stays: the next
    /// start finds out.
    pub(super) fn end(&mut self, shared: &Shared) {
        if self.is_committed {
            return;
        }
        if let Failure::GivenUp { cleanup, manifest } = self.plan.failed() {
            self.clean_up(shared, &cleanup, manifest);
        }
    }
}
