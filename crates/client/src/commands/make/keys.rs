//! Commands of the group `generic`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Copies a value to another key.
///
/// `COPY source destination [DB destination-db] [REPLACE]`: O(N), N is the number of elements inside the
/// value, since 6.2.0.
pub fn copy(source: impl ToArgs, destination: impl ToArgs) -> Cmd {
    cmd("COPY").arg(source).arg(destination)
}

/// Copies a value to another key. With options.
///
/// `COPY source destination [DB destination-db] [REPLACE]`: O(N), N is the number of elements inside the
/// value, since 6.2.0.
pub fn copy_with(source: impl ToArgs, destination: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("COPY").arg(source).arg(destination).arg(options)
}

/// Deletes keys.
///
/// `DEL key [key ...]`: O(N), N is the number of elements inside the values, since 1.0.0.
pub fn del(keys: impl ToArgs) -> Cmd {
    cmd("DEL").arg(keys)
}

/// Returns a value in serialized form.
///
/// `DUMP key`: O(N), N is the size of the value, since 2.6.0.
pub fn dump(key: impl ToArgs) -> Cmd {
    cmd("DUMP").arg(key)
}

/// Counts how many of the given keys exist.
///
/// `EXISTS key [key ...]`: O(N), N is the number of keys, since 1.0.0.
pub fn exists(keys: impl ToArgs) -> Cmd {
    cmd("EXISTS").arg(keys)
}

/// Sets a key's time to live in seconds.
///
/// `EXPIRE key seconds [NX | XX | GT | LT]`: O(1), since 1.0.0.
pub fn expire(key: impl ToArgs, seconds: impl ToArgs) -> Cmd {
    cmd("EXPIRE").arg(key).arg(seconds)
}

/// Sets a key's time to live in seconds. With options.
///
/// `EXPIRE key seconds [NX | XX | GT | LT]`: O(1), since 1.0.0.
pub fn expire_with(key: impl ToArgs, seconds: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("EXPIRE").arg(key).arg(seconds).arg(options)
}

/// Sets the time at which a key expires, in Unix seconds.
///
/// `EXPIREAT key unix-time-seconds [NX | XX | GT | LT]`: O(1), since 1.2.0.
pub fn expireat(key: impl ToArgs, unix_time_seconds: impl ToArgs) -> Cmd {
    cmd("EXPIREAT").arg(key).arg(unix_time_seconds)
}

/// Sets the time at which a key expires, in Unix seconds. With options.
///
/// `EXPIREAT key unix-time-seconds [NX | XX | GT | LT]`: O(1), since 1.2.0.
pub fn expireat_with(key: impl ToArgs, unix_time_seconds: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("EXPIREAT").arg(key).arg(unix_time_seconds).arg(options)
}

/// Returns the time at which a key expires, in Unix seconds.
///
/// `EXPIRETIME key`: O(1), since 7.0.0.
pub fn expiretime(key: impl ToArgs) -> Cmd {
    cmd("EXPIRETIME").arg(key)
}

/// Lists the keys that match a pattern.
///
/// `KEYS pattern`: O(N), N is the number of keys in the database, since 1.0.0.
pub fn keys(pattern: impl ToArgs) -> Cmd {
    cmd("KEYS").arg(pattern)
}

/// Moves keys to another server.
///
/// `MIGRATE host port <key | ""> destination-db timeout [COPY] [REPLACE] [AUTH password | AUTH2 username
/// password] [KEYS key [key ...]]`: O(N), N is the size of the values, plus their transfer, since 2.6.0.
pub fn migrate(
    host: impl ToArgs,
    port: impl ToArgs,
    key: impl ToArgs,
    destination_db: impl ToArgs,
    timeout: impl ToArgs,
) -> Cmd {
    cmd("MIGRATE").arg(host).arg(port).arg(key).arg(destination_db).arg(timeout)
}

/// Moves keys to another server. With options.
///
/// `MIGRATE host port <key | ""> destination-db timeout [COPY] [REPLACE] [AUTH password | AUTH2 username
/// password] [KEYS key [key ...]]`: O(N), N is the size of the values, plus their transfer, since 2.6.0.
pub fn migrate_with(
    host: impl ToArgs,
    port: impl ToArgs,
    key: impl ToArgs,
    destination_db: impl ToArgs,
    timeout: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("MIGRATE").arg(host).arg(port).arg(key).arg(destination_db).arg(timeout).arg(options)
}

/// Moves a key to another database.
///
/// `MOVE key db`: O(1), since 1.0.0.
pub fn move_(key: impl ToArgs, db: impl ToArgs) -> Cmd {
    cmd("MOVE").arg(key).arg(db)
}

/// Makes a key stay until it is deleted.
///
/// `PERSIST key`: O(1), since 2.2.0.
pub fn persist(key: impl ToArgs) -> Cmd {
    cmd("PERSIST").arg(key)
}

/// Sets a key's time to live in milliseconds.
///
/// `PEXPIRE key milliseconds [NX | XX | GT | LT]`: O(1), since 2.6.0.
pub fn pexpire(key: impl ToArgs, milliseconds: impl ToArgs) -> Cmd {
    cmd("PEXPIRE").arg(key).arg(milliseconds)
}

/// Sets a key's time to live in milliseconds. With options.
///
/// `PEXPIRE key milliseconds [NX | XX | GT | LT]`: O(1), since 2.6.0.
pub fn pexpire_with(key: impl ToArgs, milliseconds: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("PEXPIRE").arg(key).arg(milliseconds).arg(options)
}

/// Sets the time at which a key expires, in Unix milliseconds.
///
/// `PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]`: O(1), since 2.6.0.
pub fn pexpireat(key: impl ToArgs, unix_time_milliseconds: impl ToArgs) -> Cmd {
    cmd("PEXPIREAT").arg(key).arg(unix_time_milliseconds)
}

/// Sets the time at which a key expires, in Unix milliseconds. With options.
///
/// `PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]`: O(1), since 2.6.0.
pub fn pexpireat_with(key: impl ToArgs, unix_time_milliseconds: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("PEXPIREAT").arg(key).arg(unix_time_milliseconds).arg(options)
}

/// Returns the time at which a key expires, in Unix milliseconds.
///
/// `PEXPIRETIME key`: O(1), since 7.0.0.
pub fn pexpiretime(key: impl ToArgs) -> Cmd {
    cmd("PEXPIRETIME").arg(key)
}

/// Returns a key's time to live in milliseconds.
///
/// `PTTL key`: O(1), since 2.6.0.
pub fn pttl(key: impl ToArgs) -> Cmd {
    cmd("PTTL").arg(key)
}

/// Returns a random key.
///
/// `RANDOMKEY`: O(1), since 1.0.0.
pub fn randomkey() -> Cmd {
    cmd("RANDOMKEY")
}

/// Renames a key, and replaces the key that had the new name.
///
/// `RENAME key newkey`: O(1), since 1.0.0.
pub fn rename(key: impl ToArgs, newkey: impl ToArgs) -> Cmd {
    cmd("RENAME").arg(key).arg(newkey)
}

/// Renames a key unless the new name is taken.
///
/// `RENAMENX key newkey`: O(1), since 1.0.0.
pub fn renamenx(key: impl ToArgs, newkey: impl ToArgs) -> Cmd {
    cmd("RENAMENX").arg(key).arg(newkey)
}

/// Creates a key from a serialized value.
///
/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`: O(N), N is
/// the number of elements inside the value, since 2.6.0.
pub fn restore(key: impl ToArgs, ttl: impl ToArgs, serialized_value: impl ToArgs) -> Cmd {
    cmd("RESTORE").arg(key).arg(ttl).arg(serialized_value)
}

/// Creates a key from a serialized value. With options.
///
/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`: O(N), N is
/// the number of elements inside the value, since 2.6.0.
pub fn restore_with(
    key: impl ToArgs,
    ttl: impl ToArgs,
    serialized_value: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("RESTORE").arg(key).arg(ttl).arg(serialized_value).arg(options)
}

/// Iterates over the keys of the selected database.
///
/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`: O(1) per call, O(N) for all, N is the number of
/// elements, since 2.8.0.
pub fn scan(cursor: impl ToArgs) -> Cmd {
    cmd("SCAN").arg(cursor)
}

/// Iterates over the keys of the selected database. With options.
///
/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`: O(1) per call, O(N) for all, N is the number of
/// elements, since 2.8.0.
pub fn scan_with(cursor: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("SCAN").arg(cursor).arg(options)
}

/// Sorts the elements of a list, set or sorted set, and can store the result.
///
/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE
/// destination]`: O(N+M*log(M)), N is the number of elements, M of those returned, since 1.0.0.
pub fn sort(key: impl ToArgs) -> Cmd {
    cmd("SORT").arg(key)
}

/// Sorts the elements of a list, set or sorted set, and can store the result. With options.
///
/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE
/// destination]`: O(N+M*log(M)), N is the number of elements, M of those returned, since 1.0.0.
pub fn sort_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("SORT").arg(key).arg(options)
}

/// Sorts the elements of a list, set or sorted set.
///
/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]`:
/// O(N+M*log(M)), N is the number of elements, M of those returned, since 7.0.0.
pub fn sort_ro(key: impl ToArgs) -> Cmd {
    cmd("SORT_RO").arg(key)
}

/// Sorts the elements of a list, set or sorted set. With options.
///
/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]`:
/// O(N+M*log(M)), N is the number of elements, M of those returned, since 7.0.0.
pub fn sort_ro_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("SORT_RO").arg(key).arg(options)
}

/// Marks keys as just used and counts those that exist.
///
/// `TOUCH key [key ...]`: O(N), N is the number of keys, since 3.2.1.
pub fn touch(keys: impl ToArgs) -> Cmd {
    cmd("TOUCH").arg(keys)
}

/// Returns a key's time to live in seconds.
///
/// `TTL key`: O(1), since 1.0.0.
pub fn ttl(key: impl ToArgs) -> Cmd {
    cmd("TTL").arg(key)
}

/// Names the type of a value.
///
/// `TYPE key`: O(1), since 1.0.0.
pub fn type_(key: impl ToArgs) -> Cmd {
    cmd("TYPE").arg(key)
}

/// Deletes keys and frees large values in the background.
///
/// `UNLINK key [key ...]`: O(1) per key; large values are freed in the background, since 4.0.0.
pub fn unlink(keys: impl ToArgs) -> Cmd {
    cmd("UNLINK").arg(keys)
}

/// Waits until replicas have this connection's writes.
///
/// `WAIT numreplicas timeout`: O(1), since 3.0.0.
pub fn wait(numreplicas: impl ToArgs, timeout: impl ToArgs) -> Cmd {
    cmd("WAIT").arg(numreplicas).arg(timeout)
}

/// Waits until this connection's writes are on disk, here and on replicas.
///
/// `WAITAOF numlocal numreplicas timeout`: O(1), since 7.2.0.
pub fn waitaof(numlocal: impl ToArgs, numreplicas: impl ToArgs, timeout: impl ToArgs) -> Cmd {
    cmd("WAITAOF").arg(numlocal).arg(numreplicas).arg(timeout)
}

/// Names the encoding of a value.
///
/// `OBJECT ENCODING key`: O(1), since 2.2.3.
pub fn object_encoding(key: impl ToArgs) -> Cmd {
    cmd("OBJECT").arg("ENCODING").arg(key)
}

/// Returns the access frequency counter of a key.
///
/// `OBJECT FREQ key`: O(1), since 4.0.0.
pub fn object_freq(key: impl ToArgs) -> Cmd {
    cmd("OBJECT").arg("FREQ").arg(key)
}

/// Shows what the subcommands do.
///
/// `OBJECT HELP`: O(1), since 6.2.0.
pub fn object_help() -> Cmd {
    cmd("OBJECT").arg("HELP")
}

/// Returns how long a key has not been used, in seconds.
///
/// `OBJECT IDLETIME key`: O(1), since 2.2.3.
pub fn object_idletime(key: impl ToArgs) -> Cmd {
    cmd("OBJECT").arg("IDLETIME").arg(key)
}

/// Returns the reference count of a value.
///
/// `OBJECT REFCOUNT key`: O(1), since 2.2.3.
pub fn object_refcount(key: impl ToArgs) -> Cmd {
    cmd("OBJECT").arg("REFCOUNT").arg(key)
}
