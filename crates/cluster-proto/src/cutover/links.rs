//! Connections between the two nodes of a migration.
//!
//! Owns: frames in their order, links that break, and how an end hears of it: soon, or never. Does **not** own what a frame means.

use super::world::{Event, World};
use super::*;

/// A connection of one attempt. `[0]` is the source's end, `[1]` the target's.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) migration: NodeId,
    pub(super) attempt: u32,
    pub(super) ends: [usize; 2],
    lives: [u32; 2],
    is_open: [bool; 2],
    is_broken: bool,
    /// Nothing comes to an end before what was sent earlier.
    ready_at: [Instant; 2],
    /// The target has taken it for this migration.
    is_greeted: bool,
    waiting: VecDeque<Frame>,
    /// The target does not wait longer for the log's word of the migration.
    knocks_until: Instant,
}

/// As the server's: how long a link may wait for the log.
const KNOCK_MAX: Duration = Duration::from_millis(800);

impl World {
    /// The source's end is there, or it is not.
    pub(super) fn connect(&mut self, source: usize, id: NodeId, attempt: u32) {
        let migration = &self.nodes[source].metadata.migrations()[&id];
        let target = (0..NODES).find(|&node| name(node) == migration.target).expect("one of three");
        let is_reached = self.nodes[target].is_up && !self.is_cut(source, target);
        let event = if is_reached {
            let lives = [self.nodes[source].life, self.nodes[target].life];
            self.links.push(Link {
                migration: id,
                attempt,
                ends: [source, target],
                lives,
                is_open: [true; 2],
                is_broken: false,
                ready_at: [self.now; 2],
                is_greeted: false,
                waiting: VecDeque::new(),
                knocks_until: self.now + KNOCK_MAX,
            });
            SourceEvent::Connected(attempt)
        } else {
            SourceEvent::Lost(attempt, "refused".into())
        };
        self.tell_source(source, id, event);
    }

    fn link_of(&self, node: usize, end: usize, id: NodeId, attempt: u32) -> Option<usize> {
        self.links.iter().position(|link| {
            link.ends[end] == node
                && link.lives[end] == self.nodes[node].life
                && (link.migration, link.attempt) == (id, attempt)
                && link.is_open[end]
        })
    }

    /// Sends a frame from this end.
    pub(super) fn send(&mut self, node: usize, end: usize, id: NodeId, attempt: u32, frame: Frame) {
        let Some(at) = self.link_of(node, end, id, attempt) else { return };
        let late = Duration::from_micros(self.rng.below(4000));
        let link = &mut self.links[at];
        let ready_at = (self.now + late).max(link.ready_at[1 - end]);
        link.ready_at[1 - end] = ready_at;
        self.after(ready_at.since(self.now), Event::Frame { link: at, end: 1 - end, frame });
    }

    pub(super) fn close(&mut self, node: usize, end: usize, id: NodeId, attempt: u32) {
        if let Some(at) = self.link_of(node, end, id, attempt) {
            self.close_end(at, end);
        }
    }

    /// An end is closed, by its node or with it. The other one hears of it unless the network is cut.
    fn close_end(&mut self, at: usize, end: usize) {
        let link = &mut self.links[at];
        link.is_open[end] = false;
        let ready_at = link.ready_at[1 - end].max(self.now);
        self.after(ready_at.since(self.now), Event::Lost { link: at, end: 1 - end });
    }

    pub(super) fn close_all_of(&mut self, node: usize) {
        for at in 0..self.links.len() {
            for end in 0..2 {
                if self.links[at].ends[end] == node && self.links[at].is_open[end] {
                    self.close_end(at, end);
                }
            }
        }
    }

    /// Breaks a link; each end hears of it or does not.
    pub(super) fn break_link(&mut self, at: usize) {
        self.links[at].is_broken = true;
        for end in 0..2 {
            if self.rng.below(3) > 0 {
                let late = self.short();
                self.after(late, Event::Reset { link: at, end });
            }
        }
    }

    /// An end is told that the link is gone.
    pub(super) fn reset(&mut self, at: usize, end: usize) {
        let (attempt, id, node) = {
            let link = &mut self.links[at];
            if !std::mem::take(&mut link.is_open[end]) {
                return;
            }
            (link.attempt, link.migration, link.ends[end])
        };
        if self.nodes[node].life != self.links[at].lives[end] {
            return;
        }
        if end == 0 {
            self.tell_source(node, id, SourceEvent::Lost(attempt, "it broke".into()));
        } else if self.links[at].is_greeted {
            self.tell_target(node, id, TargetEvent::Lost(attempt));
        }
    }

    pub(super) fn lost(&mut self, at: usize, end: usize) {
        let link = &mut self.links[at];
        link.is_broken |= self.cut[link.ends[1 - end]][link.ends[end]];
        if !link.is_broken {
            self.reset(at, end);
        }
    }

    pub(super) fn frame_arrives(&mut self, at: usize, end: usize, frame: Frame) {
        let link = &mut self.links[at];
        // Bytes that were lost are lost with all that follow.
        link.is_broken |= self.cut[link.ends[1 - end]][link.ends[end]];
        let node = link.ends[end];
        if link.is_broken || !link.is_open[end] || link.lives[end] != self.nodes[node].life {
            return;
        }
        let (id, attempt) = (link.migration, link.attempt);
        if end == 0 {
            self.tell_source(node, id, SourceEvent::Frame(attempt, frame));
        } else if link.is_greeted {
            self.tell_target(node, id, TargetEvent::Frame(attempt, frame));
        } else {
            link.waiting.push_back(frame);
            self.knock(at);
        }
    }

    /// The target takes the link if it works on the migration, or looks again later: the source may have heard of it from the log first.
    pub(super) fn knock(&mut self, at: usize) {
        let link = &mut self.links[at];
        let node = &self.nodes[link.ends[1]];
        if link.is_greeted || !link.is_open[1] || link.lives[1] != node.life {
            return;
        }
        if node.target.as_ref().is_none_or(|(id, _)| *id != link.migration) {
            if node.decision(link.migration).is_some()
                && node.metadata.migrations().contains_key(&link.migration)
                || self.now >= link.knocks_until
            {
                self.close_end(at, 1);
            } else {
                self.after(Duration::from_millis(10), Event::Knock { link: at });
            }
            return;
        }
        link.is_greeted = true;
        let (node, id, attempt) = (link.ends[1], link.migration, link.attempt);
        for frame in std::mem::take(&mut link.waiting) {
            let event = match frame {
                Frame::Hello { attempt, version, .. } => TargetEvent::Hello { attempt, version },
                frame => TargetEvent::Frame(attempt, frame),
            };
            self.tell_target(node, id, event);
        }
    }
}
