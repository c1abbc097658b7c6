//! Plays a script: announces, changes what the network does, and watches from the server's side who left when.
//!
//! Owns the order and the times of events. Does not own the load, nor what the events mean for it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;
use tokio::time::sleep_until;
use towline_server::{Maintenance, Scope, Successor};

use super::options::Times;
use super::script::Script;
use super::stage::{NAME, Stage};

/// How often the server is asked who is still connected: the resolution of the times of moves.
const WATCH_EVERY: Duration = Duration::from_millis(1);

/// The time between two MOVING of the script back-to-back: about as long as a handoff takes.
const SECOND_AFTER: Duration = Duration::from_millis(3);

/// How long the name of the script dns keeps its old meaning: a third of the shortest window.
const DNS_LAGS: Duration = Duration::from_millis(350);

/// How long after the window the server is given to close what has not left.
const CLOSING_MAX: Duration = Duration::from_millis(1500);

/// Something that happened, for the table and the plot.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Happening {
    /// From the run's start.
    pub(super) at_ms: f64,
    pub(super) what: String,
    #[serde(rename = "event")]
    pub(super) label: &'static str,
}

impl Happening {
    /// So long after the run's start.
    pub(super) fn new(at: Duration, label: &'static str, what: String) -> Self {
        Self { at_ms: (at.as_micros() as f64 / 100.0).round() / 10.0, what, label }
    }
}

/// What the server saw.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched {
    pub(super) happenings: Vec<Happening>,
    /// When the (first) MOVING was written, or the connections cut.
    pub(super) moving: Duration,
    /// Connections that were there then and had opted in.
    pub(super) told: usize,
    /// All connections that were there then.
    pub(super) there: usize,
    /// Those of them that left before the window's end.
    pub(super) left: usize,
    /// When the last of the told ones left; none if one stayed to the end.
    pub(super) last_left: Option<Duration>,
    /// From when on no effect of the move is expected.
    pub(super) over: Duration,
}

/// Changes what a name means, in whatever process the client lives.
pub(super) trait Rename {
    /// From now on the name means this address.
    fn rename(&mut self, to: SocketAddr);
}

/// One play of a script.
pub(super) struct Director<'a, R> {
    pub(super) script: Script,
    pub(super) stage: &'a mut Stage,
    pub(super) names: R,
    pub(super) start: Instant,
    pub(super) times: Times,
}

/// What is announced, and to where.
struct Announcement {
    successor: Option<Successor>,
    shown: String,
}

impl<R: Rename> Director<'_, R> {
    /// Plays to the end of the window, and until everybody who had to leave has left.
    ///
    /// # Errors
    /// An address of the script cannot be had, or the server refuses the drain.
    pub(super) async fn play(mut self) -> Result<Watched> {
        let announcement = self.prepare().await?;
        let mut watched = Watched::default();
        self.until(self.times.moving).await;
        let maintenance = self.stage.maintenance();
        let first = self.stage.first();
        let scope = Scope::Local(first);
        let there = maintenance.connections(scope);
        watched.there = there.len();
        let told: BTreeSet<u64> = there
            .iter()
            .filter(|connection| connection.is_notified)
            .map(|connection| connection.id)
            .collect();
        watched.told = told.len();
        watched.moving = self.start.elapsed();
        if self.script == Script::Cut {
            let closed = maintenance.close(scope);
            self.note(&mut watched, "closed", format!("{closed} connections closed without a word"));
            watched.over = self.start.elapsed();
            return Ok(watched);
        }
        let before = self.start.elapsed();
        maintenance.drain(scope, self.times.window, announcement.successor)?;
        watched.moving = before;
        let what = format!(
            "to {}, window {} s; {} of {} connections told",
            announcement.shown,
            self.times.window.as_secs(),
            watched.told,
            watched.there
        );
        self.note(&mut watched, "MOVING", what);
        let mut end = watched.moving + self.times.window;
        if self.script == Script::BackToBack {
            end = self.second(&maintenance, &mut watched).await?;
        }
        self.watch(&maintenance, told, end, &mut watched).await?;
        Ok(watched)
    }

    /// Makes ready what the successor needs.
    async fn prepare(&mut self) -> Result<Announcement> {
        let address = match self.script {
            Script::Plain | Script::BackToBack | Script::Blocked | Script::Pubsub | Script::Cut => {
                self.stage.second()
            }
            Script::Refuse => self.stage.nowhere(),
            Script::Slow => self.stage.slow_door().await?,
            Script::Ipv6 => self.stage.listen_v6()?,
            Script::Null => {
                return Ok(Announcement { successor: None, shown: "no named address".to_owned() });
            }
            Script::Dns => {
                let port = self.stage.second().port();
                let successor = Successor { ip: None, fqdn: Some(NAME.to_owned()), port };
                return Ok(Announcement { successor: Some(successor), shown: format!("{NAME}:{port}") });
            }
        };
        let successor = Successor::new(&address.ip().to_string(), address.port());
        Ok(Announcement { successor: Some(successor), shown: address.to_string() })
    }

    /// The second MOVING: for those that have not left yet, and for those that have arrived. Returns the end of its window.
    async fn second(&self, maintenance: &Maintenance, watched: &mut Watched) -> Result<Duration> {
        self.until(watched.moving + SECOND_AFTER).await;
        let third = self.stage.third();
        let at = self.start.elapsed();
        for from in [self.stage.first(), self.stage.second()] {
            let successor = Successor::new(&third.ip().to_string(), third.port());
            maintenance.drain(Scope::Local(from), self.times.window, Some(successor))?;
        }
        self.note(watched, "MOVING", format!("to {third}, from both addresses"));
        Ok(at + self.times.window)
    }

    /// Watches the told connections leave, until the window's end and the closing after it.
    async fn watch(
        &mut self,
        maintenance: &Maintenance,
        told: BTreeSet<u64>,
        end: Duration,
        watched: &mut Watched,
    ) -> Result<()> {
        let watch = Watch {
            maintenance: maintenance.clone(),
            scope: Scope::Local(self.stage.first()),
            told,
            start: self.start,
            end,
        };
        // A thread of its own: behind the load on the client's threads it would see everything late.
        let watching = tokio::task::spawn_blocking(move || watch.run());
        if self.script == Script::Dns {
            self.until(watched.moving + DNS_LAGS).await;
            self.names.rename(self.stage.second());
            self.note(watched, "renamed", format!("{NAME} means {}", self.stage.second().ip()));
        }
        self.until(end).await;
        self.close_the_window(maintenance);
        let left = watching.await.context("the watch failed")?;
        watched.left = left.within;
        watched.last_left = left.last;
        let count = watched.told;
        for (at, label, what) in [
            (left.first, "first left", "the first told connection has left".to_owned()),
            (left.last, "last left", format!("all {count} told connections have left")),
            (Some(end), "window end", format!("{} told connections are left", count - left.within)),
        ] {
            watched.happenings.extend(at.map(|at| Happening::new(at, label, what)));
        }
        watched.over = watched.last_left.unwrap_or_else(|| self.start.elapsed());
        Ok(())
    }

    /// What the script does to the old address once nobody should need it: with a lagging name, who came back to it in the
    /// meantime is not where it was sent.
    fn close_the_window(&self, maintenance: &Maintenance) {
        if self.script == Script::Dns {
            let first = self.stage.first();
            self.stage.retire(first);
            maintenance.close(Scope::Local(first));
        }
    }

    fn note(&self, watched: &mut Watched, label: &'static str, what: String) {
        watched.happenings.push(Happening::new(self.start.elapsed(), label, what));
    }

    async fn until(&self, at: Duration) {
        sleep_until((self.start + at).into()).await;
    }
}

/// Asks the server who is still there.
struct Watch {
    maintenance: Maintenance,
    scope: Scope,
    told: BTreeSet<u64>,
    start: Instant,
    /// The window's end.
    end: Duration,
}

/// When the told connections left.
#[derive(Debug, Default)]
struct Left {
    first: Option<Duration>,
    last: Option<Duration>,
    /// How many left before the window's end.
    within: usize,
}

impl Watch {
    /// Until all have left, and to the window's end at least.
    fn run(self) -> Left {
        let mut left = Left::default();
        loop {
            let now = self.start.elapsed();
            let there = self.maintenance.connections(self.scope);
            let stay = there.iter().filter(|connection| self.told.contains(&connection.id)).count();
            let gone = self.told.len() - stay;
            if now < self.end {
                left.within = gone;
            }
            if gone > 0 && left.first.is_none() {
                left.first = Some(now);
            }
            if gone == self.told.len() && gone > 0 && left.last.is_none() {
                left.last = Some(now);
            }
            if now >= self.end && (stay == 0 || now >= self.end + CLOSING_MAX) {
                return left;
            }
            std::thread::sleep(WATCH_EVERY);
        }
    }
}
