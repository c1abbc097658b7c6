//! The node that gives slots away: doing what the machine says.
//!
//! Owns: the stream, the link and parking, as the machine asks for them. Does **not** decide anything.

use super::driving::{Drive, drive};
use super::link::{Heard, Link, Reader};
use super::{Node, drop_slots};
use crate::cluster::each;
use crate::connection::unix_ms;
use crate::failpoint;
use crate::maintenance::{Notice, Scope, SlotMove, Successor};
use bytes::Bytes;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot};
use tokio::task::{spawn_blocking, spawn_local, yield_now};
use towline_cluster::Slot;
use towline_cluster_proto::migration::wire::Frame;
use towline_cluster_proto::migration::{
    Decision, Proposal, Source, SourceAction, SourceEvent, Status, StreamBatch,
};
use towline_cluster_proto::{Migration, NodeId};
use towline_sansio::Instant;
use towline_store::stream::{Batch, Config, SlotStream};

/// One migration, at its source.
pub(super) struct Driver {
    node: Rc<Node>,
    id: NodeId,
    migration: Migration,
    machine: Source,
    events: UnboundedSender<SourceEvent>,
    heard: UnboundedReceiver<SourceEvent>,
    link: Option<(u32, Link)>,
    /// The link that is being made; it is there when [`SourceEvent::Connected`] is heard.
    dialling: Option<(u32, oneshot::Receiver<Link>)>,
    stream: Option<(u32, SlotStream)>,
    batch: Batch,
    /// The stream has something.
    ready: Arc<Notify>,
}

impl Driver {
    pub(super) fn new(node: Rc<Node>, id: NodeId, migration: Migration, is_resumed: bool) -> Self {
        let (now, config, me) = (node.now(), node.config(), node.me());
        let machine = if is_resumed {
            // Before anything on them is served: nobody knows what was proposed before the crash.
            node.set_parked(&migration.slots, true);
            Source::after_restart(id, me, config, now)
        } else {
            Source::new(id, me, config, now)
        };
        let (events, heard) = unbounded_channel();
        Self {
            node,
            id,
            migration,
            machine,
            events,
            heard,
            link: None,
            dialling: None,
            stream: None,
            batch: Batch::default(),
            ready: Arc::default(),
        }
    }

    /// Works until the log has decided, or the server stops.
    pub(super) async fn run(mut self) {
        tracing::info!(migration = %self.id, target = %self.migration.target, slots = ?self.migration.slots, "slots are to move away");
        self.announce(Notice::Smigrating { slots: self.slots_text() });
        let (node, id) = (Rc::clone(&self.node), self.id);
        drive(&node, id, &mut self).await;
    }

    /// Tells connections that opted in.
    fn announce(&self, notice: Notice) {
        let shared = &self.node.shared;
        let is_enabled = shared.config().maint_notifications;
        shared.maintenance.announce(Scope::All, notice, is_enabled, std::time::Instant::now());
    }

    /// Tells where the slots are, before any command on them is redirected. Those that stay end what was announced as well.
    fn announce_end(&self, decision: Decision) {
        let metadata = self.node.log.metadata().borrow().clone();
        let place = |node| {
            let at = metadata.node(node).map(|node| &node.at);
            at.map_or(String::new(), |at| {
                let port = if at.port == 0 { at.tls_port } else { at.port };
                Successor::new(&at.ip, port).named(None).unwrap_or_default()
            })
        };
        let source = place(self.migration.source);
        let destination = match decision {
            Decision::Committed => place(self.migration.target),
            Decision::Ended => source.clone(),
        };
        self.announce(Notice::Smigrated {
            moves: vec![SlotMove { source, destination, slots: self.slots_text() }],
        });
    }

    fn slots_text(&self) -> String {
        let text = |&(first, last): &(Slot, Slot)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        self.migration.slots.iter().map(text).collect::<Vec<_>>().join(",")
    }

    fn act_on(&mut self, action: SourceAction) {
        let now = self.node.now();
        failpoint::pass(place(&action));
        match action {
            SourceAction::Dial(attempt) => self.dial(attempt),
            SourceAction::Send(attempt, frame) => {
                if let Some((_, link)) = self.link.as_ref().filter(|(of, _)| *of == attempt) {
                    link.send(frame);
                }
            }
            SourceAction::Close(attempt) => {
                self.link.take_if(|(of, _)| *of == attempt);
                self.dialling.take_if(|(of, _)| *of == attempt);
            }
            SourceAction::OpenStream(attempt) => {
                let ready = Arc::clone(&self.ready);
                let config =
                    Config { wake: Some(Arc::new(move |_| ready.notify_one())), ..Config::default() };
                let store = &self.node.shared.store;
                let stream = SlotStream::open(store, each(&self.migration.slots), unix_ms(), &config);
                self.stream = Some((attempt, stream));
            }
            SourceAction::Fetch(attempt) => self.fetch(attempt),
            SourceAction::CloseStream(attempt) => {
                if let Some((_, stream)) = self.stream.take_if(|(of, _)| *of == attempt) {
                    stream.close(&self.node.shared.store);
                }
            }
            SourceAction::Park(attempt) => {
                self.node.set_parked(&self.migration.slots, true);
                failpoint::pass("source-parked");
                self.machine.handle(now, SourceEvent::Parked(attempt));
            }
            SourceAction::Unpark => self.node.set_parked(&self.migration.slots, false),
            SourceAction::Propose(proposal) => {
                let events = self.events.clone();
                self.node.propose(self.id, proposal, move || _ = events.send(SourceEvent::ProposalFailed));
            }
            SourceAction::DropSlots => {
                let (shared, slots) = (Arc::clone(&self.node.shared), self.migration.slots.clone());
                spawn_blocking(move || {
                    // What is still to be loaded would be there again.
                    if shared.persistence.loading.wait().is_err() {
                        return;
                    }
                    drop_slots(&shared, each(&slots));
                    failpoint::pass("source-dropped");
                });
            }
        }
    }

    fn dial(&mut self, attempt: u32) {
        let connecting = (self.node.dial)(self.migration.target);
        let (events, links) = (self.events.clone(), self.events.clone());
        let (opened, slot) = oneshot::channel();
        spawn_local(async move {
            match connecting.await {
                Ok(stream) => {
                    let tell = move |heard| {
                        let _ = links.send(match heard {
                            Heard::Frame(frame) => SourceEvent::Frame(attempt, frame),
                            Heard::Lost(reason) => SourceEvent::Lost(attempt, reason),
                        });
                    };
                    // In this order: the link is there when it is heard of, and is heard of before anything that comes by it.
                    let _ = opened.send(Link::start(Reader::new(stream), tell));
                    let _ = events.send(SourceEvent::Connected(attempt));
                }
                Err(reason) => _ = events.send(SourceEvent::Lost(attempt, reason)),
            }
        });
        self.link = None;
        self.dialling = Some((attempt, slot));
    }

    fn hear(&mut self, event: SourceEvent) {
        if let SourceEvent::Connected(attempt) = event {
            self.take_link(attempt);
        }
        self.machine.handle(self.node.now(), event);
    }

    fn take_link(&mut self, attempt: u32) {
        if let Some((_, mut slot)) = self.dialling.take_if(|(of, _)| *of == attempt)
            && let Ok(link) = slot.try_recv()
        {
            self.link = Some((attempt, link));
        }
    }

    fn fetch(&mut self, attempt: u32) {
        let now = self.node.now();
        let Some((_, stream)) = self.stream.as_mut().filter(|(of, _)| *of == attempt) else { return };
        match stream.next(&self.node.shared.store, &mut self.batch) {
            Ok(progress) => {
                let batch = StreamBatch {
                    position_before: self.batch.position_before(),
                    position: progress.position,
                    is_snapshot_done: progress.is_snapshot_done,
                    images: Bytes::copy_from_slice(self.batch.image_bytes()),
                    units: Bytes::copy_from_slice(self.batch.unit_bytes()),
                };
                let waiting = stream.waiting_bytes() as u64;
                self.machine.handle(now, SourceEvent::Fetched(attempt, batch, waiting));
            }
            Err(_) => {
                if let Some((_, stream)) = self.stream.take() {
                    stream.close(&self.node.shared.store);
                }
                self.machine.handle(now, SourceEvent::Overrun(attempt));
            }
        }
    }
}

impl Drive for Driver {
    fn status(&self) -> Status<'_> {
        self.machine.status()
    }

    fn decision(&self) -> Option<Decision> {
        self.machine.decision()
    }

    fn decided(&mut self, decision: Decision) {
        self.announce_end(decision);
        self.machine.handle(self.node.now(), SourceEvent::Decided(decision));
    }

    async fn act(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            let is_fetch = matches!(action, SourceAction::Fetch(_));
            self.act_on(action);
            if is_fetch {
                // One fetch may lead to the next for as long as there are writes; what the target says is heard all the same.
                yield_now().await;
                while let Ok(event) = self.heard.try_recv() {
                    self.hear(event);
                }
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn time_passed(&mut self) {
        self.machine.handle_timeout(self.node.now());
    }

    async fn news(&mut self) {
        let attempt = self.stream.as_ref().map(|(attempt, _)| *attempt);
        tokio::select! {
            // This holds a sender.
            Some(event) = self.heard.recv() => self.hear(event),
            () = self.ready.notified(), if attempt.is_some() => {
                let attempt = attempt.unwrap_or_default();
                self.machine.handle(self.node.now(), SourceEvent::StreamReady(attempt));
            }
        }
    }
}

/// The failpoint before an action.
fn place(action: &SourceAction) -> &'static str {
    match action {
        SourceAction::Dial(_) => "source-dial",
        SourceAction::Send(_, Frame::Hello { .. }) => "source-hello",
        SourceAction::Send(_, Frame::Batch { is_snapshot_done: false, .. }) => "source-batch",
        SourceAction::Send(_, Frame::Batch { .. }) => "source-tail",
        SourceAction::Send(_, Frame::Final { .. }) => "source-final",
        SourceAction::Send(..) => "source-send",
        SourceAction::Close(_) => "source-close",
        SourceAction::OpenStream(_) => "source-open",
        SourceAction::Fetch(_) => "source-fetch",
        SourceAction::CloseStream(_) => "source-close-stream",
        SourceAction::Park(_) => "source-park",
        SourceAction::Unpark => "source-unpark",
        SourceAction::Propose(Proposal::Commit) => "source-commit",
        SourceAction::Propose(Proposal::End(_)) => "source-end",
        SourceAction::DropSlots => "source-drop",
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some((_, stream)) = self.stream.take() {
            stream.close(&self.node.shared.store);
        }
    }
}
