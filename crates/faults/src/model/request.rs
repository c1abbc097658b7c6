//! What happens to one command that arrived: refused, queued, or executed, and what goes wrong with it.
//!
//! Owns that decision and the sending of the reply. Does not own what commands do (see [`super::commands`]).

use bytes::Bytes;
use towline_resp::frame::Frame;
use towline_resp::writer::Writer;
use towline_sansio::Instant;
use towline_spec::{Command, Flags, ResolveError, resolve};

use super::commands::{Call, Step};
use super::session::ReplyMode;
use super::{ConnectionId, Executed, Model, Refusal, Wrong};

impl Model {
    /// Refuses, queues or executes one command.
    pub(super) fn request(&mut self, now: Instant, connection: ConnectionId, args: &[Bytes]) {
        let Some(session) = self.sessions.get_mut(&connection) else { return };
        let is_first = session.batch_count == 0;
        session.batch_count += 1;
        let is_muted = session.reply_mode != ReplyMode::On;
        if session.reply_mode == ReplyMode::SkipNext {
            session.reply_mode = ReplyMode::On;
        }
        if let Some(reply) = self.prepared(connection, args) {
            if !is_muted {
                let bytes = reply.encode(self.proto_of(connection));
                self.emit(now, connection, bytes);
            }
            return;
        }
        let command = match self.admit(connection, args) {
            Ok(command) => command,
            Err(text) => return self.refuse(now, connection, args, &text, is_muted),
        };
        let wrong = self.next_wrong(connection, command);
        match &wrong {
            Some(Wrong::CloseBefore) => return self.close(now, connection),
            Some(Wrong::Refuse(refusal)) => {
                return self.refuse(now, connection, args, refusal.text(), is_muted);
            }
            Some(Wrong::Precede(frame)) => {
                self.push(now, connection, frame);
            }
            _ => {}
        }
        if self.queue(connection, command, args) {
            if !is_muted {
                self.emit(now, connection, b"+QUEUED\r\n".to_vec());
            }
            return;
        }
        // Only CLIENT REPLY ON speaks in spite of the mode that it ends.
        let is_muted = is_muted && command.name != "client|reply";
        let call = Call { now, connection, command, args, is_first, is_queued: false };
        self.execute(&call, wrong, is_muted);
    }

    /// The reply that was prepared for a command, see [`Model::answer`]. Within a transaction none is.
    fn prepared(&self, connection: ConnectionId, args: &[Bytes]) -> Option<Frame> {
        let session = self.sessions.get(&connection)?;
        if session.transaction.is_some() || !session.is_authenticated {
            return None;
        }
        let begins = |words: &[Bytes]| {
            args.len() >= words.len()
                && words.iter().zip(args).all(|(word, arg)| word.eq_ignore_ascii_case(arg))
        };
        self.answers.iter().rev().find(|(words, _)| begins(words)).map(|(_, reply)| reply.clone())
    }

    /// Executes one command and sends its reply, or does what is wrong with it.
    fn execute(&mut self, call: &Call<'_>, wrong: Option<Wrong>, is_muted: bool) {
        let (now, connection) = (call.now, call.connection);
        let mut out = Writer::new(self.proto_of(connection));
        self.executing = Some(connection);
        let step = self.run(call, &mut out);
        self.executing = None;
        let failed = step.is_err();
        let step = step.unwrap_or_else(|failure| {
            out.clear();
            out.error(failure);
            Step::Done
        });
        let is_swallowed = is_muted || matches!(wrong, Some(Wrong::Swallow | Wrong::CloseAfter));
        if step == Step::Blocked {
            if let Some(waiter) = self.waiters.last_mut() {
                waiter.is_swallowed = is_swallowed;
            }
        } else {
            self.record(Executed {
                now,
                connection,
                command: call.command,
                args: call.args,
                transaction: None,
                failed,
            });
            if !is_swallowed && step != Step::Silent {
                self.emit(now, connection, out.take().0);
            }
        }
        for push in std::mem::take(&mut self.deferred) {
            self.emit(now, connection, push);
        }
        if step == Step::Close || matches!(wrong, Some(Wrong::CloseAfter)) {
            self.close(now, connection);
        }
        if let Some(Wrong::BusyAfter(duration)) = wrong {
            self.busy_until = self.busy_until.max(Some(now + duration));
        }
    }

    /// The command that these arguments are, if the connection may run it now.
    fn admit(&self, connection: ConnectionId, args: &[Bytes]) -> Result<&'static Command, String> {
        let command = resolve(args).map_err(|error| unresolved(args, error))?;
        if command.name == "client|maint_notifications" && !self.config.has_maintenance {
            return Err(unresolved(args, ResolveError::UnknownSubcommand(command)));
        }
        if !command.accepts_arity(args.len()) {
            return Err(format!("ERR wrong number of arguments for '{}' command", command.name));
        }
        let Some(session) = self.sessions.get(&connection) else { return Err(String::new()) };
        if !session.is_authenticated && !command.flags.contains(Flags::NO_AUTH) {
            return Err("NOAUTH Authentication required.".to_owned());
        }
        let is_about_subscriptions = command.flags.contains(Flags::PUBSUB)
            && !command.name.ends_with("publish")
            || matches!(command.name, "ping" | "quit" | "reset");
        if session.is_confined() && !is_about_subscriptions {
            return Err(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
                 context",
                command.name
            ));
        }
        if self.ledger.entries().len() >= self.config.limits.ledger_entries_max {
            return Err("OOM the model server's ledger is full".to_owned());
        }
        Ok(command)
    }

    /// Answers with an error instead of executing; a transaction that this command was part of cannot commit, and one that it
    /// was to commit is discarded.
    fn refuse(&mut self, now: Instant, connection: ConnectionId, args: &[Bytes], text: &str, is_muted: bool) {
        let Some(session) = self.sessions.get_mut(&connection) else { return };
        let mut out = Writer::new(session.proto);
        if args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"exec")) {
            session.transaction = None;
            session.unwatch();
            let why = text.strip_prefix("ERR ").unwrap_or(text);
            out.error(format_args!("EXECABORT Transaction discarded because of: {why}"));
        } else {
            if let Some(transaction) = &mut session.transaction {
                transaction.is_aborted = true;
            }
            out.error(text);
        }
        if !is_muted {
            self.emit(now, connection, out.take().0);
        }
    }

    /// Queues a command of a transaction under way; false if it is to be executed now.
    fn queue(&mut self, connection: ConnectionId, command: &'static Command, args: &[Bytes]) -> bool {
        let transaction = self.sessions.get_mut(&connection).and_then(|session| session.transaction.as_mut());
        let Some(transaction) = transaction else { return false };
        if matches!(command.name, "exec" | "discard" | "multi" | "watch" | "quit" | "reset") {
            return false;
        }
        if transaction.queue.len() < self.config.limits.queued_max {
            transaction.queue.push((command, args.to_vec()));
        } else {
            transaction.is_aborted = true;
        }
        true
    }

    /// What goes wrong with this command, if anything.
    fn next_wrong(&mut self, connection: ConnectionId, command: &Command) -> Option<Wrong> {
        let mut found = None;
        for trouble in &mut self.troubles {
            if trouble.only.is_some_and(|only| only != connection) || !can_happen(&trouble.wrong, command) {
                continue;
            }
            if trouble.after > 0 {
                trouble.after -= 1;
            } else if found.is_none() {
                trouble.left -= 1;
                found = Some(trouble.wrong.clone());
            }
        }
        self.troubles.retain(|trouble| trouble.left > 0);
        found
    }
}

/// How much of an unknown command's name and arguments its error text shows, in bytes, as in Redis.
const UNKNOWN_BYTES_SHOWN: usize = 128;

/// The error text for arguments that are no command.
#[cold]
fn unresolved(args: &[Bytes], error: ResolveError) -> String {
    let text = |index: usize, most: usize| {
        let arg: &[u8] = args.get(index).map_or(&[], |arg| arg);
        String::from_utf8_lossy(&arg[..arg.len().min(most)]).into_owned()
    };
    let name = text(0, UNKNOWN_BYTES_SHOWN);
    if let ResolveError::UnknownSubcommand(_) = error {
        let sub = text(1, UNKNOWN_BYTES_SHOWN);
        return format!("ERR unknown subcommand '{sub}'. Try {} HELP.", name.to_ascii_uppercase());
    }
    let mut shown = String::new();
    for index in 1..args.len() {
        let most = UNKNOWN_BYTES_SHOWN.saturating_sub(shown.len());
        if most == 0 {
            break;
        }
        shown += &format!("'{}' ", text(index, most));
    }
    format!("ERR unknown command '{name}', with args beginning with: {shown}")
}

/// Whether this can go wrong with this command at all.
fn can_happen(wrong: &Wrong, command: &Command) -> bool {
    let Wrong::Refuse(refusal) = wrong else { return true };
    match refusal {
        Refusal::Loading => !command.flags.contains(Flags::LOADING),
        Refusal::Busy => !command.flags.contains(Flags::ALLOW_BUSY),
        Refusal::MasterDown => !command.flags.contains(Flags::STALE),
        Refusal::ReadOnly => command.flags.contains(Flags::WRITE),
        Refusal::OutOfMemory => command.flags.contains(Flags::DENYOOM),
        Refusal::ClusterDown | Refusal::TryAgain => command.has_keys(),
        Refusal::Text(_) => true,
    }
}
