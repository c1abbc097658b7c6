//! Time series: RedisTimeSeries.
//!
//! What is found by labels has no keys: the node that is asked asks the others.

use crate::table::prelude::*;

const FLAGS: u32 = WRITE | DENYOOM;

const SAMPLES: &str = "O(N), N is the number of samples in the range";
const SERIES: &str = "O(N), N is the number of series with the labels";

pub(super) const ROWS: &[Row] = &[
    cmd("ts.add", -4, FLAGS)
        .args(
            "key timestamp value [RETENTION retention] [ENCODING <COMPRESSED | UNCOMPRESSED>] \
             [CHUNK_SIZE size] [ON_DUPLICATE policy] [LABELS label value [label value ...]]",
        )
        .doc("1.0.0", "Appends a sample; the series is created if absent.")
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("ts.alter", -2, FLAGS)
        .args(
            "key [RETENTION retention] [CHUNK_SIZE size] [DUPLICATE_POLICY policy] \
             [LABELS label value [label value ...]]",
        )
        .doc("1.0.0", "Changes the settings of a series.")
        .keys(CHANGE_1)
        .effect(Idempotent),
    cmd("ts.create", -2, FLAGS)
        .args(
            "key [RETENTION retention] [ENCODING <COMPRESSED | UNCOMPRESSED>] [CHUNK_SIZE size] \
             [DUPLICATE_POLICY policy] [LABELS label value [label value ...]]",
        )
        .doc("1.0.0", "Creates a series.")
        .keys(ADD_1)
        .effect(Convergent),
    cmd("ts.createrule", -6, FLAGS)
        .args("source destination AGGREGATION aggregator bucket-duration [align]")
        .doc("1.0.0", "Makes one series follow another one, aggregated.")
        .keys(&[keys(1, 1, 1, RW | UPDATE)])
        .effect(Convergent),
    cmd("ts.decrby", -3, FLAGS)
        .args("key subtrahend [TIMESTAMP timestamp] [RETENTION retention] [LABELS label value [label value ...]]")
        .doc("1.0.0", "Appends a sample that is less than the last one.")
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("ts.del", 4, WRITE)
        .args("key from to")
        .doc("1.6.0", "Deletes the samples of a range of time.").cost(SAMPLES)
        .keys(REMOVE_1)
        .effect(Convergent),
    cmd("ts.deleterule", 3, WRITE)
        .args("source destination")
        .doc("1.0.0", "Ends that one series follows another one.")
        .keys(&[keys(1, 1, 1, RW | UPDATE)])
        .effect(Convergent),
    cmd("ts.get", -2, READONLY)
        .args("key [LATEST]")
        .doc("1.0.0", "Returns the last sample.")
        .keys(READ_1),
    cmd("ts.incrby", -3, FLAGS)
        .args("key addend [TIMESTAMP timestamp] [RETENTION retention] [LABELS label value [label value ...]]")
        .doc("1.0.0", "Appends a sample that is more than the last one.")
        .keys(ADD_1)
        .effect(NonIdempotent),
    cmd("ts.info", -2, READONLY).args("key [DEBUG]").doc("1.0.0", "Describes a series.").keys(META_1),
    cmd("ts.madd", -4, FLAGS)
        .args("key timestamp value [key timestamp value ...]")
        .doc("1.0.0", "Appends samples to several series.").cost("O(N), N is the number of samples")
        .keys(&[keys(1, -1, 3, RW | INSERT)])
        .effect(NonIdempotent),
    cmd("ts.mget", -3, READONLY)
        .args("[LATEST] [WITHLABELS] FILTER filter [filter ...]")
        .doc("1.0.0", "Returns the last samples of the series with certain labels.").cost(SERIES),
    cmd("ts.mrange", -5, READONLY)
        .args(
            "from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max] [WITHLABELS] \
             [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY] \
             FILTER filter [filter ...] [GROUPBY label REDUCE reducer]",
        )
        .doc("1.0.0", "Returns a range of time of the series with certain labels.").cost(SAMPLES),
    cmd("ts.mrevrange", -5, READONLY)
        .args(
            "from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max] [WITHLABELS] \
             [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY] \
             FILTER filter [filter ...] [GROUPBY label REDUCE reducer]",
        )
        .doc("1.4.0", "Returns a range of time of the series with certain labels, last sample first.").cost(SAMPLES),
    cmd("ts.queryindex", -2, READONLY)
        .args("filter [filter ...]")
        .doc("1.0.0", "Returns the keys of the series with certain labels.").cost(SERIES),
    cmd("ts.range", -4, READONLY)
        .args(
            "key from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max] \
             [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY]",
        )
        .doc("1.0.0", "Returns the samples of a range of time.").cost(SAMPLES)
        .keys(READ_1),
    cmd("ts.revrange", -4, READONLY)
        .args(
            "key from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max] \
             [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY]",
        )
        .doc("1.4.0", "Returns the samples of a range of time, last one first.").cost(SAMPLES)
        .keys(READ_1),
];
