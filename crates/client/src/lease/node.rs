//! Ending a blocked command at the very process where it blocks.
//!
//! Owns the way of a `CLIENT UNBLOCK`. Does not own when it is said, nor the command that it ends ([`super::blocked`]).
//!
//! A connection's number means something to one process only; to another it is the number of a stranger, whose command
//! must not be ended. After a move the shared connection leads to another process than connections that have not left
//! yet. So the word goes over the shared connection only while that is where the blocked one is, and otherwise over a
//! connection of its own to the same address, where the number has to prove itself first: names and virtual addresses
//! may lead somewhere else by then.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;
use towline_client_proto::maintenance::MaintenanceMode;
use towline_client_proto::{Error, ErrorKind, LostCause, Reply, Sent};
use towline_resp::frame::Frame;
use towline_sansio::Instant as EngineInstant;

use super::pool::{Pool, say, within};
use crate::client::Running;
use crate::clock;
use crate::driver::Life;
use crate::engine::Engine;

/// How far the age of a connection at the server, which counts in seconds, may be from ours.
const AGE_TOLERANCE_S: u64 = 2;

/// Where a leased connection is.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The connection's number there.
    id: i64,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    /// How many moves the client had heard of when it was dialled.
    moves: u64,
    opened_at: EngineInstant,
}

impl Node {
    /// Where `engine`'s connection is; `None` if there is none, or if it has no number.
    pub(super) fn of(engine: &Engine) -> Option<Self> {
        let state = engine.lock();
        let id = state.bridge.info()?.client_id?;
        let place = state.place.as_ref()?;
        Some(Self {
            id,
            peer: state.bridge.peer(),
            local: place.local,
            moves: place.moves,
            opened_at: place.opened_at,
        })
    }

    /// The server's address, if it has one.
    pub(super) const fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// How many moves the client had heard of when it was dialled.
    pub(super) const fn moves(&self) -> u64 {
        self.moves
    }

    /// Whether a line of `CLIENT LIST` is about this connection. `seen` is how the server sees another connection of this
    /// process, and `local` what that one's address is here: if the two are the same, nothing on the way changes
    /// addresses, and the address decides. Otherwise host and age have to do.
    fn is(&self, line: &str, seen: SocketAddr, local: SocketAddr) -> bool {
        let field =
            |name: &str| line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        let Some(address) = field("addr").and_then(|text| text.parse::<SocketAddr>().ok()) else {
            return false;
        };
        if field("id").and_then(|text| text.parse().ok()) != Some(self.id) {
            return false;
        }
        if seen == local {
            return Some(address) == self.local;
        }
        let age = field("age").and_then(|text| text.parse::<u64>().ok());
        let own_age = clock::now().since(self.opened_at).as_secs();
        address.ip() == seen.ip() && age.is_some_and(|age| age.abs_diff(own_age) <= AGE_TOLERANCE_S)
    }
}

/// A connection to the address of leased ones that the shared connection has left. It is made when it is first needed,
/// and ends with its last user.
pub(super) struct Aside {
    address: SocketAddr,
    line: OnceCell<Line>,
}

struct Line {
    running: Running,
    /// How the server sees it, and what its address is here; `None` if that cannot be found out.
    addresses: Option<(SocketAddr, SocketAddr)>,
}

impl Aside {
    pub(super) const fn new(address: SocketAddr) -> Self {
        Self { address, line: OnceCell::const_new() }
    }

    async fn line(&self, pool: &Pool, until: Instant) -> Result<&Line, Error> {
        self.line.get_or_try_init(|| self.open(pool, until)).await
    }

    async fn open(&self, pool: &Pool, until: Instant) -> Result<Line, Error> {
        // Whatever it is by now: it has commands of this client.
        let options = pool.options().clone().maintenance(MaintenanceMode::Disabled).primary_only(false);
        let running = {
            let _context = pool.runtime().enter();
            Running::start(&options, pool.connector().clone(), Life::Aside(self.address))
                .map_err(|error| Error::misuse(error.to_string()))?
        };
        let mut reason = None;
        let connected = Running::connected(&running.engine, &running.events, |failure| {
            reason = Some(failure);
            true
        });
        match within(Some(until), connected).await {
            Some(connected) => connected.map(drop)?,
            None => return Err(Running::connect_error(reason)),
        }
        let info = say(&running.engine, &[b"CLIENT", b"INFO"], left(until)).await?;
        let local = running.engine.lock().place.as_ref().and_then(|place| place.local);
        let seen = text(&info)
            .and_then(|line| line.split(' ').find_map(|field| field.strip_prefix("addr=")?.parse().ok()));
        Ok(Line { running, addresses: seen.zip(local) })
    }
}

impl Pool {
    /// Says `CLIENT UNBLOCK` for the connection at `node`: whether it was blocked there. `aside` is a place for a
    /// connection to that address, kept from call to call.
    ///
    /// # Errors
    /// It could not be said, or not to the right process for certain.
    pub(super) async fn unblock(
        &self,
        node: &Node,
        aside: &mut Option<Arc<Aside>>,
        until: Instant,
    ) -> Result<bool, Error> {
        let id = node.id.to_string();
        let words: [&[u8]; 4] = [b"CLIENT", b"UNBLOCK", id.as_bytes(), b"TIMEOUT"];
        if self.shares(node) {
            let reply = self.say(&words, left(until)).await?;
            return Ok(matches!(reply, Reply::One(Frame::Integer(1))));
        }
        let address = node.peer.ok_or_else(unknown)?;
        let kept = Arc::clone(aside.get_or_insert_with(|| self.aside(address)));
        let said = self.unblock_aside(node, &kept, until).await;
        if said.is_err() {
            *aside = None;
            self.forget_aside(&kept);
        }
        said
    }

    async fn unblock_aside(&self, node: &Node, aside: &Aside, until: Instant) -> Result<bool, Error> {
        let id = node.id.to_string();
        let line = aside.line(self, until).await?;
        let (seen, local) = line.addresses.ok_or_else(unknown)?;
        let engine = &line.running.engine;
        let list = say(engine, &[b"CLIENT", b"LIST", b"ID", id.as_bytes()], left(until)).await?;
        // A number is never given twice by one process, so what is true here is true for the next command.
        if !text(&list).is_some_and(|list| list.lines().any(|line| node.is(line, seen, local))) {
            return Err(unknown());
        }
        let words: [&[u8]; 4] = [b"CLIENT", b"UNBLOCK", id.as_bytes(), b"TIMEOUT"];
        let reply = say(engine, &words, left(until)).await?;
        Ok(matches!(reply, Reply::One(Frame::Integer(1))))
    }
}

/// Nobody knows that the number is the right one.
fn unknown() -> Error {
    Error::new(ErrorKind::Lost(LostCause::Planned), Sent::No)
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

fn text(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::One(Frame::Bulk(bytes) | Frame::Simple(bytes)) => std::str::from_utf8(bytes).ok(),
        Reply::One(Frame::Verbatim { text, .. }) => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_number_has_to_prove_itself() {
        let node = Node {
            id: 7,
            peer: Some(address("10.0.0.1:6379")),
            local: Some(address("10.0.0.9:5000")),
            moves: 0,
            opened_at: clock::now(),
        };
        let line =
            |id: u32, addr: &str, age: u32| format!("id={id} addr={addr} laddr=x name= age={age} cmd=blpop");
        let plain = address("10.0.0.9:5001");
        assert!(node.is(&line(7, "10.0.0.9:5000", 100), plain, plain));
        assert!(!node.is(&line(8, "10.0.0.9:5000", 0), plain, plain), "another number");
        assert!(!node.is(&line(7, "10.0.0.9:5002", 0), plain, plain), "a stranger of the same number");
        // Behind a translation of addresses the server sees other ones.
        let seen = address("192.0.2.1:700");
        assert!(node.is(&line(7, "192.0.2.1:701", 1), seen, plain));
        assert!(!node.is(&line(7, "192.0.2.1:701", 60), seen, plain), "it was there before");
        assert!(!node.is(&line(7, "192.0.2.2:701", 0), seen, plain), "another host");
        for odd in ["", "id=7", "id=7 addr= age=0", "id=7 addr=unix age=0"] {
            assert!(!node.is(odd, plain, plain));
        }
    }
}
