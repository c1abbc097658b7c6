//! Probabilistic structures: RedisBloom; of ValkeyBloom `BF.*` alone.

use crate::table::prelude::*;

const FLAGS: u32 = WRITE | DENYOOM;
const N_ITEMS: &str = "O(N), N is the number of items";

pub(super) const BF: &[Row] = &[
    cmd("bf.add", 3, FLAGS)
        .args("key item")
        .doc("1.0.0", "Adds an item to a Bloom filter.")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("bf.card", 2, READONLY).args("key").doc("2.4.4", "Counts the items of a filter.").keys(META_1),
    cmd("bf.exists", 3, READONLY)
        .args("key item")
        .doc("1.0.0", "Tells whether an item may be in a filter.")
        .keys(READ_1),
    cmd("bf.info", -2, READONLY)
        .args("key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]")
        .doc("1.0.0", "Describes a filter.")
        .keys(META_1),
    cmd("bf.insert", -4, FLAGS)
        .args("key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] ITEMS item [item ...]")
        .doc("1.0.0", "Adds items to a filter, which is created as told.")
        .cost(N_ITEMS)
        .keys(ADD_1)
        .effect(Convergent),
    cmd("bf.loadchunk", 4, FLAGS)
        .args("key iterator data")
        .doc("1.0.0", "Restores a part of a filter.").cost("O(N), N is the size of the part")
        .keys(CHANGE_1)
        .effect(Idempotent),
    cmd("bf.madd", -3, FLAGS)
        .args("key item [item ...]")
        .doc("1.0.0", "Adds items to a filter.")
        .cost(N_ITEMS)
        .keys(ADD_1)
        .effect(Convergent),
    cmd("bf.mexists", -3, READONLY)
        .args("key item [item ...]")
        .doc("1.0.0", "Tells which items may be in a filter.")
        .cost(N_ITEMS)
        .keys(READ_1),
    cmd("bf.reserve", -4, FLAGS)
        .args("key error-rate capacity [EXPANSION expansion] [NONSCALING]")
        .doc("1.0.0", "Creates a filter.")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("bf.scandump", 3, READONLY)
        .args("key iterator")
        .doc("1.0.0", "Returns a part of a filter, to be restored elsewhere.").cost("O(N), N is the size of the part")
        .keys(READ_1),
];

pub(super) const CF: &[Row] = &[
    cmd("cf.add", 3, FLAGS)
        .args("key item")
        .doc("1.0.0", "Adds an item to a cuckoo filter, as often as it is called.")
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("cf.addnx", 3, FLAGS)
        .args("key item")
        .doc("1.0.0", "Adds an item to a filter unless it may be there.")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("cf.count", 3, READONLY)
        .args("key item")
        .doc("1.0.0", "Counts how often an item may be in a filter.")
        .keys(READ_1),
    cmd("cf.del", 3, WRITE)
        .args("key item")
        .doc("1.0.0", "Removes an item once.")
        .keys(REMOVE_1)
        .effect(NonIdempotent),
    cmd("cf.exists", 3, READONLY)
        .args("key item")
        .doc("1.0.0", "Tells whether an item may be in a filter.")
        .keys(READ_1),
    cmd("cf.info", 2, READONLY).args("key").doc("1.0.0", "Describes a filter.").keys(META_1),
    cmd("cf.insert", -4, FLAGS)
        .args("key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]")
        .doc("1.0.0", "Adds items to a filter, which is created as told.")
        .cost(N_ITEMS)
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("cf.insertnx", -4, FLAGS)
        .args("key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]")
        .doc("1.0.0", "Adds the items that are not in a filter.")
        .cost(N_ITEMS)
        .keys(ADD_1)
        .effect(Convergent),
    cmd("cf.loadchunk", 4, FLAGS)
        .args("key iterator data")
        .doc("1.0.0", "Restores a part of a filter.")
        .cost("O(N), N is the size of the part")
        .keys(CHANGE_1)
        .effect(Idempotent),
    cmd("cf.mexists", -3, READONLY)
        .args("key item [item ...]")
        .doc("1.0.0", "Tells which items may be in a filter.")
        .cost(N_ITEMS)
        .keys(READ_1),
    cmd("cf.reserve", -3, FLAGS)
        .args("key capacity [BUCKETSIZE bucketsize] [MAXITERATIONS maxiterations] [EXPANSION expansion]")
        .doc("1.0.0", "Creates a filter.")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("cf.scandump", 3, READONLY)
        .args("key iterator")
        .doc("1.0.0", "Returns a part of a filter, to be restored elsewhere.")
        .cost("O(N), N is the size of the part")
        .keys(READ_1),
];

pub(super) const CMS: &[Row] = &[
    cmd("cms.incrby", -4, FLAGS)
        .args("key item increment [item increment ...]")
        .doc("2.0.0", "Adds to the counts of items in a count-min sketch.")
        .cost(N_ITEMS)
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("cms.info", 2, READONLY).args("key").doc("2.0.0", "Describes a sketch.").keys(META_1),
    cmd("cms.initbydim", 4, FLAGS)
        .args("key width depth")
        .doc("2.0.0", "Creates a sketch with these dimensions.")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("cms.initbyprob", 4, FLAGS)
        .args("key error probability")
        .doc("2.0.0", "Creates a sketch that errs no more than told.")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("cms.merge", -4, FLAGS)
        .args("destination numkeys source [source ...] [WEIGHTS weight [weight ...]]")
        .doc("2.0.0", "Replaces a sketch by the sum of others.")
        .cost("O(N), N is the number of sketches")
        .keys(&[key(1, OW | UPDATE), counted(2, 1, RO | ACCESS)])
        .effect(NonIdempotent),
    cmd("cms.query", -3, READONLY)
        .args("key item [item ...]")
        .doc("2.0.0", "Returns the counts of items.")
        .cost(N_ITEMS)
        .keys(READ_1),
];

pub(super) const TOPK: &[Row] = &[
    cmd("topk.add", -3, FLAGS)
        .args("key item [item ...]")
        .doc("2.0.0", "Adds items to the most frequent ones; returns those that had to leave.")
        .cost(N_ITEMS)
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("topk.count", -3, READONLY)
        .args("key item [item ...]")
        .doc("2.0.0", "Returns the counts of items.")
        .cost(N_ITEMS)
        .keys(READ_1)
        .deprecated("2.4", "`TOPK.LIST` with counts"),
    cmd("topk.incrby", -4, FLAGS)
        .args("key item increment [item increment ...]")
        .doc("2.0.0", "Adds to the counts of items; returns those that had to leave.")
        .cost(N_ITEMS)
        .keys(EXCHANGE_1)
        .effect(NonIdempotent),
    cmd("topk.info", 2, READONLY).args("key").doc("2.0.0", "Describes the list.").keys(META_1),
    cmd("topk.list", -2, READONLY)
        .args("key [WITHCOUNT]")
        .doc("2.0.0", "Returns the most frequent items.")
        .cost("O(K*log(K)), K is the number of items")
        .keys(READ_1),
    cmd("topk.query", -3, READONLY)
        .args("key item [item ...]")
        .doc("2.0.0", "Tells which items are among the most frequent ones.")
        .cost(N_ITEMS)
        .keys(READ_1),
    cmd("topk.reserve", -3, FLAGS)
        .args("key topk [width depth decay]")
        .doc("2.0.0", "Creates a list of the most frequent items.")
        .keys(ADD_1)
        .effect(Convergent),
];

pub(super) const TDIGEST: &[Row] = &[
    cmd("tdigest.add", -3, FLAGS)
        .args("key value [value ...]")
        .doc("2.4.0", "Adds observations to a t-digest.")
        .cost("O(N), N is the number of values")
        .keys(CHANGE_1)
        .effect(NonIdempotent),
    cmd("tdigest.byrank", -3, READONLY)
        .args("key rank [rank ...]")
        .doc("2.4.0", "Estimates the values at ranks.")
        .keys(READ_1),
    cmd("tdigest.byrevrank", -3, READONLY)
        .args("key rank [rank ...]")
        .doc("2.4.0", "Estimates the values at ranks from the greatest on.")
        .keys(READ_1),
    cmd("tdigest.cdf", -3, READONLY)
        .args("key value [value ...]")
        .doc("2.4.0", "Estimates the parts of the observations up to values.")
        .keys(READ_1),
    cmd("tdigest.create", -2, FLAGS)
        .args("key [COMPRESSION compression]")
        .doc("2.4.0", "Creates a t-digest.")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("tdigest.info", 2, READONLY).args("key").doc("2.4.0", "Describes a t-digest.").keys(META_1),
    cmd("tdigest.max", 2, READONLY)
        .args("key")
        .doc("2.4.0", "Returns the greatest observation.")
        .keys(READ_1),
    cmd("tdigest.merge", -4, FLAGS)
        .args("destination numkeys source [source ...] [COMPRESSION compression] [OVERRIDE]")
        .doc("2.4.0", "Adds the observations of others to a t-digest.")
        .cost("O(N), N is the number of centroids")
        .keys(&[key(1, RW | UPDATE), counted(2, 1, RO | ACCESS)])
        .effect(NonIdempotent),
    cmd("tdigest.min", 2, READONLY).args("key").doc("2.4.0", "Returns the least observation.").keys(READ_1),
    cmd("tdigest.quantile", -3, READONLY)
        .args("key quantile [quantile ...]")
        .doc("2.4.0", "Estimates the values below which parts of the observations are.")
        .keys(READ_1),
    cmd("tdigest.rank", -3, READONLY)
        .args("key value [value ...]")
        .doc("2.4.0", "Estimates the ranks of values.")
        .keys(READ_1),
    cmd("tdigest.reset", 2, FLAGS)
        .args("key")
        .doc("2.4.0", "Empties a t-digest.")
        .keys(CHANGE_1)
        .effect(Idempotent),
    cmd("tdigest.revrank", -3, READONLY)
        .args("key value [value ...]")
        .doc("2.4.0", "Estimates the ranks of values from the greatest on.")
        .keys(READ_1),
    cmd("tdigest.trimmed_mean", 4, READONLY)
        .args("key low-quantile high-quantile")
        .doc("2.4.0", "Estimates the mean of the observations between two quantiles.")
        .keys(READ_1),
];
