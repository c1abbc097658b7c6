//! Tests of a group's files: openraft's own rules for storage, and crashes and failures at each operation.

use super::super::machine::Machine;
use super::*;
use crate::persistence::faulty_disk::{Fault, FaultyDisk};
use openraft::storage::RaftLogStorageExt;
use openraft::storage::RaftStateMachine;
use openraft::testing::{StoreBuilder, Suite};
use openraft::{CommittedLeaderId, EntryPayload, RaftSnapshotBuilder};
use towline_cluster_proto::{Change, NodeId};

const DIR: &str = "/group";

fn created() -> FaultyDisk {
    let disk = FaultyDisk::default();
    disk.make_dir(Path::new(DIR)).unwrap();
    create(&disk, Path::new(DIR), "g").unwrap();
    disk
}

fn open(disk: &FaultyDisk) -> Result<Store, OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open(&disk, Path::new(DIR), "g")
}

fn id(index: u64) -> LogId {
    LogId::new(CommittedLeaderId::new(1, 1), index)
}

fn entry(index: u64) -> Entry {
    let node = NodeId::from_bytes([9; NodeId::BYTES]);
    let payload = match index {
        0 => EntryPayload::Normal(Change::Found { cluster: node, node, shard: node, at: Default::default() }),
        _ => EntryPayload::Normal(Change::BumpEpoch { node }),
    };
    Entry { log_id: id(index), payload }
}

struct Build;

impl StoreBuilder<Types, Store, Machine, FaultyDisk> for Build {
    async fn build(&self) -> Result<(FaultyDisk, Store, Machine), StorageError> {
        let disk = created();
        let store = open(&disk).unwrap();
        let (machine, _) = Machine::new(store.clone());
        Ok((disk, store, machine))
    }
}

#[test]
fn it_keeps_every_rule_that_openraft_has_for_storage() {
    Suite::test_all(Build).unwrap();
}

/// What a node had promised, and may have done, when its disk failed.
#[derive(Debug, Default)]
struct Promised {
    vote: Option<Vote>,
    entries: u64,
}

/// A node's life, as far as the disk lets it go.
async fn live(store: &mut Store, promised: &mut Promised) -> Result<(), StorageError> {
    let (mut machine, _) = Machine::new(store.clone());
    for round in 0..4u64 {
        let vote = Vote::new(round + 1, 1);
        store.save_vote(&vote).await?;
        promised.vote = Some(vote);
        let entries: Vec<_> = (round * 3..round * 3 + 3).map(entry).collect();
        store.blocking_append(entries.clone()).await?;
        promised.entries = round * 3 + 3;
        store.save_committed(Some(id(round * 3 + 2))).await?;
        machine.apply(entries).await?;
        if round % 2 == 1 {
            machine.get_snapshot_builder().await.build_snapshot().await?;
            store.purge(id(round * 3 + 1)).await?;
        }
    }
    Ok(())
}

fn check(disk: &FaultyDisk, promised: &Promised, what: &str) {
    let store = open(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let state = store.state().clone();
    assert!(state.vote >= promised.vote, "{what}: it has forgotten its vote");
    let snapshot = store.kept().and_then(|(meta, _)| meta.last_log_id).map_or(0, |last| last.index + 1);
    let first = state.purged.map_or(0, |purged| purged.index + 1);
    assert!(first <= snapshot, "{what}: purged and in no snapshot");
    let last = state.last().map_or(0, |last| last.index + 1);
    assert!(last >= promised.entries, "{what}: {last} entries of {}", promised.entries);
    assert!(state.entries.keys().copied().eq(first..last), "{what}: a hole");
}

#[test]
fn a_disk_that_fails_at_any_operation_never_takes_back_a_promise() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let disk = created();
    let mut store = open(&disk).unwrap();
    disk.set_fault(Fault::None);
    runtime.block_on(live(&mut store, &mut Promised::default())).unwrap();
    runtime.block_on(store.close());
    let operations = disk.operations();
    assert!(operations > 20, "{operations}");
    for at in 1..=operations {
        for fault in [Fault::At(at), Fault::From(at)] {
            let disk = created();
            let mut store = open(&disk).unwrap();
            disk.set_fault(fault);
            let mut promised = Promised::default();
            let result = runtime.block_on(live(&mut store, &mut promised));
            runtime.block_on(store.close());
            if result.is_ok() {
                // Only what nobody waited for can fail unheard.
                assert_eq!(promised.entries, 12);
            }
            check(&disk.copy(), &promised, &format!("{fault:?}"));
        }
    }
}

#[test]
fn a_log_that_is_cut_anywhere_opens_and_one_that_is_damaged_says_so() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let disk = created();
    let mut store = open(&disk).unwrap();
    runtime.block_on(live(&mut store, &mut Promised::default())).unwrap();
    runtime.block_on(store.close());
    let path = Path::new(DIR).join("g.log");
    let whole = disk.content(&path).unwrap();
    disk.put(&path, &whole[..whole.len() - 3]);
    let cut = open(&disk).unwrap();
    assert!(disk.content(&path).unwrap().len() < whole.len() - 3);
    drop(cut);
    let mut bad = whole.clone();
    bad[LOG_MAGIC.len() + 14] ^= 1;
    disk.put(&path, &bad);
    assert!(matches!(open(&disk), Err(OpenError::Damaged { .. })));
    disk.put(&path, &whole);
    disk.remove(&Path::new(DIR).join("g.snapshot")).unwrap();
    assert!(matches!(open(&disk), Err(OpenError::Gone { .. })));
    disk.remove(&path).unwrap();
    assert!(matches!(open(&disk), Err(OpenError::Gone { .. })));
}

#[test]
fn a_log_that_has_grown_is_written_anew_when_it_is_purged() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let disk = created();
    let mut store = open(&disk).unwrap();
    let large = |index| Entry {
        log_id: id(index),
        payload: EntryPayload::Normal(Change::DelSlots { slots: vec![(0, 9); 40_000] }),
    };
    runtime.block_on(async {
        let (mut machine, _) = Machine::new(store.clone());
        for index in 0..10 {
            store.blocking_append([large(index)]).await.unwrap();
        }
        assert!(store.bytes() > REWRITE_AT_BYTES / 2);
        machine.apply([entry(0)]).await.unwrap();
        machine.apply([Entry { log_id: id(8), payload: EntryPayload::Blank }]).await.unwrap();
        machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
        for index in 10..20 {
            store.blocking_append([large(index)]).await.unwrap();
        }
        store.purge(id(8)).await.unwrap();
        store.save_vote(&Vote::new(5, 5)).await.unwrap();
    });
    let before = 20 * 40_000;
    assert!(store.bytes() < before * 2, "{}", store.bytes());
    runtime.block_on(store.close());
    let store = open(&disk).unwrap();
    let state = store.state().clone();
    assert_eq!((state.vote, state.purged), (Some(Vote::new(5, 5)), Some(id(8))));
    assert!(state.entries.keys().copied().eq(9..20));
}
