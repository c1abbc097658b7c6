//! Commands that do not exist.
//!
//! Owns: the errors that say so. Does **not** own what exists (see `towline_spec`).

use crate::command::{Args, CommandError};

/// Bytes of arguments that an error for an unknown command repeats.
const REPEATED_BYTES_MAX: usize = 128;

/// The error for a name that no command has.
pub(super) fn unknown_command(args: Args<'_>) -> CommandError {
    let name = &args.get(0)[..args.get(0).len().min(REPEATED_BYTES_MAX)];
    let mut repeated = Vec::new();
    for arg in args.from(1).iter() {
        if repeated.len() >= REPEATED_BYTES_MAX {
            break;
        }
        let left = REPEATED_BYTES_MAX - repeated.len();
        repeated.push(b'\'');
        repeated.extend_from_slice(&arg[..arg.len().min(left)]);
        repeated.extend_from_slice(b"' ");
    }
    CommandError::joined(&[b"ERR unknown command '", name, b"', with args beginning with: ", &repeated])
}

/// The error for a subcommand that its command does not have.
pub(super) fn unknown_subcommand(args: Args<'_>) -> CommandError {
    let (name, sub) = (args.get(0), args.get(1));
    let help = String::from_utf8_lossy(name).to_uppercase();
    let sub = &sub[..sub.len().min(REPEATED_BYTES_MAX)];
    CommandError::quoting("ERR unknown subcommand '", sub, &format!("'. Try {help} HELP."))
}

/// Whether a browser was tricked into talking to us: its request would go on in lines that are taken for commands.
pub(super) fn is_http(args: Args<'_>) -> bool {
    args.is(0, "post") || args.is(0, "host:")
}
