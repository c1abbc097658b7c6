//! Commands of the group `bf`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};
use crate::commands::counted;

/// Adds an item to a Bloom filter.
///
/// `BF.ADD key item`: O(1), since 1.0.0 of its module.
pub fn bf_add(key: impl ToArgs, item: impl ToArgs) -> Cmd {
    cmd("BF.ADD").arg(key).arg(item)
}

/// Counts the items of a filter.
///
/// `BF.CARD key`: O(1), since 2.4.4 of its module.
pub fn bf_card(key: impl ToArgs) -> Cmd {
    cmd("BF.CARD").arg(key)
}

/// Tells whether an item may be in a filter.
///
/// `BF.EXISTS key item`: O(1), since 1.0.0 of its module.
pub fn bf_exists(key: impl ToArgs, item: impl ToArgs) -> Cmd {
    cmd("BF.EXISTS").arg(key).arg(item)
}

/// Describes a filter.
///
/// `BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]`: O(1), since 1.0.0 of its module.
pub fn bf_info(key: impl ToArgs) -> Cmd {
    cmd("BF.INFO").arg(key)
}

/// Describes a filter. With options.
///
/// `BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]`: O(1), since 1.0.0 of its module.
pub fn bf_info_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("BF.INFO").arg(key).arg(options)
}

/// Adds items to a filter, which is created as told.
///
/// `BF.INSERT key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] ITEMS
/// item [item ...]`: O(N), N is the number of items, since 1.0.0 of its module.
pub fn bf_insert(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("BF.INSERT").arg(key).arg("ITEMS").arg(items)
}

/// Adds items to a filter, which is created as told. With options.
///
/// `BF.INSERT key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] ITEMS
/// item [item ...]`: O(N), N is the number of items, since 1.0.0 of its module.
pub fn bf_insert_with(key: impl ToArgs, options: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("BF.INSERT").arg(key).arg(options).arg("ITEMS").arg(items)
}

/// Restores a part of a filter.
///
/// `BF.LOADCHUNK key iterator data`: O(N), N is the size of the part, since 1.0.0 of its module.
pub fn bf_loadchunk(key: impl ToArgs, iterator: impl ToArgs, data: impl ToArgs) -> Cmd {
    cmd("BF.LOADCHUNK").arg(key).arg(iterator).arg(data)
}

/// Adds items to a filter.
///
/// `BF.MADD key item [item ...]`: O(N), N is the number of items, since 1.0.0 of its module.
pub fn bf_madd(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("BF.MADD").arg(key).arg(items)
}

/// Tells which items may be in a filter.
///
/// `BF.MEXISTS key item [item ...]`: O(N), N is the number of items, since 1.0.0 of its module.
pub fn bf_mexists(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("BF.MEXISTS").arg(key).arg(items)
}

/// Creates a filter.
///
/// `BF.RESERVE key error-rate capacity [EXPANSION expansion] [NONSCALING]`: O(1), since 1.0.0 of its
/// module.
pub fn bf_reserve(key: impl ToArgs, error_rate: impl ToArgs, capacity: impl ToArgs) -> Cmd {
    cmd("BF.RESERVE").arg(key).arg(error_rate).arg(capacity)
}

/// Creates a filter. With options.
///
/// `BF.RESERVE key error-rate capacity [EXPANSION expansion] [NONSCALING]`: O(1), since 1.0.0 of its
/// module.
pub fn bf_reserve_with(
    key: impl ToArgs,
    error_rate: impl ToArgs,
    capacity: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("BF.RESERVE").arg(key).arg(error_rate).arg(capacity).arg(options)
}

/// Returns a part of a filter, to be restored elsewhere.
///
/// `BF.SCANDUMP key iterator`: O(N), N is the size of the part, since 1.0.0 of its module.
pub fn bf_scandump(key: impl ToArgs, iterator: impl ToArgs) -> Cmd {
    cmd("BF.SCANDUMP").arg(key).arg(iterator)
}

/// Adds an item to a cuckoo filter, as often as it is called.
///
/// `CF.ADD key item`: O(1), since 1.0.0 of its module.
pub fn cf_add(key: impl ToArgs, item: impl ToArgs) -> Cmd {
    cmd("CF.ADD").arg(key).arg(item)
}

/// Adds an item to a filter unless it may be there.
///
/// `CF.ADDNX key item`: O(1), since 1.0.0 of its module.
pub fn cf_addnx(key: impl ToArgs, item: impl ToArgs) -> Cmd {
    cmd("CF.ADDNX").arg(key).arg(item)
}

/// Counts how often an item may be in a filter.
///
/// `CF.COUNT key item`: O(1), since 1.0.0 of its module.
pub fn cf_count(key: impl ToArgs, item: impl ToArgs) -> Cmd {
    cmd("CF.COUNT").arg(key).arg(item)
}

/// Removes an item once.
///
/// `CF.DEL key item`: O(1), since 1.0.0 of its module.
pub fn cf_del(key: impl ToArgs, item: impl ToArgs) -> Cmd {
    cmd("CF.DEL").arg(key).arg(item)
}

/// Tells whether an item may be in a filter.
///
/// `CF.EXISTS key item`: O(1), since 1.0.0 of its module.
pub fn cf_exists(key: impl ToArgs, item: impl ToArgs) -> Cmd {
    cmd("CF.EXISTS").arg(key).arg(item)
}

/// Describes a filter.
///
/// `CF.INFO key`: O(1), since 1.0.0 of its module.
pub fn cf_info(key: impl ToArgs) -> Cmd {
    cmd("CF.INFO").arg(key)
}

/// Adds items to a filter, which is created as told.
///
/// `CF.INSERT key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]`: O(N), N is the number of items,
/// since 1.0.0 of its module.
pub fn cf_insert(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("CF.INSERT").arg(key).arg("ITEMS").arg(items)
}

/// Adds items to a filter, which is created as told. With options.
///
/// `CF.INSERT key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]`: O(N), N is the number of items,
/// since 1.0.0 of its module.
pub fn cf_insert_with(key: impl ToArgs, options: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("CF.INSERT").arg(key).arg(options).arg("ITEMS").arg(items)
}

/// Adds the items that are not in a filter.
///
/// `CF.INSERTNX key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]`: O(N), N is the number of items,
/// since 1.0.0 of its module.
pub fn cf_insertnx(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("CF.INSERTNX").arg(key).arg("ITEMS").arg(items)
}

/// Adds the items that are not in a filter. With options.
///
/// `CF.INSERTNX key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]`: O(N), N is the number of items,
/// since 1.0.0 of its module.
pub fn cf_insertnx_with(key: impl ToArgs, options: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("CF.INSERTNX").arg(key).arg(options).arg("ITEMS").arg(items)
}

/// Restores a part of a filter.
///
/// `CF.LOADCHUNK key iterator data`: O(N), N is the size of the part, since 1.0.0 of its module.
pub fn cf_loadchunk(key: impl ToArgs, iterator: impl ToArgs, data: impl ToArgs) -> Cmd {
    cmd("CF.LOADCHUNK").arg(key).arg(iterator).arg(data)
}

/// Tells which items may be in a filter.
///
/// `CF.MEXISTS key item [item ...]`: O(N), N is the number of items, since 1.0.0 of its module.
pub fn cf_mexists(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("CF.MEXISTS").arg(key).arg(items)
}

/// Creates a filter.
///
/// `CF.RESERVE key capacity [BUCKETSIZE bucketsize] [MAXITERATIONS maxiterations] [EXPANSION expansion]`:
/// O(1), since 1.0.0 of its module.
pub fn cf_reserve(key: impl ToArgs, capacity: impl ToArgs) -> Cmd {
    cmd("CF.RESERVE").arg(key).arg(capacity)
}

/// Creates a filter. With options.
///
/// `CF.RESERVE key capacity [BUCKETSIZE bucketsize] [MAXITERATIONS maxiterations] [EXPANSION expansion]`:
/// O(1), since 1.0.0 of its module.
pub fn cf_reserve_with(key: impl ToArgs, capacity: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("CF.RESERVE").arg(key).arg(capacity).arg(options)
}

/// Returns a part of a filter, to be restored elsewhere.
///
/// `CF.SCANDUMP key iterator`: O(N), N is the size of the part, since 1.0.0 of its module.
pub fn cf_scandump(key: impl ToArgs, iterator: impl ToArgs) -> Cmd {
    cmd("CF.SCANDUMP").arg(key).arg(iterator)
}

/// Adds to the counts of items in a count-min sketch.
///
/// `CMS.INCRBY key item increment [item increment ...]`: O(N), N is the number of items, since 2.0.0 of its
/// module.
pub fn cms_incrby(key: impl ToArgs, item_increments: impl ToArgs) -> Cmd {
    cmd("CMS.INCRBY").arg(key).arg(item_increments)
}

/// Describes a sketch.
///
/// `CMS.INFO key`: O(1), since 2.0.0 of its module.
pub fn cms_info(key: impl ToArgs) -> Cmd {
    cmd("CMS.INFO").arg(key)
}

/// Creates a sketch with these dimensions.
///
/// `CMS.INITBYDIM key width depth`: O(1), since 2.0.0 of its module.
pub fn cms_initbydim(key: impl ToArgs, width: impl ToArgs, depth: impl ToArgs) -> Cmd {
    cmd("CMS.INITBYDIM").arg(key).arg(width).arg(depth)
}

/// Creates a sketch that errs no more than told.
///
/// `CMS.INITBYPROB key error probability`: O(1), since 2.0.0 of its module.
pub fn cms_initbyprob(key: impl ToArgs, error: impl ToArgs, probability: impl ToArgs) -> Cmd {
    cmd("CMS.INITBYPROB").arg(key).arg(error).arg(probability)
}

/// Replaces a sketch by the sum of others.
///
/// `CMS.MERGE destination numkeys source [source ...] [WEIGHTS weight [weight ...]]`: O(N), N is the number
/// of sketches, since 2.0.0 of its module.
pub fn cms_merge(destination: impl ToArgs, sources: impl ToArgs) -> Cmd {
    counted(cmd("CMS.MERGE").arg(destination), 1, sources)
}

/// Replaces a sketch by the sum of others. With options.
///
/// `CMS.MERGE destination numkeys source [source ...] [WEIGHTS weight [weight ...]]`: O(N), N is the number
/// of sketches, since 2.0.0 of its module.
pub fn cms_merge_with(destination: impl ToArgs, sources: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("CMS.MERGE").arg(destination), 1, sources).arg(options)
}

/// Returns the counts of items.
///
/// `CMS.QUERY key item [item ...]`: O(N), N is the number of items, since 2.0.0 of its module.
pub fn cms_query(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("CMS.QUERY").arg(key).arg(items)
}

/// Adds items to the most frequent ones; returns those that had to leave.
///
/// `TOPK.ADD key item [item ...]`: O(N), N is the number of items, since 2.0.0 of its module.
pub fn topk_add(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("TOPK.ADD").arg(key).arg(items)
}

/// Returns the counts of items.
///
/// `TOPK.COUNT key item [item ...]`: O(N), N is the number of items, since 2.0.0 of its module.
///
/// Old since 2.4: better `TOPK.LIST` with counts.
pub fn topk_count(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("TOPK.COUNT").arg(key).arg(items)
}

/// Adds to the counts of items; returns those that had to leave.
///
/// `TOPK.INCRBY key item increment [item increment ...]`: O(N), N is the number of items, since 2.0.0 of
/// its module.
pub fn topk_incrby(key: impl ToArgs, item_increments: impl ToArgs) -> Cmd {
    cmd("TOPK.INCRBY").arg(key).arg(item_increments)
}

/// Describes the list.
///
/// `TOPK.INFO key`: O(1), since 2.0.0 of its module.
pub fn topk_info(key: impl ToArgs) -> Cmd {
    cmd("TOPK.INFO").arg(key)
}

/// Returns the most frequent items.
///
/// `TOPK.LIST key [WITHCOUNT]`: O(K*log(K)), K is the number of items, since 2.0.0 of its module.
pub fn topk_list(key: impl ToArgs) -> Cmd {
    cmd("TOPK.LIST").arg(key)
}

/// Returns the most frequent items. With options.
///
/// `TOPK.LIST key [WITHCOUNT]`: O(K*log(K)), K is the number of items, since 2.0.0 of its module.
pub fn topk_list_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TOPK.LIST").arg(key).arg(options)
}

/// Tells which items are among the most frequent ones.
///
/// `TOPK.QUERY key item [item ...]`: O(N), N is the number of items, since 2.0.0 of its module.
pub fn topk_query(key: impl ToArgs, items: impl ToArgs) -> Cmd {
    cmd("TOPK.QUERY").arg(key).arg(items)
}

/// Creates a list of the most frequent items.
///
/// `TOPK.RESERVE key topk [width depth decay]`: O(1), since 2.0.0 of its module.
pub fn topk_reserve(key: impl ToArgs, topk: impl ToArgs) -> Cmd {
    cmd("TOPK.RESERVE").arg(key).arg(topk)
}

/// Creates a list of the most frequent items. With options.
///
/// `TOPK.RESERVE key topk [width depth decay]`: O(1), since 2.0.0 of its module.
pub fn topk_reserve_with(key: impl ToArgs, topk: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TOPK.RESERVE").arg(key).arg(topk).arg(options)
}

/// Adds observations to a t-digest.
///
/// `TDIGEST.ADD key value [value ...]`: O(N), N is the number of values, since 2.4.0 of its module.
pub fn tdigest_add(key: impl ToArgs, values: impl ToArgs) -> Cmd {
    cmd("TDIGEST.ADD").arg(key).arg(values)
}

/// Estimates the values at ranks.
///
/// `TDIGEST.BYRANK key rank [rank ...]`: O(1), since 2.4.0 of its module.
pub fn tdigest_byrank(key: impl ToArgs, ranks: impl ToArgs) -> Cmd {
    cmd("TDIGEST.BYRANK").arg(key).arg(ranks)
}

/// Estimates the values at ranks from the greatest on.
///
/// `TDIGEST.BYREVRANK key rank [rank ...]`: O(1), since 2.4.0 of its module.
pub fn tdigest_byrevrank(key: impl ToArgs, ranks: impl ToArgs) -> Cmd {
    cmd("TDIGEST.BYREVRANK").arg(key).arg(ranks)
}

/// Estimates the parts of the observations up to values.
///
/// `TDIGEST.CDF key value [value ...]`: O(1), since 2.4.0 of its module.
pub fn tdigest_cdf(key: impl ToArgs, values: impl ToArgs) -> Cmd {
    cmd("TDIGEST.CDF").arg(key).arg(values)
}

/// Creates a t-digest.
///
/// `TDIGEST.CREATE key [COMPRESSION compression]`: O(1), since 2.4.0 of its module.
pub fn tdigest_create(key: impl ToArgs) -> Cmd {
    cmd("TDIGEST.CREATE").arg(key)
}

/// Creates a t-digest. With options.
///
/// `TDIGEST.CREATE key [COMPRESSION compression]`: O(1), since 2.4.0 of its module.
pub fn tdigest_create_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TDIGEST.CREATE").arg(key).arg(options)
}

/// Describes a t-digest.
///
/// `TDIGEST.INFO key`: O(1), since 2.4.0 of its module.
pub fn tdigest_info(key: impl ToArgs) -> Cmd {
    cmd("TDIGEST.INFO").arg(key)
}

/// Returns the greatest observation.
///
/// `TDIGEST.MAX key`: O(1), since 2.4.0 of its module.
pub fn tdigest_max(key: impl ToArgs) -> Cmd {
    cmd("TDIGEST.MAX").arg(key)
}

/// Adds the observations of others to a t-digest.
///
/// `TDIGEST.MERGE destination numkeys source [source ...] [COMPRESSION compression] [OVERRIDE]`: O(N), N is
/// the number of centroids, since 2.4.0 of its module.
pub fn tdigest_merge(destination: impl ToArgs, sources: impl ToArgs) -> Cmd {
    counted(cmd("TDIGEST.MERGE").arg(destination), 1, sources)
}

/// Adds the observations of others to a t-digest. With options.
///
/// `TDIGEST.MERGE destination numkeys source [source ...] [COMPRESSION compression] [OVERRIDE]`: O(N), N is
/// the number of centroids, since 2.4.0 of its module.
pub fn tdigest_merge_with(destination: impl ToArgs, sources: impl ToArgs, options: impl ToArgs) -> Cmd {
    counted(cmd("TDIGEST.MERGE").arg(destination), 1, sources).arg(options)
}

/// Returns the least observation.
///
/// `TDIGEST.MIN key`: O(1), since 2.4.0 of its module.
pub fn tdigest_min(key: impl ToArgs) -> Cmd {
    cmd("TDIGEST.MIN").arg(key)
}

/// Estimates the values below which parts of the observations are.
///
/// `TDIGEST.QUANTILE key quantile [quantile ...]`: O(1), since 2.4.0 of its module.
pub fn tdigest_quantile(key: impl ToArgs, quantiles: impl ToArgs) -> Cmd {
    cmd("TDIGEST.QUANTILE").arg(key).arg(quantiles)
}

/// Estimates the ranks of values.
///
/// `TDIGEST.RANK key value [value ...]`: O(1), since 2.4.0 of its module.
pub fn tdigest_rank(key: impl ToArgs, values: impl ToArgs) -> Cmd {
    cmd("TDIGEST.RANK").arg(key).arg(values)
}

/// Empties a t-digest.
///
/// `TDIGEST.RESET key`: O(1), since 2.4.0 of its module.
pub fn tdigest_reset(key: impl ToArgs) -> Cmd {
    cmd("TDIGEST.RESET").arg(key)
}

/// Estimates the ranks of values from the greatest on.
///
/// `TDIGEST.REVRANK key value [value ...]`: O(1), since 2.4.0 of its module.
pub fn tdigest_revrank(key: impl ToArgs, values: impl ToArgs) -> Cmd {
    cmd("TDIGEST.REVRANK").arg(key).arg(values)
}

/// Estimates the mean of the observations between two quantiles.
///
/// `TDIGEST.TRIMMED_MEAN key low-quantile high-quantile`: O(1), since 2.4.0 of its module.
pub fn tdigest_trimmed_mean(key: impl ToArgs, low_quantile: impl ToArgs, high_quantile: impl ToArgs) -> Cmd {
    cmd("TDIGEST.TRIMMED_MEAN").arg(key).arg(low_quantile).arg(high_quantile)
}
