//! What a start does with the files that it finds.
//!
//! Owns the decision. Files that are neither named by the manifest nor certainly left behind by a rewrite of ours are
//! never removed.

use std::collections::BTreeMap;

use super::Action;
use super::names::Names;
use crate::aof::{Manifest, ManifestError, ManifestFile};

/// A file in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryFile {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// What lies there at the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The manifest's content, if there is one.
    pub manifest: Option<Vec<u8>>,
    /// The regular files of the directory, in any order; none if there is no directory.
    pub files: Vec<DirectoryFile>,
    /// Whether a file with the name of the whole log lies beside the directory: the log of a Redis before 7.
    pub has_single_log: bool,
}

/// A file to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFile {
    /// Its name.
    pub name: String,
    /// Its size, as it was found.
    pub bytes: u64,
    /// Whether a torn tail may be cut. If not, a torn tail is damage: commands follow it in the next file.
    pub may_be_torn: bool,
}

/// What a start does, in this order: the actions, the loading, the appending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartPlan {
    /// To be carried out before loading.
    pub actions: Vec<Action>,
    /// To be loaded in this order. Empty: the log knows nothing yet. Then the data is what a snapshot holds, if
    /// any, and the log starts with [`RewriteKind::Enable`](super::RewriteKind::Enable).
    pub load: Vec<LoadFile>,
    /// The increment that effects are appended to, after its torn tail, if any, was cut. `None`: the log starts
    /// with a rewrite.
    pub append_to: Option<String>,
    /// The manifest in force after the actions.
    pub manifest: Manifest,
    /// Increments of which the manifest does not know, with their new names: for a warning. Nothing that was
    /// promised is in them, unless somebody put an old manifest back.
    pub set_aside: Vec<(String, String)>,
}

/// Why a start must not go on: it would lose data, or load what is not the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartRefusal {
    /// The manifest cannot be read.
    #[error("{0}; bring it back from a copy, or write it by hand")]
    Manifest(#[from] ManifestError),
    /// Files of a log are there and no manifest says how they belong together.
    #[error(
        "the log has files ({}) and no manifest: bring the manifest back from a copy, or move the files away to start \
         without them",
        .0.join(", ")
    )]
    NoManifest(Vec<String>),
    /// A file that the manifest names is not there.
    #[error("the manifest names {0}, which is not there: bring the file back from a copy")]
    Missing(String),
    /// Increments without the base that they go on from.
    #[error("the manifest names no base, and its first increment is number {0}: a base is missing")]
    NoBase(u64),
    /// Two logs, and no way to know which is the data.
    #[error(
        "both a log directory with data and the log of an older server ({0}) are there: move one of them away"
    )]
    TwoLogs(String),
}

/// Decides what to do with what was found.
///
/// # Errors
/// See [`StartRefusal`]: nothing was done and nothing should be; a person must decide.
pub fn plan_start(names: &Names, found: &Found) -> Result<StartPlan, StartRefusal> {
    let sizes: BTreeMap<&str, u64> =
        found.files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    let Some(text) = &found.manifest else { return without_manifest(names, found, &sizes) };
    let mut manifest = Manifest::parse(text)?;
    let mut plan = StartPlan::default();
    if is_adoption(names, &manifest) && !sizes.contains_key(names.single_log()) && found.has_single_log {
        // Died between writing the manifest and moving the file.
        return Ok(adopt(names));
    }
    if found.has_single_log && (manifest.base.is_some() || !manifest.increments.is_empty()) {
        return Err(StartRefusal::TwoLogs(names.single_log().to_owned()));
    }
    let mut load = Vec::new();
    for file in manifest.base.iter().chain(&manifest.increments) {
        let bytes = *sizes.get(file.name.as_str()).ok_or_else(|| StartRefusal::Missing(file.name.clone()))?;
        load.push(LoadFile { name: file.name.clone(), bytes, may_be_torn: false });
    }
    if let (None, Some(first)) = (&manifest.base, manifest.increments.first())
        && first.sequence > 1
    {
        return Err(StartRefusal::NoBase(first.sequence));
    }
    let increments_from = usize::from(manifest.base.is_some());
    allow_torn_tails(&mut load, increments_from, &manifest);
    plan.load = load;
    plan.append_to = manifest.increments.last().map(|file| file.name.clone());
    for file in manifest.history.drain(..) {
        plan.actions.push(Action::Remove { name: file.name });
    }
    let had_history = !plan.actions.is_empty();
    tidy_orphans(names, found, &manifest, &mut plan);
    if !plan.actions.is_empty() {
        plan.actions.push(Action::SyncDirectory);
    }
    if had_history {
        plan.actions.extend(replace_manifest(names, &manifest));
    }
    plan.manifest = manifest;
    Ok(plan)
}

/// A tail may be torn in the file that was written last: the last one, and those before it if all behind them are
/// empty. A single log that was adopted is a base of commands that was appended to until then.
fn allow_torn_tails(load: &mut [LoadFile], increments_from: usize, manifest: &Manifest) {
    let is_log = |index: usize| {
        index >= increments_from || manifest.base.as_ref().is_some_and(|base| !base.name.ends_with(".rdb"))
    };
    for index in (0..load.len()).rev() {
        load[index].may_be_torn = is_log(index);
        if load[index].bytes > 0 {
            break;
        }
    }
}

/// What is there and not in the manifest.
fn tidy_orphans(names: &Names, found: &Found, manifest: &Manifest, plan: &mut StartPlan) {
    let known: Vec<&str> = manifest.names().collect();
    let base_now = manifest.base.as_ref().map_or(0, |file| file.sequence);
    let increment_now = manifest.increments.last().map_or(0, |file| file.sequence);
    for DirectoryFile { name, bytes } in &found.files {
        if known.contains(&name.as_str()) {
            continue;
        }
        let is_draft = *name == names.manifest_draft() || *name == names.base_draft();
        let is_new_base = names.base_sequence(name).is_some_and(|sequence| sequence > base_now);
        let is_new_increment =
            names.increment_sequence(name).is_some_and(|sequence| sequence > increment_now);
        if is_draft || is_new_base || (is_new_increment && *bytes == 0) {
            plan.actions.push(Action::Remove { name: name.clone() });
        } else if is_new_increment {
            let to = names.set_aside(name);
            plan.set_aside.push((name.clone(), to.clone()));
            plan.actions.push(Action::Rename { from: name.clone(), to });
        }
    }
}

fn without_manifest(
    names: &Names,
    found: &Found,
    sizes: &BTreeMap<&str, u64>,
) -> Result<StartPlan, StartRefusal> {
    let is_part = |name: &&str| {
        names.base_sequence(name).is_some()
            || names.increment_sequence(name).is_some()
            || *name == names.single_log()
    };
    let parts: Vec<String> =
        sizes.keys().filter(|name| is_part(name)).map(|name| (*name).to_owned()).collect();
    match (parts.is_empty(), found.has_single_log) {
        (false, _) => Err(StartRefusal::NoManifest(parts)),
        (true, true) => Ok(adopt(names)),
        (true, false) => Ok(StartPlan::default()),
    }
}

/// The manifest that makes a single log the base of one in parts.
fn adopted(names: &Names) -> Manifest {
    Manifest { base: Some(ManifestFile::new(names.single_log(), 1)), ..Manifest::default() }
}

fn is_adoption(names: &Names, manifest: &Manifest) -> bool {
    *manifest == adopted(names)
}

/// Takes over the log of a Redis before 7. The manifest comes first: if the process dies before the file is moved,
/// the next start sees both and goes on.
fn adopt(names: &Names) -> StartPlan {
    let manifest = adopted(names);
    let mut actions = replace_manifest(names, &manifest);
    actions.push(Action::AdoptSingleLog { to: names.single_log().to_owned() });
    actions.push(Action::SyncDirectory);
    let load = LoadFile { name: names.single_log().to_owned(), bytes: 0, may_be_torn: true };
    StartPlan { actions, load: vec![load], append_to: None, manifest, set_aside: Vec::new() }
}

/// The steps that put a manifest in force.
pub(super) fn replace_manifest(names: &Names, manifest: &Manifest) -> Vec<Action> {
    let draft = names.manifest_draft();
    vec![
        Action::Write { name: draft.clone(), bytes: manifest.to_text().into_bytes() },
        Action::Rename { from: draft, to: names.manifest() },
        Action::SyncDirectory,
    ]
}
