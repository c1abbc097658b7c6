//! What a connection has been told, learnt from the commands that went by and their replies.
//!
//! Owns database, protocol, transaction, credentials and whether replies come at all; a new connection is brought
//! into this state, and the prompt shows it. Does no I/O.

use towline_resp::frame::Frame;

use super::target::Credentials;

/// Whether the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replies {
    On,
    /// The next command has none.
    SkipNext,
    Off,
}

/// A transaction under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Transaction {
    /// The database that a queued `SELECT` leads to.
    db: Option<u32>,
}

/// The state of a connection, as far as a client can know it.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    /// The database.
    pub(crate) db: u32,
    /// Whether RESP3 is spoken.
    pub(crate) is_resp3: bool,
    /// Who asks.
    pub(crate) credentials: Option<Credentials>,
    transaction: Option<Transaction>,
    replies: Replies,
}

impl ConnectionState {
    /// The state to bring the first connection into.
    pub(crate) const fn new(db: u32, is_resp3: bool, credentials: Option<Credentials>) -> Self {
        Self { db, is_resp3, credentials, transaction: None, replies: Replies::On }
    }

    /// Whether commands are queued for `EXEC`.
    pub(crate) const fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// The connection is gone, and with it what cannot be restored.
    pub(crate) const fn disconnected(&mut self) {
        self.transaction = None;
        self.replies = Replies::On;
    }

    /// Takes note that a command was sent, and says whether it will be answered.
    pub(crate) fn sent(&mut self, args: &[Vec<u8>]) -> bool {
        let setting = match args {
            [command, sub, setting] if is(command, "client") && is(sub, "reply") => Some(setting),
            _ => None,
        };
        match (self.replies, setting) {
            (_, Some(setting)) if is(setting, "on") => {
                self.replies = Replies::On;
                true
            }
            (_, Some(setting)) if is(setting, "off") => {
                self.replies = Replies::Off;
                false
            }
            (Replies::On, Some(setting)) if is(setting, "skip") => {
                self.replies = Replies::SkipNext;
                false
            }
            (Replies::Off, _) => false,
            (Replies::SkipNext, _) => {
                self.replies = Replies::On;
                false
            }
            (Replies::On, _) => true,
        }
    }

    /// Takes note of a reply.
    pub(crate) fn answered(&mut self, args: &[Vec<u8>], reply: &Frame) {
        let Some((command, rest)) = args.split_first() else { return };
        let is_ok = matches!(reply, Frame::Simple(text) if &text[..] == b"OK");
        let is_queued = matches!(reply, Frame::Simple(text) if &text[..] == b"QUEUED");
        let name = command.to_ascii_lowercase();
        match (name.as_slice(), rest) {
            (b"multi", _) if is_ok => self.transaction = Some(Transaction::default()),
            (b"discard", _) if is_ok => self.transaction = None,
            (b"exec", _) => self.executed(reply),
            (b"select", [db]) if is_ok || is_queued => {
                let Some(db) = number(db) else { return };
                match &mut self.transaction {
                    Some(transaction) if is_queued => transaction.db = Some(db),
                    _ => self.db = db,
                }
            }
            (b"auth", [password]) if is_ok => {
                self.credentials = Some(Credentials { user: None, password: password.clone() });
            }
            (b"auth", [user, password]) if is_ok => {
                self.credentials = Some(Credentials { user: Some(user.clone()), password: password.clone() });
            }
            (b"hello", [version, options @ ..]) if matches!(reply, Frame::Map(_) | Frame::Array(_)) => {
                self.is_resp3 = version == b"3";
                let mut words = options.windows(3);
                if let Some([_, user, password]) = words.find(|words| is(&words[0], "auth")) {
                    self.credentials =
                        Some(Credentials { user: Some(user.clone()), password: password.clone() });
                }
            }
            (b"reset", _) if matches!(reply, Frame::Simple(_)) => {
                *self = Self::new(0, false, self.credentials.take());
            }
            _ => {}
        }
    }

    fn executed(&mut self, reply: &Frame) {
        // An EXEC that fails ends the transaction as well, except where there was none.
        if let Some(transaction) = self.transaction.take()
            && let (Frame::Array(_), Some(db)) = (reply, transaction.db)
        {
            self.db = db;
        }
    }
}

/// What a command does to the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversation {
    /// One reply.
    Reply,
    /// As many confirmations as this.
    Confirmations(usize),
    /// Messages until the user has had enough.
    Stream,
    /// Bytes that this client does not read; the text says so.
    Unreadable(&'static str),
}

impl Conversation {
    /// What `args` lead to, by the command's name.
    pub(crate) fn of(args: &[Vec<u8>]) -> Self {
        let Some(command) = args.first() else { return Self::Reply };
        match command.to_ascii_lowercase().as_slice() {
            b"subscribe" | b"psubscribe" | b"ssubscribe" | b"monitor" => Self::Stream,
            b"unsubscribe" | b"punsubscribe" | b"sunsubscribe" => {
                Self::Confirmations((args.len() - 1).max(1))
            }
            b"sync" | b"psync" => Self::Unreadable(
                "SYNC and PSYNC turn the connection into a replication stream, which is not shown; use MONITOR",
            ),
            _ => Self::Reply,
        }
    }
}

/// Whether the replies to a command are texts for people, to be shown as they are.
pub(crate) fn has_text_reply(args: &[Vec<u8>]) -> bool {
    const COMMANDS: [&str; 2] = ["info", "lolwut"];
    const SUBCOMMANDS: [(&str, &[&str]); 6] = [
        ("client", &["list", "info"]),
        ("cluster", &["info", "nodes"]),
        ("debug", &["htstats", "htstats-key", "jmap"]),
        ("latency", &["doctor", "graph"]),
        ("memory", &["doctor", "malloc-stats"]),
        ("proxy", &["info"]),
    ];
    match args {
        [command, ..] if COMMANDS.iter().any(|name| is(command, name)) => true,
        [command, sub, ..] => {
            SUBCOMMANDS.iter().any(|(name, subs)| is(command, name) && subs.iter().any(|name| is(sub, name)))
        }
        _ => false,
    }
}

fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn simple(text: &'static str) -> Frame {
        Frame::Simple(Bytes::from_static(text.as_bytes()))
    }

    fn error(text: &'static str) -> Frame {
        Frame::Error(Bytes::from_static(text.as_bytes()))
    }

    fn fresh() -> ConnectionState {
        ConnectionState::new(0, false, None)
    }

    #[test]
    fn a_queued_select_counts_once_the_transaction_ran() {
        let run = |last: &str, reply: &Frame| {
            let mut state = fresh();
            state.answered(&words("multi"), &simple("OK"));
            state.answered(&words("select 3"), &simple("QUEUED"));
            assert!(state.is_in_transaction() && state.db == 0);
            state.answered(&words(last), reply);
            assert!(!state.is_in_transaction());
            state.db
        };
        assert_eq!(run("EXEC", &Frame::Array(vec![simple("OK")])), 3);
        assert_eq!(run("EXEC", &Frame::NullArray), 0);
        assert_eq!(run("EXEC", &error("EXECABORT x")), 0);
        assert_eq!(run("DISCARD", &simple("OK")), 0);
    }

    #[test]
    fn only_what_succeeded_counts() {
        let mut state = fresh();
        state.answered(&words("select 99"), &error("ERR"));
        state.answered(&words("auth x"), &error("WRONGPASS"));
        state.answered(&words("hello 3"), &error("NOPROTO"));
        state.answered(&words("multi"), &error("ERR"));
        assert!(
            state.db == 0 && state.credentials.is_none() && !state.is_resp3 && !state.is_in_transaction()
        );
        state.answered(&words("hello 3 SETNAME me auth ann pw"), &Frame::Map(vec![]));
        let who = Credentials { user: Some(b"ann".to_vec()), password: b"pw".to_vec() };
        assert!(state.is_resp3 && state.credentials == Some(who));
        state.answered(&words("reset"), &simple("RESET"));
        assert!(!state.is_resp3);
    }

    #[test]
    fn replies_can_be_turned_off() {
        let mut state = fresh();
        let script = [
            ("ping", true),
            ("client reply skip", false),
            ("ping", false),
            ("ping", true),
            ("CLIENT REPLY OFF", false),
            ("ping", false),
            ("client reply skip", false),
            ("ping", false),
            ("client reply on", true),
            ("ping", true),
        ];
        for (line, is_answered) in script {
            assert_eq!(state.sent(&words(line)), is_answered, "{line}");
        }
    }

    #[test]
    fn conversations() {
        assert_eq!(Conversation::of(&words("SUBSCRIBE a b")), Conversation::Stream);
        assert_eq!(Conversation::of(&words("monitor")), Conversation::Stream);
        assert_eq!(Conversation::of(&words("get subscribe")), Conversation::Reply);
        assert_eq!(Conversation::of(&words("unsubscribe")), Conversation::Confirmations(1));
        assert_eq!(Conversation::of(&words("punsubscribe a b")), Conversation::Confirmations(2));
        assert!(matches!(Conversation::of(&words("psync ? -1")), Conversation::Unreadable(_)));
        assert!(has_text_reply(&words("INFO")) && has_text_reply(&words("client LIST")));
        assert!(!has_text_reply(&words("client id")) && !has_text_reply(&words("get info")));
    }
}
