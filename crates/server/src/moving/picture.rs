//! A key on its way: read, and marked until its fate is known.
//!
//! Owns: reading a value while commands go on, and the end of a key's way. Does **not** own sending (see
//! [`super::courier`]).

use crate::connection::unix_ms;
use crate::execute::Local;
use crate::followups;
use crate::parking::Parking;
use crate::shared::Shared;
use std::sync::Arc;
use towline_cluster::key_slot;
use towline_store::WatchFlag;
use towline_store::changes::{Changes, Settings};
use towline_store::keyspace::Keyspace;
use towline_store::notify::Class;
use towline_store::stream::{Picture, Piece};

/// How often reading begins anew because fields of a hash expire; then it is read under one hold of its slot.
const RESTARTS_MAX: usize = 16;

/// What became of a key at the target, as far as it is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// The target cannot have it by what was sent.
    Unsent,
    /// All of it was given to the system, and there is no answer.
    Sent,
    /// The target has it.
    Moved,
    /// The target does not want it, or it is no longer to be moved.
    Stays,
    /// It is there, perhaps by an earlier order.
    Owed,
    /// Nobody could be asked.
    Unknown,
}

/// A key on its way, whose mark is set.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) key: Vec<u8>,
    pub(super) payload: Arc<Vec<u8>>,
    pub(super) expires_at_ms: Option<u64>,
    pub(super) access: u32,
    pub(super) fate: Fate,
    parking: Arc<Parking>,
}

/// What a look at a key finds.
#[derive(Debug)]
pub(super) enum Found {
    /// There is no such key any more.
    Gone,
    /// It is on another way, which ends there.
    Elsewhere(Arc<Parking>),
    /// It is marked, and its value is to be completed.
    Begun(Begun),
}

/// A key that is marked and not read to its end.
#[derive(Debug)]
pub(super) struct Begun {
    key: Vec<u8>,
    db: u8,
    picture: Picture,
    parking: Arc<Parking>,
    /// Set when the value changes while it is read: what keeps commands away does not keep fields from expiring.
    flag: Option<Arc<WatchFlag>>,
}

/// Marks a key and begins to read it.
pub(super) fn begin(local: &mut Local, db: u8, key: &[u8]) -> Found {
    let Local { shared, settings, changes, .. } = local;
    let mut ks = Keyspace::hold(&shared.store, [key_slot(key)], settings, changes, db, unix_ms());
    if let Some(parking) = shared.moves.marks.of(key) {
        return Found::Elsewhere(parking);
    }
    let Some(picture) = ks.picture(key, Piece::default()) else { return Found::Gone };
    let parking = match shared.moves.marks.set(key) {
        Ok(parking) => parking,
        Err(parking) => return Found::Elsewhere(parking),
    };
    let flag = picture.needs_slot().then(Arc::<WatchFlag>::default);
    if let Some(flag) = &flag {
        ks.watch(key, flag);
    }
    Found::Begun(Begun { key: key.to_vec(), db, picture, parking, flag })
}

impl Begun {
    /// Whether little is left to be done.
    pub(super) fn is_small(&self) -> bool {
        self.picture.is_complete()
    }

    /// Reads the rest, piece by piece. The key's slot is free in between. A value that vanished is a parcel that stays.
    pub(super) fn complete(self, shared: &Shared, settings: &Settings) -> Parcel {
        let Self { key, db, mut picture, parking, mut flag } = self;
        let mut changes = Changes::new(0);
        let (mut restarts, mut is_gone) = (0, false);
        while !picture.is_complete() {
            picture.make_room();
            if !picture.needs_slot() {
                picture.advance();
                continue;
            }
            let mut ks =
                Keyspace::hold(&shared.store, [key_slot(&key)], settings, &mut changes, db, unix_ms());
            let Some(changed) = flag.take_if(|flag| flag.is_set()) else {
                ks.picture_more(&key, &mut picture);
                continue;
            };
            ks.unwatch(&key, &changed);
            restarts += 1;
            let all = Piece { elements: usize::MAX, bytes: usize::MAX };
            let piece = if restarts < RESTARTS_MAX { Piece::default() } else { all };
            let Some(anew) = ks.picture(&key, piece) else {
                is_gone = true;
                break;
            };
            picture = anew;
            if picture.needs_slot() {
                ks.watch(&key, flag.insert(Arc::default()));
            }
        }
        if let Some(flag) = &flag {
            let slots = [key_slot(&key)];
            Keyspace::hold(&shared.store, slots, settings, &mut changes, db, unix_ms()).unwatch(&key, flag);
        }
        let (expires_at_ms, access) = (picture.expires_at_ms(), picture.access());
        let fate = if is_gone { Fate::Stays } else { Fate::Unsent };
        let payload = Arc::new(if is_gone { Vec::new() } else { picture.into_payload() });
        Parcel { key, payload, expires_at_ms, access, fate, parking }
    }
}

/// Ends the way of these keys, whose fates are known: those that have moved are deleted, unless they were copied; then whoever
/// waits for one goes on. What was deleted is in the log up to the position that is returned, 0 if nothing was.
pub(super) fn finish(local: &mut Local, db: u8, parcels: Vec<Parcel>, copies: bool) -> u64 {
    if parcels.is_empty() {
        return 0;
    }
    let now_ms = unix_ms();
    local.refresh();
    let (shared, settings) = (Arc::clone(&local.shared), Arc::clone(&local.settings));
    let slots = parcels.iter().map(|parcel| key_slot(&parcel.key));
    let mut ks = Keyspace::hold(&shared.store, slots, &settings, &mut local.changes, db, now_ms);
    ks.changes().tracks_prefixes = shared.tracking.any_broadcast();
    for parcel in &parcels {
        // Nobody could write it meanwhile. It may have expired, or have been flushed: then it is not deleted twice.
        if parcel.fate == Fate::Moved && !copies && ks.delete(&parcel.key) {
            ks.changed(&parcel.key, Class::Generic, "del");
        }
        shared.moves.marks.clear(&parcel.key);
    }
    drop(ks);
    let deferred: Vec<_> = parcels.iter().flat_map(|parcel| parcel.parking.end()).collect();
    for (db, key) in deferred {
        let mut ks =
            Keyspace::hold(&shared.store, [key_slot(&key)], &settings, &mut local.changes, db, now_ms);
        ks.serve_again(&key);
    }
    followups::work_off(local, None, now_ms);
    let position = local.changes.position;
    (local.changes.position, local.changes.seen) = (0, 0);
    shared.stats.worker(local.worker).absorb(&mut local.changes);
    position
}
