//! The steps of a rewrite.
//!
//! Owns their order, what a failure of each means, and which manifest is in force after each. Does not own when to
//! rewrite, nor the snapshot.
//!
//! ```text
//! Replace: create incr N+1 | manifest: + incr N+1 | switch | write base | name it | manifest: new base, rest history
//!          | remove history | manifest: - history
//! Enable:  (manifest, if there is none) | create incr N+1 | switch | write base | name it | manifest: new base, ...
//! ```
//!
//! The renaming of the second manifest is the commit: before it, a failure leaves the old base and all increments in
//! force; from it on, the remaining steps are tried again until they succeed.

use super::Action;
use super::names::Names;
use super::start::replace_manifest;
use crate::aof::{Manifest, ManifestFile};

/// How a base is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BaseForm {
    /// As an RDB file (`aof-use-rdb-preamble yes`). The default, as in Redis: it is smaller and loads faster.
    #[default]
    Rdb,
    /// As commands.
    Commands,
}

/// What the rewrite starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteKind {
    /// The log is on: its files hold everything, and appends go to the last increment or, after the adoption of a
    /// single log, to none yet.
    Replace,
    /// The log is off or new: its files, if any, are not the data. It promises nothing before the commit; a start
    /// before it finds the old manifest, and what was appended meanwhile is set aside.
    Enable,
}

/// What to do after an action failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The rewrite is over; everything that was promised is where it was. The actions remove what it left and may
    /// fail as well: the next start does the same.
    GivenUp {
        /// To be carried out once, as far as possible.
        cleanup: Vec<Action>,
        /// The manifest in force.
        manifest: Manifest,
    },
    /// The new manifest may be in force or not, and the files of both must stay: carry out
    /// [`Rewrite::action`] again, later, from an earlier step.
    TryAgain,
}

/// A rewrite under way. The caller carries out [`action`](Self::action) and tells [`done`](Self::done) or
/// [`failed`](Self::failed), until there is none.
#[derive(Debug, Clone)]
pub struct Rewrite {
    steps: Vec<Action>,
    at: usize,
    /// The step that renames the manifest with the new increment, if any: since then it may be in force.
    announce: Option<usize>,
    /// The first step of replacing the manifest by that of the new base.
    draft: usize,
    /// The first step of replacing it by one without history; the number of steps if there is no history.
    last_draft: usize,
    before: Manifest,
    announced: Manifest,
    after: Manifest,
    new_files: [String; 2],
    drafts: [String; 2],
}

impl Rewrite {
    /// Plans a rewrite of the log with this manifest; an empty one if there is none.
    #[must_use]
    pub fn new(names: &Names, manifest: &Manifest, kind: RewriteKind, form: BaseForm) -> Self {
        let last = |files: &[ManifestFile]| files.iter().map(|file| file.sequence).max().unwrap_or(0);
        let increment_sequence = last(&manifest.increments).max(last(&manifest.history)) + 1;
        let base_sequence =
            manifest.base.as_ref().map_or(0, |file| file.sequence).max(last(&manifest.history)) + 1;
        let increment = ManifestFile::new(names.increment(increment_sequence), increment_sequence);
        let base = ManifestFile::new(names.base(base_sequence, form), base_sequence);

        let mut announced = manifest.clone();
        if kind == RewriteKind::Replace {
            announced.increments.push(increment.clone());
        }
        let mut history = manifest.history.clone();
        history.extend(manifest.base.iter().chain(&manifest.increments).cloned());
        let committed = Manifest { base: Some(base.clone()), increments: vec![increment.clone()], history };
        let after = Manifest { history: Vec::new(), ..committed.clone() };

        let mut steps = Vec::new();
        if kind == RewriteKind::Enable && *manifest == Manifest::default() {
            // With a manifest in place, files that are not in it are known to be of an unfinished rewrite.
            steps.extend(replace_manifest(names, manifest));
        }
        steps.push(Action::Create { name: increment.name.clone() });
        steps.push(Action::SyncDirectory);
        let announce = (kind == RewriteKind::Replace).then(|| {
            steps.extend(replace_manifest(names, &announced));
            steps.len() - 2
        });
        steps.push(Action::SwitchAppends { name: increment.name.clone() });
        steps.push(Action::WriteBase { name: names.base_draft() });
        steps.push(Action::Rename { from: names.base_draft(), to: base.name.clone() });
        steps.push(Action::SyncDirectory);
        let draft = steps.len();
        steps.extend(replace_manifest(names, &committed));
        let mut last_draft = steps.len();
        if !committed.history.is_empty() {
            steps.extend(committed.history.iter().map(|file| Action::Remove { name: file.name.clone() }));
            steps.push(Action::SyncDirectory);
            last_draft = steps.len();
            steps.extend(replace_manifest(names, &after));
        }
        Self {
            steps,
            at: 0,
            announce,
            draft,
            last_draft,
            before: manifest.clone(),
            announced,
            after,
            new_files: [increment.name, base.name],
            drafts: [names.base_draft(), names.manifest_draft()],
        }
    }

    /// What to do now; `None` when the rewrite is finished.
    #[must_use]
    pub fn action(&self) -> Option<&Action> {
        self.steps.get(self.at)
    }

    /// The action has succeeded.
    pub fn done(&mut self) {
        self.at = (self.at + 1).min(self.steps.len());
    }

    /// Whether the new base is in force for certain: with [`RewriteKind::Enable`], whether the log keeps promises.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        self.at > self.draft + 2
    }

    /// The manifest at the end; the one to start the next rewrite from.
    #[must_use]
    pub fn manifest_after(&self) -> &Manifest {
        &self.after
    }

    /// The action has failed, as a whole or in part.
    pub fn failed(&mut self) -> Failure {
        if self.at > self.draft {
            // After a rename or the sync behind it, which manifest is in force is not known. Writing it again makes
            // it known.
            self.at = match (self.is_committed(), self.at > self.last_draft) {
                (false, _) => self.draft,
                (true, false) => self.at,
                (true, true) => self.last_draft,
            };
            return Failure::TryAgain;
        }
        let is_announced = self.announce.is_some_and(|announce| self.at >= announce);
        let mut cleanup: Vec<Action> =
            self.drafts.iter().map(|name| Action::Remove { name: name.clone() }).collect();
        // The increment comes first, and stays if the manifest may name it.
        let removed = self.new_files.iter().skip(usize::from(is_announced));
        cleanup.extend(removed.map(|name| Action::Remove { name: name.clone() }));
        self.at = self.steps.len();
        let manifest = if is_announced { &self.announced } else { &self.before };
        Failure::GivenUp { cleanup, manifest: manifest.clone() }
    }
}
