//! Commands that change the cluster: read here, decided by the log.
//!
//! Owns: from arguments to a [`Change`]. Does **not** own whether it is made, nor most of the errors: what depends on the cluster's
//! state is decided when the change's turn comes, on all nodes alike.

use super::{cluster, slot};
use crate::cluster::errands::Errand;
use crate::command::{Args, CommandError, CommandResult, Ctx};
use towline_cluster::{SLOT_COUNT, Slot};
use towline_cluster_proto::{Change, NodeId, Ranges, Refused};
use towline_spec::Command;
use towline_store::number::parse_i64;

const BAD_SLOT: &str = "ERR Invalid or out of range slot";

/// The commands that [`read`] reads.
const CHANGES: &[&str] = &[
    "cluster|addslots",
    "cluster|addslotsrange",
    "cluster|bumpepoch",
    "cluster|delslots",
    "cluster|delslotsrange",
    "cluster|flushslots",
    "cluster|forget",
    "cluster|replicate",
    "cluster|set-config-epoch",
    "cluster|setslot",
];

/// Whether the command changes the cluster.
pub(crate) fn is_change(command: &Command) -> bool {
    CHANGES.contains(&command.name)
}

/// Any of these commands: the client waits until the change is made, and this node goes by it, or it is refused.
pub(super) fn run(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let command = towline_spec::resolve(&args).map_err(|_| CommandError::Syntax)?;
    let change = read(ctx, command, args)?;
    ctx.wait_for(Errand::Change(change));
    Ok(())
}

/// The change that the command asks for.
pub(crate) fn read(ctx: &mut Ctx<'_>, command: &Command, args: Args<'_>) -> Result<Change, CommandError> {
    let node = cluster(ctx)?.known().me;
    Ok(match command.name {
        "cluster|addslots" => Change::AddSlots { node, slots: slots(args)? },
        "cluster|addslotsrange" => Change::AddSlots { node, slots: slot_ranges(args, command.name)? },
        "cluster|delslots" => Change::DelSlots { slots: slots(args)? },
        "cluster|delslotsrange" => Change::DelSlots { slots: slot_ranges(args, command.name)? },
        "cluster|bumpepoch" => Change::BumpEpoch { node },
        "cluster|flushslots" => {
            if !ctx.server.store.is_empty(0) {
                return Err(CommandError::Text("ERR DB must be empty to perform CLUSTER FLUSHSLOTS."));
            }
            Change::FlushSlots { node }
        }
        "cluster|forget" => {
            Change::Forget { by: node, node: named(args.get(2), Named::Elsewhere)?, now_ms: ctx.ks.now_ms() }
        }
        "cluster|replicate" => {
            let primary = named(args.get(2), Named::Elsewhere)?;
            if !ctx.server.store.is_empty(0) && primary != node {
                return Err(CommandError::Text(
                    "ERR To set a master the node must be empty and without assigned slots.",
                ));
            }
            Change::Replicate { node, primary }
        }
        "cluster|set-config-epoch" => Change::SetConfigEpoch { node, epoch: epoch(args.get(2))? },
        "cluster|setslot" => set_slot(ctx, args, node)?,
        _ => return Err(CommandError::Syntax),
    })
}

/// Where a node is named: the words of the error for an unknown one differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// `SETSLOT MIGRATING`, `IMPORTING`.
    OtherSide,
    /// Everywhere else.
    Elsewhere,
}

/// A node's name. Whether there is such a node is decided with the change.
fn named(arg: &[u8], place: Named) -> Result<NodeId, CommandError> {
    NodeId::parse(arg).map_err(|_| match place {
        Named::OtherSide => CommandError::quoting("ERR I don't know about node ", arg, ""),
        Named::Elsewhere => CommandError::quoting("ERR Unknown node ", arg, ""),
    })
}

fn epoch(arg: &[u8]) -> Result<u64, CommandError> {
    let epoch = parse_i64(arg).ok_or(CommandError::NotInteger)?;
    u64::try_from(epoch).map_err(|_| CommandError::quoting("ERR Invalid config epoch specified: ", arg, ""))
}

/// `slot [slot ...]`
fn slots(args: Args<'_>) -> Result<Ranges, CommandError> {
    let slots = args.from(2).iter().map(|arg| slot(arg, BAD_SLOT)).collect::<Result<Vec<_>, _>>()?;
    gather(slots.into_iter())
}

/// `start-slot end-slot [start-slot end-slot ...]`
fn slot_ranges(args: Args<'_>, name: &'static str) -> Result<Ranges, CommandError> {
    let args = args.from(2);
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::Arity(name));
    }
    let mut ranges = Vec::with_capacity(args.len() / 2);
    for at in (0..args.len()).step_by(2) {
        let (first, last) = (slot(args.get(at), BAD_SLOT)?, slot(args.get(at + 1), BAD_SLOT)?);
        if first > last {
            return Err(CommandError::message(format!(
                "ERR start slot number {first} is greater than end slot number {last}"
            )));
        }
        ranges.push(first..=last);
    }
    gather(ranges.into_iter().flatten())
}

/// Slots as ranges.
fn gather(slots: impl Iterator<Item = Slot>) -> Result<Ranges, CommandError> {
    let mut is_meant = vec![false; SLOT_COUNT];
    for slot in slots {
        if std::mem::replace(&mut is_meant[usize::from(slot)], true) {
            return Err(CommandError::message(format!("ERR Slot {slot} specified multiple times")));
        }
    }
    let mut ranges = Ranges::new();
    for slot in (0..SLOT_COUNT as Slot).filter(|&slot| is_meant[usize::from(slot)]) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == slot => *last = slot,
            _ => ranges.push((slot, slot)),
        }
    }
    Ok(ranges)
}

fn is_in_transaction(ctx: &Ctx<'_>) -> bool {
    ctx.session.as_ref().is_some_and(|session| session.is_in_exec)
}

const SETSLOT_FORM: CommandError =
    CommandError::Text("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP");

/// `SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE> [TIMEOUT ms]`. The time is for replicas in Valkey to
/// agree; here a quorum always does.
fn set_slot(ctx: &mut Ctx<'_>, args: Args<'_>, node: NodeId) -> Result<Change, CommandError> {
    let known = std::sync::Arc::clone(&cluster(ctx)?.known());
    if known.my_primary().is_some() {
        return Err(CommandError::message(Refused::SaidToReplica.to_string()));
    }
    let slot = slot(args.get(2), BAD_SLOT)?;
    let words = match args.len() {
        len if len > 5 && args.is(len - 2, "timeout") => {
            args.int(len - 1)?;
            args.first(len - 2)
        }
        _ => args,
    };
    let owner = known.metadata.owner(slot);
    match words.len() {
        4 if words.is(3, "stable") => Ok(Change::SetStable { node, slot }),
        5 if words.is(3, "migrating") => {
            if owner != Some(node) && !is_in_transaction(ctx) {
                return Err(CommandError::message(Refused::NotOwner(slot).to_string()));
            }
            Ok(Change::SetMigrating { node, slot, to: named(words.get(4), Named::OtherSide)? })
        }
        5 if words.is(3, "importing") => {
            if owner == Some(node) && !is_in_transaction(ctx) {
                return Err(CommandError::message(Refused::AlreadyOwner(slot).to_string()));
            }
            Ok(Change::SetImporting { node, slot, from: named(words.get(4), Named::OtherSide)? })
        }
        5 if words.is(3, "node") => {
            let owner = named(words.get(4), Named::Elsewhere)?;
            ctx.ks.hold_only(slot);
            let holds_keys = ctx.ks.slot_len(slot) > 0;
            Ok(Change::SetOwner { node, slot, owner, holds_keys })
        }
        _ => Err(SETSLOT_FORM),
    }
}
