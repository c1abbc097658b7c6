//! `INFO`: the server's state as text that tools parse.

use crate::command::{Args, CommandResult, Ctx, Row, no_keys};
use crate::config::Config;
use crate::memory::{self, AllocatorStats};
use crate::process;
use crate::pubsub::Topic;
use crate::replicas::Phase;
use crate::shared::Shared;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use towline_store::store::DB_COUNT;

/// The version of Redis whose commands and replies this server has; clients choose features by it.
pub(crate) const REDIS_VERSION: &str = "7.2.4";
/// The version of this software.
pub(crate) const TOWLINE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a section is rendered from.
struct Report<'a> {
    shared: &'a Shared,
    config: &'a Config,
    now_ms: u64,
    text: String,
}

type Section = (&'static str, &'static str, fn(&mut Report<'_>), Shown);

/// When a section is shown without being named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    ByDefault,
    ByAll,
}

/// In the order in which they are shown.
const SECTIONS: &[Section] = &[
    ("server", "Server", server, Shown::ByDefault),
    ("clients", "Clients", clients, Shown::ByDefault),
    ("memory", "Memory", memory, Shown::ByDefault),
    ("persistence", "Persistence", persistence::render, Shown::ByDefault),
    ("stats", "Stats", stats, Shown::ByDefault),
    ("maintenance", "Maintenance", maintenance, Shown::ByDefault),
    ("replication", "Replication", replication, Shown::ByDefault),
    ("cpu", "CPU", cpu, Shown::ByDefault),
    ("modules", "Modules", |_| (), Shown::ByDefault),
    ("commandstats", "Commandstats", command_stats, Shown::ByAll),
    ("errorstats", "Errorstats", error_stats, Shown::ByDefault),
    ("latencystats", "Latencystats", latency_stats, Shown::ByAll),
    ("cluster", "Cluster", cluster, Shown::ByDefault),
    ("keyspace", "Keyspace", keyspace, Shown::ByDefault),
];

/// Writes one `name:value` line.
macro_rules! line {
    ($report:expr, $($format:tt)*) => {{
        // Writing to a string cannot fail.
        let _ = write!($report.text, $($format)*);
        $report.text.push_str("\r\n");
    }};
}

// Behind the macro that it uses.
mod persistence;

/// The sections that are asked for, as one text.
pub(crate) fn render<'a>(
    shared: &Shared,
    sections: impl Iterator<Item = &'a [u8]> + Clone,
    now_ms: u64,
) -> String {
    let config = shared.config();
    let mut report = Report { shared, config: &config, now_ms, text: String::new() };
    let is_named = |name: &str| sections.clone().any(|section| section.eq_ignore_ascii_case(name.as_bytes()));
    let (all, default) =
        (is_named("all") || is_named("everything"), is_named("default") || sections.clone().next().is_none());
    for &(name, title, render, shown) in SECTIONS {
        if all || is_named(name) || (default && shown == Shown::ByDefault) {
            if !report.text.is_empty() {
                report.text.push_str("\r\n");
            }
            line!(report, "# {title}");
            render(&mut report);
        }
    }
    report.text
}

fn server(report: &mut Report<'_>) {
    let (shared, config) = (report.shared, report.config);
    let uptime_s = report.now_ms.saturating_sub(shared.started_ms) / 1000;
    line!(report, "redis_version:{REDIS_VERSION}");
    line!(report, "towline_version:{TOWLINE_VERSION}");
    line!(report, "redis_git_sha1:00000000");
    line!(report, "redis_git_dirty:0");
    line!(report, "redis_build_id:0");
    line!(report, "redis_mode:{}", if shared.cluster.is_some() { "cluster" } else { "standalone" });
    line!(report, "os:{}", process::system());
    line!(report, "arch_bits:{}", usize::BITS);
    line!(report, "monotonic_clock:POSIX clock_gettime");
    line!(report, "multiplexing_api:epoll");
    line!(report, "process_id:{}", process::id());
    line!(report, "process_supervised:no");
    line!(report, "run_id:{}", shared.run_id);
    line!(report, "tcp_port:{}", config.port);
    line!(report, "server_time_usec:{}", report.now_ms * 1000);
    line!(report, "uptime_in_seconds:{uptime_s}");
    line!(report, "uptime_in_days:{}", uptime_s / 86_400);
    line!(report, "hz:{}", config.hz);
    line!(report, "configured_hz:{}", config.hz);
    line!(report, "lru_clock:{}", (report.now_ms / 1000) & 0xff_ffff);
    line!(report, "executable:{}", process::executable());
    let file = config.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    line!(report, "config_file:{file}");
    line!(report, "workers:{}", config.workers);
    line!(report, "io_threads_active:0");
}

/// Bytes that all clients' buffers hold, and the largest input and output buffer.
fn client_buffers(shared: &Shared) -> (u64, u64, u64) {
    shared.clients.all().iter().fold((0, 0, 0), |(sum, largest_in, largest_out), client| {
        let input = client.query_bytes.load(Ordering::Relaxed) as u64;
        let output = (client.reply_bytes.load(Ordering::Relaxed) + client.outbox_bytes()) as u64;
        (sum + input + output, largest_in.max(input), largest_out.max(output))
    })
}

fn clients(report: &mut Report<'_>) {
    use crate::client::flag;
    let shared = report.shared;
    let (_, largest_in, largest_out) = client_buffers(shared);
    let with_flag = |bit| shared.clients.all().iter().filter(|client| client.has_flag(bit)).count();
    let watching =
        shared.clients.all().iter().filter(|client| client.watched.load(Ordering::Relaxed) > 0).count();
    line!(report, "connected_clients:{}", shared.clients.len());
    let links =
        shared.cluster.as_deref().and_then(|cluster| cluster.log()).map_or(0, |log| log.links().len());
    line!(report, "cluster_connections:{links}");
    line!(report, "maxclients:{}", report.config.maxclients);
    line!(report, "client_recent_max_input_buffer:{largest_in}");
    line!(report, "client_recent_max_output_buffer:{largest_out}");
    line!(report, "blocked_clients:{}", shared.blocked.len());
    line!(report, "tracking_clients:{}", with_flag(flag::TRACKING));
    line!(report, "pubsub_clients:{}", with_flag(flag::PUBSUB));
    line!(report, "watching_clients:{watching}");
    line!(report, "clients_in_timeout_table:0");
    line!(report, "total_blocking_keys:{}", shared.blocked.key_count());
    line!(report, "total_blocking_keys_on_nokey:0");
}

/// A number of bytes for people.
pub(super) fn human(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    match UNITS.iter().find(|(_, shift)| bytes >= 1 << shift) {
        Some(&(unit, shift)) => format!("{:.2}{unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes}B"),
    }
}

/// `a / b`, and 0 when there is nothing to divide by.
pub(super) fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// Where memory goes, as `INFO` and `MEMORY STATS` show it.
pub(super) struct Usage {
    pub(super) used: u64,
    pub(super) peak: u64,
    pub(super) rss: u64,
    pub(super) startup: u64,
    pub(super) clients: u64,
    /// All that is not keys and values.
    pub(super) overhead: u64,
    pub(super) dataset: u64,
    pub(super) allocator: AllocatorStats,
}

/// Where memory goes now.
pub(super) fn usage(shared: &Shared, now_ms: u64) -> Usage {
    let (used, rss) = (shared.memory.used_bytes(&shared.store, None, now_ms), process::rss_bytes());
    let (clients, ..) = client_buffers(shared);
    let startup = shared.memory.startup_bytes();
    let overhead = startup + clients;
    let dataset = used.saturating_sub(overhead);
    let (peak, allocator) = (shared.memory.peak_bytes(), memory::allocator_stats());
    Usage { used, peak, rss, startup, clients, overhead, dataset, allocator }
}

impl Usage {
    /// The share of the data in what was used since the start.
    pub(super) fn dataset_percent(&self) -> f64 {
        ratio(self.dataset, self.used.saturating_sub(self.startup)).min(1.0) * 100.0
    }
}

fn memory(report: &mut Report<'_>) {
    let (config, usage) = (report.config, usage(report.shared, report.now_ms));
    let total = process::machine_memory_bytes();
    let (lazily_freed, lazily_pending) = report.shared.memory.leaving.counts();
    let allocator = usage.allocator;
    line!(report, "used_memory:{}", usage.used);
    line!(report, "used_memory_human:{}", human(usage.used));
    line!(report, "used_memory_rss:{}", usage.rss);
    line!(report, "used_memory_rss_human:{}", human(usage.rss));
    line!(report, "used_memory_peak:{}", usage.peak);
    line!(report, "used_memory_peak_human:{}", human(usage.peak));
    line!(report, "used_memory_peak_perc:{:.2}%", ratio(usage.used, usage.peak) * 100.0);
    line!(report, "used_memory_overhead:{}", usage.overhead);
    line!(report, "used_memory_startup:{}", usage.startup);
    line!(report, "used_memory_dataset:{}", usage.dataset);
    line!(report, "used_memory_dataset_perc:{:.2}%", usage.dataset_percent());
    line!(report, "allocator_allocated:{}", allocator.allocated);
    line!(report, "allocator_active:{}", allocator.active);
    line!(report, "allocator_resident:{}", allocator.resident);
    line!(report, "total_system_memory:{total}");
    line!(report, "total_system_memory_human:{}", human(total));
    for name in ["lua", "vm_eval", "scripts_eval", "vm_functions", "vm_total", "functions", "scripts"] {
        line!(report, "used_memory_{name}:0");
    }
    line!(report, "used_memory_lua_human:0B");
    line!(report, "used_memory_vm_total_human:0B");
    line!(report, "used_memory_scripts_human:0B");
    for name in ["cached_scripts", "functions", "libraries"] {
        line!(report, "number_of_{name}:0");
    }
    line!(report, "maxmemory:{}", config.maxmemory);
    line!(report, "maxmemory_human:{}", human(config.maxmemory));
    line!(report, "maxmemory_policy:{}", config.maxmemory_policy.name());
    line!(report, "allocator_frag_ratio:{:.2}", ratio(allocator.active, allocator.allocated));
    line!(report, "allocator_frag_bytes:{}", allocator.active.saturating_sub(allocator.allocated));
    line!(report, "allocator_rss_ratio:{:.2}", ratio(allocator.resident, allocator.active));
    line!(report, "allocator_rss_bytes:{}", allocator.resident as i64 - allocator.active as i64);
    line!(report, "rss_overhead_ratio:{:.2}", ratio(usage.rss, allocator.resident));
    line!(report, "rss_overhead_bytes:{}", usage.rss as i64 - allocator.resident as i64);
    line!(report, "mem_fragmentation_ratio:{:.2}", ratio(usage.rss, usage.used));
    line!(report, "mem_fragmentation_bytes:{}", usage.rss as i64 - usage.used as i64);
    line!(report, "mem_not_counted_for_evict:0");
    line!(report, "mem_replication_backlog:0");
    line!(report, "mem_total_replication_buffers:0");
    line!(report, "mem_clients_slaves:0");
    line!(report, "mem_clients_normal:{}", usage.clients);
    line!(report, "mem_cluster_links:0");
    line!(report, "mem_aof_buffer:0");
    line!(report, "mem_allocator:{}", ALLOCATOR);
    line!(report, "active_defrag_running:0");
    line!(report, "lazyfree_pending_objects:{lazily_pending}");
    line!(report, "lazyfreed_objects:{lazily_freed}");
}

/// The allocator of the program, by name and version.
const ALLOCATOR: &str = "jemalloc-5.3.1";

fn stats(report: &mut Report<'_>) {
    let (shared, stats) = (report.shared, &report.shared.stats);
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let [ops, bytes_in, bytes_out] = stats.rates();
    let kilobytes = |bytes: u64| bytes as f64 / 1024.0;
    let (over_total, over_current) = shared.memory.over_limit_ms(report.now_ms);
    line!(report, "total_connections_received:{}", load(&stats.connections));
    line!(report, "total_commands_processed:{}", stats.sum(|worker| &worker.executed));
    line!(report, "instantaneous_ops_per_sec:{ops}");
    line!(report, "total_net_input_bytes:{}", stats.sum(|worker| &worker.bytes_in));
    line!(report, "total_net_output_bytes:{}", stats.sum(|worker| &worker.bytes_out));
    line!(report, "total_net_repl_input_bytes:0");
    line!(report, "total_net_repl_output_bytes:0");
    line!(report, "instantaneous_input_kbps:{:.2}", kilobytes(bytes_in));
    line!(report, "instantaneous_output_kbps:{:.2}", kilobytes(bytes_out));
    line!(report, "instantaneous_input_repl_kbps:0.00");
    line!(report, "instantaneous_output_repl_kbps:0.00");
    line!(report, "rejected_connections:{}", load(&stats.connections_rejected));
    line!(report, "sync_full:0");
    line!(report, "sync_partial_ok:0");
    line!(report, "sync_partial_err:0");
    line!(report, "expired_subkeys:{}", stats.sum(|worker| &worker.expired_fields));
    line!(report, "expired_keys:{}", stats.sum(|worker| &worker.expired));
    line!(report, "expired_stale_perc:0.00");
    line!(report, "expired_time_cap_reached_count:0");
    line!(report, "expire_cycle_cpu_milliseconds:0");
    line!(report, "evicted_keys:{}", stats.sum(|worker| &worker.evicted));
    line!(report, "evicted_clients:{}", load(&stats.clients_evicted));
    line!(report, "evicted_scripts:0");
    line!(report, "total_eviction_exceeded_time:{over_total}");
    line!(report, "current_eviction_exceeded_time:{over_current}");
    line!(report, "keyspace_hits:{}", stats.sum(|worker| &worker.hits));
    line!(report, "keyspace_misses:{}", stats.sum(|worker| &worker.misses));
    gauges(report);
    let errors: u64 = stats.errors().values().sum();
    line!(report, "unexpected_error_replies:0");
    line!(report, "total_error_replies:{errors}");
    line!(report, "dump_payload_sanitizations:0");
    line!(report, "total_reads_processed:{}", stats.sum(|worker| &worker.reads));
    line!(report, "total_writes_processed:{}", stats.sum(|worker| &worker.writes));
    line!(report, "io_threaded_reads_processed:0");
    line!(report, "io_threaded_writes_processed:0");
    line!(report, "reply_buffer_shrinks:0");
    line!(report, "reply_buffer_expands:0");
    line!(report, "client_query_buffer_limit_disconnections:{}", load(&stats.query_limit_disconnects));
    line!(report, "client_output_buffer_limit_disconnections:{}", load(&stats.output_limit_disconnects));
}

/// What is there now, as opposed to what happened.
fn gauges(report: &mut Report<'_>) {
    let pubsub = &report.shared.pubsub;
    line!(report, "pubsub_channels:{}", pubsub.channel_count(Topic::Channel));
    line!(report, "pubsub_patterns:{}", pubsub.pattern_count());
    line!(report, "pubsubshard_channels:{}", pubsub.channel_count(Topic::ShardChannel));
    let (tracked_keys, tracked_items) = report.shared.store.tracked();
    line!(report, "tracking_total_keys:{tracked_keys}");
    line!(report, "tracking_total_items:{tracked_items}");
    line!(report, "tracking_total_prefixes:{}", report.shared.tracking.prefix_count());
    line!(report, "latest_fork_usec:0");
    line!(report, "total_forks:0");
    let idle_sockets = report.shared.moves.idle_sockets.load(Ordering::Relaxed);
    line!(report, "migrate_cached_sockets:{idle_sockets}");
    line!(report, "slave_expires_tracked_keys:0");
    for name in ["auth", "cmd", "key", "channel"] {
        let denied =
            if name == "auth" { report.shared.stats.auth_failures.load(Ordering::Relaxed) } else { 0 };
        line!(report, "acl_access_denied_{name}:{denied}");
    }
    for name in ["hits", "misses", "key_hits", "key_misses"] {
        line!(report, "active_defrag_{name}:0");
    }
    line!(report, "total_active_defrag_time:0");
    line!(report, "current_active_defrag_time:0");
}

/// Notices of planned moves, and drains.
fn maintenance(report: &mut Report<'_>) {
    let counts = report.shared.maintenance.counts(std::time::Instant::now());
    line!(report, "maint_notifications_enabled:{}", u8::from(report.config.maint_notifications));
    line!(report, "maint_notifications_clients:{}", counts.clients);
    line!(report, "maint_notifications_sent:{}", counts.sent);
    line!(report, "maint_notifications_replayed:{}", counts.replayed);
    line!(report, "maint_notices_open:{}", counts.open);
    line!(report, "drains_active:{}", counts.drains);
    line!(report, "drains_finished:{}", counts.finished);
    line!(report, "drained_connections_left:{}", counts.left);
    line!(report, "drained_connections_closed:{}", counts.closed);
}

fn replication(report: &mut Report<'_>) {
    let shared = report.shared;
    line!(report, "role:master");
    let feeds = shared.replicas.all();
    line!(report, "connected_slaves:{}", feeds.len());
    for (index, feed) in feeds.iter().enumerate() {
        let ((ip, port), (_, offset)) = (feed.address(), feed.offsets());
        let state = if feed.phase() == Phase::Tail { "online" } else { "send_bulk" };
        let lag_s = report.now_ms.saturating_sub(feed.acknowledged_ms()) / 1000;
        line!(report, "slave{index}:ip={ip},port={port},state={state},offset={offset},lag={lag_s}");
    }
    line!(report, "master_failover_state:no-failover");
    line!(report, "master_replid:{}", shared.replication_id());
    line!(report, "master_replid2:{}", "0".repeat(40));
    line!(report, "master_repl_offset:0");
    line!(report, "second_repl_offset:-1");
    line!(report, "repl_backlog_active:0");
    line!(report, "repl_backlog_size:1048576");
    line!(report, "repl_backlog_first_byte_offset:0");
    line!(report, "repl_backlog_histlen:0");
}

fn cpu(report: &mut Report<'_>) {
    let (all, children, thread) = (process::cpu(), process::children_cpu(), process::thread_cpu());
    line!(report, "used_cpu_sys:{:.6}", all.system);
    line!(report, "used_cpu_user:{:.6}", all.user);
    line!(report, "used_cpu_sys_children:{:.6}", children.system);
    line!(report, "used_cpu_user_children:{:.6}", children.user);
    line!(report, "used_cpu_sys_main_thread:{:.6}", thread.system);
    line!(report, "used_cpu_user_main_thread:{:.6}", thread.user);
}

fn command_stats(report: &mut Report<'_>) {
    for command in towline_spec::rows() {
        let totals = report.shared.stats.command(command);
        if totals.calls == 0 && totals.rejected == 0 && totals.failed == 0 {
            continue;
        }
        let micros = totals.nanos as f64 / 1000.0;
        line!(
            report,
            "cmdstat_{}:calls={},usec={},usec_per_call={:.2},rejected_calls={},failed_calls={}",
            command.name,
            totals.calls,
            micros as u64,
            if totals.calls == 0 { 0.0 } else { micros / totals.calls as f64 },
            totals.rejected,
            totals.failed
        );
    }
}

fn error_stats(report: &mut Report<'_>) {
    for (code, count) in report.shared.stats.errors() {
        line!(report, "errorstat_{code}:count={count}");
    }
}

fn latency_stats(report: &mut Report<'_>) {
    if !report.config.latency_tracking {
        return;
    }
    for command in towline_spec::rows() {
        let Some(histogram) = report.shared.stats.histogram(command) else { continue };
        let percentiles =
            report.config.latency_tracking_info_percentiles.iter().map(|&percent| {
                format!("p{percent}={:.3}", histogram.percentile_nanos(percent) as f64 / 1000.0)
            });
        let percentiles: Vec<_> = percentiles.collect();
        line!(report, "latency_percentiles_usec_{}:{}", command.name, percentiles.join(","));
    }
}

fn cluster(report: &mut Report<'_>) {
    line!(report, "cluster_enabled:{}", u8::from(report.shared.cluster.is_some()));
}

fn keyspace(report: &mut Report<'_>) {
    for db in 0..DB_COUNT {
        let store = &report.shared.store;
        if !store.is_empty(db) {
            line!(
                report,
                "db{db}:keys={},expires={},avg_ttl={},subexpiry={}",
                store.len(db),
                store.expires(db),
                store.average_ttl_ms(db, report.now_ms),
                store.expiring_hashes(db)
            );
        }
    }
}

/// `INFO [section …]`
fn info(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.server.stats.worker(ctx.worker).absorb(ctx.ks.changes());
    let text = render(ctx.server, args.from(1).iter(), ctx.ks.now_ms());
    ctx.out.verbatim(b"txt", &text);
    Ok(())
}

pub(super) const ROWS: &[Row] = &[no_keys("info", info)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Server;

    fn titles(server: &mut Server, line: &str) -> Vec<String> {
        let bytes = server.run_bytes(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        let text = String::from_utf8(bytes).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect()
    }

    #[test]
    fn sections_are_chosen_by_name() {
        let mut server = Server::new();
        let default = titles(&mut server, "INFO");
        assert_eq!(
            default.join(" "),
            "Server Clients Memory Persistence Stats Maintenance Replication CPU Modules Errorstats Cluster Keyspace"
        );
        assert_eq!(titles(&mut server, "INFO default"), default);
        assert_eq!(titles(&mut server, "INFO everything").len(), SECTIONS.len());
        assert_eq!(titles(&mut server, "info all").len(), SECTIONS.len());
        assert_eq!(titles(&mut server, "INFO keyspace CPU nothing"), ["CPU", "Keyspace"]);
        assert_eq!(server.line("INFO nothing"), "$0");
        assert!(
            Server::new().resp3().line("INFO cluster").starts_with("=34 txt:# Cluster cluster_enabled:0")
        );
    }

    #[test]
    fn every_line_is_a_name_and_a_value() {
        let server = Server::new();
        let text = render(&server.local.shared, ["all".as_bytes()].into_iter(), server.now_ms);
        let mut names = std::collections::BTreeSet::new();
        for line in text.split("\r\n").filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, _) = line.split_once(':').expect(line);
            assert!(names.insert(name.to_owned()), "{name} twice");
        }
        for name in [
            "redis_version",
            "run_id",
            "tcp_port",
            "used_memory",
            "maxmemory",
            "keyspace_hits",
            "role",
            "loading",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn commands_and_errors_are_counted() {
        let mut server = Server::new();
        server.line("PING");
        server.line("PING a b");
        server.line("NOPE");
        server.line("CONFIG SET x y");
        let text = server.line("INFO commandstats errorstats stats latencystats");
        assert!(text.contains("cmdstat_ping:calls=2,usec="), "{text}");
        assert!(
            text.contains("cmdstat_config|set:calls=1,") && text.contains("rejected_calls=0,failed_calls=1"),
            "{text}"
        );
        assert!(text.contains("errorstat_ERR:count=3") && text.contains("total_error_replies:3"), "{text}");
        assert!(text.contains("latency_percentiles_usec_ping:p50="), "{text}");
        server.line("CONFIG RESETSTAT");
        assert!(server.line("INFO commandstats").starts_with("$"));
        assert!(!server.line("INFO commandstats").contains("cmdstat_ping"));
    }

    fn keyspace_line(server: &mut Server) -> String {
        let text = server.line("INFO keyspace");
        text.split(' ').find_map(|line| line.strip_prefix("db0:")).unwrap_or_default().to_owned()
    }

    #[test]
    fn the_keyspace_says_what_expires() {
        let mut server = Server::new();
        server.line("SET a v PX 1000");
        server.line("SET b v PX 3000");
        server.line("SET c v");
        server.line("HSET h f v g v");
        assert_eq!(keyspace_line(&mut server), "keys=4,expires=2,avg_ttl=2000,subexpiry=0");
        server.line("HPEXPIRE h 500 FIELDS 1 f");
        server.line("PEXPIRE b 9000");
        assert_eq!(keyspace_line(&mut server), "keys=4,expires=2,avg_ttl=5000,subexpiry=1");
        server.line("PERSIST a");
        server.line("HPERSIST h FIELDS 1 f");
        server.advance(1000);
        assert_eq!(keyspace_line(&mut server), "keys=4,expires=1,avg_ttl=8000,subexpiry=0");
        server.line("HPEXPIRE h 500 FIELDS 2 f g");
        server.line("RENAME h h2");
        server.line("COPY h2 h3");
        assert_eq!(keyspace_line(&mut server), "keys=5,expires=1,avg_ttl=8000,subexpiry=2");
        server.line("HDEL h3 f g");
        server.line("SET h2 v");
        assert_eq!(keyspace_line(&mut server), "keys=4,expires=1,avg_ttl=8000,subexpiry=0");
        server.line("HSETEX h PX 100 FIELDS 2 f v g v");
        server.advance(200);
        assert_eq!(server.line("EXISTS h"), ":0");
        assert_eq!(keyspace_line(&mut server), "keys=4,expires=1,avg_ttl=7800,subexpiry=0");
        server.line("HSETEX h PX 100 FIELDS 1 f v");
        server.line("SWAPDB 0 1");
        server.line("SET x v PX 100");
        assert_eq!(keyspace_line(&mut server), "keys=1,expires=1,avg_ttl=100,subexpiry=0");
        server.line("SWAPDB 0 1");
        assert_eq!(keyspace_line(&mut server), "keys=5,expires=1,avg_ttl=7800,subexpiry=1");
        server.line("FLUSHDB");
        server.line("SET y v");
        assert_eq!(keyspace_line(&mut server), "keys=1,expires=0,avg_ttl=0,subexpiry=0");
    }

    #[test]
    fn bytes_for_people() {
        for (bytes, text) in
            [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (991_520, "968.28K"), (25_276_518_400, "23.54G")]
        {
            assert_eq!(human(bytes), text);
        }
    }
}
