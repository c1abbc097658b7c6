//! Commands of the group `sorted-set`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};
use crate::commands::counted;

/// Pops members from the first sorted set that has any; waits for some if need be.
///
/// `BZMPOP timeout numkeys key [key ...] <MIN | MAX> [COUNT count]`: O(K+M*log(N)), K is the number of
/// keys, N of members, M of those popped, since 7.0.0.
pub fn bzmpop(timeout: impl ToArgs, keys: impl ToArgs, where_: impl ToArgs) -> Cmd {
    counted(cmd("BZMPOP").arg(timeout), 1, keys).arg(where_)
}

/// Pops members from the first sorted set that has any; waits for some if need be. With options.
///
/// `BZMPOP timeout numkeys key [key ...] <MIN | MAX> [COUNT count]`: O(K+M*log(N)), K is the number of
/// keys, N of members, M of those popped, since 7.0.0.
pub fn bzmpop_with(
    timeout: impl ToArgs,
    keys: impl ToArgs,
    where_: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    counted(cmd("BZMPOP").arg(timeout), 1, keys).arg(where_).arg(options)
}

/// Pops the highest member of the first sorted set that has any; waits for one if need be.
///
/// `BZPOPMAX key [key ...] timeout`: O(log(N)), N is the number of members, since 5.0.0.
pub fn bzpopmax(keys: impl ToArgs, timeout: impl ToArgs) -> Cmd {
    cmd("BZPOPMAX").arg(keys).arg(timeout)
}

/// Pops the lowest member of the first sorted set that has any; waits for one if need be.
///
/// `BZPOPMIN key [key ...] timeout`: O(log(N)), N is the number of members, since 5.0.0.
pub fn bzpopmin(keys: impl ToArgs, timeout: impl ToArgs) -> Cmd {
    cmd("BZPOPMIN").arg(keys).arg(timeout)
}

/// Adds members or changes their scores.
///
/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]`: O(M*log(N)), N is the number
/// of members, M of those added, since 1.2.0.
pub fn zadd(key: impl ToArgs, score_members: impl ToArgs) -> Cmd {
    cmd("ZADD").arg(key).arg(score_members)
}

/// Adds members or changes their scores. With options.
///
/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]`: O(M*log(N)), N is the number
/// of members, M of those added, since 1.2.0.
pub fn zadd_with(key: impl ToArgs, options: impl ToArgs, score_members: impl ToArgs) -> Cmd {
    cmd("ZADD").arg(key).arg(options).arg(score_members)
}

/// Counts the members.
///
/// `ZCARD key`: O(1), since 1.2.0.
pub fn zcard(key: impl ToArgs) -> Cmd {
    cmd("ZCARD").arg(key)
}

/// Counts the members with scores in a range.
///
/// `ZCOUNT key min max`: O(log(N)), N is the number of members, since 2.0.0.
pub fn zcount(key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Cmd {
    cmd("ZCOUNT").arg(key).arg(min).arg(max)
}

/// Returns the members of the first sorted set that no other has.
///
/// `ZDIFF numkeys key [key ...] [WITHSCORES]`: O(L+(N-K)*log(N)), L is the size of all sets, N of the
/// first, K of the result, since 6.2.0.
pub fn zdiff(keys: impl ToArgs) -> Cmd {
    counted(cmd("ZDIFF"), 1, keys)
}

/// Returns the members of the first sorted set that no other has. With options.
///
/// `ZDIFF numkeys key [key ...] [WITHSCORES]`: O(L+(N-K)*log(N)), L is the size of all sets, N of the
/// first, K of the result, since 6.2.0.
pub fn zdiff_with(keys: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("ZDIFF"), 1, keys).arg(options)
}

/// Stores the members of the first sorted set that no other has.
///
/// `ZDIFFSTORE destination numkeys key [key ...]`: O(L+(N-K)*log(N)), L is the size of all sets, N of the
/// first, K of the result, since 6.2.0.
pub fn zdiffstore(destination: impl ToArgs, keys: impl ToArgs) -> Cmd {
    counted(cmd("ZDIFFSTORE").arg(destination), 1, keys)
}

/// Adds to the score of a member; an absent one counts as 0.
///
/// `ZINCRBY key increment member`: O(log(N)), N is the number of members, since 1.2.0.
pub fn zincrby(key: impl ToArgs, increment: impl ToArgs, member: impl ToArgs) -> Cmd {
    cmd("ZINCRBY").arg(key).arg(increment).arg(member)
}

/// Returns the members that all sorted sets share.
///
/// `ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]`:
/// O(N*K+M*log(M)), N is the size of the smallest set, K the number of sets, M the size of the result,
/// since 6.2.0.
pub fn zinter(keys: impl ToArgs) -> Cmd {
    counted(cmd("ZINTER"), 1, keys)
}

/// Returns the members that all sorted sets share. With options.
///
/// `ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]`:
/// O(N*K+M*log(M)), N is the size of the smallest set, K the number of sets, M the size of the result,
/// since 6.2.0.
pub fn zinter_with(keys: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("ZINTER"), 1, keys).arg(options)
}

/// Counts the members that all sorted sets share.
///
/// `ZINTERCARD numkeys key [key ...] [LIMIT limit]`: O(N*K), N is the size of the smallest set, K the
/// number of sets, since 7.0.0.
pub fn zintercard(keys: impl ToArgs) -> Cmd {
    counted(cmd("ZINTERCARD"), 1, keys)
}

/// Counts the members that all sorted sets share. With options.
///
/// `ZINTERCARD numkeys key [key ...] [LIMIT limit]`: O(N*K), N is the size of the smallest set, K the
/// number of sets, since 7.0.0.
pub fn zintercard_with(keys: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("ZINTERCARD"), 1, keys).arg(options)
}

/// Stores the members that all sorted sets share.
///
/// `ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN |
/// MAX>]`: O(N*K+M*log(M)), N is the size of the smallest set, K the number of sets, M the size of the
/// result, since 2.0.0.
pub fn zinterstore(destination: impl ToArgs, keys: impl ToArgs) -> Cmd {
    counted(cmd("ZINTERSTORE").arg(destination), 1, keys)
}

/// Stores the members that all sorted sets share. With options.
///
/// `ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN |
/// MAX>]`: O(N*K+M*log(M)), N is the size of the smallest set, K the number of sets, M the size of the
/// result, since 2.0.0.
pub fn zinterstore_with(destination: impl ToArgs, keys: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("ZINTERSTORE").arg(destination), 1, keys).arg(options)
}

/// Counts the members between two strings.
///
/// `ZLEXCOUNT key min max`: O(log(N)), N is the number of members, since 2.8.9.
pub fn zlexcount(key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Cmd {
    cmd("ZLEXCOUNT").arg(key).arg(min).arg(max)
}

/// Pops members from the first sorted set that has any.
///
/// `ZMPOP numkeys key [key ...] <MIN | MAX> [COUNT count]`: O(K+M*log(N)), K is the number of keys, N of
/// members, M of those popped, since 7.0.0.
pub fn zmpop(keys: impl ToArgs, where_: impl ToArgs) -> Cmd {
    counted(cmd("ZMPOP"), 1, keys).arg(where_)
}

/// Pops members from the first sorted set that has any. With options.
///
/// `ZMPOP numkeys key [key ...] <MIN | MAX> [COUNT count]`: O(K+M*log(N)), K is the number of keys, N of
/// members, M of those popped, since 7.0.0.
pub fn zmpop_with(keys: impl ToArgs, where_: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("ZMPOP"), 1, keys).arg(where_).arg(options)
}

/// Returns the scores of several members.
///
/// `ZMSCORE key member [member ...]`: O(N), N is the number of members given, since 6.2.0.
pub fn zmscore(key: impl ToArgs, members: impl ToArgs) -> Cmd {
    cmd("ZMSCORE").arg(key).arg(members)
}

/// Pops the members with the highest scores.
///
/// `ZPOPMAX key [count]`: O(M*log(N)), N is the number of members, M of those popped, since 5.0.0.
pub fn zpopmax(key: impl ToArgs) -> Cmd {
    cmd("ZPOPMAX").arg(key)
}

/// Pops the members with the highest scores. With options.
///
/// `ZPOPMAX key [count]`: O(M*log(N)), N is the number of members, M of those popped, since 5.0.0.
pub fn zpopmax_with(key: impl ToArgs, count: impl ToArgs) -> Cmd {
    cmd("ZPOPMAX").arg(key).arg(count)
}

/// Pops the members with the lowest scores.
///
/// `ZPOPMIN key [count]`: O(M*log(N)), N is the number of members, M of those popped, since 5.0.0.
pub fn zpopmin(key: impl ToArgs) -> Cmd {
    cmd("ZPOPMIN").arg(key)
}

/// Pops the members with the lowest scores. With options.
///
/// `ZPOPMIN key [count]`: O(M*log(N)), N is the number of members, M of those popped, since 5.0.0.
pub fn zpopmin_with(key: impl ToArgs, count: impl ToArgs) -> Cmd {
    cmd("ZPOPMIN").arg(key).arg(count)
}

/// Returns random members.
///
/// `ZRANDMEMBER key [count [WITHSCORES]]`: O(N), N is the number of members returned, since 6.2.0.
pub fn zrandmember(key: impl ToArgs) -> Cmd {
    cmd("ZRANDMEMBER").arg(key)
}

/// Returns random members. With options.
///
/// `ZRANDMEMBER key [count [WITHSCORES]]`: O(N), N is the number of members returned, since 6.2.0.
pub fn zrandmember_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("ZRANDMEMBER").arg(key).arg(options)
}

/// Returns the members within a range of ranks, scores or strings.
///
/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`: O(log(N)+M), N is the
/// number of members, M of those returned, since 1.2.0.
pub fn zrange(key: impl ToArgs, start: impl ToArgs, stop: impl ToArgs) -> Cmd {
    cmd("ZRANGE").arg(key).arg(start).arg(stop)
}

/// Returns the members within a range of ranks, scores or strings. With options.
///
/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`: O(log(N)+M), N is the
/// number of members, M of those returned, since 1.2.0.
pub fn zrange_with(key: impl ToArgs, start: impl ToArgs, stop: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("ZRANGE").arg(key).arg(start).arg(stop).arg(options)
}

/// Returns the members between two strings.
///
/// `ZRANGEBYLEX key min max [LIMIT offset count]`: O(log(N)+M), N is the number of members, M of those
/// returned, since 2.8.9.
///
/// Old since 6.2.0: better `ZRANGE` with the `BYLEX` argument.
pub fn zrangebylex(key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Cmd {
    cmd("ZRANGEBYLEX").arg(key).arg(min).arg(max)
}

/// Returns the members between two strings. With options.
///
/// `ZRANGEBYLEX key min max [LIMIT offset count]`: O(log(N)+M), N is the number of members, M of those
/// returned, since 2.8.9.
///
/// Old since 6.2.0: better `ZRANGE` with the `BYLEX` argument.
pub fn zrangebylex_with(key: impl ToArgs, min: impl ToArgs, max: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("ZRANGEBYLEX").arg(key).arg(min).arg(max).arg(options)
}

/// Returns the members with scores in a range.
///
/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`: O(log(N)+M), N is the number of members,
/// M of those returned, since 1.0.5.
///
/// Old since 6.2.0: better `ZRANGE` with the `BYSCORE` argument.
pub fn zrangebyscore(key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Cmd {
    cmd("ZRANGEBYSCORE").arg(key).arg(min).arg(max)
}

/// Returns the members with scores in a range. With options.
///
/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`: O(log(N)+M), N is the number of members,
/// M of those returned, since 1.0.5.
///
/// Old since 6.2.0: better `ZRANGE` with the `BYSCORE` argument.
pub fn zrangebyscore_with(key: impl ToArgs, min: impl ToArgs, max: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("ZRANGEBYSCORE").arg(key).arg(min).arg(max).arg(options)
}

/// Stores the members within a range of ranks, scores or strings.
///
/// `ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`: O(log(N)+M), N is the number
/// of members, M of those stored, since 6.2.0.
pub fn zrangestore(dst: impl ToArgs, src: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Cmd {
    cmd("ZRANGESTORE").arg(dst).arg(src).arg(min).arg(max)
}

/// Stores the members within a range of ranks, scores or strings. With options.
///
/// `ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`: O(log(N)+M), N is the number
/// of members, M of those stored, since 6.2.0.
pub fn zrangestore_with(
    dst: impl ToArgs,
    src: impl ToArgs,
    min: impl ToArgs,
    max: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("ZRANGESTORE").arg(dst).arg(src).arg(min).arg(max).arg(options)
}

/// Returns the rank of a member, lowest score first.
///
/// `ZRANK key member [WITHSCORE]`: O(log(N)), N is the number of members, since 2.0.0.
pub fn zrank(key: impl ToArgs, member: impl ToArgs) -> Cmd {
    cmd("ZRANK").arg(key).arg(member)
}

/// Returns the rank of a member, lowest score first. With options.
///
/// `ZRANK key member [WITHSCORE]`: O(log(N)), N is the number of members, since 2.0.0.
pub fn zrank_with(key: impl ToArgs, member: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("ZRANK").arg(key).arg(member).arg(options)
}

/// Removes members, and the sorted set when none is left.
///
/// `ZREM key member [member ...]`: O(M*log(N)), N is the number of members, M of those removed, since
/// 1.2.0.
pub fn zrem(key: impl ToArgs, members: impl ToArgs) -> Cmd {
    cmd("ZREM").arg(key).arg(members)
}

/// Removes the members between two strings.
///
/// `ZREMRANGEBYLEX key min max`: O(log(N)+M), N is the number of members, M of those removed, since 2.8.9.
pub fn zremrangebylex(key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Cmd {
    cmd("ZREMRANGEBYLEX").arg(key).arg(min).arg(max)
}

/// Removes the members within a range of ranks.
///
/// `ZREMRANGEBYRANK key start stop`: O(log(N)+M), N is the number of members, M of those removed, since
/// 2.0.0.
pub fn zremrangebyrank(key: impl ToArgs, start: impl ToArgs, stop: impl ToArgs) -> Cmd {
    cmd("ZREMRANGEBYRANK").arg(key).arg(start).arg(stop)
}

/// Removes the members with scores in a range.
///
/// `ZREMRANGEBYSCORE key min max`: O(log(N)+M), N is the number of members, M of those removed, since
/// 1.2.0.
pub fn zremrangebyscore(key: impl ToArgs, min: impl ToArgs, max: impl ToArgs) -> Cmd {
    cmd("ZREMRANGEBYSCORE").arg(key).arg(min).arg(max)
}

/// Returns the members within a range of ranks, highest score first.
///
/// `ZREVRANGE key start stop [WITHSCORES]`: O(log(N)+M), N is the number of members, M of those returned,
/// since 1.2.0.
///
/// Old since 6.2.0: better `ZRANGE` with the `REV` argument.
pub fn zrevrange(key: impl ToArgs, start: impl ToArgs, stop: impl ToArgs) -> Cmd {
    cmd("ZREVRANGE").arg(key).arg(start).arg(stop)
}

/// Returns the members within a range of ranks, highest score first. With options.
///
/// `ZREVRANGE key start stop [WITHSCORES]`: O(log(N)+M), N is the number of members, M of those returned,
/// since 1.2.0.
///
/// Old since 6.2.0: better `ZRANGE` with the `REV` argument.
pub fn zrevrange_with(key: impl ToArgs, start: impl ToArgs, stop: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("ZREVRANGE").arg(key).arg(start).arg(stop).arg(options)
}

/// Returns the members between two strings, in reverse order.
///
/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`: O(log(N)+M), N is the number of members, M of those
/// returned, since 2.8.9.
///
/// Old since 6.2.0: better `ZRANGE` with the `REV` and `BYLEX` arguments.
pub fn zrevrangebylex(key: impl ToArgs, max: impl ToArgs, min: impl ToArgs) -> Cmd {
    cmd("ZREVRANGEBYLEX").arg(key).arg(max).arg(min)
}

/// Returns the members between two strings, in reverse order. With options.
///
/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`: O(log(N)+M), N is the number of members, M of those
/// returned, since 2.8.9.
///
/// Old since 6.2.0: better `ZRANGE` with the `REV` and `BYLEX` arguments.
pub fn zrevrangebylex_with(
    key: impl ToArgs,
    max: impl ToArgs,
    min: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("ZREVRANGEBYLEX").arg(key).arg(max).arg(min).arg(options)
}

/// Returns the members with scores in a range, highest score first.
///
/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`: O(log(N)+M), N is the number of
/// members, M of those returned, since 2.2.0.
///
/// Old since 6.2.0: better `ZRANGE` with the `REV` and `BYSCORE` arguments.
pub fn zrevrangebyscore(key: impl ToArgs, max: impl ToArgs, min: impl ToArgs) -> Cmd {
    cmd("ZREVRANGEBYSCORE").arg(key).arg(max).arg(min)
}

/// Returns the members with scores in a range, highest score first. With options.
///
/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`: O(log(N)+M), N is the number of
/// members, M of those returned, since 2.2.0.
///
/// Old since 6.2.0: better `ZRANGE` with the `REV` and `BYSCORE` arguments.
pub fn zrevrangebyscore_with(
    key: impl ToArgs,
    max: impl ToArgs,
    min: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("ZREVRANGEBYSCORE").arg(key).arg(max).arg(min).arg(options)
}

/// Returns the rank of a member, highest score first.
///
/// `ZREVRANK key member [WITHSCORE]`: O(log(N)), N is the number of members, since 2.0.0.
pub fn zrevrank(key: impl ToArgs, member: impl ToArgs) -> Cmd {
    cmd("ZREVRANK").arg(key).arg(member)
}

/// Returns the rank of a member, highest score first. With options.
///
/// `ZREVRANK key member [WITHSCORE]`: O(log(N)), N is the number of members, since 2.0.0.
pub fn zrevrank_with(key: impl ToArgs, member: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("ZREVRANK").arg(key).arg(member).arg(options)
}

/// Iterates over the members and their scores.
///
/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`: O(1) per call, O(N) for all, N is the
/// number of elements, since 2.8.0.
pub fn zscan(key: impl ToArgs, cursor: impl ToArgs) -> Cmd {
    cmd("ZSCAN").arg(key).arg(cursor)
}

/// Iterates over the members and their scores. With options.
///
/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`: O(1) per call, O(N) for all, N is the
/// number of elements, since 2.8.0.
pub fn zscan_with(key: impl ToArgs, cursor: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("ZSCAN").arg(key).arg(cursor).arg(options)
}

/// Returns the score of a member.
///
/// `ZSCORE key member`: O(1), since 1.2.0.
pub fn zscore(key: impl ToArgs, member: impl ToArgs) -> Cmd {
    cmd("ZSCORE").arg(key).arg(member)
}

/// Returns the members that any of the sorted sets has.
///
/// `ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]`:
/// O(N+M*log(M)), N is the size of all sets, M that of the result, since 6.2.0.
pub fn zunion(keys: impl ToArgs) -> Cmd {
    counted(cmd("ZUNION"), 1, keys)
}

/// Returns the members that any of the sorted sets has. With options.
///
/// `ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]`:
/// O(N+M*log(M)), N is the size of all sets, M that of the result, since 6.2.0.
pub fn zunion_with(keys: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("ZUNION"), 1, keys).arg(options)
}

/// Stores the members that any of the sorted sets has.
///
/// `ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN |
/// MAX>]`: O(N+M*log(M)), N is the size of all sets, M that of the result, since 2.0.0.
pub fn zunionstore(destination: impl ToArgs, keys: impl ToArgs) -> Cmd {
    counted(cmd("ZUNIONSTORE").arg(destination), 1, keys)
}

/// Stores the members that any of the sorted sets has. With options.
///
/// `ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN |
/// MAX>]`: O(N+M*log(M)), N is the size of all sets, M that of the result, since 2.0.0.
pub fn zunionstore_with(destination: impl ToArgs, keys: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("ZUNIONSTORE").arg(destination), 1, keys).arg(options)
}
