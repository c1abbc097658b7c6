//! Commands of the group `json`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Appends values to arrays.
///
/// `JSON.ARRAPPEND key path value [value ...]`: O(N), N is the size of what the path meets, since 1.0.0 of
/// its module.
pub fn json_arrappend(key: impl ToArgs, path: impl ToArgs, values: impl ToArgs) -> Cmd {
    cmd("JSON.ARRAPPEND").arg(key).arg(path).arg(values)
}

/// Finds the first place of a value in arrays.
///
/// `JSON.ARRINDEX key path value [start [stop]]`: O(N), N is the size of what the path meets, since 1.0.0
/// of its module.
pub fn json_arrindex(key: impl ToArgs, path: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("JSON.ARRINDEX").arg(key).arg(path).arg(value)
}

/// Finds the first place of a value in arrays. With options.
///
/// `JSON.ARRINDEX key path value [start [stop]]`: O(N), N is the size of what the path meets, since 1.0.0
/// of its module.
pub fn json_arrindex_with(
    key: impl ToArgs,
    path: impl ToArgs,
    value: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("JSON.ARRINDEX").arg(key).arg(path).arg(value).arg(options)
}

/// Inserts values into arrays.
///
/// `JSON.ARRINSERT key path index value [value ...]`: O(N), N is the size of what the path meets, since
/// 1.0.0 of its module.
pub fn json_arrinsert(key: impl ToArgs, path: impl ToArgs, index: impl ToArgs, values: impl ToArgs) -> Cmd {
    cmd("JSON.ARRINSERT").arg(key).arg(path).arg(index).arg(values)
}

/// Returns the lengths of arrays.
///
/// `JSON.ARRLEN key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_arrlen(key: impl ToArgs) -> Cmd {
    cmd("JSON.ARRLEN").arg(key)
}

/// Returns the lengths of arrays. With options.
///
/// `JSON.ARRLEN key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_arrlen_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.ARRLEN").arg(key).arg(path)
}

/// Removes an element of arrays and returns it.
///
/// `JSON.ARRPOP key [path [index]]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_arrpop(key: impl ToArgs) -> Cmd {
    cmd("JSON.ARRPOP").arg(key)
}

/// Removes an element of arrays and returns it. With options.
///
/// `JSON.ARRPOP key [path [index]]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_arrpop_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("JSON.ARRPOP").arg(key).arg(options)
}

/// Cuts arrays to a range.
///
/// `JSON.ARRTRIM key path start stop`: O(N), N is the size of what the path meets, since 1.0.0 of its
/// module.
pub fn json_arrtrim(key: impl ToArgs, path: impl ToArgs, start: impl ToArgs, stop: impl ToArgs) -> Cmd {
    cmd("JSON.ARRTRIM").arg(key).arg(path).arg(start).arg(stop)
}

/// Empties arrays and objects, and sets numbers to 0.
///
/// `JSON.CLEAR key [path]`: O(N), N is the size of what the path meets, since 2.0.0 of its module.
pub fn json_clear(key: impl ToArgs) -> Cmd {
    cmd("JSON.CLEAR").arg(key)
}

/// Empties arrays and objects, and sets numbers to 0. With options.
///
/// `JSON.CLEAR key [path]`: O(N), N is the size of what the path meets, since 2.0.0 of its module.
pub fn json_clear_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.CLEAR").arg(key).arg(path)
}

/// Returns the memory that values take, in bytes.
///
/// `JSON.DEBUG MEMORY key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_debug_memory(key: impl ToArgs) -> Cmd {
    cmd("JSON.DEBUG").arg("MEMORY").arg(key)
}

/// Returns the memory that values take, in bytes. With options.
///
/// `JSON.DEBUG MEMORY key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_debug_memory_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.DEBUG").arg("MEMORY").arg(key).arg(path)
}

/// Deletes values, or the whole document.
///
/// `JSON.DEL key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_del(key: impl ToArgs) -> Cmd {
    cmd("JSON.DEL").arg(key)
}

/// Deletes values, or the whole document. With options.
///
/// `JSON.DEL key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_del_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.DEL").arg(key).arg(path)
}

/// Deletes values, or the whole document.
///
/// `JSON.FORGET key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_forget(key: impl ToArgs) -> Cmd {
    cmd("JSON.FORGET").arg(key)
}

/// Deletes values, or the whole document. With options.
///
/// `JSON.FORGET key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_forget_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.FORGET").arg(key).arg(path)
}

/// Returns values as JSON text.
///
/// `JSON.GET key [INDENT indent] [NEWLINE newline] [SPACE space] [path ...]`: O(N), N is the size of what
/// the path meets, since 1.0.0 of its module.
pub fn json_get(key: impl ToArgs, paths: impl ToArgs) -> Cmd {
    cmd("JSON.GET").arg(key).arg(paths)
}

/// Returns values as JSON text. With options.
///
/// `JSON.GET key [INDENT indent] [NEWLINE newline] [SPACE space] [path ...]`: O(N), N is the size of what
/// the path meets, since 1.0.0 of its module.
pub fn json_get_with(key: impl ToArgs, options: impl ToArgs, paths: impl ToArgs) -> Cmd {
    cmd("JSON.GET").arg(key).arg(options).arg(paths)
}

/// Merges a value into those at a path, as RFC 7396 has it.
///
/// `JSON.MERGE key path value`: O(N), N is the size of what the path meets, since 2.6.0 of its module.
pub fn json_merge(key: impl ToArgs, path: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("JSON.MERGE").arg(key).arg(path).arg(value)
}

/// Returns the values at one path of several documents.
///
/// `JSON.MGET key [key ...] path`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_mget(keys: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.MGET").arg(keys).arg(path)
}

/// Sets values in several documents, all or none.
///
/// `JSON.MSET key path value [key path value ...]`: O(N), N is the size of what the path meets, since 2.6.0
/// of its module.
pub fn json_mset(key_path_values: impl ToArgs) -> Cmd {
    cmd("JSON.MSET").arg(key_path_values)
}

/// Adds to numbers.
///
/// `JSON.NUMINCRBY key path value`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_numincrby(key: impl ToArgs, path: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("JSON.NUMINCRBY").arg(key).arg(path).arg(value)
}

/// Multiplies numbers.
///
/// `JSON.NUMMULTBY key path value`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_nummultby(key: impl ToArgs, path: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("JSON.NUMMULTBY").arg(key).arg(path).arg(value)
}

/// Returns the names in objects.
///
/// `JSON.OBJKEYS key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_objkeys(key: impl ToArgs) -> Cmd {
    cmd("JSON.OBJKEYS").arg(key)
}

/// Returns the names in objects. With options.
///
/// `JSON.OBJKEYS key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_objkeys_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.OBJKEYS").arg(key).arg(path)
}

/// Counts the names in objects.
///
/// `JSON.OBJLEN key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_objlen(key: impl ToArgs) -> Cmd {
    cmd("JSON.OBJLEN").arg(key)
}

/// Counts the names in objects. With options.
///
/// `JSON.OBJLEN key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_objlen_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.OBJLEN").arg(key).arg(path)
}

/// Returns values in the protocol's own types.
///
/// `JSON.RESP key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_resp(key: impl ToArgs) -> Cmd {
    cmd("JSON.RESP").arg(key)
}

/// Returns values in the protocol's own types. With options.
///
/// `JSON.RESP key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_resp_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.RESP").arg(key).arg(path)
}

/// Sets values.
///
/// `JSON.SET key path value [NX | XX]`: O(N), N is the size of what the path meets, since 1.0.0 of its
/// module.
pub fn json_set(key: impl ToArgs, path: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("JSON.SET").arg(key).arg(path).arg(value)
}

/// Sets values. With options.
///
/// `JSON.SET key path value [NX | XX]`: O(N), N is the size of what the path meets, since 1.0.0 of its
/// module.
pub fn json_set_with(key: impl ToArgs, path: impl ToArgs, value: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("JSON.SET").arg(key).arg(path).arg(value).arg(options)
}

/// Appends to strings; the value is a JSON string.
///
/// `JSON.STRAPPEND key path value`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_strappend(key: impl ToArgs, path: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("JSON.STRAPPEND").arg(key).arg(path).arg(value)
}

/// Returns the lengths of strings.
///
/// `JSON.STRLEN key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_strlen(key: impl ToArgs) -> Cmd {
    cmd("JSON.STRLEN").arg(key)
}

/// Returns the lengths of strings. With options.
///
/// `JSON.STRLEN key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_strlen_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.STRLEN").arg(key).arg(path)
}

/// Turns true into false and back.
///
/// `JSON.TOGGLE key path`: O(N), N is the size of what the path meets, since 2.0.0 of its module.
pub fn json_toggle(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.TOGGLE").arg(key).arg(path)
}

/// Returns the types of values.
///
/// `JSON.TYPE key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_type(key: impl ToArgs) -> Cmd {
    cmd("JSON.TYPE").arg(key)
}

/// Returns the types of values. With options.
///
/// `JSON.TYPE key [path]`: O(N), N is the size of what the path meets, since 1.0.0 of its module.
pub fn json_type_with(key: impl ToArgs, path: impl ToArgs) -> Cmd {
    cmd("JSON.TYPE").arg(key).arg(path)
}
