//! Reads of what comes after now.
//!
//! Owns the turning of `XREAD ... $` into a read from a known entry on. Such a read can be issued again without missing
//! what came in between; with `$` each attempt would begin at another "now". Does not own when that is wanted.

use bytes::Bytes;
use towline_client_proto::{Error, Flags, Order, Reply};
use towline_resp::frame::Frame;
use towline_sansio::Instant;
use towline_spec::SideEffect;

use crate::cmd::Cmd;
use crate::engine::Engine;

/// The places of the `$` in a read of streams, each with the place of its key.
fn places(cmd: &Cmd) -> Vec<(usize, usize)> {
    let args: Vec<&[u8]> = cmd.args().collect();
    let Some(streams) = args.iter().position(|arg| arg.eq_ignore_ascii_case(b"streams")) else {
        return Vec::new();
    };
    let keys = streams + 1;
    let count = (args.len() - keys) / 2;
    (keys + count..args.len()).filter(|at| args[*at] == b"$").map(|at| (at, at - count)).collect()
}

/// Whether a read asks for what comes after the moment at which it arrives: a second one would miss what came between.
pub(crate) fn reads_from_now(cmd: &Cmd) -> bool {
    !places(cmd).is_empty()
}

/// The same read from the streams' last entries on, which `engine`'s server is asked for: an entry that comes meanwhile
/// is one that came after the caller's call.
///
/// # Errors
/// The last entries cannot be known: the connection is lost, the time is over, or the server does not say.
pub(super) async fn from_last(engine: &Engine, cmd: &Cmd, deadline: Instant) -> Result<Cmd, Error> {
    let mut ids = Vec::new();
    for (at, key) in places(cmd) {
        let ask = Cmd::new("XREVRANGE").arg(cmd.args().nth(key)).arg(("+", "-", "COUNT", 1));
        let order = Order {
            effect: SideEffect::ReadOnly,
            replies: 1,
            deadline,
            flags: Flags::NO_RETRY,
            bytes: ask.wire_len(),
            room: None,
        };
        let reply = engine.exchange(order, |out| ask.encode(out)).await?;
        ids.push((at, last_id(&reply)));
    }
    Ok(cmd.with_args(|at, _| ids.iter().find(|(place, _)| *place == at).map(|(_, id)| id.clone())))
}

/// The last entry's id. Without entries the next is the first of all.
fn last_id(reply: &Reply) -> Bytes {
    let entry = match reply {
        Reply::One(Frame::Array(entries)) => entries.first(),
        _ => None,
    };
    match entry {
        Some(Frame::Array(fields)) => match fields.first() {
            Some(Frame::Bulk(id) | Frame::Simple(id)) => id.clone(),
            _ => Bytes::from_static(b"0"),
        },
        _ => Bytes::from_static(b"0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::cmd;

    #[test]
    fn the_keys_of_ids_are_known() {
        let read = cmd("XREAD").arg(("BLOCK", 0, "STREAMS", "$", "b", "$", "0"));
        assert_eq!(places(&read), [(6, 4)]);
        let read = cmd("XREAD").arg(("BLOCK", 0, "streams", "a", "b", "$", "$"));
        assert_eq!(places(&read), [(6, 4), (7, 5)]);
        assert!(!reads_from_now(&cmd("XREAD").arg(("BLOCK", 0, "STREAMS", "$", "0"))), "that is a key");
        assert!(!reads_from_now(&cmd("BLPOP").arg(("$", 0))));
    }

    #[test]
    fn an_empty_stream_is_read_from_its_beginning() {
        let bulk = |text: &'static str| Frame::Bulk(Bytes::from_static(text.as_bytes()));
        let entry = Frame::Array(vec![bulk("5-1"), Frame::Array(vec![bulk("f"), bulk("v")])]);
        assert_eq!(last_id(&Reply::One(Frame::Array(vec![entry]))), "5-1");
        assert_eq!(last_id(&Reply::One(Frame::Array(Vec::new()))), "0");
    }
}
