//! `INFO persistence`.

use super::{Report, ratio};
use crate::persistence::keeper::Running;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Writes the section.
pub(super) fn render(report: &mut Report<'_>) {
    let status = report.shared.persistence.keeper.status().clone();
    let changes = report.shared.stats.dirty().wrapping_sub(status.saved_changes);
    let now_ms = report.now_ms;
    let seconds_since = |running: &Running| now_ms.saturating_sub(running.since_ms) / 1000;
    let of = |is_ok: bool| if is_ok { "ok" } else { "err" };
    let (saving, rewriting) = (status.saving.as_ref(), status.rewriting.as_ref());
    let in_background = saving.filter(|running| running.is_background);
    let (done, all) =
        in_background.or(rewriting).map_or((0, 0), |running| (running.progress.written().keys, running.keys));
    let loading = &report.shared.persistence.loading;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let is_loading = report.shared.persistence.gate.is_loading();
    line!(report, "loading:{}", u8::from(is_loading));
    line!(report, "async_loading:0");
    for name in ["current_cow_peak", "current_cow_size", "current_cow_size_age"] {
        line!(report, "{name}:0");
    }
    line!(report, "current_fork_perc:{:.2}", ratio(done * 100, all).min(100.0));
    line!(report, "current_save_keys_processed:{done}");
    line!(report, "current_save_keys_total:{all}");
    line!(report, "rdb_changes_since_last_save:{changes}");
    line!(report, "rdb_bgsave_in_progress:{}", u8::from(in_background.is_some()));
    line!(report, "rdb_last_save_time:{}", status.saved_ms / 1000);
    line!(report, "rdb_last_bgsave_status:{}", of(status.is_save_ok));
    line!(report, "rdb_last_bgsave_time_sec:{}", seconds_or_none(status.save_took));
    let current = in_background.map_or(-1, |running| seconds_since(running) as i64);
    line!(report, "rdb_current_bgsave_time_sec:{current}");
    line!(report, "rdb_saves:{}", status.saves);
    line!(report, "rdb_last_cow_size:0");
    line!(report, "rdb_last_load_keys_expired:{}", count(&loading.keys_expired));
    line!(report, "rdb_last_load_keys_loaded:{}", count(&loading.keys));
    let log = report.shared.persistence.log.status();
    line!(report, "aof_enabled:{}", u8::from(report.config.persistence.appendonly));
    line!(report, "aof_rewrite_in_progress:{}", u8::from(rewriting.is_some()));
    line!(report, "aof_rewrite_scheduled:{}", u8::from(status.is_rewrite_scheduled));
    line!(report, "aof_last_rewrite_time_sec:{}", seconds_or_none(status.rewrite_took));
    let current = rewriting.map_or(-1, |running| seconds_since(running) as i64);
    line!(report, "aof_current_rewrite_time_sec:{current}");
    line!(report, "aof_last_bgrewrite_status:{}", of(status.is_rewrite_ok));
    line!(report, "aof_rewrites:{}", status.rewrites);
    line!(report, "aof_rewrites_consecutive_failures:{}", status.rewrite_failures);
    line!(report, "aof_last_write_status:{}", of(log.last_write.is_ok()));
    line!(report, "aof_last_cow_size:0");
    line!(report, "module_fork_in_progress:0");
    line!(report, "module_fork_last_cow_size:0");
    if log.is_on {
        line!(report, "aof_current_size:{}", log.bytes);
        line!(report, "aof_base_size:{}", status.rewrite_base_bytes);
        line!(report, "aof_pending_rewrite:0");
        line!(report, "aof_buffer_length:{}", log.pending_bytes);
        line!(report, "aof_pending_bio_fsync:{}", u8::from(log.is_sync_running));
        line!(report, "aof_delayed_fsync:{}", log.delayed_fsyncs);
    }
    if is_loading {
        let (percent, eta_s) = loading.progress(report.now_ms);
        line!(report, "loading_start_time:{}", count(&loading.started_ms) / 1000);
        line!(report, "loading_total_bytes:{}", count(&loading.total_bytes));
        line!(report, "loading_rdb_used_mem:{}", count(&loading.used_memory_bytes));
        line!(report, "loading_loaded_bytes:{}", count(&loading.loaded_bytes));
        line!(report, "loading_loaded_perc:{percent:.2}");
        line!(report, "loading_eta_seconds:{eta_s}");
    }
}

/// Whole seconds, as Redis has them: -1 for what has not happened.
fn seconds_or_none(took: Option<Duration>) -> i64 {
    took.map_or(-1, |took| took.as_secs() as i64)
}
