//! All keys of a server, or of a cluster whose slots move meanwhile.
//!
//! Owns the cursors and the account of which slots have been visited. Does not own anything about keys.
//!
//! # Why nothing is missed
//!
//! `SCAN` of one node returns each key that is there from its first call to its last. A slot that stays with one node for that long
//! is done. So the scan goes by slots: it visits the owner of those that are not done, and when its cursor is through, asks that
//! very node which slots it has (`CLUSTER NODES`). Those that it had before and after are done; those that it has lost
//! are left for their next owner; those that are on their way (`MIGRATING`) are done once the node to which they go has been
//! visited as well, from after that moment on: a key is at the one until it is at the other.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use towline_client_proto::routing::EndpointId;
use towline_client_proto::{Error, ErrorKind, Sent};
use towline_cluster::{Asked, OpenState, SLOT_COUNT, Slot, View, key_slot};
use towline_resp::frame::Frame;

use super::Cluster;
use super::node::Node;
use crate::client::{Client, Way};
use crate::cmd::Cmd;

/// Visits in a row that get no slot done. Slots that move faster than they can be scanned would keep a scan busy for ever.
const IDLE_VISITS_MAX: u32 = 100;

/// What to scan for; see [`Client::scan_all`].
#[derive(Debug, Clone)]
#[must_use = "nothing is scanned until `start`"]
pub struct ScanAllBuilder {
    client: Client,
    pattern: Option<Bytes>,
    kind: Option<String>,
    count: Option<u32>,
}

impl ScanAllBuilder {
    /// Only keys that match this pattern: `user:*`, `h?llo`, `h[ae]llo`.
    pub fn pattern(mut self, pattern: impl AsRef<[u8]>) -> Self {
        self.pattern = Some(Bytes::copy_from_slice(pattern.as_ref()));
        self
    }

    /// Only keys that hold this type of data: `string`, `hash`, ...
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// About how many keys the server looks at for each batch. Default: its own, 10. A larger number needs fewer calls, each of
    /// which holds the server up for longer.
    pub const fn count(mut self, count: u32) -> Self {
        self.count = Some(count);
        self
    }

    /// The scan, which has not sent anything yet.
    pub fn start(self) -> ScanAll {
        ScanAll { builder: self, visit: Visit::None, progress: Progress::new(), idle: 0 }
    }

    fn cmd(&self, cursor: &[u8]) -> Cmd {
        let mut cmd = Cmd::new("SCAN").arg(cursor);
        if let Some(pattern) = &self.pattern {
            cmd = cmd.arg("MATCH").arg(pattern);
        }
        if let Some(count) = self.count {
            cmd = cmd.arg("COUNT").arg(count);
        }
        match &self.kind {
            Some(kind) => cmd.arg("TYPE").arg(kind.as_str()),
            None => cmd,
        }
    }
}

/// A scan of all keys, batch by batch. Every key that is there from the beginning to the end comes at least once, also if slots
/// move, nodes fail over, join or leave meanwhile; a key may come more than once, and one that is made or deleted in between may
/// come or not.
#[derive(Debug)]
pub struct ScanAll {
    builder: ScanAllBuilder,
    visit: Visit,
    progress: Progress,
    /// Visits in a row after which no slot was done.
    idle: u32,
}

/// Which slots are done.
#[derive(Debug)]
struct Progress {
    open: BTreeSet<Slot>,
    /// Slots whose keys go to another node, by its name: what is left of them is there.
    onward: BTreeMap<Slot, Box<str>>,
}

impl Progress {
    fn new() -> Self {
        Self { open: (0..SLOT_COUNT as Slot).collect(), onward: BTreeMap::new() }
    }

    /// The node `id` has been visited from beginning to end for these slots, and then said this.
    fn visited(&mut self, slots: &BTreeSet<Slot>, id: Option<&str>, view: &View) {
        let owned = |slot: Slot| view.myself.is_some() && view.topology.slots.owner(slot) == view.myself;
        let migrating: BTreeMap<Slot, &str> = view
            .open
            .iter()
            .filter(|open| open.state == OpenState::Migrating)
            .map(|open| (open.slot, &*open.other))
            .collect();
        for slot in slots {
            match (self.onward.get(slot), migrating.get(slot)) {
                // It was looked for where its keys went, after they had been looked for where they came from.
                (Some(target), _) if Some(&**target) == id => {
                    self.open.remove(slot);
                    self.onward.remove(slot);
                }
                (_, Some(target)) if owned(*slot) => {
                    self.onward.insert(*slot, (*target).into());
                }
                (_, None) if owned(*slot) => {
                    self.open.remove(slot);
                    self.onward.remove(slot);
                }
                // It has gone: its owner is asked from the beginning.
                _ => {
                    self.onward.remove(slot);
                }
            }
        }
    }
}

#[derive(Debug)]
enum Visit {
    None,
    /// The cursor of the server, or of the node that is visited.
    At(Bytes, Option<Place>),
    Over,
}

#[derive(Debug)]
struct Place {
    node: EndpointId,
    slots: BTreeSet<Slot>,
}

impl ScanAll {
    /// The next batch of keys, which may be empty; `None` after the last.
    ///
    /// # Errors
    /// As [`Cmd::query`](crate::Cmd::query). The scan may be gone on with: a batch that failed is asked for again, and a node that
    /// has gone is left for whoever has its slots now. [`ErrorKind::Unavailable`]: slots moved faster than they could be
    /// scanned, a hundred times in a row.
    ///
    /// # Cancel safety
    /// Dropping the future loses no key: the batch is asked for again.
    pub async fn next(&mut self) -> Result<Option<Vec<Bytes>>, Error> {
        let client = self.builder.client.clone();
        match &client.inner.way {
            Way::Endpoint(_) => self.next_of_server(&client).await,
            Way::Cluster(cluster) if cluster.has_one_primary() => self.next_of_server(&client).await,
            Way::Cluster(cluster) => Box::pin(self.next_of_cluster(cluster)).await,
        }
    }

    /// All keys at once.
    ///
    /// # Errors
    /// As [`ScanAll::next`].
    ///
    /// # Cancel safety
    /// Dropping the future loses what it has found.
    pub async fn collect(mut self) -> Result<BTreeSet<Bytes>, Error> {
        let mut keys = BTreeSet::new();
        while let Some(batch) = self.next().await? {
            keys.extend(batch);
        }
        Ok(keys)
    }

    async fn next_of_server(&mut self, client: &Client) -> Result<Option<Vec<Bytes>>, Error> {
        let cursor = match &self.visit {
            Visit::Over => return Ok(None),
            Visit::None => Bytes::from_static(b"0"),
            Visit::At(cursor, _) => cursor.clone(),
        };
        let cmd = self.builder.cmd(&cursor);
        let reply = client.send(&cmd).await?;
        let (next, keys) = batch(reply)?;
        self.visit = if next == "0" { Visit::Over } else { Visit::At(next, None) };
        Ok(Some(keys))
    }

    async fn next_of_cluster(&mut self, cluster: &Cluster) -> Result<Option<Vec<Bytes>>, Error> {
        loop {
            match &self.visit {
                Visit::Over => return Ok(None),
                Visit::None if self.progress.open.is_empty() => {
                    self.visit = Visit::Over;
                    return Ok(None);
                }
                Visit::None => self.begin_visit(cluster).await?,
                Visit::At(cursor, place) => {
                    let Some(node) = place.as_ref().and_then(|place| cluster.known(place.node)) else {
                        // It has left: whoever has its slots is asked from the beginning.
                        self.visit = Visit::None;
                        self.count_idle()?;
                        continue;
                    };
                    let cmd = self.builder.cmd(cursor);
                    let reply = node.client_in(cluster).send(&cmd).await?;
                    let (next, mut keys) = batch(reply)?;
                    keys.retain(|key| self.progress.open.contains(&key_slot(key)));
                    if next == "0" {
                        self.end_visit(cluster, &node).await?;
                    } else if let Visit::At(cursor, _) = &mut self.visit {
                        *cursor = next;
                    }
                    return Ok(Some(keys));
                }
            }
        }
    }

    /// Chooses whom to visit: where the keys of the first slot went, or its owner.
    async fn begin_visit(&mut self, cluster: &Cluster) -> Result<(), Error> {
        if !cluster.routes.load().has_map() {
            cluster.ready().await?;
        }
        let routes = cluster.routes.load_full();
        let Some(&slot) = self.progress.open.first() else { return Ok(()) };
        let named = |id: &str| {
            let mut all = routes.described();
            all.find(|(_, info, _)| info.id.as_deref() == Some(id)).map(|(node, ..)| node.id)
        };
        let onward = self.progress.onward.get(&slot).and_then(|id| named(id));
        let node = onward.or_else(|| routes.owner(slot).map(|node| node.id));
        let node = node.ok_or_else(|| Error::new(ErrorKind::Unavailable, Sent::No))?;
        let mut slots: BTreeSet<Slot> =
            routes.slots_of(node).filter(|slot| self.progress.open.contains(slot)).collect();
        let goes_there = |id: &str| named(id) == Some(node);
        slots.extend(self.progress.onward.iter().filter(|(_, id)| goes_there(id)).map(|(slot, _)| *slot));
        slots.insert(slot);
        self.visit = Visit::At(Bytes::from_static(b"0"), Some(Place { node, slots }));
        Ok(())
    }

    async fn end_visit(&mut self, cluster: &Cluster, node: &Node) -> Result<(), Error> {
        let cmd = Cmd::new("CLUSTER NODES");
        let reply = node.client_in(cluster).send(&cmd).await?;
        let is_tls = cluster.options.tls_options().is_some();
        let asked = Asked { address: node.address.clone(), is_tls };
        let view = View::from_nodes(&reply, &asked)
            .map_err(|error| Error::new(ErrorKind::Shape(error.to_string().into()), Sent::Answered))?;
        let Visit::At(_, Some(place)) = std::mem::replace(&mut self.visit, Visit::None) else {
            return Ok(());
        };
        let before = (self.progress.open.len(), self.progress.onward.len());
        let myself = view.myself.and_then(|at| view.topology.nodes.get(at)?.id.clone());
        self.progress.visited(&place.slots, myself.as_deref(), &view);
        if (self.progress.open.len(), self.progress.onward.len()) == before {
            // The map may be older than what the node says.
            cluster.request_refresh(towline_client_proto::routing::RefreshCause::Urgent);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            return self.count_idle();
        }
        self.idle = 0;
        Ok(())
    }

    fn count_idle(&mut self) -> Result<(), Error> {
        self.idle += 1;
        if self.idle < IDLE_VISITS_MAX {
            return Ok(());
        }
        self.idle = 0;
        Err(Error::new(ErrorKind::Unavailable, Sent::No))
    }
}

impl Cluster {
    /// A node that still is one.
    fn known(&self, id: EndpointId) -> Option<std::sync::Arc<Node>> {
        self.lock().nodes.get(&id).cloned()
    }
}

impl Client {
    /// All keys, or those of a pattern, batch by batch: of the server, or of every node of the cluster.
    ///
    /// ```no_run
    /// # async fn run(client: towline_client::Client) -> Result<(), towline_client::Error> {
    /// let mut scan = client.scan_all().pattern("user:*").count(500).start();
    /// while let Some(keys) = scan.next().await? {
    ///     println!("{keys:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan_all(&self) -> ScanAllBuilder {
        ScanAllBuilder { client: self.clone(), pattern: None, kind: None, count: None }
    }
}

/// A cursor and keys.
fn batch(reply: Frame) -> Result<(Bytes, Vec<Bytes>), Error> {
    let shape =
        || Error::new(ErrorKind::Shape("a reply to SCAN is a cursor and keys".into()), Sent::Answered);
    let Frame::Array(parts) = reply else { return Err(shape()) };
    let mut parts = parts.into_iter();
    let (Some(Frame::Bulk(cursor) | Frame::Simple(cursor)), Some(Frame::Array(keys))) =
        (parts.next(), parts.next())
    else {
        return Err(shape());
    };
    let key = |frame| match frame {
        Frame::Bulk(key) => Ok(key),
        _ => Err(shape()),
    };
    Ok((cursor, keys.into_iter().map(key).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_cluster::Address;

    fn view(line: &str) -> View {
        let asked = Asked { address: Address::new("h", 1).unwrap(), is_tls: false };
        let text = format!("{line}\nother h:2@2 master - 0 0 1 connected 16383\n");
        View::from_nodes(&Frame::Bulk(text.into()), &asked).unwrap()
    }

    fn slots(slots: &[Slot]) -> BTreeSet<Slot> {
        slots.iter().copied().collect()
    }

    #[test]
    fn a_slot_that_stayed_is_done_and_one_that_left_is_not() {
        let mut progress = Progress::new();
        let said = view("me h:1@1 myself,master - 0 0 1 connected 0-9");
        progress.visited(&slots(&[0, 9, 10]), Some("me"), &said);
        assert_eq!(progress.open.len(), SLOT_COUNT - 2);
        assert!(progress.open.contains(&10));
    }

    #[test]
    fn a_slot_on_its_way_is_done_when_both_nodes_have_been_visited() {
        let mut progress = Progress::new();
        let said = view("me h:1@1 myself,master - 0 0 1 connected 0-9 [3->-other]");
        progress.visited(&slots(&[3, 4]), Some("me"), &said);
        assert!(progress.open.contains(&3) && !progress.open.contains(&4));
        assert_eq!(progress.onward.get(&3).map(|id| &**id), Some("other"));
        let there = view("me h:1@1 myself,master - 0 0 1 connected 0-9");
        progress.visited(&slots(&[3]), Some("other"), &there);
        assert!(!progress.open.contains(&3) && progress.onward.is_empty());
    }
}
