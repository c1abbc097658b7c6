//! Commands of the group `scripting`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};
use crate::commands::counted;

/// Runs a Lua script.
///
/// `EVAL script numkeys [key [key ...]] [arg [arg ...]]`: Depends on the script, since 2.6.0.
pub fn eval(script: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Cmd {
    counted(cmd("EVAL").arg(script), 1, keys).arg(args)
}

/// Runs a Lua script that may not write.
///
/// `EVAL_RO script numkeys [key [key ...]] [arg [arg ...]]`: Depends on the script, since 7.0.0.
pub fn eval_ro(script: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Cmd {
    counted(cmd("EVAL_RO").arg(script), 1, keys).arg(args)
}

/// Runs a cached Lua script by its digest.
///
/// `EVALSHA sha1 numkeys [key [key ...]] [arg [arg ...]]`: Depends on the script, since 2.6.0.
pub fn evalsha(sha1: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Cmd {
    counted(cmd("EVALSHA").arg(sha1), 1, keys).arg(args)
}

/// Runs a cached Lua script that may not write, by its digest.
///
/// `EVALSHA_RO sha1 numkeys [key [key ...]] [arg [arg ...]]`: Depends on the script, since 7.0.0.
pub fn evalsha_ro(sha1: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Cmd {
    counted(cmd("EVALSHA_RO").arg(sha1), 1, keys).arg(args)
}

/// Calls a function.
///
/// `FCALL function numkeys [key [key ...]] [arg [arg ...]]`: Depends on the function, since 7.0.0.
pub fn fcall(function: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Cmd {
    counted(cmd("FCALL").arg(function), 1, keys).arg(args)
}

/// Calls a function that may not write.
///
/// `FCALL_RO function numkeys [key [key ...]] [arg [arg ...]]`: Depends on the function, since 7.0.0.
pub fn fcall_ro(function: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Cmd {
    counted(cmd("FCALL_RO").arg(function), 1, keys).arg(args)
}

/// Deletes a library and its functions.
///
/// `FUNCTION DELETE library-name`: O(1), since 7.0.0.
pub fn function_delete(library_name: impl ToArgs) -> Cmd {
    cmd("FUNCTION").arg("DELETE").arg(library_name)
}

/// Returns every library in serialized form.
///
/// `FUNCTION DUMP`: O(N), N is the number of functions, since 7.0.0.
pub fn function_dump() -> Cmd {
    cmd("FUNCTION").arg("DUMP")
}

/// Deletes every library.
///
/// `FUNCTION FLUSH [ASYNC | SYNC]`: O(N), N is the number of functions, since 7.0.0.
pub fn function_flush() -> Cmd {
    cmd("FUNCTION").arg("FLUSH")
}

/// Deletes every library. With options.
///
/// `FUNCTION FLUSH [ASYNC | SYNC]`: O(N), N is the number of functions, since 7.0.0.
pub fn function_flush_with(options: impl ToArgs) -> Cmd {
    cmd("FUNCTION").arg("FLUSH").arg(options)
}

/// Shows what the subcommands do.
///
/// `FUNCTION HELP`: O(1), since 7.0.0.
pub fn function_help() -> Cmd {
    cmd("FUNCTION").arg("HELP")
}

/// Stops a function that runs too long.
///
/// `FUNCTION KILL`: O(1), since 7.0.0.
pub fn function_kill() -> Cmd {
    cmd("FUNCTION").arg("KILL")
}

/// Lists libraries and their functions.
///
/// `FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]`: O(N), N is the number of functions, since
/// 7.0.0.
pub fn function_list() -> Cmd {
    cmd("FUNCTION").arg("LIST")
}

/// Lists libraries and their functions. With options.
///
/// `FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]`: O(N), N is the number of functions, since
/// 7.0.0.
pub fn function_list_with(options: impl ToArgs) -> Cmd {
    cmd("FUNCTION").arg("LIST").arg(options)
}

/// Creates a library, or replaces it.
///
/// `FUNCTION LOAD [REPLACE] function-code`: O(N), N is the length of the script, since 7.0.0.
pub fn function_load(function_code: impl ToArgs) -> Cmd {
    cmd("FUNCTION").arg("LOAD").arg(function_code)
}

/// Creates a library, or replaces it. With options.
///
/// `FUNCTION LOAD [REPLACE] function-code`: O(N), N is the length of the script, since 7.0.0.
pub fn function_load_with(options: impl ToArgs, function_code: impl ToArgs) -> Cmd {
    cmd("FUNCTION").arg("LOAD").arg(options).arg(function_code)
}

/// Restores libraries from their serialized form.
///
/// `FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]`: O(N), N is the number of functions,
/// since 7.0.0.
pub fn function_restore(serialized_value: impl ToArgs) -> Cmd {
    cmd("FUNCTION").arg("RESTORE").arg(serialized_value)
}

/// Restores libraries from their serialized form. With options.
///
/// `FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]`: O(N), N is the number of functions,
/// since 7.0.0.
pub fn function_restore_with(serialized_value: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("FUNCTION").arg("RESTORE").arg(serialized_value).arg(options)
}

/// Shows the running function and the engines.
///
/// `FUNCTION STATS`: O(1), since 7.0.0.
pub fn function_stats() -> Cmd {
    cmd("FUNCTION").arg("STATS")
}

/// Tells which scripts are cached.
///
/// `SCRIPT EXISTS sha1 [sha1 ...]`: O(N), N is the number of scripts, since 2.6.0.
pub fn script_exists(sha1s: impl ToArgs) -> Cmd {
    cmd("SCRIPT").arg("EXISTS").arg(sha1s)
}

/// Empties the script cache.
///
/// `SCRIPT FLUSH [ASYNC | SYNC]`: O(N), N is the number of scripts, since 2.6.0.
pub fn script_flush() -> Cmd {
    cmd("SCRIPT").arg("FLUSH")
}

/// Empties the script cache. With options.
///
/// `SCRIPT FLUSH [ASYNC | SYNC]`: O(N), N is the number of scripts, since 2.6.0.
pub fn script_flush_with(options: impl ToArgs) -> Cmd {
    cmd("SCRIPT").arg("FLUSH").arg(options)
}

/// Shows what the subcommands do.
///
/// `SCRIPT HELP`: O(1), since 5.0.0.
pub fn script_help() -> Cmd {
    cmd("SCRIPT").arg("HELP")
}

/// Stops a script that runs too long.
///
/// `SCRIPT KILL`: O(1), since 2.6.0.
pub fn script_kill() -> Cmd {
    cmd("SCRIPT").arg("KILL")
}

/// Puts a script into the cache.
///
/// `SCRIPT LOAD script`: O(N), N is the length of the script, since 2.6.0.
pub fn script_load(script: impl ToArgs) -> Cmd {
    cmd("SCRIPT").arg("LOAD").arg(script)
}

/// Returns the text of a cached script.
///
/// `SCRIPT SHOW sha1`: O(1), since 8.0.0.
pub fn script_show(sha1: impl ToArgs) -> Cmd {
    cmd("SCRIPT").arg("SHOW").arg(sha1)
}
