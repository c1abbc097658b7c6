//! Several connections of one client to one server.
//!
//! Owns the starting of engines, the connections beside the first, and who of all of them gets a command. Does not own the rule
//! (`towline_client_proto::routing::Lanes`) nor a connection, which each have an engine, an owner and a handoff of their own. What
//! they share is the target with its options, the process's right to dial, and the client's [`Voice`].

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::broadcast;
use towline_client_proto::routing::{Lane, Lanes, Plan};
use towline_client_proto::{Bridge, Counters, Event, Parts, PubSubConfig, RetryBudget, Snapshot};
use towline_cluster::Slot;

use crate::cache::{self, CacheLink};
use crate::client::{Inner, Running};
use crate::clock;
use crate::cluster::Attachment;
use crate::cmd::Cmd;
use crate::driver::{Life, Owner};
use crate::engine::Engine;
use crate::options::{ConnectOptions, OptionsError};
use crate::transport::Connector;

/// Events kept for a listener that is behind.
const EVENTS_MAX: usize = 1024;

/// What the lanes of a client say about themselves: one stream of events, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Voice {
    pub(crate) events: broadcast::Sender<Event>,
    /// Lanes that have not ended.
    left: Arc<AtomicUsize>,
}

impl Voice {
    pub(crate) fn new(lanes: Lanes) -> Self {
        Self { events: broadcast::channel(EVENTS_MAX).0, left: Arc::new(AtomicUsize::new(lanes.count())) }
    }

    /// One lane has ended: whether it was the last. To be called once by each.
    pub(crate) fn is_last_word(&self) -> bool {
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// The lanes beside the first: none, usually.
pub(crate) struct Further {
    lanes: Lanes,
    running: Box<[Running]>,
}

impl Further {
    /// No other lane than the first.
    pub(crate) fn none() -> Self {
        Self { lanes: Lanes::ONE, running: Box::default() }
    }

    /// All lanes but the first, in their order.
    pub(crate) fn new(lanes: Lanes, running: Vec<Running>) -> Self {
        assert_eq!(running.len() + 1, lanes.count(), "invariant: one engine for each lane");
        Self { lanes, running: running.into() }
    }

    /// The engine of a lane, which `first` is if there is no other.
    fn lane<'e>(&'e self, first: &'e Arc<Engine>, lane: Lane) -> &'e Arc<Engine> {
        let behind = lane.index().checked_sub(1).and_then(|at| self.running.get(at));
        behind.map_or(first, |running| &running.engine)
    }

    /// The engine for a command on a slot. Without other lanes nobody asks which slot that is.
    #[inline]
    pub(crate) fn engine_for<'e>(
        &'e self,
        first: &'e Arc<Engine>,
        slot: impl FnOnce() -> Option<Slot>,
    ) -> &'e Arc<Engine> {
        if self.running.is_empty() { first } else { self.lane(first, self.lanes.of(slot())) }
    }
}

impl Inner {
    /// A lane of a client of one server.
    pub(crate) fn lane(&self, lane: Lane) -> &Arc<Engine> {
        self.further.lane(self.endpoint(), lane)
    }

    /// The engine of a client of one server for commands on a slot, or without one.
    #[inline]
    pub(crate) fn engine_of(&self, slot: Option<Slot>) -> &Arc<Engine> {
        self.further.engine_for(self.endpoint(), || slot)
    }

    /// All lanes of a client of one server, the first one first.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &Arc<Engine>> {
        let further = self.further.running.iter().map(|running| &running.engine);
        std::iter::once(self.endpoint()).chain(further)
    }

    /// Whether no lane of a client of one server is left.
    pub(crate) fn is_ended(&self) -> bool {
        self.engines().all(|engine| engine.lock().is_ended)
    }

    /// The lanes of a client of one server in one.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = clock::now();
        Snapshot::merged(
            self.engines().map(|engine| engine.lock().bridge.snapshot(now)),
            &Counters::default(),
        )
    }

    /// The sums over the lanes of a client of one server.
    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.engines().for_each(|engine| sum.add(&engine.lock().bridge.counters()));
        sum
    }
}

/// Starts an engine for each lane.
pub(crate) fn start_lanes(
    options: &ConnectOptions,
    connector: &Connector,
    attach: impl Fn(Lane) -> Option<Attachment>,
    cache: Option<&Arc<cache::Shared>>,
) -> Result<(Running, Further), OptionsError> {
    let lanes = options.lane_count();
    let voice = Voice::new(lanes);
    let start = |lane| {
        let (connector, voice) = (connector.clone(), voice.clone());
        // What is read over a lane is tracked on its connection.
        let parts = LaneParts {
            attachment: attach(lane),
            cache: cache.map(cache::Shared::link),
            voice: voice.clone(),
        };
        let engine = start_lane(options, connector, None, Life::Reconnects, parts)?;
        Ok(Running { engine, events: voice.events })
    };
    let first = start(Lane::FIRST)?;
    let further = lanes.all().skip(1).map(start).collect::<Result<_, OptionsError>>()?;
    Ok((first, Further::new(lanes, further)))
}

/// Starts the engine of one connection on the current runtime.
pub(crate) fn start_engine(
    options: &ConnectOptions,
    connector: Connector,
    pubsub: Option<PubSubConfig>,
    life: Life,
    attachment: Option<Attachment>,
) -> Result<(Arc<Engine>, broadcast::Sender<Event>), OptionsError> {
    let voice = Voice::new(Lanes::ONE);
    let events = voice.events.clone();
    let parts = LaneParts { attachment, cache: None, voice };
    Ok((start_lane(options, connector, pubsub, life, parts)?, events))
}

/// What a lane has of its client.
struct LaneParts {
    attachment: Option<Attachment>,
    cache: Option<CacheLink>,
    voice: Voice,
}

/// Starts an engine that speaks with others in one voice.
fn start_lane(
    options: &ConnectOptions,
    connector: Connector,
    pubsub: Option<PubSubConfig>,
    life: Life,
    LaneParts { attachment, cache, voice }: LaneParts,
) -> Result<Arc<Engine>, OptionsError> {
    let now = clock::now();
    let mut config = options.engine_config().clone();
    // What a leased connection is about cannot move: its owner waits, or begins again on another one.
    config.hands_off = !life.is_single();
    config.endpoint_is_name = options.is_target_named();
    let parts = Parts {
        config,
        policy: options.policy(),
        handshake: options.handshake(None, options.dial_timeout(), None),
        liveness: *options.liveness_config(),
        budget: RetryBudget::new(now, *options.retry_budget_config()),
        seed: RandomState::new().hash_one(now),
    };
    let mut bridge = Bridge::new(parts, now)?;
    if let Some(attachment) = &attachment {
        bridge = if attachment.is_reader() { bridge.with_reads() } else { bridge.with_routing() };
    }
    if let Some(pubsub) = pubsub {
        bridge = bridge.with_pubsub(pubsub, now);
    }
    if let Some(cache) = &cache {
        bridge = bridge.with_tracking(cache.tracking());
    }
    let engine = Arc::new(Engine::new(bridge, cache));
    let owner = Owner::new(Arc::clone(&engine), connector, options.clone(), voice, life, attachment);
    tokio::spawn(owner.run());
    Ok(engine)
}

impl Cmd {
    /// The slot that decides its lane; `None` without keys.
    pub(crate) fn slot(&self) -> Option<Slot> {
        match self.plan(false) {
            Plan::Slot(slot) => Some(slot),
            _ => None,
        }
    }
}
