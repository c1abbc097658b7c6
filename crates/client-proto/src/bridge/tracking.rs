//! What the server says about keys that were read.
//!
//! Owns the words between one bridge and a cache ([`crate::cache`]): which connection announces changes, that it has ended,
//! and what it announced, in this order. Does not own what is kept of it, nor who asked for the announcements.

use bytes::Bytes;
use towline_resp::frame::Frame;

use super::Bridge;
use crate::handshake::Tracking;

/// Words that wait for whoever takes them. A server that announces more between two turns of the owner is heard as one that
/// announces everything.
const NEWS_MAX: usize = 16_384;

/// What a cache has to know, in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrackingNews {
    /// A connection that announces changes serves from now on.
    Began,
    /// It was lost, or left for another one: what was read on it is not watched any more.
    Ended,
    /// These keys have changed, expired or gone, or the server watches them no longer.
    Keys(Vec<Bytes>),
    /// All keys may have changed.
    All,
}

#[derive(Debug)]
pub(super) struct Tracker {
    tracking: Tracking,
    news: Vec<TrackingNews>,
    /// Announcements among the news since the last word about a connection.
    keys: usize,
}

impl<W> Bridge<W> {
    /// Makes every connection of this bridge ask for announcements. To be called before anything else. What comes of it is in
    /// [`Bridge::take_tracking_news`].
    #[must_use]
    pub fn with_tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = Some(Box::new(Tracker { tracking, news: Vec::new(), keys: 0 }));
        self
    }

    /// What to ask of a new connection.
    pub(super) fn tracking(&self) -> Option<Tracking> {
        self.tracking.as_ref().map(|tracker| tracker.tracking.clone())
    }

    /// Whether [`Bridge::take_tracking_news`] has something.
    #[inline]
    pub fn has_tracking_news(&self) -> bool {
        self.tracking.as_ref().is_some_and(|tracker| !tracker.news.is_empty())
    }

    /// What the cache has to know since the last call. Whoever takes it has to pass it on before anybody
    /// else can see the outcomes of commands: what was announced before a reply is then known to whoever has the reply.
    pub fn take_tracking_news(&mut self) -> Vec<TrackingNews> {
        let Some(tracker) = &mut self.tracking else { return Vec::new() };
        tracker.keys = 0;
        std::mem::take(&mut tracker.news)
    }

    /// The connection in the serving place serves from now on.
    pub(super) fn tracking_began(&mut self) {
        let has_tracking = self.conn.info().is_some_and(|info| info.has_tracking);
        if let Some(tracker) = self.tracking.as_mut().filter(|_| has_tracking) {
            tracker.add(TrackingNews::Began);
        }
    }

    /// The connection that served is over or left.
    pub(super) fn tracking_ended(&mut self) {
        if let Some(tracker) = &mut self.tracking {
            tracker.add(TrackingNews::Ended);
        }
    }

    /// Takes an announcement; false if the push is something else.
    pub(super) fn take_invalidation(&mut self, push: &[Frame]) -> bool {
        let Some(tracker) = &mut self.tracking else { return false };
        let [Frame::Bulk(kind) | Frame::Simple(kind), what] = push else { return false };
        if &kind[..] != b"invalidate" {
            return false;
        }
        match what {
            Frame::Array(keys) => tracker.add_keys(keys),
            // After FLUSHALL and its like.
            _ => tracker.add(TrackingNews::All),
        }
        true
    }
}

impl Tracker {
    fn add(&mut self, word: TrackingNews) {
        if word != TrackingNews::All {
            self.keys = 0;
        }
        // What is said twice in a row is said. So the list is short: connections do not come and go within one turn.
        if self.news.last() != Some(&word) {
            self.news.push(word);
        }
    }

    fn add_keys(&mut self, frames: &[Frame]) {
        let keys: Option<Vec<Bytes>> = frames
            .iter()
            .map(|frame| match frame {
                Frame::Bulk(key) | Frame::Simple(key) => Some(key.clone()),
                _ => None,
            })
            .collect();
        self.keys = self.keys.saturating_add(frames.len());
        match keys {
            Some(keys) if self.keys <= NEWS_MAX => match self.news.last_mut() {
                Some(TrackingNews::Keys(known)) => known.extend(keys),
                // They are said already.
                Some(TrackingNews::All) => {}
                _ => self.news.push(TrackingNews::Keys(keys)),
            },
            // What cannot be read may be about any key.
            _ => {
                while matches!(self.news.last(), Some(TrackingNews::Keys(_))) {
                    self.news.pop();
                }
                self.add(TrackingNews::All);
            }
        }
    }
}
