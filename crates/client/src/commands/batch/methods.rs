// Long because: one type has a method for each command.
//! A method for each command, which appends it to a batch.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use std::collections::HashMap;

use bytes::Bytes;

use super::{Batch, Grow};
use crate::args::ToArgs;
use crate::commands::{Aggregated, Page, PoppedMember, Position, Sample, SearchResults, StreamEntries, make};

impl<B: Grow> Batch<B> {
    /// Adds text to the end of a string, which is created if absent.
    pub fn append(self, key: impl ToArgs, value: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::strings::append(key, value))
    }

    /// Subtracts one from an integer; an absent key counts as 0.
    pub fn decr(self, key: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::strings::decr(key))
    }

    /// Subtracts a number from an integer; an absent key counts as 0.
    pub fn decrby(self, key: impl ToArgs, decrement: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::strings::decrby(key, decrement))
    }

    /// Deletes a key if it holds the given string.
    pub fn delifeq(self, key: impl ToArgs, value: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::strings::delifeq(key, value))
    }

    /// Returns a string.
    pub fn get(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::strings::get(key))
    }

    /// Returns a string and deletes its key.
    pub fn getdel(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::strings::getdel(key))
    }

    /// Returns a string and changes its expiry.
    pub fn getex(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::strings::getex(key))
    }

    /// Returns a string and changes its expiry. With options.
    pub fn getex_with(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::strings::getex_with(key, options))
    }

    /// Returns a part of a string.
    pub fn getrange(self, key: impl ToArgs, start: impl ToArgs, end: impl ToArgs) -> Batch<B::With<Bytes>> {
        self.and(make::strings::getrange(key, start, end))
    }

    /// Sets a string and returns the old one.
    pub fn getset(self, key: impl ToArgs, value: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::strings::getset(key, value))
    }

    /// Adds one to an integer; an absent key counts as 0.
    pub fn incr(self, key: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::strings::incr(key))
    }

    /// Adds a number to an integer; an absent key counts as 0.
    pub fn incrby(self, key: impl ToArgs, increment: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::strings::incrby(key, increment))
    }

    /// Adds a decimal number; an absent key counts as 0.
    pub fn incrbyfloat(self, key: impl ToArgs, increment: impl ToArgs) -> Batch<B::With<f64>> {
        self.and(make::strings::incrbyfloat(key, increment))
    }

    /// Finds the longest common subsequence of two strings.
    pub fn lcs(self, key1: impl ToArgs, key2: impl ToArgs) -> Batch<B::With<Bytes>> {
        self.and(make::strings::lcs(key1, key2))
    }

    /// Finds the longest common subsequence of two strings. With options.
    pub fn lcs_with<T>(
        self,
        key1: impl ToArgs,
        key2: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::strings::lcs_with(key1, key2, options))
    }

    /// Returns several strings.
    pub fn mget(self, keys: impl ToArgs) -> Batch<B::With<Vec<Option<Bytes>>>> {
        self.and(make::strings::mget(keys))
    }

    /// Sets several strings.
    pub fn mset(self, key_values: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::strings::mset(key_values))
    }

    /// Sets several strings together with one expiry.
    pub fn msetex<T>(self, key_values: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::strings::msetex(key_values))
    }

    /// Sets several strings together with one expiry. With options.
    pub fn msetex_with<T>(self, key_values: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::strings::msetex_with(key_values, options))
    }

    /// Sets several strings unless any of the keys exists.
    pub fn msetnx(self, key_values: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::strings::msetnx(key_values))
    }

    /// Sets a string with a time to live in milliseconds.
    pub fn psetex(
        self,
        key: impl ToArgs,
        milliseconds: impl ToArgs,
        value: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::strings::psetex(key, milliseconds, value))
    }

    /// Sets a string, whatever type the key had.
    pub fn set(self, key: impl ToArgs, value: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::strings::set(key, value))
    }

    /// Sets a string, whatever type the key had. With options.
    pub fn set_with<T>(
        self,
        key: impl ToArgs,
        value: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::strings::set_with(key, value, options))
    }

    /// Sets a string with a time to live in seconds.
    pub fn setex(self, key: impl ToArgs, seconds: impl ToArgs, value: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::strings::setex(key, seconds, value))
    }

    /// Sets a string unless the key exists.
    pub fn setnx(self, key: impl ToArgs, value: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::strings::setnx(key, value))
    }

    /// Overwrites a part of a string from an offset on.
    pub fn setrange(self, key: impl ToArgs, offset: impl ToArgs, value: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::strings::setrange(key, offset, value))
    }

    /// Returns the length of a string.
    pub fn strlen(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::strings::strlen(key))
    }

    /// Returns a part of a string.
    pub fn substr(self, key: impl ToArgs, start: impl ToArgs, end: impl ToArgs) -> Batch<B::With<Bytes>> {
        self.and(make::strings::substr(key, start, end))
    }

    /// Counts the set bits of a string, or of a part of it.
    pub fn bitcount(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::bitmaps::bitcount(key))
    }

    /// Counts the set bits of a string, or of a part of it. With options.
    pub fn bitcount_with(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::bitmaps::bitcount_with(key, options))
    }

    /// Reads, sets and increments integers of any width inside a string.
    pub fn bitfield<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bitmaps::bitfield(key))
    }

    /// Reads, sets and increments integers of any width inside a string. With options.
    pub fn bitfield_with<T>(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bitmaps::bitfield_with(key, options))
    }

    /// Reads integers of any width inside a string.
    pub fn bitfield_ro<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bitmaps::bitfield_ro(key))
    }

    /// Reads integers of any width inside a string. With options.
    pub fn bitfield_ro_with<T>(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bitmaps::bitfield_ro_with(key, options))
    }

    /// Combines strings bit by bit and stores the result.
    pub fn bitop(self, choice: impl ToArgs, destkey: impl ToArgs, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::bitmaps::bitop(choice, destkey, keys))
    }

    /// Finds the first bit that is set or clear.
    pub fn bitpos(self, key: impl ToArgs, bit: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::bitmaps::bitpos(key, bit))
    }

    /// Finds the first bit that is set or clear. With options.
    pub fn bitpos_with(
        self,
        key: impl ToArgs,
        bit: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<i64>> {
        self.and(make::bitmaps::bitpos_with(key, bit, options))
    }

    /// Returns one bit of a string.
    pub fn getbit(self, key: impl ToArgs, offset: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::bitmaps::getbit(key, offset))
    }

    /// Sets or clears one bit of a string.
    pub fn setbit(self, key: impl ToArgs, offset: impl ToArgs, value: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::bitmaps::setbit(key, offset, value))
    }

    /// Moves an element from one list's end to another's; waits for one if need be.
    pub fn blmove(
        self,
        source: impl ToArgs,
        destination: impl ToArgs,
        where_: impl ToArgs,
        where_2: impl ToArgs,
        timeout: impl ToArgs,
    ) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::lists::blmove(source, destination, where_, where_2, timeout))
    }

    /// Pops elements from the first list that has any; waits for some if need be.
    pub fn blmpop<T>(
        self,
        timeout: impl ToArgs,
        keys: impl ToArgs,
        where_: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::lists::blmpop(timeout, keys, where_))
    }

    /// Pops elements from the first list that has any; waits for some if need be. With options.
    pub fn blmpop_with<T>(
        self,
        timeout: impl ToArgs,
        keys: impl ToArgs,
        where_: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::lists::blmpop_with(timeout, keys, where_, options))
    }

    /// Pops the first element of the first list that has any; waits for one if need be.
    pub fn blpop(self, keys: impl ToArgs, timeout: impl ToArgs) -> Batch<B::With<Option<(Bytes, Bytes)>>> {
        self.and(make::lists::blpop(keys, timeout))
    }

    /// Pops the last element of the first list that has any; waits for one if need be.
    pub fn brpop(self, keys: impl ToArgs, timeout: impl ToArgs) -> Batch<B::With<Option<(Bytes, Bytes)>>> {
        self.and(make::lists::brpop(keys, timeout))
    }

    /// Moves the last element of a list to the front of another; waits for one if need be.
    pub fn brpoplpush(
        self,
        source: impl ToArgs,
        destination: impl ToArgs,
        timeout: impl ToArgs,
    ) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::lists::brpoplpush(source, destination, timeout))
    }

    /// Returns the element at an index.
    pub fn lindex(self, key: impl ToArgs, index: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::lists::lindex(key, index))
    }

    /// Inserts an element before or after another.
    pub fn linsert(
        self,
        key: impl ToArgs,
        where_: impl ToArgs,
        pivot: impl ToArgs,
        element: impl ToArgs,
    ) -> Batch<B::With<i64>> {
        self.and(make::lists::linsert(key, where_, pivot, element))
    }

    /// Counts the elements.
    pub fn llen(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::lists::llen(key))
    }

    /// Moves an element from one list's end to another's.
    pub fn lmove(
        self,
        source: impl ToArgs,
        destination: impl ToArgs,
        where_: impl ToArgs,
        where_2: impl ToArgs,
    ) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::lists::lmove(source, destination, where_, where_2))
    }

    /// Pops elements from the first list that has any.
    pub fn lmpop<T>(self, keys: impl ToArgs, where_: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::lists::lmpop(keys, where_))
    }

    /// Pops elements from the first list that has any. With options.
    pub fn lmpop_with<T>(
        self,
        keys: impl ToArgs,
        where_: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::lists::lmpop_with(keys, where_, options))
    }

    /// Pops elements from the front.
    pub fn lpop(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::lists::lpop(key))
    }

    /// Pops elements from the front. With options.
    pub fn lpop_with<T>(self, key: impl ToArgs, count: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::lists::lpop_with(key, count))
    }

    /// Finds the indexes of equal elements.
    pub fn lpos(self, key: impl ToArgs, element: impl ToArgs) -> Batch<B::With<Option<u64>>> {
        self.and(make::lists::lpos(key, element))
    }

    /// Finds the indexes of equal elements. With options.
    pub fn lpos_with<T>(
        self,
        key: impl ToArgs,
        element: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::lists::lpos_with(key, element, options))
    }

    /// Adds elements to the front, and creates the list if absent.
    pub fn lpush(self, key: impl ToArgs, elements: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::lists::lpush(key, elements))
    }

    /// Adds elements to the front if the list exists.
    pub fn lpushx(self, key: impl ToArgs, elements: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::lists::lpushx(key, elements))
    }

    /// Returns a range of elements.
    pub fn lrange(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::lists::lrange(key, start, stop))
    }

    /// Removes elements that are equal to a value.
    pub fn lrem(self, key: impl ToArgs, count: impl ToArgs, element: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::lists::lrem(key, count, element))
    }

    /// Replaces the element at an index.
    pub fn lset(self, key: impl ToArgs, index: impl ToArgs, element: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::lists::lset(key, index, element))
    }

    /// Keeps a range of elements and removes the others.
    pub fn ltrim(self, key: impl ToArgs, start: impl ToArgs, stop: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::lists::ltrim(key, start, stop))
    }

    /// Pops elements from the end.
    pub fn rpop(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::lists::rpop(key))
    }

    /// Pops elements from the end. With options.
    pub fn rpop_with<T>(self, key: impl ToArgs, count: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::lists::rpop_with(key, count))
    }

    /// Moves the last element of a list to the front of another.
    pub fn rpoplpush(self, source: impl ToArgs, destination: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::lists::rpoplpush(source, destination))
    }

    /// Adds elements to the end, and creates the list if absent.
    pub fn rpush(self, key: impl ToArgs, elements: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::lists::rpush(key, elements))
    }

    /// Adds elements to the end if the list exists.
    pub fn rpushx(self, key: impl ToArgs, elements: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::lists::rpushx(key, elements))
    }

    /// Deletes fields, and the hash when none is left.
    pub fn hdel(self, key: impl ToArgs, fields: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::hashes::hdel(key, fields))
    }

    /// Tells whether a field exists.
    pub fn hexists(self, key: impl ToArgs, field: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::hashes::hexists(key, field))
    }

    /// Sets fields' time to live in seconds.
    pub fn hexpire(
        self,
        key: impl ToArgs,
        seconds: impl ToArgs,
        fields: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hexpire(key, seconds, fields))
    }

    /// Sets fields' time to live in seconds. With options.
    pub fn hexpire_with(
        self,
        key: impl ToArgs,
        seconds: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hexpire_with(key, seconds, options, fields))
    }

    /// Sets the time at which fields expire, in Unix seconds.
    pub fn hexpireat(
        self,
        key: impl ToArgs,
        unix_time_seconds: impl ToArgs,
        fields: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hexpireat(key, unix_time_seconds, fields))
    }

    /// Sets the time at which fields expire, in Unix seconds. With options.
    pub fn hexpireat_with(
        self,
        key: impl ToArgs,
        unix_time_seconds: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hexpireat_with(key, unix_time_seconds, options, fields))
    }

    /// Returns the time at which fields expire, in Unix seconds.
    pub fn hexpiretime(self, key: impl ToArgs, fields: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hexpiretime(key, fields))
    }

    /// Returns the value of a field.
    pub fn hget(self, key: impl ToArgs, field: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::hashes::hget(key, field))
    }

    /// Returns every field with its value.
    pub fn hgetall(self, key: impl ToArgs) -> Batch<B::With<HashMap<Bytes, Bytes>>> {
        self.and(make::hashes::hgetall(key))
    }

    /// Returns the values of fields and deletes them.
    pub fn hgetdel<T>(self, key: impl ToArgs, fields: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::hashes::hgetdel(key, fields))
    }

    /// Returns the values of fields and changes their expiry.
    pub fn hgetex<T>(self, key: impl ToArgs, fields: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::hashes::hgetex(key, fields))
    }

    /// Returns the values of fields and changes their expiry. With options.
    pub fn hgetex_with<T>(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::hashes::hgetex_with(key, options, fields))
    }

    /// Adds to the integer in a field; an absent one counts as 0.
    pub fn hincrby(
        self,
        key: impl ToArgs,
        field: impl ToArgs,
        increment: impl ToArgs,
    ) -> Batch<B::With<i64>> {
        self.and(make::hashes::hincrby(key, field, increment))
    }

    /// Adds to the decimal number in a field; an absent one counts as 0.
    pub fn hincrbyfloat(
        self,
        key: impl ToArgs,
        field: impl ToArgs,
        increment: impl ToArgs,
    ) -> Batch<B::With<f64>> {
        self.and(make::hashes::hincrbyfloat(key, field, increment))
    }

    /// Returns every field's name.
    pub fn hkeys(self, key: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::hashes::hkeys(key))
    }

    /// Counts the fields.
    pub fn hlen(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::hashes::hlen(key))
    }

    /// Returns the values of several fields.
    pub fn hmget(self, key: impl ToArgs, fields: impl ToArgs) -> Batch<B::With<Vec<Option<Bytes>>>> {
        self.and(make::hashes::hmget(key, fields))
    }

    /// Sets several fields.
    pub fn hmset(self, key: impl ToArgs, field_values: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::hashes::hmset(key, field_values))
    }

    /// Makes fields stay until they are deleted.
    pub fn hpersist(self, key: impl ToArgs, fields: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hpersist(key, fields))
    }

    /// Sets fields' time to live in milliseconds.
    pub fn hpexpire(
        self,
        key: impl ToArgs,
        milliseconds: impl ToArgs,
        fields: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hpexpire(key, milliseconds, fields))
    }

    /// Sets fields' time to live in milliseconds. With options.
    pub fn hpexpire_with(
        self,
        key: impl ToArgs,
        milliseconds: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hpexpire_with(key, milliseconds, options, fields))
    }

    /// Sets the time at which fields expire, in Unix milliseconds.
    pub fn hpexpireat(
        self,
        key: impl ToArgs,
        unix_time_milliseconds: impl ToArgs,
        fields: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hpexpireat(key, unix_time_milliseconds, fields))
    }

    /// Sets the time at which fields expire, in Unix milliseconds. With options.
    pub fn hpexpireat_with(
        self,
        key: impl ToArgs,
        unix_time_milliseconds: impl ToArgs,
        options: impl ToArgs,
        fields: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hpexpireat_with(key, unix_time_milliseconds, options, fields))
    }

    /// Returns the time at which fields expire, in Unix milliseconds.
    pub fn hpexpiretime(self, key: impl ToArgs, fields: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hpexpiretime(key, fields))
    }

    /// Returns fields' time to live in milliseconds.
    pub fn hpttl(self, key: impl ToArgs, fields: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::hpttl(key, fields))
    }

    /// Returns random fields.
    pub fn hrandfield(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::hashes::hrandfield(key))
    }

    /// Returns random fields. With options.
    pub fn hrandfield_with<T>(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::hashes::hrandfield_with(key, options))
    }

    /// Iterates over the fields.
    pub fn hscan(self, key: impl ToArgs, cursor: impl ToArgs) -> Batch<B::With<Page<(Bytes, Bytes)>>> {
        self.and(make::hashes::hscan(key, cursor))
    }

    /// Iterates over the fields. With options.
    pub fn hscan_with<T>(
        self,
        key: impl ToArgs,
        cursor: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::hashes::hscan_with(key, cursor, options))
    }

    /// Sets fields, and creates the hash if absent.
    pub fn hset(self, key: impl ToArgs, field_values: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::hashes::hset(key, field_values))
    }

    /// Sets fields together with their expiry.
    pub fn hsetex<T>(self, key: impl ToArgs, field_values: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::hashes::hsetex(key, field_values))
    }

    /// Sets fields together with their expiry. With options.
    pub fn hsetex_with<T>(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        field_values: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::hashes::hsetex_with(key, options, field_values))
    }

    /// Sets a field unless it exists.
    pub fn hsetnx(self, key: impl ToArgs, field: impl ToArgs, value: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::hashes::hsetnx(key, field, value))
    }

    /// Returns the length of a field's value.
    pub fn hstrlen(self, key: impl ToArgs, field: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::hashes::hstrlen(key, field))
    }

    /// Returns fields' time to live in seconds.
    pub fn httl(self, key: impl ToArgs, fields: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::hashes::httl(key, fields))
    }

    /// Returns every field's value.
    pub fn hvals(self, key: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::hashes::hvals(key))
    }

    /// Adds members, and creates the set if absent.
    pub fn sadd(self, key: impl ToArgs, members: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::sets::sadd(key, members))
    }

    /// Counts the members.
    pub fn scard(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::sets::scard(key))
    }

    /// Returns the members of the first set that no other set has.
    pub fn sdiff(self, keys: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::sets::sdiff(keys))
    }

    /// Stores the members of the first set that no other set has.
    pub fn sdiffstore(self, destination: impl ToArgs, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::sets::sdiffstore(destination, keys))
    }

    /// Returns the members that all sets share.
    pub fn sinter(self, keys: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::sets::sinter(keys))
    }

    /// Counts the members that all sets share.
    pub fn sintercard(self, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::sets::sintercard(keys))
    }

    /// Counts the members that all sets share. With options.
    pub fn sintercard_with(self, keys: impl ToArgs, options: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::sets::sintercard_with(keys, options))
    }

    /// Stores the members that all sets share.
    pub fn sinterstore(self, destination: impl ToArgs, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::sets::sinterstore(destination, keys))
    }

    /// Tells whether a member is in the set.
    pub fn sismember(self, key: impl ToArgs, member: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::sets::sismember(key, member))
    }

    /// Returns every member.
    pub fn smembers(self, key: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::sets::smembers(key))
    }

    /// Tells for each member whether it is in the set.
    pub fn smismember(self, key: impl ToArgs, members: impl ToArgs) -> Batch<B::With<Vec<bool>>> {
        self.and(make::sets::smismember(key, members))
    }

    /// Moves a member to another set.
    pub fn smove(
        self,
        source: impl ToArgs,
        destination: impl ToArgs,
        member: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::sets::smove(source, destination, member))
    }

    /// Removes and returns random members.
    pub fn spop(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::sets::spop(key))
    }

    /// Removes and returns random members. With options.
    pub fn spop_with(self, key: impl ToArgs, count: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::sets::spop_with(key, count))
    }

    /// Returns random members.
    pub fn srandmember(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::sets::srandmember(key))
    }

    /// Returns random members. With options.
    pub fn srandmember_with(self, key: impl ToArgs, count: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::sets::srandmember_with(key, count))
    }

    /// Removes members, and the set when none is left.
    pub fn srem(self, key: impl ToArgs, members: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::sets::srem(key, members))
    }

    /// Iterates over the members.
    pub fn sscan(self, key: impl ToArgs, cursor: impl ToArgs) -> Batch<B::With<Page<Bytes>>> {
        self.and(make::sets::sscan(key, cursor))
    }

    /// Iterates over the members. With options.
    pub fn sscan_with(
        self,
        key: impl ToArgs,
        cursor: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<Page<Bytes>>> {
        self.and(make::sets::sscan_with(key, cursor, options))
    }

    /// Returns the members that any of the sets has.
    pub fn sunion(self, keys: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::sets::sunion(keys))
    }

    /// Stores the members that any of the sets has.
    pub fn sunionstore(self, destination: impl ToArgs, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::sets::sunionstore(destination, keys))
    }

    /// Pops members from the first sorted set that has any; waits for some if need be.
    pub fn bzmpop<T>(
        self,
        timeout: impl ToArgs,
        keys: impl ToArgs,
        where_: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::bzmpop(timeout, keys, where_))
    }

    /// Pops members from the first sorted set that has any; waits for some if need be. With options.
    pub fn bzmpop_with<T>(
        self,
        timeout: impl ToArgs,
        keys: impl ToArgs,
        where_: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::bzmpop_with(timeout, keys, where_, options))
    }

    /// Pops the highest member of the first sorted set that has any; waits for one if need be.
    pub fn bzpopmax(self, keys: impl ToArgs, timeout: impl ToArgs) -> Batch<B::With<Option<PoppedMember>>> {
        self.and(make::zsets::bzpopmax(keys, timeout))
    }

    /// Pops the lowest member of the first sorted set that has any; waits for one if need be.
    pub fn bzpopmin(self, keys: impl ToArgs, timeout: impl ToArgs) -> Batch<B::With<Option<PoppedMember>>> {
        self.and(make::zsets::bzpopmin(keys, timeout))
    }

    /// Adds members or changes their scores.
    pub fn zadd(self, key: impl ToArgs, score_members: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zadd(key, score_members))
    }

    /// Adds members or changes their scores. With options.
    pub fn zadd_with<T>(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        score_members: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::zadd_with(key, options, score_members))
    }

    /// Counts the members.
    pub fn zcard(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zcard(key))
    }

    /// Counts the members with scores in a range.
    pub fn zcount(self, key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zcount(key, min, max))
    }

    /// Returns the members of the first sorted set that no other has.
    pub fn zdiff(self, keys: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zdiff(keys))
    }

    /// Returns the members of the first sorted set that no other has. With options.
    pub fn zdiff_with<T>(self, keys: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::zsets::zdiff_with(keys, options))
    }

    /// Stores the members of the first sorted set that no other has.
    pub fn zdiffstore(self, destination: impl ToArgs, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zdiffstore(destination, keys))
    }

    /// Adds to the score of a member; an absent one counts as 0.
    pub fn zincrby(
        self,
        key: impl ToArgs,
        increment: impl ToArgs,
        member: impl ToArgs,
    ) -> Batch<B::With<f64>> {
        self.and(make::zsets::zincrby(key, increment, member))
    }

    /// Returns the members that all sorted sets share.
    pub fn zinter(self, keys: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zinter(keys))
    }

    /// Returns the members that all sorted sets share. With options.
    pub fn zinter_with<T>(self, keys: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::zsets::zinter_with(keys, options))
    }

    /// Counts the members that all sorted sets share.
    pub fn zintercard(self, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zintercard(keys))
    }

    /// Counts the members that all sorted sets share. With options.
    pub fn zintercard_with(self, keys: impl ToArgs, options: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zintercard_with(keys, options))
    }

    /// Stores the members that all sorted sets share.
    pub fn zinterstore(self, destination: impl ToArgs, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zinterstore(destination, keys))
    }

    /// Stores the members that all sorted sets share. With options.
    pub fn zinterstore_with(
        self,
        destination: impl ToArgs,
        keys: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::zsets::zinterstore_with(destination, keys, options))
    }

    /// Counts the members between two strings.
    pub fn zlexcount(self, key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zlexcount(key, min, max))
    }

    /// Pops members from the first sorted set that has any.
    pub fn zmpop<T>(self, keys: impl ToArgs, where_: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::zsets::zmpop(keys, where_))
    }

    /// Pops members from the first sorted set that has any. With options.
    pub fn zmpop_with<T>(
        self,
        keys: impl ToArgs,
        where_: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::zmpop_with(keys, where_, options))
    }

    /// Returns the scores of several members.
    pub fn zmscore(self, key: impl ToArgs, members: impl ToArgs) -> Batch<B::With<Vec<Option<f64>>>> {
        self.and(make::zsets::zmscore(key, members))
    }

    /// Pops the members with the highest scores.
    pub fn zpopmax(self, key: impl ToArgs) -> Batch<B::With<Vec<(Bytes, f64)>>> {
        self.and(make::zsets::zpopmax(key))
    }

    /// Pops the members with the highest scores. With options.
    pub fn zpopmax_with(self, key: impl ToArgs, count: impl ToArgs) -> Batch<B::With<Vec<(Bytes, f64)>>> {
        self.and(make::zsets::zpopmax_with(key, count))
    }

    /// Pops the members with the lowest scores.
    pub fn zpopmin(self, key: impl ToArgs) -> Batch<B::With<Vec<(Bytes, f64)>>> {
        self.and(make::zsets::zpopmin(key))
    }

    /// Pops the members with the lowest scores. With options.
    pub fn zpopmin_with(self, key: impl ToArgs, count: impl ToArgs) -> Batch<B::With<Vec<(Bytes, f64)>>> {
        self.and(make::zsets::zpopmin_with(key, count))
    }

    /// Returns random members.
    pub fn zrandmember<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::zsets::zrandmember(key))
    }

    /// Returns random members. With options.
    pub fn zrandmember_with<T>(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::zsets::zrandmember_with(key, options))
    }

    /// Returns the members within a range of ranks, scores or strings.
    pub fn zrange(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zrange(key, start, stop))
    }

    /// Returns the members within a range of ranks, scores or strings. With options.
    pub fn zrange_with<T>(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::zrange_with(key, start, stop, options))
    }

    /// Returns the members between two strings.
    pub fn zrangebylex(
        self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zrangebylex(key, min, max))
    }

    /// Returns the members between two strings. With options.
    pub fn zrangebylex_with(
        self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zrangebylex_with(key, min, max, options))
    }

    /// Returns the members with scores in a range.
    pub fn zrangebyscore(
        self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zrangebyscore(key, min, max))
    }

    /// Returns the members with scores in a range. With options.
    pub fn zrangebyscore_with<T>(
        self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::zrangebyscore_with(key, min, max, options))
    }

    /// Stores the members within a range of ranks, scores or strings.
    pub fn zrangestore(
        self,
        dst: impl ToArgs,
        src: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::zsets::zrangestore(dst, src, min, max))
    }

    /// Stores the members within a range of ranks, scores or strings. With options.
    pub fn zrangestore_with(
        self,
        dst: impl ToArgs,
        src: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::zsets::zrangestore_with(dst, src, min, max, options))
    }

    /// Returns the rank of a member, lowest score first.
    pub fn zrank(self, key: impl ToArgs, member: impl ToArgs) -> Batch<B::With<Option<u64>>> {
        self.and(make::zsets::zrank(key, member))
    }

    /// Returns the rank of a member, lowest score first. With options.
    pub fn zrank_with<T>(
        self,
        key: impl ToArgs,
        member: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::zrank_with(key, member, options))
    }

    /// Removes members, and the sorted set when none is left.
    pub fn zrem(self, key: impl ToArgs, members: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zrem(key, members))
    }

    /// Removes the members between two strings.
    pub fn zremrangebylex(self, key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zremrangebylex(key, min, max))
    }

    /// Removes the members within a range of ranks.
    pub fn zremrangebyrank(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::zsets::zremrangebyrank(key, start, stop))
    }

    /// Removes the members with scores in a range.
    pub fn zremrangebyscore(
        self,
        key: impl ToArgs,
        min: impl ToArgs,
        max: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::zsets::zremrangebyscore(key, min, max))
    }

    /// Returns the members within a range of ranks, highest score first.
    pub fn zrevrange(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zrevrange(key, start, stop))
    }

    /// Returns the members within a range of ranks, highest score first. With options.
    pub fn zrevrange_with<T>(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::zrevrange_with(key, start, stop, options))
    }

    /// Returns the members between two strings, in reverse order.
    pub fn zrevrangebylex(
        self,
        key: impl ToArgs,
        max: impl ToArgs,
        min: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zrevrangebylex(key, max, min))
    }

    /// Returns the members between two strings, in reverse order. With options.
    pub fn zrevrangebylex_with(
        self,
        key: impl ToArgs,
        max: impl ToArgs,
        min: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zrevrangebylex_with(key, max, min, options))
    }

    /// Returns the members with scores in a range, highest score first.
    pub fn zrevrangebyscore(
        self,
        key: impl ToArgs,
        max: impl ToArgs,
        min: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zrevrangebyscore(key, max, min))
    }

    /// Returns the members with scores in a range, highest score first. With options.
    pub fn zrevrangebyscore_with<T>(
        self,
        key: impl ToArgs,
        max: impl ToArgs,
        min: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::zrevrangebyscore_with(key, max, min, options))
    }

    /// Returns the rank of a member, highest score first.
    pub fn zrevrank(self, key: impl ToArgs, member: impl ToArgs) -> Batch<B::With<Option<u64>>> {
        self.and(make::zsets::zrevrank(key, member))
    }

    /// Returns the rank of a member, highest score first. With options.
    pub fn zrevrank_with<T>(
        self,
        key: impl ToArgs,
        member: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::zrevrank_with(key, member, options))
    }

    /// Iterates over the members and their scores.
    pub fn zscan(self, key: impl ToArgs, cursor: impl ToArgs) -> Batch<B::With<Page<(Bytes, f64)>>> {
        self.and(make::zsets::zscan(key, cursor))
    }

    /// Iterates over the members and their scores. With options.
    pub fn zscan_with<T>(
        self,
        key: impl ToArgs,
        cursor: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::zsets::zscan_with(key, cursor, options))
    }

    /// Returns the score of a member.
    pub fn zscore(self, key: impl ToArgs, member: impl ToArgs) -> Batch<B::With<Option<f64>>> {
        self.and(make::zsets::zscore(key, member))
    }

    /// Returns the members that any of the sorted sets has.
    pub fn zunion(self, keys: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::zsets::zunion(keys))
    }

    /// Returns the members that any of the sorted sets has. With options.
    pub fn zunion_with<T>(self, keys: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::zsets::zunion_with(keys, options))
    }

    /// Stores the members that any of the sorted sets has.
    pub fn zunionstore(self, destination: impl ToArgs, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::zsets::zunionstore(destination, keys))
    }

    /// Stores the members that any of the sorted sets has. With options.
    pub fn zunionstore_with(
        self,
        destination: impl ToArgs,
        keys: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::zsets::zunionstore_with(destination, keys, options))
    }

    /// Copies a value to another key.
    pub fn copy(self, source: impl ToArgs, destination: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::keys::copy(source, destination))
    }

    /// Copies a value to another key. With options.
    pub fn copy_with(
        self,
        source: impl ToArgs,
        destination: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::keys::copy_with(source, destination, options))
    }

    /// Deletes keys.
    pub fn del(self, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::keys::del(keys))
    }

    /// Returns a value in serialized form.
    pub fn dump(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::keys::dump(key))
    }

    /// Counts how many of the given keys exist.
    pub fn exists(self, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::keys::exists(keys))
    }

    /// Sets a key's time to live in seconds.
    pub fn expire(self, key: impl ToArgs, seconds: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::keys::expire(key, seconds))
    }

    /// Sets a key's time to live in seconds. With options.
    pub fn expire_with(
        self,
        key: impl ToArgs,
        seconds: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::keys::expire_with(key, seconds, options))
    }

    /// Sets the time at which a key expires, in Unix seconds.
    pub fn expireat(self, key: impl ToArgs, unix_time_seconds: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::keys::expireat(key, unix_time_seconds))
    }

    /// Sets the time at which a key expires, in Unix seconds. With options.
    pub fn expireat_with(
        self,
        key: impl ToArgs,
        unix_time_seconds: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::keys::expireat_with(key, unix_time_seconds, options))
    }

    /// Returns the time at which a key expires, in Unix seconds.
    pub fn expiretime(self, key: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::keys::expiretime(key))
    }

    /// Lists the keys that match a pattern.
    pub fn keys(self, pattern: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::keys::keys(pattern))
    }

    /// Moves keys to another server.
    pub fn migrate<T>(
        self,
        host: impl ToArgs,
        port: impl ToArgs,
        key: impl ToArgs,
        destination_db: impl ToArgs,
        timeout: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::keys::migrate(host, port, key, destination_db, timeout))
    }

    /// Moves keys to another server. With options.
    pub fn migrate_with<T>(
        self,
        host: impl ToArgs,
        port: impl ToArgs,
        key: impl ToArgs,
        destination_db: impl ToArgs,
        timeout: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::keys::migrate_with(host, port, key, destination_db, timeout, options))
    }

    /// Moves a key to another database.
    pub fn move_(self, key: impl ToArgs, db: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::keys::move_(key, db))
    }

    /// Makes a key stay until it is deleted.
    pub fn persist(self, key: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::keys::persist(key))
    }

    /// Sets a key's time to live in milliseconds.
    pub fn pexpire(self, key: impl ToArgs, milliseconds: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::keys::pexpire(key, milliseconds))
    }

    /// Sets a key's time to live in milliseconds. With options.
    pub fn pexpire_with(
        self,
        key: impl ToArgs,
        milliseconds: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::keys::pexpire_with(key, milliseconds, options))
    }

    /// Sets the time at which a key expires, in Unix milliseconds.
    pub fn pexpireat(self, key: impl ToArgs, unix_time_milliseconds: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::keys::pexpireat(key, unix_time_milliseconds))
    }

    /// Sets the time at which a key expires, in Unix milliseconds. With options.
    pub fn pexpireat_with(
        self,
        key: impl ToArgs,
        unix_time_milliseconds: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::keys::pexpireat_with(key, unix_time_milliseconds, options))
    }

    /// Returns the time at which a key expires, in Unix milliseconds.
    pub fn pexpiretime(self, key: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::keys::pexpiretime(key))
    }

    /// Returns a key's time to live in milliseconds.
    pub fn pttl(self, key: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::keys::pttl(key))
    }

    /// Returns a random key.
    pub fn randomkey(self) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::keys::randomkey())
    }

    /// Renames a key, and replaces the key that had the new name.
    pub fn rename(self, key: impl ToArgs, newkey: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::keys::rename(key, newkey))
    }

    /// Renames a key unless the new name is taken.
    pub fn renamenx(self, key: impl ToArgs, newkey: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::keys::renamenx(key, newkey))
    }

    /// Creates a key from a serialized value.
    pub fn restore(
        self,
        key: impl ToArgs,
        ttl: impl ToArgs,
        serialized_value: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::keys::restore(key, ttl, serialized_value))
    }

    /// Creates a key from a serialized value. With options.
    pub fn restore_with(
        self,
        key: impl ToArgs,
        ttl: impl ToArgs,
        serialized_value: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::keys::restore_with(key, ttl, serialized_value, options))
    }

    /// Iterates over the keys of the selected database.
    pub fn scan(self, cursor: impl ToArgs) -> Batch<B::With<Page<Bytes>>> {
        self.and(make::keys::scan(cursor))
    }

    /// Iterates over the keys of the selected database. With options.
    pub fn scan_with(self, cursor: impl ToArgs, options: impl ToArgs) -> Batch<B::With<Page<Bytes>>> {
        self.and(make::keys::scan_with(cursor, options))
    }

    /// Sorts the elements of a list, set or sorted set, and can store the result.
    pub fn sort(self, key: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::keys::sort(key))
    }

    /// Sorts the elements of a list, set or sorted set, and can store the result. With options.
    pub fn sort_with(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::keys::sort_with(key, options))
    }

    /// Sorts the elements of a list, set or sorted set.
    pub fn sort_ro(self, key: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::keys::sort_ro(key))
    }

    /// Sorts the elements of a list, set or sorted set. With options.
    pub fn sort_ro_with(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::keys::sort_ro_with(key, options))
    }

    /// Marks keys as just used and counts those that exist.
    pub fn touch(self, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::keys::touch(keys))
    }

    /// Returns a key's time to live in seconds.
    pub fn ttl(self, key: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::keys::ttl(key))
    }

    /// Names the type of a value.
    pub fn type_(self, key: impl ToArgs) -> Batch<B::With<String>> {
        self.and(make::keys::type_(key))
    }

    /// Deletes keys and frees large values in the background.
    pub fn unlink(self, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::keys::unlink(keys))
    }

    /// Waits until replicas have this connection's writes.
    pub fn wait(self, numreplicas: impl ToArgs, timeout: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::keys::wait(numreplicas, timeout))
    }

    /// Waits until this connection's writes are on disk, here and on replicas.
    pub fn waitaof<T>(
        self,
        numlocal: impl ToArgs,
        numreplicas: impl ToArgs,
        timeout: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::keys::waitaof(numlocal, numreplicas, timeout))
    }

    /// Adds elements to a HyperLogLog.
    pub fn pfadd(self, key: impl ToArgs, elements: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::hyperloglog::pfadd(key, elements))
    }

    /// Estimates how many different elements were added.
    pub fn pfcount(self, keys: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::hyperloglog::pfcount(keys))
    }

    /// Merges HyperLogLogs into one.
    pub fn pfmerge(self, destkey: impl ToArgs, sourcekeys: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::hyperloglog::pfmerge(destkey, sourcekeys))
    }

    /// Adds or moves members of a geospatial index.
    pub fn geoadd(self, key: impl ToArgs, longitude_latitude_members: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::geo::geoadd(key, longitude_latitude_members))
    }

    /// Adds or moves members of a geospatial index. With options.
    pub fn geoadd_with(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        longitude_latitude_members: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::geo::geoadd_with(key, options, longitude_latitude_members))
    }

    /// Returns the distance between two members.
    pub fn geodist(
        self,
        key: impl ToArgs,
        member1: impl ToArgs,
        member2: impl ToArgs,
    ) -> Batch<B::With<Option<f64>>> {
        self.and(make::geo::geodist(key, member1, member2))
    }

    /// Returns the distance between two members. With options.
    pub fn geodist_with(
        self,
        key: impl ToArgs,
        member1: impl ToArgs,
        member2: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<Option<f64>>> {
        self.and(make::geo::geodist_with(key, member1, member2, options))
    }

    /// Returns members' positions as geohash strings.
    pub fn geohash(self, key: impl ToArgs, members: impl ToArgs) -> Batch<B::With<Vec<Option<String>>>> {
        self.and(make::geo::geohash(key, members))
    }

    /// Returns members' longitudes and latitudes.
    pub fn geopos(self, key: impl ToArgs, members: impl ToArgs) -> Batch<B::With<Vec<Option<Position>>>> {
        self.and(make::geo::geopos(key, members))
    }

    /// Finds the members within a circle, and can store them.
    pub fn georadius<T>(
        self,
        key: impl ToArgs,
        longitude: impl ToArgs,
        latitude: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::geo::georadius(key, longitude, latitude, radius, unit))
    }

    /// Finds the members within a circle, and can store them. With options.
    pub fn georadius_with<T>(
        self,
        key: impl ToArgs,
        longitude: impl ToArgs,
        latitude: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::geo::georadius_with(key, longitude, latitude, radius, unit, options))
    }

    /// Finds the members within a circle.
    pub fn georadius_ro<T>(
        self,
        key: impl ToArgs,
        longitude: impl ToArgs,
        latitude: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::geo::georadius_ro(key, longitude, latitude, radius, unit))
    }

    /// Finds the members within a circle. With options.
    pub fn georadius_ro_with<T>(
        self,
        key: impl ToArgs,
        longitude: impl ToArgs,
        latitude: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::geo::georadius_ro_with(key, longitude, latitude, radius, unit, options))
    }

    /// Finds the members within a circle around another member, and can store them.
    pub fn georadiusbymember<T>(
        self,
        key: impl ToArgs,
        member: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::geo::georadiusbymember(key, member, radius, unit))
    }

    /// Finds the members within a circle around another member, and can store them. With options.
    pub fn georadiusbymember_with<T>(
        self,
        key: impl ToArgs,
        member: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::geo::georadiusbymember_with(key, member, radius, unit, options))
    }

    /// Finds the members within a circle around another member.
    pub fn georadiusbymember_ro<T>(
        self,
        key: impl ToArgs,
        member: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::geo::georadiusbymember_ro(key, member, radius, unit))
    }

    /// Finds the members within a circle around another member. With options.
    pub fn georadiusbymember_ro_with<T>(
        self,
        key: impl ToArgs,
        member: impl ToArgs,
        radius: impl ToArgs,
        unit: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::geo::georadiusbymember_ro_with(key, member, radius, unit, options))
    }

    /// Finds the members within a circle, a box or a polygon.
    pub fn geosearch(self, key: impl ToArgs, choice: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::geo::geosearch(key, choice))
    }

    /// Finds the members within a circle, a box or a polygon. With options.
    pub fn geosearch_with<T>(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        choice: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::geo::geosearch_with(key, options, choice, options_2))
    }

    /// Stores the members within a circle, a box or a polygon in another key.
    pub fn geosearchstore(
        self,
        destination: impl ToArgs,
        source: impl ToArgs,
        choice: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::geo::geosearchstore(destination, source, choice))
    }

    /// Stores the members within a circle, a box or a polygon in another key. With options.
    pub fn geosearchstore_with(
        self,
        destination: impl ToArgs,
        source: impl ToArgs,
        options: impl ToArgs,
        choice: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::geo::geosearchstore_with(destination, source, options, choice, options_2))
    }

    /// Drops the queued commands of a transaction.
    pub fn discard(self) -> Batch<B::With<()>> {
        self.and(make::transactions::discard())
    }

    /// Runs the queued commands of a transaction.
    pub fn exec<T>(self) -> Batch<B::With<T>> {
        self.and(make::transactions::exec())
    }

    /// Begins a transaction.
    pub fn multi(self) -> Batch<B::With<()>> {
        self.and(make::transactions::multi())
    }

    /// Forgets the watched keys.
    pub fn unwatch(self) -> Batch<B::With<()>> {
        self.and(make::transactions::unwatch())
    }

    /// Makes the next transaction fail if any of the keys changes first.
    pub fn watch(self, keys: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::transactions::watch(keys))
    }

    /// Sends a message to a channel.
    pub fn publish(self, channel: impl ToArgs, message: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::pubsub::publish(channel, message))
    }

    /// Sends a message to a sharded channel.
    pub fn spublish(self, shardchannel: impl ToArgs, message: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::pubsub::spublish(shardchannel, message))
    }

    /// Authenticates this connection.
    pub fn auth(self, password: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::connection::auth(password))
    }

    /// Authenticates this connection. With options.
    pub fn auth_with<T>(self, username: impl ToArgs, password: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::auth_with(username, password))
    }

    /// Returns its argument.
    pub fn echo(self, message: impl ToArgs) -> Batch<B::With<Bytes>> {
        self.and(make::connection::echo(message))
    }

    /// Starts a session: protocol version, login, name.
    pub fn hello<T>(self) -> Batch<B::With<T>> {
        self.and(make::connection::hello())
    }

    /// Starts a session: protocol version, login, name. With options.
    pub fn hello_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::hello_with(options))
    }

    /// Answers PONG, or its argument.
    pub fn ping(self) -> Batch<B::With<String>> {
        self.and(make::connection::ping())
    }

    /// Answers PONG, or its argument. With options.
    pub fn ping_with<T>(self, message: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::ping_with(message))
    }

    /// Closes this connection.
    pub fn quit<T>(self) -> Batch<B::With<T>> {
        self.and(make::connection::quit())
    }

    /// Selects the database of this connection.
    pub fn select(self, index: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::connection::select(index))
    }

    /// Rewrites the append-only log in the background.
    pub fn bgrewriteaof(self) -> Batch<B::With<String>> {
        self.and(make::server::bgrewriteaof())
    }

    /// Saves a snapshot in the background.
    pub fn bgsave(self) -> Batch<B::With<String>> {
        self.and(make::server::bgsave())
    }

    /// Saves a snapshot in the background. With options.
    pub fn bgsave_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::bgsave_with(options))
    }

    /// Counts the keys of the selected database.
    pub fn dbsize(self) -> Batch<B::With<u64>> {
        self.and(make::server::dbsize())
    }

    /// Hands the primary's role to one of its replicas.
    pub fn failover<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::failover())
    }

    /// Hands the primary's role to one of its replicas. With options.
    pub fn failover_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::failover_with(options))
    }

    /// Deletes every key of every database.
    pub fn flushall(self) -> Batch<B::With<()>> {
        self.and(make::server::flushall())
    }

    /// Deletes every key of every database. With options.
    pub fn flushall_with(self, options: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::server::flushall_with(options))
    }

    /// Deletes every key of the selected database.
    pub fn flushdb(self) -> Batch<B::With<()>> {
        self.and(make::server::flushdb())
    }

    /// Deletes every key of the selected database. With options.
    pub fn flushdb_with(self, options: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::server::flushdb_with(options))
    }

    /// Returns facts and counters about the server.
    pub fn info(self, sections: impl ToArgs) -> Batch<B::With<String>> {
        self.and(make::server::info(sections))
    }

    /// Returns the time of the last successful save.
    pub fn lastsave(self) -> Batch<B::With<u64>> {
        self.and(make::server::lastsave())
    }

    /// Draws a picture and tells the version.
    pub fn lolwut(self) -> Batch<B::With<String>> {
        self.and(make::server::lolwut())
    }

    /// Draws a picture and tells the version. With options.
    pub fn lolwut_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::lolwut_with(options))
    }

    /// Makes this server a replica of another, or a primary.
    pub fn replicaof<T>(self, choice: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::replicaof(choice))
    }

    /// Shows the replication role.
    pub fn role<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::role())
    }

    /// Saves a snapshot and blocks the server meanwhile.
    pub fn save(self) -> Batch<B::With<()>> {
        self.and(make::server::save())
    }

    /// Saves if configured, then stops the server.
    pub fn shutdown<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::shutdown())
    }

    /// Saves if configured, then stops the server. With options.
    pub fn shutdown_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::shutdown_with(options))
    }

    /// Makes this server a replica of another, or a primary.
    pub fn slaveof<T>(self, choice: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::slaveof(choice))
    }

    /// Swaps the contents of two databases.
    pub fn swapdb(self, index1: impl ToArgs, index2: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::server::swapdb(index1, index2))
    }

    /// Returns the server's time.
    pub fn time(self) -> Batch<B::With<(u64, u64)>> {
        self.and(make::server::time())
    }

    /// Lets the next command use a slot that is being imported.
    pub fn asking(self) -> Batch<B::With<()>> {
        self.and(make::cluster::asking())
    }

    /// Iterates over the keys of the whole cluster.
    pub fn clusterscan<T>(self, cursor: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::clusterscan(cursor))
    }

    /// Iterates over the keys of the whole cluster. With options.
    pub fn clusterscan_with<T>(self, cursor: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::clusterscan_with(cursor, options))
    }

    /// Allows reads from this replica on this connection.
    pub fn readonly(self) -> Batch<B::With<()>> {
        self.and(make::cluster::readonly())
    }

    /// Ends the effect of READONLY.
    pub fn readwrite(self) -> Batch<B::With<()>> {
        self.and(make::cluster::readwrite())
    }

    /// Runs a Lua script.
    pub fn eval<T>(self, script: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::eval(script, keys, args))
    }

    /// Runs a Lua script that may not write.
    pub fn eval_ro<T>(self, script: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::eval_ro(script, keys, args))
    }

    /// Runs a cached Lua script by its digest.
    pub fn evalsha<T>(self, sha1: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::evalsha(sha1, keys, args))
    }

    /// Runs a cached Lua script that may not write, by its digest.
    pub fn evalsha_ro<T>(self, sha1: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::evalsha_ro(sha1, keys, args))
    }

    /// Calls a function.
    pub fn fcall<T>(self, function: impl ToArgs, keys: impl ToArgs, args: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::fcall(function, keys, args))
    }

    /// Calls a function that may not write.
    pub fn fcall_ro<T>(
        self,
        function: impl ToArgs,
        keys: impl ToArgs,
        args: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::scripting::fcall_ro(function, keys, args))
    }

    /// Acknowledges entries for a consumer group.
    pub fn xack(self, key: impl ToArgs, group: impl ToArgs, ids: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::streams::xack(key, group, ids))
    }

    /// Acknowledges entries for a consumer group and deletes them.
    pub fn xackdel<T>(self, key: impl ToArgs, group: impl ToArgs, ids: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::streams::xackdel(key, group, ids))
    }

    /// Acknowledges entries for a consumer group and deletes them. With options.
    pub fn xackdel_with<T>(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        options: impl ToArgs,
        ids: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xackdel_with(key, group, options, ids))
    }

    /// Appends an entry, and creates the stream if absent.
    pub fn xadd(
        self,
        key: impl ToArgs,
        id: impl ToArgs,
        field_values: impl ToArgs,
    ) -> Batch<B::With<String>> {
        self.and(make::streams::xadd(key, id, field_values))
    }

    /// Appends an entry, and creates the stream if absent. With options.
    pub fn xadd_with<T>(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        id: impl ToArgs,
        field_values: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xadd_with(key, options, id, field_values))
    }

    /// Takes over entries that other consumers left pending.
    pub fn xautoclaim<T>(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
        min_idle_time: impl ToArgs,
        start: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xautoclaim(key, group, consumer, min_idle_time, start))
    }

    /// Takes over entries that other consumers left pending. With options.
    pub fn xautoclaim_with<T>(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
        min_idle_time: impl ToArgs,
        start: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xautoclaim_with(key, group, consumer, min_idle_time, start, options))
    }

    /// Takes over given pending entries.
    pub fn xclaim<T>(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
        min_idle_time: impl ToArgs,
        ids: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xclaim(key, group, consumer, min_idle_time, ids))
    }

    /// Takes over given pending entries. With options.
    pub fn xclaim_with<T>(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
        min_idle_time: impl ToArgs,
        ids: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xclaim_with(key, group, consumer, min_idle_time, ids, options))
    }

    /// Deletes entries.
    pub fn xdel(self, key: impl ToArgs, ids: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::streams::xdel(key, ids))
    }

    /// Deletes entries, with a choice for the groups' references.
    pub fn xdelex<T>(self, key: impl ToArgs, ids: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::streams::xdelex(key, ids))
    }

    /// Deletes entries, with a choice for the groups' references. With options.
    pub fn xdelex_with<T>(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        ids: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xdelex_with(key, options, ids))
    }

    /// Counts the entries.
    pub fn xlen(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::streams::xlen(key))
    }

    /// Shows the pending entries of a consumer group.
    pub fn xpending<T>(self, key: impl ToArgs, group: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::streams::xpending(key, group))
    }

    /// Shows the pending entries of a consumer group. With options.
    pub fn xpending_with<T>(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xpending_with(key, group, options))
    }

    /// Returns a range of entries, oldest first.
    pub fn xrange(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
    ) -> Batch<B::With<StreamEntries>> {
        self.and(make::streams::xrange(key, start, end))
    }

    /// Returns a range of entries, oldest first. With options.
    pub fn xrange_with(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<StreamEntries>> {
        self.and(make::streams::xrange_with(key, start, end, options))
    }

    /// Returns entries after given ids; can wait for some.
    pub fn xread(self, keys: impl ToArgs, ids: impl ToArgs) -> Batch<B::With<HashMap<Bytes, StreamEntries>>> {
        self.and(make::streams::xread(keys, ids))
    }

    /// Returns entries after given ids; can wait for some. With options.
    pub fn xread_with(
        self,
        options: impl ToArgs,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Batch<B::With<HashMap<Bytes, StreamEntries>>> {
        self.and(make::streams::xread_with(options, keys, ids))
    }

    /// Returns entries to a consumer of a group; can wait for some.
    pub fn xreadgroup(
        self,
        group: impl ToArgs,
        consumer: impl ToArgs,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Batch<B::With<HashMap<Bytes, StreamEntries>>> {
        self.and(make::streams::xreadgroup(group, consumer, keys, ids))
    }

    /// Returns entries to a consumer of a group; can wait for some. With options.
    pub fn xreadgroup_with(
        self,
        group: impl ToArgs,
        consumer: impl ToArgs,
        options: impl ToArgs,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Batch<B::With<HashMap<Bytes, StreamEntries>>> {
        self.and(make::streams::xreadgroup_with(group, consumer, options, keys, ids))
    }

    /// Returns a range of entries, newest first.
    pub fn xrevrange(
        self,
        key: impl ToArgs,
        end: impl ToArgs,
        start: impl ToArgs,
    ) -> Batch<B::With<StreamEntries>> {
        self.and(make::streams::xrevrange(key, end, start))
    }

    /// Returns a range of entries, newest first. With options.
    pub fn xrevrange_with(
        self,
        key: impl ToArgs,
        end: impl ToArgs,
        start: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<StreamEntries>> {
        self.and(make::streams::xrevrange_with(key, end, start, options))
    }

    /// Sets a stream's last id.
    pub fn xsetid(self, key: impl ToArgs, last_id: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::streams::xsetid(key, last_id))
    }

    /// Sets a stream's last id. With options.
    pub fn xsetid_with<T>(
        self,
        key: impl ToArgs,
        last_id: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xsetid_with(key, last_id, options))
    }

    /// Removes the oldest entries.
    pub fn xtrim(
        self,
        key: impl ToArgs,
        strategy: impl ToArgs,
        threshold: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::streams::xtrim(key, strategy, threshold))
    }

    /// Removes the oldest entries. With options.
    pub fn xtrim_with<T>(
        self,
        key: impl ToArgs,
        strategy: impl ToArgs,
        options: impl ToArgs,
        threshold: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xtrim_with(key, strategy, options, threshold, options_2))
    }

    /// Names the encoding of a value.
    pub fn object_encoding(self, key: impl ToArgs) -> Batch<B::With<Option<String>>> {
        self.and(make::keys::object_encoding(key))
    }

    /// Returns the access frequency counter of a key.
    pub fn object_freq(self, key: impl ToArgs) -> Batch<B::With<Option<u64>>> {
        self.and(make::keys::object_freq(key))
    }

    /// Shows what the subcommands do.
    pub fn object_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::keys::object_help())
    }

    /// Returns how long a key has not been used, in seconds.
    pub fn object_idletime(self, key: impl ToArgs) -> Batch<B::With<Option<u64>>> {
        self.and(make::keys::object_idletime(key))
    }

    /// Returns the reference count of a value.
    pub fn object_refcount(self, key: impl ToArgs) -> Batch<B::With<Option<u64>>> {
        self.and(make::keys::object_refcount(key))
    }

    /// Lists channels with subscribers.
    pub fn pubsub_channels(self) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::pubsub::pubsub_channels())
    }

    /// Lists channels with subscribers. With options.
    pub fn pubsub_channels_with(self, pattern: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::pubsub::pubsub_channels_with(pattern))
    }

    /// Shows what the subcommands do.
    pub fn pubsub_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::pubsub::pubsub_help())
    }

    /// Counts the subscribed patterns.
    pub fn pubsub_numpat(self) -> Batch<B::With<u64>> {
        self.and(make::pubsub::pubsub_numpat())
    }

    /// Counts the subscribers of channels.
    pub fn pubsub_numsub(self, channels: impl ToArgs) -> Batch<B::With<HashMap<Bytes, u64>>> {
        self.and(make::pubsub::pubsub_numsub(channels))
    }

    /// Lists sharded channels with subscribers.
    pub fn pubsub_shardchannels(self) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::pubsub::pubsub_shardchannels())
    }

    /// Lists sharded channels with subscribers. With options.
    pub fn pubsub_shardchannels_with(self, pattern: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::pubsub::pubsub_shardchannels_with(pattern))
    }

    /// Counts the subscribers of sharded channels.
    pub fn pubsub_shardnumsub(self, shardchannels: impl ToArgs) -> Batch<B::With<HashMap<Bytes, u64>>> {
        self.and(make::pubsub::pubsub_shardnumsub(shardchannels))
    }

    /// Says whether the next command's keys are tracked.
    pub fn client_caching<T>(self, enabled: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::client_caching(enabled))
    }

    /// Tells the server what this client can handle.
    pub fn client_capa<T>(self, capabilities: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::client_capa(capabilities))
    }

    /// Returns this connection's name.
    pub fn client_getname(self) -> Batch<B::With<Option<String>>> {
        self.and(make::connection::client_getname())
    }

    /// Tells which connection receives this one's invalidations.
    pub fn client_getredir(self) -> Batch<B::With<i64>> {
        self.and(make::connection::client_getredir())
    }

    /// Shows what the subcommands do.
    pub fn client_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::connection::client_help())
    }

    /// Returns this connection's number.
    pub fn client_id(self) -> Batch<B::With<u64>> {
        self.and(make::connection::client_id())
    }

    /// Describes this connection.
    pub fn client_info(self) -> Batch<B::With<String>> {
        self.and(make::connection::client_info())
    }

    /// Closes the connections that match the filters.
    pub fn client_kill<T>(self, choices: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::client_kill(choices))
    }

    /// Describes open connections.
    pub fn client_list(self) -> Batch<B::With<String>> {
        self.and(make::connection::client_list())
    }

    /// Describes open connections. With options.
    pub fn client_list_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::client_list_with(options))
    }

    /// Turns notices about planned moves on or off for this connection.
    pub fn client_maint_notifications<T>(self, choice: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::client_maint_notifications(choice))
    }

    /// Exempts this connection from eviction, or ends that.
    pub fn client_no_evict(self, enabled: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::connection::client_no_evict(enabled))
    }

    /// Says whether this connection's reads count as use of a key.
    pub fn client_no_touch(self, enabled: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::connection::client_no_touch(enabled))
    }

    /// Holds back all commands, or the writing ones, for a time.
    pub fn client_pause(self, timeout: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::connection::client_pause(timeout))
    }

    /// Holds back all commands, or the writing ones, for a time. With options.
    pub fn client_pause_with<T>(self, timeout: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::client_pause_with(timeout, options))
    }

    /// Records the name or version of the client library.
    pub fn client_setinfo<T>(self, choice: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::client_setinfo(choice))
    }

    /// Names this connection.
    pub fn client_setname(self, connection_name: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::connection::client_setname(connection_name))
    }

    /// Turns invalidation messages for client-side caching on or off.
    pub fn client_tracking<T>(self, enabled: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::client_tracking(enabled))
    }

    /// Turns invalidation messages for client-side caching on or off. With options.
    pub fn client_tracking_with<T>(self, enabled: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::connection::client_tracking_with(enabled, options))
    }

    /// Shows how this connection tracks keys.
    pub fn client_trackinginfo<T>(self) -> Batch<B::With<T>> {
        self.and(make::connection::client_trackinginfo())
    }

    /// Ends another connection's wait.
    pub fn client_unblock(self, client_id: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::connection::client_unblock(client_id))
    }

    /// Ends another connection's wait. With options.
    pub fn client_unblock_with(self, client_id: impl ToArgs, options: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::connection::client_unblock_with(client_id, options))
    }

    /// Ends a pause of commands.
    pub fn client_unpause(self) -> Batch<B::With<()>> {
        self.and(make::connection::client_unpause())
    }

    /// Lists the ACL categories, or the commands of one.
    pub fn acl_cat(self) -> Batch<B::With<Vec<String>>> {
        self.and(make::server::acl_cat())
    }

    /// Lists the ACL categories, or the commands of one. With options.
    pub fn acl_cat_with(self, category: impl ToArgs) -> Batch<B::With<Vec<String>>> {
        self.and(make::server::acl_cat_with(category))
    }

    /// Deletes ACL users and closes their connections.
    pub fn acl_deluser(self, usernames: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::server::acl_deluser(usernames))
    }

    /// Tells whether a user might run a command, without running it.
    pub fn acl_dryrun<T>(
        self,
        username: impl ToArgs,
        command: impl ToArgs,
        args: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::server::acl_dryrun(username, command, args))
    }

    /// Makes a random password.
    pub fn acl_genpass(self) -> Batch<B::With<String>> {
        self.and(make::server::acl_genpass())
    }

    /// Makes a random password. With options.
    pub fn acl_genpass_with(self, bits: impl ToArgs) -> Batch<B::With<String>> {
        self.and(make::server::acl_genpass_with(bits))
    }

    /// Shows the rules of one ACL user.
    pub fn acl_getuser<T>(self, username: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::acl_getuser(username))
    }

    /// Shows what the subcommands do.
    pub fn acl_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::acl_help())
    }

    /// Lists the ACL users, each as a line of rules.
    pub fn acl_list(self) -> Batch<B::With<Vec<String>>> {
        self.and(make::server::acl_list())
    }

    /// Reads the ACL users from the configured file again.
    pub fn acl_load(self) -> Batch<B::With<()>> {
        self.and(make::server::acl_load())
    }

    /// Shows or clears the log of denied commands and logins.
    pub fn acl_log<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::acl_log())
    }

    /// Shows or clears the log of denied commands and logins. With options.
    pub fn acl_log_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::acl_log_with(options))
    }

    /// Writes the ACL users to the configured file.
    pub fn acl_save(self) -> Batch<B::With<()>> {
        self.and(make::server::acl_save())
    }

    /// Creates an ACL user or changes its rules.
    pub fn acl_setuser(self, username: impl ToArgs, rules: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::server::acl_setuser(username, rules))
    }

    /// Lists the names of the ACL users.
    pub fn acl_users(self) -> Batch<B::With<Vec<String>>> {
        self.and(make::server::acl_users())
    }

    /// Names the user of this connection.
    pub fn acl_whoami(self) -> Batch<B::With<String>> {
        self.and(make::server::acl_whoami())
    }

    /// Counts the commands.
    pub fn command_count(self) -> Batch<B::With<u64>> {
        self.and(make::server::command_count())
    }

    /// Documents commands.
    pub fn command_docs<T>(self, command_names: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::command_docs(command_names))
    }

    /// Finds the keys in a command line.
    pub fn command_getkeys<T>(self, command: impl ToArgs, args: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::command_getkeys(command, args))
    }

    /// Finds the keys in a command line, and how each is used.
    pub fn command_getkeysandflags<T>(self, command: impl ToArgs, args: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::command_getkeysandflags(command, args))
    }

    /// Shows what the subcommands do.
    pub fn command_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::command_help())
    }

    /// Describes some commands, or all.
    pub fn command_info<T>(self, command_names: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::command_info(command_names))
    }

    /// Lists command names.
    pub fn command_list<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::command_list())
    }

    /// Lists command names. With options.
    pub fn command_list_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::command_list_with(options))
    }

    /// Returns entries of the command log.
    pub fn commandlog_get<T>(self, count: impl ToArgs, choice: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::commandlog_get(count, choice))
    }

    /// Shows what the subcommands do.
    pub fn commandlog_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::commandlog_help())
    }

    /// Counts the entries of the command log.
    pub fn commandlog_len<T>(self, choice: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::commandlog_len(choice))
    }

    /// Empties the command log.
    pub fn commandlog_reset<T>(self, choice: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::commandlog_reset(choice))
    }

    /// Returns the settings that match patterns.
    pub fn config_get(self, parameters: impl ToArgs) -> Batch<B::With<HashMap<String, String>>> {
        self.and(make::server::config_get(parameters))
    }

    /// Shows what the subcommands do.
    pub fn config_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::config_help())
    }

    /// Sets the counters of INFO back to zero.
    pub fn config_resetstat(self) -> Batch<B::With<()>> {
        self.and(make::server::config_resetstat())
    }

    /// Writes the current settings to the configuration file.
    pub fn config_rewrite(self) -> Batch<B::With<()>> {
        self.and(make::server::config_rewrite())
    }

    /// Changes settings, all or none of them.
    pub fn config_set(self, parameter_values: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::server::config_set(parameter_values))
    }

    /// Explains what the latency monitor saw.
    pub fn latency_doctor(self) -> Batch<B::With<String>> {
        self.and(make::server::latency_doctor())
    }

    /// Draws the latency of an event over time.
    pub fn latency_graph<T>(self, event: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::latency_graph(event))
    }

    /// Shows what the subcommands do.
    pub fn latency_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::latency_help())
    }

    /// Returns the distribution of commands' latencies.
    pub fn latency_histogram<T>(self, commands: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::latency_histogram(commands))
    }

    /// Returns the latency samples of an event.
    pub fn latency_history<T>(self, event: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::latency_history(event))
    }

    /// Returns the newest sample of every event.
    pub fn latency_latest<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::latency_latest())
    }

    /// Drops the latency samples of some events, or of all.
    pub fn latency_reset<T>(self, events: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::latency_reset(events))
    }

    /// Reports memory problems.
    pub fn memory_doctor(self) -> Batch<B::With<String>> {
        self.and(make::server::memory_doctor())
    }

    /// Shows what the subcommands do.
    pub fn memory_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::memory_help())
    }

    /// Shows the allocator's statistics.
    pub fn memory_malloc_stats<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::memory_malloc_stats())
    }

    /// Asks the allocator to return free memory.
    pub fn memory_purge(self) -> Batch<B::With<()>> {
        self.and(make::server::memory_purge())
    }

    /// Shows where memory goes.
    pub fn memory_stats<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::memory_stats())
    }

    /// Estimates the bytes that a key takes.
    pub fn memory_usage(self, key: impl ToArgs) -> Batch<B::With<Option<u64>>> {
        self.and(make::server::memory_usage(key))
    }

    /// Estimates the bytes that a key takes. With options.
    pub fn memory_usage_with(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<Option<u64>>> {
        self.and(make::server::memory_usage_with(key, options))
    }

    /// Shows what the subcommands do.
    pub fn module_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::module_help())
    }

    /// Lists loaded modules.
    pub fn module_list<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::module_list())
    }

    /// Loads a module.
    pub fn module_load<T>(self, path: impl ToArgs, args: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::module_load(path, args))
    }

    /// Loads a module with settings.
    pub fn module_loadex<T>(self, path: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::module_loadex(path))
    }

    /// Loads a module with settings. With options.
    pub fn module_loadex_with<T>(self, path: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::module_loadex_with(path, options))
    }

    /// Unloads a module.
    pub fn module_unload<T>(self, name: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::module_unload(name))
    }

    /// Returns entries of the slow log.
    pub fn slowlog_get<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::slowlog_get())
    }

    /// Returns entries of the slow log. With options.
    pub fn slowlog_get_with<T>(self, count: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::slowlog_get_with(count))
    }

    /// Shows what the subcommands do.
    pub fn slowlog_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::slowlog_help())
    }

    /// Counts the entries of the slow log.
    pub fn slowlog_len(self) -> Batch<B::With<u64>> {
        self.and(make::server::slowlog_len())
    }

    /// Empties the slow log.
    pub fn slowlog_reset(self) -> Batch<B::With<()>> {
        self.and(make::server::slowlog_reset())
    }

    /// Tells the connections that exist to move, and closes them later; or shows or ends that.
    pub fn towline_drain<T>(self, choice: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::server::towline_drain(choice))
    }

    /// Shows what the subcommands do.
    pub fn towline_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::server::towline_help())
    }

    /// Gives unowned slots to this node.
    pub fn cluster_addslots(self, slots: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_addslots(slots))
    }

    /// Gives ranges of unowned slots to this node.
    pub fn cluster_addslotsrange(self, start_slot_end_slots: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_addslotsrange(start_slot_end_slots))
    }

    /// Raises the configuration epoch.
    pub fn cluster_bumpepoch<T>(self) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_bumpepoch())
    }

    /// Cancels the slot migrations that this node runs.
    pub fn cluster_cancelslotmigrations<T>(self) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_cancelslotmigrations())
    }

    /// Counts the nodes that report another as failing.
    pub fn cluster_count_failure_reports<T>(self, node_id: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_count_failure_reports(node_id))
    }

    /// Counts the keys of a slot.
    pub fn cluster_countkeysinslot(self, slot: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::cluster::cluster_countkeysinslot(slot))
    }

    /// Makes this node forget who owns some slots.
    pub fn cluster_delslots(self, slots: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_delslots(slots))
    }

    /// Makes this node forget who owns ranges of slots.
    pub fn cluster_delslotsrange(self, start_slot_end_slots: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_delslotsrange(start_slot_end_slots))
    }

    /// Makes this replica the primary of its shard.
    pub fn cluster_failover(self) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_failover())
    }

    /// Makes this replica the primary of its shard. With options.
    pub fn cluster_failover_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_failover_with(options))
    }

    /// Deletes every key of a slot.
    pub fn cluster_flushslot<T>(self, slot: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_flushslot(slot))
    }

    /// Deletes every key of a slot. With options.
    pub fn cluster_flushslot_with<T>(self, slot: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_flushslot_with(slot, options))
    }

    /// Makes this node forget who owns any slot.
    pub fn cluster_flushslots(self) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_flushslots())
    }

    /// Removes a node from the list of known nodes.
    pub fn cluster_forget(self, node_id: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_forget(node_id))
    }

    /// Lists some keys of a slot.
    pub fn cluster_getkeysinslot(self, slot: impl ToArgs, count: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::cluster::cluster_getkeysinslot(slot, count))
    }

    /// Lists slot migrations and their state.
    pub fn cluster_getslotmigrations<T>(self) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_getslotmigrations())
    }

    /// Shows what the subcommands do.
    pub fn cluster_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_help())
    }

    /// Shows the state of the cluster as this node sees it.
    pub fn cluster_info(self) -> Batch<B::With<String>> {
        self.and(make::cluster::cluster_info())
    }

    /// Returns the slot of a key.
    pub fn cluster_keyslot(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::cluster::cluster_keyslot(key))
    }

    /// Lists the links between this node and its peers.
    pub fn cluster_links<T>(self) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_links())
    }

    /// Makes this node join another one's cluster.
    pub fn cluster_meet(self, ip: impl ToArgs, port: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_meet(ip, port))
    }

    /// Makes this node join another one's cluster. With options.
    pub fn cluster_meet_with<T>(
        self,
        ip: impl ToArgs,
        port: impl ToArgs,
        cluster_bus_port: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_meet_with(ip, port, cluster_bus_port))
    }

    /// Starts to move slots to other nodes.
    pub fn cluster_migrateslots<T>(self, start_slot_end_slot_node_ids: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_migrateslots(start_slot_end_slot_node_ids))
    }

    /// Returns this node's id.
    pub fn cluster_myid(self) -> Batch<B::With<String>> {
        self.and(make::cluster::cluster_myid())
    }

    /// Returns the id of this node's shard.
    pub fn cluster_myshardid<T>(self) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_myshardid())
    }

    /// Describes every node, one line each.
    pub fn cluster_nodes(self) -> Batch<B::With<String>> {
        self.and(make::cluster::cluster_nodes())
    }

    /// Lists the replicas of a primary.
    pub fn cluster_replicas<T>(self, node_id: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_replicas(node_id))
    }

    /// Makes this node a replica of another.
    pub fn cluster_replicate(self, node_id: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_replicate(node_id))
    }

    /// Makes this node leave its cluster.
    pub fn cluster_reset(self) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_reset())
    }

    /// Makes this node leave its cluster. With options.
    pub fn cluster_reset_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_reset_with(options))
    }

    /// Writes the cluster's configuration to disk.
    pub fn cluster_saveconfig(self) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_saveconfig())
    }

    /// Sets the configuration epoch of a new node.
    pub fn cluster_set_config_epoch(self, config_epoch: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_set_config_epoch(config_epoch))
    }

    /// Changes the owner or the migration state of a slot.
    pub fn cluster_setslot(self, slot: impl ToArgs, choice: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::cluster::cluster_setslot(slot, choice))
    }

    /// Describes the shards, their slots and nodes.
    pub fn cluster_shards<T>(self) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_shards())
    }

    /// Lists the replicas of a primary.
    pub fn cluster_slaves<T>(self, node_id: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_slaves(node_id))
    }

    /// Shows usage figures of slots.
    pub fn cluster_slot_stats<T>(self, choice: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_slot_stats(choice))
    }

    /// Maps ranges of slots to nodes.
    pub fn cluster_slots<T>(self) -> Batch<B::With<T>> {
        self.and(make::cluster::cluster_slots())
    }

    /// Deletes a library and its functions.
    pub fn function_delete(self, library_name: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::scripting::function_delete(library_name))
    }

    /// Returns every library in serialized form.
    pub fn function_dump(self) -> Batch<B::With<Bytes>> {
        self.and(make::scripting::function_dump())
    }

    /// Deletes every library.
    pub fn function_flush(self) -> Batch<B::With<()>> {
        self.and(make::scripting::function_flush())
    }

    /// Deletes every library. With options.
    pub fn function_flush_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::function_flush_with(options))
    }

    /// Shows what the subcommands do.
    pub fn function_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::scripting::function_help())
    }

    /// Stops a function that runs too long.
    pub fn function_kill(self) -> Batch<B::With<()>> {
        self.and(make::scripting::function_kill())
    }

    /// Lists libraries and their functions.
    pub fn function_list<T>(self) -> Batch<B::With<T>> {
        self.and(make::scripting::function_list())
    }

    /// Lists libraries and their functions. With options.
    pub fn function_list_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::function_list_with(options))
    }

    /// Creates a library, or replaces it.
    pub fn function_load(self, function_code: impl ToArgs) -> Batch<B::With<String>> {
        self.and(make::scripting::function_load(function_code))
    }

    /// Creates a library, or replaces it. With options.
    pub fn function_load_with(
        self,
        options: impl ToArgs,
        function_code: impl ToArgs,
    ) -> Batch<B::With<String>> {
        self.and(make::scripting::function_load_with(options, function_code))
    }

    /// Restores libraries from their serialized form.
    pub fn function_restore<T>(self, serialized_value: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::function_restore(serialized_value))
    }

    /// Restores libraries from their serialized form. With options.
    pub fn function_restore_with<T>(
        self,
        serialized_value: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::scripting::function_restore_with(serialized_value, options))
    }

    /// Shows the running function and the engines.
    pub fn function_stats<T>(self) -> Batch<B::With<T>> {
        self.and(make::scripting::function_stats())
    }

    /// Tells which scripts are cached.
    pub fn script_exists(self, sha1s: impl ToArgs) -> Batch<B::With<Vec<bool>>> {
        self.and(make::scripting::script_exists(sha1s))
    }

    /// Empties the script cache.
    pub fn script_flush(self) -> Batch<B::With<()>> {
        self.and(make::scripting::script_flush())
    }

    /// Empties the script cache. With options.
    pub fn script_flush_with<T>(self, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::script_flush_with(options))
    }

    /// Shows what the subcommands do.
    pub fn script_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::scripting::script_help())
    }

    /// Stops a script that runs too long.
    pub fn script_kill(self) -> Batch<B::With<()>> {
        self.and(make::scripting::script_kill())
    }

    /// Puts a script into the cache.
    pub fn script_load(self, script: impl ToArgs) -> Batch<B::With<String>> {
        self.and(make::scripting::script_load(script))
    }

    /// Returns the text of a cached script.
    pub fn script_show<T>(self, sha1: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::scripting::script_show(sha1))
    }

    /// Creates a consumer group.
    pub fn xgroup_create(self, key: impl ToArgs, group: impl ToArgs, id: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::streams::xgroup_create(key, group, id))
    }

    /// Creates a consumer group. With options.
    pub fn xgroup_create_with(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        id: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::streams::xgroup_create_with(key, group, id, options))
    }

    /// Creates a consumer.
    pub fn xgroup_createconsumer(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::streams::xgroup_createconsumer(key, group, consumer))
    }

    /// Deletes a consumer and its pending entries.
    pub fn xgroup_delconsumer<T>(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        consumer: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xgroup_delconsumer(key, group, consumer))
    }

    /// Deletes a consumer group.
    pub fn xgroup_destroy(self, key: impl ToArgs, group: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::streams::xgroup_destroy(key, group))
    }

    /// Shows what the subcommands do.
    pub fn xgroup_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::streams::xgroup_help())
    }

    /// Sets the last delivered entry of a consumer group.
    pub fn xgroup_setid(self, key: impl ToArgs, group: impl ToArgs, id: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::streams::xgroup_setid(key, group, id))
    }

    /// Sets the last delivered entry of a consumer group. With options.
    pub fn xgroup_setid_with<T>(
        self,
        key: impl ToArgs,
        group: impl ToArgs,
        id: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::streams::xgroup_setid_with(key, group, id, options))
    }

    /// Lists the consumers of a group.
    pub fn xinfo_consumers<T>(self, key: impl ToArgs, group: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::streams::xinfo_consumers(key, group))
    }

    /// Lists the consumer groups of a stream.
    pub fn xinfo_groups<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::streams::xinfo_groups(key))
    }

    /// Shows what the subcommands do.
    pub fn xinfo_help<T>(self) -> Batch<B::With<T>> {
        self.and(make::streams::xinfo_help())
    }

    /// Describes a stream.
    pub fn xinfo_stream<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::streams::xinfo_stream(key))
    }

    /// Describes a stream. With options.
    pub fn xinfo_stream_with<T>(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::streams::xinfo_stream_with(key, options))
    }

    /// Appends values to arrays.
    pub fn json_arrappend<T>(
        self,
        key: impl ToArgs,
        path: impl ToArgs,
        values: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::json::json_arrappend(key, path, values))
    }

    /// Finds the first place of a value in arrays.
    pub fn json_arrindex<T>(
        self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::json::json_arrindex(key, path, value))
    }

    /// Finds the first place of a value in arrays. With options.
    pub fn json_arrindex_with<T>(
        self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::json::json_arrindex_with(key, path, value, options))
    }

    /// Inserts values into arrays.
    pub fn json_arrinsert<T>(
        self,
        key: impl ToArgs,
        path: impl ToArgs,
        index: impl ToArgs,
        values: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::json::json_arrinsert(key, path, index, values))
    }

    /// Returns the lengths of arrays.
    pub fn json_arrlen<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_arrlen(key))
    }

    /// Returns the lengths of arrays. With options.
    pub fn json_arrlen_with<T>(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_arrlen_with(key, path))
    }

    /// Removes an element of arrays and returns it.
    pub fn json_arrpop<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_arrpop(key))
    }

    /// Removes an element of arrays and returns it. With options.
    pub fn json_arrpop_with<T>(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_arrpop_with(key, options))
    }

    /// Cuts arrays to a range.
    pub fn json_arrtrim<T>(
        self,
        key: impl ToArgs,
        path: impl ToArgs,
        start: impl ToArgs,
        stop: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::json::json_arrtrim(key, path, start, stop))
    }

    /// Empties arrays and objects, and sets numbers to 0.
    pub fn json_clear(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::json::json_clear(key))
    }

    /// Empties arrays and objects, and sets numbers to 0. With options.
    pub fn json_clear_with(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::json::json_clear_with(key, path))
    }

    /// Returns the memory that values take, in bytes.
    pub fn json_debug_memory<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_debug_memory(key))
    }

    /// Returns the memory that values take, in bytes. With options.
    pub fn json_debug_memory_with<T>(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_debug_memory_with(key, path))
    }

    /// Deletes values, or the whole document.
    pub fn json_del(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::json::json_del(key))
    }

    /// Deletes values, or the whole document. With options.
    pub fn json_del_with(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::json::json_del_with(key, path))
    }

    /// Deletes values, or the whole document.
    pub fn json_forget(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::json::json_forget(key))
    }

    /// Deletes values, or the whole document. With options.
    pub fn json_forget_with(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::json::json_forget_with(key, path))
    }

    /// Returns values as JSON text.
    pub fn json_get(self, key: impl ToArgs, paths: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::json::json_get(key, paths))
    }

    /// Returns values as JSON text. With options.
    pub fn json_get_with(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        paths: impl ToArgs,
    ) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::json::json_get_with(key, options, paths))
    }

    /// Merges a value into those at a path, as RFC 7396 has it.
    pub fn json_merge(self, key: impl ToArgs, path: impl ToArgs, value: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::json::json_merge(key, path, value))
    }

    /// Returns the values at one path of several documents.
    pub fn json_mget(self, keys: impl ToArgs, path: impl ToArgs) -> Batch<B::With<Vec<Option<Bytes>>>> {
        self.and(make::json::json_mget(keys, path))
    }

    /// Sets values in several documents, all or none.
    pub fn json_mset(self, key_path_values: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::json::json_mset(key_path_values))
    }

    /// Adds to numbers.
    pub fn json_numincrby<T>(
        self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::json::json_numincrby(key, path, value))
    }

    /// Multiplies numbers.
    pub fn json_nummultby<T>(
        self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::json::json_nummultby(key, path, value))
    }

    /// Returns the names in objects.
    pub fn json_objkeys<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_objkeys(key))
    }

    /// Returns the names in objects. With options.
    pub fn json_objkeys_with<T>(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_objkeys_with(key, path))
    }

    /// Counts the names in objects.
    pub fn json_objlen<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_objlen(key))
    }

    /// Counts the names in objects. With options.
    pub fn json_objlen_with<T>(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_objlen_with(key, path))
    }

    /// Returns values in the protocol's own types.
    pub fn json_resp<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_resp(key))
    }

    /// Returns values in the protocol's own types. With options.
    pub fn json_resp_with<T>(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_resp_with(key, path))
    }

    /// Sets values.
    pub fn json_set(self, key: impl ToArgs, path: impl ToArgs, value: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::json::json_set(key, path, value))
    }

    /// Sets values. With options.
    pub fn json_set_with(
        self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::json::json_set_with(key, path, value, options))
    }

    /// Appends to strings; the value is a JSON string.
    pub fn json_strappend<T>(
        self,
        key: impl ToArgs,
        path: impl ToArgs,
        value: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::json::json_strappend(key, path, value))
    }

    /// Returns the lengths of strings.
    pub fn json_strlen<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_strlen(key))
    }

    /// Returns the lengths of strings. With options.
    pub fn json_strlen_with<T>(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_strlen_with(key, path))
    }

    /// Turns true into false and back.
    pub fn json_toggle<T>(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_toggle(key, path))
    }

    /// Returns the types of values.
    pub fn json_type<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_type(key))
    }

    /// Returns the types of values. With options.
    pub fn json_type_with<T>(self, key: impl ToArgs, path: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::json::json_type_with(key, path))
    }

    /// Lists the indexes.
    pub fn ft_list(self) -> Batch<B::With<Vec<String>>> {
        self.and(make::search::ft_list())
    }

    /// Searches an index, and groups and computes what it finds.
    pub fn ft_aggregate(self, index: impl ToArgs, query: impl ToArgs) -> Batch<B::With<Aggregated>> {
        self.and(make::search::ft_aggregate(index, query))
    }

    /// Searches an index, and groups and computes what it finds. With options.
    pub fn ft_aggregate_with<T>(
        self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::search::ft_aggregate_with(index, query, options))
    }

    /// Gives an index another name.
    pub fn ft_aliasadd(self, alias: impl ToArgs, index: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::search::ft_aliasadd(alias, index))
    }

    /// Takes a name from an index.
    pub fn ft_aliasdel(self, alias: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::search::ft_aliasdel(alias))
    }

    /// Gives an index a name that another may have.
    pub fn ft_aliasupdate(self, alias: impl ToArgs, index: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::search::ft_aliasupdate(alias, index))
    }

    /// Adds an attribute to an index.
    pub fn ft_alter(
        self,
        index: impl ToArgs,
        attribute: impl ToArgs,
        definitions: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::search::ft_alter(index, attribute, definitions))
    }

    /// Adds an attribute to an index. With options.
    pub fn ft_alter_with(
        self,
        index: impl ToArgs,
        options: impl ToArgs,
        attribute: impl ToArgs,
        definitions: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::search::ft_alter_with(index, options, attribute, definitions))
    }

    /// Returns options of the module.
    pub fn ft_config_get<T>(self, option: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::search::ft_config_get(option))
    }

    /// Sets an option of the module.
    pub fn ft_config_set(self, option: impl ToArgs, value: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::search::ft_config_set(option, value))
    }

    /// Creates an index.
    pub fn ft_create(self, index: impl ToArgs, attributes: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::search::ft_create(index, attributes))
    }

    /// Creates an index. With options.
    pub fn ft_create_with(
        self,
        index: impl ToArgs,
        options: impl ToArgs,
        attributes: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::search::ft_create_with(index, options, attributes))
    }

    /// Ends a cursor.
    pub fn ft_cursor_del(self, index: impl ToArgs, cursor_id: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::search::ft_cursor_del(index, cursor_id))
    }

    /// Returns the next part of what an aggregation found.
    pub fn ft_cursor_read(
        self,
        index: impl ToArgs,
        cursor_id: impl ToArgs,
    ) -> Batch<B::With<(Aggregated, i64)>> {
        self.and(make::search::ft_cursor_read(index, cursor_id))
    }

    /// Returns the next part of what an aggregation found. With options.
    pub fn ft_cursor_read_with(
        self,
        index: impl ToArgs,
        cursor_id: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<(Aggregated, i64)>> {
        self.and(make::search::ft_cursor_read_with(index, cursor_id, options))
    }

    /// Adds terms to a dictionary.
    pub fn ft_dictadd(self, dict: impl ToArgs, terms: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::search::ft_dictadd(dict, terms))
    }

    /// Deletes terms from a dictionary.
    pub fn ft_dictdel(self, dict: impl ToArgs, terms: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::search::ft_dictdel(dict, terms))
    }

    /// Returns the terms of a dictionary.
    pub fn ft_dictdump(self, dict: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::search::ft_dictdump(dict))
    }

    /// Deletes an index; with DD, what it indexes as well.
    pub fn ft_dropindex(self, index: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::search::ft_dropindex(index))
    }

    /// Deletes an index; with DD, what it indexes as well. With options.
    pub fn ft_dropindex_with(self, index: impl ToArgs, options: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::search::ft_dropindex_with(index, options))
    }

    /// Shows how a query is carried out.
    pub fn ft_explain(self, index: impl ToArgs, query: impl ToArgs) -> Batch<B::With<String>> {
        self.and(make::search::ft_explain(index, query))
    }

    /// Shows how a query is carried out. With options.
    pub fn ft_explain_with(
        self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<String>> {
        self.and(make::search::ft_explain_with(index, query, options))
    }

    /// Shows how a query is carried out, line by line.
    pub fn ft_explaincli(self, index: impl ToArgs, query: impl ToArgs) -> Batch<B::With<Vec<String>>> {
        self.and(make::search::ft_explaincli(index, query))
    }

    /// Shows how a query is carried out, line by line. With options.
    pub fn ft_explaincli_with(
        self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<Vec<String>>> {
        self.and(make::search::ft_explaincli_with(index, query, options))
    }

    /// Describes an index.
    pub fn ft_info<T>(self, index: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::search::ft_info(index))
    }

    /// Runs a query and tells where its time went.
    pub fn ft_profile<T>(
        self,
        index: impl ToArgs,
        choice: impl ToArgs,
        queries: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::search::ft_profile(index, choice, queries))
    }

    /// Runs a query and tells where its time went. With options.
    pub fn ft_profile_with<T>(
        self,
        index: impl ToArgs,
        choice: impl ToArgs,
        options: impl ToArgs,
        queries: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::search::ft_profile_with(index, choice, options, queries))
    }

    /// Searches an index.
    pub fn ft_search(self, index: impl ToArgs, query: impl ToArgs) -> Batch<B::With<SearchResults>> {
        self.and(make::search::ft_search(index, query))
    }

    /// Searches an index. With options.
    pub fn ft_search_with(
        self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<SearchResults>> {
        self.and(make::search::ft_search_with(index, query, options))
    }

    /// Suggests other spellings for the terms of a query.
    pub fn ft_spellcheck<T>(self, index: impl ToArgs, query: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::search::ft_spellcheck(index, query))
    }

    /// Suggests other spellings for the terms of a query. With options.
    pub fn ft_spellcheck_with<T>(
        self,
        index: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::search::ft_spellcheck_with(index, query, options))
    }

    /// Adds a suggestion.
    pub fn ft_sugadd(self, key: impl ToArgs, string: impl ToArgs, score: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::search::ft_sugadd(key, string, score))
    }

    /// Adds a suggestion. With options.
    pub fn ft_sugadd_with(
        self,
        key: impl ToArgs,
        string: impl ToArgs,
        score: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<u64>> {
        self.and(make::search::ft_sugadd_with(key, string, score, options))
    }

    /// Deletes a suggestion.
    pub fn ft_sugdel(self, key: impl ToArgs, string: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::search::ft_sugdel(key, string))
    }

    /// Returns suggestions for a prefix.
    pub fn ft_sugget(self, key: impl ToArgs, prefix: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::search::ft_sugget(key, prefix))
    }

    /// Returns suggestions for a prefix. With options.
    pub fn ft_sugget_with<T>(
        self,
        key: impl ToArgs,
        prefix: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::search::ft_sugget_with(key, prefix, options))
    }

    /// Counts the suggestions.
    pub fn ft_suglen(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::search::ft_suglen(key))
    }

    /// Returns the synonyms.
    pub fn ft_syndump(self, index: impl ToArgs) -> Batch<B::With<HashMap<Bytes, Vec<Bytes>>>> {
        self.and(make::search::ft_syndump(index))
    }

    /// Adds terms to a group of synonyms.
    pub fn ft_synupdate(
        self,
        index: impl ToArgs,
        group_id: impl ToArgs,
        terms: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::search::ft_synupdate(index, group_id, terms))
    }

    /// Adds terms to a group of synonyms. With options.
    pub fn ft_synupdate_with(
        self,
        index: impl ToArgs,
        group_id: impl ToArgs,
        options: impl ToArgs,
        terms: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::search::ft_synupdate_with(index, group_id, options, terms))
    }

    /// Returns the values of a tag.
    pub fn ft_tagvals(self, index: impl ToArgs, field: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::search::ft_tagvals(index, field))
    }

    /// Appends a sample; the series is created if absent.
    pub fn ts_add(self, key: impl ToArgs, timestamp: impl ToArgs, value: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::timeseries::ts_add(key, timestamp, value))
    }

    /// Appends a sample; the series is created if absent. With options.
    pub fn ts_add_with(
        self,
        key: impl ToArgs,
        timestamp: impl ToArgs,
        value: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<i64>> {
        self.and(make::timeseries::ts_add_with(key, timestamp, value, options))
    }

    /// Changes the settings of a series.
    pub fn ts_alter(self, key: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::timeseries::ts_alter(key))
    }

    /// Changes the settings of a series. With options.
    pub fn ts_alter_with(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::timeseries::ts_alter_with(key, options))
    }

    /// Creates a series.
    pub fn ts_create(self, key: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::timeseries::ts_create(key))
    }

    /// Creates a series. With options.
    pub fn ts_create_with(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::timeseries::ts_create_with(key, options))
    }

    /// Makes one series follow another one, aggregated.
    pub fn ts_createrule(
        self,
        source: impl ToArgs,
        destination: impl ToArgs,
        aggregator: impl ToArgs,
        bucket_duration: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::timeseries::ts_createrule(source, destination, aggregator, bucket_duration))
    }

    /// Makes one series follow another one, aggregated. With options.
    pub fn ts_createrule_with(
        self,
        source: impl ToArgs,
        destination: impl ToArgs,
        aggregator: impl ToArgs,
        bucket_duration: impl ToArgs,
        align: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::timeseries::ts_createrule_with(
            source,
            destination,
            aggregator,
            bucket_duration,
            align,
        ))
    }

    /// Appends a sample that is less than the last one.
    pub fn ts_decrby(self, key: impl ToArgs, subtrahend: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::timeseries::ts_decrby(key, subtrahend))
    }

    /// Appends a sample that is less than the last one. With options.
    pub fn ts_decrby_with(
        self,
        key: impl ToArgs,
        subtrahend: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<i64>> {
        self.and(make::timeseries::ts_decrby_with(key, subtrahend, options))
    }

    /// Deletes the samples of a range of time.
    pub fn ts_del(self, key: impl ToArgs, from: impl ToArgs, to: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::timeseries::ts_del(key, from, to))
    }

    /// Ends that one series follows another one.
    pub fn ts_deleterule(self, source: impl ToArgs, destination: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::timeseries::ts_deleterule(source, destination))
    }

    /// Returns the last sample.
    pub fn ts_get(self, key: impl ToArgs) -> Batch<B::With<Option<Sample>>> {
        self.and(make::timeseries::ts_get(key))
    }

    /// Returns the last sample. With options.
    pub fn ts_get_with(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<Option<Sample>>> {
        self.and(make::timeseries::ts_get_with(key, options))
    }

    /// Appends a sample that is more than the last one.
    pub fn ts_incrby(self, key: impl ToArgs, addend: impl ToArgs) -> Batch<B::With<i64>> {
        self.and(make::timeseries::ts_incrby(key, addend))
    }

    /// Appends a sample that is more than the last one. With options.
    pub fn ts_incrby_with(
        self,
        key: impl ToArgs,
        addend: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<i64>> {
        self.and(make::timeseries::ts_incrby_with(key, addend, options))
    }

    /// Describes a series.
    pub fn ts_info<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::timeseries::ts_info(key))
    }

    /// Describes a series. With options.
    pub fn ts_info_with<T>(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::timeseries::ts_info_with(key, options))
    }

    /// Appends samples to several series.
    pub fn ts_madd(self, key_timestamp_values: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::timeseries::ts_madd(key_timestamp_values))
    }

    /// Returns the last samples of the series with certain labels.
    pub fn ts_mget<T>(self, filters: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::timeseries::ts_mget(filters))
    }

    /// Returns the last samples of the series with certain labels. With options.
    pub fn ts_mget_with<T>(self, options: impl ToArgs, filters: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::timeseries::ts_mget_with(options, filters))
    }

    /// Returns a range of time of the series with certain labels.
    pub fn ts_mrange<T>(self, from: impl ToArgs, to: impl ToArgs, filters: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::timeseries::ts_mrange(from, to, filters))
    }

    /// Returns a range of time of the series with certain labels. With options.
    pub fn ts_mrange_with<T>(
        self,
        from: impl ToArgs,
        to: impl ToArgs,
        options: impl ToArgs,
        filters: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::timeseries::ts_mrange_with(from, to, options, filters, options_2))
    }

    /// Returns a range of time of the series with certain labels, last sample first.
    pub fn ts_mrevrange<T>(
        self,
        from: impl ToArgs,
        to: impl ToArgs,
        filters: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::timeseries::ts_mrevrange(from, to, filters))
    }

    /// Returns a range of time of the series with certain labels, last sample first. With options.
    pub fn ts_mrevrange_with<T>(
        self,
        from: impl ToArgs,
        to: impl ToArgs,
        options: impl ToArgs,
        filters: impl ToArgs,
        options_2: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::timeseries::ts_mrevrange_with(from, to, options, filters, options_2))
    }

    /// Returns the keys of the series with certain labels.
    pub fn ts_queryindex(self, filters: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::timeseries::ts_queryindex(filters))
    }

    /// Returns the samples of a range of time.
    pub fn ts_range(
        self,
        key: impl ToArgs,
        from: impl ToArgs,
        to: impl ToArgs,
    ) -> Batch<B::With<Vec<Sample>>> {
        self.and(make::timeseries::ts_range(key, from, to))
    }

    /// Returns the samples of a range of time. With options.
    pub fn ts_range_with(
        self,
        key: impl ToArgs,
        from: impl ToArgs,
        to: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<Vec<Sample>>> {
        self.and(make::timeseries::ts_range_with(key, from, to, options))
    }

    /// Returns the samples of a range of time, last one first.
    pub fn ts_revrange(
        self,
        key: impl ToArgs,
        from: impl ToArgs,
        to: impl ToArgs,
    ) -> Batch<B::With<Vec<Sample>>> {
        self.and(make::timeseries::ts_revrange(key, from, to))
    }

    /// Returns the samples of a range of time, last one first. With options.
    pub fn ts_revrange_with(
        self,
        key: impl ToArgs,
        from: impl ToArgs,
        to: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<Vec<Sample>>> {
        self.and(make::timeseries::ts_revrange_with(key, from, to, options))
    }

    /// Adds an item to a Bloom filter.
    pub fn bf_add(self, key: impl ToArgs, item: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::bloom::bf_add(key, item))
    }

    /// Counts the items of a filter.
    pub fn bf_card(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::bloom::bf_card(key))
    }

    /// Tells whether an item may be in a filter.
    pub fn bf_exists(self, key: impl ToArgs, item: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::bloom::bf_exists(key, item))
    }

    /// Describes a filter.
    pub fn bf_info<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bloom::bf_info(key))
    }

    /// Describes a filter. With options.
    pub fn bf_info_with<T>(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bloom::bf_info_with(key, options))
    }

    /// Adds items to a filter, which is created as told.
    pub fn bf_insert(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<bool>>> {
        self.and(make::bloom::bf_insert(key, items))
    }

    /// Adds items to a filter, which is created as told. With options.
    pub fn bf_insert_with(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        items: impl ToArgs,
    ) -> Batch<B::With<Vec<bool>>> {
        self.and(make::bloom::bf_insert_with(key, options, items))
    }

    /// Restores a part of a filter.
    pub fn bf_loadchunk(
        self,
        key: impl ToArgs,
        iterator: impl ToArgs,
        data: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::bf_loadchunk(key, iterator, data))
    }

    /// Adds items to a filter.
    pub fn bf_madd(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<bool>>> {
        self.and(make::bloom::bf_madd(key, items))
    }

    /// Tells which items may be in a filter.
    pub fn bf_mexists(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<bool>>> {
        self.and(make::bloom::bf_mexists(key, items))
    }

    /// Creates a filter.
    pub fn bf_reserve(
        self,
        key: impl ToArgs,
        error_rate: impl ToArgs,
        capacity: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::bf_reserve(key, error_rate, capacity))
    }

    /// Creates a filter. With options.
    pub fn bf_reserve_with(
        self,
        key: impl ToArgs,
        error_rate: impl ToArgs,
        capacity: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::bf_reserve_with(key, error_rate, capacity, options))
    }

    /// Returns a part of a filter, to be restored elsewhere.
    pub fn bf_scandump(self, key: impl ToArgs, iterator: impl ToArgs) -> Batch<B::With<(i64, Bytes)>> {
        self.and(make::bloom::bf_scandump(key, iterator))
    }

    /// Adds an item to a cuckoo filter, as often as it is called.
    pub fn cf_add(self, key: impl ToArgs, item: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::bloom::cf_add(key, item))
    }

    /// Adds an item to a filter unless it may be there.
    pub fn cf_addnx(self, key: impl ToArgs, item: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::bloom::cf_addnx(key, item))
    }

    /// Counts how often an item may be in a filter.
    pub fn cf_count(self, key: impl ToArgs, item: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::bloom::cf_count(key, item))
    }

    /// Removes an item once.
    pub fn cf_del(self, key: impl ToArgs, item: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::bloom::cf_del(key, item))
    }

    /// Tells whether an item may be in a filter.
    pub fn cf_exists(self, key: impl ToArgs, item: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::bloom::cf_exists(key, item))
    }

    /// Describes a filter.
    pub fn cf_info<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bloom::cf_info(key))
    }

    /// Adds items to a filter, which is created as told.
    pub fn cf_insert(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::bloom::cf_insert(key, items))
    }

    /// Adds items to a filter, which is created as told. With options.
    pub fn cf_insert_with(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        items: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::bloom::cf_insert_with(key, options, items))
    }

    /// Adds the items that are not in a filter.
    pub fn cf_insertnx(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::bloom::cf_insertnx(key, items))
    }

    /// Adds the items that are not in a filter. With options.
    pub fn cf_insertnx_with(
        self,
        key: impl ToArgs,
        options: impl ToArgs,
        items: impl ToArgs,
    ) -> Batch<B::With<Vec<i64>>> {
        self.and(make::bloom::cf_insertnx_with(key, options, items))
    }

    /// Restores a part of a filter.
    pub fn cf_loadchunk(
        self,
        key: impl ToArgs,
        iterator: impl ToArgs,
        data: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::cf_loadchunk(key, iterator, data))
    }

    /// Tells which items may be in a filter.
    pub fn cf_mexists(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<bool>>> {
        self.and(make::bloom::cf_mexists(key, items))
    }

    /// Creates a filter.
    pub fn cf_reserve(self, key: impl ToArgs, capacity: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::bloom::cf_reserve(key, capacity))
    }

    /// Creates a filter. With options.
    pub fn cf_reserve_with(
        self,
        key: impl ToArgs,
        capacity: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::cf_reserve_with(key, capacity, options))
    }

    /// Returns a part of a filter, to be restored elsewhere.
    pub fn cf_scandump(self, key: impl ToArgs, iterator: impl ToArgs) -> Batch<B::With<(i64, Bytes)>> {
        self.and(make::bloom::cf_scandump(key, iterator))
    }

    /// Adds to the counts of items in a count-min sketch.
    pub fn cms_incrby(self, key: impl ToArgs, item_increments: impl ToArgs) -> Batch<B::With<Vec<u64>>> {
        self.and(make::bloom::cms_incrby(key, item_increments))
    }

    /// Describes a sketch.
    pub fn cms_info<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bloom::cms_info(key))
    }

    /// Creates a sketch with these dimensions.
    pub fn cms_initbydim(
        self,
        key: impl ToArgs,
        width: impl ToArgs,
        depth: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::cms_initbydim(key, width, depth))
    }

    /// Creates a sketch that errs no more than told.
    pub fn cms_initbyprob(
        self,
        key: impl ToArgs,
        error: impl ToArgs,
        probability: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::cms_initbyprob(key, error, probability))
    }

    /// Replaces a sketch by the sum of others.
    pub fn cms_merge(self, destination: impl ToArgs, sources: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::bloom::cms_merge(destination, sources))
    }

    /// Replaces a sketch by the sum of others. With options.
    pub fn cms_merge_with(
        self,
        destination: impl ToArgs,
        sources: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::cms_merge_with(destination, sources, options))
    }

    /// Returns the counts of items.
    pub fn cms_query(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<u64>>> {
        self.and(make::bloom::cms_query(key, items))
    }

    /// Adds items to the most frequent ones; returns those that had to leave.
    pub fn topk_add(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<Option<Bytes>>>> {
        self.and(make::bloom::topk_add(key, items))
    }

    /// Returns the counts of items.
    pub fn topk_count(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<u64>>> {
        self.and(make::bloom::topk_count(key, items))
    }

    /// Adds to the counts of items; returns those that had to leave.
    pub fn topk_incrby(
        self,
        key: impl ToArgs,
        item_increments: impl ToArgs,
    ) -> Batch<B::With<Vec<Option<Bytes>>>> {
        self.and(make::bloom::topk_incrby(key, item_increments))
    }

    /// Describes the list.
    pub fn topk_info<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bloom::topk_info(key))
    }

    /// Returns the most frequent items.
    pub fn topk_list(self, key: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::bloom::topk_list(key))
    }

    /// Returns the most frequent items. With options.
    pub fn topk_list_with<T>(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bloom::topk_list_with(key, options))
    }

    /// Tells which items are among the most frequent ones.
    pub fn topk_query(self, key: impl ToArgs, items: impl ToArgs) -> Batch<B::With<Vec<bool>>> {
        self.and(make::bloom::topk_query(key, items))
    }

    /// Creates a list of the most frequent items.
    pub fn topk_reserve(self, key: impl ToArgs, topk: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::bloom::topk_reserve(key, topk))
    }

    /// Creates a list of the most frequent items. With options.
    pub fn topk_reserve_with(
        self,
        key: impl ToArgs,
        topk: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::topk_reserve_with(key, topk, options))
    }

    /// Adds observations to a t-digest.
    pub fn tdigest_add(self, key: impl ToArgs, values: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::bloom::tdigest_add(key, values))
    }

    /// Estimates the values at ranks.
    pub fn tdigest_byrank(self, key: impl ToArgs, ranks: impl ToArgs) -> Batch<B::With<Vec<f64>>> {
        self.and(make::bloom::tdigest_byrank(key, ranks))
    }

    /// Estimates the values at ranks from the greatest on.
    pub fn tdigest_byrevrank(self, key: impl ToArgs, ranks: impl ToArgs) -> Batch<B::With<Vec<f64>>> {
        self.and(make::bloom::tdigest_byrevrank(key, ranks))
    }

    /// Estimates the parts of the observations up to values.
    pub fn tdigest_cdf(self, key: impl ToArgs, values: impl ToArgs) -> Batch<B::With<Vec<f64>>> {
        self.and(make::bloom::tdigest_cdf(key, values))
    }

    /// Creates a t-digest.
    pub fn tdigest_create(self, key: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::bloom::tdigest_create(key))
    }

    /// Creates a t-digest. With options.
    pub fn tdigest_create_with(self, key: impl ToArgs, options: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::bloom::tdigest_create_with(key, options))
    }

    /// Describes a t-digest.
    pub fn tdigest_info<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::bloom::tdigest_info(key))
    }

    /// Returns the greatest observation.
    pub fn tdigest_max(self, key: impl ToArgs) -> Batch<B::With<f64>> {
        self.and(make::bloom::tdigest_max(key))
    }

    /// Adds the observations of others to a t-digest.
    pub fn tdigest_merge(self, destination: impl ToArgs, sources: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::bloom::tdigest_merge(destination, sources))
    }

    /// Adds the observations of others to a t-digest. With options.
    pub fn tdigest_merge_with(
        self,
        destination: impl ToArgs,
        sources: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<()>> {
        self.and(make::bloom::tdigest_merge_with(destination, sources, options))
    }

    /// Returns the least observation.
    pub fn tdigest_min(self, key: impl ToArgs) -> Batch<B::With<f64>> {
        self.and(make::bloom::tdigest_min(key))
    }

    /// Estimates the values below which parts of the observations are.
    pub fn tdigest_quantile(self, key: impl ToArgs, quantiles: impl ToArgs) -> Batch<B::With<Vec<f64>>> {
        self.and(make::bloom::tdigest_quantile(key, quantiles))
    }

    /// Estimates the ranks of values.
    pub fn tdigest_rank(self, key: impl ToArgs, values: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::bloom::tdigest_rank(key, values))
    }

    /// Empties a t-digest.
    pub fn tdigest_reset(self, key: impl ToArgs) -> Batch<B::With<()>> {
        self.and(make::bloom::tdigest_reset(key))
    }

    /// Estimates the ranks of values from the greatest on.
    pub fn tdigest_revrank(self, key: impl ToArgs, values: impl ToArgs) -> Batch<B::With<Vec<i64>>> {
        self.and(make::bloom::tdigest_revrank(key, values))
    }

    /// Estimates the mean of the observations between two quantiles.
    pub fn tdigest_trimmed_mean(
        self,
        key: impl ToArgs,
        low_quantile: impl ToArgs,
        high_quantile: impl ToArgs,
    ) -> Batch<B::With<f64>> {
        self.and(make::bloom::tdigest_trimmed_mean(key, low_quantile, high_quantile))
    }

    /// Adds an element with its vector (FP32, VALUES), before which REDUCE may stand.
    pub fn vadd(self, key: impl ToArgs, vector: impl ToArgs, element: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::vectors::vadd(key, vector, element))
    }

    /// Adds an element with its vector (FP32, VALUES), before which REDUCE may stand. With options.
    pub fn vadd_with(
        self,
        key: impl ToArgs,
        vector: impl ToArgs,
        element: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::vectors::vadd_with(key, vector, element, options))
    }

    /// Counts the elements.
    pub fn vcard(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::vectors::vcard(key))
    }

    /// Returns the vectors' dimension.
    pub fn vdim(self, key: impl ToArgs) -> Batch<B::With<u64>> {
        self.and(make::vectors::vdim(key))
    }

    /// Returns an element's vector, as precisely as it is kept.
    pub fn vemb(self, key: impl ToArgs, element: impl ToArgs) -> Batch<B::With<Option<Vec<f64>>>> {
        self.and(make::vectors::vemb(key, element))
    }

    /// Returns an element's vector, as precisely as it is kept. With options.
    pub fn vemb_with<T>(
        self,
        key: impl ToArgs,
        element: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::vectors::vemb_with(key, element, options))
    }

    /// Returns an element's attributes as JSON text.
    pub fn vgetattr(self, key: impl ToArgs, element: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::vectors::vgetattr(key, element))
    }

    /// Describes a vector set.
    pub fn vinfo<T>(self, key: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::vectors::vinfo(key))
    }

    /// Tells whether an element exists.
    pub fn vismember(self, key: impl ToArgs, element: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::vectors::vismember(key, element))
    }

    /// Returns an element's neighbours in each layer of the graph.
    pub fn vlinks<T>(self, key: impl ToArgs, element: impl ToArgs) -> Batch<B::With<T>> {
        self.and(make::vectors::vlinks(key, element))
    }

    /// Returns an element's neighbours in each layer of the graph. With options.
    pub fn vlinks_with<T>(
        self,
        key: impl ToArgs,
        element: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::vectors::vlinks_with(key, element, options))
    }

    /// Returns random elements.
    pub fn vrandmember(self, key: impl ToArgs) -> Batch<B::With<Option<Bytes>>> {
        self.and(make::vectors::vrandmember(key))
    }

    /// Returns random elements. With options.
    pub fn vrandmember_with(self, key: impl ToArgs, count: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::vectors::vrandmember_with(key, count))
    }

    /// Returns elements in the order of their names.
    pub fn vrange(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::vectors::vrange(key, start, end))
    }

    /// Returns elements in the order of their names. With options.
    pub fn vrange_with(
        self,
        key: impl ToArgs,
        start: impl ToArgs,
        end: impl ToArgs,
        count: impl ToArgs,
    ) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::vectors::vrange_with(key, start, end, count))
    }

    /// Removes an element.
    pub fn vrem(self, key: impl ToArgs, element: impl ToArgs) -> Batch<B::With<bool>> {
        self.and(make::vectors::vrem(key, element))
    }

    /// Sets an element's attributes, JSON text; an empty one removes them.
    pub fn vsetattr(
        self,
        key: impl ToArgs,
        element: impl ToArgs,
        attributes: impl ToArgs,
    ) -> Batch<B::With<bool>> {
        self.and(make::vectors::vsetattr(key, element, attributes))
    }

    /// Finds the nearest elements to a vector (FP32, VALUES), or to an element (ELE).
    pub fn vsim(self, key: impl ToArgs, query: impl ToArgs) -> Batch<B::With<Vec<Bytes>>> {
        self.and(make::vectors::vsim(key, query))
    }

    /// Finds the nearest elements to a vector (FP32, VALUES), or to an element (ELE). With options.
    pub fn vsim_with<T>(
        self,
        key: impl ToArgs,
        query: impl ToArgs,
        options: impl ToArgs,
    ) -> Batch<B::With<T>> {
        self.and(make::vectors::vsim_with(key, query, options))
    }
}
