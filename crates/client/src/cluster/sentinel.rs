//! The sentinels of a primary: asked all at once, and two of them listened to.
//!
//! Owns whom to ask and to listen to, and which of two answers is the newer one. Does not own what the answers come to
//! (`towline_cluster::sentinel`), when all are asked (the router), nor what follows from another primary (the router as well).
//!
//! Three things tell of a failover, and the first one counts: a message of a sentinel that is listened to, the look at it every
//! [`LOOK_INTERVAL`], and the asking of all of them that a lost or refusing primary causes. A message is only a reason to ask who sent
//! it: what it answers has an epoch, and an older epoch than is known changes nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use towline_client_proto::maintenance::MaintenanceMode;
use towline_client_proto::routing::{RefreshCause, on_told};
use towline_client_proto::{Error, Event, Reply, Sent};
use towline_cluster::sentinel::{
    EVENT_CHANNELS, ONLY_SLOT, SentinelView, agree_on_primary, primary_of_event,
};
use towline_cluster::{Address, View};
use towline_resp::frame::Frame;

use super::Cluster;
use super::refresh::{ANSWER_TIME, first_connection, frame};
use super::source::Source;
use crate::client::Client;
use crate::engine::Engine;
use crate::lease::say;
use crate::options::{ConnectOptions, OptionsError};
use crate::primary_options::SentinelOptions;
use crate::pubsub::{PubSubEvent, Subscription};
use crate::transport::Target;

/// Sentinels that are asked at once. Deployments have three or five; more than nine vote no better.
const ASKED_MAX: usize = 9;

/// Sentinels that are remembered.
const LEARNT_MAX: usize = 64;

/// Sentinels that are listened to: if one of them dies, the other has not.
const LISTENED: usize = 2;

/// A sentinel has this long to answer, its connection included; less if the dial's time is less.
const SENTINEL_TIME: Duration = Duration::from_secs(2);

/// Once one sentinel has answered, the others have this long; once more than half of them have, [`LAST_TIME`].
const OTHERS_TIME: Duration = Duration::from_millis(500);

/// See [`OTHERS_TIME`].
const LAST_TIME: Duration = Duration::from_millis(50);

/// A sentinel that is listened to is looked at in this interval: messages that it could not send are missed so long, and its death
/// is noticed.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// The wait before another sentinel is listened to, when one could not be.
const PAUSE: Duration = Duration::from_secs(1);

/// Reasons that an error lists.
const REASONS_MAX: usize = 9;

/// The sentinels of one primary.
pub(super) struct Sentinels {
    name: Box<str>,
    /// Those of a connection to a sentinel.
    options: ConnectOptions,
    configured: Vec<Target>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Named by other sentinels.
    learnt: BTreeSet<Address>,
    /// That of the failover which made the present primary.
    epoch: Option<u64>,
    /// Who is listened to.
    listened: [Option<Target>; LISTENED],
    listeners: Vec<AbortHandle>,
}

impl Sentinels {
    /// # Errors
    /// The options do not go together.
    pub(super) fn new(sentinel: &SentinelOptions, servers: &ConnectOptions) -> Result<Self, OptionsError> {
        let options = servers.for_sentinels(sentinel).maintenance(MaintenanceMode::Disabled);
        // Read once here, so that certificates which are missing are the caller's to mend and not a silent failure later.
        options.connector()?;
        let first = std::iter::once(servers.target());
        let configured = first.chain(sentinel.further_sentinels()).cloned().collect();
        Ok(Self { name: sentinel.name().into(), options, configured, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to listen to sentinels, until [`Sentinels::close`].
    pub(super) fn listen(&self, cluster: &Weak<Cluster>) {
        let listeners =
            (0..LISTENED).map(|place| tokio::spawn(listen(cluster.clone(), place)).abort_handle());
        self.lock().listeners.extend(listeners);
    }

    pub(super) fn close(&self) {
        self.lock().listeners.drain(..).for_each(|listener| listener.abort());
    }

    /// The sentinels that are known: the configured ones first.
    fn known(&self) -> Vec<Target> {
        let mut known = self.configured.clone();
        for address in &self.lock().learnt {
            let Address { host, port } = self.options.reached(address);
            let target = Target::tcp(&*host, port);
            if !known.contains(&target) {
                known.push(target);
            }
        }
        known
    }

    /// A sentinel for one of those who listen, which the others do not listen to: another one each time `turn` grows.
    fn choose(&self, place: usize, turn: usize) -> Option<Target> {
        let known = self.known();
        let mut state = self.lock();
        let taken: Vec<&Target> = state
            .listened
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != place)
            .filter_map(|(_, it)| it.as_ref())
            .collect();
        let in_turn = (0..known.len()).map(|step| &known[(turn + step) % known.len()]);
        let chosen = in_turn.into_iter().find(|target| !taken.contains(target)).cloned();
        state.listened[place].clone_from(&chosen);
        chosen
    }

    fn epoch(&self) -> Option<u64> {
        self.lock().epoch
    }

    /// Takes the epoch that all sentinels together came to, unless a message has told of a newer one since they were asked.
    fn take_epoch(&self, before: Option<u64>, epoch: Option<u64>) -> bool {
        let mut state = self.lock();
        let is_overtaken = state.epoch > before && epoch < state.epoch;
        if !is_overtaken {
            state.epoch = epoch;
        }
        !is_overtaken
    }

    /// Takes the epoch that one sentinel tells, if it is newer.
    fn take_newer(&self, epoch: Option<u64>) -> bool {
        let mut state = self.lock();
        let is_newer = epoch.is_some() && epoch > state.epoch;
        if is_newer {
            state.epoch = epoch;
        }
        is_newer
    }

    fn learn(&self, answers: &[SentinelView]) {
        let named =
            answers.iter().filter(|answer| answer.primary.is_some()).flat_map(|answer| &answer.sentinels);
        let learnt: BTreeSet<Address> = named.take(LEARNT_MAX).cloned().collect();
        if !learnt.is_empty() {
            self.lock().learnt = learnt;
        }
    }

    /// What the sentinels say, and why others say nothing.
    async fn ask(&self, runtime: &tokio::runtime::Handle) -> (Vec<SentinelView>, Vec<String>) {
        let mut asking = JoinSet::new();
        let known = self.known();
        let count = known.len().min(ASKED_MAX);
        for target in known.into_iter().take(ASKED_MAX) {
            let (options, name) = (self.options.clone().with_target(target), self.name.clone());
            asking.spawn_on(ask_one(options, name), runtime);
        }
        let mut until = Instant::now() + self.time() + LAST_TIME;
        let (mut answers, mut reasons) = (Vec::new(), Vec::new());
        while let Ok(Some(answer)) = timeout_at(until, asking.join_next()).await {
            match answer {
                Ok(Ok(answer)) => {
                    answers.push(answer);
                    let others = if answers.len() * 2 > count { LAST_TIME } else { OTHERS_TIME };
                    until = until.min(Instant::now() + others);
                }
                Ok(Err(reason)) => reasons.push(reason),
                // A task that was dropped with its runtime.
                Err(_) => {}
            }
        }
        (answers, reasons)
    }

    fn time(&self) -> Duration {
        time_for(&self.options)
    }
}

/// The dial's time less some of it, so that whoever waits for a connection as long as a dial may take still hears what failed.
fn time_for(options: &ConnectOptions) -> Duration {
    SENTINEL_TIME.min(options.dial_timeout() / 4 * 3)
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        self.close();
    }
}

impl Cluster {
    /// The view that sentinels come to; or why there is none.
    pub(super) async fn ask_sentinels(&self, sentinels: &Sentinels) -> (Vec<View>, Option<Box<str>>) {
        let before = sentinels.epoch();
        let (answers, mut reasons) = sentinels.ask(&self.runtime).await;
        sentinels.learn(&answers);
        match agree_on_primary(&answers) {
            Some((view, epoch)) if sentinels.take_epoch(before, epoch) => (vec![view], None),
            Some(_) => (Vec::new(), None),
            None => {
                reasons.sort_unstable();
                reasons.truncate(REASONS_MAX);
                let text =
                    format!("no sentinel named the primary `{}`: {}", sentinels.name, reasons.join("; "));
                (Vec::new(), (!reasons.is_empty()).then(|| text.into()))
            }
        }
    }

    /// One sentinel says this. `has_changed`: because something has changed.
    fn sentinel_says(&self, sentinels: &Sentinels, answer: SentinelView, has_changed: bool) {
        let epoch = answer.epoch;
        let Some((view, _)) = agree_on_primary(&[answer]) else { return };
        if sentinels.take_newer(epoch) {
            return self.change(|router, hands, now| on_told(router, now, &view.topology, hands));
        }
        let named =
            view.topology.slots.owner(ONLY_SLOT).and_then(|at| view.topology.nodes[at].address.clone());
        let routes = self.routes.load();
        let is_same = routes.owner(ONLY_SLOT).map(|node| &node.address) == named.as_ref();
        if !is_same {
            self.request_refresh(RefreshCause::Urgent);
        } else if has_changed {
            self.request_refresh(RefreshCause::Redirected);
        }
    }

    const fn sentinels(&self) -> Option<&Sentinels> {
        match &self.source {
            Source::Sentinel(sentinels) => Some(sentinels),
            Source::Cluster | Source::Replicated => None,
        }
    }
}

/// Asks one sentinel, over a connection for this purpose.
async fn ask_one(options: ConnectOptions, name: Box<str>) -> Result<SentinelView, String> {
    let (target, time) = (options.target().clone(), time_for(&options));
    let client = Client::lazy(options).map_err(|error| error.to_string())?;
    first_connection(&client, time).await.map_err(|error| format!("{target}: {}", error.kind()))?;
    let answer =
        tell(client.inner.endpoint(), &name).await.map_err(|error| format!("{target}: {}", error.kind()))?;
    match answer.primary {
        Some(_) => Ok(answer),
        None => Err(format!("{target}: knows no primary of this name")),
    }
}

/// What a sentinel says of a primary. What it may not tell, or does not know, is left out.
async fn tell(engine: &Arc<Engine>, name: &str) -> Result<SentinelView, Error> {
    let about = async |what: &'static [u8]| {
        let reply: Result<Reply, Error> =
            say(engine, &[b"SENTINEL", what, name.as_bytes()], ANSWER_TIME).await;
        reply.map(frame)
    };
    let myself = async { say(engine, &[b"SENTINEL", b"MYID"], ANSWER_TIME).await.map(frame) };
    let (primary, details, replicas, others, myself) = tokio::join!(
        about(b"GET-MASTER-ADDR-BY-NAME"),
        about(b"MASTER"),
        about(b"REPLICAS"),
        about(b"SENTINELS"),
        myself,
    );
    let mut view = SentinelView::default();
    let shape = |error: towline_cluster::ViewError| {
        Error::new(towline_client_proto::ErrorKind::Shape(error.to_string().into()), Sent::Answered)
    };
    view.take_primary(&primary?).map_err(shape)?;
    if let Ok(details) = details {
        view.take_details(&details);
    }
    match replicas {
        Ok(replicas) => view.take_replicas(&replicas),
        // As it was called before Redis 5.
        Err(_) => view.take_replicas(&about(b"SLAVES").await.unwrap_or(Frame::Null)),
    }
    if let Ok(others) = others {
        view.take_sentinels(&others);
    }
    if let Ok(Frame::Bulk(id)) = myself {
        view.id = Some(String::from_utf8_lossy(&id).into());
    }
    Ok(view)
}

/// Listens to one sentinel after the other, for as long as the client lives.
async fn listen(cluster: Weak<Cluster>, place: usize) {
    let mut turn = place;
    loop {
        let chosen = {
            let Some(present) = cluster.upgrade() else { return };
            let Some(sentinels) = present.sentinels() else { return };
            let chosen = sentinels.choose(place, turn);
            chosen.map(|target| (sentinels.options.clone().with_target(target), sentinels.name.clone()))
        };
        // One that is alone, or all are listened to: there may be more in a while.
        let Some((options, name)) = chosen else {
            sleep(LOOK_INTERVAL).await;
            continue;
        };
        listen_to(&cluster, options, &name).await;
        turn = turn.wrapping_add(1);
        sleep(PAUSE).await;
    }
}

/// Listens to one sentinel, until it cannot be heard.
async fn listen_to(cluster: &Weak<Cluster>, options: ConnectOptions, name: &str) {
    let time = time_for(&options);
    let Ok(client) = Client::lazy(options) else { return };
    let mut events = client.inner.events.subscribe();
    let subscribed = async {
        first_connection(&client, time).await.ok()?;
        client.subscribe(EVENT_CHANNELS).await.ok()
    };
    let Ok(Some(mut messages)) = timeout(time, subscribed).await else { return };
    let engine = client.inner.endpoint();
    // What happened before it was listened to.
    let mut has_changed = false;
    loop {
        let Ok(answer) = tell(engine, name).await else { return };
        {
            let Some(present) = cluster.upgrade() else { return };
            let Some(sentinels) = present.sentinels() else { return };
            present.sentinel_says(sentinels, answer, has_changed);
        }
        let Some(news) = news(&mut messages, &mut events, name).await else { return };
        has_changed = news;
    }
}

/// Waits for a reason to ask: whether something has changed. `None`: the sentinel cannot be heard.
async fn news(
    messages: &mut Subscription,
    events: &mut broadcast::Receiver<Event>,
    name: &str,
) -> Option<bool> {
    let until = Instant::now() + LOOK_INTERVAL;
    loop {
        tokio::select! {
            message = messages.next() => match message? {
                PubSubEvent::Message { channel, payload, .. } => {
                    if primary_of_event(&channel, &payload) == Some(name) {
                        return Some(true);
                    }
                }
                PubSubEvent::Gap { .. } | PubSubEvent::Dropped { .. } | PubSubEvent::Overlap { .. } => {
                    return Some(true);
                }
                PubSubEvent::Refused { .. } => return None,
            },
            event = events.recv() => match event {
                Ok(Event::Lost { .. } | Event::Closed) | Err(broadcast::error::RecvError::Closed) => return None,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            },
            () = tokio::time::sleep_until(until) => return Some(false),
        }
    }
}
