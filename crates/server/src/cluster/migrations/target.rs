//! The node that gets slots: doing what the machine says.
//!
//! Owns: links and the importer, as the machine asks for them. Does **not** decide anything.

use super::Node;
use super::driving::{Drive, drive};
use super::importer::{Importer, Job};
use super::link::{Heard, Link, Opened};
use crate::cluster::each;
use crate::cluster::import::Import;
use crate::failpoint;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::rc::Rc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use towline_cluster_proto::migration::wire::Frame;
use towline_cluster_proto::migration::{Decision, Status, Target, TargetAction, TargetEvent};
use towline_cluster_proto::{Migration, NodeId};
use towline_sansio::Instant;

/// One migration, at its target.
pub(super) struct Driver {
    node: Rc<Node>,
    id: NodeId,
    migration: Migration,
    machine: Target,
    importer: Importer,
    events: UnboundedSender<TargetEvent>,
    heard: UnboundedReceiver<TargetEvent>,
    door: UnboundedSender<Opened>,
    opened: UnboundedReceiver<Opened>,
    /// By attempt.
    links: BTreeMap<u32, Link>,
}

impl Driver {
    /// With `is_resumed`, what is in the slots, and what will be loaded into them, is unseen from here on, and part of the import.
    ///
    /// # Errors
    /// The system's: there is no thread for the import. The source ends the migration then, as nobody answers.
    pub(super) fn new(
        node: Rc<Node>,
        id: NodeId,
        migration: Migration,
        is_resumed: bool,
    ) -> io::Result<Self> {
        let (now, config, slots) = (node.now(), node.config(), &migration.slots);
        let (machine, import) = if is_resumed {
            node.set_parked(slots, true);
            (Target::after_restart(config, now), Some(Import::resume(&node.shared, each(slots), id)))
        } else {
            (Target::new(config, now), None)
        };
        let (events, heard) = unbounded_channel();
        let importer = Importer::start(&node.shared, slots, import, events.clone())?;
        let (door, opened) = unbounded_channel();
        let links = BTreeMap::new();
        Ok(Self { node, id, migration, machine, importer, events, heard, door, opened, links })
    }

    /// Where links are brought, once they have said that they are for this migration.
    pub(super) fn door(&self) -> UnboundedSender<Opened> {
        self.door.clone()
    }

    /// Works until the log has decided and what follows is done here, or the server stops.
    pub(super) async fn run(mut self) {
        let Migration { source, slots, .. } = &self.migration;
        tracing::info!(migration = %self.id, %source, ?slots, "slots are to come in");
        let (node, id) = (Rc::clone(&self.node), self.id);
        drive(&node, id, &mut self).await;
        if self.machine.decision().is_some() {
            self.importer.end().await;
        }
    }

    fn open(&mut self, opened: Opened) {
        let Opened { attempt, version, reader } = opened;
        let events = self.events.clone();
        let tell = move |heard| {
            let _ = events.send(match heard {
                Heard::Frame(frame) => TargetEvent::Frame(attempt, frame),
                Heard::Lost(_) => TargetEvent::Lost(attempt),
            });
        };
        // An attempt is dialled once; a second link of the same number is somebody's mistake.
        if let Entry::Vacant(place) = self.links.entry(attempt) {
            place.insert(Link::start(reader, tell));
            self.machine.handle(self.node.now(), TargetEvent::Hello { attempt, version });
        }
    }

    fn act_on(&mut self, action: TargetAction) {
        match action {
            TargetAction::Begin(_) => self.importer.send(Job::Begin),
            TargetAction::Apply(attempt, batch) => self.importer.send(Job::Apply(attempt, batch)),
            TargetAction::Sync(attempt) => self.importer.send(Job::Sync(attempt)),
            TargetAction::Abandon => self.importer.send(Job::Abandon),
            TargetAction::Finish => self.importer.send(Job::Finish),
            TargetAction::Send(attempt, frame) => {
                failpoint::pass(place(&frame));
                if let Some(link) = self.links.get(&attempt) {
                    link.send(frame);
                }
            }
            TargetAction::Close(attempt) => _ = self.links.remove(&attempt),
            TargetAction::Propose(proposal) => {
                failpoint::pass("target-end");
                let events = self.events.clone();
                self.node.propose(self.id, proposal, move || _ = events.send(TargetEvent::ProposalFailed));
            }
        }
    }
}

/// The failpoint before a frame is sent.
fn place(frame: &Frame) -> &'static str {
    match frame {
        Frame::Welcome { .. } => "target-welcome",
        Frame::Ack { .. } => "target-ack",
        Frame::Ready { .. } => "target-ready",
        _ => "target-send",
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
        self.machine.handle(self.node.now(), TargetEvent::Decided(decision));
    }

    async fn act(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            self.act_on(action);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn time_passed(&mut self) {
        self.machine.handle_timeout(self.node.now());
    }

    async fn news(&mut self) {
        // This holds a sender of both.
        tokio::select! {
            Some(event) = self.heard.recv() => self.machine.handle(self.node.now(), event),
            Some(link) = self.opened.recv() => self.open(link),
        }
    }
}
