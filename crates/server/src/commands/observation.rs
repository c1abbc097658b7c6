//! `SLOWLOG` and `LATENCY`: what took long.

use super::config::help;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::latency::Series;
use std::fmt::Write as _;
use towline_spec::Command;
use towline_store::number::parse_i64;

/// Entries that `SLOWLOG GET` returns when it is not told how many.
const SLOWLOG_COUNT: usize = 10;

/// `SLOWLOG GET [count]`: -1 is all.
fn slowlog_get(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let count = match args.at(2) {
        None => SLOWLOG_COUNT,
        Some(_) if args.len() > 3 => {
            let before = "ERR unknown subcommand or wrong number of arguments for '";
            return Err(CommandError::quoting(before, args.get(1), "'. Try SLOWLOG HELP."));
        }
        Some(text) => match parse_i64(text) {
            Some(-1) => usize::MAX,
            Some(count @ 0..) => count as usize,
            _ => return Err(CommandError::Text("ERR count should be greater than or equal to -1")),
        },
    };
    let entries = ctx.server.slowlog.newest(count);
    ctx.out.array(entries.len());
    for entry in entries {
        ctx.out.array(6);
        ctx.out.int(entry.id as i64);
        ctx.out.int(entry.at_s as i64);
        ctx.out.int(entry.micros as i64);
        ctx.out.array(entry.args.len());
        entry.args.iter().for_each(|arg| ctx.out.bulk(arg));
        ctx.out.bulk(entry.peer.as_bytes());
        ctx.out.bulk(&entry.name);
    }
    Ok(())
}

fn slowlog_len(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.out.int(ctx.server.slowlog.len() as i64);
    Ok(())
}

fn slowlog_reset(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.server.slowlog.clear();
    ctx.out.ok();
    Ok(())
}

fn slowlog_help(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    help(
        ctx,
        "SLOWLOG",
        &[
            "GET [<count>]",
            "    Show the newest entries (10 by default, -1 is all): id, unix time, microseconds,",
            "    arguments, the client's address and name.",
            "LEN",
            "    Count the entries.",
            "RESET",
            "    Forget all entries.",
        ],
    )
}

fn latency_latest(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let events = ctx.server.latency.all();
    ctx.out.array(events.len());
    for (name, series) in events {
        let last = series.spikes.back().copied();
        ctx.out.array(4);
        ctx.out.bulk(name.as_bytes());
        ctx.out.int(last.map_or(0, |spike| spike.at_s as i64));
        ctx.out.int(last.map_or(0, |spike| spike.ms as i64));
        ctx.out.int(series.max_ms as i64);
    }
    Ok(())
}

fn latency_history(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let spikes = ctx.server.latency.series(args.get(2)).unwrap_or_default().spikes;
    ctx.out.array(spikes.len());
    for spike in spikes {
        ctx.out.array(2);
        ctx.out.int(spike.at_s as i64);
        ctx.out.int(spike.ms as i64);
    }
    Ok(())
}

/// `LATENCY RESET [event …]`
fn latency_reset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let names = args.from(2);
    let forgotten = ctx
        .server
        .latency
        .forget(|name| names.len() == 0 || names.iter().any(|given| given == name.as_bytes()));
    ctx.out.int(forgotten as i64);
    Ok(())
}

/// Rows and columns of `LATENCY GRAPH`.
const GRAPH_ROWS: u64 = 4;
const GRAPH_COLUMNS: usize = 80;

fn latency_graph(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Some(series) = ctx.server.latency.series(args.get(2)).filter(|series| !series.spikes.is_empty())
    else {
        return Err(CommandError::quoting("ERR No samples available for event '", args.get(2), "'"));
    };
    let name = String::from_utf8_lossy(args.get(2));
    let now_s = ctx.ks.now_ms() / 1000;
    ctx.out.verbatim(b"txt", &graph(&name, &series, now_s));
    Ok(())
}

/// One column for each spike, its height relative to the others, its age below.
fn graph(name: &str, series: &Series, now_s: u64) -> String {
    let shown: Vec<_> =
        series.spikes.iter().skip(series.spikes.len().saturating_sub(GRAPH_COLUMNS)).collect();
    let high = shown.iter().map(|spike| spike.ms).max().unwrap_or(0);
    let low = shown.iter().map(|spike| spike.ms).min().unwrap_or(0);
    let mut text = format!("{name} - high {high} ms, low {low} ms (all time high {} ms)\n", series.max_ms);
    text.push_str(&"-".repeat(GRAPH_COLUMNS));
    text.push('\n');
    let level =
        |ms: u64| ((ms - low) * GRAPH_ROWS).checked_div((high - low).max(1)).unwrap_or(0).min(GRAPH_ROWS - 1);
    for row in (0..GRAPH_ROWS).rev() {
        for spike in &shown {
            text.push(match level(spike.ms) {
                top if top == row => '_',
                top if top > row => '|',
                _ => ' ',
            });
        }
        text.push('\n');
    }
    let ages: Vec<String> = shown.iter().map(|spike| age(now_s.saturating_sub(spike.at_s))).collect();
    let longest = ages.iter().map(String::len).max().unwrap_or(0);
    for row in 0..longest {
        text.push('\n');
        text.extend(ages.iter().map(|age| age.as_bytes().get(row).map_or(' ', |&byte| char::from(byte))));
    }
    text
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn latency_doctor(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    let threshold_ms = ctx.server.config().latency_monitor_threshold;
    let events = ctx.server.latency.all();
    let mut text = String::new();
    if threshold_ms == 0 && events.is_empty() {
        text.push_str(
            "Nothing is measured: set latency-monitor-threshold to the milliseconds from which on an event is a \
             spike, e.g. with CONFIG SET latency-monitor-threshold 100.\n",
        );
    } else if events.is_empty() {
        let _ = writeln!(text, "No spike of {threshold_ms} ms or more since the last reset.");
    }
    for (name, series) in &events {
        let count = series.spikes.len() as u64;
        let average = series.spikes.iter().map(|spike| spike.ms).sum::<u64>() / count.max(1);
        let span_s = match (series.spikes.front(), series.spikes.back()) {
            (Some(first), Some(last)) => last.at_s - first.at_s,
            _ => 0,
        };
        let _ = writeln!(
            text,
            "{name}: {count} spikes within {span_s} s, {average} ms on average, {} ms at most.",
            series.max_ms
        );
        let advice = match *name {
            "command" | "fast-command" => {
                "See SLOWLOG GET for the commands, and CONFIG GET slowlog-log-slower-than."
            }
            "eviction-cycle" => {
                "Many keys, or large ones, are evicted at once: raise maxmemory or write less."
            }
            _ => "Check that the machine has a processor for each worker and does not swap.",
        };
        let _ = writeln!(text, "  {advice}");
    }
    ctx.out.verbatim(b"txt", &text);
    Ok(())
}

/// `LATENCY HISTOGRAM [command …]`: a container stands for its subcommands; without names, all that were called.
fn latency_histogram(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut commands: Vec<&'static Command> = Vec::new();
    if args.len() == 2 {
        commands.extend(towline_spec::rows());
    }
    for name in args.from(2).iter() {
        let Some(command) = towline_spec::lookup_full(name) else { continue };
        commands.push(command);
        commands.extend(command.subcommands());
    }
    let histograms: Vec<_> = commands
        .into_iter()
        .filter_map(|command| Some((command, ctx.server.stats.histogram(command)?)))
        .collect();
    ctx.out.map(histograms.len());
    for (command, histogram) in histograms {
        ctx.out.bulk(command.name.as_bytes());
        ctx.out.map(2);
        ctx.out.bulk(b"calls");
        ctx.out.int(histogram.count() as i64);
        ctx.out.bulk(b"histogram_usec");
        let steps = histogram.cumulative_micros();
        ctx.out.map(steps.len());
        for (micros, calls) in steps {
            ctx.out.int(micros as i64);
            ctx.out.int(calls as i64);
        }
    }
    Ok(())
}

fn latency_help(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    help(
        ctx,
        "LATENCY",
        &[
            "DOCTOR",
            "    Sum up the spikes of each event in words.",
            "GRAPH <event>",
            "    Draw the spikes of an event.",
            "HISTOGRAM [<command> ...]",
            "    Show how many calls of a command took how many microseconds at most.",
            "HISTORY <event>",
            "    List the spikes of an event: unix time, milliseconds.",
            "LATEST",
            "    List each event: its last spike's unix time and milliseconds, its longest in milliseconds.",
            "RESET [<event> ...]",
            "    Forget the spikes of the events, or all.",
        ],
    )
}

pub(super) const ROWS: &[Row] = &[
    no_keys("latency|doctor", latency_doctor),
    no_keys("latency|graph", latency_graph),
    no_keys("latency|help", latency_help),
    no_keys("latency|histogram", latency_histogram),
    no_keys("latency|history", latency_history),
    no_keys("latency|latest", latency_latest),
    no_keys("latency|reset", latency_reset),
    no_keys("slowlog|get", slowlog_get),
    no_keys("slowlog|help", slowlog_help),
    no_keys("slowlog|len", slowlog_len),
    no_keys("slowlog|reset", slowlog_reset),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Server;
    use std::time::Duration;

    #[test]
    fn slow_commands_are_shown() {
        let mut server = Server::new();
        server.line("CONFIG SET slowlog-log-slower-than 0");
        server.line("PING hello");
        let log = server.line("SLOWLOG GET 1");
        assert!(log.starts_with("*1 *6 :0 :1700000000 :"), "{log}");
        assert!(log.contains("*2 $4 PING $5 hello $0"), "{log}");
        assert_eq!(server.line("SLOWLOG LEN"), ":2");
        assert!(server.line("SLOWLOG GET -1").starts_with("*3 "));
        server.line("CONFIG SET slowlog-max-len 1");
        server.line("PING");
        assert_eq!(server.line("SLOWLOG LEN"), ":1");
        assert_eq!(server.line("SLOWLOG RESET"), "+OK");
        assert_eq!(server.line("SLOWLOG GET -2"), "-ERR count should be greater than or equal to -1");
        assert_eq!(server.line("SLOWLOG GET x"), "-ERR count should be greater than or equal to -1");
        assert_eq!(
            server.line("SLOWLOG gEt 1 2"),
            "-ERR unknown subcommand or wrong number of arguments for 'gEt'. Try SLOWLOG HELP."
        );
        assert!(server.line("SLOWLOG HELP").starts_with("*10 +SLOWLOG"));
    }

    #[test]
    fn spikes_are_shown_and_reset() {
        let mut server = Server::new();
        assert!(server.line("LATENCY DOCTOR").contains("latency-monitor-threshold"));
        server.line("CONFIG SET latency-monitor-threshold 10");
        let config = server.local.shared.config();
        for (event, ms) in [("command", 30), ("eviction-cycle", 20)] {
            server.local.shared.latency.offer(&config, event, Duration::from_millis(ms), server.now_ms);
        }
        assert_eq!(
            server.line("LATENCY LATEST"),
            "*2 *4 $7 command :1700000000 :30 :30 *4 $14 eviction-cycle :1700000000 :20 :20"
        );
        assert_eq!(server.line("LATENCY HISTORY command"), "*1 *2 :1700000000 :30");
        assert_eq!(server.line("LATENCY HISTORY none"), "*0");
        assert!(
            server
                .line("LATENCY GRAPH command")
                .contains("command - high 30 ms, low 30 ms (all time high 30 ms)")
        );
        assert_eq!(server.line("LATENCY GRAPH x"), "-ERR No samples available for event 'x'");
        assert!(
            server
                .line("LATENCY DOCTOR")
                .contains("command: 1 spikes within 0 s, 30 ms on average, 30 ms at most.")
        );
        assert_eq!(server.line("LATENCY RESET none command"), ":1");
        assert_eq!(server.line("LATENCY RESET"), ":1");
        assert!(server.line("LATENCY HELP").starts_with("*15 +LATENCY"));
    }

    #[test]
    fn graphs_show_heights_and_ages() {
        let series = Series {
            spikes: [(1, 10), (50, 20), (100, 50)]
                .map(|(at_s, ms)| crate::latency::Spike { at_s, ms })
                .into(),
            max_ms: 50,
        };
        let text = graph("x", &series, 161);
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            ["  _", "  |", " _|", "_||", "", "211", "mmm"].map(|line| line).to_vec().as_slice()
        );
    }

    #[test]
    fn histograms_count_calls() {
        let mut server = Server::new();
        server.line("PING");
        server.line("PING");
        let histogram = server.line("LATENCY HISTOGRAM ping get nope");
        assert!(histogram.starts_with("*2 $4 ping *4 $5 calls :2 $14 histogram_usec *"), "{histogram}");
        assert!(server.line("LATENCY HISTOGRAM latency").contains("latency|histogram"));
        assert!(server.line("LATENCY HISTOGRAM").contains("$4 ping"));
        assert!(Server::new().resp3().line("LATENCY HISTOGRAM").starts_with("%0"));
    }
}
