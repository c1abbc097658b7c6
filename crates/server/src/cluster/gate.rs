//! The slot gate of commands.
//!
//! Owns: what a command is as a request to [`towline_cluster_proto::gate::decide`], and the replies of its refusals. Does **not** own the
//! decision.

use super::Cluster;
use crate::command::{Args, CommandError};
use crate::config::{Config, PreferredEndpoint};
use crate::session::{Queued, Session};
use crate::shared::Shared;
use towline_cluster::{Slot, key_slot};
use towline_cluster_proto::gate::{Keys, Present, Request, Verdict, decide};
use towline_cluster_proto::views::{EndpointType, Reader};
use towline_spec::{Command, Flags, KeyFlags};
use towline_store::keyspace::Keyspace;
use towline_store::keyspace::slots::HeldSlots;

/// What becomes of a command.
#[derive(Debug)]
pub(crate) enum Pass {
    /// It runs.
    Serve,
    /// This is its reply.
    Refuse(CommandError),
    /// It runs, or is refused, later: its slot is changing hands.
    Later,
}

/// What the gate asks of the client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    is_asking: bool,
    is_readonly: bool,
    is_tls: bool,
}

impl Asker {
    /// The client of this session.
    pub(crate) fn new(session: &Session, shared: &Shared) -> Self {
        Self {
            is_asking: session.is_asking,
            is_readonly: session.is_readonly,
            is_tls: session.client.is_tls(shared),
        }
    }
}

impl Cluster {
    /// Whether commands on what is held run without another question: all their keys are in slots that are this node's.
    #[inline]
    pub(crate) fn is_plain(&self, held: HeldSlots) -> bool {
        match held {
            HeldSlots::None => true,
            HeldSlots::One(slot) => self.table.word(slot) == 0,
            HeldSlots::Several => false,
        }
    }

    /// Whether these commands run: one, or all of a transaction. Their slots are held.
    #[cold]
    pub(crate) fn pass<'a>(
        &self,
        config: &Config,
        ks: &Keyspace<'_>,
        asker: Asker,
        commands: impl Iterator<Item = (&'static Command, Args<'a>)> + Clone,
    ) -> Pass {
        let mut subject = Subject::default();
        commands.clone().for_each(|(command, args)| subject.add(command, args));
        let Some(slot) = subject.first else {
            // What changes everything changes slots that are changing hands, too: a FLUSHALL would be undone by the other node's copy.
            let waits = subject.writes && ks.holds_all() && self.table.has_parked();
            return if waits { Pass::Later } else { Pass::Serve };
        };
        let known = self.known();
        let request = subject.request(slot, asker);
        let state = known.slot(slot, self.table.is_parked(slot));
        let present = || {
            let mut present = Present::default();
            for (command, args) in commands.clone() {
                count_present(ks, command, args, &mut present);
            }
            present
        };
        match decide(&request, &state, &known.node_state(&config.cluster), present) {
            Verdict::Serve => Pass::Serve,
            Verdict::Park => Pass::Later,
            verdict => match reader(config, asker.is_tls).refusal(&known.metadata, verdict) {
                Some(text) => Pass::Refuse(CommandError::message(text.into_owned())),
                None => Pass::Serve,
            },
        }
    }
}

/// The commands of a transaction.
pub(crate) fn queued(queue: &[Queued]) -> impl Iterator<Item = (&'static Command, Args<'_>)> + Clone {
    queue.iter().map(|queued| (queued.command, queued.args.args()))
}

/// The keys of one command or several, as far as the gate wants to know.
#[derive(Debug, Default)]
struct Subject<'a> {
    first: Option<Slot>,
    key: &'a [u8],
    is_cross_slot: bool,
    are_several: bool,
    is_asking: bool,
    is_migrate: bool,
    writes: bool,
    has_keys: bool,
}

impl<'a> Subject<'a> {
    fn add(&mut self, command: &'static Command, args: Args<'a>) {
        let mut added = Self::default();
        // Arguments from which no keys can be read are refused by the handler before it touches one.
        let found = towline_spec::for_each_key(command, &args, |index, flags| {
            added.add_key(args.get(index), flags);
        });
        if found.is_err() {
            return;
        }
        if let Some(slot) = added.first {
            let had_any = self.first.is_some();
            self.is_cross_slot |= added.is_cross_slot || self.first.is_some_and(|first| first != slot);
            self.are_several |= added.are_several || (had_any && self.key != added.key);
            self.has_keys |= added.has_keys;
            if !had_any {
                (self.first, self.key) = (Some(slot), added.key);
            }
        }
        self.is_asking |= command.flags.contains(Flags::ASKING);
        self.is_migrate |= command.name == "migrate";
        self.writes |= command.flags.contains(Flags::WRITE);
    }

    fn add_key(&mut self, key: &'a [u8], flags: KeyFlags) {
        let slot = key_slot(key);
        self.has_keys |= !flags.contains(KeyFlags::NOT_KEY);
        match self.first {
            None => (self.first, self.key) = (Some(slot), key),
            Some(first) => {
                self.is_cross_slot |= first != slot;
                self.are_several |= self.key != key;
            }
        }
    }

    fn request(&self, slot: Slot, asker: Asker) -> Request {
        Request {
            keys: match self.is_cross_slot {
                true => Keys::CrossSlot { first: slot },
                false => Keys::Slot { slot, are_several: self.are_several },
            },
            is_asking: self.is_asking || asker.is_asking,
            is_migrate: self.is_migrate,
            is_readonly_client: asker.is_readonly,
            writes: self.writes,
            is_shard_channel: !self.has_keys,
        }
    }
}

fn count_present(ks: &Keyspace<'_>, command: &'static Command, args: Args<'_>, present: &mut Present) {
    let mut counted = Present::default();
    let found = towline_spec::for_each_key(command, &args, |index, flags| {
        if flags.contains(KeyFlags::NOT_KEY) {
            return;
        }
        match ks.is_live(args.get(index)) {
            true => counted.existing += 1,
            false => counted.missing += 1,
        }
    });
    if found.is_ok() {
        present.existing += counted.existing;
        present.missing += counted.missing;
    }
}

/// The client as one who reads about nodes.
pub(crate) fn reader(config: &Config, is_tls: bool) -> Reader {
    let preferred = match config.cluster.preferred_endpoint {
        PreferredEndpoint::Ip => EndpointType::Ip,
        PreferredEndpoint::Hostname => EndpointType::Hostname,
        PreferredEndpoint::Unknown => EndpointType::Unknown,
    };
    Reader { preferred, is_tls }
}
