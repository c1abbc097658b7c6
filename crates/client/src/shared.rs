//! What may not be said on a connection that many share.
//!
//! Owns the list of commands whose answer is no single reply, after which every later reply of the connection would go
//! to the wrong caller. Does not own commands that only change the connection for everybody, such as `SELECT`: those
//! answer in their turn.

use towline_client_proto::Error;
use towline_spec::SideEffect;

use crate::cmd::Cmd;

/// The commands, and what to use instead.
const REFUSED: [(&str, &str); 11] = [
    ("SUBSCRIBE", "use `Client::subscribe`"),
    ("PSUBSCRIBE", "use `Client::psubscribe`"),
    ("SSUBSCRIBE", "use `Client::ssubscribe`"),
    ("UNSUBSCRIBE", "use `Subscription::remove`, or drop the subscription"),
    ("PUNSUBSCRIBE", "use `Subscription::remove`, or drop the subscription"),
    ("SUNSUBSCRIBE", "use `Subscription::remove`, or drop the subscription"),
    ("MONITOR", "use a connection of its own"),
    ("SYNC", "use a connection of its own"),
    ("PSYNC", "use a connection of its own"),
    ("QUIT", "drop the client"),
    ("RESET", "the client sets its connection up by itself"),
];

/// Refuses what would leave replies without owners. `effect` is the command's.
///
/// # Errors
/// [`ErrorKind::Misuse`](towline_client_proto::ErrorKind::Misuse), which names what to use instead; nothing was sent.
#[inline]
pub(crate) fn check(cmd: &Cmd, effect: SideEffect) -> Result<(), Error> {
    if matches!(effect, SideEffect::ReadOnly | SideEffect::Idempotent | SideEffect::Convergent) {
        return Ok(());
    }
    let name = cmd.name();
    if let Some((_, instead)) =
        REFUSED.iter().find(|(refused, _)| name.eq_ignore_ascii_case(refused.as_bytes()))
    {
        return Err(misuse(name, instead));
    }
    let is_named = |word: &[u8]| cmd.args().nth(1).is_some_and(|arg| arg.eq_ignore_ascii_case(word));
    if name.eq_ignore_ascii_case(b"CLIENT") && is_named(b"REPLY") {
        return Err(misuse(b"CLIENT REPLY", "use `Cmd::fire_and_forget`"));
    }
    Ok(())
}

#[cold]
fn misuse(name: &[u8], instead: &str) -> Error {
    Error::misuse(format!(
        "{} would take the replies of others on a shared connection: {instead}",
        name.escape_ascii()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::cmd;

    #[test]
    fn what_has_no_single_reply_is_refused_and_all_else_is_not() {
        for (name, instead) in REFUSED {
            for cmd in [cmd(name).arg("x"), cmd(&name.to_ascii_lowercase()).arg("x")] {
                let error = check(&cmd, cmd.effect()).unwrap_err();
                assert!(error.to_string().contains(instead), "{name}: {error}");
            }
        }
        let quiet = cmd("CLIENT").arg("reply").arg("OFF");
        assert!(check(&quiet, quiet.effect()).unwrap_err().to_string().contains("fire_and_forget"));
        for fine in [
            cmd("CLIENT ID"),
            cmd("SELECT").arg(1),
            cmd("INCR").arg("k"),
            cmd("PUBLISH"),
            cmd("PUBSUB CHANNELS"),
        ] {
            assert_eq!(check(&fine, fine.effect()), Ok(()), "{fine:?}");
        }
    }
}
