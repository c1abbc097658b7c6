//! The node that gets slots: doing what the machine says.
//!
//! Owns: links and the importer, as the machine asks for them. Does **not** decide anything.

use super::Node;
use super::importer::{Importer, Job};
use super::link::{Heard, Link, Opened};
use crate::shared::Stop;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use towline_cluster_proto::migration::{Target, TargetAction, TargetEvent};
use towline_cluster_proto::{Migration, NodeId};

/// One migration, at its target.
pub(super) struct Driver {
    node: Rc<Node>,
    id: NodeId,
    migration: Migration,
    machine: Target,
    is_resumed: bool,
    events: UnboundedSender<TargetEvent>,
    heard: Option<UnboundedReceiver<TargetEvent>>,
    /// By attempt.
    links: BTreeMap<u32, Link>,
}

impl Driver {
    pub(super) fn new(node: Rc<Node>, id: NodeId, migration: Migration, is_resumed: bool) -> Self {
        let (now, config) = (node.now(), node.config());
        let machine = if is_resumed {
            // What is there stays unseen until it is known whose it is.
            node.set_parked(&migration.slots, true);
            Target::after_restart(config, now)
        } else {
            Target::new(config, now)
        };
        let (events, heard) = unbounded_channel();
        Self { node, id, migration, machine, is_resumed, events, heard: Some(heard), links: BTreeMap::new() }
    }

    /// Works until the log has decided, or the server stops.
    pub(super) async fn run(mut self, mut opened: UnboundedReceiver<Opened>) {
        let Some(mut heard) = self.heard.take() else { return };
        let slots = &self.migration.slots;
        let importer = Importer::start(&self.node.shared, slots, self.is_resumed, self.events.clone());
        let importer = match importer {
            Ok(importer) => importer,
            Err(error) => {
                // The source ends it: nobody answers.
                tracing::error!(migration = %self.id, "no thread for the import: {error}");
                return;
            }
        };
        tracing::info!(migration = %self.id, source = %self.migration.source, slots = ?slots, "slots are to come in");
        let mut metadata = self.node.log.metadata();
        let mut stopping = self.node.shared.stopping();
        loop {
            if self.machine.decision().is_none() {
                let decision = self.node.decision(self.id, &metadata.borrow_and_update().clone());
                if let Some(decision) = decision {
                    self.machine.handle(self.node.now(), TargetEvent::Decided(decision));
                }
            }
            while let Some(action) = self.machine.poll_action() {
                self.act(action, &importer);
            }
            self.node.show(self.id, &self.machine.status());
            if let Some(decision) = self.machine.decision() {
                let status = self.machine.status();
                tracing::info!(migration = %self.id, ?decision, message = status.message, "the slots' move is over");
                return;
            }
            let due = self.machine.poll_timeout().map(|at| at.since(self.node.now()));
            tokio::select! {
                Some(event) = heard.recv() => self.machine.handle(self.node.now(), event),
                Some(link) = opened.recv() => self.open(link),
                changed = metadata.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {
                    self.machine.handle_timeout(self.node.now());
                }
                _ = stopping.wait_for(|stop| *stop != Stop::No) => return,
            }
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

    fn act(&mut self, action: TargetAction, importer: &Importer) {
        match action {
            TargetAction::Begin(_) => importer.send(Job::Begin),
            TargetAction::Apply(attempt, batch) => importer.send(Job::Apply(attempt, batch)),
            TargetAction::Sync(attempt) => importer.send(Job::Sync(attempt)),
            TargetAction::Abandon => importer.send(Job::Abandon),
            TargetAction::Finish => importer.send(Job::Finish),
            TargetAction::Send(attempt, frame) => {
                if let Some(link) = self.links.get(&attempt) {
                    link.send(frame);
                }
            }
            TargetAction::Close(attempt) => _ = self.links.remove(&attempt),
            TargetAction::Propose(proposal) => {
                let events = self.events.clone();
                self.node.propose(self.id, proposal, move || _ = events.send(TargetEvent::ProposalFailed));
            }
        }
    }
}
