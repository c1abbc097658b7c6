//! The commands of a history: what they are, and what became of each.

use bytes::Bytes;
use towline_client_proto::{Encoder, ErrorKind, Flags, Reply, Sent, encoded_len};
use towline_resp::frame::Frame;
use towline_sansio::Instant;
use towline_spec::SideEffect;

use crate::draw::Draw;

/// What a command does. Each has its own id among its arguments, for the server's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `ECHO id:n`: its reply is its id.
    Echo,
    /// `MGET string id:n`: what a shared string holds.
    Read,
    /// `SET string id:n`, padded perhaps.
    Set,
    /// `SET string id:n GET`: the reply shows what it replaced.
    Swap,
    /// `INCR c:id:n`: a second execution shows in the reply.
    Incr,
    /// `APPEND log /id:n`.
    Append,
    /// `RPUSH list id:n`.
    Push,
    /// `DEL string id:n`.
    Del,
    /// `MULTI`, `RPUSH list id:n`, `INCR c:id:n`, `EXEC`.
    Transaction,
}

/// A command before it is submitted.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    /// Which of the shared keys it touches.
    pub(crate) key: u64,
    /// Bytes before the id in the value.
    pub(crate) padding: usize,
}

impl Command {
    /// Draws a command.
    pub(crate) fn draw(id: u64, draw: &mut Draw, large_percent: u64, large_bytes: usize) -> Self {
        use Kind::{Append, Del, Echo, Incr, Push, Read, Set, Swap, Transaction};
        let kind =
            draw.pick(&[Echo, Echo, Read, Set, Set, Swap, Incr, Incr, Append, Push, Push, Del, Transaction]);
        let mut flags = if kind == Transaction { Flags::TRANSACTION } else { Flags::NONE };
        if draw.chance(10) {
            flags = flags | Flags::FIRE_AND_FORGET;
        }
        if draw.chance(30) {
            flags = flags | Flags::ALLOW_RETRY;
        }
        if draw.chance(10) {
            flags = flags | Flags::NO_RETRY;
        }
        if draw.chance(20) {
            flags = flags | Flags::HARD_DEADLINE;
        }
        if draw.chance(20) {
            flags = flags | Flags::PINNED;
        }
        let padding = match draw.range(0, 99) {
            roll if roll < large_percent => draw.size(4000, large_bytes),
            roll if roll < 3 * large_percent => draw.size(100, 1000),
            _ => 0,
        };
        Self { id, kind, flags, key: draw.range(0, 2), padding }
    }

    /// A harmless question that must be answered once everything has healed.
    pub(crate) const fn probe(id: u64) -> Self {
        Self { id, kind: Kind::Echo, flags: Flags::NONE, key: 0, padding: 0 }
    }

    /// The commands on the wire.
    fn args(&self) -> Vec<Vec<Bytes>> {
        let id = format!("id:{}", self.id);
        let key = self.shared_key().unwrap_or_default();
        let counter = format!("c:{id}");
        let value = if self.padding > 0 { format!("{}/{id}", "x".repeat(self.padding)) } else { id.clone() };
        let command = |args: &[&str]| args.iter().map(|arg| Bytes::copy_from_slice(arg.as_bytes())).collect();
        match self.kind {
            Kind::Echo => vec![command(&["ECHO", &value])],
            Kind::Read => vec![command(&["MGET", &key, &id])],
            Kind::Set => vec![command(&["SET", &key, &value])],
            Kind::Swap => vec![command(&["SET", &key, &value, "GET"])],
            Kind::Incr => vec![command(&["INCR", &counter])],
            Kind::Append => vec![command(&["APPEND", &key, &format!("/{id}")])],
            Kind::Push => vec![command(&["RPUSH", &key, &id])],
            Kind::Del => vec![command(&["DEL", &key, &id])],
            Kind::Transaction => vec![
                command(&["MULTI"]),
                command(&["RPUSH", &key, &id]),
                command(&["INCR", &counter]),
                command(&["EXEC"]),
            ],
        }
    }

    /// The key that it shares with other commands.
    pub(crate) fn shared_key(&self) -> Option<String> {
        match self.kind {
            Kind::Echo | Kind::Incr => None,
            Kind::Read | Kind::Set | Kind::Swap | Kind::Del => Some(format!("string{}", self.key)),
            Kind::Append => Some(format!("log{}", self.key)),
            Kind::Push | Kind::Transaction => Some(format!("list{}", self.key)),
        }
    }

    /// How many bytes [`Command::encode`] writes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.args().iter().map(|args| encoded_len(args)).sum()
    }

    /// How many bytes follow its id's line end in what [`Command::encode`] writes.
    pub(crate) fn tail_bytes(&self) -> usize {
        match self.kind {
            Kind::Swap => "$3\r\nGET\r\n".len(),
            Kind::Transaction => self.args()[2..].iter().map(|args| encoded_len(args)).sum(),
            _ => 0,
        }
    }

    /// Writes the command as a caller of the client does; `shares` hands large parts over by reference.
    pub(crate) fn encode(&self, out: &mut Encoder<'_>, shares: bool) {
        for args in self.args() {
            if shares {
                let mut bytes = Vec::new();
                towline_resp::frame::encode_command(&args, &mut bytes);
                out.share(bytes.into());
            } else {
                out.command(&args);
            }
        }
    }

    /// What a repetition does.
    pub(crate) const fn effect(&self) -> SideEffect {
        match self.kind {
            Kind::Echo | Kind::Read => SideEffect::ReadOnly,
            Kind::Set => SideEffect::Idempotent,
            Kind::Del => SideEffect::Convergent,
            Kind::Swap | Kind::Incr | Kind::Append | Kind::Push | Kind::Transaction => {
                SideEffect::NonIdempotent
            }
        }
    }

    /// How many replies answer it.
    pub(crate) const fn replies(&self) -> u32 {
        if matches!(self.kind, Kind::Transaction) { 4 } else { 1 }
    }

    /// Whether its caller allows that it runs more than once.
    pub(crate) const fn is_repeatable(&self) -> bool {
        if self.flags.contains(Flags::NO_RETRY) {
            return false;
        }
        match self.effect() {
            SideEffect::ReadOnly => true,
            SideEffect::Idempotent => self.flags.contains(Flags::ALLOW_RETRY),
            SideEffect::Convergent => {
                self.flags.contains(Flags::ALLOW_RETRY) && self.flags.contains(Flags::FIRE_AND_FORGET)
            }
            _ => false,
        }
    }
}

/// How a command ended, as its caller saw it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ending {
    /// It was not accepted.
    Rejected(ErrorKind),
    /// The server did it.
    Acknowledged(Reply),
    /// The server answered with an error.
    Refused(ErrorKind),
    /// The client gave it up.
    Failed(ErrorKind, Sent),
    /// Its caller gave it up.
    Abandoned,
}

/// One command's history.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) command: Command,
    pub(crate) caller: usize,
    pub(crate) deadline: Instant,
    pub(crate) submitted_at: Instant,
    /// Its place in the order of submission, over all callers.
    pub(crate) turn: usize,
    /// There had been a connection when it was submitted.
    pub(crate) was_ever_up: bool,
    /// By how much planned handoffs may have stretched its deadline.
    pub(crate) stretch: std::time::Duration,
    /// The connection whose reply ended it, if one did.
    pub(crate) answered_on: Option<u64>,
    /// A writer was given its bytes.
    pub(crate) was_handed_out: bool,
    /// Connections whose kernel took its last byte.
    pub(crate) kernel_took: u32,
    /// Which they were, once for each time.
    pub(crate) taken_by: Vec<u64>,
    /// It was abandoned before any writer had its bytes, or its caller was told that it was not sent.
    pub(crate) was_withdrawn: bool,
    pub(crate) ending: Option<Ending>,
}

impl Record {
    /// How a transaction or a command was answered.
    pub(crate) fn classify(outcome: Result<Reply, towline_client_proto::Error>) -> Ending {
        match outcome {
            Ok(Reply::Many(frames)) => match frames.last() {
                Some(Frame::Error(text) | Frame::BlobError(text)) => {
                    let error = towline_client_proto::ServerError::from_bytes(text);
                    // A refused MULTI leaves its commands outside of any transaction.
                    if matches!(frames.first(), Some(Frame::Error(_))) {
                        Ending::Failed(ErrorKind::Server(error), Sent::Maybe)
                    } else {
                        Ending::Refused(ErrorKind::Server(error))
                    }
                }
                _ => Ending::Acknowledged(Reply::Many(frames)),
            },
            Ok(reply) => Ending::Acknowledged(reply),
            Err(error) if error.sent() == Sent::Answered => Ending::Refused(error.into_kind()),
            Err(error) => {
                let sent = error.sent();
                Ending::Failed(error.into_kind(), sent)
            }
        }
    }
}
