//! Sending pipelines and transactions.
//!
//! Owns what becomes of their replies, above all the outcomes of a transaction. Does not own their building
//! ([`super`]) nor the fate of their commands when connections break (the bridge).

use towline_client_proto::routing::ReadFrom;
use towline_client_proto::{Encoder, Error, ErrorKind, Flags, Order, Reply, Sent, ServerError, Ticket};
use towline_cluster::Slot;
use towline_resp::frame::Frame;
use towline_spec::SideEffect;

use super::{Entry, Pipeline};
use crate::client::{Client, Way, reply_error};
use crate::clock;
use crate::cluster::Cluster;
use crate::value::FromReply;

/// How a transaction ended, as far as its server said.
#[derive(Debug, Clone, PartialEq)]
pub enum Transacted<T> {
    /// All its commands ran, without others between them. One of them may still have failed at run time, which the
    /// replies say: Redis rolls nothing back.
    Committed(T),
    /// None of its commands ran: the server refused one of them when it was queued, or would not begin.
    Refused(ServerError),
    /// None of its commands ran: a key that this lease watches (`WATCH`) has changed. Begin again with the `WATCH`.
    /// Does not happen on a client, where nothing is watched.
    Conflict,
    /// It was sent and no complete answer came: it ran as a whole, or not at all. It is never repeated.
    Unknown(Error),
}

impl Pipeline {
    /// Sends the commands together and converts the replies that are wanted: to a tuple, an array or a `Vec`.
    ///
    /// # Errors
    /// The first error of any command, ignored ones included; a place of type `Result<T, ServerError>` takes the
    /// server's error as a value. Of a transaction that was refused: the server's reason. [`Error::sent`] tells of
    /// the command that failed first; use [`Pipeline::results`] to learn it of each.
    ///
    /// # Cancel safety
    /// As [`crate::Cmd::query`], for each command; a transaction is withdrawn as a whole or not at all.
    pub async fn query<T: FromReply>(self, client: &Client) -> Result<T, Error> {
        if self.is_atomic() {
            return match self.transact(client).await? {
                Transacted::Committed(value) => Ok(value),
                Transacted::Refused(answer) => Err(Error::server(answer)),
                Transacted::Conflict => {
                    Err(Error::server(ServerError::new("EXECABORT a watched key has changed; nothing ran")))
                }
                Transacted::Unknown(error) => Err(error),
            };
        }
        let is_ignored: Vec<bool> = self.entries().iter().map(|entry| entry.is_ignored).collect();
        let mut frames = Vec::with_capacity(is_ignored.len());
        for (result, is_ignored) in self.results(client).await?.into_iter().zip(is_ignored) {
            match result {
                Ok(frame) if !is_ignored => frames.push(frame),
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::Server(answer) if !is_ignored => frames.push(Frame::Error(answer.to_bytes())),
                    _ => return Err(error),
                },
            }
        }
        T::from_reply(Frame::Array(frames)).map_err(reply_error)
    }

    /// Sends the commands together; one result for each, in order. For a transaction use [`Pipeline::transact`].
    ///
    /// # Errors
    /// Nothing was sent: the pipeline was built wrongly, or the backlog did not take it. What happens to a command
    /// after that is in its own result.
    ///
    /// # Cancel safety
    /// As [`crate::Cmd::query`], for each command.
    pub async fn results(self, client: &Client) -> Result<Vec<Result<Frame, Error>>, Error> {
        if self.is_atomic() {
            return Err(Error::misuse("a transaction has one outcome: use `transact` or `query`"));
        }
        let entries = self.into_entries().map_err(|misuse| Error::misuse(misuse.to_string()))?;
        entries.iter().try_for_each(|entry| client.admit_to_pipeline(&entry.cmd))?;
        let Some(first) = entries.first() else { return Ok(Vec::new()) };
        let engine = match &client.inner.way {
            Way::Endpoint(engine) => client.inner.further.engine_for(engine, || first_slot(&entries)),
            Way::Cluster(cluster) => return Box::pin(clustered(&entries, client, cluster)).await,
        };
        let whole_bytes = entries.iter().map(|entry| entry.cmd.wire_len()).sum();
        let mut whole = Order { bytes: whole_bytes, ..client.order(&first.cmd, SideEffect::Admin) };
        let mut tickets: Vec<Option<Ticket>> = Vec::with_capacity(entries.len());
        loop {
            // Before the clock is read: a deadline of zero has passed by then.
            let orders: Vec<Order> =
                entries.iter().map(|Entry { cmd, .. }| client.order(cmd, cmd.effect())).collect();
            let orders = orders.into_iter().zip(entries.iter().map(|entry| &entry.cmd));
            match engine.submit_all(clock::now(), &whole, orders, &mut tickets) {
                Ok(()) => break,
                Err(error)
                    if matches!(error.kind(), ErrorKind::BacklogFull { .. }) && whole.room.is_none() =>
                {
                    whole.room = engine.room(&whole).await?;
                }
                Err(error) => return Err(error),
            }
        }
        // All are claimed before the first wait: dropping this future gives every one of them up.
        let outcomes: Vec<_> =
            tickets.into_iter().map(|ticket| ticket.map(|ticket| engine.outcome(ticket))).collect();
        let mut results = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            results.push(match outcome {
                Some(outcome) => outcome.await.map(|reply| match reply {
                    Reply::One(frame) => frame,
                    Reply::Many(frames) => Frame::Array(frames),
                }),
                None => Ok(Frame::Null),
            });
        }
        Ok(results)
    }

    /// Sends the commands as one transaction, `MULTI` to `EXEC`, and says how it ended. The commands form one unit
    /// for the client too: without the last byte of `EXEC` nothing ran, and it is sent again as a whole; once that
    /// byte has left, it never is.
    ///
    /// # Errors
    /// The transaction was not executed, for certain ([`Sent::No`]); or the reply does not fit the type
    /// ([`ErrorKind::Shape`]), after it was.
    ///
    /// # Cancel safety
    /// It is withdrawn as a whole if the connection has not taken it; otherwise it runs, and the replies are dropped.
    pub async fn transact<T: FromReply>(self, client: &Client) -> Result<Transacted<T>, Error> {
        let (deadline, flags) = client.terms(self.options());
        let entries = self.into_entries().map_err(|misuse| Error::misuse(misuse.to_string()))?;
        if entries.is_empty() {
            return T::from_reply(Frame::Array(Vec::new())).map(Transacted::Committed).map_err(reply_error);
        }
        entries.iter().try_for_each(|entry| client.admit(&entry.cmd, &entry.cmd.profile()))?;
        let bytes =
            MULTI.len() + EXEC.len() + entries.iter().map(|entry| entry.cmd.wire_len()).sum::<usize>();
        let replies =
            u32::try_from(entries.len() + 2).map_err(|_| Error::misuse("a transaction of 2^32 commands"))?;
        let order = Order {
            effect: SideEffect::NonIdempotent,
            replies,
            deadline,
            flags: flags | Flags::TRANSACTION,
            bytes,
            room: None,
        };
        let encode = |out: &mut Encoder<'_>| {
            out.raw(MULTI);
            entries.iter().for_each(|entry| entry.cmd.encode(out));
            out.raw(EXEC);
        };
        if order.flags.contains(Flags::FIRE_AND_FORGET) {
            return Err(Error::misuse(
                "a transaction cannot be fire-and-forget: nobody would know how it ended",
            ));
        }
        let outcome = match &client.inner.way {
            Way::Endpoint(engine) => {
                let engine = client.inner.further.engine_for(engine, || first_slot(&entries));
                engine.exchange(order, encode).await
            }
            Way::Cluster(cluster) => {
                let slot = cluster.slot_of_all(entries.iter().map(|entry| &entry.cmd))?;
                cluster.exchange(slot, order, encode).await
            }
        };
        let frames = match outcome {
            Ok(Reply::Many(frames)) => frames,
            Ok(Reply::One(frame)) => vec![frame],
            Err(error) if error.sent() == Sent::No => return Err(error),
            Err(error) => return Ok(Transacted::Unknown(error)),
        };
        match judge(frames) {
            Verdict::Committed(frames) => {
                let wanted = frames.into_iter().zip(&entries).filter(|(_, entry)| !entry.is_ignored);
                let mut kept = Vec::with_capacity(entries.len());
                for (frame, _) in wanted {
                    kept.push(frame);
                }
                T::from_reply(Frame::Array(kept)).map(Transacted::Committed).map_err(reply_error)
            }
            Verdict::Refused(answer) => Ok(Transacted::Refused(answer)),
            Verdict::Conflict => Ok(Transacted::Conflict),
            Verdict::Torn(answer) => {
                Ok(Transacted::Unknown(Error::new(ErrorKind::Server(answer), Sent::Maybe)))
            }
        }
    }
}

/// The slot of the first key, whose lane all of them take.
fn first_slot(entries: &[Entry]) -> Option<Slot> {
    entries.iter().find_map(|entry| entry.cmd.slot())
}

/// The same in a cluster: the commands of one node leave together, those of different nodes beside each other.
async fn clustered(
    entries: &[Entry],
    client: &Client,
    cluster: &Cluster,
) -> Result<Vec<Result<Frame, Error>>, Error> {
    let mut sends = Vec::with_capacity(entries.len());
    for Entry { cmd, .. } in entries {
        sends.push((cluster.way(cmd)?, cmd));
    }
    let orders = entries.iter().map(|Entry { cmd, .. }| client.order(cmd, cmd.effect())).collect();
    Ok(cluster.submit_all(sends, read_policy(entries, client), orders).await)
}

/// Which nodes may answer the commands of a pipeline: others than primaries only if every command reads, so that no read
/// overtakes a write of the same pipeline.
fn read_policy(entries: &[Entry], client: &Client) -> ReadFrom {
    let mut policies = entries.iter().map(|entry| client.read_policy(&entry.cmd));
    let first = policies.next().unwrap_or_default();
    if first != ReadFrom::Primary && policies.all(|policy| policy == first) {
        first
    } else {
        ReadFrom::Primary
    }
}

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// What the replies to `MULTI`, the commands and `EXEC` mean.
#[derive(Debug, PartialEq)]
enum Verdict {
    Committed(Vec<Frame>),
    Refused(ServerError),
    Conflict,
    /// `MULTI` was refused and what followed ran by itself, all or some of it.
    Torn(ServerError),
}

fn judge(mut frames: Vec<Frame>) -> Verdict {
    let last = frames.pop().unwrap_or(Frame::Null);
    let begun = frames.first().and_then(ServerError::from_frame);
    match last {
        Frame::Array(replies) => match begun {
            None => Verdict::Committed(replies),
            // A transaction was open already: its commands ran with ours.
            Some(refusal) => Verdict::Torn(refusal),
        },
        frame if frame.is_null() => Verdict::Conflict,
        frame => {
            let answer = ServerError::from_frame(&frame)
                .unwrap_or_else(|| ServerError::new("ERR not a reply to EXEC"));
            match begun {
                // The refusal of a queued command says more than EXECABORT, which only counts it.
                None => Verdict::Refused(frames.iter().find_map(ServerError::from_frame).unwrap_or(answer)),
                Some(refusal) => {
                    let is_all_refused = frames.iter().all(|frame| ServerError::from_frame(frame).is_some());
                    if is_all_refused { Verdict::Refused(refusal) } else { Verdict::Torn(refusal) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(texts: &[&str]) -> Vec<Frame> {
        let frame = |text: &&str| match text.strip_prefix('-') {
            Some(error) => Frame::Error(error.to_owned().into()),
            None => Frame::Simple((*text).to_owned().into()),
        };
        texts.iter().map(frame).collect()
    }

    #[test]
    fn the_replies_of_a_transaction_mean_one_of_four_things() {
        let mut committed = frames(&["OK", "QUEUED"]);
        committed.push(Frame::Array(frames(&["-WRONGTYPE x"])));
        assert_eq!(judge(committed), Verdict::Committed(frames(&["-WRONGTYPE x"])));

        let refused = frames(&["OK", "-ERR unknown command 'X'", "-EXECABORT Transaction discarded"]);
        assert_eq!(judge(refused), Verdict::Refused(ServerError::new("ERR unknown command 'X'")));

        let loading = frames(&["-LOADING x", "-LOADING x", "-LOADING x"]);
        assert_eq!(judge(loading), Verdict::Refused(ServerError::new("LOADING x")));

        let mut nested = frames(&["-ERR MULTI calls can not be nested", "QUEUED"]);
        nested.push(Frame::Array(frames(&["theirs", "OK"])));
        assert_eq!(judge(nested), Verdict::Torn(ServerError::new("ERR MULTI calls can not be nested")));

        let mut watched = frames(&["OK", "QUEUED"]);
        watched.push(Frame::NullArray);
        assert_eq!(judge(watched), Verdict::Conflict);

        // Loading ended after MULTI: the command ran by itself.
        let torn = frames(&["-LOADING x", "OK", "-ERR EXEC without MULTI"]);
        assert_eq!(judge(torn), Verdict::Torn(ServerError::new("LOADING x")));
    }
}
