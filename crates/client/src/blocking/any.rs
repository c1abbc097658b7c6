// Long because: one trait has a method for each command.
//! A method for each command, with the type that the caller asks for.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use towline_client_proto::Error;

use crate::args::ToArgs;
use crate::cmd::Cmd;
use crate::commands::make;
use crate::value::FromReply;

/// A method for each command; the caller says what the reply is to be. See [`crate::commands`].
pub trait Commands {
    /// Sends a command. What the methods have in common: their errors are those of
    /// [`Client::query`](super::Client::query).
    fn run<T: FromReply>(&self, cmd: Cmd) -> Result<T, Error>;

    /// Adds text to the end of a string, which is created if absent.
    fn append<T: FromReply>(&self, key: impl ToArgs, value: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::append(key, value))
    }

    /// Subtracts one from an integer; an absent key counts as 0.
    fn decr<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::decr(key))
    }

    /// Subtracts a number from an integer; an absent key counts as 0.
    fn decrby<T: FromReply>(&self, key: impl ToArgs, decrement: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::decrby(key, decrement))
    }

    /// Deletes a key if it holds the given string.
    fn delifeq<T: FromReply>(&self, key: impl ToArgs, value: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::delifeq(key, value))
    }

    /// Returns a string.
    fn get<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::get(key))
    }

    /// Returns a string and deletes its key.
    fn getdel<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::getdel(key))
    }

    /// Returns a string and changes its expiry.
    fn getex<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::getex(key))
    }

    /// Returns a string and changes its expiry. With options.
    fn getex_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::getex_with(key, options))
    }

    /// Returns a part of a string.
    fn getrange<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::strings::getrange(key, start, end))
    }

    /// Sets a string and returns the old one.
    fn getset<T: FromReply>(&self, key: impl ToArgs, value: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::getset(key, value))
    }

    /// Adds one to an integer; an absent key counts as 0.
    fn incr<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::incr(key))
    }

    /// Adds a number to an integer; an absent key counts as 0.
    fn incrby<T: FromReply>(&self, key: impl ToArgs, increment: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::incrby(key, increment))
    }

    /// Adds a decimal number; an absent key counts as 0.
    fn incrbyfloat<T: FromReply>(&self, key: impl ToArgs, increment: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::incrbyfloat(key, increment))
    }

    /// Finds the longest common subsequence of two strings.
    fn lcs<T: FromReply>(&self, key1: impl ToArgs, key2: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::lcs(key1, key2))
    }

    /// Finds the longest common subsequence of two strings. With options.
    fn lcs_with<T: FromReply>(
        &self,
        key1: impl ToArgs,
        key2: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::strings::lcs_with(key1, key2, options))
    }

    /// Returns several strings.
    fn mget<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::mget(keys))
    }

    /// Sets several strings.
    fn mset<T: FromReply>(&self, key_values: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::mset(key_values))
    }

    /// Sets several strings together with one expiry.
    fn msetex<T: FromReply>(&self, key_values: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::msetex(key_values))
    }

    /// Sets several strings together with one expiry. With options.
    fn msetex_with<T: FromReply>(&self, key_values: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::msetex_with(key_values, options))
    }

    /// Sets several strings unless any of the keys exists.
    fn msetnx<T: FromReply>(&self, key_values: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::msetnx(key_values))
    }

    /// Sets a string with a time to live in milliseconds.
    fn psetex<T: FromReply>(
        &self,
        key: impl ToArgs,
        milliseconds: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::strings::psetex(key, milliseconds, value))
    }

    /// Sets a string, whatever type the key had.
    fn set<T: FromReply>(&self, key: impl ToArgs, value: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::set(key, value))
    }

    /// Sets a string, whatever type the key had. With options.
    fn set_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        value: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::strings::set_with(key, value, options))
    }

    /// Sets a string with a time to live in seconds.
    fn setex<T: FromReply>(
        &self,
        key: impl ToArgs,
        seconds: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::strings::setex(key, seconds, value))
    }

    /// Sets a string unless the key exists.
    fn setnx<T: FromReply>(&self, key: impl ToArgs, value: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::setnx(key, value))
    }

    /// Overwrites a part of a string from an offset on.
    fn setrange<T: FromReply>(
        &self,
        key: impl ToArgs,
        offset: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::strings::setrange(key, offset, value))
    }

    /// Returns the length of a string.
    fn strlen<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::strings::strlen(key))
    }

    /// Returns a part of a string.
    fn substr<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::strings::substr(key, start, end))
    }

    /// Counts the set bits of a string, or of a part of it.
    fn bitcount<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bitmaps::bitcount(key))
    }

    /// Counts the set bits of a string, or of a part of it. With options.
    fn bitcount_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::bitmaps::bitcount_with(key, options))
    }

    /// Reads, sets and increments integers of any width inside a string.
    fn bitfield<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bitmaps::bitfield(key))
    }

    /// Reads, sets and increments integers of any width inside a string. With options.
    fn bitfield_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::bitmaps::bitfield_with(key, options))
    }

    /// Reads integers of any width inside a string.
    fn bitfield_ro<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bitmaps::bitfield_ro(key))
    }

    /// Reads integers of any width inside a string. With options.
    fn bitfield_ro_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::bitmaps::bitfield_ro_with(key, options))
    }

    /// Combines strings bit by bit and stores the result.
    fn bitop<T: FromReply>(
        &self,
        choice: impl ToArgs,
        destkey: impl ToArgs,
        keys: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bitmaps::bitop(choice, destkey, keys))
    }

    /// Finds the first bit that is set or clear.
    fn bitpos<T: FromReply>(&self, key: impl ToArgs, bit: impl ToArgs) -> Result<T, Error> {
        self.run(make::bitmaps::bitpos(key, bit))
    }

    /// Finds the first bit that is set or clear. With options.
    fn bitpos_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        bit: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bitmaps::bitpos_with(key, bit, options))
    }

    /// Returns one bit of a string.
    fn getbit<T: FromReply>(&self, key: impl ToArgs, offset: impl ToArgs) -> Result<T, Error> {
        self.run(make::bitmaps::getbit(key, offset))
    }

    /// Sets or clears one bit of a string.
    fn setbit<T: FromReply>(
        &self,
        key: impl ToArgs,
        offset: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bitmaps::setbit(key, offset, value))
    }

    /// Moves an element from one list's end to another's; waits for one if need be.
    fn blmove<T: FromReply>(
        &self,
        source: impl ToArgs,
        destination: impl ToArgs,
        where_: impl ToArgs,
        where_2: impl ToArgs,
        timeout: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::blmove(source, destination, where_, where_2, timeout))
    }

    /// Pops elements from the first list that has any; waits for some if need be.
    fn blmpop<T: FromReply>(
        &self,
        timeout: impl ToArgs,
        keys: impl ToArgs,
        where_: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::blmpop(timeout, keys, where_))
    }

    /// Pops elements from the first list that has any; waits for some if need be. With options.
    fn blmpop_with<T: FromReply>(
        &self,
        timeout: impl ToArgs,
        keys: impl ToArgs,
        where_: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::blmpop_with(timeout, keys, where_, options))
    }

    /// Pops the first element of the first list that has any; waits for one if need be.
    fn blpop<T: FromReply>(&self, keys: impl ToArgs, timeout: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::blpop(keys, timeout))
    }

    /// Pops the last element of the first list that has any; waits for one if need be.
    fn brpop<T: FromReply>(&self, keys: impl ToArgs, timeout: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::brpop(keys, timeout))
    }

    /// Moves the last element of a list to the front of another; waits for one if need be.
    fn brpoplpush<T: FromReply>(
        &self,
        source: impl ToArgs,
        destination: impl ToArgs,
        timeout: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::brpoplpush(source, destination, timeout))
    }

    /// Returns the element at an index.
    fn lindex<T: FromReply>(&self, key: impl ToArgs, index: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::lindex(key, index))
    }

    /// Inserts an element before or after another.
    fn linsert<T: FromReply>(
        &self,
        key: impl ToArgs,
        where_: impl ToArgs,
        pivot: impl ToArgs,
        element: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::linsert(key, where_, pivot, element))
    }

    /// Counts the elements.
    fn llen<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::llen(key))
    }

    /// Moves an element from one list's end to another's.
    fn lmove<T: FromReply>(
        &self,
        source: impl ToArgs,
        destination: impl ToArgs,
        where_: impl ToArgs,
        where_2: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::lmove(source, destination, where_, where_2))
    }

    /// Pops elements from the first list that has any.
    fn lmpop<T: FromReply>(&self, keys: impl ToArgs, where_: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::lmpop(keys, where_))
    }

    /// Pops elements from the first list that has any. With options.
    fn lmpop_with<T: FromReply>(
        &self,
        keys: impl ToArgs,
        where_: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::lmpop_with(keys, where_, options))
    }

    /// Pops elements from the front.
    fn lpop<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::lpop(key))
    }

    /// Pops elements from the front. With options.
    fn lpop_with<T: FromReply>(&self, key: impl ToArgs, count: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::lpop_with(key, count))
    }

    /// Finds the indexes of equal elements.
    fn lpos<T: FromReply>(&self, key: impl ToArgs, element: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::lpos(key, element))
    }

    /// Finds the indexes of equal elements. With options.
    fn lpos_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        element: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::lpos_with(key, element, options))
    }

    /// Adds elements to the front, and creates the list if absent.
    fn lpush<T: FromReply>(&self, key: impl ToArgs, elements: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::lpush(key, elements))
    }

    /// Adds elements to the front if the list exists.
    fn lpushx<T: FromReply>(&self, key: impl ToArgs, elements: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::lpushx(key, elements))
    }

    /// Returns a range of elements.
    fn lrange<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::lrange(key, start, stop))
    }

    /// Removes elements that are equal to a value.
    fn lrem<T: FromReply>(
        &self,
        key: impl ToArgs,
        count: impl ToArgs,
        element: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::lrem(key, count, element))
    }

    /// Replaces the element at an index.
    fn lset<T: FromReply>(
        &self,
        key: impl ToArgs,
        index: impl ToArgs,
        element: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::lset(key, index, element))
    }

    /// Keeps a range of elements and removes the others.
    fn ltrim<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::lists::ltrim(key, start, stop))
    }

    /// Pops elements from the end.
    fn rpop<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::rpop(key))
    }

    /// Pops elements from the end. With options.
    fn rpop_with<T: FromReply>(&self, key: impl ToArgs, count: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::rpop_with(key, count))
    }

    /// Moves the last element of a list to the front of another.
    fn rpoplpush<T: FromReply>(&self, source: impl ToArgs, destination: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::rpoplpush(source, destination))
    }

    /// Adds elements to the end, and creates the list if absent.
    fn rpush<T: FromReply>(&self, key: impl ToArgs, elements: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::rpush(key, elements))
    }

    /// Adds elements to the end if the list exists.
    fn rpushx<T: FromReply>(&self, key: impl ToArgs, elements: impl ToArgs) -> Result<T, Error> {
        self.run(make::lists::rpushx(key, elements))
    }

    /// Deletes fields, and the hash when none is left.
    fn hdel<T: FromReply>(&self, key: impl ToArgs, fields: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hdel(key, fields))
    }

    /// Tells whether a field exists.
    fn hexists<T: FromReply>(&self, key: impl ToArgs, field: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hexists(key, field))
    }

    /// Sets fields' time to live in seconds.
    fn hexpire<T: FromReply>(
        &self,
        key: impl ToArgs,
        seconds: impl ToArgs,
        fields: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hexpire(key, seconds, fields))
    }

    /// Sets fields' time to live in seconds. With options.
    fn hexpire_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        seconds: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hexpire_with(key, seconds, options, fields))
    }

    /// Sets the time at which fields expire, in Unix seconds.
    fn hexpireat<T: FromReply>(
        &self,
        key: impl ToArgs,
        unix_time_seconds: impl ToArgs,
        fields: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hexpireat(key, unix_time_seconds, fields))
    }

    /// Sets the time at which fields expire, in Unix seconds. With options.
    fn hexpireat_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        unix_time_seconds: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hexpireat_with(key, unix_time_seconds, options, fields))
    }

    /// Returns the time at which fields expire, in Unix seconds.
    fn hexpiretime<T: FromReply>(&self, key: impl ToArgs, fields: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hexpiretime(key, fields))
    }

    /// Returns the value of a field.
    fn hget<T: FromReply>(&self, key: impl ToArgs, field: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hget(key, field))
    }

    /// Returns every field with its value.
    fn hgetall<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hgetall(key))
    }

    /// Returns the values of fields and deletes them.
    fn hgetdel<T: FromReply>(&self, key: impl ToArgs, fields: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hgetdel(key, fields))
    }

    /// Returns the values of fields and changes their expiry.
    fn hgetex<T: FromReply>(&self, key: impl ToArgs, fields: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hgetex(key, fields))
    }

    /// Returns the values of fields and changes their expiry. With options.
    fn hgetex_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hgetex_with(key, options, fields))
    }

    /// Adds to the integer in a field; an absent one counts as 0.
    fn hincrby<T: FromReply>(
        &self,
        key: impl ToArgs,
        field: impl ToArgs,
        increment: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hincrby(key, field, increment))
    }

    /// Adds to the decimal number in a field; an absent one counts as 0.
    fn hincrbyfloat<T: FromReply>(
        &self,
        key: impl ToArgs,
        field: impl ToArgs,
        increment: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hincrbyfloat(key, field, increment))
    }

    /// Returns every field's name.
    fn hkeys<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hkeys(key))
    }

    /// Counts the fields.
    fn hlen<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hlen(key))
    }

    /// Returns the values of several fields.
    fn hmget<T: FromReply>(&self, key: impl ToArgs, fields: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hmget(key, fields))
    }

    /// Sets several fields.
    fn hmset<T: FromReply>(&self, key: impl ToArgs, field_values: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hmset(key, field_values))
    }

    /// Makes fields stay until they are deleted.
    fn hpersist<T: FromReply>(&self, key: impl ToArgs, fields: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hpersist(key, fields))
    }

    /// Sets fields' time to live in milliseconds.
    fn hpexpire<T: FromReply>(
        &self,
        key: impl ToArgs,
        milliseconds: impl ToArgs,
        fields: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hpexpire(key, milliseconds, fields))
    }

    /// Sets fields' time to live in milliseconds. With options.
    fn hpexpire_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        milliseconds: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hpexpire_with(key, milliseconds, options, fields))
    }

    /// Sets the time at which fields expire, in Unix milliseconds.
    fn hpexpireat<T: FromReply>(
        &self,
        key: impl ToArgs,
        unix_time_milliseconds: impl ToArgs,
        fields: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hpexpireat(key, unix_time_milliseconds, fields))
    }

    /// Sets the time at which fields expire, in Unix milliseconds. With options.
    fn hpexpireat_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        unix_time_milliseconds: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hpexpireat_with(key, unix_time_milliseconds, options, fields))
    }

    /// Returns the time at which fields expire, in Unix milliseconds.
    fn hpexpiretime<T: FromReply>(&self, key: impl ToArgs, fields: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hpexpiretime(key, fields))
    }

    /// Returns fields' time to live in milliseconds.
    fn hpttl<T: FromReply>(&self, key: impl ToArgs, fields: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hpttl(key, fields))
    }

    /// Returns random fields.
    fn hrandfield<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hrandfield(key))
    }

    /// Returns random fields. With options.
    fn hrandfield_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hrandfield_with(key, options))
    }

    /// Iterates over the fields.
    fn hscan<T: FromReply>(&self, key: impl ToArgs, cursor: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hscan(key, cursor))
    }

    /// Iterates over the fields. With options.
    fn hscan_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        cursor: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hscan_with(key, cursor, options))
    }

    /// Sets fields, and creates the hash if absent.
    fn hset<T: FromReply>(&self, key: impl ToArgs, field_values: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hset(key, field_values))
    }

    /// Sets fields together with their expiry.
    fn hsetex<T: FromReply>(&self, key: impl ToArgs, field_values: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hsetex(key, field_values))
    }

    /// Sets fields together with their expiry. With options.
    fn hsetex_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        field_values: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hsetex_with(key, options, field_values))
    }

    /// Sets a field unless it exists.
    fn hsetnx<T: FromReply>(
        &self,
        key: impl ToArgs,
        field: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::hashes::hsetnx(key, field, value))
    }

    /// Returns the length of a field's value.
    fn hstrlen<T: FromReply>(&self, key: impl ToArgs, field: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hstrlen(key, field))
    }

    /// Returns fields' time to live in seconds.
    fn httl<T: FromReply>(&self, key: impl ToArgs, fields: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::httl(key, fields))
    }

    /// Returns every field's value.
    fn hvals<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::hashes::hvals(key))
    }

    /// Adds members, and creates the set if absent.
    fn sadd<T: FromReply>(&self, key: impl ToArgs, members: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sadd(key, members))
    }

    /// Counts the members.
    fn scard<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::scard(key))
    }

    /// Returns the members of the first set that no other set has.
    fn sdiff<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sdiff(keys))
    }

    /// Stores the members of the first set that no other set has.
    fn sdiffstore<T: FromReply>(&self, destination: impl ToArgs, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sdiffstore(destination, keys))
    }

    /// Returns the members that all sets share.
    fn sinter<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sinter(keys))
    }

    /// Counts the members that all sets share.
    fn sintercard<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sintercard(keys))
    }

    /// Counts the members that all sets share. With options.
    fn sintercard_with<T: FromReply>(&self, keys: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sintercard_with(keys, options))
    }

    /// Stores the members that all sets share.
    fn sinterstore<T: FromReply>(&self, destination: impl ToArgs, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sinterstore(destination, keys))
    }

    /// Tells whether a member is in the set.
    fn sismember<T: FromReply>(&self, key: impl ToArgs, member: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sismember(key, member))
    }

    /// Returns every member.
    fn smembers<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::smembers(key))
    }

    /// Tells for each member whether it is in the set.
    fn smismember<T: FromReply>(&self, key: impl ToArgs, members: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::smismember(key, members))
    }

    /// Moves a member to another set.
    fn smove<T: FromReply>(
        &self,
        source: impl ToArgs,
        destination: impl ToArgs,
        member: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::sets::smove(source, destination, member))
    }

    /// Removes and returns random members.
    fn spop<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::spop(key))
    }

    /// Removes and returns random members. With options.
    fn spop_with<T: FromReply>(&self, key: impl ToArgs, count: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::spop_with(key, count))
    }

    /// Returns random members.
    fn srandmember<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::srandmember(key))
    }

    /// Returns random members. With options.
    fn srandmember_with<T: FromReply>(&self, key: impl ToArgs, count: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::srandmember_with(key, count))
    }

    /// Removes members, and the set when none is left.
    fn srem<T: FromReply>(&self, key: impl ToArgs, members: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::srem(key, members))
    }

    /// Iterates over the members.
    fn sscan<T: FromReply>(&self, key: impl ToArgs, cursor: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sscan(key, cursor))
    }

    /// Iterates over the members. With options.
    fn sscan_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        cursor: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::sets::sscan_with(key, cursor, options))
    }

    /// Returns the members that any of the sets has.
    fn sunion<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sunion(keys))
    }

    /// Stores the members that any of the sets has.
    fn sunionstore<T: FromReply>(&self, destination: impl ToArgs, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::sets::sunionstore(destination, keys))
    }

    /// Pops members from the first sorted set that has any; waits for some if need be.
    fn bzmpop<T: FromReply>(
        &self,
        timeout: impl ToArgs,
        keys: impl ToArgs,
        where_: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::bzmpop(timeout, keys, where_))
    }

    /// Pops members from the first sorted set that has any; waits for some if need be. With options.
    fn bzmpop_with<T: FromReply>(
        &self,
        timeout: impl ToArgs,
        keys: impl ToArgs,
        where_: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::bzmpop_with(timeout, keys, where_, options))
    }

    /// Pops the highest member of the first sorted set that has any; waits for one if need be.
    fn bzpopmax<T: FromReply>(&self, keys: impl ToArgs, timeout: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::bzpopmax(keys, timeout))
    }

    /// Pops the lowest member of the first sorted set that has any; waits for one if need be.
    fn bzpopmin<T: FromReply>(&self, keys: impl ToArgs, timeout: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::bzpopmin(keys, timeout))
    }

    /// Adds members or changes their scores.
    fn zadd<T: FromReply>(&self, key: impl ToArgs, score_members: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zadd(key, score_members))
    }

    /// Adds members or changes their scores. With options.
    fn zadd_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        score_members: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zadd_with(key, options, score_members))
    }

    /// Counts the members.
    fn zcard<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zcard(key))
    }

    /// Counts the members with scores in a range.
    fn zcount<T: FromReply>(&self, key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zcount(key, min, max))
    }

    /// Returns the members of the first sorted set that no other has.
    fn zdiff<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zdiff(keys))
    }

    /// Returns the members of the first sorted set that no other has. With options.
    fn zdiff_with<T: FromReply>(&self, keys: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zdiff_with(keys, options))
    }

    /// Stores the members of the first sorted set that no other has.
    fn zdiffstore<T: FromReply>(&self, destination: impl ToArgs, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zdiffstore(destination, keys))
    }

    /// Adds to the score of a member; an absent one counts as 0.
    fn zincrby<T: FromReply>(
        &self,
        key: impl ToArgs,
        increment: impl ToArgs,
        member: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zincrby(key, increment, member))
    }

    /// Returns the members that all sorted sets share.
    fn zinter<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zinter(keys))
    }

    /// Returns the members that all sorted sets share. With options.
    fn zinter_with<T: FromReply>(&self, keys: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zinter_with(keys, options))
    }

    /// Counts the members that all sorted sets share.
    fn zintercard<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zintercard(keys))
    }

    /// Counts the members that all sorted sets share. With options.
    fn zintercard_with<T: FromReply>(&self, keys: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zintercard_with(keys, options))
    }

    /// Stores the members that all sorted sets share.
    fn zinterstore<T: FromReply>(&self, destination: impl ToArgs, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zinterstore(destination, keys))
    }

    /// Stores the members that all sorted sets share. With options.
    fn zinterstore_with<T: FromReply>(
        &self,
        destination: impl ToArgs,
        keys: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zinterstore_with(destination, keys, options))
    }

    /// Counts the members between two strings.
    fn zlexcount<T: FromReply>(
        &self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zlexcount(key, min, max))
    }

    /// Pops members from the first sorted set that has any.
    fn zmpop<T: FromReply>(&self, keys: impl ToArgs, where_: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zmpop(keys, where_))
    }

    /// Pops members from the first sorted set that has any. With options.
    fn zmpop_with<T: FromReply>(
        &self,
        keys: impl ToArgs,
        where_: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zmpop_with(keys, where_, options))
    }

    /// Returns the scores of several members.
    fn zmscore<T: FromReply>(&self, key: impl ToArgs, members: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zmscore(key, members))
    }

    /// Pops the members with the highest scores.
    fn zpopmax<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zpopmax(key))
    }

    /// Pops the members with the highest scores. With options.
    fn zpopmax_with<T: FromReply>(&self, key: impl ToArgs, count: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zpopmax_with(key, count))
    }

    /// Pops the members with the lowest scores.
    fn zpopmin<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zpopmin(key))
    }

    /// Pops the members with the lowest scores. With options.
    fn zpopmin_with<T: FromReply>(&self, key: impl ToArgs, count: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zpopmin_with(key, count))
    }

    /// Returns random members.
    fn zrandmember<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zrandmember(key))
    }

    /// Returns random members. With options.
    fn zrandmember_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zrandmember_with(key, options))
    }

    /// Returns the members within a range of ranks, scores or strings.
    fn zrange<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrange(key, start, stop))
    }

    /// Returns the members within a range of ranks, scores or strings. With options.
    fn zrange_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrange_with(key, start, stop, options))
    }

    /// Returns the members between two strings.
    fn zrangebylex<T: FromReply>(
        &self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrangebylex(key, min, max))
    }

    /// Returns the members between two strings. With options.
    fn zrangebylex_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrangebylex_with(key, min, max, options))
    }

    /// Returns the members with scores in a range.
    fn zrangebyscore<T: FromReply>(
        &self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrangebyscore(key, min, max))
    }

    /// Returns the members with scores in a range. With options.
    fn zrangebyscore_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrangebyscore_with(key, min, max, options))
    }

    /// Stores the members within a range of ranks, scores or strings.
    fn zrangestore<T: FromReply>(
        &self,
        dst: impl ToArgs,
        src: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrangestore(dst, src, min, max))
    }

    /// Stores the members within a range of ranks, scores or strings. With options.
    fn zrangestore_with<T: FromReply>(
        &self,
        dst: impl ToArgs,
        src: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrangestore_with(dst, src, min, max, options))
    }

    /// Returns the rank of a member, lowest score first.
    fn zrank<T: FromReply>(&self, key: impl ToArgs, member: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zrank(key, member))
    }

    /// Returns the rank of a member, lowest score first. With options.
    fn zrank_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        member: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrank_with(key, member, options))
    }

    /// Removes members, and the sorted set when none is left.
    fn zrem<T: FromReply>(&self, key: impl ToArgs, members: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zrem(key, members))
    }

    /// Removes the members between two strings.
    fn zremrangebylex<T: FromReply>(
        &self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zremrangebylex(key, min, max))
    }

    /// Removes the members within a range of ranks.
    fn zremrangebyrank<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zremrangebyrank(key, start, stop))
    }

    /// Removes the members with scores in a range.
    fn zremrangebyscore<T: FromReply>(
        &self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zremrangebyscore(key, min, max))
    }

    /// Returns the members within a range of ranks, highest score first.
    fn zrevrange<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrevrange(key, start, stop))
    }

    /// Returns the members within a range of ranks, highest score first. With options.
    fn zrevrange_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrevrange_with(key, start, stop, options))
    }

    /// Returns the members between two strings, in reverse order.
    fn zrevrangebylex<T: FromReply>(
        &self,
        key: impl ToArgs,
        max: impl ToArgs,
        min: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrevrangebylex(key, max, min))
    }

    /// Returns the members between two strings, in reverse order. With options.
    fn zrevrangebylex_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        max: impl ToArgs,
        min: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrevrangebylex_with(key, max, min, options))
    }

    /// Returns the members with scores in a range, highest score first.
    fn zrevrangebyscore<T: FromReply>(
        &self,
        key: impl ToArgs,
        max: impl ToArgs,
        min: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrevrangebyscore(key, max, min))
    }

    /// Returns the members with scores in a range, highest score first. With options.
    fn zrevrangebyscore_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        max: impl ToArgs,
        min: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrevrangebyscore_with(key, max, min, options))
    }

    /// Returns the rank of a member, highest score first.
    fn zrevrank<T: FromReply>(&self, key: impl ToArgs, member: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zrevrank(key, member))
    }

    /// Returns the rank of a member, highest score first. With options.
    fn zrevrank_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        member: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zrevrank_with(key, member, options))
    }

    /// Iterates over the members and their scores.
    fn zscan<T: FromReply>(&self, key: impl ToArgs, cursor: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zscan(key, cursor))
    }

    /// Iterates over the members and their scores. With options.
    fn zscan_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        cursor: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zscan_with(key, cursor, options))
    }

    /// Returns the score of a member.
    fn zscore<T: FromReply>(&self, key: impl ToArgs, member: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zscore(key, member))
    }

    /// Returns the members that any of the sorted sets has.
    fn zunion<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zunion(keys))
    }

    /// Returns the members that any of the sorted sets has. With options.
    fn zunion_with<T: FromReply>(&self, keys: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zunion_with(keys, options))
    }

    /// Stores the members that any of the sorted sets has.
    fn zunionstore<T: FromReply>(&self, destination: impl ToArgs, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::zsets::zunionstore(destination, keys))
    }

    /// Stores the members that any of the sorted sets has. With options.
    fn zunionstore_with<T: FromReply>(
        &self,
        destination: impl ToArgs,
        keys: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::zsets::zunionstore_with(destination, keys, options))
    }

    /// Copies a value to another key.
    fn copy<T: FromReply>(&self, source: impl ToArgs, destination: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::copy(source, destination))
    }

    /// Copies a value to another key. With options.
    fn copy_with<T: FromReply>(
        &self,
        source: impl ToArgs,
        destination: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::copy_with(source, destination, options))
    }

    /// Deletes keys.
    fn del<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::del(keys))
    }

    /// Returns a value in serialized form.
    fn dump<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::dump(key))
    }

    /// Counts how many of the given keys exist.
    fn exists<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::exists(keys))
    }

    /// Sets a key's time to live in seconds.
    fn expire<T: FromReply>(&self, key: impl ToArgs, seconds: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::expire(key, seconds))
    }

    /// Sets a key's time to live in seconds. With options.
    fn expire_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        seconds: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::expire_with(key, seconds, options))
    }

    /// Sets the time at which a key expires, in Unix seconds.
    fn expireat<T: FromReply>(&self, key: impl ToArgs, unix_time_seconds: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::expireat(key, unix_time_seconds))
    }

    /// Sets the time at which a key expires, in Unix seconds. With options.
    fn expireat_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        unix_time_seconds: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::expireat_with(key, unix_time_seconds, options))
    }

    /// Returns the time at which a key expires, in Unix seconds.
    fn expiretime<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::expiretime(key))
    }

    /// Lists the keys that match a pattern.
    fn keys<T: FromReply>(&self, pattern: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::keys(pattern))
    }

    /// Moves keys to another server.
    fn migrate<T: FromReply>(
        &self,
        host: impl ToArgs,
        port: impl ToArgs,
        key: impl ToArgs,
        destination_db: impl ToArgs,
        timeout: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::migrate(host, port, key, destination_db, timeout))
    }

    /// Moves keys to another server. With options.
    fn migrate_with<T: FromReply>(
        &self,
        host: impl ToArgs,
        port: impl ToArgs,
        key: impl ToArgs,
        destination_db: impl ToArgs,
        timeout: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::migrate_with(host, port, key, destination_db, timeout, options))
    }

    /// Moves a key to another database.
    fn move_<T: FromReply>(&self, key: impl ToArgs, db: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::move_(key, db))
    }

    /// Makes a key stay until it is deleted.
    fn persist<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::persist(key))
    }

    /// Sets a key's time to live in milliseconds.
    fn pexpire<T: FromReply>(&self, key: impl ToArgs, milliseconds: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::pexpire(key, milliseconds))
    }

    /// Sets a key's time to live in milliseconds. With options.
    fn pexpire_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        milliseconds: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::pexpire_with(key, milliseconds, options))
    }

    /// Sets the time at which a key expires, in Unix milliseconds.
    fn pexpireat<T: FromReply>(
        &self,
        key: impl ToArgs,
        unix_time_milliseconds: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::pexpireat(key, unix_time_milliseconds))
    }

    /// Sets the time at which a key expires, in Unix milliseconds. With options.
    fn pexpireat_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        unix_time_milliseconds: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::pexpireat_with(key, unix_time_milliseconds, options))
    }

    /// Returns the time at which a key expires, in Unix milliseconds.
    fn pexpiretime<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::pexpiretime(key))
    }

    /// Returns a key's time to live in milliseconds.
    fn pttl<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::pttl(key))
    }

    /// Returns a random key.
    fn randomkey<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::keys::randomkey())
    }

    /// Renames a key, and replaces the key that had the new name.
    fn rename<T: FromReply>(&self, key: impl ToArgs, newkey: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::rename(key, newkey))
    }

    /// Renames a key unless the new name is taken.
    fn renamenx<T: FromReply>(&self, key: impl ToArgs, newkey: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::renamenx(key, newkey))
    }

    /// Creates a key from a serialized value.
    fn restore<T: FromReply>(
        &self,
        key: impl ToArgs,
        ttl: impl ToArgs,
        serialized_value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::restore(key, ttl, serialized_value))
    }

    /// Creates a key from a serialized value. With options.
    fn restore_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        ttl: impl ToArgs,
        serialized_value: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::restore_with(key, ttl, serialized_value, options))
    }

    /// Iterates over the keys of the selected database.
    fn scan<T: FromReply>(&self, cursor: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::scan(cursor))
    }

    /// Iterates over the keys of the selected database. With options.
    fn scan_with<T: FromReply>(&self, cursor: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::scan_with(cursor, options))
    }

    /// Sorts the elements of a list, set or sorted set, and can store the result.
    fn sort<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::sort(key))
    }

    /// Sorts the elements of a list, set or sorted set, and can store the result. With options.
    fn sort_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::sort_with(key, options))
    }

    /// Sorts the elements of a list, set or sorted set.
    fn sort_ro<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::sort_ro(key))
    }

    /// Sorts the elements of a list, set or sorted set. With options.
    fn sort_ro_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::sort_ro_with(key, options))
    }

    /// Marks keys as just used and counts those that exist.
    fn touch<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::touch(keys))
    }

    /// Returns a key's time to live in seconds.
    fn ttl<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::ttl(key))
    }

    /// Names the type of a value.
    fn type_<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::type_(key))
    }

    /// Deletes keys and frees large values in the background.
    fn unlink<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::unlink(keys))
    }

    /// Waits until replicas have this connection's writes.
    fn wait<T: FromReply>(&self, numreplicas: impl ToArgs, timeout: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::wait(numreplicas, timeout))
    }

    /// Waits until this connection's writes are on disk, here and on replicas.
    fn waitaof<T: FromReply>(
        &self,
        numlocal: impl ToArgs,
        numreplicas: impl ToArgs,
        timeout: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::keys::waitaof(numlocal, numreplicas, timeout))
    }

    /// Adds elements to a HyperLogLog.
    fn pfadd<T: FromReply>(&self, key: impl ToArgs, elements: impl ToArgs) -> Result<T, Error> {
        self.run(make::hyperloglog::pfadd(key, elements))
    }

    /// Estimates how many different elements were added.
    fn pfcount<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::hyperloglog::pfcount(keys))
    }

    /// Merges HyperLogLogs into one.
    fn pfmerge<T: FromReply>(&self, destkey: impl ToArgs, sourcekeys: impl ToArgs) -> Result<T, Error> {
        self.run(make::hyperloglog::pfmerge(destkey, sourcekeys))
    }

    /// Adds or moves members of a geospatial index.
    fn geoadd<T: FromReply>(
        &self,
        key: impl ToArgs,
        longitude_latitude_members: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::geoadd(key, longitude_latitude_members))
    }

    /// Adds or moves members of a geospatial index. With options.
    fn geoadd_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        longitude_latitude_members: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::geoadd_with(key, options, longitude_latitude_members))
    }

    /// Returns the distance between two members.
    fn geodist<T: FromReply>(
        &self,
        key: impl ToArgs,
        member1: impl ToArgs,
        member2: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::geodist(key, member1, member2))
    }

    /// Returns the distance between two members. With options.
    fn geodist_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        member1: impl ToArgs,
        member2: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::geodist_with(key, member1, member2, options))
    }

    /// Returns members' positions as geohash strings.
    fn geohash<T: FromReply>(&self, key: impl ToArgs, members: impl ToArgs) -> Result<T, Error> {
        self.run(make::geo::geohash(key, members))
    }

    /// Returns members' longitudes and latitudes.
    fn geopos<T: FromReply>(&self, key: impl ToArgs, members: impl ToArgs) -> Result<T, Error> {
        self.run(make::geo::geopos(key, members))
    }

    /// Finds the members within a circle, and can store them.
    fn georadius<T: FromReply>(
        &self,
        key: impl ToArgs,
        longitude: impl ToArgs,
        latitude: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::georadius(key, longitude, latitude, radius, unit))
    }

    /// Finds the members within a circle, and can store them. With options.
    fn georadius_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        longitude: impl ToArgs,
        latitude: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::georadius_with(key, longitude, latitude, radius, unit, options))
    }

    /// Finds the members within a circle.
    fn georadius_ro<T: FromReply>(
        &self,
        key: impl ToArgs,
        longitude: impl ToArgs,
        latitude: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::georadius_ro(key, longitude, latitude, radius, unit))
    }

    /// Finds the members within a circle. With options.
    fn georadius_ro_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        longitude: impl ToArgs,
        latitude: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::georadius_ro_with(key, longitude, latitude, radius, unit, options))
    }

    /// Finds the members within a circle around another member, and can store them.
    fn georadiusbymember<T: FromReply>(
        &self,
        key: impl ToArgs,
        member: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::georadiusbymember(key, member, radius, unit))
    }

    /// Finds the members within a circle around another member, and can store them. With options.
    fn georadiusbymember_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        member: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::georadiusbymember_with(key, member, radius, unit, options))
    }

    /// Finds the members within a circle around another member.
    fn georadiusbymember_ro<T: FromReply>(
        &self,
        key: impl ToArgs,
        member: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::georadiusbymember_ro(key, member, radius, unit))
    }

    /// Finds the members within a circle around another member. With options.
    fn georadiusbymember_ro_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        member: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::georadiusbymember_ro_with(key, member, radius, unit, options))
    }

    /// Finds the members within a circle, a box or a polygon.
    fn geosearch<T: FromReply>(&self, key: impl ToArgs, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::geo::geosearch(key, choice))
    }

    /// Finds the members within a circle, a box or a polygon. With options.
    fn geosearch_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        choice: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::geosearch_with(key, options, choice, options_2))
    }

    /// Stores the members within a circle, a box or a polygon in another key.
    fn geosearchstore<T: FromReply>(
        &self,
        destination: impl ToArgs,
        source: impl ToArgs,
        choice: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::geosearchstore(destination, source, choice))
    }

    /// Stores the members within a circle, a box or a polygon in another key. With options.
    fn geosearchstore_with<T: FromReply>(
        &self,
        destination: impl ToArgs,
        source: impl ToArgs,
        options: impl ToArgs,
        choice: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::geo::geosearchstore_with(destination, source, options, choice, options_2))
    }

    /// Drops the queued commands of a transaction.
    fn discard<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::transactions::discard())
    }

    /// Runs the queued commands of a transaction.
    fn exec<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::transactions::exec())
    }

    /// Begins a transaction.
    fn multi<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::transactions::multi())
    }

    /// Forgets the watched keys.
    fn unwatch<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::transactions::unwatch())
    }

    /// Makes the next transaction fail if any of the keys changes first.
    fn watch<T: FromReply>(&self, keys: impl ToArgs) -> Result<T, Error> {
        self.run(make::transactions::watch(keys))
    }

    /// Sends a message to a channel.
    fn publish<T: FromReply>(&self, channel: impl ToArgs, message: impl ToArgs) -> Result<T, Error> {
        self.run(make::pubsub::publish(channel, message))
    }

    /// Sends a message to a sharded channel.
    fn spublish<T: FromReply>(&self, shardchannel: impl ToArgs, message: impl ToArgs) -> Result<T, Error> {
        self.run(make::pubsub::spublish(shardchannel, message))
    }

    /// Authenticates this connection.
    fn auth<T: FromReply>(&self, password: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::auth(password))
    }

    /// Authenticates this connection. With options.
    fn auth_with<T: FromReply>(&self, username: impl ToArgs, password: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::auth_with(username, password))
    }

    /// Returns its argument.
    fn echo<T: FromReply>(&self, message: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::echo(message))
    }

    /// Starts a session: protocol version, login, name.
    fn hello<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::hello())
    }

    /// Starts a session: protocol version, login, name. With options.
    fn hello_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::hello_with(options))
    }

    /// Answers PONG, or its argument.
    fn ping<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::ping())
    }

    /// Answers PONG, or its argument. With options.
    fn ping_with<T: FromReply>(&self, message: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::ping_with(message))
    }

    /// Closes this connection.
    fn quit<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::quit())
    }

    /// Selects the database of this connection.
    fn select<T: FromReply>(&self, index: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::select(index))
    }

    /// Rewrites the append-only log in the background.
    fn bgrewriteaof<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::bgrewriteaof())
    }

    /// Saves a snapshot in the background.
    fn bgsave<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::bgsave())
    }

    /// Saves a snapshot in the background. With options.
    fn bgsave_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::bgsave_with(options))
    }

    /// Counts the keys of the selected database.
    fn dbsize<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::dbsize())
    }

    /// Hands the primary's role to one of its replicas.
    fn failover<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::failover())
    }

    /// Hands the primary's role to one of its replicas. With options.
    fn failover_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::failover_with(options))
    }

    /// Deletes every key of every database.
    fn flushall<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::flushall())
    }

    /// Deletes every key of every database. With options.
    fn flushall_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::flushall_with(options))
    }

    /// Deletes every key of the selected database.
    fn flushdb<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::flushdb())
    }

    /// Deletes every key of the selected database. With options.
    fn flushdb_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::flushdb_with(options))
    }

    /// Returns facts and counters about the server.
    fn info<T: FromReply>(&self, sections: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::info(sections))
    }

    /// Returns the time of the last successful save.
    fn lastsave<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::lastsave())
    }

    /// Draws a picture and tells the version.
    fn lolwut<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::lolwut())
    }

    /// Draws a picture and tells the version. With options.
    fn lolwut_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::lolwut_with(options))
    }

    /// Makes this server a replica of another, or a primary.
    fn replicaof<T: FromReply>(&self, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::replicaof(choice))
    }

    /// Shows the replication role.
    fn role<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::role())
    }

    /// Saves a snapshot and blocks the server meanwhile.
    fn save<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::save())
    }

    /// Saves if configured, then stops the server.
    fn shutdown<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::shutdown())
    }

    /// Saves if configured, then stops the server. With options.
    fn shutdown_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::shutdown_with(options))
    }

    /// Makes this server a replica of another, or a primary.
    fn slaveof<T: FromReply>(&self, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::slaveof(choice))
    }

    /// Swaps the contents of two databases.
    fn swapdb<T: FromReply>(&self, index1: impl ToArgs, index2: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::swapdb(index1, index2))
    }

    /// Returns the server's time.
    fn time<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::time())
    }

    /// Lets the next command use a slot that is being imported.
    fn asking<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::asking())
    }

    /// Iterates over the keys of the whole cluster.
    fn clusterscan<T: FromReply>(&self, cursor: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::clusterscan(cursor))
    }

    /// Iterates over the keys of the whole cluster. With options.
    fn clusterscan_with<T: FromReply>(&self, cursor: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::clusterscan_with(cursor, options))
    }

    /// Allows reads from this replica on this connection.
    fn readonly<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::readonly())
    }

    /// Ends the effect of READONLY.
    fn readwrite<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::readwrite())
    }

    /// Runs a Lua script.
    fn eval<T: FromReply>(
        &self,
        script: impl ToArgs,
        keys: impl ToArgs,
        args: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::scripting::eval(script, keys, args))
    }

    /// Runs a Lua script that may not write.
    fn eval_ro<T: FromReply>(
        &self,
        script: impl ToArgs,
        keys: impl ToArgs,
        args: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::scripting::eval_ro(script, keys, args))
    }

    /// Runs a cached Lua script by its digest.
    fn evalsha<T: FromReply>(
        &self,
        sha1: impl ToArgs,
        keys: impl ToArgs,
        args: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::scripting::evalsha(sha1, keys, args))
    }

    /// Runs a cached Lua script that may not write, by its digest.
    fn evalsha_ro<T: FromReply>(
        &self,
        sha1: impl ToArgs,
        keys: impl ToArgs,
        args: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::scripting::evalsha_ro(sha1, keys, args))
    }

    /// Calls a function.
    fn fcall<T: FromReply>(
        &self,
        function: impl ToArgs,
        keys: impl ToArgs,
        args: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::scripting::fcall(function, keys, args))
    }

    /// Calls a function that may not write.
    fn fcall_ro<T: FromReply>(
        &self,
        function: impl ToArgs,
        keys: impl ToArgs,
        args: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::scripting::fcall_ro(function, keys, args))
    }

    /// Acknowledges entries for a consumer group.
    fn xack<T: FromReply>(&self, key: impl ToArgs, group: impl ToArgs, ids: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xack(key, group, ids))
    }

    /// Acknowledges entries for a consumer group and deletes them.
    fn xackdel<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        ids: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xackdel(key, group, ids))
    }

    /// Acknowledges entries for a consumer group and deletes them. With options.
    fn xackdel_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        options: impl ToArgs,
        ids: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xackdel_with(key, group, options, ids))
    }

    /// Appends an entry, and creates the stream if absent.
    fn xadd<T: FromReply>(
        &self,
        key: impl ToArgs,
        id: impl ToArgs,
        field_values: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xadd(key, id, field_values))
    }

    /// Appends an entry, and creates the stream if absent. With options.
    fn xadd_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        id: impl ToArgs,
        field_values: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xadd_with(key, options, id, field_values))
    }

    /// Takes over entries that other consumers left pending.
    fn xautoclaim<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
        min_idle_time: impl ToArgs,
        start: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xautoclaim(key, group, consumer, min_idle_time, start))
    }

    /// Takes over entries that other consumers left pending. With options.
    fn xautoclaim_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
        min_idle_time: impl ToArgs,
        start: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xautoclaim_with(key, group, consumer, min_idle_time, start, options))
    }

    /// Takes over given pending entries.
    fn xclaim<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
        min_idle_time: impl ToArgs,
        ids: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xclaim(key, group, consumer, min_idle_time, ids))
    }

    /// Takes over given pending entries. With options.
    fn xclaim_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
        min_idle_time: impl ToArgs,
        ids: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xclaim_with(key, group, consumer, min_idle_time, ids, options))
    }

    /// Deletes entries.
    fn xdel<T: FromReply>(&self, key: impl ToArgs, ids: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xdel(key, ids))
    }

    /// Deletes entries, with a choice for the groups' references.
    fn xdelex<T: FromReply>(&self, key: impl ToArgs, ids: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xdelex(key, ids))
    }

    /// Deletes entries, with a choice for the groups' references. With options.
    fn xdelex_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        ids: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xdelex_with(key, options, ids))
    }

    /// Counts the entries.
    fn xlen<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xlen(key))
    }

    /// Shows the pending entries of a consumer group.
    fn xpending<T: FromReply>(&self, key: impl ToArgs, group: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xpending(key, group))
    }

    /// Shows the pending entries of a consumer group. With options.
    fn xpending_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xpending_with(key, group, options))
    }

    /// Returns a range of entries, oldest first.
    fn xrange<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xrange(key, start, end))
    }

    /// Returns a range of entries, oldest first. With options.
    fn xrange_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xrange_with(key, start, end, options))
    }

    /// Returns entries after given ids; can wait for some.
    fn xread<T: FromReply>(&self, keys: impl ToArgs, ids: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xread(keys, ids))
    }

    /// Returns entries after given ids; can wait for some. With options.
    fn xread_with<T: FromReply>(
        &self,
        options: impl ToArgs,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xread_with(options, keys, ids))
    }

    /// Returns entries to a consumer of a group; can wait for some.
    fn xreadgroup<T: FromReply>(
        &self,
        group: impl ToArgs,
        consumer: impl ToArgs,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xreadgroup(group, consumer, keys, ids))
    }

    /// Returns entries to a consumer of a group; can wait for some. With options.
    fn xreadgroup_with<T: FromReply>(
        &self,
        group: impl ToArgs,
        consumer: impl ToArgs,
        options: impl ToArgs,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xreadgroup_with(group, consumer, options, keys, ids))
    }

    /// Returns a range of entries, newest first.
    fn xrevrange<T: FromReply>(
        &self,
        key: impl ToArgs,
        end: impl ToArgs,
        start: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xrevrange(key, end, start))
    }

    /// Returns a range of entries, newest first. With options.
    fn xrevrange_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        end: impl ToArgs,
        start: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xrevrange_with(key, end, start, options))
    }

    /// Sets a stream's last id.
    fn xsetid<T: FromReply>(&self, key: impl ToArgs, last_id: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xsetid(key, last_id))
    }

    /// Sets a stream's last id. With options.
    fn xsetid_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        last_id: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xsetid_with(key, last_id, options))
    }

    /// Removes the oldest entries.
    fn xtrim<T: FromReply>(
        &self,
        key: impl ToArgs,
        strategy: impl ToArgs,
        threshold: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xtrim(key, strategy, threshold))
    }

    /// Removes the oldest entries. With options.
    fn xtrim_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        strategy: impl ToArgs,
        options: impl ToArgs,
        threshold: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xtrim_with(key, strategy, options, threshold, options_2))
    }

    /// Names the encoding of a value.
    fn object_encoding<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::object_encoding(key))
    }

    /// Returns the access frequency counter of a key.
    fn object_freq<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::object_freq(key))
    }

    /// Shows what the subcommands do.
    fn object_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::keys::object_help())
    }

    /// Returns how long a key has not been used, in seconds.
    fn object_idletime<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::object_idletime(key))
    }

    /// Returns the reference count of a value.
    fn object_refcount<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::keys::object_refcount(key))
    }

    /// Lists channels with subscribers.
    fn pubsub_channels<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::pubsub::pubsub_channels())
    }

    /// Lists channels with subscribers. With options.
    fn pubsub_channels_with<T: FromReply>(&self, pattern: impl ToArgs) -> Result<T, Error> {
        self.run(make::pubsub::pubsub_channels_with(pattern))
    }

    /// Shows what the subcommands do.
    fn pubsub_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::pubsub::pubsub_help())
    }

    /// Counts the subscribed patterns.
    fn pubsub_numpat<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::pubsub::pubsub_numpat())
    }

    /// Counts the subscribers of channels.
    fn pubsub_numsub<T: FromReply>(&self, channels: impl ToArgs) -> Result<T, Error> {
        self.run(make::pubsub::pubsub_numsub(channels))
    }

    /// Lists sharded channels with subscribers.
    fn pubsub_shardchannels<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::pubsub::pubsub_shardchannels())
    }

    /// Lists sharded channels with subscribers. With options.
    fn pubsub_shardchannels_with<T: FromReply>(&self, pattern: impl ToArgs) -> Result<T, Error> {
        self.run(make::pubsub::pubsub_shardchannels_with(pattern))
    }

    /// Counts the subscribers of sharded channels.
    fn pubsub_shardnumsub<T: FromReply>(&self, shardchannels: impl ToArgs) -> Result<T, Error> {
        self.run(make::pubsub::pubsub_shardnumsub(shardchannels))
    }

    /// Says whether the next command's keys are tracked.
    fn client_caching<T: FromReply>(&self, enabled: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_caching(enabled))
    }

    /// Tells the server what this client can handle.
    fn client_capa<T: FromReply>(&self, capabilities: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_capa(capabilities))
    }

    /// Returns this connection's name.
    fn client_getname<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::client_getname())
    }

    /// Tells which connection receives this one's invalidations.
    fn client_getredir<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::client_getredir())
    }

    /// Shows what the subcommands do.
    fn client_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::client_help())
    }

    /// Returns this connection's number.
    fn client_id<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::client_id())
    }

    /// Describes this connection.
    fn client_info<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::client_info())
    }

    /// Closes the connections that match the filters.
    fn client_kill<T: FromReply>(&self, choices: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_kill(choices))
    }

    /// Describes open connections.
    fn client_list<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::client_list())
    }

    /// Describes open connections. With options.
    fn client_list_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_list_with(options))
    }

    /// Turns notices about planned moves on or off for this connection.
    fn client_maint_notifications<T: FromReply>(&self, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_maint_notifications(choice))
    }

    /// Exempts this connection from eviction, or ends that.
    fn client_no_evict<T: FromReply>(&self, enabled: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_no_evict(enabled))
    }

    /// Says whether this connection's reads count as use of a key.
    fn client_no_touch<T: FromReply>(&self, enabled: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_no_touch(enabled))
    }

    /// Holds back all commands, or the writing ones, for a time.
    fn client_pause<T: FromReply>(&self, timeout: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_pause(timeout))
    }

    /// Holds back all commands, or the writing ones, for a time. With options.
    fn client_pause_with<T: FromReply>(
        &self,
        timeout: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::connection::client_pause_with(timeout, options))
    }

    /// Records the name or version of the client library.
    fn client_setinfo<T: FromReply>(&self, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_setinfo(choice))
    }

    /// Names this connection.
    fn client_setname<T: FromReply>(&self, connection_name: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_setname(connection_name))
    }

    /// Turns invalidation messages for client-side caching on or off.
    fn client_tracking<T: FromReply>(&self, enabled: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_tracking(enabled))
    }

    /// Turns invalidation messages for client-side caching on or off. With options.
    fn client_tracking_with<T: FromReply>(
        &self,
        enabled: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::connection::client_tracking_with(enabled, options))
    }

    /// Shows how this connection tracks keys.
    fn client_trackinginfo<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::client_trackinginfo())
    }

    /// Ends another connection's wait.
    fn client_unblock<T: FromReply>(&self, client_id: impl ToArgs) -> Result<T, Error> {
        self.run(make::connection::client_unblock(client_id))
    }

    /// Ends another connection's wait. With options.
    fn client_unblock_with<T: FromReply>(
        &self,
        client_id: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::connection::client_unblock_with(client_id, options))
    }

    /// Ends a pause of commands.
    fn client_unpause<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::connection::client_unpause())
    }

    /// Lists the ACL categories, or the commands of one.
    fn acl_cat<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::acl_cat())
    }

    /// Lists the ACL categories, or the commands of one. With options.
    fn acl_cat_with<T: FromReply>(&self, category: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::acl_cat_with(category))
    }

    /// Deletes ACL users and closes their connections.
    fn acl_deluser<T: FromReply>(&self, usernames: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::acl_deluser(usernames))
    }

    /// Tells whether a user might run a command, without running it.
    fn acl_dryrun<T: FromReply>(
        &self,
        username: impl ToArgs,
        command: impl ToArgs,
        args: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::server::acl_dryrun(username, command, args))
    }

    /// Makes a random password.
    fn acl_genpass<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::acl_genpass())
    }

    /// Makes a random password. With options.
    fn acl_genpass_with<T: FromReply>(&self, bits: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::acl_genpass_with(bits))
    }

    /// Shows the rules of one ACL user.
    fn acl_getuser<T: FromReply>(&self, username: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::acl_getuser(username))
    }

    /// Shows what the subcommands do.
    fn acl_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::acl_help())
    }

    /// Lists the ACL users, each as a line of rules.
    fn acl_list<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::acl_list())
    }

    /// Reads the ACL users from the configured file again.
    fn acl_load<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::acl_load())
    }

    /// Shows or clears the log of denied commands and logins.
    fn acl_log<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::acl_log())
    }

    /// Shows or clears the log of denied commands and logins. With options.
    fn acl_log_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::acl_log_with(options))
    }

    /// Writes the ACL users to the configured file.
    fn acl_save<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::acl_save())
    }

    /// Creates an ACL user or changes its rules.
    fn acl_setuser<T: FromReply>(&self, username: impl ToArgs, rules: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::acl_setuser(username, rules))
    }

    /// Lists the names of the ACL users.
    fn acl_users<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::acl_users())
    }

    /// Names the user of this connection.
    fn acl_whoami<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::acl_whoami())
    }

    /// Counts the commands.
    fn command_count<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::command_count())
    }

    /// Documents commands.
    fn command_docs<T: FromReply>(&self, command_names: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::command_docs(command_names))
    }

    /// Finds the keys in a command line.
    fn command_getkeys<T: FromReply>(&self, command: impl ToArgs, args: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::command_getkeys(command, args))
    }

    /// Finds the keys in a command line, and how each is used.
    fn command_getkeysandflags<T: FromReply>(
        &self,
        command: impl ToArgs,
        args: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::server::command_getkeysandflags(command, args))
    }

    /// Shows what the subcommands do.
    fn command_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::command_help())
    }

    /// Describes some commands, or all.
    fn command_info<T: FromReply>(&self, command_names: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::command_info(command_names))
    }

    /// Lists command names.
    fn command_list<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::command_list())
    }

    /// Lists command names. With options.
    fn command_list_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::command_list_with(options))
    }

    /// Returns entries of the command log.
    fn commandlog_get<T: FromReply>(&self, count: impl ToArgs, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::commandlog_get(count, choice))
    }

    /// Shows what the subcommands do.
    fn commandlog_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::commandlog_help())
    }

    /// Counts the entries of the command log.
    fn commandlog_len<T: FromReply>(&self, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::commandlog_len(choice))
    }

    /// Empties the command log.
    fn commandlog_reset<T: FromReply>(&self, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::commandlog_reset(choice))
    }

    /// Returns the settings that match patterns.
    fn config_get<T: FromReply>(&self, parameters: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::config_get(parameters))
    }

    /// Shows what the subcommands do.
    fn config_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::config_help())
    }

    /// Sets the counters of INFO back to zero.
    fn config_resetstat<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::config_resetstat())
    }

    /// Writes the current settings to the configuration file.
    fn config_rewrite<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::config_rewrite())
    }

    /// Changes settings, all or none of them.
    fn config_set<T: FromReply>(&self, parameter_values: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::config_set(parameter_values))
    }

    /// Explains what the latency monitor saw.
    fn latency_doctor<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::latency_doctor())
    }

    /// Draws the latency of an event over time.
    fn latency_graph<T: FromReply>(&self, event: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::latency_graph(event))
    }

    /// Shows what the subcommands do.
    fn latency_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::latency_help())
    }

    /// Returns the distribution of commands' latencies.
    fn latency_histogram<T: FromReply>(&self, commands: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::latency_histogram(commands))
    }

    /// Returns the latency samples of an event.
    fn latency_history<T: FromReply>(&self, event: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::latency_history(event))
    }

    /// Returns the newest sample of every event.
    fn latency_latest<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::latency_latest())
    }

    /// Drops the latency samples of some events, or of all.
    fn latency_reset<T: FromReply>(&self, events: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::latency_reset(events))
    }

    /// Reports memory problems.
    fn memory_doctor<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::memory_doctor())
    }

    /// Shows what the subcommands do.
    fn memory_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::memory_help())
    }

    /// Shows the allocator's statistics.
    fn memory_malloc_stats<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::memory_malloc_stats())
    }

    /// Asks the allocator to return free memory.
    fn memory_purge<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::memory_purge())
    }

    /// Shows where memory goes.
    fn memory_stats<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::memory_stats())
    }

    /// Estimates the bytes that a key takes.
    fn memory_usage<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::memory_usage(key))
    }

    /// Estimates the bytes that a key takes. With options.
    fn memory_usage_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::memory_usage_with(key, options))
    }

    /// Shows what the subcommands do.
    fn module_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::module_help())
    }

    /// Lists loaded modules.
    fn module_list<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::module_list())
    }

    /// Loads a module.
    fn module_load<T: FromReply>(&self, path: impl ToArgs, args: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::module_load(path, args))
    }

    /// Loads a module with settings.
    fn module_loadex<T: FromReply>(&self, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::module_loadex(path))
    }

    /// Loads a module with settings. With options.
    fn module_loadex_with<T: FromReply>(&self, path: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::module_loadex_with(path, options))
    }

    /// Unloads a module.
    fn module_unload<T: FromReply>(&self, name: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::module_unload(name))
    }

    /// Returns entries of the slow log.
    fn slowlog_get<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::slowlog_get())
    }

    /// Returns entries of the slow log. With options.
    fn slowlog_get_with<T: FromReply>(&self, count: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::slowlog_get_with(count))
    }

    /// Shows what the subcommands do.
    fn slowlog_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::slowlog_help())
    }

    /// Counts the entries of the slow log.
    fn slowlog_len<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::slowlog_len())
    }

    /// Empties the slow log.
    fn slowlog_reset<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::slowlog_reset())
    }

    /// Tells the connections that exist to move, and closes them later; or shows or ends that.
    fn towline_drain<T: FromReply>(&self, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::server::towline_drain(choice))
    }

    /// Shows what the subcommands do.
    fn towline_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::server::towline_help())
    }

    /// Gives unowned slots to this node.
    fn cluster_addslots<T: FromReply>(&self, slots: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_addslots(slots))
    }

    /// Gives ranges of unowned slots to this node.
    fn cluster_addslotsrange<T: FromReply>(&self, start_slot_end_slots: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_addslotsrange(start_slot_end_slots))
    }

    /// Raises the configuration epoch.
    fn cluster_bumpepoch<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_bumpepoch())
    }

    /// Cancels the slot migrations that this node runs.
    fn cluster_cancelslotmigrations<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_cancelslotmigrations())
    }

    /// Counts the nodes that report another as failing.
    fn cluster_count_failure_reports<T: FromReply>(&self, node_id: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_count_failure_reports(node_id))
    }

    /// Counts the keys of a slot.
    fn cluster_countkeysinslot<T: FromReply>(&self, slot: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_countkeysinslot(slot))
    }

    /// Makes this node forget who owns some slots.
    fn cluster_delslots<T: FromReply>(&self, slots: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_delslots(slots))
    }

    /// Makes this node forget who owns ranges of slots.
    fn cluster_delslotsrange<T: FromReply>(&self, start_slot_end_slots: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_delslotsrange(start_slot_end_slots))
    }

    /// Makes this replica the primary of its shard.
    fn cluster_failover<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_failover())
    }

    /// Makes this replica the primary of its shard. With options.
    fn cluster_failover_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_failover_with(options))
    }

    /// Deletes every key of a slot.
    fn cluster_flushslot<T: FromReply>(&self, slot: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_flushslot(slot))
    }

    /// Deletes every key of a slot. With options.
    fn cluster_flushslot_with<T: FromReply>(
        &self,
        slot: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::cluster::cluster_flushslot_with(slot, options))
    }

    /// Makes this node forget who owns any slot.
    fn cluster_flushslots<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_flushslots())
    }

    /// Removes a node from the list of known nodes.
    fn cluster_forget<T: FromReply>(&self, node_id: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_forget(node_id))
    }

    /// Lists some keys of a slot.
    fn cluster_getkeysinslot<T: FromReply>(&self, slot: impl ToArgs, count: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_getkeysinslot(slot, count))
    }

    /// Lists slot migrations and their state.
    fn cluster_getslotmigrations<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_getslotmigrations())
    }

    /// Shows what the subcommands do.
    fn cluster_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_help())
    }

    /// Shows the state of the cluster as this node sees it.
    fn cluster_info<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_info())
    }

    /// Returns the slot of a key.
    fn cluster_keyslot<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_keyslot(key))
    }

    /// Lists the links between this node and its peers.
    fn cluster_links<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_links())
    }

    /// Makes this node join another one's cluster.
    fn cluster_meet<T: FromReply>(&self, ip: impl ToArgs, port: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_meet(ip, port))
    }

    /// Makes this node join another one's cluster. With options.
    fn cluster_meet_with<T: FromReply>(
        &self,
        ip: impl ToArgs,
        port: impl ToArgs,
        cluster_bus_port: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::cluster::cluster_meet_with(ip, port, cluster_bus_port))
    }

    /// Starts to move slots to other nodes.
    fn cluster_migrateslots<T: FromReply>(
        &self,
        start_slot_end_slot_node_ids: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::cluster::cluster_migrateslots(start_slot_end_slot_node_ids))
    }

    /// Returns this node's id.
    fn cluster_myid<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_myid())
    }

    /// Returns the id of this node's shard.
    fn cluster_myshardid<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_myshardid())
    }

    /// Describes every node, one line each.
    fn cluster_nodes<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_nodes())
    }

    /// Lists the replicas of a primary.
    fn cluster_replicas<T: FromReply>(&self, node_id: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_replicas(node_id))
    }

    /// Makes this node a replica of another.
    fn cluster_replicate<T: FromReply>(&self, node_id: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_replicate(node_id))
    }

    /// Makes this node leave its cluster.
    fn cluster_reset<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_reset())
    }

    /// Makes this node leave its cluster. With options.
    fn cluster_reset_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_reset_with(options))
    }

    /// Writes the cluster's configuration to disk.
    fn cluster_saveconfig<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_saveconfig())
    }

    /// Sets the configuration epoch of a new node.
    fn cluster_set_config_epoch<T: FromReply>(&self, config_epoch: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_set_config_epoch(config_epoch))
    }

    /// Changes the owner or the migration state of a slot.
    fn cluster_setslot<T: FromReply>(&self, slot: impl ToArgs, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_setslot(slot, choice))
    }

    /// Describes the shards, their slots and nodes.
    fn cluster_shards<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_shards())
    }

    /// Lists the replicas of a primary.
    fn cluster_slaves<T: FromReply>(&self, node_id: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_slaves(node_id))
    }

    /// Shows usage figures of slots.
    fn cluster_slot_stats<T: FromReply>(&self, choice: impl ToArgs) -> Result<T, Error> {
        self.run(make::cluster::cluster_slot_stats(choice))
    }

    /// Maps ranges of slots to nodes.
    fn cluster_slots<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::cluster::cluster_slots())
    }

    /// Deletes a library and its functions.
    fn function_delete<T: FromReply>(&self, library_name: impl ToArgs) -> Result<T, Error> {
        self.run(make::scripting::function_delete(library_name))
    }

    /// Returns every library in serialized form.
    fn function_dump<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::scripting::function_dump())
    }

    /// Deletes every library.
    fn function_flush<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::scripting::function_flush())
    }

    /// Deletes every library. With options.
    fn function_flush_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::scripting::function_flush_with(options))
    }

    /// Shows what the subcommands do.
    fn function_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::scripting::function_help())
    }

    /// Stops a function that runs too long.
    fn function_kill<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::scripting::function_kill())
    }

    /// Lists libraries and their functions.
    fn function_list<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::scripting::function_list())
    }

    /// Lists libraries and their functions. With options.
    fn function_list_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::scripting::function_list_with(options))
    }

    /// Creates a library, or replaces it.
    fn function_load<T: FromReply>(&self, function_code: impl ToArgs) -> Result<T, Error> {
        self.run(make::scripting::function_load(function_code))
    }

    /// Creates a library, or replaces it. With options.
    fn function_load_with<T: FromReply>(
        &self,
        options: impl ToArgs,
        function_code: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::scripting::function_load_with(options, function_code))
    }

    /// Restores libraries from their serialized form.
    fn function_restore<T: FromReply>(&self, serialized_value: impl ToArgs) -> Result<T, Error> {
        self.run(make::scripting::function_restore(serialized_value))
    }

    /// Restores libraries from their serialized form. With options.
    fn function_restore_with<T: FromReply>(
        &self,
        serialized_value: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::scripting::function_restore_with(serialized_value, options))
    }

    /// Shows the running function and the engines.
    fn function_stats<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::scripting::function_stats())
    }

    /// Tells which scripts are cached.
    fn script_exists<T: FromReply>(&self, sha1s: impl ToArgs) -> Result<T, Error> {
        self.run(make::scripting::script_exists(sha1s))
    }

    /// Empties the script cache.
    fn script_flush<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::scripting::script_flush())
    }

    /// Empties the script cache. With options.
    fn script_flush_with<T: FromReply>(&self, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::scripting::script_flush_with(options))
    }

    /// Shows what the subcommands do.
    fn script_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::scripting::script_help())
    }

    /// Stops a script that runs too long.
    fn script_kill<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::scripting::script_kill())
    }

    /// Puts a script into the cache.
    fn script_load<T: FromReply>(&self, script: impl ToArgs) -> Result<T, Error> {
        self.run(make::scripting::script_load(script))
    }

    /// Returns the text of a cached script.
    fn script_show<T: FromReply>(&self, sha1: impl ToArgs) -> Result<T, Error> {
        self.run(make::scripting::script_show(sha1))
    }

    /// Creates a consumer group.
    fn xgroup_create<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        id: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xgroup_create(key, group, id))
    }

    /// Creates a consumer group. With options.
    fn xgroup_create_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        id: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xgroup_create_with(key, group, id, options))
    }

    /// Creates a consumer.
    fn xgroup_createconsumer<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xgroup_createconsumer(key, group, consumer))
    }

    /// Deletes a consumer and its pending entries.
    fn xgroup_delconsumer<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xgroup_delconsumer(key, group, consumer))
    }

    /// Deletes a consumer group.
    fn xgroup_destroy<T: FromReply>(&self, key: impl ToArgs, group: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xgroup_destroy(key, group))
    }

    /// Shows what the subcommands do.
    fn xgroup_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::streams::xgroup_help())
    }

    /// Sets the last delivered entry of a consumer group.
    fn xgroup_setid<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        id: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xgroup_setid(key, group, id))
    }

    /// Sets the last delivered entry of a consumer group. With options.
    fn xgroup_setid_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        group: impl ToArgs,
        id: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::streams::xgroup_setid_with(key, group, id, options))
    }

    /// Lists the consumers of a group.
    fn xinfo_consumers<T: FromReply>(&self, key: impl ToArgs, group: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xinfo_consumers(key, group))
    }

    /// Lists the consumer groups of a stream.
    fn xinfo_groups<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xinfo_groups(key))
    }

    /// Shows what the subcommands do.
    fn xinfo_help<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::streams::xinfo_help())
    }

    /// Describes a stream.
    fn xinfo_stream<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xinfo_stream(key))
    }

    /// Describes a stream. With options.
    fn xinfo_stream_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::streams::xinfo_stream_with(key, options))
    }

    /// Appends values to arrays.
    fn json_arrappend<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        values: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_arrappend(key, path, values))
    }

    /// Finds the first place of a value in arrays.
    fn json_arrindex<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_arrindex(key, path, value))
    }

    /// Finds the first place of a value in arrays. With options.
    fn json_arrindex_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_arrindex_with(key, path, value, options))
    }

    /// Inserts values into arrays.
    fn json_arrinsert<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        index: impl ToArgs,
        values: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_arrinsert(key, path, index, values))
    }

    /// Returns the lengths of arrays.
    fn json_arrlen<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_arrlen(key))
    }

    /// Returns the lengths of arrays. With options.
    fn json_arrlen_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_arrlen_with(key, path))
    }

    /// Removes an element of arrays and returns it.
    fn json_arrpop<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_arrpop(key))
    }

    /// Removes an element of arrays and returns it. With options.
    fn json_arrpop_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_arrpop_with(key, options))
    }

    /// Cuts arrays to a range.
    fn json_arrtrim<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_arrtrim(key, path, start, stop))
    }

    /// Empties arrays and objects, and sets numbers to 0.
    fn json_clear<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_clear(key))
    }

    /// Empties arrays and objects, and sets numbers to 0. With options.
    fn json_clear_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_clear_with(key, path))
    }

    /// Returns the memory that values take, in bytes.
    fn json_debug_memory<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_debug_memory(key))
    }

    /// Returns the memory that values take, in bytes. With options.
    fn json_debug_memory_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_debug_memory_with(key, path))
    }

    /// Deletes values, or the whole document.
    fn json_del<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_del(key))
    }

    /// Deletes values, or the whole document. With options.
    fn json_del_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_del_with(key, path))
    }

    /// Deletes values, or the whole document.
    fn json_forget<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_forget(key))
    }

    /// Deletes values, or the whole document. With options.
    fn json_forget_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_forget_with(key, path))
    }

    /// Returns values as JSON text.
    fn json_get<T: FromReply>(&self, key: impl ToArgs, paths: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_get(key, paths))
    }

    /// Returns values as JSON text. With options.
    fn json_get_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        paths: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_get_with(key, options, paths))
    }

    /// Merges a value into those at a path, as RFC 7396 has it.
    fn json_merge<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_merge(key, path, value))
    }

    /// Returns the values at one path of several documents.
    fn json_mget<T: FromReply>(&self, keys: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_mget(keys, path))
    }

    /// Sets values in several documents, all or none.
    fn json_mset<T: FromReply>(&self, key_path_values: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_mset(key_path_values))
    }

    /// Adds to numbers.
    fn json_numincrby<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_numincrby(key, path, value))
    }

    /// Multiplies numbers.
    fn json_nummultby<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_nummultby(key, path, value))
    }

    /// Returns the names in objects.
    fn json_objkeys<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_objkeys(key))
    }

    /// Returns the names in objects. With options.
    fn json_objkeys_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_objkeys_with(key, path))
    }

    /// Counts the names in objects.
    fn json_objlen<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_objlen(key))
    }

    /// Counts the names in objects. With options.
    fn json_objlen_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_objlen_with(key, path))
    }

    /// Returns values in the protocol's own types.
    fn json_resp<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_resp(key))
    }

    /// Returns values in the protocol's own types. With options.
    fn json_resp_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_resp_with(key, path))
    }

    /// Sets values.
    fn json_set<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_set(key, path, value))
    }

    /// Sets values. With options.
    fn json_set_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_set_with(key, path, value, options))
    }

    /// Appends to strings; the value is a JSON string.
    fn json_strappend<T: FromReply>(
        &self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::json::json_strappend(key, path, value))
    }

    /// Returns the lengths of strings.
    fn json_strlen<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_strlen(key))
    }

    /// Returns the lengths of strings. With options.
    fn json_strlen_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_strlen_with(key, path))
    }

    /// Turns true into false and back.
    fn json_toggle<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_toggle(key, path))
    }

    /// Returns the types of values.
    fn json_type<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_type(key))
    }

    /// Returns the types of values. With options.
    fn json_type_with<T: FromReply>(&self, key: impl ToArgs, path: impl ToArgs) -> Result<T, Error> {
        self.run(make::json::json_type_with(key, path))
    }

    /// Lists the indexes.
    fn ft_list<T: FromReply>(&self) -> Result<T, Error> {
        self.run(make::search::ft_list())
    }

    /// Searches an index, and groups and computes what it finds.
    fn ft_aggregate<T: FromReply>(&self, index: impl ToArgs, query: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_aggregate(index, query))
    }

    /// Searches an index, and groups and computes what it finds. With options.
    fn ft_aggregate_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_aggregate_with(index, query, options))
    }

    /// Gives an index another name.
    fn ft_aliasadd<T: FromReply>(&self, alias: impl ToArgs, index: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_aliasadd(alias, index))
    }

    /// Takes a name from an index.
    fn ft_aliasdel<T: FromReply>(&self, alias: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_aliasdel(alias))
    }

    /// Gives an index a name that another may have.
    fn ft_aliasupdate<T: FromReply>(&self, alias: impl ToArgs, index: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_aliasupdate(alias, index))
    }

    /// Adds an attribute to an index.
    fn ft_alter<T: FromReply>(
        &self,
        index: impl ToArgs,
        attribute: impl ToArgs,
        definitions: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_alter(index, attribute, definitions))
    }

    /// Adds an attribute to an index. With options.
    fn ft_alter_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        options: impl ToArgs,
        attribute: impl ToArgs,
        definitions: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_alter_with(index, options, attribute, definitions))
    }

    /// Returns options of the module.
    fn ft_config_get<T: FromReply>(&self, option: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_config_get(option))
    }

    /// Sets an option of the module.
    fn ft_config_set<T: FromReply>(&self, option: impl ToArgs, value: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_config_set(option, value))
    }

    /// Creates an index.
    fn ft_create<T: FromReply>(&self, index: impl ToArgs, attributes: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_create(index, attributes))
    }

    /// Creates an index. With options.
    fn ft_create_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        options: impl ToArgs,
        attributes: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_create_with(index, options, attributes))
    }

    /// Ends a cursor.
    fn ft_cursor_del<T: FromReply>(&self, index: impl ToArgs, cursor_id: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_cursor_del(index, cursor_id))
    }

    /// Returns the next part of what an aggregation found.
    fn ft_cursor_read<T: FromReply>(&self, index: impl ToArgs, cursor_id: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_cursor_read(index, cursor_id))
    }

    /// Returns the next part of what an aggregation found. With options.
    fn ft_cursor_read_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        cursor_id: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_cursor_read_with(index, cursor_id, options))
    }

    /// Adds terms to a dictionary.
    fn ft_dictadd<T: FromReply>(&self, dict: impl ToArgs, terms: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_dictadd(dict, terms))
    }

    /// Deletes terms from a dictionary.
    fn ft_dictdel<T: FromReply>(&self, dict: impl ToArgs, terms: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_dictdel(dict, terms))
    }

    /// Returns the terms of a dictionary.
    fn ft_dictdump<T: FromReply>(&self, dict: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_dictdump(dict))
    }

    /// Deletes an index; with DD, what it indexes as well.
    fn ft_dropindex<T: FromReply>(&self, index: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_dropindex(index))
    }

    /// Deletes an index; with DD, what it indexes as well. With options.
    fn ft_dropindex_with<T: FromReply>(&self, index: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_dropindex_with(index, options))
    }

    /// Shows how a query is carried out.
    fn ft_explain<T: FromReply>(&self, index: impl ToArgs, query: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_explain(index, query))
    }

    /// Shows how a query is carried out. With options.
    fn ft_explain_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_explain_with(index, query, options))
    }

    /// Shows how a query is carried out, line by line.
    fn ft_explaincli<T: FromReply>(&self, index: impl ToArgs, query: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_explaincli(index, query))
    }

    /// Shows how a query is carried out, line by line. With options.
    fn ft_explaincli_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_explaincli_with(index, query, options))
    }

    /// Describes an index.
    fn ft_info<T: FromReply>(&self, index: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_info(index))
    }

    /// Runs a query and tells where its time went.
    fn ft_profile<T: FromReply>(
        &self,
        index: impl ToArgs,
        choice: impl ToArgs,
        queries: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_profile(index, choice, queries))
    }

    /// Runs a query and tells where its time went. With options.
    fn ft_profile_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        choice: impl ToArgs,
        options: impl ToArgs,
        queries: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_profile_with(index, choice, options, queries))
    }

    /// Searches an index.
    fn ft_search<T: FromReply>(&self, index: impl ToArgs, query: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_search(index, query))
    }

    /// Searches an index. With options.
    fn ft_search_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_search_with(index, query, options))
    }

    /// Suggests other spellings for the terms of a query.
    fn ft_spellcheck<T: FromReply>(&self, index: impl ToArgs, query: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_spellcheck(index, query))
    }

    /// Suggests other spellings for the terms of a query. With options.
    fn ft_spellcheck_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_spellcheck_with(index, query, options))
    }

    /// Adds a suggestion.
    fn ft_sugadd<T: FromReply>(
        &self,
        key: impl ToArgs,
        string: impl ToArgs,
        score: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_sugadd(key, string, score))
    }

    /// Adds a suggestion. With options.
    fn ft_sugadd_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        string: impl ToArgs,
        score: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_sugadd_with(key, string, score, options))
    }

    /// Deletes a suggestion.
    fn ft_sugdel<T: FromReply>(&self, key: impl ToArgs, string: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_sugdel(key, string))
    }

    /// Returns suggestions for a prefix.
    fn ft_sugget<T: FromReply>(&self, key: impl ToArgs, prefix: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_sugget(key, prefix))
    }

    /// Returns suggestions for a prefix. With options.
    fn ft_sugget_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        prefix: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_sugget_with(key, prefix, options))
    }

    /// Counts the suggestions.
    fn ft_suglen<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_suglen(key))
    }

    /// Returns the synonyms.
    fn ft_syndump<T: FromReply>(&self, index: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_syndump(index))
    }

    /// Adds terms to a group of synonyms.
    fn ft_synupdate<T: FromReply>(
        &self,
        index: impl ToArgs,
        group_id: impl ToArgs,
        terms: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_synupdate(index, group_id, terms))
    }

    /// Adds terms to a group of synonyms. With options.
    fn ft_synupdate_with<T: FromReply>(
        &self,
        index: impl ToArgs,
        group_id: impl ToArgs,
        options: impl ToArgs,
        terms: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::search::ft_synupdate_with(index, group_id, options, terms))
    }

    /// Returns the values of a tag.
    fn ft_tagvals<T: FromReply>(&self, index: impl ToArgs, field: impl ToArgs) -> Result<T, Error> {
        self.run(make::search::ft_tagvals(index, field))
    }

    /// Appends a sample; the series is created if absent.
    fn ts_add<T: FromReply>(
        &self,
        key: impl ToArgs,
        timestamp: impl ToArgs,
        value: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_add(key, timestamp, value))
    }

    /// Appends a sample; the series is created if absent. With options.
    fn ts_add_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        timestamp: impl ToArgs,
        value: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_add_with(key, timestamp, value, options))
    }

    /// Changes the settings of a series.
    fn ts_alter<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_alter(key))
    }

    /// Changes the settings of a series. With options.
    fn ts_alter_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_alter_with(key, options))
    }

    /// Creates a series.
    fn ts_create<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_create(key))
    }

    /// Creates a series. With options.
    fn ts_create_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_create_with(key, options))
    }

    /// Makes one series follow another one, aggregated.
    fn ts_createrule<T: FromReply>(
        &self,
        source: impl ToArgs,
        destination: impl ToArgs,
        aggregator: impl ToArgs,
        bucket_duration: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_createrule(source, destination, aggregator, bucket_duration))
    }

    /// Makes one series follow another one, aggregated. With options.
    fn ts_createrule_with<T: FromReply>(
        &self,
        source: impl ToArgs,
        destination: impl ToArgs,
        aggregator: impl ToArgs,
        bucket_duration: impl ToArgs,
        align: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_createrule_with(
            source,
            destination,
            aggregator,
            bucket_duration,
            align,
        ))
    }

    /// Appends a sample that is less than the last one.
    fn ts_decrby<T: FromReply>(&self, key: impl ToArgs, subtrahend: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_decrby(key, subtrahend))
    }

    /// Appends a sample that is less than the last one. With options.
    fn ts_decrby_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        subtrahend: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_decrby_with(key, subtrahend, options))
    }

    /// Deletes the samples of a range of time.
    fn ts_del<T: FromReply>(&self, key: impl ToArgs, from: impl ToArgs, to: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_del(key, from, to))
    }

    /// Ends that one series follows another one.
    fn ts_deleterule<T: FromReply>(&self, source: impl ToArgs, destination: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_deleterule(source, destination))
    }

    /// Returns the last sample.
    fn ts_get<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_get(key))
    }

    /// Returns the last sample. With options.
    fn ts_get_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_get_with(key, options))
    }

    /// Appends a sample that is more than the last one.
    fn ts_incrby<T: FromReply>(&self, key: impl ToArgs, addend: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_incrby(key, addend))
    }

    /// Appends a sample that is more than the last one. With options.
    fn ts_incrby_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        addend: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_incrby_with(key, addend, options))
    }

    /// Describes a series.
    fn ts_info<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_info(key))
    }

    /// Describes a series. With options.
    fn ts_info_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_info_with(key, options))
    }

    /// Appends samples to several series.
    fn ts_madd<T: FromReply>(&self, key_timestamp_values: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_madd(key_timestamp_values))
    }

    /// Returns the last samples of the series with certain labels.
    fn ts_mget<T: FromReply>(&self, filters: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_mget(filters))
    }

    /// Returns the last samples of the series with certain labels. With options.
    fn ts_mget_with<T: FromReply>(&self, options: impl ToArgs, filters: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_mget_with(options, filters))
    }

    /// Returns a range of time of the series with certain labels.
    fn ts_mrange<T: FromReply>(
        &self,
        from: impl ToArgs,
        to: impl ToArgs,
        filters: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_mrange(from, to, filters))
    }

    /// Returns a range of time of the series with certain labels. With options.
    fn ts_mrange_with<T: FromReply>(
        &self,
        from: impl ToArgs,
        to: impl ToArgs,
        options: impl ToArgs,
        filters: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_mrange_with(from, to, options, filters, options_2))
    }

    /// Returns a range of time of the series with certain labels, last sample first.
    fn ts_mrevrange<T: FromReply>(
        &self,
        from: impl ToArgs,
        to: impl ToArgs,
        filters: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_mrevrange(from, to, filters))
    }

    /// Returns a range of time of the series with certain labels, last sample first. With options.
    fn ts_mrevrange_with<T: FromReply>(
        &self,
        from: impl ToArgs,
        to: impl ToArgs,
        options: impl ToArgs,
        filters: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_mrevrange_with(from, to, options, filters, options_2))
    }

    /// Returns the keys of the series with certain labels.
    fn ts_queryindex<T: FromReply>(&self, filters: impl ToArgs) -> Result<T, Error> {
        self.run(make::timeseries::ts_queryindex(filters))
    }

    /// Returns the samples of a range of time.
    fn ts_range<T: FromReply>(
        &self,
        key: impl ToArgs,
        from: impl ToArgs,
        to: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_range(key, from, to))
    }

    /// Returns the samples of a range of time. With options.
    fn ts_range_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        from: impl ToArgs,
        to: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_range_with(key, from, to, options))
    }

    /// Returns the samples of a range of time, last one first.
    fn ts_revrange<T: FromReply>(
        &self,
        key: impl ToArgs,
        from: impl ToArgs,
        to: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_revrange(key, from, to))
    }

    /// Returns the samples of a range of time, last one first. With options.
    fn ts_revrange_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        from: impl ToArgs,
        to: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::timeseries::ts_revrange_with(key, from, to, options))
    }

    /// Adds an item to a Bloom filter.
    fn bf_add<T: FromReply>(&self, key: impl ToArgs, item: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::bf_add(key, item))
    }

    /// Counts the items of a filter.
    fn bf_card<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::bf_card(key))
    }

    /// Tells whether an item may be in a filter.
    fn bf_exists<T: FromReply>(&self, key: impl ToArgs, item: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::bf_exists(key, item))
    }

    /// Describes a filter.
    fn bf_info<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::bf_info(key))
    }

    /// Describes a filter. With options.
    fn bf_info_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::bf_info_with(key, options))
    }

    /// Adds items to a filter, which is created as told.
    fn bf_insert<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::bf_insert(key, items))
    }

    /// Adds items to a filter, which is created as told. With options.
    fn bf_insert_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        items: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::bf_insert_with(key, options, items))
    }

    /// Restores a part of a filter.
    fn bf_loadchunk<T: FromReply>(
        &self,
        key: impl ToArgs,
        iterator: impl ToArgs,
        data: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::bf_loadchunk(key, iterator, data))
    }

    /// Adds items to a filter.
    fn bf_madd<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::bf_madd(key, items))
    }

    /// Tells which items may be in a filter.
    fn bf_mexists<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::bf_mexists(key, items))
    }

    /// Creates a filter.
    fn bf_reserve<T: FromReply>(
        &self,
        key: impl ToArgs,
        error_rate: impl ToArgs,
        capacity: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::bf_reserve(key, error_rate, capacity))
    }

    /// Creates a filter. With options.
    fn bf_reserve_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        error_rate: impl ToArgs,
        capacity: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::bf_reserve_with(key, error_rate, capacity, options))
    }

    /// Returns a part of a filter, to be restored elsewhere.
    fn bf_scandump<T: FromReply>(&self, key: impl ToArgs, iterator: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::bf_scandump(key, iterator))
    }

    /// Adds an item to a cuckoo filter, as often as it is called.
    fn cf_add<T: FromReply>(&self, key: impl ToArgs, item: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_add(key, item))
    }

    /// Adds an item to a filter unless it may be there.
    fn cf_addnx<T: FromReply>(&self, key: impl ToArgs, item: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_addnx(key, item))
    }

    /// Counts how often an item may be in a filter.
    fn cf_count<T: FromReply>(&self, key: impl ToArgs, item: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_count(key, item))
    }

    /// Removes an item once.
    fn cf_del<T: FromReply>(&self, key: impl ToArgs, item: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_del(key, item))
    }

    /// Tells whether an item may be in a filter.
    fn cf_exists<T: FromReply>(&self, key: impl ToArgs, item: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_exists(key, item))
    }

    /// Describes a filter.
    fn cf_info<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_info(key))
    }

    /// Adds items to a filter, which is created as told.
    fn cf_insert<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_insert(key, items))
    }

    /// Adds items to a filter, which is created as told. With options.
    fn cf_insert_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        items: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::cf_insert_with(key, options, items))
    }

    /// Adds the items that are not in a filter.
    fn cf_insertnx<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_insertnx(key, items))
    }

    /// Adds the items that are not in a filter. With options.
    fn cf_insertnx_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        options: impl ToArgs,
        items: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::cf_insertnx_with(key, options, items))
    }

    /// Restores a part of a filter.
    fn cf_loadchunk<T: FromReply>(
        &self,
        key: impl ToArgs,
        iterator: impl ToArgs,
        data: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::cf_loadchunk(key, iterator, data))
    }

    /// Tells which items may be in a filter.
    fn cf_mexists<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_mexists(key, items))
    }

    /// Creates a filter.
    fn cf_reserve<T: FromReply>(&self, key: impl ToArgs, capacity: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_reserve(key, capacity))
    }

    /// Creates a filter. With options.
    fn cf_reserve_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        capacity: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::cf_reserve_with(key, capacity, options))
    }

    /// Returns a part of a filter, to be restored elsewhere.
    fn cf_scandump<T: FromReply>(&self, key: impl ToArgs, iterator: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cf_scandump(key, iterator))
    }

    /// Adds to the counts of items in a count-min sketch.
    fn cms_incrby<T: FromReply>(&self, key: impl ToArgs, item_increments: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cms_incrby(key, item_increments))
    }

    /// Describes a sketch.
    fn cms_info<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cms_info(key))
    }

    /// Creates a sketch with these dimensions.
    fn cms_initbydim<T: FromReply>(
        &self,
        key: impl ToArgs,
        width: impl ToArgs,
        depth: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::cms_initbydim(key, width, depth))
    }

    /// Creates a sketch that errs no more than told.
    fn cms_initbyprob<T: FromReply>(
        &self,
        key: impl ToArgs,
        error: impl ToArgs,
        probability: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::cms_initbyprob(key, error, probability))
    }

    /// Replaces a sketch by the sum of others.
    fn cms_merge<T: FromReply>(&self, destination: impl ToArgs, sources: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cms_merge(destination, sources))
    }

    /// Replaces a sketch by the sum of others. With options.
    fn cms_merge_with<T: FromReply>(
        &self,
        destination: impl ToArgs,
        sources: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::cms_merge_with(destination, sources, options))
    }

    /// Returns the counts of items.
    fn cms_query<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::cms_query(key, items))
    }

    /// Adds items to the most frequent ones; returns those that had to leave.
    fn topk_add<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::topk_add(key, items))
    }

    /// Returns the counts of items.
    fn topk_count<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::topk_count(key, items))
    }

    /// Adds to the counts of items; returns those that had to leave.
    fn topk_incrby<T: FromReply>(&self, key: impl ToArgs, item_increments: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::topk_incrby(key, item_increments))
    }

    /// Describes the list.
    fn topk_info<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::topk_info(key))
    }

    /// Returns the most frequent items.
    fn topk_list<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::topk_list(key))
    }

    /// Returns the most frequent items. With options.
    fn topk_list_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::topk_list_with(key, options))
    }

    /// Tells which items are among the most frequent ones.
    fn topk_query<T: FromReply>(&self, key: impl ToArgs, items: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::topk_query(key, items))
    }

    /// Creates a list of the most frequent items.
    fn topk_reserve<T: FromReply>(&self, key: impl ToArgs, topk: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::topk_reserve(key, topk))
    }

    /// Creates a list of the most frequent items. With options.
    fn topk_reserve_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        topk: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::topk_reserve_with(key, topk, options))
    }

    /// Adds observations to a t-digest.
    fn tdigest_add<T: FromReply>(&self, key: impl ToArgs, values: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_add(key, values))
    }

    /// Estimates the values at ranks.
    fn tdigest_byrank<T: FromReply>(&self, key: impl ToArgs, ranks: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_byrank(key, ranks))
    }

    /// Estimates the values at ranks from the greatest on.
    fn tdigest_byrevrank<T: FromReply>(&self, key: impl ToArgs, ranks: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_byrevrank(key, ranks))
    }

    /// Estimates the parts of the observations up to values.
    fn tdigest_cdf<T: FromReply>(&self, key: impl ToArgs, values: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_cdf(key, values))
    }

    /// Creates a t-digest.
    fn tdigest_create<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_create(key))
    }

    /// Creates a t-digest. With options.
    fn tdigest_create_with<T: FromReply>(&self, key: impl ToArgs, options: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_create_with(key, options))
    }

    /// Describes a t-digest.
    fn tdigest_info<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_info(key))
    }

    /// Returns the greatest observation.
    fn tdigest_max<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_max(key))
    }

    /// Adds the observations of others to a t-digest.
    fn tdigest_merge<T: FromReply>(
        &self,
        destination: impl ToArgs,
        sources: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::tdigest_merge(destination, sources))
    }

    /// Adds the observations of others to a t-digest. With options.
    fn tdigest_merge_with<T: FromReply>(
        &self,
        destination: impl ToArgs,
        sources: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::tdigest_merge_with(destination, sources, options))
    }

    /// Returns the least observation.
    fn tdigest_min<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_min(key))
    }

    /// Estimates the values below which parts of the observations are.
    fn tdigest_quantile<T: FromReply>(&self, key: impl ToArgs, quantiles: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_quantile(key, quantiles))
    }

    /// Estimates the ranks of values.
    fn tdigest_rank<T: FromReply>(&self, key: impl ToArgs, values: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_rank(key, values))
    }

    /// Empties a t-digest.
    fn tdigest_reset<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_reset(key))
    }

    /// Estimates the ranks of values from the greatest on.
    fn tdigest_revrank<T: FromReply>(&self, key: impl ToArgs, values: impl ToArgs) -> Result<T, Error> {
        self.run(make::bloom::tdigest_revrank(key, values))
    }

    /// Estimates the mean of the observations between two quantiles.
    fn tdigest_trimmed_mean<T: FromReply>(
        &self,
        key: impl ToArgs,
        low_quantile: impl ToArgs,
        high_quantile: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::bloom::tdigest_trimmed_mean(key, low_quantile, high_quantile))
    }

    /// Adds an element with its vector (FP32, VALUES), before which REDUCE may stand.
    fn vadd<T: FromReply>(
        &self,
        key: impl ToArgs,
        vector: impl ToArgs,
        element: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::vectors::vadd(key, vector, element))
    }

    /// Adds an element with its vector (FP32, VALUES), before which REDUCE may stand. With options.
    fn vadd_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        vector: impl ToArgs,
        element: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::vectors::vadd_with(key, vector, element, options))
    }

    /// Counts the elements.
    fn vcard<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vcard(key))
    }

    /// Returns the vectors' dimension.
    fn vdim<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vdim(key))
    }

    /// Returns an element's vector, as precisely as it is kept.
    fn vemb<T: FromReply>(&self, key: impl ToArgs, element: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vemb(key, element))
    }

    /// Returns an element's vector, as precisely as it is kept. With options.
    fn vemb_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        element: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::vectors::vemb_with(key, element, options))
    }

    /// Returns an element's attributes as JSON text.
    fn vgetattr<T: FromReply>(&self, key: impl ToArgs, element: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vgetattr(key, element))
    }

    /// Describes a vector set.
    fn vinfo<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vinfo(key))
    }

    /// Tells whether an element exists.
    fn vismember<T: FromReply>(&self, key: impl ToArgs, element: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vismember(key, element))
    }

    /// Returns an element's neighbours in each layer of the graph.
    fn vlinks<T: FromReply>(&self, key: impl ToArgs, element: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vlinks(key, element))
    }

    /// Returns an element's neighbours in each layer of the graph. With options.
    fn vlinks_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        element: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::vectors::vlinks_with(key, element, options))
    }

    /// Returns random elements.
    fn vrandmember<T: FromReply>(&self, key: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vrandmember(key))
    }

    /// Returns random elements. With options.
    fn vrandmember_with<T: FromReply>(&self, key: impl ToArgs, count: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vrandmember_with(key, count))
    }

    /// Returns elements in the order of their names.
    fn vrange<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::vectors::vrange(key, start, end))
    }

    /// Returns elements in the order of their names. With options.
    fn vrange_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
        count: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::vectors::vrange_with(key, start, end, count))
    }

    /// Removes an element.
    fn vrem<T: FromReply>(&self, key: impl ToArgs, element: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vrem(key, element))
    }

    /// Sets an element's attributes, JSON text; an empty one removes them.
    fn vsetattr<T: FromReply>(
        &self,
        key: impl ToArgs,
        element: impl ToArgs,
        attributes: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::vectors::vsetattr(key, element, attributes))
    }

    /// Finds the nearest elements to a vector (FP32, VALUES), or to an element (ELE).
    fn vsim<T: FromReply>(&self, key: impl ToArgs, query: impl ToArgs) -> Result<T, Error> {
        self.run(make::vectors::vsim(key, query))
    }

    /// Finds the nearest elements to a vector (FP32, VALUES), or to an element (ELE). With options.
    fn vsim_with<T: FromReply>(
        &self,
        key: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Result<T, Error> {
        self.run(make::vectors::vsim_with(key, query, options))
    }
}
