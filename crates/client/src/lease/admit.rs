//! What may be sent where.
//!
//! Owns the rule on every command that reads or changes its connection's state. Does not own the command table; a
//! command that is not in it passes, for the server to answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use towline_client_proto::Error;
use towline_spec::{Command, CommandId, SideEffect, id};

use super::Pool;
use crate::client::{Client, Role};
use crate::cmd::{Cmd, Profile};

const EXEC: CommandId = id("exec");

/// How a lease has been used.
#[derive(Debug)]
pub(crate) struct Conduct {
    pool: Arc<Pool>,
    taint: AtomicU8,
}

/// What must be done to a leased connection before another caller gets it, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Taint {
    /// Nothing.
    Clean,
    /// End the transaction, forget the watched keys.
    Watching,
    /// It cannot be undone with certainty.
    Changed,
}

impl Conduct {
    pub(crate) const fn new(pool: Arc<Pool>) -> Self {
        Self { pool, taint: AtomicU8::new(Taint::Clean as u8) }
    }

    pub(super) const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    pub(super) fn taint(&self) -> Taint {
        match self.taint.load(Ordering::Acquire) {
            0 => Taint::Clean,
            1 => Taint::Watching,
            _ => Taint::Changed,
        }
    }

    pub(super) fn note(&self, taint: Taint) {
        self.taint.fetch_max(taint as u8, Ordering::AcqRel);
    }
}

/// The rule on one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// It changes nothing: anywhere.
    Anywhere,
    /// On a lease only, which it leaves like this. The text says what to do instead.
    Leased(Taint, &'static str),
    /// Nowhere: it changes how replies come, which the client has to know.
    Nowhere(&'static str),
}

/// The rule on a command that speaks of its own connection.
fn rule(command: &Command) -> Rule {
    use Rule::{Anywhere, Leased, Nowhere};
    match command.name {
        "acl|whoami"
        | "client|getname"
        | "client|getredir"
        | "client|id"
        | "client|info"
        | "client|trackinginfo" => Anywhere,
        "multi" | "exec" | "discard" => {
            Leased(Taint::Watching, "make it a transaction (`Pipeline::atomic`), or take a lease")
        }
        "watch" | "unwatch" => Leased(Taint::Watching, "take a lease for it and its transaction"),
        "wait" | "waitaof" => Leased(
            Taint::Clean,
            "it speaks of the writes of its own connection: take a lease for the writes and for it",
        ),
        "select" => Leased(Taint::Changed, "set `ConnectOptions::database`, or take a lease"),
        "auth" | "hello" => {
            Leased(Taint::Changed, "set the credentials and the protocol in `ConnectOptions`")
        }
        "client|setname" | "client|setinfo" => Leased(Taint::Changed, "set `ConnectOptions::client_name`"),
        "readonly" | "readwrite" => Leased(Taint::Changed, "set `ConnectOptions::read_only`"),
        "quit" => Leased(Taint::Changed, "drop the client to close its connection"),
        "subscribe" => Nowhere("use `Client::subscribe`"),
        "psubscribe" => Nowhere("use `Client::psubscribe`"),
        "ssubscribe" => Nowhere("use `Client::ssubscribe`"),
        "unsubscribe" | "punsubscribe" | "sunsubscribe" => {
            Nowhere("use `Subscription::remove`, or drop the subscription")
        }
        "monitor" | "sync" | "psync" | "replconf" | "script|debug" => {
            Nowhere("it turns the connection into a stream, which this client does not read")
        }
        "client|reply" => Nowhere("send single commands with `Cmd::fire_and_forget`"),
        // It would take back the protocol that the client has agreed on, and the login.
        "reset" => Nowhere("drop the lease: the next one begins anew"),
        // Rows that are added later are kept from the shared connection until somebody decides otherwise.
        _ => Leased(Taint::Changed, "take a lease"),
    }
}

impl Client {
    /// Says whether a command may be sent by this handle. On a lease it is noted what the command leaves behind.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse), with what to do instead.
    #[inline]
    pub(crate) fn admit(&self, cmd: &Cmd, profile: &Profile) -> Result<(), Error> {
        let is_exec = || profile.command.is_some_and(|command| command.id == EXEC);
        if profile.effect == SideEffect::Connection
            || profile.effect == SideEffect::NonIdempotent && is_exec()
        {
            return self.judge(cmd, profile);
        }
        Ok(())
    }

    /// As [`admit`](Self::admit), and nothing that would hold up the rest of a pipeline.
    pub(crate) fn admit_to_pipeline(&self, cmd: &Cmd) -> Result<(), Error> {
        let profile = cmd.profile();
        if profile.block_time.is_some() {
            let name = cmd.name().escape_ascii();
            return Err(Error::misuse(format!(
                "{name} blocks, so it would hold up the rest of its pipeline: send it by itself"
            )));
        }
        self.admit(cmd, &profile)
    }

    #[cold]
    fn judge(&self, cmd: &Cmd, profile: &Profile) -> Result<(), Error> {
        let Some(command) = profile.command else { return Ok(()) };
        let refuse = |place: &str, advice: &str| {
            let name = command.name.replace('|', " ").to_ascii_uppercase();
            Err(Error::misuse(format!("{name} cannot be sent {place}; {advice}")))
        };
        match (rule(command), &self.inner.role) {
            (Rule::Anywhere, _) => Ok(()),
            (Rule::Leased(_, advice), Role::Shared(_) | Role::Clustered) => {
                refuse("on the connection that all handles share", advice)
            }
            (Rule::Leased(..), Role::Leased(_)) if cmd.options().is_fire_and_forget => {
                refuse("without waiting for its reply", "whether it was done decides what may follow")
            }
            (Rule::Leased(taint, _), Role::Leased(conduct)) => {
                conduct.note(taint);
                Ok(())
            }
            (Rule::Nowhere(advice), _) => refuse("by this client", advice),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_spec::rows;

    /// Every row that speaks of its connection: `a` anywhere, `w` on a lease and undone, `c` on a lease which is then
    /// closed, `l` on a lease without a trace, `n` nowhere.
    const TABLE: &[(char, &[&str])] = &[
        (
            'a',
            &[
                "acl|whoami",
                "client|getname",
                "client|getredir",
                "client|id",
                "client|info",
                "client|trackinginfo",
            ],
        ),
        ('w', &["discard", "multi", "unwatch", "watch"]),
        ('l', &["wait", "waitaof"]),
        (
            'c',
            &[
                "asking",
                "auth",
                "client|caching",
                "client|capa",
                "client|maint_notifications",
                "client|no-evict",
                "client|no-touch",
                "client|setinfo",
                "client|setname",
                "client|tracking",
                "hello",
                "quit",
                "readonly",
                "readwrite",
                "select",
            ],
        ),
        (
            'n',
            &[
                "client|reply",
                "monitor",
                "psubscribe",
                "psync",
                "punsubscribe",
                "replconf",
                "reset",
                "script|debug",
                "ssubscribe",
                "subscribe",
                "sunsubscribe",
                "sync",
                "unsubscribe",
            ],
        ),
    ];

    fn letter(rule: Rule) -> char {
        match rule {
            Rule::Anywhere => 'a',
            Rule::Leased(Taint::Clean, _) => 'l',
            Rule::Leased(Taint::Watching, _) => 'w',
            Rule::Leased(Taint::Changed, _) => 'c',
            Rule::Nowhere(_) => 'n',
        }
    }

    /// Pain 17: state of a shared connection, changed under everybody's feet.
    #[test]
    fn every_row_of_class_connection_has_its_rule() {
        let mut expected: Vec<(&str, char)> =
            TABLE.iter().flat_map(|(rule, names)| names.iter().map(|name| (*name, *rule))).collect();
        expected.sort_unstable();
        let mut found: Vec<(&str, char)> = rows()
            .iter()
            .filter(|row| row.effect == SideEffect::Connection)
            .map(|row| (row.name, letter(rule(row))))
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected);
        let exec = towline_spec::lookup(b"exec").unwrap();
        assert_eq!(letter(rule(exec)), 'w');
    }

    #[tokio::test]
    async fn a_refusal_says_what_to_do_instead() {
        let client = Client::lazy("redis://127.0.0.1:1".parse().unwrap()).unwrap();
        let refused = |cmd: &Cmd| client.admit(cmd, &cmd.profile()).unwrap_err().to_string();
        let select = refused(&Cmd::new("SELECT").arg(1));
        assert!(
            select.contains("SELECT cannot be sent on the connection that all handles share"),
            "{select}"
        );
        assert!(select.contains("ConnectOptions::database"), "{select}");
        let reply = refused(&Cmd::new("CLIENT REPLY").arg("OFF"));
        assert!(reply.contains("CLIENT REPLY cannot be sent by this client"), "{reply}");
        for harmless in ["PING", "ECHO", "CLIENT ID", "CLIENT GETNAME", "CLIENT UNKNOWN", "NO.SUCH"] {
            let cmd = Cmd::new(harmless);
            client.admit(&cmd, &cmd.profile()).unwrap();
        }
        let blocks = client.admit_to_pipeline(&Cmd::new("BLPOP").arg(("k", 0))).unwrap_err();
        assert!(blocks.to_string().contains("by itself"), "{blocks}");
    }
}
