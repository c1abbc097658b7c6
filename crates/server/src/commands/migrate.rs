//! `MIGRATE`.
//!
//! Owns: its arguments, and its answer when there is nothing to move. Does **not** own moving (see [`crate::moving`]): the
//! client waits, and its worker does not.
//!
//! Inside `MULTI` it is refused: a transaction holds the slots of all its keys, and nobody could use those while a
//! connection to another server is waited for.

use crate::command::{Args, CommandError, CommandResult, Ctx, Errand, Row, keys};
use crate::moving::{Login, Order};
use std::time::Duration;

/// In the words of Redis, which tools know.
const KEY_AND_KEYS: CommandError = CommandError::Text(
    "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
);
/// What a timeout of 0 or less means, as in Redis.
const TIMEOUT_DEFAULT_MS: u64 = 1000;
/// Longer timeouts are as good as this one: a day.
const TIMEOUT_MAX_MS: u64 = 86_400_000;
/// Where the options begin.
const OPTIONS_AT: usize = 6;

/// What the options say.
#[derive(Debug, Default)]
struct Options {
    copies: bool,
    replaces: bool,
    login: Option<Login>,
    /// Where the keys behind `KEYS` begin.
    keys_at: Option<usize>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut at = OPTIONS_AT;
        while at < args.len() {
            let value = |index: usize| args.at(index).map(<[u8]>::to_vec).ok_or(CommandError::Syntax);
            if args.is(at, "COPY") {
                options.copies = true;
            } else if args.is(at, "REPLACE") {
                options.replaces = true;
            } else if args.is(at, "AUTH") {
                options.login = Some(Login { user: None, password: value(at + 1)? });
                at += 1;
            } else if args.is(at, "AUTH2") {
                options.login = Some(Login { user: Some(value(at + 1)?), password: value(at + 2)? });
                at += 2;
            } else if args.is(at, "KEYS") {
                if !args.get(3).is_empty() {
                    return Err(KEY_AND_KEYS);
                }
                options.keys_at = Some(at + 1);
                break;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

/// `MIGRATE host port key|"" destination-db timeout [COPY] [REPLACE] [AUTH password] [AUTH2 username password] [KEYS key
/// [key ...]]`
fn migrate(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args)?;
    let (timeout_ms, target_db) = (args.int(5)?, args.int(4)?);
    let timeout_ms = u64::try_from(timeout_ms).ok().filter(|&ms| ms > 0).unwrap_or(TIMEOUT_DEFAULT_MS);
    let named = match options.keys_at {
        Some(at) => args.from(at),
        None => args.from(3).first(1),
    };
    // A look at a key removes it if its time is over: otherwise, who moves slots until they are empty would not come to an end.
    let keys: Vec<Vec<u8>> = named.iter().filter(|key| ctx.ks.exists(key)).map(<[u8]>::to_vec).collect();
    if keys.is_empty() {
        ctx.out.simple("NOKEY");
        return Ok(());
    }
    let port = std::str::from_utf8(args.get(2)).ok().and_then(|port| port.parse().ok());
    let host = std::str::from_utf8(args.get(1)).ok().map(str::to_owned);
    let (Some(host), Some(port)) = (host, port) else {
        return Err(CommandError::Text("ERR Can't connect to target node: not a host and a port"));
    };
    let order = Order {
        host,
        port,
        login: options.login,
        target_db,
        db: ctx.ks.db(),
        timeout: Duration::from_millis(timeout_ms.min(TIMEOUT_MAX_MS)),
        copies: options.copies,
        replaces: options.replaces,
        keys,
    };
    ctx.wait_for(Errand::Move(Box::new(order)));
    Ok(())
}

pub(super) const ROWS: &[Row] = &[keys("migrate", migrate)];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    #[test]
    fn arguments_are_looked_at_in_the_order_of_redis() {
        let mut server = Server::new();
        server.line("SET k v");
        for (line, reply) in [
            ("MIGRATE h 1 k 0 10 NOSUCH", "-ERR syntax error"),
            ("MIGRATE h 1 k 0 10 AUTH", "-ERR syntax error"),
            ("MIGRATE h 1 k 0 10 AUTH2 u", "-ERR syntax error"),
            ("MIGRATE h 1 k x 10", "-ERR value is not an integer or out of range"),
            ("MIGRATE h 1 k 0 x", "-ERR value is not an integer or out of range"),
            (
                "MIGRATE h 1 k 0 10 KEYS a",
                "-ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
            ),
            ("MIGRATE h 1 none 0 10", "+NOKEY"),
            ("MIGRATE h 1 none 0 10 COPY REPLACE AUTH2 u p", "+NOKEY"),
            ("MIGRATE h x k 0 10", "-ERR Can't connect to target node: not a host and a port"),
            ("MIGRATE h 1 k 0 10", "(blocked)"),
        ] {
            assert_eq!(server.line(line), reply, "{line}");
        }
        let keys = ["MIGRATE", "h", "1", "", "0", "10", "COPY", "KEYS", "a", "b"];
        assert_eq!(server.run(&keys), "+NOKEY");
        let keys = ["MIGRATE", "h", "1", "", "0", "10", "KEYS", "a", "k"];
        assert_eq!(server.run(&keys), "(blocked)");
    }

    #[test]
    fn what_has_expired_is_removed_by_the_look() {
        let mut server = Server::new();
        server.line("SET k v PX 5");
        server.advance(5);
        assert_eq!(server.line("MIGRATE h 1 k 0 10"), "+NOKEY");
        assert_eq!(server.line("DBSIZE"), ":0");
    }

    #[test]
    fn a_transaction_that_would_move_keys_is_refused_as_a_whole() {
        let mut server = Server::new();
        server.line("SET k v");
        server.line("MULTI");
        assert_eq!(server.line("SET k w"), "+QUEUED");
        assert!(
            server.line("MIGRATE h 1 k 0 10").starts_with("-ERR MIGRATE cannot be part of a transaction")
        );
        assert!(server.line("EXEC").starts_with("-EXECABORT"));
        assert_eq!(server.line("GET k"), "$1 v");
    }
}
