//! Slots that come in from another node.
//!
//! Owns: putting the batches of their stream into the store, where nobody sees them yet, and what becomes of them at the end. Does
//! **not** own the link, nor whose slots they are.
//!
//! While slots come in they are hidden (see [`Keyspace::hide_slot`]): no client reads them, nothing in them expires or is evicted.
//! Images are put into the store as they come. Effects wait until the snapshot is complete, for they may concern keys
//! whose image is still to come; what waits is bounded by [`UNITS_BYTES_MAX`]. Everything that is put into the store goes to this node's log
//! as well, so an import that was committed survives a crash as far as the log does.

use super::Known;
use crate::command::Args;
use crate::commands::ValueBuilder;
use crate::execute::{hold, resolve, slots_of};
use crate::persistence::snapshot::elements::{Element, Shape};
use crate::replay::{ReplayError, replay};
use crate::shared::Shared;
use std::collections::VecDeque;
use std::sync::Arc;
use towline_cluster::{SLOT_COUNT, Slot, key_slot};
use towline_cluster_proto::NodeId;
use towline_rdb::{HashFieldRef, Limits, ObjectError, RdbType, Visitor};
use towline_resp::request::{ArgRange, Progress, RequestLimits, RequestParser};
use towline_resp::writer::Writer;
use towline_spec::Flags;
use towline_store::Scope;
use towline_store::changes::{Changes, Settings};
use towline_store::hash::Hash;
use towline_store::keyspace::Keyspace;
use towline_store::list::List;
use towline_store::set::Set;
use towline_store::stream::{Batch, Effect, Image, KeyHead};
use towline_store::value::Value;
use towline_store::zset::Zset;

/// Effects that wait for the end of the snapshot, in bytes: as much as a source lets its stream fall behind.
pub(crate) const UNITS_BYTES_MAX: usize = towline_store::stream::BYTES_MAX_DEFAULT;

/// Why an import cannot go on. What was imported is to be dropped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// The source's fault: it sent what no source sends. Not retryable.
    #[error("the source sent {0}")]
    Protocol(String),
    /// A value that cannot be read; the source's fault. Not retryable.
    #[error("the source sent a value of key \"{}\" that cannot be read: {error}", .key.escape_ascii())]
    Value {
        /// The key.
        key: Vec<u8>,
        /// What is wrong.
        error: ObjectError,
    },
    /// Writes to the slots came faster than the snapshot. Nobody's fault; retryable when there is less load.
    #[error("more than {UNITS_BYTES_MAX} bytes of effects came before the snapshot was complete")]
    TooManyEffects,
}

/// A value whose parts are coming in.
struct Large {
    key: Vec<u8>,
    slot: Slot,
    expires_at_ms: Option<u64>,
    access: u32,
    shape: Shape,
    value: Value,
    count_hint: usize,
}

/// Slots that are coming in.
pub(crate) struct Import {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    limits: Limits,
    changes: Changes,
    out: Writer,
    /// Ascending.
    slots: Vec<Slot>,
    is_ours: Box<[bool]>,
    large: Option<Large>,
    waiting: VecDeque<Batch>,
    waiting_bytes: usize,
    keys: u64,
    /// The migration that an earlier process may have worked on.
    resumed: Option<NodeId>,
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import")
            .field("slots", &self.slots.len())
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Import {
    /// Hides the slots, which this node does not own, and drops what is left in them from before.
    pub(crate) fn begin(shared: &Arc<Shared>, slots: impl IntoIterator<Item = Slot>) -> Self {
        let mut import = Self::hide(shared, slots, None);
        import.for_each_slot(|ks, slot| _ = ks.flush_slot(slot));
        import
    }

    /// Hides the slots and keeps what is in them: it was imported before a crash, and it is not known yet whose it is. Perhaps this migration has
    /// brought it, perhaps a later one that this process has not heard of yet.
    pub(crate) fn resume(
        shared: &Arc<Shared>,
        slots: impl IntoIterator<Item = Slot>,
        migration: NodeId,
    ) -> Self {
        Self::hide(shared, slots, Some(migration))
    }

    fn hide(shared: &Arc<Shared>, slots: impl IntoIterator<Item = Slot>, resumed: Option<NodeId>) -> Self {
        let config = shared.config();
        let mut slots: Vec<Slot> = slots.into_iter().filter(|&slot| usize::from(slot) < SLOT_COUNT).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut is_ours = vec![false; SLOT_COUNT].into_boxed_slice();
        slots.iter().for_each(|&slot| is_ours[usize::from(slot)] = true);
        let limits = Limits { string_bytes_max: config.proto_max_bulk_len, ..Limits::default() };
        let mut import = Self {
            shared: Arc::clone(shared),
            settings: Arc::new(config.settings()),
            limits,
            changes: Changes::new(0),
            out: Writer::default(),
            slots,
            is_ours,
            large: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            keys: 0,
            resumed,
        };
        import.for_each_slot(|ks, slot| ks.hide_slot(slot));
        import
    }

    /// Keys whose image has come.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// Puts a batch into the store; `is_snapshot_done` says that it and those before it hold the whole snapshot.
    ///
    /// # Errors
    /// See [`ImportError`]; the import is to be [abandoned](Self::abandon).
    pub(crate) fn apply(&mut self, batch: Batch, is_snapshot_done: bool) -> Result<(), ImportError> {
        for image in batch.images() {
            self.image(image)?;
        }
        if is_snapshot_done && self.large.is_some() {
            return Err(ImportError::Protocol("a snapshot that ends within a value".into()));
        }
        if !is_snapshot_done {
            if !batch.unit_bytes().is_empty() {
                self.waiting_bytes += batch.unit_bytes().len();
                if self.waiting_bytes > UNITS_BYTES_MAX {
                    return Err(ImportError::TooManyEffects);
                }
                let units =
                    Batch::from_bytes(Vec::new(), batch.unit_bytes().to_vec(), batch.position_before());
                self.waiting.push_back(units.map_err(|error| ImportError::Protocol(error.to_string()))?);
            }
            return Ok(());
        }
        self.waiting_bytes = 0;
        while let Some(earlier) = self.waiting.pop_front() {
            self.units(&earlier)?;
        }
        self.units(&batch)
    }

    /// The slots are this node's now: their keys count, and their time runs. Those that have moved on since a crash are emptied.
    pub(crate) fn finish(mut self) {
        let resumed = self.resumed_in();
        self.for_each_slot(|ks, slot| {
            if resumed.as_ref().is_some_and(|(_, known)| known.metadata.owner(slot) != Some(known.me)) {
                ks.flush_slot(slot);
            }
            ks.show_slot(slot);
        });
    }

    /// Nothing comes of it: what was imported is dropped, and the slots are as before.
    pub(crate) fn abandon(mut self) {
        let resumed = self.resumed_in();
        self.for_each_slot(|ks, slot| {
            let came_later =
                |(id, known): &(NodeId, Arc<Known>)| known.metadata.came_later(known.me, slot, *id);
            if !resumed.as_ref().is_some_and(came_later) {
                ks.flush_slot(slot);
            }
            ks.show_slot(slot);
        });
    }

    /// What is known, if what is here may be another migration's.
    fn resumed_in(&self) -> Option<(NodeId, Arc<Known>)> {
        let known = self.shared.cluster.as_deref().map(|cluster| Arc::clone(&cluster.known()));
        self.resumed.zip(known)
    }

    /// Up to where this node's log has to be durable before what was imported is.
    pub(crate) fn position(&self) -> u64 {
        self.changes.position
    }

    fn for_each_slot(&mut self, mut act: impl FnMut(&mut Keyspace<'_>, Slot)) {
        for &slot in &self.slots {
            let mut ks = Keyspace::hold(&self.shared.store, [slot], &self.settings, &mut self.changes, 0, 0);
            act(&mut ks, slot);
            drop(ks);
            Self::forget(&mut self.changes);
        }
    }

    /// Nobody is to be told of what happens here, and what was replaced is freed at once: nobody waits for this thread.
    fn forget(changes: &mut Changes) {
        changes.notes.clear();
        changes.invalidated.clear();
        changes.modified.clear();
        changes.ready.clear();
        changes.garbage.clear();
        changes.tables.clear();
    }

    fn check_slot(&self, slot: Slot) -> Result<(), ImportError> {
        if self.is_ours.get(usize::from(slot)).copied().unwrap_or(false) {
            return Ok(());
        }
        Err(ImportError::Protocol(format!("something of slot {slot}, which does not move")))
    }

    // ---- images ---------------------------------------------------------------------------------------------------

    fn image(&mut self, image: Image<'_>) -> Result<(), ImportError> {
        match (image, self.large.take()) {
            (Image::Key { head, object }, None) => self.key(&head, object),
            (Image::Begin { head, object }, None) => self.begin_large(&head, object),
            (Image::Part { elements }, Some(mut large)) => {
                self.part(&mut large, elements)?;
                self.large = Some(large);
                Ok(())
            }
            (Image::End, Some(large)) => self.end_large(large),
            _ => Err(ImportError::Protocol("parts of values in no order".into())),
        }
    }

    fn check_head(&self, head: &KeyHead<'_>) -> Result<(), ImportError> {
        self.check_slot(head.slot)?;
        if head.db != 0 || key_slot(head.key) != head.slot {
            return Err(ImportError::Protocol("a key under another slot or database than its own".into()));
        }
        Ok(())
    }

    fn key(&mut self, head: &KeyHead<'_>, object: &[u8]) -> Result<(), ImportError> {
        self.check_head(head)?;
        let value =
            self.decode(object).map_err(|error| ImportError::Value { key: head.key.to_vec(), error })?;
        self.load(head.key, head.slot, value, head.expires_at_ms, head.access)
    }

    fn decode(&self, object: &[u8]) -> Result<Value, ObjectError> {
        let (shape, count, elements) = Shape::read(object)?;
        let mut value = empty(shape.rdb_type)?;
        let mut count_hint = usize::try_from(count).unwrap_or(usize::MAX);
        self.add(shape, &mut value, &mut count_hint, elements)?;
        Ok(value)
    }

    /// Adds encoded elements to a value; of a string, whole strings.
    fn add(
        &self,
        shape: Shape,
        value: &mut Value,
        count_hint: &mut usize,
        elements: &[u8],
    ) -> Result<(), ObjectError> {
        let before = std::mem::replace(value, Value::Bytes(Vec::new()));
        let mut builder = ValueBuilder::with(before, *count_hint, &self.settings.limits);
        let is_list = shape.rdb_type == RdbType::List;
        let result = shape.for_each_within(self.limits, elements, |element| match element {
            Element::Plain(bytes) if shape.rdb_type == RdbType::String => builder.string(&bytes),
            Element::Plain(bytes) if is_list => builder.list_element(&bytes),
            Element::Plain(bytes) => _ = builder.set_member(&bytes),
            Element::Scored(member, score) => _ = builder.zset_member(&member, score),
            Element::Field(name, value) => {
                _ = builder.hash_field(HashFieldRef { name: &name, value: &value, expires_at_ms: None });
            }
            Element::Expiring(at, name, value) => {
                let expires_at_ms = shape.field_expiry_ms(at);
                _ = builder.hash_field(HashFieldRef { name: &name, value: &value, expires_at_ms });
            }
        });
        (*value, *count_hint) = builder.into_parts();
        result
    }

    fn begin_large(&mut self, head: &KeyHead<'_>, object: &[u8]) -> Result<(), ImportError> {
        self.check_head(head)?;
        let read = || {
            let (shape, count, _) = Shape::read(object)?;
            Ok((shape, empty(shape.rdb_type)?, usize::try_from(count).unwrap_or(usize::MAX)))
        };
        let (shape, value, count_hint) =
            read().map_err(|error| ImportError::Value { key: head.key.to_vec(), error })?;
        let KeyHead { slot, expires_at_ms, access, .. } = *head;
        let key = head.key.to_vec();
        self.large = Some(Large { key, slot, expires_at_ms, access, shape, value, count_hint });
        Ok(())
    }

    fn part(&self, large: &mut Large, elements: &[u8]) -> Result<(), ImportError> {
        if let Value::Bytes(bytes) = &mut large.value
            && large.shape.rdb_type == RdbType::String
        {
            if bytes.len() + elements.len() > self.limits.string_bytes_max as usize {
                return Err(ImportError::Protocol("a string beyond proto-max-bulk-len".into()));
            }
            bytes.extend_from_slice(elements);
            return Ok(());
        }
        let Large { key, shape, value, count_hint, .. } = large;
        self.add(*shape, value, count_hint, elements)
            .map_err(|error| ImportError::Value { key: key.clone(), error })
    }

    fn end_large(&mut self, large: Large) -> Result<(), ImportError> {
        let Large { key, slot, expires_at_ms, access, value, .. } = large;
        self.load(&key, slot, value, expires_at_ms, access)
    }

    fn load(
        &mut self,
        key: &[u8],
        slot: Slot,
        value: Value,
        expires_at_ms: Option<u64>,
        access: u32,
    ) -> Result<(), ImportError> {
        if !matches!(value, Value::Bytes(_)) && value.as_ref().elements() == 0 {
            return Err(ImportError::Value { key: key.to_vec(), error: ObjectError::Empty });
        }
        let mut ks = Keyspace::hold(&self.shared.store, [slot], &self.settings, &mut self.changes, 0, 0);
        let is_new = match value {
            Value::Bytes(text) => ks.load_string(key, &text, expires_at_ms, access),
            value => ks.load_value(key, value, expires_at_ms, access),
        };
        drop(ks);
        Self::forget(&mut self.changes);
        self.keys += 1;
        let key = key.escape_ascii();
        if is_new { Ok(()) } else { Err(ImportError::Protocol(format!("key \"{key}\" twice"))) }
    }

    // ---- effects --------------------------------------------------------------------------------------------------

    fn units(&mut self, batch: &Batch) -> Result<(), ImportError> {
        let mut ranges = Vec::new();
        for unit in batch.units() {
            for effect in unit.effects() {
                self.effect(&effect, &mut ranges)?;
            }
        }
        Ok(())
    }

    fn effect(&mut self, effect: &Effect<'_>, ranges: &mut Vec<ArgRange>) -> Result<(), ImportError> {
        match effect.scope {
            // The source was flushed: of its slots, these are here.
            Scope::Store => {
                self.for_each_slot(|ks, slot| _ = ks.flush_slot(slot));
                return Ok(());
            }
            Scope::Slot(slot) => self.check_slot(slot)?,
        }
        ranges.clear();
        let limits = RequestLimits { bulk_bytes_max: u64::MAX, ..RequestLimits::default() };
        match RequestParser::new().parse(effect.command, &limits, ranges) {
            Ok(Progress::Complete { consumed }) if consumed == effect.command.len() => {}
            _ => return Err(ImportError::Protocol("an effect that is no command".into())),
        }
        self.command(Args::new(effect.command, ranges, &[]), effect.scope)
    }

    fn command(&mut self, args: Args<'_>, scope: Scope) -> Result<(), ImportError> {
        let name = || args.get(0).escape_ascii().to_string();
        let refused = |why: &str| ImportError::Protocol(format!("the effect {} {why}", name()));
        let (command, row) = resolve(args).map_err(|error| refused(&format!("that fails: {error}")))?;
        if !command.flags.contains(Flags::WRITE) {
            return Err(refused("that is no write"));
        }
        let mut has_key = false;
        for slot in slots_of(command, args) {
            has_key = true;
            if scope != Scope::Slot(slot) {
                return Err(refused("on a key of another slot"));
            }
        }
        if !has_key {
            let Scope::Slot(slot) = scope else { return Err(refused("without a key")) };
            if !(args.is(0, "cluster") && args.is(1, "flushslot")) {
                return Err(refused("without a key"));
            }
            let mut ks = Keyspace::hold(&self.shared.store, [slot], &self.settings, &mut self.changes, 0, 0);
            ks.flush_slot(slot);
            drop(ks);
            Self::forget(&mut self.changes);
            return Ok(());
        }
        // At instant 0 nothing has expired: what expires, and when, the source says.
        let ks = hold(row, command, args, &self.shared, &self.settings, &mut self.changes, 0, 0);
        let result = replay(&self.shared, row, args, ks, &mut self.out);
        self.out.clear();
        Self::forget(&mut self.changes);
        result.map_err(|error| match error {
            ReplayError::Waits => refused("that would wait"),
            ReplayError::Fails(error) => refused(&format!("that fails: {error}")),
        })
    }
}

/// An empty value of this type.
fn empty(rdb_type: RdbType) -> Result<Value, ObjectError> {
    Ok(match rdb_type {
        RdbType::String => Value::Bytes(Vec::new()),
        RdbType::List => Value::List(List::new()),
        RdbType::Set => Value::Set(Set::new()),
        RdbType::Zset2 => Value::Zset(Zset::new()),
        RdbType::Hash | RdbType::HashMetadata => Value::Hash(Hash::new()),
        other => return Err(ObjectError::UnknownType(other.byte())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay_tests::contents;
    use crate::testing::Server;
    use e2e::diff::{self, TOPICS};
    use towline_sansio::Prng;
    use towline_store::stream::{Config, Piece, SlotStream};

    /// What may concern another database, which a cluster does not have, or is no matter of data.
    fn is_left_out(command: &[Vec<u8>]) -> bool {
        const NAMES: [&[u8]; 7] = [b"select", b"swapdb", b"move", b"debug", b"reset", b"config", b"client"];
        let name = command[0].to_ascii_lowercase();
        NAMES.contains(&name.as_slice()) || (name == b"copy" && command.len() > 4)
    }

    /// Sends the batch as bytes.
    fn over_the_wire(batch: &Batch) -> Batch {
        let (images, units) = (batch.image_bytes().to_vec(), batch.unit_bytes().to_vec());
        Batch::from_bytes(images, units, batch.position_before()).expect("it was written by a stream")
    }

    fn check(topic: &diff::Topic, seed: u64, piece: Piece) {
        let mut rng = Prng::new(seed);
        let (mut source, target) = (Server::new(), Server::new());
        source.line(
            "CONFIG SET hash-max-listpack-entries 2 set-max-listpack-entries 2 zset-max-listpack-entries 2",
        );
        source.line("CONFIG SET set-max-intset-entries 2 list-max-listpack-size 2");
        let (from, to) = (Arc::clone(&source.local.shared), Arc::clone(&target.local.shared));
        let config = Config { batch_bytes: 1, piece, ..Config::default() };
        let commands: Vec<_> =
            diff::own_commands(topic, seed).into_iter().filter(|command| !is_left_out(command)).collect();
        let (before, during) = commands.split_at(commands.len() / 3);
        let run = |source: &mut Server, command: &[Vec<u8>]| {
            let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            source.run_bytes(&args);
        };
        before.iter().for_each(|command| run(&mut source, command));
        let mut stream = SlotStream::open(&from.store, 0..16384, source.now_ms, &config);
        let mut import = Import::begin(&to, 0..16384);
        let mut batch = Batch::default();
        let mut follow = |import: &mut Import| {
            let progress = stream.next(&from.store, &mut batch).expect("the stream keeps up");
            import.apply(over_the_wire(&batch), progress.is_snapshot_done).expect("the source is honest");
            !batch.is_empty() || !progress.is_snapshot_done
        };
        for command in during {
            run(&mut source, command);
            if rng.below(4) == 0 {
                source.advance(rng.below(3) * rng.below(2000));
            }
            if rng.below(3) == 0 {
                follow(&mut import);
            }
        }
        while follow(&mut import) {}
        assert_eq!((to.store.len(0), to.store.expires(0)), (0, 0), "what is imported is not visible yet");
        import.finish();
        let at = format!("{} {seed}", topic.name);
        assert_eq!(contents(&from.store, source.now_ms), contents(&to.store, source.now_ms), "{at}");
        stream.close(&from.store);
    }

    #[test]
    fn random_programs_arrive_as_they_are() {
        for topic in TOPICS {
            for seed in 0..10 {
                let elements = [1, 2, 256][seed as usize % 3];
                check(topic, seed, Piece { elements, bytes: 64 << 10 });
            }
        }
    }

    #[test]
    fn what_is_abandoned_is_gone_and_other_slots_are_not() {
        let (mut source, mut target) = (Server::new(), Server::new());
        for line in ["SET {a}1 x", "RPUSH {a}2 x y", "SET {b}1 x"] {
            source.line(line);
        }
        target.line("SET {b}1 mine");
        let slot = key_slot(b"a");
        let from = Arc::clone(&source.local.shared);
        let mut stream = SlotStream::open(&from.store, [slot], source.now_ms, &Config::default());
        let mut import = Import::begin(&target.local.shared, [slot]);
        let mut batch = Batch::default();
        let progress = stream.next(&from.store, &mut batch).expect("it keeps up");
        import.apply(over_the_wire(&batch), progress.is_snapshot_done).expect("the source is honest");
        assert_eq!(import.keys(), 2);
        import.abandon();
        stream.close(&from.store);
        assert_eq!(target.line("DBSIZE"), ":1");
        assert_eq!(target.line("EXISTS {a}1 {a}2"), ":0");
        assert_eq!(target.line("GET {b}1"), "$4 mine");
    }

    #[test]
    fn a_source_may_send_only_what_moves() {
        let mut source = Server::new();
        source.line("SET {a}1 x");
        let from = Arc::clone(&source.local.shared);
        let mut stream = SlotStream::open(&from.store, 0..16384, source.now_ms, &Config::default());
        source.line("SET {a}2 x");
        let mut batch = Batch::default();
        stream.next(&from.store, &mut batch).expect("it keeps up");
        stream.close(&from.store);
        let import = |slots: [Slot; 1], batch: Batch, is_done: bool| {
            let target = Server::new();
            let mut import = Import::begin(&target.local.shared, slots);
            let result = import.apply(batch, is_done).map_err(|error| error.to_string());
            import.abandon();
            result
        };
        let slot = key_slot(b"a");
        assert_eq!(import([slot], over_the_wire(&batch), false), Ok(()));
        let refused = format!("the source sent something of slot {slot}, which does not move");
        assert_eq!(import([slot ^ 1], over_the_wire(&batch), false), Err(refused.clone()));
        let units = Batch::from_bytes(Vec::new(), batch.unit_bytes().to_vec(), 0).expect("as it was");
        assert_eq!(import([slot ^ 1], units, true), Err(refused));
    }
}
