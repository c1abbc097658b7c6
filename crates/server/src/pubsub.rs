//! Channels, patterns and who listens.
//!
//! Owns: the registry of subscriptions and delivery. Does **not** own the commands or the keyspace's decision to notify.
//!
//! A message is written once per protocol and shared by all receivers. Receivers of one channel see its messages in one
//! order, whoever published them: delivery to a channel's listeners is one step. Of messages to different channels, which
//! workers publish at the same time, receivers may see one or the other first; but a *marker*, a message to a channel whose
//! name begins with [`MARKER_PREFIX`], stands at the same place among the messages of all receivers. Clients publish one to
//! find the place at which the streams of two connections join.

use crate::client::{Client, flag};
use crate::session::{Session, Subscriptions};
use crate::shared::Shared;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use towline_resp::Proto;
use towline_resp::writer::Writer;
use towline_store::changes::Note;
use towline_store::glob;
use towline_store::notify::{KEYEVENT, KEYSPACE};

/// The first part of the names of channels whose messages have one place among all others.
const MARKER_PREFIX: &[u8] = b"__towline:handoff:";

/// What kind of name is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// `SUBSCRIBE`
    Channel,
    /// `PSUBSCRIBE`
    Pattern,
    /// `SSUBSCRIBE`
    ShardChannel,
}

impl Topic {
    /// The first word of the reply to a subscription.
    pub(crate) fn subscribed(self) -> &'static [u8] {
        match self {
            Self::Channel => b"subscribe",
            Self::Pattern => b"psubscribe",
            Self::ShardChannel => b"ssubscribe",
        }
    }

    /// The first word of the reply to the end of a subscription.
    pub(crate) fn unsubscribed(self) -> &'static [u8] {
        match self {
            Self::Channel => b"unsubscribe",
            Self::Pattern => b"punsubscribe",
            Self::ShardChannel => b"sunsubscribe",
        }
    }
}

/// Who listens to one name, by id. Held while a message is handed to all of them, which keeps messages in one order.
type Listeners = Mutex<BTreeMap<u64, Arc<Client>>>;
type Names = HashMap<Box<[u8]>, Listeners>;

#[derive(Debug, Default)]
struct Registry {
    channels: Names,
    patterns: BTreeMap<Box<[u8]>, Listeners>,
    shard_channels: Names,
}

/// All subscriptions.
#[derive(Debug, Default)]
pub(crate) struct PubSub {
    registry: RwLock<Registry>,
}

fn len(listeners: &Listeners) -> usize {
    listeners.lock().unwrap_or_else(PoisonError::into_inner).len()
}

fn exclusive(listeners: &mut Listeners) -> &mut BTreeMap<u64, Arc<Client>> {
    listeners.get_mut().unwrap_or_else(PoisonError::into_inner)
}

impl PubSub {
    fn read(&self) -> RwLockReadGuard<'_, Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Registry> {
        self.registry.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, topic: Topic, name: &[u8], client: &Arc<Client>) {
        let registry = &mut *self.write();
        let listeners = match topic {
            Topic::Channel => registry.channels.entry(name.into()).or_default(),
            Topic::Pattern => registry.patterns.entry(name.into()).or_default(),
            Topic::ShardChannel => registry.shard_channels.entry(name.into()).or_default(),
        };
        exclusive(listeners).insert(client.id, Arc::clone(client));
    }

    fn leave(&self, topic: Topic, name: &[u8], client: u64) {
        let registry = &mut *self.write();
        let listeners = match topic {
            Topic::Channel => registry.channels.get_mut(name),
            Topic::Pattern => registry.patterns.get_mut(name),
            Topic::ShardChannel => registry.shard_channels.get_mut(name),
        };
        let Some(listeners) = listeners else { return };
        let listeners = exclusive(listeners);
        listeners.remove(&client);
        if listeners.is_empty() {
            match topic {
                Topic::Channel => drop(registry.channels.remove(name)),
                Topic::Pattern => drop(registry.patterns.remove(name)),
                Topic::ShardChannel => drop(registry.shard_channels.remove(name)),
            }
        }
    }

    /// Names of channels with listeners, those that match if there is a pattern. Patterns have no such list.
    pub(crate) fn channels(&self, topic: Topic, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        let registry = self.read();
        let names = if topic == Topic::ShardChannel { &registry.shard_channels } else { &registry.channels };
        let is_wanted = |name: &[u8]| pattern.is_none_or(|pattern| is_match(pattern, name));
        names.keys().filter(|name| is_wanted(name)).cloned().collect()
    }

    /// How many listen to a channel itself.
    pub(crate) fn listener_count(&self, topic: Topic, name: &[u8]) -> usize {
        let registry = self.read();
        let names = if topic == Topic::ShardChannel { &registry.shard_channels } else { &registry.channels };
        names.get(name).map_or(0, len)
    }

    /// Distinct patterns.
    pub(crate) fn pattern_count(&self) -> usize {
        self.read().patterns.len()
    }

    /// Channels with listeners.
    pub(crate) fn channel_count(&self, topic: Topic) -> usize {
        let registry = self.read();
        match topic {
            Topic::Channel => registry.channels.len(),
            Topic::Pattern => registry.patterns.len(),
            Topic::ShardChannel => registry.shard_channels.len(),
        }
    }

    /// Sends a message to all who listen to the channel, or to a pattern that it matches; says how many times it was
    /// sent. Each receiver gets it behind the reply of the command that it is executing.
    pub(crate) fn publish(&self, channel: &[u8], message: &[u8]) -> usize {
        if channel.starts_with(MARKER_PREFIX) {
            // Nothing else is delivered meanwhile.
            return publish_to(&self.write(), channel, message);
        }
        publish_to(&self.read(), channel, message)
    }

    /// Sends a message to all who listen to the sharded channel; says to how many.
    pub(crate) fn publish_sharded(&self, channel: &[u8], message: &[u8]) -> usize {
        let registry = self.read();
        let listeners = registry.shard_channels.get(channel);
        listeners.map_or(0, |listeners| deliver(listeners, &[b"smessage", channel, message]))
    }

    /// Takes shard channels out whose names are gone from this node.
    fn take_shard_channels(&self, is_gone: impl Fn(&[u8]) -> bool) -> Vec<(Box<[u8]>, Listeners)> {
        self.write().shard_channels.extract_if(|name, _| is_gone(name)).collect()
    }

    fn listens(&self, channel: &[u8], client: u64) -> bool {
        let registry = self.read();
        let listeners = registry.shard_channels.get(channel);
        listeners.is_some_and(|all| all.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&client))
    }

    /// Whether nobody listens to anything that keyspace notifications go to.
    fn is_silent(&self) -> bool {
        let registry = self.read();
        registry.channels.is_empty() && registry.patterns.is_empty()
    }
}

fn publish_to(registry: &Registry, channel: &[u8], message: &[u8]) -> usize {
    let mut sent = 0;
    if let Some(listeners) = registry.channels.get(channel) {
        sent += deliver(listeners, &[b"message", channel, message]);
    }
    for (pattern, listeners) in &registry.patterns {
        if is_match(pattern, channel) {
            sent += deliver(listeners, &[b"pmessage", pattern, channel, message]);
        }
    }
    sent
}

/// As in Redis, no pattern but the empty one matches the empty name, not even `*`.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    glob::matches(pattern, name, glob::Case::Sensitive)
}

/// Hands a message of these parts to all listeners.
fn deliver(listeners: &Listeners, parts: &[&[u8]]) -> usize {
    let listeners = listeners.lock().unwrap_or_else(PoisonError::into_inner);
    let mut written: [Option<Bytes>; 2] = [None, None];
    for client in listeners.values() {
        let is_resp3 = client.has_flag(flag::RESP3);
        let bytes = written[usize::from(is_resp3)].get_or_insert_with(|| {
            let mut out = Writer::new(if is_resp3 { Proto::Resp3 } else { Proto::Resp2 });
            out.push(parts.len());
            parts.iter().for_each(|part| out.bulk(part));
            Bytes::from(out.take().0)
        });
        client.push(bytes.clone());
    }
    listeners.len()
}

/// Publishes a keyspace notification; `classes` is the mask of what is asked for.
pub(crate) fn publish_note(shared: &Shared, classes: u32, note: &Note) {
    if shared.pubsub.is_silent() {
        return;
    }
    if classes & KEYSPACE != 0 {
        let mut channel = format!("__keyspace@{}__:", note.db).into_bytes();
        channel.extend_from_slice(&note.key);
        shared.pubsub.publish(&channel, note.event.as_bytes());
    }
    if classes & KEYEVENT != 0 {
        let channel = format!("__keyevent@{}__:{}", note.db, note.event);
        shared.pubsub.publish(channel.as_bytes(), &note.key);
    }
}

fn names_of(subscriptions: &mut Subscriptions, topic: Topic) -> &mut BTreeSet<Vec<u8>> {
    match topic {
        Topic::Channel => &mut subscriptions.channels,
        Topic::Pattern => &mut subscriptions.patterns,
        Topic::ShardChannel => &mut subscriptions.shard_channels,
    }
}

/// The session listens to the name from now on.
pub(crate) fn subscribe(shared: &Shared, session: &mut Session, topic: Topic, name: &[u8]) {
    let subscriptions = session.subscriptions.get_or_insert_default();
    if names_of(subscriptions, topic).insert(name.to_vec()) {
        shared.pubsub.listen(topic, name, &session.client);
    }
    show(session);
}

/// The session no longer listens to the name. When this returns, nothing more is pushed for it.
pub(crate) fn unsubscribe(shared: &Shared, session: &mut Session, topic: Topic, name: &[u8]) {
    let Some(subscriptions) = &mut session.subscriptions else { return };
    if names_of(subscriptions, topic).remove(name) {
        shared.pubsub.leave(topic, name, session.client.id);
    }
    if subscriptions.is_empty() {
        session.subscriptions = None;
    }
    show(session);
}

/// Ends subscriptions to shard channels whose slots went to another node, and tells their clients.
pub(crate) fn drop_shard_channels(shared: &Shared, is_gone: impl Fn(&[u8]) -> bool) {
    for (name, mut listeners) in shared.pubsub.take_shard_channels(is_gone) {
        for client in exclusive(&mut listeners).values() {
            client.set_flag(flag::CHANNELS_GONE, true);
            // Nobody else lowers it before the session has seen the flag.
            let left = client.shard_channels.fetch_sub(1, Ordering::Relaxed).saturating_sub(1);
            let is_resp3 = client.has_flag(flag::RESP3);
            let mut out = Writer::new(if is_resp3 { Proto::Resp3 } else { Proto::Resp2 });
            out.push(3);
            out.bulk(Topic::ShardChannel.unsubscribed());
            out.bulk(&name);
            out.int(i64::from(left));
            client.push(Bytes::from(out.take().0));
        }
    }
}

/// The session forgets shard channels that went to another node. Called before each command of a session that listens to any.
pub(crate) fn forget_gone(shared: &Shared, session: &mut Session) {
    if !session.client.has_flag(flag::CHANNELS_GONE) {
        return;
    }
    session.client.set_flag(flag::CHANNELS_GONE, false);
    let Some(subscriptions) = &mut session.subscriptions else { return };
    subscriptions.shard_channels.retain(|name| shared.pubsub.listens(name, session.client.id));
    if subscriptions.is_empty() {
        session.subscriptions = None;
    }
    show(session);
}

/// What the session listens to.
pub(crate) fn names(session: &mut Session, topic: Topic) -> Vec<Vec<u8>> {
    let Some(subscriptions) = &mut session.subscriptions else { return Vec::new() };
    names_of(subscriptions, topic).iter().cloned().collect()
}

/// How many names the session listens to, as the reply to a change of `topic` counts them.
pub(crate) fn count(session: &Session, topic: Topic) -> usize {
    session.subscriptions.as_ref().map_or(0, |subscriptions| match topic {
        Topic::ShardChannel => subscriptions.shard_channels.len(),
        Topic::Channel | Topic::Pattern => subscriptions.count(),
    })
}

/// Ends all subscriptions of the session.
pub(crate) fn unsubscribe_all(shared: &Shared, session: &mut Session) {
    for topic in [Topic::Channel, Topic::Pattern, Topic::ShardChannel] {
        for name in names(session, topic) {
            unsubscribe(shared, session, topic, &name);
        }
    }
}

/// Shows other workers how much the session listens to.
fn show(session: &Session) {
    let count = |topic: Topic| match (&session.subscriptions, topic) {
        (None, _) => 0,
        (Some(subscriptions), Topic::Channel) => subscriptions.channels.len(),
        (Some(subscriptions), Topic::Pattern) => subscriptions.patterns.len(),
        (Some(subscriptions), Topic::ShardChannel) => subscriptions.shard_channels.len(),
    };
    let client = &session.client;
    client.channels.store(count(Topic::Channel) as u32, Ordering::Relaxed);
    client.patterns.store(count(Topic::Pattern) as u32, Ordering::Relaxed);
    client.shard_channels.store(count(Topic::ShardChannel) as u32, Ordering::Relaxed);
    client.set_flag(flag::PUBSUB, session.subscriptions.is_some());
}
