//! Commands of the group `hash`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};
use crate::commands::counted;

/// Deletes fields, and the hash when none is left.
///
/// `HDEL key field [field ...]`: O(N), N is the number of fields, since 2.0.0.
pub fn hdel(key: impl ToArgs, fields: impl ToArgs) -> Cmd {
    cmd("HDEL").arg(key).arg(fields)
}

/// Tells whether a field exists.
///
/// `HEXISTS key field`: O(1), since 2.0.0.
pub fn hexists(key: impl ToArgs, field: impl ToArgs) -> Cmd {
    cmd("HEXISTS").arg(key).arg(field)
}

/// Sets fields' time to live in seconds.
///
/// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: O(N), N is the number of
/// fields, since 7.4.0.
pub fn hexpire(key: impl ToArgs, seconds: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HEXPIRE").arg(key).arg(seconds).arg("FIELDS"), 1, fields)
}

/// Sets fields' time to live in seconds. With options.
///
/// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: O(N), N is the number of
/// fields, since 7.4.0.
pub fn hexpire_with(
    key: impl ToArgs,
    seconds: impl ToArgs,
    options: impl ToArgs,
    fields: impl ToArgs,
) -> Cmd {
    counted(cmd("HEXPIRE").arg(key).arg(seconds).arg(options).arg("FIELDS"), 1, fields)
}

/// Sets the time at which fields expire, in Unix seconds.
///
/// `HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: O(N), N is the
/// number of fields, since 7.4.0.
pub fn hexpireat(key: impl ToArgs, unix_time_seconds: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HEXPIREAT").arg(key).arg(unix_time_seconds).arg("FIELDS"), 1, fields)
}

/// Sets the time at which fields expire, in Unix seconds. With options.
///
/// `HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: O(N), N is the
/// number of fields, since 7.4.0.
pub fn hexpireat_with(
    key: impl ToArgs,
    unix_time_seconds: impl ToArgs,
    options: impl ToArgs,
    fields: impl ToArgs,
) -> Cmd {
    counted(cmd("HEXPIREAT").arg(key).arg(unix_time_seconds).arg(options).arg("FIELDS"), 1, fields)
}

/// Returns the time at which fields expire, in Unix seconds.
///
/// `HEXPIRETIME key FIELDS numfields field [field ...]`: O(N), N is the number of fields, since 7.4.0.
pub fn hexpiretime(key: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HEXPIRETIME").arg(key).arg("FIELDS"), 1, fields)
}

/// Returns the value of a field.
///
/// `HGET key field`: O(1), since 2.0.0.
pub fn hget(key: impl ToArgs, field: impl ToArgs) -> Cmd {
    cmd("HGET").arg(key).arg(field)
}

/// Returns every field with its value.
///
/// `HGETALL key`: O(N), N is the size of the hash, since 2.0.0.
pub fn hgetall(key: impl ToArgs) -> Cmd {
    cmd("HGETALL").arg(key)
}

/// Returns the values of fields and deletes them.
///
/// `HGETDEL key FIELDS numfields field [field ...]`: O(N), N is the number of fields, since 8.0.0.
pub fn hgetdel(key: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HGETDEL").arg(key).arg("FIELDS"), 1, fields)
}

/// Returns the values of fields and changes their expiry.
///
/// `HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
/// PERSIST] FIELDS numfields field [field ...]`: O(N), N is the number of fields, since 8.0.0.
pub fn hgetex(key: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HGETEX").arg(key).arg("FIELDS"), 1, fields)
}

/// Returns the values of fields and changes their expiry. With options.
///
/// `HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds |
/// PERSIST] FIELDS numfields field [field ...]`: O(N), N is the number of fields, since 8.0.0.
pub fn hgetex_with(key: impl ToArgs, options: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HGETEX").arg(key).arg(options).arg("FIELDS"), 1, fields)
}

/// Adds to the integer in a field; an absent one counts as 0.
///
/// `HINCRBY key field increment`: O(1), since 2.0.0.
pub fn hincrby(key: impl ToArgs, field: impl ToArgs, increment: impl ToArgs) -> Cmd {
    cmd("HINCRBY").arg(key).arg(field).arg(increment)
}

/// Adds to the decimal number in a field; an absent one counts as 0.
///
/// `HINCRBYFLOAT key field increment`: O(1), since 2.6.0.
pub fn hincrbyfloat(key: impl ToArgs, field: impl ToArgs, increment: impl ToArgs) -> Cmd {
    cmd("HINCRBYFLOAT").arg(key).arg(field).arg(increment)
}

/// Returns every field's name.
///
/// `HKEYS key`: O(N), N is the size of the hash, since 2.0.0.
pub fn hkeys(key: impl ToArgs) -> Cmd {
    cmd("HKEYS").arg(key)
}

/// Counts the fields.
///
/// `HLEN key`: O(1), since 2.0.0.
pub fn hlen(key: impl ToArgs) -> Cmd {
    cmd("HLEN").arg(key)
}

/// Returns the values of several fields.
///
/// `HMGET key field [field ...]`: O(N), N is the number of fields, since 2.0.0.
pub fn hmget(key: impl ToArgs, fields: impl ToArgs) -> Cmd {
    cmd("HMGET").arg(key).arg(fields)
}

/// Sets several fields.
///
/// `HMSET key field value [field value ...]`: O(N), N is the number of fields, since 2.0.0.
///
/// Old since 4.0.0: better `HSET` with multiple field-value pairs.
pub fn hmset(key: impl ToArgs, field_values: impl ToArgs) -> Cmd {
    cmd("HMSET").arg(key).arg(field_values)
}

/// Makes fields stay until they are deleted.
///
/// `HPERSIST key FIELDS numfields field [field ...]`: O(N), N is the number of fields, since 7.4.0.
pub fn hpersist(key: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HPERSIST").arg(key).arg("FIELDS"), 1, fields)
}

/// Sets fields' time to live in milliseconds.
///
/// `HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: O(N), N is the
/// number of fields, since 7.4.0.
pub fn hpexpire(key: impl ToArgs, milliseconds: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HPEXPIRE").arg(key).arg(milliseconds).arg("FIELDS"), 1, fields)
}

/// Sets fields' time to live in milliseconds. With options.
///
/// `HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: O(N), N is the
/// number of fields, since 7.4.0.
pub fn hpexpire_with(
    key: impl ToArgs,
    milliseconds: impl ToArgs,
    options: impl ToArgs,
    fields: impl ToArgs,
) -> Cmd {
    counted(cmd("HPEXPIRE").arg(key).arg(milliseconds).arg(options).arg("FIELDS"), 1, fields)
}

/// Sets the time at which fields expire, in Unix milliseconds.
///
/// `HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: O(N), N
/// is the number of fields, since 7.4.0.
pub fn hpexpireat(key: impl ToArgs, unix_time_milliseconds: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HPEXPIREAT").arg(key).arg(unix_time_milliseconds).arg("FIELDS"), 1, fields)
}

/// Sets the time at which fields expire, in Unix milliseconds. With options.
///
/// `HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: O(N), N
/// is the number of fields, since 7.4.0.
pub fn hpexpireat_with(
    key: impl ToArgs,
    unix_time_milliseconds: impl ToArgs,
    options: impl ToArgs,
    fields: impl ToArgs,
) -> Cmd {
    counted(cmd("HPEXPIREAT").arg(key).arg(unix_time_milliseconds).arg(options).arg("FIELDS"), 1, fields)
}

/// Returns the time at which fields expire, in Unix milliseconds.
///
/// `HPEXPIRETIME key FIELDS numfields field [field ...]`: O(N), N is the number of fields, since 7.4.0.
pub fn hpexpiretime(key: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HPEXPIRETIME").arg(key).arg("FIELDS"), 1, fields)
}

/// Returns fields' time to live in milliseconds.
///
/// `HPTTL key FIELDS numfields field [field ...]`: O(N), N is the number of fields, since 7.4.0.
pub fn hpttl(key: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HPTTL").arg(key).arg("FIELDS"), 1, fields)
}

/// Returns random fields.
///
/// `HRANDFIELD key [count [WITHVALUES]]`: O(N), N is the number of fields returned, since 6.2.0.
pub fn hrandfield(key: impl ToArgs) -> Cmd {
    cmd("HRANDFIELD").arg(key)
}

/// Returns random fields. With options.
///
/// `HRANDFIELD key [count [WITHVALUES]]`: O(N), N is the number of fields returned, since 6.2.0.
pub fn hrandfield_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("HRANDFIELD").arg(key).arg(options)
}

/// Iterates over the fields.
///
/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`: O(1) per call, O(N) for all, N is the
/// number of elements, since 2.8.0.
pub fn hscan(key: impl ToArgs, cursor: impl ToArgs) -> Cmd {
    cmd("HSCAN").arg(key).arg(cursor)
}

/// Iterates over the fields. With options.
///
/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`: O(1) per call, O(N) for all, N is the
/// number of elements, since 2.8.0.
pub fn hscan_with(key: impl ToArgs, cursor: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("HSCAN").arg(key).arg(cursor).arg(options)
}

/// Sets fields, and creates the hash if absent.
///
/// `HSET key field value [field value ...]`: O(N), N is the number of fields, since 2.0.0.
pub fn hset(key: impl ToArgs, field_values: impl ToArgs) -> Cmd {
    cmd("HSET").arg(key).arg(field_values)
}

/// Sets fields together with their expiry.
///
/// `HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT
/// unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]`: O(N), N is the number
/// of fields, since 8.0.0.
pub fn hsetex(key: impl ToArgs, field_values: impl ToArgs) -> Cmd {
    counted(cmd("HSETEX").arg(key).arg("FIELDS"), 2, field_values)
}

/// Sets fields together with their expiry. With options.
///
/// `HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT
/// unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]`: O(N), N is the number
/// of fields, since 8.0.0.
pub fn hsetex_with(key: impl ToArgs, options: impl ToArgs, field_values: impl ToArgs) -> Cmd {
    counted(cmd("HSETEX").arg(key).arg(options).arg("FIELDS"), 2, field_values)
}

/// Sets a field unless it exists.
///
/// `HSETNX key field value`: O(1), since 2.0.0.
pub fn hsetnx(key: impl ToArgs, field: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("HSETNX").arg(key).arg(field).arg(value)
}

/// Returns the length of a field's value.
///
/// `HSTRLEN key field`: O(1), since 3.2.0.
pub fn hstrlen(key: impl ToArgs, field: impl ToArgs) -> Cmd {
    cmd("HSTRLEN").arg(key).arg(field)
}

/// Returns fields' time to live in seconds.
///
/// `HTTL key FIELDS numfields field [field ...]`: O(N), N is the number of fields, since 7.4.0.
pub fn httl(key: impl ToArgs, fields: impl ToArgs) -> Cmd {
    counted(cmd("HTTL").arg(key).arg("FIELDS"), 1, fields)
}

/// Returns every field's value.
///
/// `HVALS key`: O(N), N is the size of the hash, since 2.0.0.
pub fn hvals(key: impl ToArgs) -> Cmd {
    cmd("HVALS").arg(key)
}
