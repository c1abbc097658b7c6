//! The directory's rules: what a start does, and that a crash anywhere in a rewrite loses nothing.
//!
//! Effects are numbers, 1, 2, 3, ...; an increment holds its numbers a line each, and a base the last number that is
//! in it. So the right data is every number up to the last, once, and what was promised is among them.

use std::collections::BTreeMap;

use towline_persist::aof::{Manifest, ManifestFile};
use towline_persist::directory::{
    Action, BaseForm, DirectoryFile, Failure, Found, Names, Rewrite, RewriteKind, StartPlan, StartRefusal,
    plan_start,
};

const SINGLE: &str = "appendonly.aof";

fn names() -> Names {
    Names::new(SINGLE)
}

/// A disk that forgets, in a crash, what was not synced: bytes of files, and changes of names.
#[derive(Debug, Clone, Default)]
struct Disk {
    inodes: Vec<Inode>,
    live: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    pending: Vec<NameChange>,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    data: Vec<u8>,
    synced: usize,
}

#[derive(Debug, Clone)]
enum NameChange {
    Link(String, usize),
    Rename(String, String, usize),
    Unlink(String),
}

impl NameChange {
    fn apply(&self, directory: &mut BTreeMap<String, usize>) {
        match self {
            Self::Link(name, inode) => {
                directory.insert(name.clone(), *inode);
            }
            Self::Rename(from, to, inode) => {
                directory.remove(from);
                directory.insert(to.clone(), *inode);
            }
            Self::Unlink(name) => {
                directory.remove(name);
            }
        }
    }
}

impl Disk {
    fn of(files: &[(&str, &str)]) -> Self {
        let mut disk = Self::default();
        for (name, data) in files {
            disk.create(name);
            disk.append(name, data.as_bytes());
            disk.sync(name);
        }
        disk.sync_directory();
        disk
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    fn create(&mut self, name: &str) {
        self.inodes.push(Inode::default());
        self.change(NameChange::Link(name.to_owned(), self.inodes.len() - 1));
    }

    fn inode(&mut self, name: &str) -> &mut Inode {
        let at =
            *self.live.get(name).unwrap_or_else(|| panic!("{name} is not there: {:?}", self.live.keys()));
        &mut self.inodes[at]
    }

    fn append(&mut self, name: &str, bytes: &[u8]) {
        self.inode(name).data.extend_from_slice(bytes);
    }

    fn sync(&mut self, name: &str) {
        let inode = self.inode(name);
        inode.synced = inode.data.len();
    }

    fn sync_directory(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    /// Disks that a crash now may leave. File systems keep unsynced changes of names in any order: the first ones,
    /// all but one, only one. Of unsynced bytes none, one, or all are kept.
    fn crashes(&self) -> Vec<Self> {
        let count = self.pending.len();
        let first = (0..=count).map(|end| (0..end).collect());
        let but_one = (0..count).map(|one| (0..count).filter(|change| *change != one).collect());
        let only_one = (0..count).map(|one| vec![one]);
        let mut kept: Vec<Vec<usize>> = first.chain(but_one).chain(only_one).collect();
        kept.sort();
        kept.dedup();
        let mut after = Vec::new();
        for kept_changes in kept {
            let mut directory = self.durable.clone();
            kept_changes.iter().for_each(|change| self.pending[*change].apply(&mut directory));
            for kept_bytes in [0, 1, usize::MAX] {
                let mut inodes = self.inodes.clone();
                for inode in &mut inodes {
                    inode.data.truncate(inode.synced.saturating_add(kept_bytes));
                    inode.synced = inode.data.len();
                }
                after.push(Self {
                    inodes,
                    live: directory.clone(),
                    durable: directory.clone(),
                    pending: vec![],
                });
            }
        }
        after
    }

    fn found(&self) -> Found {
        let data = |inode: &usize| self.inodes[*inode].data.clone();
        Found {
            manifest: self.live.get(&names().manifest()).map(data),
            files: self
                .live
                .iter()
                .map(|(name, inode)| DirectoryFile { name: name.clone(), bytes: data(inode).len() as u64 })
                .collect(),
            has_single_log: false,
        }
    }
}

/// A server as far as its log is concerned.
#[derive(Debug, Clone)]
struct Server {
    disk: Disk,
    append_to: Option<String>,
    /// The last effect, the last one whose durability was promised, and the last one at the switch.
    last: u32,
    promised: u32,
    switch: u32,
    /// Whether each effect is synced before it is promised; if not, only a switch syncs.
    is_always: bool,
    /// Whether the log is on: if not, nothing is promised.
    is_on: bool,
}

impl Server {
    fn effect(&mut self) {
        self.last += 1;
        let Some(name) = self.append_to.clone() else { return };
        self.disk.append(&name, format!("{}\n", self.last).as_bytes());
        if self.is_always {
            self.disk.sync(&name);
            self.promised = if self.is_on { self.last } else { 0 };
        }
    }

    /// Carries out part `part` of an action; true if it was the last one.
    fn carry_out(&mut self, action: &Action, part: usize) -> bool {
        let (name, bytes) = match action {
            Action::Create { name } => (name, Vec::new()),
            Action::Write { name, bytes } => (name, bytes.clone()),
            Action::WriteBase { name } => (name, format!("base {}\n", self.switch).into_bytes()),
            Action::Rename { from, to } => {
                assert!(self.disk.live.contains_key(from), "{from} is renamed");
                let inode = self.disk.live[from];
                self.disk.change(NameChange::Rename(from.clone(), to.clone(), inode));
                return true;
            }
            Action::Remove { name } => {
                if self.disk.live.contains_key(name) {
                    self.disk.change(NameChange::Unlink(name.clone()));
                }
                return true;
            }
            Action::SyncDirectory => {
                self.disk.sync_directory();
                return true;
            }
            Action::SwitchAppends { name } => {
                if let Some(before) = self.append_to.take() {
                    self.disk.sync(&before);
                    self.promised = if self.is_on { self.last } else { 0 };
                }
                self.switch = self.last;
                self.append_to = Some(name.clone());
                return true;
            }
            Action::AdoptSingleLog { .. } => panic!("there is none here"),
        };
        let half = bytes.len() / 2;
        match part {
            0 => self.disk.create(name),
            1 => self.disk.append(name, &bytes[..half]),
            2 => self.disk.append(name, &bytes[half..]),
            _ => self.disk.sync(name),
        }
        part == 3
    }

    fn carry_out_all(&mut self, actions: &[Action]) {
        for action in actions {
            for part in 0.. {
                if self.carry_out(action, part) {
                    break;
                }
            }
        }
    }

    /// The server after a crash that left `disk`, as the start's plan says; and what the plan was.
    fn recover(disk: Disk, is_always: bool) -> (Self, StartPlan) {
        let plan = plan_start(&names(), &disk.found()).unwrap_or_else(|error| panic!("{error}: {disk:?}"));
        let mut server = Self {
            disk,
            append_to: None,
            last: 0,
            promised: 0,
            switch: 0,
            is_always,
            is_on: !plan.load.is_empty(),
        };
        server.carry_out_all(&plan.actions);
        for file in &plan.load {
            let text = String::from_utf8(server.disk.inode(&file.name).data.clone()).expect("ASCII");
            assert_eq!(file.bytes, text.len() as u64);
            if let Some(base) = text.strip_prefix("base ") {
                assert_eq!(server.last, 0, "the base comes first");
                server.last = base.strip_suffix('\n').expect("a base is whole").parse().expect("a number");
                continue;
            }
            for line in text.split_inclusive('\n') {
                let Some(number) = line.strip_suffix('\n') else {
                    assert!(file.may_be_torn, "{} is torn", file.name);
                    let inode = server.disk.inode(&file.name);
                    inode.data.truncate(text.len() - line.len());
                    inode.synced = inode.data.len();
                    break;
                };
                assert_eq!(number.parse(), Ok(server.last + 1), "each effect once, in order");
                server.last += 1;
            }
        }
        server.append_to = plan.append_to.clone();
        server.promised = server.last;
        (server, plan)
    }
}

/// Runs a rewrite, with an effect before each part of each step, and calls `at` there.
fn run(server: &mut Server, rewrite: &mut Rewrite, mut at: impl FnMut(&Server, &Rewrite)) {
    while let Some(action) = rewrite.action().cloned() {
        for part in 0.. {
            server.effect();
            at(server, rewrite);
            let is_last = server.carry_out(&action, part);
            at(server, rewrite);
            if is_last {
                break;
            }
        }
        rewrite.done();
        if rewrite.is_committed() && !server.is_on {
            server.is_on = true;
            server.disk.sync(&server.append_to.clone().expect("appends were switched"));
            server.promised = server.last;
        }
    }
}

fn new_server(is_always: bool) -> Server {
    let disk = Disk::default();
    Server { disk, append_to: None, last: 7, promised: 0, switch: 0, is_always, is_on: false }
}

/// A server with a log that was switched on and rewritten `rewrite_count` times.
fn server_with_log(is_always: bool, rewrite_count: usize) -> (Server, Manifest) {
    let mut server = new_server(is_always);
    let mut manifest = Manifest::default();
    for round in 0..=rewrite_count {
        let kind = if round == 0 { RewriteKind::Enable } else { RewriteKind::Replace };
        let mut rewrite = Rewrite::new(&names(), &manifest, kind, BaseForm::Rdb);
        run(&mut server, &mut rewrite, |_, _| {});
        manifest = rewrite.manifest_after().clone();
    }
    (server, manifest)
}

/// Checks every crash that is possible now: nothing promised is missing, nothing is there twice, a second crash during
/// the start changes nothing, and the log goes on.
fn check_crashes(server: &Server) {
    for disk in server.disk.crashes() {
        let (recovered, plan) = Server::recover(disk.clone(), server.is_always);
        assert!(recovered.last <= server.last);
        assert!(recovered.last >= server.promised, "{} of {}: {disk:?}", recovered.last, server.promised);
        let mut starting = Server { disk, ..recovered.clone() };
        for action in &plan.actions {
            for part in 0.. {
                let is_last = starting.carry_out(action, part);
                for disk in starting.disk.crashes() {
                    let (again, _) = Server::recover(disk, server.is_always);
                    assert_eq!(again.last, recovered.last);
                }
                if is_last {
                    break;
                }
            }
        }
        let (mut next, kind) =
            (recovered, if plan.load.is_empty() { RewriteKind::Enable } else { RewriteKind::Replace });
        let mut rewrite = Rewrite::new(&names(), &plan.manifest, kind, BaseForm::Commands);
        run(&mut next, &mut rewrite, |_, _| {});
        let (after, plan) = Server::recover(next.disk.clone(), server.is_always);
        assert_eq!(after.last, next.last);
        assert_eq!((plan.actions.len(), plan.load.len()), (0, 2), "nothing is left over: {plan:?}");
    }
}

#[test]
fn a_crash_anywhere_in_a_rewrite_loses_nothing_that_was_promised() {
    for is_always in [true, false] {
        for rewrite_count in 0..3 {
            let (mut server, manifest) = server_with_log(is_always, rewrite_count);
            let mut rewrite = Rewrite::new(&names(), &manifest, RewriteKind::Replace, BaseForm::Rdb);
            run(&mut server, &mut rewrite, |server, _| check_crashes(server));
            assert_eq!(rewrite.manifest_after().increments.len(), 1);
            check_crashes(&server);
        }
    }
}

#[test]
fn a_crash_while_the_log_is_switched_on_leaves_no_log_or_a_whole_one() {
    for is_always in [true, false] {
        let mut server = new_server(is_always);
        let mut rewrite = Rewrite::new(&names(), &Manifest::default(), RewriteKind::Enable, BaseForm::Rdb);
        run(&mut server, &mut rewrite, |server, rewrite| {
            for disk in server.disk.crashes() {
                let (recovered, plan) = Server::recover(disk, is_always);
                assert!(!rewrite.is_committed() || !plan.load.is_empty());
                assert!(recovered.last == 0 || recovered.last >= server.switch);
            }
            check_crashes(server);
        });
        check_crashes(&server);
    }
}

/// Whatever fails, the log goes on, and what the failure leaves is no obstacle for a start or for the next rewrite.
#[test]
fn a_failure_at_any_step_keeps_the_log_going() {
    for part_done in [false, true] {
        for fail_at in 0.. {
            let (mut server, manifest) = server_with_log(true, 1);
            let mut rewrite = Rewrite::new(&names(), &manifest, RewriteKind::Replace, BaseForm::Rdb);
            let mut manifest = rewrite.manifest_after().clone();
            let (mut step, mut has_failed) = (0, false);
            while let Some(action) = rewrite.action().cloned() {
                server.effect();
                if step == fail_at {
                    has_failed = true;
                    if part_done {
                        server.carry_out(&action, 0);
                    }
                    match rewrite.failed() {
                        Failure::TryAgain => assert!(step > 6),
                        Failure::GivenUp { cleanup, manifest: now } => {
                            assert_eq!(rewrite.action(), None);
                            server.carry_out_all(&cleanup);
                            manifest = now;
                        }
                    }
                } else {
                    server.carry_out_all(std::slice::from_ref(&action));
                    rewrite.done();
                }
                check_crashes(&server);
                step += 1;
            }
            server.effect();
            check_crashes(&server);
            let mut next = Rewrite::new(&names(), &manifest, RewriteKind::Replace, BaseForm::Rdb);
            run(&mut server, &mut next, |_, _| {});
            check_crashes(&server);
            if !has_failed {
                assert!(step > 12, "every step failed once");
                break;
            }
        }
    }
}

fn plan(files: &[(&str, &str)]) -> Result<StartPlan, StartRefusal> {
    plan_start(&names(), &Disk::of(files).found())
}

const MANIFEST: &str = "appendonly.aof.manifest";
const BASE_2: (&str, &str) = ("appendonly.aof.2.base.rdb", "base 3\n");
const INCREMENT_2: (&str, &str) = ("appendonly.aof.2.incr.aof", "4\n");
const TWO: (&str, &str) =
    (MANIFEST, "file appendonly.aof.2.base.rdb seq 2 type b\nfile appendonly.aof.2.incr.aof seq 2 type i\n");

#[test]
fn what_could_lose_data_is_refused() {
    let nothing = plan(&[]).unwrap();
    assert_eq!(nothing, StartPlan::default());
    assert_eq!(plan(&[BASE_2]), Err(StartRefusal::NoManifest(vec![BASE_2.0.into()])));
    assert_eq!(
        plan(&[("appendonly.aof", "1\n")]),
        Err(StartRefusal::NoManifest(vec!["appendonly.aof".into()]))
    );
    assert_eq!(plan(&[TWO, INCREMENT_2]), Err(StartRefusal::Missing(BASE_2.0.into())));
    assert_eq!(plan(&[TWO, BASE_2]), Err(StartRefusal::Missing(INCREMENT_2.0.into())));
    let no_base = (MANIFEST, "file appendonly.aof.2.incr.aof seq 2 type i\n");
    assert_eq!(plan(&[no_base, INCREMENT_2]), Err(StartRefusal::NoBase(2)));
    let error = plan(&[(MANIFEST, "file x seq 1\n"), BASE_2]).unwrap_err();
    assert!(error.to_string().starts_with("line 1 of the manifest"), "{error}");
    let mut found = Disk::of(&[TWO, BASE_2, INCREMENT_2]).found();
    found.has_single_log = true;
    assert_eq!(plan_start(&names(), &found), Err(StartRefusal::TwoLogs(SINGLE.into())));
}

#[test]
fn only_what_a_rewrite_left_is_removed() {
    let plan = plan(&[
        TWO,
        BASE_2,
        INCREMENT_2,
        ("temp-appendonly.aof.manifest", "x"),
        ("temp-appendonly.aof.base", "x"),
        ("appendonly.aof.3.base.rdb", "base 4\n"),
        ("appendonly.aof.3.incr.aof", ""),
        ("appendonly.aof.4.incr.aof", "5\n"),
        ("appendonly.aof.1.base.rdb", "older"),
        ("appendonly.aof.03.incr.aof", ""),
        ("notes.txt", "mine"),
    ])
    .unwrap();
    let removed: Vec<&str> = plan
        .actions
        .iter()
        .filter_map(|action| if let Action::Remove { name } = action { Some(name.as_str()) } else { None })
        .collect();
    assert_eq!(
        removed,
        [
            "appendonly.aof.3.base.rdb",
            "appendonly.aof.3.incr.aof",
            "temp-appendonly.aof.base",
            "temp-appendonly.aof.manifest",
        ]
    );
    let aside = ("appendonly.aof.4.incr.aof".to_owned(), "orphan-appendonly.aof.4.incr.aof".to_owned());
    assert_eq!(plan.set_aside, std::slice::from_ref(&aside));
    assert!(plan.actions.contains(&Action::Rename { from: aside.0, to: aside.1 }));
    assert_eq!(plan.append_to.as_deref(), Some(INCREMENT_2.0));
}

#[test]
fn a_tail_may_be_torn_only_where_nothing_follows() {
    let three = (MANIFEST, &*format!("{}file appendonly.aof.3.incr.aof seq 3 type i\n", TWO.1));
    let torn = |last: &str| -> Vec<bool> {
        let plan = plan(&[three, BASE_2, INCREMENT_2, ("appendonly.aof.3.incr.aof", last)]).unwrap();
        plan.load.iter().map(|file| file.may_be_torn).collect()
    };
    assert_eq!(torn("5\n"), [false, false, true]);
    assert_eq!(torn(""), [false, true, true]);
}

/// The log of a Redis before 7: the manifest is written, the file moves, and a crash in between changes nothing.
#[test]
fn a_single_log_becomes_the_base() {
    let found = |manifest: Option<&[u8]>, files: &[(&str, u64)], has_single_log| Found {
        manifest: manifest.map(<[u8]>::to_vec),
        files: files
            .iter()
            .map(|(name, bytes)| DirectoryFile { name: (*name).into(), bytes: *bytes })
            .collect(),
        has_single_log,
    };
    let first = plan_start(&names(), &found(None, &[], true)).unwrap();
    let Some(Action::Write { bytes, .. }) = first.actions.first() else { panic!("{first:?}") };
    assert_eq!(bytes, b"file appendonly.aof seq 1 type b\n");
    assert!(first.actions.contains(&Action::AdoptSingleLog { to: SINGLE.into() }));
    assert_eq!((first.load.len(), &first.append_to), (1, &None));

    let between = plan_start(&names(), &found(Some(bytes), &[(MANIFEST, 33)], true)).unwrap();
    assert_eq!(between, first);
    let after = plan_start(&names(), &found(Some(bytes), &[(MANIFEST, 33), (SINGLE, 9)], false)).unwrap();
    assert!(after.actions.is_empty() && after.load[0].may_be_torn && after.load[0].bytes == 9);

    let rewrite = Rewrite::new(&names(), &after.manifest, RewriteKind::Replace, BaseForm::Rdb);
    let manifest = rewrite.manifest_after();
    assert_eq!(manifest.base, Some(ManifestFile::new("appendonly.aof.2.base.rdb", 2)));
    assert_eq!(manifest.increments, [ManifestFile::new("appendonly.aof.1.incr.aof", 1)]);
}
