//! What the drivers of the two machines do, one thing at a time.

use super::*;

impl World {
    // ---- the source's driver --------------------------------------------------------------------------------------

    pub(super) fn run_source(&mut self) {
        while let Some(action) = self.source.as_mut().and_then(Source::poll_action) {
            match action {
                SourceAction::Dial(attempt) => self.dialled.push(attempt),
                SourceAction::Send(attempt, frame) => {
                    let link = self.links.iter_mut().find(|link| link.attempt == attempt && link.has_source);
                    if let Some(link) = link.filter(|link| !link.is_broken) {
                        frame.encode(&mut link.to_target);
                    }
                }
                SourceAction::Close(attempt) => {
                    self.dialled.retain(|&it| it != attempt);
                    for link in self.links.iter_mut().filter(|link| link.attempt == attempt) {
                        link.has_source = false;
                    }
                }
                SourceAction::OpenStream(attempt) => {
                    let images = self.s.contents.iter().map(|(&key, &version)| (key, version)).collect();
                    let stream =
                        Stream { attempt, images, is_done: false, tail: VecDeque::new(), position: 0 };
                    self.streams.push(stream);
                }
                SourceAction::Fetch(attempt) => self.fetching.push(attempt),
                SourceAction::CloseStream(attempt) => self.streams.retain(|it| it.attempt != attempt),
                SourceAction::Park(attempt) => {
                    self.s.is_parked = true;
                    self.parking.push(attempt);
                }
                SourceAction::Unpark => self.s.is_parked = false,
                SourceAction::Propose(proposal) => self.proposed.push((S, proposal)),
                SourceAction::DropSlots => self.s.contents.clear(),
            }
        }
    }

    pub(super) fn source_fetches(&mut self) {
        let Some(attempt) = self.fetching.pop() else { return };
        let (images_max, units_max) = (self.prng.below(6) as usize, self.prng.below(4) as usize);
        let is_overrun = self.faults.breaks > 0 && self.one_in(200);
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.attempt == attempt) else { return };
        let event = if is_overrun {
            self.streams.retain(|stream| stream.attempt != attempt);
            SourceEvent::Overrun(attempt)
        } else {
            let position_before = stream.position;
            let was_done = stream.images.is_empty();
            let count = images_max.min(stream.images.len());
            let images: Vec<u8> =
                stream.images.drain(..count).flat_map(|(key, version)| [key, version]).collect();
            // All that waits comes, unless there are still images.
            let count = if was_done { stream.tail.len() } else { units_max.min(stream.tail.len()) };
            let units: Vec<u8> =
                stream.tail.drain(..count).flat_map(|(key, version)| [key, version]).collect();
            stream.position += count as u64;
            stream.is_done = was_done;
            let batch = StreamBatch {
                position_before,
                position: stream.position,
                is_snapshot_done: was_done,
                images: images.into(),
                units: units.into(),
            };
            SourceEvent::Fetched(attempt, batch, stream.tail.len() as u64 * 2)
        };
        if let Some(source) = &mut self.source {
            source.handle(self.now, event);
        }
        self.run_source();
    }

    pub(super) fn answer_source(&mut self) {
        let event = if self.one_in(2) {
            let Some(attempt) = self.dialled.pop() else { return };
            if self.one_in(self.faults.breaks) || !self.t.is_up {
                SourceEvent::Lost(attempt, "refused".into())
            } else {
                self.links.push(Link {
                    attempt,
                    to_target: BytesMut::new(),
                    to_source: BytesMut::new(),
                    is_broken: false,
                    has_source: true,
                    has_target: true,
                    is_greeted: false,
                    read_by_target: BytesMut::new(),
                    read_by_source: BytesMut::new(),
                });
                SourceEvent::Connected(attempt)
            }
        } else if let Some(attempt) = self.parking.pop() {
            SourceEvent::Parked(attempt)
        } else {
            let Some(attempt) = self.ready.pop() else { return };
            SourceEvent::StreamReady(attempt)
        };
        if let Some(source) = &mut self.source {
            source.handle(self.now, event);
        }
        self.run_source();
    }

    // ---- the target's driver --------------------------------------------------------------------------------------

    pub(super) fn run_target(&mut self) {
        while let Some(action) = self.target.as_mut().and_then(Target::poll_action) {
            match action {
                TargetAction::Send(attempt, frame) => {
                    let link = self.links.iter_mut().find(|link| link.attempt == attempt && link.has_target);
                    if let Some(link) = link.filter(|link| !link.is_broken) {
                        frame.encode(&mut link.to_source);
                    }
                }
                TargetAction::Close(attempt) => {
                    for link in self.links.iter_mut().filter(|link| link.attempt == attempt) {
                        link.has_target = false;
                    }
                }
                TargetAction::Propose(proposal) => self.proposed.push((T, proposal)),
                TargetAction::Begin(_) => {
                    // The gate is told at once, the rest is the import's.
                    self.t.is_parked = true;
                    self.work.push_back(action);
                }
                TargetAction::Apply(..)
                | TargetAction::Sync(_)
                | TargetAction::Abandon
                | TargetAction::Finish => self.work.push_back(action),
            }
        }
    }

    pub(super) fn target_works(&mut self) {
        let Some(action) = self.work.pop_front() else { return };
        let event = match action {
            TargetAction::Begin(_) => {
                self.t.contents.clear();
                None
            }
            TargetAction::Apply(attempt, _) if self.faults.breaks > 0 && self.one_in(300) => {
                Some(TargetEvent::ApplyFailed(attempt, "out of memory".into()))
            }
            TargetAction::Apply(attempt, batch) => {
                for pair in batch.images.chunks_exact(2) {
                    self.t.contents.entry(pair[0]).or_insert(pair[1]);
                }
                // As the real one: effects that come before the snapshot's end would have to wait. Here the images of a key that was
                // changed since are older than its effect, so effects win and images do not overwrite.
                for pair in batch.units.chunks_exact(2) {
                    self.t.contents.insert(pair[0], pair[1]);
                }
                Some(TargetEvent::Applied(attempt))
            }
            TargetAction::Sync(attempt) => {
                self.t.contents.retain(|_, version| *version != 0);
                self.durable = self.t.contents.clone();
                Some(TargetEvent::Synced(attempt))
            }
            TargetAction::Abandon => {
                self.t.contents.clear();
                self.t.is_parked = false;
                None
            }
            TargetAction::Finish => {
                self.t.is_parked = false;
                None
            }
            TargetAction::Send(..) | TargetAction::Close(_) | TargetAction::Propose(_) => None,
        };
        if let Some((target, event)) = self.target.as_mut().zip(event) {
            target.handle(self.now, event);
        }
        self.run_target();
    }
}
