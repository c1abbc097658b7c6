//! What the replies of commands are, where that does not depend on how the command is called.
//!
//! Owns the one list that the command table cannot give: it knows arguments, not replies. A command that is not here
//! gives what its caller asks for. Source: the pages of the commands at <https://redis.io/docs/latest/commands/>. Every
//! type takes the reply of both protocols.

/// A type and the functions that give it.
type Row = (&'static str, &'static str);

const TABLE: &[Row] = &[
    (
        "()",
        "set mset psetex setex lset ltrim rename hmset pfmerge flushall flushdb flushall_with flushdb_with select \
         auth client_setname config_set config_rewrite config_resetstat script_flush script_kill function_delete \
         function_flush function_kill readonly readwrite asking watch unwatch multi discard acl_save acl_load \
         acl_setuser save swapdb restore restore_with xgroup_create xgroup_create_with xgroup_setid xsetid \
         client_pause client_unpause client_no_evict client_no_touch slowlog_reset memory_purge cluster_addslots \
         cluster_addslotsrange cluster_delslots cluster_delslotsrange cluster_failover cluster_flushslots \
         cluster_forget cluster_meet cluster_replicate cluster_reset cluster_saveconfig cluster_set_config_epoch \
         cluster_setslot",
    ),
    (
        "bool",
        "expire expire_with expireat expireat_with pexpire pexpire_with pexpireat pexpireat_with persist move_ copy \
         copy_with renamenx setnx msetnx hexists hsetnx sismember smove pfadd getbit setbit xgroup_destroy \
         xgroup_createconsumer client_unblock client_unblock_with delifeq",
    ),
    (
        "u64",
        "append del unlink exists touch strlen setrange llen lpush rpush lpushx rpushx lrem hlen hdel hset hstrlen \
         scard sadd srem sdiffstore sinterstore sunionstore sintercard sintercard_with zcard zadd zrem zcount \
         zlexcount zremrangebyrank zremrangebyscore zremrangebylex zdiffstore zinterstore zinterstore_with \
         zunionstore zunionstore_with zrangestore zrangestore_with zintercard zintercard_with geoadd geoadd_with \
         geosearchstore geosearchstore_with pfcount bitcount bitcount_with bitop xlen xdel xack xtrim publish \
         spublish dbsize lastsave wait pubsub_numpat slowlog_len acl_deluser cluster_keyslot \
         cluster_countkeysinslot client_id command_count",
    ),
    (
        "i64",
        "incr incrby decr decrby hincrby ttl pttl expiretime pexpiretime linsert bitpos bitpos_with \
         client_getredir",
    ),
    ("f64", "incrbyfloat hincrbyfloat zincrby"),
    ("Option<f64>", "zscore geodist geodist_with"),
    (
        "Option<u64>",
        "zrank zrevrank lpos memory_usage memory_usage_with object_refcount object_idletime object_freq",
    ),
    (
        "Option<Bytes>",
        "get getdel getex getex_with getset hget lindex lpop rpop rpoplpush lmove brpoplpush blmove spop srandmember \
         randomkey dump hrandfield",
    ),
    ("Bytes", "getrange substr echo lcs function_dump"),
    (
        "String",
        "type_ ping info cluster_info cluster_nodes cluster_myid client_list client_info script_load \
         function_load function_load_with lolwut memory_doctor latency_doctor acl_whoami acl_genpass \
         acl_genpass_with bgsave bgrewriteaof xadd",
    ),
    ("Option<String>", "object_encoding client_getname"),
    ("Vec<String>", "acl_list acl_users acl_cat acl_cat_with"),
    (
        "Vec<Bytes>",
        "lrange hkeys hvals smembers sdiff sinter sunion keys zrange zrevrange zrangebyscore zrevrangebyscore \
         zrangebylex zrangebylex_with zrevrangebylex zrevrangebylex_with zdiff zinter zunion geosearch sort \
         sort_with sort_ro sort_ro_with pubsub_channels pubsub_channels_with pubsub_shardchannels \
         pubsub_shardchannels_with cluster_getkeysinslot spop_with srandmember_with",
    ),
    ("Vec<Option<Bytes>>", "mget hmget"),
    ("Vec<Option<String>>", "geohash"),
    ("Vec<Option<Position>>", "geopos"),
    ("Vec<Option<f64>>", "zmscore"),
    ("Vec<bool>", "smismember script_exists"),
    (
        "Vec<i64>",
        "httl hpttl hexpiretime hpexpiretime hexpire hexpire_with hpexpire hpexpire_with hexpireat \
                  hexpireat_with hpexpireat hpexpireat_with hpersist",
    ),
    ("HashMap<Bytes, Bytes>", "hgetall"),
    ("HashMap<String, String>", "config_get"),
    ("HashMap<Bytes, u64>", "pubsub_numsub pubsub_shardnumsub"),
    ("HashMap<Bytes, StreamEntries>", "xread xread_with xreadgroup xreadgroup_with"),
    ("StreamEntries", "xrange xrange_with xrevrange xrevrange_with"),
    ("Option<(Bytes, Bytes)>", "blpop brpop"),
    ("Option<PoppedMember>", "bzpopmin bzpopmax"),
    ("Vec<(Bytes, f64)>", "zpopmin zpopmin_with zpopmax zpopmax_with"),
    ("(u64, u64)", "time"),
    ("Page<Bytes>", "scan scan_with sscan sscan_with"),
    ("Page<(Bytes, Bytes)>", "hscan"),
    ("Page<(Bytes, f64)>", "zscan"),
    // Modules.
    (
        "()",
        "json_merge json_mset ft_create ft_create_with ft_alter ft_alter_with ft_aliasadd ft_aliasdel ft_aliasupdate \
         ft_dropindex ft_dropindex_with ft_config_set ft_cursor_del ft_synupdate ft_synupdate_with ts_create \
         ts_create_with ts_alter ts_alter_with ts_createrule ts_createrule_with ts_deleterule bf_reserve \
         bf_reserve_with bf_loadchunk cf_reserve cf_reserve_with cf_loadchunk cms_initbydim cms_initbyprob \
         cms_merge cms_merge_with topk_reserve topk_reserve_with tdigest_add tdigest_create tdigest_create_with \
         tdigest_merge tdigest_merge_with tdigest_reset",
    ),
    (
        "bool",
        "json_set json_set_with ft_sugdel bf_add bf_exists cf_add cf_addnx cf_del cf_exists vadd vadd_with \
         vismember vrem vsetattr",
    ),
    (
        "u64",
        "json_clear json_clear_with json_del json_del_with json_forget json_forget_with ft_dictadd ft_dictdel \
         ft_sugadd ft_sugadd_with ft_suglen ts_del bf_card cf_count vcard vdim",
    ),
    ("i64", "ts_add ts_add_with ts_incrby ts_incrby_with ts_decrby ts_decrby_with"),
    ("f64", "tdigest_min tdigest_max tdigest_trimmed_mean"),
    ("Option<Bytes>", "json_get json_get_with vgetattr vrandmember"),
    ("String", "ft_explain ft_explain_with"),
    ("Vec<String>", "ft_list ft_explaincli ft_explaincli_with"),
    (
        "Vec<Bytes>",
        "ft_dictdump ft_tagvals ft_sugget ts_queryindex topk_list vsim vrange vrange_with vrandmember_with",
    ),
    ("Vec<Option<Bytes>>", "json_mget topk_add topk_incrby"),
    ("Vec<bool>", "bf_insert bf_insert_with bf_madd bf_mexists cf_mexists topk_query"),
    ("Vec<u64>", "cms_incrby cms_query topk_count"),
    (
        "Vec<i64>",
        "cf_insert cf_insert_with cf_insertnx cf_insertnx_with ts_madd tdigest_rank tdigest_revrank",
    ),
    ("Vec<f64>", "tdigest_byrank tdigest_byrevrank tdigest_cdf tdigest_quantile"),
    ("Option<Vec<f64>>", "vemb"),
    ("(i64, Bytes)", "bf_scandump cf_scandump"),
    ("HashMap<Bytes, Vec<Bytes>>", "ft_syndump"),
    ("SearchResults", "ft_search ft_search_with"),
    ("Aggregated", "ft_aggregate"),
    ("(Aggregated, i64)", "ft_cursor_read ft_cursor_read_with"),
    ("Option<Sample>", "ts_get ts_get_with"),
    ("Vec<Sample>", "ts_range ts_range_with ts_revrange ts_revrange_with"),
];

/// The type of a function's reply; `None` if the caller chooses it.
pub(super) fn of(name: &str) -> Option<&'static str> {
    TABLE
        .iter()
        .find(|(_, names)| names.split_ascii_whitespace().any(|of| of == name))
        .map(|(reply, _)| *reply)
}

/// Every function that has one.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|(_, names)| names.split_ascii_whitespace())
}
