//! The tables: one for each metric, medians with the lowest and the highest round, and Towline beside the best peer.

use crate::case::{ClientName, Line, Measured, Operation, Runtime};
use crate::statistics::median;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// One row: the runtime, the kind of work, and its size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    runtime: Runtime,
    work: &'static str,
    size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Lower,
    Higher,
}

/// One table.
struct Metric {
    title: &'static str,
    /// What `Row::size` counts.
    size: &'static str,
    digits: usize,
    better: Better,
    figure: fn(&Measured) -> Option<(&'static str, u64, f64)>,
    /// The goal for Towline's ratio to the best peer.
    goal: fn(&Row) -> Option<f64>,
}

fn work(operation: Operation) -> &'static str {
    match operation {
        Operation::Get => "GET",
        Operation::Set => "SET",
    }
}

macro_rules! closed {
    ($field:ident) => {
        |measured| match measured {
            Measured::Closed(closed) => Some((work(closed.operation), closed.tasks as u64, closed.$field)),
            _ => None,
        }
    };
}

macro_rules! figure {
    ($kind:ident, $size:ident, $work:literal, $field:ident) => {
        |measured| match measured {
            Measured::$kind(found) => Some(($work, found.$size as u64, found.$field as f64)),
            _ => None,
        }
    };
}

/// A figure of the flush; none for a client that queued nothing.
macro_rules! flushed {
    ($field:ident) => {
        |measured| match measured {
            Measured::Queued(found) if found.failed < found.commands as u64 => {
                Some(("SET", found.commands as u64, found.$field))
            }
            _ => None,
        }
    };
}

const METRICS: &[Metric] = &[
    Metric {
        title: "Client CPU time, microseconds for one command",
        size: "tasks",
        digits: 2,
        better: Better::Lower,
        figure: closed!(cpu_us),
        goal: |row| match row.size {
            1 => Some(0.90),
            16 => Some(0.75),
            64 | 256 => Some(0.60),
            _ => None,
        },
    },
    Metric {
        title: "Of it in user space",
        size: "tasks",
        digits: 2,
        better: Better::Lower,
        figure: closed!(user_us),
        goal: |_| None,
    },
    Metric {
        title: "Throughput, thousands of commands a second",
        size: "tasks",
        digits: 0,
        better: Better::Higher,
        figure: |measured| match measured {
            Measured::Closed(closed) => {
                Some((work(closed.operation), closed.tasks as u64, closed.per_second / 1e3))
            }
            _ => None,
        },
        goal: |row| match (row.size, row.runtime) {
            (64 | 256, Runtime::Ct) => Some(1.15),
            (64 | 256, Runtime::Mt2) => Some(1.30),
            _ => None,
        },
    },
    Metric {
        title: "Server CPU time, microseconds for one command (how well the client batches)",
        size: "tasks",
        digits: 2,
        better: Better::Lower,
        figure: |measured| match measured {
            Measured::Closed(closed) => {
                Some((work(closed.operation), closed.tasks as u64, closed.server_cpu_us?))
            }
            _ => None,
        },
        goal: |_| None,
    },
    Metric {
        title: "Median latency, microseconds",
        size: "tasks",
        digits: 0,
        better: Better::Lower,
        figure: closed!(p50_us),
        goal: |_| None,
    },
    Metric {
        title: "p99 latency, microseconds",
        size: "tasks",
        digits: 0,
        better: Better::Lower,
        figure: closed!(p99_us),
        goal: |_| None,
    },
    Metric {
        title: "Voluntary context switches of the client for one command",
        size: "tasks",
        digits: 3,
        better: Better::Lower,
        figure: closed!(switches),
        goal: |_| None,
    },
    Metric {
        title: "Failed commands",
        size: "tasks",
        digits: 0,
        better: Better::Lower,
        figure: |measured| match measured {
            Measured::Closed(closed) => {
                Some((work(closed.operation), closed.tasks as u64, closed.failed as f64))
            }
            _ => None,
        },
        goal: |_| None,
    },
    Metric {
        title: "Heap blocks asked for or resized, for one command",
        size: "tasks",
        digits: 2,
        better: Better::Lower,
        figure: |measured| match measured {
            Measured::Allocations(found) => {
                Some((work(found.operation), found.tasks as u64, found.allocations + found.reallocations))
            }
            _ => None,
        },
        goal: |_| None,
    },
    Metric {
        title: "Heap bytes asked for, for one command",
        size: "tasks",
        digits: 0,
        better: Better::Lower,
        figure: |measured| match measured {
            Measured::Allocations(found) => Some((work(found.operation), found.tasks as u64, found.bytes)),
            _ => None,
        },
        goal: |_| None,
    },
    Metric {
        title: "Large replies, MB/s",
        size: "bytes",
        digits: 0,
        better: Better::Higher,
        figure: figure!(Large, value_bytes, "GET", mb_per_second),
        goal: |_| None,
    },
    Metric {
        title: "Large replies, client CPU time for one reply, milliseconds",
        size: "bytes",
        digits: 2,
        better: Better::Lower,
        figure: figure!(Large, value_bytes, "GET", cpu_ms),
        goal: |_| None,
    },
    Metric {
        title: "Small replies before a large one, p99, microseconds",
        size: "bytes",
        digits: 0,
        better: Better::Lower,
        figure: figure!(Large, value_bytes, "GET", small_p99_before_us),
        goal: |_| None,
    },
    Metric {
        title: "Small replies straight after it, p99, microseconds",
        size: "bytes",
        digits: 0,
        better: Better::Lower,
        figure: figure!(Large, value_bytes, "GET", small_p99_after_us),
        goal: |_| None,
    },
    Metric {
        title: "Large replies, heap bytes asked for one byte",
        size: "bytes",
        digits: 2,
        better: Better::Lower,
        figure: figure!(LargeAllocations, value_bytes, "GET", asked),
        goal: |_| None,
    },
    Metric {
        title: "Large replies, most heap bytes live at once for one byte",
        size: "bytes",
        digits: 2,
        better: Better::Lower,
        figure: figure!(LargeAllocations, value_bytes, "GET", peak),
        goal: |_| None,
    },
    Metric {
        title: "Bytes still live after the large reply was dropped and small ones followed",
        size: "bytes",
        digits: 0,
        better: Better::Lower,
        figure: figure!(LargeAllocations, value_bytes, "GET", kept_bytes),
        goal: |_| None,
    },
    Metric {
        title: "Fixed rate, median latency from when the command was due, microseconds",
        size: "commands/s",
        digits: 0,
        better: Better::Lower,
        figure: figure!(Open, commands_per_second, "GET", p50_us),
        goal: |_| None,
    },
    Metric {
        title: "Fixed rate, p99, microseconds",
        size: "commands/s",
        digits: 0,
        better: Better::Lower,
        figure: figure!(Open, commands_per_second, "GET", p99_us),
        goal: |_| Some(1.0),
    },
    Metric {
        title: "Fixed rate, p99.9, microseconds",
        size: "commands/s",
        digits: 0,
        better: Better::Lower,
        figure: figure!(Open, commands_per_second, "GET", p999_us),
        goal: |_| None,
    },
    Metric {
        title: "Fixed rate, CPU time of the process for one command, microseconds (with its task and timer)",
        size: "commands/s",
        digits: 2,
        better: Better::Lower,
        figure: figure!(Open, commands_per_second, "GET", cpu_us),
        goal: |_| None,
    },
    Metric {
        title: "Queued while disconnected: engine bytes for one command above its own bytes and the caller's future",
        size: "commands",
        digits: 0,
        better: Better::Lower,
        figure: |measured| match measured {
            // A client that refused them all keeps nothing, which is not a merit.
            Measured::QueuedMemory(found) if found.failed < found.commands as u64 => {
                Some(("SET", found.commands as u64, found.engine_bytes - found.command_bytes))
            }
            _ => None,
        },
        goal: |_| None,
    },
    Metric {
        title: "Queued while disconnected: bytes of the caller's future",
        size: "commands",
        digits: 0,
        better: Better::Lower,
        figure: figure!(QueuedMemory, commands, "SET", future_bytes),
        goal: |_| None,
    },
    Metric {
        title: "Queued while disconnected: commands that failed",
        size: "commands",
        digits: 0,
        better: Better::Lower,
        figure: figure!(Queued, commands, "SET", failed),
        goal: |_| None,
    },
    Metric {
        title: "From the server's return to the first queued command's answer, milliseconds",
        size: "commands",
        digits: 0,
        better: Better::Lower,
        figure: flushed!(returned_ms),
        goal: |_| None,
    },
    Metric {
        title: "From then until the queue was empty, milliseconds",
        size: "commands",
        digits: 0,
        better: Better::Lower,
        figure: flushed!(flushed_ms),
        goal: |_| None,
    },
    Metric {
        title: "New commands without a queue, p99, microseconds",
        size: "commands",
        digits: 0,
        better: Better::Lower,
        figure: figure!(Queued, commands, "SET", steady_p99_us),
        goal: |_| None,
    },
    Metric {
        title: "New commands while the queue was flushed, p99, microseconds",
        size: "commands",
        digits: 0,
        better: Better::Lower,
        figure: flushed!(during_p99_us),
        goal: |_| None,
    },
];

/// All tables for which there are figures, as Markdown.
pub(crate) fn tables(lines: &[Line]) -> String {
    let clients: BTreeSet<ClientName> = lines.iter().map(|line| line.client).collect();
    let mut text = String::new();
    for metric in METRICS {
        let mut rows: BTreeMap<Row, BTreeMap<ClientName, Vec<f64>>> = BTreeMap::new();
        for line in lines {
            if let Some((work, size, figure)) = (metric.figure)(&line.measured) {
                let row = Row { runtime: line.runtime, work, size };
                rows.entry(row).or_default().entry(line.client).or_default().push(figure);
            }
        }
        if !rows.is_empty() {
            table(&mut text, metric, &clients, &rows);
        }
    }
    text
}

fn table(
    text: &mut String,
    metric: &Metric,
    clients: &BTreeSet<ClientName>,
    rows: &BTreeMap<Row, BTreeMap<ClientName, Vec<f64>>>,
) {
    let has_goal = rows.keys().any(|row| (metric.goal)(row).is_some());
    // Writing to a string does not fail.
    let _ = writeln!(text, "**{}**\n", metric.title);
    let mut push = |cells: Vec<String>| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    let mut head: Vec<String> = ["runtime", "command", metric.size].map(str::to_owned).into();
    let mut rule: Vec<String> = ["---", "---", "--:"].map(str::to_owned).into();
    for client in clients {
        head.push(client.title().to_owned());
        rule.push("--:".to_owned());
    }
    head.push("Towline / best peer, medians (best rounds)".to_owned());
    rule.push("--:".to_owned());
    if has_goal {
        head.push("goal".to_owned());
        rule.push("--:".to_owned());
    }
    push(head);
    push(rule);
    for (row, cells) in rows {
        let runtime = match row.runtime {
            Runtime::Ct => "current-thread",
            Runtime::Mt2 => "two workers",
        };
        let mut line = vec![runtime.to_owned(), row.work.to_owned(), row.size.to_string()];
        line.extend(clients.iter().map(|client| match cells.get(client) {
            Some(figures) => cell(figures, metric.digits),
            None => "-".to_owned(),
        }));
        // The best rounds say more than the medians while other programs disturb some of the rounds.
        let best: fn(&[f64]) -> f64 = match metric.better {
            Better::Lower => lowest,
            Better::Higher => highest,
        };
        let ratios = ratio(cells, metric.better, median).zip(ratio(cells, metric.better, best));
        line.push(ratios.map_or_else(|| "-".to_owned(), |(median, best)| format!("{median:.2} ({best:.2})")));
        if has_goal {
            line.push((metric.goal)(row).map_or_else(|| "-".to_owned(), |goal| format!("{goal:.2}")));
        }
        push(line);
    }
    text.push('\n');
}

/// Median, lowest and highest.
fn cell(figures: &[f64], digits: usize) -> String {
    let middle = median(figures);
    if figures.len() == 1 {
        return format!("{middle:.digits$}");
    }
    format!("{middle:.digits$} ({:.digits$}-{:.digits$})", lowest(figures), highest(figures))
}

fn lowest(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}

fn highest(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Towline's figure over the best peer's; none without both, or when the peer's is nothing.
fn ratio(cells: &BTreeMap<ClientName, Vec<f64>>, better: Better, figure: fn(&[f64]) -> f64) -> Option<f64> {
    let own = figure(cells.get(&ClientName::Towline)?);
    let peers = cells.iter().filter(|(client, _)| client.is_peer()).map(|(_, figures)| figure(figures));
    let best = match better {
        Better::Lower => peers.min_by(f64::total_cmp),
        Better::Higher => peers.max_by(f64::total_cmp),
    }?;
    (best > 0.0).then(|| own / best)
}
