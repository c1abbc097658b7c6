//! Connections besides the shared one: for commands that block, and for state that belongs to one caller.
//!
//! Owns what may be sent where ([`admit`](Client::admit)), the pool of leased connections, the life of a blocking
//! command, and [`Lease`]. Does **not** own how a connection is made (`driver`) nor the fate of commands on it (the
//! bridge).
//!
//! ```text
//!  Client --- GET, SET, pipelines ------------> the shared connection      one, reconnects for ever
//!    |
//!    +------- BLPOP, XREAD BLOCK ... ---+
//!    |                                  +-----> pool of leased connections  0 to leased_max, each ends with its loss
//!    +------- Client::lease() ----------+
//! ```

mod admit;
mod blocked;
mod from_now;
mod guide;
mod node;
mod pool;

use std::ops::Deref;
use std::sync::Arc;

use tokio::time::Instant;
use towline_client_proto::Error;

#[cfg(feature = "redis-compat")]
use crate::client::Way;
use crate::client::{Client, Inner, Role};

pub(crate) use admit::Conduct;
use admit::Taint;
pub(crate) use from_now::reads_from_now;
pub(crate) use guide::Guide;
pub use pool::LeaseReport;
use pool::Taken;
pub(crate) use pool::{Pool, say};

/// One connection for one caller, from [`Client::lease`]. Everything that takes a `&Client` takes it too.
///
/// For what only makes sense on a connection of one's own: `WATCH` with the transaction that follows, `SELECT`,
/// `CLIENT` commands, `WAIT` after a write. What changes the way in which replies come is refused here too
/// (`SUBSCRIBE`, `MONITOR`, `CLIENT REPLY`).
///
/// A lease is one connection and never another: when that is lost, commands that were sent fail with
/// [`ErrorKind::Lost`](crate::ErrorKind::Lost), those that were not with
/// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable), and nothing is repeated, because what was watched or
/// selected is gone. Take a new lease then. [`is_moving`](Self::is_moving) says that it will come to that soon.
///
/// When it is dropped, the connection goes back to the client's pool: at once if it is as it was, after `DISCARD` and
/// `UNWATCH` if keys were watched or a transaction was begun. A connection that was changed otherwise, on which a blocked
/// command was given up, that owes a reply it does not give within the command timeout, or that a clone of this handle
/// still uses, is closed.
///
/// ```no_run
/// # async fn add(client: towline_client::Client) -> Result<(), towline_client::Error> {
/// use towline_client::{Transacted, cmd, pipe};
///
/// let lease = client.lease().await?;
/// loop {
///     cmd("WATCH").arg("total").query::<()>(&lease).await?;
///     let total: Option<u64> = lease.get("total").await?;
///     let change = pipe().cmd("SET").arg("total").arg(total.unwrap_or(0) + 1).atomic();
///     match change.transact(&lease).await? {
///         Transacted::Committed(()) => break,
///         Transacted::Conflict => {} // Somebody changed it: look again.
///         Transacted::Refused(answer) => return Err(answer.into()),
///         Transacted::Unknown(error) => return Err(error),
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Blocking commands
///
/// `BLPOP` and the like need no lease: sent to a [`Client`] they take a connection of the pool by themselves.
///
/// * **Time.** A blocking command has its block time and, in addition, the command timeout for all that the client
///   does; with block time 0 it has no end. Its own [`deadline`](crate::Cmd::deadline) replaces both. Waiting for a
///   free connection and for its set-up is limited by the command timeout, or the deadline.
/// * **A silent server.** While a command blocks, the silence that is allowed grows by its block time. With block time
///   0 data cannot tell a dead peer from an empty list: the kernel's keepalive does, after 45 s by default.
/// * **Dropping the future** of a blocked command sends `CLIENT UNBLOCK` for it over the shared connection. The
///   connection is used again once the reply has come, and closed if it does not. An element that was popped at that
///   very moment is lost to the caller; [`LeaseReport::replies_lost`] counts such replies. Use `BLMOVE` or consumer
///   groups where that must not happen. A deadline that passes is treated in the same way.
/// * **A server that moves.** The command is ended at its server at a drawn moment of the announced window, and issued
///   again at the successor with the time that is left; the caller does not notice. On a lease, which does not move, a
///   command that the server releases fails with [`LostCause::Planned`](crate::LostCause::Planned) and
///   [`Sent::No`](crate::Sent::No).
/// * **A lost connection.** A command that was not sent is sent on another one. What pops may have run and is not
///   repeated. `XREAD` is, with the time that remains, unless it asks for what comes after now (`$`): what came in
///   between would be missed.
pub struct Lease {
    client: Client,
    /// Present until it is dropped.
    taken: Option<Taken>,
}

impl Lease {
    fn new(taken: Taken) -> Self {
        let inner = Arc::new(Inner::leased(taken.pool(), taken.running()));
        Self { client: Client { inner }, taken: Some(taken) }
    }
}

impl Lease {
    /// Whether the server has said that it will close this connection, because its endpoint moves. What was begun may be
    /// finished here until [`moving_until`](Self::moving_until); what takes longer had better begin again on a new lease.
    /// The event [`MaintenanceEvent::Leaving`](crate::MaintenanceEvent) of this lease's own events tells the same as it
    /// happens.
    pub fn is_moving(&self) -> bool {
        self.client.inner.endpoint().lock().leaving().is_some()
    }

    /// When the server closes this connection, if it has said so.
    pub fn moving_until(&self) -> Option<std::time::Instant> {
        let until = self.client.inner.endpoint().lock().leaving().map(|leaving| leaving.until);
        until.map(crate::clock::wall)
    }
}

impl Deref for Lease {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lease").field(&self.client).finish()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(taken) = self.taken.take() else { return };
        let Role::Leased(conduct) = &self.client.inner.role else { return };
        // A handle that was cloned out of the lease would go on using the connection.
        let is_last = Arc::strong_count(&self.client.inner) == 1;
        match conduct.taint() {
            _ if !is_last => taken.end(),
            Taint::Clean if taken.is_at_rest() => drop(taken),
            Taint::Clean => taken.clean_up(&[&["PING"]]),
            Taint::Watching => taken.clean_up(&[&["DISCARD"], &["UNWATCH"]]),
            Taint::Changed => taken.end(),
        }
    }
}

impl Client {
    /// Takes a connection for this caller alone, for at most the command timeout; see [`Lease`].
    ///
    /// # Errors
    /// [`ErrorKind::LeasesTaken`](crate::ErrorKind::LeasesTaken): no connection of the pool became free in time, and
    /// no more may be opened; [`ErrorKind::Connect`](crate::ErrorKind::Connect): none could be opened in time;
    /// [`ErrorKind::Handshake`](crate::ErrorKind::Handshake): the server refuses the options for good;
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable): the client is not connected and its policy does not
    /// wait; [`ErrorKind::Lost`](crate::ErrorKind::Lost): it was lost as soon as it was there. All but the third may
    /// pass.
    ///
    /// # Cancel safety
    /// Dropping it gives up the place in the line; a connection that is being opened stays for the next caller.
    pub async fn lease(&self) -> Result<Lease, Error> {
        let until = Instant::now().checked_add(self.inner.command_timeout);
        if let Some(cluster) = self.inner.cluster().filter(|cluster| cluster.has_one_primary()) {
            let primary = cluster.primary(self.inner.command_timeout).await?;
            return Box::pin(primary.lease()).await;
        }
        match self.pool() {
            Some(pool) => pool.take(until).await.map(Lease::new),
            None => Err(Error::misuse(
                "a lease is one connection to one node: say which by a key (`Client::lease_for`)",
            )),
        }
    }

    /// As [`Client::lease`]; of a cluster's client, a connection to the node that has `key` now. When the key's slot moves the
    /// lease does not: commands on it fail with `MOVED` then, and a new lease leads to the new node.
    ///
    /// # Errors
    /// As [`Client::lease`]; [`ErrorKind::Connect`](crate::ErrorKind::Connect) as well if no node of the cluster answers.
    ///
    /// # Cancel safety
    /// As [`Client::lease`].
    pub async fn lease_for(&self, key: impl AsRef<[u8]>) -> Result<Lease, Error> {
        match self.inner.cluster() {
            Some(cluster) => {
                let node = cluster.client_for(key.as_ref(), self.inner.command_timeout).await?;
                Box::pin(node.lease()).await
            }
            None => self.lease().await,
        }
    }

    /// What the leased connections of this client are doing; of a cluster's client, those of all its nodes together.
    pub fn lease_report(&self) -> LeaseReport {
        match (self.pool(), self.inner.cluster()) {
            (Some(pool), _) => pool.report(),
            (None, Some(cluster)) => cluster.lease_report(),
            (None, None) => LeaseReport::default(),
        }
    }

    /// The options that it was made with; of a cluster's client, those of a node.
    #[cfg(feature = "redis-compat")]
    pub(crate) fn options(&self) -> &crate::options::ConnectOptions {
        match &self.inner.role {
            Role::Shared(pool) => pool.options(),
            Role::Leased(conduct) => conduct.pool().options(),
            // There is a cluster, or the role is another one.
            Role::Clustered => match &self.inner.way {
                Way::Cluster(cluster) => cluster.options(),
                Way::Endpoint(_) => unreachable!("invariant: only a cluster's client has this role"),
            },
        }
    }

    /// The connections of a client of one server.
    pub(crate) fn pool(&self) -> Option<&Arc<Pool>> {
        match &self.inner.role {
            Role::Shared(pool) => Some(pool),
            Role::Leased(conduct) => Some(conduct.pool()),
            Role::Clustered => None,
        }
    }
}
