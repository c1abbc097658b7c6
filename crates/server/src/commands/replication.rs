//! `SYNC`, `PSYNC`, `REPLCONF`, `ROLE`: what a replica, or a tool that acts as one, asks for.
//!
//! Owns: their arguments and replies. Does **not** own what is sent then (see [`crate::replicas`]).

use super::acl::random_hex;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::replicas::{FEEDS_MAX, Phase};
use std::sync::Arc;

/// Letters of a host name; the longest that DNS knows.
const HOST_BYTES_MAX: usize = 253;

/// Begins to feed the client. The feed starts when this command's reply is written.
fn begin(ctx: &mut Ctx<'_>) -> CommandResult {
    let (server, now_ms) = (ctx.server, ctx.ks.now_ms());
    let session = ctx.session();
    let wishes = session.wishes.as_deref().cloned().unwrap_or_default();
    let feed = server.replicas.add(&session.client, wishes, now_ms).ok_or_else(|| {
        CommandError::message(format!("ERR there are {FEEDS_MAX} replicas already, which is the limit"))
    })?;
    session.feed = Some(feed);
    session.is_feed_due = true;
    Ok(())
}

/// `SYNC`: the data set, and then everything that happens to it.
fn sync(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    // As in Redis: a second one on the same connection is ignored.
    if ctx.session().feed.is_some() { Ok(()) } else { begin(ctx) }
}

/// `PSYNC replicationid offset`: as `SYNC`. There is no backlog to go on from, so it always begins anew, and with a history of
/// its own: nobody must take the offsets of two feeds for one.
fn psync(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    args.int(2)?;
    if ctx.session().feed.is_some() {
        return Ok(());
    }
    let history = random_hex(40)?;
    begin(ctx)?;
    ctx.out.simple(&format!("FULLRESYNC {history} 0"));
    Ok(())
}

/// `REPLCONF option value …`: what the client is and can.
fn replconf(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let now_ms = ctx.ks.now_ms();
    let mut wishes = ctx.session().wishes.as_deref().cloned().unwrap_or_default();
    for at in (1..args.len()).step_by(2) {
        let value = args.get(at + 1);
        if args.is(at, "ack") {
            let bytes = args.int(at + 1).ok().and_then(|bytes| u64::try_from(bytes).ok());
            if let (Some(feed), Some(bytes)) = (&ctx.session().feed, bytes) {
                feed.acknowledge(bytes, now_ms);
            }
            // Not answered: it would be taken for a command of the stream.
            return Ok(());
        } else if args.is(at, "capa") {
            wishes.finds_end |= args.is(at + 1, "eof");
        } else if args.is(at, "listening-port") {
            let port = u16::try_from(args.int(at + 1)?);
            wishes.port =
                port.map_err(|_| CommandError::Text("ERR value is not an integer or out of range"))?;
        } else if args.is(at, "ip-address") {
            if value.len() > HOST_BYTES_MAX {
                return Err(CommandError::message(format!(
                    "ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
                    value.len()
                )));
            }
            wishes.ip = String::from_utf8_lossy(value).into_owned();
        } else if args.is(at, "rdb-only") {
            wishes.snapshot_only = args.int(at + 1)? == 1;
        } else if args.is(at, "rdb-filter-only") {
            wishes.without_keys = filters_keys(value)?;
        } else if !(args.is(at, "version") || args.is(at, "getack")) {
            return Err(CommandError::quoting("ERR Unrecognized REPLCONF option: ", args.get(at), ""));
        }
    }
    ctx.session().wishes = Some(Box::new(wishes));
    ctx.out.ok();
    Ok(())
}

/// Whether a snapshot of these parts has no keys; there are no functions that it could have.
fn filters_keys(value: &[u8]) -> Result<bool, CommandError> {
    let mut words = value.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    match words.find(|word| !word.eq_ignore_ascii_case(b"functions")) {
        Some(word) => Err(CommandError::quoting("ERR Unsupported rdb-filter-only option: ", word, "")),
        None => Ok(true),
    }
}

/// `ROLE`: a primary, and its replicas.
fn role(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let feeds = ctx.server.replicas.all();
    let fed: Vec<_> = feeds.iter().filter(|feed| feed.phase() == Phase::Tail).map(Arc::clone).collect();
    ctx.out.array(3);
    ctx.out.bulk(b"master");
    ctx.out.int(0);
    ctx.out.array(fed.len());
    for feed in fed {
        let (ip, port) = feed.address();
        ctx.out.array(3);
        ctx.out.bulk(ip.as_bytes());
        ctx.out.bulk(port.to_string().as_bytes());
        ctx.out.bulk(feed.offsets().1.to_string().as_bytes());
    }
    Ok(())
}

pub(super) const ROWS: &[Row] =
    &[no_keys("psync", psync), no_keys("replconf", replconf), no_keys("role", role), no_keys("sync", sync)];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    #[test]
    fn replconf_says_what_a_client_can() {
        let mut server = Server::new();
        for line in ["REPLCONF listening-port 7000", "REPLCONF capa eof capa psync2", "REPLCONF rdb-only 1"] {
            assert_eq!(server.line(line), "+OK", "{line}");
        }
        assert_eq!(server.line("REPLCONF ip-address replica.example rdb-filter-only functions"), "+OK");
        let wishes = server.session.wishes.as_deref().expect("it said something");
        assert!(wishes.finds_end && wishes.snapshot_only && wishes.without_keys);
        assert_eq!((wishes.port, wishes.ip.as_str()), (7000, "replica.example"));
        assert_eq!(server.line("REPLCONF ack 5"), "", "an acknowledgement is not answered");
        assert_eq!(server.line("REPLCONF capa"), "-ERR syntax error");
        assert_eq!(server.line("REPLCONF colour blue"), "-ERR Unrecognized REPLCONF option: colour");
        assert_eq!(
            server.line("REPLCONF listening-port 70000"),
            "-ERR value is not an integer or out of range"
        );
        assert_eq!(
            server.line("REPLCONF rdb-filter-only keys"),
            "-ERR Unsupported rdb-filter-only option: keys"
        );
        assert!(server.line(&format!("REPLCONF ip-address {}", "x".repeat(254))).contains("too long"));
    }

    #[test]
    fn each_feed_has_a_history_of_its_own_and_there_is_a_limit() {
        let mut server = Server::new();
        let first = server.line("PSYNC ? -1");
        assert!(first.starts_with("+FULLRESYNC ") && first.ends_with(" 0"), "{first}");
        assert_eq!(server.line("SYNC"), "", "it is fed already");
        assert!(server.line("PSYNC x y").starts_with("-ERR value"));
        let shared = std::sync::Arc::clone(&server.local.shared);
        for _ in 1..super::FEEDS_MAX {
            let client = shared.clients.add(crate::client::Addresses::default(), 0);
            assert!(shared.replicas.add(&client, Default::default(), 0).is_some());
        }
        crate::replicas::stop(&shared, &mut server.session);
        let second = server.line("PSYNC ? -1");
        assert_ne!(first, second);
        let client = shared.clients.add(crate::client::Addresses::default(), 0);
        assert!(shared.replicas.add(&client, Default::default(), 0).is_none());
    }
}
