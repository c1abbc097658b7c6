//! Sorted sets.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
cmd("bzmpop", -5, WRITE | BLOCKING)
.args("timeout numkeys key [key ...] <MIN | MAX> [COUNT count]")
.doc("7.0.0", "Pops members from the first sorted set that has any; waits for some if need be.")
.cost("O(K+M*log(N)), K is the number of keys, N of members, M of those popped")
.keys(&[counted(2, 1, RW | ACCESS | DELETE)])
.effect(NonIdempotent),
cmd("bzpopmax", -3, WRITE | BLOCKING | FAST)
.args("key [key ...] timeout")
.doc("5.0.0", "Pops the highest member of the first sorted set that has any; waits for one if need be.")
.cost("O(log(N)), N is the number of members")
.keys(&[keys(1, -2, 1, RW | ACCESS | DELETE)])
.effect(NonIdempotent),
cmd("bzpopmin", -3, WRITE | BLOCKING | FAST)
.args("key [key ...] timeout")
.doc("5.0.0", "Pops the lowest member of the first sorted set that has any; waits for one if need be.")
.cost("O(log(N)), N is the number of members")
.keys(&[keys(1, -2, 1, RW | ACCESS | DELETE)])
.effect(NonIdempotent),
cmd("zadd", -4, WRITE | DENYOOM | FAST)
.args("key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]")
.doc("1.2.0", "Adds members or changes their scores.")
.cost("O(M*log(N)), N is the number of members, M of those added")
.keys(CHANGE_1)
.effect(NonIdempotent),
cmd("zcard", 2, READONLY | FAST)
.args("key")
.doc("1.2.0", "Counts the members.")
.keys(META_1),
cmd("zcount", 4, READONLY | FAST)
.args("key min max")
.doc("2.0.0", "Counts the members with scores in a range.")
.cost("O(log(N)), N is the number of members")
.keys(READ_1),
cmd("zdiff", -3, READONLY)
.args("numkeys key [key ...] [WITHSCORES]")
.doc("6.2.0", "Returns the members of the first sorted set that no other has.")
.cost("O(L+(N-K)*log(N)), L is the size of all sets, N of the first, K of the result")
.keys(READ_COUNTED_1),
cmd("zdiffstore", -4, WRITE | DENYOOM)
.args("destination numkeys key [key ...]")
.doc("6.2.0", "Stores the members of the first sorted set that no other has.")
.cost("O(L+(N-K)*log(N)), L is the size of all sets, N of the first, K of the result")
.keys(&[key(1, OW | UPDATE), counted(2, 1, RO | ACCESS)])
.effect(NonIdempotent),
cmd("zincrby", 4, WRITE | DENYOOM | FAST)
.args("key increment member")
.doc("1.2.0", "Adds to the score of a member; an absent one counts as 0.")
.cost("O(log(N)), N is the number of members")
.keys(EXCHANGE_1)
.effect(NonIdempotent),
cmd("zinter", -3, READONLY)
.args("numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] \
 [WITHSCORES]")
.doc("6.2.0", "Returns the members that all sorted sets share.")
.cost("O(N*K+M*log(M)), N is the size of the smallest set, K the number of sets, M the size of the result")
.keys(READ_COUNTED_1),
cmd("zintercard", -3, READONLY)
.args("numkeys key [key ...] [LIMIT limit]")
.doc("7.0.0", "Counts the members that all sorted sets share.")
.cost("O(N*K), N is the size of the smallest set, K the number of sets")
.keys(READ_COUNTED_1),
cmd("zinterstore", -4, WRITE | DENYOOM)
.args("destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN \
 | MAX>]")
.doc("2.0.0", "Stores the members that all sorted sets share.")
.cost("O(N*K+M*log(M)), N is the size of the smallest set, K the number of sets, M the size of the result")
.keys(&[key(1, OW | UPDATE), counted(2, 1, RO | ACCESS)])
.effect(NonIdempotent),
cmd("zlexcount", 4, READONLY | FAST)
.args("key min max")
.doc("2.8.9", "Counts the members between two strings.")
.cost("O(log(N)), N is the number of members")
.keys(READ_1),
cmd("zmpop", -4, WRITE)
.args("numkeys key [key ...] <MIN | MAX> [COUNT count]")
.doc("7.0.0", "Pops members from the first sorted set that has any.")
.cost("O(K+M*log(N)), K is the number of keys, N of members, M of those popped")
.keys(&[counted(1, 1, RW | ACCESS | DELETE)])
.effect(NonIdempotent),
cmd("zmscore", -3, READONLY | FAST)
.args("key member [member ...]")
.doc("6.2.0", "Returns the scores of several members.")
.cost("O(N), N is the number of members given")
.keys(READ_1),
cmd("zpopmax", -2, WRITE | FAST)
.args("key [count]")
.doc("5.0.0", "Pops the members with the highest scores.")
.cost("O(M*log(N)), N is the number of members, M of those popped")
.keys(TAKE_1)
.effect(NonIdempotent),
cmd("zpopmin", -2, WRITE | FAST)
.args("key [count]")
.doc("5.0.0", "Pops the members with the lowest scores.")
.cost("O(M*log(N)), N is the number of members, M of those popped")
.keys(TAKE_1)
.effect(NonIdempotent),
cmd("zrandmember", -2, READONLY)
.args("key [count [WITHSCORES]]")
.doc("6.2.0", "Returns random members.")
.cost("O(N), N is the number of members returned")
.keys(READ_1)
.tips(&["nondeterministic_output"]),
cmd("zrange", -4, READONLY)
.args("key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]")
.doc("1.2.0", "Returns the members within a range of ranks, scores or strings.")
.cost("O(log(N)+M), N is the number of members, M of those returned")
.keys(READ_1),
cmd("zrangebylex", -4, READONLY)
.args("key min max [LIMIT offset count]")
.doc("2.8.9", "Returns the members between two strings.")
.cost("O(log(N)+M), N is the number of members, M of those returned")
.keys(READ_1)
.deprecated("6.2.0", "`ZRANGE` with the `BYLEX` argument"),
cmd("zrangebyscore", -4, READONLY)
.args("key min max [WITHSCORES] [LIMIT offset count]")
.doc("1.0.5", "Returns the members with scores in a range.")
.cost("O(log(N)+M), N is the number of members, M of those returned")
.keys(READ_1)
.deprecated("6.2.0", "`ZRANGE` with the `BYSCORE` argument"),
cmd("zrangestore", -5, WRITE | DENYOOM)
.args("dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]")
.doc("6.2.0", "Stores the members within a range of ranks, scores or strings.")
.cost("O(log(N)+M), N is the number of members, M of those stored")
.keys(&[key(1, OW | UPDATE), key(2, RO | ACCESS)])
.effect(NonIdempotent),
cmd("zrank", -3, READONLY | FAST)
.args("key member [WITHSCORE]")
.doc("2.0.0", "Returns the rank of a member, lowest score first.")
.cost("O(log(N)), N is the number of members")
.keys(READ_1),
cmd("zrem", -3, WRITE | FAST)
.args("key member [member ...]")
.doc("1.2.0", "Removes members, and the sorted set when none is left.")
.cost("O(M*log(N)), N is the number of members, M of those removed")
.keys(REMOVE_1)
.effect(Convergent),
cmd("zremrangebylex", 4, WRITE)
.args("key min max")
.doc("2.8.9", "Removes the members between two strings.")
.cost("O(log(N)+M), N is the number of members, M of those removed")
.keys(REMOVE_1)
.effect(Convergent),
cmd("zremrangebyrank", 4, WRITE)
.args("key start stop")
.doc("2.0.0", "Removes the members within a range of ranks.")
.cost("O(log(N)+M), N is the number of members, M of those removed")
.keys(REMOVE_1)
.effect(NonIdempotent),
cmd("zremrangebyscore", 4, WRITE)
.args("key min max")
.doc("1.2.0", "Removes the members with scores in a range.")
.cost("O(log(N)+M), N is the number of members, M of those removed")
.keys(REMOVE_1)
.effect(Convergent),
cmd("zrevrange", -4, READONLY)
.args("key start stop [WITHSCORES]")
.doc("1.2.0", "Returns the members within a range of ranks, highest score first.")
.cost("O(log(N)+M), N is the number of members, M of those returned")
.keys(READ_1)
.deprecated("6.2.0", "`ZRANGE` with the `REV` argument"),
cmd("zrevrangebylex", -4, READONLY)
.args("key max min [LIMIT offset count]")
.doc("2.8.9", "Returns the members between two strings, in reverse order.")
.cost("O(log(N)+M), N is the number of members, M of those returned")
.keys(READ_1)
.deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments"),
cmd("zrevrangebyscore", -4, READONLY)
.args("key max min [WITHSCORES] [LIMIT offset count]")
.doc("2.2.0", "Returns the members with scores in a range, highest score first.")
.cost("O(log(N)+M), N is the number of members, M of those returned")
.keys(READ_1)
.deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments"),
cmd("zrevrank", -3, READONLY | FAST)
.args("key member [WITHSCORE]")
.doc("2.0.0", "Returns the rank of a member, highest score first.")
.cost("O(log(N)), N is the number of members")
.keys(READ_1),
cmd("zscan", -3, READONLY)
.args("key cursor [MATCH pattern] [COUNT count] [NOSCORES]")
.doc("2.8.0", "Iterates over the members and their scores.")
.cost("O(1) per call, O(N) for all, N is the number of elements")
.keys(READ_1)
.tips(&["nondeterministic_output"]),
cmd("zscore", 3, READONLY | FAST)
.args("key member")
.doc("1.2.0", "Returns the score of a member.")
.keys(READ_1),
cmd("zunion", -3, READONLY)
.args("numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] \
 [WITHSCORES]")
.doc("6.2.0", "Returns the members that any of the sorted sets has.")
.cost("O(N+M*log(M)), N is the size of all sets, M that of the result")
.keys(READ_COUNTED_1),
cmd("zunionstore", -4, WRITE | DENYOOM)
.args("destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN \
 | MAX>]")
.doc("2.0.0", "Stores the members that any of the sorted sets has.")
.cost("O(N+M*log(M)), N is the size of all sets, M that of the result")
.keys(&[key(1, OW | UPDATE), counted(2, 1, RO | ACCESS)])
.effect(NonIdempotent),
];
