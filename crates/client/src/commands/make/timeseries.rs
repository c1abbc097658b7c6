//! Commands of the group `timeseries`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Appends a sample; the series is created if absent.
///
/// `TS.ADD key timestamp value [RETENTION retention] [ENCODING <COMPRESSED | UNCOMPRESSED>] [CHUNK_SIZE
/// size] [ON_DUPLICATE policy] [LABELS label value [label value ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_add(key: impl ToArgs, timestamp: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("TS.ADD").arg(key).arg(timestamp).arg(value)
}

/// Appends a sample; the series is created if absent. With options.
///
/// `TS.ADD key timestamp value [RETENTION retention] [ENCODING <COMPRESSED | UNCOMPRESSED>] [CHUNK_SIZE
/// size] [ON_DUPLICATE policy] [LABELS label value [label value ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_add_with(
    key: impl ToArgs,
    timestamp: impl ToArgs,
    value: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("TS.ADD").arg(key).arg(timestamp).arg(value).arg(options)
}

/// Changes the settings of a series.
///
/// `TS.ALTER key [RETENTION retention] [CHUNK_SIZE size] [DUPLICATE_POLICY policy] [LABELS label value
/// [label value ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_alter(key: impl ToArgs) -> Cmd {
    cmd("TS.ALTER").arg(key)
}

/// Changes the settings of a series. With options.
///
/// `TS.ALTER key [RETENTION retention] [CHUNK_SIZE size] [DUPLICATE_POLICY policy] [LABELS label value
/// [label value ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_alter_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TS.ALTER").arg(key).arg(options)
}

/// Creates a series.
///
/// `TS.CREATE key [RETENTION retention] [ENCODING <COMPRESSED | UNCOMPRESSED>] [CHUNK_SIZE size]
/// [DUPLICATE_POLICY policy] [LABELS label value [label value ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_create(key: impl ToArgs) -> Cmd {
    cmd("TS.CREATE").arg(key)
}

/// Creates a series. With options.
///
/// `TS.CREATE key [RETENTION retention] [ENCODING <COMPRESSED | UNCOMPRESSED>] [CHUNK_SIZE size]
/// [DUPLICATE_POLICY policy] [LABELS label value [label value ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_create_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TS.CREATE").arg(key).arg(options)
}

/// Makes one series follow another one, aggregated.
///
/// `TS.CREATERULE source destination AGGREGATION aggregator bucket-duration [align]`: O(1), since 1.0.0 of
/// its module.
pub fn ts_createrule(
    source: impl ToArgs,
    destination: impl ToArgs,
    aggregator: impl ToArgs,
    bucket_duration: impl ToArgs,
) -> Cmd {
    cmd("TS.CREATERULE").arg(source).arg(destination).arg("AGGREGATION").arg(aggregator).arg(bucket_duration)
}

/// Makes one series follow another one, aggregated. With options.
///
/// `TS.CREATERULE source destination AGGREGATION aggregator bucket-duration [align]`: O(1), since 1.0.0 of
/// its module.
pub fn ts_createrule_with(
    source: impl ToArgs,
    destination: impl ToArgs,
    aggregator: impl ToArgs,
    bucket_duration: impl ToArgs,
    align: impl ToArgs,
) -> Cmd {
    cmd("TS.CREATERULE")
        .arg(source)
        .arg(destination)
        .arg("AGGREGATION")
        .arg(aggregator)
        .arg(bucket_duration)
        .arg(align)
}

/// Appends a sample that is less than the last one.
///
/// `TS.DECRBY key subtrahend [TIMESTAMP timestamp] [RETENTION retention] [LABELS label value [label value
/// ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_decrby(key: impl ToArgs, subtrahend: impl ToArgs) -> Cmd {
    cmd("TS.DECRBY").arg(key).arg(subtrahend)
}

/// Appends a sample that is less than the last one. With options.
///
/// `TS.DECRBY key subtrahend [TIMESTAMP timestamp] [RETENTION retention] [LABELS label value [label value
/// ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_decrby_with(key: impl ToArgs, subtrahend: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TS.DECRBY").arg(key).arg(subtrahend).arg(options)
}

/// Deletes the samples of a range of time.
///
/// `TS.DEL key from to`: O(N), N is the number of samples in the range, since 1.6.0 of its module.
pub fn ts_del(key: impl ToArgs, from: impl ToArgs, to: impl ToArgs) -> Cmd {
    cmd("TS.DEL").arg(key).arg(from).arg(to)
}

/// Ends that one series follows another one.
///
/// `TS.DELETERULE source destination`: O(1), since 1.0.0 of its module.
pub fn ts_deleterule(source: impl ToArgs, destination: impl ToArgs) -> Cmd {
    cmd("TS.DELETERULE").arg(source).arg(destination)
}

/// Returns the last sample.
///
/// `TS.GET key [LATEST]`: O(1), since 1.0.0 of its module.
pub fn ts_get(key: impl ToArgs) -> Cmd {
    cmd("TS.GET").arg(key)
}

/// Returns the last sample. With options.
///
/// `TS.GET key [LATEST]`: O(1), since 1.0.0 of its module.
pub fn ts_get_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TS.GET").arg(key).arg(options)
}

/// Appends a sample that is more than the last one.
///
/// `TS.INCRBY key addend [TIMESTAMP timestamp] [RETENTION retention] [LABELS label value [label value
/// ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_incrby(key: impl ToArgs, addend: impl ToArgs) -> Cmd {
    cmd("TS.INCRBY").arg(key).arg(addend)
}

/// Appends a sample that is more than the last one. With options.
///
/// `TS.INCRBY key addend [TIMESTAMP timestamp] [RETENTION retention] [LABELS label value [label value
/// ...]]`: O(1), since 1.0.0 of its module.
pub fn ts_incrby_with(key: impl ToArgs, addend: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TS.INCRBY").arg(key).arg(addend).arg(options)
}

/// Describes a series.
///
/// `TS.INFO key [DEBUG]`: O(1), since 1.0.0 of its module.
pub fn ts_info(key: impl ToArgs) -> Cmd {
    cmd("TS.INFO").arg(key)
}

/// Describes a series. With options.
///
/// `TS.INFO key [DEBUG]`: O(1), since 1.0.0 of its module.
pub fn ts_info_with(key: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TS.INFO").arg(key).arg(options)
}

/// Appends samples to several series.
///
/// `TS.MADD key timestamp value [key timestamp value ...]`: O(N), N is the number of samples, since 1.0.0
/// of its module.
pub fn ts_madd(key_timestamp_values: impl ToArgs) -> Cmd {
    cmd("TS.MADD").arg(key_timestamp_values)
}

/// Returns the last samples of the series with certain labels.
///
/// `TS.MGET [LATEST] [WITHLABELS] FILTER filter [filter ...]`: O(N), N is the number of series with the
/// labels, since 1.0.0 of its module.
pub fn ts_mget(filters: impl ToArgs) -> Cmd {
    cmd("TS.MGET").arg("FILTER").arg(filters)
}

/// Returns the last samples of the series with certain labels. With options.
///
/// `TS.MGET [LATEST] [WITHLABELS] FILTER filter [filter ...]`: O(N), N is the number of series with the
/// labels, since 1.0.0 of its module.
pub fn ts_mget_with(options: impl ToArgs, filters: impl ToArgs) -> Cmd {
    cmd("TS.MGET").arg(options).arg("FILTER").arg(filters)
}

/// Returns a range of time of the series with certain labels.
///
/// `TS.MRANGE from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max]
/// [WITHLABELS] [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY] FILTER filter
/// [filter ...] [GROUPBY label REDUCE reducer]`: O(N), N is the number of samples in the range, since 1.0.0
/// of its module.
pub fn ts_mrange(from: impl ToArgs, to: impl ToArgs, filters: impl ToArgs) -> Cmd {
    cmd("TS.MRANGE").arg(from).arg(to).arg("FILTER").arg(filters)
}

/// Returns a range of time of the series with certain labels. With options.
///
/// `TS.MRANGE from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max]
/// [WITHLABELS] [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY] FILTER filter
/// [filter ...] [GROUPBY label REDUCE reducer]`: O(N), N is the number of samples in the range, since 1.0.0
/// of its module.
pub fn ts_mrange_with(
    from: impl ToArgs,
    to: impl ToArgs,
    options: impl ToArgs,
    filters: impl ToArgs,
    options_2: impl ToArgs,
) -> Cmd {
    cmd("TS.MRANGE").arg(from).arg(to).arg(options).arg("FILTER").arg(filters).arg(options_2)
}

/// Returns a range of time of the series with certain labels, last sample first.
///
/// `TS.MREVRANGE from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max]
/// [WITHLABELS] [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY] FILTER filter
/// [filter ...] [GROUPBY label REDUCE reducer]`: O(N), N is the number of samples in the range, since 1.4.0
/// of its module.
pub fn ts_mrevrange(from: impl ToArgs, to: impl ToArgs, filters: impl ToArgs) -> Cmd {
    cmd("TS.MREVRANGE").arg(from).arg(to).arg("FILTER").arg(filters)
}

/// Returns a range of time of the series with certain labels, last sample first. With options.
///
/// `TS.MREVRANGE from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max]
/// [WITHLABELS] [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY] FILTER filter
/// [filter ...] [GROUPBY label REDUCE reducer]`: O(N), N is the number of samples in the range, since 1.4.0
/// of its module.
pub fn ts_mrevrange_with(
    from: impl ToArgs,
    to: impl ToArgs,
    options: impl ToArgs,
    filters: impl ToArgs,
    options_2: impl ToArgs,
) -> Cmd {
    cmd("TS.MREVRANGE").arg(from).arg(to).arg(options).arg("FILTER").arg(filters).arg(options_2)
}

/// Returns the keys of the series with certain labels.
///
/// `TS.QUERYINDEX filter [filter ...]`: O(N), N is the number of series with the labels, since 1.0.0 of its
/// module.
pub fn ts_queryindex(filters: impl ToArgs) -> Cmd {
    cmd("TS.QUERYINDEX").arg(filters)
}

/// Returns the samples of a range of time.
///
/// `TS.RANGE key from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max] [COUNT
/// count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY]`: O(N), N is the number of samples
/// in the range, since 1.0.0 of its module.
pub fn ts_range(key: impl ToArgs, from: impl ToArgs, to: impl ToArgs) -> Cmd {
    cmd("TS.RANGE").arg(key).arg(from).arg(to)
}

/// Returns the samples of a range of time. With options.
///
/// `TS.RANGE key from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max] [COUNT
/// count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY]`: O(N), N is the number of samples
/// in the range, since 1.0.0 of its module.
pub fn ts_range_with(key: impl ToArgs, from: impl ToArgs, to: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TS.RANGE").arg(key).arg(from).arg(to).arg(options)
}

/// Returns the samples of a range of time, last one first.
///
/// `TS.REVRANGE key from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max]
/// [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY]`: O(N), N is the number of
/// samples in the range, since 1.4.0 of its module.
pub fn ts_revrange(key: impl ToArgs, from: impl ToArgs, to: impl ToArgs) -> Cmd {
    cmd("TS.REVRANGE").arg(key).arg(from).arg(to)
}

/// Returns the samples of a range of time, last one first. With options.
///
/// `TS.REVRANGE key from to [LATEST] [FILTER_BY_TS timestamp [timestamp ...]] [FILTER_BY_VALUE min max]
/// [COUNT count] [ALIGN align] [AGGREGATION aggregator bucket-duration] [EMPTY]`: O(N), N is the number of
/// samples in the range, since 1.4.0 of its module.
pub fn ts_revrange_with(key: impl ToArgs, from: impl ToArgs, to: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("TS.REVRANGE").arg(key).arg(from).arg(to).arg(options)
}
